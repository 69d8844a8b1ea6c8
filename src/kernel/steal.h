/* SPDX-License-Identifier: Apache-2.0
 *
 * Steal time: what the host of a virtual machine took from each CPU, as /proc/stat counts it since the machine
 * started. The recorder reads it at the beginning, about once a second, and at the end, and writes an event
 * krait_steal for each CPU, with fields cpu and total_ns. No tracer of the kernel's has such an event.
 */
#ifndef KRAIT_KERNEL_STEAL_H
#define KRAIT_KERNEL_STEAL_H

#include "base/clock.h"
#include "kernel/kernel_class.h"
#include "kernel/kernel_stream.h"

/* Calls `each` for every CPU that a text like /proc/stat's tells of; `hz` are its ticks in a second. Lines without a
 * column of steal time (before Linux 2.6.11) are passed over. */
void krait_steal_parse(const char *text, uint64_t hz,
                       void (*each)(void *ctx, uint32_t cpu, uint64_t total_ns), void *ctx);

/* Declares the event's class. Returns its id, or -ENOMEM. */
int krait_steal_declare(struct krait_kernel_classes *classes);
/* Reads /proc/stat and writes an event for each CPU; nothing where there is no such file. Returns 0, or a negative
 * errno of memory or the disk. */
int krait_steal_write(uint16_t id, struct krait_kernel_stream *stream, const struct krait_clock *clock);

#endif
