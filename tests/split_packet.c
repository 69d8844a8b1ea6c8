/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the tests' own reader of recordings (tests/e2e/helpers/recording.py): where the events of a packet begin. In
 * Python it took most of the time of the tests. It shares nothing with krait, whose recorder it judges: what it knows of events
 * comes from the table that recording.py reads, and the header is as src/ctf/format.h says.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { NUMBERS = 256, FIELDS = 32 };
enum { EXTENDED = 31, TIME_BITS = 27, HEAD = 4, EXTENDED_HEAD = 13 };
enum { STRING = 0 }; /* as the size of a field */

/* The fields of an event. The same in recording.py. */
struct layout {
    uint8_t known;
    uint8_t count;
    uint8_t code; /* which field is the code, 4 bytes; >= count: none */
    uint8_t sizes[FIELDS];
};

/* What is found, in columns with room for (end - at) / 4 events. */
struct events {
    uint64_t *times;
    int64_t *codes;   /* -1: it has none */
    uint64_t *fields; /* where they begin */
    uint8_t *numbers;
};

/* Where the fields end; SIZE_MAX: beyond the data. */
static size_t skip_fields(const uint8_t *data, size_t at, size_t end, const struct layout *layout,
                          int64_t *code)
{
    *code = -1;
    for (unsigned i = 0; i < layout->count; i++) {
        size_t size = layout->sizes[i];
        if (size == STRING) {
            const uint8_t *zero = at < end ? memchr(data + at, 0, end - at) : NULL;
            if (!zero)
                return SIZE_MAX;
            size = (size_t)(zero - data) + 1 - at;
        }
        if (size > end - at)
            return SIZE_MAX;
        if (i == layout->code) {
            uint32_t value;
            memcpy(&value, data + at, sizeof(value));
            *code = value;
        }
        at += size;
    }
    return at;
}

/* Reads the header of an event, and moves the clock. Where the fields begin; SIZE_MAX: the header is not whole. */
static size_t read_head(const uint8_t *data, size_t at, size_t end, uint32_t *number, uint64_t *clock)
{
    const uint64_t range = (uint64_t)1 << TIME_BITS;
    uint32_t word;
    *number = data[at] & 31;
    if (*number == EXTENDED) {
        if (end - at < EXTENDED_HEAD)
            return SIZE_MAX;
        memcpy(number, data + at + 1, sizeof(*number));
        memcpy(clock, data + at + 5, sizeof(*clock));
        return at + EXTENDED_HEAD;
    }
    if (end - at < HEAD)
        return SIZE_MAX;
    memcpy(&word, data + at, sizeof(word));
    uint64_t low = word >> 5, known = *clock & (range - 1);
    *clock += low - known + (low < known ? range : 0);
    return at + HEAD;
}

/* The events of data[at..end), and their bytes by number, added to `sizes`. `clock`: the packet's first full time. Returns how
 * many, or -1 - N where the event after the first N is not known, or not whole. */
int64_t split_packet(const uint8_t *data, size_t at, size_t end, uint64_t clock, const struct layout *layouts,
                     const struct events *events, uint64_t *sizes);

int64_t split_packet(const uint8_t *data, size_t at, size_t end, uint64_t clock, const struct layout *layouts,
                     const struct events *events, uint64_t *sizes)
{
    int64_t n = 0;
    while (at < end) {
        uint32_t number;
        size_t fields = read_head(data, at, end, &number, &clock);
        if (fields == SIZE_MAX || number >= NUMBERS || !layouts[number].known)
            return -1 - n;
        size_t next = skip_fields(data, fields, end, &layouts[number], &events->codes[n]);
        if (next == SIZE_MAX)
            return -1 - n;
        events->times[n] = clock;
        events->fields[n] = fields;
        events->numbers[n++] = (uint8_t)number;
        sizes[number] += next - at;
        at = next;
    }
    return n;
}
