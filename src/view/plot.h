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
 * Whatever the number of durations, all of them are in it: where they are more than the picture's columns, each column
 * shows the least and the greatest of its own.
 */
#ifndef KRAIT_VIEW_PLOT_H
#define KRAIT_VIEW_PLOT_H

#include "view/scale.h"
#include "view/table.h"

struct krait_plot_series {
    const char *name;              /* untrusted */
    const uint64_t *t_ns, *end_ns; /* when each begins and ends, after the plot's zero */
    const double *value;           /* how long it lasts, in ns; or a value that holds from begin to end */
    size_t count;
    double median;
};

struct krait_plot {
    const char *title; /* untrusted */
    const struct krait_plot_series *series;
    uint32_t count;
    bool is_of_values; /* any numbers; else durations */
};

/* What both pictures are drawn by. */
struct krait_plot_frame {
    struct krait_scale time, length;
    size_t count; /* of all series */
    bool is_of_values;
};
struct krait_plot_frame krait_plot_frame(const struct krait_plot *plot);

/* counts[i]: how many of a series' durations are in the i-th of `bins` equal parts of the axis of lengths. */
void krait_plot_histogram(const struct krait_plot_frame *frame, const struct krait_plot_series *series,
                          uint64_t *counts, uint32_t bins);

/* A duration as an axis has it, or a value; see krait_scale_label. */
void krait_plot_label(const struct krait_plot_frame *frame, struct krait_buf *to, double value,
                      const char *micro);

/* Append the picture (check to->failed). */
void krait_plot_svg(struct krait_buf *to, const struct krait_plot *plot);
void krait_plot_text(struct krait_buf *to, const struct krait_plot *plot,
                     const struct krait_table_look *look);

#endif
