/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/unmatched.h"

#include "analysis/trigger.h"
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

enum {
    MOST_LOOKED = 2000, /* messages */
    MOST_BYTES = 100,   /* of each */
    MOST_SAID = 3,
};

struct look {
    const struct krait_trace *trace;
    struct krait_trigger_event said;
    const char *anchor, *text, *rest; /* the parts of the pattern: "^" or "", its text, what follows it */
    size_t n;                         /* of the text */
    /* Texts of messages that are as similar to it as any, with which the pattern matches their message. */
    char best[MOST_SAID][MOST_BYTES + 1];
    uint32_t count, distance;
    uint32_t looked;
};

/* How much of a pattern is text; what an operator may leave out is none. */
static size_t text_length(const char *pattern)
{
    size_t n = strcspn(pattern, "\\^$.|?*+()[]{}");
    if (pattern[n] == '|')
        return 0;
    return n && pattern[n] && strchr("?*+{", pattern[n]) ? n - 1 : n;
}

/* Also any part of a character that is not ASCII. */
static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Words of a message from `at` on, as long as the text that was given. */
static size_t words_length(const char *message, size_t at, size_t length)
{
    size_t n = strlen(message), end = KRAIT_MIN(at + length, n);
    while (end < n && is_in_word(message[end]) && is_in_word(message[end - 1]))
        end++;
    while (end > at && message[end - 1] == ' ')
        end--;
    return end - at;
}

/* As many words as the text that was given has: with a letter more or less, its length ends in another word. */
static size_t same_words_length(const struct look *look, const char *message, size_t at)
{
    size_t end = at + strcspn(message + at, " ");
    for (size_t i = 0; i < look->n && message[end]; i++) {
        if (look->text[i] == ' ')
            end += 1 + strcspn(message + end + 1, " ");
    }
    return end - at;
}

static void put_meant(const struct look *look, const char *words, struct krait_buf *meant)
{
    krait_buf_fmt(meant, "%s%s%s", look->anchor, words, look->rest);
}

/* Whether the pattern matches the message with these words in place of its text. */
static bool fits(const struct look *look, const char *words, const char *message)
{
    struct krait_regex *regex = NULL;
    struct krait_err ignored;
    KRAIT_AUTO_BUF meant = { 0 };
    put_meant(look, words, &meant);
    bool found = !meant.failed && !krait_regex_new(&regex, meant.data, &ignored) &&
                 krait_regex_find(regex, message, strlen(message));
    krait_regex_free(regex);
    return found;
}

/* Keeps them, the shortest first, and of one length in the messages' order. */
static void keep(struct look *look, const char *words, uint32_t distance)
{
    look->count = distance < look->distance ? 0 : look->count;
    look->distance = distance;
    uint32_t at = look->count;
    while (at && strlen(words) < strlen(look->best[at - 1]))
        at--;
    if (at == MOST_SAID)
        return;
    look->count = KRAIT_MIN(look->count + 1, (uint32_t)MOST_SAID);
    memmove(look->best[at + 1 < MOST_SAID ? at + 1 : at], look->best[at],
            (look->count - 1 - at) * sizeof(look->best[0]));
    snprintf(look->best[at], sizeof(look->best[at]), "%s", words);
}

static bool is_kept(const struct look *look, const char *words)
{
    for (uint32_t i = 0; i < look->count; i++) {
        if (strcmp(look->best[i], words) == 0)
            return true;
    }
    return false;
}

/* Words of a message, n bytes from `at` on. */
static void try_words(struct look *look, const char *message, size_t at, size_t n)
{
    char words[MOST_BYTES + 1];
    struct krait_suggest suggest = KRAIT_SUGGEST(look->text, look->n);
    snprintf(words, sizeof(words), "%.*s", (int)n, message + at);
    krait_suggest_try(&suggest, words);
    if (suggest.best && suggest.best_distance <= look->distance && !is_kept(look, words) &&
        fits(look, words, message))
        keep(look, words, suggest.best_distance);
}

static void look_at(struct look *look, const char *message)
{
    for (size_t at = 0; message[at]; at++) {
        size_t n = words_length(message, at, look->n), same = same_words_length(look, message, at);
        bool begins = at == 0 || (message[at] != ' ' && message[at - 1] == ' ');
        if (begins && n)
            try_words(look, message, at, n);
        if (begins && same && same != n)
            try_words(look, message, at, same);
    }
}

static int look_in_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct look *look = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        char message[MOST_BYTES + 1];
        if (look->looked++ >= MOST_LOOKED)
            return -ENOENT;
        krait_trigger_event_of(&look->said, look->trace, track, krait_track_text(look->trace, batch->name[i]),
                               batch->text[i]);
        krait_trigger_read_message(&look->said);
        snprintf(message, sizeof(message), "%.*s", (int)KRAIT_MIN(look->said.n, (size_t)MOST_BYTES),
                 look->said.message);
        look_at(look, message);
    }
    return 0;
}

void krait_unmatched_say(struct krait_buf *to, const struct krait_trace *trace,
                         const struct krait_select *select, struct krait_range range, const char *pattern)
{
    size_t anchor = *pattern == '^', n = text_length(pattern + anchor);
    while (n && pattern[anchor + n - 1] == ' ')
        n--;
    struct look look = { .trace = trace,
                         .anchor = anchor ? "^" : "",
                         .text = pattern + anchor,
                         .n = n,
                         .rest = pattern + anchor + n,
                         .distance = UINT32_MAX };
    struct krait_buf meant[MOST_SAID] = { 0 };
    const char *texts[MOST_SAID];
    int rc = n && n < MOST_BYTES ? 0 : -ENOENT;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->kind == KRAIT_TRACK_INSTANTS && krait_select_place((void *)select, trace, track))
            rc = krait_track_walk(trace, i, range, look_in_batch, &look, NULL, 0);
    }
    for (uint32_t i = 0; i < look.count; i++) {
        put_meant(&look, look.best[i], &meant[i]);
        texts[i] = meant[i].failed ? "" : meant[i].data;
    }
    krait_suggest_say_some(to, texts, look.count);
    for (uint32_t i = 0; i < look.count; i++) {
        to->failed |= meant[i].failed;
        krait_buf_done(&meant[i]);
    }
    krait_buf_done(&look.said.text);
    krait_buf_done(&look.said.own);
}
