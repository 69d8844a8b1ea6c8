/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

enum { LONGEST = 31 }; /* of the words that are compared */

static uint32_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint32_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= a_len; i++)
        d[i][0] = (uint32_t)i;
    for (size_t j = 0; j <= b_len; j++)
        d[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= a_len; i++) {
        for (size_t j = 1; j <= b_len; j++) {
            uint32_t least = KRAIT_MIN(d[i - 1][j], d[i][j - 1]) + 1;
            least = KRAIT_MIN(least, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least = KRAIT_MIN(least, d[i - 2][j - 2] + 1);
            d[i][j] = least;
        }
    }
    return d[a_len][b_len];
}

void krait_suggest_try(struct krait_suggest *suggest, const char *candidate)
{
    size_t n = strlen(candidate);
    if (suggest->n < 2 || suggest->n > LONGEST || n > LONGEST)
        return;
    bool begins = n > suggest->n && memcmp(candidate, suggest->word, suggest->n) == 0;
    uint32_t d = begins ? 1 : distance(suggest->word, suggest->n, candidate, n);
    bool is_better = !suggest->best || d < suggest->best_distance ||
                     (d == suggest->best_distance && n < strlen(suggest->best));
    if (d > KRAIT_MAX(suggest->n / 3, (size_t)1) || !is_better)
        return;
    suggest->best = candidate;
    suggest->best_distance = d;
}
