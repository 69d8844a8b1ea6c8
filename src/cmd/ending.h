/* SPDX-License-Identifier: Apache-2.0
 *
 * How processes ended, in words, for info and report.
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

/* What it means that a recording's format is newer than krait's. */
extern const char krait_ending_newer_why[];

/* "recorded 12 s of 60 s, switched off 2 times", where it was switched off at any time, for which it returns true; the
 * same as members of an open object of JSON, where there are some; and what it means for calls. */
bool krait_ending_off(struct krait_buf *out, const struct krait_trace *trace);
void krait_ending_off_json(struct krait_buf *out, const struct krait_trace *trace);
extern const char krait_ending_off_why[];

/* What is missing from a recording, a line for each thing: "lost: ...", "off: ...", "dropped by --max-overhead: ...", "unfinished:
 * ...", "damaged: ...". `damage` is text, or empty. Behind the first words stands `whose`: "" of one recording, of
 * several a name with ": ". */
void krait_ending_notes(struct krait_buf *notes, const struct krait_trace *trace, const char *damage,
                        const char *whose);

/* The same on stderr, as warnings in the verb's name. */
void krait_ending_warn(const char *verb, const struct krait_trace *trace, const char *damage,
                       const char *whose);

/* Lines of it: "lost: 3 events of the kernel's: " and what follows from that, where there are some; "damaged: ...",
 * where `damage` is not empty. */
void krait_ending_note_kernel_lost(struct krait_buf *notes, uint64_t lost, const char *effect);
void krait_ending_note_damage(struct krait_buf *notes, const char *damage, const char *whose);

/* Damage of the kernel's part on stderr, as a warning in the verb's name. */
void krait_ending_warn_kernel(const char *verb, const char *damage);

/* "old1: ", safe for a terminal, of the folder at `path`. */
void krait_ending_whose(struct krait_buf *out, const char *path);

#endif
