/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals`: why there are no intervals.
 */
#include "base/fmt.h"
#include "cmd/intervals.h"
#include "cmd/unmatched.h"
#include "cmd/unpaired.h"

static void note_no_match(struct intervals *intervals, const struct intervals_of *of, const char *option,
                          const char *pattern)
{
    char messages[KRAIT_FMT_SIZE];
    krait_buf_fmt(&intervals->notes, "none of %s matches --%s '",
                  krait_fmt_counted(messages, of->found.messages, "message"), option);
    krait_fmt_safe(&intervals->notes, pattern);
    krait_buf_fmt(&intervals->notes, "'%s", krait_select_scope(&intervals->options->select));
    size_t end = intervals->notes.len;
    krait_unmatched_say(&intervals->notes, of->trace, &intervals->options->select,
                        krait_select_range(&intervals->options->select, of->trace), pattern);
    krait_buf_str(&intervals->notes,
                  intervals->notes.len > end
                      ? "\n"
                      : "; krait report --by mark counts what there is, krait cat shows it\n");
}

static struct krait_unpaired unpaired_of(const struct intervals *intervals, const struct intervals_of *of,
                                         uint32_t rule)
{
    const struct krait_select *select = &intervals->options->select;
    return (struct krait_unpaired){ .trace = of->trace,
                                    .select = select,
                                    .range = krait_select_range(select, of->trace),
                                    .rule = &intervals->rules.items[rule],
                                    .found = &of->found,
                                    .index = rule };
}

/* Rules of files that found nothing, or one end alone. Those of spans and calls are told elsewhere, with their names. */
static void note_declared(struct intervals *intervals, const struct intervals_of *of)
{
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        if (rule->given[0] || rule->match || rule->is_hidden || rule->is_unmet)
            continue;
        if (krait_intervals_has_found(&of->found, i)) {
            const struct krait_unpaired pair = unpaired_of(intervals, of, i);
            krait_unpaired_say_end(&intervals->notes, &pair);
            continue;
        }
        krait_intervals_note_no_event(&intervals->notes, rule, "");
        krait_buf_fmt(&intervals->notes, "%s\n", krait_select_scope(&intervals->options->select));
    }
}

/* Starts and stops of which none belong together. */
static bool note_unpaired(struct intervals *intervals, const struct intervals_of *of, uint32_t rule)
{
    const struct krait_unpaired unpaired = unpaired_of(intervals, of, rule);
    if (!krait_is_unpaired(&unpaired))
        return false;
    intervals->notes.failed |= krait_unpaired_say(&intervals->notes, &unpaired) != 0;
    krait_buf_char(&intervals->notes, '\n');
    return true;
}

/* Whether the functions at both ends are there. Where calls are read it is told if one is not; then the pair has found
 * nothing. */
static bool has_functions(const struct intervals_of *of, const struct krait_interval_rule *pair)
{
    struct krait_err ignored;
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)of->trace->func_count + 1, sizeof(*meant));
    bool found = meant;
    for (uint32_t i = 0; i < pair->trigger_count && found; i++)
        found =
            !pair->triggers[i].call || !krait_match_mark(meant, of->trace, pair->triggers[i].call, &ignored);
    return found;
}

static void note_no_call(struct intervals *intervals, const struct krait_trigger *trigger)
{
    krait_buf_fmt(&intervals->notes, "%s '", trigger->call_at);
    krait_fmt_safe(&intervals->notes, krait_match_pattern(trigger->call));
    krait_buf_fmt(&intervals->notes, "': no call of it %s%s\n", trigger->returns ? "returns" : "begins",
                  krait_select_scope(&intervals->options->select));
}

/* A start that no message matches, or a stop; or that no call is. */
static void note_pair(struct intervals *intervals, const struct intervals_of *of, uint32_t rule)
{
    const struct krait_pair_counts counts = krait_pair_count(&of->found, rule);
    const struct krait_interval_rule *pair = &intervals->rules.items[rule];
    bool has_starts = counts.starts;
    const struct krait_trigger *missing = &pair->triggers[has_starts];
    if (counts.no_key || (has_starts && counts.stops) || !has_functions(of, pair))
        return;
    if (missing->call)
        note_no_call(intervals, missing);
    else
        note_no_match(intervals, of, has_starts ? "stop" : "start", pair->given[has_starts]);
}

void krait_intervals_note_nothing(struct intervals *intervals, const struct intervals_of *of)
{
    note_declared(intervals, of);
    for (uint32_t i = 0; i < intervals->rules.count; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        if (rule->is_hidden || note_unpaired(intervals, of, i) || !rule->given[0] || rule->match)
            continue;
        if (rule->kind == KRAIT_RULE_PAIRS)
            note_pair(intervals, of, i);
        else if (!krait_intervals_has_found(&of->found, i))
            note_no_match(intervals, of, rule->kind == KRAIT_RULE_STATES ? "state" : "signal",
                          rule->given[0]);
    }
}

/* The function whose calls an option asks for; NULL: it asks for none. */
static const struct krait_match *calls_of(const struct krait_interval_rule *rule, const char **option)
{
    *option = "--call";
    if (rule->kind == KRAIT_RULE_CALLS)
        return rule->match;
    for (uint32_t i = 0; rule->kind == KRAIT_RULE_PAIRS && i < rule->trigger_count; i++) {
        *option = rule->triggers[i].call_at;
        if (rule->triggers[i].call)
            return rule->triggers[i].call;
    }
    return NULL;
}

int krait_intervals_refuse_samples(const struct intervals *intervals, const struct intervals_of *of)
{
    for (uint32_t i = 0; i < intervals->rules.count && of->trace->samples.rate; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        const char *option;
        const struct krait_match *match = rule->given[0] ? calls_of(rule, &option) : NULL;
        if (match && !krait_pair_count(&of->found, i).intervals)
            return krait_err_set(intervals->err, -ENODATA,
                                 "%s '%s': samples have no calls; record without --sample", option,
                                 krait_match_pattern(match));
    }
    return 0;
}
