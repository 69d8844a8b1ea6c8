/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what this machine and this user can record.
 *
 * Each check looks at one thing, changes nothing, and describes what it found in one line. If that is not enough for
 * recording, `fix` says what to type or do. Nothing here prints.
 */
#ifndef KRAIT_KERNEL_PROBE_H
#define KRAIT_KERNEL_PROBE_H

#include "base/base.h"

enum krait_check_state {
    KRAIT_CHECK_OK,
    KRAIT_CHECK_WARN, /* recording works, with less or at a higher price */
    KRAIT_CHECK_FAIL, /* recording does not work */
};

struct krait_check {
    enum krait_check_state state;
    char value[320]; /* what was found */
    char fix[320];   /* how to make it so; empty when there is nothing to do */
};

struct krait_probe {
    const char *group; /* heading; rows of a group follow each other */
    const char *name;
    void (*run)(struct krait_check *check); /* gets a zeroed check: OK, no text */
};

/* Ends with a row whose run is NULL. */
extern const struct krait_probe krait_probes[];

/* The contents of `value` and `fix`. */
void krait_check_value(struct krait_check *check, const char *fmt, ...) KRAIT_PRINTF(2, 3);
/* Sets the state, never to a better one, and the fix. */
void krait_check_fix(struct krait_check *check, enum krait_check_state state, const char *fmt, ...)
    KRAIT_PRINTF(3, 4);

/* The first number in a small file of /proc or /sys; -ENOENT and the like when it cannot be read. */
int krait_probe_number(const char *path, long *number);
/* Whether this process holds a capability (linux/capability.h) in its effective set. */
bool krait_probe_capable(unsigned capability);

void krait_probe_clock(struct krait_check *check);
void krait_probe_clocksource(struct krait_check *check);
void krait_probe_memfd(struct krait_check *check);
void krait_probe_cpus(struct krait_check *check);
void krait_probe_disk(struct krait_check *check);
void krait_probe_files(struct krait_check *check);
void krait_probe_memlock(struct krait_check *check);
void krait_probe_ptrace(struct krait_check *check);
void krait_probe_tracefs(struct krait_check *check);
void krait_probe_trace_clock(struct krait_check *check);
void krait_probe_functions(struct krait_check *check);
void krait_probe_left_behind(struct krait_check *check);
void krait_probe_perf(struct krait_check *check);

#endif
