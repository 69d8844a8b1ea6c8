/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/remote.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/system_calls.h"
#include "python/compat/lines.h"
#include "remote/called.h"
#include "remote/memory.h"
#include "remote/native.h"
#include "remote/running_task.h"
#include "remote/stack.h"
#include "remote/stop.h"

#include <time.h>

enum { INTERPRETERS_MAX = 1024, THREADS_MAX = 65536, PTHREAD_BYTES = 1024 };
enum { STAY_MOST = 8 }; /* to ask whether a thread has run takes 2 us; a move to another CPU, 30 */

void krait_remote_stacks_done(struct krait_remote_stacks *stacks)
{
    free(stacks->threads);
    free(stacks->frames);
    free(stacks->coroutines);
    free(stacks->awaiters);
    krait_tasks_done(&stacks->tasks);
}

static int read_field(const struct krait_remote *remote, uint64_t of, enum krait_at at, uint64_t *value)
{
    return krait_memory_read(remote->pid, of + remote->layout.at[at], value, sizeof(*value));
}

/* -- which threads there are -- */

/* The thread state that holds the GIL; 0: none does. */
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

/* The thread state of one thread, and the address of the next. -EAGAIN: it is none, or not one of this interpreter. */
static int read_thread(const struct krait_remote *remote, uint64_t interp, struct krait_remote_thread *thread,
                       uint64_t *next)
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
            pieces[count++] = (struct krait_memory_piece){ thread->addr + at, &values[i], sizeof(values[i]) };
    }
    int rc = krait_memory_pieces(remote->pid, pieces, count);
    thread->ident = values[0];
    *next = values[1];
    thread->tid = (pid_t)values[3];
    return rc == -EFAULT || (!rc && values[2] != interp) ? -EAGAIN : rc;
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

static int add_threads(const struct krait_remote *remote, struct krait_remote_stacks *stacks, uint64_t interp)
{
    uint64_t id = 0, state = 0, gil = 0, gc = find_gc(remote, interp);
    int rc = read_field(remote, interp, KRAIT_AT_INTERP_ID, &id);
    if (!rc)
        rc = read_collects(remote, gc, &stacks->collects);
    if (!rc)
        rc = find_gil(remote, interp, &gil);
    uint64_t holder = gil ? gil_holder(remote, gil) : 0;
    if (!rc)
        rc = read_field(remote, interp, KRAIT_AT_INTERP_THREADS, &state);
    while (!rc && state && stacks->thread_count < THREADS_MAX) {
        struct krait_remote_thread thread = {
            .addr = state, .interp = id, .gil = gil, .gc = gc, .holds_gil = state == holder
        };
        rc = read_thread(remote, interp, &thread, &state);
        if (!KRAIT_GROW(stacks->threads, stacks->thread_cap, stacks->thread_count + 1))
            return -ENOMEM;
        if (!rc)
            stacks->threads[stacks->thread_count++] = thread;
    }
    return rc;
}

/* The same of threads that are known: those of one interpreter follow each other. -EFAULT: an interpreter is gone. */
static int look_at_gil(const struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    uint64_t holder = 0, gc = 0;
    int rc = 0;
    stacks->collects = false;
    for (uint32_t i = 0; i < stacks->thread_count && !rc; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        if (thread->gc != gc) {
            gc = thread->gc;
            holder = thread->gil ? gil_holder(remote, thread->gil) : 0;
            rc = gc ? read_collects(remote, gc, &stacks->collects) : 0;
        }
        thread->holds_gil = holder && thread->addr == holder;
    }
    return rc;
}

static int list_once(const struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    uint64_t interp = 0;
    stacks->thread_count = 0;
    stacks->collects = false;
    int rc = read_field(remote, remote->runtime, KRAIT_AT_INTERPRETERS, &interp);
    for (unsigned i = 0; !rc && interp && i < INTERPRETERS_MAX; i++) {
        rc = add_threads(remote, stacks, interp);
        if (!rc)
            rc = read_field(remote, interp, KRAIT_AT_INTERP_NEXT, &interp);
    }
    return rc;
}

bool krait_remote_has_interpreter(const struct krait_remote *remote)
{
    uint64_t interp = 0, state = 0;
    return read_field(remote, remote->runtime, KRAIT_AT_INTERPRETERS, &interp) == 0 && interp &&
           read_field(remote, interp, KRAIT_AT_INTERP_THREADS, &state) == 0 && state;
}

static uint64_t hash_threads(const struct krait_remote_stacks *stacks)
{
    uint64_t hash = stacks->thread_count;
    for (uint32_t i = 0; i < stacks->thread_count; i++)
        hash = krait_hash_u64(hash ^ stacks->threads[i].addr);
    return hash;
}

/* The lists change while they are read: threads begin and end. They count if they are the same twice in a row. */
static int list_threads(const struct krait_remote *remote, struct krait_remote_stacks *stacks)
{
    enum { LIST_TRIES = 200, LIST_TRIES_A_NAP = 10 };
    uint64_t before = 0, hash = 0;
    int rc = -EAGAIN;
    for (int i = 1; i <= LIST_TRIES && (rc == -EAGAIN || (!rc && hash != before)); i++) {
        before = hash;
        rc = list_once(remote, stacks);
        hash = rc ? 0 : hash_threads(stacks);
        if (rc == -EAGAIN && i % LIST_TRIES_A_NAP == 0) /* the thread that changes it may have lost its CPU */
            nanosleep(&(struct timespec){ .tv_nsec = 200 * KRAIT_NS_PER_US }, NULL);
    }
    for (uint32_t i = 0; i < stacks->thread_count / 2; i++) { /* the newest comes first there */
        struct krait_remote_thread *a = &stacks->threads[i];
        struct krait_remote_thread *b = &stacks->threads[stacks->thread_count - 1 - i], swapped = *a;
        *a = *b;
        *b = swapped;
    }
    return rc == -EAGAIN ? 0 : rc; /* what was found last */
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

/* Before 3.11 Python does not keep the number. thread.ident is the address of the C library's struct pthread, which holds it
 * (nptl/descr.h of glibc, pthread_impl.h of musl): at the offset where most threads have a number of the process's. Some may
 * have ended. */
static uint32_t find_tid_offset(const struct krait_remote *remote, const struct krait_remote_stacks *stacks,
                                const struct krait_os_tasks *tasks)
{
    uint32_t fits[PTHREAD_BYTES / 4] = { 0 }, best = 0;
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        char bytes[PTHREAD_BYTES];
        if (krait_memory_read(remote->pid, stacks->threads[i].ident, bytes, sizeof(bytes)))
            continue;
        for (uint32_t k = 0; k < KRAIT_ARRAY_LEN(fits); k++)
            fits[k] += task_of(tasks, (uint32_t)krait_memory_number(bytes + 4 * k, 4)) != NULL;
    }
    for (uint32_t k = 1; k < KRAIT_ARRAY_LEN(fits); k++)
        best = fits[k] > fits[best] ? k : best;
    return fits[best] ? 4 * best : 0;
}

/* A new thread's state has the number of the thread that made it, or none, until the thread runs. */
static bool has_begun(const struct krait_remote_stacks *stacks, uint32_t i)
{
    const struct krait_remote_thread *thread = &stacks->threads[i];
    bool begun = thread->tid != 0;
    for (uint32_t k = 0; k < i && begun; k++)
        begun = stacks->threads[k].tid != thread->tid || stacks->threads[k].interp != thread->interp;
    return begun;
}

/* Gives threads the kernel's numbers. Leaves out those that have not begun, or have ended. */
static void number_threads(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                           const struct krait_os_tasks *tasks)
{
    uint32_t count = 0;
    bool kept = remote->layout.at[KRAIT_AT_THREAD_NATIVE] != KRAIT_NOWHERE;
    if (!kept && !remote->tid_offset && stacks->thread_count)
        remote->tid_offset = find_tid_offset(remote, stacks, tasks);
    for (uint32_t i = 0; i < stacks->thread_count; i++) {
        struct krait_remote_thread *thread = &stacks->threads[i];
        uint32_t inner = (uint32_t)thread->tid;
        if (!kept && remote->tid_offset)
            krait_memory_read(remote->pid, thread->ident + remote->tid_offset, &inner, sizeof(inner));
        const struct krait_os_task *task = task_of(tasks, inner);
        if (!task && inner && tasks->count == 1) /* after a fork the number may be of the parent's thread */
            task = &tasks->items[0];
        thread->tid = task ? task->tid : 0;
        thread->runs = task && task->state == 'R';
        bool known = kept || remote->tid_offset;
        stacks->threads[count] = *thread;
        count += !known || has_begun(stacks, count);
    }
    stacks->thread_count = count;
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
    int rc = thread->addr ? krait_stack_copy(remote, reader, thread->addr, &thread->places) : 0;
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
        s->rc = krait_stop_begin(s->thread->tid, &before_ns);
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

/* The same while it runs. */
static int read_checked(struct krait_remote *remote, struct krait_remote_stacks *stacks,
                        struct krait_stack_reader *reader, struct krait_remote_thread *thread)
{
    enum { TRIES = 20 };
    int rc = -EAGAIN;
    for (int i = 0; i < TRIES && rc == -EAGAIN && thread->addr; i++) {
        rc = krait_stack_read(remote, reader, thread->addr);
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
            if (old->addr != thread->addr || old->tid != thread->tid)
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
    stacks->thread_count = 0;
    int rc = list_threads(remote, stacks);
    if (!rc)
        rc = krait_tasks_read(&stacks->tasks, remote->pid, flags & KRAIT_READ_CALLS);
    if (!rc)
        number_threads(remote, stacks, &stacks->tasks);
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
    if (flags & KRAIT_READ_KNOWN && flags & KRAIT_READ_GIL && look_at_gil(remote, stacks))
        flags &= ~(uint32_t)KRAIT_READ_KNOWN; /* an interpreter has ended */
    int rc = flags & KRAIT_READ_KNOWN ? 0 : find_threads(remote, stacks, flags);
    bool few = stacks->thread_count <= STAY_MOST, stays = flags & KRAIT_READ_STAY && few;
    remote->still.registers = flags & KRAIT_READ_NATIVE;
    remote->still.records = flags & KRAIT_READ_SWITCHES &&
                            (few || (remote->still.registers && stacks->thread_count <= KRAIT_STILL_FILES));
    if (!rc) {
        choose(remote, stacks, flags);
        rc = read_wanted(remote, stacks, flags);
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
    return thread->gil && call && strcmp(call, "futex") == 0 && task->arg - thread->gil < KRAIT_GIL_SIZE;
}
