/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls whose arguments krait recorded (--args) as slices of their thread, whose text is what was recorded of them. They are
 * the innermost open calls of the events' function:
 *
 *   calls     main ─┬─ add ─┬─ len ┐            ┐
 *   events          │ args  │      │            │ result
 *   slice           ├ {"item":"pen","return":2} ┤
 *
 * A call of a coroutine whose steps are known (coroutines.h) is a slice of its task, from its first step's begin to its last
 * one's end. Other steps of coroutines, and those of generators, are calls here. One that switches of greenlets have suspended
 * is a slice of its greenlet, with all its waits.
 */
#include "base/array.h"
#include "base/buf.h"
#include "base/runs.h"
#include "event/payload.h"
#include "trace/coroutines.h"
#include "trace/import.h"
#include "trace/tasks.h"
#include "trace/thread_events.h"

#include <string.h>

enum { BATCH = 1024 };

struct slice {
    uint64_t begin_ns, end_ns;
    uint32_t name, thread, task; /* the last: index, or KRAIT_NO_ID */
    size_t text;                 /* in texts */
};

/* In trace->impl->source. */
struct calls {
    struct slice *slices; /* by thread, by task, then by end */
    uint32_t count, cap;
    struct krait_buf texts;
};

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

/* A call of a coroutine that is suspended, with what its first step told. */
struct suspended {
    uint64_t begin_ns, end_ns; /* of that step */
    uint32_t func, task, place, call;
    char *fields; /* NULL: it has ended */
};

/* What is open on the stack of a greenlet that does not run. */
struct left {
    struct open open; /* without fields: it goes on, or had none */
    uint64_t end_ns;
    uint32_t number, task; /* krait_call_batch.left */
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
    struct krait_coroutines *coroutines;
    struct krait_call_step *steps; /* of a batch */
    uint32_t step_cap;
    struct suspended *suspended;
    uint32_t suspended_count, suspended_cap;
    struct krait_map suspended_of; /* by number of the call: index */
    uint64_t last_ns;
    struct left *left;
    uint32_t left_count, left_cap;
    struct krait_map left_of; /* by number: index */
};

static void finding_done(struct finding *f)
{
    for (uint32_t i = 0; i < f->suspended_count; i++)
        free(f->suspended[i].fields);
    free(f->suspended);
    krait_map_done(&f->suspended_of);
    for (uint32_t i = 0; i < f->left_count; i++)
        free(f->left[i].open.fields);
    free(f->left);
    krait_map_done(&f->left_of);
    krait_coroutines_free(f->coroutines);
    free(f->steps);
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
    func = f->trace->funcs[func].base; /* with call sites, a call has another function */
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
    f->open[f->open_count++] = (struct open){ t_ns, f->trace->funcs[func].base, NULL };
    return 0;
}

static int add_slice(struct finding *f, struct slice slice, uint32_t func, const char *fields)
{
    struct calls *calls = f->calls;
    char label[4096];
    slice.name = krait_trace_name(f->trace, krait_func_label(&f->trace->funcs[func], label, sizeof(label)));
    slice.thread = f->thread;
    slice.text = calls->texts.len;
    bool has_room = slice.name != KRAIT_NO_ID && KRAIT_GROW(calls->slices, calls->cap, calls->count + 1);
    if (has_room)
        calls->slices[calls->count++] = slice;
    krait_buf_add(&calls->texts, fields, strlen(fields) + 1);
    return has_room && !calls->texts.failed ? 0 : -ENOMEM;
}

/* Its fields are those of the call from now on. */
static int suspend(struct finding *f, struct open *open, uint64_t t_ns, const struct krait_call_step *step)
{
    if (!KRAIT_GROW(f->suspended, f->suspended_cap, f->suspended_count + 1) ||
        krait_map_put(&f->suspended_of, step->call, f->suspended_count))
        return -ENOMEM;
    f->suspended[f->suspended_count++] =
        (struct suspended){ open->begin_ns, t_ns,       open->func,  step->task,
                            step->place,    step->call, open->fields };
    open->fields = NULL;
    return 0;
}

/* What its first step told goes before what its last one told. */
static int rejoin(struct finding *f, struct open *open, const struct krait_call_step *step)
{
    const uint64_t *index = step->call ? krait_map_get(&f->suspended_of, step->call) : NULL;
    struct suspended *suspended = index ? &f->suspended[*index] : NULL;
    if (!suspended || !suspended->fields)
        return 0;
    char *last = open->fields;
    open->fields = suspended->fields;
    suspended->fields = NULL;
    int rc = last ? join_fields(open, last) : 0;
    free(last);
    return rc;
}

/* Keeps what is open until its stack comes back. */
static int leave(struct finding *f, struct open *open, uint64_t t_ns, uint32_t number, uint32_t task)
{
    const struct left left = { *open, t_ns, number, task };
    const uint64_t *index = krait_map_get(&f->left_of, number);
    if (index) {
        free(f->left[*index].open.fields);
        f->left[*index] = left;
    } else if (!KRAIT_GROW(f->left, f->left_cap, f->left_count + 1) ||
               krait_map_put(&f->left_of, number, f->left_count)) {
        return -ENOMEM;
    } else {
        f->left[f->left_count++] = left;
    }
    open->fields = NULL;
    return 0;
}

static void come_back(struct finding *f, uint32_t number)
{
    const uint64_t *index = krait_map_get(&f->left_of, number);
    if (!index)
        return;
    f->open[f->open_count - 1] = f->left[*index].open;
    f->left[*index].open.fields = NULL;
}

/* Only what tasks tell of greenlets puts each on a track of its own; on one track they would overlap. */
static bool follows_left(const struct finding *f)
{
    return f->trace->task_count;
}

static int end(struct finding *f, const struct krait_call_batch *ops, uint32_t op,
               const struct krait_call_step *step)
{
    uint64_t t_ns = ops->t_ns[op];
    uint8_t kind = ops->kind[op];
    if (!f->open_count)
        return 0;
    struct open *open = &f->open[--f->open_count];
    if (step->is_left && follows_left(f))
        return open->fields ? leave(f, open, t_ns, ops->left[op], step->task) : 0;
    bool is_call = step->is_coroutine && step->begin_ns && step->call;
    int rc = 0;
    if (is_call && kind == KRAIT_OP_YIELD && step->is_first && open->fields)
        rc = suspend(f, open, t_ns, step);
    else if (is_call && kind != KRAIT_OP_YIELD)
        rc = rejoin(f, open, step);
    struct slice slice = { .begin_ns = is_call ? step->begin_ns : open->begin_ns,
                           .end_ns = t_ns,
                           .task = is_call || step->was_left ? step->task : KRAIT_NO_ID };
    if (!rc && open->fields)
        rc = add_slice(f, slice, open->func, open->fields);
    free(open->fields);
    return rc;
}

static int take_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct finding *f = ctx;
    if (!KRAIT_GROW(f->steps, f->step_cap, ops->n))
        return -ENOMEM;
    int rc = krait_coroutines_take(f->coroutines, ops, f->steps);
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        rc = attach_until(f, ops->t_ns[i]);
        if (!rc)
            rc = krait_op_is_end(ops->kind[i]) ? end(f, ops, i, &f->steps[i])
                                               : begin(f, ops->t_ns[i], ops->func[i]);
        if (!rc && !krait_op_is_end(ops->kind[i]) && f->steps[i].was_left)
            come_back(f, ops->left[i]);
        f->last_ns = ops->t_ns[i];
    }
    return rc;
}

/* Those that are still suspended last to the end. Of those that nobody can follow any more, only the first step is known. */
static int end_suspended(struct finding *f)
{
    int rc = 0;
    for (uint32_t i = 0; i < f->suspended_count && !rc; i++) {
        const struct suspended *at = &f->suspended[i];
        bool is_known = krait_coroutines_has(f->coroutines, at->place, at->call);
        struct slice slice = { .begin_ns = at->begin_ns,
                               .end_ns = is_known ? f->last_ns : at->end_ns,
                               .task = is_known ? at->task : KRAIT_NO_ID };
        rc = at->fields ? add_slice(f, slice, at->func, at->fields) : 0;
    }
    return rc;
}

static int end_left(struct finding *f)
{
    int rc = 0;
    for (uint32_t i = 0; i < f->left_count && !rc; i++) {
        const struct left *at = &f->left[i];
        bool is_known = krait_coroutines_has_left(f->coroutines, at->number);
        struct slice slice = { .begin_ns = at->open.begin_ns,
                               .end_ns = is_known ? f->last_ns : at->end_ns,
                               .task = at->task };
        rc = at->open.fields ? add_slice(f, slice, at->open.func, at->open.fields) : 0;
    }
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct slice *x = a, *y = b;
    if (x->task != y->task)
        return (x->task + 1 > y->task + 1) - (x->task + 1 < y->task + 1); /* the thread's own first */
    return x->end_ns != y->end_ns ? (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns)
                                  : (x->begin_ns < y->begin_ns) - (x->begin_ns > y->begin_ns);
}

static int find_in_thread(struct krait_trace *trace, struct calls *calls, uint32_t thread)
{
    KRAIT_CLEANUP(finding_done)
    struct finding f = {
        .trace = trace, .image = krait_image_of(trace, thread), .calls = calls, .thread = thread
    };
    struct krait_thread_events events = { .fn = on_event, .ctx = &f };
    struct krait_damage ignored = { 0 };
    uint32_t first = calls->count;
    krait_thread_events_want(&events, "call:");
    int rc = krait_thread_events_read(&events, trace, thread, KRAIT_RANGE_ALL, &ignored);
    if (rc || !f.told_count)
        return rc;
    rc = krait_coroutines_new(&f.coroutines, trace, thread, KRAIT_RANGE_ALL);
    rc = rc ? rc : krait_trace_walk(trace, thread, KRAIT_RANGE_ALL, take_ops, &f, NULL, 0);
    rc = rc ? rc : end_suspended(&f);
    rc = rc ? rc : end_left(&f);
    return rc || calls->count == first ? rc
                                       : krait_runs_sort(&calls->slices[first], calls->count - first,
                                                         sizeof(*calls->slices), by_place);
}

static int add_track(struct krait_trace *trace, const struct calls *calls, uint32_t first)
{
    const struct slice *slice = &calls->slices[first];
    struct krait_track *track = krait_trace_add_thread_track(trace, slice->thread, KRAIT_IMPORTER_krait_args,
                                                             KRAIT_TRACK_SLICES, "arguments");
    if (!track || (slice->task != KRAIT_NO_ID && !krait_task_takes(trace, track, slice->task)))
        return -ENOMEM;
    track->flags = trace->threads[slice->thread].flags & KRAIT_TRACK_LOST;
    track->key = first;
    return 0;
}

static bool is_same_place(const struct slice *a, const struct slice *b)
{
    return a->thread == b->thread && a->task == b->task;
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct calls *calls = calloc(1, sizeof(*calls));
    trace->impl->source[KRAIT_IMPORTER_krait_args] = calls;
    int rc = calls ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i) && !rc; i++) {
        uint32_t first = calls->count;
        rc = find_in_thread(trace, calls, i);
        for (uint32_t at = first; at < calls->count && !rc; at++) {
            if (at == first || !is_same_place(&calls->slices[at], &calls->slices[at - 1]))
                rc = add_track(trace, calls, at);
        }
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
    for (uint32_t i = track->key;
         i < calls->count && is_same_place(&calls->slices[i], &calls->slices[track->key]) && !rc; i++)
        rc = hand_out(h, calls, &calls->slices[i]);
    return rc ? rc : flush(h);
}

const struct krait_importer krait_importer_krait_args = { .takes = krait_folder_is_kraits,
                                                          .kinds = 1 << KRAIT_TRACK_SLICES,
                                                          .tracks = find_tracks,
                                                          .walk = walk_track,
                                                          .close = close_source };
