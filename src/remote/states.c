/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/states.h"

#include "base/array.h"
#include "remote/memory.h"
#include "remote/nested.h"

#include <time.h>

enum { INTERPRETERS_MAX = 1024, STATES_MAX = 65536, PTHREAD_BYTES = 1024 };

static int read_field(const struct krait_remote *remote, uint64_t of, enum krait_at at, uint64_t *value)
{
    return krait_memory_read(remote->pid, of + remote->layout.at[at], value, sizeof(*value));
}

/* Reads the first item of a list, and notes it: what is new is put there. */
static int read_first(const struct krait_remote *remote, struct krait_remote_stacks *stacks, uint64_t of,
                      enum krait_at at, uint64_t *first)
{
    int rc = read_field(remote, of, at, first);
    if (rc)
        return rc;
    if (!KRAIT_GROW(stacks->firsts, stacks->first_cap, stacks->first_count + 1))
        return -ENOMEM;
    stacks->firsts[stacks->first_count++] = (struct krait_remote_first){ of + remote->layout.at[at], *first };
    return 0;
}

/* -- the GIL and the collector -- */

/* The state that holds the GIL; 0: none does. */
static uint64_t gil_holder(const struct krait_remote *remote, uint64_t gil)
{
    char bytes[KRAIT_GIL_LOCKED + sizeof(int32_t)];
    if (krait_memory_read(remote->pid, gil, bytes, sizeof(bytes)))
        return 0;
    int32_t locked = (int32_t)krait_memory_number(bytes + KRAIT_GIL_LOCKED, sizeof(locked));
    return locked > 0 ? krait_memory_number(bytes + KRAIT_GIL_HOLDER, sizeof(uint64_t)) : 0;
}

static int find_gil(const struct krait_remote *remote, uint64_t interp, uint64_t *gil)
{
    *gil = remote->runtime + remote->layout.at[KRAIT_AT_GIL];
    return remote->layout.version->gil_in_runtime ? 0 : read_field(remote, interp, KRAIT_AT_GIL, gil);
}

static uint64_t find_gc(const struct krait_remote *remote, uint64_t interp)
{
    uint64_t gc = remote->layout.version->gc_in_runtime ? remote->runtime : interp;
    return gc + remote->layout.at[KRAIT_AT_GC] + remote->layout.at[KRAIT_AT_GC_COLLECTING];
}

static int read_collects(const struct krait_remote *remote, uint64_t gc, bool *collects)
{
    uint32_t flag = 0;
    int rc = krait_memory_read(remote->pid, gc, &flag, sizeof(flag));
    *collects |= flag == 1;
    return rc;
}

/* States of one interpreter follow each other. */
int krait_states_look_at_gil(const struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    uint64_t holder = 0, of = 0;
    int rc = 0;
    stacks->collects = false;
    for (uint32_t i = 0; i < stacks->thread_count; i++)
        stacks->threads[i].holds_gil = false;
    for (uint32_t i = 0; i < stacks->state_count && !rc; i++) {
        struct krait_remote_state *state = &stacks->states[i];
        if (state->interp != of) {
            of = state->interp;
            holder = state->gil ? gil_holder(remote, state->gil) : 0;
            rc = read_collects(remote, state->gc, &stacks->collects);
        }
        state->holds_gil = holder && state->addr == holder;
        if (state->thread != KRAIT_NO_ID)
            stacks->threads[state->thread].holds_gil |= state->holds_gil;
    }
    return rc;
}

/* -- which states there are -- */

/* One state, and the address of the next. -EAGAIN: it is none, or not one of this interpreter. */
static int read_state(const struct krait_remote *remote, struct krait_remote_state *state, uint64_t *next)
{
    static const enum krait_at fields[] = { KRAIT_AT_THREAD_ID, KRAIT_AT_THREAD_NEXT, KRAIT_AT_THREAD_INTERP,
                                            KRAIT_AT_THREAD_NATIVE };
    enum { FIELDS = KRAIT_ARRAY_LEN(fields) };
    uint64_t values[FIELDS] = { 0 };
    struct krait_memory_piece pieces[FIELDS];
    size_t count = 0;
    for (size_t i = 0; i < FIELDS; i++) {
        uint32_t at = remote->layout.at[fields[i]];
        if (at != KRAIT_NOWHERE)
            pieces[count++] = (struct krait_memory_piece){ state->addr + at, &values[i], sizeof(values[i]) };
    }
    int rc = krait_memory_pieces(remote->pid, pieces, count);
    state->ident = values[0];
    *next = values[1];
    state->tid = (pid_t)values[3];
    return rc == -EFAULT || (!rc && values[2] != state->interp) ? -EAGAIN : rc;
}

static int add_states(const struct krait_remote *remote, struct krait_remote_stacks *stacks, uint64_t interp,
                      uint64_t *id)
{
    struct krait_remote_state of = { .interp = interp, .gc = find_gc(remote, interp) };
    uint64_t next = 0;
    int rc = read_field(remote, interp, KRAIT_AT_INTERP_ID, &of.interp_id);
    *id = of.interp_id;
    if (!rc)
        rc = read_collects(remote, of.gc, &stacks->collects);
    if (!rc)
        rc = find_gil(remote, interp, &of.gil);
    uint64_t holder = of.gil ? gil_holder(remote, of.gil) : 0;
    if (!rc)
        rc = read_first(remote, stacks, interp, KRAIT_AT_INTERP_THREADS, &next);
    while (!rc && next && stacks->state_count < STATES_MAX) {
        struct krait_remote_state state = of;
        state.addr = next;
        state.holds_gil = next == holder;
        rc = read_state(remote, &state, &next);
        if (!KRAIT_GROW(stacks->states, stacks->state_cap, stacks->state_count + 1))
            return -ENOMEM;
        if (!rc)
            stacks->states[stacks->state_count++] = state;
    }
    return rc;
}

/* -EAGAIN or -EFAULT: it has changed meanwhile. The main interpreter comes last: a list without it led through one that has
 * ended. */
static int list_once(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    uint64_t interp = 0, id = 0;
    stacks->state_count = stacks->first_count = 0;
    stacks->collects = false;
    int rc = read_first(remote, stacks, remote->runtime, KRAIT_AT_INTERPRETERS, &interp);
    for (unsigned i = 0; !rc && interp && i < INTERPRETERS_MAX; i++) {
        remote->nests |= i > 0;
        rc = add_states(remote, stacks, interp, &id);
        if (!rc)
            rc = read_field(remote, interp, KRAIT_AT_INTERP_NEXT, &interp);
    }
    return rc || !id ? rc : -EAGAIN;
}

static uint64_t hash_states(const struct krait_remote_stacks *stacks)
{
    uint64_t hash = stacks->state_count;
    for (uint32_t i = 0; i < stacks->state_count; i++)
        hash = krait_hash_u64(hash ^ stacks->states[i].addr);
    return hash;
}

/* The lists change while they are read: threads begin and end. They count if they are the same twice in a row. */
static int list_states(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    enum { LIST_TRIES = 200, LIST_TRIES_A_NAP = 10 };
    uint64_t before = 0, hash = 0;
    int rc = -EAGAIN;
    bool again = true;
    for (int i = 1; i <= LIST_TRIES && again; i++) {
        before = hash;
        rc = list_once(remote, stacks);
        hash = rc ? 0 : hash_states(stacks);
        again = rc == -EAGAIN || rc == -EFAULT || (!rc && hash != before);
        if (rc && again && i % LIST_TRIES_A_NAP == 0) /* the thread that changes it may have lost its CPU */
            nanosleep(&(struct timespec){ .tv_nsec = 200 * KRAIT_NS_PER_US }, NULL);
    }
    for (uint32_t i = 0; i < stacks->state_count / 2; i++) { /* the newest comes first there */
        struct krait_remote_state *a = &stacks->states[i];
        struct krait_remote_state *b = &stacks->states[stacks->state_count - 1 - i], swapped = *a;
        *a = *b;
        *b = swapped;
    }
    return rc == -EAGAIN ? 0 : rc; /* what was found last */
}

bool krait_states_changed(const struct krait_remote *remote, const struct krait_remote_stacks *stacks)
{
    uint32_t count = remote->nests ? stacks->first_count : 0;
    if (!count)
        return false;
    KRAIT_AUTO_FREE uint64_t *values = calloc(count, sizeof(*values));
    KRAIT_AUTO_FREE struct krait_memory_piece *pieces = calloc(count, sizeof(*pieces));
    for (uint32_t i = 0; i < count && values && pieces; i++)
        pieces[i] = (struct krait_memory_piece){ stacks->firsts[i].addr, &values[i], sizeof(*values) };
    if (!values || !pieces || krait_memory_pieces(remote->pid, pieces, count))
        return true;
    uint32_t i = 0;
    while (i < count && values[i] == stacks->firsts[i].first)
        i++;
    return i < count;
}

bool krait_remote_has_interpreter(const struct krait_remote *remote)
{
    uint64_t interp = 0, state = 0;
    return read_field(remote, remote->runtime, KRAIT_AT_INTERPRETERS, &interp) == 0 && interp &&
           read_field(remote, interp, KRAIT_AT_INTERP_THREADS, &state) == 0 && state;
}

/* -- the kernel's numbers -- */

static const struct krait_os_task *task_of(const struct krait_os_tasks *tasks, uint32_t inner)
{
    for (uint32_t i = 0; i < tasks->count; i++) {
        if (inner && (uint32_t)tasks->items[i].inner == inner)
            return &tasks->items[i];
    }
    return NULL;
}

/* Before 3.11 Python does not keep the number. An ident is the address of the C library's struct pthread, which holds it
 * (nptl/descr.h of glibc, pthread_impl.h of musl): at the offset where most states have a number of the process's. Some threads may
 * have ended. */
static uint32_t find_tid_offset(const struct krait_remote *remote, const struct krait_remote_stacks *stacks)
{
    uint32_t fits[PTHREAD_BYTES / 4] = { 0 }, best = 0;
    for (uint32_t i = 0; i < stacks->state_count; i++) {
        char bytes[PTHREAD_BYTES];
        if (krait_memory_read(remote->pid, stacks->states[i].ident, bytes, sizeof(bytes)))
            continue;
        for (uint32_t k = 0; k < KRAIT_ARRAY_LEN(fits); k++)
            fits[k] += task_of(&stacks->tasks, (uint32_t)krait_memory_number(bytes + 4 * k, 4)) != NULL;
    }
    for (uint32_t k = 1; k < KRAIT_ARRAY_LEN(fits); k++)
        best = fits[k] > fits[best] ? k : best;
    return fits[best] ? 4 * best : 0;
}

/* The number that the kernel has for the thread of a state; 0: not known, or the thread has ended. */
static pid_t number_of(const struct krait_remote *remote, const struct krait_os_tasks *tasks,
                       const struct krait_remote_state *state)
{
    uint32_t inner = (uint32_t)state->tid;
    if (remote->layout.at[KRAIT_AT_THREAD_NATIVE] == KRAIT_NOWHERE && remote->tid_offset)
        krait_memory_read(remote->pid, state->ident + remote->tid_offset, &inner, sizeof(inner));
    const struct krait_os_task *task = task_of(tasks, inner);
    if (!task && inner && tasks->count == 1) /* after a fork the number may be of the parent's thread */
        task = &tasks->items[0];
    return task ? task->tid : 0;
}

/* Whether the thread of state i has begun. A new thread's state has the number of the thread that made it, or none, until the
 * thread runs. Sets its is_first. */
static bool has_begun(struct krait_remote_stacks *stacks, uint32_t i)
{
    struct krait_remote_state *state = &stacks->states[i];
    bool begun = state->tid != 0;
    state->is_first = begun;
    for (uint32_t k = 0; k < i && begun; k++) {
        bool same = stacks->states[k].tid == state->tid;
        begun = !same || stacks->states[k].interp != state->interp;
        state->is_first &= !same;
    }
    return begun;
}

/* Gives states the kernel's numbers. Leaves out those whose thread has not begun, or has ended, unless another one may run them. */
static void number_states(struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    uint32_t count = 0;
    bool kept = remote->layout.at[KRAIT_AT_THREAD_NATIVE] != KRAIT_NOWHERE;
    if (!kept && !remote->tid_offset && stacks->state_count)
        remote->tid_offset = find_tid_offset(remote, stacks);
    bool known = kept || remote->tid_offset;
    for (uint32_t i = 0; i < stacks->state_count; i++) {
        struct krait_remote_state *state = &stacks->states[count];
        *state = stacks->states[i];
        state->tid = number_of(remote, &stacks->tasks, state);
        bool begun = has_begun(stacks, count);
        state->is_first |= !known;
        count += !known || begun || (remote->nests && !state->tid);
    }
    stacks->state_count = count;
}

/* -- threads -- */

static void add_thread(struct krait_remote_stacks *stacks, struct krait_remote_state *state)
{
    const struct krait_os_task *task = krait_tasks_find(&stacks->tasks, state->tid);
    state->is_first = true;
    state->thread = stacks->thread_count;
    stacks->threads[stacks->thread_count++] =
        (struct krait_remote_thread){ .addr = state->addr,
                                      .ident = state->ident,
                                      .tid = state->tid,
                                      .states = state,
                                      .states_hash = krait_hash_u64(state->addr),
                                      .holds_gil = state->holds_gil,
                                      .runs = task && task->state == 'R' };
}

/* The states of a thread are in the order in which they were made. */
static void add_to_thread(struct krait_remote_stacks *stacks, uint32_t i, struct krait_remote_state *state)
{
    struct krait_remote_thread *thread = &stacks->threads[i];
    struct krait_remote_state **last = &thread->states;
    while (*last)
        last = &(*last)->next;
    *last = state;
    state->thread = i;
    thread->states_hash = krait_hash_u64(thread->states_hash ^ state->addr);
    thread->holds_gil |= state->holds_gil;
}

/* Finds the C stacks of the threads, if they are others than before. */
static void find_c_stacks(struct krait_remote *remote, const struct krait_remote_stacks *stacks)
{
    struct krait_c_stacks *list = &remote->c_stacks;
    uint64_t hash = 1;
    for (uint32_t i = 0; i < stacks->thread_count; i++)
        hash = krait_hash_u64(hash ^ stacks->threads[i].ident) + (uint64_t)stacks->threads[i].tid;
    if (hash == remote->c_stacks_hash || !KRAIT_GROW(list->items, list->cap, stacks->thread_count))
        return;
    list->count = stacks->thread_count;
    for (uint32_t i = 0; i < list->count; i++)
        list->items[i] =
            (struct krait_c_stack){ .ident = stacks->threads[i].ident, .tid = stacks->threads[i].tid };
    remote->c_stacks_hash = krait_c_stacks_find(list, remote->pid) ? 0 : hash;
}

/* Adds a state to the thread that runs it: up to 3.12 that need not be the one that made it, which may have ended. False: it is not
 * known which one does. */
static bool place(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                  struct krait_remote_state *state, bool is_last_try)
{
    bool is_made_by_one = state->tid;
    state->tid = krait_nested_thread(remote, stacks, state, is_last_try);
    if (state->tid && !krait_tasks_find(&stacks->tasks, state->tid)) {
        remote->c_stacks_hash = 0; /* it has ended */
        state->tid = 0;
    }
    uint32_t i = 0;
    while (i < stacks->thread_count && stacks->threads[i].tid != state->tid)
        i++;
    if (state->tid && i < stacks->thread_count)
        add_to_thread(stacks, i, state);
    else if (state->tid || is_made_by_one)
        add_thread(stacks, state);
    else
        state->thread = KRAIT_NO_ID;
    return state->tid || !is_made_by_one;
}

/* Makes threads of the states. Returns 1 if it is not known which thread runs one of them. */
static int make_threads(struct krait_remote *remote, struct krait_remote_stacks *stacks, bool is_last_try)
{
    uint32_t others = 0;
    bool known = true;
    stacks->thread_count = 0;
    number_states(remote, stacks);
    if (!KRAIT_GROW(stacks->threads, stacks->thread_cap, stacks->state_count))
        return -ENOMEM;
    for (uint32_t i = 0; i < stacks->state_count; i++) {
        others += !stacks->states[i].is_first;
        if (stacks->states[i].is_first)
            add_thread(stacks, &stacks->states[i]);
    }
    if (others)
        find_c_stacks(remote, stacks);
    for (uint32_t i = 0; i < stacks->state_count && others; i++) {
        if (!stacks->states[i].is_first)
            known &= place(remote, stacks, &stacks->states[i], is_last_try);
    }
    return known ? 0 : 1;
}

/* The thread that runs a state may have begun since the list was read; otherwise it is one of C code that made no state of its
 * own. */
int krait_states_find(struct krait_remote *remote, struct krait_remote_stacks *stacks, bool with_calls)
{
    enum { TRIES = 2 };
    int rc = 1;
    stacks->misplaced = false;
    stacks->thread_count = 0;
    for (int i = 0; i < TRIES && rc > 0; i++) {
        rc = list_states(remote, stacks);
        rc = rc ? rc : krait_tasks_read(&stacks->tasks, remote->pid, with_calls);
        rc = rc ? rc : make_threads(remote, stacks, i == TRIES - 1);
    }
    if (rc < 0)
        stacks->thread_count = stacks->state_count = stacks->first_count = 0;
    return rc < 0 ? rc : 0;
}
