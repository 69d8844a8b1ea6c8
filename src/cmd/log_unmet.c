/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/log_unmet.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/log_level.h"
#include "base/suggest.h"
#include "cmd/terminal.h"

#include <string.h>

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
    named.is_glob = strpbrk(named.name, "*?[");
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

static void add_loggers(struct krait_buf *out, const char *loggers)
{
    enum { SHOWN = 5 };
    uint32_t count = 0;
    for (const char *logger = loggers; *logger; logger += strlen(logger) + 1, count++) {
        if (count < SHOWN)
            krait_buf_fmt(out, "%s%s", count ? ", " : "; loggers that have: ", logger);
    }
    if (count > SHOWN)
        krait_buf_fmt(out, " and %u more", count - SHOWN);
    krait_buf_str(out, count ? "" : ", nor has any other logger");
}

static void say(const struct named *named, const char *loggers)
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
    if (suggest.best)
        krait_buf_fmt(&text, "; did you mean '%s'?", suggest.best);
    else
        add_loggers(&text, loggers);
    krait_arena_done(&names);
    if (!text.failed)
        krait_terminal_say(KRAIT_RED, 2, "%s", text.data);
}

void krait_log_unmet_say(const struct krait_opt_list *log, const struct krait_collector *collector)
{
    char loggers[KRAIT_LOGGERS_LIST];
    krait_collector_loggers(collector, loggers);
    for (size_t i = 0; i < log->count; i++) {
        const struct named named = read_spec(log->items[i]);
        if (krait_collector_logger_unmet(collector, i) && !may_be_quiet(&named))
            say(&named, loggers);
    }
}
