/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions that another process runs. They lie behind the code of one of its files, where the last page is not
 * used; nothing else there is changed.
 *
 *   ┌──────────────┬──────┬──────────────────────────────────────────┐
 *   │ instructions │ data │ texts: function, argument, path, memfd   │
 *   └──────────────┴──────┴──────────────────────────────────────────┘
 *
 * A library that is brought along has no path yet: the new thread makes a memfd of that name and waits. krait finds it in
 * /proc/PID/fd, writes the library into it, writes its path in /proc/self/fd, and then `ready`. Where krait is killed
 * meanwhile, the thread closes the memfd after some seconds, and ends.
 */
#ifndef KRAIT_ATTACH_STUB_H
#define KRAIT_ATTACH_STUB_H

#include "attach/inside.h"

enum { KRAIT_STUB_MAX = 1024, KRAIT_STUB_PATH = 32 }; /* bytes of a path that is written later */

struct krait_stub {
    uint8_t bytes[KRAIT_STUB_MAX];
    size_t size, path_at, ready_at;
};

/* What it runs. memfd: the name of that into which the library is brought, which has no path then; or NULL. */
struct krait_stub_call {
    const char *function, *argument, *path, *memfd;
};

/* Returns false where it has no room for such texts, or the machine is none that krait attaches on. */
bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call);

/* The thread's registers and frame while it runs the stub; kept: those that it has after. */
struct krait_stub_frame {
    uint64_t registers[15]; /* in the order in which they are popped */
    uint64_t iret[5];       /* rip, cs, rflags, rsp, ss */
    uint64_t created;       /* the new thread's pthread_t */
    uint64_t unused[11];
    uint8_t vectors[]; /* at 256; XSAVE's area */
};

_Static_assert(offsetof(struct krait_stub_frame, created) == 160, "stub.c");

#endif
