/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes in, lines out: each case writes a trace into a folder and reads it.
 */
#include "ctf/read/merge.h"
#include "ctf/rows/count.h"
#include "ctf/scalar/bits.h"
#include "ctf/text/pretty.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LE "trace { major = 1; minor = 8; byte_order = le; };\n"
#define BE "trace { major = 1; minor = 8; byte_order = be; };\n"
#define INTS                                                                              \
    "typealias integer { size = 8; } := u8; typealias integer { size = 16; } := u16;\n"   \
    "typealias integer { size = 32; } := u32; typealias integer { size = 64; } := u64;\n" \
    "typealias integer { size = 8; encoding = UTF8; } := text8;\n"
/* One event class and nothing but its fields: the packet is the file. */
#define ONE(order, fields) order INTS "event { name = e; fields := struct { " fields " }; };"

struct folder {
    char path[64];
};

static void put(const struct folder *f, const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static struct folder new_folder(const char *metadata)
{
    struct folder f = { "/tmp/krait-reader-XXXXXX" };
    assert_non_null(mkdtemp(f.path));
    put(&f, "metadata", metadata, strlen(metadata));
    return f;
}

static void drop(const struct folder *f)
{
    static const char *const names[] = { "metadata", "a", "b" };
    char path[128];
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", f->path, names[i]);
        unlink(path);
    }
    rmdir(f->path);
}

/* All lines, then the damage if any. */
static char *read_all(const struct folder *f, unsigned flags)
{
    struct krait_ctf_reader *reader = NULL;
    struct krait_ctf_merge *merge = NULL;
    struct krait_ctf_cursor *cursor;
    struct krait_pretty pretty = { .flags = flags | KRAIT_PRETTY_SECONDS,
                                   .text = KRAIT_TEXT_FIELD_NAMES | KRAIT_TEXT_CONTEXT_NAMES };
    struct krait_buf out = { 0 };
    struct krait_err err = { 0 };
    const char *path = f->path;
    if (krait_ctf_open(&reader, &path, 1, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(krait_ctf_merge_new(&merge, reader, &err), 0);
    while ((cursor = krait_ctf_merge_next(merge)))
        krait_pretty_event(&pretty, cursor, &out);
    const struct krait_err *damage = krait_ctf_merge_damage(merge);
    if (damage->code)
        krait_buf_fmt(&out, "! %s", strstr(damage->text, ": ") + 2);
    krait_ctf_merge_free(merge);
    krait_pretty_done(&pretty);
    krait_ctf_close(reader);
    krait_buf_char(&out, '\0');
    return out.data;
}

static void check(const char *metadata, const void *bytes, size_t n, const char *expected)
{
    struct folder f = new_folder(metadata);
    put(&f, "a", bytes, n);
    KRAIT_AUTO_FREE char *text = read_all(&f, KRAIT_PRETTY_NO_DELTA);
    drop(&f);
    assert_string_equal(text, expected);
}

#define CHECK(metadata, bytes, expected) check(metadata, bytes, sizeof(bytes) - 1, expected)

/* -- bits -- */

static uint64_t naive(const uint8_t *bytes, uint64_t at, unsigned bits, bool be)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bits; i++) {
        uint64_t bit = at + i;
        uint64_t value = bytes[bit / 8] >> (be ? 7 - bit % 8 : bit % 8) & 1;
        v = be ? v << 1 | value : v | value << i;
    }
    return v;
}

static void integers_are_read_at_every_bit_of_every_width(void **state)
{
    uint8_t bytes[24];
    uint64_t seed = 88172645463325252ull;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = (uint8_t)(seed >> 56);
    }
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (uint64_t at = 0; at < 64; at++) {
            assert_int_equal(krait_bits_le(bytes, at, bits), naive(bytes, at, bits, false));
            assert_int_equal(krait_bits_be(bytes, at, bits), naive(bytes, at, bits, true));
        }
    }
}

/* Apart, so that the compiler does not reason about sizes that do not come together. */
static __attribute__((noinline)) uint64_t last_bits(const uint8_t *bytes, size_t n, unsigned bits, bool be)
{
    return be ? krait_bits_be(bytes, n * 8 - bits, bits) : krait_bits_le(bytes, n * 8 - bits, bits);
}

static void the_last_bits_are_read_without_what_follows(void **state)
{
    for (unsigned bits = 1; bits <= 64; bits++) {
        size_t n = (bits + 7) / 8;
        KRAIT_AUTO_FREE uint8_t *bytes = malloc(n); /* the sanitizers see a byte too many */
        memset(bytes, 0xff, n);
        uint64_t all = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
        assert_int_equal(last_bits(bytes, n, bits, false), all);
        assert_int_equal(last_bits(bytes, n, bits, true), all);
    }
}

/* -- fields -- */

static void packed_bits_of_both_orders(void **state)
{
    CHECK(ONE(LE, "integer { size = 3; } a; integer { size = 7; signed = true; } b; integer { size = 6; base "
                  "= 2; } c;"),
          "\xfd\xab", "e: { a = 5, b = -1, c = 0b101010 }\n");
    CHECK(ONE(BE, "integer { size = 3; } a; integer { size = 7; signed = true; } b; integer { size = 6; base "
                  "= 2; } c;"),
          "\xbf\xea", "e: { a = 5, b = -1, c = 0b101010 }\n");
    CHECK(ONE(LE, "u16 n; integer { size = 16; byte_order = network; } be; integer { size = 64; byte_order = "
                  "be; base = 16; } q;"),
          "\x01\x02\x01\x02\0\0\0\0\0\0\xab\xcd", "e: { n = 513, be = 258, q = 0xABCD }\n");
}

static void alignment_is_relative_to_the_packet_and_holds_for_empty_ones(void **state)
{
    CHECK(ONE(LE, "u8 a; integer { size = 8; align = 32; } b; struct { } c; u8 d[0]; u8 e;"), "\1\0\0\0\2\3",
          "e: { a = 1, b = 2, c = { }, d = [ ], e = 3 }\n");
    CHECK(ONE(LE, "u8 a; integer { size = 8; align = 16; } b[0]; u8 c;"), "\1\0\2",
          "e: { a = 1, b = [ ], c = 2 }\n");
    CHECK(ONE(LE, "integer { size = 4; } a; struct { integer { size = 4; } x; } align(16) s;"),
          "\x05\0\x07\0",
          "e: { a = 5, s = { x = 7 } }\n! byte 4, in the packet at byte 0: an event is longer than the rest "
          "of its "
          "packet");
}

static void a_byte_order_cannot_change_within_a_byte(void **state)
{
    CHECK(ONE(LE, "integer { size = 4; byte_order = le; } a; integer { size = 4; byte_order = be; } b;"),
          "\1", "! byte 1, in the packet at byte 0: the byte order changes within a byte");
}

static void strings_and_texts_end_at_their_nul(void **state)
{
    CHECK(ONE(LE, "string a; text8 b[4]; u8 n; text8 c[n]; string d;"), "x\"y\n\0ab\0z\2hi\0",
          "e: { a = \"x\\\"y\\n\", b = \"ab\", n = 2, c = \"hi\", d = \"\" }\n");
    CHECK(ONE(LE, "string a;"), "ok\0no",
          "e: { a = \"ok\" }\n! byte 3, in the packet at byte 0: a string has no end in "
          "its packet");
}

static void floats_of_both_sizes_and_orders(void **state)
{
    CHECK(ONE(LE, "floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f; "
                  "floating_point { exp_dig = 11; mant_dig = 53; byte_order = be; } d;"),
          "\0\0\xc0\x3f\xc0\x04\0\0\0\0\0\0", "e: { f = 1.5, d = -2.5 }\n");
}

static void sequences_and_arrays_nest(void **state)
{
    CHECK(ONE(LE, "u8 n; struct { u8 k; u8 list[k]; string s; } rows[n]; u16 grid[2][2];"),
          "\2\1\x07x\0\0y\0\1\0\2\0\3\0\4\0",
          "e: { n = 2, rows = [ [0] = { k = 1, list = [ [0] = 7 ], s = \"x\" }, [1] = { k = 0, list = [ ], s "
          "= \"y\" } ], "
          "grid = [ [0] = [ [0] = 1, [1] = 2 ], [1] = [ [0] = 3, [1] = 4 ] ] }\n");
}

static void lengths_beyond_the_packet_are_damage(void **state)
{
    CHECK(ONE(LE, "u64 n; u64 list[n];"), "\xff\xff\xff\xff\xff\xff\xff\xff",
          "! byte 8, in the packet at byte 0: an event is longer than the rest of its packet");
    CHECK(ONE(LE, "u64 n; text8 s[n];"), "\xff\xff\xff\xff\xff\xff\xff\xff",
          "! byte 8, in the packet at byte 0: a text is longer than the rest of its packet");
    CHECK(ONE(LE, "u32 n; struct { } list[n];"), "\xff\xff\xff\xff",
          "! byte 4, in the packet at byte 0: an array of many elements that have no bits");
}

static void variants_take_the_option_of_their_tag(void **state)
{
    const char *metadata =
        ONE(LE, "enum : u8 { one = 1, two = 2, three = 3 } t; variant <t> { u8 one; string two; } v;");
    CHECK(metadata, "\1\x09\2hi\0",
          "e: { t = ( \"one\" : container = 1 ), v = { 9 } }\n"
          "e: { t = ( \"two\" : container = 2 ), v = { \"hi\" } }\n");
    CHECK(metadata, "\1\x09\3",
          "e: { t = ( \"one\" : container = 1 ), v = { 9 } }\n! byte 3, in the packet at byte 0: a variant's "
          "tag stands for none of its options");
}

static void enumerations_print_every_label_that_holds_the_value(void **state)
{
    CHECK(ONE(LE, "enum : u8 { A = 0 ... 5, B = 3, A = 9 } x;"), "\3\x09\7",
          "e: { x = ( \"A\", \"B\" : container = 3 ) }\ne: { x = ( \"A\" : container = 9 ) }\n"
          "e: { x = ( <unknown> : container = 7 ) }\n");
    CHECK(ONE(LE, "enum : integer { size = 8; signed = true; } { low = -8 ... -1, zero, up } x;"),
          "\xff\0\1\xf0",
          "e: { x = ( \"low\" : container = -1 ) }\ne: { x = ( \"zero\" : container = 0 ) }\n"
          "e: { x = ( \"up\" : container = 1 ) }\ne: { x = ( <unknown> : container = -16 ) }\n");
}

static void events_of_no_bits_do_not_go_on_for_ever(void **state)
{
    CHECK(LE "event { name = e; };", "x", "! byte 0, in the packet at byte 0: an event of no bits");
}

/* -- clocks -- */

#define CLOCK8                                                                                            \
    LE INTS                                                                                               \
        "clock { name = c; freq = 1000; offset_s = 10; };\n"                                              \
        "stream { event.header := struct { integer { size = 8; map = clock.c.value; } timestamp; }; };\n" \
        "event { name = e; };"

static void a_small_clock_wraps(void **state)
{
    CHECK(CLOCK8, "\x01\xff\x02\x02",
          "[10.001000000] e: \n[10.255000000] e: \n[10.258000000] e: \n[10.258000000] e: \n");
}

static void negative_times_print_as_seconds(void **state)
{
    CHECK(LE INTS "clock { name = c; freq = 1000; offset_s = -2; };\n"
                  "stream { event.header := struct { u8 timestamp; }; };\nevent { name = e; };",
          "\x01\x05", "[-1.999000000] e: \n[-1.995000000] e: \n");
}

static void frequencies_are_converted_as_babeltrace2_does(void **state)
{
    struct krait_ctf_clock clock = { .freq = 2400000001, .offset_s = 1700000000, .offset = 1234567 };
    int64_t base = 1700000000000000000ll + (int64_t)(1e9 * 1234567.0 / 2400000001.0);
    uint64_t ticks = 987654321987654321ull;
    assert_int_equal(krait_ctf_ns(&clock, ticks), base + (int64_t)(1e9 * (double)ticks / 2400000001.0));
    clock.freq = 1000000000;
    assert_int_equal(krait_ctf_ns(&clock, 17), 1700000000001234584ll);
}

/* -- packets -- */

#define PACKETS                                                                                           \
    "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { integer { size = 8; } "     \
    "stream_instance_id; }; };\n" INTS "clock { name = c; };\n"                                           \
    "stream { packet.context := struct { u8 timestamp_begin; u8 timestamp_end; u8 content_size; u8 "      \
    "packet_size;\n"                                                                                      \
    "  u8 packet_seq_num; u8 events_discarded; u8 cpu; }; event.header := struct { u8 timestamp; }; };\n" \
    "event { name = e; };"

static void streams_merge_by_time_and_rank(void **state)
{
    struct folder f = new_folder(PACKETS);
    put(&f, "a", "\2\1\x09\x50\x58\0\0\7\3\5\xee", 11);
    put(&f, "b", "\1\1\x09\x58\x58\0\0\6\2\3\5", 11);
    KRAIT_AUTO_FREE char *text = read_all(&f, KRAIT_PRETTY_NO_DELTA);
    drop(&f);
    assert_string_equal(text, "[0.000000002] e: { cpu = 6 }\n[0.000000003] e: { cpu = 6 }\n"
                              "[0.000000003] e: { cpu = 7 }\n[0.000000005] e: { cpu = 6 }\n"
                              "[0.000000005] e: { cpu = 7 }\n");
}

static void files_of_one_stream_are_joined_and_doubles_left_out(void **state)
{
    struct folder f = new_folder(PACKETS);
    put(&f, "a", "\1\x06\x09\x48\x48\1\0\7\6", 9);
    put(&f, "b", "\1\1\x05\x48\x48\0\0\7\2\1\x06\x09\x48\x48\1\0\7\6", 18);
    KRAIT_AUTO_FREE char *text = read_all(&f, KRAIT_PRETTY_NO_DELTA);
    drop(&f);
    assert_string_equal(text, "[0.000000002] e: { cpu = 7 }\n[0.000000006] e: { cpu = 7 }\n");
}

static void what_packets_tell_of_losses(void **state)
{
    struct folder f = new_folder(PACKETS);
    put(&f, "a", "\1\1\x05\x48\x48\x04\3\7\2\1\x06\x09\x48\x48\x07\x05\7\6", 18);
    struct krait_ctf_reader *reader = NULL;
    const char *path = f.path;
    assert_int_equal(krait_ctf_open(&reader, &path, 1, NULL, NULL), 0);
    struct krait_ctf_loss losses[2];
    assert_int_equal(krait_ctf_losses(reader->streams[0], 0, losses), 1);
    assert_int_equal(losses[0].count, 0); /* before the first packet: not known how many */
    assert_int_equal(krait_ctf_losses(reader->streams[0], 1, losses), 2);
    assert_int_equal(losses[0].count, 2);
    assert_int_equal(losses[1].count, 2);
    assert_string_equal(losses[1].kind, "packet");
    struct krait_ctf_count count;
    assert_int_equal(krait_ctf_count(&count, reader, INT64_MIN, INT64_MAX), 0);
    assert_int_equal(count.events, 2);
    assert_int_equal(count.packets, 2);
    assert_int_equal(count.lost_packets, 2);
    assert_string_equal(count.classes[0].name, "e");
    krait_ctf_count_done(&count);
    krait_ctf_close(reader);
    drop(&f);
}

static void counters_of_losses_wrap_and_go_backward(void **state)
{
    struct folder f = new_folder(PACKETS);
    put(&f, "a", "\1\1\x05\x48\x48\xff\xfe\7\2\1\x06\x09\x48\x48\0\1\7\6\1\x0a\x0b\x48\x48\1\0\7\x0a", 27);
    struct krait_ctf_reader *reader = NULL;
    const char *path = f.path;
    assert_int_equal(krait_ctf_open(&reader, &path, 1, NULL, NULL), 0);
    struct krait_ctf_loss losses[2];
    assert_int_equal(krait_ctf_losses(reader->streams[0], 1, losses), 1);
    assert_int_equal(losses[0].count, 3);
    assert_int_equal(krait_ctf_losses(reader->streams[0], 2, losses), 0);
    krait_ctf_close(reader);
    drop(&f);
}

static void sizes_that_cannot_be_are_damage(void **state)
{
    CHECK(PACKETS, "\1\1\x05\x50\x48\0\0\7\2", "! byte 0: the packet's content is larger than the packet");
    CHECK(PACKETS, "\1\1\x05\0\0\0\0\7\2", "! byte 0: the packet's content is smaller than its header");
    CHECK(PACKETS, "\1\1\x05\x48\x49\0\0\7\2\0", "! byte 0: the packet's size is not of whole bytes");
    CHECK(PACKETS, "\1\1\x05\x48", "! byte 0: the packet's context is cut");
    CHECK(PACKETS, "\1\1\x05\x58\x58\0\0\7\2\3",
          "[0.000000002] e: { cpu = 7 }\n[0.000000003] e: { cpu = 7 }\n! byte 10, in the packet at byte 0: "
          "the packet is "
          "cut: the file ends before it does");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_read_at_every_bit_of_every_width),
        cmocka_unit_test(the_last_bits_are_read_without_what_follows),
        cmocka_unit_test(packed_bits_of_both_orders),
        cmocka_unit_test(alignment_is_relative_to_the_packet_and_holds_for_empty_ones),
        cmocka_unit_test(a_byte_order_cannot_change_within_a_byte),
        cmocka_unit_test(strings_and_texts_end_at_their_nul),
        cmocka_unit_test(floats_of_both_sizes_and_orders),
        cmocka_unit_test(sequences_and_arrays_nest),
        cmocka_unit_test(lengths_beyond_the_packet_are_damage),
        cmocka_unit_test(variants_take_the_option_of_their_tag),
        cmocka_unit_test(enumerations_print_every_label_that_holds_the_value),
        cmocka_unit_test(events_of_no_bits_do_not_go_on_for_ever),
        cmocka_unit_test(a_small_clock_wraps),
        cmocka_unit_test(negative_times_print_as_seconds),
        cmocka_unit_test(frequencies_are_converted_as_babeltrace2_does),
        cmocka_unit_test(streams_merge_by_time_and_rank),
        cmocka_unit_test(files_of_one_stream_are_joined_and_doubles_left_out),
        cmocka_unit_test(what_packets_tell_of_losses),
        cmocka_unit_test(counters_of_losses_wrap_and_go_backward),
        cmocka_unit_test(sizes_that_cannot_be_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
