/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/copy/copy.h"

#include "base/array.h"
#include "ctf/copy/packet.h"
#include "ctf/read/loss.h"
#include "ctf/read/packets.h"
#include "ctf/read/range.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

struct copying {
    struct krait_copied *copied;
    const struct krait_copy_options *options;
    const struct krait_ctf_stream *stream;
    const char *to;
    struct krait_err *err;
    struct krait_ctf_cursor cursor;
    struct krait_copy_run run; /* of the cursor's packet */
    bool ranged;               /* events outside the range are left out */
    bool began;                /* a packet is written */
    uint32_t last;             /* the index of the last one */
    uint64_t discarded;        /* events before the first of them */
    struct krait_buf before;   /* what is to stand before its events */
    struct krait_buf packet;
    const struct krait_ctf_file *file; /* of which `fd` is the copy */
    int fd;
};

static void copying_done(struct copying *c)
{
    krait_ctf_cursor_done(&c->cursor);
    krait_buf_done(&c->before);
    krait_buf_done(&c->packet);
    if (c->fd >= 0)
        close(c->fd);
}

/* ---- the range ---- */

int64_t krait_ctf_ns_rounded(const struct krait_ctf_clock *clock, uint64_t ticks)
{
    return krait_ctf_has_time(clock, ticks) ? krait_ctf_ns(clock, ticks) : INT64_MAX;
}

uint64_t krait_ctf_ticks_from(const struct krait_ctf_clock *clock, int64_t ns, krait_copy_time_fn *time)
{
    return KRAIT_PARTITION_POINT(ticks, UINT64_MAX, time(clock, ticks) < ns);
}

/* Of every event, whatever it is. */
static bool tells_time(const struct krait_fc *fc)
{
    bool tells = fc && krait_fc_is_int(fc) && fc->clock && fc->bits == 64;
    for (uint32_t i = 0; fc && fc->kind == KRAIT_FC_STRUCT && i < fc->count && !tells; i++)
        tells = tells_time(fc->members[i].fc);
    return tells;
}

/* Whether the times in a packet need the one before it. */
static bool needs_beginning(const struct krait_ctf_stream *stream)
{
    bool says = stream->packet_count && stream->packets[0].said & 1u << KRAIT_MEANING_BEGIN;
    return !says && !tells_time(stream->cls->event_header);
}

static void set_range(struct copying *c)
{
    const struct krait_ctf_clock *clock = c->stream->cls->clock;
    c->ranged = clock != NULL;
    c->copied->timeless += !clock;
    c->run.until_ticks = UINT64_MAX;
    if (!clock)
        return;
    c->run.from_ticks = krait_ctf_ticks_from(clock, c->options->from_ns, c->options->time);
    if (c->options->until_ns != INT64_MAX)
        c->run.until_ticks = krait_ctf_ticks_from(clock, c->options->until_ns, c->options->time);
    if (c->run.from_ticks && needs_beginning(c->stream)) {
        c->run.from_ticks = 0;
        c->copied->from_beginning++;
    }
    /* Rounded as babeltrace2 does, packets' times may be off by one: the events' own decide. */
    bool all = !c->run.from_ticks && c->run.until_ticks == UINT64_MAX;
    int64_t from_ns = c->run.from_ticks ? c->options->from_ns - 1 : INT64_MIN;
    if (!all)
        krait_ctf_cursor_range(&c->cursor, from_ns, c->options->until_ns);
}

/* ---- writing ---- */

static int switch_file(struct copying *c)
{
    char path[PATH_MAX];
    const char *slash = strrchr(c->cursor.file->path, '/');
    const char *name = slash ? slash + 1 : c->cursor.file->path;
    if (c->file == c->cursor.file)
        return 0;
    if (c->fd >= 0)
        close(c->fd);
    c->file = c->cursor.file;
    if (snprintf(path, sizeof(path), "%s/%s", c->to, name) >= (int)sizeof(path))
        return krait_err_set(c->err, -ENAMETOOLONG, "%s/%s: the path is too long", c->to, name);
    c->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return c->fd < 0 ? krait_err_errno(c->err, "%s", path) : 0;
}

static int write_bytes(struct copying *c, const void *bytes, size_t n)
{
    const char *at = bytes;
    int rc = switch_file(c);
    while (!rc && n) {
        ssize_t done = write(c->fd, at, n);
        if (done < 0 && errno != EINTR)
            rc = krait_err_errno(c->err, "%s: cannot write a part of %s", c->to, c->file->path);
        at += KRAIT_MAX(done, 0);
        n -= (size_t)KRAIT_MAX(done, 0);
        c->copied->bytes += (uint64_t)KRAIT_MAX(done, 0);
    }
    c->copied->packets += !rc;
    return rc;
}

/* ---- a packet ---- */

static int find_before(struct copying *c)
{
    if (!c->options->before || !c->ranged || !c->run.from_ticks)
        return 0;
    int rc = c->options->before(c->options->ctx, c->stream, c->run.from_ticks - 1, &c->before);
    return rc || c->before.failed ? krait_err_set(c->err, -ENOMEM, "out of memory") : 0;
}

/* In `bytes`, a copy of the cursor's packet: without what was discarded before the copy. A counter that is narrower wraps. */
static void count_discarded(const struct copying *c, const struct krait_ctf_cursor *cursor, uint8_t *bytes)
{
    struct krait_head_fields fields;
    if (!c->discarded || krait_head_find(&fields, cursor))
        return;
    const struct krait_head_field *field = &fields.of[KRAIT_MEANING_DISCARDED];
    uint64_t mask = !field->op || field->op->bits >= 64 ? UINT64_MAX : ((uint64_t)1 << field->op->bits) - 1;
    uint64_t count = krait_ctf_counters_of(c->stream, cursor->next_packet - 1).discarded - c->discarded;
    krait_head_put(bytes, &fields, KRAIT_MEANING_DISCARDED, count & mask);
}

/* A copy of a packet without its events, at that time: for readers who tell losses from packet to packet. */
static int write_mark(struct copying *c, uint32_t packet, uint64_t ticks)
{
    static const struct krait_buf nothing = { 0 };
    const struct krait_copy_run run = { .before = 1, .until_ticks = UINT64_MAX };
    KRAIT_CLEANUP(krait_ctf_cursor_done) struct krait_ctf_cursor at;
    struct krait_head_fields fields;
    if (krait_ctf_cursor_init(&at, c->cursor.reader, c->stream))
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    if (krait_ctf_enter(&at, c->stream, packet) || krait_head_find(&fields, &at) ||
        !krait_copy_trim(&c->packet, &at, &run, &nothing))
        return c->packet.failed ? krait_err_set(c->err, -ENOMEM, "out of memory") : 0;
    uint8_t *bytes = (uint8_t *)c->packet.data;
    count_discarded(c, &at, bytes);
    bool is_put = krait_head_put(bytes, &fields, KRAIT_MEANING_BEGIN, ticks) &&
                  krait_head_put(bytes, &fields, KRAIT_MEANING_END, ticks);
    return is_put ? write_bytes(c, bytes, c->packet.len) : 0;
}

/* Whether packet i tells of events that are missing between it and the one before. */
static bool is_behind_loss(const struct copying *c, uint32_t i)
{
    const uint32_t times = 1u << KRAIT_MEANING_BEGIN | 1u << KRAIT_MEANING_END;
    const struct krait_ctf_packet *packets = c->stream->packets;
    struct krait_ctf_loss losses[2];
    return i && !c->options->lost_before && c->ranged &&
           (packets[i - 1].said & packets[i].said & times) == times &&
           packets[i - 1].end < packets[i].begin && krait_ctf_losses(c->stream, i, losses);
}

/* Of which events that were discarded the copy tells nothing: those before its first packet, unless the gap reaches into the
 * range. */
static int begin_copy(struct copying *c)
{
    uint32_t i = c->cursor.next_packet - 1;
    bool all = c->options->lost_before && c->cursor.packet->begin < c->run.from_ticks;
    c->last = i;
    if (c->began)
        return 0;
    c->began = true;
    c->discarded = all || i ? krait_ctf_counters_of(c->stream, all ? i : i - 1).discarded : 0;
    if (!is_behind_loss(c, i))
        return 0;
    uint64_t since = KRAIT_MAX(c->stream->packets[i - 1].end, c->run.from_ticks);
    return since < c->stream->packets[i].begin ? write_mark(c, i - 1, since) : 0;
}

/* Events that are missing from within the range on, as a packet tells that is behind it. */
static int end_copy(struct copying *c)
{
    const struct krait_ctf_packet *packets = c->stream->packets;
    uint64_t until = c->run.until_ticks, end = packets[c->last].end;
    uint32_t i = c->last + 1;
    if (!c->began || until == UINT64_MAX)
        return 0;
    while (i < c->stream->packet_count && packets[i - 1].end < until && !is_behind_loss(c, i))
        i++;
    bool is_there = i < c->stream->packet_count && packets[i - 1].end < until && end < until - 1;
    return is_there ? write_mark(c, i, KRAIT_MAX(end + 1, KRAIT_MIN(packets[i].begin, until - 1))) : 0;
}

static int write_whole(struct copying *c)
{
    const struct krait_ctf_packet *packet = c->cursor.packet;
    if (!c->discarded)
        return write_bytes(c, c->cursor.d.bytes, (size_t)packet->size);
    krait_buf_clear(&c->packet);
    krait_buf_add(&c->packet, (const char *)c->cursor.d.bytes, (size_t)packet->size);
    if (c->packet.failed)
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    count_discarded(c, &c->cursor, (uint8_t *)c->packet.data);
    return write_bytes(c, c->packet.data, c->packet.len);
}

static int write_trimmed(struct copying *c)
{
    bool trimmed = krait_copy_trim(&c->packet, &c->cursor, &c->run, &c->before);
    krait_buf_clear(&c->before);
    if (!trimmed) {
        c->copied->whole++;
        return c->packet.failed ? krait_err_set(c->err, -ENOMEM, "out of memory") : write_whole(c);
    }
    count_discarded(c, &c->cursor, (uint8_t *)c->packet.data);
    return write_bytes(c, c->packet.data, c->packet.len);
}

/* The cursor's packet, once all of its events are known. */
static int end_packet(struct copying *c)
{
    int rc = 0;
    if (c->run.events) {
        bool whole = !c->run.before && !c->run.behind && !c->before.len && !c->cursor.packet->cut;
        rc = begin_copy(c);
        rc = rc ? rc : whole ? write_whole(c) : write_trimmed(c);
    }
    c->run = (struct krait_copy_run){ .from_ticks = c->run.from_ticks, .until_ticks = c->run.until_ticks };
    if (!rc && c->options->progress &&
        !c->options->progress(c->options->progress_ctx, c->cursor.packet->size))
        rc = krait_err_set(c->err, -ECANCELED, "cancelled");
    return rc;
}

/* ---- a stream ---- */

static void note_damage(struct copying *c)
{
    if (!c->copied->damage.code)
        c->copied->damage = c->cursor.err;
}

static int pass_event(struct copying *c)
{
    struct krait_ctf_cursor *cursor = &c->cursor;
    uint64_t from = cursor->event_at, ticks = cursor->ticks;
    if (krait_ctf_event_skip(cursor))
        return cursor->err.code;
    bool wanted = !c->ranged || (ticks >= c->run.from_ticks && ticks < c->run.until_ticks);
    krait_copy_run_add(&c->run, from, cursor->d.at, wanted);
    c->copied->events += wanted;
    return 0;
}

/* Whether the event that the cursor read last is its packet's last. */
static bool is_last(const struct krait_ctf_cursor *cursor)
{
    return cursor->d.at >= cursor->d.end;
}

static int copy_packets(struct copying *c)
{
    int rc = 0, next = 0;
    while (!rc && (next = krait_ctf_next(&c->cursor)) > 0) {
        next = pass_event(c);
        if (next)
            break;
        rc = is_last(&c->cursor) ? end_packet(c) : 0;
    }
    if (next == -ENOMEM)
        return krait_err_set(c->err, -ENOMEM, "out of memory");
    if (next < 0)
        note_damage(c);
    c->run.behind +=
        next < 0; /* what is there of the damaged packet goes no further than its last whole event */
    return rc || !c->run.events ? rc : end_packet(c);
}

/* Nothing is in the range but what is to stand before it: in a packet with the head of any of the stream's. */
static int write_before(struct copying *c)
{
    if (c->began || !c->before.len || !c->stream->packet_count)
        return 0;
    uint64_t from = c->run.from_ticks, until = c->run.until_ticks;
    krait_ctf_cursor_done(&c->cursor);
    krait_ctf_cursor_init(&c->cursor, (struct krait_ctf_reader *)c->stream->reader, c->stream);
    if (krait_ctf_next(&c->cursor) <= 0)
        return 0;
    c->run = (struct krait_copy_run){ .from_ticks = from, .until_ticks = until };
    int rc = begin_copy(c);
    return rc ? rc : write_trimmed(c);
}

int krait_ctf_copy_stream(struct krait_copied *copied, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream, const char *to,
                          const struct krait_copy_options *options, struct krait_err *err)
{
    KRAIT_CLEANUP(copying_done)
    struct copying c = {
        .copied = copied, .options = options, .stream = stream, .to = to, .err = err, .fd = -1
    };
    if (krait_ctf_cursor_init(&c.cursor, reader, stream))
        return krait_err_set(err, -ENOMEM, "out of memory");
    set_range(&c);
    int rc = find_before(&c);
    rc = rc ? rc : copy_packets(&c);
    rc = rc ? rc : end_copy(&c);
    return rc ? rc : write_before(&c);
}
