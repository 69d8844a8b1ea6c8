/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/sample_runs.h"

#include "base/array.h"
#include "event/payload.h"
#include "trace/thread_events.h"

struct reading {
    struct krait_sample_runs *runs;
    uint64_t sampled_ns; /* when the last sample was taken */
};

static const uint8_t is_of[] = { [KRAIT_sample_state_runs] = KRAIT_SAMPLE_RUNS,
                                 [KRAIT_sample_state_gil] = KRAIT_SAMPLE_GIL,
                                 [KRAIT_sample_state_blocked] = KRAIT_SAMPLE_BLOCKED };

/* Times of a damaged stream may go backward: runs do not. */
static int add_run(struct reading *reading, struct krait_sample_run run)
{
    struct krait_sample_runs *runs = reading->runs;
    const struct krait_sample_run *last = runs->count ? &runs->items[runs->count - 1] : NULL;
    if (last && ((last->is == run.is && last->line == run.line) || run.begin_ns < last->begin_ns))
        return 0;
    if (!KRAIT_GROW(runs->items, runs->cap, runs->count + 2))
        return -ENOMEM;
    runs->items[runs->count++] = run;
    return 0;
}

/* A stack of no frames that no sample tells of is the thread's end. */
static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *reading = ctx;
    struct krait_payload_python_sample sample;
    struct krait_payload_python_stack stack;
    if (id == KRAIT_EVENT_python_sample && krait_read_python_sample(&payload, &sample)) {
        uint8_t is = sample.state < KRAIT_ARRAY_LEN(is_of) ? is_of[sample.state] : KRAIT_SAMPLE_UNKNOWN;
        reading->sampled_ns = t_ns;
        return add_run(reading, (struct krait_sample_run){ t_ns, sample.line, is });
    }
    bool ends = id == KRAIT_EVENT_python_stack && krait_read_python_stack(&payload, &stack) && !stack.depth &&
                t_ns > reading->sampled_ns;
    return ends ? add_run(reading, (struct krait_sample_run){ t_ns, 0, KRAIT_SAMPLE_UNKNOWN }) : 0;
}

struct counting {
    struct krait_range range;
    uint64_t count;
};

static int count_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct counting *counting = ctx;
    counting->count += t_ns >= counting->range.from_ns && t_ns < counting->range.to_ns;
    return 0;
}

int krait_sample_runs_count(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                            uint64_t *count)
{
    struct counting counting = { .range = range };
    struct krait_thread_events events = { .fn = count_event, .ctx = &counting };
    struct krait_damage nobody = { 0 };
    *count = 0;
    if (!(trace->threads[thread].flags & KRAIT_TRACK_SAMPLED) || !krait_image_of(trace, thread))
        return 0;
    events.wanted[KRAIT_EVENT_python_sample] = true;
    int rc = krait_thread_events_read(&events, trace, thread, range, &nobody);
    *count = counting.count;
    return rc;
}

int krait_sample_runs_read(struct krait_sample_runs *runs, const struct krait_trace *trace, uint32_t thread,
                           struct krait_range range)
{
    struct reading reading = { .runs = runs };
    struct krait_thread_events events = { .fn = on_event, .ctx = &reading };
    runs->count = 0;
    if (!KRAIT_GROW(runs->items, runs->cap, 1))
        return -ENOMEM;
    int rc = 0;
    if (trace->threads[thread].flags & KRAIT_TRACK_SAMPLED && krait_image_of(trace, thread)) {
        events.wanted[KRAIT_EVENT_python_sample] = events.wanted[KRAIT_EVENT_python_stack] = true;
        rc = krait_thread_events_read(&events, trace, thread, range, &runs->damage);
    }
    runs->items[runs->count] = (struct krait_sample_run){ UINT64_MAX, 0, KRAIT_SAMPLE_UNKNOWN };
    return rc;
}

int krait_sample_runs_ran(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                          uint64_t *ns)
{
    struct krait_sample_runs runs = { 0 };
    int rc = krait_sample_runs_read(&runs, trace, thread, range);
    uint64_t to_ns = KRAIT_MIN(range.to_ns, trace->threads[thread].end_ns);
    *ns = 0;
    for (uint32_t i = 0; i < runs.count && !rc; i++) {
        uint64_t from = KRAIT_MAX(runs.items[i].begin_ns, range.from_ns);
        uint64_t to = KRAIT_MIN(runs.items[i + 1].begin_ns, to_ns);
        *ns += runs.items[i].is == KRAIT_SAMPLE_RUNS && to > from ? to - from : 0;
    }
    krait_sample_runs_done(&runs);
    return rc;
}

void krait_sample_runs_done(struct krait_sample_runs *runs)
{
    free(runs->items);
    *runs = (struct krait_sample_runs){ 0 };
}
