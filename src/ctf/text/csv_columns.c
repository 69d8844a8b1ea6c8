/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/csv_columns.h"

#include "base/csv.h"

#include <string.h>

bool krait_csv_same_columns(const struct krait_event_class *a, const struct krait_event_class *b)
{
    bool same = strcmp(a->name, b->name) == 0;
    for (int s = 0; s < KRAIT_DATA_SCOPES && same; s++) {
        const struct krait_fc *x = krait_data_scope(a, s), *y = krait_data_scope(b, s);
        same = (x ? x->count : 0) == (y ? y->count : 0);
        for (uint32_t i = 0; same && x && i < x->count; i++)
            same = strcmp(x->members[i].name, y->members[i].name) == 0;
    }
    return same;
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
                if (only && !krait_csv_same_columns(only, event))
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
        const struct krait_fc *fc = krait_data_scope(event, s);
        for (uint32_t i = 0; fc && i < fc->count && !taken; i++)
            taken = strcmp(fc->members[i].name, name) == 0;
    }
    return taken;
}

static void add_names(struct krait_buf *out, const struct krait_event_class *event)
{
    for (int s = 0; s < KRAIT_DATA_SCOPES; s++) {
        const struct krait_fc *fc = krait_data_scope(event, s);
        for (uint32_t i = 0; fc && i < fc->count; i++) {
            const char *name = fc->members[i].name;
            if (!krait_data_shows(s ? KRAIT_SCOPE_EVENT : KRAIT_SCOPE_PACKET_CONTEXT, fc->members[i].fc))
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
    for (int s = 0; s < KRAIT_DATA_SCOPES && !event; s++)
        krait_buf_fmt(out, ",%s", krait_data_scope_names[s]);
    krait_buf_char(out, '\n');
}
