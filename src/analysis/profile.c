/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/profile.h"

#include "analysis/cost.h"
#include "base/array.h"
#include "base/hist.h"
#include "trace/ranges.h"
#include "trace/stack.h"

#include <math.h>
#include <string.h>

/* What is counted of a group: one cache line, for an event touches it twice. */
struct stat {
    uint64_t self_ns, total_ns, sum_ns;
    uint64_t calls;
    uint64_t min_ns, max_ns;
    struct krait_hist hist; /* its `owners` counts the activations that are open now */
} __attribute__((aligned(64)));

/* An activation that is open. */
struct frame {
    uint64_t begin_ns;
    uint32_t group;
    uint32_t is_part; /* 1: its begin was not recorded */
};

struct build {
    const struct krait_trace *trace;
    const struct krait_profile_options *options;
    uint32_t *group_of; /* by func; NULL: all of a walk goes to `group` */
    uint32_t group;
    uint32_t group_count;
    uint32_t *sample; /* by group: a func, thread or process that belongs to it, to name it by */
    bool *python;     /* by group: there is a Python function in it */
    bool *holds;      /* by group: a function of it ran that holds dropped ones; NULL: nothing was dropped */
    uint64_t *live;   /* by group: runs of calls that were open already */
    uint64_t *cut;    /* by group: runs of which nobody knows how long they took */
    krait_call_batch_fn *take; /* of a walk */
    struct stat *stats;
    struct krait_wall_sums *sums; /* the profile's */
    bool has_switches;            /* of greenlets */
    struct krait_map raised;      /* what left which group */
    struct frame *frames;
    uint32_t depth, cap;
    uint64_t last_ns;
    struct krait_wall_track track; /* of cycles; without a clock none */
    struct krait_wall_clock clock;
    uint64_t *cycles; /* of a batch's times */
    struct krait_cost_clock cost;
};

/* --- groups --- */

struct line_key {
    uint32_t func, line, callee;
};

/* The text that makes a function's group; functions of equal text are one group. */
static void group_key(const struct krait_trace *trace, const struct krait_func *func,
                      enum krait_profile_by by, const void **key, size_t *n, struct line_key *line)
{
    uint32_t site = func->site_func;
    switch (by) {
    case KRAIT_BY_MODULE:
        *key = func->module;
        *n = strlen(func->module);
        return;
    case KRAIT_BY_FILE:
        *key = func->file;
        *n = strlen(func->file);
        return;
    case KRAIT_BY_LINE:
        *line = (struct line_key){ site == KRAIT_NO_ID ? KRAIT_NO_ID : trace->funcs[site].base,
                                   func->site_line, func->base };
        break;
    default:
        *line = (struct line_key){ .func = func->base };
    }
    *key = line;
    *n = sizeof(*line);
}

static int group_funcs(struct build *b)
{
    const struct krait_trace *trace = b->trace;
    struct krait_strtab groups = { 0 };
    int rc = -ENOMEM;
    b->group_of = calloc(trace->func_count + 1, sizeof(*b->group_of));
    b->sample = calloc(trace->func_count + 1, sizeof(*b->sample));
    b->python = calloc(trace->func_count + 1, sizeof(*b->python));
    if (!b->group_of || !b->sample || !b->python)
        goto out;
    for (uint32_t i = 0; i < trace->func_count; i++) {
        const void *key;
        size_t n;
        struct line_key line;
        group_key(trace, &trace->funcs[i], b->options->by, &key, &n, &line);
        uint32_t group = krait_strtab_add(&groups, key, n);
        if (group == KRAIT_NO_ID)
            goto out;
        if (group == b->group_count)
            b->sample[b->group_count++] = i;
        b->group_of[i] = group;
        b->python[group] |= trace->funcs[i].kind == KRAIT_FUNC_PYTHON;
    }
    rc = 0;
out:
    krait_strtab_done(&groups);
    return rc;
}

/* By thread or process: groups are theirs. */
static int group_walks(struct build *b)
{
    b->group_count = b->options->by == KRAIT_BY_THREAD ? b->trace->thread_count : b->trace->process_count;
    b->sample = calloc(b->group_count + 1, sizeof(*b->sample));
    b->python = calloc(b->group_count + 1, sizeof(*b->python));
    if (!b->sample || !b->python)
        return -ENOMEM;
    for (uint32_t i = 0; i < b->group_count; i++) {
        b->sample[i] = i;
        b->python[i] = true;
    }
    return 0;
}

static bool by_walk(enum krait_profile_by by)
{
    return by == KRAIT_BY_THREAD || by == KRAIT_BY_PROCESS;
}

/* --- the pass --- */

/* There is always room for one frame above the innermost. */
static KRAIT_COLD int grow_frames(struct build *b)
{
    return KRAIT_GROW(b->frames, b->cap, b->cap + 1) ? 0 : -ENOMEM;
}

/* Calls that were open already are rare: most batches have none. */
static void count_live(struct build *b, const struct krait_call_batch *ops)
{
    const uint8_t *at = ops->kind, *end = ops->kind + ops->n;
    while ((at = memchr(at, KRAIT_OP_LIVE, (size_t)(end - at)))) {
        b->live[b->group_of ? b->group_of[ops->func[at - ops->kind]] : b->group]++;
        b->has_switches |= ops->left && ops->left[at - ops->kind];
        at++;
    }
}

/* Times of a run that was recorded from its begin to its end. */
static int add_duration(struct stat *stat, uint64_t ns)
{
    stat->sum_ns += ns;
    stat->min_ns = KRAIT_MIN(stat->min_ns, ns);
    stat->max_ns = KRAIT_MAX(stat->max_ns, ns);
    return krait_hist_add(&stat->hist, ns);
}

/* The hot path: state that changes with each event is in registers. */
static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    count_live(b, ops);
    struct stat *const stats = b->stats;
    const uint32_t *const group_of = b->group_of;
    uint64_t last_ns = b->last_ns;
    uint32_t depth = b->depth;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        uint64_t t_ns = ops->t_ns[i];
        uint8_t kind = ops->kind[i];
        struct frame *top = &b->frames[depth]; /* one above the innermost */
        if (krait_op_is_end(kind)) {
            struct stat *stat = &stats[top[-1].group];
            uint64_t ns = t_ns - top[-1].begin_ns;
            stat->self_ns += t_ns - last_ns;
            stat->total_ns += --stat->hist.owners ? 0 : ns;
            if (KRAIT_UNLIKELY(top[-1].is_part || (kind == KRAIT_OP_CUT && krait_op_is_cut(ops, i))))
                b->cut[top[-1].group]++;
            else
                rc = add_duration(stat, ns);
            if (KRAIT_UNLIKELY(kind == KRAIT_OP_UNWIND))
                rc = rc ? rc : krait_raised_add(&b->raised, top[-1].group, ops->exception[i], 1);
            depth--;
        } else {
            uint32_t group = group_of ? group_of[ops->func[i]] : b->group;
            if (depth)
                stats[top[-1].group].self_ns += t_ns - last_ns;
            stats[group].hist.owners++;
            stats[group].calls += kind == KRAIT_OP_CALL;
            *top = (struct frame){ t_ns, group, kind == KRAIT_OP_LIVE && krait_op_is_cut(ops, i) };
            if (KRAIT_UNLIKELY(++depth == b->cap))
                rc = grow_frames(b);
        }
        last_ns = t_ns;
    }
    b->last_ns = last_ns;
    b->depth = depth;
    return rc;
}

/* A pass of its own: what is not split does not pay for it. */
static int on_split_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    struct krait_cost_clock *cost = b->options->corrected ? &b->cost : NULL;
    int rc = krait_wall_sums_add(b->sums, ops, b->group_of, b->group, cost);
    struct krait_call_batch timed = *ops;
    timed.t_ns = cost ? cost->t_ns : ops->t_ns;
    return rc ? rc : on_ops(b, &timed);
}

/* On another clock: that of the cycles of the CPUs that the thread ran on. */
static int on_clocked_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    struct krait_call_batch clocked = *ops;
    clocked.t_ns = b->cycles;
    for (uint32_t i = 0; i < ops->n; i++)
        b->cycles[i] = krait_wall_clock_go(&b->clock, ops->t_ns[i]);
    return on_ops(b, &clocked);
}

static int on_corrected_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    const struct krait_call_batch corrected = krait_cost_take(&b->cost, ops);
    return on_ops(b, &corrected);
}

/* Where functions were dropped: whose time is whose is said of what ran in the range. */
static int on_marked_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    for (uint32_t i = 0; i < ops->n; i++) {
        if (b->trace->funcs[ops->func[i]].holds_dropped)
            b->holds[b->group_of ? b->group_of[ops->func[i]] : b->group] = true;
    }
    return b->take(ctx, ops);
}

static int start_clock(struct build *b, uint32_t thread)
{
    b->cycles = b->cycles ? b->cycles : malloc(KRAIT_STACK_BATCH * sizeof(*b->cycles));
    krait_wall_track_done(&b->track);
    if (!b->cycles || krait_wall_track_new(&b->track, b->options->clock, thread))
        return -ENOMEM;
    b->clock = (struct krait_wall_clock){ .at = b->track.items };
    return 0;
}

static int start_thread(struct build *b, uint32_t thread)
{
    int rc = b->sums ? krait_wall_sums_thread(b->sums, thread) : 0;
    if (!rc && b->options->corrected)
        rc = krait_cost_begin(&b->cost, b->trace, thread);
    return rc || !b->options->clock ? rc : start_clock(b, thread);
}

static int walk_threads(struct build *b, struct krait_profile *profile)
{
    const struct krait_profile_options *options = b->options;
    b->take = options->clock       ? on_clocked_ops
              : b->sums            ? on_split_ops
              : options->corrected ? on_corrected_ops
                                   : on_ops;
    for (uint32_t i = 0; i < b->trace->thread_count; i++) {
        if (options->take_thread && !options->take_thread(options->ctx, b->trace, i))
            continue;
        b->group = options->by == KRAIT_BY_THREAD ? i : b->trace->threads[i].process;
        int rc = start_thread(b, i);
        rc = rc ? rc
                : krait_ranges_walk(b->trace, i, options->range, options->ranges,
                                    b->holds ? on_marked_ops : b->take, b, profile->damage,
                                    sizeof(profile->damage));
        if (rc)
            return rc;
    }
    return 0;
}

/* --- rows --- */

static const char *walk_name(struct krait_arena *arena, const struct krait_trace *trace,
                             enum krait_profile_by by, uint32_t id)
{
    const struct krait_process *process =
        &trace->processes[by == KRAIT_BY_THREAD ? trace->threads[id].process : id];
    if (by == KRAIT_BY_PROCESS)
        return krait_arena_fmt(arena, "%s %u", *process->name ? process->name : "process", process->pid);
    const struct krait_thread *thread = &trace->threads[id];
    return krait_arena_fmt(arena, "%s %u: %s %u", *process->name ? process->name : "process", process->pid,
                           *thread->name ? thread->name : "thread", thread->tid);
}

/* Says what the row is of, by one of its members. Returns 0 or -ENOMEM. */
static int name_row(struct krait_profile_row *row, struct krait_arena *arena, const struct krait_trace *trace,
                    enum krait_profile_by by, uint32_t sample)
{
    row->func = row->callee = KRAIT_NO_ID;
    row->process = by == KRAIT_BY_PROCESS ? sample : KRAIT_NO_ID;
    row->module = row->file = "";
    if (by_walk(by)) {
        row->name = walk_name(arena, trace, by, sample);
        return row->name ? 0 : -ENOMEM;
    }
    const struct krait_func *func = &trace->funcs[sample];
    if (by == KRAIT_BY_MODULE || by == KRAIT_BY_FILE) {
        row->name = by == KRAIT_BY_MODULE ? func->module : func->file;
        row->module = by == KRAIT_BY_MODULE ? func->module : "";
        row->file = by == KRAIT_BY_FILE ? func->file : "";
        return 0;
    }
    uint32_t id = by == KRAIT_BY_LINE ? func->site_func : func->base;
    row->callee = by == KRAIT_BY_LINE ? func->base : KRAIT_NO_ID;
    row->func = id == KRAIT_NO_ID ? KRAIT_NO_ID : trace->funcs[id].base;
    if (row->func == KRAIT_NO_ID) {
        row->name = "";
        row->line = func->site_line;
        return 0;
    }
    row->name = trace->funcs[id].name;
    row->module = trace->funcs[id].module;
    row->file = trace->funcs[id].file;
    row->line = by == KRAIT_BY_LINE ? func->site_line : trace->funcs[id].line;
    return 0;
}

static void fill_row(struct krait_profile_row *row, const struct stat *stat, enum krait_func_kind kind,
                     uint64_t cut)
{
    const struct krait_hist *hist = &stat->hist;
    uint64_t timed = krait_hist_count(hist);
    row->kind = kind;
    row->calls = stat->calls;
    row->runs = timed + cut;
    row->cut_runs = cut;
    row->self_ns = stat->self_ns;
    row->total_ns = stat->total_ns;
    row->min_ns = timed ? stat->min_ns : 0;
    row->max_ns = stat->max_ns;
    row->mean_ns = timed ? (stat->sum_ns + timed / 2) / timed : 0;
    row->p50_ns = krait_hist_quantile_within(hist, 0.50, stat->min_ns, stat->max_ns);
    row->p99_ns = krait_hist_quantile_within(hist, 0.99, stat->min_ns, stat->max_ns);
}

static int by_self(const void *a, const void *b)
{
    const struct krait_profile_row *x = a, *y = b;
    if (x->self_ns != y->self_ns)
        return x->self_ns > y->self_ns ? -1 : 1;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    int order = strcmp(x->module, y->module);
    return order ? order : strcmp(x->name, y->name);
}

static void add_split(struct krait_profile *profile, struct krait_profile_row *row, uint32_t group)
{
    if (!profile->sums)
        return;
    row->wall = krait_wall_sums_of(profile->sums, group);
    for (unsigned i = 0; i < KRAIT_WALL_PARTS; i++)
        profile->wall_ns[i] += row->wall->self_ns[i];
}

/* The exceptions of a row's group; `rows` has the row of a group, or NULL. */
static int add_exceptions(struct krait_profile *profile, const struct build *b,
                          struct krait_profile_row *const *rows)
{
    size_t n;
    KRAIT_AUTO_FREE struct krait_raises *raises = krait_raised_sorted(&b->raised, b->trace, &n);
    struct krait_raised *exceptions = krait_arena_alloc(&profile->arena, (n + 1) * sizeof(*exceptions));
    if (!raises || !exceptions)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        struct krait_profile_row *row = rows[raises[i].group];
        exceptions[i] = raises[i].raised;
        if (!row->exception_count++)
            row->exceptions = &exceptions[i]; /* the group's others come next */
        row->raised += exceptions[i].count;
    }
    return 0;
}

static int add_durations(struct krait_profile *profile, const struct build *b, struct krait_profile_row *row,
                         const struct stat *stat)
{
    if (!b->options->durations)
        return 0;
    uint64_t *counts = krait_arena_alloc(&profile->arena, 64 * sizeof(*counts));
    if (counts)
        krait_hist_doublings(&stat->hist, counts);
    row->durations = counts;
    return counts ? 0 : -ENOMEM;
}

/* A sample that counts for the time w falls into a row with the chance p: a variance of w * w * p * (1 - p). The sum of all w * w
 * is that of all w times their mean over the time, weight_ns; for n equal ones that is a binomial distribution's n * p * (1 - p).
 * 1.96 standard deviations are 95 %. Samples of a thread that waits long are not independent, but there the error is smaller. */
uint64_t krait_profile_error(const struct krait_trace *trace, uint64_t self_ns, uint64_t all_ns)
{
    const double most = 1.96;
    double met = (double)self_ns, all = (double)all_ns;
    return all_ns ? (uint64_t)(most * sqrt(met * (double)trace->samples.weight_ns * (1 - met / all))) : 0;
}

void krait_profile_say_samples(struct krait_buf *to, const struct krait_trace *trace)
{
    const struct krait_trace_samples *samples = &trace->samples;
    char taken[KRAIT_FMT_SIZE], interval[KRAIT_FMT_SIZE];
    if (samples->rate)
        krait_buf_fmt(
            to,
            "estimates from %s, one every %s: calls are not counted; in 19 of 20 recordings self is off by less "
            "than error",
            krait_fmt_counted(taken, samples->taken, "sample"), krait_fmt_ns(interval, samples->interval_ns));
}

static int make_rows(struct krait_profile *profile, const struct build *b)
{
    profile->rows = calloc(b->group_count + 1, sizeof(*profile->rows));
    KRAIT_AUTO_FREE struct krait_profile_row **rows = calloc(b->group_count + 1, sizeof(*rows));
    if (!profile->rows || !rows)
        return -ENOMEM;
    profile->has_switches = b->has_switches;
    for (uint32_t i = 0; i < b->group_count; i++) {
        if (!b->stats[i].hist.octaves && !b->cut[i])
            continue;
        struct krait_profile_row *row = rows[i] = &profile->rows[profile->count++];
        fill_row(row, &b->stats[i], b->python[i] ? KRAIT_FUNC_PYTHON : b->trace->funcs[b->sample[i]].kind,
                 b->cut[i]);
        row->resumed = row->runs - row->calls - b->live[i];
        row->holds_dropped = b->holds && b->holds[i];
        if (name_row(row, &profile->arena, b->trace, b->options->by, b->sample[i]) ||
            add_durations(profile, b, row, &b->stats[i]))
            return -ENOMEM;
        profile->self_ns += row->self_ns;
        add_split(profile, row, i);
    }
    for (uint32_t i = 0; i < profile->count; i++)
        profile->rows[i].self_error_ns =
            krait_profile_error(b->trace, profile->rows[i].self_ns, profile->self_ns);
    int rc = add_exceptions(profile, b, rows);
    qsort(profile->rows, profile->count, sizeof(*profile->rows), by_self);
    return rc;
}

static void build_done(struct build *b)
{
    for (uint32_t i = 0; b->stats && i < b->group_count; i++)
        krait_hist_done(&b->stats[i].hist);
    free(b->stats);
    free(b->frames);
    free(b->group_of);
    free(b->sample);
    free(b->python);
    free(b->holds);
    free(b->live);
    free(b->cut);
    free(b->cycles);
    krait_map_done(&b->raised);
    krait_wall_track_done(&b->track);
    krait_cost_done(&b->cost);
}

static bool has_sites(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (trace->funcs[i].site_func != KRAIT_NO_ID)
            return true;
    }
    return false;
}

static int build(struct krait_profile *profile, struct build *b)
{
    int rc = by_walk(b->options->by) ? group_walks(b) : group_funcs(b);
    if (rc)
        return rc;
    size_t bytes = ((size_t)b->group_count + 1) * sizeof(*b->stats);
    b->stats = aligned_alloc(_Alignof(struct stat), bytes);
    if (!b->stats)
        return -ENOMEM;
    memset(b->stats, 0, bytes);
    b->holds = b->trace->omitted_count ? calloc(b->group_count + 1, sizeof(*b->holds)) : NULL;
    b->live = calloc(b->group_count + 1, sizeof(*b->live));
    b->cut = calloc(b->group_count + 1, sizeof(*b->cut));
    if (!b->live || !b->cut || (b->trace->omitted_count && !b->holds))
        return -ENOMEM;
    for (uint32_t i = 0; i < b->group_count; i++)
        b->stats[i].min_ns = UINT64_MAX;
    rc = grow_frames(b);
    if (!rc && b->options->wall)
        rc = krait_wall_sums_new(&profile->sums, b->options->wall, b->group_count);
    b->sums = profile->sums;
    rc = rc ? rc : walk_threads(b, profile);
    if (!rc && b->sums)
        krait_wall_sums_end(b->sums);
    return rc ? rc : make_rows(profile, b);
}

int krait_profile_new(struct krait_profile **out, const struct krait_trace *trace,
                      const struct krait_profile_options *options, struct krait_err *err)
{
    if (options->by == KRAIT_BY_LINE && !has_sites(trace))
        return krait_err_set(err, -ENODATA,
                             "the trace does not say which lines calls come from; record with --call-sites");
    struct krait_profile *profile = calloc(1, sizeof(*profile));
    struct build b = { .trace = trace, .options = options };
    int rc = profile ? build(profile, &b) : -ENOMEM;
    build_done(&b);
    if (rc) {
        krait_profile_free(profile);
        return krait_err_set(err, rc, "the profile could not be made: %s", strerror(-rc));
    }
    *out = profile;
    return 0;
}

void krait_profile_free(struct krait_profile *profile)
{
    if (!profile)
        return;
    free(profile->rows);
    krait_wall_sums_free(profile->sums);
    krait_arena_done(&profile->arena);
    free(profile);
}
