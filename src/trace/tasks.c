/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracks of tasks. All that a walk is asked for of a process comes from one pass over each of its threads.
 */
#include "trace/tasks.h"

#include "base/array.h"
#include "event/payload.h"
#include "trace/thread_events.h"

#include <string.h>

const char *const krait_task_state_names[KRAIT_TASK_STATES] = {
    [KRAIT_TASK_RUNNING] = "running", [KRAIT_TASK_READY] = "ready", [KRAIT_TASK_TIMER] = "timer",
    [KRAIT_TASK_LOCK] = "lock",       [KRAIT_TASK_QUEUE] = "queue", [KRAIT_TASK_SOCKET] = "socket",
    [KRAIT_TASK_CHILD] = "child",     [KRAIT_TASK_TASK] = "task",   [KRAIT_TASK_FUTURE] = "future",
};

/* Modules whose coroutines wait for one kind of thing; `name`: one function of the module alone. The first row that
 * matches counts. Source: CPython's Lib/asyncio, trio/_core, trio/_*.py and anyio/_backends. */
static const struct {
    const char *module, *name;
    enum krait_task_state state;
} waits[] = {
    { "asyncio.tasks", "sleep", KRAIT_TASK_TIMER },
    { "asyncio.tasks", NULL, KRAIT_TASK_TASK }, /* wait, wait_for, gather, shield ... */
    { "asyncio.locks", NULL, KRAIT_TASK_LOCK },
    { "asyncio.queues", NULL, KRAIT_TASK_QUEUE },
    { "asyncio.streams", NULL, KRAIT_TASK_SOCKET },
    { "asyncio.selector_events", NULL, KRAIT_TASK_SOCKET },
    { "asyncio.base_subprocess", NULL, KRAIT_TASK_CHILD },
    { "asyncio.subprocess", NULL, KRAIT_TASK_CHILD },
    { "asyncio.taskgroups", NULL, KRAIT_TASK_TASK },
    { "trio._timeouts", NULL, KRAIT_TASK_TIMER },
    { "trio._core._parking_lot", NULL, KRAIT_TASK_LOCK },
    { "trio._sync", NULL, KRAIT_TASK_LOCK },
    { "trio._channel", NULL, KRAIT_TASK_QUEUE },
    { "trio._core._io_epoll", NULL, KRAIT_TASK_SOCKET },
    { "trio._core._run", NULL, KRAIT_TASK_TASK },    /* a nursery, for its tasks */
    { "trio._core._traps", NULL, KRAIT_TASK_READY }, /* a checkpoint */
    { "anyio._backends._asyncio", "Lock.acquire", KRAIT_TASK_LOCK },
    { "anyio._backends._asyncio", "Semaphore.acquire", KRAIT_TASK_LOCK },
    { "anyio._backends._asyncio", "TaskGroup.__aexit__", KRAIT_TASK_TASK },
};

/* What a coroutine waits for. */
static enum krait_task_state waits_for(const struct krait_func *func)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(waits); i++) {
        if (strcmp(waits[i].module, func->module) == 0 &&
            (!waits[i].name || strcmp(waits[i].name, func->name) == 0))
            return waits[i].state;
    }
    return KRAIT_TASK_FUTURE;
}

bool krait_task_has_name(const struct krait_task *task)
{
    static const char prefix[] = "Task-";
    const char *number = task->name + sizeof(prefix) - 1;
    bool is_numbered = strncmp(task->name, prefix, sizeof(prefix) - 1) == 0 && *number &&
                       !number[strspn(number, "0123456789")];
    return !is_numbered && strcmp(task->name, "?") != 0;
}

const char *krait_task_label(struct krait_trace *trace, const struct krait_task *task)
{
    const char *func = task->func == KRAIT_NO_ID ? "" : trace->funcs[task->func].name;
    bool has_name = krait_task_has_name(task);
    if (*func && strcmp(task->name, "?") == 0)
        return krait_arena_strdup(&trace->impl->arena, func);
    return krait_arena_fmt(&trace->impl->arena, "%s%s%s", has_name ? task->name : func, *func ? " " : "",
                           has_name ? func : task->name);
}

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
    bool is_known;    /* it has a state */
    int64_t whom;     /* the task that it waits for, or that woke it */
    uint64_t last_ns; /* to where its states were handed out */
    struct batch batch;
};

struct pass {
    const struct krait_trace *trace;
    const struct krait_image *image;
    const struct krait_walking *walking;
    struct now *now;          /* by index in trace->tasks */
    struct krait_map waiting; /* what is waited for to the index of who waits, + 1 */
    uint32_t running;         /* the task whose step the thread is in; KRAIT_NO_ID: none */
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

/* The task's state is over, as far as it lies in the range. */
static int end_state(struct pass *pass, struct now *now, uint64_t t_ns)
{
    const struct krait_range *range = &pass->walking->range;
    uint64_t from_ns = KRAIT_MAX(KRAIT_MAX(now->since_ns, range->from_ns), now->last_ns);
    uint64_t to_ns = KRAIT_MIN(t_ns, range->to_ns);
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
    now->whom = whom == KRAIT_NO_ID ? 0 : pass->trace->tasks[whom].id;
    now->is_known = true;
    return rc;
}

/* -- events -- */

/* The index of a task, or KRAIT_NO_ID: nothing defines it. */
static uint32_t find_task(const struct pass *pass, uint64_t id)
{
    const uint64_t *index = krait_map_get(&pass->image->tasks, id);
    return index ? (uint32_t)*index : KRAIT_NO_ID;
}

/* Futures' addresses are even; tasks' ids are made odd. */
static uint64_t key_of_task(uint64_t id)
{
    return id << 1 | 1;
}

static int wait_for(struct pass *pass, uint32_t task, uint64_t key)
{
    return krait_map_put(&pass->waiting, key, (uint64_t)task + 1);
}

static int wake(struct pass *pass, uint64_t key, uint64_t t_ns, uint32_t by)
{
    uint64_t *waiter = krait_map_get(&pass->waiting, key);
    uint32_t task = waiter && *waiter ? (uint32_t)(*waiter - 1) : KRAIT_NO_ID;
    if (task == KRAIT_NO_ID)
        return 0;
    *waiter = 0;
    const struct now *now = &pass->now[task];
    bool is_waiting = now->is_known && now->state != KRAIT_TASK_RUNNING && now->state != KRAIT_TASK_READY;
    return is_waiting ? go_to(pass, task, t_ns, KRAIT_TASK_READY, by) : 0;
}

static enum krait_task_state state_at(const struct pass *pass, uint32_t code)
{
    uint32_t func = code < pass->image->code_count ? pass->image->code_func[code] : KRAIT_NO_ID;
    return func == KRAIT_NO_ID ? KRAIT_TASK_FUTURE : waits_for(&pass->trace->funcs[func]);
}

static int leave(struct pass *pass, const struct krait_payload_task_leave *event, uint32_t task,
                 uint64_t t_ns)
{
    int rc = 0;
    switch (event->reason) {
    case KRAIT_task_leave_reason_future:
        rc = go_to(pass, task, t_ns, state_at(pass, event->at), KRAIT_NO_ID);
        return rc ? rc : wait_for(pass, task, event->on);
    case KRAIT_task_leave_reason_task:
        rc = go_to(pass, task, t_ns, KRAIT_TASK_TASK, find_task(pass, event->on));
        return rc ? rc : wait_for(pass, task, key_of_task(event->on));
    case KRAIT_task_leave_reason_yielded:
        return go_to(pass, task, t_ns, KRAIT_TASK_READY, KRAIT_NO_ID);
    default: /* it has ended */
        rc = end_state(pass, &pass->now[task], t_ns);
        return rc ? rc : wake(pass, key_of_task(event->task), t_ns, task);
    }
}

static int on_run(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_run run;
    uint32_t task = krait_read_task_run(payload, &run) ? find_task(pass, run.task) : KRAIT_NO_ID;
    pass->running = task;
    return task == KRAIT_NO_ID ? 0 : go_to(pass, task, t_ns, KRAIT_TASK_RUNNING, KRAIT_NO_ID);
}

static int on_leave(struct pass *pass, uint64_t t_ns, struct krait_cursor *payload)
{
    struct krait_payload_task_leave event;
    uint32_t task = krait_read_task_leave(payload, &event) ? find_task(pass, event.task) : KRAIT_NO_ID;
    int rc = task == KRAIT_NO_ID ? 0 : leave(pass, &event, task, t_ns);
    pass->running = KRAIT_NO_ID;
    return rc;
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct pass *pass = ctx;
    struct krait_payload_task_wake event;
    if (t_ns >= pass->walking->range.to_ns)
        return -ERANGE;
    if (id == KRAIT_EVENT_task_run)
        return on_run(pass, t_ns, &payload);
    if (id == KRAIT_EVENT_task_leave)
        return on_leave(pass, t_ns, &payload);
    return krait_read_task_wake(&payload, &event) ? wake(pass, event.on, t_ns, pass->running) : 0;
}

/* -- the importer -- */

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

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
    struct krait_thread_events events = { .fn = on_event, .ctx = pass };
    int rc = 0;
    krait_thread_events_want(&events, "task:");
    for (uint32_t i = 0; i < trace->thread_count && !rc; i++) {
        if (trace->threads[i].process != process || !krait_image_of(trace, i))
            continue;
        pass->image = krait_image_of(trace, i);
        pass->running = KRAIT_NO_ID;
        rc = krait_thread_events_read(&events, trace, i, 0, &damage);
        rc = rc == -ERANGE ? 0 : rc;
    }
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
    krait_map_done(&pass.waiting);
    free(pass.now);
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    return walk_tracks(trace, &track, 1, walking);
}

const struct krait_importer krait_importer_krait_tasks = { .takes = takes,
                                                           .kinds = 1 << KRAIT_TRACK_STATES,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track,
                                                           .walk_many = walk_tracks };
