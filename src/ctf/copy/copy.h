/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a range of a stream's events.
 *
 *   range            |----------------------------|
 *   packets   [a a a a b b][b b b b b b b b][b b b c c c][c c c c]
 *   copy            [b b][b b b b b b b b][b b b]
 *
 * A packet at an edge keeps one run of its bytes, which is moved behind its head; the sizes and times in the head
 * change. The events must have the same alignment as before. If they cannot, the packet is copied whole, and counted in
 * `whole`. So is a packet whose times go back over the edge. Events that were discarded before the first packet of the
 * copy are subtracted from the counters of all packets.
 *
 *   range             |--------------------------|
 *   packets   [a a a]  lost  [b b b]  [b b b]  lost  [c c c]
 *   copy              []     [b b b]  [b b b]    []
 *
 * Readers tell losses from one packet to the next. If events were discarded between two packets of which one is outside the range,
 * the copy has a packet without events at that edge, with that one's counters (not if options.lost_before).
 *
 * If packets do not have their begin and events have only the low bits of the time, the stream is copied from its
 * beginning, because these times depend on everything before. A stream without a clock is copied whole.
 */
#ifndef KRAIT_CTF_COPY_COPY_H
#define KRAIT_CTF_COPY_COPY_H

#include "base/buf.h"
#include "ctf/read/stream.h"

/* The time of a tick: krait_ctf_clock_ns, or krait_ctf_ns_rounded, as `krait cat` prints it. */
typedef int64_t krait_copy_time_fn(const struct krait_ctf_clock *clock, uint64_t ticks);

int64_t krait_ctf_ns_rounded(const struct krait_ctf_clock *clock, uint64_t ticks);

struct krait_copy_options {
    int64_t from_ns, until_ns; /* events from from_ns on and before until_ns; INT64_MIN, INT64_MAX: all */
    krait_copy_time_fn *time;
    /* Events can only be discarded between packets: those before the first packet of the copy are not its loss. */
    bool lost_before;
    /* Appends the bytes of events to put before the first one of the stream, at the time `ticks`: one before the range
     * begins. Returns 0 or a negative errno. NULL: there are none. */
    int (*before)(void *ctx, const struct krait_ctf_stream *stream, uint64_t ticks, struct krait_buf *events);
    void *ctx;
    /* Told of each packet's bytes once it is copied; false ends it with -ECANCELED. NULL: nobody is told. */
    bool (*progress)(void *ctx, uint64_t bytes);
    void *progress_ctx;
};

/* Sums over all streams that were copied. */
struct krait_copied {
    uint64_t events;         /* of the range; without those of `before` */
    uint64_t packets, bytes; /* written; for krait's definitions only the bytes */
    uint64_t whole;          /* packets that have events outside the range too */
    uint32_t from_beginning; /* streams */
    uint32_t timeless;       /* streams without a clock */
    struct krait_err damage; /* the first one met; code 0 if none. Everything before it is copied */
};

/* Appends the stream's part to files of the same names in the existing folder `to`. Returns 0, or a negative errno with
 * err set: -ENOMEM, and errors of writing. */
int krait_ctf_copy_stream(struct krait_copied *copied, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream, const char *to,
                          const struct krait_copy_options *options, struct krait_err *err);

/* The first tick of the clock at `ns` or later; UINT64_MAX: there is none. */
uint64_t krait_ctf_ticks_from(const struct krait_ctf_clock *clock, int64_t ns, krait_copy_time_fn *time);

#endif
