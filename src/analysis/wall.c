/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wall.h"

#include "analysis/wall_states.h"
#include "base/array.h"
#include "trace/gil_holders.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/own_threads.h"
#include "trace/sample_runs.h"

#include <pthread.h>

struct krait_wall {
    const struct krait_trace *trace;
    unsigned flags;                           /* enum krait_wall_flags */
    const struct krait_kernel_states *states; /* NULL without the kernel's part */
    struct krait_wall_states own_states;
    struct krait_wall_kept *kept; /* instead, of a recording that goes on; NULL: its own */
    uint64_t number;              /* the kept states' */
    struct krait_own_threads own_threads;
    uint64_t lost;
    bool own, interrupts;
    struct krait_err damage;
    struct krait_gil_holders *holders; /* NULL: not asked for */
};

static const uint8_t wall_of[KRAIT_TS_COUNT] = {
    [KRAIT_TS_USER] = KRAIT_WALL_ON_CPU,         [KRAIT_TS_SYSTEM] = KRAIT_WALL_ON_CPU,
    [KRAIT_TS_INTERRUPT] = KRAIT_WALL_ON_CPU,    [KRAIT_TS_WOKEN] = KRAIT_WALL_RUNNABLE,
    [KRAIT_TS_THROTTLED] = KRAIT_WALL_THROTTLED, [KRAIT_TS_STOPPED] = KRAIT_WALL_STOPPED,
    [KRAIT_TS_PREEMPTED] = KRAIT_WALL_RUNNABLE,  [KRAIT_TS_DISK] = KRAIT_WALL_DISK,
    [KRAIT_TS_NETWORK] = KRAIT_WALL_NETWORK,     [KRAIT_TS_TIMER] = KRAIT_WALL_TIMER,
    [KRAIT_TS_LOCK] = KRAIT_WALL_LOCK,           [KRAIT_TS_CHILD] = KRAIT_WALL_CHILD,
    [KRAIT_TS_FAULT] = KRAIT_WALL_FAULT,         [KRAIT_TS_BLOCKED] = KRAIT_WALL_OTHER,
    [KRAIT_TS_UNKNOWN] = KRAIT_WALL_UNKNOWN,     [KRAIT_TS_GONE] = KRAIT_WALL_UNKNOWN,
};

/* -- what walls of a recording that goes on share -- */

struct krait_wall_kept {
    pthread_rwlock_t lock;
    struct krait_wall_states states;
    uint64_t number; /* of what there was before these states */
};

static const struct krait_wall_states *states_of(const struct krait_wall *wall)
{
    return wall->kept ? &wall->kept->states : &wall->own_states;
}

uint64_t krait_wall_end(const struct krait_wall *wall)
{
    return (uint64_t)states_of(wall)->end_ns;
}

int krait_wall_kept_new(struct krait_wall_kept **out)
{
    struct krait_wall_kept *kept = calloc(1, sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    pthread_rwlock_init(&kept->lock, NULL);
    *out = kept;
    return 0;
}

void krait_wall_kept_free(struct krait_wall_kept *kept)
{
    if (!kept)
        return;
    krait_wall_states_done(&kept->states);
    pthread_rwlock_destroy(&kept->lock);
    free(kept);
}

void krait_wall_kept_forget(struct krait_wall_kept *kept)
{
    if (!kept)
        return;
    pthread_rwlock_wrlock(&kept->lock);
    krait_wall_states_done(&kept->states);
    kept->number++;
    pthread_rwlock_unlock(&kept->lock);
}

bool krait_wall_use(const struct krait_wall *wall)
{
    if (!wall->kept)
        return true;
    pthread_rwlock_rdlock(&wall->kept->lock);
    bool is_there = wall->number == wall->kept->number;
    if (!is_there)
        pthread_rwlock_unlock(&wall->kept->lock);
    return is_there;
}

void krait_wall_used(const struct krait_wall *wall)
{
    if (wall->kept)
        pthread_rwlock_unlock(&wall->kept->lock);
}

/* -- making it -- */

/* The kept states, with what is new. */
static int read_on(struct krait_wall *wall, struct krait_kernel_events *events, struct krait_err *err)
{
    struct krait_wall_kept *kept = wall->kept;
    bool anew;
    int rc = krait_wall_states_read_on(&kept->states, wall->trace, events, &anew, err);
    kept->number += anew;
    wall->number = kept->number;
    return rc;
}

static int read_events(struct krait_wall *wall, struct krait_kernel_events *events, struct krait_err *err)
{
    uint64_t before = krait_kernel_events_bytes(events);
    int rc = wall->kept ? read_on(wall, events, err)
                        : krait_wall_states_read(&wall->own_states, wall->trace, events, err);
    wall->states = states_of(wall)->of;
    krait_kernel_count_read(wall->trace, events, before);
    wall->lost = krait_kernel_events_lost(events);
    wall->own = krait_kernel_events_own(events);
    wall->interrupts = krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_IRQ_BEGIN) ||
                       krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN);
    wall->damage = *krait_kernel_events_damage(events);
    return rc;
}

static int read_kernel(struct krait_wall *wall, struct krait_err *err)
{
    struct krait_kernel_events *events;
    int rc = krait_trace_kernel(wall->trace, &events, err);
    rc = rc ? rc : read_events(wall, events, err);
    if (!rc && krait_own_threads_init(&wall->own_threads, wall->trace, wall->states))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

/* Nobody uses the kept states meanwhile. */
static int read_kernel_alone(struct krait_wall *wall, struct krait_err *err)
{
    struct krait_wall_kept *kept = wall->kept;
    if (kept)
        pthread_rwlock_wrlock(&kept->lock);
    int rc = read_kernel(wall, err);
    if (kept)
        pthread_rwlock_unlock(&kept->lock);
    return rc;
}

static int know_threads(struct krait_wall *wall, struct krait_err *err)
{
    if (krait_own_threads_init(&wall->own_threads, wall->trace, NULL))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int krait_wall_new_on(struct krait_wall **out, const struct krait_trace *trace, unsigned flags,
                      struct krait_wall_kept *kept, struct krait_err *err)
{
    struct krait_wall *wall = calloc(1, sizeof(*wall));
    if (!wall)
        return krait_err_set(err, -ENOMEM, "out of memory");
    wall->trace = trace;
    wall->flags = flags;
    wall->kept = flags & KRAIT_WALL_KERNEL && krait_kernel_goes_on(trace) ? kept : NULL;
    int rc = flags & KRAIT_WALL_KERNEL ? read_kernel_alone(wall, err) : know_threads(wall, err);
    if (!rc && flags & KRAIT_WALL_HOLDERS && krait_gil_holders_new(&wall->holders, trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        krait_wall_free(wall);
    else
        *out = wall;
    return rc;
}

int krait_wall_new(struct krait_wall **out, const struct krait_trace *trace, unsigned flags,
                   struct krait_err *err)
{
    return krait_wall_new_on(out, trace, flags, NULL, err);
}

void krait_wall_free(struct krait_wall *wall)
{
    if (!wall)
        return;
    krait_wall_states_done(&wall->own_states);
    krait_own_threads_done(&wall->own_threads);
    krait_gil_holders_free(wall->holders);
    free(wall);
}

/* -- tracks -- */

/* A part of a wait for the GIL in which one thread had it, or none. */
struct held {
    uint64_t begin_ns, end_ns;
    uint64_t wait_end_ns; /* of the whole wait */
    uint32_t holder;      /* krait_wall_interval.by, as the program's number of it */
    uint8_t part;         /* krait_wall_interval.part */
};

struct all_held {
    struct held *items;
    uint32_t count, cap;
};

static void all_held_done(struct all_held *held)
{
    free(held->items);
}

static bool add_held(struct all_held *held, struct held part)
{
    if (!KRAIT_GROW(held->items, held->cap, held->count + 1))
        return false;
    held->items[held->count++] = part;
    return true;
}

static bool split_wait(struct all_held *held, const struct krait_gil_holders *holders,
                       const struct krait_thread *thread, const struct krait_gil_wait *wait)
{
    static const uint8_t parts[] = { [KRAIT_GIL_UNKNOWN] = KRAIT_WALL_GIL_UNKNOWN,
                                     [KRAIT_GIL_HELD] = KRAIT_WALL_GIL,
                                     [KRAIT_GIL_FREE] = KRAIT_WALL_GIL_FREE };
    struct krait_gil_part part = { 0 };
    if (!holders)
        return add_held(
            held, (struct held){ wait->begin_ns, wait->end_ns, wait->end_ns, wait->holder, KRAIT_WALL_GIL });
    while (krait_gil_part_next(holders, thread, wait, &part)) {
        bool is_by_another = part.state == KRAIT_GIL_FREE && part.holder != thread->tid;
        if (!add_held(held, (struct held){ part.begin_ns, part.end_ns, wait->end_ns,
                                           is_by_another ? 0 : part.holder, parts[part.state] }))
            return false;
    }
    return true;
}

/* A thread's track is made from two lists, in the order of time both: what the kernel says, and the waits for
 * the GIL. */
struct overlay {
    struct krait_wall_track *track;
    const struct krait_wall *wall;
    const struct all_held *waits;
    uint32_t next; /* of the waits: the first that is not over yet */
    /* Where the kernel's part is read; NULL: it has nothing. */
    const struct krait_kinterval *at, *end;
};

static void add(struct krait_wall_track *track, struct krait_wall_interval interval, uint64_t begin_ns)
{
    if (track->count && track->items[track->count - 1].begin_ns == begin_ns)
        track->count--; /* of no length */
    interval.begin_ns = begin_ns;
    track->items[track->count++] = interval;
}

/* What `by` is: of the kernel's threads what krait_kernel_cause takes; a thread of the trace's that the kernel
 * does not tell of; or no more than the number that the program has for it. */
enum { IN_TRACE = 1 << 30, NUMBER = 1 << 29 };

/* A thread that the program calls so; 0: it does not know. */
static uint32_t holder_at(const struct krait_wall *wall, uint32_t own, uint64_t t_ns)
{
    const struct krait_kthread *t = krait_own_threads_life(&wall->own_threads, (int32_t)own, t_ns);
    uint32_t recorded = krait_own_threads_last(&wall->own_threads, own, t_ns);
    return !own ? 0 : t ? t->index + 1 : recorded != KRAIT_NO_ID ? recorded | IN_TRACE : own | NUMBER;
}

/* Of an interval of the kernel's: whether the thread, ready for a CPU, sleeps on before the wait ends. A wait for the
 * GIL sleeps for 5 ms at a time (take_gil() of Python/ceval_gil.c): who is woken to ask for it, and sleeps
 * again, waits for the GIL all the while. Where the recording ends first, a thread that was woken sleeps again if
 * another one has the GIL. */
static bool is_poll(const struct overlay *overlay, const struct held *wait)
{
    const struct krait_kinterval *at = overlay->at, *end = overlay->at ? overlay->end : NULL;
    if (!at || wall_of[at->state] != KRAIT_WALL_RUNNABLE)
        return false;
    bool was_woken = !krait_thread_is_preempted((enum krait_thread_state)at->state);
    while (++at < end && (uint64_t)at->begin_ns < wait->wait_end_ns) {
        if (krait_thread_blocks((enum krait_thread_state)at->state))
            return true;
    }
    return was_woken && at == end && wait->part == KRAIT_WALL_GIL &&
           wait->wait_end_ns >= krait_wall_end(overlay->wall);
}

/* Whether a wait for the GIL does not take the place of a state. */
static bool is_more_than_a_wait(const struct krait_wall_interval *interval)
{
    return interval->state == KRAIT_WALL_ON_CPU || interval->state == KRAIT_WALL_RUNNABLE ||
           interval->state == KRAIT_WALL_THROTTLED || interval->state == KRAIT_WALL_STOPPED;
}

/* An interval up to end_ns, with the waits that lie in it. */
static void overlay_interval(struct overlay *overlay, struct krait_wall_interval interval, uint64_t end_ns)
{
    const struct all_held *waits = overlay->waits;
    bool stands = is_more_than_a_wait(&interval);
    struct krait_wall_interval gil = { .call = interval.call, .state = KRAIT_WALL_GIL };
    add(overlay->track, interval, interval.begin_ns);
    for (; overlay->next < waits->count; overlay->next++) {
        const struct held *wait = &waits->items[overlay->next];
        uint64_t from_ns = KRAIT_MAX(wait->begin_ns, interval.begin_ns);
        bool waits_on = !stands || is_poll(overlay, wait);
        if (waits_on && from_ns < KRAIT_MIN(wait->end_ns, end_ns)) {
            gil.part = wait->part;
            gil.by = holder_at(overlay->wall, wait->holder, from_ns);
            add(overlay->track, gil, from_ns);
        }
        if (wait->end_ns >= end_ns)
            return;
        if (waits_on && wait->end_ns > from_ns)
            add(overlay->track, interval, wait->end_ns);
    }
}

static const struct krait_wall_interval unknown = { .call = KRAIT_NO_ID,
                                                    .state = KRAIT_WALL_UNKNOWN,
                                                    .part = KRAIT_WALL_UNKNOWN };

static struct krait_wall_interval interval_of(const struct krait_kinterval *from)
{
    return (struct krait_wall_interval){ .begin_ns = (uint64_t)from->begin_ns,
                                         .call = from->call,
                                         .by = from->by,
                                         .had = from->had,
                                         .had_count = from->had_count,
                                         .khz = from->khz,
                                         .state = wall_of[from->state],
                                         .part = wall_of[from->state],
                                         .preempted = krait_thread_is_preempted(
                                             (enum krait_thread_state)from->state) };
}

/* From the beginning of time to its end. */
static void overlay_all(struct overlay *overlay, const struct krait_kthread *t)
{
    uint32_t count = t ? t->interval_count : 0;
    overlay->end = count ? t->intervals + count : NULL;
    uint64_t known_ns = count ? krait_wall_end(overlay->wall) : 0;
    struct krait_wall_interval rest = unknown;
    overlay_interval(overlay, unknown, count ? (uint64_t)t->intervals[0].begin_ns : UINT64_MAX);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end_ns = i + 1 < count ? (uint64_t)t->intervals[i + 1].begin_ns : known_ns;
        overlay->at = &t->intervals[i];
        overlay_interval(overlay, interval_of(overlay->at), end_ns);
    }
    overlay->at = NULL;
    rest.begin_ns = known_ns;
    if (count)
        overlay_interval(overlay, rest, UINT64_MAX);
    overlay->track->items[overlay->track->count].begin_ns = UINT64_MAX;
}

/* The same of a thread that was sampled. */
static int track_of_samples(struct krait_wall_track *track, const struct krait_wall *wall, uint32_t thread)
{
    static const uint8_t states[] = { [KRAIT_SAMPLE_RUNS] = KRAIT_WALL_ON_CPU,
                                      [KRAIT_SAMPLE_GIL] = KRAIT_WALL_GIL,
                                      [KRAIT_SAMPLE_BLOCKED] = KRAIT_WALL_OTHER,
                                      [KRAIT_SAMPLE_UNKNOWN] = KRAIT_WALL_UNKNOWN };
    enum { AROUND = 2 }; /* the unknown before, and what ends all */
    KRAIT_CLEANUP(krait_sample_runs_done) struct krait_sample_runs runs = { 0 };
    if (krait_sample_runs_read(&runs, wall->trace, thread, KRAIT_RANGE_ALL))
        return -ENOMEM;
    track->items = calloc((size_t)runs.count + AROUND, sizeof(*track->items));
    if (!track->items)
        return -ENOMEM;
    struct krait_wall_interval interval = unknown;
    add(track, interval, 0);
    for (uint32_t i = 0; i < runs.count; i++) {
        bool changes = interval.state != states[runs.items[i].is]; /* the line alone may be another */
        interval.state = interval.part = states[runs.items[i].is];
        if (changes)
            add(track, interval, runs.items[i].begin_ns);
    }
    track->items[track->count].begin_ns = UINT64_MAX;
    return 0;
}

const struct krait_kthread *krait_wall_kthread(const struct krait_wall *wall, uint32_t thread)
{
    const struct krait_thread *own = &wall->trace->threads[thread];
    return krait_own_threads_life(&wall->own_threads, (int32_t)own->tid, own->end_ns);
}

int krait_wall_track_new(struct krait_wall_track *track, const struct krait_wall *wall, uint32_t thread)
{
    enum {
        AROUND = 3
    }; /* the unknown before and after, and what ends all; a wait splits one where it begins and
          one where it ends */
    const struct krait_thread *own = &wall->trace->threads[thread];
    const struct krait_kthread *t = krait_wall_kthread(wall, thread);
    KRAIT_CLEANUP(krait_gil_waits_done) struct krait_gil_waits waits = { 0 };
    KRAIT_CLEANUP(all_held_done) struct all_held held = { 0 };
    struct krait_wall_track made = { 0 };
    struct overlay overlay = { .track = &made, .wall = wall, .waits = &held };
    if (wall->flags & KRAIT_WALL_SAMPLES && own->flags & KRAIT_TRACK_SAMPLED && !t)
        return track_of_samples(track, wall, thread);
    if (wall->flags & KRAIT_WALL_WAITS && krait_gil_waits_read(&waits, wall->trace, thread, KRAIT_RANGE_ALL))
        return -ENOMEM;
    for (uint32_t i = 0; i < waits.count; i++) {
        if (!split_wait(&held, wall->holders, own, &waits.items[i]))
            return -ENOMEM;
    }
    size_t most = (size_t)(t ? t->interval_count : 0) + 2 * (size_t)held.count + AROUND;
    made.items = calloc(most, sizeof(*made.items));
    if (!made.items)
        return -ENOMEM;
    overlay_all(&overlay, t);
    *track = made;
    return 0;
}

void krait_wall_track_done(struct krait_wall_track *track)
{
    free(track->items);
    *track = (struct krait_wall_track){ 0 };
}

/* The kernel's states from `first` on in [from_ns, to_ns); returns the first that reaches its end. */
static uint32_t add_states(const struct krait_wall *wall, const struct krait_kthread *t, uint32_t first,
                           struct krait_range range, const struct krait_ranges *parts, uint64_t *ns)
{
    bool some;
    for (uint32_t i = first; i < t->interval_count; i++) {
        const struct krait_kinterval *at = &t->intervals[i];
        uint64_t end_ns = i + 1 < t->interval_count ? (uint64_t)at[1].begin_ns : krait_wall_end(wall);
        uint64_t from_ns = KRAIT_MAX((uint64_t)at->begin_ns, range.from_ns),
                 to_ns = KRAIT_MIN(end_ns, range.to_ns);
        if (from_ns < to_ns)
            ns[at->state] += parts ? krait_ranges_overlap(parts, from_ns, to_ns, &some) : to_ns - from_ns;
        if (end_ns >= range.to_ns)
            return i;
    }
    return t->interval_count;
}

int krait_wall_gil_times(const struct krait_wall *wall, uint32_t thread, struct krait_range range,
                         const struct krait_ranges *parts, uint64_t ns[KRAIT_TS_COUNT])
{
    const struct krait_kthread *t = krait_wall_kthread(wall, thread);
    KRAIT_CLEANUP(krait_wall_track_done) struct krait_wall_track track = { 0 };
    int rc = t ? krait_wall_track_new(&track, wall, thread) : 0;
    for (uint32_t i = 0, at = 0; i < track.count; i++) {
        const struct krait_range wait = { KRAIT_MAX(track.items[i].begin_ns, range.from_ns),
                                          KRAIT_MIN(track.items[i + 1].begin_ns, range.to_ns) };
        if (track.items[i].state == KRAIT_WALL_GIL && wait.from_ns < wait.to_ns)
            at = add_states(wall, t, at, wait, parts, ns);
    }
    return rc;
}

const struct krait_wall_interval *krait_wall_at(const struct krait_wall_track *track, uint64_t t_ns)
{
    /* the last that begins then or before */
    size_t behind = KRAIT_PARTITION_POINT(i, track->count, track->items[i].begin_ns <= t_ns);
    return &track->items[behind ? behind - 1 : 0];
}

/* -- what there is to say -- */

bool krait_wall_clocked(const struct krait_wall *wall)
{
    for (uint32_t i = 0; wall->states && i < wall->states->cpu_count; i++) {
        if (wall->states->cpus[i].khz)
            return true;
    }
    return false;
}

const char *krait_wall_call(const struct krait_wall *wall, uint32_t call)
{
    return call == KRAIT_NO_ID ? "" : wall->states->calls.texts[call];
}

struct krait_wall_cause krait_wall_cause(const struct krait_wall *wall, uint32_t by, uint64_t t_ns)
{
    const struct krait_thread *threads = wall->trace->threads;
    if (by & NUMBER)
        return (struct krait_wall_cause){ (int32_t)(by & ~NUMBER), "" };
    if (by & IN_TRACE)
        return (struct krait_wall_cause){ (int32_t)threads[by & ~IN_TRACE].tid,
                                          threads[by & ~IN_TRACE].name };
    const struct krait_kthread *t = krait_kernel_cause(wall->states, by);
    uint32_t recorded = krait_own_thread_at(&wall->own_threads, t, t_ns);
    const char *name = recorded == KRAIT_NO_ID ? "" : threads[recorded].name;
    return (struct krait_wall_cause){ t->tid, *name ? name : t->name };
}

const struct krait_krun *krait_wall_had(const struct krait_wall *wall, const struct krait_wall_interval *at)
{
    return at->had_count ? wall->states->had.items + at->had : NULL;
}

const struct krait_kernel_states *krait_wall_states(const struct krait_wall *wall)
{
    return wall->states;
}

uint64_t krait_wall_lost(const struct krait_wall *wall)
{
    return wall->lost;
}

bool krait_wall_has_kernel(const struct krait_wall *wall)
{
    return wall->states;
}

bool krait_wall_has_waits(const struct krait_wall *wall)
{
    return wall->flags & KRAIT_WALL_WAITS;
}

bool krait_wall_has_samples(const struct krait_wall *wall)
{
    return wall->flags & KRAIT_WALL_SAMPLES;
}

bool krait_wall_own(const struct krait_wall *wall)
{
    return wall->own;
}

bool krait_wall_has_interrupts(const struct krait_wall *wall)
{
    return wall->interrupts;
}

const struct krait_err *krait_wall_damage(const struct krait_wall *wall)
{
    return &wall->damage;
}
