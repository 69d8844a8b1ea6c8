/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads state providers and patterns, and takes out what krait does not know, so that the rest can be run without a doubt.
 */
#include "analysis/pattern.h"
#include "analysis/provider_own.h"

#include "base/array.h"
#include "base/fmt.h"

#include <string.h>

struct checker {
    struct krait_rules *rules;
    const char *path;
    const struct krait_xml *provider, *fsm; /* that is read; the state machine in it */
    uint32_t depth;                         /* of locations in locations */
    uint32_t fields;                        /* of all segments */
    bool is_pattern;                        /* it has scenarios, and pools */
};

enum { DEEPEST_LOCATION = 16, MOST_FIELDS = 256 };

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words;
}

static bool refuse(struct checker *c, const struct krait_xml *at, const char *what, const char *value)
{
    return krait_provider_refuse(c->rules, c->path, at, what, value);
}

static bool refuse_type(struct checker *c, const struct krait_xml *at)
{
    KRAIT_AUTO_BUF value = { 0 };
    krait_buf_fmt(&value, "=\"%s\"", krait_xml_get(at, "type"));
    return refuse(c, at, "type", value.data ? value.data : "");
}

/* -- parts -- */

static bool check_attributes(struct checker *c, const struct krait_xml *first);

static bool check_location(struct checker *c, const struct krait_xml *attribute)
{
    const char *id = krait_xml_get(attribute, "value");
    for (const struct krait_xml *at = krait_xml_first(c->provider, "location"); at;
         at = krait_xml_next(at, "location")) {
        if (strcmp(krait_xml_get(at, "id"), id) != 0)
            continue;
        if (c->depth == DEEPEST_LOCATION)
            return refuse(c, attribute, "that stands for itself", "");
        c->depth++;
        bool well = check_attributes(c, at->first);
        c->depth--;
        return well;
    }
    KRAIT_AUTO_BUF value = { 0 };
    krait_buf_fmt(&value, "=\"%s\"", id);
    return refuse(c, attribute, "of no location", value.data ? value.data : "");
}

static bool check_attributes(struct checker *c, const struct krait_xml *first)
{
    static const char *const types[] = { "constant", "eventField", "eventName", "query", "location", NULL };
    bool well = true;
    for (const struct krait_xml *at = first; at && well; at = at->next) {
        if (strcmp(at->name, "stateAttribute") != 0)
            continue;
        const char *type = krait_xml_get(at, "type");
        bool is_pool = c->is_pattern && strcmp(type, "pool") == 0;
        well = is_pool || is_one_of(type, types) ? true : refuse_type(c, at);
        if (well && strcmp(type, "location") == 0)
            well = check_location(c, at);
        if (well && strcmp(type, "query") == 0)
            well = check_attributes(c, at->first);
    }
    return well;
}

static bool check_values(struct checker *c, const struct krait_xml *first);

/* "+" adds numbers and joins texts: only of these is it known which they are. */
static bool is_number(const struct krait_xml *value)
{
    static const char *const types[] = { "int", "long", NULL };
    const char *type = krait_xml_get(value, "type");
    return is_one_of(type, types) ||
           (strcmp(type, "eventField") == 0 && strcasecmp(krait_xml_get(value, "value"), "timestamp") == 0);
}

static bool is_known_script(const struct krait_xml *value)
{
    struct krait_provider_script script;
    if (!krait_provider_script(krait_xml_get(value, "value"), &script))
        return false;
    for (const struct krait_xml *at = krait_xml_first(value, "stateValue"); at && script.adds;
         at = krait_xml_next(at, "stateValue")) {
        if (strcmp(krait_xml_get(at, "id"), script.name) == 0)
            return is_number(at);
    }
    return !script.adds;
}

static bool check_value(struct checker *c, const struct krait_xml *value)
{
    static const char *const types[] = { "int",        "long",      "double", "string", "null",
                                         "eventField", "eventName", "query",  "delete", NULL };
    static const char *const stacks[] = { "", "push", "pop", "popAll", "peek", NULL };
    if (strcmp(krait_xml_get(value, "type"), "script") == 0)
        return is_known_script(value) ? check_values(c, value->first) : refuse(c, value, "with a script", "");
    if (!is_one_of(krait_xml_get(value, "type"), types))
        return refuse_type(c, value);
    if (!is_one_of(krait_xml_get(value, "stack"), stacks))
        return refuse(c, value, "stack", "");
    return check_attributes(c, value->first);
}

/* Those within a script. */
static bool check_values(struct checker *c, const struct krait_xml *first)
{
    bool well = true;
    for (const struct krait_xml *at = first; at && well; at = at->next)
        well = strcmp(at->name, "stateValue") != 0 || check_value(c, at);
    return well;
}

/* -- conditions -- */

/* <timerange> and <elapsedTime>, with what they compare. */
static bool check_time(struct checker *c, const struct krait_xml *element)
{
    static const char *const ranges[] = { "in", "out", NULL }, *const elapsed[] = { "less", "equal", "more",
                                                                                    NULL };
    bool is_range = strcmp(element->name, "timerange") == 0;
    if (element->first && is_one_of(element->first->name, is_range ? ranges : elapsed) &&
        krait_provider_unit(element))
        return true;
    return refuse(c, element, "", "");
}

static bool check_condition(struct checker *c, const struct krait_xml *element)
{
    static const char *const times[] = { "timerange", "elapsedTime", NULL };
    if (c->is_pattern && strcmp(element->name, "condition") == 0 && element->first &&
        is_one_of(element->first->name, times))
        return check_time(c, element->first);
    static const char *const inner[] = { "and", "or", "not", "if", NULL };
    static const char *const operators[] = { "", "eq", "ne", "ge", "gt", "le", "lt", NULL };
    bool is_condition = strcmp(element->name, "condition") == 0, well = true, has_value = false;
    if (!is_condition && !is_one_of(element->name, inner))
        return refuse(c, element, "", "");
    if (!is_one_of(krait_xml_get(element, "operator"), operators))
        return refuse(c, element, "operator", "");
    for (const struct krait_xml *at = element->first; at && well; at = at->next) {
        has_value = strcmp(at->name, "stateValue") == 0;
        if (!is_condition)
            well = check_condition(c, at);
        else if (has_value)
            well = check_value(c, at);
        else if (strcmp(at->name, "field") != 0 && strcmp(at->name, "stateAttribute") != 0)
            well = refuse(c, at, "", "");
    }
    if (well && (!element->first || (is_condition && (!has_value || !element->first->next))))
        well = refuse(c, element, "without a value to compare with", "");
    return well && (!is_condition || check_attributes(c, element->first));
}

/* -- changes -- */

static bool check_change(struct checker *c, const struct krait_xml *element)
{
    static const char *const known[] = { "stateAttribute", "stateValue", "if", "then",
                                         "else",           "futureTime", NULL };
    const struct krait_xml *time = krait_xml_first(element, "futureTime");
    const struct krait_xml *condition = krait_xml_first(element, "if");
    const struct krait_xml *then = krait_xml_first(element, "then");
    const struct krait_xml *other = krait_xml_first(element, "else");
    const struct krait_xml *value = krait_xml_first(element, "stateValue");
    for (const struct krait_xml *at = element->first; at; at = at->next) {
        if (!is_one_of(at->name, known))
            return refuse(c, at, "", "");
    }
    if (condition)
        return then ? check_condition(c, condition) && check_change(c, then) &&
                          (!other || check_change(c, other))
                    : refuse(c, condition, "without <then>", "");
    if (!value || !krait_xml_first(element, "stateAttribute"))
        return refuse(c, element, "without an attribute and a value", "");
    return check_attributes(c, element->first) && check_value(c, value) && (!time || check_value(c, time));
}

/* Takes the changes out that are not supported. Returns how many stay. */
static uint32_t check_handler(struct checker *c, struct krait_xml *handler)
{
    uint32_t kept = 0;
    for (struct krait_xml **at = &handler->first; *at;) {
        if (strcmp((*at)->name, "stateChange") == 0 ? check_change(c, *at) : refuse(c, *at, "", "")) {
            kept++;
            at = &(*at)->next;
        } else {
            *at = (*at)->next;
        }
    }
    return kept;
}

/* -- patterns -- */

typedef bool check_fn(struct checker *c, struct krait_xml *element);

/* Keeps the elements that a function finds right. Returns how many stay. */
static uint32_t check_all(struct checker *c, struct krait_xml *in, check_fn *check)
{
    uint32_t kept = 0;
    for (struct krait_xml **at = &in->first; *at;) {
        bool well = check(c, *at);
        kept += well;
        if (well)
            at = &(*at)->next;
        else
            *at = (*at)->next;
    }
    return kept;
}

/* <begin>, and <end> or <duration>: values. */
static bool check_times(struct checker *c, const struct krait_xml *times)
{
    bool well = true;
    for (const struct krait_xml *at = times->first; at && well; at = at->next)
        well = check_value(c, at);
    return well;
}

/* Names head columns, also of CSV. */
static bool is_column(const char *name)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, name);
    return *name && safe.data && strcmp(safe.data, name) == 0 && !strpbrk(name, ",\"");
}

static bool check_field(struct checker *c, struct krait_xml *field)
{
    static const char *const types[] = { "int", "long", "double", "string", "null", NULL };
    const struct krait_xml *value = krait_xml_first(field, "stateValue");
    if (strcmp(field->name, "segField") != 0)
        return refuse(c, field, "", "");
    if (!is_column(krait_xml_get(field, "name")))
        return refuse(c, field, "without a name for a column", "");
    if (c->fields++ >= MOST_FIELDS)
        return refuse(c, field, "beyond the 256 that a file may have", "");
    if (!is_one_of(krait_xml_get(field, "type"), types))
        return refuse_type(c, field);
    if (*krait_xml_get(field, "value") || strcmp(krait_xml_get(field, "type"), "null") == 0)
        return true;
    return value ? check_value(c, value) : refuse(c, field, "without a value", "");
}

static bool check_segment(struct checker *c, struct krait_xml *segment)
{
    static const char *const parts[] = { "segType", "segTime", "segContent", NULL };
    for (struct krait_xml *at = segment->first; at; at = at->next) {
        if (!is_one_of(at->name, parts))
            return refuse(c, at, "", "");
        if (strcmp(at->name, "segTime") == 0 && !check_times(c, at))
            return false;
        if (strcmp(at->name, "segContent") == 0)
            check_all(c, at, check_field);
    }
    const struct krait_xml *type = krait_xml_first(segment, "segType");
    const struct krait_xml *name = type ? krait_xml_first(type, "segName") : NULL;
    const struct krait_xml *value = name ? krait_xml_first(name, "stateValue") : NULL;
    if (!value && !(type && *krait_xml_get(type, "segName")))
        return refuse(c, segment, "without a name", "");
    return !value || check_value(c, value);
}

static bool check_step(struct checker *c, struct krait_xml *step)
{
    if (strcmp(step->name, "segment") == 0)
        return check_segment(c, step);
    return strcmp(step->name, "stateChange") == 0 ? check_change(c, step) : refuse(c, step, "", "");
}

/* "a:b": each has to be there. */
static bool check_names(struct checker *c, const struct krait_xml *at, const char *key, const char *kind)
{
    const char *names = krait_xml_get(at, key);
    for (size_t n; *names; names += n + (names[n] == ':')) {
        n = strcspn(names, ":");
        KRAIT_AUTO_BUF value = { 0 };
        krait_buf_fmt(&value, "=\"%.*s\", which is not there,", (int)n, names);
        if (!krait_pattern_find(c->provider, kind, names, n))
            return refuse(c, at, key, value.data ? value.data : "");
    }
    return true;
}

static bool check_transition(struct checker *c, struct krait_xml *at)
{
    static const char *const others[] = { "onentry", "onexit", NULL };
    if (is_one_of(at->name, others))
        return check_names(c, at, "action", "action");
    if (strcmp(at->name, "transition") != 0)
        return refuse(c, at, "", "");
    if (!krait_pattern_state(c->fsm, krait_xml_get(at, "target")))
        return refuse(c, at, "without a target", "");
    return check_names(c, at, "cond", "test") && check_names(c, at, "action", "action");
}

static bool check_state(struct checker *c, struct krait_xml *at)
{
    static const char *const states[] = { "state", "initialState", NULL }, *const quiet[] = { "final",
                                                                                              "initial",
                                                                                              NULL };
    if (is_one_of(at->name, states))
        check_all(c, at, check_transition);
    else if (strcmp(at->name, "precondition") == 0)
        return check_names(c, at, "cond", "test");
    else if (!is_one_of(at->name, quiet))
        return refuse(c, at, "", "");
    return true;
}

/* What handlers are made of: tests, actions, and last the machines, which name them. */
static bool check_part(struct checker *c, struct krait_xml *at)
{
    if (strcmp(at->name, "test") == 0) {
        const struct krait_xml *condition = krait_xml_first(at, "if");
        return condition ? check_condition(c, condition) : refuse(c, at, "without <if>", "");
    }
    if (strcmp(at->name, "action") == 0)
        return check_all(c, at, check_step);
    return strcmp(at->name, "fsm") == 0 ? true : refuse(c, at, "", "");
}

static bool check_machine(struct checker *c, struct krait_xml *at)
{
    if (strcmp(at->name, "fsm") != 0)
        return true;
    c->fsm = at;
    check_all(c, at, check_state);
    return krait_pattern_first(at) ? true : refuse(c, at, "without a first state", "");
}

/* What stands beside the handlers of a provider or pattern and is read where it is used. */
static bool is_beside(const struct krait_xml *at)
{
    static const char *const names[] = { "head", "definedValue", "location", "mappingGroup", NULL };
    return is_one_of(at->name, names);
}

static uint32_t check_pattern(struct checker *c, struct krait_xml *pattern)
{
    struct krait_xml *handler = (struct krait_xml *)krait_xml_first(pattern, "patternHandler");
    c->provider = pattern;
    c->is_pattern = true;
    for (struct krait_xml *at = pattern->first; at; at = at->next) {
        bool is_stored = strcmp(at->name, "storedField") == 0;
        if (is_stored && !*krait_xml_get(at, "id"))
            refuse(c, at, "without an id", "");
        else if (at != handler && !is_stored && !is_beside(at))
            refuse(c, at, "", "");
    }
    uint32_t kept = handler && check_all(c, handler, check_part) ? check_all(c, handler, check_machine) : 0;
    c->is_pattern = false;
    return kept && krait_xml_first(handler, "fsm");
}

static uint32_t check_provider(struct checker *c, struct krait_xml *provider)
{
    uint32_t kept = 0;
    c->provider = provider;
    for (struct krait_xml *at = provider->first; at; at = at->next) {
        if (strcmp(at->name, "eventHandler") == 0)
            kept += check_handler(c, at);
        else if (!is_beside(at))
            refuse(c, at, "", "");
    }
    return kept;
}

/* -- names that only a trace can tell to be wrong -- */

/* Events of an element's attribute: globs, with bars between. They are of many traces: so are the files that come with
 * Trace Compass. Returns what takes them, NULL when memory is out. */
static const struct krait_trigger *keep_events(struct checker *c, const struct krait_xml *at, const char *key)
{
    struct krait_arena *arena = &c->rules->arena;
    struct krait_trigger *trigger = KRAIT_ARENA_NEW(arena, struct krait_trigger);
    const char *names = krait_xml_get(at, key),
               **events = krait_arena_alloc(arena, (strlen(names) + 1) * sizeof(*events));
    struct krait_rule_name kept = { .at = krait_arena_fmt(arena, "%s:%u: %s.%s: ", c->path, at->line,
                                                          at->name, key),
                                    .trigger = trigger,
                                    .rule = c->rules->count - 1,
                                    .is_of_many = true };
    if (!trigger || !events)
        return NULL;
    trigger->events = events;
    for (size_t n; *names; names += n + (names[n] == '|')) {
        n = strcspn(names, "|");
        kept.name = events[trigger->event_count++] = krait_arena_strndup(arena, names, n);
        if (krait_rules_name(c->rules, &kept))
            return NULL;
    }
    return trigger;
}

/* Fields of the event that a handler takes, in all elements below one; but those that are known of all events. */
static int keep_fields(struct checker *c, const struct krait_xml *in, const struct krait_trigger *trigger)
{
    static const char *const known[] = { "timestamp", "cpu", "tid", "hostid", NULL };
    int rc = 0;
    for (const struct krait_xml *at = in->first; at && !rc; at = at->next) {
        bool is_field = strcmp(at->name, "field") == 0,
             is_value = strcmp(krait_xml_get(at, "type"), "eventField") == 0;
        const char *key = is_field ? "name" : "value", *name = krait_xml_get(at, key);
        struct krait_rule_name kept = { .name = name,
                                        .trigger = trigger,
                                        .rule = c->rules->count - 1,
                                        .is_field = true,
                                        .is_of_many = true };
        size_t i = 0;
        while (known[i] && strcasecmp(known[i], name) != 0)
            i++;
        if ((is_field || is_value) && !known[i]) {
            kept.at = krait_arena_fmt(&c->rules->arena, "%s:%u: %s.%s: ", c->path, at->line, at->name, key);
            rc = krait_rules_name(c->rules, &kept);
        }
        rc = rc ? rc : keep_fields(c, at, trigger);
    }
    return rc;
}

static int keep_handlers(struct checker *c, const struct krait_xml *provider)
{
    int rc = 0;
    for (const struct krait_xml *at = krait_xml_first(provider, "eventHandler"); at && !rc;
         at = krait_xml_next(at, "eventHandler")) {
        const struct krait_trigger *trigger = keep_events(c, at, "eventName");
        rc = trigger ? keep_fields(c, at, trigger) : -ENOMEM;
    }
    return rc;
}

/* Those of a pattern's transitions. Its tests and actions take fields of whatever event there is. */
static int keep_transitions(struct checker *c, const struct krait_xml *in)
{
    int rc = 0;
    for (const struct krait_xml *at = in->first; at && !rc; at = at->next) {
        bool is_one = strcmp(at->name, "transition") == 0 && *krait_xml_get(at, "event");
        rc = is_one && !keep_events(c, at, "event") ? -ENOMEM : keep_transitions(c, at);
    }
    return rc;
}

/* -- files -- */

static const char *label_of(const struct krait_xml *provider)
{
    const struct krait_xml *head = krait_xml_first(provider, "head");
    const struct krait_xml *label = head ? krait_xml_first(head, "label") : NULL;
    return label ? krait_xml_get(label, "value") : "";
}

/* Whether one of a pattern's actions has an element like this: a segment, or a change that others are told of. */
static bool has_step(const struct krait_xml *pattern, const char *name)
{
    const struct krait_xml *handler = krait_xml_first(pattern, "patternHandler");
    for (const struct krait_xml *at = handler ? krait_xml_first(handler, "action") : NULL; at;
         at = krait_xml_next(at, "action")) {
        for (const struct krait_xml *step = krait_xml_first(at, name); step;
             step = krait_xml_next(step, name)) {
            const struct krait_xml *attribute = krait_xml_first(step, "stateAttribute");
            if (!attribute || strcmp(krait_xml_get(attribute, "value"), "#CurrentScenario") != 0)
                return true;
        }
    }
    return false;
}

static struct krait_interval_rule *add_rule(struct checker *c, enum krait_rule_kind kind, const char *id,
                                            const char *what)
{
    const char *name = krait_arena_fmt(&c->rules->arena, "%s%s", id, what);
    return name ? krait_rules_add(c->rules, kind, name, 0) : NULL;
}

/* Appends the names of the fields in an element, each once. `path`: the elements that lead to them. */
static void add_fields(const struct krait_xml *in, const char *const *path, const char *const *end,
                       const char **fields)
{
    for (const struct krait_xml *at = krait_xml_first(in, *path); at; at = krait_xml_next(at, *path)) {
        const char **to = fields, *name = krait_xml_get(at, "name");
        if (path + 1 < end) {
            add_fields(at, path + 1, end, fields);
            continue;
        }
        while (*to && strcmp(*to, name) != 0)
            to++;
        *to = name;
    }
}

/* The names of all fields that segments may have: those of the elements that were checked. NULL when memory is out. */
static const char *const *find_fields(struct checker *c, const struct krait_xml *pattern)
{
    static const char *const path[] = { "patternHandler", "action", "segment", "segContent", "segField" };
    const char **fields = krait_arena_alloc(&c->rules->arena, (MOST_FIELDS + 1) * sizeof(*fields));
    if (!fields)
        return NULL;
    memset(fields, 0, (MOST_FIELDS + 1) * sizeof(*fields));
    add_fields(pattern, path, path + KRAIT_ARRAY_LEN(path), fields);
    return fields;
}

/* Of a pattern, its segments have its name, if it has any. */
static int add_segments(struct checker *c, struct krait_provider *provider, const char *id)
{
    uint32_t of_states = c->rules->count - 1;
    provider->pattern = krait_pattern_new(provider->root);
    if (!provider->pattern)
        return -ENOMEM;
    c->rules->items[of_states].is_hidden = !has_step(provider->root, "stateChange");
    if (!has_step(provider->root, "segment"))
        return 0;
    struct krait_interval_rule *rule = add_rule(c, KRAIT_RULE_PAIRS, id, "");
    if (!rule)
        return -ENOMEM;
    rule->by_key = true;
    rule->fields = find_fields(c, provider->root);
    rule->told_by = of_states + 1;
    provider->segments = c->rules->count - 1;
    return rule->fields ? 0 : -ENOMEM;
}

/* `known_as`: what views call it. */
static int add_provider(struct checker *c, struct krait_xml *element, const char *known_as,
                        struct krait_err *err)
{
    bool is_pattern = strcmp(element->name, "pattern") == 0;
    const char *id = *krait_xml_get(element, "id") ? krait_xml_get(element, "id") : "provider";
    struct krait_provider *provider = calloc(1, sizeof(*provider));
    struct krait_interval_rule *rule =
        provider
            ? add_rule(c, KRAIT_RULE_STATES, id, is_pattern && has_step(element, "segment") ? " states" : "")
            : NULL;
    if (!rule) {
        free(provider);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    provider->root = element;
    provider->id = known_as;
    rule->provider = provider;
    if (is_pattern ? keep_transitions(c, element) : keep_handlers(c, element))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return is_pattern && add_segments(c, provider, id) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* Adds to *kept what krait supports of it. */
static int read_provider(struct checker *c, struct krait_xml *at, const char *known_as, uint32_t *kept,
                         struct krait_err *err)
{
    bool is_pattern = strcmp(at->name, "pattern") == 0;
    uint32_t own = is_pattern ? check_pattern(c, at) : check_provider(c, at);
    *kept += own;
    if (is_pattern && !own)
        refuse(c, at, "without a state machine", "");
    return own || !is_pattern ? add_provider(c, at, known_as, err) : 0;
}

static const struct krait_xml *first_of(const struct krait_xml *in, const char *a, const char *b)
{
    const struct krait_xml *found = krait_xml_first(in, a);
    return found ? found : krait_xml_first(in, b);
}

/* The calls of a provider's stacks: intervals of the names of functions, and a lane. */
static int add_calls(struct checker *c, const struct krait_xml *callstack, const struct krait_xml *group,
                     uint32_t states)
{
    static const char *const fields[] = { "stack", "depth", NULL };
    struct krait_provider *provider = c->rules->items[states].provider;
    const char *id = krait_xml_get(callstack, "id"), *label = label_of(provider->root);
    const char *title = *krait_xml_get(group, "name") ? krait_xml_get(group, "name") : *label ? label : id;
    const char *calls = krait_provider_calls_glob(c->rules, group);
    if (!calls || krait_provider_calls_lane(c->rules, title, calls, states))
        return -ENOMEM;
    struct krait_interval_rule *rule = add_rule(c, KRAIT_RULE_PAIRS, *id ? id : "callstack", "");
    if (!rule || !KRAIT_GROW(provider->calls, provider->call_cap, provider->call_count + 1))
        return -ENOMEM;
    rule->by_key = rule->is_undrawn = true;
    rule->fields = fields;
    rule->told_by = states + 1;
    provider->calls[provider->call_count++] = (struct krait_provider_calls){ calls, c->rules->count - 1 };
    return 0;
}

/* <callstack> with a provider in it, or with the name of one that was read. */
static int read_callstack(struct checker *c, const struct krait_xml *at, uint32_t *kept,
                          struct krait_err *err)
{
    const struct krait_xml *group = krait_xml_first(at, "callstackGroup"),
                           *other = krait_xml_first(at, "analysis"),
                           *own = first_of(at, "pattern", "stateProvider");
    const struct krait_xml *more = group ? krait_xml_next(group, "callstackGroup") : NULL;
    const char *id = krait_xml_get(at, "id");
    uint32_t before = c->rules->count;
    int rc = own ? read_provider(c, (struct krait_xml *)own, id, kept, err) : 0;
    uint32_t states = own     ? before < c->rules->count ? before : KRAIT_NO_ID
                      : other ? krait_provider_find(c->rules, krait_xml_get(other, "id"))
                              : KRAIT_NO_ID;
    if (more)
        refuse(c, more, "that is not the first", "");
    if (rc || states == KRAIT_NO_ID || !group) {
        refuse(c, at, group ? "without an analysis" : "without a group", "");
        return rc;
    }
    *kept += 1;
    return add_calls(c, at, group, states) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static int read_elements(struct checker *c, const struct krait_xml *root, const char **about,
                         struct krait_err *err)
{
    static const char *const later[] = { "head", "timeGraphView", "xyView", "callstack", NULL };
    uint32_t kept = 0;
    int rc = 0;
    if (strcmp(root->name, "tmfxml") != 0)
        return krait_err_set(err, -EBADMSG,
                             "%s:%u: <%s> is no data-driven analysis, which begins with <tmfxml>", c->path,
                             root->line, root->name);
    for (struct krait_xml *at = root->first; at && !rc; at = at->next) {
        bool is_pattern = strcmp(at->name, "pattern") == 0;
        if (!is_pattern && strcmp(at->name, "stateProvider") != 0) {
            if (!is_one_of(at->name, later))
                refuse(c, at, "", "");
            continue;
        }
        rc = read_provider(c, at, krait_xml_get(at, "id"), &kept, err);
        if (!rc && about && !**about)
            *about = label_of(at);
    }
    for (const struct krait_xml *at = krait_xml_first(root, "callstack"); at && !rc;
         at = krait_xml_next(at, "callstack"))
        rc = read_callstack(c, at, &kept, err);
    int views = rc ? 0 : krait_provider_views(c->rules, c->path, root);
    if (views < 0)
        return krait_err_set(err, views, "out of memory");
    if (!rc && !kept && !views)
        rc = krait_err_set(err, -EBADMSG, "%s: it has no state provider or pattern that krait supports",
                           c->path);
    return rc;
}

int krait_provider_read(struct krait_rules *rules, const char *path, const char *text, size_t n,
                        const char **about, struct krait_err *err)
{
    struct krait_xml *root = NULL;
    uint32_t line;
    struct checker checker = { .rules = rules, .path = path };
    if (about)
        *about = "";
    int rc = krait_xml_read(&root, &rules->arena, text, n, &line, err);
    if (rc && rc != -ENOMEM)
        krait_rules_err_line(err, rc, path, line);
    return rc ? rc : read_elements(&checker, root, about, err);
}
