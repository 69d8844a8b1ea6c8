/* SPDX-License-Identifier: Apache-2.0
 *
 * Which packets a range of time needs, by what they say of their own times.
 */
#ifndef KRAIT_CTF_READ_RANGE_H
#define KRAIT_CTF_READ_RANGE_H

#include "ctf/read/stream.h"

/* Whether the times in packet i of a stream can be known without the packets before it: it is the first, or
 * says its begin in full. */
bool krait_ctf_packet_is_independent(const struct krait_ctf_stream *stream, uint32_t i);

/* Whether all events of packet i lie before or after a time, as far as packets can tell; false if
 * it is not known. A packet may have events from before its begin all the same. */
bool krait_ctf_packet_ends_before(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);
bool krait_ctf_packet_begins_after(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);

/* What babeltrace2 merges by time are begins and ends of packets too, and a stream's events wait behind them:
 * the time before which all other streams' events go before packet i's first, however early that is.
 * INT64_MIN where packets say none. */
int64_t krait_ctf_packet_turn(const struct krait_ctf_stream *stream, uint32_t i);

/* The first packet of a stream that can have events at `ns` or later: 0 where times depend on the packets before. */
uint32_t krait_ctf_first_packet(const struct krait_ctf_stream *stream, int64_t ns);

/* With options.indexes, before events of a range are read: looks at the packets that it needs. False: one is
 * not what its index told; open the traces again, without indexes. */
bool krait_ctf_settle(struct krait_ctf_reader *reader, int64_t from_ns, int64_t to_ns);

#endif
