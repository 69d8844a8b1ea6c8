/* SPDX-License-Identifier: Apache-2.0
 *
 * States and system calls over a range of time and chosen tracks, as in krait states: sums by name, and system calls
 * one by one.
 */
#include "analysis/gil_states.h"
#include "base/json.h"
#include "serve/grid.h"
#include "serve/serving.h"
#include "trace/importer.h"

#include <string.h>

/* What a request adds up; times are relative to the view's origin. */
struct sums {
    struct krait_name_sums of;
    uint32_t track;
    const struct krait_gil_states *gil; /* of states; NULL: none of them is a wait for the GIL */
};

static void sums_done(struct sums *sums)
{
    krait_name_sums_done(&sums->of);
}

static int add_entry(void *ctx, const struct krait_tile_call *entry)
{
    struct sums *s = ctx;
    const struct krait_entry added = krait_serving_entry(entry);
    return krait_name_sums_add(&s->of, s->track, &added);
}

static int add_state(void *ctx, const struct krait_tile_call *entry)
{
    struct sums *s = ctx;
    const struct krait_entry added = krait_serving_entry(entry);
    return krait_gil_states_cut(s->gil, &s->of, s->track, &added);
}

/* Of threads and CPUs, as krait states prints them: tasks, the GIL, losses and analyses have tracks of states, too. */
static bool has_kernel_states(const struct krait_track *track)
{
    return track->importer == KRAIT_IMPORTER_kernel && track->kind == KRAIT_TRACK_STATES;
}

static bool has_syscalls(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_SLICES && strcmp(track->name, "system calls") == 0;
}

static struct krait_range since_origin(const struct krait_serving *serving, struct krait_range range)
{
    return (struct krait_range){ range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
}

/* Calls back for the entries of the request's tracks; *at is the current track. */
static int each_entry(const struct krait_serving *serving, const struct krait_request *request,
                      bool (*is_of)(const struct krait_track *track), uint32_t *at,
                      int (*fn)(void *ctx, const struct krait_tile_call *entry), void *ctx,
                      struct krait_err *err)
{
    struct krait_range range = since_origin(serving, krait_serving_range(serving, request));
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        *at = i;
        if (is_of(&serving->trace->tracks[i]) && krait_serving_takes_track(serving, request, i))
            rc = krait_view_each(serving->view, i, range, fn, ctx);
    }
    return rc == -EAGAIN ? krait_err_set(err, rc, "the index is still being built")
           : rc          ? krait_err_set(err, rc, "out of memory")
                         : 0;
}

static void put_row(struct krait_buf *out, const uint64_t *numbers, size_t count)
{
    krait_json_item(out, "\n[");
    for (size_t i = 0; i < count; i++) {
        krait_buf_str(out, i ? "," : "");
        krait_json_u64(out, numbers[i]);
    }
    krait_buf_char(out, ']');
}

/* Of the same tracks. */
static int add_waits(const struct krait_serving *serving, const struct krait_request *request,
                     struct sums *sums)
{
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && sums->gil && !rc; i++) {
        if (has_kernel_states(&serving->trace->tracks[i]) && krait_serving_takes_track(serving, request, i))
            rc = krait_gil_states_add(sums->gil, &sums->of, i);
    }
    return rc;
}

int krait_answer_states(struct krait_serving *serving, const struct krait_request *request,
                        struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "track", "name", "count", "ns", "longest" };
    KRAIT_CLEANUP(sums_done)
    struct sums sums = { .of = { .by_track = true,
                                 .range = since_origin(serving, krait_serving_range(serving, request)) } };
    int rc = krait_serving_gil_states(serving, &sums.gil, err);
    rc = rc ? rc : each_entry(serving, request, has_kernel_states, &sums.track, add_state, &sums, err);
    if (!rc && add_waits(serving, request, &sums))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < sums.of.count; i++) {
        const struct krait_name_sum *sum = &sums.of.items[i];
        const uint64_t numbers[] = { sum->track, sum->name, sum->count, sum->ns, sum->longest_ns };
        put_row(out, numbers, KRAIT_ARRAY_LEN(numbers));
    }
    krait_buf_str(out, "]}\n");
    return rc;
}

int krait_answer_syscalls(struct krait_serving *serving, const struct krait_request *request,
                          struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "name", "count", "errors", "ns", "longest",
                                           "min",  "p50",   "p90",    "p99" };
    KRAIT_CLEANUP(sums_done)
    struct sums sums = { .of.range = since_origin(serving, krait_serving_range(serving, request)) };
    int rc = each_entry(serving, request, has_syscalls, &sums.track, add_entry, &sums, err);
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < sums.of.count; i++) {
        const struct krait_name_sum *sum = &sums.of.items[i];
        const uint64_t numbers[] = { sum->name,
                                     sum->count,
                                     sum->errors,
                                     sum->ns,
                                     sum->longest_ns,
                                     sum->shortest_ns,
                                     krait_name_sum_quantile(sum, 0.5),
                                     krait_name_sum_quantile(sum, 0.9),
                                     krait_name_sum_quantile(sum, 0.99) };
        put_row(out, numbers, KRAIT_ARRAY_LEN(numbers));
    }
    krait_buf_str(out, "]}\n");
    return rc;
}

static bool has_spans(const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_SLICES && track->of != KRAIT_OF_LANE;
}

int krait_answer_spans(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    static const char *const columns[] = { "name", "count", "ns" };
    KRAIT_CLEANUP(sums_done)
    struct sums sums = { .of.range = since_origin(serving, krait_serving_range(serving, request)) };
    int rc = each_entry(serving, request, has_spans, &sums.track, add_entry, &sums, err);
    krait_serving_columns(out, columns, KRAIT_ARRAY_LEN(columns), "rows");
    for (uint32_t i = 0; i < sums.of.count; i++) {
        const struct krait_name_sum *sum = &sums.of.items[i];
        const uint64_t numbers[] = { sum->name, sum->count, sum->ns };
        put_row(out, numbers, KRAIT_ARRAY_LEN(numbers));
    }
    krait_buf_str(out, "]}\n");
    return rc;
}

/* ---- how long system calls took over time ---- */

struct scatter {
    struct krait_grid grid;
    uint32_t track, name; /* name: KRAIT_NO_ID: all */
};

static void scatter_done(struct scatter *scatter)
{
    krait_grid_done(&scatter->grid);
}

static int add_point(void *ctx, const struct krait_tile_call *entry)
{
    struct scatter *s = ctx;
    if ((s->name != KRAIT_NO_ID && s->name != entry->func) || entry->value == KRAIT_NOT_RETURNED)
        return 0;
    const struct krait_grid_point point = { .begin_ns = entry->begin_ns,
                                            .end_ns = entry->end_ns,
                                            .value = entry->value,
                                            .track = s->track,
                                            .name = entry->func,
                                            .depth = entry->depth,
                                            .failed = krait_syscall_failed(entry->value) };
    return krait_grid_add(&s->grid, &point);
}

int krait_answer_scatter(struct krait_serving *serving, const struct krait_request *request,
                         struct krait_buf *out, struct krait_err *err)
{
    const uint64_t none = KRAIT_NO_ID - 1;
    KRAIT_CLEANUP(scatter_done)
    struct scatter s = { .grid = { .range = since_origin(serving, krait_serving_range(serving, request)),
                                   .columns = krait_grid_columns(krait_request_number(
                                       request, KRAIT_PARAM_columns, KRAIT_GRID_COLUMNS)) },
                         .name = KRAIT_NO_ID };
    if (krait_request_has(request, KRAIT_PARAM_name))
        s.name = (uint32_t)KRAIT_MIN(request->numbers[KRAIT_PARAM_name], none);
    int rc = each_entry(serving, request, has_syscalls, &s.track, add_point, &s, err);
    krait_buf_char(out, '{');
    krait_grid_put(out, &s.grid);
    krait_buf_str(out, "}\n");
    return rc;
}
