/* SPDX-License-Identifier: Apache-2.0
 *
 * What packets tell of events that their tracer had to drop.
 */
#ifndef KRAIT_CTF_READ_LOSS_H
#define KRAIT_CTF_READ_LOSS_H

#include "ctf/read/stream.h"

/* A gap that packets tell of, before the event that follows. `kind` is "event" or "packet"; count 0: not known. */
struct krait_ctf_loss {
    const struct krait_ctf_stream *stream;
    const char *kind;
    uint64_t count;
    bool has_times;      /* of the clock, if there is one: both can be said */
    uint64_t begin, end; /* ticks */
};

/* The losses that packet i of a stream tells of: 0 to 2, into losses. */
unsigned krait_ctf_losses(const struct krait_ctf_stream *stream, uint32_t i, struct krait_ctf_loss losses[2]);

#endif
