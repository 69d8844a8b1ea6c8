/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rules_unmet.h"

#include "base/fmt.h"
#include "trace/known_events.h"

#include <string.h>

struct check {
    struct krait_rules *rules;
    struct krait_known_events known;
    bool *is_used; /* by rule */
    struct krait_buf *notes;
};

static void check_done(struct check *check)
{
    krait_known_events_done(&check->known);
    free(check->is_used);
}

/* -- what is used -- */

/* Rules that are shown, those that they are within, and the patterns whose segments they are. */
static void find_used(struct check *check, bool (*is_shown)(const void *ctx, uint32_t rule), const void *ctx)
{
    const struct krait_interval_rule *rules = check->rules->items;
    for (uint32_t i = 0; i < check->rules->count; i++) {
        uint32_t at = is_shown(ctx, i) ? i + 1 : 0;
        for (; at && !check->is_used[at - 1]; at = rules[at - 1].within)
            check->is_used[at - 1] = true;
    }
    for (uint32_t i = 0; i < check->rules->count; i++)
        check->is_used[i] |= rules[i].segments && check->is_used[rules[i].segments - 1];
}

/* -- whether the trace has it -- */

/* Also of a rule of messages alone, whose events may be any. */
static bool takes_any(const struct check *check, const struct krait_trigger *trigger)
{
    for (uint32_t i = 0; i < check->known.count; i++) {
        if (krait_trigger_may(trigger, check->known.items[i].name))
            return true;
    }
    return false;
}

static bool has_event(const struct check *check, const char *name)
{
    const struct krait_trigger alone = { .events = &name, .event_count = 1 };
    return takes_any(check, &alone);
}

/* A group of the trigger's pattern is none of the event's. */
static bool has_field(const struct check *check, const struct krait_rule_name *name)
{
    const struct krait_trigger *trigger = name->trigger;
    if (trigger->message && krait_regex_group(trigger->message, name->name))
        return true;
    for (uint32_t i = 0; i < check->known.count; i++) {
        const struct krait_known_event *event = &check->known.items[i];
        if (krait_trigger_may(trigger, event->name) &&
            krait_known_event_has(&check->known, event, name->name))
            return true;
    }
    return false;
}

/* -- what is meant -- */

/* Whether it is beside the name in an array, or elsewhere in a rule for many traces: then it is not what was meant. */
static bool is_beside(const struct check *check, const struct krait_rule_name *name, const char *event)
{
    for (uint32_t i = 0; i < check->rules->named_count; i++) {
        const struct krait_rule_name *other = &check->rules->named[i];
        bool is_near = name->is_of_many ? other->rule == name->rule : other->trigger == name->trigger;
        if (is_near && !other->is_field && krait_trigger_may(other->trigger, event))
            return true;
    }
    return false;
}

/* A name without what stands before its colon is as near as can be. */
static const char *nearest_event(const struct check *check, const struct krait_rule_name *name)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name->name, strlen(name->name));
    for (uint32_t i = 0; i < check->known.count; i++) {
        const char *event = check->known.items[i].name, *colon = strrchr(event, ':');
        if (is_beside(check, name, event))
            continue;
        if (colon && strcmp(colon + 1, name->name) == 0)
            return event;
        krait_suggest_try(&suggest, event);
    }
    return suggest.best;
}

/* A group of the trigger's pattern, or a field that is nearer. */
static const char *nearest_field(const struct check *check, const struct krait_rule_name *name)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name->name, strlen(name->name));
    const struct krait_regex *message = name->trigger->message;
    const char *group;
    for (uint32_t i = 0; message && (group = krait_regex_name(message, i)); i++)
        krait_suggest_try(&suggest, group);
    for (size_t i = 0; (group = krait_trigger_part(i)); i++)
        krait_suggest_try(&suggest, group);
    for (uint32_t i = 0; i < check->known.count; i++) {
        if (krait_trigger_may(name->trigger, check->known.items[i].name))
            krait_known_event_suggest(&check->known, &check->known.items[i], &suggest);
    }
    return suggest.best;
}

/* -- telling -- */

/* Once, where a start and its stop have one key. */
static void tell(struct check *check, const struct krait_rule_name *name, const char *near)
{
    struct krait_buf *notes = check->notes;
    KRAIT_AUTO_BUF line = { 0 };
    krait_fmt_safe(&line, name->at);
    krait_buf_fmt(&line, "there is no %s '", name->is_field ? "field" : "event");
    krait_fmt_safe(&line, name->name);
    krait_buf_str(&line, name->is_field ? "' in its events" : "' in the trace");
    krait_suggest_say(&line, near);
    krait_buf_char(&line, '\n');
    notes->failed |= line.failed;
    if (!notes->failed && !(notes->len && memmem(notes->data, notes->len, line.data, line.len)))
        krait_buf_add(notes, line.data, line.len);
    check->rules->items[name->rule].is_unmet = true;
}

static void check_name(struct check *check, const struct krait_rule_name *name)
{
    bool takes = takes_any(check, name->trigger);
    if (name->is_field ? !takes || has_field(check, name) : has_event(check, name->name))
        return;
    const char *near = name->is_field ? nearest_field(check, name) : nearest_event(check, name);
    bool may_lack = name->is_of_many || (!name->is_field && takes);
    if (near || !may_lack)
        tell(check, name, near);
}

int krait_rules_unmet(struct krait_rules *rules, const struct krait_trace *trace,
                      bool (*is_shown)(const void *ctx, uint32_t rule), const void *ctx,
                      struct krait_buf *notes, struct krait_err *err)
{
    KRAIT_CLEANUP(check_done) struct check check = { .rules = rules, .notes = notes };
    if (!rules->named_count)
        return 0;
    check.is_used = calloc((size_t)rules->count + 1, sizeof(*check.is_used));
    if (!check.is_used || krait_known_events_read(&check.known, trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    find_used(&check, is_shown, ctx);
    for (uint32_t i = 0; i < rules->named_count && !check.known.is_partial; i++) {
        if (check.is_used[rules->named[i].rule])
            check_name(&check, &rules->named[i]);
    }
    return notes->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}
