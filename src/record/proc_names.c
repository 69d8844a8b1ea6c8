/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes are called. A program may rename itself: by prctl(PR_SET_NAME), or by writing over its
 * command line, as setproctitle does. Nothing tells of that, so it is looked for: soon after the process has
 * begun, and then ever more rarely, down to once a second.
 */
#include "record/collector_inside.h"

#include "base/map.h"

#include <string.h>

#define SOONEST_NS (10 * KRAIT_NS_PER_MS)

/* /proc/PID/NAME with its NULs and newlines made blanks; empty when the process is gone. */
static void read_proc_text(int pid, const char *name, struct krait_buf *text)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    krait_buf_read_file(text, path);
    while (text->len && (text->data[text->len - 1] == '\0' || text->data[text->len - 1] == '\n'))
        text->data[--text->len] = '\0';
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\0' || text->data[i] == '\n')
            text->data[i] = ' ';
    }
}

/* What stays as long as the process executes nothing else: where its stack begins, which is another place for
 * each image (proc(5), the 28th number of stat). 0 where that is not to be known. */
static uint64_t read_image(int pid)
{
    KRAIT_AUTO_BUF stat = { 0 };
    read_proc_text(pid, "stat", &stat);
    const char *at = stat.len ? strrchr(stat.data, ')') : NULL;
    for (int field = 2; at && field < 28; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t hash_names(const struct krait_proc_names *names)
{
    uint64_t comm = krait_hash_bytes(names->comm.data, names->comm.len);
    return krait_hash_u64(comm) ^ krait_hash_bytes(names->command.data, names->command.len);
}

static void read_names(int pid, struct krait_proc_names *names)
{
    read_proc_text(pid, "comm", &names->comm);
    read_proc_text(pid, "cmdline", &names->command);
}

void krait_proc_names_done(struct krait_proc_names *names)
{
    krait_buf_done(&names->comm);
    krait_buf_done(&names->command);
}

void krait_proc_names_first(struct krait_collected_proc *proc, struct krait_proc_names *names)
{
    proc->begin_ns = krait_clock_ns(CLOCK_MONOTONIC);
    proc->look_ns = proc->begin_ns + SOONEST_NS;
    proc->image = read_image(proc->pid);
    read_names(proc->pid, names);
    proc->names = hash_names(names);
}

void krait_proc_names_look(struct krait_collected_proc *proc)
{
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (now < proc->look_ns)
        return;
    uint64_t age = KRAIT_MAX(now - proc->begin_ns, SOONEST_NS);
    proc->look_ns = now + KRAIT_MIN(age, KRAIT_NS_PER_S);
    KRAIT_CLEANUP(krait_proc_names_done) struct krait_proc_names names = { 0 };
    read_names(proc->pid, &names);
    uint64_t hash = hash_names(&names);
    if (!names.comm.len || !names.command.len || hash == proc->names || read_image(proc->pid) != proc->image)
        return;
    proc->names = hash;
    krait_tracedir_rename(proc->dir, names.comm.data, names.command.data);
}
