/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's own tracing: tracefs and perf events. Python calls are recorded without them.
 */
#include "kernel/probe.h"

#include "base/buf.h"

#include <linux/capability.h>
#include <linux/perf_event.h>
#include <mntent.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define TRACEFS  "/sys/kernel/tracing"
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* Where tracefs is mounted, or an empty string. */
static void find_tracefs(char *to, size_t n)
{
    to[0] = '\0';
    FILE *mounts = setmntent("/proc/self/mounts", "r");
    if (!mounts)
        return;
    struct mntent entry;
    char line[4096];
    while (!to[0] && getmntent_r(mounts, &entry, line, sizeof(line))) {
        if (strcmp(entry.mnt_type, "tracefs") == 0)
            snprintf(to, n, "%s", entry.mnt_dir);
    }
    endmntent(mounts);
}

static bool kernel_has_tracefs(void)
{
    KRAIT_AUTO_BUF text = { 0 };
    return !krait_buf_read_file(&text, "/proc/filesystems") && text.data && strstr(text.data, "\ttracefs\n");
}

void krait_probe_tracefs(struct krait_check *check)
{
    char at[256];
    char events[300];
    find_tracefs(at, sizeof(at));
    snprintf(events, sizeof(events), "%s/events/sched", at);
    if (!kernel_has_tracefs()) {
        krait_check_value(check, "not in this kernel");
        krait_check_fix(check, KRAIT_CHECK_WARN, "boot a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING");
    } else if (!at[0]) {
        krait_check_value(check, "not mounted");
        krait_check_fix(check, KRAIT_CHECK_WARN, "sudo mount -t tracefs nodev " TRACEFS);
    } else if (access(events, R_OK | X_OK)) {
        krait_check_value(check, "%s, not yours to read", at);
        krait_check_fix(check, KRAIT_CHECK_WARN,
                        "run krait as root, or sudo mount -o remount,gid=%u,mode=750 %s", (unsigned)getgid(),
                        at);
    } else {
        krait_check_value(check, "%s, readable", at);
    }
}

/* The kernel's events can carry the same counter as ours when x86-tsc is among its clocks
 * (Documentation/trace/ ftrace.rst, trace_clock). */
void krait_probe_trace_clock(struct krait_check *check)
{
    char path[300];
    find_tracefs(path, sizeof(path) - sizeof("/trace_clock"));
    if (!path[0]) {
        krait_check_value(check, "unknown while tracefs is not mounted");
        krait_check_fix(check, KRAIT_CHECK_WARN, "see tracefs");
        return;
    }
    strcat(path, "/trace_clock");
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_buf_read_file(&text, path) || !text.data) {
        krait_check_value(check, "not readable");
        krait_check_fix(check, KRAIT_CHECK_WARN, "see tracefs");
        return;
    }
    const char *name = strstr(text.data, "x86-tsc") ? "x86-tsc" : strstr(text.data, "mono") ? "mono" : NULL;
    krait_check_value(check, "%s", name ? name : "neither x86-tsc nor mono");
    if (!name)
        krait_check_fix(check, KRAIT_CHECK_WARN,
                        "kernel and Python events will not order exactly: newer kernel");
}

static int perf_open(uint32_t type, uint64_t config, pid_t pid, int cpu)
{
    struct perf_event_attr attr = {
        .type = type,
        .size = sizeof(attr),
        .config = config,
        .disabled = 1,
        .exclude_kernel = pid == 0,
        .exclude_hv = 1,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void krait_probe_perf(struct krait_check *check)
{
    long paranoid;
    if (krait_probe_number(PARANOID, &paranoid)) {
        krait_check_value(check, "not in this kernel");
        krait_check_fix(check, KRAIT_CHECK_WARN, "boot a kernel with CONFIG_PERF_EVENTS");
        return;
    }
    KRAIT_AUTO_CLOSE int fd = perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, -1, 0);
    if (fd >= 0) {
        krait_check_value(check, "all processes (perf_event_paranoid %ld)", paranoid);
        return;
    }
    KRAIT_AUTO_CLOSE int own = perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, -1);
    krait_check_value(check, "%s (perf_event_paranoid %ld)",
                      own >= 0 ? "own processes only" : "not for this user", paranoid);
    krait_check_fix(
        check, KRAIT_CHECK_WARN,
        "sudo sysctl kernel.perf_event_paranoid=-1, or run krait with CAP_PERFMON; in a container, let "
        "the seccomp profile allow perf_event_open");
}

void krait_probe_counters(struct krait_check *check)
{
    KRAIT_AUTO_CLOSE int fd = perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, -1);
    if (fd >= 0) {
        krait_check_value(check, "hardware cycles and instructions");
        return;
    }
    bool missing = fd == -ENOENT || fd == -EOPNOTSUPP || fd == -ENODEV;
    krait_check_value(check, "no hardware counters%s", missing ? " on this machine" : " for this user");
    krait_check_fix(check, KRAIT_CHECK_WARN, "%s",
                    missing ? "a virtual machine needs them from its host (qemu: -cpu host,pmu=on)"
                            : "see perf events");
}
