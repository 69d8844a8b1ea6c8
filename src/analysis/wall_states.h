/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's states of recorded threads, of which walls are made (wall.h). Those of a recording that goes on pass from one
 * opening to the next, so that each event is read once:
 *
 *     opening 1   |--- events -----------|.....      . is not written on all CPUs yet
 *     opening 2                          |-- new --|....
 *
 * All is read again where earlier events are others than before (krait_kernel_events_print), and where a thread turns out to be a
 * recorded one whose states were not kept: it lives in a PID namespace of its own, or its first call came long after its begin.
 */
#ifndef KRAIT_ANALYSIS_WALL_STATES_H
#define KRAIT_ANALYSIS_WALL_STATES_H

#include "trace/kernel/kernel_states.h"
#include "trace/trace.h"

struct krait_wall_states { /* zeroed memory has none */
    struct krait_kernel_states *of;
    /* Which threads are kept: by index among those of the states, and of later ones by number. */
    bool *kept;
    uint32_t kept_count;
    struct krait_map wanted; /* numbers of the recorded threads */
    int64_t end_ns;          /* of what is known */
    int64_t until_ns;        /* of a recording that goes on: as far as they are read */
    uint64_t print;          /* of what is before */
};

/* Reads all. Returns 0, or a negative errno with err set: -ENODATA the events do not show what threads do; errors of
 * krait_kernel_states_new. */
int krait_wall_states_read(struct krait_wall_states *states, const struct krait_trace *trace,
                           struct krait_kernel_events *events, struct krait_err *err);
/* Of a trace that goes on (krait_kernel_settled): reads on, unless a later opening has read further. *anew: what there was before
 * is freed. Returns as krait_wall_states_read; after an error there are none. */
int krait_wall_states_read_on(struct krait_wall_states *states, const struct krait_trace *trace,
                              struct krait_kernel_events *events, bool *anew, struct krait_err *err);
void krait_wall_states_done(struct krait_wall_states *states);

#endif
