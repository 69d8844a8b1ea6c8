/* SPDX-License-Identifier: Apache-2.0
 *
 * What files name and a trace does not have: events and fields, which are then often mistyped; and fields that hide those of
 * programs.
 *
 *   own.toml:3: interval.run.start.event: there is no event 'sched_swich' in the trace; did you mean 'sched_switch'?
 *
 * The metadata decides, not what happened. Events are read only for a field that it does not have: programs add fields to
 * their marks and log records.
 */
#ifndef KRAIT_ANALYSIS_RULES_UNMET_H
#define KRAIT_ANALYSIS_RULES_UNMET_H

#include "analysis/rules.h"

/* Adds a line to `notes` for each name that the trace does not have, of the rules that `is_shown` names and of those that
 * they need, and marks these rules as unmet. `ctx` is passed on. Of a file for many traces, and of an event that has
 * others beside it in an array, only what is near another name is told. Returns 0, or -ENOMEM with err set. */
int krait_rules_unmet(struct krait_rules *rules, const struct krait_trace *trace,
                      bool (*is_shown)(const void *ctx, uint32_t rule), const void *ctx,
                      struct krait_buf *notes, struct krait_err *err);

#endif
