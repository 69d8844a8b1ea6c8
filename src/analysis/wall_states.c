/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wall_states.h"

#include "trace/kernel/kernel.h"

static bool is_wanted(const struct krait_wall_states *states, int32_t id)
{
    return krait_map_get(&states->wanted, (uint32_t)id) != NULL;
}

static bool keep(void *ctx, uint32_t index, int32_t tid)
{
    const struct krait_wall_states *states = ctx;
    return index < states->kept_count ? states->kept[index] : is_wanted(states, tid);
}

static int want_threads(struct krait_wall_states *states, const struct krait_trace *trace)
{
    int rc = 0;
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++)
        rc = krait_map_put(&states->wanted, trace->threads[i].tid, 0);
    return rc;
}

/* Whether a thread is meant that bore another number when it was met, or was not known to be recorded. */
static bool misses_some(const struct krait_wall_states *states)
{
    for (uint32_t i = 0; i < states->of->thread_count; i++) {
        const struct krait_kthread *t = states->of->threads[i];
        if (!t->kept && is_wanted(states, krait_kthread_own_id(t)))
            return true;
    }
    return false;
}

/* Before all is read again: who is kept then. Each run finds the threads in the same places. */
static int know_kept(struct krait_wall_states *states)
{
    uint32_t count = states->of->thread_count;
    bool *kept = calloc((size_t)count + 1, sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        kept[i] = is_wanted(states, krait_kthread_own_id(states->of->threads[i]));
    free(states->kept);
    states->kept = kept;
    states->kept_count = count;
    krait_kernel_states_free(states->of);
    states->of = NULL;
    return 0;
}

static int check(const struct krait_kernel_events *events, struct krait_err *err)
{
    return krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_SWITCH) ||
                   krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_RUN)
               ? 0
               : krait_err_set(err, -ENODATA, "there is no sched_switch; record it with --kernel=sched,...");
}

static int read_all(struct krait_wall_states *states, struct krait_kernel_events *events,
                    struct krait_err *err)
{
    const struct krait_kernel_options options = { .until_ns = UINT64_MAX, .keep = keep, .ctx = states };
    int rc = krait_kernel_states_new(&states->of, events, &options, err);
    if (rc || !misses_some(states))
        return rc;
    if (know_kept(states))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return krait_kernel_states_new(&states->of, events, &options, err);
}

int krait_wall_states_read(struct krait_wall_states *states, const struct krait_trace *trace,
                           struct krait_kernel_events *events, struct krait_err *err)
{
    int rc = check(events, err);
    if (!rc && want_threads(states, trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : read_all(states, events, err);
    if (!rc)
        states->end_ns = states->of->end_ns;
    return rc;
}

/* -- of a recording that goes on -- */

static int forget_if_changed(struct krait_wall_states *states, struct krait_kernel_events *events, bool *anew)
{
    uint64_t print = 0;
    int rc = states->of ? krait_kernel_events_print(events, states->until_ns, &print) : 0;
    *anew = !rc && (!states->of || print != states->print);
    if (*anew)
        krait_wall_states_done(states);
    return rc;
}

static int go_on(struct krait_wall_states *states, struct krait_kernel_events *events, int64_t until_ns)
{
    const struct krait_kernel_options options = { .keep = keep, .ctx = states };
    return krait_kernel_states_go_on(&states->of, events, &options, until_ns);
}

static int read_on(struct krait_wall_states *states, const struct krait_trace *trace,
                   struct krait_kernel_events *events, int64_t until_ns, bool *anew)
{
    int rc = forget_if_changed(states, events, anew);
    rc = rc ? rc : want_threads(states, trace);
    rc = rc ? rc : go_on(states, events, until_ns);
    if (!rc && misses_some(states)) {
        *anew = true;
        rc = know_kept(states);
        rc = rc ? rc : go_on(states, events, until_ns);
    }
    states->until_ns = until_ns;
    return rc ? rc : krait_kernel_events_print(events, until_ns, &states->print);
}

int krait_wall_states_read_on(struct krait_wall_states *states, const struct krait_trace *trace,
                              struct krait_kernel_events *events, bool *anew, struct krait_err *err)
{
    int64_t until_ns = INT64_MIN, end_ns = INT64_MIN;
    *anew = false;
    if (!krait_kernel_settled(trace, &until_ns, &end_ns) || (states->of && states->until_ns > until_ns))
        return 0;
    int rc = check(events, err);
    if (rc)
        return rc;
    rc = read_on(states, trace, events, until_ns, anew);
    states->end_ns = end_ns;
    if (!rc)
        return 0;
    *anew = true;
    krait_wall_states_done(states);
    return krait_err_set(err, rc, rc == -ENODATA ? "there are no kernel events" : "out of memory");
}

void krait_wall_states_done(struct krait_wall_states *states)
{
    krait_kernel_states_free(states->of);
    krait_map_done(&states->wanted);
    free(states->kept);
    *states = (struct krait_wall_states){ 0 };
}
