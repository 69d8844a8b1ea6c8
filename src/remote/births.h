/* SPDX-License-Identifier: Apache-2.0
 *
 * Begins and ends of processes as the kernel tells them: the process events connector (drivers/connector/cn_proc.c,
 * CONFIG_PROC_EVENTS). It tells root, from Linux 6.6 on everybody, but nobody in a PID or user namespace of its own.
 */
#ifndef KRAIT_REMOTE_BIRTHS_H
#define KRAIT_REMOTE_BIRTHS_H

#include "base/base.h"

#include <sys/types.h>

struct krait_births;

struct krait_birth {
    pid_t pid, parent;
    bool ends; /* else it begins */
};

/* Asks the kernel for all processes of the machine from now on. Returns 0, or a negative errno. Where it does not tell, it may be
 * that there are just no events. */
int krait_births_open(struct krait_births **out);
void krait_births_free(struct krait_births *births);
/* The next event that has come. Returns false if there is none; events that come faster than somebody asks are lost. */
bool krait_births_next(struct krait_births *births, struct krait_birth *out);

#endif
