/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states`: its tables, their columns and rows.
 */
#include "cmd/states.h"

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

/* Columns: title, key, what the table does where it is narrow, getter with its argument. */
#define NS(title, key, drop, ...)                                  \
    {                                                              \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, 0, __VA_ARGS__ \
    }
#define COUNT(title, key, drop, ...)                                  \
    {                                                                 \
        { title, 0, 0, drop }, key, KRAIT_SHEET_COUNT, 0, __VA_ARGS__ \
    }
#define ID(title, key, drop, ...)                                      \
    {                                                                  \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NUMBER, 0, __VA_ARGS__ \
    }
#define NAME(title, key, min, drop, ...)                                                          \
    {                                                                                             \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, key, KRAIT_SHEET_NAME, 0, \
            __VA_ARGS__                                                                           \
    }
/* Tables have a dash if it is not known. */
#define MAYBE(title, key, ...)                                                                              \
    {                                                                                                       \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 0 }, key, KRAIT_SHEET_NAME, KRAIT_SHEET_DASH, \
            __VA_ARGS__                                                                                     \
    }

/* -- how threads, processes and CPUs spent their time -- */

struct time_row {
    const uint64_t *ns;              /* of threads (STATES_COUNT), or of CPUs by state */
    uint64_t id;                     /* of the thread or CPU */
    uint32_t process;                /* index, or KRAIT_NO_ID */
    const char *name;                /* of the thread */
    uint64_t threads, calls, errors; /* of the process */
    uint64_t stolen_ns;              /* of the CPU */
    const struct krait_cycles *cycles;
};

GETTER(state)
{
    const struct time_row *time = row;
    return krait_sheet_number(time->ns[arg]);
}

GETTER(on_cpu)
{
    const struct time_row *time = row;
    return krait_sheet_number(time->ns[KRAIT_TS_USER] + time->ns[KRAIT_TS_SYSTEM]);
}

GETTER(ready)
{
    const struct time_row *time = row;
    return krait_sheet_number(time->ns[KRAIT_TS_WOKEN] + time->ns[KRAIT_TS_PREEMPTED] +
                              time->ns[KRAIT_TS_THROTTLED]);
}

GETTER(blocked)
{
    const struct time_row *time = row;
    uint64_t blocked = 0;
    for (unsigned i = KRAIT_TS_DISK; i <= KRAIT_TS_BLOCKED; i++)
        blocked += time->ns[i];
    return krait_sheet_number(blocked);
}

GETTER(cycles)
{
    const struct time_row *time = row;
    return krait_sheet_number(krait_cycles_count(time->cycles));
}

GETTER(mhz)
{
    const struct time_row *time = row;
    return krait_sheet_number(krait_cycles_mhz(time->cycles));
}

GETTER(clocked)
{
    const struct time_row *time = row;
    return krait_sheet_number(time->cycles->ns);
}

GETTER(pid)
{
    const struct time_row *time = row;
    return krait_sheet_number(krait_states_pid(of, time->process));
}

GETTER(process)
{
    const struct time_row *time = row;
    return krait_sheet_name(krait_states_process_name(of, time->process));
}

GETTER(recorded)
{
    const struct time_row *time = row;
    return krait_sheet_number(krait_states_is_recorded(of, time->process));
}

#define NUMBER(member) krait_sheet_number_at, offsetof(struct time_row, member)
#define TEXT(member)   krait_sheet_name_at, offsetof(struct time_row, member)

#define SUM(title, key, get)                                              \
    {                                                                     \
        { title, 0, 0, 0 }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DASH, get, 0 \
    }
/* A state that no thread was in has no column in tables. */
#define STATE(state, text, title, drop)                                                    \
    { { title, 0, 0, drop },                                                               \
      text "_ns",                                                                          \
      KRAIT_SHEET_NS,                                                                      \
      drop ? KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET | KRAIT_SHEET_RANKED : KRAIT_SHEET_DATA, \
      get_state,                                                                           \
      KRAIT_TS_##state },
#define GIL                                                                                            \
    {                                                                                                  \
        { "gil", 0, 0, 0 }, "gil_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET, get_state, \
            STATES_GIL                                                                                 \
    }
#define STATES                                                                        \
    SUM("on CPU", "on_cpu_ns", get_on_cpu), SUM("ready", "ready_ns", get_ready), GIL, \
        SUM("blocked", "blocked_ns", get_blocked), KRAIT_THREAD_STATES(STATE)

#define CPU_STATE(state, text, title, drop)                                                                \
    { { title, 0, 0, drop }, text "_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH | KRAIT_SHEET_RANKED, get_state, \
      KRAIT_CS_##state },

#define RECORDED                                                                                  \
    {                                                                                             \
        { "recorded", 0, 0, 0 }, "recorded", KRAIT_SHEET_COUNT, KRAIT_SHEET_DATA, get_recorded, 0 \
    }

/* Where the trace tells frequencies. */
#define QUIET_COUNT(title, key, drop, get)                                       \
    {                                                                            \
        { title, 0, 0, drop }, key, KRAIT_SHEET_COUNT, KRAIT_SHEET_QUIET, get, 0 \
    }
#define CYCLES(drop)                                                                                        \
    QUIET_COUNT("cycles", "cycles", drop, get_cycles), QUIET_COUNT("MHz", "mean_mhz", (drop) + 1, get_mhz), \
    {                                                                                                       \
        { "clocked", 0, 0, 0 }, "clocked_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DATA, get_clocked, 0              \
    }

#define STOLEN                                                                                   \
    {                                                                                            \
        { "stolen", 0, 0, 0 }, "stolen_ns", KRAIT_SHEET_NS, KRAIT_SHEET_QUIET, NUMBER(stolen_ns) \
    }

static const struct krait_sheet_column thread_columns[] = {
    ID("tid", "tid", 0, NUMBER(id)),           STATES CYCLES(18),
    ID("pid", "pid", 16, get_pid, 0),          NAME("process", "process", 8, 17, get_process, 0),
    NAME("thread", "name", 12, 0, TEXT(name)), RECORDED,
};

#define PROCESS(calls)                                                                                    \
    ID("pid", "pid", 0, get_pid, 0), STATES CYCLES(18), COUNT("threads", "threads", 16, NUMBER(threads)), \
        calls NAME("process", "name", 12, 0, get_process, 0), RECORDED
#define CALLS COUNT("calls", "syscalls", 8, NUMBER(calls)), COUNT("errors", "errors", 17, NUMBER(errors)),

static const struct krait_sheet_column process_columns[] = { PROCESS(CALLS) };

/* Of some of its threads: calls are counted by process. */
static const struct krait_sheet_column partial_columns[] = { PROCESS() };

static const struct krait_sheet_column cpu_columns[] = {
    ID("cpu", "cpu", 0, NUMBER(id)),
    KRAIT_CPU_STATES(CPU_STATE) CYCLES(7),
    STOLEN,
};

#undef NUMBER
#undef TEXT

static int fill_threads(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        const struct krait_kthread *t = s->found->threads[i];
        uint64_t ns[STATES_COUNT] = { 0 };
        struct time_row row = { .ns = ns,
                                .cycles = &t->cycles,
                                .id = (uint64_t)t->tid,
                                .process = t->process,
                                .name = krait_states_thread_name(s, t) };
        krait_states_add(s, t, ns);
        if (krait_kthread_was_there(t, s->found) && krait_states_takes_thread(s, t))
            krait_sheet_add(sheet, &row);
    }
    return 0;
}

/* What the threads and calls of a process come to. Those whose process is not known are one. */
struct process_sum {
    uint64_t ns[STATES_COUNT];
    struct krait_cycles cycles;
    uint64_t threads, calls, errors;
};

static void sum_processes(const struct states *s, struct process_sum *sums)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        const struct krait_kthread *t = s->found->threads[i];
        struct process_sum *sum = &sums[KRAIT_MIN(t->process, s->found->process_count)];
        if (!krait_kthread_was_there(t, s->found) || !krait_states_takes_thread(s, t))
            continue;
        sum->threads++;
        krait_states_add(s, t, sum->ns);
        sum->cycles.millionths += t->cycles.millionths;
        sum->cycles.ns += t->cycles.ns;
    }
    for (uint32_t i = 0; i < s->found->stats_count; i++) {
        const struct krait_kcalls *calls = &s->found->stats[i];
        struct process_sum *sum = &sums[KRAIT_MIN(calls->process, s->found->process_count)];
        sum->calls += calls->took.count;
        sum->errors += calls->errors;
    }
}

static int fill_processes(const struct states *s, struct krait_sheet *sheet)
{
    uint32_t count = s->found->process_count;
    KRAIT_AUTO_FREE struct process_sum *sums = calloc((size_t)count + 1, sizeof(*sums));
    if (!sums)
        return -ENOMEM;
    if (s->options->select.threads.count) {
        sheet->columns = partial_columns;
        sheet->column_count = KRAIT_ARRAY_LEN(partial_columns);
    }
    sum_processes(s, sums);
    for (uint32_t i = 0; i <= count; i++) {
        struct time_row row = { .ns = sums[i].ns,
                                .cycles = &sums[i].cycles,
                                .process = i < count ? i : KRAIT_NO_ID,
                                .threads = sums[i].threads,
                                .calls = sums[i].calls,
                                .errors = sums[i].errors };
        if (row.threads)
            krait_sheet_add(sheet, &row);
    }
    return 0;
}

static int fill_cpus(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->cpu_count; i++) {
        bool stolen = i < s->found->steals.count;
        struct time_row row = { .ns = s->found->cpus[i].ns,
                                .cycles = &s->found->cpus[i].cycles,
                                .id = i,
                                .stolen_ns = stolen ? s->found->steals.items[i].stolen_ns : 0 };
        if (s->found->cpus[i].met)
            krait_sheet_add(sheet, &row);
    }
    return 0;
}

/* -- how long system calls took, and waits for a CPU -- */

struct spread_row {
    const struct krait_spread *took;
    uint64_t errors;
    uint32_t process; /* index, or KRAIT_NO_ID */
    const char *name;
};

GETTER(count)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(spread->took->count);
}

GETTER(total)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(spread->took->sum);
}

GETTER(mean)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(spread->took->count ? spread->took->sum / spread->took->count : 0);
}

GETTER(min)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(spread->took->min);
}

GETTER(max)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(spread->took->max);
}

GETTER(percentile)
{
    return krait_sheet_number(
        krait_spread_quantile(((const struct spread_row *)row)->took, (double)arg / 100));
}

GETTER(spread_pid)
{
    const struct spread_row *spread = row;
    return krait_sheet_number(krait_states_pid(of, spread->process));
}

GETTER(spread_process)
{
    const struct spread_row *spread = row;
    return krait_sheet_name(krait_states_process_name(of, spread->process));
}

#define SPREAD                                                                                  \
    NS("total", "total_ns", 2, get_total, 0), NS("mean", "mean_ns", 0, get_mean, 0),            \
        NS("min", "min_ns", 6, get_min, 0), NS("p50", "p50_ns", 3, get_percentile, 50),         \
        NS("p90", "p90_ns", 5, get_percentile, 90), NS("p99", "p99_ns", 1, get_percentile, 99), \
        NS("max", "max_ns", 4, get_max, 0)
#define CALL_COUNTS                           \
    COUNT("calls", "calls", 0, get_count, 0), \
        COUNT("errors", "errors", 0, krait_sheet_number_at, offsetof(struct spread_row, errors))
#define CALLED(title, min) NAME(title, "name", min, 0, krait_sheet_name_at, offsetof(struct spread_row, name))

static const struct krait_sheet_column call_columns[] = { CALL_COUNTS, SPREAD, CALLED("system call", 12) };

static const struct krait_sheet_column process_call_columns[] = {
    CALL_COUNTS,
    SPREAD,
    ID("pid", "pid", 1, get_spread_pid, 0),
    NAME("process", "process", 8, 0, get_spread_process, 0),
    CALLED("system call", 12),
};

static const struct krait_sheet_column latency_columns[] = {
    COUNT("count", "count", 0, get_count, 0),
    SPREAD,
    CALLED("latency", 20),
};

static void add_calls(const struct states *s, struct krait_sheet *sheet, const struct krait_kcalls *calls)
{
    struct spread_row row = { .took = &calls->took,
                              .errors = calls->errors,
                              .process = calls->process,
                              .name = s->found->calls.texts[calls->call] };
    if (calls->took.count)
        krait_sheet_add(sheet, &row);
}

static int fill_process_calls(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->stats_count; i++) {
        if (krait_states_takes_process(s, s->found->stats[i].process))
            add_calls(s, sheet, &s->found->stats[i]);
    }
    return 0;
}

static int sum_calls(const struct states *s, struct krait_kcalls *sums)
{
    int rc = 0;
    for (uint32_t i = 0; i < s->found->stats_count && !rc; i++) {
        const struct krait_kcalls *calls = &s->found->stats[i];
        if (!krait_states_takes_process(s, calls->process))
            continue;
        sums[calls->call].errors += calls->errors;
        rc = krait_spread_merge(&sums[calls->call].took, &calls->took);
    }
    return rc;
}

static int fill_calls(const struct states *s, struct krait_sheet *sheet)
{
    uint32_t count = s->found->calls.len;
    KRAIT_AUTO_FREE struct krait_kcalls *sums = calloc((size_t)count + 1, sizeof(*sums));
    int rc = sums ? sum_calls(s, sums) : -ENOMEM;
    for (uint32_t i = 0; sums && i < count; i++) {
        sums[i].call = i;
        if (!rc)
            add_calls(s, sheet, &sums[i]);
        krait_spread_done(&sums[i].took);
    }
    return rc;
}

static int fill_latencies(const struct states *s, struct krait_sheet *sheet)
{
    static const char *const names[] = {
        [KRAIT_LATENCY_WAKING] = "waking to wake-up",
        [KRAIT_LATENCY_QUEUE] = "wake-up to running",
        [KRAIT_LATENCY_PREEMPTED] = "preempted to running",
    };
    for (unsigned i = 0; i < KRAIT_LATENCIES; i++) {
        struct spread_row row = { .took = &s->found->latencies[i], .name = names[i] };
        if (row.took->count)
            krait_sheet_add(sheet, &row);
    }
    return 0;
}

/* -- the intervals of threads -- */

struct interval_row {
    const struct krait_kthread *thread;
    const struct krait_kinterval *at;
    const struct krait_kthread *by; /* who woke it or had its CPU; NULL: not known */
    uint64_t time_ns, duration_ns;
};

GETTER(interval_state)
{
    static const char *const names[] = {
#define X(name, text, title, drop) text,
        KRAIT_THREAD_STATES(X)
#undef X
    };
    return krait_sheet_name(names[((const struct interval_row *)row)->at->state]);
}

GETTER(interval_call)
{
    const struct states *s = of;
    uint32_t call = ((const struct interval_row *)row)->at->call;
    return krait_sheet_name(call == KRAIT_NO_ID ? NULL : s->found->calls.texts[call]);
}

GETTER(interval_by)
{
    const struct krait_kthread *by = ((const struct interval_row *)row)->by;
    return krait_sheet_name(by ? krait_states_thread_name(of, by) : NULL);
}

GETTER(interval_by_tid)
{
    const struct krait_kthread *by = ((const struct interval_row *)row)->by;
    return krait_sheet_number(by ? (uint64_t)by->tid : KRAIT_SHEET_NONE);
}

GETTER(interval_tid)
{
    return krait_sheet_number((uint64_t)((const struct interval_row *)row)->thread->tid);
}

GETTER(interval_thread)
{
    return krait_sheet_name(krait_states_thread_name(of, ((const struct interval_row *)row)->thread));
}

#define NUMBER(member) krait_sheet_number_at, offsetof(struct interval_row, member)

static const struct krait_sheet_column interval_columns[] = {
    { { "time", 0, 0, 0 }, "time_ns", KRAIT_SHEET_TIME, 0, NUMBER(time_ns) },
    NS("took", "duration_ns", 0, NUMBER(duration_ns)),
    NAME("state", "state", 16, 0, get_interval_state, 0),
    MAYBE("system call", "syscall", get_interval_call, 0),
    MAYBE("by", "by_name", get_interval_by, 0),
    { { "by tid", 0, 0, 1 }, "by_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, get_interval_by_tid, 0 },
    ID("tid", "tid", 0, get_interval_tid, 0),
    NAME("thread", "name", 8, 2, get_interval_thread, 0),
};

#undef NUMBER

static int fill_intervals(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        const struct krait_kthread *t = s->found->threads[i];
        for (uint32_t k = 0; k < t->interval_count; k++) {
            const struct krait_kinterval *at = &t->intervals[k];
            int64_t until = k + 1 < t->interval_count ? at[1].begin_ns : s->found->end_ns;
            struct interval_row row = { .thread = t,
                                        .at = at,
                                        .by = krait_kernel_cause(s->found, at->by),
                                        .time_ns = (uint64_t)(at->begin_ns - s->zero_ns),
                                        .duration_ns = (uint64_t)(until - at->begin_ns) };
            krait_sheet_add(sheet, &row);
        }
    }
    return 0;
}

/* -- views -- */

const struct states_view krait_states_views[] = {
#define COLUMNS(c) c, KRAIT_ARRAY_LEN(c)
    { "cpu", "cpus", "CPUs", NULL, COLUMNS(cpu_columns), fill_cpus, OF_ALL, IN_ALL, 0 },
    { "process", "processes", "Processes", "recorded,on_cpu_ns", COLUMNS(process_columns), fill_processes,
      OF_THREADS, IN_ALL, 15 },
    { "thread", "threads", "Threads", "recorded,on_cpu_ns", COLUMNS(thread_columns), fill_threads, OF_THREADS,
      IN_ALL, 15 },
    { "syscall", "syscalls", "System calls", "total_ns", COLUMNS(call_columns), fill_calls, OF_PROCESSES,
      IN_ALL, 15 },
    { "process-syscall", "process_syscalls", "System calls by process", "total_ns",
      COLUMNS(process_call_columns), fill_process_calls, OF_PROCESSES, IN_JSON, 0 },
    { "latency", "latencies", "Waiting to run", NULL, COLUMNS(latency_columns), fill_latencies, OF_ALL,
      IN_ALL, 0 },
    { "interval", "intervals", "Intervals", "time_ns", COLUMNS(interval_columns), fill_intervals, OF_THREADS,
      ALONE, 0 },
    { .by = NULL },
#undef COLUMNS
};
