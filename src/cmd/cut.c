/* SPDX-License-Identifier: Apache-2.0
 *
 * krait cut: a range of a trace as a trace.
 */
#include "trace/cut.h"
#include "base/dirs.h"
#include "base/fmt.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/select.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "trace/track.h"

#include <string.h>
#include <sys/stat.h>

struct cut_options {
    const char *output;
    struct krait_select select;
};

static const struct krait_opt cut_opts[] = {
    { "output", 'o', KRAIT_OPT_STR, "DIR", offsetof(struct cut_options, output),
      "Write the part to DIR, a folder that does not exist or is empty" },
    KRAIT_SELECT_TIME_OPTS(struct cut_options, select),
    KRAIT_SELECT_TO_OPT(struct cut_options, select),
    KRAIT_OPTS_END,
};

static int check_usage(const struct cut_options *o, int argc, struct krait_err *err)
{
    if (krait_select_given(KRAIT_SELECT_TRACE, argc, err))
        return err->code;
    if (argc != 1)
        return krait_err_set(err, -EINVAL, "cut takes one trace at a time");
    if (!o->output)
        return krait_err_set(err, -EINVAL, "-o DIR is missing: where the part is written to");
    if (!o->select.from && !o->select.until && !o->select.within)
        return krait_err_set(err, -EINVAL,
                             "no range given; use --from TIME, --until TIME or both, or --within NAME");
    return krait_select_check(&o->select, err);
}

/* ---- the folder ---- */

/* Beside the folder that is asked for: it appears when all of it is there. */
static int begin_dir(char **made, const char *dir, struct krait_err *err)
{
    size_t n = strlen(dir);
    struct stat st;
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (stat(dir, &st) == 0 && rmdir(dir))
        return krait_err_set(err, -EEXIST,
                             "%s is there already and not an empty folder; choose another with -o", dir);
    if (asprintf(made, "%.*s.part-%d", (int)n, dir, (int)getpid()) < 0)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (mkdir(*made, 0777) == 0)
        return 0;
    int rc = krait_err_errno(err, "cannot make the folder %s", *made);
    free(*made);
    *made = NULL;
    return rc;
}

static int end_dir(const char *made, const char *dir, struct krait_err *err)
{
    return rename(made, dir) ? krait_err_errno(err, "cannot rename %s to %s", made, dir) : 0;
}

/* ---- all of it ---- */

static void warn(const char *about, uint64_t count, const char *one)
{
    char counted[KRAIT_FMT_SIZE];
    if (count)
        fprintf(stderr, "krait cut: warning: %s %s\n", krait_fmt_counted(counted, count, one), about);
}

static void say_copied(const struct krait_cut *cut, const char *dir)
{
    char events[KRAIT_FMT_SIZE];
    warn(
        "with events before the range or behind it too: the format or a time that goes back does not let them be "
        "trimmed",
        cut->copied.whole, "packet");
    warn("copied from the beginning: the packets do not tell when they begin", cut->copied.from_beginning,
         "stream");
    warn("copied whole: there is no clock", cut->copied.timeless, "stream");
    krait_terminal_say_written("cut", dir, cut->copied.bytes,
                               krait_fmt_counted(events, cut->copied.events, "event"), NULL);
}

/* Why there was nothing to copy. */
static int no_events(const struct krait_cut *cut, const struct cut_options *o, struct krait_err *err)
{
    const struct krait_err *damage = &cut->copied.damage;
    if (damage->code)
        *err = *damage;
    return damage->code ? damage->code
                        : krait_err_set(err, -ENODATA, "%s: no events lie%s; krait info says how long it is",
                                        cut->path, krait_select_scope(&o->select));
}

static int cut_into(struct krait_cut *cut, const struct krait_trace *trace, const struct cut_options *o,
                    struct krait_err *err)
{
    KRAIT_AUTO_FREE char *made = NULL;
    int rc = begin_dir(&made, o->output, err);
    if (rc)
        return rc;
    cut->to = made;
    rc = krait_trace_cut(cut, trace, err);
    if (!rc && !cut->copied.packets)
        rc = no_events(cut, o, err);
    rc = rc ? rc : end_dir(made, o->output, err);
    if (rc)
        krait_dir_remove(made);
    return rc;
}

static int run_cut(void *values, int argc, char **argv)
{
    struct cut_options *o = values;
    struct krait_err err = { 0 };
    if (check_usage(o, argc, &err))
        return krait_cmd_usage(&krait_cmd_cut, &err);
    struct krait_trace *trace = NULL;
    struct krait_cut cut = { .path = argv[0] };
    int rc = krait_trace_open(&trace, (const char *const *)argv, 1, 0, &err);
    if (!rc && !trace->process_count && !trace->has_kernel) /* its marks alone say when it begins */
        rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_INSTANTS, &err);
    rc = rc ? rc : krait_within(&o->select, trace, "cut", &err);
    if (!rc) {
        cut.range = krait_select_range(&o->select, trace);
        rc = cut_into(&cut, trace, o, &err);
    }
    krait_trace_close(trace);
    krait_select_done(&o->select);
    if (!rc)
        say_copied(&cut, o->output);
    if (!rc && cut.copied.damage.code) {
        err = cut.copied.damage;
        rc = err.code;
    }
    return rc ? krait_cmd_fail(&krait_cmd_cut, &err) : 0;
}

const struct krait_cmd krait_cmd_cut = {
    .name = "cut",
    .operands = "TRACE",
    .summary = "Write a range of a trace as a trace of its own",
    .description =
        "Writes the events from --from to --until to the folder DIR, in the format of the trace, so the same tools "
        "read it. TRACE is a recording of krait or any other trace in CTF 1.8 or CTF 2 whose clock krait can "
        "read.\n\n"
        "A part of a krait recording gives the same results as the whole with --from and --until: calls that were "
        "open when the range begins are open in the part, and all functions, threads and processes have their "
        "names. Parts of other traces contain only the events of the range.\n\n"
        "If a trace is damaged, krait copies what is intact, prints the reason, and exits with status 1. "
        "docs/cut.md has the rules.",
    .examples = "# From the third second to the fourth\n"
                "krait cut krait-app --from 3s --until 4s -o slow\n"
                "krait view slow\n"
                "# The first 200 ms of an LTTng trace, for babeltrace2\n"
                "krait cut ~/lttng-traces/auto-1 --until 200ms -o start && babeltrace2 start\n",
    .opts = cut_opts,
    .values_size = sizeof(struct cut_options),
    .run = run_cut,
};
