/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters that a program sets (krait.counter) as tracks. A counter is its process's: any thread may set it. The track is
 * the thread's if one thread alone sets the counter, else the process's.
 *
 * Tracks have whole numbers, programs any: see parts.h.
 */
#include "base/array.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/parts.h"
#include "trace/thread_events.h"

#include <math.h>

enum { BATCH = 1024 };

/* A track's key is the index. */
struct counter {
    uint32_t process, thread, name; /* a thread that sets it; krait_track_text */
    struct krait_parts parts;
    uint32_t threads; /* how many set it */
    uint32_t seen_in; /* the last of them, plus 1 */
    uint8_t lost;     /* KRAIT_TRACK_LOST if one of them has lost events, else 0 */
};

/* In trace->impl->source. */
struct counters {
    struct counter *items;
    uint32_t count, cap;
};

static void close_source(void *source)
{
    struct counters *counters = source;
    if (counters)
        free(counters->items);
    free(counters);
}

/* Reads an event; false where it says nothing that a track can have. */
static bool read_value(const struct krait_image *image, struct krait_cursor *payload, uint32_t *name,
                       double *value)
{
    struct krait_payload_user_counter event;
    if (!krait_read_user_counter(payload, &event) || isnan(event.value))
        return false;
    const uint64_t *known = krait_map_get(&image->names, event.name);
    *name = known ? (uint32_t)*known : KRAIT_NO_ID;
    *value = KRAIT_MAX(KRAIT_MIN(event.value, KRAIT_PARTS_MOST), -KRAIT_PARTS_MOST);
    return known;
}

/* -- finding -- */

struct finding {
    struct counters *counters;
    struct krait_map index; /* process and name to the counter */
    const struct krait_image *image;
    uint32_t process, thread;
    uint8_t lost; /* of the thread, as in struct counter */
};

static struct counter *find_counter(struct finding *f, uint32_t name)
{
    uint64_t key = (uint64_t)f->process << 32 | name;
    const uint64_t *known = krait_map_get(&f->index, key);
    struct counters *all = f->counters;
    if (known)
        return &all->items[*known];
    if (!KRAIT_GROW(all->items, all->cap, all->count + 1) || krait_map_put(&f->index, key, all->count))
        return NULL;
    all->items[all->count] = (struct counter){ .process = f->process, .thread = f->thread, .name = name };
    return &all->items[all->count++];
}

static int note_value(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct finding *f = ctx;
    uint32_t name;
    double value;
    if (!read_value(f->image, &payload, &name, &value))
        return 0;
    struct counter *counter = find_counter(f, name);
    if (!counter)
        return -ENOMEM;
    krait_parts_take(&counter->parts, value);
    counter->threads += counter->seen_in != f->thread + 1;
    counter->seen_in = f->thread + 1;
    counter->lost |= f->lost;
    return 0;
}

static int add_track(struct krait_trace *trace, const struct counter *counter, uint32_t key)
{
    struct krait_track *track =
        krait_trace_add_thread_track(trace, counter->thread, KRAIT_IMPORTER_krait_counters,
                                     KRAIT_TRACK_COUNTER, krait_track_text(trace, counter->name));
    if (!track)
        return -ENOMEM;
    track->flags = counter->lost;
    track->key = key;
    track->parts = krait_parts_of(&counter->parts, &track->unit);
    if (counter->threads == 1)
        return 0;
    track->of = KRAIT_OF_PROCESS;
    track->thread = KRAIT_NO_ID;
    track->number = 0;
    return 0;
}

static int find_in_thread(struct finding *f, const struct krait_trace *trace, uint32_t thread)
{
    struct krait_damage ignored = { 0 };
    struct krait_thread_events events = { .fn = note_value, .ctx = f };
    f->image = krait_image_of(trace, thread);
    f->process = trace->threads[thread].process;
    f->thread = thread;
    f->lost = trace->threads[thread].flags & KRAIT_TRACK_LOST;
    events.wanted[KRAIT_EVENT_user_counter] = true;
    return f->image->names.len ? krait_thread_events_read(&events, trace, thread, KRAIT_RANGE_ALL, &ignored)
                               : 0;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct finding f = { .counters = calloc(1, sizeof(*f.counters)) };
    trace->impl->source[KRAIT_IMPORTER_krait_counters] = f.counters;
    int rc = f.counters ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i) && !rc; i++)
        rc = find_in_thread(&f, trace, i);
    for (uint32_t i = 0; f.counters && i < f.counters->count && !rc; i++)
        rc = add_track(trace, &f.counters->items[i], i);
    krait_map_done(&f.index);
    return rc;
}

/* -- walking -- */

struct value {
    uint64_t t_ns;
    int64_t value;
};

struct reading {
    const struct krait_track *track;
    const struct krait_walking *walking;
    const struct krait_image *image;
    uint32_t name;
    double parts;
    bool is_sorted; /* by one thread alone: nothing is kept */
    bool has_before;
    struct value before; /* the last one in front of the range */
    struct value *values;
    uint32_t n, cap;
    uint64_t t_ns[BATCH];
    int64_t batch[BATCH];
    uint32_t batched;
};

static int flush(struct reading *r)
{
    const struct krait_batch out = { .n = r->batched, .t_ns = r->t_ns, .value = r->batch };
    r->batched = 0;
    return out.n ? r->walking->batch(r->walking->ctx, r->track, &out) : 0;
}

static int hand_out(struct reading *r, struct value value)
{
    r->t_ns[r->batched] = value.t_ns;
    r->batch[r->batched] = value.value;
    return ++r->batched == BATCH ? flush(r) : 0;
}

/* The next one by time. */
static int next_value(struct reading *r, struct value value)
{
    const struct krait_range *range = &r->walking->range;
    if (value.t_ns < range->from_ns) {
        r->before = value;
        r->has_before = true;
        return 0;
    }
    bool begins = r->has_before && value.t_ns > range->from_ns;
    r->has_before = false;
    int rc = begins ? hand_out(r, (struct value){ range->from_ns, r->before.value }) : 0;
    return rc || value.t_ns >= range->to_ns ? rc : hand_out(r, value);
}

static int on_value(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *r = ctx;
    uint32_t name;
    double value;
    if (!read_value(r->image, &payload, &name, &value) || name != r->name)
        return 0;
    const struct value read = { t_ns, (int64_t)rint(value * r->parts) };
    if (r->is_sorted && t_ns >= r->walking->range.to_ns)
        return -ERANGE;
    if (r->is_sorted)
        return next_value(r, read);
    if (!KRAIT_GROW(r->values, r->cap, r->n + 1))
        return -ENOMEM;
    r->values[r->n++] = read;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int read_threads(struct reading *r, const struct krait_trace *trace, const struct counter *counter)
{
    struct krait_damage damage = r->walking->damage;
    struct krait_thread_events events = { .fn = on_value, .ctx = r };
    int rc = 0;
    events.wanted[KRAIT_EVENT_user_counter] = true;
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++) {
        if (trace->threads[i].process != counter->process || !krait_image_of(trace, i) ||
            (r->is_sorted && i != counter->thread))
            continue;
        r->image = krait_image_of(trace, i);
        rc = krait_thread_events_read(&events, trace, i, KRAIT_RANGE_ALL, &damage);
        rc = rc == -ERANGE ? 0 : rc;
    }
    return rc;
}

/* A value that stands before the range holds in it, if no other one does. */
static int finish(struct reading *r)
{
    int rc = 0;
    if (r->n)
        qsort(r->values, r->n, sizeof(*r->values), by_time);
    for (uint32_t i = 0; i < r->n && !rc; i++)
        rc = next_value(r, r->values[i]);
    if (!rc && r->has_before)
        rc = hand_out(r, (struct value){ r->walking->range.from_ns, r->before.value });
    return rc ? rc : flush(r);
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct counters *counters = trace->impl->source[KRAIT_IMPORTER_krait_counters];
    const struct counter *counter = &counters->items[track->key];
    KRAIT_AUTO_FREE struct reading *r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    r->track = track;
    r->walking = walking;
    r->name = counter->name;
    r->parts = track->parts;
    r->is_sorted = counter->threads == 1;
    int rc = read_threads(r, trace, counter);
    rc = rc ? rc : finish(r);
    free(r->values);
    return rc;
}

const struct krait_importer krait_importer_krait_counters = { .takes = krait_folder_is_kraits,
                                                              .kinds = 1 << KRAIT_TRACK_COUNTER,
                                                              .tracks = find_tracks,
                                                              .walk = walk_track,
                                                              .close = close_source };
