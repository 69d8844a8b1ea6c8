/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/read/packets.h"

#include "base/array.h"
#include "ctf/format.h"
#include "ctf/meta/model.h"
#include "ctf/read/file.h"
#include "ctf/read/index.h"

#include <string.h>

static int packet_damage(const struct krait_ctf_file *file, uint64_t offset, const char *why,
                         struct krait_err *err)
{
    krait_err_set(err, -EBADMSG, "%s: byte %llu: %s", file->path, (unsigned long long)offset, why);
    return krait_err_place(err, strlen(file->path), offset);
}

static bool said(const struct krait_decoder *d, enum krait_meaning meaning)
{
    return d->meanings_set & 1u << meaning;
}

/* The class the packet header names, or the only one. */
static const struct krait_stream_class *packet_class(const struct krait_ctf_trace *trace,
                                                     const struct krait_decoder *d)
{
    const struct krait_ctf_metadata *md = trace->metadata;
    if (said(d, KRAIT_MEANING_STREAM_ID))
        return krait_ctf_stream(md, d->meanings[KRAIT_MEANING_STREAM_ID]);
    return md->stream_count == 1 ? md->streams[0] : NULL;
}

static const char *packet_sizes(struct krait_ctf_packet *packet, const struct krait_decoder *d, uint64_t left)
{
    uint64_t size = d->meanings[KRAIT_MEANING_SIZE], content = d->meanings[KRAIT_MEANING_CONTENT];
    bool has_size = said(d, KRAIT_MEANING_SIZE), has_content = said(d, KRAIT_MEANING_CONTENT);
    if (!has_size)
        size = has_content ? content : left * 8;
    if (!has_content)
        content = size;
    if (content > size)
        return "the packet's content is larger than the packet";
    if (content < d->at)
        return "the packet's content is smaller than its header";
    if (size % 8)
        return "the packet's size is not of whole bytes";
    uint64_t there = KRAIT_MIN(size / 8, left);
    packet->cut = size / 8 > left;
    packet->size = there;
    packet->content = KRAIT_MIN(content, there * 8);
    return NULL;
}

static const char *cut_in(struct krait_ctf_packet *packet, const char *why)
{
    packet->cut = true;
    return why;
}

bool krait_ctf_head_is(const struct krait_ctf_head *x, const struct krait_ctf_head *y)
{
    const struct krait_ctf_packet *a = &x->packet, *b = &y->packet;
    return a->file == b->file && a->offset == b->offset && a->size == b->size && a->content == b->content &&
           a->begin == b->begin && a->end == b->end && x->counters.seq == y->counters.seq &&
           x->counters.discarded == y->counters.discarded && a->said == b->said && a->cut == b->cut;
}

const char *krait_ctf_read_packet(const struct krait_ctf_file *file, uint64_t offset, struct krait_decoder *d,
                                  struct krait_ctf_head *head, const struct krait_stream_class **cls)
{
    const struct krait_ctf_trace *trace = file->trace;
    struct krait_ctf_packet *packet = &head->packet;
    uint64_t left = file->size - offset;
    d->bytes = file->bytes + offset;
    d->at = 0;
    d->end = left * 8;
    d->meanings_set = 0;
    memset(d->meanings, 0, sizeof(d->meanings));
    packet->cut = false;
    if (krait_decode_skip(d, &trace->packet_header))
        return cut_in(packet, "the packet's header is cut");
    if (said(d, KRAIT_MEANING_MAGIC) && d->meanings[KRAIT_MEANING_MAGIC] != KRAIT_CTF_MAGIC)
        return "no packet begins here: the magic number is wrong";
    *cls = packet_class(trace, d);
    if (!*cls)
        return "the packet's stream is not in the metadata";
    const struct krait_ctf_code *code = &trace->code[(*cls)->index];
    if (krait_decode_skip(d, &code->packet_context))
        return cut_in(packet, "the packet's context is cut");
    *packet = (struct krait_ctf_packet){ .file = file->index,
                                         .offset = offset,
                                         .begin = d->meanings[KRAIT_MEANING_BEGIN],
                                         .end = d->meanings[KRAIT_MEANING_END],
                                         .said = d->meanings_set };
    head->counters = (struct krait_ctf_counters){ .seq = d->meanings[KRAIT_MEANING_SEQ],
                                                  .discarded = d->meanings[KRAIT_MEANING_DISCARDED] };
    packet->whole_begin = code->whole_begin && said(d, KRAIT_MEANING_BEGIN);
    packet->whole_end = code->whole_end && said(d, KRAIT_MEANING_END);
    return packet_sizes(packet, d, left);
}

/* -- streams -- */

static int64_t packet_ns(const struct krait_ctf_packet *packet, const struct krait_stream_class *cls)
{
    return cls->clock ? krait_ctf_ns(cls->clock, packet->begin) : 0;
}

static bool same_packet(const struct krait_ctf_stream *stream, uint32_t i, const struct krait_ctf_head *head)
{
    const struct krait_ctf_packet *a = &stream->packets[i], *b = &head->packet;
    return a->size == b->size && a->begin == b->begin && a->end == b->end &&
           krait_ctf_counters_of(stream, i).seq == head->counters.seq;
}

struct krait_ctf_counters krait_ctf_counters_of(const struct krait_ctf_stream *stream, uint32_t i)
{
    return stream->counters ? stream->counters[i] : (struct krait_ctf_counters){ 0 };
}

/* Makes room for one more packet, and for its counters if there are any. */
static int grow_packets(struct krait_ctf_stream *stream)
{
    uint32_t need = stream->packet_count + 1, packets = stream->packet_cap, counters = packets;
    if (!KRAIT_GROW(stream->packets, packets, need) ||
        (stream->counters && !KRAIT_GROW(stream->counters, counters, need)))
        return -ENOMEM;
    stream->packet_cap = stream->counters ? KRAIT_MIN(packets, counters) : packets;
    return 0;
}

/* The array exists from the first packet on that has a counter; packets before it have zeros. */
static int put_counters(struct krait_ctf_stream *stream, const struct krait_ctf_head *head, uint32_t at)
{
    const uint32_t counters = 1u << KRAIT_MEANING_SEQ | 1u << KRAIT_MEANING_DISCARDED;
    if (!stream->counters && !(head->packet.said & counters))
        return 0;
    if (!stream->counters)
        stream->counters = calloc(stream->packet_cap, sizeof(*stream->counters));
    if (!stream->counters)
        return -ENOMEM;
    struct krait_ctf_counters *to = stream->counters + at;
    memmove(to + 1, to, (stream->packet_count - at) * sizeof(*to));
    *to = head->counters;
    return 0;
}

static int put_packet(struct krait_ctf_stream *stream, const struct krait_ctf_head *head, uint32_t at)
{
    if ((stream->packet_count == stream->packet_cap && grow_packets(stream)) ||
        put_counters(stream, head, at))
        return -ENOMEM;
    struct krait_ctf_packet *to = stream->packets + at;
    memmove(to + 1, to, (stream->packet_count - at) * sizeof(*to));
    *to = head->packet;
    stream->packet_count++;
    return 0;
}

/* In the place of its time; the same packet of another snapshot of the trace is left out. */
static int insert_packet(struct krait_ctf_stream *stream, const struct krait_ctf_head *head)
{
    int64_t ns = packet_ns(&head->packet, stream->cls);
    uint32_t from = (uint32_t)KRAIT_PARTITION_POINT(i, stream->packet_count,
                                                    packet_ns(&stream->packets[i], stream->cls) < ns);
    if (from < stream->packet_count && same_packet(stream, from, head))
        return 0;
    return put_packet(stream, head, from);
}

bool krait_ctf_same_trace(const struct krait_ctf_trace *a, const struct krait_ctf_trace *b)
{
    const struct krait_ctf_metadata *x = a->metadata, *y = b->metadata;
    return a == b || (x->has_uuid && y->has_uuid && memcmp(x->uuid, y->uuid, 16) == 0);
}

static struct krait_ctf_stream *find_stream(struct krait_ctf_reader *reader,
                                            const struct krait_ctf_trace *trace,
                                            const struct krait_stream_class *cls, uint64_t id)
{
    for (uint32_t i = 0; i < reader->stream_count; i++) {
        struct krait_ctf_stream *stream = reader->streams[i];
        if (stream->is_shared && stream->id == id && stream->cls->id == cls->id &&
            krait_ctf_same_trace(stream->trace, trace))
            return stream;
    }
    return NULL;
}

/* The stream of a file whose first packet was read: one of its own, or that of other files of the same instance. */
static struct krait_ctf_stream *file_stream(struct krait_ctf_reader *reader,
                                            const struct krait_ctf_file *file,
                                            const struct krait_stream_class *cls,
                                            const struct krait_decoder *d)
{
    bool has_id = said(d, KRAIT_MEANING_STREAM_INSTANCE);
    bool grouped = has_id && said(d, KRAIT_MEANING_BEGIN);
    uint64_t id = d->meanings[KRAIT_MEANING_STREAM_INSTANCE];
    struct krait_ctf_stream *stream = grouped ? find_stream(reader, file->trace, cls, id) : NULL;
    if (stream)
        return stream;
    stream = KRAIT_ARENA_NEW(&reader->arena, struct krait_ctf_stream);
    if (!stream)
        return NULL;
    *stream = (struct krait_ctf_stream){ .reader = reader,
                                         .trace = file->trace,
                                         .cls = cls,
                                         .id = id,
                                         .has_id = grouped || (has_id && file->trace->metadata->is_ctf2),
                                         .is_shared = grouped,
                                         .path = file->path };
    if (krait_ctf_push(&reader->arena, &reader->streams, &reader->stream_count, &reader->stream_cap, stream))
        return NULL;
    return stream;
}

/* A file's packets on their way into a stream. */
struct listing {
    struct krait_ctf_reader *reader;
    const struct krait_ctf_file *file;
    struct krait_decoder *d;
    struct krait_ctf_stream *stream; /* NULL before the first packet */
    const struct krait_stream_class *cls;
    uint64_t instance; /* of its first packet, if that says one */
    bool alone;        /* the stream has no other files */
};

/* The decoder still has what the first packet says. */
static int begin_listing(struct listing *l, const struct krait_ctf_packet *first,
                         const struct krait_stream_class *cls)
{
    l->stream = file_stream(l->reader, l->file, cls, l->d);
    if (!l->stream)
        return -ENOMEM;
    l->cls = cls;
    l->instance = l->d->meanings[KRAIT_MEANING_STREAM_INSTANCE];
    l->alone = l->stream->packet_count == 0;
    if (!l->alone && packet_ns(first, cls) < packet_ns(&l->stream->packets[0], cls))
        l->stream->path = l->file->path;
    return 0;
}

static int list_packet(struct listing *l, const struct krait_ctf_head *head,
                       const struct krait_stream_class *cls)
{
    int rc = l->stream ? 0 : begin_listing(l, &head->packet, cls);
    if (rc)
        return rc;
    return l->alone ? put_packet(l->stream, head, l->stream->packet_count) : insert_packet(l->stream, head);
}

/* Notes why the file ends there. */
static void end_listing(struct listing *l, uint64_t offset, const char *why)
{
    struct krait_err *damage = l->stream ? &l->stream->damage : &l->reader->damage;
    if (!damage->code)
        packet_damage(l->file, offset, why, damage);
}

/* A file is of one stream. The decoder has what its next packet says. */
static const char *other_stream(const struct listing *l, const struct krait_stream_class *cls)
{
    if (cls != l->cls)
        return "the packet is of another stream class than the file's first";
    bool other = said(l->d, KRAIT_MEANING_STREAM_INSTANCE) &&
                 l->d->meanings[KRAIT_MEANING_STREAM_INSTANCE] != l->instance;
    return other ? "the packet is of another stream than the file's first" : NULL;
}

/* All packets of a file. Damage ends it and is noted; only lack of memory fails. What is there in half of a
 * packet that is being written ends it too, and is none. */
static int list_all(struct listing *l)
{
    const struct krait_stream_class *cls = NULL;
    KRAIT_CLEANUP(krait_ctf_way_done) struct krait_ctf_way way = { 0 };
    for (uint64_t offset = 0; offset < l->file->size;) {
        struct krait_ctf_head head;
        krait_ctf_way_to(&way, l->file, offset, KRAIT_CTF_WAY_HOLDS);
        const char *why = krait_ctf_read_packet(l->file, offset, l->d, &head, &cls);
        if (head.packet.cut && l->file->growing)
            break;
        if (!why && l->stream)
            why = other_stream(l, cls);
        if (why) {
            end_listing(l, offset, why);
            return 0;
        }
        int rc = list_packet(l, &head, cls);
        if (rc)
            return rc;
        offset += KRAIT_MAX((uint64_t)head.packet.size, (uint64_t)1);
    }
    return 0;
}

/* Whether entry i tells what was read into the decoder and `head`. */
static bool tells(const struct krait_ctf_index *index, uint32_t i, const struct krait_decoder *d,
                  const struct krait_ctf_head *head)
{
    struct krait_ctf_index_entry entry = krait_ctf_index_entry(index, i);
    struct krait_ctf_head told;
    return krait_ctf_index_packet(index, i, head, &told) && krait_ctf_head_is(&told, head) &&
           (!said(d, KRAIT_MEANING_STREAM_ID) ||
            d->meanings[KRAIT_MEANING_STREAM_ID] == entry.stream_class) &&
           (!index->has_ids || !said(d, KRAIT_MEANING_STREAM_INSTANCE) ||
            d->meanings[KRAIT_MEANING_STREAM_INSTANCE] == entry.stream);
}

/* The first and the last packet are read; `first` is the file's. False where the index is not to be believed. */
static bool is_of_file(const struct krait_ctf_index *index, struct listing *l, struct krait_ctf_head *first,
                       const struct krait_stream_class **cls)
{
    struct krait_ctf_head last;
    uint64_t at = krait_ctf_index_entry(index, index->count - 1).offset;
    if (krait_ctf_read_packet(l->file, at, l->d, &last, cls) || !tells(index, index->count - 1, l->d, &last))
        return false;
    const struct krait_stream_class *of_last = *cls;
    return !krait_ctf_read_packet(l->file, 0, l->d, first, cls) && *cls == of_last &&
           tells(index, 0, l->d, first);
}

static int list_told(struct listing *l, const struct krait_ctf_index *index,
                     const struct krait_ctf_head *first, const struct krait_stream_class *cls)
{
    int rc = 0;
    for (uint32_t i = 0; i < index->count && !rc; i++) {
        struct krait_ctf_head head;
        krait_ctf_index_packet(index, i, first, &head);
        head.packet.unread = i != 0 && i != index->count - 1;
        rc = list_packet(l, &head, cls);
    }
    return rc;
}

int krait_ctf_list_packets(struct krait_ctf_reader *reader, const struct krait_ctf_file *file,
                           struct krait_decoder *d)
{
    struct listing l = { .reader = reader, .file = file, .d = d };
    struct krait_ctf_index index;
    struct krait_ctf_head first;
    const struct krait_stream_class *cls;
    if (!reader->options.indexes || krait_ctf_index_open(&index, file))
        return list_all(&l);
    int rc = is_of_file(&index, &l, &first, &cls) ? list_told(&l, &index, &first, cls) : list_all(&l);
    krait_ctf_index_done(&index);
    return rc;
}

/* -- lists -- */

int krait_ctf_push(struct krait_arena *arena, void *list, uint32_t *count, uint32_t *cap, void *item)
{
    void ***at = list;
    void **grown = krait_arena_grow(arena, *at, *count, cap, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    *at = grown;
    grown[(*count)++] = item;
    return 0;
}
