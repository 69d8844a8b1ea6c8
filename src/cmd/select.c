/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/select.h"

#include "base/fmt.h"
#include "trace/tasks.h"
#include "trace/track.h"

#include <fnmatch.h>
#include <string.h>

int krait_select_time(const char *option, const char *text, uint64_t *ns, struct krait_err *err)
{
    if (krait_parse_ns(text, ns) == 0)
        return 0;
    return krait_err_set(err, -EINVAL, "--%s: '%s' is not a time such as 1.5s, 200ms or 3", option, text);
}

static int parse_range(const struct krait_select *select, uint64_t *from, uint64_t *until,
                       struct krait_err *err)
{
    *from = 0;
    *until = UINT64_MAX;
    if ((select->from && krait_select_time("from", select->from, from, err)) ||
        (select->until && krait_select_time("until", select->until, until, err)))
        return -EINVAL;
    return 0;
}

int krait_select_check(const struct krait_select *select, struct krait_err *err)
{
    uint64_t from, until;
    if (select->within && (select->from || select->until))
        return krait_err_set(err, -EINVAL,
                             "--within does not go with --from and --until: it is a range itself");
    if (select->analyses.count && !select->within && !select->shows_analyses)
        return krait_err_set(err, -EINVAL,
                             "-f declares what --within may name; use both. krait intervals, info, view and "
                             "export show what it declares without");
    int rc = parse_range(select, &from, &until, err);
    if (!rc && from >= until)
        rc = krait_err_set(err, -EINVAL, "the range is empty: %s is not before %s",
                           select->from ? select->from : "the beginning", select->until);
    return rc;
}

static uint64_t later_by(uint64_t ns, uint64_t by)
{
    return ns == UINT64_MAX ? ns : ns > by ? ns - by : 0;
}

int64_t krait_select_kernel_range(const struct krait_select *select, const struct krait_trace *trace,
                                  struct krait_kernel_events *events, uint64_t *from_ns, uint64_t *until_ns)
{
    struct krait_err ignored;
    int64_t first = krait_kernel_events_first(events);
    int64_t zero = (int64_t)krait_trace_zero(trace);
    parse_range(select, from_ns, until_ns, &ignored);
    *from_ns = later_by(*from_ns, (uint64_t)first - (uint64_t)zero);
    *until_ns = later_by(*until_ns, (uint64_t)first - (uint64_t)zero);
    return zero;
}

const char *krait_select_scope(const struct krait_select *select)
{
    bool in_time = select->from || select->until || select->within;
    if (select->threads.count || select->processes.count)
        return in_time ? " in that time on those threads" : " on those threads";
    return in_time ? " in that time" : "";
}

int krait_select_limit(uint32_t *limit, const char *text, uint32_t otherwise, struct krait_err *err)
{
    *limit = otherwise;
    if (!text)
        return 0;
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || n > UINT32_MAX)
        return krait_err_set(err, -EINVAL, "--limit: '%s' is not a whole number; 0 shows all", text);
    *limit = (uint32_t)n;
    return 0;
}

int krait_select_rows(uint32_t *limit, const char *text, bool csv, bool json, struct krait_err *err)
{
    enum { TABLE_ROWS = 40 };
    if (csv && json)
        return krait_err_set(err, -EINVAL, "--csv and --json exclude each other");
    return krait_select_limit(limit, text, csv || json ? 0 : TABLE_ROWS, err);
}

int krait_select_given(enum krait_select_reads reads, int count, struct krait_err *err)
{
    static const struct {
        const char *what, *folder;
    } texts[] = {
        [KRAIT_SELECT_RECORDING] = { "recording", "that `krait record` wrote" },
        [KRAIT_SELECT_TRACE] = { "trace", "of a recording or of another CTF trace" },
        [KRAIT_SELECT_KERNEL] = { "trace", "of a recording made with --kernel, or of a kernel trace" },
    };
    if (count > 0)
        return 0;
    return krait_err_set(err, -EINVAL, "no %s given; name the folder %s", texts[reads].what,
                         texts[reads].folder);
}

struct krait_range krait_select_range(const struct krait_select *select, const struct krait_trace *trace)
{
    struct krait_range range = KRAIT_RANGE_ALL;
    struct krait_err ignored;
    uint64_t from, until, zero = select->from || select->until ? krait_trace_zero(trace) : 0;
    parse_range(select, &from, &until, &ignored);
    if (select->from)
        range.from_ns = zero + from;
    if (select->until)
        range.to_ns = zero + until;
    return range;
}

bool krait_select_named(const struct krait_opt_list *globs, const char *name, uint32_t id)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", id);
    for (size_t i = 0; i < globs->count; i++) {
        if (fnmatch(globs->items[i], name, 0) == 0 || fnmatch(globs->items[i], number, 0) == 0)
            return true;
    }
    return globs->count == 0;
}

bool krait_select_thread(void *ctx, const struct krait_trace *trace, uint32_t index)
{
    const struct krait_select *select = ctx;
    const struct krait_thread *thread = &trace->threads[index];
    const struct krait_process *process = &trace->processes[thread->process];
    return krait_select_named(&select->threads, thread->name, thread->tid) &&
           krait_select_named(&select->processes, process->name, process->pid);
}

/* Whether a task ran in a thread that is chosen. Without memory all did. */
static bool ran_there(struct krait_select *select, const struct krait_trace *trace, uint32_t task)
{
    if (!select->threads.count)
        return true;
    bool *ran = select->ran ? select->ran : calloc((size_t)trace->task_count + 1, sizeof(*ran));
    for (uint32_t i = 0; ran && !select->ran && i < trace->thread_count; i++) {
        if (krait_select_thread(select, trace, i))
            krait_tasks_of(trace, i, ran);
    }
    select->ran = ran;
    return !ran || ran[task];
}

bool krait_select_track(void *ctx, const struct krait_trace *trace, const struct krait_track *track)
{
    struct krait_select *select = ctx;
    if (track->of == KRAIT_OF_LANE) /* its events were chosen */
        return true;
    if (track->of == KRAIT_OF_TASK && track->thread != KRAIT_NO_ID)
        return krait_select_thread(ctx, trace, track->thread);
    if (track->of == KRAIT_OF_TASK)
        return krait_select_named(&select->processes, track->process_name, track->pid) &&
               ran_there(select, trace, track->key);
    if (track->of != KRAIT_OF_THREAD && track->of != KRAIT_OF_PROCESS)
        return !select->threads.count && !select->processes.count;
    bool is_named = track->of == KRAIT_OF_PROCESS
                        ? !select->threads.count
                        : krait_select_named(&select->threads, track->thread_name ? track->thread_name : "",
                                             track->number);
    return is_named &&
           krait_select_named(&select->processes, track->process_name ? track->process_name : "", track->pid);
}

bool krait_select_place(void *ctx, const struct krait_trace *trace, const struct krait_track *track)
{
    const struct krait_select *select = ctx;
    if (track->thread != KRAIT_NO_ID)
        return krait_select_thread(ctx, trace, track->thread);
    if (track->of == KRAIT_OF_PROCESS)
        return krait_select_track(ctx, trace, track);
    return !select->processes.count && krait_select_named(&select->threads, track->name, track->number);
}

bool krait_select_kprocess(const struct krait_select *select, const struct krait_kernel_states *states,
                           uint32_t process)
{
    if (process == KRAIT_NO_ID)
        return select->processes.count == 0;
    const struct krait_kprocess *p = &states->processes[process];
    return krait_select_named(&select->processes, p->name, (uint32_t)p->pid);
}

bool krait_select_kthread(const struct krait_select *select, const struct krait_kernel_states *states,
                          const struct krait_kthread *thread)
{
    return krait_select_kprocess(select, states, thread->process) &&
           krait_select_named(&select->threads, thread->name, (uint32_t)thread->tid);
}

/* The first few threads, for a message. */
static void add_choices(struct krait_buf *text, const struct krait_trace *trace)
{
    enum { SHOWN = 8 };
    for (uint32_t i = 0; i < trace->thread_count && i < SHOWN; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        const struct krait_process *process = &trace->processes[thread->process];
        krait_buf_str(text, i ? ", " : "");
        krait_fmt_safe(text, thread->name);
        krait_buf_fmt(text, "%s%u of ", *thread->name ? " " : "", thread->tid);
        krait_fmt_safe(text, process->name);
        krait_buf_fmt(text, " %u", process->pid);
    }
    krait_buf_str(text, trace->thread_count > SHOWN ? ", ..." : "");
}

int krait_select_some(const struct krait_select *select, const struct krait_trace *trace,
                      struct krait_err *err)
{
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        if (krait_select_thread((void *)select, trace, i))
            return 0;
    }
    if (!trace->thread_count)
        return 0;
    KRAIT_AUTO_BUF choices = { 0 };
    add_choices(&choices, trace);
    return krait_err_set(err, -ENOENT, "no thread matches --thread and --process; there are %s",
                         choices.data ? choices.data : "others");
}

void krait_select_done(struct krait_select *select)
{
    krait_opt_list_done(&select->analyses);
    krait_buf_done(&select->told);
    free(select->parts.items);
    free(select->ran);
    free(select->homes);
    free(select->owned[0]);
    free(select->owned[1]);
    krait_opt_list_done(&select->threads);
    krait_opt_list_done(&select->processes);
}
