/* SPDX-License-Identifier: Apache-2.0 */
#include "attach/stub.h"

#include <string.h>

#ifdef __x86_64__

/* Begins with rsp and rbx at the frame. `iretq` restores rip, flags and rsp in one step, so the stub itself keeps
 * nothing of the thread. XSAVE's header must be zero; thread.c writes it (Intel's manual, volume 1, 13.7). */
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
        "    pushq %r12\n"
        "    subq $24, %rsp\n"
        "    movl $-1, %ebx\n" /* the memfd */
        "    movq 56+krait_stub_data(%rip), %rdi\n"
        "    testq %rdi, %rdi\n"
        "    jz 2f\n"
        "    movl $1, %esi\n"   /* MFD_CLOEXEC */
        "    movl $319, %eax\n" /* memfd_create */
        "    syscall\n"
        "    testl %eax, %eax\n"
        "    js 5f\n"
        "    movl %eax, %ebx\n"
        "    movl $5000, %r12d\n"
        "1:  cmpq $0, 64+krait_stub_data(%rip)\n"
        "    jne 2f\n"
        "    movq $0, (%rsp)\n"
        "    movq $1000000, 8(%rsp)\n"
        "    movq %rsp, %rdi\n"
        "    xorl %esi, %esi\n"
        "    movl $35, %eax\n" /* nanosleep */
        "    syscall\n"
        "    decl %r12d\n"
        "    jnz 1b\n"
        "    jmp 3f\n"
        "2:  movq 48+krait_stub_data(%rip), %rdi\n"
        "    movl $2, %esi\n" /* RTLD_NOW */
        "    callq *16+krait_stub_data(%rip)\n"
        "    movq %rax, %r12\n"
        "3:  testl %ebx, %ebx\n"
        "    js 4f\n"
        "    movl %ebx, %edi\n"
        "    movl $3, %eax\n" /* close */
        "    syscall\n"
        "4:  testq %r12, %r12\n"
        "    jz 5f\n"
        "    movq %r12, %rdi\n"
        "    movq 32+krait_stub_data(%rip), %rsi\n"
        "    callq *24+krait_stub_data(%rip)\n"
        "    testq %rax, %rax\n"
        "    jz 5f\n"
        "    movq 40+krait_stub_data(%rip), %rdi\n"
        "    callq *%rax\n"
        "5:  xorl %eax, %eax\n"
        "    addq $24, %rsp\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    retq\n"
        "    .balign 8\n"
        "krait_stub_data:\n"
        "krait_stub_end:\n"
        ".popsection\n");

extern const uint8_t krait_stub_begin[], krait_stub_end[];

bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call)
{
    enum { PATH = 2, READY = KRAIT_TARGET_FUNCTIONS + 4 };
    static const char later[KRAIT_STUB_PATH] = { 0 };
    const char *const texts[] = { call->function, call->argument, call->memfd ? later : call->path,
                                  call->memfd };
    size_t code = (size_t)(krait_stub_end - krait_stub_begin);
    uint64_t data[READY + 1] = { 0 };
    size_t at = code + sizeof(data);
    *stub = (struct krait_stub){ .ready_at = code + READY * sizeof(uint64_t) };
    memcpy(stub->bytes, krait_stub_begin, code);
    memcpy(data, target->functions, sizeof(target->functions));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        size_t n = texts[i] == later ? sizeof(later) : texts[i] ? strlen(texts[i]) + 1 : 0;
        if (n > KRAIT_STUB_MAX - at)
            return false;
        if (n)
            memcpy(stub->bytes + at, texts[i], n);
        data[KRAIT_TARGET_FUNCTIONS + i] = n ? target->room + at : 0;
        stub->path_at = i == PATH ? at : stub->path_at;
        at += n;
    }
    memcpy(stub->bytes + code, data, sizeof(data));
    stub->size = at;
    return true;
}

#else

bool krait_stub_make(struct krait_stub *stub, const struct krait_target *target,
                     const struct krait_stub_call *call)
{
    return false;
}

#endif
