/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws the content of a lane.
 */
#include "base/fmt.h"
#include "base/symbol.h"
#include "view/flame_text.h"
#include "view/timeline_own.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

enum { /* pixels */
       ROW = KRAIT_TIMELINE_ROW,
       STATES = 8,       /* above calls */
       LANE_STATES = 12, /* where there are no calls */
       CPU_STATES = 14,
       THIN = 8, /* interrupts, marks */
       MARKS = 12,
       COUNTER = 30,
       BELOW = 2, /* each part */
};
enum { LEVELS = 5 }; /* how busy a folded stretch looks: classes b1 to b5 */

static const double COLUMN = KRAIT_TIMELINE_COLUMN;

/* ---- text ---- */

double krait_timeline_x(const struct krait_drawing *d, uint64_t t_ns)
{
    const struct krait_range *range = &d->timeline->range;
    return d->left + d->width * (double)(t_ns - range->from_ns) / (double)(range->to_ns - range->from_ns);
}

void krait_timeline_put_time(const struct krait_drawing *d, uint64_t t_ns)
{
    struct krait_buf *to = d->to;
    const struct krait_timeline *timeline = d->timeline;
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

static void xml_func(struct krait_buf *to, const struct krait_func *func)
{
    KRAIT_AUTO_BUF name = { 0 };
    clean_name(&name, func);
    krait_text_xml(to, name.len ? name.data : "", name.len);
    to->failed |= name.failed;
}

/* The most useful part that fits into the columns: everything, the name, or what says most of it. */
static void xml_func_cut(struct krait_buf *to, const struct krait_func *func, size_t columns)
{
    KRAIT_AUTO_BUF name = { 0 };
    KRAIT_AUTO_BUF brief = { 0 };
    clean_name(&name, func);
    bool is_module = *func->module && strcmp(func->name, "<module>") == 0;
    if (krait_width_of(name.len ? name.data : "", name.len) > columns && !is_module) {
        krait_buf_clear(&name);
        krait_text_clean(&name, func->name);
        if (krait_width_of(name.len ? name.data : "", name.len) > columns)
            krait_symbol_brief(&brief, name.len ? name.data : "");
    }
    krait_text_xml_cut(to, brief.len ? brief.data : name.len ? name.data : "", columns);
    to->failed |= name.failed || brief.failed;
}

/* ---- what is drawn, and how it looks ---- */

struct drawn {
    struct krait_drawing *d;
    const struct krait_timeline_part *part;
    const struct krait_track *track;
    double row, box, folded; /* heights of a row, of a box in it, and of a folded one */
    bool has_text;
};

static double row_of(const struct krait_track *track)
{
    bool is_cpu = track->of == KRAIT_OF_CPU;
    bool is_named = is_cpu || track->of == KRAIT_OF_LANE; /* the names of its states are shown */
    return track->kind == KRAIT_TRACK_STATES     ? is_named ? CPU_STATES : LANE_STATES
           : track->kind == KRAIT_TRACK_INSTANTS ? MARKS
           : track->kind == KRAIT_TRACK_COUNTER  ? COUNTER
           : is_cpu                              ? THIN
                                                 : ROW;
}

static struct drawn drawn_of(struct krait_drawing *d, const struct krait_timeline_part *part)
{
    const struct krait_track *track = &d->timeline->trace->tracks[part->track];
    double row = row_of(track);
    bool is_state = track->kind == KRAIT_TRACK_STATES;
    return (struct drawn){
        .d = d,
        .part = part,
        .track = track,
        .row = row,
        .box = is_state ? row : row - 1,
        .folded = is_state || row < ROW ? row - !is_state : ROW - 6,
        .has_text = row >= CPU_STATES,
    };
}

struct look {
    bool is_state;
    uint8_t hue, shade; /* of a state hue is one of krait_looks */
    uint8_t level;      /* how busy a folded stretch is; otherwise 0 */
    uint8_t own_class;  /* of a state that has its own name: one of krait_classes; else NOT_OWN */
};

#define NOT_OWN UINT8_MAX

/* Whether states of a track are named by krait_looks. Tasks and declared states have their own names: "queue", not "lock". */
static bool has_look_words(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_STATES && track->of <= KRAIT_OF_CPU;
}

static struct look look_of(const struct drawn *p, uint32_t name)
{
    const struct krait_trace *trace = p->d->timeline->trace;
    if (p->track->kind == KRAIT_TRACK_CALLS)
        return (struct look){ .hue = p->d->hues[name],
                              .shade = (uint8_t)krait_hues_shade(trace->funcs[name].name) };
    uint8_t class = krait_class_of(krait_track_text(trace, name));
    bool is_known = class < krait_class_count;
    if (is_known && p->track->kind == KRAIT_TRACK_STATES)
        return (struct look){ .is_state = true,
                              .hue = krait_classes[class].look,
                              .own_class = has_look_words(p->track) ? NOT_OWN : class };
    return (struct look){ .hue = krait_class_hue(class), .shade = 1 };
}

static void put_class(struct krait_drawing *d, struct look look)
{
    if (look.is_state)
        krait_buf_fmt(d->to, "class=\"w %s", krait_looks[look.hue].class);
    else
        krait_buf_fmt(d->to, "class=\"m%u s%u", look.hue, look.shade);
    if (look.level)
        krait_buf_fmt(d->to, " b%u", look.level);
    krait_buf_char(d->to, '"');
    if (look.is_state && look.own_class == NOT_OWN)
        d->looks_seen |= (uint64_t)1 << look.hue;
    else if (look.is_state)
        d->classes_seen |= (uint64_t)1 << look.own_class;
}

/* The words for a known state. */
static const char *words_of(const struct drawn *p, uint32_t name)
{
    const char *text = krait_track_text(p->d->timeline->trace, name);
    uint8_t class = krait_class_of(text);
    bool is_known = class < krait_class_count && has_look_words(p->track);
    return is_known ? krait_looks[krait_classes[class].look].words : text;
}

static void put_name(const struct drawn *p, uint32_t name)
{
    if (p->track->kind == KRAIT_TRACK_CALLS)
        xml_func(p->d->to, &p->d->timeline->trace->funcs[name]);
    else
        krait_text_xml_raw(p->d->to, words_of(p, name));
}

static void put_name_cut(const struct drawn *p, uint32_t name, size_t columns)
{
    if (p->track->kind == KRAIT_TRACK_CALLS) {
        xml_func_cut(p->d->to, &p->d->timeline->trace->funcs[name], columns);
        return;
    }
    KRAIT_AUTO_BUF text = { 0 };
    krait_text_clean(&text, words_of(p, name));
    krait_text_xml_cut(p->d->to, text.len ? text.data : "", columns);
    p->d->to->failed |= text.failed;
}

/* ---- boxes ---- */

/* Whether its boxes are stretches of samples. */
static bool is_sampled(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_CALLS && track->flags & KRAIT_TRACK_SAMPLED;
}

static void box_title(const struct drawn *p, const struct krait_tile_call *call)
{
    struct krait_buf *to = p->d->to;
    krait_buf_str(to, "<title>");
    put_name(p, call->func);
    if (p->track->kind == KRAIT_TRACK_CALLS && *p->d->timeline->trace->funcs[call->func].file) {
        const struct krait_func *func = &p->d->timeline->trace->funcs[call->func];
        krait_buf_char(to, '\n');
        krait_text_xml_raw(to, func->file);
        if (func->line)
            krait_buf_fmt(to, ":%u", func->line);
    }
    krait_buf_char(to, '\n');
    krait_text_duration(to, call->end_ns - call->begin_ns);
    if (is_sampled(p->track)) {
        krait_buf_str(to, ": a stretch of samples, no measured call, from ");
        krait_timeline_put_time(p->d, call->begin_ns);
        krait_buf_str(to, "</title>");
        return;
    }
    krait_buf_str(to, call->begin == KRAIT_OP_LIVE   ? ", begun before; seen from "
                      : call->begin == KRAIT_OP_CALL ? ", from "
                                                     : ", goes on from ");
    krait_timeline_put_time(p->d, call->begin_ns);
    krait_buf_str(to, call->end == KRAIT_OP_CUT ? "; its end is not seen</title>" : "</title>");
}

static void draw_box(const struct drawn *p, const struct krait_tile_call *call)
{
    struct krait_drawing *d = p->d;
    double from = krait_timeline_x(d, KRAIT_MAX(call->begin_ns, d->timeline->range.from_ns));
    double w = krait_timeline_x(d, KRAIT_MIN(call->end_ns, d->timeline->range.to_ns)) - from;
    double y = d->y + call->depth * p->row;
    krait_buf_str(d->to, "<g><rect ");
    put_class(d, look_of(p, call->func));
    krait_buf_fmt(d->to, " x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\"%s>", from, y,
                  fmax(w - 0.4, 0.4), p->box, p->row == ROW ? " rx=\"1.5\"" : "");
    box_title(p, call);
    krait_buf_str(d->to, "</rect>");
    if (p->has_text && w >= 5 * COLUMN) {
        krait_buf_fmt(d->to, "<text x=\"%.2f\" y=\"%.1f\">", from + 4,
                      y + p->row - (p->row == ROW ? 4.6 : 3.4));
        put_name_cut(p, call->func, (size_t)((w - 7) / COLUMN));
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

static void stretch_title(const struct drawn *p, const struct stretch *s, uint64_t from_ns, uint64_t ns)
{
    struct krait_buf *to = p->d->to;
    bool is_state = p->track->kind == KRAIT_TRACK_STATES;
    if (!is_state) {
        if (is_sampled(p->track)) {
            krait_buf_str(to, "stretches of samples");
        } else if (p->track->kind == KRAIT_TRACK_CALLS) {
            say_counted(to, s->sum.count, " call", " calls");
        } else {
            krait_text_xml_raw(to, p->track->name);
            krait_buf_str(to, ": ");
            krait_text_count(to, s->sum.count);
        }
        krait_buf_str(to, ", busy ");
        krait_text_percent(to, (double)s->sum.busy_ns / (double)ns);
        krait_buf_str(to, " of ");
    }
    krait_text_duration(to, ns);
    krait_buf_str(to, " from ");
    krait_timeline_put_time(p->d, from_ns);
    krait_buf_str(to, "\nlongest: ");
    put_name(p, s->sum.func);
}

static void draw_stretch(const struct drawn *p, uint32_t depth, const struct stretch *s)
{
    struct krait_drawing *d = p->d;
    const struct krait_tile *tile = &p->part->tile;
    if (s->end == s->first)
        return;
    uint64_t from_ns = tile->from_ns + s->first * tile->bin_ns;
    uint64_t until_ns = KRAIT_MIN(tile->from_ns + s->end * tile->bin_ns, d->timeline->range.to_ns);
    double x = krait_timeline_x(d, from_ns);
    krait_buf_str(d->to, "<rect ");
    put_class(d, s->look);
    krait_buf_fmt(d->to, " x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\"><title>", x,
                  d->y + depth * p->row + (p->folded < p->box ? 3 : 0), krait_timeline_x(d, until_ns) - x,
                  p->folded);
    stretch_title(p, s, from_ns, until_ns - from_ns);
    krait_buf_str(d->to, "</title></rect>\n");
    d->folded |= p->track->kind == KRAIT_TRACK_CALLS;
}

static bool looks_alike(struct look a, struct look b)
{
    return a.is_state == b.is_state && a.hue == b.hue && a.shade == b.shade && a.level == b.level &&
           a.own_class == b.own_class;
}

static void draw_folded(const struct drawn *p, uint32_t depth)
{
    const struct krait_tile *tile = &p->part->tile;
    struct stretch s = { 0 };
    for (uint32_t bin = 0; bin < tile->bins; bin++) {
        const struct krait_tile_bin *cell = krait_tile_cell(tile, depth, bin);
        if (krait_tile_bin_is_empty(cell))
            continue;
        struct look look = look_of(p, cell->func);
        look.level = (uint8_t)KRAIT_MIN(1 + cell->busy_ns * LEVELS / tile->bin_ns, (uint64_t)LEVELS);
        if (p->track->kind == KRAIT_TRACK_STATES && look.level == LEVELS)
            look.level = 0; /* states fill the whole time */
        if (s.end != bin || !looks_alike(look, s.look)) {
            draw_stretch(p, depth, &s);
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
    draw_stretch(p, depth, &s);
}

static void draw_boxes(const struct drawn *p)
{
    const struct krait_tile *tile = &p->part->tile;
    for (uint32_t depth = 0; depth < tile->depths && tile->cells; depth++)
        draw_folded(p, depth);
    for (uint32_t i = tile->call_count; i-- > 0;) {
        if (tile->calls[i].depth < tile->depths)
            draw_box(p, &tile->calls[i]);
    }
}

/* ---- counters, losses ---- */

uint64_t krait_timeline_bin_begin(const struct krait_timeline_part *part, uint32_t bin)
{
    return part->tile.from_ns + bin * part->tile.bin_ns;
}

double krait_timeline_bin_x(const struct krait_drawing *d, const struct krait_timeline_part *part,
                            uint32_t bin)
{
    return krait_timeline_x(d, KRAIT_MIN(krait_timeline_bin_begin(part, bin), d->timeline->range.to_ns));
}

static double bin_x(const struct drawn *p, uint32_t bin)
{
    return krait_timeline_bin_x(p->d, p->part, bin);
}

static bool in_parts(const struct drawn *p)
{
    return p->track->parts > 1;
}

static void put_value(const struct drawn *p, struct krait_buf *to, int64_t value)
{
    if (in_parts(p)) {
        krait_buf_fmt(to, "%.6g", (double)value / p->track->parts);
        return;
    }
    if (value < 0)
        krait_buf_char(to, '-');
    krait_text_count(to, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

/* The unit of a value in parts tells only their size. */
static void put_unit(const struct drawn *p, struct krait_buf *to)
{
    if (in_parts(p) || !p->track->unit || !*p->track->unit)
        return;
    krait_buf_str(to, "\u00a0");
    krait_text_xml_raw(to, p->track->unit);
}

static void value_title(const struct drawn *p, const struct krait_timeline_bin *bin)
{
    struct krait_buf *to = p->d->to;
    krait_text_xml_raw(to, p->track->name);
    krait_buf_char(to, ' ');
    put_value(p, to, bin->least);
    if (bin->most != bin->least) {
        krait_buf_str(to, " to ");
        put_value(p, to, bin->most);
    }
    put_unit(p, to);
}

/* The axis from the minimum to the maximum; it always contains 0. */
static void find_scale(const struct drawn *p, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (uint32_t i = 0; i < p->part->tile.bins; i++) {
        const struct krait_timeline_bin *bin = &p->part->bins[i];
        *low = bin->known ? KRAIT_MIN(*low, bin->least) : *low;
        *high = bin->known ? KRAIT_MAX(*high, bin->most) : *high;
    }
}

/* The scale of a counter: the height of a value in its lane. */
struct values {
    const struct drawn *p;
    double low, scale;
    struct krait_buf line; /* the data of a path */
};

static double value_y(const struct values *of, double value)
{
    return of->p->d->y + COUNTER - 1 - (value - of->low) * of->scale;
}

/* Equal bins: light from 0 to the value that is farthest from it, with their values as a title; and the line from the least to the
 * most. Each bin has the value that the one before it ended with, so that the lines of all make steps. */
static void draw_values(struct values *of, uint32_t first, uint32_t end)
{
    const double thin = 1.25;
    struct krait_buf *to = of->p->d->to;
    const struct krait_timeline_bin *bin = &of->p->part->bins[first];
    double top = value_y(of, (double)bin->most), bottom = value_y(of, (double)bin->least);
    double zero = value_y(of, 0), x = bin_x(of->p, first), width = bin_x(of->p, end) - x;
    double from = fmin(top, zero), until = fmax(bottom, zero);
    krait_buf_fmt(to, "<rect class=\"value\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"><title>", x,
                  from, width, fmax(until - from, 0.5));
    value_title(of->p, bin);
    krait_buf_str(to, "</title></rect>\n");
    krait_buf_fmt(&of->line, "M%.2f %.2fh%.2fv%.2fh%.2fz", x, top - thin / 2, width, bottom - top + thin,
                  -width);
}

/* Below the name of the part: what its height stands for, if there is room for that. */
static void value_range(const struct drawn *p, int64_t low, int64_t high)
{
    struct krait_drawing *d = p->d;
    KRAIT_AUTO_BUF text = { 0 };
    put_value(p, &text, low);
    krait_buf_str(&text, " to ");
    put_value(p, &text, high);
    put_unit(p, &text);
    d->to->failed |= text.failed;
    if (text.len && (double)text.len * COLUMN < d->left - KRAIT_TIMELINE_MARGIN)
        krait_buf_fmt(d->to, "<text class=\"quiet part\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", d->left - 8,
                      d->y + 23, text.data);
}

static void draw_counter(const struct drawn *p)
{
    const struct krait_timeline_bin *bins = p->part->bins;
    int64_t low, high;
    find_scale(p, &low, &high);
    double span = (double)high - (double)low;
    struct values of = { .p = p, .low = (double)low, .scale = (COUNTER - 2) / (span > 0 ? span : 1) };
    for (uint32_t i = 0, end; i < p->part->tile.bins; i = end) {
        for (end = i + 1; end < p->part->tile.bins && bins[end].known == bins[i].known &&
                          bins[end].most == bins[i].most && bins[end].least == bins[i].least;)
            end++;
        if (bins[i].known)
            draw_values(&of, i, end);
    }
    if (of.line.len)
        krait_buf_fmt(p->d->to, "<path class=\"value line\" d=\"%s\"/>\n", of.line.data);
    value_range(p, low, high);
    p->d->to->failed |= of.line.failed;
    krait_buf_done(&of.line);
}

/* Over the whole lane, which begins at d->y. */
static bool is_off(const struct krait_drawing *d, uint32_t name)
{
    return strcmp(krait_track_text(d->timeline->trace, name), KRAIT_TRACK_OFF) == 0;
}

static void draw_loss(struct krait_drawing *d, const struct krait_timeline_part *part, double height)
{
    const struct drawn p = drawn_of(d, part);
    const struct krait_tile *tile = &part->tile;
    for (uint32_t i = 0; i < tile->call_count + tile->bins; i++) {
        bool is_bin = i >= tile->call_count;
        uint32_t bin = i - tile->call_count;
        if (is_bin && (!tile->cells || krait_tile_bin_is_empty(krait_tile_cell(tile, 0, bin))))
            continue;
        double from = is_bin ? bin_x(&p, bin) : krait_timeline_x(d, tile->calls[i].begin_ns);
        double to = is_bin ? bin_x(&p, bin + 1) : krait_timeline_x(d, tile->calls[i].end_ns);
        bool off = !is_bin && is_off(d, tile->calls[i].func);
        krait_buf_fmt(d->to,
                      "<g class=\"lost\"><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\"/>"
                      "<path d=\"M%.2f %.0fh%.2f\"/><title>%s</title></g>\n",
                      from, d->y, to - from, height, from, d->y + 1, to - from,
                      off ? "the recording was switched off here"
                          : "events were lost here: calls may be missing");
        d->lost |= !off;
        d->off |= off;
    }
}

void krait_timeline_draw_losses(struct krait_drawing *d, const struct krait_timeline_lane *lane,
                                double height)
{
    for (uint32_t i = 0; i < lane->part_count; i++) {
        if (krait_timeline_is_loss(&d->timeline->trace->tracks[lane->parts[i].track]))
            draw_loss(d, &lane->parts[i], height);
    }
}

/* ---- functions that were dropped ---- */

enum { DROPS_TOLD = 6 }; /* functions in the title of a line; the page tells as many */

static int by_time(const void *a, const void *b)
{
    const struct krait_trace_omitted *const *x = a, *const *y = b;
    return ((*x)->first_ns > (*y)->first_ns) - ((*x)->first_ns < (*y)->first_ns);
}

static void draw_drop(struct krait_drawing *d, const struct krait_trace_omitted *const *drops, uint32_t count,
                      double x, double bottom)
{
    const char *head = "dropped by --max-overhead from here on:\n";
    krait_buf_fmt(d->to, "<path class=\"drop\" d=\"M%.1f %.0fV%.0f\"><title>%s", x, d->y, bottom, head);
    for (uint32_t i = 0; i < count && i < DROPS_TOLD; i++) {
        xml_func(d->to, &d->timeline->trace->funcs[drops[i]->func]);
        krait_buf_str(d->to, ", after ");
        say_counted(d->to, drops[i]->calls, " call\n", " calls\n");
    }
    if (count > DROPS_TOLD) {
        krait_buf_str(d->to, "and ");
        say_counted(d->to, count - DROPS_TOLD, " more", " more");
    }
    krait_buf_str(d->to, "</title></path>\n");
    d->dropped = true;
}

/* When krait ctl set changed what is recorded: one line for all processes that follow in a pixel. */
static void draw_sets(struct krait_drawing *d, double bottom)
{
    const struct krait_timeline *timeline = d->timeline;
    const struct krait_trace *trace = timeline->trace;
    double last = -1;
    for (uint32_t i = 0; i < trace->set_count; i++) {
        const struct krait_trace_set *set = &trace->sets[i];
        double x = floor(krait_timeline_x(d, set->t_ns));
        if (x <= last || set->t_ns < timeline->range.from_ns || set->t_ns > timeline->range.to_ns)
            continue;
        krait_buf_fmt(
            d->to,
            "<path class=\"drop\" d=\"M%.1f %.0fV%.0f\"><title>krait ctl set: from here on is recorded\n",
            x + 0.5, d->y, bottom);
        krait_text_xml_raw(d->to, set->what);
        krait_buf_str(d->to, "</title></path>\n");
        d->changed = true;
        last = x;
    }
}

/* One line for all drops in a pixel. */
int krait_timeline_draw_drops(struct krait_drawing *d, double bottom)
{
    const struct krait_trace *trace = d->timeline->trace;
    const struct krait_range *range = &d->timeline->range;
    uint32_t count = 0;
    KRAIT_AUTO_FREE const struct krait_trace_omitted **drops =
        calloc(trace->omitted_count + 1, sizeof(*drops));
    if (!drops)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->omitted_count; i++) {
        const struct krait_trace_omitted *omitted = &trace->omitted[i];
        if (omitted->first_ns >= range->from_ns && omitted->first_ns <= range->to_ns)
            drops[count++] = omitted;
    }
    qsort(drops, count, sizeof(*drops), by_time);
    for (uint32_t i = 0, end; i < count; i = end) {
        double x = floor(krait_timeline_x(d, drops[i]->first_ns));
        for (end = i + 1; end < count && krait_timeline_x(d, drops[end]->first_ns) < x + 1;)
            end++;
        draw_drop(d, drops + i, end - i, x + 0.5, bottom);
    }
    draw_sets(d, bottom);
    return 0;
}

/* ---- parts ---- */

/* A thread's states and calls have a row in any case. */
static bool is_empty(const struct krait_track *track, const struct krait_timeline_part *part)
{
    if (track->kind == KRAIT_TRACK_SLICES)
        return !part->tile.depths;
    for (uint32_t i = 0; part->bins && i < part->tile.bins; i++) {
        if (part->bins[i].count || part->bins[i].known)
            return false;
    }
    return part->bins;
}

double krait_timeline_part_height(const struct krait_timeline *timeline,
                                  const struct krait_timeline_part *part)
{
    const struct krait_track *track = &timeline->trace->tracks[part->track];
    bool has_rows = track->kind == KRAIT_TRACK_CALLS || track->kind == KRAIT_TRACK_SLICES;
    if (krait_timeline_is_loss(track) || is_empty(track, part))
        return 0;
    return row_of(track) * (has_rows ? KRAIT_MAX(part->tile.depths, 1u) : 1) + BELOW;
}

/* Parts above the lane's calls and states need no name, nor does the part after which the lane is named. */
static void part_label(const struct drawn *p)
{
    struct krait_drawing *d = p->d;
    KRAIT_AUTO_BUF name = { 0 };
    bool is_lane = p->track->of == KRAIT_OF_LANE;
    bool is_lanes_name =
        p->track->of == KRAIT_OF_PROCESS || (is_lane && strcmp(p->track->name, p->track->thread_name) == 0);
    bool has_name = is_lane || p->track->kind == KRAIT_TRACK_SLICES || p->track->kind == KRAIT_TRACK_COUNTER;
    if (is_lanes_name || !has_name)
        return;
    krait_text_clean(&name, p->track->name);
    krait_buf_fmt(d->to, "<text class=\"name part\" x=\"%.0f\" y=\"%.0f\">", d->left - 8,
                  d->y + (p->row < ROW ? 8 : 11));
    krait_text_xml_name(d->to, name.len ? name.data : "", (size_t)((d->left - 40) / COLUMN));
    krait_buf_str(d->to, "</text>\n");
    d->to->failed |= name.failed;
}

void krait_timeline_draw_part(struct krait_drawing *d, const struct krait_timeline_part *part)
{
    const struct drawn p = drawn_of(d, part);
    double height = krait_timeline_part_height(d->timeline, part);
    if (!height)
        return;
    part_label(&p);
    krait_buf_str(d->to, "<g class=\"calls\" aria-label=\"");
    krait_text_xml_raw(d->to, p.track->name);
    krait_buf_str(d->to, "\">\n");
    if (p.track->kind == KRAIT_TRACK_INSTANTS)
        krait_timeline_draw_marks(d, part);
    else if (p.track->kind == KRAIT_TRACK_COUNTER)
        draw_counter(&p);
    else
        draw_boxes(&p);
    krait_buf_str(d->to, "</g>\n");
    d->y += height;
}

void krait_timeline_weigh(struct krait_drawing *d, const struct krait_timeline_part *part)
{
    const struct krait_tile *tile = &part->tile;
    if (d->timeline->trace->tracks[part->track].kind != KRAIT_TRACK_CALLS)
        return;
    for (uint32_t i = 0; i < tile->call_count; i++) {
        uint8_t hue = d->hues[tile->calls[i].func];
        d->hue_ns[hue] += tile->calls[i].end_ns - tile->calls[i].begin_ns + 1;
        d->hue_func[hue] = tile->calls[i].func;
    }
    for (size_t i = 0, n = (size_t)tile->depths * tile->bins; i < n && tile->cells; i++) {
        if (krait_tile_bin_is_empty(&tile->cells[i]))
            continue;
        uint8_t hue = d->hues[tile->cells[i].func];
        d->hue_ns[hue] += tile->cells[i].busy_ns + 1;
        d->hue_func[hue] = tile->cells[i].func;
    }
}

/* ---- states ---- */

typedef uint64_t state_times[KRAIT_WALL_COUNT];

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

static void draw_state(struct krait_drawing *d, uint32_t state, double x, double w, const state_times times)
{
    krait_buf_fmt(d->to, "<rect class=\"w %s\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\"><title>",
                  krait_looks[state].class, x, d->y, w, STATES);
    const char *comma = "";
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (!times[i])
            continue;
        krait_buf_fmt(d->to, "%s%s ", comma, krait_looks[i].words);
        krait_text_duration(d->to, times[i]);
        comma = ", ";
    }
    krait_buf_str(d->to, "</title></rect>\n");
    d->looks_seen |= (uint64_t)1 << state;
}

/* A column shows the state with the most time in it; its title lists all. */
int krait_timeline_draw_states(struct krait_drawing *d, const struct krait_timeline_lane *lane)
{
    const struct krait_wall_track *track = &lane->states;
    if (!track->items)
        return 0;
    const struct krait_trace *trace = d->timeline->trace;
    const struct krait_thread *thread = &trace->threads[trace->tracks[lane->track].thread];
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
    d->y += STATES + BELOW;
    return 0;
}

double krait_timeline_states_height(const struct krait_timeline_lane *lane)
{
    return lane->states.items ? STATES + BELOW : 0;
}
