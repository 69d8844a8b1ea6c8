/* SPDX-License-Identifier: Apache-2.0
 *
 * What sampled threads were doing, as tracks: the states of a thread, each from a sample up to the next one that tells another.
 */
#include "trace/import.h"
#include "trace/sample_runs.h"

enum { BATCH = 1024 };

/* As view/classes.c has them. */
static const char *const words[] = { [KRAIT_SAMPLE_RUNS] = "running",
                                     [KRAIT_SAMPLE_GIL] = KRAIT_TRACK_GIL,
                                     [KRAIT_SAMPLE_BLOCKED] = "blocked_other" };

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i); i++) {
        if (!(trace->threads[i].flags & KRAIT_TRACK_SAMPLED))
            continue;
        struct krait_track *track = krait_trace_add_thread_track(
            trace, i, KRAIT_IMPORTER_krait_samples, KRAIT_TRACK_STATES, KRAIT_TRACK_SAMPLED_STATE);
        if (!track)
            return -ENOMEM;
        track->flags = trace->threads[i].flags;
    }
    return 0;
}

struct handing {
    const struct krait_track *track;
    const struct krait_walking *walking;
    uint32_t n, names[KRAIT_SAMPLE_UNKNOWN];
    uint64_t t_ns[BATCH], end_ns[BATCH];
    uint32_t name[BATCH];
    int64_t nobody[BATCH];
};

static int flush(struct handing *handing)
{
    const struct krait_batch batch = { .n = handing->n,
                                       .t_ns = handing->t_ns,
                                       .end_ns = handing->end_ns,
                                       .name = handing->name,
                                       .value = handing->nobody };
    handing->n = 0;
    return batch.n ? handing->walking->batch(handing->walking->ctx, handing->track, &batch) : 0;
}

/* A state that begins, or goes on: the line alone may have changed. */
static int hand_out(struct handing *handing, uint32_t name, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t last = handing->n - 1;
    if (handing->n && handing->name[last] == name && handing->end_ns[last] == from_ns) {
        handing->end_ns[last] = to_ns;
        return 0;
    }
    int rc = handing->n == BATCH ? flush(handing) : 0;
    handing->t_ns[handing->n] = from_ns;
    handing->end_ns[handing->n] = to_ns;
    handing->name[handing->n++] = name;
    return rc;
}

static int walk_runs(struct handing *handing, const struct krait_sample_runs *runs, struct krait_range range)
{
    int rc = 0;
    for (uint32_t i = 0; i < runs->count && !rc; i++) {
        uint64_t from_ns = KRAIT_MAX(runs->items[i].begin_ns, range.from_ns);
        uint64_t to_ns = KRAIT_MIN(runs->items[i + 1].begin_ns, range.to_ns);
        if (runs->items[i].is < KRAIT_SAMPLE_UNKNOWN && from_ns < to_ns)
            rc = hand_out(handing, handing->names[runs->items[i].is], from_ns, to_ns);
    }
    return rc ? rc : flush(handing);
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    KRAIT_CLEANUP(krait_sample_runs_done) struct krait_sample_runs runs = { 0 };
    KRAIT_AUTO_FREE struct handing *handing = calloc(1, sizeof(*handing));
    struct krait_range range = krait_image_clip(krait_image_of(trace, track->key), walking->range);
    int rc = handing ? krait_sample_runs_read(&runs, trace, track->key, range) : -ENOMEM;
    if (rc)
        return rc;
    handing->track = track;
    handing->walking = walking;
    for (uint32_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        handing->names[i] = krait_trace_name(trace, words[i]);
        rc = handing->names[i] == KRAIT_NO_ID ? -ENOMEM : rc;
    }
    range.to_ns = KRAIT_MIN(range.to_ns, trace->threads[track->key].end_ns);
    return rc ? rc : walk_runs(handing, &runs, range);
}

const struct krait_importer krait_importer_krait_samples = { .takes = krait_folder_is_kraits,
                                                             .kinds = 1 << KRAIT_TRACK_STATES,
                                                             .tracks = find_tracks,
                                                             .walk = walk_track };
