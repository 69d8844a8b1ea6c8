/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct krait_arena arena;

static const struct krait_json *read_json(const char *text)
{
    struct krait_json *value = NULL;
    struct krait_err err = { 0 };
    if (krait_json_read(&value, &arena, text, strlen(text), 0, &err))
        fail_msg("%s: %s", text, err.text);
    return value;
}

static void refuses_bytes(const char *text, size_t size, const char *why)
{
    struct krait_json *value = NULL;
    struct krait_err err = { 0 };
    assert_int_equal(krait_json_read(&value, &arena, text, size, 0, &err), -EBADMSG);
    assert_null(value);
    if (!strstr(err.text, why))
        fail_msg("'%s' does not say '%s'", err.text, why);
}

static void refuses(const char *text, const char *why)
{
    refuses_bytes(text, strlen(text), why);
}

static void values_are_read_in_their_order(void **state)
{
    const struct krait_json *top =
        read_json(" {\"a\": [1, -2, null, true, false, 1.5e3], \"\": {} , \"b\":\"c\"}\n");
    assert_int_equal(top->kind, KRAIT_JSON_OBJECT);
    assert_int_equal(top->count, 3);
    assert_int_equal(top->at, 1);
    const struct krait_json *a = krait_json_get(top, "a"), *item = a->first;
    assert_int_equal(a->count, 6);
    static const enum krait_json_kind kinds[] = { KRAIT_JSON_UNSIGNED, KRAIT_JSON_NEGATIVE, KRAIT_JSON_NULL,
                                                  KRAIT_JSON_TRUE,     KRAIT_JSON_FALSE,    KRAIT_JSON_REAL };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++, item = item->next)
        assert_int_equal(item->kind, kinds[i]);
    assert_null(item);
    assert_string_equal(krait_json_get(top, "b")->text, "c");
    assert_int_equal(krait_json_get(top, "")->count, 0);
    assert_null(krait_json_get(top, "c"));
    assert_null(krait_json_get(a, "c"));
}

static void integers_have_64_bits(void **state)
{
    assert_true(read_json("18446744073709551615")->number == UINT64_MAX);
    assert_true((int64_t)read_json("-9223372036854775808")->number == INT64_MIN);
    assert_int_equal(read_json("-0")->kind, KRAIT_JSON_UNSIGNED);
    assert_int_equal(read_json("0")->number, 0);
    assert_int_equal(read_json("99999999999999999999.5")->kind, KRAIT_JSON_REAL);
    assert_int_equal(read_json("18446744073709551616")->kind, KRAIT_JSON_REAL);
    assert_int_equal(read_json("-9223372036854775809")->kind, KRAIT_JSON_REAL);
    assert_int_equal(read_json("[-99999999999999999999, 1]")->count, 2);
    assert_int_equal(read_json("010")->number, 10);
    refuses("-", "byte 1: the text ends where a digit should be");
    refuses("1.", "byte 2: the text ends where a digit should be");
    refuses("1e+", "byte 3: the text ends where a digit should be");
    refuses(".5", "byte 0: '.' where a value should be");
}

static void escapes_become_what_they_stand_for(void **state)
{
    assert_string_equal(read_json("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")->text, "\"\\/\b\f\n\r\t");
    assert_string_equal(read_json("\"\\u0041\\u00e9\\u20AC\\ud83d\\udc0d\"")->text,
                        "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8D");
    assert_string_equal(read_json("\"\xF0\x9F\x90\x8D\"")->text, "\xF0\x9F\x90\x8D");
    refuses("\"\\x\"", "byte 2: 'x' where an escape's letter should be");
    refuses("\"\\u12g4\"", "byte 5: 'g' where a hexadecimal digit should be");
    refuses("\"\\ud83d\"", "byte 1: half of a surrogate pair");
    refuses("\"\\ud83d\\u0041\"", "byte 1: half of a surrogate pair");
    refuses("\"\\udc0d\"", "byte 1: half of a surrogate pair");
    assert_string_equal(read_json("\"a\\u0000b\"")->text, "a");
    refuses("\"a\nb\"", "byte 2: a control character");
    refuses("\"a\xFF\"", "byte 2: not UTF-8");
    refuses("\"a", "byte 0: a string has no end");
    refuses("\"\\", "byte 2: the text ends");
    refuses_bytes("\"a\0b\"", 5, "byte 2: a control character");
}

static void what_is_not_json_is_refused_with_its_byte(void **state)
{
    refuses("", "byte 0: the text ends where a value should be");
    refuses("[1, 2,]", "byte 6: ']' where a value should be");
    refuses("{\"a\": 1,}", "byte 8: '}' where a key's quote should be");
    refuses("{\"a\" 1}", "byte 5: '1' where ':' should be");
    refuses("[1 2]", "byte 3: '2' where ',' or ']' should be");
    refuses("{\"a\": 1 \"b\": 2}", "byte 8: '\"' where ',' or '}' should be");
    refuses("{a: 1}", "byte 1: 'a'");
    refuses("nul", "byte 0: 'n' where a value should be");
    refuses("1 1", "byte 2: '1' where the text's end should be");
    refuses("// x\n1", "byte 0: '/'");
    refuses("{\"a\": 1, \"a\": 2}", "byte 9: the key \"a\" stands twice");
    refuses("[\x01", "byte 1: a byte 0x01");
    refuses("NaN", "byte 0: 'N'");
}

static void depth_is_bounded(void **state)
{
    char text[4 * KRAIT_JSON_MAX_DEPTH];
    memset(text, '[', sizeof(text));
    refuses_bytes(text, sizeof(text), "byte 512: values within values deeper than 512");
    memset(text + KRAIT_JSON_MAX_DEPTH, ']', KRAIT_JSON_MAX_DEPTH);
    text[2 * KRAIT_JSON_MAX_DEPTH] = 0;
    assert_int_equal(read_json(text)->count, 1);
}

static void bytes_are_counted_from_the_base(void **state)
{
    struct krait_json *value = NULL;
    struct krait_err err = { 0 };
    assert_int_equal(krait_json_read(&value, &arena, "[x", 2, 100, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "byte 101:"));
    assert_int_equal(krait_json_read(&value, &arena, " 7", 2, 100, &err), 0);
    assert_int_equal(value->at, 101);
}

static int free_arena(void **state)
{
    krait_arena_done(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_their_order),
        cmocka_unit_test(integers_have_64_bits),
        cmocka_unit_test(escapes_become_what_they_stand_for),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_byte),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(bytes_are_counted_from_the_base),
    };
    return cmocka_run_group_tests(tests, NULL, free_arena);
}
