/* SPDX-License-Identifier: Apache-2.0
 *
 * A verb of the command is one row and one file. Verbs alone print to the user and decide the exit status:
 * 0 done, 1 failed (the reason on stderr), 2 wrong usage.
 */
#ifndef KRAIT_CMD_CMD_H
#define KRAIT_CMD_CMD_H

#include "cmd/opts.h"

struct krait_cmd {
    const char *name;
    const char *operands;    /* as shown after the options: "DIR", "-- COMMAND..." */
    const char *summary;     /* one line, for `krait help` */
    const char *description; /* paragraphs for --help and the manual page, separated by blank lines */
    const char *examples;    /* lines "command\0..."-free: each line a command, "# " lines explain */
    const struct krait_opt *opts;
    bool stop_at_operand;    /* what follows the first operand belongs to another program */
    const char *exit_status; /* for the manual page; NULL for the usual 0, 1, 2 */
    bool hidden;             /* for krait's own use */
    size_t values_size;      /* of the options struct, zeroed before parsing */
    int (*run)(void *values, int argc, char **argv); /* argv: the operands */
};

extern const struct krait_cmd *const krait_cmds[]; /* NULL-terminated, in the order of `krait help` */

/* "krait VERB: text" on stderr; returns 1. Red "krait" on a terminal unless NO_COLOR is set. */
int krait_cmd_fail(const struct krait_cmd *cmd, const struct krait_err *err);

/* The same for wrong usage, and where the help is; returns 2. */
int krait_cmd_usage(const struct krait_cmd *cmd, const struct krait_err *err);

/* Prints --help of a verb. */
void krait_cmd_help(const struct krait_cmd *cmd, FILE *to);

#endif
