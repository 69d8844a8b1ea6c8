/* SPDX-License-Identifier: Apache-2.0
 *
 * read_trace stream|time|count|single THREADS TRACE: what krait's C interface takes for a trace. Prints one
 * line of JSON: the events, and sums of what is in them, to be compared with other readers', and the memory
 * that is no mapped file.
 *
 *   stream   every field of each event, in batches; threads share the packets
 *   time     the same with all streams in order of time; one thread
 *   count    events by class, in batches, without looking at fields; threads share the packets
 *   single   as stream, an event at a time, with a handle for each field
 *
 * Summed up are the fields of events' payloads and contexts; numbers as 64 bits, doubles by their bits, texts
 * by their lengths.
 */
#include <errno.h>
#include <inttypes.h>
#include <krait/trace_read.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_PACKETS = 8, THREADS = 64, PATH_BYTES = 512 };

struct sums {
    uint64_t events, numbers, text, times;
    uint64_t *counts; /* by class */
};

/* An array's or a text's two cells in a row. */
struct view {
    uint32_t cell, bits, flags;
    bool text;
};

/* What there is to read in the events of a class: the views in its rows, and what has no cells (of `single`:
 * all). */
struct plan {
    uint32_t row_size, view_count;
    struct view *views;
    size_t count;
    struct {
        const struct krait_trace_field *field;
        enum krait_trace_kind kind;
    } leaf[];
};

struct part {
    uint32_t stream, first, count;
};

struct worker;

struct work {
    const struct krait_trace_reader *reader;
    void (*read)(struct worker *worker, struct krait_trace_cursor *cursor);
    bool count_only;
    struct part *parts;
    size_t part_count;
    atomic_size_t next;
};

struct worker {
    struct work *work;
    struct plan **plans; /* by class; made when the first event is seen */
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

static void walk(struct sums *sums, const struct krait_trace_value *value)
{
    struct krait_trace_value child;
    uint64_t number = 0;
    int64_t negative = 0;
    double real = 0;
    const char *text;
    size_t size = 0;
    switch (krait_trace_value_kind(value)) {
    case KRAIT_TRACE_UNSIGNED:
        krait_trace_value_unsigned(value, &number);
        sums->numbers += number;
        return;
    case KRAIT_TRACE_SIGNED:
        krait_trace_value_signed(value, &negative);
        sums->numbers += (uint64_t)negative;
        return;
    case KRAIT_TRACE_DOUBLE:
        krait_trace_value_double(value, &real);
        add_double(sums, real);
        return;
    case KRAIT_TRACE_TEXT:
        krait_trace_value_text(value, &text, &size);
        sums->text += size;
        return;
    default:
        krait_trace_value_children(value, &child);
        while (krait_trace_value_next(value, &child) > 0)
            walk(sums, &child);
    }
}

static void touch(struct sums *sums, const struct krait_trace_cursor *cursor,
                  const struct krait_trace_field *field, enum krait_trace_kind kind)
{
    struct krait_trace_value value;
    uint64_t number = 0;
    int64_t negative = 0;
    const char *text;
    size_t size = 0;
    if (kind == KRAIT_TRACE_UNSIGNED) {
        krait_trace_cursor_unsigned(cursor, field, &number);
        sums->numbers += number;
    } else if (kind == KRAIT_TRACE_SIGNED) {
        krait_trace_cursor_signed(cursor, field, &negative);
        sums->numbers += (uint64_t)negative;
    } else if (kind == KRAIT_TRACE_TEXT) {
        krait_trace_cursor_text(cursor, field, &text, &size);
        sums->text += size;
    } else if (krait_trace_cursor_value(cursor, field, &value) == 0) {
        walk(sums, &value);
    }
}

/* ---- plans ---- */

static struct plan *plan_add(struct plan *plan, const struct krait_trace_field *field)
{
    plan = realloc(plan, sizeof(*plan) + (plan->count + 1) * sizeof(*plan->leaf));
    if (!plan)
        die("memory", strerror(ENOMEM));
    plan->leaf[plan->count].field = field;
    plan->leaf[plan->count++].kind = krait_trace_field_kind(field);
    return plan;
}

static struct plan *plan_field(struct plan *plan, const struct krait_trace_cursor *cursor,
                               enum krait_trace_scope scope, const char *path)
{
    struct krait_read_error error;
    struct krait_trace_value value, member;
    const struct krait_trace_field *field;
    if (krait_trace_class_field(krait_trace_cursor_class(cursor), scope, path, &field, &error)) {
        if (*path)
            die(path, error.text);
        return plan; /* the class has no such scope */
    }
    if (krait_trace_field_kind(field) != KRAIT_TRACE_STRUCT)
        return plan_add(plan, field);
    if (krait_trace_cursor_value(cursor, field, &value))
        return plan;
    krait_trace_value_children(&value, &member);
    while (krait_trace_value_next(&value, &member) > 0) {
        char child[PATH_BYTES];
        snprintf(child, sizeof(child), "%s%s%s", path, *path ? "." : "", krait_trace_value_name(&member));
        plan = plan_field(plan, cursor, scope, child);
    }
    return plan;
}

/* Of the class of the cursor's event. */
static struct plan *plan_make(const struct krait_trace_cursor *cursor)
{
    struct plan *plan = allocate(1, sizeof(*plan));
    plan = plan_field(plan, cursor, KRAIT_TRACE_COMMON_CONTEXT, "");
    plan = plan_field(plan, cursor, KRAIT_TRACE_EVENT_CONTEXT, "");
    return plan_field(plan, cursor, KRAIT_TRACE_PAYLOAD, "");
}

/* What has cells is not read by handle. */
static void plan_keep_without_cells(struct plan *plan)
{
    size_t kept = 0;
    for (size_t i = 0; i < plan->count; i++)
        if (krait_trace_field_cell(plan->leaf[i].field) < 0)
            plan->leaf[kept++] = plan->leaf[i];
    plan->count = kept;
}

static void plan_views(struct plan *plan, const struct krait_trace_class *cls)
{
    int count = krait_trace_class_cell_count(cls), row_size = krait_trace_class_row_size(cls);
    struct krait_trace_cell cell;
    if (count < 0 || row_size < 0)
        die(krait_trace_class_name(cls), strerror(ENOMEM));
    plan->row_size = (uint32_t)row_size;
    plan->views = allocate((size_t)count, sizeof(*plan->views));
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (krait_trace_class_cell(cls, i, &cell) == 0 && cell.kind >= KRAIT_TRACE_TEXT)
            plan->views[plan->view_count++] = (struct view){ .cell = cell.cell,
                                                             .bits = cell.element_bits,
                                                             .flags = cell.flags,
                                                             .text = cell.kind == KRAIT_TRACE_TEXT };
    }
}

/* ---- batches ---- */

static uint64_t element(const uint8_t *at, const struct view *view)
{
    uint64_t word = 0;
    unsigned unused = 64 - view->bits;
    memcpy(&word, at, view->bits / 8);
    if (view->flags & KRAIT_TRACE_CELL_BIG_ENDIAN)
        word = __builtin_bswap64(word) >> unused;
    return view->flags & KRAIT_TRACE_CELL_SIGNED ? (uint64_t)((int64_t)(word << unused) >> unused) : word;
}

static void add_float(struct sums *sums, uint64_t word, unsigned bits)
{
    double value;
    float narrow;
    memcpy(&value, &word, sizeof(value));
    memcpy(&narrow, &word, sizeof(narrow));
    add_double(sums, bits == 32 ? (double)narrow : value);
}

static void add_elements(struct sums *sums, const struct view *view, const uint8_t *at, uint64_t count)
{
    size_t step = view->bits / 8;
    if (view->flags & KRAIT_TRACE_CELL_FLOAT) {
        for (uint64_t i = 0; i < count; i++)
            add_float(sums, element(at + i * step, view), view->bits);
        return;
    }
    uint64_t numbers = 0;
    for (uint64_t i = 0; i < count; i++)
        numbers += element(at + i * step, view);
    sums->numbers += numbers;
}

/* The row's cells have been added up, those of its views among them: these are no numbers. */
static inline void correct_views(struct sums *sums, const struct plan *plan, const uint64_t *row)
{
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const struct view *view = &plan->views[i];
        uint64_t address = row[view->cell], count = row[view->cell + 1];
        sums->numbers -= address + count;
        if (view->text)
            sums->text += count;
        else
            add_elements(sums, view, (const uint8_t *)(uintptr_t)address, count);
    }
}

static void select_event(struct krait_trace_cursor *cursor, const struct krait_trace_batch *batch, uint32_t i)
{
    int rc = krait_trace_cursor_select(cursor, batch, i);
    if (rc)
        die("selecting an event of a batch", strerror(-rc));
}

static __attribute__((noinline)) void touch_selected(struct worker *worker, struct krait_trace_cursor *cursor,
                                                     const struct krait_trace_batch *batch, uint32_t i,
                                                     const struct plan *plan)
{
    select_event(cursor, batch, i);
    for (size_t k = 0; k < plan->count; k++)
        touch(&worker->sums, cursor, plan->leaf[k].field, plan->leaf[k].kind);
}

static __attribute__((noinline)) struct plan *plan_of_batch(struct worker *worker,
                                                            struct krait_trace_cursor *cursor,
                                                            const struct krait_trace_batch *batch, uint32_t i)
{
    const struct krait_trace_class *cls =
        krait_trace_reader_class(worker->work->reader, batch->events[i].cls);
    select_event(cursor, batch, i);
    struct plan *plan = plan_make(cursor);
    plan_keep_without_cells(plan);
    plan_views(plan, cls);
    return worker->plans[batch->events[i].cls] = plan;
}

static uint64_t sum_cells(const uint64_t *cells, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += cells[i];
    return sum;
}

/* All cells side by side are added up at once where they lie so, else row by row; then what is no number is
 * taken out. */
static void take_batch(struct worker *worker, struct krait_trace_cursor *cursor,
                       const struct krait_trace_batch *batch)
{
    struct sums *sums = &worker->sums;
    sums->numbers += sum_cells(batch->cells, batch->cell_count);
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct krait_trace_event *event = &batch->events[i];
        const uint64_t *row = batch->cells + event->cells;
        const struct plan *plan = worker->plans[event->cls];
        if (__builtin_expect(!plan, 0))
            plan = plan_of_batch(worker, cursor, batch, i);
        if (!batch->cell_count)
            sums->numbers += sum_cells(row, plan->row_size);
        sums->times += (uint64_t)event->ns;
        sums->numbers -= row[KRAIT_TRACE_CELL_ORIGIN] + row[KRAIT_TRACE_CELL_ADDRESS];
        correct_views(sums, plan, row);
        if (__builtin_expect(plan->count != 0, 0))
            touch_selected(worker, cursor, batch, i, plan);
    }
}

static void count_batch(struct sums *sums, const struct krait_trace_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        sums->counts[batch->events[i].cls]++;
}

/* ---- reading ---- */

static void end_of(struct krait_trace_cursor *cursor, int step)
{
    struct krait_read_error error;
    krait_trace_cursor_error(cursor, &error);
    if (step < 0)
        die("reading", error.text);
    krait_trace_cursor_free(cursor);
}

static void read_batches(struct worker *worker, struct krait_trace_cursor *cursor)
{
    struct krait_trace_batch batch;
    int step;
    while ((step = krait_trace_cursor_next_batch(cursor, &batch)) > 0) {
        worker->sums.events += batch.count;
        if (worker->work->count_only)
            count_batch(&worker->sums, &batch);
        else
            take_batch(worker, cursor, &batch);
    }
    end_of(cursor, step);
}

static void take(struct worker *worker, const struct krait_trace_cursor *cursor)
{
    uint32_t cls = krait_trace_class_index(krait_trace_cursor_class(cursor));
    if (!worker->plans[cls])
        worker->plans[cls] = plan_make(cursor);
    const struct plan *plan = worker->plans[cls];
    worker->sums.events++;
    worker->sums.times += (uint64_t)krait_trace_cursor_ns(cursor);
    for (size_t i = 0; i < plan->count; i++)
        touch(&worker->sums, cursor, plan->leaf[i].field, plan->leaf[i].kind);
}

static void read_single(struct worker *worker, struct krait_trace_cursor *cursor)
{
    int step;
    while ((step = krait_trace_cursor_next(cursor)) > 0)
        if (step == KRAIT_TRACE_EVENT)
            take(worker, cursor);
    end_of(cursor, step);
}

static void *read_parts(void *argument)
{
    struct worker *worker = argument;
    struct work *work = worker->work;
    struct krait_read_error error;
    for (size_t i; (i = work->next++) < work->part_count;) {
        struct krait_trace_cursor *cursor;
        const struct part *part = &work->parts[i];
        if (krait_trace_cursor_new_packets(&cursor, work->reader, part->stream, part->first, part->count,
                                           &error))
            die("packets", error.text);
        work->read(worker, cursor);
    }
    return NULL;
}

/* One thread takes each stream as a whole; several take some packets at a time. */
static void cut(struct work *work, unsigned threads)
{
    uint32_t streams = krait_trace_reader_stream_count(work->reader);
    size_t most = 0;
    for (uint32_t s = 0; s < streams; s++)
        most += krait_trace_stream_packet_count(work->reader, s) / PART_PACKETS + 1;
    work->parts = allocate(most, sizeof(*work->parts));
    for (uint32_t s = 0; s < streams; s++) {
        uint32_t packets = krait_trace_stream_packet_count(work->reader, s);
        uint32_t step = threads > 1 ? PART_PACKETS : packets;
        for (uint32_t first = 0; first < packets; first += step)
            work->parts[work->part_count++] =
                (struct part){ s, first, packets - first < step ? packets - first : step };
    }
}

static void run_threads(struct worker *workers, unsigned threads)
{
    cut(workers->work, threads);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, read_parts, &workers[i]))
            die("threads", strerror(EAGAIN));
    read_parts(&workers[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
}

static void run_ordered(struct worker *worker)
{
    struct krait_read_error error;
    struct krait_trace_cursor *cursor;
    if (krait_trace_cursor_new_ordered(&cursor, worker->work->reader, &error))
        die("ordering", error.text);
    worker->work->read(worker, cursor);
}

/* ---- results ---- */

/* Memory of the process that is no file's: Linux' RssAnon, which only grows while this program reads. */
static unsigned long anonymous_kib(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib;
}

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
    printf("{\"events\": %" PRIu64 ", \"anon_kib\": %lu, ", all.events, anonymous_kib());
    if (workers->work->count_only)
        printf("\"classes\": %u}\n", seen);
    else
        printf("\"numbers\": %" PRIu64 ", \"text\": %" PRIu64 ", \"times\": %" PRIu64 "}\n", all.numbers,
               all.text, all.times);
}

int main(int argc, char **argv)
{
    struct krait_trace_reader *reader;
    struct krait_read_error error;
    unsigned threads = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    bool ordered = argc == 4 && strcmp(argv[1], "time") == 0;
    if (!threads || threads > THREADS || (ordered && threads > 1))
        die("usage", "read_trace stream|time|count|single THREADS TRACE");
    if (krait_trace_reader_open(&reader, (const char *const *)&argv[3], 1, &error))
        die(argv[3], error.text);
    uint32_t classes = krait_trace_reader_class_count(reader);
    struct work work = { .reader = reader,
                         .read = strcmp(argv[1], "single") == 0 ? read_single : read_batches,
                         .count_only = strcmp(argv[1], "count") == 0 };
    struct worker *workers = allocate(threads, sizeof(*workers));
    for (unsigned i = 0; i < threads; i++) {
        workers[i].work = &work;
        workers[i].plans = allocate(classes, sizeof(*workers[i].plans));
        workers[i].sums.counts = allocate(classes, sizeof(*workers[i].sums.counts));
    }
    if (ordered)
        run_ordered(workers);
    else
        run_threads(workers, threads);
    print_sums(workers, threads, classes);
    return 0; /* the process ends: it needs not free what it has */
}
