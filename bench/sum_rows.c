/* SPDX-License-Identifier: Apache-2.0 */
#include "sum_rows.h"

#include <string.h>

static uint64_t sum_one_by_one(const uint64_t *cells, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += cells[i];
    return sum;
}

static uint64_t sum_row_by_row(const struct krait_reader_batch *batch, const uint32_t *row_sizes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        sum += sum_one_by_one(batch->cells + batch->events[i].cells, row_sizes[batch->events[i].cls]);
    return sum;
}

#ifdef __x86_64__
#include <immintrin.h>

/* Rows of up to LANES cells are loaded by masks, which reach into nothing behind the row. */
enum { LANES = 12, WIDTH = 4, CHAINS = 4 };

static const int64_t MASKS[2 * LANES] = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

__attribute__((target("avx2"))) static inline __m256i masked(const uint64_t *row, const int64_t *mask)
{
    return _mm256_maskload_epi64((const long long *)row, _mm256_loadu_si256((const __m256i *)mask));
}

__attribute__((target("avx2"))) static uint64_t sum_by_masks(const struct krait_reader_batch *batch,
                                                             const uint32_t *row_sizes)
{
    const struct krait_reader_event *event = batch->events, *end = event + batch->count;
    const uint64_t *cells = batch->cells;
    __m256i sum = _mm256_setzero_si256();
    for (; event < end; event++) {
        const uint64_t *row = cells + event->cells;
        size_t count = row_sizes[event->cls];
        for (; __builtin_expect(count > LANES, 0); row += WIDTH, count -= WIDTH)
            sum = _mm256_add_epi64(sum, _mm256_loadu_si256((const __m256i *)row));
        const int64_t *mask = MASKS + LANES - count;
        for (size_t at = 0; at < LANES; at += WIDTH) /* a fixed number: unrolled */
            sum = _mm256_add_epi64(sum, masked(row + at, mask + at));
    }
    uint64_t lanes[WIDTH];
    _mm256_storeu_si256((__m256i *)lanes, sum);
    return sum_one_by_one(lanes, WIDTH);
}

/* Four sums side by side, that do not wait for each other. */
__attribute__((target("avx2"))) static uint64_t sum_by_fours(const uint64_t *cells, uint64_t count)
{
    __m256i sums[CHAINS] = { 0 };
    uint64_t at = 0, lanes[CHAINS * WIDTH];
    for (; at + CHAINS * WIDTH <= count; at += CHAINS * WIDTH)
        for (uint32_t i = 0; i < CHAINS; i++)
            sums[i] =
                _mm256_add_epi64(sums[i], _mm256_loadu_si256((const __m256i *)(cells + at + i * WIDTH)));
    memcpy(lanes, sums, sizeof(lanes));
    return sum_one_by_one(lanes, CHAINS * WIDTH) + sum_one_by_one(cells + at, count - at);
}

uint64_t sum_cells(const uint64_t *cells, uint64_t count)
{
    return __builtin_cpu_supports("avx2") ? sum_by_fours(cells, count) : sum_one_by_one(cells, count);
}

uint64_t sum_rows(const struct krait_reader_batch *batch, const uint32_t *row_sizes)
{
    return __builtin_cpu_supports("avx2") ? sum_by_masks(batch, row_sizes) : sum_row_by_row(batch, row_sizes);
}
#else
uint64_t sum_cells(const uint64_t *cells, uint64_t count)
{
    return sum_one_by_one(cells, count);
}

uint64_t sum_rows(const struct krait_reader_batch *batch, const uint32_t *row_sizes)
{
    return sum_row_by_row(batch, row_sizes);
}
#endif
