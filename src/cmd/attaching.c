/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/attaching.h"

#include "attach/attach.h"
#include "base/json_read.h"
#include "cmd/before_recording.h"
#include "record/ctl.h"
#include "remote/remote.h"

#include <signal.h>
#include <string.h>

#define AGENT "_agent.abi3.so"

/* A process that was forked out of a recorded one still maps that recording, and may be no part of it. */
static bool is_in(const struct krait_json *status, pid_t pid)
{
    for (const struct krait_json *row = krait_json_items(status, "processes"); row; row = row->next) {
        if (krait_json_number(row, "pid") == (uint64_t)pid)
            return true;
    }
    return false;
}

static int refuse(const struct krait_json *status, pid_t pid, struct krait_err *err)
{
    int collector = (int)krait_json_number(status, "collector");
    const char *folder = krait_json_string(status, "folder");
    if (!*folder) /* nothing is written */
        return krait_err_set(err, -EALREADY,
                             "process %d is watched already by krait top, process %d; end that first, for a "
                             "process is in one recording at a time",
                             pid, collector);
    return krait_err_set(err, -EALREADY,
                         "process %d is recorded already, by process %d into %s; krait ctl %d status shows "
                         "that recording, krait ctl %d snapshot copies it, and a process is in one at a time",
                         pid, collector, folder, pid, pid);
}

/* -EALREADY where another recording has the process. Whoever does not answer says nothing of it: the agent looks again. */
static int check_free(pid_t pid, struct krait_err *err)
{
    char operand[16];
    struct krait_ctl_place place;
    struct krait_err ignored;
    KRAIT_AUTO_BUF answer = { 0 };
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_json *status;
    snprintf(operand, sizeof(operand), "%d", pid);
    if (krait_ctl_find(operand, &place, &ignored) || krait_ctl_ask(&place, "status", &answer, &ignored) ||
        krait_json_read(&status, &arena, answer.data, answer.len, 0, &ignored) || !is_in(status, pid))
        return 0;
    return refuse(status, pid, err);
}

int krait_attaching_find(char *library, size_t size, struct krait_err *err)
{
    int rc = krait_before_find_preload(library, size - sizeof(AGENT), err);
    if (!rc)
        strcpy(strrchr(library, '/') + 1, AGENT);
    return rc;
}

int krait_attaching_check(pid_t pid, struct krait_err *err)
{
    struct krait_remote *remote = NULL;
    int rc = krait_remote_open(&remote, pid, err); /* says who is no Python, or not ours */
    krait_remote_free(remote);
    return rc ? rc : check_free(pid, err);
}

bool krait_attaching_is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

struct calling {
    const struct krait_attaching *attaching;
    struct krait_collector *collector;
};

static void tell_step(void *ctx, const char *text)
{
    const struct krait_attaching *a = ((const struct calling *)ctx)->attaching;
    if (a->step)
        a->step(a->ctx, text);
}

/* Other processes go on to fill their rings. */
static void empty_rings(void *ctx)
{
    krait_collector_round(((const struct calling *)ctx)->collector);
}

static int call_agent(struct krait_attaching *a, struct krait_collector *collector, const char *function,
                      const char *argument, struct krait_err *err)
{
    struct calling calling = { a, collector };
    struct krait_attach_call call = { a->library, function, argument, tell_step, empty_rings, &calling, 0 };
    int rc = krait_attach(a->pid, &call, err);
    a->paused_ns = KRAIT_MAX(a->paused_ns, call.paused_ns);
    return rc;
}

int krait_attaching_begin(struct krait_attaching *a, struct krait_collector *collector, struct krait_err *err)
{
    a->joined_before = krait_collector_begins(collector, a->pid);
    a->begun_before = krait_collector_begun(collector, a->pid);
    int rc = krait_collector_admit(collector, a->pid, err);
    if (rc)
        return rc;
    a->asked_ns = krait_clock_ns(CLOCK_MONOTONIC);
    return call_agent(a, collector, "krait_agent_attach", krait_collector_address(collector), err);
}

/* The reason that the process has told, if it has. */
static bool has_refused(const struct krait_collector *collector, pid_t pid, char *why, size_t size)
{
    int told;
    for (size_t i = 0; (told = krait_collector_refusal(collector, i, why, size)); i++) {
        if (told == pid)
            return true;
    }
    return false;
}

/* A process that was told to begin, and did not for so long. */
static int refuse_slow(const struct krait_attaching *a, int seconds, struct krait_err *err)
{
    if (krait_attach_has_loaded(a->pid, AGENT))
        return krait_err_set(err, -ETIMEDOUT,
                             "process %d did not begin to record within %d s, because C code holds the GIL; "
                             "krait dump %d shows it. Try again when it is done",
                             a->pid, seconds, a->pid);
    return krait_err_set(err, -ETIMEDOUT,
                         "process %d did not load krait's agent within %d s; it may not read %s, or another "
                         "thread of it holds the lock of the dynamic loader",
                         a->pid, seconds, a->library);
}

int krait_attaching_has_begun(struct krait_attaching *a, const struct krait_collector *collector,
                              struct krait_err *err)
{
    enum { SECONDS = 10 };
    char why[128];
    a->is_ready = !krait_collector_is_on(collector) && krait_collector_is_ready(collector, a->pid);
    a->has_begun = a->is_ready || krait_collector_begun(collector, a->pid) > a->begun_before;
    if (a->has_begun)
        return 1;
    a->is_refused = has_refused(collector, a->pid, why, sizeof(why));
    if (a->is_refused)
        return krait_err_set(err, -ENOTSUP, "process %d cannot be recorded: %s", a->pid, why);
    if (!krait_attaching_is_alive(a->pid))
        return krait_err_set(err, -ESRCH, "process %d has ended", a->pid);
    if (a->over && a->over(a->ctx))
        return krait_err_set(err, -EINTR, "interrupted before the recording had begun");
    if (krait_clock_ns(CLOCK_MONOTONIC) - a->asked_ns > SECONDS * KRAIT_NS_PER_S)
        return refuse_slow(a, SECONDS, err);
    return 0;
}

void krait_attaching_pause(struct krait_collector *collector)
{
    krait_collector_round(collector);
    nanosleep(&(struct timespec){ 0, KRAIT_NS_PER_MS }, NULL);
}

bool krait_attaching_has_left(const struct krait_attaching *a, const struct krait_collector *collector)
{
    bool only_ready = a->has_begun && krait_collector_begins(collector, a->pid) == a->joined_before;
    return !krait_attaching_is_alive(a->pid) || (only_ready ? !krait_collector_is_ready(collector, a->pid)
                                                            : krait_collector_left(collector, a->pid));
}

void krait_attaching_leave(struct krait_attaching *a, struct krait_collector *collector)
{
    struct krait_err ignored = { 0 };
    a->end = KRAIT_ATTACHING_LEFT;
    if (krait_attaching_has_left(a, collector))
        return;
    int rc = call_agent(a, collector, "krait_agent_detach", krait_collector_session(collector), &ignored);
    a->end = rc ? KRAIT_ATTACHING_STAYS : KRAIT_ATTACHING_WAITS;
}

bool krait_attaching_is_leaving(struct krait_attaching *a, const struct krait_collector *collector)
{
    if (a->end == KRAIT_ATTACHING_WAITS && krait_attaching_has_left(a, collector))
        a->end = KRAIT_ATTACHING_LEFT;
    return a->end == KRAIT_ATTACHING_WAITS;
}
