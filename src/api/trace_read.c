/* SPDX-License-Identifier: Apache-2.0 */
#include "krait/trace_read.h"

#include "ctf/value.h"

#include <pthread.h>
#include <string.h>

struct krait_trace_class {
    struct krait_trace_reader *reader;
    const struct krait_ctf_trace *trace;
    const struct krait_event_class *event;
    uint32_t index;
};

struct krait_trace_field {
    const struct krait_trace_class *cls;
    const struct krait_locator *locator;
};

struct krait_trace_reader {
    struct krait_ctf_reader *ctf;
    struct krait_arena arena;          /* classes; from then on under the lock */
    struct krait_trace_class *classes; /* by index; those of a trace's stream class stand together */
    uint32_t class_count;
    struct krait_map first; /* struct krait_stream_class * to the index of its first class */
    pthread_mutex_t lock;
};

struct krait_trace_cursor {
    const struct krait_trace_reader *reader;
    struct krait_ctf_merge *merge; /* NULL: of one stream, `own` */
    struct krait_ctf_cursor own;
    struct krait_ctf_stream part;          /* the packets that `own` goes through */
    const struct krait_ctf_stream *stream; /* of the last step */
    struct krait_ctf_cursor *at;           /* at an event; NULL before the first and at the end */
    const struct krait_stream_class *cls;  /* of the event before: that first_class is of */
    uint32_t first_class;
    bool held;      /* the event waits until the losses before it are told */
    uint32_t *told; /* by stream: packets whose losses were told */
    struct krait_ctf_loss losses[2];
    unsigned loss_count, loss_next;
    bool at_loss, ended;
    struct krait_err err;
};

unsigned krait_trace_read_version(void)
{
    return KRAIT_TRACE_READ_VERSION;
}

/* -- errors -- */

static void copy_text(char *to, size_t room, const char *from, size_t n)
{
    n = KRAIT_MIN(n, room - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

static int tell(struct krait_read_error *error, const struct krait_err *err)
{
    if (!error)
        return err->code;
    memset(error, 0, sizeof(*error));
    error->code = err->code;
    error->offset = err->code ? err->offset : KRAIT_READ_NO_OFFSET;
    copy_text(error->file, sizeof(error->file), err->text, err->file_len);
    copy_text(error->text, sizeof(error->text), err->text, strlen(err->text));
    return err->code;
}

static int tell_oom(struct krait_read_error *error)
{
    struct krait_err err;
    krait_err_set(&err, -ENOMEM, "out of memory");
    return tell(error, &err);
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

static int list_stream_class(struct krait_trace_reader *reader, const struct krait_ctf_trace *trace,
                             const struct krait_stream_class *cls)
{
    int rc = krait_map_put(&reader->first, (uintptr_t)cls, reader->class_count);
    for (uint32_t i = 0; i < cls->event_count; i++) {
        uint32_t index = reader->class_count++;
        reader->classes[index] = (struct krait_trace_class){ reader, trace, cls->events[i], index };
    }
    return rc;
}

static int list_classes(struct krait_trace_reader *reader)
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

int krait_trace_reader_open(struct krait_trace_reader **out, const char *const *paths, size_t count,
                            struct krait_read_error *error)
{
    struct krait_err err = { 0 };
    struct krait_trace_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return tell_oom(error);
    pthread_mutex_init(&reader->lock, NULL);
    if (!count)
        krait_err_set(&err, -EINVAL, "no folder to open");
    else
        krait_ctf_open(&reader->ctf, paths, count, NULL, &err);
    if (!err.code && (krait_ctf_compile(reader->ctf) || list_classes(reader)))
        krait_err_set(&err, -ENOMEM, "out of memory");
    if (err.code) {
        krait_trace_reader_close(reader);
        return tell(error, &err);
    }
    *out = reader;
    return 0;
}

void krait_trace_reader_close(struct krait_trace_reader *reader)
{
    if (!reader)
        return;
    krait_ctf_close(reader->ctf);
    krait_map_done(&reader->first);
    krait_arena_done(&reader->arena);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

/* -- streams -- */

static const struct krait_ctf_stream *stream_of(const struct krait_trace_reader *reader, uint32_t stream)
{
    return stream < reader->ctf->stream_count ? reader->ctf->streams[stream] : NULL;
}

uint32_t krait_trace_reader_stream_count(const struct krait_trace_reader *reader)
{
    return reader->ctf->stream_count;
}

const char *krait_trace_stream_path(const struct krait_trace_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    return s ? s->path : NULL;
}

uint64_t krait_trace_stream_id(const struct krait_trace_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    return s ? s->id : 0;
}

uint32_t krait_trace_stream_packet_count(const struct krait_trace_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    return s ? s->packet_count : 0;
}

const char *krait_trace_stream_env_text(const struct krait_trace_reader *reader, uint32_t stream,
                                        const char *name)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    return s ? krait_ctf_env_text(s->trace->metadata, name, NULL) : NULL;
}

int krait_trace_stream_env_int(const struct krait_trace_reader *reader, uint32_t stream, const char *name,
                               int64_t *value)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    const struct krait_env_entry *entry = s ? krait_ctf_env(s->trace->metadata, name) : NULL;
    if (!entry || entry->text)
        return -ENODATA;
    *value = entry->value;
    return 0;
}

uint64_t krait_trace_stream_clock_frequency(const struct krait_trace_reader *reader, uint32_t stream)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    return s && s->cls->clock ? s->cls->clock->freq : 0;
}

/* -- event classes -- */

uint32_t krait_trace_reader_class_count(const struct krait_trace_reader *reader)
{
    return reader->class_count;
}

const struct krait_trace_class *krait_trace_reader_class(const struct krait_trace_reader *reader,
                                                         uint32_t index)
{
    return index < reader->class_count ? &reader->classes[index] : NULL;
}

const struct krait_trace_class *krait_trace_reader_class_named(const struct krait_trace_reader *reader,
                                                               const char *name)
{
    for (uint32_t i = 0; i < reader->class_count; i++) {
        if (strcmp(reader->classes[i].event->name, name) == 0)
            return &reader->classes[i];
    }
    return NULL;
}

uint32_t krait_trace_class_index(const struct krait_trace_class *cls)
{
    return cls->index;
}

const char *krait_trace_class_name(const struct krait_trace_class *cls)
{
    return cls->event->name;
}

uint64_t krait_trace_class_id(const struct krait_trace_class *cls)
{
    return cls->event->id;
}

uint64_t krait_trace_class_stream_class_id(const struct krait_trace_class *cls)
{
    return cls->event->stream->id;
}

int krait_trace_class_log_level(const struct krait_trace_class *cls)
{
    return cls->event->log_level;
}

/* -- fields -- */

/* Scopes to look into, ended by KRAIT_FIELD_SCOPES. */
static const enum krait_field_scope *scopes_of(enum krait_trace_scope scope)
{
    static const enum krait_field_scope lists[][5] = {
        [KRAIT_TRACE_ANY_SCOPE] = { KRAIT_FIELD_PAYLOAD, KRAIT_FIELD_EVENT_CONTEXT,
                                    KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_PACKET_CONTEXT,
                                    KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_PAYLOAD] = { KRAIT_FIELD_PAYLOAD, KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_EVENT_CONTEXT] = { KRAIT_FIELD_EVENT_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_COMMON_CONTEXT] = { KRAIT_FIELD_COMMON_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_PACKET_CONTEXT] = { KRAIT_FIELD_PACKET_CONTEXT, KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_PACKET_HEADER] = { KRAIT_FIELD_PACKET_HEADER, KRAIT_FIELD_SCOPES },
        [KRAIT_TRACE_EVENT_HEADER] = { KRAIT_FIELD_EVENT_HEADER, KRAIT_FIELD_SCOPES },
    };
    return (unsigned)scope < KRAIT_ARRAY_LEN(lists) ? lists[scope] : NULL;
}

static int find_field(const struct krait_trace_class *cls, enum krait_trace_scope scope, const char *path,
                      const struct krait_trace_field **out, struct krait_err *err)
{
    const enum krait_field_scope *in = scopes_of(scope);
    struct krait_trace_field *field = KRAIT_ARENA_NEW(&cls->reader->arena, struct krait_trace_field);
    int rc = -ENOENT;
    if (!in)
        return krait_err_set(err, -EINVAL, "no such scope: %d", (int)scope);
    if (!field)
        return krait_err_set(err, -ENOMEM, "out of memory");
    field->cls = cls;
    for (; *in != KRAIT_FIELD_SCOPES && rc == -ENOENT; in++)
        rc = krait_locator_new(&field->locator, &cls->reader->arena, cls->trace, cls->event, *in, path, err);
    if (rc == -ENOENT && scope == KRAIT_TRACE_ANY_SCOPE)
        krait_err_set(err, rc, "events of '%s' have no field '%s'", cls->event->name, path);
    if (!rc)
        *out = field;
    return rc;
}

int krait_trace_class_field(const struct krait_trace_class *cls, enum krait_trace_scope scope,
                            const char *path, const struct krait_trace_field **field,
                            struct krait_read_error *error)
{
    struct krait_err err = { 0 };
    pthread_mutex_lock(&cls->reader->lock);
    int rc = find_field(cls, scope, path, field, &err);
    pthread_mutex_unlock(&cls->reader->lock);
    return rc ? tell(error, &err) : 0;
}

static enum krait_trace_kind kind_of(const struct krait_node *node)
{
    const struct krait_fc *fc = node->fc;
    if (krait_node_is_text(node))
        return KRAIT_TRACE_TEXT;
    if (krait_fc_is_int(fc))
        return fc->is_signed ? KRAIT_TRACE_SIGNED : KRAIT_TRACE_UNSIGNED;
    static const enum krait_trace_kind kinds[] = {
        [KRAIT_FC_FLOAT] = KRAIT_TRACE_DOUBLE,    [KRAIT_FC_STRUCT] = KRAIT_TRACE_STRUCT,
        [KRAIT_FC_VARIANT] = KRAIT_TRACE_VARIANT, [KRAIT_FC_OPTIONAL] = KRAIT_TRACE_VARIANT,
        [KRAIT_FC_ARRAY] = KRAIT_TRACE_ARRAY,     [KRAIT_FC_SEQUENCE] = KRAIT_TRACE_ARRAY,
    };
    return kinds[fc->kind];
}

enum krait_trace_kind krait_trace_field_kind(const struct krait_trace_field *field)
{
    return kind_of(krait_locator_node(field->locator));
}

const char *krait_trace_field_name(const struct krait_trace_field *field)
{
    return krait_locator_node(field->locator)->name;
}

bool krait_trace_field_is_enum(const struct krait_trace_field *field)
{
    return krait_locator_node(field->locator)->fc->kind == KRAIT_FC_ENUM;
}

bool krait_trace_field_is_fixed(const struct krait_trace_field *field)
{
    return krait_locator_is_fixed(field->locator);
}

/* -- cursors -- */

static int new_cursor(struct krait_trace_cursor **out, const struct krait_trace_reader *reader,
                      struct krait_read_error *error)
{
    struct krait_trace_cursor *cursor = calloc(1, sizeof(*cursor));
    if (cursor)
        cursor->told = calloc(KRAIT_MAX(reader->ctf->stream_count, 1u), sizeof(*cursor->told));
    if (!cursor || !cursor->told) {
        free(cursor);
        return tell_oom(error);
    }
    cursor->reader = reader;
    *out = cursor;
    return 0;
}

int krait_trace_cursor_new_ordered(struct krait_trace_cursor **out, const struct krait_trace_reader *reader,
                                   struct krait_read_error *error)
{
    struct krait_trace_cursor *cursor = NULL;
    struct krait_err err;
    int rc = new_cursor(&cursor, reader, error);
    if (rc)
        return rc;
    rc = krait_ctf_merge_new(&cursor->merge, reader->ctf, &err);
    if (rc) {
        krait_trace_cursor_free(cursor);
        return tell(error, &err);
    }
    *out = cursor;
    return 0;
}

/* Whether the times in a packet can be known without the packets before it. */
static bool is_independent(const struct krait_ctf_stream *stream, uint32_t packet)
{
    const struct krait_fc *context = stream->cls->packet_context;
    const struct krait_fc_member *begin = context ? krait_fc_member(context, "timestamp_begin") : NULL;
    if (packet == 0 || !stream->cls->clock)
        return true;
    return begin && krait_fc_is_int(begin->fc) && begin->fc->clock && begin->fc->bits == 64;
}

static int check_packets(const struct krait_trace_reader *reader, uint32_t stream, uint32_t first,
                         uint32_t count, struct krait_err *err)
{
    const struct krait_ctf_stream *s = stream_of(reader, stream);
    if (!s)
        return krait_err_set(err, -EINVAL, "there is no stream %u: they are %u", stream,
                             reader->ctf->stream_count);
    if (first > s->packet_count || count > s->packet_count - first)
        return krait_err_set(err, -EINVAL, "%s: there are no %u packets from packet %u on: it has %u",
                             s->path, count, first, s->packet_count);
    if (!is_independent(s, first))
        return krait_err_set(err, -ENOTSUP,
                             "%s: the times of packet %u depend on the packets before it: read the stream as "
                             "a whole",
                             s->path, first);
    return 0;
}

int krait_trace_cursor_new_packets(struct krait_trace_cursor **out, const struct krait_trace_reader *reader,
                                   uint32_t stream, uint32_t first, uint32_t count,
                                   struct krait_read_error *error)
{
    struct krait_trace_cursor *cursor = NULL;
    struct krait_err err;
    if (check_packets(reader, stream, first, count, &err))
        return tell(error, &err);
    int rc = new_cursor(&cursor, reader, error);
    if (rc)
        return rc;
    cursor->stream = stream_of(reader, stream);
    cursor->part = *cursor->stream;
    cursor->part.packet_count = first + count;
    if (first + count < cursor->stream->packet_count)
        cursor->part.damage = (struct krait_err){ 0 }; /* it lies behind the last */
    krait_ctf_cursor_init(&cursor->own, reader->ctf, &cursor->part);
    cursor->own.next_packet = first;
    cursor->told[stream] = first;
    *out = cursor;
    return 0;
}

int krait_trace_cursor_new_stream(struct krait_trace_cursor **out, const struct krait_trace_reader *reader,
                                  uint32_t stream, struct krait_read_error *error)
{
    return krait_trace_cursor_new_packets(out, reader, stream, 0,
                                          krait_trace_stream_packet_count(reader, stream), error);
}

void krait_trace_cursor_free(struct krait_trace_cursor *cursor)
{
    if (!cursor)
        return;
    krait_ctf_merge_free(cursor->merge);
    krait_ctf_cursor_done(&cursor->own);
    free(cursor->told);
    free(cursor);
}

/* -- steps -- */

/* The next event whose fields are whole, in `at`; NULL at the end, with the damage in err. */
static void fetch_ordered(struct krait_trace_cursor *c)
{
    do {
        c->at = krait_ctf_merge_next(c->merge);
    } while (c->at && krait_ctf_event_skip(c->at)); /* its stream ends there: the merge keeps why */
    if (!c->at)
        c->err = *krait_ctf_merge_damage(c->merge);
}

static void fetch_own(struct krait_trace_cursor *c)
{
    bool whole = krait_ctf_next(&c->own) > 0 && !krait_ctf_event_skip(&c->own);
    c->at = whole ? &c->own : NULL;
    if (!whole)
        c->err = c->own.err;
}

/* Takes the losses of the stream's packets up to `until`, those of one packet at a time. */
static bool take_losses(struct krait_trace_cursor *c, const struct krait_ctf_stream *stream, uint32_t until)
{
    uint32_t *told = &c->told[stream->index];
    c->loss_count = c->loss_next = 0;
    while (*told < until && !c->loss_count)
        c->loss_count = krait_ctf_losses(stream, (*told)++, c->losses);
    c->stream = stream;
    return c->loss_count;
}

/* Of packets behind the last event. */
static bool take_last_losses(struct krait_trace_cursor *c)
{
    if (!c->merge)
        return take_losses(c, &c->part, c->part.packet_count);
    const struct krait_ctf_reader *ctf = c->reader->ctf;
    for (uint32_t i = 0; i < ctf->stream_count; i++) {
        if (take_losses(c, ctf->streams[i], ctf->streams[i]->packet_count))
            return true;
    }
    return false;
}

static uint32_t packet_of(const struct krait_trace_cursor *c)
{
    return (uint32_t)(c->at->packet - c->at->stream->packets);
}

static KRAIT_COLD int tell_loss(struct krait_trace_cursor *c)
{
    c->loss_next++;
    c->at_loss = true;
    return KRAIT_TRACE_LOST;
}

/* The trace of a packet has its own classes. */
static KRAIT_COLD void switch_class(struct krait_trace_cursor *c)
{
    const uint64_t *first = krait_map_get(&c->reader->first, (uintptr_t)c->at->cls);
    c->first_class = first ? (uint32_t)*first : 0;
    c->cls = c->at->cls;
}

static int end_step(struct krait_trace_cursor *c)
{
    c->ended = true;
    c->held = false;
    if (take_last_losses(c))
        return tell_loss(c);
    return c->err.code;
}

int krait_trace_cursor_next(struct krait_trace_cursor *c)
{
    c->at_loss = false;
    if (c->loss_next < c->loss_count)
        return tell_loss(c);
    if (c->ended)
        return end_step(c);
    if (!c->held)
        c->merge ? fetch_ordered(c) : fetch_own(c);
    if (!c->at)
        return end_step(c);
    const struct krait_ctf_stream *stream = c->at->stream;
    c->held = c->told[stream->index] <= packet_of(c) && take_losses(c, stream, packet_of(c) + 1);
    if (c->held)
        return tell_loss(c);
    c->stream = stream;
    if (KRAIT_UNLIKELY(c->at->cls != c->cls))
        switch_class(c);
    return KRAIT_TRACE_EVENT;
}

void krait_trace_cursor_error(const struct krait_trace_cursor *cursor, struct krait_read_error *error)
{
    tell(error, &cursor->err);
}

const struct krait_trace_class *krait_trace_cursor_class(const struct krait_trace_cursor *cursor)
{
    return &cursor->reader->classes[cursor->first_class + cursor->at->event->index];
}

uint32_t krait_trace_cursor_stream(const struct krait_trace_cursor *cursor)
{
    return cursor->stream->index;
}

uint32_t krait_trace_cursor_packet(const struct krait_trace_cursor *cursor)
{
    return packet_of(cursor);
}

int64_t krait_trace_cursor_ns(const struct krait_trace_cursor *cursor)
{
    return cursor->at->ns;
}

uint64_t krait_trace_cursor_cycles(const struct krait_trace_cursor *cursor)
{
    return cursor->at->ticks;
}

int krait_trace_cursor_lost(const struct krait_trace_cursor *cursor, struct krait_trace_lost *lost)
{
    if (!cursor->at_loss)
        return -EINVAL;
    const struct krait_ctf_loss *loss = &cursor->losses[cursor->loss_next - 1];
    const struct krait_ctf_clock *clock = loss->has_times ? loss->stream->cls->clock : NULL;
    *lost = (struct krait_trace_lost){ .stream = loss->stream->index,
                                       .packets = loss->kind[0] == 'p',
                                       .count = loss->count,
                                       .begin_ns = clock ? krait_ctf_ns(clock, loss->begin) : 0,
                                       .end_ns = clock ? krait_ctf_ns(clock, loss->end) : 0 };
    return 0;
}

/* -- values -- */

/* The public struct holds ours: a copy that compilers see through keeps to the aliasing rules. */
_Static_assert(sizeof(struct krait_value) <= sizeof(struct krait_trace_value), "it has to fit");

static struct krait_value inner(const struct krait_trace_value *value)
{
    struct krait_value in;
    memcpy(&in, value, sizeof(in));
    return in;
}

static void set_outer(struct krait_trace_value *value, const struct krait_value *in)
{
    memset(value, 0, sizeof(*value));
    memcpy(value, in, sizeof(*in));
}

static inline int locate(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                         struct krait_value *value)
{
    if (KRAIT_UNLIKELY(!cursor->at || cursor->held || field->cls != krait_trace_cursor_class(cursor)))
        return -EINVAL;
    return krait_locator_value(field->locator, cursor->at, value);
}

static int get_unsigned(const struct krait_value *value, uint64_t *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (!krait_fc_is_int(fc))
        return -EINVAL;
    uint64_t n = krait_value_int(value);
    if (fc->is_signed && (int64_t)n < 0)
        return -ERANGE;
    *number = n;
    return 0;
}

static int get_signed(const struct krait_value *value, int64_t *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (!krait_fc_is_int(fc))
        return -EINVAL;
    uint64_t n = krait_value_int(value);
    if (!fc->is_signed && n > INT64_MAX)
        return -ERANGE;
    *number = (int64_t)n;
    return 0;
}

static int get_double(const struct krait_value *value, double *number)
{
    const struct krait_fc *fc = value->node->fc;
    if (krait_fc_is_int(fc)) {
        uint64_t n = krait_value_int(value);
        *number = fc->is_signed ? (double)(int64_t)n : (double)n;
        return 0;
    }
    if (fc->kind != KRAIT_FC_FLOAT)
        return -EINVAL;
    *number = krait_value_float(value);
    return 0;
}

static int get_text(const struct krait_value *value, const char **text, size_t *size)
{
    if (!krait_node_is_text(value->node))
        return -EINVAL;
    *text = krait_value_text(value, size);
    return 0;
}

static int get_label(const struct krait_value *value, const char **label)
{
    const struct krait_fc *fc = value->node->fc;
    if (fc->kind != KRAIT_FC_ENUM)
        return -EINVAL;
    const char *found = krait_enum_label(fc, krait_value_int(value));
    if (!found)
        return -ENODATA;
    *label = found;
    return 0;
}

int krait_trace_cursor_unsigned(const struct krait_trace_cursor *cursor,
                                const struct krait_trace_field *field, uint64_t *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_unsigned(&in, value);
}

int krait_trace_cursor_signed(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                              int64_t *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_signed(&in, value);
}

int krait_trace_cursor_double(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                              double *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_double(&in, value);
}

int krait_trace_cursor_text(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                            const char **text, size_t *size)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_text(&in, text, size);
}

int krait_trace_cursor_label(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                             const char **label)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    return rc ? rc : get_label(&in, label);
}

int krait_trace_cursor_value(const struct krait_trace_cursor *cursor, const struct krait_trace_field *field,
                             struct krait_trace_value *value)
{
    struct krait_value in;
    int rc = locate(cursor, field, &in);
    if (!rc)
        set_outer(value, &in);
    return rc;
}

enum krait_trace_kind krait_trace_value_kind(const struct krait_trace_value *value)
{
    return kind_of(inner(value).node);
}

const char *krait_trace_value_name(const struct krait_trace_value *value)
{
    return inner(value).node->name;
}

const char *krait_trace_value_option(const struct krait_trace_value *value)
{
    return inner(value).option;
}

uint64_t krait_trace_value_count(const struct krait_trace_value *value)
{
    struct krait_value in = inner(value);
    return in.node->kid_count ? in.count : 0;
}

int krait_trace_value_unsigned(const struct krait_trace_value *value, uint64_t *number)
{
    struct krait_value in = inner(value);
    return get_unsigned(&in, number);
}

int krait_trace_value_signed(const struct krait_trace_value *value, int64_t *number)
{
    struct krait_value in = inner(value);
    return get_signed(&in, number);
}

int krait_trace_value_double(const struct krait_trace_value *value, double *number)
{
    struct krait_value in = inner(value);
    return get_double(&in, number);
}

int krait_trace_value_text(const struct krait_trace_value *value, const char **text, size_t *size)
{
    struct krait_value in = inner(value);
    return get_text(&in, text, size);
}

int krait_trace_value_label(const struct krait_trace_value *value, const char **label)
{
    struct krait_value in = inner(value);
    return get_label(&in, label);
}

void krait_trace_value_children(const struct krait_trace_value *parent, struct krait_trace_value *child)
{
    memset(child, 0, sizeof(*child));
}

int krait_trace_value_next(const struct krait_trace_value *parent, struct krait_trace_value *child)
{
    struct krait_value in = inner(parent), next = inner(child);
    int rc = krait_value_next(&in, &next);
    if (rc > 0)
        set_outer(child, &next);
    return rc;
}
