/* SPDX-License-Identifier: Apache-2.0
 *
 * Short-lived threads of the agent's own in the program.
 */
#ifndef KRAIT_PYTHON_WORKER_H
#define KRAIT_PYTHON_WORKER_H

#include <stddef.h>

/* Runs work(arg) in a new thread, which nobody joins and none of the program's signals come to. Returns 0 or a positive
 * errno. Keeps errno. */
int krait_worker_start(void *(*work)(void *), void *arg, size_t stack_bytes);

#endif
