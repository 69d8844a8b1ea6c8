/* SPDX-License-Identifier: Apache-2.0
 *
 * Bars that grow with the number of a row: a table, with a bar behind each row.
 *
 *     function            calls  0                                  20,000
 *     time.perf_counter  12,604  ███████████████████████▍
 *     spin                    9  ▏
 *
 * The scale ends at 1, 2 or 5 times a power of 10. It changes seldom, so that one sees the bars grow.
 */
#include "base/fmt.h"
#include "cmd/top.h"
#include "view/width.h"

#include <string.h>

enum { GAP = 2, EIGHTHS = 8, TABLE_LEAST = 20 };

static uint64_t number_of(const struct top_bars *bars, uint32_t row, uint32_t column)
{
    return bars->sheet->cells[(size_t)row * bars->sheet->column_count + column].number;
}

static const char *text_of(const struct top_bars *bars, uint32_t row, uint32_t column)
{
    const char *text = bars->sheet->cells[(size_t)row * bars->sheet->column_count + column].name;
    return text ? text : "";
}

/* What a bar of the whole width stands for: of all rows, so that scrolling does not change it. */
static uint64_t scale_of(const struct top_bars *bars)
{
    static const uint64_t steps[] = { 1, 2, 5 };
    uint64_t most = 1, power = 1;
    for (uint32_t row = 0; row < bars->sheet->rows; row++)
        most = KRAIT_MAX(most, number_of(bars, row, bars->number));
    for (; power < UINT64_MAX / 100; power *= 10) {
        for (size_t i = 0; i < KRAIT_ARRAY_LEN(steps); i++) {
            if (steps[i] * power >= most)
                return steps[i] * power;
        }
    }
    return most;
}

static const char *end_of(const struct top_bars *bars, uint64_t scale, char *text)
{
    bool is_time = bars->sheet->columns[bars->number].kind == KRAIT_SHEET_NS;
    return is_time ? krait_fmt_ns(text, scale) : krait_fmt_count(text, scale);
}

/* The table leaves room for both ends of the scale. */
static uint32_t table_width(const struct top_bars *bars, uint32_t whole, uint64_t scale)
{
    char text[KRAIT_FMT_SIZE];
    uint32_t most = whole * (bars->beside ? 14 : 11) / 20;
    uint32_t taken = (uint32_t)strlen(end_of(bars, scale, text)) + 2 + GAP;
    return KRAIT_MAX(KRAIT_MIN(most, whole > taken ? whole - taken : 0), (uint32_t)TABLE_LEAST);
}

/* The ends of the scale, as far as there is room for them. */
static void add_scale(const struct top_bars *bars, uint64_t scale, uint32_t width, struct krait_buf *out)
{
    char text[KRAIT_FMT_SIZE];
    const char *end = end_of(bars, scale, text);
    if (width > strlen(end) + 1)
        krait_buf_fmt(out, "0%*s", (int)width - 1, end);
    else if (width >= strlen(end))
        krait_buf_fmt(out, "%*s", (int)width, end);
}

/* What is more than nothing is seen. */
static uint64_t length_of(uint64_t number, double scale, unsigned fine)
{
    uint64_t length = (uint64_t)((double)number * scale * fine + 0.5);
    return KRAIT_MAX(length, (uint64_t)(number > 0));
}

static void add_bar(uint64_t length, unsigned fine, struct krait_buf *out)
{
    static const char *const parts[EIGHTHS] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    for (uint64_t i = 0; i < length / fine; i++)
        krait_buf_str(out, fine > 1 ? "█" : "=");
    krait_buf_str(out, parts[length % fine]);
}

/* Beside a clock the line is in the bar's colour too: the bar may be thin. `scale`: columns for 1. */
static void add_row(const struct top_bars *bars, uint32_t row, const char *line, double scale,
                    const struct krait_table_look *look, struct krait_buf *out)
{
    unsigned fine = look->utf8 ? EIGHTHS : 1;
    uint32_t colour = top_colour_of(bars->colours, text_of(bars, row, bars->module),
                                    text_of(bars, row, bars->file), text_of(bars, row, bars->name));
    if (look->colour && bars->beside)
        top_colour_begin(out, colour);
    krait_buf_fmt(out, "%.*s%*s", (int)strcspn(line, "\n"), line, GAP, "");
    if (look->colour && !bars->beside)
        top_colour_begin(out, colour);
    add_bar(length_of(number_of(bars, row, bars->number), scale, fine), fine, out);
    krait_buf_str(out, look->colour ? KRAIT_PLAIN : "");
}

static void add_head(const struct top_bars *bars, const char *line, uint64_t scale, uint32_t width,
                     const struct krait_table_look *look, struct krait_buf *out)
{
    krait_buf_str(out, look->colour ? KRAIT_BOLD : "");
    krait_buf_fmt(out, "%.*s%*s", (int)strcspn(line, "\n"), line, GAP, "");
    add_scale(bars, scale, width, out);
    krait_buf_str(out, look->colour ? KRAIT_PLAIN : "");
}

int top_bars_text(const struct top_bars *bars, const struct krait_table_look *look, struct krait_buf *out)
{
    uint32_t whole = look->width ? look->width : TOP_WIDTH_USUAL;
    uint64_t scale = scale_of(bars);
    struct krait_table_look plain = { .width = table_width(bars, whole, scale), .utf8 = look->utf8 };
    KRAIT_AUTO_BUF table = { 0 };
    int rc = krait_table_print(bars->table, &plain, &table);
    const char *line = table.data ? table.data : "";
    uint32_t taken = krait_width_of(line, strcspn(line, "\n")) + GAP;
    uint32_t width = whole > taken ? whole - taken : 1;
    for (uint32_t i = 0; *line && !rc; i++) {
        if (i == 0)
            add_head(bars, line, scale, width, look, out);
        else
            add_row(bars, bars->sheet->first + i - 1, line, (double)width / (double)scale, look, out);
        top_end_line(out);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return rc ? rc : out->failed ? -ENOMEM : 0;
}
