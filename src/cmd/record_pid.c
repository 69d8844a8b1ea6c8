/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_pid.h"

#include "base/array.h"
#include "base/fmt.h"
#include "cmd/pid.h"
#include "cmd/record_kernel.h"
#include "cmd/terminal.h"
#include "record/ctl.h"
#include "record/shm.h"
#include "remote/thread.h"

#include <sys/stat.h>

/* A descendant in which krait has found no Python so far. */
struct krait_other {
    pid_t pid;
    uint64_t program;      /* krait_collector_image */
    uint32_t tries, ready; /* how often; and how often it was one to attach to */
    bool seen;             /* in this look */
};

void krait_record_pid_done(struct krait_record_pid *record)
{
    krait_attached_done(&record->attached);
    free(record->others);
}

int krait_record_pid_check(struct krait_record_pid *record, int argc, struct krait_err *err)
{
    const struct krait_recording_values *v = record->values;
    if (argc)
        return krait_err_set(err, -EINVAL, "--pid and a command exclude each other");
    if (v->wait)
        return krait_err_set(
            err, -EINVAL,
            "--wait does not go with --pid, which records until the process ends; --children "
            "records also what it starts");
    int rc = krait_pid_parse(v->pid, &record->pid, err);
    return rc ? rc : krait_recording_check(v, err);
}

/* ---- which processes ---- */

/* Whether there is a descendant to record. */
static bool has_other(const struct krait_record_pid *record)
{
    bool found = false;
    struct krait_err ignored = { 0 };
    KRAIT_CLEANUP(krait_pids_done) struct krait_pids pids = { 0 };
    krait_pids_add_children(&pids, record->pid);
    for (uint32_t i = 0; i < pids.count && !found; i++)
        found = !krait_attaching_check(pids.items[i], &ignored);
    return found;
}

static void note_pause(struct krait_record_pid *record, const struct krait_attaching *attaching)
{
    if (attaching->paused_ns > record->longest.paused_ns)
        record->longest = *attaching;
}

static void print_step(void *ctx, const char *text)
{
    krait_terminal_say(NULL, 0, "krait record: %s", text);
}

int krait_record_pid_prepare(struct krait_record_pid *record, struct krait_err *err)
{
    struct krait_attached_list *list = &record->attached;
    list->how.step = record->values->verbose ? print_step : NULL;
    int rc = krait_attaching_check(record->pid, err);
    bool looks = rc && record->values->children && krait_attaching_is_alive(record->pid);
    if (looks && has_other(record))
        rc = 0;
    else if (looks && rc == -ENOEXEC)
        krait_pid_no_python(record->pid, err);
    return rc ? rc : krait_attaching_find(list->library, sizeof(list->library), err);
}

/* Whether nothing new is to be recorded. */
static bool is_ending(const struct krait_record_pid *record, struct krait_collector *collector)
{
    const struct krait_attaching *how = &record->attached.how;
    return how->over(how->ctx) || krait_collector_limit(collector);
}

/* What krait has looked at so far, or NULL without memory. */
static struct krait_other *find_other(struct krait_record_pid *record, pid_t pid, uint64_t program)
{
    for (uint32_t i = 0; i < record->other_count; i++) {
        if (record->others[i].pid == pid && record->others[i].program == program)
            return &record->others[i];
    }
    if (!KRAIT_GROW(record->others, record->other_cap, record->other_count + 1))
        return NULL;
    struct krait_other *other = &record->others[record->other_count++];
    *other = (struct krait_other){ .pid = pid, .program = program };
    return other;
}

/* Those that have ended, or run another program. */
static void forget_others(struct krait_record_pid *record)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < record->other_count; i++) {
        if (record->others[i].seen)
            record->others[kept++] = record->others[i];
    }
    record->other_count = kept;
    for (uint32_t i = 0; i < kept; i++)
        record->others[i].seen = false;
}

/* A fork of a recorded process, which has not had an event yet. */
static bool is_about_to_join(const struct krait_record_pid *record, pid_t pid)
{
    char text[16];
    struct krait_ctl_place place = { 0 };
    struct krait_err ignored = { 0 };
    snprintf(text, sizeof(text), "%d", pid);
    return krait_ctl_find(text, &place, &ignored) == 0 && place.inode == record->inode;
}

/* One that runs no Python may be about to; one that has just begun may have no interpreter yet. One that has ended is
 * nobody's trouble. */
static bool is_to_wait(const struct krait_other *other, int rc)
{
    enum { TRIES = 20 };
    return rc == -ESRCH || rc == -ENOEXEC || (rc == -EFAULT && other->tries < TRIES);
}

/* Attaches to a descendant if it is one to attach to, and has not been yet. Returns 0 or -ENOMEM. */
static int look_at(struct krait_record_pid *record, struct krait_collector *collector, pid_t pid)
{
    enum { TRIES = 100 };
    struct krait_err err = { 0 };
    uint64_t program = krait_collector_image(pid);
    const struct krait_attached *before = krait_attached_find(&record->attached, pid);
    if (before && (before->state == KRAIT_ATTACHED_BEGINS || before->program == program))
        return 0;
    if (krait_collector_has(collector, pid) || is_about_to_join(record, pid))
        return 0;
    struct krait_other *other = find_other(record, pid, program);
    if (!other)
        return -ENOMEM;
    other->seen = true;
    int rc = other->tries++ < TRIES ? krait_attaching_check(pid, &err) : -ENOEXEC;
    bool is_new = !rc && !other->ready++ && record->looked_ns; /* it may be about to make its interpreter */
    if (is_new || (rc && is_to_wait(other, rc)))
        return 0;
    return krait_attached_begin(&record->attached, collector, pid, program);
}

static int look_for_children(struct krait_record_pid *record, struct krait_collector *collector)
{
    KRAIT_CLEANUP(krait_pids_done) struct krait_pids pids = { 0 };
    int rc = krait_pids_add_children(&pids, record->pid);
    for (uint32_t i = 0; i < pids.count && !rc && !is_ending(record, collector); i++)
        rc = look_at(record, collector, pids.items[i]);
    forget_others(record);
    record->looked_ns = krait_clock_ns(CLOCK_MONOTONIC);
    return rc;
}

/* One that was given up, or is a fork of another, may be recorded all the same by now. Returns 0 or -ENOMEM. */
static int note_recorded(struct krait_record_pid *record, const struct krait_collector *collector)
{
    pid_t pids[KRAIT_PROCS_MAX];
    uint32_t n = krait_collector_pids(collector, pids, KRAIT_PROCS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        const struct krait_attached *item = krait_attached_find(&record->attached, pids[i]);
        if (item && item->state != KRAIT_ATTACHED_FAILED)
            continue;
        struct krait_attached *added =
            krait_attached_add(&record->attached, pids[i], krait_collector_image(pids[i]));
        if (!added)
            return -ENOMEM;
        added->state = KRAIT_ATTACHED_RECORDED;
        added->told = true;
    }
    return 0;
}

/* Those that have ended make room. */
static void forget_ended(struct krait_record_pid *record)
{
    uint32_t kept = 0;
    struct krait_attached_list *list = &record->attached;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct krait_attaching *a = &list->items[i].attaching;
        if (a->pid == record->pid || !krait_task_has_ended(a->pid))
            list->items[kept++] = list->items[i];
        else
            note_pause(record, a);
    }
    list->count = kept;
}

/* With --children, twice a second. Returns 0 or -ENOMEM. */
static int look(struct krait_record_pid *record, struct krait_collector *collector)
{
    enum { LOOK_NS = KRAIT_NS_PER_S / 2 };
    if (!record->values->children || krait_clock_ns(CLOCK_MONOTONIC) - record->looked_ns < LOOK_NS)
        return 0;
    int rc = note_recorded(record, collector);
    forget_ended(record);
    rc = rc ? rc : look_at(record, collector, record->pid);
    return rc ? rc : look_for_children(record, collector);
}

/* ---- what comes of it ---- */

/* The summary leaves out what was told here. */
static void tell(struct krait_record_pid *record, struct krait_collector *collector)
{
    char ns[KRAIT_FMT_SIZE];
    for (uint32_t i = 0; i < record->attached.count; i++) {
        struct krait_attached *item = &record->attached.items[i];
        if (item->told || item->state == KRAIT_ATTACHED_BEGINS)
            continue;
        item->told = true;
        if (item->attaching.is_refused)
            krait_collector_note_told(collector, item->attaching.pid);
        if (item->state == KRAIT_ATTACHED_FAILED && item->err.code != -ESRCH) /* or nobody misses it */
            krait_terminal_say(KRAIT_RED, 0, "krait record: %s", item->err.text);
        else if (item->state == KRAIT_ATTACHED_RECORDED && record->values->verbose)
            krait_terminal_say(NULL, 0, "krait record: process %d is %s, after %s", item->attaching.pid,
                               item->attaching.is_ready ? "ready" : "recorded",
                               krait_fmt_ns(ns, krait_clock_ns(CLOCK_MONOTONIC) - item->attaching.asked_ns));
    }
}

static bool is_any_recorded(const struct krait_record_pid *record)
{
    for (uint32_t i = 0; i < record->attached.count; i++) {
        if (record->attached.items[i].state == KRAIT_ATTACHED_RECORDED)
            return true;
    }
    return false;
}

/* Why none is recorded: what kept the process itself out, or else the first of the others. */
static int fail(struct krait_record_pid *record, struct krait_collector *collector, struct krait_err *err)
{
    struct krait_attached *item = krait_attached_find(&record->attached, record->pid);
    item = item ? item : record->attached.items;
    if (!item || item->state != KRAIT_ATTACHED_FAILED) /* all have ended meanwhile */
        return krait_err_set(err, -ESRCH,
                             "no process is left to record; process %d and the Python programs "
                             "that it started have ended",
                             record->pid);
    item->told = true;
    tell(record, collector);
    record->is_refused = item->attaching.is_refused;
    *err = item->err;
    return item->err.code;
}

/* Attaches to all that is there. Returns 0 if one is recorded. */
static int begin(struct krait_record_pid *record, struct krait_collector *collector,
                 struct krait_kernel *kernel, struct krait_err *err)
{
    struct stat st;
    record->inode = stat(krait_collector_session(collector), &st) ? 0 : st.st_ino;
    krait_collector_set_begins(collector, true);
    int rc = record->values->children ? look(record, collector)
                                      : krait_attached_begin(&record->attached, collector, record->pid,
                                                             krait_collector_image(record->pid));
    if (rc)
        return krait_err_set(err, rc, "out of memory");
    while (krait_attached_begins(&record->attached) &&
           !(is_ending(record, collector) && is_any_recorded(record))) {
        krait_attached_look(&record->attached, collector);
        krait_attaching_pause(collector);
        krait_record_kernel_round(kernel, collector);
    }
    krait_collector_set_begins(collector, false);
    if (!is_any_recorded(record))
        return fail(record, collector, err);
    tell(record, collector);
    krait_recording_say_idle(record->values, record->pid);
    return 0;
}

/* ---- while it runs ---- */

/* The process itself may run no Python, or be about to run another one. */
static bool may_bring_more(const struct krait_record_pid *record, const struct krait_collector *collector)
{
    const struct krait_attached *item = krait_attached_find(&record->attached, record->pid);
    bool has_left = item && item->state == KRAIT_ATTACHED_RECORDED &&
                    item->program == krait_collector_image(record->pid) &&
                    krait_collector_left(collector, record->pid);
    return record->values->children && !krait_task_has_ended(record->pid) && !has_left;
}

/* While the recording is off, from the begin on. */
static bool is_any_ready(const struct krait_record_pid *record, const struct krait_collector *collector)
{
    for (uint32_t i = 0; i < record->attached.count; i++) {
        if (krait_collector_is_ready(collector, record->attached.items[i].attaching.pid))
            return true;
    }
    return false;
}

static bool is_over(const struct krait_record_pid *record, struct krait_collector *collector,
                    struct krait_kernel *kernel)
{
    const struct krait_attaching *how = &record->attached.how;
    if (how->over(how->ctx) || krait_record_kernel_limit(kernel, collector))
        return true;
    if (!record->values->children)
        return krait_attaching_has_left(&record->attached.items[0].attaching, collector);
    return !krait_collector_pids(collector, NULL, 0) && !krait_attached_begins(&record->attached) &&
           !is_any_ready(record, collector) && !may_bring_more(record, collector);
}

/* Who runs Python code leaves at its next event, and need not be stopped for it. */
static void let_leave(struct krait_record_pid *record, struct krait_collector *collector)
{
    const uint64_t most_ns = 50 * KRAIT_NS_PER_MS;
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    krait_collector_stop(collector);
    krait_collector_round(collector);
    while (krait_collector_pids(collector, NULL, 0) && krait_clock_ns(CLOCK_MONOTONIC) - begin_ns < most_ns)
        krait_attaching_pause(collector);
}

static void leave(struct krait_record_pid *record, struct krait_collector *collector)
{
    char ns[KRAIT_FMT_SIZE];
    uint32_t stay = 0;
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    let_leave(record, collector);
    note_recorded(record, collector); /* without memory some leave by themselves */
    krait_attached_leave(&record->attached, collector);
    for (uint32_t i = 0; i < record->attached.count; i++) {
        stay += record->attached.items[i].attaching.end != KRAIT_ATTACHING_LEFT;
        note_pause(record, &record->attached.items[i].attaching);
    }
    if (record->values->verbose && !stay)
        krait_terminal_say(NULL, 0, "krait record: the recording has left %s, after %s",
                           record->attached.count > 1 ? "all processes" : "the process",
                           krait_fmt_ns(ns, krait_clock_ns(CLOCK_MONOTONIC) - begin_ns));
}

int krait_record_pid_run(struct krait_record_pid *record, struct krait_collector *collector,
                         struct krait_kernel *kernel, struct krait_err *err)
{
    int rc = begin(record, collector, kernel, err);
    if (rc)
        return rc;
    while (!rc && !is_over(record, collector, kernel)) {
        krait_collector_nap(collector);
        krait_collector_round(collector);
        record->each_round(collector);
        krait_record_kernel_round(kernel, collector);
        rc = look(record, collector);
        krait_attached_look(&record->attached, collector);
        tell(record, collector);
    }
    if (kernel)
        krait_kernel_stop(kernel);
    leave(record, collector);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}

/* ---- the end ---- */

void krait_record_pid_print(const struct krait_record_pid *record)
{
    char ns[KRAIT_FMT_SIZE];
    krait_terminal_say(NULL, 2, "One thread of process %d was paused for %s at most", record->longest.pid,
                       krait_fmt_ns(ns, record->longest.paused_ns));
    for (uint32_t i = 0; i < record->attached.count; i++) {
        const struct krait_attaching *a = &record->attached.items[i].attaching;
        if (a->end == KRAIT_ATTACHING_WAITS)
            krait_terminal_say(
                KRAIT_RED, 2,
                "C code holds the GIL of process %d: krait's hooks and the recording's memory stay "
                "until it releases the GIL",
                a->pid);
        if (a->end == KRAIT_ATTACHING_STAYS)
            krait_terminal_say(
                KRAIT_RED, 2,
                "Process %d could not be told to detach: krait's hooks and the recording's memory stay "
                "until it next calls Python functions",
                a->pid);
    }
}
