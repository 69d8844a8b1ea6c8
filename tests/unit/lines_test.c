/* SPDX-License-Identifier: Apache-2.0 */
#include "python/compat/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FIND(kind, first, offset, ...)                                                                 \
    krait_lines_find(kind, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
                     first, offset)

enum { NO_LINE = 0x80, BACK_2 = 0xfe };

static void what_has_not_begun_is_in_the_first_line(void **state)
{
    for (enum krait_line_table kind = KRAIT_LINES_LNOTAB; kind <= KRAIT_LINES_LOCATIONS; kind++) {
        assert_int_equal(FIND(kind, 7, -1, 2, 1), 7);
        assert_int_equal(krait_lines_find(kind, NULL, 0, 7, 0), 7);
    }
}

/* Objects/lnotab_notes.txt of 3.8: 0 is in line 1, 6 in line 2, 50 in line 7. */
static void lnotab_adds_up_to_the_instruction(void **state)
{
    static const struct {
        int offset, line;
    } rows[] = { { 0, 1 }, { 5, 1 }, { 6, 2 }, { 49, 2 }, { 50, 7 }, { 99, 5 } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++)
        assert_int_equal(FIND(KRAIT_LINES_LNOTAB, 1, rows[i].offset, 6, 1, 44, 5, 10, BACK_2), rows[i].line);
}

static void linetable_has_ranges_and_gaps(void **state)
{
    static const struct {
        int offset, line;
    } rows[] = { { 0, 10 }, { 3, 10 }, { 4, 0 }, { 6, 13 }, { 8, 11 }, { 100, 11 } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++)
        assert_int_equal(FIND(KRAIT_LINES_LINETABLE, 10, rows[i].offset, 4, 0, 2, NO_LINE, 2, 3, 2, BACK_2),
                         rows[i].line);
}

/* Entries: no columns, +1, 2 units; short, same line, 1 unit; no line, 1 unit; one line, +2, 1 unit; long, +100, 3 units. */
static void locations_are_read_by_their_kind(void **state)
{
    static const struct {
        int offset, line;
    } rows[] = { { 0, 2 }, { 3, 2 }, { 4, 2 }, { 6, 0 }, { 8, 4 }, { 10, 104 }, { 15, 104 } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++)
        assert_int_equal(FIND(KRAIT_LINES_LOCATIONS, 1, rows[i].offset, 0xe9, 2, 0x80, 5, 0xf8, 0xe0, 1, 2,
                              0xf2, 64 | 8, 3, 0, 1, 2),
                         rows[i].line);
}

static void any_bytes_may_be_in_a_table(void **state)
{
    enum { SIZE = 64, TABLES = 20000 };
    uint32_t random = 1;
    for (int t = 0; t < TABLES; t++) {
        uint8_t *table = malloc(SIZE); /* of its size: a sanitizer sees what is read beyond */
        assert_non_null(table);
        for (int i = 0; i < SIZE; i++) {
            random = random * 1664525u + 1013904223u;
            table[i] = (uint8_t)(random >> 24);
        }
        for (enum krait_line_table kind = KRAIT_LINES_LNOTAB; kind <= KRAIT_LINES_LOCATIONS; kind++)
            krait_lines_find(kind, table + t % SIZE, (size_t)(SIZE - t % SIZE), 1, t % 300);
        free(table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_not_begun_is_in_the_first_line),
        cmocka_unit_test(lnotab_adds_up_to_the_instruction),
        cmocka_unit_test(linetable_has_ranges_and_gaps),
        cmocka_unit_test(locations_are_read_by_their_kind),
        cmocka_unit_test(any_bytes_may_be_in_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
