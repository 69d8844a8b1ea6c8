/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for the GIL over a range of time and chosen threads: which threads waited, and which held it meanwhile.
 */
#include "base/json.h"
#include "serve/serving.h"

struct pairs {
    struct krait_gil_pairs of;
    uint32_t waiter;
};

static void pairs_done(struct pairs *pairs)
{
    krait_gil_pairs_done(&pairs->of);
}

static int add_wait(void *ctx, const struct krait_tile_call *wait)
{
    struct pairs *p = ctx;
    const struct krait_entry added = krait_serving_entry(wait);
    return krait_gil_pairs_add(&p->of, p->waiter, &added);
}

static bool is_meant(const struct krait_serving *serving, const struct krait_request *request, uint32_t i)
{
    const struct krait_track *track = &serving->trace->tracks[i];
    return krait_gil_is_waits(track) && krait_serving_takes((void *)request, NULL, track->thread);
}

static void put_pair(struct krait_buf *out, const struct krait_gil_pair *pair)
{
    krait_json_item(out, "\n[");
    krait_buf_fmt(out, "%u,", pair->waiter);
    if (pair->holder == KRAIT_NO_ID)
        krait_buf_str(out, "null");
    else
        krait_buf_fmt(out, "%lld", pair->holder == KRAIT_GIL_NOBODY ? -1LL : (long long)pair->holder);
    krait_buf_fmt(out, ",%llu,%llu,%llu,\"%llu\"]", (unsigned long long)pair->count,
                  (unsigned long long)pair->ns, (unsigned long long)pair->longest_ns,
                  (unsigned long long)pair->longest_from_ns);
}

int krait_answer_gil(struct krait_serving *serving, const struct krait_request *request,
                     struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "waiter", "holder", "count", "ns", "longest", "from" };
    struct krait_range range = krait_serving_range(serving, request);
    KRAIT_CLEANUP(pairs_done)
    struct pairs p = { .of = { .trace = serving->trace,
                               .origin_ns = serving->origin_ns,
                               .range = { range.from_ns - serving->origin_ns,
                                          range.to_ns - serving->origin_ns } } };
    int rc = krait_serving_holders(serving, &p.of.holders);
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        p.waiter = serving->trace->tracks[i].thread;
        if (is_meant(serving, request, i))
            rc = krait_view_each(serving->view, i, p.of.range, add_wait, &p);
    }
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < p.of.count; i++)
        put_pair(out, &p.of.items[i]);
    krait_buf_str(out, "]}\n");
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}
