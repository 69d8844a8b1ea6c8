/* SPDX-License-Identifier: Apache-2.0
 *
 * What the governor drops in a process. The definitions have a code:omit for each function: from its time on the function's
 * calls and ends are not recorded, nor those of C functions that it calls; where they are open, they have ended. Who
 * follows the events of a thread takes those calls from its stack before the first event that is not earlier.
 */
#ifndef KRAIT_RECORD_OMITS_H
#define KRAIT_RECORD_OMITS_H

#include "base/map.h"

/* All zeros: nothing. Where memory is out, some are missing. */
struct krait_omits {
    struct krait_map since; /* when a code was left out; it is never recorded again under this id */
    uint64_t *times;        /* the same, in order */
    size_t count, cap;
};

void krait_omits_done(struct krait_omits *omits);
/* Times never go back. */
void krait_omits_add(struct krait_omits *omits, uint64_t t, uint32_t code);
/* Adds those in the definitions of the process whose folder that is, as far as they are on disk. */
void krait_omits_read(struct krait_omits *omits, const char *folder);
/* Whether an open call has ended by a time: its code is left out; or it is a C call, and what it was called from has ended.
 * What else was called from that goes on (trace/stack.h). */
bool krait_omits_end(const struct krait_omits *omits, uint32_t code, bool is_c, bool is_caller_gone,
                     uint64_t time);
/* *next: how many are up to a time; the caller's, 0 at first. Counts on up to `time`; returns the time of the one after
 * these, or UINT64_MAX. */
uint64_t krait_omits_pass(const struct krait_omits *omits, size_t *next, uint64_t time);

#endif
