/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/known_events.h"

#include "base/array.h"
#include "ctf/meta/open.h"
#include "event/event.h"
#include "trace/import.h"
#include "trace/kernel/kernel.h"

#include <fnmatch.h>
#include <string.h>

void krait_known_events_done(struct krait_known_events *known)
{
    free(known->items);
    free(known->fields);
    krait_arena_done(&known->arena);
}

static struct krait_known_event *add_event(struct krait_known_events *known, const char *name)
{
    const char *own = krait_arena_strdup(&known->arena, name);
    if (!own || !KRAIT_GROW(known->items, known->cap, known->count + 1))
        return NULL;
    struct krait_known_event *event = &known->items[known->count++];
    *event = (struct krait_known_event){ .name = own,
                                         .is_by_name = krait_marks_read_by_name(name),
                                         .first = known->field_count };
    return event;
}

/* One more field of the event that was added last. */
static int add_field(struct krait_known_events *known, const char *before, const char *name)
{
    const char *own = krait_arena_fmt(&known->arena, "%s%s", before, name);
    if (!own || !KRAIT_GROW(known->fields, known->field_cap, known->field_count + 1))
        return -ENOMEM;
    known->fields[known->field_count++] = own;
    known->items[known->count - 1].count++;
    return 0;
}

/* -- of any tracer -- */

/* The members of a structure, or NULL, and of structures in it. */
static int add_members(struct krait_known_events *known, const char *before, const struct krait_fc *fc)
{
    int rc = 0;
    for (uint32_t i = 0; fc && i < fc->count && !rc; i++) {
        const struct krait_fc_member *member = &fc->members[i];
        bool is_inner = member->fc->kind == KRAIT_FC_STRUCT && member->fc->count;
        const char *inner = is_inner ? krait_arena_fmt(&known->arena, "%s%s.", before, member->name) : "";
        rc = !inner     ? -ENOMEM
             : is_inner ? add_members(known, inner, member->fc)
                        : add_field(known, before, member->name);
    }
    return rc;
}

/* The scopes are those that an event's text has (ctf/text/event_text.h). */
static int add_class(struct krait_known_events *known, const struct krait_event_class *event)
{
    const struct krait_fc *scopes[] = { event->stream->packet_context, event->stream->event_context,
                                        event->context, event->fields };
    int rc = add_event(known, event->name) ? 0 : -ENOMEM;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(scopes) && !rc; i++)
        rc = add_members(known, "", scopes[i]);
    return rc;
}

static int add_metadata(struct krait_known_events *known, const char *dir)
{
    struct krait_ctf_metadata *metadata;
    struct krait_err why = { 0 };
    int rc = krait_ctf_metadata_open(&metadata, dir, &why);
    if (rc) {
        known->is_partial = true;
        return rc == -ENOMEM ? rc : 0;
    }
    for (uint32_t s = 0; s < metadata->stream_count; s++) {
        const struct krait_stream_class *stream = metadata->streams[s];
        for (uint32_t e = 0; e < stream->event_count && !rc; e++)
            rc = add_class(known, stream->events[e]);
    }
    krait_ctf_metadata_free(metadata);
    return rc;
}

/* -- of krait's own processes -- */

/* The last two are contexts, of the packet and of the process. */
static int add_row(struct krait_known_events *known, const struct krait_event_row *row)
{
    int rc = add_event(known, row->name) ? 0 : -ENOMEM;
    for (size_t i = 0; i < row->field_count && !rc; i++)
        rc = add_field(known, "", row->fields[i].name);
    rc = rc ? rc : add_field(known, "", "vtid");
    return rc ? rc : add_field(known, "", "vpid");
}

static bool is_read(const char *event)
{
    return krait_marks_read(event) || krait_marks_read_by_name(event);
}

static int add_own(struct krait_known_events *known)
{
    int rc = 0;
    for (size_t i = 0; i < krait_event_count && !rc; i++)
        rc = is_read(krait_events[i].name) ? add_row(known, &krait_events[i]) : 0;
    return rc;
}

int krait_known_events_read(struct krait_known_events *known, const struct krait_trace *trace)
{
    uint32_t kernels, others;
    const char *const *of_kernel = krait_kernel_dirs(trace, &kernels);
    const char *const *of_others = krait_events_dirs(trace, &others);
    known->has_own = krait_recordings_of(trace) != NULL;
    int rc = known->has_own ? add_own(known) : 0;
    known->is_partial = trace->impl->unread.code != 0;
    for (uint32_t i = 0; i < kernels && !rc; i++)
        rc = add_metadata(known, of_kernel[i]);
    for (uint32_t i = 0; i < others && !rc; i++)
        rc = add_metadata(known, of_others[i]);
    return rc;
}

/* -- asking -- */

bool krait_known_event_has(const struct krait_known_events *known, const struct krait_known_event *event,
                           const char *path)
{
    for (uint32_t i = 0; i < event->count; i++) {
        const char *field = known->fields[event->first + i];
        size_t n = strlen(field), asked = strlen(path), same = KRAIT_MIN(n, asked);
        const char *longer = n > asked ? field : path;
        if (memcmp(field, path, same) == 0 && (longer[same] == '.' || !longer[same]))
            return true;
    }
    return false;
}

bool krait_known_events_is_unread(const struct krait_known_events *known, const char *glob)
{
    bool any = false;
    for (size_t i = 0; known->has_own && i < krait_event_count; i++)
        any |= !is_read(krait_events[i].name) && fnmatch(glob, krait_events[i].name, 0) == 0;
    return any;
}

void krait_known_event_suggest(const struct krait_known_events *known, const struct krait_known_event *event,
                               struct krait_suggest *suggest)
{
    for (uint32_t i = 0; i < event->count; i++)
        krait_suggest_try(suggest, known->fields[event->first + i]);
}
