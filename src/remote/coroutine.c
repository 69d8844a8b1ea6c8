/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of asyncio. From 3.14 on each thread state heads a ring of the tasks that have not ended, and asyncio's C part holds a
 * table of offsets, _AsyncioDebug (Modules/_asynciomodule.c); before, scheduled.h finds them. A task's coroutine that waits has
 * what it awaits on top of its frame's stack; if that is a coroutine too, it is the next frame.
 *
 * A task that waits does not change, but one whose loop runs may end, and others come to lie at the same addresses. So all that
 * a task was read from is noted, and counts if two copies of all of it, made with one system call, are the same.
 */
#include "remote/coroutine.h"

#include "base/array.h"
#include "remote/awaits.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/scheduled.h"
#include "remote/stack.h"

#include <string.h>

enum { TASKS_MAX = 100000, CHAIN_MAX = 200, TASK_TRIES = 50 };

enum { NOTE_BYTES = 96, NOTES_MAX = 6 * CHAIN_MAX + 3 };

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

/* One coroutine: the bytes of its frame and its state. */
struct suspended {
    struct krait_raw_frame frame;
    int8_t state;
    char bytes[NOTE_BYTES]; /* of its frame */
    size_t from;            /* where they begin in it */
};

static uint64_t field(const struct reading *reading, const struct suspended *from, enum krait_at at,
                      size_t size)
{
    return krait_memory_number(from->bytes + reading->remote->layout.at[at] - from->from, size);
}

/* The part of a frame that is looked at; up to 3.10 its state is there, too. */
static size_t frame_span(const struct krait_remote *remote, size_t *from)
{
    static const enum krait_at used[] = { KRAIT_AT_FRAME_CODE, KRAIT_AT_FRAME_INSTRUCTION, KRAIT_AT_FRAME_TOP,
                                          KRAIT_AT_FRAME_STATE, KRAIT_AT_FRAME_VALUES };
    size_t end = 0;
    *from = SIZE_MAX;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(used); i++) {
        size_t at = remote->layout.at[used[i]];
        if (at == KRAIT_NOWHERE)
            continue;
        *from = KRAIT_MIN(*from, at);
        end = KRAIT_MAX(end, at + sizeof(uint64_t));
    }
    return end - *from;
}

/* Reads the frame at `addr`. */
static int read_frame(struct reading *reading, uint64_t addr, struct suspended *to)
{
    const struct krait_remote *remote = reading->remote;
    size_t size = frame_span(remote, &to->from);
    int rc = size <= sizeof(to->bytes) ? read_noted(reading, addr + to->from, to->bytes, size) : -EAGAIN;
    if (rc)
        return rc;
    uint64_t code = field(reading, to, KRAIT_AT_FRAME_CODE, sizeof(code)) & ~KRAIT_REFERENCE_TAGS;
    uint64_t instruction = field(reading, to, KRAIT_AT_FRAME_INSTRUCTION, sizeof(instruction));
    to->frame =
        (struct krait_raw_frame){ addr, code, krait_frame_offset(remote, instruction, code), true, 0 };
    return 0;
}

/* The frame lies in the coroutine, which then has its state too, or the coroutine points to it. */
static int read_suspended(struct reading *reading, uint64_t generator, struct suspended *to)
{
    const uint32_t *at = reading->remote->layout.at;
    uint64_t frame = generator + at[KRAIT_AT_GENERATOR_FRAME];
    bool is_inside = at[KRAIT_AT_FRAME_GENERATOR] == KRAIT_NOWHERE;
    int rc = is_inside ? 0 : read_noted(reading, frame, &frame, sizeof(frame));
    if (!rc && at[KRAIT_AT_FRAME_STATE] == KRAIT_NOWHERE)
        rc = read_noted(reading, generator + at[KRAIT_AT_GENERATOR_STATE], &to->state, sizeof(to->state));
    rc = rc ? rc : frame ? read_frame(reading, frame, to) : -EAGAIN; /* one that has ended has none */
    if (!rc && at[KRAIT_AT_FRAME_STATE] != KRAIT_NOWHERE)
        to->state = (int8_t)field(reading, to, KRAIT_AT_FRAME_STATE, sizeof(to->state));
    return rc;
}

/* Where the instructions of a code object are; 0: they cannot be read. */
static uint64_t instructions_of(const struct krait_remote *remote, uint64_t code)
{
    const uint32_t *at = remote->layout.at;
    uint64_t bytes = 0;
    if (at[KRAIT_AT_CODE_STRING] == KRAIT_NOWHERE)
        return code + at[KRAIT_AT_CODE_BYTES];
    return read_number(remote, code + at[KRAIT_AT_CODE_STRING], &bytes) ? 0 : bytes + KRAIT_BYTES_DATA;
}

/* Before 3.13 a generator that yields has the same state as one that awaits. */
static bool is_at_await(const struct reading *reading, const struct suspended *from)
{
    const struct krait_await_code *await = &reading->remote->layout.version->await;
    uint8_t next[KRAIT_CODE_UNIT] = { 0 };
    uint64_t code = await->codes[0] ? instructions_of(reading->remote, from->frame.code) : 0;
    if (!await->codes[0])
        return true;
    return code && from->frame.offset >= 0 &&
           !krait_memory_read(reading->remote->pid, code + (uint64_t)from->frame.offset + KRAIT_CODE_UNIT,
                              next, sizeof(next)) &&
           (next[0] == await->codes[0] || next[0] == await->codes[1]) &&
           (next[1] & KRAIT_RESUME_BITS) >= await->least;
}

/* Where its stack ends. */
static uint64_t top_of(const struct reading *reading, const struct suspended *from)
{
    const struct krait_remote *remote = reading->remote;
    enum krait_top top = remote->layout.version->top;
    if (top == KRAIT_TOP_POINTER)
        return field(reading, from, KRAIT_AT_FRAME_TOP, sizeof(uint64_t));
    uint64_t slots = field(reading, from, KRAIT_AT_FRAME_TOP, sizeof(int32_t));
    uint64_t bottom = top == KRAIT_TOP_VALUES ? field(reading, from, KRAIT_AT_FRAME_VALUES, sizeof(bottom))
                                              : from->frame.addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS];
    return bottom + slots * sizeof(uint64_t);
}

/* What it awaits; 0: nothing. */
static int read_awaited(struct reading *reading, const struct suspended *from, uint64_t *awaits)
{
    const struct krait_layout_of *version = reading->remote->layout.version;
    *awaits = 0;
    bool may = from->state == version->states.awaits || from->state == version->states.awaits_too;
    if (!may || !is_at_await(reading, from))
        return 0;
    int rc = read_noted(reading, top_of(reading, from) - version->awaited * sizeof(uint64_t), awaits,
                        sizeof(*awaits));
    *awaits &= ~KRAIT_REFERENCE_TAGS;
    return rc;
}

/* Up to 3.9 the state does not tell a coroutine that has not begun. */
static bool has_not_begun(const struct reading *reading, const struct suspended *from)
{
    return from->state == reading->remote->layout.version->states.created || from->frame.offset < 0;
}

/* -EAGAIN: it has ended. */
static int read_mark(struct reading *reading, const struct krait_task_mark *mark)
{
    uint64_t number = 0;
    int rc = mark->addr ? read_noted(reading, mark->addr, &number, mark->size) : 0;
    return rc || !mark->addr ? rc : !number == mark->is_zero ? 0 : -EAGAIN;
}

/* Its frames; notes what tells them, and its name. */
static int read_chain(struct reading *reading, const struct krait_task_place *place)
{
    uint64_t coroutine = 0;
    int rc = read_mark(reading, &place->mark);
    rc = rc ? rc : read_noted(reading, place->coroutine, &coroutine, sizeof(coroutine));
    uint64_t generator = rc ? 0 : generator_of(reading, coroutine);
    rc = rc || generator ? rc : -EAGAIN;
    for (; generator && !rc && reading->count < CHAIN_MAX; reading->count++) {
        uint64_t awaits = 0;
        struct suspended one = { .state = 0 };
        rc = read_suspended(reading, generator, &one);
        rc = rc ? rc : read_awaited(reading, &one, &awaits);
        reading->frames[reading->count] = one.frame;
        if (!rc && one.state == reading->remote->layout.version->states.runs)
            reading->state = KRAIT_COROUTINE_RUNS;
        else if (!rc && !reading->count && has_not_begun(reading, &one))
            reading->state = KRAIT_COROUTINE_CREATED;
        generator = awaits ? generator_of(reading, awaits) : 0;
    }
    return rc;
}

/* A name does not change, but another comes to lie where it was. It counts if it is the same before and after all notes were
 * confirmed, of which one is where it lies. */
static int read_once(struct reading *reading, const struct krait_task_place *place,
                     char name[KRAIT_TASK_NAME_MAX])
{
    char after[KRAIT_TASK_NAME_MAX];
    uint64_t text = 0;
    int rc = read_noted(reading, place->name, &text, sizeof(text));
    krait_task_name(reading->remote, text, name);
    rc = rc || text ? rc : -EAGAIN; /* it is ending */
    rc = rc ? rc : read_chain(reading, place);
    rc = rc ? rc : confirm(reading);
    if (rc)
        return rc;
    krait_task_name(reading->remote, text, after);
    return strcmp(name, after) == 0 ? 0 : -EAGAIN;
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
                     const struct krait_task_place *place, struct krait_remote_task *task)
{
    KRAIT_AUTO_FREE struct reading *reading = malloc(sizeof(*reading));
    int rc = reading ? -EAGAIN : -ENOMEM;
    for (int i = 0; i < TASK_TRIES && rc == -EAGAIN; i++) {
        reading->remote = remote;
        reading->state = KRAIT_COROUTINE_WAITS;
        reading->count = reading->note_count = 0;
        rc = read_once(reading, place, task->name);
        rc = rc == -EFAULT ? -EAGAIN : rc;
    }
    task->failed = rc == -EAGAIN;
    if (!rc)
        rc = add_task(remote, stacks, reading, task);
    task->failed |= rc == -EAGAIN;
    task->count = task->failed ? 0 : task->count;
    stacks->frame_count += task->count;
    return rc == -EAGAIN ? 0 : rc;
}

/* The tasks of a thread state. -EAGAIN: the ring changed. */
static int list_tasks(const struct krait_remote *remote, const struct krait_asyncio_table *table,
                      const struct krait_remote_state *state, struct krait_task_places *places)
{
    uint64_t node = 0, back = 0, head = state->addr + table->thread_head;
    int rc = read_number(remote, head, &node);
    for (uint32_t count = 0; !rc && node != head && node; count++) {
        if (count == TASKS_MAX)
            return -EAGAIN;
        if (!KRAIT_GROW(places->items, places->cap, places->count + 1))
            return -ENOMEM;
        uint64_t task = node - table->task_node, before = node;
        places->items[places->count++] =
            (struct krait_task_place){ .addr = task,
                                       .coroutine = task + table->task_coro,
                                       .name = task + table->task_name,
                                       /* asyncio takes it out of the ring when it ends */
                                       .mark = { node, sizeof(node), false },
                                       .tid = state->tid };
        rc = read_number(remote, node, &node);
        if (!rc && node)
            rc = read_number(remote, node + sizeof(node), &back);
        if (!rc && back != before)
            rc = -EAGAIN;
    }
    return rc == -EFAULT ? -EAGAIN : rc;
}

static int list_rings(const struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                      const struct krait_asyncio_table *table, struct krait_task_places *places)
{
    int rc = 0;
    for (uint32_t i = 0; i < stacks->state_count && !rc; i++) {
        uint32_t begin = places->count;
        rc = -EAGAIN;
        for (int k = 0; k < TASK_TRIES && rc == -EAGAIN; k++) {
            places->count = begin;
            rc = list_tasks(remote, table, &stacks->states[i], places);
        }
        rc = rc == -EAGAIN ? 0 : rc;
    }
    return rc;
}

static int find_table(struct krait_remote *remote, struct krait_asyncio_table *table)
{
    enum { SIZE_MOST = 1 << 20 };
    int rc = remote->asyncio ? 0 : krait_find_section(remote, "_asyncio.", ".AsyncioDebug", &remote->asyncio);
    if (!rc)
        rc = krait_memory_read(remote->pid, remote->asyncio, table, sizeof(*table));
    bool makes_sense = !rc && table->task_size <= SIZE_MOST && table->thread_size <= SIZE_MOST &&
                       table->thread_head <= table->thread_size;
    return rc || makes_sense ? rc : -ENOTSUP;
}

int krait_remote_read_tasks(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    KRAIT_CLEANUP(krait_task_places_done) struct krait_task_places places = { 0 };
    struct krait_asyncio_table table;
    bool has_table = remote->layout.version->asyncio_has_table;
    stacks->coroutine_count = 0;
    int rc = has_table ? find_table(remote, &table) : krait_scheduled_read(remote, stacks, &places);
    if (!rc && has_table)
        rc = list_rings(remote, stacks, &table, &places);
    for (uint32_t i = 0; i < places.count && !rc; i++) {
        if (!KRAIT_GROW(stacks->coroutines, stacks->coroutine_cap, stacks->coroutine_count + 1))
            return -ENOMEM;
        struct krait_remote_task *task = &stacks->coroutines[stacks->coroutine_count++];
        *task = (struct krait_remote_task){ .addr = places.items[i].addr, .tid = places.items[i].tid };
        rc = read_task(remote, stacks, &places.items[i], task);
    }
    return rc ? rc : krait_awaits_read(remote, has_table ? &table : NULL, stacks);
}
