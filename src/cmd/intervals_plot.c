/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals --plot`: durations over time, and how many there are of each.
 */
#include "base/fmt.h"
#include "base/outfile.h"
#include "cmd/intervals.h"
#include "cmd/terminal.h"
#include "view/plot.h"
#include "view/png.h"

#include <string.h>

enum { PNG_SCALE = 2 };

/* What the plot points into. */
struct plotted {
    struct krait_plot plot;
    struct krait_plot_series *series;
    uint64_t *t_ns, *ns; /* of all intervals, a row's one after the other */
    struct krait_arena names;
};

static void plotted_done(struct plotted *plotted)
{
    free(plotted->series);
    free(plotted->t_ns);
    free(plotted->ns);
    krait_arena_done(&plotted->names);
}

static const char *series_name(struct plotted *plotted, const struct intervals *intervals,
                               const struct krait_interval_row *row)
{
    const char *name = krait_intervals_name(intervals, row),
               *key = krait_intervals_key(&intervals->of, row->key);
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "%s%s%s", name, key ? " " : "", key ? key : "");
    return text.failed ? NULL : krait_arena_strdup(&plotted->names, text.data);
}

static int fill(struct plotted *plotted, const struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    plotted->series = calloc((size_t)found->row_count + 1, sizeof(*plotted->series));
    plotted->t_ns = malloc((found->count + 1) * sizeof(*plotted->t_ns));
    plotted->ns = malloc((found->count + 1) * sizeof(*plotted->ns));
    if (!plotted->series || !plotted->t_ns || !plotted->ns)
        return -ENOMEM;
    for (size_t i = 0; i < found->count; i++) {
        const struct krait_interval *interval = &found->items[i];
        plotted->t_ns[i] = interval->begin_ns - KRAIT_MIN(intervals->of.zero_ns, interval->begin_ns);
        plotted->ns[i] = interval->end_ns - interval->begin_ns;
    }
    for (size_t i = 0, at = 0; i < found->row_count; at += found->rows[i++].count) {
        plotted->series[i] =
            (struct krait_plot_series){ .name = series_name(plotted, intervals, &found->rows[i]),
                                        .t_ns = plotted->t_ns + at,
                                        .ns = plotted->ns + at,
                                        .count = found->rows[i].count,
                                        .median_ns = found->rows[i].median_ns };
        if (!plotted->series[i].name)
            return -ENOMEM;
    }
    plotted->plot =
        (struct krait_plot){ .title = "Intervals", .series = plotted->series, .count = found->row_count };
    return 0;
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && strcmp(path + n - m, suffix) == 0;
}

static int write_file(const struct krait_plot *plot, const char *path, struct krait_err *err)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    KRAIT_AUTO_BUF svg = { 0 };
    char size[KRAIT_FMT_SIZE];
    int rc = krait_outfile_open(&out, path, err);
    if (rc)
        return rc;
    krait_plot_svg(&svg, plot);
    if (svg.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (has_suffix(path, ".png"))
        rc = krait_png_of_svg(&out.buf, &svg, PNG_SCALE, err);
    else
        krait_buf_add(&out.buf, svg.data, svg.len);
    size_t bytes = out.buf.len;
    rc = rc ? rc : krait_outfile_commit(&out, err);
    if (rc)
        return rc;
    fputs("krait intervals: wrote ", stderr);
    krait_terminal_safe(stderr, path);
    fprintf(stderr, " (%s)\n", krait_fmt_bytes(size, bytes));
    return 0;
}

int krait_intervals_plot(struct intervals *intervals)
{
    const char *path = intervals->options->plot;
    KRAIT_CLEANUP(plotted_done) struct plotted plotted = { 0 };
    if (fill(&plotted, intervals))
        return krait_err_set(intervals->err, -ENOMEM, "out of memory");
    if (!intervals->of.found.count)
        return krait_err_set(intervals->err, -ENODATA, "there is no interval to plot");
    if (strcmp(path, "-") != 0)
        return write_file(&plotted.plot, path, intervals->err);
    krait_buf_char(&intervals->out, '\n');
    krait_plot_text(&intervals->out, &plotted.plot, &intervals->look);
    return 0;
}
