/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes in a terminal: a row for each participant, time from left to right, as many columns as fit, and an axis
 * below.
 *
 *     MainThread 41   █▃                       ▂███
 *     worker 43         █████░░░████    ▂▅████▇
 *     disk                          ████▆
 *                     0    2 ms    4 ms    6 ms  7.31
 *     █ running  ░ ready to run  █ waited for
 *
 * If a column belongs to a row only in part, its height shows the share.
 */
#ifndef KRAIT_VIEW_LANE_H
#define KRAIT_VIEW_LANE_H

#include "view/table.h"

/* The look of a stretch of a row, with the words for the legend. If the glyph is a block, its height shows the
 * share; other glyphs are drawn whatever the share. */
struct krait_lane_style {
    const char *words;
    const char *glyph; /* one column, UTF-8 */
    char ascii;        /* the same for terminals without UTF-8; '#' is a block */
    const char *code;  /* for colour: "32" */
};

struct krait_lane_span {
    uint64_t begin_ns, end_ns;
    uint32_t row;
    uint32_t style; /* index */
};

struct krait_lane_chart {
    const char *const *rows; /* name of each row, without control characters */
    uint32_t row_count;
    const struct krait_lane_style *styles;
    uint32_t style_count;
    const struct krait_lane_span *spans; /* in any order; krait cuts them at the range */
    uint32_t span_count;
    uint64_t begin_ns, end_ns; /* the left end and the right */
};

/* Appends the lanes, the axis, which counts from the left end, and a legend of the styles that occur. A look without
 * a width takes 100 columns. Returns 0 or -ENOMEM. */
int krait_lane_chart_print(const struct krait_lane_chart *lanes, const struct krait_table_look *look,
                           struct krait_buf *out);

#endif
