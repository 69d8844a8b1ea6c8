/* SPDX-License-Identifier: Apache-2.0
 *
 * count_by EVENT FIELD TRACE...: how often each value of a field was seen.
 *
 *   count_by sched_switch next_comm kernel-trace      switches to each program
 *   count_by 'python:call' code recording             calls of each function
 *   count_by syscall_entry_openat procname kernel     opens of each process (a context field)
 *
 * Shows how a trace is opened, a field looked up once per event class, and read by handle.
 *
 *   cc count_by.c $(pkg-config --cflags --libs krait-read) -o count_by
 */
#include <inttypes.h>
#include <krait/trace_read.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 4096, SHOWN = 256 };

struct tally {
    char value[SHOWN];
    uint64_t count;
};

static struct tally tallies[MAX_VALUES];
static size_t tally_count;

static int fail(const struct krait_reader_error *error)
{
    fprintf(stderr, "count_by: %s\n", error->text);
    return 1;
}

/* A few hundred values at most: a list will do. */
static void count(const char *value)
{
    size_t i = 0;
    while (i < tally_count && strcmp(tallies[i].value, value) != 0)
        i++;
    if (i == MAX_VALUES)
        return;
    if (i == tally_count) {
        snprintf(tallies[i].value, SHOWN, "%s", value);
        tally_count++;
    }
    tallies[i].count++;
}

/* Any bytes may be in a trace's text: none that move a terminal's cursor are printed. */
static void print_safe(const char *text)
{
    for (; *text; text++)
        putchar((unsigned char)*text < ' ' || *text == 127 ? '?' : *text);
    putchar('\n');
}

/* The field's value as text: a label if it has one, else the text or number. */
static int show(const struct krait_reader_cursor *cursor, const struct krait_reader_field *field, char *to)
{
    const char *text;
    size_t size;
    int64_t number;
    uint64_t large;
    double real;
    if (krait_reader_cursor_label(cursor, field, &text) == 0)
        return snprintf(to, SHOWN, "%s", text);
    if (krait_reader_cursor_text(cursor, field, &text, &size) == 0)
        return snprintf(to, SHOWN, "%.*s", (int)(size < SHOWN ? size : SHOWN - 1), text);
    if (krait_reader_cursor_signed(cursor, field, &number) == 0)
        return snprintf(to, SHOWN, "%" PRId64, number);
    if (krait_reader_cursor_unsigned(cursor, field, &large) == 0)
        return snprintf(to, SHOWN, "%" PRIu64, large);
    if (krait_reader_cursor_double(cursor, field, &real) == 0)
        return snprintf(to, SHOWN, "%g", real);
    return -1;
}

/* A handle for each class of that name: traces of several folders have a class each. */
static const struct krait_reader_field **look_up(const struct krait_reader *reader, const char *event,
                                                 const char *path, struct krait_reader_error *error)
{
    uint32_t n = krait_reader_class_count(reader), found = 0;
    const struct krait_reader_field **fields = calloc(n + 1, sizeof(*fields));
    snprintf(error->text, sizeof(error->text), "there are no events '%s'", event);
    for (uint32_t i = 0; fields && i < n; i++) {
        const struct krait_reader_class *cls = krait_reader_class_at(reader, i);
        if (strcmp(krait_reader_class_name(cls), event) == 0)
            found += krait_reader_class_field(cls, KRAIT_READER_ANY_SCOPE, path, &fields[i], error) == 0;
    }
    if (found)
        return fields;
    free(fields);
    return NULL;
}

static int by_count(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->value, y->value);
}

static int count_all(struct krait_reader_cursor *cursor, const struct krait_reader_field **fields)
{
    char text[SHOWN];
    int step;
    while ((step = krait_reader_cursor_next(cursor)) > 0) {
        if (step != KRAIT_READER_EVENT)
            continue;
        const struct krait_reader_field *field =
            fields[krait_reader_class_index(krait_reader_cursor_class(cursor))];
        if (field && show(cursor, field, text) >= 0)
            count(text);
    }
    return step;
}

int main(int argc, char **argv)
{
    struct krait_reader *reader;
    struct krait_reader_cursor *cursor;
    struct krait_reader_error error;
    if (argc < 4) {
        fprintf(stderr, "usage: count_by EVENT FIELD TRACE...\n");
        return 2;
    }
    if (krait_reader_open(&reader, (const char *const *)argv + 3, (size_t)argc - 3, &error))
        return fail(&error);
    const struct krait_reader_field **fields = look_up(reader, argv[1], argv[2], &error);
    if (!fields || krait_reader_cursor_new_ordered(&cursor, reader, &error)) {
        krait_reader_close(reader);
        return fail(&error);
    }
    int step = count_all(cursor, fields);
    qsort(tallies, tally_count, sizeof(*tallies), by_count);
    for (size_t i = 0; i < tally_count; i++) {
        printf("%" PRIu64 "\t", tallies[i].count);
        print_safe(tallies[i].value);
    }
    krait_reader_cursor_error(cursor,
                              &error); /* what was readable before the damage is printed all the same */
    krait_reader_cursor_free(cursor);
    free(fields);
    krait_reader_close(reader);
    return step < 0 ? fail(&error) : 0;
}
