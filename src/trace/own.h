/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of krait itself in recordings: krait.recording() and krait.span() put one around the function that they decorate. Walks
 * skip them, so that their time belongs to their callers.
 */
#ifndef KRAIT_TRACE_OWN_H
#define KRAIT_TRACE_OWN_H

#include "trace/stack.h"

/* Whether a function is one of these. */
bool krait_own_is(const struct krait_func *func);

/* The function that one of these stands before: a task is called after that one. Others stand for themselves; KRAIT_NO_ID for
 * KRAIT_NO_ID, and if memory is out. */
uint32_t krait_own_stands_for(struct krait_trace *trace, uint32_t func);

/* Hands on to `fn` what is not of them. */
struct krait_own {
    const struct krait_trace *trace;
    krait_call_batch_fn *fn;
    void *ctx;
    uint64_t t_ns[KRAIT_STACK_BATCH];
    uint32_t func[KRAIT_STACK_BATCH];
    uint8_t kind[KRAIT_STACK_BATCH];
    uint32_t exception[KRAIT_STACK_BATCH];
    uint32_t left[KRAIT_STACK_BATCH];
};

/* A krait_call_batch_fn; ctx is a struct krait_own. */
int krait_own_pass(void *ctx, const struct krait_call_batch *ops);

#endif
