/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/top.h"

bool top_scroll_move(struct top_scroll *scroll, int key)
{
    int64_t page = KRAIT_MAX(scroll->shown, 1u), row = scroll->row, first = scroll->first;
    const struct {
        int key;
        int64_t row, first;
    } moves[] = {
        { TOP_KEY_UP, row - 1, first },
        { TOP_KEY_DOWN, row + scroll->selects, first }, /* the first one, if none was */
        { TOP_KEY_PAGE_UP, row - page, first - page },
        { TOP_KEY_PAGE_DOWN, row + page, first + page },
        { TOP_KEY_HOME, 0, 0 },
        { TOP_KEY_END, UINT32_MAX, first },
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(moves); i++) {
        if (key != moves[i].key)
            continue;
        scroll->row = (uint32_t)KRAIT_MIN(KRAIT_MAX(moves[i].row, 0), UINT32_MAX);
        scroll->first = (uint32_t)KRAIT_MAX(moves[i].first, 0);
        scroll->selects = scroll->moved = true;
        return true;
    }
    return false;
}

void top_scroll_leave(struct top_scroll *scroll)
{
    *scroll = (struct top_scroll){ 0 };
}

/* The row is where its key is; if that is gone, another takes its place. */
static void follow(struct top_scroll *scroll, const struct krait_sheet *sheet, uint32_t column)
{
    const struct krait_sheet_cell *cells = sheet->cells + column;
    for (uint32_t i = 0; i < scroll->rows && !scroll->moved; i++) {
        if (cells[(size_t)i * sheet->column_count].number == scroll->key) {
            scroll->row = i;
            break;
        }
    }
    scroll->row = KRAIT_MIN(scroll->row, scroll->rows - 1);
    scroll->key = cells[(size_t)scroll->row * sheet->column_count].number;
    scroll->moved = false;
}

void top_scroll_fit(struct top_scroll *scroll, const struct krait_sheet *sheet, uint32_t column,
                    uint32_t rows, uint32_t shown)
{
    scroll->rows = rows;
    scroll->shown = KRAIT_MIN(shown, rows);
    if (!rows || !scroll->selects)
        return;
    follow(scroll, sheet, column);
    scroll->first = KRAIT_MIN(scroll->first, rows - scroll->shown);
    scroll->first = KRAIT_MIN(scroll->first, scroll->row);
    scroll->first = KRAIT_MAX(scroll->first + scroll->shown, scroll->row + 1) - scroll->shown;
}
