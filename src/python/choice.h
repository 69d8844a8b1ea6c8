/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of the governor: which functions cost too much for the time that they take, how many of them to drop,
 * and when a dropped function has become long. Numbers in, answers out; no clock, no Python.
 *
 * The governor never drops a function whose mean call lasts longer than LONG_EVENTS times an event's cost. It only
 * knows the calls that it saw. If nearly all calls take 50 ns and one in twenty 300 us, the first few calls say nothing
 * about the mean. So a function is surely short only if it would still be short after one more call, UNSEEN times as
 * long as a long one. The more calls were seen, the less this extra call weighs; and the nearer a function is to being
 * long, the more calls it takes to be sure. The governor drops functions that are not surely short only if the others
 * make less than half of what has to go. Otherwise thousands of functions that are called equally often would cost too
 * much until all are sure.
 */
#ifndef KRAIT_PYTHON_CHOICE_H
#define KRAIT_PYTHON_CHOICE_H

#include "python/durations.h"

enum {
    KRAIT_LONG_EVENTS = 50,  /* never dropped; a call and its end are two events */
    KRAIT_SHORT_EVENTS = 40, /* may be dropped; the gap keeps decisions from alternating */
    KRAIT_KNOWN_CALLS = 16,  /* fewer calls do not tell how long a function's calls are */
    KRAIT_UNSEEN = 32,       /* with this, a function is sure to be short after 39 calls at the earliest */
};

/* A function that may be dropped. */
struct krait_candidate {
    uint32_t id;
    bool sure;
    uint32_t rank;   /* how long its calls are: log2 of their length in half events */
    uint32_t recent; /* begins in this period */
};

/* Whether it may be dropped, judged by its known calls. event_ticks: the cost of a call and its end. */
bool krait_choice_is_short(const struct krait_timed *timed, uint64_t event_ticks);

/* Whether it would still be short after one more, very long call. */
bool krait_choice_is_sure(const struct krait_timed *timed, uint64_t event_ticks);

/* Fills in the candidate of a function that may be dropped. */
struct krait_candidate krait_choice_candidate(const struct krait_timed *timed, uint32_t id,
                                              uint64_t event_ticks);

/* How many of `begins` begins must go if `spent` ticks were spent and `allowed` ticks may be. */
uint64_t krait_choice_excess(uint64_t begins, uint64_t spent, uint64_t allowed);

/* Moves the candidates to drop to the front and returns how many they are: sure ones first, the shortest first, until
 * they account for `excess` begins. A candidate with few begins stays, because dropping it would save nothing. */
size_t krait_choice_pick(struct krait_candidate *candidates, size_t n, uint64_t excess);

/* Scales what is known about a function when it is dropped, so that it weighs as much as a round of probes, which add
 * to it. */
void krait_choice_begin_probes(struct krait_timed *timed);

/* Calls of a dropped function were timed. Returns whether they are long now: those of this round, or all together, if
 * there are few long ones among many short ones. */
bool krait_choice_add_probe(struct krait_timed *timed, uint32_t calls, uint64_t ticks, uint64_t event_ticks);

/* Whether this round has probed the function enough; if so, begins to count again. */
bool krait_choice_round_is_over(struct krait_timed *timed);

#endif
