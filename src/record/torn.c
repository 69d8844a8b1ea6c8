/* SPDX-License-Identifier: Apache-2.0
 *
 * A child that libc did not fork writes into its parent's ring until it notices. Where both write at once, events lie
 * over each other: a time that seems to go back counts as one of the next window (format.h), and is late by 2^27 ticks.
 * So a packet is torn if an event of it is later than its end, or than the next packet's begin. Its events are dropped:
 * it stays in the file, empty.
 */
#include "record/collector_inside.h"

#include <fcntl.h>

/* Whether n bytes of events from `begin` on cannot be what one process wrote by `end`. */
static bool are_torn(const uint8_t *events, size_t n, uint64_t begin, uint64_t end)
{
    struct krait_cursor at = { events, events + n }, unused;
    struct krait_event_head head = { .t = begin };
    for (uint64_t before = begin; krait_packet_event(&at, &head, &unused); before = head.t) {
        if (head.t < before || head.t > end) /* before: the long form has a whole time */
            return true;
    }
    return at.at < at.end || begin > end;
}

/* *count: the packet's events. */
static bool is_torn(int fd, uint64_t at, const struct krait_packet_head *head, uint64_t next, uint64_t *count)
{
    KRAIT_AUTO_BUF packet = { 0 };
    if (krait_packet_read_events(fd, at, head, &packet))
        return false;
    const uint8_t *events = (const uint8_t *)packet.data;
    *count = krait_packet_count_events(events, packet.len);
    return are_torn(events, packet.len, head->timestamp_begin, KRAIT_MIN(head->timestamp_end, next));
}

static bool empty_packet(int fd, uint64_t at, const struct krait_packet_head *head, uint64_t next)
{
    struct krait_packet_head now = *head;
    now.timestamp_end = KRAIT_MIN(head->timestamp_end, next);
    now.timestamp_begin = KRAIT_MIN(head->timestamp_begin, now.timestamp_end);
    now.content_size = 8 * sizeof(now);
    return pwrite(fd, &now, sizeof(now), (off_t)at) == sizeof(now);
}

static void drop_in_file(void *sum, const char *folder, const char *path)
{
    (void)folder;
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    struct krait_packet_head head, next;
    uint64_t *dropped = sum, count = 0;
    if (fd < 0)
        return;
    for (uint64_t at = 0, size; krait_packet_read_head(fd, at, &head); at += size) {
        size = head.packet_size / 8;
        uint64_t next_begin =
            krait_packet_read_head(fd, at + size, &next) ? next.timestamp_begin : UINT64_MAX;
        if (is_torn(fd, at, &head, next_begin, &count) && empty_packet(fd, at, &head, next_begin))
            *dropped += count;
    }
}

uint64_t krait_torn_drop(struct krait_collector *c, const struct krait_collected_proc *proc)
{
    uint64_t dropped = 0;
    if (c->tap)
        return 0;
    krait_collector_each_file(krait_tracedir_path(proc->dir), "thread-", drop_in_file, &dropped);
    c->total.events -= KRAIT_MIN(c->total.events, dropped);
    return dropped;
}
