/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"
#include "trace/mark_says.h"
#include "view/classes.h"
#include "view/flame_text.h"
#include "view/ticks.h"
#include "view/timeline_own.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

extern const char krait_timeline_css[];
extern const size_t krait_timeline_css_len;

enum { /* pixels */
       MARGIN = KRAIT_TIMELINE_MARGIN,
       GUTTER = KRAIT_TIMELINE_GUTTER,
       ROW = KRAIT_TIMELINE_ROW,
       HEAD = 62, /* title and subtitle */
       RULER = 24,
       GROUP = 26,
       LANE_GAP = 8,
       LEGEND_ROW = 18,
       SWATCH = 11,
       TICK = 90,       /* least distance of two labels of the ruler */
       CHARACTER = 6,   /* typical width of a character of a label */
       WIDE_COLUMN = 8, /* greatest width of a character in the font of headings */
};

static const double COLUMN = KRAIT_TIMELINE_COLUMN;

/* ---- lanes ---- */

static const struct krait_track *track_of(const struct krait_timeline *timeline,
                                          const struct krait_timeline_lane *lane)
{
    return &timeline->trace->tracks[lane->track];
}

/* The text is clean, but not escaped for XML. */
static void group_name(struct krait_buf *to, const struct krait_timeline *timeline,
                       const struct krait_timeline_lane *lane)
{
    const struct krait_track *track = track_of(timeline, lane);
    const struct krait_process *process =
        lane->group == KRAIT_TIMELINE_PROCESS ? &timeline->trace->processes[lane->group_id] : NULL;
    switch (lane->group) {
    case KRAIT_TIMELINE_PROCESS:
        krait_buf_fmt(to, "%u  ", process->pid);
        krait_text_clean(to, *process->command ? krait_fmt_command(process->command) : process->name);
        break;
    case KRAIT_TIMELINE_KPROCESS:
        krait_buf_fmt(to, "%u  ", track->pid);
        krait_text_clean(to, track->process_name && *track->process_name ? track->process_name : "process");
        break;
    case KRAIT_TIMELINE_THREADS:
        krait_buf_str(to, "Threads");
        break;
    case KRAIT_TIMELINE_CPUS:
        krait_buf_str(to, "CPUs");
        break;
    case KRAIT_TIMELINE_LANES:
        krait_buf_str(to, "Declared lanes");
        break;
    default:
        krait_buf_str(to, "Events");
        break;
    }
}

static void group_head(struct krait_drawing *d, const struct krait_timeline_lane *lane)
{
    KRAIT_AUTO_BUF text = { 0 };
    group_name(&text, d->timeline, lane);
    d->y += 4;
    krait_buf_fmt(d->to, "<line class=\"rule\" x1=\"%d\" x2=\"%u\" y1=\"%.1f\" y2=\"%.1f\"/>", MARGIN,
                  d->timeline->width - MARGIN, d->y + 0.5, d->y + 0.5);
    krait_buf_fmt(d->to, "<text class=\"process\" x=\"%d\" y=\"%.0f\">", MARGIN, d->y + 16);
    if (!text.failed)
        krait_text_xml_name(d->to, text.data, (d->timeline->width - 2 * MARGIN) / WIDE_COLUMN);
    krait_buf_str(d->to, "</text>\n");
    d->to->failed |= text.failed;
    d->y += GROUP - 4;
}

static double lane_height(const struct krait_timeline *timeline, const struct krait_timeline_lane *lane)
{
    double height = krait_timeline_states_height(lane);
    for (uint32_t i = 0; i < lane->part_count; i++)
        height += krait_timeline_part_height(timeline, &lane->parts[i]);
    return fmax(height, ROW) + LANE_GAP;
}

static const char *lane_name(const struct krait_timeline *timeline, const struct krait_timeline_lane *lane)
{
    const struct krait_track *track = track_of(timeline, lane);
    if (track->of == KRAIT_OF_CPU)
        return "CPU";
    if (track->of == KRAIT_OF_GROUP || track->of == KRAIT_OF_PROCESS)
        return track->name;
    bool is_recorded = track->of == KRAIT_OF_THREAD && track->thread != KRAIT_NO_ID;
    const char *name = is_recorded ? timeline->trace->threads[track->thread].name : track->thread_name;
    return name && *name ? name : "thread";
}

/* Tasks have names, but no numbers that tell anything. */
static bool has_number(const struct krait_track *track)
{
    return track->of <= KRAIT_OF_CPU;
}

void krait_timeline_lane_name(struct krait_buf *to, const struct krait_timeline *timeline,
                              const struct krait_timeline_lane *lane)
{
    krait_text_xml_raw(to, lane_name(timeline, lane));
    if (has_number(track_of(timeline, lane)))
        krait_buf_fmt(to, " %u", track_of(timeline, lane)->number);
}

static void lane_label(struct krait_drawing *d, const struct krait_timeline_lane *lane)
{
    const struct krait_track *track = track_of(d->timeline, lane);
    size_t columns = (size_t)((GUTTER - 20) / COLUMN);
    char number[KRAIT_FMT_SIZE] = "";
    KRAIT_AUTO_BUF name = { 0 };
    if (has_number(track))
        snprintf(number, sizeof(number), "%u", track->number);
    krait_text_clean(&name, lane_name(d->timeline, lane));
    krait_buf_fmt(d->to, "<text class=\"name\" x=\"%d\" y=\"%.0f\">", MARGIN + 10, d->y + 11);
    if (name.failed)
        d->to->failed = true;
    else
        krait_text_xml_name(d->to, name.data, columns - strlen(number) - 1);
    if (*number)
        krait_buf_fmt(d->to, " <tspan class=\"q\">%s</tspan>", number);
    krait_buf_str(d->to, "</text>\n");
}

/* Draws the parts, and notes where arrows to the lane end: between its states and its calls, around the marks. */
static void draw_parts(struct krait_drawing *d, const struct krait_timeline_lane *lane)
{
    struct krait_timeline_ends *ends = &d->ends[lane - d->timeline->lanes];
    *ends = (struct krait_timeline_ends){ d->y, d->y };
    for (uint32_t i = 0; i < lane->part_count; i++) {
        const struct krait_timeline_part *part = &lane->parts[i];
        uint8_t kind = d->timeline->trace->tracks[part->track].kind;
        krait_timeline_draw_part(d, part);
        if (kind == KRAIT_TRACK_STATES)
            *ends = (struct krait_timeline_ends){ d->y, d->y };
        else if (kind == KRAIT_TRACK_INSTANTS)
            ends->below = d->y;
    }
}

static int draw_lane(struct krait_drawing *d, const struct krait_timeline_lane *lane)
{
    double top = d->y, height = lane_height(d->timeline, lane);
    krait_buf_str(d->to, "<g class=\"lane\" aria-label=\"");
    krait_text_xml_raw(d->to, lane_name(d->timeline, lane));
    krait_buf_fmt(d->to, " %u\">\n", track_of(d->timeline, lane)->number);
    lane_label(d, lane);
    int rc = krait_timeline_draw_states(d, lane);
    if (!rc)
        draw_parts(d, lane);
    d->y = top;
    krait_timeline_draw_losses(d, lane, height - LANE_GAP);
    krait_buf_str(d->to, "</g>\n");
    d->y = top + height;
    return rc;
}

/* ---- headings, ruler and title ---- */

static double foot_height(const struct krait_drawing *d)
{
    const struct krait_timeline *timeline = d->timeline;
    unsigned rows = 2 + (timeline->trace->func_count > 0) + (krait_timeline_marks(timeline).levels > 0);
    for (unsigned i = 0; i < KRAIT_TIMELINE_NAMES; i++)
        rows += d->names[i].count > 0;
    return (rows + timeline->note_count) * LEGEND_ROW + MARGIN;
}

/* Whether a lane is the first of its group, so that a heading stands above it. */
static bool has_head(const struct krait_timeline *timeline, uint32_t index)
{
    const struct krait_timeline_lane *lane = &timeline->lanes[index];
    return index == 0 || lane[-1].group != lane->group || lane[-1].group_id != lane->group_id;
}

static double head_height(const struct krait_timeline *timeline)
{
    return timeline->is_part ? 0 : HEAD;
}

static double height_of(const struct krait_drawing *d)
{
    const struct krait_timeline *timeline = d->timeline;
    double height = head_height(timeline) + RULER + foot_height(d);
    for (uint32_t i = 0; i < timeline->lane_count; i++)
        height += (has_head(timeline, i) ? GROUP : 0) + lane_height(timeline, &timeline->lanes[i]);
    return height;
}

static void ruler(struct krait_drawing *d, double bottom)
{
    const struct krait_timeline *timeline = d->timeline;
    const struct krait_range *range = &timeline->range;
    uint64_t ns = range->to_ns - range->from_ns;
    uint64_t step = krait_tick_step((double)ns * TICK / d->width);
    double free_x = -INFINITY;
    uint64_t since = range->from_ns - KRAIT_MIN(timeline->zero_ns, range->from_ns);
    uint64_t first = (since + step - 1) / step * step;
    for (uint64_t at = first; at - since <= ns; at += step) {
        double x = krait_timeline_x(d, range->from_ns + (at - since));
        krait_buf_fmt(d->to, "<line class=\"grid\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.0f\" y2=\"%.0f\"/>", x, x,
                      d->y + 18, bottom);
        KRAIT_AUTO_BUF label = { 0 };
        krait_tick_label(&label, at, step);
        double size = (double)label.len * CHARACTER;
        bool last = x > d->left + d->width - KRAIT_MAX((double)TICK / 3, size / 2);
        double begin = x - (last ? size : size / 2);
        d->to->failed |= label.failed;
        if (label.failed || begin < free_x)
            continue;
        krait_buf_fmt(d->to, "<text class=\"time%s\" x=\"%.2f\" y=\"%.0f\">%.*s</text>\n",
                      last ? " last" : "", x, d->y + 12, (int)label.len, label.data);
        free_x = begin + size;
    }
    d->y += RULER;
}

static void title_lines(struct krait_drawing *d)
{
    const struct krait_timeline *timeline = d->timeline;
    krait_buf_fmt(d->to, "<text class=\"title\" x=\"%d\" y=\"30\">", MARGIN);
    KRAIT_AUTO_BUF title = { 0 };
    krait_text_clean(&title, timeline->title);
    d->to->failed |= title.failed;
    krait_text_xml_cut(d->to, title.len ? title.data : "", (timeline->width - 2 * MARGIN) / 11);
    krait_buf_fmt(d->to, "</text>\n<text class=\"quiet\" x=\"%d\" y=\"50\">", MARGIN);
    krait_text_xml_raw(d->to, timeline->subtitle);
    krait_buf_str(d->to, "</text>\n");
}

static void head(struct krait_drawing *d, double height)
{
    const struct krait_timeline *timeline = d->timeline;
    krait_buf_fmt(d->to,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"timeline\" class=\"bm\" width=\"%u\" "
                  "height=\"%.0f\" viewBox=\"0 0 %u %.0f\" role=\"img\" aria-labelledby=\"name about\">\n"
                  "<title id=\"name\">",
                  timeline->width, height, timeline->width, height);
    krait_text_xml_raw(d->to, timeline->title);
    krait_buf_str(d->to,
                  "</title>\n<desc id=\"about\">A timeline: a lane for each thread, its calls by depth. ");
    krait_text_xml_raw(d->to, timeline->subtitle);
    krait_buf_str(d->to, "</desc>\n<style>\n");
    krait_buf_add(d->to, krait_timeline_css, krait_timeline_css_len);
    krait_buf_fmt(d->to, "</style>\n<rect class=\"ground\" width=\"%u\" height=\"%.0f\"/>\n", timeline->width,
                  height);
    if (!timeline->is_part)
        title_lines(d);
}
/* ---- the legend ---- */

static double swatch_width(const char *text)
{
    return 24 + COLUMN * (double)krait_width_of(text, strlen(text)) + 8;
}

static bool has_room(const struct krait_drawing *d, double x, const char *text)
{
    return x + swatch_width(text) <= d->timeline->width - MARGIN;
}

static void swatch_text(struct krait_drawing *d, double *x, const char *text)
{
    krait_buf_fmt(d->to, "<text class=\"name\" x=\"%.1f\" y=\"%.0f\">", *x + 16, d->y);
    krait_text_xml(d->to, text, strlen(text));
    krait_buf_str(d->to, "</text>\n");
    *x += swatch_width(text);
}

static void swatch(struct krait_drawing *d, double *x, const char *class, const char *text)
{
    if (!has_room(d, *x, text))
        return;
    krait_buf_fmt(d->to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"2.5\"/>",
                  class, *x, d->y - SWATCH + 1, SWATCH, SWATCH);
    swatch_text(d, x, text);
}

static void legend_of_hue(struct krait_drawing *d, double *x, uint32_t hue)
{
    char class[16], package[256];
    const char *module = d->timeline->trace->funcs[d->hue_func[hue]].module;
    KRAIT_AUTO_BUF text = { 0 };
    snprintf(class, sizeof(class), "m%u s1", hue);
    snprintf(package, sizeof(package), "%.*s", (int)KRAIT_MIN(strcspn(module, "."), sizeof(package) - 1),
             module);
    krait_text_clean(&text, package);
    d->to->failed |= text.failed;
    swatch(d, x, class, text.len ? text.data : "(no module)");
}

/* In order of time, the greatest first. */
static void legend_of_packages(struct krait_drawing *d)
{
    double x = MARGIN;
    for (;;) {
        uint32_t most = 0;
        for (uint32_t hue = 1; hue < KRAIT_HUES; hue++)
            most = d->hue_ns[hue] > d->hue_ns[most] ? hue : most;
        if (!d->hue_ns[most])
            break;
        legend_of_hue(d, &x, most);
        d->hue_ns[most] = 0;
    }
    if (d->hue_ns[KRAIT_HUES])
        swatch(d, &x, "m12 s1", "others");
    if (d->folded)
        swatch(d, &x, "m12 s1 b3",
               d->timeline->trace->samples.rate ? "lower boxes: many short stretches; darker means busier"
                                                : "lower boxes: many short calls; darker means busier");
}

static void legend_of_arrows(struct krait_drawing *d, double *x)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_str(&text, "arrows: flows and work for executors");
    if (d->more_arrows) {
        krait_buf_str(&text, ", ");
        krait_text_count(&text, d->arrows);
        krait_buf_str(&text, " of ");
        krait_text_count(&text, d->arrows + d->more_arrows);
    }
    krait_buf_char(&text, '\0');
    d->to->failed |= text.failed;
    if (d->arrows && !text.failed)
        swatch(d, x, "mark", text.data);
}

/* In a row of their own, the most serious last. */
static void legend_of_marks(struct krait_drawing *d)
{
    const struct krait_timeline_marks seen = krait_timeline_marks(d->timeline);
    double x = MARGIN;
    for (unsigned level = 0; level < KRAIT_MARK_LEVELS; level++) {
        const char *name = krait_mark_level_names[level];
        if (!(seen.levels >> level & 1) || !has_room(d, x, name))
            continue;
        krait_timeline_put_mark(d, level, x + SWATCH / 2.0, d->y - SWATCH + 1);
        krait_buf_str(d->to, "</path>");
        swatch_text(d, &x, name);
    }
    static const char several[] = "1 of 3: of three marks at one place, the most serious is shown";
    if (seen.has_several && has_room(d, x, several))
        swatch_text(d, &x, several);
    d->y += seen.levels ? LEGEND_ROW : 0;
}

/* Those with the most time, the most of them first; in a row of their own. */
static void legend_of_names(struct krait_drawing *d, const struct krait_timeline_names *names,
                            const char *lead, uint32_t limit)
{
    static const char most[] = "and 1,000,000 others";
    double x = MARGIN - 16;
    uint32_t i = 0;
    if (!names->count)
        return;
    swatch_text(d, &x, lead);
    for (; i < KRAIT_MIN(names->count, limit); i++) {
        char class[16];
        const char *name = krait_track_text(d->timeline->trace, names->items[i].name);
        KRAIT_AUTO_BUF text = { 0 };
        krait_text_clean(&text, name);
        d->to->failed |= text.failed;
        double rest = i + 1 < names->count ? swatch_width(most) : 0;
        if (!text.len || !has_room(d, x + rest, text.data))
            break;
        snprintf(class, sizeof(class), "m%u s1", krait_class_hue(krait_class_of(name)));
        swatch(d, &x, class, text.data);
    }
    if (i < names->count) {
        KRAIT_AUTO_BUF others = { 0 };
        krait_buf_str(&others, i ? "and " : "");
        krait_text_count(&others, names->count - i);
        krait_buf_str(&others, names->count - i == 1 ? " other" : " others");
        d->to->failed |= others.failed;
        x -= 16;
        swatch_text(d, &x, others.failed ? "" : others.data);
    }
    d->y += LEGEND_ROW;
}

/* All names of the states that look so. */
static void legend_of_look(struct krait_drawing *d, double *x, uint32_t look)
{
    char class[40];
    const char *words = d->looks_seen >> look & 1 ? krait_looks[look].words : "";
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_str(&text, words);
    for (uint32_t i = 0; i < krait_class_count; i++) {
        bool is_new = krait_classes[i].look == look && d->classes_seen >> i & 1 &&
                      strcmp(krait_classes[i].name, words) != 0;
        if (is_new)
            krait_buf_fmt(&text, "%s%s", text.len ? ", " : "", krait_classes[i].name);
    }
    snprintf(class, sizeof(class), "w %s", krait_looks[look].class);
    d->to->failed |= text.failed;
    if (text.len && !text.failed)
        swatch(d, x, class, text.data);
}

static void legend_of_states(struct krait_drawing *d)
{
    double x = MARGIN;
    for (uint32_t i = 0; i < KRAIT_LOOKS; i++)
        legend_of_look(d, &x, i);
    if (d->lost)
        swatch(d, &x, "lost", "events were lost");
    if (d->off)
        swatch(d, &x, "lost", "the recording was off");
    if (d->dropped)
        swatch(d, &x, "dropped", "dashed lines: --max-overhead dropped functions from there on");
    if (d->changed)
        swatch(d, &x, "dropped", "dashed lines: krait ctl set changed what is recorded");
    legend_of_arrows(d, &x);
}

static void foot(struct krait_drawing *d)
{
    enum { FEW = 8 }; /* of dozens of system calls, the others take hardly any time */
    d->y += LEGEND_ROW;
    if (d->timeline->trace->func_count) {
        legend_of_packages(d);
        d->y += LEGEND_ROW;
    }
    legend_of_marks(d);
    legend_of_names(d, &d->names[KRAIT_TIMELINE_RAN], "on the CPUs:", UINT32_MAX);
    legend_of_names(d, &d->names[KRAIT_TIMELINE_CALLED], "system calls:", FEW);
    legend_of_names(d, &d->names[KRAIT_TIMELINE_INTERRUPTED], "interrupts:", FEW);
    legend_of_states(d);
    for (uint32_t i = 0; i < d->timeline->note_count; i++) {
        d->y += LEGEND_ROW;
        krait_buf_fmt(d->to, "<text class=\"quiet\" x=\"%d\" y=\"%.0f\">", MARGIN, d->y);
        krait_text_xml_raw(d->to, d->timeline->notes[i]);
        krait_buf_str(d->to, "</text>\n");
    }
    krait_buf_str(d->to, "</svg>\n");
}

static int draw(struct krait_drawing *d)
{
    const struct krait_timeline *timeline = d->timeline;
    for (unsigned i = 0; i < KRAIT_TIMELINE_NAMES; i++) {
        if (krait_timeline_names(&d->names[i], timeline, i))
            return -ENOMEM;
    }
    double height = height_of(d);
    head(d, height);
    ruler(d, height - foot_height(d));
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        const struct krait_timeline_lane *lane = &timeline->lanes[i];
        for (uint32_t k = 0; k < lane->part_count; k++)
            krait_timeline_weigh(d, &lane->parts[k]);
        if (has_head(timeline, i))
            group_head(d, lane);
        if (draw_lane(d, lane))
            return -ENOMEM;
    }
    double bottom = d->y;
    d->y = head_height(timeline) + RULER;
    if (krait_timeline_draw_drops(d, bottom) || krait_timeline_draw_arrows(d))
        return -ENOMEM;
    d->y = bottom;
    foot(d);
    return d->to->failed ? -ENOMEM : 0;
}

int krait_timeline_svg(struct krait_buf *to, const struct krait_timeline *timeline)
{
    KRAIT_AUTO_FREE uint8_t *hues = krait_hues_of_funcs(timeline->trace);
    KRAIT_AUTO_FREE struct krait_timeline_ends *ends = calloc(timeline->lane_count + 1ull, sizeof(*ends));
    struct krait_drawing d = {
        .to = to,
        .timeline = timeline,
        .left = MARGIN + GUTTER,
        .width = timeline->width - GUTTER - 2 * MARGIN,
        .y = head_height(timeline),
        .hues = hues,
        .ends = ends,
    };
    int rc = hues && ends ? draw(&d) : -ENOMEM;
    for (unsigned i = 0; i < KRAIT_TIMELINE_NAMES; i++)
        free(d.names[i].items);
    return rc;
}

uint32_t krait_timeline_depths(const struct krait_timeline *timeline)
{
    uint32_t depths = 0;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        for (uint32_t k = 0; k < timeline->lanes[i].part_count; k++)
            depths = KRAIT_MAX(depths, timeline->lanes[i].parts[k].tile.depths);
    }
    return depths;
}

void krait_timeline_cut(struct krait_timeline *timeline, uint32_t depths)
{
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        for (uint32_t k = 0; k < timeline->lanes[i].part_count; k++) {
            struct krait_tile *tile = &timeline->lanes[i].parts[k].tile;
            tile->depths = KRAIT_MIN(tile->depths, depths);
        }
    }
}
