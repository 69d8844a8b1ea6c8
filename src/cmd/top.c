/* SPDX-License-Identifier: Apache-2.0
 *
 * krait top: which functions of a running Python program take the time, live: by samples from outside, or every call by
 * the recorder's rings (top_exact.c), which a key switches.
 */
#include "cmd/top.h"

#include "base/clock.h"
#include "base/fmt.h"
#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"
#include "python/compat/versions.h"
#include "record/collector.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

enum {
    RATE_USUAL = 100,
    RATE_MOST = 10000,
    OVERHEAD_USUAL = 5,
    OVERHEAD_ALL = 100 /* percent: no limit */
};

static const uint64_t turn_usual = 2 * KRAIT_NS_PER_S; /* of the clock; that of krait view in real time */

extern const struct krait_cmd krait_cmd_top;

static void top_done(struct top *top)
{
    top_screen_close(top->screen);
    top_command_end(&top->processes);
    top_exact_finish(top->exact);
    top_release_signals();
    top_exact_free(top->exact);
    top_processes_done(&top->processes);
    krait_sums_done(&top->sums);
    top_stacks_done(&top->stacks);
    top_colours_done(&top->colours);
    krait_match_free(top->match);
    krait_buf_done(&top->command);
    krait_buf_done(&top->typed);
    free(top->filter);
}

/* -- reading -- */

/* The command line of what was named, as long as it is there; the first Python's version. */
static void note_program(struct top *top)
{
    for (uint32_t i = 0; i < top->processes.count && !*top->python; i++) {
        const struct top_process *process = &top->processes.items[i];
        if (process->remote)
            snprintf(top->python, sizeof(top->python), "%s", process->remote->version);
    }
    KRAIT_AUTO_BUF now = { 0 };
    krait_task_command(&now, top->pid);
    if (!now.len || now.failed)
        return;
    krait_buf_clear(&top->command);
    krait_buf_str(&top->command, now.data);
}

/* What the program said itself, where nobody has looked at it from outside. */
static void note_recorded(struct top *top)
{
    const char *python = krait_live_python(top_exact_live(top->exact));
    if (*python)
        snprintf(top->python, sizeof(top->python), "%s", python);
}

/* Processes are looked for often until there is one, and while one is between two programs; then once a second at most. */
static int find_processes(struct top *top, uint64_t now)
{
    const uint64_t often = 50 * KRAIT_NS_PER_MS;
    bool none = top_process_count(&top->processes) == 0;
    if (top->processes.looks)
        top->find_ns = KRAIT_MIN(top->find_ns, now + often);
    if (now < top->find_ns)
        return 0;
    top_processes_rest(&top->processes);
    int rc = top_processes_find(&top->processes, &top->sums, &top->err);
    if (!top->paused)
        note_program(top);
    top->find_ns = now + (none || top->processes.looks ? often : KRAIT_NS_PER_S);
    return rc;
}

/* The table is of all processes from its beginning: for those that were forked just before, it waits until they count. */
static int find_first(struct top *top)
{
    enum { TIMES = 5 };
    const struct timespec nap = { .tv_nsec = 50 * KRAIT_NS_PER_MS };
    int rc = find_processes(top, krait_clock_ns(CLOCK_MONOTONIC));
    for (int i = 0; i < TIMES && !rc && top->processes.puts_off; i++) {
        nanosleep(&nap, NULL);
        rc = find_processes(top, krait_clock_ns(CLOCK_MONOTONIC));
    }
    return rc;
}

static int take_sample(struct top *top)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    uint64_t due_ns = krait_pace_due(&top->pace);
    bool sleeping = top->idle || top->kernel, all = top->picture == TOP_STACKS;
    struct top_reading reading = {
        .sums = &top->sums,
        .stacks = all ? &top->stacks : NULL,
        .flags = KRAIT_READ_PROVED | KRAIT_READ_CALLED | (sleeping || all ? 0 : KRAIT_READ_RUNNING) |
                 (top->gil && !all ? KRAIT_READ_HOLDER : 0) | (top->kernel || all ? KRAIT_READ_WAITS : 0),
        .sleeping = sleeping,
        .others = !top->gil,
        .now_ns = now,
        .next_ns = due_ns < top->end_ns ? due_ns : 0,
    };
    int rc = find_processes(top, now);
    top_stacks_begin_round(&top->stacks, now);
    rc = rc ? rc : top_processes_read(&top->processes, &reading, &top->err);
    top_stacks_end_round(&top->stacks);
    if (!rc && top_process_count(&top->processes)) {
        krait_sums_end_round(&top->sums, now - top->last_ns);
        top->read_processes = top_process_count(&top->processes);
        top->read_threads = top_thread_count(&top->processes);
    }
    top->last_ns = now;
    return rc;
}

/* -- every call -- */

static int open_exact(struct top *top)
{
    double most = top->options->max_overhead > 0 ? top->options->max_overhead : OVERHEAD_USUAL;
    if (top->exact)
        return 0;
    top_catch_signals(); /* it leaves the processes as they were */
    return top_exact_open(&top->exact, most < OVERHEAD_ALL ? most : 0, top->processes.with_children,
                          &top->err);
}

/* The reason why a process that was named is not recorded; it is tried again the next time. */
static int named_failure(struct top *top)
{
    for (uint32_t i = 0; i < top->processes.count; i++) {
        const struct top_process *process = &top->processes.items[i];
        const struct krait_err *why = process->is_named ? top_exact_failure(top->exact, process->pid) : NULL;
        if (!why)
            continue;
        top->err = *why;
        top_exact_forget_failures(top->exact);
        return top->err.code;
    }
    return 0;
}

/* All processes that there are begin to be recorded; waits until they have. */
static int begin_exact(struct top *top)
{
    int rc = open_exact(top);
    if (rc)
        return rc;
    top_exact_switch(top->exact, true);
    if (top_exact_join(top->exact, &top->processes, true))
        return krait_err_set(&top->err, -ENOMEM, "out of memory");
    while (!rc && top_exact_begins(top->exact)) {
        top_exact_round(top->exact, true);
        rc = named_failure(top);
    }
    return rc ? rc : named_failure(top);
}

/* Calls are watched for the clock alone, because that costs time. */
void top_set_picture(struct top *top, enum top_picture picture)
{
    bool watches = picture == TOP_CLOCK && top->is_exact;
    top->picture = picture;
    if (top->paused) /* what is kept is still to be seen */
        return;
    if (top->exact && krait_live_watch(top_exact_live(top->exact), watches ? top->turn_ns : 0))
        top->picture = TOP_TABLE;
    top->watches = top->picture == TOP_CLOCK && watches;
}

bool top_can_show(const struct top *top, enum top_picture picture)
{
    const bool kept[] = {
        [TOP_TABLE] = true, [TOP_STACKS] = top->stacks.count, [TOP_BARS] = true, [TOP_CLOCK] = top->watches
    };
    return !top->paused || kept[picture];
}

void top_switch_picture(struct top *top, enum top_picture picture)
{
    bool reads_more = !top->paused && (picture == TOP_STACKS || top->picture == TOP_STACKS);
    top_set_picture(top, top->picture == picture ? TOP_TABLE : picture);
    if (reads_more)
        top_begin_interval(top);
}

void top_scale_turn(struct top *top, bool longer)
{
    const uint64_t least = 10 * KRAIT_NS_PER_US, most = 600 * KRAIT_NS_PER_S;
    if (top->picture != TOP_CLOCK)
        return;
    top->turn_ns = KRAIT_MIN(KRAIT_MAX(longer ? top->turn_ns * 2 : top->turn_ns / 2, least), most);
    top_set_picture(top, TOP_CLOCK);
}

void top_switch_exact(struct top *top)
{
    struct krait_err none = { 0 };
    if (top->is_exact) {
        top_exact_switch(top->exact, false);
        krait_sums_reset(&top->sums);
        top->is_exact = false;
        top_set_picture(top, top->picture == TOP_CLOCK ? TOP_TABLE : top->picture);
    } else if (begin_exact(top)) {
        snprintf(top->note, sizeof(top->note), "%s", top->err.text);
        top->err = none;
        if (top->exact)
            top_exact_switch(top->exact, false);
    } else {
        top_exact_reset(top->exact);
        top->is_exact = true;
        top_set_picture(top, top->picture == TOP_STACKS ? TOP_TABLE : top->picture);
    }
    if (!top->is_exact && top->by == TOP_BY_TASK)
        top->by = TOP_BY_NOTHING;
    top_begin_counts(top);
}

/* -- showing -- */

struct top_shape top_shape_of(const struct top *top)
{
    return (struct top_shape){ top->is_exact, top->kernel, top->by };
}

static struct top_view view_of(struct top *top, bool whole)
{
    return (struct top_view){ .picture = top->picture,
                              .stacks = &top->stacks,
                              .colours = &top->colours,
                              .interval_ns = top->interval_ns,
                              .turn_ns = top->turn_ns,
                              .now = top->is_exact ? top_exact_now(top->exact) : 0,
                              .processes = top->shown_processes,
                              .threads = top->shown_threads,
                              .sums = &top->sums,
                              .live = top->is_exact ? top_exact_live(top->exact) : NULL,
                              .unseen = top->unseen,
                              .last_unseen = top->last_unseen,
                              .lost = top->lost,
                              .failed = top->failed,
                              .stopped = top->stopped,
                              .is_paused = top->paused,
                              .sort = top->sort,
                              .reversed = top->reversed,
                              .command = top->command.len ? top->command.data : NULL,
                              .python = top->python,
                              .match = top->match,
                              .filter = top->filter,
                              .pid = top->pid,
                              .by = top->by,
                              .lines = top->lines,
                              .idle = top->idle,
                              .gil = top->gil,
                              .kernel = top->kernel,
                              .classic = top->options->classic && !top->options->json,
                              .marks = !top->options->json,
                              .whole = whole,
                              .cpu = top->cpu,
                              .own_cpu = top->own_cpu,
                              .cost = top->cost,
                              .cost_ns = top->cost_ns[top->is_exact],
                              .memory = top->memory,
                              .rate = top->rate,
                              .limit = (uint32_t)top->options->limit,
                              .height = top->height };
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
    if (first)
        krait_terminal_note_dropped();
    return 0;
}

void top_show_screen(struct top *top)
{
    KRAIT_AUTO_BUF text = { 0 }, keys = { 0 };
    struct krait_table_look look = krait_terminal_look(stdout);
    look.dropped = NULL; /* only the table that stays on the terminal tells them */
    top->height = KRAIT_MAX(top_screen_rows(), 2u) - 1; /* below it are the keys */
    struct top_view view = view_of(top, false);
    view.scroll = &top->scroll;
    view.sorts = &top->sorts;
    if (top->helps)
        top_add_help(&text, look.width);
    else if (top_text(&view, &look, &text))
        return;
    top_add_keys(&keys, top, look.width);
    uint32_t marked = top->helps ? UINT32_MAX : top->scroll.line;
    if (!text.failed && !keys.failed)
        top_screen_show(&text, marked, keys.data ? keys.data : "", &look);
}

static int show(struct top *top)
{
    int rc = 0;
    if (top->is_exact)
        note_recorded(top);
    if (top->screen)
        top_show_screen(top);
    else
        rc = print_table(top, top->options->once);
    return rc;
}

/* -- the loop -- */

static void wait_for_key(struct top *top, int timer, uint64_t until_ns)
{
    int key = top_screen_wait(top->screen, timer, until_ns, &top->quit);
    if (!key || top->quit)
        return;
    top_processes_rest(&top->processes);
    top_press(top, key);
}

/* The hand of the clock moves on between two tables, and rays appear. */
static void draw_clock(struct top *top, uint64_t now)
{
    const uint64_t frame_ns = KRAIT_NS_PER_S / 10;
    bool shows = top->screen && top->picture == TOP_CLOCK && !top->paused && !top->helps;
    if (!shows || now < top->frame_ns + frame_ns)
        return;
    top->frame_ns = now;
    top_exact_catch_up(top->exact);
    top_show_screen(top);
}

/* The rings are emptied all the time, also while the table is paused. */
static int step_exact(struct top *top)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    uint64_t found_at = top->find_ns;
    wait_for_key(top, -1, 0);
    if (top->quit || !top->is_exact)
        return 0;
    top_exact_round(top->exact, now < top->end_ns);
    draw_clock(top, now);
    int rc = find_processes(top, now);
    if (!rc && top->kernel && now >= krait_pace_due(&top->pace)) {
        krait_pace_next(&top->pace, now);
        if (top_exact_look(top->exact, &top->processes))
            return krait_err_set(&top->err, -ENOMEM, "out of memory");
    }
    if (!rc && top->find_ns != found_at && top_exact_join(top->exact, &top->processes, false))
        return krait_err_set(&top->err, -ENOMEM, "out of memory");
    return rc;
}

/* One reading at the time that it is due; later, if the one before took longer. While it is paused the sums stay. */
static int step_samples(struct top *top)
{
    uint64_t due = krait_pace_due(&top->pace), now;
    int timer = due < top->end_ns ? krait_pace_fd(&top->pace) : -1;
    wait_for_key(top, timer, timer < 0 ? KRAIT_MIN(due, top->end_ns) : top->end_ns);
    if (top->exact) /* somebody may ask it something (krait ctl) */
        top_exact_round(top->exact, false);
    now = krait_clock_ns(CLOCK_MONOTONIC);
    if (top->paused)
        top->last_ns = now;
    if (now < due)
        return 0;
    krait_pace_next(&top->pace, now);
    return top->paused ? 0 : take_sample(top);
}

static int run_loop(struct top *top)
{
    uint64_t most = top->options->once ? 1 : top->options->batch;
    int rc = 0;
    krait_raise_priority(); /* on a thread's CPU a sampler waits for that thread's slice to end */
    top_begin_counts(top);
    while (!rc && !top->quit && (top->screen || !most || top->tables < most)) {
        rc = top->is_exact ? step_exact(top) : step_samples(top);
        if (rc || top->quit || krait_clock_ns(CLOCK_MONOTONIC) < top->end_ns)
            continue;
        top->end_ns += top->interval_ns;
        if (top->paused)
            continue;
        top_end_interval(top);
        rc = show(top);
    }
    return rc;
}

/* With --exact, also one that was over before anybody looked for it: its rings tell of it. */
static bool has_read_a_python(const struct top *top)
{
    return top->processes.opened ||
           (top->is_exact && krait_live_figures_all(top_exact_live(top->exact)).processes);
}

/* The command has ended by itself. */
static int command_status(const struct top *top)
{
    int status = top->processes.status;
    if (WIFSIGNALED(status))
        krait_terminal_say(NULL, 0, "krait top: the command was ended by signal %d", WTERMSIG(status));
    else
        krait_terminal_say(NULL, 0, "krait top: the command has ended with status %d", WEXITSTATUS(status));
    if (has_read_a_python(top))
        return 0;
    krait_terminal_say(NULL, 0, "krait top: no Python that krait can read was among its processes");
    return 1;
}

/* What was seen until the end stays on the terminal. */
static int finish(struct top *top, int rc)
{
    bool died = rc == -ESRCH;
    bool was_screen = top->screen;
    struct krait_err why = top->err;
    top_screen_close(top->screen);
    top->screen = NULL;
    if (top->is_exact) {
        top_exact_finish(top->exact);
        note_recorded(top);
    } else {
        krait_sums_turn(&top->sums);
    }
    top_read_counts(top);
    bool has_sums = top->is_exact || top->sums.all.rounds;
    if ((was_screen || died) && has_sums) {
        top->cpu = top->cost = -1;
        top->picture = TOP_TABLE;
        top_keep_sort(top);
        print_table(top, true);
    }
    if (!rc)
        return 0;
    if (rc == -EPIPE) /* who reads the tables has enough: the status that shells give for the signal */
        return 128 + SIGPIPE;
    if (!died)
        return krait_cmd_fail(&krait_cmd_top, &why);
    if (top->processes.command)
        return command_status(top);
    krait_terminal_say(NULL, 0, "krait top: process %d has ended", top->pid);
    return has_sums ? 0 : 1;
}

/* -- the command line -- */

static enum top_by by_of(const char *by)
{
    static const char *const words[] = { "", "thread", "process", "task" };
    enum top_by found = TOP_BY_NOTHING;
    for (size_t i = 0; by && i < KRAIT_ARRAY_LEN(words); i++)
        found = strcmp(by, words[i]) == 0 ? (enum top_by)i : found;
    return found;
}

static struct top_shape shape_of(const struct top_options *options)
{
    return (struct top_shape){ options->exact, options->kernel, by_of(options->by) };
}

static enum top_picture picture_of(const struct top_options *options)
{
    return options->stacks ? TOP_STACKS : options->bars ? TOP_BARS : options->clock ? TOP_CLOCK : TOP_TABLE;
}

static int check_options(const struct top_options *options, struct krait_err *err)
{
    struct krait_match *match = NULL;
    if (options->once && options->batch)
        return krait_err_set(err, -EINVAL, "--once and --batch exclude each other");
    if (options->rate > RATE_MOST)
        return krait_err_set(err, -EINVAL, "--rate is at most %d samples a second", RATE_MOST);
    if (options->max_overhead < 0 || options->max_overhead > OVERHEAD_ALL)
        return krait_err_set(err, -EINVAL, "--max-overhead is a percentage from 0 to 100");
    if (options->exact &&
        (options->lines || options->idle || options->gil || (options->rate && !options->kernel)))
        return krait_err_set(
            err, -EINVAL,
            "--lines, --idle, --gil and --rate are of samples, not of --exact; --rate goes with --exact --kernel");
    if (options->stacks + options->bars + options->clock > 1)
        return krait_err_set(err, -EINVAL, "--stacks, --bars and --clock exclude each other");
    if ((options->bars || options->clock) && (options->json || options->classic))
        return krait_err_set(err, -EINVAL, "--bars and --clock do not go with --json and --classic");
    if (options->clock && !options->exact)
        return krait_err_set(err, -EINVAL, "--clock needs --exact: samples do not have single calls");
    if (options->turn_ns && !options->clock)
        return krait_err_set(err, -EINVAL, "--turn is of --clock");
    if (options->stacks && (options->exact || options->json || options->classic))
        return krait_err_set(
            err, -EINVAL,
            "--stacks does not go with --exact, --json and --classic; krait dump --json has stacks");
    if (options->stacks && (options->filter || options->by || options->sort || options->limit))
        return krait_err_set(
            err, -EINVAL,
            "--stacks does not go with --filter, --by, --sort and --limit: it shows all stacks");
    if (options->stacks && (options->idle || options->gil || options->kernel))
        return krait_err_set(
            err, -EINVAL,
            "--stacks does not go with --idle, --gil and --kernel: it shows all threads, and what each of them does");
    if (by_of(options->by) == TOP_BY_TASK && (!options->exact || options->classic))
        return krait_err_set(err, -EINVAL, "--by task needs --exact, without --classic");
    int rc = options->filter ? krait_match_new(&match, options->filter, err) : 0;
    krait_match_free(match);
    return rc || !options->sort ? rc : top_check_sort(options->sort, shape_of(options), err);
}

/* One that can show a screen says which kind it is. */
static bool is_dumb(void)
{
    const char *term = getenv("TERM");
    return !term || !*term || strcmp(term, "dumb") == 0;
}

static bool wants_screen(const struct top_options *options)
{
    return !is_dumb() && !options->once && !options->batch && !options->json && isatty(STDIN_FILENO) &&
           isatty(STDOUT_FILENO);
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int add_pids(struct top *top, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        pid_t pid;
        if (krait_pid_parse(argv[i], &pid, &top->err))
            return top->err.code;
        top->pid = i ? top->pid : pid;
        if (top_processes_add(&top->processes, pid))
            return krait_err_set(&top->err, -ENOMEM, "out of memory");
    }
    return 0;
}

/* What stands behind the operands in argv are options of krait. */
static int start_command(struct top *top, int argc, char **argv, bool quiet)
{
    KRAIT_AUTO_FREE char **command = calloc((size_t)argc + 1, sizeof(*command));
    if (!command)
        return krait_err_set(&top->err, -ENOMEM, "out of memory");
    memcpy(command, argv, (size_t)argc * sizeof(*command));
    return top_command_start(&top->processes, command, quiet, &top->err);
}

/* Whoever is read: named ones now, so that what is wrong with them is told; a command's Python has not begun yet. */
static int begin(struct top *top, int argc, char **argv)
{
    bool is_command = !is_number(argv[0]), is_exact = top->options->exact;
    bool wants = wants_screen(top->options);
    top->processes.with_children |= is_command;
    if (top->processes.with_children)
        top_unseen_open(&top->processes.unseen);
    top_catch_pipe();
    if (is_command) /* which ends when krait does */
        top_catch_signals();
    int rc = is_exact && is_command ? open_exact(top) : 0;
    if (!rc && top->exact)
        rc = top_exact_preload(top->exact, &top->err);
    if (!rc && is_command)
        rc = start_command(top, argc, argv, wants);
    if (is_command && !rc)
        top->pid = top->processes.command;
    rc = rc ? rc : find_first(top);
    if (rc == -ESRCH && !top->err.code)
        rc = is_command ? 0 : krait_err_set(&top->err, -ESRCH, "there is no process %d", top->pid);
    if (!rc && is_exact)
        rc = begin_exact(top);
    if (!rc && is_exact && !is_command) /* a command counts from its beginning */
        top_exact_reset(top->exact);
    top->is_exact = !rc && is_exact;
    if (!rc)
        top_set_picture(top, picture_of(top->options));
    if (!rc && wants && top_screen_open(&top->screen))
        top->screen = NULL;
    return rc;
}

/* Without a screen, a picture of the clock is of a whole turn. */
static uint64_t interval_of(const struct top_options *options, uint64_t turn_ns)
{
    bool is_whole = options->clock && !wants_screen(options);
    return options->interval_ns ? options->interval_ns : KRAIT_MAX(KRAIT_NS_PER_S, is_whole ? turn_ns : 0);
}

static int run_top(void *values, int argc, char **argv)
{
    const struct top_options *options = values;
    uint64_t turn_ns = options->turn_ns ? options->turn_ns : turn_usual;
    KRAIT_CLEANUP(top_done)
    struct top top = {
        .options = options,
        .processes = { .with_children = options->children, .output = -1 },
        .sort = options->sort ? options->sort : top_usual_sort(shape_of(options), picture_of(options)),
        .is_sort_chosen = options->sort,
        .by = by_of(options->by),
        .idle = options->idle,
        .gil = options->gil,
        .kernel = options->kernel,
        .lines = options->lines,
        .rate = options->rate ? options->rate : RATE_USUAL,
        .interval_ns = interval_of(options, turn_ns),
        .turn_ns = turn_ns,
        .cpu = -1,
    };
    if (!argc)
        krait_err_set(&top.err, -EINVAL, "needs the PID of a running Python program, or a command to run");
    if (!argc || (is_number(argv[0]) && add_pids(&top, argc, argv)) || check_options(options, &top.err))
        return krait_cmd_usage(&krait_cmd_top, &top.err);
    if (options->filter)
        top_set_filter(&top, options->filter);
    krait_pace_open(&top.pace, top.rate);
    int status =
        begin(&top, argc, argv) ? krait_cmd_fail(&krait_cmd_top, &top.err) : finish(&top, run_loop(&top));
    krait_pace_close(&top.pace);
    return status;
}

static const struct krait_opt top_opts[] = {
    { "exact", 'x', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, exact),
      "Count every call, by krait's recorder in the program, instead of taking samples" },
    { "max-overhead", 0, KRAIT_OPT_DOUBLE, "PERCENT", offsetof(struct top_options, max_overhead),
      "With every call: limit the slowdown to about PERCENT by no longer recording small, frequently called "
      "functions (default: 5; 100: record all)" },
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
    { "kernel", 'k', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, kernel),
      "Also show what threads waited for: count those that sleep too, and split the total by what the kernel says of "
      "each (CPU, GIL, lock, disk, network, ...); with --exact too, by looks at the threads" },
    { "by", 0, KRAIT_OPT_CHOICE, "thread|process|task", offsetof(struct top_options, by),
      "Show a row for each function of each thread, or of each process; with --exact, task: for the tasks of each "
      "coroutine or name" },
    { "lines", 'l', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, lines),
      "Show a row for each line of code, not for each function" },
    { "stacks", 'S', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, stacks),
      "Show the current stacks instead of a table: threads side by side, and how long each function has been there" },
    { "bars", 'B', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, bars),
      "Show a bar for each function instead of a table, which grows with the number of its calls, or without --exact with its own "
      "time; the longest first" },
    { "clock", 'C', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, clock),
      "With --exact: show a clock instead of a table, on which each of the newest calls is a ray, with its duration as length" },
    { "turn", 0, KRAIT_OPT_TIME, "TIME", offsetof(struct top_options, turn_ns),
      "With --clock: a turn of the clock is TIME (default: 2s)" },
    { "filter", 'f', KRAIT_OPT_STR, "PATTERN", offsetof(struct top_options, filter),
      "Show only functions whose name or file matches PATTERN: a name or a part of it between dots, a glob, "
      "or re:REGEX" },
    { "children", 'c', KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, children),
      "Read also the Python programs that PID starts" },
    { "classic", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, classic),
      "Print the columns function, total time, share of the time, share in functions that it called, share "
      "in itself, "
      "file, line" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", offsetof(struct top_options, sort),
      "Sort by own, total, descendants, own_ns, total_ns, function, line or file, with --exact also by calls, "
      "calls_per_s or mean_ns, with --kernel by on_cpu, gil, lock, disk, network, poll, timer, child or other "
      "(default: own; for bars the column that they show)" },
    { "limit", 'n', KRAIT_OPT_UINT, "N", offsetof(struct top_options, limit),
      "Print the first N functions (default: all that fit)" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct top_options, json),
      "Print a line of JSON for each table; without --batch until Ctrl-C" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_top = {
    .name = "top",
    .operands = "PID...|-- COMMAND...",
    .summary = "Show live which functions of a running Python program take the time",
    .description =
        "Reads the call stacks of a running Python program (CPython " KRAIT_PYTHON_SPAN
        ") many times a second from "
        "outside, and shows which functions were running. own is the share of the time that the function "
        "itself was running (krait report calls this time self), total the share with everything that it called, descendants the "
        "share of what it called alone; own time and total time are the "
        "same in seconds since the beginning. krait neither stops nor "
        "changes the program.\n\n"
        "With --children it reads a whole server, such as gunicorn with its workers. Instead of a PID it "
        "takes a command, "
        "which it runs and reads with all its processes; in a terminal, the command's output follows when "
        "krait ends.\n\n"
        "In a terminal krait updates the table every second until you press q; ? lists the other keys. When krait or "
        "the program ends, the table of the whole time stays. Elsewhere krait prints a table every second.\n\n"
        "Times are estimates from samples: if a function is in n samples, expect an error of about the "
        "square root of n.\n\n"
        "With --exact, or the key x, krait counts every call instead: krait loads its recorder into the program "
        "and removes it at the end. Times are then wall time.",
    .examples = "krait top 4711\n"
                "krait top -- python3 app.py --its-option\n"
                "# Every call, with calls per second and means\n"
                "krait top --exact 4711\n"
                "# A server with its worker processes\n"
                "krait top --children --by process $(pgrep -o gunicorn)\n"
                "# The lines of one module that take the time\n"
                "krait top --lines --filter 'app/*.py' 4711\n"
                "# The current stacks, twice a second\n"
                "krait top --stacks --interval 500ms 4711\n"
                "# The calls of each function, as bars that grow\n"
                "krait top --exact --bars 4711\n"
                "# Each call as a ray of a clock\n"
                "krait top --exact --clock 4711\n"
                "# What threads wait for, the greatest wait for locks first\n"
                "krait top --kernel --sort lock 4711\n"
                "# A table of the next 10 seconds\n"
                "krait top --once --interval 10s 4711\n"
                "# The busiest function, once a second\n"
                "krait top --json --batch 60 4711 | jq -r '.functions[0].function'\n",
    .opts = top_opts,
    .values_size = sizeof(struct top_options),
    .run = run_top,
};
