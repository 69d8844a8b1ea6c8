/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait export`: recordings in other tools' formats.
 */
#include "export/export.h"

#include "base/fmt.h"
#include "cmd/analysis_files.h"
#include "cmd/cmds.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/progress.h"
#include "cmd/select.h"
#include "cmd/state.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "trace/track.h"

#include <signal.h>
#include <string.h>

struct export_options {
    const char *to, *output, *unit, *state;
    bool fold_imports, no_kernel, compensate;
    struct krait_select select;
};

#define AT(field) offsetof(struct export_options, field)

/* "folded|chrome|...", from the table. */
#define KRAIT_EXPORT(id, text, flags, opener, names) "|" #id
static const char choices[] =
#include "export/exports.def"
    ;
#undef KRAIT_EXPORT

static const struct krait_opt export_opts[] = {
    { "to", 't', KRAIT_OPT_CHOICE, choices + 1, AT(to),
      "Write this format (default: by FILE's name: .folded, .json, .pftrace, .speedscope.json, "
      "callgrind.out.NAME, .pb.gz)" },
    { "output", 'o', KRAIT_OPT_STR, "FILE", AT(output),
      "Write to FILE; - is standard output (default: a new file here, named after the recording)" },
    { "unit", 0, KRAIT_OPT_CHOICE, "ns|us|calls", AT(unit),
      "For folded: count self time in ns or us, or calls (default: ns)" },
    { "fold-imports", 0, KRAIT_OPT_FLAG, NULL, AT(fold_imports),
      "For folded: write Python's import machinery as one frame <import>" },
    { "state", 0, KRAIT_OPT_STR, KRAIT_STATE_CHOICES, AT(state),
      "For folded: count only the time in these states, separated by commas; needs a recording made with "
      "--kernel (gil does not), or with --sample, which has cpu, gil and other" },
    { "no-kernel", 0, KRAIT_OPT_FLAG, NULL, AT(no_kernel),
      "For chrome and perfetto: leave out the kernel events" },
    { "compensate", 0, KRAIT_OPT_FLAG, NULL, AT(compensate),
      "For folded, callgrind and pprof: subtract the estimated cost of recording each call, which krait record "
      "measured (docs/report.md)" },
    KRAIT_SELECT_OPTS(struct export_options, select),
    KRAIT_OPTS_END,
};

static enum krait_export_unit unit_of(const char *word)
{
    if (!word || strcmp(word, "ns") == 0)
        return KRAIT_EXPORT_NS;
    return strcmp(word, "us") == 0 ? KRAIT_EXPORT_US : KRAIT_EXPORT_CALLS;
}

/* The format that is named, or that the file's name tells. */
static int choose_format(struct export_options *o, struct krait_err *err)
{
    const struct krait_export_format *told = o->output ? krait_export_of_file(o->output) : NULL;
    if (o->to)
        return 0;
    if (!told)
        return krait_err_set(err, -EINVAL,
                             o->output ? "the name '%s' does not tell the format; choose one with --to %s"
                                       : "no format given%s; choose one with --to %s",
                             o->output ? o->output : "", choices + 1);
    o->to = told->name;
    return 0;
}

/* "app.pftrace" of some/app/: in this folder, and not hidden. */
static int choose_name(struct export_options *o, const char *folder, struct krait_buf *name,
                       struct krait_err *err)
{
    KRAIT_AUTO_FREE char *full = realpath(folder, NULL);
    const char *slash = full ? strrchr(full, '/') : NULL;
    const char *base = slash ? slash + 1 : "";
    base += strspn(base, ".");
    krait_export_file_name(name, krait_export_find(o->to), *base ? base : "trace");
    o->output = name->data;
    return name->failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* A name that the user did not give is no leave to replace a file. */
static int check_free(const char *name, struct krait_err *err)
{
    if (access(name, F_OK) != 0)
        return 0;
    return krait_err_set(err, -EEXIST, "%s is there already; choose a name with -o, or replace it with -o %s",
                         name, name);
}

static int check_usage(const struct export_options *o, struct krait_err *err)
{
    uint32_t flags = krait_export_find(o->to)->flags;
    if (o->unit && !(flags & KRAIT_EXPORT_HAS_UNIT))
        return krait_err_set(err, -EINVAL, "--unit: --to %s has a unit of its own", o->to);
    if (o->fold_imports && !(flags & KRAIT_EXPORT_FOLDS_IMPORTS))
        return krait_err_set(err, -EINVAL, "--fold-imports: --to %s cannot; --to folded can", o->to);
    if (o->state && !(flags & KRAIT_EXPORT_HAS_STATE))
        return krait_err_set(err, -EINVAL, "--state: --to %s cannot; --to folded can", o->to);
    if (o->state && o->unit && strcmp(o->unit, "calls") == 0)
        return krait_err_set(err, -EINVAL, "--state does not go with --unit calls: states are of time");
    if (o->compensate && !(flags & KRAIT_EXPORT_SUMS))
        return krait_err_set(err, -EINVAL, "--compensate: --to %s always has the times as they were recorded",
                             o->to);
    if (o->no_kernel && !(flags & KRAIT_EXPORT_HAS_KERNEL))
        return krait_err_set(err, -EINVAL, "--no-kernel: --to %s has no kernel events", o->to);
    if ((flags & KRAIT_EXPORT_BINARY) && strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO))
        return krait_err_set(err, -EINVAL,
                             "-o -: %s is binary, and standard output is a terminal; give a file, or a pipe",
                             o->to);
    if (o->select.analyses.count && !o->select.within && !(flags & KRAIT_EXPORT_HAS_TRACKS))
        return krait_err_set(err, -EINVAL, "-f: --to %s has no lanes; --to chrome and --to perfetto have",
                             o->to);
    uint32_t states;
    int rc = o->state ? krait_state_parse(o->state, &states, err) : 0;
    return rc ? rc : krait_select_check(&o->select, err);
}

/* What --state asks for; its wall is the caller's to free. */
static int load_states(const struct export_options *o, const char *path, const struct krait_trace *trace,
                       struct krait_wall **wall, struct krait_calltree_options *what, struct krait_err *err)
{
    if (!o->state)
        return 0;
    int rc = krait_state_parse(o->state, &what->states, err);
    rc = rc ? rc : krait_state_wall(wall, trace, "export", err);
    what->wall = *wall;
    rc = rc ? rc : krait_state_check(*wall, what->states, err);
    return rc ? krait_err_prefix(err, rc, "%s", path) : 0;
}

static void say_written(const char *path, uint64_t bytes, const struct krait_export_format *format)
{
    char next[256];
    snprintf(next, sizeof(next), "open it with %s", format->opener);
    krait_terminal_say_written("export", path, bytes, NULL, next);
}

static int export_trace(struct export_options *o, const char *path, struct krait_trace *trace,
                        struct krait_err *err)
{
    const struct krait_export_format *format = krait_export_find(o->to);
    bool has_tracks = format->flags & KRAIT_EXPORT_HAS_TRACKS;
    /* first: where no program was recorded, they tell where the trace begins */
    int rc = has_tracks ? krait_tracks_find_kinds(trace, KRAIT_EXPORT_TRACKS, err) : 0;
    struct krait_export_job job = {
        .trace = trace,
        .zero_ns = krait_trace_zero(trace),
        .what = { .range = krait_select_range(&o->select, trace),
                  .ranges = &o->select.parts,
                  .fold_imports = o->fold_imports,
                  .take_thread = krait_select_thread,
                  .ctx = &o->select },
        .unit = unit_of(o->unit),
        .no_kernel = o->no_kernel,
    };
    struct krait_wall *wall = NULL;
    rc = rc ? rc : krait_cost_compensate(o->compensate, trace, &job.what.corrected, err);
    rc = rc ? rc : krait_select_some(&o->select, trace, err);
    rc = rc ? rc : load_states(o, path, trace, &wall, &job.what, err);
    if (!rc && has_tracks)
        rc = krait_analysis_lanes(&o->select, trace, trace, "export", NULL, err);
    struct krait_progress progress;
    krait_progress_begin(&progress, "export", trace);
    if (!rc)
        rc = krait_export_run(format, &job, o->output, err);
    krait_progress_end(&progress);
    krait_wall_free(wall);
    const char *damage = *job.damage ? job.damage : trace->damage;
    if (!rc) {
        bool is_kernels = strcmp(damage, job.kernel_damage) == 0; /* told once, by the second */
        krait_ending_warn("export", trace, job.what.range, is_kernels ? "" : damage, "");
        krait_ending_warn_kernel("export", job.kernel_damage);
        if (!job.some)
            fprintf(stderr, "krait export: warning: no calls were recorded%s\n",
                    krait_select_scope(&o->select));
        say_written(o->output, job.bytes, format);
    }
    return rc;
}

extern const struct krait_cmd krait_cmd_export;

static int run_export(void *values, int argc, char **argv)
{
    struct export_options *o = values;
    struct krait_err err = { 0 };
    KRAIT_AUTO_BUF name = { 0 };
    o->select.shows_analyses = true;
    int wrong = krait_select_given(KRAIT_SELECT_RECORDING, argc, &err);
    wrong = wrong ? wrong : choose_format(o, &err);
    o->select.tells_analyses = !wrong && krait_export_find(o->to)->flags & KRAIT_EXPORT_HAS_TRACKS;
    wrong = wrong || o->output ? wrong : choose_name(o, argv[0], &name, &err);
    if (wrong || check_usage(o, &err)) {
        krait_select_done(&o->select);
        return krait_cmd_usage(&krait_cmd_export, &err);
    }
    /* A reader that goes away early is an error like any other, with its text. */
    signal(SIGPIPE, SIG_IGN);
    struct krait_trace *trace = NULL;
    int rc = name.len ? check_free(o->output, &err) : 0;
    /* what a file declares needs no calls: other tracers' events, and the kernel's */
    unsigned needs = o->select.analyses.count && !o->select.within ? 0 : KRAIT_NEEDS_CALLS;
    rc = rc ? rc : krait_trace_open(&trace, (const char *const *)argv, (size_t)argc, needs, &err);
    if (!rc && krait_trace_find_holders(trace))
        rc = krait_err_set(&err, -ENOMEM, "out of memory");
    o->select.sums_parts = krait_export_find(o->to)->flags & KRAIT_EXPORT_SUMS;
    rc = rc ? rc : krait_within(&o->select, trace, "export", &err);
    rc = rc ? rc : export_trace(o, argv[0], trace, &err);
    krait_trace_close(trace);
    krait_select_done(&o->select);
    return rc ? krait_cmd_fail(&krait_cmd_export, &err) : 0;
}

/* The list of formats in the description, from the table. */
#define KRAIT_EXPORT(id, text, flags, opener, names) "\n\n" #id ": " text "."

const struct krait_cmd krait_cmd_export = {
    .name = "export",
    .operands = "DIR...",
    .summary = "Write recordings in another tool's format",
    .description =
        "Writes a recording, or a function trace of LTTng, in the format of another tool; several folders "
        "are written as one recording. krait writes the whole file or none. docs/export.md describes the "
        "formats:"
#include "export/exports.def"
    ,
    .examples = "# A flame graph made by FlameGraph\n"
                "krait export trace --to folded -o - | flamegraph.pl > flame.svg\n"
                "# For ui.perfetto.dev: trace.pftrace\n"
                "krait export trace --to perfetto\n"
                "# The file's name selects the format\n"
                "krait export trace -o trace.speedscope.json\n"
                "# Only the calls, without the kernel events\n"
                "krait export trace --to perfetto --no-kernel -o calls.pftrace\n"
                "# With tracks for what a file declares\n"
                "krait export trace --to perfetto -f ./orders.toml -o orders.pftrace\n"
                "# Half a second of one thread, for speedscope\n"
                "krait export trace --to speedscope --thread MainThread --from 1s --until 1.5s -o "
                "main.speedscope.json\n"
                "# The most expensive functions, by callgrind_annotate and by pprof\n"
                "krait export trace --to callgrind -o callgrind.out && callgrind_annotate callgrind.out\n"
                "krait export trace --to pprof -o cpu.pb.gz && go tool pprof -top cpu.pb.gz\n",
    .opts = export_opts,
    .values_size = sizeof(struct export_options),
    .run = run_export,
};
#undef KRAIT_EXPORT
