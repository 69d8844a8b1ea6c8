/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "serve/serving.h"

#define P(name) (1u << KRAIT_PARAM_##name)

static int read_query(struct krait_view_query *query, const struct krait_request *request,
                      struct krait_err *err)
{
    int rc = krait_request_needs(request, P(track) | P(level) | P(tile), err);
    if (rc)
        return rc;
    const uint64_t *n = request->numbers;
    if (n[KRAIT_PARAM_track] >= UINT32_MAX || n[KRAIT_PARAM_level] > KRAIT_WIRE_LEVEL_MAX)
        return krait_err_set(err, -EINVAL, "there is no such track or level");
    *query = (struct krait_view_query){ .track = (uint32_t)n[KRAIT_PARAM_track],
                                        .level = (uint8_t)n[KRAIT_PARAM_level],
                                        .tile = n[KRAIT_PARAM_tile] };
    return 0;
}

int krait_answer_tile(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    int rc = read_query(&query, request, err);
    rc = rc ? rc : krait_view_tile(serving->view, &query, out);
    return rc && !err->code ? krait_err_set(err, rc, "there is no such tile") : rc;
}

int krait_answer_bin(struct krait_serving *serving, const struct krait_request *request,
                     struct krait_buf *out, struct krait_err *err)
{
    struct krait_view_query query;
    struct krait_view_bin bin = { 0 };
    int rc = read_query(&query, request, err);
    rc = rc ? rc : krait_request_needs(request, P(bin) | P(depth), err);
    if (rc)
        return rc;
    uint64_t at = request->numbers[KRAIT_PARAM_bin], depth = request->numbers[KRAIT_PARAM_depth];
    if (at >= KRAIT_WIRE_BINS || depth > UINT32_MAX)
        return krait_err_set(err, -EINVAL, "there is no such bin");
    rc = krait_view_bin(serving->view, &query, (uint32_t)at, (uint32_t)depth, &bin);
    if (rc)
        return krait_err_set(err, rc, "there is no such bin");
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "busy", bin.busy_ns);
    krait_json_key_u64(out, "count", bin.count);
    krait_json_key_u64(out, "longest", bin.longest_ns);
    krait_json_key_u64_or_null(out, "name", bin.name != KRAIT_NO_ID, bin.name);
    krait_buf_str(out, "}\n");
    return 0;
}
