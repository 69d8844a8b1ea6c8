/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/within_which.h"

#include "base/suggest.h"

#include <string.h>

static size_t first(const struct krait_intervals *found)
{
    return 0;
}

static size_t last(const struct krait_intervals *found)
{
    return found->count - 1;
}

uint64_t krait_within_duration(const struct krait_interval *interval)
{
    return interval->end_ns - interval->begin_ns;
}

static size_t slowest(const struct krait_intervals *found)
{
    size_t best = 0;
    for (size_t i = 1; i < found->count; i++)
        best =
            krait_within_duration(&found->items[i]) > krait_within_duration(&found->items[best]) ? i : best;
    return best;
}

static size_t fastest(const struct krait_intervals *found)
{
    size_t best = 0;
    for (size_t i = 1; i < found->count; i++)
        best =
            krait_within_duration(&found->items[i]) < krait_within_duration(&found->items[best]) ? i : best;
    return best;
}

static const struct {
    const char *word;
    size_t (*pick)(const struct krait_intervals *found);
} words[] = { { "first", first }, { "last", last }, { "slowest", slowest }, { "fastest", fastest } };

bool krait_within_is_which(const char *text)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        if (strcmp(words[i].word, text) == 0)
            return true;
    }
    return *text && text[strspn(text, "0123456789")] == '\0';
}

bool krait_within_pick_word(const struct krait_intervals *found, const char *which, size_t *index)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        if (strcmp(words[i].word, which) == 0) {
            *index = words[i].pick(found);
            return true;
        }
    }
    return false;
}

const char *krait_within_near_word(const char *name)
{
    const char *colon = strrchr(name, ':');
    if (!colon)
        return NULL;
    struct krait_suggest suggest = KRAIT_SUGGEST(colon + 1, strlen(colon + 1));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++)
        krait_suggest_try(&suggest, words[i].word);
    krait_suggest_try(&suggest, KRAIT_WITHIN_OUTERMOST);
    return suggest.best;
}
