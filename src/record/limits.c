/* SPDX-License-Identifier: Apache-2.0
 *
 * What bounds a recording: its time, its size, and the room on the disk.
 *
 *   0                                             7/8         30/32       31/32 of --max-size
 *   ├── events are written as they come ───────────┼─────────────┼───────────┤ the rest is for definitions and metadata
 *                                                  │             │ the first events of threads that have none on disk
 *                                                  │ programs are told to stop; what rings hold follows
 *
 * The kernel's events are written up to 29/32, where the recording is about to end, and after the programs' last ones up to 30/32.
 * With --keep newest they wait in their rings from 24/32 on, as packets of programs do (newest.c).
 *
 * Rings are read one after another: what a busy thread's ring holds may fill the rest. Each thread begins on disk all the
 * same.
 */
#include "base/fmt.h"
#include "record/collector_inside.h"
#include "record/switch.h"

#include <string.h>
#include <sys/statvfs.h>

#define LITTLE_ROOM (256ull << 20)

uint64_t krait_limits_time_left(const struct krait_collector *c, uint64_t now)
{
    bool counts = c->duration_ns && c->total.was_on && (c->has_begun || !c->attaches) && !*c->limit;
    uint64_t gone = now - c->program_ns;
    return !counts ? UINT64_MAX : gone < c->duration_ns ? c->duration_ns - gone : 0;
}

void krait_limits_look_at_time(struct krait_collector *c)
{
    char text[KRAIT_FMT_SIZE];
    if (krait_limits_time_left(c, krait_clock_ns(CLOCK_MONOTONIC)))
        return;
    snprintf(c->limit, sizeof(c->limit), "--for %s", krait_fmt_ns(text, c->duration_ns));
    krait_collector_stop(c);
}

const char *krait_collector_limit(struct krait_collector *c)
{
    char text[KRAIT_FMT_SIZE];
    if (!*c->limit && c->max_bytes && !krait_limits_allow(c, 0, KRAIT_LIMIT_EVENTS))
        snprintf(c->limit, sizeof(c->limit), "--max-size %s", krait_fmt_bytes(text, c->max_bytes));
    krait_limits_look_at_time(c);
    c->recording.limit = *c->limit ? c->limit : NULL;
    return c->recording.limit;
}

/* Metadata is written when it has doubled, and at the end. */
uint64_t krait_limits_bytes(const struct krait_collector *c)
{
    return c->total.bytes + c->beside_bytes + c->beside_rest_bytes + c->reserve_bytes + 2 * c->metadata_bytes;
}

bool krait_limits_allow(struct krait_collector *c, size_t n, enum krait_limit_share share)
{
    if (!c->max_bytes)
        return true;
    uint64_t bytes = krait_limits_bytes(c) + n;
    bool fits = bytes <= c->max_bytes / 32 * share;
    if (c->keep_newest)
        return !n || fits;
    bool near = bytes > c->max_bytes - c->max_bytes / 8;
    if (near)
        krait_switch_stop(c->shm.control);
    return n ? fits : !near;
}

uint64_t krait_collector_room(struct krait_collector *c, uint64_t events, uint64_t rest)
{
    enum krait_limit_share running = c->keep_newest ? KRAIT_LIMIT_BESIDE_NEWEST : KRAIT_LIMIT_BESIDE;
    c->beside_bytes = events;
    c->beside_rest_bytes = rest;
    uint64_t bytes = krait_limits_bytes(c),
             most = c->max_bytes / 32 * (c->finished ? KRAIT_LIMIT_EVENTS : running);
    c->trimmed_bytes = KRAIT_MIN(c->trimmed_bytes, bytes); /* the others drop after the collector */
    return c->max_bytes ? most - KRAIT_MIN(most, bytes) : UINT64_MAX;
}

bool krait_limits_pause(struct krait_collector *c)
{
    c->paused = c->keep_newest && c->max_bytes && krait_limits_bytes(c) > c->max_bytes / 8 * 6;
    return c->paused;
}

void krait_limits_look_at_disk(struct krait_collector *c)
{
    char room[KRAIT_FMT_SIZE];
    struct statvfs disk;
    if (!c->dir || *c->warning || statvfs(c->dir, &disk))
        return;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left < LITTLE_ROOM)
        snprintf(
            c->warning, sizeof(c->warning),
            "the disk has %s left for the recording; --max-size bounds it, --no-c-calls makes it smaller",
            krait_fmt_bytes(room, left));
}

const char *krait_collector_warning(struct krait_collector *c)
{
    if (!*c->warning || c->warned)
        return NULL;
    c->warned = true;
    return c->warning;
}
