/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait states` in its parts: which threads and processes are meant (states_pick.c), the tables with their columns and
 * rows (states_tables.c), those of samples (states_sampled.c), and what is printed (states.c).
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
    struct krait_trace *trace;        /* the program's part, if there is one, too */
    struct krait_own_threads threads; /* of that */
    bool *recorded;                   /* by process of the kernel's: it recorded itself; NULL: none did */
    int64_t zero_ns;                  /* times count from it */
    uint64_t lost;
    bool own;     /* of one program alone */
    bool sampled; /* the kernel was not recorded, and the program was sampled; `found` is NULL */
    struct krait_err damage;
    const struct states_view *only; /* NULL: all */
    uint32_t limit;
    struct krait_table_look look;
    struct krait_buf out, notes;
};

/* A table. */
struct states_view {
    const char *by, *key, *title; /* as --by and JSON have it, and for people */
    const char *sort;             /* without --sort; NULL: as they are */
    const struct krait_sheet_column *columns;
    uint32_t column_count;
    int (*fill)(const struct states *states, struct krait_sheet *sheet);
    enum { OF_ALL, OF_PROCESSES, OF_THREADS } of; /* what --process, --thread choose among */
    enum { ALONE, IN_JSON, IN_ALL } where;        /* without --by */
    uint32_t rows;                                /* of the overview's table; 0: all */
};

/* All tables, in their order; behind the last stands one with `by` NULL. */
extern const struct states_view krait_states_views[];

/* Adds a table to what is printed. Returns 0 or -ENOMEM. */
int krait_states_put(struct states *states, const struct states_view *view, const struct krait_sheet *sheet);
/* All output of samples. Returns 0 or a negative errno with err set. */
int krait_states_sampled(struct states *states, struct krait_err *err);

/* Whether a process recorded itself; and its name and number, NULL and KRAIT_SHEET_NONE of KRAIT_NO_ID. */
bool krait_states_is_recorded(const struct states *states, uint32_t process);
const char *krait_states_process_name(const struct states *states, uint32_t process);
uint64_t krait_states_pid(const struct states *states, uint32_t process);
/* Python's name for a thread that is called in the kernel as its process is, and no more; else the kernel's. */
const char *krait_states_thread_name(const struct states *states, const struct krait_kthread *thread);

/* Whether the rest of the machine is shown too: with --all, a choice, or where nothing is known to have been recorded. */
bool krait_states_takes_all(const struct states *states);
/* Whether a process, or a thread by either of its names, is among those that were chosen. */
bool krait_states_takes_process(const struct states *states, uint32_t process);
bool krait_states_takes_thread(const struct states *states, const struct krait_kthread *thread);

#endif
