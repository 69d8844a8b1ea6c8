/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/path.h"

#include "analysis/match.h"
#include "base/fmt.h"
#include "cmd/within.h"
#include "trace/kernel/own_threads.h"

#include <string.h>

enum { NAMED = 8 }; /* threads in a message */

/* -- candidates -- */

struct candidates {
    int32_t tid; /* of the first */
    uint32_t count;
    struct krait_buf names; /* of the first few */
};

static void candidates_done(struct candidates *all)
{
    krait_buf_done(&all->names);
}

static void add_candidate(struct candidates *all, int32_t tid, const char *name, const char *process)
{
    if (all->count && all->tid == tid)
        return;
    if (!all->count)
        all->tid = tid;
    if (all->count++ >= NAMED)
        return;
    krait_buf_fmt(&all->names, "%s%d", all->count > 1 ? ", " : "", tid);
    krait_buf_str(&all->names, *name ? " " : "");
    krait_fmt_safe(&all->names, name);
    krait_buf_str(&all->names, *process ? " of " : "");
    krait_fmt_safe(&all->names, process);
}

static int one_of(const struct candidates *all, int32_t *tid, struct krait_err *err)
{
    *tid = all->tid;
    if (all->count == 1)
        return 0;
    if (!all->count)
        return krait_err_set(err, -ENOENT,
                             "no thread matches --thread and --process; krait states --by thread lists all");
    return krait_err_set(err, -EINVAL, "a path follows one thread; --thread and --process match %u: %s%s",
                         all->count, all->names.data ? all->names.data : "",
                         all->count > NAMED ? ", ..." : "");
}

/* Threads that recorded themselves are known by their own names. */
static void among_recorded(struct candidates *all, const struct krait_trace *trace,
                           const struct krait_select *select)
{
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        const struct krait_thread *t = &trace->threads[i];
        if (krait_select_thread((void *)select, trace, i))
            add_candidate(all, (int32_t)t->tid, t->name, trace->processes[t->process].name);
    }
}

static int among_kernels(struct candidates *all, struct krait_kernel_events *events,
                         const struct krait_select *select, const struct krait_path_options *range,
                         struct krait_err *err)
{
    struct krait_kernel_states *states = NULL;
    struct krait_kernel_options options = { .from_ns = range->from_ns, .until_ns = range->to_ns };
    int rc = krait_kernel_states_new(&states, events, &options, err);
    for (uint32_t i = 0; !rc && i < states->thread_count; i++) {
        const struct krait_kthread *t = states->threads[i];
        if (krait_kthread_was_there(t, states) && krait_select_kthread(select, states, t))
            add_candidate(all, t->tid, t->name,
                          t->process == KRAIT_NO_ID ? "" : states->processes[t->process].name);
    }
    krait_kernel_states_free(states);
    return rc;
}

/* -- the thread -- */

/* "4711" and nothing else says the thread without a look at the trace. */
static bool is_number(const struct krait_select *select, int32_t *tid)
{
    if (select->threads.count != 1 || select->processes.count)
        return false;
    char *end;
    errno = 0;
    long n = strtol(select->threads.items[0], &end, 10);
    *tid = (int32_t)n;
    return !errno && end != select->threads.items[0] && !*end && n > 0 && n <= INT32_MAX;
}

static bool is_recorded(const struct krait_trace *trace, int32_t tid)
{
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        if (trace->threads[i].tid == (uint32_t)tid)
            return true;
    }
    return false;
}

/* A thread that recorded itself has said the number that it knows; in a namespace the kernel knows another. */
static int as_the_kernel_knows_it(struct path_pick *pick, struct krait_kernel_events *events, uint64_t t_ns,
                                  struct krait_err *err)
{
    struct krait_kernel_states *states = NULL;
    KRAIT_CLEANUP(krait_own_threads_done) struct krait_own_threads own = { 0 };
    const struct krait_kernel_options options = { .until_ns = UINT64_MAX };
    int rc = krait_kernel_states_new(&states, events, &options, err);
    if (!rc && krait_own_threads_init(&own, pick->trace, states))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    const struct krait_kthread *found = rc ? NULL : krait_own_threads_life(&own, pick->range.tid, t_ns);
    pick->range.tid = found ? found->tid : pick->range.tid;
    krait_kernel_states_free(states);
    return rc;
}

static int main_thread(const struct krait_trace *trace, int32_t *tid, struct krait_err *err)
{
    if (!trace->process_count)
        return krait_err_set(err, -EINVAL,
                             "no thread chosen; name one with --thread. krait states --by thread lists all");
    *tid = (int32_t)trace->processes[0].pid; /* the number of its first thread: gettid(2) */
    return 0;
}

/* Of those with the names; `is_own`: by the number that it knows itself. */
static int find_thread(struct path_pick *pick, const struct path_options *o,
                       struct krait_kernel_events *events, bool *is_own, struct krait_err *err)
{
    KRAIT_CLEANUP(candidates_done) struct candidates all = { 0 };
    among_recorded(&all, pick->trace, &o->select);
    *is_own = all.count > 0;
    int rc = all.count ? 0 : among_kernels(&all, events, &o->select, &pick->range, err);
    return rc ? rc : one_of(&all, &pick->range.tid, err);
}

static int pick_thread(struct path_pick *pick, const struct path_options *o,
                       struct krait_kernel_events *events, struct krait_err *err)
{
    bool is_own = true;
    int rc = 0;
    if (!o->select.threads.count && !o->select.processes.count)
        rc = main_thread(pick->trace, &pick->range.tid, err);
    else if (is_number(&o->select, &pick->range.tid))
        is_own = is_recorded(pick->trace, pick->range.tid);
    else
        rc = find_thread(pick, o, events, &is_own, err);
    return rc || !is_own ? rc : as_the_kernel_knows_it(pick, events, UINT64_MAX, err);
}

/* -- the call -- */

static int find_calls(struct krait_why **found, const struct path_pick *pick, const struct path_options *o,
                      struct krait_err *err)
{
    struct krait_match *match = NULL;
    const struct krait_trace *trace = pick->trace;
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)trace->func_count + 1, sizeof(*meant));
    struct krait_why_options options = { .range = krait_select_range(&o->select, trace),
                                         .meant = meant,
                                         .limit = (uint32_t)o->nth,
                                         .take_thread = krait_select_thread,
                                         .ctx = (void *)&o->select };
    int rc = meant ? krait_match_new(&match, o->call, err) : krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_match_mark(meant, trace, match, err);
    if (rc == -ENOENT)
        rc = krait_within_no_function(pick->trace, match, "--call", err);
    if (!rc && krait_why_new(found, trace, &options))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_match_free(match);
    return rc;
}

static int take_call(struct path_pick *pick, const struct krait_why *found, const struct path_options *o,
                     uint64_t first, struct krait_err *err)
{
    if (!found->count)
        return krait_err_set(err, -ENOENT, "there is no call of '%s'%s", o->call,
                             krait_select_scope(&o->select));
    if (o->nth > found->count)
        return krait_err_set(err, -ENOENT, "there %s only %llu call%s of '%s'%s",
                             found->runs == 1 ? "is" : "are", (unsigned long long)found->runs,
                             found->runs == 1 ? "" : "s", o->call, krait_select_scope(&o->select));
    pick->call = found->slowest[o->nth - 1];
    pick->calls = found->runs;
    pick->range.tid = (int32_t)pick->trace->threads[pick->call.thread].tid;
    pick->range.from_ns = pick->call.begin_ns > first ? pick->call.begin_ns - first : 0;
    pick->range.to_ns = pick->call.end_ns > first ? pick->call.end_ns - first : 0;
    return 0;
}

static int pick_call(struct path_pick *pick, const struct path_options *o, struct krait_kernel_events *events,
                     struct krait_err *err)
{
    struct krait_why *found = NULL;
    uint64_t first = (uint64_t)KRAIT_MAX(krait_kernel_events_first(events), 0);
    int rc = krait_select_some(&o->select, pick->trace, err);
    rc = rc ? rc : find_calls(&found, pick, o, err);
    rc = rc ? rc : take_call(pick, found, o, first, err);
    krait_why_free(found);
    return rc ? rc : as_the_kernel_knows_it(pick, events, pick->call.begin_ns, err);
}

int krait_path_pick(struct path_pick *pick, const struct path_options *options,
                    struct krait_kernel_events *events, struct krait_err *err)
{
    struct krait_err why = { 0 };
    int rc = krait_trace_needs_calls(pick->trace, &why);
    pick->zero_ns = krait_select_kernel_range(&options->select, pick->trace, events, &pick->range.from_ns,
                                              &pick->range.to_ns);
    if (options->call && rc)
        return krait_err_set(err, rc, "--call needs the program's calls: %s", why.text);
    if (krait_gil_holders_new(&pick->gil, pick->trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    pick->range.gil = pick->gil;
    return options->call ? pick_call(pick, options, events, err) : pick_thread(pick, options, events, err);
}

void krait_path_pick_done(struct path_pick *pick)
{
    krait_gil_holders_free(pick->gil);
    krait_trace_close(pick->trace);
}
