/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening: folders to traces, classes to programs, streams to their order.
 */
#include "ctf/read/reader.h"

#include "ctf/meta/open.h"
#include "ctf/meta/shape.h"
#include "ctf/read/file.h"
#include "ctf/read/find.h"
#include "ctf/read/packets.h"

#include <string.h>

static int oom(struct krait_err *err)
{
    return krait_err_set(err, -ENOMEM, "out of memory");
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

/* Of events at the same time, as babeltrace2's muxer has it: trace uuid, trace name, class, stream. (2.1 has
 * the name first.) */
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
            next +=
                !reader->streams[k]->has_id && krait_ctf_same_trace(reader->streams[k]->trace, stream->trace);
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
    const struct krait_fc *context = cls->packet_context, *header = cls->event_header;
    int rc = krait_program_new(&code->packet_context, &reader->arena, &context, 1);
    if (!rc)
        rc = krait_program_new(&code->event_header, &reader->arena, &header, 1);
    code->events = krait_arena_alloc(&reader->arena, KRAIT_MAX(cls->event_count, 1u) * sizeof(*code->events));
    uint64_t top = 0;
    for (uint32_t i = 0; i < cls->event_count; i++)
        top = KRAIT_MAX(top, KRAIT_MIN(cls->events[i]->id, (uint64_t)UINT32_MAX - 1) + 1);
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
    const struct krait_fc *header = md->packet_header;
    int rc = krait_program_new(&trace->packet_header, &reader->arena, &header, 1);
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
    if (!file || krait_ctf_push(&reader->arena, &reader->files, &reader->file_count, &reader->file_cap, file))
        return oom(err);
    file->trace = trace;
    file->index = reader->file_count - 1;
    file->path = krait_arena_strdup(&reader->arena, path);
    if (!file->path)
        return oom(err);
    int rc = krait_ctf_map(file, err);
    if (rc || !file->size)
        return rc;
    return krait_ctf_list_packets(reader, file, d) ? oom(err) : 0;
}

/* Opens the files of a trace whose metadata is read. */
static int open_streams(struct krait_ctf_reader *reader, struct krait_ctf_trace *trace, struct krait_err *err)
{
    int rc = compile_trace(reader, trace, err);
    if (rc)
        return rc;
    KRAIT_CLEANUP(krait_names_done) struct krait_names files = { 0 };
    rc = krait_find_streams(&files, trace->dir, err);
    struct krait_decoder d = { 0 };
    KRAIT_AUTO_FREE uint64_t *slots = calloc(trace->metadata->slot_count + 1, sizeof(*slots));
    d.slots = slots;
    if (!slots)
        return oom(err);
    for (size_t i = 0; i < files.count && !rc; i++)
        rc = open_file(reader, trace, files.list[i], &d, err);
    return rc;
}

/* A defect of barectf, mended in its 2.3.1 (babeltrace2's src.ctf.fs names the versions). */
static bool begins_late(const struct krait_ctf_metadata *metadata)
{
    static const struct {
        const char *name;
        int64_t mended;
    } parts[] = { { "tracer_major", 2 }, { "tracer_minor", 3 }, { "tracer_patch", 1 } };
    if (strcmp(krait_ctf_env_text(metadata, "tracer_name", ""), "barectf") != 0)
        return false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++) {
        int64_t part = krait_ctf_env_int(metadata, parts[i].name, i ? 0 : INT64_MAX);
        if (part != parts[i].mended)
            return part < parts[i].mended;
    }
    return false;
}

static int open_trace(struct krait_ctf_reader *reader, const char *dir, const char *below,
                      struct krait_err *err)
{
    struct krait_ctf_metadata *metadata;
    int rc = krait_ctf_metadata_open(&metadata, dir, err);
    if (rc)
        return rc;
    bool wanted = !reader->options.wants || reader->options.wants(metadata);
    struct krait_ctf_trace *trace = wanted ? KRAIT_ARENA_NEW(&reader->arena, struct krait_ctf_trace) : NULL;
    if (!trace ||
        krait_ctf_push(&reader->arena, &reader->traces, &reader->trace_count, &reader->trace_cap, trace)) {
        krait_ctf_metadata_free(metadata);
        return wanted ? oom(err) : 0;
    }
    trace->metadata = metadata; /* the reader's from here on */
    trace->dir = metadata->dir;
    trace->begins_late = begins_late(metadata);
    trace->below = krait_arena_strdup(&reader->arena, below);
    return trace->below ? open_streams(reader, trace, err) : oom(err);
}

/* A trace that lies in several folders has no way. */
static int name_traces(struct krait_ctf_reader *reader)
{
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        struct krait_ctf_trace *trace = reader->traces[i];
        const char *host = krait_ctf_env_text(trace->metadata, "hostname", ""), *way = trace->below;
        for (uint32_t k = 0; k < reader->trace_count; k++) {
            if (k != i && krait_ctf_same_trace(reader->traces[k], trace))
                way = "";
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

/* Bytes of pages that the cursors of all streams keep together, and what one keeps at least. Where they are
 * too many for a huge page each, small ones are mapped, of which fewer do. */
enum { HOLD_HUGE = 16 << 20, HOLD_SMALL = 4 << 20, HOLD_LEAST = 16 << 10 };

static void share_pages(struct krait_ctf_reader *reader)
{
    uint32_t n = KRAIT_MAX(reader->stream_count, 1u);
    reader->holds = HOLD_HUGE / n;
    if (reader->holds >= KRAIT_CTF_HUGE_PAGE)
        return;
    reader->holds = KRAIT_MAX(HOLD_SMALL / n, (uint32_t)HOLD_LEAST);
    for (uint32_t i = 0; i < reader->file_count; i++)
        krait_ctf_map_small(reader->files[i]);
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
    share_pages(reader);
    *out = reader;
    return 0;
}

void krait_ctf_close(struct krait_ctf_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; i < reader->file_count; i++)
        krait_ctf_unmap(reader->files[i]);
    for (uint32_t i = 0; i < reader->stream_count; i++) {
        free(reader->streams[i]->packets);
        free(reader->streams[i]->counters);
    }
    for (uint32_t i = 0; i < reader->trace_count; i++)
        krait_ctf_metadata_free(reader->traces[i]->metadata);
    krait_arena_done(&reader->arena);
    free(reader);
}
