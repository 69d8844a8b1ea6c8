/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_str(const char *in, size_t n, const char *out)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_json_str(&buf, in, n);
    assert_false(buf.failed);
    assert_string_equal(buf.data, out);
    assert_int_equal(buf.len, strlen(out));
}

#define EXPECT_STR(in, out) expect_str(in, sizeof(in) - 1, out)
#define BAD                 "\xEF\xBF\xBD"

static void plain_text_is_only_quoted(void **state)
{
    EXPECT_STR("", "\"\"");
    EXPECT_STR("json.decoder.JSONDecoder.decode", "\"json.decoder.JSONDecoder.decode\"");
    EXPECT_STR("<lambda> / a'b", "\"<lambda> / a'b\"");
}

static void a_character_is_read_with_its_length(void **state)
{
    static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D\x80\xE2\x82";
    static const uint32_t characters[] = { 'a', 0xE9, 0x20AC, 0x1F40D, 0xFFFD, 0xFFFD, 0xFFFD };
    static const size_t lengths[] = { 1, 2, 3, 4, 1, 1, 1 };
    size_t at = 0, n = sizeof(text) - 1, len;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(characters); i++, at += len) {
        assert_int_equal(krait_utf8_get(text + at, n - at, &len), characters[i]);
        assert_int_equal(len, lengths[i]);
    }
    assert_int_equal(at, n);
}

static void quotes_backslashes_and_control_bytes_are_escaped(void **state)
{
    EXPECT_STR("a\"b\\c", "\"a\\\"b\\\\c\"");
    EXPECT_STR("\n\r\t\b\f", "\"\\n\\r\\t\\b\\f\"");
    EXPECT_STR("\x01\x1f\0x", "\"\\u0001\\u001f\\u0000x\"");
    EXPECT_STR("\x7f", "\"\\u007f\"");
}

/* Of one byte, by what a text of it alone is written as. */
static unsigned found_in(uint8_t c)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_json_str(&buf, (const char *)&c, 1);
    return c >= 0x80 ? KRAIT_JSON_WIDE : buf.len == 3 && buf.data[1] == (char)c ? 0 : KRAIT_JSON_ESCAPES;
}

static void a_copy_tells_what_is_in_it_wherever_it_is(void **state)
{
    enum { MOST = 20, AROUND = 4 };
    static const char others[] = { 'a', ' ', '~', '!', '#', '[', ']' };
    for (unsigned c = 0; c < 256; c++) {
        for (size_t n = 1; n < MOST; n++) {
            for (size_t at = 0; at < n; at++) {
                char from[MOST], to[MOST + AROUND], plain[MOST + AROUND];
                memset(from, others[(c + n + at) % sizeof(others)], n);
                memset(to, '?', sizeof(to));
                assert_int_equal(krait_json_copy(plain, from, n), 0);
                from[at] = (char)c;
                assert_int_equal(krait_json_copy(to, from, n), found_in((uint8_t)c));
                assert_memory_equal(to, from, n);
                for (size_t i = n; i < sizeof(to); i++)
                    assert_int_equal(to[i], '?');
            }
        }
    }
    assert_int_equal(krait_json_copy(NULL, "", 0), 0);
    char to[32];
    assert_int_equal(krait_json_copy(to, "\xC3\xA9 and \"quotes\"", 15),
                     KRAIT_JSON_WIDE | KRAIT_JSON_ESCAPES);
}

static void whole_numbers_are_written_in_place(void **state)
{
    uint64_t numbers[] = {
        0, 9, 10, 11, 99, 100, 12345, UINT32_MAX, 999999999999, UINT64_MAX - 1, UINT64_MAX
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(numbers); i++) {
        char to[KRAIT_JSON_U64_BYTES + 1], expected[32];
        *krait_json_put_u64(to, numbers[i]) = '\0';
        snprintf(expected, sizeof(expected), "%ju", (uintmax_t)numbers[i]);
        assert_string_equal(to, expected);
    }
}

static void valid_utf8_passes_unchanged(void **state)
{
    EXPECT_STR("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D", "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D\"");
    EXPECT_STR("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", "\"\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"");
}

static void every_byte_that_is_no_utf8_becomes_a_replacement(void **state)
{
    EXPECT_STR("a\xFFz", "\"a" BAD "z\"");
    EXPECT_STR("\x80", "\"" BAD "\"");
    EXPECT_STR("\xC0\xAF", "\"" BAD BAD "\"");                 /* overlong */
    EXPECT_STR("\xE0\x80\xAF", "\"" BAD BAD BAD "\"");         /* overlong */
    EXPECT_STR("\xED\xA0\x80", "\"" BAD BAD BAD "\"");         /* surrogate */
    EXPECT_STR("\xF4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""); /* above U+10FFFF */
    EXPECT_STR("\xE2\x82\"", "\"" BAD BAD "\\\"\"");           /* cut short by a quote */
    EXPECT_STR("\xF0\x9F\x90", "\"" BAD BAD BAD "\"");         /* cut short by the end */
}

static void ten_thousand_characters_come_out_whole(void **state)
{
    enum { N = 10000 };
    KRAIT_AUTO_FREE char *text = malloc(N);
    memset(text, '"', N);
    KRAIT_AUTO_BUF buf = { 0 };
    krait_json_str(&buf, text, N);
    assert_int_equal(buf.len, 2 * N + 2);
}

static void numbers_read_back_the_same(void **state)
{
    static const uint64_t whole[] = { 0, 9, 10, 1893456000000000001ull, UINT64_MAX };
    (void)state;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(whole); i++) {
        KRAIT_AUTO_BUF buf = { 0 };
        krait_json_u64(&buf, whole[i]);
        assert_true(strtoull(buf.data, NULL, 10) == whole[i]);
    }
}

static void keys_get_their_commas(void **state)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_buf_char(&buf, '{');
    krait_json_key(&buf, "a");
    krait_json_u64(&buf, 1);
    krait_json_key(&buf, "b");
    krait_json_cstr(&buf, "x");
    krait_buf_char(&buf, '}');
    assert_string_equal(buf.data, "{\"a\":1,\"b\":\"x\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_only_quoted),
        cmocka_unit_test(quotes_backslashes_and_control_bytes_are_escaped),
        cmocka_unit_test(a_copy_tells_what_is_in_it_wherever_it_is),
        cmocka_unit_test(whole_numbers_are_written_in_place),
        cmocka_unit_test(valid_utf8_passes_unchanged),
        cmocka_unit_test(a_character_is_read_with_its_length),
        cmocka_unit_test(every_byte_that_is_no_utf8_becomes_a_replacement),
        cmocka_unit_test(ten_thousand_characters_come_out_whole),
        cmocka_unit_test(numbers_read_back_the_same),
        cmocka_unit_test(keys_get_their_commas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
