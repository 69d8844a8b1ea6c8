/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions that another process runs. krait writes them behind the code of one of its mapped files, into the
 * unused rest of the last page, and changes nothing else there.
 *
 *   ┌──────────────┬──────┬──────────────────────────────────────────┐
 *   │ instructions │ data │ texts: function, argument, path, memfd   │
 *   └──────────────┴──────┴──────────────────────────────────────────┘
 *
 * A library that krait brings along has no path yet. The new thread creates a memfd of that name and waits. krait finds
 * the memfd in /proc/PID/fd, writes the library into it, writes its path in /proc/self/fd into the data, and then sets
 * `ready`. If krait is killed before that, the thread closes the memfd after some seconds and ends.
 */
#ifndef KRAIT_ATTACH_STUB_H
#define KRAIT_ATTACH_STUB_H

#include "attach/inside.h"

enum { KRAIT_STUB_MAX = 1152, KRAIT_STUB_PATH = 32 }; /* bytes for a path that krait writes later */

struct krait_stub {
    uint8_t bytes[KRAIT_STUB_MAX];
    size_t size, path_at, ready_at;
};

/* What the stub calls. memfd: the name of the memfd for the library, which then has no path; or NULL. */
struct krait_stub_call {
    const char *function, *argument, *path, *memfd;
};

/* Returns false if these texts are too long for the stub. */
bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call);

#endif
