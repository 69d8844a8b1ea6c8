/* SPDX-License-Identifier: Apache-2.0
 *
 * What recorded programs have that options mean by names: loggers that have logged (--log), audit events that occurred (--audit).
 * Whoever mistyped a name is told at the end of the recording.
 */
#ifndef KRAIT_RECORD_NAMES_MET_H
#define KRAIT_RECORD_NAMES_MET_H

#include "base/base.h"

#include <stdatomic.h>
#include <string.h>

enum krait_named {
    KRAIT_NAMED_LOGGER,
    KRAIT_NAMED_AUDITED,
    KRAIT_NAMED_KINDS,
};

enum { KRAIT_NAMES_BYTES = 4096, KRAIT_NAMES_LIST = KRAIT_NAMES_BYTES + 2 };

/* In the memory that program and collector share; all zeros: none is known. */
struct krait_names_met {
    _Atomic uint64_t met;  /* bit i: the i-th option has met a name that it means */
    _Atomic uint32_t used; /* bytes of names; more than there are: the last ones had no room */
    /* Each with its NUL. What a process was killed at is left out or cut. */
    char names[KRAIT_NAMES_BYTES];
};

static inline bool krait_names_met_has(const struct krait_names_met *names, size_t n, const char *name)
{
    size_t bytes = strlen(name) + 1;
    for (size_t at = 0; at + bytes <= n; at += strnlen(names->names + at, n - at) + 1) {
        if (memcmp(names->names + at, name, bytes) == 0)
            return true;
    }
    return false;
}

/* Notes a name that the options of the bits `meant` mean, of all that are `asked`. Names are kept as long as some of these
 * have not been met. Two processes may note the same name. */
static inline void krait_names_met_note(struct krait_names_met *names, const char *name, uint64_t meant,
                                        uint64_t asked)
{
    size_t bytes = strlen(name) + 1;
    uint64_t met = atomic_load_explicit(&names->met, memory_order_relaxed);
    if ((met & meant) != meant)
        met = atomic_fetch_or_explicit(&names->met, meant, memory_order_relaxed) | meant;
    uint32_t used = atomic_load_explicit(&names->used, memory_order_relaxed);
    if ((met & asked) == asked || used + bytes > KRAIT_NAMES_BYTES || krait_names_met_has(names, used, name))
        return;
    uint32_t at = atomic_fetch_add_explicit(&names->used, (uint32_t)bytes, memory_order_relaxed);
    if (at + bytes <= KRAIT_NAMES_BYTES)
        memcpy(names->names + at, name, bytes);
}

#endif
