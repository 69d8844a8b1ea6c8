/* SPDX-License-Identifier: Apache-2.0
 *
 * krait dump: where the threads of running Python programs are.
 */
#include "cmd/dump.h"

#include "base/array.h"
#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"
#include "python/compat/versions.h"
#include "remote/locks.h"

#include <string.h>

struct dump_options {
    bool json, children, locals, native;
    uint64_t repeat, every_ns;
};

extern const struct krait_cmd krait_cmd_dump;

/* -- what is dumped -- */

const struct krait_os_task *dump_task(const struct dump_process *process,
                                      const struct krait_remote_thread *thread)
{
    return krait_tasks_find(&process->stacks->tasks, thread->tid);
}

enum dump_state dump_state_of(const struct krait_remote_thread *thread, const struct krait_os_task *task)
{
    static const struct {
        char letter;
        enum dump_state state;
    } letters[] = { { 'R', DUMP_RUNS },    { 'S', DUMP_SLEEPS },  { 'D', DUMP_SLEEPS },
                    { 'T', DUMP_STOPPED }, { 't', DUMP_STOPPED }, { 'Z', DUMP_ENDED } };
    enum dump_state state = DUMP_UNKNOWN;
    for (size_t i = 0; task && i < KRAIT_ARRAY_LEN(letters); i++)
        state = letters[i].letter == task->state ? letters[i].state : state;
    return state == DUMP_SLEEPS && krait_remote_waits_for_gil(thread, task) ? DUMP_WAITS_GIL : state;
}

/* -- one process after the other -- */

struct dump {
    const struct dump_options *options;
    struct krait_pids pids;
    struct krait_remote **remotes; /* by place in pids; NULL: it cannot be read */
    struct krait_remote_stacks stacks;
    struct krait_table_look look;
    uint32_t shown;
};

static void dump_done(struct dump *dump)
{
    for (uint32_t i = 0; dump->remotes && i < dump->pids.count; i++)
        krait_remote_free(dump->remotes[i]);
    free(dump->remotes);
    krait_pids_done(&dump->pids);
    krait_remote_stacks_done(&dump->stacks);
}

static int write_out(struct krait_buf *out, struct krait_err *err)
{
    if (out->failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (fwrite(out->data, 1, out->len, stdout) != out->len || fflush(stdout))
        return krait_err_errno(err, "cannot write the stacks");
    return 0;
}

static int dump_one(struct dump *dump, uint32_t i, struct krait_err *err)
{
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_remote *remote = dump->remotes[i];
    uint32_t flags = KRAIT_READ_CALLS | (dump->options->native ? KRAIT_READ_NATIVE : KRAIT_READ_CALLED);
    int rc = krait_remote_read(remote, &dump->stacks, flags, err);
    if (rc)
        return rc;
    krait_remote_read_locks(remote, &dump->stacks);
    rc = krait_remote_read_tasks(remote, &dump->stacks);
    if (rc && rc != -ENOTSUP && rc != -ENOENT && rc != -EFAULT)
        return krait_remote_refusal(remote->pid, rc, err);
    KRAIT_CLEANUP(dump_tree_done) struct dump_tree tree = { 0 };
    if (dump_tree_make(&tree, &dump->stacks))
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct dump_process process = { remote, &dump->stacks, &tree, dump->options->locals,
                                    dump->options->native };
    if (dump->options->json) {
        dump_json(&process, &out);
    } else {
        krait_buf_str(&out, dump->shown ? "\n" : "");
        dump_text(&process, &dump->look, &out);
    }
    dump->shown++;
    return write_out(&out, err);
}

static void sleep_ns(uint64_t ns)
{
    struct timespec time = { (time_t)(ns / KRAIT_NS_PER_S), (long)(ns % KRAIT_NS_PER_S) };
    nanosleep(&time, NULL);
}

/* Every process once. A process that cannot be read is told once, and left out from then on. */
static int dump_all(struct dump *dump, uint32_t named)
{
    int status = 0;
    for (uint32_t i = 0; i < dump->pids.count; i++) {
        struct krait_err err = { 0 };
        if (!dump->remotes[i] || !dump_one(dump, i, &err))
            continue;
        krait_remote_free(dump->remotes[i]);
        dump->remotes[i] = NULL;
        if (i < named || err.code != -ESRCH) /* children come and go */
            status = krait_cmd_fail(&krait_cmd_dump, &err);
    }
    return status;
}

static int open_all(struct dump *dump, uint32_t named)
{
    int status = 0;
    for (uint32_t i = 0; i < dump->pids.count; i++) {
        struct krait_err err = { 0 };
        if (!krait_remote_open(&dump->remotes[i], dump->pids.items[i], &err))
            continue;
        bool passed = dump->options->children && (err.code == -ENOEXEC || (i >= named && err.code == -ESRCH));
        if (!passed)
            status = krait_cmd_fail(&krait_cmd_dump, &err);
    }
    return status;
}

static bool any_left(const struct dump *dump)
{
    bool any = false;
    for (uint32_t i = 0; i < dump->pids.count; i++)
        any |= dump->remotes[i] != NULL;
    return any;
}

/* -- the command line -- */

static int add_operands(struct dump *dump, int argc, char **argv, struct krait_err *err)
{
    if (!argc)
        return krait_err_set(err, -EINVAL, "needs the PID of a running Python program");
    for (int i = 0; i < argc; i++) {
        pid_t pid;
        if (krait_pid_parse(argv[i], &pid, err))
            return err->code;
        if (!KRAIT_GROW(dump->pids.items, dump->pids.cap, dump->pids.count + 1))
            return krait_err_set(err, -ENOMEM, "out of memory");
        dump->pids.items[dump->pids.count++] = pid;
    }
    return 0;
}

static int add_children(struct dump *dump, uint32_t named, struct krait_err *err)
{
    for (uint32_t i = 0; dump->options->children && i < named; i++) {
        if (krait_pids_add_children(&dump->pids, dump->pids.items[i]))
            return krait_err_set(err, -ENOMEM, "out of memory");
    }
    dump->remotes = calloc(dump->pids.count, sizeof(struct krait_remote *));
    return dump->remotes ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
}

static int run_dump(void *values, int argc, char **argv)
{
    const struct dump_options *options = values;
    KRAIT_CLEANUP(dump_done) struct dump dump = { .options = options, .look = krait_terminal_look(stdout) };
    struct krait_err err = { 0 };
    if (add_operands(&dump, argc, argv, &err))
        return krait_cmd_usage(&krait_cmd_dump, &err);
    uint32_t named = dump.pids.count;
    if (add_children(&dump, named, &err))
        return krait_cmd_fail(&krait_cmd_dump, &err);
    int status = open_all(&dump, named);
    if (!status && !any_left(&dump)) {
        krait_pid_no_python(dump.pids.items[0], &err);
        return krait_cmd_fail(&krait_cmd_dump, &err);
    }
    for (uint64_t i = 0; i < (options->repeat ? options->repeat : 1) && any_left(&dump); i++) {
        if (i)
            sleep_ns(options->every_ns);
        status |= dump_all(&dump, named);
    }
    return status;
}

static const struct krait_opt dump_opts[] = {
    { "children", 'c', KRAIT_OPT_FLAG, NULL, offsetof(struct dump_options, children),
      "Dump also the Python programs that PID started" },
    { "locals", 'l', KRAIT_OPT_FLAG, NULL, offsetof(struct dump_options, locals),
      "Print the local variables of each function, shortened" },
    { "native", 'n', KRAIT_OPT_FLAG, NULL, offsetof(struct dump_options, native),
      "Print also native frames, of C and C++; stops each running thread for less than 1 ms, or longer on a "
      "busy machine" },
    { "repeat", 0, KRAIT_OPT_UINT, "N", offsetof(struct dump_options, repeat),
      "Dump N times, one after the other (default: 1)" },
    { "every", 0, KRAIT_OPT_TIME, "TIME", offsetof(struct dump_options, every_ns),
      "With --repeat, wait TIME between two dumps (default: 0)" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct dump_options, json),
      "Print a line of JSON for each process and dump" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_dump = {
    .name = "dump",
    .operands = "PID...",
    .summary = "Print the call stacks of a running Python program",
    .description =
        "Prints where each thread of running Python programs (CPython " KRAIT_PYTHON_SPAN
        ") is: its call stack, "
        "innermost function first, with file and line; whether it runs, waits for the GIL or sleeps in a system call; "
        "which thread holds the GIL; which lock a thread "
        "waits for, and which thread holds it if that is an RLock, or a Lock in a with statement; and threads that are deadlocked. The tasks of asyncio follow: the stack of what each awaits, and below it the tasks that it awaits.\n\n"
        "krait reads the memory of the process from outside and neither stops nor changes it, except that --native stops "
        "threads that run. The program can be one "
        "that was started without krait. Each stack is one that the thread really had: krait reads it on the "
        "thread's CPU, while the thread waits some microseconds for that CPU. krait reads the stacks of "
        "different threads one after the other.\n\n"
        "Only root can read programs of other users, and on many systems programs that krait did not start.",
    .examples = "krait dump 4711\n"
                "# A server with all its worker processes\n"
                "krait dump --children $(pgrep -o gunicorn)\n"
                "# The innermost function of the main thread, ten times a second\n"
                "krait dump --json --repeat 50 --every 100ms 4711 | jq -r '.threads[0].frames[0].function'\n",
    .opts = dump_opts,
    .values_size = sizeof(struct dump_options),
    .run = run_dump,
};
