/* SPDX-License-Identifier: Apache-2.0 */
#include "record/triggers_read.h"

#include "base/fmt.h"
#include "base/log_level.h"
#include "record/shm.h"

#include <ctype.h>
#include <string.h>

const struct krait_trigger_kind_row krait_trigger_kinds[KRAIT_TRIGGER_KINDS] = {
    [KRAIT_ON_CALL] = { "call", true, true, false, 0 },
    [KRAIT_ON_SPAN] = { "span", true, true, false, 0 },
    [KRAIT_ON_BETWEEN] = { "between", true, true, false, 0 },
    [KRAIT_ON_EXCEPTION] = { "exception", true, false, false, 0 },
    [KRAIT_ON_LOG] = { "log", true, false, false, KRAIT_RECORD_LOG },
    [KRAIT_ON_GIL] = { "gil", false, true, false, KRAIT_RECORD_GIL },
    [KRAIT_ON_LOOP] = { "loop", false, true, false, KRAIT_RECORD_TASKS },
    [KRAIT_ON_MEMORY] = { "memory", false, false, true, 0 },
    [KRAIT_ON_END] = { "end", true, false, false, 0 },
};

static int bad(const char *text, const char *what, struct krait_err *err)
{
    return krait_err_set(err, -EINVAL, "--snapshot-on: '%s' %s", text, what);
}

static int parse_level(const char *text, const char *name, uint64_t *level, struct krait_err *err)
{
    int32_t n;
    bool is_known = krait_log_level(name, &n);
    const char *near = is_known ? NULL : krait_log_level_near(name);
    if (near)
        return krait_err_set(err, -EINVAL, "--snapshot-on: '%s': there is no level '%s'; did you mean '%s'?",
                             text, name, near);
    if (!is_known || n == KRAIT_LOG_OFF)
        return bad(text, "has no level such as WARNING, ERROR or 35", err);
    *level = (uint64_t)n;
    return 0;
}

static bool parse_size(const char *value, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    double n = strtod(value, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    end += unit != NULL;
    end += *end == 'B';
    if (!isdigit((unsigned char)*value) || *end || !(n > 0 && n < 1e15))
        return false;
    *bytes = (uint64_t)(n * (double)(unit ? 1ull << 10 * (unit - units + 1) : 1));
    return true;
}

static int parse_limit(struct krait_trigger_on *t, const char *value, struct krait_err *err)
{
    if (krait_trigger_kinds[t->kind].is_time && krait_parse_ns(value, &t->limit) == 0 && t->limit)
        return 0;
    if (krait_trigger_kinds[t->kind].is_size && parse_size(value, &t->limit))
        return 0;
    return bad(t->text,
               krait_trigger_kinds[t->kind].is_size ? "has no size such as 2G" : "has no time such as 100ms",
               err);
}

static bool find_kind(const char *text, enum krait_trigger_kind *kind)
{
    for (size_t i = 0; i < KRAIT_TRIGGER_KINDS; i++) {
        size_t n = strlen(krait_trigger_kinds[i].name);
        if (strncmp(text, krait_trigger_kinds[i].name, n) == 0 &&
            text[n] == (krait_trigger_kinds[i].named ? ':' : '>')) {
            *kind = (enum krait_trigger_kind)i;
            return true;
        }
    }
    return false;
}

/* FIRST..SECOND */
static bool divide(struct krait_trigger_on *t)
{
    char *dots = strstr(t->glob, "..");
    if (!dots || dots == t->glob || !dots[2])
        return false;
    *dots = '\0';
    t->second = dots + 2;
    return true;
}

/* A type's name has as many signs of each kind: f.<locals>.Error. */
static bool has_limit(const char *name)
{
    int open = 0;
    for (; *name; name++)
        open += (*name == '<') - (*name == '>');
    return open < 0;
}

/* What no name of a function or type can match: blanks around the sign, or a limit where the kind has none. */
static const char *flaw_of(const struct krait_trigger_on *t)
{
    bool is_code = t->kind == KRAIT_ON_CALL || t->kind == KRAIT_ON_EXCEPTION;
    if (is_code && (isspace((unsigned char)*t->glob) || isspace((unsigned char)t->glob[strlen(t->glob) - 1])))
        return "has a blank around the name, which no function and no type has";
    return t->kind == KRAIT_ON_EXCEPTION && has_limit(t->glob) ? "takes no limit: exception:ValueError"
                                                               : NULL;
}

void krait_trigger_done(struct krait_trigger_on *t)
{
    free(t->text);
    free(t->glob);
}

int krait_trigger_parse(struct krait_trigger_on *t, const char *text, struct krait_err *err)
{
    *t = (struct krait_trigger_on){ .text = strdup(text) };
    if (!t->text)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (!find_kind(text, &t->kind))
        return bad(
            text,
            "is none of call:GLOB>TIME, span:GLOB>TIME, between:GLOB..GLOB>TIME, exception:GLOB, log:LEVEL, gil>TIME, "
            "loop>TIME, memory>SIZE, end:GLOB",
            err);
    const char *name = text + strlen(krait_trigger_kinds[t->kind].name) + 1;
    bool wants_limit = krait_trigger_kinds[t->kind].is_time || krait_trigger_kinds[t->kind].is_size;
    const char *more = wants_limit ? strrchr(text, '>') : text + strlen(text);
    if (!more || (krait_trigger_kinds[t->kind].named && more <= name))
        return bad(text, more ? "names nothing" : "has no limit: call:app.load>100ms", err);
    if (krait_trigger_kinds[t->kind].named && !(t->glob = strndup(name, (size_t)(more - name))))
        return krait_err_set(err, -ENOMEM, "out of memory");
    const char *flaw = t->glob ? flaw_of(t) : NULL;
    if (flaw)
        return bad(text, flaw, err);
    if (t->kind == KRAIT_ON_BETWEEN && !divide(t))
        return bad(text, "names no two messages: between:GLOB..GLOB>TIME", err);
    if (t->kind == KRAIT_ON_LOG)
        return parse_level(text, name, &t->limit, err);
    return wants_limit ? parse_limit(t, more + 1, err) : 0;
}
