/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: where the time went, as a table.
 */
#include "cmd/report.h"

#include "base/fmt.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/progress.h"
#include "cmd/terminal.h"
#include "view/width.h"

#include <string.h>

enum {
    TABLE_ROWS = 40,
    WHY_CALLS = 5, /* of --why */
};

#define TREE_SHARE 0.5

static const char *const by_names[] = { "function", "module", "file", "thread", "process", "line-of-call" };

/* --- options --- */

static int parse_share(struct report *report, struct krait_err *err)
{
    const char *text = report->options->min_share;
    report->min_share = report->format == REPORT_TABLE ? TREE_SHARE : 0;
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
    if (o->csv && o->json)
        return krait_err_set(err, -EINVAL, "--csv and --json exclude each other");
    if ((o->tree != 0) + (o->callers != NULL) + (o->callees != NULL) + (o->why != NULL) > 1)
        return krait_err_set(err, -EINVAL, "--tree, --callers, --callees and --why exclude each other");
    if (o->fold_imports && !o->tree)
        return krait_err_set(err, -EINVAL, "--fold-imports goes with --tree");
    if (o->min_share && !o->tree)
        return krait_err_set(err, -EINVAL, "--min-share goes with --tree");
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
    if (o->exception && (o->tree || asked))
        return krait_err_set(
            err, -EINVAL,
            "--exception is for tables of functions, without --tree, --callers, --callees and --why");
    if (o->cycles && (o->tree || asked))
        return krait_err_set(
            err, -EINVAL,
            "--cycles is for tables of functions, without --tree, --callers, --callees and --why");
    return 0;
}

/* The tree's nodes are functions, below threads or processes. */
static int check_tree(const struct report *report, struct krait_err *err)
{
    if (!report->options->tree || report->by == KRAIT_BY_FUNCTION || report->by == KRAIT_BY_THREAD ||
        report->by == KRAIT_BY_PROCESS)
        return 0;
    return krait_err_set(err, -EINVAL, "--tree goes with --by function, thread or process");
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
    for (uint32_t i = 0; o->by && i < KRAIT_ARRAY_LEN(by_names); i++) {
        if (strcmp(o->by, by_names[i]) == 0)
            report->by = (enum krait_profile_by)i;
    }
    report->format = o->csv ? REPORT_CSV : o->json ? REPORT_JSON : REPORT_TABLE;
    report->look = krait_terminal_look(stdout);
    rc = check_tree(report, err);
    rc = rc ? rc
            : krait_select_limit(&report->limit, o->limit,
                                 o->why                           ? WHY_CALLS
                                 : report->format == REPORT_TABLE ? TABLE_ROWS
                                                                  : 0,
                                 err);
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
    krait_buf_fmt(&rest, "  %s, %u process%s, %u thread%s", krait_fmt_ns(ns, trace->end_ns - trace->begin_ns),
                  trace->process_count, trace->process_count == 1 ? "" : "es", trace->thread_count,
                  trace->thread_count == 1 ? "" : "s");
    uint32_t room = report->look.width > rest.len ? report->look.width - (uint32_t)rest.len : 0;
    const char *bold = report->look.colour ? KRAIT_BOLD : "", *plain = report->look.colour ? KRAIT_PLAIN : "";
    krait_buf_str(&report->out, bold);
    if (program.data)
        krait_width_shorten(&report->out, program.data, room, report->look.utf8);
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
    krait_ending_notes(&report->notes, report->trace, report->damage, "");
    return report->out.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* Several folders are one recording. `trace` is the caller's to close. */
static int report_one(struct report *report, struct krait_trace **trace, char **paths, size_t count,
                      struct krait_err *err)
{
    int rc = krait_trace_open(trace, (const char *const *)paths, count, KRAIT_NEEDS_CALLS, err);
    report->trace = *trace;
    if (!rc && krait_trace_find_holders(*trace))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        return rc;
    struct krait_progress progress;
    krait_progress_begin(&progress, "report", *trace);
    rc = make_report(report, err);
    krait_progress_end(&progress);
    return rc;
}

static int run_report(void *values, int argc, char **argv)
{
    struct report_options *options = values;
    struct report report = { .options = options };
    struct krait_trace *trace = NULL;
    struct krait_err err = { 0 };
    int rc = parse_options(&report, &err);
    if (!rc && argc < 1)
        rc = krait_err_set(&err, -EINVAL, "which recording? Give the folder that `krait record` wrote");
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

#define X(name, text, title, words) "|" title
#define SORT_STATES                 KRAIT_WALL_STATES(X)

static const struct krait_opt report_opts[] = {
    { "by", 0, KRAIT_OPT_CHOICE, "function|module|file|thread|process|line-of-call", OPT(by),
      "What a row stands for" },
    { "sort", 's', KRAIT_OPT_CHOICE, "self|total|calls|raised|mean|min|max|p50|p99|name" SORT_STATES,
      OPT(sort), "The column that decides the order; self time if not given" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show N rows; 0 for all. A table has 40, CSV and JSON have all, --why has 5" },
    { "filter", 0, KRAIT_OPT_STR, "PATTERN", OPT(filter),
      "Only functions whose name, module or file is like this: a glob, a word that is one of the parts "
      "between dots, or re:REGEX; with --tree they are the roots" },
    { "exception", 0, KRAIT_OPT_STR, "PATTERN", OPT(exception),
      "Only functions that an exception of a type like this left; `raised` counts these exceptions alone" },
    KRAIT_SELECT_OPTS(struct report_options, select),
    KRAIT_SELECT_TO_OPT(struct report_options, select),
    { "tree", 't', KRAIT_OPT_FLAG, NULL, OPT(tree),
      "The call tree; with --by thread or process one for each" },
    { "min-share", 0, KRAIT_OPT_STR, "PERCENT", OPT(min_share),
      "Leave branches of the tree out that took less; 0.5 in a table" },
    { "fold-imports", 0, KRAIT_OPT_FLAG, NULL, OPT(fold_imports),
      "In the tree, Python's import machinery is one function <import>, not a dozen for each module" },
    { "callers", 0, KRAIT_OPT_STR, "FUNCTION", OPT(callers),
      "Who calls it, with its time when called from there" },
    { "callees", 0, KRAIT_OPT_STR, "FUNCTION", OPT(callees), "What it calls, with the time that takes" },
    { "why", 0, KRAIT_OPT_STR, "FUNCTION", OPT(why),
      "Its slowest calls: what each did with its time, its system calls, and who kept it waiting" },
    { "diff", 0, KRAIT_OPT_LIST, "DIR", OPT(diff),
      "What changed since the recording DIR: each folder, of --diff (may be repeated) and the others, is a "
      "repeat of the same work; of several it is told which changes are more than chance" },
    { "cycles", 0, KRAIT_OPT_FLAG, NULL, OPT(cycles),
      "Count processor cycles instead of time, by the CPUs' frequencies in the kernel's part" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print comma-separated values, times in ns" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in ns" },
    KRAIT_OPTS_END,
};
#undef X

const struct krait_cmd krait_cmd_report = {
    .name = "report",
    .operands = "DIR...",
    .summary = "Show where the time went, as a table",
    .description =
        "Sums up a recording: for each function its self time (it ran itself), its total time (with all it "
        "called;\n"
        "recursion counts once), its calls, and how long a call took: mean, min, max, median and 99th "
        "percentile.\n"
        "Shares are of the recorded time of all threads together. Functions written in C are marked (C).\n\n"
        "The time of a generator or coroutine counts only while it runs. What its calls took is measured "
        "from each\n"
        "resume to the next yield.\n\n"
        "Of a recording made with --kernel each time, of --tree, --callers and --callees too, is split into "
        "what the\n"
        "thread was doing: it had a CPU, was ready but had none, or waited for the GIL, a lock, the disk, "
        "the "
        "network,\n"
        "a timer, a child process, a page of memory or something else.\n\n"
        "What was lost, damaged or dropped by --max-overhead is said on stderr; on stdout is nothing but "
        "data.\n\n"
        "Several folders are read as one recording. With --diff each is one by itself: time on the CPU is "
        "compared "
        "where all of them tell it (krait record --kernel), else wall time; --sort total and --sort calls "
        "compare "
        "those.",
    .examples =
        "krait report krait.trace\n# the ten functions with most calls, C functions aside\n"
        "krait report krait.trace --sort calls --limit 10 --filter 're:[.]py$'\n"
        "# the functions that exceptions left most often, and which\n"
        "krait report krait.trace --sort raised\n"
        "# a thread's call tree in the second second\n"
        "krait report krait.trace --tree --thread MainThread --from 1s --until 2s\n"
        "# who calls it, and from where\nkrait report krait.trace --callers json.loads\n"
        "# why it took so long, of a recording made with --kernel\nkrait report krait.trace --why load\n"
        "# what changed, of three recordings each\n"
        "krait report new1 new2 new3 --diff old1 --diff old2 --diff old3\n",
    .opts = report_opts,
    .values_size = sizeof(struct report_options),
    .run = run_report,
};
