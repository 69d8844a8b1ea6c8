/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: where the time went, as a table.
 */
#include "cmd/report.h"

#include "base/fmt.h"
#include "cmd/cmds.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/progress.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "view/width.h"

#include <string.h>

enum { WHY_CALLS = 5 }; /* rows of --why */

#define TREE_SHARE 0.5

static const char *const by_names[] = { "function", "module", "file", "thread", "process", "line-of-call" };

/* --- options --- */

static int parse_share(struct report *report, struct krait_err *err)
{
    const char *text = report->options->min_share;
    report->min_share = report->format == REPORT_TABLE && !report->options->exception ? TREE_SHARE : 0;
    if (!text)
        return 0;
    char *end;
    double x = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(x >= 0 && x <= 100))
        return krait_err_set(err, -EINVAL, "--min-share: '%s' is not a percentage", text);
    report->min_share = x;
    return 0;
}

static int check_options(const struct report_options *o, struct krait_err *err)
{
    if ((o->tree != 0) + (o->callers != NULL) + (o->callees != NULL) + (o->why != NULL) > 1)
        return krait_err_set(err, -EINVAL, "--tree, --callers, --callees and --why exclude each other");
    if (o->fold_imports && !o->tree)
        return krait_err_set(err, -EINVAL, "--fold-imports needs --tree");
    if (o->min_share && !o->tree)
        return krait_err_set(err, -EINVAL, "--min-share needs --tree");
    const char *asked = o->why ? o->why : o->callers ? o->callers : o->callees;
    if (o->sort && (o->tree || asked))
        return krait_err_set(
            err, -EINVAL,
            "--sort is for tables of functions; trees and relatives are by total time, --why "
            "by how long calls took");
    if (o->by && asked)
        return krait_err_set(err, -EINVAL, "--by does not go with --callers, --callees and --why");
    if (o->filter && asked)
        return krait_err_set(
            err, -EINVAL, "--filter does not go with --callers, --callees and --why, which name a function");
    if (o->exception && asked)
        return krait_err_set(
            err, -EINVAL,
            "--exception is for tables of functions and trees, without --callers, --callees and --why");
    if (o->cycles && (o->tree || asked))
        return krait_err_set(
            err, -EINVAL,
            "--cycles is for tables of functions, without --tree, --callers, --callees and --why");
    if (o->compensate && (o->cycles || o->why))
        return krait_err_set(err, -EINVAL, "--compensate does not go with --cycles and --why");
    return 0;
}

static int refuse_tree(struct krait_err *err)
{
    return krait_err_set(err, -EINVAL, "--tree goes with --by function, thread, process or span");
}

/* The tree's nodes are functions, below threads or processes; or spans. */
static int check_tree(const struct report *report, struct krait_err *err)
{
    if (!report->options->tree || report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_THREAD ||
        report->by == KRAIT_BY_PROCESS)
        return 0;
    return refuse_tree(err);
}

/* Threads and processes are no functions; their trees are of functions. */
static int check_filter(const struct report *report, struct krait_err *err)
{
    const struct report_options *o = report->options;
    bool is_thread = report->by == KRAIT_BY_THREAD;
    if (!o->filter || o->tree || (!is_thread && report->by != KRAIT_BY_PROCESS))
        return 0;
    const char *by = is_thread ? "thread" : "process";
    return krait_err_set(
        err, -EINVAL,
        "--filter is for functions, not for --by %s; --%s selects %s, and --tree --by %s shows the "
        "functions of each",
        by, by, is_thread ? "threads" : "processes", by);
}

static const struct report_of_tracks of_tracks[] = {
    { "mark", krait_report_marks, .sums_parts = true,
      .filters = "krait cat --filter selects events, krait intervals --start their messages" },
    { "task", krait_report_tasks, .sorts = true, .needs_calls = true, .sums_parts = true,
      .filters = "--thread and --process select tasks by where they ran" },
    { "line", krait_report_lines, .sorts = true, .needs_calls = true, .sums_parts = true,
      .filters = "--by function takes it, and --by line-of-call" },
    { "span", krait_report_spans, .sorts = true, .sums_parts = true,
      .filters = "krait intervals --span NAME selects spans" },
};

static const struct report_of_tracks of_span_tree = { "span --tree", krait_report_span_tree,
                                                      .sums_parts = true, .is_tree = true,
                                                      .filters =
                                                          "krait intervals --span NAME selects spans" };
static const struct report_of_tracks of_moment = { "task --at", krait_report_await, .needs_calls = true };

static void choose_rows(struct report *report)
{
    const char *by = report->options->by;
    for (uint32_t i = 0; by && i < KRAIT_ARRAY_LEN(by_names); i++) {
        if (strcmp(by, by_names[i]) == 0)
            report->by = (enum krait_profile_by)i;
    }
    for (uint32_t i = 0; by && i < KRAIT_ARRAY_LEN(of_tracks); i++) {
        if (strcmp(by, of_tracks[i].by) == 0)
            report->of_tracks = &of_tracks[i];
    }
    if (report->options->at)
        report->of_tracks = &of_moment;
    if (report->options->tree && report->of_tracks && report->of_tracks->make == krait_report_spans)
        report->of_tracks = &of_span_tree;
}

static int refuse_with_at(struct krait_err *err)
{
    return krait_err_set(err, -EINVAL,
                         "--at is one moment: it goes with --by task, --process and --limit alone");
}

/* The first option that is of functions alone; NULL: there is none. */
static const char *option_of_functions(const struct report_options *o, bool has_tree)
{
    return o->filter              ? "--filter"
           : o->exception         ? "--exception"
           : o->cycles            ? "--cycles"
           : o->compensate        ? "--compensate"
           : o->diff.count        ? "--diff"
           : o->fold_imports      ? "--fold-imports"
           : o->tree && !has_tree ? "--tree"
                                  : NULL;
}

static int check_of_tracks(const struct report *report, struct krait_err *err)
{
    const struct report_options *o = report->options;
    const struct report_of_tracks *of = report->of_tracks;
    const char *wrong = of ? option_of_functions(o, of->is_tree) : NULL;
    bool has_sort = of && o->sort && !of->sorts;
    if (!wrong && !has_sort)
        return 0;
    if (o->at)
        return refuse_with_at(err);
    if (wrong && strcmp(wrong, "--tree") == 0)
        return refuse_tree(err);
    if (!wrong)
        return krait_err_set(err, -EINVAL, "--sort does not go with --by %s, which has %s; leave out --sort",
                             of->by, of->is_tree ? "the most time first" : "the most frequent first");
    return krait_err_set(err, -EINVAL, "%s is for functions, not for --by %s; %s", wrong, of->by,
                         o->filter ? of->filters : "leave out one of the two");
}

static int check_at(const struct report_options *o, struct krait_err *err)
{
    uint64_t ns;
    if (!o->by || strcmp(o->by, "task") != 0)
        return krait_err_set(err, -EINVAL, "--at goes with --by task");
    if (o->select.from || o->select.until || o->select.within || o->select.threads.count)
        return refuse_with_at(err);
    return krait_select_time("at", o->at, &ns, err);
}

static int parse_options(struct report *report, struct krait_err *err)
{
    const struct report_options *o = report->options;
    const char *asked = o->why ? o->why : o->callers ? o->callers : o->callees;
    int rc = check_options(o, err);
    rc = rc || !o->diff.count ? rc : krait_report_check_diff(o, err);
    rc = rc ? rc : krait_select_check(&o->select, err);
    if (rc)
        return rc;
    choose_rows(report);
    report->format = o->csv ? REPORT_CSV : o->json ? REPORT_JSON : REPORT_TABLE;
    report->look = krait_terminal_look(stdout);
    rc = check_tree(report, err);
    rc = rc ? rc : check_filter(report, err);
    rc = rc || !o->at ? rc : check_at(o, err);
    if (!rc && o->key && (o->tree || !(o->by && strcmp(o->by, "span") == 0)))
        rc = krait_err_set(err, -EINVAL, "--key goes with --by span, without --tree");
    rc = rc ? rc : check_of_tracks(report, err);
    rc = rc || !o->sort || report->of_tracks ? rc : krait_report_check_sort_name(o->sort, err);
    rc = rc ? rc : krait_select_rows(&report->limit, o->limit, o->csv, o->json, err);
    if (o->why && !o->limit)
        report->limit = WHY_CALLS;
    rc = rc ? rc : parse_share(report, err);
    if (!rc && asked)
        rc = krait_match_new(&report->asked, asked, err);
    if (!rc && o->exception)
        rc = krait_match_new(&report->exception, o->exception, err);
    return rc || !o->filter ? rc : krait_match_new(&report->filter, o->filter, err);
}

/* --- around the table --- */

/* On a terminal alone: what was recorded. */
static void add_heading(struct report *report)
{
    const struct krait_trace *trace = report->trace;
    const struct krait_process *first = &trace->processes[0];
    char ns[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF program = { 0 };
    if (!report->look.width || report->format != REPORT_TABLE)
        return;
    krait_fmt_safe(&program, krait_fmt_command(*first->command ? first->command : first->name));
    KRAIT_AUTO_BUF rest = { 0 };
    krait_buf_fmt(&rest, "  %s, %u process%s, %u thread%s",
                  krait_fmt_ns(ns, trace->end_ns - krait_trace_kept(trace)), trace->process_count,
                  trace->process_count == 1 ? "" : "es", trace->thread_count,
                  trace->thread_count == 1 ? "" : "s");
    uint32_t room = report->look.width > rest.len ? report->look.width - (uint32_t)rest.len : 0;
    const char *bold = report->look.colour ? KRAIT_BOLD : "", *plain = report->look.colour ? KRAIT_PLAIN : "";
    krait_buf_str(&report->out, bold);
    if (program.data)
        krait_width_command(&report->out, program.data, room, report->look.utf8);
    bool goes_on = report->wall && !report->options->why; /* with what the threads did */
    krait_buf_fmt(&report->out, "%s%s\n%s", plain, rest.data ? rest.data : "", goes_on ? "" : "\n");
    report->out.failed |= program.failed || rest.failed;
}

/* --- the verb --- */

static int make_report(struct report *report, struct krait_err *err)
{
    const struct report_options *o = report->options;
    memcpy(report->damage, report->trace->damage, sizeof(report->damage));
    report->range = krait_select_range(&o->select, report->trace);
    report->zero_ns = krait_trace_zero(report->trace);
    int rc = krait_select_some(&o->select, report->trace, err);
    if (rc)
        return rc;
    rc = krait_report_wall_load(report, err);
    if (rc)
        return rc;
    rc = krait_cost_compensate(o->compensate, report->trace, &report->corrected, err);
    if (rc)
        return rc;
    add_heading(report);
    if (o->tree)
        rc = krait_report_tree(report, err);
    else if (o->why)
        rc = krait_report_why(report, err);
    else if (o->callers || o->callees)
        rc = krait_report_relatives(report, err);
    else
        rc = krait_report_rows(report, err);
    if (rc)
        return rc;
    if (report->corrected && report->format == REPORT_TABLE)
        krait_cost_note(&report->notes, report->trace);
    krait_ending_notes(&report->notes, report->trace, report->range, report->damage, "");
    return report->out.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* Several folders are one recording. `trace` is the caller's to close. */
static int report_one(struct report *report, struct krait_trace **trace, char **paths, size_t count,
                      struct krait_err *err)
{
    unsigned needs = report->of_tracks && !report->of_tracks->needs_calls ? 0 : KRAIT_NEEDS_CALLS;
    int rc = krait_trace_open(trace, (const char *const *)paths, count, needs, err);
    report->trace = *trace;
    struct krait_select *select = (void *)&report->options->select;
    select->sums_parts = !report->of_tracks || report->of_tracks->sums_parts;
    rc = rc ? rc : krait_within(select, *trace, "report", err);
    if (!rc && report->of_tracks)
        return report->of_tracks->make(report, *trace, err);
    if (!rc && krait_trace_find_holders(*trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    struct krait_progress progress;
    krait_progress_begin(&progress, "report", *trace);
    rc = make_report(report, err);
    krait_progress_end(&progress);
    const struct report_options *o = report->options;
    const char *option = o->why ? "--why" : o->callers ? "--callers" : "--callees";
    return rc == -ENOENT && report->asked ? krait_within_no_function(*trace, report->asked, option, err) : rc;
}

static int run_report(void *values, int argc, char **argv)
{
    struct report_options *options = values;
    struct report report = { .options = options };
    struct krait_trace *trace = NULL;
    struct krait_err err = { 0 };
    int rc = parse_options(&report, &err);
    rc = rc ? rc : krait_select_given(KRAIT_SELECT_RECORDING, argc, &err);
    int status = rc ? krait_cmd_usage(&krait_cmd_report, &err) : 0;
    if (!rc && options->diff.count)
        rc = krait_report_diff(&report, argv, (size_t)argc, &err);
    else if (!rc)
        rc = report_one(&report, &trace, argv, (size_t)argc, &err);
    rc = rc ? rc : krait_terminal_print(&report.out, &report.notes, "the report", &err);
    krait_select_done(&options->select);
    krait_opt_list_done(&options->diff);
    krait_match_free(report.filter);
    krait_match_free(report.exception);
    krait_match_free(report.asked);
    krait_wall_free(report.wall);
    krait_wall_free(report.clock);
    krait_buf_done(&report.out);
    krait_buf_done(&report.notes);
    krait_trace_close(trace);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_report, &err);
}

#define OPT(field) offsetof(struct report_options, field)

#define X(name, text, title, words) ", " title
#define SORT_STATES                 KRAIT_WALL_STATES(X)

static const struct krait_opt report_opts[] = {
    { "by", 0, KRAIT_OPT_CHOICE, "function|module|file|thread|process|line|line-of-call|mark|task|span",
      OPT(by),
      "Group rows by this (default: function); line is of samples (record --sample); with mark, task or span, show marks, the tasks of asyncio and trio with greenlets, or "
      "spans, imports, runs of the garbage collector and calls of record --args, instead of calls" },
    { "key", 'k', KRAIT_OPT_STR, "FIELD", OPT(key),
      "With --by span: a row for each value of this field, such as order of krait.span, or an argument of --args; or for each $thread, $process or $task" },
    { "at", 0, KRAIT_OPT_STR, "TIME", OPT(at),
      "With --by task: show what each task did at TIME after the recording began, as a tree of who waits for whom" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", OPT(sort),
      "Sort by this column (default: self): total, calls, runs, raised, mean, min, max, p50, p99, "
      "name" SORT_STATES "; with --by task, span or line, any column of that table" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show N rows, 0 for all (default: 40 in a table, 5 with --why, all in CSV and JSON)" },
    { "filter", 0, KRAIT_OPT_STR, "PATTERN", OPT(filter),
      "Show only functions whose name, module or file matches: a glob, a word between dots, or re:REGEX; "
      "with --tree, start the tree at them" },
    { "exception", 0, KRAIT_OPT_STR, "PATTERN", OPT(exception),
      "Show only functions left by an exception whose type has a matching name; with --tree, their callers too; "
      "`raised` counts only these exceptions. Base classes are not recorded, so they do not match" },
    KRAIT_SELECT_OPTS(struct report_options, select),
    KRAIT_SELECT_TO_OPT(struct report_options, select),
    { "tree", 't', KRAIT_OPT_FLAG, NULL, OPT(tree),
      "Show the call tree; with --by thread or process, one tree for each; with --by span, which spans lie within which, such as imports" },
    { "min-share", 0, KRAIT_OPT_STR, "PERCENT", OPT(min_share),
      "With --tree: hide branches below PERCENT of the time shown (default: 0.5 in a table, else 0)" },
    { "fold-imports", 0, KRAIT_OPT_FLAG, NULL, OPT(fold_imports),
      "With --tree: show Python's import machinery as one function <import>" },
    { "callers", 0, KRAIT_OPT_STR, "FUNCTION", OPT(callers),
      "Show the callers of FUNCTION, and its time when called from each" },
    { "callees", 0, KRAIT_OPT_STR, "FUNCTION", OPT(callees),
      "Show what FUNCTION calls, and the time of each callee" },
    { "why", 0, KRAIT_OPT_STR, "FUNCTION", OPT(why),
      "Show FUNCTION's slowest calls: what each spent its time on, its system calls, and who kept it waiting" },
    { "diff", 0, KRAIT_OPT_LIST, "DIR", OPT(diff),
      "Compare with the recording DIR; may be repeated. Several recordings on each side tell real changes "
      "from chance" },
    { "cycles", 0, KRAIT_OPT_FLAG, NULL, OPT(cycles),
      "Count processor cycles instead of time; needs the CPUs' frequencies from --kernel" },
    { "compensate", 0, KRAIT_OPT_FLAG, NULL, OPT(compensate), KRAIT_COMPENSATE_HELP },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print CSV, times in nanoseconds" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in nanoseconds" },
    KRAIT_OPTS_END,
};
#undef X

const struct krait_cmd krait_cmd_report = {
    .name = "report",
    .operands = "DIR...",
    .summary = "Show where the time went, as a table",
    .description =
        "Sums up a recording, or a function trace of LTTng. For each function it shows self time (exclusive: the function itself ran), "
        "total time (inclusive: with everything it called; recursion counts once), the number of calls, and "
        "how long a call took: mean, min, max, median and 99th percentile. Percentages are of the recorded "
        "time of all threads together. Functions written in C are marked (C).\n\n"
        "A generator or coroutine counts only while it runs: each step from a resume to the next yield is "
        "measured by itself.\n\n"
        "If the recording was made with --kernel, krait splits each time by what the thread was doing: "
        "running on a CPU, ready but waiting for a CPU, or off-CPU: waiting for the GIL, a lock, the disk, "
        "the network, a timer, a child process, a page of memory, or something else.\n\n"
        "krait reports lost events, damage and functions dropped by --max-overhead on stderr. Stdout holds "
        "only data.\n\n"
        "Several folders are read as one recording. With --diff, each folder is a recording of its own. "
        "krait then compares on-CPU time if every recording has it (krait record --kernel), and wall time "
        "otherwise. --sort total and --sort calls compare total time and calls.",
    .examples = "krait report krait.trace\n"
                "# The ten most called functions, without C functions\n"
                "krait report krait.trace --sort calls --limit 10 --filter 're:[.]py$'\n"
                "# The functions that exceptions left most often, and which exceptions\n"
                "krait report krait.trace --sort raised\n"
                "# One thread's call tree, from second 1 to second 2\n"
                "krait report krait.trace --tree --thread MainThread --from 1s --until 2s\n"
                "# How long the program's own spans took (krait.span), the slowest first\n"
                "krait report krait.trace --by span --sort max\n"
                "# Which imports took the time (krait record --imports)\n"
                "krait report krait.trace --by span --tree\n"
                "# Who calls json.loads\n"
                "krait report krait.trace --callers json.loads\n"
                "# Why load took so long; needs a recording made with --kernel\n"
                "krait report krait.trace --why load\n"
                "# What changed, with three recordings on each side\n"
                "krait report new1 new2 new3 --diff old1 --diff old2 --diff old3\n",
    .opts = report_opts,
    .values_size = sizeof(struct report_options),
    .run = run_report,
};
