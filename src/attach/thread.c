/* SPDX-License-Identifier: Apache-2.0
 *
 * krait stops one thread. All others keep running and release the locks that they hold, so only the locks that this
 * thread itself holds matter: those of malloc, of the loader, of libc's list of threads.
 */
#include "attach/inside.h"
#include "attach/stub.h"
#include "base/clock.h"
#include "remote/memory.h"
#include "remote/stop.h"
#include "remote/unwind.h"

#include <dirent.h>
#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#ifdef __x86_64__

#include <cpuid.h>

/* ---- the safe place ---- */

static bool is_in(const struct krait_address_ranges *ranges, uint64_t address)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (address >= ranges->items[i].begin && address < ranges->items[i].end)
            return true;
    }
    return false;
}

/* Whether there is a call instruction before the address: E8 with 4 bytes, or FF /2 in its lengths (Intel's manual,
 * volume 2, CALL). */
static bool is_return(pid_t pid, uint64_t address)
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

/* Whether the thread waited in a system call that the stop has interrupted. The kernel repeats most of them; epoll_wait and
 * some others return EINTR at any stop (signal(7)). */
static bool waits(const struct user_regs_struct *regs)
{
    enum { RESTARTSYS = 512, RESTART_BLOCK = 516 };
    long rc = -(long)regs->rax;
    return (long)regs->orig_rax >= 0 && (rc == EINTR || (rc >= RESTARTSYS && rc <= RESTART_BLOCK));
}

/* Whether a word of the stack may be a return address in code that holds locks. */
static bool leads_back(const struct krait_target *target, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_in(&target->holds, words[i]) && is_return(target->pid, words[i]))
            return true;
    }
    return false;
}

/* Unwinds the stack from the current instruction up to the address `end`. Returns true if no frame is in such code,
 * and false if it cannot unwind so far. */
static bool is_unwound(const struct krait_target *target, pid_t tid, uint64_t end)
{
    enum { FRAMES = 1000 }; /* each takes some microseconds */
    struct krait_registers registers;
    int rc = krait_registers_read(tid, &registers);
    for (int i = 0; i < FRAMES && !rc; i++) {
        uint64_t pc = krait_registers_pc(&registers);
        const struct krait_target_file *file = krait_target_file(target, pc);
        if (registers.value[KRAIT_CFI_SP] >= end)
            return true;
        if (!file || is_in(&target->holds, pc))
            return false;
        rc = krait_unwind_step(&registers, &file->elf, file->moved, target->pid);
    }
    return rc == -ENOENT;
}

/* A place is safe if the thread is not in libc, or waits there, and no word of the innermost part of the stack is a
 * return address in code that holds locks. Such code calls no functions of the program, so its frames are among the
 * innermost. Words left over from earlier calls may look like return addresses; then the frames themselves are
 * checked. For a waiting thread a smaller part is enough: libc waits for its own locks only a few frames below the
 * function that needs them. */
static bool is_safe(const struct krait_target *target, pid_t tid, const struct user_regs_struct *regs,
                    const struct krait_address_range *stack)
{
    enum { DEPTH = 16 * 1024, DEPTH_WAITING = 4 * 1024, RED_ZONE = 128 };
    uint64_t words[DEPTH / sizeof(uint64_t)];
    uint64_t from = (regs->rsp - RED_ZONE) & ~7ull;
    bool waiting = waits(regs);
    size_t bytes = (size_t)KRAIT_MIN(waiting ? (uint64_t)DEPTH_WAITING : (uint64_t)DEPTH, stack->end - from);
    if (is_in(&target->holds, regs->rip) || (!waiting && is_in(&target->libc, regs->rip)) ||
        krait_memory_read(target->pid, from, words, bytes))
        return false;
    return !leads_back(target, words, bytes / sizeof(uint64_t)) || is_unwound(target, tid, from + bytes);
}

/* ---- the frame ---- */

static size_t vectors_size(void)
{
    unsigned a, size, c,
        d; /* leaf 13: EBX is the size of XSAVE's area for the features that the kernel has enabled */
    return __get_cpuid_count(13, 0, &a, &size, &c, &d) && (c || size) ? size : 0;
}

/* Makes the thread repeat an interrupted system call, as the kernel does before it returns to user mode
 * (arch/x86/kernel/signal.c, arch_do_signal_or_restart). The stub returns without the kernel, so krait has to do
 * this. */
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

/* If the stack has not grown that far yet, a tracer's write makes it grow, up to its limit (Linux,
 * __access_remote_vm() in mm/memory.c; process_vm_writev does not since 6.5). */
static int write_frame(const struct krait_target *target, pid_t tid, const struct user_regs_struct *r,
                       uint64_t at)
{
    enum { VECTORS_HEADER = 576 };
    uint8_t bytes[sizeof(struct krait_stub_frame) + VECTORS_HEADER] = { 0 };
    struct krait_stub_frame frame = {
        .registers = { r->r15, r->r14, r->r13, r->r12, r->rbp, r->rbx, r->r11, r->r10, r->r9, r->r8, r->rax,
                       r->rcx, r->rdx, r->rsi, r->rdi },
        .iret = { r->rip, r->cs, r->eflags, r->rsp, r->ss },
    };
    memcpy(bytes, &frame, sizeof(frame));
    struct iovec from = { bytes, sizeof(bytes) }, to = { (void *)at, sizeof(bytes) };
    ssize_t n = process_vm_writev(target->pid, &from, 1, &to, 1, 0);
    bool written = n == (ssize_t)sizeof(bytes) || !krait_write_stopped(tid, at, bytes, sizeof(bytes));
    return written ? 0 : KRAIT_THREAD_UNSAFE;
}

static int send_stopped(const struct krait_target *target, pid_t tid)
{
    enum { NEEDED = 48 * 1024, RED_ZONE = 128, USER_CS = 0x33 };
    struct user_regs_struct regs;
    size_t vectors = vectors_size();
    if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
        return -errno;
    if (regs.cs != USER_CS || !vectors)
        return -ENOTSUP;
    const struct krait_address_range *stack = krait_target_data(target, regs.rsp);
    if (!stack || regs.rsp - stack->begin < NEEDED || !is_safe(target, tid, &regs, stack))
        return KRAIT_THREAD_UNSAFE;
    restart_call(&regs);
    uint64_t at = (regs.rsp - RED_ZONE - sizeof(struct krait_stub_frame) - vectors) & ~63ull;
    int rc = write_frame(target, tid, &regs, at);
    if (rc)
        return rc;
    regs.rip = target->room;
    regs.rsp = regs.rbx = at;
    regs.orig_rax = (unsigned long long)-1;
    return ptrace(PTRACE_SETREGS, tid, NULL, &regs) ? -errno : 0;
}

#else

static int send_stopped(const struct krait_target *target, pid_t tid)
{
    return -ENOTSUP;
}

#endif

int krait_thread_send(const struct krait_target *target, pid_t tid, uint64_t *stopped_ns)
{
    uint64_t before_ns;
    *stopped_ns = 0;
    int rc = krait_stop_begin(tid, &before_ns);
    if (rc)
        return rc;
    rc = send_stopped(target, tid);
    int gone = krait_stop_end(tid);
    *stopped_ns = krait_clock_ns(CLOCK_MONOTONIC) - before_ns;
    return rc ? rc : gone;
}

int krait_write_stopped(pid_t tid, uint64_t at, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += sizeof(long)) {
        long word = 0;
        size_t part = KRAIT_MIN(n - i, sizeof(word));
        errno = 0; /* any word may be -1 */
        if (part < sizeof(word))
            word = ptrace(PTRACE_PEEKDATA, tid, (void *)(at + i), NULL);
        if (errno)
            return -errno;
        memcpy(&word, (const uint8_t *)bytes + i, part);
        if (ptrace(PTRACE_POKEDATA, tid, (void *)(at + i), (void *)word))
            return -errno;
    }
    return 0;
}

int krait_thread_any(pid_t pid, int (*try)(void *ctx, pid_t tid), void *ctx)
{
    char path[64];
    int rc = -ESRCH;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && rc && (entry = readdir(dir))) {
        int tid = atoi(entry->d_name);
        int tried = tid > 0 ? try(ctx, tid) : -ESRCH;
        bool ends = tried == -ESRCH ||
                    (tried == -EPERM && tid != pid); /* ptrace(2) says EPERM of a thread that is ending */
        if (!ends && (tried >= 0 || rc < 0)) /* a thread that may be at a safe place later is worth a wait */
            rc = tried;
    }
    if (dir)
        closedir(dir);
    return rc;
}
