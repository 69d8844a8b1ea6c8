/* SPDX-License-Identifier: Apache-2.0
 *
 * Records: what is kept of all threads while the one whose path it is waits.
 */
#include "analysis/critical_path_inside.h"

#include "base/array.h"

/* NULL when memory is out. */
static struct krait_path_place *place_in(struct krait_path_finder *f, struct krait_path_places *places,
                                         uint32_t index)
{
    bool fits = KRAIT_GROW(places->items, places->cap, index + 1);
    f->failed |= !fits;
    if (!fits)
        return NULL;
    while (places->count <= index)
        places->items[places->count++] = (struct krait_path_place){ 0 };
    return &places->items[index];
}

static uint32_t add_record(struct krait_path_finder *f, struct krait_path_record record)
{
    bool fits = KRAIT_GROW(f->records.items, f->records.cap, f->records.count + 1);
    f->failed |= !fits;
    if (!fits)
        return KRAIT_NO_ID;
    f->records.items[f->records.count] = record;
    return f->records.count++;
}

enum krait_path_kind krait_path_kind_of(enum krait_thread_state state)
{
    static const uint8_t kinds[KRAIT_TS_COUNT] = {
        [KRAIT_TS_USER] = KRAIT_PATH_RUNNING,          [KRAIT_TS_SYSTEM] = KRAIT_PATH_RUNNING,
        [KRAIT_TS_INTERRUPT] = KRAIT_PATH_INTERRUPTED, [KRAIT_TS_WOKEN] = KRAIT_PATH_WOKEN,
        [KRAIT_TS_THROTTLED] = KRAIT_PATH_PREEMPTED,   [KRAIT_TS_PREEMPTED] = KRAIT_PATH_PREEMPTED,
        [KRAIT_TS_UNKNOWN] = KRAIT_PATH_UNKNOWN,       [KRAIT_TS_GONE] = KRAIT_PATH_UNKNOWN
    };
    return krait_thread_blocks(state) ? KRAIT_PATH_BLOCKED : (enum krait_path_kind)kinds[state];
}

void krait_path_forget_all(struct krait_path_finder *f)
{
    f->records.count = 0;
    f->had.count = 0;
    f->half = f->most / 2;
    f->has_forgotten = false;
    f->epoch++;
}

/* The thread's last record; at first one for the state that it is in since before. */
static uint32_t last_record(struct krait_path_finder *f, const struct krait_kthread *t,
                            enum krait_thread_state state, int64_t since_ns)
{
    struct krait_path_place *place = place_in(f, &f->of_thread, t->index);
    if (!place || place->epoch == f->epoch)
        return place ? place->record : KRAIT_NO_ID;
    place->epoch = f->epoch;
    return place->record =
               add_record(f, (struct krait_path_record){ .begin_ns = since_ns,
                                                         .thread = t->index,
                                                         .prev = KRAIT_NO_ID,
                                                         .cause = KRAIT_NO_ID,
                                                         .had = KRAIT_NO_ID,
                                                         .kind = (uint8_t)krait_path_kind_of(state) });
}

/* A thread that runs, as it is now: it may be the cause of something. At the end of a part of a trace (kernel_carried.h) it will
 * run: no CPU is told. */
static uint32_t as_it_is(struct krait_path_finder *f, const struct krait_kthread *t,
                         const struct krait_kcpu *cpu)
{
    enum krait_thread_state state = t ? (enum krait_thread_state)t->state : KRAIT_TS_UNKNOWN;
    return t && (!cpu || krait_thread_runs(state)) ? last_record(f, t, state, t->since) : KRAIT_NO_ID;
}

/* Who sent what was received last in the soft interrupt that goes on; NULL: it is not known. */
static const struct krait_path_place *sender_on(struct krait_path_finder *f, const struct krait_kcpu *cpu)
{
    const struct krait_path_place *place = place_in(f, &f->of_cpu, cpu->number);
    bool holds = place && place->epoch == f->epoch && cpu->softirqs && place->softirq == cpu->softirq;
    return holds && place->record != KRAIT_NO_ID ? place : NULL;
}

/* The device of what an interrupt did, which goes on. */
static uint16_t device_on(const struct krait_kcpu *cpu)
{
    uint32_t device = cpu->irqs ? cpu->irq_device : cpu->softirqs ? cpu->soft_device : KRAIT_NO_ID;
    return device < UINT16_MAX ? (uint16_t)(device + 1) : 0;
}

/* The way of a packet, behind what its sender did until it was sent. */
static uint32_t flight(struct krait_path_finder *f, const struct krait_kchange *change,
                       const struct krait_path_place *sender)
{
    return add_record(f, (struct krait_path_record){ .begin_ns = sender->ns,
                                                     .thread = change->thread->index,
                                                     .prev = sender->record,
                                                     .cause = KRAIT_NO_ID,
                                                     .had = KRAIT_NO_ID,
                                                     .call = change->was_call,
                                                     .kind = KRAIT_PATH_NETWORK,
                                                     .device = device_on(change->cpu) });
}

/* What an interrupt, or nobody who is known, ended, is told in the record. `told` is what the machine makes
 * of it, which asks the system call first. */
static void tell_device(struct krait_path_record *r, const struct krait_kcpu *cpu,
                        enum krait_thread_state told)
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
static const struct krait_kthread *waker_of(const struct krait_path_finder *f,
                                            const struct krait_kchange *change)
{
    return krait_kernel_cause(f->states, change->thread->state_by);
}

/* Whether a thread is the one that another, of the same process, calls by that number. In a namespace the
 * kernel calls neither of them so. */
static bool is_beside(const struct krait_kthread *t, const struct krait_kthread *other, int32_t own_tid)
{
    bool foreign = t->process != other->process && t->process != KRAIT_NO_ID && other->process != KRAIT_NO_ID;
    return krait_kthread_own_id(other) == own_tid && !foreign &&
           krait_kthread_is_elsewhere(other) == krait_kthread_is_elsewhere(t);
}

static const struct krait_kthread *thread_beside(const struct krait_path_finder *f,
                                                 const struct krait_kthread *t, int32_t own_tid)
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

struct krait_gil_hold krait_path_hold_at(const struct krait_path_finder *f, const struct krait_kthread *t,
                                         int64_t ns)
{
    if (!f->options->gil)
        return (struct krait_gil_hold){ .until_ns = UINT64_MAX };
    return krait_gil_hold_at(f->options->gil, (uint32_t)krait_kthread_own_id(t), (uint64_t)ns);
}

/* No thread ended this wait: what lies of it in waits for the GIL goes to those who had that, one record for
 * each. Returns the last. */
static uint32_t hand_out(struct krait_path_finder *f, uint32_t record, const struct krait_kchange *change)
{
    const struct krait_kthread *t = change->thread;
    const struct krait_path_record whole = *krait_path_record_at(f, record);
    const struct krait_kthread *had = NULL;
    for (int64_t at = whole.begin_ns, end; at < change->ns && !f->failed; at = end) {
        struct krait_gil_hold hold = krait_path_hold_at(f, t, at);
        const struct krait_kthread *has = thread_beside(f, t, (int32_t)hold.holder);
        struct krait_path_record part = whole;
        end = hold.until_ns < (uint64_t)change->ns ? (int64_t)hold.until_ns : change->ns;
        part.begin_ns = at;
        part.prev = record;
        part.cause = has && has != t ? last_record(f, has, (enum krait_thread_state)has->state, has->since)
                                     : KRAIT_NO_ID;
        if (at == whole.begin_ns)
            krait_path_record_at(f, record)->cause = part.cause; /* it is there already */
        else if (has != had)
            record = add_record(f, part);
        had = has;
    }
    return record;
}

/* A thread is woken: who did it, and else what. Returns the last of its records. */
static uint32_t explain_wait(struct krait_path_finder *f, uint32_t record, const struct krait_kchange *change)
{
    const struct krait_kcpu *cpu = change->cpu;
    const struct krait_kthread *waker = waker_of(f, change);
    const struct krait_path_place *sender = !waker && cpu && !cpu->irqs ? sender_on(f, cpu) : NULL;
    uint32_t cause = waker ? as_it_is(f, waker, cpu) : sender ? flight(f, change, sender) : KRAIT_NO_ID;
    if (f->failed)
        return record;
    krait_path_record_at(f, record)->cause = cause;
    if (cause != KRAIT_NO_ID || !krait_thread_blocks((enum krait_thread_state)change->was))
        return record;
    if (cpu)
        tell_device(krait_path_record_at(f, record), cpu, (enum krait_thread_state)change->was);
    return hand_out(f, record, change);
}

static bool may_have_cause(const struct krait_kchange *change)
{
    return change->thread->state == KRAIT_TS_WOKEN &&
           (krait_thread_blocks((enum krait_thread_state)change->was) || change->was == KRAIT_TS_GONE);
}

uint32_t krait_path_had_cpu(struct krait_path_finder *f, const struct krait_kchange *change)
{
    const struct krait_krun end = { .ns = INT64_MAX };
    struct krait_kruns *had = &f->had;
    uint32_t first = had->count;
    if (!krait_thread_is_ready((enum krait_thread_state)change->was))
        return KRAIT_NO_ID;
    f->failed |= !krait_kernel_who_had(f->states, change->thread, change->cpu, change->since_ns, had) ||
                 !KRAIT_GROW(had->items, had->cap, (size_t)had->count + 1);
    if (f->failed || had->count == first)
        return KRAIT_NO_ID;
    had->items[had->count++] = end;
    return first;
}

uint32_t krait_path_keep(struct krait_path_finder *f, const struct krait_kchange *change)
{
    const struct krait_kthread *t = change->thread;
    enum krait_path_kind kind = krait_path_kind_of((enum krait_thread_state)t->state);
    krait_path_make_room(f, change->ns);
    uint32_t last = last_record(f, t, (enum krait_thread_state)change->was, change->since_ns);
    if (last == KRAIT_NO_ID || (krait_path_record_at(f, last)->kind == kind && kind == KRAIT_PATH_RUNNING))
        return last;
    uint32_t had = krait_path_had_cpu(f, change);
    krait_path_record_at(f, last)->had = had;
    krait_path_record_at(f, last)->call = change->was_call;
    if (may_have_cause(change))
        last = explain_wait(f, last, change);
    struct krait_path_record next = { .begin_ns = change->ns,
                                      .thread = t->index,
                                      .prev = last,
                                      .cause = KRAIT_NO_ID,
                                      .had = KRAIT_NO_ID,
                                      .call = t->call,
                                      .kind = (uint8_t)kind };
    uint32_t added = add_record(f, next);
    if (!f->failed)
        place_in(f, &f->of_thread, t->index)->record = added;
    return last;
}

/* -- packets -- */

static struct krait_path_packet *packet_of(struct krait_path_finder *f, uint64_t address)
{
    return &f->packets[krait_hash_u64(address) & (KRAIT_PATH_PACKETS - 1)];
}

/* What is sent in a soft interrupt answers what was received in it. */
void krait_path_on_sent(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns)
{
    struct krait_path_finder *f = ctx;
    struct krait_path_packet *packet = packet_of(f, address);
    *packet = (struct krait_path_packet){ .address = address };
    if (!f->keeps || cpu->irqs)
        return;
    const struct krait_path_place *sender = sender_on(f, cpu);
    if (sender)
        packet->from = *sender;
    else if (!cpu->softirqs)
        packet->from = (struct krait_path_place){ .epoch = f->epoch,
                                                  .record = as_it_is(f, cpu->current, cpu),
                                                  .ns = ns };
}

void krait_path_on_received(void *ctx, const struct krait_kcpu *cpu, uint64_t address, int64_t ns)
{
    (void)ns;
    struct krait_path_finder *f = ctx;
    struct krait_path_packet *packet = packet_of(f, address);
    struct krait_path_place *place = f->keeps ? place_in(f, &f->of_cpu, cpu->number) : NULL;
    if (!place)
        return;
    *place = packet->address == address ? packet->from : (struct krait_path_place){ 0 };
    place->softirq = cpu->softirq;
    *packet = (struct krait_path_packet){ 0 };
}
