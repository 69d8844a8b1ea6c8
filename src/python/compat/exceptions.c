/* SPDX-License-Identifier: Apache-2.0 */
#include "python/compat/exceptions.h"

#include "base/base.h"

/* Six bits in a byte, the highest first; bit 6: more follow. */
static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
    enum { BITS = 6, MORE = 1 << BITS };
    uint64_t value = 0;
    uint8_t byte = MORE;
    while (byte & MORE && *at < end) {
        byte = *(*at)++;
        value = value << BITS | (byte & (MORE - 1));
    }
    return value;
}

/* An entry. Entries do not overlap; they count instructions, of two bytes each. */
struct entry {
    uint64_t first, count, handler;
    uint64_t depth;       /* values that stay on the stack */
    bool has_instruction; /* then the instruction is pushed, and the exception */
};

static struct entry read_entry(const uint8_t **at, const uint8_t *end)
{
    struct entry entry = { .first = read_varint(at, end) };
    entry.count = read_varint(at, end);
    entry.handler = read_varint(at, end);
    uint64_t depth = read_varint(at, end);
    entry.depth = depth >> 1;
    entry.has_instruction = depth & 1;
    return entry;
}

uint32_t krait_exception_depth(const uint8_t *table, size_t size, int64_t offset)
{
    const uint8_t *at = table, *end = table + size;
    uint64_t instruction = (uint64_t)offset / 2;
    while (at < end) {
        struct entry entry = read_entry(&at, end);
        if (instruction - entry.first < entry.count)
            return (uint32_t)KRAIT_MIN(entry.depth, (uint64_t)UINT32_MAX);
    }
    return 0;
}

void krait_exception_handlers(const uint8_t *table, size_t size, krait_handler_fn *each, void *ctx)
{
    enum { MOST = 1 << 24 };
    const uint8_t *at = table, *end = table + size;
    while (at < end) {
        struct entry entry = read_entry(&at, end);
        if (entry.handler < MOST && entry.depth < MOST)
            each(ctx, (uint32_t)entry.handler, (uint32_t)entry.depth + entry.has_instruction + 1);
    }
}
