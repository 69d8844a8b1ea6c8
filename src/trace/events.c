/* SPDX-License-Identifier: Apache-2.0
 *
 * Any other CTF trace: its events as instants, a track for each stream, by their names. Events that other
 * importers read are left out; `krait cat` has the fields.
 *
 * The traces are opened when somebody asks for tracks.
 */
#include "ctf/read/cursor.h"
#include "ctf/read/reader.h"
#include "trace/instants.h"
#include "trace/kernel/kernel.h"
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

static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct events *events = trace->impl->source[KRAIT_IMPORTER_events];
    if (!events)
        return 0;
    int rc = krait_ctf_open(&events->reader, (const char *const *)events->dirs, events->count, NULL, err);
    for (uint32_t i = 0; !rc && i < events->reader->stream_count; i++) {
        const struct krait_ctf_stream *stream = events->reader->streams[i];
        const char *slash = strrchr(stream->path, '/');
        struct krait_track *track = has_marks(stream) ? krait_trace_add_track(trace) : NULL;
        if (!track)
            continue;
        if (!trace->process_count)
            trace->begin_ns = KRAIT_MIN(trace->begin_ns, begin_of(events->reader, stream));
        track->kind = KRAIT_TRACK_INSTANTS;
        track->of = KRAIT_OF_GROUP;
        track->importer = KRAIT_IMPORTER_events;
        track->number = track->key = i;
        track->name = slash ? slash + 1 : stream->path;
    }
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    const struct events *events = trace->impl->source[KRAIT_IMPORTER_events];
    struct krait_instants instants = { .track = track, .walking = walking };
    struct krait_damage damage = walking->damage;
    struct krait_ctf_cursor cursor;
    int rc = krait_ctf_cursor_init(&cursor, events->reader, events->reader->streams[track->key]), met = 0;
    if (rc)
        return rc;
    krait_ctf_cursor_range(&cursor, (int64_t)walking->range.from_ns,
                           (int64_t)KRAIT_MIN(walking->range.to_ns, (uint64_t)INT64_MAX));
    while (!rc && (met = krait_ctf_next(&cursor)) == 1) {
        const struct krait_event_class *event = cursor.event;
        if ((met = krait_ctf_event_skip(&cursor)))
            break;
        if (is_mark(event))
            rc = krait_instants_add(&instants, (uint64_t)KRAIT_MAX(cursor.ns, 0),
                                    krait_trace_name(trace, event->name), "");
    }
    if (met < 0)
        krait_damage_say(&damage, "%s", cursor.err.text);
    krait_ctf_cursor_done(&cursor);
    rc = rc && rc != -ERANGE ? rc : krait_instants_flush(&instants);
    krait_instants_done(&instants);
    return rc;
}

const struct krait_importer krait_importer_events = { .takes = takes,
                                                      .open = open_events,
                                                      .kinds = 1 << KRAIT_TRACK_INSTANTS,
                                                      .tracks = find_tracks,
                                                      .walk = walk_track,
                                                      .close = close_events };
