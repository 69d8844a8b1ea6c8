/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/row_order.h"

#include "base/array.h"
#include "ctf/read/range.h"

#include <string.h>

/* Cells of all streams together, as far as each half of a stream has enough to be worth its turn: what fits a
 * processor's second cache. */
enum { ALL_CELLS = 32 * 1024, FEWEST_CELLS = 128 };
_Static_assert(ALL_CELLS / KRAIT_ROW_HEAD + 1 < 1 << 16, "rows of a chunk (row_source.h)");

struct lane {
    struct krait_row_source source;
    struct krait_row_chunk chunk; /* rows of both halves, one after the other */
    uint32_t from;                /* rows before were handed out */
    uint32_t newer;               /* rows from here on have their cells in the half that was decoded last */
    uint32_t half;                /* that one */
    uint32_t end_packet;          /* events of packets before do not end the lane */
    bool begun;                   /* the first event of the time that was asked for was met */
};

/* Rows by time: those of a lane, or what was merged. */
struct run {
    const struct krait_row *rows;
    uint32_t count;
};

struct krait_row_order {
    struct lane *lanes;
    uint32_t count;
    uint64_t *cells;
    size_t half_cells;      /* from the begin of one half to the next's */
    size_t half_limit;      /* of cells in which rows begin */
    struct krait_row *rows; /* of the lanes */
    /* Of each lane, where all are looked through each time: eight of them lie in a line of the cache. */
    int64_t *begins;   /* time of the next row, INT64_MAX if there is none */
    int64_t *ends;     /* time of the last, INT64_MAX where the stream does not go on behind it */
    uint32_t *drained; /* lanes of which a half was handed out */
    uint32_t drained_count;
    struct krait_row *merged[2]; /* take turns */
    struct run *runs;            /* that are to be merged, by their streams' order */
    int64_t begin_ns, end_ns;
    struct krait_err damage;
};

/* -- memory -- */

static size_t lane_rows(const struct krait_row_order *o)
{
    return 2 * (o->half_limit / KRAIT_ROW_HEAD + 1);
}

static int allocate(struct krait_row_order *o, uint32_t count, uint32_t most_cells)
{
    size_t n = KRAIT_MAX(count, 1u);
    o->half_limit = KRAIT_MAX(ALL_CELLS / 2 / n, (size_t)FEWEST_CELLS);
    o->half_cells = o->half_limit + most_cells;
    if (2 * n * o->half_cells > UINT32_MAX)
        return -ENOMEM;
    size_t rows = n * lane_rows(o);
    o->lanes = calloc(n, sizeof(*o->lanes));
    o->cells = calloc(2 * n * o->half_cells + KRAIT_ROW_BEYOND, sizeof(*o->cells));
    o->rows = malloc(rows * sizeof(*o->rows));
    o->begins = malloc(n * sizeof(*o->begins));
    o->ends = malloc(n * sizeof(*o->ends));
    o->drained = malloc(n * sizeof(*o->drained));
    o->merged[0] = malloc(rows * sizeof(*o->rows));
    o->merged[1] = malloc(rows * sizeof(*o->rows));
    o->runs = malloc(n * sizeof(*o->runs));
    bool all = o->lanes && o->cells && o->rows && o->begins && o->ends && o->drained && o->merged[0] &&
               o->merged[1] && o->runs;
    return all ? 0 : -ENOMEM;
}

int krait_row_order_new(struct krait_row_order **out, const struct krait_row_set *set, int64_t begin_ns,
                        int64_t end_ns)
{
    const struct krait_ctf_reader *reader = set->reader;
    struct krait_row_order *o = calloc(1, sizeof(*o));
    int rc = o ? allocate(o, reader->stream_count, set->most_cells) : -ENOMEM;
    for (uint32_t i = 0; i < reader->stream_count && !rc; i++, o->count++) {
        struct lane *lane = &o->lanes[i];
        rc = krait_row_source_init(&lane->source, set, reader->streams[i]);
        lane->source.cursor.next_packet = krait_ctf_first_packet(reader->streams[i], begin_ns);
        lane->source.ended = begin_ns >= end_ns;
        lane->end_packet = krait_ctf_first_packet(reader->streams[i], end_ns);
        lane->chunk.cells = o->cells;
        lane->chunk.rows = o->rows + i * lane_rows(o);
        o->drained[o->drained_count++] = i;
    }
    if (rc) {
        krait_row_order_free(o);
        return rc;
    }
    o->damage = reader->damage;
    o->begin_ns = begin_ns;
    o->end_ns = end_ns;
    *out = o;
    return 0;
}

void krait_row_order_free(struct krait_row_order *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->count; i++)
        krait_row_source_done(&o->lanes[i].source);
    free(o->lanes);
    free(o->cells);
    free(o->rows);
    free(o->begins);
    free(o->ends);
    free(o->drained);
    free(o->merged[0]);
    free(o->merged[1]);
    free(o->runs);
    free(o);
}

/* -- lanes -- */

/* The first row from `from` on that is at `ns` or later. */
static uint32_t first_at(const struct krait_row_chunk *chunk, uint32_t from, int64_t ns)
{
    return from + (uint32_t)KRAIT_PARTITION_POINT(i, chunk->count - from, chunk->rows[from + i].ns < ns);
}

/* Damage in a packet that begins behind the time that is asked for is another part's. */
static bool is_behind(const struct krait_row_order *o, const struct krait_ctf_cursor *c)
{
    uint32_t packet = c->packet ? (uint32_t)(c->packet - c->stream->packets) : 0;
    return o->end_ns != INT64_MAX && c->packet &&
           krait_ctf_packet_begins_after(c->stream, packet, o->end_ns - 1);
}

/* Into the half whose rows were all handed out, behind those of the other. Nothing is decoded before the
 * other is handed out too where the stream's time goes backward or pages are let go of (row_source.h). */
static void decode_half(struct krait_row_order *o, struct lane *lane)
{
    struct krait_row_chunk *chunk = &lane->chunk;
    chunk->count -= lane->from;
    memmove(chunk->rows, chunk->rows + lane->from, chunk->count * sizeof(*chunk->rows));
    lane->from = 0;
    lane->newer = chunk->count;
    lane->half ^= 1;
    chunk->cell_at = ((size_t)(lane - o->lanes) * 2 + lane->half) * o->half_cells;
    chunk->cell_limit = chunk->cell_at + o->half_limit;
    krait_row_fill(&lane->source, chunk);
    if (lane->source.cursor.err.code && !o->damage.code && !is_behind(o, &lane->source.cursor))
        o->damage = lane->source.cursor.err;
}

/* The first row that is of the time behind: where a lane that begins at end_ns begins. */
static uint32_t first_behind(const struct krait_row_order *o, const struct lane *lane)
{
    const struct krait_row_chunk *chunk = &lane->chunk;
    uint32_t row = first_at(chunk, lane->from, o->end_ns);
    while (row < chunk->count && o->cells[chunk->rows[row].cells + KRAIT_ROW_ORIGIN] >> 32 < lane->end_packet)
        row++;
    return row;
}

/* Decodes until there are rows of the time that was asked for. Times may go backward: what is behind the
 * first row of that time belongs to it, so that no event is missed or met twice between two times. */
static void decode(struct krait_row_order *o, struct lane *lane)
{
    struct krait_row_chunk *chunk = &lane->chunk;
    do {
        decode_half(o, lane);
        if (!lane->begun)
            lane->from = first_at(chunk, 0, o->begin_ns);
    } while (lane->from == chunk->count && !lane->source.ended);
    lane->begun = true;
    uint32_t end = o->end_ns == INT64_MAX ? chunk->count : first_behind(o, lane);
    if (end < chunk->count) {
        chunk->count = end;
        lane->source.ended = true;
    }
}

static bool is_drained(const struct lane *lane)
{
    return lane->from >= lane->newer && !lane->source.ended;
}

static void note_times(struct krait_row_order *o, uint32_t i)
{
    const struct krait_row_chunk *chunk = &o->lanes[i].chunk;
    o->begins[i] = o->lanes[i].from < chunk->count ? chunk->rows[o->lanes[i].from].ns : INT64_MAX;
    o->ends[i] = o->lanes[i].source.ended ? INT64_MAX : chunk->rows[chunk->count - 1].ns;
}

/* From here on each lane whose stream goes on has rows, and a half that was not begun unless decode_half had
 * to leave it out. */
static void refill(struct krait_row_order *o)
{
    for (uint32_t i = 0; i < o->drained_count; i++) {
        struct lane *lane = &o->lanes[o->drained[i]];
        while (is_drained(lane))
            decode(o, lane);
        note_times(o, o->drained[i]);
    }
    o->drained_count = 0;
}

/* The stream whose rows end first, NULL where none goes on. */
static const struct lane *first_to_end(const struct krait_row_order *o)
{
    int64_t ns = INT64_MAX;
    uint32_t first = 0;
    for (uint32_t i = 0; i < o->count; i++)
        ns = KRAIT_MIN(ns, o->ends[i]);
    while (first < o->count && (o->ends[first] > ns || o->lanes[first].source.ended))
        first++;
    return first < o->count ? &o->lanes[first] : NULL;
}

/* Where the lane's rows end that come before everything that `first` still has to decode: those up to its
 * last row's time, and without that time itself where first's events go before the lane's. */
static uint32_t cut(const struct lane *lane, const struct lane *first, int64_t ns)
{
    if (!first || lane == first)
        return lane->chunk.count;
    if (lane > first)
        return first_at(&lane->chunk, lane->from, ns);
    return ns < INT64_MAX ? first_at(&lane->chunk, lane->from, ns + 1) : lane->chunk.count;
}

/* The lane's rows up to `to`: a run, behind those that are there. */
static void hand_out(struct krait_row_order *o, uint32_t i, uint32_t to, struct run *run)
{
    struct lane *lane = &o->lanes[i];
    *run = (struct run){ lane->chunk.rows + lane->from, to - lane->from };
    lane->from = to;
    note_times(o, i);
    if (is_drained(lane))
        o->drained[o->drained_count++] = i;
}

/* -- merging -- */

/* Merges two sorted runs from both ends at once: two chains of comparisons that do not wait for each other.
 * In each turn neither end can come to the end of a run: there are as many steps as the shorter has rows. */
static void merge_pair(const struct krait_row *a, size_t na, const struct krait_row *b, size_t nb,
                       struct krait_row *out)
{
    const struct krait_row *a_end = a + na, *b_end = b + nb;
    struct krait_row *out_end = out + na + nb;
    while (a < a_end && b < b_end) {
        size_t steps = (size_t)KRAIT_MIN(a_end - a, b_end - b);
        for (; steps > 0; steps--) {
            bool take_b = b->ns < a->ns, end_a = b_end[-1].ns < a_end[-1].ns;
            *out++ = take_b ? *b : *a;
            b += take_b;
            a += !take_b;
            *--out_end = end_a ? a_end[-1] : b_end[-1];
            a_end -= end_a;
            b_end -= !end_a;
        }
    }
    memcpy(out, a, (size_t)(a_end - a) * sizeof(*a));
    memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof(*b));
}

/* Merges neighbours until one run is left. What is merged goes to one room and the other in turn: nothing of
 * a round's runs lies where that round writes. */
static const struct krait_row *merge_runs(struct krait_row_order *o, uint32_t count)
{
    for (unsigned round = 0; count > 1; round++) {
        struct krait_row *to = o->merged[round % 2];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < count; i += 2) {
            struct run a = o->runs[i], b = i + 1 < count ? o->runs[i + 1] : (struct run){ to, 0 };
            merge_pair(a.rows, a.count, b.rows, b.count, to);
            o->runs[kept++] = (struct run){ to, a.count + b.count };
            to += a.count + b.count;
        }
        count = kept;
    }
    return o->runs[0].rows;
}

const struct krait_row *krait_row_order_next(struct krait_row_order *o, uint32_t *count)
{
    refill(o);
    const struct lane *first = first_to_end(o);
    int64_t ns = first ? o->ends[first - o->lanes] : INT64_MAX;
    uint32_t runs = 0;
    *count = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->begins[i] > ns)
            continue;
        uint32_t to = cut(&o->lanes[i], first, ns);
        if (to == o->lanes[i].from)
            continue;
        hand_out(o, i, to, &o->runs[runs]);
        *count += o->runs[runs++].count;
    }
    return runs ? merge_runs(o, runs) : NULL;
}

const uint64_t *krait_row_order_cells(const struct krait_row_order *o)
{
    return o->cells;
}

const struct krait_err *krait_row_order_damage(const struct krait_row_order *o)
{
    return &o->damage;
}

const struct krait_row_source *krait_row_order_source(const struct krait_row_order *o, uint32_t stream)
{
    return &o->lanes[stream].source;
}
