/* SPDX-License-Identifier: Apache-2.0 */
#include "python/compat/lines.h"

typedef int32_t lines_fn(const uint8_t *table, size_t size, int32_t first, int64_t offset);

/* Pairs: bytes forward, signed lines forward. */
static int32_t find_lnotab(const uint8_t *table, size_t size, int32_t first, int64_t offset)
{
    int64_t at = 0;
    int32_t line = first;
    for (size_t i = 0; i + 1 < size; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

enum { NO_LINE = -128 };

/* Pairs: bytes of a range, signed lines from the range before; NO_LINE: it has none. */
static int32_t find_linetable(const uint8_t *table, size_t size, int32_t first, int64_t offset)
{
    int64_t end = 0;
    int32_t line = first;
    for (size_t i = 0; i + 1 < size; i += 2) {
        int8_t delta = (int8_t)table[i + 1];
        line += delta == NO_LINE ? 0 : delta;
        end += table[i];
        if (offset < end)
            return delta == NO_LINE ? 0 : line;
    }
    return line;
}

/* -- locations: entries that begin with a byte over 127, which has a kind and the number of 2-byte units -- */

enum { KIND_ONE_LINE = 10, KIND_NO_COLUMNS = 13, KIND_LONG = 14, KIND_NONE = 15 };

/* A signed number, 6 bits a byte, lowest first, with the sign in its lowest bit. */
static int32_t read_signed(const uint8_t *table, size_t size, size_t at)
{
    uint32_t n = 0, shift = 0;
    for (; at < size && shift < 32; at++, shift += 6) {
        n |= (uint32_t)(table[at] & 63) << shift;
        if (!(table[at] & 64))
            break;
    }
    return n & 1 ? -(int32_t)(n >> 1) : (int32_t)(n >> 1);
}

static int32_t line_delta(unsigned kind, const uint8_t *table, size_t size, size_t at)
{
    if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
        return read_signed(table, size, at + 1);
    return kind >= KIND_ONE_LINE && kind < KIND_NO_COLUMNS ? (int32_t)kind - KIND_ONE_LINE : 0;
}

static int32_t find_locations(const uint8_t *table, size_t size, int32_t first, int64_t offset)
{
    int64_t end = 0;
    int64_t line = first;
    for (size_t at = 0; at < size;) {
        unsigned kind = table[at] >> 3 & 15;
        line += line_delta(kind, table, size, at);
        end += 2 * ((table[at] & 7) + 1);
        if (offset < end)
            return kind == KIND_NONE ? 0 : (int32_t)line;
        do
            at++;
        while (at < size && !(table[at] & 128));
    }
    return (int32_t)line;
}

int32_t krait_lines_find(enum krait_line_table kind, const uint8_t *table, size_t size, int32_t first,
                         int64_t offset)
{
    static lines_fn *const finders[] = { [KRAIT_LINES_LNOTAB] = find_lnotab,
                                         [KRAIT_LINES_LINETABLE] = find_linetable,
                                         [KRAIT_LINES_LOCATIONS] = find_locations };
    return offset < 0 ? first : finders[kind](table, size, first, offset);
}
