/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums are of each thread; rows are of a thread, a process, or all.
 */
#include "base/array.h"
#include "cmd/top.h"
#include "event/own.h"

enum { MILLION = 1000000 };

struct merging {
    const struct top_view *view;
    struct top_row *rows;
    uint32_t count, cap;
    struct krait_map index; /* what and whose -> row */
};

static uint64_t key_of(const struct merging *m, uint32_t what, uint32_t thread, pid_t pid)
{
    const uint32_t groups[TOP_BY_COUNT] = { [TOP_BY_THREAD] = thread, [TOP_BY_PROCESS] = (uint32_t)pid };
    return (uint64_t)what << 32 | groups[m->view->by];
}

/* What has that key already, or else a new row like `first`. NULL without memory. */
static struct top_row *row_for(struct merging *m, uint64_t key, const struct top_row *first)
{
    const uint64_t *known = krait_map_get(&m->index, key);
    if (known)
        return &m->rows[*known];
    if (!KRAIT_GROW(m->rows, m->cap, m->count + 1) || krait_map_put(&m->index, key, m->count))
        return NULL;
    m->rows[m->count] = *first;
    return &m->rows[m->count++];
}

/* krait's own functions are not. */
static bool is_shown(const struct merging *m, const char *module, const char *name, const char *file)
{
    return !krait_own_file(file) && (!m->view->match || krait_match_func(m->view->match, module, name, file));
}

/* -- samples: each stands for the time from one to the next -- */

static uint64_t time_of(const struct krait_sums_rounds *all, uint64_t stacks)
{
    return (uint64_t)((double)stacks * (double)all->ns / (double)KRAIT_MAX(all->rounds, 1u));
}

static void share_samples(struct merging *m)
{
    const struct krait_sums *sums = m->view->sums;
    const struct krait_sums_rounds *rounds = m->view->whole ? &sums->all : &sums->last;
    for (uint32_t i = 0; i < m->count; i++) {
        struct top_row *row = &m->rows[i];
        row->own_ns = time_of(&sums->all, row->own_ns);
        row->total_ns = time_of(&sums->all, row->total_ns);
        row->own = row->own * MILLION / KRAIT_MAX(rounds->rounds, 1u);
        row->total = row->total * MILLION / KRAIT_MAX(rounds->rounds, 1u);
        for (size_t state = 0; state < TOP_STATES; state++)
            row->states[state] = row->states[state] * MILLION / KRAIT_MAX(rounds->rounds, 1u);
    }
}

static int add_samples(struct merging *m)
{
    const struct krait_sums *sums = m->view->sums;
    const struct krait_sums_table *table = m->view->lines ? &sums->lines : &sums->functions;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct krait_sums_row *from = &table->rows[i];
        const struct krait_sums_place *place = &table->places[from->place];
        const struct krait_sums_thread *thread = &sums->threads[from->thread];
        if (!from->all.total || !is_shown(m, "", place->name, place->file))
            continue;
        const struct top_row first = { .name = place->name,
                                       .module = "",
                                       .file = place->file,
                                       .line = place->line > 0 ? (uint32_t)place->line : 0,
                                       .pid = thread->pid,
                                       .tid = thread->tid,
                                       .thread_name = thread->name };
        struct top_row *to = row_for(m, key_of(m, from->place, from->thread, thread->pid), &first);
        if (!to)
            return -ENOMEM;
        const struct krait_sum *shown = m->view->whole ? &from->all : &from->last;
        to->own += shown->own;
        to->total += shown->total;
        for (size_t state = 0; state < TOP_STATES; state++)
            to->states[state] += shown->states[state];
        to->own_ns += from->all.own;
        to->total_ns += from->all.total;
    }
    share_samples(m);
    return 0;
}

/* -- calls -- */

/* The exact time, as the looks that met it split it. */
static void split_time(struct top_row *to, uint64_t ns, const uint32_t *states)
{
    uint64_t looks = 0;
    for (size_t i = 0; i < TOP_STATES && states; i++)
        looks += states[i];
    for (size_t i = 0; i < TOP_STATES && looks; i++)
        to->states[i] += (uint64_t)((double)ns * states[i] / (double)looks);
}

/* Time that no look has met is split as the other time of the row. */
static void share_states(struct top_row *row)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TOP_STATES; i++)
        sum += row->states[i];
    for (size_t i = 0; i < TOP_STATES && sum; i++)
        row->states[i] = (uint64_t)((double)row->total * (double)row->states[i] / (double)sum);
}

static int add_call(void *ctx, const struct krait_live_row *from)
{
    struct merging *m = ctx;
    const struct krait_live_func *func = from->func;
    uint64_t calls = m->view->to_now ? from->calls_now : from->all.calls;
    bool is_counted = calls || from->all.total || from->all.own;
    if (!is_counted || !is_shown(m, func->module, func->name, func->file))
        return 0;
    const struct top_row first = { .name = func->label,
                                   .module = func->module,
                                   .marked = func->marked,
                                   .holds_dropped = func->holds_dropped,
                                   .file = func->file,
                                   .line = func->line,
                                   .pid = from->thread->pid,
                                   .tid = from->thread->tid,
                                   .thread_name = from->thread->name };
    struct top_row *to = row_for(m, key_of(m, from->func_id, from->thread_id, from->thread->pid), &first);
    if (!to)
        return -ENOMEM;
    const struct krait_live_sum *shown = m->view->whole ? &from->all : &from->last;
    to->own += shown->own;
    to->total += shown->total;
    to->shown_calls += shown->calls;
    to->own_ns += from->all.own;
    to->total_ns += from->all.total;
    to->calls += calls;
    split_time(to, shown->total, m->view->whole ? from->all_states : from->last_states);
    return 0;
}

static int add_calls(struct merging *m)
{
    uint64_t ns = KRAIT_MAX(top_figures(m->view).ns, 1u);
    int rc = krait_live_each(m->view->live, add_call, m);
    for (uint32_t i = 0; i < m->count; i++) {
        struct top_row *row = &m->rows[i];
        row->own = (uint64_t)((double)row->own * MILLION / (double)ns);
        row->total = (uint64_t)((double)row->total * MILLION / (double)ns);
        row->calls_s = (double)row->shown_calls * 1e9 / (double)ns;
        share_states(row);
    }
    return rc;
}

static int add_task(void *ctx, const struct krait_live_task *from)
{
    struct merging *m = ctx;
    const struct krait_live_func *func = from->func;
    const struct krait_live_steps *shown = m->view->whole ? &from->all : &from->last;
    uint64_t ns = KRAIT_MAX(top_figures(m->view).ns, 1u);
    if (!from->all.running || !is_shown(m, func->module, func->name, func->file))
        return 0;
    if (!KRAIT_GROW(m->rows, m->cap, m->count + 1))
        return -ENOMEM;
    m->rows[m->count++] = (struct top_row){
        .name = func->label,
        .module = func->module,
        .file = func->file,
        .line = func->line,
        .thread_name = *from->name ? from->name : NULL,
        .own = (uint64_t)((double)shown->running * MILLION / (double)ns),
        .calls_s = (double)shown->steps * 1e9 / (double)ns,
        .calls = from->all.steps,
        .own_ns = from->all.running,
        .total_ns = from->all.running,
        .longest_ns = shown->longest,
        .tasks = from->tasks,
    };
    return 0;
}

struct krait_live_figures top_figures(const struct top_view *view)
{
    return view->whole ? krait_live_figures_all(view->live) : krait_live_figures_last(view->live);
}

int top_rows(const struct top_view *view, struct top_row **rows, uint32_t *count)
{
    struct merging m = { .view = view };
    int rc = !view->live               ? add_samples(&m)
             : view->by == TOP_BY_TASK ? krait_live_each_task(view->live, add_task, &m)
                                       : add_calls(&m);
    krait_map_done(&m.index);
    *rows = m.rows;
    *count = m.count;
    return rc;
}
