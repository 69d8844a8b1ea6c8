/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over the entries of tracks in a range: states and system calls by name, counters over time, and who waited for
 * the GIL while who had it. Whoever has the entries adds them, cut or not: what they lasted outside of the range does
 * not count, except in the durations of single ones.
 */
#ifndef KRAIT_ANALYSIS_TRACK_SUMS_H
#define KRAIT_ANALYSIS_TRACK_SUMS_H

#include "base/hist.h"
#include "base/map.h"
#include "trace/track.h"

struct krait_gil_holders;
struct krait_gil_states;

/* A state, a system call, or a value of a counter. Times are nanoseconds, from wherever the range's are. */
struct krait_entry {
    uint64_t begin_ns, end_ns;
    int64_t value; /* krait_batch.value */
    uint32_t name;
};

/* ---- states and system calls ---- */

/* Of one name, and of one track where the sums are by track. */
struct krait_name_sum {
    uint32_t track, name;
    uint64_t count, ns, shortest_ns, longest_ns;
    uint64_t errors;        /* system calls that returned one */
    struct krait_hist took; /* where the sums are of all tracks */
};

struct krait_name_sums {
    struct krait_range range;
    bool by_track;
    struct krait_name_sum *items;
    uint32_t count, cap;
    struct krait_map index;
};

void krait_name_sums_done(struct krait_name_sums *sums);
/* As in krait states, a system call that was not seen to return does not count: nobody knows how long it took. Returns
 * 0 or -ENOMEM. */
int krait_name_sums_add(struct krait_name_sums *sums, uint32_t track, const struct krait_entry *entry);
/* Within the histogram's precision, and never outside of what there was. */
uint64_t krait_name_sum_quantile(const struct krait_name_sum *sum, double q);
/* Whether a system call returned an error. */
bool krait_syscall_failed(int64_t returned);

/* ---- counters ---- */

struct krait_counter_sum {
    struct krait_range range;
    uint64_t changes, known_ns;
    double sum, min, max, first, last; /* sum: value times ns */
    bool has;
};

/* An entry is a value, up to where the next one begins. */
void krait_counter_add(struct krait_counter_sum *sum, const struct krait_entry *entry);
double krait_counter_mean(const struct krait_counter_sum *sum);

/* ---- waits for the GIL ---- */

#define KRAIT_GIL_NOBODY (KRAIT_NO_ID - 1)

/* What one thread waited while another had the GIL. */
struct krait_gil_pair {
    /* Threads of the trace. holder: KRAIT_NO_ID is not known, KRAIT_GIL_NOBODY that the GIL was free (trace/gil_holders.h). */
    uint32_t waiter, holder;
    uint64_t count, ns;       /* waits that it was held in; how long */
    uint64_t last_from_ns;    /* where the last of them begins */
    uint64_t longest_ns;      /* of a wait, with all who had it */
    uint64_t longest_from_ns; /* where that wait begins */
};

struct krait_gil_pairs {
    const struct krait_trace *trace;
    const struct krait_gil_holders *holders;
    uint64_t origin_ns; /* what the range and the entries count from */
    struct krait_range range;
    struct krait_gil_pair *items;
    uint32_t count, cap;
    struct krait_map index;
};

void krait_gil_pairs_done(struct krait_gil_pairs *pairs);
/* Whether a track has a recorded thread's waits for the GIL. */
bool krait_gil_is_waits(const struct krait_track *track);
/* Adds a wait of a thread: each part of it to who had the GIL then. Returns 0 or -ENOMEM. */
int krait_gil_pairs_add(struct krait_gil_pairs *pairs, uint32_t waiter, const struct krait_entry *wait);

/* ---- of a trace without an index ---- */

struct krait_track_sums {
    struct krait_name_sums states, syscalls; /* states: by track */
    struct krait_counter_sum *counters;      /* by track; those that `has` */
    struct krait_gil_pairs gil;
};

struct krait_track_sums_options {
    struct krait_range range;
    bool (*take)(void *ctx, const struct krait_trace *trace, const struct krait_track *track);
    void *ctx;
    /* With origin 0: the waits for the GIL that the states are to have; NULL: none. */
    const struct krait_gil_states *gil;
};

/* Sums, those with the most time first. Walks the tracks that are taken once, from the trace's begin to its
 * end: single entries are not cut at the range's borders. Their tracks must have been found. Returns 0 or
 * -ENOMEM; krait_track_sums_done in any case. */
int krait_track_sums_make(struct krait_track_sums *out, const struct krait_trace *trace,
                          const struct krait_track_sums_options *options);
void krait_track_sums_done(struct krait_track_sums *sums);

#endif
