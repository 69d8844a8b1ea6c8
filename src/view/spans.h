/* SPDX-License-Identifier: Apache-2.0
 *
 * The spans of one track, packed into 5 to 10 bytes each instead of 40: a kernel trace has tens of millions of states
 * and system calls.
 *
 *   blocks   ┌─────────────────┬─────────────────┬───   begin of the first span, offset of its bytes
 *            │ begin_ns offset │ begin_ns offset │
 *            └──┬──────────────┴──┬──────────────┴───
 *   bytes       ▼ 64 spans        ▼ 64 spans            a span: five numbers, 7 bits a byte, lowest first; the top bit
 *            ┌─────────────────┬─────────────────┬───   is set if more bytes follow (LEB128)
 *            │ gap length name value depth  ...  │        gap: from the end of the span before, or the block's begin, to the
 *            └───────────────────────────────────┴───         begin; it and value are signed: 0, -1, 1, -2 as 0, 1, 2, 3
 *
 * Example: a block that begins at 1000, and in it a state from 1000 to 1300 with name 2 and value 0:
 *
 *   00  ac 02  02  00  00
 *
 * It is read from front to back, from any block; what is damaged ends it.
 */
#ifndef KRAIT_VIEW_SPANS_H
#define KRAIT_VIEW_SPANS_H

#include "view/tile.h"

struct krait_span_block {
    uint64_t begin_ns, offset;
};

struct krait_spans {
    struct krait_span_block *blocks;
    size_t block_count, block_cap;
    uint8_t *bytes;
    size_t byte_count, byte_cap;
    uint64_t count;
    uint64_t last_end; /* used while spans are added */
    bool is_mapped;    /* the arrays belong to a mapped file (cache.h) */
};

/* Adds a span, in any order; reading needs the order of begins. Times are at most KRAIT_PYRAMID_TIME_MAX. Returns 0
 * or -ENOMEM. */
int krait_spans_add(struct krait_spans *spans, const struct krait_tile_call *span);
/* Frees memory that is not needed. */
void krait_spans_trim(struct krait_spans *spans);
void krait_spans_done(struct krait_spans *spans);
/* A copy, to which more can be added. Returns 0 or -ENOMEM. */
int krait_spans_copy(struct krait_spans *to, const struct krait_spans *from);
size_t krait_spans_size(const struct krait_spans *spans);

struct krait_spans_reader {
    const struct krait_spans *spans;
    const uint8_t *at;
    uint64_t next; /* number of the next span */
    uint64_t last_end;
};

/* A cursor before the first span; or, if spans are ordered by begins, before a span that begins before begin_ns, or
 * the first. */
void krait_spans_start(struct krait_spans_reader *reader, const struct krait_spans *spans);
/* Before a span by its number, at most their count. */
void krait_spans_start_at(struct krait_spans_reader *reader, const struct krait_spans *spans,
                          uint64_t number);
void krait_spans_seek(struct krait_spans_reader *reader, const struct krait_spans *spans, uint64_t begin_ns);
/* Returns false after the last span, and if the bytes are damaged. */
bool krait_spans_next(struct krait_spans_reader *reader, struct krait_tile_call *out);

#endif
