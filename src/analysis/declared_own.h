/* SPDX-License-Identifier: Apache-2.0
 *
 * What declared.c, declared_keys.c and declared_triggers.c share. Functions return 0, or a negative errno with err set.
 */
#ifndef KRAIT_ANALYSIS_DECLARED_OWN_H
#define KRAIT_ANALYSIS_DECLARED_OWN_H

#include "analysis/rules.h"
#include "base/toml.h"

struct krait_declared_reader {
    struct krait_rules *rules;
    const char *path;
    uint32_t first;             /* rule of the file */
    const char *section, *name; /* of what is read */
    const char *edge;           /* the key whose table is read: start, stop or after; NULL: none */
    bool is_in_where;           /* of the trigger */
    struct krait_interval_rule *rule;
    struct krait_trigger *trigger; /* of it, that is read */
    struct krait_rule_lane *lane;  /* that is read */
    struct krait_err *err;
};

/* What may stand in a table. `take` reads a key's value; NULL: who knows the table reads it. */
struct krait_declared_key {
    const char *name;
    int (*take)(struct krait_declared_reader *r, const struct krait_toml *value);
};

struct krait_declared_keys {
    const struct krait_declared_key *items;
    size_t count;
};

/* By enum krait_trigger_role. */
extern const struct krait_declared_keys krait_declared_trigger_keys[];

/* "FILE:LINE: SECTION.NAME.KEY: ", with the keys between where tables are nested; NULL when memory is out. */
const char *krait_declared_place(struct krait_declared_reader *r, uint32_t line, const char *key);
int krait_declared_no_memory(struct krait_declared_reader *r);
/* Says what is wrong, behind its place. */
int krait_declared_refuse(struct krait_declared_reader *r, const struct krait_toml *at, const char *fmt, ...)
    KRAIT_PRINTF(3, 4);
/* A name that is none of some; `of` gives NULL for what is not among them. */
int krait_declared_refuse_name(struct krait_declared_reader *r, const struct krait_toml *at, const char *what,
                               const char *name, const char *(*of)(const void *list, size_t i),
                               const void *list, size_t count);

/* Reads all keys of a table. */
int krait_declared_take_keys(struct krait_declared_reader *r, const struct krait_toml *table,
                             const struct krait_declared_keys *keys);
int krait_declared_need_text(struct krait_declared_reader *r, const struct krait_toml *value);
/* A text, or several in an array: how many, 0: none of these. And the first one. */
uint32_t krait_declared_count_texts(const struct krait_toml *value);
const struct krait_toml *krait_declared_first(const struct krait_toml *value);

/* A field may be one of another trace; what begins with a dollar is known. */
int krait_declared_check_part(struct krait_declared_reader *r, const struct krait_toml *at, const char *part);
/* The trigger's key, and what names its row. */
int krait_declared_take_key(struct krait_declared_reader *r, const struct krait_toml *value);
int krait_declared_take_by(struct krait_declared_reader *r, const struct krait_toml *value);
/* One more trigger of the rule. A text alone is its message. */
int krait_declared_trigger(struct krait_declared_reader *r, const struct krait_toml *value,
                           enum krait_trigger_role role);

#endif
