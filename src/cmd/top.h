/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of `krait top`.
 *
 *     processes ──read──▶ krait_sums ─┐
 *                                     ├─merge──▶ rows ──▶ sheet ──▶ terminal, text, JSON
 *     rings ────tap─────▶ krait_live ─┘
 */
#ifndef KRAIT_CMD_TOP_H
#define KRAIT_CMD_TOP_H

#include "analysis/match.h"
#include "cmd/sheet.h"
#include "live/live.h"
#include "remote/sums.h"

struct top_options {
    bool once, idle, gil, json, classic, lines, children, exact;
    double max_overhead;
    uint64_t batch, rate, interval_ns, limit;
    const char *sort, *by, *filter;
};

/* -- top_processes.c: whose stacks are read -- */

struct top_process {
    pid_t pid;
    struct krait_remote *remote; /* NULL: not opened, or ended */
    struct krait_remote_stacks stacks;
    uint64_t cpu_ns;      /* that it had used when it was asked last */
    uint64_t program;     /* what it ran when it could not be opened: device and inode, mixed */
    uint32_t tries;       /* to open it as that */
    uint64_t image;       /* of what was opened: krait_collector_image */
    uint32_t images;      /* how many were opened: it may execute another program */
    uint32_t age;         /* how often it was looked for since it was opened */
    bool ended, is_named; /* named: not found as a child */
};

struct top_processes {
    struct top_process *items;
    uint32_t count, cap;
    bool with_children;
    pid_t command;   /* that krait has started; 0: none */
    int output;      /* a file with what it wrote; -1: it writes where krait does */
    int status;      /* of waitpid, once it has ended */
    uint32_t opened; /* processes that were opened in all */
};

void top_processes_done(struct top_processes *processes);
int top_processes_add(struct top_processes *processes, pid_t pid);
/* Starts a command, whose processes are read; `quiet`: its output is kept until top_command_end, and its input is empty.
 * Returns 0 or a negative errno with err set. */
int top_command_start(struct top_processes *processes, char **argv, bool quiet, struct krait_err *err);
/* Ends the command where it still runs, with what it has started, waits for it, and writes what was kept of its output. */
void top_command_end(struct top_processes *processes);
/* Opens processes that were not, finds children, lets go of those that have ended. Returns 0; -ESRCH: all have ended;
 * or why a named process cannot be read, with err set. */
int top_processes_find(struct top_processes *processes, struct krait_sums *sums, struct krait_err *err);
/* Adds one reading of each to the sums. Returns 0 or -ENOMEM; or of a single process why it cannot be read any more. */
int top_processes_read(struct top_processes *processes, struct krait_sums *sums, uint32_t flags,
                       struct krait_err *err);
/* What all of them have used since they were asked last: CPU time, in ns. */
uint64_t top_processes_cpu(struct top_processes *processes);
/* Their memory: resident pages, in bytes. */
uint64_t top_processes_memory(const struct top_processes *processes);

/* -- what a table shows -- */

enum top_by { TOP_BY_NOTHING, TOP_BY_THREAD, TOP_BY_PROCESS, TOP_BY_TASK, TOP_BY_COUNT };

struct top_view {
    const struct top_processes *processes;
    const struct krait_sums *sums;
    struct krait_live *live; /* NULL: sums are of samples */
    const char *sort;
    const char *command;             /* of the program; NULL: none */
    const char *python;              /* its version; "" */
    const struct krait_match *match; /* functions of this alone; NULL: of all */
    const char *filter;              /* its text */
    pid_t pid;                       /* of the program */
    enum top_by by;
    bool lines;       /* a row is a line, not a function */
    bool classic;     /* the columns of --classic */
    bool marks;       /* names have KRAIT_HOLDS_DROPPED behind them */
    bool whole;       /* shares of all the time, not of the last interval */
    double cpu;       /* of the program, in CPUs, in that time; negative: not known */
    double own_cpu;   /* of krait itself */
    double cost;      /* of the program's CPU time, what recording takes; negative: not known */
    uint64_t cost_ns; /* of the program's CPU time since the beginning; with live */
    uint64_t memory;  /* of the program, in bytes; 0: not known */
    uint64_t rate;    /* readings a second */
    uint64_t lost;    /* events; with live */
    uint32_t failed;  /* processes that cannot be recorded; with live */
    uint32_t stopped; /* ... and that have ended their recording themselves */
    uint32_t limit;   /* rows; 0: all */
    uint32_t height;  /* lines for heading and table; 0: any number */
};

/* Threads that Python knows in all processes; processes that are read. */
uint32_t top_thread_count(const struct top_processes *processes);
uint32_t top_process_count(const struct top_processes *processes);

/* -- top_rows.c -- */

/* Texts are those of the sums. */
struct top_row {
    const char *name, *file, *thread_name;
    const char *marked; /* its name with a mark; NULL: it has none */
    bool holds_dropped;
    uint32_t line;
    pid_t pid, tid;                   /* whose it is, as far as rows are of one; 0: not known */
    uint64_t own_ns, total_ns, calls; /* since the beginning; calls of live sums alone */
    uint64_t own, total;              /* shares of the time that is shown, in millionths */
    uint64_t shown_calls;             /* in that time */
    uint64_t tasks, longest_ns;       /* by task */
    double calls_s;
};

/* Of live sums, for the time that is shown. */
struct krait_live_figures top_figures(const struct top_view *view);

/* The rows of a view, which the caller frees. Returns 0 or -ENOMEM. */
int top_rows(const struct top_view *view, struct top_row **rows, uint32_t *count);

/* -- top_table.c -- */

/* Returns 0, -ENOMEM, or -EINVAL with the keys there are. */
int top_check_sort(const char *key, bool exact, enum top_by by, struct krait_err *err);
/* The next key after `sort`, for a key of the keyboard. */
const char *top_next_sort(const char *sort, bool exact, enum top_by by);
/* Heading and table. */
int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out);
/* One line of JSON. */
int top_json(const struct top_view *view, struct krait_buf *out);

/* -- top_exact.c: every call -- */

struct top_exact;

/* A recording of no file, which nothing takes part in yet; `children`: what is forked is recorded too. */
int top_exact_open(struct top_exact **out, double max_overhead, bool children, struct krait_err *err);
/* Leaves the processes; the sums stay. NULL is fine, also for the next one. */
void top_exact_finish(struct top_exact *exact);
void top_exact_free(struct top_exact *exact);
struct krait_live *top_exact_live(const struct top_exact *exact);
/* What recording has cost the program until now, ns of its CPU time: krait_collector_cost. */
uint64_t top_exact_cost(const struct top_exact *exact);
uint64_t top_exact_lost(const struct top_exact *exact);

/* What this process starts from now on is recorded from its first moment. */
int top_exact_preload(struct top_exact *exact, struct krait_err *err);
/* Attaches to processes that are read and not recorded: at once to all, else to those that are new or have executed another
 * program, once they have had a second to be recorded from their first moment. Returns 0 or -ENOMEM. */
int top_exact_join(struct top_exact *exact, const struct top_processes *processes, bool at_once);
/* Whether one of them has not begun yet. */
bool top_exact_begins(const struct top_exact *exact);
/* Why a process cannot be recorded; NULL: it is, or it was not tried. How many there are. */
const struct krait_err *top_exact_failure(const struct top_exact *exact, pid_t pid);
uint32_t top_exact_failures(const struct top_exact *exact);
/* Processes that run and have ended their recording themselves: krait.stop(). */
uint32_t top_exact_stopped(struct top_exact *exact, const struct top_processes *processes);
/* They are tried again. */
void top_exact_forget_failures(struct top_exact *exact);

/* Reads what is there; after a nap, if there is time for one. */
void top_exact_round(struct top_exact *exact, bool nap);
/* Ends an interval. */
void top_exact_turn(struct top_exact *exact);
void top_exact_reset(struct top_exact *exact);
/* Switches the recording off in the processes, at no cost for them, and on again. */
void top_exact_switch(struct top_exact *exact, bool on);

/* -- top_screen.c -- */

struct top_screen;

/* From now on signals that end krait ask it to end. */
void top_catch_signals(void);
void top_release_signals(void);
bool top_is_asked_to_end(void);
/* Takes the terminal: another screen, keys without Enter. Returns 0 or a negative errno. */
int top_screen_open(struct top_screen **out);
/* Gives it back as it was. NULL is fine. */
void top_screen_close(struct top_screen *screen);
/* Rows of the terminal. */
uint32_t top_screen_rows(void);
/* Shows text instead of what was there, with one write; `keys` is the last line. */
void top_screen_show(const struct krait_buf *text, const char *keys, const struct krait_table_look *look);
/* Waits until `until_ns` of CLOCK_MONOTONIC or a key; returns the key, 0 if none came. Sets *ends where a signal asks krait
 * to end, or the terminal is gone. */
char top_screen_wait(const struct top_screen *screen, uint64_t until_ns, bool *ends);

#endif
