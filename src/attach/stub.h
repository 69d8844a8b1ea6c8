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

enum { KRAIT_STUB_MAX = 1024, KRAIT_STUB_PATH = 32 }; /* bytes for a path that krait writes later */

struct krait_stub {
    uint8_t bytes[KRAIT_STUB_MAX];
    size_t size, path_at, ready_at;
};

/* What the stub calls. memfd: the name of the memfd for the library, which then has no path; or NULL. */
struct krait_stub_call {
    const char *function, *argument, *path, *memfd;
};

/* Returns false if these texts are too long for the stub, or krait does not attach on this machine. */
bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call);

/* The frame of the stopped thread while it runs the stub; at its end, the thread takes its registers from here. */
struct krait_stub_frame {
    uint64_t registers[15]; /* in the order in which they are popped */
    uint64_t iret[5];       /* rip, cs, rflags, rsp, ss */
    uint64_t created;       /* the new thread's pthread_t */
    uint64_t unused[11];
    uint8_t vectors[]; /* at 256; XSAVE's area */
};

_Static_assert(offsetof(struct krait_stub_frame, created) == 160, "stub.c");

#endif
