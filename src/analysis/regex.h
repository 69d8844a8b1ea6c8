/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions for texts of any origin: Perl's (PCRE2), as Python's re has them, with named groups. A search
 * has a bounded number of steps, so that no expression and no text can keep krait busy for long.
 */
#ifndef KRAIT_ANALYSIS_REGEX_H
#define KRAIT_ANALYSIS_REGEX_H

#include "base/err.h"

enum { KRAIT_REGEX_MOST = 64 * 1024 }; /* bytes of a text that are looked at */

struct krait_regex;

/* -EINVAL: err says what is wrong with the pattern, and where. */
int krait_regex_new(struct krait_regex **out, const char *pattern, struct krait_err *err);
void krait_regex_free(struct krait_regex *regex);

/* Whether it is found anywhere in the first KRAIT_REGEX_MOST bytes of a text; the groups are then those of this match.
 * Bytes that are not UTF-8 match nothing. Not for two threads at once. */
bool krait_regex_find(struct krait_regex *regex, const char *text, size_t n);

/* As it was given. */
const char *krait_regex_pattern(const struct krait_regex *regex);

/* How often a search was given up: it took too many steps. Of NULL, 0. */
uint64_t krait_regex_given_up(const struct krait_regex *regex);

/* A group by its name or its number as text: its index; 0: there is no such group. */
uint32_t krait_regex_group(const struct krait_regex *regex, const char *name);

/* The i-th of the groups' names; NULL: there are no more. */
const char *krait_regex_name(const struct krait_regex *regex, uint32_t i);

/* A group of the last match, in the text that was searched; NULL where it took no part. */
const char *krait_regex_part(const struct krait_regex *regex, uint32_t group, size_t *n);

#endif
