/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait intervals`: the time between messages.
 */
#include "cmd/intervals.h"

#include "analysis/rules_keys.h"
#include "analysis/rules_unmet.h"
#include "base/fmt.h"
#include "cmd/analysis_files.h"
#include "cmd/cmds.h"
#include "cmd/progress.h"
#include "cmd/terminal.h"
#include "cmd/within.h"

#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_RULES = UINT16_MAX };

/* -- what is asked for -- */

/* A file's suffix decides the kind of picture; without one it is SVG. */
static int check_picture(const char *option, const char *path, const char *const *kinds,
                         struct krait_err *err)
{
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
    const char *dot = name ? strrchr(name, '.') : NULL;
    if (!dot)
        return 0;
    for (size_t i = 0; kinds[i]; i++) {
        if (strcmp(kinds[i], dot) == 0)
            return 0;
    }
    return krait_err_set(err, -EINVAL, "--%s: '%s' has to end in .svg or .png%s", option, path,
                         strcmp(option, "graph") == 0 ? ", or in .dot for Graphviz" : "");
}

static int check_pictures(const struct intervals_options *o, struct krait_err *err)
{
    static const char *const plots[] = { ".svg", ".png", NULL };
    static const char *const graphs[] = { ".svg", ".png", ".dot", NULL };
    int rc = check_picture("plot", o->plot, plots, err);
    return rc ? rc : check_picture("graph", o->graph, graphs, err);
}

/* The first start without a stop, or the other way round, by the option that gave it. */
static int refuse_half(const struct intervals_options *o, struct krait_err *err)
{
    bool lacks_stop = o->starts.count > o->stops.count;
    const struct krait_opt_list *more = lacks_stop ? &o->starts : &o->stops;
    size_t i = KRAIT_MIN(o->starts.count, o->stops.count);
    const char *option = more->options[i], *other = lacks_stop ? "stop" : "start";
    KRAIT_AUTO_BUF calls = { 0 };
    if (strcmp(option, "start-call") == 0)
        krait_buf_fmt(&calls, ". To take whole calls: --call '%s'", more->items[i]);
    return krait_err_set(
        err, -EINVAL,
        "--%s '%s' lacks the %s of the interval: add --%s REGEX, --%s-call FUNCTION or --%s-return FUNCTION%s",
        option, more->items[i], lacks_stop ? "end" : "begin", other, other, other,
        calls.len ? calls.data : "");
}

static int check_options(const struct intervals_options *o, size_t rules, struct krait_err *err)
{
    if (o->starts.count != o->stops.count)
        return refuse_half(o, err);
    if (!rules && !o->select.analyses.count)
        return krait_err_set(
            err, -EINVAL,
            "no interval given; use --start REGEX with --stop REGEX, --call FUNCTION, --span NAME, --state REGEX, "
            "--signal REGEX, or -f FILE");
    if (o->names.count > rules || rules > MOST_RULES)
        return krait_err_set(
            err, -EINVAL,
            "there are more names (--name) than intervals: one for each --start with its --stop, --call, --span, "
            "--state and --signal, whatever keys they have");
    if (o->nested && o->latest)
        return krait_err_set(err, -EINVAL, "--nested and --latest exclude each other");
    if (o->list + (o->compare[0] != NULL) + (o->plot != NULL) + o->transitions + (o->graph != NULL) > 1)
        return krait_err_set(err, -EINVAL,
                             "--list, --compare, --plot, --transitions and --graph exclude each other");
    if (o->plot && strcmp(o->plot, "-") == 0 && (o->csv || o->json))
        return krait_err_set(err, -EINVAL, "--plot - draws into a table for people, not into CSV and JSON");
    if (o->graph && strcmp(o->graph, "-") == 0 && (o->csv || o->json))
        return krait_err_set(
            err, -EINVAL, "--graph - writes the picture in place of the table; leave out --csv and --json");
    if (o->steps && !o->calls.count)
        return krait_err_set(err, -EINVAL, "--steps needs --call");
    if (o->outermost && !o->calls.count)
        return krait_err_set(err, -EINVAL, "--outermost needs --call");
    if (o->by && strcmp(o->by, "key") == 0 && o->list)
        return krait_err_set(err, -EINVAL,
                             "--by key does not go with --list, which has a column for the key");
    int rc = check_pictures(o, err);
    return rc ? rc : krait_select_check(&o->select, err);
}

/* What one table, list or picture cannot have beside each other. */
static int check_kinds(const struct intervals *intervals, struct krait_err *err)
{
    const struct intervals_options *o = intervals->options;
    uint32_t signals = krait_intervals_of_kind(intervals, KRAIT_RULE_SIGNAL);
    if ((o->transitions || o->graph) && !krait_intervals_of_kind(intervals, KRAIT_RULE_STATES))
        return krait_err_set(err, -EINVAL, "--%s needs --state", o->graph ? "graph" : "transitions");
    if (o->value && !o->signals.count)
        return krait_err_set(err, -EINVAL, "--value needs --signal");
    if (o->signals.count && o->compare[0])
        return krait_err_set(err, -EINVAL, "--compare compares intervals; it does not go with --signal");
    if (signals && signals < krait_intervals_shown(intervals) && (o->list || o->plot || o->csv))
        return krait_err_set(
            err, -EINVAL,
            "--%s has either intervals or signals; leave out --signal or the others, or choose "
            "with --only",
            o->list   ? "list"
            : o->plot ? "plot"
                      : "csv");
    return 0;
}

static bool is_asked_for(const struct intervals *intervals, const struct krait_interval_rule *rule)
{
    const struct krait_opt_list *only = &intervals->options->only;
    bool asked = !only->count;
    for (size_t i = 0; i < only->count; i++)
        asked |= fnmatch(only->items[i], rule->name, 0) == 0;
    return asked;
}

/* Rules of files, of which --only takes some: the others stay for those that are within them, but are not shown. */
static int add_declared(struct intervals *intervals, struct krait_err *err)
{
    const struct intervals_options *o = intervals->options;
    uint32_t first = intervals->rules.count, shown = 0;
    int rc = krait_analysis_rules(&intervals->rules, &o->select.analyses, err);
    krait_buf_add(&intervals->notes, intervals->rules.notes.data, intervals->rules.notes.len);
    for (uint32_t i = first; i < intervals->rules.count && !rc; i++) {
        intervals->rules.items[i].is_hidden = !is_asked_for(intervals, &intervals->rules.items[i]);
        shown += !intervals->rules.items[i].is_hidden;
    }
    if (!rc && o->only.count && !shown)
        rc = krait_err_set(err, -EINVAL, "--only: the files declare nothing that is called '%s'",
                           o->only.items[0]);
    return rc;
}

/* A number that is no group of a pattern, which would be taken for a field. */
static int check_key(const struct intervals *intervals, struct krait_err *err)
{
    const char *key = intervals->options->key;
    bool is_number = key && *key && key[strspn(key, "0123456789")] == '\0';
    for (uint32_t i = 0; is_number && i < intervals->rules.count; i++) {
        const struct krait_interval_rule *rule = &intervals->rules.items[i];
        for (uint32_t t = 0; rule->kind == KRAIT_RULE_PAIRS && t < rule->trigger_count; t++) {
            const struct krait_regex *message = rule->triggers[t].message;
            if (!message || !krait_regex_group(message, key))
                return krait_err_set(err, -EINVAL,
                                     "--key %s: '%s' and '%s' do not both have a group %s in round brackets",
                                     key, rule->given[0], rule->given[1], key);
        }
    }
    return 0;
}

/* A name that only the trace can tell to be wrong, of a trigger of an option. */
static int keep_field(struct intervals *intervals, const struct krait_trigger *trigger, const char *option,
                      const char *pattern, const char *field)
{
    struct krait_arena *arena = &intervals->rules.arena;
    const struct krait_rule_name name = { .at = krait_arena_fmt(arena, "--%s '%s': ", option, pattern),
                                          .name = field,
                                          .trigger = trigger,
                                          .rule = intervals->rules.count - 1,
                                          .is_field = true };
    return krait_trigger_is_part(field) ? 0 : name.at ? krait_rules_name(&intervals->rules, &name) : -ENOMEM;
}

/* The triggers of a rule take the key that was asked for. `options` gave them. */
static int add_keys(struct intervals *intervals, struct krait_interval_rule *rule, const char *const *options,
                    struct krait_err *err)
{
    const char *key = intervals->options->key;
    for (uint32_t i = 0; key && i < rule->trigger_count; i++) {
        struct krait_trigger *trigger = &rule->triggers[i];
        trigger->key = krait_rules_part(&intervals->rules, key);
        if (!trigger->key.count || keep_field(intervals, trigger, options[i], rule->given[i], key))
            return krait_err_set(err, -ENOMEM, "out of memory");
    }
    rule->key = key;
    rule->key_at =
        key ? krait_arena_fmt(&intervals->rules.arena, "--%s '%s': ", options[0], rule->given[0]) : NULL;
    return key && !rule->key_at ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* A trigger whose pattern has what it takes in a group. */
static int make_one(struct intervals *intervals, struct krait_interval_rule *rule,
                    enum krait_trigger_role role, const char *option, const char *what, struct krait_err *err)
{
    int rc = krait_rules_trigger(rule, role, rule->given[0], err);
    if (rc)
        return krait_err_prefix(err, rc, "--%s", option);
    rc = add_keys(intervals, rule, &option, err);
    if (rc || rule->triggers[0].what.count || krait_trigger_what_group(&rule->triggers[0]))
        return rc;
    return krait_err_set(err, -EINVAL, "--%s: '%s' has no group in round brackets for the %s", option,
                         rule->given[0], what);
}

/* A key of one pattern alone. */
static void note_key_of_one(struct intervals *intervals, const struct krait_interval_rule *rule,
                            const char *const *options)
{
    const struct krait_trigger *keyed, *without = krait_rules_without_key(rule, &keyed);
    bool is_stop = without && without->role == KRAIT_TRIGGER_STOP;
    if (!without)
        return;
    krait_buf_fmt(&intervals->notes, "--%s '", options[is_stop]);
    krait_fmt_safe(&intervals->notes, rule->given[is_stop]);
    krait_buf_fmt(&intervals->notes, "': it has no group 'key', as --%s has; krait ignores that key%s\n",
                  options[!is_stop], krait_rules_without_key_then(rule));
}

/* What begins or ends intervals: messages that match, or calls of a function. */
static const struct {
    const char *option;
    bool is_call, returns;
} ends[] = { { "start", false, false },      { "stop", false, false },     { "start-call", true, false },
             { "start-return", true, true }, { "stop-call", true, false }, { "stop-return", true, true } };

static int add_end(struct krait_interval_rule *rule, enum krait_trigger_role role, const char *option,
                   struct krait_err *err)
{
    const char *given = rule->given[rule->trigger_count];
    size_t i = 0;
    while (strcmp(ends[i].option, option) != 0)
        i++;
    int rc = krait_rules_trigger(rule, role, ends[i].is_call ? NULL : given, err);
    if (!rc && ends[i].is_call) {
        struct krait_trigger *trigger = &rule->triggers[rule->trigger_count - 1];
        trigger->returns = ends[i].returns;
        rc = krait_match_new(&trigger->call, given, err);
    }
    return rc ? krait_err_prefix(err, rc, "--%s", option) : 0;
}

static int make_pair(struct intervals *intervals, struct krait_interval_rule *rule,
                     const char *const *options, struct krait_err *err)
{
    int rc = add_end(rule, KRAIT_TRIGGER_START, options[0], err);
    rc = rc ? rc : add_end(rule, KRAIT_TRIGGER_STOP, options[1], err);
    for (uint32_t i = 0; i < rule->trigger_count && !rc; i++) {
        rule->triggers[i].call_at = krait_arena_fmt(&intervals->rules.arena, "--%s", options[i]);
        rc = rule->triggers[i].call_at ? 0 : krait_err_set(err, -ENOMEM, "out of memory");
    }
    rc = rc ? rc : add_keys(intervals, rule, options, err);
    if (!rc)
        note_key_of_one(intervals, rule, options);
    return rc;
}

static int make_match(struct intervals *intervals, struct krait_interval_rule *rule,
                      const char *const *options, struct krait_err *err)
{
    int rc = krait_rules_match(&intervals->rules, rule, rule->given[0], err);
    rule->declared_at = rule->kind == KRAIT_RULE_CALLS ? "--call" : "--span";
    rule->is_of_steps = intervals->options->steps;
    rule->is_outermost = intervals->options->outermost;
    return rc ? rc : add_keys(intervals, rule, options, err);
}

static int make_state(struct intervals *intervals, struct krait_interval_rule *rule,
                      const char *const *options, struct krait_err *err)
{
    return make_one(intervals, rule, KRAIT_TRIGGER_STATE, options[0], "state's name", err);
}

static int make_signal(struct intervals *intervals, struct krait_interval_rule *rule,
                       const char *const *options, struct krait_err *err)
{
    const char *value = intervals->options->value;
    if (value)
        rule->triggers[0].what = krait_rules_part(&intervals->rules, value);
    if (value && keep_field(intervals, &rule->triggers[0], options[0], rule->given[0], value))
        return krait_err_set(err, -ENOMEM, "out of memory");
    return make_one(intervals, rule, KRAIT_TRIGGER_VALUE, options[0], "number; --value names a field", err);
}

/* What makes rules, in the order that --name counts in. */
static const struct {
    size_t list; /* of the options */
    enum krait_rule_kind kind;
    int (*make)(struct intervals *intervals, struct krait_interval_rule *rule, const char *const *options,
                struct krait_err *err);
} kinds[] = {
    { offsetof(struct intervals_options, starts), KRAIT_RULE_PAIRS, make_pair },
    { offsetof(struct intervals_options, calls), KRAIT_RULE_CALLS, make_match },
    { offsetof(struct intervals_options, spans), KRAIT_RULE_SPANS, make_match },
    { offsetof(struct intervals_options, states), KRAIT_RULE_STATES, make_state },
    { offsetof(struct intervals_options, signals), KRAIT_RULE_SIGNAL, make_signal },
};

static const struct krait_opt_list *list_of(const struct intervals_options *o, size_t kind)
{
    return (const struct krait_opt_list *)((const char *)o + kinds[kind].list);
}

/* A rule by its patterns, which name it if no name was asked for. */
static int make_rule(struct intervals *intervals, size_t kind, size_t i, struct krait_err *err)
{
    const struct intervals_options *o = intervals->options;
    bool is_pair = kinds[kind].kind == KRAIT_RULE_PAIRS;
    const char *given = list_of(o, kind)->items[i], *stop = is_pair ? o->stops.items[i] : NULL;
    const char *const options[] = { list_of(o, kind)->options[i], is_pair ? o->stops.options[i] : NULL };
    KRAIT_AUTO_BUF name = { 0 };
    if (intervals->rules.count < o->names.count)
        krait_buf_str(&name, o->names.items[intervals->rules.count]);
    else
        krait_buf_fmt(&name, "%s%s%s", given, stop ? " .. " : "", stop ? stop : "");
    struct krait_interval_rule *rule =
        name.failed ? NULL
                    : krait_rules_add(&intervals->rules, kinds[kind].kind, name.data ? name.data : "", 2);
    if (!rule)
        return krait_err_set(err, -ENOMEM, "out of memory");
    rule->given[0] = given;
    rule->given[1] = stop;
    rule->pairing = o->nested ? KRAIT_PAIR_NESTED : o->latest ? KRAIT_PAIR_LATEST : KRAIT_PAIR_ORDER;
    return kinds[kind].make(intervals, rule, options, err);
}

static size_t count_rules(const struct intervals_options *o)
{
    size_t count = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++)
        count += list_of(o, i)->count;
    return count;
}

static int make_rules(struct intervals *intervals, struct krait_err *err)
{
    const struct intervals_options *o = intervals->options;
    int rc = check_options(o, count_rules(o), err);
    for (size_t kind = 0; kind < KRAIT_ARRAY_LEN(kinds); kind++) {
        for (size_t i = 0; i < list_of(o, kind)->count && !rc; i++)
            rc = make_rule(intervals, kind, i, err);
    }
    rc = rc ? rc : check_key(intervals, err);
    rc = rc ? rc : add_declared(intervals, err);
    rc = rc ? rc : krait_intervals_by(intervals, err);
    rc = rc ? rc : check_kinds(intervals, err);
    rc = rc ? rc : krait_select_rows(&intervals->limit, o->limit, o->csv, o->json, err);
    return rc ? rc : krait_select_rows(&intervals->plot_limit, o->limit, false, false, err);
}

/* -- what is found -- */

static bool is_shown(const void *intervals, uint32_t rule)
{
    return !((const struct intervals *)intervals)->rules.items[rule].is_hidden;
}

/* Its name with the module, as in other verbs; NULL: several functions are meant, or none, or memory is out. */
static const char *name_of_calls(struct krait_arena *arena, const struct krait_trace *trace,
                                 const struct krait_match *match)
{
    KRAIT_CLEANUP(krait_strtab_done) struct krait_strtab labels = { 0 };
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)trace->func_count + 1, sizeof(*meant));
    struct krait_err ignored;
    bool is_one = meant && !krait_match_mark(meant, trace, match, &ignored) &&
                  !krait_match_labels(&labels, trace, meant) && labels.len == 1;
    return is_one ? krait_arena_strdup(arena, labels.texts[0]) : NULL;
}

/* Calls that --name does not name have the name of their function, if it is the same in all recordings. */
static void name_calls(struct intervals *intervals, const struct krait_trace *trace)
{
    for (uint32_t i = (uint32_t)intervals->options->names.count; i < intervals->rules.count; i++) {
        struct krait_interval_rule *rule = &intervals->rules.items[i];
        if (rule->kind != KRAIT_RULE_CALLS || !rule->given[0])
            continue;
        const char *own = name_of_calls(&intervals->rules.arena, trace, rule->match);
        bool is_named = strcmp(rule->name, rule->given[0]) != 0;
        if (own && (!is_named || strcmp(rule->name, own) == 0))
            rule->name = own;
        else if (own)
            rule->name = rule->given[0];
    }
}

int krait_intervals_read(struct intervals *intervals, struct intervals_of *of, const char *const *paths,
                         size_t count)
{
    struct krait_err *err = intervals->err;
    const struct intervals_options *o = intervals->options;
    struct krait_progress progress;
    int rc = krait_trace_open(&of->trace, paths, count, 0, err);
    rc = rc ? rc
            : krait_tracks_find_kinds(
                  of->trace, krait_intervals_kinds(intervals->rules.items, intervals->rules.count), err);
    rc = rc ? rc
            : krait_rules_unmet(&intervals->rules, of->trace, is_shown, intervals, &intervals->notes, err);
    if (rc)
        return rc;
    name_calls(intervals, of->trace);
    rc = krait_within((void *)&o->select, of->trace, "intervals", err);
    if (rc)
        return rc;
    const struct krait_interval_options options = {
        .rules = intervals->rules.items,
        .rule_count = intervals->rules.count,
        .range = krait_select_range(&o->select, of->trace),
        .takes = (bool (*)(void *, const struct krait_trace *, const struct krait_track *))krait_select_place,
        .ctx = (void *)&o->select,
        .wants_stays = o->graph,
        .notes = &intervals->notes,
        .scope = krait_select_scope(&o->select),
    };
    of->zero_ns = krait_trace_zero(of->trace);
    krait_progress_begin(&progress, "intervals", of->trace);
    rc = krait_intervals_find(&of->found, of->trace, &options, of->damage, sizeof(of->damage), err);
    krait_progress_end(&progress);
    return rc ? rc : krait_intervals_refuse_samples(intervals, of);
}

void krait_intervals_of_done(struct intervals_of *of)
{
    krait_intervals_done(&of->found);
    krait_trace_close(of->trace);
}

/* Intervals, and signals below. */
static int show_tables(struct intervals *intervals)
{
    uint32_t signals = krait_intervals_of_kind(intervals, KRAIT_RULE_SIGNAL);
    bool list = intervals->options->list;
    int rc = 0;
    if (signals < krait_intervals_shown(intervals))
        rc = list                              ? krait_intervals_list(intervals)
             : intervals->options->transitions ? krait_intervals_transitions(intervals)
                                               : krait_intervals_table(intervals);
    if (rc || !signals)
        return rc;
    return list ? krait_signals_list(intervals) : krait_signals_table(intervals);
}

/* The tables of one trace. */
static int show(struct intervals *intervals)
{
    bool json = intervals->options->json;
    krait_intervals_note_nothing(intervals, &intervals->of);
    if (json)
        krait_intervals_json_open(intervals, &intervals->of);
    bool is_picture = intervals->options->graph && strcmp(intervals->options->graph, "-") == 0;
    int rc = intervals->options->compare[0] ? krait_intervals_compare(intervals)
             : is_picture                   ? 0
                                            : show_tables(intervals);
    if (json) {
        krait_intervals_json_close(intervals, &intervals->of);
        krait_buf_char(&intervals->out, '\n');
    } else if (!intervals->options->csv) {
        krait_intervals_note_missing(intervals, &intervals->of, "");
    }
    rc = rc || !intervals->options->graph ? rc : krait_intervals_graph(intervals);
    return rc || !intervals->options->plot ? rc : krait_intervals_plot(intervals);
}

/* -- the verb -- */

static void intervals_done(struct intervals *intervals)
{
    krait_rules_done(&intervals->rules);
    krait_intervals_of_done(&intervals->of);
    krait_buf_done(&intervals->out);
    krait_buf_done(&intervals->notes);
}

static void options_done(struct intervals_options *options)
{
    krait_select_done(&options->select);
    krait_opt_list_done(&options->starts);
    krait_opt_list_done(&options->stops);
    krait_opt_list_done(&options->calls);
    krait_opt_list_done(&options->spans);
    krait_opt_list_done(&options->states);
    krait_opt_list_done(&options->signals);
    krait_opt_list_done(&options->names);
    krait_opt_list_done(&options->only);
}

/* Two names of intervals, or without a trace two recordings. */
static int check_compared(const struct intervals_options *o, int argc, struct krait_err *err)
{
    const char *const *of = o->compare;
    struct stat a, b;
    if (strcmp(of[0], of[1]) == 0)
        return krait_err_set(err, -EINVAL, "--compare: '%s' is compared with itself; name two %s", of[0],
                             argc > 0 ? "intervals" : "recordings");
    for (int i = 0; i < 2 && argc == 0; i++) {
        if (stat(of[i], &a) != 0)
            return krait_err_set(
                err, -ENOENT,
                "--compare: without TRACE it takes two recordings, and '%s' is none; to compare "
                "intervals of one recording, name that, too",
                of[i]);
    }
    bool is_same =
        argc == 0 && !stat(of[0], &a) && !stat(of[1], &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    return is_same
               ? krait_err_set(err, -EINVAL, "--compare: '%s' and '%s' are the same recording", of[0], of[1])
               : 0;
}

static int check_operands(const struct intervals_options *o, int argc, struct krait_err *err)
{
    if (o->compare[0])
        return check_compared(o, argc, err);
    return krait_select_given(KRAIT_SELECT_TRACE, argc, err);
}

static int run_intervals(void *values, int argc, char **argv)
{
    struct intervals_options *options = values;
    struct krait_err err = { 0 };
    struct intervals intervals = { .options = options, .look = krait_terminal_look(stdout), .err = &err };
    options->select.shows_analyses = options->select.tells_analyses = true;
    int rc = make_rules(&intervals, &err);
    rc = rc ? rc : check_operands(options, argc, &err);
    int status = rc == -EINVAL ? krait_cmd_usage(&krait_cmd_intervals, &err) : 0;
    if (!rc && argc > 0) {
        rc = krait_intervals_read(&intervals, &intervals.of, (const char *const *)argv, (size_t)argc);
        rc = rc ? rc : show(&intervals);
    } else if (!rc) {
        rc = krait_intervals_compare(&intervals);
    }
    krait_analysis_forget_told(&intervals.notes, &options->select.told);
    if (rc && !status) /* they may say why */
        krait_terminal_print(&(struct krait_buf){ 0 }, &intervals.notes, "", NULL);
    rc = rc ? rc : krait_terminal_print(&intervals.out, &intervals.notes, "the intervals", &err);
    intervals_done(&intervals);
    options_done(options);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_intervals, &err);
}

#define OPT(field) offsetof(struct intervals_options, field)

static const struct krait_opt intervals_opts[] = {
    { "start", 0, KRAIT_OPT_LIST, "REGEX", OPT(starts),
      "Begin an interval at each message that matches; may be repeated, with a --stop for each" },
    { "stop", 0, KRAIT_OPT_LIST, "REGEX", OPT(stops), "End it at the next message that matches" },
    { "start-call", 0, KRAIT_OPT_LIST, "FUNCTION", OPT(starts),
      "In place of --start: begin an interval where this function is called, named as in --call" },
    { "start-return", 0, KRAIT_OPT_LIST, "FUNCTION", OPT(starts),
      "In place of --start: begin it where this function returns, also by an exception" },
    { "stop-call", 0, KRAIT_OPT_LIST, "FUNCTION", OPT(stops),
      "In place of --stop: end it where this function is called next" },
    { "stop-return", 0, KRAIT_OPT_LIST, "FUNCTION", OPT(stops),
      "In place of --stop: end it where this function returns next" },
    { "call", 'c', KRAIT_OPT_LIST, "FUNCTION", OPT(calls),
      "Take each call of a function as an interval, named as in report --filter; may be repeated" },
    { "steps", 0, KRAIT_OPT_FLAG, NULL, OPT(steps),
      "With --call of an async function: take each step of a call, from a resume to the next await that waits, "
      "as an interval (default: the whole call, with its waits)" },
    { "outermost", 0, KRAIT_OPT_FLAG, NULL, OPT(outermost),
      "With --call: leave out calls that begin inside another call that FUNCTION matches, as those of a recursive "
      "function do (default: count each call)" },
    { "span", 0, KRAIT_OPT_LIST, "NAME", OPT(spans),
      "Take each span of this name as an interval: of krait.span, an import, a run of the garbage collector, "
      "or, if the kernel was recorded, a system call. NAME is a glob, as in report --filter; may be repeated" },
    { "state", 0, KRAIT_OPT_LIST, "REGEX", OPT(states),
      "Take the pattern's group `state`, or its first group, as the state that begins at each matching "
      "message and ends at the next one; may be repeated" },
    { "signal", 0, KRAIT_OPT_LIST, "REGEX", OPT(signals),
      "Take the number in the pattern's group `value`, or in its first group, as a value that holds until "
      "the next matching message; may be repeated" },
    { "value", 0, KRAIT_OPT_STR, "FIELD", OPT(value),
      "With --signal: the group or the field of the event that has the number" },
    { "name", 0, KRAIT_OPT_LIST, "NAME", OPT(names),
      "Name the intervals, first those of --start and --stop, then those of --call, --span, --state and "
      "--signal; may be "
      "repeated" },
    { "key", 'k', KRAIT_OPT_STR, "FIELD", OPT(key),
      "Pair only messages that have the same text in a group of the patterns, by its name or number, or in a "
      "field of the event, such as a field of krait.mark, in a recorded argument of a call, or in $thread, "
      "$process or $task; in any thread or process (default: the group named key)" },
    { "nested", 0, KRAIT_OPT_FLAG, NULL, OPT(nested),
      "Pair a stop with the newest open start (default: the oldest)" },
    { "latest", 0, KRAIT_OPT_FLAG, NULL, OPT(latest), "Drop an open start when the next start comes" },
    { "by", 0, KRAIT_OPT_STR, "FIELD", OPT(by),
      "Show a row for each key (--by key), or for each text of a field of the start, such as --by function; of several "
      "fields, separated by commas: --by function,pool; with --list, show that text as the key" },
    { "only", 0, KRAIT_OPT_LIST, "NAME", OPT(only),
      "With -f: show only what is declared by this name, a glob; may be repeated" },
    { "list", 'l', KRAIT_OPT_FLAG, NULL, OPT(list), "Show each interval, or each value" },
    { "compare", 0, KRAIT_OPT_TWO, "A B", OPT(compare),
      "Compare two intervals by name or key, or, without TRACE, the same intervals of the recordings A and "
      "B: ratio and "
      "difference of the means, with confidence intervals" },
    { "plot", 0, KRAIT_OPT_STR, "FILE", OPT(plot),
      "Draw the durations or values over time, and their histogram, into FILE, SVG or PNG by its suffix; - "
      "draws into the "
      "terminal" },
    { "transitions", 0, KRAIT_OPT_FLAG, NULL, OPT(transitions),
      "With --state: show how often a state followed another" },
    { "graph", 0, KRAIT_OPT_STR, "FILE", OPT(graph),
      "With --state: draw the states and how they follow each other into FILE: SVG, PNG, or with the suffix .dot for "
      "Graphviz; - writes SVG to standard output, without the table" },
    { "sort", 's', KRAIT_OPT_STR, "COLUMN", OPT(sort),
      "Sort by these columns, named as in --csv and separated by commas: total_ns, p99_ns; with --list duration_ns" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show or plot N rows, 0 for all (default: 40 in a table and in a plot, all in CSV and JSON)" },
    KRAIT_SELECT_OPTS(struct intervals_options, select),
    KRAIT_SELECT_TO_OPT(struct intervals_options, select),
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print CSV, times in nanoseconds" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in nanoseconds" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_intervals = {
    .name = "intervals",
    .operands = "[TRACE...]",
    .summary = "Show the time between messages",
    .description =
        "Pairs messages that begin and end a piece of work, and shows how long that took: count, total, minimum, "
        "mean, median, percentiles, maximum, standard deviation, and how many messages have no partner.\n\n"
        "A signal is a number in a message, such as the length of a queue; its values have count, minimum, "
        "mean, median, "
        "percentiles, maximum, and rate.\n\n"
        "Messages are log records (krait record --log), krait.mark() and other notes of a recording, and the "
        "events of any other CTF trace, such as LTTng's Python agent. The message of an event is its field "
        "message, msg, text or buf; without such a field, its name and all its fields: a span's begins with "
        "span:begin and contains its name. Patterns are regular expressions like Python's, found anywhere in the "
        "message; ^ anchors one to the begin of the message.\n\n"
        "krait pairs a start and a stop of the same thread. With a key, such as an order number, it pairs those "
        "with the same key, also across threads, processes and recordings. The key is a group named key in both "
        "patterns, or what --key names.\n\n"
        "With -f, krait shows everything that declared analyses describe (docs/analyses.md).\n\n"
        "docs/intervals.md has the rules, with examples.",
    .examples =
        "# How long each run took, by the program's log\n"
        "krait record --log app -o trace -- python3 app.py\n"
        "krait intervals trace --start 'Start recursive' --stop 'Stop recursive'\n"
        "# A row for each word after Start and Stop\n"
        "krait intervals trace --start 'Start (?P<key>\\w+)' --stop 'Stop (?P<key>\\w+)' --by key\n"
        "# The slowest five, with their threads\n"
        "krait intervals trace --start Start --stop Stop --list --sort duration_ns --limit 5\n"
        "# How much slower one is than the other, with confidence; a plot of both\n"
        "krait intervals trace --start 'Start (?P<key>\\w+)' --stop 'Stop (?P<key>\\w+)' --by key --compare "
        "iterative recursive\n"
        "krait intervals trace --start 'Start (?P<key>\\w+)' --stop 'Stop (?P<key>\\w+)' --by key --plot "
        "runs.svg\n"
        "# Time in each state that a connection logs, and how they follow each other\n"
        "krait intervals trace --state 'connection (?P<key>\\d+) is (?P<state>\\w+)' --name connection\n"
        "krait intervals trace --state 'connection (?P<key>\\d+) is (?P<state>\\w+)' --graph states.svg\n"
        "# The numbers that messages have, over time\n"
        "krait intervals trace --signal 'queue has (?P<value>\\d+) items' --plot queue.svg\n"
        "# Each span of krait.span(\"serve\"), with a row for each order\n"
        "krait intervals trace --span serve --key order --by key\n"
        "# The calls of a function\n"
        "krait intervals trace --call json.loads\n"
        "# Of a recursive function only the outermost calls, without those that it makes itself\n"
        "krait intervals trace --call recursive --outermost\n"
        "# From the call of a function to the message of the same request; its argument is the key\n"
        "krait record --log app --args 'serve(rid)' -o trace -- python3 app.py\n"
        "krait intervals trace --start-call serve --stop 'sent (?P<rid>\\d+)' --key rid\n",
    .exit_status =
        "0 also if a pattern, span, function or file finds nothing: the table then has 0 intervals, or no row, "
        "and stderr the reason. 1 if krait fails, if --compare, --within, --thread or --process names what is not "
        "there, if --call is asked of samples, which have no calls, if two recordings have no key in common, or if --plot or --graph has nothing to draw; 2 for wrong "
        "usage.",
    .opts = intervals_opts,
    .values_size = sizeof(struct intervals_options),
    .run = run_intervals,
};
