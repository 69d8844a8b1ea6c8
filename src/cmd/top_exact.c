/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call instead of samples: krait's recorder goes into the program, and its rings are read here, in place.
 */
#include "cmd/attached.h"
#include "cmd/before_recording.h"
#include "cmd/top.h"
#include "record/shm.h"

#include <string.h>

enum { BUFFER_BYTES = 256 * 1024 * 1024 };

struct top_exact {
    struct krait_collector *collector;
    struct krait_live *live;
    struct krait_attached_list attached; /* a program is top_process.images at that time */
    bool preloaded;                      /* the command loads the recorder itself, and what it starts does */
    bool finished;
    uint32_t stopped; /* before that */
    uint64_t now;     /* calls up to here have been read */
};

static bool is_asked_to_end(void *ctx)
{
    return top_is_asked_to_end();
}

int top_exact_open(struct top_exact **out, double max_overhead, bool children, struct krait_err *err)
{
    struct top_exact *exact = calloc(1, sizeof(*exact));
    if (!exact || krait_live_new(&exact->live)) {
        free(exact);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    const struct krait_collector_options options = {
        .tap = krait_live_tap(exact->live),
        .buffer_bytes = BUFFER_BYTES,
        .flags = KRAIT_RECORD_C_CALLS | KRAIT_RECORD_GIL | KRAIT_RECORD_TASKS | KRAIT_RECORD_GC |
                 KRAIT_RECORD_COST | (children ? KRAIT_RECORD_CHILDREN : 0),
        .max_overhead = max_overhead,
        .open_ns = KRAIT_NS_PER_S / 10,
    };
    int rc = krait_collector_new(&exact->collector, &options, err);
    if (rc) {
        top_exact_free(exact);
        return rc;
    }
    exact->attached.how.over = is_asked_to_end;
    krait_live_set_clock(exact->live, krait_collector_clock(exact->collector));
    *out = exact;
    return 0;
}

void top_exact_free(struct top_exact *exact)
{
    if (!exact)
        return;
    krait_collector_free(exact->collector);
    krait_live_free(exact->live);
    krait_attached_done(&exact->attached);
    free(exact);
}

struct krait_live *top_exact_live(const struct top_exact *exact)
{
    return exact->live;
}

uint64_t top_exact_cost(const struct top_exact *exact)
{
    return krait_collector_cost(exact->collector);
}

uint64_t top_exact_lost(const struct top_exact *exact)
{
    return krait_collector_lost(exact->collector);
}

int top_exact_preload(struct top_exact *exact, struct krait_err *err)
{
    char preload[PATH_MAX];
    int rc = krait_before_find_preload(preload, sizeof(preload), err);
    exact->preloaded = !rc;
    return rc ? rc : krait_before_set_environment(exact->collector, preload, true, err);
}

/* -- attaching -- */

/* What a recorded process forks, and what the command of krait's own runs, is recorded from its first moment. Who left the
 * recording did so on purpose, or executed another program. */
static bool is_to_be_attached(const struct top_exact *exact, const struct top_process *process, bool at_once)
{
    const struct krait_attached *before = krait_attached_find(&exact->attached, process->pid);
    bool is_free = process->remote && !exact->preloaded &&
                   (!before || before->state != KRAIT_ATTACHED_BEGINS) &&
                   !krait_collector_has(exact->collector, process->pid);
    bool has_left = before || krait_collector_left(exact->collector, process->pid);
    bool executed = process->images > (before ? before->program : 1);
    return is_free && (at_once || (process->age > 1 && (!has_left || executed)));
}

int top_exact_join(struct top_exact *exact, const struct top_processes *processes, bool at_once)
{
    for (uint32_t i = 0; i < processes->count; i++) {
        const struct top_process *process = &processes->items[i];
        if (!is_to_be_attached(exact, process, at_once))
            continue;
        int rc = krait_attached_begin(&exact->attached, exact->collector, process->pid, process->images);
        if (rc)
            return rc;
    }
    return 0;
}

uint32_t top_exact_stopped(struct top_exact *exact, const struct top_processes *processes)
{
    uint32_t n = 0;
    if (exact->finished) /* it has ended the others */
        return exact->stopped;
    for (uint32_t i = 0; i < processes->count; i++) {
        const struct top_process *process = &processes->items[i];
        const struct krait_attached *attached = krait_attached_find(&exact->attached, process->pid);
        bool executed = process->images > (attached ? attached->program : 1);
        n += process->remote && !executed && (!attached || attached->state == KRAIT_ATTACHED_RECORDED) &&
             krait_collector_left(exact->collector, process->pid) && !krait_task_has_ended(process->pid);
    }
    return exact->stopped = n;
}

bool top_exact_begins(const struct top_exact *exact)
{
    return krait_attached_begins(&exact->attached);
}

const struct krait_err *top_exact_failure(const struct top_exact *exact, pid_t pid)
{
    const struct krait_attached *attached = krait_attached_find(&exact->attached, pid);
    return attached && attached->state == KRAIT_ATTACHED_FAILED ? &attached->err : NULL;
}

void top_exact_forget_failures(struct top_exact *exact)
{
    struct krait_attached_list *list = &exact->attached;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].state != KRAIT_ATTACHED_FAILED)
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

uint32_t top_exact_failures(const struct top_exact *exact)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < exact->attached.count; i++) {
        const struct krait_attached *attached = &exact->attached.items[i];
        n += attached->state == KRAIT_ATTACHED_FAILED && krait_attaching_is_alive(attached->attaching.pid);
    }
    return n;
}

/* -- while it runs -- */

void top_exact_round(struct top_exact *exact, bool nap)
{
    if (nap)
        krait_collector_nap(exact->collector);
    krait_collector_round(exact->collector);
    krait_attached_look(&exact->attached, exact->collector);
}

/* The kernel's numbers of threads are those that they know themselves, but in a container. */
static void look_at(struct top_exact *exact, pid_t pid, const struct krait_os_tasks *tasks,
                    const struct krait_clock *clock, uint64_t ticks, uint64_t ns)
{
    for (uint32_t i = 0; i < tasks->count; i++) {
        const struct krait_os_task *task = &tasks->items[i];
        uint64_t since = task->read_ns - KRAIT_MIN(ns, task->read_ns);
        struct krait_live_look look = { .pid = pid,
                                        .tid = task->inner,
                                        .t = ticks + (uint64_t)((double)since * (double)clock->freq / 1e9),
                                        .state = (uint8_t)top_state_of_task(pid, task),
                                        .gil = TOP_GIL };
        krait_live_look(exact->live, &look);
    }
}

int top_exact_look(struct top_exact *exact, const struct top_processes *processes)
{
    KRAIT_CLEANUP(krait_tasks_done) struct krait_os_tasks tasks = { 0 };
    const struct krait_clock *clock = krait_collector_clock(exact->collector);
    uint64_t ticks = krait_clock_now(clock), ns = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = 0;
    for (uint32_t i = 0; i < processes->count && rc != -ENOMEM; i++) {
        const struct top_process *process = &processes->items[i];
        if (process->ended || !krait_collector_has(exact->collector, process->pid))
            continue;
        rc = krait_tasks_read(&tasks, process->pid, true);
        if (!rc)
            look_at(exact, process->pid, &tasks, clock, ticks, ns);
    }
    return rc == -ENOMEM ? rc : 0;
}

uint64_t top_exact_catch_up(struct top_exact *exact)
{
    krait_collector_round(exact->collector);
    krait_collector_take_open(exact->collector);
    return exact->now = krait_clock_now(krait_collector_clock(exact->collector));
}

uint64_t top_exact_now(const struct top_exact *exact)
{
    return exact->now;
}

void top_exact_turn(struct top_exact *exact)
{
    krait_live_turn(exact->live, top_exact_catch_up(exact));
}

void top_exact_reset(struct top_exact *exact)
{
    krait_live_reset(exact->live, top_exact_catch_up(exact));
}

void top_exact_switch(struct top_exact *exact, bool on)
{
    if (krait_collector_is_on(exact->collector) == on)
        return;
    uint64_t now = top_exact_catch_up(exact);
    if (on)
        krait_live_resume(exact->live, now);
    else
        krait_live_pause(exact->live, now);
    krait_collector_toggle(exact->collector);
}

void top_exact_finish(struct top_exact *exact)
{
    struct krait_collector_summary ignored;
    if (!exact || exact->finished)
        return;
    exact->finished = true;
    top_exact_turn(exact);
    krait_attached_leave(&exact->attached, exact->collector);
    krait_collector_finish(exact->collector, &ignored);
}
