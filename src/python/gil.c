/* SPDX-License-Identifier: Apache-2.0
 *
 * How waiting for the GIL is seen. In Python 3.8 to 3.15 (Python/ceval_gil.h, from 3.12 on ceval_gil.c) a GIL
 * is a flag, a mutex and two conditions:
 *
 *   take_gil()   locks the mutex; while the flag is set, waits on `cond` (pthread_cond_timedwait, 5 ms); sets
 *                the flag; signals `switched`; unlocks
 *   drop_gil()   locks the mutex; clears the flag; signals `cond`; unlocks. If another thread has asked for
 *                the GIL, waits on `switched` (pthread_cond_wait) until it has been taken
 *
 * So four calls tell everything. The agent redirects the interpreter's own calls of the three functions to this file (got.h),
 * and knows a GIL by the addresses of its conditions, which it learns by releasing the GIL once and taking it again.
 *
 * `switched` has a mutex of its own. A thread that was asked for the GIL, and has dropped it, locks that one and then, to take the
 * GIL again, the first. Who has just taken the GIL may still have either, and may have lost its CPU: that is waiting for the GIL,
 * too. So from a drop while others wait to the next take, calls of pthread_mutex_lock() count if they block. To signal may take
 * long, too (has_slept): who drops the GIL waits then until it is handed over, and who takes it has it from then on.
 *
 * Taking and dropping a GIL that nobody waits for costs five comparisons and a store. Events are written by
 * the thread that has the GIL, as everywhere: it has it in effect until drop_gil() unlocks the mutex, and
 * from when take_gil() signals. A wait is therefore written when it is over, begin and end with their own
 * times; the thread has written nothing between. Only a note of C code comes from a thread that has dropped the GIL:
 * it writes the wait for `switched` first, which is over then.
 *
 *   thread A   ──── has the GIL ────┤drop           wait├┤switch  wait├──────────────────────────┤take ────
 *   thread B   ┤wait ─ 5 ms: asks ───────────────────────┤take ──────── has the GIL ────────┤drop
 */
#include "python/gil.h"

#include "python/got.h"

#include <sys/syscall.h>

/* `holder` is changed with the GIL's mutex held: the thread that has it, or had it last while nobody waited; 0: none, or not
 * known. */
struct krait_gil {
    const void *_Atomic cond; /* NULL: free; its own address: being filled */
    const void *_Atomic switched;
    const void *_Atomic mutexes[2]; /* of the two; NULL: not known */
    _Atomic uint32_t waiters;
    _Atomic uint32_t holder;
    _Atomic uint32_t interps; /* that share it */
    _Atomic uint32_t id;      /* the interpreter's that has it for itself; 0: the main interpreter's */
};

/* The first is the main interpreter's, most often the only one. */
enum { GILS_MAX = 256 };
static struct krait_gil gils[GILS_MAX];
static _Atomic uint32_t gil_used;

/* The parts of what a thread waits for until it has the GIL again, in the order of their times. */
enum { SWITCH_BEGIN, SWITCH_END, WAIT_BEGIN, TAKEN, PARTS };

static const uint32_t part_events[PARTS] = {
    [SWITCH_BEGIN] = KRAIT_EVENT_gil_wait,
    [SWITCH_END] = KRAIT_EVENT_gil_switch,
    [WAIT_BEGIN] = KRAIT_EVENT_gil_wait,
    [TAKEN] = KRAIT_EVENT_gil_take,
};

struct learning {
    const void *conds[2], *mutexes[2];
    const void *locked; /* the mutex that was locked last */
    size_t n;
};

/* What a thread does that locks a mutex: it has the GIL, or nobody waited when it dropped it; it learns; it has dropped the GIL
 * while others waited; it takes it again. */
enum { HOLDS, LEARNS, DROPPED, TAKES };

/* Of this thread. Small: it lies in the static TLS block, as krait_this_ring does. */
static __thread struct {
    uint64_t parts[PARTS]; /* not written yet; 0: it was not so */
    uint64_t last;
    struct krait_gil *gil; /* that it took last */
    struct learning *learning;
    uint32_t epoch;  /* krait_agent's, that the parts belong to */
    uint32_t holder; /* when the wait began */
    uint32_t tid;
    uint32_t locks; /* HOLDS: no lock of a mutex is of interest */
    uint32_t seen;  /* who had the GIL when the wait began, as it seemed without its mutex; 0: nobody did */
    uint32_t switch_of, wait_of; /* the id of the GIL of the parts: they may be of two */
    uint32_t place; /* of the ring, when the first of the parts was reached: its address's low bits */
} self __attribute__((tls_model("initial-exec")));

static bool is_recording(void)
{
    return krait_agent.gil && atomic_load_explicit(&krait_agent.running, memory_order_relaxed);
}

static uint64_t now(void)
{
    return krait_writer_now(&krait_agent.writer);
}

/* ---- events ---- */

/* `of`: the id of the GIL. It is told in front of the event, for which there is room then, too. */
static void put(uint64_t t, uint32_t event, uint32_t holder, uint32_t of)
{
    enum { BYTES = sizeof(struct krait_event_extended) + sizeof(holder) };
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring)
        return;
    t = KRAIT_MAX(t, ring->stated); /* a wait is written when it is over */
    int saved = errno;
    bool is_slow = ring->window == UINT64_MAX;
    enum krait_ring_room room = krait_writer_room(&krait_agent.writer, ring, t, of ? 2 * BYTES : BYTES);
    if (of && room != KRAIT_ROOM_NONE)
        krait_writer_put(ring, t, KRAIT_EVENT_gil_interpreter, of);
    if (room != KRAIT_ROOM_NONE)
        krait_writer_put(ring, t, event, holder);
    /* What is to be said before the next call, such as the stack, is said by its slow path: here nothing of
     * Python may be touched. */
    if (is_slow || room == KRAIT_ROOM_RESYNC)
        ring->window = UINT64_MAX;
    self.last = t;
    errno = saved;
}

void krait_gil_drop_pending(void)
{
    memset(self.parts, 0, sizeof(self.parts));
}

/* Of the ring, to know whether the thread has written since; of no ring 0. */
static uint32_t place_now(void)
{
    return krait_this_ring == &krait_no_ring ? 0 : (uint32_t)(uintptr_t)krait_this_ring->cur;
}

/* Whether the thread has gone on without taking that GIL: it took the one of an interpreter that it was making, which nobody knew
 * yet. Another thread that states its stack writes there too. */
static bool has_gone_on(void)
{
    uint64_t since = UINT64_MAX;
    for (size_t i = 0; i < PARTS; i++)
        since = self.parts[i] ? KRAIT_MIN(since, self.parts[i]) : since;
    return self.place && self.place != place_now() && krait_this_ring->stated < since;
}

void krait_gil_flush(void)
{
    bool ours = is_recording() && self.epoch == atomic_load(&krait_agent.epoch) && !has_gone_on();
    for (size_t i = 0; i < PARTS && ours; i++) {
        if (self.parts[i])
            put(self.parts[i], part_events[i], i == WAIT_BEGIN ? self.holder : 0,
                i < WAIT_BEGIN ? self.switch_of : self.wait_of);
    }
    krait_gil_drop_pending();
}

void krait_gil_before_note(void)
{
    if (self.parts[SWITCH_BEGIN])
        krait_gil_flush();
}

uint64_t krait_gil_last(void)
{
    return KRAIT_MAX(self.last, krait_this_ring->stated);
}

void krait_gil_after(uint64_t t)
{
    self.last = KRAIT_MAX(self.last, t);
}

/* Notes that a part of a GIL was reached at a time. What a thread without a ring has kept goes when it waits again, or when it
 * is another recording's; and an end with it whose begin is not known. */
static void reach_at(const struct krait_gil *gil, size_t part, uint64_t t)
{
    uint32_t epoch = atomic_load_explicit(&krait_agent.epoch, memory_order_relaxed);
    if (self.parts[TAKEN] || self.epoch != epoch)
        krait_gil_drop_pending();
    self.epoch = epoch;
    if (!(self.parts[SWITCH_BEGIN] | self.parts[WAIT_BEGIN]))
        self.place = place_now();
    bool has_begun = part != SWITCH_END || self.parts[SWITCH_BEGIN];
    self.parts[part] = has_begun && is_recording() ? t : 0;
    *(part < WAIT_BEGIN ? &self.switch_of : &self.wait_of) =
        atomic_load_explicit(&gil->id, memory_order_relaxed);
}

static void reach(const struct krait_gil *gil, size_t part)
{
    reach_at(gil, part, now());
}

static void take_note(struct krait_gil *gil)
{
    atomic_store_explicit(&gil->holder, self.tid, memory_order_release);
    self.gil = gil;
}

static bool has_begun(size_t part)
{
    return self.parts[part] && !self.parts[TAKEN];
}

/* More ticks than a signal takes of a thread that does not sleep. It may: pthread_cond_signal() of glibc waits until all threads
 * that it woke earlier have left the condition, which takes until they get a CPU (__condvar_quiesce_and_switch_g1()). */
static _Atomic uint64_t awake_ticks;

static uint64_t time_of_signal(void)
{
    return is_recording() ? now() : 0;
}

static bool has_slept(uint64_t since, uint64_t until)
{
    return since && until > since + atomic_load_explicit(&awake_ticks, memory_order_relaxed);
}

/* It has the GIL from when it signals; where that makes it wait for others, from then on. */
static int take(struct krait_gil *gil, pthread_cond_t *switched)
{
    uint64_t t = time_of_signal();
    int rc = pthread_cond_signal(switched);
    self.tid = self.tid ? self.tid : (uint32_t)syscall(SYS_gettid);
    self.locks = HOLDS;
    bool is_told = gil->waiters || self.parts[WAIT_BEGIN] || self.parts[SWITCH_BEGIN];
    if (is_told) {
        uint64_t signalled = time_of_signal();
        bool slept = has_slept(t, signalled);
        if (slept && !has_begun(WAIT_BEGIN)) {
            reach_at(gil, WAIT_BEGIN, t);
            self.holder = 0;
        }
        reach_at(gil, TAKEN, slept || !t ? signalled : t);
    }
    take_note(gil); /* who sees this has a later time */
    if (is_told && krait_this_ring != &krait_no_ring)
        krait_gil_flush();
    return rc;
}

static int drop(struct krait_gil *gil, pthread_cond_t *cond)
{
    if (!gil->waiters || !is_recording())
        return pthread_cond_signal(cond);
    atomic_store_explicit(&gil->holder, 0, memory_order_relaxed);
    uint64_t t = now();
    put(t, KRAIT_EVENT_gil_drop, 0, atomic_load_explicit(&gil->id, memory_order_relaxed));
    self.locks = DROPPED;
    int rc = pthread_cond_signal(cond);
    uint64_t signalled = time_of_signal();
    if (has_slept(t, signalled)) {
        reach_at(gil, SWITCH_BEGIN, t);
        reach_at(gil, SWITCH_END, signalled);
    }
    return rc;
}

/* It goes on where it has begun: to lock the mutex was the first part of it. Who had the GIL then is known if who has it now is the
 * same; that was not to be asked without the mutex. */
static void wait_on(const struct krait_gil *gil)
{
    uint32_t holder = atomic_load_explicit(&gil->holder, memory_order_relaxed);
    if (has_gone_on())
        krait_gil_drop_pending();
    if (!has_begun(WAIT_BEGIN)) {
        reach(gil, WAIT_BEGIN);
        self.holder = holder;
    } else if (self.seen && self.seen == holder) {
        self.holder = holder;
    }
    self.seen = 0;
}

/* ---- the interpreter's calls ---- */

static struct krait_gil *gil_of_cond(const void *cond)
{
    uint32_t n = atomic_load_explicit(&gil_used, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&gils[i].cond, memory_order_acquire) == cond)
            return &gils[i];
    }
    return NULL;
}

static struct krait_gil *gil_of_switched(const void *cond)
{
    uint32_t n = atomic_load_explicit(&gil_used, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&gils[i].switched, memory_order_acquire) == cond)
            return &gils[i];
    }
    return NULL;
}

/* Of a condition that is no known GIL's. */
static void learn(const void *cond)
{
    struct learning *learning = self.learning;
    if (!learning)
        return;
    if (learning->n < KRAIT_ARRAY_LEN(learning->conds)) {
        learning->conds[learning->n] = cond;
        learning->mutexes[learning->n] = learning->locked;
    }
    learning->n++;
}

static KRAIT_COLD int signal_slowly(pthread_cond_t *cond)
{
    struct krait_gil *gil = gil_of_switched(cond);
    if (gil)
        return take(gil, cond);
    gil = gil_of_cond(cond);
    if (gil)
        return drop(gil, cond);
    learn(cond);
    return pthread_cond_signal(cond);
}

/* Called at each drop and each take; of the first GIL, when nobody waits, without a stack frame. */
static int on_signal(pthread_cond_t *cond)
{
    struct krait_gil *first = &gils[0];
    if (cond == atomic_load_explicit(&first->cond, memory_order_relaxed) && !first->waiters)
        return pthread_cond_signal(cond);
    if (cond != atomic_load_explicit(&first->switched, memory_order_relaxed) || first->waiters || !self.tid ||
        self.parts[WAIT_BEGIN] | self.parts[SWITCH_BEGIN] | self.locks)
        return signal_slowly(cond);
    take_note(first);
    return pthread_cond_signal(cond);
}

static int on_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct krait_gil *gil = gil_of_cond(cond);
    if (!gil)
        return pthread_cond_timedwait(cond, mutex, until);
    wait_on(gil);
    gil->waiters++;
    int rc = pthread_cond_timedwait(cond, mutex, until);
    gil->waiters--;
    return rc;
}

static int on_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    const struct krait_gil *gil = gil_of_switched(cond);
    if (!gil)
        return pthread_cond_wait(cond, mutex);
    if (!has_begun(SWITCH_BEGIN))
        reach(gil, SWITCH_BEGIN);
    int rc = pthread_cond_wait(cond, mutex);
    reach(gil, SWITCH_END);
    return rc;
}

enum { OF_COND, OF_SWITCHED };

/* The GIL that has this mutex, and which of its mutexes it is; NULL: none. */
static struct krait_gil *gil_of_mutex(const void *mutex, size_t *which)
{
    uint32_t n = atomic_load_explicit(&gil_used, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        for (*which = OF_COND; *which <= OF_SWITCHED; ++*which) {
            if (atomic_load_explicit(&gils[i].mutexes[*which], memory_order_acquire) == mutex)
                return &gils[i];
        }
    }
    return NULL;
}

/* One that drops the GIL locks the mutex of `switched`, to see it taken. */
static int lock_to_see(const struct krait_gil *gil, pthread_mutex_t *mutex)
{
    if (!has_begun(SWITCH_BEGIN))
        reach(gil, SWITCH_BEGIN);
    int rc = pthread_mutex_lock(mutex);
    reach(gil, SWITCH_END);
    return rc;
}

/* One that takes it locks both, first that of `cond`. It counts as a waiter first: then who has the GIL tells when it drops it. */
static int lock_to_take(struct krait_gil *gil, pthread_mutex_t *mutex)
{
    gil->waiters++;
    if (!has_begun(WAIT_BEGIN)) {
        uint32_t holder = atomic_load(&gil->holder);
        reach(gil, WAIT_BEGIN);
        self.holder = 0;
        bool is_same = atomic_load(&gil->holder) == holder && holder != self.tid;
        self.seen = is_same ? holder : 0;
    }
    int rc = pthread_mutex_lock(mutex);
    gil->waiters--;
    return rc;
}

static KRAIT_COLD int lock_slowly(pthread_mutex_t *mutex)
{
    size_t which = OF_COND;
    if (self.locks == LEARNS) {
        self.learning->locked = mutex;
        return pthread_mutex_lock(mutex);
    }
    struct krait_gil *gil = gil_of_mutex(mutex, &which);
    if (!gil)
        return pthread_mutex_lock(mutex);
    if (which == OF_COND)
        self.locks = TAKES;
    int rc = pthread_mutex_trylock(mutex);
    if (rc != EBUSY)
        return rc;
    return self.locks == DROPPED ? lock_to_see(gil, mutex) : lock_to_take(gil, mutex);
}

/* Called at each drop and each take; without a stack frame, unless the thread has dropped a GIL that others waited for. */
static int on_lock(pthread_mutex_t *mutex)
{
    return KRAIT_LIKELY(self.locks == HOLDS) ? pthread_mutex_lock(mutex) : lock_slowly(mutex);
}

/* ---- which GILs ---- */

static bool calls_are_redirected;

static void redirect_calls(void)
{
    static const struct krait_got_call calls[] = {
        { "pthread_cond_signal", (void *)on_signal },
        { "pthread_cond_timedwait", (void *)on_timedwait },
        { "pthread_cond_wait", (void *)on_wait },
    };
    static const struct krait_got_call lock = { "pthread_mutex_lock", (void *)on_lock };
    calls_are_redirected = krait_got_redirect((void *)PyEval_SaveThread, calls, KRAIT_ARRAY_LEN(calls)) == 0;
    if (calls_are_redirected)
        krait_got_redirect((void *)PyEval_SaveThread, &lock, 1); /* else waiting for a mutex is not seen */
}

/* A place that was free, filled, or NULL. None in which a thread still waits for the GIL that was there before: it goes away
 * under that GIL's mutex. */
static struct krait_gil *claim(const struct learning *seen, uint32_t id)
{
    for (uint32_t i = 0; i < GILS_MAX; i++) {
        const void *none = NULL;
        if (gils[i].waiters || !atomic_compare_exchange_strong(&gils[i].cond, &none, &gils[i]))
            continue;
        /* Who finds it by one of the four addresses (acquire) sees its id and holder: they are stored before each (release). */
        atomic_store_explicit(&gils[i].holder, self.tid, memory_order_relaxed);
        atomic_store_explicit(&gils[i].id, id, memory_order_relaxed);
        for (size_t m = 0; m < KRAIT_ARRAY_LEN(seen->mutexes); m++)
            atomic_store_explicit(&gils[i].mutexes[m], seen->mutexes[m], memory_order_release);
        atomic_store_explicit(&gils[i].switched, seen->conds[1], memory_order_release);
        atomic_store_explicit(&gils[i].cond, seen->conds[0], memory_order_release);
        uint32_t used = atomic_load(&gil_used);
        while (used < i + 1 && !atomic_compare_exchange_weak(&gil_used, &used, i + 1))
            ;
        return &gils[i];
    }
    return NULL;
}

/* What it learns is not on the stack: if the interpreter ends meanwhile, so may the thread, within PyEval_RestoreThread(), and what
 * it locks while it ends is still noted. */
static struct krait_gil *find(uint32_t id)
{
    struct learning *seen = calloc(1, sizeof(*seen));
    if (!seen)
        return NULL;
    self.gil = NULL;
    self.learning = seen;
    self.locks = LEARNS;
    PyEval_RestoreThread(PyEval_SaveThread());
    self.locks = HOLDS;
    self.learning = NULL;
    self.tid = (uint32_t)syscall(SYS_gettid);
    struct krait_gil *gil = self.gil; /* another interpreter's too */
    if (!gil && seen->n == KRAIT_ARRAY_LEN(seen->conds) && seen->conds[0] != seen->conds[1])
        gil = claim(seen, id);
    free(seen);
    return gil;
}

void krait_gil_watch(struct krait_interp *in)
{
    enum { AWAKE_US = 10, US_PER_S = 1000000 };
    static pthread_once_t once =
        PTHREAD_ONCE_INIT; /* interpreters with GILs of their own may come at a time */
    if (!krait_agent.gil || in->gil)
        return;
    atomic_store(&awake_ticks, krait_agent.writer.shm.control->clock_freq * AWAKE_US / US_PER_S);
    pthread_once(&once, redirect_calls);
    struct krait_gil *gil = calls_are_redirected ? find((uint32_t)in->id) : NULL;
    if (in->gil) /* another thread has found it meanwhile */
        return;
    in->gil = gil;
    if (gil)
        atomic_fetch_add(&gil->interps, 1);
    else if (is_recording()) /* or another has stopped it */
        krait_writer_lost(&krait_agent.writer, KRAIT_lost_reason_gil, 1);
}

void krait_gil_forget(struct krait_interp *in)
{
    struct krait_gil *gil = in->gil;
    in->gil = NULL;
    if (!gil || atomic_fetch_sub(&gil->interps, 1) > 1)
        return;
    for (size_t m = 0; m < KRAIT_ARRAY_LEN(gil->mutexes); m++)
        atomic_store(&gil->mutexes[m], NULL);
    atomic_store(&gil->switched, NULL);
    atomic_store(&gil->cond, NULL);
}

void krait_gil_forked(void)
{
    for (uint32_t i = 0; i < GILS_MAX; i++)
        gils[i].waiters = 0;
    krait_gil_drop_pending();
    self.last = 0;
    self.tid = 0;
    self.locks = HOLDS;
}
