/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of one thread, which follows the thread's events. Any event may be missing from the input; the output is
 * always balanced and nested. Begins and ends are handed out in batches of columns (struct krait_call_batch).
 *
 * Rules, where the events alone do not balance:
 *   - an end of a C call while the innermost call is not C is ignored: its begin was not recorded
 *   - an end of a Python call ends the C calls above it first, as cut; with no Python call open it is ignored
 *   - python:frame at a depth where the same code is open leaves it open; else what is there and above is
 *     cut, and the frame begins as KRAIT_OP_LIVE. C calls go with what they were called from
 *   - a run of them that begins above depth 0 follows no loss: a frame that is not open yet was called by the
 *     C calls on top, which stay
 *   - python:stack cuts all Python calls from that depth on, and C calls on top: the loss has most likely
 *     hidden their ends
 *   - what python:frame and python:stack cut ends at the latest time seen before them, where the gap begins:
 *     a gap is the time of what is open on both sides of it. Hence those that follow a gap over the range's end
 *     are told as well: they cut, and nothing begins
 *   - except where the recording is switched off: nothing is lost up to there, and all that is open ends there
 *   - except in recordings of samples: there it ends when the next sample shows that it has gone
 *   - code that is left out from now on is cut wherever it is open, and the C calls that it made; what else was
 *     open inside it goes on as KRAIT_OP_LIVE
 *   - python:switch leaves the stack as it is, C calls included, and takes up another that was left so: calls
 *     that both have from the outermost on stay open, the others of the old are cut and those of the new begin
 *     as KRAIT_OP_LIVE
 *   - at the range's begin what is open begins as KRAIT_OP_LIVE; at its end, and at the end of all, it is cut
 *   - time never goes back: an earlier time counts as the latest one seen
 *
 * Memory is the batch and the stack. Its depth is bounded; deeper calls are not handed out. All stacks of suspended
 * greenlets together have the same bound. What exceeds it is not kept, and such a stack is empty when it is taken up
 * again.
 *
 * Time: a begin or an end costs what it says. A switch, a code that is left out and an end that names its code cost as
 * much as the stacks are deep, which a hostile trace could repeat with a few bytes each. They are paid from a budget of
 * frames: each event of that kind adds KRAIT_STACK_PAY to it, and it begins with KRAIT_STACK_BUDGET, which no program that
 * was recorded is known to need. What it does not pay for is not done: stacks are not kept, code is not cut, the end
 * is ignored; `overdrawn` says so.
 */
#ifndef KRAIT_TRACE_STACK_H
#define KRAIT_TRACE_STACK_H

#include "trace/trace.h"

enum {
    KRAIT_STACK_BATCH = 2048,
    KRAIT_STACK_DEPTH_MAX = 1 << 22,
    KRAIT_STACK_BUDGET = 1 << 30,
    KRAIT_STACK_PAY = 1 << 10,
};

enum krait_stack_lang { KRAIT_STACK_PYTHON = 0, KRAIT_STACK_C = 1 };

struct krait_stack_frame {
    uint32_t func;
    uint32_t code;
    uint32_t lang; /* enum krait_stack_lang */
};

/* Of a greenlet that waits. */
struct krait_stack_left {
    struct krait_stack_frame *frames;
    uint32_t len, cap;
};

struct krait_stack {
    uint64_t t_ns[KRAIT_STACK_BATCH];
    uint32_t func[KRAIT_STACK_BATCH];
    uint8_t kind[KRAIT_STACK_BATCH];
    uint32_t exception[KRAIT_STACK_BATCH]; /* of unwinds alone */
    uint32_t raised;                       /* what the unwind that comes next is of, or KRAIT_NO_ID */
    uint32_t n;                            /* entries in the batch */
    uint32_t len;                          /* open calls */
    uint32_t cap;
    uint32_t py_len; /* open Python calls */
    struct krait_stack_frame *frames;
    uint32_t *py;                  /* frames of Python calls, by depth */
    struct krait_stack_left *left; /* by the numbers of python:switch */
    uint32_t left_cap;
    uint64_t left_frames; /* for which the stacks that were left have room */
    uint64_t budget;      /* frames that may be looked at where an event says little; see above */
    bool overdrawn;
    uint64_t last_ns;
    bool emitting; /* the range has begun */
    bool sampled;  /* frames say the stack up to the next sample */
    bool in_run;   /* of python:frame, which python:stack ends */
    struct krait_range range;
    krait_call_batch_fn *fn;
    void *ctx;
    int rc;           /* of fn, or -ENOMEM; once it is not 0 nothing more is handed out */
    uint64_t over;    /* open calls above the depth that is kept */
    uint64_t orphans; /* ends that had no begin */
};

/* `stack` is zeroed memory; it is large, so not for the C stack of a small thread. */
void krait_stack_init(struct krait_stack *stack, struct krait_range range, krait_call_batch_fn *fn,
                      void *ctx);
void krait_stack_done(struct krait_stack *stack);

/* Of the slow paths below and the batch; not for callers. */
void krait_stack_flush(struct krait_stack *stack);
void krait_stack_start_range(struct krait_stack *stack);
int krait_stack_grow(struct krait_stack *stack);
void krait_stack_cut_c(struct krait_stack *stack, uint64_t t_ns);

/* A python:frame, a python:stack, a python:switch, a code:omit, and the end of the stream at t_ns, which hands out
 * what is left. */
void krait_stack_live(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint32_t code, uint32_t depth);
void krait_stack_settle(struct krait_stack *stack, uint64_t t_ns, uint32_t depth);
/* The recording is switched off at t_ns. */
void krait_stack_end_all(struct krait_stack *stack, uint64_t t_ns);
void krait_stack_switch(struct krait_stack *stack, uint64_t t_ns, uint32_t from, uint32_t to);
void krait_stack_omit(struct krait_stack *stack, uint64_t t_ns, uint32_t code);
/* A packet is missing: what it said of stacks that were left is not known. */
void krait_stack_forget_left(struct krait_stack *stack);
/* Keeps frames as the stack that was left under a number; without memory stack->rc says so. */
void krait_stack_leave(struct krait_stack *stack, uint32_t number, const struct krait_stack_frame *frames,
                       uint32_t len);
/* An end of a C call that says of which code: what is above the innermost of it is cut; without one it is ignored. */
void krait_stack_end_of(struct krait_stack *stack, uint64_t t_ns, uint32_t code);
void krait_stack_finish(struct krait_stack *stack, uint64_t t_ns);

static inline void krait_stack_emit(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint8_t kind)
{
    uint32_t n = stack->n;
    stack->t_ns[n] = t_ns;
    stack->func[n] = func;
    stack->kind[n] = kind;
    if (kind == KRAIT_OP_UNWIND)
        stack->exception[n] = stack->raised;
    stack->n = n + 1;
    if (KRAIT_UNLIKELY(n + 1 == KRAIT_STACK_BATCH))
        krait_stack_flush(stack);
}

static inline uint64_t krait_stack_time(struct krait_stack *stack, uint64_t t_ns)
{
    t_ns = KRAIT_MAX(t_ns, stack->last_ns);
    stack->last_ns = t_ns;
    return t_ns;
}

/* A begin of any kind. hot path */
static inline void krait_stack_begin(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint32_t code,
                                     enum krait_op_kind kind, enum krait_stack_lang lang)
{
    t_ns = krait_stack_time(stack, t_ns);
    if (KRAIT_UNLIKELY(!stack->emitting) && t_ns >= stack->range.from_ns)
        krait_stack_start_range(stack);
    if (KRAIT_UNLIKELY(stack->len == stack->cap) && krait_stack_grow(stack))
        return;
    if (lang == KRAIT_STACK_PYTHON)
        stack->py[stack->py_len++] = stack->len;
    stack->frames[stack->len++] = (struct krait_stack_frame){ func, code, lang };
    if (KRAIT_LIKELY(stack->emitting))
        krait_stack_emit(stack, t_ns, func, (uint8_t)kind);
}

/* Ends the innermost call, whatever it is; there is one. hot path */
static inline void krait_stack_pop(struct krait_stack *stack, uint64_t t_ns, enum krait_op_kind kind)
{
    const struct krait_stack_frame *top = &stack->frames[--stack->len];
    stack->py_len -= top->lang == KRAIT_STACK_PYTHON;
    if (KRAIT_LIKELY(stack->emitting))
        krait_stack_emit(stack, t_ns, top->func, (uint8_t)kind);
}

/* An end of a call in that language. hot path */
static inline void krait_stack_end(struct krait_stack *stack, uint64_t t_ns, enum krait_op_kind kind,
                                   enum krait_stack_lang lang)
{
    t_ns = krait_stack_time(stack, t_ns);
    if (KRAIT_UNLIKELY(!stack->emitting) && t_ns > stack->range.from_ns)
        krait_stack_start_range(stack);
    if (KRAIT_UNLIKELY(stack->over)) {
        stack->over--;
        return;
    }
    if (KRAIT_UNLIKELY(!stack->len || stack->frames[stack->len - 1].lang != lang)) {
        if (lang == KRAIT_STACK_PYTHON)
            krait_stack_cut_c(stack, t_ns);
        if (lang == KRAIT_STACK_C || !stack->len) {
            stack->orphans++;
            return;
        }
    }
    krait_stack_pop(stack, t_ns, kind);
}

#endif
