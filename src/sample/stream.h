/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of sample/: events of one stream on their way to its file, a packet at a time.
 */
#ifndef KRAIT_SAMPLE_STREAM_H
#define KRAIT_SAMPLE_STREAM_H

#include "event/payload.h"
#include "record/tracedir.h"

enum { KRAIT_SAMPLE_PACKET = 64 * 1024 };

struct krait_sample_stream {
    struct krait_tracedir *dir;
    struct krait_stream *stream;
    uint8_t *bytes; /* KRAIT_SAMPLE_PACKET of them; NULL: none yet */
    size_t len;
    uint64_t begin, end; /* times of the first and the last event */
};

/* tid 0: the definitions. Returns 0, or a negative errno with err set. */
int krait_sample_stream_open(struct krait_sample_stream *stream, struct krait_tracedir *dir, uint32_t tid,
                             struct krait_err *err);
/* Frees what it holds; what was not flushed is gone. */
void krait_sample_stream_done(struct krait_sample_stream *stream);

/* Appends an event of n bytes, at most KRAIT_PAYLOAD_MAX. Returns 0, or a negative errno with err set: the disk refused a
 * packet. */
int krait_sample_stream_put(struct krait_sample_stream *stream, uint64_t t, uint32_t event,
                            const void *payload, size_t n, struct krait_err *err);
/* Writes what is there as a packet. */
int krait_sample_stream_flush(struct krait_sample_stream *stream, struct krait_err *err);
/* The same, and frees its memory until the next event. */
int krait_sample_stream_rest(struct krait_sample_stream *stream, struct krait_err *err);

#endif
