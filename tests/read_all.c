/* SPDX-License-Identifier: Apache-2.0 */
#include "read_all.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 200, MAX_ELEMENTS = 4, MAX_MEMBERS = 64 };

struct known {
    char path[MAX_PATH];
    enum krait_reader_scope scope;
    const struct krait_reader_field *field;
};

struct class_state {
    struct known *known;
    size_t count, cap;
};

static struct read_all *all; /* of the run */
static struct class_state *states;

static void differs(const char *what, const char *path)
{
    if (all->wrong++ < 10)
        fprintf(stderr, "read_all: %s differs at '%s'\n", what, path);
}

/* A path may have too many parts. */
static bool is_deep(const char *path)
{
    size_t parts = 0;
    for (; *path; path++)
        parts += *path == '.' || *path == '[';
    return parts > 10;
}

static const struct krait_reader_field *field_of(const struct krait_reader_class *cls,
                                                 enum krait_reader_scope scope, const char *path)
{
    struct class_state *state = &states[krait_reader_class_index(cls)];
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
    struct krait_reader_error error = { 0 };
    *known = (struct known){ .scope = scope };
    snprintf(known->path, MAX_PATH, "%s", path);
    int rc = krait_reader_class_field(cls, scope, path, &known->field, &error);
    if (rc && rc != -ENOENT && !is_deep(path)) /* scopes may be absent */
        differs(error.text, path);
    return known->field;
}

/* Whether a path says which member is meant: names of CTF 2 may hold what paths are made of, and those of CTF
 * 1.8 may differ in underscores alone. */
static bool is_plain(const char *name)
{
    return *name && !strpbrk(name, ".[");
}

static const char *bare(const char *name)
{
    return name + strspn(name, "_");
}

static bool is_alone(const struct krait_reader_value *parent, const char *name)
{
    struct krait_reader_value child;
    unsigned same = 0;
    krait_reader_value_children(parent, &child);
    while (krait_reader_value_next(parent, &child) > 0)
        same += strcmp(bare(krait_reader_value_name(&child)), bare(name)) == 0;
    return same == 1;
}

static void check_scalar(const struct krait_reader_cursor *cursor, const struct krait_reader_value *value,
                         const struct krait_reader_field *field, const char *path)
{
    uint64_t u1 = 1, u2 = 1;
    int64_t s1 = 1, s2 = 1;
    double d1 = 1, d2 = 1;
    const char *t1 = "", *t2 = "";
    size_t n1 = 0, n2 = 0;
    all->values++;
    if (krait_reader_value_unsigned(value, &u1) != krait_reader_cursor_unsigned(cursor, field, &u2) ||
        u1 != u2)
        differs("unsigned", path);
    if (krait_reader_value_signed(value, &s1) != krait_reader_cursor_signed(cursor, field, &s2) || s1 != s2)
        differs("signed", path);
    if (krait_reader_value_double(value, &d1) != krait_reader_cursor_double(cursor, field, &d2) ||
        memcmp(&d1, &d2, sizeof(d1)) != 0)
        differs("double", path);
    if (krait_reader_value_text(value, &t1, &n1) != krait_reader_cursor_text(cursor, field, &t2, &n2) ||
        (n1 && t1 != t2) || n1 != n2)
        differs("text", path);
    t1 = t2 = "";
    if (krait_reader_value_label(value, &t1) != krait_reader_cursor_label(cursor, field, &t2) || t1 != t2)
        differs("label", path);
}

static void check_value(const struct krait_reader_cursor *cursor, enum krait_reader_scope scope,
                        const struct krait_reader_value *value, const char *path);

/* CTF 2's options may be without a name. */
static void check_option(const struct krait_reader_cursor *cursor, enum krait_reader_scope scope,
                         const struct krait_reader_value *value, const char *path)
{
    char option[MAX_PATH];
    const char *name = krait_reader_value_option(value);
    if (is_plain(name) && snprintf(option, MAX_PATH, "%s.%s", path, name) < MAX_PATH)
        check_value(cursor, scope, value, option);
}

/* The path of a struct's member or an array's element; false for one that is left out. */
static bool child_path(char *below, const struct krait_reader_value *value,
                       const struct krait_reader_value *child, uint64_t index, const char *path)
{
    const char *name = krait_reader_value_name(child);
    if (krait_reader_value_kind(value) == KRAIT_READER_ARRAY)
        return index < MAX_ELEMENTS && snprintf(below, MAX_PATH, "%s[%" PRIu64 "]", path, index) < MAX_PATH;
    return index < MAX_MEMBERS && is_plain(name) && is_alone(value, name) &&
           snprintf(below, MAX_PATH, "%s%s%s", path, *path ? "." : "", name) < MAX_PATH;
}

static void check_children(const struct krait_reader_cursor *cursor, enum krait_reader_scope scope,
                           const struct krait_reader_value *value, const char *path)
{
    struct krait_reader_value child;
    uint64_t count = 0;
    int rc;
    krait_reader_value_children(value, &child);
    while ((rc = krait_reader_value_next(value, &child)) > 0) {
        char below[MAX_PATH];
        if (child_path(below, value, &child, count, path))
            check_value(cursor, scope, &child, below);
        count++;
    }
    if (rc < 0 || count != krait_reader_value_count(value))
        differs("children", path);
}

/* `same` is the value by its handle. */
static void check_same(const struct krait_reader_cursor *cursor, enum krait_reader_scope scope,
                       const struct krait_reader_value *value, const struct krait_reader_field *field,
                       const struct krait_reader_value *same, const char *path)
{
    enum krait_reader_kind kind = krait_reader_value_kind(value);
    bool varies = krait_reader_field_kind(field) == KRAIT_READER_VARIANT;
    if (!varies && krait_reader_field_kind(field) != kind)
        differs("kind", path);
    if (varies && krait_reader_value_option(value)) {
        check_option(cursor, scope, value, path);
        return;
    }
    if (krait_reader_value_count(value) != krait_reader_value_count(same))
        differs("count", path);
    if (kind == KRAIT_READER_STRUCT || kind == KRAIT_READER_ARRAY)
        check_children(cursor, scope, value, path);
    else
        check_scalar(cursor, value, field, path);
}

static void check_value(const struct krait_reader_cursor *cursor, enum krait_reader_scope scope,
                        const struct krait_reader_value *value, const char *path)
{
    const struct krait_reader_field *field = field_of(krait_reader_cursor_class(cursor), scope, path);
    struct krait_reader_value same;
    if (!field) {
        if (!is_deep(path))
            differs("handle", path);
        return;
    }
    int rc = krait_reader_cursor_value(cursor, field, &same);
    if (krait_reader_value_kind(value) == KRAIT_READER_VARIANT) { /* an optional value that is not there */
        if (rc != -ENODATA)
            differs("absence", path);
    } else if (rc) {
        differs("value by handle", path);
    } else {
        check_same(cursor, scope, value, field, &same, path);
    }
}

static void check_event(const struct krait_reader_cursor *cursor)
{
    for (enum krait_reader_scope scope = KRAIT_READER_PAYLOAD; scope <= KRAIT_READER_EVENT_HEADER; scope++) {
        const struct krait_reader_field *root = field_of(krait_reader_cursor_class(cursor), scope, "");
        struct krait_reader_value value;
        if (root && krait_reader_cursor_value(cursor, root, &value) == 0)
            check_value(cursor, scope, &value, "");
        else if (root)
            differs("scope", "");
    }
}

static int read_ordered(const struct krait_reader *reader, struct krait_reader_error *error)
{
    struct krait_reader_cursor *cursor;
    struct krait_reader_lost loss;
    int step = krait_reader_cursor_new_ordered(&cursor, reader, error);
    if (step)
        return step;
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        if (step == KRAIT_READER_LOST && krait_reader_cursor_lost(cursor, &loss) == 0)
            all->lost += loss.packets ? 0 : loss.count;
        if (step == KRAIT_READER_EVENT) {
            all->events++;
            check_event(cursor);
        }
    }
    if (krait_reader_cursor_next(cursor) != step)
        differs("the end", "");
    krait_reader_cursor_error(cursor, error);
    krait_reader_cursor_free(cursor);
    return step;
}

static uint64_t count_part(const struct krait_reader *reader, uint32_t stream, uint32_t first, uint32_t count)
{
    struct krait_reader_cursor *cursor;
    uint64_t n = 0;
    int step;
    if (krait_reader_cursor_new_packets(&cursor, reader, stream, first, count, NULL))
        return 0;
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        uint32_t packet = step == KRAIT_READER_EVENT ? krait_reader_cursor_packet(cursor) : first;
        if (packet < first || packet >= first + count || krait_reader_cursor_stream(cursor) != stream)
            differs("packet", "");
        n += step == KRAIT_READER_EVENT;
    }
    krait_reader_cursor_free(cursor);
    return n;
}

static void read_parts(const struct krait_reader *reader)
{
    for (uint32_t s = 0; s < krait_reader_stream_count(reader); s++) {
        uint32_t packets = krait_reader_stream_packet_count(reader, s);
        all->by_stream += count_part(reader, s, 0, packets);
        for (uint32_t p = 0; p < packets; p++)
            all->by_packet += count_part(reader, s, p, 1);
    }
}

static int read_reader(const struct krait_reader *reader)
{
    uint32_t classes = krait_reader_class_count(reader);
    states = calloc(classes + 1, sizeof(*states));
    if (!states)
        exit(2);
    int rc = read_ordered(reader, &all->error);
    read_parts(reader);
    for (uint32_t i = 0; i < classes; i++)
        free(states[i].known);
    free(states);
    return rc;
}

int read_all(struct read_all *out, const char *const *paths, size_t count)
{
    struct krait_reader *reader;
    *out = (struct read_all){ 0 };
    all = out;
    int rc = krait_reader_open(&reader, paths, count, &all->error);
    if (rc)
        return rc;
    rc = read_reader(reader);
    krait_reader_close(reader);
    return rc;
}
