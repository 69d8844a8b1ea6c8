/* SPDX-License-Identifier: Apache-2.0
 *
 * Plots in characters.
 */
#include "base/fmt.h"
#include "view/plot.h"
#include "view/width.h"

#include <string.h>

#define TIME "time after the start"

enum { ROWS = 12, LABEL = 10, LEAST_WIDTH = 40, USUAL_WIDTH = 100, MOST_WIDTH = 200, BINS = 12, BAR = 40 };

/* The look of a series, which differs from others by more than colour. */
static const struct {
    const char *glyph;
    char ascii;
    const char *code;
} marks[] = {
    { "•", 'o', "\033[34m" }, { "×", 'x', "\033[33m" }, { "+", '+', "\033[32m" },
    { "◦", '.', "\033[35m" }, { "▫", '#', "\033[36m" }, { "~", '~', "\033[31m" },
};
_Static_assert(KRAIT_ARRAY_LEN(marks) == KRAIT_PLOT_SIGNS, "KRAIT_PLOT_SIGNS");

struct text {
    struct krait_buf *to;
    const struct krait_plot *plot;
    const struct krait_table_look *look;
    struct krait_plot_frame frame;
    uint32_t columns;
    uint8_t cells[ROWS][MOST_WIDTH]; /* 1 + series; 0: none */
};

static void put_mark(const struct text *d, uint32_t series)
{
    const size_t i = series % KRAIT_ARRAY_LEN(marks);
    krait_buf_str(d->to, d->look->colour ? marks[i].code : "");
    if (d->look->utf8)
        krait_buf_str(d->to, marks[i].glyph);
    else
        krait_buf_char(d->to, marks[i].ascii);
    krait_buf_str(d->to, d->look->colour ? KRAIT_PLAIN : "");
}

static void put_quiet(const struct text *d, const char *words)
{
    krait_buf_fmt(d->to, "%s%s%s", d->look->colour ? KRAIT_DIM : "", words,
                  d->look->colour ? KRAIT_PLAIN : "");
}

static uint32_t row_of(const struct text *d, double ns)
{
    double at = krait_scale_at(&d->frame.length, ns);
    return ROWS - 1 - KRAIT_MIN((uint32_t)(at * ROWS), (uint32_t)ROWS - 1);
}

static void fill(struct text *d)
{
    for (uint32_t s = 0; s < d->plot->count; s++) {
        const struct krait_plot_series *series = &d->plot->series[s];
        for (size_t i = 0; i < series->count; i++) {
            double at = krait_scale_at(&d->frame.time, (double)series->t_ns[i]);
            uint32_t column = KRAIT_MIN((uint32_t)(at * d->columns), d->columns - 1);
            d->cells[row_of(d, series->value[i])][column] = (uint8_t)(1 + s % KRAIT_ARRAY_LEN(marks));
        }
    }
}

/* A duration or a value, in `text` (KRAIT_FMT_SIZE). */
static const char *put_value(const struct text *d, char *text, double value)
{
    if (!d->plot->is_of_values)
        return krait_fmt_ns(text, (uint64_t)value);
    snprintf(text, KRAIT_FMT_SIZE, "%.4g", value);
    return text;
}

static void draw_legend(const struct text *d)
{
    for (uint32_t s = 0; s < d->plot->count; s++) {
        const struct krait_plot_series *series = &d->plot->series[s];
        char count[KRAIT_FMT_SIZE], median[KRAIT_FMT_SIZE];
        bool is_value = d->plot->is_of_values;
        KRAIT_AUTO_BUF safe = { 0 };
        krait_fmt_safe(&safe, series->name);
        krait_buf_fmt(d->to, "%*s", LABEL - 1, "");
        put_mark(d, s);
        krait_buf_char(d->to, ' ');
        krait_width_shorten(d->to, safe.data ? safe.data : "", d->columns / 2, d->look->utf8);
        krait_buf_fmt(d->to, "  %s, median %s\n",
                      krait_fmt_counted(count, series->count, is_value ? "value" : "interval"),
                      put_value(d, median, series->median));
    }
}

/* The label of the tick in a row, if there is one. */
static void put_left(const struct text *d, uint32_t row)
{
    double ticks[KRAIT_SCALE_TICKS];
    uint32_t count = krait_scale_ticks(&d->frame.length, ROWS / 2 + 1, ticks), i = 0;
    KRAIT_AUTO_BUF label = { 0 };
    while (i < count && row_of(d, ticks[i]) != row)
        i++;
    if (i < count)
        krait_plot_label(&d->frame, &label, ticks[i], "us");
    krait_buf_fmt(d->to, "%*s ", LABEL - 2, label.len ? label.data : "");
    put_quiet(d, d->look->utf8 ? (i < count ? "┤" : "│") : "|");
}

static void draw_cells(const struct text *d)
{
    KRAIT_AUTO_BUF what = { 0 };
    krait_buf_fmt(&what, "%*s%s", LABEL - 2, d->plot->is_of_values ? "value" : "duration",
                  d->frame.length.is_log ? ", logarithmic" : "");
    put_quiet(d, what.data ? what.data : "");
    krait_buf_char(d->to, '\n');
    for (uint32_t row = 0; row < ROWS; row++) {
        uint32_t end = d->columns;
        put_left(d, row);
        while (end && !d->cells[row][end - 1])
            end--;
        for (uint32_t i = 0; i < end; i++) {
            if (d->cells[row][i])
                put_mark(d, d->cells[row][i] - 1u);
            else
                krait_buf_char(d->to, ' ');
        }
        krait_buf_char(d->to, '\n');
    }
}

static void draw_axis(const struct text *d)
{
    double ticks[KRAIT_SCALE_TICKS];
    uint32_t count = krait_scale_ticks(&d->frame.time, d->columns / 14 + 2, ticks), at = 0;
    krait_buf_fmt(d->to, "%*s", LABEL, "");
    for (uint32_t i = 0; i < count; i++) {
        KRAIT_AUTO_BUF label = { 0 };
        uint32_t column = (uint32_t)(krait_scale_at(&d->frame.time, ticks[i]) * d->columns);
        krait_scale_label(&label, ticks[i], "us");
        if (label.failed || column < at || column + label.len > d->columns)
            continue;
        krait_buf_fmt(d->to, "%*s%s", (int)(column - at), "", label.data);
        at = column + (uint32_t)label.len;
    }
    krait_buf_char(d->to, '\n');
    krait_buf_fmt(d->to, "%*s", LABEL + (int)(d->columns - strlen(TIME)), "");
    put_quiet(d, TIME);
    krait_buf_char(d->to, '\n');
}

/* What the bars are of, and what they count. */
static void head_lengths(const struct text *d, uint32_t s)
{
    const char *what = d->plot->is_of_values ? "values by size" : "intervals by duration";
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, d->plot->series[s].name);
    krait_buf_fmt(d->to, "\n%*s", LABEL - 1, "");
    put_mark(d, s);
    krait_buf_char(d->to, ' ');
    krait_width_shorten(d->to, safe.data ? safe.data : "", d->columns / 2, d->look->utf8);
    krait_buf_fmt(d->to, ": %s\n", what);
}

/* Whole ones with all digits that fit the label. */
static void put_edge(const struct text *d, char *text, struct krait_plot_bins bins, uint32_t i)
{
    double edge = krait_plot_edge(&d->frame, bins, i);
    if (bins.width > 0 && edge < 1e9 && edge > -1e8)
        snprintf(text, KRAIT_FMT_SIZE, "%.0f", edge);
    else
        put_value(d, text, edge);
}

/* A bar for each part of the axis of lengths, between the first and the last part that is not empty. */
static void draw_lengths(const struct text *d, uint32_t s)
{
    const struct krait_plot_bins bins = krait_plot_whole_bins(&d->frame, BINS);
    uint64_t counts[BINS], most = 1;
    uint32_t first = BINS, last = 0;
    krait_plot_histogram(&d->frame, &d->plot->series[s], bins, counts);
    for (uint32_t i = 0; i < bins.count; i++) {
        most = KRAIT_MAX(most, counts[i]);
        first = counts[i] ? KRAIT_MIN(first, i) : first;
        last = counts[i] ? i : last;
    }
    head_lengths(d, s);
    for (uint32_t i = first; i <= last && first < BINS; i++) {
        char from[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
        uint32_t width = (uint32_t)((counts[i] * BAR + most - 1) / most);
        put_edge(d, from, bins, i);
        krait_buf_fmt(d->to, "%*s ", LABEL - 1, from);
        krait_buf_str(d->to, d->look->colour ? marks[s % KRAIT_ARRAY_LEN(marks)].code : "");
        for (uint32_t c = 0; c < width; c++)
            krait_buf_str(d->to, d->look->utf8 ? "█" : "#");
        krait_buf_fmt(d->to, "%s %s\n", d->look->colour ? KRAIT_PLAIN : "",
                      krait_fmt_count(count, counts[i]));
    }
}

void krait_plot_text(struct krait_buf *to, const struct krait_plot *plot, const struct krait_table_look *look)
{
    uint32_t width = look->width ? look->width : USUAL_WIDTH;
    width = KRAIT_MIN(KRAIT_MAX(width, (uint32_t)LEAST_WIDTH), (uint32_t)MOST_WIDTH);
    struct text d = {
        .to = to, .plot = plot, .look = look, .frame = krait_plot_frame(plot), .columns = width - LABEL - 1
    };
    fill(&d);
    draw_legend(&d);
    draw_cells(&d);
    draw_axis(&d);
    for (uint32_t s = 0; s < plot->count; s++)
        draw_lengths(&d, s);
}
