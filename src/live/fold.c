/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds events to sums. One thread runs this loop for all recorded programs, so it must be fast.
 */
#include "base/array.h"
#include "live/inside.h"
#include "record/tracedir.h"

enum {
    DEPTH_MAX = 1 << 22,
    LEFT_MAX = 1 << 16,
    CODES_MAX = 1 << 24,
};

/* ---- the stack ---- */

static inline void advance(struct live_thread *th, uint64_t t)
{
    if (t <= th->t)
        return;
    th->rows[th->stack.items[th->stack.len - 1] >> 1].all.own += t - th->t;
    th->t = t;
}

static bool has_room(const struct krait_live *live, struct live_thread *th)
{
    return th->stack.len < DEPTH_MAX && KRAIT_GROW(th->stack.items, th->stack.cap, th->stack.len + 1) &&
           (!live->rays || live_watch_stack(&th->stack, th->stack.len + 1));
}

/* Remembers the callers of a row, because callers of functions that are dropped later are marked. The two latest
 * callers need no look-up. */
static KRAIT_COLD void note_caller(struct live_thread *th, struct live_row *row, uint32_t caller)
{
    uint64_t key = (uint64_t)caller << 32 | (uint32_t)(row - th->rows);
    if (!caller)
        return;
    if (row->caller[1] != caller && !krait_map_get(&th->callers, key))
        krait_map_put(&th->callers, key, 1); /* if it fails, the caller gets no mark */
    row->caller[1] = row->caller[0];
    row->caller[0] = caller;
}

/* Opens a call at th->t that began at `begun`; 0: nobody knows when. */
static void push(const struct krait_live *live, struct live_thread *th, uint32_t open, uint64_t begun)
{
    struct live_row *row = &th->rows[open >> 1];
    if (!has_room(live, th))
        return;
    if (live->rays)
        th->stack.begun[th->stack.len] = begun;
    uint32_t caller = th->stack.items[th->stack.len - 1] >> 1;
    if (row->caller[0] != caller)
        note_caller(th, row, caller);
    if (!row->depth++)
        row->entered = th->t;
    th->stack.items[th->stack.len++] = open;
}

static void pop(struct live_thread *th)
{
    struct live_row *row = &th->rows[th->stack.items[--th->stack.len] >> 1];
    if (!--row->depth)
        row->all.total += th->t - row->entered;
}

static bool top_is_c(const struct live_thread *th)
{
    return th->stack.len > 1 && th->stack.items[th->stack.len - 1] & 1;
}

void live_cut(struct live_thread *th, uint32_t len)
{
    while (th->stack.len > KRAIT_MAX(len, 1u))
        pop(th);
}

static void cut_c(struct live_thread *th)
{
    while (top_is_c(th))
        pop(th);
}

static void note_end(const struct krait_live *live, const struct live_thread *th)
{
    uint32_t at = th->stack.len - 1;
    if (live->rays)
        live_note_call(live->rays, th->stack.begun[at], th->t, th->rows[th->stack.items[at] >> 1].func);
}

static void end_call(const struct krait_live *live, struct live_thread *th, uint64_t t, bool is_c)
{
    advance(th, t);
    if (!is_c)
        cut_c(th);
    if (th->stack.len <= 1 || top_is_c(th) != is_c)
        return;
    note_end(live, th);
    pop(th);
}

static void begin_call(struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t code, bool is_c,
                       bool counts)
{
    uint32_t row = live_row_of(live, th, code < CODES_MAX ? code : 0);
    advance(th, t);
    th->rows[row].all.calls += counts;
    push(live, th, live_open(row, is_c), th->t);
}

/* ---- stacks that the recorder states ---- */

/* The index in the stack of the Python call at a depth; the stack's length if there is none. Within a run, depths
 * ascend. */
static uint32_t place_of(struct live_thread *th, uint32_t depth)
{
    if (th->run_depth > depth || th->run_at > th->stack.len)
        th->run_at = 1, th->run_depth = 0;
    while (th->run_at < th->stack.len) {
        bool is_c = th->stack.items[th->run_at] & 1;
        if (!is_c && th->run_depth == depth)
            break;
        th->run_depth += !is_c;
        th->run_at++;
    }
    return th->run_at;
}

/* Ends the calls from that depth on at th->t: they ended during the gap. */
static void cut_to_depth(struct live_thread *th, uint32_t depth)
{
    live_cut(th, place_of(th, depth));
    cut_c(th);
    th->run_at = KRAIT_MIN(th->run_at, th->stack.len);
}

static void live_frame(struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t code,
                       uint32_t depth)
{
    bool below_is_right = depth && !th->in_run;
    uint32_t row = live_row_of(live, th, code < CODES_MAX ? code : 0);
    if (!th->in_run)
        th->run_at = 1, th->run_depth = 0;
    th->in_run = true;
    uint32_t at = place_of(th, depth);
    if (at < th->stack.len && th->stack.items[at] >> 1 == row)
        return;
    if (!below_is_right || at < th->stack.len || th->run_depth != depth)
        cut_to_depth(th, depth);
    advance(th, t);
    push(live, th, live_open(row, false), 0);
}

static bool is_off(const struct live_process *proc, uint64_t t)
{
    bool off = false;
    for (size_t i = 0; i < KRAIT_MIN(proc->gap_count, (uint32_t)KRAIT_ARRAY_LEN(proc->gaps)); i++)
        off |= proc->gaps[i].from <= t && t < proc->gaps[i].to;
    return off;
}

/* Where the recording is switched off nothing is lost up to there: what is open ends then, not when the gap began. */
static void settle_stack(const struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t depth)
{
    if (!depth && !th->in_run && is_off(&live->procs[th->slot], t))
        advance(th, t);
    if (!th->in_run)
        th->run_at = 1, th->run_depth = 0;
    th->in_run = false;
    cut_to_depth(th, depth);
    advance(th, t);
    th->silent_t = t;
}

/* A thread whose stack was stated may be in a C call that began before, and has not the GIL: until its first event its time is not
 * taken for time with the GIL. */
static void count_silence(struct live_thread *th, uint64_t t)
{
    if (t > th->silent_t && !top_is_c(th))
        th->wait_in_python += t - th->silent_t;
}

/* What comes next ends the silence, unless it states a stack again. */
static KRAIT_COLD void end_silence(struct live_thread *th, struct krait_cursor events,
                                   struct krait_event_head head)
{
    struct krait_cursor payload;
    bool is_stated;
    if (!krait_packet_event(&events, &head, &payload))
        return;
    is_stated = head.id == KRAIT_EVENT_python_frame || head.id == KRAIT_EVENT_python_deep_frame ||
                head.id == KRAIT_EVENT_python_stack || head.id == KRAIT_EVENT_python_deep_stack;
    if (is_stated)
        return;
    count_silence(th, head.t);
    th->silent_t = 0;
}

/* ---- greenlets and excluded functions ---- */

static bool keep_left(const struct krait_live *live, struct live_thread *th, uint32_t number)
{
    uint32_t before = th->left_cap;
    if (number >= LEFT_MAX || !KRAIT_GROW(th->left, th->left_cap, number + 1))
        return false;
    memset(th->left + before, 0, (th->left_cap - before) * sizeof(*th->left));
    struct live_stack *left = &th->left[number];
    if (!KRAIT_GROW(left->items, left->cap, th->stack.len))
        return false;
    left->len = th->stack.len;
    memcpy(left->items, th->stack.items, th->stack.len * sizeof(*left->items));
    if (live->rays && live_watch_stack(left, left->len))
        memcpy(left->begun, th->stack.begun, left->len * sizeof(*left->begun));
    return true;
}

static void switch_stack(const struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t from,
                         uint32_t to)
{
    advance(th, t);
    keep_left(live, th, from);
    const struct live_stack *next = to && to < th->left_cap ? &th->left[to] : NULL;
    uint32_t same = 1, len = next ? next->len : 1;
    while (same < KRAIT_MIN(th->stack.len, len) && th->stack.items[same] == next->items[same])
        same++;
    live_cut(th, same);
    for (uint32_t i = same; i < len; i++)
        push(live, th, next->items[i], i < next->begun_cap ? next->begun[i] : 0);
}

/* Takes the calls of that row out of a stack, with the C calls that they made. `open`: those end at th->t. */
static void omit_in(struct live_thread *th, struct live_stack *stack, uint32_t row, bool open)
{
    uint32_t kept = 1;
    bool gone = false;
    for (uint32_t i = 1; i < stack->len; i++) {
        uint32_t item = stack->items[i];
        struct live_row *its = &th->rows[item >> 1];
        gone = item >> 1 == row || (gone && item & 1);
        if (!gone && i < stack->begun_cap)
            stack->begun[kept] = stack->begun[i];
        if (!gone)
            stack->items[kept++] = item;
        else if (open && !--its->depth)
            its->all.total += th->t - its->entered;
    }
    stack->len = stack->len ? kept : 0;
}

/* From t on the recorder writes no ends for this code, nor for the C functions that it called. Ends them; the Python
 * functions that they called stay open. */
static void omit(struct live_thread *th, uint64_t t, uint32_t code)
{
    uint32_t number = code < th->index_cap ? th->index[code] : 0;
    advance(th, t);
    if (!number)
        return;
    for (uint32_t i = 0; i < th->left_cap; i++)
        omit_in(th, &th->left[i], number, false);
    omit_in(th, &th->stack, number, true);
}

static uint64_t next_omit(const struct live_process *proc, const struct live_thread *th)
{
    return th->omitted < proc->omit_count ? proc->omits[th->omitted].t : UINT64_MAX;
}

static uint64_t next_look(const struct live_thread *th)
{
    return th->look_count ? th->looks[0].t : UINT64_MAX;
}

static uint64_t next_border(const struct krait_live *live, const struct live_thread *th)
{
    return KRAIT_MIN(next_omit(&live->procs[th->slot], th), next_look(th));
}

/* Applies omits and looks up to t, in order of time. */
static KRAIT_COLD void pass_borders(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    const struct live_process *proc = &live->procs[th->slot];
    while (next_border(live, th) <= t) {
        if (next_look(th) < next_omit(proc, th)) {
            live_count_look(live, th);
        } else {
            const struct live_omit *next = &proc->omits[th->omitted++];
            omit(th, next->t, next->code);
        }
    }
    th->border = next_border(live, th);
}

/* ---- GIL, garbage collection and tasks ---- */

static uint64_t time_since(uint64_t *since, uint64_t t)
{
    uint64_t passed = *since && t > *since ? t - *since : 0;
    *since = 0;
    return passed;
}

/* The wait ends at t, or is counted up to there. */
static void count_wait(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    uint64_t passed = time_since(&th->wait_t, t);
    live->now.gil_wait += passed;
    if (th->stack.len > 1 && !top_is_c(th))
        th->wait_in_python += passed;
}

static void span_event(struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t id,
                       struct krait_cursor payload)
{
    struct krait_payload_span_begin begin;
    struct krait_payload_span_end end;
    if (id == KRAIT_EVENT_span_begin && krait_read_span_begin(&payload, &begin) &&
        begin.category == KRAIT_span_category_gc) {
        th->gc_t = t;
        th->gc_id = begin.id;
    } else if (id == KRAIT_EVENT_span_end && krait_read_span_end(&payload, &end) && end.id == th->gc_id) {
        live->now.gc += time_since(&th->gc_t, t);
    }
}

static void other_event(struct krait_live *live, struct live_thread *th, uint64_t t, uint32_t id,
                        struct krait_cursor payload)
{
    struct krait_payload_task_run run;
    switch (id) {
    case KRAIT_EVENT_gil_wait:
        th->wait_t = t;
        live->now.gil_waits++;
        break;
    case KRAIT_EVENT_gil_take:
    case KRAIT_EVENT_gil_switch:
        count_wait(live, th, t);
        break;
    case KRAIT_EVENT_task_run:
        if (krait_read_task_run(&payload, &run))
            live_task_runs(live, th, t, run.task);
        break;
    case KRAIT_EVENT_task_leave:
        live_task_ends_step(live, th, t);
        break;
    default:
        span_event(live, th, t, id, payload);
        break;
    }
}

/* ---- events ---- */

enum {
    SHORT_BYTES = 8,              /* size of the longest compact event: header and code */
    LEAF_BYTES = SHORT_BYTES + 4, /* a begin and an end */
    CALLS = 1 << KRAIT_EVENT_python_call | 1 << KRAIT_EVENT_c_call, /* begins that are no resumes */
};

/* What the hot loop does with an event; 0: it leaves the event to any_event(). */
enum {
    IN_C = 1, /* as bit 0 of live_open() */
    BEGINS = 2,
    ENDS = 4,
    LONG = 8,    /* an end with an exception's type */
    COUNTS = 16, /* the highest bit: a begin that is no resume */
};
#define ROLE_IF(kinds, kind, role) ((kinds)&KRAIT_KIND_##kind ? (role) : 0)
#define KRAIT_KINDS(symbol, kinds)                                                                    \
    [KRAIT_EVENT_##symbol] =                                                                          \
        ROLE_IF(kinds, IN_C, IN_C) | ROLE_IF(kinds, ENDS, ENDS | (KRAIT_BYTES_##symbol ? LONG : 0)) | \
        ROLE_IF(kinds, BEGINS, BEGINS | (CALLS >> KRAIT_EVENT_##symbol & 1 ? COUNTS : 0)),
static const uint8_t roles[1 << KRAIT_CTF_ID_BITS] = {
#include "event/events.def"
};
#undef ROLE_IF

static bool stack_event(struct krait_live *live, struct live_thread *th, const struct krait_event_head *head,
                        struct krait_cursor payload)
{
    struct krait_payload_python_frame frame;
    struct krait_payload_python_stack settle;
    struct krait_payload_python_deep_frame deep_frame;
    struct krait_payload_python_deep_stack deep_settle;
    struct krait_payload_python_switch change;
    if (head->id == KRAIT_EVENT_python_frame && krait_read_python_frame(&payload, &frame))
        live_frame(live, th, head->t, frame.code, frame.depth);
    else if (head->id == KRAIT_EVENT_python_deep_frame && krait_read_python_deep_frame(&payload, &deep_frame))
        live_frame(live, th, head->t, deep_frame.code, deep_frame.depth);
    else if (head->id == KRAIT_EVENT_python_stack && krait_read_python_stack(&payload, &settle))
        settle_stack(live, th, head->t, settle.depth);
    else if (head->id == KRAIT_EVENT_python_deep_stack &&
             krait_read_python_deep_stack(&payload, &deep_settle))
        settle_stack(live, th, head->t, deep_settle.depth);
    else if (head->id == KRAIT_EVENT_python_switch && krait_read_python_switch(&payload, &change))
        switch_stack(live, th, head->t, change.from, change.to);
    else
        return false;
    return true;
}

/* Handles one event of any class. Returns false at the end, and if the bytes are not an event. */
static KRAIT_COLD bool any_event(struct krait_live *live, struct live_thread *th, struct krait_cursor *events,
                                 struct krait_event_head *head)
{
    struct krait_cursor payload;
    struct krait_payload_python_call begin; /* all begins have this one field */
    if (!krait_packet_event(events, head, &payload))
        return false;
    uint32_t bit = krait_event_bit(head->id);
    th->in_run &= !(bit & (KRAIT_CALL_BEGINS | KRAIT_CALL_ENDS));
    if (head->t >= th->border)
        pass_borders(live, th, head->t);
    if (bit & KRAIT_CALL_BEGINS && krait_read_python_call(&payload, &begin))
        begin_call(live, th, head->t, begin.code, bit & KRAIT_CALL_IN_C, bit & CALLS);
    else if (bit & KRAIT_CALL_ENDS)
        end_call(live, th, head->t, bit & KRAIT_CALL_IN_C);
    else if (!stack_event(live, th, head, payload))
        other_event(live, th, head->t, head->id, payload);
    return true;
}

/* What the hot loop has in registers of a thread, of its stack and of what it reads. */
struct hot {
    const uint32_t *index;
    struct live_row *rows, *row; /* row: of the innermost call */
    uint32_t *stack;
    uint64_t *begun;
    const uint8_t *at;
    uint64_t t, border, count;
    uint32_t index_cap, len, cap, top;
};

static inline struct hot hot_of(struct live_thread *th, const struct live_rays *rays, const uint8_t *at)
{
    uint32_t len = th->stack.len, top = th->stack.items[len - 1];
    return (struct hot){ .index = th->index,
                         .rows = th->rows,
                         .row = &th->rows[top >> 1],
                         .stack = th->stack.items,
                         .begun = th->stack.begun,
                         .at = at,
                         .t = th->t,
                         .border = th->border,
                         .index_cap = th->index_cap,
                         .len = len,
                         .cap = rays ? KRAIT_MIN(th->stack.cap, th->stack.begun_cap) : th->stack.cap,
                         .top = top };
}

/* The call of `row` from t on, whose end is next if it calls nothing: then both are one step. */
static inline bool take_leaf(struct hot *hot, struct live_rays *rays, struct live_row *row, uint64_t t,
                             uint32_t role)
{
    uint32_t next;
    memcpy(&next, hot->at + SHORT_BYTES, sizeof(next));
    const struct krait_event_head end = krait_head_unpack(next, t);
    if (roles[end.id] != (ENDS | (role & IN_C)) || KRAIT_UNLIKELY(end.t >= hot->border))
        return false;
    row->all.own += end.t - t;
    if (!row->depth)
        row->all.total += end.t - t;
    if (rays)
        live_note_call(rays, t, end.t, row->func);
    hot->at += LEAF_BYTES;
    hot->t = end.t;
    hot->count += 2;
    return true;
}

/* Returns false if the event is not for the hot loop; so does take_end. */
static inline bool take_begin(struct hot *hot, struct live_thread *th, struct live_rays *rays, uint64_t t,
                              uint32_t role, uint32_t code)
{
    uint32_t number = KRAIT_LIKELY(code < hot->index_cap) ? hot->index[code] : 0;
    if (KRAIT_UNLIKELY(!number || hot->len >= hot->cap))
        return false;
    hot->row->all.own += t - hot->t;
    struct live_row *row = &hot->rows[number];
    row->all.calls += role / COUNTS;
    if (KRAIT_UNLIKELY(row->caller[0] != hot->top >> 1))
        note_caller(th, row, hot->top >> 1);
    if (take_leaf(hot, rays, row, t, role))
        return true;
    if (!row->depth++)
        row->entered = t;
    if (rays)
        hot->begun[hot->len] = t;
    hot->row = row;
    hot->stack[hot->len++] = hot->top = live_open(number, role & IN_C);
    hot->at += SHORT_BYTES;
    hot->t = t;
    hot->count++;
    return true;
}

static inline bool take_end(struct hot *hot, struct live_rays *rays, uint64_t t, uint32_t role)
{
    if (KRAIT_UNLIKELY(hot->len == 1 || (hot->top ^ role) & IN_C))
        return false;
    hot->row->all.own += t - hot->t;
    if (!--hot->row->depth)
        hot->row->all.total += t - hot->row->entered;
    if (rays)
        live_note_call(rays, hot->begun[hot->len - 1], t, hot->row->func);
    hot->top = hot->stack[--hot->len - 1];
    hot->row = &hot->rows[hot->top >> 1];
    hot->at += 4;
    if (KRAIT_UNLIKELY(role & LONG))
        hot->at += 4;
    hot->t = t;
    hot->count++;
    return true;
}

/* Handles compact begins and ends up to the first other event, unbalanced end, or code without a row; none if the thread's
 * time is not that of the event before. Keeps its state in registers, as trace/walk.c does. Branches, which the CPU predicts,
 * find the next event: if its place were computed, each event would wait for the one before. Returns the number of events
 * that it handled. hot path */
static inline __attribute__((always_inline)) uint64_t short_events_of(struct live_thread *th,
                                                                      struct live_rays *rays,
                                                                      struct krait_cursor *cursor,
                                                                      struct krait_event_head *before)
{
    struct hot hot = hot_of(th, rays, cursor->at);
    bool takes = hot.t == before->t;
    while (takes && cursor->end - hot.at >= LEAF_BYTES) {
        uint64_t word;
        uint32_t code;
        memcpy(&word, hot.at, sizeof(word));
        const struct krait_event_head head = krait_head_unpack(krait_head_split(word, &code), hot.t);
        const uint32_t role = roles[head.id];
        if (KRAIT_UNLIKELY(!role || head.t >= hot.border))
            break;
        takes = role & BEGINS ? take_begin(&hot, th, rays, head.t, role, code)
                              : take_end(&hot, rays, head.t, role);
    }
    cursor->at = hot.at;
    if (hot.count)
        before->t = th->t = hot.t;
    th->stack.len = hot.len;
    return hot.count;
}

static uint64_t short_events(const struct krait_live *live, struct live_thread *th,
                             struct krait_cursor *cursor, struct krait_event_head *before)
{
    return live->rays ? short_events_of(th, live->rays, cursor, before)
                      : short_events_of(th, NULL, cursor, before);
}

uint64_t live_fold(void *ctx, uint32_t ring, const struct krait_packet_head *packet, const uint8_t *events,
                   size_t n)
{
    struct krait_live *live = ctx;
    const uint64_t *known = krait_map_get(&live->rings, ring);
    struct krait_cursor at = { events, events + n };
    struct krait_event_head head = { .t = packet->timestamp_begin };
    uint64_t count = 0;
    if (!known || !*known)
        return krait_packet_count_events(events, n);
    struct live_thread *th = (struct live_thread *)(uintptr_t)*known;
    if (!th->t)
        th->t = packet->timestamp_begin;
    th->border = next_border(live, th);
    for (bool more = true; more;) {
        if (KRAIT_UNLIKELY(th->silent_t))
            end_silence(th, at, head);
        if (!th->in_run)
            count += short_events(live, th, &at, &head);
        more = any_event(live, th, &at, &head);
        count += more;
    }
    live->now.events += count;
    return count;
}

void live_settle(struct krait_live *live, struct live_thread *th, uint64_t t)
{
    while (next_look(th) <= t)
        live_count_look(live, th);
    if (!th->t || t <= th->t)
        return;
    advance(th, t);
    for (uint32_t i = 1; i < th->stack.len; i++) {
        struct live_row *row = &th->rows[th->stack.items[i] >> 1];
        if (row->entered < t) {
            row->all.total += t - row->entered;
            row->entered = t;
        }
    }
    if (th->wait_t && th->wait_t < t) {
        count_wait(live, th, t);
        th->wait_t = t;
    }
    if (th->silent_t) {
        count_silence(th, t);
        th->silent_t = KRAIT_MAX(th->silent_t, t);
    }
    live_task_settle(live, th, t);
}
