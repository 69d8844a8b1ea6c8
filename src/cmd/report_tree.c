/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --tree`: the call tree, drawn and as a list.
 */
#include "analysis/calltree.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

#include <string.h>

/* By func id: those that the filter means. */
static bool *mark_roots(const struct report *report)
{
    bool *roots = calloc((size_t)report->trace->func_count + 1, sizeof(*roots));
    for (uint32_t i = 0; roots && i < report->trace->func_count; i++) {
        const struct krait_func *f = &report->trace->funcs[i];
        roots[i] = krait_match_func(report->filter, f->module, f->name, f->file);
    }
    return roots;
}

int krait_report_tree_new(struct krait_calltree **tree, struct report *report, struct krait_err *err)
{
    KRAIT_AUTO_FREE bool *roots = report->filter ? mark_roots(report) : NULL;
    if (report->filter && !roots)
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_calltree_options options = {
        .range = report->range,
        .ranges = &report->options->select.parts,
        .group = report->by == KRAIT_BY_THREAD    ? KRAIT_TREE_BY_THREAD
                 : report->by == KRAIT_BY_PROCESS ? KRAIT_TREE_BY_PROCESS
                                                  : KRAIT_TREE_MERGED,
        .fold_imports = report->options->fold_imports,
        .roots = roots,
        .raised = report->exception,
        .take_thread = krait_select_thread,
        .ctx = (void *)&report->options->select,
        .corrected = report->corrected,
        .wall = report->wall,
    };
    int rc = krait_calltree_new(tree, report->trace, &options, err);
    if (!rc)
        krait_report_keep_damage(report, (*tree)->damage);
    return rc;
}

/* --- the tree --- */

/* The nodes that are shown, in their order, and how each hangs on the one above. */
struct line {
    uint32_t node;
    uint32_t indent; /* branches above it: an only child stands below its parent, not beside */
    bool last;       /* of its parent's children that are shown */
    bool only;       /* its parent has no other that is shown */
};

struct lines {
    struct line *items;
    struct report_raised *raised; /* by node; NULL: exceptions were not asked for */
    uint32_t count;
    uint32_t hidden;  /* branches that are too small */
    uint32_t deepest; /* indent */
};

/* Groups without a function below them are not shown, nor what no such exception left, or left anything below. */
static bool *mark_kept(const struct krait_calltree *tree, const struct report_raised *raised)
{
    bool *kept = calloc((size_t)tree->count + 1, sizeof(*kept));
    for (uint32_t i = tree->count; kept && i-- > 1;) {
        kept[i] |= raised ? raised[i].total > 0 : tree->nodes[i].func != KRAIT_NO_ID;
        kept[tree->nodes[i].parent] |= kept[i];
    }
    return kept;
}

static int by_total(const void *a, const void *b, void *ctx)
{
    const struct krait_tree_node *nodes = ctx;
    const struct krait_tree_node *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* A function that nothing called, or that --filter asked for. */
static bool is_outermost(const struct krait_calltree *tree, uint32_t node)
{
    return tree->nodes[node].func != KRAIT_NO_ID && tree->nodes[tree->nodes[node].parent].func == KRAIT_NO_ID;
}

/* The time of which branches below --min-share are hidden: with --filter, of the functions that it asked for, however
 * short they are. */
static uint64_t time_of_share(const struct report *report, const struct krait_calltree *tree)
{
    uint64_t ns = 0;
    if (!report->filter)
        return tree->nodes[0].total_ns;
    for (uint32_t i = 1; i < tree->count; i++)
        ns += is_outermost(tree, i) ? tree->nodes[i].total_ns : 0;
    return ns;
}

/* Pushes a node's children that are shown, so that the greatest is popped first. */
static void push_children(struct lines *lines, struct line *stack, uint32_t *depth, uint32_t *children,
                          const struct krait_calltree *tree, struct line parent, const bool *kept,
                          uint64_t least)
{
    uint32_t n = 0;
    for (uint32_t c = tree->nodes[parent.node].first_child; c != KRAIT_NO_ID;
         c = tree->nodes[c].next_sibling) {
        bool small = tree->nodes[c].total_ns < least;
        lines->hidden += kept[c] && small;
        if (kept[c] && !small)
            children[n++] = c;
    }
    qsort_r(children, n, sizeof(*children), by_total, tree->nodes);
    for (uint32_t i = n; i-- > 0;)
        stack[(*depth)++] = (struct line){
            .node = children[i],
            .indent = parent.indent + (n > 1 || parent.node == 0),
            .last = i + 1 == n,
            .only = n == 1 && parent.node != 0,
        };
}

static int order_lines(struct lines *lines, const struct krait_calltree *tree, const bool *kept,
                       uint64_t least)
{
    KRAIT_AUTO_FREE struct line *stack = calloc((size_t)tree->count + 1, sizeof(*stack));
    KRAIT_AUTO_FREE uint32_t *children = calloc((size_t)tree->count + 1, sizeof(*children));
    lines->items = calloc((size_t)tree->count + 1, sizeof(*lines->items));
    if (!stack || !children || !lines->items)
        return -ENOMEM;
    uint32_t depth = 0;
    push_children(lines, stack, &depth, children, tree, (struct line){ .last = true }, kept, least);
    while (depth) {
        struct line line = stack[--depth];
        lines->items[lines->count++] = line;
        lines->deepest = KRAIT_MAX(lines->deepest, line.indent);
        push_children(lines, stack, &depth, children, tree, line, kept, least);
    }
    return 0;
}

/* The lines before the names. Indents count from 1, that of the outermost functions, which have none.
 *
 *     main                          indent 1
 *     |- run                        2
 *     |  > step                     2, the only one that run calls
 *     |  |- read                    3
 *
 * Where the tree is deeper than fits, the drawing is moved to the left as a whole, and each of its lines says
 * in brackets by how many indents. It is moved back when a line would begin left of it. */
struct guides {
    bool *last_at;  /* by indent: the line that was drawn last there is the last of its parent's */
    uint32_t shift; /* indents that lie left of the drawing */
    uint32_t room;  /* indents that fit */
    bool utf8;
};

static uint32_t guides_room(const struct krait_table_look *look)
{
    enum { STEP = 3, OTHERS = 62, LEAST = 4, MOST = 16 }; /* columns; numbers and the least of a name */
    uint32_t room = look->width > OTHERS ? (look->width - OTHERS) / STEP : 0;
    return look->width ? KRAIT_MIN(KRAIT_MAX(room, (uint32_t)LEAST), (uint32_t)MOST) : MOST;
}

static void move_guides(struct guides *guides, uint32_t indent)
{
    if (indent > guides->shift + guides->room)
        guides->shift = indent - guides->room / 2;
    else if (guides->shift && indent <= guides->shift + 1)
        guides->shift = indent <= guides->room ? 0 : indent - guides->room / 2;
}

static void add_guides(struct krait_buf *text, const struct line *line, struct guides *guides)
{
    bool utf8 = guides->utf8;
    move_guides(guides, line->indent);
    if (!line->only)
        guides->last_at[line->indent] = line->last;
    if (guides->shift)
        krait_buf_fmt(text, "[%u] ", guides->shift);
    for (uint32_t i = guides->shift + 2; i < line->indent + line->only; i++)
        krait_buf_str(text, guides->last_at[i] ? "   " : utf8 ? "\xe2\x94\x82  " : "|  ");
    if (line->only)
        krait_buf_str(text, "> ");
    else if (line->indent > 1)
        krait_buf_str(text, utf8 ? (line->last ? "\xe2\x94\x94\xe2\x94\x80 " : "\xe2\x94\x9c\xe2\x94\x80 ")
                                 : (line->last ? "`- " : "|- "));
}

/* --- columns --- */

/* What columns need besides the node. */
struct tree_line {
    const struct krait_calltree *tree;
    const struct line *line;
    const struct report_raised *raised; /* of the node; NULL: exceptions were not asked for */
    struct guides *guides;
};

static void node_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct tree_line *of = at->of;
    const struct krait_tree_node *node = at->row;
    KRAIT_AUTO_BUF text = { 0 };
    size_t bright = 0;
    enum krait_style style = KRAIT_STYLE_NONE;
    add_guides(&text, of->line, of->guides);
    size_t kept = text.len;
    if (node->func == KRAIT_NO_ID) {
        krait_fmt_safe(&text, of->tree->labels.texts[node->label]);
        style = KRAIT_STYLE_BOLD;
    } else {
        const struct krait_func *func = &at->report->trace->funcs[node->func];
        krait_func_row_marked(&text, func, &bright);
        style = func->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C;
    }
    krait_table_cell(at->table, text.data ? text.data : "", style, bright);
    krait_table_keep(at->table, kept);
}

static void raised_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct tree_line *of = at->of;
    if (of->raised->total)
        krait_cell_count(at->table, of->raised->total);
    else
        krait_table_cell(at->table, "-", KRAIT_STYLE_DIM, 0);
}

static void types_cell(const struct report_spot *at, const struct report_column *column)
{
    const struct tree_line *of = at->of;
    krait_report_raised_cell(at->table, of->raised->items, of->raised->count);
}

enum { ALWAYS = 0, OF_EXCEPTIONS };      /* when a column is in the table */
enum { LAST = KRAIT_WALL_COUNT };        /* left out of a narrow table before any state is: LAST + 1 and on */
enum { NAME_MIN = 40, BESIDE_MIN = 30 }; /* columns of a name, and beside what threads did */
enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

static const struct report_column columns[] = {
#define OF(member) ALWAYS, offsetof(struct krait_tree_node, member)
#define X(name, text, title, words) \
    { { title, 0, 0, 0 }, 0, NULL, 0, krait_report_cell_wall, ALWAYS, KRAIT_WALL_##name },
    { { "total", 0, 0, 0 }, 0, "total_ns", 2, krait_report_cell_ns, OF(total_ns) },
    { { "total%", 0, 0, 0 }, LAST + 1, NULL, 0, krait_report_cell_share, OF(total_ns) },
    KRAIT_WALL_STATES(X){ { "self", 0, 0, 1 }, LAST + 3, "self_ns", 1, krait_report_cell_ns, OF(self_ns) },
    { { "calls", 0, 0, 0 }, LAST + 2, "calls", 0, krait_report_cell_count, OF(calls) },
    { { "raised", 0, 0, 0 }, 0, NULL, 0, raised_cell, OF_EXCEPTIONS, 0 },
    { { "function", SHORTEN, NAME_MIN, 0 }, 0, NULL, 0, node_cell, ALWAYS, 0 },
    { { "exceptions", SHORTEN, 14, 0 }, 0, NULL, 0, types_cell, OF_EXCEPTIONS, 0 },
#undef X
#undef OF
};

enum { TREE_COLUMNS = KRAIT_ARRAY_LEN(columns) };

/* --- the outputs --- */

/* Returns how many columns there are. */
static uint32_t choose_columns(const struct report_column **chosen, struct krait_column *mine,
                               const struct report *report, const struct krait_calltree *tree)
{
    const uint64_t *wall_ns = tree->split ? tree->wall_ns[0] : NULL;
    unsigned present = 1U << ALWAYS | (unsigned)(report->exception != NULL) << OF_EXCEPTIONS;
    uint32_t count = krait_report_columns_choose(chosen, columns, TREE_COLUMNS, present, report, wall_ns);
    for (uint32_t i = 0; i < count; i++) {
        mine[i] = krait_report_column_fit(chosen[i], wall_ns);
        if (chosen[i]->add == node_cell && tree->split)
            mine[i].min = BESIDE_MIN;
    }
    return count;
}

static int put_tree_table(struct report *report, const struct krait_calltree *tree, const struct lines *lines,
                          uint32_t shown)
{
    const struct report_column *chosen[TREE_COLUMNS];
    struct krait_column mine[TREE_COLUMNS];
    uint32_t count = choose_columns(chosen, mine, report, tree);
    KRAIT_AUTO_FREE bool *last_at = calloc((size_t)lines->deepest + 1, sizeof(*last_at));
    struct guides guides = { .last_at = last_at,
                             .room = guides_room(&report->look),
                             .utf8 = report->look.utf8 };
    struct krait_table *table;
    if (!last_at || krait_table_new(&table, mine, count))
        return -ENOMEM;
    if (tree->split)
        krait_report_wall_heading(report, tree->wall_ns[0]);
    for (uint32_t i = 0; i < shown; i++) {
        uint32_t node = lines->items[i].node;
        const struct tree_line line = { .tree = tree,
                                        .line = &lines->items[i],
                                        .raised = lines->raised ? &lines->raised[node] : NULL,
                                        .guides = &guides };
        const struct report_spot at = { .report = report,
                                        .table = table,
                                        .row = &tree->nodes[node],
                                        .whole = tree->nodes[0].total_ns,
                                        .wall_ns = tree->split ? tree->wall_ns[node] : NULL,
                                        .split_ns = tree->nodes[node].total_ns,
                                        .of = &line };
        krait_report_columns_cells(&at, chosen, count);
    }
    int rc = krait_table_print(table, &report->look, &report->out);
    if (tree->split)
        krait_report_wall_note(report, table, "total time");
    krait_table_free(table);
    return rc;
}

/* A flat list, parents before children: nested objects as deep as a program's recursion break readers. */
static int put_tree_json(struct report *report, const struct krait_calltree *tree, const struct lines *lines,
                         uint32_t shown)
{
    KRAIT_AUTO_FREE uint32_t *ids = calloc((size_t)tree->count + 1, sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    struct krait_buf *out = &report->out;
    krait_report_json_open(report, tree->nodes[0].total_ns);
    krait_json_key_open(out, "tree", '[');
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_tree_node *node = &tree->nodes[lines->items[i].node];
        const struct krait_func *func = node->func == KRAIT_NO_ID ? NULL : &report->trace->funcs[node->func];
        ids[lines->items[i].node] = i;
        krait_json_item(out, "\n{");
        krait_json_key_u64(out, "id", i);
        krait_json_key(out, "parent");
        if (node->parent)
            krait_json_u64(out, ids[node->parent]);
        else
            krait_buf_str(out, "null");
        krait_json_key_u64(out, "depth", node->depth - 1);
        if (func)
            krait_func_row_json(out, KRAIT_FUNC_ROW(func));
        else {
            krait_json_key_text(out, "name", tree->labels.texts[node->label]);
        }
        krait_report_columns_json(out, columns, TREE_COLUMNS, report, node);
        if (lines->raised) {
            const struct report_raised *raised = &lines->raised[lines->items[i].node];
            krait_json_key_u64(out, "raised", raised->total);
            krait_report_raised_json(out, raised->items, raised->count);
        }
        krait_func_row_json_holds(out, func && func->holds_dropped);
        if (tree->split)
            krait_report_json_wall(out, "wall_total_ns", tree->wall_ns[lines->items[i].node]);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_report_json_close(report);
    return 0;
}

static void put_tree_csv(struct report *report, const struct krait_calltree *tree, const struct lines *lines,
                         uint32_t shown)
{
    struct krait_buf *out = &report->out;
    krait_buf_str(out, "depth,");
    krait_func_row_csv(out, NULL);
    krait_report_columns_csv(out, columns, TREE_COLUMNS, report, NULL);
    krait_func_row_csv_holds(out, NULL);
    krait_buf_str(out, lines->raised ? ",raised,exceptions" : "");
    if (tree->split)
        krait_report_csv_wall(out, "total", NULL);
    krait_buf_char(out, '\n');
    for (uint32_t i = 0; i < shown; i++) {
        const struct krait_tree_node *node = &tree->nodes[lines->items[i].node];
        bool is_group = node->func == KRAIT_NO_ID;
        struct krait_func_row row =
            is_group
                ? (struct krait_func_row){ .name = tree->labels.texts[node->label], "", "", .kind = "group" }
                : KRAIT_FUNC_ROW(&report->trace->funcs[node->func]);
        krait_buf_fmt(out, "%u,", node->depth - 1);
        krait_func_row_csv(out, &row);
        krait_report_columns_csv(out, columns, TREE_COLUMNS, report, node);
        krait_func_row_csv_holds(out, &row);
        if (lines->raised) {
            const struct report_raised *raised = &lines->raised[lines->items[i].node];
            krait_buf_fmt(out, ",%llu", (unsigned long long)raised->total);
            krait_report_raised_csv(out, raised->items, raised->count);
        }
        if (tree->split)
            krait_report_csv_wall(out, "total", tree->wall_ns[lines->items[i].node]);
        krait_buf_char(out, '\n');
    }
}

static int put_tree(struct report *report, const struct krait_calltree *tree, struct lines *lines)
{
    char count[KRAIT_FMT_SIZE];
    uint64_t least = (uint64_t)((double)time_of_share(report, tree) * report->min_share / 100);
    int rc = report->exception ? krait_report_raised_tree(&lines->raised, report, tree) : 0;
    KRAIT_AUTO_FREE bool *kept = rc ? NULL : mark_kept(tree, lines->raised);
    rc = kept ? order_lines(lines, tree, kept, least) : -ENOMEM;
    if (rc)
        return rc;
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, lines->count) : lines->count;
    if (report->format == REPORT_TABLE)
        rc = put_tree_table(report, tree, lines, shown);
    else if (report->format == REPORT_JSON)
        rc = put_tree_json(report, tree, lines, shown);
    else
        put_tree_csv(report, tree, lines, shown);
    if (shown < lines->count)
        krait_buf_fmt(&report->notes, "%s more; --limit 0 shows all\n",
                      krait_fmt_counted(count, lines->count - shown, "line"));
    if (!lines->count && !lines->hidden)
        krait_report_note_nothing(report);
    if (lines->hidden)
        krait_report_note_hidden(report, lines->hidden);
    return rc;
}

int krait_report_tree(struct report *report, struct krait_err *err)
{
    struct krait_calltree *tree;
    int rc = krait_report_tree_new(&tree, report, err);
    if (rc)
        return rc;
    struct lines lines = { 0 };
    rc = put_tree(report, tree, &lines);
    free(lines.items);
    free(lines.raised);
    krait_calltree_free(tree);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
