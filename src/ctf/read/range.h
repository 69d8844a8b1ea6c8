/* SPDX-License-Identifier: Apache-2.0
 *
 * Which packets a range of time needs, by the times that they give.
 */
#ifndef KRAIT_CTF_READ_RANGE_H
#define KRAIT_CTF_READ_RANGE_H

#include "ctf/read/stream.h"

/* Whether the times in packet i of a stream can be known without the packets before it: it is the first, or
 * says its begin in full. */
bool krait_ctf_packet_is_independent(const struct krait_ctf_stream *stream, uint32_t i);

/* Whether all events of packet i are before or after a time, according to the packets; false if it is not known. A
 * packet may nevertheless have events from before its begin. */
bool krait_ctf_packet_ends_before(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);
bool krait_ctf_packet_begins_after(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);
/* Whether the packet's own end is before a time. An event of LTTng's may be later nevertheless. */
bool krait_ctf_packet_says_it_ended(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);

/* babeltrace2 merges the begins and ends of packets by time too, and a stream's events wait behind them. This is the
 * time before which the events of all other streams come before the first event of packet i, however early that event
 * is. INT64_MIN if packets give no times. */
int64_t krait_ctf_packet_turn(const struct krait_ctf_stream *stream, uint32_t i);

/* The first packet of a stream that can have events at `ns` or later; 0 if times depend on the packets before. */
uint32_t krait_ctf_first_packet(const struct krait_ctf_stream *stream, int64_t ns);

/* With options.indexes: call it before you read the events of a range. It reads the heads of the packets that the range
 * needs. False: one differs from its index; open the traces again, without indexes. */
bool krait_ctf_settle(struct krait_ctf_reader *reader, int64_t from_ns, int64_t to_ns);

#endif
