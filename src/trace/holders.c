/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose self time holds that of functions that were dropped: who called one of them while its calls were still
 * recorded. A caller that has met it only since is not known.
 */
#include "base/array.h"
#include "trace/trace.h"

struct holders {
    struct krait_trace *trace;
    bool *dropped; /* by func */
    uint32_t *stack, depth, cap;
};

static uint32_t base_of(const struct krait_trace *trace, uint32_t func)
{
    return trace->funcs[func].base;
}

static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct holders *h = ctx;
    struct krait_func *funcs = h->trace->funcs;
    for (uint32_t i = 0; i < ops->n; i++) {
        if (krait_op_is_end(ops->kind[i])) {
            h->depth--;
            continue;
        }
        uint32_t func = base_of(h->trace, ops->func[i]);
        if (!KRAIT_GROW(h->stack, h->cap, h->depth + 1))
            return -ENOMEM;
        if (h->depth && h->dropped[func])
            funcs[h->stack[h->depth - 1]].holds_dropped = true;
        h->stack[h->depth++] = func;
    }
    return 0;
}

static int walk_all(struct holders *h)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < h->trace->thread_count; i++) {
        h->depth = 0;
        rc = krait_trace_walk(h->trace, i, KRAIT_RANGE_ALL, on_ops, h, NULL, 0);
    }
    return rc;
}

int krait_trace_find_holders(struct krait_trace *trace)
{
    if (!trace->omitted_count)
        return 0;
    struct holders h = { .trace = trace, .dropped = calloc(trace->func_count, sizeof(*h.dropped)) };
    int rc = h.dropped ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < trace->omitted_count; i++)
        h.dropped[base_of(trace, trace->omitted[i].func)] = true;
    rc = rc ? rc : walk_all(&h);
    for (uint32_t i = 0; !rc && i < trace->func_count; i++)
        trace->funcs[i].holds_dropped = trace->funcs[base_of(trace, i)].holds_dropped;
    free(h.dropped);
    free(h.stack);
    return rc;
}
