/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_check [--some] [--cycles] [--whole] TRACE...: reads traces in batches and event by event at once, all by
 * time, time in parts, and each stream by itself, and compares everything that a batch says; --some: of some of the
 * fields, which alone are wanted; --cycles: rows have the clock's count; --whole: not in parts, one behind the other,
 * whose order is another where times go backward. At last the traces are checked for damage, and parts of their time
 * and of their streams, in any order, have to have what the whole has. Prints what there was:
 *
 *   events N / cells N / selected N / lost N / cycles N (their sum) / by_stream N / by_part N / error CODE
 *
 * Exit status 1: something differed, said on stderr.
 */
#include "krait/trace_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of so many events is made the current one and looked at that way too. */
enum { SELECT_EVERY = 7, PARTS = 3 };

struct cell {
    struct krait_reader_cell info;
    const struct krait_reader_field *field;
};

struct class_cells {
    struct cell *cells;
    int count;
};

static struct class_cells *classes;
static bool some, with_cycles, in_one;
static uint64_t cells, selected, lost, cycles, wrong;
static uint64_t stepped, batched; /* sums of losses */

static void differs(const char *what, const char *where)
{
    if (wrong++ < 10)
        fprintf(stderr, "batch_check: %s differs at '%s'\n", what, where);
}

/* Which fields some are: a third of all, by their names. */
static bool is_wanted(const char *path)
{
    unsigned sum = 0;
    for (; *path; path++)
        sum += (unsigned char)*path;
    return !some || sum % 3 == 0;
}

static void look_up(const struct krait_reader_class *cls, struct class_cells *known)
{
    int row = krait_reader_class_row_size(cls);
    uint32_t next = with_cycles ? 3 : 2;
    known->count = krait_reader_class_cell_count(cls);
    known->cells = calloc((size_t)known->count + 1, sizeof(*known->cells));
    if (known->count < 0 || !known->cells)
        exit(2);
    for (int i = 0; i < known->count; i++) {
        struct cell *cell = &known->cells[i];
        if (krait_reader_class_cell(cls, (uint32_t)i, &cell->info))
            differs("the list of cells", krait_reader_class_name(cls));
        if (!is_wanted(cell->info.path))
            differs("what was wanted", cell->info.path);
        if (krait_reader_class_field(cls, cell->info.scope, cell->info.path, &cell->field, NULL))
            continue; /* a name with a point in it */
        if (cell->info.cell < next || krait_reader_field_kind(cell->field) != cell->info.kind)
            differs("the cell's field", cell->info.path);
        next = cell->info.cell +
               (cell->info.kind == KRAIT_READER_TEXT || cell->info.kind == KRAIT_READER_ARRAY ? 2 : 1);
        int found = krait_reader_field_cell(cell->field);
        if (found >= 0 && (uint32_t)found != cell->info.cell)
            cell->field = NULL; /* one of several of the same name */
    }
    if (row < 0 || next > (uint32_t)row)
        differs("the row's size", krait_reader_class_name(cls));
}

static uint64_t load_element(const uint8_t *at, const struct krait_reader_cell *info)
{
    uint64_t v = 0;
    unsigned bytes = info->element_bits / 8;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)at[i] << 8 * (info->flags & KRAIT_READER_CELL_BIG_ENDIAN ? bytes - 1 - i : i);
    if (info->flags & KRAIT_READER_CELL_SIGNED)
        v = (uint64_t)((int64_t)(v << (64 - info->element_bits)) >> (64 - info->element_bits));
    return v;
}

/* The elements of an array: of floats only how many. */
static void check_array(const struct krait_reader_cursor *cursor, const struct cell *cell,
                        const uint64_t *row)
{
    struct krait_reader_value array, element;
    const uint8_t *at = (const uint8_t *)(uintptr_t)row[0];
    uint64_t number = 0;
    if (krait_reader_cursor_value(cursor, cell->field, &array) ||
        krait_reader_value_count(&array) != row[1]) {
        differs("the number of elements", cell->info.path);
        return;
    }
    krait_reader_value_children(&array, &element);
    while (!(cell->info.flags & KRAIT_READER_CELL_FLOAT) && at &&
           krait_reader_value_next(&array, &element) > 0) {
        int64_t signed_number = 0;
        if (krait_reader_value_unsigned(&element, &number) &&
            krait_reader_value_signed(&element, &signed_number) == 0)
            number = (uint64_t)signed_number;
        if (number != load_element(at, &cell->info))
            differs("an element", cell->info.path);
        at += cell->info.element_bits / 8;
    }
}

static void check_cell(const struct krait_reader_cursor *cursor, const struct cell *cell, const uint64_t *row)
{
    uint64_t u = 0;
    int64_t s = 0;
    double d = 0;
    const char *text = NULL;
    size_t size = 0;
    row += cell->info.cell;
    cells++;
    switch ((int)cell->info.kind) {
    case KRAIT_READER_UNSIGNED:
        if (krait_reader_cursor_unsigned(cursor, cell->field, &u) || u != row[0])
            differs("an unsigned number", cell->info.path);
        break;
    case KRAIT_READER_SIGNED:
        if (krait_reader_cursor_signed(cursor, cell->field, &s) || (uint64_t)s != row[0])
            differs("a signed number", cell->info.path);
        break;
    case KRAIT_READER_DOUBLE:
        if (krait_reader_cursor_double(cursor, cell->field, &d) || memcmp(&d, row, sizeof(d)) != 0)
            differs("a float", cell->info.path);
        break;
    case KRAIT_READER_TEXT:
        if (krait_reader_cursor_text(cursor, cell->field, &text, &size) || size != row[1] ||
            memcmp(text, (const char *)(uintptr_t)row[0], size) != 0)
            differs("a text", cell->info.path);
        break;
    default:
        check_array(cursor, cell, row);
    }
}

static void check_cells(const struct krait_reader_cursor *cursor, const uint64_t *row)
{
    const struct krait_reader_class *cls = krait_reader_cursor_class(cursor);
    struct class_cells *known = &classes[krait_reader_class_index(cls)];
    if (!known->cells)
        look_up(cls, known);
    for (int i = 0; i < known->count; i++) {
        if (known->cells[i].field)
            check_cell(cursor, &known->cells[i], row);
    }
}

/* Counts of one nanosecond are as good as each other, where the clock is faster. */
static bool has_same_cycles(const struct krait_reader *reader, const struct krait_reader_cursor *single,
                            const struct krait_reader_cursor *again)
{
    uint64_t a = krait_reader_cursor_cycles(single), b = krait_reader_cursor_cycles(again);
    uint64_t frequency = krait_reader_stream_clock_frequency(reader, krait_reader_cursor_stream(single));
    return a == b || (!with_cycles && (a > b ? a - b : b - a) <= (frequency - 1) / 1000000000);
}

/* `single` is at the same event by steps. */
static void check_event(const struct krait_reader *reader, const struct krait_reader_cursor *single,
                        struct krait_reader_cursor *batches, const struct krait_reader_batch *batch,
                        uint32_t i)
{
    const struct krait_reader_event *event = &batch->events[i];
    const uint64_t *row = batch->cells + event->cells;
    const struct krait_reader_class *cls = krait_reader_cursor_class(single);
    const char *name = krait_reader_class_name(cls);
    if (event->cls != krait_reader_class_index(cls)) {
        differs("the class", name);
        return;
    }
    if (event->ns != krait_reader_cursor_ns(single))
        differs("the time", name);
    if (row[KRAIT_READER_CELL_ORIGIN] !=
        (krait_reader_cursor_stream(single) | (uint64_t)krait_reader_cursor_packet(single) << 32))
        differs("the origin", name);
    if (with_cycles && row[KRAIT_READER_CELL_CYCLES] != krait_reader_cursor_cycles(single))
        differs("the count of cycles", name);
    cycles += with_cycles ? row[KRAIT_READER_CELL_CYCLES] : 0;
    check_cells(single, row);
    if (i % SELECT_EVERY)
        return;
    selected++;
    if (krait_reader_cursor_select(batches, batch, i) || krait_reader_cursor_class(batches) != cls ||
        krait_reader_cursor_ns(batches) != event->ns || !has_same_cycles(reader, single, batches) ||
        krait_reader_cursor_packet(batches) != krait_reader_cursor_packet(single))
        differs("the selected event", name);
    check_cells(batches, row);
}

/* Of what a loss says: sums are compared, since batches tell losses ahead. */
static uint64_t loss_sum(const struct krait_reader_lost *loss)
{
    uint64_t times = (uint64_t)loss->begin_ns * 3 + (uint64_t)loss->end_ns * 5;
    return (loss->count + 1) * 1000003 + times * 7 + loss->packets * 11 + loss->stream * 13 + 1;
}

/* To the next event; false if there is none. */
static bool step(struct krait_reader_cursor *single, int *rc)
{
    struct krait_reader_lost loss;
    while ((*rc = krait_reader_cursor_next(single)) == KRAIT_READER_LOST) {
        if (krait_reader_cursor_lost(single, &loss))
            exit(2);
        stepped += loss_sum(&loss);
    }
    return *rc == KRAIT_READER_EVENT;
}

/* All that `batches` has, which is freed; returns how it ended. */
static int compare_batches(const struct krait_reader *reader, struct krait_reader_cursor *single,
                           struct krait_reader_cursor *batches, uint64_t *events)
{
    struct krait_reader_batch batch;
    int rc, single_rc = 0;
    while ((rc = krait_reader_cursor_next_batch(batches, &batch)) > 0) {
        for (uint32_t i = 0; i < batch.count; i++, ++*events) {
            if (!step(single, &single_rc)) {
                differs("the number of events", "");
                break;
            }
            check_event(reader, single, batches, &batch, i);
        }
        for (uint32_t i = 0; i < batch.lost_count; i++) {
            lost += batch.lost[i].packets ? 0 : batch.lost[i].count;
            batched += loss_sum(&batch.lost[i]);
        }
    }
    krait_reader_cursor_free(batches);
    return rc;
}

/* `single` has to be at its end too; it is freed. */
static void compare_end(struct krait_reader_cursor *single, int end)
{
    int single_rc;
    if (step(single, &single_rc) || single_rc != end)
        differs("the end", "");
    if (stepped != batched)
        differs("the losses", "");
    krait_reader_cursor_free(single);
}

/* Both cursors at once, to the end; both are freed. Returns the number of events. */
static uint64_t compare(const struct krait_reader *reader, struct krait_reader_cursor *single,
                        struct krait_reader_cursor *batches, int *end)
{
    uint64_t events = 0;
    *end = compare_batches(reader, single, batches, &events);
    compare_end(single, *end);
    return events;
}

/* Time in parts: together they are the whole. */
static uint64_t compare_parts(const struct krait_reader *reader)
{
    struct krait_reader_cursor *single, *batches;
    uint64_t events = 0;
    int end = 0;
    if (krait_reader_cursor_new_ordered(&single, reader, NULL))
        exit(2);
    for (uint32_t part = 0; part < PARTS; part++) {
        int64_t from = krait_reader_split(reader, part, PARTS),
                to = krait_reader_split(reader, part + 1, PARTS);
        if (krait_reader_cursor_new_between(&batches, reader, from, to, NULL))
            exit(2);
        int rc = compare_batches(reader, single, batches, &events);
        end = end ? end : rc;
    }
    compare_end(single, end);
    return events;
}

static uint64_t compare_stream(const struct krait_reader *reader, uint32_t stream)
{
    struct krait_reader_cursor *single, *batches;
    int end;
    if (krait_reader_cursor_new_stream(&single, reader, stream, NULL) ||
        krait_reader_cursor_new_stream(&batches, reader, stream, NULL))
        exit(2);
    return compare(reader, single, batches, &end);
}

/* -- parts, in any order -- */

enum { MOST_PARTS = 5, MOST_PACKETS = 3 };

/* Of events and losses, whatever their order. */
struct total {
    uint64_t events, places, losses;
    int end; /* the first error */
};

/* Adds what the cursor has, and frees it. */
static void add_total(struct total *total, struct krait_reader_cursor *cursor)
{
    struct krait_reader_batch batch;
    int rc;
    while ((rc = krait_reader_cursor_next_batch(cursor, &batch)) > 0) {
        for (uint32_t i = 0; i < batch.count; i++) {
            const struct krait_reader_event *event = &batch.events[i];
            uint64_t place = batch.cells[event->cells + KRAIT_READER_CELL_ADDRESS] ^ (uint64_t)event->ns;
            total->places += (place + event->cls) * UINT64_C(0x9e3779b97f4a7c15) >> 7;
        }
        for (uint32_t i = 0; i < batch.lost_count; i++)
            total->losses += loss_sum(&batch.lost[i]);
        total->events += batch.count;
    }
    total->end = total->end ? total->end : rc;
    krait_reader_cursor_free(cursor);
}

static void compare_totals(const char *what, const struct total *whole, const struct total *parts)
{
    if (whole->events != parts->events || whole->places != parts->places)
        differs("the events of all parts", what);
    if (whole->losses != parts->losses)
        differs("the losses of all parts", what);
    if (whole->end != parts->end)
        differs("the end of all parts", what);
}

static struct total total_by_time(const struct krait_reader *reader, uint32_t parts)
{
    struct total total = { 0 };
    struct krait_reader_cursor *cursor;
    for (uint32_t part = 0; part < parts; part++) {
        if (krait_reader_cursor_new_between(&cursor, reader, krait_reader_split(reader, part, parts),
                                            krait_reader_split(reader, part + 1, parts), NULL))
            exit(2);
        add_total(&total, cursor);
    }
    return total;
}

/* Of so many packets each. A packet whose times depend on those before it begins no part. */
static struct total total_by_packets(const struct krait_reader *reader, uint32_t stream, uint32_t step)
{
    struct total total = { 0 };
    struct krait_reader_cursor *cursor;
    uint32_t packets = krait_reader_stream_packet_count(reader, stream), first = 0, next;
    do {
        next = first;
        do {
            next = packets - next > step ? next + step : packets;
            if (next == packets)
                break;
        } while (krait_reader_cursor_new_packets(&cursor, reader, stream, next, 0, NULL) == -ENOTSUP);
        if (next < packets)
            krait_reader_cursor_free(cursor);
        if (krait_reader_cursor_new_packets(&cursor, reader, stream, first, next - first, NULL))
            exit(2);
        add_total(&total, cursor);
        first = next;
    } while (first < packets);
    return total;
}

static void compare_checked(struct krait_reader *reader, int end)
{
    struct krait_reader_cursor *cursor;
    struct total whole = { 0 };
    if (krait_reader_check(reader, NULL) != end)
        differs("what the check finds", "");
    if (krait_reader_cursor_new_ordered(&cursor, reader, NULL))
        exit(2);
    add_total(&whole, cursor);
    if (whole.end != end)
        differs("the end after the check", "");
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts++) {
        struct total by_time = total_by_time(reader, parts);
        compare_totals("parts of time", &whole, &by_time);
    }
    for (uint32_t s = 0; s < krait_reader_stream_count(reader); s++) {
        struct total stream = { 0 };
        if (krait_reader_cursor_new_stream(&cursor, reader, s, NULL))
            exit(2);
        add_total(&stream, cursor);
        for (uint32_t step = 1; step <= MOST_PACKETS; step++) {
            struct total by_packets = total_by_packets(reader, s, step);
            compare_totals(krait_reader_stream_path(reader, s), &stream, &by_packets);
        }
    }
}

/* -- some of the fields -- */

struct fields {
    const struct krait_reader_field **fields;
    size_t count;
};

/* Those of a class that have cells in another reader of the same traces, which may be asked. */
static void add_some(struct fields *wanted, const struct krait_reader *reader,
                     const struct krait_reader_class *theirs)
{
    const struct krait_reader_class *cls = krait_reader_class_at(reader, krait_reader_class_index(theirs));
    int count = krait_reader_class_cell_count(theirs);
    wanted->fields = realloc(wanted->fields, (wanted->count + (size_t)count + 1) * sizeof(*wanted->fields));
    if (count < 0 || !wanted->fields)
        exit(2);
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        struct krait_reader_cell cell;
        const struct krait_reader_field *their_field, **field = &wanted->fields[wanted->count];
        if (!krait_reader_class_cell(theirs, i, &cell) && is_wanted(cell.path) &&
            !krait_reader_class_field(theirs, cell.scope, cell.path, &their_field, NULL) &&
            krait_reader_field_cell(their_field) >= 0 &&
            !krait_reader_class_field(cls, cell.scope, cell.path, field, NULL))
            wanted->count++;
    }
}

static void want_some(struct krait_reader *reader, const char *const *paths, size_t path_count)
{
    struct krait_reader *theirs;
    struct fields wanted = { NULL, 0 };
    if (krait_reader_open(&theirs, paths, path_count, NULL))
        exit(2);
    for (uint32_t i = 0; i < krait_reader_class_count(theirs); i++)
        add_some(&wanted, reader, krait_reader_class_at(theirs, i));
    krait_reader_close(theirs);
    if (krait_reader_want_fields(reader, wanted.fields, wanted.count, NULL))
        exit(2);
    for (size_t i = 0; i < wanted.count; i++) {
        if (krait_reader_field_cell(wanted.fields[i]) < 0)
            differs("a wanted field", krait_reader_field_name(wanted.fields[i]));
    }
    if (wanted.count && krait_reader_want_fields(reader, NULL, 0, NULL) != -EBUSY)
        differs("what is wanted too late", "");
    free(wanted.fields);
}

/* Returns how many words they are, with the program's. */
static int take_options(char *const *argv)
{
    const struct {
        const char *name;
        bool *is_set;
    } options[] = { { "--some", &some }, { "--cycles", &with_cycles }, { "--whole", &in_one } };
    int i = 1;
    for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++) {
        *options[k].is_set = argv[i] && strcmp(argv[i], options[k].name) == 0;
        i += *options[k].is_set;
    }
    return i;
}

int main(int argc, char **argv)
{
    struct krait_reader *reader;
    struct krait_reader_error error = { 0 };
    struct krait_reader_cursor *single, *batches;
    int first = take_options(argv);
    const char *const *paths = (const char *const *)argv + first;
    size_t path_count = (size_t)(argc - first);
    int end = krait_reader_open(&reader, paths, path_count, &error);
    if (end) {
        printf("error %d\n", end);
        return 0;
    }
    if (with_cycles && krait_reader_want_cycles(reader, NULL))
        return 2;
    if (some)
        want_some(reader, paths, path_count);
    classes = calloc(krait_reader_class_count(reader) + 1, sizeof(*classes));
    if (!classes || krait_reader_cursor_new_ordered(&single, reader, NULL) ||
        krait_reader_cursor_new_ordered(&batches, reader, NULL))
        return 2;
    uint64_t events = compare(reader, single, batches, &end), by_stream = 0, lost_by_time = lost;
    printf("events %" PRIu64 "\ncells %" PRIu64 "\nselected %" PRIu64 "\nlost %" PRIu64 "\n", events, cells,
           selected, lost);
    if (with_cycles)
        printf("cycles %" PRIu64 "\n", cycles);
    if (!end && !in_one) /* a part may begin behind the damage */
        printf("by_part %" PRIu64 "\n", compare_parts(reader));
    for (uint32_t s = 0; s < krait_reader_stream_count(reader); s++)
        by_stream += compare_stream(reader, s);
    if (lost != (end || in_one ? 2 : 3) * lost_by_time)
        differs("what was lost", "");
    printf("by_stream %" PRIu64 "\n", by_stream);
    compare_checked(reader, end);
    if (end)
        printf("error %d\n", end);
    for (uint32_t i = 0; i < krait_reader_class_count(reader); i++)
        free(classes[i].cells);
    free(classes);
    krait_reader_close(reader);
    return wrong > 0;
}
