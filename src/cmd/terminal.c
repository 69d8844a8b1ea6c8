/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/terminal.h"

#include <string.h>
#include <sys/ioctl.h>

static bool wants_colour(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fd) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

static bool takes_utf8(void)
{
    const char *locale = NULL;
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names) && !(locale && *locale); i++)
        locale = getenv(names[i]);
    return locale && (strcasestr(locale, "UTF-8") || strcasestr(locale, "utf8"));
}

struct krait_table_look krait_terminal_look(void)
{
    struct winsize size = { 0 };
    struct krait_table_look look = { .colour = wants_colour(STDOUT_FILENO), .utf8 = takes_utf8() };
    if (!isatty(STDOUT_FILENO))
        return look;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        look.width = size.ws_col;
    if (!look.width)
        look.width = 80;
    return look;
}

static void print_notes(const struct krait_buf *notes)
{
    bool colour = wants_colour(STDERR_FILENO);
    for (const char *line = notes->data; line && *line;) {
        int n = (int)strcspn(line, "\n");
        bool bad = strncmp(line, "lost:", 5) == 0 || strncmp(line, "damaged:", 8) == 0 ||
                   strncmp(line, "unfinished:", 11) == 0;
        const char *code = !colour ? "" : bad ? "\033[31m" : "\033[2m";
        fprintf(stderr, "%s%.*s%s\n", code, n, line, colour ? "\033[0m" : "");
        line += n + (line[n] == '\n');
    }
}

int krait_terminal_print(const struct krait_buf *out, const struct krait_buf *notes, const char *what,
                         struct krait_err *err)
{
    if (out->len)
        fwrite(out->data, 1, out->len, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return krait_err_errno(err, "%s could not be written", what);
    print_notes(notes);
    return 0;
}
