/* SPDX-License-Identifier: Apache-2.0
 *
 * Proof that a thread did not run while its memory was copied, without stopping it.
 *
 * krait moves to the thread's CPU (field 39 of its stat: proc(5)). While krait runs there, the thread does not.
 * The thread can go on only after the kernel has switched to it, on any CPU, and the kernel counts this: the third number of
 * schedstat (Documentation/scheduler/sched-stats.rst, "timeslices run on this cpu"). So if the thread belonged to krait's CPU at
 * one moment after the count was read, and the count is the same afterwards, its memory was copied as it was at that moment.
 *
 *     count ── thread on krait's CPU? ── copies ── count: the same
 *
 * Both files cost more than the copies. So records of its switches take their place where krait reads few threads often and may
 * have them (remote/switches.h). They also tell of a thread that waits elsewhere; krait then need not move to its CPU.
 *
 *     count, away? ── copies ── count: the same
 *
 * Where the kernel keeps no such count, the switches away from it are counted (status), and its CPU is looked at again at the end.
 * A thread that would run waits for krait as it would for any program: some microseconds.
 */
#ifndef KRAIT_REMOTE_STILL_H
#define KRAIT_REMOTE_STILL_H

#include "remote/switches.h"
#include "remote/thread.h"

#include <sched.h>
#include <sys/types.h>

enum { KRAIT_STILL_FILES = 256 };
enum { KRAIT_CPU_SETS = 8 }; /* of 1024 CPUs each: more than the kernel can have (NR_CPUS) */

struct krait_still {
    pid_t pid, tid;
    uint64_t count; /* that the proof is by; 0: there is none */
    bool from_status;
    bool records;   /* of switches are read: for few threads that are read often */
    bool registers; /* the records should have them */
    bool holds;     /* krait is on the CPU that the thread would run on */
    bool moved;     /* krait's thread is bound to a CPU; otherwise it may run on `home` */
    char state;     /* of the thread before: proc(5) */
    int cpu;
    cpu_set_t home[KRAIT_CPU_SETS];
    struct krait_still_files { /* of the threads that were read last */
        pid_t pid, tid;        /* 0: none are open */
        int stat, schedstat;
        int cpu;        /* that it was on; -1: not known */
        uint64_t count; /* just read, and not used yet; 0: none */
        struct krait_switches switches;
        bool registers; /* were asked for */
        uint64_t seen;  /* the count of records at the last reading */
        uint32_t often; /* switches between two readings at which it would run, as a moving mean, in 1/16 */
        uint32_t wait;  /* readings until records are asked for again; those that there are go */
    } files[KRAIT_STILL_FILES], *at;
    uint32_t next_files;
};

void krait_still_done(struct krait_still *still);
/* Closes the files and the records of threads that are not among `tasks`: they have ended. */
void krait_still_keep(struct krait_still *still, const struct krait_os_tasks *tasks);

/* Moves to the CPU of a thread, unless records tell that it is away from it. Returns 0; -EAGAIN: the thread moved to another CPU
 * meanwhile; -ESRCH: it is gone; or another negative errno if krait may not run there, or could not while the thread runs
 * (real-time scheduling). */
int krait_still_begin(struct krait_still *still, pid_t pid, pid_t tid);
/* A number that changes whenever the kernel switches to a thread: while it stays the same, the thread does not run, or runs all
 * the time. 0: unknown, or the thread is gone. */
uint64_t krait_still_count(struct krait_still *still, pid_t pid, pid_t tid);
/* Its state: proc(5). R: it runs, or is ready to. '\0': unknown, or the thread is gone. krait does not move to its CPU for that. */
char krait_still_state(struct krait_still *still, pid_t pid, pid_t tid);
/* Whether records of its switches are read that have its registers, from its next switch on. */
bool krait_still_tells(const struct krait_still *still);
/* The registers with which the thread will go on; false: they are not known. They count if the thread has not run at
 * krait_still_end. */
bool krait_still_registers(const struct krait_still *still, struct krait_registers *registers);
/* Whether the thread has not run since krait_still_begin. */
bool krait_still_end(const struct krait_still *still);
/* Lets krait's thread run on all its CPUs again. */
void krait_still_leave(struct krait_still *still);

#endif
