/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and writes the file. cache_read.c reads it.
 */
#include "view/cache.h"

#include "base/dirs.h"
#include "base/outfile.h"
#include "trace/folders.h"
#include "trace/kernel/kernel_list.h"
#include "trace/lanes.h"
#include "trace/places.h"
#include "view/cache_own.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

uint64_t krait_cache_sum(uint64_t sum, const void *words, size_t bytes)
{
    const uint8_t *at = words;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, 8);
        sum = krait_hash_u64(sum ^ word);
    }
    return sum;
}

/* ---- identity ---- */

int krait_cache_identity(const struct krait_view_options *options, uint64_t identity[2])
{
    uint64_t version = krait_hash_bytes(KRAIT_VERSION, sizeof(KRAIT_VERSION)) + KRAIT_CACHE_VERSION;
    int rc = krait_folders_identity(options->paths, options->path_count, identity);
    identity[0] = krait_hash_u64(identity[0] ^ version);
    return rc;
}

/* ---- places ---- */

static char *beside(const struct krait_view *view)
{
    char *path;
    struct stat st;
    if (view->path_count != 1 || stat(view->paths[0], &st) || !S_ISDIR(st.st_mode))
        return NULL;
    return asprintf(&path, "%s/" KRAIT_CACHE_NAME, view->paths[0]) < 0 ? NULL : path;
}

static char *users_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path;
    if (cache && cache[0] == '/')
        return asprintf(&path, "%s/krait", cache) < 0 ? NULL : path;
    if (!home || home[0] != '/')
        return NULL;
    return asprintf(&path, "%s/.cache/krait", home) < 0 ? NULL : path;
}

static char *in_users_folder(const struct krait_view *view)
{
    KRAIT_AUTO_FREE char *folder = users_folder();
    uint64_t hash = 0;
    char *path;
    for (size_t i = 0; i < view->path_count; i++) {
        KRAIT_AUTO_FREE char *real = realpath(view->paths[i], NULL);
        if (!real)
            return NULL;
        hash = krait_hash_u64(hash ^ krait_hash_bytes(real, strlen(real)));
    }
    if (!folder || !view->path_count)
        return NULL;
    return asprintf(&path, "%s/view-%016llx", folder, (unsigned long long)hash) < 0 ? NULL : path;
}

/* Both paths in the order in which krait tries them; NULL for a path that cannot be used. The caller frees them. */
static void paths_of(const struct krait_view *view, char *paths[KRAIT_CACHE_PLACES])
{
    paths[0] = beside(view);
    paths[1] = in_users_folder(view);
}

int krait_cache_open(struct krait_view *view, uint32_t *place)
{
    char *paths[KRAIT_CACHE_PLACES];
    int rc = -ENOENT;
    paths_of(view, paths);
    for (; *place < KRAIT_CACHE_PLACES && rc == -ENOENT; ++*place)
        rc = paths[*place] ? krait_cache_map(view, paths[*place]) : -ENOENT;
    for (uint32_t i = 0; i < KRAIT_CACHE_PLACES; i++)
        free(paths[i]);
    return rc;
}

/* ---- writing ---- */

struct storing {
    const struct krait_view *view;
    struct krait_outfile out;
    uint64_t sum;
};

static void put(struct storing *s, const void *items, size_t count, size_t size)
{
    static const uint8_t zero[8];
    size_t bytes = count * size, pad = -bytes & 7;
    s->out.buf.failed |= count && bytes / count != size;
    if (!bytes || s->out.buf.failed)
        return;
    krait_buf_add(&s->out.buf, items, bytes);
    krait_buf_add(&s->out.buf, zero, pad);
    if (!s->out.buf.failed)
        s->sum = krait_cache_sum(s->sum, s->out.buf.data + s->out.buf.len - bytes - pad, bytes + pad);
    krait_outfile_spill(&s->out);
}

static void put_texts(struct storing *s)
{
    KRAIT_AUTO_BUF texts = { 0 };
    for (uint32_t i = 0; i < s->view->text_count; i++)
        krait_buf_add(&texts, s->view->texts[i], strlen(s->view->texts[i]) + 1);
    s->out.buf.failed |= texts.failed;
    put(s, texts.data, 1, texts.len);
}

static void put_track(struct storing *s, uint32_t at)
{
    static const struct krait_columns no_columns;
    static const struct krait_places no_places;
    static const struct krait_pyramid no_pyramid;
    const struct krait_view *view = s->view;
    const struct krait_track *track = &view->trace->tracks[at];
    const struct krait_view_track *index = &view->tracks[at];
    const struct krait_pyramid *pyramid = index->pyramid ? index->pyramid : &no_pyramid;
    const struct krait_columns *columns = index->columns ? index->columns : &no_columns;
    const struct krait_places *places =
        track->kind == KRAIT_TRACK_CALLS ? krait_places_of(view->trace, track->thread) : NULL;
    places = places ? places : &no_places;
    struct krait_cache_track head = {
        .track = at,
        .kind = track->kind,
        .has_pyramid = index->pyramid != NULL,
        .first = (uint8_t)pyramid->first,
        .deep = pyramid->deep_count,
        .pyramid_calls = pyramid->calls,
        .moments = columns->count,
        .spans = columns->spans.count,
        .span_blocks = columns->spans.block_count,
        .span_bytes = columns->spans.byte_count,
        .end_ns = columns->end_ns,
        .places = places->count,
        .frames = places->frame_count,
    };
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        head.cells[i] = pyramid->levels[i].cell_count;
        head.calls[i] = pyramid->levels[i].call_count;
    }
    put(s, &head, 1, sizeof(head));
    for (uint32_t i = 0; i < KRAIT_PYRAMID_LEVELS; i++) {
        put(s, pyramid->levels[i].cells, pyramid->levels[i].cell_count, sizeof(*pyramid->levels[i].cells));
        put(s, pyramid->levels[i].calls, pyramid->levels[i].call_count, sizeof(*pyramid->levels[i].calls));
    }
    put(s, pyramid->deep, pyramid->deep_count, sizeof(*pyramid->deep));
    put(s, columns->spans.blocks, columns->spans.block_count, sizeof(*columns->spans.blocks));
    put(s, columns->spans.bytes, columns->spans.byte_count, 1);
    put(s, columns->moments, columns->count, sizeof(*columns->moments));
    put(s, places->items, places->count, sizeof(*places->items));
    put(s, places->frames, places->frame_count, sizeof(*places->frames));
}

/* How many machines' lists the file has: of all or none. */
static uint32_t machines_of(const struct krait_view *view)
{
    uint32_t count = krait_kernel_machines(view->trace), kept = 0;
    for (uint32_t i = 0; i < count; i++)
        kept += krait_kernel_list_to_keep(view->trace, i) != NULL;
    return kept == count ? count : 0;
}

static void put_machine(struct storing *s, const struct krait_kernel_list *list)
{
    const struct krait_cache_machine head = { list->begin_ns, list->end_ns, list->thread_count,
                                              list->cpu_count };
    put(s, &head, 1, sizeof(head));
    put(s, list->threads, list->thread_count, sizeof(*list->threads));
    put(s, list->cpus, list->cpu_count, sizeof(*list->cpus));
}

static bool is_kept(const struct krait_view *view, uint32_t track)
{
    return view->tracks[track].state == KRAIT_VIEW_READY &&
           view->trace->tracks[track].kind != KRAIT_TRACK_FLOWS;
}

static int put_all(struct storing *s)
{
    const struct krait_view *view = s->view;
    uint32_t recorded = krait_trace_recorded_tracks(view->trace);
    struct krait_cache_head head = {
        .magic = KRAIT_CACHE_MAGIC,
        .version = KRAIT_CACHE_VERSION,
        .pointer_bytes = sizeof(void *),
        .identity = { view->identity[0], view->identity[1] },
        .small = view->small,
        .length_ns = view->length_ns,
        .texts = view->text_count,
        .funcs = view->trace->func_count,
        .trace_tracks = recorded,
        .machines = machines_of(view),
    };
    for (uint32_t i = 0; i < view->text_count; i++)
        head.text_bytes += strlen(view->texts[i]) + 1;
    head.text_bytes = (head.text_bytes + 7) & ~(uint64_t)7;
    for (uint32_t i = 0; i < recorded; i++)
        head.tracks += is_kept(view, i);
    put(s, &head, 1, sizeof(head));
    for (uint32_t i = 0; i < head.machines; i++)
        put_machine(s, krait_kernel_list_to_keep(view->trace, i));
    put_texts(s);
    for (uint32_t i = 0; i < recorded && !s->out.error && !s->out.buf.failed; i++) {
        if (is_kept(view, i))
            put_track(s, i);
    }
    uint64_t sum = s->sum;
    put(s, &sum, 1, sizeof(sum));
    return s->out.buf.failed ? -ENOMEM : s->out.error;
}

static int store_at(const struct krait_view *view, const char *path)
{
    struct storing s = { .view = view, .out = KRAIT_OUTFILE_INIT };
    struct krait_err err;
    int rc = krait_outfile_open(&s.out, path, &err);
    rc = rc ? rc : put_all(&s);
    rc = rc ? rc : krait_outfile_commit(&s.out, &err);
    krait_outfile_done(&s.out);
    return rc;
}

/* Writes nothing if the trace has changed since it was opened, because it is still being recorded. */
void krait_cache_store(struct krait_view *view)
{
    const struct krait_view_options options = { .paths = (const char *const *)view->paths,
                                                .path_count = view->path_count };
    uint64_t now[2];
    char *paths[KRAIT_CACHE_PLACES];
    if (krait_cache_identity(&options, now) || now[0] != view->identity[0] || now[1] != view->identity[1])
        return;
    paths_of(view, paths);
    if (!paths[0] || store_at(view, paths[0])) {
        if (paths[1]) {
            krait_dir_make_for(paths[1]);
            store_at(view, paths[1]);
        }
    }
    free(paths[0]);
    free(paths[1]);
}
