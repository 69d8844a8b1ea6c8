/* SPDX-License-Identifier: Apache-2.0 */
#include "view/flame.h"

#include "view/flame_draw.h"
#include "view/flame_text.h"
#include "view/width.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- text ---- */

static void expect_clean(const char *from, const char *wanted)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_text_clean(&buf, from);
    assert_string_equal(buf.len ? buf.data : "", wanted);
}

static void clean_text_is_valid_and_printable(void **state)
{
    expect_clean("", "");
    expect_clean("caf\u00e9 \u4e2d \U0001F600", "caf\u00e9 \u4e2d \U0001F600");
    expect_clean("a\nb\tc\x01\x7f", "a\u21b5b c\u2401\u2421");
    expect_clean("\xff\xc3(\xed\xa0\x80", "\ufffd\ufffd(\ufffd\ufffd\ufffd");
    expect_clean("x\u202ey\xc2\x85z\uffff", "x\ufffdy\ufffdz\ufffd");
}

static void long_text_is_cut_at_a_character(void **state)
{
    char text[4001] = "";
    for (int i = 0; i < 2000; i++)
        strcat(text, "\u00e9");
    KRAIT_AUTO_BUF buf = { 0 };
    krait_text_clean(&buf, text);
    assert_int_equal(buf.len, KRAIT_TEXT_MAX + strlen("\u2026"));
    assert_string_equal(buf.data + KRAIT_TEXT_MAX, "\u2026");
}

static void escapes_leave_no_markup(void **state)
{
    const char *text = "<a b=\"1\">&]]>\\";
    KRAIT_AUTO_BUF xml = { 0 };
    KRAIT_AUTO_BUF json = { 0 };
    krait_text_xml(&xml, text, strlen(text));
    krait_text_json(&json, text);
    assert_string_equal(xml.data, "&lt;a b=&quot;1&quot;&gt;&amp;]]&gt;\\");
    assert_string_equal(json.data, "\"\\u003ca b=\\u00221\\u0022\\u003e\\u0026]]\\u003e\\u005c\"");
}

static void wide_characters_take_two_columns(void **state)
{
    const char *text = "a\u4e2db";
    assert_int_equal(krait_width_of(text, strlen(text)), 4);
    assert_int_equal(krait_width_fit(text, strlen(text), 2), 1);
    assert_int_equal(krait_width_fit(text, strlen(text), 3), 4);
    assert_int_equal(krait_width_fit(text, strlen(text), 9), 5);
}

static void expect_duration(uint64_t ns, const char *wanted)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_text_duration(&buf, ns);
    assert_string_equal(buf.data, wanted);
}

static void numbers_read_well_at_the_edges_of_units(void **state)
{
    expect_duration(0, "0\u202fns");
    expect_duration(999, "999\u202fns");
    expect_duration(1000, "1.00\u202f\u00b5s");
    expect_duration(9996, "10.0\u202f\u00b5s");
    expect_duration(999499, "999\u202f\u00b5s");
    expect_duration(999500, "1.00\u202fms");
    expect_duration(599000000000, "599\u202fs");
    expect_duration(3725000000000, "62.1\u202fmin");
    expect_duration(3 * 3600000000000, "3.00\u202fh");
    expect_duration(116 * 86400000000000, "116\u202fd");
    KRAIT_AUTO_BUF buf = { 0 };
    krait_text_count(&buf, 1234567);
    krait_text_count(&buf, UINT64_MAX);
    krait_text_percent(&buf, 0.00123);
    assert_string_equal(buf.data, "1,234,56718,446,744,073,709,551,6150.12\u202f%");
}

/* ---- graph ---- */

enum { MAIN, WORK, LEN, WORK_TWIN };

static struct krait_func funcs[] = {
    { .name = "main", .module = "app", .file = "/a.py", .line = 1 },
    { .name = "work", .module = "app.core", .file = "/c.py", .line = 2 },
    { .name = "len", .module = "builtins", .file = "", .kind = KRAIT_FUNC_C },
    { .name = "work",
      .module = "app.core",
      .file = "/c.py",
      .line = 2,
      .site_line = 7 }, /* from another line */
};
static struct krait_trace trace = { .funcs = funcs, .func_count = KRAIT_ARRAY_LEN(funcs) };

/* A tree by hand: self 10 + work (20 + len 30) + its twin 5, + work below the root 1. */
static struct krait_tree_node tree_nodes[] = {
    { .func = KRAIT_NO_ID, .label = KRAIT_NO_ID, .parent = KRAIT_NO_ID },
    { .func = MAIN, .parent = 0, .self_ns = 10, .calls = 1 },
    { .func = WORK, .parent = 1, .self_ns = 20, .calls = 2 },
    { .func = LEN, .parent = 2, .self_ns = 30, .calls = 40 },
    { .func = WORK_TWIN, .parent = 1, .self_ns = 5, .calls = 3 },
    { .func = WORK, .parent = 0, .self_ns = 1, .calls = 1 },
};
static struct krait_calltree tree = { .nodes = tree_nodes, .count = KRAIT_ARRAY_LEN(tree_nodes) };

static struct krait_flame *new_flame(void)
{
    struct krait_flame *flame;
    assert_int_equal(krait_flame_new(&flame, &tree, &trace, NULL), 0);
    return flame;
}

static void finish(struct krait_flame *flame, uint32_t max_frames)
{
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.max_frames = max_frames;
    assert_int_equal(krait_flame_finish(flame, &options, NULL), 0);
}

/* "all 66/0;main 65/10;..." in preorder. */
static void expect_graph(const struct krait_flame *flame, const char *wanted)
{
    KRAIT_AUTO_BUF buf = { 0 };
    for (uint32_t i = 0; i != KRAIT_NO_ID; i = krait_flame_next(flame, i, KRAIT_FLAME_INTO)) {
        const struct krait_flame_node *node = &flame->nodes[i];
        krait_buf_fmt(&buf, "%*s%s %d/%d x%d\n", (int)node->depth, "", flame->names[node->name].name,
                      (int)node->side[0].total_ns, (int)node->side[0].self_ns, (int)node->side[0].calls);
    }
    assert_string_equal(buf.data, wanted);
}

static void nodes_of_one_name_are_merged_and_summed_up(void **state)
{
    struct krait_flame *flame = new_flame();
    finish(flame, 100);
    expect_graph(flame, "all 66/0 x0\n main 65/10 x1\n  work 55/25 x5\n   len 30/30 x40\n work 1/1 x1\n");
    krait_flame_free(flame);
}

static void reversed_stacks_keep_all_time(void **state)
{
    struct krait_flame *flame = new_flame();
    assert_int_equal(krait_flame_reverse(&flame, NULL), 0);
    finish(flame, 100);
    expect_graph(flame, "all 66/0 x0\n len 30/0 x0\n  work 30/0 x0\n   main 30/30 x40\n"
                        " work 26/1 x1\n  main 25/25 x5\n main 10/10 x1\n");
    krait_flame_free(flame);
}

static void what_is_too_much_is_summed_up_in_its_parent(void **state)
{
    struct krait_flame *flame = new_flame();
    finish(flame, 2);
    expect_graph(flame,
                 "all 66/0 x0\n main 65/10 x1\n  (smaller frames) 55/55 x45\n (smaller frames) 1/1 x1\n");
    assert_int_equal(flame->dropped, 3);
    krait_flame_free(flame);
}

static void functions_that_moved_meet_in_a_differential_graph(void **state)
{
    struct krait_func moved[] = { funcs[MAIN], funcs[WORK], funcs[LEN], funcs[WORK_TWIN] };
    moved[MAIN].line = 99;
    moved[WORK].file = "/elsewhere/c.py";
    struct krait_trace other = { .funcs = moved, .func_count = KRAIT_ARRAY_LEN(moved) };
    struct krait_flame *flame = new_flame();
    assert_int_equal(krait_flame_add_other(flame, &tree, &other, NULL), 0);
    finish(flame, 100);
    assert_int_equal(flame->count, 5);
    for (uint32_t i = 0; i < flame->count; i++)
        assert_memory_equal(&flame->nodes[i].side[0], &flame->nodes[i].side[1],
                            sizeof(flame->nodes[i].side[0]));
    krait_flame_free(flame);
}

static void layout_packs_children_to_the_left_and_leaves_out_narrow_ones(void **state)
{
    struct krait_flame *flame = new_flame();
    finish(flame, 100);
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    options.width = 660 + 2 * FLAME_PAD;
    options.min_width = 20;
    struct flame_layout layout;
    assert_int_equal(krait_flame_layout(&layout, flame, &options), 0);
    assert_int_equal(layout.count, 4);
    assert_int_equal(layout.rows, 4);
    static const double widths[] = { 660, 650, 550, 300 };
    for (uint32_t i = 0; i < layout.count; i++) {
        assert_true(layout.boxes[i].x == 0);
        assert_true(layout.boxes[i].width > widths[i] - 1e-6 && layout.boxes[i].width < widths[i] + 1e-6);
    }
    free(layout.boxes);
    krait_flame_free(flame);
}

static void an_empty_tree_gives_a_picture(void **state)
{
    struct krait_calltree empty = { .nodes = tree_nodes, .count = 1 };
    struct krait_flame *flame;
    assert_int_equal(krait_flame_new(&flame, &empty, &trace, NULL), 0);
    assert_int_equal(krait_flame_reverse(&flame, NULL), 0);
    finish(flame, 100);
    struct krait_flame_options options = KRAIT_FLAME_OPTIONS_DEFAULT;
    KRAIT_AUTO_BUF svg = { 0 };
    krait_flame_svg(&svg, flame, &options);
    assert_false(svg.failed);
    assert_non_null(strstr(svg.data, "\"tree\":\"\""));
    assert_null(strstr(svg.data, "nan"));
    krait_flame_free(flame);
}

static void script_data_is_as_described(void **state)
{
    struct krait_flame *flame = new_flame();
    finish(flame, 100);
    KRAIT_AUTO_BUF json = { 0 };
    krait_flame_json(&json, flame, &KRAIT_FLAME_OPTIONS_DEFAULT);
    /* up, name, own ns, calls: main 0 1 10 1, work 0 2 25 5, len 0 3 30 40 (8, 1), work up 3, 2 1 1 */
    assert_non_null(strstr(json.data, "\"tree\":\"ABKBACZFADeoBDCBB\"}"));
    krait_flame_free(flame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_text_is_valid_and_printable),
        cmocka_unit_test(long_text_is_cut_at_a_character),
        cmocka_unit_test(escapes_leave_no_markup),
        cmocka_unit_test(wide_characters_take_two_columns),
        cmocka_unit_test(numbers_read_well_at_the_edges_of_units),
        cmocka_unit_test(nodes_of_one_name_are_merged_and_summed_up),
        cmocka_unit_test(reversed_stacks_keep_all_time),
        cmocka_unit_test(what_is_too_much_is_summed_up_in_its_parent),
        cmocka_unit_test(functions_that_moved_meet_in_a_differential_graph),
        cmocka_unit_test(layout_packs_children_to_the_left_and_leaves_out_narrow_ones),
        cmocka_unit_test(an_empty_tree_gives_a_picture),
        cmocka_unit_test(script_data_is_as_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
