/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_block.h"

#include <string.h>

static const struct {
    enum krait_thread_state state;
    const char *calls; /* each between blanks */
} rows[] = {
    { KRAIT_TS_LOCK, " futex futex_time64 futex_wait futex_waitv semop semtimedop flock " },
    { KRAIT_TS_TIMER, " nanosleep clock_nanosleep clock_nanosleep_time64 " },
    { KRAIT_TS_CHILD, " wait4 waitid waitpid vfork " },
    { KRAIT_TS_DISK, " fsync fdatasync sync syncfs sync_file_range msync io_getevents " },
    { KRAIT_TS_NETWORK,
      " recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg accept accept4 connect " },
};

/* Those that read and write files, and change them. */
static const char of_files[] =
    " read pread64 readv preadv preadv2 write pwrite64 writev pwritev pwritev2 open openat openat2 close "
    "creat "
    "truncate ftruncate fallocate rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir link linkat "
    "symlink symlinkat copy_file_range sendfile sendfile64 splice getdents getdents64 ";

/* Among names between blanks. */
static bool is_among(const char *names, const char *call)
{
    size_t n = strlen(call);
    for (const char *at = names; (at = strstr(at, call)); at++) {
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    }
    return false;
}

static enum krait_thread_state blocks_on(const char *call)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (is_among(rows[i].calls, call))
            return rows[i].state;
    }
    return KRAIT_TS_BLOCKED;
}

struct krait_kcall_kind krait_kernel_kind_of_call(const char *call)
{
    bool is_call = *call && !strchr(call, ' '); /* a trace may name its events as it likes */
    if (!is_call)
        return (struct krait_kcall_kind){ .blocks_on = KRAIT_TS_BLOCKED };
    return (struct krait_kcall_kind){
        .blocks_on = (uint8_t)blocks_on(call),
        .has_no_end = is_among(" rt_sigreturn sigreturn ", call),
        .is_of_records = is_among(" fcntl fcntl64 ", call),
        .is_of_files = is_among(of_files, call),
    };
}

bool krait_kernel_is_lock(int64_t cmd)
{
    enum { SETLKW = 7, SETLKW64 = 14, OFD_SETLKW = 38 }; /* include/uapi/asm-generic/fcntl.h */
    return cmd == SETLKW || cmd == SETLKW64 || cmd == OFD_SETLKW;
}

/* Numbers of include/linux/interrupt.h. */
enum krait_thread_state krait_kernel_softirq_cause(int64_t vec)
{
    static const uint8_t causes[] = {
        [0] = KRAIT_TS_BLOCKED, /* HI */
        [1] = KRAIT_TS_TIMER,   /* TIMER */
        [2] = KRAIT_TS_NETWORK, /* NET_TX */
        [3] = KRAIT_TS_NETWORK, /* NET_RX */
        [4] = KRAIT_TS_DISK,    /* BLOCK */
        [5] = KRAIT_TS_BLOCKED, /* IRQ_POLL */
        [6] = KRAIT_TS_BLOCKED, /* TASKLET */
        [7] = KRAIT_TS_BLOCKED, /* SCHED */
        [8] = KRAIT_TS_TIMER,   /* HRTIMER */
    };
    return vec >= 0 && vec < (int64_t)KRAIT_ARRAY_LEN(causes) ? (enum krait_thread_state)causes[vec]
                                                              : KRAIT_TS_BLOCKED;
}

/* LTTng's numbers, as KRAIT_DUMPED_KERNEL_THREAD: lttng-modules, src/lttng-statedump-impl.c. */
enum { WAIT_CPU = 2, DUMP_EXIT = 3, DUMP_ZOMBIE = 4, DUMP_WAIT = 5, DUMP_DEAD = 7 };

enum krait_thread_state krait_kernel_dumped_state(int64_t status)
{
    static const uint8_t states[] = { [WAIT_CPU] = KRAIT_TS_PREEMPTED + 1,
                                      [DUMP_EXIT] = KRAIT_TS_GONE + 1,
                                      [DUMP_ZOMBIE] = KRAIT_TS_GONE + 1,
                                      [DUMP_WAIT] = KRAIT_TS_BLOCKED + 1,
                                      [DUMP_DEAD] = KRAIT_TS_GONE + 1 };
    bool said = status >= 0 && status < (int64_t)KRAIT_ARRAY_LEN(states) && states[status];
    return said ? (enum krait_thread_state)(states[status] - 1) : KRAIT_TS_UNKNOWN;
}

/* prev_state's bits: include/linux/sched.h. From 4.14 on what is reported ends at 0x80, and 0x100 is a thread
 * that was preempted; before, that is 0x400 or more, and 0x200 is TASK_PARKED. 0x30 are the two of a thread
 * at its end. Before 4.14 0x40 is that too; then it is TASK_PARKED, where only the kernel's own threads go.
 */
enum {
    UNDISTURBED = 0x2,
    STOPPED_OR_TRACED = 0xc,
    ASLEEP = 0xf,
    NOT_RUNNABLE = 0x2ff,
    AT_END = 0x30,
    DEAD_OR_PARKED = 0x40,
    MAY_BE_END = 0xf0
};

/* None that sleeps has ended: 0x80 with another is TASK_KILLABLE, before 4.14. */
static bool has_ended(int64_t prev_state, int64_t ends)
{
    return !(prev_state & ASLEEP) && prev_state & ends;
}

enum krait_thread_state krait_kernel_state_after(const struct krait_kthread *t, int64_t prev_state)
{
    if (!(prev_state & NOT_RUNNABLE))
        return KRAIT_TS_PREEMPTED;
    int64_t end = t->exiting ? MAY_BE_END : t->is_kernel ? AT_END : AT_END | DEAD_OR_PARKED;
    return has_ended(prev_state, end) ? KRAIT_TS_GONE : KRAIT_TS_BLOCKED;
}

bool krait_kernel_is_end(const struct krait_kthread *t, int64_t prev_state)
{
    return has_ended(prev_state, t->exiting ? MAY_BE_END : AT_END);
}

enum krait_thread_state krait_kernel_asleep_on(const struct krait_kthread *t, int64_t prev_state)
{
    bool in_user_mode = t->call_known && t->call == KRAIT_NO_ID && !t->is_kernel && !t->exiting;
    return prev_state & STOPPED_OR_TRACED                     ? KRAIT_TS_STOPPED
           : in_user_mode && krait_kernel_is_deep(prev_state) ? KRAIT_TS_FAULT
                                                              : KRAIT_TS_BLOCKED;
}

bool krait_kernel_is_deep(int64_t prev_state)
{
    return prev_state & UNDISTURBED;
}
