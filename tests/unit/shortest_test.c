/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shortest.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *shown(double value, char text[KRAIT_SHORTEST_MOST + 1])
{
    char *end = krait_put_shortest(text, value);
    assert_in_range(end - text, 1, 25);
    *end = 0;
    return text;
}

static int digits_of(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text == '0' && n)
            zeros++;
        else if (*text >= '1' && *text <= '9')
            n += zeros + 1, zeros = 0;
    }
    return n;
}

/* Reads back the same, with no more digits than the first of printf's that does, and as near. */
static void check(double value)
{
    char text[KRAIT_SHORTEST_MOST + 1], printed[64];
    int precision = 1;
    assert_true(strtod(shown(value, text), NULL) == value);
    do
        snprintf(printed, sizeof(printed), "%.*g", precision, value);
    while (strtod(printed, NULL) != value && precision++ < 17);
    assert_true(digits_of(text) <= precision);
    if (digits_of(text) != digits_of(printed))
        return; /* there is a shorter one beside the nearest of its length */
    assert_true(strtold(text, NULL) == strtold(printed, NULL));
}

/* Both signs, and the doubles beside it. */
static void check_around(double value)
{
    const double near[] = { value, nextafter(value, INFINITY), nextafter(value, 0) };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(near); i++) {
        if (!isfinite(near[i]))
            continue;
        check(near[i]);
        check(-near[i]);
    }
}

static void test_layout(void **state)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        { 0, "0.0" },
        { -0.0, "-0.0" },
        { 1, "1.0" },
        { 100, "100.0" },
        { 0.1, "0.1" },
        { 1.0 / 3, "0.3333333333333333" },
        { 123456.789, "123456.789" },
        { 0.0001, "0.0001" },
        { 0.00012345678901234567, "0.00012345678901234567" },
        { 0.00001, "1e-05" },
        { 1234567890123456, "1234567890123456.0" },
        { 9007199254740992, "9007199254740992.0" },
        { 1e16, "1e+16" },
        { 1.5e22, "1.5e+22" },
        { 1e23, "1e+23" },
        { 9.5e-10, "9.5e-10" },
        { -2.5e300, "-2.5e+300" },
        { 5e-324, "5e-324" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { (double)0.1f, "0.10000000149011612" },
    };
    char text[KRAIT_SHORTEST_MOST + 1];
    (void)state;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++)
        assert_string_equal(shown(rows[i].value, text), rows[i].text);
}

static void test_powers_and_what_is_beside_them(void **state)
{
    (void)state;
    for (int power = -1074; power <= 1023; power++)
        check_around(ldexp(1, power));
    for (int power = -323; power <= 308; power++) {
        char text[16];
        snprintf(text, sizeof(text), "1e%d", power);
        check_around(strtod(text, NULL));
        check_around(strtod(text, NULL) * 3);
    }
}

static void test_any_bits(void **state)
{
    (void)state;
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double any;
        bits = bits * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        memcpy(&any, &bits, sizeof(any));
        if (isfinite(any))
            check(any);
        double usual = (double)(int64_t)bits / (double)(1ull << (bits >> 20 & 63));
        check(usual);
        check(round(usual) / 1e4);
        check((double)(float)(usual / 1e6));
        bits &= i % 7 ? UINT64_MAX : UINT64_MAX >> 12;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_powers_and_what_is_beside_them),
        cmocka_unit_test(test_any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
