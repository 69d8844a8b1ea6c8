/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by span --tree`: which spans lie within which, and how long each took by itself: of `--imports`, which module
 * imports which. Spans of the same name within the same ones are one row.
 *
 * A span lies within another one of its own lane (trace/span_lanes.h): the spans of one task nest, and those of another
 * task that runs meanwhile are not within them.
 */
#include "base/arena.h"
#include "base/array.h"
#include "base/fmt.h"
#include "cmd/report.h"
#include "cmd/sheet.h"

#include <string.h>

enum { DEEPEST = 64 }; /* deeper spans are indented no further */

struct slice {
    uint64_t begin_ns, end_ns, ns; /* the last: as far as it counts */
    uint32_t name, track, order;   /* the last: among all, by their ends; who ends later is outside */
};

struct node {
    uint64_t count, total_ns, self_ns, depth;
    const char *kind, *name, *text; /* the last: indented */
    uint32_t parent, first_child, next_sibling;
};

struct spans {
    struct report *report;
    struct slice *slices;
    struct node *nodes; /* the first is that of all */
    uint32_t count, cap, node_count, node_cap, hidden;
    struct krait_map index; /* parent, kind and name to the node */
    struct krait_arena texts;
};

static void spans_done(struct spans *spans)
{
    free(spans->slices);
    free(spans->nodes);
    krait_map_done(&spans->index);
    krait_arena_done(&spans->texts);
}

/* -- columns -- */

#define OF(member) offsetof(struct node, member)

static const struct krait_sheet_column columns[] = {
    { { "spans", 0, 0, 0 }, "spans", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(count) },
    { { "total", 0, 0, 0 }, "total_ns", KRAIT_SHEET_NS, 0, krait_sheet_number_at, OF(total_ns) },
    { { "self", 0, 0, 0 }, "self_ns", KRAIT_SHEET_NS, 0, krait_sheet_number_at, OF(self_ns) },
    { { "kind", KRAIT_COLUMN_LEFT, 0, 3 }, "kind", KRAIT_SHEET_NAME, 0, krait_sheet_name_at, OF(kind) },
    { { "depth", 0, 0, 0 }, "depth", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, krait_sheet_number_at, OF(depth) },
    { { "span", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 },
      "name",
      KRAIT_SHEET_NAME,
      0,
      krait_sheet_name_at,
      OF(text) },
};

#undef OF

/* -- the tree -- */

static int takes(void *ctx, uint32_t track)
{
    const struct spans *spans = ctx;
    return krait_report_is_spans(spans->report, track);
}

static int take_slices(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct spans *spans = ctx;
    const struct report *report = spans->report;
    for (uint32_t i = 0; i < batch->n; i++) {
        bool is_in;
        uint64_t ns =
            krait_ranges_overlap(&report->options->select.parts, batch->t_ns[i], batch->end_ns[i], &is_in);
        if (!is_in)
            continue;
        if (!KRAIT_GROW(spans->slices, spans->cap, spans->count + 1))
            return -ENOMEM;
        spans->slices[spans->count] = (struct slice){ .begin_ns = batch->t_ns[i],
                                                      .end_ns = batch->end_ns[i],
                                                      .ns = ns,
                                                      .name = batch->name[i],
                                                      .track = (uint32_t)(track - report->trace->tracks),
                                                      .order = spans->count };
        spans->count++;
    }
    return 0;
}

/* Outer ones before those within them. */
static int by_begin(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return x->order > y->order ? -1 : 1;
}

/* KRAIT_NO_ID: memory is out. */
static uint32_t child_of(struct spans *spans, uint32_t parent, const char *kind, uint32_t name)
{
    uint64_t key = krait_hash_u64((uint64_t)parent << 32 | name) ^ krait_hash_bytes(kind, strlen(kind));
    const uint64_t *known = krait_map_get(&spans->index, key);
    uint32_t index = spans->node_count;
    if (known)
        return (uint32_t)*known;
    if (!KRAIT_GROW(spans->nodes, spans->node_cap, index + 1) || krait_map_put(&spans->index, key, index))
        return KRAIT_NO_ID;
    struct node *nodes = spans->nodes;
    nodes[index] = (struct node){ .kind = kind,
                                  .name = krait_track_text(spans->report->trace, name),
                                  .depth = parent ? nodes[parent].depth + 1 : 0,
                                  .parent = parent,
                                  .first_child = KRAIT_NO_ID,
                                  .next_sibling = nodes[parent].first_child };
    nodes[parent].first_child = index;
    spans->node_count++;
    return index;
}

/* The spans around the one that is added, the outermost first. */
struct around {
    struct open {
        uint64_t end_ns;
        uint32_t node, track;
    } * items;
    uint32_t depth, cap;
};

static int add_slice(struct spans *spans, struct around *around, const struct slice *slice)
{
    const char *kind = krait_report_span_kind(&spans->report->trace->tracks[slice->track]);
    while (around->depth && (around->items[around->depth - 1].track != slice->track ||
                             around->items[around->depth - 1].end_ns < slice->end_ns ||
                             around->items[around->depth - 1].end_ns <= slice->begin_ns))
        around->depth--;
    uint32_t parent = around->depth ? around->items[around->depth - 1].node : 0;
    uint32_t node = child_of(spans, parent, kind, slice->name);
    if (node == KRAIT_NO_ID || !KRAIT_GROW(around->items, around->cap, around->depth + 1))
        return -ENOMEM;
    around->items[around->depth++] = (struct open){ slice->end_ns, node, slice->track };
    spans->nodes[node].count++;
    spans->nodes[node].total_ns += slice->ns;
    spans->nodes[node].self_ns += slice->ns;
    if (parent)
        spans->nodes[parent].self_ns -= KRAIT_MIN(slice->ns, spans->nodes[parent].self_ns);
    else
        spans->nodes[0].total_ns += slice->ns;
    return 0;
}

static int make_tree(struct spans *spans)
{
    struct around around = { 0 };
    if (!KRAIT_GROW(spans->nodes, spans->node_cap, 1))
        return -ENOMEM;
    spans->nodes[0] = (struct node){ .first_child = KRAIT_NO_ID, .next_sibling = KRAIT_NO_ID };
    spans->node_count = 1;
    if (spans->count)
        qsort(spans->slices, spans->count, sizeof(*spans->slices), by_begin);
    int rc = 0;
    for (uint32_t i = 0; i < spans->count && !rc; i++)
        rc = add_slice(spans, &around, &spans->slices[i]);
    free(around.items);
    return rc;
}

/* -- the rows -- */

/* The longest last: that one is popped first. */
static int by_total(const void *a, const void *b, void *ctx)
{
    const struct node *nodes = ctx, *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? -1 : 1;
    return strcmp(y->name, x->name);
}

/* Pushes a node's children that are shown. */
static void push_children(struct spans *spans, uint32_t node, uint32_t *stack, uint32_t *depth)
{
    double least = spans->report->min_share / 100 * (double)spans->nodes[0].total_ns;
    uint32_t *children = &stack[*depth], n = 0;
    for (uint32_t c = spans->nodes[node].first_child; c != KRAIT_NO_ID; c = spans->nodes[c].next_sibling) {
        if ((double)spans->nodes[c].total_ns >= least)
            children[n++] = c;
        else
            spans->hidden++;
    }
    qsort_r(children, n, sizeof(*children), by_total, spans->nodes);
    *depth += n;
}

static int fill(struct spans *spans, struct krait_sheet *sheet)
{
    KRAIT_AUTO_FREE uint32_t *stack = calloc(spans->node_count, sizeof(*stack));
    bool is_table = spans->report->format == REPORT_TABLE;
    uint32_t depth = 0;
    if (!stack)
        return -ENOMEM;
    push_children(spans, 0, stack, &depth);
    while (depth) {
        uint32_t index = stack[--depth];
        struct node *node = &spans->nodes[index];
        int indent = is_table ? 2 * (int)KRAIT_MIN(node->depth, (uint64_t)DEEPEST) : 0;
        node->text = krait_arena_fmt(&spans->texts, "%*s%s", indent, "", node->name);
        if (!node->text)
            return -ENOMEM;
        krait_sheet_add(sheet, node);
        push_children(spans, index, stack, &depth);
    }
    return sheet->failed ? -ENOMEM : 0;
}

int krait_report_span_tree(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    KRAIT_CLEANUP(spans_done) struct spans spans = { .report = report };
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns, .column_count = KRAIT_ARRAY_LEN(columns) };
    int rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_SLICES, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&report->options->select, trace);
    rc = krait_report_walk_tracks(report, report->range, takes, take_slices, &spans);
    rc = rc ? rc : make_tree(&spans);
    rc = rc ? rc : fill(&spans, &sheet);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "spans");
    if (!rc && spans.hidden)
        krait_report_note_hidden(report, spans.hidden);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
