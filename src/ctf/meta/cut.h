/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges that may overlap, cut into pieces that do not, so that a value is looked up by a binary search:
 *
 *   A         |---------------|
 *   B              |----|          |---|
 *   pieces    |-A--|-AB-|--A--|    |-B-|
 */
#ifndef KRAIT_CTF_META_CUT_H
#define KRAIT_CTF_META_CUT_H

#include "base/base.h"

struct krait_span {
    uint64_t lo, hi; /* both included; lo is not above hi */
};

struct krait_piece {
    uint64_t lo, hi;
    uint32_t first; /* where its ranges begin in krait_pieces.ranges */
    uint32_t count; /* how many of them are listed */
};

struct krait_pieces {
    struct krait_piece *list; /* in order of their values */
    uint32_t count;
    uint32_t *ranges; /* for each piece, the numbers of the ranges that contain it, the lowest first */
    uint32_t range_count, range_cap;
};

/* Cuts n ranges in n log n steps. Lists at most the `most` lowest ranges of each piece. `pieces` must be zeroed.
 * Returns 0 or -ENOMEM. */
int krait_cut(struct krait_pieces *pieces, const struct krait_span *ranges, uint32_t count, bool is_signed,
              uint32_t most);
void krait_pieces_done(struct krait_pieces *pieces);

#endif
