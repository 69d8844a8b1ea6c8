/* SPDX-License-Identifier: Apache-2.0
 *
 * --max-overhead: keeps the time that recording takes below a share of the time that passes.
 *
 * What a call's record costs is known, so the calls say what was spent. Every few hundred calls the governor looks:
 * what the budget allows for the time that passed is added to its credit, what recording took is subtracted. Where
 * the credit is used up, and recording costs more than the budget still, it drops functions: those first whose calls
 * are the shortest, since a record tells the less for what it costs the less time it is of; no more than needed; and
 * none whose calls last longer than 50 times what an event costs (choice.h). How long calls last is read in the ring
 * (durations.h). A drop forgives what was spent before: its cause is gone. It is written as code:omit.
 *
 * From 3.12 on a dropped function costs nothing, and shows nothing. So now and then all hooks are put back
 * for a round of probes: a few calls of each are timed, and not recorded. Where they have become long the
 * function is recorded again, under a new id, and each thread's next event says its stack.
 */
#include "python/choice.h"
#include "python/codes.h"
#include "python/compat/running.h"
#include "python/optional.h"
#include "python/tasks.h"
#include "python/worker.h"

#include <signal.h>

enum {
    FIRST_WINDOW = 256, /* calls from look to look */
    OVER_WINDOW = 1024, /* at most, while more is spent than allowed */
    MAX_WINDOW = 65536,
    PROBE_GAP_US = 100000,                /* from one round of probes to the next, at first */
    PROBE_MAX_GAP_US = 32 * PROBE_GAP_US, /* in the end, unless rounds take too much of the budget then */
    PROBE_CODE_US = 4, /* what a round takes for each function: the interpreter instruments all code anew */
    PROBE_PARTS = 10,  /* the part of the budget that rounds may take */
};

/* Two clock readings and two stores, in a ring of its own; a mean. */
static uint64_t measure_once(struct krait_agent *agent)
{
    enum { ROUNDS = 64 };
    static uint8_t scratch[16 * ROUNDS + 64];
    struct krait_ring ring = { .cur = scratch, .limit = scratch + sizeof(scratch) };
    uint64_t begin = krait_writer_now(&agent->writer);
    ring.window = begin >> KRAIT_CTF_TS_BITS;
    for (int i = 0; i < ROUNDS; i++) {
        krait_ring_put_code(&ring, krait_writer_now(&agent->writer), KRAIT_EVENT_python_call, 1);
        krait_ring_put(&ring, krait_writer_now(&agent->writer), KRAIT_EVENT_python_return);
    }
    return (krait_writer_now(&agent->writer) - begin) / ROUNDS;
}

/* Our part: the shortest of some times, for another program may get the CPU in between. What is thought long
 * hangs on it. */
static uint64_t measure_ticks(struct krait_agent *agent)
{
    enum { TIMES = 16 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TIMES; i++)
        least = KRAIT_MIN(least, measure_once(agent));
    return least;
}

/* Functions that another process, which this one was forked from, had dropped are recorded again. */
static void take_all_back(struct krait_interp *in)
{
    bool any = false;
    for (size_t i = 0; i < 1ull << (64 - in->code_shift); i++) {
        struct krait_code *slot = &in->codes[i];
        if (!slot->key || !(slot->flags & KRAIT_CODE_HOT))
            continue;
        slot->flags &= ~(uint32_t)(KRAIT_CODE_OMIT | KRAIT_CODE_HOT);
        slot->was_id = 0;
        any = true;
    }
    if (any && krait_compat.version.monitoring)
        krait_monitoring_restart();
}

void krait_governor_init(struct krait_interp *in)
{
    struct krait_agent *agent = in->agent;
    const struct krait_control *control = agent->writer.shm.control;
    struct krait_governor *g = &in->governor;
    krait_durations_free(g->durations);
    /* After fork the events that krait asks for are those of before. */
    *g = (struct krait_governor){ .left = INT64_MAX, .no_raise = g->no_raise };
    if (!control->max_overhead_ppm && !(control->flags & KRAIT_RECORD_COST))
        return;
    agent->hook_ticks = krait_compat.version.hook_ns * control->clock_freq / KRAIT_NS_PER_S;
    agent->event_ticks = measure_ticks(agent) + agent->hook_ticks;
    if (agent->writer.proc)
        atomic_store(&agent->writer.proc->event_ticks,
                     (uint32_t)KRAIT_MIN(agent->event_ticks, (uint64_t)UINT32_MAX));
    if (!control->max_overhead_ppm)
        return;
    g->durations = krait_durations_new(agent->event_ticks);
    if (!g->durations) /* nothing is dropped */
        return;
    take_all_back(in);
    g->look_ticks = krait_writer_now(&agent->writer);
    g->budget = krait_budget_of(control->max_overhead_ppm, control->clock_freq);
    g->left = g->window = FIRST_WINDOW;
}

void krait_governor_know(struct krait_interp *in, uint32_t id, const void *key, uint32_t base)
{
    struct krait_durations *d = in->governor.durations;
    if (!d)
        return;
    const struct krait_code *slot = krait_code_peek(in, key);
    krait_durations_know(d, id, key, base);
    if (slot && slot->was_id && id == base) /* it comes back */
        krait_durations_inherit(d, id, slot->was_id);
}

void krait_governor_read_closing(struct krait_interp *in, size_t bytes)
{
    const struct krait_ring *ring = krait_this_ring;
    struct krait_governor *g = &in->governor;
    if (g->durations && !g->looking && ring != &krait_no_ring && !krait_ring_fits(ring, bytes))
        krait_durations_read(g->durations, &in->agent->writer, ring, true);
}

/* ---- dropping ---- */

static void say_omitted(struct krait_interp *in, uint32_t id, uint64_t calls)
{
    uint8_t payload[KRAIT_BYTES_code_omit];
    size_t n = krait_put_code_omit(
        payload,
        &(struct krait_payload_code_omit){ .id = id, .reason = KRAIT_omit_reason_governor, .calls = calls });
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_code_omit, payload, n);
}

/* With --call-sites: the ids of its calls from single lines. */
static void say_sites_omitted(struct krait_interp *in, uint32_t base)
{
    const struct krait_durations *d = in->governor.durations;
    for (uint32_t id = 1; id < d->id_cap; id++) {
        if (d->by_id[id].base == base && id != base)
            say_omitted(in, id, 0);
    }
}

static void drop(struct krait_interp *in, struct krait_code *slot)
{
    struct krait_governor *g = &in->governor;
    struct krait_timed *timed = &g->durations->by_id[slot->id];
    say_omitted(in, slot->id, slot->calls);
    if (in->agent->call_sites)
        say_sites_omitted(in, slot->id);
    krait_durations_forget(g->durations, slot->id);
    krait_choice_begin_probes(timed);
    slot->flags |= KRAIT_CODE_OMIT | KRAIT_CODE_HOT;
    slot->was_id = slot->id;
    slot->id = 0;
    slot->round = g->round;
    g->drops++;
}

/* Before 3.12 the hook is called for dropped functions too: where that is most of what a record costs, dropping
 * saves too little for what it hides. */
static bool dropping_saves(const struct krait_interp *in)
{
    return krait_compat.version.monitoring || 2 * in->agent->hook_ticks <= in->agent->event_ticks;
}

/* The function's slot while it is recorded under that id. */
static struct krait_code *recorded_slot(struct krait_interp *in, uint32_t id, const struct krait_timed *timed)
{
    struct krait_code *slot = timed->key ? krait_code_peek(in, timed->key) : NULL;
    return slot && slot->id == id ? slot : NULL;
}

static size_t find_candidates(struct krait_interp *in, struct krait_candidate *candidates)
{
    const struct krait_durations *d = in->governor.durations;
    size_t n = 0;
    for (uint32_t i = 0; i < d->seen_count; i++) {
        uint32_t id = d->seen[i];
        const struct krait_timed *timed = &d->by_id[id];
        if (krait_choice_is_short(timed, d->event_ticks) && recorded_slot(in, id, timed))
            candidates[n++] = krait_choice_candidate(timed, id, d->event_ticks);
    }
    return n;
}

/* More is spent than allowed: drops what is worth least. Returns whether there was any. */
static bool cut(struct krait_interp *in)
{
    struct krait_governor *g = &in->governor;
    const struct krait_durations *d = g->durations;
    KRAIT_AUTO_FREE struct krait_candidate *candidates =
        calloc((size_t)d->seen_count + 1, sizeof(*candidates));
    if (!candidates)
        return false;
    krait_durations_count_open(g->durations);
    uint64_t excess = krait_choice_excess(d->begins, g->budget.period_spent, krait_budget_aim(&g->budget));
    size_t n = krait_choice_pick(candidates, find_candidates(in, candidates), excess);
    for (size_t i = 0; i < n; i++) {
        struct krait_code *slot = recorded_slot(in, candidates[i].id, &d->by_id[candidates[i].id]);
        if (slot)
            drop(in, slot);
    }
    return n > 0;
}

/* ---- probes ---- */

static struct krait_governor_probe *find_probe(struct krait_governor *g, const void *key)
{
    for (uint32_t i = g->probe_count; i-- > 0;) {
        if (g->probes[i].key == key && g->probes[i].ring == krait_this_ring)
            return &g->probes[i];
    }
    return NULL;
}

void krait_governor_probe_begin(struct krait_interp *in, const struct krait_code *slot)
{
    struct krait_governor *g = &in->governor;
    struct krait_governor_probe *probe = find_probe(g, slot->key);
    if (probe) {
        probe->calls++;
        return;
    }
    if (g->probe_count == KRAIT_ARRAY_LEN(g->probes))
        g->probe_count = 0; /* of calls whose end was not seen */
    g->probes[g->probe_count++] = (struct krait_governor_probe){ slot->key, krait_this_ring, 1, 1,
                                                                 krait_writer_now(&in->agent->writer) };
}

/* It is recorded from now on. Where it is live it has not begun in the record: each thread says its stack first. */
static void take_back(struct krait_interp *in, struct krait_code *slot)
{
    slot->flags &= ~(uint32_t)(KRAIT_CODE_OMIT | KRAIT_CODE_HOT);
    slot->id = 0;
    slot->calls = 0;
    in->governor.returns++;
    krait_threads_resync();
}

void krait_governor_probe_end(struct krait_interp *in, struct krait_code *slot)
{
    struct krait_governor *g = &in->governor;
    struct krait_governor_probe *probe = find_probe(g, slot->key);
    if (!probe || ++probe->ends < probe->calls || !g->durations || slot->was_id >= g->durations->id_cap)
        return;
    struct krait_timed *timed = &g->durations->by_id[slot->was_id];
    uint64_t ticks = krait_writer_now(&in->agent->writer) - probe->t;
    uint32_t calls = probe->calls;
    *probe = g->probes[--g->probe_count];
    if (krait_choice_add_probe(timed, calls, ticks, in->agent->event_ticks))
        take_back(in, slot);
    else if (krait_choice_round_is_over(timed))
        slot->round = g->round;
}

/* From 3.12 on the hooks of dropped functions have to be put back for it. */
static void begin_round(struct krait_interp *in, uint64_t now)
{
    struct krait_governor *g = &in->governor;
    uint64_t codes = g->durations->known;
    uint64_t part = KRAIT_MAX(g->budget.ppm / PROBE_PARTS, (uint64_t)1);
    uint64_t gap = KRAIT_MAX(krait_budget_us(&g->budget, codes * PROBE_CODE_US) / part * 1000000,
                             krait_budget_us(&g->budget, PROBE_GAP_US));
    bool first = !g->gap_ticks; /* the first drop: nothing to probe yet */
    g->gap_ticks =
        KRAIT_MAX(gap, KRAIT_MIN(g->gap_ticks * 3 / 2, krait_budget_us(&g->budget, PROBE_MAX_GAP_US)));
    g->round_ticks = now + g->gap_ticks;
    g->probe_count = 0;
    if (first)
        return;
    g->round++;
    if (krait_compat.version.monitoring)
        krait_monitoring_restart();
}

/* ---- pauses ----
 *
 * Before 3.12 the hook cannot be taken out of single functions, and costs most of what recording costs even for
 * those that are left out. From 3.12 on there are costs that leaving out functions does not save: exceptions,
 * switches of greenlets, and the names of thousands of functions. So all hooks are taken off until the budget allows
 * for more. What is recorded between two pauses is complete; the pause is recorded as a call of a function of its own.
 * A thread ends it: pause.c. */

/* What it was called from goes on through it. */
static void take_hooks_off(struct krait_interp *in, enum krait_begin_what top)
{
    struct krait_governor *g = &in->governor;
    if (!g->pause_id)
        g->pause_id =
            krait_code_define_name(in, KRAIT_code_kind_python, KRAIT_PAUSE_MODULE, KRAIT_PAUSE_NAME);
    if (krait_this_ring != &krait_no_ring)
        krait_thread_say_stack(in, krait_writer_now(&in->agent->writer), top);
    g->pauses++;
    g->pause_ticks = g->resume_ticks = krait_writer_now(&in->agent->writer);
    krait_thread_say_pause(in, g->pause_ticks);
    g->paused = true;
    if (krait_compat.version.monitoring)
        krait_monitoring_pause(in);
    else
        krait_profile_remove(in);
    krait_threads_break();
}

void krait_governor_resume(struct krait_interp *in)
{
    if (!in->governor.paused)
        return;
    in->governor.paused = false;
    in->governor.resume_ticks = krait_writer_now(&in->agent->writer);
    if (in->agent->tasks && !in->sees_tasks && krait_tasks_are_imported())
        krait_tasks_see(in); /* a stack may have coroutines of the program before functions of asyncio */
    if (krait_compat.version.monitoring)
        krait_monitoring_resume(in);
    else
        krait_profile_resume(in);
}

void krait_governor_audit(const char *event, PyObject *args)
{
    struct krait_interp *in = *event == 'o' || *event == 'i' ? krait_agent_interp() : NULL;
    if (!in || !krait_agent_records(in))
        return;
    bool forks = krait_compat.version.monitoring && strncmp(event, "os.fork", strlen("os.fork")) == 0;
    if (in->governor.paused && (forks || krait_optional_is_imported(in, event, args)))
        krait_governor_resume(in);
    if (forks)
        krait_pause_end_thread(in);
}

/* From 3.12 on the interpreter instruments all code anew. */
static uint64_t pause_us(const struct krait_interp *in)
{
    enum { LEAST_US = 100000 };
    const struct krait_governor *g = &in->governor;
    uint64_t anew = krait_compat.version.monitoring ? g->durations->known * PROBE_CODE_US : 0;
    return LEAST_US + krait_budget_pause_us(&g->budget) + anew * 1000000 / g->budget.ppm;
}

/* From 3.12 on only where dropping comes nowhere near the budget. Not where the child of a fork would stay without
 * hooks, and in other interpreters than the first, which the thread that ends the pause is of. Not while a module is
 * being imported that has to be patched: it would stay as it is, also after the pause. */
static bool may_pause(const struct krait_interp *in)
{
    if (krait_optional_awaits(in))
        return false;
    return !krait_compat.version.monitoring ||
           (in->id == 0 && krait_audit_is_told() && krait_budget_needs_pause(&in->governor.budget));
}

static void pause_recording(struct krait_interp *in, enum krait_begin_what top)
{
    krait_durations_pause(in->governor.durations);
    if (krait_pause_start_thread(in, pause_us(in) * KRAIT_NS_PER_US) == 0)
        take_hooks_off(in, top);
}

/* ---- the look ---- */

static void next_period(struct krait_governor *g)
{
    g->raises = 0;
    krait_durations_next_period(g->durations);
}

/* What a call of a dropped function takes: the hooks, and what was measured of the begin twice, because the end looks
 * the function up too. Of what was measured the clock is a part. */
static uint64_t idle_ticks(const struct krait_interp *in)
{
    const struct krait_governor *g = &in->governor;
    const struct krait_agent *agent = in->agent;
    uint64_t took = g->idle_samples ? g->idle_sampled_ticks / g->idle_samples : 0;
    uint64_t clock = (agent->event_ticks - agent->hook_ticks) / 2;
    return agent->hook_ticks + (took > clock ? 2 * (took - clock) : 0);
}

/* Old samples count less. */
static void age_samples(struct krait_governor *g)
{
    enum { OLD = 4096 };
    if (g->idle_samples < OLD)
        return;
    g->idle_samples /= 2;
    g->idle_sampled_ticks /= 2;
}

void krait_governor_count_switch(struct krait_interp *in, uint64_t ticks)
{
    enum {
        TRACE_NS = 145, /* greenlet's part: it makes two tuples and calls a function (docs/benchmarks.md) */
        MOST = 32,      /* times what an event takes; longer ones were interrupted */
    };
    uint64_t freq = in->agent->writer.shm.control->clock_freq;
    in->governor.switch_ticks +=
        KRAIT_MIN(ticks, MOST * in->agent->event_ticks) + TRACE_NS * freq / KRAIT_NS_PER_S;
    struct krait_kept kept = krait_keep();
    krait_governor_count_idle(in);
    krait_restore(&kept);
}

/* What CPython and krait take for the type of an exception. Before 3.12: CPython makes a tuple and calls a trace function. */
static uint64_t raise_ticks(const struct krait_interp *in)
{
    enum { ARRIVAL_NS = 150 };
    uint64_t freq = in->agent->writer.shm.control->clock_freq;
    return krait_compat.version.monitoring ? in->agent->hook_ticks : ARRIVAL_NS * freq / KRAIT_NS_PER_S;
}

void krait_governor_count_raise(struct krait_interp *in)
{
    in->governor.raises++;
    if (in->governor.window)
        in->governor.said_ticks += raise_ticks(in);
}

/* Counts what was spent since the last look, and what was allowed. */
static void settle(struct krait_interp *in, uint64_t now)
{
    struct krait_governor *g = &in->governor;
    uint64_t hooks = g->window - (uint64_t)KRAIT_MAX(g->left, (int64_t)0);
    uint64_t events = hooks > g->idle ? hooks - g->idle : 0;
    uint64_t stolen = g->durations->stolen, passed = now - g->look_ticks;
    /* Stolen most likely from what took long. */
    uint64_t looked = g->looked_ticks - KRAIT_MIN(g->looked_ticks, stolen);
    uint64_t said = g->said_ticks - KRAIT_MIN(g->said_ticks, stolen);
    uint64_t named = g->named_ticks - KRAIT_MIN(g->named_ticks, stolen);
    passed -= KRAIT_MIN(passed, stolen); /* the program did nothing then */
    struct krait_spent spent = {
        .calls = events * in->agent->event_ticks + looked,
        .fixed = g->idle * idle_ticks(in) + said + g->switch_ticks,
        .named = named,
    };
    g->durations->stolen = 0;
    age_samples(g);
    krait_budget_settle(&g->budget, passed, spent);
    g->idle = 0;
    g->said_ticks = g->named_ticks = g->switch_ticks = 0;
    g->look_ticks = now;
}

/* Whether exceptions take a large part of the budget: functions that are dropped have their hooks too. */
static bool raises_cost(const struct krait_interp *in)
{
    const struct krait_governor *g = &in->governor;
    return !g->no_raise && (int64_t)(g->raises * raise_ticks(in) * 4) >
                               krait_budget_share(&g->budget, g->budget.period_ticks, 100);
}

/* The credit is used up. */
static void spend_less(struct krait_interp *in, enum krait_begin_what top)
{
    struct krait_governor *g = &in->governor;
    g->window = KRAIT_MIN(g->window * 2, (uint64_t)OVER_WINDOW);
    if (!krait_budget_is_exceeded(&g->budget))
        return;
    if (raises_cost(in) && krait_compat.version.monitoring)
        krait_monitoring_drop_raise(in);
    else if (raises_cost(in))
        g->no_raise = true;
    if (dropping_saves(in) && cut(in)) {
        krait_budget_forgive(&g->budget);
        g->window = FIRST_WINDOW;
        next_period(g);
    } else if (may_pause(in)) {
        pause_recording(in, top);
    }
}

static void look(struct krait_interp *in, uint64_t now, enum krait_begin_what top)
{
    struct krait_governor *g = &in->governor;
    if (krait_this_ring != &krait_no_ring)
        krait_durations_read(g->durations, &in->agent->writer, krait_this_ring, false);
    settle(in, now);
    if (g->budget.credit < 0)
        spend_less(in, top);
    else
        g->window = KRAIT_MIN(g->window * 2, (uint64_t)MAX_WINDOW);
    if (krait_budget_next_period(&g->budget))
        next_period(g);
    g->left = (int64_t)g->window;
    if (g->drops && now >= g->round_ticks)
        begin_round(in, now);
    g->looked_ticks = krait_writer_now(&in->agent->writer) - now;
}

void krait_governor_look(struct krait_interp *in, enum krait_begin_what top)
{
    struct krait_governor *g = &in->governor;
    if (!g->window) {
        g->left = INT64_MAX;
        return;
    }
    if (g->looking) /* in another thread, which gave the GIL up */
        return;
    int saved = errno;
    g->looking = true;
    look(in, krait_writer_now(&in->agent->writer), top);
    g->looking = false;
    errno = saved;
}
