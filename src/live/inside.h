/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of live/: a thread's state.
 *
 *   code id ──index──▶ row      stack: rows of the open calls, outermost first; 0 at the bottom is what is outside of all
 *
 * Each event adds the time since the one before to the innermost call's row, so `own` needs no addition at a call's end. `total`
 * counts from where a function is entered that is not open yet to where it is left for good.
 *
 * What does not balance is handled as trace/stack.h does it for recordings.
 */
#ifndef KRAIT_LIVE_INSIDE_H
#define KRAIT_LIVE_INSIDE_H

#include "base/map.h"
#include "event/payload.h"
#include "live/live.h"
#include "record/shm.h"

struct live_ticks {
    uint64_t calls, own, total;
};

struct live_row {
    struct live_ticks all;
    uint64_t entered; /* since when it is open */
    uint32_t depth;   /* how often it is open */
    uint32_t code;
    uint32_t func;          /* KRAIT_NO_ID: not known yet */
    uint32_t caller[2];     /* rows that called it last */
    struct live_ticks mark; /* `all` at the end of the last interval */
    struct live_ticks last; /* in it */
};

/* On the stack: a row's number, and whether it is a C call. */
static inline uint32_t live_open(uint32_t row, bool is_c)
{
    return row << 1 | is_c;
}

struct live_stack {
    uint32_t *items;
    uint32_t len, cap;
};

struct live_omit {
    uint64_t t;
    uint32_t code;
};

struct live_task {
    uint32_t id;   /* 0: none in this place */
    uint32_t code; /* of its coroutine; 0: not known */
    const char *name;
    uint32_t group;  /* KRAIT_NO_ID: it has not run */
    uint32_t counts; /* the `resets` during which it was counted, + 1; 0: never */
};

struct live_steps {
    uint64_t steps, running;
};

struct live_group {
    uint32_t func;
    const char *name;
    uint64_t tasks;
    struct live_steps all, mark, last; /* as of a row */
    uint64_t longest, last_longest, all_longest;
};

struct live_process {
    pid_t pid;       /* 0: none in this slot */
    uint32_t *funcs; /* by code id */
    uint32_t func_cap;
    struct live_omit *omits; /* in the order of time */
    uint32_t omit_count, omit_cap;
    struct krait_live_thread *names; /* of threads that are not there yet, too */
    uint32_t name_count, name_cap;
    struct live_task *tasks; /* by place_of(id) */
    uint32_t task_cap;
};

struct live_thread {
    struct krait_live_thread about;
    uint32_t slot; /* of its process */
    uint32_t *index;
    uint32_t index_cap;
    struct live_row *rows; /* 0: outside of all calls */
    uint32_t row_count, row_cap;
    struct krait_map callers; /* rows: caller << 32 | callee */
    struct live_stack stack;
    struct live_stack *left; /* of greenlets that wait, by their numbers */
    uint32_t left_cap;
    uint64_t t;                 /* up to here time is counted */
    uint64_t border;            /* of the next omit; UINT64_MAX: none */
    uint32_t omitted;           /* how many of its process's were seen */
    bool in_run;                /* of python:frame */
    uint32_t run_at, run_depth; /* where the run is in the stack */
    uint64_t wait_t, gc_t,
        step_t; /* since when it waits for the GIL, collects, is in a step; 0: it does not */
    uint64_t gc_id;
    uint32_t task;  /* of the step */
    uint64_t ran_t; /* up to here the step is counted */
};

struct krait_live {
    struct krait_tap tap;
    const struct krait_clock *clock;
    struct live_process procs[KRAIT_PROCS_MAX];
    struct live_thread **threads;
    uint32_t thread_count, thread_cap;
    struct live_thread *gone; /* the sums of many that have ended; NULL: none yet */
    struct krait_map rings;   /* to live_thread * */
    struct krait_live_func *funcs;
    uint32_t func_count, func_cap;
    struct krait_strtab func_keys, texts;
    struct live_group *groups; /* of tasks */
    uint32_t group_count, group_cap;
    struct krait_strtab group_keys;
    struct krait_live_figures now, last, all; /* in ticks; `now` is the interval that goes on */
    uint64_t turned;
    uint32_t dropped, threads_begun, processes_begun, resets;
    char python[32];
    bool failed; /* memory was out: something is not counted */
};

/* ---- live.c ---- */

/* The row of a code, which is made; 0 without memory. */
uint32_t live_row_of(struct krait_live *live, struct live_thread *thread, uint32_t code);

const char *live_keep_text(struct krait_live *live, const char *text);
uint64_t live_ns(const struct krait_live *live, uint64_t ticks);
/* Never NULL; valid until the next function. */
const struct krait_live_func *live_func(const struct krait_live *live, uint32_t id);

/* ---- tasks.c ---- */

void live_define_task(struct krait_live *live, struct live_process *proc,
                      const struct krait_payload_task_define *task);
void live_task_runs(struct krait_live *live, struct live_thread *thread, uint64_t t, uint32_t task);
void live_task_ends_step(struct krait_live *live, struct live_thread *thread, uint64_t t);
void live_task_settle(struct krait_live *live, struct live_thread *thread, uint64_t t);
void live_turn_groups(struct krait_live *live);
void live_reset_groups(struct krait_live *live);

/* ---- fold.c ---- */

uint64_t live_fold(void *live, uint32_t ring, const struct krait_packet_head *head, const uint8_t *events,
                   size_t n);
/* Counts what is open up to t. */
void live_settle(struct krait_live *live, struct live_thread *thread, uint64_t t);
/* Ends what is open, at the last time that is counted. */
void live_cut(struct live_thread *thread, uint32_t len);

#endif
