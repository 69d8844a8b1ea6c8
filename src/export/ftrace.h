/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's events as Perfetto's data source linux.ftrace would have recorded them, from which its trace
 * processor makes CPU lanes, thread states and who woke whom:
 *
 *   system info             the kernel's version, by which states of threads are read
 *   process tree            which threads are of which processes, and their names
 *   ftrace bundles          events of one CPU, many in a packet
 *
 * Events keep those of their fields that the trace has. If only one program's threads were recorded, by perf events,
 * their switches become sched_switch from and to the idle task, because nothing is known of other programs.
 *
 * Source: the protos of the package perfetto 0.59 (ftrace_event_bundle, ftrace_event, sched, irq, power,
 * task, process_tree, system_info).
 */
#ifndef KRAIT_EXPORT_FTRACE_H
#define KRAIT_EXPORT_FTRACE_H

#include "base/outfile.h"
#include "trace/kernel/kernel_slices.h"

/* Writes all as packets of the sequence, processes in `ids` aside in the tree: they have tracks. Returns 0,
 * -ENOMEM, or the failure of writing. */
int krait_export_ftrace(struct krait_kernel_slices *kernel, const uint32_t *pids, uint32_t sequence,
                        struct krait_outfile *out);

#endif
