/* SPDX-License-Identifier: Apache-2.0 */
#include "base/symbol.h"

#include <ctype.h>
#include <string.h>

static const char mark[] = "+0x", hex[] = "0123456789abcdef", digits[] = "0123456789";

/* Bytes of text[0..n) that are of `set`. */
static size_t span(const char *text, size_t n, const char *set)
{
    size_t i = 0;
    while (i < n && text[i] && strchr(set, text[i]))
        i++;
    return i;
}

/* "libpython3.11" of "libpython3.11.so.1.0": the version names it. */
static size_t python_stem(const char *name, size_t n)
{
    static const char *const begins[] = { "python3.", "libpython3." };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(begins); i++) {
        size_t length = strlen(begins[i]);
        if (n > length && memcmp(name, begins[i], length) == 0)
            return length + span(name + length, n - length, digits);
    }
    return 0;
}

size_t krait_symbol_address(const char *name, size_t n, size_t *stem)
{
    const char *blank = memchr(name, ' ', n);
    size_t end = blank ? (size_t)(blank - name) : n, at = end, length = strlen(mark);
    while (at && strchr(hex, name[at - 1]))
        at--;
    if (at == end || at <= length || memcmp(name + at - length, mark, length) != 0 || memchr(name, '/', at))
        return 0;
    at -= length;
    const char *dot = memchr(name, '.', at);
    size_t python = python_stem(name, at);
    *stem = python ? python : dot && dot > name ? (size_t)(dot - name) : at;
    return at;
}

/* "read.constprop.0", "read.part.0.cold": the function is what stands before. */
static bool is_of_a_compiler(const char *component)
{
    size_t number = strspn(component, digits);
    return (number && (!component[number] || component[number] == ' ')) || strcmp(component, "cold") == 0 ||
           strncmp(component, "cold ", strlen("cold ")) == 0;
}

/* How many brackets are open behind a character, if `open` were before it. */
static unsigned open_behind(const char *name, size_t at, unsigned open)
{
    bool is_arrow = name[at] == '>' && at && name[at - 1] == '-';
    bool closes = strchr(")]}>", name[at]) && !is_arrow;
    return open + (strchr("([{<", name[at]) != NULL) - (open && closes);
}

/* Of a lambda, or a closure of Rust, which are named after the function that they are in; or a function's arguments of its own. */
static bool is_unnamed(const char *component)
{
    static const char call[] = "operator()";
    return *component == '{' || *component == '<' || strncmp(component, call, strlen(call)) == 0;
}

/* The last component of a name with scopes; the name, if it has none. */
static const char *behind_scopes(const char *name)
{
    const char *last = name;
    unsigned open = 0;
    for (size_t i = 0; name[i]; i++) {
        open = open_behind(name, i, open);
        if (!open && strncmp(name + i, "::", 2) == 0 && !is_unnamed(name + i + 2))
            last = name + i + 2;
    }
    return last;
}

bool krait_symbol_arguments(const char *name, size_t from, size_t *begin, size_t *end)
{
    static const char operator[] = "operator";
    size_t length = strlen(operator);
    for (size_t i = KRAIT_MAX(from, (size_t)1); name[i]; i++) {
        bool is_word = isalnum((unsigned char)name[i - 1]) || name[i - 1] == '_' ||
                       (i > 1 && strncmp(name + i - 2, "::", 2) == 0); /* of a function of Rust */
        bool is_less = i >= length && strncmp(name + i - length, operator, length) == 0;
        if (name[i] != '<' || !is_word || is_less)
            continue;
        *begin = *end = i + 1;
        for (unsigned open = 1; name[*end] && (open = open_behind(name, *end, open)); ++*end)
            continue;
        return name[*end];
    }
    return false;
}

void krait_symbol_brief(struct krait_buf *out, const char *name)
{
    size_t stem, address = krait_symbol_address(name, strlen(name), &stem);
    if (address) {
        krait_buf_add(out, name, stem);
        krait_buf_str(out, name + address);
        return;
    }
    const char *component = behind_scopes(name);
    if (component != name) {
        krait_buf_str(out, component);
        return;
    }
    const char *dot = strrchr(name, '.');
    krait_buf_str(out, dot && dot[1] && !is_of_a_compiler(dot + 1) ? dot + 1 : name);
}
