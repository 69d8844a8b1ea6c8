/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes an index from a file. Anybody who may write to the trace's folder may have written the file, so each number is
 * checked before anything is used, and krait takes all of it or nothing.
 */
#include "view/cache_own.h"

#include "base/array.h"
#include "trace/importer.h"
#include "trace/kernel/kernel_list.h"
#include "trace/lanes.h"
#include "trace/places.h"
#include "view/classes.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct reading {
    const struct krait_view *view;
    const uint8_t *at, *end;
    const struct krait_cache_head *head;
    const char *texts;
    struct krait_view_track *tracks; /* the resulting tracks, by track id */
};

/* The next `count` items; false if there are not so many. A count of 0 gives NULL. */
static bool take(struct reading *r, void *items, uint64_t count, size_t size)
{
    const void **out = items;
    uint64_t left = (uint64_t)(r->end - r->at);
    *out = NULL;
    if (count > left / size)
        return false;
    uint64_t bytes = (count * size + 7) & ~(uint64_t)7;
    if (bytes > left)
        return false;
    *out = count ? r->at : NULL;
    r->at += bytes;
    return true;
}

static bool are_cells(const struct krait_pyramid_level *level, unsigned shift, uint32_t names)
{
    for (size_t i = 0; i < level->cell_count; i++) {
        const struct krait_pyramid_cell *cell = &level->cells[i];
        if ((i && cell->key <= level->cells[i - 1].key) || cell->func >= names ||
            cell->key >> KRAIT_PYRAMID_DEPTH_BITS > KRAIT_PYRAMID_TIME_MAX >> shift ||
            cell->busy_ns > (uint64_t)1 << shift)
            return false;
    }
    return true;
}

static bool are_calls(const struct krait_tile_call *calls, size_t count, uint32_t names)
{
    for (size_t i = 0; i < count; i++) {
        const struct krait_tile_call *call = &calls[i];
        if ((i && call->begin_ns < calls[i - 1].begin_ns) || call->end_ns < call->begin_ns ||
            call->end_ns > KRAIT_PYRAMID_TIME_MAX || call->func >= names ||
            call->depth >= KRAIT_PYRAMID_DEPTHS)
            return false;
    }
    return true;
}

static bool are_deep(const struct krait_pyramid *pyramid, unsigned shift)
{
    for (size_t i = 0; i < pyramid->deep_count; i++) {
        if ((i && pyramid->deep[i].cell <= pyramid->deep[i - 1].cell) ||
            pyramid->deep[i].cell > KRAIT_PYRAMID_TIME_MAX >> shift)
            return false;
    }
    return true;
}

static unsigned shift_of(uint32_t level)
{
    return KRAIT_PYRAMID_SHIFT + KRAIT_PYRAMID_STEP * level;
}

static bool read_pyramid(struct reading *r, const struct krait_cache_track *head, struct krait_pyramid *out,
                         uint32_t names)
{
    struct krait_pyramid pyramid = { .first = head->first, .calls = head->pyramid_calls, .is_mapped = true };
    if (head->first >= KRAIT_PYRAMID_LEVELS)
        return false;
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        struct krait_pyramid_level *level = &pyramid.levels[i];
        level->cell_count = head->cells[i];
        level->call_count = head->calls[i];
        if (!take(r, &level->cells, head->cells[i], sizeof(*level->cells)) ||
            !take(r, &level->calls, head->calls[i], sizeof(*level->calls)) ||
            (i < head->first && (head->cells[i] || head->calls[i])) ||
            !are_cells(level, shift_of(i), names) || !are_calls(level->calls, level->call_count, names))
            return false;
    }
    pyramid.deep_count = head->deep;
    if (!take(r, &pyramid.deep, head->deep, sizeof(*pyramid.deep)) ||
        !are_deep(&pyramid, shift_of(head->first)))
        return false;
    *out = pyramid;
    return true;
}

static bool are_moments(const struct krait_columns *columns, uint32_t names)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct krait_column_moment *moment = &columns->moments[i];
        if ((i && moment->t_ns < columns->moments[i - 1].t_ns) || moment->t_ns > KRAIT_PYRAMID_TIME_MAX ||
            (columns->kind == KRAIT_TRACK_INSTANTS && !krait_columns_has_name(moment, names)))
            return false;
    }
    return true;
}

static bool are_spans(const struct krait_spans *spans, uint32_t names)
{
    struct krait_spans_reader reader;
    struct krait_tile_call span;
    uint64_t count = 0, begin_ns = 0;
    krait_spans_start(&reader, spans);
    for (; krait_spans_next(&reader, &span); count++) {
        if (span.func >= names || span.begin_ns < begin_ns)
            return false;
        begin_ns = span.begin_ns;
    }
    for (size_t i = 1; i < spans->block_count; i++) {
        if (spans->blocks[i].begin_ns < spans->blocks[i - 1].begin_ns)
            return false;
    }
    return count == spans->count;
}

static bool read_columns(struct reading *r, const struct krait_cache_track *head,
                         struct krait_columns *columns)
{
    uint32_t names = r->head->texts;
    struct krait_spans *spans = &columns->spans;
    *columns = (struct krait_columns){
        .kind = head->kind, .end_ns = head->end_ns, .is_mapped = true, .is_whole = true
    };
    *spans = (struct krait_spans){ .block_count = head->span_blocks,
                                   .byte_count = head->span_bytes,
                                   .count = head->spans,
                                   .is_mapped = true };
    columns->count = (uint32_t)head->moments;
    return head->moments <= UINT32_MAX && head->end_ns <= KRAIT_PYRAMID_TIME_MAX &&
           (!head->spans || krait_columns_have_spans(head->kind)) &&
           take(r, &spans->blocks, head->span_blocks, sizeof(*spans->blocks)) &&
           take(r, &spans->bytes, head->span_bytes, 1) &&
           take(r, &columns->moments, head->moments, sizeof(*columns->moments)) && are_spans(spans, names) &&
           are_moments(columns, names);
}

/* Gives these to the trace, whatever else is in the file, because they match it. */
static bool read_places(struct reading *r, const struct krait_cache_track *head)
{
    struct krait_places places = { .count = (uint32_t)head->places, .frame_count = head->frames };
    const struct krait_track *track = &r->view->trace->tracks[head->track];
    if (head->places > UINT32_MAX || !take(r, &places.items, head->places, sizeof(*places.items)) ||
        !take(r, &places.frames, head->frames, sizeof(*places.frames)))
        return false;
    if (track->kind != KRAIT_TRACK_CALLS)
        return !places.count && !places.frame_count;
    if (!places.count || krait_places_of(r->view->trace, track->thread))
        return true;
    return krait_places_give(r->view->trace, track->thread, &places) == 0;
}

/* The tracks that would be built, each once, in their order. */
static bool read_track(struct reading *r, uint32_t at)
{
    const struct krait_cache_track *head;
    const struct krait_view *view = r->view;
    struct krait_view_track *out = &r->tracks[at];
    if (!take(r, &head, 1, sizeof(*head)) || head->track != at || head->kind != view->trace->tracks[at].kind)
        return false;
    bool is_calls = head->kind == KRAIT_TRACK_CALLS;
    struct krait_pyramid pyramid;
    if (!read_pyramid(r, head, &pyramid, is_calls ? r->head->funcs : r->head->texts) ||
        (is_calls && !head->has_pyramid))
        return false;
    if (head->has_pyramid) {
        out->pyramid = malloc(sizeof(*out->pyramid));
        if (!out->pyramid)
            return false;
        *out->pyramid = pyramid;
    }
    if (!is_calls) {
        out->columns = calloc(1, sizeof(*out->columns));
        if (!out->columns || !read_columns(r, head, out->columns))
            return false;
    }
    return (!is_calls || (!head->moments && !head->span_blocks && !head->span_bytes)) && read_places(r, head);
}

static bool read_tracks(struct reading *r)
{
    uint32_t count = 0, recorded = krait_trace_recorded_tracks(r->view->trace);
    for (uint32_t i = 0; i < recorded; i++) {
        if (r->view->tracks[i].state != KRAIT_VIEW_WAITS)
            continue;
        count++;
        if (!read_track(r, i))
            return false;
    }
    return count == r->head->tracks && r->at == r->end;
}

static bool read_texts(struct reading *r)
{
    if (!take(r, &r->texts, r->head->text_bytes, 1))
        return false;
    const char *end = (const char *)r->at, *text = r->texts ? r->texts : end;
    uint32_t count = 0;
    if (text < end && end[-1])
        return false;
    for (; text < end && count < r->head->texts; count++)
        text += strlen(text) + 1;
    return count == r->head->texts;
}

/* They get the ids that they had: nobody has walked the trace before, or he has met the same. Comes last, because the trace
 * keeps them. */
static bool know_texts(const struct reading *r, struct krait_view *view)
{
    const char *text = r->texts;
    if (!KRAIT_GROW(view->texts, view->text_cap, r->head->texts) ||
        !KRAIT_GROW(view->text_hues, view->hue_cap, r->head->texts))
        return false;
    for (uint32_t i = 0; i < r->head->texts; i++) {
        if (krait_trace_name(view->trace, text) != i)
            return false;
        view->texts[i] = krait_track_text(view->trace, i);
        view->text_hues[i] = krait_class_of(text);
        text += strlen(text) + 1;
    }
    return true;
}

static bool is_ours(const struct krait_view *view, const struct krait_cache_head *head, uint64_t size)
{
    return head->magic == KRAIT_CACHE_MAGIC && head->version == KRAIT_CACHE_VERSION &&
           head->pointer_bytes == sizeof(void *) && head->identity[0] == view->identity[0] &&
           head->identity[1] == view->identity[1] && head->small == view->small &&
           head->length_ns <= KRAIT_PYRAMID_TIME_MAX && head->text_bytes % 8 == 0 && size % 8 == 0;
}

/* What is known once the trace's tracks are. */
static bool is_of_tracks(const struct krait_view *view, const struct krait_cache_head *head)
{
    return head->funcs == view->trace->func_count &&
           head->trace_tracks == krait_trace_recorded_tracks(view->trace);
}

static void drop(struct reading *r)
{
    for (uint32_t i = 0; i < r->view->trace->track_count; i++) {
        free(r->tracks[i].columns);
        free(r->tracks[i].pyramid);
    }
}

static void accept(struct krait_view *view, struct reading *r)
{
    view->text_count = r->head->texts;
    view->length_ns = r->head->length_ns;
    uint32_t recorded = krait_trace_recorded_tracks(view->trace);
    view->job_count = view->other_count = 0;
    view->others_work = view->work = 0;
    for (uint32_t i = 0; i < view->trace->track_count; i++) {
        struct krait_view_track *track = &view->tracks[i];
        if (track->state != KRAIT_VIEW_WAITS)
            continue;
        if (i >= recorded) { /* lanes are built each time, because they may have changed */
            view->others[view->other_count++] = i;
            continue;
        }
        free(track->columns);
        *track = r->tracks[i];
        track->state = KRAIT_VIEW_READY;
    }
}

/* ---- the file ---- */

static bool read_machine(struct reading *r, uint32_t machine)
{
    const struct krait_cache_machine *head;
    struct krait_kernel_list list;
    if (!take(r, &head, 1, sizeof(*head)))
        return false;
    list = (struct krait_kernel_list){ .begin_ns = head->begin_ns,
                                       .end_ns = head->end_ns,
                                       .thread_count = head->threads,
                                       .cpu_count = head->cpus };
    return take(r, &list.threads, head->threads, sizeof(*list.threads)) &&
           take(r, &list.cpus, head->cpus, sizeof(*list.cpus)) &&
           krait_kernel_list_give(r->view->trace, machine, &list) == 0;
}

static bool read_machines(struct reading *r)
{
    if (r->head->machines && r->head->machines != krait_kernel_machines(r->view->trace))
        return false;
    for (uint32_t i = 0; i < r->head->machines; i++) {
        if (!read_machine(r, i))
            return false;
    }
    return true;
}

static int open_mapped(struct krait_view *view, const uint8_t *bytes, size_t size)
{
    uint64_t sum;
    struct reading r = { .view = view, .at = bytes, .end = bytes + size - sizeof(sum) };
    memcpy(&sum, r.end, sizeof(sum));
    if (!take(&r, &r.head, 1, sizeof(*r.head)) || !is_ours(view, r.head, size) ||
        krait_cache_sum(0, bytes, size - sizeof(sum)) != sum)
        return -ENOENT;
    if (!read_machines(&r)) {
        krait_kernel_lists_forget(view->trace);
        return -ENOENT;
    }
    view->mapped_texts = r.at;
    return 0;
}

int krait_cache_map(struct krait_view *view, const char *path)
{
    KRAIT_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size < sizeof(struct krait_cache_head) + sizeof(uint64_t))
        return -ENOENT;
    void *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return -ENOENT;
    int rc = open_mapped(view, bytes, (size_t)st.st_size);
    if (rc) {
        munmap(bytes, (size_t)st.st_size);
        return rc;
    }
    view->mapped = bytes;
    view->mapped_bytes = view->bytes = (size_t)st.st_size;
    return 0;
}

int krait_cache_load(struct krait_view *view)
{
    const uint8_t *bytes = view->mapped;
    struct reading r = { .view = view,
                         .at = view->mapped_texts,
                         .end = bytes + view->mapped_bytes - sizeof(uint64_t),
                         .head = view->mapped };
    r.tracks = calloc(KRAIT_MAX(view->trace->track_count, 1u), sizeof(*r.tracks));
    if (!r.tracks)
        return -ENOMEM;
    bool is_valid = is_of_tracks(view, r.head) && read_texts(&r) && read_tracks(&r) && know_texts(&r, view);
    if (is_valid)
        accept(view, &r);
    else
        drop(&r);
    free(r.tracks);
    return is_valid ? 0 : -ESTALE;
}

void krait_cache_done(struct krait_view *view)
{
    if (view->mapped)
        munmap(view->mapped, view->mapped_bytes);
}
