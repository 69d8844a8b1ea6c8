/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of the governor: which functions cost more than their calls are worth, how many of them to drop, and
 * when a dropped function has become long. Numbers in, answers out; no clock, no Python.
 *
 * The governor never drops a function whose mean call lasts longer than LONG_EVENTS times an event's cost. It only
 * knows the calls that it saw. If nearly all calls take 50 ns and one in twenty 300 us, the first few calls say nothing
 * about the mean. So a function is surely short only if it would still be short after one more call, UNSEEN times as
 * long as a long one. The more calls were seen, the less this extra call weighs; and the nearer a function is to being
 * long, the more calls it takes to be sure. The governor drops functions that are not surely short only if the others
 * make less than half of what has to go. Otherwise thousands of evenly hot functions would cost too much until all are
 * sure.
 */
#ifndef KRAIT_PYTHON_CHOICE_H
#define KRAIT_PYTHON_CHOICE_H

#include "python/durations.h"

enum {
    KRAIT_LONG_EVENTS = 50,  /* never dropped; a call and its end are two events */
    KRAIT_SHORT_EVENTS = 40, /* may be dropped: what lies between keeps decisions from changing to and fro */
    KRAIT_KNOWN_CALLS = 16,  /* fewer say nothing of how long a function's are */
    KRAIT_UNSEEN = 32,       /* at least 39 calls were seen of a function that is sure to be short */
};

/* A function that may be dropped. */
struct krait_candidate {
    uint32_t id;
    bool sure;
    uint32_t rank;   /* how long its calls are: the power of two of the half events that they last */
    uint32_t recent; /* begins in this period */
};

/* Whether it may be dropped, as far as its calls are known. event_ticks: of a call and its end. */
bool krait_choice_is_short(const struct krait_timed *timed, uint64_t event_ticks);

/* Whether one very long call more would leave it short. */
bool krait_choice_is_sure(const struct krait_timed *timed, uint64_t event_ticks);

/* Fills in the candidate of a function that may be dropped. */
struct krait_candidate krait_choice_candidate(const struct krait_timed *timed, uint32_t id,
                                              uint64_t event_ticks);

/* How many of so many begins are to go, where `spent` ticks were spent and `allowed` may be. */
uint64_t krait_choice_excess(uint64_t begins, uint64_t spent, uint64_t allowed);

/* Moves those to the front that are to go, and returns how many: the sure ones first, of them the shortest,
 * until `excess` begins are theirs. Which made few of them stays: its absence would save nothing. */
size_t krait_choice_pick(struct krait_candidate *candidates, size_t n, uint64_t excess);

/* What is known of a function when it is dropped: probes add to it, and it weighs as much as a round of them. */
void krait_choice_begin_probes(struct krait_timed *timed);

/* A dropped function's calls were timed. Returns whether they are long now: these of this round, or all, where
 * few are long among many short ones. */
bool krait_choice_add_probe(struct krait_timed *timed, uint32_t calls, uint64_t ticks, uint64_t event_ticks);

/* Whether this round of probes knows enough of it; begins to count anew if so. */
bool krait_choice_round_is_over(struct krait_timed *timed);

#endif
