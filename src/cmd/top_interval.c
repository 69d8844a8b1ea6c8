/* SPDX-License-Identifier: Apache-2.0
 *
 * The intervals of `krait top`. A table is of the end of one: its rows, its heading and what keys make of them, until the next
 * interval has ended. While it is paused, none ends.
 */
#include "base/clock.h"
#include "cmd/top.h"

#include <string.h>

enum { FIRST_PART = 5 /* of an interval: a screen is not empty for long */ };

void top_begin_interval(struct top *top)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    top->end_ns = now + top->interval_ns / (top->screen ? FIRST_PART : 1);
    top->last_ns = now;
    krait_pace_begin(&top->pace, now);
}

/* -- CPU time -- */

static void count_cpu(struct top *top)
{
    struct top_cpu now = { .ns = krait_clock_ns(CLOCK_MONOTONIC),
                           .own = krait_clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
    top->used.program += top_processes_cpu(&top->processes);
    top->used.ns += now.ns - top->cpu_at.ns;
    top->used.own += now.own - top->cpu_at.own;
    top->cpu_at = now;
}

/* What was used since it was counted last does not count. */
static void skip_cpu(struct top *top)
{
    struct top_cpu before = top->used;
    struct top_unseen_sum unseen = top->processes.unseen.sum;
    count_cpu(top);
    top_unseen_look(&top->processes, top->cpu_at.ns);
    top->used = before;
    top->processes.unseen.sum = unseen;
}

static void read_cpu(struct top *top)
{
    count_cpu(top);
    double used = (double)top->used.program, ns = (double)KRAIT_MAX(top->used.ns, 1u);
    top->cpu = used / ns;
    top->own_cpu = (double)top->used.own / ns;
    top->used = (struct top_cpu){ 0 };
    const uint64_t costs[] = { top->processes.held_ns, top->exact ? top_exact_cost(top->exact) : 0 };
    uint64_t cost_ns = costs[top->is_exact], before = top->cost_ns[top->is_exact];
    bool is_measured = used > 0 && cost_ns >= before;
    top->cost = is_measured ? (double)(cost_ns - before) / used : -1;
    memcpy(top->cost_ns, costs, sizeof(costs));
    top->memory = top_processes_memory(&top->processes);
}

/* -- ends and begins -- */

void top_read_counts(struct top *top)
{
    top->shown_processes = top->read_processes;
    top->shown_threads = top->read_threads;
    top_unseen_look(&top->processes, krait_clock_ns(CLOCK_MONOTONIC));
    const struct top_unseen_sum now = top->processes.unseen.sum, before = top->unseen;
    top->last_unseen = (struct top_unseen_sum){ now.cpu_ns - before.cpu_ns, now.count - before.count };
    top->unseen = now;
    if (!top->is_exact)
        return;
    top->lost = top_exact_lost(top->exact);
    top->failed = top_exact_failures(top->exact);
    top->stopped = top_exact_stopped(top->exact, &top->processes);
}

void top_end_interval(struct top *top)
{
    if (top->is_exact)
        top_exact_turn(top->exact);
    else
        krait_sums_turn(&top->sums);
    read_cpu(top);
    top_read_counts(top);
}

void top_begin_counts(struct top *top)
{
    skip_cpu(top);
    top->used = (struct top_cpu){ 0 };
    top_begin_interval(top);
}

void top_begin_anew(struct top *top)
{
    krait_sums_reset(&top->sums);
    top->unseen = top->last_unseen = top->processes.unseen.sum = (struct top_unseen_sum){ 0 };
    if (top->is_exact)
        top_exact_reset(top->exact);
    top_begin_counts(top);
}

/* -- standing still -- */

/* What happened while krait stood still was not seen: it does not count. */
void top_continue(struct top *top)
{
    top_screen_take(top->screen);
    skip_cpu(top);
    top_begin_interval(top);
}

/* Nobody would empty the rings: nothing is recorded meanwhile. */
void top_stop(struct top *top)
{
    if (top->is_exact || !top->paused)
        count_cpu(top);
    if (top->is_exact)
        top_exact_switch(top->exact, false);
    top_screen_stop(top->screen);
    if (top->is_exact)
        top_exact_switch(top->exact, true);
    skip_cpu(top);
    top_begin_interval(top);
}

/* Nothing is sampled meanwhile. A clock has moved on since the interval ended. */
static void stand_still(struct top *top)
{
    if (top->is_exact && top->picture == TOP_CLOCK)
        top_end_interval(top);
    else if (!top->is_exact)
        count_cpu(top);
}

/* Calls were counted meanwhile: they are an interval of their own, so that the next one is of the present. */
static void go_on(struct top *top)
{
    if (top->is_exact)
        top_end_interval(top);
    else
        skip_cpu(top);
    top_set_picture(top, top->picture);
    top_begin_interval(top);
}

void top_pause(struct top *top)
{
    if (!top->paused)
        stand_still(top);
    top->paused = !top->paused;
    if (top->exact)
        krait_live_hold(top_exact_live(top->exact), top->paused);
    if (!top->paused)
        go_on(top);
}
