/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact sums of calls, by function and thread, of programs that are recorded at this moment.
 *
 *   collector ──tap──▶ krait_live ──each──▶ rows
 *
 * No thread but the collector's uses it.
 */
#ifndef KRAIT_LIVE_LIVE_H
#define KRAIT_LIVE_LIVE_H

#include "base/clock.h"
#include "base/err.h"
#include "record/tap.h"

#include <sys/types.h>

struct krait_live;

int krait_live_new(struct krait_live **out);
void krait_live_free(struct krait_live *live);

/* For the collector's options. Owned by live. */
const struct krait_tap *krait_live_tap(struct krait_live *live);
/* The collector's clock, before anything is read. It is kept. */
void krait_live_set_clock(struct krait_live *live, const struct krait_clock *clock);

/* Ends an interval at a time of the clock, just after a round of the collector: what came since the one before becomes
 * `last`. Calls that are open count up to then. An event that is read later but is older counts as of then. */
void krait_live_turn(struct krait_live *live, uint64_t now);
/* Forgets all sums; what is open counts from now on. */
void krait_live_reset(struct krait_live *live, uint64_t now);
/* The recording is switched off: what is open ends here, and is stated again when the recording goes on. */
void krait_live_pause(struct krait_live *live, uint64_t now);
/* It goes on: the time between is no interval's. */
void krait_live_resume(struct krait_live *live, uint64_t now);

/* ---- what there is ---- */

struct krait_live_func {
    const char *module, *name, *file;
    const char *label; /* the name, of C functions with its module */
    uint32_t line;
    bool is_c;
    bool was_dropped;   /* by --max-overhead: not all of its calls are counted */
    bool holds_dropped; /* its time holds that of functions which were dropped since it called them */
    const char *marked; /* the label, then with KRAIT_HOLDS_DROPPED behind it */
    bool is_pause;      /* no function: the time of pauses for --max-overhead */
};

struct krait_live_thread {
    pid_t pid, tid; /* 0: of many that have ended */
    char name[32];
    bool has_ended;
};

/* Times in ns. A function that calls itself counts once in total. */
struct krait_live_sum {
    uint64_t calls, own, total;
};

struct krait_live_row {
    const struct krait_live_func *func;
    uint32_t func_id; /* the same in all processes */
    uint32_t thread_id;
    const struct krait_live_thread *thread;
    struct krait_live_sum all; /* since the last reset */
    struct krait_live_sum last;
};

/* Calls fn for each function of each thread, until it returns another value than 0, which is returned. */
typedef int krait_live_row_fn(void *ctx, const struct krait_live_row *row);
int krait_live_each(struct krait_live *live, krait_live_row_fn *fn, void *ctx);

struct krait_live_steps {
    uint64_t steps, running, longest; /* times in ns */
};

/* Tasks of one name, or without a name of their own those of one coroutine. */
struct krait_live_task {
    const struct krait_live_func *func; /* the coroutine */
    const char *name;                   /* "": nobody chose one */
    uint64_t tasks;                     /* how many have run since the last reset */
    struct krait_live_steps all, last;
};

typedef int krait_live_task_fn(void *ctx, const struct krait_live_task *task);
int krait_live_each_task(struct krait_live *live, krait_live_task_fn *fn, void *ctx);

/* What is no function's, of the last interval or of all the time since the reset. Times in ns. */
struct krait_live_figures {
    uint64_t ns;        /* how long it was */
    uint64_t events;    /* that came */
    uint64_t gil_wait;  /* how long threads waited for the GIL, added up */
    uint64_t gil_waits; /* how often */
    uint64_t gc;        /* how long the garbage collector ran */
    uint64_t steps;     /* of tasks */
    uint64_t longest;   /* of these: how long an event loop could run nothing else */
    uint64_t pauses;    /* how long --max-overhead had the recording off, in the threads added up */
};

struct krait_live_figures krait_live_figures_last(const struct krait_live *live);
struct krait_live_figures krait_live_figures_all(const struct krait_live *live);

/* Threads and processes that were recorded at any time, and that are now; functions that --max-overhead dropped
 * at some time. */
uint32_t krait_live_threads_all(const struct krait_live *live);
uint32_t krait_live_processes_all(const struct krait_live *live);
uint32_t krait_live_threads(const struct krait_live *live);
uint32_t krait_live_processes(const struct krait_live *live);
uint32_t krait_live_dropped(const struct krait_live *live);
/* "3.13.0", of the first process that said so; "" before. */
const char *krait_live_python(const struct krait_live *live);

#endif
