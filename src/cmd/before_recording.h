/* SPDX-License-Identifier: Apache-2.0
 *
 * Before a program runs that is recorded: whether krait is installed completely, whether the command can be started and
 * recorded, and its environment.
 */
#ifndef KRAIT_CMD_BEFORE_RECORDING_H
#define KRAIT_CMD_BEFORE_RECORDING_H

#include "record/collector.h"

/* Exit statuses of `krait record` that are not the command's, as of env(1) and timeout(1). */
enum {
    KRAIT_EXIT_NOT_RECORDED = 125, /* by krait: the command was not run, or ended with 0 and left no trace */
    KRAIT_EXIT_CANNOT_RUN = 126,
    KRAIT_EXIT_NOT_FOUND = 127,
};

/* The path of the library to preload. The agent has to lie beside it. */
int krait_before_find_preload(char *path, size_t size, struct krait_err *err);

/* Sets this process's environment so that what it starts is recorded; `children`: and what that starts. */
int krait_before_set_environment(const struct krait_collector *collector, const char *preload, bool children,
                                 struct krait_err *err);

/* The file that a command's name stands for, on PATH if it has no slash. Returns 0 or an errno. */
int krait_before_look_up(const char *file, char *path, size_t size);
/* Whether `file` can be started as a command and recorded. Returns 0 or the status to exit with. */
int krait_before_check_command(const char *file, struct krait_err *err);

/* Adds to the reason why a file cannot be started what would start it, where it is a script. */
void krait_before_hint(const char *file, struct krait_err *err);

#endif
