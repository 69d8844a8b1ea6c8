/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of samples: for each thread and function, the number of stacks in which the function itself ran, or a function
 * that it called; the same for lines.
 */
#ifndef KRAIT_REMOTE_SUMS_H
#define KRAIT_REMOTE_SUMS_H

#include "remote/remote.h"

/* States that a thread can be in when its stack is read; whoever counts gives them their meanings. */
enum { KRAIT_SUMS_STATES = 9 };

/* The number of stacks that contain a place; a recursion counts once in a stack. */
struct krait_sum {
    uint64_t own, total;
    uint64_t states[KRAIT_SUMS_STATES]; /* those of total, by the thread's state */
};

/* A function, or a line of a function. */
struct krait_sums_place {
    const char *name, *file;
    int32_t line; /* the function's first line, or the line; 0: none */
};

struct krait_sums_thread {
    pid_t pid, tid; /* 0: a row for many threads that have ended */
    uint64_t ident; /* threading.get_ident() */
    char name[32];  /* the kernel's name */
    bool has_ended;
};

/* A place in a thread. */
struct krait_sums_row {
    uint32_t place, thread;
    struct krait_sum all;    /* from krait_sums_reset to krait_sums_turn */
    struct krait_sum recent; /* since then */
    struct krait_sum last;   /* `recent` as it was at that call */
    uint64_t stamp;          /* number of the stack that was counted last */
};

/* Rows of functions, or of lines. */
struct krait_sums_table {
    struct krait_sums_row *rows;
    uint32_t count, cap;
    struct krait_sums_place *places;
    uint32_t place_count, place_cap;
    struct krait_strtab place_keys; /* name, file, line -> place */
    struct krait_map by_code;       /* of a struct krait_remote_code * and a line -> place */
    struct krait_map by_place;      /* of a place and a thread -> row */
};

/* Sums of the rounds of reading, since the same moments. */
struct krait_sums_rounds {
    uint64_t rounds;
    uint64_t ns;       /* how long they took: from the first to the last */
    uint64_t stacks;   /* stacks that were counted */
    uint64_t gil;      /* GILs that a thread held, one a process and round */
    uint64_t gc;       /* processes whose garbage collector ran, one a process and round */
    uint64_t failures; /* stacks that could not be read */
};

struct krait_sums {
    struct krait_sums_table functions, lines;
    struct krait_sums_thread *threads;
    uint32_t thread_count, thread_cap;
    struct krait_strtab thread_keys; /* process, ident and number -> thread */
    struct krait_arena arena;
    struct krait_sums_rounds all, recent, last, now; /* now: the current round */
    uint64_t stamp;
};

void krait_sums_done(struct krait_sums *sums);

/* Counts the stacks that were read from one process; `states`: of its threads, NULL: all 0. Returns 0 or -ENOMEM. */
int krait_sums_add(struct krait_sums *sums, pid_t pid, const struct krait_remote_stacks *stacks,
                   const uint8_t *states);
/* Ends a round, which began `ns` after the previous one. */
void krait_sums_end_round(struct krait_sums *sums, uint64_t ns);

/* Ends an interval: the recent sums become the last ones, and a part of all. Until the next call these two stay as they are. */
void krait_sums_turn(struct krait_sums *sums);
/* Forgets everything except the places. */
void krait_sums_reset(struct krait_sums *sums);
/* A struct krait_remote has freed code objects: what has their addresses later may be others. The sums stay. */
void krait_sums_forget_codes(struct krait_sums *sums);
/* A process has ended, and its struct krait_remote is going to be freed. The sums stay. If many processes have
 * ended, their sums are added up in one thread without a number, so that a server that forks for each request does
 * not fill the memory. Returns 0 or -ENOMEM. */
int krait_sums_end_process(struct krait_sums *sums, pid_t pid);

#endif
