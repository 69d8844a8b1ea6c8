/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

#include <string.h>

unsigned krait_reader_version(void)
{
    return KRAIT_READER_VERSION;
}

/* -- errors -- */

static void copy_text(char *to, size_t room, const char *from, size_t n)
{
    n = KRAIT_MIN(n, room - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

int krait_tell(struct krait_reader_error *error, const struct krait_err *err)
{
    if (!error)
        return err->code;
    memset(error, 0, sizeof(*error));
    error->code = err->code;
    error->offset = err->code ? err->offset : KRAIT_READER_NO_OFFSET;
    copy_text(error->file, sizeof(error->file), err->text, err->file_len);
    copy_text(error->text, sizeof(error->text), err->text, strlen(err->text));
    return err->code;
}

int krait_tell_oom(struct krait_reader_error *error)
{
    struct krait_err err;
    krait_err_set(&err, -ENOMEM, "out of memory");
    return krait_tell(error, &err);
}

/* -- opening -- */

static uint32_t count_classes(const struct krait_ctf_reader *ctf)
{
    uint32_t count = 0;
    for (uint32_t t = 0; t < ctf->trace_count; t++) {
        const struct krait_ctf_metadata *md = ctf->traces[t]->metadata;
        for (uint32_t s = 0; s < md->stream_count; s++)
            count += md->streams[s]->event_count;
    }
    return count;
}

static int list_stream_class(struct krait_reader *reader, const struct krait_ctf_trace *trace,
                             const struct krait_stream_class *cls)
{
    int rc = krait_map_put(&reader->first, (uintptr_t)cls, reader->class_count);
    for (uint32_t i = 0; i < cls->event_count; i++) {
        uint32_t index = reader->class_count++;
        reader->classes[index] = (struct krait_reader_class){ reader, trace, cls->events[i], index };
    }
    return rc;
}

static int list_classes(struct krait_reader *reader)
{
    const struct krait_ctf_reader *ctf = reader->ctf;
    size_t count = KRAIT_MAX(count_classes(ctf), 1u);
    reader->classes = krait_arena_alloc(&reader->arena, count * sizeof(*reader->classes));
    int rc = reader->classes ? 0 : -ENOMEM;
    for (uint32_t t = 0; t < ctf->trace_count; t++) {
        const struct krait_ctf_trace *trace = ctf->traces[t];
        for (uint32_t s = 0; s < trace->metadata->stream_count && !rc; s++)
            rc = list_stream_class(reader, trace, trace->metadata->streams[s]);
    }
    return rc;
}

int krait_reader_open(struct krait_reader **out, const char *const *paths, size_t count,
                      struct krait_reader_error *error)
{
    struct krait_err err = { 0 };
    struct krait_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return krait_tell_oom(error);
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->check.all_done, NULL);
    if (!count)
        krait_err_set(&err, -EINVAL, "no folder to open");
    else
        krait_ctf_open(&reader->ctf, paths, count, NULL, &err);
    if (!err.code && (krait_ctf_compile(reader->ctf) || list_classes(reader)))
        krait_err_set(&err, -ENOMEM, "out of memory");
    if (err.code) {
        krait_reader_close(reader);
        return krait_tell(error, &err);
    }
    *out = reader;
    return 0;
}

void krait_reader_close(struct krait_reader *reader)
{
    if (!reader)
        return;
    krait_row_set_free(reader->rows);
    krait_row_set_free(reader->check.rows);
    krait_ctf_close(reader->ctf);
    krait_map_done(&reader->first);
    krait_map_done(&reader->wanted);
    krait_arena_done(&reader->arena);
    pthread_cond_destroy(&reader->check.all_done);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

void krait_lost_of(struct krait_reader_lost *lost, const struct krait_ctf_loss *loss)
{
    const struct krait_ctf_clock *clock = loss->has_times ? loss->stream->cls->clock : NULL;
    *lost = (struct krait_reader_lost){ .stream = loss->stream->index,
                                        .packets = loss->kind[0] == 'p',
                                        .count = loss->count,
                                        .begin_ns = clock ? krait_ctf_ns(clock, loss->begin) : 0,
                                        .end_ns = clock ? krait_ctf_ns(clock, loss->end) : 0 };
}

/* -- streams -- */

const struct krait_ctf_stream *krait_stream_of(const struct krait_reader *reader, uint32_t stream)
{
    return stream < reader->ctf->stream_count ? reader->ctf->streams[stream] : NULL;
}

uint32_t krait_reader_stream_count(const struct krait_reader *reader)
{
    return reader->ctf->stream_count;
}

const char *krait_reader_stream_path(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? s->path : NULL;
}

uint64_t krait_reader_stream_id(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? s->id : 0;
}

uint32_t krait_reader_stream_packet_count(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? s->packet_count : 0;
}

const char *krait_reader_stream_env_text(const struct krait_reader *reader, uint32_t stream, const char *name)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? krait_ctf_env_text(s->trace->metadata, name, NULL) : NULL;
}

int krait_reader_stream_env_int(const struct krait_reader *reader, uint32_t stream, const char *name,
                                int64_t *value)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    const struct krait_env_entry *entry = s ? krait_ctf_env(s->trace->metadata, name) : NULL;
    if (!entry || entry->text)
        return -ENODATA;
    *value = entry->value;
    return 0;
}

uint64_t krait_reader_stream_clock_frequency(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s && s->cls->clock ? s->cls->clock->freq : 0;
}

uint32_t krait_reader_stream_env_count(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? s->trace->metadata->env_count : 0;
}

int krait_reader_stream_env(const struct krait_reader *reader, uint32_t stream, uint32_t i,
                            struct krait_reader_env *entry)
{
    if (i >= krait_reader_stream_env_count(reader, stream))
        return -EINVAL;
    const struct krait_env_entry *found = &krait_stream_of(reader, stream)->trace->metadata->env[i];
    *entry = (struct krait_reader_env){ found->name, found->text, found->text ? 0 : found->value };
    return 0;
}

int krait_reader_stream_clock(const struct krait_reader *reader, uint32_t stream,
                              struct krait_reader_clock *clock)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    const struct krait_ctf_clock *found = s ? s->cls->clock : NULL;
    if (!found)
        return -ENODATA;
    *clock = (struct krait_reader_clock){ .name = found->name,
                                          .description = found->description ? found->description : "",
                                          .frequency = found->freq,
                                          .precision = found->precision,
                                          .offset_s = found->offset_s,
                                          .offset_cycles = found->offset,
                                          .has_uuid = found->has_uuid,
                                          .is_absolute = found->absolute };
    memcpy(clock->uuid, found->uuid, sizeof(clock->uuid));
    return 0;
}

int krait_reader_stream_uuid(const struct krait_reader *reader, uint32_t stream, uint8_t uuid[16])
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    if (!s || !s->trace->metadata->has_uuid)
        return -ENODATA;
    memcpy(uuid, s->trace->metadata->uuid, 16);
    return 0;
}

const char *krait_reader_stream_uid(const struct krait_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    return s ? s->trace->metadata->uid : NULL;
}

/* -- event classes -- */

uint32_t krait_reader_class_count(const struct krait_reader *reader)
{
    return reader->class_count;
}

const struct krait_reader_class *krait_reader_class_at(const struct krait_reader *reader, uint32_t index)
{
    return index < reader->class_count ? &reader->classes[index] : NULL;
}

const struct krait_reader_class *krait_reader_find_class(const struct krait_reader *reader, const char *name)
{
    for (uint32_t i = 0; i < reader->class_count; i++) {
        if (strcmp(reader->classes[i].event->name, name) == 0)
            return &reader->classes[i];
    }
    return NULL;
}

uint32_t krait_reader_class_index(const struct krait_reader_class *cls)
{
    return cls->index;
}

const char *krait_reader_class_name(const struct krait_reader_class *cls)
{
    return cls->event->name;
}

uint64_t krait_reader_class_id(const struct krait_reader_class *cls)
{
    return cls->event->id;
}

uint64_t krait_reader_class_stream_class_id(const struct krait_reader_class *cls)
{
    return cls->event->stream->id;
}

int krait_reader_class_log_level(const struct krait_reader_class *cls)
{
    return cls->event->log_level;
}

/* -- fields -- */

/* Scopes to look into, ended by KRAIT_FIELD_SCOPES. */
static const enum krait_field_scope *scopes_of(enum krait_reader_scope scope)
{
    static const enum krait_field_scope lists[][5] = {
        [KRAIT_READER_ANY_SCOPE] = { KRAIT_FIELD_PAYLOAD, KRAIT_FIELD_EVENT_CONTEXT,
                                     KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_PACKET_CONTEXT,
                                     KRAIT_FIELD_SCOPES },
        [KRAIT_READER_PAYLOAD] = { KRAIT_FIELD_PAYLOAD, KRAIT_FIELD_SCOPES },
        [KRAIT_READER_EVENT_CONTEXT] = { KRAIT_FIELD_EVENT_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_READER_COMMON_CONTEXT] = { KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_READER_PACKET_CONTEXT] = { KRAIT_FIELD_PACKET_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_READER_PACKET_HEADER] = { KRAIT_FIELD_PACKET_HEADER, KRAIT_FIELD_SCOPES },
        [KRAIT_READER_EVENT_HEADER] = { KRAIT_FIELD_EVENT_HEADER, KRAIT_FIELD_SCOPES },
    };
    return (unsigned)scope < KRAIT_ARRAY_LEN(lists) ? lists[scope] : NULL;
}

static int find_field(const struct krait_reader_class *cls, enum krait_reader_scope scope, const char *path,
                      const struct krait_reader_field **out, struct krait_err *err)
{
    const enum krait_field_scope *in = scopes_of(scope);
    struct krait_reader_field *field = KRAIT_ARENA_NEW(&cls->reader->arena, struct krait_reader_field);
    int rc = -ENOENT;
    if (!in)
        return krait_err_set(err, -EINVAL, "no such scope: %d", (int)scope);
    if (!field)
        return krait_err_set(err, -ENOMEM, "out of memory");
    field->cls = cls;
    for (; *in != KRAIT_FIELD_SCOPES && rc == -ENOENT; in++)
        rc = krait_locator_new(&field->locator, &cls->reader->arena, cls->trace, cls->event, *in, path, err);
    if (rc == -ENOENT && scope == KRAIT_READER_ANY_SCOPE)
        krait_err_set(err, rc, "events of '%s' have no field '%s'", cls->event->name, path);
    if (!rc)
        *out = field;
    return rc;
}

int krait_reader_class_field(const struct krait_reader_class *cls, enum krait_reader_scope scope,
                             const char *path, const struct krait_reader_field **field,
                             struct krait_reader_error *error)
{
    struct krait_err err = { 0 };
    pthread_mutex_lock(&cls->reader->lock);
    int rc = find_field(cls, scope, path, field, &err);
    pthread_mutex_unlock(&cls->reader->lock);
    return rc ? krait_tell(error, &err) : 0;
}

enum krait_reader_kind krait_kind_of(const struct krait_fc *fc)
{
    if (krait_fc_is_text(fc))
        return KRAIT_READER_TEXT;
    if (krait_fc_is_int(fc))
        return fc->is_signed ? KRAIT_READER_SIGNED : KRAIT_READER_UNSIGNED;
    static const enum krait_reader_kind kinds[] = {
        [KRAIT_FC_FLOAT] = KRAIT_READER_DOUBLE,    [KRAIT_FC_STRUCT] = KRAIT_READER_STRUCT,
        [KRAIT_FC_VARIANT] = KRAIT_READER_VARIANT, [KRAIT_FC_OPTIONAL] = KRAIT_READER_VARIANT,
        [KRAIT_FC_ARRAY] = KRAIT_READER_ARRAY,     [KRAIT_FC_SEQUENCE] = KRAIT_READER_ARRAY,
    };
    return kinds[fc->kind];
}

enum krait_reader_kind krait_reader_field_kind(const struct krait_reader_field *field)
{
    return krait_kind_of(krait_locator_node(field->locator)->fc);
}

const char *krait_reader_field_name(const struct krait_reader_field *field)
{
    return krait_locator_node(field->locator)->name;
}

bool krait_reader_field_is_enum(const struct krait_reader_field *field)
{
    return krait_locator_node(field->locator)->fc->kind == KRAIT_FC_ENUM;
}

bool krait_reader_field_is_fixed(const struct krait_reader_field *field)
{
    return krait_locator_is_fixed(field->locator);
}
