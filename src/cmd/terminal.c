/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/terminal.h"

#include "view/width.h"

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

/* Columns; 0: it is no terminal. */
static uint32_t width_of(int fd)
{
    enum { USUAL = 80 };
    struct winsize size = { 0 };
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL;
}

struct krait_table_look krait_terminal_look(void)
{
    return (struct krait_table_look){ .width = width_of(STDOUT_FILENO),
                                      .colour = wants_colour(STDOUT_FILENO),
                                      .utf8 = takes_utf8() };
}

static bool is_bad(const char *note)
{
    return strncmp(note, "lost:", 5) == 0 || strncmp(note, "damaged:", 8) == 0 ||
           strncmp(note, "unfinished:", 11) == 0;
}

/* A terminal would break a long line in mid-word. */
static void print_note(char *note, uint32_t columns, bool colour)
{
    enum { INDENT = 2 };
    KRAIT_AUTO_BUF lines = { 0 };
    krait_width_wrap(&lines, note, 0, INDENT, columns ? columns : UINT32_MAX);
    const char *code = !colour ? "" : is_bad(note) ? "\033[31m" : "\033[2m";
    fprintf(stderr, "%s%s%s\n", code, lines.failed || !lines.data ? note : lines.data,
            colour ? "\033[0m" : "");
}

static void print_notes(struct krait_buf *notes)
{
    uint32_t columns = width_of(STDERR_FILENO);
    bool colour = wants_colour(STDERR_FILENO);
    for (char *note = notes->data, *next; note && *note; note = next) {
        next = strchrnul(note, '\n');
        if (*next)
            *next++ = '\0';
        print_note(note, columns, colour);
    }
}

int krait_terminal_print(const struct krait_buf *out, struct krait_buf *notes, const char *what,
                         struct krait_err *err)
{
    if (out->len)
        fwrite(out->data, 1, out->len, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        return krait_err_errno(err, "%s could not be written", what);
    print_notes(notes);
    return 0;
}
