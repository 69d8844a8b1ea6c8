/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of live/: the state of a thread, shared by its files.
 *
 *   code id ──index──▶ row      stack: rows of the open calls, outermost first; row 0 at the bottom holds time outside all calls
 *
 * Each event adds the time since the previous event to `own` of the innermost call's row. `total` runs from the
 * outermost entry of a function to its outermost exit, so a recursive function counts once.
 *
 * Unbalanced begins and ends are handled as trace/stack.h handles them for recordings. Times are in ticks of the
 * collector's clock. Only the collector's thread calls these functions.
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
    struct live_ticks all; /* up to this moment; what is shown is of the end of the last interval */
    uint64_t entered;      /* time of the outermost entry, or of the last settling */
    uint32_t depth;        /* number of open calls */
    uint32_t code;
    uint32_t func;          /* KRAIT_NO_ID: not known yet */
    uint32_t caller[2];     /* rows of the two latest callers */
    struct live_ticks mark; /* `all` at the end of the last interval */
    struct live_ticks last; /* sums of the last interval */
};

/* Looks that met a row, by state; as in struct live_row. */
struct live_states {
    uint32_t all[KRAIT_LIVE_STATES], mark[KRAIT_LIVE_STATES], last[KRAIT_LIVE_STATES];
    uint32_t stamp; /* of the latest look */
};

/* An item of the stack: the number of a row, and in bit 0 whether the call is a C call. */
static inline uint32_t live_open(uint32_t row, bool is_c)
{
    return row << 1 | is_c;
}

struct live_stack {
    uint32_t *items;
    uint64_t *begun; /* while calls are watched: when each began, 0 if that is not known; else NULL */
    uint32_t len, cap, begun_cap;
};

struct live_omit {
    uint64_t t;
    uint32_t code;
};

/* A time in which the recording is switched off, or what is recorded changes. */
struct live_gap {
    uint64_t from, to; /* UINT64_MAX: it goes on */
};

struct live_task {
    uint32_t id;   /* 0: the slot is free */
    uint32_t code; /* of its coroutine; 0: not known */
    const char *name;
    uint32_t group;  /* KRAIT_NO_ID: it has not run */
    uint32_t counts; /* `resets` + 1 when the task was last counted; 0: never */
};

struct live_steps {
    uint64_t steps, running;
};

struct live_group {
    uint32_t func;
    const char *name;
    uint64_t tasks, mark_tasks;
    struct live_steps all, mark, last; /* as in struct live_row */
    uint64_t longest, last_longest, all_longest;
};

struct live_process {
    pid_t pid;       /* 0: the slot is free */
    uint32_t *funcs; /* function ids by code id */
    uint32_t func_cap;
    struct live_omit *omits; /* in order of time */
    uint32_t omit_count, omit_cap;
    struct live_gap gaps[16]; /* the latest, each at its number modulo their count */
    uint32_t gap_count;
    struct krait_live_thread *names; /* also of threads that have no ring yet */
    uint32_t name_count, name_cap;
    struct live_task *tasks; /* by place_of(id) */
    uint32_t task_cap;
    uint64_t gil_held; /* within krait_live_turn */
};

struct live_thread {
    struct krait_live_thread about;
    uint32_t slot; /* of its process */
    uint32_t *index;
    uint32_t index_cap;
    struct live_row *rows; /* row 0: time outside all calls */
    uint32_t row_count, row_cap;
    struct krait_map callers; /* rows: caller << 32 | callee */
    struct live_stack stack;
    struct live_stack *left; /* stacks of suspended greenlets, by greenlet number */
    uint32_t left_cap;
    struct krait_live_look *looks; /* those that the events have not reached, in order of time */
    uint32_t look_count, look_cap;
    struct live_states *states; /* by row; NULL: nobody has looked */
    uint32_t state_cap, stamp;
    uint64_t t;                 /* time is counted up to here */
    uint64_t border;            /* time of the next omit or look; UINT64_MAX: none */
    uint32_t omitted;           /* number of the process's omits that were applied */
    bool in_run;                /* within a run of python:frame events */
    uint32_t run_at, run_depth; /* position of the run in the stack */
    uint64_t wait_t, gc_t,
        step_t; /* begin of the GIL wait, garbage collection or task step that is open; 0: none */
    uint64_t gc_id;
    uint32_t task;   /* of the step */
    uint64_t ran_t;  /* the step is counted up to here */
    uint32_t poll;   /* row of the function in which its event loop waits; 0: none so far */
    uint64_t polls;  /* how often it had been called when the turn of the event loop that is open began */
    uint64_t loop_t; /* begin of that turn; 0: none */
    uint64_t wait_in_python; /* in this interval: what of its waits for the GIL was in Python code */
    uint64_t silent_t;       /* since then it has done nothing but have its stack stated; 0: it has */
};

struct krait_live {
    struct krait_tap tap;
    const struct krait_clock *clock;
    struct live_process procs[KRAIT_PROCS_MAX];
    struct live_thread **threads;
    uint32_t thread_count, thread_cap;
    struct live_thread *gone; /* merged sums of the oldest ended threads; NULL: none yet */
    struct krait_map rings;   /* ring number to live_thread * */
    struct krait_map by_tid;  /* pid << 32 | tid to live_thread *, or 0 if it has ended */
    struct krait_live_func *funcs;
    uint32_t func_count, func_cap;
    struct krait_strtab func_keys, texts;
    struct live_group *groups; /* of tasks */
    uint32_t group_count, group_cap;
    struct krait_strtab group_keys;
    struct krait_live_figures now, last, all; /* in ticks; `now` is the current interval */
    struct live_rays *rays;                   /* NULL: calls are not watched */
    uint64_t turned, paused;
    uint32_t dropped, threads_begun, processes_begun, resets;
    char python[32];
    bool failed; /* memory ran out, so some sums are too low */
};

/* ---- live.c ---- */

/* The row of a code, which it adds if there is none. Returns 0 if memory runs out. */
uint32_t live_row_of(struct krait_live *live, struct live_thread *thread, uint32_t code);

/* A copy of text that live owns; "" if memory runs out. */
const char *live_keep_text(struct krait_live *live, const char *text);
uint64_t live_ns(const struct krait_live *live, uint64_t ticks);
/* Never NULL; valid until the next function is defined. */
const struct krait_live_func *live_func(const struct krait_live *live, uint32_t id);

/* The function after which a task is called whose coroutine is of that one: see event/own.h. Sets live->failed if memory runs
 * out. */
uint32_t live_stands_for(struct krait_live *live, uint32_t id);

/* ---- tasks.c ---- */

/* Stores the name and the coroutine of a task. Sets live->failed if memory runs out. */
void live_define_task(struct krait_live *live, struct live_process *proc,
                      const struct krait_payload_task_define *task);
/* Begins a step of a task at t; ends the step before if its end was lost. */
void live_task_runs(struct krait_live *live, struct live_thread *thread, uint64_t t, uint32_t task);
void live_task_ends_step(struct krait_live *live, struct live_thread *thread, uint64_t t);
/* Counts the open step up to t. */
void live_task_settle(struct krait_live *live, struct live_thread *thread, uint64_t t);
/* Ends an interval, or forgets the sums, of all groups. */
void live_turn_groups(struct krait_live *live);
void live_reset_groups(struct krait_live *live);

/* ---- looks.c ---- */

/* A thread that can be looked at from now on, or not any more. */
void live_know_thread(struct krait_live *live, struct live_thread *thread);
void live_forget_thread(struct krait_live *live, const struct live_thread *thread);
/* Counts the oldest look, at the stack as it is. Sets live->failed if memory runs out. */
void live_count_look(struct krait_live *live, struct live_thread *thread);
/* Ends an interval, or forgets the sums, of a thread's rows. */
void live_turn_looks(struct live_thread *thread);
void live_reset_looks(struct live_thread *thread);
/* Adds a row's looks to another's. */
void live_add_states(struct live_thread *to, uint32_t to_row, const struct live_thread *from, uint32_t row);

/* ---- rays.c ---- */

enum {
    LIVE_PLACES = 720,    /* of a turn */
    LIVE_LENGTHS = 4 * 64 /* four for each doubling */
};

/* The calls that ended within one part of a turn. */
struct live_place {
    uint64_t number; /* of the part, counted from tick 0 */
    /* By length: the function of the newest such call, plus 1; 0: there is none. */
    uint32_t funcs[LIVE_LENGTHS];
};

struct live_rays {
    uint64_t ticks; /* of a place */
    bool held;
    struct live_place places[LIVE_PLACES];
};

/* Notes a call from `begun` (0: not known) to `t` of a function (KRAIT_NO_ID: not known). hot path */
static inline void live_note_call(struct live_rays *rays, uint64_t begun, uint64_t t, uint32_t func)
{
    uint64_t number = t / rays->ticks, ticks = t - begun;
    struct live_place *place = &rays->places[number % LIVE_PLACES];
    unsigned top = 63 - (unsigned)__builtin_clzll(ticks | 4);
    if (!begun || number < place->number || rays->held)
        return;
    if (number > place->number)
        *place = (struct live_place){ .number = number };
    place->funcs[top * 4 + (ticks >> (top - 2) & 3)] = func + 1;
}

/* Makes room for the time of one more call. Returns false if memory runs out. */
bool live_watch_stack(struct live_stack *stack, uint32_t len);

/* ---- fold.c ---- */

/* Adds n bytes of events of a packet to the sums of the ring's thread. Returns the number of events. hot path */
uint64_t live_fold(void *live, uint32_t ring, const struct krait_packet_head *head, const uint8_t *events,
                   size_t n);
/* Counts open calls, GIL waits and steps up to t. */
void live_settle(struct krait_live *live, struct live_thread *thread, uint64_t t);
/* Ends open calls at thread->t until the stack has len items, row 0 included. */
void live_cut(struct live_thread *thread, uint32_t len);

#endif
