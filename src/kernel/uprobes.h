/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes in programs and libraries, as the kernel sets them: uprobe events, which tracefs has for the whole machine
 * (Documentation/trace/uprobetracer.rst). Those of krait are called krait_PID/uN, so that another krait can take away what a
 * dead one left.
 */
#ifndef KRAIT_KERNEL_UPROBES_H
#define KRAIT_KERNEL_UPROBES_H

#include "kernel/kernel.h"

/* Below events/, of the probe i of this process. */
void krait_uprobe_path(char *path, size_t size, uint32_t i);

/* Makes the events; none stays where one fails. -ENOENT: this kernel has no uprobe events. */
int krait_uprobes_add(int root, const struct krait_kernel_probe *probes, uint32_t count,
                      struct krait_err *err);
/* Removes them; no instance may have them on. */
void krait_uprobes_remove(int root, uint32_t count);
/* Removes those of dead kraits. */
void krait_uprobes_sweep(int root);

#endif
