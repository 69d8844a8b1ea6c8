/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening: folders to traces, files to maps, packets to streams.
 */
#include "ctf/reader.h"

#include "ctf/find.h"
#include "ctf/format.h"
#include "ctf/index.h"
#include "ctf/print.h"
#include "ctf/shape.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int oom(struct krait_err *err)
{
    return krait_err_set(err, -ENOMEM, "out of memory");
}

/* Grows one of the reader's lists of pointers. */
static int push(struct krait_arena *arena, void *list, uint32_t *count, uint32_t *cap, void *item)
{
    void ***at = list;
    if (*count == *cap) {
        uint32_t bigger = *cap ? *cap * 2 : 16;
        void **grown = krait_arena_alloc(arena, bigger * sizeof(*grown));
        if (!grown)
            return -ENOMEM;
        if (*count)
            memcpy(grown, *at, *count * sizeof(*grown));
        *at = grown;
        *cap = bigger;
    }
    (*at)[(*count)++] = item;
    return 0;
}

/* -- files -- */

/* With pages behind the file's that can be read: nobody has to look at a text's end before each step. */
static size_t mapped_size(const struct krait_ctf_file *file)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (file->size + page - 1) / page * page + page;
}

/* Where a file is that has this many bytes at least. The page cache may hold it in pieces of this size, of
 * which each is then mapped at once: half of what reading memory costs are page faults (Linux: mm/filemap.c,
 * filemap_map_pmd). */
enum { HUGE_PAGE = 2 << 20 };

/* Address space for the file and its guard; NULL when there is none. */
static uint8_t *reserve(const struct krait_ctf_file *file)
{
    size_t size = mapped_size(file), more = file->size >= HUGE_PAGE ? HUGE_PAGE : 0;
    uint8_t *room = mmap(NULL, size + more, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED || !more)
        return room == MAP_FAILED ? NULL : room;
    size_t before = -(uintptr_t)room % HUGE_PAGE;
    if (before)
        munmap(room, before);
    if (before < more)
        munmap(room + before + size, more - before);
    return room + before;
}

static const uint8_t *map_guarded(const struct krait_ctf_file *file, int fd)
{
    uint8_t *room = reserve(file);
    if (!room)
        return NULL;
    if (mmap(room, file->size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap(room, mapped_size(file));
        return NULL;
    }
    madvise(room, file->size, MADV_HUGEPAGE); /* what is read from the disk comes in such pieces; a wish */
    return room;
}

static int map_file(struct krait_ctf_file *file, struct krait_err *err)
{
    KRAIT_AUTO_CLOSE int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        return krait_err_errno(err, "%s", file->path);
    file->size = (uint64_t)st.st_size;
    if (!file->size)
        return 0;
    file->bytes = map_guarded(file, fd);
    return file->bytes ? 0 : krait_err_errno(err, "%s: cannot be mapped", file->path);
}

/* A fault maps what is around it too, in blocks of this size (fault_around_bytes): some of what was let go of
 * came back. */
enum { FAULT_BLOCK = 64 * 1024 };

void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    from -= KRAIT_MIN(from, (uint64_t)FAULT_BLOCK);
    from &= ~(page - 1);
    to &= ~(page - 1);
    if (to > from)
        madvise((void *)(file->bytes + from), to - from, MADV_DONTNEED);
}

/* -- packets -- */

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
    packet->cut = size / 8 > left;
    packet->size = KRAIT_MIN(size / 8, left);
    packet->content = KRAIT_MIN(content, packet->size * 8);
    return NULL;
}

const char *krait_ctf_read_packet(const struct krait_ctf_file *file, uint64_t offset, struct krait_decoder *d,
                                  struct krait_ctf_packet *packet, const struct krait_stream_class **cls)
{
    const struct krait_ctf_trace *trace = file->trace;
    uint64_t left = file->size - offset;
    d->bytes = file->bytes + offset;
    d->at = 0;
    d->end = left * 8;
    d->meanings_set = 0;
    memset(d->meanings, 0, sizeof(d->meanings));
    if (krait_decode_skip(d, &trace->packet_header))
        return "the packet's header is cut";
    if (said(d, KRAIT_MEANING_MAGIC) && d->meanings[KRAIT_MEANING_MAGIC] != KRAIT_CTF_MAGIC)
        return "no packet begins here: the magic number is wrong";
    *cls = packet_class(trace, d);
    if (!*cls)
        return "the packet's stream is not in the metadata";
    const struct krait_ctf_code *code = &trace->code[(*cls)->index];
    if (krait_decode_skip(d, &code->packet_context))
        return "the packet's context is cut";
    *packet = (struct krait_ctf_packet){ .file = file,
                                         .offset = offset,
                                         .begin = d->meanings[KRAIT_MEANING_BEGIN],
                                         .end = d->meanings[KRAIT_MEANING_END],
                                         .seq = d->meanings[KRAIT_MEANING_SEQ],
                                         .discarded = d->meanings[KRAIT_MEANING_DISCARDED],
                                         .said = d->meanings_set };
    packet->whole_begin = code->whole_begin && said(d, KRAIT_MEANING_BEGIN);
    packet->whole_end = code->whole_end && said(d, KRAIT_MEANING_END);
    return packet_sizes(packet, d, left);
}

/* -- streams -- */

static int64_t packet_ns(const struct krait_ctf_packet *packet, const struct krait_stream_class *cls)
{
    return cls->clock ? krait_ctf_ns(cls->clock, packet->begin) : 0;
}

static bool same_packet(const struct krait_ctf_packet *a, const struct krait_ctf_packet *b)
{
    return a->size == b->size && a->begin == b->begin && a->end == b->end && a->seq == b->seq;
}

static int append_packet(struct krait_ctf_stream *stream, const struct krait_ctf_packet *packet, uint32_t at)
{
    if (stream->packet_count == stream->packet_cap) {
        uint32_t cap = stream->packet_cap ? stream->packet_cap * 2 : 8;
        struct krait_ctf_packet *packets = realloc(stream->packets, cap * sizeof(*packets));
        if (!packets)
            return -ENOMEM;
        stream->packets = packets;
        stream->packet_cap = cap;
    }
    memmove(stream->packets + at + 1, stream->packets + at, (stream->packet_count - at) * sizeof(*packet));
    stream->packets[at] = *packet;
    stream->packet_count++;
    return 0;
}

/* In the place of its time; the same packet of another snapshot of the trace is left out. */
static int insert_packet(struct krait_ctf_stream *stream, const struct krait_ctf_packet *packet)
{
    int64_t ns = packet_ns(packet, stream->cls);
    uint32_t from = 0, to = stream->packet_count;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (packet_ns(&stream->packets[mid], stream->cls) < ns)
            from = mid + 1;
        else
            to = mid;
    }
    if (from < stream->packet_count && same_packet(&stream->packets[from], packet))
        return 0;
    return append_packet(stream, packet, from);
}

static bool same_trace(const struct krait_ctf_trace *a, const struct krait_ctf_trace *b)
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
        if (stream->has_id && stream->id == id && stream->cls->id == cls->id &&
            same_trace(stream->trace, trace))
            return stream;
    }
    return NULL;
}

/* The stream of a file whose first packet was read: one of its own, or that of other files of the same
 * instance. */
static struct krait_ctf_stream *file_stream(struct krait_ctf_reader *reader,
                                            const struct krait_ctf_file *file,
                                            const struct krait_stream_class *cls,
                                            const struct krait_decoder *d)
{
    bool grouped = said(d, KRAIT_MEANING_STREAM_INSTANCE) && said(d, KRAIT_MEANING_BEGIN);
    uint64_t id = d->meanings[KRAIT_MEANING_STREAM_INSTANCE];
    struct krait_ctf_stream *stream = grouped ? find_stream(reader, file->trace, cls, id) : NULL;
    if (stream)
        return stream;
    stream = KRAIT_ARENA_NEW(&reader->arena, struct krait_ctf_stream);
    if (!stream)
        return NULL;
    *stream = (struct krait_ctf_stream){
        .trace = file->trace, .cls = cls, .id = id, .has_id = grouped, .path = file->path
    };
    if (push(&reader->arena, &reader->streams, &reader->stream_count, &reader->stream_cap, stream))
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
    bool alone; /* the stream has no other files */
};

/* The decoder still has what the first packet says. */
static int begin_listing(struct listing *l, const struct krait_ctf_packet *first,
                         const struct krait_stream_class *cls)
{
    l->stream = file_stream(l->reader, l->file, cls, l->d);
    if (!l->stream)
        return -ENOMEM;
    l->cls = cls;
    l->alone = l->stream->packet_count == 0;
    if (!l->alone && packet_ns(first, cls) < packet_ns(&l->stream->packets[0], cls))
        l->stream->path = l->file->path;
    return 0;
}

static int list_packet(struct listing *l, const struct krait_ctf_packet *packet,
                       const struct krait_stream_class *cls)
{
    int rc = l->stream ? 0 : begin_listing(l, packet, cls);
    if (rc)
        return rc;
    return l->alone ? append_packet(l->stream, packet, l->stream->packet_count)
                    : insert_packet(l->stream, packet);
}

/* Notes why the file ends there. */
static void end_listing(struct listing *l, uint64_t offset, const char *why)
{
    struct krait_err *damage = l->stream ? &l->stream->damage : &l->reader->damage;
    if (!damage->code)
        packet_damage(l->file, offset, why, damage);
}

enum { LISTING_HOLDS = 4 << 20 }; /* bytes of a file, while its packets are listed */

/* All packets of a file. Damage ends it and is noted; only lack of memory fails. */
static int list_all(struct listing *l)
{
    const struct krait_stream_class *cls = NULL;
    uint64_t held_from = 0;
    for (uint64_t offset = 0; offset < l->file->size;) {
        struct krait_ctf_packet packet;
        const char *why = krait_ctf_read_packet(l->file, offset, l->d, &packet, &cls);
        if (!why && l->stream && cls != l->cls)
            why = "the packet is of another stream class than the file's first";
        if (why) {
            end_listing(l, offset, why);
            return 0;
        }
        int rc = list_packet(l, &packet, cls);
        if (rc)
            return rc;
        offset += KRAIT_MAX(packet.size, (uint64_t)1);
        if (offset - held_from >= LISTING_HOLDS) {
            krait_ctf_let_go(l->file, held_from, offset);
            held_from = offset;
        }
    }
    krait_ctf_let_go(l->file, held_from, l->file->size);
    return 0;
}

/* Whether entry i tells what was read into the decoder and `packet`. */
static bool tells(const struct krait_ctf_index *index, uint32_t i, const struct krait_decoder *d,
                  const struct krait_ctf_packet *packet)
{
    struct krait_ctf_index_entry entry = krait_ctf_index_entry(index, i);
    struct krait_ctf_packet told;
    return krait_ctf_index_packet(index, i, packet, &told) && krait_ctf_packet_is(&told, packet) &&
           (!said(d, KRAIT_MEANING_STREAM_ID) ||
            d->meanings[KRAIT_MEANING_STREAM_ID] == entry.stream_class) &&
           (!index->has_ids || !said(d, KRAIT_MEANING_STREAM_INSTANCE) ||
            d->meanings[KRAIT_MEANING_STREAM_INSTANCE] == entry.stream);
}

/* The first and the last packet are read; `first` is the file's. False where the index is not to be believed.
 */
static bool is_of_file(const struct krait_ctf_index *index, struct listing *l, struct krait_ctf_packet *first,
                       const struct krait_stream_class **cls)
{
    struct krait_ctf_packet last;
    uint64_t at = krait_ctf_index_entry(index, index->count - 1).offset;
    if (krait_ctf_read_packet(l->file, at, l->d, &last, cls) || !tells(index, index->count - 1, l->d, &last))
        return false;
    const struct krait_stream_class *of_last = *cls;
    return !krait_ctf_read_packet(l->file, 0, l->d, first, cls) && *cls == of_last &&
           tells(index, 0, l->d, first);
}

static int list_told(struct listing *l, const struct krait_ctf_index *index,
                     const struct krait_ctf_packet *first, const struct krait_stream_class *cls)
{
    int rc = 0;
    for (uint32_t i = 0; i < index->count && !rc; i++) {
        struct krait_ctf_packet packet;
        krait_ctf_index_packet(index, i, first, &packet);
        packet.unread = i != 0 && i != index->count - 1;
        rc = list_packet(l, &packet, cls);
    }
    return rc;
}

static int list_file(struct krait_ctf_reader *reader, const struct krait_ctf_file *file,
                     struct krait_decoder *d)
{
    struct listing l = { .reader = reader, .file = file, .d = d };
    struct krait_ctf_index index;
    struct krait_ctf_packet first;
    const struct krait_stream_class *cls;
    if (!reader->options.indexes || krait_ctf_index_open(&index, file))
        return list_all(&l);
    int rc = is_of_file(&index, &l, &first, &cls) ? list_told(&l, &index, &first, cls) : list_all(&l);
    krait_ctf_index_done(&index);
    return rc;
}

/* -- order of streams -- */

static int compare_uuid(const struct krait_ctf_metadata *a, const struct krait_ctf_metadata *b)
{
    if (a->has_uuid != b->has_uuid)
        return a->has_uuid ? -1 : 1;
    return a->has_uuid ? memcmp(a->uuid, b->uuid, 16) : 0;
}

static int by_path(const void *a, const void *b)
{
    const struct krait_ctf_stream *x = *(struct krait_ctf_stream *const *)a;
    const struct krait_ctf_stream *y = *(struct krait_ctf_stream *const *)b;
    return strcmp(x->path, y->path);
}

/* Of events at the same time, as babeltrace2's muxer has it: trace uuid, trace name, class, stream. */
static int by_rank(const void *a, const void *b)
{
    const struct krait_ctf_stream *x = *(struct krait_ctf_stream *const *)a;
    const struct krait_ctf_stream *y = *(struct krait_ctf_stream *const *)b;
    int order = compare_uuid(x->trace->metadata, y->trace->metadata);
    if (!order)
        order = strcmp(x->trace->name, y->trace->name);
    if (!order && x->cls->id != y->cls->id)
        order = x->cls->id < y->cls->id ? -1 : 1;
    if (!order && x->id != y->id)
        order = x->id < y->id ? -1 : 1;
    return order ? order : strcmp(x->path, y->path);
}

/* Streams that say no id are counted, by the name of their files. */
static void rank_streams(struct krait_ctf_reader *reader)
{
    if (!reader->stream_count)
        return;
    qsort(reader->streams, reader->stream_count, sizeof(*reader->streams), by_path);
    for (uint32_t i = 0; i < reader->stream_count; i++) {
        struct krait_ctf_stream *stream = reader->streams[i];
        uint64_t next = 0;
        for (uint32_t k = 0; k < i && !stream->has_id; k++)
            next += !reader->streams[k]->has_id && same_trace(reader->streams[k]->trace, stream->trace);
        if (!stream->has_id)
            stream->id = next;
    }
    qsort(reader->streams, reader->stream_count, sizeof(*reader->streams), by_rank);
    for (uint32_t i = 0; i < reader->stream_count; i++)
        reader->streams[i]->index = i;
}

/* -- traces -- */

/* A member of the packet's context that is the clock's value, all of it, and the only one of that meaning. An
 * end has no clock: it would move it. */
static bool is_whole_time(const struct krait_stream_class *cls, enum krait_meaning meaning)
{
    const struct krait_fc *context = cls->packet_context, *time = NULL;
    for (uint32_t i = 0; context && i < context->count; i++) {
        if (!krait_fc_meant(context->members[i].fc, meaning))
            continue;
        if (time)
            return false;
        time = context->members[i].fc;
    }
    bool moves = time && krait_fc_is_int(time) && time->clock && time->clock == cls->clock;
    return time && krait_fc_is_int(time) && (moves || meaning == KRAIT_MEANING_END) && time->bits == 64 &&
           !time->is_leb;
}

static int compile_stream(struct krait_ctf_reader *reader, struct krait_ctf_code *code,
                          const struct krait_stream_class *cls)
{
    unsigned text = reader->options.text;
    struct krait_program_scope context = { cls->packet_context, "stream.packet.context",
                                           text & KRAIT_TEXT_CONTEXT_NAMES };
    struct krait_program_scope header = { cls->event_header, "stream.event.header", false };
    int rc = krait_program_new(&code->packet_context, &reader->arena, &context, 1, KRAIT_SCOPE_PACKET_CONTEXT,
                               text);
    if (!rc)
        rc = krait_print_compile(&code->packet_context, &reader->arena);
    if (!rc)
        rc = krait_program_new(&code->event_header, &reader->arena, &header, 1, KRAIT_SCOPE_EVENT_HEADER,
                               text);
    code->events = krait_arena_alloc(&reader->arena, KRAIT_MAX(cls->event_count, 1u) * sizeof(*code->events));
    uint64_t top = 0;
    for (uint32_t i = 0; i < cls->event_count; i++)
        top = KRAIT_MAX(top, KRAIT_MIN(cls->events[i]->id + 1, (uint64_t)UINT32_MAX));
    code->by_id_count = top <= 65536 ? (uint32_t)top : 0;
    code->by_id = krait_arena_alloc(&reader->arena, KRAIT_MAX(code->by_id_count, 1u) * sizeof(*code->by_id));
    if (rc || !code->events || !code->by_id)
        return -ENOMEM;
    for (uint32_t i = 0; code->by_id_count && i < cls->event_count; i++)
        code->by_id[cls->events[i]->id] = cls->events[i];
    code->shape = (uint8_t)krait_header_shape(cls->event_header);
    code->whole_begin = is_whole_time(cls, KRAIT_MEANING_BEGIN);
    code->whole_end = is_whole_time(cls, KRAIT_MEANING_END);
    if (code->shape != KRAIT_SHAPE_OTHER)
        code->id_slot = cls->event_header->members[0].fc->slot;
    return 0;
}

static int compile_trace(struct krait_ctf_reader *reader, struct krait_ctf_trace *trace,
                         struct krait_err *err)
{
    const struct krait_ctf_metadata *md = trace->metadata;
    struct krait_program_scope header = { md->packet_header, "trace.packet.header", false };
    int rc = krait_program_new(&trace->packet_header, &reader->arena, &header, 1, KRAIT_SCOPE_PACKET_HEADER,
                               reader->options.text);
    trace->code = krait_arena_alloc(&reader->arena, KRAIT_MAX(md->stream_count, 1u) * sizeof(*trace->code));
    if (rc || !trace->code)
        return oom(err);
    for (uint32_t i = 0; i < md->stream_count; i++) {
        if (compile_stream(reader, &trace->code[i], md->streams[i]))
            return oom(err);
    }
    return 0;
}

static int open_file(struct krait_ctf_reader *reader, const struct krait_ctf_trace *trace, const char *path,
                     struct krait_decoder *d, struct krait_err *err)
{
    struct krait_ctf_file *file = KRAIT_ARENA_NEW(&reader->arena, struct krait_ctf_file);
    if (!file || push(&reader->arena, &reader->files, &reader->file_count, &reader->file_cap, file))
        return oom(err);
    file->trace = trace;
    file->path = krait_arena_strdup(&reader->arena, path);
    if (!file->path)
        return oom(err);
    int rc = map_file(file, err);
    if (rc || !file->size)
        return rc;
    return list_file(reader, file, d) ? oom(err) : 0;
}

static int open_trace(struct krait_ctf_reader *reader, const char *dir, const char *below,
                      struct krait_err *err)
{
    struct krait_ctf_trace *trace = KRAIT_ARENA_NEW(&reader->arena, struct krait_ctf_trace);
    if (!trace || push(&reader->arena, &reader->traces, &reader->trace_count, &reader->trace_cap, trace))
        return oom(err);
    int rc = krait_ctf_metadata_open(&trace->metadata, dir, err);
    if (!rc)
        rc = compile_trace(reader, trace, err);
    if (rc)
        return rc;
    trace->dir = trace->metadata->dir;
    trace->below = krait_arena_strdup(&reader->arena, below);
    if (!trace->below)
        return oom(err);
    KRAIT_CLEANUP(krait_names_done) struct krait_names files = { 0 };
    rc = krait_find_streams(&files, dir, err);
    struct krait_decoder d = { 0 };
    KRAIT_AUTO_FREE uint64_t *slots = calloc(trace->metadata->slot_count + 1, sizeof(*slots));
    d.slots = slots;
    if (!slots)
        return oom(err);
    for (size_t i = 0; i < files.count && !rc; i++)
        rc = open_file(reader, trace, files.list[i], &d, err);
    return rc;
}

/* A trace that lies in several folders has no way. */
static int name_traces(struct krait_ctf_reader *reader)
{
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        struct krait_ctf_trace *trace = reader->traces[i];
        const char *host = krait_ctf_env_text(trace->metadata, "hostname", ""), *way = trace->below;
        for (uint32_t k = 0; k < reader->trace_count; k++) {
            if (k != i && same_trace(reader->traces[k], trace))
                way = "";
        }
        if (trace->metadata->name) {
            trace->name = trace->metadata->name;
            continue;
        }
        trace->name = krait_arena_fmt(&reader->arena, "%s%s%s", host, *host && *way ? "/" : "", way);
        if (!trace->name)
            return -ENOMEM;
    }
    return 0;
}

/* All traces below one folder. */
static int open_path(struct krait_ctf_reader *reader, const char *path, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_names_done) struct krait_names dirs = { 0 };
    int rc = krait_find_traces(&dirs, path, err);
    for (size_t i = 0; i < dirs.count && !rc; i++) {
        const char *below = dirs.list[i] + KRAIT_MIN(strlen(path), strlen(dirs.list[i]));
        rc = open_trace(reader, dirs.list[i], below + strspn(below, "/"), err);
    }
    return rc;
}

int krait_ctf_open(struct krait_ctf_reader **out, const char *const *paths, size_t count,
                   const struct krait_ctf_options *options, struct krait_err *err)
{
    struct krait_ctf_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return oom(err);
    if (options)
        reader->options = *options;
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++)
        rc = open_path(reader, paths[i], err);
    if (!rc && name_traces(reader))
        rc = oom(err);
    if (rc) {
        krait_ctf_close(reader);
        return rc;
    }
    rank_streams(reader);
    *out = reader;
    return 0;
}

void krait_ctf_close(struct krait_ctf_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; i < reader->file_count; i++) {
        if (reader->files[i]->bytes)
            munmap((void *)reader->files[i]->bytes, mapped_size(reader->files[i]));
    }
    for (uint32_t i = 0; i < reader->stream_count; i++)
        free(reader->streams[i]->packets);
    for (uint32_t i = 0; i < reader->trace_count; i++)
        krait_ctf_metadata_free(reader->traces[i]->metadata);
    krait_arena_done(&reader->arena);
    free(reader);
}

/* -- losses -- */

/* How far a counter of a packet's context went: it wraps at its width, and where it goes backward it tells
 * nothing. */
static uint64_t advance(const struct krait_stream_class *cls, enum krait_meaning meaning, uint64_t from,
                        uint64_t to)
{
    const struct krait_fc *counter = krait_fc_meant(cls->packet_context, meaning);
    unsigned unused = counter ? 64u - counter->bits : 0;
    uint64_t way = (to - from) << unused >> unused;
    return way << unused >> 63 ? 0 : way;
}

unsigned krait_ctf_losses(const struct krait_ctf_stream *stream, uint32_t i, struct krait_ctf_loss losses[2])
{
    const struct krait_ctf_packet *packet = &stream->packets[i], *before = i ? packet - 1 : NULL;
    const uint32_t times = 1u << KRAIT_MEANING_BEGIN | 1u << KRAIT_MEANING_END;
    struct krait_ctf_loss loss = { .stream = stream, .has_times = (packet->said & times) == times };
    bool counts = packet->said & 1u << KRAIT_MEANING_DISCARDED,
         numbers = packet->said & 1u << KRAIT_MEANING_SEQ;
    uint64_t events =
        counts && before ? advance(stream->cls, KRAIT_MEANING_DISCARDED, before->discarded, packet->discarded)
                         : 0;
    uint64_t packets =
        numbers && before ? advance(stream->cls, KRAIT_MEANING_SEQ, before->seq, packet->seq) : 0;
    unsigned n = 0;
    if (events || (counts && !before && packet->discarded)) {
        loss.kind = "event";
        loss.count = events;
        loss.begin = before ? before->end : packet->begin;
        loss.end = packet->end;
        losses[n++] = loss;
    }
    if (packets > 1) {
        loss.kind = "packet";
        loss.count = packets - 1;
        loss.begin = before->end;
        loss.end = packet->begin;
        losses[n++] = loss;
    }
    return n;
}
