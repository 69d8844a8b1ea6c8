/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sheet.h"

#include "base/array.h"
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "view/cells.h"

#include <math.h>
#include <string.h>

enum { MILLION = 1000000 };

void krait_sheet_done(struct krait_sheet *sheet)
{
    free(sheet->cells);
}

struct krait_sheet_cell krait_sheet_number_at(void *of, const void *row, size_t offset)
{
    return krait_sheet_number(*(const uint64_t *)((const char *)row + offset));
}

struct krait_sheet_cell krait_sheet_real_at(void *of, const void *row, size_t offset)
{
    return (struct krait_sheet_cell){ .real = *(const double *)((const char *)row + offset) };
}

struct krait_sheet_cell krait_sheet_name_at(void *of, const void *row, size_t offset)
{
    return krait_sheet_name(*(const char *const *)((const char *)row + offset));
}

void krait_sheet_add(struct krait_sheet *sheet, const void *row)
{
    if (!KRAIT_GROW(sheet->cells, sheet->cap, ((size_t)sheet->rows + 1) * sheet->column_count)) {
        sheet->failed = true;
        return;
    }
    struct krait_sheet_cell *cells = sheet->cells + (size_t)sheet->rows++ * sheet->column_count;
    for (uint32_t i = 0; i < sheet->column_count; i++)
        cells[i] = sheet->columns[i].get(sheet->of, row, sheet->columns[i].arg);
}

static bool is_upward(enum krait_sheet_kind kind)
{
    return kind == KRAIT_SHEET_NAME || kind == KRAIT_SHEET_NUMBER || kind == KRAIT_SHEET_TIME;
}

static int compare_cells(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y,
                         enum krait_sheet_kind kind)
{
    if (kind == KRAIT_SHEET_NAME)
        return strcmp(x->name ? x->name : "", y->name ? y->name : "");
    int order = kind == KRAIT_SHEET_REAL ? (x->real > y->real) - (x->real < y->real)
                                         : (x->number > y->number) - (x->number < y->number);
    return is_upward(kind) ? order : -order;
}

enum { SORT_KEYS = 4 };

struct order {
    const struct krait_sheet *sheet;
    uint32_t columns[SORT_KEYS];
    uint32_t count;
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct order *o = ctx;
    const struct krait_sheet_column *columns = o->sheet->columns;
    const struct krait_sheet_cell *x = a, *y = b;
    int order = 0;
    for (uint32_t i = 0; i < o->count && !order; i++)
        order = compare_cells(&x[o->columns[i]], &y[o->columns[i]], columns[o->columns[i]].kind);
    for (uint32_t i = 0; i < o->sheet->column_count && !order; i++)
        order = compare_cells(&x[i], &y[i], columns[i].kind);
    return order;
}

/* "total_ns" is "total" too. */
static bool is_called(const struct krait_sheet_column *column, const char *key, size_t n)
{
    if (!column->key || strncmp(column->key, key, n) != 0)
        return false;
    const char *rest = column->key + n;
    return !*rest || strcmp(rest, "_ns") == 0;
}

/* Returns column_count if there is none of that name. */
static uint32_t column_of(const struct krait_sheet *sheet, const char *key, size_t n)
{
    uint32_t i = 0;
    while (i < sheet->column_count && !is_called(&sheet->columns[i], key, n))
        i++;
    return i;
}

static int no_column(const struct krait_sheet *sheet, const char *key, size_t n, struct krait_err *err)
{
    KRAIT_AUTO_BUF keys = { 0 };
    for (uint32_t i = 0; i < sheet->column_count; i++) {
        if (sheet->columns[i].key)
            krait_buf_fmt(&keys, "%s%s", keys.len ? ", " : "", sheet->columns[i].key);
    }
    return krait_err_set(err, -EINVAL, "--sort: no column '%.*s'; the columns are %s", (int)n, key,
                         keys.data ? keys.data : "others");
}

int krait_sheet_sort(struct krait_sheet *sheet, const char *key, struct krait_err *err)
{
    struct order order = { .sheet = sheet };
    for (const char *at = key; order.count < SORT_KEYS;) {
        size_t n = strcspn(at, ",");
        uint32_t column = column_of(sheet, at, n);
        if (column == sheet->column_count)
            return no_column(sheet, at, n, err);
        order.columns[order.count++] = column;
        if (!at[n])
            break;
        at += n + 1;
    }
    if (sheet->rows) /* else there are no cells, which qsort may not be given */
        qsort_r(sheet->cells, sheet->rows, sheet->column_count * sizeof(*sheet->cells), compare_rows, &order);
    return 0;
}

static uint32_t shown_rows(const struct krait_sheet *sheet, uint32_t limit)
{
    return limit ? KRAIT_MIN(limit, sheet->rows) : sheet->rows;
}

static const struct krait_sheet_cell *cell_at(const struct krait_sheet *sheet, uint32_t row, uint32_t column)
{
    return &sheet->cells[(size_t)row * sheet->column_count + column];
}

/* -- tables -- */

static bool is_shown(const struct krait_sheet *sheet, uint32_t rows, uint32_t column)
{
    unsigned flags = sheet->columns[column].flags;
    bool shown = !(flags & (KRAIT_SHEET_QUIET | KRAIT_SHEET_DATA));
    for (uint32_t i = 0; i < rows && !shown && !(flags & KRAIT_SHEET_DATA); i++)
        shown =
            cell_at(sheet, i, column)->number > 0 && cell_at(sheet, i, column)->number != KRAIT_SHEET_NONE;
    return shown;
}

static void number_cell(struct krait_table *table, uint64_t number, bool dash)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    krait_table_cell(table, number != KRAIT_SHEET_NONE ? text : dash ? "-" : "?", KRAIT_STYLE_NONE, 0);
}

static void time_cell(struct krait_table *table, uint64_t ns)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%llu.%09llu", (unsigned long long)(ns / KRAIT_NS_PER_S),
             (unsigned long long)(ns % KRAIT_NS_PER_S));
    krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

static void name_cell(struct krait_table *table, const char *name, unsigned flags)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, name && *name               ? name
                          : flags & KRAIT_SHEET_BLANK ? ""
                          : flags & KRAIT_SHEET_DASH  ? "-"
                                                      : "?");
    bool is_dash = !(name && *name) && !(flags & KRAIT_SHEET_BLANK) && flags & KRAIT_SHEET_DASH;
    krait_table_cell(table, text.data ? text.data : "", is_dash ? KRAIT_STYLE_DIM : KRAIT_STYLE_NONE, 0);
}

static void count_cell(struct krait_table *table, uint64_t n, bool is_alarm)
{
    char text[KRAIT_FMT_SIZE];
    if (is_alarm)
        krait_table_cell(table, n ? krait_fmt_count(text, n) : "-", n ? KRAIT_STYLE_HOT : KRAIT_STYLE_DIM, 0);
    else
        krait_cell_count(table, n);
}

static void real_cell(struct krait_table *table, double real)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%.6g", real);
    krait_table_cell(table, isnan(real) ? "-" : text, isnan(real) ? KRAIT_STYLE_DIM : KRAIT_STYLE_NONE, 0);
}

static void ns_cell(struct krait_table *table, uint64_t ns, bool dash)
{
    if (ns || !dash)
        krait_cell_ns(table, ns);
    else
        krait_table_cell(table, "-", KRAIT_STYLE_DIM, 0);
}

static void add_cell(struct krait_table *table, const struct krait_sheet_column *column,
                     const struct krait_sheet_cell *cell)
{
    switch (column->kind) {
    case KRAIT_SHEET_NS:
        ns_cell(table, cell->number, column->flags & KRAIT_SHEET_DASH);
        return;
    case KRAIT_SHEET_TIME:
        time_cell(table, cell->number);
        return;
    case KRAIT_SHEET_COUNT:
        count_cell(table, cell->number, column->flags & KRAIT_SHEET_ALARM);
        return;
    case KRAIT_SHEET_NUMBER:
        number_cell(table, cell->number, column->flags & KRAIT_SHEET_DASH);
        return;
    case KRAIT_SHEET_SHARE:
        krait_cell_share(table, cell->number, MILLION);
        return;
    case KRAIT_SHEET_REAL:
        real_cell(table, cell->real);
        return;
    case KRAIT_SHEET_NAME:
        name_cell(table, cell->name, column->flags);
        return;
    case KRAIT_SHEET_BOOL:
        return;
    }
}

int krait_sheet_table(const struct krait_sheet *sheet, uint32_t limit, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    enum { MOST_COLUMNS = 32 };
    struct krait_column columns[MOST_COLUMNS];
    uint32_t from[MOST_COLUMNS], count = 0, rows = shown_rows(sheet, limit);
    struct krait_table *table = NULL;
    for (uint32_t i = 0; i < sheet->column_count && count < MOST_COLUMNS; i++) {
        if (!is_shown(sheet, rows, i))
            continue;
        columns[count] = sheet->columns[i].column;
        from[count++] = i;
    }
    if (sheet->failed || krait_table_new(&table, columns, count))
        return -ENOMEM;
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t i = 0; i < count; i++)
            add_cell(table, &sheet->columns[from[i]], cell_at(sheet, row, from[i]));
    }
    int rc = krait_table_print(table, look, out);
    krait_table_free(table);
    return rc;
}

/* -- for programs -- */

static bool is_known(const struct krait_sheet_cell *cell, enum krait_sheet_kind kind)
{
    return kind == KRAIT_SHEET_NAME     ? cell->name != NULL
           : kind == KRAIT_SHEET_NUMBER ? cell->number != KRAIT_SHEET_NONE
           : kind == KRAIT_SHEET_REAL   ? !isnan(cell->real)
                                        : true;
}

static void add_value(struct krait_buf *out, const struct krait_sheet_cell *cell, enum krait_sheet_kind kind,
                      void (*add_text)(struct krait_buf *out, const char *text), const char *unknown)
{
    if (!is_known(cell, kind))
        krait_buf_str(out, unknown);
    else if (kind == KRAIT_SHEET_NAME)
        add_text(out, cell->name);
    else if (kind == KRAIT_SHEET_REAL)
        krait_json_real(out, cell->real);
    else if (kind == KRAIT_SHEET_BOOL)
        krait_buf_str(out, cell->number ? "true" : "false");
    else if (kind == KRAIT_SHEET_SHARE)
        krait_buf_fmt(out, "%.6f", (double)cell->number / MILLION);
    else
        krait_json_u64(out, cell->number);
}

int krait_sheet_csv(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out)
{
    const char *comma = "";
    for (uint32_t i = 0; i < sheet->column_count; i++) {
        if (sheet->columns[i].key) {
            krait_buf_fmt(out, "%s%s", comma, sheet->columns[i].key);
            comma = ",";
        }
    }
    krait_buf_char(out, '\n');
    for (uint32_t row = 0; row < shown_rows(sheet, limit); row++) {
        comma = "";
        for (uint32_t i = 0; i < sheet->column_count; i++) {
            if (!sheet->columns[i].key)
                continue;
            krait_buf_str(out, comma);
            comma = ",";
            add_value(out, cell_at(sheet, row, i), sheet->columns[i].kind, krait_csv_cstr, "");
        }
        krait_buf_char(out, '\n');
    }
    return sheet->failed ? -ENOMEM : 0;
}

int krait_sheet_json(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out)
{
    krait_buf_char(out, '[');
    for (uint32_t row = 0; row < shown_rows(sheet, limit); row++) {
        krait_json_item(out, "{");
        for (uint32_t i = 0; i < sheet->column_count; i++) {
            if (!sheet->columns[i].key)
                continue;
            krait_json_key(out, sheet->columns[i].key);
            add_value(out, cell_at(sheet, row, i), sheet->columns[i].kind, krait_json_cstr, "null");
        }
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    return sheet->failed ? -ENOMEM : 0;
}
