/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait export`: recordings in other tools' formats.
 */
#include "export/export.h"

#include "base/fmt.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/select.h"
#include "cmd/terminal.h"

#include <signal.h>
#include <string.h>

struct export_options {
    const char *to, *output, *unit;
    bool fold_imports, no_kernel;
    struct krait_select select;
};

#define AT(field) offsetof(struct export_options, field)

/* "folded|chrome|...", from the table. */
#define KRAIT_EXPORT(id, text, flags, opener) "|" #id
static const char choices[] =
#include "export/exports.def"
    ;
#undef KRAIT_EXPORT

static const struct krait_opt export_opts[] = {
    { "to", 't', KRAIT_OPT_CHOICE, choices + 1, AT(to), "The format to write" },
    { "output", 'o', KRAIT_OPT_STR, "FILE", AT(output), "Where to; - is standard output" },
    { "unit", 0, KRAIT_OPT_CHOICE, "ns|us|calls", AT(unit),
      "Values of folded stacks: own time in ns (the default) or us, or calls" },
    { "fold-imports", 0, KRAIT_OPT_FLAG, NULL, AT(fold_imports),
      "In folded stacks, Python's import machinery is one frame <import>, not a dozen for each module" },
    { "no-kernel", 0, KRAIT_OPT_FLAG, NULL, AT(no_kernel),
      "Leave out what the kernel recorded; chrome and perfetto hold it" },
    KRAIT_SELECT_OPTS(struct export_options, select),
    KRAIT_OPTS_END,
};

static enum krait_export_unit unit_of(const char *word)
{
    if (!word || strcmp(word, "ns") == 0)
        return KRAIT_EXPORT_NS;
    return strcmp(word, "us") == 0 ? KRAIT_EXPORT_US : KRAIT_EXPORT_CALLS;
}

static int check_usage(const struct export_options *o, int argc, struct krait_err *err)
{
    if (argc < 1)
        return krait_err_set(err, -EINVAL, "which recording? Name its folder");
    if (!o->to)
        return krait_err_set(err, -EINVAL, "which format? --to %s", choices + 1);
    if (!o->output)
        return krait_err_set(err, -EINVAL, "where to? -o FILE, or -o - for standard output");
    uint32_t flags = krait_export_find(o->to)->flags;
    if (o->unit && !(flags & KRAIT_EXPORT_HAS_UNIT))
        return krait_err_set(err, -EINVAL, "--unit: --to %s has a unit of its own", o->to);
    if (o->fold_imports && !(flags & KRAIT_EXPORT_FOLDS_IMPORTS))
        return krait_err_set(err, -EINVAL, "--fold-imports: --to %s cannot; --to folded can", o->to);
    if (o->no_kernel && !(flags & KRAIT_EXPORT_HAS_KERNEL))
        return krait_err_set(err, -EINVAL, "--no-kernel: --to %s holds nothing of the kernel's", o->to);
    if ((flags & KRAIT_EXPORT_BINARY) && strcmp(o->output, "-") == 0 && isatty(STDOUT_FILENO))
        return krait_err_set(err, -EINVAL,
                             "-o -: %s is binary, and standard output is a terminal; give a file, or a pipe",
                             o->to);
    return krait_select_check(&o->select, err);
}

static void say_written(const char *path, uint64_t bytes, const struct krait_export_format *format)
{
    char size[KRAIT_FMT_SIZE];
    if (strcmp(path, "-") == 0)
        return;
    fputs("krait export: wrote ", stderr);
    krait_terminal_safe(stderr, path);
    fprintf(stderr, " (%s); open it with %s\n", krait_fmt_bytes(size, bytes), format->opener);
}

/* What is missing of the kernel's part. */
static void warn_kernel(const struct krait_export_job *job)
{
    char count[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF damage = { 0 };
    if (job->kernel_lost)
        fprintf(stderr,
                "krait export: warning: lost: %s events of the kernel's: what they would have changed is "
                "missing\n",
                krait_fmt_count(count, job->kernel_lost));
    krait_fmt_safe(&damage, job->kernel_damage);
    if (damage.len)
        fprintf(stderr, "krait export: warning: the kernel's part: %s\n", damage.data);
}

static int export_trace(struct export_options *o, struct krait_trace *trace, struct krait_err *err)
{
    struct krait_export_job job = {
        .trace = trace,
        .zero_ns = krait_trace_zero(trace),
        .what = { .range = krait_select_range(&o->select, trace),
                  .fold_imports = o->fold_imports,
                  .take_thread = krait_select_thread,
                  .ctx = &o->select },
        .unit = unit_of(o->unit),
        .no_kernel = o->no_kernel,
    };
    const struct krait_export_format *format = krait_export_find(o->to);
    int rc = krait_select_some(&o->select, trace, err);
    if (!rc)
        rc = krait_export_run(format, &job, o->output, err);
    const char *damage = *job.damage ? job.damage : trace->damage;
    if (!rc) {
        krait_ending_warn("export", trace, damage);
        warn_kernel(&job);
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
    if (check_usage(o, argc, &err)) {
        krait_select_done(&o->select);
        return krait_cmd_usage(&krait_cmd_export, &err);
    }
    /* A reader that goes away early is an error like any other, with its text. */
    signal(SIGPIPE, SIG_IGN);
    struct krait_trace *trace = NULL;
    int rc = krait_trace_open(&trace, (const char *const *)argv, (size_t)argc, &err);
    if (!rc)
        rc = export_trace(o, trace, &err);
    krait_trace_close(trace);
    krait_select_done(&o->select);
    return rc ? krait_cmd_fail(&krait_cmd_export, &err) : 0;
}

/* The list of formats in the description, from the table. */
#define KRAIT_EXPORT(id, text, flags, opener) "\n\n" #id ": " text "."

const struct krait_cmd krait_cmd_export = {
    .name = "export",
    .operands = "DIR...",
    .summary = "Write recordings in another tool's format",
    .description =
        "Writes recordings, several as one, in the format of another tool. The file appears whole or not at\n"
        "all. The formats, of which docs/export.md says more:"
#include "export/exports.def"
    ,
    .examples = "# A flame graph by FlameGraph\n"
                "krait export trace --to folded -o - | flamegraph.pl > flame.svg\n"
                "# For ui.perfetto.dev\n"
                "krait export trace --to perfetto -o trace.pftrace\n"
                "# The calls alone, of a recording with the kernel\n"
                "krait export trace --to perfetto --no-kernel -o calls.pftrace\n"
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
