/* SPDX-License-Identifier: Apache-2.0
 *
 * view_trace [--no-cache] [--threads=N] TRACE: what the index of a trace takes, and tiles of it. Prints one line of
 * JSON: the seconds until a first tile of the longest track has something in it, those until the index is whole, its
 * bytes, the memory beyond mapped files, and the microseconds of tiles: of all tracks, at all levels, at places by
 * chance, always the same.
 */
#include "base/clock.h"
#include "trace/track.h"
#include "view/index.h"

#include <math.h>
#include <string.h>

enum { TILES = 500 };

static uint64_t seed = 1;

static uint32_t dice(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return (uint32_t)(seed >> 33);
}

static void die(const char *why)
{
    fprintf(stderr, "view_trace: %s\n", why);
    exit(1);
}

static double seconds(void)
{
    return (double)krait_clock_ns(CLOCK_MONOTONIC) / 1e9;
}

/* Of /proc/self/status: "RssAnon", in bytes. */
static uint64_t status(const char *key)
{
    KRAIT_AUTO_BUF text = { 0 };
    uint64_t kib = 0;
    if (krait_buf_read_file(&text, "/proc/self/status"))
        return 0;
    const char *at = strstr(text.data, key);
    return at && sscanf(at + strlen(key), ": %lu", &kib) == 1 ? kib << 10 : 0;
}

static uint8_t level_of_all(struct krait_view *view)
{
    uint8_t level = 0;
    while ((uint64_t)KRAIT_WIRE_BINS << level < krait_view_length(view))
        level++;
    return level;
}

/* Of a trace without calls the first processor's. */
static uint32_t longest_track(const struct krait_trace *trace)
{
    uint32_t best = 0;
    while (best + 1 < trace->track_count && trace->tracks[best].kind != KRAIT_TRACK_CALLS &&
           (trace->tracks[best].of != KRAIT_OF_CPU || trace->tracks[best].kind != KRAIT_TRACK_STATES))
        best++;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct krait_track *track = &trace->tracks[i], *so_far = &trace->tracks[best];
        if (track->kind != KRAIT_TRACK_CALLS)
            continue;
        if (so_far->kind != KRAIT_TRACK_CALLS ||
            trace->threads[track->thread].bytes > trace->threads[so_far->thread].bytes)
            best = i;
    }
    return best;
}

static struct krait_wire_head ask(struct krait_view *view, uint32_t track, uint8_t level, uint64_t tile)
{
    const struct krait_view_query query = { track, level, tile };
    struct krait_wire_head head;
    KRAIT_AUTO_BUF out = { 0 };
    if (krait_view_tile(view, &query, &out))
        die("a tile fails");
    memcpy(&head, out.data, sizeof(head));
    return head;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void ask_many(struct krait_view *view, const struct krait_trace *trace, double *took)
{
    uint8_t top = level_of_all(view);
    for (uint32_t i = 0; i < TILES; i++) {
        uint8_t level = (uint8_t)(dice() % (top + 1u));
        uint64_t tiles = (krait_view_length(view) >> level >> KRAIT_WIRE_BINS_LOG2) + 1;
        uint64_t tile = ((uint64_t)dice() << 31 | dice()) % tiles;
        uint32_t track = i % 2 ? dice() % trace->track_count : longest_track(trace);
        double start = seconds();
        ask(view, track, level, tile);
        took[i] = (seconds() - start) * 1e6;
    }
    qsort(took, TILES, sizeof(*took), by_size);
}

int main(int argc, char **argv)
{
    struct krait_view_options options = { 0 };
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--no-cache") == 0)
            options.flags |= KRAIT_VIEW_NO_CACHE;
        sscanf(argv[at], "--threads=%u", &options.threads);
    }
    if (at + 1 != argc)
        die("usage: view_trace [--no-cache] [--threads=N] TRACE");
    const char *path = argv[at];
    options.paths = &path;
    options.path_count = 1;
    struct krait_trace *trace;
    struct krait_view *view;
    struct krait_view_progress progress;
    struct krait_err err = { 0 };
    double start = seconds();
    if (krait_trace_open(&trace, &path, 1, 0, &err))
        die(err.text);
    double opened = seconds();
    if (krait_view_open(&view, trace, &options, &err))
        die(err.text);
    double found = seconds();
    struct krait_wire_head head;
    do
        head = ask(view, longest_track(trace), level_of_all(view), 0);
    while (!head.rows && !head.slices && head.flags & KRAIT_WIRE_UNFINISHED);
    double first = seconds();
    krait_view_wait(view);
    krait_view_progress(view, &progress);
    double whole = seconds();
    head = ask(view, longest_track(trace), level_of_all(view), 0);
    uint64_t memory = status("RssAnon");
    static double took[TILES];
    ask_many(view, trace, took);
    printf(
        "{\"open\": %.3f, \"tracks\": %.3f, \"first_tile\": %.3f, \"index\": %.3f, \"whole\": %.3f, \"calls\": %lu, "
        "\"index_bytes\": %lu, \"memory\": %lu, \"tile_median\": %.0f, \"tile_p95\": %.0f, \"tile_max\": %.0f, "
        "\"track_count\": %u, \"cached\": %s, \"rc\": %d}\n",
        opened - start, found - opened, first - start, (double)progress.took_ns / 1e9, whole - start,
        (unsigned long)head.ops, (unsigned long)progress.bytes, (unsigned long)memory, took[TILES / 2],
        took[TILES * 95 / 100], took[TILES - 1], trace->track_count, progress.is_cached ? "true" : "false",
        progress.rc);
    krait_view_close(view);
    krait_trace_close(trace);
    return 0;
}
