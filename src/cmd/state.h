/* SPDX-License-Identifier: Apache-2.0
 *
 * --state: only the time in some states, in verbs that draw the call tree.
 */
#ifndef KRAIT_CMD_STATE_H
#define KRAIT_CMD_STATE_H

#include "analysis/wall.h"
#include "base/buf.h"
#include "cmd/opts.h"

#define KRAIT_STATE_TITLE(name, text, title, words) "|" title
#define KRAIT_STATE_CHOICES                         (&("" KRAIT_WALL_STATES(KRAIT_STATE_TITLE))[1])

enum { KRAIT_STATE_COMPARED_SIZE = 160 };

/* What the waits for the GIL and the kernel's part say. Sets *out to NULL where the trace says nothing. What is
 * missing of the kernel's part is told on stderr. Returns 0 or a negative errno with err set. */
int krait_state_wall(struct krait_wall **out, const struct krait_trace *trace, const char *verb,
                     struct krait_err *err);

/* "on CPU", "waiting for the GIL or a lock", "on CPU, or waiting for a timer". */
void krait_state_words(struct krait_buf *out, uint32_t states);

/* Parses "cpu" or "gil,lock" into bits by enum krait_wall_state. */
int krait_state_parse(const char *text, uint32_t *states, struct krait_err *err);

/* What the host of a virtual machine took from the CPUs. */
struct krait_state_stolen {
    bool known;
    uint64_t ns, all_ns; /* of all CPUs together: what was stolen, and the time that it was stolen from */
};

/* In the parts of a range; in all of it if there are none (or NULL). Not known if the kernel's events are not there or cannot be
 * read. Returns 0 or -ENOMEM. */
int krait_state_stolen(struct krait_state_stolen *stolen, const struct krait_trace *trace,
                       struct krait_range range, const struct krait_ranges *parts);
/* A line, if any was stolen. */
void krait_state_note_stolen(struct krait_buf *notes, const struct krait_state_stolen *stolen);
/* The key stolen_ns, null if it is not known. */
void krait_state_json_stolen(struct krait_buf *out, const struct krait_state_stolen *stolen);

/* Why wall time is compared where only some of the recordings know on-CPU time: a note. */
const char *krait_state_wall_compared(char out[KRAIT_STATE_COMPARED_SIZE], uint32_t clocked, uint32_t count);

/* What the states of samples stand for: a note. */
extern const char krait_state_of_samples[];

/* -ENODATA where `wall`, which may be NULL, does not know one of them. */
int krait_state_check(const struct krait_wall *wall, uint32_t states, struct krait_err *err);

#endif
