/* SPDX-License-Identifier: Apache-2.0
 *
 * The instructions that another process runs. They lie behind the code of one of its files, where the last page is not
 * used; nothing else there is changed.
 *
 *   ┌──────────────┬──────┬──────────────────────────────────┐
 *   │ instructions │ data │ texts: function, argument, path  │
 *   └──────────────┴──────┴──────────────────────────────────┘
 */
#ifndef KRAIT_ATTACH_STUB_H
#define KRAIT_ATTACH_STUB_H

#include "attach/inside.h"

enum { KRAIT_STUB_MAX = 1024 };

/* Writes the stub into `bytes`, of KRAIT_STUB_MAX. Returns its size, or 0: there is no room for such texts. */
size_t krait_stub_make(uint8_t *bytes, const struct krait_target *target,
                       const struct krait_attach_call *call);

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
