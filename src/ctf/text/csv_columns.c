/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/csv_columns.h"

#include "base/csv.h"

#include <string.h>

void krait_csv_key(struct krait_buf *out, const struct krait_event_class *event)
{
    krait_buf_add(out, event->name, strlen(event->name) + 1);
    for (enum krait_scope s = 0; s < KRAIT_SCOPES; s++) {
        const struct krait_fc *fc = krait_scope_of(event, s);
        uint32_t count = fc ? fc->count : 0;
        krait_buf_add(out, &count, sizeof(count));
        for (uint32_t i = 0; i < count; i++)
            krait_buf_add(out, fc->members[i].name, strlen(fc->members[i].name) + 1);
    }
}

static bool same_columns(const struct krait_event_class *a, const struct krait_event_class *b)
{
    KRAIT_AUTO_BUF x = { 0 }, y = { 0 };
    krait_csv_key(&x, a);
    krait_csv_key(&y, b);
    return !x.failed && !y.failed && x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

const struct krait_event_class *krait_csv_only_class(const struct krait_ctf_reader *reader,
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
                if (only && !same_columns(only, event))
                    return NULL;
                only = event;
            }
        }
    }
    return only;
}

static bool is_taken(const struct krait_event_class *event, enum krait_scope scope, const char *name)
{
    bool taken = !strcmp(name, "time_ns") || !strcmp(name, "stream") || !strcmp(name, "event");
    for (enum krait_scope s = 0; s < scope && !taken; s++) {
        const struct krait_fc *fc = krait_scope_of(event, s);
        for (uint32_t i = 0; fc && i < fc->count && !taken; i++)
            taken = strcmp(fc->members[i].name, name) == 0;
    }
    return taken;
}

static void add_names(struct krait_buf *out, const struct krait_event_class *event)
{
    for (enum krait_scope s = 0; s < KRAIT_SCOPES; s++) {
        const struct krait_fc *fc = krait_scope_of(event, s);
        for (uint32_t i = 0; fc && i < fc->count; i++) {
            const char *name = fc->members[i].name;
            if (!krait_data_shows(s, fc->members[i].fc))
                continue;
            krait_buf_char(out, ',');
            if (is_taken(event, s, name))
                krait_buf_fmt(out, "%s.", krait_data_scope_names[s]);
            krait_csv_cstr(out, name);
        }
    }
}

void krait_csv_columns(struct krait_buf *out, const struct krait_event_class *event)
{
    krait_buf_str(out, "time_ns,stream,event");
    if (event)
        add_names(out, event);
    for (enum krait_scope s = 0; s < KRAIT_SCOPES && !event; s++)
        krait_buf_fmt(out, ",%s", krait_data_scope_names[s]);
    krait_buf_char(out, '\n');
}
