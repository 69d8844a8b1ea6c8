/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timearg.h"

#include <string.h>
#include <time.h>

/* ".5" is 500000000. Returns false when something else follows. */
static bool parse_fraction(const char *text, int64_t *ns)
{
    *ns = 0;
    if (!*text)
        return true;
    if (*text++ != '.' || !*text)
        return false;
    int64_t unit = (int64_t)KRAIT_NS_PER_S;
    for (; *text >= '0' && *text <= '9'; text++) {
        unit /= 10;
        *ns += unit * (*text - '0');
    }
    return !*text;
}

static int64_t to_ns(struct tm *tm, bool gmt, int64_t fraction)
{
    tm->tm_isdst = -1;
    time_t t = gmt ? timegm(tm) : mktime(tm);
    return (int64_t)t * (int64_t)KRAIT_NS_PER_S + fraction;
}

static bool parse_seconds(struct krait_timearg *arg, const char *text)
{
    bool negative = *text == '-';
    char *end;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    int64_t fraction;
    if (errno || end == text || !parse_fraction(end, &fraction) ||
        llabs(seconds) > INT64_MAX / (long long)KRAIT_NS_PER_S - 1)
        return false;
    arg->has_day = true;
    arg->ns = seconds * (int64_t)KRAIT_NS_PER_S + (negative ? -fraction : fraction);
    return true;
}

static bool parse_clock(struct krait_timearg *arg, const char *text)
{
    struct tm tm = { 0 };
    int n = 0;
    int64_t fraction;
    int found = sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
                       &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n);
    bool dated = found == 6 && n;
    if (!dated && (sscanf(text, "%2d:%2d:%2d%n", &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n) != 3 || !n))
        return false;
    if (!parse_fraction(text + n, &fraction))
        return false;
    arg->has_day = dated;
    arg->hour = tm.tm_hour;
    arg->minute = tm.tm_min;
    arg->second = tm.tm_sec;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    arg->ns = dated ? to_ns(&tm, arg->gmt, fraction) : fraction;
    return true;
}

int krait_timearg_parse(struct krait_timearg *arg, const char *option, const char *text, bool gmt,
                        struct krait_err *err)
{
    *arg = (struct krait_timearg){ .given = text, .gmt = gmt };
    if (!text || parse_clock(arg, text) || parse_seconds(arg, text))
        return 0;
    return krait_err_set(err, -EINVAL, "--%s: '%s' is neither [YYYY-MM-DD ]hh:mm:ss[.nnnnnnnnn] nor seconds",
                         option, text);
}

int64_t krait_timearg_ns(const struct krait_timearg *arg, int64_t first_ns, int64_t not_given)
{
    if (!arg->given)
        return not_given;
    if (arg->has_day)
        return arg->ns;
    time_t first = (time_t)(first_ns / (int64_t)KRAIT_NS_PER_S);
    struct tm tm;
    if (!(arg->gmt ? gmtime_r(&first, &tm) : localtime_r(&first, &tm)))
        return not_given;
    tm.tm_hour = arg->hour;
    tm.tm_min = arg->minute;
    tm.tm_sec = arg->second;
    return to_ns(&tm, arg->gmt, arg->ns);
}
