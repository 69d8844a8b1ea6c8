/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of several streams by time, a batch at a time.
 *
 * Each stream decodes ahead into a chunk of its own. What can be handed out ends where the first chunk ends whose
 * stream goes on: nothing that is still to be decoded comes before. The parts of the chunks up to there are merged in
 * pairs of neighbours, so that streams of lower index go first at equal times; what is behind waits in its chunk. The
 * cells of a chunk have two halves, each of which is decoded anew when all of it was handed out: so all streams
 * together come half a chunk further at a time, not one of them to its end, however many they are.
 */
#ifndef KRAIT_CTF_ROWS_ROW_ORDER_H
#define KRAIT_CTF_ROWS_ROW_ORDER_H

#include "ctf/rows/row_source.h"

struct krait_row_order;

/* All streams of the set's reader, their events from begin_ns on and before end_ns (INT64_MAX: to their
 * ends). Where a stream's times go backward, it is its first event of begin_ns or later, and all up to its
 * first of end_ns or later. Returns 0 or -ENOMEM. */
int krait_row_order_new(struct krait_row_order **out, const struct krait_row_set *set, int64_t begin_ns,
                        int64_t end_ns);
void krait_row_order_free(struct krait_row_order *order);

/* The next events: `*count` of them, 0 at the end. They and their cells are valid until the next call. hot path */
const struct krait_row *krait_row_order_next(struct krait_row_order *order, uint32_t *count);
const uint64_t *krait_row_order_cells(const struct krait_row_order *order);
/* The first damage that ended a stream; code 0 when none did. */
const struct krait_err *krait_row_order_damage(const struct krait_row_order *order);
/* The stream's source, by its index: how far it is. */
const struct krait_row_source *krait_row_order_source(const struct krait_row_order *order, uint32_t stream);

#endif
