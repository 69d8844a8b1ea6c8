/* SPDX-License-Identifier: Apache-2.0
 *
 * A sheet: rows of numbers and names that are sorted, cut, and printed as a table for people, as CSV or as JSON.
 *
 * A verb describes each column once, in an array: its heading, its key, its kind, and the function that gets its cell
 * from a row. A verb with values of its own adds a kind for them: how each format writes them.
 */
#ifndef KRAIT_CMD_SHEET_H
#define KRAIT_CMD_SHEET_H

#include "base/err.h"
#include "cmd/func_row.h"
#include "view/table.h"

#define KRAIT_SHEET_NONE UINT64_MAX

enum krait_sheet_flags {
    KRAIT_SHEET_QUIET = 1,     /* tables leave it out when all its numbers are 0, or not known */
    KRAIT_SHEET_DATA = 2,      /* not in tables */
    KRAIT_SHEET_DASH = 4,      /* tables have a dash for 0, or for a name or id that is not known */
    KRAIT_SHEET_BLANK = 8,     /* tables have nothing for an empty name */
    KRAIT_SHEET_ALARM = 16,    /* tables have a dash for a count of 0, and stress any other */
    KRAIT_SHEET_NO_CSV = 32,   /* its key is of JSON alone */
    KRAIT_SHEET_NO_JSON = 64,  /* its key is of CSV alone */
    KRAIT_SHEET_LAST = 128,    /* JSON has it behind the others */
    KRAIT_SHEET_UNKNOWN = 256, /* no cell of it is known; not in tables */
};

/* In CSV and JSON columns stand by this, then as in the array; the greatest is 255. */
#define KRAIT_SHEET_PLACE(n) ((unsigned)(n) << 16)

struct krait_sheet_cell {
    uint64_t number;
    uint64_t whole; /* of KRAIT_SHEET_PART: what the number is a part of */
    double real;
    const char *name;   /* NULL: not known; must outlive the sheet */
    const void *object; /* of kinds with values of their own; until the next cell is got */
};

struct krait_sheet_column {
    struct krait_column column;
    const char *key; /* in CSV, JSON and --sort; NULL: in tables alone */
    const struct krait_sheet_kind *kind;
    unsigned flags; /* enum krait_sheet_flags, KRAIT_SHEET_PLACE */
    /* The cell of a row; `of` is the sheet's. NULL: the kind does without. */
    struct krait_sheet_cell (*get)(void *of, const void *row, size_t arg);
    size_t arg; /* tells apart columns that share a getter: an offset, an index */
};

struct krait_sheet {
    const struct krait_sheet_column *columns;
    void *of; /* what getters need besides the row */
    uint32_t column_count;
    uint64_t whole; /* what KRAIT_SHEET_PERCENT is of, and the colours of KRAIT_SHEET_PART */
    bool lines;     /* JSON has a line for each row */
    struct krait_sheet_cell *cells;
    const void **kept; /* rows that are not copied; NULL: cells are */
    uint32_t rows;
    uint32_t first; /* tables begin with this row */
    size_t cap;     /* cells, or kept rows */
    bool failed;
};

/* A cell on its way into a format. */
struct krait_sheet_spot {
    const struct krait_sheet *sheet;
    const struct krait_sheet_column *column;
    const void *row; /* NULL: rows were copied */
    struct krait_sheet_cell cell;
};

/* How each format writes a value. */
struct krait_sheet_kind {
    void (*put)(struct krait_table *table, const struct krait_sheet_spot *at); /* NULL: not in tables */
    bool (*is_known)(const struct krait_sheet_cell *cell);                     /* NULL: all are */
    /* In CSV and JSON; add_text writes a text as the format does. */
    void (*value)(struct krait_buf *out, const struct krait_sheet_cell *cell,
                  void (*add_text)(struct krait_buf *out, const char *text));
    /* For sorting; NULL: by number, the greatest first. */
    int (*compare)(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y);
    /* What is more than one value, in the place of the key and `value`: names of cells of CSV and the cells, with commas
     * between; and members of the open object. */
    void (*heads)(struct krait_buf *out, const struct krait_sheet_column *column);
    void (*csv)(struct krait_buf *out, const struct krait_sheet_spot *at);
    void (*json)(struct krait_buf *out, const struct krait_sheet_spot *at);
};

extern const struct krait_sheet_kind krait_sheet_kind_ns, krait_sheet_kind_time, krait_sheet_kind_count,
    krait_sheet_kind_number, krait_sheet_kind_share, krait_sheet_kind_percent, krait_sheet_kind_part,
    krait_sheet_kind_real, krait_sheet_kind_name, krait_sheet_kind_bool, krait_sheet_kind_holds;

#define KRAIT_SHEET_NS    (&krait_sheet_kind_ns)
#define KRAIT_SHEET_TIME  (&krait_sheet_kind_time) /* a moment, in ns: tables have seconds with all digits */
#define KRAIT_SHEET_COUNT (&krait_sheet_kind_count)
#define KRAIT_SHEET_NUMBER \
    (&krait_sheet_kind_number) /* an id: no separators; KRAIT_SHEET_NONE is not known */
#define KRAIT_SHEET_SHARE   (&krait_sheet_kind_share)   /* in millionths; programs have a fraction of 1 */
#define KRAIT_SHEET_PERCENT (&krait_sheet_kind_percent) /* of the sheet's whole; in tables alone */
#define KRAIT_SHEET_PART    (&krait_sheet_kind_part)    /* of the cell's whole; in tables alone */
#define KRAIT_SHEET_REAL    (&krait_sheet_kind_real)    /* any number; NAN is not known */
#define KRAIT_SHEET_NAME    (&krait_sheet_kind_name)
#define KRAIT_SHEET_BOOL    (&krait_sheet_kind_bool) /* not in tables; KRAIT_SHEET_NONE is not known */

/* A function in CSV and JSON, for kinds whose cells have a struct krait_func_row as object. */
void krait_sheet_function_heads(struct krait_buf *out, const struct krait_sheet_column *column);
void krait_sheet_function_csv(struct krait_buf *out, const struct krait_sheet_spot *at);
void krait_sheet_function_json(struct krait_buf *out, const struct krait_sheet_spot *at);
#define KRAIT_SHEET_FUNCTION \
    .heads = krait_sheet_function_heads, .csv = krait_sheet_function_csv, .json = krait_sheet_function_json

/* The column that says which functions hold the time of dropped ones: those for which get's number is not 0. */
#define KRAIT_SHEET_HOLDS(place, get)                                              \
    {                                                                              \
        { NULL, 0, 0, 0 }, KRAIT_HOLDS_KEY, &krait_sheet_kind_holds,               \
            KRAIT_SHEET_DATA | KRAIT_SHEET_LAST | KRAIT_SHEET_PLACE(place), get, 0 \
    }

void krait_sheet_done(struct krait_sheet *sheet);
/* Appends a row: the cell that each column gets from `row`. A failed allocation shows in sheet->failed. */
void krait_sheet_add(struct krait_sheet *sheet, const void *row);
/* The same without a copy: `row` must outlive the sheet, which then cannot be sorted. Rows are all of one way. */
void krait_sheet_keep(struct krait_sheet *sheet, const void *row);

/* A getter's result. */
static inline struct krait_sheet_cell krait_sheet_number(uint64_t number)
{
    return (struct krait_sheet_cell){ .number = number };
}

static inline struct krait_sheet_cell krait_sheet_real(double real)
{
    return (struct krait_sheet_cell){ .real = real };
}

static inline struct krait_sheet_cell krait_sheet_name(const char *name)
{
    return (struct krait_sheet_cell){ .name = name };
}

static inline struct krait_sheet_cell krait_sheet_object(const void *object)
{
    return (struct krait_sheet_cell){ .object = object };
}

/* Getters: the uint64_t, the double, or the text, at an offset in the row. */
struct krait_sheet_cell krait_sheet_real_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_number_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_name_at(void *of, const void *row, size_t offset);

/* By a column, or by several with commas between; their keys, also without _ns: numbers the greatest first,
 * times, names and ids from the least; then by the other columns. -EINVAL: no such column; err lists those
 * that there are. */
int krait_sheet_sort(struct krait_sheet *sheet, const char *key, struct krait_err *err);
/* The last row becomes the first; rows were copied. */
void krait_sheet_reverse(struct krait_sheet *sheet);

/* Each appends the first `limit` rows (0: all). Return 0 or -ENOMEM. */
int krait_sheet_table(const struct krait_sheet *sheet, uint32_t limit, const struct krait_table_look *look,
                      struct krait_buf *out);
int krait_sheet_csv(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);
/* An array of objects. */
int krait_sheet_json(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);

/* The filled table, the caller's to free. Returns 0 or -ENOMEM. */
int krait_sheet_table_new(struct krait_table **out, const struct krait_sheet *sheet, uint32_t limit);
/* What JSON has of a row that is not in the sheet, as members of the open object. */
void krait_sheet_members(const struct krait_sheet *sheet, const void *row, struct krait_buf *out);

#endif
