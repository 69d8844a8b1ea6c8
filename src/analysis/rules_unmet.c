/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/rules_unmet.h"

#include "base/fmt.h"
#include "trace/fields.h"
#include "trace/importer.h"
#include "trace/known_events.h"

#include <string.h>

enum {
    MOST_LOOKED = 1000 /* events whose added fields are near a name that is looked for */
};

struct check {
    struct krait_rules *rules;
    const struct krait_trace *trace;
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

/* Rules that are shown, those that they are within, and the providers that tell of their intervals. */
static void find_used(struct check *check, bool (*is_shown)(const void *ctx, uint32_t rule), const void *ctx)
{
    const struct krait_interval_rule *rules = check->rules->items;
    for (uint32_t i = 0; i < check->rules->count; i++) {
        uint32_t at = is_shown(ctx, i) ? i + 1 : 0;
        for (; at && !check->is_used[at - 1]; at = rules[at - 1].within)
            check->is_used[at - 1] = true;
    }
    for (uint32_t i = 0; i < check->rules->count; i++) {
        if (rules[i].told_by && check->is_used[i])
            check->is_used[rules[i].told_by - 1] = true;
    }
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

static bool may_take(const struct krait_trigger *trigger, const struct krait_known_event *event)
{
    return (trigger->event_count || !event->is_by_name) && krait_trigger_may(trigger, event->name);
}

/* A group of the trigger's pattern is none of the event's. */
static bool has_field(const struct check *check, const struct krait_rule_name *name)
{
    const struct krait_trigger *trigger = name->trigger;
    if (trigger->message && krait_regex_group(trigger->message, name->name))
        return true;
    for (uint32_t i = 0; i < check->known.count; i++) {
        const struct krait_known_event *event = &check->known.items[i];
        if (may_take(trigger, event) && krait_known_event_has(&check->known, event, name->name))
            return true;
    }
    return false;
}

/* -- what programs added to events, and arguments of calls -- */

/* A name that is looked for in what programs added to their events, or in arguments, and the names that are there. */
struct adding {
    const struct krait_trace *trace;
    const struct krait_rule_name *name;
    struct krait_strtab names;
    struct krait_strtab labels; /* of the functions of a call */
    uint32_t looked;
};

static void adding_done(struct adding *adding)
{
    krait_strtab_done(&adding->names);
    krait_strtab_done(&adding->labels);
}

enum { HAS_NAME = 1 };

static int look_in_json(struct adding *adding, const char *json, size_t n)
{
    KRAIT_AUTO_BUF value = { 0 };
    if (krait_fields_get_json(json, n, adding->name->name, &value))
        return HAS_NAME;
    return adding->looked++ < MOST_LOOKED ? krait_fields_names_json(&adding->names, json, n) : 0;
}

static int look_in(struct adding *adding, const char *fields)
{
    KRAIT_AUTO_BUF own = { 0 };
    size_t n;
    const char *json = krait_fields_added((struct krait_fields){ fields, fields + strlen(fields) }, &own, &n);
    return json ? look_in_json(adding, json, n) : 0;
}

static int look_in_batch(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct adding *adding = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        if (krait_trigger_may(adding->name->trigger, krait_track_text(adding->trace, batch->name[i])))
            rc = look_in(adding, batch->text[i]);
    }
    return rc;
}

static int look_in_arguments(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct adding *adding = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        const char *name = krait_track_text(adding->trace, batch->name[i]);
        if (krait_strtab_find(&adding->labels, name, strlen(name)) != KRAIT_NO_ID)
            rc = look_in_json(adding, batch->text[i], strlen(batch->text[i]));
    }
    return rc;
}

/* Only the events themselves tell what is added to them. Returns HAS_NAME, 0 or -ENOMEM; damage is told where they are read. */
static int look_for_added(struct adding *adding)
{
    bool is_call = adding->name->trigger->call;
    uint8_t importer = is_call ? KRAIT_IMPORTER_krait_args : KRAIT_IMPORTER_krait_marks;
    int rc = 0;
    for (uint32_t i = 0; i < adding->trace->track_count && rc != HAS_NAME && rc != -ENOMEM; i++) {
        if (adding->trace->tracks[i].importer == importer)
            rc = krait_track_walk(adding->trace, i, KRAIT_RANGE_ALL,
                                  is_call ? look_in_arguments : look_in_batch, adding, NULL, 0);
    }
    return rc == HAS_NAME || rc == -ENOMEM ? rc : 0;
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

static const char *nearest_event(const struct check *check, const struct krait_rule_name *name)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name->name, strlen(name->name));
    for (uint32_t i = 0; i < check->known.count; i++) {
        const char *event = check->known.items[i].name;
        if (!is_beside(check, name, event))
            krait_suggest_try_event(&suggest, event);
    }
    return suggest.best;
}

/* A group of the trigger's pattern, or a field that is nearer. */
static const char *nearest_field(const struct check *check, const struct krait_rule_name *name,
                                 const struct krait_strtab *added)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name->name, strlen(name->name));
    const struct krait_regex *message = name->trigger->message;
    const char *group;
    for (uint32_t i = 0; message && (group = krait_regex_name(message, i)); i++)
        krait_suggest_try(&suggest, group);
    for (size_t i = 0; (group = krait_trigger_part(i)); i++)
        krait_suggest_try(&suggest, group);
    for (uint32_t i = 0; i < check->known.count; i++) {
        if (may_take(name->trigger, &check->known.items[i]))
            krait_known_event_suggest(&check->known, &check->known.items[i], &suggest);
    }
    for (uint32_t i = 0; i < added->len; i++)
        krait_suggest_try(&suggest, added->texts[i]);
    return suggest.best;
}

/* -- telling -- */

/* What stands before and behind a name. */
struct unmet {
    const char *before, *behind;
};

/* Once, where a start and its stop have one key. */
static void add_once(struct check *check, const struct krait_buf *line)
{
    struct krait_buf *notes = check->notes;
    notes->failed |= line->failed;
    if (!notes->failed && !(notes->len && memmem(notes->data, notes->len, line->data, line->len)))
        krait_buf_add(notes, line->data, line->len);
}

static void tell(struct check *check, const struct krait_rule_name *name, struct unmet why, const char *near)
{
    KRAIT_AUTO_BUF line = { 0 };
    krait_fmt_safe(&line, name->at);
    krait_buf_str(&line, why.before);
    krait_fmt_safe(&line, name->name);
    krait_buf_str(&line, why.behind);
    krait_suggest_say(&line, near);
    krait_buf_char(&line, '\n');
    add_once(check, &line);
    check->rules->items[name->rule].is_unmet = true;
}

static void check_event(struct check *check, const struct krait_rule_name *name)
{
    static const struct unmet unread = { "krait does not search events such as '",
                                         "': those of calls, and definitions; { call = \"f\" } and "
                                         "{ return = \"f\" } take the calls of a function" };
    static const struct unmet missing = { "there is no event '", "' in the trace" };
    bool is_unread = !name->is_of_many && krait_known_events_is_unread(&check->known, name->name);
    if (has_event(check, name->name))
        return;
    const char *near = is_unread ? NULL : nearest_event(check, name);
    if (near || is_unread || !(name->is_of_many || takes_any(check, name->trigger)))
        tell(check, name, is_unread ? unread : missing, near);
}

/* -- fields of events that hide those of programs -- */

/* An event's own field, and the program's of that name: `id` of span:begin, which numbers krait's spans. */
struct hiding {
    const struct check *check;
    const struct krait_rule_name *name;
    struct krait_trigger_event said;
    const char *event;  /* the first that has both; NULL: none was found */
    const char *within; /* which of its fields has the program's */
    uint32_t looked;
};

static bool is_own_field(const struct hiding *hiding, const char *event)
{
    const struct krait_known_events *known = &hiding->check->known;
    for (uint32_t i = 0; i < known->count; i++) {
        if (strcmp(known->items[i].name, event) == 0 &&
            krait_known_event_has(known, &known->items[i], hiding->name->name))
            return true;
    }
    return false;
}

static bool is_added(const struct hiding *hiding, const char *text)
{
    KRAIT_AUTO_BUF own = { 0 };
    KRAIT_AUTO_BUF value = { 0 };
    size_t n;
    const char *json = krait_fields_added((struct krait_fields){ text, text + strlen(text) }, &own, &n);
    return json && krait_fields_get_json(json, n, hiding->name->name, &value);
}

static int look_for_both(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct hiding *hiding = ctx;
    for (uint32_t i = 0; i < batch->n; i++) {
        const char *event = krait_track_text(hiding->check->trace, batch->name[i]);
        if (hiding->looked++ >= MOST_LOOKED)
            return -ENOENT;
        if (!is_own_field(hiding, event) || !is_added(hiding, batch->text[i]))
            continue;
        krait_trigger_event_of(&hiding->said, hiding->check->trace, track, event, batch->text[i]);
        if (!krait_trigger_fires(hiding->name->trigger, &hiding->said))
            continue;
        struct krait_fields all = { batch->text[i], batch->text[i] + strlen(batch->text[i]) };
        struct krait_field field;
        hiding->event = event;
        hiding->within = krait_fields_find(&all, "fields", &field) ? "fields" : "extra";
        return HAS_NAME;
    }
    return 0;
}

/* Only in the first events: it is a hint. */
static void note_hidden(struct check *check, const struct krait_rule_name *name)
{
    struct hiding hiding = { .check = check, .name = name };
    const struct krait_trace *trace = check->trace;
    bool is_group = name->trigger->message && krait_regex_group(name->trigger->message, name->name);
    bool is_asked = !is_group && !name->is_of_many && !strchr(name->name, '.');
    int rc = 0;
    for (uint32_t i = 0; is_asked && i < trace->track_count && !rc; i++) {
        if (trace->tracks[i].importer == KRAIT_IMPORTER_krait_marks)
            rc = krait_track_walk(trace, i, KRAIT_RANGE_ALL, look_for_both, &hiding, NULL, 0);
    }
    krait_buf_done(&hiding.said.text);
    krait_buf_done(&hiding.said.own);
    if (!hiding.event)
        return;
    KRAIT_AUTO_BUF line = { 0 };
    krait_fmt_safe(&line, name->at);
    krait_buf_fmt(&line, "%s has a field '", hiding.event);
    krait_fmt_safe(&line, name->name);
    krait_buf_fmt(&line, "' of its own; the program's is %s.", hiding.within);
    krait_fmt_safe(&line, name->name);
    krait_buf_char(&line, '\n');
    add_once(check, &line);
}

static int check_field(struct check *check, const struct krait_rule_name *name)
{
    static const struct unmet missing = { "there is no field '", "' in its events" };
    KRAIT_CLEANUP(adding_done) struct adding adding = { .trace = check->trace, .name = name };
    if (!takes_any(check, name->trigger))
        return 0;
    if (has_field(check, name)) {
        note_hidden(check, name);
        return 0;
    }
    int rc = look_for_added(&adding);
    const char *near = rc ? NULL : nearest_field(check, name, &adding.names);
    if (!rc && (near || !name->is_of_many))
        tell(check, name, missing, near);
    return rc == -ENOMEM ? rc : 0;
}

/* A function that is not in the trace is told where calls are read. */
static int find_labels(const struct check *check, struct adding *adding)
{
    struct krait_err ignored;
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)check->trace->func_count + 1, sizeof(*meant));
    if (!meant)
        return -ENOMEM;
    int rc = krait_match_mark(meant, check->trace, adding->name->trigger->call, &ignored);
    return rc ? rc : krait_match_labels(&adding->labels, check->trace, meant);
}

static int check_argument(struct check *check, const struct krait_rule_name *name)
{
    static const struct unmet missing = { "there is no argument '", "' in its calls" };
    static const struct unmet unrecorded = { "no call of it has recorded arguments, and so no '",
                                             "'; krait record --args records them" };
    KRAIT_CLEANUP(adding_done) struct adding adding = { .trace = check->trace, .name = name };
    int rc = find_labels(check, &adding);
    rc = rc ? rc : look_for_added(&adding);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    struct krait_suggest suggest = KRAIT_SUGGEST(name->name, strlen(name->name));
    for (uint32_t i = 0; i < adding.names.len; i++)
        krait_suggest_try(&suggest, adding.names.texts[i]);
    tell(check, name, adding.looked ? missing : unrecorded, suggest.best);
    return 0;
}

int krait_rules_unmet(struct krait_rules *rules, const struct krait_trace *trace,
                      bool (*is_shown)(const void *ctx, uint32_t rule), const void *ctx,
                      struct krait_buf *notes, struct krait_err *err)
{
    KRAIT_CLEANUP(check_done) struct check check = { .rules = rules, .trace = trace, .notes = notes };
    int rc = 0;
    if (!rules->named_count)
        return 0;
    check.is_used = calloc((size_t)rules->count + 1, sizeof(*check.is_used));
    if (!check.is_used || krait_known_events_read(&check.known, trace))
        return krait_err_set(err, -ENOMEM, "out of memory");
    find_used(&check, is_shown, ctx);
    for (uint32_t i = 0; i < rules->named_count && !check.known.is_partial && !rc; i++) {
        const struct krait_rule_name *name = &rules->named[i];
        if (!check.is_used[name->rule])
            continue;
        if (!name->is_field)
            check_event(&check, name);
        else
            rc = name->trigger->call ? check_argument(&check, name) : check_field(&check, name);
    }
    return rc || notes->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}
