/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wall.h"

#include <string.h>

/* A kernel's thread whose intervals were kept, by the number that it has in its own namespace. */
struct life {
    int32_t id;
    const struct krait_kthread *thread;
    uint64_t born_ns;
};

struct krait_wall {
    const struct krait_trace *trace;
    struct krait_kernel_states *states;
    struct life *lives; /* by id, then as they were met */
    uint32_t life_count;
    struct krait_map wanted; /* numbers of the recorded threads */
    bool *kept; /* by index among the states' threads, for a second run; NULL: all that are wanted */
    uint32_t kept_count;
    uint64_t lost;
    bool own;
    struct krait_err damage;
};

static const uint8_t wall_of[KRAIT_TS_COUNT] = {
    [KRAIT_TS_USER] = KRAIT_WALL_ON_CPU,        [KRAIT_TS_SYSTEM] = KRAIT_WALL_ON_CPU,
    [KRAIT_TS_INTERRUPT] = KRAIT_WALL_ON_CPU,   [KRAIT_TS_WOKEN] = KRAIT_WALL_RUNNABLE,
    [KRAIT_TS_PREEMPTED] = KRAIT_WALL_RUNNABLE, [KRAIT_TS_DISK] = KRAIT_WALL_DISK,
    [KRAIT_TS_NETWORK] = KRAIT_WALL_NETWORK,    [KRAIT_TS_TIMER] = KRAIT_WALL_TIMER,
    [KRAIT_TS_LOCK] = KRAIT_WALL_LOCK,          [KRAIT_TS_CHILD] = KRAIT_WALL_CHILD,
    [KRAIT_TS_FAULT] = KRAIT_WALL_FAULT,        [KRAIT_TS_BLOCKED] = KRAIT_WALL_OTHER,
    [KRAIT_TS_UNKNOWN] = KRAIT_WALL_UNKNOWN,    [KRAIT_TS_GONE] = KRAIT_WALL_UNKNOWN,
};

/* -- which of the kernel's threads -- */

static bool is_wanted(const struct krait_wall *wall, int32_t id)
{
    return krait_map_get(&wall->wanted, (uint32_t)id) != NULL;
}

static bool keep(void *ctx, uint32_t index, int32_t tid)
{
    const struct krait_wall *wall = ctx;
    return wall->kept ? index < wall->kept_count && wall->kept[index] : is_wanted(wall, tid);
}

static int want_threads(struct krait_wall *wall)
{
    int rc = 0;
    for (uint32_t i = 0; i < wall->trace->thread_count && !rc; i++)
        rc = krait_map_put(&wall->wanted, wall->trace->threads[i].tid, 0);
    return rc;
}

/* Whether a thread is meant that bore another number when it was met: it lives in a namespace of its own. */
static bool misses_some(const struct krait_wall *wall)
{
    for (uint32_t i = 0; i < wall->states->thread_count; i++) {
        const struct krait_kthread *t = wall->states->threads[i];
        if (!t->kept && is_wanted(wall, krait_kthread_own_id(t)))
            return true;
    }
    return false;
}

static int run_again(struct krait_wall *wall, struct krait_kevs *kevs,
                     const struct krait_kernel_options *options, struct krait_err *err)
{
    uint32_t count = wall->states->thread_count;
    bool *kept = calloc((size_t)count + 1, sizeof(*kept));
    if (!kept)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++)
        kept[i] = is_wanted(wall, krait_kthread_own_id(wall->states->threads[i]));
    wall->kept = kept;
    wall->kept_count = count;
    krait_kernel_states_free(wall->states);
    wall->states = NULL;
    return krait_kernel_states_new(&wall->states, kevs, options, err);
}

static int by_id(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->born_ns > y->born_ns) - (x->born_ns < y->born_ns);
}

static int list_lives(struct krait_wall *wall)
{
    const struct krait_kernel_states *states = wall->states;
    wall->lives = calloc((size_t)states->thread_count + 1, sizeof(*wall->lives));
    if (!wall->lives)
        return -ENOMEM;
    for (uint32_t i = 0; i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        bool unborn = t->interval_count && t->intervals[0].state == KRAIT_TS_GONE;
        if (t->interval_count > unborn && !t->is_kernel)
            wall->lives[wall->life_count++] =
                (struct life){ krait_kthread_own_id(t), t, (uint64_t)t->intervals[unborn].begin_ns };
    }
    qsort(wall->lives, wall->life_count, sizeof(*wall->lives), by_id);
    return 0;
}

/* The life of a number that goes on at a time; NULL where there is none. What said its number itself is
 * preferred to what the kernel calls so. */
static const struct krait_kthread *life_at(const struct krait_wall *wall, int32_t id, uint64_t t_ns)
{
    uint32_t low = 0, high = wall->life_count;
    const struct krait_kthread *found = NULL;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (wall->lives[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < wall->life_count && wall->lives[low].id == id && wall->lives[low].born_ns <= t_ns; low++) {
        const struct krait_kthread *t = wall->lives[low].thread;
        found = !found || t->own_tid || !found->own_tid ? t : found;
    }
    return found;
}

/* -- making it -- */

static bool has_switches(const struct krait_kevs *kevs)
{
    uint32_t count;
    const struct krait_kev_class *classes = krait_kevs_classes(kevs, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (classes[i].kind == KRAIT_KEV_SWITCH || classes[i].kind == KRAIT_KEV_RUN)
            return true;
    }
    return false;
}

static int run(struct krait_wall *wall, struct krait_kevs *kevs, struct krait_err *err)
{
    const struct krait_kernel_options options = { .until_ns = UINT64_MAX, .keep = keep, .ctx = wall };
    if (!has_switches(kevs))
        return krait_err_set(err, -ENODATA, "there is no sched_switch; record it with --kernel=sched,...");
    if (want_threads(wall))
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_kernel_states_new(&wall->states, kevs, &options, err);
    if (!rc && misses_some(wall))
        rc = run_again(wall, kevs, &options, err);
    if (!rc && list_lives(wall))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    wall->lost = krait_kevs_lost(kevs);
    wall->own = krait_kevs_own(kevs);
    wall->damage = *krait_kevs_damage(kevs);
    return rc;
}

int krait_wall_new(struct krait_wall **out, const struct krait_trace *trace, struct krait_err *err)
{
    struct krait_kevs *kevs = NULL;
    struct krait_wall *wall = calloc(1, sizeof(*wall));
    int rc = wall ? krait_kevs_open(&kevs, trace->kernel_dirs, trace->kernel_dir_count, err)
                  : krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        wall->trace = trace;
        rc = run(wall, kevs, err);
    }
    krait_kevs_close(kevs);
    if (rc)
        krait_wall_free(wall);
    else
        *out = wall;
    return rc;
}

void krait_wall_free(struct krait_wall *wall)
{
    if (!wall)
        return;
    krait_kernel_states_free(wall->states);
    krait_map_done(&wall->wanted);
    free(wall->lives);
    free(wall->kept);
    free(wall);
}

/* -- tracks -- */

static void add(struct krait_wall_track *track, uint64_t begin_ns, enum krait_wall_state state)
{
    track->items[track->count++] =
        (struct krait_wall_interval){ .begin_ns = begin_ns, .call = KRAIT_NO_ID, .state = (uint8_t)state };
}

int krait_wall_track_new(struct krait_wall_track *track, const struct krait_wall *wall, uint32_t thread)
{
    enum { AROUND = 3 }; /* the unknown before and after, and what ends all */
    const struct krait_thread *own = &wall->trace->threads[thread];
    const struct krait_kthread *t = life_at(wall, (int32_t)own->tid, own->end_ns);
    uint32_t count = t ? t->interval_count : 0;
    struct krait_wall_track made = { .items = calloc((size_t)count + AROUND, sizeof(*made.items)) };
    if (!made.items)
        return -ENOMEM;
    add(&made, 0, KRAIT_WALL_UNKNOWN);
    for (uint32_t i = 0; i < count; i++) {
        const struct krait_kinterval *from = &t->intervals[i];
        add(&made, (uint64_t)from->begin_ns, (enum krait_wall_state)wall_of[from->state]);
        made.items[i + 1].call = from->call;
        made.items[i + 1].by = from->by;
        made.items[i + 1].preempted = from->state == KRAIT_TS_PREEMPTED;
    }
    if (count)
        add(&made, (uint64_t)wall->states->end_ns, KRAIT_WALL_UNKNOWN);
    made.items[made.count].begin_ns = UINT64_MAX;
    *track = made;
    return 0;
}

void krait_wall_track_done(struct krait_wall_track *track)
{
    free(track->items);
    *track = (struct krait_wall_track){ 0 };
}

const struct krait_wall_interval *krait_wall_at(const struct krait_wall_track *track, uint64_t t_ns)
{
    uint32_t low = 0, high = track->count - 1;
    while (low < high) { /* the last that begins then or before */
        uint32_t mid = high - (high - low) / 2;
        if (track->items[mid].begin_ns <= t_ns)
            low = mid;
        else
            high = mid - 1;
    }
    return &track->items[low];
}

/* -- what there is to say -- */

const char *krait_wall_call(const struct krait_wall *wall, uint32_t call)
{
    return call == KRAIT_NO_ID ? "" : wall->states->calls.texts[call];
}

const char *krait_wall_name(const struct krait_wall *wall, int32_t tid)
{
    const struct krait_kthread *t = krait_kernel_states_thread(wall->states, tid);
    return t ? t->name : "";
}

uint32_t krait_wall_thread(const struct krait_wall *wall, int32_t tid, uint64_t t_ns)
{
    const struct krait_kthread *t = krait_kernel_states_thread(wall->states, tid);
    uint32_t id = (uint32_t)(t ? krait_kthread_own_id(t) : tid), found = KRAIT_NO_ID;
    for (uint32_t i = 0; i < wall->trace->thread_count; i++) {
        const struct krait_thread *own = &wall->trace->threads[i];
        if (own->tid == id && own->begin_ns <= t_ns &&
            (found == KRAIT_NO_ID || own->begin_ns > wall->trace->threads[found].begin_ns))
            found = i;
    }
    return found;
}

uint64_t krait_wall_lost(const struct krait_wall *wall)
{
    return wall->lost;
}

bool krait_wall_own(const struct krait_wall *wall)
{
    return wall->own;
}

const struct krait_err *krait_wall_damage(const struct krait_wall *wall)
{
    return &wall->damage;
}
