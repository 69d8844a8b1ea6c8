/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a server waits for work: its event loop, accept, workers at an empty queue, and threads that join these.
 *
 * The same functions also wait for things that the program asked for. So a wait counts as idle only if a loop that is
 * known to wait for work is right above it, and nothing above it is work that such a loop started. In doubt a wait is
 * drawn.
 */
#ifndef KRAIT_ANALYSIS_IDLE_H
#define KRAIT_ANALYSIS_IDLE_H

#include "trace/trace.h"

/* By func id. */
enum krait_idle_mark {
    KRAIT_IDLE_ACCEPT = 1 << 0, /* its own time is a wait for somebody to serve */
    KRAIT_IDLE_SELECT = 1 << 1, /* it waits for a descriptor or a job: idle right below ... */
    KRAIT_IDLE_LOOP = 1 << 2,   /* ... one of these */
    KRAIT_IDLE_LOCK = 1 << 3,   /* it waits for a lock: idle right below ... */
    KRAIT_IDLE_JOIN = 1 << 4,   /* ... one of these, */
    KRAIT_IDLE_QUEUE = 1 << 5,  /* ... or of these in a thread that ... */
    KRAIT_IDLE_THREAD = 1 << 6, /* ... begins with this: not the first */
    KRAIT_IDLE_WORK = 1 << 7,   /* a loop's work: below it no wait is idle */
};

/* Marks the functions of a trace, by func id; the caller frees *out. NULL: the program listened on no socket, and
 * none of its waits are idle. Returns 0, or -ENOMEM with *out untouched. */
int krait_idle_marks(uint8_t **out, const struct krait_trace *trace);

#endif
