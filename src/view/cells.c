/* SPDX-License-Identifier: Apache-2.0 */
#include "view/cells.h"

#include "base/fmt.h"

#include <string.h>

static enum krait_style heat(uint64_t part, uint64_t whole)
{
    double share = whole ? (double)part / (double)whole : 0;
    return share >= 0.10 ? KRAIT_STYLE_HOT : share >= 0.03 ? KRAIT_STYLE_WARM : KRAIT_STYLE_NONE;
}

void krait_cell_change_ns(struct krait_table *table, const char *sign, uint64_t ns, enum krait_style style)
{
    char text[KRAIT_FMT_SIZE], cell[KRAIT_FMT_SIZE + 16];
    krait_fmt_ns(text, ns);
    size_t n = strlen(text);
    bool is_short = n > 2 && text[n - 2] == ' '; /* "s" and "h" begin where "ms" does */
    snprintf(cell, sizeof(cell), "%s%s%s", sign, text, is_short ? " " : "");
    krait_table_cell(table, cell, style, 0);
}

void krait_cell_ns(struct krait_table *table, uint64_t ns)
{
    krait_cell_change_ns(table, "", ns, KRAIT_STYLE_NONE);
}

void krait_cell_count(struct krait_table *table, uint64_t n)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_fmt_count(text, n), KRAIT_STYLE_NONE, 0);
}

void krait_cell_share(struct krait_table *table, uint64_t part, uint64_t whole)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_fmt_share(text, part, whole), heat(part, whole), 0);
}

void krait_cell_where(struct krait_table *table, const char *file, uint32_t line)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, file);
    if (line && *file)
        krait_buf_fmt(&text, ":%u", line);
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_DIM, 0);
}

void krait_cell_part(struct krait_table *table, uint64_t part, uint64_t whole, uint64_t all)
{
    char text[KRAIT_FMT_SIZE];
    double share = whole ? 100 * (double)part / (double)whole : 0;
    if (!part)
        krait_table_cell(table, "-", KRAIT_STYLE_DIM, 0);
    else {
        snprintf(text, sizeof(text), share < 1 ? "<1%%" : "%.0f%%", share);
        krait_table_cell(table, text, heat(part, all), 0);
    }
}
