/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/sampled_lines.h"

#include "analysis/profile.h"
#include "base/array.h"

struct build {
    struct krait_sampled_lines *lines;
    const struct krait_trace *trace;
    struct krait_sample_runs runs; /* of the thread */
    uint32_t next;                 /* of these: the first that begins later */
    uint64_t now_ns;
    struct inner {
        uint32_t func; /* the innermost Python function; without one the innermost function */
        bool is_own;   /* not in a C function that it called */
    } * inner;         /* by depth */
    uint32_t depth, cap;
};

static struct krait_sampled_line *line_of(struct krait_sampled_lines *lines, uint32_t func, uint32_t line)
{
    uint64_t key = (uint64_t)func << 32 | line;
    const uint64_t *known = krait_map_get(&lines->index, key);
    if (known)
        return &lines->items[*known];
    if (!KRAIT_GROW(lines->items, lines->cap, lines->count + 1) ||
        krait_map_put(&lines->index, key, lines->count))
        return NULL;
    struct krait_sampled_line *made = &lines->items[lines->count++];
    *made = (struct krait_sampled_line){ .func = func, .line = line };
    return made;
}

/* Time in what the last sample told. */
static int add_time(struct build *b, uint64_t ns)
{
    static const struct krait_sample_run none = { .is = KRAIT_SAMPLE_UNKNOWN };
    const struct krait_sample_run *run = b->next ? &b->runs.items[b->next - 1] : &none;
    if (!b->depth)
        return 0;
    const struct inner *inner = &b->inner[b->depth - 1];
    struct krait_sampled_line *line = line_of(b->lines, inner->func, run->line);
    if (!line)
        return -ENOMEM;
    line->self_ns += ns;
    line->own_ns += inner->is_own ? ns : 0;
    line->ns[run->is] += ns;
    b->lines->self_ns += ns;
    return 0;
}

static int go_to(struct build *b, uint64_t t_ns)
{
    int rc = 0;
    while (b->now_ns < t_ns && !rc) {
        uint64_t begin_ns = b->runs.items[b->next].begin_ns;
        uint64_t until_ns = KRAIT_MIN(begin_ns, t_ns);
        if (until_ns > b->now_ns)
            rc = add_time(b, until_ns - b->now_ns);
        b->now_ns = KRAIT_MAX(b->now_ns, until_ns);
        b->next += begin_ns <= b->now_ns;
    }
    return rc;
}

static int begin(struct build *b, uint32_t func)
{
    const struct krait_func *of = &b->trace->funcs[func];
    bool is_under = of->kind != KRAIT_FUNC_PYTHON && b->depth &&
                    b->trace->funcs[b->inner[b->depth - 1].func].kind == KRAIT_FUNC_PYTHON;
    if (!KRAIT_GROW(b->inner, b->cap, b->depth + 1))
        return -ENOMEM;
    b->inner[b->depth] = (struct inner){ is_under ? b->inner[b->depth - 1].func : of->base, !is_under };
    b->depth++;
    return 0;
}

static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        rc = go_to(b, ops->t_ns[i]);
        if (krait_op_is_end(ops->kind[i]))
            b->depth -= b->depth > 0;
        else
            rc = rc ? rc : begin(b, ops->func[i]);
    }
    return rc;
}

static int add_thread(struct build *b, uint32_t thread, const struct krait_sampled_lines_options *options)
{
    int rc = krait_sample_runs_read(&b->runs, b->trace, thread, options->range);
    b->next = b->depth = 0;
    b->now_ns = options->range.from_ns;
    return rc || !b->runs.count ? rc
                                : krait_ranges_walk(b->trace, thread, options->range, options->ranges, on_ops,
                                                    b, b->lines->damage, sizeof(b->lines->damage));
}

int krait_sampled_lines_make(struct krait_sampled_lines *lines, const struct krait_trace *trace,
                             const struct krait_sampled_lines_options *options)
{
    struct build b = { .lines = lines, .trace = trace };
    int rc = 0;
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++) {
        if (!options->take_thread || options->take_thread(options->ctx, trace, i))
            rc = add_thread(&b, i, options);
    }
    for (uint32_t i = 0; i < lines->count; i++)
        lines->items[i].error_ns = krait_profile_error(trace, lines->items[i].self_ns, lines->self_ns);
    krait_sample_runs_done(&b.runs);
    free(b.inner);
    return rc;
}

void krait_sampled_lines_done(struct krait_sampled_lines *lines)
{
    free(lines->items);
    krait_map_done(&lines->index);
    *lines = (struct krait_sampled_lines){ 0 };
}
