/* SPDX-License-Identifier: Apache-2.0
 *
 * CTF 2's metadata: a JSON text sequence (RFC 7464) of fragments (CTF2-SPEC-2.0).
 */
#include "ctf/meta/ctf2.h"
#include "ctf/meta/model.h"

#include <string.h>

#define RECORD_SEPARATOR '\x1e'

/* -- preamble -- */

static void read_uuid(struct krait_ctf2_parser *p, const struct krait_json *uuid)
{
    const struct krait_json *item = uuid->first;
    if (uuid->count != 16)
        krait_ctf2_fail(p, uuid->at, -EBADMSG, "'uuid' is not 16 bytes");
    for (size_t i = 0; i < 16 && item; i++, item = item->next) {
        if (item->kind != KRAIT_JSON_UNSIGNED || item->number > 255)
            krait_ctf2_fail(p, item->at, -EBADMSG, "'uuid' is not 16 bytes");
        p->md->uuid[i] = (uint8_t)item->number;
    }
    p->md->has_uuid = true;
}

static void preamble(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "version", "uuid", NULL };
    if (p->has_preamble)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second preamble");
    p->has_preamble = true;
    const struct krait_json *version = krait_ctf2_need(p, object, "version", KRAIT_JSON_UNSIGNED);
    if (version && version->number != 2)
        krait_ctf2_fail(p, version->at, -ENOTSUP, "the metadata is of CTF %llu; this reads CTF 1.8 and CTF 2",
                        (unsigned long long)version->number);
    krait_ctf2_keys(p, object, keys);
    const struct krait_json *uuid = krait_ctf2_get(p, object, "uuid", KRAIT_JSON_ARRAY);
    if (uuid)
        read_uuid(p, uuid);
}

/* -- field-class-alias -- */

static void field_class_alias(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "name", "field-class", NULL };
    krait_ctf2_keys(p, object, keys);
    const struct krait_json *name = krait_ctf2_need(p, object, "name", KRAIT_JSON_TEXT);
    krait_ctf2_field(p, object, "field-class"); /* one that nobody uses is checked too */
    if (p->rc)
        return;
    uint32_t id = krait_strtab_add(&p->alias_names, name->text, strlen(name->text));
    const struct krait_json **aliases =
        krait_arena_grow(&p->json, p->aliases, p->alias_limit, &p->alias_cap, sizeof(*p->aliases));
    if (id == KRAIT_NO_ID || !aliases) {
        krait_ctf2_oom(p);
    } else if (id != p->alias_limit) {
        krait_ctf2_fail(p, name->at, -EBADMSG, "a second field class alias '%.64s'", name->text);
    } else {
        p->aliases = aliases;
        p->aliases[p->alias_limit++] = krait_json_get(object, "field-class");
    }
}

/* -- trace-class -- */

static void environment(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    struct krait_ctf_metadata *md = p->md;
    md->env = krait_ctf2_alloc(p, object->count, sizeof(*md->env));
    for (const struct krait_json *item = object->first; item && !p->rc; item = item->next) {
        struct krait_env_entry *entry = &md->env[md->env_count++];
        entry->name = krait_ctf2_keep(p, item->key);
        if (item->kind == KRAIT_JSON_TEXT)
            entry->text = krait_ctf2_keep(p, item->text);
        else if (item->kind == KRAIT_JSON_UNSIGNED || item->kind == KRAIT_JSON_NEGATIVE)
            entry->value = (int64_t)item->number;
        else
            krait_ctf2_fail(p, item->at, -EBADMSG, "the environment's '%.64s' is neither integer nor text",
                            item->key);
    }
}

/* The root of a scope, which is a structure. NULL if there is none. */
static const struct krait_fc *scope_field(struct krait_ctf2_parser *p, const struct krait_json *object,
                                          const char *key)
{
    const struct krait_json *item = p->rc ? NULL : krait_json_get(object, key);
    const struct krait_fc *fc = item ? krait_ctf2_field(p, object, key) : NULL;
    if (fc && fc->kind != KRAIT_FC_STRUCT)
        krait_ctf2_fail(p, item->at, -EBADMSG, "'%s' is not a structure", key);
    return fc;
}

static void trace_class(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = {
        "namespace", "name", "uid", "environment", "packet-header-field-class", NULL
    };
    if (p->has_trace)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second trace class");
    if (p->md->stream_count)
        krait_ctf2_fail(p, object->at, -EBADMSG, "the trace class follows a data stream class");
    p->has_trace = true;
    krait_ctf2_keys(p, object, keys);
    const struct krait_json *env = krait_ctf2_get(p, object, "environment", KRAIT_JSON_OBJECT);
    if (env)
        environment(p, env);
    p->md->uid = krait_ctf2_text(p, object, "uid", NULL);
    p->md->packet_header = scope_field(p, object, "packet-header-field-class");
}

/* -- clock-class -- */

static void clock_offset(struct krait_ctf2_parser *p, struct krait_ctf_clock *clock,
                         const struct krait_json *object)
{
    static const char *const keys[] = { "seconds", "cycles", NULL };
    krait_ctf2_keys(p, object, keys);
    const struct krait_json *seconds = p->rc ? NULL : krait_json_get(object, "seconds");
    bool is_int = seconds && (seconds->kind == KRAIT_JSON_NEGATIVE ||
                              (seconds->kind == KRAIT_JSON_UNSIGNED && seconds->number <= INT64_MAX));
    if (seconds && !is_int)
        krait_ctf2_fail(p, seconds->at, -EBADMSG, "'seconds' is not an integer of 64 bits");
    clock->offset_s = seconds ? (int64_t)seconds->number : 0;
    clock->offset = krait_ctf2_number(p, object, "cycles", 0);
    if (clock->offset >= clock->freq)
        krait_ctf2_fail(p, object->at, -EBADMSG, "'cycles' is a second or more");
}

/* Of a clock or an origin: its namespace, name and uid. NULL where name or uid is missing. */
static const char *identity(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    if (p->rc || !krait_json_get(object, "name") || !krait_json_get(object, "uid"))
        return NULL;
    const char *text =
        krait_model_identity(p->arena, krait_ctf2_text(p, object, "namespace", ""),
                             krait_ctf2_text(p, object, "name", ""), krait_ctf2_text(p, object, "uid", ""));
    if (!text)
        krait_ctf2_oom(p);
    return text;
}

/* The Unix epoch, or one that only its tracers know. */
static void clock_origin(struct krait_ctf2_parser *p, struct krait_ctf_clock *clock,
                         const struct krait_json *origin)
{
    static const char *const keys[] = { "namespace", "name", "uid", NULL };
    if (origin->kind == KRAIT_JSON_OBJECT) {
        krait_ctf2_keys(p, origin, keys);
        krait_ctf2_need(p, origin, "name", KRAIT_JSON_TEXT);
        krait_ctf2_need(p, origin, "uid", KRAIT_JSON_TEXT);
        clock->origin = identity(p, origin);
    } else if (origin->kind != KRAIT_JSON_TEXT || strcmp(origin->text, "unix-epoch") != 0) {
        krait_ctf2_fail(p, origin->at, -EBADMSG, "'origin' is neither 'unix-epoch' nor an object");
    } else {
        clock->absolute = true;
    }
}

static void clock_class(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = {
        "id",          "namespace",          "name", "uid", "frequency", "origin", "precision", "accuracy",
        "description", "offset-from-origin", NULL
    };
    struct krait_ctf_clock *clock = krait_ctf2_alloc(p, 1, sizeof(*clock));
    krait_ctf2_keys(p, object, keys);
    krait_ctf2_need(p, object, "id", KRAIT_JSON_TEXT);
    const struct krait_json *freq = krait_ctf2_need(p, object, "frequency", KRAIT_JSON_UNSIGNED);
    if (p->rc)
        return;
    if (!freq->number || freq->number > INT64_MAX)
        krait_ctf2_fail(p, freq->at, -EBADMSG, "a clock's frequency is 0 or too large");
    *clock = (struct krait_ctf_clock){ .name = krait_ctf2_text(p, object, "id", ""),
                                       .description = krait_ctf2_text(p, object, "description", ""),
                                       .uuid_text = krait_ctf2_text(p, object, "uid", ""),
                                       .freq = freq->number,
                                       .precision = krait_ctf2_number(p, object, "precision", 0) };
    clock->identity = identity(p, object);
    const struct krait_json *origin = krait_json_get(object, "origin");
    const struct krait_json *offset = krait_ctf2_get(p, object, "offset-from-origin", KRAIT_JSON_OBJECT);
    if (origin)
        clock_origin(p, clock, origin);
    if (offset)
        clock_offset(p, clock, offset);
    int rc = p->rc ? 0 : krait_model_add_clock(p->md, &p->clock_cap, clock);
    if (rc == -EEXIST)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second clock class '%.64s'", clock->name);
    else if (rc == -ERANGE)
        krait_ctf2_fail(p, offset->at, -EBADMSG, "the clock's offset does not fit 64 bits");
    else if (rc)
        krait_ctf2_oom(p);
}

/* -- data-stream-class -- */

static const struct krait_ctf_clock *default_clock(struct krait_ctf2_parser *p,
                                                   const struct krait_json *object)
{
    const struct krait_json *id = krait_ctf2_get(p, object, "default-clock-class-id", KRAIT_JSON_TEXT);
    const struct krait_ctf_clock *clock = id ? krait_ctf_clock_named(p->md, id->text) : NULL;
    if (id && !clock)
        krait_ctf2_fail(p, id->at, -EBADMSG, "there is no clock class '%.64s' before", id->text);
    return clock;
}

static void data_stream_class(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "id",
                                        "namespace",
                                        "name",
                                        "uid",
                                        "default-clock-class-id",
                                        "packet-context-field-class",
                                        "event-record-header-field-class",
                                        "event-record-common-context-field-class",
                                        NULL };
    struct krait_stream_class *stream = krait_ctf2_alloc(p, 1, sizeof(*stream));
    krait_ctf2_keys(p, object, keys);
    if (p->rc)
        return;
    stream->id = krait_ctf2_number(p, object, "id", 0);
    stream->clock = default_clock(p, object);
    stream->packet_context = scope_field(p, object, "packet-context-field-class");
    stream->event_header = scope_field(p, object, "event-record-header-field-class");
    stream->event_context = scope_field(p, object, "event-record-common-context-field-class");
    int rc = p->rc ? 0 : krait_model_add_stream(p->md, &p->stream_cap, stream);
    if (rc == -EEXIST)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second data stream class of id %llu",
                        (unsigned long long)stream->id);
    else if (rc)
        krait_ctf2_oom(p);
}

/* -- event-record-class -- */

/* What tracers say of an event beyond the specification: LTTng's (lttng-tools, ctf2-trace-class-visitor.cpp)
 * and babeltrace2's own attributes, of which only words count. NULL if there is none. */
static const char *event_attribute(const struct krait_json *event, const char *key)
{
    static const char *const namespaces[] = { "lttng.org,2009", "babeltrace.org,2020" };
    const struct krait_json *attributes = krait_json_get(event, "attributes");
    for (size_t i = 0; attributes && i < KRAIT_ARRAY_LEN(namespaces); i++) {
        const struct krait_json *ours = krait_json_get(attributes, namespaces[i]);
        const struct krait_json *found = ours ? krait_json_get(ours, key) : NULL;
        if (found)
            return found->kind == KRAIT_JSON_TEXT ? found->text : NULL;
    }
    return NULL;
}

static int32_t log_level(const struct krait_json *event)
{
    static const char *const words[] = { "emergency",      "alert",         "critical",     "error",
                                         "warning",        "notice",        "info",         "debug:system",
                                         "debug:program",  "debug:process", "debug:module", "debug:unit",
                                         "debug:function", "debug:line",    "debug" };
    const char *level = event_attribute(event, "log-level");
    for (size_t i = 0; level && i < KRAIT_ARRAY_LEN(words); i++) {
        if (strcmp(words[i], level) == 0)
            return (int32_t)i;
    }
    return -1;
}

static void event_record_class(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    static const char *const keys[] = { "id",  "data-stream-class-id",         "namespace",           "name",
                                        "uid", "specific-context-field-class", "payload-field-class", NULL };
    struct krait_event_class *event = krait_ctf2_alloc(p, 1, sizeof(*event));
    krait_ctf2_keys(p, object, keys);
    uint64_t stream_id = krait_ctf2_number(p, object, "data-stream-class-id", 0);
    struct krait_stream_class *stream = (struct krait_stream_class *)krait_ctf_stream(p->md, stream_id);
    if (!stream)
        krait_ctf2_fail(p, object->at, -EBADMSG, "there is no data stream class of id %llu before",
                        (unsigned long long)stream_id);
    if (p->rc)
        return;
    event->id = krait_ctf2_number(p, object, "id", 0);
    event->name = krait_ctf2_text(p, object, "name", "");
    event->unnamed = !krait_json_get(object, "name");
    event->log_level = log_level(object);
    const char *uri = event_attribute(object, "emf-uri");
    event->emf_uri = uri ? krait_ctf2_keep(p, uri) : NULL;
    event->context = scope_field(p, object, "specific-context-field-class");
    event->fields = scope_field(p, object, "payload-field-class");
    int rc = p->rc ? 0 : krait_model_add_event(p->arena, stream, event);
    if (rc == -EEXIST)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a second event record class of id %llu in its stream",
                        (unsigned long long)event->id);
    else if (rc)
        krait_ctf2_oom(p);
}

/* -- the sequence -- */

static const struct {
    const char *type;
    void (*read)(struct krait_ctf2_parser *p, const struct krait_json *object);
} fragments[] = {
    { "preamble", preamble },
    { "field-class-alias", field_class_alias },
    { "trace-class", trace_class },
    { "clock-class", clock_class },
    { "data-stream-class", data_stream_class },
    { "event-record-class", event_record_class },
};

static void read_fragment(struct krait_ctf2_parser *p, const struct krait_json *object)
{
    if (object->kind != KRAIT_JSON_OBJECT)
        krait_ctf2_fail(p, object->at, -EBADMSG, "a fragment that is not an object");
    const struct krait_json *type = krait_ctf2_need(p, object, "type", KRAIT_JSON_TEXT);
    if (p->rc)
        return;
    if (!p->has_preamble && strcmp(type->text, "preamble") != 0)
        krait_ctf2_fail(p, object->at, -EBADMSG, "the first fragment is not a preamble");
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(fragments); i++) {
        if (strcmp(fragments[i].type, type->text) == 0) {
            fragments[i].read(p, object);
            return;
        }
    }
    krait_ctf2_fail(p, type->at, -EBADMSG, "a fragment of type '%.64s', which there is not", type->text);
}

/* Records between separators; empty ones say nothing (RFC 7464, 2.1). */
static void read_records(struct krait_ctf2_parser *p, const char *text, size_t size)
{
    const char *end = text + size;
    if (*text != RECORD_SEPARATOR)
        krait_ctf2_fail(p, 0, -EBADMSG, "no record separator (0x1e) before the first fragment");
    for (const char *at = text; at < end && !p->rc;) {
        const char *next = memchr(at, RECORD_SEPARATOR, (size_t)(end - at));
        const char *behind = next ? next : end;
        struct krait_json *object = NULL;
        if (behind > at)
            p->rc =
                krait_json_read(&object, &p->json, at, (size_t)(behind - at), (size_t)(at - text), p->err);
        if (object)
            read_fragment(p, object);
        at = next ? next + 1 : end;
    }
    if (!p->has_preamble)
        krait_ctf2_fail(p, size, -EBADMSG, "there is no preamble");
}

int krait_ctf2_parse(struct krait_ctf_metadata *md, const char *text, size_t size, struct krait_err *err)
{
    struct krait_ctf2_parser p = { .md = md, .arena = &md->arena, .err = err };
    md->is_ctf2 = true;
    md->byte_order = KRAIT_BO_LE; /* every field says its own */
    read_records(&p, text, size);
    krait_ctf2_finish(&p);
    krait_arena_done(&p.json);
    krait_strtab_done(&p.alias_names);
    return p.rc;
}
