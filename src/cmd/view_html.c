/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait view --html`: the sums that the page has beside the timeline.
 */
#include "cmd/view.h"
#include "view/flame.h"
#include "view/page.h"

#include <string.h>

enum {
    ROWS = 200,          /* of the function table */
    FRAMES = 20000,      /* of the flame graph, at first */
    PAGE_MAX = 10 << 20, /* bytes: fewer frames are tried as long as it is larger */
    FRAMES_MIN = 500,
    TIMELINE_HEIGHT = 1400, /* pixels */
    FLAME_HEIGHT = 800,
};

/* The height that an SVG says of itself, for the frame around it; what is more than `most` scrolls. */
static uint32_t height_of(const struct krait_buf *svg, unsigned long most)
{
    const char *height = svg->data ? strstr(svg->data, " height=\"") : NULL;
    unsigned long pixels = height ? strtoul(height + strlen(" height=\""), NULL, 10) : 0;
    return (uint32_t)KRAIT_MIN(KRAIT_MAX(pixels, 100ul), most) + 8;
}

static int flame_of(struct krait_buf *svg, const struct krait_calltree *tree, const struct view_page *page,
                    uint32_t frames, struct krait_err *err)
{
    struct krait_flame *flame = NULL;
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.icicle = true;
    options.max_frames = frames;
    options.title = page->title;
    int rc = krait_flame_new(&flame, tree, page->trace, err);
    rc = rc ? rc : krait_flame_finish(flame, &options, err);
    if (!rc)
        krait_flame_svg(svg, flame, &options);
    krait_flame_free(flame);
    return rc || !svg->failed ? rc : krait_err_set(err, -ENOMEM, "out of memory");
}

static int put_page(struct krait_buf *out, const struct view_page *page, const struct krait_profile *profile,
                    const struct krait_calltree *tree, struct krait_err *err)
{
    size_t before = out->len;
    int rc = 0;
    for (uint32_t frames = FRAMES; !rc; frames /= 2) {
        KRAIT_AUTO_BUF flame = { 0 };
        out->len = before;
        rc = flame_of(&flame, tree, page, frames, err);
        const struct krait_page drawn = {
            .trace = page->trace,
            .profile = profile,
            .rows = ROWS,
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
        };
        if (rc)
            return rc;
        krait_page_html(out, &drawn);
        if (out->failed)
            return krait_err_set(err, -ENOMEM, "out of memory");
        if (out->len - before <= PAGE_MAX || frames / 2 < FRAMES_MIN)
            break;
    }
    return rc;
}

int krait_view_html(struct krait_buf *out, const struct view_page *page, struct krait_err *err)
{
    struct krait_profile *profile = NULL;
    struct krait_calltree *tree = NULL;
    const struct krait_profile_options sums = { .range = page->range,
                                                .by = KRAIT_BY_FUNCTION,
                                                .take_thread = krait_select_thread,
                                                .ctx = (void *)page->select,
                                                .wall = page->wall };
    const struct krait_calltree_options stacks = { .range = page->range,
                                                   .take_thread = krait_select_thread,
                                                   .ctx = (void *)page->select };
    int rc = krait_profile_new(&profile, page->trace, &sums, err);
    rc = rc ? rc : krait_calltree_new(&tree, page->trace, &stacks, err);
    rc = rc ? rc : put_page(out, page, profile, tree, err);
    krait_calltree_free(tree);
    krait_profile_free(profile);
    return rc;
}
