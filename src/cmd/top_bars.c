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

/* The ends of the scale, as far as there is room for them. */
static void add_scale(const struct top_bars *bars, uint64_t scale, uint32_t width, struct krait_buf *out)
{
    char text[KRAIT_FMT_SIZE];
    bool is_time = bars->sheet->columns[bars->number].kind == KRAIT_SHEET_NS;
    const char *end = is_time ? krait_fmt_ns(text, scale) : krait_fmt_count(text, scale);
    if (width > strlen(end) + 1)
        krait_buf_fmt(out, "0%*s", (int)width - 1, end);
    else if (width >= strlen(end))
        krait_buf_fmt(out, "%*s", (int)width, end);
}

/* What is more than nothing is seen. */
static uint64_t length_of(const struct top_bars *bars, uint64_t number, double scale, unsigned fine)
{
    uint64_t length = (uint64_t)((double)number * scale * fine + 0.5);
    unsigned least = !number ? 0 : bars->beside ? fine : 1;
    return KRAIT_MAX(length, (uint64_t)least);
}

static void add_bar(uint64_t length, unsigned fine, struct krait_buf *out)
{
    static const char *const parts[EIGHTHS] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    for (uint64_t i = 0; i < length / fine; i++)
        krait_buf_str(out, fine > 1 ? "█" : "=");
    krait_buf_str(out, parts[length % fine]);
}

/* `scale`: columns for 1. */
static void add_row(const struct top_bars *bars, uint32_t row, double scale,
                    const struct krait_table_look *look, struct krait_buf *out)
{
    unsigned fine = look->utf8 ? EIGHTHS : 1;
    if (look->colour)
        top_colour_begin(out, top_colour_of(bars->colours, text_of(bars, row, bars->module),
                                            text_of(bars, row, bars->file), text_of(bars, row, bars->name)));
    add_bar(length_of(bars, number_of(bars, row, bars->number), scale, fine), fine, out);
    krait_buf_str(out, look->colour ? KRAIT_PLAIN : "");
}

int top_bars_text(const struct top_bars *bars, const struct krait_table_look *look, struct krait_buf *out)
{
    uint32_t whole = look->width ? look->width : TOP_WIDTH_USUAL;
    uint32_t most = whole * (bars->beside ? 14 : 11) / 20;
    struct krait_table_look plain = { .width = KRAIT_MAX(most, (uint32_t)TABLE_LEAST), .utf8 = look->utf8 };
    KRAIT_AUTO_BUF table = { 0 };
    int rc = krait_table_print(bars->table, &plain, &table);
    const char *line = table.data ? table.data : "";
    uint64_t scale = scale_of(bars);
    uint32_t taken = krait_width_of(line, strcspn(line, "\n")) + GAP;
    uint32_t width = whole > taken ? whole - taken : 1;
    for (uint32_t i = 0; *line && !rc; i++) {
        size_t n = strcspn(line, "\n");
        bool is_head = i == 0;
        krait_buf_str(out, is_head && look->colour ? KRAIT_BOLD : "");
        krait_buf_fmt(out, "%.*s%*s", (int)n, line, GAP, "");
        if (is_head)
            add_scale(bars, scale, width, out);
        else
            add_row(bars, bars->sheet->first + i - 1, (double)width / (double)scale, look, out);
        krait_buf_str(out, is_head && look->colour ? KRAIT_PLAIN : "");
        top_end_line(out);
        line += n + (line[n] == '\n');
    }
    return rc ? rc : out->failed ? -ENOMEM : 0;
}
