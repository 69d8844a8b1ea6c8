/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of one thread, which follows the thread's events. Any event may be missing from the input; the output is
 * always balanced and nested. Begins and ends are handed out in batches of columns (struct krait_call_batch).
 *
 * Rules for events that do not balance:
 *   - the end of a C call is ignored if the innermost call is not C: its begin was not recorded
 *   - the end of a Python call first cuts the C calls above it; if no Python call is open, it is ignored
 *   - python:frame leaves its call open if the same code is open at its depth. Otherwise it cuts all calls from that
 *     depth on, and the frame begins as KRAIT_OP_LIVE. C calls end with their callers
 *   - a series of python:frame that begins above depth 0 follows no loss: the C calls on top called the first frame that
 *     is not open yet, and stay open
 *   - python:stack cuts all Python calls from its depth on, and C calls on top, because most likely their ends were lost
 *   - calls that python:frame and python:stack cut end at the latest time seen before, where the gap begins; so a gap
 *     belongs to the calls that are open on both sides of it. Therefore the events right after a gap across the end of
 *     the range count too: they cut calls, and begin none
 *   - where the recording was switched off, or what it records was changed, nothing was lost before: all open calls end there
 *   - in recordings of samples, a call ends at the next sample that does not have it
 *   - code:omit cuts the calls of that code wherever they are open, and the C calls that they made; other calls inside
 *     them continue as KRAIT_OP_LIVE
 *   - python:switch stores the stack, with its C calls, and restores another one. The calls of the old stack are cut, and those
 *     of the new one begin as KRAIT_OP_LIVE, with the numbers under which they were cut
 *   - open calls begin as KRAIT_OP_LIVE at the begin of the range; they are cut at its end, and at the end of the thread. A call
 *     that ends just there is not cut
 *   - time never goes back: an earlier time counts as the latest one seen
 *
 * Only the batch and the stack are in memory. The depth is bounded, and deeper calls are not handed out. All stacks of
 * suspended greenlets together have the same bound; those beyond it are not stored, and are empty when they are
 * restored.
 *
 * Time: a plain begin or end takes constant time. A switch, a code:omit and an end that names its code take time in
 * proportion to the depth of the stacks, and a hostile trace could have many of them, with a few bytes each. So they use
 * up a budget of frames, which begins with KRAIT_STACK_BUDGET, far more than any recorded program is known to need; each
 * such event adds KRAIT_STACK_PAY. When the budget is used up, stacks are not stored, code is not cut, and such ends are
 * ignored; `overdrawn` is then set.
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
    uint32_t lang : 1;  /* enum krait_stack_lang */
    uint32_t left : 31; /* krait_call_batch.left, if a switch has cut it once; else 0 */
};

/* The stack of a suspended greenlet. */
struct krait_stack_left {
    struct krait_stack_frame *frames;
    uint32_t len, cap;
};

struct krait_stack {
    uint64_t t_ns[KRAIT_STACK_BATCH];
    uint32_t func[KRAIT_STACK_BATCH];
    uint8_t kind[KRAIT_STACK_BATCH];
    uint32_t exception[KRAIT_STACK_BATCH]; /* only of unwinds */
    uint32_t left_as
        [KRAIT_STACK_BATCH]; /* only of cuts, and of calls that were open before: krait_call_batch.left */
    uint32_t raised;         /* the exception of the next unwind, or KRAIT_NO_ID */
    uint32_t leaves;         /* the next one's left_as */
    uint32_t calls_left;     /* numbers that were given */
    uint32_t n;              /* entries in the batch */
    uint32_t len;            /* open calls */
    uint32_t cap;
    uint32_t py_len; /* open Python calls */
    struct krait_stack_frame *frames;
    uint32_t *py;                  /* frames of Python calls, by depth */
    struct krait_stack_left *left; /* by the numbers of python:switch */
    uint32_t left_cap;
    uint64_t left_frames; /* capacity of all stacks in `left`, in frames */
    uint64_t budget;      /* see above */
    bool overdrawn;
    uint64_t last_ns;
    bool emitting; /* the range has begun */
    bool sampled;  /* a recording of samples */
    bool in_run;   /* in a series of python:frame, which python:stack ends */
    struct krait_range range;
    krait_call_batch_fn *fn;
    void *ctx;
    int rc;           /* the result of fn, or -ENOMEM; if it is not 0, nothing more is handed out */
    uint64_t over;    /* open calls deeper than the limit */
    uint64_t orphans; /* ends without a begin */
};

/* `stack` is zeroed memory. It is large: do not put it on the C stack of a small thread. */
void krait_stack_init(struct krait_stack *stack, struct krait_range range, krait_call_batch_fn *fn,
                      void *ctx);
void krait_stack_done(struct krait_stack *stack);

/* For the functions below; not for callers. */
void krait_stack_flush(struct krait_stack *stack);
void krait_stack_start_range(struct krait_stack *stack);
int krait_stack_grow(struct krait_stack *stack);
void krait_stack_cut_c(struct krait_stack *stack, uint64_t t_ns);

/* A python:frame and a python:stack. */
void krait_stack_live(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint32_t code, uint32_t depth);
void krait_stack_settle(struct krait_stack *stack, uint64_t t_ns, uint32_t depth);
/* The recording is switched off at t_ns. */
void krait_stack_end_all(struct krait_stack *stack, uint64_t t_ns);
/* A python:switch and a code:omit. */
void krait_stack_switch(struct krait_stack *stack, uint64_t t_ns, uint32_t from, uint32_t to);
void krait_stack_omit(struct krait_stack *stack, uint64_t t_ns, uint32_t code);
/* A packet is missing, and with it switches of greenlets: forgets the stored stacks. */
void krait_stack_forget_left(struct krait_stack *stack);
/* Stores frames as the stack of a suspended greenlet. Sets stack->rc if memory is out. */
void krait_stack_leave(struct krait_stack *stack, uint32_t number, const struct krait_stack_frame *frames,
                       uint32_t len);
/* The end of a C call that names its code: cuts the calls above the innermost call of that code; ignored if none is open. */
void krait_stack_end_of(struct krait_stack *stack, uint64_t t_ns, uint32_t code);
/* The end of the stream: cuts all open calls and hands out the rest. */
void krait_stack_finish(struct krait_stack *stack, uint64_t t_ns);

static inline void krait_stack_emit(struct krait_stack *stack, uint64_t t_ns, uint32_t func, uint8_t kind)
{
    uint32_t n = stack->n;
    stack->t_ns[n] = t_ns;
    stack->func[n] = func;
    stack->kind[n] = kind;
    if (kind == KRAIT_OP_UNWIND)
        stack->exception[n] = stack->raised;
    if (kind == KRAIT_OP_CUT || kind == KRAIT_OP_LIVE)
        stack->left_as[n] = stack->leaves;
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
    stack->frames[stack->len++] = (struct krait_stack_frame){ func, code, lang, 0 };
    if (KRAIT_LIKELY(stack->emitting))
        krait_stack_emit(stack, t_ns, func, (uint8_t)kind);
}

/* Ends the innermost call, of any kind; there must be one. hot path */
static inline void krait_stack_pop(struct krait_stack *stack, uint64_t t_ns, enum krait_op_kind kind)
{
    const struct krait_stack_frame *top = &stack->frames[--stack->len];
    stack->py_len -= top->lang == KRAIT_STACK_PYTHON;
    if (KRAIT_LIKELY(stack->emitting))
        krait_stack_emit(stack, t_ns, top->func, (uint8_t)kind);
}

/* The end of a call in that language. hot path */
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
