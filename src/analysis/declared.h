/* SPDX-License-Identifier: Apache-2.0
 *
 * Declared analyses: rules that a TOML file names. docs/analyses.md has all keys.
 *
 *   about = "Orders of a bakery"
 *
 *   [interval.order]                            [signal.waiting]
 *   start = 'order (?P<key>\d+) is taken'       message = '(\d+) orders wait'
 *   stop = { event = "app:sent", key = "id" }
 *                                               [[state.oven]]
 *                                               event = "app:oven"
 *                                               where = { heat = "> 200" }
 *                                               state = "hot"
 *   [lane.kitchen]
 *   show = ["oven", "waiting"]
 */
#ifndef KRAIT_ANALYSIS_DECLARED_H
#define KRAIT_ANALYSIS_DECLARED_H

#include "analysis/rules.h"

/* Adds the rules of a text; `path` names it in messages. `about` (may be NULL): what the text says that it is about, in
 * rules->arena, or "". -EBADMSG: the text is no such file; err has file, line and key, and the name that may be meant.
 * -ENOMEM. */
int krait_declared_read(struct krait_rules *rules, const char *path, const char *text, size_t n,
                        const char **about, struct krait_err *err);

/* The built-in ones, which are written in the same form. */
struct krait_declared_builtin {
    const char *name, *text;
    const size_t *size;
};
extern const struct krait_declared_builtin krait_declared_builtins[]; /* ends with a name that is NULL */

#endif
