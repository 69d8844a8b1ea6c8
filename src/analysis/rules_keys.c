/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rules_keys.h"

#include "base/fmt.h"

const struct krait_trigger *krait_rules_without_key(const struct krait_interval_rule *rule,
                                                    const struct krait_trigger **keyed)
{
    const struct krait_trigger *without = NULL;
    *keyed = NULL;
    for (uint32_t i = 0; i < rule->trigger_count; i++) {
        const struct krait_trigger **first = krait_trigger_is_keyed(&rule->triggers[i]) ? keyed : &without;
        *first = *first ? *first : &rule->triggers[i];
    }
    return *keyed ? without : NULL;
}

const char *krait_rules_without_key_then(const struct krait_interval_rule *rule)
{
    return rule->kind == KRAIT_RULE_PAIRS    ? ", and pairs events as without a key"
           : rule->kind == KRAIT_RULE_STATES ? ", and each thread has a state of its own"
                                             : "";
}

/* The table that has a trigger, below the rule's own; NULL: that one has it. */
static const char *table_of(const struct krait_trigger *trigger)
{
    return trigger->role == KRAIT_TRIGGER_START   ? "start"
           : trigger->role == KRAIT_TRIGGER_STOP  ? "stop"
           : trigger->role == KRAIT_TRIGGER_AFTER ? "after"
                                                  : NULL;
}

/* "own.toml:3: interval.order.stop: it has no group 'key', as 'start' has" */
static void put_place(struct krait_buf *line, const struct krait_interval_rule *rule, const char *path,
                      const struct krait_trigger *without, const struct krait_trigger *keyed)
{
    const char *table = table_of(without), *other = table_of(keyed);
    const char *section = rule->kind == KRAIT_RULE_STATES   ? "state"
                          : rule->kind == KRAIT_RULE_SIGNAL ? "signal"
                                                            : "interval";
    krait_buf_fmt(line, "%s:%u: %s.%s%s%s: it %s, as ", path, without->line, section, rule->name,
                  table ? "." : "", table ? table : "",
                  keyed->key.count ? "needs a key" : "has no group 'key'");
    if (other)
        krait_buf_fmt(line, "'%s' has", other);
    else
        krait_buf_fmt(line, "the event in line %u has", keyed->line);
}

int krait_rules_check_keys(struct krait_rules *rules, const struct krait_interval_rule *rule,
                           const char *path, struct krait_err *err)
{
    const struct krait_trigger *keyed, *without = krait_rules_without_key(rule, &keyed);
    KRAIT_AUTO_BUF line = { 0 };
    if (!without)
        return 0;
    put_place(&line, rule, path, without, keyed);
    if (!line.failed && keyed->key.count)
        return krait_err_set(err, -EBADMSG, "%s", line.data);
    krait_buf_fmt(&line, "; krait ignores that key%s", krait_rules_without_key_then(rule));
    if (!line.failed)
        krait_fmt_safe(&rules->notes, line.data);
    krait_buf_char(&rules->notes, '\n');
    return line.failed || rules->notes.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}
