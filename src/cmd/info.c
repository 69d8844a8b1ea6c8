/* SPDX-License-Identifier: Apache-2.0
 *
 * krait info: what a trace is and what is in it.
 */
#include "cmd/info.h"

#include "cmd/cmds.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "trace/kernel/kernel.h"

#include <string.h>

struct info_options {
    bool json;
    bool all;
    struct krait_select select;
};

static const struct krait_opt info_opts[] = {
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct info_options, json), "Print one JSON object" },
    { "all", 'a', KRAIT_OPT_FLAG, NULL, offsetof(struct info_options, all),
      "List all processes and event classes (default: the first twelve of each)" },
    KRAIT_SELECT_TIME_OPTS(struct info_options, select),
    KRAIT_SELECT_TO_OPT(struct info_options, select),
    KRAIT_OPTS_END,
};

static bool is_by_krait(const struct krait_ctf_trace *trace)
{
    return strcmp(krait_ctf_env_text(trace->metadata, "tracer_name", ""), "krait") == 0;
}

/* Recordings of krait's, and nothing else; a kernel part is known by who recorded it. */
static bool is_krait(const struct krait_ctf_reader *reader)
{
    bool any = false;
    for (uint32_t i = 0; i < reader->trace_count; i++) {
        const struct krait_ctf_trace *trace = reader->traces[i];
        any |= is_by_krait(trace);
        if (!is_by_krait(trace) &&
            strncmp(krait_ctf_env_text(trace->metadata, "recorded_by", ""), "krait ", 6) != 0)
            return false;
    }
    return any;
}

static void sum_kernel(struct info *info)
{
    for (uint32_t i = 0; i < info->reader->trace_count; i++) {
        if (!krait_info_is_kernel(info->reader->traces[i]))
            continue;
        info->kernel.events += info->count.traces[i].events;
        info->kernel.lost_events += info->count.traces[i].lost_events;
        info->kernel.streams += info->count.traces[i].streams;
    }
}

/* What keeps the kernel's part from being read is told elsewhere. */
static int read_steals(struct info *info)
{
    struct krait_kernel_events *events;
    struct krait_err ignored;
    if (info->is_part || !info->trace->has_kernel || krait_trace_kernel(info->trace, &events, &ignored) ||
        !krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_STEAL))
        return 0;
    return krait_kernel_steals_read(&info->steals, &info->steals_ns, NULL, events);
}

static bool has_gil(const struct krait_ctf_count *count)
{
    uint32_t i = 0;
    while (i < count->class_count && strcmp(count->classes[i].name, "gil:wait") != 0)
        i++;
    return i < count->class_count;
}

static int sum_gil(struct info *info)
{
    struct krait_gil_waits waits = { 0 };
    struct krait_gil_holders *holders = NULL;
    struct gil_sum *gil = &info->gil;
    int rc = krait_gil_holders_new(&holders, info->trace);
    for (uint32_t t = 0; !rc && t < info->trace->thread_count; t++) {
        rc = krait_gil_waits_read(&waits, info->trace, t, info->range);
        uint64_t ns = 0;
        for (uint32_t i = 0; i < waits.count; i++) {
            ns += waits.items[i].end_ns - waits.items[i].begin_ns;
            gil->waits += waits.items[i].taken;
            krait_gil_split_add(&gil->split, holders, &info->trace->threads[t], &waits.items[i]);
        }
        gil->ns += ns;
        gil->threads += waits.count > 0;
        if (ns > gil->most_ns) {
            gil->most = t;
            gil->most_ns = ns;
        }
    }
    krait_gil_waits_done(&waits);
    krait_gil_holders_free(holders);
    return rc;
}

static void look_at_terminal(struct info *info)
{
    enum { USUAL = 80 };
    info->look = krait_terminal_look(stdout);
    info->look.width = info->look.width ? info->look.width : USUAL;
    info->bold = krait_terminal_colour(stdout, KRAIT_BOLD);
    info->dim = krait_terminal_colour(stdout, KRAIT_DIM);
    info->red = krait_terminal_colour(stdout, KRAIT_RED);
    info->plain = krait_terminal_colour(stdout, KRAIT_PLAIN);
}

/* The model of any trace: it tells where ranges are, and what files declare. `own`: if the recordings are not krait's. */
static int select_part(struct info *info, struct krait_trace **own, const char *const *paths, size_t count,
                       struct krait_select *select, struct krait_err *err)
{
    int rc = 0;
    if (!select->from && !select->until && !select->within && !select->analyses.count)
        return 0;
    if (!info->trace)
        rc = krait_trace_open(own, paths, count, 0, err);
    struct krait_trace *trace = info->trace ? info->trace : *own;
    if (!rc && !trace->process_count && !trace->has_kernel) /* its marks alone say when it begins */
        rc = krait_tracks_find_kinds(trace, 1 << KRAIT_TRACK_INSTANTS, err);
    rc = rc ? rc : krait_within(select, trace, "info", err);
    if (rc)
        return rc;
    info->is_part = select->from || select->until;
    info->range = krait_select_range(select, trace);
    info->zero_ns = krait_trace_zero(trace);
    return select->analyses.count ? krait_info_find_declared(info, trace, select, err) : 0;
}

static int64_t signed_ns(uint64_t ns)
{
    return (int64_t)KRAIT_MIN(ns, (uint64_t)INT64_MAX);
}

static int sum_up(struct info *info)
{
    int rc = krait_ctf_count(&info->count, info->reader,
                             info->range.from_ns ? signed_ns(info->range.from_ns) : INT64_MIN,
                             signed_ns(info->range.to_ns));
    if (!rc && info->trace)
        sum_kernel(info);
    if (!rc && info->trace && !info->is_part && krait_info_kept_from(info)) /* not from leftovers on */
        info->count.begin_ns = (int64_t)krait_trace_zero(info->trace);
    if (!rc && info->trace)
        rc = read_steals(info);
    return rc || !info->trace || !has_gil(&info->count) ? rc : sum_gil(info);
}

static int gather(struct info *info, struct krait_trace **own, const char *const *paths, size_t count,
                  struct krait_select *select, struct krait_err *err)
{
    int rc = krait_ctf_open(&info->reader, paths, count, NULL, err);
    if (!rc && is_krait(info->reader))
        rc = krait_trace_open(&info->trace, paths, count, KRAIT_NEEDS_CALLS, err);
    rc = rc ? rc : select_part(info, own, paths, count, select, err);
    return !rc && sum_up(info) ? krait_err_set(err, -ENOMEM, "out of memory") : rc;
}

static int show(struct info *info, const struct info_options *opts, struct krait_err *err)
{
    look_at_terminal(info);
    if (opts->json)
        krait_info_json(info);
    else
        krait_info_text(info);
    if (info->out.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (fwrite(info->out.data, 1, info->out.len, stdout) != info->out.len || fflush(stdout))
        return krait_err_errno(err, "cannot write the output");
    krait_terminal_note_dropped();
    *err = info->count.damage;
    return err->code;
}

static int check_usage(const struct krait_select *select, int argc, struct krait_err *err)
{
    int rc = krait_select_given(KRAIT_SELECT_TRACE, argc, err);
    return rc ? rc : krait_select_check(select, err);
}

static int run_info(void *values, int argc, char **argv)
{
    struct info_options *opts = values;
    struct info info = { .all = opts->all, .range = KRAIT_RANGE_ALL };
    struct krait_trace *own = NULL;
    struct krait_err err = { 0 };
    opts->select.shows_analyses = opts->select.tells_analyses = true;
    int rc = check_usage(&opts->select, argc, &err);
    int status = rc ? krait_cmd_usage(&krait_cmd_info, &err) : 0;
    if (!rc)
        rc = gather(&info, &own, (const char *const *)argv, (size_t)argc, &opts->select, &err);
    if (!rc)
        rc = show(&info, opts, &err);
    krait_buf_done(&info.out);
    free(info.declared);
    krait_arena_done(&info.names);
    krait_trace_close(info.trace);
    krait_trace_close(own);
    krait_ctf_count_done(&info.count);
    krait_kernel_steals_done(&info.steals);
    krait_ctf_close(info.reader);
    krait_select_done(&opts->select);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_info, &err);
}

const struct krait_cmd krait_cmd_info = {
    .name = "info",
    .operands = "TRACE...",
    .summary = "Describe a trace: its contents, losses and processes",
    .description =
        "Prints the duration of a trace from its first event to its last, the number of its events by class, "
        "its size, its clock, and what was lost and why. For krait's own recordings it also lists the "
        "processes and threads and how each process ended. Reads any trace in CTF 1.8 or CTF 2.\n\n"
        "With --from, --until or --within it describes that range: the events in it, the packets that reach into it and "
        "what these lost, and the processes and threads that were there. With -f it lists what the files declare and how "
        "much of that the trace has.\n\n"
        "A process is \"ended\" if krait does not know its exit status, \"stopped\" if the recording ended "
        "before the process did, and \"unfinished\" if the recording has no end: krait still records, or its "
        "collector was killed. Up to a second of each thread's last events may then be missing.\n\n"
        "--json prints an object with the keys duration_ns, processes and threads (null if the trace does "
        "not tell), events, bytes, lost (count by reason), lost_events, lost_anywhere (of a range: what the whole recording "
        "lost, nobody knows when), damage (the first one found, or null), "
        "event_classes (a list of name and count), streams, packets, and kernel (events, streams, lost, lost_events and, by "
        "CPU, stolen_ns of a recording's kernel part, or null), and gil (waits, wait_ns, threads, and of wait_ns held_ns, in which "
        "another thread held the GIL, free_ns, in which nobody did, and unknown_ns; or null). For krait's own recordings it also has "
        "dropped (how many of the oldest events), kept_from_ns (so long after the recording began everything is kept; 0 if nothing was "
        "dropped), kept_ns (how long what is kept is; duration_ns counts from the beginning of the recording), finished (false if a "
        "process's end is missing), args_unmet (texts of --args that matched no recorded function) and process_list: pid, name, command, runtime, threads, duration_ns, end "
        "(exit, signal, exec, gone, stop or null) and status (exit status, signal or null). With -f it has declared: name, "
        "kind (interval, state or signal), found and total_ns (0 for a signal).",
    .examples = "krait info trace\n"
                "krait info trace --within serve:slowest\n"
                "krait info trace -f ./bakery.toml\n"
                "krait info --json trace | python3 -m json.tool\n",
    .opts = info_opts,
    .values_size = sizeof(struct info_options),
    .run = run_info,
};
