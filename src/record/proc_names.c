/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes are called. A program may rename itself: by prctl(PR_SET_NAME), or by writing over its
 * command line, as setproctitle does. Nothing tells of that, so it is looked for: soon after the process has
 * begun, and then ever more rarely, down to once a second.
 */
#include "record/collector_inside.h"

#include <string.h>

#define SOONEST_NS (10 * KRAIT_NS_PER_MS)

/* /proc/PID/NAME up to the `end` that it ends with, its NULs made blanks, and no longer than a program says
 * its command line itself; empty when the process is gone. */
static void read_proc_text(int pid, const char *name, char end, struct krait_buf *text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    krait_buf_read_file(text, path);
    size_t n = KRAIT_MIN(text->len, (size_t)KRAIT_COMMAND_BYTES - 1);
    while (n && text->data[n - 1] == end)
        n--;
    for (size_t i = 0; i < n; i++) {
        if (!text->data[i])
            text->data[i] = ' ';
    }
    if (text->len)
        text->data[text->len = n] = '\0';
}

uint64_t krait_collector_image(int pid)
{
    KRAIT_AUTO_BUF stat = { 0 };
    read_proc_text(pid, "stat", '\n', &stat);
    const char *at = stat.len ? strrchr(stat.data, ')') : NULL;
    for (int field = 2; at && field < 28; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

void krait_proc_command(int pid, struct krait_buf *command)
{
    read_proc_text(pid, "cmdline", '\0', command);
}

void krait_proc_names_done(struct krait_proc_names *names)
{
    krait_buf_done(&names->comm);
    krait_buf_done(&names->command);
}

/* Returns whether these are the process's, and not those of a program that it executed meanwhile. Only where the image's
 * number was once what the process had said, another one tells that it executed one. */
static bool read_names(struct krait_collected_proc *proc, struct krait_proc_names *names)
{
    read_proc_text(proc->pid, "comm", '\n', &names->comm);
    read_proc_text(proc->pid, "cmdline", '\0', &names->command);
    uint64_t image = krait_collector_image(proc->pid);
    proc->executed = proc->is_known_image && image && image != proc->image;
    proc->is_known_image |= image == proc->image;
    return names->comm.len && names->command.len && image == proc->image;
}

void krait_proc_names_first(struct krait_collected_proc *proc, uint64_t image, struct krait_proc_names *names)
{
    proc->begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    proc->look_ns = proc->begin_ns + SOONEST_NS;
    proc->image = image;
    if (!read_names(proc, names))
        krait_proc_names_done(names);
}

void krait_proc_names_look(struct krait_collected_proc *proc)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (now < proc->look_ns)
        return;
    uint64_t age = KRAIT_MAX(now - proc->begin_ns, SOONEST_NS);
    proc->look_ns = now + KRAIT_MIN(age, KRAIT_NS_PER_S);
    KRAIT_CLEANUP(krait_proc_names_done) struct krait_proc_names names = { 0 };
    if (read_names(proc, &names))
        krait_tracedir_rename(proc->dir, names.comm.data, names.command.data);
}
