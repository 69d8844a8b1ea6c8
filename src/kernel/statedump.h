/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the machine when the recording begins, as in LTTng's state dump: threads with their processes, names
 * and states, CPUs, block devices, interrupts. It comes from /proc; each event has the time at which it was read.
 *
 * LTTng's dump does not have in which system call a thread waits. That is an event of krait's own: krait_dumped_wait, with the
 * thread; call_name ("": none; "syscall_451": one without a name here); cmd, the call's second argument; and prev_state as
 * sched_switch has it.
 */
#ifndef KRAIT_KERNEL_STATEDUMP_H
#define KRAIT_KERNEL_STATEDUMP_H

#include "base/clock.h"
#include "kernel/kernel_class.h"
#include "kernel/kernel_stream.h"

enum krait_statedump_event {
    KRAIT_STATEDUMP_START,
    KRAIT_STATEDUMP_PROCESS,
    KRAIT_STATEDUMP_WAIT,
    KRAIT_STATEDUMP_CPU,
    KRAIT_STATEDUMP_DISK,
    KRAIT_STATEDUMP_IRQ,
    KRAIT_STATEDUMP_END,
    KRAIT_STATEDUMP_EVENTS,
};

struct krait_statedump {
    uint16_t ids[KRAIT_STATEDUMP_EVENTS];
};

/* Declares its classes. Returns 0 or -ENOMEM. */
int krait_statedump_declare(struct krait_statedump *dump, struct krait_kernel_classes *classes);

/* Writes all but the end into the stream, and notes in `classes` which process each thread is of. Returns 0, or a
 * negative errno from the disk. */
int krait_statedump_write(const struct krait_statedump *dump, struct krait_kernel_classes *classes,
                          struct krait_kernel_stream *stream, const struct krait_clock *clock);
/* Writes the end, once the ends of system calls are recorded: readers believe krait_dumped_wait of a thread that ran before only
 * up to there. Flushes the stream. Returns as krait_statedump_write. */
int krait_statedump_end(const struct krait_statedump *dump, struct krait_kernel_stream *stream,
                        const struct krait_clock *clock);

#endif
