/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of `krait top`.
 *
 *     processes ──read──▶ krait_sums ─┐
 *                                     ├─merge──▶ rows ──▶ sheet ──▶ terminal, text, JSON
 *     rings ────tap─────▶ krait_live ─┘                     ▲
 *                                       keyboard ──▶ keys ──┘
 *
 *     processes ──read──▶ top_stacks ──▶ cells ──▶ terminal, text
 *     rows ──▶ bars ──▶ terminal, text
 *     rings ────tap─────▶ krait_live ──each ray──▶ clock ──▶ terminal, text
 */
#ifndef KRAIT_CMD_TOP_H
#define KRAIT_CMD_TOP_H

#include "analysis/match.h"
#include "cmd/sheet.h"
#include "live/live.h"
#include "remote/births.h"
#include "remote/pace.h"
#include "remote/sums.h"
#include "view/hues.h"

struct top_options {
    bool once, idle, gil, kernel, json, classic, lines, children, exact, stacks, bars, clock;
    double max_overhead;
    uint64_t batch, rate, interval_ns, turn_ns, limit;
    const char *sort, *by, *filter;
};

/* -- top_processes.c: the processes whose stacks krait reads -- */

struct top_process {
    pid_t pid;
    struct krait_remote *remote; /* NULL: not opened, or ended */
    struct krait_remote_stacks stacks;
    uint64_t found_ns;             /* when its threads were looked for; 0: to be done */
    uint64_t cpu_ns;               /* CPU time that it had used at the last reading */
    uint64_t program;              /* hash of device and inode of the program that krait could not open */
    uint32_t tries;                /* how often krait tried to open that program */
    struct krait_executed image;   /* the program that krait opened last */
    uint32_t images;               /* how many programs krait opened: it may execute another one */
    uint32_t age;                  /* rounds of top_processes_find since then */
    uint32_t failures;             /* readings that failed, one after the other */
    struct krait_task_times times; /* at the last look for children, which was then; 0: none yet */
    uint64_t looked_ns, ended_ns;  /* ended: or later */
    bool gone;                     /* its parent has waited for it */
    bool ended, is_named;          /* named on the command line, not found as a child */
};

/* -- top_unseen.c: children that end before krait sees them -- */

struct top_unseen_sum {
    uint64_t cpu_ns; /* CPU time that they have used, at least */
    uint64_t count;  /* how many there were; 0: none, or the kernel does not tell */
};

struct top_unseen {
    struct top_unseen_sum sum;   /* so far */
    struct krait_births *births; /* NULL: it does not */
    struct krait_map born;       /* pid -> whether it runs, and has not been seen */
    size_t most_born;            /* of krait_map_trim */
    /* Of this look: what processes have got of their children, and what of it was seen; what they may get of the last one's. */
    uint64_t waited_ns, seen_ns, late_ns;
    bool has_begun;
};

struct top_processes;
/* From now on counts them, if the kernel tells. */
void top_unseen_open(struct top_unseen *unseen);
void top_unseen_done(struct top_unseen *unseen);
/* A process is read, or looked at, from now on. */
void top_unseen_saw(struct top_unseen *unseen, pid_t pid);
/* Looks what has ended since the last look, if the processes are read with their children. */
void top_unseen_look(struct top_processes *processes, uint64_t now_ns);

struct top_processes {
    struct top_process *items;
    uint32_t count, cap;
    bool with_children;
    bool looks;               /* one is between two programs, or may be: top_processes_find is to come soon */
    bool puts_off;            /* one has just been forked, and may be about to execute a program */
    pid_t command;            /* the one that krait started; 0: none */
    int output;               /* the file that keeps its output; -1: it writes where krait does */
    int status;               /* from waitpid, once it has ended */
    uint32_t opened;          /* processes opened so far */
    uint64_t held_ns;         /* sum of krait_remote.held_ns */
    struct top_unseen unseen; /* if with_children */
};

void top_processes_done(struct top_processes *processes);
int top_processes_add(struct top_processes *processes, pid_t pid);
/* Starts a command and adds its process. With `quiet`, keeps its output until top_command_end, and gives it no input.
 * Returns 0 or a negative errno with err set. */
int top_command_start(struct top_processes *processes, char **argv, bool quiet, struct krait_err *err);
/* Ends the command if it still runs, and what it started; waits for it, and writes the output that was kept. */
void top_command_end(struct top_processes *processes);
/* Opens new processes, finds children, and closes those that have ended. Returns 0; -ESRCH if all have ended; or the reason why
 * a named process cannot be read, with err set. */
int top_processes_find(struct top_processes *processes, struct krait_sums *sums, struct krait_err *err);
/* Reads each process, for the sums and the picture of stacks. */
struct top_reading {
    struct krait_sums *sums;
    struct top_stacks *stacks; /* NULL: not shown; else with KRAIT_READ_WAITS */
    uint32_t flags;            /* krait_remote_read */
    bool sleeping, others;    /* the sums are also of threads that do not run, and that do not hold the GIL */
    uint64_t now_ns, next_ns; /* of this reading and of the next; 0: something else comes before */
};
/* Adds to the sums by enum top_state with KRAIT_READ_WAITS. Returns 0 or -ENOMEM; if there is only one process, also the reason
 * why it can no longer be read. */
int top_processes_read(struct top_processes *processes, const struct top_reading *reading,
                       struct krait_err *err);
/* Lets krait run on all its CPUs again: it may have stayed on that of a thread (KRAIT_READ_STAY). */
void top_processes_rest(struct top_processes *processes);
/* The CPU time in ns that all processes have used since the last call. */
uint64_t top_processes_cpu(struct top_processes *processes);
/* The resident memory of all processes, in bytes. */
uint64_t top_processes_memory(const struct top_processes *processes);

/* -- what a table shows -- */

/* What a thread was doing, or waiting for: top_waits.c. */
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

/* The state of a thread that was read with KRAIT_READ_WAITS. */
enum top_state top_state_of(pid_t pid, const struct krait_remote_thread *thread);
/* The state of a thread as the kernel describes it, which does not know waits for the GIL. */
enum top_state top_state_of_task(pid_t pid, const struct krait_os_task *task);

enum top_by { TOP_BY_NOTHING, TOP_BY_THREAD, TOP_BY_PROCESS, TOP_BY_TASK, TOP_BY_COUNT };

/* Which rows a screen shows if not all of them fit. All zero: no row is selected, and the screen shows the first ones. */
struct top_scroll {
    bool selects;         /* a row is selected; it stays selected when the order changes */
    bool moved;           /* the user has moved the selection since the last table: `row` counts, not `key` */
    uint64_t key;         /* identifies the selected row's function, thread, ... */
    uint32_t row;         /* its place among all rows */
    uint32_t first;       /* the row on top */
    uint32_t rows, shown; /* all rows of the last table, and those that fitted */
    uint32_t line;        /* the line of text with the selected row; UINT32_MAX: no row is selected */
};

/* Which columns a table has. */
struct top_shape {
    bool exact, kernel;
    enum top_by by;
};

/* The keys of the columns of the last table by which it can be sorted, from left to right. */
struct top_sorts {
    const char *keys[9];
    uint32_t count;
};

enum { TOP_WIDTH_USUAL = 80 }; /* of a picture that is not on a terminal */

/* What krait shows. */
enum top_picture {
    TOP_TABLE,
    TOP_STACKS, /* only of samples */
    TOP_BARS,
    TOP_CLOCK, /* only of every call */
};

struct top_view {
    enum top_picture picture;
    bool beside_clock; /* bars that tell its colours */
    const struct top_stacks *stacks;
    struct top_colours *colours;
    uint64_t interval_ns, turn_ns; /* of the table, of the clock */
    uint64_t now;                  /* in ticks of `live` */
    uint32_t processes, threads;   /* that samples read */
    const struct krait_sums *sums;
    struct krait_live *live;   /* NULL: sums are of samples */
    struct top_scroll *scroll; /* NULL: the first rows */
    struct top_sorts *sorts;   /* NULL: not needed */
    const char *sort;
    bool reversed;                   /* in reversed order */
    const char *command;             /* the program's command line; NULL: none */
    const char *python;              /* its version, or "" */
    const struct krait_match *match; /* which functions to show; NULL: all */
    const char *filter;              /* the text of `match` */
    pid_t pid;                       /* the program's */
    enum top_by by;
    bool lines;     /* a row is a line, not a function */
    bool idle, gil; /* samples count threads that sleep too; the thread alone that holds the GIL */
    bool kernel;    /* time is split by enum top_state */
    bool classic;   /* the columns of --classic */
    bool marks;     /* names have KRAIT_HOLDS_DROPPED behind them */
    bool whole;     /* shares are of the whole time, not of the last interval */
    bool is_paused;
    bool to_now;    /* calls beside a clock are up to this moment, as its rays are */
    double cpu;     /* CPUs that the program used in that time; negative: not known */
    double own_cpu; /* the same for krait itself */
    double cost;    /* share of the program's CPU time that recording or reading takes; negative: not known */
    uint64_t cost_ns; /* the same as a time, since the beginning */
    uint64_t memory;  /* the program's, in bytes; 0: not known */
    uint64_t rate;    /* readings per second */
    /* Of the whole time, and of the interval; if `live` is not set. */
    struct top_unseen_sum unseen, last_unseen;
    uint64_t lost;    /* lost events, if `live` is set */
    uint32_t failed;  /* processes that cannot be recorded, if `live` is set */
    uint32_t stopped; /* ... and that have ended their recording themselves */
    uint32_t limit;   /* number of rows; 0: all */
    uint32_t height;  /* number of lines for heading and table; 0: any */
};

/* The number of threads that Python knows, in all processes; the number of processes that krait reads. */
uint32_t top_thread_count(const struct top_processes *processes);
uint32_t top_process_count(const struct top_processes *processes);

/* -- top_rows.c -- */

/* One row. The sums own the texts. */
struct top_row {
    const char *name, *file, *thread_name;
    const char *module; /* "": not known, as in samples */
    const char *marked; /* its name with a mark; NULL: no mark */
    bool holds_dropped;
    uint32_t line;
    pid_t pid, tid;                   /* the process and thread of the row; 0: not known, or several */
    uint64_t own_ns, total_ns, calls; /* since the beginning; only live sums have calls */
    uint64_t own, total;              /* shares of the time that the table covers, in millionths */
    uint64_t shown_calls;             /* calls in that time */
    uint64_t states[TOP_STATES];      /* shares, which add up to total */
    uint64_t tasks, longest_ns;       /* only in rows by task */
    double calls_s;
};

/* The figures of live sums for the time that the table covers. */
struct krait_live_figures top_figures(const struct top_view *view);

/* Makes the rows of a view; the caller frees them. Returns 0 or -ENOMEM. */
int top_rows(const struct top_view *view, struct top_row **rows, uint32_t *count);

/* -- top_table.c -- */

/* Returns 0, -ENOMEM, or -EINVAL with err listing the valid keys. */
int top_check_sort(const char *key, struct top_shape shape, struct krait_err *err);
/* The key of the column by which rows are sorted as long as the user does not choose another. */
const char *top_usual_sort(struct top_shape shape, enum top_picture picture);
/* The key of the column after that of `sort`. */
const char *top_next_sort(const char *sort, struct top_shape shape);
/* Writes heading and table. */
int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out);
/* Writes one line of JSON. */
int top_json(const struct top_view *view, struct krait_buf *out);

/* -- top_stacks.c: the current stacks -- */

struct top_stacks_thread;

struct top_stacks {
    struct top_stacks_thread *threads; /* the oldest first */
    uint32_t count, cap;
    struct krait_map places;   /* pid << 32 | tid -> place in `threads` + 1; 0: it has ended */
    size_t most_places;        /* of krait_map_trim */
    struct krait_strtab names; /* of functions */
    uint64_t now_ns;           /* of the last round */
};

void top_stacks_done(struct top_stacks *stacks);
/* A round: begin, add each process, end. Threads that no process had are gone. Returns 0 or -ENOMEM. */
void top_stacks_begin_round(struct top_stacks *stacks, uint64_t now_ns);
int top_stacks_add(struct top_stacks *stacks, const struct krait_remote *remote,
                   const struct krait_remote_stacks *from);
void top_stacks_end_round(struct top_stacks *stacks);
/* Draws those of a view in at most `height` lines; 0: any number. Returns 0 or -ENOMEM. */
int top_stacks_text(const struct top_view *view, uint32_t height, const struct krait_table_look *look,
                    struct krait_buf *out);

/* Ends a line, without the blanks at its end. */
void top_end_line(struct krait_buf *out);

/* -- top_colours.c: of functions, as in krait view -- */

struct top_colours {
    struct krait_strtab packages; /* those that have been shown */
    uint8_t *hues;                /* of each */
    uint32_t cap;
    bool taken[KRAIT_HUES];
};

void top_colours_done(struct top_colours *colours);
/* The colour of a function; `module` "": the file tells it. */
uint32_t top_colour_of(struct top_colours *colours, const char *module, const char *file, const char *name);
/* Until KRAIT_PLAIN, text has that colour. */
void top_colour_begin(struct krait_buf *out, uint32_t colour);

/* -- top_bars.c -- */

struct top_bars {
    const struct krait_sheet *sheet;     /* sorted; its first row is on top */
    const struct krait_table *table;     /* of these rows; its last column has the numbers */
    uint32_t number, name, file, module; /* columns of the sheet */
    struct top_colours *colours;
    bool beside; /* a clock, whose colours the rows tell */
};
/* Prints the table with a bar behind each row, as long as its number. Returns 0 or -ENOMEM. */
int top_bars_text(const struct top_bars *bars, const struct krait_table_look *look, struct krait_buf *out);

/* -- top_clock.c -- */

/* Whether the terminal shows braille characters. */
bool top_clock_can_draw(const struct krait_table_look *look);
struct top_clock_size {
    uint32_t columns, lines;
};
/* How much it takes of so many; 0 lines: any number. */
struct top_clock_size top_clock_size(uint32_t columns, uint32_t lines);
/* How many columns there are on its right; 0: too few. */
uint32_t top_clock_beside(struct top_clock_size size, uint32_t columns);
/* Draws the newest calls, with the lines of `beside` on the right. Returns 0 or -ENOMEM. */
int top_clock_text(const struct top_view *view, struct top_clock_size size, const struct krait_buf *beside,
                   const struct krait_table_look *look, struct krait_buf *out);

/* -- top_scroll.c -- */

/* Moves the selection if the key does that; else returns false. */
bool top_scroll_move(struct top_scroll *scroll, int key);
/* Ends the selection. */
void top_scroll_leave(struct top_scroll *scroll);
/* Before drawing a table of the first `rows` rows of a sorted sheet, of which `shown`, at least 1, fit: finds the selected row by
 * its number in the column, and scrolls to it. */
void top_scroll_fit(struct top_scroll *scroll, const struct krait_sheet *sheet, uint32_t column,
                    uint32_t rows, uint32_t shown);

/* -- top_exact.c: exact recording -- */

struct top_exact;

/* Opens a recording without a file and without processes. With `children`, it will include forked processes. */
int top_exact_open(struct top_exact **out, double max_overhead, bool children, struct krait_err *err);
/* Detaches from the processes; the sums stay. NULL is allowed, in top_exact_free too. */
void top_exact_finish(struct top_exact *exact);
void top_exact_free(struct top_exact *exact);
struct krait_live *top_exact_live(const struct top_exact *exact);
/* How many ns of its CPU time recording has cost the program so far: krait_collector_cost. */
uint64_t top_exact_cost(const struct top_exact *exact);
uint64_t top_exact_lost(const struct top_exact *exact);
/* Takes all events that there are; returns a time, in ticks, that none of them is after. */
uint64_t top_exact_catch_up(struct top_exact *exact);
/* What that returned last. */
uint64_t top_exact_now(const struct top_exact *exact);

/* From now on, records what this process starts from its first moment on. */
int top_exact_preload(struct top_exact *exact, struct krait_err *err);
/* Attaches to processes that are not recorded yet: to all with `at_once`, else to those that are new or have executed another
 * program. These get a second in which the preloaded library may begin the recording. Returns 0 or -ENOMEM. */
int top_exact_join(struct top_exact *exact, const struct top_processes *processes, bool at_once);
/* Whether the recording of any process has yet to begin. */
bool top_exact_begins(const struct top_exact *exact);
/* Why a process cannot be recorded, or NULL if it is recorded or was not tried; and the number of such processes. */
const struct krait_err *top_exact_failure(const struct top_exact *exact, pid_t pid);
uint32_t top_exact_failures(const struct top_exact *exact);
/* The number of running processes that have called krait.stop(). */
uint32_t top_exact_stopped(struct top_exact *exact, const struct top_processes *processes);
/* Lets the next top_exact_join try them again. */
void top_exact_forget_failures(struct top_exact *exact);

/* Reads the rings; with `nap`, sleeps a moment before. */
void top_exact_round(struct top_exact *exact, bool nap);
/* Reads the state of each thread, an enum top_state. Returns 0 or -ENOMEM. */
int top_exact_look(struct top_exact *exact, const struct top_processes *processes);
/* Ends an interval. */
void top_exact_turn(struct top_exact *exact);
void top_exact_reset(struct top_exact *exact);
/* Switches the recording in the processes off, so that it costs them nothing, or on again. */
void top_exact_switch(struct top_exact *exact, bool on);

/* -- top_screen.c -- */

struct top_screen;

/* From now on, signals that would end krait make top_is_asked_to_end() true. */
void top_catch_signals(void);
void top_release_signals(void);
/* From now on, a write to a pipe without a reader fails and raises no signal, but not in programs that krait starts. */
void top_catch_pipe(void);
bool top_is_asked_to_end(void);
/* Takes the terminal: the alternate screen, keys without Enter. Returns 0 or a negative errno. */
int top_screen_open(struct top_screen **out);
/* Restores the terminal. NULL is allowed. */
void top_screen_close(struct top_screen *screen);
/* Restores the terminal, stops krait, and takes the terminal again when krait continues. */
void top_screen_stop(struct top_screen *screen);
/* Takes the terminal again after something else has stopped krait. */
void top_screen_take(struct top_screen *screen);
/* The number of rows of the terminal. */
uint32_t top_screen_rows(void);
/* Replaces the screen's contents in one write. `keys` is the last line; the line `marked` is highlighted. */
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
    TOP_KEY_RESIZED,   /* the terminal's size has changed */
    TOP_KEY_STOP,      /* Ctrl-Z */
    TOP_KEY_CONTINUED, /* something else stopped krait, and it continues */
};

/* Waits for a key until `until_ns` of CLOCK_MONOTONIC, or until the descriptor `timer` can be read (-1: there is none); returns it,
 * or TOP_KEY_NONE. Sets *ends if a signal asks krait to end or the terminal is gone. Without a screen there are no keys. */
int top_screen_wait(struct top_screen *screen, int timer, uint64_t until_ns, bool *ends);

/* -- top.c -- */

/* In ns: the time, and the CPU time of the program's processes and of krait. */
struct top_cpu {
    uint64_t ns, program, own;
};

struct top {
    const struct top_options *options;
    struct top_processes processes;
    struct krait_sums sums;
    struct top_stacks stacks;
    struct top_colours colours;
    enum top_picture picture;
    struct top_exact *exact; /* NULL: not needed yet */
    bool is_exact;           /* the table shows `exact`, not the samples */
    struct krait_match *match;
    struct top_screen *screen; /* NULL: writes one table after the other */
    struct krait_err err;      /* why top ended */
    const char *sort;
    bool is_sort_chosen; /* by the user */
    bool reversed;
    struct top_scroll scroll;
    struct top_sorts sorts;
    enum top_by by;
    bool idle, gil, kernel, lines, paused, quit, helps;
    uint64_t rate, interval_ns, turn_ns, tables;
    uint64_t frame_ns;           /* when the clock was drawn last */
    struct krait_pace pace;      /* of readings */
    uint64_t last_ns;            /* the time of the last reading */
    uint64_t end_ns;             /* the end of the interval */
    uint64_t find_ns;            /* when to call top_processes_find again */
    struct top_cpu cpu_at, used; /* CPU time when it was read, and since the last table */
    double cpu, own_cpu, cost;
    uint64_t cost_ns[2]; /* so far: of samples, and of exact recording */
    uint64_t memory;
    uint32_t read_processes, read_threads;   /* at the last sample that read any */
    uint32_t shown_processes, shown_threads; /* at the last table, as what follows: see struct top_view */
    uint32_t failed, stopped;
    uint64_t lost;
    struct top_unseen_sum unseen, last_unseen;
    bool watches;           /* exact recording keeps the rays of a clock */
    uint32_t height;        /* of the last table on a screen */
    pid_t pid;              /* the program's */
    char *filter;           /* NULL: none */
    struct krait_buf typed; /* the filter that the user is typing */
    bool types;
    char note[sizeof(((struct krait_err *)NULL)->text)]; /* shown in place of the keys until the next key */
    struct krait_buf command;
    char python[32];
};

/* Draws the screen from the current data. */
void top_show_screen(struct top *top);
struct top_shape top_shape_of(const struct top *top);
void top_set_picture(struct top *top, enum top_picture picture);
/* Shows that picture, or the table again if it shows that already. */
void top_switch_picture(struct top *top, enum top_picture picture);
/* Whether there is what it shows; while the picture is paused nothing new comes. */
bool top_can_show(const struct top *top, enum top_picture picture);
/* Makes a turn of the clock twice as long, or half. */
void top_scale_turn(struct top *top, bool longer);
/* Switches between samples and exact recording; if that fails, top->note has the reason. */
void top_switch_exact(struct top *top);

/* -- top_interval.c -- */

/* Begins an interval now: the first table of a screen comes soon. */
void top_begin_interval(struct top *top);
/* ... and the CPU time counts from now on. */
void top_begin_counts(struct top *top);
/* Forgets all counts. */
void top_begin_anew(struct top *top);
/* Ends an interval: what was counted in it is what the table shows until the next call. */
void top_end_interval(struct top *top);
/* Reads how many processes and threads there are, and what exact recording has not seen. */
void top_read_counts(struct top *top);
/* Stops krait until the shell continues it; or continues after something else has stopped it. */
void top_stop(struct top *top);
void top_continue(struct top *top);
/* Stops the picture, or continues. */
void top_pause(struct top *top);

/* -- top_keys.c -- */

/* Handles a key, and redraws the screen. */
void top_press(struct top *top, int key);
/* Adds the line below the table, of at most `width` columns. */
void top_add_keys(struct krait_buf *line, const struct top *top, uint32_t width);
/* Adds the help text for all keys. */
void top_add_help(struct krait_buf *text, uint32_t width);
/* Other rows, or another picture, may need another order. */
void top_keep_sort(struct top *top);
/* Shows only functions that match; all if `text` is "" or not a valid pattern. */
void top_set_filter(struct top *top, const char *text);

#endif
