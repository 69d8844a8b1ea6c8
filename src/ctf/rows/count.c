/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/rows/count.h"

#include "base/array.h"
#include "ctf/read/loss.h"
#include "ctf/read/range.h"
#include "ctf/rows/row_source.h"

#include <string.h>
#include <sys/stat.h>

/* What is counted. */
struct part {
    bool is_part;
    int64_t from_ns, to_ns;
};

/* Event counts by name. */
struct tally {
    struct krait_strtab names;
    uint64_t *counts; /* by id */
    uint32_t cap;
};

static int tally_add(struct tally *tally, const char *name, uint64_t n)
{
    uint32_t id = krait_strtab_add(&tally->names, name, strlen(name));
    if (id == KRAIT_NO_ID)
        return -ENOMEM;
    uint32_t old = tally->cap;
    if (!KRAIT_GROW(tally->counts, tally->cap, id + 1))
        return -ENOMEM;
    memset(tally->counts + old, 0, (tally->cap - old) * sizeof(*tally->counts));
    tally->counts[id] += n;
    return 0;
}

static void tally_done(struct tally *tally)
{
    krait_strtab_done(&tally->names);
    free(tally->counts);
}

static void count_stream(struct krait_ctf_count *count, const struct krait_row_set *set,
                         const struct krait_ctf_stream *stream, struct krait_row_tally *found)
{
    struct krait_row_source source;
    krait_row_source_init(&source, set, stream);
    if (found->ranged && stream->cls->clock)
        krait_ctf_cursor_range(&source.cursor, found->from_ns, found->to_ns);
    krait_row_count(&source, found);
    if (source.cursor.err.code && !count->damage.code)
        count->damage = source.cursor.err;
    krait_row_source_done(&source);
}

/* Classes of one name are one. */
static int sum_up(struct krait_ctf_count *count, const struct krait_row_set *set,
                  const struct krait_row_tally *found, struct tally *tally)
{
    int rc = 0;
    for (uint32_t i = 0; i < set->class_count && !rc; i++) {
        count->events += found->counts[i];
        if (found->counts[i])
            rc = tally_add(tally, set->classes[i].event->name, found->counts[i]);
    }
    count->has_times = found->has_times;
    count->begin_ns = found->begin_ns;
    count->end_ns = found->end_ns;
    return rc;
}

/* The set's classes are in the order of their traces. */
static void sum_traces(struct krait_ctf_count *count, const struct krait_ctf_reader *reader,
                       const struct krait_row_tally *found)
{
    uint32_t class = 0;
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        const struct krait_ctf_metadata *metadata = reader->traces[i]->metadata;
        for (uint32_t s = 0; s < metadata->stream_count; s++) {
            for (uint32_t e = 0; e < metadata->streams[s]->event_count; e++)
                count->traces[i].events += found->counts[class ++];
        }
    }
}

static int count_events(struct krait_ctf_count *count, struct krait_ctf_reader *reader, struct tally *tally,
                        const struct part *part)
{
    struct krait_row_set *set = NULL;
    int rc = krait_row_set_new(&set, reader, KRAIT_EMIT_COUNT, NULL);
    if (rc)
        return rc;
    KRAIT_AUTO_FREE struct krait_row_tally *found = calloc(1, sizeof(*found));
    KRAIT_AUTO_FREE uint64_t *counts = calloc(KRAIT_MAX(set->class_count, 1u), sizeof(*counts));
    rc = found && counts ? 0 : -ENOMEM;
    if (!rc)
        *found = (struct krait_row_tally){
            .counts = counts, .ranged = part->is_part, .from_ns = part->from_ns, .to_ns = part->to_ns
        };
    for (uint32_t i = 0; i < reader->stream_count && !rc; i++)
        count_stream(count, set, reader->streams[i], found);
    if (!rc)
        rc = sum_up(count, set, found, tally);
    if (!rc)
        sum_traces(count, reader, found);
    krait_row_set_free(set);
    return rc;
}

/* A stream of several folders counts for the first of them. */
static struct krait_ctf_trace_count *trace_of(struct krait_ctf_count *count,
                                              const struct krait_ctf_reader *reader,
                                              const struct krait_ctf_stream *stream)
{
    uint32_t i = 0;
    while (i + 1 < reader->trace_count && reader->traces[i] != stream->trace)
        i++;
    return &count->traces[i];
}

static bool reaches_in(const struct krait_ctf_stream *stream, uint32_t packet, const struct part *part)
{
    return !part->is_part || !stream->cls->clock ||
           !(krait_ctf_packet_ends_before(stream, packet, part->from_ns) ||
             krait_ctf_packet_says_it_ended(stream, packet, part->from_ns) ||
             krait_ctf_packet_begins_after(stream, packet, part->to_ns));
}

static void count_packets(struct krait_ctf_count *count, const struct krait_ctf_stream *stream,
                          const struct part *part)
{
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        if (!reaches_in(stream, i, part))
            continue;
        count->packets++;
        count->bytes += part->is_part ? stream->packets[i].size : 0;
        for (unsigned k = 0; k < n; k++)
            *(losses[k].kind[0] == 'e' ? &count->lost_events : &count->lost_packets) += losses[k].count;
    }
}

/* Of all files. */
static void count_bytes(struct krait_ctf_count *count, const struct krait_ctf_reader *reader)
{
    for (uint32_t i = 0; i < reader->file_count; i++)
        count->bytes += reader->files[i]->size;
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        KRAIT_AUTO_BUF path = { 0 };
        struct stat st;
        krait_buf_fmt(&path, "%s/metadata", reader->traces[i]->dir);
        if (!path.failed && stat(path.data, &st) == 0)
            count->bytes += (uint64_t)st.st_size;
    }
}

static int by_count(const void *a, const void *b)
{
    const struct krait_ctf_class_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int list_classes(struct krait_ctf_count *count, const struct tally *tally)
{
    count->classes =
        krait_arena_alloc(&count->arena, KRAIT_MAX(tally->names.len, 1u) * sizeof(*count->classes));
    if (!count->classes)
        return -ENOMEM;
    for (uint32_t i = 0; i < tally->names.len; i++) {
        char *name = krait_arena_strdup(&count->arena, tally->names.texts[i]);
        if (!name)
            return -ENOMEM;
        count->classes[count->class_count++] =
            (struct krait_ctf_class_count){ .name = name, .count = tally->counts[i] };
    }
    qsort(count->classes, count->class_count, sizeof(*count->classes), by_count);
    return 0;
}

int krait_ctf_count(struct krait_ctf_count *count, struct krait_ctf_reader *reader, int64_t from_ns,
                    int64_t to_ns)
{
    const struct part part = { from_ns != INT64_MIN || to_ns != INT64_MAX, from_ns, to_ns };
    struct tally tally = { 0 };
    *count = (struct krait_ctf_count){ .damage = reader->damage };
    count->traces = krait_arena_alloc(&count->arena, (reader->trace_count + 1) * sizeof(*count->traces));
    int rc = count->traces ? count_events(count, reader, &tally, &part) : -ENOMEM;
    for (uint32_t i = 0; i < reader->stream_count && !rc; i++) {
        struct krait_ctf_trace_count *trace = trace_of(count, reader, reader->streams[i]);
        uint64_t lost = count->lost_events;
        count_packets(count, reader->streams[i], &part);
        trace->streams++;
        trace->lost_events += count->lost_events - lost;
    }
    if (!part.is_part)
        count_bytes(count, reader);
    if (!rc)
        rc = list_classes(count, &tally);
    tally_done(&tally);
    if (rc)
        krait_ctf_count_done(count);
    return rc;
}

void krait_ctf_count_done(struct krait_ctf_count *count)
{
    krait_arena_done(&count->arena);
}
