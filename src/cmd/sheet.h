/* SPDX-License-Identifier: Apache-2.0
 *
 * A sheet has rows of numbers and names. It sorts them, limits them, and prints them as a table, as CSV or as JSON.
 *
 * A verb describes each column once, in an array: its heading, its key, its kind, and the getter that returns its cell of
 * a row. A kind says how each format writes a value; a verb can define kinds of its own.
 */
#ifndef KRAIT_CMD_SHEET_H
#define KRAIT_CMD_SHEET_H

#include "base/arena.h"
#include "base/err.h"
#include "base/suggest.h"
#include "cmd/func_row.h"
#include "view/table.h"

#define KRAIT_SHEET_NONE UINT64_MAX

enum { KRAIT_SHEET_KEYS = 4 }; /* most columns to sort by */

enum krait_sheet_flags {
    KRAIT_SHEET_QUIET = 1,     /* tables leave it out if all its cells are 0 or not known */
    KRAIT_SHEET_DATA = 2,      /* not in tables */
    KRAIT_SHEET_DASH = 4,      /* tables show a dash for 0, and for an unknown name or id */
    KRAIT_SHEET_BLANK = 8,     /* tables show nothing for an empty name */
    KRAIT_SHEET_ALARM = 16,    /* tables show a dash for a count of 0, and highlight any other */
    KRAIT_SHEET_NO_CSV = 32,   /* not in CSV */
    KRAIT_SHEET_NO_JSON = 64,  /* not in JSON */
    KRAIT_SHEET_LAST = 128,    /* comes last in JSON */
    KRAIT_SHEET_UNKNOWN = 256, /* none of its cells is known; not in tables */
    KRAIT_SHEET_BOUND = 512,   /* tables shorten names to 80 columns, however wide they may be */
    KRAIT_SHEET_RANKED = 1024, /* of those with the same `drop`, narrow tables drop the least sum first */
};

/* CSV and JSON order columns by this number, at most 255, and then as in the array. */
#define KRAIT_SHEET_PLACE(n) ((unsigned)(n) << 16)

struct krait_sheet_cell {
    uint64_t number;
    uint64_t whole; /* for KRAIT_SHEET_PART: the number is a part of this */
    double real;
    const char *name;   /* NULL: not known; must outlive the sheet */
    const void *object; /* for a verb's own kinds; valid until the next cell is read */
};

struct krait_sheet_column {
    struct krait_column column;
    const char *key; /* in CSV, JSON and --sort; NULL: only in tables */
    const struct krait_sheet_kind *kind;
    unsigned flags; /* enum krait_sheet_flags, KRAIT_SHEET_PLACE */
    /* The getter: returns the cell of a row; `of` is the sheet's. NULL: the kind needs none. */
    struct krait_sheet_cell (*get)(void *of, const void *row, size_t arg);
    size_t arg; /* for columns that share a getter: an offset, an index */
};

struct krait_sheet {
    const struct krait_sheet_column *columns;
    void *of; /* what getters need besides the row */
    uint32_t column_count;
    uint64_t whole; /* 100 % for KRAIT_SHEET_PERCENT, and for the colours of KRAIT_SHEET_PART */
    uint32_t order[KRAIT_SHEET_KEYS]; /* the columns by which it is sorted; narrow tables keep them */
    uint32_t order_count;
    bool lines; /* JSON has a line for each row */
    /* Tables have a line before a row, with this text; NULL: none. `rule` is NULL if none has. */
    const char *(*rule)(void *of, const void *row);
    struct krait_sheet_cell *cells;
    const void **kept; /* the rows, if they are not copied into cells; else NULL */
    uint32_t rows;
    uint32_t first; /* tables begin with this row */
    size_t cap;     /* cells, or kept rows */
    bool failed;
};

/* A cell that is being written. */
struct krait_sheet_spot {
    const struct krait_sheet *sheet;
    const struct krait_sheet_column *column;
    const void *row; /* NULL: rows are copied into cells */
    struct krait_sheet_cell cell;
};

/* A kind: how each format writes a value. */
struct krait_sheet_kind {
    void (*put)(struct krait_table *table, const struct krait_sheet_spot *at); /* NULL: not in tables */
    bool (*is_known)(const struct krait_sheet_cell *cell);                     /* NULL: always */
    /* Writes the value for CSV and JSON; add_text writes a text in that format. */
    void (*value)(struct krait_buf *out, const struct krait_sheet_cell *cell,
                  void (*add_text)(struct krait_buf *out, const char *text));
    /* For sorting; NULL: by number, the greatest first. */
    int (*compare)(const struct krait_sheet_cell *x, const struct krait_sheet_cell *y);
    /* If a cell has several values, these replace the key and `value`: they write the headings and the cells of CSV, with
     * commas between them, and the members of the open JSON object. */
    void (*heads)(struct krait_buf *out, const struct krait_sheet_column *column);
    void (*csv)(struct krait_buf *out, const struct krait_sheet_spot *at);
    void (*json)(struct krait_buf *out, const struct krait_sheet_spot *at);
};

extern const struct krait_sheet_kind krait_sheet_kind_ns, krait_sheet_kind_time, krait_sheet_kind_count,
    krait_sheet_kind_number, krait_sheet_kind_share, krait_sheet_kind_percent, krait_sheet_kind_part,
    krait_sheet_kind_real, krait_sheet_kind_name, krait_sheet_kind_bool, krait_sheet_kind_holds;

#define KRAIT_SHEET_NS      (&krait_sheet_kind_ns)   /* a duration; KRAIT_SHEET_NONE: not known */
#define KRAIT_SHEET_TIME    (&krait_sheet_kind_time) /* a moment, in ns: tables show seconds with all digits */
#define KRAIT_SHEET_COUNT   (&krait_sheet_kind_count)
#define KRAIT_SHEET_NUMBER  (&krait_sheet_kind_number) /* an id: no separators; KRAIT_SHEET_NONE: not known */
#define KRAIT_SHEET_SHARE   (&krait_sheet_kind_share)  /* in millionths; CSV and JSON have a fraction of 1 */
#define KRAIT_SHEET_PERCENT (&krait_sheet_kind_percent) /* of the sheet's whole; only in tables */
#define KRAIT_SHEET_PART    (&krait_sheet_kind_part)    /* of the cell's whole; only in tables */
#define KRAIT_SHEET_REAL    (&krait_sheet_kind_real)    /* any number; NAN: not known */
#define KRAIT_SHEET_NAME    (&krait_sheet_kind_name)
#define KRAIT_SHEET_BOOL    (&krait_sheet_kind_bool) /* not in tables; KRAIT_SHEET_NONE: not known */

/* A function in CSV and JSON, for kinds whose cells have a struct krait_func_row as their object. */
void krait_sheet_function_heads(struct krait_buf *out, const struct krait_sheet_column *column);
void krait_sheet_function_csv(struct krait_buf *out, const struct krait_sheet_spot *at);
void krait_sheet_function_json(struct krait_buf *out, const struct krait_sheet_spot *at);
#define KRAIT_SHEET_FUNCTION \
    .heads = krait_sheet_function_heads, .csv = krait_sheet_function_csv, .json = krait_sheet_function_json

/* The column that marks functions whose time contains that of dropped ones: those for which get's number is not 0. */
#define KRAIT_SHEET_HOLDS(place, get)                                              \
    {                                                                              \
        { NULL, 0, 0, 0 }, KRAIT_HOLDS_KEY, &krait_sheet_kind_holds,               \
            KRAIT_SHEET_DATA | KRAIT_SHEET_LAST | KRAIT_SHEET_PLACE(place), get, 0 \
    }

void krait_sheet_done(struct krait_sheet *sheet);
/* Appends a row: each column's cell of `row`. Sets sheet->failed if memory is out. */
void krait_sheet_add(struct krait_sheet *sheet, const void *row);
/* The same without a copy: `row` must outlive the sheet, which then cannot be sorted. A sheet has rows of one sort. */
void krait_sheet_keep(struct krait_sheet *sheet, const void *row);

/* Results of getters. */
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

/* Getters of the double, the uint64_t or the text at an offset in the row. */
struct krait_sheet_cell krait_sheet_real_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_number_at(void *of, const void *row, size_t offset);
struct krait_sheet_cell krait_sheet_name_at(void *of, const void *row, size_t offset);

/* Sorts by the column `key`, or by several with commas between them. "_ns" at the end of a key may be left out; a column is also
 * found by its heading, if no key is called so. Numbers begin with the greatest; times, names and ids with the least. Equal rows
 * are sorted by the other columns. -EINVAL: no such column; err lists the columns. */
int krait_sheet_sort(struct krait_sheet *sheet, const char *key, struct krait_err *err);
/* Makes that error from any list of columns: the caller sets `suggest` to the word that was typed, adds each column's name, and
 * sets the error, which also names the nearest. krait_sheet_no_column_set frees it and returns -EINVAL. */
struct krait_sheet_no_column {
    struct krait_suggest suggest;
    struct krait_buf names;
    struct krait_arena arena;
};
void krait_sheet_no_column_try(struct krait_sheet_no_column *no, const char *name);
int krait_sheet_no_column_set(struct krait_sheet_no_column *no, struct krait_err *err);
/* Reverses the order of the rows, which must be copied. */
void krait_sheet_reverse(struct krait_sheet *sheet);

/* Append the first `limit` rows (0: all). Return 0 or -ENOMEM. */
int krait_sheet_table(const struct krait_sheet *sheet, uint32_t limit, const struct krait_table_look *look,
                      struct krait_buf *out);
int krait_sheet_csv(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);
/* If a limit (0: none) leaves out some of `count` rows, writes a line: "5 of 1,255 rows; --limit 0 shows all". `noun` is "row". */
void krait_sheet_note_limit(struct krait_buf *notes, uint32_t limit, uint32_t count, const char *noun);
/* An array of objects. */
int krait_sheet_json(const struct krait_sheet *sheet, uint32_t limit, struct krait_buf *out);

/* Makes the filled table, which the caller frees. Returns 0 or -ENOMEM. */
int krait_sheet_table_new(struct krait_table **out, const struct krait_sheet *sheet, uint32_t limit);
/* Appends a row that is not in the sheet, as members of the open JSON object. */
void krait_sheet_members(const struct krait_sheet *sheet, const void *row, struct krait_buf *out);

#endif
