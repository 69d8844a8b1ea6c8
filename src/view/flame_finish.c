/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a built graph ready to draw: totals, the limit on its size, the order of siblings, colours.
 */
#include "base/array.h"
#include "view/flame.h"

#include <string.h>

static int no_memory(struct krait_err *err)
{
    return krait_err_set(err, -ENOMEM, "out of memory while laying out the flame graph");
}

static void add_totals(struct krait_flame *flame)
{
    for (uint32_t i = flame->count; i-- > 0;) {
        struct krait_flame_node *node = &flame->nodes[i];
        for (int s = 0; s < 2; s++) {
            node->side[s].total_ns += node->side[s].self_ns;
            node->side[s].total_calls += node->side[s].calls;
            if (node->parent == KRAIT_NO_ID)
                continue;
            flame->nodes[node->parent].side[s].total_ns += node->side[s].total_ns;
            flame->nodes[node->parent].side[s].total_calls += node->side[s].total_calls;
        }
    }
}

struct sorting {
    const struct krait_flame *flame;
    enum krait_flame_order order;
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The widest first. A parent comes before its children, because it is at least as wide and less deep. */
static int compare_width(const void *a, const void *b, void *ctx)
{
    const struct krait_flame *flame = ((const struct sorting *)ctx)->flame;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int by_width = compare_u64(krait_flame_total(flame, &flame->nodes[j], 0),
                               krait_flame_total(flame, &flame->nodes[i], 0));
    int by_depth = compare_u64(flame->nodes[i].depth, flame->nodes[j].depth);
    return by_width ? by_width : by_depth ? by_depth : compare_u64(i, j);
}

static int compare_names(const struct krait_flame *flame, const struct krait_flame_node *a,
                         const struct krait_flame_node *b)
{
    const struct krait_flame_name *x = &flame->names[a->name], *y = &flame->names[b->name];
    int by_module = strcmp(x->module, y->module);
    return by_module ? by_module : strcmp(x->name, y->name);
}

/* Rest frames come last, the others in the given order; equal ones in the order of their first calls. */
static int compare_siblings(const void *a, const void *b, void *ctx)
{
    const struct sorting *sorting = ctx;
    const struct krait_flame *flame = sorting->flame;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct krait_flame_node *x = &flame->nodes[i], *y = &flame->nodes[j];
    int c = compare_u64(x->parent, y->parent);
    if (!c)
        c = (flame->names[x->name].layer == KRAIT_LAYER_REST) -
            (flame->names[y->name].layer == KRAIT_LAYER_REST);
    if (!c && sorting->order == KRAIT_FLAME_ORDER_SIZE)
        c = compare_u64(krait_flame_total(flame, y, 0), krait_flame_total(flame, x, 0));
    if (!c && sorting->order != KRAIT_FLAME_ORDER_FIRST_CALL)
        c = compare_names(flame, x, y);
    return c ? c : compare_u64(i, j);
}

static uint32_t *node_ids(const struct krait_flame *flame)
{
    uint32_t *ids = malloc(KRAIT_MAX(flame->count, 1u) * sizeof(*ids));
    for (uint32_t i = 0; ids && i < flame->count; i++)
        ids[i] = i;
    return ids;
}

static uint32_t rest_name(struct krait_flame *flame)
{
    if (!KRAIT_GROW(flame->names, flame->name_cap, flame->name_count + 1))
        return KRAIT_NO_ID;
    flame->names[flame->name_count] = (struct krait_flame_name){ .name = "(smaller frames)",
                                                                 .module = "",
                                                                 .file = "",
                                                                 .layer = KRAIT_LAYER_REST,
                                                                 .package = KRAIT_NO_ID };
    return flame->name_count++;
}

/* Adds a dropped node's weight to the rest node of its parent, rest_of[parent]. Only nodes whose parent was kept
 * come here, so a dropped node is never below another. */
static void add_to_rest(struct krait_flame *flame, struct krait_flame_node *rest,
                        const struct krait_flame_node *node)
{
    for (int s = 0; s < 2; s++) {
        rest->side[s].self_ns += node->side[s].total_ns;
        rest->side[s].calls += node->side[s].total_calls;
        rest->side[s].total_ns = rest->side[s].self_ns;
        rest->side[s].total_calls = rest->side[s].calls;
    }
}

/* Copies the kept nodes to `to`, in the old order (so parents stay before children), and makes rest nodes. new_id:
 * the new id of a kept node, or KRAIT_NO_ID; `to` has room for two nodes per kept one. */
static uint32_t copy_kept(struct krait_flame *flame, const uint32_t *new_id, uint32_t *rest_of,
                          struct krait_flame_node *to, uint32_t kept, uint32_t name)
{
    uint32_t count = kept;
    for (uint32_t i = 0; i < flame->count; i++) {
        struct krait_flame_node node = flame->nodes[i];
        uint32_t parent = node.parent == KRAIT_NO_ID ? KRAIT_NO_ID : new_id[node.parent];
        if (new_id[i] != KRAIT_NO_ID) {
            node.parent = parent;
            to[new_id[i]] = node;
            rest_of[new_id[i]] = KRAIT_NO_ID;
        } else if (parent != KRAIT_NO_ID) {
            if (rest_of[parent] == KRAIT_NO_ID) {
                rest_of[parent] = count;
                to[count++] = (struct krait_flame_node){ .name = name,
                                                         .parent = parent,
                                                         .first_child = KRAIT_NO_ID,
                                                         .next_sibling = KRAIT_NO_ID,
                                                         .depth = node.depth };
            }
            add_to_rest(flame, &to[rest_of[parent]], &node);
        }
    }
    return count;
}

/* Keeps the `max` widest nodes. */
static int limit_nodes(struct krait_flame *flame, uint32_t max)
{
    if (flame->count <= max)
        return 0;
    KRAIT_AUTO_FREE uint32_t *new_id = node_ids(flame);
    KRAIT_AUTO_FREE uint32_t *rest_of = malloc(max * sizeof(*rest_of));
    struct krait_flame_node *nodes = malloc((size_t)max * 2 * sizeof(*nodes));
    uint32_t name = rest_name(flame);
    if (!new_id || !rest_of || !nodes || name == KRAIT_NO_ID) {
        free(nodes);
        return -ENOMEM;
    }
    struct sorting sorting = { .flame = flame };
    qsort_r(new_id, flame->count, sizeof(*new_id), compare_width, &sorting);
    KRAIT_AUTO_FREE bool *keep = calloc(flame->count, sizeof(*keep));
    if (!keep) {
        free(nodes);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < max; i++)
        keep[new_id[i]] = true;
    for (uint32_t i = 0, n = 0; i < flame->count; i++)
        new_id[i] = keep[i] ? n++ : KRAIT_NO_ID;
    flame->dropped = flame->count - max;
    flame->count = copy_kept(flame, new_id, rest_of, nodes, max, name);
    free(flame->nodes);
    flame->nodes = nodes;
    flame->cap = max * 2;
    return 0;
}

/* Links children to their parents in the wanted order. */
static int link_nodes(struct krait_flame *flame, enum krait_flame_order order)
{
    KRAIT_AUTO_FREE uint32_t *ids = node_ids(flame);
    if (!ids)
        return -ENOMEM;
    struct sorting sorting = { .flame = flame, .order = order };
    qsort_r(ids + 1, flame->count - 1, sizeof(*ids), compare_siblings, &sorting);
    for (uint32_t i = flame->count; i-- > 1;) {
        struct krait_flame_node *node = &flame->nodes[ids[i]], *parent = &flame->nodes[node->parent];
        node->next_sibling = parent->first_child;
        parent->first_child = ids[i];
    }
    return 0;
}

/* A function's self weight is the sum over its nodes; in a reversed graph, it is the weight of its node below the
 * root. */
static void add_to_package(struct krait_flame *flame, const struct krait_flame_node *node)
{
    uint32_t package = flame->names[node->name].package;
    if (package == KRAIT_NO_ID)
        return;
    if (!flame->reversed)
        flame->packages[package].weight += krait_flame_own(flame, node, 0);
    else if (node->depth == 1)
        flame->packages[package].weight += krait_flame_total(flame, node, 0);
}

static int color_packages(struct krait_flame *flame)
{
    uint32_t count = flame->package_texts.len;
    flame->packages = calloc(KRAIT_MAX(count, 1u), sizeof(*flame->packages));
    if (!flame->packages)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        flame->packages[i].text = flame->package_texts.texts[i];
    for (uint32_t i = 0; i < flame->count; i++)
        add_to_package(flame, &flame->nodes[i]);
    return krait_hues_give(flame->packages, count);
}

const char *krait_flame_counted(const struct krait_flame *flame, uint64_t n)
{
    if (flame->measures == KRAIT_FLAME_SAMPLES)
        return n == 1 ? "sample" : "samples";
    return n == 1 ? "call" : "calls";
}

int krait_flame_finish(struct krait_flame *flame, const struct krait_flame_options *options,
                       struct krait_err *err)
{
    flame->unit = options->unit;
    flame->measures = options->measures;
    krait_map_done(&flame->index);
    flame->index = (struct krait_map){ 0 };
    add_totals(flame);
    if (color_packages(flame) || limit_nodes(flame, KRAIT_MAX(options->max_frames, 1u)) ||
        link_nodes(flame, options->order))
        return no_memory(err);
    return 0;
}

uint32_t krait_flame_next(const struct krait_flame *flame, uint32_t node, enum krait_flame_walk walk)
{
    if (walk == KRAIT_FLAME_INTO && flame->nodes[node].first_child != KRAIT_NO_ID)
        return flame->nodes[node].first_child;
    while (node != KRAIT_NO_ID && flame->nodes[node].next_sibling == KRAIT_NO_ID)
        node = flame->nodes[node].parent;
    return node == KRAIT_NO_ID ? KRAIT_NO_ID : flame->nodes[node].next_sibling;
}
