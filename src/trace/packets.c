/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/packets.h"

#include "base/growing.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { HEAD = sizeof(struct krait_packet_head), RELEASE_BYTES = 4 << 20 };

void krait_damage_say(struct krait_damage *damage, const char *fmt, ...)
{
    if (!damage->text || !damage->size || damage->text[0])
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(damage->text, damage->size, fmt, ap);
    va_end(ap);
}

void krait_packet_damaged(const struct krait_packet *packet, const uint8_t *event, uint32_t id,
                          const char *path, struct krait_damage *damage)
{
    size_t offset = packet->offset + sizeof(packet->head) + (size_t)(event - packet->body);
    krait_damage_say(damage,
                     "%s: byte %zu: no whole event is here (id %u); the packet's last %zu bytes are left out",
                     path, offset, id, (size_t)(packet->end - event));
}

int krait_packets_open(struct krait_packets *packets, const char *path, const uint8_t uuid[16],
                       struct krait_err *err)
{
    *packets = (struct krait_packets){ .path = path };
    memcpy(packets->uuid, uuid, sizeof(packets->uuid));
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    packets->growing = fd >= 0 && krait_growing(fd);
    if (fd < 0 || fstat(fd, &st) < 0)
        return krait_err_errno(err, "%s", path);
    if (!S_ISREG(st.st_mode))
        return krait_err_set(err, -EINVAL, "%s: not a regular file", path);
    if (!st.st_size)
        return 0;
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return krait_err_errno(err, "%s: cannot be mapped", path);
    madvise(bytes, (size_t)st.st_size, MADV_SEQUENTIAL);
    packets->bytes = bytes;
    packets->size = packets->mapped = (size_t)st.st_size;
    return 0;
}

void krait_packets_close(struct krait_packets *packets)
{
    if (packets->bytes)
        munmap((void *)packets->bytes, packets->mapped);
    packets->bytes = NULL;
}

/* Why the head cannot be one of this trace's; NULL when it can. */
static const char *head_fault(const struct krait_packets *packets, const struct krait_packet_head *head)
{
    if (head->magic != KRAIT_CTF_MAGIC)
        return "no packet begins here";
    if (memcmp(head->uuid, packets->uuid, sizeof(head->uuid)) != 0)
        return "the packet belongs to another trace";
    if (head->packet_size % 8 || head->content_size > head->packet_size || head->content_size < HEAD * 8)
        return "the packet's sizes cannot be";
    return NULL;
}

/* Where the next head with our magic and uuid is, after a bad one; the file's size when there is none. */
static size_t find_head(const struct krait_packets *packets, size_t from)
{
    struct krait_packet_head head = { .magic = KRAIT_CTF_MAGIC };
    memcpy(head.uuid, packets->uuid, sizeof(head.uuid));
    const uint8_t *found = memmem(packets->bytes + from, packets->size - from, &head,
                                  offsetof(struct krait_packet_head, stream_id));
    return found ? (size_t)(found - packets->bytes) : packets->size;
}

bool krait_packets_next(struct krait_packets *packets, struct krait_packet *out, struct krait_damage *damage)
{
    while (packets->at < packets->size) {
        size_t offset = packets->at;
        size_t left = packets->size - offset;
        if (left < HEAD) {
            if (!packets->growing)
                krait_damage_say(damage, "%s: byte %zu: the last packet is cut short", packets->path, offset);
            break;
        }
        memcpy(&out->head, packets->bytes + offset, HEAD);
        const char *fault = head_fault(packets, &out->head);
        if (fault) {
            krait_damage_say(damage, "%s: byte %zu: %s", packets->path, offset, fault);
            packets->at = find_head(packets, offset + 1);
            continue;
        }
        if (out->head.packet_size / 8 > left) {
            left = find_head(packets, offset + HEAD) - offset; /* its size may be what is wrong */
            if (packets->growing && offset + left == packets->size)
                break;
            krait_damage_say(damage, "%s: byte %zu: the packet is cut short, %zu of %llu bytes are there",
                             packets->path, offset, left, (unsigned long long)out->head.packet_size / 8);
        }
        out->offset = offset;
        out->body = packets->bytes + offset + HEAD;
        out->end = packets->bytes + offset + KRAIT_MIN(out->head.content_size / 8, left);
        packets->at = offset + KRAIT_MIN(out->head.packet_size / 8, left);
        return true;
    }
    packets->at = packets->size;
    return false;
}

void krait_packets_go(struct krait_packets *packets, size_t offset)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    packets->at = KRAIT_MIN(offset, packets->size);
    packets->released = packets->at & ~(page - 1);
}

void krait_packets_limit(struct krait_packets *packets, size_t size)
{
    packets->growing |= size < packets->size;
    packets->size = KRAIT_MIN(packets->size, size);
}

void krait_packets_release(struct krait_packets *packets)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t to = packets->at & ~(page - 1);
    if (to < packets->released + RELEASE_BYTES)
        return;
    madvise((void *)(packets->bytes + packets->released), to - packets->released, MADV_DONTNEED);
    packets->released = to;
}
