/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_carried.h"

#include "trace/kernel/kernel_machine.h"

#include <string.h>

typedef struct krait_kernel_states machine;

/* ---- classes ---- */

enum { FIRST_ID = 65000 }; /* tracers of the kernel number their few hundred classes from 0 */

/* In the order in which put_thread and put_cpu write them. */
static const struct {
    const char *name, *fields;
} classes[KRAIT_CARRIED_EVENTS] = {
    [KRAIT_CARRIED_THREAD] = { "krait_thread_state",
                               "int32_t _tid; int32_t _own_tid; int32_t _pid; text_t _thread_name; uint32_t _flags;"
                               " text_t _state_name; text_t _asleep_name; text_t _call_name;"
                               " text_t _state_call_name; int32_t _by_tid; int32_t _ready_cpu; uint32_t _khz;"
                               " int64_t _waking_ago_ns; int64_t _queued_ago_ns; int64_t _call_ago_ns; int64_t _born_ago_ns;"
                               " int64_t _gone_ago_ns;" },
    [KRAIT_CARRIED_CPU] = { "krait_cpu_state",
                            "uint32_t _cpu; int32_t _tid; uint32_t _flags; text_t _state_name; text_t _base_name;"
                            " text_t _irq_cause_name; text_t _soft_cause_name; text_t _irq_device_name;"
                            " text_t _soft_device_name; uint32_t _khz; uint32_t _irqs; uint32_t _softirqs;"
                            " uint32_t _softirq;" },
    [KRAIT_CARRIED_WAITED] = { "krait_waited",
                               "int32_t _tid; text_t _state_name; int32_t _by_tid; text_t _cause_name;"
                               " text_t _device_name; uint32_t _flags;" },
    [KRAIT_CARRIED_END] = { "krait_range_end", "" },
};

uint32_t krait_carried_id(enum krait_carried_event event)
{
    return FIRST_ID + event;
}

void krait_carried_declare(struct krait_buf *out, const char *metadata)
{
    for (int i = 0; i < KRAIT_CARRIED_EVENTS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "name = \"%s\";", classes[i].name);
        if (!strstr(metadata, name))
            krait_buf_fmt(
                out,
                "\nevent {\n    %s\n    id = %d;\n    stream_id = 0;\n    fields := struct { %s };\n};\n",
                name, FIRST_ID + i, classes[i].fields);
    }
}

/* ---- names ---- */

static const char *const thread_states[KRAIT_TS_COUNT] = {
#define X(name, text, title, drop) [KRAIT_TS_##name] = text,
    KRAIT_THREAD_STATES(X)
#undef X
};
static const char *const cpu_states[KRAIT_CS_COUNT] = {
#define X(name, text, title, drop) [KRAIT_CS_##name] = text,
    KRAIT_CPU_STATES(X)
#undef X
};

/* The state of that name; `otherwise` if there is none. */
static uint8_t named(const struct krait_kernel_event *ev, unsigned field, const char *const *names,
                     unsigned count, unsigned otherwise)
{
    size_t n;
    const char *text = krait_kernel_event_text(ev, field, &n);
    n = strnlen(text, n);
    for (unsigned i = 0; i < count; i++) {
        if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0)
            return (uint8_t)i;
    }
    return (uint8_t)otherwise;
}

/* ---- writing ---- */

struct carrying {
    const machine *m;
    krait_carried_put_fn *put;
    void *ctx;
    struct krait_buf fields; /* of the event at hand */
};

static void add_text(struct krait_buf *to, const char *text)
{
    krait_buf_add(to, text, strlen(text) + 1);
}

static void add_name_of(struct krait_buf *to, const struct krait_strtab *names, uint32_t id)
{
    add_text(to, id == KRAIT_NO_ID ? "" : names->texts[id]);
}

static void add_i32(struct krait_buf *to, int64_t number)
{
    int32_t value = (int32_t)number;
    krait_buf_add(to, &value, sizeof(value));
}

static void add_u32(struct krait_buf *to, uint32_t value)
{
    krait_buf_add(to, &value, sizeof(value));
}

/* A recorder measures its clock until the end: how long ago something was stays right, when it was does not. */
#define NEVER INT64_MIN

static void add_ago(struct carrying *c, int64_t ns, int64_t never)
{
    int64_t ago = ns == never ? NEVER : c->m->now - ns;
    krait_buf_add(&c->fields, &ago, sizeof(ago));
}

static int end_event(struct carrying *c, enum krait_carried_event event)
{
    if (c->fields.failed)
        return -ENOMEM;
    c->put(c->ctx, event, &c->fields);
    krait_buf_clear(&c->fields);
    return 0;
}

static bool is_last_of_its_number(const machine *m, const struct krait_kthread *t)
{
    return krait_kernel_states_thread(m, t->tid) == t;
}

/* A thread is found again by its number alone. */
static int32_t number_of(const machine *m, uint32_t by)
{
    const struct krait_kthread *t = krait_kernel_cause(m, by);
    return t && is_last_of_its_number(m, t) ? t->tid : 0;
}

static uint32_t flags_of(const struct krait_kthread *t)
{
    uint32_t flags = 0, bit = 1;
#define X(flag)                  \
    flags |= t->flag ? bit : 0u; \
    bit <<= 1;
    KRAIT_CARRIED_FLAGS(X)
#undef X
    (void)bit;
    return flags;
}

static int put_thread(struct carrying *c, const struct krait_kthread *t)
{
    const machine *m = c->m;
    struct krait_buf *to = &c->fields;
    add_i32(to, t->tid);
    add_i32(to, t->own_tid);
    add_i32(to, t->process == KRAIT_NO_ID ? -1 : m->processes[t->process].pid);
    add_text(to, t->name);
    add_u32(to, flags_of(t));
    add_text(to, thread_states[t->state]);
    add_text(to, thread_states[t->asleep]);
    add_name_of(to, &m->calls, t->call);
    add_name_of(to, &m->calls, t->state_call);
    add_i32(to, number_of(m, t->state_by));
    add_i32(to, t->ready_on == KRAIT_NO_ID ? -1 : (int64_t)t->ready_on);
    add_u32(to, t->state_khz);
    add_ago(c, t->waking_ns, INT64_MIN);
    add_ago(c, t->queued_ns, INT64_MIN);
    add_ago(c, t->call_ns, 0);
    add_ago(c, t->born_ns, 0);
    add_ago(c, t->gone_ns, INT64_MAX);
    return end_event(c, KRAIT_CARRIED_THREAD);
}

static int put_cpu(struct carrying *c, const struct krait_kcpu *cpu)
{
    struct krait_buf *to = &c->fields;
    add_u32(to, cpu->number);
    add_i32(to, cpu->current ? cpu->current->tid : 0);
    add_u32(to, (cpu->known ? KRAIT_CARRIED_KNOWN : 0u) | (cpu->is_ipi ? KRAIT_CARRIED_IPI : 0u) |
                    (c->m->dumping ? KRAIT_CARRIED_DUMPING : 0u));
    add_text(to, cpu_states[cpu->state]);
    add_text(to, cpu_states[cpu->base]);
    add_text(to, thread_states[cpu->irq_cause]);
    add_text(to, thread_states[cpu->soft_cause]);
    add_name_of(to, &c->m->devices, cpu->irqs ? cpu->irq_device : KRAIT_NO_ID);
    add_name_of(to, &c->m->devices, cpu->softirqs ? cpu->soft_device : KRAIT_NO_ID);
    add_u32(to, cpu->khz);
    add_u32(to, cpu->irqs);
    add_u32(to, cpu->softirqs);
    add_u32(to, cpu->softirq);
    return end_event(c, KRAIT_CARRIED_CPU);
}

static bool is_gone(const struct krait_kthread *t)
{
    return t->state == KRAIT_TS_GONE;
}

/* Nothing more happens to a thread that is gone but that it is freed: then it must not seem a new one. */
static bool is_wanted(const machine *m, const struct krait_kthread *t)
{
    return is_last_of_its_number(m, t) && (!is_gone(t) || (!t->freed && !m->own));
}

/* Of those that are gone, who made another one what it is, and the first thread of a process that lives, which has its name. */
static void want_gone(const machine *m, bool *wanted)
{
    for (uint32_t i = 0; i < m->thread_count; i++) {
        const struct krait_kthread *t = m->threads[i], *by = krait_kernel_cause(m, t->state_by);
        if (!wanted[i] || is_gone(t))
            continue;
        const struct krait_kthread *first =
            t->process == KRAIT_NO_ID ? NULL : krait_kernel_states_thread(m, m->processes[t->process].pid);
        if (by && is_last_of_its_number(m, by))
            wanted[by->index] = true;
        if (first && first->process == t->process)
            wanted[first->index] = true;
    }
}

static int put_states(struct carrying *c)
{
    const machine *m = c->m;
    KRAIT_AUTO_FREE bool *wanted = calloc((size_t)m->thread_count + 1, sizeof(*wanted));
    int rc = wanted ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < m->thread_count; i++)
        wanted[i] = is_wanted(m, m->threads[i]);
    if (!rc)
        want_gone(m, wanted);
    for (uint32_t i = 0; !rc && i < m->thread_count; i++)
        rc = wanted[i] ? put_thread(c, m->threads[i]) : 0;
    for (uint32_t i = 0; !rc && i < m->cpu_count; i++)
        rc = m->cpus[i].met ? put_cpu(c, &m->cpus[i]) : 0;
    return rc;
}

int krait_carried_states(const machine *m, krait_carried_put_fn *put, void *ctx)
{
    struct carrying c = { .m = m, .put = put, .ctx = ctx };
    int rc = put_states(&c);
    krait_buf_done(&c.fields);
    return rc;
}

static int by_end(const void *a, const void *b)
{
    const struct krait_kthread *x = *(const struct krait_kthread *const *)a;
    const struct krait_kthread *y = *(const struct krait_kthread *const *)b;
    return (x->ended_ns > y->ended_ns) - (x->ended_ns < y->ended_ns);
}

static int put_wait(struct carrying *c, const struct krait_kthread *t)
{
    struct krait_buf *to = &c->fields;
    add_i32(to, t->tid);
    add_text(to, thread_states[t->state]);
    add_i32(to, number_of(c->m, t->ended_by));
    add_text(to, t->ended_cause < KRAIT_TS_COUNT ? thread_states[t->ended_cause] : "");
    add_name_of(to, &c->m->devices, t->ended_cause < KRAIT_TS_COUNT ? t->ended_device : KRAIT_NO_ID);
    add_u32(to, t->ended_ipi ? KRAIT_CARRIED_IPI : 0);
    return end_event(c, KRAIT_CARRIED_WAITED);
}

/* In the order in which they end: who ends one may have waited itself. */
int krait_carried_waits(const machine *m, krait_carried_put_fn *put, void *ctx)
{
    struct carrying c = { .m = m, .put = put, .ctx = ctx };
    KRAIT_AUTO_FREE const struct krait_kthread **waits = calloc((size_t)m->thread_count + 1, sizeof(*waits));
    uint32_t count = 0;
    int rc = waits ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < m->thread_count; i++) {
        const struct krait_kthread *t = m->threads[i];
        if (krait_thread_blocks((enum krait_thread_state)t->state) && t->ended_ns &&
            is_last_of_its_number(m, t))
            waits[count++] = t;
    }
    if (count)
        qsort(waits, count, sizeof(*waits), by_end);
    for (uint32_t i = 0; !rc && i < count; i++)
        rc = put_wait(&c, waits[i]);
    krait_buf_done(&c.fields);
    return rc;
}

/* ---- reading ---- */

static uint32_t call_in(machine *m, const struct krait_kernel_event *ev, unsigned field)
{
    size_t n;
    const char *call = krait_kernel_event_text(ev, field, &n);
    return krait_kernel_call_named(m, call, strnlen(call, n));
}

static int64_t time_in(const machine *m, const struct krait_kernel_event *ev, unsigned field, int64_t never)
{
    int64_t ago = krait_kernel_event_int(ev, field), ns;
    return ago == NEVER || __builtin_sub_overflow(m->now, ago, &ns) ? never : ns;
}

static void set_flags(struct krait_kthread *t, uint32_t flags)
{
    uint32_t bit = 1;
#define X(flag)                   \
    t->flag = (flags & bit) != 0; \
    bit <<= 1;
    KRAIT_CARRIED_FLAGS(X)
#undef X
    (void)bit;
}

void krait_kernel_on_carried_thread(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = krait_kernel_dumped_thread(m, ev);
    if (!t)
        return;
    int64_t own = krait_kernel_event_int(ev, 1), ready_on = krait_kernel_event_int(ev, 10);
    t->own_tid = own > 0 && own <= INT32_MAX ? (int32_t)own : 0;
    krait_kernel_set_process(m, t, krait_kernel_event_int(ev, 2));
    krait_kernel_name_thread(t, ev, 3);
    t->call = call_in(m, ev, 7);
    krait_kernel_leave_as(
        m, t, (enum krait_thread_state)t->state,
        (enum krait_thread_state)named(ev, 5, thread_states, KRAIT_TS_COUNT, KRAIT_TS_UNKNOWN),
        krait_kernel_by(krait_kernel_thread_of(m, krait_kernel_event_int(ev, 9))));
    set_flags(t, (uint32_t)krait_kernel_event_int(ev, 4)); /* a change of state clears one */
    t->asleep = named(ev, 6, thread_states, KRAIT_TS_COUNT, KRAIT_TS_BLOCKED);
    t->state_call = call_in(m, ev, 8);
    t->ready_on = ready_on < 0 ? KRAIT_NO_ID : (uint32_t)ready_on;
    t->state_khz = (uint32_t)krait_kernel_event_int(ev, 11);
    t->waking_ns = time_in(m, ev, 12, INT64_MIN);
    t->queued_ns = time_in(m, ev, 13, INT64_MIN);
    t->call_ns = time_in(m, ev, 14, 0);
    t->born_ns = time_in(m, ev, 15, 0);
    t->gone_ns = time_in(m, ev, 16, INT64_MAX);
    t->freed = false;
    m->has_dumped |= t->call_dumped;
}

static uint32_t device_in(machine *m, const struct krait_kernel_event *ev, unsigned field)
{
    size_t n;
    const char *device = krait_kernel_event_text(ev, field, &n);
    n = strnlen(device, n);
    uint32_t id = n ? krait_strtab_add(&m->devices, device, n) : KRAIT_NO_ID;
    m->failed |= n && id == KRAIT_NO_ID;
    return id;
}

void krait_kernel_on_carried_cpu(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    int64_t number = krait_kernel_event_int(ev, 0);
    struct krait_kcpu *cpu =
        number >= 0 && number < KRAIT_KERNEL_EVENT_CPUS ? krait_kernel_cpu_at(m, (uint32_t)number) : NULL;
    uint32_t flags = (uint32_t)krait_kernel_event_int(ev, 2);
    if (!cpu)
        return;
    krait_kernel_tick(m, ev);
    krait_kcpu_turn(m, cpu, (enum krait_cpu_state)named(ev, 3, cpu_states, KRAIT_CS_COUNT, KRAIT_CS_UNKNOWN));
    cpu->current = krait_kernel_thread_of(m, krait_kernel_event_int(ev, 1));
    cpu->known = flags & KRAIT_CARRIED_KNOWN;
    cpu->is_ipi = flags & KRAIT_CARRIED_IPI;
    cpu->is_carried = true;
    m->dumping |= (flags & KRAIT_CARRIED_DUMPING) != 0;
    cpu->base = named(ev, 4, cpu_states, KRAIT_CS_COUNT, KRAIT_CS_UNKNOWN);
    cpu->irq_cause = named(ev, 5, thread_states, KRAIT_TS_COUNT, KRAIT_TS_BLOCKED);
    cpu->soft_cause = named(ev, 6, thread_states, KRAIT_TS_COUNT, KRAIT_TS_BLOCKED);
    cpu->irq_device = device_in(m, ev, 7);
    cpu->soft_device = device_in(m, ev, 8);
    cpu->khz = (uint32_t)krait_kernel_event_int(ev, 9);
    cpu->irqs = (uint32_t)krait_kernel_event_int(ev, 10);
    cpu->softirqs = (uint32_t)krait_kernel_event_int(ev, 11);
    cpu->softirq = (uint32_t)krait_kernel_event_int(ev, 12);
    krait_kernel_log_run(m, cpu);
}

static struct krait_kthread *known_thread(const machine *m, int64_t tid)
{
    const struct krait_kthread *found =
        tid > 0 && tid <= INT32_MAX ? krait_kernel_states_thread(m, (int32_t)tid) : NULL;
    return found ? m->threads[found->index] : NULL;
}

/* A thread goes on behind the range: what it did up to there is told like the rest. */
static void close_state(machine *m, struct krait_kthread *t)
{
    m->here = NULL;
    if (t && krait_thread_is_ready((enum krait_thread_state)t->state))
        krait_kernel_leave_as(m, t, (enum krait_thread_state)t->state, (enum krait_thread_state)t->state,
                              t->state_by);
}

/* Behind the range. A watcher sees it as the end of the wait. */
void krait_kernel_on_carried_wait(void *ctx, const struct krait_kernel_event *ev)
{
    machine *m = ctx;
    struct krait_kthread *t = known_thread(m, krait_kernel_event_int(ev, 0));
    struct krait_kthread *waker = known_thread(m, krait_kernel_event_int(ev, 2));
    uint32_t by = krait_kernel_by(waker);
    enum krait_thread_state as =
        (enum krait_thread_state)named(ev, 1, thread_states, KRAIT_TS_COUNT, KRAIT_TS_BLOCKED);
    struct krait_kcpu in_interrupt = { .irqs = 1,
                                       .irq_cause =
                                           named(ev, 3, thread_states, KRAIT_TS_COUNT, KRAIT_TS_COUNT),
                                       .irq_device = device_in(m, ev, 4),
                                       .is_ipi = krait_kernel_event_int(ev, 5) & KRAIT_CARRIED_IPI };
    if (!t || t->state != KRAIT_TS_BLOCKED)
        return;
    krait_kernel_tick(m, ev);
    if (!m->ahead)
        close_state(m, waker);
    m->here = in_interrupt.irq_cause < KRAIT_TS_COUNT ? &in_interrupt : NULL;
    if (m->ahead)
        krait_kernel_ends_wait(m, t, as, by);
    else
        krait_kernel_leave_as(m, t, as, KRAIT_TS_WOKEN, krait_kernel_waker(m, by));
    m->here = NULL;
}
