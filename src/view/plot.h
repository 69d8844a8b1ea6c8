/* SPDX-License-Identifier: Apache-2.0
 *
 * A plot of durations or of values: over time, and how many there are of each length below. As an SVG picture that stands alone, or
 * in characters for a terminal.
 *
 *     400 us ┤ •   •    •  •   •  • •
 *     100 us ┤
 *      20 us ┤   + +  +    + +   +  +
 *            └───────────────────────────
 *             0        2 ms       4 ms
 *
 * The plot contains all durations, however many there are. If there are more than the picture has columns, each column
 * shows the minimum and maximum of its durations.
 */
#ifndef KRAIT_VIEW_PLOT_H
#define KRAIT_VIEW_PLOT_H

#include "view/scale.h"
#include "view/table.h"

struct krait_plot_series {
    const char *name;              /* untrusted */
    const uint64_t *t_ns, *end_ns; /* begin and end of each, in ns after the plot's zero */
    const double *value;           /* its duration in ns, or a value that holds from begin to end */
    size_t count;
    double median;
};

struct krait_plot {
    const char *title; /* untrusted */
    const struct krait_plot_series *series;
    uint32_t count;
    const char *note;  /* below a picture, in ASCII; NULL: none */
    bool is_of_values; /* any numbers; otherwise durations */
};

/* The layout that both pictures share. */
struct krait_plot_frame {
    struct krait_scale time, length;
    size_t count; /* of all series */
    bool is_of_values;
    bool is_whole; /* all are whole numbers */
};
struct krait_plot_frame krait_plot_frame(const struct krait_plot *plot);

/* The parts of a histogram. */
struct krait_plot_bins {
    uint32_t count;
    /* A part holds numbers from its edge up to the next, which is so far off; 0: equal parts of the axis of lengths. */
    double width;
};
/* The axis of lengths in `count` equal parts. */
struct krait_plot_bins krait_plot_bins(uint32_t count);
/* The same, at most `most` parts; if all values are whole, the edges are too. */
struct krait_plot_bins krait_plot_whole_bins(const struct krait_plot_frame *frame, uint32_t most);
/* Where the i-th part begins. */
double krait_plot_edge(const struct krait_plot_frame *frame, struct krait_plot_bins bins, uint32_t i);

/* Sets counts[i] to the number of a series' durations or values in the i-th part. */
void krait_plot_histogram(const struct krait_plot_frame *frame, const struct krait_plot_series *series,
                          struct krait_plot_bins bins, uint64_t *counts);

/* The label of a duration or a value on an axis; see krait_scale_label. */
void krait_plot_label(const struct krait_plot_frame *frame, struct krait_buf *to, double value,
                      const char *micro);

/* Append the picture (check to->failed). */
void krait_plot_svg(struct krait_buf *to, const struct krait_plot *plot);
enum { KRAIT_PLOT_SIGNS = 6 }; /* of a plot in characters: of more series, some have the same sign */
void krait_plot_text(struct krait_buf *to, const struct krait_plot *plot,
                     const struct krait_table_look *look);

#endif
