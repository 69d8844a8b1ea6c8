/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/still.h"

#include <limits.h>
#include <string.h>

enum { MOVES = 3 };

/* Marks counts of records: no number of the kernel's files is as large. */
static const uint64_t RECORDS = UINT64_C(1) << 63;

/* -- files of proc -- */

static void close_files(struct krait_still_files *files)
{
    krait_switches_close(&files->switches);
    if (files->tid && files->stat >= 0)
        close(files->stat);
    if (files->tid && files->schedstat >= 0)
        close(files->schedstat);
    files->tid = 0;
}

void krait_still_done(struct krait_still *still)
{
    krait_still_leave(still);
    for (uint32_t i = 0; i < KRAIT_STILL_FILES; i++)
        close_files(&still->files[i]);
}

void krait_still_keep(struct krait_still *still, const struct krait_os_tasks *tasks)
{
    for (uint32_t i = 0; i < KRAIT_STILL_FILES; i++) {
        if (still->files[i].tid && !krait_tasks_find(tasks, still->files[i].tid))
            close_files(&still->files[i]);
    }
}

/* The thread's files, or the place for them: an unused one, else that of those that came first. */
static struct krait_still_files *find_files(struct krait_still *still, pid_t pid, pid_t tid)
{
    struct krait_still_files *unused = NULL;
    for (uint32_t i = 0; i < KRAIT_STILL_FILES; i++) {
        struct krait_still_files *files = &still->files[i];
        if (files->pid == pid && files->tid == tid)
            return files;
        unused = unused || files->tid ? unused : files;
    }
    return unused ? unused : &still->files[still->next_files++ % KRAIT_STILL_FILES];
}

/* A thread is read again and again: its files stay open. */
static void turn_to(struct krait_still *still, pid_t pid, pid_t tid)
{
    still->pid = pid;
    still->tid = tid;
    if (still->at && still->at->pid == pid && still->at->tid == tid)
        return;
    still->at = find_files(still, pid, tid);
    if (still->at->pid == pid && still->at->tid == tid)
        return;
    close_files(still->at);
    *still->at = (struct krait_still_files){ .pid = pid,
                                             .tid = tid,
                                             .stat = krait_task_open(pid, tid, "stat"),
                                             .schedstat = krait_task_open(pid, tid, "schedstat"),
                                             .cpu = -1 };
}

/* False if there is none: another thread may have the number later. */
static bool read_text(const struct krait_still *still, int fd, char *to, size_t size)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, to, size - 1, 0);
    to[n > 0 ? n : 0] = '\0';
    if (n <= 0)
        close_files(still->at);
    return n > 0;
}

/* -- what they say -- */

/* How often the kernel switched to the thread; 0: not known. */
static uint64_t read_schedstat(const struct krait_still *still)
{
    char text[128];
    int fd = still->at->tid ? still->at->schedstat : -1;
    const char *last = read_text(still, fd, text, sizeof(text)) ? strrchr(text, ' ') : NULL;
    return last ? strtoull(last, NULL, 10) : 0;
}

/* How often the kernel switched away from it. */
static uint64_t read_status(const struct krait_still *still)
{
    static const char *const keys[] = { "\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:" };
    char text[4096];
    uint64_t count = 0;
    krait_task_read(still->pid, still->tid, "status", text, sizeof(text));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(keys); i++) {
        const char *at = strstr(text, keys[i]);
        count += at ? strtoull(at + strlen(keys[i]), NULL, 10) : 0;
    }
    return count;
}

/* Field 3 of stat, its state, and what follows: proc(5). NULL: it is gone. */
static const char *read_stat(const struct krait_still *still, char *text, size_t size)
{
    int fd = still->at->tid ? still->at->stat : -1;
    const char *name_end = read_text(still, fd, text, size) ? strrchr(text, ')') : NULL;
    return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

/* The CPU that it belongs to. -EBUSY: it runs there, and krait could only wait until it does not (sched(7)). */
static int read_cpu(const struct krait_still *still, int *cpu, char *state)
{
    enum { STATE = 3, CPU = 39, POLICY = 41 }; /* fields of stat, from 1 */
    char text[1024];
    const char *at = read_stat(still, text, sizeof(text));
    if (at)
        *state = *at;
    for (int field = STATE; at && field < POLICY; field++) {
        at = strchr(at + 1, ' ');
        if (at && field + 1 == CPU)
            *cpu = (int)strtol(at, NULL, 10);
    }
    if (!at)
        return -ESRCH;
    int policy = (int)strtol(at, NULL, 10);
    bool first = policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
    return first && *state == 'R' ? -EBUSY : 0;
}

/* Whether krait is bound to that CPU, and there. Others can undo it: who turns the CPU off, or changes krait's cpuset. */
static bool is_on(const struct krait_still *still, int cpu)
{
    return still->moved && still->cpu == cpu && sched_getcpu() == cpu;
}

static int move_to(struct krait_still *still, int cpu)
{
    cpu_set_t sets[KRAIT_CPU_SETS];
    if (is_on(still, cpu))
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

/* -- records of its switches -- */

/* A reading by records saves a thread that would run some 15 us, and each of its switches costs it 0.4 us more; one by registers
 * saves it a stop. */
static void weigh(struct krait_still_files *at, uint64_t count)
{
    enum { MEAN = 16, OFTEN = 20, OFTEN_REGISTERS = 100, WAIT = 1000 };
    uint64_t switches =
        KRAIT_MIN(krait_switches_between(&at->switches, at->seen, count), (uint64_t)UINT16_MAX);
    uint32_t most = at->switches.registers ? OFTEN_REGISTERS : OFTEN;
    at->seen = count;
    at->often += (uint32_t)switches - at->often / MEAN;
    if (at->often > most * MEAN)
        at->wait = WAIT; /* the proof that they are needed for comes first */
}

/* Opens or closes them. There is none yet where they have just been opened. */
static void want_records(const struct krait_still *still)
{
    struct krait_still_files *at = still->at;
    if (!still->records || at->wait || still->registers != at->registers)
        krait_switches_close(&at->switches);
    at->registers = still->registers;
    at->wait -= at->wait > 0;
    if (at->switches.page || !still->records || at->wait)
        return;
    at->seen = at->often = 0; /* their count begins at 0 again */
    if (!(still->registers && krait_switches_open(&at->switches, still->tid, true)) &&
        !krait_switches_open(&at->switches, still->tid, false))
        at->wait = UINT32_MAX;
}

/* It is on no CPU: it waits for something, or for one. krait keeps it from one alone. */
static int note_away(struct krait_still *still, const struct krait_switch *last)
{
    still->count = last->count | RECORDS;
    still->holds = still->state == 'R' && sched_getcpu() == last->cpu;
    if (still->state == 'R')
        weigh(still->at, last->count);
    return 0;
}

/* -ENODATA: there are none. */
static int begin_by_records(struct krait_still *still)
{
    struct krait_still_files *at = still->at;
    struct krait_switch last;
    want_records(still);
    for (int i = 0; i < MOVES; i++) {
        int cpu = -1;
        if (!krait_switches_last(&at->switches, &last))
            return -ENODATA;
        still->state = 'R';
        int rc = last.away && last.ready ? 0 : read_cpu(still, &cpu, &still->state);
        if (last.away)
            return rc && rc != -EBUSY ? rc : note_away(still, &last);
        if (!rc && is_on(still, last.cpu)) /* it cannot run here too: the records have ended before it did */
            krait_switches_close(&at->switches);
        rc = rc ? rc : move_to(still, last.cpu);
        if (rc)
            return rc;
    }
    return -EAGAIN;
}

/* -- the proof -- */

/* The count that krait_still_count has just read; otherwise reads it. */
static uint64_t take_count(struct krait_still *still)
{
    uint64_t count = still->at->count;
    still->at->count = 0;
    return count ? count : read_schedstat(still);
}

/* Reading stat costs more than all else here. If krait is already on the thread's last CPU, it reads it only once. */
static int begin_by_files(struct krait_still *still)
{
    int cpu = still->at->cpu;
    int rc = is_on(still, cpu) ? 0 : read_cpu(still, &cpu, &still->state);
    for (int i = 0; i < MOVES && !rc; i++) {
        int now = -1;
        rc = move_to(still, cpu);
        if (rc)
            break;
        still->count = take_count(still);
        still->from_status = !still->count;
        if (still->from_status)
            still->count = read_status(still);
        bool is_there = is_on(still, cpu); /* after the count: what runs there later is counted */
        rc = read_cpu(still, &now, &still->state);
        still->at->cpu = rc ? -1 : now;
        still->holds = still->state == 'R';
        if (!rc && now == cpu && is_there)
            return 0;
        cpu = now;
    }
    return rc ? rc : -EAGAIN;
}

int krait_still_begin(struct krait_still *still, pid_t pid, pid_t tid)
{
    turn_to(still, pid, tid);
    still->count = 0;
    still->from_status = still->holds = false;
    int rc = begin_by_records(still);
    return rc == -ENODATA ? begin_by_files(still) : rc;
}

uint64_t krait_still_count(struct krait_still *still, pid_t pid, pid_t tid)
{
    struct krait_switch last;
    turn_to(still, pid, tid);
    if (krait_switches_last(&still->at->switches, &last))
        return last.count | RECORDS;
    return still->at->count = read_schedstat(still);
}

char krait_still_state(struct krait_still *still, pid_t pid, pid_t tid)
{
    char text[1024];
    turn_to(still, pid, tid);
    const char *state = read_stat(still, text, sizeof(text));
    return state ? *state : '\0';
}

static bool is_same(const struct krait_still *still)
{
    int cpu = -1;
    char state;
    struct krait_switch last;
    if (still->count & RECORDS)
        return krait_switches_last(&still->at->switches, &last) && (last.count | RECORDS) == still->count;
    if (still->from_status)
        return !read_cpu(still, &cpu, &state) && cpu == still->cpu && read_status(still) == still->count;
    return read_schedstat(still) == still->count;
}

bool krait_still_tells(const struct krait_still *still)
{
    return still->at->switches.registers;
}

bool krait_still_registers(const struct krait_still *still, struct krait_registers *registers)
{
    return still->count & RECORDS && krait_switches_registers(&still->at->switches, registers);
}

bool krait_still_end(const struct krait_still *still)
{
    return is_same(still) && (still->count & RECORDS || is_on(still, still->cpu));
}

void krait_still_leave(struct krait_still *still)
{
    if (still->moved)
        sched_setaffinity(0, sizeof(still->home), still->home);
    still->moved = still->holds = false;
}
