/* SPDX-License-Identifier: Apache-2.0
 *
 * view_check TRACE...: whether the index of a trace answers as walks over all of it do, at many places. Prints the
 * tracks that it has looked at, by kind, and how many tiles differ; exit status 1 if one does. The index is then
 * asked again, from its cache file.
 */
#include "view_compare.h"

enum { TILES = 3, TRACKS = 60, KINDS = KRAIT_TRACK_FLOWS + 1 };

static void die(const char *why)
{
    fprintf(stderr, "view_check: %s\n", why);
    exit(1);
}

struct opened {
    struct krait_trace *trace;
    struct krait_view *view;
};

static struct opened open_view(const char *const *paths, size_t count, unsigned flags)
{
    const struct krait_view_options options = {
        .paths = paths, .path_count = count, .flags = flags, .small = 1
    };
    struct opened opened;
    struct krait_err err = { 0 };
    if (krait_trace_open(&opened.trace, paths, count, 0, &err) ||
        krait_view_open(&opened.view, opened.trace, &options, &err))
        die(err.text);
    if (krait_view_wait(opened.view))
        die("the index cannot be built");
    return opened;
}

static uint32_t compare(const char *const *paths, size_t count, const char *name)
{
    static const char *const kinds[KINDS] = { "calls", "slices", "states", "instants", "counters", "flows" };
    struct opened index = open_view(paths, count, 0);
    struct opened walk = open_view(paths, count, KRAIT_VIEW_WALK);
    struct krait_view_progress progress;
    struct view_dice dice = { 3 };
    uint32_t differ = krait_view_length(index.view) != krait_view_length(walk.view), looked[KINDS] = { 0 };
    krait_view_progress(index.view, &progress);
    for (uint32_t i = 0; i < index.trace->track_count; i++) {
        uint32_t step = index.trace->track_count / TRACKS + 1;
        if (i % step)
            continue;
        looked[index.trace->tracks[i].kind]++;
        differ += view_compare_track(index.view, walk.view, i, TILES, &dice);
    }
    printf("%s:", name);
    for (uint32_t i = 0; i < KINDS; i++)
        printf(" %u %s,", looked[i], kinds[i]);
    printf(" %u tiles differ%s\n", differ, progress.is_cached ? ", from the cache" : "");
    krait_view_close(index.view);
    krait_view_close(walk.view);
    krait_trace_close(index.trace);
    krait_trace_close(walk.trace);
    return differ;
}

int main(int argc, char **argv)
{
    const char *const *paths = (const char *const *)argv + 1;
    if (argc < 2)
        die("usage: view_check TRACE...");
    uint32_t differ = compare(paths, (size_t)argc - 1, "first");
    return differ + compare(paths, (size_t)argc - 1, "again") ? 1 : 0;
}
