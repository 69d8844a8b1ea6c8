/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/ringpage.h"

#include <string.h>

#define COMMIT_BYTES  0xfffffull
#define LOST_STORED   (1ull << 30)
#define LOST_SOME     (1ull << 31)
#define DELTA_BITS    27
#define ABSOLUTE_BITS 59

enum { PADDING = 29, TIME_EXTEND = 30, TIME_STAMP = 31 };

static uint32_t word_at(const struct krait_ringpage *page, size_t at)
{
    uint32_t word;
    memcpy(&word, page->events + at, sizeof(word));
    return word;
}

static uint64_t lost_before(const uint8_t *events, size_t size, size_t room, uint64_t commit)
{
    uint64_t lost;
    if (!(commit & LOST_SOME))
        return 0;
    if (!(commit & LOST_STORED) || room - size < sizeof(lost))
        return KRAIT_RINGPAGE_LOST_UNKNOWN;
    memcpy(&lost, events + size, sizeof(lost));
    return lost;
}

bool krait_ringpage_begin(struct krait_ringpage *page, const void *bytes, size_t n)
{
    uint64_t head[2];
    if (n < sizeof(head))
        return false;
    memcpy(head, bytes, sizeof(head));
    size_t size = head[1] & COMMIT_BYTES;
    if (size > n - sizeof(head))
        return false;
    const uint8_t *events = (const uint8_t *)bytes + sizeof(head);
    *page = (struct krait_ringpage){ .events = events, .size = size, .time = head[0] };
    page->lost = lost_before(events, size, n - sizeof(head), head[1]);
    return true;
}

/* rb_fix_abs_ts: the upper bits are those of the time before, or one more when that would go back. */
static uint64_t absolute(uint64_t before, uint64_t low)
{
    uint64_t time = (before >> ABSOLUTE_BITS << ABSOLUTE_BITS) | low;
    return time < before && (before >> ABSOLUTE_BITS) ? time + (1ull << ABSOLUTE_BITS) : time;
}

/* The word `type_len, delta` at page->at has a second word, which `length` becomes. */
static bool second_word(struct krait_ringpage *page, uint32_t *length)
{
    if (page->size - page->at < 8) {
        page->damaged = true;
        return false;
    }
    *length = word_at(page, page->at + 4);
    return true;
}

/* Passes over what is no event. */
static bool pass(struct krait_ringpage *page, unsigned type, uint64_t delta)
{
    uint32_t second;
    if (type == PADDING && !delta) {
        page->at = page->size;
        return true;
    }
    if (!second_word(page, &second))
        return false;
    uint64_t long_delta = ((uint64_t)second << DELTA_BITS) + delta;
    if (type == TIME_EXTEND)
        page->time += long_delta;
    else if (type == TIME_STAMP)
        page->time = absolute(page->time, long_delta);
    size_t bytes = type == PADDING ? (size_t)second + 4 : 8;
    page->damaged = bytes > page->size - page->at;
    page->at += page->damaged ? 0 : bytes;
    return !page->damaged;
}

/* A data event's bytes: where they begin, behind the word or words that say their number. */
static bool data(struct krait_ringpage *page, unsigned type, const uint8_t **event, size_t *n)
{
    uint32_t length = 4 * type;
    size_t head = 4;
    if (type == 0) {
        if (!second_word(page, &length))
            return false;
        head = 8;
        page->damaged = length < 4;
        length = page->damaged ? 0 : ((length - 4) + 3) & ~3u;
    }
    page->damaged = page->damaged || length > page->size - page->at - head;
    if (page->damaged)
        return false;
    *event = page->events + page->at + head;
    *n = length;
    page->at += head + length;
    return true;
}

bool krait_ringpage_next(struct krait_ringpage *page, const uint8_t **event, size_t *n)
{
    while (!page->damaged && page->size - page->at >= 4) {
        uint32_t word = word_at(page, page->at);
        unsigned type = word & 31;
        uint64_t delta = word >> 5;
        if (type < PADDING) {
            page->time += delta;
            return data(page, type, event, n);
        }
        if (!pass(page, type, delta))
            return false;
    }
    return false;
}
