/* SPDX-License-Identifier: Apache-2.0
 *
 * Sections of a file: intervals, states, signals and lanes; and what they name of each other.
 */
#include "analysis/declared.h"

#include "analysis/declared_own.h"
#include "analysis/rules_keys.h"
#include "base/array.h"

#include <string.h>

/* -- sections -- */

static const char *word(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

static int take_pairing(struct krait_declared_reader *r, const struct krait_toml *value)
{
    static const char *const words[] = { "order", "nested", "latest" }; /* as enum krait_pairing */
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        if (strcmp(words[i], value->text) == 0) {
            r->rule->pairing = (enum krait_pairing)i;
            return 0;
        }
    }
    return krait_declared_refuse_name(r, value, "pairing", value->text, word, words, KRAIT_ARRAY_LEN(words));
}

static int take_within(struct krait_declared_reader *r, const struct krait_toml *value)
{
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    r->rule->within_name = krait_arena_strdup(&r->rules->arena, value->text);
    r->rule->line = value->line;
    return r->rule->within_name ? 0 : krait_declared_no_memory(r);
}

static int take_edge(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return krait_declared_trigger(r, value,
                                  strcmp(value->key, "stop") == 0 ? KRAIT_TRIGGER_STOP : KRAIT_TRIGGER_START);
}

static int take_match(struct krait_declared_reader *r, const struct krait_toml *value)
{
    struct krait_err why = { 0 };
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    if (r->rule->match)
        return krait_declared_refuse(r, value, "an interval has either a call or a span");
    int rc = krait_rules_match(r->rules, r->rule, value->text, &why);
    r->rule->declared_at = krait_arena_fmt(&r->rules->arena, "%s:%u", r->path, value->line);
    if (!rc && !r->rule->declared_at)
        rc = -ENOMEM;
    r->rule->kind = strcmp(value->key, "call") == 0 ? KRAIT_RULE_CALLS : KRAIT_RULE_SPANS;
    return rc == -EINVAL ? krait_declared_refuse(r, value, "%s", why.text)
           : rc          ? krait_declared_no_memory(r)
                         : 0;
}

static int take_outermost(struct krait_declared_reader *r, const struct krait_toml *value)
{
    if (value->kind != KRAIT_TOML_BOOL)
        return krait_declared_refuse(r, value, "it has to be true or false");
    r->rule->is_outermost = value->integer;
    return 0;
}

/* `key` and `by` of an interval are those of its triggers that have none; what it takes from a span is a field. */
static int read_pair(struct krait_declared_reader *r, const struct krait_toml *table)
{
    const struct krait_toml *key = krait_toml_get(table, "key"), *by = krait_toml_get(table, "by");
    int rc = 0;
    for (uint32_t i = 0; i < r->rule->trigger_count && !rc; i++) {
        r->trigger = &r->rule->triggers[i];
        if (key && !r->trigger->key.count)
            rc = krait_declared_take_key(r, key);
        if (by && !rc && r->trigger->role == KRAIT_TRIGGER_START)
            rc = krait_declared_take_by(r, by);
    }
    return rc;
}

static const struct krait_declared_key of_interval[] = {
    { "start", take_edge },      { "stop", take_edge },     { "call", take_match },
    { "span", take_match },      { "key", NULL },           { "by", NULL },
    { "pairing", take_pairing }, { "within", take_within }, { "outermost", take_outermost }
};

static const struct krait_declared_keys interval_keys = { of_interval, KRAIT_ARRAY_LEN(of_interval) };

static int read_interval(struct krait_declared_reader *r, const struct krait_toml *table)
{
    int rc = krait_declared_take_keys(r, table, &interval_keys);
    const struct krait_toml *key = krait_toml_get(table, "key"), *by = krait_toml_get(table, "by");
    bool has_start = krait_toml_get(table, "start"), has_stop = krait_toml_get(table, "stop");
    if (rc)
        return rc;
    if (r->rule->match ? has_start || has_stop : !has_start || !has_stop)
        return krait_declared_refuse(r, table, "an interval has a start and a stop, or a call, or a span");
    const struct krait_toml *outermost = krait_toml_get(table, "outermost");
    if (outermost && r->rule->kind != KRAIT_RULE_CALLS)
        return krait_declared_refuse(r, outermost, "'outermost' goes with 'call'");
    if (!r->rule->match)
        return read_pair(r, table);
    if (by || (key && krait_declared_need_text(r, key)))
        return by ? krait_declared_refuse(
                        r, by,
                        "'by' goes with 'start' and 'stop'; of calls and spans, 'key' gives a row for each value")
                  : -EBADMSG;
    if (key && *key->text == '$' && krait_declared_check_part(r, key, key->text))
        return -EBADMSG;
    r->rule->key = key ? krait_arena_strdup(&r->rules->arena, key->text) : NULL;
    r->rule->key_at = key ? krait_declared_place(r, key->line, key->key) : NULL;
    r->rule->by_key = key;
    return key && !(r->rule->key && r->rule->key_at) ? krait_declared_no_memory(r) : 0;
}

/* One trigger, or an array of them; each has what it takes. */
static int read_triggers(struct krait_declared_reader *r, const struct krait_toml *table,
                         enum krait_trigger_role role)
{
    int rc = 0;
    const char *what = role == KRAIT_TRIGGER_STATE ? "state" : "value";
    for (const struct krait_toml *at = krait_declared_first(table); at && !rc;
         at = table->kind == KRAIT_TOML_ARRAY ? at->next : NULL) {
        rc = at->kind == KRAIT_TOML_TABLE ? krait_declared_trigger(r, at, role)
                                          : krait_declared_refuse(r, at, "it has to be a table");
        if (!rc && !r->trigger->what.count && !krait_trigger_what_group(r->trigger))
            rc = krait_declared_refuse(
                r, at, "it needs a %s, or a message with a group in round brackets for it", what);
        if (!rc && role == KRAIT_TRIGGER_VALUE && r->trigger->key.count)
            r->rule->by_key = true;
    }
    return rc;
}

static int read_states(struct krait_declared_reader *r, const struct krait_toml *table)
{
    return read_triggers(r, table, KRAIT_TRIGGER_STATE);
}

/* The event before a value that names it by its parts; it has the value's key if it has none of its own. */
static int read_after(struct krait_declared_reader *r, const struct krait_toml *table)
{
    const struct krait_toml *after = krait_toml_get(table, "after"), *by = krait_toml_get(table, "by");
    const struct krait_toml *key = krait_toml_get(table, "key");
    if (!after && !by)
        return 0;
    if (!after || !by)
        return krait_declared_refuse(r, after ? after : by,
                                     "'after' and 'by' go together: 'by' names parts of the event before");
    int rc = krait_declared_trigger(r, after, KRAIT_TRIGGER_AFTER);
    rc = rc || !key || r->trigger->key.count ? rc : krait_declared_take_key(r, key);
    return rc ? rc : krait_declared_take_by(r, by);
}

static int read_signal(struct krait_declared_reader *r, const struct krait_toml *table)
{
    int rc = read_triggers(r, table, KRAIT_TRIGGER_VALUE);
    for (const struct krait_toml *at = krait_declared_first(table); at && !rc;
         at = table->kind == KRAIT_TOML_ARRAY ? at->next : NULL)
        rc = read_after(r, at);
    return rc;
}

/* -- lanes -- */

/* A name, or an array of such. */
static int read_names(struct krait_declared_reader *r, const struct krait_toml *value,
                      const char *const **names, uint32_t *count)
{
    uint32_t all = krait_declared_count_texts(value);
    const char **own = krait_arena_alloc(&r->rules->arena, ((size_t)all + 1) * sizeof(*own));
    if (!all)
        return krait_declared_refuse(r, value, "it has to be a name, or an array of such");
    if (!own)
        return krait_declared_no_memory(r);
    *count = 0;
    for (const struct krait_toml *item = krait_declared_first(value); item && *count < all;
         item = item->next) {
        own[*count] = krait_arena_strdup(&r->rules->arena, item->text);
        if (!own[(*count)++])
            return krait_declared_no_memory(r);
    }
    *names = own;
    return 0;
}

static int take_show(struct krait_declared_reader *r, const struct krait_toml *value)
{
    r->lane->line = value->line;
    return read_names(r, value, &r->lane->names, &r->lane->count);
}

static int take_lane_key(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return read_names(r, value, &r->lane->keys, &r->lane->key_count);
}

static const struct krait_declared_key of_lane[] = { { "show", take_show }, { "key", take_lane_key } };
static const struct krait_declared_keys lane_keys = { of_lane, KRAIT_ARRAY_LEN(of_lane) };

static int read_lane(struct krait_declared_reader *r, const struct krait_toml *table)
{
    struct krait_rules *rules = r->rules;
    struct krait_rule_lane lane = { .title = krait_arena_strdup(&rules->arena, table->key) };
    r->name = table->key;
    r->lane = &lane;
    if (table->kind != KRAIT_TOML_TABLE)
        return krait_declared_refuse(r, table, "it has to be a table: [lane.%s]", r->name);
    int rc = krait_declared_take_keys(r, table, &lane_keys);
    if (rc)
        return rc;
    if (!lane.count)
        return krait_declared_refuse(r, table, "it needs the key 'show': the names of what it draws");
    lane.rules = krait_arena_alloc(&rules->arena, lane.count * sizeof(*lane.rules));
    if (!lane.title || !lane.rules || !KRAIT_GROW(rules->lanes, rules->lane_cap, rules->lane_count + 1))
        return krait_declared_no_memory(r);
    rules->lanes[rules->lane_count++] = lane;
    return 0;
}

static const struct section {
    const char *name;
    enum krait_rule_kind kind;
    const struct krait_declared_keys *keys;                                       /* of what it names */
    int (*read)(struct krait_declared_reader *r, const struct krait_toml *table); /* NULL: it is of lanes */
} sections[] = {
    { "interval", KRAIT_RULE_PAIRS, &interval_keys, read_interval },
    { "state", KRAIT_RULE_STATES, &krait_declared_trigger_keys[KRAIT_TRIGGER_STATE], read_states },
    { "signal", KRAIT_RULE_SIGNAL, &krait_declared_trigger_keys[KRAIT_TRIGGER_VALUE], read_signal },
    { "lane", 0, &lane_keys, NULL },
};

static const char *section_name(const void *unused, size_t i)
{
    return sections[i].name;
}

/* The rule of that name, from `first` on; the count of rules: there is none. */
static uint32_t find_rule(const struct krait_rules *rules, uint32_t first, const char *name)
{
    uint32_t i = first;
    while (i < rules->count && strcmp(rules->items[i].name, name) != 0)
        i++;
    return i;
}

static int read_rule(struct krait_declared_reader *r, const struct section *section,
                     const struct krait_toml *table)
{
    uint32_t triggers = 2;
    r->name = table->key;
    bool is_array = table->kind == KRAIT_TOML_ARRAY && section->kind != KRAIT_RULE_PAIRS;
    if (table->kind != KRAIT_TOML_TABLE && !is_array)
        return krait_declared_refuse(r, table, "it has to be a table: [%s.%s]", r->section, r->name);
    for (const struct krait_toml *at = table->first; at; at = at->next)
        triggers += 2; /* a signal's may have an event before it each */
    if (find_rule(r->rules, 0, table->key) < r->rules->count)
        return krait_declared_refuse(r, table, "there is another one of that name");
    r->rule = krait_rules_add(r->rules, section->kind, table->key, triggers);
    if (!r->rule)
        return krait_declared_no_memory(r);
    int rc = section->read(r, table);
    return rc ? rc : krait_rules_check_keys(r->rules, r->rule, r->path, r->err);
}

/* Whether a table has a key with a value where it should have a name with a table. */
static bool lacks_name(const struct section *section, const struct krait_toml *table)
{
    for (const struct krait_toml *at = table->first; at; at = at->next) {
        const struct krait_toml *first = krait_declared_first(at);
        for (size_t i = 0; i < section->keys->count; i++) {
            if (strcmp(section->keys->items[i].name, at->key) == 0 &&
                (!first || first->kind != KRAIT_TOML_TABLE))
                return true;
        }
    }
    return false;
}

static int read_section(struct krait_declared_reader *r, const struct krait_toml *table)
{
    size_t i = 0;
    int rc = 0;
    while (i < KRAIT_ARRAY_LEN(sections) && strcmp(sections[i].name, table->key) != 0)
        i++;
    if (i == KRAIT_ARRAY_LEN(sections))
        return krait_declared_refuse_name(r, table, "kind of analysis", table->key, section_name, NULL, i);
    r->section = sections[i].name;
    if (table->kind != KRAIT_TOML_TABLE || lacks_name(&sections[i], table))
        return krait_declared_refuse(r, table, "it needs a name: [%s.NAME]", r->section);
    for (const struct krait_toml *named = table->first; named && !rc; named = named->next)
        rc = sections[i].read ? read_rule(r, &sections[i], named) : read_lane(r, named);
    r->section = r->name = NULL;
    return rc;
}

/* -- intervals within others -- */

static const char *rule_name(const void *list, size_t i)
{
    const struct krait_declared_reader *r = list;
    return r->rules->items[r->first + i].name;
}

static bool has_intervals(const struct krait_interval_rule *rule)
{
    return rule->kind != KRAIT_RULE_SIGNAL && rule->kind != KRAIT_RULE_STATES;
}

/* What the rule that is read may be within. */
static const char *outer_name(const void *list, size_t i)
{
    const struct krait_declared_reader *r = list;
    const struct krait_interval_rule *rule = &r->rules->items[r->first + i];
    return has_intervals(rule) && rule != r->rule ? rule->name : NULL;
}

/* The interval that a rule is within, by its name. */
static int find_outer(struct krait_declared_reader *r, struct krait_interval_rule *rule)
{
    const struct krait_toml at = { .line = rule->line, .key = "within" };
    uint32_t count = r->rules->count, i = find_rule(r->rules, r->first, rule->within_name);
    r->section = "interval";
    r->name = rule->name;
    r->rule = rule;
    if (i == count)
        return krait_declared_refuse_name(r, &at, "interval", rule->within_name, outer_name, r,
                                          count - r->first);
    if (!has_intervals(&r->rules->items[i]))
        return krait_declared_refuse(r, &at, "'%s' is no interval", rule->within_name);
    rule->within = i + 1;
    return 0;
}

/* What a lane names is another lane, or nothing. */
static int refuse_shown(struct krait_declared_reader *r, const struct krait_toml *at, const char *name)
{
    for (uint32_t i = 0; i < r->rules->lane_count; i++) {
        if (strcmp(r->rules->lanes[i].title, name) == 0)
            return krait_declared_refuse(
                r, at, "'%s' is a lane, and a lane shows intervals, states and signals", name);
    }
    return krait_declared_refuse_name(r, at, "interval, state or signal", name, rule_name, r,
                                      r->rules->count - r->first);
}

/* The rules of a lane, by their names. */
static int find_shown(struct krait_declared_reader *r, struct krait_rule_lane *lane)
{
    const struct krait_toml at = { .line = lane->line, .key = "show" };
    r->section = "lane";
    r->name = lane->title;
    lane->first = r->first;
    lane->end = r->rules->count;
    for (uint32_t i = 0; i < lane->count; i++) {
        lane->rules[i] = find_rule(r->rules, r->first, lane->names[i]);
        if (lane->rules[i] == r->rules->count)
            return refuse_shown(r, &at, lane->names[i]);
    }
    return 0;
}

/* Follows each rule outward: who meets itself is in a circle. */
static int check_circles(struct krait_declared_reader *r)
{
    for (uint32_t i = r->first; i < r->rules->count; i++) {
        const struct krait_interval_rule *rule = &r->rules->items[i];
        uint32_t steps = 0;
        for (uint32_t at = rule->within; at && steps <= r->rules->count; at = r->rules->items[at - 1].within)
            steps += at == i + 1 ? r->rules->count + 1 : 1;
        if (steps <= r->rules->count)
            continue;
        const struct krait_toml at = { .line = rule->line, .key = "within" };
        r->section = "interval";
        r->name = rule->name;
        return krait_declared_refuse(r, &at, "'%s' is within '%s', which is within it: a circle", rule->name,
                                     rule->within_name);
    }
    return 0;
}

static int read_all(struct krait_declared_reader *r, const struct krait_toml *root, const char **about)
{
    uint32_t lanes = r->rules->lane_count;
    int rc = 0;
    for (const struct krait_toml *table = root->first; table && !rc; table = table->next) {
        if (strcmp(table->key, "about") != 0) {
            rc = read_section(r, table);
            continue;
        }
        rc = krait_declared_need_text(r, table);
        if (!rc && about)
            *about = krait_arena_strdup(&r->rules->arena, table->text);
        rc = !rc && about && !*about ? krait_declared_no_memory(r) : rc;
    }
    if (!rc && r->rules->count == r->first && r->rules->lane_count == lanes)
        rc = krait_err_set(r->err, -EBADMSG, "%s: it declares nothing", r->path);
    for (uint32_t i = r->first; i < r->rules->count && !rc; i++)
        rc = r->rules->items[i].within_name ? find_outer(r, &r->rules->items[i]) : 0;
    for (uint32_t i = lanes; i < r->rules->lane_count && !rc; i++)
        rc = find_shown(r, &r->rules->lanes[i]);
    return rc ? rc : check_circles(r);
}

int krait_declared_read(struct krait_rules *rules, const char *path, const char *text, size_t n,
                        const char **about, struct krait_err *err)
{
    struct krait_arena arena = { 0 };
    struct krait_toml *root = NULL;
    uint32_t line;
    struct krait_declared_reader reader = { .rules = rules, .first = rules->count, .path = path, .err = err };
    if (about)
        *about = "";
    int rc = krait_toml_read(&root, &arena, text, n, &line, err);
    if (rc && rc != -ENOMEM)
        krait_rules_err_line(err, rc, path, line);
    rc = rc ? rc : read_all(&reader, root, about);
    krait_arena_done(&arena);
    return rc;
}
