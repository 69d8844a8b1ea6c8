/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: which columns a sheet of functions has, of those that a part describes.
 */
#include "cmd/report.h"

#include <string.h>

static bool is_state(const struct krait_sheet_column *column)
{
    return column->kind == KRAIT_SHEET_PART;
}

/* With --cycles, what is ns else is cycles. */
static void count_cycles(struct krait_sheet_column *column, char *key, size_t size)
{
    const char *ns = column->key ? strstr(column->key, "_ns") : NULL;
    if (column->kind != KRAIT_SHEET_NS)
        return;
    column->kind = KRAIT_SHEET_COUNT;
    if (!ns)
        return;
    snprintf(key, size, "%.*s_cycles", (int)(ns - column->key), column->key);
    column->key = key;
}

static void take(struct report_columns *to, const struct report_column *from, unsigned present,
                 const struct report *report, const uint64_t *wall_ns)
{
    char *key = to->keys[to->count];
    struct krait_sheet_column *column = &to->items[to->count++];
    *column = from->column;
    if (is_state(column))
        column->column = krait_report_wall_column((enum krait_wall_state)column->arg, wall_ns);
    else if (wall_ns && from->beside)
        column->column.drop = from->beside;
    if (!(present & 1U << from->shown))
        column->flags |= KRAIT_SHEET_DATA;
    if (!(present & 1U << from->given))
        column->key = NULL;
    if (from->of_calls && report->trace->samples.rate)
        column->flags |= KRAIT_SHEET_UNKNOWN;
    if (report->clock)
        count_cycles(column, key, sizeof(to->keys[0]));
}

void krait_report_columns_choose(struct report_columns *to, const struct report_column *from, uint32_t count,
                                 unsigned present, const struct report *report, const uint64_t *wall_ns)
{
    to->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum krait_wall_state state = (enum krait_wall_state)from[i].column.arg;
        if (!is_state(&from[i].column) || (wall_ns && krait_report_wall_shows(report, state, wall_ns)))
            take(to, &from[i], present, report, wall_ns);
    }
}

struct krait_sheet_cell krait_report_part(const uint64_t *by_state, size_t state, uint64_t ns)
{
    return (struct krait_sheet_cell){ .number = by_state[state], .whole = ns };
}

/* Writes "cpu, ready and gil: shares of the self time". Returns whether the table shows a state. */
static bool note_shares(struct report *report, const struct krait_sheet *sheet,
                        const struct krait_table *table, const char *split)
{
    const char *shown[REPORT_COLUMNS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < sheet->column_count && count < REPORT_COLUMNS; i++) {
        const char *title = sheet->columns[i].column.title;
        if (is_state(&sheet->columns[i]) && krait_table_shows(table, &report->look, title))
            shown[count++] = title;
    }
    for (uint32_t i = 0; i < count; i++)
        krait_buf_fmt(&report->notes, "%s%s", !i ? "" : i + 1 < count ? ", " : " and ", shown[i]);
    const char *what = count > 1 ? "shares"
                       : report->wall && !krait_wall_has_states(report->wall)
                           ? "the share that waited for it,"
                           : "the share";
    if (count)
        krait_buf_fmt(&report->notes, ": %s of the %s\n", what, split);
    return count;
}

int krait_report_put_table(struct report *report, const struct krait_sheet *sheet, uint32_t limit,
                           const char *split, const uint64_t *wall_ns)
{
    struct krait_table *table;
    int rc = krait_sheet_table_new(&table, sheet, limit);
    if (rc)
        return rc;
    rc = krait_table_print(table, &report->look, &report->out);
    if (note_shares(report, sheet, table, split) && report->wall)
        krait_report_wall_note(report, wall_ns);
    krait_table_free(table);
    return rc;
}
