/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet's header and context, and the long form of an event's header, as LTTng writes them.
 */
#ifndef KRAIT_BENCH_LTTNG_PACKET_H
#define KRAIT_BENCH_LTTNG_PACKET_H

#include <stdint.h>

struct packet_head {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t stream_instance_id;
    uint64_t timestamp_begin, timestamp_end, content_size, packet_size, packet_seq_num, events_discarded;
    uint32_t cpu_id;
} __attribute__((packed));

struct extended {
    uint8_t tag;
    uint32_t id;
    uint64_t time;
} __attribute__((packed));

#endif
