/* SPDX-License-Identifier: Apache-2.0
 *
 * A loop of instructions that keeps a value in each register of the processor, to see whether somebody changed one.
 */
#ifndef KRAIT_TEST_ATTACH_REGISTERS_H
#define KRAIT_TEST_ATTACH_REGISTERS_H

#include <stdint.h>

/* What registers are to hold, and what they held after the loop. */
struct test_registers {
    uint64_t general[31];
    uint64_t flags;
    _Alignas(64) uint8_t vectors[32 * 64];
    uint8_t predicates[16 * 8];
};

/* Fills the registers from `wanted`, counts `rounds` down, and writes them into `found`. One general register is the counter. */
void test_keep_registers(const struct test_registers *wanted, struct test_registers *found, uint64_t rounds);

#ifdef __x86_64__
enum { TEST_GENERAL = 15, TEST_FLAGS = 1 /* carry */ };

static inline uint32_t test_vector_bytes(void)
{
    return 16 * 32; /* AVX */
}

static inline uint32_t test_predicate_bytes(void)
{
    return 0;
}

static inline int test_has_registers(void)
{
    return __builtin_cpu_supports("avx");
}

__asm__(
    ".pushsection .text\n"
    ".globl test_keep_registers\n"
    ".type test_keep_registers, @function\n"
    "test_keep_registers:\n"
    "    .cfi_startproc\n"
    "    pushq %rbx\n    pushq %rbp\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    pushq %rsi\n"
    "    pushq %rdx\n"
    "    .cfi_def_cfa_offset 72\n    .cfi_offset rbx, -16\n    .cfi_offset rbp, -24\n"
    "    .cfi_offset r12, -32\n    .cfi_offset r13, -40\n    .cfi_offset r14, -48\n    .cfi_offset r15, -56\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    vmovups 256+32*\\n(%rdi), %ymm\\n\n"
    "    .endr\n"
    "    movq 8(%rdi), %rbx\n    movq 16(%rdi), %rcx\n    movq 24(%rdi), %rdx\n    movq 32(%rdi), %rsi\n"
    "    movq 40(%rdi), %rbp\n    movq 48(%rdi), %r8\n    movq 56(%rdi), %r9\n    movq 64(%rdi), %r10\n"
    "    movq 72(%rdi), %r11\n    movq 80(%rdi), %r12\n    movq 88(%rdi), %r13\n    movq 96(%rdi), %r14\n"
    "    movq 104(%rdi), %r15\n    movq (%rdi), %rax\n    movq 112(%rdi), %rdi\n"
    "    stc\n"
    "1:  decq (%rsp)\n" /* keeps the carry flag */
    "    jnz 1b\n"
    "    xchgq %rax, 8(%rsp)\n"
    "    movq %rbx, 8(%rax)\n    movq %rcx, 16(%rax)\n    movq %rdx, 24(%rax)\n    movq %rsi, 32(%rax)\n"
    "    movq %rbp, 40(%rax)\n    movq %r8, 48(%rax)\n    movq %r9, 56(%rax)\n    movq %r10, 64(%rax)\n"
    "    movq %r11, 72(%rax)\n    movq %r12, 80(%rax)\n    movq %r13, 88(%rax)\n    movq %r14, 96(%rax)\n"
    "    movq %r15, 104(%rax)\n    movq %rdi, 112(%rax)\n"
    "    setc %cl\n    movzbl %cl, %ecx\n    movq %rcx, 248(%rax)\n"
    "    movq 8(%rsp), %rcx\n    movq %rcx, (%rax)\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    vmovups %ymm\\n, 256+32*\\n(%rax)\n"
    "    .endr\n"
    "    vzeroupper\n"
    "    addq $16, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbp\n    popq %rbx\n"
    "    retq\n"
    "    .cfi_endproc\n"
    ".size test_keep_registers, .-test_keep_registers\n"
    ".popsection\n");
#endif

#ifdef __aarch64__
#include <sys/auxv.h>
#include <sys/prctl.h>

enum { TEST_GENERAL = 30, TEST_FLAGS = 0x60000000 /* zero and carry */ };

/* Of a vector of SVE; 16 without it. */
static inline uint32_t test_vector_size(void)
{
    enum { LENGTH = 0xffff };
    return getauxval(AT_HWCAP) & HWCAP_SVE ? (uint32_t)prctl(PR_SVE_GET_VL) & LENGTH : 16;
}

static inline uint32_t test_vector_bytes(void)
{
    return 32 * test_vector_size();
}

static inline uint32_t test_predicate_bytes(void)
{
    return getauxval(AT_HWCAP) & HWCAP_SVE ? 16 * test_vector_size() / 8 : 0;
}

static inline int test_has_registers(void)
{
    return test_vector_size() <= 64;
}

__asm__(
    ".pushsection .text\n"
    ".arch_extension sve\n"
    ".globl test_keep_registers\n"
    ".type test_keep_registers, %function\n"
    "test_keep_registers:\n"
    "    .cfi_startproc\n"
    "    stp x29, x30, [sp, #-192]!\n"
    "    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n    stp x23, x24, [sp, #48]\n"
    "    stp x25, x26, [sp, #64]\n    stp x27, x28, [sp, #80]\n"
    "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
    "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
    "    .cfi_def_cfa_offset 192\n    .cfi_offset x29, -192\n    .cfi_offset x30, -184\n"
    "    .cfi_offset x19, -176\n    .cfi_offset x20, -168\n    .cfi_offset x21, -160\n    .cfi_offset x22, -152\n"
    "    .cfi_offset x23, -144\n    .cfi_offset x24, -136\n    .cfi_offset x25, -128\n    .cfi_offset x26, -120\n"
    "    .cfi_offset x27, -112\n    .cfi_offset x28, -104\n"
    "    mrs x4, id_aa64pfr0_el1\n" /* the kernel answers (Documentation/arm64/cpu-feature-registers) */
    "    ubfx x4, x4, #32, #4\n"    /* SVE */
    "    stp x1, x4, [sp, #160]\n"
    "    mov x30, x2\n"
    "    add x2, x0, #256\n"
    "    add x3, x2, #2048\n"
    "    cbz x4, 2f\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "    ldr z\\n, [x2, #\\n, mul vl]\n"
    "    .endr\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    ldr p\\n, [x3, #\\n, mul vl]\n"
    "    .endr\n"
    "    b 3f\n"
    "2:  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "    ldr q\\n, [x2, #16*\\n]\n"
    "    .endr\n"
    "3:  mov x1, #0x60000000\n"
    "    msr nzcv, x1\n"
    "    ldp x28, x29, [x0, #224]\n    ldp x26, x27, [x0, #208]\n    ldp x24, x25, [x0, #192]\n"
    "    ldp x22, x23, [x0, #176]\n    ldp x20, x21, [x0, #160]\n    ldp x18, x19, [x0, #144]\n"
    "    ldp x16, x17, [x0, #128]\n    ldp x14, x15, [x0, #112]\n    ldp x12, x13, [x0, #96]\n"
    "    ldp x10, x11, [x0, #80]\n    ldp x8, x9, [x0, #64]\n    ldp x6, x7, [x0, #48]\n"
    "    ldp x4, x5, [x0, #32]\n    ldp x2, x3, [x0, #16]\n    ldp x0, x1, [x0]\n"
    "4:  sub x30, x30, #1\n" /* keeps the flags */
    "    cbnz x30, 4b\n"
    "    ldr x30, [sp, #160]\n"
    "    stp x0, x1, [x30]\n    stp x2, x3, [x30, #16]\n    stp x4, x5, [x30, #32]\n"
    "    stp x6, x7, [x30, #48]\n    stp x8, x9, [x30, #64]\n    stp x10, x11, [x30, #80]\n"
    "    stp x12, x13, [x30, #96]\n    stp x14, x15, [x30, #112]\n    stp x16, x17, [x30, #128]\n"
    "    stp x18, x19, [x30, #144]\n    stp x20, x21, [x30, #160]\n    stp x22, x23, [x30, #176]\n"
    "    stp x24, x25, [x30, #192]\n    stp x26, x27, [x30, #208]\n    stp x28, x29, [x30, #224]\n"
    "    mrs x1, nzcv\n"
    "    str x1, [x30, #248]\n"
    "    ldr x4, [sp, #168]\n"
    "    add x2, x30, #256\n"
    "    add x3, x2, #2048\n"
    "    cbz x4, 5f\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "    str z\\n, [x2, #\\n, mul vl]\n"
    "    .endr\n"
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "    str p\\n, [x3, #\\n, mul vl]\n"
    "    .endr\n"
    "    b 6f\n"
    "5:  .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "    str q\\n, [x2, #16*\\n]\n"
    "    .endr\n"
    "6:  ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
    "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
    "    ldp x19, x20, [sp, #16]\n    ldp x21, x22, [sp, #32]\n    ldp x23, x24, [sp, #48]\n"
    "    ldp x25, x26, [sp, #64]\n    ldp x27, x28, [sp, #80]\n"
    "    ldp x29, x30, [sp], #192\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size test_keep_registers, .-test_keep_registers\n"
    ".popsection\n");
#endif

#endif
