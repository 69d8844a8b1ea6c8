/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the tracks of the kernel's part: what finding and walking them share.
 */
#ifndef KRAIT_ANALYSIS_KERNEL_TRACKS_INSIDE_H
#define KRAIT_ANALYSIS_KERNEL_TRACKS_INSIDE_H

#include "analysis/kernel_states.h"
#include "trace/importer.h"

/* Whether a track is one of them. */
bool krait_kernel_tracks_has(const struct krait_track *track);

krait_tracks_walk_fn krait_kernel_tracks_walk;

#endif
