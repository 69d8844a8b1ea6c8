/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --tree`: the call tree, drawn and as a list.
 */
#include "analysis/calltree.h"
#include "base/array.h"
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

/* The tree; `tops`: the groups of its threads, or NULL. */
static int new_tree(struct krait_calltree **tree, struct report *report, const char *const *tops,
                    struct krait_err *err)
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
        .tops = tops,
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

int krait_report_tree_new(struct krait_calltree **tree, struct report *report, struct krait_err *err)
{
    return new_tree(tree, report, NULL, err);
}

/* -- the threads of an interval, before the others -- */

/* What groups of threads are called, in their order. */
struct homes {
    struct krait_strtab labels;
    uint8_t *places; /* by label */
    uint32_t cap;
};

static void homes_done(struct homes *homes)
{
    krait_strtab_done(&homes->labels);
    free(homes->places);
}

static int add_home(struct homes *homes, const char *label, uint8_t home)
{
    uint32_t known = homes->labels.len, id = krait_strtab_add(&homes->labels, label, strlen(label));
    if (id == KRAIT_NO_ID || !KRAIT_GROW(homes->places, homes->cap, homes->labels.len))
        return -ENOMEM;
    homes->places[id] = id < known ? KRAIT_MIN(homes->places[id], home) : home;
    return 0;
}

/* One for each group of threads, or with --by thread or process for each of these in which the interval begins or ends. */
static int name_homes(struct homes *homes, const struct report *report, const char **tops)
{
    const struct krait_trace *trace = report->trace;
    const uint8_t *of_threads = report->options->select.homes;
    int rc = 0;
    for (unsigned home = 0; home < KRAIT_HOMES && !rc && report->by == KRAIT_BY_FUNCTION; home++) {
        KRAIT_AUTO_BUF text = { 0 };
        krait_report_home_label(&text, report, (enum krait_home)home);
        rc = text.failed ? -ENOMEM : add_home(homes, text.data, (uint8_t)home);
        for (uint32_t i = 0; i < trace->thread_count && !rc; i++)
            tops[i] = of_threads[i] == home ? homes->labels.texts[homes->labels.len - 1] : tops[i];
    }
    for (uint32_t i = 0; i < trace->thread_count && !rc && report->by != KRAIT_BY_FUNCTION; i++) {
        char thread[KRAIT_TREE_LABEL], process[KRAIT_TREE_LABEL];
        krait_calltree_thread_labels(trace, i, process, thread);
        rc = add_home(homes, process, of_threads[i]);
        rc = rc ? rc : add_home(homes, thread, of_threads[i]);
    }
    return rc;
}

/* Whether more than one of the root's groups has time. */
static bool has_groups(const struct krait_calltree *tree)
{
    uint32_t n = 0;
    for (uint32_t c = tree->nodes[0].first_child; c != KRAIT_NO_ID; c = tree->nodes[c].next_sibling)
        n += tree->nodes[c].total_ns != 0;
    return n > 1;
}

/* Functions are below the groups of threads, if there are several. */
static int new_grouped(struct krait_calltree **tree, struct report *report, struct homes *homes,
                       struct krait_err *err)
{
    bool merged = report->by == KRAIT_BY_FUNCTION;
    KRAIT_AUTO_FREE const char **tops = calloc(report->trace->thread_count + 1ul, sizeof(*tops));
    int rc = tops ? name_homes(homes, report, tops) : -ENOMEM;
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    rc = new_tree(tree, report, merged ? tops : NULL, err);
    if (rc || !merged)
        return rc;
    if (has_groups(*tree)) {
        if (report->format == REPORT_TABLE)
            krait_report_note_homes(report, false);
        return 0;
    }
    krait_calltree_free(*tree);
    return new_tree(tree, report, NULL, err);
}

/* The place of a node among its siblings, before their times. */
static uint8_t place_of(const struct homes *homes, const struct krait_calltree *tree, uint32_t node)
{
    uint32_t label = tree->nodes[node].label, id = KRAIT_NO_ID;
    if (label != KRAIT_NO_ID && homes->labels.len)
        id = krait_strtab_find(&homes->labels, tree->labels.texts[label], tree->labels.lens[label]);
    return id == KRAIT_NO_ID ? 0 : homes->places[id];
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
    const struct homes *homes;
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

struct siblings {
    const struct krait_calltree *tree;
    const struct homes *homes;
};

static int by_total(const void *a, const void *b, void *ctx)
{
    const struct siblings *of = ctx;
    const struct krait_tree_node *nodes = of->tree->nodes;
    uint8_t p = place_of(of->homes, of->tree, *(const uint32_t *)a),
            q = place_of(of->homes, of->tree, *(const uint32_t *)b);
    if (p != q)
        return p < q ? -1 : 1;
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
    struct siblings of = { tree, lines->homes };
    qsort_r(children, n, sizeof(*children), by_total, &of);
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

/* What columns need besides the line. */
struct tree {
    const struct report *report;
    const struct krait_calltree *tree;
    const struct lines *lines;
    uint32_t *ids; /* by node: the number of its line */
    struct guides guides;
    struct krait_func_row function; /* of the cell that was got last */
};

static const struct krait_tree_node *node_of(const struct tree *tree, const void *row)
{
    return &tree->tree->nodes[((const struct line *)row)->node];
}

/* NULL: a group. */
static const struct krait_func *func_of(const struct tree *tree, const void *row)
{
    const struct krait_tree_node *node = node_of(tree, row);
    return node->func == KRAIT_NO_ID ? NULL : &tree->report->trace->funcs[node->func];
}

static const char *label_of(const struct tree *tree, const void *row)
{
    return tree->tree->labels.texts[node_of(tree, row)->label];
}

static void node_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    struct tree *tree = at->sheet->of;
    const struct krait_func *func = func_of(tree, at->row);
    KRAIT_AUTO_BUF text = { 0 };
    size_t bright = 0;
    enum krait_style style = KRAIT_STYLE_NONE;
    add_guides(&text, at->row, &tree->guides);
    size_t kept = text.len;
    if (!func) {
        krait_fmt_safe(&text, label_of(tree, at->row));
        style = KRAIT_STYLE_BOLD;
    } else {
        krait_func_row_marked(&text, func, &bright);
        style = func->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C;
    }
    krait_table_cell(table, text.data ? text.data : "", style, bright);
    krait_table_keep(table, kept);
}

/* A group has a name alone. */
static void node_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct tree *tree = at->sheet->of;
    if (func_of(tree, at->row))
        krait_sheet_function_json(out, at);
    else
        krait_json_key_text(out, at->column->key, label_of(tree, at->row));
}

static void raised_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    if (at->cell.number)
        krait_cell_count(table, at->cell.number);
    else
        krait_table_cell(table, "-", KRAIT_STYLE_DIM, 0);
}

static void add_number(struct krait_buf *out, const struct krait_sheet_cell *cell,
                       void (*add_text)(struct krait_buf *out, const char *text))
{
    krait_json_u64(out, cell->number);
}

static const struct krait_sheet_kind kind_node = { .put = node_cell,
                                                   .heads = krait_sheet_function_heads,
                                                   .csv = krait_sheet_function_csv,
                                                   .json = node_json },
                                     kind_raised = { .put = raised_cell, .value = add_number };

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

GETTER(number)
{
    return krait_sheet_number_at(NULL, node_of(of, row), arg);
}

GETTER(id)
{
    const struct tree *tree = of;
    return krait_sheet_number(tree->ids[((const struct line *)row)->node]);
}

GETTER(parent)
{
    const struct tree *tree = of;
    uint32_t parent = node_of(tree, row)->parent;
    return krait_sheet_number(parent ? tree->ids[parent] : KRAIT_SHEET_NONE);
}

GETTER(depth)
{
    return krait_sheet_number(node_of(of, row)->depth - 1);
}

GETTER(function)
{
    struct tree *tree = of;
    const struct krait_func *func = func_of(tree, row);
    tree->function = func ? KRAIT_FUNC_ROW(func)
                          : (struct krait_func_row){ .name = label_of(tree, row), "", "", .kind = "group" };
    return krait_sheet_object(&tree->function);
}

GETTER(holds)
{
    const struct krait_func *func = func_of(of, row);
    return krait_sheet_number(func && func->holds_dropped);
}

static const struct report_raised *raised_of(const struct tree *tree, const void *row)
{
    return &tree->lines->raised[((const struct line *)row)->node];
}

GETTER(raised)
{
    return krait_sheet_number(raised_of(of, row)->total);
}

GETTER(types)
{
    return krait_sheet_object(raised_of(of, row));
}

static const uint64_t *wall_of(const struct tree *tree, const void *row)
{
    return tree->tree->wall_ns[((const struct line *)row)->node];
}

GETTER(state)
{
    return krait_report_part(wall_of(of, row), arg, node_of(of, row)->total_ns);
}

GETTER(wall)
{
    return krait_sheet_object(wall_of(of, row));
}

#undef GETTER

enum { ALWAYS = 0, OF_EXCEPTIONS, OF_WALL, NEVER }; /* when a column is there */
enum { LAST = KRAIT_WALL_COUNT };        /* left out of a narrow table before any state is: LAST + 1 and on */
enum { NAME_MIN = 40, BESIDE_MIN = 30 }; /* columns of a name, and beside what threads did */
enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

#define PLACE KRAIT_SHEET_PLACE
#define NUMBER(title, key, kind, place, drop, beside, of_calls, member)                 \
    {                                                                                   \
        {                                                                               \
            { title, 0, 0, drop }, key,        kind,                                    \
            PLACE(place),          get_number, offsetof(struct krait_tree_node, member) \
        },                                                                              \
            beside, ALWAYS, ALWAYS, of_calls                                            \
    }
#define DATA(key, kind, flags, get, given)                                      \
    {                                                                           \
        { { NULL, 0, 0, 0 }, key, kind, flags, get, 0 }, 0, NEVER, given, false \
    }

static const struct report_column columns[] = {
    NUMBER("total", "total_ns", KRAIT_SHEET_NS, 6, 0, 0, false, total_ns),
    NUMBER("total%", NULL, KRAIT_SHEET_PERCENT, 0, 0, LAST + 1, false, total_ns),
    KRAIT_WALL_STATES(REPORT_STATE) NUMBER("self", "self_ns", KRAIT_SHEET_NS, 5, 1, LAST + 3, false, self_ns),
    NUMBER("calls", "calls", KRAIT_SHEET_COUNT, 4, 0, LAST + 2, true, calls),
    { { { "raised", 0, 0, 0 }, "raised", &kind_raised, PLACE(8), get_raised, 0 },
      0,
      OF_EXCEPTIONS,
      OF_EXCEPTIONS,
      true },
    { { { "function", SHORTEN, NAME_MIN, 0 }, "name", &kind_node, PLACE(3), get_function, 0 },
      0,
      ALWAYS,
      ALWAYS,
      false },
    { { { "exceptions", SHORTEN, 14, 0 }, "exceptions", &krait_report_kind_raised, PLACE(9), get_types, 0 },
      0,
      OF_EXCEPTIONS,
      OF_EXCEPTIONS,
      false },
    DATA("id", KRAIT_SHEET_NUMBER, KRAIT_SHEET_NO_CSV | PLACE(0), get_id, ALWAYS),
    DATA("parent", KRAIT_SHEET_NUMBER, KRAIT_SHEET_NO_CSV | PLACE(1), get_parent, ALWAYS),
    DATA("depth", KRAIT_SHEET_NUMBER, PLACE(2), get_depth, ALWAYS),
    DATA("wall_total_ns", &krait_report_kind_wall, PLACE(10), get_wall, OF_WALL),
    { KRAIT_SHEET_HOLDS(7, get_holds), 0, NEVER, ALWAYS, false },
};
#undef DATA
#undef NUMBER
#undef PLACE

/* --- the outputs --- */

static void choose_columns(const struct tree *tree, struct report_columns *chosen)
{
    const struct krait_calltree *of = tree->tree;
    unsigned present = 1U << ALWAYS | (unsigned)(tree->lines->raised != NULL) << OF_EXCEPTIONS |
                       (unsigned)of->split << OF_WALL;
    krait_report_columns_choose(chosen, columns, KRAIT_ARRAY_LEN(columns), present, tree->report,
                                of->split ? of->wall_ns[0] : NULL);
    for (uint32_t i = 0; i < chosen->count; i++) {
        if (chosen->items[i].kind == &kind_node && of->split)
            chosen->items[i].column.min = BESIDE_MIN;
    }
}

/* A flat list, parents before children: nested objects as deep as a program's recursion break readers. */
static int put_tree_json(struct report *report, const struct krait_sheet *sheet,
                         const struct krait_calltree *tree)
{
    krait_report_json_open(report, tree->nodes[0].total_ns);
    if (tree->split)
        krait_report_json_gil(report, tree->wall_ns[0]);
    krait_json_key(&report->out, "tree");
    int rc = krait_sheet_json(sheet, 0, &report->out);
    krait_report_json_close(report);
    return rc;
}

static int put_lines(struct report *report, const struct krait_calltree *of, const struct lines *lines,
                     uint32_t shown)
{
    KRAIT_AUTO_FREE bool *last_at = calloc((size_t)lines->deepest + 1, sizeof(*last_at));
    KRAIT_AUTO_FREE uint32_t *ids = calloc((size_t)of->count + 1, sizeof(*ids));
    if (!last_at || !ids)
        return -ENOMEM;
    struct tree tree = { .report = report, .tree = of, .lines = lines, .ids = ids };
    tree.guides =
        (struct guides){ .last_at = last_at, .room = guides_room(&report->look), .utf8 = report->look.utf8 };
    struct report_columns chosen;
    choose_columns(&tree, &chosen);
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = chosen.items,
                                 .of = &tree,
                                 .column_count = chosen.count,
                                 .whole = of->nodes[0].total_ns,
                                 .lines = true };
    for (uint32_t i = 0; i < shown; i++) {
        ids[lines->items[i].node] = i;
        krait_sheet_keep(&sheet, &lines->items[i]);
    }
    if (report->format == REPORT_CSV)
        return krait_sheet_csv(&sheet, 0, &report->out);
    if (report->format == REPORT_JSON)
        return put_tree_json(report, &sheet, of);
    if (of->split)
        krait_report_wall_heading(report, of->wall_ns[0]);
    return krait_report_put_table(report, &sheet, 0, "total time", of->split ? of->wall_ns[0] : NULL);
}

static int put_tree(struct report *report, const struct krait_calltree *tree, struct lines *lines)
{
    uint64_t least = (uint64_t)((double)time_of_share(report, tree) * report->min_share / 100);
    int rc = report->exception ? krait_report_raised_tree(&lines->raised, report, tree) : 0;
    KRAIT_AUTO_FREE bool *kept = rc ? NULL : mark_kept(tree, lines->raised);
    rc = kept ? order_lines(lines, tree, kept, least) : -ENOMEM;
    if (rc)
        return rc;
    uint32_t shown = report->limit ? KRAIT_MIN(report->limit, lines->count) : lines->count;
    rc = put_lines(report, tree, lines, shown);
    krait_report_note_limit(report, lines->count, "line");
    if (!lines->count && !lines->hidden)
        krait_report_note_nothing(report);
    if (lines->hidden)
        krait_report_note_hidden(report, lines->hidden);
    return rc;
}

int krait_report_tree(struct report *report, struct krait_err *err)
{
    struct krait_calltree *tree;
    KRAIT_CLEANUP(homes_done) struct homes homes = { .cap = 0 };
    int rc = krait_report_has_homes(report) ? new_grouped(&tree, report, &homes, err)
                                            : new_tree(&tree, report, NULL, err);
    if (rc)
        return rc;
    struct lines lines = { .homes = &homes };
    rc = put_tree(report, tree, &lines);
    free(lines.items);
    free(lines.raised);
    krait_calltree_free(tree);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
