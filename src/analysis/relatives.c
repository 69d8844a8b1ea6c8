/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/relatives.h"

/* Counts by the other function of the pair; the last place is that of no function. */
struct pass {
    const struct krait_calltree *tree;
    const bool *wanted;
    enum krait_relatives_kind kind;
    struct krait_relative *sums; /* by func id */
    uint32_t *live;              /* by func id: pairs open on the way down */
    uint32_t none;
    struct krait_relative of;
    uint32_t of_live;
    struct krait_wall_split *splits; /* by func id, of no function, of what is wanted; NULL: not split */
};

static bool is_wanted(const struct pass *pass, uint32_t node)
{
    uint32_t func = pass->tree->nodes[node].func;
    return func != KRAIT_NO_ID && pass->wanted[func];
}

/* The other function of the pair that the node makes with its parent, or false where it is no pair of ours. */
static bool pair_of(const struct pass *pass, uint32_t node, uint32_t *other)
{
    uint32_t parent = pass->tree->nodes[node].parent;
    if (parent == KRAIT_NO_ID || !is_wanted(pass, pass->kind == KRAIT_CALLERS ? node : parent))
        return false;
    uint32_t func = pass->tree->nodes[pass->kind == KRAIT_CALLERS ? parent : node].func;
    *other = func == KRAIT_NO_ID ? pass->none : func;
    return true;
}

/* The tree has totals: what the node did itself is what its children did not. */
static void add_split(struct krait_wall_split *split, const struct krait_calltree *tree, uint32_t node,
                      bool outermost)
{
    for (unsigned i = 0; i < KRAIT_WALL_PARTS; i++) {
        split->self_ns[i] += tree->wall_ns[node][i];
        split->total_ns[i] += outermost ? tree->wall_ns[node][i] : 0;
    }
    for (uint32_t c = tree->nodes[node].first_child; c != KRAIT_NO_ID; c = tree->nodes[c].next_sibling) {
        for (unsigned i = 0; i < KRAIT_WALL_PARTS; i++)
            split->self_ns[i] -= tree->wall_ns[c][i];
    }
}

/* `split`: its place in the pass's. */
static void add(struct pass *pass, struct krait_relative *sum, uint32_t split, uint32_t node, bool outermost)
{
    const struct krait_tree_node *n = &pass->tree->nodes[node];
    sum->calls += n->calls;
    sum->self_ns += n->self_ns;
    sum->total_ns += outermost ? n->total_ns : 0;
    if (!pass->splits)
        return;
    add_split(&pass->splits[split], pass->tree, node, outermost);
    sum->wall = &pass->splits[split];
}

static void enter(struct pass *pass, uint32_t node)
{
    uint32_t other;
    if (pair_of(pass, node, &other)) {
        add(pass, &pass->sums[other], other, node, pass->live[other]++ == 0);
        pass->sums[other].func = other == pass->none ? KRAIT_NO_ID : other;
    }
    if (is_wanted(pass, node))
        add(pass, &pass->of, pass->none + 1, node, pass->of_live++ == 0);
}

static void leave(struct pass *pass, uint32_t node)
{
    uint32_t other;
    if (pair_of(pass, node, &other))
        pass->live[other]--;
    pass->of_live -= is_wanted(pass, node);
}

/* All nodes, depth first; the tree may be deeper than our own stack. */
static void traverse(struct pass *pass)
{
    const struct krait_tree_node *nodes = pass->tree->nodes;
    uint32_t at = 0;
    while (at != KRAIT_NO_ID) {
        enter(pass, at);
        if (nodes[at].first_child != KRAIT_NO_ID) {
            at = nodes[at].first_child;
            continue;
        }
        while (at != KRAIT_NO_ID && nodes[at].next_sibling == KRAIT_NO_ID) {
            leave(pass, at);
            at = nodes[at].parent;
        }
        if (at != KRAIT_NO_ID) {
            leave(pass, at);
            at = nodes[at].next_sibling;
        }
    }
}

static int by_total(const void *a, const void *b)
{
    const struct krait_relative *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return (x->func > y->func) - (x->func < y->func);
}

static int take_rows(struct krait_relatives *relatives, const struct pass *pass, uint32_t funcs)
{
    relatives->rows = calloc((size_t)funcs + 1, sizeof(*relatives->rows));
    if (!relatives->rows)
        return -ENOMEM;
    for (uint32_t i = 0; i <= funcs; i++) {
        if (pass->sums[i].calls || pass->sums[i].total_ns || pass->sums[i].self_ns)
            relatives->rows[relatives->count++] = pass->sums[i];
    }
    qsort(relatives->rows, relatives->count, sizeof(*relatives->rows), by_total);
    return 0;
}

/* How many functions are meant and occur, the first of them, and whether one holds dropped ones. */
static int count_matched(struct krait_relatives *relatives, const struct pass *pass,
                         const struct krait_trace *trace)
{
    uint32_t funcs = trace->func_count;
    KRAIT_AUTO_FREE bool *seen = calloc((size_t)funcs + 1, sizeof(*seen));
    if (!seen)
        return -ENOMEM;
    relatives->of = pass->of;
    relatives->of.func = KRAIT_NO_ID;
    for (uint32_t i = 0; i < pass->tree->count; i++) {
        uint32_t func = pass->tree->nodes[i].func;
        if (!is_wanted(pass, i) || seen[func])
            continue;
        seen[func] = true;
        relatives->matched++;
        relatives->holds_dropped |= trace->funcs[func].holds_dropped;
        relatives->of.func = KRAIT_MIN(relatives->of.func, func);
    }
    return 0;
}

int krait_relatives_new(struct krait_relatives **out, const struct krait_calltree *tree,
                        const struct krait_trace *trace, const bool *wanted, enum krait_relatives_kind kind)
{
    uint32_t funcs = trace->func_count;
    KRAIT_AUTO_FREE struct krait_relative *sums = calloc((size_t)funcs + 1, sizeof(*sums));
    KRAIT_AUTO_FREE uint32_t *live = calloc((size_t)funcs + 1, sizeof(*live));
    struct krait_relatives *relatives = calloc(1, sizeof(*relatives));
    struct pass pass = {
        .tree = tree, .wanted = wanted, .kind = kind, .sums = sums, .live = live, .none = funcs
    };
    if (relatives && tree->split)
        pass.splits = relatives->splits = calloc((size_t)funcs + 2, sizeof(*relatives->splits));
    pass.of.wall = pass.splits ? &pass.splits[funcs + 1] : NULL;
    if (!sums || !live || !relatives || (tree->split && !pass.splits)) {
        krait_relatives_free(relatives);
        return -ENOMEM;
    }
    traverse(&pass);
    if (take_rows(relatives, &pass, funcs) || count_matched(relatives, &pass, trace)) {
        krait_relatives_free(relatives);
        return -ENOMEM;
    }
    *out = relatives;
    return 0;
}

void krait_relatives_free(struct krait_relatives *relatives)
{
    if (!relatives)
        return;
    free(relatives->rows);
    free(relatives->splits);
    free(relatives);
}
