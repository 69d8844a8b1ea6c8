/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the packets of files and assigns them to streams. It reads each file once, from head to head, or by its index
 * if that can be trusted.
 */
#ifndef KRAIT_CTF_READ_PACKETS_H
#define KRAIT_CTF_READ_PACKETS_H

#include "ctf/read/stream.h"

/* Adds the file's packets to their stream: a new one, or that of other files with the same instance. Damage ends the
 * file and is noted in its stream or in the reader. Returns 0 or -ENOMEM. */
int krait_ctf_list_packets(struct krait_ctf_reader *reader, const struct krait_ctf_file *file,
                           struct krait_decoder *d);

/* Reads the header and context of the packet at `offset`. Returns NULL, or why it cannot be read. In both cases
 * head->packet.cut says whether the file ends inside the packet. */
const char *krait_ctf_read_packet(const struct krait_ctf_file *file, uint64_t offset, struct krait_decoder *d,
                                  struct krait_ctf_head *head, const struct krait_stream_class **cls);

/* Whether both are equal. */
bool krait_ctf_head_is(const struct krait_ctf_head *a, const struct krait_ctf_head *b);

/* The counters of packet i of a stream. */
struct krait_ctf_counters krait_ctf_counters_of(const struct krait_ctf_stream *stream, uint32_t i);

/* Whether both are parts of one trace: they have the same folder or the same uuid. */
bool krait_ctf_same_trace(const struct krait_ctf_trace *a, const struct krait_ctf_trace *b);

/* Adds to a list of pointers, which grows. Returns 0 or -ENOMEM. */
int krait_ctf_push(struct krait_arena *arena, void *list, uint32_t *count, uint32_t *cap, void *item);

#endif
