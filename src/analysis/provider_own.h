/* SPDX-License-Identifier: Apache-2.0
 *
 * What provider.c and provider_read.c share.
 */
#ifndef KRAIT_ANALYSIS_PROVIDER_OWN_H
#define KRAIT_ANALYSIS_PROVIDER_OWN_H

#include "analysis/provider.h"
#include "base/map.h"
#include "base/xml.h"

/* What stands before the attributes of a pattern's scenarios: they are its own, and nobody else is told of them. */
#define KRAIT_PROVIDER_SCENARIOS "scenarios"

struct krait_pattern;
struct krait_scenario;

struct krait_provider {
    struct krait_xml *root; /* the element stateProvider, only with supported parts; in the rules' arena */
    struct krait_strtab paths, values;
    uint32_t *states, state_cap;   /* a value by path; KRAIT_NO_ID: none */
    struct krait_pattern *pattern; /* NULL: it has handlers of events */
};

/* An event on its way through a provider. */
struct krait_run {
    struct krait_provider *provider;
    struct krait_trigger_event *said;
    uint64_t t_ns;
    krait_provider_fn *fn;
    krait_segment_fn *segment;
    void *ctx;
    struct krait_scenario *scenario; /* of a pattern, that goes on; else NULL */
    struct krait_trigger plain;      /* has no pattern: its parts are the event's */
};

/* Of elements that were checked: whether a condition holds; a change of the state; a value, appended, false: there is
 * none; an attribute and all below it taken away. */
bool krait_provider_holds(struct krait_run *run, const struct krait_xml *element);
int krait_provider_change(struct krait_run *run, const struct krait_xml *element);
bool krait_provider_value(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to);
int krait_provider_delete(struct krait_run *run, const struct krait_buf *path);

/* A line in rules->notes for what is left out; `what` and `value` tell which elements of this name. Returns false. */
bool krait_provider_refuse(struct krait_rules *rules, const char *path, const struct krait_xml *at,
                           const char *what, const char *value);
/* Adds a lane for each view of a file whose analyses are known. Returns how many, or -ENOMEM. */
int krait_provider_views(struct krait_rules *rules, const char *path, const struct krait_xml *root);

/* The nanoseconds that a unit of <timerange> or <elapsedTime> has; 0: there is no such unit. */
uint64_t krait_provider_unit(const struct krait_xml *element);

/* "NAME.substring(FROM)" or "NAME.substring(FROM, UNTIL)": the only scripts. False: it is another. */
struct krait_provider_script {
    char name[64];
    unsigned from, until;
};
bool krait_provider_script(const char *text, struct krait_provider_script *out);

#endif
