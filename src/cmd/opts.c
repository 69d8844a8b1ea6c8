/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/opts.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/suggest.h"

#include <string.h>

static const struct krait_opt *find_long(const struct krait_opt *table, const char *name, size_t n)
{
    for (; table->name; table++) {
        if (strlen(table->name) == n && memcmp(table->name, name, n) == 0)
            return table;
    }
    return NULL;
}

static const struct krait_opt *find_short(const struct krait_opt *table, char letter)
{
    for (; table->name; table++) {
        if (table->letter == letter)
            return table;
    }
    return NULL;
}

static int bad_value(const struct krait_opt *opt, const char *value, const char *wanted,
                     struct krait_err *err)
{
    return krait_err_set(err, -EINVAL, "--%s: '%s' is not %s", opt->name, value, wanted);
}

static int set_uint(const struct krait_opt *opt, const char *value, uint64_t *to, struct krait_err *err)
{
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 10);
    if (errno || end == value || *end || value[0] == '-' || !n)
        return bad_value(opt, value, "a whole number above 0", err);
    *to = n;
    return 0;
}

static int set_size(const struct krait_opt *opt, const char *value, uint64_t *to, struct krait_err *err)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    uint64_t n = strtoull(value, &end, 10);
    const char *unit = end > value && *end ? strchr(units, *end & ~0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (unit)
        end++;
    if (errno || end == value || *end || value[0] == '-' || !n || (shift && n >> (64 - shift)))
        return bad_value(opt, value, "a size such as 512K or 1M", err);
    *to = n << shift;
    return 0;
}

/* Where none is a size too. */
static int set_room(const struct krait_opt *opt, const char *value, uint64_t *to, struct krait_err *err)
{
    if (strcmp(value, "0") != 0)
        return set_size(opt, value, to, err);
    *to = 1;
    return 0;
}

static int set_time(const struct krait_opt *opt, const char *value, uint64_t *to, struct krait_err *err)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = { { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "m", 60e9 }, { "h", 3600e9 } };
    char *end;
    errno = 0;
    double n = strtod(value, &end);
    for (size_t i = 0; !errno && end > value && i < KRAIT_ARRAY_LEN(units); i++) {
        double ns = n * units[i].ns;
        if (strcmp(end, units[i].name) != 0 || !(ns >= 1 && ns < 9e18))
            continue;
        *to = (uint64_t)ns;
        return 0;
    }
    return bad_value(opt, value, "a time such as 5s, 200ms, 10m or 2h", err);
}

/* A size has a unit in capitals, B behind it or not; all else is a time. */
static int set_last(const struct krait_opt *opt, const char *value, struct krait_opt_last *to,
                    struct krait_err *err)
{
    char number[32];
    size_t n = strlen(value);
    const char *unit = strpbrk(value, "KMGTB");
    if (!unit || n >= sizeof(number))
        return set_time(opt, value, &to->ns, err);
    snprintf(number, sizeof(number), "%s", value);
    if (number[n - 1] == 'B')
        number[--n] = '\0';
    return set_size(opt, number, &to->bytes, err);
}

static int set_double(const struct krait_opt *opt, const char *value, double *to, struct krait_err *err)
{
    char *end;
    errno = 0;
    double x = strtod(value, &end);
    if (errno || end == value || *end)
        return bad_value(opt, value, "a number", err);
    *to = x;
    return 0;
}

static int add_to_list(struct krait_opt_list *list, const char *option, const char *value,
                       struct krait_err *err)
{
    if (!KRAIT_GROW(list->items, list->cap, list->count + 1) ||
        !KRAIT_GROW(list->options, list->option_cap, list->count + 1))
        return krait_err_set(err, -ENOMEM, "out of memory");
    list->options[list->count] = option;
    list->items[list->count++] = value;
    return 0;
}

static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = choices; n && p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) {
        if (strncmp(p, value, n) == 0 && (p[n] == '|' || p[n] == '\0'))
            return true;
    }
    return false;
}

/* The choice that is meant, in `words`; NULL: none is near. */
static const char *nearest_choice(struct krait_buf *words, const char *choices, const char *value)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(value, strlen(value));
    krait_buf_str(words, choices);
    for (char *at = words->failed ? NULL : words->data, *end; at; at = end) {
        end = strchr(at, '|');
        if (end)
            *end++ = '\0';
        krait_suggest_try(&suggest, at);
    }
    return suggest.best;
}

/* A long list takes lines of its own, broken between its words. */
static int say_choices(const struct krait_opt *opt, const char *value, struct krait_err *err)
{
    enum { SHORT = 64, WIDTH = 72 };
    KRAIT_AUTO_BUF list = { 0 };
    KRAIT_AUTO_BUF words = { 0 };
    const char *near = nearest_choice(&words, opt->arg, value);
    size_t n = strlen(opt->arg), column = 0;
    if (near)
        return krait_err_set(err, -EINVAL, "--%s: '%s' is not one of its values; did you mean '%s'?",
                             opt->name, value, near);
    if (n <= SHORT)
        return krait_err_set(err, -EINVAL, "--%s: '%s' is not one of %s", opt->name, value, opt->arg);
    for (const char *at = opt->arg, *end; *at; at = end) {
        end = strchrnul(at, '|');
        end += *end == '|';
        if (!column || column + (size_t)(end - at) > WIDTH) {
            krait_buf_str(&list, "\n  ");
            column = 2;
        }
        krait_buf_add(&list, at, (size_t)(end - at));
        column += (size_t)(end - at);
    }
    return krait_err_lines(err, krait_err_set(err, -EINVAL, "--%s: '%s' is not one of%s", opt->name, value,
                                              list.data ? list.data : ""));
}

static int set_value(const struct krait_opt *opt, const char *value, void *values, struct krait_err *err)
{
    void *to = (char *)values + opt->offset;
    switch (opt->type) {
    case KRAIT_OPT_FLAG:
        *(bool *)to = true;
        return 0;
    case KRAIT_OPT_STR:
    case KRAIT_OPT_MAYBE:
        *(const char **)to = value;
        return 0;
    case KRAIT_OPT_UINT:
        return set_uint(opt, value, to, err);
    case KRAIT_OPT_SIZE:
        return set_size(opt, value, to, err);
    case KRAIT_OPT_ROOM:
        return set_room(opt, value, to, err);
    case KRAIT_OPT_TIME:
        return set_time(opt, value, to, err);
    case KRAIT_OPT_LAST:
        return set_last(opt, value, to, err);
    case KRAIT_OPT_DOUBLE:
        return set_double(opt, value, to, err);
    case KRAIT_OPT_LIST:
    case KRAIT_OPT_SOME:
        return add_to_list(to, opt->name, value, err);
    case KRAIT_OPT_TWO:
        return -EINVAL; /* set_two */
    case KRAIT_OPT_CHOICE:
        if (!is_choice(opt->arg, value))
            return say_choices(opt, value, err);
        *(const char **)to = value;
        return 0;
    }
    return -EINVAL;
}

static int set_two(const struct krait_opt *opt, const char *first, const char *second, void *values,
                   struct krait_err *err)
{
    const char **to = (const char **)((char *)values + opt->offset);
    if (!second)
        return krait_err_set(err, -EINVAL, "--%s needs %s", opt->name, opt->arg);
    to[0] = first;
    to[1] = second;
    return 0;
}

/* What the parser walks along. */
struct args {
    int argc;
    char **argv;
    int at;
};

static const char *next_arg(struct args *args)
{
    return args->at < args->argc ? args->argv[args->at++] : NULL;
}

/* What stands behind an option that takes one. */
static const char *argument(const struct krait_opt *opt, struct args *args)
{
    bool is_there = args->at < args->argc && args->argv[args->at][0] != '-';
    bool may_be_left_out = opt->type == KRAIT_OPT_MAYBE || (opt->type == KRAIT_OPT_SOME && !is_there);
    return may_be_left_out ? "" : next_arg(args);
}

static int no_such_option(const struct krait_opt *table, const char *word, size_t n, struct krait_err *err)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(word, n);
    for (; table->name; table++)
        krait_suggest_try(&suggest, table->name);
    if (!suggest.best)
        return krait_err_set(err, -EINVAL, "no option --%.*s", (int)n, word);
    return krait_err_set(err, -EINVAL, "no option --%.*s; did you mean --%s?", (int)n, word, suggest.best);
}

static int parse_long(const struct krait_opt *table, const char *word, struct args *args, void *values,
                      struct krait_err *err)
{
    const char *eq = strchr(word, '=');
    size_t n = eq ? (size_t)(eq - word) : strlen(word);
    const struct krait_opt *opt = find_long(table, word, n);
    if (!opt)
        return no_such_option(table, word, n, err);
    if (opt->type == KRAIT_OPT_FLAG) {
        if (eq)
            return krait_err_set(err, -EINVAL, "--%s takes no value", opt->name);
        return set_value(opt, NULL, values, err);
    }
    if (opt->type == KRAIT_OPT_MAYBE && eq && !eq[1])
        return krait_err_set(err, -EINVAL, "--%s= is empty; leave out the =, or name some", opt->name);
    const char *value = eq ? eq + 1 : argument(opt, args);
    if (!value)
        return krait_err_set(err, -EINVAL, "--%s needs %s", opt->name, opt->arg);
    return opt->type == KRAIT_OPT_TWO ? set_two(opt, value, next_arg(args), values, err)
                                      : set_value(opt, value, values, err);
}

static int parse_short(const struct krait_opt *table, const char *word, struct args *args, void *values,
                       struct krait_err *err)
{
    for (; *word; word++) {
        const struct krait_opt *opt = find_short(table, *word);
        if (!opt)
            return krait_err_set(err, -EINVAL, "no option -%c", *word);
        if (opt->type == KRAIT_OPT_FLAG) {
            set_value(opt, NULL, values, err);
            continue;
        }
        const char *value = word[1] ? word + 1 : next_arg(args);
        if (!value)
            return krait_err_set(err, -EINVAL, "-%c needs %s", opt->letter, opt->arg);
        return set_value(opt, value, values, err);
    }
    return 0;
}

static int parse_all(const struct krait_opt *table, bool stop_at_operand, int argc, char **argv, void *values,
                     int *operands, struct krait_err *err)
{
    struct args args = { .argc = argc, .argv = argv, .at = 1 };
    int kept = 1;
    bool options_end = false;
    const char *word;
    while ((word = next_arg(&args))) {
        int rc = 0;
        if (options_end || word[0] != '-' || !word[1]) {
            argv[kept++] = (char *)word;
            options_end = options_end || stop_at_operand;
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
        } else if (krait_opts_is_help(word)) {
            rc = KRAIT_OPTS_HELP;
        } else if (word[1] == '-') {
            rc = parse_long(table, word + 2, &args, values, err);
        } else {
            rc = parse_short(table, word + 1, &args, values, err);
        }
        if (rc)
            return rc;
    }
    *operands = kept - 1;
    return 0;
}

/* Several options may have one list. */
static void free_lists(const struct krait_opt *table, void *values)
{
    for (; table->name; table++) {
        struct krait_opt_list *list = (struct krait_opt_list *)((char *)values + table->offset);
        if (table->type != KRAIT_OPT_LIST && table->type != KRAIT_OPT_SOME)
            continue;
        krait_opt_list_done(list);
        *list = (struct krait_opt_list){ 0 };
    }
}

int krait_opts_parse(const struct krait_opt *table, bool stop_at_operand, int argc, char **argv, void *values,
                     int *operands, struct krait_err *err)
{
    int rc = parse_all(table, stop_at_operand, argc, argv, values, operands, err);
    if (rc)
        free_lists(table, values);
    return rc;
}
