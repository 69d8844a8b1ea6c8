/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for a terminal: right-aligned numbers, a header, and a width that fits. If it does not fit, less important
 * columns are dropped, and long names lose their middle.
 *
 * Cells are text without control characters; the table copies them.
 */
#ifndef KRAIT_VIEW_TABLE_H
#define KRAIT_VIEW_TABLE_H

#include "base/buf.h"

enum krait_style {
    KRAIT_STYLE_NONE = 0,
    KRAIT_STYLE_DIM,
    KRAIT_STYLE_BOLD,
    KRAIT_STYLE_HOT,  /* much: red */
    KRAIT_STYLE_WARM, /* something: yellow */
    KRAIT_STYLE_C,    /* of the C layer */
};

enum krait_column_flags {
    KRAIT_COLUMN_LEFT = 1 << 0,    /* aligned left; else right */
    KRAIT_COLUMN_SHORTEN = 1 << 1, /* may be shortened, down to `min` columns */
};

struct krait_column {
    const char *title;
    uint32_t flags; /* enum krait_column_flags */
    uint32_t min;
    uint32_t drop; /* if the table is too wide: 0 stays, greater numbers are dropped first */
};

struct krait_table;

/* Escape sequences for a terminal (ECMA-48, SGR). */
#define KRAIT_BOLD  "\033[1m"
#define KRAIT_DIM   "\033[2m"
#define KRAIT_RED   "\033[1;31m"
#define KRAIT_PLAIN "\033[0m"

struct krait_table_look {
    uint32_t width; /* columns of the terminal; 0: unlimited */
    bool colour;
    bool utf8;
    struct krait_buf *dropped; /* gets titles that krait_table_print drops, each once; NULL: none */
};

/* The table copies `columns`; their titles must outlive it. Returns 0 or -ENOMEM. */
int krait_table_new(struct krait_table **out, const struct krait_column *columns, uint32_t count);
void krait_table_free(struct krait_table *table);

/* Adds the next cell, row by row from the left. A blank at the end of right-aligned text stays, so that units of
 * different length align. With colour, the last `bright` bytes stand out and those before them are dim; 0: all
 * alike. krait_table_print reports a failed allocation. */
void krait_table_cell(struct krait_table *table, const char *text, enum krait_style style, size_t bright);

/* If the last added cell is shortened, its first `bytes` stay. */
void krait_table_keep(struct krait_table *table, size_t bytes);

/* Puts a line across the table before the next row: a text with a rule behind it. */
void krait_table_rule(struct krait_table *table, const char *text);

/* Whether the table has rows, and a column of this title that is not dropped. */
bool krait_table_shows(const struct krait_table *table, const struct krait_table_look *look,
                       const char *title);

/* Appends header and rows to `out`; without rows, nothing. Returns 0 or -ENOMEM. */
int krait_table_print(const struct krait_table *table, const struct krait_table_look *look,
                      struct krait_buf *out);

#endif
