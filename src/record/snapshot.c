/* SPDX-License-Identifier: Apache-2.0
 *
 * A snapshot: what the recording holds now, or with --last its newest part, as a recording of its own. Threads' files
 * begin with the stack that the packets before had left (newest.c); definitions are whole, and copied last, so that they
 * have the names of all that was copied; of living processes an end is added, and new metadata. All of it is made in
 * DIR.part, which then becomes DIR.
 *
 * The programs run on meanwhile, and their rings are drained now and then.
 */
#include "base/buf.h"
#include "event/payload.h"
#include "record/collector_inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { NAMES_MAX = 100000 }; /* of snapshots beside a recording */

void krait_collector_lost_until_now(struct krait_collector *c, uint32_t proc,
                                    uint64_t lost[KRAIT_COUNT_lost_reason])
{
    const struct krait_collected_proc *p = &c->procs[proc];
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++)
        lost[reason] = atomic_load(&c->shm.procs[proc].lost[reason]) + p->lost[reason];
    for (uint32_t r = 0; r < krait_collector_rings_used(c); r++) {
        if (c->rings[r].known && c->rings[r].proc == proc)
            lost[KRAIT_lost_reason_ring_full] += atomic_load(&c->shm.rings[r].discarded);
    }
}

struct snapshot {
    struct krait_collector *c;
    const char *part;         /* the folder while it is made */
    const char *from, *to;    /* a process's folder, and that of its copy */
    struct krait_omits omits; /* of the process */
    uint64_t since;
    uint64_t bytes, dropped;
    uint32_t files; /* of threads, in `to` */
    int rc;
    struct krait_err *err;
};

/* ---- files ---- */

static void fail(struct snapshot *s, int rc, const char *path)
{
    if (s->rc)
        return;
    errno = -rc;
    s->rc = krait_err_errno(s->err, "cannot write the snapshot: %s", path);
}

static void copy_thread(void *data, const char *folder, const char *path)
{
    struct snapshot *s = data;
    KRAIT_AUTO_FREE char *to = NULL;
    struct krait_newest_copied copied;
    if (s->rc)
        return;
    if (asprintf(&to, "%s%s", s->to, strrchr(path, '/')) < 0) {
        to = NULL;
        s->rc = krait_err_set(s->err, -ENOMEM, "out of memory");
        return;
    }
    const struct krait_newest_file file = { path, s->since, true, &s->omits };
    int rc = krait_newest_copy(s->c, &file, to, &copied);
    if (rc == -ENOENT) /* somebody took it away */
        return;
    if (rc)
        fail(s, rc, to);
    s->files += copied.bytes != 0;
    s->bytes += copied.bytes;
    s->dropped += copied.dropped;
}

static int copy_whole(struct snapshot *s, const char *name)
{
    KRAIT_AUTO_FREE char *from = NULL, *to = NULL;
    if (asprintf(&from, "%s/%s", s->from, name) < 0 || asprintf(&to, "%s/%s", s->to, name) < 0)
        return -ENOMEM;
    KRAIT_AUTO_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC);
    KRAIT_AUTO_CLOSE int out = open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct stat st;
    if (in < 0 || out < 0 || fstat(in, &st) < 0)
        return -errno;
    for (off_t at = 0; at < st.st_size;) {
        ssize_t n = sendfile(out, in, &at, (size_t)(st.st_size - at));
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    s->bytes += (uint64_t)st.st_size;
    return 0;
}

/* ---- the end of a process that lives on ---- */

/* The head of the last packet, or none. */
static bool last_head(int fd, struct krait_packet_head *last)
{
    struct krait_packet_head head;
    bool any = false;
    for (uint64_t at = 0; krait_packet_read_head(fd, at, &head); at += head.packet_size / 8) {
        *last = head;
        any = true;
    }
    return any;
}

static void put_event(struct krait_buf *out, uint64_t time, uint32_t id, const void *payload, size_t n)
{
    char *to = krait_buf_room(out, sizeof(struct krait_event_extended) + n);
    if (!to)
        return;
    size_t head = krait_head_extend((uint8_t *)to, id, time);
    memcpy(to + head, payload, n);
    out->len += head + n;
}

static void put_end(struct krait_collector *c, uint32_t proc, uint64_t time, struct krait_buf *out)
{
    uint8_t payload[KRAIT_MAX(KRAIT_BYTES_lost, KRAIT_BYTES_process_exit)];
    uint64_t lost[KRAIT_COUNT_lost_reason];
    krait_put_process_exit(
        payload, &(struct krait_payload_process_exit){ .how = KRAIT_process_end_stop, .status = -1 });
    put_event(out, time, KRAIT_EVENT_process_exit, payload, KRAIT_BYTES_process_exit);
    krait_collector_lost_until_now(c, proc, lost);
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++) {
        if (!lost[reason])
            continue;
        krait_put_lost(payload,
                       &(struct krait_payload_lost){ .reason = (uint8_t)reason, .count = lost[reason] });
        put_event(out, time, KRAIT_EVENT_lost, payload, KRAIT_BYTES_lost);
    }
}

/* A packet more in the copy of the definitions. */
static int add_end(struct snapshot *s, uint32_t proc)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_BUF out = { 0 };
    struct krait_packet_head head;
    if (asprintf(&path, "%s/" KRAIT_FILE_DEFINITIONS, s->to) < 0)
        return -ENOMEM;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (!last_head(fd, &head))
        return 0;
    krait_buf_add(&out, (const char *)&head, sizeof(head));
    head.timestamp_begin = head.timestamp_end = KRAIT_MAX(krait_clock_now(&s->c->clock), head.timestamp_end);
    put_end(s->c, proc, head.timestamp_end, &out);
    if (out.failed)
        return -ENOMEM;
    head.packet_seq_num++;
    head.content_size = head.packet_size = 8 * (uint64_t)out.len;
    memcpy(out.data, &head, sizeof(head));
    s->bytes += out.len;
    return write(fd, out.data, out.len) == (ssize_t)out.len ? 0 : -ENOSPC;
}

/* ---- processes ---- */

static void copy_names(struct snapshot *s)
{
    struct krait_collector *c = s->c;
    uint32_t proc = krait_collector_proc_in(c, s->from);
    bool lives = proc < KRAIT_PROCS_MAX;
    int rc = copy_whole(s, KRAIT_FILE_DEFINITIONS);
    if (!rc && lives)
        rc = add_end(s, proc);
    if (!rc && !lives)
        rc = copy_whole(s, KRAIT_FILE_METADATA);
    if (rc)
        fail(s, rc, s->to);
    else if (lives ? krait_tracedir_copy_metadata(c->procs[proc].dir, s->to, s->err)
                   : krait_tracedir_set_amounts(s->to, &c->recording, s->err))
        s->rc = s->err->code;
}

typedef void visit_process_fn(struct snapshot *s);

static void copy_threads(struct snapshot *s)
{
    s->files = 0;
    if (mkdir(s->to, 0777) < 0) {
        fail(s, -errno, s->to);
        return;
    }
    krait_newest_read_omits(s->c, s->from, &s->omits);
    krait_collector_each_file(s->from, "thread-", copy_thread, s);
    krait_omits_done(&s->omits);
    if (!s->rc && s->since && !s->files && krait_collector_proc_in(s->c, s->from) == KRAIT_PROCS_MAX)
        rmdir(s->to); /* it had ended before */
}

static void finish_process(struct snapshot *s)
{
    if (access(s->to, F_OK) == 0)
        copy_names(s);
}

/* Calls `visit` for each process's folder: that of the kernel has no definitions. */
static void each_process(struct snapshot *s, visit_process_fn *visit)
{
    DIR *top = opendir(s->c->dir);
    for (const struct dirent *d; top && !s->rc && (d = readdir(top));) {
        char from[PATH_MAX], to[PATH_MAX], definitions[PATH_MAX];
        if (d->d_name[0] == '.' ||
            snprintf(from, sizeof(from), "%s/%s", s->c->dir, d->d_name) >= (int)sizeof(from) ||
            snprintf(to, sizeof(to), "%s/%s", s->part, d->d_name) >= (int)sizeof(to) ||
            snprintf(definitions, sizeof(definitions), "%s/" KRAIT_FILE_DEFINITIONS, from) >=
                (int)sizeof(definitions) ||
            access(definitions, F_OK) < 0)
            continue;
        s->from = from;
        s->to = to;
        visit(s);
    }
    if (!top)
        fail(s, -errno, s->c->dir);
    else
        closedir(top);
}

/* ---- all of it ---- */

static void remove_file(void *data, const char *folder, const char *path)
{
    unlink(path);
}

/* A snapshot that was not finished. */
static void remove_part(const char *part)
{
    char folder[PATH_MAX];
    DIR *top = opendir(part);
    for (const struct dirent *d; top && (d = readdir(top));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
            snprintf(folder, sizeof(folder), "%s/%s", part, d->d_name) >= (int)sizeof(folder))
            continue;
        krait_collector_each_file(folder, "", remove_file, NULL);
        rmdir(folder);
    }
    if (top)
        closedir(top);
    rmdir(part);
}

/* DIR-snapshot-1 and so on, the first that is not there. */
static char *default_name(const struct krait_collector *c)
{
    size_t n = strlen(c->dir);
    while (n > 1 && c->dir[n - 1] == '/')
        n--;
    for (unsigned i = 1; i < NAMES_MAX; i++) {
        char *name;
        if (asprintf(&name, "%.*s-snapshot-%u", (int)n, c->dir, i) < 0)
            return NULL;
        if (access(name, F_OK) < 0)
            return name;
        free(name);
    }
    return NULL;
}

static int make(struct krait_collector *c, const char *part, struct snapshot *s)
{
    if (mkdir(part, 0777) < 0)
        return krait_err_errno(s->err, "cannot make the folder %s", part);
    krait_drain_rings(c);
    krait_drain_open(c);
    s->since = krait_newest_since(c);
    c->trimming = true; /* no stream is closed now */
    each_process(s, copy_threads);
    const struct krait_tsdl_recording whole = c->recording;
    c->recording.dropped_events += s->dropped;
    c->recording.kept_from = KRAIT_MAX(whole.kept_from, s->since);
    each_process(s, finish_process);
    c->recording.dropped_events = whole.dropped_events;
    c->recording.kept_from = whole.kept_from;
    c->trimming = false;
    return s->rc;
}

int krait_collector_snapshot(struct krait_collector *c, const char *dir,
                             struct krait_collector_snapshot *made, struct krait_err *err)
{
    uint64_t begin = krait_clock_ns(CLOCK_MONOTONIC);
    KRAIT_AUTO_FREE char *name = dir ? strdup(dir) : default_name(c), *part = NULL;
    if (!name || asprintf(&part, "%s.part", name) < 0) {
        part = NULL;
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (access(name, F_OK) == 0)
        return krait_err_set(err, -EEXIST, "%s is there already; choose another folder with -o", name);
    struct snapshot s = { .c = c, .part = part, .err = err };
    int rc = make(c, part, &s);
    if (!rc && rename(part, name) < 0)
        rc = krait_err_errno(err, "cannot make the folder %s", name);
    if (rc) {
        if (rc != -EEXIST)
            remove_part(part);
        return rc;
    }
    *made = (struct krait_collector_snapshot){ .dir = realpath(name, NULL),
                                               .bytes = s.bytes,
                                               .took_ns = krait_clock_ns(CLOCK_MONOTONIC) - begin };
    return made->dir ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
}
