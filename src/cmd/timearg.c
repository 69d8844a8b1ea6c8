/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timearg.h"

#include <string.h>
#include <time.h>

static bool skip(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

/* Exactly `count` digits. */
static bool parse_digits(const char **text, int count, int *value)
{
    *value = 0;
    for (; count && **text >= '0' && **text <= '9'; count--)
        *value = 10 * *value + (*(*text)++ - '0');
    return count == 0;
}

/* ".5" is 500000000, and nothing is 0. Returns false when something else is there, or more than nine digits. */
static bool parse_fraction(const char *text, int64_t *ns)
{
    *ns = 0;
    if (!*text)
        return true;
    if (!skip(&text, '.') || !*text)
        return false;
    int64_t unit = (int64_t)KRAIT_NS_PER_S;
    for (; unit > 1 && *text >= '0' && *text <= '9'; text++) {
        unit /= 10;
        *ns += unit * (*text - '0');
    }
    return !*text;
}

/* Returns false where 64 bits cannot hold it. */
static bool join(int64_t seconds, int64_t fraction, int64_t *ns)
{
    return !__builtin_mul_overflow(seconds, (int64_t)KRAIT_NS_PER_S, ns) &&
           !__builtin_add_overflow(*ns, fraction, ns);
}

static bool to_ns(struct tm *tm, bool gmt, int64_t fraction, int64_t *ns)
{
    tm->tm_isdst = -1;
    return join(gmt ? timegm(tm) : mktime(tm), fraction, ns);
}

enum { RIGHT, WRONG_FORM, TOO_FAR };

static int parse_seconds(struct krait_timearg *arg, const char *text)
{
    bool negative = *text == '-';
    if (text[negative] < '0' || text[negative] > '9')
        return WRONG_FORM;
    char *end;
    errno = 0;
    long long seconds = strtoll(text, &end, 10);
    bool held = !errno;
    int64_t fraction;
    if (!parse_fraction(end, &fraction))
        return WRONG_FORM;
    arg->has_day = true;
    return held && join(seconds, negative ? -fraction : fraction, &arg->ns) ? RIGHT : TOO_FAR;
}

static bool parse_date(const char **text, struct tm *tm)
{
    return parse_digits(text, 4, &tm->tm_year) && skip(text, '-') && parse_digits(text, 2, &tm->tm_mon) &&
           skip(text, '-') && parse_digits(text, 2, &tm->tm_mday);
}

/* hh:mm[:ss[.nnnnnnnnn]] */
static bool parse_hour(const char *text, struct tm *tm, int64_t *fraction)
{
    *fraction = 0;
    if (!parse_digits(&text, 2, &tm->tm_hour) || !skip(&text, ':') || !parse_digits(&text, 2, &tm->tm_min))
        return false;
    return !*text ||
           (skip(&text, ':') && parse_digits(&text, 2, &tm->tm_sec) && parse_fraction(text, fraction));
}

static int parse_clock(struct krait_timearg *arg, const char *text)
{
    struct tm tm = { 0 };
    const char *at = text;
    int64_t fraction = 0;
    bool dated = parse_date(&at, &tm);
    if (!dated)
        at = text;
    bool whole_day = dated && !*at;
    if (!whole_day && ((dated && !skip(&at, ' ')) || !parse_hour(at, &tm, &fraction)))
        return WRONG_FORM;
    arg->has_day = dated;
    arg->hour = tm.tm_hour;
    arg->minute = tm.tm_min;
    arg->second = tm.tm_sec;
    arg->ns = fraction;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    return !dated || to_ns(&tm, arg->gmt, fraction, &arg->ns) ? RIGHT : TOO_FAR;
}

int krait_timearg_parse(struct krait_timearg *arg, const char *option, const char *text, bool gmt,
                        struct krait_err *err)
{
    *arg = (struct krait_timearg){ .given = text, .gmt = gmt };
    int found = text ? parse_clock(arg, text) : RIGHT;
    if (found == WRONG_FORM)
        found = parse_seconds(arg, text);
    if (found == TOO_FAR)
        return krait_err_set(err, -EINVAL, "--%s: '%s' is too far from 1970 for 64 bits of nanoseconds",
                             option, text);
    if (found == WRONG_FORM)
        return krait_err_set(
            err, -EINVAL,
            "--%s: '%s' is neither [YYYY-MM-DD ]hh:mm[:ss[.nnnnnnnnn]] nor YYYY-MM-DD nor seconds", option,
            text);
    return 0;
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
    int64_t ns;
    return to_ns(&tm, arg->gmt, arg->ns, &ns) ? ns : not_given;
}
