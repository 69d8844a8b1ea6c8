/* SPDX-License-Identifier: Apache-2.0
 *
 * Where events of krait's threads are missing: stretches between two packets, of which the later one's head counts more
 * lost events than the one before. Of other losses only their number is known (krait_trace.lost). And where the recording
 * was switched off.
 */
#include "trace/import.h"

enum { BATCH = 256 };

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

/* Whether the thread was there when its process was switched off: then its stack was stated after that. */
static bool is_in_gap(const struct krait_thread *thread, const struct krait_range *gap)
{
    return thread->begin_ns <= gap->from_ns && thread->end_ns >= gap->from_ns;
}

static bool has_gaps(const struct krait_trace *trace, uint32_t thread)
{
    const struct krait_process *process = &trace->processes[trace->threads[thread].process];
    bool has = false;
    for (uint32_t i = 0; i < process->gap_count; i++)
        has |= is_in_gap(&trace->threads[thread], &process->gaps[i]);
    return has;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    const struct krait_thread_file *file;
    for (uint32_t i = 0; i < trace->thread_count && (file = file_of(trace, i)); i++) {
        if (!has_losses(file) && !has_gaps(trace, i))
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

/* One kind after the other would not be in the order of time. */
struct walk {
    const struct krait_trace *trace;
    const struct krait_thread *thread;
    const struct krait_thread_file *file;
    uint32_t packet, gap;
};

struct missing {
    struct krait_range range;
    uint64_t events; /* 0: it was switched off */
};

static bool next_loss(const struct walk *walk, struct missing *next)
{
    const struct krait_thread_file *file = walk->file;
    if (walk->packet == file->packet_count)
        return false;
    *next = (struct missing){ gap_before(file, walk->packet), file->packets[walk->packet].lost };
    return true;
}

static bool next_gap(const struct walk *walk, struct missing *next)
{
    const struct krait_process *process = &walk->trace->processes[walk->thread->process];
    if (walk->gap == process->gap_count)
        return false;
    *next = (struct missing){ .range = process->gaps[walk->gap] };
    return true;
}

static void skip_others(struct walk *walk)
{
    const struct krait_process *process = &walk->trace->processes[walk->thread->process];
    while (walk->packet < walk->file->packet_count && !walk->file->packets[walk->packet].lost)
        walk->packet++;
    while (walk->gap < process->gap_count && !is_in_gap(walk->thread, &process->gaps[walk->gap]))
        walk->gap++;
}

static bool next_missing(struct walk *walk, struct missing *next)
{
    struct missing loss, gap;
    skip_others(walk);
    bool has_loss = next_loss(walk, &loss), has_gap = next_gap(walk, &gap);
    bool is_gap = has_gap && (!has_loss || gap.range.from_ns <= loss.range.from_ns);
    walk->packet += has_loss && !is_gap;
    walk->gap += is_gap;
    *next = is_gap ? gap : loss;
    return has_loss || has_gap;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    struct walk walk = { trace, &trace->threads[track->key], file_of(trace, track->key), 0, 0 };
    struct missing missing;
    uint32_t lost = krait_trace_name(trace, KRAIT_TRACK_EVENTS_LOST),
             off = krait_trace_name(trace, KRAIT_TRACK_OFF);
    uint64_t t_ns[BATCH], end_ns[BATCH], last_ns = walking->range.from_ns;
    uint32_t name[BATCH];
    int64_t count[BATCH];
    struct krait_batch batch = { .t_ns = t_ns, .end_ns = end_ns, .name = name, .value = count };
    int rc = lost == KRAIT_NO_ID || off == KRAIT_NO_ID ? -ENOMEM : 0;
    while (!rc && next_missing(&walk, &missing)) {
        if (missing.range.to_ns <= last_ns || missing.range.from_ns >= walking->range.to_ns)
            continue;
        t_ns[batch.n] = KRAIT_MAX(missing.range.from_ns, last_ns);
        end_ns[batch.n] = last_ns = KRAIT_MIN(missing.range.to_ns, walking->range.to_ns);
        name[batch.n] = missing.events ? lost : off;
        count[batch.n++] = (int64_t)missing.events;
        if (batch.n == BATCH) {
            rc = walking->batch(walking->ctx, track, &batch);
            batch.n = 0;
        }
    }
    return rc || !batch.n ? rc : walking->batch(walking->ctx, track, &batch);
}

const struct krait_importer krait_importer_krait_lost = { .takes = krait_folder_is_kraits,
                                                          .kinds = 1 << KRAIT_TRACK_STATES,
                                                          .tracks = find_tracks,
                                                          .walk = walk_track };
