/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --diff`: the columns, and what is printed of a comparison.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report_diff.h"
#include "cmd/state.h"

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
static void types_text(const struct diff *d, struct krait_buf *text, const struct diff_row *row)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE];
    for (uint32_t i = 0; i < row->type_count; i++) {
        const struct diff_type *type = &d->types[row->first_type + i];
        krait_buf_str(text, i ? ", " : "");
        krait_fmt_safe(text, type->type);
        krait_buf_fmt(text, " %s -> %s", number_text(d, before, type->numbers[0]),
                      number_text(d, after, type->numbers[1]));
    }
}

/* -- numbers of a change -- */

/* What columns need besides the change, which is the row. */
struct changes {
    const struct diff *diff;
    struct krait_func_row function; /* of the cell that was got last */
};

static const struct diff *diff_of(const struct krait_sheet_spot *at)
{
    return ((const struct changes *)at->sheet->of)->diff;
}

static bool is_known(const struct krait_sheet_cell *cell)
{
    return !isnan(cell->real);
}

static void add_tenths(struct krait_buf *out, const struct krait_sheet_cell *cell,
                       void (*add_text)(struct krait_buf *out, const char *text))
{
    krait_buf_fmt(out, "%.1f", cell->real);
}

static void add_yes(struct krait_buf *out, const struct krait_sheet_cell *cell,
                    void (*add_text)(struct krait_buf *out, const char *text))
{
    krait_buf_str(out, cell->real > 0 ? "true" : "false");
}

/* What changed beyond chance stands out. */
static enum krait_style style_of(const struct krait_change *c)
{
    return !c->certain ? KRAIT_STYLE_NONE : c->after > c->before ? KRAIT_STYLE_HOT : KRAIT_STYLE_BOLD;
}

static void plain_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    number_cell(diff_of(at), table, at->cell.real, "", KRAIT_STYLE_NONE);
}

static void change_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    number_cell(diff_of(at), table, at->cell.real, sign_of(at->cell.real), style_of(at->row));
}

static void margin_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    number_cell(diff_of(at), table, at->cell.real, "", KRAIT_STYLE_DIM);
}

static void certain_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    krait_table_cell(table, at->cell.real > 0 ? "yes" : "no", style_of(at->row), 0);
}

static void share_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct krait_change *c = at->row;
    double change = at->cell.real;
    char text[KRAIT_FMT_SIZE];
    if (c->before <= 0)
        snprintf(text, sizeof(text), change > 0 ? "new" : "-");
    else if (c->after <= 0)
        snprintf(text, sizeof(text), "gone");
    else
        snprintf(text, sizeof(text), "%+.1f%%", 100 * change / c->before);
    krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

#define KIND(cell, add)                                 \
    {                                                   \
        .put = cell, .is_known = is_known, .value = add \
    }
static const struct krait_sheet_kind kind_plain = KIND(plain_cell, add_tenths),
                                     kind_change = KIND(change_cell, add_tenths),
                                     kind_certain = KIND(certain_cell, add_yes),
                                     kind_margin = { .put = margin_cell }, kind_share = { .put = share_cell };
#undef KIND

/* -- what a row is of -- */

/* Rows of changes and of what changed have the same index. */
static const struct diff_row *row_of(const struct diff *d, const void *change)
{
    return &d->rows[(const struct krait_change *)change - d->changes];
}

static void name_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct diff *d = diff_of(at);
    const struct diff_row *row = row_of(d, at->row);
    KRAIT_AUTO_BUF name = { 0 };
    size_t bright = 0;
    krait_func_row_label(&name, d->report->by == KRAIT_BY_FUNCTION ? row->module : "", row->name, row->kind,
                         &bright);
    krait_func_row_mark(&name, row->holds_dropped, &bright);
    krait_table_cell(table, name.data ? name.data : "",
                     row->kind == KRAIT_FUNC_PYTHON ? KRAIT_STYLE_NONE : KRAIT_STYLE_C, bright);
}

static void types_cell(struct krait_table *table, const struct krait_sheet_spot *at)
{
    KRAIT_AUTO_BUF text = { 0 };
    types_text(diff_of(at), &text, row_of(diff_of(at), at->row));
    krait_table_cell(table, text.len ? text.data : "", KRAIT_STYLE_NONE, 0);
}

static void types_csv(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    KRAIT_AUTO_BUF text = { 0 };
    types_text(diff_of(at), &text, row_of(diff_of(at), at->row));
    krait_csv_cstr(out, text.data ? text.data : "");
    out->failed |= text.failed;
}

static void types_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct diff *d = diff_of(at);
    const struct diff_row *row = row_of(d, at->row);
    krait_json_key_open(out, at->column->key, '{');
    for (uint32_t i = 0; i < row->type_count; i++) {
        const struct diff_type *type = &d->types[row->first_type + i];
        krait_json_key_open(out, type->type, '{');
        for (int side = 0; side < 2; side++) {
            krait_json_key(out, side ? "after" : "before");
            krait_buf_fmt(out, "%.1f", type->numbers[side]);
        }
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, '}');
}

/* The numbers of the recordings on a side: `arg` is 1 for those after. */
static void each_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct diff *d = diff_of(at);
    const double *numbers = row_of(d, at->row)->numbers[krait_diff_is_on_cpu(d)];
    uint32_t from = at->column->arg ? d->before : 0, to = at->column->arg ? d->recordings : d->before;
    krait_json_key(out, at->column->key);
    for (uint32_t i = from; i < to; i++)
        krait_buf_fmt(out, "%s%.0f", i > from ? "," : "[", numbers[i]);
    krait_buf_char(out, ']');
}

static const struct krait_sheet_kind kind_function = { .put = name_cell, KRAIT_SHEET_FUNCTION },
                                     kind_types = { .put = types_cell, .csv = types_csv, .json = types_json },
                                     kind_each = { .json = each_json };

/* -- columns -- */

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

GETTER(change)
{
    const struct krait_change *c = row;
    return krait_sheet_real(c->after - c->before);
}

/* Of several recordings alone. */
GETTER(repeated)
{
    const struct krait_change *c = row;
    return c->known ? krait_sheet_real_at(of, row, arg) : krait_sheet_real(NAN);
}

GETTER(margin)
{
    const struct krait_change *c = row;
    return krait_sheet_real((c->high - c->low) / 2);
}

GETTER(certain)
{
    const struct krait_change *c = row;
    return krait_sheet_real(c->known ? c->certain : NAN);
}

GETTER(function)
{
    struct changes *changes = of;
    changes->function = KRAIT_FUNC_ROW(row_of(changes->diff, row));
    return krait_sheet_object(&changes->function);
}

GETTER(holds)
{
    return krait_sheet_number(row_of(((struct changes *)of)->diff, row)->holds_dropped);
}

static const char *measure(const struct diff *d)
{
    return d->raised ? "raised" : d->counts ? "calls" : krait_diff_is_on_cpu(d) ? "on_cpu_ns" : "wall_ns";
}

GETTER(measure)
{
    return krait_sheet_name(measure(((struct changes *)of)->diff));
}

#undef GETTER

enum {
    ALWAYS = 0,
    OF_REPEATS,
    OF_EXCEPTIONS,
    OF_ROWS,
    NEVER
}; /* when a column is there; OF_ROWS: not of the sum */
enum { SHORTEN = KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN };

static const struct report_column columns[] = {
#define PLACE      KRAIT_SHEET_PLACE
#define OF(member) offsetof(struct krait_change, member)
#define DATA(key, kind, flags, get, arg, given)                                   \
    {                                                                             \
        { { NULL, 0, 0, 0 }, key, kind, flags, get, arg }, 0, NEVER, given, false \
    }
    { { { "before", 0, 0, 2 }, "before", &kind_plain, PLACE(2), krait_sheet_real_at, OF(before) },
      0,
      ALWAYS,
      ALWAYS,
      false },
    { { { "after", 0, 0, 0 }, "after", &kind_plain, PLACE(3), krait_sheet_real_at, OF(after) },
      0,
      ALWAYS,
      ALWAYS,
      false },
    { { { "change", 0, 0, 0 }, "change", &kind_change, PLACE(4), get_change, 0 }, 0, ALWAYS, ALWAYS, false },
    DATA("low", &kind_plain, PLACE(5), get_repeated, OF(low), ALWAYS),
    DATA("high", &kind_plain, PLACE(6), get_repeated, OF(high), ALWAYS),
    { { { "+/-", 0, 0, 1 }, NULL, &kind_margin, 0, get_margin, 0 }, 0, OF_REPEATS, NEVER, false },
    { { { "beyond chance", 0, 0, 0 }, "certain", &kind_certain, PLACE(7), get_certain, 0 },
      0,
      OF_REPEATS,
      ALWAYS,
      false },
    { { { "change%", 0, 0, 3 }, NULL, &kind_share, 0, get_change, 0 }, 0, ALWAYS, NEVER, false },
    { { { "function", SHORTEN, 24, 0 }, "name", &kind_function, PLACE(0), get_function, 0 },
      0,
      ALWAYS,
      OF_ROWS,
      false },
    { { { "exceptions", SHORTEN, 14, 0 }, "exceptions", &kind_types, PLACE(9), NULL, 0 },
      0,
      OF_EXCEPTIONS,
      OF_EXCEPTIONS,
      false },
    DATA("measure", KRAIT_SHEET_NAME, KRAIT_SHEET_NO_JSON | PLACE(1), get_measure, 0, OF_ROWS),
    DATA("each_before", &kind_each, KRAIT_SHEET_NO_CSV | PLACE(10), NULL, 0, OF_ROWS),
    DATA("each_after", &kind_each, KRAIT_SHEET_NO_CSV | PLACE(11), NULL, 1, OF_ROWS),
    { KRAIT_SHEET_HOLDS(8, get_holds), 0, NEVER, OF_ROWS, false },
#undef DATA
#undef OF
#undef PLACE
};

static void choose_columns(const struct diff *d, bool of_rows, struct report_columns *chosen)
{
    unsigned present = 1U << ALWAYS | (unsigned)d->all.known << OF_REPEATS |
                       (unsigned)(of_rows && d->raised) << OF_EXCEPTIONS | (unsigned)of_rows << OF_ROWS;
    krait_report_columns_choose(chosen, columns, KRAIT_ARRAY_LEN(columns), present, d->report, NULL);
    for (uint32_t i = 0; i < chosen->count; i++) {
        if (chosen->items[i].kind == &kind_function)
            chosen->items[i].column.title = rows_are[d->report->by];
    }
}

/* -- the outputs -- */

static void json_all(const struct diff *d, struct krait_buf *out)
{
    struct report_columns numbers;
    choose_columns(d, false, &numbers);
    const struct krait_sheet sheet = { .columns = numbers.items, .column_count = numbers.count };
    krait_json_key_open(out, "all", '{');
    krait_sheet_members(&sheet, &d->all, out);
    krait_buf_char(out, '}');
}

static int put_json(const struct diff *d, const struct krait_sheet *sheet)
{
    struct krait_buf *out = &d->report->out;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "measure", measure(d));
    krait_json_key_u64(out, "recordings_before", d->before);
    krait_json_key_u64(out, "recordings_after", d->recordings - d->before);
    krait_json_key(out, "confidence");
    krait_buf_fmt(out, "%g", KRAIT_COMPARE_CONFIDENCE);
    if (krait_diff_has_sum(d))
        json_all(d, out);
    krait_json_key(out, "functions");
    int rc = krait_sheet_json(sheet, 0, out);
    krait_json_key_open(out, "recordings", '[');
    krait_buf_add(out, d->each.data, d->each.len);
    krait_buf_str(out, "]}\n");
    out->failed |= d->each.failed;
    return rc;
}

int krait_diff_print(const struct diff *d, const uint32_t *order, uint32_t shown)
{
    struct krait_buf *out = &d->report->out;
    struct changes changes = { .diff = d };
    struct report_columns chosen;
    choose_columns(d, true, &chosen);
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = {
        .columns = chosen.items, .of = &changes, .column_count = chosen.count, .lines = true
    };
    for (uint32_t i = 0; i < shown; i++)
        krait_sheet_keep(&sheet, &d->changes[order[i]]);
    return d->report->format == REPORT_TABLE ? krait_sheet_table(&sheet, 0, &d->report->look, out)
           : d->report->format == REPORT_CSV ? krait_sheet_csv(&sheet, 0, out)
                                             : put_json(d, &sheet);
}

/* -- in words -- */

static void note_recordings(const struct diff *d, struct krait_buf *notes)
{
    char before[KRAIT_FMT_SIZE], after[KRAIT_FMT_SIZE], compared[KRAIT_STATE_COMPARED_SIZE];
    krait_buf_fmt(notes, "%s before, %s after; ", krait_fmt_counted(before, d->before, "recording"),
                  krait_fmt_counted(after, d->recordings - d->before, "recording"));
    if (d->raised)
        krait_buf_str(notes, "how often exceptions left each is compared\n");
    else if (d->counts)
        krait_buf_str(notes, "calls of each are compared\n");
    else if (krait_diff_is_on_cpu(d))
        krait_buf_str(notes, "time on the CPU is compared\n");
    else
        krait_buf_fmt(notes, "%s\n", krait_state_wall_compared(compared, d->clocked, d->recordings));
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
            "beyond chance: of many %ss some change by chance alone, so krait judges each among all %u; "
            "a change larger than its +/- may be 'no', and one 'yes' in twenty is still chance\n",
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
