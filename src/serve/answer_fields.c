/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a slice: arguments of a call, fields of a span.
 */
#include "base/json.h"
#include "serve/serving.h"

#define P(name) (1u << KRAIT_PARAM_##name)

enum { MOST = 20 }; /* slices of the same extent */

struct fields {
    struct krait_buf *out;
    const struct krait_trace *trace;
    struct krait_range extent;
    uint32_t count;
};

/* The text comes from the trace and may not be the JSON that it should be, so it is sent as a text. */
static int put_matching(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct fields *fields = ctx;
    (void)track;
    for (uint32_t i = 0; i < batch->n && batch->text && fields->count < MOST; i++) {
        if (batch->t_ns[i] != fields->extent.from_ns || batch->end_ns[i] != fields->extent.to_ns)
            continue;
        krait_json_item(fields->out, "{");
        krait_json_key_text(fields->out, "name", krait_track_text(fields->trace, batch->name[i]));
        krait_json_key_text(fields->out, "fields", batch->text[i]);
        krait_buf_char(fields->out, '}');
        fields->count++;
    }
    return fields->count == MOST;
}

int krait_answer_fields(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    int rc = krait_request_needs(request, P(track) | P(from) | P(until), err);
    if (rc)
        return rc;
    uint64_t id = request->numbers[KRAIT_PARAM_track];
    const struct krait_trace *trace = serving->trace;
    if (id >= trace->track_count || trace->tracks[id].kind != KRAIT_TRACK_SLICES)
        return krait_err_set(err, -ENOENT, "there is no such track of slices");
    const uint64_t length = krait_view_length(serving->view);
    struct fields fields = {
        .out = out,
        .trace = trace,
        .extent = { serving->origin_ns + KRAIT_MIN(request->numbers[KRAIT_PARAM_from], length),
                    serving->origin_ns + KRAIT_MIN(request->numbers[KRAIT_PARAM_until], length) },
    };
    /* The walk cuts slices at the edges. With a nanosecond more on each side, a cut slice does not look like the
     * wanted one. */
    const struct krait_range range = { fields.extent.from_ns - (fields.extent.from_ns > 0),
                                       fields.extent.to_ns + 1 };
    krait_buf_char(out, '{');
    krait_json_key_open(out, "list", '[');
    rc = krait_track_walk(trace, (uint32_t)id, range, put_matching, &fields, NULL, 0);
    krait_buf_str(out, "]}\n");
    return rc < 0 ? krait_err_set(err, rc, "cannot read the track") : 0;
}
