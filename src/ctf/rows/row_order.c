/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/row_order.h"

#include "ctf/read/range.h"

#include <string.h>

/* Cells of all chunks together, as far as each has enough to be worth its turn: what fits a processor's
 * second cache. */
enum { ALL_CELLS = 16 * 1024, FEWEST_CELLS = 128 };
_Static_assert(ALL_CELLS / KRAIT_ROW_HEAD + 1 < 1 << 16, "rows of a chunk (row_source.h)");

struct lane {
    struct krait_row_source source;
    struct krait_row_chunk chunk;
    uint32_t from;       /* rows before were handed out */
    uint32_t end_packet; /* events of packets before do not end the lane */
    bool begun;          /* the first event of the time that was asked for was met */
};

/* Rows by time: a part of a chunk, or what was merged. */
struct run {
    const struct krait_row *rows;
    uint32_t count;
};

struct krait_row_order {
    struct lane *lanes;
    uint32_t count;
    uint64_t *cells;
    size_t chunk_cells;          /* from one chunk's begin to the next's */
    size_t chunk_limit;          /* of cells in which rows begin */
    struct krait_row *rows;      /* of the chunks */
    struct krait_row *merged[2]; /* take turns */
    struct run *runs;            /* that are to be merged, by their streams' order */
    int64_t begin_ns, end_ns;
    struct krait_err damage;
};

/* -- memory -- */

static size_t rows_of(size_t cells)
{
    return cells / KRAIT_ROW_HEAD + 1;
}

static int allocate(struct krait_row_order *o, uint32_t count, uint32_t most_cells)
{
    size_t n = KRAIT_MAX(count, 1u);
    o->chunk_limit = KRAIT_MAX(ALL_CELLS / n, (size_t)FEWEST_CELLS);
    o->chunk_cells = o->chunk_limit + most_cells;
    if (n * o->chunk_cells > UINT32_MAX)
        return -ENOMEM;
    o->lanes = calloc(n, sizeof(*o->lanes));
    o->cells = calloc(n * o->chunk_cells + KRAIT_ROW_BEYOND, sizeof(*o->cells));
    o->rows = malloc(n * rows_of(o->chunk_limit) * sizeof(*o->rows));
    o->merged[0] = malloc(n * rows_of(o->chunk_limit) * sizeof(*o->rows));
    o->merged[1] = malloc(n * rows_of(o->chunk_limit) * sizeof(*o->rows));
    o->runs = malloc(n * sizeof(*o->runs));
    return o->lanes && o->cells && o->rows && o->merged[0] && o->merged[1] && o->runs ? 0 : -ENOMEM;
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
        lane->chunk.rows = o->rows + i * rows_of(o->chunk_limit);
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
    free(o->merged[0]);
    free(o->merged[1]);
    free(o->runs);
    free(o);
}

/* -- chunks -- */

/* The first row from `from` on that is at `ns` or later. */
static uint32_t first_at(const struct krait_row_chunk *chunk, uint32_t from, int64_t ns)
{
    uint32_t to = chunk->count;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (chunk->rows[mid].ns < ns)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void decode_chunk(struct krait_row_order *o, struct lane *lane)
{
    struct krait_row_chunk *chunk = &lane->chunk;
    size_t begin = (size_t)(lane - o->lanes) * o->chunk_cells;
    chunk->count = 0;
    chunk->cell_at = begin;
    chunk->cell_limit = begin + o->chunk_limit;
    krait_row_fill(&lane->source, chunk);
    if (lane->source.cursor.err.code && !o->damage.code)
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
static void refill(struct krait_row_order *o, struct lane *lane)
{
    struct krait_row_chunk *chunk = &lane->chunk;
    do {
        decode_chunk(o, lane);
        lane->from = lane->begun ? 0 : first_at(chunk, 0, o->begin_ns);
    } while (lane->from == chunk->count && !lane->source.ended);
    lane->begun = true;
    uint32_t end = o->end_ns == INT64_MAX ? chunk->count : first_behind(o, lane);
    if (end < chunk->count) {
        chunk->count = end;
        lane->source.ended = true;
    }
}

/* Decodes where all was handed out; returns the stream whose chunk ends first, NULL where none goes on. */
static const struct lane *refill_all(struct krait_row_order *o)
{
    const struct lane *first = NULL;
    int64_t first_ns = 0;
    for (struct lane *lane = o->lanes; lane < o->lanes + o->count; lane++) {
        if (lane->from == lane->chunk.count && !lane->source.ended)
            refill(o, lane);
        if (lane->source.ended)
            continue;
        int64_t ns = lane->chunk.rows[lane->chunk.count - 1].ns;
        if (!first || ns < first_ns) {
            first = lane;
            first_ns = ns;
        }
    }
    return first;
}

/* Where the lane's rows end that come before everything that `first` still has to decode: those up to its
 * last row's time, and without that time itself where first's events go before the lane's. */
static uint32_t cut(const struct lane *lane, const struct lane *first)
{
    if (!first || lane == first)
        return lane->chunk.count;
    int64_t ns = first->chunk.rows[first->chunk.count - 1].ns;
    if (lane > first)
        return first_at(&lane->chunk, lane->from, ns);
    return ns < INT64_MAX ? first_at(&lane->chunk, lane->from, ns + 1) : lane->chunk.count;
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
    const struct lane *first = refill_all(o);
    uint32_t runs = 0;
    *count = 0;
    for (struct lane *lane = o->lanes; lane < o->lanes + o->count; lane++) {
        uint32_t to = cut(lane, first), n = to - lane->from;
        if (!n)
            continue;
        o->runs[runs++] = (struct run){ lane->chunk.rows + lane->from, n };
        lane->from = to;
        *count += n;
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
