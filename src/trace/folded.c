/* SPDX-License-Identifier: Apache-2.0
 *
 * Each text of a frame is taken apart once, whatever its writer: frames.texts has them, frames.items what they are.
 *
 * How writers put a frame, from their sources and documentation:
 *
 *     name (file.py:12)       py-spy --format raw; "name (lib.so)" of native frames
 *     file.py:name:12         Austin
 *     py::name:file.py        CPython's perf support (-X perf), by stackcollapse-perf.pl
 *     lib`name                stackcollapse.pl, of DTrace
 *     name_[k]  _[j] _[i] _[w]  stackcollapse-perf.pl --all: kernel, jit, inlined, waker
 *     package.module.name     krait, with \x3b for a semicolon in a name
 *     name                    all others
 *
 * The outermost frames may be the process and the thread: "process 12:..." and "thread (0x7f01)" of py-spy, "P12" and
 * "T0:13" of Austin, "python3 12" and "MainThread 13" of krait.
 */
#include "trace/folded.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/symbol.h"
#include "trace/importer.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct reading {
    struct krait_trace *trace;
    struct {
        struct krait_strtab texts;
        struct krait_folded_frame *items; /* by id of the text */
        uint32_t count, cap;
    } frames;
    struct krait_folded_frame *stack;
    uint32_t stack_cap;
    struct krait_folded_facts facts;
};

struct text {
    const char *at;
    size_t n;
};

#define NOWHERE SIZE_MAX

static size_t find_last(struct text text, char c)
{
    const char *found = text.n ? memrchr(text.at, c, text.n) : NULL;
    return found ? (size_t)(found - text.at) : NOWHERE;
}

static struct text part(struct text text, size_t from, size_t to)
{
    return (struct text){ text.at + from, to - from };
}

static bool starts(struct text text, const char *with)
{
    return text.n >= strlen(with) && memcmp(text.at, with, strlen(with)) == 0;
}

static bool ends(struct text text, const char *with)
{
    size_t n = strlen(with);
    return text.n >= n && memcmp(text.at + text.n - n, with, n) == 0;
}

static bool is_number(struct text text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (!isdigit((unsigned char)text.at[i]))
            return false;
    }
    return text.n > 0 && text.n < 10;
}

/* What a frame is taken apart into. */
struct parts {
    struct text name, module, file;
    enum krait_func_kind kind;
};

static bool is_python_file(struct text file)
{
    return ends(file, ".py") || ends(file, ".pyx") || ends(file, ".pyc") || starts(file, "<");
}

/* The line that writers give is the one that ran, not the function's first: it is left out, so that a function is one
 * frame. */
static void set_file(struct parts *parts, struct text file)
{
    parts->file = file;
    parts->kind = is_python_file(file) ? KRAIT_FUNC_PYTHON : KRAIT_FUNC_NATIVE;
}

/* "name (file.py:12)", "name (lib.so)". */
static bool in_parentheses(struct parts *parts, struct text text)
{
    size_t open = find_last(text, '(');
    if (!ends(text, ")") || open == NOWHERE || open < 2 || text.at[open - 1] != ' ')
        return false;
    struct text place = part(text, open + 1, text.n - 1);
    size_t colon = find_last(place, ':');
    if (colon != NOWHERE && is_number(part(place, colon + 1, place.n)))
        place.n = colon;
    if (!place.n)
        return false;
    parts->name = part(text, 0, open - 1);
    set_file(parts, place);
    return true;
}

/* "file.py:name:12". */
static bool between_colons(struct parts *parts, struct text text)
{
    size_t last = find_last(text, ':');
    if (last == NOWHERE || !is_number(part(text, last + 1, text.n)))
        return false;
    size_t first = find_last(part(text, 0, last), ':');
    if (first == NOWHERE || !first || first + 1 == last || text.at[first - 1] == ':')
        return false;
    parts->name = part(text, first + 1, last);
    set_file(parts, part(text, 0, first));
    return true;
}

/* "py::name:file.py". */
static bool of_perf_map(struct parts *parts, struct text text)
{
    struct text rest = starts(text, "py::") ? part(text, 4, text.n) : (struct text){ text.at, 0 };
    size_t colon = find_last(rest, ':');
    if (colon == NOWHERE || !colon)
        return false;
    parts->name = part(rest, 0, colon);
    set_file(parts, part(rest, colon + 1, rest.n));
    parts->kind = KRAIT_FUNC_PYTHON;
    return true;
}

/* "name_[k]". The kernel's functions are of one file, so that they have one colour. */
static bool with_mark(struct parts *parts, struct text text)
{
    static const char *const marks[] = { "_[k]", "_[j]", "_[i]", "_[w]" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(marks); i++) {
        if (text.n <= 4 || !ends(text, marks[i]))
            continue;
        parts->name.n -= 4;
        if (i == 0)
            parts->file = (struct text){ "[kernel]", strlen("[kernel]") };
        return true;
    }
    return false;
}

static bool after_backquote(struct parts *parts, struct text text)
{
    size_t quote = find_last(text, '`');
    if (quote == NOWHERE || !quote || quote + 1 == text.n)
        return false;
    parts->file = part(text, 0, quote);
    parts->name = part(text, quote + 1, text.n);
    return true;
}

/* "package.module.name", but no symbol of a compiler's making such as "read.constprop.0", and no file. */
static bool with_dots(struct parts *parts, struct text text)
{
    static const char *const of_compilers[] = {
        "constprop", "isra", "part", "cold", "lto_priv", "llvm", "so"
    };
    const char *dot = memchr(text.at, '.', text.n);
    size_t at = dot ? (size_t)(dot - text.at) : 0;
    if (!at || at + 1 == text.n || !(isalpha((unsigned char)*text.at) || *text.at == '_'))
        return false;
    struct text rest = part(text, at + 1, text.n);
    size_t stem;
    if (krait_symbol_address(text.at, text.n, &stem))
        return false;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(of_compilers); i++) {
        if (starts(rest, of_compilers[i]))
            return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (strchr("/:([ ", text.at[i]) && text.at[i])
            return false;
    }
    parts->module = part(text, 0, at);
    parts->name = rest;
    parts->kind = KRAIT_FUNC_PYTHON;
    return true;
}

typedef bool form_fn(struct parts *parts, struct text text);

/* The first form that a frame has is its. */
static form_fn *const forms[] = {
    with_mark, of_perf_map, in_parentheses, between_colons, after_backquote, with_dots,
};

static struct parts take_apart(struct text text)
{
    struct parts parts = { .name = text, .kind = KRAIT_FUNC_NATIVE };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(forms); i++) {
        if (forms[i](&parts, text))
            break;
    }
    return parts;
}

static bool is_group(struct text text)
{
    size_t blank = find_last(text, ' ');
    struct text rest = part(text, KRAIT_MIN(text.n, (size_t)1), text.n), word = part(text, blank + 1, text.n);
    size_t colon = find_last(rest, ':');
    if (starts(text, "process ") || starts(text, "thread ("))
        return true;
    if (blank != NOWHERE && blank > 0 && is_number(word))
        return true;
    if (starts(text, "T") && colon != NOWHERE)
        return is_number(part(rest, 0, colon)) && is_number(part(rest, colon + 1, rest.n));
    return (starts(text, "P") || starts(text, "T")) && is_number(rest);
}

/* A text of the file as a string: without NULs, a semicolon for krait's \x3b. */
static const char *string_of(struct krait_buf *buf, struct text text)
{
    krait_buf_clear(buf);
    for (size_t i = 0; i < text.n; i++) {
        bool escaped = starts(part(text, i, text.n), "\\x3b");
        krait_buf_char(buf, escaped ? ';' : text.at[i] ? text.at[i] : '?');
        i += escaped ? strlen("x3b") : 0;
    }
    krait_buf_char(buf, 0);
    return buf->failed ? NULL : buf->data;
}

/* Where a file's name is that of a module, which it is below the folders that Python imports from: "json.encoder" of
 * json/encoder.py, "importlib._bootstrap" of <frozen importlib._bootstrap>. */
static struct text module_in(struct text file)
{
    static const char frozen[] = "<frozen ", package[] = "/__init__";
    size_t slash = find_last(file, '/');
    if (starts(file, frozen) && ends(file, ">"))
        return part(file, strlen(frozen), file.n - 1);
    if (!ends(file, ".py") || *file.at == '/' || *file.at == '.')
        return part(file, 0, 0);
    file.n -= strlen(".py");
    if (slash != NOWHERE && ends(file, package))
        file.n -= strlen(package);
    return file;
}

static const char *module_of(struct krait_buf *buf, const struct parts *parts)
{
    bool is_given = parts->module.n || parts->kind != KRAIT_FUNC_PYTHON;
    const char *string = string_of(buf, is_given ? parts->module : module_in(parts->file));
    for (size_t i = 0; string && !is_given && i < buf->len; i++)
        buf->data[i] = buf->data[i] == '/' ? '.' : buf->data[i];
    return string;
}

static uint32_t add_func(struct krait_trace *trace, struct text text)
{
    KRAIT_AUTO_BUF name = { 0 };
    KRAIT_AUTO_BUF module = { 0 };
    KRAIT_AUTO_BUF file = { 0 };
    struct parts parts = take_apart(text);
    struct krait_func func = {
        .name = string_of(&name, parts.name),
        .module = module_of(&module, &parts),
        .file = string_of(&file, parts.file),
        .kind = parts.kind,
        .site_func = KRAIT_NO_ID,
    };
    return func.name && func.module && func.file ? krait_trace_intern(trace, &func) : KRAIT_NO_ID;
}

static uint32_t add_group(struct krait_trace *trace, struct text text)
{
    KRAIT_AUTO_BUF name = { 0 };
    const char *string = string_of(&name, text);
    return string ? krait_trace_name(trace, string) : KRAIT_NO_ID;
}

/* What a text of a frame is. Groups are outermost alone, and a text that may be one is kept apart from the same text
 * further inside. */
static int frame_of(struct reading *r, struct text text, uint32_t depth, struct krait_folded_frame *frame)
{
    bool group = depth < 2 && is_group(text);
    KRAIT_AUTO_BUF key = { 0 };
    krait_buf_char(&key, group ? 'g' : 'f');
    krait_buf_add(&key, text.at, text.n);
    uint32_t id = key.failed ? KRAIT_NO_ID : krait_strtab_add(&r->frames.texts, key.data, key.len);
    if (id == KRAIT_NO_ID)
        return -ENOMEM;
    if (id == r->frames.count) {
        if (!KRAIT_GROW(r->frames.items, r->frames.cap, id + 1))
            return -ENOMEM;
        uint32_t made = group ? add_group(r->trace, text) : add_func(r->trace, text);
        if (made == KRAIT_NO_ID)
            return -ENOMEM;
        r->frames.items[r->frames.count++] = (struct krait_folded_frame){ made, group };
    }
    *frame = r->frames.items[id];
    return 0;
}

/* "main;load 12" into its stack and its number, which may have decimals: those are rounded. */
static bool split_line(struct text *line, uint64_t *value)
{
    while (line->n && isspace((unsigned char)line->at[line->n - 1]))
        line->n--;
    size_t blank = find_last(*line, ' ');
    if (blank == NOWHERE || !isdigit((unsigned char)line->at[blank + 1]))
        return false;
    char *end;
    double x = strtod(line->at + blank + 1, &end); /* a blank or the line's end is behind it */
    if (end != line->at + line->n || !isfinite(x) || x < 0 || x > 1e18)
        return false;
    *value = (uint64_t)(x + 0.5);
    line->n = blank;
    while (line->n && line->at[line->n - 1] == ' ')
        line->n--;
    return line->n > 0;
}

static int read_stack(struct reading *r, struct text line, uint64_t value, krait_folded_fn *fn, void *ctx)
{
    uint32_t depth = 0;
    for (size_t from = 0; from <= line.n;) {
        const char *semicolon = memchr(line.at + from, ';', line.n - from);
        size_t to = semicolon ? (size_t)(semicolon - line.at) : line.n;
        if (!KRAIT_GROW(r->stack, r->stack_cap, depth + 1))
            return -ENOMEM;
        if (to > from && frame_of(r, part(line, from, to), depth, &r->stack[depth]))
            return -ENOMEM;
        depth += to > from;
        from = to + 1;
    }
    struct krait_folded_stack stack = { r->stack, depth, value };
    if (!depth || !value)
        return 0;
    r->facts.stacks++;
    return fn(ctx, &stack);
}

/* Austin's head: "# mode: wall". */
static void read_comment(struct reading *r, struct text line)
{
    r->facts.is_microseconds |= starts(line, "# mode: wall") || starts(line, "# mode: cpu");
}

static int read_line(struct reading *r, struct text line, uint64_t number, krait_folded_fn *fn, void *ctx)
{
    uint64_t value;
    while (line.n && (line.at[line.n - 1] == '\n' || line.at[line.n - 1] == '\r'))
        line.n--;
    if (!line.n)
        return 0;
    if (starts(line, "# ")) {
        read_comment(r, line);
        return 0;
    }
    if (split_line(&line, &value))
        return read_stack(r, line, value, fn, ctx);
    r->facts.first = r->facts.skipped++ ? r->facts.first : number;
    return 0;
}

static int read_lines(struct reading *r, FILE *file, krait_folded_fn *fn, void *ctx)
{
    char *line = NULL;
    size_t size = 0;
    int rc = 0;
    for (uint64_t number = 1; !rc; number++) {
        errno = 0;
        ssize_t n = getline(&line, &size, file);
        if (n < 0) {
            rc = ferror(file) || errno == ENOMEM ? -errno : 0;
            break;
        }
        rc = read_line(r, (struct text){ line, (size_t)n }, number, fn, ctx);
    }
    free(line);
    return rc;
}

bool krait_folded_is_file(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISDIR(st.st_mode));
}

static int check_facts(const struct krait_folded_facts *facts, const char *path, struct krait_err *err)
{
    if (facts->stacks)
        return 0;
    if (!facts->skipped)
        return krait_err_set(err, -EINVAL, "%s: no stacks in it", path);
    return krait_err_set(
        err, -EINVAL,
        "%s:%llu: not a folded stack, which is \"outermost;...;innermost 12\" on one line, and "
        "no other line is one",
        path, (unsigned long long)facts->first);
}

int krait_folded_read(struct krait_trace **trace, const char *path, krait_folded_fn *fn, void *ctx,
                      struct krait_folded_facts *facts, struct krait_err *err)
{
    struct reading r = { 0 };
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    if (!file)
        return krait_err_set(err, -errno, "%s: %s", path, strerror(errno));
    int rc = krait_trace_new(trace);
    r.trace = *trace;
    rc = rc ? rc : read_lines(&r, file, fn, ctx);
    if (!is_stdin)
        fclose(file);
    krait_strtab_done(&r.frames.texts);
    free(r.frames.items);
    free(r.stack);
    *facts = r.facts;
    if (rc)
        rc = krait_err_set(err, rc, "%s: %s", path, strerror(-rc));
    rc = rc ? rc : check_facts(facts, is_stdin ? "standard input" : path, err);
    if (rc) {
        krait_trace_close(r.trace);
        *trace = NULL;
    }
    return rc;
}
