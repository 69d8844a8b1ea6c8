/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a thread that krait recorded, and the place and time of each of its packets, from their heads. They are
 * kept from the opening of the trace on, 32 bytes a packet, so that reading a range does not pass what comes before
 * it.
 */
#ifndef KRAIT_TRACE_THREAD_FILE_H
#define KRAIT_TRACE_THREAD_FILE_H

#include "trace/stretches.h"

/* One that has events, or behind which some are missing. */
struct krait_packet_place {
    size_t offset;
    uint64_t begin_ns, end_ns;
    uint64_t lost; /* events that are missing between the packet before and this one */
};

struct krait_thread_file {
    char *path;
    struct krait_packet_place *packets; /* in the file's order */
    uint32_t packet_count, packet_cap;
    bool goes_back; /* their times do: it is damaged */
    size_t size;    /* of what is read of it */
    struct krait_noted_stretches noted;
    /* Of a recording that goes on: */
    uint32_t before;    /* the thread that the trace opened before had of it; KRAIT_NO_ID: none */
    size_t read_to;     /* behind the last whole packet */
    uint64_t discarded; /* as that packet says */
};

/* Returns 0 or -ENOMEM. */
int krait_thread_file_add(struct krait_thread_file *file, struct krait_packet_place place);
void krait_thread_file_done(struct krait_thread_file *file);

/* The same of what an earlier opening knew; *to is zeroed but for the path. Returns 0 or -ENOMEM. */
int krait_thread_file_copy(struct krait_thread_file *to, const struct krait_thread_file *from);

/* The first packet to read for what happens from a time on. */
uint32_t krait_thread_file_first(const struct krait_thread_file *file, uint64_t from_ns);

/* Where to begin for what happens from a time on, and for what was told last before that: the offset of the packet
 * before the one that the time lies in. */
size_t krait_thread_file_seek(const struct krait_thread_file *file, uint64_t from_ns);

/* Whether events are missing before the packet that begins at `t_ns`, or before an earlier one, from packet *next on: then
 * *after_ns is when the last event before the first of them was. *next goes on to the first packet that begins later. */
bool krait_thread_file_lost(const struct krait_thread_file *file, uint32_t *next, uint64_t t_ns,
                            uint64_t *after_ns);

#endif
