/* SPDX-License-Identifier: Apache-2.0 */
#include "api/trace_read_api.h"

#include "ctf/read/range.h"

#include <string.h>

/* -- cursors -- */

static int new_cursor(struct krait_reader_cursor **out, const struct krait_reader *reader,
                      struct krait_reader_error *error)
{
    struct krait_reader_cursor *cursor = calloc(1, sizeof(*cursor));
    if (cursor)
        cursor->told = calloc(KRAIT_MAX(reader->ctf->stream_count, 1u), sizeof(*cursor->told));
    if (!cursor || !cursor->told) {
        free(cursor);
        return krait_tell_oom(error);
    }
    cursor->reader = (struct krait_reader *)reader; /* what it makes later is under its lock */
    cursor->from_ns = INT64_MIN;
    *out = cursor;
    return 0;
}

int krait_reader_cursor_new_between(struct krait_reader_cursor **out, const struct krait_reader *reader,
                                    int64_t begin_ns, int64_t end_ns, struct krait_reader_error *error)
{
    struct krait_reader_cursor *cursor = NULL;
    int rc = new_cursor(&cursor, reader, error);
    if (rc)
        return rc;
    cursor->between = true;
    cursor->begin_ns = begin_ns;
    cursor->end_ns = end_ns;
    *out = cursor;
    return 0;
}

int krait_reader_cursor_new_ordered(struct krait_reader_cursor **out, const struct krait_reader *reader,
                                    struct krait_reader_error *error)
{
    struct krait_reader_cursor *cursor = NULL;
    struct krait_err err;
    int rc = new_cursor(&cursor, reader, error);
    if (rc)
        return rc;
    rc = krait_ctf_merge_new(&cursor->merge, reader->ctf, &err);
    if (rc) {
        krait_reader_cursor_free(cursor);
        return krait_tell(error, &err);
    }
    *out = cursor;
    return 0;
}

static int check_packets(const struct krait_reader *reader, uint32_t stream, uint32_t first, uint32_t count,
                         struct krait_err *err)
{
    const struct krait_ctf_stream *s = krait_stream_of(reader, stream);
    if (!s)
        return krait_err_set(err, -EINVAL, "there is no stream %u: they are %u", stream,
                             reader->ctf->stream_count);
    if (first > s->packet_count || count > s->packet_count - first)
        return krait_err_set(err, -EINVAL, "%s: there are no %u packets from packet %u on: it has %u",
                             s->path, count, first, s->packet_count);
    if (!krait_ctf_packet_is_independent(s, first))
        return krait_err_set(err, -ENOTSUP,
                             "%s: the times of packet %u depend on the packets before it: read the stream as "
                             "a whole",
                             s->path, first);
    return 0;
}

int krait_reader_cursor_new_packets(struct krait_reader_cursor **out, const struct krait_reader *reader,
                                    uint32_t stream, uint32_t first, uint32_t count,
                                    struct krait_reader_error *error)
{
    struct krait_reader_cursor *cursor = NULL;
    struct krait_err err;
    if (check_packets(reader, stream, first, count, &err))
        return krait_tell(error, &err);
    int rc = new_cursor(&cursor, reader, error);
    if (rc)
        return rc;
    cursor->stream = krait_stream_of(reader, stream);
    cursor->part = *cursor->stream;
    cursor->part.packet_count = first + count;
    if (first + count < (cursor->part.damaged ? cursor->part.damaged : cursor->stream->packet_count))
        cursor->part.damage = (struct krait_err){ 0 }; /* it lies behind the last */
    krait_ctf_cursor_init(&cursor->own, reader->ctf, &cursor->part);
    cursor->own.next_packet = cursor->first_packet = first;
    cursor->told[stream] = first;
    *out = cursor;
    return 0;
}

int krait_reader_cursor_new_stream(struct krait_reader_cursor **out, const struct krait_reader *reader,
                                   uint32_t stream, struct krait_reader_error *error)
{
    return krait_reader_cursor_new_packets(out, reader, stream, 0,
                                           krait_reader_stream_packet_count(reader, stream), error);
}

void krait_reader_cursor_free(struct krait_reader_cursor *cursor)
{
    if (!cursor)
        return;
    krait_ctf_merge_free(cursor->merge);
    krait_batches_free(cursor->batches);
    krait_ctf_cursor_done(&cursor->own);
    free(cursor->told);
    free(cursor);
}

/* -- steps -- */

/* The next event whose fields are whole, in `at`; NULL at the end, with the damage in err. */
static void fetch_ordered(struct krait_reader_cursor *c)
{
    do {
        c->at = krait_ctf_merge_next(c->merge);
    } while (c->at && (krait_ctf_event_skip(c->at) || /* its stream ends there: the merge keeps why */
                       KRAIT_UNLIKELY(c->at->ns < c->from_ns)));
    if (!c->at)
        c->err = *krait_ctf_merge_damage(c->merge);
}

static void fetch_own(struct krait_reader_cursor *c)
{
    bool whole;
    do {
        whole = krait_ctf_next(&c->own) > 0 && !krait_ctf_event_skip(&c->own);
    } while (whole && KRAIT_UNLIKELY(c->own.ns < c->from_ns));
    c->at = whole ? &c->own : NULL;
    if (!whole)
        c->err = c->own.err;
}

/* Takes the losses of the stream's packets up to `until`, those of one packet at a time. */
static bool take_losses(struct krait_reader_cursor *c, const struct krait_ctf_stream *stream, uint32_t until)
{
    uint32_t *told = &c->told[stream->index];
    c->loss_count = c->loss_next = 0;
    while (*told < until && !c->loss_count)
        c->loss_count = krait_ctf_losses(stream, (*told)++, c->losses);
    c->stream = stream;
    return c->loss_count;
}

/* Of packets behind the last event. */
static bool take_last_losses(struct krait_reader_cursor *c)
{
    if (!c->merge)
        return take_losses(c, &c->part, c->part.packet_count);
    const struct krait_ctf_reader *ctf = c->reader->ctf;
    for (uint32_t i = 0; i < ctf->stream_count; i++) {
        if (take_losses(c, ctf->streams[i], ctf->streams[i]->packet_count))
            return true;
    }
    return false;
}

static uint32_t packet_of(const struct krait_reader_cursor *c)
{
    return (uint32_t)(c->at->packet - c->at->stream->packets);
}

static KRAIT_COLD int tell_loss(struct krait_reader_cursor *c)
{
    c->loss_next++;
    c->at_loss = true;
    return KRAIT_READER_LOST;
}

/* The trace of a packet has its own classes. */
static KRAIT_COLD void switch_class(struct krait_reader_cursor *c)
{
    const uint64_t *first = krait_map_get(&c->reader->first, (uintptr_t)c->at->cls);
    c->first_class = first ? (uint32_t)*first : 0;
    c->cls = c->at->cls;
}

static int end_step(struct krait_reader_cursor *c)
{
    c->ended = true;
    c->held = false;
    if (take_last_losses(c))
        return tell_loss(c);
    return c->err.code;
}

int krait_reader_cursor_next(struct krait_reader_cursor *c)
{
    if (KRAIT_UNLIKELY(c->batches || c->between))
        return -EINVAL;
    c->stepped = true;
    c->at_loss = false;
    if (c->loss_next < c->loss_count)
        return tell_loss(c);
    if (c->ended)
        return end_step(c);
    if (!c->held)
        c->merge ? fetch_ordered(c) : fetch_own(c);
    if (!c->at)
        return end_step(c);
    const struct krait_ctf_stream *stream = c->at->stream;
    c->held = c->told[stream->index] <= packet_of(c) && take_losses(c, stream, packet_of(c) + 1);
    if (c->held)
        return tell_loss(c);
    c->stream = stream;
    if (KRAIT_UNLIKELY(c->at->cls != c->cls))
        switch_class(c);
    return KRAIT_READER_EVENT;
}

/* -- seeking -- */

/* A cursor of the same packets, which passes over those that end before. */
static int seek_own(struct krait_reader_cursor *c, int64_t ns)
{
    krait_ctf_cursor_done(&c->own);
    int rc = krait_ctf_cursor_init(&c->own, c->reader->ctf, &c->part);
    c->own.next_packet = c->first_packet;
    krait_ctf_cursor_range(&c->own, ns, INT64_MAX);
    return rc;
}

static int seek_ordered(struct krait_reader_cursor *c, int64_t ns)
{
    struct krait_ctf_merge *merge;
    int rc = krait_ctf_merge_new(&merge, c->reader->ctf, NULL);
    if (rc)
        return rc;
    krait_ctf_merge_free(c->merge);
    c->merge = merge;
    krait_ctf_merge_range(merge, ns, INT64_MAX);
    return 0;
}

int krait_reader_cursor_seek(struct krait_reader_cursor *c, int64_t ns)
{
    if (c->batches || c->between)
        return -EINVAL;
    int rc = c->merge ? seek_ordered(c, ns) : seek_own(c, ns);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < c->reader->ctf->stream_count; i++)
        c->told[i] = krait_ctf_first_packet(c->reader->ctf->streams[i], ns);
    if (!c->merge)
        c->told[c->part.index] = KRAIT_MAX(c->told[c->part.index], c->first_packet);
    c->err = (struct krait_err){ 0 };
    c->from_ns = ns;
    c->at = NULL;
    c->cls = NULL;
    c->held = c->at_loss = c->ended = false;
    c->loss_count = c->loss_next = 0;
    c->stepped = true;
    return 0;
}

void krait_reader_cursor_error(const struct krait_reader_cursor *cursor, struct krait_reader_error *error)
{
    krait_tell(error, &cursor->err);
}

const struct krait_reader_class *krait_reader_cursor_class(const struct krait_reader_cursor *cursor)
{
    return &cursor->reader->classes[cursor->first_class + cursor->at->event->index];
}

uint32_t krait_reader_cursor_stream(const struct krait_reader_cursor *cursor)
{
    return cursor->stream->index;
}

uint32_t krait_reader_cursor_packet(const struct krait_reader_cursor *cursor)
{
    return packet_of(cursor);
}

int64_t krait_reader_cursor_ns(const struct krait_reader_cursor *cursor)
{
    return cursor->at->ns;
}

uint64_t krait_reader_cursor_cycles(const struct krait_reader_cursor *cursor)
{
    return cursor->at->ticks;
}

int krait_reader_cursor_lost(const struct krait_reader_cursor *cursor, struct krait_reader_lost *lost)
{
    if (!cursor->at_loss)
        return -EINVAL;
    krait_lost_of(lost, &cursor->losses[cursor->loss_next - 1]);
    return 0;
}
