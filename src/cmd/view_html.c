/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view --html`: the sums that the page has beside the timeline.
 */
#include "base/fmt.h"
#include "cmd/view.h"
#include "view/flame.h"
#include "view/page.h"

#include <string.h>

enum {
    ROWS = 200,          /* of the function table */
    THREADS = 100,       /* of the table of threads */
    SOURCES = 20,        /* functions */
    FRAMES = 20000,      /* of the flame graph, at first */
    PAGE_MAX = 10 << 20, /* bytes: fewer frames are tried as long as it is larger */
    FRAMES_MIN = 500,
    TIMELINE_HEIGHT = 1400, /* pixels */
    FLAME_HEIGHT = 800,
};

struct sums {
    struct krait_profile *functions, *threads;
    struct krait_calltree *tree;
};

static void sums_done(struct sums *sums)
{
    krait_calltree_free(sums->tree);
    krait_profile_free(sums->threads);
    krait_profile_free(sums->functions);
}

/* The height that an SVG says of itself, for the frame around it; what is more than `most` scrolls. */
static uint32_t height_of(const struct krait_buf *svg, unsigned long most)
{
    const char *height = svg->data ? strstr(svg->data, " height=\"") : NULL;
    unsigned long pixels = height ? strtoul(height + strlen(" height=\""), NULL, 10) : 0;
    return (uint32_t)KRAIT_MIN(KRAIT_MAX(pixels, 100ul), most) + 8;
}

/* ---- what is left out ---- */

struct left {
    struct krait_page_left items[8];
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

static void leave_some(struct left *left, const char *verb, const char *options, uint64_t count,
                       const char *one)
{
    char counted[KRAIT_FMT_SIZE], what[KRAIT_FMT_SIZE + 64];
    if (!count)
        return;
    snprintf(what, sizeof(what), "%s%s", krait_fmt_counted(counted, count, one),
             strcmp(one, "node") == 0 ? " of the flame graph, the smallest" : "");
    leave(left, verb, options, what);
}

static void list_left(struct left *left, const struct view_page *page, const struct krait_page *drawn,
                      uint32_t nodes)
{
    leave(left, "view", "", "each call and state at any zoom: short ones are folded into exact sums here");
    leave(left, "cat", "", "single events");
    if (page->left_of_timeline)
        leave(left, "view", page->whole_timeline, page->left_of_timeline);
    leave_some(left, "report", " --limit 0",
               drawn->profile->count - KRAIT_MIN(drawn->rows, drawn->profile->count), "more function");
    leave_some(left, "report", " --by thread --limit 0",
               drawn->threads->count - KRAIT_MIN(drawn->thread_rows, drawn->threads->count), "more thread");
    leave_some(left, "flame", " -o flame.svg", nodes, "node");
    if (page->no_source)
        leave(left, "view", "", "source (--no-source)");
}

/* ---- the page ---- */

static int flame_of(struct krait_buf *svg, const struct krait_calltree *tree, const struct view_page *page,
                    uint32_t frames, uint32_t *dropped, struct krait_err *err)
{
    struct krait_flame *flame = NULL;
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.icicle = true;
    options.max_frames = frames;
    options.title = page->title;
    int rc = krait_flame_new(&flame, tree, page->trace, err);
    rc = rc ? rc : krait_flame_finish(flame, &options, err);
    if (!rc) {
        krait_flame_svg(svg, flame, &options);
        *dropped = flame->dropped;
    }
    krait_flame_free(flame);
    return rc || !svg->failed ? rc : krait_err_set(err, -ENOMEM, "out of memory");
}

/* With as many frames of the flame graph. */
static int put_with(struct krait_buf *out, const struct view_page *page, const struct sums *sums,
                    uint32_t frames, struct krait_err *err)
{
    KRAIT_AUTO_BUF flame = { 0 };
    struct left left = { .select = page->select };
    uint32_t dropped = 0;
    int rc = flame_of(&flame, sums->tree, page, frames, &dropped, err);
    if (rc)
        return rc;
    struct krait_page drawn = {
        .trace = page->trace,
        .profile = sums->functions,
        .threads = sums->threads,
        .rows = ROWS,
        .thread_rows = THREADS,
        .sources = page->no_source ? 0 : SOURCES,
        .range = page->range,
        .zero_ns = page->zero_ns,
        .title = page->title,
        .folders = page->folders,
        .timeline = page->timeline,
        .flame = &flame,
        .timeline_height = height_of(page->timeline, TIMELINE_HEIGHT),
        .flame_height = height_of(&flame, FLAME_HEIGHT),
        .notes = page->notes,
        .note_count = page->note_count,
        .left = left.items,
    };
    list_left(&left, page, &drawn, dropped);
    drawn.left_count = left.count;
    krait_page_html(out, &drawn);
    return out->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int put_page(struct krait_buf *out, const struct view_page *page, const struct sums *sums,
                    struct krait_err *err)
{
    size_t before = out->len;
    int rc;
    uint32_t frames = FRAMES;
    do {
        out->len = before;
        rc = put_with(out, page, sums, frames, err);
        frames /= 2;
    } while (!rc && out->len - before > PAGE_MAX && frames >= FRAMES_MIN);
    return rc;
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
    const struct krait_calltree_options stacks = { .range = page->range,
                                                   .take_thread = krait_select_thread,
                                                   .ctx = (void *)page->select };
    threads.by = KRAIT_BY_THREAD;
    threads.durations = false;
    int rc = krait_profile_new(&sums.functions, page->trace, &functions, err);
    rc = rc ? rc : krait_profile_new(&sums.threads, page->trace, &threads, err);
    rc = rc ? rc : krait_calltree_new(&sums.tree, page->trace, &stacks, err);
    return rc ? rc : put_page(out, page, &sums, err);
}
