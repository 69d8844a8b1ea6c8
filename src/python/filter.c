/* SPDX-License-Identifier: Apache-2.0
 *
 * --include and --exclude: globs on a function's module, qualified name, module.name or file. A function is
 * taken if an include matches, or there is none, and no exclude does. C functions have no file and belong to
 * who calls them: for them --exclude alone counts.
 */
#include "base/func_glob.h"
#include "base/json.h"
#include "python/agent.h"

#include <string.h>

const char *krait_filters_next(const struct krait_agent *agent, const char *before,
                               enum krait_filter_kind kind)
{
    const char *at = before ? before + strlen(before) + 1 : agent->writer.shm.control->filters;
    const char *end = agent->writer.shm.control->filters + KRAIT_FILTER_BYTES;
    while (at < end && *at && *at != (char)kind)
        at += strnlen(at, (size_t)(end - at)) + 1;
    bool whole = at < end && *at && memchr(at, '\0', (size_t)(end - at));
    return whole ? at + 1 : NULL;
}

static void read_kind(struct krait_agent *agent, enum krait_filter_kind kind)
{
    const char *glob = NULL;
    while (agent->filter_count < KRAIT_ARRAY_LEN(agent->filters) &&
           (glob = krait_filters_next(agent, glob, kind)))
        agent->filters[agent->filter_count++] =
            (struct krait_code_filter){ .include = kind == KRAIT_FILTER_INCLUDE, .glob = glob };
}

/* Includes come before excludes, as the collector writes them: filters_met has a bit for each. */
void krait_filters_read(struct krait_agent *agent)
{
    agent->filter_count = 0;
    read_kind(agent, KRAIT_FILTER_INCLUDE);
    read_kind(agent, KRAIT_FILTER_EXCLUDE);
}

bool krait_filters_include(const struct krait_agent *agent)
{
    return agent->filter_count && agent->filters[0].include;
}

static const char more[] = "...";

static size_t add_item(char *to, size_t len, size_t size, const char *key, const char *value)
{
    enum { MOST = 200 };
    size_t all = strlen(value), shown = krait_utf8_whole(value, all, MOST);
    int n = snprintf(to + len, size - len, "%s%s=%.*s%s", len ? " " : "", key, (int)shown, value,
                     shown < all ? more : "");
    return n > 0 ? KRAIT_MIN(len + (size_t)n, size - 1) : len;
}

void krait_filters_say(const struct krait_agent *agent, char *to, size_t size)
{
    const struct krait_control *control = agent->writer.shm.control;
    char overhead[32];
    size_t len = 0;
    *to = '\0';
    for (size_t i = 0; i < agent->filter_count; i++)
        len = add_item(to, len, size, agent->filters[i].include ? "include" : "exclude",
                       agent->filters[i].glob);
    len = add_item(to, len, size, "c-calls", agent->c_calls ? "on" : "off");
    snprintf(overhead, sizeof(overhead), "%g", control->max_overhead_ppm / 1e4);
    if (control->max_overhead_ppm)
        len = add_item(to, len, size, "overhead", overhead);
    if (len == size - 1)
        memcpy(to + krait_utf8_whole(to, len, size - sizeof(more)), more, sizeof(more));
}

/* Who mistyped a glob is told at the end. */
void krait_filters_note_met(const struct krait_agent *agent, size_t filter)
{
    _Atomic uint64_t *met = &agent->writer.shm.control->filters_met;
    uint64_t bit = filter < 64 ? 1ull << filter : 0;
    if ((atomic_load_explicit(met, memory_order_relaxed) & bit) != bit)
        atomic_fetch_or_explicit(met, bit, memory_order_relaxed);
}

/* One of --include and --exclude. What was changed after this process has read it has other numbers. */
static void note_met(const struct krait_agent *agent, size_t filter)
{
    struct krait_control *control = agent->writer.shm.control;
    if (!agent->writer.changes)
        krait_filters_note_met(agent, filter);
    else if (filter < 64 && atomic_load(&control->changes) == agent->writer.changes)
        atomic_fetch_or_explicit(&control->set_met, 1ull << filter, memory_order_relaxed);
}

bool krait_filters_take(const struct krait_agent *agent, const char *module, const char *name,
                        const char *file)
{
    bool has_include = false, included = false, excluded = false;
    for (size_t i = 0; i < agent->filter_count; i++) {
        const struct krait_code_filter *filter = &agent->filters[i];
        bool match = krait_func_glob_matches(filter->glob, module, name, file);
        if (match)
            note_met(agent, i);
        has_include |= filter->include;
        included |= filter->include && match;
        excluded |= !filter->include && match; /* by another, too: each that matches is noted */
    }
    return !excluded && (included || !has_include);
}

bool krait_filters_take_c(const struct krait_agent *agent, const char *module, const char *name)
{
    bool excluded = false;
    for (size_t i = 0; i < agent->filter_count; i++) {
        if (agent->filters[i].include || !krait_func_glob_matches(agent->filters[i].glob, module, name, ""))
            continue;
        note_met(agent, i);
        excluded = true;
    }
    return !excluded;
}
