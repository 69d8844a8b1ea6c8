/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns that match no message, and what was meant.
 */
#ifndef KRAIT_CMD_UNMATCHED_H
#define KRAIT_CMD_UNMATCHED_H

#include "cmd/select.h"

/* Appends "; did you mean 'Start \w+'?" to `to` (check to->failed) if one of the first messages has words that are similar
 * to the text with which the pattern begins, and the pattern matches with these in its place; up to three patterns that are
 * equally similar, the shortest first. The trace's tracks of instants were found. */
void krait_unmatched_say(struct krait_buf *to, const struct krait_trace *trace,
                         const struct krait_select *select, struct krait_range range, const char *pattern);

#endif
