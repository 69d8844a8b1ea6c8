/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording may take and has taken, for --max-overhead. Numbers in, answers out; no clock, no Python.
 *
 * A credit grows with the time that passes, by the budget's share of it, and shrinks by what recording takes. A
 * program may save credit for later, up to a limit, and owe as much at most. Beside it runs a period of a fifth of a
 * second: functions are dropped only where the credit is used up and the period's own cost is too high. What was
 * spent in a time that is over is no reason to drop what runs now.
 */
#ifndef KRAIT_PYTHON_BUDGET_H
#define KRAIT_PYTHON_BUDGET_H

#include "base/base.h"

enum {
    KRAIT_BUDGET_AIM = 60, /* percent of it: hooks that cannot be taken out, and caches, cost the rest */
};

struct krait_budget {
    uint64_t ppm;          /* of the time that passes */
    uint64_t ticks_per_s;  /* the clock's frequency */
    int64_t credit;        /* ticks that recording may still take; below 0: owed */
    uint64_t period_ticks; /* how long the period has lasted */
    uint64_t period_spent; /* ticks that recording took in it */
};

/* A budget of so many millionths of the time, with the credit that a program begins with: all is new then. */
struct krait_budget krait_budget_of(uint64_t ppm, uint64_t ticks_per_s);

/* So many microseconds in ticks. */
uint64_t krait_budget_us(const struct krait_budget *b, uint64_t us);

/* What may be taken of so many ticks, in percent of the budget. */
int64_t krait_budget_share(const struct krait_budget *b, uint64_t ticks, uint32_t percent);

/* So many ticks passed, and recording took so many of them. */
void krait_budget_settle(struct krait_budget *b, uint64_t passed, uint64_t spent);

/* Whether functions have to go: the credit is used up, and the period costs more than the budget. */
bool krait_budget_is_exceeded(const struct krait_budget *b);

/* What the period may cost once functions were dropped, ticks. */
uint64_t krait_budget_aim(const struct krait_budget *b);

/* How long recording has to pause until what is owed is paid, microseconds. */
uint64_t krait_budget_pause_us(const struct krait_budget *b);

/* The cause of the debt is gone: begins anew, owing nothing. */
void krait_budget_forgive(struct krait_budget *b);

/* Whether the period is over; begins another if so. */
bool krait_budget_next_period(struct krait_budget *b);

#endif
