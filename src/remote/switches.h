/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's records of when a thread left its CPU and came back, read in place: no system call tells so fast that it does
 * not run.
 *
 * perf_event_open(2), "context_switch": at each switch the kernel adds a PERF_RECORD_SWITCH to a ring that both map, before it
 * lets the thread go on, and moves the ring's head. So if the last record says that the thread has left its CPU, and the head is
 * the same later, the thread has not run meanwhile. That costs the thread 0.4 us at each switch.
 *
 * Where they are asked for, a PERF_RECORD_SAMPLE comes before the record of each switch away, with the registers that the thread
 * had in user space: those with which it goes on. It costs the thread 0.6 us more.
 *
 * Who may open one: root, CAP_PERFMON, and a thread's owner where kernel.perf_event_paranoid is at most 2, with registers at
 * most 1.
 */
#ifndef KRAIT_REMOTE_SWITCHES_H
#define KRAIT_REMOTE_SWITCHES_H

#include "remote/unwind.h"

/* All zero: none are read. */
struct krait_switches {
    struct perf_event_mmap_page *page;
    size_t size; /* that is mapped */
    bool registers;
};

struct krait_switch {
    uint64_t count; /* moves with each switch; never 0 */
    bool away;      /* it does not run */
    bool ready;     /* it would, had it the CPU */
    int cpu;        /* that it ran on, or runs on */
};

/* Whether records of the thread's switches can be had from now on, with its registers or without. */
bool krait_switches_open(struct krait_switches *switches, pid_t tid, bool registers);
void krait_switches_close(struct krait_switches *switches);
/* The last switch; false: none yet, or none are read. Any thread may call it. */
bool krait_switches_last(const struct krait_switches *switches, struct krait_switch *last);
/* The registers that the thread had when it left its CPU at its last switch; false: they are not known. */
bool krait_switches_registers(const struct krait_switches *switches, struct krait_registers *registers);
/* How many switches there were between two counts, about. */
uint64_t krait_switches_between(const struct krait_switches *switches, uint64_t before, uint64_t count);

#endif
