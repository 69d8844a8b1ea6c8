/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/demangle.h"

#include "remote/rust.h"

#include <ctype.h>
#include <setjmp.h>
#include <string.h>

/* -- C++ -- */

enum { LONGEST = 64 * 1024 };

struct demangling {
    struct krait_buf text;
    jmp_buf too_long;
};

static void add_text(const char *text, size_t n, void *arg)
{
    struct demangling *demangling = arg;
    krait_buf_add(&demangling->text, text, n);
    if (demangling->text.len > LONGEST)
        longjmp(demangling->too_long, 1);
}

/* Of libstdc++, which krait has in it for TOML: include/demangle.h of GCC. A few bytes of a damaged file can stand for names of
 * gigabytes, which abi::__cxa_demangle would make as a whole. */
int __gcclibcxx_demangle_callback(const char *symbol, void (*add)(const char *text, size_t n, void *arg),
                                  void *arg);

static bool demangle(struct demangling *demangling, const char *symbol)
{
    if (!KRAIT_HAS_DEMANGLER)
        return false;
    if (setjmp(demangling->too_long))
        return false;
    return !__gcclibcxx_demangle_callback(symbol, add_text, demangling) && demangling->text.len &&
           !demangling->text.failed;
}

static const char OPERATOR[] = "operator";
enum { OPERATOR_LENGTH = sizeof(OPERATOR) - 1 };

/* Behind the name of an operator. */
static const char *behind_operator(const char *at)
{
    at += OPERATOR_LENGTH;
    return strncmp(at, "()", 2) == 0 ? at + 2 : at + strspn(at, "<>=!+-*/%^&|~,");
}

static bool is_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_operator(const char *text, const char *at)
{
    return strncmp(at, OPERATOR, OPERATOR_LENGTH) == 0 && (at == text || !is_in_word(at[-1])) &&
           !is_in_word(at[OPERATOR_LENGTH]);
}

/* Of a function in which others are: f() const::{lambda()#1}::operator(). */
static bool is_qualifier(const char *at)
{
    static const char *const words[] = { "const", "volatile", "&&", "&" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i]);
        if (strncmp(at, words[i], n) == 0 && (!at[n] || at[n] == ' ' || at[n] == ':'))
            return true;
    }
    return false;
}

struct name {
    const char *text, *begin, *end;
    unsigned nested, angles; /* brackets that are open; nested ones may compare: foo<(1 > 2)> */
    bool begun;              /* blanks are within it */
};

/* Returns the last character that it has looked at. */
static const char *look_at(struct name *name, const char *at)
{
    bool outside = !name->nested && !name->angles;
    if (outside && is_operator(name->text, at)) {
        name->begun = true;
        return behind_operator(at) - 1;
    }
    if (outside && *at == '(')
        name->end = at;
    if (outside && *at == ' ' && !name->begun && !is_qualifier(at + 1))
        name->begin = at + 1;
    name->nested += strchr("([{", *at) != NULL;
    name->nested -= name->nested && strchr(")]}", *at);
    name->angles += !name->nested && *at == '<';
    name->angles -= !name->nested && name->angles && *at == '>';
    return at;
}

/* "int shop::sum<int>(int) const": parameters are in the last brackets that are in no others. Only functions that are made of
 * templates have a return type; it ends with the last blank before the name. */
static void put_cpp(struct krait_buf *out, const char *text)
{
    struct name name = { .text = text, .begin = text, .begun = strstr(text, " thunk to ") };
    name.end = text + strlen(text);
    for (const char *at = text; *at; at++)
        at = look_at(&name, at);
    bool returns = name.begin < name.end && name.end[-1] == '>';
    const char *begin = returns ? name.begin : text;
    bool is_name = name.end > begin && (name.begun || name.end[-1] != ')'); /* not so: void (*f(int))(char) */
    krait_buf_add(out, begin, is_name ? (size_t)(name.end - begin) : strlen(begin));
}

/* -- both -- */

/* What follows a dot belongs to the compiler. Clang's .llvm.1234 makes names of different files differ. */
static void put_suffix(struct krait_buf *out, const char *suffix)
{
    const char *own = strstr(suffix, ".llvm.");
    krait_buf_add(out, suffix, own ? (size_t)(own - suffix) : strlen(suffix));
}

static bool put_cpp_symbol(struct krait_buf *out, const char *symbol)
{
    size_t n = strcspn(symbol, ".");
    KRAIT_AUTO_FREE char *mangled = strndup(symbol, n);
    struct demangling demangling = { 0 };
    bool ok = mangled && strncmp(symbol, "_Z", 2) == 0 && demangle(&demangling, mangled);
    if (ok) {
        put_cpp(out, demangling.text.data);
        put_suffix(out, symbol + n);
    }
    krait_buf_done(&demangling.text);
    return ok;
}

static bool put_rust_symbol(struct krait_buf *out, const char *symbol)
{
    KRAIT_AUTO_BUF name = { 0 };
    const char *behind = krait_rust_name(&name, symbol);
    if (!behind || name.failed)
        return false;
    krait_buf_add(out, name.data, name.len);
    put_suffix(out, behind);
    return true;
}

void krait_demangle(struct krait_buf *out, const char *symbol)
{
    size_t n = strcspn(symbol, "@");
    KRAIT_AUTO_FREE char *plain = n ? strndup(symbol, n) : NULL;
    symbol = plain ? plain : symbol;
    if (!put_rust_symbol(out, symbol) && !put_cpp_symbol(out, symbol))
        krait_buf_str(out, symbol);
}
