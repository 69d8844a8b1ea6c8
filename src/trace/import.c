/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening krait's own recordings: metadata, definitions, and the heads of all packets.
 */
#include "trace/import.h"

#include "base/array.h"
#include "base/clock.h"
#include "event/event.h"
#include "trace/growing.h"
#include "trace/kernel/kernel.h"

#include <dirent.h>
#include <limits.h>
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

static uint64_t file_bytes(const char *dir, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    return n < PATH_MAX && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The error of krait cat (ctf/read/cursor.c). */
static const char *const beyond_time = "its time from the clock's origin is beyond 64 bits of nanoseconds";

static int check_metadata(const struct krait_ctf_metadata *metadata, const char *dir, struct krait_err *err)
{
    int64_t major = krait_ctf_env_int(metadata, "krait_format_major", 0);
    if (major != KRAIT_FORMAT_MAJOR)
        return krait_err_set(
            err, -EINVAL, "%s: its format is version %lld, this krait reads %d; use the krait that wrote it",
            dir, (long long)major, KRAIT_FORMAT_MAJOR);
    if (!metadata->has_uuid || !metadata->clock_count)
        return krait_err_set(err, -EBADMSG, "%s/metadata: no %s in it", dir,
                             metadata->has_uuid ? "clock" : "uuid");
    if (metadata->clocks[0]->beyond)
        return krait_err_set(err, -ERANGE, "%s/metadata: %s", dir, beyond_time);
    return 0;
}

static void note_minor(struct krait_trace *trace, const struct krait_ctf_metadata *metadata)
{
    int64_t minor = krait_ctf_env_int(metadata, "krait_format_minor", 0);
    if (minor > KRAIT_EVENT_ROWS)
        snprintf(trace->newer_format, sizeof(trace->newer_format), "%d.%lld", KRAIT_FORMAT_MAJOR,
                 (long long)minor);
}

static void add_samples(struct krait_trace *trace, struct krait_image *image,
                        const struct krait_ctf_metadata *metadata)
{
    struct krait_trace_samples *samples = &trace->samples;
    image->sampled = *krait_ctf_env_text(metadata, "sampled", "");
    if (!image->sampled)
        return;
    uint64_t rounds = (uint64_t)krait_ctf_env_int(metadata, "sample_rounds", 0);
    uint64_t ns = (uint64_t)krait_ctf_env_int(metadata, "sample_ns", 0);
    uint64_t rate = (uint64_t)krait_ctf_env_int(metadata, "sample_rate", 0);
    rate = KRAIT_MAX(rate, 1u);
    samples->rate = KRAIT_MAX(samples->rate, rate);
    samples->taken += (uint64_t)krait_ctf_env_int(metadata, "samples", 0);
    samples->dropped += (uint64_t)krait_ctf_env_int(metadata, "samples_dropped", 0);
    samples->interval_ns =
        KRAIT_MAX(samples->interval_ns, rounds > 1 ? ns / (rounds - 1) : KRAIT_NS_PER_S / rate);
    uint64_t weight = (uint64_t)krait_ctf_env_int(metadata, "sample_weight_ns", 0);
    samples->weight_ns = KRAIT_MAX(samples->weight_ns, KRAIT_MAX(weight, samples->interval_ns));
}

/* What the metadata says of the process: what it was called last. The definitions know the rest better. */
static int add_process(struct krait_trace *trace, const struct krait_ctf_metadata *metadata, const char *dir)
{
    struct krait_arena *arena = &trace->impl->arena;
    const struct krait_ctf_clock *clock = metadata->clocks[0];
    struct krait_recordings *recordings = krait_recordings_of(trace);
    struct krait_process *process = krait_trace_add_process(trace);
    if (!process)
        return -ENOMEM;
    struct krait_image *image = &recordings->images[recordings->image_count++];
    image->dir = krait_arena_strdup(arena, dir);
    krait_ticks_init(&image->clock, clock->freq, (uint64_t)clock->offset_s, clock->offset);
    image->last_tick = clock->last;
    memcpy(image->uuid, metadata->uuid, sizeof(image->uuid));
    image->has_no_gil_waits = krait_ctf_env_int(metadata, "gil_waits", 1) == 0;
    const char *others = krait_ctf_env_text(metadata, "other_events", NULL);
    image->other_events = others ? krait_arena_strdup(arena, others) : NULL;
    add_samples(trace, image, metadata);
    image->range.from_ns = (uint64_t)krait_ctf_env_int(metadata, KRAIT_ENV_CUT_FROM, 0);
    image->range.to_ns = (uint64_t)krait_ctf_env_int(metadata, KRAIT_ENV_CUT_UNTIL, -1);
    uint64_t kept_from = (uint64_t)krait_ctf_env_int(metadata, "kept_from", 0);
    image->kept_ns =
        kept_from ? krait_ticks_ns(&image->clock, kept_from - 1) + 1 : 0; /* after what tells what was open */
    process->pid = (uint32_t)krait_ctf_env_int(metadata, "vpid", 0);
    process->name = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "procname", ""));
    process->command = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "command", ""));
    process->host = krait_arena_strdup(arena, krait_ctf_env_text(metadata, "hostname", ""));
    process->dir = image->dir;
    return image->dir && process->name && process->command && process->host ? 0 : -ENOMEM;
}

/* What was open before a range that krait cut made is said a moment before it. */
static uint64_t time_in(const struct krait_image *image, uint64_t t_ns)
{
    return KRAIT_MIN(KRAIT_MAX(t_ns, image->range.from_ns), image->range.to_ns);
}

static int note_stretches(struct krait_trace *trace, struct krait_thread_file *file,
                          const struct krait_packet *packet)
{
    if (!trace->impl->goes_on)
        return 0;
    __atomic_fetch_add(&trace->impl->bytes_read, (uint64_t)(packet->end - packet->body), __ATOMIC_RELAXED);
    return krait_stretches_note(&file->noted, file->packet_count - 1, packet);
}

/* The heads of a thread's packets, behind those that are known: when it lived, who it is, what it lost. Returns 0 or -ENOMEM. */
static int read_heads(struct krait_trace *trace, struct krait_thread *thread, struct krait_thread_file *file,
                      struct krait_image *image, struct krait_packets *packets, struct krait_damage *damage)
{
    struct krait_packet packet;
    uint64_t discarded = file->discarded;
    int rc = 0;
    krait_packets_go(packets, file->read_to);
    while (!rc && krait_packets_next(packets, &packet, damage)) {
        if (packet.head.timestamp_end > image->last_tick) {
            krait_damage_say(damage, "%s: byte %zu: %s", packets->path, packet.offset, beyond_time);
            break;
        }
        uint64_t begin_ns = time_in(image, krait_ticks_ns(&image->clock, packet.head.timestamp_begin));
        uint64_t end_ns = time_in(image, krait_ticks_ns(&image->clock, packet.head.timestamp_end));
        uint64_t total = packet.head.events_discarded;
        struct krait_packet_place place = { packet.offset, begin_ns, end_ns,
                                            total > discarded ? total - discarded : 0 };
        thread->tid = packet.head.vtid;
        thread->begin_ns = KRAIT_MIN(thread->begin_ns, begin_ns);
        thread->end_ns = KRAIT_MAX(thread->end_ns, end_ns);
        bool is_kept = packet.body < packet.end || place.lost;
        rc = is_kept ? krait_thread_file_add(file, place) : 0;
        rc = rc || !is_kept ? rc : note_stretches(trace, file, &packet);
        discarded = total;
        file->read_to = packets->at;
        krait_packets_release(packets);
    }
    file->discarded = discarded;
    file->noted.is_kept = trace->impl->goes_on;
    thread->flags = discarded ? KRAIT_TRACK_LOST : 0;
    image->discarded += discarded;
    return rc;
}

/* Whether it is the same trace, whose times mean the same: at the end the recorder knows the clock better. */
static bool is_same(const struct krait_image *a, const struct krait_image *b)
{
    return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0 && a->clock.freq == b->clock.freq &&
           a->clock.offset == b->clock.offset && a->clock.offset_ns == b->clock.offset_ns;
}

static bool is_there(const struct krait_packet_place *place, const struct krait_image *image,
                     const struct krait_packets *packets)
{
    struct krait_packets at = *packets;
    struct krait_packet packet;
    struct krait_damage ignored = { 0 };
    struct krait_ticks clock = image->clock;
    krait_packets_go(&at, place->offset);
    return krait_packets_next(&at, &packet, &ignored) && packet.offset == place->offset &&
           time_in(image, krait_ticks_ns(&clock, packet.head.timestamp_begin)) == place->begin_ns;
}

bool krait_thread_file_stays(const struct krait_thread_file *file, const struct krait_image *image,
                             const struct krait_packets *packets)
{
    uint32_t n = file->packet_count;
    return n && file->read_to <= packets->size && is_there(&file->packets[0], image, packets) &&
           is_there(&file->packets[n - 1], image, packets);
}

bool krait_thread_file_is_behind(const struct krait_thread_file *file, const struct krait_image *image,
                                 const struct krait_packet *packet)
{
    struct krait_ticks clock = image->clock;
    uint64_t last_ns = file->packet_count ? file->packets[file->packet_count - 1].end_ns : 0;
    return krait_ticks_ns(&clock, packet->head.timestamp_begin) > last_ns;
}

/* Takes what the earlier trace knows of a file. Returns 0 or -ENOMEM. */
static int take_earlier(struct krait_trace *trace, struct krait_thread *thread,
                        struct krait_thread_file *file, const struct krait_image *image,
                        const struct krait_packets *packets)
{
    const struct krait_trace *before = trace->impl->before;
    const struct krait_strtab *earlier = &krait_recordings_of(trace)->earlier;
    uint32_t at = before ? krait_strtab_find(earlier, file->path, strlen(file->path)) : KRAIT_NO_ID;
    if (at == KRAIT_NO_ID || !is_same(krait_image_of(before, at), image))
        return 0;
    const struct krait_thread_file *known = &krait_recordings_of(before)->files[at];
    if (!known->noted.is_kept || !krait_thread_file_stays(known, image, packets))
        return 0;
    thread->tid = before->threads[at].tid;
    thread->begin_ns = before->threads[at].begin_ns;
    thread->end_ns = before->threads[at].end_ns;
    file->before = at;
    return krait_thread_file_copy(file, known);
}

/* What of a file is read: of a recording that goes on, as much as there was before its definitions were read, so that nothing
 * lacks a definition. */
static size_t limit_of(const struct krait_trace *trace, const struct krait_image *image, const char *name)
{
    if (!trace->impl->goes_on)
        return SIZE_MAX;
    uint32_t id = krait_strtab_find(&image->streams, name, strlen(name));
    return id == KRAIT_NO_ID ? 0 : image->stream_bytes[id];
}

/* A thread of the process, if there is a packet in its file. */
static int index_stream(struct krait_trace *trace, uint32_t process, const char *name)
{
    struct krait_recordings *recordings = krait_recordings_of(trace);
    struct krait_image *image = &recordings->images[process];
    struct krait_thread_file file = { .path = krait_arena_fmt(&trace->impl->arena, "%s/%s", image->dir, name),
                                      .before = KRAIT_NO_ID };
    if (!file.path || !KRAIT_GROW(recordings->files, recordings->file_cap, recordings->file_count + 1))
        return -ENOMEM;
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    struct krait_packets packets;
    struct krait_err err;
    if (krait_packets_open(&packets, file.path, image->uuid, &err)) {
        krait_damage_say(&damage, "%s", err.text);
        return 0;
    }
    krait_packets_limit(&packets, limit_of(trace, image, name));
    trace->bytes += packets.size;
    file.size = packets.size;
    struct krait_thread thread = { .process = process,
                                   .name = "",
                                   .importer = KRAIT_IMPORTER_krait_calls,
                                   .begin_ns = UINT64_MAX,
                                   .bytes = packets.size };
    int rc = take_earlier(trace, &thread, &file, image, &packets);
    rc = rc ? rc : read_heads(trace, &thread, &file, image, &packets, &damage);
    krait_packets_close(&packets);
    bool has_packets = thread.begin_ns != UINT64_MAX;
    struct krait_thread *added = rc || !has_packets ? NULL : krait_trace_add_thread(trace);
    if (!added) {
        krait_thread_file_done(&file);
        return rc || has_packets ? -ENOMEM : 0;
    }
    *added = thread;
    recordings->files[recordings->file_count++] = file;
    return 0;
}

struct thread_order {
    struct krait_thread thread;
    struct krait_thread_file file;
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
        order[i] =
            (struct thread_order){ trace->threads[first + i], krait_recordings_of(trace)->files[first + i] };
    qsort(order, n, sizeof(*order), by_begin);
    for (uint32_t i = 0; i < n; i++) {
        trace->threads[first + i] = order[i].thread;
        krait_recordings_of(trace)->files[first + i] = order[i].file;
    }
    return 0;
}

/* The thread that a naming means: of those with its tid the last that had begun by then, or else the first. */
static struct krait_thread *named_thread(struct krait_thread **sorted, uint32_t n,
                                         const struct krait_naming *naming)
{
    size_t behind =
        KRAIT_PARTITION_POINT(i, n,
                              sorted[i]->tid < naming->tid ||
                                  (sorted[i]->tid == naming->tid && sorted[i]->begin_ns <= naming->t_ns));
    if (behind && sorted[behind - 1]->tid == naming->tid)
        return sorted[behind - 1];
    return behind < n && sorted[behind]->tid == naming->tid ? sorted[behind] : NULL;
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
    int rc = names_read(&names, krait_recordings_of(trace)->images[process].dir);
    uint32_t first = trace->thread_count;
    for (int i = 0; !rc && i < names.count; i++) {
        if (strncmp(names.entries[i]->d_name, "thread-", strlen("thread-")) == 0)
            rc = index_stream(trace, process, names.entries[i]->d_name);
    }
    names_done(&names);
    rc = rc ? rc : sort_threads(trace, first);
    return rc ? rc : name_threads(trace, first, &krait_recordings_of(trace)->images[process]);
}

/* Times that the process has. */
static void fit_gaps(const struct krait_image *image, struct krait_gaps *gaps, uint64_t end_ns)
{
    for (uint32_t i = 0; i < gaps->count; i++) {
        struct krait_range *gap = &gaps->items[i];
        gap->from_ns = time_in(image, gap->from_ns);
        gap->to_ns = KRAIT_MAX(KRAIT_MIN(gap->to_ns, end_ns), gap->from_ns);
    }
}

/* Of the process and of its threads, of which `first` is the first. */
static void set_times(struct krait_trace *trace, uint32_t index, uint32_t first)
{
    struct krait_process *process = &trace->processes[index];
    struct krait_image *image = &krait_recordings_of(trace)->images[index];
    image->start_ns = image->start_ns ? time_in(image, image->start_ns) : 0;
    image->exit_ns = image->exit_ns ? time_in(image, image->exit_ns) : 0;
    process->kept_ns = image->kept_ns;
    process->begin_ns = image->start_ns ? image->start_ns : UINT64_MAX;
    process->end_ns = image->exit_ns;
    for (uint32_t i = first; i < trace->thread_count; i++) {
        struct krait_thread *thread = &trace->threads[i];
        if (image->followed)
            thread->end_ns = KRAIT_MAX(KRAIT_MIN(thread->end_ns, image->exit_ns), thread->begin_ns);
        thread->begin_ns = KRAIT_MIN(KRAIT_MAX(thread->begin_ns, image->kept_ns), thread->end_ns);
        process->begin_ns = KRAIT_MIN(process->begin_ns, thread->begin_ns);
        process->end_ns = KRAIT_MAX(process->end_ns, thread->end_ns);
    }
    if (image->grows && !image->exit_ns)
        process->end_ns = KRAIT_MAX(process->end_ns, image->seen_ns);
    if (process->begin_ns == UINT64_MAX)
        process->begin_ns = process->end_ns;
    process->end_ns = KRAIT_MAX(process->end_ns, process->begin_ns);
    fit_gaps(image, &image->off, process->end_ns);
    fit_gaps(image, &image->unrecorded, process->end_ns);
    process->gaps = image->off.items;
    process->gap_count = image->off.count;
    process->unrecorded = image->unrecorded.items;
    process->unrecorded_count = image->unrecorded.count;
}

/* Of a recording that goes on: how much there is of each thread's stream, and up to when all that has happened is in them.
 * Returns 0 or -ENOMEM. */
static int note_streams(const struct krait_trace *trace, uint32_t process)
{
    struct krait_image *image = &krait_recordings_of(trace)->images[process];
    struct names names;
    if (!trace->impl->goes_on)
        return 0;
    uint64_t now_ns = krait_clock_ns(CLOCK_REALTIME);
    image->grows = krait_process_grows(image->dir);
    image->seen_ns = now_ns - KRAIT_MIN(now_ns, KRAIT_GROWING_LATE_NS);
    int rc = names_read(&names, image->dir);
    for (int i = 0; !rc && i < names.count; i++) {
        const char *name = names.entries[i]->d_name;
        uint32_t id = krait_strtab_add(&image->streams, name, strlen(name));
        if (id == KRAIT_NO_ID || !KRAIT_GROW(image->stream_bytes, image->stream_cap, id + 1))
            rc = -ENOMEM;
        else
            image->stream_bytes[id] = file_bytes(image->dir, name);
    }
    names_done(&names);
    return rc;
}

/* One process's metadata and definitions, into the next place. A folder that cannot be read is left out and said. */
static int open_process(struct krait_trace *trace, const struct krait_folder *folder, struct krait_err *err)
{
    int rc = check_metadata(folder->metadata, folder->dir, err);
    if (rc)
        return rc;
    trace->bytes += file_bytes(folder->dir, KRAIT_FILE_METADATA);
    note_minor(trace, folder->metadata);
    rc = add_process(trace, folder->metadata, folder->dir);
    rc = rc ? rc : note_streams(trace, trace->process_count - 1);
    return rc ? rc : krait_definitions_read(trace, trace->process_count - 1);
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
        order[i] = (struct process_order){ trace->processes[i], krait_recordings_of(trace)->images[i] };
    qsort(order, n, sizeof(*order), by_start);
    for (uint32_t i = 0; i < n; i++) {
        trace->processes[i] = order[i].process;
        krait_recordings_of(trace)->images[i] = order[i].image;
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
        struct krait_image *image = &krait_recordings_of(trace)->images[i];
        const uint64_t *next = krait_map_get(&next_of, trace->processes[i].pid);
        image->followed = next && strcmp(trace->processes[i].end, "exec") == 0 && follows(trace, *next, i);
        if (image->followed)
            image->exit_ns = KRAIT_MIN(image->exit_ns, krait_recordings_of(trace)->images[*next].start_ns);
        if (image->start_ns)
            rc = krait_map_put(&next_of, trace->processes[i].pid, i);
    }
    return rc;
}

/* Losses that no packet counts, of any of its threads; functions that were left out, wherever they are called. */
static void flag_threads(struct krait_trace *trace, uint32_t process, uint32_t first)
{
    const struct krait_image *image = &krait_recordings_of(trace)->images[process];
    const uint64_t *lost = image->lost;
    uint64_t anywhere = lost[KRAIT_lost_reason_displaced] + lost[KRAIT_lost_reason_undefined] +
                        lost[KRAIT_lost_reason_collector] + lost[KRAIT_lost_reason_limit] +
                        lost[KRAIT_lost_reason_disk];
    for (uint32_t i = first; i < trace->thread_count; i++) {
        trace->threads[i].flags |= anywhere ? KRAIT_TRACK_LOST : 0;
        trace->threads[i].flags |= image->sampled ? KRAIT_TRACK_SAMPLED : 0;
        trace->threads[i].flags |= image->omit_count ? KRAIT_TRACK_LEFT_OUT : 0;
    }
}

static int index_processes(struct krait_trace *trace)
{
    int rc = sort_processes(trace);
    rc = rc ? rc : end_what_executed(trace);
    for (uint32_t i = 0; !rc && i < trace->process_count; i++) {
        uint32_t first = trace->thread_count;
        rc = index_threads(trace, i);
        set_times(trace, i, first);
        flag_threads(trace, i, first);
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
        const struct krait_image *image = &krait_recordings_of(trace)->images[i];
        uint64_t said = image->lost[KRAIT_lost_reason_ring_full] + image->lost[KRAIT_lost_reason_disk];
        for (int reason = 0; reason < KRAIT_LOST_VALUES; reason++)
            sums[reason] += image->lost[reason];
        if (image->discarded > said)
            sums[KRAIT_lost_reason_ring_full] += image->discarded - said;
    }
    int rc = 0;
    for (uint32_t reason = 0; reason < KRAIT_LOST_VALUES && !rc; reason++) {
        const struct krait_enum_row *row = krait_enum_find("lost_reason", reason);
        rc = krait_trace_lose(trace, (struct krait_trace_lost){ .reason = row ? row->label : "unknown reason",
                                                                .advice = row ? row->doc : "",
                                                                .count = sums[reason] });
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct krait_trace_set *x = a, *y = b;
    return x->t_ns != y->t_ns ? (x->t_ns < y->t_ns ? -1 : 1) : (x->pid > y->pid) - (x->pid < y->pid);
}

static void sort_sets(struct krait_trace *trace)
{
    if (trace->set_count)
        qsort(trace->sets, trace->set_count, sizeof(*trace->sets), by_time);
}

/* Opens what can be opened: one process's damaged metadata does not hide the others. */
static int open_processes(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                          struct krait_err *err)
{
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    for (uint32_t i = 0; i < count; i++) {
        struct krait_err reason = { 0 };
        int rc = open_process(trace, folders[i], &reason);
        if (rc == -ENOMEM)
            return rc;
        if (rc && !err->code)
            *err = reason;
        if (rc)
            krait_damage_say(&damage, "%s; the process is left out", reason.text);
    }
    return 0;
}

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder) && !krait_kernel_takes(folder);
}

/* Returns 0 or -ENOMEM. */
static int know_earlier(struct krait_trace *trace)
{
    const struct krait_trace *before = trace->impl->before;
    const struct krait_recordings *known = before ? krait_recordings_of(before) : NULL;
    for (uint32_t i = 0; known && i < known->file_count; i++) {
        const char *path = known->files[i].path;
        if (krait_strtab_add(&krait_recordings_of(trace)->earlier, path, strlen(path)) != i)
            return -ENOMEM;
    }
    return 0;
}

/* Copies the places that the earlier trace noted; the end of its walk, too, is taken from it. */
static void keep_places(struct krait_trace *trace)
{
    struct krait_recordings *recordings = krait_recordings_of(trace);
    for (uint32_t i = 0; i < recordings->file_count; i++) {
        uint32_t at = recordings->files[i].before;
        const struct krait_places *known =
            at == KRAIT_NO_ID ? NULL : krait_places_of(trace->impl->before, at);
        recordings->kept[i] = known && known->end ? krait_places_copy(known) : NULL;
        if (!recordings->kept[i])
            continue;
        recordings->kept[i]->end = krait_places_copy(known->end);
        recordings->kept[i]->end_seq = known->end_seq;
        recordings->places[i] = recordings->kept[i];
    }
}

static int open_recordings(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                           struct krait_err *err)
{
    struct krait_recordings *recordings = calloc(1, sizeof(*recordings));
    trace->impl->source[KRAIT_IMPORTER_krait_calls] = recordings;
    if (recordings)
        recordings->images = calloc(count, sizeof(*recordings->images));
    if (!recordings || !recordings->images || know_earlier(trace) ||
        open_processes(trace, folders, count, err) || index_processes(trace) || sum_lost(trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    sort_sets(trace);
    recordings->places = calloc((size_t)recordings->file_count + 1, sizeof(struct krait_places *));
    recordings->kept = calloc((size_t)recordings->file_count + 1, sizeof(struct krait_places *));
    if (!recordings->places || !recordings->kept)
        return krait_err_set(err, -ENOMEM, "out of memory");
    keep_places(trace);
    trace->exceptions = recordings->exceptions.texts;
    return trace->process_count ? 0 : err->code;
}

static void close_recordings(void *source)
{
    struct krait_recordings *recordings = source;
    for (uint32_t i = 0; i < recordings->image_count; i++) {
        free(recordings->images[i].code_func);
        krait_map_done(&recordings->images[i].exceptions);
        krait_map_done(&recordings->images[i].tasks);
        krait_map_done(&recordings->images[i].names);
        free(recordings->images[i].omits);
        free(recordings->images[i].off.items);
        free(recordings->images[i].unrecorded.items);
        free(recordings->images[i].namings);
        krait_strtab_done(&recordings->images[i].streams);
        free(recordings->images[i].stream_bytes);
    }
    for (uint32_t i = 0; i < recordings->file_count && recordings->places && recordings->kept; i++) {
        if (recordings->kept[i] != recordings->places[i])
            krait_places_free(recordings->kept[i]);
        krait_places_free(recordings->places[i]);
    }
    for (uint32_t i = 0; i < recordings->file_count; i++)
        krait_thread_file_done(&recordings->files[i]);
    free(recordings->places);
    free(recordings->kept);
    krait_strtab_done(&recordings->earlier);
    free(recordings->images);
    free(recordings->files);
    krait_strtab_done(&recordings->exceptions);
    krait_map_done(&recordings->omitted);
    free(recordings);
}

const struct krait_importer krait_importer_krait_calls = {
    .takes = takes, .open = open_recordings, .calls = krait_calls_walk, .close = close_recordings
};
