/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait VERB ...`: finds the verb's row, parses its options, runs it.
 */
#include "base/suggest.h"
#include "cmd/cmds.h"
#include "cmd/help.h"
#include "cmd/terminal.h"

#include <string.h>

const struct krait_cmd *const krait_cmds[] = {
#define KRAIT_CMD(name) &krait_cmd_##name,
#include "cmd/cmds.def"
#undef KRAIT_CMD
    NULL,
};

int krait_cmd_fail(const struct krait_cmd *cmd, const struct krait_err *err)
{
    fprintf(stderr, "%skrait %s:%s ", krait_terminal_colour(stderr, KRAIT_RED), cmd->name,
            krait_terminal_colour(stderr, KRAIT_PLAIN));
    krait_terminal_error((uint32_t)(strlen("krait : ") + strlen(cmd->name)), err);
    return 1;
}

int krait_cmd_usage(const struct krait_cmd *cmd, const struct krait_err *err)
{
    krait_cmd_fail(cmd, err);
    fprintf(stderr, "Try: krait %s --help\n", cmd->name);
    return 2;
}

/* Also behind what is wrong, as long as it is no part of the command that a verb runs. */
static bool asks_help(const struct krait_cmd *cmd, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (krait_opts_is_help(argv[i]))
            return true;
        if (cmd->stop_at_operand && argv[i][0] != '-')
            return false;
    }
    return false;
}

static int print_help(const struct krait_cmd *cmd)
{
    krait_cmd_help(cmd, stdout);
    return 0;
}

static int run_cmd(const struct krait_cmd *cmd, int argc, char **argv)
{
    if (asks_help(cmd, argc, argv))
        return print_help(cmd);
    struct krait_err err = { 0 };
    KRAIT_AUTO_FREE void *values = calloc(1, KRAIT_MAX(cmd->values_size, (size_t)1));
    if (!values) {
        krait_err_set(&err, -ENOMEM, "out of memory");
        return krait_cmd_fail(cmd, &err);
    }
    int operands;
    int rc = krait_opts_parse(cmd->opts, cmd->stop_at_operand, argc, argv, values, &operands, &err);
    if (rc)
        return rc == KRAIT_OPTS_HELP ? print_help(cmd) : krait_cmd_usage(cmd, &err);
    return cmd->run(values, operands, argv + 1);
}

/* NULL for the verb that is not there. */
static const struct krait_cmd *find_cmd(const char *verb)
{
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (strcmp((*cmd)->name, verb) == 0)
            return *cmd;
    }
    return NULL;
}

static bool is_python_file(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".py") == 0 && access(name, F_OK) == 0;
}

static int no_such_verb(const char *verb)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(verb, strlen(verb));
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (!(*cmd)->hidden)
            krait_suggest_try(&suggest, (*cmd)->name);
    }
    krait_suggest_try(&suggest, "help");
    krait_suggest_try(&suggest, "version");
    fputs("krait: no verb '", stderr);
    krait_terminal_safe(stderr, verb);
    if (suggest.best)
        fprintf(stderr, "'; did you mean '%s'?\n", suggest.best);
    else
        fputs("'\n", stderr);
    fputs(is_python_file(verb) ? "Try: krait record -- python3 FILE\n" : "Try: krait help\n", stderr);
    return 2;
}

/* What is made from the source's tables. */
static const struct {
    const char *topic;
    void (*print)(FILE *to);
} texts[] = {
    { "markdown", krait_help_markdown },
    { "endpoints", krait_help_endpoints },
    { "completion", krait_help_completion },
};

static int run_help(int argc, char **argv)
{
    const char *topic = argc > 2 ? argv[2] : "";
    if (strcmp(topic, "man") == 0)
        return krait_help_man(argc > 3 ? argv[3] : "", stdout) ? no_such_verb(argv[3]) : 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        if (strcmp(topic, texts[i].topic) == 0) {
            texts[i].print(stdout);
            return 0;
        }
    }
    bool plain = strcmp(topic, "help") == 0 || strcmp(topic, "version") == 0; /* verbs without options */
    const struct krait_cmd *cmd = plain ? NULL : find_cmd(topic);
    if (*topic && !cmd && !plain)
        return no_such_verb(topic);
    if (cmd)
        krait_cmd_help(cmd, stdout);
    else
        krait_help_all(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "help";
    if (strcmp(verb, "--version") == 0 || strcmp(verb, "-V") == 0 || strcmp(verb, "version") == 0) {
        puts("krait " KRAIT_VERSION);
        return 0;
    }
    if (strcmp(verb, "help") == 0 || krait_opts_is_help(verb))
        return run_help(argc, argv);
    const struct krait_cmd *cmd = find_cmd(verb);
    return cmd ? run_cmd(cmd, argc - 1, argv + 1) : no_such_verb(verb);
}
