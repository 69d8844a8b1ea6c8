/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers that are being made: how far each is, and whether somebody still wants it. An answer runs in the thread of its
 * connection from its begin to its end.
 */
#ifndef KRAIT_SERVE_RUNNING_H
#define KRAIT_SERVE_RUNNING_H

#include "base/base.h"

struct krait_running {
    const char *name; /* of the endpoint */
    uint64_t done,
        total;      /* bytes of the trace that were read, and of all: it may be more than that or less */
    bool cancelled; /* atomic */
    uint16_t server, client; /* ports: of a connection that is closed nobody wants the answer; 0: not known */
    uint64_t begun_ns, looked_ns;
    int fd; /* of the connection; -1: not known yet */
    struct krait_running *next;
};

/* This thread begins to answer; `running` stays where it is until _end. */
void krait_running_begin(struct krait_running *running);
void krait_running_end(struct krait_running *running);

/* Whether what this thread does is still wanted; so is what is no answer. Who makes a long answer asks now and then. */
bool krait_running_goes_on(void);

/* krait_trace.progress of a trace that is served, from before its view is opened: threads of the view look at it. */
bool krait_running_progress(void *ctx, uint64_t bytes);

/* Ends all answers soon. Those that begin later are not meant. */
void krait_running_cancel_all(void);

/* Tells of each answer that has been running for some time. */
void krait_running_each(void (*fn)(void *ctx, const struct krait_running *running), void *ctx);

#endif
