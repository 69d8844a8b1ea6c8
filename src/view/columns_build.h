/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of one track of a recording that goes on (krait_tracks_walk_on): of what has ended, each view keeps the sums, and the
 * next one adds what came since.
 *
 *     settled   |===|==|=|====|          in the order of begins, with depths, and in the pyramid
 *     ended             |=| |==|         slices that begin behind one that goes on, which will enclose them
 *     open            |~~~~~~~~~~~~      what goes on; cut where all is written
 *
 * Each view gets a copy of what is settled, followed by the rest as it is now.
 */
#ifndef KRAIT_VIEW_COLUMNS_BUILD_H
#define KRAIT_VIEW_COLUMNS_BUILD_H

#include "view/columns.h"
#include "view/pyramid.h"

struct krait_columns_build;

/* For a track of states, slices or a counter. Returns 0 or -ENOMEM. */
int krait_columns_build_new(struct krait_columns_build **out, uint8_t kind);
void krait_columns_build_free(struct krait_columns_build *build);

/* Add entries that have ended, and those that go on; krait_columns_build_now drops the latter. Return 0 or -ENOMEM. */
int krait_columns_build_add(struct krait_columns_build *build, const struct krait_trace *trace,
                            const struct krait_track *track, const struct krait_batch *batch,
                            uint64_t origin_ns);
int krait_columns_build_open(struct krait_columns_build *build, const struct krait_trace *trace,
                             const struct krait_track *track, const struct krait_batch *batch,
                             uint64_t origin_ns);

/* Makes the columns of a view, and their pyramid if they are larger than `small` bytes; else *pyramid stays as it is. Takes time
 * for what was added, and for copying both. Returns 0 or -ENOMEM: `out` is then empty. The caller frees both. */
int krait_columns_build_now(struct krait_columns_build *build, uint64_t small, struct krait_columns *out,
                            struct krait_pyramid **pyramid);

/* The pyramid of whole columns with spans. The caller frees it. Returns 0 or -ENOMEM. */
int krait_columns_pyramid(const struct krait_columns *columns, struct krait_pyramid **out);

#endif
