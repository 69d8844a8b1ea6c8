/* SPDX-License-Identifier: Apache-2.0
 *
 * krait record: runs a command with the agent preloaded and collects what it writes, until the command ends.
 *
 * What keeps the recording from being made is told before the command runs, which then does not (before_recording.h). From
 * then on the command is the user's: what goes wrong with the recording is told, and the command runs on.
 */
#include "base/fmt.h"
#include "cmd/before_recording.h"
#include "cmd/cmds.h"
#include "cmd/missed.h"
#include "cmd/record_kernel.h"
#include "cmd/record_pid.h"
#include "cmd/record_sample.h"
#include "cmd/record_summary.h"
#include "cmd/terminal.h"
#include "cmd/watching.h"
#include "python/compat/versions.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

/* ---- running the command ---- */

static volatile sig_atomic_t forward_to;
static volatile sig_atomic_t not_passed; /* a signal that came when there was no command yet, or no more */
static pid_t viewer;                     /* of --view; 0: none, or it has ended */
static bool leads_session;               /* since before signals are caught */
/* Signals that are meant for krait, and how often they came. */
enum told { TOGGLE, SNAPSHOT, TOLDS };
static struct {
    int signal; /* 0: none */
    volatile sig_atomic_t count, done;
} told[TOLDS];

/* A terminal's signals reach the command by themselves, in its foreground group; others are passed on. SIGINT
 * is always the group's: passed on as well it would interrupt the command twice. That the terminal hangs up
 * its session's leader alone is told (Linux, tty_signal_session_leader in drivers/tty/tty_jobctrl.c). */
static void on_signal(int signal, siginfo_t *info, void *context)
{
    for (size_t i = 0; i < TOLDS; i++) {
        if (signal == told[i].signal) {
            told[i].count++;
            return;
        }
    }
    bool ours_alone = info->si_code <= 0 || (signal == SIGHUP && leads_session);
    if (forward_to <= 0)
        not_passed = signal;
    if (signal != SIGINT && forward_to > 0 && ours_alone)
        kill((pid_t)forward_to, signal);
}

/* When the command has ended. krait may be busy for a while before it looks, with the files of --last. */
static const struct krait_clock *clock_of_end; /* NULL: nobody asks, as with --sample */
static _Atomic uint64_t end_tick;              /* 0: not known, as if another child's signal stood for both */

static void on_child(int signal, siginfo_t *info, void *context)
{
    if (clock_of_end && forward_to > 0 && info->si_pid == forward_to)
        end_tick = krait_clock_now(clock_of_end);
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

static bool is_told(int signal)
{
    return signal == told[TOGGLE].signal || signal == told[SNAPSHOT].signal;
}

static void catch_signals(const struct krait_recording_values *values)
{
    const char *const names[] = { [TOGGLE] = values->toggle_signal, [SNAPSHOT] = values->snapshot_signal };
    for (size_t i = 0; i < TOLDS; i++)
        told[i].signal = !names[i] ? 0 : strcmp(names[i], "SIGUSR1") == 0 ? SIGUSR1 : SIGUSR2;
    static const int passed[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };
    struct sigaction pass = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
    leads_session = getsid(0) == getpid();
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(passed); i++) {
        if (is_told(passed[i]) || !is_ignored(passed[i]))
            sigaction(passed[i], &pass, NULL);
    }
    const struct sigaction ends = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_NOCLDSTOP };
    sigaction(SIGCHLD, &ends, NULL);
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
    krait_err_errno(err, "cannot run %s", argv[0]);
    krait_before_hint(argv[0], err);
    return -rc;
}

static void tell_trouble(struct krait_collector *collector)
{
    const char *warning = krait_collector_warning(collector);
    if (warning)
        krait_terminal_say(NULL, 0, "krait record: %s", warning);
    for (const char *said; (said = krait_collector_said(collector));)
        krait_terminal_say(NULL, 0, "krait record: %s", said);
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
        viewer = ended.si_pid == viewer ? 0 : viewer;
        waitpid(ended.si_pid, is_command ? status : NULL, 0);
    }
    return rc < 0 || (!forward_to && (!wait || not_passed));
}

static void take_snapshot(struct krait_collector *collector)
{
    char bytes[KRAIT_FMT_SIZE];
    struct krait_collector_snapshot made;
    struct krait_err err = { 0 };
    if (krait_collector_snapshot(collector, NULL, &made, &err)) {
        krait_terminal_say(KRAIT_RED, 0, "krait record: %s", err.text);
        return;
    }
    krait_terminal_say(NULL, 0, "krait record: snapshot of %s in %s", krait_fmt_bytes(bytes, made.bytes),
                       made.dir);
    free(made.dir);
}

static void do_as_told(struct krait_collector *collector)
{
    static void (*const acts[])(
        struct krait_collector *) = { [TOGGLE] = krait_collector_toggle, [SNAPSHOT] = take_snapshot };
    for (size_t i = 0; i < TOLDS; i++) {
        for (sig_atomic_t wanted = told[i].count; told[i].done != wanted; told[i].done++)
            acts[i](collector);
    }
}

static void after_round(struct krait_collector *collector)
{
    do_as_told(collector);
    tell_trouble(collector);
}

/* A command, and what records it. */
struct recorded {
    struct krait_recording_values *values;
    char **command;
    struct krait_collector *collector;
    struct krait_kernel *kernel;
    char dir[PATH_MAX];
    struct statx folder; /* to know it again */
    struct krait_missed missed;
};

/* Its number, which another may get when it is removed, and when it was made, 0 if the file system does not tell. Left open it
 * would take a descriptor, of which there may be few (ulimit -n). */
static int look_at_folder(const char *dir, struct statx *found)
{
    *found = (struct statx){ 0 };
    return statx(AT_FDCWD, dir, 0, STATX_INO | STATX_BTIME, found);
}

static int open_folder(struct recorded *r, const char *name, struct krait_err *err)
{
    int rc = krait_recording_open(&r->collector, r->values, name, r->dir, sizeof(r->dir), err);
    if (!rc)
        look_at_folder(r->dir, &r->folder);
    return rc;
}

/* Whether the path does not lead to it any more. */
static bool is_folder_gone(const struct recorded *r)
{
    struct statx now;
    const struct statx *then = &r->folder;
    if (look_at_folder(r->dir, &now))
        return errno == ENOENT || errno == ENOTDIR;
    return then->stx_mask &&
           (now.stx_ino != then->stx_ino || now.stx_btime.tv_sec != then->stx_btime.tv_sec ||
            now.stx_btime.tv_nsec != then->stx_btime.tv_nsec);
}

static void recorded_done(struct recorded *r)
{
    krait_missed_done(&r->missed);
    krait_kernel_free(r->kernel);
    krait_collector_free(r->collector);
}

/* Rounds and naps until the command has ended, whose wait status is then in *status, or the recording has
 * reached a limit: then returns false. */
static bool collect_until_end(struct recorded *r, pid_t command, int *status)
{
    for (;;) {
        bool over = reap(command, status, r->values->wait);
        krait_collector_round(r->collector);
        after_round(r->collector);
        krait_record_kernel_round(r->kernel, r->collector);
        krait_missed_look(&r->missed);
        if (over)
            return true;
        if (krait_record_kernel_limit(r->kernel, r->collector))
            return false;
        krait_collector_nap(r->collector);
    }
}

/* py-spy and perf stat end a command at the end of their time; here it is the user's, whose exit status somebody may want. */
static void tell_waiting(pid_t command, bool is_whole)
{
    static const char *const how[] = {
        "krait passes SIGTERM and other signals on to it",
        "Ctrl-C interrupts it; Ctrl-Z, and then bg, leaves it in the background"
    };
    const char *whole = is_whole ? "The recording is complete: read it now. " : "";
    krait_terminal_say(
        NULL, 2, "%skrait (process %d) waits for the command (process %d), to end with its exit status. %s",
        whole, getpid(), command, how[isatty(STDIN_FILENO) && isatty(STDERR_FILENO)]);
}

/* Of a command that runs on. */
static int wait_for_end(pid_t command)
{
    int status = 0;
    siginfo_t ended;
    while (!reap(command, &status, false))
        waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT); /* a signal breaks it off */
    return status;
}

/* ---- the end ---- */

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

static void tell_end(struct krait_collector *collector, pid_t pid, int status)
{
    bool killed = WIFSIGNALED(status);
    krait_collector_ended(collector, pid, killed ? KRAIT_process_end_signal : KRAIT_process_end_exit,
                          killed ? WTERMSIG(status) : WEXITSTATUS(status), end_tick);
}

/* What became of a recording. */
struct finished {
    bool got_nothing; /* of what was asked for */
    bool is_whole;    /* there is one, and all of it could be written */
};

static struct finished finish(struct recorded *r)
{
    struct krait_collector_summary summary;
    struct krait_kernel_summary of_kernel = { 0 };
    krait_record_kernel_stop(r->kernel, r->collector);
    krait_collector_finish(r->collector, &summary);
    tell_trouble(r->collector);
    bool has_kernel = krait_record_kernel_finish(&r->kernel, r->collector, summary.kept_from, &of_kernel);
    bool removed = is_folder_gone(r);
    bool gone = !removed && krait_collector_drop_empty(r->collector);
    if (!r->values->quiet)
        krait_record_summary_print(r->collector, &r->missed, &summary, r->values,
                                   has_kernel ? &of_kernel : NULL, gone || removed ? NULL : r->dir);
    if (removed && summary.processes)
        krait_terminal_say(
            KRAIT_RED, 0,
            "krait record: the folder %s was removed meanwhile, and what was recorded with it; "
            "record again into another (-o)",
            r->dir);
    return (struct finished){
        .got_nothing = krait_record_got_nothing(r->collector, &r->missed, &summary, r->values),
        .is_whole = !gone && !removed && (summary.processes || has_kernel) && !summary.had_trouble,
    };
}

static int open_recorded(struct recorded *r, struct krait_err *err)
{
    char *preload = r->missed.preload;
    int rc = krait_before_find_preload(preload, sizeof(r->missed.preload), err);
    rc = rc ? rc : open_folder(r, r->command[0], err);
    if (!rc && r->values->view)
        rc = krait_watching_start(&viewer, r->dir, err); /* before its environment is the command's */
    r->missed.collector = r->collector;
    r->missed.first_only = r->values->no_children;
    return rc ? rc : krait_before_set_environment(r->collector, preload, !r->values->no_children, err);
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
    return W_EXITCODE(rc == -ENOENT ? KRAIT_EXIT_NOT_FOUND : KRAIT_EXIT_CANNOT_RUN, 0);
}

/* Where there is no recording. */
static void end_view(void)
{
    if (!viewer)
        return;
    krait_watching_tell(viewer, false);
    krait_watching_wait(viewer, &not_passed);
}

/* Returns the command's wait status, as the next one does. */
static int run_recorded(struct recorded *r)
{
    pid_t pid;
    if (r->values->wait)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    r->kernel = krait_record_kernel_open(r->values, r->command[0], r->dir, r->collector);
    clock_of_end = krait_collector_clock(r->collector);
    int status = start(r->command, &pid);
    if (status) {
        krait_kernel_discard(r->kernel);
        r->kernel = NULL;
        end_view();
        return status;
    }
    krait_recording_say_idle(r->values, getpid());
    krait_collector_child(r->collector, pid);
    r->missed.root = r->values->wait ? getpid() : pid;
    krait_raise_priority();
    bool ended = collect_until_end(r, pid, &status);
    if (ended)
        tell_end(r->collector, pid, status);
    struct finished finished = finish(r);
    if (viewer)
        krait_watching_tell(viewer, access(r->dir, F_OK) == 0);
    if (!ended && !r->values->quiet)
        tell_waiting(pid, finished.is_whole);
    if (!ended)
        status = wait_for_end(pid);
    if (viewer)
        krait_watching_wait(viewer, &not_passed);
    return finished.got_nothing && !status ? W_EXITCODE(KRAIT_EXIT_NOT_RECORDED, 0) : status;
}

/* Wrong usage, and commands that cannot be started. Returns 0 or the status to exit with. */
static int check_before(const struct krait_recording_values *values, int argc, char **argv)
{
    struct krait_err err = { 0 };
    int rc =
        argc ? krait_recording_check(values, &err)
             : krait_err_set(&err, -EINVAL, "no command to record; as in: krait record -- python3 app.py");
    int status = rc ? 2 : krait_before_check_command(argv[0], &err);
    if (status)
        krait_cmd_fail(&krait_cmd_record, &err);
    if (status == KRAIT_EXIT_NOT_FOUND)
        krait_record_kernel_guess(values, argv[0]);
    return status;
}

/* Returns the command's wait status, or that of krait's own exit status. */
static int record(struct krait_recording_values *values, int argc, char **argv)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_FREE char **command = calloc((size_t)argc + 1, sizeof(*command));
    int status = check_before(values, argc, argv);
    if (status || !command)
        return W_EXITCODE(status ? status : 1, 0);
    memcpy(command, argv, (size_t)argc * sizeof(*command));
    struct recorded r = { .values = values, .command = command };
    catch_signals(values); /* before there is a folder, which would stay */
    if (open_recorded(&r, &err)) {
        krait_cmd_fail(&krait_cmd_record, &err);
        krait_terminal_say(NULL, 0, "krait record: %s was not run", command[0]);
        status = W_EXITCODE(KRAIT_EXIT_NOT_RECORDED, 0);
    } else {
        status = run_recorded(&r);
    }
    recorded_done(&r);
    return status;
}

/* ---- sampling ---- */

static bool is_interrupted(void *ctx)
{
    return not_passed;
}

/* A command that is sampled. */
struct sampled {
    pid_t pid;
    int status;
    bool over;
};

static bool has_ended(void *ctx)
{
    struct sampled *command = ctx;
    if (!command->over)
        command->over = reap(command->pid, &command->status, false);
    return command->over;
}

/* Returns the wait status of krait itself. */
static int sample_pid(struct krait_record_sample *sample)
{
    char name[64];
    struct krait_err err = { 0 };
    snprintf(name, sizeof(name), "%d", sample->pid);
    catch_signals(sample->values);
    sample->over = is_interrupted;
    int rc = krait_record_sample_prepare(sample, name, &err);
    rc = rc ? rc : krait_record_sample_run(sample, NULL, &err);
    if (!rc && !sample->values->quiet)
        krait_record_print_next(sample->dir);
    return rc ? W_EXITCODE(krait_cmd_fail(&krait_cmd_record, &err), 0) : 0;
}

/* Returns the command's wait status. */
static int sample_command(struct krait_record_sample *sample, char **argv)
{
    struct krait_err err = { 0 };
    struct sampled command = { 0 };
    int status = krait_before_check_command(argv[0], &err);
    if (!status && krait_record_sample_prepare(sample, argv[0], &err))
        status = KRAIT_EXIT_NOT_RECORDED;
    if (status) {
        krait_cmd_fail(&krait_cmd_record, &err);
        return W_EXITCODE(status, 0);
    }
    catch_signals(sample->values);
    status = start(argv, &command.pid);
    if (status)
        return status;
    sample->pid = command.pid;
    sample->over = has_ended;
    sample->ctx = &command;
    int rc = krait_record_sample_run(sample, &command.status, &err);
    if (rc)
        krait_cmd_fail(&krait_cmd_record, &err);
    else if (!sample->values->quiet)
        krait_record_print_next(sample->dir);
    if (!command.over && !sample->values->quiet)
        tell_waiting(command.pid, !rc && !sample->is_cut_short && access(sample->dir, F_OK) == 0);
    if (!command.over)
        command.status = wait_for_end(command.pid);
    return rc && !command.status ? W_EXITCODE(KRAIT_EXIT_NOT_RECORDED, 0) : command.status;
}

static int sample(struct krait_recording_values *values, int argc, char **argv)
{
    struct krait_err err = { 0 };
    struct krait_record_sample sample = { 0 };
    if (krait_record_sample_check(&sample, values, argc, &err))
        return W_EXITCODE(krait_cmd_usage(&krait_cmd_record, &err), 0);
    if (values->pid)
        return sample_pid(&sample);
    KRAIT_AUTO_FREE char **command = calloc((size_t)argc + 1, sizeof(*command));
    if (!command)
        return W_EXITCODE(1, 0);
    memcpy(command, argv, (size_t)argc * sizeof(*command));
    return sample_command(&sample, command);
}

/* ---- attaching ---- */

/* The same; *rc is why there is no recording, or 0. */
static bool attach_recorded(struct recorded *r, struct krait_record_pid *attach, int *rc,
                            struct krait_err *err)
{
    krait_raise_priority();
    r->kernel = krait_record_kernel_open_beside(r->values, attach->pid, r->dir, r->collector);
    *rc = krait_record_pid_run(attach, r->collector, r->kernel, err);
    if (*rc) {
        krait_kernel_discard(r->kernel);
        r->kernel = NULL;
        return false;
    }
    struct finished finished = finish(r);
    if (!r->values->quiet)
        krait_record_pid_print(attach);
    return finished.got_nothing;
}

/* The page stays. The Ctrl-C that has ended the recording does not end it; the next one does. */
static void keep_view(const char *dir)
{
    if (!viewer)
        return;
    krait_watching_tell(viewer, access(dir, F_OK) == 0);
    if (not_passed == SIGINT)
        not_passed = 0;
    krait_watching_wait(viewer, &not_passed);
}

/* Returns the wait status of krait itself. */
static int attach(struct krait_recording_values *values, int argc)
{
    char name[64];
    struct krait_err err = { 0 };
    KRAIT_CLEANUP(krait_record_pid_done)
    struct krait_record_pid attach = { .values = values,
                                       .attached.how.over = is_interrupted,
                                       .each_round = after_round };
    if (krait_record_pid_check(&attach, argc, &err))
        return W_EXITCODE(krait_cmd_usage(&krait_cmd_record, &err), 0);
    struct recorded r = { .values = values };
    snprintf(name, sizeof(name), "%d", attach.pid);
    catch_signals(values); /* before there is a folder, which would stay */
    int rc = krait_record_pid_prepare(&attach, &err);
    rc = rc ? rc : open_folder(&r, name, &err);
    if (!rc && values->view)
        rc = krait_watching_start(&viewer, r.dir, &err);
    bool got_nothing = !rc && attach_recorded(&r, &attach, &rc, &err);
    recorded_done(&r);
    int status = rc ? krait_cmd_fail(&krait_cmd_record, &err) : 0;
    status = got_nothing || attach.is_refused ? KRAIT_EXIT_NOT_RECORDED : status;
    if (rc)
        end_view();
    else
        keep_view(r.dir);
    return W_EXITCODE(status, 0);
}

static int run(void *values, int argc, char **argv)
{
    struct krait_recording_values *v = values;
    bool samples =
        v->sample.count || v->outside || (v->children && !v->pid) || v->native_stacks || v->kernel_stacks;
    int status = samples ? sample(v, argc, argv) : v->pid ? attach(v, argc) : record(v, argc, argv);
    krait_recording_done(v);
    return pass_on(status);
}

static const struct krait_opt opts[] = {
#include "cmd/recording.def"
    KRAIT_RECORDING_OPT(
        "kernel", 0, MAYBE, "[=GROUPS]", kernel,
        "Record the kernel too: all GROUPS, or those named, separated by commas: sched, syscalls, irq, net, "
        "block, power (without root: the program's own switches and page faults)"),
    KRAIT_RECORDING_OPT("kernel-functions", 0, STR, "GLOB", kernel_functions,
                        "With --kernel: record entry and exit of the kernel functions whose names match, "
                        "such as 'vfs_*'"),
    KRAIT_RECORDING_OPT(
        "usdt", 0, LIST, "PROBE", usdt,
        "With --kernel: record a static probe (USDT) of the command's file, 'PROVIDER:NAME' with globs, or of "
        "another, 'FILE:PROVIDER:NAME'; 'python:gc__start(generation)' names its arguments, and "
        "'file:str' is a text; may be repeated"),
    KRAIT_RECORDING_OPT("kernel-ring-size", 0, SIZE, "SIZE", kernel_ring_size,
                        "Memory of each CPU's ring of kernel events (default: 4M)"),
    KRAIT_RECORDING_OPT(
        "sample", 0, SOME, "[RATE]", sample,
        "Read the threads' stacks RATE times a second, at most 10000 (default: 1000), instead of recording "
        "each call; see docs/sampling.md"),
    KRAIT_RECORDING_OPT(
        "pid", 0, STR, "PID", pid,
        "Record the running process PID, or sample it with --sample, until it ends, for the time of --for, "
        "or until Ctrl-C; see docs/attach.md"),
    KRAIT_RECORDING_OPT(
        "outside", 0, FLAG, NULL, outside,
        "With --sample: read the program from outside, without loading anything into it (the default, and so "
        "far the only way)"),
    KRAIT_RECORDING_OPT(
        "children", 0, FLAG, NULL, children,
        "With --pid or --sample: record or sample also the Python programs that it has started, and those that it starts"),
    KRAIT_RECORDING_OPT(
        "native-stacks", 0, FLAG, NULL, native_stacks,
        "With --sample: sample native frames too, of C and C++; stops running threads for a moment where the kernel does not tell their registers"),
    KRAIT_RECORDING_OPT(
        "kernel-stacks", 0, FLAG, NULL, kernel_stacks,
        "With --sample: also sample the kernel's functions that waiting threads are in; needs root"),
    KRAIT_RECORDING_OPT(
        "idle", 0, FLAG, NULL, idle,
        "Begin switched off: record neither the program nor the kernel, at no cost, until krait ctl PID start, the signal of "
        "--toggle-signal, or krait.resume(); --for counts from then on"),
    KRAIT_RECORDING_OPT(
        "toggle-signal", 0, CHOICE, "SIGUSR1|SIGUSR2", toggle_signal,
        "Switch the recording on or off when krait record gets this signal, and do not pass it on to "
        "COMMAND"),
    KRAIT_RECORDING_OPT(
        "snapshot-signal", 0, CHOICE, "SIGUSR1|SIGUSR2", snapshot_signal,
        "Write a snapshot beside the recording when krait record gets this signal, and do not pass it on "
        "to COMMAND"),
    KRAIT_RECORDING_OPT("wait", 0, FLAG, NULL, wait,
                        "Keep recording until every process that COMMAND left behind has ended, or Ctrl-C "
                        "(default: until COMMAND has ended)"),
    KRAIT_RECORDING_OPT("view", 0, FLAG, NULL, view,
                        "Open the recording in a browser at once, as krait view does; the page follows"),
    KRAIT_RECORDING_OPT(
        "verbose", 'v', FLAG, NULL, verbose,
        "With --pid: print each step, and for how long which thread of the process was paused"),
    KRAIT_RECORDING_OPT("quiet", 'q', FLAG, NULL, quiet, "Print nothing at the end"),
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_record = {
    .name = "record",
    .operands = "-- COMMAND...",
    .summary = "Run a command and record every Python and C call in it",
    .description =
        "Runs COMMAND unchanged and records every Python program in it and in the processes that it "
        "starts: calls, returns, yields, resumes, throws and unwinds of Python functions; calls, "
        "returns and raises of C functions; threads and processes. Another process, on another CPU, "
        "writes the recording, so nothing is lost when the program is killed.\n\n"
        "krait passes SIGHUP, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 on to COMMAND, and a terminal's "
        "hangup if krait leads the session. Ctrl-C reaches both by itself. COMMAND ignores the "
        "signals that krait was started to ignore, as under nohup, except SIGCHLD.\n\n"
        "Globs of --include and --exclude match a function's module, its qualified name, both joined by "
        "a dot, or its file. Excluded functions cost nothing on Python 3.12 and later.\n\n"
        "krait records each wait for the GIL with the thread that held it; see docs/gil.md. It also "
        "records which task of asyncio or trio, or which greenlet, runs; see docs/tasks.md. For --log, --audit, --gc and "
        "--imports, see docs/logging.md; for --args, docs/args.md.\n\n"
        "When a ring is full, krait drops events and counts them; the summary says how many and why. "
        "The summary's duration is COMMAND's, from its start to its end or to where --for or --max-size "
        "ended the recording; that of krait info is from the first event to the last.\n\n"
        "With --view, krait prints the link of a page that shows the recording from its first second on, and opens a "
        "browser. Ctrl-C ends COMMAND, or with --pid the recording; the page stays until krait is interrupted once more.\n\n"
        "With --kernel, krait also records the kernel's events of the whole machine, on the same clock, "
        "as a CTF folder with LTTng's names beside the program's. Without root, krait records only the "
        "program's own context switches and page faults; with --pid, none of the kernel's. See docs/kernel.md.",
    .examples = "# Record a script, then see where the time went\n"
                "krait record -o trace -- python3 app.py\n"
                "krait report trace\n"
                "# Only your own code, at no more than 5 % of its time\n"
                "krait record --include 'app*' --max-overhead 5 -- python3 app.py\n"
                "# A module, a console script, workers that fork\n"
                "krait record -- python3 -m pytest tests\n"
                "krait record --no-c-calls -- gunicorn app:wsgi\n"
                "# A daemon that outlives the command\n"
                "krait record --wait -- ./start-daemon.sh\n"
                "# The first ten seconds, and no more than a gigabyte\n"
                "krait record --for 10s --max-size 1G -- python3 app.py\n"
                "# What Cart.add was called with, and what it returned\n"
                "krait record --args 'Cart.add(item, self.owner) -> return' -- python3 app.py\n"
                "# Without the waits for the GIL\n"
                "krait record --no-gil -- python3 app.py\n"
                "# A flight recorder: the last ten seconds, whenever they are wanted\n"
                "krait record --last 10s --snapshot-signal SIGUSR1 -- python3 server.py\n"
                "# A server that records nothing until it is told to\n"
                "krait record --idle --toggle-signal SIGUSR2 -- gunicorn app:wsgi\n"
                "# Ten seconds of a running program\n"
                "krait record --pid 4711 --for 10s -o trace\n"
                "# A running server with all its workers\n"
                "krait record --pid $(pgrep -o gunicorn) --children --for 10s\n"
                "# Watch it while it runs; when it has ended, Ctrl-C ends the page\n"
                "krait record --view -- python3 app.py\n"
                "# What the kernel did meanwhile: scheduling and interrupts\n"
                "krait record --kernel=sched,irq -- python3 app.py\n",
    .exit_status =
        "The status of COMMAND. If a signal kills COMMAND, krait ends by the same signal. 127 when COMMAND is "
        "not found, 126 when it cannot be run, 2 for wrong usage. 125 when krait does not run it, because "
        "the folder of -o is not empty or a part of krait is missing. 125 also when it ended with 0 but no "
        "function matched --include, or krait does not record its Python.",
    .opts = opts,
    .stop_at_operand = true,
    .values_size = sizeof(struct krait_recording_values),
    .run = run,
};
