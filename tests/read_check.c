/* SPDX-License-Identifier: Apache-2.0
 *
 * read_check TRACE...: reads traces by the public interface in every way it has, and compares them: each
 * value that is reached by stepping through structs and arrays with the same one by its handle, events by
 * time with events by stream and by packet. Prints what there was:
 *
 *   events N / values N / lost EVENTS / by_stream N / by_packet N / error CODE OFFSET FILE
 *
 * Exit status 1: something differed, said on stderr.
 */
#include "krait/trace_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 200, MAX_ELEMENTS = 4 };

struct known {
    char path[MAX_PATH];
    enum krait_trace_scope scope;
    const struct krait_trace_field *field;
};

struct class_state {
    struct known *known;
    size_t count, cap;
};

static struct class_state *states;
static uint64_t events, values, lost, wrong;

static void differs(const char *what, const char *path)
{
    if (wrong++ < 10)
        fprintf(stderr, "read_check: %s differs at '%s'\n", what, path);
}

static const struct krait_trace_field *field_of(const struct krait_trace_class *cls,
                                                enum krait_trace_scope scope, const char *path)
{
    struct class_state *state = &states[krait_trace_class_index(cls)];
    for (size_t i = 0; i < state->count; i++) {
        if (state->known[i].scope == scope && strcmp(state->known[i].path, path) == 0)
            return state->known[i].field;
    }
    if (state->count == state->cap) {
        state->cap = state->cap ? state->cap * 2 : 16;
        state->known = realloc(state->known, state->cap * sizeof(*state->known));
        if (!state->known)
            exit(2);
    }
    struct known *known = &state->known[state->count++];
    struct krait_read_error error = { 0 };
    *known = (struct known){ .scope = scope };
    snprintf(known->path, MAX_PATH, "%s", path);
    int rc = krait_trace_class_field(cls, scope, path, &known->field, &error);
    if (rc && rc != -2) /* scopes may be absent */
        differs(error.text, path);
    return known->field;
}

static void check_scalar(const struct krait_trace_cursor *cursor, const struct krait_trace_value *value,
                         const struct krait_trace_field *field, const char *path)
{
    uint64_t u1 = 1, u2 = 1;
    int64_t s1 = 1, s2 = 1;
    double d1 = 1, d2 = 1;
    const char *t1 = "", *t2 = "";
    size_t n1 = 0, n2 = 0;
    values++;
    if (krait_trace_value_unsigned(value, &u1) != krait_trace_cursor_unsigned(cursor, field, &u2) || u1 != u2)
        differs("unsigned", path);
    if (krait_trace_value_signed(value, &s1) != krait_trace_cursor_signed(cursor, field, &s2) || s1 != s2)
        differs("signed", path);
    if (krait_trace_value_double(value, &d1) != krait_trace_cursor_double(cursor, field, &d2) ||
        memcmp(&d1, &d2, sizeof(d1)) != 0)
        differs("double", path);
    if (krait_trace_value_text(value, &t1, &n1) != krait_trace_cursor_text(cursor, field, &t2, &n2) ||
        (n1 && t1 != t2) || n1 != n2)
        differs("text", path);
    t1 = t2 = "";
    if (krait_trace_value_label(value, &t1) != krait_trace_cursor_label(cursor, field, &t2) || t1 != t2)
        differs("label", path);
}

static void check_value(const struct krait_trace_cursor *cursor, enum krait_trace_scope scope,
                        const struct krait_trace_value *value, const char *path)
{
    const struct krait_trace_field *field = field_of(krait_trace_cursor_class(cursor), scope, path);
    enum krait_trace_kind kind = krait_trace_value_kind(value);
    struct krait_trace_value same, child;
    if (field && kind == KRAIT_TRACE_VARIANT) { /* an optional value that is not there */
        if (krait_trace_cursor_value(cursor, field, &same) != -ENODATA)
            differs("absence", path);
        return;
    }
    if (!field || krait_trace_cursor_value(cursor, field, &same)) {
        differs("handle", path);
        return;
    }
    if (krait_trace_field_kind(field) != KRAIT_TRACE_VARIANT && krait_trace_field_kind(field) != kind)
        differs("kind", path);
    const char *name = krait_trace_value_option(value);
    if (krait_trace_field_kind(field) == KRAIT_TRACE_VARIANT && name) {
        char option[MAX_PATH];
        bool has_name = *name; /* CTF 2's options may be without */
        if (has_name && snprintf(option, MAX_PATH, "%s.%s", path, name) < MAX_PATH)
            check_value(cursor, scope, value, option);
        return;
    }
    if (krait_trace_value_count(value) != krait_trace_value_count(&same))
        differs("count", path);
    if (kind != KRAIT_TRACE_STRUCT && kind != KRAIT_TRACE_ARRAY) {
        check_scalar(cursor, value, field, path);
        return;
    }
    uint64_t count = 0;
    krait_trace_value_children(value, &child);
    int rc;
    while ((rc = krait_trace_value_next(value, &child)) > 0) {
        char below[MAX_PATH];
        int n = kind == KRAIT_TRACE_ARRAY ? snprintf(below, MAX_PATH, "%s[%" PRIu64 "]", path, count)
                                          : snprintf(below, MAX_PATH, "%s%s%s", path, *path ? "." : "",
                                                     krait_trace_value_name(&child));
        if (n < MAX_PATH && (kind == KRAIT_TRACE_STRUCT || count < MAX_ELEMENTS))
            check_value(cursor, scope, &child, below);
        count++;
    }
    if (rc < 0 || count != krait_trace_value_count(value))
        differs("children", path);
}

static void check_event(const struct krait_trace_cursor *cursor)
{
    for (enum krait_trace_scope scope = KRAIT_TRACE_PAYLOAD; scope <= KRAIT_TRACE_EVENT_HEADER; scope++) {
        const struct krait_trace_field *root = field_of(krait_trace_cursor_class(cursor), scope, "");
        struct krait_trace_value value;
        if (root && krait_trace_cursor_value(cursor, root, &value) == 0)
            check_value(cursor, scope, &value, "");
        else if (root)
            differs("scope", "");
    }
}

static int read_ordered(const struct krait_trace_reader *reader, struct krait_read_error *error)
{
    struct krait_trace_cursor *cursor;
    struct krait_trace_lost loss;
    int step = krait_trace_cursor_new_ordered(&cursor, reader, error);
    if (step)
        return step;
    while ((step = krait_trace_cursor_next(cursor)) > 0) {
        if (step == KRAIT_TRACE_LOST && krait_trace_cursor_lost(cursor, &loss) == 0)
            lost += loss.packets ? 0 : loss.count;
        if (step == KRAIT_TRACE_EVENT) {
            events++;
            check_event(cursor);
        }
    }
    if (krait_trace_cursor_next(cursor) != step)
        differs("the end", "");
    krait_trace_cursor_error(cursor, error);
    krait_trace_cursor_free(cursor);
    return step;
}

static uint64_t count_part(const struct krait_trace_reader *reader, uint32_t stream, uint32_t first,
                           uint32_t count)
{
    struct krait_trace_cursor *cursor;
    uint64_t n = 0;
    int step;
    if (krait_trace_cursor_new_packets(&cursor, reader, stream, first, count, NULL))
        return 0;
    while ((step = krait_trace_cursor_next(cursor)) > 0) {
        uint32_t packet = step == KRAIT_TRACE_EVENT ? krait_trace_cursor_packet(cursor) : first;
        if (packet < first || packet >= first + count || krait_trace_cursor_stream(cursor) != stream)
            differs("packet", "");
        n += step == KRAIT_TRACE_EVENT;
    }
    krait_trace_cursor_free(cursor);
    return n;
}

static void read_parts(const struct krait_trace_reader *reader)
{
    uint64_t by_stream = 0, by_packet = 0;
    for (uint32_t s = 0; s < krait_trace_reader_stream_count(reader); s++) {
        uint32_t packets = krait_trace_stream_packet_count(reader, s);
        by_stream += count_part(reader, s, 0, packets);
        for (uint32_t p = 0; p < packets; p++)
            by_packet += count_part(reader, s, p, 1);
    }
    printf("by_stream %" PRIu64 "\nby_packet %" PRIu64 "\n", by_stream, by_packet);
}

int main(int argc, char **argv)
{
    struct krait_trace_reader *reader;
    struct krait_read_error error = { 0 };
    int rc = krait_trace_reader_open(&reader, (const char *const *)argv + 1, (size_t)argc - 1, &error);
    if (!rc) {
        states = calloc(krait_trace_reader_class_count(reader) + 1, sizeof(*states));
        if (!states)
            return 2;
        rc = read_ordered(reader, &error);
        printf("events %" PRIu64 "\nvalues %" PRIu64 "\nlost %" PRIu64 "\n", events, values, lost);
        read_parts(reader);
        for (uint32_t i = 0; i < krait_trace_reader_class_count(reader); i++)
            free(states[i].known);
        free(states);
        krait_trace_reader_close(reader);
    }
    if (rc)
        printf("error %d %" PRId64 " %s\n", error.code, (int64_t)error.offset, error.file);
    return wrong > 0;
}
