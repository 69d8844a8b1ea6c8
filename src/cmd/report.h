/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report` in its parts: the rows of a profile (report_rows.c), the call tree (report_tree.c), callers and
 * callees (report_relatives.c), what threads did (report_wall.c), why calls took so long (report_why.c), marks
 * (report_marks.c), lines of samples (report_lines.c), tasks (report_tasks.c), spans (report_spans.c), what changed
 * between recordings (report_diff.c), and what these share: columns, notes, the order that is asked for, the threads of an
 * interval (report_columns.c, report_shared.c, report_homes.c).
 */
#ifndef KRAIT_CMD_REPORT_H
#define KRAIT_CMD_REPORT_H

#include "analysis/calltree.h"
#include "analysis/match.h"
#include "analysis/profile.h"
#include "base/buf.h"
#include "cmd/select.h"
#include "cmd/sheet.h"
#include "cmd/state.h"
#include "view/cells.h"

enum report_format { REPORT_TABLE, REPORT_CSV, REPORT_JSON };

struct report_options {
    struct krait_select select;
    struct krait_opt_list diff;
    const char *by, *key, *at, *sort, *limit, *filter, *exception, *callers, *callees, *why, *min_share;
    bool tree, csv, json, fold_imports, cycles, compensate;
};

struct report;

/* A value of `--by` whose rows come from tracks other than calls. */
struct report_of_tracks {
    const char *by;
    int (*make)(struct report *report, struct krait_trace *trace, struct krait_err *err);
    bool sorts;          /* takes --sort */
    bool needs_calls;    /* the trace must have calls */
    bool is_tree;        /* goes with --tree */
    bool sums_parts;     /* struct krait_select */
    const char *filters; /* what selects such rows, as --filter does functions */
};

/* A report that is being made: what all its parts need. */
struct report {
    const struct report_options *options;
    struct krait_trace *trace;
    struct krait_range range;
    uint64_t zero_ns;                         /* times in the output count from here */
    const struct report_of_tracks *of_tracks; /* what the rows are of; NULL: functions */
    enum krait_profile_by by;
    enum report_format format;
    uint32_t limit;                   /* rows; 0: all */
    double min_share;                 /* percent of the tree's time below which a branch is left out */
    struct krait_match *filter;       /* NULL: all */
    struct krait_match *exception;    /* only calls that such an exception ended; NULL: all */
    struct krait_match *asked;        /* the argument of --callers, --callees or --why; NULL without them */
    struct krait_wall *wall;          /* what threads did; NULL: the trace does not say */
    struct krait_state_stolen stolen; /* from the CPUs, in what is reported */
    bool corrected;                   /* the cost of recording is subtracted: analysis/cost.h */
    struct krait_wall *clock;         /* for --cycles, where all ns are cycles; NULL without it */
    struct krait_table_look look;
    struct krait_buf out;   /* stdout's text */
    struct krait_buf notes; /* stderr's, one line each */
    char damage[1024];
};

/* Makes the tree for --tree, --callers or --callees. Returns 0 or a negative errno with err set. */
int krait_report_tree_new(struct krait_calltree **tree, struct report *report, struct krait_err *err);

/* Each fills report->out and notes. Returns 0 or a negative errno with err set. */
int krait_report_rows(struct report *report, struct krait_err *err);
int krait_report_tree(struct report *report, struct krait_err *err);
int krait_report_relatives(struct report *report, struct krait_err *err);
int krait_report_why(struct report *report, struct krait_err *err);
/* --sort, a word of the option or NULL, of functions: returns 0, or -ENODATA with err naming the columns of samples if the trace
 * has samples and they do not have this one. */
int krait_report_check_sort(const char *sort, const struct krait_trace *trace, struct krait_err *err);
/* The same as krait_report_rows; these find the trace's tracks first. */
int krait_report_marks(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_await(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_tasks(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_lines(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_spans(struct report *report, struct krait_trace *trace, struct krait_err *err);
int krait_report_span_tree(struct report *report, struct krait_trace *trace, struct krait_err *err);
/* Whether --by span shows a track; and the kind of its spans. */
bool krait_report_is_spans(const struct report *report, uint32_t track);
const char *krait_report_span_kind(const struct krait_track *track);
/* How --by task calls a task's coroutine; a text of the arena. NULL: memory is out. */
const char *krait_report_coroutine(const struct krait_trace *trace, const struct krait_task *task,
                                   struct krait_arena *arena);
/* Walks some tracks in one pass, and keeps the first damage. Calls `takes` with the index of each track, which returns 1 to
 * take it, 0 to leave it, or a negative errno. Returns the first negative errno of `takes` or `fn`, or 0. */
typedef int krait_report_takes_fn(void *ctx, uint32_t track);
int krait_report_walk_tracks(struct report *report, struct krait_range range, krait_report_takes_fn *takes,
                             krait_batch_fn *fn, void *ctx);
/* Prints a sheet in the format that the options ask for; `what` names its rows: "marks". Returns 0 or -ENOMEM. */
int krait_report_sheet(struct report *report, const struct krait_sheet *sheet, const char *what);

/* Compares recordings, each opened by itself; report->trace is NULL (report_diff.c). */
int krait_report_diff(struct report *report, char **paths, size_t count, struct krait_err *err);
/* Returns 0, or -EINVAL with err set if an option does not go with --diff. */
int krait_report_check_diff(const struct report_options *options, struct krait_err *err);

/* ---- report_rows.c ---- */

/* Whether tables of functions have a column of that name to sort by. Returns 0, or -EINVAL with err set. */
int krait_report_check_sort_name(const char *name, struct krait_err *err);

/* ---- report_wall.c: what threads did ---- */

/* Sets report->wall if the trace has it, or adds a note that says why not. With --cycles, sets report->clock too. Returns 0, or
 * with err set -ENOMEM or, with --cycles, -ENODATA: the trace has no frequencies. */
int krait_report_wall_load(struct report *report, struct krait_err *err);
/* Whether a table for people shows a state: if any time was spent in it. If only waits for the GIL are known, "unknown" is not
 * shown. */
bool krait_report_wall_shows(const struct report *report, enum krait_wall_state state,
                             const uint64_t ns[KRAIT_WALL_COUNT]);
/* On a terminal: writes the time of all threads in words, below the heading. */
void krait_report_wall_heading(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT]);
/* Writes "on CPU 61.3%, disk 38.7%", the largest first, without zeros, in indented lines that fit the terminal. */
void krait_report_wall_words(struct report *report, const uint64_t ns[KRAIT_WALL_COUNT], uint32_t indent);
/* The name of a state for programs; and in a sentence. */
const char *krait_report_wall_key(enum krait_wall_state state);
const char *krait_report_wall_word(enum krait_wall_state state);
/* Writes what is missing from the kernel's part, if there is one. */
void krait_report_json_kernel(struct report *report);
void krait_report_json_wall(struct krait_buf *out, const char *key, const uint64_t ns[KRAIT_WALL_COUNT]);
/* A state's column. If a table is too narrow, columns with little time are left out first: the state with the most time has
 * rank 1, that with the least KRAIT_WALL_COUNT. */
struct krait_column krait_report_wall_column(enum krait_wall_state state,
                                             const uint64_t ns[KRAIT_WALL_COUNT]);
/* Adds notes on the states that a table shows: of what they are known. `ns`: as krait_report_note_gil; NULL: not known. */
void krait_report_wall_note(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS]);
/* Adds a note that says how much of the time in waits for the GIL nobody held it, where no kernel events tell. `ns`: times by state
 * and part. */
void krait_report_note_gil(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS]);
/* Writes the same as "gil"; nothing of samples. */
void krait_report_json_gil(struct report *report, const uint64_t ns[KRAIT_WALL_PARTS]);

/* ---- report_columns.c ---- */

/* A column of a table of functions, and when the table has it. */
struct report_column {
    struct krait_sheet_column column;
    uint32_t beside; /* column.drop if the table also shows states; 0: the same */
    unsigned shown;  /* tables have it if this part, a number below 32, is present */
    unsigned given;  /* the same for CSV and JSON */
    bool of_calls;   /* samples do not have it */
};

/* The column of a task's name, which has this offset in a row. */
#define REPORT_TASK_NAME(offset)                                                              \
    {                                                                                         \
        { "name", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 0 }, "name", KRAIT_SHEET_NAME, \
            KRAIT_SHEET_DASH, krait_sheet_name_at, offset,                                    \
    }

/* For KRAIT_WALL_STATES: the column of a state, always shown. Each file defines get_state for its rows. */
#define REPORT_STATE(name, text, title, words) \
    { { { title, 0, 0, 0 }, NULL, KRAIT_SHEET_PART, 0, get_state, KRAIT_WALL_##name }, 0, 0, 0, false },

enum { REPORT_COLUMNS = 48 };

/* The columns of one sheet. */
struct report_columns {
    struct krait_sheet_column items[REPORT_COLUMNS];
    char keys[REPORT_COLUMNS][32];
    uint32_t count;
};

/* Takes columns from `from`, in its order: those whose bit 1 << shown, or 1 << given, is in `present`. Of the columns of states
 * (KRAIT_SHEET_PART, with the state as arg) it takes those with any time in wall_ns, the time that the table splits; NULL if it
 * splits none. */
void krait_report_columns_choose(struct report_columns *to, const struct report_column *from, uint32_t count,
                                 unsigned present, const struct report *report, const uint64_t *wall_ns);

/* Cells that show a struct report_raised, or times by state. */
extern const struct krait_sheet_kind krait_report_kind_raised, krait_report_kind_wall;
/* The cell of a state: its part of `ns`, from `by_state`. */
struct krait_sheet_cell krait_report_part(const uint64_t *by_state, size_t state, uint64_t ns);

/* Writes the first `limit` rows of the sheet (0: all) as a table. If it shows states, adds a note that names them and says of what
 * they are shares, `split`, and then those of krait_report_wall_note. Returns 0 or -ENOMEM. */
int krait_report_put_table(struct report *report, const struct krait_sheet *sheet, uint32_t limit,
                           const char *split, const uint64_t *wall_ns);

/* ---- report_shared.c ---- */

/* Keeps the first damage, which is the one that is reported. */
void krait_report_keep_damage(struct report *report, const char *damage);
/* Each adds a note: the limit leaves out some of the table's rows; */
void krait_report_note_limit(struct report *report, uint32_t count, const char *noun);
/* --min-share has left out branches of the tree; */
void krait_report_note_hidden(struct report *report, uint32_t branches);
/* how exact samples are; */
void krait_report_note_samples(struct report *report);
/* why there is no row. */
void krait_report_note_nothing(struct report *report);
/* Writes what is missing from a recording: "lost", "lost_events", "omitted", "paused" and "damage". */
void krait_report_json_missing(struct krait_buf *out, const struct krait_trace *trace,
                               struct krait_range range, const char *damage);
/* Open the JSON object with the trace's description, and close it with what is missing from the trace. */
void krait_report_json_open(struct report *report, uint64_t self_ns);
void krait_report_json_close(struct report *report);

/* ---- report_homes.c: the threads of an interval, before the others ---- */

/* For take_thread of profiles and trees: the threads of one group that are selected. `ctx` is a struct report_home. */
struct report_home {
    const struct krait_select *select;
    enum krait_home home;
};
bool krait_report_home_takes(void *ctx, const struct krait_trace *trace, uint32_t thread);
/* Whether rows are grouped by them: they are known, and no order was asked for. */
bool krait_report_has_homes(const struct report *report);
/* Appends what stands above a group's rows: "MainThread 4711, in which the interval begins and ends". */
void krait_report_home_label(struct krait_buf *text, const struct report *report, enum krait_home home);
/* A group for programs. */
const char *krait_report_home_word(enum krait_home home);
/* Adds a note that says how the order comes about; may_sort: and that --sort gives another. */
void krait_report_note_homes(struct report *report, bool may_sort);

/* ---- report_raised.c: exceptions ---- */

/* Keeps those that match, in place, and sets *total to their sum; NULL matches all. Returns how many are left. */
uint32_t krait_report_raised_filter(struct krait_raised *items, uint32_t count,
                                    const struct krait_match *match, uint64_t *total);

/* The exceptions that ended calls of a row or a node; only those of report->exception, if it is set. */
struct report_raised {
    struct krait_raised *items;
    uint32_t count;
    uint64_t total;
};

/* Makes an array with one item for each node, which the caller frees with one free(). Returns 0 or -ENOMEM. */
int krait_report_raised_tree(struct report_raised **out, const struct report *report,
                             const struct krait_calltree *tree);

#endif
