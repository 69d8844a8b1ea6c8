/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the parts of the flame graph share. flame.js gets the same measures.
 */
#ifndef KRAIT_VIEW_FLAME_DRAW_H
#define KRAIT_VIEW_FLAME_DRAW_H

#include "view/flame.h"

enum {
    FLAME_PAD = 16,       /* left and right of everything */
    FLAME_TOP = 104,      /* top of the graph: title, subtitle, legend and path are above */
    FLAME_FOOT = 54,      /* the details below the graph */
    FLAME_DIFF_STEPS = 4, /* shades on each side of "no change" */
};

/* A frame is coloured if it changed by more than this part of its share. */
#define FLAME_DIFF_NOISE 0.05

/* Percentage points of change at which the differential colours step. */
extern const double krait_flame_diff_steps[FLAME_DIFF_STEPS];

/* The place of a frame: pixels from the graph's left edge, row from the root. */
struct flame_box {
    uint32_t node;
    double x, width;
};

struct flame_layout {
    struct flame_box *boxes; /* preorder */
    uint32_t count;
    uint32_t rows;
    double width; /* of the root */
};

/* Decides which frames to draw where if there are no scripts. Returns 0 or -ENOMEM. */
int krait_flame_layout(struct flame_layout *layout, const struct krait_flame *flame,
                       const struct krait_flame_options *options);

/* A node's share of this trace; 0 if the trace is empty. */
double krait_flame_share(const struct krait_flame *flame, const struct krait_flame_node *node, int side);

/* Writes the legends of all colour schemes. */
void krait_flame_legends(struct krait_buf *to, const struct krait_flame *flame,
                         const struct krait_flame_options *options);

/* Writes the script's data, a JSON object. */
void krait_flame_json(struct krait_buf *to, const struct krait_flame *flame,
                      const struct krait_flame_options *options);

/* Embedded by tools/embed.py. */
extern const char krait_flame_css[], krait_flame_js[];
extern const size_t krait_flame_css_len, krait_flame_js_len;

#endif
