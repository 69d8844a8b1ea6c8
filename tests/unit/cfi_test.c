/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/unwind.h"
#include "rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct krait_elf own;
static uint64_t moved;

static int open_own(void **state)
{
    uint64_t here;
    int rc = krait_elf_open(&own, "/proc/self/exe");
    if (!rc && !krait_elf_symbol(&own, "krait_cfi_find", &here))
        return -1;
    moved = rc ? 0 : (uint64_t)(uintptr_t)krait_cfi_find - here;
    return rc;
}

static int close_own(void **state)
{
    krait_elf_done(&own);
    return 0;
}

static void a_function_is_found_by_each_of_its_addresses(void **state)
{
    uint64_t begin = 0, at = (uint64_t)(uintptr_t)krait_cfi_find - moved;
    for (unsigned i = 0; i < 20; i++) {
        const char *name = NULL;
        assert_true(krait_elf_function_at(&own, at + i, &name, &begin));
        assert_string_equal(name, "krait_cfi_find");
        assert_int_equal(begin, at);
    }
}

static void at_its_first_instruction_a_function_has_changed_nothing(void **state)
{
    struct krait_cfi cfi;
    uint64_t at = (uint64_t)(uintptr_t)krait_cfi_find - moved;
    assert_int_equal(krait_cfi_find(&own, at, &cfi), 0);
    assert_int_equal(cfi.begin, at);
    assert_int_equal(cfi.row.cfa.kind, KRAIT_CFI_REGISTER);
    assert_int_equal(cfi.row.cfa.of, KRAIT_CFI_SP);
    for (unsigned n = 0; n < KRAIT_CFI_REGISTERS; n++) {
        if (n != cfi.return_address)
            assert_int_equal(cfi.row.registers[n].kind, KRAIT_CFI_SAME);
    }
}

/* From here up to main(): what __builtin_return_address and the symbols say. */
__attribute__((noinline)) static void step_up(uint64_t *caller)
{
    struct krait_registers registers = { .called = true };
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2\n\tmov %%rbx, %3"
                     : "=&r"(registers.value[KRAIT_CFI_PC]), "=&r"(registers.value[KRAIT_CFI_SP]),
                       "=m"(registers.value[6]), "=m"(registers.value[3]));
    registers.known = 1ull << KRAIT_CFI_PC | 1ull << KRAIT_CFI_SP | 1 << 6 | 1 << 3;
#else
    skip();
#endif
    struct krait_memory_block stack = { .pid = getpid() };
    assert_int_equal(krait_unwind_step(&registers, &own, moved, &stack), 0);
    *caller = krait_registers_pc(&registers);
    assert_ptr_equal((void *)(uintptr_t)*caller, __builtin_return_address(0));
}

static void a_step_leads_to_the_caller(void **state)
{
    const char *name = NULL;
    uint64_t caller = 0, begin;
    step_up(&caller);
    assert_true(krait_elf_function_at(&own, caller - moved, &name, &begin));
    assert_string_equal(name, __func__);
}

static void a_stack_that_cannot_be_read_is_an_error(void **state)
{
    struct krait_registers registers = { .known = 1ull << KRAIT_CFI_PC | 1ull << KRAIT_CFI_SP };
    struct krait_memory_block stack = { .pid = getpid() };
    registers.value[KRAIT_CFI_PC] = (uint64_t)(uintptr_t)krait_cfi_find;
    registers.value[KRAIT_CFI_SP] = 16;
    assert_true(krait_unwind_step(&registers, &own, moved, &stack) < 0);
    registers.known = 1ull << KRAIT_CFI_PC;
    assert_int_equal(krait_unwind_step(&registers, &own, moved, &stack), -ENXIO);
    registers.value[KRAIT_CFI_PC] = 1;
    assert_int_equal(krait_unwind_step(&registers, &own, 0, &stack), -ENODATA);
}

/* As those of greenlets that have been copied away and back. */
static void a_return_address_in_the_first_page_is_no_callers(void **state)
{
    for (uint64_t address = 0; address < 2; address++) {
        uint64_t words[2] = { address };
        struct krait_registers registers = { .known = 1ull << KRAIT_CFI_PC | 1ull << KRAIT_CFI_SP };
        struct krait_memory_block stack = { .pid = getpid() };
        registers.value[KRAIT_CFI_PC] = (uint64_t)(uintptr_t)krait_cfi_find;
        registers.value[KRAIT_CFI_SP] = (uint64_t)(uintptr_t)words;
#if !defined(__x86_64__)
        skip(); /* it is in a register there */
#endif
        assert_int_equal(krait_unwind_step(&registers, &own, moved, &stack), address ? -EINVAL : -ENOENT);
    }
}

/* Bytes of the tables are replaced, and the file is cut, at random: nothing is read outside of it. */
static void damaged_files_are_refused_or_read_within_their_bounds(void **state)
{
    enum { DAMAGED = 3000, ADDRESSES = 40 };
    char *copy = malloc(own.size);
    assert_non_null(copy);
    srandom(7);
    uint64_t at = (uint64_t)(uintptr_t)krait_cfi_find - moved, frames = 0;
    size_t rest = 0;
    assert_true(krait_elf_frames(&own, &frames));
    const char *table = krait_elf_bytes(&own, frames, &rest);
    assert_non_null(table);
    for (unsigned round = 0; round < tries(ROUNDS(DAMAGED), DAMAGED); round++) {
        struct krait_elf damaged = own;
        damaged.size = round % 8 ? own.size : 64 + (size_t)random() % (own.size - 64);
        char *exact = realloc(copy, damaged.size); /* so that the address sanitizer sees its end */
        copy = exact;
        memcpy(copy, own.bytes, damaged.size);
        damaged.bytes = copy;
        for (unsigned i = 0; i < 200; i++) {
            size_t where =
                i % 4 ? (size_t)(table - own.bytes) + (size_t)random() % rest : (size_t)random() % 1024;
            if (where < damaged.size)
                copy[where] = (char)random();
        }
        for (unsigned i = 0; i < ADDRESSES; i++) {
            struct krait_registers registers = { .known = ~0ull };
            struct krait_memory_block stack = { .pid = getpid() };
            const char *name;
            uint64_t begin;
            registers.value[KRAIT_CFI_PC] = at - 4000 + (uint64_t)random() % 8000;
            krait_unwind_step(&registers, &damaged, 0, &stack);
            if (i == 0)
                krait_elf_function_at(&damaged, registers.value[KRAIT_CFI_PC], &name, &begin);
        }
        char id[KRAIT_BUILD_ID_MAX];
        krait_elf_build_id(&damaged, id);
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_is_found_by_each_of_its_addresses),
        cmocka_unit_test(at_its_first_instruction_a_function_has_changed_nothing),
        cmocka_unit_test(a_step_leads_to_the_caller),
        cmocka_unit_test(a_stack_that_cannot_be_read_is_an_error),
        cmocka_unit_test(a_return_address_in_the_first_page_is_no_callers),
        cmocka_unit_test(damaged_files_are_refused_or_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, open_own, close_own);
}
