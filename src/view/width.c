/* SPDX-License-Identifier: Apache-2.0 */
#include "view/width.h"

#include "base/fmt.h"
#include "base/json.h"
#include "base/symbol.h"

#include <string.h>

struct span {
    uint32_t first, last;
};

static const struct span no_columns[] = {
    { 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a }, { 0x064b, 0x065f },
    { 0x093c, 0x093c }, { 0x0941, 0x0948 }, { 0x0e31, 0x0e31 }, { 0x0e34, 0x0e3a }, { 0x1ab0, 0x1aff },
    { 0x1dc0, 0x1dff }, { 0x200b, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x2069 }, { 0x20d0, 0x20ff },
    { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
};

static const struct span two_columns[] = {
    { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },
    { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },   { 0xa000, 0xa4cf },   { 0xac00, 0xd7a3 },
    { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
    { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff },
    { 0x20000, 0x3fffd },
};

static bool in_spans(const struct span *spans, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count && spans[i].first <= c; i++) {
        if (c <= spans[i].last)
            return true;
    }
    return false;
}

/* Columns of the first character of n bytes, and its number of bytes. */
static uint32_t char_columns(const char *text, size_t n, size_t *len)
{
    *len = 1;
    if (KRAIT_LIKELY((unsigned char)*text < 0x80))
        return 1;
    uint32_t c = krait_utf8_get(text, n, len);
    if (in_spans(no_columns, KRAIT_ARRAY_LEN(no_columns), c))
        return 0;
    return in_spans(two_columns, KRAIT_ARRAY_LEN(two_columns), c) ? 2 : 1;
}

uint32_t krait_width_of(const char *text, size_t n)
{
    uint32_t columns = 0;
    for (size_t at = 0, len; at < n; at += len)
        columns += char_columns(text + at, n - at, &len);
    return columns;
}

/* The ellipsis: "…" if the terminal uses UTF-8, otherwise "..". */
static const char *ellipsis(bool utf8)
{
    return utf8 ? "\xe2\x80\xa6" : "..";
}

size_t krait_width_fit(const char *text, size_t n, uint32_t columns)
{
    size_t at = 0;
    while (at < n) {
        size_t len;
        uint32_t width = char_columns(text + at, n - at, &len);
        if (width > columns)
            break;
        columns -= width;
        at += len;
    }
    return at;
}

/* The begin of the longest suffix that fits into `columns`. */
static size_t tail_start(const char *text, size_t n, uint32_t columns)
{
    size_t at = 0;
    uint32_t width = krait_width_of(text, n);
    while (width > columns) {
        size_t len;
        width -= char_columns(text + at, n - at, &len);
        at += len;
    }
    return at;
}

static bool is_behind_separator(const char *text, size_t at)
{
    bool is_scope = at > 1 && strncmp(text + at - 2, "::", 2) == 0;
    return is_scope || (at && (text[at - 1] == '.' || text[at - 1] == '/'));
}

/* The longest suffix of whole components that takes at most `columns` and at least a third of them; otherwise the
 * suffix of four fifths of them. */
static size_t choose_tail(const char *text, size_t n, uint32_t columns)
{
    for (size_t at = tail_start(text, n, columns); at < n; at++) {
        if (krait_width_of(text + at, n - at) < columns / 3)
            break;
        if (is_behind_separator(text, at))
            return at;
    }
    return tail_start(text, n, columns * 4 / 5);
}

/* "Thread-7 (serve) 4711": removes text in brackets first, because the rest distinguishes the name. Returns false if
 * that is not enough. */
static bool shorten_brackets(struct krait_buf *out, const char *text, uint32_t columns, bool utf8)
{
    const char *open = strstr(text, " (");
    const char *close = open ? strrchr(open, ')') : NULL;
    if (!close)
        return false;
    open += strlen(" (");
    size_t before = (size_t)(open - text), after = strlen(close);
    uint32_t rest = krait_width_of(text, before) + krait_width_of(close, after) + (utf8 ? 1 : 2);
    if (rest > columns)
        return false;
    krait_buf_add(out, text, before + krait_width_fit(open, (size_t)(close - open), columns - rest));
    krait_buf_str(out, ellipsis(utf8));
    krait_buf_add(out, close, after);
    return true;
}

/* Of an address in a file, the file's version and ending go first. Returns false if it is none, or has lost them already. */
static bool shorten_address(struct krait_buf *out, const char *text, uint32_t columns, bool utf8)
{
    KRAIT_AUTO_BUF brief = { 0 };
    size_t n = strlen(text), stem;
    if (!krait_symbol_address(text, n, &stem))
        return false;
    krait_symbol_brief(&brief, text);
    out->failed |= brief.failed;
    if (brief.failed || brief.len == n)
        return false;
    krait_width_shorten(out, brief.data, columns, utf8);
    return true;
}

/* Of a name of C++ or Rust, templates lose their arguments first, one after the other until it fits: "map<…>::find". Returns false
 * if there are none, or none any more. */
static bool shorten_templates(struct krait_buf *out, const char *text, uint32_t columns, bool utf8)
{
    KRAIT_AUTO_BUF folded = { 0 };
    size_t at = 0, begin, end;
    uint32_t width = krait_width_of(text, strlen(text)), mark = utf8 ? 1 : 2;
    for (size_t from = 0; width > columns && krait_symbol_arguments(text, from, &begin, &end); from = end) {
        uint32_t arguments = krait_width_of(text + begin, end - begin);
        if (arguments <= mark)
            continue;
        krait_buf_add(&folded, text + at, begin - at);
        krait_buf_str(&folded, ellipsis(utf8));
        width -= arguments - mark;
        at = end;
    }
    if (!at)
        return false;
    krait_buf_str(&folded, text + at);
    out->failed |= folded.failed;
    if (!folded.failed)
        krait_width_shorten(out, folded.data, columns, utf8);
    return true;
}

/* Of a path, the first folders go first, and the file's name stays. Returns false if it is none, or that name does not fit. */
static bool shorten_path(struct krait_buf *out, const char *text, uint32_t columns, bool utf8)
{
    const char *base = strrchr(text, '/'), *at = text;
    uint32_t mark = utf8 ? 1 : 2;
    if (*text != '/' || strchr(text, ' ') || krait_width_of(base + 1, strlen(base + 1)) > columns)
        return false;
    while (at < base && krait_width_of(at, strlen(at)) + mark > columns)
        at = strchr(at + 1, '/');
    at += krait_width_of(at, strlen(at)) + mark > columns; /* without the / */
    krait_buf_str(out, krait_width_of(at, strlen(at)) + mark > columns ? "" : ellipsis(utf8));
    krait_buf_str(out, at);
    return true;
}

void krait_width_shorten(struct krait_buf *out, const char *text, uint32_t columns, bool utf8)
{
    size_t n = strlen(text);
    uint32_t mark = utf8 ? 1 : 2;
    if (krait_width_of(text, n) <= columns) {
        krait_buf_add(out, text, n);
        return;
    }
    if (shorten_address(out, text, columns, utf8) || shorten_templates(out, text, columns, utf8) ||
        shorten_path(out, text, columns, utf8) || shorten_brackets(out, text, columns, utf8))
        return;
    if (columns <= mark + 2) {
        krait_buf_add(out, text, krait_width_fit(text, n, columns));
        return;
    }
    uint32_t head = KRAIT_MIN(columns / 5, 4u); /* at least */
    size_t tail = choose_tail(text, n, columns - mark - head);
    uint32_t head_columns = columns - mark - krait_width_of(text + tail, n - tail);
    krait_buf_add(out, text, krait_width_fit(text, n, head_columns));
    krait_buf_str(out, ellipsis(utf8));
    krait_buf_add(out, text + tail, n - tail);
}

void krait_width_command(struct krait_buf *out, const char *command, uint32_t columns, bool utf8)
{
    const char *program = krait_fmt_command(command), *script = strchr(program, ' ');
    uint32_t mark = utf8 ? 1 : 2, width = krait_width_of(program, strlen(program));
    size_t before = out->len;
    size_t head = width > columns && script ? (size_t)(script + 1 - program) : strlen(program);
    krait_buf_add(out, program, head);
    krait_buf_str(out, krait_fmt_command(program + head));
    if (out->failed || krait_width_of(out->data + before, out->len - before) <= columns)
        return;
    out->len =
        before + krait_width_fit(out->data + before, out->len - before, columns - KRAIT_MIN(mark, columns));
    krait_buf_str(out, columns > mark ? ellipsis(utf8) : "");
}

static void new_line(struct krait_buf *out, uint32_t indent)
{
    krait_buf_char(out, '\n');
    for (uint32_t i = 0; i < indent; i++)
        krait_buf_char(out, ' ');
}

void krait_width_wrap(struct krait_buf *out, const char *text, uint32_t at, uint32_t indent, uint32_t columns)
{
    bool begins = true; /* of a line: no blank before the word */
    while (*text) {
        size_t blanks = strspn(text, " \n");
        size_t word = strcspn(text + blanks, " \n");
        uint32_t width = krait_width_of(text + blanks, word);
        const char *first = memchr(text, '\n', blanks);
        bool paragraph = first && memchr(first + 1, '\n', blanks - (size_t)(first + 1 - text));
        if (!word)
            return;
        if (paragraph)
            krait_buf_char(out, '\n');
        if (paragraph || (!begins && at + 1 + width > columns)) {
            new_line(out, indent);
            at = indent;
            begins = true;
        }
        if (!begins)
            krait_buf_char(out, ' ');
        krait_buf_add(out, text + blanks, word);
        at += width + !begins;
        begins = false;
        text += blanks + word;
    }
}
