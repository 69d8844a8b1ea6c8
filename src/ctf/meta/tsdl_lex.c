/* SPDX-License-Identifier: Apache-2.0 */
#include "ctf/meta/tsdl_lex.h"

#include "base/json.h"

#include <string.h>

/* What begins with a character; and whether krait_lex_pass looks at it. */
enum char_kind { OTHER, BLANK, LETTER, DIGIT, QUOTE, SIGN, KIND = 7, LOOKED_AT = 8 };

/* clang-format off */
static const uint8_t kinds[UINT8_MAX + 1] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\n'] = BLANK | LOOKED_AT,
    ['a' ... 'z'] = LETTER, ['A' ... 'Z'] = LETTER, ['_'] = LETTER, ['0' ... '9'] = DIGIT,
    ['"'] = QUOTE | LOOKED_AT, ['\''] = QUOTE | LOOKED_AT, ['/'] = LOOKED_AT,
    ['{'] = SIGN | LOOKED_AT, ['}'] = SIGN | LOOKED_AT, [';'] = SIGN | LOOKED_AT,
    ['['] = SIGN, [']'] = SIGN, ['('] = SIGN, [')'] = SIGN, ['<'] = SIGN, ['>'] = SIGN, ['*'] = SIGN, ['+'] = SIGN,
    ['-'] = SIGN, [':'] = SIGN, ['.'] = SIGN, ['='] = SIGN, [','] = SIGN,
};
/* clang-format on */

static enum char_kind kind_of(char c)
{
    return kinds[(unsigned char)c] & KIND;
}

static bool is_in_word(const char *at, const char *end)
{
    return at < end && (kind_of(*at) == LETTER || kind_of(*at) == DIGIT);
}

/* Where the letters and digits from `at` on end. */
static const char *word_end(const char *at, const char *end)
{
    while (is_in_word(at, end))
        at++;
    return at;
}

static int hex_value(char c)
{
    if (kind_of(c) == DIGIT)
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool has(const struct krait_lex *lex, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(lex->end - lex->at) >= n && *lex->at == *word && memcmp(lex->at, word, n) == 0;
}

static int skip_line(struct krait_lex *lex)
{
    const char *newline = memchr(lex->at, '\n', (size_t)(lex->end - lex->at));
    if (!newline)
        return krait_err_set(lex->err, -EBADMSG, "line %u: the comment has no newline", lex->line);
    lex->at = newline;
    return 0;
}

/* One without an end lasts to the text's. */
static void skip_comment(struct krait_lex *lex)
{
    for (lex->at += 2; lex->at < lex->end && !has(lex, "*/"); lex->at++)
        lex->line += *lex->at == '\n';
    lex->at += KRAIT_MIN(lex->end - lex->at, 2);
}

static int skip_blanks(struct krait_lex *lex)
{
    for (;;) {
        const char *at = lex->at, *end = lex->end;
        for (; at < end && kind_of(*at) == BLANK; at++)
            lex->line += *at == '\n';
        lex->at = at;
        if (at == end || *at != '/')
            return 0;
        if (has(lex, "//")) {
            int rc = skip_line(lex);
            if (rc)
                return rc;
        } else if (has(lex, "/*")) {
            skip_comment(lex);
        } else {
            return 0;
        }
    }
}

static int oom(struct krait_lex *lex)
{
    return krait_err_set(lex->err, -ENOMEM, "out of memory");
}

static int lex_word(struct krait_lex *lex, struct krait_tok *tok)
{
    const char *from = lex->at;
    lex->at = word_end(from, lex->end);
    tok->kind = KRAIT_TOK_WORD;
    tok->text = krait_arena_strndup(lex->arena, from, (size_t)(lex->at - from));
    return tok->text ? 0 : oom(lex);
}

static void skip_longs(struct krait_lex *lex)
{
    lex->at += has(lex, "ll") || has(lex, "LL") ? 2 : has(lex, "l") || has(lex, "L");
}

/* u, with l or ll before or behind it; other readers know no suffix without u. */
static void skip_suffix(struct krait_lex *lex)
{
    const char *from = lex->at;
    skip_longs(lex);
    bool is_first = lex->at == from;
    if (!has(lex, "u") && !has(lex, "U")) {
        lex->at = from;
        return;
    }
    lex->at++;
    if (is_first)
        skip_longs(lex);
}

static int lex_int(struct krait_lex *lex, struct krait_tok *tok)
{
    unsigned base = 10;
    if (has(lex, "0x") || has(lex, "0X")) {
        base = 16;
        lex->at += 2;
    } else if (*lex->at == '0') {
        base = 8;
    }
    const char *from = lex->at;
    for (; lex->at < lex->end; lex->at++) {
        int digit = hex_value(*lex->at);
        if (digit < 0 || (unsigned)digit >= base)
            break;
        if (__builtin_mul_overflow(tok->value, base, &tok->value) ||
            __builtin_add_overflow(tok->value, (uint64_t)digit, &tok->value))
            return krait_err_set(lex->err, -EBADMSG, "line %u: the number does not fit 64 bits", lex->line);
    }
    bool empty = lex->at == from;
    skip_suffix(lex);
    if (empty || is_in_word(lex->at, lex->end))
        return krait_err_set(lex->err, -EBADMSG, "line %u: not a number", lex->line);
    tok->kind = KRAIT_TOK_INT;
    return 0;
}

/* Up to three digits, of hexadecimal numbers too: so babeltrace2 has it, and efficios/ctf-testsuite. */
static unsigned number_escape(struct krait_lex *lex, int base)
{
    unsigned value = 0;
    for (int i = 0; i < 3 && lex->at < lex->end; i++) {
        int digit = hex_value(*lex->at);
        if (digit < 0 || digit >= base)
            break;
        value = value * (unsigned)base + (unsigned)digit;
        lex->at++;
    }
    return value;
}

/* The digits of a universal character name (C99, 6.4.3), which is UTF-8 in the text. */
static int add_universal(struct krait_lex *lex, unsigned digits, struct krait_buf *to)
{
    uint32_t character = 0;
    for (; digits && lex->at < lex->end && hex_value(*lex->at) >= 0; digits--)
        character = character << 4 | (uint32_t)hex_value(*lex->at++);
    if (digits)
        return krait_err_set(lex->err, -EBADMSG, "line %u: %u digits are missing in a quotation's \\u or \\U",
                             lex->line, digits);
    if (character > 0x10FFFF || (character >= 0xD800 && character <= 0xDFFF))
        return krait_err_set(lex->err, -EBADMSG, "line %u: U+%04X in a quotation is no character", lex->line,
                             (unsigned)character);
    krait_utf8_add(to, character);
    return 0;
}

/* At the character after the backslash. */
static int lex_escape(struct krait_lex *lex, struct krait_buf *to)
{
    static const char from[] = "ntrabfv0'\"\\?";
    static const char plain[] = "\n\t\r\a\b\f\v\0'\"\\?";
    char c = *lex->at;
    if (c >= '0' && c <= '7') {
        krait_buf_char(to, (char)number_escape(lex, 8));
        return 0;
    }
    lex->at++;
    if (c == 'u' || c == 'U')
        return add_universal(lex, c == 'u' ? 4 : 8, to);
    const char *found = memchr(from, c, sizeof(from) - 1);
    if (c == 'x')
        krait_buf_char(to, (char)number_escape(lex, 16));
    else if (found)
        krait_buf_char(to, plain[found - from]);
    else
        return krait_err_set(lex->err, -EBADMSG, "line %u: unknown escape in a quotation", lex->line);
    return 0;
}

/* Up to `end`; `text` is NULL when nobody wants it, and has room otherwise: escapes are longer than what they
 * stand for. */
static int unescape(struct krait_lex *lex, const char *end, char *text)
{
    KRAIT_AUTO_BUF escaped = { 0 };
    int rc = 0;
    while (!rc && lex->at < end) {
        char c = *lex->at++;
        lex->line += c == '\n';
        if (c != '\\') {
            if (text)
                *text++ = c;
            continue;
        }
        krait_buf_clear(&escaped);
        rc = lex_escape(lex, &escaped);
        if (!rc && escaped.failed)
            rc = oom(lex);
        else if (!rc && text)
            text = mempcpy(text, escaped.data, escaped.len);
    }
    return rc;
}

static int lex_quoted(struct krait_lex *lex, struct krait_tok *tok)
{
    char quote = *lex->at++;
    unsigned from_line = lex->line;
    const char *end = lex->at;
    while (end < lex->end && *end != quote)
        end += *end == '\\' ? 2 : 1;
    if (end >= lex->end)
        return krait_err_set(lex->err, -EBADMSG, "line %u: the quotation has no end", from_line);
    if (memchr(lex->at, 0, (size_t)(end - lex->at)))
        return krait_err_set(lex->err, -EBADMSG, "line %u: a NUL in a quotation", from_line);
    char *text = lex->arena ? krait_arena_alloc(lex->arena, (size_t)(end - lex->at) + 1) : NULL;
    if (lex->arena && !text)
        return oom(lex);
    tok->text = text;
    int rc = unescape(lex, end, text);
    if (rc)
        return rc;
    lex->at = end + 1;
    tok->kind = quote == '"' ? KRAIT_TOK_STRING : KRAIT_TOK_CHAR;
    return 0;
}

static int lex_sign(struct krait_lex *lex, struct krait_tok *tok)
{
    static const struct {
        const char *text;
        enum krait_tok_kind kind;
    } longer[] = { { "...", KRAIT_TOK_RANGE }, { ":=", KRAIT_TOK_ASSIGN_TYPE }, { "->", KRAIT_TOK_ARROW } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(longer); i++) {
        if (has(lex, longer[i].text)) {
            tok->kind = longer[i].kind;
            lex->at += strlen(longer[i].text);
            return 0;
        }
    }
    unsigned char c = (unsigned char)*lex->at++;
    if (kind_of((char)c) != SIGN)
        return krait_err_set(lex->err, -EBADMSG, "line %u: byte 0x%02x is not TSDL", lex->line, c);
    tok->kind = KRAIT_TOK_PUNCT;
    tok->value = c;
    return 0;
}

static int lex_any(struct krait_lex *lex, struct krait_tok *tok)
{
    switch (kind_of(*lex->at)) {
    case QUOTE:
        return lex_quoted(lex, tok);
    case LETTER:
        return lex_word(lex, tok);
    case DIGIT:
        return lex_int(lex, tok);
    default:
        return lex_sign(lex, tok);
    }
}

int krait_lex_next(struct krait_lex *lex, struct krait_tok *tok)
{
    *tok = (struct krait_tok){ .kind = KRAIT_TOK_END };
    int rc = skip_blanks(lex);
    tok->line = lex->line;
    if (!rc && lex->at < lex->end)
        rc = lex_any(lex, tok);
    if (rc) {
        tok->kind = KRAIT_TOK_END;
        lex->at = lex->end;
    }
    return rc;
}

int krait_lex_peek(struct krait_lex *lex)
{
    return skip_blanks(lex);
}

static const char *next_looked_at(const char *at, const char *end)
{
    while (at < end && !(kinds[(unsigned char)*at] & LOOKED_AT))
        at++;
    return at;
}

int krait_lex_pass(struct krait_lex *lex, char *sign)
{
    struct krait_tok quoted;
    int rc = 0;
    for (*sign = 0; !rc && !*sign;) {
        lex->at = next_looked_at(lex->at, lex->end);
        rc = skip_blanks(lex);
        if (rc || lex->at == lex->end)
            return rc;
        char c = *lex->at;
        if (kind_of(c) == QUOTE)
            rc = lex_quoted(lex, &quoted);
        else
            lex->at++;
        *sign = c == '{' || c == '}' || c == ';' ? c : 0;
    }
    return rc;
}
