/* SPDX-License-Identifier: Apache-2.0
 *
 * --within: which of the intervals of one name is meant, by the word behind the name.
 */
#ifndef KRAIT_CMD_WITHIN_WHICH_H
#define KRAIT_CMD_WITHIN_WHICH_H

#include "analysis/intervals.h"

/* FUNCTION:outermost means the calls that are in no other of that function. */
#define KRAIT_WITHIN_OUTERMOST "outermost"

uint64_t krait_within_duration(const struct krait_interval *interval); /* in ns */

/* Whether the text is a number, or one of the words first, last, slowest and fastest. */
bool krait_within_is_which(const char *text);

/* The interval that such a word means; there is at least one. Returns false, *index unchanged, if it is no word. */
bool krait_within_pick_word(const struct krait_intervals *found, const char *which, size_t *index);

/* The word that NAME:WORD means; NULL: none is near. */
const char *krait_within_near_word(const char *name);

#endif
