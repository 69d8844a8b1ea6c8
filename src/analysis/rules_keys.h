/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules in which only some triggers have a key, such as a start without its stop: krait then ignores the key.
 *
 *   own.toml:3: interval.order.stop: it has no group 'key', as 'start' has; krait ignores that key, and pairs events of
 *   the same thread
 */
#ifndef KRAIT_ANALYSIS_RULES_KEYS_H
#define KRAIT_ANALYSIS_RULES_KEYS_H

#include "analysis/rules.h"

/* A trigger that has no key, where another of the rule has one, which `keyed` then is. NULL: all have one, or none has. */
const struct krait_trigger *krait_rules_without_key(const struct krait_interval_rule *rule,
                                                    const struct krait_trigger **keyed);

/* What krait does then, to follow "ignores that key". */
const char *krait_rules_without_key_then(const struct krait_interval_rule *rule);

/* Of a rule that the file `path` declares: adds a line to rules->notes if the key is a group of a pattern, which may be left
 * from another pattern. -EBADMSG: the file asks for the key by name; err has file, line and key. -ENOMEM. */
int krait_rules_check_keys(struct krait_rules *rules, const struct krait_interval_rule *rule,
                           const char *path, struct krait_err *err);

#endif
