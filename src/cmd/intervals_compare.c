/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals --compare`: two intervals side by side, and what can be said about their difference.
 */
#include "analysis/resample.h"
#include "base/fmt.h"
#include "base/json.h"
#include "base/suggest.h"
#include "cmd/ending.h"
#include "cmd/intervals.h"

#include <math.h>
#include <string.h>

/* One of the two. */
struct side {
    struct intervals_of *of;
    const struct krait_interval_row *row;
    const char *name, *label; /* in the table, and in sentences; owned by the comparison's arena */
};

struct comparison {
    struct intervals *intervals;
    struct krait_arena texts;
    bool is_of_recordings;
};

/* `recording`: which of two it is of; NULL: there is one. */
static int name_side(struct comparison *c, struct side *side, const char *recording)
{
    const char *key = krait_intervals_key(side->of, side->row->key);
    const char *name = krait_intervals_name(c->intervals, side->row);
    KRAIT_AUTO_BUF in_table = { 0 };
    KRAIT_AUTO_BUF in_words = { 0 };
    if (recording)
        krait_ending_whose(&in_table, recording);
    krait_buf_str(&in_table, name);
    krait_fmt_safe(&in_words, key ? key : name);
    if (recording) {
        krait_buf_str(&in_words, " in ");
        krait_fmt_safe(&in_words, recording);
    }
    if (in_table.failed || in_words.failed)
        return krait_err_set(c->intervals->err, -ENOMEM, "out of memory");
    side->name = krait_arena_strdup(&c->texts, in_table.data);
    side->label = krait_arena_strdup(&c->texts, in_words.data);
    return side->name && side->label ? 0 : krait_err_set(c->intervals->err, -ENOMEM, "out of memory");
}

/* The durations of a row, in order of time. */
static uint64_t *durations(const struct side *side)
{
    const struct krait_intervals *found = &side->of->found;
    uint64_t *ns = malloc((side->row->count + 1) * sizeof(*ns));
    size_t count = 0;
    for (size_t i = 0; i < found->count && ns; i++) {
        if (&found->rows[found->items[i].row] == side->row)
            ns[count++] = found->items[i].end_ns - found->items[i].begin_ns;
    }
    return ns;
}

/* -- in words -- */

static const char *duration(char *buf, double ns)
{
    return krait_fmt_ns(buf, (uint64_t)llround(fabs(ns)));
}

/* "between 2 us shorter and 5 us longer" */
static void say_between(struct krait_buf *out, double low, double high)
{
    char a[KRAIT_FMT_SIZE], b[KRAIT_FMT_SIZE];
    if (low < 0)
        krait_buf_fmt(out, "between %s shorter and %s longer", duration(a, low), duration(b, high));
    else
        krait_buf_fmt(out, "%s to %s", duration(a, low), duration(b, high));
}

/* "1.234 times "; nothing for once. */
static void say_times(struct krait_buf *out, double ratio)
{
    if (fabs(ratio - 1) >= 0.0005)
        krait_buf_fmt(out, "%.4g times ", ratio);
}

/* Draws of a set whose durations are mostly 0 may have the mean 0, and then no ratio: the upper end is not finite. */
static void say_ratio(struct krait_buf *out, const struct side *a, const struct side *b,
                      const struct krait_resampled *r)
{
    if (r->ratio <= 0) {
        krait_buf_fmt(out, "All intervals of %s take 0 ns: there is no ratio.\n", a->label);
        return;
    }
    krait_buf_fmt(out, "%s takes ", b->label);
    say_times(out, r->ratio);
    krait_buf_fmt(out, "as long as %s", a->label);
    if (r->is_known && !isfinite(r->ratio_high))
        krait_buf_fmt(out, ": with 95 %% confidence at least %.4g times", r->ratio_low);
    else if (r->is_known)
        krait_buf_fmt(out, ": with 95 %% confidence %.4g to %.4g times", r->ratio_low, r->ratio_high);
    krait_buf_str(out, ".\n");
}

static void say_difference(struct krait_buf *out, const struct side *b, const struct krait_resampled *r)
{
    char ns[KRAIT_FMT_SIZE];
    krait_buf_fmt(out, "On average %s takes %s longer", r->ratio > 0 ? "it" : b->label,
                  duration(ns, r->difference));
    if (r->is_known) {
        krait_buf_str(out, ": with 95 % confidence ");
        say_between(out, r->difference_low, r->difference_high);
    }
    krait_buf_str(out, ".\n");
}

static bool is_few(const struct side *side)
{
    return side->row->count < KRAIT_RESAMPLE_LEAST;
}

/* The one with the greater mean is `b`. */
static void say(struct krait_buf *out, const struct side *a, const struct side *b,
                const struct krait_resampled *r)
{
    if (!a->row->count || !b->row->count) {
        krait_buf_fmt(out, "%s has no interval: there is nothing to compare.\n",
                      a->row->count ? b->label : a->label);
        return;
    }
    say_ratio(out, a, b, r);
    say_difference(out, b, r);
    if (a->row->median_ns)
        krait_buf_fmt(out, "The ratio of the medians is %.4g.\n",
                      (double)b->row->median_ns / (double)a->row->median_ns);
    if (is_few(a) || is_few(b))
        krait_buf_fmt(
            out,
            "There are fewer than %d intervals on a side: too few to tell whether that is more than "
            "chance.\n",
            KRAIT_RESAMPLE_LEAST);
    else if (r->is_known && r->ratio_low <= 1)
        krait_buf_str(out, "That may be chance: more intervals would tell.\n");
}

static void say_limits(const struct comparison *c, struct krait_buf *out)
{
    krait_buf_str(
        out,
        c->is_of_recordings
            ? "This compares two recordings; only more recordings can tell whether others give the same "
              "result.\n"
            : "This holds for these intervals. Only more runs show whether another run gives the same.\n");
}

/* -- in JSON and CSV -- */

/* NAN: it is not known. */
enum { RATIO, RATIO_LOW, RATIO_HIGH, DIFFERENCE, DIFFERENCE_LOW, DIFFERENCE_HIGH, NUMBERS };

static const char *const number_keys[NUMBERS] = {
    "ratio", "ratio_low", "ratio_high", "difference_ns", "difference_low_ns", "difference_high_ns"
};

static void fill_numbers(double numbers[NUMBERS], const struct side *a, const struct side *b,
                         const struct krait_resampled *r)
{
    bool any = a->row->count && b->row->count;
    const double all[NUMBERS] = { r->ratio,      r->ratio_low,      r->ratio_high,
                                  r->difference, r->difference_low, r->difference_high };
    for (int i = 0; i < NUMBERS; i++) {
        bool is_told = i == DIFFERENCE ? any : i == RATIO ? r->ratio > 0 : r->is_known;
        numbers[i] = is_told && isfinite(all[i]) ? all[i] : NAN;
    }
}

static void add_json(struct krait_buf *out, const struct side *a, const struct side *b,
                     const struct krait_resampled *r)
{
    double numbers[NUMBERS];
    fill_numbers(numbers, a, b, r);
    krait_json_item(out, "{");
    krait_json_key_text(out, "first", a->label);
    krait_json_key_text(out, "second", b->label);
    for (size_t i = 0; i < NUMBERS; i++) {
        krait_json_key(out, number_keys[i]);
        if (isnan(numbers[i]))
            krait_buf_str(out, "null");
        else
            krait_buf_fmt(out, "%.9g", numbers[i]);
    }
    krait_buf_char(out, '}');
}

/* A row of CSV; the second of a pair has what it is compared with. */
struct compared_row {
    struct intervals_row row; /* first, for the columns of all tables */
    const char *with;
    double numbers[NUMBERS];
};

static struct krait_sheet_cell get_compared(void *of, const void *row, size_t i)
{
    return krait_sheet_real(((const struct compared_row *)row)->numbers[i]);
}

/* The columns of all tables, and those of the comparison behind. */
static int add_columns(struct comparison *c, struct krait_sheet *sheet)
{
    uint32_t count = sheet->column_count;
    struct krait_sheet_column *all = krait_arena_alloc(&c->texts, (count + NUMBERS + 1) * sizeof(*all));
    if (!all)
        return krait_err_set(c->intervals->err, -ENOMEM, "out of memory");
    memcpy(all, sheet->columns, count * sizeof(*all));
    all[count++] = (struct krait_sheet_column){ .key = "compared_with",
                                                .kind = KRAIT_SHEET_NAME,
                                                .flags = KRAIT_SHEET_DATA,
                                                .get = krait_sheet_name_at,
                                                .arg = offsetof(struct compared_row, with) };
    for (size_t i = 0; i < NUMBERS; i++)
        all[count++] = (struct krait_sheet_column){ .key = number_keys[i],
                                                    .kind = KRAIT_SHEET_REAL,
                                                    .flags = KRAIT_SHEET_DATA,
                                                    .get = get_compared,
                                                    .arg = i };
    sheet->columns = all;
    sheet->column_count = count;
    return 0;
}

/* -- both -- */

static int resample(struct krait_resampled *r, const struct side *a, const struct side *b)
{
    KRAIT_AUTO_FREE uint64_t *first = durations(a);
    KRAIT_AUTO_FREE uint64_t *second = durations(b);
    return first && second ? krait_resample(r, first, a->row->count, second, b->row->count) : -ENOMEM;
}

static int compare_pair(struct comparison *c, const struct side sides[2], struct krait_buf *out)
{
    struct krait_resampled r;
    bool json = c->intervals->options->json;
    bool is_less =
        !json && sides[1].row->mean_ns < sides[0].row->mean_ns; /* people are told of the longer one */
    const struct side *a = &sides[is_less], *b = &sides[!is_less];
    int rc = resample(&r, a, b);
    if (!rc && json)
        add_json(out, a, b, &r);
    else if (!rc)
        say(out, a, b, &r);
    return rc;
}

/* Two rows of the sheet. */
static int add_pair(struct krait_sheet *sheet, const struct side sides[2], bool is_compared)
{
    struct krait_resampled r;
    int rc = is_compared ? resample(&r, &sides[0], &sides[1]) : 0;
    for (int i = 0; i < 2 && !rc; i++) {
        const char *key = krait_intervals_key(sides[i].of, sides[i].row->key);
        struct compared_row row = { .row = { *sides[i].row, sides[i].name, key } };
        for (int k = 0; k < NUMBERS; k++)
            row.numbers[k] = NAN;
        if (i && is_compared) {
            row.with = sides[0].label;
            fill_numbers(row.numbers, &sides[0], &sides[1], &r);
        }
        krait_sheet_add(sheet, &row);
    }
    return rc;
}

/* Pairs of sides: the rows in a table, then each pair in words; or all in JSON. */
static int show_pairs(struct comparison *c, const struct side (*pairs)[2], uint32_t count)
{
    struct intervals *intervals = c->intervals;
    struct krait_buf *out = &intervals->out;
    bool json = intervals->options->json, csv = intervals->options->csv;
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = krait_intervals_sheet(intervals);
    int rc = csv ? add_columns(c, &sheet) : 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = add_pair(&sheet, pairs[i], csv);
    rc = rc == -ENOMEM ? krait_err_set(intervals->err, rc, "out of memory")
                       : krait_intervals_print(intervals, &sheet, NULL, "rows");
    if (rc || csv)
        return rc;
    if (json)
        krait_json_key_open(out, "compare", '[');
    for (uint32_t i = 0; i < count && !rc; i++) {
        krait_buf_str(out, json ? "" : "\n");
        rc = compare_pair(c, pairs[i], out);
    }
    if (json)
        krait_buf_char(out, ']');
    else
        say_limits(c, out);
    return rc == -ENOMEM ? krait_err_set(intervals->err, rc, "out of memory") : rc;
}

/* -- two rows of one trace -- */

/* The key that is meant, of intervals whose rows are not by key; NULL: none is near. */
static const char *nearest_key(const struct intervals *intervals, const char *name)
{
    const struct krait_intervals *found = &intervals->of.found;
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    KRAIT_AUTO_FREE bool *is_tried = calloc((size_t)found->keys.len + 1, sizeof(*is_tried));
    for (size_t i = 0; i < found->count && is_tried; i++) {
        uint32_t key = found->items[i].key;
        if (key == KRAIT_NO_ID || is_tried[key] || found->rows[found->items[i].row].key != KRAIT_NO_ID)
            continue;
        is_tried[key] = true;
        krait_suggest_try(&suggest, found->keys.texts[key]);
    }
    return suggest.best;
}

static int refuse_name(const struct intervals *intervals, const char *name, const char *near)
{
    const char *or_key = intervals->options->by ? " or key" : "", *key = nearest_key(intervals, name);
    if (key && strcmp(key, name) == 0)
        return krait_err_set(
            intervals->err, -ENOENT,
            "--compare: '%s' is a key, and no interval has that name; add --by key for a row for each key",
            name);
    if (near)
        return krait_err_set(intervals->err, -ENOENT,
                             "--compare: no interval has the name%s '%s'; did you mean '%s'?", or_key, name,
                             near);
    if (key)
        return krait_err_set(
            intervals->err, -ENOENT,
            "--compare: no interval has the name '%s'; did you mean the key '%s', with --by key?", name, key);
    return krait_err_set(
        intervals->err, -ENOENT,
        "--compare: no interval has the name%s '%s'; without --compare, krait intervals lists all", or_key,
        name);
}

static int find_row(struct comparison *c, const char *name, struct side *side)
{
    struct intervals *intervals = c->intervals;
    const struct krait_intervals *found = &intervals->of.found;
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    *side = (struct side){ .of = &intervals->of };
    for (uint32_t i = 0; i < found->row_count && !side->row; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[found->rows[i].rule];
        const char *of[] = { rule->name, krait_intervals_key(&intervals->of, found->rows[i].key),
                             rule->kind == KRAIT_RULE_CALLS ? rule->given[0] : NULL };
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(of); k++) {
            if (of[k] && found->rows[i].count)
                krait_suggest_try(&suggest, of[k]);
            if (of[k] && strcmp(name, of[k]) == 0)
                side->row = &found->rows[i];
        }
    }
    return side->row ? name_side(c, side, NULL) : refuse_name(intervals, name, suggest.best);
}

static int compare_rows(struct comparison *c)
{
    struct side pair[1][2];
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = find_row(c, c->intervals->options->compare[i], &pair[0][i]);
    if (!rc && pair[0][0].row == pair[0][1].row)
        return krait_err_set(c->intervals->err, -EINVAL, "--compare: '%s' and '%s' are the same intervals",
                             c->intervals->options->compare[0], c->intervals->options->compare[1]);
    return rc ? rc : show_pairs(c, (const struct side(*)[2])pair, 1);
}

/* -- two recordings -- */

/* The row that another recording has of the same rule and key. */
static const struct krait_interval_row *same_row(const struct intervals_of *of,
                                                 const struct intervals_of *other,
                                                 const struct krait_interval_row *row)
{
    const char *key = krait_intervals_key(other, row->key);
    for (uint32_t i = 0; i < of->found.row_count; i++) {
        const struct krait_interval_row *own = &of->found.rows[i];
        const char *own_key = krait_intervals_key(of, own->key);
        if (own->rule == row->rule && (key ? own_key && strcmp(key, own_key) == 0 : !own_key))
            return own;
    }
    return NULL;
}

/* Those rows that both have. */
static int pair_rows(struct comparison *c, struct intervals_of of[2])
{
    const char *const *paths = c->intervals->options->compare;
    KRAIT_AUTO_FREE struct side(*pairs)[2] = calloc((size_t)of[0].found.row_count + 1, sizeof(*pairs));
    uint32_t count = 0;
    if (!pairs)
        return krait_err_set(c->intervals->err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < of[0].found.row_count; i++) {
        struct side *pair = pairs[count];
        pair[0] = (struct side){ .of = &of[0], .row = &of[0].found.rows[i] };
        pair[1] = (struct side){ .of = &of[1], .row = same_row(&of[1], &of[0], pair[0].row) };
        if (!pair[1].row)
            continue;
        for (int k = 0; k < 2; k++) {
            int rc = name_side(c, &pair[k], paths[k]);
            if (rc)
                return rc;
        }
        count++;
    }
    if (!count)
        return krait_err_set(c->intervals->err, -ENODATA, "the recordings have no key in common");
    return show_pairs(c, (const struct side(*)[2])pairs, count);
}

/* Lines for stderr from `from` on, each with the recording that it is about. */
static int name_notes(struct intervals *intervals, size_t from, const char *path)
{
    struct krait_buf *notes = &intervals->notes;
    KRAIT_AUTO_BUF named = { 0 };
    for (size_t at = from, n; at < notes->len; at += n) {
        const char *end = memchr(notes->data + at, '\n', notes->len - at);
        n = end ? (size_t)(end + 1 - notes->data) - at : notes->len - at;
        krait_ending_whose(&named, path);
        krait_buf_add(&named, notes->data + at, n);
    }
    notes->len = KRAIT_MIN(notes->len, from);
    krait_buf_add(notes, named.data ? named.data : "", named.len);
    return named.failed || notes->failed ? krait_err_set(intervals->err, -ENOMEM, "out of memory") : 0;
}

/* One of the two, and what it does not have. */
static int read_recording(struct intervals *intervals, struct intervals_of *of, const char *const *path)
{
    size_t from = intervals->notes.len;
    int rc = krait_intervals_read(intervals, of, path, 1);
    if (rc)
        return rc;
    krait_intervals_note_nothing(intervals, of);
    return name_notes(intervals, from, *path);
}

static int compare_recordings(struct comparison *c)
{
    struct intervals *intervals = c->intervals;
    struct intervals_of of[2] = { 0 };
    bool json = intervals->options->json;
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = read_recording(intervals, &of[i], &intervals->options->compare[i]);
    if (json)
        krait_buf_char(&intervals->out, '{');
    rc = rc ? rc : pair_rows(c, of);
    krait_buf_str(&intervals->out, json ? "}\n" : "");
    for (int i = 0; i < 2 && !rc && !json && !intervals->options->csv; i++) {
        KRAIT_AUTO_BUF whose = { 0 };
        krait_ending_whose(&whose, intervals->options->compare[i]);
        krait_intervals_note_missing(intervals, &of[i], whose.data ? whose.data : "");
    }
    for (int i = 0; i < 2; i++)
        krait_intervals_of_done(&of[i]);
    return rc;
}

int krait_intervals_compare(struct intervals *intervals)
{
    struct comparison c = { .intervals = intervals, .is_of_recordings = !intervals->of.trace };
    int rc = c.is_of_recordings ? compare_recordings(&c) : compare_rows(&c);
    krait_arena_done(&c.texts);
    return rc;
}
