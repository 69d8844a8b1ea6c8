/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/still.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Reads a file of /proc/PID/task/TID; false if there is none. */
static bool read_file(const struct krait_still *still, const char *name, char *to, size_t size)
{
    char path[96];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", still->pid, still->tid, name);
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* How often the kernel switched to the thread; 0: not known. */
static uint64_t read_schedstat(const struct krait_still *still)
{
    char text[128];
    unsigned long long count = 0;
    return read_file(still, "schedstat", text, sizeof(text)) && sscanf(text, "%*u %*u %llu", &count) == 1
               ? count
               : 0;
}

/* How often the kernel switched away from it. */
static uint64_t read_status(const struct krait_still *still)
{
    static const char *const keys[] = { "\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:" };
    char text[4096];
    uint64_t count = 0;
    if (!read_file(still, "status", text, sizeof(text)))
        return 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(keys); i++) {
        const char *at = strstr(text, keys[i]);
        count += at ? strtoull(at + strlen(keys[i]), NULL, 10) : 0;
    }
    return count;
}

/* The CPU that it belongs to. -EBUSY: it runs there, and krait could only wait until it does not (sched(7)). */
static int read_cpu(const struct krait_still *still, int *cpu)
{
    enum { STATE = 3, CPU = 39, POLICY = 41 }; /* fields of stat, from 1: proc(5) */
    char text[1024];
    int policy = 0;
    char state = '?';
    const char *at = read_file(still, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
    at = at ? strchr(at, ' ') : NULL;
    if (at)
        state = at[1];
    for (int field = STATE; at && field < CPU; field++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, " %d %*d %d", cpu, &policy) != 2)
        return -ESRCH;
    bool first = policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
    return first && state == 'R' ? -EBUSY : 0;
}

static int move_to(struct krait_still *still, int cpu)
{
    cpu_set_t sets[KRAIT_CPU_SETS];
    if (still->moved && cpu == still->cpu)
        return 0;
    if (!still->moved && sched_getaffinity(0, sizeof(still->home), still->home))
        return -errno;
    if ((size_t)cpu >= sizeof(sets) * CHAR_BIT)
        return -EINVAL;
    CPU_ZERO_S(sizeof(sets), sets);
    CPU_SET_S((size_t)cpu, sizeof(sets), sets);
    if (sched_setaffinity(0, sizeof(sets), sets))
        return -errno;
    still->moved = true;
    still->cpu = cpu;
    return 0;
}

int krait_still_begin(struct krait_still *still, pid_t pid, pid_t tid)
{
    enum { MOVES = 3 };
    int cpu = -1;
    still->pid = pid;
    still->tid = tid;
    int rc = read_cpu(still, &cpu);
    for (int i = 0; i < MOVES && !rc; i++) {
        int now = -1;
        rc = move_to(still, cpu);
        if (rc)
            break;
        still->count = read_schedstat(still);
        still->from_status = !still->count;
        if (still->from_status)
            still->count = read_status(still);
        rc = read_cpu(still, &now);
        if (!rc && now == cpu)
            return 0;
        cpu = now;
    }
    return rc ? rc : -EAGAIN;
}

bool krait_still_end(const struct krait_still *still)
{
    int cpu = -1;
    if (!still->from_status)
        return read_schedstat(still) == still->count;
    return !read_cpu(still, &cpu) && cpu == still->cpu && read_status(still) == still->count;
}

void krait_still_leave(struct krait_still *still)
{
    if (still->moved)
        sched_setaffinity(0, sizeof(still->home), still->home);
    still->moved = false;
}
