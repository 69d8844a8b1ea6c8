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

/* What stands between a thread and the places of its call stack. */
#define KRAIT_PROVIDER_CALLS "/CallStack"

struct krait_pattern;
struct krait_scenario;

/* A change that waits for its time: of those of one time, the oldest comes first. */
struct krait_future {
    uint64_t t_ns, number;
    const char *how;             /* "", or as krait_provider_put has it */
    uint32_t path, value, times; /* value KRAIT_NO_ID: none */
};

struct krait_provider {
    struct krait_xml *root; /* the element stateProvider, only with supported parts; in the rules' arena */
    const char *id;         /* by which views name it */
    struct krait_strtab paths, values;
    struct krait_state {
        uint32_t value; /* KRAIT_NO_ID: none */
        uint64_t since_ns;
    } * states; /* by path */
    uint32_t state_cap;
    struct krait_pattern *pattern; /* NULL: it has handlers of events */
    uint32_t segments;             /* of a pattern: the index of the rule that has its segments */
    struct krait_provider_calls {
        const char *glob; /* of the attributes that have calls */
        uint32_t rule;    /* index: that has them */
    } * calls;            /* of call stacks */
    uint32_t call_count, call_cap;
    struct krait_future *futures; /* a heap, the next one first */
    uint32_t future_count, future_cap;
    uint64_t future_number;
};

/* An event on its way through a provider. */
struct krait_run {
    struct krait_provider *provider;
    struct krait_trigger_event *said;
    uint64_t t_ns;
    const struct krait_provider_told *told;
    struct krait_scenario *scenario; /* of a pattern, that goes on; else NULL */
    struct krait_trigger plain;      /* has no pattern: its parts are the event's */
};

/* Of elements that were checked: whether a condition holds; a change of the state; a value, appended, false: there is
 * none; an attribute and all below it taken away. */
bool krait_provider_holds(struct krait_run *run, const struct krait_xml *element);
int krait_provider_change(struct krait_run *run, const struct krait_xml *element);
bool krait_provider_value(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to);
int krait_provider_delete(struct krait_run *run, const struct krait_buf *path);

/* The number of a path, with room for its state. KRAIT_NO_ID when memory is out. */
uint32_t krait_provider_attribute(struct krait_provider *provider, const struct krait_buf *path);
/* Makes a change of a path, which stays as it is: "" sets its value, NULL is none; "delete", "push", "pop", "popAll". */
int krait_provider_put(struct krait_run *run, struct krait_buf *path, const char *how, const char *value);

/* Changes of a later time (provider_future.c): one more, `times` over; those that are due until then; none at all. */
int krait_provider_later(struct krait_run *run, const struct krait_buf *path, struct krait_future future,
                         const char *value);
int krait_provider_catch_up(struct krait_run *run, uint64_t until_ns, uint64_t last_ns);
void krait_provider_forget_later(struct krait_provider *provider);

/* A line in rules->notes for what is left out; `what` and `value` tell which elements of this name. Returns false. */
bool krait_provider_refuse(struct krait_rules *rules, const char *path, const struct krait_xml *at,
                           const char *what, const char *value);
/* The rule of a provider's states, by the name that views have for it; KRAIT_NO_ID: there is none. */
uint32_t krait_provider_find(const struct krait_rules *rules, const char *id);
/* A lane of call stacks: a row for each depth of each stack. `calls`: a glob of attributes. -ENOMEM. */
int krait_provider_calls_lane(struct krait_rules *rules, const char *title, const char *calls, uint32_t rule);
/* The attributes that have the calls of a <callstackGroup>, as a glob in the rules' arena. NULL when memory is out. */
const char *krait_provider_calls_glob(struct krait_rules *rules, const struct krait_xml *group);
/* Adds a lane for each view of a file whose analyses are known. Returns how many, or -ENOMEM. */
int krait_provider_views(struct krait_rules *rules, const char *path, const struct krait_xml *root);

/* The nanoseconds that a unit of <timerange> or <elapsedTime> has; 0: there is no such unit. */
uint64_t krait_provider_unit(const struct krait_xml *element);

/* "NAME.substring(FROM)", "NAME.substring(FROM, UNTIL)", "NAME + NUMBER" or "NAME - NUMBER": the only scripts. False: it is
 * another. */
struct krait_provider_script {
    char name[64];
    unsigned from, until;
    bool adds;
    long long number; /* that it adds */
};
bool krait_provider_script(const char *text, struct krait_provider_script *out);

#endif
