/* SPDX-License-Identifier: Apache-2.0
 *
 * All tracks of the trace in the input's folder: each one's times are in order and in the range, walked with the others
 * as by itself.
 */
#ifndef KRAIT_TESTS_FUZZ_TRACKS_H
#define KRAIT_TESTS_FUZZ_TRACKS_H

#include "trace/track.h"

#include <stdlib.h>

struct fuzz_tracks {
    const struct krait_trace *trace;
    struct krait_range range;
    uint64_t *last_ns, *sum; /* by track */
};

static int fuzz_check_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct fuzz_tracks *all = ctx;
    size_t index = (size_t)(track - all->trace->tracks);
    bool by_end = track->kind == KRAIT_TRACK_SLICES || track->kind == KRAIT_TRACK_FLOWS;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint64_t end_ns = batch->end_ns ? batch->end_ns[i] : batch->t_ns[i];
        uint64_t at_ns = by_end ? end_ns : batch->t_ns[i];
        bool is_in = batch->t_ns[i] >= all->range.from_ns && end_ns <= all->range.to_ns;
        if (at_ns < all->last_ns[index] || end_ns < batch->t_ns[i] || (!is_in && !batch->calls))
            abort();
        if (batch->name && batch->end_ns && !krait_track_text(all->trace, batch->name[i]))
            abort();
        all->last_ns[index] = at_ns;
        all->sum[index] = all->sum[index] * 31 + batch->t_ns[i] * 7 + end_ns +
                          (batch->value ? (uint64_t)batch->value[i] : 0);
    }
    return 0;
}

static void fuzz_walk_tracks(const struct krait_trace *trace, struct krait_range range)
{
    size_t n = (size_t)trace->track_count + 1;
    struct fuzz_tracks together = { trace, range, calloc(n, 8), calloc(n, 8) };
    struct fuzz_tracks single = { trace, range, calloc(n, 8), calloc(n, 8) };
    uint32_t *tracks = calloc(n, sizeof(*tracks));
    if (!together.last_ns || !together.sum || !single.last_ns || !single.sum || !tracks)
        abort();
    for (uint32_t i = 0; i < trace->track_count; i++) {
        tracks[i] = i;
        if (krait_track_walk(trace, i, range, fuzz_check_batch, &single, NULL, 0))
            abort();
    }
    if (krait_tracks_walk(trace, tracks, trace->track_count, range, fuzz_check_batch, &together, NULL, 0))
        abort();
    for (uint32_t i = 0; i < trace->track_count; i++) {
        if (together.sum[i] != single.sum[i])
            abort();
    }
    free(together.last_ns);
    free(together.sum);
    free(single.last_ns);
    free(single.sum);
    free(tracks);
}

/* `from_ns`, `to_ns`: a range after the trace's begin. */
static void fuzz_tracks(struct krait_trace *trace, uint64_t from_ns, uint64_t to_ns)
{
    struct krait_err err = { 0 };
    if (krait_tracks_find(trace, &err))
        abort();
    uint64_t zero_ns = krait_trace_zero(trace);
    fuzz_walk_tracks(trace, KRAIT_RANGE_ALL);
    if (zero_ns < INT64_MAX)
        fuzz_walk_tracks(trace, (struct krait_range){ zero_ns + from_ns, zero_ns + to_ns });
}

#endif
