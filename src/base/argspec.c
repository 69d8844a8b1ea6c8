/* SPDX-License-Identifier: Apache-2.0 */
#include "base/argspec.h"

#include <ctype.h>
#include <string.h>

struct reading {
    const char *text, *at;
    struct krait_argspec *spec;
    struct krait_err *err;
};

static int fail(const struct reading *r, const char *why)
{
    bool is_end = !*r->at;
    return krait_err_set(r->err, -EINVAL, "--args: '%s': %s, at %s%s%s", r->text, why, is_end ? "" : "'",
                         is_end ? "the end" : r->at, is_end ? "" : "'");
}

/* A function alone. */
static int names_nothing(const struct reading *r)
{
    const char *glob = r->spec->glob;
    return krait_err_set(
        r->err, -EINVAL,
        "--args: '%s' names no argument; write '%s(ARGUMENT)', or '%s -> return' for the result", r->text,
        glob, glob);
}

static void skip_blanks(struct reading *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(struct reading *r, const char *word)
{
    skip_blanks(r);
    size_t n = strlen(word);
    bool is_here = strncmp(r->at, word, n) == 0;
    r->at += is_here ? n : 0;
    return is_here;
}

/* Python's identifiers may have any letter that is not ASCII. */
static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static int read_path(struct reading *r, char *path)
{
    const char *from = r->at;
    do {
        if (*r->at == '.')
            r->at++;
        if (!is_in_name(*r->at) || isdigit((unsigned char)*r->at))
            return fail(r, "a name is missing");
        while (is_in_name(*r->at))
            r->at++;
    } while (*r->at == '.');
    return krait_copy_text(path, KRAIT_ARGSPEC_PATH, from, (size_t)(r->at - from))
               ? 0
               : fail(r, "a name is too long");
}

/* Python's own way to write `*rest` and `**more`. */
static void skip_stars(struct reading *r)
{
    skip_blanks(r);
    for (int stars = 0; stars < 2 && *r->at == '*'; stars++)
        r->at++;
}

static int read_how(struct reading *r, enum krait_argspec_how *how)
{
    *how = KRAIT_ARGSPEC_PLAIN;
    if (!take(r, "!"))
        return 0;
    if (!take(r, "r") && !take(r, "h"))
        return fail(r, "only !r and !h can follow a name");
    *how = r->at[-1] == 'r' ? KRAIT_ARGSPEC_REPR : KRAIT_ARGSPEC_HASH;
    return 0;
}

static int read_item(struct reading *r)
{
    if (r->spec->count == KRAIT_ARGSPEC_ITEMS)
        return fail(r, "there are too many names (16 at most)");
    struct krait_argspec_item *item = &r->spec->items[r->spec->count];
    skip_blanks(r);
    int rc = read_path(r, item->path);
    rc = rc ? rc : read_how(r, &item->how);
    r->spec->count += !rc;
    return rc;
}

static int read_names(struct reading *r)
{
    if (!take(r, "(") || take(r, ")"))
        return 0;
    do {
        skip_stars(r);
        int rc = read_item(r);
        if (rc)
            return rc;
    } while (take(r, ","));
    return take(r, ")") ? 0 : fail(r, "a ')' is missing");
}

static int read_result(struct reading *r)
{
    if (!take(r, "->"))
        return 0;
    skip_blanks(r);
    if (strncmp(r->at, "return", strlen("return")) != 0 || is_in_name(r->at[strlen("return")]))
        return fail(r, "only 'return' can follow '->'");
    r->spec->has_result = true;
    return read_item(r);
}

static int read_glob(struct reading *r)
{
    skip_blanks(r);
    const char *arrow = strstr(r->at, "->");
    size_t n = strcspn(r->at, "(");
    if (arrow && (size_t)(arrow - r->at) < n)
        n = (size_t)(arrow - r->at);
    const char *from = r->at;
    r->at += n;
    while (n && isspace((unsigned char)from[n - 1]))
        n--;
    if (!n)
        return fail(r, "the function is missing");
    return krait_copy_text(r->spec->glob, sizeof(r->spec->glob), from, n)
               ? 0
               : fail(r, "the function's name is too long");
}

int krait_argspec_read(struct krait_argspec *out, const char *text, struct krait_err *err)
{
    struct krait_argspec spec = { 0 };
    struct reading r = { text, text, &spec, err };
    int rc = read_glob(&r);
    rc = rc ? rc : read_names(&r);
    rc = rc ? rc : read_result(&r);
    skip_blanks(&r);
    if (!rc && *r.at)
        rc = fail(&r, "this is not understood");
    if (!rc && !spec.count)
        rc = names_nothing(&r);
    if (!rc)
        *out = spec;
    return rc;
}
