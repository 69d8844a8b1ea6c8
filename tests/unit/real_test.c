/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/scalar/real.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void same_as_printf(double value)
{
    char ours[KRAIT_REAL_MOST + 16], printed[64];
    *krait_put_real(ours, value) = 0;
    snprintf(printed, sizeof(printed), "%g", value);
    assert_string_equal(ours, printed);
}

/* Both signs, and the doubles beside it. */
static void all_around(double value)
{
    const double near[] = { value, nextafter(value, INFINITY), nextafter(value, 0) };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(near); i++) {
        same_as_printf(near[i]);
        same_as_printf(-near[i]);
    }
}

static void test_powers_of_ten_and_what_rounds_to_them(void **state)
{
    (void)state;
    for (int power = -12; power <= 12; power++) {
        double ten = pow(10, power);
        all_around(ten);
        all_around(ten * 0.9999995); /* the last that rounds up, or the first that does not */
        all_around(ten * 0.99999949);
        all_around(ten * 1.2345650);
        all_around(ten * 5);
    }
}

/* Halves of the sixth digit, which doubles have exactly: to even. */
static void test_halves(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        same_as_printf(100000.5 + i);
        same_as_printf(10000.25 + i / 2.0);
        same_as_printf(999990.5 + i);
        same_as_printf(1 + i / 1048576.0);
    }
}

static void test_what_is_no_usual_number(void **state)
{
    (void)state;
    const double values[] = { 0, INFINITY, NAN, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(values); i++)
        all_around(values[i]);
}

static void test_any_bits(void **state)
{
    (void)state;
    uint64_t bits = 1;
    for (int i = 0; i < 50000; i++) {
        double any, usual;
        bits = bits * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        memcpy(&any, &bits, sizeof(any));
        same_as_printf(any);
        usual = (double)(int64_t)bits / (double)(1ull << (bits >> 20 & 63));
        same_as_printf(usual);
        same_as_printf((double)(float)(usual / 1e6));
        same_as_printf(round(usual) / 1e4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_powers_of_ten_and_what_rounds_to_them),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_what_is_no_usual_number),
        cmocka_unit_test(test_any_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
