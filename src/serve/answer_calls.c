/* SPDX-License-Identifier: Apache-2.0
 *
 * Endpoints for single calls (the call that is open at a time, the next call, the calls of a function) and marks.
 */
#include "analysis/calltree.h"
#include "analysis/why.h"
#include "base/array.h"
#include "base/json.h"
#include "serve/serving.h"
#include "trace/importer.h"
#include "trace/sample_runs.h"
#include "trace/tasks.h"

#include <string.h>

#define P(name) (1u << KRAIT_PARAM_##name)

enum { CALLS_MAX = 5000 };

static int no_track(struct krait_err *err)
{
    return krait_err_set(err, -ENOENT, "there is no such track of calls");
}

static const struct krait_track *calls_track(const struct krait_serving *serving,
                                             const struct krait_request *request)
{
    uint64_t id = request->numbers[KRAIT_PARAM_track];
    const struct krait_track *track = id < serving->trace->track_count ? &serving->trace->tracks[id] : NULL;
    return track && track->kind == KRAIT_TRACK_CALLS ? track : NULL;
}

/* Nanoseconds are strings in the JSON: JavaScript's numbers are exact only up to 2^53. */
static void json_ns(struct krait_buf *out, const char *key, uint64_t ns)
{
    krait_json_key(out, key);
    krait_buf_fmt(out, "\"%llu\"", (unsigned long long)ns);
}

/* The call's times count from the origin. */
static void put_call(struct krait_buf *out, const struct krait_tile_call *call)
{
    krait_json_key_u64(out, "func", call->func);
    krait_json_key_u64(out, "depth", call->depth);
    json_ns(out, "begin", call->begin_ns);
    json_ns(out, "end", call->end_ns);
    krait_json_key_u64(out, "begins", call->begin);
    krait_json_key_u64(out, "ends", call->end);
}

/* ---- the call at a time ---- */

static int by_depth(const void *a, const void *b)
{
    const struct krait_tile_call *x = a, *y = b;
    return (x->depth > y->depth) - (x->depth < y->depth);
}

static bool takes_one(void *thread, const struct krait_trace *trace, uint32_t index)
{
    return *(const uint32_t *)thread == index;
}

/* Finds the call at stack[depth] in a call tree of the call's own range: the path from the root follows the stack. */
static uint32_t node_of(const struct krait_calltree *tree, const struct krait_tile_call *stack,
                        uint32_t depth)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i <= depth; i++) {
        uint32_t child = tree->nodes[node].first_child;
        while (child != KRAIT_NO_ID && tree->nodes[child].func != stack[i].func)
            child = tree->nodes[child].next_sibling;
        if (child == KRAIT_NO_ID)
            return KRAIT_NO_ID;
        node = child;
    }
    return node;
}

static int put_callees(struct krait_buf *out, const struct krait_serving *serving, uint32_t thread,
                       const struct krait_tile_call *stack, uint32_t depth, struct krait_err *err)
{
    struct krait_calltree *tree;
    const struct krait_calltree_options options = { .range = { serving->origin_ns + stack[depth].begin_ns,
                                                               serving->origin_ns + stack[depth].end_ns },
                                                    .take_thread = takes_one,
                                                    .ctx = &thread };
    int rc = krait_calltree_new(&tree, serving->trace, &options, err);
    if (rc)
        return rc;
    uint32_t node = node_of(tree, stack, depth);
    if (node != KRAIT_NO_ID)
        krait_json_key_u64(out, "self", tree->nodes[node].self_ns);
    krait_json_key_open(out, "callees", '[');
    for (uint32_t c = node == KRAIT_NO_ID ? KRAIT_NO_ID : tree->nodes[node].first_child; c != KRAIT_NO_ID;
         c = tree->nodes[c].next_sibling) {
        krait_json_item(out, "[");
        krait_buf_fmt(out, "%u,%llu,%llu,%llu]", tree->nodes[c].func,
                      (unsigned long long)tree->nodes[c].calls, (unsigned long long)tree->nodes[c].self_ns,
                      (unsigned long long)tree->nodes[c].total_ns);
    }
    krait_buf_char(out, ']');
    krait_calltree_free(tree);
    return 0;
}

static void put_split(struct krait_buf *out, const struct krait_wall *wall,
                      const uint64_t ns[KRAIT_WALL_COUNT])
{
    static const char *const keys[] = {
#define X(name, text, title, words) text,
        KRAIT_WALL_STATES(X)
#undef X
    };
    krait_json_key_open(out, "wall", '{');
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (ns[i] && (krait_wall_has_states(wall) || i == KRAIT_WALL_GIL))
            krait_json_key_u64(out, keys[i], ns[i]);
    }
    krait_buf_char(out, '}');
}

static void put_waits(struct krait_buf *out, const struct krait_wall *wall, const struct krait_why_call *call)
{
    krait_json_key_open(out, "waits", '[');
    for (uint32_t i = 0; i < call->waits.count; i++) {
        const struct krait_why_row *row = &call->waits.items[i];
        bool known = row->by && row->by != KRAIT_RUN_UNKNOWN;
        struct krait_wall_cause cause =
            known ? krait_wall_cause(wall, row->by, call->begin_ns) : (struct krait_wall_cause){ .name = "" };
        krait_json_item(out, "{");
        krait_json_key_text(out, "state",
                            (const char *[]){
#define X(name, text, title, words) words,
                                KRAIT_WALL_STATES(X)
#undef X
                            }[row->state]);
        krait_json_key_text(out, "syscall", krait_wall_call(wall, row->call));
        bool is_free = row->part == KRAIT_WALL_GIL_FREE;
        krait_json_key_text(out, "by", is_free ? "nobody: free" : cause.name);
        krait_json_key_u64(out, "tid", known && !is_free && cause.tid > 0 ? (uint64_t)cause.tid : 0);
        krait_json_key_u64(out, "count", row->count);
        krait_json_key_u64(out, "ns", row->ns);
        krait_json_key_u64(out, "longest", row->longest_ns);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static int put_why_of(struct krait_buf *out, const struct krait_serving *serving,
                      const struct krait_wall *wall, uint32_t thread, const struct krait_tile_call *call)
{
    struct krait_why *why = NULL;
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)serving->trace->func_count + 1, sizeof(*meant));
    if (!meant)
        return -ENOMEM;
    meant[call->func] = true;
    const struct krait_why_options options = { .range = { serving->origin_ns + call->begin_ns,
                                                          serving->origin_ns + call->end_ns },
                                               .meant = meant,
                                               .limit = 1,
                                               .take_thread = takes_one,
                                               .ctx = &thread,
                                               .wall = wall };
    int rc = krait_why_new(&why, serving->trace, &options);
    if (!rc && why->count) {
        put_split(out, wall, why->slowest[0].wall_ns);
        put_waits(out, wall, &why->slowest[0]);
    }
    krait_why_free(why);
    return rc;
}

/* The call's time by thread state, and the causes of its waits, if the trace has thread states. */
static int put_why(struct krait_buf *out, struct krait_serving *serving, uint32_t thread,
                   const struct krait_tile_call *call)
{
    const struct krait_wall *wall = krait_serving_wall(serving);
    int rc = wall ? put_why_of(out, serving, wall, thread, call) : 0;
    krait_serving_wall_used(wall);
    return rc;
}

/* ---- where a call was cut ---- */

/* Stretches in which a thread was not recorded: the last one that begins before a call does, the first one that ends after
 * it, and all inside it, where events were lost and the call was open on both sides. */
struct cuts {
    uint64_t begin_ns, end_ns; /* of the call */
    struct cut {
        struct krait_range range; /* all zeros: there is none */
        uint64_t events;          /* 0: it was switched off */
    } before, after, inside;      /* inside: from the first one's begin to the last one's end */
    uint64_t inside_ns;
};

static int look_at_missing(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct cuts *cuts = ctx;
    (void)track;
    for (uint32_t i = 0; i < batch->n; i++) {
        struct cut cut = { { batch->t_ns[i], batch->end_ns[i] }, (uint64_t)batch->value[i] };
        if (cut.range.from_ns < cuts->begin_ns)
            cuts->before = cut;
        if (!cuts->after.range.to_ns && cut.range.to_ns > cuts->end_ns)
            cuts->after = cut;
        if (cut.range.from_ns < cuts->begin_ns || cut.range.to_ns > cuts->end_ns)
            continue;
        cuts->inside.range.from_ns = cuts->inside_ns ? cuts->inside.range.from_ns : cut.range.from_ns;
        cuts->inside.range.to_ns = cut.range.to_ns;
        cuts->inside.events += cut.events;
        cuts->inside_ns += cut.range.to_ns - cut.range.from_ns;
    }
    return 0;
}

static void put_cut(struct krait_buf *out, const struct krait_serving *serving, const char *key,
                    const struct cut *cut, uint64_t ns)
{
    krait_json_key_open(out, key, '{');
    krait_json_key_bool(out, "off", !cut->events);
    krait_json_key_u64(out, "events", cut->events);
    json_ns(out, "begin", cut->range.from_ns - serving->origin_ns);
    json_ns(out, "end", cut->range.to_ns - serving->origin_ns);
    krait_json_key_u64(out, "ns", ns);
    krait_buf_char(out, '}');
}

static uint64_t length_of_cut(const struct cut *cut)
{
    return cut->range.to_ns - cut->range.from_ns;
}

/* Why the call's begin, or its end, is not in the recording: because it was switched off, or events were lost. Other calls
 * began before the recording, or were open at its end. */
static int put_cuts(struct krait_buf *out, const struct krait_serving *serving, uint32_t thread,
                    const struct krait_tile_call *call)
{
    const struct krait_trace *trace = serving->trace;
    struct cuts cuts = { .begin_ns = serving->origin_ns + call->begin_ns,
                         .end_ns = serving->origin_ns + call->end_ns };
    int rc = 0;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->importer == KRAIT_IMPORTER_krait_lost && track->thread == thread)
            rc = krait_track_walk(trace, i, KRAIT_RANGE_ALL, look_at_missing, &cuts, NULL, 0);
    }
    if (cuts.before.range.to_ns && call->begin == KRAIT_OP_LIVE)
        put_cut(out, serving, "before", &cuts.before, length_of_cut(&cuts.before));
    if (cuts.inside_ns)
        put_cut(out, serving, "inside", &cuts.inside, cuts.inside_ns);
    if (cuts.after.range.to_ns && call->end == KRAIT_OP_CUT && cuts.after.range.from_ns <= cuts.end_ns)
        put_cut(out, serving, "after", &cuts.after, length_of_cut(&cuts.after));
    return rc;
}

static bool is_of_task(const struct krait_trace *trace, uint32_t func)
{
    uint32_t i = 0;
    while (i < trace->task_count && trace->tasks[i].func != func)
        i++;
    return i < trace->task_count;
}

/* The task whose step a call is part of; KRAIT_NO_ID: none. The call of a task's own coroutine begins before the step. */
static uint32_t task_of(const struct krait_serving *serving, uint32_t thread,
                        const struct krait_tile_call *call)
{
    const struct krait_trace *trace = serving->trace;
    uint64_t begin_ns = serving->origin_ns + call->begin_ns;
    uint32_t task = krait_task_at(trace, thread, begin_ns);
    if (task != KRAIT_NO_ID || !is_of_task(trace, call->func))
        return task;
    task = krait_task_at(trace, thread, begin_ns + (call->end_ns - call->begin_ns) / 2);
    return task != KRAIT_NO_ID && trace->tasks[task].func == call->func ? task : KRAIT_NO_ID;
}

/* The track of the task's states. */
static void put_task(struct krait_buf *out, const struct krait_serving *serving, uint32_t thread,
                     const struct krait_tile_call *call)
{
    const struct krait_trace *trace = serving->trace;
    uint32_t task = trace->task_count ? task_of(serving, thread, call) : KRAIT_NO_ID, i = 0;
    if (task == KRAIT_NO_ID)
        return;
    while (i < trace->track_count &&
           (trace->tracks[i].importer != KRAIT_IMPORTER_krait_tasks || trace->tracks[i].key != task))
        i++;
    if (i < trace->track_count)
        krait_json_key_u64(out, "task", i);
}

/* Of how many samples a stretch is; nothing of a call that was recorded. */
static int put_samples(struct krait_buf *out, const struct krait_serving *serving, uint32_t thread,
                       const struct krait_tile_call *call)
{
    const struct krait_range range = { serving->origin_ns + call->begin_ns,
                                       serving->origin_ns + call->end_ns };
    uint64_t count;
    if (!(serving->trace->threads[thread].flags & KRAIT_TRACK_SAMPLED))
        return 0;
    int rc = krait_sample_runs_count(serving->trace, thread, range, &count);
    if (!rc)
        krait_json_key_u64(out, "samples", count);
    return rc;
}

static int put_details(struct krait_buf *out, struct krait_serving *serving, uint32_t thread,
                       const struct krait_tile_call *stack, uint32_t depth, struct krait_err *err)
{
    krait_buf_char(out, '{');
    put_call(out, &stack[depth]);
    put_task(out, serving, thread, &stack[depth]);
    krait_json_key_open(out, "ancestors", '[');
    for (uint32_t i = 0; i < depth; i++) {
        krait_json_item(out, "{");
        put_call(out, &stack[i]);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    int rc = put_callees(out, serving, thread, stack, depth, err);
    if (!rc &&
        (put_cuts(out, serving, thread, &stack[depth]) || put_samples(out, serving, thread, &stack[depth]) ||
         put_why(out, serving, thread, &stack[depth])))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    krait_buf_str(out, "}\n");
    return rc;
}

int krait_answer_call(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_tile_done) struct krait_tile open = { 0 };
    int rc = krait_request_needs(request, P(track) | P(at) | P(depth), err);
    if (rc)
        return rc;
    const struct krait_track *track = calls_track(serving, request);
    uint64_t depth = request->numbers[KRAIT_PARAM_depth];
    if (!track)
        return no_track(err);
    rc = krait_view_at(serving->view, (uint32_t)request->numbers[KRAIT_PARAM_track],
                       request->numbers[KRAIT_PARAM_at], &open);
    if (rc)
        return krait_err_set(err, rc, "the index is still being built");
    if (open.call_count)
        qsort(open.calls, open.call_count, sizeof(*open.calls), by_depth);
    if (depth >= open.call_count || open.calls[depth].depth != depth)
        return krait_err_set(err, -ENOENT, "no call is open there");
    return put_details(out, serving, track->thread, open.calls, (uint32_t)depth, err);
}

/* ---- the next call ---- */

struct looking {
    struct krait_tile_open open;
    struct krait_tile_call found;
    uint64_t at_ns;
    uint64_t from_ns;     /* begin of the window: what is open there began before */
    uint32_t func, depth; /* KRAIT_NO_ID: any */
    bool forward, has;
    bool is_sampled; /* stretches of samples: none of them begins as a call does */
};

static bool is_meant(const struct looking *look, const struct krait_tile_call *call)
{
    bool begins = call->begin == KRAIT_OP_CALL || (look->is_sampled && call->begin_ns > look->from_ns);
    return begins && (look->func == KRAIT_NO_ID || call->func == look->func) &&
           (look->depth == KRAIT_NO_ID || call->depth == look->depth);
}

/* Calls come in the order of their ends, so every call of the window is compared by its begin. */
static int look_at(void *ctx, const struct krait_tile_call *call)
{
    struct looking *look = ctx;
    bool behind = call->begin_ns > look->at_ns, before = call->begin_ns < look->at_ns;
    if (!is_meant(look, call) || !(look->forward ? behind : before))
        return 0;
    if (!look->has ||
        (look->forward ? call->begin_ns < look->found.begin_ns : call->begin_ns > look->found.begin_ns))
        look->found = *call;
    look->has = true;
    return 0;
}

/* Searches windows of growing length, starting at look->at_ns. A call that ends after its window is cut there, but its
 * begin is exact. */
static int look_for(struct looking *look, const struct krait_serving *serving, uint32_t thread)
{
    const struct krait_trace *trace = serving->trace;
    uint64_t begin_ns = trace->threads[thread].begin_ns, end_ns = trace->threads[thread].end_ns + 1;
    uint64_t at = look->at_ns, window = KRAIT_NS_PER_MS;
    while (!look->has && (look->forward ? at < end_ns : at > begin_ns)) {
        struct krait_range range = look->forward
                                       ? (struct krait_range){ at, at + KRAIT_MIN(window, end_ns - at) }
                                       : (struct krait_range){ at - KRAIT_MIN(window, at - begin_ns), at };
        range.from_ns -= look->is_sampled; /* what begins at the edge, and did not begin before it */
        look->from_ns = range.from_ns;
        look->open = (struct krait_tile_open){ .fn = look_at, .ctx = look };
        int rc = krait_trace_walk(trace, thread, range, krait_tile_on_batch, &look->open, NULL, 0);
        krait_tile_open_done(&look->open);
        if (rc)
            return rc;
        at = look->forward ? range.to_ns : range.from_ns;
        window *= 4;
    }
    return 0;
}

/* Replaces a call that may be cut by the whole call, if the index knows it. */
static void find_extent(struct krait_serving *serving, uint32_t track, struct krait_tile_call *call)
{
    KRAIT_CLEANUP(krait_tile_done) struct krait_tile open = { 0 };
    if (krait_view_at(serving->view, track, call->begin_ns, &open))
        return;
    for (uint32_t i = 0; i < open.call_count; i++) {
        if (open.calls[i].begin_ns == call->begin_ns && open.calls[i].func == call->func)
            *call = open.calls[i];
    }
}

/* An id from the request; KRAIT_NO_ID (any) if it has none. Numbers that are too large become an id that matches
 * nothing. */
static uint32_t id_or_any(const struct krait_request *request, enum krait_param param)
{
    const uint64_t none = KRAIT_NO_ID - 1;
    return krait_request_has(request, param) ? (uint32_t)KRAIT_MIN(request->numbers[param], none)
                                             : KRAIT_NO_ID;
}

int krait_answer_next(struct krait_serving *serving, const struct krait_request *request,
                      struct krait_buf *out, struct krait_err *err)
{
    int rc = krait_request_needs(request, P(track) | P(at), err);
    if (rc)
        return rc;
    const struct krait_track *track = calls_track(serving, request);
    if (!track)
        return no_track(err);
    struct looking look = {
        .at_ns = serving->origin_ns +
                 KRAIT_MIN(request->numbers[KRAIT_PARAM_at], krait_view_length(serving->view)),
        .func = id_or_any(request, KRAIT_PARAM_func),
        .depth = id_or_any(request, KRAIT_PARAM_depth),
        .forward = krait_request_number(request, KRAIT_PARAM_forward, 1) != 0,
        .is_sampled = track->flags & KRAIT_TRACK_SAMPLED,
    };
    if (look_for(&look, serving, track->thread))
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (!look.has)
        return krait_err_set(err, -ENOENT, "there is no other such call on this thread");
    look.found.begin_ns -= serving->origin_ns;
    look.found.end_ns -= serving->origin_ns;
    find_extent(serving, (uint32_t)request->numbers[KRAIT_PARAM_track], &look.found);
    krait_buf_char(out, '{');
    put_call(out, &look.found);
    krait_buf_str(out, "}\n");
    return 0;
}

/* ---- the calls of a function ---- */

enum { OCTAVE = 4, BUCKETS = 64 * OCTAVE }; /* buckets for each doubling of a duration */

struct found {
    struct krait_tile_call call;
    uint32_t track;
};

struct collecting {
    struct krait_tile_open open;
    uint32_t func, track;
    uint64_t min_ns, max_ns;
    bool is_limited;     /* by these */
    struct found *items; /* a heap with the fastest call first */
    uint32_t count, limit, cap;
    struct found fastest;  /* valid if more are matched than cut */
    uint64_t matched, cut; /* cut: of those, that nobody knows the length of; only without limits */
    uint64_t resumed, yielded, buckets[BUCKETS]; /* each step of a generator counts as a call */
};

static uint64_t length_of(const struct found *found)
{
    return found->call.end_ns - found->call.begin_ns;
}

/* The bucket of a duration: each doubling has OCTAVE buckets, selected by the two bits after the highest one. */
static uint32_t bucket_of(uint64_t ns)
{
    if (ns < OCTAVE)
        return (uint32_t)ns;
    uint32_t high = 63 - (uint32_t)__builtin_clzll(ns);
    return high * OCTAVE + (uint32_t)(ns >> (high - 2) & (OCTAVE - 1)) - OCTAVE;
}

static uint64_t bucket_begin(uint32_t bucket)
{
    if (bucket < OCTAVE)
        return bucket;
    uint32_t high = (bucket + OCTAVE) / OCTAVE;
    return (uint64_t)(OCTAVE + bucket % OCTAVE) << (high - 2);
}

static void sift_down(struct collecting *c)
{
    for (uint32_t i = 0, child; (child = 2 * i + 1) < c->count; i = child) {
        if (child + 1 < c->count && length_of(&c->items[child + 1]) < length_of(&c->items[child]))
            child++;
        if (length_of(&c->items[i]) <= length_of(&c->items[child]))
            return;
        struct found item = c->items[i];
        c->items[i] = c->items[child];
        c->items[child] = item;
    }
}

static void sift_up(struct collecting *c, uint32_t i)
{
    for (uint32_t parent; i && length_of(&c->items[i]) < length_of(&c->items[parent = (i - 1) / 2]);
         i = parent) {
        struct found item = c->items[i];
        c->items[i] = c->items[parent];
        c->items[parent] = item;
    }
}

static int keep_call(struct collecting *c, const struct krait_tile_call *call)
{
    const struct found item = { *call, c->track };
    if (c->count < c->limit) {
        if (!KRAIT_GROW(c->items, c->cap, c->count + 1))
            return -ENOMEM;
        c->items[c->count] = item;
        sift_up(c, c->count++);
    } else if (c->limit && length_of(&item) > length_of(&c->items[0])) {
        c->items[0] = item;
        sift_down(c);
    }
    return 0;
}

static int collect(void *ctx, const struct krait_tile_call *call)
{
    struct collecting *c = ctx;
    uint64_t ns = call->end_ns - call->begin_ns;
    if (call->func != c->func)
        return 0;
    c->buckets[bucket_of(ns)] += !call->is_cut;
    if (ns < c->min_ns || ns > c->max_ns || (call->is_cut && c->is_limited))
        return 0;
    c->resumed += call->begin == KRAIT_OP_RESUME || call->begin == KRAIT_OP_THROW;
    c->yielded += call->end == KRAIT_OP_YIELD;
    if (!call->is_cut && (c->matched == c->cut || ns < length_of(&c->fastest)))
        c->fastest = (struct found){ *call, c->track };
    c->cut += call->is_cut;
    c->matched++;
    return keep_call(c, call);
}

static int collect_all(struct collecting *c, struct krait_serving *serving,
                       const struct krait_request *request)
{
    int rc = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        const struct krait_track *track = &serving->trace->tracks[i];
        if (track->kind != KRAIT_TRACK_CALLS ||
            !krait_serving_takes((void *)request, serving->trace, track->thread))
            continue;
        c->track = i;
        c->open = (struct krait_tile_open){ .fn = collect, .ctx = c };
        rc = krait_trace_walk(serving->trace, track->thread, krait_serving_range(serving, request),
                              krait_tile_on_batch, &c->open, NULL, 0);
        krait_tile_open_done(&c->open);
    }
    return rc;
}

static int slowest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    uint64_t u = length_of(x), v = length_of(y);
    return u != v ? (u < v ? 1 : -1)
                  : (x->call.begin_ns > y->call.begin_ns) - (x->call.begin_ns < y->call.begin_ns);
}

static void put_found(struct krait_buf *out, const struct krait_serving *serving, struct found found)
{
    found.call.begin_ns -= serving->origin_ns;
    found.call.end_ns -= serving->origin_ns;
    krait_json_key_u64(out, "track", found.track);
    put_call(out, &found.call);
    krait_json_key_bool(out, "cut", found.call.is_cut);
    krait_buf_char(out, '}');
}

static void put_collected(struct krait_buf *out, const struct krait_serving *serving, struct collecting *c)
{
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "matched", c->matched);
    krait_json_key_u64(out, "cut", c->cut);
    krait_json_key_u64(out, "resumed", c->resumed);
    krait_json_key_u64(out, "yielded", c->yielded);
    krait_json_key_open(out, "histogram", '[');
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (!c->buckets[i])
            continue;
        krait_json_item(out, "[");
        krait_buf_fmt(out, "%llu,%llu,%llu]", (unsigned long long)bucket_begin(i),
                      (unsigned long long)bucket_begin(i + 1), (unsigned long long)c->buckets[i]);
    }
    krait_buf_char(out, ']');
    krait_json_key_open(out, "calls", '[');
    for (uint32_t i = 0; i < c->count; i++) {
        krait_json_item(out, "\n{");
        put_found(out, serving, c->items[i]);
    }
    krait_buf_char(out, ']');
    if (c->matched > c->cut) {
        krait_json_key_open(out, "fastest", '{');
        put_found(out, serving, c->fastest);
    } else {
        krait_json_key_null(out, "fastest");
    }
    krait_buf_str(out, "}\n");
}

int krait_answer_calls(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    int rc = krait_request_needs(request, P(func), err);
    if (rc)
        return rc;
    struct collecting c = {
        .func = (uint32_t)KRAIT_MIN(request->numbers[KRAIT_PARAM_func], (uint64_t)KRAIT_NO_ID),
        .min_ns = krait_request_number(request, KRAIT_PARAM_min, 0),
        .max_ns = krait_request_number(request, KRAIT_PARAM_max, UINT64_MAX),
        .is_limited =
            krait_request_has(request, KRAIT_PARAM_min) || krait_request_has(request, KRAIT_PARAM_max),
        .limit =
            (uint32_t)KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, 500), (uint64_t)CALLS_MAX),
    };
    rc = collect_all(&c, serving, request);
    if (!rc && c.count)
        qsort(c.items, c.count, sizeof(*c.items), slowest_first);
    if (!rc)
        put_collected(out, serving, &c);
    free(c.items);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}

/* ---- marks ---- */

struct marks {
    struct krait_buf *out;
    uint64_t left, more;
    uint32_t track;
    bool drawn; /* only those that lanes draw */
};

static int put_mark(void *ctx, const struct krait_tile_call *entry)
{
    struct marks *marks = ctx;
    if (marks->drawn && !entry->value)
        return 0;
    if (!marks->left) {
        marks->more++;
        return 0;
    }
    marks->left--;
    krait_json_item(marks->out, "\n{");
    krait_json_key_u64(marks->out, "track", marks->track);
    krait_json_key_u64(marks->out, "name", entry->func);
    json_ns(marks->out, "at", entry->begin_ns);
    krait_buf_char(marks->out, '}');
    return 0;
}

static int count_mark(void *ctx, const struct krait_tile_call *entry)
{
    ++*(uint64_t *)ctx;
    return 0;
}

/* Of tracks that only `own` leaves out. */
static int count_others(const struct krait_serving *serving, const struct krait_request *request,
                        struct krait_range range, uint64_t *others)
{
    int rc = 0;
    *others = 0;
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        if (serving->trace->tracks[i].kind == KRAIT_TRACK_INSTANTS &&
            !krait_request_has(request, KRAIT_PARAM_tracks) &&
            !krait_serving_takes_track(serving, request, i))
            rc = krait_view_each(serving->view, i, range, count_mark, others);
    }
    return rc;
}

int krait_answer_marks(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    struct marks marks = { .out = out,
                           .drawn = krait_request_number(request, KRAIT_PARAM_drawn, 0),
                           .left =
                               KRAIT_MIN(krait_request_number(request, KRAIT_PARAM_limit, 500), CALLS_MAX) };
    struct krait_range range = krait_serving_range(serving, request);
    range = (struct krait_range){ range.from_ns - serving->origin_ns, range.to_ns - serving->origin_ns };
    uint64_t others = 0;
    int rc = 0;
    krait_buf_char(out, '{');
    krait_json_key_open(out, "marks", '[');
    for (uint32_t i = 0; i < serving->trace->track_count && !rc; i++) {
        marks.track = i;
        if (serving->trace->tracks[i].kind == KRAIT_TRACK_INSTANTS &&
            krait_serving_takes_track(serving, request, i))
            rc = krait_view_each(serving->view, i, range, put_mark, &marks);
    }
    krait_buf_char(out, ']');
    rc = rc ? rc : count_others(serving, request, range, &others);
    krait_json_key_u64(out, "more", marks.more);
    krait_json_key_u64(out, "others", others);
    krait_buf_str(out, "}\n");
    return rc ? krait_err_set(err, rc, "the index is still being built") : 0;
}
