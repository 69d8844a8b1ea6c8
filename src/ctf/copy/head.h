/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers in a packet's header and context that say what the packet is, and where they lie.
 */
#ifndef KRAIT_CTF_COPY_HEAD_H
#define KRAIT_CTF_COPY_HEAD_H

#include "ctf/read/cursor.h"

struct krait_head_field {
    const struct krait_op *op; /* NULL: the packet does not say it */
    uint64_t at;               /* bit in the packet */
};

struct krait_head_fields {
    struct krait_head_field of[KRAIT_MEANING_COUNT];
    uint64_t end; /* bit in the packet, behind its context */
};

/* Finds them in the packet that the cursor is in. Returns 0 or -EBADMSG. */
int krait_head_find(struct krait_head_fields *fields, const struct krait_ctf_cursor *cursor);

/* Changes one in `bytes`, a copy of the packet; nothing where the packet does not say it. False: it has no room for the
 * number. */
bool krait_head_put(uint8_t *bytes, const struct krait_head_fields *fields, enum krait_meaning meaning,
                    uint64_t value);

#endif
