/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/serving.h"

#include "analysis/gil_states.h"
#include "base/json.h"
#include "trace/gil_holders.h"
#include "trace/kernel/kernel.h"
#include "trace/listing.h"

int krait_serving_new(struct krait_serving **out, struct krait_view *view, struct krait_trace *trace)
{
    struct krait_serving *serving = calloc(1, sizeof(*serving));
    if (!serving)
        return -ENOMEM;
    serving->refs = 1;
    serving->view = view;
    serving->trace = trace;
    serving->origin_ns = krait_view_origin(view);
    pthread_mutex_init(&serving->one, NULL);
    *out = serving;
    return 0;
}

void krait_serving_free(struct krait_serving *serving)
{
    if (!serving)
        return;
    krait_wall_free(serving->wall);
    krait_gil_states_free(serving->gil_states);
    krait_gil_holders_free(serving->gil);
    krait_listing_close(serving->listing);
    krait_rules_done(&serving->rules);
    pthread_mutex_destroy(&serving->one);
    if (serving->close)
        serving->close(serving->view, serving->trace);
    free(serving);
}

struct krait_range krait_serving_range(const struct krait_serving *serving,
                                       const struct krait_request *request)
{
    const uint64_t most = krait_view_length(serving->view) + 1;
    uint64_t from = krait_request_number(request, KRAIT_PARAM_from, 0);
    uint64_t until = krait_request_number(request, KRAIT_PARAM_until, most);
    from = KRAIT_MIN(from, most);
    until = KRAIT_MIN(until, most);
    return (struct krait_range){ serving->origin_ns + from, serving->origin_ns + KRAIT_MAX(from, until) };
}

bool krait_serving_takes(void *ctx, const struct krait_trace *trace, uint32_t thread)
{
    const struct krait_request *request = ctx;
    if (!krait_request_has(request, KRAIT_PARAM_threads))
        return true;
    return krait_request_has_id(request, thread);
}

bool krait_serving_takes_track(const struct krait_serving *serving, const struct krait_request *request,
                               uint32_t track)
{
    const struct krait_trace *trace = serving->trace;
    if (krait_request_has(request, KRAIT_PARAM_tracks))
        return krait_request_has_id(request, track);
    return !krait_request_number(request, KRAIT_PARAM_own, 0) ||
           !krait_track_is_of_others(trace, &trace->tracks[track]);
}

int krait_serving_holders(struct krait_serving *serving, const struct krait_gil_holders **out)
{
    pthread_mutex_lock(&serving->one);
    int rc = serving->gil ? 0 : krait_gil_holders_new(&serving->gil, serving->trace);
    *out = serving->gil;
    pthread_mutex_unlock(&serving->one);
    return rc;
}

int krait_serving_events(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_listing_cursor **cursor, struct krait_err *err)
{
    const char *filter = krait_request_has(request, KRAIT_PARAM_text) ? request->text : NULL;
    pthread_mutex_lock(&serving->one);
    int rc = serving->listing ? 0 : krait_listing_open(&serving->listing, serving->trace, err);
    pthread_mutex_unlock(&serving->one);
    return rc ? rc : krait_listing_cursor_new(cursor, serving->listing, filter, err);
}

static void make_wall(struct krait_serving *serving)
{
    struct krait_err err = { 0 };
    const struct krait_trace *trace = serving->trace;
    unsigned flags = KRAIT_WALL_WAITS | (trace->has_kernel ? KRAIT_WALL_KERNEL : 0) |
                     (trace->samples.rate ? KRAIT_WALL_SAMPLES : 0);
    if (!serving->growing)
        krait_wall_kept_forget(serving->wall_kept);
    krait_view_lock(serving->view); /* the index walks the kernel's events too */
    int rc = krait_wall_new_on(&serving->wall, trace, flags | KRAIT_WALL_HOLDERS, serving->wall_kept, &err);
    krait_view_unlock(serving->view);
    if (rc)
        serving->wall = NULL; /* answers then do not split times by state; other views report the error */
    serving->has_wall = true;
}

/* With `one` held. */
static const struct krait_wall *take_wall(struct krait_serving *serving)
{
    if (!serving->has_wall)
        make_wall(serving);
    while (serving->wall && !krait_wall_use(serving->wall)) {
        krait_wall_free(serving->wall);
        make_wall(serving);
    }
    return serving->wall;
}

const struct krait_wall *krait_serving_wall(struct krait_serving *serving)
{
    pthread_mutex_lock(&serving->one);
    const struct krait_wall *wall = take_wall(serving);
    pthread_mutex_unlock(&serving->one);
    return wall;
}

void krait_serving_wall_used(const struct krait_wall *wall)
{
    if (wall)
        krait_wall_used(wall);
}

static int find_one(void *found, const struct krait_tile_call *wait)
{
    *(bool *)found = true;
    return 1;
}

/* In the index: no event is read. Returns 0, or -EAGAIN while waits or states are not there yet. */
static int find_waits(const struct krait_serving *serving, bool *found)
{
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && rc >= 0; i++) {
        const struct krait_track *track = &serving->trace->tracks[i];
        bool ignored;
        if (krait_gil_is_waits(track) && !*found)
            rc = krait_view_each(serving->view, i, KRAIT_RANGE_ALL, find_one, found);
        else if (krait_kernel_is_thread_states(track))
            rc = krait_view_each(serving->view, i, (struct krait_range){ 0, 0 }, find_one, &ignored);
    }
    return KRAIT_MIN(rc, 0);
}

static int find_gil_states(struct krait_serving *serving, struct krait_err *err)
{
    const struct krait_wall *wall = take_wall(serving);
    if (!wall)
        return 0;
    krait_view_lock(serving->view); /* it names the state */
    int rc = krait_gil_states_new(&serving->gil_states, serving->trace, wall, serving->origin_ns, err);
    krait_view_unlock(serving->view);
    krait_serving_wall_used(wall);
    return rc;
}

int krait_serving_gil_states(struct krait_serving *serving, const struct krait_gil_states **out,
                             struct krait_err *err)
{
    bool waited = false;
    if (find_waits(serving, &waited))
        return krait_err_set(err, -EAGAIN, "the index is still being built");
    pthread_mutex_lock(&serving->one);
    int rc = waited && !serving->has_gil_states ? find_gil_states(serving, err) : 0;
    serving->has_gil_states = !rc;
    *out = serving->gil_states;
    pthread_mutex_unlock(&serving->one);
    return rc;
}

void krait_serving_columns(struct krait_buf *out, const char *const *names, size_t count, const char *rows)
{
    krait_buf_char(out, '{');
    krait_json_key_texts(out, "columns", names, count);
    krait_json_key_open(out, rows, '[');
}
