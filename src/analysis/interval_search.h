/* SPDX-License-Identifier: Apache-2.0
 *
 * One search for intervals: what its parts share. intervals.c reads messages, calls and spans; interval_kernel.c the events of
 * the kernel, of tasks and the GIL, and what state providers make of events; interval_calls.c the calls that begin or end
 * intervals, interval_arguments.c their arguments; interval_events.c asks of an event which rules it is for.
 */
#ifndef KRAIT_ANALYSIS_INTERVAL_SEARCH_H
#define KRAIT_ANALYSIS_INTERVAL_SEARCH_H

#include "analysis/intervals_inside.h"
#include "trace/coroutines.h"

/* A rule as it is looked for. */
struct krait_sought {
    bool is_keyed;
    bool is_by_task; /* the key of calls is $task, which those of a track need not have in common */
    bool is_left_out;
    bool *calls;    /* by function; NULL of a rule of messages */
    bool *edges[2]; /* by function: of the start, of the stop; NULL: it is no call */
    struct krait_sought_call {
        uint64_t begin_ns;
        bool was_live;
        bool is_begin; /* of a call that begins or ends intervals, not of a later step */
        uint32_t task; /* ... then what runs it, or KRAIT_NO_ID */
    } * open;          /* calls of this thread */
    uint32_t open_count, open_cap;
    struct krait_map suspended; /* is_outermost: calls that tasks await, by their number in `of_track` */
    size_t suspended_most;
    uint32_t of_track;          /* 1 + its index */
    bool has_coroutines;        /* some of `calls` are */
    uint64_t unfollowed;        /* calls that ended, or switched greenlets: whose steps krait does not know */
    struct krait_strtab labels; /* of the functions whose arguments are looked for */
    struct krait_sought_key {
        uint64_t begin_ns, end_ns;
        uint32_t thread, key; /* KRAIT_NO_ID: its arguments have no such */
        size_t text;          /* of calls that are ends, in place of a key: in `texts` */
        bool is_taken;
        uint32_t taken; /* of the first that begins then: so many are taken, one after the other */
    } * keys;           /* of calls whose arguments were recorded, by thread and begin */
    uint32_t key_count, key_cap;
    struct krait_buf texts;
    uint32_t key_track, key; /* 1 + the index of the last track whose calls were looked at, and their key */
    uint64_t with_key, without_key; /* spans, and calls with arguments, if there is a key */
    struct krait_strtab fields;     /* of the first of those without: one may be meant */
};

struct krait_search {
    const struct krait_trace *trace;
    const struct krait_interval_options *options;
    struct krait_intervals *intervals;
    struct krait_sought *sought; /* by rule */
    struct krait_map rows;       /* krait_intervals_row */
    struct krait_map signals;    /* krait_signals_row */
    struct krait_edge *edges;
    size_t edge_count, edge_cap;
    struct krait_coroutines *coroutines; /* of the thread whose calls are walked; NULL: no rule needs them */
    struct krait_call_step *steps;       /* of a batch */
    uint32_t step_cap, calls_track;
    bool has_args;                   /* calls have arguments */
    bool has_switches;               /* of greenlets, which are tasks */
    bool is_mixed;                   /* a lane may have edges of more than one track */
    struct krait_trigger_event said; /* the event that is looked at */
    struct krait_task_keys tasks;    /* for $task */
    struct krait_map threads;        /* by number: the track of what the kernel saw of it */
    struct krait_map labels; /* by rule and key or lane: the label of the next value; KRAIT_NO_ID: none */
    bool asks_spans;         /* a rule does */
    bool *seen;              /* by name: a span has it */
    uint32_t seen_cap;
    struct krait_pipe *pipe; /* to the thread that searches messages; NULL: this one does */
};

enum {
    KRAIT_LANE_THREADS = 1u << 31
}; /* lanes that are threads; the others are ids in krait_intervals.places */

/* Takes the event in search->said, of a track or of none (KRAIT_NO_ID), for each rule that it fits. Returns 0 or -ENOMEM. */
int krait_search_event(struct krait_search *search, uint32_t track, uint64_t t_ns);

/* Adds the edges of an event that fired the start, the stop, or both. Returns 0 or -ENOMEM. */
int krait_search_pair(struct krait_search *search, const struct krait_trigger *const fired[2],
                      struct krait_edge edge);

/* Whether a rule begins or ends at calls; finds their functions: -ENOENT, there is none of those at the line in
 * `at`; takes those of a batch, whose steps may be NULL. */
bool krait_search_needs_calls(const struct krait_interval_rule *rule);
int krait_search_begin_calls(struct krait_search *search, uint32_t rule, const char **at,
                             struct krait_err *err);
int krait_search_calls(struct krait_search *search, uint32_t rule, uint32_t track,
                       const struct krait_call_batch *calls, const struct krait_call_step *steps);

/* Whether a rule needs recorded arguments, and whether the trace may have them. */
bool krait_search_asks_arguments(const struct krait_interval_rule *rule);
bool krait_search_has_arguments(const struct krait_search *search, uint32_t rule);

/* Finds out whose arguments are meant; takes those of a batch of slices; puts all in order before calls are walked. Return 0 or
 * -ENOMEM. */
int krait_search_begin_arguments(struct krait_search *search, uint32_t rule);
int krait_search_take_arguments(void *search, const struct krait_track *track,
                                const struct krait_batch *batch);
int krait_search_sort_arguments(struct krait_search *search);

/* Those of a call, or of the call that a step belongs to, which ends later; NULL: there are none. Asked for once for each end of a
 * call or step, in the order of the walk. */
const struct krait_sought_key *krait_search_arguments_of(struct krait_sought *sought, uint32_t thread,
                                                         uint64_t begin_ns, uint64_t end_ns);

/* A field of a span's, or of a slice's arguments, is its key; or what is known of all: $thread. KRAIT_NO_ID: it has none.
 * Returns 0 or -ENOMEM. */
int krait_search_slice_key(struct krait_search *search, uint32_t rule,
                           const struct krait_trigger_slice *slice, uint32_t *key);

/* Whether a rule looks at the kernel's events. */
bool krait_search_needs_kernel(const struct krait_interval_rule *rule);

/* Walks the events of tasks and the GIL that rules name. Returns 0 or -ENOMEM. */
int krait_search_tasks(struct krait_search *search, char *damage, size_t size);

/* Walk the kernel's events, if a rule needs them; and all events, if a rule has a provider. `damage` (size bytes) keeps the
 * first that is met. Return 0 or -ENOMEM. */
int krait_search_kernel(struct krait_search *search, char *damage, size_t size);
int krait_search_providers(struct krait_search *search, char *damage, size_t size);

/* Tells, in the options' notes, what rules named and nothing has. */
void krait_search_note(const struct krait_search *search);

#endif
