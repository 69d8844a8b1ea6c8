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

int krait_report_put_table(struct report *report, const struct krait_sheet *sheet, const char *split,
                           const uint64_t *wall_ns)
{
    struct krait_table *table;
    int rc = krait_sheet_table_new(&table, sheet, 0);
    if (rc)
        return rc;
    rc = krait_table_print(table, &report->look, &report->out);
    if (report->wall)
        krait_report_wall_note(report, table, split, wall_ns);
    krait_table_free(table);
    return rc;
}
