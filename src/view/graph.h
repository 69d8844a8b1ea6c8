/* SPDX-License-Identifier: Apache-2.0
 *
 * A state machine as a picture: states on a circle, darker with more time in them, and arrows, thicker if taken more
 * often. As a self-contained SVG picture, or as a graph for Graphviz.
 */
#ifndef KRAIT_VIEW_GRAPH_H
#define KRAIT_VIEW_GRAPH_H

#include "base/buf.h"

struct krait_graph_node {
    const char *name;   /* untrusted */
    uint64_t ns, count; /* total time in the state, and how often it was entered */
    bool is_open;       /* it lasts until the end */
};

struct krait_graph_arrow {
    uint32_t from, to; /* nodes */
    uint64_t count;
};

struct krait_graph {
    const struct krait_graph_node *nodes;
    const struct krait_graph_arrow *arrows;
    uint32_t node_count, arrow_count;
};

/* Append the picture (check to->failed). */
void krait_graph_svg(struct krait_buf *to, const struct krait_graph *graph);
void krait_graph_dot(struct krait_buf *to, const struct krait_graph *graph);

#endif
