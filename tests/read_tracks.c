/* SPDX-License-Identifier: Apache-2.0
 *
 * read_tracks TRACE [FROM UNTIL [NUMBER]]: all tracks of a trace as text, for tests, or those with a number. A line for each track, then one for
 * each of its entries; times in ns after the trace's beginning, where FROM and UNTIL count too:
 *
 *   track STATES of THREAD 4711 state
 *   0 1500 user 0
 */
#include "analysis/kernel_tracks.h"

#include <stdio.h>

static const char *const kinds[] = { "CALLS", "SLICES", "STATES", "INSTANTS", "COUNTER", "FLOWS" };
static const char *const places[] = { "HOST", "PROCESS", "THREAD", "CPU", "TASK", "GROUP" };

struct reading {
    const struct krait_trace *trace;
    uint64_t zero_ns, last_ns;
    uint32_t wrong; /* times that go back */
};

static int print_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct reading *reading = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint64_t at_ns =
            batch->end_ns && track->kind == KRAIT_TRACK_SLICES ? batch->end_ns[i] : batch->t_ns[i];
        reading->wrong += at_ns < reading->last_ns;
        reading->last_ns = at_ns;
        printf("%lld", (long long)(batch->t_ns[i] - reading->zero_ns));
        if (batch->end_ns)
            printf(" %lld", (long long)(batch->end_ns[i] - reading->zero_ns));
        if (batch->name)
            printf(" %s", krait_track_text(reading->trace, batch->name[i]));
        if (batch->calls)
            printf(" %s %u", reading->trace->funcs[batch->calls->func[i]].name, batch->calls->kind[i]);
        if (batch->value)
            printf(" %lld", (long long)batch->value[i]);
        puts("");
    }
    return 0;
}

static int print_tracks(struct krait_trace *trace, struct krait_range range, const char *number)
{
    struct reading reading = { .trace = trace, .zero_ns = krait_trace_zero(trace) };
    char damage[1024] = "";
    int rc = 0;
    if (range.to_ns != UINT64_MAX)
        range.to_ns += reading.zero_ns;
    range.from_ns += range.from_ns ? reading.zero_ns : 0;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (number && track->number != strtoul(number, NULL, 10))
            continue;
        printf("track %s of %s %u %s\n", kinds[track->kind], places[track->of], track->number, track->name);
        reading.last_ns = 0;
        rc = krait_track_walk(trace, i, range, print_batch, &reading, damage, sizeof(damage));
    }
    if (reading.wrong || *damage)
        fprintf(stderr, "read_tracks: %u times go back; %s\n", reading.wrong, damage);
    return rc || reading.wrong;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "";
    struct krait_trace *trace = NULL;
    struct krait_err err = { 0 };
    struct krait_range range = KRAIT_RANGE_ALL;
    if (argc > 3)
        range = (struct krait_range){ strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10) };
    int rc = krait_trace_open(&trace, &path, 1, 0, &err);
    rc = rc ? rc : krait_kernel_tracks_add(trace, &err);
    if (rc)
        fprintf(stderr, "read_tracks: %s\n", err.text);
    else
        rc = print_tracks(trace, range, argc > 4 ? argv[4] : NULL);
    krait_trace_close(trace);
    return rc != 0;
}
