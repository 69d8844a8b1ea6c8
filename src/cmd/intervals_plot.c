/* SPDX-License-Identifier: Apache-2.0
 *
  * `krait intervals --plot` and `--graph`: durations over time, and states.
 */
#include "base/fmt.h"
#include "base/outfile.h"
#include "cmd/intervals.h"
#include "cmd/terminal.h"
#include "view/graph.h"
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

/* A picture, which becomes a PNG where the suffix says so. */
static int write_file(const struct krait_buf *picture, const char *path, struct krait_err *err)
{
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    char size[KRAIT_FMT_SIZE];
    int rc =
        picture->failed ? krait_err_set(err, -ENOMEM, "out of memory") : krait_outfile_open(&out, path, err);
    if (rc)
        return rc;
    if (has_suffix(path, ".png"))
        rc = krait_png_of_svg(&out.buf, picture, PNG_SCALE, err);
    else
        krait_buf_add(&out.buf, picture->data, picture->len);
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
    if (strcmp(path, "-") != 0) {
        KRAIT_AUTO_BUF svg = { 0 };
        krait_plot_svg(&svg, &plotted.plot);
        return write_file(&svg, path, intervals->err);
    }
    krait_buf_char(&intervals->out, '\n');
    krait_plot_text(&intervals->out, &plotted.plot, &intervals->look);
    return 0;
}

/* -- states -- */

/* The rows of states are the nodes; a state's node is found by its rule and key. */
static uint32_t node_of(const struct krait_intervals *found, uint32_t rule, uint32_t key)
{
    uint32_t i = 0;
    while (i < found->row_count && (found->rows[i].rule != rule || found->rows[i].key != key))
        i++;
    return i;
}

static void fill_graph(const struct intervals *intervals, struct krait_graph_node *nodes,
                       struct krait_graph_arrow *arrows)
{
    const struct krait_intervals *found = &intervals->of.found;
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct krait_interval_row *row = &found->rows[i];
        const char *key = krait_intervals_key(&intervals->of, row->key);
        nodes[i] = (struct krait_graph_node){ key ? key : krait_intervals_name(intervals, row), row->total_ns,
                                              row->starts };
    }
    for (uint32_t i = 0; i < found->transition_count; i++) {
        const struct krait_transition *of = &found->transitions[i];
        arrows[i] = (struct krait_graph_arrow){ node_of(found, of->rule, of->from),
                                                node_of(found, of->rule, of->to), of->count };
    }
}

int krait_intervals_graph(struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    const char *path = intervals->options->graph;
    KRAIT_AUTO_FREE struct krait_graph_node *nodes = calloc((size_t)found->row_count + 1, sizeof(*nodes));
    KRAIT_AUTO_FREE struct krait_graph_arrow *arrows =
        calloc((size_t)found->transition_count + 1, sizeof(*arrows));
    KRAIT_AUTO_BUF picture = { 0 };
    if (!nodes || !arrows)
        return krait_err_set(intervals->err, -ENOMEM, "out of memory");
    if (!found->transition_count)
        return krait_err_set(intervals->err, -ENODATA, "no state follows another: there is nothing to draw");
    fill_graph(intervals, nodes, arrows);
    const struct krait_graph graph = { nodes, arrows, found->row_count, found->transition_count };
    if (has_suffix(path, ".dot"))
        krait_graph_dot(&picture, &graph);
    else
        krait_graph_svg(&picture, &graph);
    return write_file(&picture, path, intervals->err);
}
