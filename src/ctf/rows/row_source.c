/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/row_source.h"

int krait_row_source_init(struct krait_row_source *source, const struct krait_row_set *set,
                          const struct krait_ctf_stream *stream)
{
    *source = (struct krait_row_source){ .set = set };
    return krait_ctf_cursor_init(&source->cursor, set->reader, stream);
}

void krait_row_source_done(struct krait_row_source *source)
{
    krait_ctf_cursor_done(&source->cursor);
}

/* -- by machine code -- */

static uint64_t origin_of(const struct krait_ctf_cursor *c)
{
    uint64_t packet = (uint64_t)(c->packet - c->stream->packets);
    return c->stream->index | packet << 32;
}

/* Ticks were written in the place of times. */
static void convert_times(struct krait_row *row, const struct krait_row *end,
                          const struct krait_row_stream *stream)
{
    const struct krait_ctf_clock *clock = stream->cls->clock;
    if (stream->in_ns)
        return;
    for (; row < end; row++)
        row->ns = clock ? krait_ctf_ns(clock, (uint64_t)row->ns) : 0;
}

static struct krait_emit_run begin_run(const struct krait_row_source *source)
{
    const struct krait_decoder *d = &source->cursor.d;
    return (struct krait_emit_run){ .at = d->bytes + d->at / 8,
                                    .end = d->bytes + source->cursor.pause / 8,
                                    .packet = d->bytes,
                                    .clock = d->clock,
                                    .base = source->stream->base,
                                    .origin = origin_of(&source->cursor) };
}

static void end_run(struct krait_row_source *source, const struct krait_emit_run *run)
{
    struct krait_decoder *d = &source->cursor.d;
    d->at = (uint64_t)(run->at - d->bytes) * 8;
    d->clock = run->clock;
    d->bits_be = KRAIT_BITS_ANY; /* fields whose order counts are not read by code */
}

/* From where the cursor is, which is not moved; the rows go behind those of the chunk. */
static struct krait_emit_run run_to(const struct krait_row_source *source,
                                    const struct krait_row_chunk *chunk, uint64_t cell_limit)
{
    struct krait_emit_run run = begin_run(source);
    run.cells = chunk->cells;
    run.cell_at = chunk->cell_at;
    run.cell_limit = cell_limit;
    run.rows = chunk->rows + chunk->count;
    krait_engine_run(source->stream->engine, &run);
    convert_times(chunk->rows + chunk->count, run.rows, source->stream);
    return run;
}

/* The first of the new rows before `end` that is earlier than the row before it; `end`: none is. The code
 * sees ticks, which go forward within a run, and not all the way round: as ns, whose sign may change, they go
 * backward once at most, and the last row is then before the first. Of other frequencies each is looked at. A
 * field may have set the clock back before the run. */
static const struct krait_row *first_backward(const struct krait_row_chunk *chunk,
                                              const struct krait_row *end, bool in_ns)
{
    const struct krait_row *row = chunk->rows + chunk->count;
    if (row == end || (in_ns && end[-1].ns >= row->ns && (row == chunk->rows || row->ns >= row[-1].ns)))
        return end;
    for (row += row == chunk->rows; row < end && row->ns >= row[-1].ns;)
        row++;
    return row;
}

static void run_code(struct krait_row_source *source, struct krait_row_chunk *chunk)
{
    struct krait_emit_run run = run_to(source, chunk, chunk->cell_limit);
    const struct krait_row *backward = first_backward(chunk, run.rows, source->stream->in_ns);
    if (KRAIT_UNLIKELY(backward < run.rows)) {
        if (backward == chunk->rows + chunk->count)
            return; /* the careful reader stops at it */
        run = run_to(source, chunk, backward->cells);
    }
    end_run(source, &run);
    chunk->cell_at = run.cell_at;
    chunk->count = (uint32_t)(run.rows - chunk->rows);
}

/* Within a packet, between two events, both at whole bytes. The code goes up to where the careful reader lets
 * go of pages: what has not its end before is its. */
static bool may_run_code(const struct krait_row_source *source)
{
    const struct krait_ctf_cursor *c = &source->cursor;
    return source->stream && source->stream->engine && c->d.at < c->pause && (c->d.at | c->pause) % 8 == 0 &&
           c->d.clock < source->stream->code_until;
}

/* -- with care -- */

/* The cursor's event is whole: its row. */
static void add_row(struct krait_row_source *source, struct krait_row_chunk *chunk)
{
    struct krait_ctf_cursor *c = &source->cursor;
    const struct krait_row_class *row = &source->stream->classes[c->event->index];
    uint64_t *cells = chunk->cells + chunk->cell_at;
    const uint8_t *bytes = c->d.bytes;
    cells[KRAIT_ROW_ORIGIN] = origin_of(c);
    cells[KRAIT_ROW_ADDRESS] = (uintptr_t)(bytes + c->event_at / 8) | c->event_at % 8
                                                                          << KRAIT_ROW_ADDRESS_BITS;
    if (source->set->mode == KRAIT_EMIT_ROWS_CYCLES)
        cells[KRAIT_ROW_CYCLES] = c->ticks;
    if (row->steps) /* such fields are aligned to bytes; what is before them may end within one */
        krait_row_walk(row, bytes + (c->fields_at + 7) / 8, bytes, bytes + c->d.end / 8, cells);
    else
        krait_row_locate(row, c, cells);
    chunk->rows[chunk->count++] =
        (struct krait_row){ .ns = c->ns, .cls = row->index, .cells = (uint32_t)chunk->cell_at };
    chunk->cell_at += row->cells;
}

static void end_source(struct krait_row_source *source)
{
    source->ended = true;
    source->held = false;
}

/* Goes to the next event, if not there already. */
static bool fetch(struct krait_row_source *source)
{
    struct krait_ctf_cursor *c = &source->cursor;
    if (!source->held && krait_ctf_next(c) <= 0) {
        end_source(source);
        return false;
    }
    source->held = true;
    if (!source->stream || source->stream->cls != c->cls)
        source->stream = krait_row_stream_of(source->set, c->cls);
    return true;
}

/* One event by the careful reader. False when it was not added. */
static bool add_with_care(struct krait_row_source *source, struct krait_row_chunk *chunk)
{
    struct krait_ctf_cursor *c = &source->cursor;
    if (!fetch(source) || (chunk->count && c->ns < chunk->rows[chunk->count - 1].ns))
        return false;
    if (krait_ctf_event_skip(c)) {
        end_source(source);
        return false;
    }
    source->held = false;
    add_row(source, chunk);
    return true;
}

/* The next step lets go of pages, which the chunk's rows may point into, within a packet. */
static bool pauses(const struct krait_row_source *source)
{
    const struct krait_ctf_cursor *c = &source->cursor;
    return !source->held && c->d.at >= c->pause && c->d.at < c->d.end;
}

void krait_row_fill(struct krait_row_source *source, struct krait_row_chunk *chunk)
{
    while (!source->ended && chunk->cell_at < chunk->cell_limit && !(chunk->count && pauses(source))) {
        if (!source->held && may_run_code(source))
            run_code(source, chunk);
        if (chunk->cell_at < chunk->cell_limit && !add_with_care(source, chunk))
            break;
    }
}

/* -- back to an event -- */

int krait_row_find(struct krait_ctf_cursor *cursor, int64_t ns, const uint64_t *cells)
{
    uint64_t address = cells[KRAIT_ROW_ADDRESS];
    uint32_t number = (uint32_t)(cells[KRAIT_ROW_ORIGIN] >> 32);
    const struct krait_ctf_stream *stream = cursor->reader->streams[(uint32_t)cells[KRAIT_ROW_ORIGIN]];
    const struct krait_ctf_packet *packet = &stream->packets[number];
    uintptr_t begin = (uintptr_t)(krait_ctf_file_of(stream, packet)->bytes + packet->offset);
    uint64_t byte = (address & (((uint64_t)1 << KRAIT_ROW_ADDRESS_BITS) - 1)) - begin;
    return krait_ctf_seek(cursor, stream, number, byte * 8 + (address >> KRAIT_ROW_ADDRESS_BITS), ns);
}

int krait_row_seek(struct krait_ctf_cursor *cursor, const struct krait_row *row, const uint64_t *cells)
{
    int rc = krait_row_find(cursor, row->ns, cells);
    return rc ? rc : krait_ctf_event_skip(cursor);
}

/* -- counting -- */

static void note_time(struct krait_row_tally *tally, const struct krait_ctf_clock *clock, int64_t ns)
{
    if (!clock)
        return;
    tally->begin_ns = tally->has_times ? KRAIT_MIN(tally->begin_ns, ns) : ns;
    tally->end_ns = tally->has_times ? KRAIT_MAX(tally->end_ns, ns) : ns;
    tally->has_times = true;
}

/* Behind an event that was noted, from its time on: the code stops before time goes backward, so that its
 * last event is its latest. */
static void count_by_code(struct krait_row_source *source, struct krait_row_tally *tally)
{
    const struct krait_ctf_clock *clock = source->stream->cls->clock;
    struct krait_emit_run run = begin_run(source);
    const uint8_t *from = run.at;
    run.cells = tally->scratch;
    run.counts = tally->counts + source->stream->classes->index;
    krait_engine_run(source->stream->engine, &run);
    end_run(source, &run);
    if (clock && run.at != from)
        note_time(tally, clock, krait_ctf_ns(clock, run.clock));
}

static bool is_in_range(const struct krait_row_tally *tally, const struct krait_ctf_cursor *c)
{
    return !tally->ranged || !c->cls->clock || (c->ns >= tally->from_ns && c->ns < tally->to_ns);
}

void krait_row_count(struct krait_row_source *source, struct krait_row_tally *tally)
{
    struct krait_ctf_cursor *c = &source->cursor;
    while (fetch(source) && krait_ctf_event_skip(c) == 0) {
        source->held = false;
        if (!is_in_range(tally, c))
            continue;
        tally->counts[source->stream->classes[c->event->index].index]++;
        note_time(tally, c->cls->clock, c->ns);
        if (!tally->ranged && may_run_code(source) && c->d.clock == c->ticks)
            count_by_code(source, tally);
    }
}
