/* SPDX-License-Identifier: Apache-2.0
 *
 * Where events of krait's threads are missing: stretches between two packets, of which the later one's head counts more
 * lost events than the one before. Of other losses only their number is known (krait_trace.lost).
 */
#include "trace/import.h"

enum { BATCH = 256 };

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

static const struct krait_thread_file *file_of(const struct krait_trace *trace, uint32_t thread)
{
    return krait_image_of(trace, thread) ? &krait_recordings_of(trace)->files[thread] : NULL;
}

static bool has_losses(const struct krait_thread_file *file)
{
    for (uint32_t i = 0; i < file->packet_count; i++) {
        if (file->packets[i].lost)
            return true;
    }
    return false;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    const struct krait_thread_file *file;
    for (uint32_t i = 0; i < trace->thread_count && (file = file_of(trace, i)); i++) {
        if (!has_losses(file))
            continue;
        struct krait_track *track =
            krait_trace_add_thread_track(trace, i, KRAIT_IMPORTER_krait_lost, KRAIT_TRACK_STATES, "lost");
        if (!track)
            return -ENOMEM;
    }
    return 0;
}

/* From where the packet before ends; a moment is one nanosecond, so that it is seen. */
static struct krait_range gap_before(const struct krait_thread_file *file, uint32_t packet)
{
    uint64_t to_ns = file->packets[packet].begin_ns;
    uint64_t from_ns = packet ? file->packets[packet - 1].end_ns : to_ns;
    return (struct krait_range){ KRAIT_MIN(from_ns, to_ns), KRAIT_MAX(to_ns, KRAIT_MIN(from_ns, to_ns) + 1) };
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct krait_thread_file *file = file_of(trace, track->key);
    uint32_t lost = krait_trace_name(trace, "events lost"), name[BATCH];
    uint64_t t_ns[BATCH], end_ns[BATCH], last_ns = walking->range.from_ns;
    int64_t count[BATCH];
    struct krait_batch batch = { .t_ns = t_ns, .end_ns = end_ns, .name = name, .value = count };
    int rc = lost == KRAIT_NO_ID ? -ENOMEM : 0;
    for (uint32_t i = 0; i < file->packet_count && !rc; i++) {
        struct krait_range gap = gap_before(file, i);
        if (!file->packets[i].lost || gap.to_ns <= last_ns || gap.from_ns >= walking->range.to_ns)
            continue;
        t_ns[batch.n] = KRAIT_MAX(gap.from_ns, last_ns);
        end_ns[batch.n] = last_ns = KRAIT_MIN(gap.to_ns, walking->range.to_ns);
        name[batch.n] = lost;
        count[batch.n++] = (int64_t)file->packets[i].lost;
        if (batch.n == BATCH) {
            rc = walking->batch(walking->ctx, track, &batch);
            batch.n = 0;
        }
    }
    return rc || !batch.n ? rc : walking->batch(walking->ctx, track, &batch);
}

const struct krait_importer krait_importer_krait_lost = {
    .takes = takes, .kinds = 1 << KRAIT_TRACK_STATES, .tracks = find_tracks, .walk = walk_track
};
