/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view`: the timeline of recordings as a picture.
 */
#include "cmd/view.h"
#include "base/fmt.h"
#include "base/outfile.h"
#include "base/shell.h"
#include "cmd/analysis_files.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/progress.h"
#include "cmd/state.h"
#include "cmd/terminal.h"
#include "cmd/title.h"
#include "cmd/within.h"
#include "trace/kernel/kernel.h"
#include "view/flame_text.h"
#include "view/png.h"
#include "view/timeline.h"

#include <string.h>

/* Of a page: bytes; how much of it the timeline may take, in percent; depths that it keeps as long as it has lanes. */
enum { PAGE_MAX = 10 << 20, PAGE_MIN = 1 << 20, TIMELINE_PERCENT = 40, DEPTH_MIN = 8 };

enum { WIDTH = 1400, WIDTH_MAX = 20000, DEPTH = 32, LANES = 40, PNG_SCALE = 2 };

#define AT(field) offsetof(struct view_options, field)

static const struct krait_opt view_opts[] = {
    { "listen", 0, KRAIT_OPT_STR, "ADDRESS", AT(listen),
      "Serve the page at ADDRESS (default: 127.0.0.1, for this machine only)" },
    { "port", 0, KRAIT_OPT_UINT, "N", AT(port), "Serve the page at port N (default: any free one)" },
    { "no-source", 0, KRAIT_OPT_FLAG, NULL, AT(no_source), "With --html: leave out source code" },
    { "no-open", 0, KRAIT_OPT_FLAG, NULL, AT(no_open), "Do not open a browser" },
    { KRAIT_WATCHING_OPTION, 0, KRAIT_OPT_FLAG, NULL, AT(follow), NULL },
    { "svg", 0, KRAIT_OPT_STR, "FILE", AT(svg),
      "Draw the timeline into FILE as SVG instead; - is standard output" },
    { "png", 0, KRAIT_OPT_STR, "FILE", AT(png),
      "Draw the timeline into FILE as PNG instead, at twice the width" },
    { "html", 0, KRAIT_OPT_STR, "FILE", AT(html),
      "Write FILE instead: one page with the timeline, flame graphs and tables, without a server" },
    { "max-size", 0, KRAIT_OPT_SIZE, "SIZE", AT(max_size),
      "With --html: limit the page to SIZE by leaving out rows and lanes (default: 10M)" },
    { "perfetto", 0, KRAIT_OPT_FLAG, NULL, AT(perfetto),
      "Export the trace and open it in Perfetto's page, which the browser loads from ui.perfetto.dev" },
    { "width", 0, KRAIT_OPT_UINT, "PIXELS", AT(width), "Width of the picture (default: 1400)" },
    { "depth", 0, KRAIT_OPT_UINT, "N", AT(depth), "Draw calls up to N deep (default: 32)" },
    { "limit", 0, KRAIT_OPT_STR, "N", AT(limit),
      "Draw at most N threads and tasks, those with the most calls or the most time, 0 for all (default: 40)" },
    { "title", 0, KRAIT_OPT_STR, "TEXT", AT(title), "Set the title (default: the recorded command)" },
    KRAIT_SELECT_OPTS(struct view_options, select),
    KRAIT_SELECT_TO_OPT(struct view_options, select),
    KRAIT_OPTS_END,
};

/* A recording, and what is drawn of it. */
struct drawn {
    struct krait_trace *trace;
    struct krait_wall *wall; /* NULL: nobody says what threads did */
    struct krait_timeline picture;
    bool is_part;             /* the range is not all of it */
    char left[80], whole[80]; /* view_page.left_of_timeline and whole_timeline; empty: all is drawn */
    const char *notes[8];
    const char *const *paths; /* as they were given */
    size_t path_count;
    struct krait_buf folders; /* the same as a shell takes them */
    struct krait_buf text;    /* of the notes, the title and the subtitle, each with its NUL */
};

static void drawn_done(struct drawn *d)
{
    krait_timeline_done(&d->picture);
    krait_wall_free(d->wall);
    krait_trace_close(d->trace);
    krait_buf_done(&d->folders);
    krait_buf_done(&d->text);
}

int krait_view_whole(struct krait_range *out, struct krait_timeline *picture, const struct krait_trace *trace,
                     const struct view_options *o)
{
    const struct krait_kernel_known *known;
    struct krait_range range = { krait_trace_zero(trace), trace->end_ns + 1 };
    if (trace->process_count && !o->select.from)
        range.from_ns = krait_trace_kept(trace);
    bool has_more = trace->has_kernel && (o->select.until || !trace->process_count);
    if (has_more && !krait_trace_kernel_known(trace, &known, NULL))
        range.to_ns = KRAIT_MAX(range.to_ns, (uint64_t)known->states->end_ns + 1);
    *out = range;
    return trace->process_count ? 0 : krait_timeline_find_end(picture, trace, &out->to_ns);
}

static const char *damage_of(const struct drawn *d)
{
    return *d->picture.damage ? d->picture.damage : d->trace->damage;
}

static int set_range(struct drawn *d, const struct view_options *o, struct krait_err *err)
{
    const struct krait_trace *trace = d->trace;
    struct krait_range range = krait_select_range(&o->select, trace), whole;
    if (krait_view_whole(&whole, &d->picture, trace, o))
        return krait_err_set(err, -ENOMEM, "out of memory");
    range.from_ns = KRAIT_MAX(range.from_ns, whole.from_ns);
    range.to_ns = KRAIT_MIN(range.to_ns, whole.to_ns);
    if (whole.from_ns >= whole.to_ns && *damage_of(d))
        return krait_err_set(err, -EBADMSG, "%s", damage_of(d));
    if (range.from_ns >= range.to_ns)
        return krait_err_set(err, -ENODATA, "there is nothing%s", krait_select_scope(&o->select));
    d->is_part = range.from_ns > whole.from_ns || range.to_ns < whole.to_ns;
    d->picture.range = range;
    d->picture.zero_ns = krait_trace_zero(trace);
    return 0;
}

static int fill(struct drawn *d, const struct view_options *o, uint32_t most, struct krait_err *err)
{
    const struct krait_timeline_options options = {
        .depths_max = o->depth ? (uint32_t)KRAIT_MIN(o->depth, (uint64_t)UINT32_MAX) : DEPTH,
        .most = most,
        .is_part = d->is_part,
        .wall = d->wall,
        .take_thread = krait_select_thread,
        .take_track = krait_select_track,
        .ctx = (void *)&o->select,
    };
    return krait_timeline_fill(&d->picture, d->trace, &options, err);
}

/* ---- words ---- */

/* Ends a text in d->text; returns where it begins, counted from the front. */
static size_t end_text(struct drawn *d, size_t begin)
{
    krait_buf_char(&d->text, '\0');
    return begin;
}

static size_t say_title(struct drawn *d)
{
    size_t begin = d->text.len;
    krait_title(&d->text, d->trace, d->paths, d->path_count);
    if (d->text.len == begin)
        krait_buf_str(&d->text, d->folders.data ? d->folders.data : "Timeline");
    return end_text(d, begin);
}

static struct krait_timeline_count add_counts(struct krait_timeline_count a, struct krait_timeline_count b)
{
    return (struct krait_timeline_count){ a.threads + b.threads, a.tasks + b.tasks };
}

/* "4 threads, 12 tasks". */
static void add_lanes(struct krait_buf *to, struct krait_timeline_count lanes)
{
    char count[KRAIT_FMT_SIZE];
    krait_buf_str(to, lanes.threads || !lanes.tasks ? krait_fmt_counted(count, lanes.threads, "thread") : "");
    if (lanes.tasks)
        krait_buf_fmt(to, "%s%s", lanes.threads ? ", " : "", krait_fmt_counted(count, lanes.tasks, "task"));
}

/* Those that are drawn, and those that the limit leaves out. */
static struct krait_timeline_count all_lanes(const struct krait_timeline *picture)
{
    return add_counts(picture->drawn, picture->over_limit);
}

/* "12 calls"; samples do not count them: "one sample each 1.002 ms". */
static const char *count_calls(char text[KRAIT_FMT_SIZE], const struct drawn *d)
{
    char each[KRAIT_FMT_SIZE];
    if (!d->trace->samples.rate)
        return krait_fmt_counted(text, d->picture.calls, "call");
    snprintf(text, KRAIT_FMT_SIZE, "one sample each %.40s",
             krait_fmt_ns(each, d->trace->samples.interval_ns));
    return text;
}

static size_t say_subtitle(struct drawn *d)
{
    size_t begin = d->text.len;
    char count[KRAIT_FMT_SIZE];
    const struct krait_range *range = &d->picture.range;
    krait_text_duration(&d->text, range->to_ns - range->from_ns);
    struct krait_timeline_count lanes = all_lanes(&d->picture);
    if (d->trace->process_count || lanes.threads + lanes.tasks) {
        krait_buf_str(&d->text, " in ");
        add_lanes(&d->text, lanes);
    }
    if (d->trace->process_count)
        krait_buf_fmt(&d->text, " \u00b7 %s", count_calls(count, d));
    return end_text(d, begin);
}

/* What is missing in the picture, a line each; returns where they begin in d->text. */
static size_t say_notes(struct drawn *d)
{
    char count[KRAIT_FMT_SIZE];
    size_t begin = d->text.len;
    if (d->picture.deepest)
        krait_buf_fmt(&d->text, "calls are up to %u deep: --depth draws more of them\n", d->picture.deepest);
    if (d->picture.over_limit.threads)
        krait_buf_fmt(&d->text, "%s %s not drawn: --limit\n",
                      krait_fmt_counted(count, d->picture.over_limit.threads, "thread"),
                      d->trace->process_count && !d->trace->samples.rate ? "with fewer calls"
                                                                         : "that ran less");
    if (d->picture.over_limit.tasks)
        krait_buf_fmt(&d->text, "%s that %s not drawn: --limit\n",
                      krait_fmt_counted(count, d->picture.over_limit.tasks, "task"),
                      d->trace->samples.rate ? "ran less" : "took less time, waits included,");
    krait_ending_notes(&d->text, d->trace, d->picture.range, damage_of(d), "");
    return end_text(d, begin);
}

/* Its lines become texts of their own; what is more than there is room for is left out. */
static void split_notes(struct drawn *d, char *text)
{
    d->picture.notes = d->notes;
    for (char *next; *text && d->picture.note_count < KRAIT_ARRAY_LEN(d->notes); text = next) {
        size_t n = strcspn(text, "\n");
        next = text + n + (text[n] == '\n');
        text[n] = '\0';
        d->notes[d->picture.note_count++] = text;
    }
}

static int say_all(struct drawn *d, const struct view_options *o)
{
    size_t title = say_title(d), subtitle = say_subtitle(d), notes = say_notes(d);
    if (d->text.failed)
        return -ENOMEM;
    split_notes(d, d->text.data + notes);
    d->picture.title = o->title ? o->title : d->text.data + title;
    d->picture.subtitle = d->text.data + subtitle;
    return 0;
}

/* `next`: what the reader may do with it; NULL: nothing is said. */
static void say_written(const char *path, const char *next, size_t bytes, const struct drawn *d)
{
    char calls[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    add_lanes(&text, all_lanes(&d->picture));
    if (d->trace->process_count)
        krait_buf_fmt(&text, ", %s", count_calls(calls, d));
    krait_terminal_say_written("view", path, bytes, text.failed ? NULL : text.data, next);
}

/* ---- all of it ---- */

/* The folders as a shell takes them, for the commands that a page names. */
static void add_folders(struct krait_buf *out, char **folders, int count)
{
    for (int i = 0; i < count; i++) {
        krait_buf_str(out, i ? " " : "");
        krait_shell_file(out, folders[i]);
    }
}

static uint64_t page_max(const struct view_options *o)
{
    return o->max_size ? o->max_size : PAGE_MAX;
}

static int draw_page(struct krait_buf *out, const struct drawn *d, const struct view_options *o,
                     const struct krait_buf *svg, struct krait_err *err)
{
    const struct view_page page = {
        .trace = d->trace,
        .wall = d->wall,
        .select = &o->select,
        .range = d->picture.range,
        .zero_ns = d->picture.zero_ns,
        .title = d->picture.title,
        .folders = d->folders.data ? d->folders.data : "",
        .timeline = svg,
        .left_of_timeline = *d->left ? d->left : NULL,
        .whole_timeline = d->whole,
        .no_source = o->no_source,
        .max_size = page_max(o),
        .notes = d->notes,
        .note_count = d->picture.note_count,
    };
    return krait_view_html(out, &page, err);
}

/* Half of the depths as long as there are many, else half of the lanes; of the last lane half of the depths, at last
 * none. */
static void shrink(struct drawn *d)
{
    uint32_t depths = krait_timeline_depths(&d->picture);
    if (depths > DEPTH_MIN || (d->picture.lane_count < 2 && depths > 1)) {
        krait_timeline_cut(&d->picture, KRAIT_MAX(depths / 2, 1u));
        return;
    }
    krait_timeline_keep(&d->picture, d->picture.lane_count / 2);
}

static void say_left(struct drawn *d, struct krait_timeline_count before, uint32_t depths)
{
    char deep[KRAIT_FMT_SIZE] = "";
    KRAIT_AUTO_BUF lanes = { 0 };
    uint32_t now = krait_timeline_depths(&d->picture);
    struct krait_timeline_count fewer = { before.threads - d->picture.drawn.threads,
                                          before.tasks - d->picture.drawn.tasks };
    if (fewer.threads + fewer.tasks)
        add_lanes(&lanes, fewer);
    if (now < depths)
        snprintf(deep, sizeof(deep), "calls deeper than %u", now);
    snprintf(d->left, sizeof(d->left), "of the timeline: %s%s%s", lanes.len ? lanes.data : "",
             lanes.len && *deep ? ", " : "", deep);
    snprintf(d->whole, sizeof(d->whole), " --svg timeline.svg --limit 0 --depth %u",
             KRAIT_MAX(d->picture.deepest, depths));
}

/* The timeline in a page is bounded, whatever the trace: names of a kilobyte, a thousand lanes. */
static int fit(struct drawn *d, const struct view_options *o, struct krait_buf *svg)
{
    uint32_t lanes = d->picture.lane_count, depths = krait_timeline_depths(&d->picture);
    struct krait_timeline_count drawn = d->picture.drawn;
    uint64_t most = page_max(o) / 100 * TIMELINE_PERCENT;
    while (svg->len > most && d->picture.lane_count) {
        shrink(d);
        krait_buf_clear(svg);
        if (krait_timeline_svg(svg, &d->picture))
            return -ENOMEM;
    }
    if (lanes != d->picture.lane_count || depths != krait_timeline_depths(&d->picture))
        say_left(d, drawn, depths);
    return 0;
}

static int draw(struct drawn *d, const struct view_options *o, struct krait_err *err)
{
    const char *path = o->svg ? o->svg : o->png ? o->png : o->html;
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    KRAIT_AUTO_BUF svg = { 0 };
    int rc = krait_outfile_open(&out, path, err);
    if (rc)
        return rc;
    if (krait_timeline_svg(o->svg ? &out.buf : &svg, &d->picture) || (o->html && fit(d, o, &svg)))
        return krait_err_set(err, -ENOMEM, "out of memory while drawing");
    rc = o->png    ? krait_png_of_svg(&out.buf, &svg, PNG_SCALE, err)
         : o->html ? draw_page(&out.buf, d, o, &svg, err)
                   : 0;
    if (rc)
        return rc;
    size_t bytes = out.buf.len;
    rc = krait_outfile_commit(&out, err);
    if (!rc)
        say_written(path, o->png ? NULL : "open it in a browser", bytes, d);
    return rc;
}

static int make(struct drawn *d, const struct view_options *o, int argc, char **argv, struct krait_err *err)
{
    uint32_t most;
    d->picture.is_part = o->html;
    d->picture.width = o->width ? (uint32_t)o->width : WIDTH;
    int rc = krait_select_limit(&most, o->limit, LANES, err);
    rc = rc ? rc : krait_trace_open(&d->trace, (const char *const *)argv, (size_t)argc, 0, err);
    if (!rc && krait_trace_find_holders(d->trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_select_some(&o->select, d->trace, err);
    rc = rc ? rc : krait_tracks_find(d->trace, err);
    rc = rc ? rc : krait_within((void *)&o->select, d->trace, "view", err);
    rc = rc ? rc : krait_analysis_lanes(&o->select, d->trace, d->trace, "view", NULL, err);
    rc = rc ? rc : set_range(d, o, err);
    rc = rc ? rc : krait_state_wall(&d->wall, d->trace, "view", err);
    if (rc)
        return rc;
    d->paths = (const char *const *)argv;
    d->path_count = (size_t)argc;
    add_folders(&d->folders, argv, argc);
    struct krait_progress progress;
    krait_progress_begin(&progress, "view", d->trace);
    rc = fill(d, o, most, err);
    krait_progress_end(&progress);
    if (!rc && say_all(d, o))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    krait_ending_warn("view", d->trace, d->picture.range, damage_of(d), "");
    if (!d->picture.drawn.threads && !d->picture.drawn.tasks && d->trace->process_count)
        fprintf(stderr, "krait view: warning: no calls were recorded%s\n", krait_select_scope(&o->select));
    return draw(d, o, err);
}

/* Into a file; else a server is asked for. */
static bool draws(const struct view_options *o)
{
    return o->svg || o->png || o->html;
}

static int check_usage(const struct view_options *o, int argc, struct krait_err *err)
{
    if (krait_select_given(KRAIT_SELECT_RECORDING, argc, err))
        return err->code;
    if (o->port > UINT16_MAX)
        return krait_err_set(err, -EINVAL, "--port: %llu is not between 1 and 65535",
                             (unsigned long long)o->port);
    if ((o->svg != NULL) + (o->png != NULL) + (o->html != NULL) > 1)
        return krait_err_set(err, -EINVAL, "--svg, --png and --html exclude each other");
    if ((o->no_source || o->max_size) && !o->html)
        return krait_err_set(err, -EINVAL, "%s needs --html", o->no_source ? "--no-source" : "--max-size");
    if (o->max_size && o->max_size < PAGE_MIN)
        return krait_err_set(err, -EINVAL, "--max-size: a page needs 1M at least");
    if (o->perfetto && (draws(o) || o->listen || o->port))
        return krait_err_set(
            err, -EINVAL,
            "--perfetto does not go with --svg, --png, --html, --listen and --port: Perfetto's page "
            "asks 127.0.0.1:9001 alone");
    if (draws(o) && (o->listen || o->port || o->no_open))
        return krait_err_set(
            err, -EINVAL,
            "--svg, --png and --html do not go with --listen, --port and --no-open, which are for the server");
    if (o->width && (o->width < KRAIT_TIMELINE_WIDTH_MIN || o->width > WIDTH_MAX))
        return krait_err_set(err, -EINVAL, "--width: %llu is not between %d and %d",
                             (unsigned long long)o->width, KRAIT_TIMELINE_WIDTH_MIN, WIDTH_MAX);
    return krait_select_check(&o->select, err);
}

static int run(void *values, int argc, char **argv)
{
    struct view_options *o = values;
    struct krait_err err = { 0 };
    int status = 0;
    KRAIT_CLEANUP(drawn_done) struct drawn d = { 0 };
    o->select.shows_analyses = o->select.tells_analyses = true;
    if (check_usage(o, argc, &err))
        status = krait_cmd_usage(&krait_cmd_view, &err);
    else if (draws(o)      ? make(&d, o, argc, argv, &err)
             : o->perfetto ? krait_view_perfetto(o, argv, (size_t)argc, &err)
                           : krait_view_serve(o, argv, (size_t)argc, &err))
        status = krait_cmd_fail(&krait_cmd_view, &err);
    krait_select_done(&o->select);
    return status;
}

const struct krait_cmd krait_cmd_view = {
    .name = "view",
    .operands = "DIR...",
    .summary = "Show the timeline in a browser, or draw it",
    .description =
        "Serves a page that shows the threads of recordings over time. Each thread has a lane with its calls by "
        "depth, and above them what the thread was doing, if the kernel (krait record --kernel) or waits for the "
        "GIL were recorded. Other lanes show CPUs, system calls and marks. For any range of time, the page has a "
        "function table, a flame graph and the single calls. krait view also opens LTTng's kernel and function "
        "traces, and other CTF traces.\n\n"
        "krait prints the page's link and opens a browser if there is one. Without --listen, only this machine can "
        "reach the page, and nobody without the link.\n\n"
        "With -f, lanes that declared analyses describe stand above the others: intervals, states and signals "
        "(docs/analyses.md).\n\n"
        "With --svg, krait draws the timeline into a file instead. --from, --until and --within show a part of the "
        "time; the page opens with that part selected, and has the rest as well.\n\n"
        "Calls that are too short for the picture are folded into lower boxes, which are darker the busier they "
        "are. They show exact sums, not samples. Zoom in to unfold them.",
    .examples = "krait view krait-app\n"
                "# On a machine without a screen: the link works through ssh -L 8080:127.0.0.1:8080\n"
                "krait view krait-app --port 8080 --no-open\n"
                "# A picture\n"
                "krait view krait-app --svg timeline.svg\n"
                "# Everything in one file, to send to somebody\n"
                "krait view krait-app --html report.html\n"
                "# With lanes for system calls, and for what a file of one's own declares\n"
                "krait view krait-app -f syscalls -f ./orders.toml\n"
                "# Open the page where the slowest call of load was\n"
                "krait view krait-app --within load:slowest\n"
                "# Ten milliseconds of one thread\n"
                "krait view krait-app --svg part.svg --thread MainThread --from 1.2s --until 1.21s\n",
    .opts = view_opts,
    .values_size = sizeof(struct view_options),
    .run = run,
};
