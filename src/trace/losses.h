/* SPDX-License-Identifier: Apache-2.0
 *
 * The events that the tracers of CTF traces dropped: how many, and after which time they are missing. (In krait's own
 * recordings, the definitions have the losses, by reason: import.c.) All losses end in trace->lost: those of kernel
 * events when the trace is opened, those of other tracers' events once tracks are found.
 *
 * A packet has the number of events that were lost up to its end. Where they are missing depends on the tracer. krait
 * and others begin a new packet after a loss, so the loss is between two packets. LTTng's ring buffer drops events
 * while the next packet has no room (lib_ring_buffer_try_reserve_slow() of lttng-modules,
 * src/lib/ringbuffer/ring_buffer_frontend.c), so the events are missing after the last event of the packet.
 */
#ifndef KRAIT_TRACE_LOSSES_H
#define KRAIT_TRACE_LOSSES_H

#include "ctf/read/reader.h"

/* Of one stream; of all. */
uint64_t krait_losses_of(const struct krait_ctf_stream *stream);
uint64_t krait_losses_count(const struct krait_ctf_reader *reader);

/* Behind which time events are missing that a packet of a stream tells of; INT64_MIN: none are, or that is not
 * known. May read the packet's events. */
int64_t krait_losses_behind(struct krait_ctf_reader *reader, const struct krait_ctf_stream *stream,
                            uint32_t packet);

#endif
