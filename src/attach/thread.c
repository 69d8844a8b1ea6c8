/* SPDX-License-Identifier: Apache-2.0
 *
 * krait stops one thread. All others keep running and release the locks that they hold, so only the locks that this
 * thread itself holds matter: those of malloc, of the loader, of libc's list of threads.
 */
#include "remote/thread.h"
#include "attach/inside.h"
#include "attach/machine.h"
#include "base/clock.h"
#include "remote/memory.h"
#include "remote/stop.h"
#include "remote/unwind.h"

#include <dirent.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum { FRAMES = 1000 };  /* that are unwound; each takes some microseconds */
enum { RED_ZONE = 128 }; /* below the stack pointer, where a function may keep things (x86-64) */

/* ---- the safe place ---- */

static bool is_in(const struct krait_address_ranges *ranges, uint64_t address)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (address >= ranges->items[i].begin && address < ranges->items[i].end)
            return true;
    }
    return false;
}

/* Whether a word of the stack may be a return address in code that holds locks. */
static bool leads_back(const struct krait_target *target, uint64_t word)
{
    uint64_t address = krait_unwind_address(word);
    return is_in(&target->holds, address) && krait_stopped_is_return(target->pid, address);
}

/* How many of the words there are up to the outermost one that may be such an address; 0: none is. */
static size_t count_to_last(const struct krait_target *target, const uint64_t *words, size_t count)
{
    while (count && !leads_back(target, words[count - 1]))
        count--;
    return count;
}

/* From a frame to its caller's: krait_unwind_step. */
static int step_up(const struct krait_target *target, struct krait_registers *registers,
                   struct krait_memory_block *stack)
{
    const struct krait_target_file *file = krait_target_file(target, krait_registers_pc(registers));
    return file ? krait_unwind_step(registers, &file->elf, file->moved, stack) : -ENXIO;
}

/* Whether a frame is one of greenlet's: krait_mapped_is_greenlet. Other greenlets wait in a switch and so hold no lock. */
static bool ends_slice(const struct krait_target *target, const struct krait_registers *registers)
{
    const struct krait_target_file *file = krait_target_file(target, krait_registers_pc(registers));
    return file && file->is_greenlet &&
           krait_elf_is_code(&file->elf, krait_registers_pc(registers) - file->moved);
}

/* Unwinds the stack from the current instruction up to the address `end`. Returns true if no frame is in such code, also not
 * the one that a return address below `end` leads to; and false if it cannot unwind so far. */
static bool is_unwound(const struct krait_target *target, pid_t tid, uint64_t end)
{
    struct krait_registers registers;
    struct krait_memory_block stack = { .pid = target->pid };
    int rc = krait_registers_read(tid, &registers);
    for (int i = 0; i < FRAMES && !rc; i++) {
        if (is_in(&target->holds, krait_registers_pc(&registers)))
            return false;
        if (registers.value[KRAIT_CFI_SP] >= end || ends_slice(target, &registers))
            return true;
        rc = step_up(target, &registers, &stack);
    }
    return rc == -ENOENT;
}

/* The stack pointer of the outermost frame; 0 if it cannot be found. */
static uint64_t outermost(const struct krait_target *target, pid_t tid)
{
    struct krait_registers registers;
    struct krait_memory_block stack = { .pid = target->pid };
    int rc = krait_registers_read(tid, &registers);
    for (int i = 0; i < FRAMES && !rc; i++)
        rc = step_up(target, &registers, &stack);
    return rc == -ENOENT ? registers.value[KRAIT_CFI_SP] : 0;
}

/* Whether a thread is on the stack that it began with, so that it is known how much room there is. A stack that a program made
 * itself, for signals or coroutines, may be small, amid other memory. The thread that a process began with has its thread
 * pointer elsewhere; after fork(2) in another thread it is on the stack of that one. */
static bool is_first_stack(const struct krait_target *target, const struct krait_stopped *stopped,
                           const struct krait_address_range *stack)
{
    enum { LOCAL = 64 * 1024 }; /* what libc and thread-local variables have above the outermost frame */
    if (stack->end == target->main_stack)
        return true;
    if (stopped->pointer < stopped->sp || stopped->pointer >= stack->end)
        return false;
    return stopped->tid != target->pid || stopped->pointer - outermost(target, stopped->tid) < LOCAL;
}

/* A place is safe if the thread is not in libc, or waits there, and no word of the innermost part of the stack is a
 * return address in code that holds locks. Such code calls no functions of the program, so its frames are among the
 * innermost. Words left over from earlier calls may look like return addresses; then the frames themselves are
 * checked. For a waiting thread a smaller part is enough: libc waits for its own locks only a few frames below the
 * function that needs them. */
static bool is_safe(const struct krait_target *target, const struct krait_stopped *stopped,
                    const struct krait_address_range *stack)
{
    enum { DEPTH = 16 * 1024, DEPTH_WAITING = 4 * 1024 };
    uint64_t words[DEPTH / sizeof(uint64_t)];
    uint64_t from = (stopped->sp - RED_ZONE) & ~7ull;
    size_t bytes =
        (size_t)KRAIT_MIN(stopped->waits ? (uint64_t)DEPTH_WAITING : (uint64_t)DEPTH, stack->end - from);
    if (is_in(&target->holds, stopped->pc) || (!stopped->waits && is_in(&target->libc, stopped->pc)) ||
        krait_memory_read(target->pid, from, words, bytes))
        return false;
    size_t all = bytes / sizeof(uint64_t);
    size_t count = leads_back(target, stopped->caller) ? all : count_to_last(target, words, all);
    return !count || is_unwound(target, stopped->tid, from + count * sizeof(uint64_t));
}

/* ---- the frame ---- */

/* If the stack has not grown that far yet, a tracer's write makes it grow, up to its limit (Linux,
 * __access_remote_vm() in mm/memory.c; process_vm_writev does not since 6.5). */
static int write_frame(const struct krait_target *target, pid_t tid, struct krait_stub_frame *frame,
                       uint64_t at)
{
    struct iovec from = { frame->bytes, frame->size }, to = { (void *)at, frame->size };
    ssize_t n = process_vm_writev(target->pid, &from, 1, &to, 1, 0);
    bool written = n == (ssize_t)frame->size || !krait_write_stopped(tid, at, frame->bytes, frame->size);
    return written ? 0 : KRAIT_THREAD_UNSAFE;
}

static int send_stopped(const struct krait_target *target, pid_t tid)
{
    enum { NEEDED = 48 * 1024 };
    struct krait_stopped stopped;
    struct krait_stub_frame frame;
    int rc = krait_stopped_read(target->pid, tid, &stopped);
    if (rc)
        return rc;
    const struct krait_address_range *stack = krait_target_data(target, stopped.sp);
    if (!stack || !is_first_stack(target, &stopped, stack) || stopped.sp - stack->begin < NEEDED ||
        !is_safe(target, &stopped, stack))
        return KRAIT_THREAD_UNSAFE;
    rc = krait_stopped_frame(&stopped, &frame);
    if (rc)
        return rc;
    uint64_t at = (stopped.sp - RED_ZONE - frame.room) & ~63ull;
    rc = write_frame(target, tid, &frame, at);
    return rc ? rc : krait_stopped_send(&stopped, target->room, at);
}

int krait_thread_send(const struct krait_target *target, pid_t tid, uint64_t *stopped_ns)
{
    uint64_t before_ns;
    *stopped_ns = 0;
    if (krait_task_number(tid, "Seccomp") == KRAIT_SECCOMP_FILTER)
        return KRAIT_THREAD_UNSAFE;
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

/* Whether a thread that could not be tried is none any more. ptrace(2) says EPERM of a thread that is ending. */
static bool has_ended(pid_t pid, pid_t tid, int tried)
{
    return tried == -ESRCH || (tried == -EPERM && tid != pid);
}

int krait_thread_any(pid_t pid, int (*try)(void *ctx, pid_t tid), void *ctx)
{
    char path[64];
    int rc = -ESRCH;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && rc && (entry = readdir(dir))) {
        pid_t tid = atoi(entry->d_name);
        int tried = tid > 0 && tid != pid ? try(ctx, tid) : -ESRCH;
        if (!has_ended(pid, tid, tried) &&
            (tried >= 0 || rc < 0)) /* a thread that may be at a safe place later is worth a wait */
            rc = tried;
    }
    if (dir)
        closedir(dir);
    int first = rc ? try(ctx, pid) : rc;
    return has_ended(pid, pid, first) || (first < 0 && rc > 0) ? rc : first;
}
