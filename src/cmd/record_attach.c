/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_attach.h"

#include "attach/attach.h"
#include "base/fmt.h"
#include "base/json_read.h"
#include "cmd/pid.h"
#include "cmd/record_before.h"
#include "cmd/terminal.h"
#include "record/ctl.h"
#include "remote/remote.h"

#include <signal.h>
#include <string.h>

#define AGENT "_agent.abi3.so"

int krait_record_attach_check(struct krait_record_attach *attach, int argc, struct krait_err *err)
{
    const struct krait_recording_values *v = attach->values;
    const struct {
        bool given;
        const char *name;
    } others[] = {
        { v->wait, "--wait" },
        { v->view, "--view" },
        { v->idle, "--idle" },
        { v->kernel, "--kernel" },
        { v->toggle_signal, "--toggle-signal" },
        { v->snapshot_signal, "--snapshot-signal" },
    };
    if (argc)
        return krait_err_set(err, -EINVAL, "--pid and a command exclude each other");
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(others); i++) {
        if (others[i].given)
            return krait_err_set(err, -EINVAL, "%s does not go with --pid", others[i].name);
    }
    int rc = krait_pid_parse(v->pid, &attach->pid, err);
    return rc ? rc : krait_recording_check(v, err);
}

/* A process that was forked out of a recorded one still maps that recording, and may be no part of it. */
static bool is_in(const struct krait_json *status, pid_t pid)
{
    for (const struct krait_json *row = krait_json_items(status, "processes"); row; row = row->next) {
        if (krait_json_number(row, "pid") == (uint64_t)pid)
            return true;
    }
    return false;
}

/* -EALREADY where another recording has the process. Whoever does not answer says nothing of it: the agent looks again. */
static int check_free(pid_t pid, struct krait_err *err)
{
    char operand[16];
    uint64_t inode;
    struct krait_err ignored;
    KRAIT_AUTO_BUF answer = { 0 };
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena arena = { 0 };
    struct krait_json *status;
    snprintf(operand, sizeof(operand), "%d", pid);
    if (krait_ctl_find(operand, &inode, &ignored) || krait_ctl_ask(inode, "status", &answer, &ignored) ||
        krait_json_read(&status, &arena, answer.data, answer.len, 0, &ignored) || !is_in(status, pid))
        return 0;
    return krait_err_set(err, -EALREADY,
                         "process %d is recorded already, by process %d into %s; krait ctl %d status shows "
                         "that recording, krait ctl %d snapshot copies it, and a process is in one at a time",
                         pid, (int)krait_json_number(status, "collector"),
                         krait_json_string(status, "folder"), pid, pid);
}

int krait_record_attach_library(struct krait_record_attach *attach, struct krait_err *err)
{
    struct krait_remote *remote = NULL;
    int rc = krait_remote_open(&remote, attach->pid, err); /* says who is no Python, or not ours */
    if (rc)
        return rc;
    krait_remote_free(remote);
    rc = check_free(attach->pid, err);
    rc = rc ? rc : krait_record_find_preload(attach->library, sizeof(attach->library) - sizeof(AGENT), err);
    if (!rc)
        strcpy(strrchr(attach->library, '/') + 1, AGENT);
    return rc;
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

static void print_step(void *ctx, const char *text)
{
    krait_terminal_say(NULL, 0, "krait record: %s", text);
}

static int call_agent(struct krait_record_attach *attach, struct krait_collector *collector,
                      const char *function, struct krait_err *err)
{
    struct krait_attach_call call = { .library = attach->library,
                                      .function = function,
                                      .argument = krait_collector_session(collector),
                                      .step = attach->values->verbose ? print_step : NULL };
    int rc = krait_attach(attach->pid, &call, err);
    attach->paused_ns = KRAIT_MAX(attach->paused_ns, call.paused_ns);
    return rc;
}

static int wait_for_begin(struct krait_record_attach *attach, struct krait_collector *collector,
                          struct krait_err *err)
{
    enum { SECONDS = 10 };
    char why[128];
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + SECONDS * KRAIT_NS_PER_S;
    while (!krait_collector_owner_seen(collector)) {
        if (krait_collector_refusal(collector, 0, why, sizeof(why)))
            return krait_err_set(err, -ENOTSUP, "process %d cannot be recorded: %s", attach->pid, why);
        if (!is_alive(attach->pid))
            return krait_err_set(err, -ESRCH, "process %d has ended", attach->pid);
        if (attach->over(NULL))
            return krait_err_set(err, -EINTR, "interrupted before the recording had begun");
        if (krait_clock_ns(CLOCK_MONOTONIC) > end)
            return krait_err_set(err, -ETIMEDOUT,
                                 "process %d did not begin to record within %d s: "
                                 "C code holds the GIL, or the agent cannot be loaded there (%s)",
                                 attach->pid, SECONDS, attach->library);
        krait_collector_round(collector);
        nanosleep(&(struct timespec){ 0, KRAIT_NS_PER_MS }, NULL);
    }
    return 0;
}

/* Where it does not leave, as while C code holds the GIL, it ends its part when it next looks. */
static void leave(struct krait_record_attach *attach, struct krait_collector *collector)
{
    struct krait_err ignored = { 0 };
    if (krait_collector_owner_left(collector) || !is_alive(attach->pid))
        return;
    attach->stayed = call_agent(attach, collector, "krait_agent_detach", &ignored) != 0;
    if (attach->stayed)
        return;
    uint64_t end = krait_clock_ns(CLOCK_MONOTONIC) + 2 * KRAIT_NS_PER_S;
    while (!krait_collector_owner_left(collector) && is_alive(attach->pid) &&
           krait_clock_ns(CLOCK_MONOTONIC) < end) {
        krait_collector_round(collector);
        nanosleep(&(struct timespec){ 0, KRAIT_NS_PER_MS }, NULL);
    }
    attach->stayed = !krait_collector_owner_left(collector) && is_alive(attach->pid);
}

static void print_duration(const struct krait_record_attach *attach, const char *what, uint64_t since_ns)
{
    char ns[KRAIT_FMT_SIZE];
    if (attach->values->verbose && !attach->stayed)
        krait_terminal_say(NULL, 0, "krait record: %s, after %s", what,
                           krait_fmt_ns(ns, krait_clock_ns(CLOCK_MONOTONIC) - since_ns));
}

int krait_record_attach_run(struct krait_record_attach *attach, struct krait_collector *collector,
                            struct krait_err *err)
{
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = call_agent(attach, collector, "krait_agent_attach", err);
    rc = rc ? rc : wait_for_begin(attach, collector, err);
    if (rc)
        return rc;
    print_duration(attach, "the process is recorded", begin_ns);
    while (!attach->over(NULL) && is_alive(attach->pid) && !krait_collector_owner_left(collector) &&
           !krait_collector_limit(collector, 0)) {
        krait_collector_nap(collector);
        krait_collector_round(collector);
        krait_collector_keep_newest(collector, 0);
    }
    begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    leave(attach, collector);
    print_duration(attach, "the recording has left the process", begin_ns);
    return 0;
}

void krait_record_attach_print(const struct krait_record_attach *attach)
{
    char ns[KRAIT_FMT_SIZE];
    krait_terminal_say(NULL, 2, "One thread of process %d was paused for %s at most", attach->pid,
                       krait_fmt_ns(ns, attach->paused_ns));
    if (attach->stayed)
        krait_terminal_say(
            KRAIT_RED, 2,
            "Process %d could not be told to detach: its hooks end when it next calls a function; "
            "the recording's memory stays mapped",
            attach->pid);
}
