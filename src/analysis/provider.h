/* SPDX-License-Identifier: Apache-2.0
 *
 * State providers of Trace Compass's data-driven analyses: XML that says how events change the attributes of a system
 * (Trace Compass User Guide, "Data driven analysis"; the schema is xmlStateProvider.xsd in its source).
 *
 *   <eventHandler eventName="sched_switch">
 *     <stateChange>
 *       <stateAttribute type="constant" value="Threads"/> <stateAttribute type="eventField" value="next_tid"/>
 *       <stateValue type="string" value="running"/>        the attribute Threads/102 is "running" from then on
 *     </stateChange>
 *   </eventHandler>
 */
#ifndef KRAIT_ANALYSIS_PROVIDER_H
#define KRAIT_ANALYSIS_PROVIDER_H

#include "analysis/rules.h"

struct krait_provider;

/* Adds a rule of states for each provider of a text, and one of intervals for each pattern that has segments.
 * What is not supported is left out, and told in rules->notes by its line. -EBADMSG: it is no XML of
 * data-driven analyses, or has no provider; -ENOMEM. */
int krait_provider_read(struct krait_rules *rules, const char *path, const char *text, size_t n,
                        const char **about, struct krait_err *err);
void krait_provider_free(struct krait_provider *provider);

/* Forgets all states: before each run over the events. */
void krait_provider_reset(struct krait_provider *provider);

/* Whether it looks at events of this name. */
bool krait_provider_may(const struct krait_provider *provider, const char *event);

/* What a provider tells of; each returns 0 or a negative errno. */
struct krait_provider_told {
    void *ctx;
    /* An attribute is in another state; value NULL: in none. Only what differs is told, in order of time. `updates`: it
     * was so since its state began. */
    int (*state)(void *ctx, uint64_t t_ns, const char *attribute, const char *value, bool updates);
    /* A segment of a pattern, or a call of a call stack, for the rule of that index. `fields` (n bytes) are its name, then
     * names and values by turns, each with its NUL. */
    int (*segment)(void *ctx, uint32_t rule, const char *fields, size_t n, uint64_t begin_ns,
                   uint64_t end_ns);
};

/* The next event, in order of time. Returns 0, what one of the functions returned, or -ENOMEM. */
int krait_provider_event(struct krait_provider *provider, struct krait_trigger_event *said, uint64_t t_ns,
                         const struct krait_provider_told *told);
/* No event follows: the changes that wait for a time until then are made, none later than at last_ns, the trace's end. Returns
 * the same. */
int krait_provider_end(struct krait_provider *provider, uint64_t until_ns, uint64_t last_ns,
                       const struct krait_provider_told *told);

#endif
