/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that are being answered: their progress, and whether the client still waits. An answer runs in the thread of
 * its connection from begin to end.
 */
#ifndef KRAIT_SERVE_RUNNING_H
#define KRAIT_SERVE_RUNNING_H

#include "base/base.h"

struct krait_running {
    const char *name; /* of the endpoint */
    /* Bytes of the trace that were read, and its size; an answer may read more or less than that. */
    uint64_t done, total;
    bool cancelled;          /* atomic */
    uint16_t server, client; /* ports; a closed connection cancels the answer; 0: not known */
    uint64_t begun_ns, looked_ns;
    int fd; /* of the connection; -1: not known yet */
    struct krait_running *next;
};

/* This thread starts an answer. `running` must stay valid until _end. */
void krait_running_begin(struct krait_running *running);
void krait_running_end(struct krait_running *running);

/* Whether to continue this thread's answer; always true in threads that make no answer. Long answers have to check
 * this now and then. */
bool krait_running_goes_on(void);

/* krait_trace.progress of a trace that is served, from before its view is opened: threads of the view look at it. */
bool krait_running_progress(void *ctx, uint64_t bytes);

/* Cancels all current answers. Answers that start later are not affected. */
void krait_running_cancel_all(void);

/* Calls back for each answer that has been running for some time. */
void krait_running_each(void (*fn)(void *ctx, const struct krait_running *running), void *ctx);

#endif
