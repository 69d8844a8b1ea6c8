/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that waits for a lock is in acquire() or __enter__() of it, so the lock is on the innermost function's evaluation
 * stack: as it is, or as what a bound method belongs to.
 *
 * If locks hold semaphores (enum krait_locks), the kernel says for which the thread waits: whatever lies on the stack, the
 * lock is the one with that address. If they hold mutexes, it is the lock that is called, as far as the stack says what is
 * called, if its mutex has waiters.
 */
#include "remote/locks.h"

#include "base/system_calls.h"
#include "remote/holders.h"
#include "remote/memory.h"
#include "remote/object.h"

#include <string.h>

static bool is_kind(const struct krait_remote *remote, uint64_t object, enum krait_lock_kind *kind)
{
    static const struct {
        const char *type;
        enum krait_lock_kind kind;
    } kinds[] = { { "_thread.lock", KRAIT_LOCK_PLAIN }, { "_thread.RLock", KRAIT_LOCK_REENTRANT } };
    char type[KRAIT_TYPE_NAME_MAX];
    if (!krait_object_type(remote, object, type))
        return false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (strcmp(type, kinds[i].type) != 0)
            continue;
        *kind = kinds[i].kind;
        return true;
    }
    return false;
}

static bool read_word(const struct krait_remote *remote, uint64_t addr, uint64_t *word)
{
    return addr % sizeof(void *) == 0 && krait_memory_read(remote->pid, addr, word, sizeof(*word)) == 0;
}

/* -- locks that hold semaphores -- */

/* Whether the lock at `object` has this semaphore. */
static bool has_semaphore(const struct krait_remote *remote, uint64_t object, uint64_t semaphore,
                          struct krait_lock *lock)
{
    uint64_t found = 0;
    if (object < KRAIT_LOCK_STATE || !read_word(remote, object + KRAIT_LOCK_STATE, &found) ||
        found != semaphore || !is_kind(remote, object, &lock->kind))
        return false;
    lock->addr = object;
    return true;
}

/* Slots of the frame: its locals, then its stack. How many there are does not matter: what lies behind them is not
 * believed either. */
static void find_semaphore(const struct krait_remote *remote, uint64_t slots, uint64_t semaphore,
                           struct krait_lock *lock)
{
    enum { SLOTS = 256, LEAST = 16 };
    uint64_t words[SLOTS];
    size_t count = SLOTS;
    while (count >= LEAST && krait_memory_read(remote->pid, slots, words, count * sizeof(*words)))
        count /= 2;
    for (size_t i = 0; count >= LEAST && i < count && !lock->kind; i++) {
        uint64_t bound_to = 0;
        if (!has_semaphore(remote, words[i], semaphore, lock) && words[i] &&
            read_word(remote, words[i] + KRAIT_BUILTIN_SELF, &bound_to))
            has_semaphore(remote, bound_to, semaphore, lock);
    }
}

/* -- locks that hold mutexes -- */

static bool is_acquire(const struct krait_remote *remote, uint64_t object)
{
    static const char *const names[] = { "acquire", "__enter__", "acquire_lock" };
    bool found = false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names) && !found; i++)
        found = krait_object_is_method(remote, object, names[i]);
    return found;
}

static bool has_waiters(const struct krait_remote *remote, uint64_t object)
{
    uint64_t bits = 0;
    return read_word(remote, object + KRAIT_LOCK_STATE, &bits) &&
           (bits & KRAIT_MUTEX_HAS_WAITERS) == KRAIT_MUTEX_HAS_WAITERS;
}

/* acquire(lock, blocking, timeout) lies at the top of the stack. */
static void find_mutex(const struct krait_remote *remote, uint64_t frame, struct krait_lock *lock)
{
    enum { SLOTS = 5 };
    uint64_t top = 0, words[SLOTS];
    if (!read_word(remote, frame + remote->layout.at[KRAIT_AT_FRAME_STACK], &top) || top < sizeof(words) ||
        krait_memory_read(remote->pid, top - sizeof(words), words, sizeof(words)))
        return;
    for (size_t i = SLOTS - 1; i > 0 && !lock->kind; i--) {
        uint64_t object = words[i] & ~KRAIT_REFERENCE_TAGS;
        if (is_acquire(remote, words[i - 1] & ~KRAIT_REFERENCE_TAGS) && has_waiters(remote, object) &&
            is_kind(remote, object, &lock->kind))
            lock->addr = object;
    }
}

/* -- threads -- */

/* The thread that has the lock; the count says whether one has. */
static void find_owner(const struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                       struct krait_lock *lock)
{
    uint64_t owner = 0, count = 1;
    bool counts = remote->layout.version->locks == KRAIT_LOCKS_SEMAPHORE;
    if (!read_word(remote, lock->addr + KRAIT_RLOCK_OWNER, &owner) ||
        (counts && !read_word(remote, lock->addr + KRAIT_RLOCK_COUNT, &count)) || !count)
        return;
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        if (owner && stacks->threads[i].ident == owner)
            lock->owner = stacks->threads[i].tid;
    }
}

static void find_lock(struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                      struct krait_remote_thread *thread)
{
    struct krait_os_task task = { .tid = thread->tid };
    const struct krait_remote_frame *frame = stacks->frames + thread->first, *end = frame + thread->count;
    struct krait_lock lock = { 0 };
    while (frame < end && frame->code->native)
        frame++;
    if (frame == end || !thread->proved)
        return;
    krait_task_read_call(
        &task, remote->pid); /* now: after its stack was read, before it is seen not to have run since */
    const char *call = krait_system_call_name(task.call);
    if (!call || strcmp(call, "futex") != 0)
        return;
    if (remote->layout.version->locks == KRAIT_LOCKS_SEMAPHORE)
        find_semaphore(remote, frame->addr + remote->layout.at[KRAIT_AT_FRAME_LOCALS], task.arg, &lock);
    else
        find_mutex(remote, frame->addr, &lock);
    if (lock.kind == KRAIT_LOCK_REENTRANT)
        find_owner(remote, stacks, &lock);
    if (krait_remote_has_not_run(remote, thread) && lock.owner != thread->tid)
        thread->waits_for = lock;
}

static bool waits_for_plain(const struct krait_remote_thread *thread)
{
    return thread->waits_for.kind == KRAIT_LOCK_PLAIN;
}

/* The one thread that holds a lock; 0: none that is known. Of two, one has released it in the with statement's body. */
static pid_t holder_of(const struct krait_held_list *held, uint64_t lock)
{
    pid_t holder = 0;
    for (uint32_t i = 0; i < held->count; i++) {
        if (held->items[i].lock != lock || held->items[i].tid == holder)
            continue;
        if (holder)
            return 0;
        holder = held->items[i].tid;
    }
    return holder;
}

/* Locks that do not know it themselves. Who still waits has waited all the time while the others were read. */
static void find_holders(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    KRAIT_CLEANUP(krait_held_done) struct krait_held_list held = { 0 };
    uint32_t i = 0;
    while (i < stacks->thread_count && !waits_for_plain(&stacks->threads[i]))
        i++;
    if (i == stacks->thread_count || krait_held_read(remote, stacks, &held))
        return;
    for (; i < stacks->thread_count; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        if (waits_for_plain(thread) && krait_remote_has_not_run(remote, thread))
            thread->waits_for.owner = holder_of(&held, thread->waits_for.addr);
    }
}

/* The thread that a thread waits for; thread_count: none that is known. */
static uint32_t next_of(const struct krait_remote_stacks *stacks, uint32_t i)
{
    pid_t owner = stacks->threads[i].waits_for.owner;
    uint32_t k = owner ? 0 : stacks->thread_count;
    while (k < stacks->thread_count && stacks->threads[k].tid != owner)
        k++;
    return k;
}

/* Each waits for one other, so a thread is in a ring if one comes back to it. */
static bool is_in_ring(const struct krait_remote_stacks *stacks, uint32_t i)
{
    uint32_t at = next_of(stacks, i);
    for (uint32_t steps = 1; at < stacks->thread_count && at != i && steps < stacks->thread_count; steps++)
        at = next_of(stacks, at);
    return at == i;
}

/* Nobody in it has gone on while all of it was read. */
static bool stands_still(struct krait_remote *remote, const struct krait_remote_stacks *stacks, uint32_t i)
{
    bool still = krait_remote_has_not_run(remote, &stacks->threads[i]);
    for (uint32_t at = next_of(stacks, i); at != i && still; at = next_of(stacks, at))
        still = krait_remote_has_not_run(remote, &stacks->threads[at]);
    return still;
}

void krait_remote_read_locks(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        stacks->threads[i].waits_for = (struct krait_lock){ 0 };
        stacks->threads[i].deadlocked = false;
    }
    for (uint32_t i = 0; i < stacks->thread_count; i++)
        find_lock(remote, stacks, &stacks->threads[i]);
    find_holders(remote, stacks);
    for (uint32_t i = 0; i < stacks->thread_count; i++)
        stacks->threads[i].deadlocked = is_in_ring(stacks, i) && stands_still(remote, stacks, i);
}
