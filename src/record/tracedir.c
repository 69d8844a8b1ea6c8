/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tracedir.h"

#include "base/array.h"
#include "base/growing.h"
#include "base/map.h"
#include "event/payload.h"
#include "record/traceid.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* Names of functions, which become labels of the metadata. */
struct labels {
    struct krait_arena arena;
    struct krait_tsdl_code *codes;
    size_t count, cap;
};

struct krait_tracedir {
    char *path;
    char *name;
    char *command;
    uint32_t pid;
    uint8_t uuid[16];
    const struct krait_clock *clock;
    const struct krait_tsdl_recording *recording;
    uint64_t *metadata_bytes, own_metadata_bytes; /* of all traces, of this one */
    struct krait_stream **streams;
    size_t stream_count, stream_cap;
    uint64_t next_instance;
    struct krait_map tids; /* tid to how many streams it has had */
    struct labels labels;  /* unless they are read when they are needed */
    bool reads_labels;
    size_t code_count;                   /* that are defined */
    struct krait_tsdl_contents contents; /* of what is on disk */
    bool outdated;                       /* the metadata says something else by now */
    size_t codes_written; /* in the metadata on disk, or at the last time that the disk refused it */
    int *spare_fds;
    int own_spare_fds;
};

/* A command's name as a file name: no separators, no blanks, not hidden, not long. */
static void file_name(char *to, size_t size, const char *name)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++) {
        unsigned char c = (unsigned char)*name;
        bool fit = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
                   c == '+' || c == '-' || (c == '.' && n > 0);
        to[n++] = fit ? *name : '_';
    }
    to[n] = '\0';
    if (!n)
        snprintf(to, size, "process");
}

static int make_dir(struct krait_tracedir *dir, const char *parent, struct krait_err *err)
{
    char name[32];
    file_name(name, sizeof(name), dir->name);
    for (unsigned i = 1; i < 10000; i++) {
        KRAIT_AUTO_FREE char *path = NULL;
        int n = i == 1 ? asprintf(&path, "%s/%s-%u", parent, name, dir->pid)
                       : asprintf(&path, "%s/%s-%u-%u", parent, name, dir->pid, i);
        if (n < 0)
            return krait_err_set(err, -ENOMEM, "out of memory");
        if (mkdir(path, 0777) == 0) {
            dir->path = path;
            path = NULL;
            return 0;
        }
        if (errno != EEXIST)
            return krait_err_errno(err, "cannot make the folder %s", path);
    }
    return krait_err_set(err, -EEXIST, "%s has too many traces of process %u", parent, dir->pid);
}

static int write_all(int fd, struct iovec *parts, int count)
{
    while (count) {
        ssize_t done = writev(fd, parts, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        for (; count && (size_t)done >= parts->iov_len; parts++, count--)
            done -= (ssize_t)parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return 0;
}

/* -- labels -- */

static void labels_done(struct labels *labels)
{
    krait_arena_done(&labels->arena);
    free(labels->codes);
}

static int add_label(struct labels *labels, uint32_t id, const char *module, const char *name)
{
    if (!KRAIT_GROW(labels->codes, labels->cap, labels->count + 1))
        return -ENOMEM;
    char *label = krait_arena_fmt(&labels->arena, "%s%s%s", module, *module ? "." : "", name);
    if (!label)
        return -ENOMEM;
    labels->codes[labels->count++] = (struct krait_tsdl_code){ .id = id, .label = label };
    return 0;
}

static void learn_code(struct labels *labels, struct krait_cursor payload)
{
    struct krait_payload_code_define code;
    if (krait_read_code_define(&payload, &code))
        add_label(labels, code.id, code.kind == KRAIT_code_kind_name ? "" : code.module, code.qualname);
}

/* From the definitions that were written. */
static const struct labels *read_labels(const struct krait_tracedir *dir, struct labels *labels)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_BUF events = { 0 };
    struct krait_packet_head packet;
    if (asprintf(&path, "%s/%s", dir->path, KRAIT_FILE_DEFINITIONS) < 0)
        return labels;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (uint64_t at = 0; fd >= 0 && krait_packet_read_head(fd, at, &packet); at += packet.packet_size / 8) {
        if (krait_packet_read_events(fd, at, &packet, &events))
            break;
        struct krait_cursor all = { (uint8_t *)events.data, (uint8_t *)events.data + events.len }, payload;
        struct krait_event_head head = { 0 };
        while (krait_packet_event(&all, &head, &payload)) {
            if (head.id == KRAIT_EVENT_code_define)
                learn_code(labels, payload);
        }
    }
    return labels;
}

/* -- metadata -- */

static void metadata_text(const struct krait_tracedir *dir, const struct krait_tsdl_contents *contents,
                          struct krait_buf *text)
{
    KRAIT_CLEANUP(labels_done) struct labels read = { 0 };
    const struct labels *labels = dir->reads_labels ? read_labels(dir, &read) : &dir->labels;
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    struct krait_tsdl tsdl = {
        .host = host,
        .procname = dir->name,
        .command = dir->command,
        .vpid = dir->pid,
        .codes = labels->codes,
        .code_count = labels->count,
        .recording = dir->recording,
        .contents = contents,
    };
    memcpy(tsdl.uuid, dir->uuid, sizeof(tsdl.uuid));
    krait_traceid_clock(&tsdl.clock, dir->clock);
    krait_tsdl_write(text, &tsdl);
}

static int put_metadata(const char *dir, const struct krait_buf *text, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_FREE char *beside = NULL;
    if (text->failed || asprintf(&path, "%s/" KRAIT_FILE_METADATA, dir) < 0 ||
        asprintf(&beside, "%s/.metadata", dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    KRAIT_AUTO_CLOSE int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct iovec all = { text->data, text->len };
    int rc = fd < 0 ? -errno : write_all(fd, &all, 1);
    if (!rc && rename(beside, path) < 0)
        rc = -errno;
    if (!rc)
        return 0;
    unlink(beside);
    errno = -rc;
    return krait_err_errno(err, "cannot write %s", path);
}

/* contents: NULL while there may be more of them. */
static int write_metadata(struct krait_tracedir *dir, const struct krait_tsdl_contents *contents,
                          struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (!dir->path)
        return 0;
    metadata_text(dir, contents, &text);
    int rc = put_metadata(dir->path, &text, err);
    if (rc)
        return rc;
    dir->codes_written = dir->code_count;
    if (dir->metadata_bytes)
        *dir->metadata_bytes += text.len - dir->own_metadata_bytes;
    dir->own_metadata_bytes = text.len;
    return 0;
}

int krait_tracedir_write_metadata(struct krait_tracedir *dir, struct krait_err *err)
{
    return write_metadata(dir, &dir->contents, err);
}

int krait_tracedir_copy_metadata(const struct krait_tracedir *dir, const char *folder, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    metadata_text(dir, NULL, &text);
    return put_metadata(folder, &text, err);
}

int krait_tracedir_new(struct krait_tracedir **out, const struct krait_tracedir_options *options,
                       struct krait_err *err)
{
    struct krait_tracedir *dir = calloc(1, sizeof(*dir));
    if (!dir)
        return krait_err_set(err, -ENOMEM, "out of memory");
    dir->pid = options->pid;
    dir->clock = options->clock;
    dir->recording = options->recording;
    dir->reads_labels = options->reads_labels;
    dir->metadata_bytes = options->metadata_bytes;
    dir->own_spare_fds = INT_MAX;
    dir->spare_fds = options->spare_fds ? options->spare_fds : &dir->own_spare_fds;
    dir->name = strdup(options->name);
    dir->command = strdup(options->command);
    int rc = dir->name && dir->command ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc)
        rc = krait_traceid_new(dir->uuid, err);
    if (!rc && options->parent)
        rc = make_dir(dir, options->parent, err);
    if (!rc)
        rc = write_metadata(dir, NULL, err);
    if (rc) {
        if (dir->path)
            rmdir(dir->path);
        krait_tracedir_free(dir);
        return rc;
    }
    *out = dir;
    return 0;
}

int krait_tracedir_spare_fds(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > 100000)
        return 50000;
    return limit.rlim_cur > 8 ? (int)(limit.rlim_cur - 8) / 2 : 0;
}

static int stream_open(const struct krait_stream *stream)
{
    return krait_growing_open(stream->path, O_APPEND);
}

/* Keeps it open if that is affordable. */
static void stream_keep(struct krait_tracedir *dir, struct krait_stream *stream, int fd)
{
    if (*dir->spare_fds <= 0) {
        close(fd);
        return;
    }
    stream->fd = fd;
    --*dir->spare_fds;
}

static void stream_free(struct krait_tracedir *dir, struct krait_stream *stream)
{
    if (stream->fd >= 0) {
        close(stream->fd);
        ++*dir->spare_fds;
    }
    free(stream->path);
    free(stream);
}

void krait_tracedir_free(struct krait_tracedir *dir)
{
    if (!dir)
        return;
    for (size_t i = 0; i < dir->stream_count; i++)
        stream_free(dir, dir->streams[i]);
    free(dir->streams);
    krait_map_done(&dir->tids);
    labels_done(&dir->labels);
    free(dir->path);
    free(dir->name);
    free(dir->command);
    free(dir);
}

const char *krait_tracedir_path(const struct krait_tracedir *dir)
{
    return dir->path;
}

static int stream_path(struct krait_tracedir *dir, uint32_t tid, char **path)
{
    if (tid == 0)
        return asprintf(path, "%s/%s", dir->path, KRAIT_FILE_DEFINITIONS);
    uint64_t *seen = krait_map_get(&dir->tids, tid);
    uint32_t count = seen ? (uint32_t)*seen : 0;
    if (krait_map_put(&dir->tids, tid, count + 1))
        return -1;
    return asprintf(path, "%s/" KRAIT_FILE_THREAD, dir->path, tid, count);
}

int krait_tracedir_stream(struct krait_tracedir *dir, uint32_t tid, struct krait_stream **out,
                          struct krait_err *err)
{
    bool has_room = KRAIT_GROW(dir->streams, dir->stream_cap, dir->stream_count + 1);
    struct krait_stream *stream = calloc(1, sizeof(*stream));
    if (!has_room || !stream || (dir->path && stream_path(dir, tid, &stream->path) < 0)) {
        free(stream);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    stream->fd = -1;
    int fd = dir->path ? stream_open(stream) : -1;
    if (dir->path && fd < 0) {
        int rc = krait_err_errno(err, "cannot make %s", stream->path);
        stream_free(dir, stream);
        return rc;
    }
    if (fd >= 0)
        stream_keep(dir, stream, fd);
    stream->tid = tid;
    stream->instance = dir->next_instance++;
    dir->streams[dir->stream_count++] = stream;
    *out = stream;
    return 0;
}

struct krait_stream *krait_tracedir_find(const struct krait_tracedir *dir, const char *path)
{
    for (size_t i = 0; i < dir->stream_count; i++) {
        if (strcmp(dir->streams[i]->path, path) == 0)
            return dir->streams[i];
    }
    return NULL;
}

void krait_tracedir_stream_close(struct krait_tracedir *dir, struct krait_stream *stream)
{
    for (size_t i = 0; i < dir->stream_count; i++) {
        if (dir->streams[i] == stream) {
            dir->streams[i] = dir->streams[--dir->stream_count];
            stream_free(dir, stream);
            return;
        }
    }
}

bool krait_packet_event(struct krait_cursor *events, struct krait_event_head *head,
                        struct krait_cursor *payload)
{
    struct krait_cursor at = *events;
    struct krait_event_head read = *head;
    if (!krait_head_read(&at, &read))
        return false;
    *payload = at;
    if (!krait_payload_skip(read.id, &at))
        return false;
    payload->end = at.at;
    *head = read;
    *events = at;
    return true;
}

/* What the ids of short headers say, a bit each: an event of one word, of two, or one to be looked at. */
struct id_sets {
    uint32_t two, other;
};

static struct id_sets sort_ids(void)
{
    struct id_sets sets = { 0 };
    for (uint32_t id = 0; id <= KRAIT_CTF_EXTENDED; id++) {
        uint16_t payload = id < KRAIT_CTF_EXTENDED ? krait_event_payload_bytes[id] : KRAIT_PAYLOAD_VARIES;
        bool other = (payload != 4 && payload != 0) || id == KRAIT_EVENT_gil_wait || krait_event_is_other(id);
        sets.two |= (uint32_t)(payload == 4 && !other) << id;
        sets.other |= (uint32_t)other << id;
    }
    return sets;
}

/* 64 words at once. Which words are payloads depends on the word before, and so on to the first; but it is
 * what "is this character escaped by a backslash" is to a parser of strings, which runs of carries answer
 * without a branch (Langdale and Lemire, Parsing Gigabytes of JSON per Second, 2019, 3.1.1). Walking from
 * event to event costs three times as much. Counts in *count; returns how many words were understood, up to
 * the first event of another kind. *payload: the next word is a payload. */
static unsigned count_block(const uint8_t *words, const struct id_sets *sets, uint64_t *payload,
                            uint64_t *count)
{
    const uint64_t even = 0x5555555555555555ull;
    uint64_t two = 0, other = 0;
    for (unsigned i = 0; i < 64; i++) {
        uint32_t word;
        memcpy(&word, words + 4 * (size_t)i, sizeof(word));
        const uint32_t id = krait_head_unpack(word, 0).id;
        two |= (uint64_t)(sets->two >> id & 1) << i;
        other |= (uint64_t)(sets->other >> id & 1) << i;
    }
    two &= ~*payload;
    uint64_t follows = two << 1 | *payload;
    uint64_t runs;
    uint64_t next = __builtin_add_overflow(two & ~even & ~follows, two, &runs);
    uint64_t starts = ~((even ^ runs << 1) & follows);
    if (!(starts & other)) {
        *payload = next;
        *count += (unsigned)__builtin_popcountll(starts);
        return 64;
    }
    unsigned known = (unsigned)__builtin_ctzll(starts & other);
    *payload = 0;
    *count += (unsigned)__builtin_popcountll(starts & ((1ull << known) - 1));
    return known;
}

/* What there is besides calls is added to *contents. */
static uint64_t count_events(const uint8_t *events, size_t n, struct krait_tsdl_contents *contents)
{
    const struct id_sets sets = sort_ids();
    uint64_t count = 0, payload = 0;
    struct krait_cursor at = { events, events + n }, unused;
    struct krait_event_head head = { 0 };
    for (;;) {
        unsigned known = 64;
        while (at.end - at.at >= 256 && known == 64) {
            known = count_block(at.at, &sets, &payload, &count);
            at.at += 4 * (size_t)known;
        }
        if (payload && at.end - at.at < 4)
            return count - 1; /* the last one is not whole */
        at.at += 4 * payload;
        payload = 0;
        if (!krait_packet_event(&at, &head, &unused))
            return count;
        count++;
        contents->gil_waits += head.id == KRAIT_EVENT_gil_wait;
        contents->others[head.id] |= krait_event_is_other(head.id);
    }
}

uint64_t krait_packet_count_events(const uint8_t *events, size_t n)
{
    struct krait_tsdl_contents ignored = { 0 };
    return count_events(events, n, &ignored);
}

bool krait_packet_read_head(int fd, uint64_t at, struct krait_packet_head *head)
{
    return pread(fd, head, sizeof(*head), (off_t)at) == sizeof(*head) && head->magic == KRAIT_CTF_MAGIC &&
           head->packet_size / 8 >= sizeof(*head) && head->content_size <= head->packet_size;
}

int krait_packet_read_events(int fd, uint64_t at, const struct krait_packet_head *head,
                             struct krait_buf *events)
{
    size_t n = KRAIT_MAX(head->content_size / 8, sizeof(*head)) - sizeof(*head);
    krait_buf_clear(events);
    char *to = krait_buf_room(events, n);
    if (!to || pread(fd, to, n, (off_t)(at + sizeof(*head))) != (ssize_t)n)
        return -EIO;
    events->len = n;
    return 0;
}

size_t krait_packet_last_time(const uint8_t *events, size_t n, uint64_t *time)
{
    struct krait_cursor at = { events, events + n }, unused;
    struct krait_event_head head = { .t = *time };
    while (krait_packet_event(&at, &head, &unused))
        *time = head.t;
    return (size_t)(at.at - events);
}

static int append(const struct krait_stream *stream, struct iovec parts[2])
{
    int fd = stream->fd >= 0 ? stream->fd : stream_open(stream);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, parts, 2);
    /* The part that was written would be damage to a reader. */
    if (rc && ftruncate(fd, (off_t)stream->bytes) < 0)
        rc = -errno;
    if (fd != stream->fd)
        close(fd);
    return rc;
}

/* The head is a copy: the program can change its own at any time. */
int krait_tracedir_write(struct krait_tracedir *dir, struct krait_stream *stream,
                         const struct krait_packet_head *head, const void *events, size_t n,
                         struct krait_err *err)
{
    if (!n || !dir->path)
        return 0;
    struct krait_tsdl_contents contents = dir->contents;
    uint64_t count = count_events(events, n, &contents);
    uint64_t bits = 8 * (uint64_t)(sizeof(*head) + n);
    struct krait_packet_head whole = {
        .magic = KRAIT_CTF_MAGIC,
        .stream_instance = stream->instance,
        .timestamp_begin = head->timestamp_begin,
        .timestamp_end = head->timestamp_end,
        .content_size = bits,
        .packet_size = bits,
        .packet_seq_num = stream->packets++,
        .events_discarded = head->events_discarded + stream->discarded,
        .vtid = stream->tid,
    };
    memcpy(whole.uuid, dir->uuid, sizeof(dir->uuid));
    struct iovec parts[] = { { &whole, sizeof(whole) }, { (void *)events, n } };
    int rc = append(stream, parts);
    if (rc) {
        stream->discarded += count;
        errno = -rc;
        return krait_err_errno(err, "cannot write %s", stream->path);
    }
    stream->bytes += bits / 8;
    stream->events += count;
    dir->contents = contents;
    return 0;
}

static void set_text(char **to, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return;
    free(*to);
    *to = copy;
}

/* When the collector asked the kernel the process may have ended, or have executed another program; it said its
 * command line itself. */
static void learn_command(struct krait_tracedir *dir, struct krait_cursor payload)
{
    struct krait_payload_process_start start;
    if (krait_read_process_start(&payload, &start) && *start.command)
        set_text(&dir->command, start.command);
}

void krait_tracedir_rename(struct krait_tracedir *dir, const char *name, const char *command)
{
    if (strcmp(dir->name, name) == 0 && strcmp(dir->command, command) == 0)
        return;
    set_text(&dir->name, name);
    set_text(&dir->command, command);
    dir->outdated = true;
}

/* Whether the next event has the long form, as all of the definitions. */
static bool is_extended(const struct krait_cursor *events)
{
    return events->at < events->end && *events->at == KRAIT_CTF_EXTENDED;
}

size_t krait_tracedir_define(struct krait_tracedir *dir, const uint8_t *events, size_t n, uint64_t *first,
                             uint64_t *last)
{
    struct krait_cursor at = { events, events + n }, payload;
    struct krait_event_head head = { 0 };
    while (is_extended(&at) && krait_packet_event(&at, &head, &payload)) {
        if (payload.at == events + sizeof(struct krait_event_extended))
            *first = head.t;
        *last = head.t;
        bool is_code = head.id == KRAIT_EVENT_code_define && dir->path;
        dir->code_count += is_code;
        if (is_code && !dir->reads_labels)
            learn_code(&dir->labels, payload);
        if (head.id == KRAIT_EVENT_process_start)
            learn_command(dir, payload);
    }
    return (size_t)(at.at - events);
}

void krait_tracedir_order(uint8_t *events, size_t n, uint64_t *last, uint64_t now)
{
    struct krait_cursor at = { events, events + n }, payload;
    struct krait_event_head head = { 0 };
    for (uint8_t *event = events; is_extended(&at) && krait_packet_event(&at, &head, &payload);
         event = events + (at.at - events)) {
        *last = KRAIT_MAX(KRAIT_MIN(head.t, now), *last);
        krait_head_extend(event, head.id, *last);
    }
}

/* Writes other text in the place of a part of the metadata, from where `begin` stands to behind the next `end`. */
static int replace_metadata(const char *dir, const char *begin, const char *end, const struct krait_buf *text,
                            struct krait_err *err)
{
    KRAIT_AUTO_BUF before = { 0 };
    KRAIT_AUTO_BUF after = { 0 };
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" KRAIT_FILE_METADATA, dir) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_buf_read_file(&before, path);
    const char *from = rc || !before.data ? NULL : strstr(before.data, begin);
    const char *to = from ? strstr(from + strlen(begin), end) : NULL;
    if (!to)
        return krait_err_set(err, rc ? rc : -EBADMSG, "cannot read %s", path);
    to += strlen(end);
    krait_buf_add(&after, before.data, (size_t)(from - before.data));
    krait_buf_add(&after, text->data, text->len);
    krait_buf_add(&after, to, before.len - (size_t)(to - before.data));
    return put_metadata(dir, &after, err);
}

/* The block begins a line and its end is a line: names have no newlines, they are escaped. */
int krait_tracedir_set_clock(const char *dir, const struct krait_clock *clock, struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    struct krait_tsdl_clock about;
    krait_traceid_clock(&about, clock);
    krait_tsdl_write_clock(&text, &about);
    return replace_metadata(dir, "\nclock {\n", "\n};\n", &text, err);
}

/* The last lines of the environment. */
int krait_tracedir_set_amounts(const char *dir, const struct krait_tsdl_recording *recording,
                               struct krait_err *err)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_str(&text, "\n");
    krait_tsdl_write_amounts(&text, recording);
    krait_buf_str(&text, "};\n");
    return replace_metadata(dir, "\n    ring_size = ", "\n};\n", &text, err);
}

void krait_tracedir_outdate_metadata(struct krait_tracedir *dir)
{
    dir->outdated = true;
}

int krait_tracedir_refresh_metadata(struct krait_tracedir *dir, struct krait_err *err)
{
    if (dir->code_count < 2 * dir->codes_written + 16 && !dir->outdated)
        return 0;
    dir->outdated = false;
    int rc = write_metadata(dir, NULL, err);
    dir->codes_written = dir->code_count; /* a disk that is full is not asked all the time */
    return rc;
}
