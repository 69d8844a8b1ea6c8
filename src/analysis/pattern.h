/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of Trace Compass's data-driven analyses: state machines over events. Each run of a machine, a scenario, goes
 * from state to state as events come, changes attributes, and at last tells of segments: intervals with a name (Trace
 * Compass User Guide, "Defining an XML pattern provider"; the schema is xmlPattern.xsd in its source).
 *
 *   <fsm id="request">                                           scenario 0  waits ── sent ── answered: a segment
 *     <state id="waits"> <transition event="send" target="sent" action="begin"/> </state>
 *     <state id="sent">  <transition event="answer" cond="same_id" target="answered" action="tell"/> </state>
 *     <final id="answered"/>
 *   </fsm>
 *
 * What a transition does is that of Trace Compass's DataDrivenFsm, DataDrivenScenario and DataDrivenPatternEventHandler: a
 * scenario that waits for its first event is pending, and as soon as it goes on there is a next one; in a machine that
 * consumes, an event moves one scenario alone, the oldest that it can move.
 */
#ifndef KRAIT_ANALYSIS_PATTERN_H
#define KRAIT_ANALYSIS_PATTERN_H

#include "analysis/provider_own.h"

struct krait_pattern; /* the machines of a provider and their scenarios */

/* Of a provider whose root is a <pattern>. NULL when memory is out. */
struct krait_pattern *krait_pattern_new(const struct krait_xml *root);
void krait_pattern_free(struct krait_pattern *pattern);
/* Forgets all scenarios. */
void krait_pattern_reset(struct krait_pattern *pattern);

bool krait_pattern_may(const struct krait_pattern *pattern, const char *event);

/* The next event. Returns 0, what one of run's functions returned, or -ENOMEM. */
int krait_pattern_event(struct krait_pattern *pattern, struct krait_run *run);

/* The element of a name, "fsm", "test" or "action", with an id; NULL: there is none. */
const struct krait_xml *krait_pattern_find(const struct krait_xml *root, const char *name, const char *id,
                                           size_t n);

/* A state of a machine, or the final one, by its id; NULL: there is none. */
const struct krait_xml *krait_pattern_state(const struct krait_xml *fsm, const char *id);
/* Where it begins: by an element <initialState>, an attribute, an element <initial>, or what stands first. */
const struct krait_xml *krait_pattern_first(const struct krait_xml *fsm);

/* The number that the scenario has in the pool at a path. KRAIT_NO_ID when memory is out. */
uint32_t krait_pattern_pool(struct krait_scenario *scenario, const char *path, size_t n);

/* When the scenario came into a state; false: it was not there yet. */
bool krait_pattern_since(const struct krait_scenario *scenario, const char *state, uint64_t *ns);

/* The path of the scenario's own attributes, appended. */
void krait_pattern_path(const struct krait_scenario *scenario, struct krait_buf *path);

#endif
