/* SPDX-License-Identifier: Apache-2.0
 *
 * What recording a call takes, measured where it is recorded: by this process's own hooks, in its own interpreter.
 */
#ifndef KRAIT_PYTHON_COST_H
#define KRAIT_PYTHON_COST_H

#include "python/agent.h"

struct krait_cost_trial;

/* Before the hooks are installed: makes two functions and times their calls. NULL: nothing is to be measured, or it is
 * not possible. GIL held. */
struct krait_cost_trial *krait_cost_begin(struct krait_interp *in);
/* With the hooks installed (`hooked`; else nothing is measured): times the same calls, recorded into a ring that nobody
 * reads, and sets in->agent->cost. Frees the trial; NULL is fine. GIL held. */
void krait_cost_end(struct krait_interp *in, struct krait_cost_trial *trial, bool hooked);
/* Writes process:cost, if there is one. GIL held. */
void krait_cost_say(struct krait_interp *in);

/* Whether a trial is under way in this thread: then slow paths record nothing. */
bool krait_cost_is_tried(void);

#endif
