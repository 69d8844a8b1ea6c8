/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/args_unmet.h"

#include "analysis/match.h"
#include "base/argspec.h"
#include "base/func_glob.h"
#include "base/json.h"
#include "cmd/terminal.h"

#include <string.h>

/* Marks' names are in the table too: they have no file. krait's own functions are never shown. */
static bool is_python(const struct krait_func *func)
{
    return func->kind == KRAIT_FUNC_PYTHON && *func->file && !func->is_own;
}

static bool is_met(const struct krait_trace *trace, const char *glob)
{
    for (uint32_t i = 0; i < trace->func_count; i++) {
        const struct krait_func *func = &trace->funcs[i];
        if (is_python(func) && krait_func_glob_matches(glob, func->module, func->name, func->file))
            return true;
    }
    return false;
}

bool krait_args_unmet(struct krait_buf *out, const struct krait_trace *trace, const char *text)
{
    struct krait_argspec spec;
    struct krait_err ignored;
    if (krait_argspec_read(&spec, text, &ignored) || is_met(trace, spec.glob))
        return false;
    struct krait_suggest suggest = KRAIT_SUGGEST(spec.glob, strlen(spec.glob));
    struct krait_arena labels = { 0 };
    for (uint32_t i = 0; i < trace->func_count; i++) {
        if (is_python(&trace->funcs[i]))
            krait_match_suggest(&suggest, &labels, &trace->funcs[i]);
    }
    krait_buf_fmt(out, "'%s' matched no recorded function", text);
    if (suggest.best)
        krait_buf_fmt(out, "; did you mean '%s'?", suggest.best);
    krait_arena_done(&labels);
    return true;
}

/* Only the recording knows which functions there are. */
void krait_args_unmet_say(const struct krait_opt_list *args, const char *dir)
{
    struct krait_trace *trace = NULL;
    struct krait_err err;
    if (!args->count || krait_trace_open(&trace, &dir, 1, KRAIT_NEEDS_CALLS, &err))
        return;
    for (size_t i = 0; i < args->count; i++) {
        KRAIT_AUTO_BUF said = { 0 };
        if (krait_args_unmet(&said, trace, args->items[i]) && said.data)
            krait_terminal_say(KRAIT_RED, 2, "--args %s", said.data);
    }
    krait_trace_close(trace);
}

void krait_args_unmet_json(struct krait_buf *out, const struct krait_trace *trace, const char *texts)
{
    KRAIT_AUTO_FREE char *copy = strdup(texts);
    char *save = NULL;
    krait_json_key_open(out, "args_unmet", '[');
    for (char *text = copy ? strtok_r(copy, "\n", &save) : NULL; text; text = strtok_r(NULL, "\n", &save)) {
        KRAIT_AUTO_BUF said = { 0 };
        if (!krait_args_unmet(&said, trace, text))
            continue;
        krait_json_item(out, "");
        krait_json_cstr(out, text);
    }
    krait_buf_char(out, ']');
}
