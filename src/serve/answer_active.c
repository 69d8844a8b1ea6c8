/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracks that have an entry in a range of time. For each track, krait stops at the first such entry.
 */
#include "base/json.h"
#include "serve/serving.h"
#include "view/classes.h"

#include <string.h>

struct active {
    const struct krait_serving *serving;
    const struct krait_track *track;
    struct krait_range range;
};

/* Whether an entry counts: a thread runs, a CPU does not idle; on other tracks any entry. */
static bool counts(const struct active *active, const struct krait_tile_call *entry)
{
    if (active->track->kind != KRAIT_TRACK_STATES)
        return true;
    if (entry->begin_ns >= active->range.to_ns || entry->end_ns <= active->range.from_ns)
        return false; /* outside of the range */
    const char *name = krait_view_text(active->serving->view, entry->func);
    if (active->track->of == KRAIT_OF_THREAD)
        return krait_class_runs(krait_class_of(name));
    return active->track->of != KRAIT_OF_CPU || (strcmp(name, "idle") != 0 && strcmp(name, "unknown") != 0);
}

/* Returning 1 ends the walk. */
static int look_at(void *ctx, const struct krait_tile_call *entry)
{
    return counts(ctx, entry);
}

static int is_active(struct active *active, uint32_t track)
{
    active->track = &active->serving->trace->tracks[track];
    if (active->track->kind == KRAIT_TRACK_CALLS)
        return 0;
    int rc = krait_view_each(active->serving->view, track, active->range, look_at, active);
    return rc == -EAGAIN ? 1 : rc; /* it may be active */
}

int krait_answer_active(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    struct krait_range range = krait_serving_range(serving, request);
    struct active active = {
        .serving = serving, .range = { range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns }
    };
    uint32_t count = serving->trace->track_count, first = count; /* first id of a range of active tracks */
    int rc = 0;
    krait_buf_char(out, '{');
    krait_json_key_open(out, "tracks", '[');
    for (uint32_t i = 0; i <= count && rc >= 0; i++) {
        rc = i < count ? is_active(&active, i) : 0;
        if (rc > 0)
            first = KRAIT_MIN(first, i);
        if (rc == 0 && first < count) {
            krait_json_item(out, "");
            krait_buf_fmt(out, "[%u,%u]", first, i - 1);
            first = count;
        }
    }
    krait_buf_str(out, "]}\n");
    return rc < 0 ? krait_err_set(err, rc, "out of memory") : 0;
}
