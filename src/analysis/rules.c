/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rules.h"

#include "analysis/provider.h"
#include "base/array.h"
#include "base/fmt.h"

void krait_rules_done(struct krait_rules *rules)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        for (uint32_t t = 0; t < rules->items[i].trigger_count; t++) {
            krait_regex_free(rules->items[i].triggers[t].message);
            krait_match_free(rules->items[i].triggers[t].call);
        }
        krait_match_free(rules->items[i].match);
        krait_provider_free(rules->items[i].provider);
    }
    free(rules->items);
    free(rules->lanes);
    free(rules->named);
    krait_arena_done(&rules->arena);
    krait_buf_done(&rules->notes);
    *rules = (struct krait_rules){ 0 };
}

struct krait_interval_rule *krait_rules_add(struct krait_rules *rules, enum krait_rule_kind kind,
                                            const char *name, uint32_t triggers)
{
    const struct krait_interval_rule rule = {
        .kind = kind,
        .name = krait_arena_strdup(&rules->arena, name),
        .triggers = krait_arena_alloc(&rules->arena, ((size_t)triggers + 1) * sizeof(*rule.triggers)),
    };
    if (!rule.name || !rule.triggers || !KRAIT_GROW(rules->items, rules->cap, rules->count + 1))
        return NULL;
    rules->items[rules->count] = rule;
    return &rules->items[rules->count++];
}

int krait_rules_trigger(struct krait_interval_rule *rule, enum krait_trigger_role role, const char *pattern,
                        struct krait_err *err)
{
    struct krait_trigger *trigger = &rule->triggers[rule->trigger_count];
    int rc = pattern ? krait_regex_new(&trigger->message, pattern, err) : 0;
    trigger->role = role;
    rule->trigger_count += !rc;
    return rc;
}

int krait_rules_match(struct krait_rules *rules, struct krait_interval_rule *rule, const char *pattern,
                      struct krait_err *err)
{
    const char *own = krait_arena_strdup(&rules->arena, pattern);
    return own ? krait_match_new(&rule->match, own, err) : krait_err_set(err, -ENOMEM, "out of memory");
}

int krait_rules_name(struct krait_rules *rules, const struct krait_rule_name *name)
{
    if (!name->at || !name->name || !KRAIT_GROW(rules->named, rules->named_cap, rules->named_count + 1))
        return -ENOMEM;
    rules->named[rules->named_count++] = *name;
    return 0;
}

struct krait_template krait_rules_part(struct krait_rules *rules, const char *part)
{
    struct krait_template_piece *piece = KRAIT_ARENA_NEW(&rules->arena, struct krait_template_piece);
    const char *own = krait_arena_strdup(&rules->arena, part);
    if (!piece || !own)
        return (struct krait_template){ 0 };
    *piece = (struct krait_template_piece){ own, true };
    return (struct krait_template){ piece, 1 };
}

int krait_rules_err_line(struct krait_err *err, int code, const char *path, uint32_t line)
{
    return line ? krait_err_prefix(err, code, "%s:%u", path, line) : krait_err_prefix(err, code, "%s", path);
}

int krait_rules_leave_out(struct krait_buf *notes, const struct krait_interval_rule *rule, const char *at,
                          struct krait_err *err)
{
    krait_fmt_safe(notes, at);
    krait_buf_str(notes, ": ");
    if (!rule->given[0]) {
        krait_buf_str(notes, "'");
        krait_fmt_safe(notes, rule->name);
        krait_buf_str(notes, "' is left out: ");
    }
    krait_fmt_safe(notes, err->text);
    krait_buf_char(notes, '\n');
    return notes->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}
