/* SPDX-License-Identifier: Apache-2.0
 *
 * From one run of the machine to the batches of many tracks. Each track has a lane, found by the number of the thread
 * or CPU that something happens to; a lane's columns are handed out when they are full.
 */
#include "trace/kernel/kernel_tracks.h"

#include "base/array.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_nest.h"

#include <string.h>

enum {
    BATCH_MOST = 1024,
    BATCH_LEAST = 16,
    ROOM = 1 << 18, /* entries, of all lanes together where they are many */
    MOST_NESTED = 16,
};

/* What a lane tells. */
enum which { STATES, CALLS, FUNCTIONS, WAKEUPS, THREADS, INTERRUPTS, FREQUENCY, WHICH };

struct open {
    uint64_t begin_ns;
    uint32_t name;
};

struct lane {
    const struct krait_track *track;
    uint32_t n;
    uint64_t *t_ns, *end_ns; /* the columns; of those that its kind has not, nothing is read */
    int64_t *value;
    uint32_t *name, *to;
    struct open open[MOST_NESTED]; /* INTERRUPTS: that go on, from the outermost inwards */
    uint32_t depth;
    const struct krait_kthread *thread; /* THREADS: which has the CPU, since open[0]; NULL: none */
    bool has_value;                     /* FREQUENCY: `known` was so before the range */
    int64_t known;
};

/* The place of a lane by its track's key, plus 1; 0: none. */
struct places {
    uint32_t *items;
    uint32_t count;
};

struct walk {
    struct krait_kernel_nest nest; /* first: its functions' ctx. Its slices are CALLS and FUNCTIONS */
    const struct krait_trace *trace;
    const struct krait_walking *walking;
    uint32_t machine;
    struct lane *lanes;
    uint32_t lane_count, room; /* of each lane's columns */
    void *columns;
    struct places at[WHICH], states_of; /* the latter: of all threads, plus 1, their tracks */
    uint32_t state_names[KRAIT_TS_COUNT], wakeup;
};

static enum which which_of(const struct krait_track *track)
{
    if (track->of == KRAIT_OF_CPU)
        return track->kind == KRAIT_TRACK_STATES   ? THREADS
               : track->kind == KRAIT_TRACK_SLICES ? INTERRUPTS
                                                   : FREQUENCY;
    return track->kind == KRAIT_TRACK_STATES                  ? STATES
           : track->kind == KRAIT_TRACK_FLOWS                 ? WAKEUPS
           : strcmp(track->name, KRAIT_KERNEL_FUNCTIONS) == 0 ? FUNCTIONS
                                                              : CALLS;
}

static struct lane *lane_of(const struct walk *w, enum which which, uint32_t key)
{
    const struct places *at = &w->at[which];
    return key < at->count && at->items[key] ? &w->lanes[at->items[key] - 1] : NULL;
}

/* -- batches -- */

static void flush(struct walk *w, struct lane *lane)
{
    bool counts = lane->track->kind == KRAIT_TRACK_COUNTER, flows = lane->track->kind == KRAIT_TRACK_FLOWS;
    const struct krait_batch batch = { .n = lane->n,
                                       .t_ns = lane->t_ns,
                                       .end_ns = counts ? NULL : lane->end_ns,
                                       .name = counts ? NULL : lane->name,
                                       .value = flows ? NULL : lane->value,
                                       .to = flows ? lane->to : NULL };
    lane->n = 0;
    if (batch.n && !w->nest.rc)
        krait_kernel_nest_fail(&w->nest, w->walking->batch(w->walking->ctx, lane->track, &batch));
}

/* The last entry stays until the next one comes, so that it can be made longer. */
static uint32_t next_entry(struct walk *w, struct lane *lane)
{
    if (lane->n == w->room)
        flush(w, lane);
    return lane->n++;
}

static void add(struct walk *w, struct lane *lane, struct open what, uint64_t end_ns, int64_t value)
{
    uint32_t i = next_entry(w, lane);
    lane->t_ns[i] = what.begin_ns;
    lane->end_ns[i] = end_ns;
    lane->name[i] = what.name;
    lane->value[i] = value;
}

static uint32_t name_of(struct walk *w, const char *text)
{
    uint32_t name = krait_trace_name(w->trace, text);
    if (name == KRAIT_NO_ID)
        krait_kernel_nest_fail(&w->nest, -ENOMEM);
    return name;
}

/* -- threads -- */

/* The machine splits a state where its CPU's frequency changes; it stays one here. */
static void add_state(struct walk *w, struct lane *lane, const struct krait_kchange *change)
{
    const struct krait_kthread *by = krait_kernel_cause(w->nest.states, change->was_by);
    int64_t to_blame = by ? by->tid : 0;
    uint32_t name = w->state_names[change->was], last = lane->n - 1;
    if (change->was == KRAIT_TS_GONE)
        return;
    if (lane->n && lane->end_ns[last] == (uint64_t)change->since_ns && lane->name[last] == name &&
        lane->value[last] == to_blame)
        lane->end_ns[last] = (uint64_t)change->ns;
    else
        add(w, lane, (struct open){ (uint64_t)change->since_ns, name }, (uint64_t)change->ns, to_blame);
}

static void add_wakeup(struct walk *w, struct lane *lane, const struct krait_kchange *change)
{
    uint32_t woken = change->thread->index, i = next_entry(w, lane);
    lane->t_ns[i] = (uint64_t)change->since_ns;
    lane->end_ns[i] = (uint64_t)change->ns;
    lane->name[i] = w->wakeup;
    lane->to[i] = woken < w->states_of.count ? w->states_of.items[woken] - 1 : KRAIT_NO_ID;
}

/* What is open ends, the innermost first. */
static void end_open(struct walk *w, struct lane *lane, uint64_t ns)
{
    while (lane->depth) {
        struct open open = lane->open[--lane->depth];
        if (open.begin_ns < ns)
            add(w, lane, open, ns, 0);
    }
}

/* -- system calls and functions: whose they are is the thread's index -- */

static uint32_t place_of(void *ctx, const struct krait_kthread *t, uint64_t ns)
{
    const struct walk *w = ctx;
    bool is_asked_for = lane_of(w, CALLS, t->index) || lane_of(w, FUNCTIONS, t->index);
    return is_asked_for ? t->index : KRAIT_NO_ID;
}

static uint64_t no_last(void *ctx, uint32_t place)
{
    return UINT64_MAX;
}

static uint32_t slice_name(void *ctx, const char *text)
{
    return name_of(ctx, text);
}

/* Of a call whose end was lost mostly nothing but its begin is known: it is left out. */
static int end_slice(void *ctx, const struct krait_kernel_slice *slice)
{
    struct walk *w = ctx;
    struct lane *lane = lane_of(w, slice->is_call ? CALLS : FUNCTIONS, slice->place);
    if (lane && (slice->begin_ns < slice->end_ns || !slice->cut))
        add(w, lane, (struct open){ slice->begin_ns, slice->name }, slice->end_ns,
            !slice->is_call ? 0
            : slice->cut    ? KRAIT_NOT_RETURNED
                            : slice->ret);
    return w->nest.rc;
}

/* -- who has a CPU -- */

static void end_run(struct walk *w, struct lane *lane, uint64_t ns)
{
    const struct krait_kthread *t = lane->thread;
    if (t && ns > lane->open[0].begin_ns)
        add(w, lane, (struct open){ lane->open[0].begin_ns, name_of(w, t->name) }, ns, t->tid);
    lane->thread = NULL;
}

static void begin_run(struct walk *w, struct lane *lane, const struct krait_kthread *t, uint64_t ns)
{
    end_run(w, lane, ns);
    lane->open[0].begin_ns = ns;
    lane->thread = t;
}

/* It has one at the most, which is not always the one whose event it is. */
static void end_run_of(struct walk *w, const struct krait_kchange *change)
{
    struct lane *here = change->cpu ? lane_of(w, THREADS, change->cpu->number) : NULL;
    for (uint32_t i = 0; i < w->at[THREADS].count && !(here && here->thread == change->thread); i++)
        here = lane_of(w, THREADS, i);
    if (here && here->thread == change->thread)
        end_run(w, here, (uint64_t)change->ns);
}

static void turn_cpu(struct walk *w, const struct krait_kchange *change)
{
    bool ran = krait_thread_runs((enum krait_thread_state)change->was);
    bool runs = krait_thread_runs((enum krait_thread_state)change->thread->state);
    struct lane *lane = runs && !ran && change->cpu ? lane_of(w, THREADS, change->cpu->number) : NULL;
    if (ran && !runs)
        end_run_of(w, change);
    else if (lane)
        begin_run(w, lane, change->thread, (uint64_t)change->ns);
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    struct walk *w = ctx;
    const struct krait_kthread *t = change->thread;
    bool is_woken = change->was == KRAIT_TS_WOKEN && change->was_by;
    struct lane *states = lane_of(w, STATES, t->index),
                *wakeups = is_woken ? lane_of(w, WAKEUPS, change->was_by - 1) : NULL;
    if (w->at[THREADS].count)
        turn_cpu(w, change);
    if (states && change->since_ns < change->ns)
        add_state(w, states, change);
    if (wakeups && change->since_ns < change->ns)
        add_wakeup(w, wakeups, change);
}

/* -- what single events tell -- */

static void count_frequency(struct walk *w, const struct krait_kernel_event *ev, int64_t ns)
{
    int64_t cpu = krait_kernel_event_has(ev, 1) ? krait_kernel_event_int(ev, 1) : ev->cpu;
    struct lane *lane = cpu >= 0 && cpu < UINT32_MAX ? lane_of(w, FREQUENCY, (uint32_t)cpu) : NULL;
    if (!lane)
        return;
    lane->known = krait_kernel_event_int(ev, 0);
    lane->has_value = true;
    if (w->nest.states)
        add(w, lane, (struct open){ (uint64_t)ns, 0 }, 0, lane->known);
}

static void begin_interrupt(struct walk *w, struct lane *lane, const struct krait_kernel_event *ev,
                            uint64_t ns)
{
    bool soft = ev->cls->kind == KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN;
    bool named = ev->cls->kind == KRAIT_KERNEL_EVENT_IRQ_BEGIN && krait_kernel_event_has(ev, 1);
    char text[64];
    size_t n = 0;
    const char *name = named ? krait_kernel_event_text(ev, 1, &n) : "";
    if (lane->depth == MOST_NESTED)
        return;
    if (soft)
        snprintf(text, sizeof(text), "softirq %lld", (long long)krait_kernel_event_int(ev, 0));
    else
        snprintf(text, sizeof(text), "%.*s", (int)strnlen(name, n), name);
    lane->open[lane->depth++] = (struct open){ ns, name_of(w, *text ? text : "interrupt") };
}

static void end_interrupt(struct walk *w, struct lane *lane, uint64_t ns)
{
    if (!lane->depth)
        return;
    struct open open = lane->open[--lane->depth];
    if (w->nest.states)
        add(w, lane, open, ns, 0);
}

/* Where events were lost, an interrupt's end may be among them. */
static void on_event(void *ctx, const struct krait_kernel_event *ev, int64_t ns)
{
    struct walk *w = ctx;
    struct lane *lane = lane_of(w, INTERRUPTS, ev->cpu);
    switch (ev->cls->kind) {
    case KRAIT_KERNEL_EVENT_FREQUENCY:
        count_frequency(w, ev, ns);
        break;
    case KRAIT_KERNEL_EVENT_LOST:
        if (lane)
            lane->depth = 0;
        break;
    case KRAIT_KERNEL_EVENT_IRQ_END:
    case KRAIT_KERNEL_EVENT_SOFTIRQ_END:
        if (lane)
            end_interrupt(w, lane, (uint64_t)ns);
        break;
    default:
        if (lane)
            begin_interrupt(w, lane, ev, (uint64_t)ns);
    }
}

/* -- beginning and end -- */

static void begin_lane(struct walk *w, struct lane *lane, uint64_t ns)
{
    const struct krait_kernel_states *states = w->nest.states;
    uint32_t key = lane->track->key;
    enum which which = which_of(lane->track);
    const struct krait_kthread *t =
        which == THREADS && key < states->cpu_count ? states->cpus[key].current : NULL;
    if (which == THREADS && t && krait_thread_runs((enum krait_thread_state)t->state))
        begin_run(w, lane, t, ns);
    for (uint32_t i = 0; which == INTERRUPTS && i < lane->depth; i++)
        lane->open[i].begin_ns = KRAIT_MAX(lane->open[i].begin_ns, ns);
    if (which == FREQUENCY && lane->has_value)
        add(w, lane, (struct open){ ns, 0 }, 0, lane->known);
}

/* What goes on when the range begins. */
static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct walk *w = ctx;
    for (uint32_t i = 0; i < w->lane_count; i++)
        begin_lane(w, &w->lanes[i], (uint64_t)states->begin_ns);
}

static void on_end(void *ctx, uint64_t end_ns)
{
    struct walk *w = ctx;
    for (uint32_t i = 0; i < w->lane_count; i++) {
        struct lane *lane = &w->lanes[i];
        if (which_of(lane->track) == THREADS)
            end_run(w, lane, end_ns);
        end_open(w, lane, end_ns);
        flush(w, lane);
    }
}

/* -- lanes -- */

static int put(struct places *places, uint32_t key, uint32_t place)
{
    if (!KRAIT_GROW_FILLED(places->items, places->count, key + 1, 0))
        return -ENOMEM;
    places->items[key] = place + 1;
    return 0;
}

static void put_columns(struct lane *lane, char *at, size_t room)
{
    uint64_t *wide = (uint64_t *)(void *)at;
    uint32_t *narrow = (uint32_t *)(wide + 3 * room);
    lane->t_ns = wide;
    lane->end_ns = wide + room;
    lane->value = (int64_t *)(wide + 2 * room);
    lane->name = narrow;
    lane->to = narrow + room;
}

static int make_lanes(struct walk *w, const struct krait_track *const *tracks, uint32_t count)
{
    enum { ENTRY = 3 * sizeof(uint64_t) + 2 * sizeof(uint32_t) };
    size_t room = KRAIT_MAX((uint32_t)BATCH_LEAST, KRAIT_MIN((uint32_t)BATCH_MOST, ROOM / count));
    w->lanes = calloc(count, sizeof(*w->lanes));
    char *at = w->columns = calloc(count * room, ENTRY);
    int rc = w->lanes && at ? 0 : -ENOMEM;
    w->room = (uint32_t)room;
    for (uint32_t i = 0; i < count && !rc; i++, at += room * ENTRY) {
        w->lanes[i] = (struct lane){ .track = tracks[i] };
        put_columns(&w->lanes[i], at, room);
        rc = put(&w->at[which_of(tracks[i])], tracks[i]->key, i);
    }
    w->lane_count = rc ? 0 : count;
    return rc;
}

/* Where wake-ups lead to. */
static int find_states(struct walk *w)
{
    int rc = 0;
    for (uint32_t i = 0; i < w->trace->track_count && w->at[WAKEUPS].count && !rc; i++) {
        const struct krait_track *track = &w->trace->tracks[i];
        if (krait_kernel_is_thread_states(track) && track->machine == w->machine)
            rc = put(&w->states_of, track->key, i);
    }
    return rc;
}

static void know_names(struct walk *w)
{
    static const char *const names[KRAIT_TS_COUNT] = {
#define X(name, text, title, drop) [KRAIT_TS_##name] = text,
        KRAIT_THREAD_STATES(X)
#undef X
    };
    for (unsigned i = 0; i < KRAIT_TS_COUNT; i++)
        w->state_names[i] = name_of(w, names[i]);
    w->wakeup = name_of(w, "wakeup");
}

static void lanes_done(struct walk *w)
{
    for (unsigned i = 0; i < WHICH; i++)
        free(w->at[i].items);
    free(w->states_of.items);
    free(w->lanes);
    free(w->columns);
}

static void walk_done(struct walk *w)
{
    krait_kernel_nest_done(&w->nest);
    lanes_done(w);
}

static uint64_t after(uint64_t ns, int64_t first)
{
    return ns == UINT64_MAX ? ns : ns > (uint64_t)first ? ns - (uint64_t)first : 0;
}

static void ask(struct walk *w, struct krait_kernel_events *events, bool slices, bool raw)
{
    w->nest.events = events;
    w->nest.place = place_of;
    w->nest.last_ns = no_last;
    w->nest.name = slice_name;
    w->nest.end = slices ? end_slice : NULL;
    w->nest.started = on_begin;
    w->nest.changed = on_change;
    w->nest.event = raw ? on_event : NULL;
    w->nest.finished = on_end;
}

/* The machine tells no more of what happens than the lanes need. */
static int run(struct walk *w, struct krait_kernel_events *events)
{
    bool asks_events = w->at[INTERRUPTS].count || w->at[FREQUENCY].count;
    bool asks_slices = w->at[CALLS].count || w->at[FUNCTIONS].count;
    int64_t first = krait_kernel_events_first(events);
    ask(w, events, asks_slices, asks_events);
    return krait_kernel_nest_run(&w->nest, after(w->walking->range.from_ns, first),
                                 after(w->walking->range.to_ns, first));
}

static int walk_machine(const struct krait_trace *trace, uint32_t machine,
                        const struct krait_track *const *tracks, uint32_t count,
                        const struct krait_walking *walking)
{
    KRAIT_CLEANUP(walk_done) struct walk w = { .trace = trace, .walking = walking, .machine = machine };
    struct krait_kernel_events *events;
    int rc = krait_trace_kernel_of(trace, machine, &events, NULL);
    rc = rc ? rc : make_lanes(&w, tracks, count);
    rc = rc ? rc : find_states(&w);
    if (rc)
        return rc;
    know_names(&w);
    rc = w.nest.rc ? w.nest.rc : run(&w, events);
    struct krait_damage damage = walking->damage;
    if (krait_kernel_events_damage(events)->code)
        krait_damage_say(&damage, "%s", krait_kernel_events_damage(events)->text);
    return rc;
}

int krait_kernel_tracks_walk(const struct krait_trace *trace, const struct krait_track *const *tracks,
                             uint32_t count, const struct krait_walking *walking)
{
    return krait_kernel_each_machine(trace, tracks, count, walking, walk_machine);
}

/* -- a recording that goes on -- */

/* The last state of a thread, which may still be made longer: the next walk's first. */
struct entry {
    uint64_t t_ns, end_ns;
    int64_t value;
    uint32_t name;
};

struct krait_kernel_walk_on {
    struct walk walk;
    struct krait_kernel_states *states;
};

static struct entry last_of(const struct lane *lane)
{
    uint32_t i = lane->n - 1;
    return (struct entry){ lane->t_ns[i], lane->end_ns[i], lane->value[i], lane->name[i] };
}

static void put_first(struct lane *lane, struct entry entry)
{
    lane->t_ns[0] = entry.t_ns;
    lane->end_ns[0] = entry.end_ns;
    lane->value[0] = entry.value;
    lane->name[0] = entry.name;
    lane->n = 1;
}

/* Lanes for the tracks of this trace, with what the lanes before them of the same threads and CPUs have begun. */
static int renew_lanes(struct walk *w, const struct krait_track *const *tracks, uint32_t count)
{
    struct walk was = *w;
    w->lanes = NULL;
    w->columns = NULL;
    w->states_of = (struct places){ 0 };
    memset(w->at, 0, sizeof(w->at));
    int rc = make_lanes(w, tracks, count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct lane *lane = &w->lanes[i];
        const struct lane *before = lane_of(&was, which_of(tracks[i]), tracks[i]->key);
        if (!before)
            continue;
        memcpy(lane->open, before->open, sizeof(lane->open));
        lane->depth = before->depth;
        lane->thread = before->thread;
        lane->has_value = before->has_value;
        lane->known = before->known;
        if (before->n)
            put_first(lane, last_of(before));
    }
    lanes_done(&was);
    return rc;
}

/* Hands out all but a thread's last state. */
static void flush_settled(struct walk *w, struct lane *lane)
{
    bool holds = lane->n && which_of(lane->track) == STATES;
    struct entry last = holds ? last_of(lane) : (struct entry){ 0 };
    lane->n -= holds;
    flush(w, lane);
    if (holds)
        put_first(lane, last);
}

static void tell_states(struct walk *w, uint64_t ns)
{
    const struct krait_kernel_states *states = w->nest.states;
    for (uint32_t i = 0; i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        struct lane *lane = lane_of(w, STATES, i);
        const struct krait_kchange change = { .thread = t,
                                              .since_ns = t->since,
                                              .ns = (int64_t)ns,
                                              .was_by = t->state_by,
                                              .was = (uint8_t)krait_kthread_state_now(states, t) };
        if (lane && change.since_ns < change.ns)
            add_state(w, lane, &change);
    }
}

/* Hands out what goes on at a time, and the last entry of each lane before it. All stays as it is. */
static int tell_now(struct walk *w, uint64_t ns)
{
    KRAIT_AUTO_FREE struct lane *lanes = calloc((size_t)w->lane_count + 1, sizeof(*lanes));
    KRAIT_AUTO_FREE struct entry *last = calloc((size_t)w->lane_count + 1, sizeof(*last));
    const struct krait_walking *walking = w->walking;
    const struct krait_walking now = { .ctx = walking->ctx, .batch = walking->now };
    if (!lanes || !last)
        return -ENOMEM;
    for (uint32_t i = 0; i < w->lane_count; i++) {
        lanes[i] = w->lanes[i];
        last[i] = lanes[i].n ? last_of(&lanes[i]) : (struct entry){ 0 };
    }
    w->walking = &now;
    tell_states(w, ns);
    int rc = krait_kernel_nest_now(&w->nest, ns);
    on_end(w, ns);
    w->walking = walking;
    for (uint32_t i = 0; i < w->lane_count; i++) {
        uint32_t n = lanes[i].n;
        w->lanes[i] = lanes[i];
        if (n)
            put_first(&w->lanes[i], last[i]);
    }
    return rc ? rc : w->nest.rc;
}

static int walk_on(struct krait_kernel_walk_on *on, const struct krait_track *const *tracks, uint32_t count,
                   int64_t until_ns, int64_t end_ns)
{
    struct walk *w = &on->walk;
    int rc = renew_lanes(w, tracks, count);
    rc = rc ? rc : find_states(w);
    if (rc)
        return rc;
    know_names(w);
    rc = w->nest.rc ? w->nest.rc : krait_kernel_nest_go_on(&w->nest, &on->states, until_ns);
    for (uint32_t i = 0; i < w->lane_count && !rc; i++)
        flush_settled(w, &w->lanes[i]);
    rc = rc ? rc : w->nest.rc;
    return rc ? rc : tell_now(w, (uint64_t)end_ns);
}

int krait_kernel_walk_on(struct krait_kernel_walk_on **kept, const struct krait_trace *trace,
                         const struct krait_track *const *tracks, uint32_t count,
                         const struct krait_walking *walking, int64_t until_ns, int64_t end_ns)
{
    struct krait_kernel_walk_on *on = *kept ? *kept : calloc(1, sizeof(*on));
    struct krait_kernel_events *events;
    int rc = on ? krait_trace_kernel_of(trace, 0, &events, NULL) : -ENOMEM;
    *kept = NULL;
    if (!rc) {
        on->walk.trace = trace;
        on->walk.walking = walking;
        ask(&on->walk, events, true, true);
        rc = walk_on(on, tracks, count, until_ns, end_ns);
        on->walk.walking = NULL;
    }
    if (rc)
        krait_kernel_walk_on_free(on);
    else
        *kept = on;
    return rc;
}

void krait_kernel_walk_on_free(struct krait_kernel_walk_on *on)
{
    if (!on)
        return;
    walk_done(&on->walk);
    krait_kernel_states_free(on->states);
    free(on);
}
