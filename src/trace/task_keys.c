/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/task_keys.h"

#include "base/array.h"
#include "event/steps.h"
#include "trace/importer.h"
#include "trace/tasks.h"
#include "trace/thread_events.h"

#include <string.h>

void krait_task_keys_done(struct krait_task_keys *keys)
{
    for (uint32_t i = 0; keys->threads && i < keys->trace->thread_count; i++)
        free(keys->threads[i].items);
    free(keys->threads);
    free(keys->labels);
    krait_map_done(&keys->first);
    krait_strtab_done(&keys->texts);
    krait_arena_done(&keys->arena);
}

/* -- when -- */

struct reading {
    const struct krait_image *image;
    struct krait_task_turns *turns;
    struct krait_steps steps; /* by the tasks' ids */
    struct krait_breaks breaks;
};

static int add_turn(struct krait_task_turns *turns, uint64_t t_ns, uint32_t task)
{
    const struct krait_task_turn *last = turns->count ? &turns->items[turns->count - 1] : NULL;
    if ((last ? last->task : KRAIT_NO_ID) == task)
        return 0;
    if (!KRAIT_GROW(turns->items, turns->cap, turns->count + 1))
        return -ENOMEM;
    turns->items[turns->count++] =
        (struct krait_task_turn){ last ? KRAIT_MAX(t_ns, last->t_ns) : t_ns, task };
    return 0;
}

/* What the thread was in does not hold behind the last event before a break. */
static int pass_breaks(struct reading *reading, uint64_t t_ns)
{
    if (!krait_breaks_pass(&reading->breaks, t_ns))
        return 0;
    reading->steps.depth = 0;
    return add_turn(reading->turns, reading->breaks.since_ns + 1, KRAIT_NO_ID);
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *reading = ctx;
    int rc = pass_breaks(reading, t_ns);
    if (rc)
        return rc;
    krait_steps_follow(&reading->steps, id, payload);
    const uint64_t *task = krait_map_get(&reading->image->tasks, krait_steps_top(&reading->steps, 0));
    return add_turn(reading->turns, t_ns, task ? (uint32_t)*task : KRAIT_NO_ID);
}

static int read_turns(struct krait_task_keys *keys, uint32_t thread)
{
    struct reading reading = { .image = krait_image_of(keys->trace, thread),
                               .turns = &keys->threads[thread] };
    struct krait_thread_events events = { .fn = on_event, .ctx = &reading };
    struct krait_damage ignored = { 0 }; /* who walks the thread is told */
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    reading.turns->is_read = true;
    if (!reading.image || !krait_thread_events_may_be(&events, keys->trace, thread))
        return 0;
    reading.breaks = krait_breaks_from(keys->trace, thread, 0);
    int rc = krait_thread_events_read(&events, keys->trace, thread, KRAIT_RANGE_ALL, &ignored);
    return rc == -ENOMEM ? rc : pass_breaks(&reading, UINT64_MAX);
}

static struct krait_task_turns *turns_of(struct krait_task_keys *keys, uint32_t thread)
{
    if (!keys->threads)
        keys->threads = calloc((size_t)keys->trace->thread_count + 1, sizeof(*keys->threads));
    keys->failed |= !keys->threads;
    if (keys->threads && !keys->threads[thread].is_read)
        keys->failed |= read_turns(keys, thread) != 0;
    return keys->threads ? &keys->threads[thread] : NULL;
}

/* Events are asked for in the order of time mostly: in the same turn as the last one, or in the next. */
static bool is_in(const struct krait_task_turns *turns, size_t at, uint64_t t_ns)
{
    return at < turns->count && turns->items[at].t_ns <= t_ns &&
           (at + 1 == turns->count || t_ns < turns->items[at + 1].t_ns);
}

uint32_t krait_task_keys_at(struct krait_task_keys *keys, uint32_t thread, uint64_t t_ns)
{
    struct krait_task_turns *turns =
        thread == KRAIT_NO_ID || !keys->trace->task_count ? NULL : turns_of(keys, thread);
    if (!turns || !turns->count || t_ns < turns->items[0].t_ns)
        return KRAIT_NO_ID;
    if (is_in(turns, turns->at + 1, t_ns))
        turns->at++;
    else if (!is_in(turns, turns->at, t_ns))
        turns->at = KRAIT_PARTITION_POINT(i, turns->count, turns->items[i].t_ns <= t_ns) - 1;
    return turns->items[turns->at].task;
}

uint32_t krait_task_keys_begun(struct krait_task_keys *keys, uint32_t thread, uint64_t t_ns, uint64_t next_ns)
{
    uint32_t task = krait_task_keys_at(keys, thread, t_ns);
    const struct krait_task_turns *turns =
        thread == KRAIT_NO_ID || !keys->trace->task_count ? NULL : turns_of(keys, thread);
    if (!turns || (task != KRAIT_NO_ID && next_ns == UINT64_MAX))
        return task;
    size_t i = KRAIT_PARTITION_POINT(k, turns->count, turns->items[k].t_ns <= t_ns);
    while (i < turns->count && turns->items[i].task == KRAIT_NO_ID)
        i++;
    return i < turns->count && turns->items[i].t_ns <= next_ns ? turns->items[i].task : task;
}

uint32_t krait_task_keys_numbered(const struct krait_task_keys *keys, uint32_t thread, uint64_t number)
{
    const struct krait_image *image = thread == KRAIT_NO_ID ? NULL : krait_image_of(keys->trace, thread);
    const uint64_t *task = image ? krait_map_get(&image->tasks, number) : NULL;
    return task ? (uint32_t)*task : KRAIT_NO_ID;
}

uint32_t krait_task_keys_of(const struct krait_task_keys *keys, const struct krait_track *track)
{
    return track->of == KRAIT_OF_TASK ? krait_task_keys_numbered(keys, track->thread, track->number)
                                      : KRAIT_NO_ID;
}

/* -- names -- */

/* Another task has the label, too. */
static void share(struct krait_task_keys *keys, uint32_t first, uint32_t task)
{
    const struct krait_task *tasks = keys->trace->tasks;
    keys->labels[first].is_shared = true;
    keys->labels[first].is_of_more |= tasks[first].process != tasks[task].process;
}

static int label_task(struct krait_task_keys *keys, uint32_t task)
{
    const char *text = krait_task_label_in(&keys->arena, keys->trace, &keys->trace->tasks[task]);
    uint32_t id = text ? krait_strtab_add(&keys->texts, text, strlen(text)) : KRAIT_NO_ID;
    const uint64_t *first = id == KRAIT_NO_ID ? NULL : krait_map_get(&keys->first, id);
    keys->labels[task].text = text;
    if (first)
        share(keys, (uint32_t)*first, task);
    return id == KRAIT_NO_ID || (!first && krait_map_put(&keys->first, id, task)) ? -ENOMEM : 0;
}

/* All of them: only then it is known which are called alike. */
static int label_all(struct krait_task_keys *keys)
{
    keys->labels = calloc((size_t)keys->trace->task_count + 1, sizeof(*keys->labels));
    int rc = keys->labels ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < keys->trace->task_count && !rc; i++)
        rc = label_task(keys, i);
    return rc;
}

static const char *name_of(struct krait_task_keys *keys, uint32_t task)
{
    const struct krait_task *of = &keys->trace->tasks[task];
    const char *text = keys->labels[task].text;
    uint32_t id = text ? krait_strtab_find(&keys->texts, text, strlen(text)) : KRAIT_NO_ID;
    const uint64_t *first = id == KRAIT_NO_ID ? NULL : krait_map_get(&keys->first, id);
    if (!first)
        return NULL;
    if (!keys->labels[*first].is_shared)
        return text;
    return keys->labels[*first].is_of_more ? krait_arena_fmt(&keys->arena, "%s #%u of %u", text, of->id,
                                                             keys->trace->processes[of->process].pid)
                                           : krait_arena_fmt(&keys->arena, "%s #%u", text, of->id);
}

const char *krait_task_keys_name(struct krait_task_keys *keys, uint32_t task)
{
    if (task == KRAIT_NO_ID)
        return NULL;
    if (!keys->labels)
        keys->failed |= label_all(keys) != 0;
    if (keys->failed)
        return NULL;
    if (!keys->labels[task].name)
        keys->labels[task].name = name_of(keys, task);
    keys->failed |= !keys->labels[task].name;
    return keys->labels[task].name;
}
