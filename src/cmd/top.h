/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of `krait top`.
 */
#ifndef KRAIT_CMD_TOP_H
#define KRAIT_CMD_TOP_H

#include "cmd/sheet.h"
#include "remote/sums.h"

struct top_options {
    bool once, idle, gil, json, classic;
    uint64_t batch, rate, interval_ns, limit;
    const char *sort;
};

/* What a table shows. */
struct top_view {
    const struct krait_remote *remote;
    const struct krait_sums *sums;
    const char *sort;
    const char *command; /* of the program; NULL: none */
    bool classic;        /* the columns of --classic */
    bool whole;          /* shares of all the time, not of the last interval */
    double cpu;          /* of the program, in CPUs, in that time; negative: not known */
    uint64_t rate;       /* readings a second */
    uint32_t limit;      /* rows; 0: all */
    uint32_t threads;    /* that Python knows */
};

/* -- top_table.c -- */

/* Returns 0, -ENOMEM, or -EINVAL with the keys there are. */
int top_check_sort(const char *key, struct krait_err *err);
/* The next key after `sort`, for a key of the keyboard. */
const char *top_next_sort(const char *sort);
/* Heading and table. */
int top_text(const struct top_view *view, const struct krait_table_look *look, struct krait_buf *out);
/* One line of JSON. */
int top_json(const struct top_view *view, struct krait_buf *out);

/* -- top_screen.c -- */

struct top_screen;

/* Takes the terminal: another screen, keys without Enter. Returns 0 or a negative errno. */
int top_screen_open(struct top_screen **out);
/* Gives it back as it was. NULL is fine. */
void top_screen_close(struct top_screen *screen);
/* Rows of the terminal. */
uint32_t top_screen_rows(void);
/* Shows text instead of what was there, with one write; `keys` is the last line. */
void top_screen_show(const struct krait_buf *text, const char *keys, const struct krait_table_look *look);
/* Waits until `until_ns` of CLOCK_MONOTONIC or a key; returns the key, 0 if none came, 'q' for a signal that ends krait. */
char top_screen_wait(const struct top_screen *screen, uint64_t until_ns);

#endif
