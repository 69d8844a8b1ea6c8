/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds where the damage of a stream begins, for cursors that begin after it.
 */
#ifndef KRAIT_CTF_ROWS_CHECK_H
#define KRAIT_CTF_ROWS_CHECK_H

#include "ctf/rows/row_set.h"

/* Reads all events of the stream, with a set of KRAIT_EMIT_COUNT. From then on no cursor reads past the first damage of
 * the stream: each that gets there ends with that error. `stream` belongs to the set's reader; no cursor may be in it
 * meanwhile. Returns 0 or -ENOMEM. */
int krait_ctf_check(const struct krait_row_set *set, struct krait_ctf_stream *stream);

#endif
