/* SPDX-License-Identifier: Apache-2.0
 *
 * --within: the range of one interval, as krait intervals finds them: a span, a call of a function, the time from a
 * message to another, or what a file declares, of which a state or a key may follow.
 *
 *   serve:3   serve:slowest   serve:fastest   'Start .. Stop:last'   oven:slowest   oven.hot:2
 */
#ifndef KRAIT_CMD_WITHIN_H
#define KRAIT_CMD_WITHIN_H

#include "analysis/match.h"
#include "cmd/select.h"

/* Makes the interval that select->within names, if it names one, the selection's range, and says on stderr which it is. If
 * it names several, and the verb sums them up (sums_parts), they become select->parts, and the range goes from the first to
 * the last. Threads and processes that are not selected have none. To be called before the range is asked for. Returns 0,
 * -ENOENT, -EINVAL or -ENOMEM, with err set. */
int krait_within(struct krait_select *select, struct krait_trace *trace, const char *verb,
                 struct krait_err *err);

/* After a failure: if `asked` names no function but spans, `err` says so, and that --within goes with `option`. Returns
 * err's code. */
int krait_within_no_function(struct krait_trace *trace, const struct krait_match *asked, const char *option,
                             struct krait_err *err);

#endif
