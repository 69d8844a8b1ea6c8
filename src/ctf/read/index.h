/* SPDX-License-Identifier: Apache-2.0
 *
 * LTTng's index files: TRACE/index/STREAM.idx says of each packet of TRACE/STREAM what its header and context
 * say. Big-endian numbers; source: lttng-tools, src/common/index/ctf-index.h.
 *
 *   header   magic C1F1DCC1 | major 1 | minor 0 or 1 | bytes of an entry           4 bytes each
 *   entry    offset (bytes) | packet size (bits) | content size (bits) | begin     8 bytes each
 *            | end (ticks) | discarded events | stream class id
 *            | stream id | packet sequence number                                  from minor 1 on
 *
 * Such a file is a hint. A reader of all packets meets their headers anyway and does not need it. It helps when few
 * packets of many are wanted and the trace is not in the page cache. With 2,288 packets in 573 MB, a range of one packet
 * took 0.28 to 0.48 s without the index and 0.06 to 0.12 s with it; from the page cache both took 0.02 s.
 */
#ifndef KRAIT_CTF_READ_INDEX_H
#define KRAIT_CTF_READ_INDEX_H

#include "base/buf.h"
#include "ctf/read/stream.h"

/* Numbers in the entry's order. */
struct krait_ctf_index_entry {
    uint64_t offset, size, content, begin, end, discarded, stream_class, stream, seq;
};

struct krait_ctf_index {
    struct krait_buf bytes;
    uint32_t entry_size;
    uint32_t count;
    bool has_ids; /* stream and seq: else 0 */
};

/* Reads the index of a stream's file. Returns 0, -ENOENT if there is none, or -EBADMSG for one that cannot
 * be of this file: of another version, cut, or its packets are not the file's bytes one after the other. */
int krait_ctf_index_open(struct krait_ctf_index *index, const struct krait_ctf_file *file);
void krait_ctf_index_done(struct krait_ctf_index *index);

struct krait_ctf_index_entry krait_ctf_index_entry(const struct krait_ctf_index *index, uint32_t i);

/* The packet that an entry tells of: `model`, another one of the file, with the entry's numbers. False: the
 * entry has not all that such a packet says. */
bool krait_ctf_index_packet(const struct krait_ctf_index *index, uint32_t i,
                            const struct krait_ctf_head *model, struct krait_ctf_head *head);

#endif
