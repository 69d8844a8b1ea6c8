/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"
#include "base/system_calls.h"
#include "cmd/dump.h"
#include "event/own.h"
#include "remote/locals.h"
#include "view/width.h"

#include <string.h>

enum { INDENT = 4, GAP = 2, NAME_LEAST = 16, LEVELS_MAX = 12 }; /* deeper tasks are not indented further */

#define GREEN  "\033[32m"
#define YELLOW "\033[33m"

/* -- a thread's heading -- */

/* What it sleeps in, as far as the kernel says. */
static void add_place(struct krait_buf *out, const struct krait_os_task *task)
{
    const char *call = krait_system_call_name(task->call);
    if (call)
        krait_buf_fmt(out, "sleeps in %s", call);
    else if (task->kernel_function[0])
        krait_buf_fmt(out, "sleeps in the kernel's %s", task->kernel_function);
    else
        krait_buf_str(out, "sleeps");
}

static void add_state(struct krait_buf *out, const struct krait_remote_thread *thread,
                      const struct krait_os_task *task)
{
    static const char *const texts[] = { [DUMP_RUNS] = "runs",
                                         [DUMP_WAITS_GIL] = "waits for the GIL",
                                         [DUMP_STOPPED] = "is stopped",
                                         [DUMP_ENDED] = "has ended",
                                         [DUMP_UNKNOWN] = "state unknown" };
    enum dump_state state = dump_state_of(thread, task);
    if (state == DUMP_SLEEPS)
        add_place(out, task);
    else
        krait_buf_str(out, texts[state]);
    krait_buf_str(out, thread->holds_gil ? ", holds the GIL" : "");
}

static const char *state_colour(const struct krait_table_look *look, const struct krait_remote_thread *thread,
                                const struct krait_os_task *task)
{
    static const char *const colours[] = {
        [DUMP_RUNS] = GREEN,        [DUMP_WAITS_GIL] = YELLOW, [DUMP_SLEEPS] = KRAIT_DIM,
        [DUMP_STOPPED] = KRAIT_RED, [DUMP_ENDED] = KRAIT_RED,  [DUMP_UNKNOWN] = KRAIT_DIM
    };
    return look->colour ? colours[dump_state_of(thread, task)] : "";
}

static void add_lock(struct krait_buf *out, const struct krait_table_look *look,
                     const struct krait_remote_thread *thread)
{
    static const char *const kinds[] = { [KRAIT_LOCK_PLAIN] = "Lock", [KRAIT_LOCK_REENTRANT] = "RLock" };
    const struct krait_lock *lock = &thread->waits_for;
    if (!lock->kind)
        return;
    krait_buf_fmt(out, "%*swaits for the %s at 0x%llx", INDENT, "", kinds[lock->kind],
                  (unsigned long long)lock->addr);
    if (lock->owner == thread->tid && lock->owner)
        krait_buf_str(out, ", which it holds itself");
    else if (lock->owner)
        krait_buf_fmt(out, ", which thread %d holds", lock->owner);
    if (thread->deadlocked)
        krait_buf_fmt(out, "%s  deadlock%s", look->colour ? KRAIT_RED : "", look->colour ? KRAIT_PLAIN : "");
    krait_buf_char(out, '\n');
}

static void add_heading(struct krait_buf *out, const struct dump_process *process,
                        const struct krait_table_look *look, const struct krait_remote_thread *thread)
{
    const struct krait_os_task *task = dump_task(process, thread);
    const char *plain = look->colour ? KRAIT_PLAIN : "";
    krait_buf_fmt(out, "\n%sThread %d", look->colour ? KRAIT_BOLD : "", thread->tid);
    if (thread->tid == process->remote->pid)
        krait_buf_str(out, " (main)");
    else if (task && strcmp(task->name, process->stacks->tasks.items[0].name) != 0) {
        krait_buf_char(out, ' ');
        krait_fmt_safe(out, task->name);
    }
    uint64_t interpreter = krait_remote_interpreter(thread);
    if (interpreter)
        krait_buf_fmt(out, " of interpreter %llu", (unsigned long long)interpreter);
    krait_buf_fmt(out, "%s  %s", plain, state_colour(look, thread, task));
    add_state(out, thread, task);
    krait_buf_fmt(out, "%s\n", plain);
    add_lock(out, look, thread);
}

/* -- its frames -- */

/* A run of equal frames: recursion. */
static uint32_t equal_frames(const struct krait_remote_frame *frames, uint32_t count)
{
    uint32_t n = 1;
    while (n < count && frames[n].code == frames[0].code && frames[n].line == frames[0].line)
        n++;
    return n;
}

/* Appends text in `width` columns, 0: as wide as it gets; and blanks up to `padded` columns. */
static void add_cell(struct krait_buf *out, const char *text, uint32_t width, uint32_t padded, bool utf8)
{
    KRAIT_AUTO_BUF safe = { 0 };
    size_t before = out->len;
    krait_fmt_safe(&safe, text);
    out->failed |= safe.failed;
    if (!safe.data)
        return;
    if (width)
        krait_width_shorten(out, safe.data, width, utf8);
    else
        krait_buf_str(out, safe.data);
    uint32_t used = out->data ? krait_width_of(out->data + before, out->len - before) : 0;
    krait_buf_fmt(out, "%*s", used < padded ? (int)(padded - used) : 0, "");
}

/* Without a limit a few names stay whole that would move all others' files far away. */
static uint32_t name_width(const struct krait_remote_frame *frames, uint32_t count, uint32_t columns)
{
    enum { PADDED_MOST = 80 };
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct krait_remote_code *code = frames[i].code;
        uint32_t width = krait_own_file(code->file) ? 0 : krait_width_of(code->name, strlen(code->name));
        most = columns || width <= PADDED_MOST ? KRAIT_MAX(most, width) : most;
    }
    return columns ? KRAIT_MIN(most, KRAIT_MAX(columns / 2, (uint32_t)NAME_LEAST)) : most;
}

static void add_frame(struct krait_buf *out, const struct krait_table_look *look,
                      const struct krait_remote_frame *frame, uint32_t indent, uint32_t name_columns,
                      uint32_t times)
{
    char line[32] = "", again[48] = "";
    if (frame->line > 0)
        snprintf(line, sizeof(line), ":%d", frame->line);
    if (times > 1)
        snprintf(again, sizeof(again), "  (%u times)", times);
    uint32_t taken = indent + name_columns + GAP + (uint32_t)strlen(line) + (uint32_t)strlen(again);
    uint32_t rest = look->width > taken ? look->width - taken : look->width ? 1 : 0;
    bool dim_name = look->colour && frame->code->native;
    krait_buf_fmt(out, "%*s%s", (int)indent, "", dim_name ? KRAIT_DIM : "");
    add_cell(out, frame->code->name, look->width ? name_columns : 0, name_columns, look->utf8);
    krait_buf_fmt(out, "%*s%s", GAP, "", look->colour ? KRAIT_DIM : "");
    add_cell(out, frame->code->file, rest, 0, look->utf8);
    krait_buf_fmt(out, "%s%s%s\n", line, look->colour ? KRAIT_PLAIN : "", again);
}

struct locals {
    struct krait_buf *out;
    const struct krait_table_look *look;
    uint32_t indent;
};

static void add_local(void *ctx, const struct krait_local *local)
{
    enum { DEEPER = 4 };
    const struct locals *locals = ctx;
    KRAIT_AUTO_BUF line = { 0 };
    uint32_t width = locals->look->width, taken = locals->indent + DEEPER;
    krait_buf_fmt(&line, "%s = %s%s", local->name, local->value,
                  local->changed ? "  (changed while krait read it)" : "");
    krait_buf_fmt(locals->out, "%*s", (int)taken, "");
    add_cell(locals->out, line.data ? line.data : "", width > taken ? width - taken : width, 0,
             locals->look->utf8);
    krait_buf_char(locals->out, '\n');
    locals->out->failed |= line.failed;
}

static void add_frames(struct krait_buf *out, const struct dump_process *process,
                       const struct krait_table_look *look, uint32_t indent, uint32_t first, uint32_t count)
{
    const struct krait_remote_frame *frames = process->stacks->frames + first;
    uint32_t columns = name_width(frames, count, look->width);
    for (uint32_t i = 0, n; i < count; i += n) {
        struct locals locals = { out, look, indent };
        n = process->locals ? 1 : equal_frames(frames + i, count - i);
        if (krait_own_file(frames[i].code->file))
            continue;
        add_frame(out, look, &frames[i], indent, columns, n);
        if (process->locals)
            krait_locals_read(process->remote, &frames[i], add_local, &locals);
    }
}

/* The C function that the first frame has called. */
static void add_called(struct krait_buf *out, const struct krait_table_look *look,
                       const struct krait_remote_code *called)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint32_t columns = look->width > INDENT ? look->width - INDENT : look->width;
    krait_remote_put_name(&text, called);
    krait_buf_str(&text, " (C)");
    out->failed |= text.failed;
    krait_buf_fmt(out, "%*s%s", INDENT, "", look->colour ? KRAIT_DIM : "");
    add_cell(out, text.data ? text.data : "", columns, 0, look->utf8);
    krait_buf_fmt(out, "%s\n", look->colour ? KRAIT_PLAIN : "");
}

static const char *const native_notes[] = {
    [KRAIT_NATIVE_NONE] = "    its native frames could not be read\n",
    [KRAIT_NATIVE_WHOLE] = "",
    [KRAIT_NATIVE_CUT] = "    its outer native frames are missing: a file has no call frame information\n",
    [KRAIT_NATIVE_APART] = "    its native frames do not fit to the Python ones, which follow them\n",
};

static void add_thread(struct krait_buf *out, const struct dump_process *process,
                       const struct krait_table_look *look, const struct krait_remote_thread *thread)
{
    add_heading(out, process, look, thread);
    if (thread->failed)
        krait_buf_fmt(out, "%*sits stack changed during each of %d copies; dump it again\n", INDENT, "",
                      KRAIT_TRIES_MAX);
    else if (!thread->count)
        krait_buf_fmt(out, "%*sruns no Python function\n", INDENT, "");
    else if (!thread->proved)
        krait_buf_fmt(out, "%*snot proved: krait could not keep it from running meanwhile\n", INDENT, "");
    if (process->native)
        krait_buf_str(out, native_notes[thread->native]);
    if (thread->called)
        add_called(out, look, thread->called);
    add_frames(out, process, look, INDENT, thread->first, thread->count);
    if (process->locals && thread->count && !krait_remote_has_not_run(process->remote, thread))
        krait_buf_fmt(out, "%*sran on before krait read its variables: they may be newer than its lines\n",
                      INDENT, "");
}

static void add_task(struct krait_buf *out, const struct dump_process *process,
                     const struct krait_table_look *look, const struct dump_node *node)
{
    static const char *const states[] = { [KRAIT_COROUTINE_WAITS] = "waits",
                                          [KRAIT_COROUTINE_RUNS] = "runs",
                                          [KRAIT_COROUTINE_CREATED] = "has not begun" };
    const struct krait_remote_task *task = &process->stacks->coroutines[node->task];
    uint32_t indent = KRAIT_MIN(node->depth, (uint32_t)LEVELS_MAX) * INDENT;
    krait_buf_fmt(out, "\n%*s%sTask ", (int)indent, "", look->colour ? KRAIT_BOLD : "");
    krait_fmt_safe(out, task->name);
    if (task->tid)
        krait_buf_fmt(out, " of thread %d", task->tid);
    krait_buf_fmt(out, "%s  %s\n", look->colour ? KRAIT_PLAIN : "",
                  node->again    ? "is shown above"
                  : task->failed ? "changes too fast to be read; dump it again"
                                 : states[task->state]);
    if (!node->again)
        add_frames(out, process, look, indent + INDENT, task->first, task->count);
}

void dump_text(const struct dump_process *process, const struct krait_table_look *look, struct krait_buf *out)
{
    const struct krait_remote *remote = process->remote;
    KRAIT_AUTO_BUF command = { 0 }, safe = { 0 };
    char threads[KRAIT_FMT_SIZE];
    krait_task_command(&command, remote->pid);
    krait_fmt_safe(&safe, command.data ? command.data : "");
    krait_buf_fmt(out, "Process %d: ", remote->pid);
    uint32_t room = look->width ? look->width - KRAIT_MIN(look->width / 2, 20u) : UINT32_MAX;
    krait_width_command(out, safe.data ? safe.data : "", room, look->utf8);
    krait_buf_fmt(out, "\nPython %s, %s\n", remote->version,
                  krait_fmt_counted(threads, process->stacks->thread_count, "thread"));
    for (uint32_t i = 0; i < process->stacks->thread_count; i++)
        add_thread(out, process, look, &process->stacks->threads[i]);
    for (uint32_t i = 0; i < process->tree->node_count; i++)
        add_task(out, process, look, &process->tree->nodes[i]);
    out->failed |= command.failed || safe.failed;
}
