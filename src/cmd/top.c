/* SPDX-License-Identifier: Apache-2.0
 *
 * krait top: which functions of a running Python program take the time, live.
 */
#include "cmd/top.h"

#include "base/clock.h"
#include "base/pythons.h"
#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"

#include <string.h>

enum {
    RATE_USUAL = 100,
    RATE_MOST = 10000,
    FIRST_PART = 5 /* of an interval: a screen is not empty for long */
};

extern const struct krait_cmd krait_cmd_top;

struct top {
    const struct top_options *options;
    struct krait_remote *remote;
    struct krait_remote_stacks stacks;
    struct krait_sums sums;
    struct top_screen *screen; /* NULL: tables one after the other */
    struct krait_err err;      /* why it ended */
    const char *sort;
    bool idle, gil, paused, quit;
    uint64_t rate, interval_ns, tables;
    uint64_t due_ns, last_ns, cpu_at,
        cpu_ns; /* of the next reading, the one before; when, and what, CPU time was read */
    double cpu;
    uint32_t threads, rows; /* rows: of the last table where there was a screen */
    uint32_t random;
    struct krait_buf command;
};

static void top_done(struct top *top)
{
    top_screen_close(top->screen);
    krait_sums_done(&top->sums);
    krait_buf_done(&top->command);
    krait_remote_stacks_done(&top->stacks);
    krait_remote_free(top->remote);
}

/* -- reading -- */

static int take_sample(struct top *top)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    uint32_t flags = (top->idle ? 0 : KRAIT_READ_RUNNING) | (top->gil ? KRAIT_READ_HOLDER : 0);
    int rc = krait_remote_read(top->remote, &top->stacks, flags, &top->err);
    top->threads = rc ? top->threads : top->stacks.thread_count;
    if (!rc && krait_sums_add(&top->sums, &top->stacks, now - top->last_ns))
        rc = krait_err_set(&top->err, -ENOMEM, "out of memory");
    top->last_ns = now;
    return rc;
}

/* Half to one and a half periods: a program that does the same in equal periods is not always met in the same place. */
static uint64_t next_gap(struct top *top)
{
    uint64_t period = KRAIT_NS_PER_S / top->rate;
    top->random = top->random * 1664525u + 1013904223u; /* Knuth, TAOCP 2, 3.3.4 */
    return period / 2 + period * (top->random >> 16) / 65536;
}

static void read_cpu(struct top *top)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), used = krait_task_cpu_ns(top->remote->pid);
    top->cpu = top->cpu_at && used >= top->cpu_ns && now > top->cpu_at
                   ? (double)(used - top->cpu_ns) / (double)(now - top->cpu_at)
                   : -1;
    top->cpu_at = now;
    top->cpu_ns = used;
}

/* -- showing -- */

static struct top_view view_of(const struct top *top, bool whole)
{
    return (struct top_view){ .remote = top->remote,
                              .sums = &top->sums,
                              .sort = top->sort,
                              .classic = top->options->classic && !top->options->json,
                              .whole = whole,
                              .cpu = top->cpu,
                              .rate = top->rate,
                              .limit = top->options->limit ? (uint32_t)top->options->limit : top->rows,
                              .command = top->command.data,
                              .threads = top->threads };
}

static int print_table(struct top *top, bool whole)
{
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_table_look look = krait_terminal_look(stdout);
    struct top_view view = view_of(top, whole);
    bool first = top->tables++ == 0;
    if (!first && !top->options->json)
        krait_buf_char(&out, '\n');
    if (top->options->json ? top_json(&view, &out) : top_text(&view, &look, &out))
        return krait_err_set(&top->err, -ENOMEM, "out of memory");
    if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout))
        return krait_err_errno(&top->err, "cannot write the table");
    return 0;
}

static void show_screen(struct top *top)
{
    enum { ABOVE = 5, BELOW = 1 }; /* heading and the table's head; keys */
    KRAIT_AUTO_BUF text = { 0 }, keys = { 0 };
    struct krait_table_look look = krait_terminal_look(stdout);
    struct top_view view = view_of(top, false);
    uint32_t rows = top_screen_rows(), room = rows > ABOVE + BELOW ? rows - ABOVE - BELOW : 1;
    top->rows = room;
    view.limit = top->options->limit ? KRAIT_MIN((uint32_t)top->options->limit, room) : room;
    krait_buf_fmt(&keys, "%sq quit  p %s  s sort (%s)  i %s  g %s  r reset", top->paused ? "PAUSED  " : "",
                  top->paused ? "go on" : "pause", top->sort, top->idle ? "no sleeping" : "sleeping too",
                  top->gil ? "all threads" : "GIL only");
    if (!top_text(&view, &look, &text) && !keys.failed)
        top_screen_show(&text, keys.data, &look);
}

static int show(struct top *top)
{
    read_cpu(top);
    int rc = 0;
    if (top->screen)
        show_screen(top);
    else
        rc = print_table(top, top->options->once);
    return rc;
}

/* -- the loop -- */

static void press(struct top *top, char key)
{
    top->quit |= key == 'q';
    top->paused ^= key == 'p' || key == ' ';
    top->idle ^= key == 'i';
    top->gil ^= key == 'g';
    if (key == 's')
        top->sort = top_next_sort(top->sort);
    if (key == 'r')
        krait_sums_reset(&top->sums);
    if (key && key != 'q')
        show_screen(top);
}

/* One reading at the time that it is due; later, if the one before took longer. While it is paused the sums stay. */
static int step(struct top *top, uint64_t end)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    top->due_ns = KRAIT_MAX(top->due_ns, now);
    char key = top_screen_wait(top->screen, KRAIT_MIN(top->due_ns, end));
    if (top->screen)
        press(top, key);
    top->quit |= key == 'q';
    now = krait_clock_ns(CLOCK_MONOTONIC);
    if (top->paused)
        top->last_ns = now;
    if (now < top->due_ns)
        return 0;
    top->due_ns += next_gap(top);
    return top->paused ? 0 : take_sample(top);
}

static int run_loop(struct top *top)
{
    uint64_t most = top->options->once ? 1 : top->options->batch;
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + top->interval_ns / (top->screen ? FIRST_PART : 1);
    int rc = 0;
    top->due_ns = top->last_ns = krait_clock_ns(CLOCK_MONOTONIC);
    read_cpu(top);
    while (!rc && !top->quit && (top->screen || !most || top->tables < most)) {
        rc = step(top, end);
        if (rc || top->quit || krait_clock_ns(CLOCK_MONOTONIC) < end)
            continue;
        end += top->interval_ns;
        if (top->paused)
            continue;
        krait_sums_turn(&top->sums);
        rc = show(top);
    }
    return rc;
}

/* What was seen until the end stays on the terminal. */
static int finish(struct top *top, int rc)
{
    bool died = rc == -ESRCH;
    bool was_screen = top->screen;
    struct krait_err why = top->err;
    top_screen_close(top->screen);
    top->screen = NULL;
    if ((was_screen || died) && top->sums.all.rounds) {
        top->cpu = -1;
        print_table(top, true);
    }
    if (!rc)
        return 0;
    if (!died)
        return krait_cmd_fail(&krait_cmd_top, &why);
    krait_terminal_say(NULL, 0, "krait top: process %d has ended", top->remote->pid);
    return top->sums.all.rounds ? 0 : 1;
}

/* -- the command line -- */

static int check_options(const struct top_options *options, struct krait_err *err)
{
    if (options->once && options->batch)
        return krait_err_set(err, -EINVAL, "--once and --batch exclude each other");
    if (options->rate > RATE_MOST)
        return krait_err_set(err, -EINVAL, "--rate is at most %d samples a second", RATE_MOST);
    return options->sort ? top_check_sort(options->sort, err) : 0;
}

static bool wants_screen(const struct top_options *options)
{
    return !options->once && !options->batch && !options->json && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

static int run_top(void *values, int argc, char **argv)
{
    const struct top_options *options = values;
    KRAIT_CLEANUP(top_done)
    struct top top = {
        .options = options,
        .sort = options->sort ? options->sort : "own",
        .idle = options->idle,
        .gil = options->gil,
        .rate = options->rate ? options->rate : RATE_USUAL,
        .interval_ns = options->interval_ns ? options->interval_ns : KRAIT_NS_PER_S,
        .cpu = -1,
        .random = (uint32_t)krait_clock_counter(),
    };
    pid_t pid = 0;
    if (argc != 1)
        krait_err_set(&top.err, -EINVAL, "needs the PID of one running Python program");
    if (argc != 1 || krait_pid_parse(argv[0], &pid, &top.err) || check_options(options, &top.err))
        return krait_cmd_usage(&krait_cmd_top, &top.err);
    if (krait_remote_open(&top.remote, pid, &top.err))
        return krait_cmd_fail(&krait_cmd_top, &top.err);
    krait_task_command(&top.command, pid); /* now: it is gone with the process */
    if (wants_screen(options) && top_screen_open(&top.screen))
        top.screen = NULL;
    return finish(&top, run_loop(&top));
}

static const struct krait_opt top_opts[] = {
    { "once", '1', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, once), "Print one table and end" },
    { "batch", 'b', KRAIT_OPT_UINT, "N", offsetof(struct top_options, batch),
      "Print N tables, one after the other, and end" },
    { "interval", 'i', KRAIT_OPT_TIME, "TIME", offsetof(struct top_options, interval_ns),
      "Show a table of the last TIME, every TIME (default: 1s)" },
    { "rate", 'r', KRAIT_OPT_UINT, "N", offsetof(struct top_options, rate),
      "Read the stacks N times a second, at most 10000 (default: 100)" },
    { "idle", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, idle),
      "Count threads that sleep too, not only those that run" },
    { "gil", 'g', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, gil),
      "Count only threads that hold the GIL" },
    { "classic", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, classic),
      "Print the columns function, total time, share of the time, share in functions that it called, share in itself, "
      "file, line" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", offsetof(struct top_options, sort),
      "Sort by own, total, own_ns, total_ns, function, line or file (default: own)" },
    { "limit", 'n', KRAIT_OPT_UINT, "N", offsetof(struct top_options, limit),
      "Print the first N functions (default: all that fit)" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, json),
      "Print a line of JSON for each table; without --batch until Ctrl-C" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_top = {
    .name = "top",
    .operands = "PID",
    .summary = "Show live which functions of a running Python program take the time",
    .description =
        "Reads the call stacks of a running Python program (CPython " KRAIT_PYTHON_SPAN
        ") many times a second from "
        "outside, and shows which functions were running: in own, the share of the time that the function itself was "
        "running; in total, with all that it called; then both in seconds since the beginning. krait neither stops nor "
        "changes the program.\n\n"
        "In a terminal the table is shown anew every second. Keys: q quits, p pauses and goes on, s sorts by the next "
        "column, i counts sleeping threads or leaves them out, g counts only the thread that holds the GIL or all, r begins anew. When krait or the program ends, the table "
        "of the whole time stays. Elsewhere krait prints a table every second.\n\n"
        "Times are estimates from samples: of n samples in which a function was met, expect an error of about the "
        "square root of n.",
    .examples = "krait top 4711\n"
                "# A table of the next 10 seconds\n"
                "krait top --once --interval 10s 4711\n"
                "# The busiest function, once a second\n"
                "krait top --json --batch 60 4711 | jq -r '.functions[0].function'\n",
    .opts = top_opts,
    .values_size = sizeof(struct top_options),
    .run = run_top,
};
