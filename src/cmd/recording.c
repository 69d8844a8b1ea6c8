/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/recording.h"

#include "base/argspec.h"
#include "base/array.h"
#include "base/log_level.h"
#include "cmd/terminal.h"
#include "kernel/kernel.h"
#include "python/compat/versions.h"
#include "record/shm.h"
#include "record/triggers.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

enum { BUFFER_BYTES = 256 * 1024 * 1024 };

/* krait-app-20261121-093000, in the current folder; with -2 and so on behind where that is there. */
static void default_dir(const char *command, char *dir, size_t size)
{
    const char *slash = strrchr(command, '/');
    const char *base = slash ? slash + 1 : command;
    time_t now = time(NULL);
    struct tm tm;
    localtime_r(&now, &tm);
    char when[32];
    strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
    int n = snprintf(dir, size, "krait-%.*s-%s", 60, base, when);
    for (int i = 2; access(dir, F_OK) == 0 && i < 1000; i++)
        snprintf(dir + n, size - (size_t)n, "-%d", i);
}

/* All but where it is written, and for whom. */
static struct krait_collector_options options_of(const struct krait_recording_values *values)
{
    return (struct krait_collector_options){
        .ring_bytes = values->ring_size,
        .buffer_bytes = values->buffer_size ? values->buffer_size : BUFFER_BYTES,
        .rings = 2 * (uint32_t)values->max_threads, /* a process has one for its definitions too */
        .flags = (values->no_c_calls ? 0 : KRAIT_RECORD_C_CALLS) |
                 (values->no_children ? 0 : KRAIT_RECORD_CHILDREN) |
                 (values->lossless ? KRAIT_RECORD_LOSSLESS : 0) |
                 (values->call_sites ? KRAIT_RECORD_CALL_SITES : 0) |
                 (values->no_gil ? 0 : KRAIT_RECORD_GIL) | (values->no_tasks ? 0 : KRAIT_RECORD_TASKS) |
                 (values->log.count ? KRAIT_RECORD_LOG : 0) | (values->audit.count ? KRAIT_RECORD_AUDIT : 0) |
                 (values->gc ? KRAIT_RECORD_GC : 0) | (values->imports ? KRAIT_RECORD_IMPORTS : 0),
        .max_overhead = values->max_overhead,
        .duration_ns = values->duration,
        .max_bytes = values->max_size,
        .keep_newest = values->keep && strcmp(values->keep, "newest") == 0,
        .idle = values->idle,
        .snapshot_on = { values->snapshot_on.items, values->snapshot_on.count },
        .tells_exceptions = krait_python_tells_exceptions,
        .last_ns = values->last.ns,
        .last_bytes = values->last.bytes,
        .include = { values->include.items, values->include.count },
        .exclude = { values->exclude.items, values->exclude.count },
        .log = { values->log.items, values->log.count },
        .audit = { values->audit.items, values->audit.count },
        .args = { values->args.items, values->args.count },
    };
}

/* NAME, or NAME:LEVEL: a number, or a word that the program may have made a level of. */
static int check_log(const char *spec, struct krait_err *err)
{
    const char *colon = strrchr(spec, ':');
    if (!colon)
        return 0;
    bool is_number = colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
    bool is_word = (isalpha((unsigned char)colon[1]) || colon[1] == '_') && !strpbrk(colon + 1, " \t\n");
    int32_t ignored;
    const char *near =
        is_word && !krait_log_level(colon + 1, &ignored) ? krait_log_level_near(colon + 1) : NULL;
    if (near)
        return krait_err_set(
            err, -EINVAL,
            "--log: '%s': there is no level '%s'; did you mean '%s'? If the program has a level of that name, "
            "give its number",
            spec, colon + 1, near);
    return is_number || is_word
               ? 0
               : krait_err_set(err, -EINVAL, "--log: '%s': '%s' is no level such as DEBUG, INFO or 25", spec,
                               colon + 1);
}

/* A trigger that can never fire is refused. */
static int check_triggers(const struct krait_recording_values *values, struct krait_err *err)
{
    static const struct {
        uint32_t flag;
        const char *what;
    } needs[] = {
        { KRAIT_RECORD_LOG, "log:LEVEL needs --log" },
        { KRAIT_RECORD_GIL, "gil>TIME does not go with --no-gil" },
        { KRAIT_RECORD_TASKS, "loop>TIME does not go with --no-tasks" },
    };
    struct krait_triggers *triggers = NULL;
    int rc = krait_triggers_new(&triggers, values->snapshot_on.items, values->snapshot_on.count, err);
    uint32_t missing = rc ? 0 : krait_triggers_need(triggers) & ~options_of(values).flags;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(needs) && !rc; i++) {
        if (missing & needs[i].flag)
            rc = krait_err_set(err, -EINVAL, "--snapshot-on %s", needs[i].what);
    }
    krait_triggers_free(triggers);
    return rc;
}

/* A pattern without text would match nothing, or everything. */
static int check_globs(const char *option, const struct krait_opt_list *globs, struct krait_err *err)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (!*globs->items[i])
            return krait_err_set(err, -EINVAL, "--%s: the pattern is empty; give a name, a glob, or re:REGEX",
                                 option);
    }
    return 0;
}

void krait_recording_say_idle(const struct krait_recording_values *values, pid_t pid)
{
    if (values->idle && !values->quiet)
        krait_terminal_say(NULL, 0, "krait record: ready and off; krait ctl %d start switches it on", pid);
}

int krait_recording_check(const struct krait_recording_values *values, struct krait_err *err)
{
    if (values->max_overhead < 0 || values->max_overhead > 100)
        return krait_err_set(err, -EINVAL, "--max-overhead is a percentage from 0 to 100");
    if (values->max_threads > UINT32_MAX / 2)
        return krait_err_set(err, -EINVAL, "--max-threads is too large");
    if (values->children && values->no_children)
        return krait_err_set(err, -EINVAL, "--children and --no-children exclude each other");
    if (values->keep && !values->max_size)
        return krait_err_set(err, -EINVAL, "--keep needs --max-size");
    if (values->verbose && (!values->pid || values->sample.count))
        return krait_err_set(err, -EINVAL, "--verbose needs --pid, without --sample");
    if (values->kernel_functions && !values->kernel)
        return krait_err_set(err, -EINVAL, "--kernel-functions needs --kernel");
    if (values->usdt.count && !values->kernel)
        return krait_err_set(err, -EINVAL, "--usdt needs --kernel");
    if (values->kernel_ring_size && !values->kernel)
        return krait_err_set(err, -EINVAL, "--kernel-ring-size needs --kernel");
    if (values->kernel_ring_size && values->kernel_ring_size < 4096)
        return krait_err_set(err, -EINVAL, "--kernel-ring-size is too small: 4K at least");
    if (values->kernel_ring_size > 1ull << 40)
        return krait_err_set(err, -EINVAL, "--kernel-ring-size is too large");
    if (values->keep && strcmp(values->keep, "first") == 0 && (values->last.ns || values->last.bytes))
        return krait_err_set(err, -EINVAL, "--last keeps the newest; it does not go with --keep first");
    if (values->last.bytes && values->max_size)
        return krait_err_set(err, -EINVAL, "--last SIZE bounds the recording already; leave out --max-size");
    if (values->last.bytes && values->last.bytes < 1 << 20)
        return krait_err_set(err, -EINVAL, "--last is too small: 1M at least");
    if (values->toggle_signal && values->snapshot_signal &&
        strcmp(values->toggle_signal, values->snapshot_signal) == 0)
        return krait_err_set(err, -EINVAL, "--toggle-signal and --snapshot-signal are the same signal");
    if (values->view && values->wait)
        return krait_err_set(err, -EINVAL,
                             "--view does not go with --wait; krait view DIR shows what is recorded");
    if (check_globs("include", &values->include, err) || check_globs("exclude", &values->exclude, err))
        return -EINVAL;
    for (size_t i = 0; i < values->log.count; i++) {
        if (check_log(values->log.items[i], err))
            return -EINVAL;
    }
    for (size_t i = 0; i < values->args.count; i++) {
        struct krait_argspec ignored;
        if (krait_argspec_read(&ignored, values->args.items[i], err))
            return -EINVAL;
    }
    struct krait_collector_options options = options_of(values);
    int rc = check_triggers(values, err);
    rc = rc ? rc : krait_collector_check(&options, err);
    return rc || !values->kernel ? rc : krait_kernel_check_groups(values->kernel, err);
}

void krait_recording_dir(const struct krait_recording_values *values, const char *command, char *dir,
                         size_t size)
{
    if (values->output)
        snprintf(dir, size, "%s", values->output);
    else
        default_dir(command, dir, size);
}

int krait_recording_open(struct krait_collector **out, struct krait_recording_values *values,
                         const char *command, char *dir, size_t size, struct krait_err *err)
{
    krait_recording_dir(values, command, dir, size);
    struct krait_collector_options options = options_of(values);
    options.dir = dir;
    return krait_collector_new(out, &options, err);
}

void krait_recording_done(struct krait_recording_values *values)
{
    krait_opt_list_done(&values->include);
    krait_opt_list_done(&values->snapshot_on);
    krait_opt_list_done(&values->exclude);
    krait_opt_list_done(&values->sample);
    krait_opt_list_done(&values->log);
    krait_opt_list_done(&values->audit);
    krait_opt_list_done(&values->args);
    krait_opt_list_done(&values->usdt);
}
