/* SPDX-License-Identifier: Apache-2.0
 *
 * --max-overhead: keeps the time that recording takes below a share of the time that passes.
 *
 * What a call costs is known; so the calls say what was spent. Every few hundred calls the governor compares
 * that with what the budget allows since the beginning. When it is over, it leaves out the functions that
 * made most of the calls since its last look, until what remains would fit: a function that is called so
 * often is, by that alone, a short one, and its many records tell little. What is left out is written as
 * code:omit, so that readers know.
 */
#include "python/codes.h"
#include "python/compat.h"

#include <signal.h>

enum {
    FIRST_WINDOW = 256,
    MAX_WINDOW = 65536,
    CANDIDATES = 64,
};

/* What the interpreter adds around our callback, for a begin and its end, in ns: FACTS of each version as
 * measured by bench/ (the hook with an empty callback, C calls and Python calls alike). Our own part is
 * measured on the spot. */
static uint64_t hook_ns(void)
{
    if (krait_compat.version >= 0x030c)
        return 30;
    return krait_compat.version == 0x030b ? 106 : 16;
}

/* Our part: two clock readings and two stores, measured in a ring of its own. */
static uint64_t measure_ticks(struct krait_agent *agent)
{
    enum { ROUNDS = 512 };
    static uint8_t scratch[16 * ROUNDS + 64];
    struct krait_ring ring = { .cur = scratch, .limit = scratch + sizeof(scratch) };
    uint64_t begin = krait_writer_now(&agent->writer);
    ring.window = begin >> KRAIT_CTF_TS_BITS;
    for (int i = 0; i < ROUNDS; i++) {
        krait_ring_put_code(&ring, krait_writer_now(&agent->writer), KRAIT_EVENT_python_call, 1);
        krait_ring_put(&ring, krait_writer_now(&agent->writer), KRAIT_EVENT_python_return);
    }
    return (krait_writer_now(&agent->writer) - begin) / ROUNDS;
}

void krait_governor_init(struct krait_interp *in)
{
    struct krait_agent *agent = in->agent;
    const struct krait_control *control = agent->writer.shm.control;
    in->governor = (struct krait_governor){ .left = INT64_MAX };
    if (!control->max_overhead_ppm)
        return;
    agent->hook_ticks = hook_ns() * control->clock_freq / KRAIT_NS_PER_S;
    agent->event_ticks = measure_ticks(agent) + agent->hook_ticks;
    in->governor.begin_ticks = krait_writer_now(&agent->writer);
    in->governor.left = in->governor.window = FIRST_WINDOW;
}

static void say_omitted(struct krait_interp *in, const struct krait_code *slot)
{
    struct krait_payload p = { 0 };
    krait_payload_u32(&p, slot->id);
    krait_payload_u8(&p, KRAIT_omit_reason_governor);
    krait_payload_u64(&p, slot->calls);
    if (in->definitions)
        krait_writer_event(&in->agent->writer, in->definitions, KRAIT_EVENT_code_omit, &p);
}

static void leave_out(struct krait_interp *in, struct krait_code *slot)
{
    say_omitted(in, slot);
    slot->flags |= KRAIT_CODE_OMIT | KRAIT_CODE_HOT;
    slot->id = 0;
}

/* Leaves out every function that made more than `most` calls since the last look. Returns whether there was
 * any. */
static bool cut(struct krait_interp *in, uint64_t most)
{
    bool any = false;
    for (size_t i = 0; i < 1ull << (64 - in->code_shift); i++) {
        struct krait_code *slot = &in->codes[i];
        if (!slot->key)
            continue;
        if (slot->id && slot->calls - slot->calls_before > most) {
            leave_out(in, slot);
            any = true;
        }
        slot->calls_before = slot->calls;
    }
    return any;
}

/* ---- before 3.12: pauses ----
 *
 * There the hook cannot be taken out of single functions, and costs most of what recording costs even for
 * those that are left out. So it is taken off all threads until the budget allows for more. What is recorded
 * between two pauses is complete. A short-lived thread wakes the interpreter up again: Py_AddPendingCall may
 * be called without the GIL. */

static int on_resume(void *arg)
{
    struct krait_interp *in = arg;
    if (atomic_load(&in->agent->running) && !atomic_load(&in->agent->forked) && !in->ended)
        krait_profile_resume(in);
    return 0;
}

static void *sleep_and_wake(void *arg)
{
    struct krait_interp *in = arg;
    struct timespec nap = { .tv_sec = (time_t)(in->governor.pause_ns / KRAIT_NS_PER_S),
                            .tv_nsec = (long)(in->governor.pause_ns % KRAIT_NS_PER_S) };
    nanosleep(&nap, NULL);
    if (Py_IsInitialized()) /* not from the moment the interpreter begins to end */
        Py_AddPendingCall(on_resume, in);
    return NULL;
}

/* The thread must not be one that the program's signals come to. */
static int start_sleeper(struct krait_interp *in)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attr, sleep_and_wake, in);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}

static void pause_recording(struct krait_interp *in, uint64_t over_ticks)
{
    enum { LEAST_PAUSE_MS = 100 };
    const struct krait_control *control = in->agent->writer.shm.control;
    double over_ns = (double)over_ticks * 1e9 / (double)control->clock_freq;
    in->governor.pause_ns =
        (uint64_t)(over_ns * 1e6 / control->max_overhead_ppm) + LEAST_PAUSE_MS * KRAIT_NS_PER_MS;
    if (start_sleeper(in) == 0)
        krait_profile_pause(in);
}

static void leave_out_more_soon(struct krait_governor *g)
{
    g->cuts++;
    g->window = FIRST_WINDOW;
}

void krait_governor_look(struct krait_interp *in)
{
    enum {
        CREDIT_US = 2000, /* what a program may spend at once: its start is all new functions */
        AIM_PERCENT = 60, /* of the budget: hooks that cannot be taken out, and caches, cost the rest */
    };
    struct krait_governor *g = &in->governor;
    const struct krait_control *control = in->agent->writer.shm.control;
    if (!g->window) {
        g->left = INT64_MAX;
        return;
    }
    int saved = errno;
    uint64_t passed = krait_writer_now(&in->agent->writer) - g->begin_ticks;
    uint64_t allowed =
        (uint64_t)((unsigned __int128)passed * control->max_overhead_ppm * AIM_PERCENT / 100000000) +
        control->clock_freq / 1000000 * CREDIT_US;
    g->spent_ticks += (g->window - g->idle) * in->agent->event_ticks + g->idle * in->agent->hook_ticks;
    g->idle = 0;
    if (g->spent_ticks <= allowed)
        g->window = KRAIT_MIN(g->window * 2, (uint64_t)MAX_WINDOW);
    else if (cut(in, g->window / CANDIDATES))
        leave_out_more_soon(g);
    else if (!krait_compat.monitoring)
        pause_recording(in, g->spent_ticks - allowed);
    g->left = (int64_t)g->window;
    errno = saved;
}
