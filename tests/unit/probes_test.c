/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of static probes, as the kernel takes them. What is expected is of the kernel's
 * Documentation/trace/uprobetracer.rst.
 */
#include "remote/probes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void expect(const char *arguments, const char *names, const char *fetched)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_probe_fetch(&out, arguments, names);
    krait_buf_char(&out, '\0');
    assert_string_equal(out.data, fetched);
}

static void operands_become_the_kernels_words(void **state)
{
    expect("8@%rbx 8@%r15", NULL, " arg1=%bx:u64 arg2=%r15:u64");
    expect("-4@112(%rsp)", NULL, " arg1=+112(%sp):s32");
    expect("8@-24(%rbp) -1@%al 2@%r8w", NULL, " arg1=-24(%bp):u64 arg2=%ax:s8 arg3=%r8:u16");
    expect("-4@$-1 8@(%rdi)", NULL, " arg1=\\-1:s32 arg2=+0(%di):u64");
    expect("8@x19 4@w3", NULL, " arg1=%x19:u64 arg2=%x3:u32");
    expect("", NULL, "");
}

static void names_and_texts_are_taken_in_order(void **state)
{
    expect("8@%r14 8@16(%rsp) -4@%eax", "file:str, function:str, line",
           " file=+0(%r14):string function=+0(+16(%sp)):string line=%ax:s32");
    expect("8@%r14 8@%rax", "file:str", " file=+0(%r14):string arg2=%ax:u64");
    expect("8@%r14", "a,b,c", " a=%r14:u64");
}

static void what_the_kernel_has_no_word_for_is_left_out(void **state)
{
    expect("8@-8(%rbp,%rax,8) 4@%ecx", "a b", " b=%cx:u32");
    expect("8@counter(%rip) 8f@%xmm0 @%rax 3@%rax 8@ 8 8@$ 8@% 8@( 8@() 8@12(%rax 8@[sp]", NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_become_the_kernels_words),
        cmocka_unit_test(names_and_texts_are_taken_in_order),
        cmocka_unit_test(what_the_kernel_has_no_word_for_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
