/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording that is viewed while it is made. `krait record --view` starts `krait view` on its folder in a process
 * group of its own, so that a failure of the page does not touch the recording. Ctrl-C in a terminal ends the command,
 * and the page ends after it.
 */
#ifndef KRAIT_CMD_WATCHING_H
#define KRAIT_CMD_WATCHING_H

#include "base/err.h"

#include <signal.h>

/* The option of `view` that `record` gives it; not in help. It waits for a first process, and follows until it gets the
 * signal: the recording is over. */
#define KRAIT_WATCHING_OPTION "follow-recording"
enum { KRAIT_VIEW_RECORDED = SIGUSR1 };

/* Starts to show the folder. Returns 0, or a negative errno with err set. */
int krait_watching_start(pid_t *viewer, const char *dir, struct krait_err *err);

/* The recording is over: the page shows all of it, and does not look for more. Without something to show it is ended. */
void krait_watching_tell(pid_t viewer, bool has_something);

/* Waits until the page is ended; ends it when `*ended`, a signal's number, is not 0 any more. */
void krait_watching_wait(pid_t viewer, const volatile sig_atomic_t *ended);

#endif
