/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/functions.h"

#include "kernel/tracefs.h"

#include <fcntl.h>
#include <string.h>

/* Of the words in a line. */
static bool has_word(const struct krait_buf *line, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = line->data; at && (at = strstr(at, word)); at += n) {
        bool begins = at == line->data || at[-1] == ' ';
        if (begins && (at[n] == ' ' || at[n] == '\n' || !at[n]))
            return true;
    }
    return false;
}

const char *krait_functions_tracer(int dir, struct krait_err *err)
{
    static const char *const tracers[] = { "function_graph", "function" };
    KRAIT_AUTO_BUF line = { 0 };
    const char *found = NULL;
    int rc = krait_tracefs_read(dir, "available_tracers", &line);
    for (size_t i = 0; !rc && !found && i < KRAIT_ARRAY_LEN(tracers); i++)
        found = has_word(&line, tracers[i]) ? tracers[i] : NULL;
    if (!found) {
        krait_err_set(err, -ENOENT,
                      "this kernel has no function tracer; boot one with CONFIG_FUNCTION_GRAPH_TRACER");
        return NULL;
    }
    KRAIT_AUTO_CLOSE int filter = openat(dir, "set_ftrace_filter", O_RDONLY | O_CLOEXEC);
    if (filter >= 0)
        return found;
    rc = -errno;
    krait_err_set(
        err, rc,
        "the kernel has the tracer %s, but lets nobody use it (%s), as where it is locked down: kernel_lockdown(7)",
        found, strerror(-rc));
    return NULL;
}

/* A pattern is matched at the white space behind it (ftrace_regex_write, kernel/trace/ftrace.c), else only
 * when the file is closed, which tells no error: one that nothing traceable matches would leave the filter
 * empty, and so trace all functions. */
int krait_functions_start(int instance, const char *tracer, const char *glob, struct krait_err *err)
{
    KRAIT_AUTO_FREE char *line = NULL;
    if (asprintf(&line, "%s\n", glob) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_tracefs_write(instance, "set_ftrace_filter", line);
    if (rc)
        return krait_err_set(err, rc, "the kernel does not take the pattern '%s': %s", glob, strerror(-rc));
    rc = krait_tracefs_write(instance, "current_tracer", tracer);
    return rc ? krait_err_set(err, rc, "the kernel does not switch its tracer %s on: %s", tracer,
                              strerror(-rc))
              : 0;
}
