/* SPDX-License-Identifier: Apache-2.0
 *
 * While the body of `with lock:` runs, the frame's stack has lock.__exit__: up to 3.13 as a bound method, from 3.14 on as
 * the method with the lock above it.
 *
 *     3.13   ... | bound __exit__ | ...          3.14   ... | __exit__ | lock | ...
 *
 * What lies above the top of a stack is left from earlier, and a frame that runs keeps its top in a register. So only those
 * slots count that an exception would leave there now: up to 3.10 below the level of the innermost block, then below the depth
 * in the exception table (InternalDocs/exception_handling.md). The block of a with statement begins when __enter__ has
 * returned: a thread that still waits for the lock does not hold it.
 */
#include "remote/holders.h"

#include "base/array.h"
#include "python/compat/exceptions.h"
#include "remote/lookup.h"
#include "remote/memory.h"
#include "remote/object.h"
#include "remote/stack.h"

#include <string.h>
#include <time.h>

enum { SLOTS_MAX = 256, TABLE_MAX = 1 << 20 };

/* A frame's stack, from its bottom. */
struct slots {
    uint64_t at; /* its address */
    uint32_t count;
    uint64_t words[SLOTS_MAX];
};

static int read_word(const struct krait_remote *remote, uint64_t addr, uint64_t *word)
{
    return krait_memory_read(remote->pid, addr, word, sizeof(*word));
}

/* -- which slots count -- */

/* Up to 3.10: the blocks lie in the frame. */
static bool find_by_blocks(const struct krait_remote *remote, uint64_t frame, struct slots *slots)
{
    int32_t count = 0, level = 0;
    uint64_t blocks = frame + remote->layout.at[KRAIT_AT_FRAME_BLOCKS];
    if (krait_memory_read(remote->pid, blocks, &count, sizeof(count)) || count < 1 ||
        count > KRAIT_BLOCKS_MAX ||
        krait_memory_read(remote->pid,
                          blocks + KRAIT_BLOCKS_FIRST + (uint64_t)(count - 1) * KRAIT_BLOCK_SIZE +
                              KRAIT_BLOCK_LEVEL,
                          &level, sizeof(level)) ||
        read_word(remote, frame + remote->layout.at[KRAIT_AT_FRAME_VALUES], &slots->at))
        return false;
    slots->count = level > 0 ? (uint32_t)level : 0;
    return true;
}

/* From 3.11 on. */
static bool find_by_table(const struct krait_remote *remote, const struct krait_raw_frame *frame,
                          struct slots *slots)
{
    const uint32_t *at = remote->layout.at;
    uint64_t table = 0, size = 0, names = 0, locals = 0;
    if (frame->offset < 0 || read_word(remote, frame->code + at[KRAIT_AT_CODE_EXCEPTIONS], &table) ||
        read_word(remote, table + KRAIT_OBJECT_SIZE, &size) || !size || size > TABLE_MAX ||
        read_word(remote, frame->code + at[KRAIT_AT_CODE_LOCALS], &names) ||
        read_word(remote, names + KRAIT_OBJECT_SIZE, &locals))
        return false;
    KRAIT_AUTO_FREE uint8_t *bytes = malloc(size);
    if (!bytes || krait_memory_read(remote->pid, table + KRAIT_BYTES_DATA, bytes, size))
        return false;
    slots->count = krait_exception_depth(bytes, size, frame->offset);
    slots->at = frame->addr + at[KRAIT_AT_FRAME_LOCALS] + locals * sizeof(uint64_t);
    return true;
}

/* False: no slot of the frame counts. */
static bool read_slots(const struct krait_remote *remote, const struct krait_raw_frame *frame,
                       struct slots *slots)
{
    bool found = remote->layout.at[KRAIT_AT_FRAME_BLOCKS] != KRAIT_NOWHERE
                     ? find_by_blocks(remote, frame->addr, slots)
                     : find_by_table(remote, frame, slots);
    slots->count = found ? KRAIT_MIN(slots->count, (uint32_t)SLOTS_MAX) : 0;
    return slots->count &&
           !krait_memory_read(remote->pid, slots->at, slots->words, slots->count * sizeof(*slots->words));
}

/* -- what they hold -- */

static bool is_lock(const struct krait_remote *remote, uint64_t object)
{
    char type[KRAIT_TYPE_NAME_MAX];
    return object && krait_object_type(remote, object, type) && strcmp(type, "_thread.lock") == 0;
}

/* The lock whose __exit__ slot i is; 0: none's. */
static uint64_t lock_of(const struct krait_remote *remote, const struct slots *slots, uint32_t i)
{
    static const char name[] = "__exit__";
    uint64_t object = slots->words[i] & ~KRAIT_REFERENCE_TAGS;
    uint64_t above = i + 1 < slots->count ? slots->words[i + 1] & ~KRAIT_REFERENCE_TAGS : 0;
    uint64_t lock = above && krait_object_is_method(remote, object, name)
                        ? above
                        : krait_object_bound_to(remote, object, name);
    return is_lock(remote, lock) ? lock : 0;
}

/* Whether the function calls release(), or another function whose name begins so: the body of its with statement may have
 * released the lock. */
static bool may_release(const struct krait_remote *remote, uint64_t code)
{
    static const char name[] = "release";
    enum { NAMES_MAX = 1 << 12 };
    uint64_t names = 0, count = 0;
    if (read_word(remote, code + remote->layout.at[KRAIT_AT_CODE_NAMES], &names) ||
        read_word(remote, names + KRAIT_OBJECT_SIZE, &count) || count > NAMES_MAX)
        return true;
    bool found = false;
    for (uint64_t i = 0; i < count && !found; i++) {
        KRAIT_AUTO_BUF text = { 0 };
        uint64_t object = 0;
        uint64_t item = names + remote->layout.at[KRAIT_AT_TUPLE_ITEMS] + i * sizeof(object);
        found = read_word(remote, item, &object) ||
                krait_object_text(remote, object, sizeof(name) - 1, &text) < 0 || text.failed ||
                (text.data && strcmp(text.data, name) == 0);
    }
    return found;
}

/* `released`: a lock that does not count; 0: none. */
static int add_held(const struct krait_remote *remote, const struct krait_raw_frame *frame, uint64_t released,
                    pid_t tid, struct krait_held_list *held)
{
    struct slots slots = { 0 };
    uint32_t count = read_slots(remote, frame, &slots) ? slots.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t lock = lock_of(remote, &slots, i);
        if (!lock || lock == released)
            continue;
        if (may_release(remote, frame->code))
            return 0;
        if (!KRAIT_GROW(held->items, held->cap, held->count + 1))
            return -ENOMEM;
        held->items[held->count++] = (struct krait_held){ lock, tid };
    }
    return 0;
}

/* -- the lock of a Condition -- */

static bool is_in_wait(struct krait_remote *remote, const struct krait_raw_frame *frame)
{
    const struct krait_remote_code *code = krait_code_read(remote, frame->code);
    const char *file = code ? strrchr(code->file, '/') : NULL;
    return file && strcmp(file, "/threading.py") == 0 &&
           (strcmp(code->name, "Condition.wait") == 0 || strcmp(code->name, "wait") == 0); /* before 3.11 */
}

/* Condition.wait(self) releases self._lock, in a with statement of whoever calls it, and takes it back: it waits itself, or in a
 * method that it calls. Returns false if the thread is in there, but which lock that is cannot be read. */
static bool find_released(struct krait_remote *remote, const struct krait_stack_reader *reader,
                          uint64_t *released)
{
    enum { WAIT_DEPTH = 2 };
    uint32_t i = 0, count = KRAIT_MIN(reader->count, (uint32_t)WAIT_DEPTH);
    *released = 0;
    while (i < count && !is_in_wait(remote, &reader->frames[i]))
        i++;
    if (i == count)
        return true;
    uint64_t self =
        krait_pointer_at(remote, reader->frames[i].addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS]);
    *released =
        krait_pointer_at(remote, krait_attribute_place(remote, self & ~KRAIT_REFERENCE_TAGS, "_lock"));
    return *released;
}

/* What a thread holds that stands still. */
static int add_all_held(struct krait_remote *remote, const struct krait_stack_reader *reader, pid_t tid,
                        struct krait_held_list *held)
{
    uint64_t released;
    bool is_known = find_released(remote, reader, &released);
    int rc = 0;
    for (uint32_t i = 0; i < reader->count && !rc && is_known; i++)
        rc = add_held(remote, &reader->frames[i], released, tid, held);
    return rc;
}

static int read_state(struct krait_remote *remote, struct krait_stack_reader *reader,
                      const struct krait_remote_state *state, struct krait_held_list *held)
{
    enum { TRIES = 20, NAP_NS = 50 * KRAIT_NS_PER_US };
    struct krait_stack_places places = { 0 };
    uint32_t before = held->count;
    int rc = state->tid ? -EAGAIN : 0;
    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        if (i)
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        held->count = before;
        rc = krait_still_begin(&remote->still, remote->pid, state->tid);
        if (!rc)
            rc = krait_stack_copy(remote, reader, state->addr, &places);
        if (!rc)
            rc = add_all_held(remote, reader, state->tid, held);
        if (!rc && !krait_still_end(&remote->still))
            rc = -EAGAIN;
    }
    held->count = rc ? before : held->count;
    return rc == -ENOMEM ? rc : 0;
}

int krait_held_read(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                    struct krait_held_list *held)
{
    KRAIT_CLEANUP(krait_stack_reader_done) struct krait_stack_reader reader = { 0 };
    int rc = 0;
    for (uint32_t i = 0; i < stacks->state_count && !rc; i++)
        rc = read_state(remote, &reader, &stacks->states[i], held);
    krait_still_leave(&remote->still);
    return rc;
}
