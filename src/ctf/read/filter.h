/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects events by an expression over their name, contexts and fields, as in LTTng's event rules.
 *
 *   name == "sched_*" && (prev_tid == 0 || $ctx.procname != bash) && !(args[0] >= 0x10)
 *
 *   expr   = and { "||" and }            and  = unary { "&&" unary }
 *   unary  = "!" unary | "(" expr ")" | field [ op value ]
 *   field  = "name" | path | "$ctx." path | "payload." path       op = == != < <= > >=
 *   value  = number | "text" | word
 *
 * A path without a scope is looked up in the payload, then in the contexts of the event, the stream and the packet.
 * Without an operator, it is true if the number is not 0 or the text is not empty. In a text for == and !=, * matches
 * anything; \* is a star. A comparison with a field that the event does not have is false, for any operator.
 * Source: lttng-enable-event(1), "Filter expression"; `name` and words without quotes are krait's additions.
 */
#ifndef KRAIT_CTF_READ_FILTER_H
#define KRAIT_CTF_READ_FILTER_H

#include "ctf/read/value.h"

struct krait_filter;

/* Errors: -EINVAL with the column (from 1) of the mistake, -ENOMEM. */
int krait_filter_new(struct krait_filter **out, const char *text, struct krait_err *err);
void krait_filter_free(struct krait_filter *filter);

/* Finds the fields in all event classes of the reader. -EINVAL: one is in none of them. */
int krait_filter_bind(struct krait_filter *filter, const struct krait_ctf_reader *reader,
                      struct krait_err *err);

/* Appends a sentence for each text that event names are compared with by == and that no event class of the reader is called:
 * "filter, column 1: no event of this trace is called 'sched_swich'; did you mean 'sched_switch'?", with a line end before each
 * but the first. Check out->failed. */
void krait_filter_unmet_names(const struct krait_filter *filter, const struct krait_ctf_reader *reader,
                              struct krait_buf *out);

/* Whether the cursor's event, which must have been skipped, matches. */
bool krait_filter_wants(const struct krait_filter *filter, struct krait_ctf_cursor *cursor);

/* Whether events of a class can match, by their name and their fields. */
bool krait_filter_may_want(const struct krait_filter *filter, const struct krait_event_class *event);

#endif
