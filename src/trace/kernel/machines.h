/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel traces are of one machine. A machine is what the states of threads and CPUs are computed for at once:
 * thread numbers and CPU numbers mean the same in all of its traces.
 *
 *   krait view monday tuesday       two recordings of a host, one after the other: two machines
 *   krait view web database         of two hosts: two machines
 *   krait view sched syscalls       two sessions at the same time on one host: one machine
 *   krait view chunk-1 chunk-2      one session that LTTng rotated: one machine
 *
 * Traces are of one machine if they are of one host, and are below the same path, or have the same uuid (that of
 * LTTng's session, made once: lttng_session_create() of lttng-modules' lttng-events.c), or overlap in time.
 */
#ifndef KRAIT_TRACE_MACHINES_H
#define KRAIT_TRACE_MACHINES_H

#include "trace/folders.h"

/* Sets machine[i] to that of folders[i]: dense, from 0, in the folders' order. Returns how many there are, or -ENOMEM. */
int krait_kernel_machines_find(uint32_t *machine, struct krait_folder *const *folders, uint32_t count);

#endif
