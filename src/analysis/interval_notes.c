/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user is told of a search that found less than was asked for: names that no span, call or field has.
 */
#include "analysis/interval_search.h"
#include "base/fmt.h"
#include "base/suggest.h"

#include <string.h>

void krait_intervals_note_no_event(struct krait_buf *notes, const struct krait_interval_rule *rule,
                                   const char *end)
{
    krait_buf_fmt(notes, "no event matches %s'", end);
    krait_fmt_safe(notes, rule->name);
    krait_buf_char(notes, '\'');
}

/* -- keys that nothing has -- */

static void note_key(struct krait_buf *notes, const struct krait_interval_rule *of,
                     const struct krait_sought *sought)
{
    static const char *const parts[] = { "$thread", "$process", "$task" }; /* what spans and calls have */
    bool is_call = of->kind == KRAIT_RULE_CALLS;
    struct krait_suggest suggest = KRAIT_SUGGEST(of->key, strlen(of->key));
    for (uint32_t i = 0; i < sought->fields.len; i++)
        krait_suggest_try(&suggest, sought->fields.texts[i]);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++)
        krait_suggest_try(&suggest, parts[i]);
    if (of->is_of_many && !suggest.best)
        return;
    krait_fmt_safe(notes, of->key_at);
    krait_buf_fmt(notes, "there is no %s '", is_call ? "argument" : "field");
    krait_fmt_safe(notes, of->key);
    krait_buf_fmt(notes, "' in its %s", is_call ? "calls" : "spans");
    krait_suggest_say(notes, suggest.best);
    krait_buf_char(notes, '\n');
}

/* Whose calls have no recorded arguments, or none where krait looks. */
static void note_no_arguments(const struct krait_search *search, const struct krait_interval_rule *of)
{
    struct krait_buf *notes = search->options->notes;
    const char *scope = search->has_args && search->options->scope ? search->options->scope : "";
    krait_fmt_safe(notes, of->key_at);
    krait_buf_fmt(notes, "no call%s%s has recorded arguments, and so a key%s\n",
                  search->has_args ? " of it" : "", scope,
                  *scope ? "" : "; krait record --args records them");
}

/* A line for each rule whose spans or calls lack the key that was asked for. */
static void note_keys(const struct krait_search *search)
{
    struct krait_buf *notes = search->options->notes;
    for (uint32_t i = 0; notes && i < search->options->rule_count; i++) {
        const struct krait_interval_rule *of = &search->options->rules[i];
        const struct krait_sought *sought = &search->sought[i];
        if (!of->key || !of->key_at || of->is_hidden || sought->is_left_out || sought->with_key)
            continue;
        if (sought->without_key)
            note_key(notes, of, sought);
        else if (of->kind == KRAIT_RULE_CALLS && !krait_trigger_is_part(of->key))
            note_no_arguments(search, of);
    }
}

/* -- events that do not say their task -- */

static bool names_task(const struct krait_trigger *trigger)
{
    bool any = false;
    for (uint32_t i = 0; i < trigger->key.count; i++)
        any |= trigger->key.pieces[i].is_part && strcmp(trigger->key.pieces[i].text, "task") == 0;
    return any;
}

static uint64_t count_without_key(const struct krait_intervals *intervals, uint32_t rule)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < intervals->row_count; i++)
        count += intervals->rows[i].rule == rule ? intervals->rows[i].no_key : 0;
    return count;
}

/* Log records have a field `task`, and so the name is known; marks have none. */
static void note_tasks(const struct krait_search *search)
{
    struct krait_buf *notes = search->options->notes;
    for (uint32_t i = 0; notes && search->trace->task_count && i < search->options->rule_count; i++) {
        const struct krait_interval_rule *of = &search->options->rules[i];
        bool asks = false;
        char events[KRAIT_FMT_SIZE];
        for (uint32_t t = 0; t < of->trigger_count; t++)
            asks |= names_task(&of->triggers[t]);
        uint64_t count = asks && !of->is_hidden ? count_without_key(search->intervals, i) : 0;
        if (!count)
            continue;
        krait_buf_char(notes, '\'');
        krait_fmt_safe(notes, of->name);
        krait_buf_fmt(notes, "': %s %s no field 'task'; did you mean '$task'?\n",
                      krait_fmt_counted(events, count, "event"), count == 1 ? "has" : "have");
    }
}

/* -- calls of which steps alone are known -- */

static void note_unfollowed(const struct krait_search *search)
{
    struct krait_buf *notes = search->options->notes;
    for (uint32_t i = 0; notes && i < search->options->rule_count; i++) {
        const struct krait_interval_rule *of = &search->options->rules[i];
        char calls[KRAIT_FMT_SIZE];
        if (!search->sought[i].unfollowed || of->is_hidden || !of->name) /* --within takes steps then */
            continue;
        krait_fmt_safe(notes, of->declared_at ? of->declared_at : of->name);
        krait_buf_fmt(notes, ": which steps %s of '",
                      krait_fmt_counted(calls, search->sought[i].unfollowed, "call"));
        krait_fmt_safe(notes, of->name);
        krait_buf_str(
            notes, "' had is not known: no task ran them, or events are missing; --steps takes each step\n");
    }
}

/* -- names that nothing has -- */

const char *krait_intervals_near_span(const struct krait_intervals *intervals, struct krait_suggest *suggest)
{
    for (uint32_t i = 0; i < intervals->spans.len; i++)
        krait_suggest_try(suggest, intervals->spans.texts[i]);
    return suggest->best;
}

/* "no span is called 'Requst' in that time; did you mean 'Request'?" */
static void note_name(const struct krait_search *search, const struct krait_interval_rule *of,
                      const char *near)
{
    struct krait_buf *notes = search->options->notes;
    const char *asked = krait_match_pattern(of->match), *scope = search->options->scope;
    if (!of->given[0]) {
        krait_fmt_safe(notes, of->declared_at);
        krait_buf_str(notes, ": '");
        krait_fmt_safe(notes, of->name);
        krait_buf_str(notes, "' finds nothing: ");
    }
    krait_buf_str(notes, of->kind == KRAIT_RULE_SPANS ? "no span is called '" : "no call of '");
    krait_fmt_safe(notes, asked);
    krait_buf_fmt(notes, "'%s", scope ? scope : "");
    krait_suggest_say(notes, near);
    krait_buf_char(notes, '\n');
}

/* A line for each rule of spans that found none, and of calls of a function that was not called. */
static void note_names(const struct krait_search *search)
{
    for (uint32_t i = 0; search->options->notes && i < search->options->rule_count; i++) {
        const struct krait_interval_rule *of = &search->options->rules[i];
        bool is_span = of->kind == KRAIT_RULE_SPANS;
        bool has_argument = !is_span && of->key && !krait_trigger_is_part(of->key);
        if (!of->declared_at || !of->match || of->is_hidden || search->sought[i].is_left_out ||
            has_argument || krait_intervals_has_found(search->intervals, i))
            continue;
        const char *asked = krait_match_pattern(of->match);
        struct krait_suggest suggest = KRAIT_SUGGEST(asked, strlen(asked));
        const char *near = is_span ? krait_intervals_near_span(search->intervals, &suggest) : NULL;
        note_name(search, of, near);
    }
}

void krait_search_note(const struct krait_search *search)
{
    note_keys(search);
    note_tasks(search);
    note_unfollowed(search);
    note_names(search);
}
