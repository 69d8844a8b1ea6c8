/* SPDX-License-Identifier: Apache-2.0 */
#include "view/table.h"

#include "base/arena.h"
#include "base/array.h"
#include "view/width.h"

#include <string.h>

enum { GAP = 2 };

struct cell {
    const char *text;
    uint32_t columns; /* on the terminal */
    uint32_t tail;    /* and a blank after them */
    uint32_t bright;  /* columns at the end that stand out; 0: all alike */
    uint32_t keep;    /* bytes at the beginning that stay when it is shortened */
    enum krait_style style;
};

struct krait_table {
    struct krait_column *columns; /* behind it, in one piece */
    uint32_t column_count;
    struct cell *cells;
    size_t cell_count, cap;
    struct rule {
        size_t cell; /* before the row that begins with it */
        const char *text;
    } * rules;
    uint32_t rule_count, rule_cap;
    struct krait_arena arena;
    bool failed;
};

static const char *const style_codes[] = {
    [KRAIT_STYLE_NONE] = "",        [KRAIT_STYLE_DIM] = "\033[2m",   [KRAIT_STYLE_BOLD] = "\033[1m",
    [KRAIT_STYLE_HOT] = "\033[31m", [KRAIT_STYLE_WARM] = "\033[33m", [KRAIT_STYLE_C] = "\033[36m",
};

int krait_table_new(struct krait_table **out, const struct krait_column *columns, uint32_t count)
{
    struct krait_table *table = calloc(1, sizeof(*table) + count * sizeof(*columns));
    if (!table)
        return -ENOMEM;
    table->columns = (struct krait_column *)(table + 1);
    memcpy(table->columns, columns, count * sizeof(*columns));
    table->column_count = count;
    *out = table;
    return 0;
}

void krait_table_free(struct krait_table *table)
{
    if (!table)
        return;
    free(table->cells);
    free(table->rules);
    krait_arena_done(&table->arena);
    free(table);
}

void krait_table_cell(struct krait_table *table, const char *text, enum krait_style style, size_t bright)
{
    if (!KRAIT_GROW(table->cells, table->cap, table->cell_count + 1)) {
        table->failed = true;
        return;
    }
    const struct krait_column *column = &table->columns[table->cell_count % table->column_count];
    size_t n = strlen(text), tail = !(column->flags & KRAIT_COLUMN_LEFT) && n && text[n - 1] == ' ';
    n -= tail;
    const char *copy = krait_arena_strndup(&table->arena, text, n);
    table->failed |= !copy;
    bright = KRAIT_MIN(bright, n);
    table->cells[table->cell_count++] = (struct cell){
        .text = copy ? copy : "",
        .columns = krait_width_of(text, n),
        .tail = (uint32_t)tail,
        .bright = krait_width_of(text + n - bright, bright),
        .style = style,
    };
}

void krait_table_keep(struct krait_table *table, size_t bytes)
{
    if (!table->cell_count)
        return;
    struct cell *cell = &table->cells[table->cell_count - 1];
    cell->keep = (uint32_t)KRAIT_MIN(bytes, strlen(cell->text));
}

void krait_table_rule(struct krait_table *table, const char *text)
{
    const char *copy = krait_arena_strdup(&table->arena, text);
    bool has_room = KRAIT_GROW(table->rules, table->rule_cap, table->rule_count + 1);
    table->failed |= !copy || !has_room;
    if (copy && has_room)
        table->rules[table->rule_count++] = (struct rule){ table->cell_count, copy };
}

/* The layout: a width for each column, 0 for those that are dropped. */

/* If all cells of a column end with a blank, the blank does not count. */
static void natural_width(const struct krait_table *table, uint32_t column, uint32_t *width)
{
    const char *title = table->columns[column].title;
    uint32_t widest = 0, tail = 1;
    for (size_t i = column; i < table->cell_count; i += table->column_count) {
        widest = KRAIT_MAX(widest, table->cells[i].columns + table->cells[i].tail);
        tail = KRAIT_MIN(tail, table->cells[i].tail);
    }
    *width = KRAIT_MAX(krait_width_of(title, strlen(title)), widest ? widest - tail : 0);
}

static void natural_widths(const struct krait_table *table, uint32_t *widths)
{
    for (uint32_t c = 0; c < table->column_count; c++)
        natural_width(table, c, &widths[c]);
}

static uint32_t least_width(const struct krait_column *column, uint32_t natural)
{
    return column->flags & KRAIT_COLUMN_SHORTEN ? KRAIT_MIN(column->min, natural) : natural;
}

/* Width of the table if everything is shortened as far as possible. */
static uint32_t least_total(const struct krait_table *table, const uint32_t *widths)
{
    uint32_t total = 0;
    for (uint32_t c = 0; c < table->column_count; c++)
        total += widths[c] ? least_width(&table->columns[c], widths[c]) + (total ? GAP : 0) : 0;
    return total;
}

/* The column to drop next, or column_count if all others stay. */
static uint32_t next_to_drop(const struct krait_table *table, const uint32_t *widths)
{
    uint32_t found = table->column_count;
    for (uint32_t c = 0; c < table->column_count; c++) {
        uint32_t drop = table->columns[c].drop;
        if (widths[c] && drop && (found == table->column_count || drop > table->columns[found].drop))
            found = c;
    }
    return found;
}

/* Gives the spare width to the columns that can use it, from the first on. */
static void spread(const struct krait_table *table, uint32_t *widths, uint32_t spare)
{
    for (uint32_t c = 0; c < table->column_count; c++) {
        uint32_t least = least_width(&table->columns[c], widths[c]);
        uint32_t more = KRAIT_MIN(widths[c] - least, spare);
        widths[c] = least + more;
        spare -= more;
    }
}

/* If nothing more can be dropped and the table is still too wide, shortens the last column that can be shortened,
 * below its minimum. */
static void squeeze(const struct krait_table *table, uint32_t *widths, uint32_t over)
{
    for (uint32_t c = table->column_count; c-- > 0 && over;) {
        if (!(table->columns[c].flags & KRAIT_COLUMN_SHORTEN) || widths[c] < 2)
            continue;
        uint32_t less = KRAIT_MIN(over, widths[c] - 1);
        widths[c] -= less;
        over -= less;
    }
}

static void fit(const struct krait_table *table, uint32_t *widths, uint32_t limit)
{
    natural_widths(table, widths);
    if (!limit)
        return;
    uint32_t drop;
    while (least_total(table, widths) > limit && (drop = next_to_drop(table, widths)) < table->column_count)
        widths[drop] = 0;
    uint32_t least = least_total(table, widths);
    spread(table, widths, least < limit ? limit - least : 0);
    squeeze(table, widths, least > limit ? least - limit : 0);
}

static void pad(struct krait_buf *out, uint32_t n)
{
    for (; n; n--)
        krait_buf_char(out, ' ');
}

/* The text with its style; `bright` columns at its end stand out, the rest is dim. */
static void styled(struct krait_buf *out, const char *text, uint32_t columns, const struct cell *cell,
                   bool colour)
{
    if (!colour) {
        krait_buf_str(out, text);
        return;
    }
    size_t dim = 0;
    if (cell->bright && cell->bright < columns) {
        dim = krait_width_fit(text, strlen(text), columns - cell->bright);
        krait_buf_fmt(out, "%s%.*s\033[0m", style_codes[KRAIT_STYLE_DIM], (int)dim, text);
    }
    const char *code = style_codes[cell->style];
    krait_buf_fmt(out, "%s%s%s", code, text + dim, *code ? "\033[0m" : "");
}

/* The kept part of a cell stays whole if some columns are left for the rest; otherwise the whole cell is shortened. */
static void shorten(struct krait_buf *text, const struct cell *cell, uint32_t width, bool utf8)
{
    enum { REST_MIN = 8 };
    uint32_t kept = krait_width_of(cell->text, cell->keep);
    size_t from = kept + REST_MIN <= width ? cell->keep : 0;
    krait_buf_add(text, cell->text, from);
    krait_width_shorten(text, cell->text + from, from ? width - kept : width, utf8);
}

static void print_cell(const struct cell *cell, const struct krait_column *column, uint32_t width, bool last,
                       const struct krait_table_look *look, struct krait_buf *out)
{
    KRAIT_AUTO_BUF text = { 0 };
    shorten(&text, cell, width, look->utf8);
    out->failed |= text.failed;
    uint32_t columns = krait_width_of(text.data ? text.data : "", text.len);
    uint32_t space = width > columns ? width - columns : 0;
    bool left = column->flags & KRAIT_COLUMN_LEFT;
    uint32_t behind = left ? space : KRAIT_MIN(space, cell->tail);
    pad(out, space - behind);
    styled(out, text.data ? text.data : "", columns, cell, look->colour);
    pad(out, last ? 0 : behind);
}

static void print_row(const struct krait_table *table, const struct cell *cells, const uint32_t *widths,
                      const struct krait_table_look *look, struct krait_buf *out)
{
    uint32_t last = table->column_count;
    while (last > 0 && !widths[last - 1])
        last--;
    bool first = true;
    for (uint32_t c = 0; c < last; c++) {
        if (!widths[c])
            continue;
        pad(out, first ? 0 : GAP);
        print_cell(&cells[c], &table->columns[c], widths[c], c + 1 == last, look, out);
        first = false;
    }
    while (out->len && out->data[out->len - 1] == ' ')
        out->len--;
    krait_buf_char(out, '\n');
}

static int print_header(const struct krait_table *table, const uint32_t *widths,
                        const struct krait_table_look *look, struct krait_buf *out)
{
    KRAIT_AUTO_FREE struct cell *cells = calloc(table->column_count, sizeof(*cells));
    if (!cells)
        return -ENOMEM;
    for (uint32_t c = 0; c < table->column_count; c++)
        cells[c] = (struct cell){ .text = table->columns[c].title, .style = KRAIT_STYLE_BOLD };
    print_row(table, cells, widths, look, out);
    return 0;
}

/* "-- others -------": as wide as the table, or as its text needs. */
static void print_rule(const struct krait_table *table, const char *rule, const uint32_t *widths,
                       const struct krait_table_look *look, struct krait_buf *out)
{
    enum { AROUND = 6 }; /* columns: two of the line and a blank on each side */
    const char *line = look->utf8 ? "\xe2\x94\x80" : "-", *dim = look->colour ? KRAIT_DIM : "",
               *bold = look->colour ? KRAIT_BOLD : "", *plain = look->colour ? KRAIT_PLAIN : "";
    uint32_t width = 0, limit = look->width ? look->width : UINT32_MAX;
    for (uint32_t c = 0; c < table->column_count; c++)
        width += widths[c] ? widths[c] + (width ? GAP : 0) : 0;
    KRAIT_AUTO_BUF text = { 0 };
    krait_width_shorten(&text, rule, limit > AROUND ? limit - AROUND : 1, look->utf8);
    out->failed |= text.failed;
    uint32_t columns = krait_width_of(text.data ? text.data : "", text.len) + AROUND;
    width = KRAIT_MIN(KRAIT_MAX(width, columns), limit);
    krait_buf_fmt(out, "%s%s%s%s %s%s%s %s", dim, line, line, plain, bold, text.data ? text.data : "", plain,
                  dim);
    for (uint32_t i = columns - 2; i < width; i++)
        krait_buf_str(out, line);
    krait_buf_fmt(out, "%s\n", plain);
}

bool krait_table_shows(const struct krait_table *table, const struct krait_table_look *look,
                       const char *title)
{
    KRAIT_AUTO_FREE uint32_t *widths = calloc(table->column_count, sizeof(*widths));
    if (!widths || table->failed || !table->cell_count)
        return false;
    fit(table, widths, look->width);
    bool shown = false;
    for (uint32_t c = 0; c < table->column_count && !shown; c++)
        shown = widths[c] && strcmp(table->columns[c].title, title) == 0;
    return shown;
}

static bool has_title(const struct krait_buf *titles, const char *title)
{
    size_t n = strlen(title);
    for (const char *at = titles->data; at && *at; at += strspn(at, ", ")) {
        size_t own = strcspn(at, ",");
        if (own == n && memcmp(at, title, n) == 0)
            return true;
        at += own;
    }
    return false;
}

static void tell_dropped(const struct krait_table *table, const uint32_t *widths, struct krait_buf *titles)
{
    for (uint32_t c = 0; c < table->column_count && titles; c++) {
        if (!widths[c] && !has_title(titles, table->columns[c].title))
            krait_buf_fmt(titles, "%s%s", titles->len ? ", " : "", table->columns[c].title);
    }
}

int krait_table_print(const struct krait_table *table, const struct krait_table_look *look,
                      struct krait_buf *out)
{
    KRAIT_AUTO_FREE uint32_t *widths = calloc(table->column_count, sizeof(*widths));
    if (!widths || table->failed)
        return -ENOMEM;
    if (!table->cell_count)
        return 0;
    fit(table, widths, look->width);
    tell_dropped(table, widths, look->dropped);
    if (print_header(table, widths, look, out))
        return -ENOMEM;
    const struct rule *rule = table->rules, *end = rule + table->rule_count;
    for (size_t i = 0; i + table->column_count <= table->cell_count; i += table->column_count) {
        for (; rule < end && rule->cell <= i; rule++)
            print_rule(table, rule->text, widths, look, out);
        print_row(table, &table->cells[i], widths, look, out);
    }
    return out->failed ? -ENOMEM : 0;
}
