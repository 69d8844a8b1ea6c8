/* SPDX-License-Identifier: Apache-2.0
 *
 * What samples tell of a thread beside its stack: whether it ran, waited for the GIL or was blocked, and the line that its
 * innermost Python function was in. Recordings of samples alone have them: KRAIT_TRACK_SAMPLED is in the flags of their threads.
 *
 *     struct krait_sample_runs runs = { 0 };
 *     int rc = krait_sample_runs_read(&runs, trace, thread, KRAIT_RANGE_ALL);
 *     for (uint32_t i = 0; !rc && i < runs.count; i++)
 *         ... runs.items[i].begin_ns, up to runs.items[i + 1].begin_ns ...
 *     krait_sample_runs_done(&runs);
 *
 * A sample counts up to the next one of its thread, as its stack does in the calls of the model.
 */
#ifndef KRAIT_TRACE_SAMPLE_RUNS_H
#define KRAIT_TRACE_SAMPLE_RUNS_H

#include "trace/packets.h"
#include "trace/trace.h"

enum krait_sample_is {
    KRAIT_SAMPLE_RUNS, /* on a CPU, or ready for one */
    KRAIT_SAMPLE_GIL,
    KRAIT_SAMPLE_BLOCKED,
    KRAIT_SAMPLE_UNKNOWN, /* the thread has ended, or its state is one of a later version */
};

/* Samples that tell the same, one after the other. */
struct krait_sample_run {
    uint64_t begin_ns;
    uint32_t line; /* 0: not known */
    uint8_t is;    /* enum krait_sample_is */
};

struct krait_sample_runs {
    struct krait_sample_run *items; /* behind the last stands one more that begins at UINT64_MAX */
    uint32_t count, cap;
    /* The caller's: gets what is damaged, which ends its packet. Zeroed: nobody does; krait_trace_walk tells it too. */
    struct krait_damage damage;
};

/* Reads those of one thread that lie in a range, and the one that goes on when it begins. `runs` is zeroed but for `damage`, or has
 * been read into. There are none of a thread that was not sampled. Returns 0 or -ENOMEM. */
int krait_sample_runs_read(struct krait_sample_runs *runs, const struct krait_trace *trace, uint32_t thread,
                           struct krait_range range);
/* Counts the samples of one thread in a range, to_ns not included. Returns 0 or -ENOMEM. */
int krait_sample_runs_count(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                            uint64_t *count);
/* Adds up how long one thread was on a CPU, or ready for one, in a range. Returns 0 or -ENOMEM. */
int krait_sample_runs_ran(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                          uint64_t *ns);
void krait_sample_runs_done(struct krait_sample_runs *runs);

#endif
