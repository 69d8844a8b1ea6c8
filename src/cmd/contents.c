/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/contents.h"

#include "trace/importer.h"
#include "trace/track.h"

static unsigned of_track(const struct krait_track *track)
{
    switch (track->importer) {
    case KRAIT_IMPORTER_krait_marks:
        return KRAIT_CONTENTS_MARKS;
    case KRAIT_IMPORTER_krait_spans:
        return KRAIT_CONTENTS_SPANS;
    case KRAIT_IMPORTER_krait_counters:
        return KRAIT_CONTENTS_COUNTERS;
    default:
        return 0;
    }
}

unsigned krait_contents_of(struct krait_trace *trace, struct krait_range range)
{
    struct krait_err ignored;
    unsigned found = 0;
    if (krait_tracks_find(trace, &ignored))
        return 0;
    KRAIT_AUTO_FREE uint32_t *tracks = calloc(trace->track_count + 1ul, sizeof(*tracks));
    for (unsigned what = KRAIT_CONTENTS_MARKS; tracks && what <= KRAIT_CONTENTS_COUNTERS; what <<= 1) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < trace->track_count; i++) {
            if (of_track(&trace->tracks[i]) == what)
                tracks[n++] = i;
        }
        found |= krait_tracks_any(trace, tracks, n, range) == 1 ? what : 0;
    }
    return found;
}

static int stop_at_call(void *ctx, const struct krait_call_batch *ops)
{
    (void)ctx;
    return ops->n > 0;
}

bool krait_contents_has_calls(const struct krait_trace *trace)
{
    bool has = false;
    for (uint32_t i = 0; i < trace->thread_count && !has; i++)
        has = krait_trace_walk(trace, i, KRAIT_RANGE_ALL, stop_at_call, NULL, NULL, 0) == 1;
    return has;
}
