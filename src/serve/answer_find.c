/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoint that finds the next or the previous event whose line in krait cat contains a text, also where the line is
 * written as the page's table shows it: of an enumeration the label alone.
 *
 * Streams can only be read forward. A backward search therefore reads windows, each one before and twice as long as the
 * last, and takes the last match of the first window that has one. It reads each event at most once.
 */
#include "base/json.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "trace/listing.h"

#include <string.h>

enum {
    TICK = 4096,   /* events between two checks whether the client still waits */
    WINDOWS = 256, /* the first backward window is 1/WINDOWS of the range */
};

struct find {
    struct krait_serving *serving;
    struct krait_listing_cursor *cursor;
    const char *words;
    struct krait_range range;
    uint64_t at_ns, skip; /* begin of the search: time, and number of filtered events of that time to skip */
    bool forward;
    uint64_t looked_at;
    uint64_t told_ns;       /* progress is reported up to here in this scan */
    struct krait_buf shown; /* an event's line as the table shows it */
    /* The event that was found, and its number among the filtered events of its time. */
    bool found;
    uint64_t found_ns, found_nth;
};

static void find_done(struct find *find)
{
    krait_listing_cursor_free(find->cursor);
    krait_buf_done(&find->shown);
}

static const char open_enum[] = "( ", before_number[] = " : container = ", close_enum[] = " )";

/* Returns what follows a quoted label; NULL if there is none. */
static const char *skip_label(const char *text)
{
    if (*text++ != '"')
        return NULL;
    while (*text && *text != '"')
        text += text[0] == '\\' && text[1] ? 2 : 1;
    return *text ? text + 1 : NULL;
}

/* Appends the label of an enumeration that begins at `text`, as in ( "app.main" : container = 1139 ). Returns what follows
 * it, or NULL if no enumeration with one label begins there. */
static const char *add_label(struct krait_buf *out, const char *text)
{
    const char *label = text + strlen(open_enum), *end = skip_label(label);
    if (!end || strncmp(end, before_number, strlen(before_number)) != 0)
        return NULL;
    const char *after = strstr(end, close_enum);
    if (after)
        krait_buf_add(out, label + 1, (size_t)(end - label) - 2);
    return after ? after + strlen(close_enum) : NULL;
}

/* The line, with each enumeration replaced by its label. */
static void shorten(struct krait_buf *out, const char *text)
{
    krait_buf_clear(out);
    for (const char *at; (at = strstr(text, open_enum));) {
        krait_buf_add(out, text, (size_t)(at - text));
        text = add_label(out, at);
        if (!text) {
            krait_buf_str(out, open_enum);
            text = at + strlen(open_enum);
        }
    }
    krait_buf_str(out, text);
}

static bool has_words(struct find *find)
{
    const char *text = krait_listing_text(find->cursor);
    if (!text || strcasestr(text, find->words))
        return text != NULL;
    if (!strstr(text, before_number))
        return false;
    shorten(&find->shown, text);
    return !find->shown.failed && strcasestr(find->shown.data, find->words);
}

/* Whether the nth filtered event of a time lies in the direction of the search. */
static bool is_searched(const struct find *find, uint64_t ns, uint64_t nth)
{
    if (ns == find->at_ns)
        return find->forward ? nth >= find->skip : nth < find->skip;
    return find->forward ? ns > find->at_ns : ns < find->at_ns;
}

static bool goes_on(struct find *find, uint64_t ns)
{
    double share = ns > find->told_ns
                       ? (double)(ns - find->told_ns) / (double)(find->range.to_ns - find->range.from_ns)
                       : 0;
    find->told_ns = KRAIT_MAX(ns, find->told_ns);
    return krait_running_progress(NULL, (uint64_t)(share * (double)find->serving->trace->bytes));
}

static int scan_range(struct find *find, uint64_t from_ns, uint64_t to_ns)
{
    int64_t t_ns;
    uint64_t last_ns = UINT64_MAX, of_last = 0;
    find->told_ns = from_ns;
    while (krait_listing_next(find->cursor, &t_ns)) {
        uint64_t ns = (uint64_t)t_ns;
        if (++find->looked_at % TICK == 0 && !goes_on(find, ns))
            return -ECANCELED;
        of_last = ns == last_ns ? of_last : 0;
        last_ns = ns;
        if (!krait_listing_wants(find->cursor))
            continue;
        uint64_t nth = of_last++;
        if (is_searched(find, ns, nth) && has_words(find)) {
            find->found = true;
            find->found_ns = ns;
            find->found_nth = nth;
            if (find->forward)
                return 0;
        }
    }
    return goes_on(find, to_ns) ? 0 : -ECANCELED;
}

/* Finds the first match of the range, or the last one in a backward search. */
static int scan(struct find *find, uint64_t from_ns, uint64_t to_ns, struct krait_err *err)
{
    int rc = krait_listing_range(find->cursor, (int64_t)from_ns, (int64_t)to_ns, err);
    if (rc)
        return rc;
    rc = scan_range(find, from_ns, to_ns);
    return rc ? krait_err_set(err, rc, "the request was cancelled") : 0;
}

static int scan_back(struct find *find, struct krait_err *err)
{
    uint64_t to_ns = find->at_ns < find->range.to_ns ? find->at_ns + 1 : find->range.to_ns;
    uint64_t length = (find->range.to_ns - find->range.from_ns) / WINDOWS + 1;
    int rc = 0;
    while (!rc && !find->found && to_ns > find->range.from_ns) {
        uint64_t from_ns = to_ns - find->range.from_ns > length ? to_ns - length : find->range.from_ns;
        rc = scan(find, from_ns, to_ns, err);
        to_ns = from_ns;
        length *= 2;
    }
    return rc;
}

static int search(struct find *find, struct krait_err *err)
{
    if (find->range.to_ns <= find->range.from_ns)
        return 0;
    if (!find->forward)
        return find->at_ns < find->range.from_ns ? 0 : scan_back(find, err);
    uint64_t from_ns = KRAIT_MAX(find->at_ns, find->range.from_ns);
    return from_ns < find->range.to_ns ? scan(find, from_ns, find->range.to_ns, err) : 0;
}

int krait_answer_find(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    int rc = krait_request_needs(request, 1u << KRAIT_PARAM_words, err);
    if (rc)
        return rc;
    struct krait_range range = krait_serving_range(serving, request);
    bool forward = krait_request_number(request, KRAIT_PARAM_forward, 1) != 0;
    uint64_t origin_ns = serving->origin_ns;
    KRAIT_CLEANUP(find_done)
    struct find find = {
        .serving = serving,
        .words = request->words,
        .range = range,
        .forward = forward,
        .at_ns = forward ? range.from_ns : range.to_ns,
        .skip = krait_request_number(request, KRAIT_PARAM_skip, 0),
    };
    if (krait_request_has(request, KRAIT_PARAM_at) &&
        __builtin_add_overflow(origin_ns, request->numbers[KRAIT_PARAM_at], &find.at_ns))
        find.at_ns = INT64_MAX;
    rc = krait_serving_events(serving, request, &find.cursor, err);
    rc = rc ? rc : search(&find, err);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key(out, "time");
    if (find.found)
        krait_buf_fmt(out, "\"%llu\"", (unsigned long long)(find.found_ns - origin_ns));
    else
        krait_buf_str(out, "null");
    krait_json_key_u64(out, "nth", find.found_nth);
    krait_json_key_u64(out, "looked_at", find.looked_at);
    const struct krait_err *damage = krait_listing_damage(find.cursor);
    krait_json_key_text_or_null(out, "damage", damage->code ? damage->text : NULL);
    krait_buf_str(out, "}\n");
    return 0;
}
