/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_read.h"

#include "base/json.h"
#include "base/map.h"

#include <stdarg.h>
#include <string.h>

/* A failure sticks: the reader then behaves as at the end of the text. */
struct reader {
    struct krait_arena *arena;
    const char *begin, *at, *end;
    size_t base;
    unsigned depth;
    struct krait_err *err;
    int rc;
};

static struct krait_json *read_value(struct reader *r);

/* -- failure -- */

KRAIT_COLD KRAIT_PRINTF(3, 4) static void fail(struct reader *r, const char *at, const char *fmt, ...)
{
    va_list args;
    if (r->rc)
        return;
    va_start(args, fmt);
    r->rc = krait_err_at_byte(r->err, -EBADMSG, r->base + (size_t)(at - r->begin), fmt, args);
    va_end(args);
    r->end = r->at;
}

static KRAIT_COLD void oom(struct reader *r)
{
    if (!r->rc)
        r->rc = krait_err_set(r->err, -ENOMEM, "out of memory");
    r->end = r->at;
}

/* -- characters -- */

static bool is_next(const struct reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}

static bool accept(struct reader *r, char c)
{
    bool found = is_next(r, c);
    r->at += found;
    return found;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool is_digit(const struct reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* Reports the character that is there instead of `wanted`. */
static void unexpected(struct reader *r, const char *wanted)
{
    if (r->at == r->end)
        fail(r, r->at, "the text ends where %s should be", wanted);
    else if (*r->at > ' ' && *r->at < 0x7f)
        fail(r, r->at, "'%c' where %s should be", *r->at, wanted);
    else
        fail(r, r->at, "a byte 0x%02x where %s should be", (uint8_t)*r->at, wanted);
}

/* -- numbers -- */

static void skip_digits(struct reader *r)
{
    if (!is_digit(r))
        unexpected(r, "a digit");
    while (is_digit(r))
        r->at++;
}

/* Returns false if it does not fit. */
static bool whole_number(struct reader *r, uint64_t *n)
{
    bool fits = true;
    for (*n = 0; is_digit(r); r->at++)
        fits = fits && !__builtin_mul_overflow(*n, 10u, n) &&
               !__builtin_add_overflow(*n, (uint64_t)(*r->at - '0'), n);
    return fits;
}

/* A fraction and an exponent. False where there is neither. */
static bool skip_real(struct reader *r)
{
    bool real = false;
    if (accept(r, '.')) {
        skip_digits(r);
        real = true;
    }
    if (is_next(r, 'e') || is_next(r, 'E')) {
        r->at++;
        if (!accept(r, '+'))
            accept(r, '-');
        skip_digits(r);
        real = true;
    }
    return real;
}

static void read_number(struct reader *r, struct krait_json *to)
{
    bool negative = accept(r, '-');
    uint64_t n;
    if (!is_digit(r))
        unexpected(r, "a digit");
    bool fits = whole_number(r, &n) && !(negative && n > (uint64_t)INT64_MAX + 1);
    bool real = skip_real(r) || !fits;
    to->kind = real ? KRAIT_JSON_REAL : negative && n ? KRAIT_JSON_NEGATIVE : KRAIT_JSON_UNSIGNED;
    to->number = real ? 0 : negative ? -n : n;
}

/* -- texts -- */

static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* The four digits of \uXXXX. */
static uint32_t read_hex(struct reader *r)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        unsigned digit = r->at < r->end ? hex_digit(*r->at) : 16;
        if (digit == 16) {
            unexpected(r, "a hexadecimal digit");
            return 0;
        }
        value = value << 4 | digit;
    }
    return value;
}

static void read_unicode(struct reader *r, struct krait_buf *out)
{
    const char *from = r->at - 2;
    uint32_t character = read_hex(r);
    bool high = character >= 0xD800 && character <= 0xDBFF;
    if (high && r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u') {
        r->at += 2;
        uint32_t low = read_hex(r);
        high = low < 0xDC00 || low > 0xDFFF;
        character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
    }
    if (high || (character >= 0xDC00 && character <= 0xDFFF))
        fail(r, from, "half of a surrogate pair");
    else
        krait_utf8_add(out, character);
}

static void read_escape(struct reader *r, struct krait_buf *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = r->at < r->end && *r->at ? strchr(from, *r->at) : NULL;
    if (found) {
        krait_buf_char(out, to[found - from]);
        r->at++;
    } else if (accept(r, 'u')) {
        read_unicode(r, out);
    } else {
        unexpected(r, "an escape's letter");
    }
}

/* Characters that stand for themselves: behind the last of them. */
static const char *skip_plain(struct reader *r)
{
    const char *at = r->at;
    while (at < r->end && *at != '"' && *at != '\\') {
        size_t n = (uint8_t)*at < 0x20 ? 0 : krait_utf8_len(at, (size_t)(r->end - at));
        if (!n) {
            fail(r, at, (uint8_t)*at < 0x20 ? "a control character in a string" : "not UTF-8");
            break;
        }
        at += n;
    }
    return at;
}

static const char *read_text(struct reader *r)
{
    KRAIT_AUTO_BUF text = { 0 };
    const char *from = r->at++;
    while (!r->rc && !is_next(r, '"')) {
        const char *behind = skip_plain(r);
        krait_buf_add(&text, r->at, (size_t)(behind - r->at));
        if (r->rc)
            break;
        r->at = behind;
        if (r->at == r->end)
            fail(r, from, "a string has no end");
        else if (accept(r, '\\'))
            read_escape(r, &text);
    }
    if (r->rc)
        return "";
    r->at++;
    const char *kept =
        text.failed ? NULL : krait_arena_strndup(r->arena, text.data ? text.data : "", text.len);
    if (!kept)
        oom(r);
    return kept ? kept : "";
}

/* -- arrays and objects -- */

static const char *read_key(struct reader *r, struct krait_strtab *keys)
{
    skip_space(r);
    const char *from = r->at;
    if (!is_next(r, '"')) {
        unexpected(r, "a key's quote");
        return NULL;
    }
    const char *key = read_text(r);
    uint32_t known = keys->len;
    uint32_t id = r->rc ? 0 : krait_strtab_add(keys, key, strlen(key));
    if (id == KRAIT_NO_ID)
        oom(r);
    else if (!r->rc && id != known)
        fail(r, from, "the key \"%.64s\" stands twice", key);
    skip_space(r);
    if (!r->rc && !accept(r, ':'))
        unexpected(r, "':'");
    return key;
}

/* After the opening bracket, up to the closing one. */
static void read_items(struct reader *r, struct krait_json *to, struct krait_strtab *keys)
{
    char closing = keys ? '}' : ']';
    struct krait_json **tail = &to->first;
    skip_space(r);
    if (accept(r, closing))
        return;
    do {
        const char *key = keys ? read_key(r, keys) : NULL;
        struct krait_json *item = r->rc ? NULL : read_value(r);
        if (!item)
            return;
        item->key = key;
        *tail = item;
        tail = &item->next;
        to->count++;
        skip_space(r);
    } while (accept(r, ','));
    if (!r->rc && !accept(r, closing))
        unexpected(r, keys ? "',' or '}'" : "',' or ']'");
}

static void read_container(struct reader *r, struct krait_json *to)
{
    struct krait_strtab keys = { 0 };
    if (++r->depth > KRAIT_JSON_MAX_DEPTH)
        fail(r, r->at, "values within values deeper than %d", (int)KRAIT_JSON_MAX_DEPTH);
    bool object = is_next(r, '{');
    r->at += !r->rc;
    to->kind = object ? KRAIT_JSON_OBJECT : KRAIT_JSON_ARRAY;
    read_items(r, to, object ? &keys : NULL);
    krait_strtab_done(&keys);
    r->depth--;
}

/* -- values -- */

static void read_word(struct reader *r, struct krait_json *to)
{
    static const struct {
        const char *word;
        enum krait_json_kind kind;
    } words[] = { { "null", KRAIT_JSON_NULL }, { "false", KRAIT_JSON_FALSE }, { "true", KRAIT_JSON_TRUE } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->at) < n || memcmp(r->at, words[i].word, n) != 0)
            continue;
        to->kind = words[i].kind;
        r->at += n;
        return;
    }
    unexpected(r, "a value");
}

static struct krait_json *read_value(struct reader *r)
{
    skip_space(r);
    struct krait_json *to = KRAIT_ARENA_NEW(r->arena, struct krait_json);
    if (!to) {
        oom(r);
        return NULL;
    }
    to->at = r->base + (size_t)(r->at - r->begin);
    if (is_next(r, '{') || is_next(r, '[')) {
        read_container(r, to);
    } else if (is_next(r, '"')) {
        to->kind = KRAIT_JSON_TEXT;
        to->text = read_text(r);
    } else if (is_next(r, '-') || is_digit(r)) {
        read_number(r, to);
    } else {
        read_word(r, to);
    }
    return r->rc ? NULL : to;
}

int krait_json_read(struct krait_json **out, struct krait_arena *arena, const char *text, size_t size,
                    size_t base, struct krait_err *err)
{
    struct reader r = {
        .arena = arena, .begin = text, .at = text, .end = text + size, .base = base, .err = err
    };
    struct krait_json *value = read_value(&r);
    skip_space(&r);
    if (!r.rc && r.at < r.end)
        unexpected(&r, "the text's end");
    if (!r.rc)
        *out = value;
    return r.rc;
}

const struct krait_json *krait_json_get(const struct krait_json *object, const char *key)
{
    const struct krait_json *item = object->kind == KRAIT_JSON_OBJECT ? object->first : NULL;
    while (item && strcmp(item->key, key) != 0)
        item = item->next;
    return item;
}

uint64_t krait_json_number(const struct krait_json *object, const char *key)
{
    const struct krait_json *value = krait_json_get(object, key);
    return value && value->kind == KRAIT_JSON_UNSIGNED ? value->number : 0;
}

const char *krait_json_string(const struct krait_json *object, const char *key)
{
    const struct krait_json *value = krait_json_get(object, key);
    return value && value->kind == KRAIT_JSON_TEXT ? value->text : "";
}

const struct krait_json *krait_json_items(const struct krait_json *object, const char *key)
{
    const struct krait_json *value = krait_json_get(object, key);
    return value && value->kind == KRAIT_JSON_ARRAY ? value->first : NULL;
}
