/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/index.h"

#include <string.h>

enum { MAGIC = 0xC1F1DCC1, HEADER = 16, ENTRY_1_0 = 56, ENTRY_1_1 = 72 };

static uint32_t load_32(const char *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return be32toh(v);
}

static uint64_t load_64(const char *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return be64toh(v);
}

void krait_ctf_index_done(struct krait_ctf_index *index)
{
    krait_buf_done(&index->bytes);
}

/* DIR/NAME: DIR/index/NAME.idx */
static int read_file(struct krait_buf *bytes, const char *path)
{
    KRAIT_AUTO_BUF name = { 0 };
    const char *slash = strrchr(path, '/');
    int dir = slash ? (int)(slash + 1 - path) : 0;
    krait_buf_fmt(&name, "%.*sindex/%s.idx", dir, path, path + dir);
    return name.failed ? -ENOMEM : krait_buf_read_file(bytes, name.data);
}

static int check_header(struct krait_ctf_index *index)
{
    const char *at = index->bytes.data;
    if (index->bytes.len < HEADER || load_32(at) != (uint32_t)MAGIC || load_32(at + 4) != 1)
        return -EBADMSG;
    uint32_t minor = load_32(at + 8);
    index->has_ids = minor >= 1;
    index->entry_size = load_32(at + 12);
    uint64_t entries = index->bytes.len - HEADER;
    if (minor > 1 || index->entry_size < (minor ? ENTRY_1_1 : ENTRY_1_0) || entries % index->entry_size ||
        entries / index->entry_size > UINT32_MAX)
        return -EBADMSG;
    index->count = (uint32_t)(entries / index->entry_size);
    return 0;
}

struct krait_ctf_index_entry krait_ctf_index_entry(const struct krait_ctf_index *index, uint32_t i)
{
    const char *at = index->bytes.data + HEADER + (size_t)i * index->entry_size;
    struct krait_ctf_index_entry entry = { load_64(at),
                                           load_64(at + 8),
                                           load_64(at + 16),
                                           load_64(at + 24),
                                           load_64(at + 32),
                                           load_64(at + 40),
                                           load_64(at + 48),
                                           0,
                                           0 };
    if (index->has_ids) {
        entry.stream = load_64(at + 56);
        entry.seq = load_64(at + 64);
    }
    return entry;
}

static int check_entries(const struct krait_ctf_index *index, uint64_t file_size)
{
    struct krait_ctf_index_entry first =
        index->count ? krait_ctf_index_entry(index, 0) : (struct krait_ctf_index_entry){ 0 };
    uint64_t offset = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        struct krait_ctf_index_entry entry = krait_ctf_index_entry(index, i);
        if (entry.offset != offset || !entry.size || entry.size % 8 || entry.content > entry.size ||
            entry.size / 8 > file_size - offset || entry.begin > entry.end ||
            entry.stream_class != first.stream_class || entry.stream != first.stream)
            return -EBADMSG;
        offset += entry.size / 8;
    }
    return offset == file_size && index->count ? 0 : -EBADMSG;
}

int krait_ctf_index_open(struct krait_ctf_index *index, const struct krait_ctf_file *file)
{
    *index = (struct krait_ctf_index){ 0 };
    int rc = read_file(&index->bytes, file->path);
    if (!rc)
        rc = check_header(index);
    if (!rc)
        rc = check_entries(index, file->size);
    if (rc)
        krait_ctf_index_done(index);
    return rc;
}

bool krait_ctf_index_packet(const struct krait_ctf_index *index, uint32_t i,
                            const struct krait_ctf_head *model, struct krait_ctf_head *head)
{
    const uint32_t all = 1u << KRAIT_MEANING_SIZE | 1u << KRAIT_MEANING_CONTENT;
    struct krait_ctf_index_entry entry = krait_ctf_index_entry(index, i);
    uint32_t said = model->packet.said;
    head->packet = model->packet;
    head->packet.offset = entry.offset;
    head->packet.size = entry.size / 8;
    head->packet.content = entry.content;
    head->packet.begin = entry.begin;
    head->packet.end = entry.end;
    head->counters.seq = said & 1u << KRAIT_MEANING_SEQ ? entry.seq : 0;
    head->counters.discarded = said & 1u << KRAIT_MEANING_DISCARDED ? entry.discarded : 0;
    return (said & all) == all && model->packet.whole_begin && model->packet.whole_end &&
           !model->packet.cut && (index->has_ids || !(said & 1u << KRAIT_MEANING_SEQ));
}
