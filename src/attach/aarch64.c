/* SPDX-License-Identifier: Apache-2.0
 *
 * AArch64. Nothing but the kernel can set all registers of a thread in one step: rt_sigreturn(2). So the frame is the one
 * of a signal (arch/arm64/kernel/signal.c, struct rt_sigframe), and the stub ends as signal handlers do.
 */
#ifdef __aarch64__

#include "attach/inside.h"
#include "attach/machine.h"
#include "remote/memory.h"

#include <asm/ptrace.h>
#include <elf.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

struct frame {
    union {
        siginfo_t info;   /* rt_sigreturn does not read it */
        uint64_t created; /* the new thread's pthread_t */
    };
    ucontext_t context;
};

_Static_assert(offsetof(struct frame, context.uc_stack) == 144, "the stub");
_Static_assert(offsetof(struct frame, context.uc_sigmask) == 168, "the stub");
_Static_assert(offsetof(struct frame, context.uc_mcontext) == 304, "the kernel's struct rt_sigframe");
_Static_assert(sizeof(struct frame) <= sizeof((struct krait_stub_frame *)NULL)->bytes, "the frame");

/* Begins with sp and x19 at the frame. It asks for the thread's signal mask and signal stack, which rt_sigreturn sets.
 * Where branches must lead to landing pads, the new thread begins at one: hint 34 is BTI C (Arm's ARM, C6.2.41). */
__asm__(".pushsection .rodata\n"
        ".balign 4\n"
        ".globl krait_stub_begin, krait_stub_end\n"
        ".hidden krait_stub_begin, krait_stub_end\n"
        "krait_stub_begin:\n"
        "    mov x0, #0\n" /* SIG_BLOCK */
        "    mov x1, #0\n"
        "    add x2, x19, #168\n"
        "    mov x3, #8\n"
        "    mov x8, #135\n" /* rt_sigprocmask */
        "    svc #0\n"
        "    mov x0, #0\n"
        "    add x1, x19, #144\n"
        "    mov x8, #132\n" /* sigaltstack */
        "    svc #0\n"
        "    adr x20, krait_stub_data\n"
        "    mov x0, x19\n"
        "    mov x1, #0\n"
        "    adr x2, krait_stub_thread\n"
        "    mov x3, #0\n"
        "    ldr x4, [x20]\n"
        "    blr x4\n"
        "    cbnz w0, 1f\n"
        "    ldr x0, [x19]\n"
        "    ldr x4, [x20, #8]\n"
        "    blr x4\n"
        "1:  mov sp, x19\n"
        "    mov x8, #139\n" /* rt_sigreturn */
        "    svc #0\n"
        "krait_stub_thread:\n"
        "    hint #34\n"
        "    stp x29, x30, [sp, #-64]!\n"
        "    mov x29, sp\n"
        "    stp x19, x20, [sp, #16]\n"
        "    str x21, [sp, #32]\n"
        "    adr x20, krait_stub_data\n"
        "    mov w19, #-1\n" /* the memfd */
        "    mov x21, #0\n"  /* the library */
        "    ldr x0, [x20, #56]\n"
        "    cbz x0, 2f\n"
        "    mov x1, #1\n"   /* MFD_CLOEXEC */
        "    mov x8, #279\n" /* memfd_create */
        "    svc #0\n"
        "    tbnz w0, #31, 5f\n"
        "    mov w19, w0\n"
        "    mov w21, #5000\n"
        "1:  ldr x0, [x20, #64]\n"
        "    cbnz x0, 2f\n"
        "    mov x0, #16960\n"
        "    movk x0, #15, lsl #16\n" /* 1000000 */
        "    stp xzr, x0, [sp, #48]\n"
        "    add x0, sp, #48\n"
        "    mov x1, #0\n"
        "    mov x8, #101\n" /* nanosleep */
        "    svc #0\n"
        "    subs w21, w21, #1\n"
        "    b.ne 1b\n"
        "    b 3f\n"
        "2:  dmb ish\n" /* the path, which was written before */
        "    ldr x0, [x20, #48]\n"
        "    mov x1, #2\n" /* RTLD_NOW */
        "    ldr x4, [x20, #16]\n"
        "    blr x4\n"
        "    mov x21, x0\n"
        "3:  tbnz w19, #31, 4f\n"
        "    mov w0, w19\n"
        "    mov x8, #57\n" /* close */
        "    svc #0\n"
        "4:  cbz x21, 5f\n"
        "    mov x0, x21\n"
        "    ldr x1, [x20, #32]\n"
        "    ldr x4, [x20, #24]\n"
        "    blr x4\n"
        "    cbz x0, 5f\n"
        "    mov x4, x0\n"
        "    ldr x0, [x20, #40]\n"
        "    blr x4\n"
        "5:  mov x0, #0\n"
        "    ldr x21, [sp, #32]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #64\n"
        "    ret\n"
        "    .balign 8\n"
        "krait_stub_data:\n"
        "krait_stub_end:\n"
        ".popsection\n");

/* Instructions: Arm's ARM, C4.1, "Branches, Exception Generating and System instructions". */
static bool is_supervisor_call(uint32_t instruction)
{
    return instruction == 0xd4000001; /* SVC #0 */
}

/* BL; BLR, also those that authenticate the pointer. */
static bool is_call(uint32_t instruction)
{
    return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfefff000) == 0xd63f0000;
}

bool krait_stopped_is_return(pid_t pid, uint64_t address)
{
    uint32_t before;
    return krait_memory_read(pid, address - sizeof(before), &before, sizeof(before)) || is_call(before);
}

/* If the kernel repeats the call, it has set the registers back to it before it stopped the thread for krait (do_signal() in
 * arch/arm64/kernel/signal.c); else the call returns EINTR. */
static bool waits(pid_t pid, const struct user_regs_struct *regs)
{
    uint32_t code[2]; /* the instruction before pc, and that at pc */
    if (krait_memory_read(pid, regs->pc - sizeof(code[0]), code, sizeof(code)))
        return false;
    return is_supervisor_call(code[1]) || (is_supervisor_call(code[0]) && (int64_t)regs->regs[0] == -EINTR);
}

/* Returns how many bytes the kernel has of such registers, or a negative errno. */
static ssize_t read_registers(pid_t tid, int kind, void *bytes, size_t n)
{
    struct iovec to = { bytes, n };
    return ptrace(PTRACE_GETREGSET, tid, (void *)(intptr_t)kind, &to) ? -errno : (ssize_t)to.iov_len;
}

int krait_stopped_read(pid_t pid, pid_t tid, struct krait_stopped *stopped)
{
    *stopped = (struct krait_stopped){ .tid = tid, .is_first = tid == pid };
    ssize_t n = read_registers(tid, NT_PRSTATUS, &stopped->regs, sizeof(stopped->regs));
    if (n < 0)
        return (int)n;
    stopped->pc = stopped->regs.pc;
    stopped->sp = stopped->regs.sp;
    stopped->caller = stopped->regs.regs[30];
    stopped->waits = waits(tid, &stopped->regs);
    if (n != sizeof(stopped->regs))
        return -ENOTSUP; /* a program of 32 bits has fewer */
    n = read_registers(tid, NT_ARM_TLS, &stopped->pointer, sizeof(stopped->pointer));
    return n < 0 ? (int)n : 0;
}

/* ---- the frame ---- */

/* Registers that the frame cannot hold, while they are in use. */
enum {
    SSVE = 0x40b, /* the vectors of SME's streaming mode; the numbers: linux/elf.h */
    ZA = 0x40c,   /* SME's matrix */
    POE = 0x40f,  /* rights of protection keys */
    GCS = 0x410,  /* a second stack for return addresses, without which rt_sigreturn ends the program */
};

static int check_streaming(pid_t tid)
{
    struct user_sve_header head = { 0 };
    ssize_t n = read_registers(tid, SSVE, &head, sizeof(head));
    return n > 0 && (head.flags & SVE_PT_REGS_MASK) == SVE_PT_REGS_SVE ? KRAIT_THREAD_UNSAFE : 0;
}

static int check_matrix(pid_t tid)
{
    struct user_sve_header head = { 0 }; /* struct user_za_header is the same */
    ssize_t n = read_registers(tid, ZA, &head, sizeof(head));
    return n > 0 && head.size > sizeof(head) ? KRAIT_THREAD_UNSAFE : 0;
}

static int check_keys(pid_t tid)
{
    enum { AT_FIRST = 7 }; /* POR_EL0_INIT */
    uint64_t rights = AT_FIRST;
    ssize_t n = read_registers(tid, POE, &rights, sizeof(rights));
    return n > 0 && rights != AT_FIRST ? KRAIT_THREAD_UNSAFE : 0;
}

static int check_control_stack(pid_t tid)
{
    enum { IS_ON = 1 };
    uint64_t head[3] = { 0 }; /* struct user_gcs */
    ssize_t n = read_registers(tid, GCS, head, sizeof(head));
    return n > 0 && head[0] & IS_ON ? -ENOTSUP : 0;
}

static int (*const checks[])(pid_t tid) = { check_streaming, check_matrix, check_keys, check_control_stack };

/* The records of a signal's frame follow each other in `__reserved`; a head of zeroes ends them. */
struct records {
    uint8_t *at, *end;
};

static void *add_record(struct records *records, uint32_t magic, size_t size)
{
    struct _aarch64_ctx head = { magic, (uint32_t)((size + 15) & ~15ull) };
    if ((size_t)(records->end - records->at) < head.size + sizeof(head))
        return NULL;
    uint8_t *record = records->at;
    memcpy(record, &head, sizeof(head));
    records->at += head.size;
    return record;
}

static int add_vectors(pid_t tid, struct records *records)
{
    struct user_fpsimd_state vectors;
    ssize_t n = read_registers(tid, NT_PRFPREG, &vectors, sizeof(vectors));
    struct fpsimd_context *record = add_record(records, FPSIMD_MAGIC, sizeof(*record));
    if (n < 0 || !record)
        return n < 0 ? (int)n : KRAIT_THREAD_UNSAFE;
    record->fpsr = vectors.fpsr;
    record->fpcr = vectors.fpcr;
    memcpy(record->vregs, vectors.vregs, sizeof(record->vregs));
    return 0;
}

/* The vectors of SVE, which begin with those of add_vectors, if the thread has used them since its last system call. In a
 * frame of this size there is room for vectors of up to 512 bits. */
static int add_long_vectors(pid_t tid, struct records *records)
{
    struct {
        struct user_sve_header head;
        uint8_t registers[sizeof(((mcontext_t *)NULL)->__reserved)];
    } sve = { 0 };
    ssize_t n = read_registers(tid, NT_ARM_SVE, &sve, sizeof(sve));
    if (n < (ssize_t)sizeof(sve.head) || (sve.head.flags & SVE_PT_REGS_MASK) != SVE_PT_REGS_SVE)
        return 0; /* the processor has none, or they are not in use */
    size_t lanes = sve_vq_from_vl(sve.head.vl), bytes = SVE_SIG_REGS_SIZE(lanes);
    struct sve_context *record = add_record(records, SVE_MAGIC, SVE_SIG_CONTEXT_SIZE(lanes));
    if (!record || bytes > sizeof(sve.registers) || (size_t)n < sizeof(sve.head) + bytes)
        return KRAIT_THREAD_UNSAFE;
    record->vl = sve.head.vl;
    memcpy((uint8_t *)record + SVE_SIG_REGS_OFFSET, sve.registers, bytes);
    return 0;
}

/* The kernel would let these go on for the rest of their time. But rt_sigreturn makes it forget them, and called again they
 * would wait for the whole time: so they return EINTR, as the call that goes on does then. */
static bool waits_for_a_time(const struct user_regs_struct *regs)
{
    enum { OF_CLOCK = 1, COMMAND = 0x7f };
    const unsigned long long *r = regs->regs;
    return r[8] == SYS_nanosleep || (r[8] == SYS_clock_nanosleep && !(r[1] & OF_CLOCK)) ||
           (r[8] == SYS_futex && !(r[1] & COMMAND) && r[3]); /* FUTEX_WAIT */
}

int krait_stopped_frame(const struct krait_stopped *stopped, struct krait_stub_frame *frame)
{
    struct frame made = { 0 };
    mcontext_t *m = &made.context.uc_mcontext;
    struct records records = { m->__reserved, m->__reserved + sizeof(m->__reserved) };
    int rc = 0;
    for (size_t i = 0; !rc && i < KRAIT_ARRAY_LEN(checks); i++)
        rc = checks[i](stopped->tid);
    rc = rc ? rc : add_vectors(stopped->tid, &records);
    rc = rc ? rc : add_long_vectors(stopped->tid, &records);
    memcpy(m->regs, stopped->regs.regs, sizeof(m->regs));
    m->sp = stopped->regs.sp;
    m->pc = stopped->regs.pc;
    m->pstate = stopped->regs.pstate;
    if (stopped->waits && waits_for_a_time(&stopped->regs))
        m->regs[8] = SYS_restart_syscall;
    frame->size = frame->room = sizeof(made);
    memcpy(frame->bytes, &made, sizeof(made));
    return rc;
}

int krait_stopped_send(const struct krait_stopped *stopped, uint64_t code, uint64_t frame)
{
    enum { BRANCH_TYPE = 3 << 10 }; /* of the branch that led to pc */
    struct user_regs_struct regs = stopped->regs;
    struct iovec from = { &regs, sizeof(regs) };
    regs.pc = code;
    regs.sp = regs.regs[19] = frame;
    regs.pstate &= ~(uint64_t)BRANCH_TYPE;
    return ptrace(PTRACE_SETREGSET, stopped->tid, (void *)NT_PRSTATUS, &from) ? -errno : 0;
}

#endif
