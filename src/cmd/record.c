/* SPDX-License-Identifier: Apache-2.0
 *
 * krait record: runs a command with the agent preloaded and collects what it writes, until the command ends.
 *
 * The command is the user's: what goes wrong with the recording is said, and the command runs all the same.
 */
#include "base/fmt.h"
#include "base/shell.h"
#include "cmd/cmds.h"
#include "cmd/record_kernel.h"
#include "cmd/terminal.h"

#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

/* ---- the agent's files ---- */

static bool preload_in(const char *dir, char *path, size_t size)
{
    int n = snprintf(path, size, "%s/libkrait-preload.so", dir);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* Installed as a wheel or by meson: in the Python package of some version below the prefix. */
static bool preload_in_packages(const char *prefix, char *path, size_t size)
{
    static const char *const patterns[] = { "lib/python3*/site-packages/krait",
                                            "lib/python3*/dist-packages/krait",
                                            "lib/python3/dist-packages/krait",
                                            "lib64/python3*/site-packages/krait",
                                            "local/lib/python3*/dist-packages/krait",
                                            "lib/*/krait",
                                            "lib/krait" };
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(patterns) && !found; i++) {
        char pattern[PATH_MAX];
        glob_t matches = { 0 };
        if (snprintf(pattern, sizeof(pattern), "%s/%s", prefix, patterns[i]) >= (int)sizeof(pattern))
            continue;
        if (glob(pattern, 0, NULL, &matches) == 0) {
            for (size_t m = 0; m < matches.gl_pathc && !found; m++)
                found = preload_in(matches.gl_pathv[m], path, size);
        }
        globfree(&matches);
    }
    return found;
}

static int find_preload(char *path, size_t size, struct krait_err *err)
{
    char dir[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 32);
    if (n < 0)
        return krait_err_errno(err, "cannot read /proc/self/exe");
    dir[n] = '\0';
    *strrchr(dir, '/') = '\0';
    size_t len = strlen(dir);
    strcpy(dir + len, "/python/krait"); /* the build folder */
    bool found = preload_in(dir, path, size);
    dir[len] = '\0';
    char *slash = strrchr(dir, '/');
    if (!found && slash) {
        *slash = '\0';
        found = preload_in_packages(dir, path, size);
    }
    if (!found)
        return krait_err_set(
            err, -ENOENT,
            "libkrait-preload.so is neither beside the krait command nor in a Python package below %s;"
            " is krait installed whole?",
            dir);
    if (strpbrk(path, " :"))
        return krait_err_set(
            err, -ENOTSUP,
            "%s: the loader cannot preload a file whose path has a blank or a colon; install krait"
            " elsewhere",
            path);
    return 0;
}

static int set_environment(const struct krait_collector *collector,
                           const struct krait_recording_values *values, struct krait_err *err)
{
    char preload[PATH_MAX];
    int rc = find_preload(preload, sizeof(preload), err);
    if (rc)
        return rc;
    const char *before = getenv("LD_PRELOAD");
    KRAIT_AUTO_FREE char *all = NULL;
    if (asprintf(&all, "%s%s%s", before ? before : "", before && *before ? ":" : "", preload) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    setenv("KRAIT_SESSION", krait_collector_session(collector), 1);
    if (values->no_children)
        setenv("KRAIT_NO_CHILDREN", "1", 1);
    setenv("LD_PRELOAD", all, 1);
    return 0;
}

/* ---- running the command ---- */

static volatile sig_atomic_t forward_to;
static volatile sig_atomic_t not_passed; /* a signal that came when there was no command yet, or no more */
static bool leads_session;               /* since before signals are caught */

/* A terminal's signals reach the command by themselves, in its foreground group; others are passed on. SIGINT
 * is always the group's: passed on as well it would interrupt the command twice. That the terminal hangs up
 * its session's leader alone is told (Linux, tty_signal_session_leader in drivers/tty/tty_jobctrl.c). */
static void on_signal(int signal, siginfo_t *info, void *context)
{
    bool ours_alone = info->si_code <= 0 || (signal == SIGHUP && leads_session);
    if (forward_to <= 0)
        not_passed = signal;
    if (signal != SIGINT && forward_to > 0 && ours_alone)
        kill((pid_t)forward_to, signal);
}

static void on_child(int signal)
{
}

static bool is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Signals that krait ignores for itself, and the command shall not. What was ignored when krait began stays
 * so for both, as under nohup, except SIGCHLD: who ignores it learns no child's status (wait(2)), and
 * posix_spawn makes no signal ignored that the caller does not ignore. The command has its default. */
static sigset_t ignored_here;

static void ignore_here(int signal)
{
    if (!is_ignored(signal))
        sigaddset(&ignored_here, signal);
    sigaction(signal, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
}

static void catch_signals(void)
{
    static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
    struct sigaction pass = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    leads_session = getsid(0) == getpid();
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(passed); i++) {
        if (!is_ignored(passed[i]))
            sigaction(passed[i], &pass, NULL);
    }
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = on_child }, NULL);
    ignore_here(SIGPIPE);
    ignore_here(SIGXFSZ);
}

/* `blocked`: the signals that the command begins with blocked. */
static int spawn(pid_t *pid, char **argv, const sigset_t *blocked, struct krait_err *err)
{
    posix_spawnattr_t attr;
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigdefault(&attr, &ignored_here);
    posix_spawnattr_setsigmask(&attr, blocked);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawnp(pid, argv[0], NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    if (!rc)
        return 0;
    errno = rc;
    return krait_err_errno(err, "cannot run %s", argv[0]);
}

static void tell_trouble(struct krait_collector *collector)
{
    krait_record_trouble(krait_collector_trouble(collector));
}

/* Takes the status of children that have ended; the command's is kept. With --wait all that the command
 * started becomes ours when its parent ends, and a signal ends the waiting. Returns whether it is over. */
static bool reap(pid_t command, int *status, bool wait)
{
    siginfo_t ended = { 0 };
    int rc;
    while ((rc = waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT)) == 0 && ended.si_pid) {
        bool is_command = ended.si_pid == command;
        if (is_command) /* before its number can be another's, and so that a signal from here on counts */
            forward_to = 0;
        waitpid(ended.si_pid, is_command ? status : NULL, 0);
    }
    return rc < 0 || (!forward_to && (!wait || not_passed));
}

/* Rounds and naps until the command has ended; returns its wait status. */
static int collect_until_end(struct krait_collector *collector, struct krait_kernel *kernel, pid_t command,
                             bool wait)
{
    int status = 0;
    for (;;) {
        bool over = reap(command, &status, wait);
        krait_collector_round(collector);
        tell_trouble(collector);
        if (kernel && krait_kernel_round(kernel))
            krait_collector_hurry(collector);
        krait_record_kernel_trouble(kernel);
        if (over)
            return status;
        krait_collector_nap(collector);
    }
}

/* ---- the end ---- */

static void print_lost(const struct krait_collector_summary *s)
{
    for (uint32_t i = 0; i < KRAIT_LOST_REASONS; i++) {
        char count[KRAIT_FMT_SIZE];
        const struct krait_enum_row *row = krait_enum_find("lost_reason", i);
        if (s->lost[i])
            krait_record_line(KRAIT_RED, "lost", "%s events, %s: %s", krait_fmt_count(count, s->lost[i]),
                              row->label, row->doc);
    }
}

static void print_refusals(const struct krait_collector *collector)
{
    char why[128];
    int pid;
    for (size_t i = 0; (pid = krait_collector_refusal(collector, i, why, sizeof(why))) != 0; i++)
        krait_terminal_say(NULL, 2, "Process %d was not recorded: %s. See: krait doctor", pid, why);
}

static void print_figures(const struct krait_collector_summary *s, const char *dir)
{
    char duration[KRAIT_FMT_SIZE], events[KRAIT_FMT_SIZE], bytes[KRAIT_FMT_SIZE];
    const char *bold = krait_terminal_colour(stderr, KRAIT_BOLD);
    const char *plain = krait_terminal_colour(stderr, KRAIT_PLAIN);
    fprintf(stderr, "krait: %s%s%s, %u process%s, %u thread%s, %s events, %s", bold,
            krait_fmt_ns(duration, s->duration_ns), plain, s->processes, s->processes == 1 ? "" : "es",
            s->threads, s->threads == 1 ? "" : "s", krait_fmt_count(events, s->events),
            krait_fmt_bytes(bytes, s->bytes));
    if (dir) {
        fprintf(stderr, " in %s", bold);
        krait_terminal_safe(stderr, dir);
        fputs(plain, stderr);
    }
    fputc('\n', stderr);
}

/* Commands that can be pasted. */
static void print_next(const struct krait_kernel_summary *kernel, const char *dir)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_shell_file(&name, dir);
    if (name.failed)
        return;
    fprintf(stderr, "  Next:  krait report %s\n         krait flame %s -o flame.svg\n", name.data, name.data);
    if (kernel && kernel->events)
        fprintf(stderr, "         krait states %s\n", name.data);
    if (kernel && kernel->events && kernel->scope == KRAIT_KERNEL_WHOLE)
        fprintf(stderr, "         krait path %s\n", name.data); /* needs who woke whom */
}

/* dir: NULL where the folder was empty, and is gone. */
static void print_summary(const struct krait_collector *collector, const struct krait_collector_summary *s,
                          const struct krait_kernel_summary *kernel, const char *dir)
{
    char why[128];
    bool refused = krait_collector_refusal(collector, 0, why, sizeof(why)) != 0;
    print_figures(s, dir);
    print_lost(s);
    if (kernel)
        krait_record_kernel_print(kernel);
    print_refusals(collector);
    if (s->alive)
        krait_terminal_say(
            NULL, 2, "%u process%s still running; %s recording ends here: --wait goes on with %s", s->alive,
            s->alive == 1 ? " is" : "es are", s->alive == 1 ? "its" : "their", s->alive == 1 ? "it" : "them");
    if (!s->processes && !refused)
        krait_terminal_say(NULL, 2,
                           "No Python was seen: krait records CPython 3.8 to 3.15, not static, set-uid or "
                           "under another krait; with --wait the background too. See: krait doctor");
    else if (s->processes && dir)
        print_next(kernel, dir);
}

/* Ends as the command ended: with its status, or by its signal. */
static int pass_on(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }); /* the command's core is the one that is wanted */
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

static void finish(struct krait_collector *collector, struct krait_kernel *kernel, pid_t pid, int status,
                   const struct krait_recording_values *values, const char *dir)
{
    bool killed = WIFSIGNALED(status);
    krait_collector_ended(collector, pid, killed ? KRAIT_process_end_signal : KRAIT_process_end_exit,
                          killed ? WTERMSIG(status) : WEXITSTATUS(status));
    struct krait_collector_summary summary;
    struct krait_kernel_summary of_kernel = { 0 };
    if (kernel)
        krait_kernel_stop(kernel);
    krait_collector_finish(collector, &summary);
    tell_trouble(collector);
    krait_record_kernel_finish(kernel, &of_kernel);
    bool gone = krait_collector_drop_empty(collector);
    if (!values->quiet)
        print_summary(collector, &summary, kernel ? &of_kernel : NULL, gone ? NULL : dir);
}

/* Said at the start and at the end: what the program prints between may be long. */
static void tell_unrecorded(const char *when, const struct krait_err *err)
{
    krait_terminal_say(KRAIT_RED, 0, "krait record: %s: %s", when, err->text);
}

/* A command, and what records it. */
struct recorded {
    struct krait_recording_values *values;
    char **command;
    struct krait_collector *collector;
    struct krait_kernel *kernel;
    char dir[PATH_MAX];
};

static int open_recorded(struct recorded *r, struct krait_err *err)
{
    int rc = krait_recording_open(&r->collector, r->values, r->command[0], 0, r->dir, sizeof(r->dir), err);
    return rc ? rc : set_environment(r->collector, r->values, err);
}

/* Starts the command. Returns 0, or the wait status of a shell's that cannot. What krait did before takes a
 * while: a signal meanwhile ends krait as it would have the command. From here on signals wait until it is
 * known whom to pass them on to. */
static int start(char **command, pid_t *pid)
{
    struct krait_err err;
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int early = not_passed;
    int rc = early ? -EINTR : spawn(pid, command, &before, &err);
    if (!rc)
        forward_to = *pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!rc)
        return 0;
    if (early)
        return W_EXITCODE(0, early);
    krait_cmd_fail(&krait_cmd_record, &err);
    return W_EXITCODE(rc == -ENOENT ? 127 : 126, 0);
}

/* Returns the command's wait status, as the next one does. */
static int run_recorded(struct recorded *r)
{
    pid_t pid;
    catch_signals();
    if (r->values->wait)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    r->kernel = krait_record_kernel_open(r->values, r->dir, krait_collector_clock(r->collector));
    int status = start(r->command, &pid);
    if (WEXITSTATUS(status))
        krait_record_kernel_guess(r->values, r->command[0]);
    if (status)
        return status;
    krait_collector_child(r->collector, pid);
    status = collect_until_end(r->collector, r->kernel, pid, r->values->wait);
    finish(r->collector, r->kernel, pid, status, r->values, r->dir);
    return status;
}

/* A recording that cannot be made does not keep the command from running. */
static int run_unrecorded(char **command, const struct krait_err *err)
{
    pid_t pid;
    tell_unrecorded("the program runs without being recorded", err);
    catch_signals();
    int status = start(command, &pid);
    if (status)
        return status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    tell_unrecorded("nothing was recorded", err);
    return status;
}

static int record(struct krait_recording_values *values, int argc, char **argv)
{
    struct krait_err err = { 0 };
    int rc =
        argc ? krait_recording_check(values, &err)
             : krait_err_set(&err, -EINVAL, "no command to record; as in: krait record -- python3 app.py");
    if (rc) {
        krait_cmd_fail(&krait_cmd_record, &err);
        return 2;
    }
    KRAIT_AUTO_FREE char **command = calloc((size_t)argc + 1, sizeof(*command));
    if (!command)
        return 1;
    memcpy(command, argv, (size_t)argc * sizeof(*command));
    struct recorded r = { .values = values, .command = command };
    rc = open_recorded(&r, &err);
    int status = rc ? run_unrecorded(command, &err) : run_recorded(&r);
    krait_kernel_free(r.kernel);
    krait_collector_free(r.collector);
    return pass_on(status);
}

static int run(void *values, int argc, char **argv)
{
    struct krait_recording_values *v = values;
    int status = record(v, argc, argv);
    krait_opt_list_done(&v->include);
    krait_opt_list_done(&v->exclude);
    return status;
}

static const struct krait_opt opts[] = {
    KRAIT_RECORDING_OPTS,
    { "kernel", 0, KRAIT_OPT_MAYBE, "[=GROUPS]", offsetof(struct krait_recording_values, kernel),
      "Record the kernel too: sched, syscalls, irq, net, block, power, or those of them named, with commas "
      "between (without root: the program's own switches and page faults)" },
    { "kernel-functions", 0, KRAIT_OPT_STR, "GLOB", offsetof(struct krait_recording_values, kernel_functions),
      "With --kernel: entry and exit of the kernel's functions whose names match, such as 'vfs_*'" },
    { "kernel-ring-size", 0, KRAIT_OPT_SIZE, "SIZE",
      offsetof(struct krait_recording_values, kernel_ring_size),
      "Memory of each CPU's ring of kernel events (default: 4M)" },
    { "wait", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct krait_recording_values, wait),
      "Go on recording until all has ended that COMMAND leaves running, or Ctrl-C (default: until COMMAND "
      "has ended)" },
    { "quiet", 'q', KRAIT_OPT_FLAG, NULL, offsetof(struct krait_recording_values, quiet),
      "Print nothing at the end" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_record = {
    .name = "record",
    .operands = "-- COMMAND...",
    .summary = "Run a command and record every Python and C call in it",
    .description =
        "Runs COMMAND unchanged, and records all Python programs in it and in what it starts: "
        "calls, returns, yields,"
        " resumes, throws and unwinds of Python functions, calls, returns and raises of C "
        "functions, threads and"
        " processes. Another process, on another CPU, writes the recording; what the program had "
        "done is in it however"
        " the program ends.\n\n"
        "SIGHUP, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 sent to krait are passed on to COMMAND, and a "
        "terminal's hangup where krait leads the session; Ctrl-C reaches both by itself. COMMAND ignores "
        "what krait was started to ignore, as under nohup, except SIGCHLD.\n\n"
        "Globs of --include and --exclude match a function's module, its qualified name, both "
        "joined by a dot, or its"
        " file. What is left out costs nothing on Python 3.12 and later.\n\n"
        "Waits for the GIL are recorded with the thread that has it; docs/gil.md says more.\n\n"
        "When a ring is full events are lost and counted; the summary says how many and why. Its duration is "
        "COMMAND's, from its start to its end; that of krait info is from the first event to the last.\n\n"
        "With --kernel the kernel's events of the whole machine are recorded too, on the same clock, "
        "as a CTF folder with LTTng's names beside the program's. Without the rights for that, the program's "
        "own "
        "context switches and page faults are. docs/kernel.md says more.",
    .examples = "# Record a script, then see where the time went\n"
                "krait record -o trace -- python3 app.py\n"
                "krait report trace\n"
                "# Only your own code, at no more than 5 % of its time\n"
                "krait record --include 'app*' --max-overhead 5 -- python3 app.py\n"
                "# A module, a console script, workers that fork\n"
                "krait record -- python3 -m pytest tests\n"
                "krait record --no-c-calls -- gunicorn app:wsgi\n"
                "# A daemon that goes on when the command has ended\n"
                "krait record --wait -- ./start-daemon.sh\n"
                "# Without the waits for the GIL\n"
                "krait record --no-gil -- python3 app.py\n"
                "# What the kernel did meanwhile: scheduling and interrupts\n"
                "krait record --kernel=sched,irq -- python3 app.py\n",
    .exit_status = "That of COMMAND; killed by a signal, krait ends by the same signal. 127 when COMMAND is "
                   "not found, 126 "
                   "when it cannot be run, 2 for wrong usage.",
    .opts = opts,
    .stop_at_operand = true,
    .values_size = sizeof(struct krait_recording_values),
    .run = run,
};
