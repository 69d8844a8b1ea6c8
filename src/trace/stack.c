/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/stack.h"

#include "base/array.h"

#include <string.h>

/* Numbers of calls: see krait_stack_frame. */
#define CALLS_MOST ((1u << 31) - 1)

void krait_stack_init(struct krait_stack *stack, struct krait_range range, krait_call_batch_fn *fn, void *ctx)
{
    stack->range = range;
    stack->budget = KRAIT_STACK_BUDGET;
    stack->emitting = range.from_ns == 0;
    stack->fn = fn;
    stack->ctx = ctx;
}

void krait_stack_done(struct krait_stack *stack)
{
    for (uint32_t i = 0; i < stack->left_cap; i++)
        free(stack->left[i].frames);
    free(stack->left);
    free(stack->frames);
    free(stack->py);
}

void krait_stack_flush(struct krait_stack *stack)
{
    struct krait_call_batch ops = {
        .n = stack->n,
        .t_ns = stack->t_ns,
        .func = stack->func,
        .kind = stack->kind,
        .exception = stack->exception,
        .left = stack->left_as,
    };
    stack->n = 0;
    if (ops.n && !stack->rc)
        stack->rc = stack->fn(stack->ctx, &ops);
}

void krait_stack_start_range(struct krait_stack *stack)
{
    uint32_t as = stack->leaves; /* of the call that goes on just here */
    stack->emitting = true;
    stack->leaves = 0;
    for (uint32_t i = 0; i < stack->len; i++)
        krait_stack_emit(stack, stack->range.from_ns, stack->frames[i].func, KRAIT_OP_LIVE);
    stack->leaves = as;
}

int krait_stack_grow(struct krait_stack *stack)
{
    if (stack->cap >= KRAIT_STACK_DEPTH_MAX) {
        stack->over++;
        return -E2BIG;
    }
    uint32_t frame_cap = stack->cap, py_cap = stack->cap, need = KRAIT_MAX(stack->cap + 1, 256u);
    if (!KRAIT_GROW(stack->frames, frame_cap, need) || !KRAIT_GROW(stack->py, py_cap, need)) {
        stack->rc = stack->rc ? stack->rc : -ENOMEM;
        return -ENOMEM;
    }
    stack->cap = KRAIT_MIN(frame_cap, py_cap);
    return 0;
}

static void cut_to(struct krait_stack *stack, uint64_t t_ns, uint32_t len)
{
    while (stack->len > len)
        krait_stack_pop(stack, t_ns, KRAIT_OP_CUT);
}

void krait_stack_cut_c(struct krait_stack *stack, uint64_t t_ns)
{
    while (stack->len && stack->frames[stack->len - 1].lang == KRAIT_STACK_C)
        krait_stack_pop(stack, t_ns, KRAIT_OP_CUT);
}

/* Cuts all that is not the first `depth` Python calls and what those are inside of. */
static void cut_to_depth(struct krait_stack *stack, uint64_t t_ns, uint32_t depth)
{
    if (depth < stack->py_len)
        cut_to(stack, t_ns, stack->py[depth]);
    krait_stack_cut_c(stack, t_ns);
}

/* Re-synchronising says where the range's begin lies as any begin does. */
static uint64_t resync_time(struct krait_stack *stack, uint64_t t_ns)
{
    t_ns = krait_stack_time(stack, t_ns);
    if (!stack->emitting && t_ns > stack->range.from_ns)
        krait_stack_start_range(stack);
    return t_ns;
}

/* When what has gone has ended. */
static uint64_t gone_at(struct krait_stack *stack, uint64_t t_ns)
{
    return stack->sampled ? resync_time(stack, t_ns) : stack->last_ns;
}

/* What has gone ended somewhere in the time that nothing is known of: it is cut at the beginning of that, so
 * that a gap is not charged to what was innermost then, but to what is open on both sides. */
void krait_stack_live(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint32_t code, uint32_t depth)
{
    bool below_is_right = depth && !stack->in_run;
    stack->over = 0;
    stack->in_run = true;
    if (depth < stack->py_len && stack->frames[stack->py[depth]].code == code)
        return;
    if (!below_is_right || depth != stack->py_len)
        cut_to_depth(stack, gone_at(stack, t_ns), depth);
    if (t_ns < stack->range.to_ns)
        krait_stack_begin(stack, resync_time(stack, t_ns), func, code, KRAIT_OP_LIVE, KRAIT_STACK_PYTHON);
}

void krait_stack_settle(struct krait_stack *stack, uint64_t t_ns, uint32_t depth)
{
    stack->over = 0;
    stack->in_run = false;
    cut_to_depth(stack, gone_at(stack, t_ns), depth);
    resync_time(stack, t_ns);
}

void krait_stack_end_all(struct krait_stack *stack, uint64_t t_ns)
{
    stack->over = 0;
    stack->in_run = false;
    cut_to(stack, resync_time(stack, t_ns), 0);
}

/* NULL without memory. */
static struct krait_stack_left *left_under(struct krait_stack *stack, uint32_t number)
{
    uint32_t before = stack->left_cap;
    if (!KRAIT_GROW(stack->left, stack->left_cap, number + 1)) {
        stack->rc = stack->rc ? stack->rc : -ENOMEM;
        return NULL;
    }
    if (stack->left_cap > before)
        memset(stack->left + before, 0, (stack->left_cap - before) * sizeof(*stack->left));
    return &stack->left[number];
}

/* Whether the budget pays for so many frames. */
static bool afford(struct krait_stack *stack, uint64_t frames)
{
    stack->budget += KRAIT_STACK_PAY;
    bool enough = frames <= stack->budget;
    if (enough)
        stack->budget -= frames;
    stack->overdrawn |= !enough;
    return enough;
}

void krait_stack_forget_left(struct krait_stack *stack)
{
    for (uint32_t i = 0; i < stack->left_cap; i++)
        stack->left[i].len = 0;
}

void krait_stack_leave(struct krait_stack *stack, uint32_t number, const struct krait_stack_frame *frames,
                       uint32_t len)
{
    struct krait_stack_left *left = left_under(stack, number);
    if (!left)
        return;
    uint32_t before = left->cap;
    left->len = 0;
    if (len > before && stack->left_frames + len - before > KRAIT_STACK_DEPTH_MAX)
        return;
    if (!KRAIT_GROW(left->frames, left->cap, len)) {
        stack->rc = stack->rc ? stack->rc : -ENOMEM;
        return;
    }
    stack->left_frames += left->cap - before;
    if (len)
        memcpy(left->frames, frames, len * sizeof(*left->frames));
    left->len = len;
}

/* A number for each call that goes on with its stack. */
static void number_calls(struct krait_stack *stack)
{
    for (uint32_t i = 0; i < stack->len; i++) {
        if (!stack->frames[i].left && stack->calls_left < CALLS_MOST)
            stack->frames[i].left = ++stack->calls_left;
    }
}

static void suspend_to(struct krait_stack *stack, uint64_t t_ns, uint32_t len)
{
    while (stack->len > len) {
        stack->leaves = stack->frames[stack->len - 1].left;
        krait_stack_pop(stack, t_ns, KRAIT_OP_CUT);
    }
    stack->leaves = 0;
}

/* It keeps its number, so that there are no more of them than begins in the trace. */
static void go_on(struct krait_stack *stack, uint64_t t_ns, struct krait_stack_frame frame, uint32_t as)
{
    uint32_t len = stack->len;
    stack->leaves = as;
    krait_stack_begin(stack, t_ns, frame.func, frame.code, KRAIT_OP_LIVE, frame.lang);
    stack->leaves = 0;
    if (stack->len > len)
        stack->frames[len].left = frame.left;
}

void krait_stack_switch(struct krait_stack *stack, uint64_t t_ns, uint32_t from, uint32_t to)
{
    static const struct krait_stack_left empty;
    stack->over = 0;
    t_ns = resync_time(stack, t_ns);
    bool is_known = to && to < stack->left_cap;
    if (!stack->overdrawn && afford(stack, (uint64_t)stack->len + (is_known ? stack->left[to].len : 0))) {
        number_calls(stack);
        krait_stack_leave(stack, from, stack->frames, stack->len);
    }
    is_known = !stack->overdrawn && to && to < stack->left_cap;
    const struct krait_stack_left *next = is_known ? &stack->left[to] : &empty;
    uint32_t same = 0;
    while (same < KRAIT_MIN(stack->len, next->len) && stack->frames[same].left &&
           stack->frames[same].left == next->frames[same].left)
        same++;
    suspend_to(stack, t_ns, same);
    for (uint32_t i = same; i < next->len && t_ns < stack->range.to_ns; i++)
        go_on(stack, t_ns, next->frames[i], next->frames[i].left);
}

/* Whether a call goes with code that is left out; `caller`: whether what called it does. */
static bool goes_with(const struct krait_stack_frame *frame, uint32_t code, bool caller)
{
    return frame->code == code || (caller && frame->lang == KRAIT_STACK_C);
}

static void omit_left(struct krait_stack_left *left, uint32_t code)
{
    uint32_t kept = 0;
    bool gone = false;
    for (uint32_t i = 0; i < left->len; i++) {
        gone = goes_with(&left->frames[i], code, gone);
        if (!gone)
            left->frames[kept++] = left->frames[i];
    }
    left->len = kept;
}

/* The lowest open call of that code, or len. */
static uint32_t lowest_of(const struct krait_stack *stack, uint32_t code)
{
    uint32_t i = 0;
    while (i < stack->len && stack->frames[i].code != code)
        i++;
    return i;
}

void krait_stack_omit(struct krait_stack *stack, uint64_t t_ns, uint32_t code)
{
    if (!afford(stack, (uint64_t)stack->left_cap + stack->left_frames + stack->len))
        return;
    for (uint32_t i = 0; i < stack->left_cap; i++)
        omit_left(&stack->left[i], code);
    uint32_t from = lowest_of(stack, code);
    if (from == stack->len)
        return;
    t_ns = resync_time(stack, t_ns);
    uint32_t len = stack->len;
    cut_to(stack, t_ns, from);
    bool gone = false;
    for (uint32_t i = from; i < len; i++) { /* frames above len are still as they were */
        struct krait_stack_frame frame = stack->frames[i];
        gone = goes_with(&frame, code, gone);
        if (!gone)
            go_on(stack, t_ns, frame, 0);
    }
}

void krait_stack_end_of(struct krait_stack *stack, uint64_t t_ns, uint32_t code)
{
    uint32_t open = stack->len;
    bool is_top = open && stack->frames[open - 1].code == code;
    if (!is_top && !afford(stack, open))
        open = 0;
    while (open && stack->frames[open - 1].code != code)
        open--;
    t_ns = resync_time(stack, t_ns);
    if (open) {
        stack->over = 0;
        cut_to(stack, t_ns, open);
        krait_stack_pop(stack, t_ns, KRAIT_OP_RETURN);
    } else
        stack->orphans++;
}

void krait_stack_finish(struct krait_stack *stack, uint64_t t_ns)
{
    t_ns = KRAIT_MIN(krait_stack_time(stack, t_ns), stack->range.to_ns);
    if (!stack->emitting && t_ns > stack->range.from_ns)
        krait_stack_start_range(stack);
    cut_to(stack, t_ns, 0);
    krait_stack_flush(stack);
}
