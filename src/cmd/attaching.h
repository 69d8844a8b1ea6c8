/* SPDX-License-Identifier: Apache-2.0
 *
 * Into a process that runs already, and out of it: `krait record --pid` and `krait top --exact`.
 */
#ifndef KRAIT_CMD_ATTACHING_H
#define KRAIT_CMD_ATTACHING_H

#include "record/collector.h"

#include <limits.h>
#include <sys/types.h>

enum krait_attaching_end {
    KRAIT_ATTACHING_LEFT,
    KRAIT_ATTACHING_WAITS, /* it leaves as soon as C code lets the GIL go */
    KRAIT_ATTACHING_STAYS, /* it could not be told, and leaves when it sees for itself that the recording is over */
};

struct krait_attaching {
    pid_t pid;
    bool (*over)(void *ctx);                   /* whether the user wants an end; NULL: nobody asks */
    void (*step)(void *ctx, const char *text); /* is told what is done; NULL: nobody is */
    void *ctx;
    const char *library;    /* the agent's path */
    uint64_t asked_ns;      /* when the process was told to load it */
    uint64_t paused_ns;     /* how long a thread of the process was stopped at most */
    uint32_t joined_before; /* how often it had joined the recording before */
    uint32_t begun_before;  /* ... and had begun to record */
    bool has_begun;         /* it is recorded, or ready for that while the recording is off; or was */
    bool is_ready;          /* then: it is ready, but not recorded yet */
    bool is_refused;        /* it has told why it cannot be recorded */
    enum krait_attaching_end end;
};

/* The agent's path, of at most `size` bytes. Returns 0, or why there is none, with err set. */
int krait_attaching_find(char *library, size_t size, struct krait_err *err);
/* Whether the process is one to record: a Python, ours, and in no other recording. */
int krait_attaching_check(pid_t pid, struct krait_err *err);

/* Makes the process load the agent, which then begins to record: krait_attaching_has_begun tells. */
int krait_attaching_begin(struct krait_attaching *attaching, struct krait_collector *collector,
                          struct krait_err *err);
/* 1: it is recorded, or ready for that while the recording is off; 0: not yet; or why it will not be, with err set. Between
 * calls, the collector needs rounds. */
int krait_attaching_has_begun(struct krait_attaching *attaching, const struct krait_collector *collector,
                              struct krait_err *err);
/* Whether it has begun, and is not part of the recording any more. */
bool krait_attaching_has_left(const struct krait_attaching *attaching,
                              const struct krait_collector *collector);
/* Lets the collector do a round, and sleeps for a millisecond. */
void krait_attaching_pause(struct krait_collector *collector);
/* Tells it to leave; sets end. A thread of the process that was told goes on to wait for the GIL when krait has ended. */
void krait_attaching_leave(struct krait_attaching *attaching, struct krait_collector *collector);
/* Whether it was told, and has not left yet; sets end. */
bool krait_attaching_is_leaving(struct krait_attaching *attaching, const struct krait_collector *collector);

bool krait_attaching_is_alive(pid_t pid);

#endif
