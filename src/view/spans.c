/* SPDX-License-Identifier: Apache-2.0 */
#include "view/spans.h"

#include "base/array.h"
#include "view/pyramid.h"

#include <string.h>

enum { BLOCK = 64, NUMBER_MAX = 10, SPAN_MAX = 5 * NUMBER_MAX };

static uint64_t fold_sign(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unfold_sign(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

static uint8_t *put(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

int krait_spans_add(struct krait_spans *spans, const struct krait_tile_call *span)
{
    if (!KRAIT_GROW(spans->bytes, spans->byte_cap, spans->byte_count + SPAN_MAX))
        return -ENOMEM;
    if (spans->count % BLOCK == 0) {
        if (!KRAIT_GROW(spans->blocks, spans->block_cap, spans->block_count + 1))
            return -ENOMEM;
        spans->blocks[spans->block_count++] = (struct krait_span_block){ span->begin_ns, spans->byte_count };
        spans->last_end = span->begin_ns;
    }
    uint8_t *at = spans->bytes + spans->byte_count;
    at = put(at, fold_sign((int64_t)(span->begin_ns - spans->last_end)));
    at = put(at, span->end_ns - span->begin_ns);
    at = put(at, span->func);
    at = put(at, fold_sign(span->value));
    at = put(at, span->depth);
    spans->byte_count = (size_t)(at - spans->bytes);
    spans->last_end = span->end_ns;
    spans->count++;
    return 0;
}

void krait_spans_trim(struct krait_spans *spans)
{
    KRAIT_TRIM(spans->bytes, spans->byte_cap, spans->byte_count);
    KRAIT_TRIM(spans->blocks, spans->block_cap, spans->block_count);
}

void krait_spans_done(struct krait_spans *spans)
{
    if (!spans->is_mapped) {
        free(spans->bytes);
        free(spans->blocks);
    }
    *spans = (struct krait_spans){ 0 };
}

int krait_spans_copy(struct krait_spans *to, const struct krait_spans *from)
{
    struct krait_spans copy = { .count = from->count,
                                .byte_count = from->byte_count,
                                .block_count = from->block_count,
                                .last_end = from->last_end };
    if (!KRAIT_GROW(copy.bytes, copy.byte_cap, from->byte_count) ||
        !KRAIT_GROW(copy.blocks, copy.block_cap, from->block_count)) {
        krait_spans_done(&copy);
        return -ENOMEM;
    }
    if (from->byte_count)
        memcpy(copy.bytes, from->bytes, from->byte_count);
    if (from->block_count)
        memcpy(copy.blocks, from->blocks, from->block_count * sizeof(*copy.blocks));
    *to = copy;
    return 0;
}

size_t krait_spans_size(const struct krait_spans *spans)
{
    return spans->byte_count + spans->block_count * sizeof(*spans->blocks);
}

/* ---- reading ---- */

static void go_to(struct krait_spans_reader *reader, const struct krait_spans *spans, size_t block)
{
    *reader = (struct krait_spans_reader){ .spans = spans, .next = block * BLOCK, .at = spans->bytes };
}

void krait_spans_start(struct krait_spans_reader *reader, const struct krait_spans *spans)
{
    go_to(reader, spans, 0);
}

void krait_spans_start_at(struct krait_spans_reader *reader, const struct krait_spans *spans, uint64_t number)
{
    struct krait_tile_call skipped;
    go_to(reader, spans, number / BLOCK);
    while (reader->next < number && krait_spans_next(reader, &skipped))
        ;
}

void krait_spans_seek(struct krait_spans_reader *reader, const struct krait_spans *spans, uint64_t begin_ns)
{
    size_t low = KRAIT_PARTITION_POINT(i, spans->block_count, spans->blocks[i].begin_ns < begin_ns);
    go_to(reader, spans, low ? low - 1 : 0);
}

static bool take(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool start_block(struct krait_spans_reader *reader)
{
    const struct krait_spans *spans = reader->spans;
    size_t block = reader->next / BLOCK;
    if (block >= spans->block_count || spans->blocks[block].offset > spans->byte_count)
        return false;
    reader->at = spans->bytes + spans->blocks[block].offset;
    reader->last_end = spans->blocks[block].begin_ns;
    return true;
}

bool krait_spans_next(struct krait_spans_reader *reader, struct krait_tile_call *out)
{
    const struct krait_spans *spans = reader->spans;
    uint64_t gap, length, name, value, depth;
    if (reader->next >= spans->count)
        return false; /* there are no bytes if there are no spans */
    const uint8_t *end = spans->bytes + spans->byte_count;
    if ((reader->next % BLOCK == 0 && !start_block(reader)) || !take(&reader->at, end, &gap) ||
        !take(&reader->at, end, &length) || !take(&reader->at, end, &name) ||
        !take(&reader->at, end, &value) || !take(&reader->at, end, &depth))
        return false;
    uint64_t begin = reader->last_end + (uint64_t)unfold_sign(gap);
    if (begin > KRAIT_PYRAMID_TIME_MAX || length > KRAIT_PYRAMID_TIME_MAX - begin || name > UINT32_MAX ||
        depth >= KRAIT_PYRAMID_DEPTHS)
        return false;
    *out = (struct krait_tile_call){ .begin_ns = begin,
                                     .end_ns = begin + length,
                                     .value = unfold_sign(value),
                                     .func = (uint32_t)name,
                                     .depth = (uint32_t)depth,
                                     .begin = KRAIT_OP_CALL,
                                     .end = KRAIT_OP_RETURN };
    reader->last_end = out->end_ns;
    reader->next++;
    return true;
}
