/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracks of tasks. All that a walk is asked for of a process comes from one pass over each of its threads; where
 * several run tasks, one before that finds those that run the same task.
 */
#include "trace/tasks.h"

#include "base/array.h"
#include "event/steps.h"
#include "event/waits.h"
#include "trace/task_waits.h"
#include "trace/thread_events.h"

#include <string.h>

const char *const krait_task_state_names[KRAIT_TASK_STATES] = {
    [KRAIT_TASK_RUNNING] = "running", [KRAIT_TASK_READY] = "ready", [KRAIT_TASK_TIMER] = "timer",
    [KRAIT_TASK_LOCK] = "lock",       [KRAIT_TASK_QUEUE] = "queue", [KRAIT_TASK_SOCKET] = "socket",
    [KRAIT_TASK_CHILD] = "child",     [KRAIT_TASK_TASK] = "task",   [KRAIT_TASK_FUTURE] = "future",
    [KRAIT_TASK_SWITCH] = "switch",
};

/* -- states that are over, in batches by track -- */

enum { BATCH = 256 };

struct batch {
    uint32_t n, cap;
    uint64_t *t_ns, *end_ns;
    uint32_t *name;
    int64_t *value;
};

/* What is known of a task on the way. */
struct now {
    const struct krait_track *track; /* NULL: nobody asked for it */
    uint64_t since_ns;
    enum krait_task_state state;
    bool is_known; /* it has a state */
    /* The task that it waits for, or that woke it; of a greenlet that runs, that switched to it. */
    int64_t whom;
    uint64_t last_ns; /* to where its states were handed out */
    uint32_t c;       /* of a greenlet: the code of the C function that it switched in; 0: none */
    uint32_t thread;  /* that ran it last */
    struct krait_payload_task_leave left;   /* how its last step ended; `at` tells the state, be it of C */
    struct krait_payload_task_await awaits; /* of a greenlet that waits for others; else all 0 */
    struct batch batch;
};

/* Calls that the thread has begun since it switched greenlets, the innermost last; the outermost may be missing. */
enum { CALLS = 64 };

struct calls {
    uint32_t codes[CALLS]; /* of C functions; 0: of Python */
    uint32_t depth;
};

/* A thread on the way. */
struct strand {
    uint32_t thread;
    const struct krait_image *image;
    const struct krait_thread_file *file;
    struct calls calls;          /* once there are greenlets */
    struct krait_steps now_in;   /* the thread is in */
    struct krait_steps doubtful; /* ... was in when events were lost */
    struct {
        uint32_t from, to; /* ids; 0: no greenlet has just switched to another */
    } switched;
    uint64_t lost_ns;     /* after this time */
    uint64_t stated_ns;   /* when the thread's stack was stated last; its steps are stated at the same time */
    uint32_t next_packet; /* to look at for losses */
};

struct pass {
    const struct krait_trace *trace;
    const struct krait_process *process;
    struct krait_range range; /* in a part that krait cut made, without the moment before it */
    const struct krait_walking *walking;
    struct strand *at;        /* whose events come */
    struct strand alone;      /* ... where threads come one after the other */
    struct now *now;          /* by index in trace->tasks */
    struct krait_waits waits; /* by index in trace->tasks */
    struct krait_thread_events events;
    uint32_t names[KRAIT_TASK_STATES];
};

static void batch_done(struct batch *batch)
{
    free(batch->t_ns);
    free(batch->end_ns);
    free(batch->name);
    free(batch->value);
}

static bool batch_has_room(struct batch *batch)
{
    uint32_t caps[] = { batch->cap, batch->cap, batch->cap, batch->cap };
    uint32_t need = batch->n + 1;
    bool has_room = KRAIT_GROW(batch->t_ns, caps[0], need) && KRAIT_GROW(batch->end_ns, caps[1], need) &&
                    KRAIT_GROW(batch->name, caps[2], need) && KRAIT_GROW(batch->value, caps[3], need);
    batch->cap = KRAIT_MIN(KRAIT_MIN(caps[0], caps[1]), KRAIT_MIN(caps[2], caps[3]));
    return has_room;
}

static int flush(struct pass *pass, struct now *now)
{
    struct batch *batch = &now->batch;
    const struct krait_batch out = { .n = batch->n,
                                     .t_ns = batch->t_ns,
                                     .end_ns = batch->end_ns,
                                     .name = batch->name,
                                     .value = batch->value };
    batch->n = 0;
    return out.n ? pass->walking->batch(pass->walking->ctx, now->track, &out) : 0;
}

/* Where the recording is switched off, or what it records changes, the recorder forgets all tasks. */
static uint64_t gap_after(const struct pass *pass, uint64_t t_ns)
{
    const struct krait_process *process = pass->process;
    const struct krait_range *gaps = process->unrecorded;
    size_t next = KRAIT_PARTITION_POINT(i, process->unrecorded_count, gaps[i].from_ns < t_ns);
    return next < process->unrecorded_count ? gaps[next].from_ns : UINT64_MAX;
}

/* The task's state is over, as far as it lies in the range. */
static int end_state(struct pass *pass, struct now *now, uint64_t t_ns)
{
    const struct krait_range *range = &pass->range;
    uint64_t from_ns = KRAIT_MAX(KRAIT_MAX(now->since_ns, range->from_ns), now->last_ns);
    uint64_t to_ns = KRAIT_MIN(KRAIT_MIN(t_ns, range->to_ns), gap_after(pass, now->since_ns));
    bool is_known = now->is_known;
    now->is_known = false;
    if (!is_known || !now->track || from_ns >= to_ns)
        return 0;
    struct batch *batch = &now->batch;
    if (!batch_has_room(batch))
        return -ENOMEM;
    batch->t_ns[batch->n] = from_ns;
    batch->end_ns[batch->n] = now->last_ns = to_ns;
    batch->name[batch->n] = pass->names[now->state];
    batch->value[batch->n++] = now->whom;
    return batch->n == BATCH ? flush(pass, now) : 0;
}

static int go_to(struct pass *pass, uint32_t task, uint64_t t_ns, enum krait_task_state state, uint32_t whom)
{
    struct now *now = &pass->now[task];
    int rc = end_state(pass, now, t_ns);
    now->since_ns = t_ns;
    now->state = state;
    now->awaits = (struct krait_payload_task_await){ 0 };
    now->whom = whom == KRAIT_NO_ID ? 0 : pass->trace->tasks[whom].id;
    now->is_known = true;
    return rc;
}

/* -- events -- */

/* The index of a task, or KRAIT_NO_ID: nothing defines it. */
static uint32_t find_task(const struct pass *pass, uint64_t id)
{
    const uint64_t *index = krait_map_get(&pass->at->image->tasks, id);
    return index ? (uint32_t)*index : KRAIT_NO_ID;
}

/* A task that waits is ready: `by` has ended its wait. */
static int end_wait(struct pass *pass, uint32_t task, uint64_t t_ns, uint32_t by)
{
    const struct now *now = &pass->now[task];
    bool waits = now->is_known && now->state != KRAIT_TASK_RUNNING && now->state != KRAIT_TASK_READY;
    krait_waits_end(&pass->waits, task);
    return waits ? go_to(pass, task, t_ns, KRAIT_TASK_READY, by) : 0;
}

/* All that wait for it; not for another future that had the address before. */
static int wake(struct pass *pass, uint64_t key, uint64_t t_ns, uint32_t by)
{
    int rc = 0;
    for (uint32_t task = krait_waits_last(&pass->waits, key), older; task != KRAIT_NO_ID && !rc;
         task = older) {
        const struct now *now = &pass->now[task];
        older = krait_waits_older(&pass->waits, task);
        rc = now->is_known && now->since_ns > t_ns ? 0 : end_wait(pass, task, t_ns, by);
    }
    return rc;
}

/* NULL: it is not known. */
static const struct krait_func *func_of(const struct pass *pass, uint32_t code)
{
    uint32_t func = code < pass->at->image->code_count ? pass->at->image->code_func[code] : KRAIT_NO_ID;
    return func == KRAIT_NO_ID ? NULL : &pass->trace->funcs[func];
}

/* The C function that the innermost Python function has called; 0: none, or it is not known. */
static uint32_t c_function(const struct pass *pass)
{
    const struct calls *calls = &pass->at->calls;
    return calls->depth ? calls->codes[calls->depth - 1] : 0;
}

/* From the first greenlet on calls are looked at: which C function it has called tells what it waits for. */
static void want_calls(struct krait_thread_events *events)
{
    static const char *const prefixes[] = { "python:", "c:" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(prefixes) && !events->wanted[KRAIT_EVENT_c_call]; i++)
        krait_thread_events_want(events, prefixes[i]);
    events->wanted[KRAIT_EVENT_c_call] = true;
}

/* In a part that krait cut made the event itself says the C function. */
static enum krait_task_state switched(struct pass *pass, const struct krait_payload_task_leave *event,
                                      struct now *now)
{
    const struct krait_func *at = func_of(pass, event->at);
    want_calls(&pass->events);
    now->c = at && at->kind == KRAIT_FUNC_C ? event->at : c_function(pass);
    enum krait_task_state by_python = krait_greenlet_waits(at, NULL);
    enum krait_task_state state = now->c ? krait_greenlet_waits(at, func_of(pass, now->c)) : by_python;
    now->left.at = state == by_python ? event->at : now->c;
    return state;
}

static int leave(struct pass *pass, const struct krait_payload_task_leave *event, uint32_t task,
                 uint64_t t_ns)
{
    int rc = 0;
    krait_waits_end(&pass->waits, task);
    pass->now[task].thread = pass->at->thread;
    pass->now[task].left = *event;
    if (event->reason == KRAIT_task_leave_reason_switched) {
        pass->at->switched.from = event->task;
        pass->at->switched.to = (uint32_t)event->on;
    }
    switch (event->reason) {
    case KRAIT_task_leave_reason_future:
        rc = go_to(pass, task, t_ns, krait_task_waits(func_of(pass, event->at)), KRAIT_NO_ID);
        return rc ? rc : krait_waits_begin(&pass->waits, task, event->on);
    case KRAIT_task_leave_reason_tasks:
        rc = go_to(pass, task, t_ns, KRAIT_TASK_TASK, KRAIT_NO_ID);
        return rc ? rc : krait_waits_begin(&pass->waits, task, event->on);
    case KRAIT_task_leave_reason_task:
        rc = go_to(pass, task, t_ns, KRAIT_TASK_TASK, find_task(pass, event->on));
        return rc ? rc : krait_waits_begin(&pass->waits, task, krait_awaited_task(event->on));
    case KRAIT_task_leave_reason_yielded:
        return go_to(pass, task, t_ns, KRAIT_TASK_READY, KRAIT_NO_ID);
    case KRAIT_task_leave_reason_switched:
        return go_to(pass, task, t_ns, switched(pass, event, &pass->now[task]), KRAIT_NO_ID);
    case KRAIT_task_leave_reason_unseen:
        return end_state(pass, &pass->now[task], t_ns);
    default: /* it has ended */
        rc = end_state(pass, &pass->now[task], t_ns);
        return rc ? rc : wake(pass, krait_awaited_task(event->task), t_ns, task);
    }
}

/* -- steps -- */

/* Takes one step off that the thread was in before a loss, and is in still. */
static bool confirm_step(struct krait_steps *doubtful, uint32_t task)
{
    uint32_t kept = 0, had = doubtful->depth;
    for (uint32_t i = 0; i < had; i++) {
        if (doubtful->tasks[i] != task)
            doubtful->tasks[kept++] = doubtful->tasks[i];
    }
    doubtful->depth = kept;
    return kept < had;
}

/* Steps that were not stated after a loss have ended in it. */
static int settle_doubt(struct pass *pass, uint64_t t_ns)
{
    struct krait_steps *doubtful = &pass->at->doubtful;
    int rc = 0;
    for (uint32_t i = 0; i < doubtful->depth && t_ns > pass->at->stated_ns && !rc; i++) {
        struct now *now = &pass->now[doubtful->tasks[i]];
        rc = now->state == KRAIT_TASK_RUNNING ? end_state(pass, now, pass->at->lost_ns) : 0;
    }
    doubtful->depth = t_ns > pass->at->stated_ns ? 0 : doubtful->depth;
    return rc;
}

static void look_for_loss(struct pass *pass, uint64_t t_ns)
{
    uint64_t after_ns;
    if (!krait_thread_file_lost(pass->at->file, &pass->at->next_packet, t_ns, &after_ns))
        return;
    pass->at->lost_ns = pass->at->doubtful.depth ? pass->at->lost_ns : after_ns;
    for (uint32_t i = 0; i < pass->at->now_in.depth; i++)
        krait_steps_push(&pass->at->doubtful, pass->at->now_in.tasks[i]);
    pass->at->now_in.depth = 0;
}

static void begin_call(struct calls *calls, uint32_t code)
{
    if (calls->depth == CALLS) {
        memmove(calls->codes, &calls->codes[CALLS / 2], CALLS / 2 * sizeof(calls->codes[0]));
        calls->depth = CALLS / 2;
    }
    calls->codes[calls->depth++] = code;
}

/* Ends of calls that are missing here are ignored. */
static void end_call(struct calls *calls, bool is_c)
{
    while (!is_c && calls->depth && calls->codes[calls->depth - 1])
        calls->depth--;
    if (calls->depth && (calls->codes[calls->depth - 1] != 0) == is_c)
        calls->depth--;
}

static bool is_hub(const struct pass *pass, uint32_t task)
{
    return task != KRAIT_NO_ID && krait_task_is_hub(pass->trace->tasks[task].name);
}

/* The greenlet that has just switched to a task. gevent's hub only runs what another one, or the kernel, has made ready,
 * and who switches to the hub only waits. */
static uint32_t switcher(const struct pass *pass, uint32_t task)
{
    bool is_after = find_task(pass, pass->at->switched.to) == task && !is_hub(pass, task);
    uint32_t from = is_after ? find_task(pass, pass->at->switched.from) : KRAIT_NO_ID;
    return is_hub(pass, from) ? KRAIT_NO_ID : from;
}

/* ... or whom gevent's hub runs it for, which was told just now. */
static uint32_t runs_for(const struct pass *pass, uint32_t task, uint64_t t_ns)
{
    const struct now *now = &pass->now[task];
    bool is_woken = now->is_known && now->state == KRAIT_TASK_READY && now->since_ns == t_ns;
    return is_woken ? find_task(pass, (uint64_t)now->whom) : switcher(pass, task);
}

static int on_run(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_run run;
    uint32_t task = krait_read_task_run(payload, &run) ? find_task(pass, run.task) : KRAIT_NO_ID;
    if (task == KRAIT_NO_ID)
        return 0;
    const struct now *now = &pass->now[task];
    uint32_t by = runs_for(pass, task, t_ns);
    pass->at->switched.to = 0;
    krait_waits_end(&pass->waits, task);
    bool was_in = confirm_step(&pass->at->doubtful, task), is_in = krait_steps_begin(&pass->at->now_in, task);
    pass->now[task].thread = pass->at->thread;
    if (now->c && !pass->at->calls.depth) /* it goes on in what it called */
        begin_call(&pass->at->calls, now->c);
    if ((was_in || is_in) && now->is_known && now->state == KRAIT_TASK_RUNNING)
        return 0;
    return go_to(pass, task, t_ns, KRAIT_TASK_RUNNING, by);
}

static int on_leave(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_leave event;
    uint32_t task = krait_read_task_leave(payload, &event) ? find_task(pass, event.task) : KRAIT_NO_ID;
    krait_steps_end(&pass->at->now_in, task);
    return task == KRAIT_NO_ID ? 0 : leave(pass, &event, task, t_ns);
}

static int on_wake(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_wake event;
    uint32_t by = krait_steps_top(&pass->at->now_in, KRAIT_NO_ID);
    return krait_read_task_wake(payload, &event) ? wake(pass, event.on, t_ns, by) : 0;
}

static int on_wake_by(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_wake_by event;
    uint32_t task = krait_read_task_wake_by(payload, &event) ? find_task(pass, event.task) : KRAIT_NO_ID;
    uint32_t by = task == KRAIT_NO_ID ? KRAIT_NO_ID : find_task(pass, event.by);
    return task == KRAIT_NO_ID ? 0 : end_wait(pass, task, t_ns, is_hub(pass, by) ? KRAIT_NO_ID : by);
}

/* A greenlet was left just now, in a function that may be any. */
static int on_await(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_await event;
    uint32_t task = krait_read_task_await(payload, &event) ? find_task(pass, event.task) : KRAIT_NO_ID;
    struct now *now = task == KRAIT_NO_ID ? NULL : &pass->now[task];
    if (!now || !now->is_known || now->since_ns != t_ns || now->state == KRAIT_TASK_RUNNING)
        return 0;
    uint32_t on = find_task(pass, event.on);
    now->state = KRAIT_TASK_TASK;
    now->whom = on == KRAIT_NO_ID ? 0 : event.on;
    now->awaits = event;
    return 0;
}

/* An event that is none of tasks'. */
static void on_call(struct pass *pass, uint32_t id, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_c_call call;
    switch (id) {
    case KRAIT_EVENT_c_call:
        begin_call(&pass->at->calls, krait_read_c_call(payload, &call) ? call.code : 0);
        return;
    case KRAIT_EVENT_python_call:
    case KRAIT_EVENT_python_resume:
    case KRAIT_EVENT_python_throw:
        begin_call(&pass->at->calls, 0);
        return;
    case KRAIT_EVENT_c_return:
    case KRAIT_EVENT_c_raise:
    case KRAIT_EVENT_c_raise_of:
        end_call(&pass->at->calls, true);
        return;
    case KRAIT_EVENT_python_stack:
    case KRAIT_EVENT_python_deep_stack:
        pass->at->stated_ns = t_ns;
        pass->at->calls.depth = 0;
        return;
    case KRAIT_EVENT_python_switch:
        want_calls(&pass->events);
        pass->at->calls.depth = 0;
        return;
    case KRAIT_EVENT_python_return:
    case KRAIT_EVENT_python_yield:
    case KRAIT_EVENT_python_unwind:
    case KRAIT_EVENT_python_unwind_of:
        end_call(&pass->at->calls, false);
        return;
    default:
        return;
    }
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct pass *pass = ctx;
    if (t_ns >= pass->range.to_ns)
        return -ERANGE;
    look_for_loss(pass, t_ns);
    static int (*const handlers[KRAIT_EVENT_IDS])(struct pass *, uint64_t, struct krait_cursor *) = {
        [KRAIT_EVENT_task_run] = on_run,     [KRAIT_EVENT_task_leave] = on_leave,
        [KRAIT_EVENT_task_wake] = on_wake,   [KRAIT_EVENT_task_wake_by] = on_wake_by,
        [KRAIT_EVENT_task_await] = on_await,
    };
    if (!handlers[id]) {
        on_call(pass, id, t_ns, &payload);
        return 0;
    }
    int rc = settle_doubt(pass, t_ns);
    return rc ? rc : handlers[id](pass, t_ns, &payload);
}

static bool begin_strand(struct pass *pass, struct strand *strand, uint32_t thread, krait_thread_event_fn *fn,
                         void *ctx)
{
    struct krait_thread_events *events = &pass->events;
    *events = (struct krait_thread_events){ .fn = fn, .ctx = ctx };
    krait_thread_events_want(events, "task:");
    if (!krait_thread_events_may_be(events, pass->trace, thread))
        return false;
    events->wanted[KRAIT_EVENT_python_stack] = events->wanted[KRAIT_EVENT_python_deep_stack] = true;
    events->wanted[KRAIT_EVENT_python_switch] = true;
    *strand = (struct strand){ .thread = thread,
                               .image = krait_image_of(pass->trace, thread),
                               .file = &krait_recordings_of(pass->trace)->files[thread] };
    pass->at = strand;
    return true;
}

static int end_strand(struct pass *pass, struct strand *strand)
{
    pass->at = strand;
    look_for_loss(pass, pass->range.to_ns);
    return settle_doubt(pass, UINT64_MAX);
}

/* What a task does in the range was told before its end. */
static struct krait_range up_to_end(const struct pass *pass)
{
    return (struct krait_range){ 0, pass->range.to_ns };
}

static int read_thread(struct pass *pass, uint32_t thread, struct krait_damage *damage)
{
    if (!begin_strand(pass, &pass->alone, thread, on_event, pass))
        return 0;
    int rc = krait_thread_events_read(&pass->events, pass->trace, thread, up_to_end(pass), damage);
    int ended = end_strand(pass, &pass->alone);
    return rc && rc != -ERANGE ? rc : ended;
}

/* -- tasks that several threads run, one after the other: an event loop that is run in another thread than before. The
 * threads' events are kept, and taken in the order of time. Calls are not: no greenlet goes to another thread. -- */

struct kept {
    uint64_t t_ns;
    uint32_t id, strand, order;
    uint32_t size;
    uint8_t payload[KRAIT_MAX(KRAIT_BYTES_task_leave, KRAIT_BYTES_task_await)];
};

struct together {
    struct krait_range range;
    struct kept *items;
    uint32_t count, cap, strand;
};

static int keep(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct together *together = ctx;
    if (t_ns >= together->range.to_ns)
        return -ERANGE;
    if (!KRAIT_GROW(together->items, together->cap, together->count + 1))
        return -ENOMEM;
    struct kept *kept = &together->items[together->count];
    *kept = (struct kept){ .t_ns = t_ns, .id = id, .strand = together->strand, .order = together->count++ };
    kept->size = (uint32_t)KRAIT_MIN((size_t)(payload.end - payload.at), sizeof(kept->payload));
    memcpy(kept->payload, payload.at, kept->size);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct kept *one = a, *other = b;
    if (one->t_ns != other->t_ns)
        return one->t_ns < other->t_ns ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

static int take_together(struct pass *pass, struct together *together, struct strand *strands)
{
    int rc = 0;
    if (together->count)
        qsort(together->items, together->count, sizeof(*together->items), by_time);
    for (uint32_t i = 0; i < together->count && !rc; i++) {
        const struct kept *kept = &together->items[i];
        pass->at = &strands[kept->strand];
        rc = on_event(pass, kept->id, kept->t_ns,
                      (struct krait_cursor){ kept->payload, kept->payload + kept->size });
    }
    for (uint32_t i = 0; i < together->strand && !rc; i++)
        rc = end_strand(pass, &strands[i]);
    return rc;
}

static int read_together(struct pass *pass, const uint32_t *threads, uint32_t count,
                         struct krait_damage *damage)
{
    struct together together = { .range = pass->range };
    KRAIT_AUTO_FREE struct strand *strands = calloc(count, sizeof(*strands));
    int rc = strands ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++) {
        if (!begin_strand(pass, &strands[together.strand], threads[i], keep, &together))
            continue;
        rc = krait_thread_events_read(&pass->events, pass->trace, threads[i], up_to_end(pass), damage);
        rc = rc == -ERANGE ? 0 : rc;
        together.strand++;
    }
    rc = rc ? rc : take_together(pass, &together, strands);
    pass->at = NULL;
    free(together.items);
    return rc;
}

/* Which thread runs each task; threads count from 0 on. */
struct runners {
    const struct krait_image *image;
    uint64_t to_ns;
    uint32_t *of; /* by task: the thread + 1 */
    struct runner {
        bool runs, shares; /* some task; one that another thread runs, too */
    } * threads;
    uint32_t thread;
    bool some, shared; /* threads that are such */
};

static int note_runner(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct runners *runners = ctx;
    struct krait_payload_task_run run;
    if (t_ns >= runners->to_ns)
        return -ERANGE;
    const uint64_t *task =
        krait_read_task_run(&payload, &run) ? krait_map_get(&runners->image->tasks, run.task) : NULL;
    if (!task)
        return 0;
    uint32_t *of = &runners->of[*task];
    runners->some = runners->threads[runners->thread].runs = true;
    if (*of && *of != runners->thread + 1)
        runners->shared = runners->threads[*of - 1].shares = runners->threads[runners->thread].shares = true;
    *of = runners->thread + 1;
    return 0;
}

/* The first thread is mostly the only one that runs tasks, and then is not read. Returns 0 or -ENOMEM. */
static int find_shared(struct pass *pass, const uint32_t *threads, uint32_t count, struct runners *runners)
{
    KRAIT_AUTO_FREE uint32_t *of = calloc((size_t)pass->trace->task_count + 1, sizeof(*of));
    struct krait_damage ignored = { 0 }; /* the walk that follows tells it */
    int rc = of ? 0 : -ENOMEM;
    runners->of = of;
    for (uint32_t i = count; i-- > 0 && !rc && (i || runners->some);) {
        struct krait_thread_events events = { .fn = note_runner, .ctx = runners };
        events.wanted[KRAIT_EVENT_task_run] = true;
        runners->thread = i;
        runners->image = krait_image_of(pass->trace, threads[i]);
        rc = krait_thread_events_read(&events, pass->trace, threads[i], up_to_end(pass), &ignored);
        rc = rc == -ERANGE ? 0 : rc;
    }
    runners->of = NULL;
    return rc;
}

/* Those that share tasks are read together, with those that may end their waits, but run none. */
static int read_some_together(struct pass *pass, const uint32_t *threads, uint32_t count,
                              const struct runner *runners, struct krait_damage *damage)
{
    KRAIT_AUTO_FREE uint32_t *some = malloc((size_t)count * sizeof(*some));
    uint32_t n = 0;
    for (uint32_t i = 0; some && i < count; i++) {
        if (runners[i].shares || !runners[i].runs)
            some[n++] = threads[i];
    }
    int rc = some ? read_together(pass, some, n, damage) : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = runners[i].runs && !runners[i].shares ? read_thread(pass, threads[i], damage) : 0;
    return rc;
}

static int read_threads(struct pass *pass, const uint32_t *threads, uint32_t count,
                        struct krait_damage *damage)
{
    KRAIT_AUTO_FREE struct runner *each = calloc((size_t)count + 1, sizeof(*each));
    struct runners runners = { .to_ns = pass->range.to_ns, .threads = each };
    int rc = !each ? -ENOMEM : count > 1 ? find_shared(pass, threads, count, &runners) : 0;
    if (rc || runners.shared)
        return rc ? rc : read_some_together(pass, threads, count, each, damage);
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = read_thread(pass, threads[i], damage);
    return rc;
}

/* -- the importer -- */

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    for (uint32_t i = 0; i < trace->task_count; i++) {
        struct krait_track *track = krait_trace_add_track(trace);
        const char *label = track ? krait_task_label(trace, &trace->tasks[i]) : NULL;
        if (!label)
            return -ENOMEM;
        track->kind = KRAIT_TRACK_STATES;
        track->of = KRAIT_OF_TASK;
        track->importer = KRAIT_IMPORTER_krait_tasks;
        track->process = trace->tasks[i].process;
        track->number = trace->tasks[i].id;
        track->key = i;
        track->thread_name = label;
        track->name = "task";
    }
    return 0;
}

/* What is open lasts to where the range, or the process, ends. */
static int end_all(struct pass *pass, uint32_t process)
{
    const struct krait_trace *trace = pass->trace;
    int rc = 0;
    for (uint32_t i = 0; i < trace->task_count && !rc; i++) {
        struct now *now = &pass->now[i];
        if (trace->tasks[i].process != process || !now->track)
            continue;
        rc = end_state(pass, now, trace->processes[process].end_ns);
        rc = rc ? rc : flush(pass, now);
    }
    return rc;
}

static int walk_process(struct pass *pass, uint32_t process)
{
    const struct krait_trace *trace = pass->trace;
    struct krait_damage damage = pass->walking->damage;
    KRAIT_AUTO_FREE uint32_t *threads = malloc(((size_t)trace->thread_count + 1) * sizeof(*threads));
    uint32_t count = 0;
    pass->process = &trace->processes[process];
    pass->range = krait_image_clip(&krait_recordings_of(trace)->images[process], pass->walking->range);
    for (uint32_t i = 0; threads && i < trace->thread_count; i++) {
        if (trace->threads[i].process == process && krait_image_of(trace, i))
            threads[count++] = i;
    }
    int rc = threads ? read_threads(pass, threads, count, &damage) : -ENOMEM;
    krait_waits_done(&pass->waits); /* another process may have the same addresses */
    return rc ? rc : end_all(pass, process);
}

static int walk_processes(struct pass *pass, const struct krait_track *const *tracks, uint32_t count)
{
    KRAIT_AUTO_FREE bool *asked = calloc(pass->trace->process_count + 1, sizeof(*asked));
    int rc = asked ? 0 : -ENOMEM;
    for (int state = 0; state < KRAIT_TASK_STATES && !rc; state++) {
        pass->names[state] = krait_trace_name(pass->trace, krait_task_state_names[state]);
        rc = pass->names[state] == KRAIT_NO_ID ? -ENOMEM : 0;
    }
    for (uint32_t i = 0; i < count && !rc; i++) {
        pass->now[tracks[i]->key].track = tracks[i];
        asked[tracks[i]->process] = true;
    }
    for (uint32_t i = 0; i < pass->trace->process_count && !rc; i++)
        rc = asked[i] ? walk_process(pass, i) : 0;
    return rc;
}

static int walk_tracks(const struct krait_trace *trace, const struct krait_track *const *tracks,
                       uint32_t count, const struct krait_walking *walking)
{
    struct pass pass = { .trace = trace, .walking = walking };
    pass.now = calloc(trace->task_count + 1, sizeof(*pass.now));
    int rc = pass.now ? walk_processes(&pass, tracks, count) : -ENOMEM;
    for (uint32_t i = 0; pass.now && i < trace->task_count; i++)
        batch_done(&pass.now[i].batch);
    krait_waits_done(&pass.waits);
    free(pass.now);
    return rc;
}

/* -- at one time -- */

static int by_begin(const void *a, const void *b)
{
    const struct krait_task_then *one = a, *other = b;
    return one->since_ns < other->since_ns ? -1 : one->since_ns > other->since_ns;
}

static struct krait_task_then then_of(const struct now *now, const struct krait_task *task)
{
    struct krait_task_then then = { .thread = now->thread,
                                    .since_ns = now->since_ns,
                                    .runs = now->state == KRAIT_TASK_RUNNING,
                                    .left = now->left,
                                    .awaits = now->awaits };
    then.left.task = task->id;
    if (now->state == KRAIT_TASK_READY) /* it has been woken */
        then.left.reason = KRAIT_task_leave_reason_yielded;
    return then;
}

int krait_tasks_at(const struct krait_trace *trace, uint32_t process, uint64_t at_ns,
                   struct krait_task_then **then, uint32_t *count)
{
    const struct krait_walking walking = { .range = { 0, at_ns } };
    struct pass pass = { .trace = trace, .walking = &walking };
    KRAIT_AUTO_FREE struct krait_task_then *items = calloc(trace->task_count + 1, sizeof(*items));
    uint32_t n = 0;
    pass.now = calloc(trace->task_count + 1, sizeof(*pass.now));
    int rc = pass.now && items ? walk_process(&pass, process) : -ENOMEM;
    for (uint32_t i = 0; !rc && i < trace->task_count; i++) {
        if (trace->tasks[i].process == process && pass.now[i].is_known)
            items[n++] = then_of(&pass.now[i], &trace->tasks[i]);
    }
    krait_waits_done(&pass.waits);
    free(pass.now);
    if (rc)
        return rc;
    qsort(items, n, sizeof(*items), by_begin);
    *then = items;
    *count = n;
    items = NULL;
    return 0;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    return walk_tracks(trace, &track, 1, walking);
}

const struct krait_importer krait_importer_krait_tasks = { .takes = krait_folder_is_kraits,
                                                           .kinds = 1 << KRAIT_TRACK_STATES,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track,
                                                           .walk_many = walk_tracks };
