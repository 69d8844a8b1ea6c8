/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states`: what threads and CPUs were doing, as the kernel's events tell.
 */
#include "analysis/own_threads.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmds.h"
#include "cmd/report.h"
#include "cmd/select.h"
#include "cmd/sheet.h"
#include "cmd/terminal.h"

#include <string.h>

struct states_options {
    struct krait_select select;
    const char *by, *sort, *limit;
    bool all, csv, json;
};

struct states {
    const struct states_options *options;
    const struct krait_kernel_states *found;
    struct krait_trace *trace;        /* the program's part; NULL: there is none */
    struct krait_own_threads threads; /* of that */
    bool *recorded;                   /* by process of the kernel's: it recorded itself; NULL: none did */
    int64_t zero_ns;                  /* times count from it */
    uint64_t lost;
    bool own; /* of one program alone */
    struct krait_err damage;
    const struct view *only; /* NULL: all */
    uint32_t limit;
    struct krait_table_look look;
    struct krait_buf out, notes;
};

struct view {
    const char *by, *key, *title;
    const char *sort; /* without --sort; NULL: as they are */
    const struct krait_sheet_column *columns;
    uint32_t column_count;
    int (*fill)(const struct states *states, struct krait_sheet *sheet);
    enum { OF_ALL, OF_PROCESSES, OF_THREADS } of; /* what --process, --thread choose among */
    enum { ALONE, IN_JSON, IN_ALL } where;        /* without --by */
    uint32_t rows;                                /* of the overview's table; 0: all */
};

/* -- what is chosen -- */

static const char *process_name(const struct states *s, uint32_t process)
{
    return process == KRAIT_NO_ID ? NULL : s->found->processes[process].name;
}

static uint64_t pid_of(const struct states *s, uint32_t process)
{
    return process == KRAIT_NO_ID ? KRAIT_SHEET_NONE : (uint64_t)s->found->processes[process].pid;
}

static bool is_recorded(const struct states *s, uint32_t process)
{
    return s->recorded && process != KRAIT_NO_ID && s->recorded[process];
}

/* Without --all, or a choice, the rest of the machine is left out. Recorded without rights there is none. */
static bool takes_all(const struct states *s)
{
    const struct krait_select *select = &s->options->select;
    return s->options->all || s->own || !s->recorded || select->threads.count || select->processes.count;
}

static bool takes_process(const struct states *s, uint32_t process)
{
    return (takes_all(s) || is_recorded(s, process)) &&
           krait_select_kprocess(&s->options->select, s->found, process);
}

/* Python's name for a thread that is called in the kernel as its process is, and no more; else the kernel's.
 */
static const char *thread_name(const struct states *s, const struct krait_kthread *t)
{
    const char *process = process_name(s, t->process);
    bool is_plain = process && strcmp(t->name, process) == 0 && (uint64_t)t->tid != pid_of(s, t->process);
    const char *recorded = is_plain ? krait_own_thread_name(&s->threads, t) : NULL;
    return recorded ? recorded : t->name;
}

/* By either of its names. */
static bool takes_thread(const struct states *s, const struct krait_kthread *t)
{
    const struct krait_select *select = &s->options->select;
    if (!takes_all(s) && !is_recorded(s, t->process))
        return false;
    if (krait_select_kthread(select, s->found, t))
        return true;
    const char *recorded = krait_own_thread_name(&s->threads, t);
    return recorded && krait_select_kprocess(select, s->found, t->process) &&
           krait_select_named(&select->threads, recorded, (uint32_t)krait_kthread_own_id(t));
}

static bool was_there(const struct states *s, const struct krait_kthread *t)
{
    return krait_kthread_was_there(t, s->found);
}

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

static const struct krait_sheet_column cpu_columns[] = { ID("cpu", "cpu", 0),
                                                         KRAIT_CPU_STATES(CPU_STATE) CYCLES(7) };

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
        struct krait_sheet_cell *cell = was_there(s, t) && takes_thread(s, t) ? krait_sheet_row(sheet) : NULL;
        if (!cell)
            continue;
        cell = put_cycles(put_states(put(cell, (uint64_t)t->tid), t->ns), &t->cycles);
        cell = put_name(put(cell, pid_of(s, t->process)), process_name(s, t->process));
        put(put_name(cell, thread_name(s, t)), is_recorded(s, t->process));
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
        if (!was_there(s, t) || !takes_thread(s, t))
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
        cell = put_cycles(put_states(put(cell, pid_of(s, process)), sums[i].ns), &sums[i].cycles);
        cell = put(cell, sums[i].threads);
        cell = is_partial ? cell : put(put(cell, sums[i].calls), sums[i].errors);
        put(put_name(cell, process_name(s, process)), is_recorded(s, process));
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
        put_cycles(cell, &s->found->cpus[i].cycles);
    }
    return 0;
}

static void put_calls(struct krait_sheet_cell *cell, const struct states *s, const struct krait_kcalls *calls,
                      bool by_process)
{
    cell = put_spread(put(put(cell, calls->took.count), calls->errors), &calls->took);
    if (by_process)
        cell = put_name(put(cell, pid_of(s, calls->process)), process_name(s, calls->process));
    put_name(cell, s->found->calls.texts[calls->call]);
}

static int fill_process_calls(const struct states *s, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < s->found->stats_count; i++) {
        const struct krait_kcalls *calls = &s->found->stats[i];
        struct krait_sheet_cell *cell =
            calls->took.count && takes_process(s, calls->process) ? krait_sheet_row(sheet) : NULL;
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
        if (!takes_process(s, calls->process))
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
    const struct krait_kthread *by = krait_kernel_doer(s->found, at->by);
    cell = put(cell, (uint64_t)(at->begin_ns - s->zero_ns));
    cell = put(cell, (uint64_t)(until - at->begin_ns));
    cell = put_name(cell, names[at->state]);
    cell = put_name(cell, at->call == KRAIT_NO_ID ? NULL : s->found->calls.texts[at->call]);
    cell = put_name(cell, by ? thread_name(s, by) : NULL);
    cell = put(cell, by ? (uint64_t)by->tid : KRAIT_SHEET_NONE);
    put_name(put(cell, (uint64_t)t->tid), thread_name(s, t));
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

static const struct view views[] = {
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
#undef COLUMNS
};

static int make_sheet(const struct states *s, const struct view *view, struct krait_sheet *sheet,
                      struct krait_err *err)
{
    *sheet = (struct krait_sheet){ .columns = view->columns, .column_count = view->column_count };
    if (view->fill(s, sheet) || sheet->failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    const char *sort = s->options->sort ? s->options->sort : view->sort;
    return sort ? krait_sheet_sort(sheet, sort, err) : 0;
}

/* Heading and the first rows, and how many more there are. */
static void print_section(struct states *s, const struct view *view, const struct krait_sheet *sheet)
{
    bool bold = s->look.colour;
    uint32_t limit = s->options->limit || s->only ? s->limit : view->rows;
    if (!s->only)
        krait_buf_fmt(&s->out, "%s%s%s%s\n", s->out.len ? "\n" : "", bold ? KRAIT_BOLD : "", view->title,
                      bold ? KRAIT_PLAIN : "");
    krait_sheet_table(sheet, limit, &s->look, &s->out);
    if (limit && sheet->rows > limit)
        krait_buf_fmt(&s->notes, "%s: %u of %u rows; --limit 0 shows all\n", view->title, limit, sheet->rows);
}

static int add_view(struct states *s, const struct view *view, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    int rc = make_sheet(s, view, &sheet, err);
    if (rc)
        return rc;
    if (s->options->csv)
        return krait_sheet_csv(&sheet, s->limit, &s->out);
    if (!s->options->json) {
        if (sheet.rows || s->only)
            print_section(s, view, &sheet);
        return 0;
    }
    krait_json_key(&s->out, view->key);
    return krait_sheet_json(&sheet, s->limit, &s->out);
}

/* The option, of those given, that cannot choose among what the view shows; NULL: each can. */
static const char *unfit_option(const struct states *s, const struct view *view)
{
    const struct krait_select *select = &s->options->select;
    return select->threads.count && view->of < OF_THREADS       ? "--thread"
           : select->processes.count && view->of < OF_PROCESSES ? "--process"
                                                                : NULL;
}

static bool is_wanted(const struct states *s, const struct view *view)
{
    if (s->only)
        return s->only == view;
    return view->where == IN_ALL || (view->where == IN_JSON && s->options->json);
}

static void open_json(struct states *s)
{
    krait_buf_char(&s->out, '{');
    krait_report_json_u64(&s->out, "begin_ns", (uint64_t)s->zero_ns);
    krait_report_json_u64(&s->out, "time_ns", (uint64_t)(s->found->begin_ns - s->zero_ns));
    krait_report_json_u64(&s->out, "duration_ns", (uint64_t)(s->found->end_ns - s->found->begin_ns));
}

static void close_json(struct states *s)
{
    krait_json_key(&s->out, "own_only");
    krait_buf_str(&s->out, s->own ? "true" : "false");
    krait_report_json_u64(&s->out, "lost", s->lost);
    krait_report_json_damage(&s->out, s->damage.text);
    krait_buf_str(&s->out, "}\n");
}

/* Which tables would show more than what was chosen. */
static void note_unfit(struct states *s)
{
    const char *before = "left out: ";
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(views); i++) {
        const char *unfit = is_wanted(s, &views[i]) ? unfit_option(s, &views[i]) : NULL;
        if (!unfit)
            continue;
        krait_buf_fmt(&s->notes, "%s%s", before, views[i].title);
        before = ", ";
    }
    if (*before == ',')
        krait_buf_str(&s->notes, ", which are of more than what was chosen\n");
}

/* What of the machine is not shown. */
static void note_rest(struct states *s)
{
    char threads[KRAIT_FMT_SIZE];
    uint32_t rest = 0;
    for (uint32_t i = 0; i < s->found->thread_count; i++)
        rest += was_there(s, s->found->threads[i]) && !is_recorded(s, s->found->threads[i]->process);
    if (!takes_all(s) && rest)
        krait_buf_fmt(&s->notes,
                      "processes, threads and system calls are the recorded program's; --all adds %s of the "
                      "rest of the machine\n",
                      krait_fmt_counted(threads, rest, "thread"));
}

static void note_state(struct states *s)
{
    char count[KRAIT_FMT_SIZE];
    note_unfit(s);
    if (!s->only || s->only->of != OF_ALL)
        note_rest(s);
    if (s->own)
        krait_buf_str(
            &s->notes,
            "missing: system calls, wake-ups, interrupts, other programs (recorded without rights)\n"
            "user is all time on a CPU; other is all time without, but for page faults\n");
    if (s->lost)
        krait_buf_fmt(&s->notes,
                      "lost: %s of the kernel's: what their CPUs ran until the next one is unknown\n",
                      krait_fmt_counted(count, s->lost, "event"));
    if (!s->damage.code)
        return;
    krait_buf_str(&s->notes, "damaged: ");
    krait_fmt_safe(&s->notes, s->damage.text);
    krait_buf_str(&s->notes, "; what is whole was read\n");
}

static int some_thread(const struct states *s, struct krait_err *err)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        if (takes_thread(s, s->found->threads[i]))
            return 0;
    }
    if (!s->options->select.threads.count && !s->options->select.processes.count)
        return 0;
    return krait_err_set(err, -ENOENT,
                         "no thread is left by --thread and --process; krait states --by thread lists them");
}

static int make_output(struct states *s, struct krait_err *err)
{
    int rc = some_thread(s, err);
    if (rc)
        return rc;
    if (s->options->json)
        open_json(s);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(views) && !rc; i++) {
        if (is_wanted(s, &views[i]) && !unfit_option(s, &views[i]))
            rc = add_view(s, &views[i], err);
    }
    if (s->options->json)
        close_json(s);
    note_state(s);
    if (!rc && s->out.failed)
        rc = -ENOMEM;
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

/* -- the verb -- */

static int check_by(const struct states *s, struct krait_err *err)
{
    const struct states_options *o = s->options;
    if (!o->by && (o->csv || o->sort))
        return krait_err_set(err, -EINVAL, "--%s needs --by: the overview has several tables",
                             o->csv ? "csv" : "sort");
    const char *unfit = s->only ? unfit_option(s, s->only) : NULL;
    if (unfit && s->only->of == OF_ALL)
        return krait_err_set(err, -EINVAL,
                             "%s does not go with --by %s, which is of the whole machine; --by thread has "
                             "what each thread did",
                             unfit, o->by);
    if (unfit)
        return krait_err_set(err, -EINVAL,
                             "%s does not go with --by %s: calls are counted by process; --process chooses",
                             unfit, o->by);
    if (s->only && s->only->where == ALONE && !o->select.threads.count && !o->select.processes.count)
        return krait_err_set(err, -EINVAL, "--by %s needs --thread or --process", o->by);
    return 0;
}

static int check_options(struct states *s, struct krait_err *err)
{
    const struct states_options *o = s->options;
    enum { TABLE_ROWS = 40 };
    for (size_t i = 0; o->by && i < KRAIT_ARRAY_LEN(views); i++) {
        if (strcmp(views[i].by, o->by) == 0)
            s->only = &views[i];
    }
    if (o->csv && o->json)
        return krait_err_set(err, -EINVAL, "--csv and --json exclude each other");
    int rc = check_by(s, err);
    rc = rc ? rc : krait_select_check(&o->select, err);
    return rc ? rc : krait_select_limit(&s->limit, o->limit, o->csv || o->json ? 0 : TABLE_ROWS, err);
}

/* Which threads' intervals are kept, by their index. */
struct kept {
    const bool *threads;
    uint32_t count;
};

static bool is_kept(void *ctx, uint32_t index, int32_t tid)
{
    const struct kept *kept = ctx;
    return index < kept->count && kept->threads[index];
}

/* Which threads are meant is known at the end alone, where all have their names: intervals take a second run.
 */
static int run_again(struct states *s, struct krait_kevs *kevs, struct krait_kernel_options *options,
                     struct krait_kernel_states **found, struct krait_err *err)
{
    uint32_t count = (*found)->thread_count;
    KRAIT_AUTO_FREE bool *threads = calloc((size_t)count + 1, sizeof(*threads));
    if (!threads)
        return krait_err_set(err, -ENOMEM, "out of memory");
    s->found = *found;
    for (uint32_t i = 0; i < count; i++)
        threads[i] = was_there(s, s->found->threads[i]) && takes_thread(s, s->found->threads[i]);
    krait_kernel_states_free(*found);
    *found = NULL;
    options->keep = is_kept;
    options->ctx = &(struct kept){ threads, count };
    return krait_kernel_states_new(found, kevs, options, err);
}

/* Which processes hold a thread that recorded itself. */
static int find_recorded(struct states *s, const struct krait_kernel_states *found)
{
    bool some = false;
    bool *recorded = calloc((size_t)found->process_count + 1, sizeof(*recorded));
    if (!recorded)
        return -ENOMEM;
    for (uint32_t i = 0; s->trace && i < found->thread_count; i++) {
        const struct krait_kthread *t = found->threads[i];
        if (t->process == KRAIT_NO_ID || krait_own_thread_at(&s->threads, t, UINT64_MAX) == KRAIT_NO_ID)
            continue;
        recorded[t->process] = some = true;
    }
    if (some)
        s->recorded = recorded;
    else
        free(recorded);
    return 0;
}

static int analyse(struct states *s, char **paths, size_t count, struct krait_kernel_states **found,
                   struct krait_err *err)
{
    struct krait_kevs *kevs = NULL;
    struct krait_kernel_options options = { 0 };
    struct krait_err no_program;
    krait_trace_open(&s->trace, (const char *const *)paths, count, &no_program);
    int rc = krait_kevs_open(&kevs, (const char *const *)paths, count, err);
    if (!rc)
        s->zero_ns = krait_select_kernel_range(&s->options->select, s->trace, kevs, &options.from_ns,
                                               &options.until_ns);
    rc = rc ? rc : krait_kernel_states_new(found, kevs, &options, err);
    s->own = kevs && krait_kevs_own(kevs);
    if (!rc && (krait_own_threads_init(&s->threads, s->trace, *found) || find_recorded(s, *found)))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && s->only && s->only->where == ALONE)
        rc = run_again(s, kevs, &options, found, err);
    if (kevs) {
        s->lost = krait_kevs_lost(kevs);
        s->damage = *krait_kevs_damage(kevs);
    }
    krait_kevs_close(kevs);
    s->found = *found;
    return rc;
}

static int run_states(void *values, int argc, char **argv)
{
    struct states_options *options = values;
    struct states s = { .options = options, .look = krait_terminal_look(stdout) };
    struct krait_kernel_states *found = NULL;
    struct krait_err err = { 0 };
    int rc = check_options(&s, &err);
    if (!rc && argc < 1)
        rc = krait_err_set(&err, -EINVAL, "which trace? Give the folder of a kernel trace");
    int status = rc ? krait_cmd_usage(&krait_cmd_states, &err) : 0;
    rc = rc ? rc : analyse(&s, argv, (size_t)argc, &found, &err);
    rc = rc ? rc : make_output(&s, &err);
    rc = rc ? rc : krait_terminal_print(&s.out, &s.notes, "the states", &err);
    krait_select_done(&options->select);
    krait_buf_done(&s.out);
    krait_buf_done(&s.notes);
    krait_own_threads_done(&s.threads);
    free(s.recorded);
    krait_kernel_states_free(found);
    krait_trace_close(s.trace);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_states, &err);
}

#define OPT(field) offsetof(struct states_options, field)

static const struct krait_opt states_opts[] = {
    { "by", 0, KRAIT_OPT_CHOICE, "cpu|process|thread|syscall|process-syscall|latency|interval", OPT(by),
      "One table, of these; without it all of them, the busiest rows of each" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", OPT(sort),
      "The column that decides the order, by its name in --csv: on_cpu_ns, blocked_disk_ns, p99_ns; several "
      "with commas between" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show N rows; 0 for all. A table has 40, in the overview 15; CSV and JSON have all" },
    KRAIT_SELECT_OPTS(struct states_options, select),
    KRAIT_SELECT_TO_OPT(struct states_options, select),
    { "all", 'a', KRAIT_OPT_FLAG, NULL, OPT(all),
      "The rest of the machine too, behind the recorded processes; --process and --thread choose among all" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print comma-separated values, times in ns; with --by" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in ns" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_states = {
    .name = "states",
    .operands = "TRACE...",
    .summary = "Show what threads and CPUs were doing, from the kernel's events",
    .description =
        "Reads the kernel's part of a recording (krait record --kernel), or a kernel trace of LTTng's or "
        "perf's.\n\n"
        "For each thread, the time it ran in user mode and in system calls, was stopped by interrupts, was "
        "ready to run\n"
        "but did not (woken, or preempted), and was blocked: on the disk, the network, a timer, a lock, a "
        "child process,\n"
        "or something else. For each CPU, the time it was idle, in user mode, in system calls, in interrupts "
        "and soft\n"
        "interrupts. System calls with their number, errors and how long they took; and how long threads "
        "waited to run.\n\n"
        "Of a recording, processes, threads and system calls are those of the programs that were recorded; "
        "--all "
        "adds the\n"
        "rest of the machine. CPUs, and how long threads waited to run, are of the whole machine.\n\n"
        "Times after the start are counted from the first event, of the kernel or of the program beside it. "
        "What a "
        "thread did\n"
        "before its first event, or while events of its CPU were lost, is unknown.",
    .examples = "krait states trace\n# which threads waited longest for the disk\n"
                "krait states trace --by thread --sort blocked_disk_ns\n"
                "# the system calls of one process\nkrait states trace --by syscall --process postgres\n"
                "# what one thread did, one state after the other\n"
                "krait states trace --by interval --thread 4711 --from 1s --until 1.1s\n"
                "# for other programs\nkrait states trace --by thread --csv > threads.csv\n",
    .opts = states_opts,
    .values_size = sizeof(struct states_options),
    .run = run_states,
};
