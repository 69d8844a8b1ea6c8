/* SPDX-License-Identifier: Apache-2.0
 *
 * What profiles are made of: the histogram, ticks to nanoseconds, numbers as text, tables.
 */
#include "base/fmt.h"
#include "base/spread.h"
#include "trace/ticks.h"
#include "view/table.h"
#include "view/width.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it */
#include <cmocka.h>
#include <math.h>
#include <string.h>

static void quantiles_below_128_are_exact(void **state)
{
    struct krait_hist hist = { 0 };
    for (uint64_t v = 1; v <= 100; v++)
        assert_int_equal(krait_hist_add(&hist, v), 0);
    assert_int_equal(krait_hist_quantile(&hist, 0.50), 50);
    assert_int_equal(krait_hist_quantile(&hist, 0.99), 99);
    assert_int_equal(krait_hist_quantile(&hist, 1.0), 100);
    assert_int_equal(krait_hist_count(&hist), 100);
    krait_hist_done(&hist);
}

static void any_value_comes_back_within_a_hundredth(void **state)
{
    for (int shift = 0; shift < 64; shift++) {
        for (uint64_t low = 0; low < 3; low++) {
            uint64_t value = ((uint64_t)1 << shift) + (low << shift) / 3;
            struct krait_hist hist = { 0 };
            assert_int_equal(krait_hist_add(&hist, value), 0);
            uint64_t back = krait_hist_quantile(&hist, 0.5);
            double error = fabs((double)back - (double)value) / (double)value;
            assert_true(error <= 0.008);
            krait_hist_done(&hist);
        }
    }
    struct krait_hist hist = { 0 };
    assert_int_equal(krait_hist_add(&hist, UINT64_MAX), 0);
    assert_int_equal(krait_hist_add(&hist, 0), 0);
    assert_int_equal(krait_hist_quantile(&hist, 0.5), 0);
    assert_true(krait_hist_quantile(&hist, 0.99) > UINT64_MAX / 100 * 99);
    krait_hist_done(&hist);
}

static void an_empty_histogram_has_no_quantiles(void **state)
{
    struct krait_hist hist = { 0 };
    assert_int_equal(krait_hist_quantile(&hist, 0.5), 0);
    krait_hist_done(&hist);
}

/* The middle of a class is below its upper values and above its lower ones. */
static void quantiles_of_a_spread_are_never_outside_of_what_was_added(void **state)
{
    for (unsigned bit = 7; bit < 63; bit++) {
        const uint64_t edges[] = { 1ull << bit, (1ull << bit) + 1, (1ull << (bit + 1)) - 1 };
        for (size_t i = 0; i < KRAIT_ARRAY_LEN(edges); i++) {
            struct krait_spread spread = { 0 };
            assert_int_equal(krait_spread_add(&spread, edges[i]), 0);
            assert_int_equal(krait_spread_quantile(&spread, 0.5), edges[i]);
            assert_int_equal(krait_spread_quantile(&spread, 0.99), edges[i]);
            krait_spread_done(&spread);
        }
    }
    struct krait_spread many = { 0 };
    assert_int_equal(krait_spread_quantile(&many, 0.5), 0);
    for (uint64_t ns = 1 << 20; ns < (1 << 20) + 100; ns++)
        assert_int_equal(krait_spread_add(&many, ns + (1 << 14) - 200), 0); /* the upper end of one class */
    assert_true(krait_hist_quantile(&many.hist, 0.5) < many.min);
    assert_int_equal(krait_spread_quantile(&many, 0.5), many.min);
    krait_spread_done(&many);
}

static void values_of_all_sizes_in_any_order_are_counted(void **state)
{
    struct krait_hist hist = { 0 };
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(krait_hist_add(&hist, 1ull << (i * 37 % 64)), 0);
    assert_int_equal(krait_hist_count(&hist), 64);
    for (uint32_t i = 1; i <= 64; i++) {
        double value = (double)krait_hist_quantile(&hist, i / 64.0), exact = ldexp(1, (int)i - 1);
        assert_true(fabs(value - exact) <= 0.008 * exact);
    }
    krait_hist_done(&hist);
}

static void a_count_that_is_full_stays_full(void **state)
{
    struct krait_hist hist = { 0 };
    assert_int_equal(krait_hist_add(&hist, 0), 0);
    hist.counts[0] = UINT32_MAX;
    assert_int_equal(krait_hist_add(&hist, 0), 0);
    assert_int_equal(krait_hist_count(&hist), UINT32_MAX);
    krait_hist_done(&hist);
}

static void ticks_become_the_exact_nanosecond(void **state)
{
    static const uint64_t freqs[] = { 1,          3,          1000,       24000000,   999999937, 1000000000,
                                      1000000007, 2095078000, 2999999999, 3600000000, 4294967295 };
    static const uint64_t ticks[] = { 0,         1, 2, 999, 123456789, 2095077999, 2095078000, 987654321987,
                                      1ull << 52 };
    for (size_t f = 0; f < KRAIT_ARRAY_LEN(freqs); f++) {
        struct krait_ticks scale;
        uint64_t offset = freqs[f] / 3;
        krait_ticks_init(&scale, freqs[f], 7, offset);
        for (size_t i = 0; i < KRAIT_ARRAY_LEN(ticks); i++) {
            unsigned __int128 exact = ((unsigned __int128)ticks[i] + offset) * KRAIT_NS_PER_S / freqs[f];
            assert_int_equal(krait_ticks_ns(&scale, ticks[i]), 7 * KRAIT_NS_PER_S + (uint64_t)exact);
        }
        for (uint64_t t = 5 * freqs[f]; t-- > 5 * freqs[f] - 3;) { /* and back */
            unsigned __int128 exact = ((unsigned __int128)t + offset) * KRAIT_NS_PER_S / freqs[f];
            assert_int_equal(krait_ticks_ns(&scale, t), 7 * KRAIT_NS_PER_S + (uint64_t)exact);
        }
    }
}

static void durations_have_four_digits_and_a_unit(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0 ns" },
        { 999, "999 ns" },
        { 1000, "1.000 us" },
        { 12345, "12.35 us" },
        { 999949, "999.9 us" },
        { 999950, "1.000 ms" },
        { 123456789, "123.5 ms" },
        { 1234567890, "1.235 s" },
        { 599 * KRAIT_NS_PER_S, "599.0 s" },
        { 600 * KRAIT_NS_PER_S, "10.00 min" },
        { 7200 * KRAIT_NS_PER_S, "2.00 h" },
        { 359999 * KRAIT_NS_PER_S, "100.00 h" },
        { 360000 * KRAIT_NS_PER_S, "4.17 d" },
    };
    char buf[KRAIT_FMT_SIZE];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++)
        assert_string_equal(krait_fmt_ns(buf, rows[i].ns), rows[i].text);
    krait_fmt_ns(buf, UINT64_MAX);
    assert_non_null(strstr(buf, " d"));
}

static void counts_bytes_and_shares_are_readable(void **state)
{
    char buf[KRAIT_FMT_SIZE];
    assert_string_equal(krait_fmt_count(buf, 0), "0");
    assert_string_equal(krait_fmt_count(buf, 999), "999");
    assert_string_equal(krait_fmt_count(buf, 1234567), "1,234,567");
    assert_string_equal(krait_fmt_count(buf, UINT64_MAX), "18,446,744,073,709,551,615");
    assert_string_equal(krait_fmt_bytes(buf, 1023), "1023 B");
    assert_string_equal(krait_fmt_bytes(buf, 1536), "1.5 KiB");
    assert_string_equal(krait_fmt_bytes(buf, 1024 * 1024 - 1), "1.0 MiB");
    assert_string_equal(krait_fmt_share(buf, 1, 3), "33.3%");
    assert_string_equal(krait_fmt_share(buf, 1, 100000), "<0.1%");
    assert_string_equal(krait_fmt_share(buf, 0, 0), "0.0%");
}

static void times_are_read_with_and_without_units(void **state)
{
    uint64_t ns;
    assert_int_equal(krait_parse_ns("1.5s", &ns), 0);
    assert_int_equal(ns, 1500000000);
    assert_int_equal(krait_parse_ns("1.5", &ns), 0);
    assert_int_equal(ns, 1500000000);
    assert_int_equal(krait_parse_ns("200ms", &ns), 0);
    assert_int_equal(ns, 200000000);
    assert_int_equal(krait_parse_ns("3us", &ns), 0);
    assert_int_equal(ns, 3000);
    static const char *const bad[] = { "", "s", "-1s", "1x", "1s2", "nan", "inf" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(bad); i++)
        assert_int_equal(krait_parse_ns(bad[i], &ns), -EINVAL);
}

static void control_characters_are_escaped(void **state)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_fmt_safe(&out, "a\033[31m\n\t\x7f\xc2\x9b"
                         "b\xff\xe2\x80\xae\xc3\xa9");
    assert_string_equal(out.data, "a\\x1b[31m\\n\\t\\x7f\\xc2\\x9bb\\xff\\xe2\\x80\\xae\xc3\xa9");
}

static void assert_shortened(const char *text, uint32_t columns, const char *expected)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_width_shorten(&out, text, columns, true);
    assert_string_equal(out.data ? out.data : "", expected);
    assert_true(krait_width_of(expected, strlen(expected)) <= columns);
}

static void names_lose_their_middle(void **state)
{
    assert_shortened("json.decoder", 12, "json.decoder");
    assert_shortened("json.decoder.JSONDecoder.raw_decode", 30, "json.de…JSONDecoder.raw_decode");
    assert_shortened("json.decoder.JSONDecoder.raw_decode", 24, "json.decoder.…raw_decode");
    assert_shortened("abcdefghijklmnopqrstuvwxyz", 10, "abcd…vwxyz");
    assert_shortened("abcdef", 2, "ab");
    assert_shortened("Thread-7 (serve_forever) 4711", 22, "Thread-7 (serve…) 4711");
    assert_shortened("Thread-7 (serve_forever)", 12, "Thread-7 (…)");
    assert_shortened("Thread-7 (serve_forever)", 11, "Thre…rever)");
    assert_shortened("decoder.decode (C)", 14, "dec…decode (C)");
    assert_shortened("/usr/lib/python3/json/encoder.py", 26, "…/python3/json/encoder.py");
    assert_shortened("/usr/lib/python3/json/encoder.py", 12, "…/encoder.py");
    assert_shortened("/usr/lib/python3/json/encoder.py", 11, "…encoder.py");
    assert_shortened("/usr/lib/python3/json/encoder.py", 10, "encoder.py");
    assert_shortened("/usr/lib/python3/json/encoder.py", 9, "/usr/l…py"); /* not even the name fits */
    assert_shortened("libz.so.1.2.13+0x5d80 (C)", 24, "libz+0x5d80 (C)");
    assert_shortened("libz.so.1.2.13+0x5d80", 10, "libz…x5d80");
    assert_shortened("libpython3.11.so.1.0+0x4970", 20, "libpython3.11+0x4970");
    assert_shortened("python3.11+0x515d00 (C)", 20, "pyth…11+0x515d00 (C)");
    assert_shortened("数数数数数数数数", 9, "数数…数数");
}

static void templates_lose_their_arguments_first(void **state)
{
    (void)state;
    assert_shortened("std::vector<int>::reserve", 25, "std::vector<int>::reserve");
    assert_shortened("std::vector<int>::reserve", 24, "std::vector<…>::reserve");
    assert_shortened("std::map<int, A<B> >::sum<double> (C)", 33, "std::map<…>::sum<double> (C)");
    assert_shortened("std::map<int, A<B> >::sum<double> (C)", 24, "std::map<…>::sum<…> (C)");
    assert_shortened("std::map<int, A<B> >::sum<double> (C)", 16, "std::…sum<…> (C)");
    assert_shortened("std::function<void (int)>::operator()", 30, "std::function<…>::operator()");
    assert_shortened("apply<decltype(x->y)>::Item::operator->", 32, "apply<…>::Item::operator->");
    assert_shortened("std::mem::align_of::<f64>", 24, "std::mem::align_of::<…>");
    assert_shortened("a::Item::operator<", 12, "a:…operator<");
    assert_shortened("outer.<locals>.<lambda>", 14, "outer…<lambda>");
    assert_shortened("if a<b then", 8, "if …then");
}

static void assert_command(const char *text, uint32_t columns, const char *expected)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_width_command(&out, text, columns, true);
    assert_string_equal(out.data ? out.data : "", expected);
}

static void commands_keep_what_is_run(void **state)
{
    const char *command = "/srv/env/bin/python3 /srv/env/bin/gunicorn -w 2 web:app";
    assert_command(command, UINT32_MAX, "python3 /srv/env/bin/gunicorn -w 2 web:app");
    assert_command(command, 42, "python3 /srv/env/bin/gunicorn -w 2 web:app");
    assert_command(command, 41, "python3 gunicorn -w 2 web:app");
    assert_command(command, 20, "python3 gunicorn -w…");
    assert_command(command, 4, "pyt…");
    assert_command("/bin/cat", 3, "cat");
    assert_command("", 3, "");
}

static const struct krait_column columns[] = {
    { "n", 0, 0, 0 },
    { "often", 0, 0, 2 },
    { "rare", 0, 0, 3 },
    { "name", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 6, 0 },
};

static char *print_table(uint32_t width, struct krait_buf *out)
{
    struct krait_table *table;
    assert_int_equal(krait_table_new(&table, columns, KRAIT_ARRAY_LEN(columns)), 0);
    static const char *const cells[] = { "1", "22", "333", "some.long.name", "12", "2", "3", "short" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cells); i++)
        krait_table_cell(table, cells[i], KRAIT_STYLE_NONE, 0);
    struct krait_table_look look = { .width = width, .utf8 = false };
    assert_int_equal(krait_table_print(table, &look, out), 0);
    krait_table_free(table);
    return out->data;
}

static void a_table_as_wide_as_it_gets_aligns_numbers_right(void **state)
{
    KRAIT_AUTO_BUF out = { 0 };
    assert_string_equal(print_table(0, &out), " n  often  rare  name\n"
                                              " 1     22   333  some.long.name\n"
                                              "12      2     3  short\n");
}

static void a_narrow_table_drops_columns_then_shortens(void **state)
{
    KRAIT_AUTO_BUF out = { 0 };
    assert_string_equal(print_table(17, &out), " n  often  name\n"
                                               " 1     22  so..me\n"
                                               "12      2  short\n");
}

static void no_width_is_too_small(void **state)
{
    for (uint32_t width = 1; width < 40; width++) {
        KRAIT_AUTO_BUF out = { 0 };
        for (const char *line = print_table(width, &out); *line; line += strcspn(line, "\n") + 1)
            assert_true(strcspn(line, "\n") <= KRAIT_MAX(width, 5u)); /* a number and one letter are kept */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_below_128_are_exact),
        cmocka_unit_test(any_value_comes_back_within_a_hundredth),
        cmocka_unit_test(an_empty_histogram_has_no_quantiles),
        cmocka_unit_test(quantiles_of_a_spread_are_never_outside_of_what_was_added),
        cmocka_unit_test(values_of_all_sizes_in_any_order_are_counted),
        cmocka_unit_test(a_count_that_is_full_stays_full),
        cmocka_unit_test(ticks_become_the_exact_nanosecond),
        cmocka_unit_test(durations_have_four_digits_and_a_unit),
        cmocka_unit_test(counts_bytes_and_shares_are_readable),
        cmocka_unit_test(times_are_read_with_and_without_units),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(names_lose_their_middle),
        cmocka_unit_test(commands_keep_what_is_run),
        cmocka_unit_test(templates_lose_their_arguments_first),
        cmocka_unit_test(a_table_as_wide_as_it_gets_aligns_numbers_right),
        cmocka_unit_test(a_narrow_table_drops_columns_then_shortens),
        cmocka_unit_test(no_width_is_too_small),
    };
    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
