/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/record_summary.h"

#include "base/fmt.h"
#include "base/shell.h"
#include "cmd/args_unmet.h"
#include "cmd/contents.h"
#include "cmd/missed.h"
#include "cmd/names_unmet.h"
#include "cmd/omitted.h"
#include "cmd/record_kernel.h"
#include "cmd/terminal.h"
#include "python/compat/versions.h"

#include <string.h>
#include <unistd.h>

static void print_lost(const struct krait_collector_summary *s)
{
    for (uint32_t i = 0; i < KRAIT_COUNT_lost_reason; i++) {
        char count[KRAIT_FMT_SIZE];
        const struct krait_enum_row *row = krait_enum_find("lost_reason", i);
        if (s->lost[i])
            krait_record_line(KRAIT_RED, "lost", "%s, %s: %s", krait_fmt_counted(count, s->lost[i], "event"),
                              row->label, row->doc);
    }
}

/* Whether it could not go on recording when it was switched on again. */
static bool was_recorded(const struct krait_collector *collector, int pid)
{
    return krait_collector_begun(collector, pid) > 0;
}

/* The processes with the reason of row `first`, unless an earlier row has that too, and those that the user has been told. */
static void print_refusals_like(const struct krait_collector *collector, size_t first)
{
    char why[128], other[128];
    KRAIT_AUTO_BUF pids = { 0 };
    uint32_t count = 0;
    bool again = was_recorded(collector, krait_collector_refusal(collector, first, why, sizeof(why)));
    for (size_t i = 0;; i++) {
        int pid = krait_collector_refusal(collector, i, other, sizeof(other));
        if (!pid)
            break;
        if (strcmp(why, other) != 0 || was_recorded(collector, pid) != again ||
            krait_collector_is_told(collector, pid))
            continue;
        if (i < first)
            return;
        krait_buf_fmt(&pids, "%s%d", count++ ? ", " : "", pid);
    }
    if (count && !pids.failed)
        krait_terminal_say(NULL, 2, "Process%s %s %s not recorded%s: %s. See: krait doctor",
                           count == 1 ? "" : "es", pids.data, count == 1 ? "was" : "were",
                           again ? " after the recording was switched on again" : "", why);
}

static void print_refusals(const struct krait_collector *collector)
{
    char why[128];
    uint32_t all = krait_collector_refused(collector), shown = 0;
    while (krait_collector_refusal(collector, shown, why, sizeof(why)))
        print_refusals_like(collector, shown++);
    krait_missed_say_more(all - KRAIT_MIN(all, shown));
}

/* Whether krait knows of a Python that was not recorded. */
static bool has_refused(const struct krait_collector *collector, const struct krait_missed *missed)
{
    char why[128];
    return krait_collector_refusal(collector, 0, why, sizeof(why)) || (missed && krait_missed_count(missed));
}

bool krait_record_got_nothing(const struct krait_collector *collector, const struct krait_missed *missed,
                              const struct krait_collector_summary *s,
                              const struct krait_recording_values *values)
{
    size_t met = 0;
    bool refused = has_refused(collector, missed);
    /* one may be refused when its recording begins */
    bool recorded = s->processes && (s->threads || !refused);
    for (size_t i = 0; i < values->include.count; i++)
        met += krait_collector_filter_met(collector, i);
    return recorded ? values->include.count && !met : refused;
}

static void say_unmet(void *ctx, const char *option, const char *glob)
{
    krait_terminal_say(KRAIT_RED, 2,
                       "%s%s%s'%s' matched no function: it is a glob on a function's module, its "
                       "qualified name, both with a dot between, or its file, as 'app*' or '*/app.py'",
                       ctx ? "krait ctl set " : "--", option, ctx ? "=" : " ", glob);
}

static void say_not_followed(uint32_t processes, const char *what)
{
    if (processes)
        krait_terminal_say(
            KRAIT_RED, 2, "krait ctl %s never took effect in %u process%s: %s no recorded function after it",
            what, processes, processes == 1 ? "" : "es", processes == 1 ? "it called" : "they called");
}

/* The list's globs that matched nothing; the recording has `before` globs before it. */
static void print_unmet(const struct krait_collector *collector, const struct krait_opt_list *globs,
                        size_t before, const char *option)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (!krait_collector_filter_met(collector, before + i))
            say_unmet(NULL, option, globs->items[i]);
    }
}

/* Levels of --log that loggers asked for, and that no program had. */
static void print_levels(const struct krait_collector *collector, const struct krait_recording_values *values)
{
    size_t before = values->include.count + values->exclude.count;
    for (size_t i = 0; i < values->log.count; i++) {
        const char *spec = values->log.items[i];
        if (krait_collector_level_unmet(collector, before, i))
            krait_terminal_say(
                KRAIT_RED, 2,
                "--log '%s': the program has no level '%s' (logging.addLevelName), so krait recorded "
                "nothing of these loggers",
                spec, strrchr(spec, ':') + 1);
    }
}

static void print_figures(const struct krait_collector_summary *s,
                          const struct krait_recording_values *values, const char *dir)
{
    char duration[KRAIT_FMT_SIZE], events[KRAIT_FMT_SIZE], bytes[KRAIT_FMT_SIZE];
    const char *bold = krait_terminal_colour(stderr, KRAIT_BOLD);
    const char *plain = krait_terminal_colour(stderr, KRAIT_PLAIN);
    const char *what = values->pid
                           ? s->processes > 1 ? "recorded the processes for" : "recorded the process for"
                       : s->limit ? "recorded the command for"
                                  : "the command took"; /* it goes on: no end is known */
    fprintf(stderr, "krait: %s %s%s%s; %u process%s, %u thread%s, %s, %s", what, bold,
            krait_fmt_ns(duration, s->duration_ns), plain, s->processes, s->processes == 1 ? "" : "es",
            s->threads, s->threads == 1 ? "" : "s", krait_fmt_counted(events, s->events, "event"),
            krait_fmt_bytes(bytes, s->bytes));
    if (dir) {
        fprintf(stderr, " in %s", bold);
        krait_terminal_safe(stderr, dir);
        fputs(plain, stderr);
    }
    fputc('\n', stderr);
}

/* The functions that --max-overhead dropped, those with the most calls first, and whether it paused. */
static void print_omitted(const char *dir)
{
    enum { SHOWN = 5 };
    struct krait_trace *trace = NULL;
    struct krait_err err;
    KRAIT_AUTO_BUF list = { 0 };
    if (krait_trace_open(&trace, &dir, 1, KRAIT_NEEDS_CALLS,
                         &err)) /* what it says of the recording, others say too */
        return;
    krait_omitted_list(&list, trace, SHOWN);
    uint32_t n = trace->omitted_count;
    if (n && list.data)
        krait_terminal_say(NULL, 2, "--max-overhead dropped %u function%s: %s", n, n == 1 ? "" : "s",
                           list.data);
    if (krait_omitted_paused(trace))
        krait_terminal_say(NULL, 2, "--max-overhead: %s", krait_omitted_pause);
    krait_trace_close(trace);
}

static void print_command(const char *verb, const char *name, const char *options, bool *is_first)
{
    fprintf(stderr, "%s krait %s %s%s\n", *is_first ? "  Next: " : "        ", verb, name, options);
    *is_first = false;
}

/* What shows a recording without calls. */
static void print_others(const char *name, unsigned contents, bool *is_first)
{
    if (contents & KRAIT_CONTENTS_MARKS)
        print_command("report", name, " --by mark", is_first);
    if (contents & KRAIT_CONTENTS_SPANS)
        print_command("intervals", name, " --span '*'", is_first);
    print_command("cat", name, "", is_first);
    print_command("view", name, "", is_first);
}

/* `contents`: NULL: there are calls, or samples. */
static void print_next(const struct krait_kernel_summary *kernel, const char *dir, const unsigned *contents)
{
    KRAIT_AUTO_BUF name = { 0 };
    bool is_first = true;
    krait_shell_file(&name, dir);
    if (name.failed)
        return;
    if (contents)
        print_others(name.data, *contents, &is_first);
    else {
        print_command("report", name.data, "", &is_first);
        print_command("flame", name.data, " -o flame.svg", &is_first);
    }
    if (kernel && kernel->events)
        print_command("states", name.data, "", &is_first);
    if (kernel && kernel->events && kernel->scope == KRAIT_KERNEL_WHOLE)
        print_command("path", name.data, "", &is_first); /* needs who woke whom */
}

void krait_record_print_next(const char *dir)
{
    print_next(NULL, dir, NULL);
}

/* Whether there are none; else `contents` has what there is. Only a recording that may be without them is read. */
static bool lacks_calls(const struct krait_collector_summary *s, const struct krait_recording_values *values,
                        const char *dir, unsigned *contents)
{
    enum { FEW = 100000 }; /* events, which are read in no time */
    struct krait_trace *trace = NULL;
    struct krait_err ignored;
    bool may_lack = values->include.count || values->exclude.count || s->events < FEW;
    if (!may_lack || krait_trace_open(&trace, &dir, 1, KRAIT_CALLS_ALONE, &ignored))
        return false;
    bool lacks = !krait_contents_has_calls(trace);
    *contents = lacks ? krait_contents_of(trace, KRAIT_RANGE_ALL) : 0;
    krait_trace_close(trace);
    return lacks;
}

/* What the options name and the program does not have, and which processes did not follow krait ctl. */
static void print_not_met(const struct krait_collector *collector, const struct krait_collector_summary *s,
                          const struct krait_recording_values *values, const char *dir)
{
    if (!s->processes)
        return;
    print_unmet(collector, &values->include, 0, "include");
    print_unmet(collector, &values->exclude, values->include.count, "exclude");
    if (!s->not_set) /* else nobody looked for them */
        krait_collector_set_unmet(collector, say_unmet, (void *)"");
    say_not_followed(s->not_off, "stop");
    say_not_followed(s->not_set, "set");
    print_levels(collector, values);
    krait_log_unmet_say(&values->log, collector);
    krait_audit_unmet_say(&values->audit, collector);
    if (dir)
        krait_args_unmet_say(&values->args, dir);
}

/* Why the recording does not go on. */
static void print_end(const struct krait_collector_summary *s, const struct krait_recording_values *values)
{
    if (s->limit)
        krait_terminal_say(NULL, 2, "%s: the recording ends here, and the program runs on without it",
                           s->limit);
    else if (s->alive && !values->pid)
        krait_terminal_say(
            NULL, 2, "%u process%s still running; %s recording ends here: --wait goes on with %s", s->alive,
            s->alive == 1 ? " is" : "es are", s->alive == 1 ? "its" : "their", s->alive == 1 ? "it" : "them");
}

/* Why no Python was recorded, if no process was refused. */
static void print_none(const struct krait_collector_summary *s)
{
    if (!s->was_on)
        krait_terminal_say(
            NULL, 2, "The recording was never switched on; krait ctl %d start would have done so", getpid());
    else if (s->limit)
        krait_terminal_say(NULL, 2, "No Python was seen until then");
    else
        krait_terminal_say(
            NULL, 2,
            "No Python was seen. krait records CPython " KRAIT_PYTHON_SPAN ", but no statically linked or "
            "set-uid program, none in a root without krait's folder (chroot, containers), and none that another "
            "krait records. If COMMAND left Python in the background, add --wait. See: krait doctor");
}

void krait_record_summary_print(const struct krait_collector *collector, const struct krait_missed *missed,
                                const struct krait_collector_summary *s,
                                const struct krait_recording_values *values,
                                const struct krait_kernel_summary *kernel, const char *dir)
{
    bool refused = has_refused(collector, missed);
    print_figures(s, values, dir);
    print_lost(s);
    if (values->max_overhead > 0 && s->processes && dir)
        print_omitted(dir);
    if (kernel)
        krait_record_kernel_print(kernel, values->kernel);
    print_refusals(collector);
    if (missed)
        krait_missed_print(missed);
    print_not_met(collector, s, values, dir);
    if (s->dropped_events) {
        char count[KRAIT_FMT_SIZE], kept[KRAIT_FMT_SIZE];
        krait_record_line("", "dropped", "%s of the program's, the oldest: %s; kept: the last %s",
                          krait_fmt_counted(count, s->dropped_events, "event"),
                          values->last.ns || values->last.bytes ? "--last" : "--keep newest",
                          krait_fmt_ns(kept, s->kept_ns));
    }
    print_end(s, values);
    if (!s->processes && !refused)
        print_none(s);
    else if (s->processes && dir && !krait_record_got_nothing(collector, missed, s, values)) {
        unsigned contents;
        print_next(kernel, dir, lacks_calls(s, values, dir, &contents) ? &contents : NULL);
    }
}
