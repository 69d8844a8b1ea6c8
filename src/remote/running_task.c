/* SPDX-License-Identifier: Apache-2.0
 *
 * From 3.14 on asyncio's C part keeps the task that a thread runs in its thread state (_AsyncioDebug, Modules/_asynciomodule.c).
 * Before, or where that is not known, the stack tells it: the event loop runs each step as the callback of a Handle.
 *
 *     Handle._run(self) ── self._callback ── TaskStepMethWrapper ── task ── its coroutine and its name
 *          │                                 or the method task_wakeup          │
 *          └─ calls ── the frame of that coroutine ─────────────────────────────┘
 *
 * What was found is kept by the coroutine's frame, and read again with one system call: the task at that place still has that
 * coroutine, with that frame, and that name. The thread does not run, and other threads do not change these objects.
 */
#include "remote/running_task.h"

#include "base/clock.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/stack.h"

#include <string.h>

struct fields {
    uint64_t coroutine, name;
};

static bool read_number(const struct krait_remote *remote, uint64_t addr, uint64_t *number)
{
    bool is_read = !krait_memory_read(remote->pid, addr, number, sizeof(*number));
    *number = is_read ? *number & ~KRAIT_REFERENCE_TAGS : 0;
    return is_read;
}

static uint64_t hash_name(const char *bytes, size_t size)
{
    return krait_hash_bytes(bytes + KRAIT_OBJECT_TYPE, size - KRAIT_OBJECT_TYPE); /* without its references */
}

static bool has_frames_inside(const struct krait_remote *remote)
{
    return remote->layout.at[KRAIT_AT_FRAME_GENERATOR] == KRAIT_NOWHERE; /* from 3.11 on */
}

/* Where the frame of a coroutine is in it, or the pointer to it. */
static uint64_t frame_place(const struct krait_remote *remote, uint64_t coroutine)
{
    return coroutine + remote->layout.at[KRAIT_AT_GENERATOR_FRAME];
}

/* -- the callback of the event loop -- */

/* What callbacks that run a step of a task are. */
static const char *const step_types[] = { "TaskStepMethWrapper", "TaskWakeupMethWrapper" /* before 3.10 */,
                                          "builtin_function_or_method" };
enum { OF_METHOD = 2, OF_OTHERS = 3 };
_Static_assert(KRAIT_ARRAY_LEN(step_types) == (size_t)OF_OTHERS && KRAIT_STEP_TYPES == (size_t)OF_OTHERS + 1,
               "of others is the last");

/* Its place there, or OF_OTHERS. Types that were met are known by their address. */
static uint32_t step_type(struct krait_remote *remote, uint64_t callback, uint64_t type)
{
    char text[KRAIT_TYPE_NAME_MAX];
    uint32_t i = 0;
    while (i < OF_OTHERS && remote->step_types[i] != type)
        i++;
    if (i < OF_OTHERS || remote->step_types[OF_OTHERS] == type || !krait_object_type(remote, callback, text))
        return i;
    const char *dot = strrchr(text, '.'); /* _asyncio.TaskStepMethWrapper: 3.12 */
    for (i = 0; i < OF_OTHERS && strcmp(step_types[i], dot ? dot + 1 : text) != 0;)
        i++;
    remote->step_types[i] = type;
    return i;
}

/* The method of a task that a future calls when it is done: PyMethodDef begins with its name. */
static bool is_wakeup(struct krait_remote *remote, uint64_t definition)
{
    static const char wakeup[] = "task_wakeup";
    char text[sizeof(wakeup)] = "";
    uint64_t name = 0;
    if (definition && remote->wakeup_method == definition)
        return true;
    if (krait_memory_read(remote->pid, definition, &name, sizeof(name)) ||
        krait_memory_read(remote->pid, name, text, sizeof(text)) || memcmp(text, wakeup, sizeof(wakeup)) != 0)
        return false;
    remote->wakeup_method = definition;
    return true;
}

uint64_t krait_step_task(struct krait_remote *remote, uint64_t callback)
{
    uint64_t words[4];
    if (!callback || krait_memory_read(remote->pid, callback, words, sizeof(words)))
        return 0;
    uint32_t type = step_type(remote, callback, words[KRAIT_OBJECT_TYPE / sizeof(*words)]);
    if (type < OF_METHOD)
        return words[KRAIT_STEP_TASK / sizeof(*words)];
    bool wakes = type == OF_METHOD && is_wakeup(remote, words[KRAIT_METHOD_DEFINITION / sizeof(*words)]);
    return wakes ? words[KRAIT_METHOD_SELF / sizeof(*words)] : 0;
}

/* The innermost function of the event loop that runs a callback, by its place among the thread's frames; `count`: none. */
static uint32_t find_handle(const struct krait_remote_frame *frames, uint32_t count)
{
    static const char file[] = "/asyncio/events.py";
    uint32_t i = 0;
    for (; i < count; i++) {
        const struct krait_remote_code *code = frames[i].code;
        bool is_run =
            strcmp(code->name, "Handle._run") == 0 || strcmp(code->name, "_run") == 0; /* before 3.11 */
        size_t n = is_run && !code->native ? strlen(code->file) : 0;
        if (n >= sizeof(file) && strcmp(code->file + n - (sizeof(file) - 1), file) == 0)
            break;
    }
    return i;
}

static uint64_t task_of_handle(struct krait_remote *remote, const struct krait_remote_frame *run)
{
    uint64_t handle, callback;
    bool is_read = read_number(remote, run->addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS], &handle) &&
                   handle && read_number(remote, handle + KRAIT_HANDLE_CALLBACK, &callback);
    return is_read ? krait_step_task(remote, callback) : 0;
}

/* -- the task -- */

/* The thread state may hold a task that Python code runs (asyncio.tasks._PyTask), which has nothing of this. */
static bool is_name(const struct krait_remote *remote, uint64_t addr)
{
    char type[KRAIT_TYPE_NAME_MAX];
    return krait_object_type(remote, addr, type) && (strcmp(type, "str") == 0 || strcmp(type, "int") == 0);
}

/* The function of a coroutine whose frame is not known; NULL: it is something else, as Cython's are. */
static const struct krait_remote_code *code_of(struct krait_remote *remote, uint64_t coroutine)
{
    char type[KRAIT_TYPE_NAME_MAX];
    uint64_t code;
    bool is_coroutine = krait_object_type(remote, coroutine, type) && strcmp(type, "coroutine") == 0 &&
                        read_number(remote, coroutine + remote->layout.version->task.code, &code);
    return is_coroutine ? krait_code_read(remote, code) : NULL;
}

/* Reads a task that lies at `addr`. `frame`: of what it runs; NULL: not known. */
static bool read_task(struct krait_remote *remote, struct krait_running_task *task, uint64_t addr,
                      const struct krait_remote_frame *frame)
{
    struct fields fields;
    char bytes[KRAIT_TASK_NAME_BYTES];
    if (krait_memory_read(remote->pid, addr + remote->layout.version->task.coroutine, &fields,
                          sizeof(fields)))
        return false;
    size_t size = krait_task_name_size(remote, fields.name);
    if (krait_memory_read(remote->pid, fields.name, bytes, size))
        return false;
    uint64_t at = frame_place(remote, fields.coroutine);
    bool is_its = frame && (has_frames_inside(remote) || read_number(remote, at, &at)) && at == frame->addr;
    *task = (struct krait_running_task){ .addr = addr,
                                         .coroutine = fields.coroutine,
                                         .text = fields.name,
                                         .seen = hash_name(bytes, size),
                                         .size = (uint32_t)size,
                                         .code = is_its ? frame->code : code_of(remote, fields.coroutine) };
    if (!is_name(remote, fields.name) || (remote->running_task && !task->code))
        return false;
    krait_task_name(remote, task->text, task->name);
    const struct krait_remote_code *code = task->code;
    const uint64_t key[] = { addr, fields.coroutine, code ? code->addr : 0,
                             code ? krait_hash_bytes(code->name, strlen(code->name)) : 0,
                             krait_hash_bytes(task->name, strlen(task->name)) };
    task->key = krait_hash_bytes(key, sizeof(key));
    return true;
}

/* Whether a task that was read before is the one that the thread runs. */
static bool still_runs(const struct krait_remote *remote, const struct krait_running_task *task,
                       const struct krait_remote_state *state, const struct krait_remote_frame *frame)
{
    struct fields fields = { 0 };
    char bytes[KRAIT_TASK_NAME_BYTES];
    uint64_t runs = 0, place = frame_place(remote, task->coroutine);
    struct krait_memory_piece pieces[] = {
        { task->addr + remote->layout.version->task.coroutine, &fields, sizeof(fields) },
        { task->text, bytes, task->size },
        { remote->running_task ? state->addr + remote->running_task : place, &runs, sizeof(runs) },
    };
    bool asks = remote->running_task || !has_frames_inside(remote);
    if ((!frame && !remote->running_task) || (frame && frame->code != task->code))
        return false;
    if (krait_memory_pieces(remote->pid, pieces, KRAIT_ARRAY_LEN(pieces) - !asks) ||
        fields.coroutine != task->coroutine || fields.name != task->text ||
        hash_name(bytes, task->size) != task->seen)
        return false;
    return remote->running_task ? runs == task->addr : (asks ? runs : place) == frame->addr;
}

/* What is kept by an address; made if there is nothing yet. */
static struct krait_running_task *kept_at(struct krait_remote *remote, uint64_t addr)
{
    const uint64_t *known = krait_map_get(&remote->running, addr);
    if (known)
        return (struct krait_running_task *)(uintptr_t)*known;
    struct krait_running_task *made = KRAIT_ARENA_NEW(&remote->arena, struct krait_running_task);
    return made && !krait_map_put(&remote->running, addr, (uintptr_t)made) ? made : NULL;
}

/* The state that runs a task: the innermost that does, where an interpreter has called another one within a step. */
static const struct krait_remote_state *running_state(const struct krait_remote *remote,
                                                      const struct krait_remote_thread *thread)
{
    const struct krait_remote_state *state = thread->states;
    uint64_t task = 0;
    while (remote->running_task && state && state->next &&
           !(read_number(remote, state->addr + remote->running_task, &task) && task))
        state = state->next;
    return state;
}

/* The one that a state runs, `runs` being its Handle's function; 0: none. */
static uint64_t find_task(struct krait_remote *remote, const struct krait_remote_state *state,
                          const struct krait_remote_frame *runs)
{
    uint64_t task = 0;
    if (!remote->running_task)
        return runs ? task_of_handle(remote, runs) : 0;
    return read_number(remote, state->addr + remote->running_task, &task) ? task : 0;
}

void krait_running_task_read(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                             struct krait_remote_thread *thread)
{
    const struct krait_remote_frame *frames = &stacks->frames[thread->first];
    uint32_t run = find_handle(frames, thread->count);
    bool has_run = run < thread->count;
    const struct krait_remote_frame *step = has_run && run ? &frames[run - 1] : NULL;
    const struct krait_remote_state *state = running_state(remote, thread);
    thread->task = NULL;
    if (!state || (!step && !remote->running_task) || (step && step->code == remote->no_step))
        return;
    struct krait_running_task *task = kept_at(remote, step ? step->addr : state->addr);
    if (!task || (task->addr && still_runs(remote, task, state, step))) {
        thread->task = task;
        krait_code_meet(remote, task ? task->code : NULL);
        return;
    }
    uint64_t addr = find_task(remote, state, has_run ? &frames[run] : NULL);
    task->addr = 0;
    thread->task = addr && read_task(remote, task, addr, step) ? task : NULL;
    remote->no_step = step && !addr ? step->code : remote->no_step;
}

void krait_running_tasks_sweep(struct krait_remote *remote)
{
    for (size_t i = 0; i < remote->running.cap; i++) {
        const struct krait_map_slot *slot = &remote->running.slots[i];
        struct krait_running_task *task = slot->used ? (void *)(uintptr_t)slot->value : NULL;
        if (task && task->code && task->code->met != remote->codes.sweeps)
            *task = (struct krait_running_task){ 0 };
    }
}

void krait_running_task_find(struct krait_remote *remote)
{
    struct krait_asyncio_table table;
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    enum { SIZE_MOST = 1 << 20 };
    if (remote->running_task || !remote->layout.version->asyncio_has_table ||
        now - remote->looked_ns < KRAIT_NS_PER_S)
        return;
    remote->looked_ns = now;
    if (!remote->asyncio && krait_find_section(remote, "_asyncio.", ".AsyncioDebug", &remote->asyncio))
        return;
    if (krait_memory_read(remote->pid, remote->asyncio, &table, sizeof(table)) == 0 &&
        table.thread_size <= SIZE_MOST && table.running_task < table.thread_size)
        remote->running_task = (uint32_t)table.running_task;
}
