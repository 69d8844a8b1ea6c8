/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the times of streams can be compared, so that their events have an order.
 */
#ifndef KRAIT_CTF_READ_COMPARE_H
#define KRAIT_CTF_READ_COMPARE_H

#include "ctf/read/stream.h"

/* 0 when all streams count from one origin: the epoch, another that their metadata names, that of clocks of
 * the same identity or of the same clock of one trace; or when none has a clock. Else -EINVAL: err says which
 * two do not, and why. The rule is that of babeltrace2 2.1. */
int krait_ctf_comparable(const struct krait_ctf_reader *reader, struct krait_err *err);

#endif
