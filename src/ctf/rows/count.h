/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the events of traces in one pass, stream by stream.
 */
#ifndef KRAIT_CTF_ROWS_COUNT_H
#define KRAIT_CTF_ROWS_COUNT_H

#include "ctf/read/reader.h"

struct krait_ctf_class_count {
    const char *name;
    uint64_t count;
};

/* The counts of one of the opened traces. */
struct krait_ctf_trace_count {
    uint64_t events;
    uint64_t lost_events;
    uint32_t streams;
};

struct krait_ctf_count {
    struct krait_arena arena;
    struct krait_ctf_class_count *classes; /* that have events, most frequent first; equal names are one */
    uint32_t class_count;
    struct krait_ctf_trace_count *traces; /* by index, as the reader has them */
    uint64_t events;
    uint64_t packets;
    uint64_t bytes; /* of streams and metadata */
    bool has_times;
    int64_t begin_ns, end_ns;           /* earliest and latest event */
    uint64_t lost_events, lost_packets; /* according to the packets */
    struct krait_err damage;            /* the first met; code 0 when none */
};

/* From from_ns on, and before to_ns; INT64_MIN and INT64_MAX: all. Of a part, packets, bytes and losses are those of the packets
 * that reach into it; what has no clock counts too. Returns 0 or -ENOMEM. Damage is no error: what is intact is counted. */
int krait_ctf_count(struct krait_ctf_count *count, struct krait_ctf_reader *reader, int64_t from_ns,
                    int64_t to_ns);
void krait_ctf_count_done(struct krait_ctf_count *count);

#endif
