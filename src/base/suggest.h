/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": finds the word of a list that is most similar to a mistyped one.
 */
#ifndef KRAIT_BASE_SUGGEST_H
#define KRAIT_BASE_SUGGEST_H

#include "base/buf.h"

struct krait_suggest {
    const char *word; /* what was typed, n bytes */
    size_t n;
    const char *best; /* NULL while nothing is near */
    uint32_t best_distance;
};

#define KRAIT_SUGGEST(typed, length)    \
    {                                   \
        .word = (typed), .n = (length), \
    }

/* Takes a candidate into account: insertions, deletions, replacements and swaps of neighbours count one each
 * (the optimal string alignment distance), and a third of the word may be wrong. A beginning of a candidate
 * counts one. Of equally similar ones the shortest is best. `best` is the candidate itself. */
void krait_suggest_try(struct krait_suggest *suggest, const char *candidate);
/* The same of an event's name: what is behind one of its colons is as near as the whole: usdt:shop:sold for shop:sold. */
void krait_suggest_try_event(struct krait_suggest *suggest, const char *name);

/* Appends "; did you mean 'best'?"; nothing without one. */
void krait_suggest_say(struct krait_buf *out, const char *best);
/* The same of several: "; did you mean 'a', 'b' or 'c'?". */
void krait_suggest_say_some(struct krait_buf *out, const char *const *best, size_t count);

#endif
