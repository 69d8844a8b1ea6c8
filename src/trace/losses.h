/* SPDX-License-Identifier: Apache-2.0
 *
 * What CTF traces tell of events that their tracers dropped: how many, and behind which time they are missing.
 * (Of krait's own recordings the definitions tell it, by reason: import.c.) Both end in trace->lost, of other tracers'
 * events that are neither calls nor the kernel's once tracks are found; of the kernel's, in krait_kernel_events_lost.
 *
 * A packet counts the events that were lost up to its end. Where they are missing depends on the tracer: krait's and
 * others' begin a new packet behind the loss, so that it lies between two packets; LTTng's ring buffer drops events
 * while the next packet has no room (lib_ring_buffer_try_reserve_slow() of lttng-modules,
 * src/lib/ringbuffer/ring_buffer_frontend.c), so that they are missing behind the packet's last event.
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
