/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view --html`: the sums that the page has beside the timeline.
 */
#include "analysis/gil_states.h"
#include "base/fmt.h"
#include "cmd/view.h"
#include "view/flame.h"
#include "view/page_tables.h"

#include <string.h>

enum {
    ROWS = 200,         /* of the function table */
    THREADS = 100,      /* of the table of threads */
    SOURCES = 20,       /* functions */
    FRAMES = 2000,      /* of the first flame graph, for each megabyte of the page; of the others a quarter */
    HALVES_MAX = 15,    /* of all these, as long as the page is too large */
    FLAME_HEIGHT = 800, /* pixels; more of it scrolls */
};

/* The flame graphs of a page. */
static const struct flame_kind {
    const char *title, *time; /* time: see krait_flame_options */
    uint32_t states;          /* bits by enum krait_wall_state; 0: all, also where none is known */
    bool reversed;
} flame_kinds[] = {
    { "Time by call stack", "time", 0, false },
    { "Self time, and who called it", "time", 0, true },
    { "Time on CPU", "time on CPU", 1u << KRAIT_WALL_ON_CPU, false },
    { "Time off CPU: ready or waiting", "time off CPU", ~(1u << KRAIT_WALL_ON_CPU | 1u << KRAIT_WALL_UNKNOWN),
      false },
};
enum { FLAMES = KRAIT_ARRAY_LEN(flame_kinds) };

struct sums {
    struct krait_profile *functions, *threads;
    struct krait_track_sums tracks;
    struct krait_calltree *trees[FLAMES]; /* NULL: no such flame graph, or it uses the tree of the first */
};

static void sums_done(struct sums *sums)
{
    for (uint32_t i = 0; i < FLAMES; i++)
        krait_calltree_free(sums->trees[i]);
    krait_profile_free(sums->threads);
    krait_profile_free(sums->functions);
    krait_track_sums_done(&sums->tracks);
}

/* ---- what is left out ---- */

struct left {
    struct krait_page_left items[16];
    uint32_t count;
    const struct krait_select *select;
};

/* The same range as the page's. */
static void leave(struct left *left, const char *verb, const char *options, const char *what)
{
    struct krait_page_left *item = &left->items[left->count++];
    const struct krait_select *s = left->select;
    snprintf(item->what, sizeof(item->what), "%s", what);
    snprintf(item->options, sizeof(item->options), "%s%s%s%s%s", options, s->from ? " --from " : "",
             s->from ? s->from : "", s->until ? " --until " : "", s->until ? s->until : "");
    item->verb = verb;
}

/* `of`: what they are rows of; may be empty. */
static void leave_some(struct left *left, const char *verb, const char *options, uint64_t count,
                       const char *one, const char *of)
{
    char counted[KRAIT_FMT_SIZE], what[KRAIT_FMT_SIZE + 64];
    if (!count)
        return;
    snprintf(what, sizeof(what), "%s%s", krait_fmt_counted(counted, count, one), of);
    leave(left, verb, options, what);
}

/* Rows of the tables of states and their like. */
static void leave_rows(struct left *left, const struct krait_page *drawn)
{
    const struct krait_page_sum_rows rows = krait_page_count_sums(drawn);
    const struct {
        uint32_t count;
        const char *verb, *options, *of;
    } tables[] = {
        { rows.threads, "states", " --by thread --limit 0", " of states of threads" },
        { rows.cpus, "view", "", " of CPUs" },
        { rows.syscalls, "states", " --by syscall --limit 0", " of system calls" },
        { rows.gil, "view", "", " of waits for the GIL" },
        { rows.counters, "view", "", " of counters" },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(tables); i++)
        leave_some(left, tables[i].verb, tables[i].options,
                   tables[i].count - KRAIT_MIN(drawn->thread_rows, tables[i].count), "more row",
                   tables[i].of);
}

static void list_left(struct left *left, const struct view_page *page, const struct krait_page *drawn,
                      uint32_t nodes)
{
    leave(left, "view", "", "each call and state at any zoom: short ones are folded into exact sums here");
    leave(left, "cat", "", "single events");
    if (page->left_of_timeline)
        leave(left, "view", page->whole_timeline, page->left_of_timeline);
    leave_some(left, "report", " --limit 0",
               drawn->profile->count - KRAIT_MIN(drawn->rows, drawn->profile->count), "more function", "");
    leave_some(left, "report", " --by thread --limit 0",
               drawn->threads->count - KRAIT_MIN(drawn->thread_rows, drawn->threads->count), "more thread",
               "");
    leave_rows(left, drawn);
    leave_some(left, "flame", " -o flame.svg", nodes, "node", " of the flame graph, the smallest");
    leave(left, "view", "", page->no_source ? "source (--no-source)" : "source of more functions");
}

/* ---- the page ---- */

/* The height that a picture says of itself, for the frame around it. */
static uint32_t height_of(const struct krait_buf *html)
{
    static const char key[] = "<svg ", height[] = " height=\"";
    const char *svg = html->data ? strstr(html->data, key) : NULL;
    const char *value = svg ? strstr(svg, height) : NULL;
    unsigned long pixels = value ? strtoul(value + sizeof(height) - 1, NULL, 10) : 0;
    return (uint32_t)KRAIT_MIN(KRAIT_MAX(pixels, 100ul), (unsigned long)FLAME_HEIGHT) + 8;
}

/* What a page has at most: halved until it is small enough. */
struct bounds {
    uint32_t rows, threads, sources, frames;
};

static struct bounds bounds_of(const struct view_page *page, uint32_t halves)
{
    uint32_t more = halves > 4 ? halves - 4 : 0; /* frames first */
    return (struct bounds){
        .rows = KRAIT_MAX(ROWS >> more, 1),
        .threads = KRAIT_MAX(THREADS >> more, 1),
        .sources = page->no_source ? 0 : SOURCES >> more,
        .frames = KRAIT_MAX((uint32_t)KRAIT_MIN(page->max_size >> 20, 1000ull) * FRAMES >> halves, 10),
    };
}

static int draw_flame(struct krait_buf *html, struct krait_flame *flame, const struct flame_kind *kind,
                      const struct krait_trace *trace, uint32_t frames, struct krait_err *err)
{
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.icicle = true;
    options.max_frames = frames;
    options.title = kind->title;
    options.time = kind->time;
    options.measures = trace->samples.rate ? KRAIT_FLAME_TIME_ALONE : KRAIT_FLAME_TIME_AND_CALLS;
    int rc = krait_flame_finish(flame, &options, err);
    if (rc)
        return rc;
    krait_flame_html(html, flame, &options);
    return html->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* `dropped`: nodes that are not drawn. */
static int flame_of(struct krait_page_flame *out, const struct krait_calltree *tree,
                    const struct flame_kind *kind, const struct view_page *page, uint32_t frames,
                    uint32_t *dropped, struct krait_err *err)
{
    struct krait_flame *flame = NULL;
    out->title = kind->title;
    int rc = krait_flame_new(&flame, tree, page->trace, err);
    if (!rc && kind->reversed)
        rc = krait_flame_reverse(&flame, err);
    rc = rc ? rc : draw_flame(&out->html, flame, kind, page->trace, frames, err);
    if (!rc) {
        out->height = height_of(&out->html);
        *dropped = flame->dropped;
    }
    krait_flame_free(flame);
    return rc;
}

struct flames {
    struct krait_page_flame items[FLAMES];
    uint32_t count, dropped; /* dropped: of the first */
};

static void flames_done(struct flames *flames)
{
    for (uint32_t i = 0; i < FLAMES; i++)
        krait_buf_done(&flames->items[i].html);
}

static int draw_flames(struct flames *flames, const struct view_page *page, const struct sums *sums,
                       uint32_t frames, struct krait_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < FLAMES && !rc; i++) {
        const struct krait_calltree *tree = flame_kinds[i].reversed ? sums->trees[0] : sums->trees[i];
        uint32_t dropped;
        if (!tree)
            continue;
        rc = flame_of(&flames->items[flames->count++], tree, &flame_kinds[i], page,
                      i ? KRAIT_MAX(frames / 4, 10u) : frames, &dropped, err);
        if (!rc && i == 0)
            flames->dropped = dropped;
    }
    return rc;
}

static int put_with(struct krait_buf *out, const struct view_page *page, const struct sums *sums,
                    const struct bounds *bounds, struct krait_err *err)
{
    KRAIT_CLEANUP(flames_done) struct flames flames = { 0 };
    struct left left = { .select = page->select };
    int rc = draw_flames(&flames, page, sums, bounds->frames, err);
    if (rc)
        return rc;
    struct krait_page drawn = {
        .trace = page->trace,
        .profile = sums->functions,
        .threads = sums->threads,
        .sums = &sums->tracks,
        .rows = bounds->rows,
        .thread_rows = bounds->threads,
        .sources = bounds->sources,
        .range = page->range,
        .zero_ns = page->zero_ns,
        .title = page->title,
        .folders = page->folders,
        .timeline = page->timeline,
        .flames = flames.items,
        .flame_count = flames.count,
        .notes = page->notes,
        .note_count = page->note_count,
        .left = left.items,
    };
    list_left(&left, page, &drawn, flames.dropped);
    drawn.left_count = left.count;
    krait_page_html(out, &drawn);
    return out->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int put_page(struct krait_buf *out, const struct view_page *page, const struct sums *sums,
                    struct krait_err *err)
{
    size_t before = out->len;
    int rc = 0;
    for (uint32_t halves = 0; halves <= HALVES_MAX && !rc; halves++) {
        struct bounds bounds = bounds_of(page, halves);
        out->len = before;
        rc = put_with(out, page, sums, &bounds, err);
        if (out->len - before <= page->max_size)
            break;
    }
    return rc;
}

static int make_trees(struct sums *sums, const struct view_page *page, struct krait_err *err)
{
    bool has_states = page->wall && krait_wall_has_states(page->wall);
    int rc = 0;
    for (uint32_t i = 0; i < FLAMES && !rc; i++) {
        const struct krait_calltree_options options = { .range = page->range,
                                                        .take_thread = krait_select_thread,
                                                        .ctx = (void *)page->select,
                                                        .wall = flame_kinds[i].states ? page->wall : NULL,
                                                        .states = flame_kinds[i].states };
        if (!flame_kinds[i].reversed && (has_states || !flame_kinds[i].states))
            rc = krait_calltree_new(&sums->trees[i], page->trace, &options, err);
    }
    return rc;
}

/* Of the threads that were recorded, where there are some: not of the rest of the machine. */
static bool takes_track(void *select, const struct krait_trace *trace, const struct krait_track *track)
{
    return !krait_track_is_of_others(trace, track) && krait_select_track(select, trace, track);
}

static int sum_tracks(struct krait_track_sums *sums, const struct view_page *page, struct krait_err *err)
{
    struct krait_gil_states *gil = NULL;
    int rc = page->wall ? krait_gil_states_new(&gil, page->trace, page->wall, 0, err) : 0;
    const struct krait_track_sums_options options = {
        .range = page->range, .take = takes_track, .ctx = (void *)page->select, .gil = gil
    };
    rc = rc ? rc : krait_track_sums_make(sums, page->trace, &options);
    krait_gil_states_free(gil);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}

int krait_view_html(struct krait_buf *out, const struct view_page *page, struct krait_err *err)
{
    KRAIT_CLEANUP(sums_done) struct sums sums = { 0 };
    struct krait_profile_options functions = { .range = page->range,
                                               .by = KRAIT_BY_FUNCTION,
                                               .durations = true,
                                               .take_thread = krait_select_thread,
                                               .ctx = (void *)page->select,
                                               .wall = page->wall };
    struct krait_profile_options threads = functions;
    threads.by = KRAIT_BY_THREAD;
    threads.durations = false;
    int rc = krait_profile_new(&sums.functions, page->trace, &functions, err);
    rc = rc ? rc : krait_profile_new(&sums.threads, page->trace, &threads, err);
    rc = rc ? rc : make_trees(&sums, page, err);
    rc = rc ? rc : sum_tracks(&sums.tracks, page, err);
    return rc ? rc : put_page(out, page, &sums, err);
}
