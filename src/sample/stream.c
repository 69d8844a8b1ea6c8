/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/stream.h"

#include "ctf/format.h"

#include <string.h>

int krait_sample_stream_open(struct krait_sample_stream *stream, struct krait_tracedir *dir, uint32_t tid,
                             struct krait_err *err)
{
    struct krait_sample_stream made = { .dir = dir };
    int rc = krait_tracedir_stream(dir, tid, &made.stream, err);
    if (!rc)
        *stream = made;
    return rc;
}

void krait_sample_stream_done(struct krait_sample_stream *stream)
{
    free(stream->bytes);
    stream->bytes = NULL;
}

int krait_sample_stream_flush(struct krait_sample_stream *stream, struct krait_err *err)
{
    struct krait_packet_head head = { .timestamp_begin = stream->begin, .timestamp_end = stream->end };
    uint64_t first, last;
    if (!stream->len)
        return 0;
    if (!stream->stream->tid)
        krait_tracedir_define(stream->dir, stream->bytes, stream->len, &first, &last);
    int rc = krait_tracedir_write(stream->dir, stream->stream, &head, stream->bytes, stream->len, err);
    stream->len = 0;
    return rc;
}

int krait_sample_stream_rest(struct krait_sample_stream *stream, struct krait_err *err)
{
    int rc = krait_sample_stream_flush(stream, err);
    krait_sample_stream_done(stream);
    return rc;
}

/* The short form where it says the time: definitions have the long one always (record/tracedir.h). */
static size_t put_head(struct krait_sample_stream *stream, uint8_t *to, uint64_t t, uint32_t event)
{
    bool is_near = stream->len && t >> KRAIT_CTF_TS_BITS == stream->end >> KRAIT_CTF_TS_BITS;
    if (event >= KRAIT_CTF_EXTENDED || !is_near || !stream->stream->tid)
        return krait_head_extend(to, event, t);
    uint32_t word = krait_head_pack(event, t);
    memcpy(to, &word, sizeof(word));
    return sizeof(word);
}

int krait_sample_stream_put(struct krait_sample_stream *stream, uint64_t t, uint32_t event,
                            const void *payload, size_t n, struct krait_err *err)
{
    size_t room = KRAIT_SAMPLE_PACKET - stream->len;
    int rc = room < sizeof(struct krait_event_extended) + n ? krait_sample_stream_flush(stream, err) : 0;
    if (rc)
        return rc;
    if (!stream->bytes)
        stream->bytes = malloc(KRAIT_SAMPLE_PACKET);
    if (!stream->bytes)
        return krait_err_set(err, -ENOMEM, "out of memory");
    uint8_t *to = stream->bytes + stream->len;
    size_t head = put_head(stream, to, t, event);
    memcpy(to + head, payload, n);
    stream->begin = stream->len ? stream->begin : t;
    stream->end = t;
    stream->len += head + n;
    return 0;
}
