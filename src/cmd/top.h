/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of `krait top`.
 *
 *     processes ──read──▶ krait_sums ─┐
 *                                     ├─merge──▶ rows ──▶ sheet ──▶ terminal, text, JSON
 *     rings ────tap─────▶ krait_live ─┘                     ▲
 *                                       keyboard ──▶ keys ──┘
 */
#ifndef KRAIT_CMD_TOP_H
#define KRAIT_CMD_TOP_H

#include "analysis/match.h"
#include "cmd/sheet.h"
#include "live/live.h"
#include "remote/sums.h"

struct top_options {
    bool once, idle, gil, kernel, json, classic, lines, children, exact;
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
    pid_t command;    /* that krait has started; 0: none */
    int output;       /* a file with what it wrote; -1: it writes where krait does */
    int status;       /* of waitpid, once it has ended */
    uint32_t opened;  /* processes that were opened in all */
    uint64_t held_ns; /* krait_remote.held_ns of all */
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
/* Adds one reading of each to the sums, with KRAIT_READ_WAITS by enum top_state. Returns 0 or -ENOMEM; or of a single process
 * why it cannot be read any more. */
int top_processes_read(struct top_processes *processes, struct krait_sums *sums, uint32_t flags,
                       struct krait_err *err);
/* What all of them have used since they were asked last: CPU time, in ns. */
uint64_t top_processes_cpu(struct top_processes *processes);
/* Their memory: resident pages, in bytes. */
uint64_t top_processes_memory(const struct top_processes *processes);

/* -- what a table shows -- */

/* What a thread was doing, and what it was waiting for: top_waits.c. */
enum top_state {
    TOP_CPU, /* on a CPU, or ready for one */
    TOP_GIL,
    TOP_LOCK,
    TOP_DISK,
    TOP_NETWORK,
    TOP_POLL, /* any of several files */
    TOP_TIMER,
    TOP_CHILD,
    TOP_OTHER,
    TOP_STATES,
};
_Static_assert((int)TOP_STATES == (int)KRAIT_SUMS_STATES && (int)TOP_STATES == (int)KRAIT_LIVE_STATES,
               "one a state");

/* Of a thread that was read with KRAIT_READ_WAITS. */
enum top_state top_state_of(pid_t pid, const struct krait_remote_thread *thread);
/* Of one as the kernel describes it, which does not tell waits for the GIL. */
enum top_state top_state_of_task(pid_t pid, const struct krait_os_task *task);

enum top_by { TOP_BY_NOTHING, TOP_BY_THREAD, TOP_BY_PROCESS, TOP_BY_TASK, TOP_BY_COUNT };

/* Which rows a screen shows where not all of them fit. Zeroed: no row is selected, and the first ones are shown. */
struct top_scroll {
    bool selects;         /* a row is selected, and stays so when the order changes */
    bool moved;           /* by a key since the last table: the row counts, not its key */
    uint64_t key;         /* what the row is of */
    uint32_t row;         /* its place among all rows */
    uint32_t first;       /* the row on top */
    uint32_t rows, shown; /* in the last table: those that there were, those that fitted */
    uint32_t line;        /* of the text: where the selected row is; UINT32_MAX: none is */
};

/* Which columns a table has. */
struct top_shape {
    bool exact, kernel;
    enum top_by by;
};

/* The columns of the last table on the screen that one can sort by, from the left: their keys. */
struct top_sorts {
    const char *keys[9];
    uint32_t count;
};

struct top_view {
    const struct top_processes *processes;
    const struct krait_sums *sums;
    struct krait_live *live;   /* NULL: sums are of samples */
    struct top_scroll *scroll; /* NULL: the first rows */
    struct top_sorts *sorts;   /* NULL: nobody asks for them */
    const char *sort;
    bool reversed;                   /* the last in that order first */
    const char *command;             /* of the program; NULL: none */
    const char *python;              /* its version; "" */
    const struct krait_match *match; /* functions of this alone; NULL: of all */
    const char *filter;              /* its text */
    pid_t pid;                       /* of the program */
    enum top_by by;
    bool lines;       /* a row is a line, not a function */
    bool kernel;      /* time is split by enum top_state */
    bool classic;     /* the columns of --classic */
    bool marks;       /* names have KRAIT_HOLDS_DROPPED behind them */
    bool whole;       /* shares of all the time, not of the last interval */
    double cpu;       /* of the program, in CPUs, in that time; negative: not known */
    double own_cpu;   /* of krait itself */
    double cost;      /* of the program's CPU time, what recording or reading takes; negative: not known */
    uint64_t cost_ns; /* the same, since the beginning */
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
    uint64_t states[TOP_STATES];      /* shares, which add up to total */
    uint64_t tasks, longest_ns;       /* by task */
    double calls_s;
};

/* Of live sums, for the time that is shown. */
struct krait_live_figures top_figures(const struct top_view *view);

/* The rows of a view, which the caller frees. Returns 0 or -ENOMEM. */
int top_rows(const struct top_view *view, struct top_row **rows, uint32_t *count);

/* -- top_table.c -- */

/* Returns 0, -ENOMEM, or -EINVAL with the keys there are. */
int top_check_sort(const char *key, struct top_shape shape, struct krait_err *err);
/* The next key after `sort`, for a key of the keyboard. */
const char *top_next_sort(const char *sort, struct top_shape shape);
/* Heading and table. */
int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out);
/* One line of JSON. */
int top_json(const struct top_view *view, struct krait_buf *out);

/* -- top_scroll.c -- */

/* Obeys a key that moves the selection; false: it is another one. */
bool top_scroll_move(struct top_scroll *scroll, int key);
/* Nothing is selected any more. */
void top_scroll_leave(struct top_scroll *scroll);
/* Before a table of the first `rows` of a sorted sheet, of which `shown` fit, at least 1: finds the selected row by its number in
 * the column, and shows it. */
void top_scroll_fit(struct top_scroll *scroll, const struct krait_sheet *sheet, uint32_t column,
                    uint32_t rows, uint32_t shown);

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
/* Looks at what each of their threads does: enum top_state. Returns 0 or -ENOMEM. */
int top_exact_look(struct top_exact *exact, const struct top_processes *processes);
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
/* From now on a write to a pipe that nobody reads fails; what krait starts is not concerned. */
void top_catch_pipe(void);
bool top_is_asked_to_end(void);
/* Takes the terminal: another screen, keys without Enter. Returns 0 or a negative errno. */
int top_screen_open(struct top_screen **out);
/* Gives it back as it was. NULL is fine. */
void top_screen_close(struct top_screen *screen);
/* Gives it back, stops krait, and takes it again when krait goes on. */
void top_screen_stop(struct top_screen *screen);
/* Takes it again, after krait was stopped by something else. */
void top_screen_take(struct top_screen *screen);
/* Rows of the terminal. */
uint32_t top_screen_rows(void);
/* Shows text instead of what was there, with one write; `keys` is the last line. The line `marked` stands out. */
void top_screen_show(const struct krait_buf *text, uint32_t marked, const char *keys,
                     const struct krait_table_look *look);

/* A key: a byte from 1 to 255, or one of these. */
enum top_key {
    TOP_KEY_NONE,
    TOP_KEY_ESCAPE = 27,
    TOP_KEY_UP = 256,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_F1,
    TOP_KEY_F4,
    TOP_KEY_F6,
    TOP_KEY_F10,
    TOP_KEY_RESIZED,   /* the terminal has another size */
    TOP_KEY_STOP,      /* Ctrl-Z */
    TOP_KEY_CONTINUED, /* krait was stopped without that, and goes on */
};

/* Waits until `until_ns` of CLOCK_MONOTONIC or a key; returns the key, TOP_KEY_NONE if none came. Sets *ends where a signal
 * asks krait to end, or the terminal is gone. Without a screen there are no keys. */
int top_screen_wait(struct top_screen *screen, uint64_t until_ns, bool *ends);

/* -- top.c -- */

struct top {
    const struct top_options *options;
    struct top_processes processes;
    struct krait_sums sums;
    struct top_exact *exact; /* NULL: not needed yet */
    bool is_exact;           /* shows that; else the samples */
    struct krait_match *match;
    struct top_screen *screen; /* NULL: tables one after the other */
    struct krait_err err;      /* why it ended */
    const char *sort;
    bool reversed;
    struct top_scroll scroll;
    struct top_sorts sorts;
    enum top_by by;
    bool idle, gil, kernel, lines, paused, quit, helps;
    uint64_t rate, interval_ns, tables;
    uint64_t due_ns, last_ns; /* of the next reading, the one before */
    uint64_t end_ns;          /* of the interval */
    uint64_t find_ns;         /* when processes are looked for again */
    uint64_t cpu_at, own_ns;  /* when CPU time was read, and what krait had used */
    double cpu, own_cpu, cost;
    uint64_t cost_ns[2]; /* until now: of samples, of every call */
    uint64_t memory;
    uint32_t height; /* of the last table where there was a screen */
    uint32_t random;
    pid_t pid;              /* of the program */
    char *filter;           /* NULL: none */
    struct krait_buf typed; /* of a filter that is being typed */
    bool types;
    char note[sizeof(((struct krait_err *)NULL)->text)]; /* instead of the keys, up to the next one */
    struct krait_buf command;
    char python[32];
};

/* Shows what there is now. */
void top_show_screen(struct top *top);
struct top_shape top_shape_of(const struct top *top);
/* Stops krait, and goes on when the shell says so; or goes on after something else has stopped it. */
void top_stop(struct top *top);
void top_continue(struct top *top);
/* Between samples and every call; where that fails, top->note has the reason. */
void top_switch_exact(struct top *top);

/* -- top_keys.c -- */

/* Obeys a key, and shows the screen that follows. */
void top_press(struct top *top, int key);
/* The line below the table, of at most `width` columns. */
void top_add_keys(struct krait_buf *line, const struct top *top, uint32_t width);
/* What all keys do. */
void top_add_help(struct krait_buf *text, uint32_t width);
/* Only functions of this pattern are shown; all where it is "" or no pattern. */
void top_set_filter(struct top *top, const char *text);

#endif
