/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/unmatched.h"

#include "analysis/trigger.h"
#include "base/suggest.h"

#include <ctype.h>
#include <string.h>

enum {
    MOST_LOOKED = 2000, /* messages */
    MOST_BYTES = 100,   /* of each */
};

struct look {
    const struct krait_trace *trace;
    struct krait_trigger_event said;
    struct krait_suggest suggest; /* the text that is similar to the begin of the pattern */
    char best[MOST_BYTES + 1], message[MOST_BYTES + 1]; /* ... and the message that has it */
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

static void look_at(struct look *look, const char *message)
{
    char words[MOST_BYTES + 1];
    for (size_t at = 0; message[at]; at++) {
        size_t n = words_length(message, at, look->suggest.n);
        bool begins = at == 0 || (message[at] != ' ' && message[at - 1] == ' ');
        if (!begins || !n)
            continue;
        snprintf(words, sizeof(words), "%.*s", (int)n, message + at);
        const char *before = look->suggest.best;
        look->suggest.best = before ? look->best : NULL;
        krait_suggest_try(&look->suggest, words);
        if (look->suggest.best != words)
            continue;
        memcpy(look->best, words, sizeof(words));
        snprintf(look->message, sizeof(look->message), "%s", message);
        look->suggest.best = look->best;
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

static bool matches(const char *pattern, const char *message)
{
    struct krait_regex *regex = NULL;
    struct krait_err ignored;
    bool found =
        !krait_regex_new(&regex, pattern, &ignored) && krait_regex_find(regex, message, strlen(message));
    krait_regex_free(regex);
    return found;
}

void krait_unmatched_say(struct krait_buf *to, const struct krait_trace *trace,
                         const struct krait_select *select, struct krait_range range, const char *pattern)
{
    size_t anchor = *pattern == '^', n = text_length(pattern + anchor), blanks = 0;
    while (blanks < n && pattern[anchor + n - 1 - blanks] == ' ')
        blanks++;
    struct look look = { .trace = trace, .suggest = KRAIT_SUGGEST(pattern + anchor, n - blanks) };
    KRAIT_AUTO_BUF meant = { 0 };
    int rc = n - blanks && n < MOST_BYTES ? 0 : -ENOENT;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->kind == KRAIT_TRACK_INSTANTS && krait_select_place((void *)select, trace, track))
            rc = krait_track_walk(trace, i, range, look_in_batch, &look, NULL, 0);
    }
    krait_buf_fmt(&meant, "%.*s%s%s", (int)anchor, pattern, look.best, pattern + anchor + n - blanks);
    if (look.suggest.best && !meant.failed && matches(meant.data, look.message))
        krait_suggest_say(to, meant.data);
    krait_buf_done(&look.said.text);
    krait_buf_done(&look.said.own);
}
