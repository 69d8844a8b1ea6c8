/* SPDX-License-Identifier: Apache-2.0
 *
 * Which threads wait for the global interpreter lock, how long, and which thread holds it: the events gil:*. gil.c
 * explains how krait sees this.
 */
#ifndef KRAIT_PYTHON_GIL_H
#define KRAIT_PYTHON_GIL_H

#include "python/agent.h"

/* Finds the GIL of `in`, the calling interpreter, by giving it up and taking it again, and watches it until
 * krait_gil_forget. Where this build of Python hides it that is counted as lost. GIL held; other threads may
 * run meanwhile. */
void krait_gil_watch(struct krait_interp *in);
/* The interpreter has ended: another condition may stand at the address of its GIL's. */
void krait_gil_forget(struct krait_interp *in);
/* In a forked child: nobody else waits. Async-signal-safe. */
void krait_gil_forked(void);
/* This thread has got its ring: writes the wait before its first event. GIL held. */
void krait_gil_flush(void);
/* This thread has got a ring that says its stack already. */
void krait_gil_drop_pending(void);
/* The time of this thread's last event of the GIL, 0 where there was none. A slow path may give the GIL up:
 * the event that it writes comes after. */
uint64_t krait_gil_last(void);
/* The thread has noted something at t: the same holds of that. */
void krait_gil_after(uint64_t t);

#endif
