/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums are of each thread; rows are of a thread, a process, or all.
 */
#include "base/array.h"
#include "cmd/top.h"

struct merging {
    const struct top_view *view;
    const struct krait_sums_table *table;
    struct top_row *rows;
    uint32_t count, cap;
    struct krait_map index; /* place and group -> row */
};

static uint64_t key_of(const struct merging *m, const struct krait_sums_row *row)
{
    const uint32_t groups[TOP_BY_COUNT] = {
        [TOP_BY_THREAD] = row->thread,
        [TOP_BY_PROCESS] = (uint32_t)m->view->sums->threads[row->thread].pid,
    };
    return (uint64_t)row->place << 32 | groups[m->view->by];
}

static struct top_row *row_for(struct merging *m, const struct krait_sums_row *from)
{
    uint64_t key = key_of(m, from);
    const uint64_t *known = krait_map_get(&m->index, key);
    if (known)
        return &m->rows[*known];
    if (!KRAIT_GROW(m->rows, m->cap, m->count + 1) || krait_map_put(&m->index, key, m->count))
        return NULL;
    m->rows[m->count] = (struct top_row){
        .place = &m->table->places[from->place],
        .thread = &m->view->sums->threads[from->thread],
    };
    return &m->rows[m->count++];
}

static void add(struct krait_sum *to, const struct krait_sum *more)
{
    to->own += more->own;
    to->total += more->total;
}

static bool is_shown(const struct merging *m, const struct krait_sums_row *row)
{
    const struct krait_sums_place *place = &m->table->places[row->place];
    return row->all.total &&
           (!m->view->match || krait_match_func(m->view->match, "", place->name, place->file));
}

int top_rows(const struct top_view *view, struct top_row **rows, uint32_t *count)
{
    struct merging m = { .view = view, .table = view->lines ? &view->sums->lines : &view->sums->functions };
    int rc = 0;
    for (uint32_t i = 0; i < m.table->count && !rc; i++) {
        const struct krait_sums_row *from = &m.table->rows[i];
        if (!is_shown(&m, from))
            continue;
        struct top_row *to = row_for(&m, from);
        if (!to) {
            rc = -ENOMEM;
            continue;
        }
        add(&to->all, &from->all);
        add(&to->shown, view->whole ? &from->all : &from->last);
    }
    krait_map_done(&m.index);
    *rows = m.rows;
    *count = m.count;
    return rc;
}
