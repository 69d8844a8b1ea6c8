/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of samples: how often each function was running, itself or in a function that it called.
 */
#ifndef KRAIT_REMOTE_SUMS_H
#define KRAIT_REMOTE_SUMS_H

#include "remote/remote.h"

/* Numbers of threads in which a function was met; once a thread, however deep it recurs. */
struct krait_sum {
    uint64_t own, total;
};

struct krait_sums_row {
    const char *name, *file;
    int32_t line;            /* where the function begins */
    struct krait_sum all;    /* since krait_sums_reset */
    struct krait_sum recent; /* since krait_sums_turn */
    struct krait_sum last;   /* what `recent` was then */
    uint64_t stamp;          /* the stack that was counted last */
};

/* Of the rounds of reading, since the same moments. */
struct krait_sums_rounds {
    uint64_t rounds;
    uint64_t ns;       /* how long they took: from the first to the last */
    uint64_t threads;  /* stacks that were counted */
    uint64_t gil;      /* rounds in which a thread held the GIL */
    uint64_t failures; /* stacks that could not be read */
};

struct krait_sums {
    struct krait_sums_row *rows;
    uint32_t count, cap;
    struct krait_strtab keys; /* name, file, line -> row */
    struct krait_map by_code; /* struct krait_remote_code * -> row */
    struct krait_arena arena;
    struct krait_sums_rounds all, recent, last;
    uint64_t stamp;
};

void krait_sums_done(struct krait_sums *sums);

/* Counts the stacks of one round, which came `ns` after the one before. Returns 0 or -ENOMEM. */
int krait_sums_add(struct krait_sums *sums, const struct krait_remote_stacks *stacks, uint64_t ns);

/* Ends an interval: the recent sums become the last ones. */
void krait_sums_turn(struct krait_sums *sums);
/* Forgets all but the functions. */
void krait_sums_reset(struct krait_sums *sums);

#endif
