/* SPDX-License-Identifier: Apache-2.0 */
#include "record/newest_stacks.h"

#include "base/array.h"
#include "record/frames.h"
#include "record/tracedir.h"

#include <string.h>

enum { FRAMES_MAX = 1 << 20 };

struct krait_newest_call {
    uint32_t code;
    bool is_c;
};

/* ---- what the governor drops ---- */

static void omit_in(struct krait_newest_calls *calls, const struct krait_omits *omits, uint64_t time)
{
    size_t kept = 0;
    bool gone = false;
    for (size_t i = 0; i < calls->count; i++) {
        gone = krait_omits_end(omits, calls->items[i].code, calls->items[i].is_c, gone, time);
        if (!gone)
            calls->items[kept++] = calls->items[i];
    }
    calls->count = kept;
}

/* The governor drops many at a time: the stacks are gone through once for all of them. */
static KRAIT_COLD void apply_omits(struct krait_newest_stacks *stacks, uint64_t time)
{
    if (time < stacks->border)
        return;
    stacks->border = krait_omits_pass(stacks->omits, &stacks->omitted, time);
    omit_in(&stacks->now, stacks->omits, time);
    for (size_t i = 0; i < stacks->left_count; i++) {
        stacks->left_calls -= stacks->left[i].count;
        omit_in(&stacks->left[i], stacks->omits, time);
        stacks->left_calls += stacks->left[i].count;
    }
}

/* ---- the stacks ---- */

void krait_newest_stacks_init(struct krait_newest_stacks *stacks, const struct krait_omits *omits)
{
    *stacks = (struct krait_newest_stacks){ .omits = omits };
    stacks->border = krait_omits_pass(omits, &stacks->omitted, 0);
}

void krait_newest_stacks_done(struct krait_newest_stacks *stacks)
{
    for (size_t i = 0; i < stacks->left_count; i++)
        free(stacks->left[i].items);
    free(stacks->left);
    free(stacks->now.items);
    krait_newest_tasks_done(&stacks->tasks);
}

static struct krait_newest_calls *left_under(struct krait_newest_stacks *stacks, uint16_t number)
{
    size_t before = stacks->left_count;
    if (!KRAIT_GROW(stacks->left, stacks->left_count, (size_t)number + 1))
        return NULL;
    memset(stacks->left + before, 0, (stacks->left_count - before) * sizeof(*stacks->left));
    return &stacks->left[number];
}

static bool copy_calls(struct krait_newest_calls *to, const struct krait_newest_calls *from)
{
    if (!KRAIT_GROW(to->items, to->cap, from->count))
        return false;
    if (from->count)
        memcpy(to->items, from->items, from->count * sizeof(*to->items));
    to->count = from->count;
    return true;
}

static void switch_stacks(struct krait_newest_stacks *stacks, uint16_t from, uint16_t to)
{
    struct krait_newest_calls *left = left_under(stacks, from), empty = { 0 };
    size_t before = left ? left->count : 0;
    bool fits = left && stacks->left_calls - before + stacks->now.count <= FRAMES_MAX &&
                copy_calls(left, &stacks->now);
    if (left && !fits)
        left->count = 0;
    stacks->left_calls += (left ? left->count : 0) - before;
    const struct krait_newest_calls *next = to && to < stacks->left_count ? &stacks->left[to] : &empty;
    bool taken = copy_calls(&stacks->now, next);
    if (!taken)
        stacks->now.count = 0;
    stacks->failed |= !fits || !taken;
}

static void push(struct krait_newest_calls *calls, uint32_t code, bool is_c)
{
    if (calls->count == FRAMES_MAX || !KRAIT_GROW(calls->items, calls->cap, calls->count + 1))
        return;
    calls->items[calls->count++] = (struct krait_newest_call){ code, is_c };
}

static void end_python(struct krait_newest_calls *calls)
{
    size_t n = calls->count;
    while (n && calls->items[n - 1].is_c)
        n--;
    if (n)
        calls->count = n - 1;
}

static void end_c(struct krait_newest_calls *calls)
{
    if (calls->count && calls->items[calls->count - 1].is_c)
        calls->count--;
}

/* Where the Python frame stands that has `depth` others below it; the count when there is none. */
static size_t at_depth(const struct krait_newest_calls *calls, uint32_t depth)
{
    for (size_t i = 0; i < calls->count; i++) {
        if (!calls->items[i].is_c && depth-- == 0)
            return i;
    }
    return calls->count;
}

/* Ends all but the first `depth` Python calls and what those are inside of. */
static void cut_to_depth(struct krait_newest_calls *calls, uint32_t depth)
{
    calls->count = at_depth(calls, depth);
    while (calls->count && calls->items[calls->count - 1].is_c)
        calls->count--;
}

/* As readers do (trace/stack.h): C calls stay below a run that begins above depth 0. */
static void live(struct krait_newest_stacks *stacks, uint32_t code, uint32_t depth)
{
    struct krait_newest_calls *calls = &stacks->now;
    size_t i = at_depth(calls, depth);
    bool below_is_right = depth && !stacks->in_run;
    stacks->in_run = true;
    if (i < calls->count && calls->items[i].code == code)
        return;
    if (!below_is_right || i < calls->count)
        cut_to_depth(calls, depth);
    push(calls, code, false);
}

static void settle(struct krait_newest_stacks *stacks, uint32_t depth)
{
    stacks->in_run = false;
    cut_to_depth(&stacks->now, depth);
}

static void begin(struct krait_newest_calls *calls, struct krait_cursor *payload, bool is_c)
{
    struct krait_payload_python_call call; /* of one field, as all begins */
    if (krait_read_python_call(payload, &call))
        push(calls, call.code, is_c);
}

static void follow(struct krait_newest_stacks *stacks, uint32_t id, struct krait_cursor payload)
{
    struct krait_newest_calls *calls = &stacks->now;
    struct krait_payload_python_frame frame;
    struct krait_payload_python_deep_frame deep_frame;
    struct krait_payload_python_stack stack;
    struct krait_payload_python_deep_stack deep_stack;
    struct krait_payload_python_switch change;
    switch (id) {
    case KRAIT_EVENT_python_call:
    case KRAIT_EVENT_python_resume:
    case KRAIT_EVENT_python_throw:
    case KRAIT_EVENT_c_call:
        begin(calls, &payload, id == KRAIT_EVENT_c_call);
        break;
    case KRAIT_EVENT_python_return:
    case KRAIT_EVENT_python_yield:
    case KRAIT_EVENT_python_unwind:
    case KRAIT_EVENT_python_unwind_of:
        end_python(calls);
        break;
    case KRAIT_EVENT_c_return:
    case KRAIT_EVENT_c_raise:
    case KRAIT_EVENT_c_raise_of:
        end_c(calls);
        break;
    case KRAIT_EVENT_python_frame:
        if (krait_read_python_frame(&payload, &frame))
            live(stacks, frame.code, frame.depth);
        break;
    case KRAIT_EVENT_python_deep_frame:
        if (krait_read_python_deep_frame(&payload, &deep_frame))
            live(stacks, deep_frame.code, deep_frame.depth);
        break;
    case KRAIT_EVENT_python_stack:
        if (krait_read_python_stack(&payload, &stack))
            settle(stacks, stack.depth);
        break;
    case KRAIT_EVENT_python_deep_stack:
        if (krait_read_python_deep_stack(&payload, &deep_stack))
            settle(stacks, deep_stack.depth);
        break;
    case KRAIT_EVENT_python_switch:
        if (krait_read_python_switch(&payload, &change))
            switch_stacks(stacks, change.from, change.to);
        break;
    default:
        break;
    }
}

uint64_t krait_newest_stacks_follow(struct krait_newest_stacks *stacks, uint64_t begin, uint64_t until,
                                    const uint8_t *events, size_t *n)
{
    uint64_t count = 0;
    struct krait_cursor at = { events, events + *n }, payload;
    struct krait_event_head head = { .t = begin };
    for (*n = 0; krait_packet_event(&at, &head, &payload) && head.t < until; count++) {
        *n = (size_t)(at.at - events);
        if (KRAIT_UNLIKELY(head.t >= stacks->border))
            apply_omits(stacks, head.t);
        follow(stacks, head.id, payload);
        krait_newest_tasks_follow(&stacks->tasks, head.id, payload);
    }
    stacks->failed |= stacks->tasks.failed;
    return count;
}

/* ---- writing ---- */

static void put_frame(struct krait_buf *out, uint64_t time, uint32_t code, uint32_t depth)
{
    uint8_t payload[KRAIT_FRAME_BYTES];
    size_t n;
    uint32_t id = krait_put_frame(payload, code, depth, &n);
    krait_newest_put(out, time, id, payload, n);
}

static void put_depth(struct krait_buf *out, uint64_t time, uint32_t depth)
{
    uint8_t payload[KRAIT_FRAME_BYTES];
    size_t n;
    uint32_t id = krait_put_depth(payload, depth, &n);
    krait_newest_put(out, time, id, payload, n);
}

static void put_c_call(struct krait_buf *out, uint64_t time, uint32_t code)
{
    uint8_t payload[KRAIT_BYTES_c_call];
    size_t n = krait_put_c_call(payload, &(struct krait_payload_c_call){ .code = code });
    krait_newest_put(out, time, KRAIT_EVENT_c_call, payload, n);
}

/* A frame of depth 0 ends the C calls that it would be inside of. */
static size_t first_shown(const struct krait_newest_calls *calls)
{
    size_t i = at_depth(calls, 0);
    return i < calls->count ? i : 0;
}

/* C calls go on below a run of frames that begins above depth 0 (trace/stack.h): so each is between two runs. */
static void put_stack(struct krait_buf *out, uint64_t time, const struct krait_newest_calls *calls)
{
    uint32_t depth = 0;
    bool settled = false;
    for (size_t i = first_shown(calls); i < calls->count; i++) {
        if (calls->items[i].is_c && !settled)
            put_depth(out, time, depth);
        settled = calls->items[i].is_c;
        if (settled)
            put_c_call(out, time, calls->items[i].code);
        else
            put_frame(out, time, calls->items[i].code, depth++);
    }
    if (!settled)
        put_depth(out, time, depth);
}

bool krait_newest_stacks_have_calls(struct krait_newest_stacks *stacks, uint64_t time)
{
    apply_omits(stacks, time);
    return stacks->now.count;
}

void krait_newest_stacks_put(struct krait_newest_stacks *stacks, struct krait_buf *out, uint64_t time,
                             uint64_t room)
{
    enum { FRAME_MOST = sizeof(struct krait_event_extended) + KRAIT_FRAME_BYTES };
    uint8_t payload[KRAIT_FRAME_BYTES];
    bool some = false;
    apply_omits(stacks, time);
    krait_newest_tasks_put_waiting(&stacks->tasks, out, time, room);
    for (size_t i = 1; i < stacks->left_count; i++) {
        const struct krait_newest_calls *left = &stacks->left[i];
        if (!some) /* readers look at calls from the first greenlet on that is left */
            some = krait_newest_tasks_put_left(&stacks->tasks, out, time, room, i);
        bool fits = out->len + 2 * (left->count + 1) * FRAME_MOST <= room;
        stacks->failed |= left->count && !fits;
        if (left->count && fits)
            put_stack(out, time, left);
        krait_newest_tasks_put_left(&stacks->tasks, out, time, room, i);
        if (!left->count || !fits)
            continue;
        size_t n =
            krait_put_python_switch(payload, &(struct krait_payload_python_switch){ .from = (uint16_t)i });
        krait_newest_put(out, time, KRAIT_EVENT_python_switch, payload, n);
    }
    put_stack(out, time, &stacks->now);
    krait_newest_tasks_put_steps(&stacks->tasks, out, time);
}
