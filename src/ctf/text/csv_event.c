/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/csv_event.h"

#include "base/csv.h"
#include "ctf/scalar/text.h"

#include <string.h>

void krait_csv_events_done(struct krait_csv_events *events)
{
    krait_json_events_done(&events->json);
}

/* -- cells -- */

static void add_int(struct krait_buf *out, const struct krait_fc *fc, uint64_t value)
{
    if (fc->is_signed && (int64_t)value < 0)
        krait_buf_char(out, '-');
    krait_text_u64(out, fc->is_signed && (int64_t)value < 0 ? -value : value);
}

static void add_value(struct krait_buf *out, const struct krait_value *value)
{
    const struct krait_fc *fc = value->node->fc;
    const char *label = fc->kind == KRAIT_FC_ENUM ? krait_enum_label(fc, krait_value_int(value)) : NULL;
    if (label) {
        krait_csv_cstr(out, label);
    } else if (krait_fc_is_int(fc) && fc->form != KRAIT_INT_BOOL) {
        add_int(out, fc, krait_value_int(value));
    } else if (krait_node_is_text(value->node)) {
        size_t n;
        KRAIT_AUTO_BUF utf8 = { 0 };
        const char *text = krait_value_utf8(value, &utf8, &n);
        krait_csv_str(out, text, n);
        out->failed = out->failed || utf8.failed;
    } else {
        KRAIT_AUTO_BUF json = { 0 };
        krait_json_value(value, &json);
        krait_csv_str(out, json.data ? json.data : "", json.len);
        out->failed = out->failed || json.failed;
    }
}

/* -- columns -- */

static const struct krait_fc *scope_of(const struct krait_event_class *event, int scope)
{
    const struct krait_fc *const of[KRAIT_JSON_SCOPES] = { event->stream->packet_context,
                                                           event->stream->event_context, event->context,
                                                           event->fields };
    return of[scope];
}

static bool same_fields(const struct krait_event_class *a, const struct krait_event_class *b)
{
    bool same = strcmp(a->name, b->name) == 0;
    for (int s = 0; s < KRAIT_JSON_SCOPES && same; s++) {
        const struct krait_fc *x = scope_of(a, s), *y = scope_of(b, s);
        same = (x ? x->count : 0) == (y ? y->count : 0);
        for (uint32_t i = 0; same && x && i < x->count; i++)
            same = strcmp(x->members[i].name, y->members[i].name) == 0;
    }
    return same;
}

/* The class that stands for all that are wanted; NULL where they differ, or there is none. */
static const struct krait_event_class *only_class(const struct krait_ctf_reader *reader,
                                                  const struct krait_filter *filter)
{
    const struct krait_event_class *only = NULL;
    for (uint32_t t = 0; t < reader->trace_count; t++) {
        const struct krait_ctf_metadata *md = reader->traces[t]->metadata;
        for (uint32_t k = 0; k < md->stream_count; k++) {
            for (uint32_t i = 0; i < md->streams[k]->event_count; i++) {
                const struct krait_event_class *event = md->streams[k]->events[i];
                if (filter && !krait_filter_may_want(filter, event))
                    continue;
                if (only && !same_fields(only, event))
                    return NULL;
                only = event;
            }
        }
    }
    return only;
}

static bool is_taken(const struct krait_event_class *event, int scope, const char *name)
{
    bool taken = !strcmp(name, "time_ns") || !strcmp(name, "stream") || !strcmp(name, "event");
    for (int s = 0; s < scope && !taken; s++) {
        const struct krait_fc *fc = scope_of(event, s);
        for (uint32_t i = 0; fc && i < fc->count && !taken; i++)
            taken = strcmp(fc->members[i].name, name) == 0;
    }
    return taken;
}

static void add_names(struct krait_buf *out, const struct krait_event_class *event)
{
    for (int s = 0; s < KRAIT_JSON_SCOPES; s++) {
        const struct krait_fc *fc = scope_of(event, s);
        for (uint32_t i = 0; fc && i < fc->count; i++) {
            const char *name = fc->members[i].name;
            if (!krait_json_shows(s, fc->members[i].fc))
                continue;
            krait_buf_char(out, ',');
            if (is_taken(event, s, name))
                krait_buf_fmt(out, "%s.", krait_json_scope_name(s));
            krait_csv_cstr(out, name);
        }
    }
}

void krait_csv_begin(struct krait_csv_events *events, const struct krait_ctf_reader *reader,
                     const struct krait_filter *filter, struct krait_buf *out)
{
    const struct krait_event_class *only = only_class(reader, filter);
    events->wide = only;
    krait_buf_str(out, "time_ns,stream,event");
    if (only)
        add_names(out, only);
    for (int s = 0; s < KRAIT_JSON_SCOPES && !only; s++)
        krait_buf_fmt(out, ",%s", krait_json_scope_name(s));
    krait_buf_char(out, '\n');
}

/* -- events -- */

static void add_wide(struct krait_buf *out, const struct krait_value *scope, int s)
{
    struct krait_value child = { 0 };
    while (krait_value_next(scope, &child) > 0) {
        if (!krait_json_shows(s, scope->node->fc->members[child.index].fc))
            continue;
        krait_buf_char(out, ',');
        add_value(out, &child);
    }
}

static void add_long(struct krait_buf *out, const struct krait_value *scope, int s)
{
    KRAIT_AUTO_BUF json = { 0 };
    krait_json_scope(scope, s, &json);
    krait_csv_str(out, json.data, json.len);
    out->failed = out->failed || json.failed;
}

int krait_csv_event(struct krait_csv_events *events, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len;
    const struct krait_locator *const *scopes = krait_json_scopes(&events->json, cursor);
    if (cursor->cls->clock)
        krait_buf_fmt(out, "%lld", (long long)cursor->ns);
    krait_buf_fmt(out, ",%u,", cursor->stream->index);
    krait_csv_cstr(out, cursor->event->name);
    for (int s = 0; scopes && s < KRAIT_JSON_SCOPES; s++) {
        struct krait_value value;
        bool there = scopes[s] && !krait_locator_value(scopes[s], cursor, &value);
        if (!events->wide)
            krait_buf_char(out, ',');
        if (there)
            events->wide ? add_wide(out, &value, s) : add_long(out, &value, s);
    }
    krait_buf_char(out, '\n');
    if (scopes && !out->failed)
        return 0;
    out->len = before;
    return -ENOMEM;
}
