/* SPDX-License-Identifier: Apache-2.0
 *
 * Loggers of recorded programs that have logged something, for the end of a recording: whoever mistyped a name for --log is
 * told then.
 */
#ifndef KRAIT_RECORD_LOGGERS_H
#define KRAIT_RECORD_LOGGERS_H

#include "base/base.h"

#include <stdatomic.h>
#include <string.h>

enum { KRAIT_LOGGERS_BYTES = 4096, KRAIT_LOGGERS_LIST = KRAIT_LOGGERS_BYTES + 2 };

/* In the memory that program and collector share; all zeros: nobody has logged. */
struct krait_loggers {
    _Atomic uint64_t met;  /* bit i: a logger that the i-th --log means has logged */
    _Atomic uint32_t used; /* bytes of names; more than there are: the last ones had no room */
    /* Each with its NUL. What a process was killed at is left out or cut. */
    char names[KRAIT_LOGGERS_BYTES];
};

static inline bool krait_loggers_has(const struct krait_loggers *loggers, size_t n, const char *name)
{
    size_t bytes = strlen(name) + 1;
    for (size_t at = 0; at + bytes <= n; at += strnlen(loggers->names + at, n - at) + 1) {
        if (memcmp(loggers->names + at, name, bytes) == 0)
            return true;
    }
    return false;
}

/* Notes that a logger has logged which `meant` of --log mean, of all that are `asked`. Names are kept as long as some of these
 * have not been met. Two processes may note the same name. */
static inline void krait_loggers_note(struct krait_loggers *loggers, const char *name, uint64_t meant,
                                      uint64_t asked)
{
    size_t bytes = strlen(name) + 1;
    uint64_t met = atomic_load_explicit(&loggers->met, memory_order_relaxed);
    if ((met & meant) != meant)
        met = atomic_fetch_or_explicit(&loggers->met, meant, memory_order_relaxed) | meant;
    uint32_t used = atomic_load_explicit(&loggers->used, memory_order_relaxed);
    if ((met & asked) == asked || used + bytes > KRAIT_LOGGERS_BYTES ||
        krait_loggers_has(loggers, used, name))
        return;
    uint32_t at = atomic_fetch_add_explicit(&loggers->used, (uint32_t)bytes, memory_order_relaxed);
    if (at + bytes <= KRAIT_LOGGERS_BYTES)
        memcpy(loggers->names + at, name, bytes);
}

#endif
