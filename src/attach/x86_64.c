/* SPDX-License-Identifier: Apache-2.0
 *
 * x86-64.
 */
#ifdef __x86_64__

#include "attach/inside.h"
#include "attach/machine.h"
#include "remote/memory.h"

#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

/* The frame of the stopped thread while it runs the stub. */
struct frame {
    uint64_t registers[15]; /* in the order in which they are popped */
    uint64_t iret[5];       /* rip, cs, rflags, rsp, ss */
    uint64_t created;       /* the new thread's pthread_t */
    uint64_t mask;          /* signals that the thread blocks */
    uint64_t pending;
    uint64_t action[4];   /* of one of them: the kernel's struct sigaction */
    uint64_t interrupted; /* the instruction behind the call that waits, if a signal may interrupt it; or 0 */
    uint64_t restarts;    /* flag of actions that do not interrupt that call */
    uint64_t waits;       /* how many times it waits a millisecond for others to take what is pending */
    uint64_t unused[2];
    uint8_t vectors[]; /* at 256; XSAVE's area */
};

enum { RAX = 10, RIP = 0 }; /* in registers, in iret */

_Static_assert(offsetof(struct frame, registers[RAX]) == 80, "the stub");
_Static_assert(offsetof(struct frame, iret[RIP]) == 120, "the stub");
_Static_assert(offsetof(struct frame, created) == 160, "the stub");
_Static_assert(offsetof(struct frame, mask) == 168, "the stub");
_Static_assert(offsetof(struct frame, pending) == 176, "the stub");
_Static_assert(offsetof(struct frame, action) == 184, "the stub");
_Static_assert(offsetof(struct frame, interrupted) == 216, "the stub");
_Static_assert(offsetof(struct frame, restarts) == 224, "the stub");
_Static_assert(offsetof(struct frame, waits) == 232, "the stub");
_Static_assert(offsetof(struct frame, vectors) == 256, "the stub");

/* Begins with rsp and rbx at the frame, and with all signals blocked. `iretq` restores rip, flags and rsp in one step, so the stub
 * itself keeps nothing of the thread. XSAVE's header must be zero; krait writes it (Intel's manual, volume 1, 13.7).
 *
 * The signals that come from the stop on are delivered when the stub restores the thread's mask. A call that the thread waits in
 * would not see them: it is made again behind that. So if one of them has a handler that interrupts the call, the call is not made
 * again and returns EINTR, as the kernel decides it (handle_signal() in arch/x86/kernel/signal.c).
 *
 * A signal of the whole process is pending until a thread takes it. The kernel has woken up the first thread for that if it does
 * not block it (complete_signal() in kernel/signal.c), but that may wait for a CPU: another thread's stub waits for it a moment. */
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
        "    movq 232(%rbx), %r12\n"
        "    testl %eax, %eax\n"
        "    jnz 1f\n"
        "    movq 160(%rbx), %rdi\n"
        "    callq *8+krait_stub_data(%rip)\n"
        "1:  leaq 176(%rbx), %rdi\n"
        "    movl $8, %esi\n"
        "    movl $127, %eax\n" /* rt_sigpending */
        "    syscall\n"
        "    movq 168(%rbx), %r13\n"
        "    notq %r13\n"
        "    andq 176(%rbx), %r13\n"
        "    jz 3f\n"
        "    subq $1, %r12\n"
        "    js 4f\n"
        "    movq $0, 184(%rbx)\n"
        "    movq $1000000, 192(%rbx)\n"
        "    leaq 184(%rbx), %rdi\n"
        "    xorl %esi, %esi\n"
        "    movl $35, %eax\n" /* nanosleep */
        "    syscall\n"
        "    jmp 1b\n"
        "4:  cmpq $0, 216(%rbx)\n"
        "    je 3f\n"
        "2:  bsfq %r13, %rdi\n"
        "    jz 3f\n"
        "    leaq -1(%r13), %rax\n" /* without its lowest bit */
        "    andq %rax, %r13\n"
        "    incl %edi\n"
        "    xorl %esi, %esi\n"
        "    leaq 184(%rbx), %rdx\n"
        "    movl $8, %r10d\n"
        "    movl $13, %eax\n" /* rt_sigaction */
        "    syscall\n"
        "    cmpq $1, 184(%rbx)\n" /* SIG_DFL, SIG_IGN: no handler */
        "    jbe 2b\n"
        "    movq 192(%rbx), %rax\n" /* sa_flags */
        "    testq %rax, 224(%rbx)\n"
        "    jnz 3f\n"
        "    movq 216(%rbx), %rax\n"
        "    movq %rax, 120(%rbx)\n"
        "    movq $-4, 80(%rbx)\n" /* -EINTR */
        "3:  movl $2, %edi\n"      /* SIG_SETMASK */
        "    leaq 168(%rbx), %rsi\n"
        "    xorl %edx, %edx\n"
        "    movl $8, %r10d\n"
        "    movl $14, %eax\n" /* rt_sigprocmask */
        "    syscall\n"
        "    movl $-1, %eax\n"
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

int krait_stopped_read(pid_t pid, pid_t tid, struct krait_stopped *stopped)
{
    enum { USER_CS = 0x33 };
    *stopped = (struct krait_stopped){ .tid = tid, .is_first = tid == pid };
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
static void restart_call(struct frame *frame, const struct user_regs_struct *regs)
{
    enum { RESTARTSYS = 512, RESTARTNOINTR = 513, RESTARTNOHAND = 514, RESTART_BLOCK = 516, CALL = 2 };
    enum { RESTART_SYSCALL = 219 };
    long rc = -(long)regs->rax;
    bool is_again = rc == RESTARTSYS || rc == RESTARTNOINTR || rc == RESTARTNOHAND;
    if ((long)regs->orig_rax < 0 || !(is_again || rc == RESTART_BLOCK))
        return;
    frame->registers[RAX] = is_again ? regs->orig_rax : RESTART_SYSCALL;
    frame->iret[RIP] = regs->rip - CALL;
    frame->interrupted = rc == RESTARTNOINTR ? 0 : regs->rip;
    frame->restarts = rc == RESTARTSYS ? SA_RESTART : 0;
}

int krait_stopped_frame(const struct krait_stopped *stopped, struct krait_stub_frame *frame)
{
    enum { VECTORS_HEADER = 576, WAITS = 100 };
    size_t vectors = vectors_size();
    const struct user_regs_struct *r = &stopped->regs;
    if (!vectors)
        return -ENOTSUP;
    struct frame fixed = {
        .registers = { r->r15, r->r14, r->r13, r->r12, r->rbp, r->rbx, r->r11, r->r10, r->r9, r->r8, r->rax,
                       r->rcx, r->rdx, r->rsi, r->rdi },
        .iret = { r->rip, r->cs, r->eflags, r->rsp, r->ss },
        .waits = stopped->is_first ? 0 : WAITS,
    };
    restart_call(&fixed, r);
    if (ptrace(PTRACE_GETSIGMASK, stopped->tid, (void *)sizeof(fixed.mask), &fixed.mask))
        return -errno;
    frame->size = sizeof(fixed) + VECTORS_HEADER;
    frame->room = sizeof(fixed) + vectors;
    memset(frame->bytes, 0, frame->size);
    memcpy(frame->bytes, &fixed, sizeof(fixed));
    return 0;
}

int krait_stopped_send(const struct krait_stopped *stopped, uint64_t code, uint64_t frame)
{
    uint64_t all = ~0ull;
    struct user_regs_struct regs = stopped->regs;
    regs.rip = code;
    regs.rsp = regs.rbx = frame;
    regs.orig_rax = (unsigned long long)-1; /* no call is repeated */
    if (ptrace(PTRACE_SETREGS, stopped->tid, NULL, &regs))
        return -errno;
    ptrace(PTRACE_SETSIGMASK, stopped->tid, (void *)sizeof(all),
           &all); /* the stub undoes it: after the registers */
    return 0;
}

#endif
