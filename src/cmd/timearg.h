/* SPDX-License-Identifier: Apache-2.0
 *
 * Times as a user writes them, and as babeltrace2 takes them (babeltrace2-filter.utils.trimmer(7)):
 * [YYYY-MM-DD ]hh:mm[:ss[.nnnnnnnnn]], YYYY-MM-DD, or [-]seconds[.nnnnnnnnn] since the origin.
 */
#ifndef KRAIT_CMD_TIMEARG_H
#define KRAIT_CMD_TIMEARG_H

#include "base/err.h"

struct krait_timearg {
    const char *given; /* as it was written; NULL: not given */
    bool has_day;      /* seconds, or with a date: ns is the time itself */
    bool gmt;
    int hour, minute, second; /* of a time without date */
    int64_t ns;               /* the time, or the part below the second */
};

/* text may be NULL: not given. Returns 0, or -EINVAL with err naming the option. */
int krait_timearg_parse(struct krait_timearg *arg, const char *option, const char *text, bool gmt,
                        struct krait_err *err);

/* Nanoseconds since the origin. A time without a date is of the day of first_ns. */
int64_t krait_timearg_ns(const struct krait_timearg *arg, int64_t first_ns, int64_t not_given);

#endif
