/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a part of a recording begins, in ticks, for who reads events one by one: krait record --last, --keep newest and snapshots
 * keep a part, and krait cut makes one. What is earlier in its files is not what happened then: names, what was open when the part
 * begins (ctf/format.h, kernel/kernel_carried.h), and a few events that share a packet with later ones.
 */
#ifndef KRAIT_TRACE_KEPT_H
#define KRAIT_TRACE_KEPT_H

#include "ctf/read/stream.h"

/* The tick from which on all events are there; 0: the trace is no part, or not krait's. */
uint64_t krait_kept_from(const struct krait_ctf_trace *trace);

#endif
