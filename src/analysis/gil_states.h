/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for the GIL among the states of the kernel's threads. The kernel takes them for waits for a lock, or for time in
 * which a thread is ready. Sums of states have them apart, as krait report and krait states do (analysis/wall.h):
 *
 *     kernel      user │ lock │ woken │ lock        │ user
 *     the wait        ├──────────────────────┤
 *     sums        user │ waits for the GIL    │lock │ user
 *
 *     int rc = krait_gil_states_new(&gil, trace, wall, origin_ns, err);
 *     ... for each track of states, in any order:
 *         krait_gil_states_cut(gil, &sums, track, entry) for each entry, krait_gil_states_add(gil, &sums, track)
 *     krait_gil_states_free(gil);
 */
#ifndef KRAIT_ANALYSIS_GIL_STATES_H
#define KRAIT_ANALYSIS_GIL_STATES_H

#include "analysis/track_sums.h"
#include "analysis/wall.h"

struct krait_gil_states; /* opaque; not changed by its readers */

/* Finds these waits in all of the trace; times of sums and entries are those of the trace less origin_ns. Takes 16 bytes for each
 * wait. `trace` must outlive the result. Returns 0 or -ENOMEM with err set. No other walk of tracks may run meanwhile. */
int krait_gil_states_new(struct krait_gil_states **out, const struct krait_trace *trace,
                         const struct krait_wall *wall, uint64_t origin_ns, struct krait_err *err);
/* NULL is fine. */
void krait_gil_states_free(struct krait_gil_states *gil);

/* Adds what of an entry that touches the range of the sums is no wait for the GIL, as entries of the same name. gil: NULL: all
 * of it. Returns 0 or -ENOMEM. */
int krait_gil_states_cut(const struct krait_gil_states *gil, struct krait_name_sums *sums, uint32_t track,
                         const struct krait_entry *entry);
/* Adds the waits for the GIL of a track that touch the range of the sums, as entries that have the name KRAIT_TRACK_GIL; once a
 * track. gil: NULL: there are none. Returns 0 or -ENOMEM. */
int krait_gil_states_add(const struct krait_gil_states *gil, struct krait_name_sums *sums, uint32_t track);

#endif
