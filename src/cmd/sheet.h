/* SPDX-License-Identifier: Apache-2.0
 *
 * A sheet: rows of numbers and names that are sorted, cut, and printed as a table for people, as CSV or as JSON.
 *
 * A verb describes each column once, in an array: its heading, its key, its unit, and the function that gets its cell
 * from a row.
 */
#ifndef KRAIT_CMD_SHEET_H
#define KRAIT_CMD_SHEET_H

#include "base/err.h"
#include "view/table.h"

enum krait_sheet_kind {
    KRAIT_SHEET_NS,
    KRAIT_SHEET_TIME, /* a moment, in ns: tables have seconds with all digits */
    KRAIT_SHEET_COUNT,
    KRAIT_SHEET_NUMBER, /* an id: no separators; KRAIT_SHEET_NONE is not known */
    KRAIT_SHEET_SHARE,  /* in millionths; programs have a fraction of 1 */
    KRAIT_SHEET_REAL,   /* any number; NAN is not known */
    KRAIT_SHEET_NAME,
    KRAIT_SHEET_BOOL, /* not in tables */
};

#define KRAIT_SHEET_NONE UINT64_MAX

enum krait_sheet_flags {
    KRAIT_SHEET_QUIET = 1,  /* tables leave it out when all its numbers are 0, or not known */
    KRAIT_SHEET_DATA = 2,   /* not in tables */
    KRAIT_SHEET_DASH = 4,   /* tables have a dash for 0, or for a name or id that is not known */
    KRAIT_SHEET_BLANK = 8,  /* tables have nothing for an empty name */
    KRAIT_SHEET_ALARM = 16, /* tables have a dash for a count of 0, and stress any other */
};

struct krait_sheet_cell {
    uint64_t number;
    double real;
    const char *name; /* NULL: not known; must outlive the sheet */
};

struct krait_sheet_column {
    struct krait_column column;
    const char *key; /* in CSV, JSON and --sort; NULL: in tables alone */
    enum krait_sheet_kind kind;
    unsigned flags;
    /* The cell of a row; `of` is the sheet's. */
    struct krait_sheet_cell (*get)(void *of, const void *row, size_t arg);
    size_t arg; /* tells apart columns that share a getter: an offset, an index */
};

struct krait_sheet {
    const struct krait_sheet_column *columns;
    void *of; /* what getters need besides the row */
    uint32_t column_count;
    struct krait_sheet_cell *cells;
    uint32_t rows;
    size_t cap; /* cells */
    bool failed;
};

void krait_sheet_done(struct krait_sheet *sheet);
/* Appends a row: the cell that each column gets from `row`. A failed allocation shows in sheet->failed. */
void krait_sheet_add(struct krait_sheet *sheet, const void *row);

/* A getter's result. */
static inline struct krait_sheet_cell krait_sheet_number(uint64_t number)
{
    return (struct krait_sheet_cell){ .number = number };
}

static inline struct krait_sheet_cell krait_sheet_name(const char *name)
{
    return (struct krait_sheet_cell){ .name = name };
}

/* Getters: the uint64_t, the double, or the text, at an offset in the row. */
struct krait_sheet_cell krait_sheet_real_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_number_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_name_at(void *of, const void *row, size_t offset);

/* By a column, or by several with commas between; their keys, also without _ns: numbers the greatest first,
 * times, names and ids from the least; then by the other columns. -EINVAL: no such column; err lists those
 * that there are. */
int krait_sheet_sort(struct krait_sheet *sheet, const char *key, struct krait_err *err);

/* Each appends the first `limit` rows (0: all). Return 0 or -ENOMEM. */
int krait_sheet_table(const struct krait_sheet *sheet, uint32_t limit, const struct krait_table_look *look,
                      struct krait_buf *out);
int krait_sheet_csv(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);
/* An array of objects. */
int krait_sheet_json(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);

#endif
