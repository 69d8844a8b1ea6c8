/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states`: what threads and CPUs were doing, as the kernel's events tell.
 */
#include "cmd/states.h"

#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/state.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "trace/gil.h"
#include "trace/kernel/kernel.h"

#include <string.h>

static int make_sheet(const struct states *s, const struct states_view *view, struct krait_sheet *sheet,
                      struct krait_err *err)
{
    *sheet =
        (struct krait_sheet){ .columns = view->columns, .column_count = view->column_count, .of = (void *)s };
    if (view->fill(s, sheet) || sheet->failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    const char *sort = s->options->sort ? s->options->sort : view->sort;
    return sort ? krait_sheet_sort(sheet, sort, err) : 0;
}

/* Heading and the first rows, and how many more there are. */
static void print_section(struct states *s, const struct states_view *view, const struct krait_sheet *sheet)
{
    bool bold = s->look.colour;
    uint32_t limit = s->options->limit || s->only ? s->limit : view->rows;
    if (!s->only)
        krait_buf_fmt(&s->out, "%s%s%s%s\n", s->out.len ? "\n" : "", bold ? KRAIT_BOLD : "", view->title,
                      bold ? KRAIT_PLAIN : "");
    krait_sheet_table(sheet, limit, &s->look, &s->out);
    if (limit && sheet->rows > limit)
        krait_buf_fmt(&s->notes, "%s: ", view->title);
    krait_sheet_note_limit(&s->notes, limit, sheet->rows, "row");
}

int krait_states_put(struct states *s, const struct states_view *view, const struct krait_sheet *sheet)
{
    if (s->options->csv)
        return krait_sheet_csv(sheet, s->limit, &s->out);
    if (!s->options->json) {
        if (sheet->rows || s->only)
            print_section(s, view, sheet);
        return 0;
    }
    krait_json_key(&s->out, view->key);
    return krait_sheet_json(sheet, s->limit, &s->out);
}

static int add_view(struct states *s, const struct states_view *view, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    int rc = make_sheet(s, view, &sheet, err);
    return rc ? rc : krait_states_put(s, view, &sheet);
}

/* The option, of those given, that cannot choose among what the view shows; NULL: each can. */
static const char *unfit_option(const struct states *s, const struct states_view *view)
{
    const struct krait_select *select = &s->options->select;
    return select->threads.count && view->of < OF_THREADS       ? "--thread"
           : select->processes.count && view->of < OF_PROCESSES ? "--process"
                                                                : NULL;
}

static bool is_wanted(const struct states *s, const struct states_view *view)
{
    if (s->only)
        return s->only == view;
    return view->where == IN_ALL || (view->where == IN_JSON && s->options->json);
}

static void open_json(struct states *s)
{
    krait_buf_char(&s->out, '{');
    krait_json_key_u64(&s->out, "begin_ns", (uint64_t)s->zero_ns);
    krait_json_key_u64(&s->out, "time_ns", (uint64_t)(s->found->begin_ns - s->zero_ns));
    krait_json_key_u64(&s->out, "duration_ns", s->found->counted_ns);
}

static struct krait_state_stolen stolen_in(const struct states *s)
{
    const struct krait_kernel_steals *steals = &s->found->steals;
    return (struct krait_state_stolen){ .known = krait_kernel_steals_known(steals),
                                        .ns = krait_kernel_steals_sum(steals),
                                        .all_ns = s->found->counted_ns * steals->count };
}

static void close_json(struct states *s)
{
    krait_json_key_bool(&s->out, "own_only", s->own);
    krait_json_key_u64(&s->out, "lost", s->lost);
    krait_json_lost_events(&s->out, s->lost);
    const struct krait_state_stolen stolen = stolen_in(s);
    krait_state_json_stolen(&s->out, &stolen);
    krait_json_key_text_or_null(&s->out, "damage", s->damage.text);
    krait_buf_str(&s->out, "}\n");
}

/* Which tables would show more than what was chosen. */
static void note_unfit(struct states *s)
{
    const char *before = "left out: ";
    for (const struct states_view *view = krait_states_views; view->by; view++) {
        const char *unfit = is_wanted(s, view) ? unfit_option(s, view) : NULL;
        if (!unfit)
            continue;
        krait_buf_fmt(&s->notes, "%s%s", before, view->title);
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
        rest += krait_kthread_was_there(s->found->threads[i], s->found) &&
                !krait_states_is_recorded(s, s->found->threads[i]->process);
    if (!krait_states_takes_all(s) && rest)
        krait_buf_fmt(&s->notes,
                      "processes, threads and system calls are the recorded program's; --all adds %s of the "
                      "rest of the machine\n",
                      krait_fmt_counted(threads, rest, "thread"));
}

static bool has_column(const struct states_view *view, const char *key)
{
    uint32_t i = 0;
    while (i < view->column_count && strcmp(view->columns[i].key, key) != 0)
        i++;
    return i < view->column_count;
}

/* What people may take for the program's own. */
static void note_faults(struct states *s)
{
    bool is_text = !s->options->csv && !s->options->json;
    if (is_text && !s->own && (!s->only || has_column(s->only, "user_ns")))
        krait_buf_str(&s->notes,
                      "user includes the kernel's work for minor page faults, which are not recorded\n");
}

/* The kernel sees a thread that waits for the GIL wait for a futex, as for any other lock. */
static void note_gil(struct states *s)
{
    bool is_text = !s->options->csv && !s->options->json;
    if (is_text && s->only && s->only->where == ALONE && s->trace && krait_gil_was_waited_for(s->trace) > 0)
        krait_buf_str(
            &s->notes,
            "these are the kernel's states: waits for the GIL are among locks and time in which the "
            "thread is ready; --by thread tells them apart\n");
}

static void note_state(struct states *s)
{
    const struct krait_state_stolen stolen = stolen_in(s);
    note_unfit(s);
    if (!s->only || s->only->of != OF_ALL)
        note_rest(s);
    if (s->own)
        krait_buf_str(&s->notes,
                      "missing: system calls, wake-ups, interrupts, other programs (recorded without root)\n"
                      "user is all time on a CPU; other is all other time, except page faults\n");
    note_faults(s);
    note_gil(s);
    krait_state_note_stolen(&s->notes, &stolen);
    krait_ending_note_kernel_lost(&s->notes, s->trace, s->lost,
                                  "what their CPUs ran until the next one is unknown");
    krait_ending_note_damage(&s->notes, s->damage.text, "");
}

static int some_thread(const struct states *s, struct krait_err *err)
{
    for (uint32_t i = 0; i < s->found->thread_count; i++) {
        if (krait_states_takes_thread(s, s->found->threads[i]))
            return 0;
    }
    if (!s->options->select.threads.count && !s->options->select.processes.count)
        return 0;
    return krait_err_set(err, -ENOENT,
                         "no thread matches --thread and --process; krait states --by thread lists all");
}

static int make_output(struct states *s, struct krait_err *err)
{
    int rc = some_thread(s, err);
    if (rc)
        return rc;
    if (s->options->json)
        open_json(s);
    for (const struct states_view *view = krait_states_views; view->by && !rc; view++) {
        if (is_wanted(s, view) && !unfit_option(s, view))
            rc = add_view(s, view, err);
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
    for (const struct states_view *view = krait_states_views; o->by && view->by; view++) {
        if (strcmp(view->by, o->by) == 0)
            s->only = view;
    }
    int rc = check_by(s, err);
    rc = rc ? rc : krait_select_check(&o->select, err);
    return rc ? rc : krait_select_rows(&s->limit, o->limit, o->csv, o->json, err);
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

/* Which threads are meant is known at the end alone, where all have their names: intervals take a second run. */
static int run_again(struct states *s, struct krait_kernel_events *events,
                     struct krait_kernel_options *options, struct krait_kernel_states **found,
                     struct krait_err *err)
{
    uint32_t count = (*found)->thread_count;
    KRAIT_AUTO_FREE bool *threads = calloc((size_t)count + 1, sizeof(*threads));
    if (!threads)
        return krait_err_set(err, -ENOMEM, "out of memory");
    s->found = *found;
    for (uint32_t i = 0; i < count; i++)
        threads[i] = krait_kthread_was_there(s->found->threads[i], s->found) &&
                     krait_states_takes_thread(s, s->found->threads[i]);
    krait_kernel_states_free(*found);
    *found = NULL;
    options->keep = is_kept;
    options->ctx = &(struct kept){ threads, count };
    return krait_kernel_states_new(found, events, options, err);
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

static int open_trace(struct states *s, char **paths, size_t count, struct krait_err *err)
{
    struct krait_err ignored = { 0 };
    int rc = krait_trace_open(&s->trace, (const char *const *)paths, count, KRAIT_NEEDS_KERNEL, err);
    if (!rc || krait_trace_open(&s->trace, (const char *const *)paths, count, KRAIT_NEEDS_CALLS, &ignored))
        return rc;
    s->sampled = s->trace->samples.rate && !s->trace->has_kernel;
    return s->sampled ? 0 : rc;
}

static int analyse(struct states *s, char **paths, size_t count, struct krait_kernel_states **found,
                   struct krait_err *err)
{
    struct krait_kernel_events *events = NULL;
    struct krait_kernel_options options = { 0 };
    int rc = open_trace(s, paths, count, err);
    if (rc || s->sampled)
        return rc;
    struct krait_select *select = (void *)&s->options->select;
    select->sums_parts = !s->only || s->only->where != ALONE;
    rc = krait_within(select, s->trace, "states", err);
    options.parts = select->parts.count ? &select->parts : NULL;
    rc = rc ? rc : krait_trace_kernel(s->trace, &events, err);
    if (!rc)
        s->zero_ns = krait_select_kernel_range(&s->options->select, s->trace, events, &options.from_ns,
                                               &options.until_ns);
    rc = rc ? rc : krait_kernel_states_new(found, events, &options, err);
    s->own = events && krait_kernel_events_own(events);
    if (!rc && (krait_own_threads_init(&s->threads, s->trace, *found) || find_recorded(s, *found)))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && s->only && s->only->where == ALONE)
        rc = run_again(s, events, &options, found, err);
    else if (!rc && (!s->only || has_column(s->only, "gil_ns")))
        rc = krait_states_find_gil(s, *found, err);
    if (events) {
        s->lost = krait_kernel_events_lost(events);
        s->damage = *krait_kernel_events_damage(events);
    }
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
    rc = rc ? rc : krait_select_given(KRAIT_SELECT_KERNEL, argc, &err);
    int status = rc ? krait_cmd_usage(&krait_cmd_states, &err) : 0;
    rc = rc ? rc : analyse(&s, argv, (size_t)argc, &found, &err);
    rc = rc ? rc : s.sampled ? krait_states_sampled(&s, &err) : make_output(&s, &err);
    rc = rc ? rc : krait_terminal_print(&s.out, &s.notes, "the states", &err);
    krait_select_done(&options->select);
    krait_buf_done(&s.out);
    krait_buf_done(&s.notes);
    krait_own_threads_done(&s.threads);
    free(s.recorded);
    free(s.gil);
    krait_kernel_states_free(found);
    krait_trace_close(s.trace);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_states, &err);
}

#define OPT(field) offsetof(struct states_options, field)

static const struct krait_opt states_opts[] = {
    { "by", 0, KRAIT_OPT_CHOICE, "cpu|process|thread|syscall|process-syscall|latency|interval", OPT(by),
      "Show only this table (default: all of them, the busiest rows of each)" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", OPT(sort),
      "Sort by these columns, named as in --csv and separated by commas: on_cpu_ns, blocked_disk_ns, p99_ns" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show N rows, 0 for all (default: 40 in a table, 15 in the overview, all in CSV and JSON)" },
    KRAIT_SELECT_OPTS(struct states_options, select),
    KRAIT_SELECT_TO_OPT(struct states_options, select),
    { "all", 'a', KRAIT_OPT_FLAG, NULL, OPT(all),
      "Show the rest of the machine too, after the recorded processes" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "With --by: print CSV, times in nanoseconds" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in nanoseconds" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_states = {
    .name = "states",
    .operands = "TRACE...",
    .summary = "Show what threads and CPUs were doing",
    .description =
        "Reads the kernel events of a recording (krait record --kernel), or a kernel trace recorded by LTTng "
        "or perf. Of a recording made with --sample it shows how long each thread was on a CPU or ready, waited for "
        "the GIL, or was blocked, by its samples.\n\n"
        "For each thread, krait shows how long it ran in user mode and in system calls, was stopped by "
        "interrupts, was ready to run but had no CPU (woken or preempted), and was off-CPU: waiting for the "
        "disk, the network, a timer, a lock, a child process, or something else. For each CPU, it shows the "
        "time idle, in user mode, in system calls, in interrupts and in soft interrupts. It also shows the "
        "number, errors and durations of system calls, and how long threads waited in the run queue.\n\n"
        "For a recording, the tables of processes, threads and system calls show only the recorded programs; "
        "--all adds the rest of the machine. The tables of CPUs and latencies always cover the whole "
        "machine.\n\n"
        "Times count from the first event of the kernel or of the program, whichever is earlier. A thread's "
        "state is unknown before its first event and while events of its CPU were lost.",
    .examples = "krait states trace\n"
                "# The threads that waited longest for the disk\n"
                "krait states trace --by thread --sort blocked_disk_ns\n"
                "# The system calls of one process\n"
                "krait states trace --by syscall --process postgres\n"
                "# What one thread did, state by state\n"
                "krait states trace --by interval --thread 4711 --from 1s --until 1.1s\n"
                "# For other programs\n"
                "krait states trace --by thread --csv > threads.csv\n",
    .opts = states_opts,
    .values_size = sizeof(struct states_options),
    .run = run_states,
};
