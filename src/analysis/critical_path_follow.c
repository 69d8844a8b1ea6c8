/* SPDX-License-Identifier: Apache-2.0
 *
 * Following: a wait that is over becomes segments, backward along who ended what.
 */
#include "analysis/critical_path_inside.h"

#include "base/array.h"

/* Who had the CPU in a segment's time, by a record's list. The segment is cut where the range ends. */
static void tell_had(struct krait_path_finder *f, struct krait_path_segment *segment, uint32_t list)
{
    int64_t end_ns = KRAIT_MIN(segment->end_ns, f->to_ns);
    uint32_t count = 0;
    segment->had = f->had_ever.count;
    while (f->had.items[list + count].ns < end_ns)
        count++;
    f->failed |= !krait_competitors_add(&f->had_ever, f->had.items + list, count, segment->begin_ns, end_ns);
    segment->had_count = f->had_ever.count - segment->had;
}

void krait_path_add_segment(struct krait_path_finder *f, const struct krait_path_record *r, int64_t begin_ns,
                            int64_t end_ns, uint16_t depth)
{
    bool fits = KRAIT_GROW(f->segments.items, f->segments.cap, f->segments.count + 1);
    f->failed |= !fits;
    if (!fits || begin_ns >= end_ns)
        return;
    bool is_thread = r->kind <= KRAIT_PATH_PREEMPTED || r->kind == KRAIT_PATH_UNKNOWN;
    struct krait_path_segment *segment = &f->segments.items[f->segments.count++];
    *segment = (struct krait_path_segment){ .begin_ns = begin_ns,
                                            .end_ns = end_ns,
                                            .thread = r->thread,
                                            .call = is_thread ? KRAIT_NO_ID : r->call,
                                            .device = is_thread || !r->device ? KRAIT_NO_ID : r->device - 1u,
                                            .depth = depth,
                                            .kind = r->kind };
    if (r->had != KRAIT_NO_ID)
        tell_had(f, segment, r->had);
}

static void push(struct krait_path_finder *f, struct krait_path_frame frame)
{
    bool fits = KRAIT_GROW(f->frames.items, f->frames.cap, f->frames.count + 1);
    f->failed |= !fits;
    if (!fits)
        return;
    f->frames.items[f->frames.count++] = frame;
    if (frame.of != KRAIT_NO_ID)
        krait_path_record_at(f, frame.of)->followed = true;
}

static void pop(struct krait_path_finder *f)
{
    const struct krait_path_frame *frame = f->frames.items + --f->frames.count;
    if (frame->of != KRAIT_NO_ID)
        krait_path_record_at(f, frame->of)->followed = false;
}

/* How many waits lie around a record that is followed now. Of a packet's way it is that of who waits for it. */
static uint16_t depth_of(const struct krait_path_finder *f, const struct krait_path_record *r)
{
    bool is_flight = r->prev != KRAIT_NO_ID && krait_path_record_at(f, r->prev)->thread != r->thread;
    return (uint16_t)KRAIT_MIN(f->frames.count - 1 - is_flight, (uint32_t)UINT16_MAX);
}

/* What was before is forgotten, or was never told: a thread whose fork was lost begins late. */
static void add_unknown(struct krait_path_finder *f, const struct krait_path_frame *frame)
{
    const struct krait_path_record r = { .thread = frame->thread,
                                         .had = KRAIT_NO_ID,
                                         .kind = KRAIT_PATH_UNKNOWN };
    if (f->has_forgotten)
        f->path->forgotten_ns += (uint64_t)(frame->hi_ns - frame->lo_ns);
    krait_path_add_segment(f, &r, frame->lo_ns, frame->hi_ns,
                           (uint16_t)KRAIT_MIN(f->frames.count - 1, (uint32_t)UINT16_MAX));
}

/* One record backward: it is added, or what its cause did in its time comes before what is left of the frame.
 * What waits for itself, as damaged traces may say, is added: this ends. */
static void step(struct krait_path_finder *f)
{
    struct krait_path_frame *frame = f->frames.items + f->frames.count - 1;
    if (frame->record == KRAIT_NO_ID && frame->hi_ns > frame->lo_ns)
        add_unknown(f, frame);
    if (frame->record == KRAIT_NO_ID || frame->hi_ns <= frame->lo_ns) {
        pop(f);
        return;
    }
    uint32_t record = frame->record;
    const struct krait_path_record *r = krait_path_record_at(f, record);
    frame->thread = r->thread;
    int64_t begin_ns = KRAIT_MAX(r->begin_ns, frame->lo_ns), end_ns = frame->hi_ns;
    frame->hi_ns = KRAIT_MIN(begin_ns, end_ns);
    frame->record = r->prev;
    if (begin_ns >= end_ns)
        return;
    if (r->cause == KRAIT_NO_ID || r->followed)
        krait_path_add_segment(f, r, begin_ns, end_ns, depth_of(f, r));
    else
        push(f, (struct krait_path_frame){
                    .lo_ns = begin_ns, .hi_ns = end_ns, .record = r->cause, .of = record });
}

static void reverse(struct krait_path_segment *segments, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct krait_path_segment other = segments[count - 1 - i];
        segments[count - 1 - i] = segments[i];
        segments[i] = other;
    }
}

void krait_path_join(struct krait_path_finder *f, uint32_t first)
{
    struct krait_path_segment *all = f->segments.items;
    uint32_t count = first;
    for (uint32_t i = first; i < f->segments.count; i++) {
        struct krait_path_segment *last = count ? &all[count - 1] : NULL;
        if (last && last->kind == KRAIT_PATH_RUNNING && all[i].kind == last->kind &&
            all[i].thread == last->thread && all[i].depth == last->depth)
            last->end_ns = all[i].end_ns;
        else
            all[count++] = all[i];
    }
    f->segments.count = count;
}

void krait_path_follow(struct krait_path_finder *f, uint32_t record, int64_t begin_ns, int64_t end_ns)
{
    uint32_t first = f->segments.count;
    push(f, (struct krait_path_frame){
                .lo_ns = begin_ns, .hi_ns = end_ns, .record = record, .of = KRAIT_NO_ID });
    while (f->frames.count && !f->failed)
        step(f);
    if (f->failed || f->segments.count == first)
        return;
    reverse(f->segments.items + first, f->segments.count - first);
    krait_path_join(f, first);
}
