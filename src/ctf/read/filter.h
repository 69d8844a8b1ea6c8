/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events to show: an expression over their name, contexts and fields, as LTTng's event rules have it.
 *
 *   name == "sched_*" && (prev_tid == 0 || $ctx.procname != bash) && !(args[0] >= 0x10)
 *
 *   expr   = and { "||" and }            and  = unary { "&&" unary }
 *   unary  = "!" unary | "(" expr ")" | field [ op value ]
 *   field  = "name" | path | "$ctx." path | "payload." path       op = == != < <= > >=
 *   value  = number | "text" | word
 *
 * A path alone looks in the payload, then the event's own context, the stream's, the packet's; without an
 * operator it asks whether the number is not 0 or the text not empty. In texts for == and !=, * stands for
 * anything; \* is a star. A comparison with a field that the event does not have is false, whatever the
 * operator. Source: lttng-enable-event(1), "Filter expression"; words without quotes and `name` are ours.
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

/* Whether the cursor's event, which was passed, is wanted. */
bool krait_filter_wants(const struct krait_filter *filter, struct krait_ctf_cursor *cursor);

/* Whether events of a class may be wanted, by their name and by which fields they have. */
bool krait_filter_may_want(const struct krait_filter *filter, const struct krait_event_class *event);

#endif
