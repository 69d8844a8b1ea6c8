/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/format.h"
#include "event/payload.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* ---- every event of the table ---- */

/* A value for each field that differs from its neighbours'. */
static uint8_t seed;

static void fill_bytes(void *field, size_t n)
{
    memset(field, ++seed, n);
}

static void fill_text(void *field, size_t n)
{
    static const char *const texts[] = { "", "a", "\303\244\342\202\254" };
    memcpy(field, &texts[++seed % KRAIT_ARRAY_LEN(texts)], n);
}

static void same_bytes(const void *a, const void *b, size_t n)
{
    assert_memory_equal(a, b, n);
}

static void same_text(const void *a, const void *b, size_t n)
{
    assert_string_equal(*(const char *const *)a, *(const char *const *)b);
}

#define BY_TYPE(field, text, bytes) _Generic(*(field), const char * : text, default : bytes)

#define KRAIT_EVENT(id, symbol, name, doc)                      \
    static void fill_##symbol(struct krait_payload_##symbol *p) \
    {                                                           \
        (void)p;
#define KRAIT_FIELD(symbol, type, field, doc) \
    BY_TYPE(&p->field, fill_text, fill_bytes)(&p->field, sizeof(p->field));
#define KRAIT_EVENT_END(symbol) }
#include "event/events.def"

#define KRAIT_EVENT(id, symbol, name, doc)                            \
    static void same_##symbol(const struct krait_payload_##symbol *a, \
                              const struct krait_payload_##symbol *b) \
    {                                                                 \
        (void)a, (void)b;
#define KRAIT_FIELD(symbol, type, field, doc) \
    BY_TYPE(&a->field, same_text, same_bytes)(&a->field, &b->field, sizeof(a->field));
#define KRAIT_EVENT_END(symbol) }
#include "event/events.def"

static void what_is_put_is_read_again(void **state)
{
    uint8_t bytes[KRAIT_PAYLOAD_MAX];
    size_t n;
#define KRAIT_EVENT(id, symbol, name, doc)                                                                   \
    {                                                                                                        \
        struct krait_payload_##symbol in, out;                                                               \
        fill_##symbol(&in);                                                                                  \
        n = krait_put_##symbol(bytes, &in);                                                                  \
        assert_true((ptrdiff_t)n >= (ptrdiff_t)KRAIT_BYTES_##symbol);                                        \
        if (krait_event_payload_bytes[id] < KRAIT_PAYLOAD_VARIES)                                            \
            assert_int_equal(n, krait_event_payload_bytes[id]);                                              \
        struct krait_cursor cursor = { bytes, bytes + n }, skipped = cursor, cut = { bytes, bytes + n - 1 }; \
        assert_true(krait_read_##symbol(&cursor, &out));                                                     \
        assert_ptr_equal(cursor.at, cursor.end);                                                             \
        same_##symbol(&in, &out);                                                                            \
        assert_true(krait_payload_skip(id, &skipped));                                                       \
        assert_ptr_equal(skipped.at, skipped.end);                                                           \
        if (n)                                                                                               \
            assert_false(krait_payload_skip(id, &cut));                                                      \
    }
#include "event/events.def"
    struct krait_cursor none = { bytes, bytes + sizeof(bytes) };
    assert_false(krait_payload_skip(KRAIT_EVENT_IDS, &none));
}

/* ---- strings ---- */

static void long_strings_are_cut_between_characters(void **state)
{
    static char text[3 * KRAIT_PAYLOAD_MAX + 1];
    uint8_t bytes[KRAIT_PAYLOAD_MAX + 1];
    for (size_t i = 0; i + 3 < sizeof(text); i += 3)
        memcpy(text + i, "\342\202\254", 3);
    for (size_t shift = 0; shift < 3; shift++) {
        struct krait_payload_code_define in = { .qualname = text + 3 * shift, .file = text }, out = { 0 };
        in.module = shift ? text : "m";
        bytes[KRAIT_PAYLOAD_MAX] = 0xee;
        size_t n = krait_put_code_define(bytes, &in);
        assert_true(n <= KRAIT_PAYLOAD_MAX && n > KRAIT_PAYLOAD_MAX - 3);
        assert_int_equal(bytes[KRAIT_PAYLOAD_MAX], 0xee);
        struct krait_cursor cursor = { bytes, bytes + n };
        assert_true(krait_read_code_define(&cursor, &out));
        assert_ptr_equal(cursor.at, cursor.end);
        assert_int_equal(strlen(out.qualname) % 3, 0);
        assert_int_equal(strlen(out.file) % 3, 0);
    }
}

/* ---- headers ---- */

static void times_and_ids_are_read_from_both_forms(void **state)
{
    const uint64_t window = 1ull << KRAIT_CTF_TS_BITS, t = 5 * window - 3;
    uint8_t bytes[64];
    struct krait_event_head head = { .t = t };
    uint32_t words[] = { krait_head_pack(7, t + 2),
                         krait_head_pack(1, t + 6) }; /* the second is beyond the window */
    memcpy(bytes, words, sizeof(words));
    size_t n = sizeof(words) + krait_head_extend(bytes + sizeof(words), 1000, 3);
    struct krait_cursor cursor = { bytes, bytes + n };
    assert_true(krait_head_read(&cursor, &head));
    assert_int_equal(head.id, 7);
    assert_int_equal(head.t, t + 2);
    assert_true(krait_head_read(&cursor, &head));
    assert_int_equal(head.t, t + 6);
    struct krait_cursor cut = { cursor.at, cursor.end - 1 };
    assert_true(krait_head_read(&cursor, &head));
    assert_int_equal(head.id, 1000);
    assert_int_equal(head.t, 3);
    assert_false(krait_head_read(&cursor, &head));
    assert_false(krait_head_read(&cut, &head));
}

static void a_call_is_one_word_of_two_halves(void **state)
{
    uint32_t halves[2], code;
    uint64_t word = krait_head_join(0x12345678, 0x9abcdef0);
    memcpy(halves, &word, sizeof(halves));
    assert_int_equal(halves[0], 0x12345678);
    assert_int_equal(halves[1], 0x9abcdef0);
    assert_int_equal(krait_head_split(word, &code), 0x12345678);
    assert_int_equal(code, 0x9abcdef0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_read_again),
        cmocka_unit_test(long_strings_are_cut_between_characters),
        cmocka_unit_test(times_and_ids_are_read_from_both_forms),
        cmocka_unit_test(a_call_is_one_word_of_two_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
