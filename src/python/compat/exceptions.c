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

/* Entries do not overlap; they count instructions, of two bytes each. */
uint32_t krait_exception_depth(const uint8_t *table, size_t size, int64_t offset)
{
    const uint8_t *at = table, *end = table + size;
    uint64_t instruction = (uint64_t)offset / 2;
    while (at < end) {
        uint64_t first = read_varint(&at, end), count = read_varint(&at, end);
        read_varint(&at, end); /* where its handler is */
        uint64_t depth = read_varint(&at, end) >> 1;
        if (instruction - first < count)
            return (uint32_t)KRAIT_MIN(depth, (uint64_t)UINT32_MAX);
    }
    return 0;
}
