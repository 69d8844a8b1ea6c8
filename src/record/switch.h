/* SPDX-License-Identifier: Apache-2.0
 *
 * Switching a recording off and on again while it runs.
 *
 * krait_control.state says what is wanted. Any process of the recording may change it: the collector does for `krait ctl`
 * and a signal, the program for krait.pause() and krait.resume(). Whoever has changed it adds 1 to krait_control.wakes, a futex.
 *
 *   RUN ──→ OFF   A process notices at the next slow path of an event: within 1/20 s of running Python. It removes its
 *                 hooks, and says in each thread's ring that nothing is open from then on.
 *   OFF ──→ RUN   No hook is there to notice. A thread that sleeps on the futex (python/switch.c) takes the GIL,
 *                 installs the hooks and states the stacks of all threads.
 *
 * krait_proc.off says what a process has done of it. One that has been off since it began has no open slot yet: it has
 * reserved one, whose state is TAKEN, and joins when it is switched on.
 */
#ifndef KRAIT_RECORD_SWITCH_H
#define KRAIT_RECORD_SWITCH_H

#include "record/shm.h"

/* Switches on or off. Returns whether the recording is as wanted now: it is not if it is over. Any thread; "no GIL". */
bool krait_switch(struct krait_control *control, bool on);

/* The recording ends: programs remove their hooks for good. Any thread; "no GIL". */
void krait_switch_stop(struct krait_control *control);

/* Sleeps until somebody wakes a thread of `group`. Returns at once if somebody has woken any since krait_control.wakes was
 * `wakes`: read that first, and then what is waited for. Signals may end it too. */
void krait_switch_sleep(struct krait_control *control, uint32_t wakes, uint32_t group);
/* Wakes those that sleep in a group of these bits, in all processes; they look again at what they wait for. */
void krait_switch_wake(struct krait_control *control, uint32_t groups);

#endif
