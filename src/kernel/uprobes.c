/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/uprobes.h"

#include "kernel/tracefs.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define EVENTS "uprobe_events"
#define GROUP  "krait_"

void krait_uprobe_path(char *path, size_t size, uint32_t i)
{
    snprintf(path, size, GROUP "%d/u%u", (int)getpid(), i);
}

/* Without O_APPEND or O_TRUNC the file keeps what others have set: -EBUSY where it would not. */
static int write_line(int root, const char *line)
{
    KRAIT_AUTO_CLOSE int fd = openat(root, EVENTS, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n;
    do
        n = write(fd, line, strlen(line));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

static int add_probe(int root, const struct krait_kernel_probe *probe, uint32_t i)
{
    char path[64];
    KRAIT_AUTO_BUF line = { 0 };
    krait_uprobe_path(path, sizeof(path), i);
    krait_buf_fmt(&line, "p:%s %s:0x%llx", path, probe->path, (unsigned long long)probe->offset);
    if (probe->semaphore)
        krait_buf_fmt(&line, "(0x%llx)", (unsigned long long)probe->semaphore);
    krait_buf_str(&line, probe->arguments);
    krait_buf_char(&line, '\n');
    krait_buf_char(&line, '\0');
    return line.failed ? -ENOMEM : write_line(root, line.data);
}

int krait_uprobes_add(int root, const struct krait_kernel_probe *probes, uint32_t count,
                      struct krait_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        int rc = add_probe(root, &probes[i], i);
        if (!rc)
            continue;
        krait_uprobes_remove(root, i);
        if (rc == -ENOENT && faccessat(root, EVENTS, F_OK, 0))
            return krait_err_set(err, rc,
                                 "this kernel has no probes in programs; boot one with CONFIG_UPROBE_EVENTS");
        return krait_err_set(err, rc, "the kernel does not take the probe %s of %s: %s", probes[i].name,
                             probes[i].path, strerror(-rc));
    }
    return 0;
}

void krait_uprobes_remove(int root, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        char path[64], line[80];
        krait_uprobe_path(path, sizeof(path), i);
        snprintf(line, sizeof(line), "-:%s\n", path);
        write_line(root, line);
    }
}

/* "p:krait_4711/u0 /usr/bin/python3.11:0x..." of a process that is no more. */
static void sweep_line(int root, const char *text)
{
    static const char head[] = "p:" GROUP;
    char *end, line[80];
    if (strncmp(text, head, strlen(head)) != 0)
        return;
    long pid = strtol(text + strlen(head), &end, 10);
    bool is_dead = pid > 0 && pid <= INT32_MAX && *end == '/' && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
    int n = snprintf(line, sizeof(line), "-:%.*s\n", (int)strcspn(text + 2, " \n"), text + 2);
    if (is_dead && n < (int)sizeof(line))
        write_line(root, line);
}

void krait_uprobes_sweep(int root)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (krait_tracefs_read(root, EVENTS, &text) || !text.data)
        return;
    for (const char *line = text.data; *line; line += strcspn(line, "\n"), line += *line == '\n')
        sweep_line(root, line);
}
