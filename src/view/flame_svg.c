/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture before any script runs, and the file around it. flame.js draws the same again from the data, so a change
 * here needs the same change there; tests compare both.
 */
#include "base/symbol.h"
#include "view/flame_draw.h"

#include "view/flame_text.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

const double krait_flame_diff_steps[FLAME_DIFF_STEPS] = { 0.1, 0.5, 2, 8 };

static const double COLUMN = 6.65; /* pixels of a character of the frames' font, 11 px fixed-width */

struct picture {
    struct krait_buf *to;
    const struct krait_flame *flame;
    const struct krait_flame_options *options;
    struct flame_layout layout;
    double height;
};

static void xml(struct krait_buf *to, const char *s)
{
    krait_text_xml(to, s, strlen(s));
}

static void full_name(struct krait_buf *to, const struct krait_flame_name *name)
{
    if (*name->module) {
        xml(to, name->module);
        krait_buf_char(to, '.');
    }
    xml(to, name->name);
}

static void amount(struct krait_buf *to, const struct krait_flame *flame, uint64_t n)
{
    if (flame->unit == KRAIT_FLAME_TIME) {
        krait_text_duration(to, n);
        return;
    }
    krait_text_count(to, n);
    krait_buf_fmt(to, " %s", krait_flame_counted(flame, n));
}

static void title_shares(struct krait_buf *to, const struct krait_flame *flame,
                         const struct krait_flame_node *node)
{
    uint64_t total = krait_flame_total(flame, node, 0);
    krait_buf_str(to, "\ntotal ");
    amount(to, flame, total);
    krait_buf_str(to, " (");
    krait_text_percent(to, krait_flame_share(flame, node, 0));
    krait_buf_str(to, " of all");
    if (node->depth > 1) {
        uint64_t parent = krait_flame_total(flame, &flame->nodes[node->parent], 0);
        krait_buf_str(to, ", ");
        krait_text_percent(to, parent ? (double)total / (double)parent : 0);
        krait_buf_str(to, " of parent");
    }
    krait_buf_char(to, ')');
}

static void title_own(struct krait_buf *to, const struct krait_flame *flame,
                      const struct krait_flame_node *node)
{
    if (flame->reversed || node->depth == 0)
        return;
    krait_buf_str(to, "\nself ");
    if (flame->measures != KRAIT_FLAME_SAMPLES)
        krait_text_duration(to, node->side[0].self_ns);
    if (flame->measures == KRAIT_FLAME_TIME_ALONE)
        return;
    if (flame->measures == KRAIT_FLAME_TIME_AND_CALLS)
        krait_buf_str(to, ", ");
    krait_text_count(to, node->side[0].calls);
    krait_buf_fmt(to, " %s", krait_flame_counted(flame, node->side[0].calls));
}

static void title_other(struct krait_buf *to, const struct picture *p, const struct krait_flame_node *node)
{
    double was = krait_flame_share(p->flame, node, 1);
    krait_buf_str(to, "\nin the other: ");
    if (node->side[1].total_ns + node->side[1].total_calls == 0) {
        krait_buf_str(to, "absent");
        return;
    }
    amount(to, p->flame, krait_flame_total(p->flame, node, 1));
    krait_buf_str(to, " (");
    krait_text_percent(to, was);
    krait_buf_fmt(to, " of all), change %+.2f points", (krait_flame_share(p->flame, node, 0) - was) * 100);
    if (node->chance)
        krait_buf_str(to, ": no more than chance");
}

static void frame_title(const struct picture *p, const struct krait_flame_node *node)
{
    const struct krait_flame_name *name = &p->flame->names[node->name];
    krait_buf_str(p->to, "<title>");
    full_name(p->to, name);
    if (*name->file) {
        krait_buf_char(p->to, '\n');
        xml(p->to, name->file);
        if (name->line)
            krait_buf_fmt(p->to, ":%u", name->line);
    }
    title_shares(p->to, p->flame, node);
    title_own(p->to, p->flame, node);
    if (p->flame->has_other)
        title_other(p->to, p, node);
    krait_buf_str(p->to, "</title>");
}

/* The most useful part of a name that fits into the columns: module and name, the name, what says most of it, or
 * that truncated. For a module's own code it is the module. */
static void frame_text(struct krait_buf *to, const struct krait_flame_name *name, size_t columns)
{
    size_t module_columns = krait_width_of(name->module, strlen(name->module));
    size_t name_columns = krait_width_of(name->name, strlen(name->name));
    const char *text = module_columns && strcmp(name->name, "<module>") == 0 ? name->module : name->name;
    if (module_columns && module_columns + 1 + name_columns <= columns) {
        krait_buf_str(to, "<tspan class=\"q\">");
        xml(to, name->module);
        krait_buf_str(to, ".</tspan>");
        xml(to, name->name);
        return;
    }
    KRAIT_AUTO_BUF brief = { 0 };
    krait_symbol_brief(&brief, text);
    bool fits = krait_width_of(text, strlen(text)) <= columns;
    krait_text_xml_cut(to, fits || !brief.len ? text : brief.data, columns);
    to->failed |= brief.failed;
}

/* A change that is small relative to the frame is noise, however many percentage points it has. */
static int diff_class(double share, double was)
{
    double points = 100 * (share - was), size = fabs(points);
    int step = 0;
    while (step < FLAME_DIFF_STEPS && size >= krait_flame_diff_steps[step])
        step++;
    if (size < 100 * FLAME_DIFF_NOISE * fmax(share, was))
        step = 0;
    return FLAME_DIFF_STEPS + (points < 0 ? -step : step);
}

static void frame_class(const struct picture *p, const struct krait_flame_node *node)
{
    static const char layers[KRAIT_LAYER_COUNT] = { 'p', 'c', 'g', 'r' };
    const struct krait_flame_name *name = &p->flame->names[node->name];
    krait_buf_fmt(p->to, "f l%c s%u", layers[name->layer], name->shade);
    if (name->package != KRAIT_NO_ID)
        krait_buf_fmt(p->to, " m%u", p->flame->packages[name->package].hue);
    double share = krait_flame_share(p->flame, node, 0), was = krait_flame_share(p->flame, node, 1);
    if (p->flame->has_other)
        krait_buf_fmt(p->to, " d%d", node->chance ? FLAME_DIFF_STEPS : diff_class(share, was));
}

static double row_y(const struct picture *p, uint32_t depth)
{
    uint32_t row = p->options->icicle ? depth : p->layout.rows - 1 - depth;
    return FLAME_TOP + (double)row * KRAIT_FLAME_ROW;
}

/* A box leaves a pixel of background between itself and its neighbours, if it is wide enough. */
static void frame(const struct picture *p, const struct flame_box *box)
{
    const struct krait_flame_node *node = &p->flame->nodes[box->node];
    double x = FLAME_PAD + box->x, y = row_y(p, node->depth), width = box->width;
    bool roomy = width > 4;
    krait_buf_str(p->to, "<g class=\"");
    frame_class(p, node);
    krait_buf_str(p->to, "\">");
    frame_title(p, node);
    krait_buf_fmt(p->to, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"%s/>", x, y,
                  KRAIT_MAX(roomy ? width - 1 : width * 0.8, 0.2), KRAIT_FLAME_ROW - 1,
                  roomy ? " rx=\"2\"" : "");
    double columns = (width - 9) / COLUMN;
    if (columns >= 3) {
        krait_buf_fmt(p->to, "<text x=\"%.2f\" y=\"%.0f\">", x + 4, y + 12.5);
        frame_text(p->to, &p->flame->names[node->name], (size_t)columns);
        krait_buf_str(p->to, "</text>");
    }
    krait_buf_str(p->to, "</g>\n");
}

static void frames(const struct picture *p)
{
    krait_buf_str(p->to, "<g id=\"frames\">\n");
    for (uint32_t i = 0; i < p->layout.count; i++)
        frame(p, &p->layout.boxes[i]);
    krait_buf_str(p->to, "</g>\n");
}

/* If the picture is taller than the window, the window shows its top, with the tips of the flames. The script
 * scrolls, and removes this text. */
static void say_where_root_is(const struct picture *p)
{
    enum { TALL = 900 };
    if (p->height > TALL && !p->options->icicle)
        krait_buf_fmt(
            p->to,
            "<text id=\"still\" x=\"%d\" y=\"94\">The root is at the bottom, below %u rows: scroll down to "
            "it, or draw the graph with --icicle.</text>\n",
            FLAME_PAD, p->layout.rows - 1);
}

static void header(const struct picture *p)
{
    krait_buf_fmt(p->to,
                  "<g id=\"head\"><rect class=\"ground\" width=\"%u\" height=\"%d\"/>\n"
                  "<text id=\"title\" x=\"%d\" y=\"31\">",
                  p->options->width, FLAME_TOP - 6, FLAME_PAD);
    krait_text_xml_raw(p->to, p->options->title);
    krait_buf_fmt(p->to, "</text>\n<text id=\"subtitle\" x=\"%d\" y=\"50\">", FLAME_PAD);
    krait_text_xml_raw(p->to, p->options->subtitle);
    krait_buf_str(p->to, "</text>\n");
    krait_flame_legends(p->to, p->flame, p->options);
    say_where_root_is(p);
    krait_buf_str(p->to, "</g>\n");
}

static const char *width_text(const struct picture *p)
{
    if (p->flame->unit == KRAIT_FLAME_TIME)
        return p->options->time;
    return p->flame->measures == KRAIT_FLAME_SAMPLES ? "the number of samples" : "the number of calls";
}

static void footer(const struct picture *p)
{
    double y = p->height - FLAME_FOOT;
    krait_buf_fmt(
        p->to,
        "<g id=\"foot\" transform=\"translate(0,%.0f)\"><rect class=\"ground\" width=\"%u\" height=\"%d\"/>\n"
        "<text id=\"details\" x=\"%d\" y=\"24\">Hover a frame for its numbers. Width is %s.</text>"
        "<text id=\"numbers\" x=\"%d\" y=\"42\"></text></g>\n",
        y, p->options->width, FLAME_FOOT, FLAME_PAD, width_text(p), FLAME_PAD);
}

static const char *color_class(const struct krait_flame *flame, const struct krait_flame_options *options)
{
    return flame->has_other ? "bd" : options->color == KRAIT_FLAME_BY_LAYER ? "bl" : "bm";
}

/* In SVG, which is XML, the script and its data are inside CDATA; in HTML they are separate elements. */
static void scripts(struct krait_buf *to, const struct krait_flame *flame,
                    const struct krait_flame_options *options, const char *open, const char *close)
{
    krait_buf_fmt(to, "<script id=\"data\" type=\"application/json\">%s", open);
    krait_flame_json(to, flame, options);
    krait_buf_fmt(to, "%s</script>\n<script>%s\n", close, open);
    krait_buf_str(to, "'use strict';\n(() => {\n");
    krait_buf_add(to, krait_flame_js, krait_flame_js_len);
    krait_buf_str(to, "})();\n");
    krait_buf_fmt(to, "%s</script>\n", close);
}

static void styles(struct krait_buf *to, const char *open, const char *close)
{
    krait_buf_fmt(to, "<style>%s\n", open);
    krait_buf_add(to, krait_flame_css, krait_flame_css_len);
    krait_buf_fmt(to, "%s</style>\n", close);
}

static void svg_open(const struct picture *p)
{
    krait_buf_fmt(
        p->to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"flame\" class=\"%s\" width=\"%u\" height=\"%.0f\" "
        "viewBox=\"0 0 %u %.0f\" role=\"group\" aria-labelledby=\"name about\">\n<title id=\"name\">",
        color_class(p->flame, p->options), p->options->width, p->height, p->options->width, p->height);
    krait_text_xml_raw(p->to, p->options->title);
    krait_buf_str(p->to,
                  "</title>\n<desc id=\"about\">Flame graph. Each box is a function; what it called stands ");
    krait_buf_str(p->to, p->options->icicle ? "below" : "above");
    krait_buf_str(p->to, " it. ");
    krait_text_xml_raw(p->to, p->options->subtitle);
    krait_buf_str(p->to, "</desc>\n");
}

static void drawing(const struct picture *p)
{
    krait_buf_fmt(p->to, "<rect class=\"ground\" id=\"ground\" width=\"%u\" height=\"%.0f\"/>\n",
                  p->options->width, p->height);
    frames(p);
    header(p);
    footer(p);
}

static bool begin(struct picture *p, struct krait_buf *to, const struct krait_flame *flame,
                  const struct krait_flame_options *options)
{
    *p = (struct picture){ .to = to, .flame = flame, .options = options };
    if (krait_flame_layout(&p->layout, flame, options))
        to->failed = true;
    p->height = FLAME_TOP + p->layout.rows * (double)KRAIT_FLAME_ROW + FLAME_FOOT;
    return !to->failed;
}

void krait_flame_svg(struct krait_buf *to, const struct krait_flame *flame,
                     const struct krait_flame_options *options)
{
    struct picture p;
    if (begin(&p, to, flame, options)) {
        krait_buf_str(to, "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n");
        svg_open(&p);
        styles(to, "<![CDATA[", "]]>");
        drawing(&p);
        scripts(to, flame, options, "<![CDATA[", "]]>");
        krait_buf_str(to, "</svg>\n");
    }
    free(p.layout.boxes);
}

void krait_flame_html(struct krait_buf *to, const struct krait_flame *flame,
                      const struct krait_flame_options *options)
{
    struct picture p;
    if (begin(&p, to, flame, options)) {
        krait_buf_str(to, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                          "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n<title>");
        krait_text_xml_raw(to, options->title);
        krait_buf_str(to, "</title>\n");
        styles(to, "", "");
        krait_buf_str(to, "</head>\n<body>\n");
        svg_open(&p);
        drawing(&p);
        krait_buf_str(to, "</svg>\n");
        scripts(to, flame, options, "", "");
        krait_buf_str(to, "</body>\n</html>\n");
    }
    free(p.layout.boxes);
}
