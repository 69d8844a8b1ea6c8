/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `krait states`: choosing threads and processes (states_pick.c), the tables with their columns and rows
 * (states_tables.c), waits for the GIL (states_gil.c), the tables for samples (states_sampled.c), and printing (states.c).
 */
#ifndef KRAIT_CMD_STATES_H
#define KRAIT_CMD_STATES_H

#include "cmd/select.h"
#include "cmd/sheet.h"
#include "trace/kernel/own_threads.h"

struct states_options {
    struct krait_select select;
    const char *by, *sort, *limit;
    bool all, csv, json;
};

struct states {
    const struct states_options *options;
    const struct krait_kernel_states *found;
    struct krait_trace *trace;        /* also has the recorded calls, if there are any */
    struct krait_own_threads threads; /* the recorded program's threads */
    uint64_t (*gil)
        [KRAIT_TS_COUNT]; /* by thread of `found`: how much of its states is waiting for the GIL; NULL: none */
    bool *recorded;       /* by process of `found`: its calls were recorded; NULL: none were */
    int64_t zero_ns;      /* printed times count from it */
    uint64_t lost;
    bool own;     /* recorded without root: only one program */
    bool sampled; /* samples without kernel events; `found` is NULL */
    struct krait_err damage;
    const struct states_view *only; /* NULL: all */
    uint32_t limit;
    struct krait_table_look look;
    struct krait_buf out, notes;
};

/* A table. */
struct states_view {
    const char *by, *key, *title; /* its name in --by, its key in JSON, its heading */
    const char *sort;             /* the order without --sort; NULL: as filled */
    const struct krait_sheet_column *columns;
    uint32_t column_count;
    int (*fill)(const struct states *states, struct krait_sheet *sheet);
    enum { OF_ALL, OF_PROCESSES, OF_THREADS } of; /* what --process and --thread choose from */
    enum { ALONE, IN_JSON, IN_ALL } where;        /* where it is without --by */
    uint32_t rows;                                /* most rows in the overview; 0: all */
};

/* All tables, in their order; a row with `by` NULL ends them. */
extern const struct states_view krait_states_views[];

/* Times by state, and behind them that of waiting for the GIL, which is in no state. */
enum { STATES_GIL = KRAIT_TS_COUNT, STATES_COUNT };

/* Finds s->gil, for `found` in its range. Returns 0 or a negative errno with err set. */
int krait_states_find_gil(struct states *states, const struct krait_kernel_states *found,
                          struct krait_err *err);
/* Adds the times of a thread. */
void krait_states_add(const struct states *states, const struct krait_kthread *thread,
                      uint64_t ns[STATES_COUNT]);

/* Adds a table to the output. Returns 0 or -ENOMEM. */
int krait_states_put(struct states *states, const struct states_view *view, const struct krait_sheet *sheet);
/* Makes the output for samples. Returns 0, or a negative errno with err set. */
int krait_states_sampled(struct states *states, struct krait_err *err);

/* Whether the calls of a process were recorded; its name and its pid, which for KRAIT_NO_ID are NULL and KRAIT_SHEET_NONE. */
bool krait_states_is_recorded(const struct states *states, uint32_t process);
const char *krait_states_process_name(const struct states *states, uint32_t process);
uint64_t krait_states_pid(const struct states *states, uint32_t process);
/* A thread's Python name if its kernel name is only that of its process, else its kernel name. */
const char *krait_states_thread_name(const struct states *states, const struct krait_kthread *thread);

/* Whether to show the rest of the machine too: with --all, if threads or processes are chosen, or if no calls were recorded. */
bool krait_states_takes_all(const struct states *states);
/* Whether a process, or a thread by either of its names, is chosen. */
bool krait_states_takes_process(const struct states *states, uint32_t process);
bool krait_states_takes_thread(const struct states *states, const struct krait_kthread *thread);

#endif
