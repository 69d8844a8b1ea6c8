/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

#include "base/array.h"

#include <string.h>

/* Cells of a stream's batch: what fits a processor's first cache and stays in it. */
enum { BATCH_CELLS = 4 * 1024 };

struct krait_batches {
    struct krait_row_order *order; /* NULL: of one stream, by `source` into `chunk` */
    struct krait_row_source source;
    struct krait_row_chunk chunk;
    struct krait_reader_lost *lost;
    uint32_t lost_count, lost_cap;
    struct krait_reader_batch last;
    struct krait_ctf_cursor at; /* of krait_reader_cursor_select */
};

_Static_assert(sizeof(struct krait_row) == sizeof(struct krait_reader_event) &&
                   offsetof(struct krait_row, cls) == offsetof(struct krait_reader_event, cls) &&
                   offsetof(struct krait_row, cells) == offsetof(struct krait_reader_event, cells),
               "the public event is a row");
_Static_assert((int)KRAIT_ROW_BEYOND == (int)KRAIT_READER_CELLS_BEYOND, "it is promised");
_Static_assert((int)KRAIT_ROW_CYCLES == (int)KRAIT_READER_CELL_CYCLES, "it is promised");

/* -- what has cells -- */

static const struct krait_row_set *rows_of(struct krait_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    if (!reader->rows) /* NULL when memory is out */
        krait_row_set_new(&reader->rows, reader->ctf,
                          reader->wants_cycles ? KRAIT_EMIT_ROWS_CYCLES : KRAIT_EMIT_ROWS,
                          reader->wants_some ? &reader->wanted : NULL);
    const struct krait_row_set *rows = reader->rows;
    pthread_mutex_unlock(&reader->lock);
    return rows;
}

/* A struct is all that is in it. Returns 0 or -ENOMEM. */
static int want(struct krait_map *wanted, const struct krait_fc *fc)
{
    int rc = krait_map_put(wanted, (uintptr_t)fc, true);
    for (uint32_t i = 0; fc->kind == KRAIT_FC_STRUCT && i < fc->count && !rc; i++)
        rc = want(wanted, fc->members[i].fc);
    return rc;
}

static int tell_late(struct krait_err *err)
{
    return krait_err_set(
        err, -EBUSY, "what batches have is said before the first batch, and before any question about cells");
}

static int set_wanted(struct krait_reader *reader, struct krait_map *wanted, struct krait_err *err)
{
    pthread_mutex_lock(&reader->lock);
    bool late = reader->rows;
    if (!late) {
        krait_map_done(&reader->wanted);
        reader->wanted = *wanted;
        reader->wants_some = true;
        *wanted = (struct krait_map){ 0 };
    }
    pthread_mutex_unlock(&reader->lock);
    return late ? tell_late(err) : 0;
}

int krait_reader_want_fields(struct krait_reader *reader, const struct krait_reader_field *const *fields,
                             size_t count, struct krait_reader_error *error)
{
    struct krait_map wanted = { 0 };
    struct krait_err err;
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = want(&wanted, krait_locator_node(fields[i]->locator)->fc);
    rc = rc ? krait_err_set(&err, rc, "out of memory") : set_wanted(reader, &wanted, &err);
    krait_map_done(&wanted);
    return rc ? krait_tell(error, &err) : 0;
}

int krait_reader_want_cycles(struct krait_reader *reader, struct krait_reader_error *error)
{
    struct krait_err err;
    pthread_mutex_lock(&reader->lock);
    bool late = reader->rows;
    reader->wants_cycles = reader->wants_cycles || !late;
    pthread_mutex_unlock(&reader->lock);
    if (!late)
        return 0;
    tell_late(&err);
    return krait_tell(error, &err);
}

static const struct krait_row_class *row_of(const struct krait_reader_class *cls)
{
    const struct krait_row_set *rows = rows_of(cls->reader);
    return rows ? &rows->classes[cls->index] : NULL;
}

int krait_reader_class_row_size(const struct krait_reader_class *cls)
{
    const struct krait_row_class *row = row_of(cls);
    return row ? row->cells : -ENOMEM;
}

int krait_reader_class_cell_count(const struct krait_reader_class *cls)
{
    const struct krait_row_class *row = row_of(cls);
    return row ? (int)row->field_count : -ENOMEM;
}

static uint32_t element_flags(const struct krait_fc *elem)
{
    if (elem->kind == KRAIT_FC_FLOAT)
        return KRAIT_READER_CELL_FLOAT |
               (elem->byte_order == KRAIT_BO_BE ? KRAIT_READER_CELL_BIG_ENDIAN : 0u);
    return (elem->is_signed ? KRAIT_READER_CELL_SIGNED : 0u) |
           (elem->byte_order == KRAIT_BO_BE ? KRAIT_READER_CELL_BIG_ENDIAN : 0u);
}

int krait_reader_class_cell(const struct krait_reader_class *cls, uint32_t i, struct krait_reader_cell *cell)
{
    static const enum krait_reader_scope scopes[] = { [KRAIT_FIELD_PAYLOAD] = KRAIT_READER_PAYLOAD,
                                                      [KRAIT_FIELD_EVENT_CONTEXT] =
                                                          KRAIT_READER_EVENT_CONTEXT,
                                                      [KRAIT_FIELD_COMMON_CONTEXT] =
                                                          KRAIT_READER_COMMON_CONTEXT };
    const struct krait_row_class *row = row_of(cls);
    if (!row)
        return -ENOMEM;
    if (i >= row->field_count)
        return -EINVAL;
    const struct krait_row_field *field = &row->fields[i];
    *cell = (struct krait_reader_cell){ .path = field->path,
                                        .scope = scopes[field->scope],
                                        .kind = krait_kind_of(field->fc),
                                        .cell = field->cell };
    if (cell->kind == KRAIT_READER_ARRAY) {
        cell->element_bits = field->fc->elem->bits;
        cell->flags = element_flags(field->fc->elem);
    }
    return 0;
}

int krait_reader_field_cell(const struct krait_reader_field *field)
{
    const struct krait_row_class *row = row_of(field->cls);
    const struct krait_fc *fc = krait_locator_node(field->locator)->fc;
    for (uint32_t i = 0; row && i < row->field_count; i++) {
        if (row->fields[i].fc == fc)
            return row->fields[i].cell;
    }
    return row ? -ENODATA : -ENOMEM;
}

/* -- beginning -- */

static int begin_stream(struct krait_batches *b, struct krait_reader_cursor *c,
                        const struct krait_row_set *rows)
{
    int rc = krait_row_source_init(&b->source, rows, &c->part);
    b->source.cursor.next_packet = c->own.next_packet;
    b->chunk.cell_limit = BATCH_CELLS;
    b->chunk.cells = calloc(BATCH_CELLS + rows->most_cells + KRAIT_ROW_BEYOND, sizeof(uint64_t));
    b->chunk.rows = malloc((BATCH_CELLS / KRAIT_ROW_HEAD + 1) * sizeof(struct krait_row));
    return b->chunk.cells && b->chunk.rows ? rc : -ENOMEM;
}

static int begin_batches(struct krait_reader_cursor *c)
{
    const struct krait_row_set *rows = rows_of(c->reader);
    struct krait_batches *b = rows ? calloc(1, sizeof(*b)) : NULL;
    if (!b)
        return krait_err_set(&c->err, -ENOMEM, "out of memory");
    int rc = c->merge     ? krait_row_order_new(&b->order, rows, INT64_MIN, INT64_MAX)
             : c->between ? krait_row_order_new(&b->order, rows, c->begin_ns, c->end_ns)
                          : begin_stream(b, c, rows);
    if (!rc)
        rc = krait_ctf_cursor_init(&b->at, c->reader->ctf, NULL);
    if (rc) {
        krait_batches_free(b);
        return krait_err_set(&c->err, rc, "out of memory");
    }
    c->batches = b;
    return 0;
}

void krait_batches_free(struct krait_batches *b)
{
    if (!b)
        return;
    krait_row_order_free(b->order);
    krait_row_source_done(&b->source);
    krait_ctf_cursor_done(&b->at);
    free(b->chunk.cells);
    free(b->chunk.rows);
    free(b->lost);
    free(b);
}

/* -- losses -- */

static int add_lost(struct krait_batches *b, const struct krait_ctf_loss *loss)
{
    if (!KRAIT_GROW(b->lost, b->lost_cap, b->lost_count + 1))
        return -ENOMEM;
    krait_lost_of(&b->lost[b->lost_count++], loss);
    return 0;
}

/* Of what lies between two times, each packet's losses are told by whom it begins. */
static bool tells_losses(const struct krait_reader_cursor *c, const struct krait_ctf_stream *stream,
                         uint32_t packet)
{
    const struct krait_ctf_clock *clock = stream->cls->clock;
    int64_t ns = clock ? krait_ctf_ns(clock, stream->packets[packet].begin) : 0;
    return !c->between || (ns >= c->begin_ns && ns < c->end_ns);
}

/* Those of the packets that a stream has come to; at its end of all, behind what is damaged too: as stepping tells
 * them. */
static int add_losses(struct krait_reader_cursor *c, const struct krait_row_source *source)
{
    const struct krait_ctf_stream *stream = source->cursor.stream;
    uint32_t *told = &c->told[stream->index], until = source->cursor.next_packet;
    int rc = 0;
    if (source->ended)
        until = stream->packet_count;
    for (; *told < until && !rc; ++*told) {
        struct krait_ctf_loss losses[2];
        unsigned n = tells_losses(c, stream, *told) ? krait_ctf_losses(stream, *told, losses) : 0;
        for (unsigned i = 0; i < n && !rc; i++)
            rc = add_lost(c->batches, &losses[i]);
    }
    return rc;
}

static int add_all_losses(struct krait_reader_cursor *c)
{
    struct krait_batches *b = c->batches;
    int rc = 0;
    b->lost_count = 0;
    if (!b->order)
        return add_losses(c, &b->source);
    for (uint32_t i = 0; i < c->reader->ctf->stream_count && !rc; i++)
        rc = add_losses(c, krait_row_order_source(b->order, i));
    return rc;
}

/* -- batches -- */

static void next_ordered(struct krait_batches *b, struct krait_reader_batch *batch)
{
    batch->events = (const struct krait_reader_event *)krait_row_order_next(b->order, &batch->count);
    batch->cells = krait_row_order_cells(b->order);
}

static void next_of_stream(struct krait_batches *b, struct krait_reader_batch *batch)
{
    b->chunk.count = 0;
    b->chunk.cell_at = 0;
    krait_row_fill(&b->source, &b->chunk);
    batch->events = (const struct krait_reader_event *)b->chunk.rows;
    batch->cells = b->chunk.cells;
    batch->count = b->chunk.count;
    batch->cell_count = b->chunk.cell_at;
}

static int end_batches(struct krait_reader_cursor *c)
{
    c->err = c->batches->order ? *krait_row_order_damage(c->batches->order) : c->batches->source.cursor.err;
    return c->err.code;
}

int krait_reader_cursor_next_batch(struct krait_reader_cursor *c, struct krait_reader_batch *batch)
{
    if (c->stepped)
        return -EINVAL;
    if (!c->batches && begin_batches(c))
        return c->err.code;
    struct krait_batches *b = c->batches;
    struct krait_reader_batch next = { 0 };
    c->at = NULL;
    if (b->order)
        next_ordered(b, &next);
    else
        next_of_stream(b, &next);
    if (add_all_losses(c))
        return krait_err_set(&c->err, -ENOMEM, "out of memory");
    next.lost = b->lost;
    next.lost_count = b->lost_count;
    *batch = b->last = next;
    return next.count || next.lost_count ? KRAIT_READER_EVENT : end_batches(c);
}

/* -- sharing -- */

static uint64_t bytes_before(const struct krait_ctf_reader *ctf, int64_t ns)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ctf->stream_count; i++) {
        const struct krait_ctf_stream *stream = ctf->streams[i];
        for (uint32_t p = 0; p < stream->packet_count && stream->cls->clock; p++)
            bytes +=
                krait_ctf_ns(stream->cls->clock, stream->packets[p].begin) < ns ? stream->packets[p].size : 0;
    }
    return bytes;
}

int64_t krait_reader_split(const struct krait_reader *reader, uint32_t part, uint32_t parts)
{
    if (!part || part >= parts)
        return part ? INT64_MAX : INT64_MIN;
    uint64_t wanted = (uint64_t)((double)bytes_before(reader->ctf, INT64_MAX) * part / parts);
    const uint64_t least = (uint64_t)INT64_MIN; /* times are counted from it, to have no sign */
    return (int64_t)(least + KRAIT_PARTITION_POINT(
                                 ns, UINT64_MAX, bytes_before(reader->ctf, (int64_t)(least + ns)) < wanted));
}

/* -- one event of a batch -- */

int krait_reader_cursor_select(struct krait_reader_cursor *c, const struct krait_reader_batch *batch,
                               uint32_t index)
{
    struct krait_batches *b = c->batches;
    if (!b || batch->events != b->last.events || index >= b->last.count)
        return -EINVAL;
    const struct krait_reader_event *event = &batch->events[index];
    int rc = krait_row_seek(&b->at, (const struct krait_row *)event, batch->cells + event->cells);
    if (rc) {
        c->err = b->at.err;
        return rc;
    }
    if (c->reader->wants_cycles)
        b->at.ticks = batch->cells[event->cells + KRAIT_READER_CELL_CYCLES];
    c->at = &b->at;
    c->stream = b->at.stream;
    c->first_class = event->cls - b->at.event->index;
    c->cls = b->at.cls;
    return 0;
}
