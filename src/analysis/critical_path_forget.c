/* SPDX-License-Identifier: Apache-2.0
 *
 * Forgetting: what is kept of a wait does not outgrow its memory.
 */
#include "analysis/critical_path_inside.h"

#include "base/array.h"

#include <string.h>

/* Marks what is needed of the time from half_ns on: a record, who ended it, and what the thread did before,
 * unless that was over by then. */
struct marking {
    const struct krait_path_finder *f;
    uint32_t *place; /* by record: KRAIT_NO_ID where it is not needed */
    uint32_t *todo;
    uint32_t count;
};

static void mark(struct marking *m, uint32_t record)
{
    if (record == KRAIT_NO_ID || m->place[record] != KRAIT_NO_ID)
        return;
    m->place[record] = 0;
    m->todo[m->count++] = record;
}

static void mark_places(struct marking *m, const struct krait_path_places *places)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (places->items[i].epoch == m->f->epoch)
            mark(m, places->items[i].record);
    }
}

static void mark_needed(struct marking *m)
{
    const struct krait_path_finder *f = m->f;
    mark_places(m, &f->of_thread);
    mark_places(m, &f->of_cpu);
    for (uint32_t i = 0; i < KRAIT_PATH_PACKETS; i++) {
        if (f->packets[i].from.epoch == f->epoch)
            mark(m, f->packets[i].from.record);
    }
    while (m->count) {
        const struct krait_path_record *r = krait_path_record_at(f, m->todo[--m->count]);
        mark(m, r->cause);
        bool is_flight = r->prev != KRAIT_NO_ID && krait_path_record_at(f, r->prev)->thread != r->thread;
        if (r->begin_ns > f->half_ns || is_flight)
            mark(m, r->prev);
    }
}

static uint32_t moved(const uint32_t *place, uint32_t record)
{
    return record == KRAIT_NO_ID ? KRAIT_NO_ID : place[record];
}

/* Lists of who had the CPU are copied where their records are needed. */
static void copy_had(struct krait_path_finder *f)
{
    struct krait_kruns kept = { 0 };
    for (uint32_t i = 0; i < f->records.count; i++) {
        struct krait_path_record *r = krait_path_record_at(f, i);
        const struct krait_krun *run = r->had == KRAIT_NO_ID ? NULL : &f->had.items[r->had];
        r->had = run ? kept.count : KRAIT_NO_ID;
        for (bool ended = !run; !ended && !f->failed; run++) {
            f->failed |= !KRAIT_GROW(kept.items, kept.cap, (size_t)kept.count + 1);
            if (!f->failed)
                kept.items[kept.count++] = *run;
            ended = run->ns == INT64_MAX;
        }
    }
    free(f->had.items);
    f->had = kept;
}

/* What takes memory, in records. */
static uint32_t used(const struct krait_path_finder *f)
{
    return f->records.count + f->had.count / (sizeof(struct krait_path_record) / sizeof(struct krait_krun));
}

/* Those that are needed move together, in their order. */
static void move_records(struct krait_path_finder *f, uint32_t *place)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->records.count; i++)
        place[i] = place[i] == KRAIT_NO_ID ? KRAIT_NO_ID : kept++;
    for (uint32_t i = 0; i < f->records.count; i++) {
        struct krait_path_record r = *krait_path_record_at(f, i);
        r.prev = moved(place, r.prev);
        r.cause = moved(place, r.cause);
        if (place[i] != KRAIT_NO_ID)
            *krait_path_record_at(f, place[i]) = r;
    }
    f->records.count = kept;
    copy_had(f);
}

static void move_places(const struct krait_path_finder *f, struct krait_path_places *places,
                        const uint32_t *place)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (places->items[i].epoch == f->epoch)
            places->items[i].record = moved(place, places->items[i].record);
    }
}

/* What is left is more than half where there are as many threads: then there is room for more. */
static void forget_older_half(struct krait_path_finder *f)
{
    uint32_t count = f->records.count;
    KRAIT_AUTO_FREE uint32_t *place = malloc(count * sizeof(*place));
    KRAIT_AUTO_FREE uint32_t *todo = malloc(count * sizeof(*todo));
    f->failed |= !place || !todo;
    if (f->failed)
        return;
    f->has_forgotten = true;
    memset(place, 0xff, count * sizeof(*place));
    mark_needed(&(struct marking){ .f = f, .place = place, .todo = todo });
    move_records(f, place);
    move_places(f, &f->of_thread, place);
    move_places(f, &f->of_cpu, place);
    for (uint32_t i = 0; i < KRAIT_PATH_PACKETS; i++) {
        if (f->packets[i].from.epoch == f->epoch)
            f->packets[i].from.record = moved(place, f->packets[i].from.record);
    }
    if (used(f) > f->most / 4 * 3)
        f->most *= 2;
    f->half = used(f) + (f->most - used(f)) / 2;
}

void krait_path_make_room(struct krait_path_finder *f, int64_t ns)
{
    if (used(f) >= f->most - f->most / 16)
        forget_older_half(f);
    if (used(f) < f->half)
        f->half_ns = ns;
}
