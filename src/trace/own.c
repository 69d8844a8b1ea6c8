/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/own.h"

#include "event/event.h"

#include <string.h>

bool krait_own_is(const struct krait_func *func)
{
    return strcmp(func->module, KRAIT_OWN_MODULE) == 0 && strcmp(func->file, KRAIT_OWN_FILE) == 0;
}

/* As many of the ops from `from` on as have room; returns where it came to. */
static uint32_t copy(struct krait_own *own, const struct krait_call_batch *ops, uint32_t from, uint32_t *n)
{
    uint32_t i = from;
    for (*n = 0; i < ops->n && *n < KRAIT_STACK_BATCH; i++) {
        if (own->trace->funcs[ops->func[i]].is_own)
            continue;
        own->t_ns[*n] = ops->t_ns[i];
        own->func[*n] = ops->func[i];
        own->kind[*n] = ops->kind[i];
        own->exception[*n] = ops->exception[i];
        ++*n;
    }
    return i;
}

int krait_own_pass(void *ctx, const struct krait_call_batch *ops)
{
    struct krait_own *own = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc;) {
        struct krait_call_batch kept = { 0, own->t_ns, own->func, own->kind, own->exception };
        i = copy(own, ops, i, &kept.n);
        rc = kept.n ? own->fn(own->ctx, &kept) : 0;
    }
    return rc;
}
