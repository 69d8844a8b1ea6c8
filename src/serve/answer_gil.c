/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for the GIL over a range of time and chosen threads: who waited, and who had it meanwhile.
 */
#include "base/array.h"
#include "base/json.h"
#include "base/map.h"
#include "serve/serving.h"
#include "trace/gil_holders.h"

#include <string.h>

/* What one thread waited while another had the GIL. */
struct pair {
    uint32_t waiter, holder;  /* threads of the trace; holder: KRAIT_NO_ID is not known */
    uint64_t count, ns;       /* waits that it was held in; how long */
    uint64_t longest_ns;      /* of a wait, with all who had it */
    uint64_t longest_from_ns; /* where that wait begins */
};

struct pairs {
    const struct krait_trace *trace;
    const struct krait_gil_holders *holders;
    uint64_t origin_ns;
    struct krait_range range; /* behind the origin */
    uint32_t track;
    struct pair *items;
    uint32_t count, cap;
    struct krait_map index; /* waiter << 32 | holder to item */
};

static void pairs_done(struct pairs *pairs)
{
    free(pairs->items);
    krait_map_done(&pairs->index);
}

/* The thread of a process that has a number and lives at a time. */
static uint32_t thread_of(const struct krait_trace *trace, uint32_t process, uint32_t tid, uint64_t t_ns)
{
    uint32_t found = KRAIT_NO_ID;
    for (uint32_t i = 0; i < trace->thread_count && tid; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        if (thread->process != process || thread->tid != tid)
            continue;
        found = i;
        if (t_ns <= thread->end_ns)
            break;
    }
    return found;
}

static struct pair *pair_of(struct pairs *p, uint32_t waiter, uint32_t holder)
{
    uint64_t key = (uint64_t)waiter << 32 | holder;
    const uint64_t *known = krait_map_get(&p->index, key);
    if (known)
        return &p->items[*known];
    if (!KRAIT_GROW(p->items, p->cap, p->count + 1) || krait_map_put(&p->index, key, p->count))
        return NULL;
    p->items[p->count] = (struct pair){ .waiter = waiter, .holder = holder };
    return &p->items[p->count++];
}

static int add_part(struct pairs *p, uint32_t holder, uint64_t ns, const struct krait_tile_call *wait)
{
    struct pair *pair = pair_of(p, p->trace->tracks[p->track].thread, holder);
    if (!pair)
        return -ENOMEM;
    uint64_t whole = wait->end_ns - wait->begin_ns;
    pair->ns += ns;
    pair->count++;
    if (whole >= pair->longest_ns) {
        pair->longest_ns = whole;
        pair->longest_from_ns = wait->begin_ns;
    }
    return 0;
}

/* Cuts it where another thread gets the GIL; each part is its holder's. */
static int add_wait(void *ctx, const struct krait_tile_call *wait)
{
    struct pairs *p = ctx;
    const struct krait_thread *thread = &p->trace->threads[p->trace->tracks[p->track].thread];
    uint64_t at = KRAIT_MAX(wait->begin_ns, p->range.from_ns), end = KRAIT_MIN(wait->end_ns, p->range.to_ns);
    int rc = 0;
    while (at < end && !rc) {
        struct krait_gil_hold hold = krait_gil_hold_at(p->holders, thread->tid, p->origin_ns + at);
        uint64_t until = hold.until_ns > p->origin_ns + at ? hold.until_ns - p->origin_ns : end;
        until = KRAIT_MIN(until, end);
        rc = add_part(p, thread_of(p->trace, thread->process, hold.holder, p->origin_ns + at), until - at,
                      wait);
        at = until;
    }
    return rc;
}

static bool is_meant(const struct krait_serving *serving, const struct krait_request *request, uint32_t i)
{
    const struct krait_track *track = &serving->trace->tracks[i];
    return track->kind == KRAIT_TRACK_STATES && track->thread != KRAIT_NO_ID &&
           strcmp(track->name, "GIL") == 0 && krait_serving_takes((void *)request, NULL, track->thread);
}

static void put_pair(struct krait_buf *out, const struct pair *pair)
{
    krait_json_item(out, "\n[");
    krait_buf_fmt(out, pair->holder == KRAIT_NO_ID ? "%u,null" : "%u,%u", pair->waiter, pair->holder);
    krait_buf_fmt(out, ",%llu,%llu,%llu,\"%llu\"]", (unsigned long long)pair->count,
                  (unsigned long long)pair->ns, (unsigned long long)pair->longest_ns,
                  (unsigned long long)pair->longest_from_ns);
}

int krait_answer_gil(struct krait_serving *serving, const struct krait_request *request,
                     struct krait_buf *out, struct krait_err *err)
{
    struct krait_range range = krait_serving_range(serving, request);
    KRAIT_CLEANUP(pairs_done)
    struct pairs p = { .trace = serving->trace,
                       .origin_ns = serving->origin_ns,
                       .range = { range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns } };
    int rc = krait_serving_holders(serving, &p.holders);
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        p.track = i;
        if (is_meant(serving, request, i))
            rc = krait_view_each(serving->view, i, p.range, add_wait, &p);
    }
    krait_buf_str(out,
                  "{\"columns\":[\"waiter\",\"holder\",\"count\",\"ns\",\"longest\",\"from\"],\"rows\":[");
    for (uint32_t i = 0; i < p.count; i++)
        put_pair(out, &p.items[i]);
    krait_buf_str(out, "]}\n");
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}
