/* SPDX-License-Identifier: Apache-2.0 */
#include "view/graph.h"

#include "base/json.h"
#include "view/flame_text.h"

#include <math.h>

extern const char krait_plot_css[];
extern const size_t krait_plot_css_len;

enum { /* pixels */
       NODE_WIDTH = 150,
       NODE_HEIGHT = 46,
       NAME_COLUMNS = 20,
       MARGIN = 60,
       LEAST_RADIUS = 150,
       APART = 110, /* along the circle, of two nodes */
       BEND = 26,   /* of an arrow, so that there and back are two */
       LOOP = 22,
       HEAD = 11,
};

struct point {
    double x, y;
};

struct drawing {
    struct krait_buf *to;
    const struct krait_graph *graph;
    double radius, width, height;
    uint64_t whole_ns, most;
};

static struct point place(const struct drawing *d, uint32_t node)
{
    double turn = 2 * M_PI * node / d->graph->node_count - M_PI / 2;
    double radius = d->graph->node_count > 1 ? d->radius : 0;
    return (struct point){ d->width / 2 + 1.35 * radius * cos(turn), d->height / 2 + radius * sin(turn) };
}

/* The point at which the line from a node's middle to another point leaves its box. */
static struct point leave(struct point node, struct point toward)
{
    double dx = toward.x - node.x, dy = toward.y - node.y;
    double by_x = fabs(dx) > 1e-9 ? (NODE_WIDTH / 2 + 3) / fabs(dx) : INFINITY;
    double by_y = fabs(dy) > 1e-9 ? (NODE_HEIGHT / 2 + 3) / fabs(dy) : INFINITY;
    double part = KRAIT_MIN(by_x, by_y);
    return (struct point){ node.x + dx * part, node.y + dy * part };
}

static void draw_head(const struct drawing *d, struct point tip, struct point from)
{
    double turn = atan2(tip.y - from.y, tip.x - from.x);
    krait_buf_fmt(d->to, "<path class=\"head\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>", tip.x, tip.y,
                  tip.x - HEAD * cos(turn - 0.4), tip.y - HEAD * sin(turn - 0.4),
                  tip.x - HEAD * cos(turn + 0.4), tip.y - HEAD * sin(turn + 0.4));
}

static void draw_count(const struct drawing *d, struct point at, uint64_t count)
{
    krait_buf_fmt(d->to, "<text class=\"times middle\" x=\"%.1f\" y=\"%.1f\">", at.x, at.y + 4);
    krait_text_count(d->to, count);
    krait_buf_str(d->to, "</text>\n");
}

/* From a node to itself: on its outer side. */
static void draw_loop(const struct drawing *d, struct point node, double width, uint64_t count)
{
    double out = node.y > d->height / 2 + 1 ? 1 : -1, x = node.x + NODE_WIDTH / 4,
           y = node.y + out * (NODE_HEIGHT / 2 + 3);
    krait_buf_fmt(
        d->to, "<path class=\"arrow\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"/>",
        width, x, y, x, y + out * 2 * LOOP, x + 2 * LOOP, y + out * 2 * LOOP, x + LOOP, y);
    draw_head(d, (struct point){ x + LOOP, y }, (struct point){ x + 1.3 * LOOP, y + out * LOOP });
    draw_count(d, (struct point){ x + LOOP, y + out * 1.6 * LOOP }, count);
}

static void draw_arrow(const struct drawing *d, const struct krait_graph_arrow *arrow)
{
    struct point a = place(d, arrow->from), b = place(d, arrow->to);
    double width = 1 + 1.5 * sqrt((double)arrow->count / (double)d->most);
    if (arrow->from == arrow->to) {
        draw_loop(d, a, width, arrow->count);
        return;
    }
    double length = hypot(b.x - a.x, b.y - a.y);
    struct point bend = { (a.x + b.x) / 2 - BEND * 2 * (b.y - a.y) / length,
                          (a.y + b.y) / 2 + BEND * 2 * (b.x - a.x) / length };
    struct point begin = leave(a, bend), end = leave(b, bend);
    struct point middle = { (begin.x + 2 * bend.x + end.x) / 4, (begin.y + 2 * bend.y + end.y) / 4 };
    krait_buf_fmt(d->to, "<path class=\"arrow\" stroke-width=\"%.1f\" d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\"/>",
                  width, begin.x, begin.y, bend.x, bend.y, end.x, end.y);
    draw_head(d, end, bend);
    draw_count(d, middle, arrow->count);
}

static void draw_node(const struct drawing *d, uint32_t index)
{
    const struct krait_graph_node *node = &d->graph->nodes[index];
    struct point at = place(d, index);
    double share = d->whole_ns ? (double)node->ns / (double)d->whole_ns : 0;
    KRAIT_AUTO_BUF clean = { 0 };
    krait_text_clean(&clean, node->name);
    krait_buf_fmt(
        d->to,
        "<g><title>%llu times</title><rect class=\"ground\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"8\"/>"
        "<rect class=\"node\" fill-opacity=\"%.2f\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"8\"/>",
        (unsigned long long)node->count, at.x - NODE_WIDTH / 2, at.y - NODE_HEIGHT / 2, NODE_WIDTH,
        NODE_HEIGHT, 0.08 + 0.5 * share, at.x - NODE_WIDTH / 2, at.y - NODE_HEIGHT / 2, NODE_WIDTH,
        NODE_HEIGHT);
    krait_buf_fmt(d->to, "<text class=\"middle strong\" x=\"%.1f\" y=\"%.1f\">", at.x, at.y - 3);
    krait_text_xml_name(d->to, clean.data ? clean.data : "", NAME_COLUMNS);
    krait_buf_fmt(d->to, "</text><text class=\"middle quiet\" x=\"%.1f\" y=\"%.1f\">", at.x, at.y + 14);
    krait_text_duration(d->to, node->ns);
    krait_buf_str(d->to, ", ");
    krait_text_percent(d->to, share);
    krait_buf_fmt(d->to, "%s</text></g>\n", node->is_open ? ", open" : "");
    d->to->failed |= clean.failed;
}

void krait_graph_svg(struct krait_buf *to, const struct krait_graph *graph)
{
    double radius = KRAIT_MAX(APART * (double)graph->node_count / (2 * M_PI), (double)LEAST_RADIUS);
    struct drawing d = { .to = to,
                         .graph = graph,
                         .radius = radius,
                         .width = 2.7 * radius + NODE_WIDTH + 2 * MARGIN,
                         .height = 2 * radius + NODE_HEIGHT + 2 * MARGIN,
                         .most = 1 };
    for (uint32_t i = 0; i < graph->node_count; i++)
        d.whole_ns += graph->nodes[i].ns;
    for (uint32_t i = 0; i < graph->arrow_count; i++)
        d.most = KRAIT_MAX(d.most, graph->arrows[i].count);
    krait_buf_fmt(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"plot\" "
        "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"States and how they "
        "follow each other\">\n<style>",
        d.width, d.height, d.width, d.height);
    krait_buf_add(to, krait_plot_css, krait_plot_css_len);
    krait_buf_str(to, "</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    for (uint32_t i = 0; i < graph->arrow_count; i++)
        draw_arrow(&d, &graph->arrows[i]);
    for (uint32_t i = 0; i < graph->node_count; i++)
        draw_node(&d, i);
    krait_buf_str(to, "</svg>\n");
}

/* -- Graphviz -- */

/* Its strings are like those of C. JSON's strings fit, except \u, which it prints as it is. */
void krait_graph_dot(struct krait_buf *to, const struct krait_graph *graph)
{
    krait_buf_str(to, "digraph states {\n    node [shape=box, style=rounded];\n");
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct krait_graph_node *node = &graph->nodes[i];
        KRAIT_AUTO_BUF label = { 0 };
        krait_text_clean(&label, node->name);
        krait_buf_char(&label, '\n');
        krait_text_duration(&label, node->ns);
        krait_buf_str(&label, node->is_open ? ", open" : "");
        krait_buf_fmt(to, "    s%u [label=", i);
        krait_json_str(to, label.data ? label.data : "", label.len);
        krait_buf_str(to, "];\n");
        to->failed |= label.failed;
    }
    for (uint32_t i = 0; i < graph->arrow_count; i++)
        krait_buf_fmt(to, "    s%u -> s%u [label=\"%llu\"];\n", graph->arrows[i].from, graph->arrows[i].to,
                      (unsigned long long)graph->arrows[i].count);
    krait_buf_str(to, "}\n");
}
