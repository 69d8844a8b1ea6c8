/* SPDX-License-Identifier: Apache-2.0
 *
 * Attaches to a running process and detaches from it, for `krait record --pid` and `krait top --exact`.
 */
#ifndef KRAIT_CMD_ATTACHING_H
#define KRAIT_CMD_ATTACHING_H

#include "record/collector.h"

#include <limits.h>
#include <sys/types.h>

enum krait_attaching_end {
    KRAIT_ATTACHING_LEFT,
    KRAIT_ATTACHING_WAITS, /* it leaves as soon as C code releases the GIL */
    KRAIT_ATTACHING_STAYS, /* krait could not detach; it leaves when it notices that the recording is over */
};

struct krait_attaching {
    pid_t pid;
    bool (*over)(void *ctx);                   /* whether the user wants to end it; may be NULL */
    void (*step)(void *ctx, const char *text); /* gets a text for each step; may be NULL */
    void *ctx;
    const char *library;    /* path of the agent */
    uint64_t asked_ns;      /* when krait made the process load it */
    uint64_t paused_ns;     /* the longest time for which a thread of the process was stopped */
    uint32_t joined_before; /* how often it had joined the recording before */
    uint32_t begun_before;  /* ... and had begun to record */
    bool has_begun;         /* it has been recorded, or ready while the recording is off */
    bool is_ready;          /* then: it is ready, but not recorded yet */
    bool is_refused;        /* it has reported why it cannot be recorded */
    enum krait_attaching_end end;
};

/* Finds the agent: writes its path, of at most `size` bytes. Returns 0, or a negative errno with err set. */
int krait_attaching_find(char *library, size_t size, struct krait_err *err);
/* Whether the process can be recorded: it runs Python, as this user, and is in no other recording. */
int krait_attaching_check(pid_t pid, struct krait_err *err);

/* Makes the process load the agent, which then begins to record: see krait_attaching_has_begun. */
int krait_attaching_begin(struct krait_attaching *attaching, struct krait_collector *collector,
                          struct krait_err *err);
/* Returns 1 if it is recorded, or ready while the recording is off; 0 if it is not yet; or a negative errno, with err set, if
 * it will not be. Between calls, the collector needs rounds. */
int krait_attaching_has_begun(struct krait_attaching *attaching, const struct krait_collector *collector,
                              struct krait_err *err);
/* Whether it was part of the recording and no longer is. */
bool krait_attaching_has_left(const struct krait_attaching *attaching,
                              const struct krait_collector *collector);
/* Lets the collector do a round, and sleeps for a millisecond. */
void krait_attaching_pause(struct krait_collector *collector);
/* Detaches from it; sets `end`. If C code holds the GIL, krait's thread in the process keeps waiting for the GIL even after
 * krait has ended. */
void krait_attaching_leave(struct krait_attaching *attaching, struct krait_collector *collector);
/* Whether krait is detaching from it, and it has not left yet; sets `end`. */
bool krait_attaching_is_leaving(struct krait_attaching *attaching, const struct krait_collector *collector);

bool krait_attaching_is_alive(pid_t pid);

#endif
