/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters over a range of time: what they were at least, on average and at most.
 */
#include "base/json.h"
#include "serve/serving.h"

/* Of one track. */
struct counter {
    struct krait_range range; /* behind the origin */
    uint64_t changes, known_ns;
    double sum, min, max, first, last; /* sum: value times ns */
    bool has;
};

/* An entry is a value, up to where the next one begins. */
static int add_value(void *ctx, const struct krait_tile_call *entry)
{
    struct counter *c = ctx;
    double value = (double)entry->value;
    uint64_t from = KRAIT_MAX(entry->begin_ns, c->range.from_ns),
             to = KRAIT_MIN(entry->end_ns, c->range.to_ns);
    if (!c->has)
        c->first = c->min = c->max = value;
    c->has = true;
    c->changes += entry->begin_ns >= c->range.from_ns;
    c->min = KRAIT_MIN(c->min, value);
    c->max = KRAIT_MAX(c->max, value);
    c->last = value;
    c->known_ns += to - from;
    c->sum += value * (double)(to - from);
    return 0;
}

static void put_counter(struct krait_buf *out, uint32_t track, const struct counter *c)
{
    krait_json_item(out, "\n[");
    krait_buf_fmt(out, "%u,%llu,%.17g,%.17g,%.17g,%.17g,%.17g,%llu]", track, (unsigned long long)c->changes,
                  c->min, c->known_ns ? c->sum / (double)c->known_ns : c->last, c->max, c->first, c->last,
                  (unsigned long long)c->known_ns);
}

int krait_answer_counters(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    struct krait_range range = krait_serving_range(serving, request);
    range = (struct krait_range){ range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
    int rc = 0;
    krait_buf_str(
        out, "{\"columns\":[\"track\",\"changes\",\"min\",\"mean\",\"max\",\"first\",\"last\",\"known\"],"
             "\"rows\":[");
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        struct counter counter = { .range = range };
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
