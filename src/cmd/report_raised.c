/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --sort raised` and `--exception`: which exceptions left what, of rows and of nodes of the tree.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

uint32_t krait_report_raised_filter(struct krait_raised *items, uint32_t count,
                                    const struct krait_match *match, uint64_t *total)
{
    uint32_t kept = 0;
    *total = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (match && !krait_match_text(match, items[i].type))
            continue;
        *total += items[i].count;
        items[kept++] = items[i];
    }
    return kept;
}

/* -- a column: "ValueError 12, KeyError 3", the most frequent first -- */

static void put_types(struct krait_table *table, const struct krait_sheet_spot *at)
{
    const struct report_raised *raised = at->cell.object;
    KRAIT_AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < raised->count; i++) {
        char number[KRAIT_FMT_SIZE];
        krait_buf_str(&text, i ? ", " : "");
        krait_fmt_safe(&text, raised->items[i].type);
        krait_buf_fmt(&text, " %s", krait_fmt_count(number, raised->items[i].count));
    }
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_NONE, 0);
}

static void csv_types(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct report_raised *raised = at->cell.object;
    KRAIT_AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < raised->count; i++)
        krait_buf_fmt(&text, "%s%s %llu", i ? ", " : "", raised->items[i].type,
                      (unsigned long long)raised->items[i].count);
    krait_csv_cstr(out, text.data ? text.data : "");
    out->failed |= text.failed;
}

static void json_types(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    const struct report_raised *raised = at->cell.object;
    krait_json_key_open(out, at->column->key, '{');
    for (uint32_t i = 0; i < raised->count; i++)
        krait_json_key_u64(out, raised->items[i].type, raised->items[i].count);
    krait_buf_char(out, '}');
}

const struct krait_sheet_kind krait_report_kind_raised = { .put = put_types,
                                                           .csv = csv_types,
                                                           .json = json_types };

/* -- of a tree -- */

int krait_report_raised_tree(struct report_raised **out, const struct report *report,
                             const struct krait_calltree *tree)
{
    size_t n, at = 0;
    KRAIT_AUTO_FREE struct krait_raises *raises = krait_raised_sorted(&tree->raised, report->trace, &n);
    /* the nodes, and behind them what left them */
    struct report_raised *of =
        calloc(1, ((size_t)tree->count + 1) * sizeof(*of) + (n + 1) * sizeof(struct krait_raised));
    if (!raises || !of) {
        free(of);
        return -ENOMEM;
    }
    struct krait_raised *items = (struct krait_raised *)(of + tree->count + 1);
    for (uint32_t i = 0; i < tree->count; i++) {
        of[i].items = items + at;
        for (; at < n && raises[at].group == i; at++)
            items[at] = raises[at].raised;
        uint32_t count = (uint32_t)(items + at - of[i].items);
        of[i].count = krait_report_raised_filter(of[i].items, count, report->exception, &of[i].total);
    }
    *out = of;
    return 0;
}
