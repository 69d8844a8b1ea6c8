/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report` in its parts: the rows of a profile (report_rows.c), the call tree and relatives
 * (report_tree.c).
 */
#ifndef KRAIT_CMD_REPORT_H
#define KRAIT_CMD_REPORT_H

#include "analysis/match.h"
#include "analysis/profile.h"
#include "base/buf.h"
#include "cmd/select.h"
#include "view/table.h"

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON };

struct report_options {
    struct krait_select select;
    const char *by, *sort, *limit, *filter, *callers, *callees, *min_share;
    bool tree, csv, json, fold_imports;
};

/* What every part needs. */
struct report {
    const struct report_options *options;
    const struct krait_trace *trace;
    struct krait_range range;
    enum krait_profile_by by;
    enum report_format format;
    uint32_t limit;             /* rows; 0: all */
    double min_share;           /* percent of the tree's time below which a branch is left out */
    struct krait_match *filter; /* NULL: all */
    struct krait_match *asked;  /* of --callers and --callees; NULL without */
    struct krait_table_look look;
    struct krait_buf out;   /* stdout's text */
    struct krait_buf notes; /* stderr's, one line each */
    char damage[1024];
};

/* Each fills report->out and notes. Returns 0 or a negative errno with err set. */
int krait_report_rows(struct report *report, struct krait_err *err);
int krait_report_tree(struct report *report, struct krait_err *err);
int krait_report_relatives(struct report *report, struct krait_err *err);

/* Parts that several outputs share. */
void krait_report_json_func(struct krait_buf *out, const char *name, const char *module, const char *file,
                            uint32_t line, enum krait_func_kind kind);
void krait_report_json_u64(struct krait_buf *out, const char *key, uint64_t n);
/* Opens the object with what is said of the trace, and closes it with what is missing from it. */
void krait_report_json_open(struct report *report, uint64_t self_ns);
void krait_report_json_close(struct report *report);
void krait_report_csv_text(struct krait_buf *out, const char *text);
/* "module.name", harmless, with " (C)" behind functions written in C; *bright is how many bytes at its end
 * are the name itself. */
void krait_report_label(struct krait_buf *out, const char *module, const char *name,
                        enum krait_func_kind kind, size_t *bright);
enum krait_style krait_report_heat(uint64_t part, uint64_t whole);
void krait_report_cell_where(struct krait_table *table, const char *file, uint32_t line);
void krait_report_cell_ns(struct krait_table *table, uint64_t ns);
void krait_report_cell_count(struct krait_table *table, uint64_t n);
void krait_report_cell_share(struct krait_table *table, uint64_t part, uint64_t whole);

#endif
