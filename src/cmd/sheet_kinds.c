/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of values that many sheets have, and how each format writes them.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/sheet.h"
#include "view/cells.h"
#include "view/width.h"

#include <math.h>
#include <string.h>

enum { MILLION = 1000000 };

/* A text of a format: krait_csv_cstr, krait_json_cstr. */
typedef void add_text_fn(struct krait_buf *out, const char *text);

static unsigned flags_of(const struct krait_sheet_spot *at)
{
    return at->column->flags;
}

static void put_dash(struct krait_table *table)
{
    krait_table_cell(table, "-", KRAIT_STYLE_DIM, 0);
}

static void add_number(struct krait_buf *out, const struct krait_sheet_cell *cell, add_text_fn *add_text)
{
    krait_json_u64(out, cell->number);
}

static bool has_number(const struct krait_sheet_cell *cell)
{
    return cell->number != KRAIT_SHEET_NONE;
}

static int by_least_number(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y)
{
    return (x->number > y->number) - (x->number < y->number);
}

/* -- times and counts -- */

static void put_ns(struct krait_table *table, const struct krait_sheet_spot *at)
{
    if (has_number(&at->cell) && (at->cell.number || !(flags_of(at) & KRAIT_SHEET_DASH)))
        krait_cell_ns(table, at->cell.number);
    else
        put_dash(table);
}

const struct krait_sheet_kind krait_sheet_kind_ns = { .put = put_ns,
                                                      .is_known = has_number,
                                                      .value = add_number };

static void put_time(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    uint64_t ns = at->cell.number;
    snprintf(text, sizeof(text), "%llu.%09llu", (unsigned long long)(ns / KRAIT_NS_PER_S),
             (unsigned long long)(ns % KRAIT_NS_PER_S));
    krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

const struct krait_sheet_kind krait_sheet_kind_time = { .put = put_time,
                                                        .value = add_number,
                                                        .compare = by_least_number };

static void put_count(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    uint64_t n = at->cell.number;
    if (!(flags_of(at) & KRAIT_SHEET_ALARM))
        krait_cell_count(table, n);
    else if (n)
        krait_table_cell(table, krait_fmt_count(text, n), KRAIT_STYLE_HOT, 0);
    else
        put_dash(table);
}

const struct krait_sheet_kind krait_sheet_kind_count = { .put = put_count, .value = add_number };

static void put_number(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)at->cell.number);
    krait_table_cell(table,
                     has_number(&at->cell)             ? text
                     : flags_of(at) & KRAIT_SHEET_DASH ? "-"
                                                       : "?",
                     KRAIT_STYLE_NONE, 0);
}

const struct krait_sheet_kind krait_sheet_kind_number = {
    .put = put_number,
    .is_known = has_number,
    .value = add_number,
    .compare = by_least_number,
};

/* -- shares -- */

static void put_share(struct krait_table *table, const struct krait_sheet_spot *at)
{
    krait_cell_share(table, at->cell.number, MILLION);
}

static void add_share(struct krait_buf *out, const struct krait_sheet_cell *cell, add_text_fn *add_text)
{
    krait_buf_fmt(out, "%.6f", (double)cell->number / MILLION);
}

const struct krait_sheet_kind krait_sheet_kind_share = { .put = put_share, .value = add_share };

static void put_percent(struct krait_table *table, const struct krait_sheet_spot *at)
{
    krait_cell_share(table, at->cell.number, at->sheet->whole);
}

const struct krait_sheet_kind krait_sheet_kind_percent = { .put = put_percent };

static void put_part(struct krait_table *table, const struct krait_sheet_spot *at)
{
    krait_cell_part(table, at->cell.number, at->cell.whole, at->sheet->whole);
}

const struct krait_sheet_kind krait_sheet_kind_part = { .put = put_part };

/* -- numbers with a fraction -- */

static void put_real(struct krait_table *table, const struct krait_sheet_spot *at)
{
    char text[KRAIT_FMT_SIZE];
    snprintf(text, sizeof(text), "%.6g", at->cell.real);
    if (isnan(at->cell.real))
        put_dash(table);
    else
        krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

static bool has_real(const struct krait_sheet_cell *cell)
{
    return !isnan(cell->real);
}

static void add_real(struct krait_buf *out, const struct krait_sheet_cell *cell, add_text_fn *add_text)
{
    krait_json_real(out, cell->real);
}

static int by_real(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y)
{
    return (x->real < y->real) - (x->real > y->real);
}

const struct krait_sheet_kind krait_sheet_kind_real = {
    .put = put_real,
    .is_known = has_real,
    .value = add_real,
    .compare = by_real,
};

/* -- names, and yes or no -- */

static void put_name(struct krait_table *table, const struct krait_sheet_spot *at)
{
    enum { BOUND = 80 }; /* columns, of KRAIT_SHEET_BOUND */
    KRAIT_AUTO_BUF text = { 0 };
    KRAIT_AUTO_BUF bound = { 0 };
    const char *name = at->cell.name;
    bool is_empty = !(name && *name), is_blank = flags_of(at) & KRAIT_SHEET_BLANK;
    bool is_dash = is_empty && !is_blank && flags_of(at) & KRAIT_SHEET_DASH;
    krait_fmt_safe(&text, !is_empty ? name : is_blank ? "" : is_dash ? "-" : "?");
    krait_width_shorten(&bound, text.data ? text.data : "",
                        flags_of(at) & KRAIT_SHEET_BOUND ? BOUND : UINT32_MAX, false);
    krait_table_cell(table, bound.data ? bound.data : "", is_dash ? KRAIT_STYLE_DIM : KRAIT_STYLE_NONE, 0);
}

static bool has_name(const struct krait_sheet_cell *cell)
{
    return cell->name;
}

static void add_name(struct krait_buf *out, const struct krait_sheet_cell *cell, add_text_fn *add_text)
{
    add_text(out, cell->name);
}

static int by_name(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y)
{
    return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

const struct krait_sheet_kind krait_sheet_kind_name = {
    .put = put_name,
    .is_known = has_name,
    .value = add_name,
    .compare = by_name,
};

static void add_bool(struct krait_buf *out, const struct krait_sheet_cell *cell, add_text_fn *add_text)
{
    krait_buf_str(out, cell->number ? "true" : "false");
}

const struct krait_sheet_kind krait_sheet_kind_bool = { .is_known = has_number, .value = add_bool };

/* -- functions -- */

void krait_sheet_function_heads(struct krait_buf *out, const struct krait_sheet_column *column)
{
    krait_func_row_csv(out, NULL);
}

void krait_sheet_function_csv(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_func_row_csv(out, at->cell.object);
}

void krait_sheet_function_json(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_func_row_json(out, *(const struct krait_func_row *)at->cell.object);
}

static void add_holds(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_buf_str(out, at->cell.number ? "1" : "0");
}

static void json_holds(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    krait_func_row_json_holds(out, at->cell.number);
}

const struct krait_sheet_kind krait_sheet_kind_holds = { .csv = add_holds, .json = json_holds };
