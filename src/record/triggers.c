/* SPDX-License-Identifier: Apache-2.0
 *
 * Each ring has the calls that have begun since it was first seen, innermost last. Those of functions that a trigger names
 * have a mask. A stack that is stated anew, or another greenlet's, forgets them. Functions that the governor drops have
 * ended, by the time of their code:omit.
 */
#include "record/triggers.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/fmt.h"
#include "base/json.h"
#include "base/map.h"
#include "event/payload.h"
#include "record/collector_inside.h"
#include "record/triggers_read.h"

#include <fnmatch.h>
#include <string.h>

#define LOOK_NS (KRAIT_NS_PER_S / 2)  /* at what lasts still, and at memory */
#define REST_NS (10 * KRAIT_NS_PER_S) /* of a trigger that has fired; --last if that is longer */

enum {
    SNAPSHOTS_MAX = 20,
    SPANS_MAX = 1024,    /* followed at a time, in a process; and messages, in a ring */
    CALLS_MAX = 1 << 20, /* in a ring */
};

struct open {
    uint64_t id; /* of a call: its code; of a message: its task, or 0, and its trigger */
    uint64_t t;
    uint64_t mask; /* of triggers that have not fired for it */
    bool is_c;
};

struct opens {
    struct open *items;
    size_t count, cap;
};

struct watched_ring {
    struct opens calls;
    struct opens messages;   /* first ones, of KRAIT_ON_BETWEEN */
    uint64_t over;           /* calls inside of CALLS_MAX others */
    size_t omitted;          /* how many of the process's omits were applied */
    uint64_t wait_t, step_t; /* since when it waits for the GIL, and is in a task's step; 0: it is not */
    uint64_t seen_t;         /* of the newest event that was seen */
    uint32_t step_task;
    bool step_fired;
};

struct watched_proc {
    struct krait_map masks; /* by code id */
    struct krait_map hubs;  /* ids of tasks that wait for all others */
    struct krait_map types; /* by code id: the names, in `names`, of exceptions that have a mask */
    struct krait_arena names;
    struct opens spans;
    struct krait_omits omits;
    uint64_t ends;   /* triggers that its end fires */
    uint64_t seen_t; /* until when all its events were seen, at this look */
};

struct krait_triggers {
    struct krait_trigger_on items[KRAIT_TRIGGERS_MAX];
    size_t count;
    uint64_t of_kind[KRAIT_TRIGGER_KINDS]; /* masks */
    struct watched_ring *rings;
    uint32_t ring_count;
    struct watched_proc procs[KRAIT_PROCS_MAX];
    uint64_t looked_ns;
    uint64_t due;                      /* triggers that have fired since the last snapshot */
    char why[KRAIT_TRIGGERS_MAX][128]; /* of those: what happened */
    uint32_t snapshots;
    bool has_warned; /* of a process that does not tell all exceptions' types */
};

int krait_triggers_new(struct krait_triggers **out, const char *const *texts, size_t count,
                       struct krait_err *err)
{
    if (count > KRAIT_TRIGGERS_MAX)
        return krait_err_set(err, -EINVAL, "--snapshot-on: %d at most", KRAIT_TRIGGERS_MAX);
    struct krait_triggers *made = calloc(1, sizeof(*made));
    int rc = made ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < count && !rc; i++) {
        made->count++;
        rc = krait_trigger_parse(&made->items[i], texts[i], err);
        made->of_kind[made->items[i].kind] |= 1ull << i;
    }
    if (rc)
        krait_triggers_free(made);
    else
        *out = made;
    return rc;
}

void krait_triggers_free(struct krait_triggers *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->count; i++) {
        krait_trigger_done(&all->items[i]);
    }
    for (uint32_t r = 0; r < all->ring_count; r++) {
        free(all->rings[r].calls.items);
        free(all->rings[r].messages.items);
    }
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        free(all->procs[i].spans.items);
        krait_omits_done(&all->procs[i].omits);
        krait_map_done(&all->procs[i].masks);
        krait_map_done(&all->procs[i].hubs);
        krait_map_done(&all->procs[i].types);
        krait_arena_done(&all->procs[i].names);
    }
    free(all->rings);
    free(all);
}

uint32_t krait_triggers_need(const struct krait_triggers *all)
{
    uint32_t needs = 0;
    for (size_t i = 0; i < KRAIT_TRIGGER_KINDS; i++)
        needs |= all->of_kind[i] ? krait_trigger_kinds[i].needs : 0;
    return needs;
}

/* ---- firing ---- */

static uint64_t rest_ns(const struct krait_collector *c)
{
    return KRAIT_MAX(REST_NS, c->last_ns);
}

/* All triggers that fire in a round have one snapshot. Each is told with what fired it first. */
static void fire(struct krait_collector *c, size_t i, const char *what, uint64_t ns)
{
    struct krait_triggers *all = c->triggers;
    struct krait_trigger_on *t = &all->items[i];
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    char took[KRAIT_FMT_SIZE];
    if ((t->fired_ns && now - t->fired_ns < rest_ns(c)) || all->snapshots >= SNAPSHOTS_MAX)
        return;
    t->fired_ns = now;
    all->due |= 1ull << i;
    snprintf(all->why[i], sizeof(all->why[i]), "%s%s%s", what, ns ? " " : "",
             ns ? krait_fmt_ns(took, ns) : "");
}

static uint64_t ns_of(const struct krait_collector *c, uint64_t ticks)
{
    return (uint64_t)((double)ticks * 1e9 / (double)c->clock.freq);
}

/* All triggers of `mask` that `ticks` is more than. Returns the others. */
static uint64_t fire_longer(struct krait_collector *c, uint64_t mask, uint64_t ticks, const char *what)
{
    struct krait_triggers *all = c->triggers;
    uint64_t left = mask;
    for (uint64_t rest = mask; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        if (ticks <= all->items[i].ticks)
            continue;
        fire(c, i, what, ns_of(c, ticks));
        left &= ~(1ull << i);
    }
    return left;
}

/* ---- what is open ---- */

static bool open_add(struct opens *opens, size_t most, struct open item)
{
    if (opens->count >= most || !KRAIT_GROW(opens->items, opens->cap, opens->count + 1))
        return false;
    opens->items[opens->count++] = item;
    return true;
}

static uint64_t mask_of(const struct watched_proc *proc, uint32_t code)
{
    const uint64_t *mask = proc->masks.len ? krait_map_get(&proc->masks, code) : NULL;
    return mask ? *mask : 0;
}

static void call_begins(struct krait_collector *c, struct watched_ring *ring, const struct watched_proc *proc,
                        uint64_t t, uint32_t code, bool is_c)
{
    uint64_t mask = mask_of(proc, code) & c->triggers->of_kind[KRAIT_ON_CALL];
    ring->over += ring->over || !open_add(&ring->calls, CALLS_MAX, (struct open){ code, t, mask, is_c });
}

static bool top_is_c(const struct opens *calls)
{
    return calls->count && calls->items[calls->count - 1].is_c;
}

static void top_ends(struct krait_collector *c, struct opens *calls, uint64_t t)
{
    const struct open *top = &calls->items[--calls->count];
    if (top->mask)
        fire_longer(c, top->mask, t - top->t, "a call took");
}

/* C calls that were not ended go with the Python call that they are in. */
static void python_ends(struct krait_collector *c, struct watched_ring *ring, uint64_t t)
{
    if (ring->over) {
        ring->over--;
        return;
    }
    while (top_is_c(&ring->calls))
        top_ends(c, &ring->calls, t);
    if (ring->calls.count)
        top_ends(c, &ring->calls, t);
}

static void c_ends(struct krait_collector *c, struct watched_ring *ring, uint64_t t)
{
    if (ring->over)
        ring->over--;
    else if (top_is_c(&ring->calls))
        top_ends(c, &ring->calls, t);
}

static void forget_calls(struct watched_ring *ring)
{
    ring->calls.count = 0;
    ring->over = 0;
}

static bool is_gone(const struct watched_proc *proc, const struct open *call, uint64_t t, bool is_caller_gone)
{
    return krait_omits_end(&proc->omits, (uint32_t)call->id, call->is_c, is_caller_gone, t);
}

/* Returns when the next ones are left out. */
static KRAIT_COLD uint64_t apply_omits(struct watched_ring *ring, const struct watched_proc *proc, uint64_t t)
{
    struct opens *calls = &ring->calls;
    size_t kept = 0;
    bool gone = false;
    for (size_t i = 0; i < calls->count; i++) {
        gone = is_gone(proc, &calls->items[i], t, gone);
        if (!gone)
            calls->items[kept++] = calls->items[i];
    }
    calls->count = kept;
    return krait_omits_pass(&proc->omits, &ring->omitted, t);
}

static void span_ends(struct krait_collector *c, struct opens *spans, uint64_t id, uint64_t t)
{
    for (size_t i = 0; i < spans->count; i++) {
        if (spans->items[i].id != id)
            continue;
        fire_longer(c, spans->items[i].mask, t - spans->items[i].t, "a span took");
        spans->items[i] = spans->items[--spans->count];
        return;
    }
}

static void wait_ends(struct krait_collector *c, uint64_t *since, uint64_t t, enum krait_trigger_kind kind,
                      const char *what)
{
    if (*since)
        fire_longer(c, c->triggers->of_kind[kind], t - *since, what);
    *since = 0;
}

/* A step may be stated again while it lasts. */
static void step_begins(struct watched_ring *ring, uint64_t t, struct krait_cursor payload)
{
    struct krait_payload_task_run run;
    if (!krait_read_task_run(&payload, &run) || (ring->step_t && ring->step_task == run.task))
        return;
    ring->step_t = t;
    ring->step_task = run.task;
    ring->step_fired = false;
}

/* A hub's step lasts as long as there is nothing to do. */
static bool is_in_hub(const struct watched_ring *ring, const struct watched_proc *proc)
{
    return proc->hubs.len && krait_map_get(&proc->hubs, ring->step_task);
}

static void step_ends(struct krait_collector *c, struct watched_ring *ring, const struct watched_proc *proc,
                      uint64_t t)
{
    if (is_in_hub(ring, proc))
        ring->step_t = 0;
    wait_ends(c, &ring->step_t, t, KRAIT_ON_LOOP, "an event loop stood still for");
}

/* ---- events ---- */

/* As much of a text as a message has room for, with nothing that a terminal obeys. */
static const char *brief(struct krait_buf *to, const char *text)
{
    enum { MOST = 60 };
    KRAIT_AUTO_BUF first = { 0 };
    size_t n = strlen(text), whole = krait_utf8_whole(text, n, MOST);
    krait_buf_add(&first, text, whole);
    krait_fmt_safe(to, first.data ? first.data : "");
    krait_buf_str(to, whole < n ? "..." : "");
    return to->data ? to->data : "";
}

static void see_raised(struct krait_collector *c, const struct watched_proc *proc, uint32_t code)
{
    uint64_t fires = mask_of(proc, code) & c->triggers->of_kind[KRAIT_ON_EXCEPTION];
    const uint64_t *type = fires ? krait_map_get(&proc->types, code) : NULL;
    KRAIT_AUTO_BUF what = { 0 };
    if (!fires)
        return;
    krait_buf_fmt(&what, "%s left a function",
                  type ? (const char *)(uintptr_t)*type : "an exception"); /* without memory for its name */
    for (; fires; fires &= fires - 1)
        fire(c, (size_t)__builtin_ctzll(fires), what.data ? what.data : "", 0);
}

static void see_log(struct krait_collector *c, struct krait_cursor payload)
{
    struct krait_payload_log_record record;
    if (!c->triggers->of_kind[KRAIT_ON_LOG] || !krait_read_log_record(&payload, &record))
        return;
    KRAIT_AUTO_BUF what = { 0 };
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&what, "a log record came: %s", brief(&text, record.message));
    for (uint64_t rest = c->triggers->of_kind[KRAIT_ON_LOG]; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        if ((int64_t)record.level >= (int64_t)c->triggers->items[i].limit)
            fire(c, i, what.data ? what.data : "", 0);
    }
}

/* The messages of a thread, or where tasks run in it, of each task. The newest first one counts. */
static void see_message(struct krait_collector *c, struct watched_ring *ring, uint64_t t, const char *text)
{
    struct opens *firsts = &ring->messages;
    const struct krait_triggers *all = c->triggers;
    for (uint64_t rest = all->of_kind[KRAIT_ON_BETWEEN]; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest), k = 0;
        uint64_t id = (ring->step_t ? (uint64_t)ring->step_task << 8 : 0) | i;
        bool begins = fnmatch(all->items[i].glob, text, 0) == 0;
        if (!begins && fnmatch(all->items[i].second, text, 0) != 0)
            continue;
        while (k < firsts->count && firsts->items[k].id != id)
            k++;
        if (k < firsts->count) {
            if (fnmatch(all->items[i].second, text, 0) == 0)
                fire_longer(c, firsts->items[k].mask, t - firsts->items[k].t,
                            "the second message came after");
            firsts->items[k] = firsts->items[--firsts->count];
        }
        if (begins && !open_add(firsts, SPANS_MAX, (struct open){ id, t, 1ull << i, false }))
            firsts->count = 0;
    }
}

static void see_text(struct krait_collector *c, struct watched_ring *ring,
                     const struct krait_event_head *head, struct krait_cursor payload)
{
    struct krait_payload_log_record record;
    struct krait_payload_warning_shown warning;
    struct krait_payload_user_mark mark;
    if (head->id == KRAIT_EVENT_log_record && krait_read_log_record(&payload, &record))
        see_message(c, ring, head->t, record.message);
    else if (head->id == KRAIT_EVENT_warning_shown && krait_read_warning_shown(&payload, &warning))
        see_message(c, ring, head->t, warning.message);
    else if (head->id == KRAIT_EVENT_user_mark && krait_read_user_mark(&payload, &mark))
        see_message(c, ring, head->t, mark.text);
}

static uint32_t code_of(struct krait_cursor payload)
{
    uint32_t code = 0;
    if (payload.end - payload.at >= (ptrdiff_t)sizeof(code))
        memcpy(&code, payload.at, sizeof(code));
    return code;
}

static void see_span(struct krait_collector *c, struct watched_proc *proc, uint32_t id, uint64_t t,
                     struct krait_cursor payload)
{
    struct krait_payload_span_begin begin;
    struct krait_payload_span_end end;
    if (id == KRAIT_EVENT_span_begin && krait_read_span_begin(&payload, &begin)) {
        uint64_t mask = mask_of(proc, begin.name) & c->triggers->of_kind[KRAIT_ON_SPAN];
        if (mask)
            open_add(&proc->spans, SPANS_MAX, (struct open){ begin.id, t, mask, false });
    } else if (id == KRAIT_EVENT_span_end && krait_read_span_end(&payload, &end)) {
        span_ends(c, &proc->spans, end.id, t);
    }
}

/* Returns whether it concerns calls. */
static bool see_call(struct krait_collector *c, struct watched_ring *ring, struct watched_proc *proc,
                     const struct krait_event_head *head, struct krait_cursor payload)
{
    uint32_t bit = krait_event_bit(head->id);
    bool in_c = bit & KRAIT_CALL_IN_C;
    if (head->id == KRAIT_EVENT_python_unwind_of)
        see_raised(c, proc, code_of(payload));
    if (bit & KRAIT_CALL_BEGINS)
        call_begins(c, ring, proc, head->t, code_of(payload), in_c);
    else if (bit & KRAIT_CALL_ENDS && in_c)
        c_ends(c, ring, head->t);
    else if (bit & KRAIT_CALL_ENDS)
        python_ends(c, ring, head->t);
    else if (bit & KRAIT_CALL_STACKS)
        forget_calls(ring);
    else
        return false;
    return true;
}

static void see_event(struct krait_collector *c, struct watched_ring *ring, struct watched_proc *proc,
                      const struct krait_event_head *head, struct krait_cursor payload)
{
    if (see_call(c, ring, proc, head, payload))
        return;
    switch (head->id) {
    case KRAIT_EVENT_gil_wait:
        ring->wait_t = head->t;
        break;
    case KRAIT_EVENT_gil_take:
    case KRAIT_EVENT_gil_switch:
        wait_ends(c, &ring->wait_t, head->t, KRAIT_ON_GIL, "a thread waited for the GIL for");
        break;
    case KRAIT_EVENT_task_run:
        step_begins(ring, head->t, payload);
        break;
    case KRAIT_EVENT_task_leave:
        step_ends(c, ring, proc, head->t);
        break;
    case KRAIT_EVENT_log_record:
        see_log(c, payload);
        see_text(c, ring, head, payload);
        break;
    case KRAIT_EVENT_warning_shown:
    case KRAIT_EVENT_user_mark:
        see_text(c, ring, head, payload);
        break;
    default:
        see_span(c, proc, head->id, head->t, payload);
        break;
    }
}

void krait_triggers_see(struct krait_collector *c, uint32_t r, uint64_t begin, const uint8_t *events,
                        size_t n)
{
    struct krait_triggers *all = c->triggers;
    if (!all || r >= all->ring_count)
        return;
    struct krait_cursor at = { events, events + n }, payload;
    struct krait_event_head head = { .t = begin };
    struct watched_ring *ring = &all->rings[r];
    struct watched_proc *proc = &all->procs[c->rings[r].proc];
    uint64_t border = krait_omits_pass(&proc->omits, &ring->omitted, 0);
    while (krait_packet_event(&at, &head, &payload)) {
        if (KRAIT_UNLIKELY(head.t >= border))
            border = apply_omits(ring, proc, head.t);
        see_event(c, ring, proc, &head, payload);
    }
    ring->seen_t = head.t;
}

/* ---- names ---- */

/* A function's or type's name with its module, and alone. */
static uint64_t mask_of_name(const struct krait_triggers *all, const struct krait_payload_code_define *code)
{
    char whole[1024];
    bool has_module = *code->module && *code->module != '<';
    snprintf(whole, sizeof(whole), "%s%s%s", has_module ? code->module : "", has_module ? "." : "",
             code->qualname);
    uint64_t mask = 0, of = code->kind == KRAIT_code_kind_name        ? all->of_kind[KRAIT_ON_SPAN]
                            : code->kind == KRAIT_code_kind_exception ? all->of_kind[KRAIT_ON_EXCEPTION]
                                                                      : all->of_kind[KRAIT_ON_CALL];
    for (; of; of &= of - 1) {
        size_t i = (size_t)__builtin_ctzll(of);
        if (fnmatch(all->items[i].glob, whole, 0) == 0 || fnmatch(all->items[i].glob, code->qualname, 0) == 0)
            mask |= 1ull << i;
    }
    return mask;
}

static void note_name(struct krait_triggers *all, struct watched_proc *proc,
                      const struct krait_payload_code_define *code)
{
    uint64_t mask = mask_of_name(all, code);
    if (!mask)
        return;
    krait_map_put(&proc->masks, code->id, mask);
    if (code->kind != KRAIT_code_kind_exception)
        return;
    KRAIT_AUTO_BUF text = { 0 };
    const char *name = krait_arena_strdup(&proc->names, brief(&text, code->qualname));
    if (name)
        krait_map_put(&proc->types, code->id, (uintptr_t)name);
}

/* One to whose end a trigger may belong, or that may not fire one. */
static void note_start(struct krait_collector *c, struct watched_proc *proc,
                       const struct krait_payload_process_start *start)
{
    struct krait_triggers *all = c->triggers;
    uint64_t exceptions = all->of_kind[KRAIT_ON_EXCEPTION];
    proc->ends = 0;
    for (uint64_t rest = all->of_kind[KRAIT_ON_END]; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        if (fnmatch(all->items[i].glob, start->command, 0) == 0)
            proc->ends |= 1ull << i;
    }
    if (!exceptions || all->has_warned || !c->tells_exceptions || c->tells_exceptions(start->runtime))
        return;
    all->has_warned = true;
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(
        &text,
        "--snapshot-on %s may miss exceptions in process %u: %s does not tell the types of all, Python 3.12 does",
        all->items[__builtin_ctzll(exceptions)].text, start->vpid, start->runtime);
    krait_collector_say(c, text.data ? text.data : "");
}

static bool any_other(const struct krait_collector *c, uint32_t proc)
{
    for (uint32_t i = 0; i < c->procs_used; i++) {
        if (i != proc && c->procs[i].dir)
            return true;
    }
    return false;
}

void krait_triggers_ended(struct krait_collector *c, uint32_t i)
{
    char what[48];
    if (!c->triggers || !any_other(c, i)) /* then all ends */
        return;
    snprintf(what, sizeof(what), "process %d has ended", c->procs[i].pid);
    for (uint64_t rest = c->triggers->procs[i].ends; rest; rest &= rest - 1)
        fire(c, (size_t)__builtin_ctzll(rest), what, 0);
}

void krait_triggers_define(struct krait_collector *c, uint32_t i, const uint8_t *events, size_t n)
{
    struct krait_cursor at = { events, events + n }, payload;
    struct krait_event_head head = { 0 };
    struct krait_payload_code_define code;
    struct krait_payload_code_omit omit;
    struct krait_payload_task_define task;
    struct krait_payload_process_start start;
    if (!c->triggers)
        return;
    struct watched_proc *proc = &c->triggers->procs[i];
    while (krait_packet_event(&at, &head, &payload)) {
        if (head.id == KRAIT_EVENT_task_define && krait_read_task_define(&payload, &task) &&
            krait_task_is_hub(task.name))
            krait_map_put(&proc->hubs, task.id, 1);
        else if (head.id == KRAIT_EVENT_code_define && krait_read_code_define(&payload, &code))
            note_name(c->triggers, proc, &code);
        else if (head.id == KRAIT_EVENT_code_omit && krait_read_code_omit(&payload, &omit))
            krait_omits_add(&proc->omits, head.t, omit.id);
        else if (head.id == KRAIT_EVENT_process_start && krait_read_process_start(&payload, &start))
            note_start(c, proc, &start);
    }
}

void krait_triggers_forget_ring(struct krait_collector *c, uint32_t r)
{
    if (!c->triggers || r >= c->triggers->ring_count)
        return;
    struct opens calls = c->triggers->rings[r].calls, messages = c->triggers->rings[r].messages;
    calls.count = messages.count = 0;
    c->triggers->rings[r] = (struct watched_ring){ .calls = calls, .messages = messages };
}

void krait_triggers_forget_proc(struct krait_collector *c, uint32_t i)
{
    if (!c->triggers)
        return;
    krait_map_done(&c->triggers->procs[i].masks);
    krait_map_done(&c->triggers->procs[i].hubs);
    krait_map_done(&c->triggers->procs[i].types);
    krait_arena_done(&c->triggers->procs[i].names);
    c->triggers->procs[i].spans.count = 0;
    c->triggers->procs[i].ends = 0;
    krait_omits_done(&c->triggers->procs[i].omits);
}

/* ---- rounds ---- */

static void look_at(struct krait_collector *c, struct open *open, uint64_t now, const char *what)
{
    if (open->mask && now > open->t)
        open->mask = fire_longer(c, open->mask, now - open->t, what);
}

static void look_at_all(struct krait_collector *c, struct opens *opens, uint64_t now, const char *what)
{
    for (size_t i = 0; i < opens->count; i++)
        look_at(c, &opens->items[i], now, what);
}

/* Events that are not read yet may be of before a function was left out: nothing is taken from the stack here. */
static void look_at_calls(struct krait_collector *c, struct opens *calls, const struct watched_proc *proc,
                          uint64_t now)
{
    bool gone = false;
    for (size_t i = 0; i < calls->count; i++) {
        gone = is_gone(proc, &calls->items[i], now, gone);
        if (!gone)
            look_at(c, &calls->items[i], now, "a call has taken");
    }
}

static void look_at_ring(struct krait_collector *c, struct watched_ring *ring,
                         const struct watched_proc *proc, uint64_t now)
{
    look_at_calls(c, &ring->calls, proc, now);
    look_at_all(c, &ring->messages, now, "the second message has not come for");
    if (ring->step_t && !ring->step_fired && now > ring->step_t && !is_in_hub(ring, proc))
        ring->step_fired =
            fire_longer(c, c->triggers->of_kind[KRAIT_ON_LOOP], now - ring->step_t,
                        "an event loop has stood still for") != c->triggers->of_kind[KRAIT_ON_LOOP];
}

static void look_at_memory(struct krait_collector *c, uint32_t proc)
{
    char path[64], what[80], size[KRAIT_FMT_SIZE];
    unsigned long long pages = 0;
    struct krait_triggers *all = c->triggers;
    snprintf(path, sizeof(path), "/proc/%d/statm", c->procs[proc].pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1)
        return;
    uint64_t bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(what, sizeof(what), "process %d has %s in memory", c->procs[proc].pid,
             krait_fmt_bytes(size, bytes));
    for (uint64_t rest = all->of_kind[KRAIT_ON_MEMORY]; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        if (bytes > all->items[i].limit)
            fire(c, i, what, 0);
    }
}

/* Until when all events of a ring were seen, if those of its open packet were taken after `now`. */
static uint64_t seen_until(struct krait_collector *c, uint32_t r, uint64_t now)
{
    return krait_drain_is_behind(c, r) ? c->triggers->rings[r].seen_t : now;
}

/* What ended lasts no longer, even if its end was not seen yet: so all that the rings have is taken first. */
static void look_at_what_lasts(struct krait_collector *c)
{
    struct krait_triggers *all = c->triggers;
    uint32_t procs = krait_collector_procs_used(c);
    uint64_t now = krait_clock_now(&c->clock);
    krait_drain_open(c);
    for (uint32_t i = 0; i < procs; i++)
        all->procs[i].seen_t = now;
    for (uint32_t r = 0; r < KRAIT_MIN(all->ring_count, krait_collector_rings_used(c)); r++) {
        struct watched_proc *proc = &all->procs[c->rings[r].proc];
        uint64_t seen = seen_until(c, r, now);
        look_at_ring(c, &all->rings[r], proc, seen);
        proc->seen_t = KRAIT_MIN(proc->seen_t, seen);
    }
    for (uint32_t i = 0; i < procs; i++) {
        look_at_all(c, &all->procs[i].spans, all->procs[i].seen_t, "a span has taken");
        if (all->of_kind[KRAIT_ON_MEMORY] && c->procs[i].dir)
            look_at_memory(c, i);
    }
}

void krait_triggers_last(struct krait_collector *c, uint32_t i)
{
    struct krait_triggers *all = c->triggers;
    uint64_t now = krait_clock_now(&c->clock);
    for (uint32_t r = 0; all && r < KRAIT_MIN(all->ring_count, krait_collector_rings_used(c)); r++) {
        if (c->rings[r].known && c->rings[r].proc == i)
            look_at_ring(c, &all->rings[r], &all->procs[i], now);
    }
    if (all)
        look_at_all(c, &all->procs[i].spans, now, "a span has taken");
}

/* "call:app.*>1s, a call took 1.2 s; log:ERROR, a log record came"; or the texts of the triggers alone. */
static void put_due(struct krait_buf *to, const struct krait_triggers *all, uint64_t due, bool has_why)
{
    for (uint64_t rest = due; rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        krait_buf_fmt(to, "%s%s", rest == due ? "" : has_why ? "; " : ", ", all->items[i].text);
        if (has_why)
            krait_buf_fmt(to, ", %s", all->why[i]);
    }
}

static void take_snapshot(struct krait_collector *c)
{
    struct krait_triggers *all = c->triggers;
    struct krait_collector_snapshot made;
    struct krait_err err = { 0 };
    uint64_t due = all->due;
    all->due = 0;
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_collector_snapshot(c, NULL, &made, &err)) {
        put_due(&text, all, due, false);
        krait_buf_fmt(&text, ": %s", err.text);
    } else {
        all->snapshots++;
        krait_buf_fmt(&text, "snapshot in %s: ", made.dir);
        put_due(&text, all, due, true);
        krait_buf_str(&text, all->snapshots == SNAPSHOTS_MAX ? "; it is the last one" : "");
        free(made.dir);
    }
    krait_collector_say(c, text.data ? text.data : "");
}

static bool begin(struct krait_collector *c)
{
    struct krait_triggers *all = c->triggers;
    all->rings = calloc(c->shm.ring_max, sizeof(*all->rings));
    all->ring_count = all->rings ? c->shm.ring_max : 0;
    for (size_t i = 0; i < all->count; i++)
        all->items[i].ticks = (uint64_t)((double)all->items[i].limit * (double)c->clock.freq / 1e9);
    return all->rings;
}

int krait_triggers_begin(struct krait_collector *c)
{
    return !c->triggers || begin(c) ? 0 : -ENOMEM;
}

void krait_triggers_round(struct krait_collector *c)
{
    struct krait_triggers *all = c->triggers;
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (!all)
        return;
    if (now - all->looked_ns >= LOOK_NS) {
        all->looked_ns = now;
        look_at_what_lasts(c);
    }
    krait_triggers_finish(c);
}

void krait_triggers_finish(struct krait_collector *c)
{
    if (c->triggers && c->triggers->due)
        take_snapshot(c);
}
