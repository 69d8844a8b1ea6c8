/* SPDX-License-Identifier: Apache-2.0 */
#include "view/timeline.h"

#include "base/fmt.h"
#include "view/flame_text.h"
#include "view/hues.h"

#include <math.h>
#include <string.h>

extern const char krait_timeline_css[];
extern const size_t krait_timeline_css_len;

enum { /* pixels */
       MARGIN = 16,
       GUTTER = 176, /* names of threads */
       HEAD = 62,    /* title and subtitle */
       RULER = 24,
       PROCESS = 26,
       STATES = 8,
       ROW = 16,
       LANE_GAP = 10,
       LEGEND_ROW = 18,
       TICK = 90,       /* at least, between two labels */
       WIDE_COLUMN = 8, /* of a character of the heads' font, at most */
};
enum { LEVELS = 5 }; /* how busy a folded stretch looks: classes b1 to b5 */

static const double COLUMN = 6.65; /* pixels of a character of the calls' font, 11 px fixed-width */

struct drawing {
    struct krait_buf *to;
    const struct krait_timeline *timeline;
    double left, width; /* of the time axis */
    double y;
    struct krait_strtab package_texts;
    struct krait_package *packages;
    uint32_t *package_of; /* by func; KRAIT_NO_ID: none of its calls is seen */
    bool states_seen[KRAIT_WALL_COUNT];
    bool folded;
};

uint32_t krait_timeline_bins(uint32_t width)
{
    return (width - GUTTER - 2 * MARGIN) / KRAIT_TIMELINE_BIN;
}

static double x_of(const struct drawing *d, uint64_t t_ns)
{
    const struct krait_range *range = &d->timeline->range;
    return d->left + d->width * (double)(t_ns - range->from_ns) / (double)(range->to_ns - range->from_ns);
}

/* ---- packages ---- */

static int weigh(struct drawing *d, uint64_t *weights, uint32_t func, uint64_t ns)
{
    const char *module = d->timeline->trace->funcs[func].module;
    weights[func] += ns;
    if (d->package_of[func] == KRAIT_NO_ID)
        d->package_of[func] = krait_strtab_add(&d->package_texts, module, strcspn(module, "."));
    return d->package_of[func] == KRAIT_NO_ID ? -ENOMEM : 0;
}

static int weigh_lane(struct drawing *d, uint64_t *weights, const struct krait_tile *tile)
{
    int rc = 0;
    for (uint32_t i = 0; i < tile->call_count && !rc; i++)
        rc = weigh(d, weights, tile->calls[i].func, tile->calls[i].end_ns - tile->calls[i].begin_ns);
    for (size_t i = 0, n = (size_t)tile->depths * tile->bins; i < n && !rc; i++) {
        if (tile->cells[i].busy_ns || tile->cells[i].count)
            rc = weigh(d, weights, tile->cells[i].func, tile->cells[i].busy_ns);
    }
    return rc;
}

static int color_packages(struct drawing *d)
{
    uint32_t funcs = d->timeline->trace->func_count;
    KRAIT_AUTO_FREE uint64_t *weights = calloc(KRAIT_MAX(funcs, 1u), sizeof(*weights));
    d->package_of = malloc(KRAIT_MAX(funcs, 1u) * sizeof(*d->package_of));
    if (!weights || !d->package_of)
        return -ENOMEM;
    memset(d->package_of, 0xff, funcs * sizeof(*d->package_of));
    for (uint32_t i = 0; i < d->timeline->lane_count; i++) {
        if (weigh_lane(d, weights, &d->timeline->lanes[i].tile))
            return -ENOMEM;
    }
    d->packages = calloc(KRAIT_MAX(d->package_texts.len, 1u), sizeof(*d->packages));
    if (!d->packages)
        return -ENOMEM;
    for (uint32_t i = 0; i < d->package_texts.len; i++)
        d->packages[i].text = d->package_texts.texts[i];
    for (uint32_t i = 0; i < funcs; i++) {
        if (d->package_of[i] != KRAIT_NO_ID)
            d->packages[d->package_of[i]].weight += weights[i];
    }
    return krait_hues_give(d->packages, d->package_texts.len);
}

struct look {
    uint32_t hue, shade, level;
};

static struct look look_of(const struct drawing *d, uint32_t func)
{
    return (struct look){ d->packages[d->package_of[func]].hue,
                          krait_hues_shade(d->timeline->trace->funcs[func].name), 0 };
}

/* ---- text ---- */

static void say_time(struct krait_buf *to, const struct krait_timeline *timeline, uint64_t t_ns)
{
    if (t_ns < timeline->zero_ns)
        krait_buf_char(to, '-');
    krait_text_duration(to, t_ns < timeline->zero_ns ? timeline->zero_ns - t_ns : t_ns - timeline->zero_ns);
}

static void say_counted(struct krait_buf *to, uint64_t n, const char *one, const char *many)
{
    krait_text_count(to, n);
    krait_buf_str(to, n == 1 ? one : many);
}

/* Clean, not yet escaped. */
static void clean_name(struct krait_buf *to, const struct krait_func *func)
{
    if (*func->module) {
        krait_text_clean(to, func->module);
        krait_buf_char(to, '.');
    }
    krait_text_clean(to, func->name);
    krait_buf_str(to, func->kind == KRAIT_FUNC_C ? " (C)" : "");
    krait_buf_str(to, func->holds_dropped ? KRAIT_HOLDS_DROPPED : "");
}

static void xml_name(struct krait_buf *to, const struct krait_func *func)
{
    KRAIT_AUTO_BUF name = { 0 };
    clean_name(&name, func);
    krait_text_xml(to, name.len ? name.data : "", name.len);
    to->failed |= name.failed;
}

/* As much as says most in so many columns: all, the name, its last part. */
static void xml_name_cut(struct krait_buf *to, const struct krait_func *func, size_t columns)
{
    KRAIT_AUTO_BUF name = { 0 };
    clean_name(&name, func);
    if (name.failed || !name.len) {
        to->failed |= name.failed;
        return;
    }
    bool is_module = *func->module && strcmp(func->name, "<module>") == 0;
    const char *text = name.data;
    if (krait_text_columns(text, name.len) > columns && *func->module && !is_module) {
        krait_buf_clear(&name);
        krait_text_clean(&name, func->name);
        text = name.data;
        const char *dot = strrchr(text, '.');
        if (krait_text_columns(text, name.len) > columns && dot && dot[1])
            text = dot + 1;
    }
    krait_text_xml_cut(to, text, columns);
}

/* ---- calls ---- */

static void call_title(const struct drawing *d, const struct krait_tile_call *call)
{
    const struct krait_func *func = &d->timeline->trace->funcs[call->func];
    krait_buf_str(d->to, "<title>");
    xml_name(d->to, func);
    if (*func->file) {
        krait_buf_char(d->to, '\n');
        krait_text_xml_raw(d->to, func->file);
        if (func->line)
            krait_buf_fmt(d->to, ":%u", func->line);
    }
    krait_buf_char(d->to, '\n');
    krait_text_duration(d->to, call->end_ns - call->begin_ns);
    krait_buf_str(d->to, call->begin == KRAIT_OP_LIVE   ? ", begun before; seen from "
                         : call->begin == KRAIT_OP_CALL ? ", from "
                                                        : ", goes on from ");
    say_time(d->to, d->timeline, call->begin_ns);
    krait_buf_str(d->to, call->end == KRAIT_OP_CUT ? "; its end is not seen</title>" : "</title>");
}

static void draw_call(struct drawing *d, const struct krait_tile_call *call)
{
    double x = x_of(d, call->begin_ns), w = x_of(d, call->end_ns) - x;
    double y = d->y + call->depth * ROW;
    struct look look = look_of(d, call->func);
    krait_buf_fmt(d->to,
                  "<g><rect class=\"m%u s%u\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" rx=\"1.5\">",
                  look.hue, look.shade, x, y, fmax(w - 0.4, 0.4), ROW - 1);
    call_title(d, call);
    krait_buf_str(d->to, "</rect>");
    if (w >= 5 * COLUMN) {
        krait_buf_fmt(d->to, "<text x=\"%.2f\" y=\"%.0f\">", x + 4, y + ROW - 4.6);
        xml_name_cut(d->to, &d->timeline->trace->funcs[call->func], (size_t)((w - 7) / COLUMN));
        krait_buf_str(d->to, "</text>");
    }
    krait_buf_str(d->to, "</g>\n");
}

/* Bins that look alike, one after the other. */
struct stretch {
    uint32_t first, end; /* bins */
    struct look look;
    struct krait_tile_bin sum; /* of them; func: of the longest */
};

static void draw_stretch(struct drawing *d, const struct krait_tile *tile, uint32_t depth,
                         const struct stretch *s)
{
    if (s->end == s->first)
        return;
    uint64_t from_ns = tile->from_ns + s->first * tile->bin_ns;
    uint64_t until_ns = KRAIT_MIN(tile->from_ns + s->end * tile->bin_ns, d->timeline->range.to_ns);
    double x = x_of(d, from_ns);
    krait_buf_fmt(
        d->to, "<rect class=\"m%u s%u b%u\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"><title>",
        s->look.hue, s->look.shade, s->look.level, x, d->y + depth * ROW + 3, x_of(d, until_ns) - x, ROW - 6);
    say_counted(d->to, s->sum.count, " call, busy ", " calls, busy ");
    krait_text_percent(d->to, (double)s->sum.busy_ns / (double)(until_ns - from_ns));
    krait_buf_str(d->to, " of ");
    krait_text_duration(d->to, until_ns - from_ns);
    krait_buf_str(d->to, " from ");
    say_time(d->to, d->timeline, from_ns);
    krait_buf_str(d->to, "\nlongest: ");
    xml_name(d->to, &d->timeline->trace->funcs[s->sum.func]);
    krait_buf_str(d->to, "</title></rect>\n");
    d->folded = true;
}

static bool looks_alike(struct look a, struct look b)
{
    return a.hue == b.hue && a.shade == b.shade && a.level == b.level;
}

static void draw_folded(struct drawing *d, const struct krait_tile *tile, uint32_t depth)
{
    struct stretch s = { 0 };
    for (uint32_t bin = 0; bin < tile->bins; bin++) {
        const struct krait_tile_bin *cell = krait_tile_cell(tile, depth, bin);
        if (!cell->busy_ns && !cell->count)
            continue;
        struct look look = look_of(d, cell->func);
        look.level = (uint32_t)KRAIT_MIN(1 + cell->busy_ns * LEVELS / tile->bin_ns, (uint64_t)LEVELS);
        if (s.end != bin || !looks_alike(look, s.look)) {
            draw_stretch(d, tile, depth, &s);
            s = (struct stretch){ .first = bin, .look = look };
        }
        s.end = bin + 1;
        s.sum.busy_ns += cell->busy_ns;
        s.sum.count += cell->count;
        if (cell->longest_ns >= s.sum.longest_ns) {
            s.sum.longest_ns = cell->longest_ns;
            s.sum.func = cell->func;
        }
    }
    draw_stretch(d, tile, depth, &s);
}

static void draw_calls(struct drawing *d, const struct krait_tile *tile)
{
    krait_buf_str(d->to, "<g class=\"calls\">\n");
    for (uint32_t depth = 0; depth < tile->depths && tile->cells; depth++)
        draw_folded(d, tile, depth);
    for (uint32_t i = tile->call_count; i-- > 0;) {
        if (tile->calls[i].depth < tile->depths)
            draw_call(d, &tile->calls[i]);
    }
    krait_buf_str(d->to, "</g>\n");
}

/* ---- states ---- */

typedef uint64_t state_times[KRAIT_WALL_COUNT];

static const char *const state_classes[] = {
#define X(name, text, title, words) text,
    KRAIT_WALL_STATES(X)
#undef X
};
static const char *const state_words[] = {
#define X(name, text, title, words) words,
    KRAIT_WALL_STATES(X)
#undef X
};

static void add_interval(state_times *columns, uint32_t count, uint64_t column_ns, uint64_t from, uint64_t to,
                         uint8_t state)
{
    for (uint64_t i = from / column_ns; i < count && i * column_ns < to; i++)
        columns[i][state] += KRAIT_MIN(to, (i + 1) * column_ns) - KRAIT_MAX(from, i * column_ns);
}

static uint32_t most_of(const state_times times)
{
    uint32_t most = KRAIT_WALL_UNKNOWN;
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++)
        most = times[i] > times[most] ? i : most;
    return most;
}

static void draw_state(struct drawing *d, uint32_t state, double x, double w, const state_times times)
{
    krait_buf_fmt(d->to, "<rect class=\"w %s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"><title>",
                  state_classes[state], x, d->y, w, STATES);
    const char *comma = "";
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (!times[i])
            continue;
        krait_buf_fmt(d->to, "%s%s ", comma, state_words[i]);
        krait_text_duration(d->to, times[i]);
        comma = ", ";
    }
    krait_buf_str(d->to, "</title></rect>\n");
    d->states_seen[state] = true;
}

/* A column shows the state that has most of it; its title says all. */
static int draw_states(struct drawing *d, const struct krait_wall_track *track,
                       const struct krait_thread *thread)
{
    const struct krait_range *range = &d->timeline->range;
    uint64_t ns = range->to_ns - range->from_ns;
    uint64_t column_ns = KRAIT_MAX((ns + (uint64_t)d->width - 1) / (uint64_t)d->width, (uint64_t)1);
    uint32_t count = (uint32_t)((ns + column_ns - 1) / column_ns);
    KRAIT_AUTO_FREE state_times *columns = calloc(count, sizeof(*columns));
    if (!columns)
        return -ENOMEM;
    for (const struct krait_wall_interval *at = krait_wall_at(track, range->from_ns);
         at->begin_ns < range->to_ns; at++)
        add_interval(columns, count, column_ns, KRAIT_MAX(at->begin_ns, range->from_ns) - range->from_ns,
                     KRAIT_MIN(at[1].begin_ns, range->to_ns) - range->from_ns, at->state);
    double per_column = d->width * (double)column_ns / (double)ns;
    for (uint32_t i = 0, end; i < count; i = end) {
        state_times sum;
        uint32_t state = most_of(columns[i]);
        memcpy(sum, columns[i], sizeof(sum));
        for (end = i + 1; end < count && most_of(columns[end]) == state; end++) {
            for (uint32_t k = 0; k < KRAIT_WALL_COUNT; k++)
                sum[k] += columns[end][k];
        }
        bool is_there = range->from_ns + end * column_ns > thread->begin_ns &&
                        range->from_ns + i * column_ns < thread->end_ns;
        if (state != KRAIT_WALL_UNKNOWN || is_there)
            draw_state(d, state, d->left + i * per_column,
                       fmin((end - i) * per_column, d->width - i * per_column), sum);
    }
    d->y += STATES + 2;
    return 0;
}

/* ---- lanes ---- */

static void process_head(struct drawing *d, uint32_t index)
{
    const struct krait_process *process = &d->timeline->trace->processes[index];
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "%u  ", process->pid);
    krait_text_clean(&text, *process->command ? krait_fmt_command(process->command) : process->name);
    d->y += 4;
    krait_buf_fmt(d->to, "<line class=\"rule\" x1=\"%d\" x2=\"%u\" y1=\"%.1f\" y2=\"%.1f\"/>", MARGIN,
                  d->timeline->width - MARGIN, d->y + 0.5, d->y + 0.5);
    krait_buf_fmt(d->to, "<text class=\"process\" x=\"%d\" y=\"%.0f\">", MARGIN, d->y + 16);
    if (!text.failed)
        krait_text_xml_cut(d->to, text.data, (d->timeline->width - 2 * MARGIN) / WIDE_COLUMN);
    krait_buf_str(d->to, "</text>\n");
    d->to->failed |= text.failed;
    d->y += PROCESS - 4;
}

static double lane_height(const struct krait_timeline_lane *lane)
{
    return (lane->states.items ? STATES + 2 : 0) + KRAIT_MAX(lane->tile.depths, 1u) * ROW + LANE_GAP;
}

static void lane_label(struct drawing *d, const struct krait_timeline_lane *lane)
{
    const struct krait_thread *thread = &d->timeline->trace->threads[lane->thread];
    size_t columns = (size_t)((GUTTER - 20) / COLUMN);
    KRAIT_AUTO_BUF name = { 0 };
    krait_text_clean(&name, *thread->name ? thread->name : "thread");
    krait_buf_fmt(d->to, "<text class=\"name\" x=\"%d\" y=\"%.0f\">", MARGIN + 10, d->y + 11);
    if (name.failed)
        d->to->failed = true;
    else
        krait_text_xml_cut(d->to, name.data, columns - 9);
    krait_buf_fmt(d->to, " <tspan class=\"q\">%u</tspan></text>\n", thread->tid);
}

static int draw_lane(struct drawing *d, const struct krait_timeline_lane *lane)
{
    double top = d->y;
    lane_label(d, lane);
    int rc =
        lane->states.items ? draw_states(d, &lane->states, &d->timeline->trace->threads[lane->thread]) : 0;
    if (!rc)
        draw_calls(d, &lane->tile);
    d->y = top + lane_height(lane);
    return rc;
}

/* ---- around ---- */

static bool has_states(const struct krait_timeline *timeline)
{
    return timeline->lane_count && timeline->lanes[0].states.items;
}

static double foot_height(const struct krait_timeline *timeline)
{
    return (2 + has_states(timeline) + timeline->note_count) * LEGEND_ROW + MARGIN;
}

static double head_height(const struct krait_timeline *timeline)
{
    return timeline->is_part ? 0 : HEAD;
}

static double height_of(const struct krait_timeline *timeline)
{
    double height = head_height(timeline) + RULER + foot_height(timeline);
    uint32_t process = KRAIT_NO_ID;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        uint32_t its = timeline->trace->threads[timeline->lanes[i].thread].process;
        height += (its != process ? PROCESS : 0) + lane_height(&timeline->lanes[i]);
        process = its;
    }
    return height;
}

/* 1, 2 or 5 times a power of ten. */
static uint64_t round_step(double ns)
{
    double power = pow(10, floor(log10(fmax(ns, 1))));
    double digit = ns / power;
    return (uint64_t)(power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10));
}

static void tick_label(struct krait_buf *to, uint64_t ns, uint64_t step)
{
    static const struct unit {
        uint64_t ns;
        const char *text;
    } units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "\u00b5s" }, { 1, "ns" } };
    const struct unit *unit = units;
    while (unit->ns > KRAIT_MAX(step * 10, (uint64_t)1) && unit->ns > 1)
        unit++;
    int digits = step >= unit->ns ? 0 : (int)ceil(log10((double)unit->ns / (double)step) - 1e-9);
    krait_buf_fmt(to, "%.*f\u202f%s", digits, (double)ns / (double)unit->ns, unit->text);
}

static void ruler(struct drawing *d, double bottom)
{
    const struct krait_timeline *timeline = d->timeline;
    const struct krait_range *range = &timeline->range;
    uint64_t ns = range->to_ns - range->from_ns;
    uint64_t step = round_step((double)ns * TICK / d->width);
    uint64_t since = range->from_ns - KRAIT_MIN(timeline->zero_ns, range->from_ns);
    uint64_t first = (since + step - 1) / step * step;
    for (uint64_t at = first; at - since <= ns; at += step) {
        double x = x_of(d, range->from_ns + (at - since));
        krait_buf_fmt(d->to, "<line class=\"grid\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%.0f\" y2=\"%.0f\"/>", x, x,
                      d->y + 18, bottom);
        bool last = x > d->left + d->width - TICK / 3;
        krait_buf_fmt(d->to, "<text class=\"time%s\" x=\"%.2f\" y=\"%.0f\">", last ? " last" : "", x,
                      d->y + 12);
        tick_label(d->to, at, step);
        krait_buf_str(d->to, "</text>\n");
    }
    d->y += RULER;
}

static void title_lines(struct drawing *d)
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

static void head(struct drawing *d, double height)
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

static void swatch(struct drawing *d, double *x, const char *class, const char *text)
{
    double w = 24 + COLUMN * (double)krait_text_columns(text, strlen(text)) + 8;
    if (*x + w > d->timeline->width - MARGIN)
        return;
    krait_buf_fmt(d->to, "<rect class=\"%s\" x=\"%.1f\" y=\"%.0f\" width=\"11\" height=\"11\" rx=\"2.5\"/>",
                  class, *x, d->y - 10);
    krait_buf_fmt(d->to, "<text class=\"name\" x=\"%.1f\" y=\"%.0f\">", *x + 16, d->y);
    krait_text_xml(d->to, text, strlen(text));
    krait_buf_str(d->to, "</text>\n");
    *x += w;
}

static void legend_of_packages(struct drawing *d)
{
    double x = MARGIN;
    bool others = false;
    for (uint32_t i = 0; i < d->package_texts.len; i++) {
        const struct krait_package *package = &d->packages[i];
        others |= package->hue == KRAIT_HUES;
        if (package->hue == KRAIT_HUES)
            continue;
        char class[16];
        KRAIT_AUTO_BUF text = { 0 };
        snprintf(class, sizeof(class), "m%u s1", package->hue);
        krait_text_clean(&text, package->text);
        d->to->failed |= text.failed;
        swatch(d, &x, class, text.len ? text.data : "(no module)");
    }
    if (others)
        swatch(d, &x, "m12 s1", "others");
    if (d->folded)
        swatch(d, &x, "m12 s1 b3", "lower boxes: many short calls, the darker the busier");
}

static void legend_of_states(struct drawing *d)
{
    double x = MARGIN;
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        char class[40];
        snprintf(class, sizeof(class), "w %s", state_classes[i]);
        if (d->states_seen[i])
            swatch(d, &x, class, state_words[i]);
    }
}

static void foot(struct drawing *d)
{
    d->y += LEGEND_ROW;
    legend_of_packages(d);
    if (has_states(d->timeline)) {
        d->y += LEGEND_ROW;
        legend_of_states(d);
    }
    for (uint32_t i = 0; i < d->timeline->note_count; i++) {
        d->y += LEGEND_ROW;
        krait_buf_fmt(d->to, "<text class=\"quiet\" x=\"%d\" y=\"%.0f\">", MARGIN, d->y);
        krait_text_xml_raw(d->to, d->timeline->notes[i]);
        krait_buf_str(d->to, "</text>\n");
    }
    krait_buf_str(d->to, "</svg>\n");
}

static void drawing_done(struct drawing *d)
{
    krait_strtab_done(&d->package_texts);
    free(d->packages);
    free(d->package_of);
}

int krait_timeline_svg(struct krait_buf *to, const struct krait_timeline *timeline)
{
    KRAIT_CLEANUP(drawing_done)
    struct drawing d = {
        .to = to,
        .timeline = timeline,
        .left = MARGIN + GUTTER,
        .width = timeline->width - GUTTER - 2 * MARGIN,
        .y = head_height(timeline),
    };
    if (color_packages(&d))
        return -ENOMEM;
    double height = height_of(timeline);
    head(&d, height);
    ruler(&d, height - foot_height(timeline));
    uint32_t process = KRAIT_NO_ID;
    for (uint32_t i = 0; i < timeline->lane_count; i++) {
        uint32_t its = timeline->trace->threads[timeline->lanes[i].thread].process;
        if (its != process)
            process_head(&d, its);
        process = its;
        if (draw_lane(&d, &timeline->lanes[i]))
            return -ENOMEM;
    }
    foot(&d);
    return to->failed ? -ENOMEM : 0;
}
