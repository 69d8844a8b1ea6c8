/* SPDX-License-Identifier: Apache-2.0
 *
 * What krait record says on stderr at its end: how much was recorded, what is missing and why, and what to do next.
 */
#ifndef KRAIT_CMD_RECORD_SUMMARY_H
#define KRAIT_CMD_RECORD_SUMMARY_H

#include "cmd/missed.h"
#include "cmd/recording.h"
#include "kernel/kernel.h"
#include "record/collector.h"

/* `missed` may be NULL. `kernel`: NULL without --kernel. dir: NULL where the folder was empty, and is gone. */
void krait_record_summary_print(const struct krait_collector *collector, const struct krait_missed *missed,
                                const struct krait_collector_summary *s,
                                const struct krait_recording_values *values,
                                const struct krait_kernel_summary *kernel, const char *dir);

/* The commands to go on with, which can be pasted, of a recording of samples. */
void krait_record_print_next(const char *dir);

/* Whether the recording holds nothing of what was asked for, for a reason that the caller can mend. */
bool krait_record_got_nothing(const struct krait_collector *collector, const struct krait_missed *missed,
                              const struct krait_collector_summary *s,
                              const struct krait_recording_values *values);

#endif
