/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report` in its parts: the rows of a profile (report_rows.c), the call tree (report_tree.c), callers and
 * callees (report_relatives.c), what threads did (report_wall.c), why calls took so long (report_why.c), marks
 * (report_marks.c), lines of samples (report_lines.c), tasks (report_tasks.c), spans (report_spans.c), what changed
 * between recordings (report_diff.c), and what these share (report_columns.c, report_shared.c).
 */
#ifndef KRAIT_CMD_REPORT_H
#define KRAIT_CMD_REPORT_H

#include "analysis/calltree.h"
#include "analysis/match.h"
#include "analysis/profile.h"
#include "base/buf.h"
#include "cmd/select.h"
#include "cmd/sheet.h"
#include "view/cells.h"

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON };

struct report_options {
    struct krait_select select;
    struct krait_opt_list diff;
    const char *by, *key, *at, *sort, *limit, *filter, *exception, *callers, *callees, *why, *min_share;
    bool tree, csv, json, fold_imports, cycles, compensate;
};

struct report;

/* What `--by` shows of tracks other than calls. */
struct report_of_tracks {
    const char *by;
    int (*make)(struct report *report, struct krait_trace *trace, struct krait_err *err);
    bool sorts, needs_calls; /* takes --sort; needs a trace that has calls */
    bool is_tree;            /* of --tree */
    bool sums_parts;         /* of struct krait_select */
};

/* What every part needs. */
struct report {
    const struct report_options *options;
    const struct krait_trace *trace;
    struct krait_range range;
    uint64_t zero_ns;                         /* times after the start count from it */
    const struct report_of_tracks *of_tracks; /* rows are of tracks, no functions; NULL: they are functions */
    enum krait_profile_by by;
    enum report_format format;
    uint32_t limit;                /* rows; 0: all */
    double min_share;              /* percent of the tree's time below which a branch is left out */
    struct krait_match *filter;    /* NULL: all */
    struct krait_match *exception; /* only what such an exception left; NULL: all */
    struct krait_match *asked;     /* of --callers, --callees and --why; NULL without */
    struct krait_wall *wall;       /* what threads did; NULL: the trace does not say */
    bool corrected;                /* what recording took is taken off: analysis/cost.h */
    struct krait_wall *clock;      /* of --cycles: what is called ns is cycles; NULL without */
    struct krait_table_look look;
    struct krait_buf out;   /* stdout's text */
    struct krait_buf notes; /* stderr's, one line each */
    char damage[1024];
};

/* The tree that the options ask for, of --tree, --callers and --callees. Returns 0 or a negative errno with err set. */
int krait_report_tree_new(struct krait_calltree **tree, struct report *report, struct krait_err *err);

/* Each fills report->out and notes. Returns 0 or a negative errno with err set. */
int krait_report_rows(struct report *report, struct krait_err *err);
int krait_report_tree(struct report *report, struct krait_err *err);
int krait_report_relatives(struct report *report, struct krait_err *err);
int krait_report_why(struct report *report, struct krait_err *err);
/* They find the trace's tracks first. */
int krait_report_marks(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_await(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_tasks(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_lines(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_spans(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_span_tree(struct report *report, struct krait_trace *trace, struct krait_err *err);
/* Whether --by span is of a track, and of which kind of spans it is. */
bool krait_report_is_spans(const struct report *report, uint32_t track);
const char *krait_report_span_kind(const struct krait_track *track);
/* Walks the tracks that `takes` takes, in one pass, and keeps the first damage. `takes` is asked of each of the trace's
 * tracks, by index: 1 takes it, 0 does not; a negative errno ends all, and is returned, as is what `fn` returns. */
typedef int krait_report_takes_fn(void *ctx, uint32_t track);
int krait_report_walk_tracks(struct report *report, struct krait_range range, krait_report_takes_fn *takes,
                             krait_batch_fn *fn, void *ctx);
/* Prints their rows in the format that is asked for; `what` they are: "marks". Returns 0 or -ENOMEM. */
int krait_report_sheet(struct report *report, const struct krait_sheet *sheet, const char *what);

/* Of several recordings, each by itself; report->trace is NULL (report_diff.c). */
int krait_report_diff(struct report *report, char **paths, size_t count, struct krait_err *err);
/* -EINVAL where an option does not go with --diff. */
int krait_report_check_diff(const struct report_options *options, struct krait_err *err);

/* What threads did (report_wall.c). Loading it is for traces that say it, and puts report->wall; what keeps
 * it from that is a note; with --cycles it puts report->clock. Returns 0, or with err set -ENOMEM or, with
 * --cycles, -ENODATA: frequencies are not told. */
int krait_report_wall_load(struct report *report, struct krait_err *err);
/* Whether people are shown a state: there was some of it. Where waits for the GIL alone are known, what is
 * not known is no state. */
bool krait_report_wall_shows(const struct report *report, enum krait_wall_state state,
                             const uint64_t ns[KRAIT_WALL_COUNT]);
/* On a terminal: all threads' time in words, under the heading. */
void krait_report_wall_heading(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT]);
/* "on CPU 61.3%, disk 38.7%": the greatest first, none of nothing; lines that fit the terminal, indented. */
void krait_report_wall_words(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT], uint32_t indent);
/* The name of a state for programs; and in a sentence. */
const char *krait_report_wall_key(enum krait_wall_state state);
const char *krait_report_wall_word(enum krait_wall_state state);
/* What is missing from the kernel's part, where there is one. */
void krait_report_json_kernel(struct report *report);
void krait_report_json_wall(struct krait_buf *out, const char *key, const uint64_t ns[KRAIT_WALL_COUNT]);
/* A state's column. What was most of the time goes last where a table is too narrow: at 1, the least at
 * KRAIT_WALL_COUNT. */
struct krait_column krait_report_wall_column(enum krait_wall_state state,
                                             const uint64_t ns[KRAIT_WALL_COUNT]);
/* What the percentages are of, where the table shows any. */
void krait_report_wall_note(struct report *report, const struct krait_table *table, const char *of);

/* A column of rows that are functions, and when it is there (report_columns.c). */
struct report_column {
    struct krait_sheet_column column;
    uint32_t beside; /* column.drop beside what threads did; 0: the same */
    unsigned shown;  /* in tables if this is true: a part's number, below 32 */
    unsigned given;  /* and in CSV and JSON */
    bool of_calls;   /* samples do not tell it */
};

/* For KRAIT_WALL_STATES: the column of a state, always shown. get_state is what each file has for its rows. */
#define REPORT_STATE(name, text, title, words) \
    { { { title, 0, 0, 0 }, NULL, KRAIT_SHEET_PART, 0, get_state, KRAIT_WALL_##name }, 0, 0, 0, false },

enum { REPORT_COLUMNS = 48 };

/* Those of one sheet. */
struct report_columns {
    struct krait_sheet_column items[REPORT_COLUMNS];
    char keys[REPORT_COLUMNS][32];
    uint32_t count;
};

/* Takes from `from`, in its order, those whose bit 1 << shown, or 1 << given, is in `present`, and of states
 * (KRAIT_SHEET_PART, with the state as arg) those that there was some of. wall_ns: all time that the table splits; NULL:
 * it splits none. */
void krait_report_columns_choose(struct report_columns *to, const struct report_column *from, uint32_t count,
                                 unsigned present, const struct report *report, const uint64_t *wall_ns);

/* Cells with the object: of a struct report_raised; of times by state. */
extern const struct krait_sheet_kind krait_report_kind_raised, krait_report_kind_wall;
/* A cell of a state: of the part of `ns` that `by_state` says it was. */
struct krait_sheet_cell krait_report_part(const uint64_t *by_state, size_t state, uint64_t ns);

/* The sheet as a table, with the note of krait_report_wall_note. Returns 0 or -ENOMEM. */
int krait_report_put_table(struct report *report, const struct krait_sheet *sheet, const char *split);

/* Parts that several outputs share. */
/* The first damage is what is said. */
void krait_report_keep_damage(struct report *report, const char *damage);
/* That there are more rows than shown. */
void krait_report_note_more(struct report *report, uint32_t rows);
/* That branches of a tree are left out, as --min-share says. */
void krait_report_note_hidden(struct report *report, uint32_t branches);
/* How exact samples are. */
void krait_report_note_samples(struct report *report);
/* Why there is no row. */
void krait_report_note_nothing(struct report *report);
/* What is missing from a recording: "lost", "lost_events", "omitted", "paused" and "damage". */
void krait_report_json_missing(struct krait_buf *out, const struct krait_trace *trace, const char *damage);
/* Opens the object with what is said of the trace, and closes it with what is missing from it. */
void krait_report_json_open(struct report *report, uint64_t self_ns);
void krait_report_json_close(struct report *report);

/* Exceptions (report_raised.c). Filtering keeps those that are meant, in place, and sums them up; NULL: all. Returns
 * how many are left. */
uint32_t krait_report_raised_filter(struct krait_raised *items, uint32_t count,
                                    const struct krait_match *match, uint64_t *total);

/* What exceptions left a row or a node; of report->exception, where there is one. */
struct report_raised {
    struct krait_raised *items;
    uint32_t count;
    uint64_t total;
};

/* By node, the caller's to free as one. Returns 0 or -ENOMEM. */
int krait_report_raised_tree(struct report_raised **out, const struct report *report,
                             const struct krait_calltree *tree);

#endif
