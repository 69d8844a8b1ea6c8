/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/stub.h"

#include <string.h>

#ifdef __x86_64__

/* Enters with rsp and rbx at the frame. `iretq` takes rip, flags and rsp back in one step, so nothing of the thread's is
 * kept here. XSAVE's header must be zero; thread.c writes it (Intel's manual, volume 1, 13.7). */
__asm__(".pushsection .rodata\n"
        "krait_stub_begin:\n"
        "    movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xsave64 256(%rbx)\n"
        "    cld\n"
        "    leaq 160(%rbx), %rdi\n"
        "    xorl %esi, %esi\n"
        "    leaq krait_stub_thread(%rip), %rdx\n"
        "    xorl %ecx, %ecx\n"
        "    callq *krait_stub_data(%rip)\n"
        "    testl %eax, %eax\n"
        "    jnz 1f\n"
        "    movq 160(%rbx), %rdi\n"
        "    callq *8+krait_stub_data(%rip)\n"
        "1:  movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xrstor64 256(%rbx)\n"
        "    movq %rbx, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbp\n    popq %rbx\n"
        "    popq %r11\n    popq %r10\n    popq %r9\n    popq %r8\n    popq %rax\n    popq %rcx\n"
        "    popq %rdx\n    popq %rsi\n    popq %rdi\n"
        "    iretq\n"
        "krait_stub_thread:\n"
        "    pushq %rbx\n"
        "    movq 48+krait_stub_data(%rip), %rdi\n"
        "    movl $2, %esi\n" /* RTLD_NOW */
        "    callq *16+krait_stub_data(%rip)\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    movq %rax, %rdi\n"
        "    movq 32+krait_stub_data(%rip), %rsi\n"
        "    callq *24+krait_stub_data(%rip)\n"
        "    testq %rax, %rax\n"
        "    jz 1f\n"
        "    movq 40+krait_stub_data(%rip), %rdi\n"
        "    callq *%rax\n"
        "1:  xorl %eax, %eax\n"
        "    popq %rbx\n"
        "    retq\n"
        "    .balign 8\n"
        "krait_stub_data:\n"
        "krait_stub_end:\n"
        ".popsection\n");

extern const uint8_t krait_stub_begin[], krait_stub_end[];

size_t krait_stub_make(uint8_t *bytes, const struct krait_target *target,
                       const struct krait_attach_call *call)
{
    const char *const texts[] = { call->function, call->argument, call->library };
    size_t code = (size_t)(krait_stub_end - krait_stub_begin);
    uint64_t data[KRAIT_TARGET_FUNCTIONS + KRAIT_ARRAY_LEN(texts)];
    size_t at = code + sizeof(data);
    memcpy(bytes, krait_stub_begin, code);
    memcpy(data, target->functions, sizeof(target->functions));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        size_t n = strlen(texts[i]) + 1;
        if (n > KRAIT_STUB_MAX - at)
            return 0;
        memcpy(bytes + at, texts[i], n);
        data[KRAIT_TARGET_FUNCTIONS + i] = target->room + at;
        at += n;
    }
    memcpy(bytes + code, data, sizeof(data));
    return at;
}

#else

size_t krait_stub_make(uint8_t *bytes, const struct krait_target *target,
                       const struct krait_attach_call *call)
{
    return 0;
}

#endif
