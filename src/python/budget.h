/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording may cost and has cost, for --max-overhead. Numbers in, answers out; no clock, no Python.
 *
 * A credit grows with time, by the budget's share of it, and shrinks by the cost of recording. A program may save
 * credit up to a limit, and owe as much. There are also periods of a fifth of a second: functions are dropped only if
 * the credit is used up and the current period costs too much. What was spent earlier is no reason to drop what runs
 * now.
 */
#ifndef KRAIT_PYTHON_BUDGET_H
#define KRAIT_PYTHON_BUDGET_H

#include "base/base.h"

enum {
    /* percent of the budget; hooks that cannot be removed, and cache misses, cost the rest */
    KRAIT_BUDGET_AIM = 60,
};

struct krait_budget {
    uint64_t ppm;          /* the budget, as a share of the time */
    uint64_t ticks_per_s;  /* the clock's frequency */
    int64_t credit;        /* ticks that recording may still take; below 0: owed */
    uint64_t period_ticks; /* how long the period has lasted */
    uint64_t period_spent; /* ticks that recording took in it */
    uint64_t period_fixed; /* ... for what no drop of a function saves */
    uint64_t period_named; /* ... to name functions: once for each */
};

/* What recording took, in ticks. */
struct krait_spent {
    uint64_t calls; /* for what drops of functions save */
    uint64_t fixed; /* for what they do not save */
    uint64_t named; /* to name functions */
};

/* A budget of `ppm` millionths of the time, with an initial credit, because at first every function is new. */
struct krait_budget krait_budget_of(uint64_t ppm, uint64_t ticks_per_s);

/* Converts microseconds to ticks. */
uint64_t krait_budget_us(const struct krait_budget *b, uint64_t us);

/* How much of `ticks` may be spent: `percent` of the budget. */
int64_t krait_budget_share(const struct krait_budget *b, uint64_t ticks, uint32_t percent);

/* `passed` ticks have passed, of which recording took `spent`. */
void krait_budget_settle(struct krait_budget *b, uint64_t passed, struct krait_spent spent);

/* Whether functions must be dropped: the credit is used up, and the period costs more than the budget. */
bool krait_budget_is_exceeded(const struct krait_budget *b);

/* Whether dropping functions cannot keep the budget: a millisecond and more is owed, and what no drop saves takes more
 * than the budget, in a period that has lasted for a while. Naming functions is such a cost, but a program that names
 * many has begun a new part, and naming ends by itself, so it counts only if three milliseconds are owed. */
bool krait_budget_needs_pause(const struct krait_budget *b);

/* What the period may cost once functions were dropped, ticks. */
uint64_t krait_budget_aim(const struct krait_budget *b);

/* How long the recording must pause until the debt is paid, in microseconds. */
uint64_t krait_budget_pause_us(const struct krait_budget *b);

/* The cause of the debt is gone: starts again without debt. */
void krait_budget_forgive(struct krait_budget *b);

/* Whether the period is over; begins another if so. */
bool krait_budget_next_period(struct krait_budget *b);

#endif
