/* SPDX-License-Identifier: Apache-2.0
 *
 * Options as tables. A row has the option's name, argument, help text, and the place of its value in the verb's own
 * options struct. Parsing, --help, the manual pages and the shell completion all use the rows.
 */
#ifndef KRAIT_CMD_OPTS_H
#define KRAIT_CMD_OPTS_H

#include "base/err.h"

#include <string.h>

enum krait_opt_type {
    KRAIT_OPT_FLAG,   /* bool: set to true */
    KRAIT_OPT_STR,    /* const char * */
    KRAIT_OPT_UINT,   /* uint64_t, decimal; 0 is what was not given, and is refused, as of the next one */
    KRAIT_OPT_SIZE,   /* uint64_t bytes: 512K, 1M, 2G */
    KRAIT_OPT_ROOM,   /* the same, or 0, which is taken as 1 byte: room for nothing */
    KRAIT_OPT_TIME,   /* uint64_t ns: 5 or 5s, 200ms, 10m, 2h */
    KRAIT_OPT_LAST,   /* struct krait_opt_last: a time as above, or a size: 10s, 10m, 256MB, 1G */
    KRAIT_OPT_DOUBLE, /* double */
    KRAIT_OPT_LIST,   /* struct krait_opt_list: may be given more than once */
    KRAIT_OPT_SOME,   /* the same; left out before another option, --, or the end it is the empty text */
    KRAIT_OPT_CHOICE, /* const char *, one of the words in `arg`, written a|b|c */
    KRAIT_OPT_TWO,    /* const char *[2]: two arguments; has no short name */
    KRAIT_OPT_MAYBE,  /* const char *, only as --name=VALUE; --name alone sets the empty text */
};

struct krait_opt_last {
    uint64_t ns, bytes; /* one of them */
};

/* Several options may have one list. */
struct krait_opt_list {
    const char **items;   /* owned */
    const char **options; /* owned; the name of the option that gave each */
    size_t count, cap, option_cap;
};

static inline void krait_opt_list_done(struct krait_opt_list *list)
{
    free(list->items);
    free(list->options);
}

struct krait_opt {
    const char *name; /* long name without dashes; NULL ends the table */
    char letter;      /* short name, or 0 */
    enum krait_opt_type type;
    const char *arg;  /* what --help calls the argument: DIR, PERCENT, a|b|c, [=VALUE]; NULL for flags */
    size_t offset;    /* of the value in the options struct */
    const char *help; /* one sentence, no full stop; also the manual page's text; NULL: an alias, left out */
};

/* What stands between the option and its argument, in help. */
static inline const char *krait_opt_joint(const struct krait_opt *opt)
{
    return !opt->arg || opt->type == KRAIT_OPT_MAYBE ? "" : " ";
}

#define KRAIT_OPTS_END                         \
    {                                          \
        NULL, 0, KRAIT_OPT_FLAG, NULL, 0, NULL \
    }

enum { KRAIT_OPTS_HELP = 1 };

static inline bool krait_opts_is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Parses argv[1..argc-1] into `values` (the verb's struct). Options and operands may be mixed, up to `--` or,
 * with stop_at_operand, up to the first operand. Operands are moved to the front of argv[1..]; *operands is
 * how many. Returns 0; KRAIT_OPTS_HELP at --help or -h; or -EINVAL with err naming the argument and what would be right.
 * If it is not 0, the lists are empty. */
int krait_opts_parse(const struct krait_opt *table, bool stop_at_operand, int argc, char **argv, void *values,
                     int *operands, struct krait_err *err);

#endif
