/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include "base/fmt.h"

#include <string.h>

enum { LONGEST = 127 }; /* of the words that are compared: dotted names are long */

static uint32_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint8_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= a_len; i++)
        d[i][0] = (uint8_t)i;
    for (size_t j = 0; j <= b_len; j++)
        d[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            int least = KRAIT_MIN(d[i - 1][j], d[i][j - 1]) + 1;
            least = KRAIT_MIN(least, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least = KRAIT_MIN(least, d[i - 2][j - 2] + 1);
            d[i][j] = (uint8_t)least;
        }
    }
    return d[a_len][b_len];
}

/* `part`: what of the candidate is compared. */
static void try_part(struct krait_suggest *suggest, const char *part, const char *candidate)
{
    size_t n = strlen(part);
    if (suggest->n < 2 || suggest->n > LONGEST || n > LONGEST)
        return;
    size_t most = KRAIT_MAX(suggest->n / 3, (size_t)1),
           longer = KRAIT_MAX(n, suggest->n) - KRAIT_MIN(n, suggest->n);
    bool begins = n > suggest->n && memcmp(part, suggest->word, suggest->n) == 0;
    if (!begins && longer > most)
        return;
    uint32_t d = begins ? 1 : distance(suggest->word, suggest->n, part, n);
    bool is_better = !suggest->best || d < suggest->best_distance ||
                     (d == suggest->best_distance && strlen(candidate) < strlen(suggest->best));
    if (d > most || !is_better)
        return;
    suggest->best = candidate;
    suggest->best_distance = d;
}

void krait_suggest_try(struct krait_suggest *suggest, const char *candidate)
{
    try_part(suggest, candidate, candidate);
}

void krait_suggest_try_event(struct krait_suggest *suggest, const char *name)
{
    for (const char *part = name, *colon; part; part = colon ? colon + 1 : NULL) {
        try_part(suggest, part, name);
        colon = strchr(part, ':');
    }
}

void krait_suggest_say_some(struct krait_buf *out, const char *const *best, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        krait_buf_str(out, !i ? "; did you mean '" : i + 1 < count ? ", '" : " or '");
        krait_fmt_safe(out, best[i]);
        krait_buf_str(out, i + 1 < count ? "'" : "'?");
    }
}

void krait_suggest_say(struct krait_buf *out, const char *best)
{
    krait_suggest_say_some(out, &best, best != NULL);
}
