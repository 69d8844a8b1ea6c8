/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pattern.h"

#include "base/array.h"

#include <fnmatch.h>
#include <string.h>

/* Numbers that are given, and given again when they come back, the least first. */
struct pool {
    uint32_t path; /* KRAIT_NO_ID: of a machine's scenarios */
    uint32_t next, *back, back_count, back_cap;
};

struct machine {
    const struct krait_xml *fsm, *first; /* first: its first state */
    bool is_consuming, is_multiple;
    struct pool numbers;
    struct krait_scenario **scenarios; /* the oldest first; the pending one is last */
    uint32_t count, cap;
    bool has_pending;
};

struct krait_pattern {
    const struct krait_xml *root, *handler;
    struct machine *machines;
    uint32_t count;
    bool has_begun;
    struct krait_strtab paths; /* of pools */
    struct pool *pools;        /* by path */
    uint32_t pool_cap;
};

struct krait_scenario {
    struct krait_pattern *pattern;
    struct machine *machine;
    uint32_t number;
    const struct krait_xml *state;
    struct taken {
        uint32_t path, number;
    } * taken; /* of pools */
    uint32_t taken_count, taken_cap;
    struct since {
        const struct krait_xml *state;
        uint64_t ns;
    } * since;
    uint32_t since_count, since_cap;
    uint64_t begin_ns; /* 0: pending */
    bool has_ended;
};

/* -- pools -- */

static uint32_t take_number(struct pool *pool)
{
    uint32_t least = 0;
    if (!pool->back_count)
        return pool->next++;
    for (uint32_t i = 1; i < pool->back_count; i++)
        least = pool->back[i] < pool->back[least] ? i : least;
    uint32_t number = pool->back[least];
    pool->back[least] = pool->back[--pool->back_count];
    return number;
}

static int give_number(struct pool *pool, uint32_t number)
{
    if (!KRAIT_GROW(pool->back, pool->back_cap, pool->back_count + 1))
        return -ENOMEM;
    pool->back[pool->back_count++] = number;
    return 0;
}

uint32_t krait_pattern_pool(struct krait_scenario *scenario, const char *path, size_t n)
{
    struct krait_pattern *pattern = scenario->pattern;
    uint32_t id = krait_strtab_add(&pattern->paths, path, n), before = pattern->pool_cap;
    if (id == KRAIT_NO_ID || !KRAIT_GROW(pattern->pools, pattern->pool_cap, (size_t)id + 1) ||
        !KRAIT_GROW(scenario->taken, scenario->taken_cap, scenario->taken_count + 1))
        return KRAIT_NO_ID;
    memset(pattern->pools + before, 0, (pattern->pool_cap - before) * sizeof(*pattern->pools));
    for (uint32_t i = 0; i < scenario->taken_count; i++) {
        if (scenario->taken[i].path == id)
            return scenario->taken[i].number;
    }
    uint32_t number = take_number(&pattern->pools[id]);
    scenario->taken[scenario->taken_count++] = (struct taken){ id, number };
    return number;
}

/* -- making and freeing -- */

static void scenario_free(struct krait_scenario *scenario)
{
    free(scenario->taken);
    free(scenario->since);
    free(scenario);
}

static void machine_done(struct machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++)
        scenario_free(machine->scenarios[i]);
    free(machine->scenarios);
    free(machine->numbers.back);
    machine->scenarios = NULL;
    machine->numbers = (struct pool){ 0 };
    machine->count = machine->cap = 0;
    machine->has_pending = false;
}

static bool is_not(const struct krait_xml *element, const char *key, const char *value)
{
    return strcmp(krait_xml_get(element, key), value) != 0;
}

const struct krait_xml *krait_pattern_state(const struct krait_xml *fsm, const char *id)
{
    static const char *const names[] = { "state", "final" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        for (const struct krait_xml *at = krait_xml_first(fsm, names[i]); at;
             at = krait_xml_next(at, names[i])) {
            if (strcmp(krait_xml_get(at, "id"), id) == 0)
                return at;
        }
    }
    return NULL;
}

const struct krait_xml *krait_pattern_first(const struct krait_xml *fsm)
{
    const struct krait_xml *own = krait_xml_first(fsm, "initialState"),
                           *initial = krait_xml_first(fsm, "initial");
    const struct krait_xml *to = initial ? krait_xml_first(initial, "transition") : NULL;
    const char *id = krait_xml_get(fsm, "initial");
    if (own)
        return own;
    if (!*id && to)
        id = krait_xml_get(to, "target");
    return *id ? krait_pattern_state(fsm, id) : krait_xml_first(fsm, "state");
}

struct krait_pattern *krait_pattern_new(const struct krait_xml *root)
{
    struct krait_pattern *pattern = calloc(1, sizeof(*pattern));
    uint32_t count = 0;
    if (!pattern)
        return NULL;
    pattern->root = root;
    pattern->handler = krait_xml_first(root, "patternHandler");
    for (const struct krait_xml *at = krait_xml_first(pattern->handler, "fsm"); at;
         at = krait_xml_next(at, "fsm"))
        count++;
    pattern->machines = calloc((size_t)count + 1, sizeof(*pattern->machines));
    for (const struct krait_xml *at = krait_xml_first(pattern->handler, "fsm"); at && pattern->machines;
         at = krait_xml_next(at, "fsm")) {
        pattern->machines[pattern->count++] =
            (struct machine){ .fsm = at,
                              .first = krait_pattern_first(at),
                              .is_consuming = is_not(at, "consuming", "false"),
                              .is_multiple = is_not(at, "multiple", "false") };
    }
    if (pattern->machines)
        return pattern;
    free(pattern);
    return NULL;
}

void krait_pattern_reset(struct krait_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->count; i++)
        machine_done(&pattern->machines[i]);
    for (uint32_t i = 0; i < pattern->pool_cap; i++)
        free(pattern->pools[i].back);
    free(pattern->pools);
    krait_strtab_done(&pattern->paths);
    pattern->paths = (struct krait_strtab){ 0 };
    pattern->pools = NULL;
    pattern->pool_cap = 0;
    pattern->has_begun = false;
}

void krait_pattern_free(struct krait_pattern *pattern)
{
    if (!pattern)
        return;
    krait_pattern_reset(pattern);
    free(pattern->machines);
    free(pattern);
}

/* -- what is asked of scenarios -- */

void krait_pattern_path(const struct krait_scenario *scenario, struct krait_buf *path)
{
    krait_buf_fmt(path, KRAIT_PROVIDER_SCENARIOS "/%s/%u", krait_xml_get(scenario->machine->fsm, "id"),
                  scenario->number);
}

bool krait_pattern_since(const struct krait_scenario *scenario, const char *state, uint64_t *ns)
{
    for (uint32_t i = 0; i < scenario->since_count; i++) {
        if (strcmp(krait_xml_get(scenario->since[i].state, "id"), state) == 0) {
            *ns = scenario->since[i].ns;
            return true;
        }
    }
    return false;
}

static int note_since(struct krait_scenario *scenario, uint64_t ns)
{
    for (uint32_t i = 0; i < scenario->since_count; i++) {
        if (scenario->since[i].state == scenario->state) {
            scenario->since[i].ns = ns;
            return 0;
        }
    }
    if (!KRAIT_GROW(scenario->since, scenario->since_cap, scenario->since_count + 1))
        return -ENOMEM;
    scenario->since[scenario->since_count++] = (struct since){ scenario->state, ns };
    return 0;
}

const struct krait_xml *krait_pattern_find(const struct krait_xml *root, const char *name, const char *id,
                                           size_t n)
{
    const struct krait_xml *handler = krait_xml_first(root, "patternHandler");
    for (const struct krait_xml *at = handler ? krait_xml_first(handler, name) : NULL; at;
         at = krait_xml_next(at, name)) {
        const char *own = krait_xml_get(at, "id");
        if (strncmp(own, id, n) == 0 && !own[n])
            return at;
    }
    return NULL;
}

/* -- transitions -- */

/* "a|b_*": one of some globs; nothing is any event. */
static bool takes_event(const struct krait_xml *transition, const char *event)
{
    const char *at = krait_xml_get(transition, "event");
    if (!*at)
        return true;
    for (size_t n; *at; at += n + (at[n] == '|')) {
        char glob[256];
        n = strcspn(at, "|");
        snprintf(glob, sizeof(glob), "%.*s", (int)n, at);
        if (fnmatch(glob, event, 0) == 0)
            return true;
    }
    return false;
}

/* "a:b": all of some tests. */
static bool holds_all(const struct krait_pattern *pattern, struct krait_run *run, const char *tests)
{
    for (size_t n; *tests; tests += n + (tests[n] == ':')) {
        n = strcspn(tests, ":");
        const struct krait_xml *test = krait_pattern_find(pattern->root, "test", tests, n);
        if (!test || !krait_provider_holds(run, krait_xml_first(test, "if")))
            return false;
    }
    return true;
}

static bool can_take(const struct krait_pattern *pattern, struct krait_run *run,
                     const struct krait_xml *transition)
{
    return takes_event(transition, run->said->name) &&
           holds_all(pattern, run, krait_xml_get(transition, "cond"));
}

/* A value as a time; `otherwise` where there is none. */
static uint64_t time_of(struct krait_run *run, const struct krait_xml *element, uint64_t otherwise)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (!element || !krait_provider_value(run, element, &text) || !text.data)
        return otherwise;
    char *end;
    uint64_t ns = strtoull(text.data, &end, 10);
    return end > text.data && !*end ? ns : otherwise;
}

/* <segType segName="..."> or a value in <segName>. */
static void name_segment(struct krait_run *run, const struct krait_xml *segment, struct krait_buf *name)
{
    const struct krait_xml *type = krait_xml_first(segment, "segType");
    const struct krait_xml *own = type ? krait_xml_first(type, "segName") : NULL;
    const struct krait_xml *value = own ? krait_xml_first(own, "stateValue") : NULL;
    if (!value || !krait_provider_value(run, value, name))
        krait_buf_str(name, type ? krait_xml_get(type, "segName") : "");
    krait_buf_char(name, '\0');
}

/* <segField name="..." type="..."> with a value, or a stateValue in it; without one the segment lacks the field. */
static void add_field(struct krait_run *run, const struct krait_xml *field, struct krait_buf *fields)
{
    KRAIT_AUTO_BUF value = { 0 };
    const struct krait_xml *inner =
        *krait_xml_get(field, "value") ? NULL : krait_xml_first(field, "stateValue");
    bool is_null = strcmp(krait_xml_get(field, "type"), "null") == 0;
    if (is_null || !krait_provider_value(run, inner ? inner : field, &value))
        return;
    krait_buf_fmt(fields, "%s%c%s%c", krait_xml_get(field, "name"), 0, value.data ? value.data : "", 0);
    fields->failed |= value.failed;
}

static void add_fields(struct krait_run *run, const struct krait_xml *segment, struct krait_buf *fields)
{
    for (const struct krait_xml *in = krait_xml_first(segment, "segContent"); in;
         in = krait_xml_next(in, "segContent")) {
        for (const struct krait_xml *at = krait_xml_first(in, "segField"); at;
             at = krait_xml_next(at, "segField"))
            add_field(run, at, fields);
    }
}

static int tell_segment(struct krait_run *run, const struct krait_xml *segment)
{
    KRAIT_AUTO_BUF name = { 0 };
    const struct krait_xml *times = krait_xml_first(segment, "segTime");
    const struct krait_xml *duration = times ? krait_xml_first(times, "duration") : NULL;
    const struct krait_xml *ends = times ? krait_xml_first(times, "end") : NULL;
    uint64_t now_ns = run->t_ns, begin_ns = run->scenario->begin_ns ? run->scenario->begin_ns : now_ns;
    begin_ns = time_of(run, times ? krait_xml_first(times, "begin") : NULL, begin_ns);
    uint64_t end_ns =
        ends ? time_of(run, ends, now_ns) : begin_ns + time_of(run, duration, now_ns - begin_ns);
    name_segment(run, segment, &name);
    add_fields(run, segment, &name);
    end_ns = end_ns < begin_ns ? KRAIT_MAX(now_ns, begin_ns) : end_ns;
    return name.failed ? -ENOMEM
                       : run->told->segment(run->told->ctx, run->provider->segments, name.data, name.len,
                                            begin_ns, end_ns);
}

static int act(struct krait_run *run, const struct krait_xml *action)
{
    int rc = 0;
    for (const struct krait_xml *at = action->first; at && !rc; at = at->next)
        rc = strcmp(at->name, "segment") == 0 ? tell_segment(run, at) : krait_provider_change(run, at);
    return rc;
}

/* "a:b": one action after the other. */
static int act_all(const struct krait_pattern *pattern, struct krait_run *run, const char *actions)
{
    int rc = 0;
    for (size_t n; *actions && !rc; actions += n + (actions[n] == ':')) {
        n = strcspn(actions, ":");
        const struct krait_xml *action = krait_pattern_find(pattern->root, "action", actions, n);
        rc = action ? act(run, action) : 0;
    }
    return rc;
}

static int act_at(const struct krait_pattern *pattern, struct krait_run *run, const struct krait_xml *state,
                  const char *when)
{
    const struct krait_xml *element = krait_xml_first(state, when);
    return element ? act_all(pattern, run, krait_xml_get(element, "action")) : 0;
}

/* The numbers of an ended scenario go back, and its attributes with them. */
static int end_scenario(struct krait_scenario *scenario, struct krait_run *run)
{
    KRAIT_AUTO_BUF path = { 0 };
    int rc = 0;
    scenario->has_ended = true;
    krait_pattern_path(scenario, &path);
    rc = path.failed ? -ENOMEM : krait_provider_delete(run, &path);
    for (uint32_t i = 0; i < scenario->taken_count && !rc; i++) {
        const struct taken *taken = &scenario->taken[i];
        krait_buf_clear(&path);
        krait_buf_fmt(&path, "%s/%u", scenario->pattern->paths.texts[taken->path], taken->number);
        rc = path.failed ? -ENOMEM : krait_provider_delete(run, &path);
        rc = rc ? rc : give_number(&scenario->pattern->pools[taken->path], taken->number);
    }
    return rc ? rc : give_number(&scenario->machine->numbers, scenario->number);
}

static bool is_true(const struct krait_xml *element, const char *key)
{
    return strcasecmp(krait_xml_get(element, key), "true") == 0;
}

/* The event's fields that the pattern stores, as attributes of the scenario: kept where the event has them, or cleared
 * (Trace Compass's DataDrivenActionUpdateStoredFields and DataDrivenScenarioHistoryBuilder). */
static int store_fields(struct krait_scenario *scenario, struct krait_run *run, bool clears)
{
    int rc = 0;
    for (const struct krait_xml *at = krait_xml_first(scenario->pattern->root, "storedField"); at && !rc;
         at = krait_xml_next(at, "storedField")) {
        KRAIT_AUTO_BUF path = { 0 };
        KRAIT_AUTO_BUF value = { 0 };
        const char *id = krait_xml_get(at, "id"), *alias = krait_xml_get(at, "alias");
        if (!clears && !krait_trigger_get(&run->plain, id, run->said, &value))
            continue;
        krait_pattern_path(scenario, &path);
        krait_buf_fmt(&path, "/storedFields/%s", *alias ? alias : id);
        rc = path.failed || value.failed ? -ENOMEM
                                         : krait_provider_put(run, &path, "",
                                                              clears       ? NULL
                                                              : value.data ? value.data
                                                                           : "");
    }
    return rc;
}

static int store(struct krait_scenario *scenario, struct krait_run *run, const struct krait_xml *transition)
{
    int rc = is_true(transition, "saveStoredFields") ? store_fields(scenario, run, false) : 0;
    return rc || !is_true(transition, "clearStoredFields") ? rc : store_fields(scenario, run, true);
}

static int go(struct krait_scenario *scenario, struct krait_run *run, const struct krait_xml *transition)
{
    const struct krait_pattern *pattern = scenario->pattern;
    const struct krait_xml *next =
        krait_pattern_state(scenario->machine->fsm, krait_xml_get(transition, "target"));
    bool is_other = next != scenario->state;
    int rc = act_at(pattern, run, scenario->state, "onexit");
    rc = rc ? rc : act_all(pattern, run, krait_xml_get(transition, "action"));
    rc = rc ? rc : store(scenario, run, transition);
    rc = rc ? rc : act_at(pattern, run, next, "onentry");
    if (rc)
        return rc;
    scenario->begin_ns = scenario->begin_ns ? scenario->begin_ns : run->t_ns;
    scenario->state = next;
    rc = is_other ? note_since(scenario, run->t_ns) : 0;
    return rc || krait_xml_first(next, "transition") ? rc : end_scenario(scenario, run);
}

/* *moved: whether the event moved it. */
static int move(struct krait_scenario *scenario, struct krait_run *run, bool *moved)
{
    const struct krait_xml *at = krait_xml_first(scenario->state, "transition");
    run->scenario = scenario;
    while (at && !can_take(scenario->pattern, run, at))
        at = krait_xml_next(at, "transition");
    *moved = at;
    int rc = at ? go(scenario, run, at) : 0;
    run->scenario = NULL;
    return rc;
}

/* -- machines -- */

/* Scenarios whose end never comes: each event looks at all. */
enum { MOST_SCENARIOS = 4096 };

static void abandon_oldest(struct machine *machine)
{
    scenario_free(machine->scenarios[0]);
    memmove(machine->scenarios, machine->scenarios + 1, --machine->count * sizeof(*machine->scenarios));
}

static int add_pending(struct krait_pattern *pattern, struct machine *machine)
{
    if (machine->count == MOST_SCENARIOS)
        abandon_oldest(machine);
    struct krait_scenario *scenario = calloc(1, sizeof(*scenario));
    if (!scenario || !KRAIT_GROW(machine->scenarios, machine->cap, machine->count + 1)) {
        free(scenario);
        return -ENOMEM;
    }
    scenario->pattern = pattern;
    scenario->machine = machine;
    scenario->number = take_number(&machine->numbers);
    scenario->state = machine->first;
    machine->scenarios[machine->count++] = scenario;
    machine->has_pending = true;
    return 0;
}

/* Whether a machine begins with the first event: those that the handler names, or all. */
static bool is_initial(const struct krait_pattern *pattern, const struct machine *machine)
{
    const char *at = krait_xml_get(pattern->handler, "initial"), *id = krait_xml_get(machine->fsm, "id");
    if (!*at)
        return true;
    for (size_t n; *at; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        if (strncmp(at, id, n) == 0 && !id[n])
            return true;
    }
    return false;
}

static int start_machines(struct krait_pattern *pattern)
{
    int rc = 0;
    for (uint32_t i = 0; i < pattern->count && !rc; i++) {
        struct machine *machine = &pattern->machines[i];
        bool wants = pattern->has_begun ? machine->count && machine->is_multiple && !machine->has_pending
                                        : is_initial(pattern, machine);
        rc = wants ? add_pending(pattern, machine) : 0;
    }
    pattern->has_begun = true;
    return rc;
}

static void forget_ended(struct machine *machine)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        if (machine->scenarios[i]->has_ended && machine->is_multiple)
            scenario_free(machine->scenarios[i]);
        else
            machine->scenarios[kept++] = machine->scenarios[i];
    }
    machine->count = kept;
}

/* The preconditions of a machine: one of them has to hold, if there are any. */
static bool is_ready(const struct krait_pattern *pattern, struct krait_run *run,
                     const struct machine *machine)
{
    const struct krait_xml *at = krait_xml_first(machine->fsm, "precondition");
    if (!at)
        return true;
    while (at && !can_take(pattern, run, at))
        at = krait_xml_next(at, "precondition");
    return at;
}

static int run_machine(struct krait_pattern *pattern, struct machine *machine, struct krait_run *run)
{
    bool consumed = false, ended = false;
    int rc = 0;
    if (!is_ready(pattern, run, machine))
        return 0;
    for (uint32_t i = 0; i < machine->count && !rc && !(machine->is_consuming && consumed); i++) {
        bool moved, is_pending = machine->has_pending && i + 1 == machine->count;
        if (machine->scenarios[i]->has_ended)
            continue;
        rc = move(machine->scenarios[i], run, &moved);
        consumed |= moved;
        ended |= moved && machine->scenarios[i]->has_ended;
        if (is_pending && moved)
            machine->has_pending = false;
    }
    if (ended)
        forget_ended(machine);
    /* the next one may be needed at once: without any left nothing would start it */
    return rc || machine->has_pending || !machine->is_multiple || !consumed ? rc
                                                                            : add_pending(pattern, machine);
}

bool krait_pattern_may(const struct krait_pattern *pattern, const char *event)
{
    for (uint32_t i = 0; i < pattern->count; i++) {
        for (const struct krait_xml *state = pattern->machines[i].fsm->first; state; state = state->next) {
            for (const struct krait_xml *at = krait_xml_first(state, "transition"); at;
                 at = krait_xml_next(at, "transition")) {
                if (takes_event(at, event))
                    return true;
            }
        }
    }
    return false;
}

int krait_pattern_event(struct krait_pattern *pattern, struct krait_run *run)
{
    int rc = start_machines(pattern);
    for (uint32_t i = 0; i < pattern->count && !rc; i++)
        rc = run_machine(pattern, &pattern->machines[i], run);
    return rc;
}
