/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a packet is copied, and its bytes then.
 */
#ifndef KRAIT_CTF_COPY_PACKET_H
#define KRAIT_CTF_COPY_PACKET_H

#include "base/buf.h"
#include "ctf/copy/head.h"

/* The events of a packet that are wanted: a run of its bits. */
struct krait_copy_run {
    uint64_t from, to;                /* bits in the packet */
    uint64_t events;                  /* in it */
    uint64_t before, behind;          /* events in front of it and behind it */
    uint64_t from_ticks, until_ticks; /* of the range */
    bool torn;                        /* between those that are wanted is one that is not */
};

/* An event of the packet: it is wanted or not. */
void krait_copy_run_add(struct krait_copy_run *run, uint64_t from, uint64_t to, bool wanted);

/* The bytes of the packet that the cursor is in with the events of the run alone, behind those of `before`, which
 * may be empty. False: it has to be copied whole. */
bool krait_copy_trim(struct krait_buf *out, const struct krait_ctf_cursor *cursor,
                     const struct krait_copy_run *run, const struct krait_buf *before);

#endif
