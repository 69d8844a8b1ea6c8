/* SPDX-License-Identifier: Apache-2.0
 *
 * Single events, as krait cat --json prints them: a page of a range, and where the next page begins.
 *
 * A place among the events is a time and how many events of that time come before it, so that a page of the middle of
 * a long trace costs its packets and not all that is before it.
 */
#include "base/json.h"
#include "ctf/read/compare.h"
#include "ctf/read/filter.h"
#include "ctf/read/merge.h"
#include "ctf/read/reader.h"
#include "ctf/text/data_event.h"
#include "serve/serving.h"

enum {
    ROWS = 200,
    ROWS_MAX = 5000,
    LOOKED_AT_MAX = 4 << 20, /* events for one page: with a filter that fits few, a page may be empty */
    BYTES_MAX = 8 << 20,
};

struct page {
    struct krait_buf *out;
    struct krait_filter *filter; /* NULL: all events */
    struct krait_data data;
    uint64_t rows, rows_max, looked_at, skip;
    int64_t from_ns; /* where `skip` counts */
    int64_t last_ns;
    uint64_t of_last; /* events of last_ns that were passed */
};

static void page_done(struct page *page)
{
    krait_filter_free(page->filter);
    krait_data_done(&page->data);
}

/* Its damage, if there is some, ends its stream at the merge's next step. */
static void add_event(struct page *page, struct krait_ctf_cursor *cursor)
{
    struct krait_buf *out = page->out;
    size_t before = out->len;
    if (page->filter && (krait_ctf_event_skip(cursor) || !krait_filter_wants(page->filter, cursor)))
        return;
    if (page->filter)
        krait_ctf_event_rewind(cursor);
    krait_buf_str(out, page->rows ? ",\n" : "\n");
    if (krait_data_event(&page->data, cursor, out))
        out->len = before;
    else
        page->rows++, out->len -= 1; /* without the line's end */
}

static bool is_full(const struct page *page)
{
    return page->rows >= page->rows_max || page->looked_at >= LOOKED_AT_MAX || page->out->len >= BYTES_MAX ||
           page->out->failed;
}

/* Whether there is more than the page has. */
static bool fill_page(struct page *page, struct krait_ctf_merge *merge, struct krait_range range)
{
    struct krait_ctf_cursor *cursor;
    while ((cursor = krait_ctf_merge_next(merge))) {
        if (cursor->ns < (int64_t)range.from_ns || cursor->ns >= (int64_t)range.to_ns) {
            krait_ctf_event_skip(cursor);
            continue;
        }
        if (cursor->ns != page->last_ns)
            page->of_last = 0;
        page->last_ns = cursor->ns;
        if (is_full(page))
            return true;
        page->of_last++;
        if (cursor->ns == page->from_ns && page->of_last <= page->skip) {
            krait_ctf_event_skip(cursor);
            continue;
        }
        page->looked_at++;
        add_event(page, cursor);
    }
    return false;
}

static int open_reader(struct krait_serving *serving, struct krait_err *err)
{
    struct krait_ctf_reader *reader = NULL;
    const struct krait_ctf_options options = { 0 };
    if (serving->reader)
        return 0;
    int rc = krait_ctf_open(&reader, serving->paths, serving->path_count, &options, err);
    rc = rc ? rc : krait_ctf_comparable(reader, err);
    if (!rc && krait_ctf_compile(reader))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        krait_ctf_close(reader);
    else
        serving->reader = reader;
    return rc;
}

int krait_serving_events(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_filter **filter, struct krait_err *err)
{
    pthread_mutex_lock(&serving->one);
    int rc = open_reader(serving, err);
    pthread_mutex_unlock(&serving->one);
    if (!rc && krait_request_has(request, KRAIT_PARAM_text) && *request->text)
        rc = krait_filter_new(filter, request->text, err);
    if (!rc && *filter)
        rc = krait_filter_bind(*filter, serving->reader, err);
    return rc;
}

static void put_no_events(struct krait_buf *out)
{
    krait_buf_char(out, '{');
    krait_json_key_open(out, "events", '[');
    krait_buf_char(out, ']');
    krait_json_key_null(out, "next");
    krait_json_key_u64(out, "looked_at", 0);
    krait_json_key_null(out, "damage");
    krait_buf_str(out, "}\n");
}

/* What it begins with is the caller's place. */
static void put_page(struct krait_buf *out, struct page *page, struct krait_ctf_merge *merge,
                     const struct krait_serving *serving, struct krait_range range)
{
    krait_buf_char(out, '{');
    krait_json_key_open(out, "events", '[');
    bool more = fill_page(page, merge, range);
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
    const struct krait_err *damage = krait_ctf_merge_damage(merge);
    krait_json_key_text_or_null(out, "damage", damage->code ? damage->text : NULL);
    krait_buf_str(out, "}\n");
}

/* Where an event ends a page, its fields are not passed: the merge is not asked again. */
int krait_answer_events(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    struct krait_ctf_merge *merge = NULL;
    struct krait_range range = krait_serving_range(serving, request);
    KRAIT_CLEANUP(page_done)
    struct page page = {
        .out = out,
        .rows_max = KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, ROWS), (uint64_t)ROWS_MAX),
        .skip = krait_request_number(request, KRAIT_PARAM_skip, 0),
        .from_ns = (int64_t)range.from_ns,
        .last_ns = INT64_MIN,
    };
    int rc = krait_serving_events(serving, request, &page.filter, err);
    rc = rc ? rc : krait_ctf_merge_new(&merge, serving->reader, err);
    if (rc)
        return rc;
    if (range.to_ns > range.from_ns) {
        krait_ctf_merge_range(merge, (int64_t)range.from_ns, (int64_t)range.to_ns - 1);
        put_page(out, &page, merge, serving, range);
    } else {
        put_no_events(out);
    }
    krait_ctf_merge_free(merge);
    return 0;
}
