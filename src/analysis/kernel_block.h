/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread waits for that blocks in a system call, where the call alone tells.
 */
#ifndef KRAIT_ANALYSIS_KERNEL_BLOCK_H
#define KRAIT_ANALYSIS_KERNEL_BLOCK_H

#include "analysis/kernel_states.h"

/* By the call's name without prefixes. KRAIT_TS_BLOCKED: who wakes it has to tell. */
enum krait_thread_state krait_kernel_blocks_on(const char *call);

/* What those wait for that are woken in a soft interrupt of this number. */
enum krait_thread_state krait_kernel_softirq_cause(int64_t vec);

#endif
