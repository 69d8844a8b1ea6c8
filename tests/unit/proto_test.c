/* SPDX-License-Identifier: Apache-2.0 */
#include "export/proto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect_bytes(struct krait_buf *buf, const void *bytes, size_t n)
{
    assert_false(buf->failed);
    assert_int_equal(buf->len, n);
    assert_memory_equal(buf->data, bytes, n);
    krait_buf_done(buf);
}

#define EXPECT(buf, bytes) expect_bytes(buf, bytes, sizeof(bytes) - 1)

static void varints_have_seven_bits_a_byte(void **state)
{
    struct krait_buf buf = { 0 };
    krait_pb_varint(&buf, 0);
    EXPECT(&buf, "\x00");
    krait_pb_varint(&buf, 127);
    EXPECT(&buf, "\x7f");
    krait_pb_varint(&buf, 128);
    EXPECT(&buf, "\x80\x01");
    krait_pb_varint(&buf, 150);
    EXPECT(&buf, "\x96\x01");
    krait_pb_varint(&buf, UINT32_MAX);
    EXPECT(&buf, "\xff\xff\xff\xff\x0f");
    krait_pb_varint(&buf, UINT64_MAX);
    EXPECT(&buf, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

static void varints_read_back_at_every_length(void **state)
{
    for (unsigned bits = 0; bits < 64; bits++) {
        for (int less = 0; less < 2; less++) {
            uint64_t value = (1ull << bits) - (uint64_t)less, back = 0;
            KRAIT_AUTO_BUF buf = { 0 };
            krait_pb_varint(&buf, value);
            for (size_t i = 0; i < buf.len; i++) {
                assert_int_equal((uint8_t)buf.data[i] >> 7, i + 1 < buf.len);
                back |= (uint64_t)(buf.data[i] & 0x7F) << 7 * i;
            }
            assert_true(back == value);
        }
    }
}

static void a_field_is_its_key_and_its_value(void **state)
{
    struct krait_buf buf = { 0 };
    krait_pb_u64(&buf, 1, 150);
    krait_pb_cstr(&buf, 2, "hi");
    krait_pb_u64(&buf, 60, 1); /* a key of two bytes */
    EXPECT(&buf, "\x08\x96\x01\x12\x02hi\xe0\x03\x01");
}

static void strings_become_utf8(void **state)
{
    struct krait_buf buf = { 0 };
    krait_pb_cstr(&buf, 2, "a\xff\xc3\xa9");
    EXPECT(&buf, "\x12\x06"
                 "a\xef\xbf\xbd\xc3\xa9");
    krait_pb_cstr(&buf, 2, "");
    EXPECT(&buf, "\x12\x00");
}

static void messages_nest(void **state)
{
    struct krait_buf buf = { 0 };
    size_t outer = krait_pb_begin(&buf, 1);
    size_t inner = krait_pb_begin(&buf, 2);
    krait_pb_u64(&buf, 3, 5);
    krait_pb_end(&buf, inner);
    krait_pb_u64(&buf, 4, 6);
    krait_pb_end(&buf, outer);
    EXPECT(&buf, "\x0a\x06\x12\x02\x18\x05\x20\x06");
}

/* At 128 and 16384 bytes the length takes one more byte, and what follows it has to move. */
static void long_messages_make_room_for_their_length(void **state)
{
    static const size_t sizes[] = { 0, 1, 127, 128, 129, 16383, 16384, 3000000 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(sizes); i++) {
        KRAIT_AUTO_FREE char *body = calloc(1, sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++)
            body[k] = (char)('a' + k % 26);
        KRAIT_AUTO_BUF nested = { 0 }, plain = { 0 };
        size_t mark = krait_pb_begin(&nested, 7);
        krait_buf_add(&nested, body, sizes[i]);
        krait_pb_end(&nested, mark);
        krait_pb_varint(&plain, 7 << 3 | 2);
        krait_pb_varint(&plain, sizes[i]);
        krait_buf_add(&plain, body, sizes[i]);
        assert_int_equal(nested.len, plain.len);
        assert_memory_equal(nested.data, plain.data, plain.len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_have_seven_bits_a_byte),
        cmocka_unit_test(varints_read_back_at_every_length),
        cmocka_unit_test(a_field_is_its_key_and_its_value),
        cmocka_unit_test(strings_become_utf8),
        cmocka_unit_test(messages_nest),
        cmocka_unit_test(long_messages_make_room_for_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
