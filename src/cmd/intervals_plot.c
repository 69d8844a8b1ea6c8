/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals --plot` and `--graph`: durations over time, and states.
 */
#include "analysis/rule_lanes.h"
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
    uint64_t *t_ns, *end_ns; /* of all intervals or values, a row's one after the other */
    double *value;
    size_t count;
    struct krait_arena names;
};

static void plotted_done(struct plotted *plotted)
{
    free(plotted->series);
    free(plotted->t_ns);
    free(plotted->end_ns);
    free(plotted->value);
    krait_arena_done(&plotted->names);
}

static int make_room(struct plotted *plotted, uint32_t series, size_t count)
{
    plotted->count = count;
    plotted->series = calloc((size_t)series + 1, sizeof(*plotted->series));
    plotted->t_ns = malloc((count + 1) * sizeof(*plotted->t_ns));
    plotted->end_ns = malloc((count + 1) * sizeof(*plotted->end_ns));
    plotted->value = malloc((count + 1) * sizeof(*plotted->value));
    return plotted->series && plotted->t_ns && plotted->end_ns && plotted->value ? 0 : -ENOMEM;
}

/* A row whose first entry is the `at`-th. */
static int add_series(struct plotted *plotted, const struct intervals *intervals, uint32_t rule, uint32_t of,
                      size_t at, size_t count, double median)
{
    const char *name = intervals->rules.items[rule].name, *key = krait_intervals_key(&intervals->of, of);
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "%s%s%s", name, key ? " " : "", key ? key : "");
    plotted->series[plotted->plot.count++] =
        (struct krait_plot_series){ .name =
                                        text.failed ? NULL : krait_arena_strdup(&plotted->names, text.data),
                                    .t_ns = plotted->t_ns + at,
                                    .end_ns = plotted->end_ns + at,
                                    .value = plotted->value + at,
                                    .count = count,
                                    .median = median };
    return plotted->series[plotted->plot.count - 1].name ? 0 : -ENOMEM;
}

static int fill_intervals(struct plotted *plotted, const struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    int rc = make_room(plotted, found->row_count, found->count);
    for (size_t i = 0; i < found->count && !rc; i++) {
        const struct krait_interval *interval = &found->items[i];
        plotted->value[i] = (double)(interval->end_ns - interval->begin_ns);
        plotted->t_ns[i] = interval->begin_ns - KRAIT_MIN(intervals->of.zero_ns, interval->begin_ns);
        plotted->end_ns[i] = plotted->t_ns[i] + (interval->end_ns - interval->begin_ns);
    }
    for (size_t i = 0, at = 0; i < found->row_count && !rc; at += found->rows[i++].count)
        rc = add_series(plotted, intervals, found->rows[i].rule, found->rows[i].key, at, found->rows[i].count,
                        (double)found->rows[i].median_ns);
    return rc;
}

static int fill_signals(struct plotted *plotted, const struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    const uint64_t zero_ns = intervals->of.zero_ns;
    int rc = make_room(plotted, found->signal_count, found->sample_count);
    for (size_t i = 0; i < found->sample_count && !rc; i++) {
        const struct krait_sample *sample = &found->samples[i], *next = sample + 1;
        bool holds = i + 1 < found->sample_count && next->row == sample->row;
        plotted->value[i] = sample->value;
        plotted->t_ns[i] = sample->t_ns - KRAIT_MIN(zero_ns, sample->t_ns);
        plotted->end_ns[i] = holds ? next->t_ns - KRAIT_MIN(zero_ns, next->t_ns) : plotted->t_ns[i];
    }
    for (size_t i = 0, at = 0; i < found->signal_count && !rc; at += found->signals[i++].count)
        rc = add_series(plotted, intervals, found->signals[i].rule, found->signals[i].key, at,
                        found->signals[i].count, found->signals[i].median);
    return rc;
}

/* The name and the key of a row. */
static struct intervals_label label_of(const struct intervals *intervals, bool is_of_values, uint32_t i)
{
    const struct krait_intervals *found = &intervals->of.found;
    uint32_t rule = is_of_values ? found->signals[i].rule : found->rows[i].rule;
    uint32_t key = is_of_values ? found->signals[i].key : found->rows[i].key;
    return (struct intervals_label){ intervals->rules.items[rule].name,
                                     krait_intervals_key(&intervals->of, key) };
}

/* The table's label has the row's texts themselves; without a column for keys, one name is one row. */
static bool is_row(struct intervals_label shown, struct intervals_label row)
{
    return shown.name == row.name && (!shown.key || shown.key == row.key);
}

/* Leaves the first rows of the table, in its order. */
static int take_shown(struct plotted *plotted, struct intervals *intervals, uint32_t most)
{
    uint32_t all = plotted->plot.count, count = KRAIT_MIN(most, intervals->shown_count), n = 0;
    struct krait_plot_series *taken = calloc((size_t)all + 1, sizeof(*taken));
    if (!taken)
        return -ENOMEM;
    for (uint32_t k = 0; k < intervals->shown_count && n < count; k++) {
        for (uint32_t i = 0; i < all && n < count; i++) {
            if (is_row(intervals->shown[k], label_of(intervals, plotted->plot.is_of_values, i)))
                taken[n++] = plotted->series[i];
        }
    }
    free(plotted->series);
    plotted->plot.series = plotted->series = taken;
    plotted->plot.count = n;
    return 0;
}

static void note_taken(struct intervals *intervals, uint32_t taken, uint32_t all)
{
    if (taken < intervals->shown_count)
        krait_buf_fmt(
            &intervals->notes,
            "the plot has the first %u of %u rows, one for each sign; --sort puts others first, --plot "
            "FILE.svg%s draws all\n",
            taken, all, intervals->shown_count < all ? " --limit 0" : "");
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
    if (!rc)
        krait_terminal_say_written("intervals", path, bytes, NULL, NULL);
    return rc;
}

/* A picture of some of all the rows, the number of others below it. */
static int draw_file(struct krait_plot *plot, uint32_t all, const char *path, struct krait_err *err)
{
    KRAIT_AUTO_BUF svg = { 0 };
    char note[96];
    snprintf(note, sizeof(note), "%u of %u rows are not drawn; --limit 0 draws all, --sort puts others first",
             all - plot->count, all);
    plot->note = plot->count < all ? note : NULL;
    krait_plot_svg(&svg, plot);
    plot->note = NULL;
    return write_file(&svg, path, err);
}

int krait_intervals_plot(struct intervals *intervals)
{
    const char *path = intervals->options->plot;
    KRAIT_CLEANUP(plotted_done) struct plotted plotted = { 0 };
    bool is_of_values = krait_intervals_of_kind(intervals, KRAIT_RULE_SIGNAL);
    if (is_of_values ? fill_signals(&plotted, intervals) : fill_intervals(&plotted, intervals))
        return krait_err_set(intervals->err, -ENOMEM, "out of memory");
    if (!plotted.count)
        return krait_err_set(intervals->err, -ENODATA, "there is no %s to plot",
                             is_of_values ? "value" : "interval");
    plotted.plot.title = is_of_values ? "Signals" : "Intervals";
    plotted.plot.series = plotted.series;
    plotted.plot.is_of_values = is_of_values;
    bool is_file = strcmp(path, "-") != 0;
    uint32_t all = plotted.plot.count;
    if (take_shown(&plotted, intervals, is_file ? UINT32_MAX : KRAIT_PLOT_SIGNS))
        return krait_err_set(intervals->err, -ENOMEM, "out of memory");
    if (is_file)
        return draw_file(&plotted.plot, all, path, intervals->err);
    note_taken(intervals, plotted.plot.count, all);
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
                                              row->starts, false };
    }
    for (uint32_t i = 0; i < found->transition_count; i++) {
        const struct krait_transition *of = &found->transitions[i];
        arrows[i] = (struct krait_graph_arrow){ node_of(found, of->rule, of->from),
                                                node_of(found, of->rule, of->to), of->count };
    }
}

/* States that no other follows last until the end, as in the view's lanes. */
static void add_open(const struct intervals *intervals, struct krait_graph_node *nodes)
{
    const struct krait_intervals *found = &intervals->of.found;
    const struct krait_trace *trace = intervals->of.trace;
    uint64_t until_ns = krait_select_range(&intervals->options->select, trace).to_ns;
    uint64_t end_ns = KRAIT_MIN(krait_stays_end(found, trace), until_ns);
    for (size_t i = 0; i < found->stay_count; i++) {
        const struct krait_stay *stay = &found->stays[i];
        uint32_t node = node_of(found, stay->rule, stay->state);
        if (stay->end_ns != UINT64_MAX || node == found->row_count)
            continue;
        nodes[node].ns += end_ns - KRAIT_MIN(stay->begin_ns, end_ns);
        nodes[node].is_open = true;
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
    add_open(intervals, nodes);
    const struct krait_graph graph = { nodes, arrows, found->row_count, found->transition_count };
    if (has_suffix(path, ".dot"))
        krait_graph_dot(&picture, &graph);
    else
        krait_graph_svg(&picture, &graph);
    return write_file(&picture, path, intervals->err);
}
