/* SPDX-License-Identifier: Apache-2.0
 *
 * LTTng's index files: TRACE/index/STREAM.idx repeats, for each packet of TRACE/STREAM, what its header and context
 * say. Big-endian numbers. Source: lttng-tools, src/common/index/ctf-index.h.
 *
 *   header   magic C1F1DCC1 | major 1 | minor 0 or 1 | bytes of an entry           4 bytes each
 *   entry    offset (bytes) | packet size (bits) | content size (bits) | begin     8 bytes each
 *            | end (ticks) | discarded events | stream class id
 *            | stream id | packet sequence number                                  from minor 1 on
 *
 * Such a file is only a hint. A reader of all packets reads their headers anyway and does not need it. It helps when
 * few of many packets are wanted and the trace is not in the page cache. With 2,288 packets in 573 MB, a range of one
 * packet took 0.28 to 0.48 s without the index and 0.06 to 0.12 s with it; from the page cache both took 0.02 s.
 */
#ifndef KRAIT_CTF_READ_INDEX_H
#define KRAIT_CTF_READ_INDEX_H

#include "base/buf.h"
#include "ctf/read/stream.h"

/* The numbers of an entry, in their order. */
struct krait_ctf_index_entry {
    uint64_t offset, size, content, begin, end, discarded, stream_class, stream, seq;
};

struct krait_ctf_index {
    struct krait_buf bytes;
    uint32_t entry_size;
    uint32_t count;
    bool has_ids; /* stream and seq are there; else they are 0 */
};

/* Reads the index of a stream's file. Returns 0, -ENOENT if there is none, or -EBADMSG if it cannot belong to this
 * file: it has another version, is cut, or its packets do not cover the file's bytes one after the other. */
int krait_ctf_index_open(struct krait_ctf_index *index, const struct krait_ctf_file *file);
void krait_ctf_index_done(struct krait_ctf_index *index);

struct krait_ctf_index_entry krait_ctf_index_entry(const struct krait_ctf_index *index, uint32_t i);

/* The packet that an entry describes: `model`, another packet of the file, with the entry's numbers. False: the entry
 * lacks something that such packets say. */
bool krait_ctf_index_packet(const struct krait_ctf_index *index, uint32_t i,
                            const struct krait_ctf_head *model, struct krait_ctf_head *head);

#endif
