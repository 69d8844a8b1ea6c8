/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/listing.h"

#include "ctf/read/compare.h"
#include "ctf/read/filter.h"
#include "ctf/read/merge.h"
#include "ctf/read/reader.h"
#include "ctf/text/data_event.h"
#include "ctf/text/pretty.h"
#include "trace/importer.h"

#include <string.h>

struct krait_listing {
    struct krait_ctf_reader *reader;
};

struct krait_listing_cursor {
    const struct krait_listing *listing;
    struct krait_filter *filter;   /* NULL: all events */
    int64_t from_ns, until_ns;     /* the range */
    struct krait_ctf_merge *merge; /* of the range; NULL before the first */
    struct krait_ctf_cursor *at;   /* the event; NULL: its fields are passed */
    struct krait_err damage;
    struct krait_data data;
    struct krait_pretty pretty;
    struct krait_buf line;
};

/* -- all events -- */

int krait_listing_open(struct krait_listing **out, const struct krait_trace *trace, struct krait_err *err)
{
    const struct krait_ctf_options options = { 0 };
    const struct krait_trace_impl *impl = trace->impl;
    struct krait_listing *listing = calloc(1, sizeof(*listing));
    int rc = listing ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_ctf_open(&listing->reader, impl->paths, impl->path_count, &options, err);
    rc = rc ? rc : krait_ctf_comparable(listing->reader, err);
    if (!rc && krait_ctf_compile(listing->reader)) /* now: threads share it later */
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        krait_listing_close(listing);
    else
        *out = listing;
    return rc;
}

void krait_listing_close(struct krait_listing *listing)
{
    if (!listing)
        return;
    krait_ctf_close(listing->reader);
    free(listing);
}

/* -- cursors -- */

int krait_listing_cursor_new(struct krait_listing_cursor **out, const struct krait_listing *listing,
                             const char *filter, struct krait_err *err)
{
    struct krait_listing_cursor *cursor = calloc(1, sizeof(*cursor));
    if (!cursor)
        return krait_err_set(err, -ENOMEM, "out of memory");
    cursor->listing = listing;
    cursor->pretty.flags = KRAIT_PRETTY_SECONDS | KRAIT_PRETTY_NO_DELTA;
    cursor->pretty.text = KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES;
    int rc = filter && *filter ? krait_filter_new(&cursor->filter, filter, err) : 0;
    if (!rc && cursor->filter)
        rc = krait_filter_bind(cursor->filter, listing->reader, err);
    if (rc)
        krait_listing_cursor_free(cursor);
    else
        *out = cursor;
    return rc;
}

void krait_listing_cursor_free(struct krait_listing_cursor *cursor)
{
    if (!cursor)
        return;
    krait_ctf_merge_free(cursor->merge);
    krait_filter_free(cursor->filter);
    krait_data_done(&cursor->data);
    krait_pretty_done(&cursor->pretty);
    krait_buf_done(&cursor->line);
    free(cursor);
}

void krait_listing_unmet_names(const struct krait_listing_cursor *cursor, struct krait_buf *out)
{
    if (cursor->filter)
        krait_filter_unmet_names(cursor->filter, cursor->listing->reader, out);
}

static void note_damage(struct krait_listing_cursor *cursor)
{
    if (cursor->merge && !cursor->damage.code)
        cursor->damage = *krait_ctf_merge_damage(cursor->merge);
}

int krait_listing_range(struct krait_listing_cursor *cursor, int64_t from_ns, int64_t until_ns,
                        struct krait_err *err)
{
    note_damage(cursor);
    krait_ctf_merge_free(cursor->merge);
    cursor->merge = NULL;
    cursor->at = NULL;
    cursor->from_ns = from_ns;
    cursor->until_ns = until_ns;
    int rc = krait_ctf_merge_new(&cursor->merge, cursor->listing->reader, err);
    if (!rc)
        krait_ctf_merge_range(cursor->merge, from_ns, until_ns - 1);
    return rc;
}

bool krait_listing_next(struct krait_listing_cursor *cursor, int64_t *t_ns)
{
    do {
        if (cursor->at) /* its damage, if there is some, ends its stream at the merge's next step */
            krait_ctf_event_skip(cursor->at);
        cursor->at = krait_ctf_merge_next(cursor->merge);
    } while (cursor->at && (cursor->at->ns < cursor->from_ns || cursor->at->ns >= cursor->until_ns));
    if (cursor->at)
        *t_ns = cursor->at->ns;
    return cursor->at;
}

bool krait_listing_wants(struct krait_listing_cursor *cursor)
{
    if (!cursor->filter)
        return true;
    if (krait_ctf_event_skip(cursor->at) || !krait_filter_wants(cursor->filter, cursor->at)) {
        cursor->at = NULL;
        return false;
    }
    krait_ctf_event_rewind(cursor->at);
    return true;
}

bool krait_listing_json(struct krait_listing_cursor *cursor, struct krait_buf *out)
{
    int rc = krait_data_event(&cursor->data, cursor->at, out);
    cursor->at = NULL;
    if (!rc)
        out->len--; /* the line's end */
    return !rc;
}

const char *krait_listing_text(struct krait_listing_cursor *cursor)
{
    struct krait_buf *line = &cursor->line;
    krait_buf_clear(line);
    int rc = krait_pretty_event(&cursor->pretty, cursor->at, line);
    cursor->at = NULL;
    if (rc || line->failed)
        return NULL;
    const char *name = strstr(line->data, "] "); /* behind the time */
    return name ? name + 2 : line->data;
}

const struct krait_err *krait_listing_damage(const struct krait_listing_cursor *cursor)
{
    return !cursor->damage.code && cursor->merge ? krait_ctf_merge_damage(cursor->merge) : &cursor->damage;
}
