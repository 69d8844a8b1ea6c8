/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/unpaired.h"

#include "analysis/regex.h"
#include "base/fmt.h"
#include "cmd/unmatched.h"

#include <string.h>

struct krait_pair_counts krait_pair_count(const struct krait_intervals *found, uint32_t rule)
{
    struct krait_pair_counts counts = { 0 };
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct krait_interval_row *row = &found->rows[i];
        counts.starts += row->rule == rule ? row->starts : 0;
        counts.stops += row->rule == rule ? row->stops : 0;
        counts.no_key += row->rule == rule ? row->no_key : 0;
        counts.intervals += row->rule == rule ? row->count : 0;
    }
    return counts;
}

bool krait_is_unpaired(const struct krait_unpaired *of)
{
    const struct krait_pair_counts counts = krait_pair_count(of->found, of->index);
    return of->rule->kind == KRAIT_RULE_PAIRS && !of->rule->within && counts.starts && counts.stops &&
           !counts.intervals;
}

/* -- patterns that would pair them -- */

/* What may stand beside a pattern: mostly a number, or a word. %s is the pattern. */
static const char *const beside[] = { "%s (?P<key>\\d+)", "(?P<key>\\d+) %s", "%s\\D*(?P<key>\\d+)",
                                      "%s\\W+(?P<key>\\w+)" };

static void put_pattern(struct krait_buf *to, const char *form, const char *pattern)
{
    bool is_choice = strchr(pattern, '|');
    const char *at = strstr(form, "%s");
    krait_buf_add(to, form, (size_t)(at - form));
    krait_buf_fmt(to, is_choice ? "(?:%s)%s" : "%s%s", pattern, at + strlen("%s"));
}

/* How many intervals there are between two patterns, counted as the rule's are; 0 also if one is no pattern. */
static uint64_t try_patterns(const struct krait_unpaired *of, const char *start, const char *stop)
{
    struct krait_trigger triggers[] = { { .role = KRAIT_TRIGGER_START }, { .role = KRAIT_TRIGGER_STOP } };
    const struct krait_interval_rule rule = { .kind = KRAIT_RULE_PAIRS,
                                              .triggers = triggers,
                                              .trigger_count = KRAIT_ARRAY_LEN(triggers) };
    const struct krait_interval_options options = {
        .rules = &rule,
        .rule_count = 1,
        .range = of->range,
        .takes = (bool (*)(void *, const struct krait_trace *, const struct krait_track *))krait_select_place,
        .ctx = (void *)of->select,
    };
    struct krait_intervals found = { 0 };
    struct krait_err ignored;
    uint64_t intervals = 0;
    if (!krait_regex_new(&triggers[0].message, start, &ignored) &&
        !krait_regex_new(&triggers[1].message, stop, &ignored) &&
        !krait_intervals_find(&found, of->trace, &options, NULL, 0, &ignored))
        intervals = krait_pair_count(&found, 0).intervals;
    krait_intervals_done(&found);
    krait_regex_free(triggers[0].message);
    krait_regex_free(triggers[1].message);
    return intervals;
}

/* The same patterns with a key. False: none of those that are tried pairs anything. */
static bool find_keyed(const struct krait_unpaired *of, struct krait_buf *start, struct krait_buf *stop)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(beside); i++) {
        krait_buf_clear(start);
        krait_buf_clear(stop);
        put_pattern(start, beside[i], of->rule->given[0]);
        put_pattern(stop, beside[i], of->rule->given[1]);
        if (!start->failed && !stop->failed && try_patterns(of, start->data, stop->data))
            return true;
    }
    return false;
}

/* -- in words -- */

static void put_patterns(struct krait_buf *to, const struct krait_unpaired *of, const char *start,
                         const char *stop)
{
    krait_buf_str(to, of->is_within ? "--within '" : "--start '");
    krait_fmt_safe(to, start);
    krait_buf_str(to, of->is_within ? " .. " : "' --stop '");
    krait_fmt_safe(to, stop);
    krait_buf_fmt(to, "%s%s'", of->which ? ":" : "", of->which ? of->which : "");
}

/* "6 messages match 'a'", "6 calls of 'f' return", or of a file "6 events begin it". */
static void put_end(struct krait_buf *to, const struct krait_unpaired *of, uint32_t end, uint64_t events)
{
    const struct krait_trigger *trigger = &of->rule->triggers[end];
    const char *given = of->rule->given[end];
    char counted[KRAIT_FMT_SIZE];
    bool is_one = events == 1;
    if (!given) {
        krait_buf_fmt(to, "%s %s%s it", krait_fmt_counted(counted, events, "event"), end ? "end" : "begin",
                      is_one ? "s" : "");
        return;
    }
    krait_buf_str(to, krait_fmt_counted(counted, events, trigger->call ? "call" : "message"));
    krait_buf_str(to, trigger->call ? " of '" : is_one ? " matches '" : " match '");
    krait_fmt_safe(to, given);
    krait_buf_str(to, "'");
    if (trigger->call)
        krait_buf_fmt(to, " %s%s", trigger->returns ? "return" : "begin", is_one ? "s" : "");
}

/* What to do if threads tell them apart: no start is before a stop in any. */
static int put_advice(struct krait_buf *to, const struct krait_unpaired *of)
{
    const struct krait_interval_rule *rule = of->rule;
    bool has_messages = rule->triggers[0].message && rule->triggers[1].message;
    bool has_patterns = has_messages && rule->given[0] && rule->given[1];
    KRAIT_AUTO_BUF start = { 0 };
    KRAIT_AUTO_BUF stop = { 0 };
    bool is_turned = has_patterns && try_patterns(of, rule->given[1], rule->given[0]);
    krait_buf_str(to, is_turned      ? ", but no start is before a stop in the same thread"
                      : has_patterns ? ", but never in one thread"
                                     : ", but no start is before a stop in one thread");
    if (has_patterns && find_keyed(of, &start, &stop)) {
        krait_buf_str(to, "; a group named key pairs them in any thread: ");
        put_patterns(to, of, start.data, stop.data);
    } else if (is_turned) {
        krait_buf_str(to, "; did you mean ");
        put_patterns(to, of, rule->given[1], rule->given[0]);
        krait_buf_char(to, '?');
    } else if (has_messages) {
        krait_buf_str(to, "; a group (?P<key>...) in both patterns pairs those of equal text in any thread");
    } else {
        krait_buf_fmt(to,
                      "; if a field of both events tells which belong together, %s pairs them in any thread",
                      rule->given[0] ? "--key FIELD" : "key = 'FIELD' in the file");
    }
    return start.failed || stop.failed ? -ENOMEM : 0;
}

int krait_unpaired_say(struct krait_buf *to, const struct krait_unpaired *of)
{
    const struct krait_pair_counts counts = krait_pair_count(of->found, of->index);
    if (!of->rule->given[0]) {
        krait_buf_char(to, '\'');
        krait_fmt_safe(to, of->rule->name);
        krait_buf_str(to, "': ");
    }
    put_end(to, of, 0, counts.starts);
    krait_buf_str(to, ", and ");
    put_end(to, of, 1, counts.stops);
    if (!krait_interval_rule_is_keyed(of->rule))
        return put_advice(to, of);
    krait_buf_str(to, ", but no start is before a stop with the same key");
    return 0;
}

void krait_unpaired_say_end(struct krait_buf *to, const struct krait_unpaired *of)
{
    const struct krait_pair_counts counts = krait_pair_count(of->found, of->index);
    enum krait_trigger_role missing = counts.starts ? KRAIT_TRIGGER_STOP : KRAIT_TRIGGER_START;
    if (of->rule->kind != KRAIT_RULE_PAIRS || counts.no_key || !counts.starts == !counts.stops)
        return;
    krait_intervals_note_no_event(to, of->rule, counts.starts ? "the stop of " : "the start of ");
    krait_buf_str(to, krait_select_scope(of->select));
    for (uint32_t i = 0; i < of->rule->trigger_count; i++) {
        const struct krait_trigger *trigger = &of->rule->triggers[i];
        if (trigger->role == missing && trigger->message)
            krait_unmatched_say(to, of->trace, of->select, of->range, krait_regex_pattern(trigger->message));
    }
    krait_buf_char(to, '\n');
}
