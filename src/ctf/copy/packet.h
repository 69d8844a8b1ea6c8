/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a packet to copy, and the bytes of the copy.
 */
#ifndef KRAIT_CTF_COPY_PACKET_H
#define KRAIT_CTF_COPY_PACKET_H

#include "base/buf.h"
#include "ctf/copy/head.h"

/* The wanted events of a packet: a run of its bits. */
struct krait_copy_run {
    uint64_t from, to;                /* bits in the packet */
    uint64_t events;                  /* in it */
    uint64_t before, behind;          /* events before it and after it */
    uint64_t from_ticks, until_ticks; /* of the range */
    bool torn;                        /* there is an unwanted event among the wanted ones */
};

/* Adds the next event of the packet, wanted or not. */
void krait_copy_run_add(struct krait_copy_run *run, uint64_t from, uint64_t to, bool wanted);

/* Appends the cursor's packet with only the events of the run, preceded by those of `before`, which may be empty.
 * False: the packet must be copied whole. */
bool krait_copy_trim(struct krait_buf *out, const struct krait_ctf_cursor *cursor,
                     const struct krait_copy_run *run, const struct krait_buf *before);

#endif
