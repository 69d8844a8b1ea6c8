/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/text/json_event.h"

#include "base/json.h"
#include "ctf/scalar/text.h"

#include <string.h>

enum { MAX_EXACT_BITS = 53 };

static const struct {
    const char *key;
    enum krait_field_scope scope;
} scopes[KRAIT_JSON_SCOPES] = {
    { "packet_context", KRAIT_FIELD_PACKET_CONTEXT },
    { "common_context", KRAIT_FIELD_COMMON_CONTEXT },
    { "event_context", KRAIT_FIELD_EVENT_CONTEXT },
    { "payload", KRAIT_FIELD_PAYLOAD },
};

struct json_class {
    const char *head; /* what is the same for all its events */
    size_t head_len;
    const struct krait_locator *scopes[KRAIT_JSON_SCOPES]; /* NULL: it has none */
};

void krait_json_events_done(struct krait_json_events *events)
{
    krait_map_done(&events->classes);
    krait_arena_done(&events->arena);
}

/* -- values -- */

static void add_int(const struct krait_fc *fc, uint64_t value, struct krait_buf *out)
{
    bool negative = fc->is_signed && (int64_t)value<0, quoted = fc->bits> MAX_EXACT_BITS;
    if (quoted)
        krait_buf_char(out, '"');
    if (negative)
        krait_buf_char(out, '-');
    krait_text_u64(out, negative ? -value : value);
    if (quoted)
        krait_buf_char(out, '"');
}

static void add_enum(const struct krait_fc *fc, uint64_t value, struct krait_buf *out)
{
    const char *label = krait_enum_label(fc, value);
    krait_buf_str(out, "{\"value\":");
    add_int(fc, value, out);
    krait_buf_str(out, ",\"label\":");
    if (label)
        krait_json_cstr(out, label);
    else
        krait_buf_str(out, "null");
    krait_buf_char(out, '}');
}

/* What the reader itself takes from the packets' contexts says nothing of the event. */
static bool is_readers_own(const struct krait_fc *fc)
{
    return krait_fc_is_int(fc) && fc->meanings;
}

static void add_text(const struct krait_value *value, struct krait_buf *out)
{
    size_t n;
    KRAIT_AUTO_BUF utf8 = { 0 };
    const char *text = krait_value_utf8(value, &utf8, &n);
    krait_json_str(out, text, n);
    out->failed = out->failed || utf8.failed;
}

bool krait_json_shows(int scope, const struct krait_fc *fc)
{
    return scopes[scope].scope != KRAIT_FIELD_PACKET_CONTEXT || !is_readers_own(fc);
}

const char *krait_json_scope_name(int scope)
{
    return scopes[scope].key;
}

static void add_children(const struct krait_value *value, bool in_packet, struct krait_buf *out)
{
    bool is_struct = value->node->fc->kind == KRAIT_FC_STRUCT, any = false;
    struct krait_value child = { 0 };
    krait_buf_char(out, is_struct ? '{' : '[');
    while (krait_value_next(value, &child) > 0 && !out->failed) {
        if (in_packet && is_readers_own(value->node->fc->members[child.index].fc))
            continue;
        if (any)
            krait_buf_char(out, ',');
        if (is_struct) {
            krait_json_cstr(out, child.node->name);
            krait_buf_char(out, ':');
        }
        krait_json_value(&child, out);
        any = true;
    }
    krait_buf_char(out, is_struct ? '}' : ']');
}

void krait_json_value(const struct krait_value *value, struct krait_buf *out)
{
    const struct krait_fc *fc = value->node->fc;
    if (krait_node_is_text(value->node)) {
        add_text(value, out);
    } else if (fc->kind == KRAIT_FC_OPTIONAL) { /* what is there has taken its place */
        krait_buf_str(out, "null");
    } else if (krait_fc_is_int(fc) && fc->form == KRAIT_INT_BOOL) {
        krait_buf_str(out, krait_value_int(value) ? "true" : "false");
    } else if (fc->kind == KRAIT_FC_ENUM) {
        add_enum(fc, krait_value_int(value), out);
    } else if (fc->kind == KRAIT_FC_INT) {
        add_int(fc, krait_value_int(value), out);
    } else if (fc->kind == KRAIT_FC_FLOAT) {
        krait_json_double(out, krait_value_float(value));
    } else {
        add_children(value, false, out);
    }
}

void krait_json_scope(const struct krait_value *value, int scope, struct krait_buf *out)
{
    add_children(value, scopes[scope].scope == KRAIT_FIELD_PACKET_CONTEXT, out);
}

/* -- events -- */

static void add_head(const struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    static const char *const texts[] = { "hostname", "procname" };
    const struct krait_ctf_metadata *md = cursor->trace->metadata;
    krait_buf_str(out, ",\"event\":");
    krait_json_cstr(out, cursor->event->name);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        const char *text = krait_ctf_env_text(md, texts[i], NULL);
        if (!text)
            continue;
        krait_buf_fmt(out, ",\"%s\":", texts[i]);
        krait_json_cstr(out, text);
    }
    const struct krait_env_entry *vpid = krait_ctf_env(md, "vpid");
    if (vpid && !vpid->text)
        krait_buf_fmt(out, ",\"vpid\":%lld", (long long)vpid->value);
}

static KRAIT_COLD struct json_class *new_class(struct krait_json_events *events,
                                               const struct krait_ctf_cursor *cursor)
{
    KRAIT_AUTO_BUF head = { 0 };
    struct json_class *cls = KRAIT_ARENA_NEW(&events->arena, struct json_class);
    add_head(cursor, &head);
    if (!cls || head.failed)
        return NULL;
    cls->head = krait_arena_strndup(&events->arena, head.data, head.len);
    cls->head_len = head.len;
    for (int i = 0; i < KRAIT_JSON_SCOPES; i++) {
        int rc = krait_locator_new(&cls->scopes[i], &events->arena, cursor->trace, cursor->event,
                                   scopes[i].scope, "", NULL);
        if (rc && rc != -ENOENT)
            return NULL;
    }
    if (!cls->head || krait_map_put(&events->classes, (uintptr_t)cursor->event, (uintptr_t)cls))
        return NULL;
    return cls;
}

static void add_ns(struct krait_buf *out, const char *key, int64_t ns)
{
    krait_buf_fmt(out, "\"%s\":\"%lld\"", key, (long long)ns);
}

static const struct json_class *class_of(struct krait_json_events *events,
                                         const struct krait_ctf_cursor *cursor)
{
    const uint64_t *known = krait_map_get(&events->classes, (uintptr_t)cursor->event);
    return known ? (const struct json_class *)(uintptr_t)*known : new_class(events, cursor);
}

const struct krait_locator *const *krait_json_scopes(struct krait_json_events *events,
                                                     const struct krait_ctf_cursor *cursor)
{
    const struct json_class *cls = class_of(events, cursor);
    return cls ? cls->scopes : NULL;
}

int krait_json_event(struct krait_json_events *events, struct krait_ctf_cursor *cursor, struct krait_buf *out)
{
    size_t before = out->len;
    const struct json_class *cls = class_of(events, cursor);
    krait_buf_char(out, '{');
    if (cursor->cls->clock)
        add_ns(out, "time_ns", cursor->ns);
    krait_buf_fmt(out, "%s\"stream\":%u", cursor->cls->clock ? "," : "", cursor->stream->index);
    if (cls)
        krait_text_add(out, cls->head, cls->head_len);
    for (int i = 0; cls && i < KRAIT_JSON_SCOPES; i++) {
        struct krait_value value;
        if (!cls->scopes[i] || krait_locator_value(cls->scopes[i], cursor, &value))
            continue;
        krait_buf_fmt(out, ",\"%s\":", scopes[i].key);
        krait_json_scope(&value, i, out);
    }
    krait_buf_str(out, "}\n");
    if (cls && !out->failed)
        return 0;
    out->len = before;
    return -ENOMEM;
}

void krait_json_loss(const struct krait_ctf_loss *loss, struct krait_buf *out)
{
    const struct krait_ctf_clock *clock = loss->has_times ? loss->stream->cls->clock : NULL;
    krait_buf_fmt(out, "{\"lost\":\"%ss\",\"count\":", loss->kind);
    if (loss->count)
        krait_text_u64(out, loss->count);
    else
        krait_buf_str(out, "null");
    krait_buf_fmt(out, ",\"stream\":%u", loss->stream->index);
    if (clock) {
        krait_buf_char(out, ',');
        add_ns(out, "begin_ns", krait_ctf_ns(clock, loss->begin));
        krait_buf_char(out, ',');
        add_ns(out, "end_ns", krait_ctf_ns(clock, loss->end));
    }
    krait_buf_str(out, "}\n");
}
