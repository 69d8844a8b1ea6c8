/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what a trace's events are made of, without reading one; with a time, when the first event of that time or later is.
 *
 *   cc schema.c $(pkg-config --cflags --libs krait-read) -o schema
 *   ./schema TRACE [NANOSECONDS]
 */
#include "krait/trace_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kinds[] = {
    "", "unsigned", "signed", "double", "text", "struct", "array", "variant"
};

static void print_mappings(const struct krait_reader_schema *schema, int depth)
{
    struct krait_reader_mapping mapping;
    for (uint32_t i = 0; i < schema->mapping_count; i++) {
        krait_reader_schema_mapping(schema, i, &mapping);
        printf("%*s%s = %" PRId64 " ... %" PRId64 "\n", depth * 2, "", mapping.label, (int64_t)mapping.lo,
               (int64_t)mapping.hi);
    }
}

static void print_schema(const struct krait_reader_schema *schema, int depth)
{
    printf("%*s%s: %s", depth * 2, "", schema->name, kinds[schema->kind]);
    if (schema->bits)
        printf(", %u bits", schema->bits);
    if (schema->base && schema->base != 10)
        printf(", base %u", schema->base);
    if (schema->flags & KRAIT_READER_SCHEMA_FIXED)
        printf(", length %" PRIu64, schema->length);
    printf("%s%s%s\n", schema->flags & KRAIT_READER_SCHEMA_BIG_ENDIAN ? ", big-endian" : "",
           schema->flags & KRAIT_READER_SCHEMA_OPTIONAL ? ", optional" : "",
           schema->flags & KRAIT_READER_SCHEMA_BOOL ? ", bool" : "");
    print_mappings(schema, depth + 1);
    for (uint32_t i = 0; i < schema->child_count; i++) {
        struct krait_reader_schema child;
        krait_reader_schema_child(schema, i, &child);
        print_schema(&child, depth + 1);
    }
}

static void print_class(const struct krait_reader_class *cls)
{
    struct krait_reader_schema schema;
    printf("%s\n", krait_reader_class_name(cls));
    for (enum krait_reader_scope scope = KRAIT_READER_PAYLOAD; scope <= KRAIT_READER_PACKET_CONTEXT;
         scope++) {
        if (krait_reader_class_schema(cls, scope, &schema) == 0)
            print_schema(&schema, 1);
    }
}

static void print_stream(const struct krait_reader *reader, uint32_t stream)
{
    struct krait_reader_env entry;
    struct krait_reader_clock clock;
    uint8_t uuid[16];
    const char *uid = krait_reader_stream_uid(reader, stream);
    printf("stream %" PRIu64 "\n", krait_reader_stream_id(reader, stream));
    for (uint32_t i = 0; krait_reader_stream_env(reader, stream, i, &entry) == 0; i++)
        entry.text ? printf("  %s = %s\n", entry.name, entry.text)
                   : printf("  %s = %" PRId64 "\n", entry.name, entry.value);
    if (krait_reader_stream_clock(reader, stream, &clock) == 0)
        printf("  clock %s: %" PRIu64 " Hz, offset %" PRId64 " s %" PRIu64 " cycles%s\n", clock.name,
               clock.frequency, clock.offset_s, clock.offset_cycles, clock.is_absolute ? ", absolute" : "");
    if (krait_reader_stream_uuid(reader, stream, uuid) == 0)
        printf("  uuid %02x%02x...%02x\n", uuid[0], uuid[1], uuid[15]);
    if (uid)
        printf("  uid %s\n", uid);
}

static int print_first(const struct krait_reader *reader, int64_t ns)
{
    struct krait_reader_cursor *cursor;
    struct krait_reader_error error;
    int what = krait_reader_cursor_new_ordered(&cursor, reader, &error);
    if (what)
        return what;
    what = krait_reader_cursor_seek(cursor, ns);
    while (!what && (what = krait_reader_cursor_next(cursor)) == KRAIT_READER_LOST)
        what = 0;
    if (what == KRAIT_READER_EVENT)
        printf("%" PRId64 " %s\n", krait_reader_cursor_ns(cursor),
               krait_reader_class_name(krait_reader_cursor_class(cursor)));
    krait_reader_cursor_free(cursor);
    return what < 0 ? what : 0;
}

int main(int argc, char **argv)
{
    struct krait_reader *reader;
    struct krait_reader_error error;
    const char *path = argc > 1 ? argv[1] : ".";
    if (krait_reader_open(&reader, &path, 1, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    int rc = 0;
    if (argc > 2) {
        rc = print_first(reader, strtoll(argv[2], NULL, 10));
    } else {
        for (uint32_t i = 0; i < krait_reader_stream_count(reader); i++)
            print_stream(reader, i);
        for (uint32_t i = 0; i < krait_reader_class_count(reader); i++)
            print_class(krait_reader_class_at(reader, i));
    }
    krait_reader_close(reader);
    return rc ? 1 : 0;
}
