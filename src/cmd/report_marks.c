/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --by mark`: which marks were set, how often, and when.
 */
#include "base/array.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/track.h"

struct mark {
    uint64_t count, first_ns, last_ns, tracks;
    uint32_t last_track;
};

struct marks {
    struct report *report;
    struct mark *items; /* by name; a count of 0: not met */
    uint32_t count, cap;
    uint32_t track; /* that is walked */
};

/* -- columns -- */

/* A time of the mark at an offset, from the zero of the trace. */
static struct krait_sheet_cell get_time(void *of, const void *row, size_t offset)
{
    const struct marks *marks = of;
    uint64_t zero_ns = marks->report->zero_ns, ns = krait_sheet_number_at(NULL, row, offset).number;
    return krait_sheet_number(ns > zero_ns ? ns - zero_ns : 0);
}

static struct krait_sheet_cell get_name(void *of, const void *row, size_t arg)
{
    const struct marks *marks = of;
    const struct mark *mark = row;
    return krait_sheet_name(krait_track_text(marks->report->trace, (uint32_t)(mark - marks->items)));
}

static const struct krait_sheet_column columns[] = {
#define OF(member) offsetof(struct mark, member)
    { { "marks", 0, 0, 0 }, "marks", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(count) },
    { { "first", 0, 0, 1 }, "first_ns", KRAIT_SHEET_TIME, 0, get_time, OF(first_ns) },
    { { "last", 0, 0, 2 }, "last_ns", KRAIT_SHEET_TIME, 0, get_time, OF(last_ns) },
    { { "tracks", 0, 0, 3 }, "tracks", KRAIT_SHEET_COUNT, 0, krait_sheet_number_at, OF(tracks) },
    { { "mark", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 }, "name", KRAIT_SHEET_NAME, 0, get_name, 0 },
#undef OF
};

/* -- rows -- */

static int add_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct marks *marks = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t name = batch->name[i], had = marks->count;
        if (!krait_ranges_have(&marks->report->options->select.parts, batch->t_ns[i]))
            continue;
        if (name >= had) {
            if (!KRAIT_GROW(marks->items, marks->cap, name + 1))
                return -ENOMEM;
            for (marks->count = name + 1; had < marks->count; had++)
                marks->items[had] = (struct mark){ .last_track = KRAIT_NO_ID };
        }
        struct mark *mark = &marks->items[name];
        mark->first_ns = mark->count ? KRAIT_MIN(mark->first_ns, batch->t_ns[i]) : batch->t_ns[i];
        mark->last_ns = KRAIT_MAX(mark->last_ns, batch->t_ns[i]);
        mark->tracks += mark->last_track != marks->track;
        mark->last_track = marks->track;
        mark->count++;
    }
    return 0;
}

static bool takes(const struct report *report, const struct krait_track *track)
{
    return track->kind == KRAIT_TRACK_INSTANTS &&
           krait_select_place((void *)&report->options->select, report->trace, track);
}

static int walk_all(struct marks *marks)
{
    struct report *report = marks->report;
    const struct krait_trace *trace = report->trace;
    int rc = 0;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        marks->track = i;
        if (takes(report, &trace->tracks[i]))
            rc = krait_track_walk(trace, i, report->range, add_batch, marks, report->damage,
                                  sizeof(report->damage));
    }
    return rc;
}

static int fill(const struct marks *marks, struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < marks->count; i++) {
        if (marks->items[i].count)
            krait_sheet_add(sheet, &marks->items[i]);
    }
    return sheet->failed ? -ENOMEM : 0;
}

int krait_report_marks(struct report *report, struct krait_trace *trace, struct krait_err *err)
{
    struct marks marks = { .report = report };
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns, .of = &marks, .column_count = KRAIT_ARRAY_LEN(columns) };
    int rc = krait_tracks_find(trace, err);
    if (rc)
        return rc;
    report->zero_ns = krait_trace_zero(trace);
    report->range = krait_select_range(&report->options->select, trace);
    rc = walk_all(&marks);
    rc = rc ? rc : fill(&marks, &sheet);
    rc = rc ? rc : krait_sheet_sort(&sheet, "marks", err);
    rc = rc ? rc : krait_report_sheet(report, &sheet, "marks");
    free(marks.items);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}
