/* SPDX-License-Identifier: Apache-2.0
 *
 * The elements are interpreted as they stand in the file: what cannot be is taken out when it is read (provider_read.c),
 * so here each has what it needs.
 */
#include "analysis/provider.h"

#include "analysis/provider_own.h"
#include "base/array.h"
#include "base/json.h"

#include <fnmatch.h>
#include <string.h>

/* An event on its way through a provider. */
struct run {
    struct krait_provider *provider;
    struct krait_said *said;
    krait_provider_fn *fn;
    void *ctx;
    struct krait_trigger plain; /* has no pattern: its parts are the event's */
};

void krait_provider_reset(struct krait_provider *provider)
{
    for (uint32_t i = 0; i < provider->state_cap; i++)
        provider->states[i] = KRAIT_NO_ID;
}

void krait_provider_free(struct krait_provider *provider)
{
    if (!provider)
        return;
    krait_strtab_done(&provider->paths);
    krait_strtab_done(&provider->values);
    free(provider->states);
    free(provider);
}

static bool is_a(const struct krait_xml *element, const char *name)
{
    return strcmp(element->name, name) == 0;
}

/* -- attributes and their states -- */

/* The state of a path, with room for it. NULL when memory is out. */
static uint32_t *state_of(struct krait_provider *provider, const char *path, size_t n)
{
    uint32_t id = krait_strtab_add(&provider->paths, path, n), before = provider->state_cap;
    if (id == KRAIT_NO_ID || !KRAIT_GROW(provider->states, provider->state_cap, (size_t)id + 1))
        return NULL;
    for (uint32_t i = before; i < provider->state_cap; i++)
        provider->states[i] = KRAIT_NO_ID;
    return &provider->states[id];
}

/* What an attribute has; NULL: nothing. */
static const char *current(const struct krait_provider *provider, const struct krait_buf *path)
{
    uint32_t id = krait_strtab_find(&provider->paths, path->data ? path->data : "", path->len);
    uint32_t value = id == KRAIT_NO_ID ? KRAIT_NO_ID : provider->states[id];
    return value == KRAIT_NO_ID ? NULL : provider->values.texts[value];
}

static int set_state(struct run *run, const struct krait_buf *path, const char *value, bool updates)
{
    struct krait_provider *provider = run->provider;
    uint32_t id = value ? krait_strtab_add(&provider->values, value, strlen(value)) : KRAIT_NO_ID;
    uint32_t *state = state_of(provider, path->data ? path->data : "", path->len);
    if (!state || (value && id == KRAIT_NO_ID))
        return -ENOMEM;
    if (*state == id)
        return 0;
    *state = id;
    return run->fn(run->ctx, path->data ? path->data : "", value, updates);
}

/* Takes an attribute and all below it away. */
static int delete_states(struct run *run, const struct krait_buf *path)
{
    struct krait_provider *provider = run->provider;
    int rc = 0;
    for (uint32_t i = 0; i < provider->paths.len && !rc; i++) {
        const char *text = provider->paths.texts[i];
        bool below =
            strncmp(text, path->data, path->len) == 0 && (!text[path->len] || text[path->len] == '/');
        if (!below || provider->states[i] == KRAIT_NO_ID)
            continue;
        provider->states[i] = KRAIT_NO_ID;
        rc = run->fn(run->ctx, text, NULL, false);
    }
    return rc;
}

/* -- what elements stand for -- */

static bool add_path(struct run *run, const struct krait_xml *first, struct krait_buf *path);

/* A field of the event, or else what Trace Compass knows of all events: "cpu". */
static bool get_field(struct run *run, const char *name, struct krait_buf *to)
{
    return krait_trigger_get(&run->plain, name, run->said, to) ||
           (strcmp(name, "cpu") == 0 && krait_trigger_get(&run->plain, "$cpu", run->said, to));
}

/* The value of the attribute that the elements within name. */
static bool get_query(struct run *run, const struct krait_xml *element, struct krait_buf *to)
{
    KRAIT_AUTO_BUF path = { 0 };
    const char *value = add_path(run, krait_xml_first(element, "stateAttribute"), &path)
                            ? current(run->provider, &path)
                            : NULL;
    krait_buf_str(to, value ? value : "");
    return value;
}

static bool add_location(struct run *run, const char *id, struct krait_buf *path)
{
    for (const struct krait_xml *at = krait_xml_first(run->provider->root, "location"); at;
         at = krait_xml_next(at, "location")) {
        if (strcmp(krait_xml_get(at, "id"), id) == 0)
            return add_path(run, krait_xml_first(at, "stateAttribute"), path);
    }
    return false;
}

static bool add_part(struct run *run, const struct krait_xml *attribute, struct krait_buf *path)
{
    const char *type = krait_xml_get(attribute, "type"), *value = krait_xml_get(attribute, "value");
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
static bool add_path(struct run *run, const struct krait_xml *first, struct krait_buf *path)
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

/* What a stateValue or a field has, unmapped; false: nothing, which is null. */
static bool get_plain(struct run *run, const struct krait_xml *element, struct krait_buf *to)
{
    const char *type = krait_xml_get(element, "type"), *value = krait_xml_get(element, "value");
    if (is_a(element, "field"))
        return get_field(run, krait_xml_get(element, "name"), to);
    if (strcmp(type, "null") == 0 || strcmp(type, "delete") == 0)
        return false;
    if (strcmp(type, "eventField") == 0)
        return get_field(run, value, to);
    if (strcmp(type, "query") == 0)
        return get_query(run, element, to);
    krait_buf_str(to, strcmp(type, "eventName") == 0 ? run->said->name : defined(run->provider, value));
    return true;
}

static bool get_value(struct run *run, const struct krait_xml *element, struct krait_buf *to)
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

/* A field, an attribute's state or a value, and the value that it is compared with, which is last. */
static bool holds_condition(struct run *run, const struct krait_xml *condition)
{
    KRAIT_AUTO_BUF a = { 0 };
    KRAIT_AUTO_BUF b = { 0 };
    const struct krait_xml *first = condition->first, *last = first;
    const char *op = krait_xml_get(condition, "operator");
    while (last->next)
        last = last->next;
    bool has_a = is_a(first, "stateAttribute") ? get_query(run, condition, &a) : get_value(run, first, &a);
    bool has_b = get_value(run, last, &b);
    if (!has_a || !has_b)
        return strcmp(op, "ne") == 0 ? has_a != has_b : (!*op || strcmp(op, "eq") == 0) && has_a == has_b;
    return holds_order(op, compare(a.data ? a.data : "", b.data ? b.data : ""));
}

static bool holds(struct run *run, const struct krait_xml *element)
{
    if (is_a(element, "condition"))
        return holds_condition(run, element);
    bool is_or = is_a(element, "or"), result = !is_or;
    for (const struct krait_xml *at = element->first; at; at = at->next)
        result = is_or ? result || holds(run, at) : result && holds(run, at);
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

static int change(struct run *run, const struct krait_xml *element)
{
    KRAIT_AUTO_BUF path = { 0 };
    KRAIT_AUTO_BUF value = { 0 };
    const struct krait_xml *condition = krait_xml_first(element, "if");
    if (condition) {
        const struct krait_xml *then = krait_xml_first(element, holds(run, condition) ? "then" : "else");
        return then ? change(run, then) : 0;
    }
    const struct krait_xml *of = krait_xml_first(element, "stateValue");
    if (!add_path(run, krait_xml_first(element, "stateAttribute"), &path))
        return path.failed ? -ENOMEM : 0;
    if (strcmp(krait_xml_get(of, "type"), "delete") == 0)
        return delete_states(run, &path);
    bool has = get_value(run, of, &value);
    if (strcmp(krait_xml_get(of, "increment"), "true") == 0 && has)
        add_to(&value, current(run->provider, &path));
    if (value.failed)
        return -ENOMEM;
    return set_state(run, &path, has ? value.data ? value.data : "" : NULL,
                     strcmp(krait_xml_get(of, "update"), "true") == 0);
}

static bool handles(const struct krait_xml *handler, const char *event)
{
    return fnmatch(krait_xml_get(handler, "eventName"), event, 0) == 0;
}

bool krait_provider_may(const struct krait_provider *provider, const char *event)
{
    for (const struct krait_xml *at = krait_xml_first(provider->root, "eventHandler"); at;
         at = krait_xml_next(at, "eventHandler")) {
        if (handles(at, event))
            return true;
    }
    return false;
}

int krait_provider_event(struct krait_provider *provider, struct krait_said *said, krait_provider_fn *fn,
                         void *ctx)
{
    struct run run = { .provider = provider, .said = said, .fn = fn, .ctx = ctx };
    int rc = 0;
    for (const struct krait_xml *handler = krait_xml_first(provider->root, "eventHandler"); handler && !rc;
         handler = krait_xml_next(handler, "eventHandler")) {
        if (!handles(handler, said->name))
            continue;
        for (const struct krait_xml *at = krait_xml_first(handler, "stateChange"); at && !rc;
             at = krait_xml_next(at, "stateChange"))
            rc = change(&run, at);
    }
    return rc;
}
