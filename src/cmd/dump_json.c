/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/system_calls.h"
#include "cmd/dump.h"
#include "event/own.h"
#include "remote/locals.h"

static const char *const state_names[] = {
    [DUMP_RUNS] = "running",    [DUMP_WAITS_GIL] = "waiting for GIL",
    [DUMP_SLEEPS] = "sleeping", [DUMP_STOPPED] = "stopped",
    [DUMP_ENDED] = "ended",     [DUMP_UNKNOWN] = "unknown",
};

static const char *const native_results[] = { [KRAIT_NATIVE_NONE] = NULL,
                                              [KRAIT_NATIVE_WHOLE] = "whole",
                                              [KRAIT_NATIVE_CUT] = "cut",
                                              [KRAIT_NATIVE_APART] = "apart" };

static void add_local(void *ctx, const struct krait_local *local)
{
    struct krait_buf *out = ctx;
    krait_json_item(out, "{");
    krait_json_key_text(out, "name", local->name);
    krait_json_key_text(out, "value", local->value);
    krait_json_key_bool(out, "changed", local->changed);
    krait_buf_char(out, '}');
}

/* null if the frame runs another function by now. */
static void add_locals(struct krait_buf *out, const struct krait_remote *remote,
                       const struct krait_remote_frame *frame)
{
    KRAIT_AUTO_BUF locals = { 0 };
    krait_buf_char(&locals, '[');
    bool known = !krait_locals_read(remote, frame, add_local, &locals);
    krait_buf_char(&locals, ']');
    krait_json_key(out, "locals");
    krait_buf_str(out, known && locals.data ? locals.data : "null");
    out->failed |= locals.failed;
}

static void add_frame(struct krait_buf *out, const struct dump_process *process,
                      const struct krait_remote_frame *frame)
{
    krait_json_item(out, "{");
    krait_json_key_text(out, "function", frame->code->name);
    krait_json_key_text(out, "file", frame->code->file);
    krait_json_key_u64_or_null(out, "line", frame->line > 0, (uint64_t)frame->line);
    krait_json_key_u64_or_null(out, "first_line", frame->code->first_line > 0,
                               (uint64_t)frame->code->first_line);
    if (process->native)
        krait_json_key_bool(out, "native", frame->code->native);
    if (process->native && frame->code->native)
        krait_json_key_u64(out, "offset", frame->addr - frame->code->addr);
    if (process->locals)
        add_locals(out, process->remote, frame);
    krait_buf_char(out, '}');
}

static void add_frames(struct krait_buf *out, const struct dump_process *process, uint32_t first,
                       uint32_t count)
{
    krait_json_key_open(out, "frames", '[');
    for (uint32_t i = first; i < first + count; i++) {
        if (!krait_own_file(process->stacks->frames[i].code->file))
            add_frame(out, process, &process->stacks->frames[i]);
    }
    krait_buf_char(out, ']');
}

static void add_lock(struct krait_buf *out, const struct krait_remote_thread *thread)
{
    static const char *const kinds[] = { [KRAIT_LOCK_PLAIN] = "Lock", [KRAIT_LOCK_REENTRANT] = "RLock" };
    const struct krait_lock *lock = &thread->waits_for;
    krait_json_key(out, "waits_for");
    if (!lock->kind) {
        krait_buf_str(out, "null");
    } else {
        krait_buf_char(out, '{');
        krait_json_key_text(out, "lock", kinds[lock->kind]);
        krait_json_key_u64(out, "id", lock->addr);
        krait_json_key_u64_or_null(out, "owner", lock->owner, (uint64_t)lock->owner);
        krait_buf_char(out, '}');
    }
    krait_json_key_bool(out, "deadlocked", thread->deadlocked);
}

/* The C function that the first frame has called; null: none, or it is not certain. */
static void add_called(struct krait_buf *out, const struct krait_remote_code *called)
{
    krait_json_key(out, "c_function");
    if (!called) {
        krait_buf_str(out, "null");
        return;
    }
    krait_buf_char(out, '{');
    krait_json_key_text(out, "function", called->name);
    krait_json_key_text(out, "module", called->module);
    krait_buf_char(out, '}');
}

static void add_thread(struct krait_buf *out, const struct dump_process *process,
                       const struct krait_remote_thread *thread)
{
    const struct krait_os_task *task = dump_task(process, thread);
    enum dump_state state = dump_state_of(thread, task);
    krait_json_item(out, "{");
    krait_json_key_u64_or_null(out, "tid", thread->tid, (uint64_t)thread->tid);
    krait_json_key_u64(out, "ident", thread->ident);
    krait_json_key_text_or_null(out, "name", task ? task->name : NULL);
    krait_json_key_u64(out, "interpreter", krait_remote_interpreter(thread));
    krait_json_key_text(out, "state", state_names[state]);
    krait_json_key_text_or_null(out, "system_call", task ? krait_system_call_name(task->call) : NULL);
    krait_json_key_text_or_null(out, "kernel_function", task ? task->kernel_function : NULL);
    krait_json_key_bool(out, "holds_gil", thread->holds_gil);
    krait_json_key_bool(out, "read", !thread->failed);
    krait_json_key_bool(out, "proved", thread->proved);
    add_lock(out, thread);
    if (process->native)
        krait_json_key_text_or_null(out, "native", native_results[thread->native]);
    add_called(out, thread->called);
    add_frames(out, process, thread->first, thread->count);
    if (process->locals)
        krait_json_key_bool(out, "ran_on", !krait_remote_has_not_run(process->remote, thread));
    krait_buf_char(out, '}');
}

static const char *const task_states[] = { [KRAIT_COROUTINE_WAITS] = "waiting",
                                           [KRAIT_COROUTINE_RUNS] = "running",
                                           [KRAIT_COROUTINE_CREATED] = "created" };

static void add_ids(struct krait_buf *out, const struct dump_process *process, const char *key,
                    const uint32_t *tasks, uint32_t count)
{
    krait_json_key_open(out, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        krait_json_item(out, "");
        krait_buf_fmt(out, "%llu", (unsigned long long)process->stacks->coroutines[tasks[i]].addr);
    }
    krait_buf_char(out, ']');
}

static void add_task(struct krait_buf *out, const struct dump_process *process, uint32_t i)
{
    const struct krait_remote_task *task = &process->stacks->coroutines[i];
    const uint32_t *first = &process->tree->first[i];
    krait_json_item(out, "{");
    krait_json_key_u64(out, "id", task->addr);
    krait_json_key_text(out, "name", task->name);
    krait_json_key_u64_or_null(out, "tid", task->tid, (uint64_t)task->tid);
    krait_json_key_text(out, "state", task_states[task->state]);
    krait_json_key_bool(out, "read", !task->failed);
    add_ids(out, process, "awaits", process->tree->awaits + first[0], first[1] - first[0]);
    add_ids(out, process, "awaited_by", process->stacks->awaiters + task->by_first, task->by_count);
    add_frames(out, process, task->first, task->count);
    krait_buf_char(out, '}');
}

void dump_json(const struct dump_process *process, struct krait_buf *out)
{
    const struct krait_remote *remote = process->remote;
    KRAIT_AUTO_BUF command = { 0 };
    krait_task_command(&command, remote->pid);
    out->failed |= command.failed;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "pid", (uint64_t)remote->pid);
    krait_json_key_text_or_null(out, "command", command.data);
    krait_json_key_text(out, "python", remote->version);
    krait_json_key_text(out, "interpreter_file", remote->file);
    krait_json_key_u64(out, "copies", remote->tries);
    krait_json_key_u64(out, "not_read", remote->failures);
    krait_json_key_open(out, "threads", '[');
    for (uint32_t i = 0; i < process->stacks->thread_count; i++)
        add_thread(out, process, &process->stacks->threads[i]);
    krait_buf_char(out, ']');
    krait_json_key_open(out, "tasks", '[');
    for (uint32_t i = 0; i < process->stacks->coroutine_count; i++)
        add_task(out, process, i);
    krait_buf_str(out, "]}\n");
}
