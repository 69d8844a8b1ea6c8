/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/count.h"

#include <string.h>
#include <sys/stat.h>

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
    if (id >= tally->cap) {
        uint32_t cap = KRAIT_MAX(id + 1, tally->cap * 2);
        uint64_t *counts = realloc(tally->counts, cap * sizeof(*counts));
        if (!counts)
            return -ENOMEM;
        memset(counts + tally->cap, 0, (cap - tally->cap) * sizeof(*counts));
        tally->counts = counts;
        tally->cap = cap;
    }
    tally->counts[id] += n;
    return 0;
}

static void tally_done(struct tally *tally)
{
    krait_strtab_done(&tally->names);
    free(tally->counts);
}

static void note_time(struct krait_ctf_count *count, int64_t ns)
{
    if (!count->has_times || ns < count->begin_ns)
        count->begin_ns = ns;
    if (!count->has_times || ns > count->end_ns)
        count->end_ns = ns;
    count->has_times = true;
}

/* Counts by index of one stream class, on their way into the tally by name. */
struct by_index {
    const struct krait_stream_class *cls; /* NULL: none yet */
    uint64_t *counts;
};

static int flush_counts(struct by_index *by, struct tally *tally)
{
    int rc = 0;
    for (uint32_t i = 0; by->cls && i < by->cls->event_count && !rc; i++) {
        if (by->counts[i])
            rc = tally_add(tally, by->cls->events[i]->name, by->counts[i]);
    }
    free(by->counts);
    *by = (struct by_index){ 0 };
    return rc;
}

/* A stream's packets may be of several folders, each with metadata of its own. */
static int switch_class(struct by_index *by, const struct krait_stream_class *cls, struct tally *tally)
{
    int rc = flush_counts(by, tally);
    if (rc)
        return rc;
    by->counts = calloc(KRAIT_MAX(cls->event_count, 1u), sizeof(*by->counts));
    by->cls = by->counts ? cls : NULL;
    return by->counts ? 0 : -ENOMEM;
}

static int count_stream(struct krait_ctf_count *count, struct krait_ctf_cursor *cursor, struct tally *tally)
{
    struct by_index by = { 0 };
    int rc = 0;
    while (!rc && krait_ctf_next(cursor) > 0) {
        if (by.cls != cursor->cls)
            rc = switch_class(&by, cursor->cls, tally);
        if (rc || krait_ctf_event_skip(cursor))
            break;
        by.counts[cursor->event->index]++;
        count->events++;
        if (cursor->cls->clock)
            note_time(count, cursor->ns);
    }
    int flushed = flush_counts(&by, tally);
    if (cursor->err.code && !count->damage.code)
        count->damage = cursor->err;
    return rc ? rc : flushed;
}

static void count_losses(struct krait_ctf_count *count, const struct krait_ctf_stream *stream)
{
    for (uint32_t i = 0; i < stream->packet_count; i++) {
        struct krait_ctf_loss losses[2];
        unsigned n = krait_ctf_losses(stream, i, losses);
        for (unsigned k = 0; k < n; k++)
            *(losses[k].kind[0] == 'e' ? &count->lost_events : &count->lost_packets) += losses[k].count;
    }
}

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

int krait_ctf_count(struct krait_ctf_count *count, struct krait_ctf_reader *reader)
{
    struct tally tally = { 0 };
    int rc = 0;
    *count = (struct krait_ctf_count){ .damage = reader->damage };
    for (uint32_t i = 0; i < reader->stream_count && !rc; i++) {
        struct krait_ctf_cursor cursor;
        krait_ctf_cursor_init(&cursor, reader, reader->streams[i]);
        rc = count_stream(count, &cursor, &tally);
        krait_ctf_cursor_done(&cursor);
        count->packets += reader->streams[i]->packet_count;
        count_losses(count, reader->streams[i]);
    }
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
