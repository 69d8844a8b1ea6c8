/* SPDX-License-Identifier: Apache-2.0
 *
 * Text about how processes ended and what is missing from a recording, for info, report and others.
 */
#ifndef KRAIT_CMD_ENDING_H
#define KRAIT_CMD_ENDING_H

#include "base/fmt.h"
#include "trace/trace.h"

/* "exit 0", "SIGKILL", "unfinished": at most 10 characters, into buf; returns buf. */
const char *krait_ending_text(char buf[KRAIT_FMT_SIZE], const struct krait_process *process);

/* The number of processes whose end was not recorded. */
uint32_t krait_ending_unfinished(const struct krait_trace *trace);

/* What that means, as the second half of a sentence. */
extern const char krait_ending_why[];

/* What it means if the format of a recording is newer than this krait. */
extern const char krait_ending_newer_why[];

/* If the recording was switched off at any time of a range: appends "recorded 12 s of 60 s, switched off 2 times" and returns
 * true; or appends the same as members of the open JSON object. The text says what it means for calls. */
bool krait_ending_off(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range);
void krait_ending_off_json(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range);
extern const char krait_ending_off_why[];

/* Appends a line for each thing that is missing from a recording: "lost: ...", "off: ...", "dropped by --max-overhead: ...",
 * "unfinished: ...", "damaged: ...", and one for what krait ctl set changed; when it was off and what changed, of a range. `damage`
 * may be empty. `whose` follows the first words: with several recordings the name of one and ": ", else "". */
void krait_ending_notes(struct krait_buf *notes, const struct krait_trace *trace, struct krait_range range,
                        const char *damage, const char *whose);

/* The same without what was lost of kernel events, for what was made without them. */
void krait_ending_notes_without_kernel(struct krait_buf *notes, const struct krait_trace *trace,
                                       struct krait_range range, const char *damage, const char *whose);

/* Prints the same to stderr, as warnings of the verb. */
void krait_ending_warn(const char *verb, const struct krait_trace *trace, struct krait_range range,
                       const char *damage, const char *whose);

/* Append single lines: "lost: 3 events of the kernel's: ", the effect and the advice, if events were lost; "damaged: ...", if
 * `damage` is not empty. */
void krait_ending_note_kernel_lost(struct krait_buf *notes, const struct krait_trace *trace, uint64_t lost,
                                   const char *effect);
void krait_ending_note_damage(struct krait_buf *notes, const char *damage, const char *whose);

/* Prints damage of the kernel's part to stderr, as a warning of the verb. */
void krait_ending_warn_kernel(const char *verb, const char *damage);

/* Appends the name of the folder at `path`, safe for a terminal: "old1: ". */
void krait_ending_whose(struct krait_buf *out, const char *path);

#endif
