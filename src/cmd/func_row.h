/* SPDX-License-Identifier: Apache-2.0
 *
 * A function in a row of output: its label in a table, its keys in JSON, its columns in CSV.
 */
#ifndef KRAIT_CMD_FUNC_ROW_H
#define KRAIT_CMD_FUNC_ROW_H

#include "base/buf.h"
#include "trace/trace.h"

/* "module.name", safe for a terminal, with " (C)" after functions written in C. *bright is the length of the
 * name itself in bytes, at the end: tables dim what comes before it. */
void krait_func_row_label(struct krait_buf *out, const char *module, const char *name,
                          enum krait_func_kind kind, size_t *bright);
/* The mark behind the name of what holds the time of dropped functions; *bright grows by it. */
void krait_func_row_mark(struct krait_buf *out, bool holds_dropped, size_t *bright);
/* A function's label with its mark. */
void krait_func_row_marked(struct krait_buf *out, const struct krait_func *func, size_t *bright);

/* The value of "kind": "c" or "python". Rows that are no functions have other words. */
const char *krait_func_row_kind(enum krait_func_kind kind);

/* What a row is of, as JSON and CSV have it: its columns are said once, in func_row.c. */
struct krait_func_row {
    const char *name, *module, *file;
    uint32_t line;
    const char *kind;   /* krait_func_row_kind's, or another word where it is no function */
    bool holds_dropped; /* its time holds that of dropped functions */
};

/* The row of a function, or of anything with its fields. */
#define KRAIT_FUNC_ROW(of)                                                      \
    ((struct krait_func_row){ (of)->name, (of)->module, (of)->file, (of)->line, \
                              krait_func_row_kind((of)->kind), (of)->holds_dropped })

/* The key of what holds the time of dropped functions. */
#define KRAIT_HOLDS_KEY "holds_dropped"

/* Members of an open object; "holds_dropped":true follows other members, or nothing where it is false. */
void krait_func_row_json(struct krait_buf *out, struct krait_func_row row);
void krait_func_row_json_holds(struct krait_buf *out, bool holds_dropped);

/* Cells with commas between. `row` NULL: the heads. */
void krait_func_row_csv(struct krait_buf *out, const struct krait_func_row *row);

#endif
