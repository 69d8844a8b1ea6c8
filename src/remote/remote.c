/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/system_calls.h"
#include "python/compat/lines.h"
#include "remote/called.h"
#include "remote/memory.h"
#include "remote/native.h"
#include "remote/nested.h"
#include "remote/running_task.h"
#include "remote/stack.h"
#include "remote/states.h"
#include "remote/stop.h"

#include <time.h>

enum { STAY_MOST = 8 }; /* to ask whether a thread has run takes 2 us; a move to another CPU, 30 */

void krait_remote_stacks_done(struct krait_remote_stacks *stacks)
{
    free(stacks->threads);
    free(stacks->states);
    free(stacks->firsts);
    free(stacks->frames);
    free(stacks->coroutines);
    free(stacks->awaiters);
    krait_tasks_done(&stacks->tasks);
}

/* -- stacks -- */

/* A line table is decoded from its beginning. */
static int32_t line_of(struct krait_remote *remote, const struct krait_remote_code *code, int64_t offset)
{
    uint64_t hash = krait_hash_u64((uintptr_t)code ^ krait_hash_u64((uint64_t)offset));
    struct krait_line_kept *kept = &remote->lines[hash % KRAIT_LINES_KEPT];
    if (kept->code != code || kept->offset != offset)
        *kept = (struct krait_line_kept){ code, offset,
                                          krait_lines_find(remote->layout.version->lines, code->lines,
                                                           code->lines_size, code->first_line, offset) };
    return kept->line;
}

static void make_frame(struct krait_remote *remote, const struct krait_raw_frame *raw,
                       const struct krait_remote_code *code, struct krait_remote_frame *frame)
{
    *frame = (struct krait_remote_frame){
        .code = code, .addr = raw->addr, .entry = raw->entry, .mark = raw->mark
    };
    if (code)
        frame->line = line_of(remote, code, raw->offset);
}

bool krait_frame_make(struct krait_remote *remote, const struct krait_raw_frame *raw,
                      struct krait_remote_frame *frame)
{
    make_frame(remote, raw, krait_code_read(remote, raw->code), frame);
    return frame->code;
}

/* With the pieces that krait_called_read needs, if they are known before. */
static int add_frames(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, uint32_t flags)
{
    struct krait_memory_piece more[KRAIT_CALLED_PIECES];
    uint32_t count = flags & KRAIT_READ_CALLED ? krait_called_expect(remote, reader, more) : 0;
    KRAIT_AUTO_FREE const struct krait_remote_code **codes = calloc(reader->count + 1, sizeof(*codes));
    if (!codes || !KRAIT_GROW(stacks->frames, stacks->frame_cap, stacks->frame_count + reader->count))
        return -ENOMEM;
    bool known = krait_codes_known(remote, reader->frames, reader->count, codes, more, count);
    if (!known)
        reader->called.code = NULL;
    for (uint32_t i = 0; i < reader->count; i++) {
        struct krait_remote_frame *frame = &stacks->frames[stacks->frame_count + i];
        if (known)
            make_frame(remote, &reader->frames[i], codes[i], frame);
        else if (!krait_frame_make(remote, &reader->frames[i], frame))
            return -EAGAIN;
    }
    return 0;
}

/* Whether a thread that sleeps waits for the GIL; notes its system call. */
static bool waits_for_gil(struct krait_remote *remote, struct krait_remote_thread *thread)
{
    struct krait_os_task task = { .tid = thread->tid, .state = remote->still.state, .call = -1 };
    thread->call = -1;
    if (task.state == 'R')
        return false;
    krait_task_read_call(&task, remote->pid);
    remote->still.state = task.state;
    thread->call = task.call;
    thread->arg = task.arg;
    return krait_remote_waits_for_gil(thread, &task);
}

static int copy_stack(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, struct krait_remote_thread *thread, uint32_t flags)
{
    thread->count = reader->count = 0;
    int rc = 0;
    if (thread->states && thread->states->next)
        rc = krait_nested_copy(remote, stacks, reader, thread);
    else if (thread->addr)
        rc = krait_stack_copy(remote, reader, thread->addr, &thread->places);
    rc = rc ? rc : add_frames(remote, stacks, reader, flags);
    thread->count = rc ? 0 : reader->count;
    return rc;
}

/* Reads a stack and its names while the thread does not run. -EAGAIN: it did, or is between two stacks; try again. */
static int read_still(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, struct krait_remote_thread *thread, uint32_t flags)
{
    enum { TRIES = 50, NAP_NS = 50 * KRAIT_NS_PER_US };
    struct krait_registers registers;
    int rc = thread->tid ? -EAGAIN : -ESRCH, native = -EBUSY;
    for (int i = 0; i < TRIES && rc == -EAGAIN; i++) {
        if (i)
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        rc = krait_still_begin(&remote->still, remote->pid, thread->tid);
        bool told = !rc && flags & KRAIT_READ_NATIVE && krait_still_registers(&remote->still, &registers);
        if (!rc && flags & KRAIT_READ_NATIVE && !told && remote->still.state == 'R') {
            if (i || !krait_still_tells(&remote->still))
                return -EBUSY; /* its registers are told when it is stopped alone */
            rc = -EAGAIN;      /* krait has just taken its CPU from it: there is a record now */
        }
        if (rc)
            continue;
        rc = copy_stack(remote, stacks, reader, thread, flags);
        thread->called = flags & KRAIT_READ_CALLED && thread->count
                             ? krait_called_read(remote, reader, stacks->frames[stacks->frame_count].code)
                             : NULL;
        if (flags & KRAIT_READ_WAITS)
            thread->gil_wait = waits_for_gil(remote, thread);
        if (!rc && flags & KRAIT_READ_TASKS)
            krait_running_task_read(remote, stacks, thread);
        if (!rc && flags & KRAIT_READ_NATIVE)
            native =
                told ? krait_native_walk(remote, &registers) : krait_native_walk_waiting(remote, thread->tid);
        if (!krait_still_end(&remote->still) || rc == -EFAULT)
            rc = -EAGAIN;
    }
    thread->called = rc ? NULL : thread->called;
    return !rc && !native ? krait_native_merge(remote, stacks, thread) : rc;
}

struct stopping {
    struct krait_remote *remote;
    struct krait_remote_stacks *stacks;
    struct krait_stack_reader *reader;
    struct krait_remote_thread *thread;
    uint32_t flags;
    int rc;
};

static void *copy_stopped(void *arg)
{
    enum { TRIES = 20, NAP_NS = 100 * KRAIT_NS_PER_US };
    struct stopping *s = arg;
    struct krait_remote *remote = s->remote;
    uint64_t before_ns;
    s->rc = s->thread->tid ? -EAGAIN : -ESRCH;
    for (int i = 0; i < TRIES && s->rc == -EAGAIN; i++) {
        if (i) /* it was between two stacks */
            nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
        s->rc = krait_stop_to_read(s->thread->tid, &before_ns);
        if (s->rc)
            break;
        s->rc = copy_stack(remote, s->stacks, s->reader, s->thread, 0);
        if (!s->rc)
            s->rc = krait_native_walk_stopped(remote, s->thread->tid, remote->still.state != 'R');
        if (!s->rc && s->flags & KRAIT_READ_TASKS)
            krait_running_task_read(remote, s->stacks, s->thread);
        krait_stop_end(s->thread->tid);
    }
    return NULL;
}

/* The same of one that ptrace(2) stops, for its registers. One that did not stop in time is not waited for again until it runs. */
static int read_stopped(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                        struct krait_stack_reader *reader, struct krait_remote_thread *thread, uint32_t flags)
{
    struct stopping s = { remote, stacks, reader, thread, flags, 0 };
    uint64_t count = krait_still_count(&remote->still, remote->pid, thread->tid);
    const uint64_t *late = krait_map_get(&remote->late, (uint64_t)thread->tid);
    if (late && *late == count)
        return -ETIMEDOUT;
    krait_stop_in_thread(copy_stopped, &s);
    if (s.rc == -ETIMEDOUT)
        krait_map_put(&remote->late, (uint64_t)thread->tid, count);
    return s.rc ? s.rc : krait_native_merge(remote, stacks, thread);
}

/* What two states of a running thread tell need not belong together. So one is read: that which holds the GIL, or the innermost of
 * the last time. */
static struct krait_remote_state *choose_state(struct krait_remote_thread *thread)
{
    struct krait_remote_state **at = &thread->states;
    while (*at && !(*at)->holds_gil)
        at = &(*at)->next;
    struct krait_remote_state *holder = *at;
    if (holder) {
        *at = holder->next;
        holder->next = thread->states;
        thread->states = holder;
    }
    return thread->states;
}

/* The same while it runs. */
static int read_checked(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                        struct krait_stack_reader *reader, struct krait_remote_thread *thread)
{
    enum { TRIES = 20 };
    const struct krait_remote_state *state = choose_state(thread);
    int rc = -EAGAIN;
    for (int i = 0; i < TRIES && rc == -EAGAIN && state; i++) {
        rc = krait_stack_read(remote, reader, state->addr);
        if (rc)
            break;
        rc = add_frames(remote, stacks, reader, 0);
    }
    thread->count = rc ? 0 : reader->count;
    return rc;
}

static int read_stack(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                      struct krait_stack_reader *reader, struct krait_remote_thread *thread, uint32_t flags)
{
    thread->first = stacks->frame_count;
    thread->native = KRAIT_NATIVE_NONE;
    thread->called = NULL;
    int rc = read_still(remote, stacks, reader, thread, flags);
    bool stop = flags & KRAIT_READ_NATIVE && thread->native == KRAIT_NATIVE_NONE && rc != -ENOMEM;
    if (stop && read_stopped(remote, stacks, reader, thread, flags) == 0)
        rc = 0;
    else if (stop) /* without them */
        rc = read_still(remote, stacks, reader, thread, flags & ~(uint32_t)KRAIT_READ_NATIVE);
    if (!thread->addr && rc == -ESRCH)
        thread->tid = 0; /* it has ended */
    thread->proved = !rc;
    thread->state = remote->still.state;
    thread->runs = rc ? thread->runs : thread->state == 'R';
    thread->switches = rc || remote->still.from_status ? 0 : remote->still.count;
    thread->proved_ns = thread->seen_ns = remote->now_ns;
    if (rc && rc != -ENOMEM)
        rc = flags & KRAIT_READ_PROVED ? -EAGAIN : read_checked(remote, stacks, reader, thread);
    thread->failed = rc == -EAGAIN;
    remote->failures += thread->failed;
    thread->count = rc ? 0 : thread->count;
    stacks->frame_count += thread->count;
    return thread->failed ? 0 : rc;
}

/* Threads that have no Python state, as of numerical libraries. */
static int add_others(struct krait_remote_stacks *stacks)
{
    uint32_t known = stacks->thread_count;
    for (uint32_t i = 0; i < stacks->tasks.count; i++) {
        const struct krait_os_task *task = &stacks->tasks.items[i];
        bool is_new = true;
        for (uint32_t k = 0; k < known && is_new; k++)
            is_new = stacks->threads[k].tid != task->tid;
        if (!is_new)
            continue;
        if (!KRAIT_GROW(stacks->threads, stacks->thread_cap, stacks->thread_count + 1))
            return -ENOMEM;
        stacks->threads[stacks->thread_count++] =
            (struct krait_remote_thread){ .tid = task->tid, .runs = task->state == 'R' };
    }
    return 0;
}

/* What is known of threads that were there before: mostly they are in the same order. */
static void keep_known(struct krait_remote_stacks *stacks, const struct krait_remote_thread *before,
                       uint32_t count)
{
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        for (uint32_t k = 0; k < count; k++) {
            const struct krait_remote_thread *old = &before[(i + k) % count];
            if (old->states_hash != thread->states_hash || old->tid != thread->tid)
                continue;
            thread->proved = old->proved;
            thread->state = old->state;
            thread->gil_wait = old->gil_wait;
            thread->switches = old->switches;
            thread->proved_ns = old->proved_ns;
            thread->seen_ns = old->seen_ns;
            thread->task = old->task;
            thread->places = old->places;
            break;
        }
    }
}

/* Which threads there are, and what the kernel says of them. */
static int find_threads(struct krait_remote *remote, struct krait_remote_stacks *stacks, uint32_t flags)
{
    uint32_t count = stacks->thread_count;
    KRAIT_AUTO_FREE struct krait_remote_thread *before = calloc(count + 1, sizeof(*before));
    if (!before)
        return -ENOMEM;
    if (count)
        memcpy(before, stacks->threads, count * sizeof(*before));
    int rc = krait_states_find(remote, stacks, flags & KRAIT_READ_CALLS);
    if (!rc)
        krait_still_keep(&remote->still, &stacks->tasks);
    if (!rc && flags & KRAIT_READ_NATIVE)
        rc = add_others(stacks);
    if (!rc && flags & KRAIT_READ_NATIVE)
        rc = krait_native_prepare(remote);
    if (!rc && flags & KRAIT_READ_TASKS)
        krait_running_task_find(remote);
    keep_known(stacks, before, count);
    return rc;
}

bool krait_remote_has_not_run(struct krait_remote *remote, const struct krait_remote_thread *thread)
{
    return thread->proved && thread->switches &&
           krait_still_count(&remote->still, remote->pid, thread->tid) == thread->switches;
}

/* A thread that slept is ready for a CPU once it is woken up: its state changes then, its count only when it runs. The longer it
 * has slept, the less often its state is read: many idle threads cost little, and the wake-up is seen late by a 32nd at most. */
static void see_state(struct krait_remote *remote, struct krait_remote_thread *thread)
{
    enum { PART = 32, SELDOM_NS = 50 * KRAIT_NS_PER_MS };
    uint64_t now_ns = remote->now_ns;
    uint64_t wait_ns = KRAIT_MIN((now_ns - thread->proved_ns) / PART, (uint64_t)SELDOM_NS);
    if (!thread->proved || thread->state == 'R' || now_ns - thread->seen_ns < wait_ns)
        return;
    thread->seen_ns = now_ns;
    char state = krait_still_state(&remote->still, remote->pid, thread->tid);
    thread->state = state ? state : thread->state;
}

/* Whether a thread's stack is to be read. A known one that slept when it was looked at last sleeps until it is woken up. */
static bool is_wanted(struct krait_remote *remote, const struct krait_remote_thread *thread, uint32_t flags)
{
    if (flags & KRAIT_READ_HOLDER && !thread->holds_gil)
        return false;
    if (!(flags & KRAIT_READ_RUNNING) || !(flags & KRAIT_READ_KNOWN))
        return thread->runs || !(flags & KRAIT_READ_RUNNING);
    return thread->state == 'R' || !krait_remote_has_not_run(remote, thread);
}

/* Which threads are read: all are looked at before krait moves to the CPU of one of them. */
static void choose(struct krait_remote *remote, struct krait_remote_stacks *stacks, uint32_t flags)
{
    remote->now_ns = krait_clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        if (flags & (KRAIT_READ_AGAIN | KRAIT_READ_RUNNING))
            see_state(remote, thread); /* before its count, which proves that it has not run until then */
        thread->same = flags & KRAIT_READ_AGAIN && krait_remote_has_not_run(remote, thread);
        thread->wanted = !thread->same && is_wanted(remote, thread, flags);
        thread->failed = false;
        thread->count = 0;
    }
}

/* Counts krait's CPU time since the last call, if it held a thread that would have run. */
static void count_cost(struct krait_remote *remote, bool held)
{
    uint64_t now = krait_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    remote->held_ns += held ? now - remote->until_ns : 0;
    remote->until_ns = now;
}

static int read_wanted(struct krait_remote *remote, struct krait_remote_stacks *stacks, uint32_t flags)
{
    KRAIT_CLEANUP(krait_stack_reader_done) struct krait_stack_reader reader = { 0 };
    bool counts = flags & KRAIT_READ_COST;
    int rc = 0;
    if (counts && !remote->still.moved && !remote->still.holds) /* what it did before is no thread's */
        count_cost(remote, false);
    for (uint32_t i = 0; i < stacks->thread_count && !rc; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        if (!thread->wanted)
            continue;
        rc = read_stack(remote, stacks, &reader, thread, flags);
        if (counts)
            count_cost(remote, remote->still.holds);
        if (flags & KRAIT_READ_RUNNING && !thread->runs)
            thread->count = 0;
    }
    return rc;
}

/* Threads without Python come and go at any time. */
static void leave_out_ended(struct krait_remote_stacks *stacks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        stacks->threads[count] = stacks->threads[i];
        count += stacks->threads[i].addr || stacks->threads[i].tid;
    }
    stacks->thread_count = count;
}

int krait_remote_read(struct krait_remote *remote, struct krait_remote_stacks *stacks, uint32_t flags,
                      struct krait_err *err)
{
    stacks->frame_count = stacks->coroutine_count = stacks->awaiter_count = 0;
    if (flags & KRAIT_READ_KNOWN && (stacks->misplaced || krait_states_changed(remote, stacks)))
        flags &= ~(uint32_t)KRAIT_READ_KNOWN;
    if (flags & KRAIT_READ_KNOWN && flags & KRAIT_READ_GIL && krait_states_look_at_gil(remote, stacks))
        flags &= ~(uint32_t)KRAIT_READ_KNOWN; /* an interpreter has ended */
    int rc = flags & KRAIT_READ_KNOWN ? 0 : find_threads(remote, stacks, flags);
    bool few = stacks->thread_count <= STAY_MOST, stays = flags & KRAIT_READ_STAY && few;
    remote->still.registers = flags & KRAIT_READ_NATIVE;
    remote->still.records = flags & KRAIT_READ_SWITCHES &&
                            (few || (remote->still.registers && stacks->thread_count <= KRAIT_STILL_FILES));
    if (!rc) {
        bool sweeps = krait_codes_begin_sweep(remote);
        choose(remote, stacks, flags & ~(sweeps ? (uint32_t)KRAIT_READ_AGAIN : 0));
        rc = read_wanted(remote, stacks, flags);
        if (!rc && sweeps)
            krait_codes_sweep(remote);
    }
    if (!stays)
        krait_still_leave(&remote->still);
    leave_out_ended(stacks);
    return rc ? krait_remote_refusal(remote->pid, rc, err) : 0;
}

/* A thread that wants the GIL waits on the condition variable in it: take_gil() in Python/ceval_gil.c. */
bool krait_remote_waits_for_gil(const struct krait_remote_thread *thread, const struct krait_os_task *task)
{
    const char *call = krait_system_call_name(task->call);
    bool waits = false;
    for (const struct krait_remote_state *s = thread->states; s && call && !waits; s = s->next)
        waits = s->gil && strcmp(call, "futex") == 0 && task->arg - s->gil < KRAIT_GIL_SIZE;
    return waits;
}
