/* SPDX-License-Identifier: Apache-2.0
 *
 * Pages of the kernel's ring buffer, made up here.
 */
#include "kernel/ringpage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PAGE = 4096 };

struct made {
    uint8_t bytes[PAGE];
    size_t at; /* of the next event, behind the head */
};

static void put_word(struct made *page, uint32_t word)
{
    memcpy(page->bytes + KRAIT_RINGPAGE_HEAD + page->at, &word, sizeof(word));
    page->at += sizeof(word);
}

static void put_event(struct made *page, unsigned type_len, uint32_t delta)
{
    put_word(page, delta << 5 | type_len);
}

static void head(struct made *page, uint64_t time, uint64_t flags)
{
    uint64_t commit = page->at | flags;
    memcpy(page->bytes, &time, sizeof(time));
    memcpy(page->bytes + 8, &commit, sizeof(commit));
}

static void expect(struct krait_ringpage *page, uint64_t time, uint32_t first, size_t size)
{
    const uint8_t *event;
    size_t n;
    uint32_t word;
    assert_true(krait_ringpage_next(page, &event, &n));
    assert_int_equal(page->time, time);
    assert_int_equal(n, size);
    memcpy(&word, event, sizeof(word));
    assert_int_equal(word, first);
}

static void expect_end(struct krait_ringpage *page, bool damaged)
{
    const uint8_t *event;
    size_t n;
    assert_false(krait_ringpage_next(page, &event, &n));
    assert_int_equal(page->damaged, damaged);
    assert_false(krait_ringpage_next(page, &event, &n));
}

static void test_a_page_of_every_kind_of_event(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    put_event(&made, 2, 5); /* 8 bytes */
    put_word(&made, 100);
    put_word(&made, 0);
    put_event(&made, 30, 7); /* later by 3 * 2^27 + 7 */
    put_word(&made, 3);
    put_event(&made, 0, 1); /* length 4 + 6 in the next word: 8 bytes with the padding */
    put_word(&made, 10);
    put_word(&made, 101);
    put_word(&made, 0);
    put_event(&made, 29, 9); /* discarded: 8 bytes in all, its delta does not count */
    put_word(&made, 4);
    put_event(&made, 31, 11); /* at 2 * 2^27 + 11 */
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 102);
    put_event(&made, 29, 0); /* the end, whatever follows */
    put_word(&made, 0xffffffff);
    head(&made, 1000, 0);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_int_equal(page.lost, 0);
    expect(&page, 1005, 100, 8);
    expect(&page, 1005 + (3ull << 27) + 7 + 1, 101, 8);
    expect(&page, (2ull << 27) + 11, 102, 4);
    expect_end(&page, false);
}

static void test_absolute_times_keep_the_upper_bits(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    const uint64_t msb = 1ull << 59;
    put_event(&made, 31, 11);
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 1);
    put_event(&made, 31, 10); /* before that: the upper bits went on by one */
    put_word(&made, 2);
    put_event(&made, 1, 0);
    put_word(&made, 2);
    head(&made, 3 * msb + 5, 0);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    expect(&page, 3 * msb + (2ull << 27) + 11, 1, 4);
    expect(&page, 4 * msb + (2ull << 27) + 10, 2, 4);
    expect_end(&page, false);
}

static void test_lost_events_stand_behind_the_last(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    uint64_t lost = 4711;
    put_event(&made, 1, 0);
    put_word(&made, 1);
    memcpy(made.bytes + KRAIT_RINGPAGE_HEAD + made.at, &lost, sizeof(lost));
    head(&made, 0, 1u << 30 | 1ull << 31);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_int_equal(page.lost, 4711);
    head(&made, 0, 1ull << 31);
    assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_true(page.lost == KRAIT_RINGPAGE_LOST_UNKNOWN);
    expect(&page, 0, 1, 4);
    expect_end(&page, false);
}

static void test_a_page_that_claims_too_much_is_damage(void **state)
{
    struct made made = { 0 };
    struct krait_ringpage page;
    made.at = PAGE - KRAIT_RINGPAGE_HEAD + 1;
    head(&made, 0, 0);
    assert_false(krait_ringpage_begin(&page, made.bytes, PAGE));
    assert_false(krait_ringpage_begin(&page, made.bytes, 15));

    static const struct {
        uint32_t type_len, delta, second;
        size_t size;
    } cases[] = {
        { 2, 0, 0, 8 },          /* 4 of 8 bytes */
        { 0, 0, 0, 4 },          /* no length */
        { 0, 0, 3, 8 },          /* a length that does not hold itself */
        { 0, 0, 0xffffffff, 8 }, /* one that overflows */
        { 30, 1, 0, 4 },         /* half a time */
        { 29, 1, 0xfffffffc, 8 },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cases); i++) {
        made = (struct made){ 0 };
        put_event(&made, cases[i].type_len, cases[i].delta);
        put_word(&made, cases[i].second);
        made.at = cases[i].size;
        head(&made, 0, 0);
        assert_true(krait_ringpage_begin(&page, made.bytes, PAGE));
        expect_end(&page, true);
    }
}

static void test_pages_of_random_bytes_end(void **state)
{
    uint64_t seed = 88172645463325252ull;
    for (int round = 0; round < 20000; round++) {
        uint8_t bytes[256];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; /* xorshift64 */
            bytes[i] = (uint8_t)seed;
        }
        uint64_t commit = seed % 256 | (uint64_t)(bytes[0] & 3) << 30;
        memcpy(bytes + 8, &commit, sizeof(commit));
        struct krait_ringpage page;
        const uint8_t *event;
        size_t n;
        if (!krait_ringpage_begin(&page, bytes, sizeof(bytes)))
            continue;
        while (krait_ringpage_next(&page, &event, &n))
            assert_true(event >= bytes + KRAIT_RINGPAGE_HEAD && event + n <= bytes + sizeof(bytes));
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_of_every_kind_of_event),
        cmocka_unit_test(test_absolute_times_keep_the_upper_bits),
        cmocka_unit_test(test_lost_events_stand_behind_the_last),
        cmocka_unit_test(test_a_page_that_claims_too_much_is_damage),
        cmocka_unit_test(test_pages_of_random_bytes_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
