/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --diff`: the columns, and what is printed of a comparison.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report_diff.h"

#include <math.h>
#include <string.h>

/* By enum krait_profile_by, those that krait_report_check_diff lets through. */
static const char *const rows_are[] = { "function", "module", "file" };

/* -- numbers -- */

static const char *number_text(const struct diff *d, char buf[KRAIT_FMT_SIZE], double x)
{
    uint64_t n = (uint64_t)llround(fabs(x));
    return d->counts ? krait_fmt_count(buf, n) : krait_fmt_ns(buf, n);
}

static void number_cell(const struct diff *d, struct krait_table *table, double x, const char *sign,
                        enum krait_style style)
{
    char text[KRAIT_FMT_SIZE], both[KRAIT_FMT_SIZE + 8];
    if (!d->counts) {
        krait_cell_change_ns(table, sign, (uint64_t)llround(fabs(x)), style);
        return;
    }
    snprintf(both, sizeof(both), "%s%s", sign, number_text(d, text, x));
    krait_table_cell(table, both, style, 0);
}

static const char *sign_of(double x)
{
    return x > 0 ? "+" : x < 0 ? "-" : "";
}

/* "KeyError 1 -> 3, ValueError 2 -> 0": what changed most first. */
static void types_text(const struct diff *d, struct krait_buf *text, uint32_t row)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE];
    for (uint32_t i = 0; i < d->rows[row].type_count; i++) {
        const struct diff_type *type = &d->types[d->rows[row].first_type + i];
        krait_buf_str(text, i ? ", " : "");
        krait_fmt_safe(text, type->type);
        krait_buf_fmt(text, " %s -> %s", number_text(d, before, type->numbers[0]),
                      number_text(d, after, type->numbers[1]));
    }
}

/* -- columns -- */

/* A row on its way into a table. */
struct diff_spot {
    const struct diff *diff;
    struct krait_table *table;
    uint32_t row;
    const struct krait_change *change;
};

enum diff_kind { NUMBER, YES_OR_NO };
enum diff_when { ALWAYS = 0, OF_REPEATS, OF_EXCEPTIONS };

/* All there is to say of a column, in the order of tables, and of JSON and CSV. */
struct diff_column {
    struct krait_column column; /* title NULL: not in tables */
    void (*add)(const struct diff_spot *at, double value);
    enum diff_when when;
    const char *key;                             /* in JSON and CSV; NULL: tables alone have it */
    double (*get)(const struct krait_change *c); /* the number; NULL: the column has none */
    enum diff_kind kind;
};

static double get_before(const struct krait_change *c)
{
    return c->before;
}

static double get_after(const struct krait_change *c)
{
    return c->after;
}

static double get_change(const struct krait_change *c)
{
    return c->after - c->before;
}

static double get_low(const struct krait_change *c)
{
    return c->low;
}

static double get_high(const struct krait_change *c)
{
    return c->high;
}

static double get_margin(const struct krait_change *c)
{
    return (c->high - c->low) / 2;
}

static double get_certain(const struct krait_change *c)
{
    return c->certain;
}

/* What changed beyond chance stands out. */
static enum krait_style style_of(const struct krait_change *c)
{
    return !c->certain ? KRAIT_STYLE_NONE : c->after > c->before ? KRAIT_STYLE_HOT : KRAIT_STYLE_BOLD;
}

static void plain_cell(const struct diff_spot *at, double value)
{
    number_cell(at->diff, at->table, value, "", KRAIT_STYLE_NONE);
}

static void change_cell(const struct diff_spot *at, double value)
{
    number_cell(at->diff, at->table, value, sign_of(value), style_of(at->change));
}

static void margin_cell(const struct diff_spot *at, double value)
{
    number_cell(at->diff, at->table, value, "", KRAIT_STYLE_DIM);
}

static void certain_cell(const struct diff_spot *at, double value)
{
    krait_table_cell(at->table, value > 0 ? "yes" : "no", style_of(at->change), 0);
}

static void share_cell(const struct diff_spot *at, double change)
{
    const struct krait_change *c = at->change;
    char text[KRAIT_FMT_SIZE];
    if (c->before <= 0)
        snprintf(text, sizeof(text), change > 0 ? "new" : "-");
    else if (c->after <= 0)
        snprintf(text, sizeof(text), "gone");
    else
        snprintf(text, sizeof(text), "%+.1f%%", 100 * change / c->before);
    krait_table_cell(at->table, text, KRAIT_STYLE_NONE, 0);
}

static void name_cell(const struct diff_spot *at, double none)
{
    const struct diff *d = at->diff;
    const struct diff_row *row = &d->rows[at->row];
    KRAIT_AUTO_BUF name = { 0 };
    size_t bright = 0;
    krait_func_row_label(&name, d->report->by == KRAIT_BY_FUNCTION ? row->module : "", row->name, row->kind,
                         &bright);
    krait_func_row_mark(&name, row->holds_dropped, &bright);
    krait_table_cell(at->table, name.data ? name.data : "",
                     row->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
}

static void types_cell(const struct diff_spot *at, double none)
{
    KRAIT_AUTO_BUF text = { 0 };
    types_text(at->diff, &text, at->row);
    krait_table_cell(at->table, text.len ? text.data : "", KRAIT_STYLE_NONE, 0);
}

enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

static const struct diff_column columns[] = {
    { { "before", 0, 0, 2 }, plain_cell, ALWAYS, "before", get_before, NUMBER },
    { { "after", 0, 0, 0 }, plain_cell, ALWAYS, "after", get_after, NUMBER },
    { { "change", 0, 0, 0 }, change_cell, ALWAYS, "change", get_change, NUMBER },
    { { NULL, 0, 0, 0 }, NULL, OF_REPEATS, "low", get_low, NUMBER },
    { { NULL, 0, 0, 0 }, NULL, OF_REPEATS, "high", get_high, NUMBER },
    { { "+/-", 0, 0, 1 }, margin_cell, OF_REPEATS, NULL, get_margin, NUMBER },
    { { "beyond chance", 0, 0, 0 }, certain_cell, OF_REPEATS, "certain", get_certain, YES_OR_NO },
    { { "change%", 0, 0, 3 }, share_cell, ALWAYS, NULL, get_change, NUMBER },
    { { "function", SHORTEN, 24, 0 }, name_cell, ALWAYS, NULL, NULL, NUMBER },
    { { "exceptions", SHORTEN, 14, 0 }, types_cell, OF_EXCEPTIONS, NULL, NULL, NUMBER },
};

/* -- the table -- */

/* Which columns the table has, into `chosen`; returns how many. */
static uint32_t choose_columns(const struct diff *d, struct krait_column *mine,
                               const struct diff_column **chosen)
{
    const bool present[] = { [ALWAYS] = true, [OF_REPEATS] = d->all.known, [OF_EXCEPTIONS] = d->raised };
    uint32_t n = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        if (!columns[i].column.title || !present[columns[i].when])
            continue;
        chosen[n] = &columns[i];
        mine[n] = columns[i].column;
        if (columns[i].add == name_cell)
            mine[n].title = rows_are[d->report->by];
        n++;
    }
    return n;
}

static int put_table(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_column mine[KRAIT_ARRAY_LEN(columns)];
    const struct diff_column *chosen[KRAIT_ARRAY_LEN(columns)];
    uint32_t n = choose_columns(d, mine, chosen);
    struct krait_table *table;
    if (krait_table_new(&table, mine, n))
        return -ENOMEM;
    for (uint32_t i = 0; i < shown; i++) {
        const struct diff_spot at = { d, table, order[i], &d->changes[order[i]] };
        for (uint32_t k = 0; k < n; k++)
            chosen[k]->add(&at, chosen[k]->get ? chosen[k]->get(at.change) : 0);
    }
    int rc = krait_table_print(table, &d->report->look, &d->report->out);
    krait_table_free(table);
    return rc;
}

/* -- for programs -- */

static const char *measure(const struct diff *d)
{
    return d->raised ? "raised" : d->counts ? "calls" : krait_diff_is_on_cpu(d) ? "on_cpu_ns" : "wall_ns";
}

static void json_number(struct krait_buf *out, const char *key, double x, bool known)
{
    krait_json_key(out, key);
    if (known)
        krait_buf_fmt(out, "%.1f", x);
    else
        krait_buf_str(out, "null");
}

static void json_change(struct krait_buf *out, const struct krait_change *c)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        const struct diff_column *column = &columns[i];
        bool known = column->when == ALWAYS || c->known;
        if (!column->key)
            continue;
        if (column->kind == NUMBER || !known)
            json_number(out, column->key, column->get(c), known);
        else
            krait_json_key_bool(out, column->key, column->get(c) > 0);
    }
}

static void json_each(struct krait_buf *out, const char *key, const double *numbers, uint32_t count)
{
    krait_json_key(out, key);
    for (uint32_t i = 0; i < count; i++)
        krait_buf_fmt(out, "%s%.0f", i ? "," : "[", numbers[i]);
    krait_buf_char(out, ']');
}

static void json_types(const struct diff *d, struct krait_buf *out, const struct diff_row *row)
{
    krait_json_key_open(out, "exceptions", '{');
    for (uint32_t i = 0; i < row->type_count; i++) {
        const struct diff_type *type = &d->types[row->first_type + i];
        krait_json_key_open(out, type->type, '{');
        json_number(out, "before", type->numbers[0], true);
        json_number(out, "after", type->numbers[1], true);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, '}');
}

static void put_json(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_buf *out = &d->report->out;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "measure", measure(d));
    krait_json_key_u64(out, "recordings_before", d->before);
    krait_json_key_u64(out, "recordings_after", d->recordings - d->before);
    krait_json_key(out, "confidence");
    krait_buf_fmt(out, "%g", KRAIT_COMPARE_CONFIDENCE);
    if (krait_diff_has_sum(d)) {
        krait_json_key_open(out, "all", '{');
        json_change(out, &d->all);
        krait_buf_char(out, '}');
    }
    krait_json_key_open(out, "functions", '[');
    for (uint32_t i = 0; i < shown; i++) {
        const struct diff_row *row = &d->rows[order[i]];
        const double *numbers = row->numbers[krait_diff_is_on_cpu(d)];
        krait_json_item(out, "\n{");
        krait_func_row_json(out, KRAIT_FUNC_ROW(row));
        json_change(out, &d->changes[order[i]]);
        if (d->raised)
            json_types(d, out, row);
        json_each(out, "each_before", numbers, d->before);
        json_each(out, "each_after", numbers + d->before, d->recordings - d->before);
        krait_func_row_json_holds(out, row->holds_dropped);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    krait_json_key_open(out, "recordings", '[');
    krait_buf_add(out, d->each.data, d->each.len);
    krait_buf_str(out, "]}\n");
    out->failed |= d->each.failed;
}

/* Each with its comma before it; NULL: the names. */
static void csv_change(struct krait_buf *out, const struct krait_change *c)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(columns); i++) {
        const struct diff_column *column = &columns[i];
        if (!column->key)
            continue;
        krait_buf_char(out, ',');
        if (!c)
            krait_buf_str(out, column->key);
        else if (column->when != ALWAYS && !c->known)
            continue;
        else if (column->kind == NUMBER)
            krait_buf_fmt(out, "%.1f", column->get(c));
        else
            krait_buf_str(out, column->get(c) > 0 ? "true" : "false");
    }
}

static void csv_types(const struct diff *d, struct krait_buf *out, uint32_t row)
{
    KRAIT_AUTO_BUF text = { 0 };
    types_text(d, &text, row);
    krait_buf_char(out, ',');
    krait_csv_cstr(out, text.data ? text.data : "");
    out->failed |= text.failed;
}

static void put_csv(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_buf *out = &d->report->out;
    krait_func_row_csv(out, NULL);
    krait_buf_str(out, ",measure");
    csv_change(out, NULL);
    krait_func_row_csv_holds(out, NULL);
    krait_buf_str(out, d->raised ? ",exceptions\n" : "\n");
    for (uint32_t i = 0; i < shown; i++) {
        const struct diff_row *row = &d->rows[order[i]];
        krait_func_row_csv(out, &KRAIT_FUNC_ROW(row));
        krait_buf_fmt(out, ",%s", measure(d));
        csv_change(out, &d->changes[order[i]]);
        krait_func_row_csv_holds(out, &KRAIT_FUNC_ROW(row));
        if (d->raised)
            csv_types(d, out, order[i]);
        krait_buf_char(out, '\n');
    }
}

int krait_diff_print(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    if (d->report->format == REPORT_TABLE)
        return shown ? put_table(d, order, shown) : 0;
    if (d->report->format == REPORT_JSON)
        put_json(d, order, shown);
    else
        put_csv(d, order, shown);
    return 0;
}

/* -- in words -- */

static void note_recordings(const struct diff *d, struct krait_buf *notes)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE];
    krait_buf_fmt(notes, "%s before, %s after; ", krait_fmt_counted(before, d->before, "recording"),
                  krait_fmt_counted(after, d->recordings - d->before, "recording"));
    if (d->raised)
        krait_buf_str(notes, "how often exceptions left each is compared\n");
    else if (d->counts)
        krait_buf_str(notes, "calls of each are compared\n");
    else if (krait_diff_is_on_cpu(d))
        krait_buf_str(notes, "time on the CPU is compared\n");
    else
        krait_buf_fmt(notes,
                      "comparing wall time, waits included: only %u of %u recordings %s on-CPU time "
                      "(krait record --kernel)\n",
                      d->clocked, d->recordings, d->clocked == 1 ? "has" : "have");
}

static const char *thing(const struct diff *d)
{
    return d->counts ? "calls" : krait_diff_is_on_cpu(d) ? "time on the CPU" : "wall time of all threads";
}

static void note_all(const struct diff *d, struct krait_buf *notes)
{
    char a[KRAIT_FMT_SIZE], b[KRAIT_FMT_SIZE], c[KRAIT_FMT_SIZE];
    double change = d->all.after - d->all.before;
    krait_buf_fmt(notes, "in all%s: %s %s before and %s after, ", d->report->filter ? " that match" : "",
                  thing(d), number_text(d, a, d->all.before), number_text(d, b, d->all.after));
    if (change == 0)
        krait_buf_str(notes, "the same");
    else
        krait_buf_fmt(notes, "%s %s", number_text(d, c, change), change > 0 ? "more" : "less");
    if (change != 0 && d->all.before > 0)
        krait_buf_fmt(notes, " (%+.1f%%)", 100 * change / d->all.before);
    if (d->all.known && change != 0)
        krait_buf_fmt(notes, "; with %.0f%% confidence the change is between %s%s and %s%s%s",
                      100 * KRAIT_COMPARE_CONFIDENCE, sign_of(d->all.low), number_text(d, a, d->all.low),
                      sign_of(d->all.high), number_text(d, b, d->all.high),
                      d->all.certain ? "" : ": it may be chance");
    krait_buf_char(notes, '\n');
}

static void note_functions(const struct diff *d, struct krait_buf *notes)
{
    char compared[KRAIT_FMT_SIZE], certain[KRAIT_FMT_SIZE];
    const char *row = rows_are[d->report->by];
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->count; i++)
        n += d->changes[i].certain;
    if (!d->all.known)
        krait_buf_str(notes,
                      "one recording cannot tell a change from chance: record each side several times, as in "
                      "krait report new1 new2 new3 --diff old1 --diff old2 --diff old3\n");
    else if (!n)
        krait_buf_fmt(notes, "of %s, none changed beyond chance; more recordings tell smaller changes\n",
                      krait_fmt_counted(compared, d->count, row));
    else
        krait_buf_fmt(notes, "of %s, %s changed beyond chance\n", krait_fmt_counted(compared, d->count, row),
                      krait_fmt_count(certain, n));
    if (d->all.known && d->count > 1 && d->report->format == REPORT_TABLE)
        krait_buf_fmt(
            notes,
            "beyond chance: of many %ss some change by chance alone, so each is judged among all %u; a "
            "change larger than its +/- may be 'no', and one 'yes' in twenty is chance still\n",
            row, d->count);
    if (d->governed)
        krait_buf_str(
            notes,
            "some recordings were made with --max-overhead, which dropped functions or paused: changes may "
            "come from that\n");
}

void krait_diff_note(const struct diff *d)
{
    struct krait_buf *notes = &d->report->notes;
    if (!d->count && d->raised && !d->report->exception) {
        krait_buf_str(notes, "no function was left by an exception\n");
    } else if (!d->count) {
        krait_report_note_nothing(d->report);
    } else {
        note_recordings(d, notes);
        if (krait_diff_has_sum(d))
            note_all(d, notes);
        note_functions(d, notes);
    }
    krait_buf_add(notes, d->missing.data, d->missing.len);
    notes->failed |= d->missing.failed;
}
