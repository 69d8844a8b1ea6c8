/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/names_unmet.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log_level.h"
#include "base/suggest.h"
#include "cmd/terminal.h"

#include <fnmatch.h>
#include <string.h>

/* The first names of the list, behind `heading`; `none` if there is no name. */
static void add_names(struct krait_buf *out, const char *names, const char *heading, const char *none)
{
    enum { SHOWN = 5 };
    uint32_t count = 0;
    for (const char *name = names; *name; name += strlen(name) + 1, count++) {
        if (count < SHOWN)
            krait_buf_fmt(out, "%s%s", count ? ", " : heading, name);
    }
    if (count > SHOWN)
        krait_buf_fmt(out, " and %u more", count - SHOWN);
    krait_buf_str(out, count ? "" : none);
}

static bool is_glob(const char *name)
{
    return strpbrk(name, "*?[");
}

/* ---- loggers ---- */

/* What NAME[:LEVEL] names. */
struct named {
    const char *spec, *level; /* NULL: no level */
    char name[256];
    bool is_glob;
};

static struct named read_spec(const char *spec)
{
    const char *colon = strrchr(spec, ':');
    struct named named = { .spec = spec, .level = colon ? colon + 1 : NULL };
    snprintf(named.name, sizeof(named.name), "%.*s", colon ? (int)(colon - spec) : (int)strlen(spec), spec);
    named.is_glob = is_glob(named.name);
    return named;
}

/* All loggers are below the root; a program may have no warnings; of a logger that is left out nothing is missed. */
static bool may_be_quiet(const struct named *named)
{
    int32_t level;
    bool is_off = named->level && krait_log_level(named->level, &level) && level == KRAIT_LOG_OFF;
    return is_off || !*named->name || strcmp(named->name, "root") == 0 ||
           strcmp(named->name, "py.warnings") == 0;
}

/* A logger means those below it, so one that is above another may be meant. */
static void try_logger(struct krait_suggest *suggest, struct krait_arena *names, const char *logger)
{
    for (const char *at = logger; *at; at++) {
        const char *above =
            at[1] == '.' || !at[1] ? krait_arena_strndup(names, logger, (size_t)(at - logger) + 1) : NULL;
        if (above)
            krait_suggest_try(suggest, above);
    }
}

static void say_logger(const struct named *named, const char *loggers)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(named->name, strlen(named->name));
    struct krait_arena names = { 0 };
    KRAIT_AUTO_BUF text = { 0 };
    for (const char *logger = loggers; *logger && !named->is_glob; logger += strlen(logger) + 1)
        try_logger(&suggest, &names, logger);
    krait_buf_fmt(&text, "--log '%s': no logger %s has logged anything", named->spec,
                  named->is_glob ? "like that" : "of that name or below it");
    if (!named->level)
        krait_buf_str(&text, " that passed its level");
    if (!named->level && !named->is_glob && !suggest.best)
        krait_buf_fmt(&text, " (--log '%s:INFO' records from INFO up)", named->spec);
    krait_suggest_say(&text, suggest.best);
    if (!suggest.best)
        add_names(&text, loggers, "; loggers that have: ", ", nor has any other logger");
    krait_arena_done(&names);
    if (!text.failed)
        krait_terminal_say(KRAIT_RED, 2, "%s", text.data);
}

void krait_log_unmet_say(const struct krait_opt_list *log, const struct krait_collector *collector)
{
    char loggers[KRAIT_NAMES_LIST];
    krait_collector_names(collector, KRAIT_NAMED_LOGGER, loggers);
    for (size_t i = 0; i < log->count; i++) {
        const struct named named = read_spec(log->items[i]);
        if (krait_collector_name_unmet(collector, KRAIT_NAMED_LOGGER, i) && !may_be_quiet(&named))
            say_logger(&named, loggers);
    }
}

/* ---- audit events ---- */

static const char *const cpython_events[] = {
#define KRAIT_AUDIT_EVENT(name) name,
#include "python/compat/audit_events.def"
};

static bool has_cpython(const char *glob)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cpython_events); i++) {
        if (fnmatch(glob, cpython_events[i], 0) == 0)
            return true;
    }
    return false;
}

static struct krait_suggest nearest_event(const char *typed, const char *occurred)
{
    struct krait_suggest suggest = KRAIT_SUGGEST(typed, strlen(typed));
    for (const char *event = occurred; *event; event += strlen(event) + 1)
        krait_suggest_try(&suggest, event);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(cpython_events); i++)
        krait_suggest_try(&suggest, cpython_events[i]);
    return suggest;
}

static void say_event(const char *glob, const char *occurred)
{
    KRAIT_AUTO_BUF text = { 0 };
    const char *best = is_glob(glob) ? NULL : nearest_event(glob, occurred).best;
    krait_buf_fmt(&text, "--audit '%s' matched no audit event", glob);
    if (has_cpython(glob))
        krait_buf_str(&text, "; CPython has it, but it did not occur");
    else if (best)
        krait_suggest_say(&text, best);
    else
        add_names(&text, occurred, "; events that occurred: ", ", nor did any other occur");
    if (!text.failed)
        krait_terminal_say(KRAIT_RED, 2, "%s", text.data);
}

void krait_audit_unmet_say(const struct krait_opt_list *audit, const struct krait_collector *collector)
{
    char occurred[KRAIT_NAMES_LIST];
    krait_collector_names(collector, KRAIT_NAMED_AUDITED, occurred);
    for (size_t i = 0; i < audit->count; i++) {
        if (*audit->items[i] && krait_collector_name_unmet(collector, KRAIT_NAMED_AUDITED, i))
            say_event(audit->items[i], occurred);
    }
}
