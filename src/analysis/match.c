/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/match.h"

#include <fnmatch.h>
#include <regex.h>
#include <string.h>

struct krait_match {
    const char *glob; /* or a plain text */
    bool plain;
    bool is_regex;
    regex_t regex;
};

int krait_match_new(struct krait_match **out, const char *pattern, struct krait_err *err)
{
    struct krait_match *match = calloc(1, sizeof(*match));
    if (!match)
        return krait_err_set(err, -ENOMEM, "out of memory");
    match->is_regex = strncmp(pattern, "re:", 3) == 0;
    match->glob = pattern;
    match->plain = !strpbrk(pattern, "*?[");
    int rc = match->is_regex ? regcomp(&match->regex, pattern + 3, REG_EXTENDED | REG_NOSUB) : 0;
    if (rc) {
        char why[128];
        regerror(rc, &match->regex, why, sizeof(why));
        free(match);
        return krait_err_set(err, -EINVAL, "'%s' is no regular expression: %s", pattern + 3, why);
    }
    *out = match;
    return 0;
}

void krait_match_free(struct krait_match *match)
{
    if (!match)
        return;
    if (match->is_regex)
        regfree(&match->regex);
    free(match);
}

const char *krait_match_pattern(const struct krait_match *match)
{
    return match->glob;
}

/* "", or where parts of names and paths begin and end: pkg.mod, Class.method, f.<locals>.g, lib/app.py. */
static bool is_edge(char c)
{
    return c == '\0' || c == '.' || c == '/' || c == '<' || c == '>';
}

static bool has_parts(const char *text, const char *parts)
{
    size_t n = strlen(parts);
    for (const char *at = text; n && (at = strstr(at, parts)); at++) {
        bool begins = at == text || is_edge(at[-1]) || is_edge(parts[0]);
        if (begins && (is_edge(at[n]) || is_edge(parts[n - 1])))
            return true;
    }
    return false;
}

bool krait_match_text(const struct krait_match *match, const char *text)
{
    if (match->is_regex)
        return regexec(&match->regex, text, 0, NULL, 0) == 0;
    if (match->plain)
        return has_parts(text, match->glob);
    return fnmatch(match->glob, text, 0) == 0;
}

bool krait_match_func(const struct krait_match *match, const char *module, const char *name, const char *file)
{
    if (krait_match_text(match, name) || krait_match_text(match, module) || krait_match_text(match, file))
        return true;
    KRAIT_AUTO_FREE char *label = NULL;
    if (asprintf(&label, "%s.%s", module, name) < 0) {
        label = NULL;
        return false;
    }
    return krait_match_text(match, label);
}

static bool is_equal(const struct krait_match *match, const char *text)
{
    return strcmp(match->glob, text) == 0;
}

static uint32_t mark(bool *meant, const struct krait_trace *trace, const struct krait_match *match,
                     bool (*is_meant)(const struct krait_match *match, const char *text))
{
    uint32_t found = 0;
    char label[4096];
    for (uint32_t i = 0; i < trace->func_count; i++) {
        const struct krait_func *f = &trace->funcs[i];
        meant[i] = is_meant(match, f->name) || is_meant(match, krait_func_label(f, label, sizeof(label)));
        found += meant[i];
    }
    return found;
}

int krait_match_labels(struct krait_strtab *labels, const struct krait_trace *trace, const bool *meant)
{
    char label[4096];
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (!meant[i])
            continue;
        krait_func_label(&trace->funcs[i], label, sizeof(label));
        if (krait_strtab_add(labels, label, strlen(label)) == KRAIT_NO_ID)
            return -ENOMEM;
    }
    return 0;
}

void krait_match_suggest(struct krait_suggest *suggest, struct krait_arena *labels,
                         const struct krait_func *func)
{
    char label[4096];
    krait_suggest_try(suggest, func->name);
    struct krait_suggest with_label = *suggest;
    krait_suggest_try(&with_label, krait_func_label(func, label, sizeof(label)));
    const char *own = with_label.best == label ? krait_arena_strdup(labels, label) : NULL;
    if (own) {
        suggest->best = own;
        suggest->best_distance = with_label.best_distance;
    }
}

void krait_match_suggest_any(struct krait_suggest *suggest, struct krait_arena *labels,
                             const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (!trace->funcs[i].is_own)
            krait_match_suggest(suggest, labels, &trace->funcs[i]);
    }
}

static int no_function(const struct krait_trace *trace, const char *name, struct krait_err *err)
{
    struct krait_arena labels = { 0 };
    struct krait_suggest suggest = KRAIT_SUGGEST(name, strlen(name));
    krait_match_suggest_any(&suggest, &labels, trace);
    int rc = suggest.best
                 ? krait_err_set(err, -ENOENT, "no function '%s' in the trace; did you mean '%s'?", name,
                                 suggest.best)
                 : krait_err_set(
                       err, -ENOENT,
                       "no function '%s' in the trace; `krait report --filter TEXT` looks for names", name);
    krait_arena_done(&labels);
    return rc;
}

int krait_match_mark(bool *meant, const struct krait_trace *trace, const struct krait_match *match,
                     struct krait_err *err)
{
    if (mark(meant, trace, match, is_equal) || mark(meant, trace, match, krait_match_text))
        return 0;
    return no_function(trace, match->glob, err);
}
