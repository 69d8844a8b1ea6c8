/* SPDX-License-Identifier: Apache-2.0
 *
 * Any other CTF trace: its events as instants, a track for each stream, by their names, with their fields as text as
 * `krait cat` prints them. Events that other importers read are left out.
 *
 * The traces are opened when somebody asks for tracks.
 */
#include "ctf/read/cursor.h"
#include "ctf/read/reader.h"
#include "ctf/text/event_text.h"
#include "trace/instants.h"
#include "trace/kernel/kernel.h"
#include "trace/losses.h"
#include "trace/lttng_functions.h"

#include <string.h>

struct events {
    char **dirs;
    uint32_t count;
    struct krait_ctf_reader *reader; /* NULL until tracks are asked for */
};

static bool takes(const struct krait_folder *folder)
{
    return !krait_folder_is_kraits(folder) && !krait_kernel_takes(folder);
}

static int open_events(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                       struct krait_err *err)
{
    struct krait_arena *arena = &trace->impl->arena;
    struct events *events = krait_arena_alloc(arena, sizeof(*events));
    char **dirs = krait_arena_alloc(arena, count * sizeof(*dirs));
    for (uint32_t i = 0; dirs && i < count; i++) {
        dirs[i] = krait_arena_strdup(arena, folders[i]->dir);
        if (!dirs[i])
            return krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (!events || !dirs)
        return krait_err_set(err, -ENOMEM, "out of memory");
    *events = (struct events){ .dirs = dirs, .count = count };
    trace->impl->source[KRAIT_IMPORTER_events] = events;
    return 0;
}

const char *const *krait_events_dirs(const struct krait_trace *trace, uint32_t *count)
{
    const struct events *events = trace->impl->source[KRAIT_IMPORTER_events];
    *count = events ? events->count : 0;
    return events ? (const char *const *)events->dirs : NULL;
}

static void close_events(void *source)
{
    const struct events *events = source;
    krait_ctf_close(events->reader);
}

static bool is_mark(const struct krait_event_class *event)
{
    return !krait_lttng_functions_reads(event->name);
}

static bool has_marks(const struct krait_ctf_stream *stream)
{
    for (uint32_t i = 0; i < stream->cls->event_count; i++) {
        if (is_mark(stream->cls->events[i]))
            return true;
    }
    return false;
}

static uint64_t begin_of(struct krait_ctf_reader *reader, const struct krait_ctf_stream *stream)
{
    struct krait_ctf_cursor cursor;
    if (krait_ctf_cursor_init(&cursor, reader, stream))
        return UINT64_MAX;
    int64_t ns = krait_ctf_next(&cursor) == 1 ? cursor.ns : INT64_MAX;
    krait_ctf_cursor_done(&cursor);
    return (uint64_t)KRAIT_MAX(ns, 0);
}

static bool is_lttngs(const struct krait_ctf_trace *trace)
{
    return strncmp(krait_ctf_env_text(trace->metadata, "tracer_name", ""), "lttng", strlen("lttng")) == 0;
}

/* What its tracer says that it lost, unless another importer tells it. */
static int add_losses(struct krait_trace *trace, const struct krait_ctf_stream *stream, uint64_t lost)
{
    if (krait_lttng_functions_has(stream->trace->metadata))
        return 0;
    return is_lttngs(stream->trace)
               ? krait_trace_lose(trace, KRAIT_LTTNG_LOST(lost))
               : krait_trace_lose(trace, (struct krait_trace_lost){
                                             .reason = "by the tracer",
                                             .advice = "its buffers were full; larger ones keep them",
                                             .count = lost });
}

static int add_stream(struct krait_trace *trace, struct krait_ctf_reader *reader, uint32_t index)
{
    const struct krait_ctf_stream *stream = reader->streams[index];
    const char *slash = strrchr(stream->path, '/');
    uint64_t lost = krait_losses_of(stream);
    struct krait_track *track = krait_trace_add_track(trace);
    if (!track)
        return -ENOMEM;
    if (!trace->process_count)
        trace->begin_ns = KRAIT_MIN(trace->begin_ns, begin_of(reader, stream));
    track->kind = KRAIT_TRACK_INSTANTS;
    track->of = KRAIT_OF_GROUP;
    track->importer = KRAIT_IMPORTER_events;
    track->number = track->key = index;
    track->flags = lost ? KRAIT_TRACK_LOST : 0;
    track->name = slash ? slash + 1 : stream->path;
    track->host = krait_ctf_env_text(stream->trace->metadata, "hostname", "");
    track->process_name = krait_ctf_env_text(stream->trace->metadata, "procname", "");
    track->pid = (uint32_t)krait_ctf_env_int(stream->trace->metadata, "vpid", 0);
    return add_losses(trace, stream, lost);
}

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct events *events = trace->impl->source[KRAIT_IMPORTER_events];
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    struct krait_err why = { 0 };
    if (!events)
        return 0;
    int rc = krait_ctf_open(&events->reader, (const char *const *)events->dirs, events->count, NULL, &why);
    if (rc && rc != -ENOMEM)
        krait_damage_say(&damage, "%s", why.text);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    for (uint32_t i = 0; !rc && i < events->reader->stream_count; i++)
        rc = has_marks(events->reader->streams[i]) ? add_stream(trace, events->reader, i) : 0;
    return rc;
}

struct walk {
    const struct krait_trace *trace;
    const struct krait_walking *walking;
    struct krait_ctf_cursor cursor;
    struct krait_instants instants;
    struct krait_lines lines; /* of text */
    struct krait_buf text;
};

/* The cursor's event, whose fields are passed. A failure of the cursor's is in `met`. */
static int take_event(struct walk *w, int *met)
{
    struct krait_ctf_cursor *cursor = &w->cursor;
    const struct krait_event_class *event = cursor->event;
    uint64_t ns = (uint64_t)KRAIT_MAX(cursor->ns, 0);
    bool is_asked_for = is_mark(event) && ns >= w->walking->range.from_ns;
    krait_buf_clear(&w->text);
    *met = is_asked_for ? krait_event_text(&w->lines, cursor, &w->text) : krait_ctf_event_skip(cursor);
    if (*met || !is_asked_for)
        return 0;
    krait_buf_char(&w->text, '\0');
    return krait_instants_add(&w->instants, ns, krait_trace_name(w->trace, event->name), w->text.data);
}

static int take_events(struct walk *w)
{
    const struct krait_range *range = &w->walking->range;
    struct krait_damage damage = w->walking->damage;
    int rc = 0, met = 0;
    krait_ctf_cursor_range(&w->cursor, (int64_t)range->from_ns,
                           (int64_t)KRAIT_MIN(range->to_ns, (uint64_t)INT64_MAX));
    while (!rc && !met && (met = krait_ctf_next(&w->cursor)) == 1)
        rc = take_event(w, &met);
    if (met == -ENOMEM)
        return met;
    if (met < 0)
        krait_damage_say(&damage, "%s", w->cursor.err.text);
    return rc && rc != -ERANGE ? rc : krait_instants_flush(&w->instants);
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct events *events = trace->impl->source[KRAIT_IMPORTER_events];
    struct walk *w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->trace = trace;
    w->walking = walking;
    w->instants = (struct krait_instants){ .track = track, .walking = walking };
    int rc = krait_ctf_cursor_init(&w->cursor, events->reader, events->reader->streams[track->key]);
    if (!rc) {
        rc = take_events(w);
        krait_ctf_cursor_done(&w->cursor);
    }
    krait_lines_done(&w->lines);
    krait_instants_done(&w->instants);
    krait_buf_done(&w->text);
    free(w);
    return rc;
}

const struct krait_importer krait_importer_events = { .takes = takes,
                                                      .open = open_events,
                                                      .kinds = 1 << KRAIT_TRACK_INSTANTS,
                                                      .tracks = find_tracks,
                                                      .walk = walk_track,
                                                      .close = close_events };
