/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_states.h"

#include "trace/kernel/kernel_block.h"
#include "trace/kernel/kernel_device.h"
#include "trace/kernel/kernel_machine.h"

#include <string.h>

typedef struct krait_kernel_states machine;

/* -- durations -- */

static void late(machine *m, enum krait_latency which, int64_t since_ns)
{
    if (since_ns != INT64_MIN && krait_kernel_counts(m) &&
        krait_spread_add(&m->latencies[which], (uint64_t)(m->now - since_ns)))
        m->failed = true;
}

/* -- time -- */

KRAIT_COLD void krait_kernel_keep_interval(machine *m, struct krait_kthread *t, enum krait_thread_state state)
{
    const struct krait_kinterval *last = t->interval_count ? &t->intervals[t->interval_count - 1] : NULL;
    bool goes_on = last && last->state == state && last->call == t->state_call && last->by == t->state_by &&
                   last->khz == t->state_khz;
    if (m->now == t->since || goes_on ||
        !KRAIT_KERNEL_GROW(m, t->intervals, t->interval_cap, t->interval_count + 1))
        return;
    struct krait_kinterval *made = &t->intervals[t->interval_count++];
    *made = (struct krait_kinterval){ .begin_ns = t->since,
                                      .call = t->state_call,
                                      .by = t->state_by,
                                      .khz = t->state_khz,
                                      .state = (uint8_t)state };
    if (krait_thread_is_ready(state))
        krait_kernel_keep_had(m, t, made);
}

static KRAIT_COLD void tell_change(const machine *m, const struct krait_kthread *t, struct krait_kchange old)
{
    old.thread = t;
    old.cpu = m->here;
    old.ns = m->now;
    m->watch->change(m->watch->ctx, &old);
}

static inline bool computes(enum krait_thread_state state)
{
    return state == KRAIT_TS_USER || state == KRAIT_TS_SYSTEM;
}

/* Counts the time since the last change for `as`, which is the state but for what was only now learned. `by`:
 * see struct krait_kinterval. */
static inline void leave(machine *m, struct krait_kthread *t, enum krait_thread_state as,
                         enum krait_thread_state to, uint32_t by)
{
    struct krait_kchange old = {
        .since_ns = t->since, .was_call = t->state_call, .was_by = t->state_by, .was = (uint8_t)as
    };
    if (KRAIT_UNLIKELY(t->kept))
        krait_kernel_keep_interval(m, t, as);
    if (KRAIT_UNLIKELY(m->ahead != NULL))
        krait_kernel_ends_wait(m, t, as, by);
    uint64_t ns = krait_kernel_counted(m, t->since, m->now);
    t->ns[as] += ns;
    krait_cycles_add(&t->cycles, ns, t->state_khz);
    t->since = m->now;
    t->doubtful = false;
    if (KRAIT_UNLIKELY((t->state == KRAIT_TS_GONE) != (to == KRAIT_TS_GONE)))
        t->gone_ns = to == KRAIT_TS_GONE ? m->now : INT64_MAX;
    t->state = (uint8_t)to;
    t->state_call = t->call;
    t->state_khz = m->here && computes(to) ? m->here->khz : 0;
    t->state_by = by;
    if (KRAIT_UNLIKELY(m->watch != NULL))
        tell_change(m, t, old);
}

void krait_kernel_leave(machine *m, struct krait_kthread *t, enum krait_thread_state to)
{
    leave(m, t, t->state, to, 0);
}

void krait_kernel_leave_as(machine *m, struct krait_kthread *t, enum krait_thread_state as,
                           enum krait_thread_state to, uint32_t by)
{
    leave(m, t, as, to, by);
}

static inline void turn(machine *m, struct krait_kthread *t, enum krait_thread_state to)
{
    if (t->state != to)
        leave(m, t, t->state, to, 0);
}

/* -- threads, processes, CPUs -- */

KRAIT_COLD struct krait_kthread *krait_kernel_new_thread(machine *m, int32_t tid,
                                                         enum krait_thread_state before)
{
    struct krait_kthread *t = KRAIT_ARENA_NEW(&m->arena, struct krait_kthread);
    if (!t || !KRAIT_KERNEL_GROW(m, m->threads, m->thread_cap, m->thread_count + 1) ||
        krait_map_put(&m->by_tid, (uint32_t)tid, (uintptr_t)t)) {
        m->failed = true;
        return NULL;
    }
    *t = (struct krait_kthread){ .tid = tid,
                                 .index = m->thread_count,
                                 .process = KRAIT_NO_ID,
                                 .gone_ns = INT64_MAX,
                                 .asleep = KRAIT_TS_BLOCKED,
                                 .ready_on = KRAIT_NO_ID,
                                 .state = (uint8_t)before,
                                 .since = m->begin_ns,
                                 .call = KRAIT_NO_ID,
                                 .state_call = KRAIT_NO_ID,
                                 .stats_call = KRAIT_NO_ID,
                                 .waking_ns = INT64_MIN,
                                 .queued_ns = INT64_MIN };
    t->kept = m->options->keep && m->options->keep(m->options->ctx, m->thread_count, tid);
    m->threads[m->thread_count++] = t;
    return t;
}

/* NULL for the idle tasks, for what is no thread's number, and when memory is out. */
static inline struct krait_kthread *thread_of(machine *m, int64_t tid)
{
    if (tid <= 0 || tid > INT32_MAX)
        return NULL;
    const uint64_t *found = krait_map_get(&m->by_tid, (uint64_t)tid);
    return found ? (struct krait_kthread *)(uintptr_t)*found
                 : krait_kernel_new_thread(m, (int32_t)tid, KRAIT_TS_UNKNOWN);
}

struct krait_kthread *krait_kernel_thread_of(machine *m, int64_t tid)
{
    return thread_of(m, tid);
}

/* Who bears the number of one that has ended was made since then, which was not told. */
static KRAIT_COLD struct krait_kthread *use_again(machine *m, const struct krait_kthread *ended)
{
    struct krait_kthread *t = krait_kernel_new_thread(m, ended->tid, KRAIT_TS_UNKNOWN);
    if (!t)
        return NULL;
    t->born_ns = ended->gone_ns;
    if (t->born_ns <= t->since)
        return t;
    if (t->kept)
        krait_kernel_keep_interval(m, t, KRAIT_TS_GONE);
    t->ns[KRAIT_TS_GONE] = krait_kernel_counted(m, t->since, t->born_ns);
    t->since = t->born_ns;
    return t;
}

/* A thread that is woken, or gets a CPU. */
static inline struct krait_kthread *living(machine *m, int64_t tid)
{
    struct krait_kthread *t = thread_of(m, tid);
    return KRAIT_UNLIKELY(t && t->ended && t->state == KRAIT_TS_GONE) ? use_again(m, t) : t;
}

static void set_name(char name[16], const char *text, size_t n)
{
    n = KRAIT_MIN(n, (size_t)15);
    if (!n || (strncmp(name, text, n) == 0 && !name[n]))
        return;
    memcpy(name, text, n);
    name[n] = '\0';
}

void krait_kernel_name_thread(struct krait_kthread *t, const struct krait_kernel_event *ev, unsigned field)
{
    size_t n;
    const char *text = krait_kernel_event_text(ev, field, &n);
    set_name(t->name, text, strnlen(text, n));
}

static uint32_t process_of(machine *m, int64_t pid)
{
    if (pid < 0 || pid > INT32_MAX)
        return KRAIT_NO_ID;
    const uint64_t *found = krait_map_get(&m->by_pid, (uint64_t)pid);
    if (found)
        return (uint32_t)*found;
    if (!KRAIT_KERNEL_GROW(m, m->processes, m->process_cap, m->process_count + 1) ||
        krait_map_put(&m->by_pid, (uint64_t)pid, m->process_count)) {
        m->failed = true;
        return KRAIT_NO_ID;
    }
    m->processes[m->process_count] = (struct krait_kprocess){ .pid = (int32_t)pid };
    return m->process_count++;
}

void krait_kernel_set_process(machine *m, struct krait_kthread *t, int64_t pid)
{
    uint32_t process = process_of(m, pid);
    if (process == KRAIT_NO_ID || t->process == process)
        return;
    t->process = process;
    t->stats_call = KRAIT_NO_ID;
}

static KRAIT_COLD bool meet_cpu(machine *m, uint32_t number)
{
    if (number >= m->cpu_count) {
        if (!KRAIT_KERNEL_GROW(m, m->cpus, m->cpu_cap, number + 1))
            return false;
        memset(m->cpus + m->cpu_count, 0, (number + 1 - m->cpu_count) * sizeof(*m->cpus));
        m->cpu_count = number + 1;
        m->here = NULL; /* they may have moved */
    }
    struct krait_kcpu *cpu = &m->cpus[number];
    cpu->met = true;
    cpu->number = number;
    cpu->state = cpu->base = KRAIT_CS_UNKNOWN;
    cpu->since = m->begin_ns;
    return true;
}

static inline struct krait_kcpu *cpu_at(machine *m, uint32_t number)
{
    bool met = number < m->cpu_count && m->cpus[number].met;
    return KRAIT_LIKELY(met) || meet_cpu(m, number) ? &m->cpus[number] : NULL;
}

struct krait_kcpu *krait_kernel_cpu_at(machine *m, uint32_t number)
{
    return cpu_at(m, number);
}

static inline struct krait_kcpu *cpu_of(machine *m, const struct krait_kernel_event *ev)
{
    return cpu_at(m, ev->cpu);
}

/* Its CPU's event goes on from now on, until the next one's. NULL when memory is out. */
struct krait_kcpu *krait_kernel_happen(machine *m, const struct krait_kernel_event *ev)
{
    struct krait_kcpu *cpu = cpu_of(m, ev);
    krait_kernel_tick(m, ev);
    m->here = cpu;
    return cpu;
}

/* -- what runs -- */

/* States of a CPU and of the thread on it, from what is known of both. */
void krait_kernel_settle(machine *m, struct krait_kcpu *cpu)
{
    bool stopped = cpu->irqs || cpu->softirqs;
    krait_kcpu_turn(m, cpu,
                    cpu->irqs       ? KRAIT_CS_IRQ
                    : cpu->softirqs ? KRAIT_CS_SOFTIRQ
                                    : (enum krait_cpu_state)cpu->base);
    struct krait_kthread *t = cpu->current;
    if (t)
        turn(m, t,
             stopped                                  ? KRAIT_TS_INTERRUPT
             : t->call != KRAIT_NO_ID || t->is_kernel ? KRAIT_TS_SYSTEM
                                                      : KRAIT_TS_USER);
}

static bool is_running(const struct krait_kthread *t)
{
    return krait_thread_runs((enum krait_thread_state)t->state);
}

static bool is_blocked(const struct krait_kthread *t)
{
    return t->state == KRAIT_TS_BLOCKED;
}

/* -- switches -- */

/* Another thread has the CPU, or had it until now. */
void krait_kernel_expect(machine *m, const struct krait_kcpu *cpu, const struct krait_kthread *t)
{
    if (cpu->current && cpu->current != t && is_running(cpu->current))
        turn(m, cpu->current, KRAIT_TS_UNKNOWN); /* its switch was lost */
}

/* What a CPU does where no interrupt stops it. */
static uint8_t base_of(const struct krait_kthread *t)
{
    return !t ? KRAIT_CS_IDLE : t->call != KRAIT_NO_ID || t->is_kernel ? KRAIT_CS_SYSTEM : KRAIT_CS_USER;
}

KRAIT_COLD void krait_kernel_correct(machine *m, struct krait_kcpu *cpu, int64_t tid)
{
    struct krait_kthread *t = thread_of(m, tid);
    krait_kernel_expect(m, cpu, t);
    krait_kernel_ran(m, t);
    cpu->current = t;
    cpu->known = true;
    cpu->base = base_of(t);
    krait_kernel_log_run(m, cpu);
    krait_kernel_settle(m, cpu);
}

/* The context of what happens on a CPU tells which thread is there, and with that of a switch that was lost,
 * or was never told: so it is with some virtual machines' own threads. */
static inline void look_who_runs(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    int64_t tid = krait_kernel_event_tid(ev), known = cpu->current ? cpu->current->tid : 0;
    if (KRAIT_UNLIKELY((tid != known || !cpu->known) && tid >= 0))
        krait_kernel_correct(m, cpu, tid);
}

static void switch_out(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = thread_of(m, krait_kernel_event_int(ev, 0));
    krait_kernel_expect(m, cpu, t);
    if (!t)
        return;
    krait_kernel_found_running(m, t);
    krait_kernel_name_thread(t, ev, 4);
    enum krait_thread_state after = krait_kernel_state_after(t, krait_kernel_event_int(ev, 1));
    const struct krait_kthread *by =
        after == KRAIT_TS_PREEMPTED ? living(m, krait_kernel_event_int(ev, 2)) : NULL;
    if (after == KRAIT_TS_PREEMPTED && !krait_kernel_event_int(ev, 2))
        after = KRAIT_TS_THROTTLED;
    leave(m, t, t->state, after, krait_kernel_by(by));
    t->ended = after == KRAIT_TS_GONE && krait_kernel_is_end(t, krait_kernel_event_int(ev, 1));
    t->asleep = (uint8_t)krait_kernel_asleep_on(t, krait_kernel_event_int(ev, 1));
    t->ready_on = cpu->number;
    t->deep = krait_kernel_is_deep(krait_kernel_event_int(ev, 1));
    t->waking_ns = t->queued_ns = INT64_MIN;
}

void krait_kernel_put_on(machine *m, struct krait_kcpu *cpu, struct krait_kthread *t)
{
    krait_kernel_ran(m, t);
    cpu->current = t;
    cpu->known = true;
    cpu->base = base_of(t);
    krait_kernel_log_run(m, cpu);
    if (!t)
        return;
    if (KRAIT_UNLIKELY((m->loss_count || t->doubtful) &&
                       krait_thread_blocks((enum krait_thread_state)t->state)) &&
        !m->own)
        krait_kernel_doubt(m, t); /* who woke it was lost */
    if (t->state == KRAIT_TS_WOKEN)
        late(m, KRAIT_LATENCY_QUEUE, t->queued_ns);
    else if (krait_thread_is_preempted((enum krait_thread_state)t->state))
        late(m, KRAIT_LATENCY_PREEMPTED, KRAIT_MAX(t->since, m->begin_ns));
}

static void switch_threads(machine *m, struct krait_kcpu *cpu, const struct krait_kernel_event *ev)
{
    cpu->irqs = cpu->softirqs = 0; /* a switch is in none: an end was lost */
    switch_out(m, cpu, ev);
    struct krait_kthread *next = living(m, krait_kernel_event_int(ev, 2));
    krait_kernel_put_on(m, cpu, next);
    if (next)
        krait_kernel_name_thread(next, ev, 3);
}

/* -- wake-ups -- */

enum krait_thread_state krait_kernel_told(const machine *m, const struct krait_kthread *t)
{
    return t->asleep != KRAIT_TS_BLOCKED ? (enum krait_thread_state)t->asleep
           : t->call == KRAIT_NO_ID      ? KRAIT_TS_BLOCKED
           : t->call_locks               ? KRAIT_TS_LOCK
                                         : (enum krait_thread_state)m->kinds[t->call].blocks_on;
}

/* Of a call that says nothing by itself: one thread sends what the other polls or reads from, or has a file
 * written for it. */
static enum krait_thread_state cause_by_thread(const machine *m, const struct krait_kthread *t,
                                               const struct krait_kthread *waker)
{
    if (!waker || t->call == KRAIT_NO_ID)
        return KRAIT_TS_BLOCKED;
    if (waker->call != KRAIT_NO_ID && m->kinds[waker->call].blocks_on == KRAIT_TS_NETWORK)
        return KRAIT_TS_NETWORK;
    return waker->is_kernel && t->deep && m->kinds[t->call].is_of_files ? KRAIT_TS_DISK : KRAIT_TS_BLOCKED;
}

static enum krait_thread_state cause_of(const machine *m, const struct krait_kthread *t,
                                        const struct krait_kcpu *waker)
{
    enum krait_thread_state told = krait_kernel_told(m, t);
    if (told != KRAIT_TS_BLOCKED)
        return told;
    return (enum krait_thread_state)(waker->irqs       ? waker->irq_cause
                                     : waker->softirqs ? waker->soft_cause
                                                       : cause_by_thread(m, t, waker->current));
}

/* The thread that wakes others on a CPU; 0 where an interrupt does, or it is not known. */
static uint32_t waker_on(const struct krait_kcpu *cpu)
{
    return cpu->irqs || cpu->softirqs ? 0 : krait_kernel_by(cpu->current);
}

static struct krait_kthread *wake(machine *m, const struct krait_kernel_event *ev)
{
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    struct krait_kthread *t = cpu ? living(m, krait_kernel_event_int(ev, 0)) : NULL;
    if (cpu)
        look_who_runs(m, cpu, ev);
    if (!t || is_running(t) || krait_thread_is_preempted((enum krait_thread_state)t->state))
        return NULL;
    t->ready_on = krait_kernel_event_has(ev, 3) ? (uint32_t)krait_kernel_event_int(ev, 3) : KRAIT_NO_ID;
    if (t->state == KRAIT_TS_WOKEN)
        return t;
    leave(m, t, is_blocked(t) ? cause_of(m, t, cpu) : (enum krait_thread_state)t->state, KRAIT_TS_WOKEN,
          krait_kernel_waker(m, waker_on(cpu)));
    return t;
}

static void on_waking(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = wake(m, ev);
    if (t && t->waking_ns == INT64_MIN)
        t->waking_ns = m->now;
}

static void on_wakeup(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = wake(m, ev);
    if (!t || t->queued_ns != INT64_MIN)
        return;
    t->queued_ns = m->now;
    late(m, KRAIT_LATENCY_WAKING, t->waking_ns);
}

/* Whoever made a thread wakes it for the first time: that tells of one whose fork was lost. */
static void on_wakeup_new(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    const uint64_t *found = krait_map_get(&m->by_tid, (uint64_t)krait_kernel_event_int(ev, 0));
    struct krait_kthread *t = found ? (struct krait_kthread *)(uintptr_t)*found : NULL;
    if (cpu)
        look_who_runs(m, cpu, ev);
    if (cpu && (!t || !t->newborn)) {
        t = krait_kernel_make_thread(m, krait_kernel_event_int(ev, 0), krait_kernel_cause(m, waker_on(cpu)));
        if (t)
            krait_kernel_name_thread(t, ev, 1);
    }
    if (t)
        t->newborn = false;
    on_wakeup(ctx, ev);
}

/* -- the kernel's functions -- */

/* A thread that was not met otherwise says nothing by it. */
static void on_function(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    const struct krait_kcpu *cpu = cpu_of(m, ev);
    int64_t tid = krait_kernel_event_tid(ev);
    const struct krait_kthread *t = tid >= 0 ? krait_kernel_states_thread(m, (int32_t)tid)
                                    : cpu    ? cpu->current
                                             : NULL;
    krait_kernel_tick(m, ev);
    if (t)
        m->threads[t->index]->runs_functions = true;
    if (t && m->watch && m->watch->function)
        m->watch->function(m->watch->ctx, t, ev, m->now);
}

/* -- state dumps -- */

static void on_dump_end(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    m->dumping = false;
}

/* -- marks -- */

/* Says nothing of what the thread does. */
static void on_mark(void *ctx, const struct krait_kernel_event *ev)
{
    struct krait_kthread *t = krait_kernel_thread_of(ctx, krait_kernel_event_tid(ev));
    if (t)
        t->says = true;
}

/* -- interrupts -- */

static void on_cause(void *ctx, const struct krait_kernel_event *ev)
{
    struct krait_kcpu *cpu = cpu_of(ctx, ev);
    if (cpu)
        krait_kcpu_cause(cpu, (enum krait_kernel_event_kind)ev->cls->kind, krait_kernel_device_of(ctx, ev));
}

static void on_sent(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    if (cpu)
        look_who_runs(m, cpu, ev);
    if (cpu && m->watch)
        m->watch->sent(m->watch->ctx, cpu, (uint64_t)krait_kernel_event_int(ev, 0), m->now);
}

static void on_received(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    const struct krait_kcpu *cpu = cpu_of(m, ev);
    on_cause(ctx, ev);
    krait_kernel_tick(m, ev);
    if (cpu && m->watch && m->watch->received && krait_kernel_event_has(ev, 1))
        m->watch->received(m->watch->ctx, cpu, (uint64_t)krait_kernel_event_int(ev, 1), m->now);
}

/* -- frequency -- */

/* Of any CPU, said on any. What runs there goes on at another speed. */
static void on_frequency(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    int64_t khz = krait_kernel_event_int(ev, 0),
            number = krait_kernel_event_has(ev, 1) ? krait_kernel_event_int(ev, 1) : ev->cpu;
    struct krait_kcpu *cpu =
        number >= 0 && number < KRAIT_KERNEL_EVENT_CPUS ? cpu_at(m, (uint32_t)number) : NULL;
    if (!cpu || khz < 0 || khz > UINT32_MAX)
        return;
    krait_kernel_tick(m, ev);
    m->here = cpu;
    krait_kcpu_pass(m, cpu);
    cpu->khz = (uint32_t)khz;
    struct krait_kthread *t = cpu->current;
    if (t && computes((enum krait_thread_state)t->state))
        leave(m, t, t->state, (enum krait_thread_state)t->state, t->state_by);
}

/* -- steal time -- */

static void on_steal(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    int64_t until_ns = m->ahead ? m->end_ns : INT64_MAX;
    if (m->ahead)
        krait_kernel_reads_steal(m, ev);
    m->failed |= krait_kernel_steals_add(&m->steals, ev, m->begin_ns, until_ns, m->options->parts) != 0;
}

/* -- events of a CPU -- */

/* What changes what a CPU does: a step for each kind, and then the states anew. */
static void on_cpu_event(void *ctx, const struct krait_kernel_event *ev)
{
    static krait_kcpu_step *const steps[KRAIT_KERNEL_EVENT_KINDS] = {
        [KRAIT_KERNEL_EVENT_SWITCH] = switch_threads,
        [KRAIT_KERNEL_EVENT_CALL_BEGIN] = krait_kernel_begin_call,
        [KRAIT_KERNEL_EVENT_CALL_END] = krait_kernel_end_call,
        [KRAIT_KERNEL_EVENT_IRQ_BEGIN] = krait_kcpu_begin_irq,
        [KRAIT_KERNEL_EVENT_IPI_BEGIN] = krait_kcpu_begin_irq,
        [KRAIT_KERNEL_EVENT_IRQ_END] = krait_kcpu_end_irq,
        [KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = krait_kcpu_begin_softirq,
        [KRAIT_KERNEL_EVENT_SOFTIRQ_END] = krait_kcpu_end_softirq,
        [KRAIT_KERNEL_EVENT_RUN] = krait_kernel_run_thread,
        [KRAIT_KERNEL_EVENT_LEAVE] = krait_kernel_leave_thread,
        [KRAIT_KERNEL_EVENT_END] = krait_kernel_end_thread,
        [KRAIT_KERNEL_EVENT_FAULT] = krait_kernel_fault_thread,
        [KRAIT_KERNEL_EVENT_NAMED] = krait_kernel_name_running,
        [KRAIT_KERNEL_EVENT_EXEC] = krait_kernel_exec_thread
    };
    /* Their context is of who runs; the others say it in their fields. */
    static const bool tells[KRAIT_KERNEL_EVENT_KINDS] = {
        [KRAIT_KERNEL_EVENT_CALL_BEGIN] = true, [KRAIT_KERNEL_EVENT_CALL_END] = true,
        [KRAIT_KERNEL_EVENT_IRQ_BEGIN] = true,  [KRAIT_KERNEL_EVENT_IPI_BEGIN] = true,
        [KRAIT_KERNEL_EVENT_IRQ_END] = true,    [KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = true,
        [KRAIT_KERNEL_EVENT_SOFTIRQ_END] = true
    };
    machine *m = ctx;
    struct krait_kcpu *cpu = krait_kernel_happen(m, ev);
    if (!cpu)
        return;
    if (tells[ev->cls->kind])
        look_who_runs(m, cpu, ev);
    steps[ev->cls->kind](m, cpu, ev);
    krait_kernel_settle(m, cpu);
}

/* What a watcher asks for as it is. */
static void on_event(void *ctx, const struct krait_kernel_event *ev)
{
    const machine *m = ctx;
    const struct krait_kernel_watch *watch = m->options->watch;
    if (ev->cls->kind == KRAIT_KERNEL_EVENT_FREQUENCY)
        on_frequency(ctx, ev);
    else if (ev->cls->kind == KRAIT_KERNEL_EVENT_LOST)
        krait_kernel_on_lost(ctx, ev);
    else
        on_cpu_event(ctx, ev);
    watch->event(watch->ctx, ev, m->now);
}

/* -- beginning and end -- */

static void on_begin(void *ctx, int64_t ns)
{
    machine *m = ctx;
    m->origin_ns = m->begin_ns = m->now = ns;
}

static void on_ahead(void *ctx, int64_t end_ns)
{
    machine *m = ctx;
    m->now = m->end_ns = KRAIT_MAX(end_ns, m->now);
    krait_kernel_look_ahead(m);
}

static void finish(machine *m, int64_t end_ns)
{
    krait_kernel_look_back(m);
    m->now = m->end_ns = KRAIT_MAX(end_ns, m->now);
    m->counted_ns = krait_kernel_counted(m, m->begin_ns, m->end_ns);
    m->here = NULL;
    for (uint32_t i = 0; i < m->thread_count; i++) {
        struct krait_kthread *t = m->threads[i];
        enum krait_thread_state state = krait_kthread_state_now(m, t);
        leave(m, t, state, state, t->state_by);
    }
    for (uint32_t i = 0; i < m->cpu_count; i++) {
        struct krait_kcpu *cpu = &m->cpus[i];
        if (cpu->met)
            krait_kcpu_pass(m, cpu);
    }
    krait_kernel_name_processes(m);
}

#define AHEAD_NS (10 * (uint64_t)KRAIT_NS_PER_S)

/* What nobody has to ask for. */
static krait_kernel_event_handler *const handlers[KRAIT_KERNEL_EVENT_KINDS] = {
    [KRAIT_KERNEL_EVENT_FOUND] = krait_kernel_on_found,
    [KRAIT_KERNEL_EVENT_LOST] = krait_kernel_on_lost,
    [KRAIT_KERNEL_EVENT_SWITCH] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_WAKING] = on_waking,
    [KRAIT_KERNEL_EVENT_WAKEUP] = on_wakeup,
    [KRAIT_KERNEL_EVENT_WAKEUP_NEW] = on_wakeup_new,
    [KRAIT_KERNEL_EVENT_FORK] = krait_kernel_on_fork,
    [KRAIT_KERNEL_EVENT_EXEC] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_EXIT] = krait_kernel_on_thread_exit,
    [KRAIT_KERNEL_EVENT_FREE] = krait_kernel_on_free,
    [KRAIT_KERNEL_EVENT_STATEDUMP] = krait_kernel_on_statedump,
    [KRAIT_KERNEL_EVENT_DUMPED_WAIT] = krait_kernel_on_dumped_wait,
    [KRAIT_KERNEL_EVENT_DUMP_END] = on_dump_end,
    [KRAIT_KERNEL_EVENT_CARRIED_THREAD] = krait_kernel_on_carried_thread,
    [KRAIT_KERNEL_EVENT_CARRIED_CPU] = krait_kernel_on_carried_cpu,
    [KRAIT_KERNEL_EVENT_CARRIED_WAIT] = krait_kernel_on_carried_wait,
    [KRAIT_KERNEL_EVENT_CALL_BEGIN] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_CALL_END] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_IRQ_BEGIN] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_IPI_BEGIN] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_IRQ_END] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_SOFTIRQ_END] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_TIMER] = on_cause,
    [KRAIT_KERNEL_EVENT_DISK] = on_cause,
    [KRAIT_KERNEL_EVENT_FREQUENCY] = on_frequency,
    [KRAIT_KERNEL_EVENT_STEAL] = on_steal,
    [KRAIT_KERNEL_EVENT_NET] = on_received,
    [KRAIT_KERNEL_EVENT_RUN] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_LEAVE] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_END] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_FAULT] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_NAMED] = on_cpu_event,
    [KRAIT_KERNEL_EVENT_MARK] = on_mark,
};

/* Kinds that a watcher may ask for as they are. */
static const enum krait_kernel_event_kind raw_kinds[] = {
    KRAIT_KERNEL_EVENT_LOST,        KRAIT_KERNEL_EVENT_FREQUENCY, KRAIT_KERNEL_EVENT_IRQ_BEGIN,
    KRAIT_KERNEL_EVENT_IPI_BEGIN,   KRAIT_KERNEL_EVENT_IRQ_END,   KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN,
    KRAIT_KERNEL_EVENT_SOFTIRQ_END,
};

static void add_asked(struct krait_kernel_event_walk *walk, const struct krait_kernel_options *options)
{
    const struct krait_kernel_watch *watch = options->watch;
    if (options->functions || (watch && watch->function)) {
        walk->handlers[KRAIT_KERNEL_EVENT_FUNCTION] = on_function;
        walk->handlers[KRAIT_KERNEL_EVENT_FUNCTION_BEGIN] = on_function;
        walk->handlers[KRAIT_KERNEL_EVENT_FUNCTION_END] = on_function;
    }
    if (!watch)
        return;
    walk->handlers[KRAIT_KERNEL_EVENT_DISK_NAME] = krait_kernel_name_disk;
    if (watch->sent)
        walk->handlers[KRAIT_KERNEL_EVENT_NET_SEND] = on_sent;
    for (size_t i = 0; watch->event && i < KRAIT_ARRAY_LEN(raw_kinds); i++)
        walk->handlers[raw_kinds[i]] = on_event;
}

static bool goes_on(void *ctx, int64_t ns)
{
    const machine *m = ctx;
    return m->options->goes_on(m->options->ctx, ns);
}

static int run(machine *m, struct krait_kernel_events *events, const struct krait_kernel_options *options,
               void (*ahead)(void *ctx, int64_t ns))
{
    const struct krait_kernel_watch *watch = options->watch;
    struct krait_kernel_event_walk walk = {
        .ctx = m,
        .from_ns = options->from_ns,
        .until_ns = options->until_ns,
        .begin_ns = m->origin_ns,
        .on_ns = m->end_ns,
        .done = watch ? &watch->done : &m->is_over,
        .goes_on = options->goes_on ? goes_on : NULL,
        .begin = on_begin,
        .from = krait_kernel_count_from,
        .ahead = ahead,
        .ahead_ns = AHEAD_NS,
        .behind = watch != NULL,
    };
    uint32_t count;
    const struct krait_kernel_event_class *classes = krait_kernel_events_classes(events, &count);
    memcpy(walk.handlers, handlers, sizeof(handlers));
    add_asked(&walk, options);
    m->options = options;
    m->watch = m->end_ns ? options->watch : NULL;
    m->own = krait_kernel_events_own(events);
    int rc = krait_kernel_know_calls(m, classes, count);
    return rc ? rc : krait_kernel_events_walk(events, &walk);
}

int krait_kernel_states_new(struct krait_kernel_states **out, struct krait_kernel_events *events,
                            const struct krait_kernel_options *options, struct krait_err *err)
{
    machine *m = calloc(1, sizeof(*m));
    int rc = m ? run(m, events, options, options->watch ? NULL : on_ahead) : -ENOMEM;
    bool none = !rc && krait_kernel_events_end(events) == INT64_MIN;
    if (!rc && !none)
        finish(m, krait_kernel_events_end(events));
    if (rc == -ECANCELED)
        krait_err_set(err, rc, "it was cancelled");
    else if (rc || m->failed)
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    else if (none)
        rc = krait_kernel_no_events(events, options, err);
    if (rc) {
        krait_kernel_states_free(m);
        return rc;
    }
    m->options = NULL;
    m->watch = NULL;
    *out = m;
    return 0;
}

/* Of a recording that goes on: what goes on at the end stays as it is. */
int krait_kernel_states_go_on(struct krait_kernel_states **states, struct krait_kernel_events *events,
                              const struct krait_kernel_options *options, int64_t until_ns)
{
    machine *m = *states ? *states : calloc(1, sizeof(*m));
    int64_t first = m && m->end_ns ? m->origin_ns : krait_kernel_events_first(events);
    struct krait_kernel_options on = *options;
    on.until_ns = until_ns > first ? (uint64_t)(until_ns - first) : 0;
    if (m)
        krait_kernel_forget_now(m);
    int rc = m ? run(m, events, &on, NULL) : -ENOMEM;
    bool none = !rc && !m->end_ns && krait_kernel_events_end(events) == INT64_MIN;
    if (!rc)
        krait_kernel_keep_now(m, until_ns);
    rc = rc ? rc : m->failed ? -ENOMEM : none ? -ENODATA : 0;
    if (rc) {
        krait_kernel_states_free(m);
        *states = NULL;
        return rc;
    }
    m->options = NULL;
    m->watch = NULL;
    krait_kernel_name_processes(m);
    *states = m;
    return 0;
}

enum krait_thread_state krait_kthread_state_now(const struct krait_kernel_states *m,
                                                const struct krait_kthread *t)
{
    return is_blocked(t) ? krait_kernel_told(m, t) : (enum krait_thread_state)t->state;
}

const struct krait_kthread *krait_kernel_states_thread(const struct krait_kernel_states *m, int32_t tid)
{
    const uint64_t *found = krait_map_get(&m->by_tid, (uint32_t)tid);
    return found ? (const struct krait_kthread *)(uintptr_t)*found : NULL;
}
