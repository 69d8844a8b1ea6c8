/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the times of streams can be compared, so that their events have an order.
 */
#ifndef KRAIT_CTF_READ_COMPARE_H
#define KRAIT_CTF_READ_COMPARE_H

#include "ctf/read/stream.h"

/* 0 if all streams count from one origin: the epoch, another one that their metadata names, or that of clocks with the
 * same identity or of the same clock in one trace; or if no stream has a clock. Otherwise -EINVAL: err names two
 * streams that do not, and says why. The rule is that of babeltrace2 2.1. */
int krait_ctf_comparable(const struct krait_ctf_reader *reader, struct krait_err *err);

#endif
