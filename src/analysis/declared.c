/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/declared.h"

#include "analysis/rules_keys.h"
#include "base/array.h"
#include "base/suggest.h"
#include "base/toml.h"

#include <string.h>

struct reader {
    struct krait_rules *rules;
    const char *path;
    uint32_t first;             /* rule of the file */
    const char *section, *name; /* of what is read */
    const char *edge;           /* the key whose table is read: start, stop or after; NULL: none */
    bool is_in_where;           /* of the trigger */
    struct krait_interval_rule *rule;
    struct krait_trigger *trigger; /* of it, that is read */
    struct krait_rule_lane *lane;  /* that is read */
    struct krait_err *err;
};

/* What may stand in a table. `take` reads a key's value; NULL: who knows the table reads it. */
struct key {
    const char *name;
    int (*take)(struct reader *r, const struct krait_toml *value);
};

/* -- errors -- */

static int out_of_memory(struct reader *r)
{
    return krait_err_set(r->err, -ENOMEM, "out of memory");
}

/* "FILE:LINE: SECTION.NAME.KEY: ", with the keys between where tables are nested; NULL when memory is out. */
static const char *place_of(struct reader *r, uint32_t line, const char *key)
{
    bool is_below = r->name && key && key != r->name; /* the table itself has the name as its key */
    return krait_arena_fmt(&r->rules->arena, "%s:%u: %s%s%s%s%s%s%s%s%s", r->path, line,
                           r->section ? r->section : "", r->name ? "." : "", r->name ? r->name : "",
                           r->edge ? "." : "", r->edge ? r->edge : "", r->is_in_where ? ".where" : "",
                           is_below ? "." : "", is_below ? key : "", r->section ? ": " : "");
}

static int KRAIT_PRINTF(3, 4) refuse(struct reader *r, const struct krait_toml *at, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    const char *place = place_of(r, at->line, at->key);
    return place ? krait_err_set(r->err, -EBADMSG, "%s%s", place, why) : out_of_memory(r);
}

/* A name that is none of some; `of` gives NULL for what is not among them. */
static int refuse_name(struct reader *r, const struct krait_toml *at, const char *what, const char *name,
                       const char *(*of)(const void *list, size_t i), const void *list, size_t count)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    KRAIT_AUTO_BUF all = { 0 };
    for (size_t i = 0; i < count; i++) {
        if (!of(list, i))
            continue;
        krait_suggest_try(&suggest, of(list, i));
        krait_buf_fmt(&all, "%s%s", all.len ? ", " : "", of(list, i));
    }
    if (suggest.best)
        return refuse(r, at, "there is no %s '%s'; did you mean '%s'?", what, name, suggest.best);
    return refuse(r, at, "there is no %s '%s'; %s%s", what, name,
                  all.len ? "use one of: " : "no other is declared", all.data ? all.data : "");
}

static const char *key_name(const void *list, size_t i)
{
    return ((const struct key *)list)[i].name;
}

static const char *word(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

/* Reads all keys of a table. */
static int take_keys(struct reader *r, const struct krait_toml *table, const struct key *keys, size_t count)
{
    int rc = 0;
    for (const struct krait_toml *value = table->first; value && !rc; value = value->next) {
        size_t i = 0;
        while (i < count && strcmp(keys[i].name, value->key) != 0)
            i++;
        if (i == count)
            return refuse_name(r, value, "key", value->key, key_name, keys, count);
        rc = keys[i].take ? keys[i].take(r, value) : 0;
    }
    return rc;
}

static int need_text(struct reader *r, const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_TEXT && *value->text ? 0
                                                          : refuse(r, value, "it has to be a text in quotes");
}

/* -- values -- */

/* A text, or several in an array: how many, 0: none of these. */
static uint32_t count_texts(const struct krait_toml *value)
{
    uint32_t count = 0;
    if (value->kind == KRAIT_TOML_TEXT)
        return *value->text ? 1 : 0;
    for (const struct krait_toml *item = value->kind == KRAIT_TOML_ARRAY ? value->first : NULL; item;
         item = item->next) {
        if (item->kind != KRAIT_TOML_TEXT || !*item->text)
            return 0;
        count++;
    }
    return count;
}

static const struct krait_toml *first_of(const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_ARRAY ? value->first : value;
}

static const char *part_name(const void *list, size_t i)
{
    return krait_trigger_part(i);
}

/* A name that only a trace can tell to be wrong: of an event or a field of the trigger that is read. */
static int keep_name(struct reader *r, uint32_t line, const char *key, const char *name, bool is_field)
{
    const struct krait_rule_name kept = { .at = place_of(r, line, key),
                                          .name = krait_arena_strdup(&r->rules->arena, name),
                                          .trigger = r->trigger,
                                          .rule = r->rules->count - 1,
                                          .is_field = is_field };
    return krait_rules_name(r->rules, &kept) ? out_of_memory(r) : 0;
}

/* A field may be one of another trace; what begins with a dollar is known. */
static int check_part(struct reader *r, const struct krait_toml *at, const char *part)
{
    if (krait_trigger_is_part(part))
        return 0;
    return *part == '$' ? refuse_name(r, at, "part", part, part_name, NULL, KRAIT_TRIGGER_PARTS)
                        : keep_name(r, at->line, at->key, part, true);
}

/* Parts of the event, with blanks between. */
static int read_parts(struct reader *r, const struct krait_toml *value, struct krait_template *template)
{
    uint32_t count = count_texts(value), at = 0;
    struct krait_arena *arena = &r->rules->arena;
    struct krait_template_piece *pieces = krait_arena_alloc(arena, 2 * ((size_t)count + 1) * sizeof(*pieces));
    if (!count)
        return refuse(r, value, "it has to be the name of a field, or an array of such");
    if (!pieces)
        return out_of_memory(r);
    for (const struct krait_toml *item = first_of(value); item && at < 2 * count;
         item = value->kind == KRAIT_TOML_ARRAY ? item->next : NULL) {
        int rc = check_part(r, value, item->text);
        if (rc)
            return rc;
        if (at)
            pieces[at++] = (struct krait_template_piece){ " ", false };
        const char *own = krait_arena_strdup(arena, item->text);
        if (!own)
            return out_of_memory(r);
        pieces[at++] = (struct krait_template_piece){ own, true };
    }
    *template = (struct krait_template){ pieces, at };
    return 0;
}

/* Text with parts of the event in braces. */
static int read_template(struct reader *r, const struct krait_toml *value, struct krait_template *template)
{
    struct krait_arena *arena = &r->rules->arena;
    uint32_t count = 0;
    if (need_text(r, value))
        return -EBADMSG;
    struct krait_template_piece *pieces =
        krait_arena_alloc(arena, (strlen(value->text) + 1) * sizeof(*pieces));
    if (!pieces)
        return out_of_memory(r);
    for (const char *at = value->text; *at;) {
        bool is_part = *at == '{';
        size_t n = strcspn(at + is_part, is_part ? "}" : "{");
        if (is_part && (at[1 + n] != '}' || !n))
            return refuse(r, value, "'%s' has a brace that is not closed, or is empty", value->text);
        const char *own = krait_arena_strndup(arena, at + is_part, n);
        if (!own)
            return out_of_memory(r);
        int rc = is_part ? check_part(r, value, own) : 0;
        if (rc)
            return rc;
        pieces[count++] = (struct krait_template_piece){ own, is_part };
        at += n + (is_part ? 2 : 0);
    }
    *template = (struct krait_template){ pieces, count };
    return 0;
}

/* -- conditions -- */

static const struct {
    const char *sign; /* those of two characters first */
    enum krait_condition_op op;
} operators[] = { { "!=", KRAIT_IS_NOT }, { "<=", KRAIT_LESS_OR_SAME }, { ">=", KRAIT_MORE_OR_SAME },
                  { "==", KRAIT_IS },     { "<", KRAIT_LESS },          { ">", KRAIT_MORE } };

static const char *condition_text(struct reader *r, const struct krait_toml *item)
{
    struct krait_arena *arena = &r->rules->arena;
    return item->kind == KRAIT_TOML_TEXT      ? krait_arena_strdup(arena, item->text)
           : item->kind == KRAIT_TOML_INTEGER ? krait_arena_fmt(arena, "%lld", (long long)item->integer)
           : item->kind == KRAIT_TOML_REAL    ? krait_arena_fmt(arena, "%.17g", item->real)
           : item->kind == KRAIT_TOML_BOOL    ? krait_arena_strdup(arena, item->integer ? "1" : "0")
                                              : NULL;
}

static bool is_plain(const struct krait_toml *value)
{
    return value->kind != KRAIT_TOML_TABLE && value->kind != KRAIT_TOML_ARRAY &&
           value->kind != KRAIT_TOML_TIME;
}

static int read_values(struct reader *r, const struct krait_toml *value, struct krait_condition *condition)
{
    uint32_t count = 0;
    for (const struct krait_toml *item = first_of(value); item;
         item = value->kind == KRAIT_TOML_ARRAY ? item->next : NULL) {
        if (!is_plain(item))
            return refuse(r, value, "a condition is a number, a text, or an array of such");
        count++;
    }
    const char **values = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*values));
    if (!values)
        return out_of_memory(r);
    if (!count)
        return refuse(r, value, "an empty array is never matched");
    for (const struct krait_toml *item = first_of(value); item && condition->count < count;
         item = item->next) {
        values[condition->count] = condition_text(r, item);
        if (!values[condition->count++])
            return out_of_memory(r);
    }
    condition->values = values;
    return 0;
}

/* What an operator compares with has to be a number: else it would hold for no event. */
static int check_number(struct reader *r, const struct krait_toml *value, const char *sign,
                        const struct krait_condition *condition)
{
    double number;
    if (condition->count > 1)
        return refuse(r, value, "'%s' compares with one number", sign);
    if (krait_trigger_number(condition->values[0], &number))
        return 0;
    return refuse(r, value,
                  "'%s' compares with a number, which '%s' is not; '==' before it takes the whole as text",
                  sign, condition->values[0]);
}

/* What is an operator in other languages: before a number it is not meant as text. */
static int check_sign(struct reader *r, const struct krait_toml *value, const char *text)
{
    static const char *const meant[][2] = { { "=<", "<=" }, { "=>", ">=" }, { "=", "==" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meant); i++) {
        size_t n = strlen(meant[i][0]);
        double number;
        if (strncmp(text, meant[i][0], n) == 0 && krait_trigger_number(text + n, &number))
            return refuse(r, value, "there is no comparison '%s'; did you mean '%s'?", meant[i][0],
                          meant[i][1]);
    }
    return 0;
}

static int read_condition(struct reader *r, const struct krait_toml *value, struct krait_condition *condition)
{
    *condition = (struct krait_condition){ .part = krait_arena_strdup(&r->rules->arena, value->key) };
    int rc = condition->part ? check_part(r, value, value->key) : out_of_memory(r);
    rc = rc ? rc : read_values(r, value, condition);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(operators) && !rc; i++) {
        const char *sign = operators[i].sign, **first = (const char **)&condition->values[0];
        size_t n = strlen(sign);
        if (strncmp(*first, sign, n) != 0)
            continue;
        *first += n + strspn(*first + n, " ");
        condition->op = operators[i].op;
        return condition->op > KRAIT_IS_NOT ? check_number(r, value, sign, condition) : 0;
    }
    return rc ? rc : check_sign(r, value, condition->values[0]);
}

static int take_where(struct reader *r, const struct krait_toml *value)
{
    uint32_t count = 0;
    if (value->kind != KRAIT_TOML_TABLE)
        return refuse(r, value, "it has to be a table, such as { prio = 120, comm = \"python*\" }");
    for (const struct krait_toml *item = value->first; item; item = item->next)
        count++;
    struct krait_condition *where = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*where));
    int rc = where ? 0 : out_of_memory(r);
    r->trigger->where = where;
    r->is_in_where = true;
    for (const struct krait_toml *item = value->first; item && !rc; item = item->next)
        rc = read_condition(r, item, &where[r->trigger->where_count++]);
    r->is_in_where = false;
    return rc;
}

/* -- keys of a trigger -- */

static int take_message(struct reader *r, const struct krait_toml *value)
{
    struct krait_err why = { 0 };
    if (need_text(r, value))
        return -EBADMSG;
    int rc = krait_regex_new(&r->trigger->message, value->text, &why);
    return rc == -EINVAL ? refuse(r, value, "%s", why.text) : rc ? out_of_memory(r) : 0;
}

static int take_event(struct reader *r, const struct krait_toml *value)
{
    uint32_t count = count_texts(value);
    const char **globs = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*globs));
    if (!count)
        return refuse(r, value,
                      "it has to be the name of an event, which may be a glob, or an array of such");
    if (!globs)
        return out_of_memory(r);
    r->trigger->events = globs;
    for (const struct krait_toml *item = first_of(value); item && r->trigger->event_count < count;
         item = item->next) {
        globs[r->trigger->event_count] = krait_arena_strdup(&r->rules->arena, item->text);
        if (!globs[r->trigger->event_count++])
            return out_of_memory(r);
        if (keep_name(r, item->line, value->key, item->text, false))
            return -ENOMEM;
    }
    return 0;
}

static int take_key(struct reader *r, const struct krait_toml *value)
{
    return read_parts(r, value, &r->trigger->key);
}

static int take_by(struct reader *r, const struct krait_toml *value)
{
    r->rule->by_key = true;
    return read_parts(r, value, &r->trigger->by);
}

static int take_state(struct reader *r, const struct krait_toml *value)
{
    return read_template(r, value, &r->trigger->what);
}

static int take_value(struct reader *r, const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_TEXT ? read_parts(r, value, &r->trigger->what)
                                          : refuse(r, value, "it has to be the name of a field");
}

static const struct key edge_keys[] = {
    { "message", take_message }, { "event", take_event }, { "where", take_where }, { "key", take_key }
};
static const struct key state_keys[] = { { "message", take_message },
                                         { "event", take_event },
                                         { "where", take_where },
                                         { "key", take_key },
                                         { "state", take_state } };
static const struct key signal_keys[] = {
    { "message", take_message }, { "event", take_event }, { "where", take_where },
    { "key", take_key },         { "by", NULL },          { "after", NULL },
    { "value", take_value }
};

/* Those of a table of its own, below the rule's, have its key in their place. */
static int take_trigger_keys(struct reader *r, const struct krait_toml *table, const struct key *keys,
                             size_t count)
{
    r->edge = keys == edge_keys ? table->key : NULL;
    int rc = take_keys(r, table, keys, count);
    r->edge = NULL;
    return rc;
}

/* One more trigger of the rule. A text alone is its message. */
static int read_trigger(struct reader *r, const struct krait_toml *value, enum krait_trigger_role role,
                        const struct key *keys, size_t count)
{
    r->trigger = &r->rule->triggers[r->rule->trigger_count++];
    r->trigger->role = role;
    r->trigger->line = value->line;
    int rc = value->kind == KRAIT_TOML_TEXT    ? take_message(r, value)
             : value->kind == KRAIT_TOML_TABLE ? take_trigger_keys(r, value, keys, count)
                                               : refuse(r, value, "it has to be a message or a table");
    if (rc || r->trigger->message || r->trigger->event_count)
        return rc;
    return refuse(r, value, "it needs a message or an event");
}

/* -- sections -- */

static int take_pairing(struct reader *r, const struct krait_toml *value)
{
    static const char *const words[] = { "order", "nested", "latest" }; /* as enum krait_pairing */
    if (need_text(r, value))
        return -EBADMSG;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        if (strcmp(words[i], value->text) == 0) {
            r->rule->pairing = (enum krait_pairing)i;
            return 0;
        }
    }
    return refuse_name(r, value, "pairing", value->text, word, words, KRAIT_ARRAY_LEN(words));
}

static int take_within(struct reader *r, const struct krait_toml *value)
{
    if (need_text(r, value))
        return -EBADMSG;
    r->rule->within_name = krait_arena_strdup(&r->rules->arena, value->text);
    r->rule->line = value->line;
    return r->rule->within_name ? 0 : out_of_memory(r);
}

static int take_edge(struct reader *r, const struct krait_toml *value)
{
    return read_trigger(r, value, strcmp(value->key, "stop") == 0 ? KRAIT_TRIGGER_STOP : KRAIT_TRIGGER_START,
                        edge_keys, KRAIT_ARRAY_LEN(edge_keys));
}

static int take_match(struct reader *r, const struct krait_toml *value)
{
    struct krait_err why = { 0 };
    if (need_text(r, value))
        return -EBADMSG;
    if (r->rule->match)
        return refuse(r, value, "an interval has either a call or a span");
    int rc = krait_rules_match(r->rules, r->rule, value->text, &why);
    r->rule->declared_at = krait_arena_fmt(&r->rules->arena, "%s:%u", r->path, value->line);
    if (!rc && !r->rule->declared_at)
        rc = -ENOMEM;
    r->rule->kind = strcmp(value->key, "call") == 0 ? KRAIT_RULE_CALLS : KRAIT_RULE_SPANS;
    return rc == -EINVAL ? refuse(r, value, "%s", why.text) : rc ? out_of_memory(r) : 0;
}

/* `key` and `by` of an interval are those of its triggers that have none; what it takes from a span is a field. */
static int read_pair(struct reader *r, const struct krait_toml *table)
{
    const struct krait_toml *key = krait_toml_get(table, "key"), *by = krait_toml_get(table, "by");
    int rc = 0;
    for (uint32_t i = 0; i < r->rule->trigger_count && !rc; i++) {
        r->trigger = &r->rule->triggers[i];
        if (key && !r->trigger->key.count)
            rc = take_key(r, key);
        if (by && !rc && r->trigger->role == KRAIT_TRIGGER_START)
            rc = take_by(r, by);
    }
    return rc;
}

static const struct key interval_keys[] = {
    { "start", take_edge }, { "stop", take_edge }, { "call", take_match },      { "span", take_match },
    { "key", NULL },        { "by", NULL },        { "pairing", take_pairing }, { "within", take_within }
};

static int read_interval(struct reader *r, const struct krait_toml *table)
{
    int rc = take_keys(r, table, interval_keys, KRAIT_ARRAY_LEN(interval_keys));
    const struct krait_toml *key = krait_toml_get(table, "key"), *by = krait_toml_get(table, "by");
    bool has_start = krait_toml_get(table, "start"), has_stop = krait_toml_get(table, "stop");
    if (rc)
        return rc;
    if (r->rule->match ? has_start || has_stop : !has_start || !has_stop)
        return refuse(r, table, "an interval has a start and a stop, or a call, or a span");
    if (!r->rule->match)
        return read_pair(r, table);
    if (by || (key && need_text(r, key)))
        return by ? refuse(r, by, "calls and spans have a key alone") : -EBADMSG;
    if (key && r->rule->kind == KRAIT_RULE_CALLS && *key->text != '$')
        return refuse(r, key, "calls have no fields; their key is $thread, $process or $host");
    if (key && *key->text == '$' && check_part(r, key, key->text))
        return -EBADMSG;
    r->rule->key = key ? krait_arena_strdup(&r->rules->arena, key->text) : NULL;
    r->rule->key_at = key ? place_of(r, key->line, key->key) : NULL;
    r->rule->by_key = key;
    return key && !(r->rule->key && r->rule->key_at) ? out_of_memory(r) : 0;
}

/* One trigger, or an array of them; each has what it takes. */
static int read_triggers(struct reader *r, const struct krait_toml *table, enum krait_trigger_role role,
                         const struct key *keys, size_t count)
{
    int rc = 0;
    const char *what = role == KRAIT_TRIGGER_STATE ? "state" : "value";
    for (const struct krait_toml *at = first_of(table); at && !rc;
         at = table->kind == KRAIT_TOML_ARRAY ? at->next : NULL) {
        rc = at->kind == KRAIT_TOML_TABLE ? read_trigger(r, at, role, keys, count)
                                          : refuse(r, at, "it has to be a table");
        if (!rc && !r->trigger->what.count && !krait_trigger_what_group(r->trigger))
            rc = refuse(r, at, "it needs a %s, or a message with a group in round brackets for it", what);
        if (!rc && role == KRAIT_TRIGGER_VALUE && r->trigger->key.count)
            r->rule->by_key = true;
    }
    return rc;
}

static int read_states(struct reader *r, const struct krait_toml *table)
{
    return read_triggers(r, table, KRAIT_TRIGGER_STATE, state_keys, KRAIT_ARRAY_LEN(state_keys));
}

/* The event before a value that names it by its parts; it has the value's key if it has none of its own. */
static int read_after(struct reader *r, const struct krait_toml *table)
{
    const struct krait_toml *after = krait_toml_get(table, "after"), *by = krait_toml_get(table, "by");
    const struct krait_toml *key = krait_toml_get(table, "key");
    if (!after && !by)
        return 0;
    if (!after || !by)
        return refuse(r, after ? after : by,
                      "'after' and 'by' go together: 'by' names parts of the event before");
    int rc = read_trigger(r, after, KRAIT_TRIGGER_AFTER, edge_keys, KRAIT_ARRAY_LEN(edge_keys));
    rc = rc || !key || r->trigger->key.count ? rc : take_key(r, key);
    return rc ? rc : take_by(r, by);
}

static int read_signal(struct reader *r, const struct krait_toml *table)
{
    int rc = read_triggers(r, table, KRAIT_TRIGGER_VALUE, signal_keys, KRAIT_ARRAY_LEN(signal_keys));
    for (const struct krait_toml *at = first_of(table); at && !rc;
         at = table->kind == KRAIT_TOML_ARRAY ? at->next : NULL)
        rc = read_after(r, at);
    return rc;
}

/* -- lanes -- */

/* A name, or an array of such. */
static int read_names(struct reader *r, const struct krait_toml *value, const char *const **names,
                      uint32_t *count)
{
    uint32_t all = count_texts(value);
    const char **own = krait_arena_alloc(&r->rules->arena, ((size_t)all + 1) * sizeof(*own));
    if (!all)
        return refuse(r, value, "it has to be a name, or an array of such");
    if (!own)
        return out_of_memory(r);
    *count = 0;
    for (const struct krait_toml *item = first_of(value); item && *count < all; item = item->next) {
        own[*count] = krait_arena_strdup(&r->rules->arena, item->text);
        if (!own[(*count)++])
            return out_of_memory(r);
    }
    *names = own;
    return 0;
}

static int take_show(struct reader *r, const struct krait_toml *value)
{
    r->lane->line = value->line;
    return read_names(r, value, &r->lane->names, &r->lane->count);
}

static int take_lane_key(struct reader *r, const struct krait_toml *value)
{
    return read_names(r, value, &r->lane->keys, &r->lane->key_count);
}

static const struct key lane_keys[] = { { "show", take_show }, { "key", take_lane_key } };

static int read_lane(struct reader *r, const struct krait_toml *table)
{
    struct krait_rules *rules = r->rules;
    struct krait_rule_lane lane = { .title = krait_arena_strdup(&rules->arena, table->key) };
    r->name = table->key;
    r->lane = &lane;
    if (table->kind != KRAIT_TOML_TABLE)
        return refuse(r, table, "it has to be a table: [lane.%s]", r->name);
    int rc = take_keys(r, table, lane_keys, KRAIT_ARRAY_LEN(lane_keys));
    if (rc)
        return rc;
    if (!lane.count)
        return refuse(r, table, "it needs the key 'show': the names of what it draws");
    lane.rules = krait_arena_alloc(&rules->arena, lane.count * sizeof(*lane.rules));
    if (!lane.title || !lane.rules || !KRAIT_GROW(rules->lanes, rules->lane_cap, rules->lane_count + 1))
        return out_of_memory(r);
    rules->lanes[rules->lane_count++] = lane;
    return 0;
}

static const struct section {
    const char *name;
    enum krait_rule_kind kind;
    const struct key *keys; /* of what it names */
    size_t count;
    int (*read)(struct reader *r, const struct krait_toml *table); /* NULL: it is of lanes */
} sections[] = {
    { "interval", KRAIT_RULE_PAIRS, interval_keys, KRAIT_ARRAY_LEN(interval_keys), read_interval },
    { "state", KRAIT_RULE_STATES, state_keys, KRAIT_ARRAY_LEN(state_keys), read_states },
    { "signal", KRAIT_RULE_SIGNAL, signal_keys, KRAIT_ARRAY_LEN(signal_keys), read_signal },
    { "lane", 0, lane_keys, KRAIT_ARRAY_LEN(lane_keys), NULL },
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

static int read_rule(struct reader *r, const struct section *section, const struct krait_toml *table)
{
    uint32_t triggers = 2;
    r->name = table->key;
    bool is_array = table->kind == KRAIT_TOML_ARRAY && section->kind != KRAIT_RULE_PAIRS;
    if (table->kind != KRAIT_TOML_TABLE && !is_array)
        return refuse(r, table, "it has to be a table: [%s.%s]", r->section, r->name);
    for (const struct krait_toml *at = table->first; at; at = at->next)
        triggers += 2; /* a signal's may have an event before it each */
    if (find_rule(r->rules, 0, table->key) < r->rules->count)
        return refuse(r, table, "there is another one of that name");
    r->rule = krait_rules_add(r->rules, section->kind, table->key, triggers);
    if (!r->rule)
        return out_of_memory(r);
    int rc = section->read(r, table);
    return rc ? rc : krait_rules_check_keys(r->rules, r->rule, r->path, r->err);
}

/* Whether a table has a key with a value where it should have a name with a table. */
static bool lacks_name(const struct section *section, const struct krait_toml *table)
{
    for (const struct krait_toml *at = table->first; at; at = at->next) {
        const struct krait_toml *first = first_of(at);
        for (size_t i = 0; i < section->count; i++) {
            if (strcmp(section->keys[i].name, at->key) == 0 && (!first || first->kind != KRAIT_TOML_TABLE))
                return true;
        }
    }
    return false;
}

static int read_section(struct reader *r, const struct krait_toml *table)
{
    size_t i = 0;
    int rc = 0;
    while (i < KRAIT_ARRAY_LEN(sections) && strcmp(sections[i].name, table->key) != 0)
        i++;
    if (i == KRAIT_ARRAY_LEN(sections))
        return refuse_name(r, table, "kind of analysis", table->key, section_name, NULL, i);
    r->section = sections[i].name;
    if (table->kind != KRAIT_TOML_TABLE || lacks_name(&sections[i], table))
        return refuse(r, table, "it needs a name: [%s.NAME]", r->section);
    for (const struct krait_toml *named = table->first; named && !rc; named = named->next)
        rc = sections[i].read ? read_rule(r, &sections[i], named) : read_lane(r, named);
    r->section = r->name = NULL;
    return rc;
}

/* -- intervals within others -- */

static const char *rule_name(const void *list, size_t i)
{
    const struct reader *r = list;
    return r->rules->items[r->first + i].name;
}

static bool has_intervals(const struct krait_interval_rule *rule)
{
    return rule->kind != KRAIT_RULE_SIGNAL && rule->kind != KRAIT_RULE_STATES;
}

/* What the rule that is read may be within. */
static const char *outer_name(const void *list, size_t i)
{
    const struct reader *r = list;
    const struct krait_interval_rule *rule = &r->rules->items[r->first + i];
    return has_intervals(rule) && rule != r->rule ? rule->name : NULL;
}

/* The interval that a rule is within, by its name. */
static int find_outer(struct reader *r, struct krait_interval_rule *rule)
{
    const struct krait_toml at = { .line = rule->line, .key = "within" };
    uint32_t count = r->rules->count, i = find_rule(r->rules, r->first, rule->within_name);
    r->section = "interval";
    r->name = rule->name;
    r->rule = rule;
    if (i == count)
        return refuse_name(r, &at, "interval", rule->within_name, outer_name, r, count - r->first);
    if (!has_intervals(&r->rules->items[i]))
        return refuse(r, &at, "'%s' is no interval", rule->within_name);
    rule->within = i + 1;
    return 0;
}

/* What a lane names is another lane, or nothing. */
static int refuse_shown(struct reader *r, const struct krait_toml *at, const char *name)
{
    for (uint32_t i = 0; i < r->rules->lane_count; i++) {
        if (strcmp(r->rules->lanes[i].title, name) == 0)
            return refuse(r, at, "'%s' is a lane, and a lane shows intervals, states and signals", name);
    }
    return refuse_name(r, at, "interval, state or signal", name, rule_name, r, r->rules->count - r->first);
}

/* The rules of a lane, by their names. */
static int find_shown(struct reader *r, struct krait_rule_lane *lane)
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
static int check_circles(struct reader *r)
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
        return refuse(r, &at, "'%s' is within '%s', which is within it: a circle", rule->name,
                      rule->within_name);
    }
    return 0;
}

static int read_all(struct reader *r, const struct krait_toml *root, const char **about)
{
    uint32_t lanes = r->rules->lane_count;
    int rc = 0;
    for (const struct krait_toml *table = root->first; table && !rc; table = table->next) {
        if (strcmp(table->key, "about") != 0) {
            rc = read_section(r, table);
            continue;
        }
        rc = need_text(r, table);
        if (!rc && about)
            *about = krait_arena_strdup(&r->rules->arena, table->text);
        rc = !rc && about && !*about ? out_of_memory(r) : rc;
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
    struct reader reader = { .rules = rules, .first = rules->count, .path = path, .err = err };
    if (about)
        *about = "";
    int rc = krait_toml_read(&root, &arena, text, n, &line, err);
    if (rc && rc != -ENOMEM)
        krait_rules_err_line(err, rc, path, line);
    rc = rc ? rc : read_all(&reader, root, about);
    krait_arena_done(&arena);
    return rc;
}
