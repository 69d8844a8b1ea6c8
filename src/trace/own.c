/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/own.h"

#include "event/event.h"
#include "event/own.h"
#include "trace/importer.h"

#include <string.h>

bool krait_own_is(const struct krait_func *func)
{
    return krait_own_file(func->file);
}

/* Samples take the module from the file. */
uint32_t krait_own_stands_for(struct krait_trace *trace, uint32_t func)
{
    if (func == KRAIT_NO_ID || !trace->funcs[func].is_own)
        return func;
    struct krait_func its = trace->funcs[func];
    struct krait_own_before before;
    KRAIT_AUTO_FREE char *file = strdup(its.file);
    if (!file || !krait_own_read(file, &before))
        return file ? func : KRAIT_NO_ID;
    its.module = strcmp(its.module, KRAIT_OWN_MODULE) == 0 ? before.module : its.module;
    its.name = before.qualname;
    its.file = before.file;
    its.site_func = KRAIT_NO_ID;
    its.site_line = 0;
    return krait_trace_intern(trace, &its);
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
        own->left[*n] = ops->left ? ops->left[i] : 0;
        ++*n;
    }
    return i;
}

int krait_own_pass(void *ctx, const struct krait_call_batch *ops)
{
    struct krait_own *own = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc;) {
        struct krait_call_batch kept = { 0, own->t_ns, own->func, own->kind, own->exception, own->left };
        i = copy(own, ops, i, &kept.n);
        rc = kept.n ? own->fn(own->ctx, &kept) : 0;
    }
    return rc;
}
