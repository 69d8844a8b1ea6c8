/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/thread.h"

#include "base/array.h"
#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

/* Reads a file of proc, at most size - 1 bytes of it; "" if it cannot be read. */
static void read_proc(char *to, size_t size, const char *path)
{
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    size_t n = file ? fread(to, 1, size - 1, file) : 0;
    to[n] = '\0';
}

/* -- threads -- */

int krait_task_open(pid_t pid, pid_t tid, const char *name)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

ssize_t krait_task_read(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
    KRAIT_AUTO_CLOSE int fd = krait_task_open(pid, tid, name);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[KRAIT_MAX(n, (ssize_t)0)] = '\0';
    return n < 0 ? -errno : n;
}

static bool read_stat(struct krait_os_task *task, pid_t pid)
{
    char text[512];
    krait_task_read(pid, task->tid, "stat", text, sizeof(text));
    const char *name = strchr(text, '('), *end = strrchr(text, ')');
    if (!name || !end || !end[1])
        return false;
    task->state = end[2];
    snprintf(task->name, sizeof(task->name), "%.*s", (int)(end - name - 1), name + 1);
    return true;
}

void krait_task_read_call(struct krait_os_task *task, pid_t pid)
{
    char text[256];
    unsigned long long arg;
    krait_task_read(pid, task->tid, "syscall", text, sizeof(text));
    task->call = -1;
    if (strncmp(text, "running", strlen("running")) == 0) /* also if it is only on its way to sleep */
        task->state = 'R';
    if (sscanf(text, "%d %llx", &task->call, &arg) == 2)
        task->arg = arg;
    krait_task_read(pid, task->tid, "wchan", task->kernel_function, sizeof(task->kernel_function));
    if (strcmp(task->kernel_function, "0") == 0)
        task->kernel_function[0] = '\0';
}

static void read_inner(struct krait_os_task *task, pid_t pid)
{
    char text[4096];
    krait_task_read(pid, task->tid, "status", text, sizeof(text));
    const char *line = strstr(text, "\nNSpid:");
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    task->inner = task->tid;
    while (end && end > line && end[-1] != '\t' && end[-1] != ' ')
        end--;
    if (end && end > line)
        task->inner = (pid_t)strtol(end, NULL, 10);
}

static int by_tid(const void *a, const void *b)
{
    const struct krait_os_task *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

int krait_tasks_read(struct krait_os_tasks *tasks, pid_t pid, bool with_calls)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return -ESRCH;
    int rc = 0;
    tasks->count = 0;
    for (struct dirent *entry; !rc && (entry = readdir(dir));) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid <= 0)
            continue;
        if (!KRAIT_GROW(tasks->items, tasks->cap, tasks->count + 1)) {
            rc = -ENOMEM;
            continue;
        }
        struct krait_os_task *task = &tasks->items[tasks->count++];
        *task = (struct krait_os_task){
            .tid = tid, .inner = tid, .call = -1, .read_ns = krait_clock_ns(CLOCK_MONOTONIC)
        };
        if (!read_stat(task, pid)) { /* it has ended */
            tasks->count--;
            continue;
        }
        if (with_calls)
            krait_task_read_call(task, pid);
        if (tasks->count == 1 || tasks->items[0].inner != tasks->items[0].tid) /* all are in one namespace */
            read_inner(task, pid);
    }
    closedir(dir);
    qsort(tasks->items, tasks->count, sizeof(*tasks->items), by_tid);
    return rc ? rc : tasks->count ? 0 : -ESRCH;
}

const struct krait_os_task *krait_tasks_find(const struct krait_os_tasks *tasks, pid_t tid)
{
    uint32_t at = (uint32_t)KRAIT_PARTITION_POINT(i, tasks->count, tasks->items[i].tid < tid);
    return at < tasks->count && tasks->items[at].tid == tid ? &tasks->items[at] : NULL;
}

/* -- processes -- */

void krait_task_command(struct krait_buf *out, pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    size_t n = file ? fread(text, 1, sizeof(text), file) : 0;
    while (n && !text[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        krait_buf_char(out, text[i] ? text[i] : ' ');
}

bool krait_task_times(pid_t pid, struct krait_task_times *times)
{
    char path[64], text[512];
    unsigned long long user, kernel, child_user, child_kernel;
    uint64_t tick_ns = KRAIT_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    read_proc(text, sizeof(text), path);
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %u",
                       &user, &kernel, &child_user, &child_kernel, &times->threads) != 5)
        return false;
    times->own = (user + kernel) * tick_ns;
    times->children = (child_user + child_kernel) * tick_ns;
    return true;
}

uint64_t krait_task_age(pid_t pid)
{
    char path[64], text[512];
    unsigned long long ticks;
    uint64_t tick_ns = KRAIT_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), now = krait_clock_ns(CLOCK_BOOTTIME);
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    read_proc(text, sizeof(text), path);
    const char *end = strrchr(text, ')'); /* the begin is field 22: proc(5) */
    if (!end ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ticks) != 1)
        return UINT64_MAX;
    return now - KRAIT_MIN(ticks * tick_ns, now);
}

/* By lines: the one of the groups, of which there may be thousands, stands before most others. */
long krait_task_number(pid_t pid, const char *name)
{
    char path[64], line[256];
    size_t n = strlen(name);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return strtol(line + n + 1, NULL, 10);
    }
    return 0;
}

uint64_t krait_task_memory(pid_t pid)
{
    char path[64], text[128];
    unsigned long long pages;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    read_proc(text, sizeof(text), path);
    return sscanf(text, "%*u %llu", &pages) == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

bool krait_task_has_ended(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    read_proc(text, sizeof(text), path);
    const char *end = strrchr(text, ')'); /* " Z 1 ..." follows: proc(5) */
    return !end || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X';
}

static pid_t parent_of(pid_t pid)
{
    char path[64], text[512];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    read_proc(text, sizeof(text), path);
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static bool is_in(const struct krait_pids *pids, uint32_t from, pid_t pid)
{
    for (uint32_t i = from; i < pids->count; i++) {
        if (pids->items[i] == pid)
            return true;
    }
    return false;
}

static int add_pid(struct krait_pids *pids, pid_t pid)
{
    if (!KRAIT_GROW(pids->items, pids->cap, pids->count + 1))
        return -ENOMEM;
    pids->items[pids->count++] = pid;
    return 0;
}

/* One walk over all processes for each generation: a child may have a smaller number than its parent. */
int krait_pids_add_children(struct krait_pids *pids, pid_t pid)
{
    uint32_t first = pids->count, before;
    int rc = 0;
    do {
        before = pids->count;
        DIR *dir = opendir("/proc");
        for (struct dirent *entry; !rc && dir && (entry = readdir(dir));) {
            pid_t child = (pid_t)strtol(entry->d_name, NULL, 10);
            pid_t parent = child > 0 && !is_in(pids, first, child) ? parent_of(child) : 0;
            if (parent > 0 && (parent == pid || is_in(pids, first, parent)))
                rc = add_pid(pids, child);
        }
        if (dir)
            closedir(dir);
    } while (!rc && pids->count > before);
    return rc;
}

/* What a thread has started, as the kernel lists it: proc(5), of /proc/PID/task/TID/children. */
static int add_children_of_thread(struct krait_pids *pids, pid_t pid, const char *tid)
{
    char path[96];
    int child, rc = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", pid, tid);
    KRAIT_AUTO_FILE FILE *file = fopen(path, "re");
    while (file && !rc && fscanf(file, "%d", &child) == 1)
        rc = is_in(pids, 0, child) ? 0 : add_pid(pids, child);
    return rc;
}

int krait_pids_add_direct(struct krait_pids *pids, pid_t pid)
{
    char path[64];
    int rc = 0;
    if (access("/proc/thread-self/children", F_OK) < 0) /* CONFIG_PROC_CHILDREN */
        return -ENOSYS;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; !rc && dir && (entry = readdir(dir));)
        rc = *entry->d_name == '.' ? 0 : add_children_of_thread(pids, pid, entry->d_name);
    if (dir)
        closedir(dir);
    return rc;
}
