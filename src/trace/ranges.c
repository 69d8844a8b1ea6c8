/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ranges.h"

#include "base/array.h"

enum { BATCH = 1024 };

static int by_begin(const void *a, const void *b)
{
    const struct krait_range *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

void krait_ranges_join(struct krait_ranges *ranges)
{
    struct krait_range *items = ranges->items;
    uint32_t kept = 0;
    if (ranges->count)
        qsort(items, ranges->count, sizeof(*items), by_begin);
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (items[i].from_ns >= items[i].to_ns)
            continue;
        if (kept && items[i].from_ns <= items[kept - 1].to_ns)
            items[kept - 1].to_ns = KRAIT_MAX(items[kept - 1].to_ns, items[i].to_ns);
        else
            items[kept++] = items[i];
    }
    ranges->count = kept;
}

uint64_t krait_ranges_sum(const struct krait_ranges *ranges)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < ranges->count; i++)
        sum += ranges->items[i].to_ns - ranges->items[i].from_ns;
    return sum;
}

static uint32_t range_after(const struct krait_ranges *ranges, uint64_t t_ns)
{
    return (uint32_t)KRAIT_PARTITION_POINT(i, ranges->count, ranges->items[i].to_ns <= t_ns);
}

bool krait_ranges_have(const struct krait_ranges *ranges, uint64_t t_ns)
{
    uint32_t i = range_after(ranges, t_ns);
    return !ranges->count || (i < ranges->count && ranges->items[i].from_ns <= t_ns);
}

uint64_t krait_ranges_overlap(const struct krait_ranges *ranges, uint64_t begin_ns, uint64_t end_ns,
                              bool *some)
{
    uint64_t sum = 0;
    *some = !ranges->count;
    if (!ranges->count)
        return end_ns - begin_ns;
    for (uint32_t i = range_after(ranges, begin_ns); i < ranges->count; i++) {
        const struct krait_range *range = &ranges->items[i];
        if (range->from_ns >= end_ns && !(range->from_ns == begin_ns && begin_ns == end_ns))
            break;
        uint64_t from = KRAIT_MAX(range->from_ns, begin_ns), to = KRAIT_MIN(range->to_ns, end_ns);
        sum += to > from ? to - from : 0;
        *some = true;
    }
    return sum;
}

/* ---- calls ---- */

struct open {
    uint32_t *funcs;
    uint32_t len, cap;
};

struct clipper {
    const struct krait_ranges *ranges;
    uint32_t at; /* the range that time is in, or before */
    bool inside;
    struct open open;
    uint64_t t_ns[BATCH];
    uint32_t func[BATCH], exception[BATCH], left[BATCH];
    uint8_t kind[BATCH];
    uint32_t n;
    krait_call_batch_fn *fn;
    void *ctx;
    int rc; /* of fn, or -ENOMEM; once it is not 0 nothing more is handed out */
};

static void flush(struct clipper *c)
{
    const struct krait_call_batch batch = { c->n, c->t_ns, c->func, c->kind, c->exception, c->left };
    if (c->n && !c->rc)
        c->rc = c->fn(c->ctx, &batch);
    c->n = 0;
}

static void emit(struct clipper *c, uint64_t t_ns, uint32_t func, uint8_t kind, uint32_t exception,
                 uint32_t left)
{
    c->t_ns[c->n] = t_ns;
    c->func[c->n] = func;
    c->kind[c->n] = kind;
    c->left[c->n] = left;
    c->exception[c->n++] = exception;
    if (c->n == BATCH)
        flush(c);
}

static void enter(struct clipper *c)
{
    c->inside = true;
    for (uint32_t i = 0; i < c->open.len; i++)
        emit(c, c->ranges->items[c->at].from_ns, c->open.funcs[i], KRAIT_OP_LIVE, KRAIT_NO_ID, 0);
}

static void leave(struct clipper *c)
{
    for (uint32_t i = c->open.len; i-- > 0;)
        emit(c, c->ranges->items[c->at].to_ns, c->open.funcs[i], KRAIT_OP_CUT, KRAIT_NO_ID, 0);
    c->inside = false;
    c->at++;
}

/* Edges that lie before what comes next, at t_ns. What ends where a range begins has no part in it; what
 * ends where it ends was in it to its own end. */
static void go_to(struct clipper *c, uint64_t t_ns, bool is_end)
{
    while (c->at < c->ranges->count) {
        const struct krait_range *range = &c->ranges->items[c->at];
        if (!c->inside && (t_ns > range->from_ns || (t_ns == range->from_ns && !is_end)))
            enter(c);
        if (!c->inside || t_ns < range->to_ns || (t_ns == range->to_ns && is_end))
            return;
        leave(c);
    }
}

/* Only these kinds have one. */
static uint32_t left_of(const struct krait_call_batch *ops, uint32_t i)
{
    return ops->left && (ops->kind[i] == KRAIT_OP_CUT || ops->kind[i] == KRAIT_OP_LIVE) ? ops->left[i] : 0;
}

static int clip(void *ctx, const struct krait_call_batch *ops)
{
    struct clipper *c = ctx;
    for (uint32_t i = 0; i < ops->n && !c->rc; i++) {
        bool is_end = krait_op_is_end(ops->kind[i]);
        go_to(c, ops->t_ns[i], is_end);
        if (!is_end && !KRAIT_GROW(c->open.funcs, c->open.cap, c->open.len + 1))
            return -ENOMEM;
        if (is_end)
            c->open.len--;
        else
            c->open.funcs[c->open.len++] = ops->func[i];
        if (c->inside)
            emit(c, ops->t_ns[i], ops->func[i], ops->kind[i],
                 ops->kind[i] == KRAIT_OP_UNWIND ? ops->exception[i] : KRAIT_NO_ID, left_of(ops, i));
    }
    return c->rc;
}

int krait_ranges_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                      const struct krait_ranges *ranges, krait_call_batch_fn *fn, void *ctx, char *damage,
                      size_t size)
{
    if (!ranges || !ranges->count)
        return krait_trace_walk(trace, thread, range, fn, ctx, damage, size);
    KRAIT_AUTO_FREE struct clipper *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->ranges = ranges;
    c->fn = fn;
    c->ctx = ctx;
    int rc = krait_trace_walk(trace, thread, range, clip, c, damage, size);
    if (!rc)
        flush(c);
    rc = rc ? rc : c->rc;
    free(c->open.funcs);
    return rc;
}
