/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: columns, each described once for tables, JSON and CSV.
 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

#include <string.h>

uint64_t krait_report_number(const void *row, const struct report_column *column)
{
    return *(const uint64_t *)((const char *)row + column->offset);
}

/* Whether the recording is of samples, which do not know what the column tells: calls and how long each took. */
static bool is_unknown(const struct report *report, const struct report_column *column)
{
    static const char *const of_calls[] = { "calls", "runs", "raised", "mean", "min", "max", "p50", "p99" };
    bool sampled = report->trace && report->trace->samples.rate;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(of_calls) && sampled; i++) {
        if (strcmp(column->column.title, of_calls[i]) == 0)
            return true;
    }
    return false;
}

/* -- tables -- */

void krait_report_cell_ns(const struct report_spot *at, const struct report_column *column)
{
    if (at->report->clock)
        krait_cell_count(at->table, krait_report_number(at->row, column));
    else
        krait_cell_ns(at->table, krait_report_number(at->row, column));
}

void krait_report_cell_share(const struct report_spot *at, const struct report_column *column)
{
    krait_cell_share(at->table, krait_report_number(at->row, column), at->whole);
}

void krait_report_cell_count(const struct report_spot *at, const struct report_column *column)
{
    krait_cell_count(at->table, krait_report_number(at->row, column));
}

void krait_report_cell_wall(const struct report_spot *at, const struct report_column *column)
{
    krait_cell_part(at->table, at->wall_ns[column->offset], at->split_ns, at->whole);
}

uint32_t krait_report_columns_choose(const struct report_column **chosen, const struct report_column *from,
                                     uint32_t count, unsigned present, const struct report *report,
                                     const uint64_t *wall_ns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool of_state = from[i].add == krait_report_cell_wall;
        if (of_state &&
            (!wall_ns || !krait_report_wall_shows(report, (enum krait_wall_state)from[i].offset, wall_ns)))
            continue;
        if (is_unknown(report, &from[i]))
            continue;
        if (of_state || present & 1U << from[i].when)
            chosen[n++] = &from[i];
    }
    return n;
}

struct krait_column krait_report_column_fit(const struct report_column *column, const uint64_t *wall_ns)
{
    if (column->add == krait_report_cell_wall)
        return krait_report_wall_column((enum krait_wall_state)column->offset, wall_ns);
    struct krait_column fit = column->column;
    if (wall_ns && column->beside)
        fit.drop = column->beside;
    return fit;
}

void krait_report_columns_cells(const struct report_spot *at, const struct report_column *const *chosen,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        chosen[i]->add(at, chosen[i]);
}

/* -- CSV and JSON -- */

/* The column at a place in both; NULL behind the last. */
static const struct report_column *column_at(const struct report_column *columns, uint32_t count,
                                             uint32_t place)
{
    for (uint32_t i = 0; i < count; i++) {
        if (columns[i].key && columns[i].place == place)
            return &columns[i];
    }
    return NULL;
}

/* Its name, which may be made in `name`: with --cycles, what is ns else is cycles. */
static const char *key_of(const struct report *report, const struct report_column *column,
                          char name[KRAIT_FMT_SIZE])
{
    const char *ns = strstr(column->key, "_ns");
    if (!ns || !report->clock)
        return column->key;
    snprintf(name, KRAIT_FMT_SIZE, "%.*s_cycles", (int)(ns - column->key), column->key);
    return name;
}

void krait_report_columns_csv(struct krait_buf *out, const struct report_column *columns, uint32_t count,
                              const struct report *report, const void *row)
{
    const struct report_column *column;
    char name[KRAIT_FMT_SIZE];
    for (uint32_t n = 0; (column = column_at(columns, count, n)); n++) {
        if (row && is_unknown(report, column))
            krait_buf_char(out, ',');
        else if (row)
            krait_buf_fmt(out, ",%llu", (unsigned long long)krait_report_number(row, column));
        else
            krait_buf_fmt(out, ",%s", key_of(report, column, name));
    }
}

void krait_report_columns_json(struct krait_buf *out, const struct report_column *columns, uint32_t count,
                               const struct report *report, const void *row)
{
    const struct report_column *column;
    char name[KRAIT_FMT_SIZE];
    for (uint32_t n = 0; (column = column_at(columns, count, n)); n++)
        krait_json_key_u64_or_null(out, key_of(report, column, name), !is_unknown(report, column),
                                   krait_report_number(row, column));
}
