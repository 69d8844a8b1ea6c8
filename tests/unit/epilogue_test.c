/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules from instructions, of trampolines of Python and of other ends of functions.
 */
#include "remote/epilogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)

enum { RBX = 3, RBP = 6, R15 = 15 };

#define HAS_RULES(cfi, ...) \
    has_rules((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }), cfi)

/* Behind the instructions, others follow. */
static bool has_rules(const uint8_t *code, size_t n, struct krait_cfi *cfi)
{
    uint8_t bytes[KRAIT_EPILOGUE_BYTES];
    memset(bytes, 0xcc, sizeof(bytes));
    memcpy(bytes, code, n);
    return krait_epilogue_rules(bytes, cfi);
}

static void assert_frame(const struct krait_cfi *cfi, int64_t size)
{
    assert_int_equal(cfi->row.cfa.kind, KRAIT_CFI_REGISTER);
    assert_int_equal(cfi->row.cfa.of, KRAIT_CFI_SP);
    assert_int_equal(cfi->row.cfa.offset, size);
    assert_int_equal(cfi->return_address, KRAIT_CFI_PC);
    assert_int_equal(cfi->row.registers[KRAIT_CFI_PC].offset, -8);
    assert_int_equal(cfi->row.registers[KRAIT_CFI_SP].kind, KRAIT_CFI_SAME);
}

static void test_pythons_trampolines_have_rules(void **state)
{
    (void)state;
    struct krait_cfi cfi;
    assert_true(HAS_RULES(&cfi, 0x48, 0x83, 0xc4, 0x08, 0xc3)); /* add $8,%rsp; ret */
    assert_frame(&cfi, 16);
    assert_true(HAS_RULES(&cfi, 0x5d, 0xc3)); /* pop %rbp; ret */
    assert_frame(&cfi, 16);
    assert_int_equal(cfi.row.registers[RBP].kind, KRAIT_CFI_OFFSET);
    assert_int_equal(cfi.row.registers[RBP].offset, -16);
}

static void test_registers_are_where_they_are_taken_from(void **state)
{
    (void)state;
    struct krait_cfi cfi;
    /* add $0x120,%rsp; pop %rbx; pop %rbp; pop %r15; ret */
    assert_true(HAS_RULES(&cfi, 0x48, 0x81, 0xc4, 0x20, 0x01, 0, 0, 0x5b, 0x5d, 0x41, 0x5f, 0xc3));
    assert_frame(&cfi, 0x120 + 4 * 8);
    assert_int_equal(cfi.row.registers[RBX].offset, -32);
    assert_int_equal(cfi.row.registers[RBP].offset, -24);
    assert_int_equal(cfi.row.registers[R15].offset, -16);
    assert_true(HAS_RULES(&cfi, 0xc3));
    assert_frame(&cfi, 8);
}

static void test_other_code_has_no_rules(void **state)
{
    (void)state;
    struct krait_cfi cfi;
    uint8_t pops[KRAIT_EPILOGUE_BYTES];
    assert_false(HAS_RULES(&cfi, 0x90, 0xc3));                   /* nop; ret */
    assert_false(HAS_RULES(&cfi, 0x5c, 0xc3));                   /* pop %rsp; ret */
    assert_false(HAS_RULES(&cfi, 0x48, 0x83, 0xc4, 0xf8, 0xc3)); /* add $-8,%rsp; ret */
    assert_false(HAS_RULES(&cfi, 0x48, 0x83, 0xc0, 0x08, 0xc3)); /* add $8,%rax; ret */
    memset(pops, 0x5d, sizeof(pops));
    assert_false(krait_epilogue_rules(pops, &cfi));
    memset(pops, 0x48, sizeof(pops)); /* ends within an instruction */
    assert_false(krait_epilogue_rules(pops, &cfi));
    memset(pops, 0x5d, sizeof(pops));
    memcpy(pops + sizeof(pops) - 3, (uint8_t[]){ 0x48, 0x81, 0xc4 }, 3);
    assert_false(krait_epilogue_rules(pops, &cfi));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pythons_trampolines_have_rules),
        cmocka_unit_test(test_registers_are_where_they_are_taken_from),
        cmocka_unit_test(test_other_code_has_no_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_no_code_has_rules(void **state)
{
    (void)state;
    struct krait_cfi cfi;
    uint8_t code[KRAIT_EPILOGUE_BYTES] = { 0 };
    assert_false(krait_epilogue_rules(code, &cfi));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_code_has_rules) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
