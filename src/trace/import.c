/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a recording: folders, metadata, definitions, and the heads of all packets.
 */
#include "trace/import.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/shell.h"
#include "ctf/meta/open.h"
#include "event/event.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* Sorted names in a folder, without those that begin with a dot. */
struct names {
    struct dirent **entries;
    int count;
};

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int names_read(struct names *names, const char *dir)
{
    names->count = scandir(dir, &names->entries, not_hidden, versionsort);
    return names->count < 0 ? -errno : 0;
}

static void names_done(struct names *names)
{
    for (int i = 0; i < names->count; i++)
        free(names->entries[i]);
    free(names->entries);
}

static bool is_file(const char *dir, const char *name)
{
    KRAIT_AUTO_FREE char *path = NULL;
    struct stat st;
    return asprintf(&path, "%s/%s", dir, name) > 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

uint32_t krait_trace_intern(struct krait_trace *trace, const struct krait_func *func)
{
    struct krait_trace_impl *impl = trace->impl;
    KRAIT_AUTO_BUF key = { 0 };
    krait_buf_fmt(&key, "%d %u %u %u ", func->kind, func->line, func->site_func, func->site_line);
    size_t module = key.len;
    krait_buf_add(&key, func->module, strlen(func->module) + 1);
    size_t name = key.len;
    krait_buf_add(&key, func->name, strlen(func->name) + 1);
    size_t file = key.len;
    krait_buf_str(&key, func->file);
    if (key.failed || !KRAIT_GROW(trace->funcs, impl->func_cap, trace->func_count + 1))
        return KRAIT_NO_ID;
    uint32_t id = krait_strtab_add(&impl->keys, key.data, key.len);
    if (id == KRAIT_NO_ID || id < trace->func_count)
        return id;
    const char *text = impl->keys.texts[id]; /* the strings live in the key */
    trace->funcs[id] = *func;
    trace->funcs[id].module = text + module;
    trace->funcs[id].name = text + name;
    trace->funcs[id].file = text + file;
    trace->funcs[id].base = id;
    trace->func_count = id + 1;
    if (func->site_func != KRAIT_NO_ID || func->site_line) {
        struct krait_func base = *func;
        base.site_func = KRAIT_NO_ID;
        base.site_line = 0;
        uint32_t base_id = krait_trace_intern(trace, &base);
        trace->funcs[id].base = base_id == KRAIT_NO_ID ? id : base_id;
    }
    return id;
}

static int intern_unknown(struct krait_trace *trace)
{
    struct krait_func func = { .name = "?", .module = "", .file = "", .site_func = KRAIT_NO_ID };
    func.kind = KRAIT_FUNC_PYTHON;
    bool ok = krait_trace_intern(trace, &func) == KRAIT_FUNC_UNKNOWN_PYTHON;
    func.kind = KRAIT_FUNC_C;
    return ok && krait_trace_intern(trace, &func) == KRAIT_FUNC_UNKNOWN_C ? 0 : -ENOMEM;
}

static uint64_t file_bytes(const char *dir, const char *name)
{
    KRAIT_AUTO_FREE char *path = NULL;
    struct stat st;
    return asprintf(&path, "%s/%s", dir, name) > 0 && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Beside the processes' folders lies what `krait record --kernel` wrote. It is no process, and no damage. */
enum { KERNEL_PART = -EMEDIUMTYPE };

static int check_metadata(const struct krait_ctf_metadata *metadata, const char *dir, struct krait_err *err)
{
    const char *tracer = krait_ctf_env_text(metadata, "tracer_name", "another tracer");
    if (strcmp(krait_ctf_env_text(metadata, "domain", ""), "kernel") == 0)
        return krait_err_set(
            err, KERNEL_PART,
            "%s: recorded in the kernel, no process's; `krait states` and `krait cat` read it", dir);
    if (strcmp(tracer, "krait") != 0)
        return krait_err_set(err, -EINVAL, "%s: recorded by %s, not by krait; `krait cat` reads it", dir,
                             tracer);
    int64_t major = krait_ctf_env_int(metadata, "krait_format_major", 0);
    if (major != KRAIT_FORMAT_MAJOR)
        return krait_err_set(
            err, -EINVAL, "%s: its format is version %lld, this krait reads %d; use the krait that wrote it",
            dir, (long long)major, KRAIT_FORMAT_MAJOR);
    if (!metadata->has_uuid || !metadata->clock_count)
        return krait_err_set(err, -EBADMSG, "%s/metadata: no %s in it", dir,
                             metadata->has_uuid ? "clock" : "uuid");
    return 0;
}

/* What the metadata says of the process: what it was called last. The definitions know the rest better. */
static int fill_process(struct krait_trace *trace, const struct krait_ctf_metadata *metadata,
                        struct krait_process *process, struct krait_image *image)
{
    struct krait_arena *arena = &trace->impl->arena;
    const struct krait_ctf_clock *clock = metadata->clocks[0];
    krait_ticks_init(&image->clock, clock->freq, (uint64_t)clock->offset_s, clock->offset);
    memcpy(image->uuid, metadata->uuid, sizeof(image->uuid));
    image->has_no_gil_waits = krait_ctf_env_int(metadata, "gil_waits", 1) == 0;
    *process = (struct krait_process){
        .pid = (uint32_t)krait_ctf_env_int(metadata, "vpid", 0),
        .name = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "procname", "")),
        .command = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "command", "")),
        .host = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "hostname", "")),
        .dir = image->dir,
        .runtime = "",
        .origin = "",
        .end = "",
        .end_status = -1,
    };
    return process->name && process->command && process->host ? 0 : -ENOMEM;
}

/* The heads of a thread's packets: when it lived, who it is, what it lost. */
static int index_stream(struct krait_trace *trace, uint32_t process, const char *name)
{
    struct krait_trace_impl *impl = trace->impl;
    struct krait_image *image = &impl->images[process];
    char *path = krait_arena_fmt(&impl->arena, "%s/%s", image->dir, name);
    uint32_t cap = impl->thread_cap;
    if (!path || !KRAIT_GROW(trace->threads, cap, trace->thread_count + 1) ||
        !KRAIT_GROW(impl->streams, impl->thread_cap, trace->thread_count + 1))
        return -ENOMEM;
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    struct krait_packets packets;
    struct krait_err err;
    if (krait_packets_open(&packets, path, image->uuid, &err)) {
        krait_damage_say(&damage, "%s", err.text);
        return 0;
    }
    trace->bytes += packets.size;
    struct krait_thread thread = { .process = process, .name = "", .begin_ns = UINT64_MAX };
    struct krait_packet packet;
    uint64_t discarded = 0;
    while (krait_packets_next(&packets, &packet, &damage)) {
        thread.tid = packet.head.vtid;
        thread.begin_ns =
            KRAIT_MIN(thread.begin_ns, krait_ticks_ns(&image->clock, packet.head.timestamp_begin));
        thread.end_ns = KRAIT_MAX(thread.end_ns, krait_ticks_ns(&image->clock, packet.head.timestamp_end));
        discarded = packet.head.events_discarded;
        krait_packets_release(&packets);
    }
    krait_packets_close(&packets);
    if (thread.begin_ns == UINT64_MAX) /* no packet at all */
        return 0;
    image->discarded += discarded;
    impl->streams[trace->thread_count] = path;
    trace->threads[trace->thread_count++] = thread;
    return 0;
}

struct thread_order {
    struct krait_thread thread;
    char *stream;
};

static int by_begin(const void *a, const void *b)
{
    const struct thread_order *x = a, *y = b;
    return (x->thread.begin_ns > y->thread.begin_ns) - (x->thread.begin_ns < y->thread.begin_ns);
}

static int by_tid_and_begin(const void *a, const void *b)
{
    const struct krait_thread *x = *(struct krait_thread *const *)a, *y = *(struct krait_thread *const *)b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static int sort_threads(struct krait_trace *trace, uint32_t first)
{
    uint32_t n = trace->thread_count - first;
    KRAIT_AUTO_FREE struct thread_order *order = calloc(n + 1, sizeof(*order));
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct thread_order){ trace->threads[first + i], trace->impl->streams[first + i] };
    qsort(order, n, sizeof(*order), by_begin);
    for (uint32_t i = 0; i < n; i++) {
        trace->threads[first + i] = order[i].thread;
        trace->impl->streams[first + i] = order[i].stream;
    }
    return 0;
}

/* The thread that a naming means: of those with its tid the last that had begun by then, or else the first.
 */
static struct krait_thread *named_thread(struct krait_thread **sorted, uint32_t n,
                                         const struct krait_naming *naming)
{
    uint32_t low = 0, high = n;
    while (low < high) { /* first that is after (tid, t) */
        uint32_t mid = low + (high - low) / 2;
        bool after = sorted[mid]->tid > naming->tid ||
                     (sorted[mid]->tid == naming->tid && sorted[mid]->begin_ns > naming->t_ns);
        high = after ? mid : high;
        low = after ? low : mid + 1;
    }
    if (low && sorted[low - 1]->tid == naming->tid)
        return sorted[low - 1];
    return low < n && sorted[low]->tid == naming->tid ? sorted[low] : NULL;
}

static int name_threads(struct krait_trace *trace, uint32_t first, const struct krait_image *image)
{
    uint32_t n = trace->thread_count - first;
    KRAIT_AUTO_FREE struct krait_thread **sorted = calloc(n + 1, sizeof(struct krait_thread *));
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = &trace->threads[first + i];
    qsort(sorted, n, sizeof(*sorted), by_tid_and_begin);
    for (uint32_t i = 0; i < image->naming_count; i++) {
        struct krait_thread *thread = named_thread(sorted, n, &image->namings[i]);
        if (thread)
            thread->name = image->namings[i].name;
    }
    return 0;
}

static int index_threads(struct krait_trace *trace, uint32_t process)
{
    struct names names;
    int rc = names_read(&names, trace->impl->images[process].dir);
    uint32_t first = trace->thread_count;
    for (int i = 0; !rc && i < names.count; i++) {
        if (strncmp(names.entries[i]->d_name, "thread-", strlen("thread-")) == 0)
            rc = index_stream(trace, process, names.entries[i]->d_name);
    }
    names_done(&names);
    rc = rc ? rc : sort_threads(trace, first);
    return rc ? rc : name_threads(trace, first, &trace->impl->images[process]);
}

/* Of the process and of its threads, of which `first` is the first. */
static void set_times(struct krait_trace *trace, uint32_t index, uint32_t first)
{
    struct krait_process *process = &trace->processes[index];
    const struct krait_image *image = &trace->impl->images[index];
    process->begin_ns = image->start_ns ? image->start_ns : UINT64_MAX;
    process->end_ns = image->exit_ns;
    for (uint32_t i = first; i < trace->thread_count; i++) {
        struct krait_thread *thread = &trace->threads[i];
        if (image->followed)
            thread->end_ns = KRAIT_MAX(KRAIT_MIN(thread->end_ns, image->exit_ns), thread->begin_ns);
        process->begin_ns = KRAIT_MIN(process->begin_ns, thread->begin_ns);
        process->end_ns = KRAIT_MAX(process->end_ns, thread->end_ns);
    }
    if (process->begin_ns == UINT64_MAX)
        process->begin_ns = process->end_ns;
    process->end_ns = KRAIT_MAX(process->end_ns, process->begin_ns);
}

/* Folders of processes, each once, whatever paths lead to it. */
struct folders {
    struct folder {
        char *dir;
        dev_t dev;
        ino_t ino;
    } * items;
    uint32_t count, cap;
};

static void folders_done(struct folders *folders)
{
    for (uint32_t i = 0; i < folders->count; i++)
        free(folders->items[i].dir);
    free(folders->items);
}

static int folders_add(struct folders *folders, const char *dir)
{
    struct stat st;
    if (stat(dir, &st) < 0)
        return -errno;
    for (uint32_t i = 0; i < folders->count; i++) {
        if (folders->items[i].dev == st.st_dev && folders->items[i].ino == st.st_ino)
            return 0;
    }
    if (!KRAIT_GROW(folders->items, folders->cap, folders->count + 1))
        return -ENOMEM;
    char *copy = strdup(dir);
    if (!copy)
        return -ENOMEM;
    folders->items[folders->count++] = (struct folder){ copy, st.st_dev, st.st_ino };
    return 0;
}

static bool is_recording(const char *dir)
{
    struct names names;
    if (names_read(&names, dir))
        return false;
    bool found = false;
    for (int i = 0; i < names.count && !found; i++) {
        KRAIT_AUTO_FREE char *inner = NULL;
        found = asprintf(&inner, "%s/%s", dir, names.entries[i]->d_name) > 0 &&
                is_file(inner, KRAIT_FILE_METADATA);
    }
    names_done(&names);
    return found;
}

/* Why a folder is none; where recordings lie in it, which. Sets err and returns its code. */
static int no_recording(const char *path, const struct names *names, struct krait_err *err)
{
    enum { SHOWN = 8 };
    KRAIT_AUTO_BUF list = { 0 };
    uint32_t found = 0;
    int length = (int)strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    for (int i = 0; i < names->count && found <= SHOWN; i++) {
        KRAIT_AUTO_FREE char *dir = NULL;
        if (asprintf(&dir, "%.*s/%s", length, path, names->entries[i]->d_name) <= 0 || !is_recording(dir))
            continue;
        if (found++ < SHOWN) {
            krait_buf_str(&list, "\n  ");
            krait_shell_file(&list, dir);
        }
    }
    if (found)
        return krait_err_lines(
            err,
            krait_err_set(err, -EINVAL, "%s: not a recording, but it holds some; name those you mean:%s%s",
                          path, list.data ? list.data : "", found > SHOWN ? "\n  ..." : ""));
    return krait_err_set(err, -EINVAL, "%s: %s", path,
                         names->count == 0 ? "the folder is empty"
                                           : "not a recording: no folder with a file `metadata` in it");
}

/* The processes' folders below a recording, or the folder itself when it is a process's. */
static int find_folders(struct folders *folders, const char *path, struct krait_err *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return krait_err_errno(err, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return krait_err_set(err, -EINVAL, "%s: not a folder; give the folder that `krait record` wrote",
                             path);
    if (is_file(path, KRAIT_FILE_METADATA))
        return folders_add(folders, path);
    struct names names;
    int rc = names_read(&names, path);
    if (rc)
        return krait_err_errno(err, "%s", path);
    bool found = false;
    for (int i = 0; !rc && i < names.count; i++) {
        KRAIT_AUTO_FREE char *dir = NULL;
        if (asprintf(&dir, "%s/%s", path, names.entries[i]->d_name) < 0)
            rc = -ENOMEM;
        else if (is_file(dir, KRAIT_FILE_METADATA)) {
            rc = folders_add(folders, dir);
            found = true;
        }
    }
    if (rc)
        krait_err_set(err, rc, "%s: %s", path, strerror(-rc));
    else if (!found)
        rc = no_recording(path, &names, err);
    names_done(&names);
    return rc;
}

/* One process's metadata and definitions, into the next place. A folder that cannot be read is left out and
 * said. */
static int open_process(struct krait_trace *trace, const char *dir, struct krait_err *err)
{
    struct krait_trace_impl *impl = trace->impl;
    struct krait_image *image = &impl->images[trace->process_count];
    image->dir = krait_arena_strdup(&impl->arena, dir);
    if (!image->dir)
        return -ENOMEM;
    struct krait_ctf_metadata *metadata = NULL;
    int rc = krait_ctf_metadata_open(&metadata, dir, err);
    if (!rc)
        rc = check_metadata(metadata, dir, err);
    if (rc == KERNEL_PART)
        trace->kernel_dirs[trace->kernel_dir_count++] = image->dir;
    if (!rc)
        rc = fill_process(trace, metadata, &trace->processes[trace->process_count], image);
    krait_ctf_metadata_free(metadata);
    if (rc)
        return rc;
    trace->bytes += file_bytes(dir, KRAIT_FILE_METADATA);
    return krait_definitions_read(trace, trace->process_count++);
}

struct process_order {
    struct krait_process process;
    struct krait_image image;
};

static int by_start(const void *a, const void *b)
{
    const struct process_order *x = a, *y = b;
    uint64_t t = x->image.start_ns - 1, u = y->image.start_ns - 1; /* those that do not say come last */
    return t == u ? strverscmp(x->image.dir, y->image.dir) : t < u ? -1 : 1;
}

static int sort_processes(struct krait_trace *trace)
{
    uint32_t n = trace->process_count;
    KRAIT_AUTO_FREE struct process_order *order = calloc(n + 1, sizeof(*order));
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (struct process_order){ trace->processes[i], trace->impl->images[i] };
    qsort(order, n, sizeof(*order), by_start);
    for (uint32_t i = 0; i < n; i++) {
        trace->processes[i] = order[i].process;
        trace->impl->images[i] = order[i].image;
    }
    return 0;
}

static bool follows(const struct krait_trace *trace, uint64_t next, uint32_t index)
{
    return strcmp(trace->processes[next].origin, "exec") == 0 &&
           strcmp(trace->processes[next].host, trace->processes[index].host) == 0;
}

/* That a process has executed another program is seen late, when that is recorded already: the last packets
 * of the old one are as late. */
static int end_what_executed(struct krait_trace *trace)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map next_of = { 0 }; /* by process number */
    int rc = 0;
    for (uint32_t i = trace->process_count; !rc && i--;) {
        struct krait_image *image = &trace->impl->images[i];
        const uint64_t *next = krait_map_get(&next_of, trace->processes[i].pid);
        image->followed = next && strcmp(trace->processes[i].end, "exec") == 0 && follows(trace, *next, i);
        if (image->followed)
            image->exit_ns = KRAIT_MIN(image->exit_ns, trace->impl->images[*next].start_ns);
        if (image->start_ns)
            rc = krait_map_put(&next_of, trace->processes[i].pid, i);
    }
    return rc;
}

static int index_processes(struct krait_trace *trace)
{
    int rc = sort_processes(trace);
    rc = rc ? rc : end_what_executed(trace);
    trace->begin_ns = UINT64_MAX;
    for (uint32_t i = 0; !rc && i < trace->process_count; i++) {
        uint32_t first = trace->thread_count;
        rc = index_threads(trace, i);
        set_times(trace, i, first);
        for (uint32_t t = first; t < trace->thread_count; t++)
            trace->begin_ns = KRAIT_MIN(trace->begin_ns, trace->threads[t].begin_ns);
        trace->begin_ns = KRAIT_MIN(trace->begin_ns, trace->processes[i].begin_ns);
        trace->end_ns = KRAIT_MAX(trace->end_ns, trace->processes[i].end_ns);
    }
    return rc;
}

/* Losses of all processes. The packets' heads know of those that a killed collector could not total up. */
static int sum_lost(struct krait_trace *trace)
{
    uint64_t sums[KRAIT_LOST_VALUES] = { 0 };
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_image *image = &trace->impl->images[i];
        uint64_t said = image->lost[KRAIT_lost_reason_ring_full] + image->lost[KRAIT_lost_reason_disk];
        for (int reason = 0; reason < KRAIT_LOST_VALUES; reason++)
            sums[reason] += image->lost[reason];
        if (image->discarded > said)
            sums[KRAIT_lost_reason_ring_full] += image->discarded - said;
    }
    trace->lost = krait_arena_alloc(&trace->impl->arena, sizeof(*trace->lost) * KRAIT_LOST_VALUES);
    if (!trace->lost)
        return -ENOMEM;
    for (uint32_t reason = 0; reason < KRAIT_LOST_VALUES; reason++) {
        const struct krait_enum_row *row = krait_enum_find("lost_reason", reason);
        struct krait_trace_lost lost = { row ? row->label : "unknown reason", row ? row->doc : "",
                                         sums[reason] };
        if (lost.count)
            trace->lost[trace->lost_count++] = lost;
    }
    return 0;
}

/* Opens what can be opened: one process's damaged metadata does not hide the others. */
static int open_folders(struct krait_trace *trace, const struct folders *folders, struct krait_err *err)
{
    trace->processes = calloc(folders->count, sizeof(*trace->processes));
    trace->impl->images = calloc(folders->count, sizeof(*trace->impl->images));
    trace->kernel_dirs = calloc(folders->count, sizeof(*trace->kernel_dirs));
    if (!trace->processes || !trace->impl->images || !trace->kernel_dirs || intern_unknown(trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct krait_err first = { 0 };
    for (uint32_t i = 0; i < folders->count; i++) {
        struct krait_err reason = { 0 };
        int rc = open_process(trace, folders->items[i].dir, &reason);
        if (rc == -ENOMEM)
            return krait_err_set(err, -ENOMEM, "out of memory");
        if (rc && !first.code)
            first = reason;
        struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
        if (rc && rc != KERNEL_PART)
            krait_damage_say(&damage, "%s; the process is left out", reason.text);
    }
    if (!trace->process_count) {
        if (err)
            *err = first;
        return first.code ? first.code : -EINVAL;
    }
    if (index_processes(trace) || sum_lost(trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int krait_trace_open(struct krait_trace **out, const char *const *paths, size_t count, struct krait_err *err)
{
    struct folders folders = { 0 };
    int rc = 0;
    for (size_t i = 0; !rc && i < count; i++)
        rc = find_folders(&folders, paths[i], err);
    if (!rc && !folders.count)
        rc = krait_err_set(err, -EINVAL, "no recording given");
    struct krait_trace *trace = rc ? NULL : calloc(1, sizeof(*trace));
    if (trace)
        trace->impl = calloc(1, sizeof(*trace->impl));
    if (!rc && (!trace || !trace->impl))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        rc = open_folders(trace, &folders, err);
    folders_done(&folders);
    if (rc)
        krait_trace_close(trace);
    else
        *out = trace;
    return rc;
}

void krait_trace_close(struct krait_trace *trace)
{
    if (!trace)
        return;
    struct krait_trace_impl *impl = trace->impl;
    for (uint32_t i = 0; impl && impl->images && i < trace->process_count; i++) {
        free(impl->images[i].code_func);
        krait_map_done(&impl->images[i].exceptions);
        free(impl->images[i].omits);
        free(impl->images[i].namings);
    }
    if (impl) {
        free(impl->images);
        free(impl->streams);
        krait_strtab_done(&impl->keys);
        krait_strtab_done(&impl->exceptions);
        krait_map_done(&impl->omitted);
        krait_arena_done(&impl->arena);
    }
    free(impl);
    free(trace->omitted);
    free(trace->kernel_dirs);
    free(trace->threads);
    free(trace->processes);
    free(trace->funcs);
    free(trace);
}

const char *krait_func_label(const struct krait_func *func, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", func->module, *func->module ? "." : "", func->name);
    return buf;
}
