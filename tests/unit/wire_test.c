/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles as bytes: the example of wire.h, order, limits.
 */
#include "view/wire.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <string.h>

static struct krait_tile new_tile(uint64_t number, unsigned level)
{
    struct krait_tile tile;
    krait_tile_init(&tile, number << (level + KRAIT_WIRE_BINS_LOG2), (uint64_t)1 << level, KRAIT_WIRE_BINS,
                    KRAIT_WIRE_DEPTHS);
    return tile;
}

static void add(struct krait_tile *tile, uint64_t begin, uint64_t end, uint32_t func, uint32_t depth)
{
    const struct krait_tile_call call = {
        .begin_ns = begin, .end_ns = end, .func = func, .depth = depth, .end = KRAIT_OP_RETURN
    };
    assert_int_equal(krait_tile_add(tile, &call), 0);
}

static void the_example_is_written_as_it_is_drawn(void **state)
{
    static const uint8_t expected[] = {
        0x4b, 0x54, 0x49, 0x4c, 1, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,    0, 0, 0,    0, 0, 0, 0, 0,
        0,    1,    0,    0,    0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0xff, 1, 5, 0x7f, 1, 0, 0, 0,
    };
    static const uint8_t hues[] = { 0, 0, 5 };
    struct krait_tile calls = new_tile(3, 8);
    add(&calls, calls.from_ns, calls.from_ns + 256, 2, 0);
    add(&calls, calls.from_ns + 256, calls.from_ns + 384, 2, 0);
    const struct krait_wire_tile tile = {
        .tile = 3, .kind = KRAIT_TRACK_CALLS, .level = 8, .calls = &calls, .hues = hues, .hue_count = 3
    };
    KRAIT_AUTO_BUF out = { 0 };
    krait_wire_put(&out, &tile);
    assert_false(out.failed);
    assert_int_equal(out.len, sizeof(struct krait_wire_head) + sizeof(struct krait_wire_row));
    assert_memory_equal(out.data, expected, sizeof(expected));
    for (size_t i = sizeof(expected); i < out.len; i++)
        assert_int_equal(out.data[i], 0);
    krait_tile_done(&calls);
}

static void slices_are_whole_and_in_order(void **state)
{
    struct krait_tile calls = new_tile(1, 0);
    add(&calls, 600, 604, 7, 1);
    add(&calls, 100, 2000, 6, 0); /* from before the tile to behind it */
    add(&calls, 600, 700, 5, 0);
    const struct krait_tile_call odd = { .begin_ns = 800,
                                         .end_ns = 803,
                                         .value = -11,
                                         .func = 9,
                                         .depth = 2,
                                         .begin = KRAIT_OP_RESUME,
                                         .end = KRAIT_OP_UNWIND };
    assert_int_equal(krait_tile_add(&calls, &odd), 0);
    const struct krait_wire_tile tile = { .tile = 1, .calls = &calls };
    KRAIT_AUTO_BUF out = { 0 };
    krait_wire_put(&out, &tile);
    struct krait_wire_head head;
    struct krait_wire_slice slices[4];
    assert_int_equal(out.len, sizeof(head) + sizeof(slices));
    memcpy(&head, out.data, sizeof(head));
    memcpy(slices, out.data + sizeof(head), sizeof(slices));
    assert_int_equal(head.rows, 0);
    assert_int_equal(head.slices, 4);
    assert_int_equal(head.ops, 2); /* neither what began before nor what goes on */
    assert_int_equal(head.deepest, 3);
    assert_int_equal(slices[0].begin, -412);
    assert_int_equal(slices[0].end, 1488);
    assert_int_equal(slices[1].name, 5);
    assert_int_equal(slices[2].name, 7);
    assert_int_equal(slices[3].flags, KRAIT_WIRE_RESUMED | KRAIT_WIRE_UNWOUND);
    assert_int_equal(slices[3].value, -11);
    krait_tile_done(&calls);
}

static void depths_that_are_not_sent_are_told(void **state)
{
    struct krait_tile calls = new_tile(0, 0);
    add(&calls, 10, 11, 1, KRAIT_WIRE_DEPTHS - 1);
    add(&calls, 10, 11, 1, KRAIT_WIRE_DEPTHS);
    add(&calls, 10, 400, 1, KRAIT_WIRE_DEPTHS + 5);
    const struct krait_wire_tile tile = { .calls = &calls };
    KRAIT_AUTO_BUF out = { 0 };
    krait_wire_put(&out, &tile);
    struct krait_wire_head head;
    memcpy(&head, out.data, sizeof(head));
    assert_int_equal(head.rows, 1);
    assert_int_equal(head.slices, 0);
    assert_int_equal(head.ops, 3);
    assert_int_equal(head.deepest, KRAIT_WIRE_DEPTHS + 6);
    assert_int_equal(head.flags, KRAIT_WIRE_DEEPER);
    krait_tile_done(&calls);
}

static void what_is_there_is_never_drawn_as_nothing(void **state)
{
    const struct krait_tile_bin none = { 0 }, instant = { .count = 1 },
                                little = { .busy_ns = 1, .count = UINT32_MAX }, all = { .busy_ns = 1 << 20 };
    assert_int_equal(krait_wire_bin(&none, 1 << 20, 3).busy, 0);
    assert_int_equal(krait_wire_bin(&none, 1 << 20, 3).hue, 0);
    assert_int_equal(krait_wire_bin(&instant, 1 << 20, 3).busy, 1);
    assert_int_equal(krait_wire_bin(&instant, 1 << 20, 3).number, 1);
    assert_int_equal(krait_wire_bin(&little, 1 << 20, 3).busy, 1);
    assert_int_equal(krait_wire_bin(&little, 1 << 20, 3).number, 32);
    assert_int_equal(krait_wire_bin(&all, 1 << 20, 3).busy, 255);
    assert_int_equal(krait_wire_bin(&all, 1 << 20, 3).number, 0);
}

static void the_widest_bins_do_not_overflow(void **state)
{
    struct krait_tile calls = new_tile(0, KRAIT_WIRE_LEVEL_MAX);
    add(&calls, 0, (uint64_t)1 << 55, 1, 0);
    add(&calls, (uint64_t)1 << 55, (uint64_t)1 << 62, 1, 0);
    const struct krait_wire_tile tile = { .level = KRAIT_WIRE_LEVEL_MAX, .calls = &calls };
    KRAIT_AUTO_BUF out = { 0 };
    krait_wire_put(&out, &tile);
    struct krait_wire_row row;
    memcpy(&row, out.data + sizeof(struct krait_wire_head), sizeof(row));
    assert_int_equal(row.bins[0].busy, 255);
    assert_int_equal(row.bins[1].busy, 255);
    assert_int_equal(row.bins[2].busy, 0);
    krait_tile_done(&calls);
}

static void marks_and_counters_follow_the_head(void **state)
{
    struct krait_wire_counter counters[KRAIT_WIRE_BINS] = { { 1, 2, 1.5 } };
    const struct krait_wire_mark marks[] = { { 3, 20, 7, 0 } };
    const struct krait_wire_tile tile = { .marks = marks, .mark_count = 1, .counters = counters };
    KRAIT_AUTO_BUF out = { 0 };
    krait_buf_str(&out, "before");
    krait_wire_put(&out, &tile);
    assert_int_equal(out.len, 6 + sizeof(struct krait_wire_head) + sizeof(marks) + sizeof(counters));
    assert_memory_equal(out.data + 6 + sizeof(struct krait_wire_head), marks, sizeof(marks));
    assert_memory_equal(out.data + 6 + sizeof(struct krait_wire_head) + sizeof(marks), counters,
                        sizeof(counters));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_is_written_as_it_is_drawn),
        cmocka_unit_test(slices_are_whole_and_in_order),
        cmocka_unit_test(depths_that_are_not_sent_are_told),
        cmocka_unit_test(what_is_there_is_never_drawn_as_nothing),
        cmocka_unit_test(the_widest_bins_do_not_overflow),
        cmocka_unit_test(marks_and_counters_follow_the_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
