/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/critical_path_inside.h"

enum { LEAST_RECORDS = 16, MEMORY = 256 << 20 };

/* -- the thread -- */

static bool is_blocked(const struct krait_kthread *t)
{
    return krait_thread_blocks((enum krait_thread_state)t->state);
}

static void is_in_state(struct krait_path_finder *f, const struct krait_kthread *t)
{
    bool is_known = t->state != KRAIT_TS_UNKNOWN && t->state != KRAIT_TS_GONE;
    f->gil_ends_ns = is_known ? (int64_t)krait_path_hold_at(f, t, t->since).wait_end_ns : 0;
    f->since_ns = t->since;
    f->keeps = is_blocked(t) || f->gil_ends_ns;
    if (f->keeps)
        krait_path_forget_all(f);
    f->watch.done = !f->keeps && t->since >= f->to_ns;
}

/* What the thread itself did is on the path. User mode and system calls are one. */
static void add_own(struct krait_path_finder *f, const struct krait_kchange *change)
{
    const struct krait_path_record own = { .begin_ns = change->since_ns,
                                           .thread = change->thread->index,
                                           .had = krait_path_had_cpu(f, change),
                                           .kind = (uint8_t)krait_path_kind_of(
                                               (enum krait_thread_state)change->was) };
    uint32_t first = f->segments.count;
    krait_path_add_segment(f, &own, change->since_ns, change->ns, 0);
    krait_path_join(f, first);
    f->had.count = 0;
}

/* Of the trace: from its state to the same. */
static bool is_last(const struct krait_kchange *change)
{
    return !change->cpu && change->was == change->thread->state;
}

/* Before it is first met it is not there, nor behind its end, but for one that executes under its number. */
static bool is_there(const struct krait_path_finder *f, const struct krait_kchange *change)
{
    bool is_over = change->was == KRAIT_TS_GONE && change->thread->state == KRAIT_TS_GONE;
    return !is_over &&
           (f->segments.count || (change->was != KRAIT_TS_GONE && change->was != KRAIT_TS_UNKNOWN));
}

static void thread_changes(struct krait_path_finder *f, const struct krait_kchange *change)
{
    uint32_t wait = f->keeps ? krait_path_keep(f, change) : KRAIT_NO_ID;
    if (wait != KRAIT_NO_ID && change->ns < f->gil_ends_ns && !is_last(change))
        return;
    if (wait != KRAIT_NO_ID)
        krait_path_follow(f, wait, f->since_ns, change->ns);
    else if (is_there(f, change))
        add_own(f, change);
    is_in_state(f, change->thread);
}

/* A number that is used again is another thread. */
static bool is_it(struct krait_path_finder *f, const struct krait_kthread *t)
{
    if (t->tid != f->options->tid)
        return false;
    if (!f->thread || !f->segments.count)
        f->thread = t;
    return f->thread == t;
}

static void on_change(void *ctx, const struct krait_kchange *change)
{
    struct krait_path_finder *f = ctx;
    if (f->failed)
        return;
    if (is_it(f, change->thread))
        thread_changes(f, change);
    else if (f->keeps && (is_blocked(f->thread) || change->ns < f->gil_ends_ns))
        krait_path_keep(f, change);
    else if (!f->keeps)
        f->watch.done = change->ns >= f->to_ns;
}

/* The end of all times where it would be behind that. */
static int64_t later(int64_t ns, uint64_t by_ns)
{
    uint64_t left = (uint64_t)INT64_MAX - (uint64_t)ns;
    return by_ns < left ? (int64_t)((uint64_t)ns + by_ns) : INT64_MAX;
}

static void on_begin(void *ctx, const struct krait_kernel_states *states)
{
    struct krait_path_finder *f = ctx;
    f->states = states;
    f->to_ns = later(states->origin_ns, f->options->to_ns);
    f->thread = krait_kernel_states_thread(states, f->options->tid);
    if (f->thread)
        is_in_state(f, f->thread);
}

/* -- beginning and end -- */

/* Cuts off what lies behind the range: a wait was followed up to its end. */
static void cut(struct krait_path_finder *f)
{
    struct krait_path_segment *all = f->segments.items;
    while (f->segments.count && all[f->segments.count - 1].begin_ns >= f->to_ns)
        f->segments.count--;
    if (f->segments.count)
        all[f->segments.count - 1].end_ns = KRAIT_MIN(all[f->segments.count - 1].end_ns, f->to_ns);
}

static int name_host(struct krait_critical_path *path, const struct krait_kernel_events *events)
{
    path->hosts = krait_arena_alloc(&path->arena, sizeof(*path->hosts));
    if (!path->hosts)
        return -ENOMEM;
    path->hosts[0] = krait_arena_strdup(&path->arena, krait_kernel_events_env(events, "hostname"));
    return path->hosts[0] ? 0 : -ENOMEM;
}

static int find(struct krait_path_finder *f, struct krait_kernel_events *events, struct krait_err *err)
{
    struct krait_critical_path *path = f->path;
    struct krait_kernel_options options = { .from_ns = f->options->from_ns,
                                            .until_ns = UINT64_MAX,
                                            .watch = &f->watch,
                                            .goes_on = f->options->goes_on,
                                            .ctx = f->options->ctx };
    f->watch = (struct krait_kernel_watch){ .ctx = f,
                                            .begin = on_begin,
                                            .change = on_change,
                                            .asks_who_had = true,
                                            .sent = krait_path_on_sent,
                                            .received = krait_path_on_received };
    int rc = krait_kernel_states_new(&path->states, events, &options, err);
    if (rc)
        return rc;
    if (f->failed || name_host(path, events))
        return krait_err_set(err, -ENOMEM, "out of memory");
    cut(f);
    if (!f->segments.count)
        return krait_err_set(err, -ESRCH, "the kernel's events know of no thread %d in that time",
                             f->options->tid);
    path->thread = f->thread->index;
    path->segments = f->segments.items;
    path->count = f->segments.count;
    path->had = f->had_ever.items;
    f->segments.items = NULL;
    f->had_ever.items = NULL;
    return 0;
}

static uint32_t most_records(uint64_t memory)
{
    uint64_t most = (memory ? memory : MEMORY) / sizeof(struct krait_path_record);
    return (uint32_t)KRAIT_MIN(KRAIT_MAX(most, (uint64_t)LEAST_RECORDS), (uint64_t)KRAIT_NO_ID / 4);
}

int krait_critical_path_new(struct krait_critical_path **out, struct krait_kernel_events *events,
                            const struct krait_path_options *options, struct krait_err *err)
{
    struct krait_critical_path *path = calloc(1, sizeof(*path));
    struct krait_path_finder *f = calloc(1, sizeof(*f));
    int rc = path && f ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        f->path = path;
        f->options = options;
        f->most = most_records(options->memory);
        rc = find(f, events, err);
        free(f->records.items);
        free(f->frames.items);
        free(f->segments.items);
        free(f->had.items);
        free(f->had_ever.items);
        free(f->of_thread.items);
        free(f->of_cpu.items);
    }
    free(f);
    if (rc)
        krait_critical_path_free(path);
    else
        *out = path;
    return rc;
}

void krait_critical_path_free(struct krait_critical_path *path)
{
    if (!path)
        return;
    krait_kernel_states_free(path->states);
    krait_arena_done(&path->arena);
    free(path->segments);
    free(path->had);
    free(path);
}
