/* SPDX-License-Identifier: Apache-2.0 */
#include "view/lane.h"

#include "base/fmt.h"
#include "view/ticks.h"
#include "view/width.h"

#include <string.h>

enum {
    WIDTH = 100,     /* where there is no terminal */
    LEAST_CELLS = 8, /* whatever the terminal */
    GAP = 2,
    TICK_GAP = 3, /* blanks between what is written on the axis */
};

struct drawing {
    const struct krait_lane_chart *lanes;
    const struct krait_table_look *look;
    struct krait_buf *out;
    uint32_t label, cells; /* columns */
    uint64_t *ns;          /* by row, cell and style */
    bool *seen;            /* by style */
};

static uint64_t *cell_of(const struct drawing *d, uint32_t row, uint32_t cell)
{
    return d->ns + ((size_t)row * d->cells + cell) * d->lanes->style_count;
}

/* The begin of a cell, after the left end. */
static uint64_t cell_ns(const struct drawing *d, uint32_t cell)
{
    uint64_t whole = d->lanes->end_ns - d->lanes->begin_ns;
    return (uint64_t)((unsigned __int128)whole * cell / d->cells);
}

static uint32_t cell_at(const struct drawing *d, uint64_t ns)
{
    uint64_t whole = d->lanes->end_ns - d->lanes->begin_ns;
    uint32_t cell = (uint32_t)((unsigned __int128)ns * d->cells / whole);
    return KRAIT_MIN(cell, d->cells - 1);
}

/* Adds a span to the cells that it lies in. */
static void fill(const struct drawing *d, const struct krait_lane_span *span)
{
    uint64_t lo = KRAIT_MAX(span->begin_ns, d->lanes->begin_ns) - d->lanes->begin_ns;
    uint64_t hi = KRAIT_MIN(span->end_ns, d->lanes->end_ns);
    if (hi <= lo + d->lanes->begin_ns)
        return;
    hi -= d->lanes->begin_ns;
    for (uint32_t i = cell_at(d, lo); i < d->cells && cell_ns(d, i) < hi; i++) {
        uint64_t from = KRAIT_MAX(lo, cell_ns(d, i)), to = KRAIT_MIN(hi, cell_ns(d, i + 1));
        cell_of(d, span->row, i)[span->style] += to > from ? to - from : 0;
    }
}

/* -- the rows -- */

static void pad(struct krait_buf *out, uint32_t n)
{
    for (; n; n--)
        krait_buf_char(out, ' ');
}

static void add_glyph(struct krait_buf *out, const struct krait_lane_style *style, uint32_t eighths,
                      bool utf8)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    static const char heights[] = "..::++##";
    bool is_block = style->ascii == '#';
    if (utf8)
        krait_buf_str(out, is_block ? blocks[eighths - 1] : style->glyph);
    else
        krait_buf_char(out, is_block ? heights[eighths - 1] : style->ascii);
}

/* The style with the most time in a cell represents the cell. Returns style_count if there is none. */
static uint32_t greatest(const uint64_t *ns, uint32_t count, uint64_t *sum)
{
    uint32_t best = count;
    *sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ns[i] && (best == count || ns[i] > ns[best]))
            best = i;
        *sum += ns[i];
    }
    return best;
}

static void change_colour(const struct drawing *d, const char **now, const char *to)
{
    if (!d->look->colour || *now == to)
        return;
    if (to)
        krait_buf_fmt(d->out, "\033[%sm", to);
    else
        krait_buf_str(d->out, "\033[0m");
    *now = to;
}

static void draw_cell(const struct drawing *d, uint32_t row, uint32_t cell, const char **colour)
{
    uint64_t sum, whole = cell_ns(d, cell + 1) - cell_ns(d, cell);
    uint32_t style = greatest(cell_of(d, row, cell), d->lanes->style_count, &sum);
    if (style == d->lanes->style_count) {
        krait_buf_char(d->out, ' ');
        return;
    }
    d->seen[style] = true;
    change_colour(d, colour, d->lanes->styles[style].code);
    uint64_t eighths = whole ? (sum * 8 + whole / 2) / whole : 8;
    add_glyph(d->out, &d->lanes->styles[style], (uint32_t)KRAIT_MAX(1u, KRAIT_MIN(eighths, 8u)),
              d->look->utf8);
}

static void end_line(struct krait_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    krait_buf_char(out, '\n');
}

static void draw_row(const struct drawing *d, uint32_t row)
{
    KRAIT_AUTO_BUF label = { 0 };
    const char *colour = NULL;
    krait_width_shorten(&label, d->lanes->rows[row], d->label, d->look->utf8);
    krait_buf_str(d->out, label.data ? label.data : "");
    pad(d->out, d->label + GAP - krait_width_of(label.data ? label.data : "", label.len));
    for (uint32_t i = 0; i < d->cells; i++)
        draw_cell(d, row, i, &colour);
    change_colour(d, &colour, NULL);
    end_line(d->out);
    d->out->failed |= label.failed;
}

/* -- the axis -- */

#define MINUTE (60 * (uint64_t)KRAIT_NS_PER_S)

struct unit {
    uint64_t ns;
    const char *name;
};

static const struct unit *unit_of(uint64_t ns)
{
    static const struct unit units[] = {
        { KRAIT_NS_PER_S, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" }
    };
    const struct unit *unit = units;
    while (unit->ns > 1 && ns < unit->ns)
        unit++;
    return unit;
}

/* In `text`, which is emptied before. */
static void tick_text(struct krait_buf *text, uint64_t ns, const struct unit *unit)
{
    text->len = 0;
    if (ns >= MINUTE)
        krait_tick_clock(text, ns);
    else
        krait_buf_fmt(text, ns ? "%.10g %s" : "%.10g", (double)ns / (double)unit->ns, unit->name);
}

/* As clocks divide time, so far apart that the labels fit. */
static uint64_t tick_step(const struct drawing *d, struct krait_buf *text, const struct unit *unit)
{
    uint64_t whole = d->lanes->end_ns - d->lanes->begin_ns;
    for (uint64_t step = 1;; step = krait_tick_step((double)step * 1.5)) { /* the next one */
        size_t longest = 0;
        for (uint64_t i = 0; i < 2; i++) { /* of the last two, "1h" and "1h 20m" */
            tick_text(text, (whole / step - KRAIT_MIN(i, whole / step)) * step, unit);
            longest = KRAIT_MAX(longest, text->len);
        }
        if (step >= whole || (unsigned __int128)step * d->cells / whole >= longest + TICK_GAP)
            return step;
    }
}

static void draw_axis(const struct drawing *d)
{
    uint64_t whole = d->lanes->end_ns - d->lanes->begin_ns;
    const struct unit *unit = unit_of(whole);
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t step = tick_step(d, &text, unit);
    const char *colour = NULL;
    pad(d->out, d->label + GAP);
    change_colour(d, &colour, "2");
    uint32_t at = 0;
    for (uint64_t ns = 0; ns < whole; ns += step) {
        uint32_t cell = cell_at(d, ns);
        tick_text(&text, ns, unit);
        if (text.failed || cell < at || cell + text.len > d->cells)
            continue;
        pad(d->out, cell - at);
        krait_buf_str(d->out, text.data);
        at = cell + (uint32_t)text.len;
    }
    change_colour(d, &colour, NULL);
    end_line(d->out);
    d->out->failed |= text.failed;
}

/* -- the legend -- */

/* Without colours, one glyph has one entry. */
static bool is_explained(const struct drawing *d, uint32_t style)
{
    const struct krait_lane_style *styles = d->lanes->styles;
    for (uint32_t i = 0; i < style && !d->look->colour; i++) {
        if (d->seen[i] && strcmp(styles[i].glyph, styles[style].glyph) == 0)
            return true;
    }
    return !d->seen[style];
}

/* Below the lanes if there is room, otherwise from the left. */
static void draw_legend(const struct drawing *d)
{
    enum { AROUND = 4 }; /* columns of the glyph and the blanks */
    const struct krait_lane_style *styles = d->lanes->styles;
    const char *colour = NULL;
    size_t width = 0;
    for (uint32_t i = 0; i < d->lanes->style_count; i++)
        width += is_explained(d, i) ? 0 : strlen(styles[i].words) + AROUND;
    pad(d->out, width <= d->cells ? d->label + GAP : 0);
    for (uint32_t i = 0; i < d->lanes->style_count; i++) {
        if (is_explained(d, i))
            continue;
        change_colour(d, &colour, styles[i].code);
        add_glyph(d->out, &styles[i], 8, d->look->utf8);
        change_colour(d, &colour, NULL);
        krait_buf_fmt(d->out, " %s  ", styles[i].words);
    }
    end_line(d->out);
}

static void draw(const struct drawing *d)
{
    for (uint32_t i = 0; i < d->lanes->span_count; i++)
        fill(d, &d->lanes->spans[i]);
    for (uint32_t i = 0; i < d->lanes->row_count; i++)
        draw_row(d, i);
    draw_axis(d);
    draw_legend(d);
}

/* Columns of labels and of lanes. */
static void lay_out(struct drawing *d)
{
    uint32_t width = d->look->width ? d->look->width : WIDTH;
    for (uint32_t i = 0; i < d->lanes->row_count; i++)
        d->label = KRAIT_MAX(d->label, krait_width_of(d->lanes->rows[i], strlen(d->lanes->rows[i])));
    d->label = KRAIT_MIN(d->label, width / 4);
    d->cells = width > d->label + GAP + LEAST_CELLS ? width - d->label - GAP : LEAST_CELLS;
}

int krait_lane_chart_print(const struct krait_lane_chart *lanes, const struct krait_table_look *look,
                           struct krait_buf *out)
{
    struct drawing d = { .lanes = lanes, .look = look, .out = out };
    if (lanes->end_ns <= lanes->begin_ns)
        return 0;
    lay_out(&d);
    d.ns = calloc((size_t)KRAIT_MAX(lanes->row_count, 1u) * d.cells * lanes->style_count, sizeof(*d.ns));
    d.seen = calloc(lanes->style_count, sizeof(*d.seen));
    if (d.ns && d.seen)
        draw(&d);
    else
        out->failed = true;
    free(d.ns);
    free(d.seen);
    return out->failed ? -ENOMEM : 0;
}
