/* SPDX-License-Identifier: Apache-2.0
 *
 * seek_check TRACE...: checks the traces for damage, reads them once, and then from many times on, forward and
 * backward: all streams by time, each stream by itself, and parts of its packets. Each cursor has to hand out the
 * events of that time or later, without the packets that end before it, with the values that they had at first and
 * the kinds that their class's schema tells; the losses of those packets; and the same end. Prints what there was:
 *
 *   events N / seeks N / values N / error CODE
 *
 * Exit status 1: something differed, said on stderr. It looks at what packets say of their times through the library's
 * own headers.
 */
#include "api/trace_read_api.h"
#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SCOPES = KRAIT_READER_EVENT_HEADER + 1, SEEKS = 12, MAX_DEPTH = 64 };

struct event {
    int64_t ns;
    uint64_t cycles, digest; /* of its values */
    uint32_t cls, packet;
};

struct events {
    struct event *list;
    size_t count, cap;
};

/* Of one run over all the traces. */
struct check {
    struct krait_reader *reader;
    struct events *streams;                             /* by number: their events, in order */
    const struct krait_reader_field *(*fields)[SCOPES]; /* by class: all of each scope; NULL: it has none */
    uint64_t dice, events, seeks, values, wrong;
};

static void differs(struct check *check, const char *what, const char *where)
{
    if (check->wrong++ < 10)
        fprintf(stderr, "seek_check: %s differs at '%s'\n", what, where);
}

static void *must(void *memory)
{
    if (!memory)
        exit(2);
    return memory;
}

/* Any number below n, which is not 0; always the same ones. */
static uint64_t throw_dice(struct check *check, uint64_t n)
{
    check->dice = check->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (check->dice >> 33) % n;
}

/* -- values, and what the schema says of them -- */

static uint64_t mix(uint64_t digest, uint64_t number)
{
    return (digest ^ number) * UINT64_C(0x9e3779b97f4a7c15) + (digest >> 29);
}

static uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        digest = mix(digest, ((const uint8_t *)bytes)[i]);
    return digest;
}

static uint64_t digest_scalar(uint64_t digest, const struct krait_reader_value *value)
{
    uint64_t number = 0;
    int64_t with_sign = 0;
    double real = 0;
    const char *text = "", *label = "";
    size_t size = 0;
    int rc = krait_reader_value_unsigned(value, &number) | krait_reader_value_signed(value, &with_sign);
    digest = mix(mix(mix(digest, number), (uint64_t)with_sign), (uint64_t)rc);
    if (krait_reader_value_double(value, &real) == 0)
        digest = digest_bytes(digest, &real, sizeof(real));
    if (krait_reader_value_text(value, &text, &size) == 0)
        digest = digest_bytes(digest, text, size);
    if (krait_reader_value_label(value, &label) == 0)
        digest = digest_bytes(digest, label, strlen(label));
    return digest;
}

/* Of mappings, which a walk over values does not meet. */
static void check_mappings(struct check *check, const struct krait_reader_schema *schema)
{
    struct krait_reader_mapping mapping;
    bool has_labels = schema->flags & (KRAIT_READER_SCHEMA_ENUM | KRAIT_READER_SCHEMA_BITS);
    for (uint32_t i = 0; i < schema->mapping_count; i++) {
        if (krait_reader_schema_mapping(schema, i, &mapping) || !mapping.label)
            differs(check, "a mapping", schema->name);
    }
    if ((schema->mapping_count && !has_labels) ||
        krait_reader_schema_mapping(schema, schema->mapping_count, &mapping) != -EINVAL)
        differs(check, "the mappings", schema->name);
}

/* All that a class may hold, options that no event chooses too. */
static void walk_schema(struct check *check, const struct krait_reader_schema *schema, unsigned depth)
{
    struct krait_reader_schema child;
    check_mappings(check, schema);
    for (uint32_t i = 0; i < schema->child_count && depth < MAX_DEPTH; i++) {
        if (krait_reader_schema_child(schema, i, &child))
            differs(check, "a child", schema->name);
        else
            walk_schema(check, &child, depth + 1);
    }
    if (krait_reader_schema_child(schema, schema->child_count, &child) != -EINVAL)
        differs(check, "the children", schema->name);
}

static uint64_t digest_value(struct check *check, uint64_t digest, const struct krait_reader_value *value,
                             const struct krait_reader_schema *schema);

/* The schema is NULL if it is not known: below options without a name. */
static uint64_t digest_children(struct check *check, uint64_t digest, const struct krait_reader_value *value,
                                const struct krait_reader_schema *schema)
{
    struct krait_reader_value child;
    struct krait_reader_schema of;
    bool is_array = krait_reader_value_kind(value) == KRAIT_READER_ARRAY;
    bool is_fixed = schema && (!is_array || schema->flags & KRAIT_READER_SCHEMA_FIXED);
    uint64_t count = krait_reader_value_count(value), i = 0;
    int rc;
    krait_reader_value_children(value, &child);
    while ((rc = krait_reader_value_next(value, &child)) > 0) {
        bool known = schema && krait_reader_schema_child(schema, is_array ? 0 : (uint32_t)i, &of) == 0;
        if (schema && (!known || (!is_array && strcmp(of.name, krait_reader_value_name(&child)) != 0)))
            differs(check, "a member", schema->name);
        digest = digest_value(check, digest, &child, known ? &of : NULL);
        i++;
    }
    if (rc < 0 || i != count || (is_fixed && i != (is_array ? schema->length : schema->child_count)))
        differs(check, "the number of values", schema ? schema->name : "");
    return mix(digest, count);
}

/* The only option of that name. */
static const struct krait_reader_schema *find_option(const struct krait_reader_schema *schema,
                                                     const char *name, struct krait_reader_schema *option)
{
    struct krait_reader_schema child;
    unsigned found = 0;
    for (uint32_t i = 0; i < schema->child_count; i++) {
        if (krait_reader_schema_child(schema, i, &child) || !name || strcmp(child.name, name) != 0)
            continue;
        *option = child;
        found++;
    }
    return found == 1 ? option : NULL;
}

static uint64_t digest_value(struct check *check, uint64_t digest, const struct krait_reader_value *value,
                             const struct krait_reader_schema *schema)
{
    enum krait_reader_kind kind = krait_reader_value_kind(value);
    struct krait_reader_schema option;
    check->values++;
    digest = mix(digest, kind);
    while (schema && schema->kind == KRAIT_READER_VARIANT && kind != KRAIT_READER_VARIANT) {
        const char *name = krait_reader_value_option(value);
        schema = find_option(schema, name, &option);
        if (schema && schema->kind == KRAIT_READER_VARIANT)
            schema = NULL; /* an option of an option: its name alone is told */
    }
    if (schema && kind != schema->kind)
        differs(check, "the kind", schema->name);
    return kind == KRAIT_READER_STRUCT || kind == KRAIT_READER_ARRAY
               ? digest_children(check, digest, value, schema)
               : digest_scalar(digest, value);
}

static void look_up(struct check *check, const struct krait_reader_class *cls)
{
    const struct krait_reader_field **fields = check->fields[krait_reader_class_index(cls)];
    for (enum krait_reader_scope scope = KRAIT_READER_PAYLOAD; scope <= KRAIT_READER_EVENT_HEADER; scope++) {
        struct krait_reader_schema schema;
        int rc = krait_reader_class_field(cls, scope, "", &fields[scope], NULL);
        if (krait_reader_class_schema(cls, scope, &schema) != rc)
            differs(check, "whether there is a schema", krait_reader_class_name(cls));
        if (rc == 0)
            walk_schema(check, &schema, 0);
    }
}

static uint64_t digest_event(struct check *check, const struct krait_reader_cursor *cursor)
{
    const struct krait_reader_class *cls = krait_reader_cursor_class(cursor);
    const struct krait_reader_field *const *fields = check->fields[krait_reader_class_index(cls)];
    uint64_t digest = 0;
    for (enum krait_reader_scope scope = KRAIT_READER_PAYLOAD; scope <= KRAIT_READER_EVENT_HEADER; scope++) {
        struct krait_reader_value value;
        struct krait_reader_schema schema;
        if (!fields[scope])
            continue;
        krait_reader_field_schema(fields[scope], &schema);
        if (krait_reader_cursor_value(cursor, fields[scope], &value))
            differs(check, "a scope", krait_reader_class_name(cls));
        else
            digest = digest_value(check, digest, &value, &schema);
    }
    return digest;
}

/* -- events and losses -- */

static struct event event_of(struct check *check, const struct krait_reader_cursor *cursor)
{
    return (struct event){ .ns = krait_reader_cursor_ns(cursor),
                           .cycles = krait_reader_cursor_cycles(cursor),
                           .digest = digest_event(check, cursor),
                           .cls = krait_reader_class_index(krait_reader_cursor_class(cursor)),
                           .packet = krait_reader_cursor_packet(cursor) };
}

static bool is_same(const struct event *a, const struct event *b)
{
    return a->ns == b->ns && a->cycles == b->cycles && a->digest == b->digest && a->cls == b->cls &&
           a->packet == b->packet;
}

static uint64_t loss_sum(const struct krait_reader_lost *loss)
{
    uint64_t times = (uint64_t)loss->begin_ns * 3 + (uint64_t)loss->end_ns * 5;
    return (loss->count + 1) * 1000003 + times * 7 + loss->packets * 11 + loss->stream * 13 + 1;
}

/* All of a stream, from its begin; returns how it ended. */
static int read_stream(struct check *check, uint32_t stream)
{
    struct events *events = &check->streams[stream];
    struct krait_reader_cursor *cursor;
    int step;
    if (krait_reader_cursor_new_stream(&cursor, check->reader, stream, NULL))
        exit(2);
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        if (step != KRAIT_READER_EVENT)
            continue;
        if (!KRAIT_GROW(events->list, events->cap, events->count + 1))
            exit(2);
        events->list[events->count++] = event_of(check, cursor);
    }
    check->events += events->count;
    krait_reader_cursor_free(cursor);
    return step;
}

/* -- seeking -- */

/* What a cursor reads: all streams, or some packets of one. */
struct scope {
    const char *name;
    bool all;
    uint32_t stream, first, behind; /* packets */
    int end;                        /* how it ends */
};

static const struct krait_ctf_stream *stream_of(const struct check *check, uint32_t stream)
{
    return check->reader->ctf->streams[stream];
}

static bool is_expected(const struct check *check, const struct scope *scope, uint32_t stream,
                        const struct event *event, int64_t ns)
{
    bool is_last = !scope->all && event->packet + 1 == scope->behind;
    return event->ns >= ns &&
           (scope->all || (event->packet >= scope->first && event->packet < scope->behind)) &&
           (is_last || !krait_ctf_packet_ends_before(stream_of(check, stream), event->packet, ns));
}

/* The next one from `at` on; its number, or that behind the last. */
static size_t next_expected(const struct check *check, const struct scope *scope, uint32_t stream, size_t at,
                            int64_t ns)
{
    const struct events *events = &check->streams[stream];
    while (at < events->count && !is_expected(check, scope, stream, &events->list[at], ns))
        at++;
    return at;
}

static uint64_t losses_of_stream(const struct check *check, const struct scope *scope, uint32_t s, int64_t ns)
{
    const struct krait_ctf_stream *stream = stream_of(check, s);
    uint32_t from = krait_ctf_first_packet(stream, ns),
             to = scope->all ? stream->packet_count : scope->behind;
    uint64_t sum = 0;
    for (uint32_t i = scope->all ? from : KRAIT_MAX(from, scope->first); i < to; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++) {
            struct krait_reader_lost lost;
            krait_lost_of(&lost, &losses[k]);
            sum += loss_sum(&lost);
        }
    }
    return sum;
}

/* Where the cursor has come to its end. */
static void check_end(struct check *check, const struct scope *scope, int64_t ns, const size_t *at, int end,
                      uint64_t lost)
{
    uint64_t losses = 0;
    for (uint32_t s = 0; s < krait_reader_stream_count(check->reader); s++) {
        if (!scope->all && s != scope->stream)
            continue;
        losses += losses_of_stream(check, scope, s, ns);
        if (next_expected(check, scope, s, at[s], ns) != check->streams[s].count)
            differs(check, "the number of events", scope->name);
    }
    if (lost != losses)
        differs(check, "the losses", scope->name);
    if (end != scope->end)
        differs(check, "the end", scope->name);
}

/* Up to `most` steps from `ns` on, which was sought. */
static void compare_from(struct check *check, const struct scope *scope, struct krait_reader_cursor *cursor,
                         int64_t ns, uint64_t most)
{
    size_t *at = must(calloc(krait_reader_stream_count(check->reader) + 1, sizeof(*at)));
    struct krait_reader_lost loss;
    uint64_t lost = 0;
    int step = KRAIT_READER_EVENT;
    for (uint64_t i = 0; i < most && (step = krait_reader_cursor_next(cursor)) > 0; i++) {
        if (step == KRAIT_READER_LOST) {
            krait_reader_cursor_lost(cursor, &loss);
            lost += loss_sum(&loss);
            continue;
        }
        uint32_t s = krait_reader_cursor_stream(cursor);
        struct event event = event_of(check, cursor);
        at[s] = next_expected(check, scope, s, at[s], ns);
        if (at[s] == check->streams[s].count || !is_same(&event, &check->streams[s].list[at[s]])) {
            differs(check, "an event", scope->name);
            break;
        }
        at[s]++;
    }
    if (step <= 0)
        check_end(check, scope, ns, at, step, lost);
    free(at);
}

/* Of some event, or beside it, or outside all. */
static int64_t any_time(struct check *check)
{
    uint32_t count = krait_reader_stream_count(check->reader);
    const struct events *events = count ? &check->streams[throw_dice(check, count)] : NULL;
    uint64_t kind = throw_dice(check, 8);
    if (!events || !events->count || kind < 2)
        return kind ? INT64_MIN : INT64_MAX;
    int64_t ns = events->list[throw_dice(check, events->count)].ns;
    if (kind == 2)
        return ns < INT64_MAX ? ns + 1 : ns;
    return kind == 3 && ns > INT64_MIN ? ns - 1 : ns;
}

/* Some reads end in the middle: the next seek then begins there. Frees the cursor. */
static void seek_about(struct check *check, const struct scope *scope, struct krait_reader_cursor *cursor)
{
    if (throw_dice(check, 2))
        krait_reader_cursor_next(cursor);
    for (unsigned i = 0; i < SEEKS; i++) {
        int64_t ns = any_time(check);
        struct krait_reader_error error;
        if (krait_reader_cursor_seek(cursor, ns))
            differs(check, "seeking", scope->name);
        krait_reader_cursor_error(cursor, &error);
        if (error.code)
            differs(check, "the error after seeking", scope->name);
        check->seeks++;
        compare_from(check, scope, cursor, ns, throw_dice(check, 3) ? throw_dice(check, 40) : UINT64_MAX);
    }
    krait_reader_cursor_free(cursor);
}

static void seek_in_part(struct check *check, uint32_t stream, uint32_t first, uint32_t count)
{
    const struct krait_ctf_stream *s = stream_of(check, stream);
    uint32_t damaged = s->damaged ? s->damaged : s->packet_count;
    struct krait_reader_cursor *cursor;
    int rc = krait_reader_cursor_new_packets(&cursor, check->reader, stream, first, count, NULL);
    if (rc == -ENOTSUP)
        return;
    if (rc)
        exit(2);
    struct scope scope = { .name = s->path,
                           .stream = stream,
                           .first = first,
                           .behind = first + count,
                           .end = first + count >= damaged ? s->damage.code : 0 };
    seek_about(check, &scope, cursor);
}

static void seek_in_streams(struct check *check)
{
    for (uint32_t i = 0; i < krait_reader_stream_count(check->reader); i++) {
        uint32_t packets = krait_reader_stream_packet_count(check->reader, i);
        seek_in_part(check, i, 0, packets);
        uint32_t first = packets ? (uint32_t)throw_dice(check, packets) : 0;
        if (packets)
            seek_in_part(check, i, first, 1 + (uint32_t)throw_dice(check, packets - first));
    }
}

static int check_reader(struct check *check)
{
    struct scope all = { .name = "all streams", .all = true };
    struct krait_reader_cursor *cursor;
    uint32_t classes = krait_reader_class_count(check->reader),
             streams = krait_reader_stream_count(check->reader);
    check->fields = must(calloc(classes + 1, sizeof(*check->fields)));
    check->streams = must(calloc(streams + 1, sizeof(*check->streams)));
    for (uint32_t i = 0; i < classes; i++)
        look_up(check, krait_reader_class_at(check->reader, i));
    all.end = krait_reader_check(check->reader, NULL);
    for (uint32_t i = 0; i < streams; i++) {
        if (read_stream(check, i) != stream_of(check, i)->damage.code)
            differs(check, "the end of the whole", stream_of(check, i)->path);
    }
    if (krait_reader_cursor_new_ordered(&cursor, check->reader, NULL))
        exit(2);
    seek_about(check, &all, cursor);
    seek_in_streams(check);
    for (uint32_t i = 0; i < streams; i++)
        free(check->streams[i].list);
    free(check->streams);
    free(check->fields);
    return all.end;
}

int main(int argc, char **argv)
{
    struct check check = { .dice = 1 };
    int end = krait_reader_open(&check.reader, (const char *const *)argv + 1, (size_t)argc - 1, NULL);
    if (!end) {
        end = check_reader(&check);
        krait_reader_close(check.reader);
    }
    printf("events %" PRIu64 "\nseeks %" PRIu64 "\nvalues %" PRIu64 "\n", check.events, check.seeks,
           check.values);
    if (end)
        printf("error %d\n", end);
    return check.wrong > 0;
}
