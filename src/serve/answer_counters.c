/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters over a range of time: minimum, mean and maximum.
 */
#include "base/json.h"
#include "serve/serving.h"

static int add_value(void *ctx, const struct krait_tile_call *entry)
{
    const struct krait_entry added = krait_serving_entry(entry);
    krait_counter_add(ctx, &added);
    return 0;
}

static void put_counter(struct krait_buf *out, uint32_t track, const struct krait_counter_sum *c)
{
    krait_json_item(out, "\n[");
    krait_buf_fmt(out, "%u,%llu,%.17g,%.17g,%.17g,%.17g,%.17g,%llu]", track, (unsigned long long)c->changes,
                  c->min, krait_counter_mean(c), c->max, c->first, c->last, (unsigned long long)c->known_ns);
}

int krait_answer_counters(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = {
        "track", "changes", "min", "mean", "max", "first", "last", "known"
    };
    struct krait_range range = krait_serving_range(serving, request);
    range = (struct krait_range){ range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
    int rc = 0;
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        struct krait_counter_sum counter = { .range = range };
        if (serving->trace->tracks[i].kind != KRAIT_TRACK_COUNTER ||
            !krait_serving_takes_track(serving, request, i))
            continue;
        rc = krait_view_each(serving->view, i, range, add_value, &counter);
        if (counter.has)
            put_counter(out, i, &counter);
    }
    krait_buf_str(out, "]}\n");
    return rc ? krait_err_set(err, rc, "the index is still being built") : 0;
}
