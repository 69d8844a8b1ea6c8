/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace says about its CPUs besides the events: which thread a CPU runs when its stream begins, and where
 * events of a CPU were lost.
 *
 *     CPU 1   ├──── unknown to all events ────┤switch 5 -> 0 ...   5 runs from the beginning on
 *     CPU 0   ┤switch 0 -> 7 ├ lost ┤switch 9 -> 0                 7 runs up to the loss, and no further
 *
 * losses.h says where events are missing that a packet tells of.
 */
#ifndef KRAIT_TRACE_KERNEL_MARKS_H
#define KRAIT_TRACE_KERNEL_MARKS_H

#include "ctf/read/reader.h"

struct krait_kernel_mark {
    int64_t ns;      /* INT64_MIN: since before the trace */
    int64_t told_ns; /* of the event that tells */
    uint32_t cpu;
    bool lost;   /* events were, behind those of that time; else */
    int64_t tid; /* runs there from then on; 0: the idle task */
};

/* Whether it is in force before the events of a time: a loss is behind all of its own time. */
static inline bool krait_kernel_mark_is_before(const struct krait_kernel_mark *mark, int64_t ns)
{
    return mark->ns < ns || (mark->ns == ns && !mark->lost);
}

struct krait_kernel_marks {
    struct krait_kernel_mark *items; /* owned; in the order of time */
    uint32_t count, cap;
};

/* Reads the first events of each stream, and the packets that tell of losses. Returns 0 or -ENOMEM. */
int krait_kernel_marks_find(struct krait_kernel_marks *marks, struct krait_ctf_reader *reader,
                            struct krait_arena *arena);
void krait_kernel_marks_done(struct krait_kernel_marks *marks);

#endif
