/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals` in its parts: what is asked for and found (intervals.c), why there is nothing (intervals_nothing.c), what the
 * rows are (intervals_by.c), the tables (intervals_tables.c), two intervals side by side (intervals_compare.c), signals
 * (intervals_signals.c), and plots (intervals_plot.c).
 */
#ifndef KRAIT_CMD_INTERVALS_H
#define KRAIT_CMD_INTERVALS_H

#include "analysis/rules.h"
#include "cmd/select.h"
#include "cmd/sheet.h"

struct intervals_options {
    struct krait_select select;
    struct krait_opt_list starts, stops, calls, spans, states, signals, names, only;
    const char *key, *value, *by, *sort, *limit, *plot, *graph, *compare[2];
    bool steps, outermost, nested, latest, list, transitions, csv, json;
};

/* What one trace, or several as one, has of the rules. */
struct intervals_of {
    struct krait_trace *trace;
    uint64_t zero_ns; /* times count from it */
    struct krait_intervals found;
    char damage[1024];
};

struct intervals {
    const struct intervals_options *options;
    struct krait_rules rules;
    struct intervals_of of;
    uint32_t limit, plot_limit; /* rows; 0: all */
    struct krait_table_look look;
    struct intervals_label {
        const char *name, *key;
    } * shown; /* the first rows of the table, in its order, if they are plotted; of the rules' arena */
    uint32_t shown_count;
    struct krait_buf out, notes; /* stdout's text; stderr's lines */
    struct krait_err *err;
};

/* Reads traces. Returns 0 or a negative errno with intervals->err set. */
int krait_intervals_read(struct intervals *intervals, struct intervals_of *of, const char *const *paths,
                         size_t count);
void krait_intervals_of_done(struct intervals_of *of);

/* What --by says of the rows, once all rules are there. Returns 0 or a negative errno. */
int krait_intervals_by(struct intervals *intervals, struct krait_err *err);

/* Heads the column "key" with the fields of --by, if it has them. */
void krait_intervals_head_key(struct intervals *intervals, struct krait_sheet_column *columns,
                              uint32_t count);

/* A row's rule; and the key's text, NULL where it has none. */
const char *krait_intervals_name(const struct intervals *intervals, const struct krait_interval_row *row);
const char *krait_intervals_key(const struct intervals_of *of, uint32_t key);

/* Each fills intervals->out. Return 0 or a negative errno with intervals->err set. */
int krait_intervals_table(struct intervals *intervals); /* a row for each kind of interval */
int krait_intervals_list(struct intervals *intervals);  /* a row for each interval */
int krait_intervals_transitions(
    struct intervals *intervals); /* a row for each two states that follow each other */
int krait_intervals_compare(
    struct intervals *intervals);                      /* of two rows, or of two recordings, which it reads */
int krait_intervals_plot(struct intervals *intervals); /* behind the table, or into a file */
int krait_intervals_graph(struct intervals *intervals); /* of states, into a file */

/* How many rules are shown, of all kinds, and of one. */
uint32_t krait_intervals_shown(const struct intervals *intervals);
uint32_t krait_intervals_of_kind(const struct intervals *intervals, enum krait_rule_kind kind);
/* Tables of signals: a row for each, and for each of its numbers. */
int krait_signals_table(struct intervals *intervals);
int krait_signals_list(struct intervals *intervals);

/* The track of that index, or one without names. */
const struct krait_track *krait_intervals_track(const struct intervals_of *of, uint32_t track);

/* Columns of a rule's name and a key's text, which are members of the row. */
#define INTERVALS_NAME_COLUMNS(row, name_member, key_member)                                     \
    { { "name", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 12, 0 },                               \
      "name",                                                                                    \
      KRAIT_SHEET_NAME,                                                                          \
      0,                                                                                         \
      krait_sheet_name_at,                                                                       \
      offsetof(row, name_member) },                                                              \
    {                                                                                            \
        { "key", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 0 }, "key", KRAIT_SHEET_NAME,      \
            KRAIT_SHEET_DASH | KRAIT_SHEET_BOUND, krait_sheet_name_at, offsetof(row, key_member) \
    }

/* Of what is listed: its rule, its key and its thread, as a member `place` of the row. */
struct intervals_place {
    uint64_t tid, pid;
    const char *name, *key, *thread, *process;
};

struct intervals_place krait_intervals_place(const struct intervals_of *of, const struct krait_track *track,
                                             const char *name, uint32_t key);

#define INTERVALS_PLACE_COLUMNS(row)                                                                   \
    INTERVALS_NAME_COLUMNS(row, place.name, place.key),                                                \
        { { "process", KRAIT_COLUMN_LEFT, 0, 4 },                                                      \
          "process",                                                                                   \
          KRAIT_SHEET_NAME,                                                                            \
          KRAIT_SHEET_DASH,                                                                            \
          krait_sheet_name_at,                                                                         \
          offsetof(row, place.process) },                                                              \
        { { "pid", 0, 0, 3 },      "pid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, krait_sheet_number_at, \
          offsetof(row, place.pid) },                                                                  \
        { { "thread", KRAIT_COLUMN_LEFT, 0, 1 },                                                       \
          "thread",                                                                                    \
          KRAIT_SHEET_NAME,                                                                            \
          KRAIT_SHEET_DASH,                                                                            \
          krait_sheet_name_at,                                                                         \
          offsetof(row, place.thread) },                                                               \
    {                                                                                                  \
        { "tid", 0, 0, 5 }, "tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, krait_sheet_number_at,        \
            offsetof(row, place.tid)                                                                   \
    }

/* A row of a table. */
struct intervals_row {
    struct krait_interval_row row;
    const char *name, *key;
};

/* A sheet for such rows; and its rows, or those of another, in the format that is asked for: in JSON as `key`. */
struct krait_sheet krait_intervals_sheet(struct intervals *intervals);
int krait_intervals_print(struct intervals *intervals, struct krait_sheet *sheet, const char *sort,
                          const char *key);

/* What surrounds the rows in JSON. */
void krait_intervals_json_open(struct intervals *intervals, const struct intervals_of *of);
void krait_intervals_json_close(struct intervals *intervals, const struct intervals_of *of);

/* Lines for stderr: what may be wrong where a rule found nothing. */
void krait_intervals_note_nothing(struct intervals *intervals, const struct intervals_of *of);
/* Of samples, which tell no call's begin and end: returns 0, or -ENODATA with intervals->err set if an option asks for calls and
 * none was found. */
int krait_intervals_refuse_samples(const struct intervals *intervals, const struct intervals_of *of);

/* What is missing from a trace: lines for stderr. `whose`: of which of several, with ": ", or "". */
void krait_intervals_note_missing(struct intervals *intervals, const struct intervals_of *of,
                                  const char *whose);

#endif
