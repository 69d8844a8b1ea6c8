/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own tracing: tracefs and perf events. Python calls are recorded without them.
 */
#include "kernel/probe.h"

#include "kernel/functions.h"
#include "kernel/perf.h"
#include "kernel/tracefs.h"

#include <fcntl.h>
#include <string.h>

/* Makes an instance for a moment: who may make one need not be one who may write what lies in it, which is the
 * files' owner in the mount's options. */
static int try_instance(int root, struct krait_err *err)
{
    struct krait_err ignored = { 0 }; /* an instance in use is told as left behind */
    int instance = krait_tracefs_make_instance(root, &ignored);
    int rc = instance < 0 ? instance : faccessat(instance, "tracing_on", W_OK, AT_EACCESS) != 0 ? -errno : 0;
    if (instance >= 0) {
        close(instance);
        krait_tracefs_remove_instance(root, &ignored);
    }
    if (!rc)
        return 0;
    return krait_err_set(err, rc, "this user cannot write in tracing instances (%s); run krait as root",
                         strerror(-rc));
}

void krait_probe_tracefs(struct krait_check *check)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_CLOSE int root = krait_tracefs_open(&err);
    if (root >= 0 && !try_instance(root, &err)) {
        krait_check_value(check, "the kernel can be recorded");
        return;
    }
    krait_check_value(check,
                      "the kernel cannot be recorded by this user, but for the program's own switches and "
                      "page faults");
    krait_check_fix(check, KRAIT_CHECK_WARN, "%s", err.text);
}

static void no_tracefs(struct krait_check *check)
{
    krait_check_value(check, "unknown without tracefs");
    krait_check_fix(check, KRAIT_CHECK_WARN, "see tracefs");
}

/* The kernel's events can carry the same counter as ours when x86-tsc is among its clocks
 * (Documentation/trace/ftrace.rst, trace_clock). */
void krait_probe_trace_clock(struct krait_check *check)
{
    KRAIT_AUTO_BUF text = { 0 };
    KRAIT_AUTO_CLOSE int root = krait_tracefs_open(NULL);
    if (root < 0 || krait_tracefs_read(root, "trace_clock", &text) || !text.data) {
        no_tracefs(check);
        return;
    }
    const char *name = strstr(text.data, "x86-tsc") ? "x86-tsc" : strstr(text.data, "mono") ? "mono" : NULL;
    krait_check_value(check, "%s", name ? name : "neither x86-tsc nor mono");
    if (!name)
        krait_check_fix(check, KRAIT_CHECK_WARN,
                        "kernel and Python events will not order exactly: newer kernel");
}

/* As an instance has them, for a moment: older kernels have function_graph in the first alone. */
static const char *tracer_of_instances(int root, struct krait_err *err)
{
    struct krait_err in_use = { 0 }; /* is told as left behind */
    int instance = krait_tracefs_make_instance(root, err);
    if (instance < 0)
        return NULL;
    const char *tracer = krait_functions_tracer(instance, err);
    close(instance);
    krait_tracefs_remove_instance(root, &in_use);
    return tracer;
}

void krait_probe_functions(struct krait_check *check)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_CLOSE int root = krait_tracefs_open(NULL);
    if (root < 0) {
        no_tracefs(check);
        return;
    }
    const char *tracer = tracer_of_instances(root, &err);
    bool ends = tracer && strcmp(tracer, "function_graph") == 0;
    krait_check_value(check, "%s",
                      ends     ? "entry and exit"
                      : tracer ? "entry alone"
                               : "not the kernel's functions");
    if (!ends)
        krait_check_fix(check, KRAIT_CHECK_WARN, "%s",
                        tracer ? "boot a newer kernel, one whose function_graph works in tracing instances"
                               : err.text);
}

static void add_name(void *data, const char *name)
{
    struct krait_buf *names = data;
    krait_buf_fmt(names, "%s%s", names->len ? ", " : "", name);
}

/* Instances of kraits that were killed: their events are still switched on. */
void krait_probe_left_behind(struct krait_check *check)
{
    KRAIT_AUTO_BUF names = { 0 };
    KRAIT_AUTO_CLOSE int root = krait_tracefs_open(NULL);
    if (root < 0) {
        no_tracefs(check);
        return;
    }
    krait_tracefs_stale(root, add_name, &names);
    krait_check_value(check, "%s", names.len ? names.data : "nothing");
    if (names.len)
        krait_check_fix(
            check, KRAIT_CHECK_WARN,
            "tracing of recordings that were killed, which goes on; the next krait record --kernel "
            "ends it, as does sudo rmdir of its folder in /sys/kernel/tracing/" KRAIT_TRACEFS_INSTANCES);
}

static int perf_open(uint64_t config, pid_t pid, int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .config = config,
        .disabled = 1,
        .exclude_kernel = pid == 0,
        .exclude_hv = 1,
    };
    return krait_perf_event_open(&attr, pid, cpu);
}

/* Those of the user's own programs are what krait has use for: of all there is tracefs. */
void krait_probe_perf(struct krait_check *check)
{
    struct krait_err err = { 0 };
    KRAIT_AUTO_CLOSE int fd = perf_open(PERF_COUNT_SW_CONTEXT_SWITCHES, -1, 0);
    KRAIT_AUTO_CLOSE int own = perf_open(PERF_COUNT_SW_PAGE_FAULTS, 0, -1);
    if (fd >= 0 || own >= 0) {
        krait_check_value(check, "%s", fd >= 0 ? "of all processes" : "of own processes");
        return;
    }
    krait_perf_refusal(own, &err);
    krait_check_value(check, "not for this user: without tracefs nothing of the kernel is recorded");
    krait_check_fix(check, KRAIT_CHECK_WARN, "%s", err.text);
}
