/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/terminal.h"

#include "base/fmt.h"
#include "view/width.h"

#include <stdarg.h>
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

static struct krait_buf dropped; /* titles of columns for which the terminal is too narrow */

struct krait_table_look krait_terminal_look(FILE *to)
{
    return (struct krait_table_look){ .width = width_of(fileno(to)),
                                      .colour = wants_colour(fileno(to)),
                                      .utf8 = takes_utf8(),
                                      .dropped = &dropped };
}

const char *krait_terminal_colour(FILE *to, const char *code)
{
    return wants_colour(fileno(to)) ? code : "";
}

void krait_terminal_safe(FILE *to, const char *text)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, text);
    if (!safe.failed) {
        fputs(safe.len ? safe.data : "", to);
        return;
    }
    for (const char *p = text; *p; p++) /* out of memory, which is to be told too */
        fputc(*p >= 0x20 && *p < 0x7f ? *p : '?', to);
}

void krait_terminal_wrap(FILE *to, const char *code, uint32_t at, uint32_t indent, const char *text)
{
    enum { LEAST = 40 }; /* in less than that each word would have its own line */
    KRAIT_AUTO_BUF safe = { 0 }, lines = { 0 };
    uint32_t columns = width_of(fileno(to));
    if (columns) {
        krait_fmt_safe(&safe, text);
        krait_width_wrap(&lines, safe.data ? safe.data : "", at, indent, KRAIT_MAX(columns, (uint32_t)LEAST));
    }
    bool coloured = code && wants_colour(fileno(to));
    fputs(coloured ? code : "", to);
    if (columns && lines.data && !safe.failed && !lines.failed)
        fputs(lines.data, to);
    else
        krait_terminal_safe(to, text);
    fprintf(to, "%s\n", coloured ? KRAIT_PLAIN : "");
}

void krait_terminal_error(uint32_t at, const struct krait_err *err)
{
    char text[sizeof(err->text)];
    memcpy(text, err->text, sizeof(text));
    char *rest = err->lines ? text : NULL;
    strsep(&rest, "\n");
    krait_terminal_wrap(stderr, NULL, at, 2, text);
    for (const char *line; (line = strsep(&rest, "\n"));) {
        krait_terminal_safe(stderr, line);
        fputc('\n', stderr);
    }
}

void krait_terminal_say(const char *code, uint32_t at, const char *fmt, ...)
{
    char text[sizeof(((struct krait_err *)NULL)->text) + 256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "%*s", (int)at, "");
    krait_terminal_wrap(stderr, code, at, at + 2, text);
}

void krait_terminal_say_written(const char *verb, const char *path, uint64_t bytes, const char *what,
                                const char *next)
{
    char size[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    if (strcmp(path, "-") == 0)
        return;
    krait_buf_fmt(&text, "krait %s: wrote %s (%s%s%s)%s%s", verb, path, krait_fmt_bytes(size, bytes),
                  what ? ", " : "", what ? what : "", next ? "; " : "", next ? next : "");
    if (!text.failed)
        krait_terminal_wrap(stderr, NULL, 0, 2, text.data);
}

static bool is_bad(const char *note)
{
    return strncmp(note, "lost:", 5) == 0 || strncmp(note, "damaged:", 8) == 0 ||
           strncmp(note, "unfinished:", 11) == 0;
}

static void print_notes(struct krait_buf *notes)
{
    for (char *note = notes->data, *next; note && *note; note = next) {
        next = strchrnul(note, '\n');
        if (*next)
            *next++ = '\0';
        krait_terminal_wrap(stderr, is_bad(note) ? KRAIT_RED : KRAIT_DIM, 0, 2, note);
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
    krait_terminal_note_dropped();
    return 0;
}

void krait_terminal_note_dropped(void)
{
    KRAIT_AUTO_BUF note = { 0 };
    if (!dropped.len || !isatty(STDOUT_FILENO))
        return;
    krait_buf_fmt(&note, "columns left out: %s; a wider terminal or --json has them", dropped.data);
    krait_buf_done(&dropped);
    krait_terminal_wrap(stderr, KRAIT_DIM, 0, 2, note.data ? note.data : "");
}
