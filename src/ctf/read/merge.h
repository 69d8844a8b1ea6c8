/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of all streams, in the order of time.
 */
#ifndef KRAIT_CTF_READ_MERGE_H
#define KRAIT_CTF_READ_MERGE_H

#include "ctf/read/cursor.h"

struct krait_ctf_merge;

int krait_ctf_merge_new(struct krait_ctf_merge **out, struct krait_ctf_reader *reader, struct krait_err *err);
void krait_ctf_merge_free(struct krait_ctf_merge *merge);

/* Call it before the first event to merge in the order of krait_ctf_turn, which is babeltrace2's, instead of by the
 * events' own times. The two differ where packets contradict their events. */
void krait_ctf_merge_by_turn(struct krait_ctf_merge *merge);

/* krait_ctf_cursor_range for all streams. */
void krait_ctf_merge_range(struct krait_ctf_merge *merge, int64_t from_ns, int64_t to_ns);

/* The cursor at the next event of all streams; NULL at the end. The caller must skip or print the event's fields before
 * the next call. Damage ends its stream; the first is kept in `damage`. */
struct krait_ctf_cursor *krait_ctf_merge_next(struct krait_ctf_merge *merge);
const struct krait_err *krait_ctf_merge_damage(const struct krait_ctf_merge *merge);

#endif
