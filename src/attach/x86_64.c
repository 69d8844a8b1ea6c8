/* SPDX-License-Identifier: Apache-2.0
 *
 * x86-64.
 */
#ifdef __x86_64__

#include "attach/inside.h"
#include "attach/machine.h"
#include "remote/memory.h"

#include <cpuid.h>
#include <string.h>
#include <sys/ptrace.h>

/* The frame of the stopped thread while it runs the stub. */
struct frame {
    uint64_t registers[15]; /* in the order in which they are popped */
    uint64_t iret[5];       /* rip, cs, rflags, rsp, ss */
    uint64_t created;       /* the new thread's pthread_t */
    uint64_t unused[11];
    uint8_t vectors[]; /* at 256; XSAVE's area */
};

_Static_assert(offsetof(struct frame, created) == 160, "the stub");
_Static_assert(offsetof(struct frame, vectors) == 256, "the stub");

/* Begins with rsp and rbx at the frame. `iretq` restores rip, flags and rsp in one step, so the stub itself keeps
 * nothing of the thread. XSAVE's header must be zero; krait writes it (Intel's manual, volume 1, 13.7). */
__asm__(".pushsection .rodata\n"
        ".globl krait_stub_begin, krait_stub_end\n"
        ".hidden krait_stub_begin, krait_stub_end\n"
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

/* E8 with 4 bytes, or FF /2 in its lengths (Intel's manual, volume 2, CALL). */
bool krait_stopped_is_return(pid_t pid, uint64_t address)
{
    static const unsigned lengths[] = { 2, 3, 4, 6, 7 };
    uint8_t before[7];
    if (krait_memory_read(pid, address - sizeof(before), before, sizeof(before)))
        return true;
    bool found = before[2] == 0xe8;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(lengths); i++) {
        const uint8_t *at = before + sizeof(before) - lengths[i];
        found |= at[0] == 0xff && (at[1] >> 3 & 7) == 2;
    }
    return found;
}

/* The kernel repeats most calls; epoll_wait and some others return EINTR at any stop (signal(7)). */
static bool waits(const struct user_regs_struct *regs)
{
    enum { RESTARTSYS = 512, RESTART_BLOCK = 516 };
    long rc = -(long)regs->rax;
    return (long)regs->orig_rax >= 0 && (rc == EINTR || (rc >= RESTARTSYS && rc <= RESTART_BLOCK));
}

int krait_stopped_read(pid_t tid, struct krait_stopped *stopped)
{
    enum { USER_CS = 0x33 };
    *stopped = (struct krait_stopped){ .tid = tid };
    if (ptrace(PTRACE_GETREGS, tid, NULL, &stopped->regs))
        return -errno;
    stopped->pc = stopped->regs.rip;
    stopped->sp = stopped->regs.rsp;
    stopped->pointer = stopped->regs.fs_base;
    stopped->waits = waits(&stopped->regs);
    return stopped->regs.cs == USER_CS ? 0 : -ENOTSUP;
}

/* Leaf 13: EBX is the size of XSAVE's area for the features that the kernel has enabled. */
static size_t vectors_size(void)
{
    unsigned a, size, c, d;
    return __get_cpuid_count(13, 0, &a, &size, &c, &d) && (c || size) ? size : 0;
}

/* As the kernel does before it returns to user mode (arch/x86/kernel/signal.c, arch_do_signal_or_restart). The stub
 * returns without the kernel, so krait has to do this. */
static void restart_call(struct user_regs_struct *regs)
{
    enum { RESTARTSYS = 512, RESTARTNOINTR = 513, RESTARTNOHAND = 514, RESTART_BLOCK = 516, CALL = 2 };
    enum { RESTART_SYSCALL = 219 };
    long rc = -(long)regs->rax;
    if ((long)regs->orig_rax < 0)
        return;
    if (rc == RESTARTSYS || rc == RESTARTNOINTR || rc == RESTARTNOHAND)
        regs->rax = regs->orig_rax;
    else if (rc == RESTART_BLOCK)
        regs->rax = RESTART_SYSCALL;
    else
        return;
    regs->rip -= CALL;
}

int krait_stopped_frame(const struct krait_stopped *stopped, struct krait_stub_frame *frame)
{
    enum { VECTORS_HEADER = 576 };
    size_t vectors = vectors_size();
    struct user_regs_struct again = stopped->regs;
    const struct user_regs_struct *r = &again;
    if (!vectors)
        return -ENOTSUP;
    restart_call(&again);
    struct frame fixed = {
        .registers = { r->r15, r->r14, r->r13, r->r12, r->rbp, r->rbx, r->r11, r->r10, r->r9, r->r8, r->rax,
                       r->rcx, r->rdx, r->rsi, r->rdi },
        .iret = { r->rip, r->cs, r->eflags, r->rsp, r->ss },
    };
    frame->size = sizeof(fixed) + VECTORS_HEADER;
    frame->room = sizeof(fixed) + vectors;
    memset(frame->bytes, 0, frame->size);
    memcpy(frame->bytes, &fixed, sizeof(fixed));
    return 0;
}

int krait_stopped_send(const struct krait_stopped *stopped, uint64_t code, uint64_t frame)
{
    struct user_regs_struct regs = stopped->regs;
    regs.rip = code;
    regs.rsp = regs.rbx = frame;
    regs.orig_rax = (unsigned long long)-1; /* no call is repeated */
    return ptrace(PTRACE_SETREGS, stopped->tid, NULL, &regs) ? -errno : 0;
}

#endif
