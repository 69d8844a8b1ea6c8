/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/within.h"

#include "analysis/intervals.h"
#include "analysis/rules_unmet.h"
#include "base/fmt.h"
#include "base/runs.h"
#include "base/suggest.h"
#include "cmd/analysis_files.h"
#include "cmd/terminal.h"
#include "cmd/unmatched.h"
#include "cmd/unpaired.h"
#include "cmd/within_which.h"

#include <string.h>

/* --within as it was given: NAME[:WHICH], or of a file's NAME.KEY[:WHICH], or FUNCTION:outermost[:WHICH]. */
struct asked {
    char *name;
    char *outermost;   /* the function whose outermost calls are meant; NULL: it is no such name */
    const char *key;   /* in name: a state, or a key of intervals; NULL: any */
    const char *which; /* NULL: all, or where the verb cannot take them, the one that there is */
};

static const char DOTS[] = " .. ";

static void asked_done(struct asked *asked)
{
    free(asked->name);
    free(asked->outermost);
}

static int read_asked(struct asked *asked, const char *text, struct krait_err *err)
{
    const char *colon = strrchr(text, ':');
    asked->which = colon && krait_within_is_which(colon + 1) ? colon + 1 : NULL;
    asked->name = strndup(text, asked->which ? (size_t)(colon - text) : strlen(text));
    if (!asked->name)
        return krait_err_set(err, -ENOMEM, "out of memory");
    colon = strrchr(asked->name, ':');
    if (!colon || strcmp(colon + 1, KRAIT_WITHIN_OUTERMOST) != 0 || strstr(asked->name, DOTS))
        return 0;
    asked->outermost = strndup(asked->name, (size_t)(colon - asked->name));
    return asked->outermost ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
}

/* -- finding -- */

struct search {
    struct krait_select *select;
    struct krait_trace *trace;
    struct krait_intervals found;
    struct krait_interval_rule rule;
    struct krait_trigger triggers[2]; /* of it, where it is between messages */
    char *start;                      /* ... the first pattern */
    struct krait_rules declared;
    uint32_t named;               /* which of these the name is of; KRAIT_NO_ID: of none */
    struct krait_strtab keys;     /* of the intervals of that one, or its states */
    struct krait_intervals spans; /* what a search for spans found, if it found none: their names */
    struct krait_arena labels;    /* of functions that may be meant */
    bool is_unended;              /* it has such a state, which did not end */
};

static void search_done(struct search *search)
{
    krait_intervals_done(&search->found);
    free(search->start);
    krait_regex_free(search->triggers[0].message);
    krait_regex_free(search->triggers[1].message);
    krait_match_free(search->rule.match);
    krait_rules_done(&search->declared);
    krait_strtab_done(&search->keys);
    krait_intervals_done(&search->spans);
    krait_arena_done(&search->labels);
}

static void forget_found(struct search *search)
{
    krait_intervals_done(&search->found);
    search->found = (struct krait_intervals){ 0 };
}

static bool takes(void *select, const struct krait_trace *trace, const struct krait_track *track)
{
    return krait_select_place(select, trace, track);
}

static int find_all(struct search *search, const struct krait_interval_rule *rules, uint32_t count,
                    struct krait_err *err)
{
    const struct krait_interval_options options = {
        .rules = rules,
        .rule_count = count,
        .range = KRAIT_RANGE_ALL,
        .takes = takes,
        .ctx = search->select,
        .notes = &search->declared.notes,
    };
    int rc = krait_tracks_find_kinds(search->trace, krait_intervals_kinds(rules, count), err);
    rc = rc ? rc : krait_intervals_find(&search->found, search->trace, &options, NULL, 0, err);
    if (!rc && search->found.given_up)
        krait_buf_str(&search->declared.notes, "warning: ");
    if (!rc)
        krait_intervals_note_given_up(&search->declared.notes, &search->found);
    return rc;
}

static int find(struct search *search, struct krait_err *err)
{
    return find_all(search, &search->rule, 1, err);
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_interval *x = a, *y = b;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

static bool is_asked(const void *asked, uint32_t rule)
{
    return *(const uint32_t *)asked == rule;
}

static bool is_of_states(const struct search *search)
{
    return search->named != KRAIT_NO_ID && search->declared.items[search->named].kind == KRAIT_RULE_STATES;
}

static const char *key_of(const struct search *search, uint32_t key)
{
    return key == KRAIT_NO_ID ? NULL : search->found.keys.texts[key];
}

/* Whether it has the key that is asked for; the key is kept. */
static int take_key(struct search *search, const char *asked, uint32_t id, bool *takes)
{
    const char *key = key_of(search, id);
    *takes = !asked || (key && strcmp(key, asked) == 0);
    return key && krait_strtab_add(&search->keys, key, strlen(key)) == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* Of a rule's intervals, those of a key. A state that never ended is in a row alone. */
static int keep_key(struct search *search, const char *key)
{
    struct krait_intervals *found = &search->found;
    size_t kept = 0;
    bool takes;
    int rc = 0;
    for (size_t i = 0; i < found->count && !rc; i++) {
        rc = take_key(search, key, found->items[i].key, &takes);
        if (takes)
            found->items[kept++] = found->items[i];
    }
    for (uint32_t i = 0; i < found->row_count && !rc && is_of_states(search); i++) {
        rc = found->rows[i].no_stop ? take_key(search, key, found->rows[i].key, &takes) : 0;
        search->is_unended |= !rc && found->rows[i].no_stop && takes;
    }
    found->count = kept;
    return rc;
}

/* One that the files declare, whatever its rows are; of a key, or of all. The others are needed if it is within them. */
static int find_declared(struct search *search, const char *key, struct krait_err *err)
{
    struct krait_rules *rules = &search->declared;
    for (uint32_t i = 0; i < rules->count; i++)
        rules->items[i].is_hidden = i != search->named;
    int rc = krait_tracks_find_kinds(search->trace, krait_intervals_kinds(rules->items, rules->count), err);
    rc = rc ? rc : krait_rules_unmet(rules, search->trace, is_asked, &search->named, &rules->notes, err);
    rc = rc ? rc : find_all(search, rules->items, rules->count, err);
    if (rc)
        return rc;
    struct krait_intervals *found = &search->found;
    rc = keep_key(search, key);
    rc = rc ? rc : krait_runs_sort(found->items, found->count, sizeof(*found->items), by_begin);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}

static bool has_intervals(const struct krait_interval_rule *rule)
{
    return rule->kind != KRAIT_RULE_SIGNAL;
}

/* Its index among what the files declare; KRAIT_NO_ID: there is none of that name. */
static uint32_t declared_rule(const struct krait_rules *rules, const char *name)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (has_intervals(&rules->items[i]) && strcmp(rules->items[i].name, name) == 0)
            return i;
    }
    return KRAIT_NO_ID;
}

/* The same of NAME.KEY, whose key `key` then is. Names may have dots: of several the longest is meant. */
static uint32_t declared_rule_of_key(const struct krait_rules *rules, const char *name, const char **key)
{
    uint32_t best = KRAIT_NO_ID;
    size_t longest = 0;
    for (uint32_t i = 0; i < rules->count; i++) {
        const char *own = rules->items[i].name;
        size_t n = strlen(own);
        if (has_intervals(&rules->items[i]) && strncmp(own, name, n) == 0 && name[n] == '.' && n >= longest) {
            best = i;
            longest = n;
        }
    }
    *key = best == KRAIT_NO_ID ? NULL : name + longest + 1;
    return best;
}

/* "Start .. Stop", as krait intervals names those between messages. */
static int find_messages(struct search *search, const char *name, const char *dots, struct krait_err *err)
{
    struct krait_trigger *triggers = search->triggers;
    char *start = search->start = strndup(name, (size_t)(dots - name));
    triggers[0].role = KRAIT_TRIGGER_START;
    triggers[1].role = KRAIT_TRIGGER_STOP;
    int rc = start ? krait_regex_new(&triggers[0].message, start, err)
                   : krait_err_set(err, -ENOMEM, "out of memory");
    rc = rc ? rc : krait_regex_new(&triggers[1].message, dots + strlen(DOTS), err);
    search->rule.triggers = triggers;
    search->rule.trigger_count = KRAIT_ARRAY_LEN(search->triggers);
    search->rule.given[0] = start;
    search->rule.given[1] = dots + strlen(DOTS);
    return rc ? rc : find(search, err);
}

/* Where there are none yet. */
static int find_calls(struct search *search, bool steps, struct krait_err *err)
{
    struct krait_err ignored = { 0 };
    if (search->found.count)
        return 0;
    if (search->rule.kind == KRAIT_RULE_SPANS) { /* their names are kept */
        krait_intervals_done(&search->spans);
        search->spans = search->found;
        search->found = (struct krait_intervals){ 0 };
    }
    forget_found(search);
    search->rule.kind = KRAIT_RULE_CALLS;
    search->rule.is_of_steps = steps;
    int rc = find(search, &ignored);
    if (rc == -ENOMEM)
        *err = ignored;
    return rc == -ENOMEM ? rc : 0;
}

/* Spans of that name, or the calls of a function; of a coroutine that no task runs, only steps are known. */
static int find_named(struct search *search, const char *name, struct krait_err *err)
{
    int rc = krait_match_new(&search->rule.match, name, err);
    search->rule.kind = KRAIT_RULE_SPANS;
    rc = rc ? rc : find(search, err);
    rc = rc ? rc : find_calls(search, false, err);
    return rc ? rc : find_calls(search, true, err);
}

/* Those of its calls that begin in none of them. */
static int find_outermost(struct search *search, const char *name, struct krait_err *err)
{
    int rc = krait_match_new(&search->rule.match, name, err);
    search->rule.kind = KRAIT_RULE_CALLS;
    search->rule.is_outermost = true;
    rc = rc ? rc : find_calls(search, false, err);
    return rc ? rc : find_calls(search, true, err);
}

/* -- which -- */

static bool is_signal(const struct search *search, const char *name)
{
    const struct krait_rules *rules = &search->declared;
    for (uint32_t i = 0; i < rules->count; i++) {
        if (!has_intervals(&rules->items[i]) && strcmp(rules->items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* The first, or the second if it is nearer. */
static const char *nearer(const struct krait_suggest *a, const struct krait_suggest *b)
{
    return b->best && (!a->best || b->best_distance < a->best_distance) ? b->best : a->best;
}

/* The declared name or the span that is meant, or the function if that is nearer; NULL: none is near. */
static const char *nearest_name(struct search *search, const char *name)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name)), of_funcs = suggest;
    for (uint32_t i = 0; i < search->declared.count; i++) {
        if (has_intervals(&search->declared.items[i]))
            krait_suggest_try(&suggest, search->declared.items[i].name);
    }
    krait_intervals_near_span(&search->spans, &suggest);
    krait_match_suggest_any(&of_funcs, &search->labels, search->trace);
    return nearer(&suggest, &of_funcs);
}

/* The key of a rule that is meant, or the function of a module or class that is called like the rule, if that is nearer; NULL:
 * none is near. */
static const char *nearest_key(const struct search *search, const char *rule, const char *key)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(key, strlen(key)), of_funcs = suggest;
    for (uint32_t i = 0; i < search->keys.len; i++)
        krait_suggest_try(&suggest, search->keys.texts[i]);
    size_t n = strlen(rule);
    for (uint32_t i = 0; i < search->trace->func_count; i++) {
        const struct krait_func *f = &search->trace->funcs[i];
        if (strncmp(f->name, rule, n) == 0 && f->name[n] == '.')
            krait_suggest_try(&of_funcs, f->name + n + 1);
        else if (strcmp(f->module, rule) == 0)
            krait_suggest_try(&of_funcs, f->name);
    }
    return nearer(&suggest, &of_funcs);
}

/* The first keys, or states, for a message. */
static void add_keys(struct krait_buf *text, const struct search *search)
{
    enum { SHOWN = 8 };
    for (uint32_t i = 0; i < search->keys.len && i < SHOWN; i++) {
        krait_buf_str(text, i ? ", " : "");
        krait_fmt_safe(text, search->keys.texts[i]);
    }
    krait_buf_str(text, search->keys.len > SHOWN ? ", ..." : "");
}

static int refuse_key(const struct search *search, const char *key, struct krait_err *err)
{
    const char *rule = search->declared.items[search->named].name;
    const char *what = is_of_states(search) ? "state" : "key", *near = nearest_key(search, rule, key);
    if (near)
        return krait_err_set(err, -ENOENT, "--within: there is no %s '%s' of '%s'; did you mean '%s.%s'?",
                             what, key, rule, rule, near);
    KRAIT_AUTO_BUF all = { 0 };
    add_keys(&all, search);
    if (all.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    return krait_err_set(err, -ENOENT, "--within: there is no %s '%s' of '%s'; the %s%s %s", what, key, rule,
                         what, search->keys.len > 1 ? "s are" : " is", all.data);
}

static struct krait_unpaired unpaired_of(const struct search *search, const struct krait_interval_rule *rule,
                                         uint32_t index)
{
    return (struct krait_unpaired){ .trace = search->trace,
                                    .select = search->select,
                                    .range = KRAIT_RANGE_ALL,
                                    .rule = rule,
                                    .found = &search->found,
                                    .index = index,
                                    .is_within = true };
}

/* What a file declares, whose events are not in the trace, or do not belong together. */
static int refuse_absent(const struct search *search, struct krait_err *err)
{
    const struct krait_interval_rule *rule = &search->declared.items[search->named];
    const struct krait_unpaired of = unpaired_of(search, rule, search->named);
    KRAIT_AUTO_BUF why = { 0 };
    if (!krait_is_unpaired(&of))
        return krait_err_set(err, -ENOENT, "--within: '%s' is declared, but the trace has none of it",
                             rule->name);
    return krait_unpaired_say(&why, &of) || why.failed
               ? krait_err_set(err, -ENOMEM, "out of memory")
               : krait_err_set(err, -ENOENT, "--within: %s", why.data);
}

/* What a file declares, of which there is none, or none of the key. */
static int refuse_declared(const struct search *search, const char *name, const char *key,
                           struct krait_err *err)
{
    const char *rule = search->declared.items[search->named].name;
    if (search->is_unended)
        return krait_err_set(err, -ENOENT,
                             "--within: '%s' has no end in the recording, and so is no interval", name);
    if (!key || (!search->keys.len && !nearest_key(search, rule, key)))
        return refuse_absent(search, err);
    return refuse_key(search, key, err);
}

/* The pattern of a pair that no message matches, and what was meant: also the word behind it. */
static void add_unmatched(struct krait_buf *why, const struct search *search, const struct asked *asked)
{
    bool has_starts = search->found.row_count && search->found.rows[0].starts;
    const char *pattern = search->rule.given[has_starts];
    const char *word = has_starts ? krait_within_near_word(asked->name) : NULL;
    KRAIT_AUTO_BUF near = { 0 };
    krait_buf_fmt(why, "no message matches '%s'", pattern);
    if (word)
        krait_buf_fmt(&near, "%.*s:%s", (int)(strrchr(asked->name, ':') - asked->name), asked->name, word);
    size_t end = why->len;
    if (near.len)
        krait_suggest_say(why, near.data);
    else
        krait_unmatched_say(why, search->trace, search->select, KRAIT_RANGE_ALL, pattern);
    krait_buf_str(why, why->len > end ? "" : "; krait report --by mark counts what there is");
    why->failed |= near.failed;
}

/* Messages that match no pattern of a pair, or match both and belong to none. */
static int refuse_messages(const struct search *search, const struct asked *asked, struct krait_err *err)
{
    struct krait_unpaired of = unpaired_of(search, &search->rule, 0);
    of.which = asked->which;
    KRAIT_AUTO_BUF why = { 0 };
    if (!krait_is_unpaired(&of)) {
        add_unmatched(&why, search, asked);
    } else if (krait_unpaired_say(&why, &of)) {
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    return why.failed ? krait_err_set(err, -ENOMEM, "out of memory")
                      : krait_err_set(err, -ENOENT, "--within '%s': %s", asked->name, why.data);
}

static int refuse_none(struct search *search, const struct asked *asked, struct krait_err *err)
{
    const char *name = asked->outermost ? asked->outermost : asked->name,
               *word = krait_within_near_word(name), *near = word ? NULL : nearest_name(search, name);
    if (search->named != KRAIT_NO_ID)
        return refuse_declared(search, name, asked->key, err);
    if (search->rule.trigger_count)
        return refuse_messages(search, asked, err);
    if (is_signal(search, name))
        return krait_err_set(err, -ENOENT, "--within: '%s' is a signal, which has no intervals", name);
    if (word)
        return krait_err_set(err, -ENOENT, "--within: there is no '%s'; did you mean '%.*s:%s'?", name,
                             (int)(strrchr(name, ':') - name), name, word);
    if (near && strcmp(near, name) == 0 && search->trace->samples.rate)
        return krait_err_set(err, -ENOENT,
                             "--within: samples have no calls, so there is none of '%s'; name a span or "
                             "'START .. STOP', or use --from and --until",
                             name);
    if (near && strcmp(near, name) == 0)
        return krait_err_set(err, -ENOENT,
                             "--within: no call of '%s' both begins and ends in the recording; krait "
                             "intervals --call counts them",
                             name);
    if (near)
        return krait_err_set(err, -ENOENT,
                             "--within: there is no span '%s', and no call of such a function; did you mean "
                             "'%s'?",
                             name, near);
    return krait_err_set(err, -ENOENT,
                         "--within: there is no span '%s', and no call of such a function; 'START .. STOP'%s "
                         "takes the time between messages",
                         name, strstr(name, "..") ? ", with blanks around the dots," : "");
}

static int pick(struct search *search, const struct asked *asked, size_t *index, struct krait_err *err)
{
    size_t count = search->found.count;
    if (!count)
        return refuse_none(search, asked, err);
    if (!asked->which && count > 1)
        return krait_err_set(
            err, -EINVAL,
            "--within: there are %zu of '%s', and only krait report, flame, states, cat and summed exports "
            "take them all; name one: '%s:1' to '%s:%zu', '%s:slowest', '%s:fastest', '%s:last'%s",
            count, asked->name, asked->name, asked->name, count, asked->name, asked->name, asked->name,
            is_of_states(search) && !asked->key ? "; NAME.STATE takes those of one state" : "");
    *index = 0;
    if (asked->which && krait_within_pick_word(&search->found, asked->which, index))
        return 0;
    unsigned long long number = asked->which ? strtoull(asked->which, NULL, 10) : 1;
    if (number < 1 || number > count)
        return krait_err_set(err, -ENOENT, "--within: there %s %zu of '%s', and no number %s",
                             count == 1 ? "is" : "are", count, asked->name, asked->which);
    *index = (size_t)number - 1;
    return 0;
}

static int set_range(struct krait_select *select, const struct krait_trace *trace, struct krait_range at,
                     struct krait_err *err)
{
    uint64_t zero_ns = krait_trace_zero(trace);
    for (int i = 0; i < 2; i++) { /* of another recording, where several are compared */
        free(select->owned[i]);
        select->owned[i] = NULL;
    }
    if (asprintf(&select->owned[0], "%lluns",
                 (unsigned long long)(at.from_ns - KRAIT_MIN(zero_ns, at.from_ns))) < 0 ||
        asprintf(&select->owned[1], "%lluns", (unsigned long long)(at.to_ns - KRAIT_MIN(zero_ns, at.to_ns))) <
            0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    select->from = select->owned[0];
    select->until = select->owned[1];
    return 0;
}

/* Which state it is, or whose interval. */
static void add_key(struct krait_buf *text, const struct search *search, const char *key)
{
    if (key)
        krait_buf_fmt(text, " (%s %s)", is_of_states(search) ? "state" : "key", key);
}

/* A function that is called like the spans that were taken; NULL: there is none. */
static const struct krait_func *function_of_name(const struct search *search, const char *name)
{
    const struct krait_trace *trace = search->trace;
    bool of_spans =
        search->named == KRAIT_NO_ID && search->rule.kind == KRAIT_RULE_SPANS && search->rule.match;
    for (uint32_t i = 0; of_spans && i < trace->func_count; i++) {
        if (!trace->funcs[i].is_own && strcmp(trace->funcs[i].name, name) == 0)
            return &trace->funcs[i];
    }
    return NULL;
}

static void add_function(struct krait_buf *text, const struct search *search, const struct asked *asked,
                         const char *these)
{
    const struct krait_func *func = function_of_name(search, asked->name);
    char label[4096];
    if (func)
        krait_buf_fmt(text, "; %s: --within %s takes the function of that name", these,
                      krait_func_label(func, label, sizeof(label)));
}

static void say_text(const struct krait_buf *text)
{
    if (!text->failed)
        krait_terminal_wrap(stderr, NULL, 0, 2, text->data);
}

static void say(const struct search *search, const struct asked *asked, size_t index, const char *verb)
{
    const struct krait_interval *at = &search->found.items[index];
    const struct krait_track *track =
        at->begin_track == KRAIT_NO_ID ? NULL : &search->trace->tracks[at->begin_track];
    uint64_t zero_ns = krait_trace_zero(search->trace);
    char begin[KRAIT_FMT_SIZE], length[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "krait %s: within %s, %zu of %zu", verb, asked->name, index + 1,
                  search->found.count);
    if (search->named != KRAIT_NO_ID && !asked->key)
        add_key(&text, search, key_of(search, at->key));
    krait_buf_fmt(&text, ": %s from %s on", krait_fmt_ns(length, krait_within_duration(at)),
                  krait_fmt_ns(begin, at->begin_ns - KRAIT_MIN(zero_ns, at->begin_ns)));
    if (track && track->thread_name && *track->thread_name)
        krait_buf_fmt(&text, ", %s %s", track->of == KRAIT_OF_TASK ? "task" : "thread", track->thread_name);
    add_function(&text, search, asked, "it is a span");
    say_text(&text);
}

static void add_home(uint8_t *homes, const struct krait_trace *trace, uint32_t track, uint8_t home, bool *any)
{
    uint32_t thread = track == KRAIT_NO_ID ? KRAIT_NO_ID : trace->tracks[track].thread;
    if (thread == KRAIT_NO_ID)
        return;
    homes[thread] = KRAIT_MIN(homes[thread], home);
    *any = true;
}

/* The threads in which intervals begin and end. Of a single one, they are told apart. */
static int find_homes(struct search *search, const struct krait_interval *items, size_t count,
                      struct krait_err *err)
{
    const struct krait_trace *trace = search->trace;
    uint8_t *homes = malloc(trace->thread_count + 1ul);
    bool any = false;
    free(search->select->homes); /* of another recording */
    search->select->homes = NULL;
    if (!homes)
        return krait_err_set(err, -ENOMEM, "out of memory");
    memset(homes, KRAIT_HOME_NONE, trace->thread_count + 1ul);
    for (size_t i = 0; i < count; i++) {
        add_home(homes, trace, items[i].end_track, KRAIT_HOME_END, &any);
        add_home(homes, trace, items[i].begin_track, count == 1 ? KRAIT_HOME_BEGIN : KRAIT_HOME_END, &any);
    }
    if (any)
        search->select->homes = homes;
    else
        free(homes);
    return 0;
}

/* The one that is asked for. */
static int take_one(struct search *search, const struct asked *asked, const char *verb, struct krait_err *err)
{
    size_t index;
    int rc = pick(search, asked, &index, err);
    if (rc)
        return rc;
    const struct krait_interval *at = &search->found.items[index];
    rc = set_range(search->select, search->trace, (struct krait_range){ at->begin_ns, at->end_ns }, err);
    rc = rc ? rc : find_homes(search, at, 1, err);
    if (!rc)
        say(search, asked, index, verb);
    return rc;
}

static void say_all(const struct search *search, const struct asked *asked, uint64_t sum_ns, const char *verb)
{
    uint64_t together_ns = krait_ranges_sum(&search->select->parts);
    char sum[KRAIT_FMT_SIZE], together[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "krait %s: within %s, all %zu: %s", verb, asked->name, search->found.count,
                  krait_fmt_ns(sum, sum_ns));
    if (together_ns != sum_ns)
        krait_buf_fmt(&text, "; they overlap, and cover %s", krait_fmt_ns(together, together_ns));
    add_function(&text, search, asked, "they are spans");
    say_text(&text);
}

/* What happened in any of them. Time that several cover counts once. */
static int take_all(struct search *search, const struct asked *asked, const char *verb, struct krait_err *err)
{
    const struct krait_intervals *found = &search->found;
    struct krait_ranges *parts = &search->select->parts;
    uint64_t sum_ns = 0;
    if (found->count > UINT32_MAX || !(parts->items = calloc(found->count, sizeof(*parts->items))))
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < found->count; i++) {
        parts->items[i] = (struct krait_range){ found->items[i].begin_ns, found->items[i].end_ns };
        sum_ns += krait_within_duration(&found->items[i]);
    }
    parts->count = (uint32_t)found->count;
    krait_ranges_join(parts);
    if (!parts->count)
        return krait_err_set(err, -ENOENT, "--within: the %zu of '%s' last no time", found->count,
                             asked->name);
    if (find_homes(search, found->items, found->count, err))
        return -ENOMEM;
    say_all(search, asked, sum_ns, verb);
    return set_range(search->select, search->trace,
                     (struct krait_range){ parts->items[0].from_ns, parts->items[parts->count - 1].to_ns },
                     err);
}

static void tell_notes(struct krait_select *select, struct krait_buf *notes)
{
    struct krait_err ignored;
    krait_buf_add(&select->told, notes->len ? notes->data : "", notes->len);
    if (notes->len)
        krait_terminal_print(&(struct krait_buf){ 0 }, notes, "", &ignored);
    krait_buf_clear(notes);
}

/* What is no interval that a file declares: the time between messages, spans, or calls. */
static int find_other(struct search *search, struct asked *asked, struct krait_err *err)
{
    const char *name = asked->name, *dots = strstr(name, DOTS);
    int rc = dots               ? find_messages(search, name, dots, err)
             : asked->outermost ? find_outermost(search, asked->outermost, err)
                                : find_named(search, name, err);
    if (!rc && search->found.count) {
        search->named = KRAIT_NO_ID;
        asked->key = NULL;
    }
    return rc;
}

/* A key that a declared interval does not have may be a function, as the interval may be called like a module. Without such a
 * function, what was told of the interval is what counts. */
static int find_declared_or_other(struct search *search, struct asked *asked, struct krait_err *err)
{
    struct krait_buf *notes = &search->declared.notes;
    int declared = find_declared(search, asked->key, err);
    if (declared == -ENOMEM || !asked->key || (!declared && search->found.count))
        return declared;
    forget_found(search);
    struct krait_err other = { 0 };
    KRAIT_AUTO_BUF told = *notes;
    *notes = (struct krait_buf){ 0 };
    int rc = find_other(search, asked, &other);
    if (!rc && search->found.count)
        return 0;
    krait_buf_add(&told, notes->data ? notes->data : "", notes->len);
    struct krait_buf of_other = *notes;
    *notes = told;
    told = of_other;
    if (!declared && rc)
        *err = other;
    return declared ? declared : rc;
}

/* Of all that has the name: what files declare, or else the time between messages, spans, or calls. */
static int find_asked(struct search *search, struct asked *asked, struct krait_err *err)
{
    search->named = declared_rule(&search->declared, asked->name);
    if (asked->outermost && search->named == KRAIT_NO_ID &&
        declared_rule(&search->declared, asked->outermost) != KRAIT_NO_ID)
        return krait_err_set(err, -EINVAL,
                             "--within: '%s' is declared, and :outermost goes with functions; in the file, "
                             "an interval with a 'call' takes outermost = true",
                             asked->outermost);
    if (search->named == KRAIT_NO_ID)
        search->named = declared_rule_of_key(&search->declared, asked->name, &asked->key);
    return search->named == KRAIT_NO_ID ? find_other(search, asked, err)
                                        : find_declared_or_other(search, asked, err);
}

static int take(struct search *search, struct asked *asked, const char *verb, struct krait_err *err)
{
    int rc = find_asked(search, asked, err);
    tell_notes(search->select, &search->declared.notes);
    if (rc)
        return rc;
    bool all = search->select->sums_parts && !asked->which && search->found.count > 1;
    return all ? take_all(search, asked, verb, err) : take_one(search, asked, verb, err);
}

/* What is wrong in the files is told first, or by a verb that tells it itself, which does not come to it after an error. */
int krait_within(struct krait_select *select, struct krait_trace *trace, const char *verb,
                 struct krait_err *err)
{
    KRAIT_CLEANUP(search_done)
    struct search search = { .select = select, .trace = trace, .named = KRAIT_NO_ID };
    KRAIT_CLEANUP(asked_done) struct asked asked = { 0 };
    if (!select->within)
        return 0;
    int rc = read_asked(&asked, select->within, err);
    if (rc)
        return rc;
    rc = krait_analysis_rules(&search.declared, &select->analyses, err);
    KRAIT_AUTO_BUF of_files = search.declared.notes;
    search.declared.notes = (struct krait_buf){ 0 };
    if (!select->tells_analyses)
        tell_notes(select, &of_files);
    rc = rc ? rc : take(&search, &asked, verb, err);
    if (rc)
        tell_notes(select, &of_files);
    return rc;
}

int krait_within_no_function(struct krait_trace *trace, const struct krait_match *asked, const char *option,
                             struct krait_err *err)
{
    KRAIT_CLEANUP(search_done) struct search search = { .trace = trace, .named = KRAIT_NO_ID };
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)trace->func_count + 1, sizeof(*meant));
    const char *name = krait_match_pattern(asked);
    struct krait_select all = { 0 };
    struct krait_err ignored;
    search.select = &all;
    search.rule.kind = KRAIT_RULE_SPANS;
    if (!meant || !krait_match_mark(meant, trace, asked, &ignored) ||
        krait_match_new(&search.rule.match, name, &ignored) || find(&search, &ignored) || !search.found.count)
        return err->code;
    return krait_err_set(
        err, -ENOENT, "'%s' is a span, not a function; use --within '%s' with %s and the name of a function",
        name, name, option);
}
