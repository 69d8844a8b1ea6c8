/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of several streams by time, a batch at a time.
 *
 * Each stream decodes ahead into its own chunk. Events can be handed out up to the earliest end of a chunk whose stream
 * continues, because events that are not decoded yet cannot come before. The parts of the chunks up to there are merged
 * in pairs of neighbours, so that streams of lower index come first at equal times; the rest waits in its chunk. The
 * cells of a chunk have two halves, and each is filled again when all of it was handed out. So all streams advance
 * together, by half a chunk at a time, however many there are.
 */
#ifndef KRAIT_CTF_ROWS_ROW_ORDER_H
#define KRAIT_CTF_ROWS_ROW_ORDER_H

#include "ctf/rows/row_source.h"

struct krait_row_order;

/* Orders all streams of the set's reader: their events from begin_ns on and before end_ns (INT64_MAX: to their ends).
 * If the times of a stream go backward, it begins with its first event at begin_ns or later and ends before its first
 * event at end_ns or later. Returns 0 or -ENOMEM. */
int krait_row_order_new(struct krait_row_order **out, const struct krait_row_set *set, int64_t begin_ns,
                        int64_t end_ns);
void krait_row_order_free(struct krait_row_order *order);

/* The next events: `*count` of them, 0 at the end. They and their cells are valid until the next call. hot path */
const struct krait_row *krait_row_order_next(struct krait_row_order *order, uint32_t *count);
const uint64_t *krait_row_order_cells(const struct krait_row_order *order);
/* The first damage that ended a stream; code 0 when none did. */
const struct krait_err *krait_row_order_damage(const struct krait_row_order *order);
/* The source of a stream, by its index, which shows how far it was read. */
const struct krait_row_source *krait_row_order_source(const struct krait_row_order *order, uint32_t stream);

#endif
