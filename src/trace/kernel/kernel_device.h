/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal to kernel_states.h: the disks and network interfaces to which events belong.
 */
#ifndef KRAIT_TRACE_KERNEL_DEVICE_H
#define KRAIT_TRACE_KERNEL_DEVICE_H

#include "trace/kernel/kernel_states.h"

/* Of what an interrupt did: its id in `devices`; KRAIT_NO_ID where the event does not tell, or nobody watches. */
uint32_t krait_kernel_device_of(struct krait_kernel_states *m, const struct krait_kernel_event *ev);
/* A state dump names a disk, before or after events of it; `ctx` is the machine. */
krait_kernel_event_handler krait_kernel_name_disk;

#endif
