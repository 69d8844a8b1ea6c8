/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of asyncio. From 3.14 on each thread state heads a ring of the tasks that have not ended, and asyncio's C part holds a
 * table of offsets, _AsyncioDebug (Modules/_asynciomodule.c). A task's coroutine that waits has what it awaits on top of its
 * frame's stack; if that is a coroutine too, it is the next frame.
 *
 * A task that waits does not change, but one whose loop runs may end, and others come to lie at the same addresses. So all that
 * a task was read from is noted, and counts if two copies of all of it, made with one system call, are the same.
 */
#include "base/array.h"
#include "remote/awaits.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/stack.h"

#include <string.h>

enum { TASKS_MAX = 100000, CHAIN_MAX = 200, TASK_TRIES = 50 };

enum { NOTE_BYTES = 96, NOTES_MAX = 3 * CHAIN_MAX + 1 };

/* What was read, and where. */
struct note {
    uint64_t addr;
    size_t size;
    char bytes[NOTE_BYTES];
};

/* One reading of a task. */
struct reading {
    const struct krait_remote *remote;
    enum krait_coroutine_state state;
    uint32_t count;
    struct krait_raw_frame frames[CHAIN_MAX]; /* outermost first */
    uint32_t note_count;
    struct note notes[NOTES_MAX];
};

static int read_number(const struct krait_remote *remote, uint64_t addr, uint64_t *number)
{
    return krait_memory_read(remote->pid, addr, number, sizeof(*number));
}

/* Reads and notes. */
static int read_noted(struct reading *reading, uint64_t addr, void *to, size_t size)
{
    if (reading->note_count == NOTES_MAX || size > NOTE_BYTES)
        return -EAGAIN;
    struct note *note = &reading->notes[reading->note_count++];
    int rc = krait_memory_read(reading->remote->pid, addr, note->bytes, size);
    note->addr = addr;
    note->size = size;
    memcpy(to, note->bytes, size);
    return rc;
}

/* Whether all that was noted is there, twice. */
static int confirm(const struct reading *reading)
{
    enum { COPIES = 2 };
    size_t count = COPIES * reading->note_count;
    KRAIT_AUTO_FREE struct krait_memory_piece *pieces = calloc(count, sizeof(*pieces));
    KRAIT_AUTO_FREE char *bytes = malloc(count * NOTE_BYTES);
    if (!pieces || !bytes)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct note *note = &reading->notes[i % reading->note_count];
        pieces[i] = (struct krait_memory_piece){ note->addr, bytes + i * NOTE_BYTES, note->size };
    }
    int rc = krait_memory_pieces(reading->remote->pid, pieces, count);
    for (size_t i = 0; i < count && !rc; i++) {
        const struct note *note = &reading->notes[i % reading->note_count];
        rc = memcmp(note->bytes, bytes + i * NOTE_BYTES, note->size) == 0 ? 0 : -EAGAIN;
    }
    return rc;
}

/* What an awaitable runs: itself, or what the object of await and of an asynchronous generator's methods wraps (both have it
 * first: PyCoroWrapper, PyAsyncGenASend in Objects/genobject.c). 0 if it is no generator of any kind. */
static uint64_t generator_of(struct reading *reading, uint64_t object)
{
    static const struct {
        const char *type;
        bool wraps;
    } types[] = { { "coroutine", false },
                  { "generator", false },
                  { "async_generator", false },
                  { "coroutine_wrapper", true },
                  { "async_generator_asend", true },
                  { "async_generator_athrow", true } };
    char type[64];
    if (!krait_object_type(reading->remote, object, type))
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].type, type) == 0)
            return !types[i].wraps || !read_noted(reading, object + KRAIT_WRAPPED, &object, sizeof(object))
                       ? object
                       : 0;
    }
    return 0;
}

/* Reads one coroutine's frame, and what it awaits; 0: none. */
static int read_frame(struct reading *reading, uint64_t generator, struct krait_raw_frame *frame,
                      int8_t *state, uint64_t *awaits)
{
    const struct krait_layout *layout = &reading->remote->layout;
    const uint32_t *at = layout->at;
    char bytes[NOTE_BYTES] = { 0 };
    size_t begin = at[KRAIT_AT_GENERATOR_STATE], in = at[KRAIT_AT_GENERATOR_FRAME] - begin;
    size_t size = in + at[KRAIT_AT_FRAME_STACK] + sizeof(uint64_t);
    int rc = size <= sizeof(bytes) ? read_noted(reading, generator + begin, bytes, size) : -EAGAIN;
    if (rc)
        return rc;
    uint64_t code = krait_memory_number(bytes + in + at[KRAIT_AT_FRAME_CODE], 8) & ~KRAIT_REFERENCE_TAGS;
    uint64_t instruction = krait_memory_number(bytes + in + at[KRAIT_AT_FRAME_INSTRUCTION], 8);
    uint64_t stack = krait_memory_number(bytes + in + at[KRAIT_AT_FRAME_STACK], 8);
    *frame = (struct krait_raw_frame){ generator + at[KRAIT_AT_GENERATOR_FRAME], code,
                                       (int64_t)(instruction - code - at[KRAIT_AT_CODE_BYTES]), true, 0 };
    *state = (int8_t)bytes[0];
    *awaits = 0;
    if (*state == layout->version->states.awaits || *state == layout->version->states.awaits_too)
        rc =
            read_noted(reading, stack - layout->version->awaited * sizeof(uint64_t), awaits, sizeof(*awaits));
    *awaits &= ~KRAIT_REFERENCE_TAGS;
    return rc;
}

static int read_chain(struct reading *reading, uint64_t task_coro)
{
    uint64_t coroutine = 0;
    int rc = read_noted(reading, task_coro, &coroutine, sizeof(coroutine));
    uint64_t generator = rc ? 0 : generator_of(reading, coroutine);
    rc = rc || generator ? rc : -EAGAIN;
    for (; generator && !rc && reading->count < CHAIN_MAX; reading->count++) {
        uint64_t awaits = 0;
        int8_t state = 0;
        rc = read_frame(reading, generator, &reading->frames[reading->count], &state, &awaits);
        if (!rc && state == reading->remote->layout.version->states.runs)
            reading->state = KRAIT_COROUTINE_RUNS;
        else if (!rc && !reading->count && state == reading->remote->layout.version->states.created)
            reading->state = KRAIT_COROUTINE_CREATED;
        generator = awaits ? generator_of(reading, awaits) : 0;
    }
    return rc ? rc : confirm(reading);
}

static int add_task(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                    const struct reading *reading, struct krait_remote_task *task)
{
    task->first = stacks->frame_count;
    task->state = reading->state;
    if (!KRAIT_GROW(stacks->frames, stacks->frame_cap, stacks->frame_count + reading->count))
        return -ENOMEM;
    for (uint32_t i = reading->count; i > 0; i--) {
        if (!krait_frame_make(remote, &reading->frames[i - 1], &stacks->frames[task->first + task->count]))
            return -EAGAIN;
        task->count++;
    }
    return 0;
}

/* Reads one task. One that runs has its frames in its thread's stack, too. */
static int read_task(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                     const struct krait_asyncio_table *table, struct krait_remote_task *task)
{
    KRAIT_AUTO_BUF name = { 0 };
    KRAIT_AUTO_FREE struct reading *reading = malloc(sizeof(*reading));
    uint64_t text = 0;
    int rc = reading ? -EAGAIN : -ENOMEM;
    for (int i = 0; i < TASK_TRIES && rc == -EAGAIN; i++) {
        reading->remote = remote;
        reading->state = KRAIT_COROUTINE_WAITS;
        reading->count = reading->note_count = 0;
        rc = read_chain(reading, task->addr + table->task_coro);
        rc = rc == -EFAULT ? -EAGAIN : rc;
    }
    task->failed = rc == -EAGAIN;
    if (!rc)
        rc = add_task(remote, stacks, reading, task);
    if (!read_number(remote, task->addr + table->task_name, &text) &&
        krait_object_text(remote, text, sizeof(task->name) / 4 - 1, &name) < 0) {
        krait_buf_str(&name, "Task-"); /* a number until somebody asks for the name */
        krait_object_show(remote, text, &name);
    }
    snprintf(task->name, sizeof(task->name), "%s", name.data ? name.data : "?");
    task->failed |= rc == -EAGAIN;
    task->count = task->failed ? 0 : task->count;
    stacks->frame_count += task->count;
    return rc == -EAGAIN ? 0 : rc;
}

/* The addresses of a thread's tasks. -EAGAIN: the ring changed. */
static int list_tasks(const struct krait_remote *remote, const struct krait_asyncio_table *table,
                      uint64_t head, uint64_t **tasks, uint32_t *cap, uint32_t *count)
{
    uint64_t node = 0, back = 0;
    int rc = read_number(remote, head, &node);
    *count = 0;
    while (!rc && node != head && node) {
        if (*count == TASKS_MAX)
            return -EAGAIN;
        if (!KRAIT_GROW(*tasks, *cap, *count + 1))
            return -ENOMEM;
        (*tasks)[(*count)++] = node - table->task_node;
        uint64_t before = node;
        rc = read_number(remote, node, &node);
        if (!rc && node)
            rc = read_number(remote, node + sizeof(node), &back);
        if (!rc && back != before)
            rc = -EAGAIN;
    }
    return rc == -EFAULT ? -EAGAIN : rc;
}

static int add_thread(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      const struct krait_asyncio_table *table, const struct krait_remote_thread *thread)
{
    KRAIT_AUTO_FREE uint64_t *tasks = NULL;
    uint32_t cap = 0, count = 0;
    int rc = -EAGAIN;
    for (int i = 0; i < TASK_TRIES && rc == -EAGAIN; i++)
        rc = list_tasks(remote, table, thread->addr + table->thread_head, &tasks, &cap, &count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        if (!KRAIT_GROW(stacks->coroutines, stacks->coroutine_cap, stacks->coroutine_count + 1))
            return -ENOMEM;
        struct krait_remote_task *task = &stacks->coroutines[stacks->coroutine_count++];
        *task = (struct krait_remote_task){ .addr = tasks[i], .tid = thread->tid };
        rc = read_task(remote, stacks, table, task);
    }
    return rc == -EAGAIN ? 0 : rc;
}

int krait_remote_read_tasks(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    struct krait_asyncio_table table;
    enum { SIZE_MOST = 1 << 20 };
    stacks->coroutine_count = 0;
    if (remote->layout.at[KRAIT_AT_GENERATOR_FRAME] == KRAIT_NOWHERE)
        return -ENOTSUP;
    int rc = remote->asyncio ? 0 : krait_find_section(remote, "_asyncio.", ".AsyncioDebug", &remote->asyncio);
    if (!rc)
        rc = krait_memory_read(remote->pid, remote->asyncio, &table, sizeof(table));
    if (!rc && (table.task_size > SIZE_MOST || table.thread_size > SIZE_MOST ||
                table.thread_head > table.thread_size))
        return -ENOTSUP;
    for (uint32_t i = 0; i < stacks->thread_count && !rc; i++)
        rc = add_thread(remote, stacks, &table, &stacks->threads[i]);
    return rc ? rc : krait_awaits_read(remote, &table, stacks);
}
