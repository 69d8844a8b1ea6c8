/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of --log of which no logger has logged anything, and of --audit of which no event occurred: told at the end of a recording.
 */
#ifndef KRAIT_CMD_NAMES_UNMET_H
#define KRAIT_CMD_NAMES_UNMET_H

#include "cmd/opts.h"
#include "record/collector.h"

/* Says a line on stderr for each of them, with the nearest logger that has logged. */
void krait_log_unmet_say(const struct krait_opt_list *log, const struct krait_collector *collector);

/* The same, with the nearest audit event that occurred or that CPython has. */
void krait_audit_unmet_say(const struct krait_opt_list *audit, const struct krait_collector *collector);

#endif
