/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/model.h"

#include <string.h>

/* -- classes -- */

int krait_model_add_stream(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_stream_class *stream)
{
    if (krait_ctf_stream(md, stream->id))
        return -EEXIST;
    void *streams = krait_arena_grow(&md->arena, md->streams, md->stream_count, cap, sizeof(*md->streams));
    if (!streams)
        return -ENOMEM;
    md->streams = streams;
    stream->index = md->stream_count;
    md->streams[md->stream_count++] = stream;
    return 0;
}

int krait_model_add_event(struct krait_arena *arena, struct krait_stream_class *stream,
                          struct krait_event_class *event)
{
    if (krait_ctf_event(stream, event->id))
        return -EEXIST;
    event->stream = stream;
    event->index = stream->event_count;
    /* Doubling at powers of two: the list needs no capacity of its own. */
    uint32_t cap = stream->event_count < 8                             ? (stream->event_count ? 8 : 0)
                   : (stream->event_count & (stream->event_count - 1)) ? UINT32_MAX
                                                                       : stream->event_count;
    void *events =
        krait_arena_grow(arena, stream->events, stream->event_count, &cap, sizeof(*stream->events));
    if (!events)
        return -ENOMEM;
    stream->events = events;
    stream->events[stream->event_count++] = event;
    return krait_map_put(&stream->by_id, event->id, event->index);
}

/* Where krait_ctf_ns counts in doubles, which may be rounded up, the last time is a little before the end. An
 * offset that is beyond time by itself makes no time true (nanoseconds for seconds, in traces of Trace
 * Compass's): babeltrace2 refuses those events too. */
static void set_last(struct krait_ctf_clock *clock)
{
    __int128 offset = (__int128)clock->offset * (__int128)KRAIT_NS_PER_S / clock->freq;
    __int128 base = (__int128)clock->offset_s * (__int128)KRAIT_NS_PER_S + offset, most = INT64_MAX - base;
    clock->beyond = base < INT64_MIN || base > INT64_MAX;
    if (clock->beyond)
        return;
    if (clock->freq != KRAIT_NS_PER_S) {
        most = KRAIT_MIN(most, (__int128)INT64_MAX);
        most -= most >> 50;
    }
    unsigned __int128 ticks = (unsigned __int128)most * clock->freq / KRAIT_NS_PER_S;
    clock->last = ticks < UINT64_MAX ? (uint64_t)ticks : UINT64_MAX;
}

int krait_model_add_clock(struct krait_ctf_metadata *md, uint32_t *cap, struct krait_ctf_clock *clock)
{
    if (krait_ctf_clock_named(md, clock->name))
        return -EEXIST;
    if (__builtin_add_overflow(clock->offset_s, (int64_t)(clock->offset / clock->freq), &clock->offset_s))
        return -ERANGE;
    clock->offset %= clock->freq;
    set_last(clock);
    void *clocks = krait_arena_grow(&md->arena, md->clocks, md->clock_count, cap, sizeof(*md->clocks));
    if (!clocks)
        return -ENOMEM;
    md->clocks = clocks;
    md->clocks[md->clock_count++] = clock;
    return 0;
}

const char *krait_model_identity(struct krait_arena *arena, const char *space, const char *name,
                                 const char *uid)
{
    return krait_arena_fmt(arena, "%s\x1f%s\x1f%s", space, name, uid);
}

static uint64_t count_fields(const struct krait_fc *fc)
{
    uint64_t count = 1;
    if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        count += count_fields(fc->elem);
    bool has_members =
        fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    for (uint32_t i = 0; has_members && i < fc->count; i++)
        count += count_fields(fc->members[i].fc);
    return count;
}

uint64_t krait_model_context_fields(const struct krait_ctf_metadata *md)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < md->stream_count; i++) {
        const struct krait_fc *context = md->streams[i]->event_context;
        all += context ? count_fields(context) * md->streams[i]->event_count : 0;
    }
    return all;
}

/* -- byte orders -- */

/* Orders of bits that were met, a bit each; with `mark`, the fields are told. */
struct orders {
    unsigned met;
    bool mark;
};

static bool is_bits(const struct krait_fc *fc)
{
    return (krait_fc_is_int(fc) || fc->kind == KRAIT_FC_FLOAT) && !fc->is_leb &&
           (fc->bits % 8 || fc->align % 8);
}

static void walk_orders(struct orders *orders, struct krait_fc *fc)
{
    if (!fc)
        return;
    if (is_bits(fc)) {
        orders->met |= 1u << fc->byte_order;
        fc->order_counts = orders->mark;
    }
    if (fc->kind == KRAIT_FC_ARRAY || fc->kind == KRAIT_FC_SEQUENCE)
        walk_orders(orders, fc->elem);
    bool has_members =
        fc->kind == KRAIT_FC_STRUCT || fc->kind == KRAIT_FC_VARIANT || fc->kind == KRAIT_FC_OPTIONAL;
    for (uint32_t i = 0; has_members && i < fc->count; i++)
        walk_orders(orders, fc->members[i].fc);
}

/* The metadata's own field classes, which it does not change any more but here. */
static void walk_all_orders(struct orders *orders, const struct krait_ctf_metadata *md)
{
    walk_orders(orders, (struct krait_fc *)md->packet_header);
    for (uint32_t s = 0; s < md->stream_count; s++) {
        const struct krait_stream_class *stream = md->streams[s];
        walk_orders(orders, (struct krait_fc *)stream->packet_context);
        walk_orders(orders, (struct krait_fc *)stream->event_header);
        walk_orders(orders, (struct krait_fc *)stream->event_context);
        for (uint32_t i = 0; i < stream->event_count; i++) {
            walk_orders(orders, (struct krait_fc *)stream->events[i]->context);
            walk_orders(orders, (struct krait_fc *)stream->events[i]->fields);
        }
    }
}

void krait_model_note_orders(struct krait_ctf_metadata *md)
{
    struct orders orders = { 0 };
    walk_all_orders(&orders, md);
    if (orders.met != (1u << KRAIT_BO_LE | 1u << KRAIT_BO_BE))
        return;
    orders.mark = true;
    walk_all_orders(&orders, md);
}
