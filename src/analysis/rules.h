/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of intervals, states and signals as they are made: from a command line, or from a file (declared.h).
 */
#ifndef KRAIT_ANALYSIS_RULES_H
#define KRAIT_ANALYSIS_RULES_H

#include "analysis/intervals.h"
#include "base/arena.h"

/* A lane that a file declares: which of its rules it draws. */
struct krait_rule_lane {
    const char *title;
    const char *const *names; /* of rules; as indices in `rules` when the file was read */
    uint32_t *rules, count;
    const char *const *keys; /* globs: only intervals, states and values of these keys; none: all */
    uint32_t key_count;
    uint32_t first, end; /* the rules of its file: those that no lane names are not drawn */
    uint32_t line;       /* where the file has the names */
    /* Of a view of Trace Compass: provider_views.c */
    bool are_paths; /* keys are attributes; a star is one step of their paths */
    bool is_curve;  /* states are numbers, drawn as a curve */
    const struct krait_rule_label {
        const char *value, *name;
    } * labels; /* other names of states */
    uint32_t label_count;
};

/* The name of an event or of a field, as a file has it: whether a trace has such is known when one is opened. */
struct krait_rule_name {
    const char *at; /* "FILE:LINE: SECTION.NAME.KEY: " */
    const char *name;
    const struct krait_trigger *trigger; /* whose event it is, or whose events have the field */
    uint32_t rule;
    bool is_field;
    bool is_of_many; /* the file is for many traces, of which some rightly lack the event */
};

struct krait_rules { /* zeroed memory has none */
    struct krait_interval_rule *items;
    uint32_t count, cap;
    struct krait_rule_lane *lanes;
    uint32_t lane_count, lane_cap;
    struct krait_rule_name *named;
    uint32_t named_count, named_cap;
    struct krait_arena arena; /* what they point to, patterns aside */
    struct krait_buf notes;   /* lines for the user: what is left out of files */
};

void krait_rules_done(struct krait_rules *rules);

/* One more, with room for some triggers. Strings are copied. NULL when memory is out. Valid until the next one. */
struct krait_interval_rule *krait_rules_add(struct krait_rules *rules, enum krait_rule_kind kind,
                                            const char *name, uint32_t triggers);

/* One more of a rule's, with a pattern, or NULL. -EINVAL: it is none. */
int krait_rules_trigger(struct krait_interval_rule *rule, enum krait_trigger_role role, const char *pattern,
                        struct krait_err *err);

/* Which functions or spans it is about; `pattern` is copied. */
int krait_rules_match(struct krait_rules *rules, struct krait_interval_rule *rule, const char *pattern,
                      struct krait_err *err);

/* One more. Returns 0 or -ENOMEM. */
int krait_rules_name(struct krait_rules *rules, const struct krait_rule_name *name);

/* A line in `notes` for a rule that is not looked for, and why: other rules of its file are not wrong because a program
 * has no such function. `at`: the line. One of an option has no name in it. Returns 0 or -ENOMEM. */
int krait_rules_leave_out(struct krait_buf *notes, const struct krait_interval_rule *rule, const char *at,
                          struct krait_err *err);

/* Puts "path:line: " before the reason why a file cannot be read, or "path: " if `line` is 0. Returns err's code. */
int krait_rules_err_line(struct krait_err *err, int code, const char *path, uint32_t line);

/* A template of one part of the event. Its count is 0 when memory is out. */
struct krait_template krait_rules_part(struct krait_rules *rules, const char *part);

#endif
