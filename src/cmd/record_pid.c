/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_pid.h"

#include "base/fmt.h"
#include "cmd/pid.h"
#include "cmd/terminal.h"

int krait_record_pid_check(struct krait_record_pid *record, int argc, struct krait_err *err)
{
    const struct krait_recording_values *v = record->values;
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
    int rc = krait_pid_parse(v->pid, &record->attaching.pid, err);
    return rc ? rc : krait_recording_check(v, err);
}

static void print_step(void *ctx, const char *text)
{
    krait_terminal_say(NULL, 0, "krait record: %s", text);
}

int krait_record_pid_prepare(struct krait_record_pid *record, struct krait_err *err)
{
    record->attaching.step = record->values->verbose ? print_step : NULL;
    record->attaching.library = record->library;
    int rc = krait_attaching_check(record->attaching.pid, err);
    return rc ? rc : krait_attaching_find(record->library, sizeof(record->library), err);
}

static void print_duration(const struct krait_record_pid *record, const char *what, uint64_t since_ns)
{
    char ns[KRAIT_FMT_SIZE];
    if (record->values->verbose && record->attaching.end == KRAIT_ATTACHING_LEFT)
        krait_terminal_say(NULL, 0, "krait record: %s, after %s", what,
                           krait_fmt_ns(ns, krait_clock_ns(CLOCK_MONOTONIC) - since_ns));
}

int krait_record_pid_run(struct krait_record_pid *record, struct krait_collector *collector,
                         struct krait_err *err)
{
    struct krait_attaching *attaching = &record->attaching;
    uint64_t begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    int rc = krait_attaching_begin(attaching, collector, err);
    rc = rc ? rc : krait_attaching_wait(attaching, collector, err);
    if (rc)
        return rc;
    print_duration(record, "the process is recorded", begin_ns);
    while (!attaching->over(NULL) && krait_attaching_is_alive(attaching->pid) &&
           !krait_collector_left(collector, attaching->pid) && !krait_collector_limit(collector, 0)) {
        krait_collector_nap(collector);
        krait_collector_round(collector);
        krait_collector_keep_newest(collector, 0);
    }
    begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    krait_attaching_leave(attaching, collector);
    print_duration(record, "the recording has left the process", begin_ns);
    return 0;
}

void krait_record_pid_print(const struct krait_record_pid *record)
{
    char ns[KRAIT_FMT_SIZE];
    const struct krait_attaching *attaching = &record->attaching;
    krait_terminal_say(NULL, 2, "One thread of process %d was paused for %s at most", attaching->pid,
                       krait_fmt_ns(ns, attaching->paused_ns));
    if (attaching->end == KRAIT_ATTACHING_WAITS)
        krait_terminal_say(KRAIT_RED, 2,
                           "C code holds the GIL of process %d: its hooks, and the recording's memory, go as "
                           "soon as that lets the GIL go",
                           attaching->pid);
    if (attaching->end == KRAIT_ATTACHING_STAYS)
        krait_terminal_say(
            KRAIT_RED, 2,
            "Process %d could not be told to detach: its hooks, and the recording's memory, go "
            "when it next calls Python functions",
            attaching->pid);
}
