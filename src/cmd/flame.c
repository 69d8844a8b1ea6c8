/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait flame`: the call tree of recordings as an interactive flame graph, one file of SVG or HTML.
 */
#include "view/flame.h"
#include "analysis/idle.h"
#include "base/fmt.h"
#include "base/outfile.h"
#include "cmd/cmds.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/flame_folded.h"
#include "cmd/omitted.h"
#include "cmd/progress.h"
#include "cmd/select.h"
#include "cmd/state.h"
#include "cmd/terminal.h"
#include "cmd/title.h"
#include "cmd/within.h"
#include "view/flame_text.h"

#include <math.h>
#include <string.h>

struct flame_options {
    const char *output, *title, *by, *unit, *color, *order, *min_width, *state, *folded_unit;
    struct krait_select select;
    struct krait_opt_list diff;
    bool icicle, inverted, reverse, fold_imports, idle, compensate;
    uint64_t width, max_frames;
};

#define AT(field) offsetof(struct flame_options, field)

static const struct krait_opt flame_opts[] = {
    { "output", 'o', KRAIT_OPT_STR, "FILE", AT(output),
      "Write to FILE: .svg, or .html for a page; - is standard output (default: flame.svg)" },
    { "diff", 0, KRAIT_OPT_LIST, "DIR", AT(diff),
      "Compare with the recording DIR: width is the time in this recording, colour the change of its share; "
      "may be repeated" },
    { "color", 0, KRAIT_OPT_CHOICE, "module|layer", AT(color),
      "Colour frames by package or by layer (default: module)" },
    { "unit", 0, KRAIT_OPT_CHOICE, "time|calls", AT(unit),
      "Make frames as wide as their time or as their number of calls (default: time)" },
    { "order", 0, KRAIT_OPT_CHOICE, "size|name|call", AT(order),
      "Order siblings by size, widest first, by name, or by first call (default: size)" },
    { "by", 0, KRAIT_OPT_CHOICE, "thread|process", AT(by), "Draw one tower for each thread or process" },
    { "reverse", 'r', KRAIT_OPT_FLAG, NULL, AT(reverse),
      "Reverse the stacks: functions by self time at the root, their callers on top" },
    { "fold-imports", 0, KRAIT_OPT_FLAG, NULL, AT(fold_imports),
      "Draw Python's import machinery as one frame <import>" },
    { "state", 0, KRAIT_OPT_STR, KRAIT_STATE_CHOICES, AT(state),
      "Draw only the time in these states, separated by commas; needs a recording made with --kernel "
      "(gil does not), or with --sample, which has cpu, gil and other" },
    { "idle", 0, KRAIT_OPT_FLAG, NULL, AT(idle),
      "Draw a server's idle waits too: event loops, accept, workers at an empty queue, joins" },
    { "compensate", 0, KRAIT_OPT_FLAG, NULL, AT(compensate), KRAIT_COMPENSATE_HELP },
    { "folded-unit", 0, KRAIT_OPT_CHOICE, KRAIT_FOLDED_UNITS, AT(folded_unit),
      "Unit of the numbers in a file of folded stacks (default: samples; us if Austin wrote the file)" },
    { "icicle", 0, KRAIT_OPT_FLAG, NULL, AT(icicle),
      "Put the root on top and grow downwards (default for graphs of more than 200 rows)" },
    { "inverted", 'i', KRAIT_OPT_FLAG, NULL, AT(inverted), "Do the same as --icicle" },
    { "title", 0, KRAIT_OPT_STR, "TEXT", AT(title), "Set the title (default: the recorded command)" },
    { "width", 0, KRAIT_OPT_UINT, "PIXELS", AT(width),
      "Set a fixed width (default: the width of the window)" },
    { "min-width", 0, KRAIT_OPT_STR, "PIXELS", AT(min_width),
      "Leave out narrower frames until they are zoomed into (default: 0.5)" },
    { "max-frames", 0, KRAIT_OPT_UINT, "N", AT(max_frames),
      "Keep the N widest frames and sum up the others (default: 200000)" },
    KRAIT_SELECT_OPTS(struct flame_options, select),
    KRAIT_SELECT_TO_OPT(struct flame_options, select),
    KRAIT_OPTS_END,
};

static uint32_t taken_threads(const struct flame_options *o, const struct krait_trace *trace)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < trace->thread_count; i++)
        n += krait_select_thread((void *)&o->select, trace, i);
    return n;
}

/* Threads of one process lie one after the other; a process may have none. */
static uint32_t taken_processes(const struct flame_options *o, const struct krait_trace *trace)
{
    uint32_t n = 0, last = KRAIT_NO_ID;
    if (!o->select.threads.count && !o->select.processes.count)
        return trace->process_count;
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        if (trace->threads[i].process == last || !krait_select_thread((void *)&o->select, trace, i))
            continue;
        last = trace->threads[i].process;
        n++;
    }
    return n;
}

/* A recording and its call tree. */
struct source {
    const char *path; /* the first, of several that are one */
    struct krait_trace *trace;
    struct krait_calltree *tree;
    struct krait_wall *wall; /* for --state; NULL without */
    bool counts_samples;     /* of a file of folded stacks */
    bool corrected;          /* what recording took is taken off */
};

static void source_done(struct source *source)
{
    krait_calltree_free(source->tree);
    krait_wall_free(source->wall);
    krait_trace_close(source->trace);
}

static int source_open(struct source *source, const struct flame_options *o, const char *const *paths,
                       size_t count, struct krait_err *err)
{
    source->path = paths[0];
    if (krait_folded_is_file(paths[0]))
        return krait_flame_folded_open(&source->tree, &source->trace, &source->counts_samples, paths[0],
                                       o->folded_unit, err);
    unsigned alone = o->state || o->diff.count ? 0 : KRAIT_CALLS_ALONE;
    int rc = krait_trace_open(&source->trace, paths, count, KRAIT_NEEDS_CALLS | alone, err);
    if (!rc && krait_trace_find_holders(source->trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_select *select = (void *)&o->select;
    select->sums_parts = true;
    rc = rc ? rc : krait_within(select, source->trace, "flame", err);
    rc = rc ? rc : krait_select_some(&o->select, source->trace, err);
    /* of a comparison, time on the CPU where it is known */
    bool wanted = o->state || (o->diff.count && source->trace && source->trace->has_kernel);
    if (!rc && wanted && krait_state_wall(&source->wall, source->trace, "flame", err))
        rc = krait_err_prefix(err, err->code, "%s", source->path);
    return rc;
}

/* `states`: those that are drawn; 0: all. */
static int source_tree(struct source *source, const struct flame_options *o, uint32_t states,
                       struct krait_err *err)
{
    int rc = krait_cost_compensate(o->compensate, source->trace, &source->corrected, err);
    if (rc)
        return krait_err_prefix(err, rc, "%s", source->path);
    struct krait_calltree_options options = {
        .range = krait_select_range(&o->select, source->trace),
        .ranges = &o->select.parts,
        .group = !o->by          ? KRAIT_TREE_MERGED
                 : *o->by == 't' ? KRAIT_TREE_BY_THREAD
                                 : KRAIT_TREE_BY_PROCESS,
        .fold_imports = o->fold_imports,
        .take_thread = krait_select_thread,
        .ctx = (void *)&o->select,
        .corrected = source->corrected,
        .wall = states ? source->wall : NULL,
        .states = states,
    };
    KRAIT_AUTO_FREE uint8_t *idle = NULL;
    if (!o->idle && krait_idle_marks(&idle, source->trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    options.idle = idle;
    struct krait_progress progress;
    krait_progress_begin(&progress, "flame", source->trace);
    rc = krait_calltree_new(&source->tree, source->trace, &options, err);
    krait_progress_end(&progress);
    KRAIT_AUTO_BUF whose = { 0 };
    if (o->diff.count)
        krait_ending_whose(&whose, source->path);
    if (!rc)
        krait_ending_warn("flame", source->trace, options.range,
                          *source->trace->damage ? source->trace->damage : source->tree->damage,
                          whose.data ? whose.data : "");
    return rc;
}

/* What is drawn: one recording; or repeats of two, those of --diff behind the others. */
struct drawn {
    struct source *sources;
    uint32_t count, after; /* all, and those that are not of --diff */
    uint32_t states;       /* that are drawn; 0: all */
    uint32_t clocked;      /* how many tell the time on CPU */
    bool is_folded;        /* files of folded stacks */
    struct krait_buf time; /* "time", "time on CPU" */
};

static const char *time_text(const struct drawn *drawn)
{
    return drawn->time.data ? drawn->time.data : "";
}

static void drawn_done(struct drawn *drawn)
{
    for (uint32_t i = 0; drawn->sources && i < drawn->count; i++)
        source_done(&drawn->sources[i]);
    free(drawn->sources);
    krait_buf_done(&drawn->time);
}

static int open_all(struct drawn *drawn, const struct flame_options *o, char **paths, size_t count,
                    struct krait_err *err)
{
    int rc = 0;
    if (!o->diff.count && !drawn->is_folded)
        return source_open(&drawn->sources[0], o, (const char *const *)paths, count, err);
    for (uint32_t i = 0; i < drawn->count && !rc; i++) {
        const char *path = i < drawn->after ? paths[i] : o->diff.items[i - drawn->after];
        rc = source_open(&drawn->sources[i], o, &path, 1, err);
    }
    return rc;
}

static int choose_states(struct drawn *drawn, const struct flame_options *o, struct krait_err *err)
{
    int rc = o->state ? krait_state_parse(o->state, &drawn->states, err) : 0;
    for (uint32_t i = 0; i < drawn->count && !rc; i++) {
        const struct krait_wall *wall = drawn->sources[i].wall;
        drawn->clocked += wall && krait_wall_has_kernel(wall);
        if (o->state && krait_state_check(wall, drawn->states, err))
            rc = krait_err_prefix(err, err->code, "%s", drawn->sources[i].path);
    }
    if (!o->state && o->diff.count && drawn->clocked == drawn->count)
        drawn->states = 1u << KRAIT_WALL_ON_CPU;
    krait_buf_str(&drawn->time, drawn->states ? "time " : "time");
    krait_state_words(&drawn->time, drawn->states);
    return rc;
}

static int drawn_open(struct drawn *drawn, const struct flame_options *o, char **paths, size_t count,
                      struct krait_err *err)
{
    drawn->is_folded = krait_folded_is_file(paths[0]);
    drawn->after = o->diff.count || drawn->is_folded ? (uint32_t)count : 1;
    drawn->count = drawn->after + (uint32_t)o->diff.count;
    drawn->sources = calloc(drawn->count, sizeof(*drawn->sources));
    int rc = drawn->sources ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : open_all(drawn, o, paths, count, err);
    rc = rc ? rc : choose_states(drawn, o, err);
    for (uint32_t i = 0; i < drawn->count && !drawn->is_folded && !rc; i++)
        rc = source_tree(&drawn->sources[i], o, drawn->states, err);
    return rc;
}

/* Of the recordings from `from` up to `to`. */
static uint64_t lost_events(const struct drawn *drawn, uint32_t from, uint32_t to)
{
    uint64_t n = 0;
    for (uint32_t r = from; r < to; r++) {
        const struct krait_trace *trace = drawn->sources[r].trace;
        for (uint32_t i = 0; i < trace->lost_count; i++)
            n += drawn->states || !trace->lost[i].of_kernel ? trace->lost[i].count : 0;
    }
    return n;
}

static void counted(struct krait_buf *to, uint64_t n, const char *one, const char *many)
{
    krait_text_count(to, n);
    krait_buf_fmt(to, " %s", n == 1 ? one : many);
}

static void add_lost(struct krait_buf *to, const char *before, uint64_t events)
{
    if (!events)
        return;
    krait_buf_str(to, before);
    counted(to, events, "event lost", "events lost");
}

/* "1,204 samples in 311 frames of perf.folded". */
static void folded_subtitle(struct krait_buf *to, const struct flame_options *o, const struct drawn *drawn,
                            const struct krait_flame *flame)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < flame->count; i++)
        total += drawn->sources[0].counts_samples ? flame->nodes[i].side[0].calls
                                                  : flame->nodes[i].side[0].self_ns;
    if (drawn->sources[0].counts_samples)
        counted(to, total, "sample", "samples");
    else
        krait_text_duration(to, total);
    krait_buf_fmt(to, " \u00b7 folded stacks of %s", krait_flame_folded_name(drawn->sources[0].path));
    if (drawn->after > 1)
        krait_buf_fmt(to, " and %u more", drawn->after - 1);
    if (o->diff.count)
        krait_buf_fmt(to, " \u00b7 compared with %s", o->diff.items[0]);
}

/* "2.31 s on CPU in 4 threads of 2 processes · 1,204,331 calls · recorded over 1.02 s". */
static void subtitle(struct krait_buf *to, const struct flame_options *o, const struct drawn *drawn,
                     const struct krait_flame *flame)
{
    const struct source *source = &drawn->sources[0];
    const struct krait_trace *trace = source->trace;
    uint64_t total_ns = 0, calls = 0;
    if (drawn->is_folded) {
        folded_subtitle(to, o, drawn, flame);
        return;
    }
    for (uint32_t i = 0; i < flame->count; i++) {
        total_ns += flame->nodes[i].side[0].self_ns;
        calls += flame->nodes[i].side[0].calls;
    }
    krait_text_duration(to, total_ns);
    krait_buf_fmt(to, "%s in ", time_text(drawn) + strlen("time"));
    counted(to, taken_threads(o, trace), "thread", "threads");
    krait_buf_str(to, " of ");
    counted(to, taken_processes(o, trace), "process", "processes");
    krait_buf_str(to, " \u00b7 ");
    if (trace->samples.rate)
        counted(to, trace->samples.taken, "sample", "samples");
    else
        counted(to, calls, "call", "calls");
    krait_buf_str(to, " \u00b7 recorded over ");
    krait_text_duration(to, trace->end_ns - krait_trace_kept(trace));
    if (o->select.from || o->select.until)
        krait_buf_fmt(to, ", here from %s to %s", o->select.from ? o->select.from : "the start",
                      o->select.until ? o->select.until : "the end");
    if (source->tree->idle_ns) {
        krait_buf_str(to, " \u00b7 without ");
        krait_text_duration(to, source->tree->idle_ns);
        krait_buf_str(to, " of idle waits");
    }
    if (source->corrected) {
        krait_buf_str(to, " \u00b7 recording cost taken off: ");
        krait_cost_words(to, trace);
    }
    if (o->diff.count)
        krait_buf_fmt(to, " \u00b7 compared with %s", o->diff.items[0]);
    if (drawn->count > 2)
        krait_buf_fmt(to, ", means of %u and %u recordings", drawn->after, drawn->count - drawn->after);
    add_lost(to, " \u00b7 incomplete: ", lost_events(drawn, 0, drawn->after));
    add_lost(to, " \u00b7 the other is incomplete: ", lost_events(drawn, drawn->after, drawn->count));
}

static int build(struct krait_flame **flame, const struct flame_options *o,
                 const struct krait_flame_options *options, const struct drawn *drawn, struct krait_err *err)
{
    int rc = krait_flame_new(flame, drawn->sources[0].tree, drawn->sources[0].trace, err);
    for (uint32_t i = 1; i < drawn->count && !rc; i++)
        rc = (i < drawn->after ? krait_flame_add_repeat : krait_flame_add_other)(
            *flame, drawn->sources[i].tree, drawn->sources[i].trace, err);
    if (!rc && o->diff.count)
        rc = krait_flame_judge(*flame, options->unit, err);
    if (!rc && o->reverse)
        rc = krait_flame_reverse(flame, err);
    return rc;
}

/* ".svg"; "" where the file's name has none, or is hidden. */
static const char *extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? dot : "";
}

static bool is_html(const char *path)
{
    return strcasecmp(extension(path), ".html") == 0 || strcasecmp(extension(path), ".htm") == 0;
}

static int check_output(const char *path, struct krait_err *err)
{
    const char *ext = extension(path);
    if (!*ext || strcasecmp(ext, ".svg") == 0 || is_html(path))
        return 0;
    return krait_err_set(err, -EINVAL, "-o %s: flame graphs are written as .svg or .html, not as %s", path,
                         ext);
}

static void say_written(const char *path, size_t bytes, const struct krait_flame *flame,
                        const struct krait_select *select)
{
    KRAIT_AUTO_BUF text = { 0 };
    counted(&text, flame->count - 1, "frame", "frames");
    if (flame->count == 1)
        krait_buf_fmt(&text, ": no calls were recorded%s", krait_select_scope(select));
    if (flame->dropped) {
        krait_buf_str(&text, ", with ");
        counted(&text, flame->dropped, "smaller one summed up (--max-frames)",
                "smaller ones summed up (--max-frames)");
    }
    krait_terminal_say_written("flame", path, bytes, text.failed ? NULL : text.data, "open it in a browser");
}

static void tell_idle(uint64_t ns)
{
    char text[KRAIT_FMT_SIZE];
    krait_terminal_say(
        NULL, 0,
        "krait flame: left out %s of a server's idle waits (event loops, accept, workers at an empty queue, "
        "joins); --idle draws them",
        krait_fmt_ns(text, ns));
}

/* What was compared, and what can be told of it. */
static void tell_compared(const struct flame_options *o, const struct drawn *drawn, bool judged)
{
    char compared[KRAIT_STATE_COMPARED_SIZE];
    if (drawn->is_folded)
        fprintf(stderr, "krait flame: %s compared\n",
                drawn->sources[0].counts_samples ? "samples are" : "times are");
    else if (o->unit && *o->unit == 'c')
        fputs("krait flame: calls are compared\n", stderr);
    else if (o->state)
        krait_terminal_say(NULL, 0, "krait flame: %s is compared", time_text(drawn));
    else if (drawn->states)
        fputs("krait flame: time on the CPU is compared\n", stderr);
    else
        krait_terminal_say(NULL, 0, "krait flame: %s",
                           krait_state_wall_compared(compared, drawn->clocked, drawn->count));
    if (judged)
        fputs("krait flame: grey frames changed no more than by chance (95% confidence)\n", stderr);
    else
        krait_terminal_say(
            NULL, 0,
            o->reverse && drawn->count > 3
                ? "krait flame: --reverse does not show which changes may be chance"
                : "krait flame: one recording cannot tell a change from chance: give several of "
                  "each, as in krait flame new1 new2 --diff old1 --diff old2");
}

static void tell_governed(const struct drawn *drawn)
{
    for (uint32_t i = 0; i < drawn->count; i++) {
        const struct krait_trace *trace = drawn->sources[i].trace;
        if (trace->omitted_count || krait_omitted_paused(trace)) {
            fputs("krait flame: some recordings were made with --max-overhead, which dropped functions or "
                  "paused: "
                  "changes may come from that\n",
                  stderr);
            return;
        }
    }
}

enum { UPRIGHT_ROWS = 200 }; /* a taller picture has its root on the first screen only as an icicle */

static uint32_t deepest(const struct krait_flame *flame)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < flame->count; i++)
        depth = KRAIT_MAX(depth, flame->nodes[i].depth);
    return depth;
}

/* What the host took is in the time on the CPU. */
static int tell_stolen(const struct flame_options *o, const struct drawn *drawn, struct krait_err *err)
{
    for (uint32_t i = 0; i < drawn->count && drawn->states >> KRAIT_WALL_ON_CPU & 1; i++) {
        const struct source *source = &drawn->sources[i];
        KRAIT_AUTO_BUF note = { 0 };
        struct krait_state_stolen stolen;
        if (krait_state_stolen(&stolen, source->trace, krait_select_range(&o->select, source->trace),
                               &o->select.parts))
            return krait_err_set(err, -ENOMEM, "out of memory");
        krait_state_note_stolen(&note, &stolen);
        if (note.len)
            krait_terminal_say(NULL, 0, "krait flame: %s%s%.*s", drawn->count > 1 ? source->path : "",
                               drawn->count > 1 ? ": " : "", (int)note.len - 1, note.data);
    }
    return 0;
}

static int draw(const struct flame_options *o, struct krait_flame_options *options, const struct drawn *drawn,
                struct krait_flame *flame, struct krait_err *err)
{
    const struct source *this_one = &drawn->sources[0];
    const char *path = o->output ? o->output : "flame.svg";
    KRAIT_AUTO_BUF title = { 0 };
    KRAIT_AUTO_BUF sub = { 0 };
    KRAIT_AUTO_OUTFILE out = KRAIT_OUTFILE_INIT;
    const char *scope = krait_select_scope(&o->select);
    if (drawn->time.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (*scope && !o->state && flame->count == 1)
        return krait_err_set(err, -ENODATA, "no calls were recorded%s", scope);
    krait_title(&title, this_one->trace, (const char *const *)&this_one->path, 1);
    if (!title.len)
        krait_buf_str(&title, drawn->is_folded ? krait_flame_folded_name(this_one->path) : "Flame graph");
    subtitle(&sub, o, drawn, flame);
    int rc = title.failed || sub.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
    rc = rc ? rc : krait_flame_finish(flame, options, err);
    if (rc)
        return rc;
    options->icicle |= deepest(flame) > UPRIGHT_ROWS;
    options->title = o->title ? o->title : title.data;
    options->subtitle = sub.data ? sub.data : "";
    options->time = time_text(drawn);
    rc = krait_outfile_open(&out, path, err);
    if (rc)
        return rc;
    (is_html(path) ? krait_flame_html : krait_flame_svg)(&out.buf, flame, options);
    if (out.buf.failed)
        return krait_err_set(err, -ENOMEM, "out of memory while drawing");
    size_t bytes = out.buf.len;
    rc = krait_outfile_commit(&out, err);
    if (!rc && o->diff.count) {
        tell_compared(o, drawn, flame->judged);
        tell_governed(drawn);
    }
    if (!rc && o->state && !this_one->tree->nodes[0].total_ns)
        krait_terminal_say(NULL, 0, "krait flame: there is no time in state %s%s", o->state,
                           krait_select_scope(&o->select));
    if (!rc && flame->count == 1 && strcmp(path, "-") == 0)
        fprintf(stderr, "krait flame: warning: no calls were recorded%s\n", krait_select_scope(&o->select));
    rc = rc ? rc : tell_stolen(o, drawn, err);
    if (!rc && this_one->tree->idle_ns)
        tell_idle(this_one->tree->idle_ns);
    if (!rc && strcmp(path, "-") != 0)
        say_written(path, bytes, flame, &o->select);
    return rc;
}

static bool parse_pixels(const char *text, double *pixels)
{
    char *end;
    *pixels = strtod(text, &end);
    return end > text && !*end && isfinite(*pixels) && *pixels >= 0;
}

static struct krait_flame_options drawing_options(const struct flame_options *o)
{
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.unit = o->unit && *o->unit == 'c' ? KRAIT_FLAME_CALLS : KRAIT_FLAME_TIME;
    options.color = o->color && *o->color == 'l' ? KRAIT_FLAME_BY_LAYER : KRAIT_FLAME_BY_MODULE;
    options.order = !o->order || *o->order == 's' ? KRAIT_FLAME_ORDER_SIZE
                    : *o->order == 'n'            ? KRAIT_FLAME_ORDER_NAME
                                                  : KRAIT_FLAME_ORDER_FIRST_CALL;
    options.icicle = o->icicle || o->inverted;
    options.fixed_width = o->width != 0;
    options.other = o->diff.count ? o->diff.items[0] : "";
    if (o->width)
        options.width = (uint32_t)o->width;
    if (o->min_width)
        parse_pixels(o->min_width, &options.min_width);
    if (o->max_frames)
        options.max_frames = (uint32_t)KRAIT_MIN(o->max_frames, (uint64_t)10000000);
    return options;
}

/* Folded stacks have neither times nor threads to choose from, and are not drawn together with recordings. */
static int check_kinds(const struct flame_options *o, int argc, char **argv, struct krait_err *err)
{
    const struct {
        bool is_set;
        const char *name;
    } unfit[] = {
        { o->by, "by" },
        { o->state, "state" },
        { o->unit, "unit" },
        { o->fold_imports, "fold-imports" },
        { o->select.from, "from" },
        { o->select.until, "until" },
        { o->select.within, "within" },
        { o->select.threads.count, "thread" },
        { o->select.processes.count, "process" },
    };
    size_t all = (size_t)argc + o->diff.count;
    bool folded = krait_folded_is_file(argv[0]);
    for (size_t i = 1; i < all; i++) {
        const char *path = i < (size_t)argc ? argv[i] : o->diff.items[i - (size_t)argc];
        if (krait_folded_is_file(path) != folded)
            return krait_err_set(
                err, -EINVAL, "%s is a recording, %s is a file of folded stacks: they are not drawn together",
                folded ? path : argv[0], folded ? argv[0] : path);
    }
    if (!folded && o->folded_unit)
        return krait_err_set(err, -EINVAL, "--folded-unit: %s is no file of folded stacks", argv[0]);
    for (size_t i = 0; folded && i < KRAIT_ARRAY_LEN(unfit); i++) {
        if (unfit[i].is_set)
            return krait_err_set(err, -EINVAL, "--%s needs a recording; %s is a file of folded stacks",
                                 unfit[i].name, argv[0]);
    }
    return 0;
}

static int check_usage(const struct flame_options *o, int argc, char **argv, struct krait_err *err)
{
    if (krait_select_given(KRAIT_SELECT_RECORDING, argc, err))
        return err->code;
    if (o->width && (o->width < 200 || o->width > 100000))
        return krait_err_set(err, -EINVAL, "--width: %llu is not between 200 and 100000",
                             (unsigned long long)o->width);
    double pixels;
    if (o->min_width && !parse_pixels(o->min_width, &pixels))
        return krait_err_set(err, -EINVAL, "--min-width: '%s' is not a width in pixels", o->min_width);
    if (o->diff.count && o->by)
        return krait_err_set(
            err, -EINVAL,
            "--diff cannot be used with --by: two recordings have no threads or processes in common");
    uint32_t states;
    if (o->state && o->unit && *o->unit == 'c')
        return krait_err_set(err, -EINVAL, "--state does not go with --unit calls: states are of time");
    int rc = o->output ? check_output(o->output, err) : 0;
    rc = rc || !o->state ? rc : krait_state_parse(o->state, &states, err);
    if (!rc && o->diff.count && o->select.within)
        rc = krait_err_set(err, -EINVAL, "--within does not go with --diff");
    rc = rc ? rc : check_kinds(o, argc, argv, err);
    return rc ? rc : krait_select_check(&o->select, err);
}

/* Samples and times have no common measure. */
static int measure_folded(const struct drawn *drawn, struct krait_flame_options *options,
                          struct krait_err *err)
{
    const struct source *first = &drawn->sources[0];
    for (uint32_t i = 1; i < drawn->count; i++) {
        if (drawn->sources[i].counts_samples != first->counts_samples)
            return krait_err_set(err, -EINVAL,
                                 "%s counts samples, %s has times: --folded-unit says what both are",
                                 first->counts_samples ? first->path : drawn->sources[i].path,
                                 first->counts_samples ? drawn->sources[i].path : first->path);
    }
    options->unit = first->counts_samples ? KRAIT_FLAME_CALLS : KRAIT_FLAME_TIME;
    options->measures = first->counts_samples ? KRAIT_FLAME_SAMPLES : KRAIT_FLAME_TIME_ALONE;
    return 0;
}

static bool has_samples(const struct drawn *drawn)
{
    uint32_t i = 0;
    while (i < drawn->count && !drawn->sources[i].trace->samples.rate)
        i++;
    return i < drawn->count;
}

/* Of recordings: there are times alone. */
static int measure_samples(struct krait_flame_options *options, struct krait_err *err)
{
    options->measures = KRAIT_FLAME_TIME_ALONE;
    return options->unit == KRAIT_FLAME_CALLS
               ? krait_err_set(err, -ENODATA,
                               "--unit calls: samples do not tell how often functions were called")
               : 0;
}

static int make(struct flame_options *o, int argc, char **argv, struct krait_err *err)
{
    struct krait_flame_options options = drawing_options(o);
    KRAIT_CLEANUP(drawn_done) struct drawn drawn = { 0 };
    struct krait_flame *flame = NULL;
    int rc = drawn_open(&drawn, o, argv, (size_t)argc, err);
    if (!rc && drawn.is_folded)
        rc = measure_folded(&drawn, &options, err);
    else if (!rc && has_samples(&drawn))
        rc = measure_samples(&options, err);
    rc = rc ? rc : build(&flame, o, &options, &drawn, err);
    rc = rc ? rc : draw(o, &options, &drawn, flame, err);
    krait_flame_free(flame);
    return rc;
}

static int run(void *values, int argc, char **argv)
{
    struct flame_options *o = values;
    struct krait_err err = { 0 };
    int status = 0;
    if (check_usage(o, argc, argv, &err)) {
        status = krait_cmd_usage(&krait_cmd_flame, &err);
    } else if (make(o, argc, argv, &err)) {
        status = krait_cmd_fail(&krait_cmd_flame, &err);
    }
    krait_opt_list_done(&o->diff);
    krait_select_done(&o->select);
    return status;
}

const struct krait_cmd krait_cmd_flame = {
    .name = "flame",
    .operands = "DIR|FILE...",
    .summary = "Draw a flame graph",
    .description =
        "Draws an interactive flame graph of a recording, or of a function trace of LTTng. Each frame is a "
        "function, as wide as its time; the "
        "functions that it called stand on it. The file needs nothing else: it is an SVG image, or a page "
        "with -o x.html. In a browser, click a frame to zoom, press / to search by regular expression, and ? "
        "to list all keys.\n\n"
        "With --diff OTHER, widths are those of DIR. Red frames have a larger share of the time than in "
        "OTHER, blue frames a smaller one. krait compares on-CPU time if every recording has it (krait "
        "record --kernel), and wall time otherwise. With several recordings on each side, krait draws their "
        "means and leaves changes that may be chance grey.\n\n"
        "A FILE of folded stacks is drawn too, as py-spy, Austin, and FlameGraph's stackcollapse programs write "
        "them, and krait export --to folded; - is standard input.",
    .examples = "krait flame krait-app -o app.svg\n"
                "# The functions with the most self time, and who calls them\n"
                "krait flame krait-app --reverse --icicle -o app.html\n"
                "# What changed since yesterday's recording\n"
                "krait flame today --diff yesterday -o change.svg\n"
                "# The same with two recordings on each side, to tell changes from chance\n"
                "krait flame new1 new2 --diff old1 --diff old2 -o change.svg\n"
                "# What py-spy record --format raw -o app.folded wrote\n"
                "krait flame app.folded -o app.svg\n",
    .opts = flame_opts,
    .values_size = sizeof(struct flame_options),
    .run = run,
};
