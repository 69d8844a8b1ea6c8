/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/statedump.h"

#include "base/buf.h"
#include "base/system_calls.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* ---- classes: lttng-modules 2.10, instrumentation/events/lttng-module/lttng-statedump.h ---- */

static const struct krait_kernel_field process_fields[] = {
    { "tid", KRAIT_KTYPE_I32 },     { "vtid", KRAIT_KTYPE_I32 },   { "pid", KRAIT_KTYPE_I32 },
    { "vpid", KRAIT_KTYPE_I32 },    { "ppid", KRAIT_KTYPE_I32 },   { "vppid", KRAIT_KTYPE_I32 },
    { "name", KRAIT_KTYPE_COMM },   { "type", KRAIT_KTYPE_I32 },   { "mode", KRAIT_KTYPE_I32 },
    { "submode", KRAIT_KTYPE_I32 }, { "status", KRAIT_KTYPE_I32 }, { "ns_level", KRAIT_KTYPE_I32 },
    { "ns_inum", KRAIT_KTYPE_U32 }, { "cpu", KRAIT_KTYPE_U32 },
};
static const struct krait_kernel_field cpu_fields[] = {
    { "architecture", KRAIT_KTYPE_STR }, { "cpu_id", KRAIT_KTYPE_U16 },      { "vendor", KRAIT_KTYPE_STR },
    { "model_name", KRAIT_KTYPE_STR },   { "physical_id", KRAIT_KTYPE_U16 }, { "core_id", KRAIT_KTYPE_U16 },
};
static const struct krait_kernel_field disk_fields[] = { { "dev", KRAIT_KTYPE_U32 },
                                                         { "diskname", KRAIT_KTYPE_STR } };
static const struct krait_kernel_field irq_fields[] = { { "irq", KRAIT_KTYPE_U32 },
                                                        { "name", KRAIT_KTYPE_STR },
                                                        { "action", KRAIT_KTYPE_STR } };
static const struct krait_kernel_field wait_fields[] = { { "tid", KRAIT_KTYPE_I32 },
                                                         { "call_name", KRAIT_KTYPE_STR },
                                                         { "cmd", KRAIT_KTYPE_U64 },
                                                         { "prev_state", KRAIT_KTYPE_I64 } };

static const struct {
    const char *name;
    const struct krait_kernel_field *fields;
    uint16_t field_count;
} events[KRAIT_STATEDUMP_EVENTS] = {
    [KRAIT_STATEDUMP_START] = { "lttng_statedump_start", NULL, 0 },
    [KRAIT_STATEDUMP_PROCESS] = { "lttng_statedump_process_state", process_fields,
                                  KRAIT_ARRAY_LEN(process_fields) },
    [KRAIT_STATEDUMP_WAIT] = { "krait_dumped_wait", wait_fields, KRAIT_ARRAY_LEN(wait_fields) },
    [KRAIT_STATEDUMP_CPU] = { "lttng_statedump_cpu_topology", cpu_fields, KRAIT_ARRAY_LEN(cpu_fields) },
    [KRAIT_STATEDUMP_DISK] = { "lttng_statedump_block_device", disk_fields, KRAIT_ARRAY_LEN(disk_fields) },
    [KRAIT_STATEDUMP_IRQ] = { "lttng_statedump_interrupt", irq_fields, KRAIT_ARRAY_LEN(irq_fields) },
    [KRAIT_STATEDUMP_END] = { "lttng_statedump_end", NULL, 0 },
};

int krait_statedump_declare(struct krait_statedump *dump, struct krait_kernel_classes *classes)
{
    for (int i = 0; i < KRAIT_STATEDUMP_EVENTS; i++) {
        int id =
            krait_kernel_classes_declare(classes, events[i].name, events[i].fields, events[i].field_count);
        if (id < 0)
            return id;
        dump->ids[i] = (uint16_t)id;
    }
    return 0;
}

/* ---- one event ---- */

struct writer {
    const struct krait_statedump *dump;
    struct krait_kernel_classes *classes;
    struct krait_kernel_stream *stream;
    const struct krait_clock *clock;
    struct krait_buf text; /* of the file at hand */
    int rc;
};

static void put_at(struct writer *w, uint64_t time, enum krait_statedump_event event, const void *payload,
                   size_t n)
{
    int rc;
    uint8_t *to =
        krait_kernel_stream_begin(w->stream, w->dump->ids[event], time, KRAIT_KERNEL_NO_TID, n, &rc);
    w->rc = w->rc ? w->rc : to ? rc : -ENOMEM;
    if (!to)
        return;
    if (n)
        memcpy(to, payload, n);
    krait_kernel_stream_end(w->stream, n);
}

static void put(struct writer *w, enum krait_statedump_event event, const void *payload, size_t n)
{
    put_at(w, krait_clock_now(w->clock), event, payload, n);
}

/* A payload of numbers and texts. */
static void put_buf(struct writer *w, enum krait_statedump_event event, const struct krait_buf *payload)
{
    if (!payload->failed)
        put(w, event, payload->data, payload->len);
}

static void add_text(struct krait_buf *to, const char *text)
{
    krait_buf_add(to, text, strlen(text) + 1);
}

static const char *read_text(struct krait_buf *text, const char *path)
{
    krait_buf_clear(text);
    return krait_buf_read_file(text, path) || !text->data ? "" : text->data;
}

/* A file of one short line; `otherwise` if there is none. */
static void add_line(struct krait_buf *to, struct krait_buf *text, const char *path, const char *otherwise)
{
    const char *line = read_text(text, path);
    size_t n = strcspn(line, "\n");
    krait_buf_str(to, n ? "" : otherwise);
    krait_buf_add(to, line, n);
    krait_buf_add(to, "", 1);
}

static uint16_t read_u16(struct krait_buf *text, const char *path)
{
    return (uint16_t)strtoul(read_text(text, path), NULL, 10);
}

/* ---- threads ---- */

/* LTTng's numbers: lttng-modules, src/lttng-statedump-impl.c. */
enum { USER_THREAD, KERNEL_THREAD };
enum { MODE_UNKNOWN = 5, SUBMODE_NONE = 0 };
enum { UNNAMED = 0, WAIT_CPU = 2, ZOMBIE = 4, WAIT = 5, DEAD = 7 };
#define PF_KTHREAD 0x00200000u /* linux/sched.h */

struct process_state {
    int32_t tid, vtid, pid, vpid, ppid, vppid;
    char name[16];
    int32_t type, mode, submode, status, ns_level;
    uint32_t ns_inum, cpu;
};
_Static_assert(sizeof(struct process_state) == 68, "the fields follow each other as process_fields says");

/* What a thread waits in. "NUMBER ARGUMENT1 ... ARGUMENT6 STACK PC", or without call "-1 STACK PC", or "running": proc(5). */
struct wait {
    int number; /* of the system call; -1: none */
    uint64_t arguments[6], stack;
};

static bool parse_wait(struct wait *to, const char *text)
{
    uint64_t *a = to->arguments;
    int n =
        sscanf(text, "%d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
               &to->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &to->stack);
    if (n == 3 && to->number == -1)
        to->stack = a[0];
    return n == 8 || (n == 3 && to->number == -1);
}

/* The kernel goes on with a call that a signal or a tracer has interrupted as restart_syscall(2), which has no arguments. The
 * kernel's function in which it waits says which call it was; these are all that it goes on with so. */
static const char *restarted(const char *function)
{
    static const char *const rows[][2] = { { "hrtimer_nanosleep", "clock_nanosleep" },
                                           { "do_nanosleep", "clock_nanosleep" },
                                           { "futex_", "futex" },
                                           { "poll_schedule_timeout", "poll" },
                                           { "do_poll", "poll" },
                                           { "do_sys_poll", "poll" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (strncmp(function, rows[i][0], strlen(rows[i][0])) == 0)
            return rows[i][1];
    }
    return "restart_syscall";
}

static void add_call_name(struct writer *w, struct krait_buf *to, int32_t pid, int32_t tid, int number)
{
    char path[80];
    const char *name = krait_system_call_name(number);
    if (number == SYS_restart_syscall) {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, tid);
        name = restarted(read_text(&w->text, path));
    }
    if (name)
        krait_buf_str(to, name);
    else if (number >= 0)
        krait_buf_fmt(to, "syscall_%d", number);
    krait_buf_add(to, "", 1);
}

/* The letter of proc(5) as sched_switch tells it: include/linux/sched.h. */
static int64_t prev_state_of(char state)
{
    return state == 'D' ? 0x2 : state == 'T' ? 0x4 : state == 't' ? 0x8 : 0x1;
}

/* A thread of a program, of which we have just read that it waits. The time is from before we read in which call: if it runs
 * since then, the kernel's events tell so. The file is there for those alone that may trace the process. */
static void put_wait(struct writer *w, int32_t pid, int32_t tid, char state)
{
    char path[80];
    struct wait wait;
    uint64_t time = krait_clock_now(w->clock);
    KRAIT_AUTO_BUF payload = { 0 };
    snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
    /* The numbers of a program of 32 bits are others. */
    if (!parse_wait(&wait, read_text(&w->text, path)) || wait.stack <= UINT32_MAX)
        return;
    int64_t prev_state = prev_state_of(state);
    krait_buf_add(&payload, &tid, sizeof(tid));
    add_call_name(w, &payload, pid, tid, wait.number);
    krait_buf_add(&payload, &wait.arguments[1], sizeof(wait.arguments[1]));
    krait_buf_add(&payload, &prev_state, sizeof(prev_state));
    if (!payload.failed)
        put_at(w, time, KRAIT_STATEDUMP_WAIT, payload.data, payload.len);
}

/* The letter of proc(5). Whoever is runnable waits for a CPU: who has one is seen at its next switch. */
static int32_t status_of(char state)
{
    static const struct {
        const char *letters;
        int32_t status;
    } rows[] = { { "R", WAIT_CPU }, { "SDTtI", WAIT }, { "Z", ZOMBIE }, { "Xx", DEAD } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(rows); i++) {
        if (state && strchr(rows[i].letters, state))
            return rows[i].status;
    }
    return UNNAMED;
}

/* /proc/PID/task/TID/stat: "TID (NAME) STATE PPID ... FLAGS ... PROCESSOR ..."; the name may hold anything. */
static bool parse_stat(struct process_state *to, char *letter, const char *text)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close[1] != ' ')
        return false;
    size_t n = KRAIT_MIN((size_t)(close - open - 1), sizeof(to->name) - 1);
    memcpy(to->name, open + 1, n);
    *letter = close[2];
    to->status = status_of(*letter);
    unsigned flags = 0;
    if (sscanf(close + 3, " %d %*d %*d %*d %*d %u", &to->ppid, &flags) != 2)
        return false;
    to->type = flags & PF_KTHREAD ? KERNEL_THREAD : USER_THREAD;
    const char *at = close + 1;
    for (int field = 2; at && field < 39; field++) /* processor is the 39th */
        at = strchr(at + 1, ' ');
    to->cpu = at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
    return true;
}

/* The last number of a line of `status` such as "NSpid:\t4711\t12", and how many there are. */
static int32_t last_number(const char *text, const char *key, int32_t otherwise, int32_t *count)
{
    const char *line = strstr(text, key);
    *count = 0;
    if (!line)
        return otherwise;
    line += strlen(key);
    for (char *end; *line && *line != '\n'; line = end) {
        long number = strtol(line, &end, 10);
        if (end == line)
            break;
        otherwise = (int32_t)number;
        ++*count;
    }
    return otherwise;
}

static void put_thread(struct writer *w, int32_t pid, int32_t tid, uint32_t ns_inum)
{
    struct process_state state = { .tid = tid, .pid = pid, .mode = MODE_UNKNOWN, .submode = SUBMODE_NONE };
    char path[80];
    char letter;
    int32_t levels;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
    if (!parse_stat(&state, &letter, read_text(&w->text, path)))
        return; /* it has ended meanwhile */
    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
    const char *status = read_text(&w->text, path);
    state.vtid = last_number(status, "\nNSpid:", tid, &levels);
    state.vpid = last_number(status, "\nNStgid:", pid, &levels);
    state.ns_level = levels > 0 ? levels - 1 : 0;
    state.vppid = state.ns_level ? 0 : state.ppid;
    state.ns_inum = ns_inum;
    krait_map_put(&w->classes->tgids, (uint32_t)tid, (uint32_t)pid);
    put(w, KRAIT_STATEDUMP_PROCESS, &state, sizeof(state));
    if (state.status == WAIT && state.type == USER_THREAD)
        put_wait(w, pid, tid, letter);
}

/* The numbers that are names in a folder. */
static void each_number(struct writer *w, const char *path, int32_t of,
                        void (*each)(struct writer *w, int32_t of, int32_t number, uint32_t data),
                        uint32_t data)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            each(w, of, (int32_t)strtol(entry->d_name, NULL, 10), data);
    }
    if (dir)
        closedir(dir);
}

static void put_process(struct writer *w, int32_t of, int32_t pid, uint32_t data)
{
    char path[64];
    struct stat ns;
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
    uint32_t inum = stat(path, &ns) == 0 ? (uint32_t)ns.st_ino : 0;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    each_number(w, path, pid, put_thread, inum);
}

/* ---- CPUs, disks, interrupts ---- */

static void cpu_info(struct krait_buf *to, struct krait_buf *text, const char *key)
{
    const char *line = strstr(read_text(text, "/proc/cpuinfo"), key);
    const char *colon = line ? strchr(line, ':') : NULL;
    if (colon && colon[1] == ' ')
        krait_buf_add(to, colon + 2, strcspn(colon + 2, "\n"));
    else
        krait_buf_str(to, "unknown");
    krait_buf_add(to, "", 1);
}

static void put_cpu(struct writer *w, uint16_t cpu)
{
    char path[96];
    KRAIT_AUTO_BUF payload = { 0 };
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
    uint16_t package = read_u16(&w->text, path);
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
    uint16_t core = read_u16(&w->text, path);
#if defined(__x86_64__)
    add_text(&payload, "x86");
#else
    add_text(&payload, "arm64");
#endif
    krait_buf_add(&payload, &cpu, sizeof(cpu));
    cpu_info(&payload, &w->text, "vendor_id");
    cpu_info(&payload, &w->text, "model name");
    krait_buf_add(&payload, &package, sizeof(package));
    krait_buf_add(&payload, &core, sizeof(core));
    put_buf(w, KRAIT_STATEDUMP_CPU, &payload);
}

static void put_cpus(struct writer *w)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < count; cpu++) {
        char path[64];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/topology", cpu);
        if (access(path, F_OK) == 0)
            put_cpu(w, (uint16_t)cpu);
    }
}

/* /proc/partitions: "major minor #blocks name". The kernel's own number of a device has 20 bits for minors. */
static void put_disks(struct writer *w)
{
    char *save = NULL;
    read_text(&w->text, "/proc/partitions");
    for (char *line = w->text.len ? strtok_r(w->text.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        unsigned major, minor;
        char name[64];
        KRAIT_AUTO_BUF payload = { 0 };
        if (sscanf(line, "%u %u %*u %63s", &major, &minor, name) != 3)
            continue;
        uint32_t dev = major << 20 | minor;
        krait_buf_add(&payload, &dev, sizeof(dev));
        add_text(&payload, name);
        put_buf(w, KRAIT_STATEDUMP_DISK, &payload);
    }
}

static void put_irq(struct writer *w, int32_t of, int32_t irq, uint32_t data)
{
    char path[80];
    KRAIT_AUTO_BUF payload = { 0 };
    snprintf(path, sizeof(path), "/sys/kernel/irq/%d/actions", irq);
    if (!read_text(&w->text, path)[0] || w->text.data[0] == '\n')
        return; /* nobody handles it */
    uint32_t number = (uint32_t)irq;
    krait_buf_add(&payload, &number, sizeof(number));
    snprintf(path, sizeof(path), "/sys/kernel/irq/%d/chip_name", irq);
    add_line(&payload, &w->text, path, "unknown");
    snprintf(path, sizeof(path), "/sys/kernel/irq/%d/actions", irq);
    add_line(&payload, &w->text, path, "");
    put_buf(w, KRAIT_STATEDUMP_IRQ, &payload);
}

int krait_statedump_write(const struct krait_statedump *dump, struct krait_kernel_classes *classes,
                          struct krait_kernel_stream *stream, const struct krait_clock *clock)
{
    struct writer w = { .dump = dump, .classes = classes, .stream = stream, .clock = clock };
    put(&w, KRAIT_STATEDUMP_START, NULL, 0);
    put_cpus(&w);
    put_disks(&w);
    each_number(&w, "/sys/kernel/irq", 0, put_irq, 0);
    each_number(&w, "/proc", 0, put_process, 0);
    krait_buf_done(&w.text);
    return w.rc;
}

int krait_statedump_end(const struct krait_statedump *dump, struct krait_kernel_stream *stream,
                        const struct krait_clock *clock)
{
    struct writer w = { .dump = dump, .stream = stream, .clock = clock };
    put(&w, KRAIT_STATEDUMP_END, NULL, 0);
    int rc = krait_kernel_stream_flush(stream);
    return w.rc ? w.rc : rc;
}
