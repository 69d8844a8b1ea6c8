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
 * Taking and dropping a GIL that nobody waits for costs two comparisons and a store. Events are written by
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

/* What is below `waiters` is changed with the GIL's mutex held. */
struct krait_gil {
    const void *_Atomic cond; /* NULL: free */
    const void *_Atomic switched;
    uint32_t waiters;
    uint32_t holder;          /* the thread that has it or had it last; 0: not known */
    _Atomic uint32_t interps; /* that share it */
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
    const void *conds[2];
    size_t n;
};

/* Of this thread. Small: it lies in the static TLS block, as krait_this_ring does. */
static __thread struct {
    uint64_t parts[PARTS]; /* not written yet; 0: it was not so */
    uint64_t last;
    struct krait_gil *gil; /* that it took last */
    struct learning *learning;
    uint32_t epoch;  /* krait_agent's, that the parts belong to */
    uint32_t holder; /* when the wait began */
    uint32_t tid;
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

static void put(uint64_t t, uint32_t event, uint32_t holder)
{
    enum { BYTES = sizeof(struct krait_event_extended) + sizeof(holder) };
    struct krait_ring *ring = krait_this_ring;
    if (ring == &krait_no_ring)
        return;
    t = KRAIT_MAX(t, ring->stated); /* a wait is written when it is over */
    int saved = errno;
    bool is_slow = ring->window == UINT64_MAX;
    enum krait_ring_room room = krait_writer_room(&krait_agent.writer, ring, t, BYTES);
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

void krait_gil_flush(void)
{
    bool ours = is_recording() && self.epoch == atomic_load(&krait_agent.epoch);
    for (size_t i = 0; i < PARTS && ours; i++) {
        if (self.parts[i])
            put(self.parts[i], part_events[i], i == WAIT_BEGIN ? self.holder : 0);
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

/* Notes that a part is reached. What a thread without a ring has kept goes when it waits again, or when it
 * is another recording's; and an end with it whose begin is not known. */
static void reach(size_t part)
{
    uint32_t epoch = atomic_load_explicit(&krait_agent.epoch, memory_order_relaxed);
    if (self.parts[TAKEN] || self.epoch != epoch)
        krait_gil_drop_pending();
    self.epoch = epoch;
    bool has_begun = part != SWITCH_END || self.parts[SWITCH_BEGIN];
    self.parts[part] = has_begun && is_recording() ? now() : 0;
}

static void take_note(struct krait_gil *gil)
{
    gil->holder = self.tid;
    self.gil = gil;
}

static void taken(struct krait_gil *gil)
{
    self.tid = self.tid ? self.tid : (uint32_t)syscall(SYS_gettid);
    take_note(gil);
    if (!gil->waiters && !self.parts[WAIT_BEGIN] && !self.parts[SWITCH_BEGIN])
        return;
    reach(TAKEN);
    if (krait_this_ring != &krait_no_ring)
        krait_gil_flush();
}

static void dropped(const struct krait_gil *gil)
{
    if (gil->waiters && is_recording())
        put(now(), KRAIT_EVENT_gil_drop, 0);
}

/* ---- the interpreter's calls ---- */

static struct krait_gil *gil_of_cond(const void *cond)
{
    uint32_t n = atomic_load_explicit(&gil_used, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&gils[i].cond, memory_order_relaxed) == cond)
            return &gils[i];
    }
    return NULL;
}

static struct krait_gil *gil_of_switched(const void *cond)
{
    uint32_t n = atomic_load_explicit(&gil_used, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&gils[i].switched, memory_order_relaxed) == cond)
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
    if (learning->n < KRAIT_ARRAY_LEN(learning->conds))
        learning->conds[learning->n] = cond;
    learning->n++;
}

static KRAIT_COLD int signal_slowly(pthread_cond_t *cond)
{
    struct krait_gil *gil = gil_of_switched(cond);
    if (gil)
        taken(gil);
    else if ((gil = gil_of_cond(cond)) != NULL)
        dropped(gil);
    else
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
        self.parts[WAIT_BEGIN] | self.parts[SWITCH_BEGIN])
        return signal_slowly(cond);
    take_note(first);
    return pthread_cond_signal(cond);
}

static int on_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct krait_gil *gil = gil_of_cond(cond);
    if (!gil)
        return pthread_cond_timedwait(cond, mutex, until);
    if (!self.parts[WAIT_BEGIN] || self.parts[TAKEN]) {
        reach(WAIT_BEGIN);
        self.holder = gil->holder;
    }
    gil->waiters++;
    int rc = pthread_cond_timedwait(cond, mutex, until);
    gil->waiters--;
    return rc;
}

static int on_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    if (!gil_of_switched(cond))
        return pthread_cond_wait(cond, mutex);
    reach(SWITCH_BEGIN);
    int rc = pthread_cond_wait(cond, mutex);
    reach(SWITCH_END);
    return rc;
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
    calls_are_redirected = krait_got_redirect((void *)PyEval_SaveThread, calls, KRAIT_ARRAY_LEN(calls)) == 0;
}

/* A free place, or NULL. None in which a thread still waits for the GIL that was there before: it goes away
 * under that GIL's mutex. */
static struct krait_gil *claim(const struct learning *seen)
{
    for (uint32_t i = 0; i < GILS_MAX; i++) {
        const void *none = NULL;
        if (gils[i].waiters || !atomic_compare_exchange_strong(&gils[i].cond, &none, seen->conds[0]))
            continue;
        gils[i].holder = self.tid;
        atomic_store(&gils[i].switched, seen->conds[1]);
        uint32_t used = atomic_load(&gil_used);
        while (used < i + 1 && !atomic_compare_exchange_weak(&gil_used, &used, i + 1))
            ;
        return &gils[i];
    }
    return NULL;
}

static struct krait_gil *find(void)
{
    struct learning seen = { 0 };
    self.gil = NULL;
    self.learning = &seen;
    PyEval_RestoreThread(PyEval_SaveThread());
    self.learning = NULL;
    self.tid = (uint32_t)syscall(SYS_gettid);
    if (self.gil) /* another interpreter's too */
        return self.gil;
    bool known = seen.n == KRAIT_ARRAY_LEN(seen.conds) && seen.conds[0] != seen.conds[1];
    return known ? claim(&seen) : NULL;
}

void krait_gil_watch(struct krait_interp *in)
{
    static pthread_once_t once =
        PTHREAD_ONCE_INIT; /* interpreters with GILs of their own may come at a time */
    if (!krait_agent.gil || in->gil)
        return;
    pthread_once(&once, redirect_calls);
    struct krait_gil *gil = calls_are_redirected ? find() : NULL;
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
}
