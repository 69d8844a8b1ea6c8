/* SPDX-License-Identifier: Apache-2.0
 *
 * read_trace MODE THREADS TRACE: what krait's C interface takes for a trace. Prints one
 * line of JSON: the events, and sums of what is in them, to be compared with other readers'.
 *
 *   stream   every field of each event, in batches; threads share the packets
 *   time     the same with all streams in order of time; threads share time
 *   count    events by class, in batches without fields; threads share the packets
 *   single   as stream, an event at a time, with a handle for each field
 *   check    as stream, with sums that can be compared; check-time: as time
 *
 * Summed up are the fields of events' payloads and contexts; numbers as 64 bits, doubles by their bits, texts
 * by their lengths. What is timed (stream, time) adds up all cells of the batches and all elements of arrays:
 * the addresses of events, texts and arrays are in that sum, which is another one in each run. The checks
 * take them out again.
 */
#include "sum_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_PACKETS = 8, PARTS_EACH = 8, THREADS = 64, PATH_BYTES = 512 };

struct sums {
    uint64_t events, numbers, text, times;
    uint64_t *counts; /* by class */
};

/* An array's two cells in a row. */
struct array {
    uint32_t cell;
    uint64_t (*sum)(const uint8_t *at, uint64_t count);
};

/* What the rows of a class have besides numbers. */
struct row_plan {
    const uint32_t *texts; /* their first cells */
    const struct array *arrays;
    uint32_t text_count, array_count;
    bool has_others; /* fields without cells */
};

/* What has to be done for an event besides adding up its row: one byte, since it is looked at for each. */
enum what {
    UNKNOWN, /* the first of its class */
    NOTHING,
    SPECIAL, /* there are arrays, or fields without cells */
};

/* The fields of a class that are read by handle: of `single` all, else those that have no cells. */
struct plan {
    size_t count;
    struct {
        const struct krait_reader_field *field;
        enum krait_reader_kind kind;
    } leaf[];
};

/* What a thread takes at a time: packets of a stream, or all that happened between two times. */
struct part {
    uint32_t stream, first, count;
    int64_t begin_ns, end_ns;
};

struct worker;

struct work {
    const struct krait_reader *reader;
    void (*read)(struct worker *worker, struct krait_reader_cursor *cursor);
    bool count_only, ordered, checked;
    struct part *parts;
    size_t part_count;
    atomic_size_t next;
};

struct worker {
    struct work *work;
    uint8_t *what; /* enum what, by class, as the next three; made when the first event is seen */
    uint32_t *row_sizes;
    struct row_plan *rows;
    struct plan **plans;
    struct sums sums;
    pthread_t thread;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "read_trace: %s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        die("memory", strerror(ENOMEM));
    return memory;
}

/* ---- values ---- */

static void add_double(struct sums *sums, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    sums->numbers += bits;
}

static void walk(struct sums *sums, const struct krait_reader_value *value)
{
    struct krait_reader_value child;
    uint64_t number = 0;
    int64_t negative = 0;
    double real = 0;
    const char *text;
    size_t size = 0;
    switch (krait_reader_value_kind(value)) {
    case KRAIT_READER_UNSIGNED:
        krait_reader_value_unsigned(value, &number);
        sums->numbers += number;
        return;
    case KRAIT_READER_SIGNED:
        krait_reader_value_signed(value, &negative);
        sums->numbers += (uint64_t)negative;
        return;
    case KRAIT_READER_DOUBLE:
        krait_reader_value_double(value, &real);
        add_double(sums, real);
        return;
    case KRAIT_READER_TEXT:
        krait_reader_value_text(value, &text, &size);
        sums->text += size;
        return;
    default:
        krait_reader_value_children(value, &child);
        while (krait_reader_value_next(value, &child) > 0)
            walk(sums, &child);
    }
}

static void touch(struct sums *sums, const struct krait_reader_cursor *cursor,
                  const struct krait_reader_field *field, enum krait_reader_kind kind)
{
    struct krait_reader_value value;
    uint64_t number = 0;
    int64_t negative = 0;
    const char *text;
    size_t size = 0;
    if (kind == KRAIT_READER_UNSIGNED) {
        krait_reader_cursor_unsigned(cursor, field, &number);
        sums->numbers += number;
    } else if (kind == KRAIT_READER_SIGNED) {
        krait_reader_cursor_signed(cursor, field, &negative);
        sums->numbers += (uint64_t)negative;
    } else if (kind == KRAIT_READER_TEXT) {
        krait_reader_cursor_text(cursor, field, &text, &size);
        sums->text += size;
    } else if (krait_reader_cursor_value(cursor, field, &value) == 0) {
        walk(sums, &value);
    }
}

/* ---- plans ---- */

static struct plan *plan_add(struct plan *plan, const struct krait_reader_field *field)
{
    plan = realloc(plan, sizeof(*plan) + (plan->count + 1) * sizeof(*plan->leaf));
    if (!plan)
        die("memory", strerror(ENOMEM));
    plan->leaf[plan->count].field = field;
    plan->leaf[plan->count++].kind = krait_reader_field_kind(field);
    return plan;
}

static struct plan *plan_field(struct plan *plan, const struct krait_reader_cursor *cursor,
                               enum krait_reader_scope scope, const char *path)
{
    struct krait_reader_error error;
    struct krait_reader_value value, member;
    const struct krait_reader_field *field;
    if (krait_reader_class_field(krait_reader_cursor_class(cursor), scope, path, &field, &error)) {
        if (*path)
            die(path, error.text);
        return plan; /* the class has no such scope */
    }
    if (krait_reader_field_kind(field) != KRAIT_READER_STRUCT)
        return plan_add(plan, field);
    if (krait_reader_cursor_value(cursor, field, &value))
        return plan;
    krait_reader_value_children(&value, &member);
    while (krait_reader_value_next(&value, &member) > 0) {
        char child[PATH_BYTES];
        snprintf(child, sizeof(child), "%s%s%s", path, *path ? "." : "", krait_reader_value_name(&member));
        plan = plan_field(plan, cursor, scope, child);
    }
    return plan;
}

/* Of the class of the cursor's event. */
static struct plan *plan_make(const struct krait_reader_cursor *cursor)
{
    struct plan *plan = allocate(1, sizeof(*plan));
    plan = plan_field(plan, cursor, KRAIT_READER_COMMON_CONTEXT, "");
    plan = plan_field(plan, cursor, KRAIT_READER_EVENT_CONTEXT, "");
    return plan_field(plan, cursor, KRAIT_READER_PAYLOAD, "");
}

/* What has cells is not read by handle. */
static void plan_keep_without_cells(struct plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++)
        if (krait_reader_field_cell(plan->leaf[i].field) < 0)
            plan->leaf[kept++] = plan->leaf[i];
    plan->count = kept;
}

/* ---- elements of arrays ---- */

#define NATIVE(x) (x)

/* The bytes may lie anywhere: loads are unaligned. */
#define SUM(name, type, swap)                                      \
    static uint64_t name(const uint8_t *at, uint64_t count)        \
    {                                                              \
        uint64_t sum = 0;                                          \
        for (uint64_t i = 0; i < count; i++) {                     \
            type value;                                            \
            memcpy(&value, at + i * sizeof(value), sizeof(value)); \
            sum += (uint64_t)(type)swap(value);                    \
        }                                                          \
        return sum;                                                \
    }

SUM(sum_u8, uint8_t, NATIVE)
SUM(sum_u16, uint16_t, NATIVE)
SUM(sum_u32, uint32_t, NATIVE)
SUM(sum_u64, uint64_t, NATIVE)
SUM(sum_i8, int8_t, NATIVE)
SUM(sum_i16, int16_t, NATIVE)
SUM(sum_i32, int32_t, NATIVE)
SUM(sum_u16_be, uint16_t, __builtin_bswap16)
SUM(sum_u32_be, uint32_t, __builtin_bswap32)
SUM(sum_u64_be, uint64_t, __builtin_bswap64)
SUM(sum_i16_be, int16_t, __builtin_bswap16)
SUM(sum_i32_be, int32_t, __builtin_bswap32)

static uint64_t sum_f32(const uint8_t *at, uint64_t count)
{
    struct sums sums = { 0 };
    for (uint64_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, at + i * sizeof(value), sizeof(value));
        add_double(&sums, (double)value);
    }
    return sums.numbers;
}

/* By the bits of an element (8, 16, 32, 64) and what its flags say. */
static uint64_t (*const SUMS[4][KRAIT_READER_CELL_BIG_ENDIAN * 2])(const uint8_t *at, uint64_t count) = {
    { sum_u8, sum_i8, NULL, NULL, sum_u8, sum_i8 },
    { sum_u16, sum_i16, NULL, NULL, sum_u16_be, sum_i16_be },
    { sum_u32, sum_i32, sum_f32, NULL, sum_u32_be, sum_i32_be },
    { sum_u64, sum_u64, sum_u64, NULL, sum_u64_be, sum_u64_be, sum_u64_be },
};

/* ---- what there is in the rows of a class ---- */

static struct array array_of(const struct krait_reader_cell *cell)
{
    unsigned width = (unsigned)__builtin_ctz(cell->element_bits) - 3;
    struct array array = { cell->cell,
                           width < 4 ? SUMS[width][cell->flags % (KRAIT_READER_CELL_BIG_ENDIAN * 2)] : NULL };
    if (!array.sum)
        die(cell->path, "an array of elements that this program has no sum for");
    return array;
}

static void row_plan_fill(struct row_plan *row, const struct krait_reader_class *cls, uint32_t *texts,
                          struct array *arrays, uint32_t count)
{
    struct krait_reader_cell cell;
    for (uint32_t i = 0; i < count; i++) {
        if (krait_reader_class_cell(cls, i, &cell))
            die(krait_reader_class_name(cls), "has no cell");
        if (cell.kind == KRAIT_READER_TEXT)
            texts[row->text_count++] = cell.cell;
        if (cell.kind == KRAIT_READER_ARRAY)
            arrays[row->array_count++] = array_of(&cell);
    }
    row->texts = texts;
    row->arrays = arrays;
}

static void row_plan_make(struct row_plan *row, const struct krait_reader_class *cls)
{
    int count = krait_reader_class_cell_count(cls);
    if (count < 0)
        die(krait_reader_class_name(cls), strerror(-count));
    row_plan_fill(row, cls, allocate((size_t)count, sizeof(uint32_t)),
                  allocate((size_t)count, sizeof(struct array)), (uint32_t)count);
}

/* ---- batches ---- */

static void select_event(struct krait_reader_cursor *cursor, const struct krait_reader_batch *batch,
                         uint32_t i)
{
    int rc = krait_reader_cursor_select(cursor, batch, i);
    if (rc)
        die("selecting an event of a batch", strerror(-rc));
}

static void touch_others(struct worker *worker, struct krait_reader_cursor *cursor,
                         const struct krait_reader_batch *batch, uint32_t i)
{
    const struct plan *plan = worker->plans[batch->events[i].cls];
    select_event(cursor, batch, i);
    for (size_t k = 0; k < plan->count; k++)
        touch(&worker->sums, cursor, plan->leaf[k].field, plan->leaf[k].kind);
}

static void meet_class(struct worker *worker, struct krait_reader_cursor *cursor,
                       const struct krait_reader_batch *batch, uint32_t i)
{
    uint32_t cls = batch->events[i].cls;
    struct row_plan *row = &worker->rows[cls];
    select_event(cursor, batch, i);
    worker->plans[cls] = plan_make(cursor);
    plan_keep_without_cells(worker->plans[cls]);
    row_plan_make(row, krait_reader_class_at(worker->work->reader, cls));
    worker->row_sizes[cls] =
        (uint32_t)krait_reader_class_row_size(krait_reader_class_at(worker->work->reader, cls));
    row->has_others = worker->plans[cls]->count > 0;
    worker->what[cls] = row->has_others || row->array_count ? SPECIAL : NOTHING;
}

static uint64_t sum_arrays(const struct row_plan *plan, const uint64_t *row)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->array_count; i++) {
        const uint64_t *view = row + plan->arrays[i].cell;
        sum += plan->arrays[i].sum((const uint8_t *)(uintptr_t)view[0], view[1]);
    }
    return sum;
}

static __attribute__((noinline)) void take_special(struct worker *worker, struct krait_reader_cursor *cursor,
                                                   const struct krait_reader_batch *batch, uint32_t i)
{
    const struct krait_reader_event *event = &batch->events[i];
    const struct row_plan *plan = &worker->rows[event->cls];
    if (worker->what[event->cls] == UNKNOWN)
        meet_class(worker, cursor, batch, i);
    worker->sums.numbers += sum_arrays(plan, batch->cells + event->cells);
    if (plan->has_others)
        touch_others(worker, cursor, batch, i);
}

/* Takes out of the sum what is no number. */
static void correct(struct worker *worker, const struct krait_reader_batch *batch)
{
    struct sums *sums = &worker->sums;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct row_plan *plan = &worker->rows[batch->events[i].cls];
        const uint64_t *row = batch->cells + batch->events[i].cells;
        sums->numbers -= row[KRAIT_READER_CELL_ORIGIN] + row[KRAIT_READER_CELL_ADDRESS];
        for (uint32_t k = 0; k < plan->text_count; k++) {
            const uint64_t *view = row + plan->texts[k];
            sums->numbers -= view[0] + view[1];
            sums->text += view[1];
        }
        for (uint32_t k = 0; k < plan->array_count; k++)
            sums->numbers -= row[plan->arrays[k].cell] + row[plan->arrays[k].cell + 1];
    }
}

/* All cells are added up at once where they lie side by side, else row by row. */
static void take_batch(struct worker *worker, struct krait_reader_cursor *cursor,
                       const struct krait_reader_batch *batch)
{
    const struct krait_reader_event *events = batch->events, *end = events + batch->count;
    const uint8_t *what = worker->what;
    uint64_t times = 0;
    for (const struct krait_reader_event *event = events; event < end; event++) {
        if (__builtin_expect(what[event->cls] != NOTHING, 0))
            take_special(worker, cursor, batch, (uint32_t)(event - events));
        times += (uint64_t)event->ns;
    }
    worker->sums.times += times;
    worker->sums.numbers +=
        batch->cell_count ? sum_cells(batch->cells, batch->cell_count) : sum_rows(batch, worker->row_sizes);
    if (worker->work->checked)
        correct(worker, batch);
}

static void count_batch(struct sums *sums, const struct krait_reader_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        sums->counts[batch->events[i].cls]++;
}

/* ---- reading ---- */

static void end_of(struct krait_reader_cursor *cursor, int step)
{
    struct krait_reader_error error;
    krait_reader_cursor_error(cursor, &error);
    if (step < 0)
        die("reading", error.text);
    krait_reader_cursor_free(cursor);
}

static void read_batches(struct worker *worker, struct krait_reader_cursor *cursor)
{
    struct krait_reader_batch batch;
    int step;
    while ((step = krait_reader_cursor_next_batch(cursor, &batch)) > 0) {
        worker->sums.events += batch.count;
        if (worker->work->count_only)
            count_batch(&worker->sums, &batch);
        else
            take_batch(worker, cursor, &batch);
    }
    end_of(cursor, step);
}

static void take(struct worker *worker, const struct krait_reader_cursor *cursor)
{
    uint32_t cls = krait_reader_class_index(krait_reader_cursor_class(cursor));
    if (!worker->plans[cls])
        worker->plans[cls] = plan_make(cursor);
    const struct plan *plan = worker->plans[cls];
    worker->sums.events++;
    worker->sums.times += (uint64_t)krait_reader_cursor_ns(cursor);
    for (size_t i = 0; i < plan->count; i++)
        touch(&worker->sums, cursor, plan->leaf[i].field, plan->leaf[i].kind);
}

static void read_single(struct worker *worker, struct krait_reader_cursor *cursor)
{
    int step;
    while ((step = krait_reader_cursor_next(cursor)) > 0)
        if (step == KRAIT_READER_EVENT)
            take(worker, cursor);
    end_of(cursor, step);
}

static struct krait_reader_cursor *open_part(const struct work *work, const struct part *part)
{
    struct krait_reader_cursor *cursor;
    struct krait_reader_error error;
    int rc = work->ordered ? krait_reader_cursor_new_between(&cursor, work->reader, part->begin_ns,
                                                             part->end_ns, &error)
                           : krait_reader_cursor_new_packets(&cursor, work->reader, part->stream, part->first,
                                                             part->count, &error);
    if (rc)
        die("a part of the trace", error.text);
    return cursor;
}

static void *read_parts(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    for (size_t i; (i = work->next++) < work->part_count;)
        work->read(worker, open_part(work, &work->parts[i]));
    return NULL;
}

static void cut_time(struct work *work, unsigned threads)
{
    uint32_t parts = threads > 1 ? threads * PARTS_EACH : 1;
    work->parts = allocate(parts, sizeof(*work->parts));
    for (uint32_t i = 0; i < parts; i++)
        work->parts[work->part_count++] =
            (struct part){ .begin_ns = krait_reader_split(work->reader, i, parts),
                           .end_ns = krait_reader_split(work->reader, i + 1, parts) };
}

/* One thread takes each stream as a whole; several take some packets at a time. */
static void cut_packets(struct work *work, unsigned threads)
{
    uint32_t streams = krait_reader_stream_count(work->reader);
    size_t most = 0;
    for (uint32_t s = 0; s < streams; s++)
        most += krait_reader_stream_packet_count(work->reader, s) / PART_PACKETS + 1;
    work->parts = allocate(most, sizeof(*work->parts));
    for (uint32_t s = 0; s < streams; s++) {
        uint32_t packets = krait_reader_stream_packet_count(work->reader, s);
        uint32_t step = threads > 1 ? PART_PACKETS : packets;
        for (uint32_t first = 0; first < packets; first += step)
            work->parts[work->part_count++] = (struct part){
                .stream = s, .first = first, .count = packets - first < step ? packets - first : step
            };
    }
}

static void run_threads(struct worker *workers, unsigned threads)
{
    (workers->work->ordered ? cut_time : cut_packets)(workers->work, threads);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, read_parts, &workers[i]))
            die("threads", strerror(EAGAIN));
    read_parts(&workers[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
}

/* ---- results ---- */

static void print_sums(struct worker *workers, unsigned threads, uint32_t classes)
{
    struct sums all = { 0 };
    uint32_t seen = 0;
    for (unsigned i = 0; i < threads; i++) {
        all.events += workers[i].sums.events;
        all.numbers += workers[i].sums.numbers;
        all.text += workers[i].sums.text;
        all.times += workers[i].sums.times;
    }
    for (uint32_t c = 0; c < classes; c++) {
        uint64_t count = 0;
        for (unsigned i = 0; i < threads; i++)
            count += workers[i].sums.counts[c];
        seen += count > 0;
    }
    printf("{\"events\": %" PRIu64 ", ", all.events);
    if (workers->work->count_only)
        printf("\"classes\": %u}\n", seen);
    else if (workers->work->checked)
        printf("\"numbers\": %" PRIu64 ", \"text\": %" PRIu64 ", \"times\": %" PRIu64 "}\n", all.numbers,
               all.text, all.times);
    else
        printf("\"times\": %" PRIu64 ", \"cells\": %" PRIu64 "}\n", all.times, all.numbers);
}

/* Whether the mode is one of those, which have blanks around them. */
static bool is_of(const char *mode, const char *modes)
{
    char word[32];
    snprintf(word, sizeof(word), " %s ", mode);
    return strstr(modes, word) != NULL;
}

int main(int argc, char **argv)
{
    struct krait_reader *reader;
    struct krait_reader_error error;
    unsigned threads = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (!threads || threads > THREADS || !is_of(argv[1], " stream time count single check check-time "))
        die("usage", "read_trace stream|time|count|single|check|check-time THREADS TRACE");
    if (krait_reader_open(&reader, (const char *const *)&argv[3], 1, &error))
        die(argv[3], error.text);
    uint32_t classes = krait_reader_class_count(reader);
    struct work work = { .reader = reader,
                         .read = is_of(argv[1], " single ") ? read_single : read_batches,
                         .count_only = is_of(argv[1], " count "),
                         .ordered = is_of(argv[1], " time check-time "),
                         .checked = is_of(argv[1], " single check check-time ") };
    struct worker *workers = allocate(threads, sizeof(*workers));
    for (unsigned i = 0; i < threads; i++) {
        workers[i].work = &work;
        workers[i].what = allocate(classes, sizeof(*workers[i].what));
        workers[i].row_sizes = allocate(classes, sizeof(*workers[i].row_sizes));
        workers[i].rows = allocate(classes, sizeof(*workers[i].rows));
        workers[i].plans = allocate(classes, sizeof(*workers[i].plans));
        workers[i].sums.counts = allocate(classes, sizeof(*workers[i].sums.counts));
    }
    if (work.count_only && krait_reader_want_fields(reader, NULL, 0, &error))
        die(argv[3], error.text);
    run_threads(workers, threads);
    print_sums(workers, threads, classes);
    return 0; /* the process ends: it needs not free what it has */
}
