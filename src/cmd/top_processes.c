/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"
#include "base/clock.h"
#include "cmd/top.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

extern char **environ;

enum { TRIES = 100 }; /* to open a program, and to read one */

static int close_remote(struct top_process *process, struct krait_sums *sums)
{
    int rc = process->remote ? krait_sums_end_process(sums, process->pid) : 0;
    krait_remote_free(process->remote);
    process->remote = NULL;
    process->stacks.thread_count = 0;
    process->found_ns = 0;
    return rc;
}

static int let_go(struct top_process *process, struct krait_sums *sums)
{
    process->ended = true;
    process->ended_ns = krait_clock_ns(CLOCK_MONOTONIC);
    return close_remote(process, sums);
}

/* Its next program is opened like one that has just begun, and soon. */
static int begin_again(struct top_processes *processes, struct top_process *process, struct krait_sums *sums)
{
    process->tries = process->age = 0;
    processes->looks = true;
    return close_remote(process, sums);
}

/* What cannot be read may be executing another program. */
static bool may_execute(struct top_process *process, int rc)
{
    return krait_remote_has_executed(process->remote) ||
           (rc != -ESRCH && rc != -ENOMEM && process->failures++ < TRIES);
}

void top_processes_done(struct top_processes *processes)
{
    for (uint32_t i = 0; i < processes->count; i++) {
        krait_remote_stacks_done(&processes->items[i].stacks);
        krait_remote_free(processes->items[i].remote);
    }
    free(processes->items);
    top_unseen_done(&processes->unseen);
}

static int add(struct top_processes *processes, pid_t pid, bool is_named)
{
    for (uint32_t i = 0; i < processes->count; i++) {
        if (processes->items[i].pid == pid && !processes->items[i].ended)
            return 0;
    }
    if (!is_named && krait_executed_is_to_come(pid)) {
        processes->looks = processes->puts_off = true;
        return 0;
    }
    if (!KRAIT_GROW(processes->items, processes->cap, processes->count + 1))
        return -ENOMEM;
    processes->items[processes->count++] = (struct top_process){ .pid = pid, .is_named = is_named };
    top_unseen_saw(&processes->unseen, pid);
    return 0;
}

int top_processes_add(struct top_processes *processes, pid_t pid)
{
    return add(processes, pid, true);
}

/* -- a command of krait's own -- */

static int spawn(pid_t *pid, char **argv, int output, bool quiet)
{
    posix_spawn_file_actions_t files;
    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return rc;
    if (quiet)
        rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(&files, quiet ? output : STDERR_FILENO, STDOUT_FILENO);
    if (quiet && !rc)
        rc = posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    rc = rc ? rc : posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

int top_command_start(struct top_processes *processes, char **argv, bool quiet, struct krait_err *err)
{
    processes->output = quiet ? memfd_create("output", MFD_CLOEXEC) : -1;
    if (quiet && processes->output < 0)
        return krait_err_errno(err, "cannot keep the output of %s", argv[0]);
    int rc = spawn(&processes->command, argv, processes->output, quiet);
    if (rc) {
        processes->command = 0;
        return krait_err_set(err, -rc, "cannot run %s: %s", argv[0], strerror(rc));
    }
    processes->with_children = true;
    return add(processes, processes->command, true) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* Once it has ended its number may be another's. */
static bool command_runs(struct top_processes *processes)
{
    int status;
    if (processes->command <= 0 || waitpid(processes->command, &status, WNOHANG) == 0)
        return processes->command > 0;
    processes->status = status;
    processes->command = -1;
    return false;
}

static void copy_output(int from)
{
    char bytes[65536];
    ssize_t n;
    for (off_t at = 0; (n = pread(from, bytes, sizeof(bytes), at)) > 0; at += n)
        fwrite(bytes, 1, (size_t)n, stdout);
    fflush(stdout);
    close(from);
}

/* -- finding -- */

static uint64_t program_of(pid_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    return stat(path, &st) ? 0 : st.st_ino * 0x9e3779b97f4a7c15ull + st.st_dev;
}

/* A program that has just begun is no Python yet; one that is none stays so until it becomes another. */
static int try_open(struct top_process *process, struct krait_err *err)
{
    uint64_t program = program_of(process->pid);
    if (program != process->program)
        process->tries = 0;
    process->program = program;
    if (process->tries >= TRIES)
        return -ENOEXEC;
    process->tries++;
    struct krait_task_times times = { 0 };
    krait_task_times(process->pid, &times);
    process->cpu_ns = times.own;
    int rc = krait_remote_open(&process->remote, process->pid, err);
    if (rc)
        return rc;
    process->images += !process->images || krait_executed_is_other(process->image, process->remote->image);
    process->image = process->remote->image;
    return 0;
}

static int find_children(struct top_processes *processes)
{
    struct krait_pids pids = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < processes->count && !rc; i++) {
        if (processes->items[i].is_named && !processes->items[i].ended)
            rc = krait_pids_add_children(&pids, processes->items[i].pid);
    }
    for (uint32_t i = 0; i < pids.count && !rc; i++)
        rc = add(processes, pids.items[i], false);
    krait_pids_done(&pids);
    return rc;
}

/* The command and what it has started. */
static void end_all(struct top_processes *processes)
{
    find_children(processes);
    for (uint32_t i = 0; i < processes->count; i++) {
        if (!processes->items[i].ended)
            kill(processes->items[i].pid, SIGTERM);
    }
    while (waitpid(processes->command, &processes->status, 0) < 0 && errno == EINTR)
        ;
    processes->command = -1;
}

void top_command_end(struct top_processes *processes)
{
    if (command_runs(processes))
        end_all(processes);
    if (processes->output >= 0)
        copy_output(processes->output);
    processes->output = -1;
}

/* Those that have ended make room. */
static void forget_ended(struct top_processes *processes)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < processes->count; i++) {
        struct top_process *process = &processes->items[i];
        if (process->ended && !process->is_named && (process->gone || !processes->with_children))
            krait_remote_stacks_done(&process->stacks);
        else
            processes->items[kept++] = *process;
    }
    processes->count = kept;
}

static bool is_alive(struct top_processes *processes, const struct top_process *process)
{
    if (process->pid == processes->command)
        return command_runs(processes);
    return !process->ended && (kill(process->pid, 0) == 0 || errno == EPERM);
}

/* Whether something is still to come of a process that is not read. */
static bool is_waited_for(const struct top_processes *processes, const struct top_process *process,
                          const struct krait_err *err)
{
    return (processes->with_children || process->images) && err->code != -EPERM;
}

/* Opens one that is not read. Returns why it cannot be, if nothing is to be waited for. */
static int find_python(struct top_processes *processes, struct top_process *process, struct krait_sums *sums,
                       struct krait_err *err)
{
    struct krait_err why = { 0 };
    int rc = try_open(process, &why);
    processes->opened += !rc;
    if (!rc)
        return 0;
    if (rc == -ESRCH && process->images && process->pid != processes->command) /* nobody has waited for it */
        return let_go(process, sums);
    processes->looks |= process->images && process->tries < TRIES;
    if (!process->is_named || is_waited_for(processes, process, &why))
        return 0;
    *err = why;
    return rc;
}

int top_processes_find(struct top_processes *processes, struct krait_sums *sums, struct krait_err *err)
{
    bool alive = false;
    processes->looks = processes->puts_off = false;
    top_unseen_look(processes, krait_clock_ns(CLOCK_MONOTONIC));
    if (processes->with_children && find_children(processes))
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < processes->count; i++) {
        struct top_process *process = &processes->items[i];
        if (process->ended)
            continue;
        if (!is_alive(processes, process)) {
            if (let_go(process, sums))
                return krait_err_set(err, -ENOMEM, "out of memory");
            continue;
        }
        alive |= process->is_named || process->remote;
        if (process->remote && krait_remote_has_executed(process->remote) &&
            begin_again(processes, process, sums))
            return krait_err_set(err, -ENOMEM, "out of memory");
        process->age += process->remote != NULL;
        int rc = process->remote ? 0 : find_python(processes, process, sums, err);
        if (rc)
            return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
    }
    forget_ended(processes);
    return alive ? 0 : -ESRCH;
}

/* -- reading -- */

/* Of threads whose stacks were read for the picture alone. */
static void leave_out(struct krait_remote_stacks *stacks, const struct top_reading *reading)
{
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        if ((!reading->sleeping && !thread->runs) || (!reading->others && !thread->holds_gil))
            thread->count = 0;
    }
}

static int add_to_sums(struct krait_sums *sums, const struct top_process *process, bool by_state)
{
    const struct krait_remote_stacks *stacks = &process->stacks;
    if (!by_state)
        return krait_sums_add(sums, process->pid, stacks, NULL);
    KRAIT_AUTO_FREE uint8_t *states = calloc(stacks->thread_count + 1, 1);
    for (uint32_t i = 0; i < stacks->thread_count && states; i++) {
        if (stacks->threads[i].count)
            states[i] = (uint8_t)top_state_of(process->pid, &stacks->threads[i]);
    }
    return states ? krait_sums_add(sums, process->pid, stacks, states) : -ENOMEM;
}

static int add_all(struct top_process *process, const struct top_reading *reading)
{
    int rc = reading->stacks ? top_stacks_add(reading->stacks, process->remote, &process->stacks) : 0;
    if (reading->stacks)
        leave_out(&process->stacks, reading);
    return rc ? rc : add_to_sums(reading->sums, process, reading->flags & KRAIT_READ_WAITS);
}

/* Threads are looked for now and then, and when one was not there any more. Until then krait can stay on the CPU of a thread if
 * there is one process alone. */
static uint32_t flags_of(const struct top_processes *processes, struct top_process *process,
                         const struct top_reading *reading)
{
    enum { FIND_NS = 50 * KRAIT_NS_PER_MS };
    bool known = process->found_ns && reading->now_ns - process->found_ns < FIND_NS;
    process->found_ns = known ? process->found_ns : reading->now_ns;
    bool alone = processes->count == 1;
    bool stays = alone && reading->next_ns && reading->next_ns - process->found_ns < FIND_NS;
    return reading->flags | KRAIT_READ_COST | (known ? KRAIT_READ_KNOWN | KRAIT_READ_GIL : 0) |
           (stays ? KRAIT_READ_STAY : 0) | (alone ? KRAIT_READ_SWITCHES : 0);
}

/* A thread whose stack could not be read may have ended. */
static void check_threads(struct top_process *process)
{
    for (uint32_t i = 0; i < process->stacks.thread_count && process->found_ns; i++)
        process->found_ns = process->stacks.threads[i].failed ? 0 : process->found_ns;
    if (!process->found_ns)
        krait_still_leave(&process->remote->still);
}

void top_processes_rest(struct top_processes *processes)
{
    for (uint32_t i = 0; i < processes->count; i++) {
        if (processes->items[i].remote)
            krait_still_leave(&processes->items[i].remote->still);
    }
}

/* Returns 0 or -ENOMEM; *rc: why it could not be read and is given up. */
static int read_one(struct top_processes *processes, struct top_process *process,
                    const struct top_reading *reading, int *rc, struct krait_err *err)
{
    uint64_t held_ns = process->remote->held_ns, sweeps = process->remote->codes.sweeps;
    uint32_t flags = flags_of(processes, process, reading);
    bool finds = !(flags & KRAIT_READ_KNOWN);
    *rc = 0;
    if (finds && krait_remote_has_executed(process->remote))
        return begin_again(processes, process, reading->sums);
    int read = krait_remote_read(process->remote, &process->stacks, flags, err);
    processes->held_ns += process->remote->held_ns - held_ns;
    if (read && may_execute(process, read))
        return begin_again(processes, process, reading->sums);
    if (process->remote->codes.sweeps != sweeps)
        krait_sums_forget_codes(reading->sums);
    *rc = read;
    if (read)
        return let_go(process, reading->sums);
    process->failures = 0;
    check_threads(process);
    return add_all(process, reading);
}

int top_processes_read(struct top_processes *processes, const struct top_reading *reading,
                       struct krait_err *err)
{
    int rc = 0, last = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < processes->count && !rc; i++) { /* if one cannot be read, others go on */
        int failed = 0;
        if (!processes->items[i].remote)
            continue;
        rc = read_one(processes, &processes->items[i], reading, &failed, err);
        last = failed ? failed : last;
        kept += !failed;
    }
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    return kept || processes->with_children ? 0 : last;
}

uint64_t top_processes_cpu(struct top_processes *processes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < processes->count; i++) {
        struct top_process *process = &processes->items[i];
        struct krait_task_times times = { 0 };
        if (process->remote)
            krait_task_times(process->pid, &times);
        uint64_t used = times.own;
        sum += used > process->cpu_ns ? used - process->cpu_ns : 0;
        process->cpu_ns = used ? used : process->cpu_ns;
    }
    return sum;
}

uint64_t top_processes_memory(const struct top_processes *processes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < processes->count; i++)
        sum += processes->items[i].remote ? krait_task_memory(processes->items[i].pid) : 0;
    return sum;
}

uint32_t top_thread_count(const struct top_processes *processes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < processes->count; i++)
        n += processes->items[i].stacks.thread_count;
    return n;
}

uint32_t top_process_count(const struct top_processes *processes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < processes->count; i++)
        n += processes->items[i].remote != NULL;
    return n;
}
