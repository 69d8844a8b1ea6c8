/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/probe.h"

#include "base/buf.h"

#include <stdarg.h>
#include <string.h>

const struct krait_probe krait_probes[] = {
    { "Recording", "clock", krait_probe_clock },
    { "Recording", "clock source", krait_probe_clocksource },
    { "Recording", "shared memory", krait_probe_memfd },
    { "Recording", "CPUs", krait_probe_cpus },
    { "Recording", "free disk", krait_probe_disk },
    { "Recording", "open files", krait_probe_files },
    { "Kernel", "tracefs", krait_probe_tracefs },
    { "Kernel", "trace clock", krait_probe_trace_clock },
    { "Kernel", "functions", krait_probe_functions },
    { "Kernel", "left behind", krait_probe_left_behind },
    { "Kernel", "perf events", krait_probe_perf },
    { "Kernel", "locked memory", krait_probe_memlock },
    { "Kernel", "ptrace", krait_probe_ptrace },
    { NULL, NULL, NULL },
};

void krait_check_value(struct krait_check *check, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(check->value, sizeof(check->value), fmt, ap);
    va_end(ap);
}

void krait_check_fix(struct krait_check *check, enum krait_check_state state, const char *fmt, ...)
{
    check->state = KRAIT_MAX(check->state, state);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(check->fix, sizeof(check->fix), fmt, ap);
    va_end(ap);
}

int krait_probe_number(const char *path, long *number)
{
    KRAIT_AUTO_BUF text = { 0 };
    int rc = krait_buf_read_file(&text, path);
    if (rc)
        return rc;
    char *end;
    long n = text.data ? strtol(text.data, &end, 10) : 0;
    if (!text.data || end == text.data)
        return -EINVAL;
    *number = n;
    return 0;
}

/* proc(5): CapEff is a mask in hexadecimal. */
bool krait_probe_capable(unsigned capability)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_buf_read_file(&text, "/proc/self/status") || !text.data)
        return false;
    const char *line = strstr(text.data, "\nCapEff:");
    return line && (strtoull(line + strlen("\nCapEff:"), NULL, 16) >> capability & 1);
}
