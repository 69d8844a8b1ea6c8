/* SPDX-License-Identifier: Apache-2.0 */
#include "view/flame_draw.h"

double krait_flame_share(const struct krait_flame *flame, const struct krait_flame_node *node, int side)
{
    uint64_t all = krait_flame_total(flame, &flame->nodes[0], side);
    return all ? (double)krait_flame_total(flame, node, side) / (double)all : 0;
}

/* Walks in preorder; `start` is the left edge of a node, in the graph's unit. Children are packed to the left; the
 * free space at the right is the node's self time. */
static int add_boxes(struct flame_layout *layout, const struct krait_flame *flame, double min_share)
{
    KRAIT_AUTO_FREE uint64_t *start = calloc(flame->count, sizeof(*start));
    layout->boxes = malloc(flame->count * sizeof(*layout->boxes));
    if (!start || !layout->boxes)
        return -ENOMEM;
    uint64_t all = krait_flame_total(flame, &flame->nodes[0], 0);
    double scale = all ? layout->width / (double)all : 0;
    for (uint32_t i = 0; i != KRAIT_NO_ID;) {
        const struct krait_flame_node *node = &flame->nodes[i];
        bool drawn = i == 0 || (all && krait_flame_share(flame, node, 0) >= min_share);
        uint64_t total = krait_flame_total(flame, node, 0);
        if (node->next_sibling != KRAIT_NO_ID)
            start[node->next_sibling] = start[i] + total;
        if (node->first_child != KRAIT_NO_ID)
            start[node->first_child] = start[i];
        if (drawn)
            layout->boxes[layout->count++] =
                (struct flame_box){ i, (double)start[i] * scale, (double)total * scale };
        i = krait_flame_next(flame, i, drawn ? KRAIT_FLAME_INTO : KRAIT_FLAME_OVER);
    }
    return 0;
}

struct ranking {
    const struct krait_flame *flame;
    const struct flame_box *boxes;
};

/* The widest first, then those nearer to the root, so a parent is always before its children. */
static int compare_boxes(const void *a, const void *b, void *ctx)
{
    const struct ranking *ranking = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct krait_flame_node *x = &ranking->flame->nodes[ranking->boxes[i].node];
    const struct krait_flame_node *y = &ranking->flame->nodes[ranking->boxes[j].node];
    uint64_t tx = krait_flame_total(ranking->flame, x, 0), ty = krait_flame_total(ranking->flame, y, 0);
    if (tx != ty)
        return tx < ty ? 1 : -1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return i < j ? -1 : i > j;
}

static int keep_widest(struct flame_layout *layout, const struct krait_flame *flame)
{
    if (layout->count <= KRAIT_FLAME_MAX_DRAWN)
        return 0;
    KRAIT_AUTO_FREE uint32_t *ids = malloc(layout->count * sizeof(*ids));
    KRAIT_AUTO_FREE bool *keep = calloc(layout->count, sizeof(*keep));
    if (!ids || !keep)
        return -ENOMEM;
    for (uint32_t i = 0; i < layout->count; i++)
        ids[i] = i;
    struct ranking ranking = { flame, layout->boxes };
    qsort_r(ids, layout->count, sizeof(*ids), compare_boxes, &ranking);
    for (uint32_t i = 0; i < KRAIT_FLAME_MAX_DRAWN; i++)
        keep[ids[i]] = true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < layout->count; i++) {
        if (keep[i])
            layout->boxes[kept++] = layout->boxes[i];
    }
    layout->count = kept;
    return 0;
}

int krait_flame_layout(struct flame_layout *layout, const struct krait_flame *flame,
                       const struct krait_flame_options *options)
{
    *layout = (struct flame_layout){ .width = options->width - 2.0 * FLAME_PAD };
    int rc = add_boxes(layout, flame, options->min_width / layout->width);
    if (!rc)
        rc = keep_widest(layout, flame);
    for (uint32_t i = 0; !rc && i < layout->count; i++)
        layout->rows = KRAIT_MAX(layout->rows, flame->nodes[layout->boxes[i].node].depth + 1);
    return rc;
}
