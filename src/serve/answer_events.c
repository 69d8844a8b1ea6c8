/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoint for events as krait cat --json prints them: a page of a range, and the position of the next page.
 *
 * A position is a time plus a number of events with that time to skip. So a page from the middle of a long trace reads
 * only the packets of that time, not all packets before it.
 */
#include "base/json.h"
#include "serve/running.h"
#include "serve/serving.h"
#include "trace/listing.h"

enum {
    ROWS = 200,
    ROWS_MAX = 5000,
    LOOKED_AT_MAX = 4 << 20, /* events read for one page; if few pass the filter, the page may be empty */
    BYTES_MAX = 8 << 20,
    TICK = 4096, /* events between two checks whether the client still waits */
};

struct page {
    struct krait_buf *out;
    struct krait_listing_cursor *cursor;
    uint64_t rows, rows_max, looked_at, skip;
    int64_t from_ns; /* `skip` counts events of this time */
    int64_t last_ns;
    uint64_t of_last; /* events of last_ns read so far */
    bool cancelled;
};

static void page_done(struct page *page)
{
    krait_listing_cursor_free(page->cursor);
}

static void add_event(struct page *page)
{
    struct krait_buf *out = page->out;
    size_t before = out->len;
    if (!krait_listing_wants(page->cursor))
        return;
    krait_buf_str(out, page->rows ? ",\n" : "\n");
    if (krait_listing_json(page->cursor, out))
        page->rows++;
    else
        out->len = before;
}

static bool is_full(const struct page *page)
{
    return page->rows >= page->rows_max || page->looked_at >= LOOKED_AT_MAX || page->out->len >= BYTES_MAX ||
           page->out->failed;
}

/* Returns whether events are left for another page. */
static bool fill_page(struct page *page)
{
    int64_t t_ns;
    while (krait_listing_next(page->cursor, &t_ns)) {
        t_ns = KRAIT_MAX(t_ns, page->from_ns);
        if (t_ns != page->last_ns)
            page->of_last = 0;
        page->last_ns = t_ns;
        if (is_full(page))
            return true;
        page->of_last++;
        if (t_ns == page->from_ns && page->of_last <= page->skip)
            continue;
        if (++page->looked_at % TICK == 0 && !krait_running_goes_on()) {
            page->cancelled = true;
            return false;
        }
        add_event(page);
    }
    return false;
}

/* Event names of the filter that are wrong, as `krait cat` tells them. */
static void put_unmet(struct krait_buf *out, const struct page *page)
{
    KRAIT_AUTO_BUF names = { 0 };
    krait_listing_unmet_names(page->cursor, &names);
    krait_json_key_text_or_null(out, "unmet", names.len ? names.data : NULL);
    out->failed |= names.failed;
}

static void put_no_events(struct krait_buf *out, const struct page *page)
{
    krait_buf_char(out, '{');
    krait_json_key_open(out, "events", '[');
    krait_buf_char(out, ']');
    krait_json_key_null(out, "next");
    krait_json_key_u64(out, "looked_at", 0);
    krait_json_key_null(out, "damage");
    put_unmet(out, page);
    krait_buf_str(out, "}\n");
}

/* The cursor stands at the begin of the page. */
static void put_page(struct krait_buf *out, struct page *page, const struct krait_serving *serving)
{
    krait_buf_char(out, '{');
    krait_json_key_open(out, "events", '[');
    bool more = fill_page(page);
    krait_buf_char(out, ']');
    if (more) {
        krait_json_key_open(out, "next", '{');
        krait_json_key(out, "from");
        krait_buf_fmt(out, "\"%llu\"", (unsigned long long)page->last_ns - serving->origin_ns);
        krait_json_key_u64(out, "skip", page->of_last);
        krait_buf_char(out, '}');
    } else {
        krait_json_key_null(out, "next");
    }
    krait_json_key_u64(out, "looked_at", page->looked_at);
    const struct krait_err *damage = krait_listing_damage(page->cursor);
    krait_json_key_text_or_null(out, "damage", damage->code ? damage->text : NULL);
    put_unmet(out, page);
    krait_buf_str(out, "}\n");
}

int krait_answer_events(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    struct krait_range range = krait_serving_range(serving, request);
    KRAIT_CLEANUP(page_done)
    struct page page = {
        .out = out,
        .rows_max = KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, ROWS), (uint64_t)ROWS_MAX),
        .skip = krait_request_number(request, KRAIT_PARAM_skip, 0),
        .from_ns = (int64_t)range.from_ns,
        .last_ns = INT64_MIN,
    };
    bool is_empty = range.to_ns <= range.from_ns;
    /* Events have the times of `krait cat`, which rounds the clock's offset and the ticks apart, as babeltrace2 does: the first
     * one may be a nanosecond before the model's begin. */
    int64_t from_ns = page.from_ns - (range.from_ns == serving->origin_ns);
    int rc = krait_serving_events(serving, request, &page.cursor, err);
    if (!rc && !is_empty)
        rc = krait_listing_range(page.cursor, from_ns, (int64_t)range.to_ns, err);
    if (rc)
        return rc;
    if (is_empty)
        put_no_events(out, &page);
    else
        put_page(out, &page, serving);
    return page.cancelled ? krait_err_set(err, -ECANCELED, "the client has closed the connection") : 0;
}
