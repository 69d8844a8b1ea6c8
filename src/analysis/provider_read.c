/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads state providers, and takes out what krait does not know, so that the rest can be run without a doubt.
 */
#include "analysis/provider_own.h"

#include "base/fmt.h"

#include <string.h>

struct checker {
    struct krait_rules *rules;
    const char *path;
    const struct krait_xml *provider;
    uint32_t depth; /* of locations in locations */
};

enum { DEEPEST_LOCATION = 16 };

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words;
}

static bool refuse(struct checker *c, const struct krait_xml *at, const char *what, const char *value)
{
    KRAIT_AUTO_BUF line = { 0 };
    krait_buf_fmt(&line, "%s:%u: <%s%s%s%s> is not supported; krait leaves it out", c->path, at->line,
                  at->name, *what ? " " : "", what, value);
    krait_fmt_safe(&c->rules->notes, line.data ? line.data : "");
    krait_buf_char(&c->rules->notes, '\n');
    return false;
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
        well = is_one_of(type, types) ? true : refuse_type(c, at);
        if (well && strcmp(type, "location") == 0)
            well = check_location(c, at);
        if (well && strcmp(type, "query") == 0)
            well = check_attributes(c, at->first);
    }
    return well;
}

static bool check_value(struct checker *c, const struct krait_xml *value)
{
    static const char *const types[] = { "int",        "long",      "double", "string", "null",
                                         "eventField", "eventName", "query",  "delete", NULL };
    if (!is_one_of(krait_xml_get(value, "type"), types))
        return refuse_type(c, value);
    if (*krait_xml_get(value, "stack"))
        return refuse(c, value, "stack", "");
    return check_attributes(c, value->first);
}

/* -- conditions -- */

static bool check_condition(struct checker *c, const struct krait_xml *element)
{
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
    static const char *const known[] = { "stateAttribute", "stateValue", "if", "then", "else", NULL };
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
    return check_attributes(c, element->first) && check_value(c, value);
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

static uint32_t check_provider(struct checker *c, struct krait_xml *provider)
{
    static const char *const quiet[] = { "head", "definedValue", "location", "mappingGroup", NULL };
    uint32_t kept = 0;
    c->provider = provider;
    for (struct krait_xml *at = provider->first; at; at = at->next) {
        if (strcmp(at->name, "eventHandler") == 0)
            kept += check_handler(c, at);
        else if (!is_one_of(at->name, quiet))
            refuse(c, at, "", "");
    }
    return kept;
}

/* -- files -- */

static const char *label_of(const struct krait_xml *provider)
{
    const struct krait_xml *head = krait_xml_first(provider, "head");
    const struct krait_xml *label = head ? krait_xml_first(head, "label") : NULL;
    return label ? krait_xml_get(label, "value") : "";
}

static int add_provider(struct checker *c, struct krait_xml *element, struct krait_err *err)
{
    const char *id = krait_xml_get(element, "id");
    struct krait_provider *provider = calloc(1, sizeof(*provider));
    struct krait_interval_rule *rule =
        provider ? krait_rules_add(c->rules, KRAIT_RULE_STATES, *id ? id : "provider", 0) : NULL;
    if (!rule) {
        free(provider);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    provider->root = element;
    rule->provider = provider;
    return 0;
}

static int read_elements(struct checker *c, const struct krait_xml *root, const char **about,
                         struct krait_err *err)
{
    static const char *const views[] = { "timeGraphView", "xyView", NULL };
    uint32_t kept = 0;
    int rc = 0;
    if (strcmp(root->name, "tmfxml") != 0)
        return krait_err_set(err, -EBADMSG,
                             "%s:%u: <%s> is no data-driven analysis, which begins with <tmfxml>", c->path,
                             root->line, root->name);
    for (struct krait_xml *at = root->first; at && !rc; at = at->next) {
        if (strcmp(at->name, "stateProvider") != 0) {
            if (!is_one_of(at->name, views)) /* how Trace Compass draws states changes none of them */
                refuse(c, at, "", "");
            continue;
        }
        kept += check_provider(c, at);
        rc = add_provider(c, at, err);
        if (!rc && about && !**about)
            *about = label_of(at);
    }
    if (!rc && !kept)
        rc = krait_err_set(err, -EBADMSG, "%s: it has no state provider whose changes krait supports",
                           c->path);
    return rc;
}

int krait_provider_read(struct krait_rules *rules, const char *path, const char *text, size_t n,
                        const char **about, struct krait_err *err)
{
    struct krait_xml *root = NULL;
    struct checker checker = { .rules = rules, .path = path };
    if (about)
        *about = "";
    int rc = krait_xml_read(&root, &rules->arena, text, n, err);
    if (rc && rc != -ENOMEM)
        krait_err_prefix(err, rc, "%s", path);
    return rc ? rc : read_elements(&checker, root, about, err);
}
