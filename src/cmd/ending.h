/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes ended, in words: what info and report say of it.
 */
#ifndef KRAIT_CMD_ENDING_H
#define KRAIT_CMD_ENDING_H

#include "base/fmt.h"
#include "trace/trace.h"

/* "exit 0", "SIGKILL", "unfinished": at most 10 characters, into buf; returns buf. */
const char *krait_ending_text(char buf[KRAIT_FMT_SIZE], const struct krait_process *process);

/* Processes whose end nobody wrote. */
uint32_t krait_ending_unfinished(const struct krait_trace *trace);

/* What it means that there are such, as a sentence's second half. */
extern const char krait_ending_why[];

/* Says on stderr, in the verb's name, what is missing from what it made: that a recording is damaged (unless
 * the text is empty), lost events or was not ended. */
void krait_ending_warn(const char *verb, const struct krait_trace *trace, const char *damage);

#endif
