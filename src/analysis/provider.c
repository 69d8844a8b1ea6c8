/* SPDX-License-Identifier: Apache-2.0
 *
 * The elements are interpreted as they stand in the file: what cannot be is taken out when it is read (provider_read.c),
 * so here each has what it needs.
 */
#include "analysis/provider.h"

#include "analysis/pattern.h"
#include "analysis/provider_own.h"
#include "base/array.h"
#include "base/json.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

void krait_provider_reset(struct krait_provider *provider)
{
    for (uint32_t i = 0; i < provider->state_cap; i++)
        provider->states[i].value = KRAIT_NO_ID;
    krait_provider_forget_later(provider);
    if (provider->pattern)
        krait_pattern_reset(provider->pattern);
}

void krait_provider_free(struct krait_provider *provider)
{
    if (!provider)
        return;
    krait_pattern_free(provider->pattern);
    krait_strtab_done(&provider->paths);
    krait_strtab_done(&provider->values);
    free(provider->states);
    free(provider->futures);
    free(provider->calls);
    free(provider);
}

static bool is_a(const struct krait_xml *element, const char *name)
{
    return strcmp(element->name, name) == 0;
}

/* -- attributes and their states -- */

uint32_t krait_provider_attribute(struct krait_provider *provider, const struct krait_buf *path)
{
    uint32_t id = krait_strtab_add(&provider->paths, path->data ? path->data : "", path->len);
    uint32_t before = provider->state_cap;
    if (id == KRAIT_NO_ID || !KRAIT_GROW(provider->states, provider->state_cap, (size_t)id + 1))
        return KRAIT_NO_ID;
    for (uint32_t i = before; i < provider->state_cap; i++)
        provider->states[i].value = KRAIT_NO_ID;
    return id;
}

/* What an attribute has; NULL: nothing. */
static const char *current(const struct krait_provider *provider, const struct krait_buf *path)
{
    uint32_t id = krait_strtab_find(&provider->paths, path->data ? path->data : "", path->len);
    uint32_t value = id == KRAIT_NO_ID ? KRAIT_NO_ID : provider->states[id].value;
    return value == KRAIT_NO_ID ? NULL : provider->values.texts[value];
}

/* A scenario's attributes are its own. */
static int tell(struct krait_run *run, const char *path, const char *value, bool updates)
{
    static const char own[] = KRAIT_PROVIDER_SCENARIOS "/";
    bool is_own = run->provider->pattern && strncmp(path, own, sizeof(own) - 1) == 0;
    return is_own ? 0 : run->told->state(run->told->ctx, run->t_ns, path, value, updates);
}

static int tell_call_of(struct krait_run *run, uint32_t rule, const char *path,
                        const struct krait_state *state)
{
    KRAIT_AUTO_BUF fields = { 0 };
    const struct krait_provider *provider = run->provider;
    const char *depth = strrchr(path, '/'), *name = provider->values.texts[state->value];
    size_t stack = (size_t)(depth - path) - strlen(KRAIT_PROVIDER_CALLS);
    krait_buf_add(&fields, name, strlen(name) + 1);
    krait_buf_fmt(&fields, "stack%c%.*s%cdepth%c%s%c", 0, (int)stack, path, 0, 0, depth + 1, 0);
    return fields.failed ? -ENOMEM
                         : run->told->segment(run->told->ctx, rule, fields.data, fields.len, state->since_ns,
                                              run->t_ns);
}

/* A call ends when its place on the stack has another state: a segment with the stack and its depth. */
static int tell_call(struct krait_run *run, const char *path, const struct krait_state *state)
{
    const struct krait_provider *provider = run->provider;
    int rc = 0;
    for (uint32_t i = 0; i < provider->call_count && state->value != KRAIT_NO_ID && !rc; i++) {
        if (fnmatch(provider->calls[i].glob, path, FNM_PATHNAME) == 0)
            rc = tell_call_of(run, provider->calls[i].rule, path, state);
    }
    return rc;
}

/* value KRAIT_NO_ID: none. */
static int set_value(struct krait_run *run, uint32_t path, uint32_t value, bool updates)
{
    struct krait_provider *provider = run->provider;
    struct krait_state *state = &provider->states[path];
    const char *text = provider->paths.texts[path];
    if (state->value == value)
        return 0;
    int rc = updates ? 0 : tell_call(run, text, state);
    *state = (struct krait_state){ value, updates ? state->since_ns : run->t_ns };
    return rc ? rc : tell(run, text, value == KRAIT_NO_ID ? NULL : provider->values.texts[value], updates);
}

static int set_state(struct krait_run *run, const struct krait_buf *path, const char *value, bool updates)
{
    struct krait_provider *provider = run->provider;
    uint32_t id = value ? krait_strtab_add(&provider->values, value, strlen(value)) : KRAIT_NO_ID;
    uint32_t attribute = krait_provider_attribute(provider, path);
    if (attribute == KRAIT_NO_ID || (value && id == KRAIT_NO_ID))
        return -ENOMEM;
    return set_value(run, attribute, id, updates);
}

int krait_provider_delete(struct krait_run *run, const struct krait_buf *path)
{
    struct krait_provider *provider = run->provider;
    int rc = 0;
    for (uint32_t i = 0; i < provider->paths.len && !rc; i++) {
        const char *text = provider->paths.texts[i];
        bool below =
            strncmp(text, path->data, path->len) == 0 && (!text[path->len] || text[path->len] == '/');
        rc = below ? set_value(run, i, KRAIT_NO_ID, false) : 0;
    }
    return rc;
}

/* -- what elements stand for -- */

static bool add_path(struct krait_run *run, const struct krait_xml *first, struct krait_buf *path);

/* Trace Compass names the fields of contexts "context._vtid", those of packets "context.cpu_id" (its CtfConstants and
 * LttngUst20EventLayout). */
static const char *without_context(const char *name)
{
    static const char lead[] = "context.";
    size_t n = strlen(lead);
    return strncmp(name, lead, n) == 0 ? name + n + (name[n] == '_') : name;
}

/* A field of the event, or else what Trace Compass knows of all events: its columns "CPU", "TID", "Timestamp", and
 * "hostID" (its DataDrivenValueEventField). */
static bool get_field(struct krait_run *run, const char *name, struct krait_buf *to)
{
    static const struct {
        const char *name, *part;
    } known[] = { { "cpu", "$cpu" }, { "tid", "$thread" }, { "hostid", "$host" } };
    name = without_context(name);
    if (krait_trigger_get(&run->plain, name, run->said, to))
        return true;
    if (strcasecmp(name, "timestamp") == 0) {
        krait_buf_fmt(to, "%llu", (unsigned long long)run->t_ns);
        return true;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(known); i++) {
        if (strcasecmp(name, known[i].name) == 0)
            return krait_trigger_get(&run->plain, known[i].part, run->said, to);
    }
    return false;
}

/* The value of the attribute that the elements within name. */
static bool get_query(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to)
{
    KRAIT_AUTO_BUF path = { 0 };
    const char *value = add_path(run, krait_xml_first(element, "stateAttribute"), &path)
                            ? current(run->provider, &path)
                            : NULL;
    krait_buf_str(to, value ? value : "");
    return value;
}

static bool add_location(struct krait_run *run, const char *id, struct krait_buf *path)
{
    for (const struct krait_xml *at = krait_xml_first(run->provider->root, "location"); at;
         at = krait_xml_next(at, "location")) {
        if (strcmp(krait_xml_get(at, "id"), id) == 0)
            return add_path(run, krait_xml_first(at, "stateAttribute"), path);
    }
    return false;
}

/* "#CurrentScenario", and the number that the scenario has in the pool at the path so far; false: it is neither. */
static bool add_scenario(struct krait_run *run, const char *type, const char *value, struct krait_buf *path)
{
    bool is_pool = strcmp(type, "pool") == 0;
    if (!run->scenario || (!is_pool && strcmp(value, "#CurrentScenario") != 0))
        return false;
    if (!is_pool) {
        krait_pattern_path(run->scenario, path);
        return true;
    }
    uint32_t number = krait_pattern_pool(run->scenario, path->data ? path->data : "", path->len);
    path->failed |= number == KRAIT_NO_ID;
    krait_buf_fmt(path, "/%u", number);
    return true;
}

static bool add_part(struct krait_run *run, const struct krait_xml *attribute, struct krait_buf *path)
{
    const char *type = krait_xml_get(attribute, "type"), *value = krait_xml_get(attribute, "value");
    if (add_scenario(run, type, value, path))
        return true;
    if (strcmp(type, "location") == 0)
        return add_location(run, value, path);
    if (path->len)
        krait_buf_char(path, '/');
    if (strcmp(type, "query") == 0)
        return get_query(run, attribute, path);
    if (strcmp(type, "eventField") == 0)
        return get_field(run, value, path);
    krait_buf_str(path, strcmp(type, "eventName") == 0 ? run->said->name : value);
    return true;
}

/* The path of some stateAttribute elements. False: the event or the state lacks a part. */
static bool add_path(struct krait_run *run, const struct krait_xml *first, struct krait_buf *path)
{
    for (const struct krait_xml *at = first; at; at = krait_xml_next(at, "stateAttribute")) {
        if (!add_part(run, at, path))
            return false;
    }
    return path->len && !path->failed;
}

/* "$NAME" is a value that the provider defines. */
static const char *defined(const struct krait_provider *provider, const char *value)
{
    for (const struct krait_xml *at = *value == '$' ? krait_xml_first(provider->root, "definedValue") : NULL;
         at; at = krait_xml_next(at, "definedValue")) {
        if (strcmp(krait_xml_get(at, "name"), value + 1) == 0)
            return krait_xml_get(at, "value");
    }
    return value;
}

/* What a group of the provider maps a value to; the value itself where it maps it to nothing. */
static const char *mapped(const struct krait_provider *provider, const char *group, const char *value)
{
    for (const struct krait_xml *at = krait_xml_first(provider->root, "mappingGroup"); at;
         at = krait_xml_next(at, "mappingGroup")) {
        const struct krait_xml *entry =
            strcmp(krait_xml_get(at, "id"), group) == 0 ? krait_xml_first(at, "entry") : NULL;
        for (; entry; entry = krait_xml_next(entry, "entry")) {
            const struct krait_xml *from = krait_xml_first(entry, "stateValue");
            const struct krait_xml *to = from ? krait_xml_next(from, "stateValue") : NULL;
            if (to && strcmp(defined(provider, krait_xml_get(from, "value")), value) == 0)
                return defined(provider, krait_xml_get(to, "value"));
        }
    }
    return value;
}

bool krait_provider_script(const char *text, struct krait_provider_script *out)
{
    int end = 0;
    char sign[2];
    *out = (struct krait_provider_script){ .until = UINT_MAX };
    if (sscanf(text, " %63[A-Za-z0-9_] %1[+-] %18lld%n", out->name, sign, &out->number, &end) == 3 && end) {
        out->adds = true;
        out->number = *sign == '-' ? -out->number : out->number;
        return !text[(size_t)end + strspn(text + end, " ;")];
    }
    end = 0;
    if (sscanf(text, " %63[A-Za-z0-9_] . substring ( %u )%n", out->name, &out->from, &end) == 2 && end)
        return !text[(size_t)end + strspn(text + end, " ;")];
    end = 0;
    return sscanf(text, " %63[A-Za-z0-9_] . substring ( %u , %u )%n", out->name, &out->from, &out->until,
                  &end) == 3 &&
           end && !text[(size_t)end + strspn(text + end, " ;")];
}

/* A whole number, and what a script adds to it; false: the value is none. */
static bool add_number(struct krait_buf *to, const char *value, long long number)
{
    char *end;
    long long sum, before = value ? strtoll(value, &end, 10) : 0;
    if (!value || end == value || *end || __builtin_add_overflow(before, number, &sum))
        return false;
    krait_buf_fmt(to, "%lld", sum);
    return true;
}

/* Part of the value that one of the elements within has, or its sum with a number. */
static bool get_script(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to)
{
    KRAIT_AUTO_BUF whole = { 0 };
    struct krait_provider_script script;
    if (!krait_provider_script(krait_xml_get(element, "value"), &script))
        return false;
    const struct krait_xml *at = krait_xml_first(element, "stateValue");
    while (at && strcmp(krait_xml_get(at, "id"), script.name) != 0)
        at = krait_xml_next(at, "stateValue");
    if (!at || !krait_provider_value(run, at, &whole))
        return false;
    if (script.adds)
        return add_number(to, whole.data, script.number);
    size_t until = KRAIT_MIN((size_t)script.until, whole.len), from = KRAIT_MIN((size_t)script.from, until);
    krait_buf_add(to, whole.data ? whole.data + from : "", until - from);
    return true;
}

/* The newest of the stack that the elements within name. */
static bool peek(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to)
{
    KRAIT_AUTO_BUF path = { 0 };
    const char *depth = add_path(run, krait_xml_first(element, "stateAttribute"), &path)
                            ? current(run->provider, &path)
                            : NULL;
    if (!depth)
        return false;
    krait_buf_fmt(&path, "/%s", depth);
    const char *value = path.failed ? NULL : current(run->provider, &path);
    krait_buf_str(to, value ? value : "");
    return value;
}

/* What a stateValue or a field has, unmapped; false: nothing, which is null. */
static bool get_plain(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to)
{
    const char *type = krait_xml_get(element, "type"), *value = krait_xml_get(element, "value");
    if (is_a(element, "field"))
        return get_field(run, krait_xml_get(element, "name"), to);
    if (strcmp(krait_xml_get(element, "stack"), "peek") == 0)
        return peek(run, element, to);
    if (strcmp(type, "null") == 0 || strcmp(type, "delete") == 0)
        return false;
    if (strcmp(type, "eventField") == 0)
        return get_field(run, value, to);
    if (strcmp(type, "query") == 0)
        return get_query(run, element, to);
    if (strcmp(type, "script") == 0)
        return get_script(run, element, to);
    krait_buf_str(to, strcmp(type, "eventName") == 0 ? run->said->name : defined(run->provider, value));
    return true;
}

bool krait_provider_value(struct krait_run *run, const struct krait_xml *element, struct krait_buf *to)
{
    KRAIT_AUTO_BUF plain = { 0 };
    const char *group = krait_xml_get(element, "mappingGroup");
    if (!*group)
        return get_plain(run, element, to);
    if (!get_plain(run, element, &plain))
        return false;
    krait_buf_str(to, mapped(run->provider, group, plain.data ? plain.data : ""));
    return true;
}

/* -- conditions -- */

static int compare(const char *a, const char *b)
{
    char *a_end, *b_end;
    double x = strtod(a, &a_end), y = strtod(b, &b_end);
    if (a_end > a && !*a_end && b_end > b && !*b_end)
        return (x > y) - (x < y);
    int order = strcmp(a, b);
    return (order > 0) - (order < 0);
}

static bool holds_order(const char *op, int order)
{
    return strcmp(op, "ne") == 0   ? order != 0
           : strcmp(op, "ge") == 0 ? order >= 0
           : strcmp(op, "gt") == 0 ? order > 0
           : strcmp(op, "le") == 0 ? order <= 0
           : strcmp(op, "lt") == 0 ? order < 0
                                   : order == 0;
}

uint64_t krait_provider_unit(const struct krait_xml *element)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(units); i++) {
        if (strcmp(units[i].name, krait_xml_get(element, "unit")) == 0)
            return units[i].ns;
    }
    return 0;
}

static uint64_t number_of(const struct krait_run *run, const struct krait_xml *element, const char *key,
                          uint64_t unit)
{
    return strtoull(defined(run->provider, krait_xml_get(element, key)), NULL, 10) * unit;
}

/* <in begin="" end=""/> or <out .../>: when the event is. */
static bool holds_range(struct krait_run *run, const struct krait_xml *range)
{
    uint64_t unit = krait_provider_unit(range);
    bool is_in = run->t_ns >= number_of(run, range->first, "begin", unit) &&
                 run->t_ns <= number_of(run, range->first, "end", unit);
    return strcmp(range->first->name, "out") == 0 ? !is_in : is_in;
}

/* <less since="STATE" value=""/>, <equal> or <more>: the time since the scenario came into a state. */
static bool holds_elapsed(struct krait_run *run, const struct krait_xml *elapsed)
{
    const struct krait_xml *of = elapsed->first;
    uint64_t since_ns, value = number_of(run, of, "value", krait_provider_unit(elapsed));
    if (!run->scenario || !krait_pattern_since(run->scenario, krait_xml_get(of, "since"), &since_ns))
        return false;
    uint64_t ns = run->t_ns - since_ns;
    return strcmp(of->name, "less") == 0    ? ns < value
           : strcmp(of->name, "equal") == 0 ? ns == value
                                            : ns > value;
}

/* A field, an attribute's state or a value, and the value that it is compared with, which is last. */
static bool holds_condition(struct krait_run *run, const struct krait_xml *condition)
{
    KRAIT_AUTO_BUF a = { 0 };
    KRAIT_AUTO_BUF b = { 0 };
    const struct krait_xml *first = condition->first, *last = first;
    const char *op = krait_xml_get(condition, "operator");
    if (is_a(first, "timerange"))
        return holds_range(run, first);
    if (is_a(first, "elapsedTime"))
        return holds_elapsed(run, first);
    while (last->next)
        last = last->next;
    bool has_a =
        is_a(first, "stateAttribute") ? get_query(run, condition, &a) : krait_provider_value(run, first, &a);
    bool has_b = krait_provider_value(run, last, &b);
    if (!has_a || !has_b)
        return strcmp(op, "ne") == 0 ? has_a != has_b : (!*op || strcmp(op, "eq") == 0) && has_a == has_b;
    return holds_order(op, compare(a.data ? a.data : "", b.data ? b.data : ""));
}

bool krait_provider_holds(struct krait_run *run, const struct krait_xml *element)
{
    if (is_a(element, "condition"))
        return holds_condition(run, element);
    bool is_or = is_a(element, "or"), result = !is_or;
    for (const struct krait_xml *at = element->first; at; at = at->next)
        result = is_or ? result || krait_provider_holds(run, at) : result && krait_provider_holds(run, at);
    return is_a(element, "not") ? !result : result;
}

/* -- changes -- */

/* One more than before; what is no number counts as 0. */
static void add_to(struct krait_buf *value, const char *before)
{
    double sum = strtod(value->data ? value->data : "", NULL) + (before ? strtod(before, NULL) : 0);
    krait_buf_clear(value);
    krait_json_real(value, sum);
}

enum { DEEPEST_STACK = 1 << 16 }; /* what else stands in its attribute is no depth */

static unsigned long depth_of(const struct krait_provider *provider, const struct krait_buf *path)
{
    const char *depth = current(provider, path);
    return depth ? KRAIT_MIN(strtoul(depth, NULL, 10), (unsigned long)DEEPEST_STACK) : 0;
}

/* The states of a stack are those of the attributes 1, 2, 3 ... below its own, which has their number. */
static int change_stack(struct krait_run *run, struct krait_buf *path, const char *how, const char *value)
{
    char depth[16];
    unsigned long n = depth_of(run->provider, path);
    size_t own = path->len;
    bool pushes = strcmp(how, "push") == 0;
    unsigned long to = pushes ? n + 1 : strcmp(how, "popAll") == 0 || !n ? 0 : n - 1;
    int rc = 0;
    for (unsigned long at = pushes ? n + 1 : n; at > (pushes ? n : to) && !rc; at--) {
        krait_buf_fmt(path, "/%lu", at);
        rc = path->failed ? -ENOMEM : set_state(run, path, pushes ? value : NULL, false);
        path->len = own;
    }
    snprintf(depth, sizeof(depth), "%lu", to);
    krait_buf_add(path, "", 1); /* ends the text where the path does */
    path->len = own;
    return rc ? rc : set_state(run, path, to ? depth : NULL, false);
}

int krait_provider_put(struct krait_run *run, struct krait_buf *path, const char *how, const char *value)
{
    if (strcmp(how, "delete") == 0)
        return krait_provider_delete(run, path);
    return *how ? change_stack(run, path, how, value ? value : "") : set_state(run, path, value, false);
}

/* When a change is due: the number in <futureTime>, or now where it is none (Trace Compass's DataDrivenActionStateChange). */
static uint64_t due_of(struct krait_run *run, const struct krait_xml *change)
{
    KRAIT_AUTO_BUF text = { 0 };
    const struct krait_xml *at = krait_xml_first(change, "futureTime");
    char *end;
    if (!at || !krait_provider_value(run, at, &text) || !text.data)
        return run->t_ns;
    long long ns = strtoll(text.data, &end, 10);
    if (*end) {
        double real = strtod(text.data, &end);
        ns = real >= 0 && real < 0x1p63 ? (long long)real : real < 0 ? -1 : LLONG_MAX;
    }
    return end == text.data || *end ? run->t_ns : (uint64_t)KRAIT_MAX(ns, 0LL);
}

/* Later, or now. What is due in the past does not happen, but for stacks, which change now; updates are always now. */
static int put_when_due(struct krait_run *run, const struct krait_xml *change, struct krait_buf *path,
                        const char *how, const char *value)
{
    uint64_t due_ns = due_of(run, change);
    bool is_stack = *how && strcmp(how, "delete") != 0, is_all = strcmp(how, "popAll") == 0;
    if (due_ns <= run->t_ns)
        return due_ns < run->t_ns && !is_stack ? 0 : krait_provider_put(run, path, how, value);
    struct krait_future future = { .t_ns = due_ns,
                                   .how = is_all ? "pop" : how,
                                   .times = is_all ? (uint32_t)depth_of(run->provider, path) : 1 };
    return krait_provider_later(run, path, future, value);
}

int krait_provider_change(struct krait_run *run, const struct krait_xml *element)
{
    KRAIT_AUTO_BUF path = { 0 };
    KRAIT_AUTO_BUF value = { 0 };
    const struct krait_xml *condition = krait_xml_first(element, "if");
    if (condition) {
        const struct krait_xml *then =
            krait_xml_first(element, krait_provider_holds(run, condition) ? "then" : "else");
        return then ? krait_provider_change(run, then) : 0;
    }
    const struct krait_xml *of = krait_xml_first(element, "stateValue");
    if (!add_path(run, krait_xml_first(element, "stateAttribute"), &path))
        return path.failed ? -ENOMEM : 0;
    const char *how = krait_xml_get(of, "stack");
    how = strcmp(how, "peek") == 0 ? "" : how; /* where the value is from */
    if (strcmp(krait_xml_get(of, "type"), "delete") == 0 && !*how)
        how = "delete";
    bool has = krait_provider_value(run, of, &value);
    if (strcmp(krait_xml_get(of, "increment"), "true") == 0 && has)
        add_to(&value, current(run->provider, &path));
    if (value.failed)
        return -ENOMEM;
    const char *text = has ? value.data ? value.data : "" : NULL;
    if (!*how && strcmp(krait_xml_get(of, "update"), "true") == 0)
        return set_state(run, &path, text, true);
    return put_when_due(run, element, &path, how, text);
}

static bool handles(const struct krait_xml *handler, const char *event)
{
    return fnmatch(krait_xml_get(handler, "eventName"), event, 0) == 0;
}

bool krait_provider_may(const struct krait_provider *provider, const char *event)
{
    if (provider->pattern)
        return krait_pattern_may(provider->pattern, event);
    for (const struct krait_xml *at = krait_xml_first(provider->root, "eventHandler"); at;
         at = krait_xml_next(at, "eventHandler")) {
        if (handles(at, event))
            return true;
    }
    return false;
}

int krait_provider_end(struct krait_provider *provider, uint64_t until_ns, uint64_t last_ns,
                       const struct krait_provider_told *told)
{
    struct krait_run run = { .provider = provider, .told = told };
    return krait_provider_catch_up(&run, until_ns, last_ns);
}

int krait_provider_event(struct krait_provider *provider, struct krait_trigger_event *said, uint64_t t_ns,
                         const struct krait_provider_told *told)
{
    struct krait_run run = { .provider = provider, .said = said, .t_ns = t_ns, .told = told };
    int rc = krait_provider_end(provider, t_ns, t_ns, told);
    if (rc)
        return rc;
    if (provider->pattern)
        return krait_pattern_event(provider->pattern, &run);
    for (const struct krait_xml *handler = krait_xml_first(provider->root, "eventHandler"); handler && !rc;
         handler = krait_xml_next(handler, "eventHandler")) {
        if (!handles(handler, said->name))
            continue;
        for (const struct krait_xml *at = krait_xml_first(handler, "stateChange"); at && !rc;
             at = krait_xml_next(at, "stateChange"))
            rc = krait_provider_change(&run, at);
    }
    return rc;
}
