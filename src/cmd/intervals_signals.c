/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals --signal`: the tables of numbers that messages have.
 */
#include "cmd/intervals.h"

#include <math.h>

struct signal_row {
    struct krait_signal_row row;
    const char *name, *key;
};

#define REAL(member)  krait_sheet_real_at, offsetof(struct signal_row, row.member)
#define COUNT(member) krait_sheet_number_at, offsetof(struct signal_row, row.member)

static const struct krait_sheet_column row_columns[] = {
    { { "values", 0, 0, 0 }, "values", KRAIT_SHEET_COUNT, 0, COUNT(count) },
    { { "total", 0, 0, 4 }, "total", KRAIT_SHEET_REAL, 0, REAL(total) },
    { { "min", 0, 0, 2 }, "min", KRAIT_SHEET_REAL, 0, REAL(min) },
    { { "mean", 0, 0, 0 }, "mean", KRAIT_SHEET_REAL, 0, REAL(mean) },
    { { "median", 0, 0, 0 }, "median", KRAIT_SHEET_REAL, 0, REAL(median) },
    { { "p90", 0, 0, 4 }, "p90", KRAIT_SHEET_REAL, 0, REAL(p90) },
    { { "p99", 0, 0, 1 }, "p99", KRAIT_SHEET_REAL, 0, REAL(p99) },
    { { "max", 0, 0, 0 }, "max", KRAIT_SHEET_REAL, 0, REAL(max) },
    { { "std dev", 0, 0, 2 }, "deviation", KRAIT_SHEET_REAL, 0, REAL(deviation) },
    { { "last", 0, 0, 3 }, "last", KRAIT_SHEET_REAL, 0, REAL(last) },
    { { "per second", 0, 0, 5 }, "per_s", KRAIT_SHEET_REAL, 0, REAL(per_s) },
    { { "no number", 0, 0, 0 },
      "no_number",
      KRAIT_SHEET_COUNT,
      KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH,
      COUNT(no_number) },
    { { "no key", 0, 0, 0 },
      "no_key",
      KRAIT_SHEET_COUNT,
      KRAIT_SHEET_QUIET | KRAIT_SHEET_DASH,
      COUNT(no_key) },
    INTERVALS_NAME_COLUMNS(struct signal_row, name, key),
};

#undef REAL
#undef COUNT

static bool have_keys(const struct intervals *intervals)
{
    bool have = false;
    for (uint32_t i = 0; i < intervals->rules.count; i++)
        have |= intervals->rules.items[i].kind == KRAIT_RULE_SIGNAL && intervals->rules.items[i].by_key;
    return have;
}

int krait_signals_table(struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = row_columns,
                                 .column_count = KRAIT_ARRAY_LEN(row_columns) - !have_keys(intervals) };
    for (uint32_t i = 0; i < found->signal_count; i++) {
        struct signal_row row = { found->signals[i], intervals->rules.items[found->signals[i].rule].name,
                                  krait_intervals_key(&intervals->of, found->signals[i].key) };
        struct krait_signal_row *of = &row.row;
        if (!of->count)
            of->min = of->mean = of->median = of->p90 = of->p99 = of->max = of->last = NAN;
        of->deviation = of->count > 1 ? of->deviation : NAN;
        of->per_s = of->end_ns > of->begin_ns ? of->per_s : NAN;
        krait_sheet_add(&sheet, &row);
    }
    return krait_intervals_print(intervals, &sheet, NULL, "signals");
}

/* -- each number -- */

struct listed {
    uint64_t t_ns; /* after the trace's begin */
    double value;
    struct intervals_place place;
};

static const struct krait_sheet_column list_columns[] = {
    { { "time", 0, 0, 0 },
      "t_ns",
      KRAIT_SHEET_TIME,
      0,
      krait_sheet_number_at,
      offsetof(struct listed, t_ns) },
    { { "value", 0, 0, 0 },
      "value",
      KRAIT_SHEET_REAL,
      0,
      krait_sheet_real_at,
      offsetof(struct listed, value) },
    INTERVALS_PLACE_COLUMNS(struct listed),
};

int krait_signals_list(struct intervals *intervals)
{
    const struct krait_intervals *found = &intervals->of.found;
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = list_columns, .column_count = KRAIT_ARRAY_LEN(list_columns) };
    for (size_t i = 0; i < found->sample_count && !sheet.failed; i++) {
        const struct krait_sample *sample = &found->samples[i];
        const struct krait_track *track = krait_intervals_track(&intervals->of, sample->track);
        const uint64_t zero_ns = intervals->of.zero_ns;
        krait_sheet_add(&sheet,
                        &(struct listed){
                            .t_ns = sample->t_ns - KRAIT_MIN(zero_ns, sample->t_ns),
                            .value = sample->value,
                            .place = krait_intervals_place(
                                &intervals->of, track,
                                intervals->rules.items[found->signals[sample->row].rule].name, sample->key),
                        });
    }
    return krait_intervals_print(intervals, &sheet, "t_ns", "values");
}
