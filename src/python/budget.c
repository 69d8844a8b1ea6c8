/* SPDX-License-Identifier: Apache-2.0 */
#include "python/budget.h"

enum {
    CREDIT_US = 2000,       /* at first */
    CREDIT_MAX_US = 200000, /* the budget of so much time is kept for later, and as much is owed at most */
    PERIOD_US = 200000,
};

struct krait_budget krait_budget_of(uint64_t ppm, uint64_t ticks_per_s)
{
    struct krait_budget b = { .ppm = ppm, .ticks_per_s = ticks_per_s };
    b.credit = (int64_t)krait_budget_us(&b, CREDIT_US);
    return b;
}

uint64_t krait_budget_us(const struct krait_budget *b, uint64_t us)
{
    return (uint64_t)((unsigned __int128)us * b->ticks_per_s / 1000000);
}

int64_t krait_budget_share(const struct krait_budget *b, uint64_t ticks, uint32_t percent)
{
    return (int64_t)((unsigned __int128)ticks * b->ppm * percent / 100000000);
}

void krait_budget_settle(struct krait_budget *b, uint64_t passed, struct krait_spent spent)
{
    uint64_t all = spent.calls + spent.fixed + spent.named;
    int64_t most = krait_budget_share(b, krait_budget_us(b, CREDIT_MAX_US), 100) +
                   (int64_t)krait_budget_us(b, CREDIT_US);
    b->credit += krait_budget_share(b, passed, KRAIT_BUDGET_AIM) - (int64_t)all;
    b->credit = KRAIT_MIN(KRAIT_MAX(b->credit, -most), most);
    b->period_ticks += passed;
    b->period_spent += all;
    b->period_fixed += spent.fixed;
    b->period_named += spent.named;
}

bool krait_budget_is_exceeded(const struct krait_budget *b)
{
    return b->credit < 0 && (int64_t)b->period_spent > krait_budget_share(b, b->period_ticks, 100);
}

bool krait_budget_needs_pause(const struct krait_budget *b)
{
    enum { LEAST_US = 10000, OWED_US = 1000, OWED_NAMED_US = 3000 };
    bool names = b->credit < -(int64_t)krait_budget_us(b, OWED_NAMED_US);
    uint64_t unsaved = b->period_fixed + (names ? b->period_named : 0);
    return b->credit < -(int64_t)krait_budget_us(b, OWED_US) &&
           b->period_ticks > krait_budget_us(b, LEAST_US) &&
           (int64_t)unsaved > krait_budget_share(b, b->period_ticks, 100);
}

uint64_t krait_budget_aim(const struct krait_budget *b)
{
    return (uint64_t)krait_budget_share(b, b->period_ticks, KRAIT_BUDGET_AIM);
}

uint64_t krait_budget_pause_us(const struct krait_budget *b)
{
    double owed = b->credit < 0 ? (double)-b->credit : 0;
    return (uint64_t)(owed * 1e6 / (double)b->ticks_per_s * 1e8 / KRAIT_BUDGET_AIM / (double)b->ppm);
}

static void begin_period(struct krait_budget *b)
{
    b->period_ticks = 0;
    b->period_spent = 0;
    b->period_fixed = 0;
    b->period_named = 0;
}

void krait_budget_forgive(struct krait_budget *b)
{
    b->credit = 0;
    begin_period(b);
}

bool krait_budget_next_period(struct krait_budget *b)
{
    if (b->period_ticks <= krait_budget_us(b, PERIOD_US))
        return false;
    begin_period(b);
    return true;
}
