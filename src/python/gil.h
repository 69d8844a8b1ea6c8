/* SPDX-License-Identifier: Apache-2.0
 *
 * Which threads wait for the global interpreter lock, how long, and which thread holds it: the events gil:*. gil.c
 * explains how krait sees this.
 */
#ifndef KRAIT_PYTHON_GIL_H
#define KRAIT_PYTHON_GIL_H

#include "python/agent.h"

/* Finds the GIL of `in`, the calling interpreter, by dropping and taking it, and watches it until krait_gil_forget. If
 * this build of Python hides its GIL, that is counted as a loss. GIL held; other threads may run meanwhile. */
void krait_gil_watch(struct krait_interp *in);
/* The interpreter has ended: its GIL's address may be used for something else. */
void krait_gil_forget(struct krait_interp *in);
/* In a forked child: nobody else waits. Async-signal-safe. */
void krait_gil_forked(void);
/* This thread now has a ring: writes the wait before its first event. GIL held. */
void krait_gil_flush(void);
/* Writes the wait in which this thread dropped the GIL, before a note that it writes without the GIL. No GIL. */
void krait_gil_before_note(void);
/* This thread now has a ring in which its stack is already stated. */
void krait_gil_drop_pending(void);
/* The time of this thread's last gil: event or of its stack that was stated last, 0 if there was none. A slow path may
 * drop the GIL, and run Python code that switches the recording; the event that it writes must come after that. */
uint64_t krait_gil_last(void);
/* The thread has noted something at t: the same holds of that. */
void krait_gil_after(uint64_t t);

#endif
