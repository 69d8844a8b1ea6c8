/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/why.h"

#include "base/array.h"

#include <string.h>

struct build {
    struct krait_why *why;
    const struct krait_why_options *options;
    uint32_t thread;
    uint32_t open; /* activations of what is asked for */
    struct krait_why_call call;
    struct krait_wall_track track; /* without a wall none */
    struct krait_wall_cursor at;
    uint64_t before[KRAIT_WALL_PARTS]; /* what the thread had done when the call began */
};

/* -- the slowest: a heap with the fastest of them on top -- */

static uint64_t took(const struct krait_why_call *call)
{
    return call->end_ns - call->begin_ns;
}

static void swap(struct krait_why_call *a, struct krait_why_call *b)
{
    struct krait_why_call c = *a;
    *a = *b;
    *b = c;
}

static void sift_up(struct krait_why_call *calls, uint32_t i)
{
    for (; i && took(&calls[i]) < took(&calls[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&calls[i], &calls[(i - 1) / 2]);
}

static void sift_down(struct krait_why_call *calls, uint32_t count)
{
    for (uint32_t i = 0, least = 0;; i = least) {
        for (uint32_t child = 2 * i + 1; child < count && child <= 2 * i + 2; child++)
            least = took(&calls[child]) < took(&calls[least]) ? child : least;
        if (least == i)
            return;
        swap(&calls[i], &calls[least]);
    }
}

static int add_call(struct krait_why *why, const struct krait_why_call *call, uint32_t limit)
{
    if (limit && why->count == limit) {
        if (took(call) > took(&why->slowest[0])) {
            why->slowest[0] = *call;
            sift_down(why->slowest, why->count);
        }
        return 0;
    }
    if (!KRAIT_GROW(why->slowest, why->cap, why->count + 1))
        return -ENOMEM;
    why->slowest[why->count] = *call;
    sift_up(why->slowest, why->count++);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct krait_why_call *x = a, *y = b;
    if (took(x) != took(y))
        return took(x) > took(y) ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int by_thread(const void *a, const void *b)
{
    const struct krait_why_call *x = a, *y = b;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static void sort_calls(struct krait_why *why, int (*compare)(const void *a, const void *b))
{
    if (why->count)
        qsort(why->slowest, why->count, sizeof(*why->slowest), compare);
}

/* -- the calls -- */

static void go(struct build *b, uint64_t t_ns)
{
    uint64_t ignored[KRAIT_WALL_PARTS] = { 0 };
    if (b->track.items)
        krait_wall_go(&b->at, t_ns, ignored);
}

static void begin(struct build *b, const struct krait_call_batch *ops, uint32_t i)
{
    uint64_t t_ns = ops->t_ns[i];
    if (b->open++)
        return;
    b->why->resumed |= ops->kind[i] == KRAIT_OP_RESUME || ops->kind[i] == KRAIT_OP_THROW;
    go(b, t_ns);
    memcpy(b->before, b->at.ns, sizeof(b->before));
    b->call = (struct krait_why_call){
        .thread = b->thread, .func = ops->func[i], .begin_ns = t_ns, .is_cut = krait_op_is_cut(ops, i)
    };
}

static int end(struct build *b, const struct krait_call_batch *ops, uint32_t i)
{
    uint64_t t_ns = ops->t_ns[i];
    if (--b->open)
        return 0;
    b->call.is_cut |= krait_op_is_cut(ops, i);
    go(b, t_ns);
    b->call.end_ns = t_ns;
    b->why->runs++;
    b->why->total_ns += took(&b->call);
    for (unsigned part = 0; part < KRAIT_WALL_PARTS; part++)
        b->call.wall_ns[part] = b->at.ns[part] - b->before[part];
    krait_wall_gather(b->call.wall_ns);
    for (unsigned part = 0; part < KRAIT_WALL_PARTS; part++)
        b->why->wall_ns[part] += b->call.wall_ns[part];
    return add_call(b->why, &b->call, b->options->limit);
}

static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct build *b = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        if (!b->options->meant[ops->func[i]])
            continue;
        if (krait_op_is_end(ops->kind[i]))
            rc = end(b, ops, i);
        else
            begin(b, ops, i);
    }
    return rc;
}

static int start_thread(struct build *b, uint32_t thread)
{
    b->thread = thread;
    krait_wall_track_done(&b->track);
    int rc = b->options->wall ? krait_wall_track_new(&b->track, b->options->wall, thread) : 0;
    if (!rc && b->track.items)
        krait_wall_begin(&b->at, &b->track);
    return rc;
}

static int find_calls(struct build *b, const struct krait_trace *trace)
{
    int rc = 0;
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++) {
        if (b->options->take_thread && !b->options->take_thread(b->options->ctx, trace, i))
            continue;
        rc = start_thread(b, i);
        rc = rc ? rc
                : krait_ranges_walk(trace, i, b->options->range, b->options->ranges, on_ops, b,
                                    b->why->damage, sizeof(b->why->damage));
    }
    return rc;
}

/* -- what a call did -- */

/* Rows of one kind by what they are like, so that a call with many of them takes no longer for each. */
struct adding {
    struct krait_why_rows *rows;
    const struct krait_wall_interval *over; /* of waits: where one is over */
    const struct krait_wall *wall;          /* and whose they are */
    struct krait_map index;
};

static void adding_done(struct adding *adding)
{
    krait_map_done(&adding->index);
}

_Static_assert(KRAIT_WALL_PARTS <= 1 << 4, "a part has four bits");

/* What rows are alike in. A trace has fewer than 2^27 system calls, each of which is a class of its metadata. */
static uint64_t key_of(const struct krait_why_row *row)
{
    return (uint64_t)row->by << 32 | row->call << 5 | (uint32_t)row->part << 1 | row->preempted;
}

static struct krait_why_row *row_like(struct adding *adding, const struct krait_why_row *like)
{
    struct krait_why_rows *rows = adding->rows;
    const uint64_t *found = krait_map_get(&adding->index, key_of(like));
    if (found)
        return &rows->items[*found];
    if (!KRAIT_GROW(rows->items, rows->cap, rows->count + 1) ||
        krait_map_put(&adding->index, key_of(like), rows->count))
        return NULL;
    rows->items[rows->count] = *like;
    return &rows->items[rows->count++];
}

/* `like` with the time that it took: one more. */
static int add_row(struct adding *adding, struct krait_why_row like, uint64_t ns)
{
    struct krait_why_row *row = row_like(adding, &like);
    if (!row)
        return -ENOMEM;
    row->count++;
    row->ns += ns;
    row->longest_ns = KRAIT_MAX(row->longest_ns, ns);
    return 0;
}

static uint64_t part_of(const struct krait_wall_interval *at, const struct krait_why_call *call)
{
    return KRAIT_MIN(at[1].begin_ns, call->end_ns) - KRAIT_MAX(at->begin_ns, call->begin_ns);
}

static bool is_over(const struct krait_wall_interval *at)
{
    return at->state == KRAIT_WALL_ON_CPU || at->state == KRAIT_WALL_RUNNABLE ||
           at->state == KRAIT_WALL_THROTTLED || at->state == KRAIT_WALL_UNKNOWN;
}

/* Who is to thank for a wait's end, or to blame for it. `over` is where the wait before was over: what is
 * one wait in the kernel may be many here. */
static uint32_t cause_of(const struct krait_wall_interval *at, const struct krait_wall_interval **over)
{
    if (at->state == KRAIT_WALL_GIL)
        return at->by;
    for (*over = KRAIT_MAX(*over, at); !is_over(*over);)
        ++*over;
    return (*over)->state == KRAIT_WALL_RUNNABLE ? (*over)->by : 0;
}

/* A row for each who had the CPU in the part of the wait that lies in the call. */
static int add_ready(struct adding *waits, const struct krait_why_call *call,
                     const struct krait_wall_interval *at)
{
    KRAIT_CLEANUP(krait_competitors_done) struct krait_competitors had = { 0 };
    struct krait_why_row like = {
        .state = at->state, .part = at->part, .preempted = at->preempted, .call = at->call
    };
    const struct krait_krun *runs = krait_wall_had(waits->wall, at);
    int64_t from_ns = (int64_t)KRAIT_MAX(at->begin_ns, call->begin_ns);
    int rc = 0;
    if (!krait_competitors_add(&had, runs, at->had_count, from_ns, from_ns + (int64_t)part_of(at, call)))
        return -ENOMEM;
    for (uint32_t i = 0; i < had.count && !rc; i++) {
        like.by = had.items[i].by;
        rc = add_row(waits, like, had.items[i].ns);
    }
    like.by = at->preempted && at->by ? at->by : KRAIT_RUN_UNKNOWN;
    return rc || had.count ? rc : add_row(waits, like, part_of(at, call));
}

/* Nobody ends that but its cgroup's clock. */
static int add_throttled(struct adding *waits, const struct krait_why_call *call,
                         const struct krait_wall_interval *at)
{
    return add_row(waits, (struct krait_why_row){ .state = at->state, .part = at->part, .call = at->call },
                   part_of(at, call));
}

static int add_wait(struct adding *waits, const struct krait_why_call *call,
                    const struct krait_wall_interval *at)
{
    if (at->state == KRAIT_WALL_ON_CPU || at->state == KRAIT_WALL_UNKNOWN)
        return 0;
    if (at->state == KRAIT_WALL_RUNNABLE)
        return add_ready(waits, call, at);
    if (at->state == KRAIT_WALL_THROTTLED)
        return add_throttled(waits, call, at);
    struct krait_why_row like = {
        .state = at->state, .part = at->part, .call = at->call, .by = cause_of(at, &waits->over)
    };
    return add_row(waits, like, part_of(at, call));
}

/* A system call is all intervals in it that follow each other: in between is always some time outside. */
static int add_calls(struct adding *calls, const struct krait_why_call *call,
                     const struct krait_wall_interval *at)
{
    int rc = 0;
    while (!rc && at->begin_ns < call->end_ns) {
        uint32_t id = at->call;
        uint64_t ns = 0;
        for (; at->begin_ns < call->end_ns && at->call == id; at++)
            ns += part_of(at, call);
        if (id != KRAIT_NO_ID)
            rc = add_row(calls, (struct krait_why_row){ .call = id }, ns);
    }
    return rc;
}

static int by_ns(const void *a, const void *b)
{
    const struct krait_why_row *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    if (x->call != y->call)
        return x->call < y->call ? -1 : 1;
    return (x->by > y->by) - (x->by < y->by);
}

static void sort_rows(struct krait_why_rows *rows)
{
    if (rows->count)
        qsort(rows->items, rows->count, sizeof(*rows->items), by_ns);
}

static int explain(struct krait_why_call *call, const struct krait_wall *wall,
                   const struct krait_wall_track *track)
{
    const struct krait_wall_interval *first = krait_wall_at(track, call->begin_ns);
    KRAIT_CLEANUP(adding_done) struct adding calls = { .rows = &call->calls };
    KRAIT_CLEANUP(adding_done) struct adding waits = { .rows = &call->waits, .over = first, .wall = wall };
    int rc = add_calls(&calls, call, first);
    for (const struct krait_wall_interval *at = first; !rc && at->begin_ns < call->end_ns; at++)
        rc = add_wait(&waits, call, at);
    sort_rows(&call->calls);
    sort_rows(&call->waits);
    return rc;
}

/* Thread by thread: each one's track is made once. */
static int explain_all(struct build *b)
{
    int rc = 0;
    sort_calls(b->why, by_thread);
    for (uint32_t i = 0; i < b->why->count && !rc; i++) {
        struct krait_why_call *call = &b->why->slowest[i];
        if (call->thread != b->thread || !b->track.items)
            rc = start_thread(b, call->thread);
        rc = rc ? rc : explain(call, b->options->wall, &b->track);
    }
    return rc;
}

/* -- making it -- */

int krait_why_new(struct krait_why **out, const struct krait_trace *trace,
                  const struct krait_why_options *options)
{
    struct build b = { .why = calloc(1, sizeof(*b.why)), .options = options };
    int rc = b.why ? find_calls(&b, trace) : -ENOMEM;
    if (!rc && options->wall)
        rc = explain_all(&b);
    krait_wall_track_done(&b.track);
    if (rc) {
        krait_why_free(b.why);
        return rc;
    }
    sort_calls(b.why, by_time);
    *out = b.why;
    return 0;
}

void krait_why_free(struct krait_why *why)
{
    if (!why)
        return;
    for (uint32_t i = 0; i < why->count; i++) {
        free(why->slowest[i].calls.items);
        free(why->slowest[i].waits.items);
    }
    free(why->slowest);
    free(why);
}
