/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers in a packet's header and context that describe the packet, and their positions.
 */
#ifndef KRAIT_CTF_COPY_HEAD_H
#define KRAIT_CTF_COPY_HEAD_H

#include "ctf/read/cursor.h"

struct krait_head_field {
    const struct krait_op *op; /* NULL: the packet does not have it */
    uint64_t at;               /* bit in the packet */
};

struct krait_head_fields {
    struct krait_head_field of[KRAIT_MEANING_COUNT];
    uint64_t end; /* bit in the packet at which its context ends */
};

/* Finds them in the cursor's packet. Returns 0 or -EBADMSG. */
int krait_head_find(struct krait_head_fields *fields, const struct krait_ctf_cursor *cursor);

/* Changes one in `bytes`, a copy of the packet; does nothing if the packet does not have it. False: the number does not
 * fit its field. */
bool krait_head_put(uint8_t *bytes, const struct krait_head_fields *fields, enum krait_meaning meaning,
                    uint64_t value);

#endif
