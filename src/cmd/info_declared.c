/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info -f`: what files declare, and how much of it the trace has.
 */
#include "analysis/rules_unmet.h"
#include "cmd/analysis_files.h"
#include "cmd/info.h"
#include "cmd/terminal.h"

struct finding {
    struct krait_rules rules;
    struct krait_intervals found;
};

static void finding_done(struct finding *f)
{
    krait_rules_done(&f->rules);
    krait_intervals_done(&f->found);
}

static bool is_shown(const void *unused, uint32_t rule)
{
    return true;
}

static bool takes(void *select, const struct krait_trace *trace, const struct krait_track *track)
{
    return krait_select_place(select, trace, track);
}

static const char *kind_of(const struct krait_interval_rule *rule)
{
    return rule->kind == KRAIT_RULE_STATES   ? "state"
           : rule->kind == KRAIT_RULE_SIGNAL ? "signal"
                                             : "interval";
}

/* A state that has no end counts, without its time. */
static void add_up(struct info_declared *of, const struct krait_intervals *found, uint32_t rule)
{
    for (uint32_t i = 0; i < found->row_count; i++) {
        const struct krait_interval_row *row = &found->rows[i];
        bool is_state = of->kind[1] == 't';
        of->found += row->rule != rule ? 0 : is_state ? row->starts : row->count;
        of->total_ns += row->rule == rule ? row->total_ns : 0;
    }
    for (uint32_t i = 0; i < found->signal_count; i++)
        of->found += found->signals[i].rule == rule ? found->signals[i].count : 0;
}

static int keep(struct info *info, const struct finding *f)
{
    info->declared = calloc((size_t)f->rules.count + 1, sizeof(*info->declared));
    for (uint32_t i = 0; info->declared && i < f->rules.count; i++) {
        const struct krait_interval_rule *rule = &f->rules.items[i];
        struct info_declared *of = &info->declared[info->declared_count++];
        *of = (struct info_declared){ krait_arena_strdup(&info->names, rule->name), kind_of(rule), 0, 0 };
        if (!of->name)
            return -ENOMEM;
        add_up(of, &f->found, i);
    }
    return info->declared ? 0 : -ENOMEM;
}

static int tell(struct krait_rules *rules, const struct krait_select *select, struct krait_err *err)
{
    krait_analysis_forget_told(&rules->notes, &select->told);
    return rules->notes.len ? krait_terminal_print(&(struct krait_buf){ 0 }, &rules->notes, "", err) : 0;
}

int krait_info_find_declared(struct info *info, struct krait_trace *trace, const struct krait_select *select,
                             struct krait_err *err)
{
    KRAIT_CLEANUP(finding_done) struct finding f = { 0 };
    int rc = krait_analysis_rules(&f.rules, &select->analyses, err);
    rc = rc ? rc : krait_tracks_find_kinds(trace, krait_intervals_kinds(f.rules.items, f.rules.count), err);
    rc = rc ? rc : krait_rules_unmet(&f.rules, trace, is_shown, NULL, &f.rules.notes, err);
    const struct krait_interval_options options = { .rules = f.rules.items,
                                                    .rule_count = f.rules.count,
                                                    .range = info->range,
                                                    .takes = takes,
                                                    .ctx = (void *)select,
                                                    .notes = &f.rules.notes,
                                                    .scope = krait_select_scope(select) };
    rc = rc ? rc : krait_intervals_find(&f.found, trace, &options, NULL, 0, err);
    if (!rc && keep(info, &f))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc ? rc : tell(&f.rules, select, err);
}
