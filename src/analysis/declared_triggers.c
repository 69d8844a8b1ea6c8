/* SPDX-License-Identifier: Apache-2.0
 *
 * Triggers of a file: their messages, events, conditions, and the parts of an event that they take.
 */
#include "analysis/declared_own.h"

#include <string.h>

/* -- parts of events -- */

static const char *part_name(const void *list, size_t i)
{
    return krait_trigger_part(i);
}

/* A name that only a trace can tell to be wrong: of an event or a field of the trigger that is read. */
static int keep_name(struct krait_declared_reader *r, uint32_t line, const char *key, const char *name,
                     bool is_field)
{
    const struct krait_rule_name kept = { .at = krait_declared_place(r, line, key),
                                          .name = krait_arena_strdup(&r->rules->arena, name),
                                          .trigger = r->trigger,
                                          .rule = r->rules->count - 1,
                                          .is_field = is_field };
    return krait_rules_name(r->rules, &kept) ? krait_declared_no_memory(r) : 0;
}

int krait_declared_check_part(struct krait_declared_reader *r, const struct krait_toml *at, const char *part)
{
    if (krait_trigger_is_part(part))
        return 0;
    return *part == '$'
               ? krait_declared_refuse_name(r, at, "part", part, part_name, NULL, KRAIT_TRIGGER_PARTS)
               : keep_name(r, at->line, at->key, part, true);
}

/* Parts of the event, with blanks between. */
static int read_parts(struct krait_declared_reader *r, const struct krait_toml *value,
                      struct krait_template *template)
{
    uint32_t count = krait_declared_count_texts(value), at = 0;
    struct krait_arena *arena = &r->rules->arena;
    struct krait_template_piece *pieces = krait_arena_alloc(arena, 2 * ((size_t)count + 1) * sizeof(*pieces));
    if (!count)
        return krait_declared_refuse(r, value, "it has to be the name of a field, or an array of such");
    if (!pieces)
        return krait_declared_no_memory(r);
    for (const struct krait_toml *item = krait_declared_first(value); item && at < 2 * count;
         item = value->kind == KRAIT_TOML_ARRAY ? item->next : NULL) {
        int rc = krait_declared_check_part(r, value, item->text);
        if (rc)
            return rc;
        if (at)
            pieces[at++] = (struct krait_template_piece){ KRAIT_TEMPLATE_BETWEEN, false };
        const char *own = krait_arena_strdup(arena, item->text);
        if (!own)
            return krait_declared_no_memory(r);
        pieces[at++] = (struct krait_template_piece){ own, true };
    }
    *template = (struct krait_template){ pieces, at };
    return 0;
}

/* Text with parts of the event in braces. */
static int read_template(struct krait_declared_reader *r, const struct krait_toml *value,
                         struct krait_template *template)
{
    struct krait_arena *arena = &r->rules->arena;
    uint32_t count = 0;
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    struct krait_template_piece *pieces =
        krait_arena_alloc(arena, (strlen(value->text) + 1) * sizeof(*pieces));
    if (!pieces)
        return krait_declared_no_memory(r);
    for (const char *at = value->text; *at;) {
        bool is_part = *at == '{';
        size_t n = strcspn(at + is_part, is_part ? "}" : "{");
        if (is_part && (at[1 + n] != '}' || !n))
            return krait_declared_refuse(r, value, "'%s' has a brace that is not closed, or is empty",
                                         value->text);
        const char *own = krait_arena_strndup(arena, at + is_part, n);
        if (!own)
            return krait_declared_no_memory(r);
        int rc = is_part ? krait_declared_check_part(r, value, own) : 0;
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

static const char *condition_text(struct krait_declared_reader *r, const struct krait_toml *item)
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

static int read_values(struct krait_declared_reader *r, const struct krait_toml *value,
                       struct krait_condition *condition)
{
    uint32_t count = 0;
    for (const struct krait_toml *item = krait_declared_first(value); item;
         item = value->kind == KRAIT_TOML_ARRAY ? item->next : NULL) {
        if (!is_plain(item))
            return krait_declared_refuse(r, value, "a condition is a number, a text, or an array of such");
        count++;
    }
    const char **values = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*values));
    if (!values)
        return krait_declared_no_memory(r);
    if (!count)
        return krait_declared_refuse(r, value, "an empty array is never matched");
    for (const struct krait_toml *item = krait_declared_first(value); item && condition->count < count;
         item = item->next) {
        values[condition->count] = condition_text(r, item);
        if (!values[condition->count++])
            return krait_declared_no_memory(r);
    }
    condition->values = values;
    return 0;
}

/* What an operator compares with has to be a number: else it would hold for no event. */
static int check_number(struct krait_declared_reader *r, const struct krait_toml *value, const char *sign,
                        const struct krait_condition *condition)
{
    double number;
    if (condition->count > 1)
        return krait_declared_refuse(r, value, "'%s' compares with one number", sign);
    if (krait_trigger_number(condition->values[0], &number))
        return 0;
    return krait_declared_refuse(
        r, value, "'%s' compares with a number, which '%s' is not; '==' before it takes the whole as text",
        sign, condition->values[0]);
}

/* What is an operator in other languages: before a number it is not meant as text. */
static int check_sign(struct krait_declared_reader *r, const struct krait_toml *value, const char *text)
{
    static const char *const meant[][2] = { { "=<", "<=" }, { "=>", ">=" }, { "=", "==" } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meant); i++) {
        size_t n = strlen(meant[i][0]);
        double number;
        if (strncmp(text, meant[i][0], n) == 0 && krait_trigger_number(text + n, &number))
            return krait_declared_refuse(r, value, "there is no comparison '%s'; did you mean '%s'?",
                                         meant[i][0], meant[i][1]);
    }
    return 0;
}

static int read_condition(struct krait_declared_reader *r, const struct krait_toml *value,
                          struct krait_condition *condition)
{
    *condition = (struct krait_condition){ .part = krait_arena_strdup(&r->rules->arena, value->key) };
    int rc = condition->part ? krait_declared_check_part(r, value, value->key) : krait_declared_no_memory(r);
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

static int take_where(struct krait_declared_reader *r, const struct krait_toml *value)
{
    uint32_t count = 0;
    if (value->kind != KRAIT_TOML_TABLE)
        return krait_declared_refuse(r, value,
                                     "it has to be a table, such as { prio = 120, comm = \"python*\" }");
    for (const struct krait_toml *item = value->first; item; item = item->next)
        count++;
    struct krait_condition *where = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*where));
    int rc = where ? 0 : krait_declared_no_memory(r);
    r->trigger->where = where;
    r->is_in_where = true;
    for (const struct krait_toml *item = value->first; item && !rc; item = item->next)
        rc = read_condition(r, item, &where[r->trigger->where_count++]);
    r->is_in_where = false;
    return rc;
}

/* -- keys of a trigger -- */

static int take_message(struct krait_declared_reader *r, const struct krait_toml *value)
{
    struct krait_err why = { 0 };
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    int rc = krait_regex_new(&r->trigger->message, value->text, &why);
    return rc == -EINVAL ? krait_declared_refuse(r, value, "%s", why.text)
           : rc          ? krait_declared_no_memory(r)
                         : 0;
}

static int take_event(struct krait_declared_reader *r, const struct krait_toml *value)
{
    uint32_t count = krait_declared_count_texts(value);
    const char **globs = krait_arena_alloc(&r->rules->arena, ((size_t)count + 1) * sizeof(*globs));
    if (!count)
        return krait_declared_refuse(
            r, value, "it has to be the name of an event, which may be a glob, or an array of such");
    if (!globs)
        return krait_declared_no_memory(r);
    r->trigger->events = globs;
    for (const struct krait_toml *item = krait_declared_first(value); item && r->trigger->event_count < count;
         item = item->next) {
        globs[r->trigger->event_count] = krait_arena_strdup(&r->rules->arena, item->text);
        if (!globs[r->trigger->event_count++])
            return krait_declared_no_memory(r);
        if (keep_name(r, item->line, value->key, item->text, false))
            return -ENOMEM;
    }
    return 0;
}

int krait_declared_take_key(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return read_parts(r, value, &r->trigger->key);
}

int krait_declared_take_by(struct krait_declared_reader *r, const struct krait_toml *value)
{
    r->rule->by_key = true;
    return read_parts(r, value, &r->trigger->by);
}

static int take_state(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return read_template(r, value, &r->trigger->what);
}

static int take_value(struct krait_declared_reader *r, const struct krait_toml *value)
{
    return value->kind == KRAIT_TOML_TEXT
               ? read_parts(r, value, &r->trigger->what)
               : krait_declared_refuse(r, value, "it has to be the name of a field");
}

/* A function, where it is called or where it returns. */
static int take_call(struct krait_declared_reader *r, const struct krait_toml *value)
{
    struct krait_arena *arena = &r->rules->arena;
    struct krait_err why = { 0 };
    if (krait_declared_need_text(r, value))
        return -EBADMSG;
    if (r->trigger->call)
        return krait_declared_refuse(r, value, "it has either a call or a return");
    const char *own = krait_arena_strdup(arena, value->text);
    r->trigger->returns = strcmp(value->key, "return") == 0;
    r->trigger->call_at = krait_arena_fmt(arena, "%s:%u", r->path, value->line);
    r->rule->declared_at = r->trigger->call_at;
    if (!own || !r->trigger->call_at)
        return krait_declared_no_memory(r);
    int rc = krait_match_new(&r->trigger->call, own, &why);
    return rc == -EINVAL ? krait_declared_refuse(r, value, "%s", why.text)
           : rc          ? krait_declared_no_memory(r)
                         : 0;
}

/* Nothing else fires it. */
static int check_call(struct krait_declared_reader *r, const struct krait_toml *at)
{
    const struct krait_trigger *trigger = r->trigger;
    return trigger->message || trigger->event_count
               ? krait_declared_refuse(r, at, "a call or a return has no message and no event")
               : 0;
}

static const struct krait_declared_key pair_keys[] = {
    { "message", take_message },        { "event", take_event }, { "where", take_where },
    { "key", krait_declared_take_key }, { "call", take_call },   { "return", take_call }
};
static const struct krait_declared_key edge_keys[] = { { "message", take_message },
                                                       { "event", take_event },
                                                       { "where", take_where },
                                                       { "key", krait_declared_take_key } };
static const struct krait_declared_key state_keys[] = { { "message", take_message },
                                                        { "event", take_event },
                                                        { "where", take_where },
                                                        { "key", krait_declared_take_key },
                                                        { "state", take_state } };
static const struct krait_declared_key signal_keys[] = { { "message", take_message },
                                                         { "event", take_event },
                                                         { "where", take_where },
                                                         { "key", krait_declared_take_key },
                                                         { "by", NULL },
                                                         { "after", NULL },
                                                         { "value", take_value } };

#define KEYS(keys)                  \
    {                               \
        keys, KRAIT_ARRAY_LEN(keys) \
    }

const struct krait_declared_keys krait_declared_trigger_keys[] = {
    [KRAIT_TRIGGER_START] = KEYS(pair_keys),  [KRAIT_TRIGGER_STOP] = KEYS(pair_keys),
    [KRAIT_TRIGGER_STATE] = KEYS(state_keys), [KRAIT_TRIGGER_VALUE] = KEYS(signal_keys),
    [KRAIT_TRIGGER_AFTER] = KEYS(edge_keys),
};

/* Those of a table of its own, below the rule's, have its key in their place. */
static int take_trigger_keys(struct krait_declared_reader *r, const struct krait_toml *table,
                             const struct krait_declared_keys *keys)
{
    r->edge = keys->items == edge_keys || keys->items == pair_keys ? table->key : NULL;
    int rc = krait_declared_take_keys(r, table, keys);
    r->edge = NULL;
    return rc;
}

int krait_declared_trigger(struct krait_declared_reader *r, const struct krait_toml *value,
                           enum krait_trigger_role role)
{
    r->trigger = &r->rule->triggers[r->rule->trigger_count++];
    r->trigger->role = role;
    r->trigger->line = value->line;
    int rc = value->kind == KRAIT_TOML_TEXT ? take_message(r, value)
             : value->kind == KRAIT_TOML_TABLE
                 ? take_trigger_keys(r, value, &krait_declared_trigger_keys[role])
                 : krait_declared_refuse(r, value, "it has to be a message or a table");
    if (!rc && r->trigger->call)
        return check_call(r, value);
    if (rc || r->trigger->message || r->trigger->event_count)
        return rc;
    return krait_declared_refuse(r, value, "it needs a message or an event%s",
                                 role <= KRAIT_TRIGGER_STOP ? ", a call or a return" : "");
}
