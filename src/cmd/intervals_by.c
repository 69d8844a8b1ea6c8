/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals --by`: what the rows are. `key` makes a row for each key. Other words are fields, which name the rows, while
 * the key still tells what belongs together:
 *
 *   --start '^work:submit' --stop '^work:start' --key id --by function
 */
#include "cmd/intervals.h"

#include <string.h>

static bool is_key(const struct intervals *intervals)
{
    return strcmp(intervals->options->by, "key") == 0;
}

/* -- a row for each key -- */

static int by_key(struct intervals *intervals, struct krait_err *err)
{
    bool any = false, any_option = false;
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        struct krait_interval_rule *rule = &intervals->rules.items[i];
        bool has_rows = rule->by_key || rule->kind == KRAIT_RULE_STATES;
        any |= !rule->is_hidden && (has_rows || rule->key || krait_interval_rule_is_keyed(rule));
        any_option |= rule->given[0] != NULL;
        rule->by_key = true;
    }
    if (any)
        return 0;
    if (!any_option)
        return krait_err_set(err, -EINVAL, "--by key: %s no key",
                             intervals->options->select.analyses.count > 1 ? "the files declare"
                                                                           : "the file declares");
    return krait_err_set(
        err, -EINVAL, "--by key: there is no key; give --key FIELD%s",
        intervals->options->starts.count
            ? ", or a group (?P<key>...) in both --start and --stop"
            : ": an argument that was recorded, a field of the spans, or $thread; each --call "
              "and --span has a row anyway");
}

/* -- a row for each text of fields -- */

/* "function,pool" as parts with text between them. Returns 0 or -ENOMEM. */
static int read_fields(struct intervals *intervals, struct krait_template *template)
{
    struct krait_arena *arena = &intervals->rules.arena;
    const char *at = intervals->options->by;
    struct krait_template_piece *pieces = krait_arena_alloc(arena, 2 * (strlen(at) + 1) * sizeof(*pieces));
    uint32_t n = 0;
    for (bool more = pieces; more; at++) {
        size_t len = strcspn(at, ",");
        if (n)
            pieces[n++] = (struct krait_template_piece){ KRAIT_TEMPLATE_BETWEEN, false };
        pieces[n] = (struct krait_template_piece){ krait_arena_strndup(arena, at, len), true };
        if (!pieces[n++].text)
            return -ENOMEM;
        at += len;
        more = *at == ',';
    }
    *template = (struct krait_template){ pieces, n };
    return pieces ? 0 : -ENOMEM;
}

/* A field that the events of a start may not have is told once the trace is known. */
static int keep_fields(struct intervals *intervals, uint32_t rule, const struct krait_trigger *trigger)
{
    const struct krait_template *by = &trigger->by;
    int rc = 0;
    for (uint32_t i = 0; i < by->count && trigger->role == KRAIT_TRIGGER_START && !rc; i++) {
        const struct krait_rule_name name = {
            .at = "--by: ", .name = by->pieces[i].text, .trigger = trigger, .rule = rule, .is_field = true
        };
        if (by->pieces[i].is_part && !krait_trigger_is_part(name.name))
            rc = krait_rules_name(&intervals->rules, &name);
    }
    return rc;
}

static int name_pairs(struct intervals *intervals, uint32_t i, const struct krait_template *by)
{
    struct krait_interval_rule *rule = &intervals->rules.items[i];
    int rc = 0;
    for (uint32_t t = 0; t < rule->trigger_count && !rc; t++) {
        rule->triggers[t].by = *by;
        rc = keep_fields(intervals, i, &rule->triggers[t]);
    }
    rule->by_key = !intervals->options->list; /* which has a row for each interval */
    return rc;
}

static int by_fields(struct intervals *intervals, struct krait_err *err)
{
    const char *by = intervals->options->by;
    struct krait_template template;
    bool any = false;
    int rc = by[strspn(by, ", ")] ? read_fields(intervals, &template)
                                  : krait_err_set(err, -EINVAL, "--by: '%s' names no field", by);
    for (uint32_t i = 0; i < intervals->rules.count && !rc; i++) {
        struct krait_interval_rule *rule = &intervals->rules.items[i];
        bool is_pair = rule->kind == KRAIT_RULE_PAIRS;
        if (!rule->given[0] || (!is_pair && rule->kind != KRAIT_RULE_CALLS && rule->kind != KRAIT_RULE_SPANS))
            continue;
        any = true;
        if (is_pair) {
            rc = name_pairs(intervals, i, &template);
            continue;
        }
        if (strchr(by, ','))
            return krait_err_set(err, -EINVAL, "--by '%s': --call and --span take one field", by);
        rule->key = by;
        rule->key_at = "--by: ";
        rule->by_key = !intervals->options->list;
    }
    if (!rc && !any)
        rc = krait_err_set(err, -EINVAL,
                           "--by '%s' is for --start and --stop, --call and --span; here: --by key", by);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory") : rc;
}

int krait_intervals_by(struct intervals *intervals, struct krait_err *err)
{
    if (!intervals->options->by)
        return 0;
    return is_key(intervals) ? by_key(intervals, err) : by_fields(intervals, err);
}

/* Whether all that is shown has the fields of --by; files have keys of their own. */
static bool has_fields(const struct intervals *intervals)
{
    bool all = intervals->options->by && !is_key(intervals);
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        bool is_row = !rule->is_hidden && rule->kind != KRAIT_RULE_SIGNAL;
        all &= !is_row || (rule->given[0] && rule->kind != KRAIT_RULE_STATES);
    }
    return all;
}

void krait_intervals_head_key(struct intervals *intervals, struct krait_sheet_column *columns, uint32_t count)
{
    for (uint32_t i = 0; has_fields(intervals) && i < count; i++) {
        if (strcmp(columns[i].key, "key") == 0)
            columns[i].column.title = intervals->options->by;
    }
}
