/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws marks: a shape and a colour for each level, the more serious ones over the others, and beside them what they say,
 * where there is room:
 *
 *     ◆ begin        ▲ WARNING shop: order 7 has no address   ◆◆◆◆◆ done
 */
#include "trace/mark_says.h"
#include "view/flame_text.h"
#include "view/timeline_own.h"
#include "view/width.h"

#include <string.h>

enum {           /* pixels */
       HALF = 4, /* the width of a mark to each side */
       GAP = 4,  /* between a mark and a text */
};
enum { LEAST = 8 }; /* columns of a text that is cut */

/* Around a place, 10 pixels high: told apart without colours, too. */
static const char *const shapes[KRAIT_MARK_LEVELS] = {
    [KRAIT_MARK_DEBUG] = "m0 2.5l2.5 2.5-2.5 2.5-2.5-2.5z",
    [KRAIT_MARK_INFO] = "m-1.6 1h3.2l2.4 2.4v3.2l-2.4 2.4h-3.2l-2.4-2.4v-3.2z",
    [KRAIT_MARK_PLAIN] = "l4 5-4 5-4-5z",
    [KRAIT_MARK_WARNING] = "m0 .5l4.5 9h-9z",
    [KRAIT_MARK_ERROR] = "m-3.8 1.2h7.6v7.6h-7.6z",
    [KRAIT_MARK_CRITICAL] = "m-4.5 .5h9l-4.5 9z",
    [KRAIT_MARK_EXCEPTION] =
        "m-4 2.5l1.5-1.5 2.5 2.5 2.5-2.5 1.5 1.5-2.5 2.5 2.5 2.5-1.5 1.5-2.5-2.5-2.5 2.5-1.5-1.5 2.5-2.5z",
};

struct marks {
    struct krait_drawing *d;
    const struct krait_timeline_part *part;
};

static double place_of(const struct marks *m, uint32_t bin)
{
    return (krait_timeline_bin_x(m->d, m->part, bin) + krait_timeline_bin_x(m->d, m->part, bin + 1)) / 2;
}

void krait_timeline_put_mark(struct krait_drawing *d, unsigned level, double x, double y)
{
    krait_buf_fmt(d->to, "<path class=\"mark %s\" d=\"M%.1f %.0f%s\">", krait_mark_level_names[level], x, y,
                  shapes[level]);
}

static void draw_mark(const struct marks *m, uint32_t i)
{
    const struct krait_timeline_bin *bin = &m->part->bins[i];
    struct krait_buf *to = m->d->to;
    const char *name = krait_track_text(m->d->timeline->trace, bin->name);
    krait_timeline_put_mark(m->d, bin->mark_level, place_of(m, i), m->d->y);
    krait_buf_str(to, "<title>");
    if (bin->count > 1) {
        krait_text_count(to, bin->count);
        krait_buf_str(to, " from here; the first: ");
    }
    krait_text_xml_raw(to, name);
    if (strcmp(bin->says, name) != 0) {
        krait_buf_char(to, '\n');
        krait_text_xml_raw(to, bin->says);
    }
    krait_buf_str(to, "\nat ");
    krait_timeline_put_time(m->d, krait_timeline_bin_begin(m->part, i));
    krait_buf_str(to, "</title></path>\n");
}

static void draw_text(const struct marks *m, double x, const char *text, size_t columns, bool is_before)
{
    krait_buf_fmt(m->d->to, "<text class=\"says%s\" x=\"%.1f\" y=\"%.0f\">", is_before ? " last" : "", x,
                  m->d->y + 9);
    krait_text_xml_cut(m->d->to, text, columns);
    krait_buf_str(m->d->to, "</text>\n");
}

/* Behind the mark as much as there is room for; if that is too little, before it, where the whole fits. `free_x` is where the one
 * before ends. Returns where this one does. */
static double place_text(const struct marks *m, double free_x, double x, double next_x,
                         const struct krait_timeline_bin *bin)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (bin->count > 1) {
        krait_buf_str(&text, "1 of ");
        krait_text_count(&text, bin->count);
        krait_buf_str(&text, ": ");
    }
    krait_text_clean(&text, bin->says);
    m->d->to->failed |= text.failed;
    size_t whole = krait_width_of(text.data ? text.data : "", text.len),
           least = KRAIT_MIN(whole, (size_t)LEAST);
    double begin = x + HALF + GAP, room = next_x - HALF - GAP - begin, before = x - HALF - GAP - free_x;
    size_t behind = room > 0 ? (size_t)(room / KRAIT_TIMELINE_COLUMN) : 0;
    if (whole && behind >= least) {
        behind = KRAIT_MIN(behind, whole);
        draw_text(m, begin, text.data, behind, false);
        return begin + (double)behind * KRAIT_TIMELINE_COLUMN + GAP;
    }
    if (whole && before >= (double)whole * KRAIT_TIMELINE_COLUMN)
        draw_text(m, x - HALF - GAP, text.data, whole, true);
    return x + HALF + GAP;
}

static void draw_texts(const struct marks *m)
{
    const struct krait_drawing *d = m->d;
    const struct krait_timeline_bin *bins = m->part->bins;
    uint32_t n = m->part->tile.bins, next;
    double free_x = d->left;
    for (uint32_t i = 0; i < n; i = next) {
        for (next = i + 1; next < n && !bins[next].count;)
            next++;
        double x = place_of(m, i), next_x = next < n ? place_of(m, next) : d->left + d->width + HALF + GAP;
        if (bins[i].count)
            free_x = place_text(m, free_x, x, next_x, &bins[i]);
    }
}

void krait_timeline_draw_marks(struct krait_drawing *d, const struct krait_timeline_part *part)
{
    const struct marks m = { d, part };
    for (unsigned level = 0; level < KRAIT_MARK_LEVELS; level++) {
        for (uint32_t i = 0; i < part->tile.bins; i++) {
            if (part->bins[i].count && part->bins[i].mark_level == level)
                draw_mark(&m, i);
        }
    }
    draw_texts(&m);
}

struct krait_timeline_marks krait_timeline_marks(const struct krait_timeline *timeline)
{
    struct krait_timeline_marks marks = { 0 };
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        for (uint32_t k = 0; k < timeline->lanes[i].part_count; k++) {
            const struct krait_timeline_part *part = &timeline->lanes[i].parts[k];
            bool has_marks = timeline->trace->tracks[part->track].kind == KRAIT_TRACK_INSTANTS;
            for (uint32_t bin = 0; has_marks && bin < part->tile.bins; bin++) {
                marks.levels |= part->bins[bin].count ? 1u << part->bins[bin].mark_level : 0;
                marks.has_several |= part->bins[bin].count > 1;
            }
        }
    }
    return marks;
}
