/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks at the top of the metadata: trace, env, clock, stream, event, callsite (CTF 1.8.3, section 7 and 8).
 */
#include "ctf/meta/model.h"
#include "ctf/meta/tsdl.h"

#include <string.h>

/* One entry of a block: "name = value;" or "name := type;". */
struct entry {
    const char *name;
    struct krait_fc *type; /* of := */
    struct krait_tsdl_value value;
};

/* Reads the next entry. Returns false at the block's end. */
static bool next_entry(struct krait_tsdl_parser *p, struct entry *entry)
{
    *entry = (struct entry){ .name = "" };
    if (!krait_tsdl_until(p, '}'))
        return false;
    entry->name = krait_tsdl_path(p);
    if (p->tok.kind == KRAIT_TOK_ASSIGN_TYPE) {
        krait_tsdl_advance(p);
        entry->type = krait_tsdl_type(p);
    } else {
        krait_tsdl_expect(p, '=');
        entry->value = krait_tsdl_value(p);
    }
    krait_tsdl_expect(p, ';');
    return !p->rc;
}

static bool declaration(struct krait_tsdl_parser *p)
{
    if (krait_tsdl_type_decl(p))
        return true;
    if (!krait_tsdl_at_tagged(p))
        return false;
    krait_tsdl_types(p);
    return true;
}

/* The same of a block that may declare types: they are taken on the way. */
static bool next_entry_or_type(struct krait_tsdl_parser *p, struct entry *entry)
{
    while (!p->rc && declaration(p))
        continue;
    return next_entry(p, entry);
}

/* A scope's type, which has to be a struct. */
static const struct krait_fc *scope_type(struct krait_tsdl_parser *p, const struct entry *entry)
{
    if (!p->rc && (!entry->type || entry->type->kind != KRAIT_FC_STRUCT))
        krait_tsdl_fail(p, -EBADMSG, "%s is not a struct", entry->name);
    return entry->type;
}

static uint64_t number(struct krait_tsdl_parser *p, const struct entry *entry)
{
    if (entry->type)
        krait_tsdl_fail(p, -EBADMSG, "%s is a type, not a number", entry->name);
    return krait_tsdl_number(p, &entry->value, entry->name);
}

static const char *text(struct krait_tsdl_parser *p, const struct entry *entry)
{
    if (!entry->type && entry->value.kind == KRAIT_VALUE_TEXT)
        return entry->value.text;
    krait_tsdl_fail(p, -EBADMSG, "%s is not a string", entry->name);
    return "";
}

/* 8-4-4-4-12 hexadecimal digits. */
static bool parse_uuid(const char *s, uint8_t uuid[16])
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", hex[] = "0123456789abcdefABCDEF";
    int digits = 0;
    if (strlen(s) != sizeof(form) - 1)
        return false;
    for (size_t i = 0; s[i]; i++) {
        const char *at = strchr(hex, s[i]);
        if (form[i] == '-' ? s[i] != '-' : !at)
            return false;
        if (form[i] == '-')
            continue;
        uint8_t *byte = &uuid[digits++ / 2];
        *byte = (uint8_t)(*byte << 4 | (at - hex < 16 ? at - hex : at - hex - 6));
    }
    return true;
}

static void check_version(struct krait_tsdl_parser *p, uint64_t found, uint64_t wanted, const char *name)
{
    if (!p->rc && found != wanted)
        krait_tsdl_fail(p, -ENOTSUP, "%s is %llu; this reads CTF 1.8", name, (unsigned long long)found);
}

static void trace_entry(struct krait_tsdl_parser *p, const struct entry *entry, int attr)
{
    switch (attr) {
    case 0:
        check_version(p, number(p, entry), 1, "major");
        break;
    case 1:
        check_version(p, number(p, entry), 8, "minor");
        break;
    case 2:
        p->md->byte_order = krait_tsdl_byte_order(p, &entry->value);
        if (!p->rc && p->md->byte_order == KRAIT_BO_NATIVE)
            krait_tsdl_fail(p, -EBADMSG, "the trace's 'byte_order' is none of le, be, network");
        break;
    case 3:
        p->md->has_uuid = true;
        if (!parse_uuid(text(p, entry), p->md->uuid))
            krait_tsdl_fail(p, -EBADMSG, "the trace's 'uuid' is not one");
        break;
    case 4:
        p->md->packet_header = scope_type(p, entry);
        break;
    default: /* unknown attributes are for others */
        break;
    }
}

void krait_tsdl_trace(struct krait_tsdl_parser *p)
{
    static const char *const attrs[] = { "major", "minor", "byte_order", "uuid", "packet.header", NULL };
    struct krait_type_scope scope;
    struct entry entry;
    uint32_t seen = 0;
    if (p->has_trace)
        krait_tsdl_fail(p, -EBADMSG, "a second trace block");
    p->has_trace = true;
    krait_tsdl_push(p, &scope);
    krait_tsdl_expect(p, '{');
    while (next_entry_or_type(p, &entry))
        trace_entry(p, &entry, krait_tsdl_attr(p, attrs, entry.name, &seen));
    krait_tsdl_pop(p);
    krait_tsdl_expect(p, ';');
    for (int i = 0; i < 3 && !p->rc; i++) {
        if (!(seen & 1u << i))
            krait_tsdl_fail(p, -EBADMSG, "the trace block has no '%s'", attrs[i]);
    }
}

/* -- env -- */

static void env_entry(struct krait_tsdl_parser *p, const struct entry *entry)
{
    struct krait_ctf_metadata *md = p->md;
    bool is_text = entry->value.kind == KRAIT_VALUE_TEXT;
    if (entry->type) {
        krait_tsdl_fail(p, -EBADMSG, "env.%s is a type", entry->name);
        return;
    }
    md->env = krait_tsdl_grow(p, md->env, md->env_count, &p->env_cap, sizeof(*md->env));
    if (p->rc)
        return;
    md->env[md->env_count++] = (struct krait_env_entry){ .name = entry->name,
                                                         .text = is_text ? entry->value.text : NULL,
                                                         .value = (int64_t)entry->value.number };
    if (is_text && strcmp(entry->name, "tracer_name") == 0 && strncmp(entry->value.text, "lttng", 5) == 0)
        p->is_lttng = true;
}

void krait_tsdl_env(struct krait_tsdl_parser *p)
{
    struct entry entry;
    krait_tsdl_expect(p, '{');
    while (next_entry(p, &entry))
        env_entry(p, &entry);
    krait_tsdl_expect(p, ';');
}

/* -- clock -- */

static void clock_uuid(struct krait_tsdl_parser *p, struct krait_ctf_clock *clock, const struct entry *entry)
{
    clock->uuid_text = text(p, entry);
    clock->has_uuid = true;
    if (!p->rc && !parse_uuid(clock->uuid_text, clock->uuid))
        krait_tsdl_fail(p, -EBADMSG, "the clock's 'uuid' is not one");
}

static void clock_offset_s(struct krait_tsdl_parser *p, struct krait_ctf_clock *clock,
                           const struct entry *entry)
{
    bool is_int = !entry->type && entry->value.kind == KRAIT_VALUE_INT;
    if (!is_int || (!entry->value.negative && entry->value.number > INT64_MAX))
        krait_tsdl_fail(p, -EBADMSG, "'offset_s' is not a number of 64 bits");
    clock->offset_s = (int64_t)entry->value.number;
}

static void clock_entry(struct krait_tsdl_parser *p, struct krait_ctf_clock *clock, const struct entry *entry,
                        int attr)
{
    switch (attr) {
    case 0:
        clock->name = text(p, entry);
        break;
    case 1:
        clock_uuid(p, clock, entry);
        break;
    case 2:
        clock->description = text(p, entry);
        break;
    case 3:
        clock->freq = number(p, entry);
        if (!p->rc && (clock->freq == 0 || clock->freq == UINT64_MAX))
            krait_tsdl_fail(p, -EBADMSG, "a clock's frequency is 0 or too large");
        break;
    case 4:
        clock->precision = number(p, entry);
        break;
    case 5:
        clock_offset_s(p, clock, entry);
        break;
    case 6:
        clock->offset = number(p, entry);
        break;
    case 7:
        clock->absolute = krait_tsdl_boolean(p, &entry->value, "'absolute'");
        break;
    default:
        break;
    }
}

/* By its uuid and name; babeltrace2 before 2.1 by its uuid alone. */
static const char *clock_identity(struct krait_tsdl_parser *p, const struct krait_ctf_clock *clock)
{
    char *uuid = krait_arena_strdup(p->arena, clock->uuid_text);
    for (char *c = uuid; c && *c; c++)
        *c |= 0x20; /* to lower case, digits and all */
    const char *identity = uuid ? krait_model_identity(p->arena, "", clock->name, uuid) : NULL;
    if (!identity)
        krait_tsdl_oom(p);
    return identity;
}

static struct krait_ctf_clock *clock_new(struct krait_tsdl_parser *p)
{
    struct krait_ctf_clock *clock = p->rc ? NULL : KRAIT_ARENA_NEW(p->arena, struct krait_ctf_clock);
    if (!clock) {
        krait_tsdl_oom(p);
        return NULL;
    }
    *clock =
        (struct krait_ctf_clock){ .name = "", .description = "", .uuid_text = "", .freq = KRAIT_NS_PER_S };
    return clock;
}

static void clock_add(struct krait_tsdl_parser *p, struct krait_ctf_clock *clock)
{
    int rc = p->rc ? 0 : krait_model_add_clock(p->md, &p->clock_cap, clock);
    if (rc == -EEXIST)
        krait_tsdl_fail(p, -EBADMSG, "a second clock '%s'", clock->name);
    else if (rc == -ERANGE)
        krait_tsdl_fail(p, -EBADMSG, "the clock's offset does not fit 64 bits");
    else if (rc)
        krait_tsdl_oom(p);
}

void krait_tsdl_clock(struct krait_tsdl_parser *p)
{
    static const char *const attrs[] = { "name",     "uuid",   "description", "freq", "precision",
                                         "offset_s", "offset", "absolute",    NULL };
    struct krait_ctf_clock *clock = clock_new(p);
    struct entry entry;
    uint32_t seen = 0;
    krait_tsdl_expect(p, '{');
    while (next_entry(p, &entry))
        clock_entry(p, clock, &entry, krait_tsdl_attr(p, attrs, entry.name, &seen));
    krait_tsdl_expect(p, ';');
    if (!p->rc && !(seen & 1))
        krait_tsdl_fail(p, -EBADMSG, "a clock without 'name'");
    if (p->rc)
        return;
    if (clock->has_uuid)
        clock->identity = clock_identity(p, clock);
    /* Old LTTng tracers: their clock is the epoch's, and they do not say so. */
    if (p->is_lttng && strcmp(clock->name, "monotonic") == 0)
        clock->absolute = true;
    clock_add(p, clock);
}

/* -- stream -- */

static struct krait_stream_class *stream_new(struct krait_tsdl_parser *p)
{
    struct krait_stream_class *stream = p->rc ? NULL : KRAIT_ARENA_NEW(p->arena, struct krait_stream_class);
    if (!stream)
        krait_tsdl_oom(p);
    return stream;
}

static void stream_add(struct krait_tsdl_parser *p, struct krait_stream_class *stream)
{
    int rc = p->rc ? 0 : krait_model_add_stream(p->md, &p->stream_cap, stream);
    if (rc == -EEXIST)
        krait_tsdl_fail(p, -EBADMSG, "a second stream of id %llu", (unsigned long long)stream->id);
    else if (rc)
        krait_tsdl_oom(p);
}

static void stream_entry(struct krait_tsdl_parser *p, struct krait_stream_class *stream,
                         const struct entry *entry, int attr)
{
    if (attr == 0)
        stream->id = number(p, entry);
    else if (attr == 1)
        stream->packet_context = scope_type(p, entry);
    else if (attr == 2)
        stream->event_header = scope_type(p, entry);
    else if (attr == 3)
        stream->event_context = scope_type(p, entry);
}

static void check_stream_id(struct krait_tsdl_parser *p, bool has_id)
{
    if (p->rc)
        return;
    const struct krait_fc_member *member =
        p->md->packet_header ? krait_fc_member(p->md->packet_header, "stream_id") : NULL;
    if (has_id && (!member || !krait_fc_is_int(member->fc)))
        krait_tsdl_fail(p, -EBADMSG,
                        "the stream has an id, but the packet header has no integer 'stream_id'");
    else if (!has_id && p->md->stream_count)
        krait_tsdl_fail(p, -EBADMSG, "a second stream without 'id'");
}

void krait_tsdl_stream(struct krait_tsdl_parser *p)
{
    static const char *const attrs[] = { "id", "packet.context", "event.header", "event.context", NULL };
    struct krait_stream_class *stream = stream_new(p);
    struct krait_type_scope scope;
    struct entry entry;
    uint32_t seen = 0;
    krait_tsdl_push(p, &scope);
    krait_tsdl_expect(p, '{');
    while (next_entry_or_type(p, &entry))
        stream_entry(p, stream, &entry, krait_tsdl_attr(p, attrs, entry.name, &seen));
    krait_tsdl_pop(p);
    krait_tsdl_expect(p, ';');
    check_stream_id(p, seen & 1);
    stream_add(p, stream);
}

/* -- event -- */

static void event_entry(struct krait_tsdl_parser *p, struct krait_event_class *event, uint64_t *stream_id,
                        const struct entry *entry, int attr)
{
    switch (attr) {
    case 0:
        event->name = text(p, entry);
        break;
    case 1:
        event->id = number(p, entry);
        break;
    case 2:
        *stream_id = number(p, entry);
        break;
    case 3:
        event->context = scope_type(p, entry);
        break;
    case 4:
        event->fields = scope_type(p, entry);
        break;
    case 5:
        event->log_level = (int32_t)KRAIT_MIN(number(p, entry), (uint64_t)INT32_MAX);
        break;
    case 6:
        event->emf_uri = text(p, entry);
        break;
    default:
        break;
    }
}

/* The stream an event belongs to: a trace of one stream class need not say it, nor have one. */
static struct krait_stream_class *event_stream(struct krait_tsdl_parser *p, bool said, uint64_t id)
{
    if (!said && p->md->stream_count == 0)
        stream_add(p, stream_new(p));
    if (!said && p->md->stream_count == 1)
        return p->rc ? NULL : p->md->streams[0];
    struct krait_stream_class *stream =
        said ? (struct krait_stream_class *)krait_ctf_stream(p->md, id) : NULL;
    if (!said)
        krait_tsdl_fail(p, -EBADMSG, "an event without 'stream_id' where there are several streams");
    else if (!stream)
        krait_tsdl_fail(p, -EBADMSG, "an event of stream %llu, which is not declared",
                        (unsigned long long)id);
    return stream;
}

static void event_add(struct krait_tsdl_parser *p, struct krait_stream_class *stream,
                      struct krait_event_class *event)
{
    int rc = p->rc ? 0 : krait_model_add_event(p->arena, stream, event);
    if (rc == -EEXIST)
        krait_tsdl_fail(p, -EBADMSG, "event '%s' has the id %llu of another", event->name,
                        (unsigned long long)event->id);
    else if (rc)
        krait_tsdl_oom(p);
}

void krait_tsdl_event(struct krait_tsdl_parser *p)
{
    static const char *const attrs[] = { "name",   "id",       "stream_id",     "context",
                                         "fields", "loglevel", "model.emf.uri", NULL };
    struct krait_event_class *event = p->rc ? NULL : KRAIT_ARENA_NEW(p->arena, struct krait_event_class);
    struct krait_type_scope scope;
    struct entry entry;
    uint32_t seen = 0;
    uint64_t stream_id = 0;
    if (!event) {
        krait_tsdl_oom(p);
        return;
    }
    event->log_level = -1;
    krait_tsdl_push(p, &scope);
    krait_tsdl_expect(p, '{');
    while (next_entry_or_type(p, &entry))
        event_entry(p, event, &stream_id, &entry, krait_tsdl_attr(p, attrs, entry.name, &seen));
    krait_tsdl_pop(p);
    krait_tsdl_expect(p, ';');
    if (!p->rc && !(seen & 1))
        krait_tsdl_fail(p, -EBADMSG, "an event without 'name'");
    struct krait_stream_class *stream = p->rc ? NULL : event_stream(p, seen & 4, stream_id);
    if (!p->rc && !(seen & 2) && stream->event_count)
        krait_tsdl_fail(p, -EBADMSG, "event '%s' has no 'id' and is not alone in its stream", event->name);
    event_add(p, stream, event);
}

void krait_tsdl_callsite(struct krait_tsdl_parser *p)
{
    struct entry entry;
    krait_tsdl_expect(p, '{');
    while (next_entry(p, &entry))
        continue;
    krait_tsdl_expect(p, ';');
}
