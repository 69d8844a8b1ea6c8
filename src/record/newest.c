/* SPDX-License-Identifier: Apache-2.0
 *
 * --keep newest: a recording that grows beyond 5/8 of its size loses its oldest packets, down to 2/8. Files
 * are written anew beside the old ones, and then over them: while the largest is, there are both. Beyond 6/8
 * packets wait in their rings until that is done.
 *
 *   before   ├── dropped ──────────────┼── kept ───────────┤   whole packets, by their last event's time
 *   after                       ┌──────┼── kept ───────────┤
 *                               │ base │ the stack that the dropped events had left, as python:frame,
 *                               └──────┘ python:stack and c:call; before it those of greenlets that wait,
 *                                        each with the python:switch that leaves it, and what tasks
 *                                        do (newest_tasks.h)
 *
 * --last TIME does the same for packets older than TIME, when there are some that are two and a half times as old.
 *
 * Definitions and metadata stay. A process that had ended before all that is kept goes with its folder.
 */
#include "record/collector_inside.h"

#include "base/array.h"
#include "base/growing.h"
#include "record/frames.h"
#include "record/newest_tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum {
    STEP = 4 << 20,
    FRAMES_MAX = 1 << 20,
    BASE_SHARE = 64, /* of --max-size, which the stacks that wait may take of a file */
};

#define TRIM_NS KRAIT_NS_PER_S /* --last of a short time is not cut more often */

/* ---- the stack ---- */

struct open_call {
    uint32_t code;
    bool is_c;
};

struct calls {
    struct open_call *items;
    size_t count, cap;
};

/* Of a thread: that of the greenlet that runs, and those that wait, by the numbers of python:switch. */
struct stacks {
    struct calls now;
    struct calls *left;
    size_t left_count;
    size_t left_calls; /* in all of them: FRAMES_MAX at the most */
    bool failed;       /* there was no room for some of them */
    bool in_run;       /* of python:frame, which python:stack ends */
    struct krait_newest_tasks tasks;
};

static void stacks_done(struct stacks *stacks)
{
    for (size_t i = 0; i < stacks->left_count; i++)
        free(stacks->left[i].items);
    free(stacks->left);
    free(stacks->now.items);
    krait_newest_tasks_done(&stacks->tasks);
}

static struct calls *left_under(struct stacks *stacks, uint16_t number)
{
    size_t before = stacks->left_count;
    if (!KRAIT_GROW(stacks->left, stacks->left_count, (size_t)number + 1))
        return NULL;
    memset(stacks->left + before, 0, (stacks->left_count - before) * sizeof(*stacks->left));
    return &stacks->left[number];
}

static bool copy_calls(struct calls *to, const struct calls *from)
{
    if (!KRAIT_GROW(to->items, to->cap, from->count))
        return false;
    if (from->count)
        memcpy(to->items, from->items, from->count * sizeof(*to->items));
    to->count = from->count;
    return true;
}

static void switch_stacks(struct stacks *stacks, uint16_t from, uint16_t to)
{
    struct calls *left = left_under(stacks, from), empty = { 0 };
    size_t before = left ? left->count : 0;
    bool fits = left && stacks->left_calls - before + stacks->now.count <= FRAMES_MAX &&
                copy_calls(left, &stacks->now);
    if (left && !fits)
        left->count = 0;
    stacks->left_calls += (left ? left->count : 0) - before;
    const struct calls *next = to && to < stacks->left_count ? &stacks->left[to] : &empty;
    bool taken = copy_calls(&stacks->now, next);
    if (!taken)
        stacks->now.count = 0;
    stacks->failed |= !fits || !taken;
}

static void push(struct calls *calls, uint32_t code, bool is_c)
{
    if (calls->count == FRAMES_MAX || !KRAIT_GROW(calls->items, calls->cap, calls->count + 1))
        return;
    calls->items[calls->count++] = (struct open_call){ code, is_c };
}

static void end_python(struct calls *calls)
{
    size_t n = calls->count;
    while (n && calls->items[n - 1].is_c)
        n--;
    if (n)
        calls->count = n - 1;
}

static void end_c(struct calls *calls)
{
    if (calls->count && calls->items[calls->count - 1].is_c)
        calls->count--;
}

/* Where the Python frame stands that has `depth` others below it; the count when there is none. */
static size_t at_depth(const struct calls *calls, uint32_t depth)
{
    for (size_t i = 0; i < calls->count; i++) {
        if (!calls->items[i].is_c && depth-- == 0)
            return i;
    }
    return calls->count;
}

/* Ends all but the first `depth` Python calls and what those are inside of. */
static void cut_to_depth(struct calls *calls, uint32_t depth)
{
    calls->count = at_depth(calls, depth);
    while (calls->count && calls->items[calls->count - 1].is_c)
        calls->count--;
}

/* As readers do (trace/stack.h): C calls stay below a run that begins above depth 0. */
static void live(struct stacks *stacks, uint32_t code, uint32_t depth)
{
    struct calls *calls = &stacks->now;
    size_t i = at_depth(calls, depth);
    bool below_is_right = depth && !stacks->in_run;
    stacks->in_run = true;
    if (i < calls->count && calls->items[i].code == code)
        return;
    if (!below_is_right || i < calls->count)
        cut_to_depth(calls, depth);
    push(calls, code, false);
}

static void settle(struct stacks *stacks, uint32_t depth)
{
    stacks->in_run = false;
    cut_to_depth(&stacks->now, depth);
}

static void begin(struct calls *calls, struct krait_cursor *payload, bool is_c)
{
    struct krait_payload_python_call call; /* of one field, as all begins */
    if (krait_read_python_call(payload, &call))
        push(calls, call.code, is_c);
}

static void follow(struct stacks *stacks, uint32_t id, struct krait_cursor payload)
{
    struct calls *calls = &stacks->now;
    struct krait_payload_python_frame frame;
    struct krait_payload_python_deep_frame deep_frame;
    struct krait_payload_python_stack stack;
    struct krait_payload_python_deep_stack deep_stack;
    struct krait_payload_python_switch change;
    switch (id) {
    case KRAIT_EVENT_python_call:
    case KRAIT_EVENT_python_resume:
    case KRAIT_EVENT_python_throw:
    case KRAIT_EVENT_c_call:
        begin(calls, &payload, id == KRAIT_EVENT_c_call);
        break;
    case KRAIT_EVENT_python_return:
    case KRAIT_EVENT_python_yield:
    case KRAIT_EVENT_python_unwind:
    case KRAIT_EVENT_python_unwind_of:
        end_python(calls);
        break;
    case KRAIT_EVENT_c_return:
    case KRAIT_EVENT_c_raise:
    case KRAIT_EVENT_c_raise_of:
        end_c(calls);
        break;
    case KRAIT_EVENT_python_frame:
        if (krait_read_python_frame(&payload, &frame))
            live(stacks, frame.code, frame.depth);
        break;
    case KRAIT_EVENT_python_deep_frame:
        if (krait_read_python_deep_frame(&payload, &deep_frame))
            live(stacks, deep_frame.code, deep_frame.depth);
        break;
    case KRAIT_EVENT_python_stack:
        if (krait_read_python_stack(&payload, &stack))
            settle(stacks, stack.depth);
        break;
    case KRAIT_EVENT_python_deep_stack:
        if (krait_read_python_deep_stack(&payload, &deep_stack))
            settle(stacks, deep_stack.depth);
        break;
    case KRAIT_EVENT_python_switch:
        if (krait_read_python_switch(&payload, &change))
            switch_stacks(stacks, change.from, change.to);
        break;
    default:
        break;
    }
}

static uint64_t follow_all(struct stacks *stacks, const uint8_t *bytes, size_t n)
{
    uint64_t count = 0;
    struct krait_cursor events = { bytes, bytes + n }, payload;
    struct krait_event_head head = { 0 };
    for (; krait_packet_event(&events, &head, &payload); count++) {
        follow(stacks, head.id, payload);
        krait_newest_tasks_follow(&stacks->tasks, head.id, payload);
    }
    return count;
}

/* ---- the base ---- */

static void put_frame(struct krait_buf *out, uint64_t time, uint32_t code, uint32_t depth)
{
    uint8_t payload[KRAIT_FRAME_BYTES];
    size_t n;
    uint32_t id = krait_put_frame(payload, code, depth, &n);
    krait_newest_put(out, time, id, payload, n);
}

static void put_depth(struct krait_buf *out, uint64_t time, uint32_t depth)
{
    uint8_t payload[KRAIT_FRAME_BYTES];
    size_t n;
    uint32_t id = krait_put_depth(payload, depth, &n);
    krait_newest_put(out, time, id, payload, n);
}

static void put_c_call(struct krait_buf *out, uint64_t time, uint32_t code)
{
    uint8_t payload[KRAIT_BYTES_c_call];
    size_t n = krait_put_c_call(payload, &(struct krait_payload_c_call){ .code = code });
    krait_newest_put(out, time, KRAIT_EVENT_c_call, payload, n);
}

/* A frame of depth 0 ends the C calls that it would be inside of. */
static size_t first_shown(const struct calls *calls)
{
    size_t i = at_depth(calls, 0);
    return i < calls->count ? i : 0;
}

/* C calls go on below a run of frames that begins above depth 0 (trace/stack.h): so each is between two runs. */
static void put_stack(struct krait_buf *out, uint64_t time, const struct calls *calls)
{
    uint32_t depth = 0;
    bool settled = false;
    for (size_t i = first_shown(calls); i < calls->count; i++) {
        if (calls->items[i].is_c && !settled)
            put_depth(out, time, depth);
        settled = calls->items[i].is_c;
        if (settled)
            put_c_call(out, time, calls->items[i].code);
        else
            put_frame(out, time, calls->items[i].code, depth++);
    }
    if (!settled)
        put_depth(out, time, depth);
}

/* Of stacks that wait as many as fit into `room` bytes; most of a long recording's have ended, which shows nowhere. */
static void put_base(struct krait_buf *out, uint64_t time, struct stacks *stacks, uint64_t room)
{
    enum { FRAME_MOST = sizeof(struct krait_event_extended) + KRAIT_FRAME_BYTES };
    uint8_t payload[KRAIT_FRAME_BYTES];
    bool some = false;
    krait_newest_tasks_put_waiting(&stacks->tasks, out, time, room);
    for (size_t i = 1; i < stacks->left_count; i++) {
        const struct calls *left = &stacks->left[i];
        if (!some) /* readers look at calls from the first greenlet on that is left */
            some = krait_newest_tasks_put_left(&stacks->tasks, out, time, room, i);
        bool fits = out->len + 2 * (left->count + 1) * FRAME_MOST <= room;
        stacks->failed |= left->count && !fits;
        if (left->count && fits)
            put_stack(out, time, left);
        krait_newest_tasks_put_left(&stacks->tasks, out, time, room, i);
        if (!left->count || !fits)
            continue;
        size_t n =
            krait_put_python_switch(payload, &(struct krait_payload_python_switch){ .from = (uint16_t)i });
        krait_newest_put(out, time, KRAIT_EVENT_python_switch, payload, n);
    }
    put_stack(out, time, &stacks->now);
    krait_newest_tasks_put_steps(&stacks->tasks, out, time);
}

/* ---- a file ---- */

/* What is dropped of a file, and what was learnt from it. */
struct cut {
    uint64_t at;                   /* bytes before are dropped */
    uint64_t events;               /* in them */
    uint64_t base_events;          /* written in their place */
    struct krait_packet_head last; /* of them */
    uint64_t time;                 /* from which on events are kept */
    struct stacks stacks;
};

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

static int drop_packets(struct krait_collector *c, int fd, uint64_t since, struct cut *cut)
{
    struct krait_packet_head head;
    KRAIT_AUTO_BUF packet = { 0 };
    uint64_t done = 0;
    while (krait_packet_read_head(fd, cut->at, &head) && head.timestamp_end < since) {
        size_t n = (head.content_size / 8) - sizeof(head);
        krait_buf_clear(&packet);
        char *events = krait_buf_room(&packet, n + 1);
        if (!events || pread(fd, events, n, (off_t)(cut->at + sizeof(head))) != (ssize_t)n)
            return -EIO;
        cut->events += follow_all(&cut->stacks, (const uint8_t *)events, n);
        cut->at += head.packet_size / 8;
        cut->time = head.timestamp_end;
        cut->last = head;
        breathe(c, &done, head.packet_size / 8);
    }
    if (krait_packet_read_head(fd, cut->at, &head))
        cut->time = head.timestamp_begin;
    return 0;
}

static int write_base(int fd, struct cut *cut, uint64_t room)
{
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_packet_head head = cut->last;
    krait_buf_add(&out, (const char *)&head, sizeof(head));
    put_base(&out, cut->time, &cut->stacks, room);
    if (out.failed)
        return -ENOMEM;
    head.timestamp_begin = head.timestamp_end = cut->time;
    head.content_size = head.packet_size = 8 * (uint64_t)out.len;
    memcpy(out.data, &head, sizeof(head));
    cut->base_events =
        krait_packet_count_events((const uint8_t *)out.data + sizeof(head), out.len - sizeof(head));
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

/* stream: of a thread that is recorded; NULL: nobody writes the file any more, and without packets it goes. */
static int rewrite(struct krait_collector *c, const char *path, int fd, struct krait_stream *stream,
                   struct cut *cut)
{
    KRAIT_AUTO_FREE char *beside = NULL;
    if (!stream && cut->at >= size_of(fd))
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

/* For what does not show here: ends of functions that the governor leaves out from somewhere on, stacks that there
 * was no room for. */
static void ask_for_stacks(struct krait_collector *c)
{
    uint32_t used = krait_collector_rings_used(c);
    for (uint32_t r = 0; r < used; r++) {
        if (c->rings[r].known && c->rings[r].kind != KRAIT_RING_DEFINITIONS)
            atomic_fetch_or(&c->shm.rings[r].resync, KRAIT_RESYNC_ANEW);
    }
}

int krait_newest_copy(struct krait_collector *c, const char *from, const char *to, uint64_t since,
                      struct krait_newest_copied *copied)
{
    KRAIT_AUTO_CLOSE int fd = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    struct cut cut = { 0 };
    uint64_t until = fd < 0 ? 0 : size_of(fd);
    int rc = fd < 0 ? -errno : drop_packets(c, fd, since, &cut);
    bool waits = cut.stacks.now.count;
    if (cut.at >= until) /* nothing has happened since, but calls may last */
        cut.time = KRAIT_MAX(cut.time, since);
    if (!rc && (cut.at < until || waits)) {
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
    stacks_done(&cut.stacks);
    return rc;
}

/* The bytes that went are in *went. */
static int trim_file(struct krait_collector *c, const char *path, struct krait_stream *stream, uint64_t since,
                     uint64_t *went)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct cut cut = { 0 };
    int rc = fd < 0 ? -errno : drop_packets(c, fd, since, &cut);
    if (!rc && cut.at)
        rc = rewrite(c, path, fd, stream, &cut);
    if (cut.stacks.failed)
        ask_for_stacks(c);
    stacks_done(&cut.stacks);
    if (rc || !cut.at)
        return rc;
    struct stat now = { 0 };
    stat(path, &now);
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

/* From when on packets are kept so that `excess` bytes go. */
static uint64_t since_when(struct packets *all, uint64_t excess)
{
    if (all->count)
        qsort(all->items, all->count, sizeof(*all->items), by_end);
    uint64_t sum = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (sum >= excess)
            return all->items[i].end;
        sum += all->items[i].bytes;
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

struct trimming {
    struct krait_collector *c;
    uint64_t since;
};

static struct krait_stream *stream_of(struct krait_collector *c, const char *folder, const char *path)
{
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        if (c->procs[i].dir && strcmp(krait_tracedir_path(c->procs[i].dir), folder) == 0)
            return krait_tracedir_find(c->procs[i].dir, path);
    }
    return NULL;
}

static void visit_file(void *data, const char *folder, const char *path)
{
    struct trimming *trimming = data;
    struct krait_collector *c = trimming->c;
    struct krait_err err;
    uint64_t went = 0;
    int rc = trim_file(c, path, stream_of(c, folder, path), trimming->since, &went);
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

static void remove_all_ended(struct krait_collector *c)
{
    size_t kept = 0;
    for (size_t at = 0, n; at < c->ended.len; at += n) {
        n = strlen(c->ended.data + at) + 1;
        if (remove_ended(c, c->ended.data + at))
            continue;
        memmove(c->ended.data + kept, c->ended.data + at, n);
        kept += n;
    }
    c->ended.len = kept;
}

/* From when on packets are kept so that all but `excess` bytes stay. */
static uint64_t since_excess(struct krait_collector *c, uint64_t excess)
{
    struct packets all = { 0 };
    for_each_file(c, "thread-", list_file, &all);
    for_each_file(c, "channel0_", list_file, &all);
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

/* Whether a size is reached, or packets are much older than --last wants; then *since is from when on they are kept. */
static bool is_due(struct krait_collector *c, uint64_t *since)
{
    uint64_t bytes = krait_limits_bytes(c), low = c->max_bytes / 8 * 2, now = krait_clock_ns(CLOCK_MONOTONIC);
    bool is_large =
        c->max_bytes && bytes > c->max_bytes / 8 * 5 && bytes >= c->trimmed_bytes + c->max_bytes / 16;
    bool is_old = c->last_ns && now - c->trimmed_ns >= c->last_ns / 2 * 3 + TRIM_NS;
    if (is_large)
        *since = since_excess(c, bytes - low);
    else if (is_old)
        *since = krait_newest_since(c);
    if (is_large || is_old)
        c->trimmed_ns = now;
    return is_large || is_old;
}

uint64_t krait_collector_keep_newest(struct krait_collector *c, uint64_t beside)
{
    struct trimming trimming = { .c = c };
    c->beside_bytes = beside;
    if (!c->keep_newest || !is_due(c, &trimming.since))
        return 0;
    c->trimming = true;
    for_each_file(c, "thread-", visit_file, &trimming);
    c->trimming = false;
    remove_all_ended(c);
    c->trimmed_bytes = krait_limits_bytes(c);
    if (c->shm.control->max_overhead_ppm)
        ask_for_stacks(c);
    return trimming.since;
}
