/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for the GIL as tracks: the states of a thread, with gaps where it has the GIL or does without.
 */
#include "event/event.h"
#include "trace/gil.h"
#include "trace/import.h"

enum { BATCH = 1024 };

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i); i++) {
        if (krait_image_of(trace, i)->has_no_gil_waits)
            continue;
        struct krait_track *track =
            krait_trace_add_thread_track(trace, i, KRAIT_IMPORTER_krait_gil, KRAIT_TRACK_STATES, "GIL");
        if (!track)
            return -ENOMEM;
        bool unseen = krait_image_of(trace, i)->lost[KRAIT_lost_reason_gil];
        track->flags = unseen ? KRAIT_TRACK_LOST : trace->threads[i].flags & KRAIT_TRACK_LOST;
    }
    return 0;
}

static int hand_out(const struct krait_gil_wait *waits, uint32_t n, uint32_t name,
                    const struct krait_track *track, const struct krait_walking *walking)
{
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t names[BATCH];
    int64_t holder[BATCH];
    const struct krait_batch batch = {
        .n = n, .t_ns = t_ns, .end_ns = end_ns, .name = names, .value = holder
    };
    for (uint32_t i = 0; i < n; i++) {
        t_ns[i] = waits[i].begin_ns;
        end_ns[i] = waits[i].end_ns;
        names[i] = name;
        holder[i] = waits[i].holder;
    }
    return walking->batch(walking->ctx, track, &batch);
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    KRAIT_CLEANUP(krait_gil_waits_done) struct krait_gil_waits waits = { 0 };
    uint32_t name = krait_trace_name(trace, KRAIT_TRACK_GIL);
    int rc = name == KRAIT_NO_ID ? -ENOMEM : krait_gil_waits_read(&waits, trace, track->key, walking->range);
    for (uint32_t i = 0; !rc && i < waits.count; i += BATCH)
        rc = hand_out(&waits.items[i], KRAIT_MIN(waits.count - i, (uint32_t)BATCH), name, track, walking);
    return rc;
}

const struct krait_importer krait_importer_krait_gil = { .takes = krait_folder_is_kraits,
                                                         .kinds = 1 << KRAIT_TRACK_STATES,
                                                         .tracks = find_tracks,
                                                         .walk = walk_track };
