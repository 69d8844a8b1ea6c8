/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/open.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define TRACE "trace { major = 1; minor = 8; byte_order = le; };\n"

static struct krait_ctf_metadata *parse(const char *text)
{
    struct krait_ctf_metadata *md = NULL;
    struct krait_err err = { 0 };
    if (krait_ctf_metadata_parse(&md, "T", text, strlen(text), &err))
        fail_msg("%s", err.text);
    return md;
}

static void refuses(const char *text, int code, const char *reason)
{
    struct krait_ctf_metadata *md = NULL;
    struct krait_err err = { 0 };
    assert_int_equal(krait_ctf_metadata_parse(&md, "T", text, strlen(text), &err), code);
    assert_null(md);
    if (!strstr(err.text, reason))
        fail_msg("'%s' does not say '%s'", err.text, reason);
    assert_non_null(strstr(err.text, "T/metadata"));
}

static const struct krait_fc *field(const struct krait_ctf_metadata *md, const char *name)
{
    const struct krait_fc_member *member = krait_fc_member(md->streams[0]->events[0]->fields, name);
    assert_non_null(member);
    return member->fc;
}

static void environment_and_clock_are_read(void **state)
{
    struct krait_ctf_metadata *md =
        parse("/* CTF 1.8 */\n" TRACE "env { procname = \"a\\\"b\\x41\\101\"; vpid = 42; low = -3; };\n"
              "clock { name = mono; freq = 1000; offset_s = -5; offset = 2500; absolute = true;\n"
              "  uuid = \"00010203-0405-0607-0809-0a0b0c0d0eff\"; };");
    assert_string_equal(krait_ctf_env_text(md, "procname", ""), "a\"bAA");
    assert_int_equal(krait_ctf_env_int(md, "vpid", 0), 42);
    assert_int_equal(krait_ctf_env_int(md, "low", 0), -3);
    assert_int_equal(krait_ctf_env_int(md, "procname", 7), 7);
    const struct krait_ctf_clock *clock = krait_ctf_clock_named(md, "mono");
    assert_true(clock->absolute && clock->has_uuid);
    assert_int_equal(clock->uuid[15], 0xff);
    assert_int_equal(clock->offset_s, -3);
    assert_int_equal(clock->offset, 500);
    assert_int_equal(krait_ctf_clock_ns(clock, 1), -3 * 1000000000ll + 501 * 1000000ll);
    krait_ctf_metadata_free(md);
}

static void statements_may_stand_in_any_order(void **state)
{
    struct krait_ctf_metadata *md =
        parse("event { name = \"e\"; fields := struct { u8 _n; u8 data[_n]; }; };\n"
              "stream { event.header := struct { stamp timestamp; }; };\n"
              "typealias integer { size = 8; map = clock.c.value; } := stamp;\n" TRACE
              "typealias integer { size = 8; encoding = UTF8; } := u8;\n"
              "clock { name = c; };");
    assert_string_equal(md->streams[0]->events[0]->name, "e");
    assert_ptr_equal(md->streams[0]->clock, krait_ctf_clock_named(md, "c"));
    assert_int_equal(field(md, "data")->kind, KRAIT_FC_SEQUENCE);
    assert_true(field(md, "data")->is_text);
    assert_int_equal(field(md, "data")->ref_slot, field(md, "n")->slot);
    krait_ctf_metadata_free(md);
}

static void types_of_all_kinds_are_read(void **state)
{
    struct krait_ctf_metadata *md =
        parse(TRACE "typealias integer { size = 32; signed = true; } := int;\n"
                    "typealias integer { size = 5; } := u5;\n"
                    "typealias integer { size = 64; align = 64; byte_order = be; } := void *;\n"
                    "typedef floating_point { exp_dig = 11; mant_dig = 53; align = 8; } real;\n"
                    "struct pair { int a, b; } align(16);\n"
                    "enum e : u5 { A, B = 3, \"C d\" = 4 ... 7, D, A = 30 };\n"
                    "event { name = \"e\"; fields := struct {\n"
                    "  real r; string s; struct pair p; void *ptr; u5 grid[2][3]; enum e tag;\n"
                    "  variant <tag> { u5 B; real A; } v; enum { X = -2, Y } neg; }; };");
    assert_int_equal(field(md, "r")->bits, 64);
    assert_int_equal(field(md, "p")->align, 16);
    assert_int_equal(field(md, "ptr")->base, 16);
    assert_int_equal(field(md, "ptr")->byte_order, KRAIT_BO_BE);
    assert_int_equal(field(md, "grid")->length, 2);
    assert_int_equal(field(md, "grid")->elem->length, 3);
    assert_int_equal(field(md, "grid")->align, 1);
    const struct krait_fc *tag = field(md, "tag");
    assert_string_equal(krait_enum_label(tag, 0), "A");
    assert_string_equal(krait_enum_label(tag, 5), "C d");
    assert_string_equal(krait_enum_label(tag, 8), "D");
    assert_string_equal(krait_enum_label(tag, 30), "A");
    assert_null(krait_enum_label(tag, 1));
    assert_string_equal(krait_enum_label(field(md, "neg"), (uint64_t)-1), "Y");
    const struct krait_fc *v = field(md, "v");
    assert_int_equal(v->choice_count, 3);
    assert_int_equal(v->choices[0].lo, tag->labels->ranges[0].lo);
    assert_int_equal(v->choices[0].option, 1);
    assert_int_equal(v->choices[1].hi, tag->labels->ranges[1].hi);
    assert_int_equal(v->choices[1].option, 0);
    assert_int_equal(v->choices[2].lo, 30);
    assert_int_equal(v->choices[2].option, 1);
    krait_ctf_metadata_free(md);
}

static void lengths_are_found_in_scopes_before(void **state)
{
    struct krait_ctf_metadata *md =
        parse(TRACE "typealias integer { size = 8; } := u8;\n"
                    "stream { packet.context := struct { u8 n; }; event.header := struct { u8 id; }; };\n"
                    "event { name = \"e\"; id = 1; context := struct { struct { u8 n; } deep; };\n"
                    "  fields := struct { u8 a[stream.packet.context.n]; u8 b[event.context.deep.n]; u8 "
                    "c[stream.event.header.id]; }; };");
    const struct krait_fc *packet = krait_fc_member(md->streams[0]->packet_context, "n")->fc;
    assert_int_equal(field(md, "a")->ref_slot, packet->slot);
    assert_int_not_equal(field(md, "b")->ref_slot, packet->slot);
    assert_int_equal(field(md, "c")->ref_slot, krait_fc_member(md->streams[0]->event_header, "id")->fc->slot);
    krait_ctf_metadata_free(md);
}

#define FIELDS(text) \
    TRACE "typealias integer { size = 8; } := u8; event { name = e; fields := struct { " text " }; };"

static void malformed_text_is_refused_with_its_line(void **state)
{
    refuses("", -EBADMSG, "no trace block");
    refuses(TRACE "env { a = \"", -EBADMSG, "line 2: the quotation has no end");
    refuses(TRACE "// ", -EBADMSG, "line 2: the comment has no newline");
    refuses(TRACE "$", -EBADMSG, "byte 0x24");
    refuses(TRACE "event { name = e; fields := struct { ", -EBADMSG, "line 2");
    refuses(FIELDS("nope x;"), -EBADMSG, "'nope' is not declared");
    refuses(FIELDS("u8 x; u8 x;"), -EBADMSG, "'x' is declared twice");
    refuses(FIELDS("u8 x[y];"), -EBADMSG, "'y' is not a field before it");
    refuses(FIELDS("u8 x[y]; u8 y;"), -EBADMSG, "'y' is not a field before it");
    refuses(FIELDS("u8 y; variant <y> { u8 a; } v;"), -EBADMSG, "'y' is not an enumeration");
    refuses(FIELDS("integer { size = 65; } x;"), -EBADMSG, "65 bits");
    refuses(FIELDS("integer { size = 8; align = 3; } x;"), -EBADMSG, "power of two");
    refuses(FIELDS("u8 event;"), -EBADMSG, "'event' is a word of TSDL");
    refuses(FIELDS("struct struct { u8 a; } x;"), -EBADMSG, "'struct' is a word of TSDL");
    refuses(TRACE ";", -EBADMSG, "a type is missing");
    refuses(FIELDS("integer { size = 99999999999999999999; } x;"), -EBADMSG, "64 bits");
}

static void other_versions_are_refused(void **state)
{
    refuses("/* CTF 1.9 */", -ENOTSUP, "CTF 1.9");
    refuses("\x1e{\"type\": \"preamble\", \"version\": 3}", -ENOTSUP, "CTF 3");
    refuses("trace { major = 0; minor = 8; byte_order = le; };", -ENOTSUP, "major is 0");
}

static void types_that_grow_without_end_are_refused(void **state)
{
    char text[16384];
    int n = sprintf(text, "%stypealias integer { size = 8; } := t0;\n", TRACE);
    for (int i = 0; i < 60; i++)
        n += sprintf(text + n, "struct s%d { %s%d a, b, c, d; };\n", i + 1, i ? "struct s" : "t", i);
    refuses(text, -EBADMSG, "fields");
    n = sprintf(text, "%stypealias integer { size = 8; } := t0;\n", TRACE);
    for (int i = 0; i < 200; i++)
        n += sprintf(text + n, "typedef t%d t%d[2][2];\n", i, i + 1);
    refuses(text, -EBADMSG, "deeper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_and_clock_are_read),
        cmocka_unit_test(statements_may_stand_in_any_order),
        cmocka_unit_test(types_of_all_kinds_are_read),
        cmocka_unit_test(lengths_are_found_in_scopes_before),
        cmocka_unit_test(malformed_text_is_refused_with_its_line),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(types_that_grow_without_end_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
