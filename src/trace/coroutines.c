/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/coroutines.h"

#include "base/array.h"
#include "event/steps.h"
#include "trace/thread_events.h"

#include <string.h>

/* In place of a call: there is none; or there was more than one at a time, and nobody knows which is meant. */
enum { NONE = KRAIT_NO_ID, MIXED = KRAIT_NO_ID - 1 };

/* A call of a coroutine that has not ended; or a task, whose root is what it awaits. */
struct node {
    uint64_t begin_ns; /* 0: not known */
    uint32_t func;     /* NONE: a task */
    uint32_t awaited_by, awaits;
    uint32_t call; /* 0: the place is free */
    uint32_t task; /* id */
    bool is_open;  /* one of its steps runs */
};

/* An open call or step of any function. */
struct entry {
    uint64_t begin_ns;
    uint32_t func, node, call;
    uint8_t kind; /* enum krait_op_kind */
    bool was_left;
};

/* A call that a switch of greenlets suspends, by krait_call_batch.left. */
struct left {
    uint64_t begin_ns;
    uint32_t age; /* that of struct krait_coroutines; else it is forgotten, or goes on */
    uint32_t node, call;
    uint32_t task; /* id: it is the outermost of a step of that; 0: it is not */
    bool has_begun;
    uint8_t kind; /* of its begin */
};

/* A step of a task: its outermost coroutine is the entry `base`. */
struct task_step {
    uint32_t id, node, base;
    bool has_begun; /* something has begun there: what follows there, an exception was thrown to */
};

/* A recording may have millions. */
struct task_event {
    uint64_t t_ns : 63, is_run : 1;
    uint32_t task;
};

struct krait_coroutines {
    const struct krait_trace *trace;
    const struct krait_image *image;
    struct krait_breaks breaks;
    struct task_event *events;
    uint32_t event_count, event_cap, next;
    struct entry *entries;
    uint32_t count, cap;
    uint32_t pending; /* the entry that has just begun, of a coroutine: a task:run may follow; NONE */
    uint32_t yielded; /* whose step has just ended by a yield; NONE */
    struct task_step steps[KRAIT_STEPS_MAX];
    uint32_t depth;
    struct node *nodes;
    uint32_t node_count, node_cap, next_free, calls;
    struct krait_map node_of_task; /* by id: the index, plus 1; 0: none */
    size_t most_tasks;             /* of krait_map_trim */
    uint32_t next_omit;
    struct left *left;
    uint32_t left_cap, age; /* 0: nothing was left */
    struct krait_steps running;
    bool restates;   /* events are missing before: task:run tells what the thread is in */
    bool has_throws; /* python:throw is told: Python 3.12 and later */
    bool is_blind;   /* the recording was paused, and nothing tells when in this thread */
};

void krait_coroutines_free(struct krait_coroutines *c)
{
    if (!c)
        return;
    krait_map_done(&c->node_of_task);
    free(c->events);
    free(c->entries);
    free(c->nodes);
    free(c->left);
    free(c);
}

static int on_event(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct krait_coroutines *c = ctx;
    struct krait_payload_task_run run = { 0 };
    struct krait_payload_task_leave leave = { 0 };
    bool is_run = id == KRAIT_EVENT_task_run;
    if (!(is_run ? krait_read_task_run(&payload, &run) : krait_read_task_leave(&payload, &leave)))
        return 0;
    if (!KRAIT_GROW(c->events, c->event_cap, c->event_count + 1))
        return -ENOMEM;
    c->events[c->event_count++] =
        (struct task_event){ .t_ns = t_ns, .is_run = is_run, .task = is_run ? run.task : leave.task };
    return 0;
}

static bool was_paused(const struct krait_trace *trace)
{
    bool any = false;
    for (uint32_t i = 0; i < trace->func_count; i++)
        any |= strcmp(trace->funcs[i].name, KRAIT_PAUSE_NAME) == 0;
    return any;
}

static bool tells_throws(const char *runtime)
{
    unsigned minor;
    return sscanf(runtime, "CPython 3.%u", &minor) == 1 && minor >= 12;
}

int krait_coroutines_new(struct krait_coroutines **out, const struct krait_trace *trace, uint32_t thread,
                         struct krait_range range)
{
    struct krait_coroutines *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    struct krait_thread_events events = { .fn = on_event, .ctx = c };
    struct krait_damage ignored = { 0 }; /* who walks the thread is told */
    c->trace = trace;
    c->image = krait_image_of(trace, thread);
    c->pending = c->yielded = c->next_free = NONE;
    c->is_blind = was_paused(trace);
    events.wanted[KRAIT_EVENT_task_run] = events.wanted[KRAIT_EVENT_task_leave] = true;
    int rc = 0;
    if (c->image) {
        c->has_throws = tells_throws(trace->processes[trace->threads[thread].process].runtime);
        c->breaks = krait_breaks_from(trace, thread, range.from_ns);
        rc = krait_thread_events_read(&events, trace, thread, range, &ignored);
    }
    if (rc)
        krait_coroutines_free(c);
    else
        *out = c;
    return rc;
}

bool krait_coroutines_has(const struct krait_coroutines *c, uint32_t place, uint32_t call)
{
    return place < c->node_count && c->nodes[place].call == call;
}

/* -- calls that have not ended -- */

/* NONE: memory is out. */
static uint32_t new_node(struct krait_coroutines *c, struct node node)
{
    uint32_t index = c->next_free;
    if (index == NONE && !KRAIT_GROW(c->nodes, c->node_cap, c->node_count + 1))
        return NONE;
    if (index == NONE)
        index = c->node_count++;
    else
        c->next_free = c->nodes[index].awaits;
    node.call = ++c->calls;
    c->nodes[index] = node;
    return index;
}

static void free_node(struct krait_coroutines *c, uint32_t index)
{
    c->nodes[index] = (struct node){ .awaits = c->next_free };
    c->next_free = index;
}

/* With what it awaits: that has ended before, or is closed with it. */
static void remove_node(struct krait_coroutines *c, uint32_t index)
{
    uint32_t by = c->nodes[index].awaited_by;
    if (c->nodes[by].awaits == index)
        c->nodes[by].awaits = NONE;
    while (index < MIXED) {
        uint32_t next = c->nodes[index].awaits;
        free_node(c, index);
        index = next;
    }
}

/* What awaits nothing, and is not known again where it goes on. */
static void forget_task(struct krait_coroutines *c, uint32_t index)
{
    uint64_t *known = krait_map_get(&c->node_of_task, c->nodes[index].task);
    if (known)
        *known = 0;
    for (uint32_t i = 0; i < c->depth; i++) {
        if (c->steps[i].node == index)
            c->steps[i].node = NONE;
    }
    free_node(c, index);
}

static void forget_all(struct krait_coroutines *c)
{
    c->restates = true;
    if (!c->node_count && c->pending == NONE)
        return;
    krait_map_done(&c->node_of_task);
    c->node_of_task = (struct krait_map){ 0 };
    c->most_tasks = 0;
    c->node_count = c->depth = 0;
    c->next_free = c->pending = c->yielded = NONE;
    for (uint32_t i = 0; i < c->count; i++)
        c->entries[i].node = NONE;
}

/* Where greenlets were switched, what is open behind a break may be another one's. */
static void forget_left(struct krait_coroutines *c)
{
    c->running.depth = 0;
    if (!c->age)
        return;
    c->age++;
    for (uint32_t i = 0; i < c->count; i++) {
        c->entries[i].kind = KRAIT_OP_LIVE;
        c->entries[i].was_left = false;
    }
}

/* What was suspended may have ended since, where something is missing up to a time. */
static void pass_breaks(struct krait_coroutines *c, uint64_t t_ns)
{
    bool is_break = c->image && krait_breaks_pass(&c->breaks, t_ns);
    if (is_break)
        forget_left(c);
    for (; c->image && c->next_omit < c->image->omit_count; c->next_omit++) {
        if (c->image->omits[c->next_omit].t_ns > t_ns)
            break;
        is_break = true;
    }
    if (is_break)
        forget_all(c);
}

/* The call whose step an entry is; NULL: not known. */
static struct node *node_of(const struct krait_coroutines *c, const struct entry *entry)
{
    struct node *node = entry->node < c->node_count ? &c->nodes[entry->node] : NULL;
    return node && node->call == entry->call ? node : NULL;
}

static uint32_t base_func(const struct krait_coroutines *c, uint32_t func)
{
    return c->trace->funcs[func].base;
}

static enum krait_suspends suspends(const struct krait_coroutines *c, uint32_t func)
{
    return c->trace->funcs[func].suspends;
}

/* -- which call it is -- */

static struct task_step *last_step(struct krait_coroutines *c)
{
    return c->depth ? &c->steps[c->depth - 1] : NULL;
}

/* The task or the coroutine that awaits the one of an entry: generators between them only pass on. NONE: not known. */
static uint32_t awaiter_of(struct krait_coroutines *c, uint32_t entry)
{
    const struct task_step *step = last_step(c);
    for (uint32_t i = entry;; i--) {
        if (step && i == step->base)
            return step->node;
        if (!i)
            return NONE;
        const struct entry *outer = &c->entries[i - 1];
        enum krait_suspends kind = suspends(c, outer->func);
        if (kind == KRAIT_SUSPENDS_COROUTINE)
            return node_of(c, outer) ? outer->node : NONE;
        if (kind == KRAIT_SUSPENDS_NOT)
            return NONE;
    }
}

/* The end of what a task awaits; NONE: not known. */
static uint32_t innermost(const struct krait_coroutines *c, uint32_t by)
{
    uint32_t index = c->nodes[by].awaits;
    while (index < MIXED && c->nodes[index].awaits != NONE)
        index = c->nodes[index].awaits;
    return index == MIXED ? NONE : index;
}

/* What a task's step goes on with: by send() with the root, by throw(), or after what was thrown, with the innermost. */
static uint32_t outermost_goes_on(struct krait_coroutines *c, const struct entry *entry, uint32_t by)
{
    const struct task_step *step = last_step(c);
    uint32_t root = c->nodes[by].awaits, inner = innermost(c, by);
    if (step->has_begun || entry->kind == KRAIT_OP_THROW)
        return inner;
    if (c->has_throws || root == inner)
        return root;
    uint32_t func = base_func(c, entry->func);
    bool is_root = c->nodes[root].func == func, is_inner = inner == NONE || c->nodes[inner].func == func;
    if (is_root && is_inner) { /* a resume may be a throw */
        remove_node(c, root);
        c->nodes[by].awaits = MIXED;
        return NONE;
    }
    return is_root ? root : inner;
}

/* A call that goes on. Of one that began before the range, no more is known. */
static uint32_t going_on(struct krait_coroutines *c, const struct entry *entry, uint32_t by,
                         bool is_outermost)
{
    uint32_t index = c->nodes[by].awaits, func = base_func(c, entry->func);
    if (index == NONE && entry->kind == KRAIT_OP_RESUME) {
        index = new_node(
            c, (struct node){ .func = func, .awaited_by = by, .awaits = NONE, .task = c->nodes[by].task });
        if (index != NONE)
            c->nodes[by].awaits = index;
        return index;
    }
    if (index == NONE || index == MIXED)
        return NONE;
    if (is_outermost)
        index = outermost_goes_on(c, entry, by);
    else if (entry->kind == KRAIT_OP_THROW)
        return NONE;
    bool is_it = index != NONE && c->nodes[index].func == func && !c->nodes[index].is_open;
    return is_it ? index : NONE;
}

/* A call that begins. If another is suspended there, nobody can tell the two apart later. */
static uint32_t beginning(struct krait_coroutines *c, const struct entry *entry, uint32_t by)
{
    uint32_t before = c->nodes[by].awaits;
    if (before != NONE) {
        if (before != MIXED)
            remove_node(c, before);
        c->nodes[by].awaits = MIXED;
        return NONE;
    }
    uint32_t index = new_node(c, (struct node){ .begin_ns = entry->begin_ns,
                                                .func = base_func(c, entry->func),
                                                .awaited_by = by,
                                                .awaits = NONE,
                                                .task = c->nodes[by].task });
    if (index != NONE)
        c->nodes[by].awaits = index;
    return index;
}

/* Of a call that has just begun or gone on, which one it is. */
static void resolve(struct krait_coroutines *c)
{
    if (c->pending == NONE)
        return;
    struct entry *entry = &c->entries[c->pending];
    struct task_step *step = last_step(c);
    bool is_outermost = step && c->pending == step->base;
    uint32_t by = c->is_blind ? NONE : awaiter_of(c, c->pending);
    c->pending = NONE;
    if (by == NONE)
        return;
    entry->node =
        entry->kind == KRAIT_OP_CALL ? beginning(c, entry, by) : going_on(c, entry, by, is_outermost);
    if (is_outermost)
        step->has_begun = true;
    if (entry->node == NONE)
        return;
    entry->call = c->nodes[entry->node].call;
    c->nodes[entry->node].is_open = true;
}

/* -- tasks -- */

/* NONE: memory is out. */
static uint32_t node_of_task(struct krait_coroutines *c, uint32_t id)
{
    const uint64_t *known = krait_map_get(&c->node_of_task, id);
    if (known && *known)
        return (uint32_t)*known - 1;
    krait_map_trim(&c->node_of_task, &c->most_tasks);
    uint32_t index =
        new_node(c, (struct node){ .func = NONE, .awaited_by = NONE, .awaits = NONE, .task = id });
    if (index != NONE && krait_map_put(&c->node_of_task, id, (uint64_t)index + 1))
        return NONE;
    return index;
}

static bool is_generator(const struct krait_coroutines *c, uint32_t entry)
{
    return suspends(c, c->entries[entry].func) == KRAIT_SUSPENDS_GENERATOR;
}

/* Where the step's outermost coroutine is: the entry that has just begun, which may be a generator that stands for one; or it is
 * krait's own function, which walks skip, and the next. NONE: the step was stated anew, or what begins is not its outermost. */
static uint32_t base_of_step(const struct krait_coroutines *c)
{
    uint32_t base = c->pending;
    if (base == NONE && c->restates)
        return NONE;
    if (base == NONE)
        base = c->count && is_generator(c, c->count - 1) ? c->count - 1 : c->count;
    bool is_inner = base && suspends(c, c->entries[base - 1].func) != KRAIT_SUSPENDS_NOT;
    return is_inner ? NONE : base;
}

static int begin_step(struct krait_coroutines *c, uint32_t task)
{
    uint32_t node = node_of_task(c, task), base = base_of_step(c);
    if (node == NONE)
        return -ENOMEM;
    c->restates &= c->pending == NONE;
    if (c->depth == KRAIT_STEPS_MAX) /* ends are missing */
        c->depth = 0;
    bool has_begun = base < c->count && is_generator(c, base);
    c->steps[c->depth++] = (struct task_step){ task, node, base, has_begun };
    return 0;
}

static void end_step(struct krait_coroutines *c, uint32_t task)
{
    uint32_t i = c->depth;
    while (i && c->steps[i - 1].id != task)
        i--;
    c->depth = i ? i - 1 : 0;
    c->restates = false;
}

/* What tasks did before an op at that time. What has just begun may be the root of one. A switch of
 * greenlets has the time of the leave before it, and of the run behind it. */
static int follow_tasks(struct krait_coroutines *c, uint64_t t_ns, bool is_switch)
{
    int rc = 0;
    while (c->next < c->event_count && !rc) {
        const struct task_event *event = &c->events[c->next];
        bool is_later = is_switch ? event->is_run : c->pending == NONE;
        if (event->t_ns > t_ns || (event->t_ns == t_ns && is_later))
            break;
        c->next++;
        pass_breaks(c, event->t_ns);
        if (event->is_run) {
            krait_steps_begin(&c->running, event->task);
            rc = begin_step(c, event->task);
        }
        resolve(c);
        if (!event->is_run) {
            krait_steps_end(&c->running, event->task);
            end_step(c, event->task);
        }
    }
    resolve(c);
    return rc;
}

/* -- ops -- */

/* What awaits a coroutine yields right after it. What does anything else drives it by send(), and may do so with others. */
static void check_await(struct krait_coroutines *c, uint8_t kind)
{
    uint32_t index = c->yielded;
    c->yielded = NONE;
    if (index == NONE || kind == KRAIT_OP_YIELD || kind == KRAIT_OP_CUT)
        return;
    uint32_t by = c->nodes[index].awaited_by;
    if (!c->nodes[by].is_open) /* a task; or an exception was thrown past it */
        return;
    remove_node(c, index);
    c->nodes[by].awaits = MIXED;
}

/* The step whose outermost coroutine is an entry; NULL: none. */
static const struct task_step *step_at(const struct krait_coroutines *c, uint32_t entry)
{
    uint32_t i = c->depth;
    while (i && c->steps[i - 1].base != entry)
        i--;
    return i ? &c->steps[i - 1] : NULL;
}

/* Keeps a call for when its stack comes back. */
static int leave(struct krait_coroutines *c, uint32_t number, const struct entry *entry)
{
    if (!KRAIT_GROW_FILLED(c->left, c->left_cap, number + 1, 0))
        return -ENOMEM;
    c->age = KRAIT_MAX(c->age, 1u);
    const struct task_step *step = step_at(c, (uint32_t)(entry - c->entries));
    c->left[number] = (struct left){ .begin_ns = entry->begin_ns,
                                     .age = c->age,
                                     .node = entry->node,
                                     .call = entry->call,
                                     .task = step ? step->id : 0,
                                     .has_begun = step && step->has_begun,
                                     .kind = entry->kind };
    return 0;
}

bool krait_coroutines_has_left(const struct krait_coroutines *c, uint32_t number)
{
    return number && number < c->left_cap && c->age && c->left[number].age == c->age;
}

/* The call that has just been put on the stack goes on: it is what it was. Returns 0 or -ENOMEM. */
static int come_back(struct krait_coroutines *c, uint32_t number)
{
    struct entry *entry = &c->entries[c->count - 1];
    struct left *left = &c->left[number];
    left->age = 0;
    entry->begin_ns = left->begin_ns;
    entry->kind = left->kind;
    entry->node = left->node;
    entry->call = left->call;
    entry->was_left = true;
    if (!left->task || c->depth == KRAIT_STEPS_MAX)
        return 0;
    uint32_t node = node_of_task(c, left->task);
    c->steps[c->depth] = (struct task_step){ left->task, node, c->count - 1, left->has_begun };
    c->depth += node != NONE;
    return node == NONE ? -ENOMEM : 0;
}

bool krait_coroutines_may_switch(const struct krait_trace *trace)
{
    bool any = false;
    for (uint32_t i = 0; i < trace->task_count && !any; i++)
        any = trace->tasks[i].parents[0].id != KRAIT_NO_ID;
    return any;
}

/* `number`: krait_call_batch.left. Sets whether it goes on where a switch of greenlets had suspended it. */
static int begin(struct krait_coroutines *c, uint64_t t_ns, uint32_t func, uint8_t kind, uint32_t number,
                 bool *was_left)
{
    if (kind == KRAIT_OP_LIVE && number)
        pass_breaks(c, t_ns);
    *was_left = kind == KRAIT_OP_LIVE && krait_coroutines_has_left(c, number);
    if (kind == KRAIT_OP_LIVE && !*was_left) /* it goes on behind a gap, or on a stack that is not known */
        forget_all(c);
    if (!KRAIT_GROW(c->entries, c->cap, c->count + 1))
        return -ENOMEM;
    c->entries[c->count] = (struct entry){ .begin_ns = t_ns, .func = func, .node = NONE, .kind = kind };
    if (suspends(c, func) == KRAIT_SUSPENDS_COROUTINE && kind != KRAIT_OP_LIVE) {
        pass_breaks(c, t_ns);
        c->pending = c->count;
    }
    c->count++;
    return *was_left ? come_back(c, number) : 0;
}

/* Index among the trace's. 0: none. */
static uint32_t task_of(const struct krait_coroutines *c, uint32_t id)
{
    const uint64_t *index = id ? krait_map_get(&c->image->tasks, id) : NULL;
    return index ? (uint32_t)*index : KRAIT_NO_ID;
}

/* What it is of greenlets. `number`: krait_call_batch.left. */
static int end_of_left(struct krait_coroutines *c, const struct entry *entry, uint32_t number,
                       struct krait_call_step *step)
{
    step->was_left = entry->was_left;
    step->is_left = number && !c->is_blind;
    if (step->was_left || step->is_left)
        step->task = task_of(c, krait_steps_top(&c->running, 0));
    return step->is_left ? leave(c, number, entry) : 0;
}

/* Its call is known. */
static void end_node(struct krait_coroutines *c, const struct entry *entry, uint8_t kind,
                     struct krait_call_step *step)
{
    struct node *node = &c->nodes[entry->node];
    step->begin_ns = node->begin_ns;
    step->call = node->call;
    step->place = entry->node;
    step->task = task_of(c, node->task);
    if (step->is_left)
        return;
    if (kind != KRAIT_OP_YIELD) {
        uint32_t by = node->awaited_by;
        remove_node(c, entry->node);
        if (c->nodes[by].func == NONE && c->nodes[by].awaits == NONE)
            forget_task(c, by);
        return;
    }
    node->is_open = false;
    c->yielded = entry->node;
}

static int end(struct krait_coroutines *c, const struct krait_call_batch *ops, uint32_t op,
               struct krait_call_step *step)
{
    uint64_t t_ns = ops->t_ns[op];
    uint32_t number = ops->left && ops->kind[op] == KRAIT_OP_CUT ? ops->left[op] : 0;
    *step = (struct krait_call_step){ .task = KRAIT_NO_ID };
    if (!c->count)
        return 0;
    if (c->age || number)
        pass_breaks(c, t_ns);
    const struct entry *entry = &c->entries[--c->count];
    while (c->depth && c->steps[c->depth - 1].base != NONE && c->count < c->steps[c->depth - 1].base)
        c->depth--; /* its end was not told */
    step->is_coroutine = suspends(c, entry->func) == KRAIT_SUSPENDS_COROUTINE;
    step->is_first = entry->kind == KRAIT_OP_CALL;
    step->was_live = entry->kind == KRAIT_OP_LIVE;
    step->begin_ns = step->is_first || !step->is_coroutine ? entry->begin_ns : 0;
    if (step->is_coroutine)
        pass_breaks(c, t_ns);
    int rc = end_of_left(c, entry, number, step);
    if (node_of(c, entry))
        end_node(c, entry, ops->kind[op], step);
    return rc;
}

int krait_coroutines_take(struct krait_coroutines *c, const struct krait_call_batch *ops,
                          struct krait_call_step *steps)
{
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        uint32_t left = ops->left ? ops->left[i] : 0;
        rc = follow_tasks(c, ops->t_ns[i], left);
        if (rc)
            break;
        check_await(c, ops->kind[i]);
        if (krait_op_is_end(ops->kind[i]))
            rc = end(c, ops, i, &steps[i]);
        else
            rc = begin(c, ops->t_ns[i], ops->func[i], ops->kind[i], left, &steps[i].was_left);
    }
    return rc;
}
