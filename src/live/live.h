/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact sums of calls by function and thread while programs are being recorded.
 *
 *   collector ──tap──▶ krait_live ──each──▶ rows
 *
 * Only the collector's thread may call these functions. Texts and functions that rows point to belong to
 * krait_live and stay valid during the callback. If memory runs out, krait_live goes on with sums that are too low.
 */
#ifndef KRAIT_LIVE_LIVE_H
#define KRAIT_LIVE_LIVE_H

#include "base/clock.h"
#include "base/err.h"
#include "record/tap.h"

#include <sys/types.h>

struct krait_live;

/* Returns 0, or -ENOMEM. */
int krait_live_new(struct krait_live **out);
void krait_live_free(struct krait_live *live);

/* The tap for the collector's options. live owns it. */
const struct krait_tap *krait_live_tap(struct krait_live *live);
/* Sets the collector's clock, which must outlive live. Call it before the collector reads events. */
void krait_live_set_clock(struct krait_live *live, const struct krait_clock *clock);

/* All times `now` are in ticks of the clock. */

/* Ends an interval; call it just after a round of the collector. The sums since the previous call become `last`. Open
 * calls count up to `now`. Older events that the collector reads later count as if they happened at `now`. All results below, but
 * those of the newest calls, are of this moment until the next call. */
void krait_live_turn(struct krait_live *live, uint64_t now);
/* Sets all sums to 0; open calls count from `now` on. */
void krait_live_reset(struct krait_live *live, uint64_t now);
/* Ends all open calls, because recording is switched off. The recorder states its stacks again when it resumes. */
void krait_live_pause(struct krait_live *live, uint64_t now);
/* Goes on at `now`: the interval does not contain the pause. */
void krait_live_resume(struct krait_live *live, uint64_t now);

/* ---- what threads do ---- */

enum { KRAIT_LIVE_STATES = 9 };

/* Somebody has looked at a thread at `t`: it was in that state, whatever that means. All calls that were open then have it. `t` is
 * not before an earlier look's, nor before events that were read. A thread that waits for the GIL by its events is in the state
 * `gil` instead. */
struct krait_live_look {
    pid_t pid, tid;
    uint64_t t;
    uint8_t state, gil;
};
void krait_live_look(struct krait_live *live, const struct krait_live_look *look);

/* ---- results ---- */

struct krait_live_func {
    const char *module, *name, *file;
    const char *label; /* the name; for C functions outside builtins with the module */
    uint32_t line;
    bool is_c;
    bool was_dropped;   /* --max-overhead dropped it, so later calls are not counted */
    bool holds_dropped; /* its self time includes callees that --max-overhead dropped */
    const char *marked; /* the label, followed by KRAIT_HOLDS_DROPPED if holds_dropped */
    bool is_poll;       /* an event loop waits in it */
    bool is_pause;      /* stands for the pauses of --max-overhead, not for a function */
};

struct krait_live_thread {
    pid_t pid, tid; /* 0: the merged sums of ended threads */
    char name[32];
    bool has_ended;
};

/* Times in ns. A recursive function counts once in `total`. */
struct krait_live_sum {
    uint64_t calls, own, total;
};

struct krait_live_row {
    const struct krait_live_func *func;
    uint32_t func_id; /* same id for the same function in all processes */
    uint32_t thread_id;
    const struct krait_live_thread *thread;
    struct krait_live_sum all;  /* since the last reset */
    struct krait_live_sum last; /* of the last interval */
    uint64_t calls_now;         /* since the last reset up to this moment */
    /* How often a look found the function on the stack, by the thread's state; a recursion counts once. NULL: never. */
    const uint32_t *all_states, *last_states;
};

/* Calls fn for each function of each thread. Stops at the first result that is not 0, and returns it. */
typedef int krait_live_row_fn(void *ctx, const struct krait_live_row *row);
int krait_live_each(struct krait_live *live, krait_live_row_fn *fn, void *ctx);

/* ---- the newest calls ---- */

/* From now on, keeps what a clock shows that turns once in `turn_ns`; 0: no longer. With another `turn_ns` it begins anew. While it
 * does, krait_live reads events more slowly. Returns 0 or -ENOMEM. */
int krait_live_watch(struct krait_live *live, uint64_t turn_ns);

/* Until held is false again, what is kept stays as it is. */
void krait_live_hold(struct krait_live *live, bool held);

/* A call that ended within the last turn. Of those that ended within the same 720th part of a turn, and whose durations differ by
 * less than a quarter, there is only the newest. Calls that began before krait_live_watch are left out. */
struct krait_live_ray {
    const struct krait_live_func *func;
    double angle; /* when it ended: from 0 to 1 */
    double age;   /* since then, in turns */
    uint64_t ns;  /* how long it took, rounded down by less than a quarter */
};
/* Calls fn for each, beginning with those that ended first, and of one part with the shortest. Stops at the first result that is
 * not 0, and returns it. */
typedef int krait_live_ray_fn(void *ctx, const struct krait_live_ray *ray);
int krait_live_each_ray(const struct krait_live *live, uint64_t now, krait_live_ray_fn *fn, void *ctx);
/* The angle of `now`. */
double krait_live_hand(const struct krait_live *live, uint64_t now);

struct krait_live_steps {
    uint64_t steps, running, longest; /* times in ns */
};

/* All tasks with the same coroutine and the same name; tasks without a chosen name are grouped by coroutine alone. */
struct krait_live_task {
    const struct krait_live_func *func; /* the coroutine */
    const char *name;                   /* "": the program set no name */
    uint64_t tasks;                     /* number of tasks that ran since the last reset */
    struct krait_live_steps all, last;
};

/* Like krait_live_each, for groups of tasks. */
typedef int krait_live_task_fn(void *ctx, const struct krait_live_task *task);
int krait_live_each_task(struct krait_live *live, krait_live_task_fn *fn, void *ctx);

/* Totals of the last interval, or since the last reset. Times in ns. */
struct krait_live_figures {
    uint64_t ns;        /* length of the interval */
    uint64_t events;    /* events read */
    uint64_t gil_wait;  /* time waiting for the GIL, summed over threads */
    uint64_t gil_waits; /* number of GIL waits */
    uint64_t gil_held; /* time in Python code, from a thread's first event on; C code may hold the GIL, too */
    uint64_t gc;       /* time in the garbage collector */
    uint64_t steps;    /* steps of tasks that ended */
    uint64_t longest;  /* longest step, which blocked its event loop for that time */
    uint64_t lag;      /* longest turn of an event loop, from its first step to the end of the last one */
    uint64_t pauses;   /* pauses of --max-overhead, summed over threads */
    uint64_t looks;    /* krait_live_look, of threads that are known */
    /* Of the last interval: how many were recorded at its end. Since the last reset: how many ever were. */
    uint32_t threads, processes;
    uint32_t dropped; /* functions that --max-overhead has dropped so far */
};

struct krait_live_figures krait_live_figures_last(const struct krait_live *live);
struct krait_live_figures krait_live_figures_all(const struct krait_live *live);

/* The Python version of the first process, such as "3.13.0"; "" until it is known. */
const char *krait_live_python(const struct krait_live *live);

#endif
