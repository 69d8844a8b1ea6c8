/* SPDX-License-Identifier: Apache-2.0
 *
 * docs/reference.md, from the verbs' rows: `krait help markdown`.
 */
#include "cmd/cmd.h"
#include "cmd/help.h"

#include <string.h>

/* A table's cell: what would end it, or begin markup, is escaped. */
static void cell(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (strchr("|<>*_", *text))
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void code_cell(const char *text, FILE *to)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', to); /* the table is taken apart before the code is */
        fputc(*text, to);
    }
}

static void option_row(const struct krait_opt *opt, FILE *to)
{
    fputs("| ", to);
    if (opt->letter)
        fprintf(to, "`-%c`, ", opt->letter);
    fprintf(to, "`--%s", opt->name);
    if (opt->arg) {
        fputs(krait_opt_joint(opt), to);
        code_cell(opt->arg, to);
    }
    fputs("` | ", to);
    cell(opt->help, to);
    fputs(" |\n", to);
}

static void indented(const char *text, FILE *to)
{
    while (*text) {
        int n = (int)strcspn(text, "\n");
        fprintf(to, "    %.*s\n", n, text);
        text += n + (text[n] == '\n');
    }
}

static void verb_page(const struct krait_cmd *cmd, FILE *to)
{
    fprintf(to, "\n## krait %s\n\n%s.\n\n    krait %s [options]%s%s\n\n%s\n", cmd->name, cmd->summary,
            cmd->name, *cmd->operands ? " " : "", cmd->operands, cmd->description);
    if (cmd->opts->name)
        fputs("\n| option | |\n|---|---|\n", to);
    for (const struct krait_opt *opt = cmd->opts; opt->name; opt++)
        if (opt->help)
            option_row(opt, to);
    if (cmd->examples) {
        fputc('\n', to);
        indented(cmd->examples, to);
    }
    if (cmd->exit_status)
        fprintf(to, "\nExit status: %s\n", cmd->exit_status);
}

void krait_help_markdown(FILE *to)
{
    fputs("# The command, verb by verb\n\n"
          "Made from the verbs' table by `make reference`; the manual pages and `--help` say the same. Every "
          "verb has\n"
          "`-h`, `--help`. Exit status, where nothing else is said: 0 done, 1 failed (the reason is on "
          "stderr),\n"
          "2 wrong usage. `NO_COLOR` in the environment switches colour off.\n",
          to);
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (!(*cmd)->hidden)
            verb_page(*cmd, to);
    }
}
