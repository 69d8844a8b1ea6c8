/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls whose arguments krait recorded (--args) as slices of their thread, whose text is what was recorded of them. They are
 * the innermost open calls of the events' function:
 *
 *   calls     main ─┬─ add ─┬─ len ┐            ┐
 *   events          │ args  │      │            │ result
 *   slice           ├ {"item":"pen","return":2} ┤
 *
 * A step of a generator or a coroutine is a call here.
 */
#include "base/array.h"
#include "base/buf.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/thread_events.h"

#include <string.h>

enum { BATCH = 1024 };

struct slice {
    uint64_t begin_ns, end_ns;
    uint32_t name, thread;
    size_t text; /* in texts */
};

/* In trace->impl->source. */
struct calls {
    struct slice *slices; /* by thread, then by end */
    uint32_t count, cap;
    struct krait_buf texts;
};

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

static void close_source(void *source)
{
    struct calls *calls = source;
    if (!calls)
        return;
    free(calls->slices);
    krait_buf_done(&calls->texts);
    free(calls);
}

/* -- finding -- */

struct told {
    uint64_t t_ns;
    uint32_t func;
    bool is_result;
    size_t text; /* in texts */
};

struct open {
    uint64_t begin_ns;
    uint32_t func;
    char *fields; /* NULL: none */
};

struct finding {
    struct krait_trace *trace;
    const struct krait_image *image;
    struct calls *calls;
    uint32_t thread;
    struct told *told; /* by this thread */
    uint32_t told_count, told_cap, next;
    struct krait_buf texts;
    struct open *open; /* the outermost first */
    uint32_t open_count, open_cap;
};

static void finding_done(struct finding *f)
{
    for (uint32_t i = 0; i < f->open_count; i++)
        free(f->open[i].fields);
    free(f->open);
    free(f->told);
    krait_buf_done(&f->texts);
}

static int add_told(struct finding *f, uint64_t t_ns, uint32_t code, const char *fields, bool is_result)
{
    uint32_t func = code < f->image->code_count ? f->image->code_func[code] : KRAIT_NO_ID;
    if (func == KRAIT_NO_ID)
        return 0;
    if (!KRAIT_GROW(f->told, f->told_cap, f->told_count + 1))
        return -ENOMEM;
    f->told[f->told_count++] = (struct told){ t_ns, func, is_result, f->texts.len };
    krait_buf_add(&f->texts, fields, strlen(fields) + 1);
    return f->texts.failed ? -ENOMEM : 0;
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct krait_payload_call_args args;
    struct krait_payload_call_result result;
    if (id == KRAIT_EVENT_call_args)
        return krait_read_call_args(&payload, &args) ? add_told(ctx, t_ns, args.code, args.args, false) : 0;
    return krait_read_call_result(&payload, &result) ? add_told(ctx, t_ns, result.code, result.result, true)
                                                     : 0;
}

/* {"a":1} and {"return":2} are {"a":1,"return":2}. */
static int join_fields(struct open *open, const char *fields)
{
    char *both = NULL;
    size_t had = open->fields ? strlen(open->fields) : 0;
    int n = had > 1 && *fields ? asprintf(&both, "%.*s,%s", (int)had - 1, open->fields, fields + 1)
                               : asprintf(&both, "%s", fields);
    if (n < 0)
        return -ENOMEM;
    free(open->fields);
    open->fields = both;
    return 0;
}

static int attach(struct finding *f, const struct told *told)
{
    for (uint32_t i = f->open_count; i-- > 0;) {
        if (f->open[i].func == told->func && (told->is_result || !f->open[i].fields))
            return join_fields(&f->open[i], f->texts.data + told->text);
    }
    return 0; /* its call was lost */
}

/* What was told before an op at this time. */
static int attach_until(struct finding *f, uint64_t t_ns)
{
    int rc = 0;
    for (; f->next < f->told_count && !rc; f->next++) {
        const struct told *told = &f->told[f->next];
        if (told->t_ns > t_ns || (told->t_ns == t_ns && !told->is_result))
            break;
        rc = attach(f, told);
    }
    return rc;
}

static int begin(struct finding *f, uint64_t t_ns, uint32_t func)
{
    if (!KRAIT_GROW(f->open, f->open_cap, f->open_count + 1))
        return -ENOMEM;
    f->open[f->open_count++] = (struct open){ t_ns, func, NULL };
    return 0;
}

static int end(struct finding *f, uint64_t t_ns)
{
    struct calls *calls = f->calls;
    if (!f->open_count)
        return 0;
    struct open *open = &f->open[--f->open_count];
    if (!open->fields)
        return 0;
    char label[4096];
    uint32_t name =
        krait_trace_name(f->trace, krait_func_label(&f->trace->funcs[open->func], label, sizeof(label)));
    bool has_room = name != KRAIT_NO_ID && KRAIT_GROW(calls->slices, calls->cap, calls->count + 1);
    if (has_room)
        calls->slices[calls->count++] =
            (struct slice){ open->begin_ns, t_ns, name, f->thread, calls->texts.len };
    krait_buf_add(&calls->texts, open->fields, strlen(open->fields) + 1);
    free(open->fields);
    return has_room && !calls->texts.failed ? 0 : -ENOMEM;
}

static int take_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct finding *f = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        rc = attach_until(f, ops->t_ns[i]);
        if (!rc)
            rc = krait_op_is_end(ops->kind[i]) ? end(f, ops->t_ns[i]) : begin(f, ops->t_ns[i], ops->func[i]);
    }
    return rc;
}

static int find_in_thread(struct krait_trace *trace, struct calls *calls, uint32_t thread)
{
    KRAIT_CLEANUP(finding_done)
    struct finding f = {
        .trace = trace, .image = krait_image_of(trace, thread), .calls = calls, .thread = thread
    };
    struct krait_thread_events events = { .fn = on_event, .ctx = &f };
    struct krait_damage ignored = { 0 };
    krait_thread_events_want(&events, "call:");
    int rc = krait_thread_events_read(&events, trace, thread, KRAIT_RANGE_ALL, &ignored);
    if (rc || !f.told_count)
        return rc;
    return krait_trace_walk(trace, thread, KRAIT_RANGE_ALL, take_ops, &f, NULL, 0);
}

static int add_track(struct krait_trace *trace, uint32_t thread, uint32_t first)
{
    struct krait_track *track = krait_trace_add_thread_track(trace, thread, KRAIT_IMPORTER_krait_args,
                                                             KRAIT_TRACK_SLICES, "arguments");
    if (!track)
        return -ENOMEM;
    track->flags = trace->threads[thread].flags & KRAIT_TRACK_LOST;
    track->key = first;
    return 0;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct calls *calls = calloc(1, sizeof(*calls));
    trace->impl->source[KRAIT_IMPORTER_krait_args] = calls;
    int rc = calls ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i) && !rc; i++) {
        uint32_t first = calls->count;
        rc = find_in_thread(trace, calls, i);
        rc = rc || calls->count == first ? rc : add_track(trace, i, first);
    }
    return rc;
}

/* -- walking -- */

struct handing {
    const struct krait_track *track;
    const struct krait_walking *walking;
    uint32_t n, name[BATCH];
    uint64_t t_ns[BATCH], end_ns[BATCH];
    int64_t value[BATCH];
    const char *text[BATCH];
};

static int flush(struct handing *h)
{
    const struct krait_batch batch = {
        .n = h->n, .t_ns = h->t_ns, .end_ns = h->end_ns, .name = h->name, .value = h->value, .text = h->text
    };
    h->n = 0;
    return batch.n ? h->walking->batch(h->walking->ctx, h->track, &batch) : 0;
}

static int hand_out(struct handing *h, const struct calls *calls, const struct slice *slice)
{
    const struct krait_range *range = &h->walking->range;
    if (slice->end_ns <= range->from_ns || slice->begin_ns >= range->to_ns)
        return 0;
    h->t_ns[h->n] = KRAIT_MAX(slice->begin_ns, range->from_ns);
    h->end_ns[h->n] = KRAIT_MIN(slice->end_ns, range->to_ns);
    h->name[h->n] = slice->name;
    h->text[h->n] = calls->texts.data + slice->text;
    return ++h->n == BATCH ? flush(h) : 0;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct calls *calls = trace->impl->source[KRAIT_IMPORTER_krait_args];
    KRAIT_AUTO_FREE struct handing *h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->track = track;
    h->walking = walking;
    int rc = 0;
    for (uint32_t i = track->key; i < calls->count && calls->slices[i].thread == track->thread && !rc; i++)
        rc = hand_out(h, calls, &calls->slices[i]);
    return rc ? rc : flush(h);
}

const struct krait_importer krait_importer_krait_args = { .takes = takes,
                                                          .kinds = 1 << KRAIT_TRACK_SLICES,
                                                          .tracks = find_tracks,
                                                          .walk = walk_track,
                                                          .close = close_source };
