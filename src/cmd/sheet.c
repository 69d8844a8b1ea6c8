/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sheet.h"

#include "base/array.h"
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"

#include <string.h>

enum { MOST_COLUMNS = 512 }; /* segments of a file may have 256 fields */

void krait_sheet_done(struct krait_sheet *sheet)
{
    free(sheet->cells);
    free(sheet->kept);
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

static struct krait_sheet_cell get(const struct krait_sheet *sheet, const void *row, uint32_t column)
{
    const struct krait_sheet_column *c = &sheet->columns[column];
    return c->get ? c->get(sheet->of, row, c->arg) : krait_sheet_number(0);
}

void krait_sheet_add(struct krait_sheet *sheet, const void *row)
{
    if (!KRAIT_GROW(sheet->cells, sheet->cap, ((size_t)sheet->rows + 1) * sheet->column_count)) {
        sheet->failed = true;
        return;
    }
    struct krait_sheet_cell *cells = sheet->cells + (size_t)sheet->rows++ * sheet->column_count;
    for (uint32_t i = 0; i < sheet->column_count; i++)
        cells[i] = get(sheet, row, i);
}

void krait_sheet_keep(struct krait_sheet *sheet, const void *row)
{
    if (!KRAIT_GROW(sheet->kept, sheet->cap, (size_t)sheet->rows + 1)) {
        sheet->failed = true;
        return;
    }
    sheet->kept[sheet->rows++] = row;
}

static int compare_cells(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y,
                         const struct krait_sheet_kind *kind)
{
    return kind->compare ? kind->compare(x, y) : (x->number < y->number) - (x->number > y->number);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct krait_sheet *sheet = ctx;
    const struct krait_sheet_column *columns = sheet->columns;
    const struct krait_sheet_cell *x = a, *y = b;
    int order = 0;
    for (uint32_t i = 0; i < sheet->order_count && !order; i++)
        order = compare_cells(&x[sheet->order[i]], &y[sheet->order[i]], columns[sheet->order[i]].kind);
    for (uint32_t i = 0; i < sheet->column_count && !order; i++)
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

static bool is_headed(const struct krait_sheet_column *column, const char *title, size_t n)
{
    const char *own = column->key ? column->column.title : NULL;
    return own && strlen(own) == n && memcmp(own, title, n) == 0;
}

/* By the key, or else by the heading. Returns column_count if there is none of that name. */
static uint32_t column_of(const struct krait_sheet *sheet, const char *key, size_t n)
{
    uint32_t i = 0;
    while (i < sheet->column_count && !is_called(&sheet->columns[i], key, n))
        i++;
    if (i < sheet->column_count)
        return i;
    for (i = 0; i < sheet->column_count && !is_headed(&sheet->columns[i], key, n);)
        i++;
    return i;
}

/* Without "_ns", as tables head it. */
static size_t without_unit(const char *key)
{
    size_t n = strlen(key);
    return n > 3 && strcmp(key + n - 3, "_ns") == 0 ? n - 3 : n;
}

void krait_sheet_no_column_try(struct krait_sheet_no_column *no, const char *name)
{
    size_t n = without_unit(name);
    const char *kept = krait_arena_strndup(&no->arena, name, n);
    if (kept)
        krait_suggest_try(&no->suggest, kept);
    krait_buf_fmt(&no->names, "%s%.*s", no->names.len ? ", " : "", (int)n, name);
}

static void try_whole(struct krait_sheet_no_column *no, const char *name)
{
    krait_suggest_try(&no->suggest, name);
    krait_buf_fmt(&no->names, "%s%s", no->names.len ? ", " : "", name);
}

int krait_sheet_no_column_set(struct krait_sheet_no_column *no, struct krait_err *err)
{
    krait_suggest_say(&no->names, no->suggest.best);
    int rc = krait_err_set(err, -EINVAL, "--sort: no column '%.*s'; the columns are %s", (int)no->suggest.n,
                           no->suggest.word, no->names.data ? no->names.data : "others");
    krait_buf_done(&no->names);
    krait_arena_done(&no->arena);
    return rc;
}

/* What chooses this column: its heading where that is a word, its key without the unit, or, where another column is called so, its
 * whole key. */
static const char *name_of(const struct krait_sheet *sheet, uint32_t i)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_$";
    const char *key = sheet->columns[i].key, *title = sheet->columns[i].column.title;
    bool is_word = title && *title && !title[strspn(title, letters)];
    return is_word && column_of(sheet, title, strlen(title)) == i ? title : key;
}

static int no_column(const struct krait_sheet *sheet, const char *key, size_t n, struct krait_err *err)
{
    struct krait_sheet_no_column no = { .suggest = KRAIT_SUGGEST(key, n) };
    for (uint32_t i = 0; i < sheet->column_count; i++) {
        const char *name = sheet->columns[i].key ? name_of(sheet, i) : NULL;
        if (name && column_of(sheet, name, without_unit(name)) == i)
            krait_sheet_no_column_try(&no, name);
        else if (name)
            try_whole(&no, name);
    }
    return krait_sheet_no_column_set(&no, err);
}

int krait_sheet_sort(struct krait_sheet *sheet, const char *key, struct krait_err *err)
{
    sheet->order_count = 0;
    for (const char *at = key; sheet->order_count < KRAIT_SHEET_KEYS;) {
        size_t n = strcspn(at, ",");
        uint32_t column = column_of(sheet, at, n);
        if (column == sheet->column_count)
            return no_column(sheet, at, n, err);
        sheet->order[sheet->order_count++] = column;
        if (!at[n])
            break;
        at += n + 1;
    }
    if (sheet->rows) /* else there are no cells, which qsort may not be given */
        qsort_r(sheet->cells, sheet->rows, sheet->column_count * sizeof(*sheet->cells), compare_rows, sheet);
    return 0;
}

void krait_sheet_reverse(struct krait_sheet *sheet)
{
    for (uint32_t i = 0; i < sheet->rows / 2; i++) {
        struct krait_sheet_cell *x = sheet->cells + (size_t)i * sheet->column_count;
        struct krait_sheet_cell *y = sheet->cells + (size_t)(sheet->rows - 1 - i) * sheet->column_count;
        for (uint32_t c = 0; c < sheet->column_count; c++) {
            struct krait_sheet_cell cell = x[c];
            x[c] = y[c];
            y[c] = cell;
        }
    }
}

static uint32_t shown_rows(const struct krait_sheet *sheet, uint32_t limit)
{
    return limit ? KRAIT_MIN(limit, sheet->rows) : sheet->rows;
}

static struct krait_sheet_spot spot_at(const struct krait_sheet *sheet, uint32_t row, uint32_t column)
{
    struct krait_sheet_spot at = { .sheet = sheet, .column = &sheet->columns[column] };
    if (sheet->kept) {
        at.row = sheet->kept[row];
        at.cell = get(sheet, at.row, column);
    } else
        at.cell = sheet->cells[(size_t)row * sheet->column_count + column];
    return at;
}

/* -- tables -- */

static bool is_shown(const struct krait_sheet *sheet, uint32_t rows, uint32_t column)
{
    unsigned flags = sheet->columns[column].flags;
    if (flags & (KRAIT_SHEET_DATA | KRAIT_SHEET_UNKNOWN) || !sheet->columns[column].kind->put)
        return false;
    bool shown = !(flags & KRAIT_SHEET_QUIET);
    for (uint32_t i = 0; i < rows && !shown; i++) {
        const struct krait_sheet_cell cell = spot_at(sheet, sheet->first + i, column).cell;
        shown = cell.name || (cell.number > 0 && cell.number != KRAIT_SHEET_NONE);
    }
    return shown;
}

/* What a column's cells in the table add up to. */
static uint64_t sum_of(const struct krait_sheet *sheet, uint32_t rows, uint32_t column)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < rows; i++) {
        uint64_t number = spot_at(sheet, sheet->first + i, column).cell.number;
        sum += number == KRAIT_SHEET_NONE ? 0 : number;
    }
    return sum;
}

static bool is_ranked(const struct krait_sheet_column *column)
{
    return column->column.drop && column->flags & KRAIT_SHEET_RANKED;
}

/* Spreads the numbers by which columns are dropped, and gives each ranked column one of its own. `from`: by column of the
 * table, that of the sheet. */
static void rank(const struct krait_sheet *sheet, uint32_t rows, struct krait_column *columns,
                 const uint32_t *from, uint32_t count)
{
    uint64_t sums[MOST_COLUMNS];
    for (uint32_t i = 0; i < count; i++)
        sums[i] = is_ranked(&sheet->columns[from[i]]) ? sum_of(sheet, rows, from[i]) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct krait_sheet_column *column = &sheet->columns[from[i]];
        uint32_t greater = 0;
        for (uint32_t k = 0; k < count && is_ranked(column); k++)
            greater += is_ranked(&sheet->columns[from[k]]) &&
                       sheet->columns[from[k]].column.drop == column->column.drop && sums[k] > sums[i];
        columns[i].drop = columns[i].drop ? columns[i].drop * MOST_COLUMNS + greater : 0;
    }
}

int krait_sheet_table_new(struct krait_table **out, const struct krait_sheet *sheet, uint32_t limit)
{
    struct krait_column columns[MOST_COLUMNS];
    uint32_t from[MOST_COLUMNS], count = 0;
    uint32_t rows = KRAIT_MIN(shown_rows(sheet, limit), sheet->rows - sheet->first);
    for (uint32_t i = 0; i < sheet->column_count && count < MOST_COLUMNS; i++) {
        if (!is_shown(sheet, rows, i))
            continue;
        columns[count] = sheet->columns[i].column;
        from[count++] = i;
        for (uint32_t k = 0; k < sheet->order_count; k++)
            columns[count - 1].drop = sheet->order[k] == i ? 0 : columns[count - 1].drop;
    }
    rank(sheet, rows, columns, from, count);
    if (sheet->failed || krait_table_new(out, columns, count))
        return -ENOMEM;
    for (uint32_t row = 0; row < rows; row++) {
        const char *rule = sheet->rule && sheet->kept ? sheet->rule(sheet->of, sheet->kept[row]) : NULL;
        if (rule)
            krait_table_rule(*out, rule);
        for (uint32_t i = 0; i < count; i++) {
            struct krait_sheet_spot at = spot_at(sheet, sheet->first + row, from[i]);
            at.column->kind->put(*out, &at);
        }
    }
    return 0;
}

int krait_sheet_table(const struct krait_sheet *sheet, uint32_t limit, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    struct krait_table *table;
    int rc = krait_sheet_table_new(&table, sheet, limit);
    if (rc)
        return rc;
    rc = krait_table_print(table, look, out);
    krait_table_free(table);
    return rc;
}

void krait_sheet_note_limit(struct krait_buf *notes, uint32_t limit, uint32_t count, const char *noun)
{
    char shown[KRAIT_FMT_SIZE], all[KRAIT_FMT_SIZE];
    if (limit && limit < count)
        krait_buf_fmt(notes, "%s of %s; --limit 0 shows all\n", krait_fmt_count(shown, limit),
                      krait_fmt_counted(all, count, noun));
}

/* -- for programs -- */

/* Those columns that a format has, in its order. */
struct keyed {
    uint32_t columns[MOST_COLUMNS];
    uint32_t count;
};

static unsigned place_of(const struct krait_sheet_column *column)
{
    return column->flags >> 16;
}

/* `but`: the flag of those that the format does without. */
static struct keyed find_keyed(const struct krait_sheet *sheet, unsigned but)
{
    struct keyed keyed = { .count = 0 };
    for (uint32_t i = 0; i < sheet->column_count && keyed.count < MOST_COLUMNS; i++) {
        const struct krait_sheet_column *column = &sheet->columns[i];
        if (!column->key || column->flags & but)
            continue;
        uint32_t k = keyed.count++;
        for (; k && place_of(&sheet->columns[keyed.columns[k - 1]]) > place_of(column); k--)
            keyed.columns[k] = keyed.columns[k - 1];
        keyed.columns[k] = i;
    }
    return keyed;
}

static bool is_known(const struct krait_sheet_spot *at)
{
    const struct krait_sheet_kind *kind = at->column->kind;
    return !(at->column->flags & KRAIT_SHEET_UNKNOWN) && (!kind->is_known || kind->is_known(&at->cell));
}

static void add_csv(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    if (at->column->kind->csv)
        at->column->kind->csv(out, at);
    else if (is_known(at))
        at->column->kind->value(out, &at->cell, krait_csv_cstr);
}

static void add_heads(struct krait_buf *out, const struct krait_sheet_column *column)
{
    if (column->kind->heads)
        column->kind->heads(out, column);
    else
        krait_buf_str(out, column->key);
}

int krait_sheet_csv(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out)
{
    struct keyed keyed = find_keyed(sheet, KRAIT_SHEET_NO_CSV);
    for (uint32_t i = 0; i < keyed.count; i++) {
        krait_buf_str(out, i ? "," : "");
        add_heads(out, &sheet->columns[keyed.columns[i]]);
    }
    krait_buf_char(out, '\n');
    for (uint32_t row = 0; row < shown_rows(sheet, limit); row++) {
        for (uint32_t i = 0; i < keyed.count; i++) {
            struct krait_sheet_spot at = spot_at(sheet, row, keyed.columns[i]);
            krait_buf_str(out, i ? "," : "");
            add_csv(out, &at);
        }
        krait_buf_char(out, '\n');
    }
    return sheet->failed ? -ENOMEM : 0;
}

static void add_member(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    if (at->column->kind->json) {
        at->column->kind->json(out, at);
        return;
    }
    krait_json_key(out, at->column->key);
    if (is_known(at))
        at->column->kind->value(out, &at->cell, krait_json_cstr);
    else
        krait_buf_str(out, "null");
}

/* Members of the row's object: first those whose KRAIT_SHEET_LAST is not set, then the others. */
static void add_members(const struct krait_sheet *sheet, const struct keyed *keyed, uint32_t row,
                        struct krait_buf *out)
{
    for (unsigned last = 0; last <= KRAIT_SHEET_LAST; last += KRAIT_SHEET_LAST) {
        for (uint32_t i = 0; i < keyed->count; i++) {
            if ((sheet->columns[keyed->columns[i]].flags & KRAIT_SHEET_LAST) != last)
                continue;
            struct krait_sheet_spot at = spot_at(sheet, row, keyed->columns[i]);
            add_member(out, &at);
        }
    }
}

void krait_sheet_members(const struct krait_sheet *sheet, const void *row, struct krait_buf *out)
{
    struct krait_sheet one = *sheet;
    struct keyed keyed = find_keyed(sheet, KRAIT_SHEET_NO_JSON);
    one.kept = &row;
    one.rows = 1;
    add_members(&one, &keyed, 0, out);
}

int krait_sheet_json(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out)
{
    struct keyed keyed = find_keyed(sheet, KRAIT_SHEET_NO_JSON);
    krait_buf_char(out, '[');
    for (uint32_t row = 0; row < shown_rows(sheet, limit); row++) {
        krait_json_item(out, sheet->lines ? "\n{" : "{");
        add_members(sheet, &keyed, row, out);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
    return sheet->failed ? -ENOMEM : 0;
}
