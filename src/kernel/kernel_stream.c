/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel_stream.h"

#include "base/array.h"
#include "base/growing.h"
#include "ctf/format.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>

enum { PACKET_FULL = 64 * 1024, EXTENDED = 0xffff };

struct compact {
    uint16_t id;
    uint32_t time;
    int32_t tid;
} __attribute__((packed));

struct extended {
    uint16_t tag;
    uint32_t id;
    uint64_t time;
    int32_t tid;
} __attribute__((packed));

int krait_kernel_stream_init(struct krait_kernel_stream *stream, const char *path, const uint8_t uuid[16],
                             uint32_t cpu, uint64_t instance, struct krait_err *err)
{
    *stream = (struct krait_kernel_stream){ .cpu = cpu, .instance = instance };
    memcpy(stream->uuid, uuid, sizeof(stream->uuid));
    stream->fd = krait_growing_open(path, O_EXCL);
    return stream->fd < 0 ? krait_err_errno(err, "cannot make %s", path) : 0;
}

void krait_kernel_stream_done(struct krait_kernel_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    krait_buf_done(&stream->packet);
    free(stream->counts.items);
}

/* ---- packets ---- */

static void fill_head(struct krait_kernel_stream *stream)
{
    struct krait_packet_head head = {
        .magic = KRAIT_CTF_MAGIC,
        .stream_instance = stream->instance,
        .timestamp_begin = stream->first,
        .timestamp_end = stream->last,
        .content_size = 8 * stream->packet.len,
        .packet_size = 8 * stream->packet.len,
        .packet_seq_num = stream->sequence++,
        .events_discarded = stream->lost,
        .vtid = stream->cpu, /* the same place, here of the CPU */
    };
    memcpy(head.uuid, stream->uuid, sizeof(head.uuid));
    memcpy(stream->packet.data, &head, sizeof(head));
}

static int write_whole(int fd, const char *bytes, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = pwrite(fd, bytes + done, n - done, (off_t)(at + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        done += (size_t)written;
    }
    return 0;
}

/* A packet without events tells where a stream ends: it is always written. After one that does not fit there is no room for smaller
 * ones either, so that a stream ends there and has no hole. */
static bool take_room(const struct krait_kernel_stream *stream)
{
    uint64_t n = stream->packet.len;
    if (!stream->room)
        return true;
    bool fits = !stream->in_packet || n <= *stream->room;
    *stream->room = fits ? *stream->room - KRAIT_MIN(n, *stream->room) : 0;
    return fits;
}

static int write_packet(struct krait_kernel_stream *stream)
{
    struct krait_buf *packet = &stream->packet;
    fill_head(stream);
    struct krait_kernel_counts *counts = &stream->counts;
    int rc = KRAIT_GROW(counts->items, counts->cap, counts->count + 1)
                 ? write_whole(stream->fd, packet->data, packet->len, stream->bytes)
                 : -ENOMEM;
    if (!rc) {
        stream->bytes += packet->len;
        stream->events += stream->in_packet;
        counts->items[counts->count++] = (uint32_t)stream->in_packet;
    } else {
        if (ftruncate(stream->fd, (off_t)stream->bytes)) /* half a packet would be damage */
            rc = -errno;
        stream->refused += stream->in_packet;
        stream->lost += stream->in_packet;
    }
    return rc;
}

int krait_kernel_stream_flush(struct krait_kernel_stream *stream)
{
    int rc = 0;
    if (!stream->packet.len)
        return 0;
    if (take_room(stream)) {
        rc = write_packet(stream);
    } else {
        stream->no_room += stream->in_packet;
        stream->lost += stream->in_packet;
    }
    stream->in_packet = 0;
    krait_buf_clear(&stream->packet);
    return rc;
}

/* How many bytes of packets at the beginning ended before, and how many packets. */
static uint64_t bytes_before(int fd, uint64_t since, size_t *packets)
{
    struct krait_packet_head head;
    uint64_t at = 0;
    while (pread(fd, &head, sizeof(head), (off_t)at) == sizeof(head) && head.timestamp_end < since &&
           head.packet_size) {
        at += head.packet_size / 8;
        ++*packets;
    }
    return at;
}

/* The packets are not on disk any more. */
static void forget_packets(struct krait_kernel_stream *stream, size_t packets)
{
    struct krait_kernel_counts *counts = &stream->counts;
    packets = KRAIT_MIN(packets, counts->count);
    for (size_t i = 0; i < packets; i++)
        stream->events -= counts->items[i];
    counts->count -= packets;
    memmove(counts->items, counts->items + packets, counts->count * sizeof(*counts->items));
}

static int copy(int to, int from, uint64_t at, uint64_t end)
{
    for (off_t offset = (off_t)at; (uint64_t)offset < end;) {
        ssize_t n = sendfile(to, from, &offset, end - (uint64_t)offset);
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
    }
    return 0;
}

int krait_kernel_stream_drop_before(struct krait_kernel_stream *stream, const char *dir, uint64_t since)
{
    KRAIT_AUTO_FREE char *path = NULL;
    KRAIT_AUTO_FREE char *beside = NULL;
    if (asprintf(&path, "%s/channel0_%u", dir, stream->cpu) < 0 || asprintf(&beside, "%s/.new", dir) < 0)
        return -ENOMEM;
    KRAIT_AUTO_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC);
    size_t packets = 0;
    uint64_t at = from < 0 ? 0 : bytes_before(from, since, &packets);
    if (!at)
        return 0;
    int to = krait_growing_open(beside, 0);
    int rc = to < 0 ? -errno : copy(to, from, at, stream->bytes);
    if (!rc && rename(beside, path) < 0)
        rc = -errno;
    if (rc) {
        unlink(beside);
        if (to >= 0)
            close(to);
        return rc;
    }
    close(stream->fd);
    stream->fd = to;
    stream->bytes -= at;
    forget_packets(stream, packets);
    return 0;
}

int krait_kernel_stream_lose(struct krait_kernel_stream *stream, uint64_t count)
{
    int rc = krait_kernel_stream_flush(stream);
    stream->lost += count;
    return rc;
}

/* ---- events ---- */

static bool open_packet(struct krait_kernel_stream *stream, uint64_t time)
{
    if (!krait_buf_room(&stream->packet, sizeof(struct krait_packet_head)))
        return false;
    stream->packet.len = sizeof(struct krait_packet_head);
    stream->first = stream->last = time;
    return true;
}

static size_t put_header(struct krait_kernel_stream *stream, char *to, uint16_t id, uint64_t time,
                         int32_t tid)
{
    if (KRAIT_LIKELY(time - stream->last <= UINT32_MAX)) {
        struct compact head = { id, (uint32_t)time, tid };
        memcpy(to, &head, sizeof(head));
        return sizeof(head);
    }
    struct extended head = { EXTENDED, id, time, tid };
    memcpy(to, &head, sizeof(head));
    return sizeof(head);
}

int krait_kernel_stream_mark(struct krait_kernel_stream *stream, uint64_t time)
{
    int rc = krait_kernel_stream_flush(stream);
    if (rc)
        return rc;
    return open_packet(stream, KRAIT_MAX(time, stream->last)) ? krait_kernel_stream_flush(stream) : -ENOMEM;
}

uint8_t *krait_kernel_stream_begin(struct krait_kernel_stream *stream, uint16_t id, uint64_t time,
                                   int32_t tid, size_t max, int *rc)
{
    struct krait_buf *packet = &stream->packet;
    *rc = packet->len >= PACKET_FULL ? krait_kernel_stream_flush(stream) : 0;
    time = KRAIT_MAX(time, stream->last);
    if (!packet->len && !open_packet(stream, time))
        return NULL;
    char *to = krait_buf_room(packet, sizeof(struct extended) + max);
    if (!to)
        return NULL;
    packet->len += put_header(stream, to, id, time, tid);
    stream->last = time;
    return (uint8_t *)packet->data + packet->len;
}

void krait_kernel_stream_end(struct krait_kernel_stream *stream, size_t n)
{
    stream->packet.len += n;
    stream->in_packet++;
}
