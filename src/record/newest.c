/* SPDX-License-Identifier: Apache-2.0
 *
 * --keep newest: a recording that grows beyond 5/8 of its size loses its oldest packets, down to 2/8 and what is
 * there beside events. Files are written anew beside the old ones, and then over them: while the largest is, there
 * are both. Beyond 6/8 packets wait in their rings until that is done.
 *
 *   before   ├── dropped ──────────────┼── kept ───────────┤   whole packets, by their last event's time
 *   after                       ┌──────┼── kept ───────────┤
 *                               │ base │ the stack that the dropped events had left, as python:frame,
 *                               └──────┘ python:stack and c:call; before it those of greenlets that wait,
 *                                        each with the python:switch that leaves it, and what tasks
 *                                        do (newest_stacks.h, newest_tasks.h)
 *
 * --last TIME does the same for packets older than TIME, when there are some that are two and a half times as old.
 *
 * All threads' files begin at one time, which the metadata tell (kept_from). A packet that has events before and after it
 * gives its first ones up, and the base stands in it: a thread that waited has one packet of all that time. At the end of
 * the recording files are cut once more, so that all of it is of the same time.
 *
 * Definitions and metadata stay. A process that had ended before all that is kept goes with its folder.
 */
#include "record/collector_inside.h"

#include "base/array.h"
#include "base/growing.h"
#include "record/newest_stacks.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum {
    STEP = 4 << 20,
    BASE_SHARE = 64, /* of --max-size, which the stacks that wait may take of a file */
};

#define TRIM_NS KRAIT_NS_PER_S /* --last of a short time is not cut more often */

/* ---- a file ---- */

/* What is dropped of a file, and what was learnt from it. */
struct cut {
    uint64_t at;                   /* bytes before are dropped, or in `rest` */
    uint64_t events;               /* that are dropped */
    uint64_t base_events;          /* written in their place */
    struct krait_packet_head last; /* of the last packet before `at` */
    struct krait_buf rest;         /* the events of that packet which are kept */
    uint64_t time;                 /* of the base: no later than one tick before all that is kept */
    struct krait_newest_stacks stacks;
};

static struct cut begin_cut(const struct krait_omits *omits)
{
    struct cut cut = { 0 };
    krait_newest_stacks_init(&cut.stacks, omits);
    return cut;
}

static void cut_done(struct cut *cut)
{
    krait_newest_stacks_done(&cut->stacks);
    krait_buf_done(&cut->rest);
}

/* Rings fill meanwhile. */
static void breathe(struct krait_collector *c, uint64_t *done, uint64_t n)
{
    *done += n;
    if (*done < STEP)
        return;
    *done = 0;
    krait_collector_beat(c);
    krait_drain_rings(c);
}

/* Drops the packet's events before a time. */
static int drop_packet(int fd, const struct krait_packet_head *head, uint64_t since, struct cut *cut)
{
    KRAIT_AUTO_BUF packet = { 0 };
    int rc = krait_packet_read_events(fd, cut->at, head, &packet);
    size_t n = packet.len;
    if (rc)
        return rc;
    uint64_t events = krait_newest_stacks_follow(&cut->stacks, head->timestamp_begin, since,
                                                 (const uint8_t *)packet.data, &n);
    if (head->timestamp_end >= since) {
        if (!events && !cut->at) /* nothing goes */
            return 0;
        krait_buf_add(&cut->rest, packet.data + n, packet.len - n);
        if (cut->rest.failed)
            return -ENOMEM;
    }
    cut->events += events;
    cut->at += head->packet_size / 8;
    cut->last = *head;
    cut->time = KRAIT_MIN(head->timestamp_end, since - 1);
    return 0;
}

static int drop_packets(struct krait_collector *c, int fd, uint64_t since, struct cut *cut)
{
    struct krait_packet_head head;
    uint64_t done = 0;
    int rc = 0;
    while (!rc && krait_packet_read_head(fd, cut->at, &head) && head.timestamp_end < since) {
        rc = drop_packet(fd, &head, since, cut);
        breathe(c, &done, head.packet_size / 8);
    }
    bool follows = !rc && krait_packet_read_head(fd, cut->at, &head);
    if (follows && head.timestamp_begin < since)
        return drop_packet(fd, &head, since, cut);
    if (follows)
        cut->time = KRAIT_MIN(head.timestamp_begin, KRAIT_MAX(cut->time, since - 1));
    return rc;
}

/* With what is kept of the last packet. */
static int write_base(int fd, struct cut *cut, uint64_t room)
{
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_packet_head head = cut->last;
    krait_buf_add(&out, (const char *)&head, sizeof(head));
    krait_newest_stacks_put(&cut->stacks, &out, cut->time, room);
    if (out.failed)
        return -ENOMEM;
    cut->base_events =
        krait_packet_count_events((const uint8_t *)out.data + sizeof(head), out.len - sizeof(head));
    krait_buf_add(&out, cut->rest.data, cut->rest.len);
    if (out.failed)
        return -ENOMEM;
    head.timestamp_begin = cut->time;
    head.timestamp_end = cut->rest.len ? head.timestamp_end : cut->time;
    head.content_size = head.packet_size = 8 * (uint64_t)out.len;
    memcpy(out.data, &head, sizeof(head));
    return write(fd, out.data, out.len) == (ssize_t)out.len ? 0 : -ENOSPC;
}

static uint64_t size_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

/* Copies what is behind the cut, up to `until`, or also what comes meanwhile. */
static int copy_rest(struct krait_collector *c, int from, int to, uint64_t at, uint64_t until)
{
    uint64_t done = 0;
    for (uint64_t end; (end = KRAIT_MIN(size_of(from), until)) > at;) {
        off_t offset = (off_t)at;
        ssize_t n = sendfile(to, from, &offset, KRAIT_MIN(end - at, (uint64_t)STEP));
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += (uint64_t)n;
        if (at < end)
            breathe(c, &done, (uint64_t)n);
    }
    return 0;
}

static uint64_t base_room(const struct krait_collector *c)
{
    enum { ROOM = 64 << 20 }; /* of a recording whose size has no limit */
    return c->max_bytes ? c->max_bytes / BASE_SHARE : ROOM;
}

/* Whether the file has anything of its time. `waits`: calls that are open in the end last until then. */
static bool is_needed(struct cut *cut, uint64_t size, bool waits)
{
    return cut->at < size || cut->rest.len ||
           (waits && krait_newest_stacks_have_calls(&cut->stacks, cut->time));
}

/* stream: of a thread that is recorded; NULL: nobody writes the file any more, and where it is not needed it goes. */
static int rewrite(struct krait_collector *c, const struct krait_newest_file *file, int fd,
                   struct krait_stream *stream, struct cut *cut)
{
    KRAIT_AUTO_FREE char *beside = NULL;
    const char *path = file->path;
    if (!stream && !is_needed(cut, size_of(fd), file->waits))
        return unlink(path) < 0 ? -errno : 0;
    /* Hidden: should krait be killed here, readers take no notice of it. */
    int folder = (int)(strrchr(path, '/') - path);
    if (asprintf(&beside, "%.*s/.new", folder, path) < 0)
        return -ENOMEM;
    unlink(beside);
    int to = krait_growing_open(beside, O_APPEND);
    int rc = to < 0 ? -errno : 0;
    /* sendfile(2) refuses O_APPEND; the file is nobody else's yet. */
    if (!rc && fcntl(to, F_SETFL, 0) < 0)
        rc = -errno;
    if (!rc)
        rc = write_base(to, cut, base_room(c));
    if (!rc)
        rc = copy_rest(c, fd, to, cut->at, UINT64_MAX);
    if (!rc && (fcntl(to, F_SETFL, O_APPEND) < 0 || rename(beside, path) < 0))
        rc = -errno;
    if (rc) {
        unlink(beside);
    } else if (stream) {
        stream->bytes = size_of(to);
        if (stream->fd >= 0) {
            int old = stream->fd;
            stream->fd = to;
            to = old;
        }
    }
    if (to >= 0)
        close(to);
    return rc;
}

/* For stacks that there was no room for. */
static void ask_for_stacks(struct krait_collector *c)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        if (c->rings[r].known && c->rings[r].kind != KRAIT_RING_DEFINITIONS)
            atomic_fetch_or(&c->shm.rings[r].resync, KRAIT_RESYNC_ANEW);
    }
}

/* What is dropped may have events that were recorded after a function was left out: rings are read one by one. */
void krait_newest_read_omits(struct krait_collector *c, const char *folder, struct krait_omits *omits)
{
    krait_omits_done(omits);
    krait_drain_rings(c);
    krait_omits_read(omits, folder);
}

int krait_newest_copy(struct krait_collector *c, const struct krait_newest_file *file, const char *to,
                      struct krait_newest_copied *copied)
{
    KRAIT_AUTO_CLOSE int fd = open(file->path, O_RDONLY | O_CLOEXEC), out = -1;
    KRAIT_CLEANUP(cut_done) struct cut cut = begin_cut(file->omits);
    uint64_t until = fd < 0 ? 0 : size_of(fd);
    int rc = fd < 0 ? -errno : drop_packets(c, fd, file->since, &cut);
    if (cut.at >= until) /* nothing has happened since, but calls may last */
        cut.time = KRAIT_MAX(cut.time, file->since - 1);
    if (!rc && is_needed(&cut, until, true)) {
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        rc = out < 0 ? -errno : 0;
    }
    if (!rc && out >= 0 && cut.at)
        rc = write_base(out, &cut, base_room(c));
    if (!rc && out >= 0)
        rc = copy_rest(c, fd, out, cut.at, until);
    *copied = (struct krait_newest_copied){ .bytes = out < 0 ? 0 : size_of(out), .dropped = cut.events };
    if (rc && out >= 0)
        unlink(to);
    return rc;
}

/* The bytes that went are in *went. */
static int trim_file(struct krait_collector *c, const struct krait_newest_file *file,
                     struct krait_stream *stream, uint64_t *went)
{
    KRAIT_AUTO_CLOSE int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    KRAIT_CLEANUP(cut_done) struct cut cut = begin_cut(file->omits);
    int rc = fd < 0 ? -errno : drop_packets(c, fd, file->since, &cut);
    if (!rc && cut.at)
        rc = rewrite(c, file, fd, stream, &cut);
    if (cut.stacks.failed)
        ask_for_stacks(c);
    if (rc || !cut.at)
        return rc;
    struct stat now = { 0 };
    stat(file->path, &now);
    *went = size_of(fd) - KRAIT_MIN(size_of(fd), (uint64_t)now.st_size);
    uint64_t fewer = cut.events > cut.base_events ? cut.events - cut.base_events : 0;
    c->recording.dropped_events += fewer;
    c->total.events -= KRAIT_MIN(c->total.events, fewer);
    return 0;
}

/* ---- all files ---- */

struct packet {
    uint64_t end;
    uint64_t bytes;
};

struct packets {
    struct packet *items;
    size_t count, cap;
};

static void list_packets(struct packets *all, const char *path)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct krait_packet_head head;
    for (uint64_t at = 0; fd >= 0 && krait_packet_read_head(fd, at, &head); at += head.packet_size / 8) {
        if (!KRAIT_GROW(all->items, all->cap, all->count + 1))
            return;
        all->items[all->count++] = (struct packet){ head.timestamp_end, head.packet_size / 8 };
    }
}

static int by_end(const void *a, const void *b)
{
    const struct packet *x = a, *y = b;
    return (x->end > y->end) - (x->end < y->end);
}

/* From when on packets are kept so that no more than `excess` bytes go; 0: the oldest packet has more. */
static uint64_t since_when(struct packets *all, uint64_t excess)
{
    if (all->count)
        qsort(all->items, all->count, sizeof(*all->items), by_end);
    uint64_t sum = 0;
    for (size_t i = 0; i < all->count; i++) {
        sum += all->items[i].bytes;
        if (sum > excess)
            return i ? all->items[i - 1].end + 1 : 0;
    }
    return UINT64_MAX;
}

void krait_collector_each_file(const char *folder, const char *prefix, krait_visit_file_fn *visit, void *data)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (const struct dirent *f; dir && (f = readdir(dir));) {
        if (strncmp(f->d_name, prefix, strlen(prefix)) == 0 &&
            snprintf(path, sizeof(path), "%s/%s", folder, f->d_name) < (int)sizeof(path))
            visit(data, folder, path);
    }
    if (dir)
        closedir(dir);
}

/* Calls `visit` for each file of the recording whose name begins so. */
static void for_each_file(const struct krait_collector *c, const char *prefix, krait_visit_file_fn *visit,
                          void *data)
{
    DIR *top = opendir(c->dir);
    for (const struct dirent *d; top && (d = readdir(top));) {
        char folder[PATH_MAX];
        if (d->d_name[0] != '.' &&
            snprintf(folder, sizeof(folder), "%s/%s", c->dir, d->d_name) < (int)sizeof(folder))
            krait_collector_each_file(folder, prefix, visit, data);
    }
    if (top)
        closedir(top);
}

static void list_file(void *data, const char *folder, const char *path)
{
    list_packets(data, path);
}

/* Of the recorder beside this one, whose packets may have times of another clock. */
static void list_beside(struct krait_collector *c, struct packets *all)
{
    size_t first = all->count;
    for_each_file(c, "channel0_", list_file, all);
    for (size_t i = first; c->beside.clock && i < all->count; i++)
        all->items[i].end = krait_clock_convert(c->beside.clock, all->items[i].end, &c->clock);
}

static uint64_t last_end(const struct packets *all)
{
    uint64_t last = 0;
    for (size_t i = 0; i < all->count; i++)
        last = KRAIT_MAX(last, all->items[i].end);
    return last;
}

struct trimming {
    struct krait_collector *c;
    uint64_t since;
    bool is_last;          /* all files are written */
    char folder[PATH_MAX]; /* of the process that what follows is of */
    struct krait_omits omits;
    bool waits;
};

/* Whether a process whose files are all written has not ended before the time from which on events are kept: its end is in the
 * definitions. */
static bool has_waited(const struct trimming *trimming, const char *folder)
{
    char path[PATH_MAX];
    struct packets all = { 0 };
    bool lives = krait_collector_proc_in(trimming->c, folder) < KRAIT_PROCS_MAX;
    if ((lives && !trimming->is_last) ||
        snprintf(path, sizeof(path), "%s/" KRAIT_FILE_DEFINITIONS, folder) >= (int)sizeof(path))
        return false;
    list_packets(&all, path);
    uint64_t end = last_end(&all);
    free(all.items);
    return end >= trimming->since;
}

uint32_t krait_collector_proc_in(const struct krait_collector *c, const char *folder)
{
    uint32_t i = 0;
    while (i < KRAIT_PROCS_MAX &&
           !(c->procs[i].dir && strcmp(krait_tracedir_path(c->procs[i].dir), folder) == 0))
        i++;
    return i;
}

static struct krait_stream *stream_of(struct krait_collector *c, const char *folder, const char *path)
{
    uint32_t proc = krait_collector_proc_in(c, folder);
    return proc < KRAIT_PROCS_MAX ? krait_tracedir_find(c->procs[proc].dir, path) : NULL;
}

static void visit_file(void *data, const char *folder, const char *path)
{
    struct trimming *trimming = data;
    struct krait_collector *c = trimming->c;
    struct krait_err err;
    uint64_t went = 0;
    if (strcmp(trimming->folder, folder) != 0) {
        snprintf(trimming->folder, sizeof(trimming->folder), "%s", folder);
        krait_newest_read_omits(c, folder, &trimming->omits);
        trimming->waits = has_waited(trimming, folder);
    }
    const struct krait_newest_file file = { path, trimming->since, trimming->waits, &trimming->omits };
    int rc = trim_file(c, &file, stream_of(c, folder, path), &went);
    c->total.bytes -= KRAIT_MIN(c->total.bytes, went);
    if (!rc)
        return;
    errno = -rc;
    krait_err_errno(&err, "cannot drop the oldest events of %s", path);
    krait_collector_note_trouble(c, &err);
}

/* Removes the folder if no thread's file is left in it. Returns whether it did. */
static bool remove_ended(struct krait_collector *c, const char *folder)
{
    static const char *const files[] = { KRAIT_FILE_DEFINITIONS, KRAIT_FILE_METADATA };
    uint64_t *const counts[] = { &c->total.bytes, &c->metadata_bytes };
    bool any = false;
    DIR *dir = opendir(folder);
    for (const struct dirent *f; dir && (f = readdir(dir));)
        any |= strncmp(f->d_name, "thread-", strlen("thread-")) == 0;
    if (!dir || any) {
        if (dir)
            closedir(dir);
        return false;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(files); i++) {
        struct stat st;
        if (fstatat(dirfd(dir), files[i], &st, 0) == 0 && unlinkat(dirfd(dir), files[i], 0) == 0)
            *counts[i] -= KRAIT_MIN(*counts[i], (uint64_t)st.st_size);
    }
    closedir(dir);
    return rmdir(folder) == 0;
}

/* A process that ended later, and did nothing that krait records in its last moments, stays with its definitions. */
static void remove_all_ended(const struct trimming *trimming)
{
    struct krait_collector *c = trimming->c;
    size_t kept = 0;
    for (size_t at = 0, n; at < c->ended.len; at += n) {
        n = strlen(c->ended.data + at) + 1;
        const char *folder = c->ended.data + at;
        if (!has_waited(trimming, folder) && remove_ended(c, folder))
            continue;
        memmove(c->ended.data + kept, c->ended.data + at, n);
        kept += n;
    }
    c->ended.len = kept;
}

/* since_when of all files. */
static uint64_t since_excess(struct krait_collector *c, uint64_t excess)
{
    struct packets all = { 0 };
    for_each_file(c, "thread-", list_file, &all);
    list_beside(c, &all);
    uint64_t since = since_when(&all, excess);
    free(all.items);
    return since;
}

static uint64_t ticks_of(const struct krait_collector *c, uint64_t ns)
{
    return (uint64_t)((double)ns * (double)c->clock.freq / 1e9);
}

uint64_t krait_newest_since(struct krait_collector *c)
{
    uint64_t bytes = c->total.bytes, now = krait_clock_now(&c->clock);
    if (c->last_ns)
        return now - KRAIT_MIN(now, ticks_of(c, c->last_ns));
    return c->last_bytes && bytes > c->last_bytes ? since_excess(c, bytes - c->last_bytes) : 0;
}

/* How much is too much of what is on disk. A quarter of --max-size stays in events and definitions. Less does if the metadata
 * and the reserve are so large that half of it would be exceeded at once. */
static uint64_t excess_of(const struct krait_collector *c)
{
    uint64_t quarter = c->max_bytes / 4, half = c->max_bytes / 2, all = krait_limits_bytes(c);
    uint64_t events = c->total.bytes + c->beside_bytes;
    return KRAIT_MAX(events - KRAIT_MIN(events, quarter), all - KRAIT_MIN(all, half));
}

/* One packet goes at least, as the recording would stay too large. */
static uint64_t since_large(struct krait_collector *c, uint64_t excess)
{
    uint64_t since = 0;
    for (; !since; excess *= 2)
        since = since_excess(c, excess);
    return since;
}

/* Whether a size is reached, or packets are much older than --last wants; then *since is from when on they are kept. */
static bool is_due(struct krait_collector *c, uint64_t *since)
{
    uint64_t bytes = krait_limits_bytes(c), now = krait_clock_ns(CLOCK_MONOTONIC);
    bool is_large =
        c->max_bytes && bytes > c->max_bytes / 8 * 5 && bytes >= c->trimmed_bytes + c->max_bytes / 16;
    bool is_old = c->last_ns && now - c->trimmed_ns >= c->last_ns / 2 * 3 + TRIM_NS;
    if (is_large)
        *since = since_large(c, excess_of(c));
    else if (is_old)
        *since = krait_newest_since(c);
    if (is_large || is_old)
        c->trimmed_ns = now;
    return is_large || is_old;
}

static void trim(struct trimming *trimming)
{
    struct krait_collector *c = trimming->c;
    c->trimming = true;
    for_each_file(c, "thread-", visit_file, trimming);
    c->trimming = false;
    krait_omits_done(&trimming->omits);
    remove_all_ended(trimming);
    c->trimmed_bytes = krait_limits_bytes(c);
    c->recording.kept_from = trimming->since;
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        if (c->procs[i].dir)
            krait_tracedir_outdate_metadata(c->procs[i].dir);
    }
}

uint64_t krait_collector_keep_newest(struct krait_collector *c)
{
    struct trimming trimming = { .c = c };
    if (!c->keep_newest || !is_due(c, &trimming.since))
        return 0;
    trim(&trimming);
    return trimming.since;
}

/* The time of the last event of all. */
static uint64_t last_event(const struct krait_collector *c)
{
    struct packets all = { 0 };
    for_each_file(c, "thread-", list_file, &all);
    for_each_file(c, KRAIT_FILE_DEFINITIONS, list_file, &all);
    uint64_t end = last_end(&all);
    free(all.items);
    return end;
}

static void write_dropped(void *data, const char *folder, const char *path)
{
    struct krait_collector *c = data;
    struct krait_err err;
    if (krait_tracedir_set_amounts(folder, &c->recording, &err))
        krait_collector_note_trouble(c, &err);
}

void krait_newest_finish(struct krait_collector *c)
{
    struct trimming trimming = { .c = c, .is_last = true, .since = c->recording.kept_from };
    if (!c->keep_newest)
        return;
    uint64_t end = last_event(c), last = ticks_of(c, c->last_ns);
    if (c->last_ns && end > last)
        trimming.since = KRAIT_MAX(end - last, trimming.since);
    if (!trimming.since)
        return;
    trim(&trimming);
    c->total.kept_from = trimming.since;
    c->total.kept_ns =
        (uint64_t)((double)(end - KRAIT_MIN(trimming.since, end)) * 1e9 / (double)c->clock.freq);
    if (c->recording.dropped_events)
        for_each_file(c, KRAIT_FILE_DEFINITIONS, write_dropped, c);
}
