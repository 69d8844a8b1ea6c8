/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream file of a krait recording, mapped, packet by packet. Heads are checked. Damage is reported and skipped:
 * after a bad head, the search goes on for the next packet of the same trace.
 */
#ifndef KRAIT_TRACE_PACKETS_H
#define KRAIT_TRACE_PACKETS_H

#include "base/err.h"
#include "ctf/format.h"

/* Where the first damage that was met is written down; later damage is not. text may be NULL. */
struct krait_damage {
    char *text;
    size_t size;
};

void krait_damage_say(struct krait_damage *damage, const char *fmt, ...) KRAIT_PRINTF(2, 3);

struct krait_packets {
    const char *path; /* for messages; not owned */
    const uint8_t *bytes;
    size_t size;     /* of what is read */
    size_t mapped;   /* of the file */
    size_t at;       /* where the next packet is looked for */
    size_t released; /* before this offset the pages were given back */
    bool growing;    /* somebody writes it: a last packet that is not whole is not there yet */
    uint8_t uuid[16];
};

struct krait_packet {
    struct krait_packet_head head;
    size_t offset;       /* in the file */
    const uint8_t *body; /* its events */
    const uint8_t *end;
};

/* Errors: what open and mmap give, err names the file. */
int krait_packets_open(struct krait_packets *packets, const char *path, const uint8_t uuid[16],
                       struct krait_err *err);
void krait_packets_close(struct krait_packets *packets);

/* The next packet; false when there is no more. A last packet that is cut short is handed out as far as it
 * goes; of a file that somebody writes it is not there yet. */
bool krait_packets_next(struct krait_packets *packets, struct krait_packet *out, struct krait_damage *damage);

/* Says that no whole event is at `event`, which is in the packet; the rest of that is left out. */
void krait_packet_damaged(const struct krait_packet *packet, const uint8_t *event, uint32_t id,
                          const char *path, struct krait_damage *damage);

/* The next packet is looked for at an offset, not before where it would be. */
void krait_packets_go(struct krait_packets *packets, size_t offset);

/* Reads only the first `size` bytes, as if somebody wrote the rest just now. */
void krait_packets_limit(struct krait_packets *packets, size_t size);

/* Gives the memory of what lies before the last packet back, when that is worth a call. */
void krait_packets_release(struct krait_packets *packets);

#endif
