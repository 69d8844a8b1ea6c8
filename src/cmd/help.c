/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed from the verbs' rows: help, manual pages (mdoc) and shell completion, so that none can lag behind.
 */
#include "cmd/cmd.h"

#include "cmd/help.h"
#include "cmd/terminal.h"
#include "view/width.h"

#include <ctype.h>
#include <string.h>

/* How help is laid out: within the terminal, or 80 columns if there is none. */
struct layout {
    uint32_t width;
    uint32_t column; /* where the texts of options begin */
};

static struct layout layout_of(FILE *to)
{
    enum { USUAL = 80, LEAST = 30, MOST = 110, NARROW = 60 };
    uint32_t width = krait_terminal_look(to).width;
    width = width ? KRAIT_MIN(KRAIT_MAX(width, (uint32_t)LEAST), (uint32_t)MOST) : USUAL;
    return (struct layout){ .width = width, .column = width < NARROW ? 8 : 30 };
}

static void put_wrapped(const char *text, uint32_t at, uint32_t indent, uint32_t width, FILE *to)
{
    KRAIT_AUTO_BUF out = { 0 };
    krait_width_wrap(&out, text, at, indent, width);
    fputs(out.data ? out.data : "", to);
    fputc('\n', to);
}

/* What stands left is long or short; its text begins in the same column, below it if need be. */
static void help_entry(const char *left, const char *text, const struct layout *layout, FILE *to)
{
    bool below = strlen(left) >= layout->column;
    fputs(left, to);
    if (below)
        fputc('\n', to);
    fprintf(to, "%*s", (int)(below ? layout->column : layout->column - strlen(left)), "");
    put_wrapped(text, layout->column, layout->column, layout->width, to);
}

/* "a|b|c" with a blank behind the bar where a line may end; only what is too wide gets them. */
static void add_choices(struct krait_buf *left, const char *arg, const struct layout *layout)
{
    enum { INDENT = 8 };
    uint32_t at = (uint32_t)left->len;
    for (const char *p = arg; *p;) {
        size_t n = strcspn(p, "|");
        n += p[n] == '|';
        if (at + n > layout->width && at > INDENT) {
            while (left->data[left->len - 1] == ' ') /* before the first */
                left->len--;
            krait_buf_fmt(left, "\n%*s", INDENT, "");
            at = INDENT;
        }
        krait_buf_add(left, p, n);
        at += (uint32_t)n;
        p += n;
    }
}

static void help_option(const struct krait_opt *opt, const struct layout *layout, FILE *to)
{
    KRAIT_AUTO_BUF left = { 0 };
    if (opt->letter)
        krait_buf_fmt(&left, "  -%c, --%s", opt->letter, opt->name);
    else
        krait_buf_fmt(&left, "      --%s", opt->name);
    krait_buf_str(&left, krait_opt_joint(opt));
    if (opt->arg)
        add_choices(&left, opt->arg, layout);
    if (!left.failed)
        help_entry(left.data, opt->help, layout, to);
}

/* Examples: "# " lines explain, the others are commands. */
static void help_examples(const char *examples, FILE *to)
{
    fputs("\nExamples:\n", to);
    for (const char *line = examples; *line;) {
        int n = (int)strcspn(line, "\n");
        fprintf(to, line[0] == '#' ? "  %.*s\n" : "    %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
}

void krait_cmd_help(const struct krait_cmd *cmd, FILE *to)
{
    struct layout layout = layout_of(to);
    KRAIT_AUTO_BUF summary = { 0 };
    krait_buf_fmt(&summary, "%s.", cmd->summary);
    fprintf(to, "Usage: krait %s [options]%s%s\n\n", cmd->name, *cmd->operands ? " " : "", cmd->operands);
    put_wrapped(summary.data ? summary.data : "", 0, 0, layout.width, to);
    fputc('\n', to);
    put_wrapped(cmd->description, 0, 0, layout.width, to);
    fputs("\nOptions:\n", to);
    for (const struct krait_opt *opt = cmd->opts; opt->name; opt++)
        if (opt->help)
            help_option(opt, &layout, to);
    help_entry("  -h, --help", "Print this help", &layout, to);
    if (cmd->examples)
        help_examples(cmd->examples, to);
}

void krait_help_all(FILE *to)
{
    struct layout layout = layout_of(to);
    layout.column = 13;
    fputs("Usage: krait VERB [options] ...\n\n", to);
    put_wrapped("Full-stack tracing and visual profiling for Python: shows where the time went, exactly.", 0,
                0, layout.width, to);
    fputs("\nVerbs:\n", to);
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        char left[16];
        snprintf(left, sizeof(left), "  %s", (*cmd)->name);
        if (!(*cmd)->hidden)
            help_entry(left, (*cmd)->summary, &layout, to);
    }
    fputs("\n  krait VERB --help     options and examples of a verb\n"
          "  krait version         version, as krait --version\n"
          "\nA first look:\n"
          "    krait record -- python3 app.py\n",
          to);
}

/* mdoc: a leading dot or quote would be read as a request, and a backslash as an escape; a sentence begins a line. */
static void man_text(const char *text, FILE *to)
{
    bool line_start = true;
    for (const char *p = text; *p; p++) {
        if (line_start && (*p == '.' || *p == '\''))
            fputs("\\&", to);
        if (line_start && *p == '\n')
            fputs(".Pp", to);
        bool sentence_end = p > text && p[-1] == '.' && *p == ' ';
        if (*p == '\\')
            fputs("\\e", to);
        else
            fputc(sentence_end ? '\n' : *p, to);
        line_start = *p == '\n' || sentence_end;
    }
    if (!line_start)
        fputc('\n', to);
}

/* A line may end behind each bar: mdoc's \: takes no place where it does not. */
static void man_choices(const char *arg, FILE *to)
{
    for (const char *p = arg; *p; p++) {
        fputc(*p, to);
        if (*p == '|')
            fputs("\\:", to);
    }
}

static void man_options(const struct krait_cmd *cmd, FILE *to)
{
    fputs(".Sh OPTIONS\n.Bl -tag -width Ds\n", to);
    for (const struct krait_opt *opt = cmd->opts; opt->name; opt++) {
        if (!opt->help)
            continue;
        fputs(".It ", to);
        if (opt->letter)
            fprintf(to, "Fl %c , ", opt->letter);
        fprintf(to, "Fl \\-%s", opt->name);
        if (opt->arg) {
            fputs(*krait_opt_joint(opt) ? " Ar " : " Ns Ar ", to);
            man_choices(opt->arg, to);
        }
        fputc('\n', to);
        man_text(opt->help, to);
    }
    fputs(".It Fl h , Fl \\-help\nPrint the help\n.El\n", to);
}

static void man_examples(const char *examples, FILE *to)
{
    fputs(".Sh EXAMPLES\n", to);
    for (const char *line = examples; *line;) {
        int n = (int)strcspn(line, "\n");
        int skipped = line[0] == '#' ? KRAIT_MIN(2, n) : 0;
        char copy[512];
        snprintf(copy, sizeof(copy), "%.*s", n - skipped, line + skipped);
        if (!skipped)
            fputs(".Dl ", to);
        else if (line > examples)
            fputs(".Pp\n", to);
        man_text(copy, to);
        line += n + (line[n] == '\n');
    }
}

/* mdoc(7): a title is in upper case. */
static void man_title(const char *verb, FILE *to)
{
    fputs(".Dt KRAIT-", to);
    for (; *verb; verb++)
        fputc(toupper((unsigned char)*verb), to);
    fputs(" 1\n", to);
}

static void man_verb(const struct krait_cmd *cmd, FILE *to)
{
    fputs(".Dd November 21, 2026\n", to);
    man_title(cmd->name, to);
    fprintf(to, ".Os\n.Sh NAME\n.Nm krait-%s\n.Nd ", cmd->name);
    man_text(cmd->summary, to);
    fprintf(to, ".Sh SYNOPSIS\n.Nm krait %s\n.Op options\n", cmd->name);
    if (*cmd->operands)
        fprintf(to, ".Ar %s\n", cmd->operands);
    fputs(".Sh DESCRIPTION\n", to);
    man_text(cmd->description, to);
    man_options(cmd, to);
    fputs(".Sh EXIT STATUS\n", to);
    man_text(cmd->exit_status ? cmd->exit_status
                              : "0 done, 1 failed (the reason is on stderr), 2 wrong usage.",
             to);
    if (cmd->examples)
        man_examples(cmd->examples, to);
    fputs(".Sh SEE ALSO\n.Xr krait 1\n", to);
}

static void man_all(FILE *to)
{
    fputs(".Dd November 21, 2026\n.Dt KRAIT 1\n.Os\n.Sh NAME\n.Nm krait\n"
          ".Nd full-stack tracing and visual profiling for Python\n"
          ".Sh SYNOPSIS\n.Nm\n.Ar verb\n.Op options\n.Sh DESCRIPTION\n.Nm\n"
          "records every Python call and C call of a program and shows where the time went.\n.Bl -tag -width "
          "Ds\n",
          to);
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (!(*cmd)->hidden)
            fprintf(to, ".It Xr krait-%s 1\n%s\n", (*cmd)->name, (*cmd)->summary);
    }
    fputs(".El\n.Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev NO_COLOR\nWhen set, nothing is coloured.\n.El\n",
          to);
}

int krait_help_man(const char *verb, FILE *to)
{
    if (!*verb) {
        man_all(to);
        return 0;
    }
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (strcmp((*cmd)->name, verb) == 0) {
            man_verb(*cmd, to);
            return 0;
        }
    }
    return -ENOENT;
}

static void complete_verb(const struct krait_cmd *cmd, FILE *to)
{
    fprintf(to, "    %s) words=\"--help", cmd->name);
    for (const struct krait_opt *opt = cmd->opts; opt->name; opt++)
        if (opt->help)
            fprintf(to, " --%s", opt->name);
    fputs("\" ;;\n", to);
}

static void complete_choices(const struct krait_cmd *cmd, FILE *to)
{
    for (const struct krait_opt *opt = cmd->opts; opt->name; opt++) {
        if (!opt->arg || !strchr(opt->arg, '|'))
            continue;
        fprintf(to, "    %s:--%s) words=\"", cmd->name, opt->name);
        for (const char *p = opt->arg; *p; p++)
            fputc(*p == '|' ? ' ' : *p, to);
        fputs("\" ;;\n", to);
    }
}

/* As words of the function's own text. */
static void complete_all_verbs(FILE *to)
{
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (!(*cmd)->hidden)
            fprintf(to, " %s", (*cmd)->name);
    }
}

/* bash breaks --to=p at the sign, unless COMP_WORDBREAKS is without it. Behind -- stands another program's command
 * line. */
static const char completion_head[] =
    "# Completion of krait for bash (and zsh with bashcompinit). Made from the verbs' table.\n"
    "_krait() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} words= "
    "before= i\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
    "        case $cur in */*) ;; *) [ $i -lt $((COMP_CWORD - 1)) ] || COMPREPLY+=($(compgen -c -- "
    "\"$cur\")) ;; esac\n"
    "        return\n"
    "    done\n"
    "    case $cur in --*=*) before=${cur%%=*}= prev=${cur%%=*} cur=${cur#*=} ;; =) cur= ;; esac\n"
    "    [ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n";

void krait_help_completion(FILE *to)
{
    fputs(completion_head, to);
    fputs("    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$verb\" = help ] && [ \"$COMP_CWORD\" -eq 2 ]; }; then\n"
          "        words=\"",
          to);
    complete_all_verbs(to);
    fputs("\"\n        [ \"$verb\" = help ] && [ \"$COMP_CWORD\" -eq 2 ] || words=\"help version$words\"\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n"
          "    case $verb:$prev in\n",
          to);
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++)
        complete_choices(*cmd, to);
    fputs("    *) case $verb in\n", to);
    for (const struct krait_cmd *const *cmd = krait_cmds; *cmd; cmd++) {
        if (!(*cmd)->hidden)
            complete_verb(*cmd, to);
    }
    fputs("    esac\n    case $cur in -*) ;; *) words= ;; esac ;;\n    esac\n"
          "    COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$cur\"))\n}\n"
          "complete -o default -F _krait krait\n",
          to);
}
