/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/critical_path.h"

#include <string.h>

#define NONE KRAIT_NO_ID

enum {
    PACKETS = 1024, /* sent and not received yet, at the most; a power of two */
    LEAST_RECORDS = 16,
    MEMORY = 256 << 20,
};

/* A thread's state from begin_ns on, up to the thread's next record. */
struct record {
    int64_t begin_ns;
    uint32_t thread;
    uint32_t prev;  /* the thread's record before this one, or NONE */
    uint32_t cause; /* of a wait: the record of the thread that ended it, as it was then, or NONE */
    uint32_t call;  /* of what has ended; see struct krait_path_segment */
    uint32_t had;   /* who had the CPU that it was ready for: where their list begins among `had`; NONE */
    uint8_t kind;
    bool followed;   /* its cause is followed now */
    uint16_t device; /* id and 1; 0: none, or not known */
};

/* What is known of one thread, or of what a CPU received at last. Of another epoch: nothing. */
struct place {
    uint32_t epoch, record;
    uint32_t softirq; /* of a CPU: the soft interrupt in which it was received */
    int64_t ns;       /* and when it had been sent */
};

struct packet {
    uint64_t address;
    struct place from;
};

/* A part of a path that is still to be followed backward: from `record` on, in [lo_ns, hi_ns). */
struct frame {
    int64_t lo_ns, hi_ns;
    uint32_t record;
    uint32_t thread; /* whose record was the last that was followed */
    uint32_t of;     /* the record whose cause it is, or NONE */
};

struct list {
    void *items;
    uint32_t count, cap;
};

struct finder {
    struct krait_critical_path *path;
    const struct krait_kernel_states *states;
    const struct krait_path_options *options;
    const struct krait_kthread *thread; /* whose path it is; NULL: not met yet */
    struct krait_kernel_watch watch;
    int64_t to_ns;
    uint32_t epoch;      /* counts the thread's waits: what was kept in one is of no use in the next */
    bool keeps;          /* it waits: changes are kept */
    int64_t since_ns;    /* since then */
    int64_t gil_ends_ns; /* its wait for the GIL, if it is in one */
    bool failed;
    struct list records, frames, segments;
    struct list had;               /* struct krait_khad of records, lists that end with one of no thread */
    struct list had_ever;          /* and of segments */
    uint32_t most;                 /* records, about */
    uint32_t half;                 /* so many are half of what there is room for */
    int64_t half_ns;               /* when there were so many */
    bool has_forgotten;            /* some of them, for want of room */
    struct list of_thread, of_cpu; /* struct place, by index and by number */
    struct packet packets[PACKETS];
};

/* -- lists -- */

/* Room for `count` elements of `size` bytes, new ones zeroed; NULL when memory is out. */
static void *reserve(struct finder *f, struct list *list, uint32_t count, size_t size)
{
    if (count <= list->cap)
        return list->items;
    uint32_t cap = KRAIT_MAX(KRAIT_MAX(count, 64u), list->cap * 2);
    char *items = realloc(list->items, cap * size);
    f->failed |= !items;
    if (!items)
        return NULL;
    memset(items + list->cap * size, 0, (cap - list->cap) * size);
    list->items = items;
    list->cap = cap;
    return items;
}

static struct place *place_in(struct finder *f, struct list *places, uint32_t index)
{
    struct place *items = reserve(f, places, index + 1, sizeof(*items));
    if (items)
        places->count = KRAIT_MAX(places->count, index + 1);
    return items ? &items[index] : NULL;
}

static struct record *record_at(const struct finder *f, uint32_t record)
{
    return (struct record *)f->records.items + record;
}

static uint32_t add_record(struct finder *f, struct record record)
{
    struct record *items = reserve(f, &f->records, f->records.count + 1, sizeof(*items));
    if (!items)
        return NONE;
    items[f->records.count] = record;
    return f->records.count++;
}

/* -- what is kept while the thread waits -- */

static enum krait_path_kind kind_of(enum krait_thread_state state)
{
    static const uint8_t kinds[KRAIT_TS_COUNT] = {
        [KRAIT_TS_USER] = KRAIT_PATH_RUNNING,          [KRAIT_TS_SYSTEM] = KRAIT_PATH_RUNNING,
        [KRAIT_TS_INTERRUPT] = KRAIT_PATH_INTERRUPTED, [KRAIT_TS_WOKEN] = KRAIT_PATH_WOKEN,
        [KRAIT_TS_THROTTLED] = KRAIT_PATH_PREEMPTED,   [KRAIT_TS_PREEMPTED] = KRAIT_PATH_PREEMPTED,
        [KRAIT_TS_UNKNOWN] = KRAIT_PATH_UNKNOWN,       [KRAIT_TS_GONE] = KRAIT_PATH_UNKNOWN
    };
    return krait_thread_blocks(state) ? KRAIT_PATH_BLOCKED : (enum krait_path_kind)kinds[state];
}

static void forget_all(struct finder *f)
{
    f->records.count = 0;
    f->had.count = 0;
    f->half = f->most / 2;
    f->has_forgotten = false;
    f->epoch++;
}

/* -- forgetting what is old -- */

/* Marks what is needed of the time from half_ns on: a record, who ended it, and what the thread did before,
 * unless that was over by then. */
struct marking {
    const struct finder *f;
    uint32_t *place; /* by record: NONE where it is not needed */
    uint32_t *todo;
    uint32_t count;
};

static void mark(struct marking *m, uint32_t record)
{
    if (record == NONE || m->place[record] != NONE)
        return;
    m->place[record] = 0;
    m->todo[m->count++] = record;
}

static void mark_places(struct marking *m, const struct list *places)
{
    const struct place *items = places->items;
    for (uint32_t i = 0; i < places->count; i++) {
        if (items[i].epoch == m->f->epoch)
            mark(m, items[i].record);
    }
}

static void mark_needed(struct marking *m)
{
    const struct finder *f = m->f;
    mark_places(m, &f->of_thread);
    mark_places(m, &f->of_cpu);
    for (uint32_t i = 0; i < PACKETS; i++) {
        if (f->packets[i].from.epoch == f->epoch)
            mark(m, f->packets[i].from.record);
    }
    while (m->count) {
        const struct record *r = record_at(f, m->todo[--m->count]);
        mark(m, r->cause);
        bool is_flight = r->prev != NONE && record_at(f, r->prev)->thread != r->thread;
        if (r->begin_ns > f->half_ns || is_flight)
            mark(m, r->prev);
    }
}

static uint32_t moved(const uint32_t *place, uint32_t record)
{
    return record == NONE ? NONE : place[record];
}

/* Those that are needed move together, in their order. */
static void move_records(struct finder *f, uint32_t *place)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < f->records.count; i++)
        place[i] = place[i] == NONE ? NONE : kept++;
    for (uint32_t i = 0; i < f->records.count; i++) {
        struct record r = *record_at(f, i);
        r.prev = moved(place, r.prev);
        r.cause = moved(place, r.cause);
        if (place[i] != NONE)
            *record_at(f, place[i]) = r;
    }
    f->records.count = kept;
}

static void move_places(const struct finder *f, struct list *places, const uint32_t *place)
{
    struct place *items = places->items;
    for (uint32_t i = 0; i < places->count; i++) {
        if (items[i].epoch == f->epoch)
            items[i].record = moved(place, items[i].record);
    }
}

/* What is left is more than half where there are as many threads: then there is room for more. */
static void forget_older_half(struct finder *f)
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
    for (uint32_t i = 0; i < PACKETS; i++) {
        if (f->packets[i].from.epoch == f->epoch)
            f->packets[i].from.record = moved(place, f->packets[i].from.record);
    }
    if (f->records.count > f->most / 4 * 3)
        f->most *= 2;
    f->half = f->records.count + (f->most - f->records.count) / 2;
}

/* There is to be room for what a change leaves. */
static void make_room(struct finder *f, int64_t ns)
{
    if (f->records.count >= f->most - f->most / 16)
        forget_older_half(f);
    if (f->records.count < f->half)
        f->half_ns = ns;
}

/* The thread's last record; at first one for the state that it is in since before. */
static uint32_t last_record(struct finder *f, const struct krait_kthread *t, enum krait_thread_state state,
                            int64_t since_ns)
{
    struct place *place = place_in(f, &f->of_thread, t->index);
    if (!place || place->epoch == f->epoch)
        return place ? place->record : NONE;
    place->epoch = f->epoch;
    return place->record = add_record(f, (struct record){ .begin_ns = since_ns,
                                                          .thread = t->index,
                                                          .prev = NONE,
                                                          .cause = NONE,
                                                          .had = NONE,
                                                          .kind = (uint8_t)kind_of(state) });
}

/* A thread that runs, as it is now: it may be the cause of something. */
static uint32_t as_it_is(struct finder *f, const struct krait_kthread *t)
{
    enum krait_thread_state state = t ? (enum krait_thread_state)t->state : KRAIT_TS_UNKNOWN;
    return krait_thread_runs(state) ? last_record(f, t, state, t->since) : NONE;
}

/* Who sent what was received last in the soft interrupt that goes on; NULL: it is not known. */
static const struct place *sender_on(struct finder *f, const struct krait_kcpu *cpu)
{
    const struct place *place = place_in(f, &f->of_cpu, cpu->number);
    bool holds = place && place->epoch == f->epoch && cpu->softirqs && place->softirq == cpu->softirq;
    return holds && place->record != NONE ? place : NULL;
}

/* The device of what an interrupt did, which goes on. */
static uint16_t device_on(const struct krait_kcpu *cpu)
{
    uint32_t device = cpu->irqs ? cpu->irq_device : cpu->softirqs ? cpu->soft_device : KRAIT_NO_ID;
    return device < UINT16_MAX ? (uint16_t)(device + 1) : 0;
}

/* The way of a packet, behind what its sender did until it was sent. */
static uint32_t flight(struct finder *f, const struct krait_kchange *change, const struct place *sender)
{
    return add_record(f, (struct record){ .begin_ns = sender->ns,
                                          .thread = change->thread->index,
                                          .prev = sender->record,
                                          .cause = NONE,
                                          .had = NONE,
                                          .call = change->was_call,
                                          .kind = KRAIT_PATH_NETWORK,
                                          .device = device_on(change->cpu) });
}

/* What an interrupt, or nobody who is known, ended, is told in the record. `told` is what the machine makes
 * of it, which asks the system call first. */
static void tell_device(struct record *r, const struct krait_kcpu *cpu, enum krait_thread_state told)
{
    static const uint8_t kinds[KRAIT_TS_COUNT] = { [KRAIT_TS_TIMER] = KRAIT_PATH_TIMER,
                                                   [KRAIT_TS_DISK] = KRAIT_PATH_DISK,
                                                   [KRAIT_TS_NETWORK] = KRAIT_PATH_NETWORK };
    bool in_interrupt = cpu->irqs || cpu->softirqs;
    uint8_t does = kinds[cpu->irqs ? cpu->irq_cause : in_interrupt ? cpu->soft_cause : KRAIT_TS_BLOCKED];
    r->kind = does                       ? does
              : kinds[told]              ? kinds[told]
              : cpu->irqs && cpu->is_ipi ? KRAIT_PATH_IPI
              : in_interrupt             ? KRAIT_PATH_IRQ
                                         : KRAIT_PATH_BLOCKED;
    r->device = does ? device_on(cpu) : 0;
}

/* The thread that woke or made another; NULL: none did. */
static const struct krait_kthread *waker_of(const struct finder *f, const struct krait_kchange *change)
{
    return krait_kernel_doer(f->states, change->thread->state_by);
}

/* Whether a thread is the one that another, of the same process, calls by that number. In a namespace the
 * kernel calls neither of them so. */
static bool is_beside(const struct krait_kthread *t, const struct krait_kthread *other, int32_t own_tid)
{
    bool foreign = t->process != other->process && t->process != NONE && other->process != NONE;
    return krait_kthread_own_id(other) == own_tid && !foreign &&
           krait_kthread_is_elsewhere(other) == krait_kthread_is_elsewhere(t);
}

static const struct krait_kthread *thread_beside(const struct finder *f, const struct krait_kthread *t,
                                                 int32_t own_tid)
{
    const struct krait_kernel_states *states = f->states;
    const struct krait_kthread *same = own_tid ? krait_kernel_states_thread(states, own_tid) : NULL;
    if (!own_tid || (same && is_beside(t, same, own_tid)))
        return same;
    for (uint32_t i = states->thread_count; i-- > 0;) {
        if (is_beside(t, states->threads[i], own_tid))
            return states->threads[i];
    }
    return NULL;
}

static struct krait_gil_hold hold_at(const struct finder *f, const struct krait_kthread *t, int64_t ns)
{
    if (!f->options->gil)
        return (struct krait_gil_hold){ .until_ns = UINT64_MAX };
    return krait_gil_hold_at(f->options->gil, (uint32_t)krait_kthread_own_id(t), (uint64_t)ns);
}

/* No thread ended this wait: what lies of it in waits for the GIL goes to those who had that, one record for
 * each. Returns the last. */
static uint32_t hand_out(struct finder *f, uint32_t record, const struct krait_kchange *change)
{
    const struct krait_kthread *t = change->thread;
    const struct record whole = *record_at(f, record);
    const struct krait_kthread *had = NULL;
    for (int64_t at = whole.begin_ns, end; at < change->ns && !f->failed; at = end) {
        struct krait_gil_hold hold = hold_at(f, t, at);
        const struct krait_kthread *has = thread_beside(f, t, (int32_t)hold.holder);
        struct record part = whole;
        end = hold.until_ns < (uint64_t)change->ns ? (int64_t)hold.until_ns : change->ns;
        part.begin_ns = at;
        part.prev = record;
        part.cause =
            has && has != t ? last_record(f, has, (enum krait_thread_state)has->state, has->since) : NONE;
        if (at == whole.begin_ns)
            record_at(f, record)->cause = part.cause; /* it is there already */
        else if (has != had)
            record = add_record(f, part);
        had = has;
    }
    return record;
}

/* A thread is woken: who did it, and else what. Returns the last of its records. */
static uint32_t explain_wait(struct finder *f, uint32_t record, const struct krait_kchange *change)
{
    const struct krait_kcpu *cpu = change->cpu;
    const struct krait_kthread *waker = waker_of(f, change);
    const struct place *sender = !waker && cpu && !cpu->irqs ? sender_on(f, cpu) : NULL;
    uint32_t cause = waker ? as_it_is(f, waker) : sender ? flight(f, change, sender) : NONE;
    if (f->failed)
        return record;
    record_at(f, record)->cause = cause;
    if (cause != NONE || !krait_thread_blocks((enum krait_thread_state)change->was))
        return record;
    if (cpu)
        tell_device(record_at(f, record), cpu, (enum krait_thread_state)change->was);
    return hand_out(f, record, change);
}

static bool may_have_cause(const struct krait_kchange *change)
{
    return change->thread->state == KRAIT_TS_WOKEN &&
           (krait_thread_blocks((enum krait_thread_state)change->was) || change->was == KRAIT_TS_GONE);
}

/* Who had the CPU for which a thread had to wait, in a list of `had`; NONE: nobody. */
static uint32_t had_cpu(struct finder *f, const struct krait_kchange *change)
{
    enum krait_thread_state was = (enum krait_thread_state)change->was;
    struct krait_khad had[KRAIT_KHAD_MOST];
    uint32_t count = 0, first = f->had.count;
    if (was == KRAIT_TS_WOKEN || krait_thread_is_preempted(was))
        count = krait_kernel_had(f->states, change->thread, change->cpu, change->since_ns, had);
    struct krait_khad *list = count ? reserve(f, &f->had, first + count + 1, sizeof(*list)) : NULL;
    if (!list)
        return NONE;
    memcpy(list + first, had, count * sizeof(*had));
    list[first + count] = (struct krait_khad){ 0 };
    f->had.count = first + count + 1;
    return first;
}

/* Returns the record of what ends, or NONE when memory is out. */
static uint32_t keep(struct finder *f, const struct krait_kchange *change)
{
    const struct krait_kthread *t = change->thread;
    enum krait_path_kind kind = kind_of((enum krait_thread_state)t->state);
    make_room(f, change->ns);
    uint32_t last = last_record(f, t, (enum krait_thread_state)change->was, change->since_ns);
    if (last == NONE || (record_at(f, last)->kind == kind && kind == KRAIT_PATH_RUNNING))
        return last;
    uint32_t had = had_cpu(f, change);
    record_at(f, last)->had = had;
    record_at(f, last)->call = change->was_call;
    if (may_have_cause(change))
        last = explain_wait(f, last, change);
    struct record next = { .begin_ns = change->ns,
                           .thread = t->index,
                           .prev = last,
                           .cause = NONE,
                           .had = NONE,
                           .call = t->call,
                           .kind = (uint8_t)kind };
    uint32_t added = add_record(f, next);
    if (!f->failed)
        place_in(f, &f->of_thread, t->index)->record = added;
    return last;
}

/* -- packets -- */

static struct packet *packet_of(struct finder *f, uint64_t address)
{
    return &f->packets[krait_hash_u64(address) & (PACKETS - 1)];
}

/* What is sent in a soft interrupt answers what was received in it. */
static void on_sent(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns)
{
    struct finder *f = ctx;
    struct packet *packet = packet_of(f, address);
    *packet = (struct packet){ .address = address };
    if (!f->keeps || cpu->irqs)
        return;
    const struct place *sender = sender_on(f, cpu);
    if (sender)
        packet->from = *sender;
    else if (!cpu->softirqs)
        packet->from = (struct place){ .epoch = f->epoch, .record = as_it_is(f, cpu->current), .ns = ns };
}

static void on_received(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns)
{
    (void)ns;
    struct finder *f = ctx;
    struct packet *packet = packet_of(f, address);
    struct place *place = f->keeps ? place_in(f, &f->of_cpu, cpu->number) : NULL;
    if (!place)
        return;
    *place = packet->address == address ? packet->from : (struct place){ 0 };
    place->softirq = cpu->softirq;
    *packet = (struct packet){ 0 };
}

/* -- the path -- */

/* A record's list, among those of the segments. */
static void tell_had(struct finder *f, struct krait_path_segment *segment, uint32_t list)
{
    const struct krait_khad *had = (const struct krait_khad *)f->had.items + (list == NONE ? 0 : list);
    uint64_t sum = 0;
    for (segment->had = f->had_ever.count; list != NONE && had->by; had++) {
        struct krait_khad *all = reserve(f, &f->had_ever, f->had_ever.count + 1, sizeof(*all));
        if (!all)
            return;
        all[f->had_ever.count++] = *had;
        segment->had_count++;
        sum += had->ns;
        segment->had_of_ns = KRAIT_MAX(segment->had_of_ns, sum);
    }
}

static void add_segment(struct finder *f, const struct record *r, int64_t begin_ns, int64_t end_ns,
                        uint16_t depth)
{
    struct krait_path_segment *all =
        reserve(f, &f->segments, f->segments.count + 1, sizeof(struct krait_path_segment));
    if (!all || begin_ns >= end_ns)
        return;
    bool is_thread = r->kind <= KRAIT_PATH_PREEMPTED || r->kind == KRAIT_PATH_UNKNOWN;
    struct krait_path_segment *segment = &all[f->segments.count++];
    *segment = (struct krait_path_segment){ .begin_ns = begin_ns,
                                            .end_ns = end_ns,
                                            .thread = r->thread,
                                            .had_of_ns = (uint64_t)(end_ns - r->begin_ns),
                                            .call = is_thread ? KRAIT_NO_ID : r->call,
                                            .device = is_thread || !r->device ? KRAIT_NO_ID : r->device - 1u,
                                            .depth = depth,
                                            .kind = r->kind };
    tell_had(f, segment, r->had);
}

static void push(struct finder *f, struct frame frame)
{
    struct frame *frames = reserve(f, &f->frames, f->frames.count + 1, sizeof(*frames));
    if (!frames)
        return;
    frames[f->frames.count++] = frame;
    if (frame.of != NONE)
        record_at(f, frame.of)->followed = true;
}

static void pop(struct finder *f)
{
    const struct frame *frame = (struct frame *)f->frames.items + --f->frames.count;
    if (frame->of != NONE)
        record_at(f, frame->of)->followed = false;
}

/* How many waits lie around a record that is followed now. Of a packet's way it is that of who waits for it.
 */
static uint16_t depth_of(const struct finder *f, const struct record *r)
{
    bool is_flight = r->prev != NONE && record_at(f, r->prev)->thread != r->thread;
    return (uint16_t)KRAIT_MIN(f->frames.count - 1 - is_flight, (uint32_t)UINT16_MAX);
}

/* What was before is forgotten, or was never told: a thread whose fork was lost begins late. */
static void add_unknown(struct finder *f, const struct frame *frame)
{
    const struct record r = { .thread = frame->thread, .had = NONE, .kind = KRAIT_PATH_UNKNOWN };
    if (f->has_forgotten)
        f->path->forgotten_ns += (uint64_t)(frame->hi_ns - frame->lo_ns);
    add_segment(f, &r, frame->lo_ns, frame->hi_ns,
                (uint16_t)KRAIT_MIN(f->frames.count - 1, (uint32_t)UINT16_MAX));
}

/* One record backward: it is added, or what its cause did in its time comes before what is left of the frame.
 * What waits for itself, as damaged traces may say, is added: this ends. */
static void step(struct finder *f)
{
    struct frame *frame = (struct frame *)f->frames.items + f->frames.count - 1;
    if (frame->record == NONE && frame->hi_ns > frame->lo_ns)
        add_unknown(f, frame);
    if (frame->record == NONE || frame->hi_ns <= frame->lo_ns) {
        pop(f);
        return;
    }
    uint32_t record = frame->record;
    const struct record *r = record_at(f, record);
    frame->thread = r->thread;
    int64_t begin_ns = KRAIT_MAX(r->begin_ns, frame->lo_ns), end_ns = frame->hi_ns;
    frame->hi_ns = KRAIT_MIN(begin_ns, end_ns);
    frame->record = r->prev;
    if (begin_ns >= end_ns)
        return;
    if (r->cause == NONE || r->followed)
        add_segment(f, r, begin_ns, end_ns, depth_of(f, r));
    else
        push(f, (struct frame){ .lo_ns = begin_ns, .hi_ns = end_ns, .record = r->cause, .of = record });
}

static void reverse(struct krait_path_segment *segments, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        struct krait_path_segment other = segments[count - 1 - i];
        segments[count - 1 - i] = segments[i];
        segments[i] = other;
    }
}

/* What a thread ran before and behind something that took no time is one. */
static void join(struct finder *f, uint32_t first)
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

/* A wait of the thread ends: what it consisted of. */
static void follow(struct finder *f, uint32_t record, int64_t begin_ns, int64_t end_ns)
{
    uint32_t first = f->segments.count;
    push(f, (struct frame){ .lo_ns = begin_ns, .hi_ns = end_ns, .record = record, .of = NONE });
    while (f->frames.count && !f->failed)
        step(f);
    if (f->failed || f->segments.count == first)
        return;
    reverse((struct krait_path_segment *)f->segments.items + first, f->segments.count - first);
    join(f, first);
}

/* -- the thread -- */

static bool is_blocked(const struct krait_kthread *t)
{
    return krait_thread_blocks((enum krait_thread_state)t->state);
}

static void is_in_state(struct finder *f, const struct krait_kthread *t)
{
    bool is_known = t->state != KRAIT_TS_UNKNOWN && t->state != KRAIT_TS_GONE;
    f->gil_ends_ns = is_known ? (int64_t)hold_at(f, t, t->since).wait_end_ns : 0;
    f->since_ns = t->since;
    f->keeps = is_blocked(t) || f->gil_ends_ns;
    if (f->keeps)
        forget_all(f);
    f->watch.done = !f->keeps && t->since >= f->to_ns;
}

/* What the thread itself did is on the path. User mode and system calls are one. */
static void add_own(struct finder *f, const struct krait_kchange *change)
{
    const struct record own = { .begin_ns = change->since_ns,
                                .thread = change->thread->index,
                                .had = had_cpu(f, change),
                                .kind = (uint8_t)kind_of((enum krait_thread_state)change->was) };
    uint32_t first = f->segments.count;
    add_segment(f, &own, change->since_ns, change->ns, 0);
    join(f, first);
}

/* Of the trace: from its state to the same. */
static bool is_last(const struct krait_kchange *change)
{
    return !change->cpu && change->was == change->thread->state;
}

/* Before it is first met it is not there, nor behind its end, but for one that executes under its number. */
static bool is_there(const struct finder *f, const struct krait_kchange *change)
{
    bool is_over = change->was == KRAIT_TS_GONE && change->thread->state == KRAIT_TS_GONE;
    return !is_over &&
           (f->segments.count || (change->was != KRAIT_TS_GONE && change->was != KRAIT_TS_UNKNOWN));
}

static void thread_changes(struct finder *f, const struct krait_kchange *change)
{
    uint32_t wait = f->keeps ? keep(f, change) : NONE;
    if (wait != NONE && change->ns < f->gil_ends_ns && !is_last(change))
        return;
    if (wait != NONE)
        follow(f, wait, f->since_ns, change->ns);
    else if (is_there(f, change))
        add_own(f, change);
    is_in_state(f, change->thread);
}

/* A number that is used again is another thread. */
static bool is_it(struct finder *f, const struct krait_kthread *t)
{
    if (t->tid != f->options->tid)
        return false;
    if (!f->thread || !f->segments.count)
        f->thread = t;
    return f->thread == t;
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    struct finder *f = ctx;
    if (f->failed)
        return;
    if (is_it(f, change->thread))
        thread_changes(f, change);
    else if (f->keeps && (is_blocked(f->thread) || change->ns < f->gil_ends_ns))
        keep(f, change);
    else if (!f->keeps)
        f->watch.done = change->ns >= f->to_ns;
}

/* The end of all times where it would be behind that. */
static int64_t later(int64_t ns, uint64_t by_ns)
{
    uint64_t left = (uint64_t)INT64_MAX - (uint64_t)ns;
    return by_ns < left ? (int64_t)((uint64_t)ns + by_ns) : INT64_MAX;
}

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct finder *f = ctx;
    f->states = states;
    f->to_ns = later(states->origin_ns, f->options->to_ns);
    f->thread = krait_kernel_states_thread(states, f->options->tid);
    if (f->thread)
        is_in_state(f, f->thread);
}

/* -- beginning and end -- */

/* Cuts off what lies behind the range: a wait was followed up to its end. */
static void cut(struct finder *f)
{
    struct krait_path_segment *all = f->segments.items;
    while (f->segments.count && all[f->segments.count - 1].begin_ns >= f->to_ns)
        f->segments.count--;
    if (f->segments.count)
        all[f->segments.count - 1].end_ns = KRAIT_MIN(all[f->segments.count - 1].end_ns, f->to_ns);
}

static int name_host(struct krait_critical_path *path, const struct krait_kevs *kevs)
{
    path->hosts = krait_arena_alloc(&path->arena, sizeof(*path->hosts));
    if (!path->hosts)
        return -ENOMEM;
    path->hosts[0] = krait_arena_strdup(&path->arena, krait_kevs_env(kevs, "hostname"));
    path->host_count = 1;
    return path->hosts[0] ? 0 : -ENOMEM;
}

static int find(struct finder *f, struct krait_kevs *kevs, struct krait_err *err)
{
    struct krait_critical_path *path = f->path;
    struct krait_kernel_options options = { .from_ns = f->options->from_ns,
                                            .until_ns = UINT64_MAX,
                                            .watch = &f->watch };
    f->watch = (struct krait_kernel_watch){
        .ctx = f, .begin = on_begin, .change = on_change, .sent = on_sent, .received = on_received
    };
    int rc = krait_kernel_states_new(&path->states, kevs, &options, err);
    if (rc)
        return rc;
    if (f->failed || name_host(path, kevs))
        return krait_err_set(err, -ENOMEM, "out of memory");
    cut(f);
    if (!f->segments.count)
        return krait_err_set(err, -ESRCH, "the kernel's events know of no thread %d in that time",
                             f->options->tid);
    path->thread = f->thread->index;
    path->segments = f->segments.items;
    path->count = f->segments.count;
    path->had = f->had_ever.items;
    f->segments.items = NULL;
    f->had_ever.items = NULL;
    return 0;
}

static uint32_t most_records(uint64_t memory)
{
    uint64_t most = (memory ? memory : MEMORY) / sizeof(struct record);
    return (uint32_t)KRAIT_MIN(KRAIT_MAX(most, (uint64_t)LEAST_RECORDS), (uint64_t)NONE / 4);
}

int krait_critical_path_new(struct krait_critical_path **out, struct krait_kevs *kevs,
                            const struct krait_path_options *options, struct krait_err *err)
{
    struct krait_critical_path *path = calloc(1, sizeof(*path));
    struct finder *f = calloc(1, sizeof(*f));
    int rc = path && f ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        f->path = path;
        f->options = options;
        f->most = most_records(options->memory);
        rc = find(f, kevs, err);
        free(f->records.items);
        free(f->frames.items);
        free(f->segments.items);
        free(f->had.items);
        free(f->had_ever.items);
        free(f->of_thread.items);
        free(f->of_cpu.items);
    }
    free(f);
    if (rc)
        krait_critical_path_free(path);
    else
        *out = path;
    return rc;
}

void krait_critical_path_free(struct krait_critical_path *path)
{
    if (!path)
        return;
    krait_kernel_states_free(path->states);
    krait_arena_done(&path->arena);
    free(path->segments);
    free(path->had);
    free(path);
}
