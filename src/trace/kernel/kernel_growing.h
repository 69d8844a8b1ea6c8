/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's files of a recording that goes on. The recorder writes each CPU's events in packets, a full one at once and the
 * others once a second, so at a moment the files of different CPUs end at different times:
 *
 *     CPU 0   |---------|---------|-----|
 *     CPU 1   |--|             |--|
 *                                ^ up to here a reader has all events (krait_kernel_written), and can go on from here later
 *
 * That is a rule of thumb: krait_kernel_print shows afterwards whether an earlier event has come all the same, and whether
 * krait record --last has written the files anew.
 */
#ifndef KRAIT_TRACE_KERNEL_GROWING_H
#define KRAIT_TRACE_KERNEL_GROWING_H

#include "trace/kernel/kernel_marks.h"

/* Up to when all events are in the files, by this machine's clock; at most behind the last packet, whose end is then *end_ns: up to
 * there what goes on is known. INT64_MIN: there is none. */
int64_t krait_kernel_written(const struct krait_ctf_reader *reader, int64_t *end_ns);

/* A number made of all packets that begin before a time, and of what `marks` tell of before it. */
uint64_t krait_kernel_print(const struct krait_ctf_reader *reader, const struct krait_kernel_marks *marks,
                            int64_t ns);

#endif
