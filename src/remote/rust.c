/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/rust.h"

#include "base/json.h"

#include <ctype.h>
#include <string.h>

/* -- legacy: compiler/rustc_symbol_mangling/src/legacy.rs -- */

enum { HASH_DIGITS = 16, LAST_CHARACTER = 0x10ffff };

static bool is_hash(const char *part, size_t n)
{
    return n == 1 + HASH_DIGITS && *part == 'h' && strspn(part + 1, "0123456789abcdef") >= HASH_DIGITS;
}

/* $LT$ is <, $u7e$ is ~. Returns the bytes of it, or 0. */
static size_t put_escaped(struct krait_buf *out, const char *at, size_t n)
{
    static const struct {
        char name[3];
        char is;
    } escapes[] = { { "SP", '@' }, { "BP", '*' }, { "RF", '&' }, { "LT", '<' },
                    { "GT", '>' }, { "LP", '(' }, { "RP", ')' }, { "C", ',' } };
    const char *end = memchr(at + 1, '$', n - 1);
    char *behind = NULL;
    size_t length = end ? (size_t)(end - at - 1) : 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(escapes); i++) {
        if (length == strlen(escapes[i].name) && strncmp(at + 1, escapes[i].name, length) == 0) {
            krait_buf_char(out, escapes[i].is);
            return length + 2;
        }
    }
    unsigned long code =
        length > 1 && at[1] == 'u' && isxdigit((unsigned char)at[2]) ? strtoul(at + 2, &behind, 16) : 0;
    if (code < ' ' || code > LAST_CHARACTER || behind != end)
        return 0;
    krait_utf8_add(out, (uint32_t)code);
    return length + 2;
}

static void put_part(struct krait_buf *out, const char *part, size_t n)
{
    size_t at = n > 1 && part[0] == '_' && part[1] == '$'; /* names do not begin with $ */
    while (at < n) {
        bool colons = n - at > 1 && part[at] == '.' && part[at + 1] == '.';
        size_t escaped = part[at] == '$' ? put_escaped(out, part + at, n - at) : 0;
        if (colons)
            krait_buf_str(out, "::");
        else if (!escaped)
            krait_buf_char(out, part[at]);
        at += colons ? 2 : KRAIT_MAX(escaped, (size_t)1);
    }
}

static const char *put_legacy(struct krait_buf *out, const char *symbol)
{
    const char *at = symbol + strlen("_ZN");
    for (size_t n; isdigit((unsigned char)*at); at += n) {
        char *part;
        n = strtoul(at, &part, 10);
        at = part;
        if (n >= strlen(part))
            return NULL;
        if (is_hash(part, n) && part[n] == 'E')
            return out->len ? part + n + 1 : NULL;
        if (out->len)
            krait_buf_str(out, "::");
        put_part(out, part, n);
    }
    return NULL;
}

/* -- v0 -- */

enum {
    DEEPEST = 200,
    MOST_STEPS = 64 * 1024
}; /* references go back, so a short symbol can have an endless name */

struct v0 {
    struct krait_buf *out;
    const char *begin, *at; /* behind _R */
    unsigned depth, steps;
    unsigned silent; /* nothing is written: for what rustc needs to tell functions apart */
    bool is_open;    /* the arguments of the last path are not closed */
    bool failed;
};

static void put_path(struct v0 *v);
static void put_type(struct v0 *v);

static void put_bytes(struct v0 *v, const char *text, size_t n)
{
    if (!v->silent)
        krait_buf_add(v->out, text, n);
    v->failed |= v->out->len > KRAIT_RUST_LONGEST;
}

static void put(struct v0 *v, const char *text)
{
    put_bytes(v, text, strlen(text));
}

static char next(struct v0 *v)
{
    if (v->failed || !*v->at) {
        v->failed = true;
        return '\0';
    }
    return *v->at++;
}

static bool take(struct v0 *v, char c)
{
    bool is = !v->failed && *v->at == c;
    v->at += is;
    return is;
}

/* "_" is 0, "0_" is 1, "Z_" is 62. */
static uint64_t read_base62(struct v0 *v)
{
    uint64_t value = 0;
    if (take(v, '_'))
        return 0;
    for (char c = next(v); c != '_' && !v->failed; c = next(v)) {
        uint64_t digit = isdigit((unsigned char)c)   ? (uint64_t)(c - '0')
                         : islower((unsigned char)c) ? (uint64_t)(c - 'a') + 10
                                                     : (uint64_t)(c - 'A') + 36;
        v->failed |= !isalnum((unsigned char)c) || value > (UINT64_MAX - digit) / 62;
        value = value * 62 + digit;
    }
    return value + 1;
}

/* 0: there is none. */
static uint64_t read_optional(struct v0 *v, char tag)
{
    return take(v, tag) ? read_base62(v) + 1 : 0;
}

struct identifier {
    const char *text;
    size_t n;
    uint64_t index; /* of those that have the same name */
    bool is_punycode;
};

static struct identifier read_plain_identifier(struct v0 *v)
{
    struct identifier id = { .is_punycode = take(v, 'u') };
    char *end;
    if (!isdigit((unsigned char)*v->at)) {
        v->failed = true;
        return id;
    }
    bool is_empty = *v->at == '0';
    size_t n = is_empty ? 0 : strtoul(v->at, &end, 10);
    v->at = is_empty ? v->at + 1 : end;
    take(v, '_'); /* where the name begins with a digit or with that */
    v->failed |= n > strlen(v->at);
    id.text = v->at;
    id.n = v->failed ? 0 : n;
    v->at += id.n;
    return id;
}

static struct identifier read_identifier(struct v0 *v)
{
    uint64_t index = read_optional(v, 's');
    struct identifier id = read_plain_identifier(v);
    id.index = index;
    return id;
}

static void put_identifier(struct v0 *v, const struct identifier *id)
{
    put(v, id->is_punycode ? "punycode{" : "");
    put_bytes(v, id->text, id->n);
    put(v, id->is_punycode ? "}" : "");
}

/* Goes on at an earlier place, for one node. */
static void follow(struct v0 *v, void (*node)(struct v0 *v))
{
    uint64_t to = read_base62(v);
    const char *behind = v->at;
    if (v->failed || to >= (uint64_t)(behind - v->begin)) {
        v->failed = true;
        return;
    }
    if (v->silent)
        return;
    v->at = v->begin + to;
    node(v);
    v->at = behind;
}

/* False: there are too many nodes. Call leave() at the end. */
static bool enter(struct v0 *v)
{
    v->failed |= ++v->depth > DEEPEST || ++v->steps > MOST_STEPS;
    return !v->failed;
}

static void leave(struct v0 *v)
{
    v->depth--;
}

/* Up to E, with commas. Returns how many there were. */
static unsigned put_list(struct v0 *v, void (*node)(struct v0 *v))
{
    unsigned count = 0;
    for (; !v->failed && !take(v, 'E'); count++) {
        put(v, count ? ", " : "");
        node(v);
    }
    return count;
}

/* -- constants -- */

static void put_number(struct v0 *v, char type, const char *digits, size_t n)
{
    char text[32] = "";
    uint64_t value = n && n <= HASH_DIGITS ? strtoull(digits, NULL, 16) : 0;
    if (type == 'b')
        put(v, value ? "true" : "false");
    else if (type == 'c' && value > ' ' && value < 0x7f)
        snprintf(text, sizeof(text), "'%c'", (char)value);
    else if (type == 'c')
        snprintf(text, sizeof(text), "'\\u{%llx}'", (unsigned long long)value);
    else if (n <= HASH_DIGITS)
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    put(v, text);
    if (n > HASH_DIGITS && type != 'b' && type != 'c') {
        put(v, "0x");
        put_bytes(v, digits, n);
    }
}

static void put_constant(struct v0 *v)
{
    if (take(v, 'p')) {
        put(v, "_");
        return;
    }
    if (take(v, 'B')) {
        follow(v, put_constant);
        return;
    }
    char type = next(v);
    put(v, take(v, 'n') ? "-" : "");
    size_t n = strspn(v->at, "0123456789abcdef");
    const char *digits = v->at;
    v->at += n;
    v->failed |= !strchr("abchijlmnostxy", type) || !take(v, '_'); /* other types cannot be yet */
    if (!v->failed)
        put_number(v, type, digits, n);
}

/* -- types -- */

static const char *basic_type(char c)
{
    static const char *const names[] = { "i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
                                         "usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
                                         "i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!" };
    return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void put_argument(struct v0 *v)
{
    if (take(v, 'L')) {
        read_base62(v);
        put(v, "'_");
    } else if (take(v, 'K')) {
        put_constant(v);
    } else {
        put_type(v);
    }
}

static void put_array(struct v0 *v)
{
    put(v, "[");
    put_type(v);
    put(v, "; ");
    put_constant(v);
    put(v, "]");
}

static void put_slice(struct v0 *v)
{
    put(v, "[");
    put_type(v);
    put(v, "]");
}

static void put_tuple(struct v0 *v)
{
    put(v, "(");
    put(v, put_list(v, put_type) == 1 ? ",)" : ")");
}

static void put_pointer(struct v0 *v, const char *begin)
{
    read_optional(v, 'L');
    put(v, begin);
    put_type(v);
}

static void put_abi(struct v0 *v)
{
    if (!take(v, 'K'))
        return;
    struct identifier abi = { "C", 1, 0, false };
    if (!take(v, 'C'))
        abi = read_plain_identifier(v);
    put(v, "extern \"");
    put_identifier(v, &abi);
    put(v, "\" ");
}

static void put_function(struct v0 *v)
{
    read_optional(v, 'G');
    put(v, take(v, 'U') ? "unsafe " : "");
    put_abi(v);
    put(v, "fn(");
    put_list(v, put_type);
    put(v, ")");
    if (take(v, 'u'))
        return;
    put(v, " -> ");
    put_type(v);
}

static void put_arguments(struct v0 *v)
{
    put(v, "<");
    put_list(v, put_argument);
}

/* A trait's path: types that belong to it may follow within its brackets. */
static void put_open_path(struct v0 *v)
{
    if (take(v, 'B')) {
        if (enter(v))
            follow(v, put_open_path);
        leave(v);
        return;
    }
    bool has_arguments = take(v, 'I');
    put_path(v);
    if (has_arguments)
        put_arguments(v);
    v->is_open = has_arguments;
}

static void put_trait(struct v0 *v)
{
    v->is_open = false;
    put_open_path(v);
    bool is_open = v->is_open;
    while (take(v, 'p')) {
        put(v, is_open ? ", " : "<");
        is_open = true;
        struct identifier id = read_plain_identifier(v);
        put_identifier(v, &id);
        put(v, " = ");
        put_type(v);
    }
    put(v, is_open ? ">" : "");
}

static void put_dyn(struct v0 *v)
{
    put(v, "dyn ");
    read_optional(v, 'G');
    for (unsigned i = 0; !v->failed && !take(v, 'E'); i++) {
        put(v, i ? " + " : "");
        put_trait(v);
    }
    v->failed |= !read_optional(v, 'L');
}

static void put_made_type(struct v0 *v, char c)
{
    static const struct {
        char tag;
        void (*put)(struct v0 *v);
    } kinds[] = {
        { 'A', put_array }, { 'S', put_slice }, { 'T', put_tuple }, { 'F', put_function }, { 'D', put_dyn }
    };
    static const struct {
        char tag;
        const char *begin;
    } pointers[] = { { 'R', "&" }, { 'Q', "&mut " }, { 'P', "*const " }, { 'O', "*mut " } };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds); i++) {
        if (kinds[i].tag == c) {
            kinds[i].put(v);
            return;
        }
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(pointers); i++) {
        if (pointers[i].tag == c) {
            put_pointer(v, pointers[i].begin);
            return;
        }
    }
    v->at--;
    put_path(v);
}

static void put_type(struct v0 *v)
{
    char c = enter(v) ? next(v) : '\0';
    const char *basic = basic_type(c);
    if (basic)
        put(v, basic);
    else if (c == 'B')
        follow(v, put_type);
    else if (!v->failed)
        put_made_type(v, c);
    leave(v);
}

/* -- paths -- */

static void put_crate(struct v0 *v)
{
    struct identifier id = read_identifier(v);
    put_identifier(v, &id);
}

/* What has no name of its own: {closure#0}, {shim:vtable#0}. */
static void put_unnamed(struct v0 *v, char space, const struct identifier *id)
{
    char index[24];
    put(v, space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : "::{");
    put_bytes(v, &space, space != 'C' && space != 'S');
    if (id->n)
        put(v, ":");
    put_identifier(v, id);
    snprintf(index, sizeof(index), "#%llu}", (unsigned long long)id->index);
    put(v, index);
}

static void put_nested(struct v0 *v, void (*path)(struct v0 *v))
{
    char space = next(v);
    path(v);
    struct identifier id = read_identifier(v);
    if (isupper((unsigned char)space)) {
        put_unnamed(v, space, &id);
        return;
    }
    put(v, id.n ? "::" : "");
    put_identifier(v, &id);
}

/* Methods: of a type (M), of a trait for a type (X), and those that the trait itself has for a type (Y). */
static void put_methods(struct v0 *v, char tag)
{
    if (tag != 'Y') {
        v->silent++;
        read_optional(v, 's');
        put_path(v);
        v->silent--;
    }
    put(v, "<");
    put_type(v);
    put(v, tag == 'M' ? "" : " as ");
    if (tag != 'M')
        put_path(v);
    put(v, ">");
}

/* In a value's path, arguments follow "::". */
static void put_path_of(struct v0 *v, void (*path)(struct v0 *v), const char *before_arguments)
{
    char tag = enter(v) ? next(v) : '\0';
    if (tag == 'C') {
        put_crate(v);
    } else if (tag == 'N') {
        put_nested(v, path);
    } else if (tag && strchr("MXY", tag)) {
        put_methods(v, tag);
    } else if (tag == 'I') {
        path(v);
        put(v, before_arguments);
        put_arguments(v);
        put(v, ">");
    } else if (tag == 'B') {
        follow(v, path);
    } else {
        v->failed = true;
    }
    leave(v);
}

static void put_path(struct v0 *v)
{
    put_path_of(v, put_path, "");
}

static void put_value(struct v0 *v)
{
    put_path_of(v, put_value, "::");
}

/* The crate that has made the function of a template may follow. */
static const char *put_v0(struct krait_buf *out, const char *symbol)
{
    const char *path = symbol + strlen("_R");
    struct v0 v = { .out = out, .begin = path, .at = path };
    put_value(&v);
    if (isupper((unsigned char)*v.at)) {
        v.silent++;
        put_path(&v);
    }
    return v.failed || !out->len || (*v.at && *v.at != '.' && *v.at != '$') ? NULL : v.at;
}

const char *krait_rust_name(struct krait_buf *out, const char *symbol)
{
    return strncmp(symbol, "_ZN", 3) == 0  ? put_legacy(out, symbol)
           : strncmp(symbol, "_R", 2) == 0 ? put_v0(out, symbol)
                                           : NULL;
}
