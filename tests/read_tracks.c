/* SPDX-License-Identifier: Apache-2.0
 *
 * read_tracks [-t] TRACE [FROM UNTIL [NUMBER]]: all tracks of a trace as text, for tests, or those with a number. A
 * line for each track, then one for each of its entries; times in ns after the trace's beginning, where FROM and
 * UNTIL count too. Behind a track's name is (lost) where events of it are missing, (left out) where some were left
 * out. -t walks all tracks together, in one pass where that can be:
 *
 *   track STATES of THREAD 4711 state
 *   0 1500 user 0
 */
#include "base/buf.h"
#include "trace/track.h"

#include <stdio.h>
#include <string.h>

static const char *const kinds[] = { "CALLS", "SLICES", "STATES", "INSTANTS", "COUNTER", "FLOWS" };
static const char *const places[] = { "THREAD", "CPU", "TASK", "GROUP" };

struct reading {
    const struct krait_trace *trace;
    uint64_t zero_ns;
    uint32_t wrong;         /* times that go back */
    uint64_t *last_ns;      /* by track */
    struct krait_buf *text; /* the same */
};

static int print_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct reading *reading = ctx;
    size_t index = (size_t)(track - reading->trace->tracks);
    struct krait_buf *text = &reading->text[index];
    bool by_end = track->kind == KRAIT_TRACK_SLICES || track->kind == KRAIT_TRACK_FLOWS;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint64_t at_ns = batch->end_ns && by_end ? batch->end_ns[i] : batch->t_ns[i];
        reading->wrong += at_ns < reading->last_ns[index];
        reading->last_ns[index] = at_ns;
        krait_buf_fmt(text, "%lld", (long long)(batch->t_ns[i] - reading->zero_ns));
        if (batch->end_ns)
            krait_buf_fmt(text, " %lld", (long long)(batch->end_ns[i] - reading->zero_ns));
        if (batch->name)
            krait_buf_fmt(text, " %s", krait_track_text(reading->trace, batch->name[i]));
        if (batch->calls)
            krait_buf_fmt(text, " %s %u", reading->trace->funcs[batch->calls->func[i]].name,
                          batch->calls->kind[i]);
        if (batch->value)
            krait_buf_fmt(text, " %lld", (long long)batch->value[i]);
        if (batch->to)
            krait_buf_fmt(text, " %u", reading->trace->tracks[batch->to[i]].number);
        if (batch->text && *batch->text[i])
            krait_buf_fmt(text, " %s", batch->text[i]);
        krait_buf_char(text, '\n');
    }
    return 0;
}

static void print_text(struct reading *reading, uint32_t index)
{
    const struct krait_track *track = &reading->trace->tracks[index];
    struct krait_buf *text = &reading->text[index];
    printf("track %s of %s %u %s%s%s\n", kinds[track->kind], places[track->of], track->number, track->name,
           track->flags & KRAIT_TRACK_LOST ? " (lost)" : "",
           track->flags & KRAIT_TRACK_LEFT_OUT ? " (left out)" : "");
    fwrite(text->data, 1, text->len, stdout);
    krait_buf_done(text);
}

static int walk_tracks(struct reading *reading, struct krait_range range, const uint32_t *tracks,
                       uint32_t count, bool together)
{
    char damage[1024] = "";
    int rc = 0;
    if (together)
        rc = krait_tracks_walk(reading->trace, tracks, count, range, print_batch, reading, damage,
                               sizeof(damage));
    for (uint32_t i = 0; i < count && !rc; i++) {
        if (!together)
            rc = krait_track_walk(reading->trace, tracks[i], range, print_batch, reading, damage,
                                  sizeof(damage));
        print_text(reading, tracks[i]);
    }
    if (reading->wrong || *damage)
        fprintf(stderr, "read_tracks: %u times go back; %s\n", reading->wrong, damage);
    return rc || reading->wrong;
}

static int print_tracks(struct krait_trace *trace, struct krait_range range, const char *number,
                        bool together)
{
    struct reading reading = { .trace = trace, .zero_ns = krait_trace_zero(trace) };
    uint32_t *tracks = calloc(trace->track_count + 1, sizeof(*tracks)), count = 0;
    int rc = -ENOMEM;
    reading.last_ns = calloc(trace->track_count + 1, sizeof(*reading.last_ns));
    reading.text = calloc(trace->track_count + 1, sizeof(*reading.text));
    if (range.to_ns != UINT64_MAX)
        range.to_ns += reading.zero_ns;
    range.from_ns += range.from_ns ? reading.zero_ns : 0;
    for (uint32_t i = 0; i < trace->track_count && tracks; i++) {
        if (!number || trace->tracks[i].number == strtoul(number, NULL, 10))
            tracks[count++] = i;
    }
    if (tracks && reading.last_ns && reading.text)
        rc = walk_tracks(&reading, range, tracks, count, together);
    free(tracks);
    free(reading.last_ns);
    free(reading.text);
    return rc;
}

int main(int argc, char **argv)
{
    bool together = argc > 1 && strcmp(argv[1], "-t") == 0;
    argv += together;
    argc -= together;
    const char *path = argc > 1 ? argv[1] : "";
    struct krait_trace *trace = NULL;
    struct krait_err err = { 0 };
    struct krait_range range = KRAIT_RANGE_ALL;
    if (argc > 3)
        range = (struct krait_range){ strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10) };
    int rc = krait_trace_open(&trace, &path, 1, 0, &err);
    rc = rc ? rc : krait_tracks_find(trace, &err);
    if (rc)
        fprintf(stderr, "read_tracks: %s\n", err.text);
    else
        rc = print_tracks(trace, range, argc > 4 ? argv[4] : NULL, together);
    krait_trace_close(trace);
    return rc != 0;
}
