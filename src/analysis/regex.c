/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "analysis/regex.h"

#include <pcre2.h>
#include <string.h>

/* Steps of one search: a tenth of a second at most. PCRE2 allows ten million unless told otherwise (pcre2api,
 * pcre2_set_match_limit). */
enum { MOST_STEPS = 1000000 };

struct krait_regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    __typeof__(pcre2_match) *find; /* by machine code, where it can be made */
    uint64_t given_up;
    char *pattern;
    const char *text; /* that was searched */
};

void krait_regex_free(struct krait_regex *regex)
{
    if (!regex)
        return;
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex->pattern);
    free(regex);
}

static int refuse(const char *pattern, int number, size_t at, struct krait_err *err)
{
    PCRE2_UCHAR why[160];
    pcre2_get_error_message(number, why, sizeof(why));
    return krait_err_set(err, -EINVAL, "'%s' is no regular expression: %s, at byte %zu", pattern, (char *)why,
                         at + 1);
}

int krait_regex_new(struct krait_regex **out, const char *pattern, struct krait_err *err)
{
    int number;
    size_t at;
    struct krait_regex *regex = calloc(1, sizeof(*regex));
    if (!regex)
        return krait_err_set(err, -ENOMEM, "out of memory");
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
                                &number, &at, NULL);
    if (!regex->code) {
        free(regex);
        return refuse(pattern, number, at, err);
    }
    regex->find = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) ? pcre2_match : pcre2_jit_match;
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    regex->limits = pcre2_match_context_create(NULL);
    regex->pattern = strdup(pattern);
    if (!regex->match || !regex->limits || !regex->pattern) {
        krait_regex_free(regex);
        return krait_err_set(err, -ENOMEM, "out of memory");
    }
    pcre2_set_match_limit(regex->limits, MOST_STEPS);
    *out = regex;
    return 0;
}

bool krait_regex_find(struct krait_regex *regex, const char *text, size_t n)
{
    int rc = regex->find(regex->code, (PCRE2_SPTR)text, KRAIT_MIN(n, (size_t)KRAIT_REGEX_MOST), 0, 0,
                         regex->match, regex->limits);
    regex->text = text;
    regex->given_up += rc < 0 && rc != PCRE2_ERROR_NOMATCH;
    return rc > 0;
}

const char *krait_regex_pattern(const struct krait_regex *regex)
{
    return regex->pattern;
}

uint64_t krait_regex_given_up(const struct krait_regex *regex)
{
    return regex ? regex->given_up : 0;
}

uint32_t krait_regex_group(const struct krait_regex *regex, const char *name)
{
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    uint32_t count = 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &count);
    if (end > name && !*end)
        return number <= count ? (uint32_t)number : 0;
    int named = pcre2_substring_number_from_name(regex->code, (PCRE2_SPTR)name);
    return named > 0 ? (uint32_t)named : 0;
}

/* The table has entries of one size: two bytes of the group's number, and the name with its NUL (pcre2api, "Information
 * about a compiled pattern"). */
const char *krait_regex_name(const struct krait_regex *regex, uint32_t i)
{
    uint32_t count = 0, size = 0;
    PCRE2_SPTR table = NULL;
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &table);
    return i < count ? (const char *)table + (size_t)i * size + 2 : NULL;
}

const char *krait_regex_part(const struct krait_regex *regex, uint32_t group, size_t *n)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(regex->match);
    if (group >= pcre2_get_ovector_count(regex->match) || ends[2 * group] == PCRE2_UNSET)
        return NULL;
    *n = ends[2 * group + 1] - ends[2 * group];
    return regex->text + ends[2 * group];
}
