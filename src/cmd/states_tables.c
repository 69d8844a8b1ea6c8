/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states`: its tables, their columns and rows.
 */
#include "cmd/states.h"

/* -- columns -- */

#define NS(title, key, drop)                          \
    {                                                 \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, 0 \
    }
#define COUNT(title, key, drop)                          \
    {                                                    \
        { title, 0, 0, drop }, key, KRAIT_SHEET_COUNT, 0 \
    }
#define ID(title, key, drop)                              \
    {                                                     \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NUMBER, 0 \
    }
#define NAME(title, key, min, drop)                                                              \
    {                                                                                            \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, key, KRAIT_SHEET_NAME, 0 \
    }

#define MAYBE(title, key)                                                                                  \
    {                                                                                                      \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 0 }, key, KRAIT_SHEET_NAME, KRAIT_SHEET_DASH \
    }
#define SUM(title, key)                                           \
    {                                                             \
        { title, 0, 0, 0 }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DASH \
    }
/* A state that no thread was in has no column in tables. */
#define STATE(name, text, title, drop) \
    { { title, 0, 0, drop },           \
      text "_ns",                      \
      KRAIT_SHEET_NS,                  \
      drop ? KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET : KRAIT_SHEET_DATA },
#define STATES                                                                          \
    SUM("on CPU", "on_cpu_ns"), SUM("ready", "ready_ns"), SUM("blocked", "blocked_ns"), \
        KRAIT_THREAD_STATES(STATE)

#define RECORDED                                                                 \
    {                                                                            \
        { "recorded", 0, 0, 0 }, "recorded", KRAIT_SHEET_COUNT, KRAIT_SHEET_DATA \
    }

/* Where the trace tells frequencies. */
#define QUIET_COUNT(title, key, drop)                                    \
    {                                                                    \
        { title, 0, 0, drop }, key, KRAIT_SHEET_COUNT, KRAIT_SHEET_QUIET \
    }
#define CYCLES(drop)                                                                   \
    QUIET_COUNT("cycles", "cycles", drop), QUIET_COUNT("MHz", "mean_mhz", (drop) + 1), \
    {                                                                                  \
        { "clocked", 0, 0, 0 }, "clocked_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DATA         \
    }

static const struct krait_sheet_column thread_columns[] = {
    ID("tid", "tid", 0),           STATES CYCLES(18), ID("pid", "pid", 16), NAME("process", "process", 8, 17),
    NAME("thread", "name", 12, 0), RECORDED,
};

#define PROCESS(calls)                                                       \
    ID("pid", "pid", 0), STATES CYCLES(18), COUNT("threads", "threads", 16), \
        calls NAME("process", "name", 12, 0), RECORDED
#define CALLS COUNT("calls", "syscalls", 8), COUNT("errors", "errors", 17),

static const struct krait_sheet_column process_columns[] = { PROCESS(CALLS) };

/* Of some of its threads: calls are counted by process. */
static const struct krait_sheet_column partial_columns[] = { PROCESS() };

#define CPU_STATE(name, text, title, drop) \
    { { title, 0, 0, drop }, text "_ns", KRAIT_SHEET_NS, KRAIT_SHEET_DASH },

#define STOLEN                                                                \
    {                                                                         \
        { "stolen", 0, 0, 0 }, "stolen_ns", KRAIT_SHEET_NS, KRAIT_SHEET_QUIET \
    }

static const struct krait_sheet_column cpu_columns[] = { ID("cpu", "cpu", 0),
                                                         KRAIT_CPU_STATES(CPU_STATE) CYCLES(7), STOLEN };

#define SPREAD                                                                                            \
    NS("total", "total_ns", 2), NS("mean", "mean_ns", 0), NS("min", "min_ns", 6), NS("p50", "p50_ns", 3), \
        NS("p90", "p90_ns", 5), NS("p99", "p99_ns", 1), NS("max", "max_ns", 4)

static const struct krait_sheet_column call_columns[] = { COUNT("calls", "calls", 0),
                                                          COUNT("errors", "errors", 0), SPREAD,
                                                          NAME("system call", "name", 12, 0) };

static const struct krait_sheet_column process_call_columns[] = {
    COUNT("calls", "calls", 0), COUNT("errors", "errors", 0),     SPREAD,
    ID("pid", "pid", 1),        NAME("process", "process", 8, 0), NAME("system call", "name", 12, 0)
};

static const struct krait_sheet_column latency_columns[] = { COUNT("count", "count", 0), SPREAD,
                                                             NAME("latency", "name", 20, 0) };

static const struct krait_sheet_column interval_columns[] = {
    { { "time", 0, 0, 0 }, "time_ns", KRAIT_SHEET_TIME, 0 },
    NS("took", "duration_ns", 0),
    NAME("state", "state", 16, 0),
    MAYBE("system call", "syscall"),
    MAYBE("by", "by_name"),
    { { "by tid", 0, 0, 1 }, "by_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA },
    ID("tid", "tid", 0),
    NAME("thread", "name", 8, 2),
};

/* -- rows -- */

static struct krait_sheet_cell *put(struct krait_sheet_cell *cell, uint64_t number)
{
    cell->number = number;
    return cell + 1;
}

static struct krait_sheet_cell *put_name(struct krait_sheet_cell *cell, const char *name)
{
    cell->name = name;
    return cell + 1;
}

static uint64_t quantile(const struct krait_spread *spread, double q)
{
    uint64_t ns = krait_hist_quantile(&spread->hist, q);
    return KRAIT_MAX(spread->min, KRAIT_MIN(spread->max, ns));
}

static struct krait_sheet_cell *put_spread(struct krait_sheet_cell *cell, const struct krait_spread *spread)
{
    cell = put(cell, spread->sum);
    cell = put(cell, spread->count ? spread->sum / spread->count : 0);
    cell = put(cell, spread->min);
    cell = put(cell, quantile(spread, 0.5));
    cell = put(cell, quantile(spread, 0.9));
    cell = put(cell, quantile(spread, 0.99));
    return put(cell, spread->max);
}

static struct krait_sheet_cell *put_states(struct krait_sheet_cell *cell, const uint64_t ns[KRAIT_TS_COUNT])
{
    uint64_t blocked = 0;
    for (unsigned i = KRAIT_TS_DISK; i <= KRAIT_TS_BLOCKED; i++)
        blocked += ns[i];
    cell = put(cell, ns[KRAIT_TS_USER] + ns[KRAIT_TS_SYSTEM]);
    cell = put(cell, ns[KRAIT_TS_WOKEN] + ns[KRAIT_TS_PREEMPTED] + ns[KRAIT_TS_THROTTLED]);
    cell = put(cell, blocked);
    for (unsigned i = 0; i < KRAIT_TS_COUNT; i++)
        cell = put(cell, ns[i]);
    return cell;
}

static struct krait_sheet_cell *put_cycles(struct krait_sheet_cell *cell, const struct krait_cycles *cycles)
{
    return put(put(put(cell, krait_cycles_count(cycles)), krait_cycles_mhz(cycles)), cycles->ns);
}

static int fill_threads(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        const struct krait_kthread *t = s->found->threads[i];
        struct krait_sheet_cell *cell =
            krait_kthread_was_there(t, s->found) && krait_states_takes_thread(s, t) ? krait_sheet_row(sheet)
                                                                                    : NULL;
        if (!cell)
            continue;
        cell = put_cycles(put_states(put(cell, (uint64_t)t->tid), t->ns), &t->cycles);
        cell = put_name(put(cell, krait_states_pid(s, t->process)), krait_states_process_name(s, t->process));
        put(put_name(cell, krait_states_thread_name(s, t)), krait_states_is_recorded(s, t->process));
    }
    return 0;
}

/* What the threads and calls of a process come to. Those whose process is not known are one. */
struct process_sum {
    uint64_t ns[KRAIT_TS_COUNT];
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
        for (unsigned k = 0; k < KRAIT_TS_COUNT; k++)
            sum->ns[k] += t->ns[k];
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
    bool is_partial = s->options->select.threads.count;
    if (!sums)
        return -ENOMEM;
    if (is_partial) {
        sheet->columns = partial_columns;
        sheet->column_count = KRAIT_ARRAY_LEN(partial_columns);
    }
    sum_processes(s, sums);
    for (uint32_t i = 0; i <= count; i++) {
        uint32_t process = i < count ? i : KRAIT_NO_ID;
        struct krait_sheet_cell *cell = sums[i].threads ? krait_sheet_row(sheet) : NULL;
        if (!cell)
            continue;
        cell = put_cycles(put_states(put(cell, krait_states_pid(s, process)), sums[i].ns), &sums[i].cycles);
        cell = put(cell, sums[i].threads);
        cell = is_partial ? cell : put(put(cell, sums[i].calls), sums[i].errors);
        put(put_name(cell, krait_states_process_name(s, process)), krait_states_is_recorded(s, process));
    }
    return 0;
}

static int fill_cpus(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->cpu_count; i++) {
        struct krait_sheet_cell *cell = s->found->cpus[i].met ? krait_sheet_row(sheet) : NULL;
        if (!cell)
            continue;
        cell = put(cell, i);
        for (unsigned k = 0; k < KRAIT_CS_COUNT; k++)
            cell = put(cell, s->found->cpus[i].ns[k]);
        cell = put_cycles(cell, &s->found->cpus[i].cycles);
        put(cell, i < s->found->steals.count ? s->found->steals.items[i].stolen_ns : 0);
    }
    return 0;
}

static void put_calls(struct krait_sheet_cell *cell, const struct states *s, const struct krait_kcalls *calls,
                      bool by_process)
{
    cell = put_spread(put(put(cell, calls->took.count), calls->errors), &calls->took);
    if (by_process)
        cell = put_name(put(cell, krait_states_pid(s, calls->process)),
                        krait_states_process_name(s, calls->process));
    put_name(cell, s->found->calls.texts[calls->call]);
}

static int fill_process_calls(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->stats_count; i++) {
        const struct krait_kcalls *calls = &s->found->stats[i];
        struct krait_sheet_cell *cell = calls->took.count && krait_states_takes_process(s, calls->process)
                                            ? krait_sheet_row(sheet)
                                            : NULL;
        if (cell)
            put_calls(cell, s, calls, true);
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
        struct krait_sheet_cell *cell = sums[i].took.count && !rc ? krait_sheet_row(sheet) : NULL;
        sums[i].call = i;
        if (cell)
            put_calls(cell, s, &sums[i], false);
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
        const struct krait_spread *spread = &s->found->latencies[i];
        struct krait_sheet_cell *cell = spread->count ? krait_sheet_row(sheet) : NULL;
        if (cell)
            put_name(put_spread(put(cell, spread->count), spread), names[i]);
    }
    return 0;
}

static void put_interval(struct krait_sheet_cell *cell, const struct states *s, const struct krait_kthread *t,
                         uint32_t i)
{
    static const char *const names[] = {
#define X(name, text, title, drop) text,
        KRAIT_THREAD_STATES(X)
#undef X
    };
    const struct krait_kinterval *at = &t->intervals[i];
    int64_t until = i + 1 < t->interval_count ? at[1].begin_ns : s->found->end_ns;
    const struct krait_kthread *by = krait_kernel_cause(s->found, at->by);
    cell = put(cell, (uint64_t)(at->begin_ns - s->zero_ns));
    cell = put(cell, (uint64_t)(until - at->begin_ns));
    cell = put_name(cell, names[at->state]);
    cell = put_name(cell, at->call == KRAIT_NO_ID ? NULL : s->found->calls.texts[at->call]);
    cell = put_name(cell, by ? krait_states_thread_name(s, by) : NULL);
    cell = put(cell, by ? (uint64_t)by->tid : KRAIT_SHEET_NONE);
    put_name(put(cell, (uint64_t)t->tid), krait_states_thread_name(s, t));
}

static int fill_intervals(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        const struct krait_kthread *t = s->found->threads[i];
        for (uint32_t k = 0; k < t->interval_count; k++) {
            struct krait_sheet_cell *cell = krait_sheet_row(sheet);
            if (cell)
                put_interval(cell, s, t, k);
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
