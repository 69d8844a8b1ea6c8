/* SPDX-License-Identifier: Apache-2.0
 *
 * Plots: the common part of both pictures, and the SVG.
 */
#include "view/plot.h"

#include "view/flame_text.h"

#include <math.h>
#include <string.h>

extern const char krait_plot_css[];
extern const size_t krait_plot_css_len;

enum { /* pixels */
       WIDTH = 1000,
       LEFT = 78, /* of the axes' labels */
       RIGHT = 24,
       INSIDE = WIDTH - LEFT - RIGHT,
       HEAD = 44,
       LEGEND_ROW = 20,
       HEADING = 26,    /* of an axis on the left */
       OVER_TIME = 300, /* the two pictures' heights */
       LENGTHS = 120,
       BETWEEN = 58,
       FOOT = 40,
       COLUMN = 2, /* of what is folded */
       COLUMNS = INSIDE / COLUMN,
       BARS = 80,
};
enum { COLOURS = 6, NAME_COLUMNS = 70, FOLDED = 2000 /* points from which on columns are drawn */ };

struct krait_plot_frame krait_plot_frame(const struct krait_plot *plot)
{
    struct krait_plot_frame frame = { 0 };
    uint64_t begin = UINT64_MAX, end = 0;
    double least = HUGE_VAL, most = -HUGE_VAL;
    frame.is_whole = true;
    for (uint32_t s = 0; s < plot->count; s++) {
        const struct krait_plot_series *series = &plot->series[s];
        frame.count += series->count;
        for (size_t i = 0; i < series->count; i++) {
            least = KRAIT_MIN(least, series->value[i]);
            most = KRAIT_MAX(most, series->value[i]);
            frame.is_whole = frame.is_whole && floor(series->value[i]) == series->value[i];
            begin = KRAIT_MIN(begin, series->t_ns[i]);
            end = KRAIT_MAX(end, series->end_ns[i]);
        }
    }
    frame.is_of_values = plot->is_of_values;
    least = KRAIT_MIN(least, most);
    most = frame.count ? most : 0;
    frame.length = plot->is_of_values ? krait_scale_values(frame.count ? least : 0, most)
                                      : krait_scale_of((uint64_t)KRAIT_MAX(least, 0), (uint64_t)most);
    frame.time = krait_scale_time(KRAIT_MIN(begin, end), end);
    return frame;
}

struct krait_plot_bins krait_plot_bins(uint32_t count)
{
    return (struct krait_plot_bins){ .count = count };
}

struct krait_plot_bins krait_plot_whole_bins(const struct krait_plot_frame *frame, uint32_t most)
{
    double range = frame->length.high - floor(frame->length.low);
    if (!frame->is_of_values || !frame->is_whole)
        return krait_plot_bins(most);
    double width = krait_scale_round_up(floor(range / most) + 1); /* the greatest has a part too */
    return (struct krait_plot_bins){ .count = (uint32_t)(range / width) + 1, .width = width };
}

double krait_plot_edge(const struct krait_plot_frame *frame, struct krait_plot_bins bins, uint32_t i)
{
    return bins.width > 0 ? floor(frame->length.low) + i * bins.width
                          : krait_scale_value(&frame->length, (double)i / bins.count);
}

void krait_plot_histogram(const struct krait_plot_frame *frame, const struct krait_plot_series *series,
                          struct krait_plot_bins bins, uint64_t *counts)
{
    double low = krait_plot_edge(frame, bins, 0);
    memset(counts, 0, bins.count * sizeof(*counts));
    for (size_t i = 0; i < series->count; i++) {
        double at = bins.width > 0 ? (series->value[i] - low) / bins.width
                                   : krait_scale_at(&frame->length, series->value[i]) * bins.count;
        counts[KRAIT_MIN((uint32_t)KRAIT_MAX(at, 0), bins.count - 1)]++;
    }
}

void krait_plot_label(const struct krait_plot_frame *frame, struct krait_buf *to, double value,
                      const char *micro)
{
    if (frame->is_of_values)
        krait_buf_fmt(to, "%.6g", value);
    else
        krait_scale_label(to, value, micro);
}

/* -- the SVG -- */

struct drawing {
    struct krait_buf *to;
    const struct krait_plot *plot;
    struct krait_plot_frame frame;
    double top; /* of the picture that is drawn */
};

static double x_of(const struct drawing *d, uint64_t t_ns)
{
    return LEFT + INSIDE * krait_scale_at(&d->frame.time, (double)t_ns);
}

static double y_of(const struct drawing *d, double value)
{
    return d->top + OVER_TIME * (1 - krait_scale_at(&d->frame.length, value));
}

static const char *what_of(const struct drawing *d)
{
    return d->plot->is_of_values ? "value" : "duration";
}

/* A duration with all its digits, or a value. */
static void put_value(const struct drawing *d, double value)
{
    if (d->plot->is_of_values)
        krait_buf_fmt(d->to, "%.6g", value);
    else
        krait_text_duration(d->to, (uint64_t)value);
}

static void draw_head(struct drawing *d)
{
    struct krait_buf *to = d->to;
    krait_buf_fmt(to, "<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
    krait_text_xml_raw(to, d->plot->title);
    krait_buf_str(to, "</text>\n");
    d->top = HEAD;
    for (uint32_t s = 0; s < d->plot->count; s++, d->top += LEGEND_ROW) {
        const struct krait_plot_series *series = &d->plot->series[s];
        KRAIT_AUTO_BUF clean = { 0 };
        krait_text_clean(&clean, series->name);
        krait_buf_fmt(to, "<circle class=\"c%u\" cx=\"%d\" cy=\"%.0f\" r=\"4\"/><text x=\"%d\" y=\"%.0f\">",
                      s % COLOURS, LEFT + 5, d->top + 4, LEFT + 16, d->top + 8);
        krait_text_xml_name(to, clean.data ? clean.data : "", NAME_COLUMNS);
        krait_buf_str(to, " <tspan class=\"quiet\">");
        krait_text_count(to, series->count);
        krait_buf_fmt(to, " %s%s, median ", d->plot->is_of_values ? "value" : "interval",
                      series->count == 1 ? "" : "s");
        put_value(d, series->median);
        krait_buf_str(to, "</tspan></text>\n");
    }
    d->top += HEADING;
}

static void open_label(struct krait_buf *to, const char *classes, double x, double y)
{
    krait_buf_fmt(to, "<text class=\"quiet %s\" x=\"%.1f\" y=\"%.1f\">", classes, x, y);
}

/* Labels along the bottom, with lines up to the top if there is a height. */
static void draw_below(const struct drawing *d, const struct krait_scale *scale, double height,
                       const char *what)
{
    double ticks[KRAIT_SCALE_TICKS], bottom = d->top + height;
    uint32_t count = krait_scale_ticks(scale, 11, ticks);
    for (uint32_t i = 0; i < count; i++) {
        double x = LEFT + INSIDE * krait_scale_at(scale, ticks[i]);
        krait_buf_fmt(d->to, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                      d->top, bottom);
        open_label(d->to, "middle", x, bottom + 16);
        if (scale == &d->frame.length)
            krait_plot_label(&d->frame, d->to, ticks[i], "\u00b5s");
        else
            krait_scale_label(d->to, ticks[i], "\u00b5s");
        krait_buf_str(d->to, "</text>\n");
    }
    krait_buf_fmt(d->to,
                  "<line class=\"rule\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                  "<text class=\"quiet end\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                  LEFT, WIDTH - RIGHT, bottom, bottom, WIDTH - RIGHT, bottom + 33, what);
}

static void draw_left(const struct drawing *d)
{
    double ticks[KRAIT_SCALE_TICKS];
    uint32_t count = krait_scale_ticks(&d->frame.length, 8, ticks);
    for (uint32_t i = 0; i < count; i++) {
        double y = y_of(d, ticks[i]);
        krait_buf_fmt(d->to, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                      WIDTH - RIGHT, y, y);
        open_label(d->to, "end", LEFT - 8, y + 4);
        krait_plot_label(&d->frame, d->to, ticks[i], "\u00b5s");
        krait_buf_str(d->to, "</text>\n");
    }
}

/* Draws each as a line from begin to end, with a point at its begin. */
static void draw_each(const struct drawing *d, const struct krait_plot_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        double x = x_of(d, series->t_ns[i]), y = y_of(d, series->value[i]);
        krait_buf_fmt(d->to,
                      "<line class=\"span\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>",
                      x, x_of(d, series->end_ns[i]), y, y, x, y);
        put_value(d, series->value[i]);
        krait_buf_str(d->to, " at ");
        krait_text_duration(d->to, series->t_ns[i]);
        krait_buf_str(d->to, "</title></circle>\n");
    }
}

/* Too many to draw each: draws the minimum and maximum of each column. */
static void draw_folded(const struct drawing *d, const struct krait_plot_series *series)
{
    double least[COLUMNS + 1], most[COLUMNS + 1];
    for (uint32_t i = 0; i <= COLUMNS; i++) {
        least[i] = HUGE_VAL;
        most[i] = -HUGE_VAL;
    }
    for (size_t i = 0; i < series->count; i++) {
        uint32_t column = (uint32_t)(COLUMNS * krait_scale_at(&d->frame.time, (double)series->t_ns[i]));
        least[column] = KRAIT_MIN(least[column], series->value[i]);
        most[column] = KRAIT_MAX(most[column], series->value[i]);
    }
    for (uint32_t i = 0; i <= COLUMNS; i++) {
        if (least[i] > most[i])
            continue;
        double x = LEFT + COLUMN * (i + 0.5), high = y_of(d, most[i]);
        krait_buf_fmt(d->to, "<line class=\"range\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x,
                      x, high - 1, y_of(d, least[i]) + 1);
    }
}

static void draw_over_time(struct drawing *d)
{
    draw_left(d);
    open_label(d->to, "end", LEFT - 8, d->top - 14);
    krait_buf_fmt(d->to, "%s</text>\n", what_of(d));
    draw_below(d, &d->frame.time, OVER_TIME, "time after the start");
    for (uint32_t s = 0; s < d->plot->count; s++) {
        const struct krait_plot_series *series = &d->plot->series[s];
        if (!series->count)
            continue;
        double median = y_of(d, series->median);
        krait_buf_fmt(
            d->to, "<g class=\"c%u\"><line class=\"median\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
            s % COLOURS, LEFT, WIDTH - RIGHT, median, median);
        if (d->frame.count > FOLDED)
            draw_folded(d, series);
        else
            draw_each(d, series);
        krait_buf_str(d->to, "</g>\n");
    }
    d->top += OVER_TIME + BETWEEN;
}

static void draw_lengths(struct drawing *d)
{
    const struct krait_plot_bins bars = krait_plot_bins(BARS);
    uint64_t counts[BARS], most = 1;
    for (uint32_t s = 0; s < d->plot->count; s++) {
        krait_plot_histogram(&d->frame, &d->plot->series[s], bars, counts);
        for (uint32_t i = 0; i < BARS; i++)
            most = KRAIT_MAX(most, counts[i]);
    }
    draw_below(d, &d->frame.length, LENGTHS, what_of(d));
    krait_buf_fmt(d->to, "<text class=\"quiet end\" x=\"%d\" y=\"%.1f\">", LEFT - 8, d->top + 4);
    krait_text_count(d->to, most);
    krait_buf_str(d->to, "</text>\n");
    open_label(d->to, "end", LEFT - 8, d->top - 14);
    krait_buf_fmt(d->to, "%ss</text>\n", d->plot->is_of_values ? "value" : "interval");
    for (uint32_t s = 0; s < d->plot->count; s++) {
        krait_plot_histogram(&d->frame, &d->plot->series[s], bars, counts);
        krait_buf_fmt(d->to, "<g class=\"bars c%u\">\n", s % COLOURS);
        for (uint32_t i = 0; i < BARS; i++) {
            double height = KRAIT_MAX((double)LENGTHS * (double)counts[i] / (double)most, 1.0);
            if (!counts[i])
                continue;
            krait_buf_fmt(d->to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
                          LEFT + (double)INSIDE * i / BARS, d->top + LENGTHS - height,
                          (double)INSIDE / BARS - 0.6, height);
            krait_text_count(d->to, counts[i]);
            krait_buf_str(d->to, " from ");
            put_value(d, krait_plot_edge(&d->frame, bars, i));
            krait_buf_str(d->to, " to ");
            put_value(d, krait_plot_edge(&d->frame, bars, i + 1));
            krait_buf_str(d->to, "</title></rect>\n");
        }
        krait_buf_str(d->to, "</g>\n");
    }
    d->top += LENGTHS + FOOT;
}

static void draw_note(struct drawing *d)
{
    if (!d->plot->note)
        return;
    open_label(d->to, "start", LEFT, d->top + 8);
    krait_text_xml_raw(d->to, d->plot->note);
    krait_buf_str(d->to, "</text>\n");
    d->top += LEGEND_ROW;
}

void krait_plot_svg(struct krait_buf *to, const struct krait_plot *plot)
{
    KRAIT_AUTO_BUF inside = { 0 };
    struct drawing d = { .to = &inside, .plot = plot, .frame = krait_plot_frame(plot) };
    draw_head(&d);
    draw_over_time(&d);
    draw_lengths(&d);
    draw_note(&d);
    krait_buf_fmt(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"plot\" "
        "width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"",
        WIDTH, d.top, WIDTH, d.top);
    krait_text_xml_raw(to, plot->title);
    krait_buf_str(to, "\">\n<style>");
    krait_buf_add(to, krait_plot_css, krait_plot_css_len);
    krait_buf_str(to, "</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
    krait_buf_add(to, inside.data, inside.len);
    krait_buf_str(to, "</svg>\n");
    to->failed |= inside.failed;
}
