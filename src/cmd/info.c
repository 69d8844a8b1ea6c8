/* SPDX-License-Identifier: Apache-2.0
 *
 * krait info: what a trace is and what is in it.
 */
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/omitted.h"
#include "cmd/terminal.h"
#include "ctf/rows/count.h"
#include "trace/gil.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/kernel_steal.h"
#include "view/width.h"

#include <string.h>
#include <time.h>

struct info_options {
    bool json;
    bool all;
};

static const struct krait_opt info_opts[] = {
    { "json", 0, KRAIT_OPT_FLAG, NULL, offsetof(struct info_options, json), "Print one JSON object" },
    { "all", 'a', KRAIT_OPT_FLAG, NULL, offsetof(struct info_options, all),
      "List all processes and event classes (default: the first twelve of each)" },
    KRAIT_OPTS_END,
};

struct info {
    struct krait_ctf_reader *reader;
    struct krait_ctf_count count;
    struct krait_trace *trace;           /* the model, of krait's own recordings; else NULL */
    struct krait_ctf_trace_count kernel; /* of such a recording's kernel part */
    struct krait_kernel_steals steals;   /* of that */
    uint64_t steals_ns;                  /* how long that is */
    struct gil_sum {
        uint64_t waits, ns;
        uint32_t threads; /* that waited */
        uint32_t most;    /* the thread that waited longest */
        uint64_t most_ns;
    } gil;
    bool all;
    unsigned columns; /* of the terminal */
    const char *bold, *dim, *red, *plain;
    struct krait_buf out;
};

enum { LISTED = 12 }; /* processes and event classes without --all */
enum { INDENT = 13 }; /* what stands behind a label */

/* The largest of a number that all traces of the recording tell; 0 where none does. */
static uint64_t most_of(const struct info *info, const char *name)
{
    int64_t most = 0;
    for (uint32_t i = 0; info->trace && i < info->reader->trace_count; i++)
        most = KRAIT_MAX(most, krait_ctf_env_int(info->reader->traces[i]->metadata, name, 0));
    return (uint64_t)most;
}

/* -- losses, of recordings by reason, of other traces as their packets tell -- */

struct loss {
    const char *reason, *advice;
    uint64_t count;
};

static uint32_t loss_count(const struct info *info)
{
    return info->trace ? info->trace->lost_count + 2 : 2;
}

static struct loss loss_at(const struct info *info, uint32_t i)
{
    uint64_t refused = KRAIT_MIN(most_of(info, "disk_refused"), info->kernel.lost_events);
    if (info->trace && i == info->trace->lost_count)
        return (struct loss){ "kernel ring full",
                              "kernel events came faster than they were written: --kernel-ring-size",
                              info->kernel.lost_events - refused };
    if (info->trace && i == info->trace->lost_count + 1)
        return (struct loss){ "kernel disk",
                              "kernel events could not be written; free space and record again", refused };
    if (info->trace)
        return (struct loss){ info->trace->lost[i].reason, info->trace->lost[i].advice,
                              info->trace->lost[i].count };
    if (i == 0)
        return (struct loss){ "discarded events", "the tracer's buffers were full; make them larger",
                              info->count.lost_events };
    return (struct loss){ "discarded packets", "the tracer overwrote or lost whole packets",
                          info->count.lost_packets };
}

/* -- JSON -- */

static void json_losses(struct info *info)
{
    krait_json_key_open(&info->out, "lost", '{');
    for (uint32_t i = 0; i < loss_count(info); i++) {
        struct loss loss = loss_at(info, i);
        if (!loss.count)
            continue;
        krait_json_key_u64(&info->out, loss.reason, loss.count);
    }
    krait_buf_char(&info->out, '}');
}

static void json_classes(struct info *info)
{
    krait_json_key_open(&info->out, "event_classes", '[');
    for (uint32_t i = 0; i < info->count.class_count; i++) {
        krait_json_item(&info->out, "{");
        krait_json_key_text(&info->out, "name", info->count.classes[i].name);
        krait_json_key_u64(&info->out, "count", info->count.classes[i].count);
        krait_buf_char(&info->out, '}');
    }
    krait_buf_char(&info->out, ']');
}

static uint32_t threads_of(const struct krait_trace *trace, uint32_t process)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < trace->thread_count; i++)
        n += trace->threads[i].process == process;
    return n;
}

static void json_process(struct krait_buf *out, const struct krait_process *process, uint32_t threads)
{
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "pid", process->pid);
    krait_json_key_text_or_null(out, "name", process->name);
    krait_json_key_text_or_null(out, "command", process->command);
    krait_json_key_text_or_null(out, "runtime", process->runtime);
    krait_json_key_u64(out, "threads", threads);
    krait_json_key_u64(out, "duration_ns", process->end_ns - process->begin_ns);
    krait_json_key_text_or_null(out, "end", process->end);
    bool known = process->end[0] && process->end_status >= 0;
    krait_json_key_u64_or_null(out, "status", known, (uint64_t)process->end_status);
    krait_buf_char(out, '}');
}

static void json_processes(struct info *info)
{
    krait_json_key_bool(&info->out, "finished", !krait_ending_unfinished(info->trace));
    krait_json_key_open(&info->out, "process_list", '[');
    for (uint32_t i = 0; i < info->trace->process_count; i++) {
        krait_json_item(&info->out, "");
        json_process(&info->out, &info->trace->processes[i], threads_of(info->trace, i));
    }
    krait_buf_char(&info->out, ']');
}

static void json_kernel(struct info *info)
{
    struct krait_buf *out = &info->out;
    if (!info->kernel.streams) {
        krait_json_key_null(out, "kernel");
        return;
    }
    krait_json_key_open(out, "kernel", '{');
    krait_json_key_u64(out, "events", info->kernel.events);
    krait_json_key_u64(out, "streams", info->kernel.streams);
    krait_json_key_u64(out, "lost", info->kernel.lost_events);
    krait_json_key_open(out, "stolen_ns", '[');
    for (uint32_t i = 0; i < info->steals.count; i++)
        krait_buf_fmt(out, "%s%llu", i ? "," : "", (unsigned long long)info->steals.items[i].stolen_ns);
    krait_buf_str(out, "]}");
}

static void json_gil(struct info *info)
{
    struct krait_buf *out = &info->out;
    if (!info->gil.waits) {
        krait_json_key_null(out, "gil");
        return;
    }
    krait_json_key_open(out, "gil", '{');
    krait_json_key_u64(out, "waits", info->gil.waits);
    krait_json_key_u64(out, "wait_ns", info->gil.ns);
    krait_json_key_u64(out, "threads", info->gil.threads);
    krait_buf_char(out, '}');
}

/* The option that ended the recording before its program; empty where none did. */
static const char *limit_of(const struct info *info)
{
    const char *limit = "";
    for (uint32_t i = 0; info->trace && !*limit && i < info->reader->trace_count; i++)
        limit = krait_ctf_env_text(info->reader->traces[i]->metadata, "recording_limit", "");
    return limit;
}

static void json_rings(struct info *info)
{
    struct krait_buf *out = &info->out;
    uint64_t ring = most_of(info, "ring_size");
    if (!ring) {
        krait_json_key_null(out, "rings");
        return;
    }
    krait_json_key_open(out, "rings", '{');
    krait_json_key_u64(out, "ring_bytes", ring);
    krait_json_key_u64(out, "buffer_bytes", most_of(info, "buffer_size"));
    krait_json_key_u64(out, "grown_bytes", most_of(info, "buffer_used"));
    krait_buf_char(out, '}');
}

static uint64_t duration(const struct info *info)
{
    return (uint64_t)info->count.end_ns - (uint64_t)info->count.begin_ns;
}

static void print_json(struct info *info)
{
    struct krait_buf *out = &info->out;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "duration_ns", duration(info));
    krait_json_key_u64_or_null(out, "processes", info->trace, info->trace ? info->trace->process_count : 0);
    krait_json_key_u64_or_null(out, "threads", info->trace, info->trace ? info->trace->thread_count : 0);
    krait_json_key_u64(out, "events", info->count.events);
    krait_json_key_u64(out, "bytes", info->count.bytes);
    json_losses(info);
    krait_json_key_text_or_null(out, "damage", info->count.damage.text);
    json_classes(info);
    krait_json_key_u64(out, "streams", info->reader->stream_count);
    krait_json_key_u64(out, "packets", info->count.packets);
    json_kernel(info);
    json_gil(info);
    json_rings(info);
    krait_json_key_text_or_null(out, "limit", limit_of(info));
    krait_json_key_u64_or_null(out, "dropped", info->trace, most_of(info, "dropped_events"));
    if (info->trace)
        krait_omitted_json(out, info->trace);
    if (info->trace)
        json_processes(info);
    krait_buf_str(out, "}\n");
}

/* -- for people -- */

static void label(struct info *info, const char *name)
{
    krait_buf_fmt(&info->out, "  %s%-10s%s ", info->dim, name, info->plain);
}

static void heading(struct info *info, const char *text)
{
    krait_buf_fmt(&info->out, "\n%s%s%s\n", info->bold, text, info->plain);
}

/* Text from the trace, cut to what is left of the line. */
static void add_cut(struct info *info, const char *text, size_t room)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, text);
    if (!safe.len)
        return;
    size_t used = 0, n = 0;
    while (n < safe.len) {
        size_t len = krait_utf8_len(safe.data + n, safe.len - n);
        if (++used > room)
            break;
        n += len ? len : 1;
    }
    bool cut = n < safe.len;
    if (cut && n)
        for (n--; n && ((unsigned char)safe.data[n] & 0xc0) == 0x80;)
            n--;
    krait_buf_add(&info->out, safe.data, n);
    krait_buf_str(&info->out, cut ? "~" : "");
}

static void add_date(struct krait_buf *out, int64_t ns, const char *format)
{
    time_t t = (time_t)(ns / (int64_t)KRAIT_NS_PER_S);
    char text[64];
    struct tm tm;
    if (localtime_r(&t, &tm) && strftime(text, sizeof(text), format, &tm))
        krait_buf_fmt(out, "%s.%03u", text, (unsigned)(ns % (int64_t)KRAIT_NS_PER_S / 1000000));
}

static void print_time(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    if (!info->count.has_times)
        return;
    label(info, "duration");
    krait_buf_fmt(&info->out, "%s%s%s from the first event to the last\n", info->bold,
                  krait_fmt_ns(buf, duration(info)), info->plain);
    if (info->count.begin_ns > 0) {
        label(info, "when");
        add_date(&info->out, info->count.begin_ns, "%Y-%m-%d %H:%M:%S");
        krait_buf_str(&info->out, " to ");
        add_date(&info->out, info->count.end_ns, "%H:%M:%S");
        krait_buf_char(&info->out, '\n');
    }
}

static void add_plural(struct krait_buf *out, uint64_t n, const char *one, const char *many)
{
    char buf[KRAIT_FMT_SIZE];
    krait_buf_fmt(out, "%s %s", krait_fmt_count(buf, n), n == 1 ? one : many);
}

static void print_size(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    label(info, "events");
    krait_buf_fmt(&info->out, "%s%s%s in ", info->bold, krait_fmt_count(buf, info->count.events),
                  info->plain);
    add_plural(&info->out, info->reader->stream_count, "stream, ", "streams, ");
    add_plural(&info->out, info->count.packets, "packet\n", "packets\n");
    label(info, "size");
    krait_buf_str(&info->out, krait_fmt_bytes(buf, info->count.bytes));
    if (info->count.events)
        krait_buf_fmt(&info->out, ", %.1f bytes an event",
                      (double)info->count.bytes / (double)info->count.events);
    krait_buf_char(&info->out, '\n');
}

static void print_kernel(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    if (!info->kernel.streams)
        return;
    label(info, "kernel");
    krait_buf_fmt(&info->out, "%s in ", krait_fmt_counted(buf, info->kernel.events, "event"));
    add_plural(&info->out, info->kernel.streams, "stream\n", "streams\n");
}

/* "total (share), by CPU", where the host of a virtual machine took any. */
static void print_stolen(struct info *info)
{
    enum { CPUS = 4 };
    char ns[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    uint64_t stolen = krait_kernel_steals_sum(&info->steals), all = info->steals_ns * info->steals.count;
    uint32_t shown = 0, more = 0;
    if (!stolen)
        return;
    label(info, "stolen");
    krait_buf_fmt(&info->out, "%s (%s) by the host:", krait_fmt_ns(ns, stolen),
                  krait_fmt_share(share, stolen, all));
    for (uint32_t i = 0; i < info->steals.count; i++) {
        uint64_t of_cpu = info->steals.items[i].stolen_ns;
        more += of_cpu && shown == CPUS;
        if (of_cpu && shown < CPUS)
            krait_buf_fmt(&info->out, "%s CPU %u %s", shown++ ? "," : "", i, krait_fmt_ns(ns, of_cpu));
    }
    if (more)
        krait_buf_fmt(&info->out, ", %u more: --json", more);
    krait_buf_char(&info->out, '\n');
}

static void print_limit(struct info *info)
{
    char count[KRAIT_FMT_SIZE];
    const char *limit = limit_of(info);
    uint64_t dropped = most_of(info, "dropped_events");
    if (dropped) {
        label(info, "dropped");
        krait_buf_fmt(&info->out, "%s of the program's, the oldest: --keep newest\n",
                      krait_fmt_counted(count, dropped, "event"));
    }
    if (!*limit)
        return;
    label(info, "ended");
    krait_buf_str(&info->out, "by ");
    add_cut(info, limit, 40);
    krait_buf_str(&info->out, "; the program ran on without being recorded\n");
}

/* "2.0 MiB a thread; grew by 24.0 MiB, of 256.0 MiB allowed" */
static void print_rings(struct info *info)
{
    char ring[KRAIT_FMT_SIZE], grown[KRAIT_FMT_SIZE], buffer[KRAIT_FMT_SIZE];
    uint64_t bytes = most_of(info, "ring_size"), used = most_of(info, "buffer_used");
    if (!bytes)
        return;
    label(info, "rings");
    krait_buf_fmt(&info->out, "%s a thread; ", krait_fmt_bytes(ring, bytes));
    krait_fmt_bytes(buffer, most_of(info, "buffer_size"));
    if (used)
        krait_buf_fmt(&info->out, "grew by %s, of %s allowed\n", krait_fmt_bytes(grown, used), buffer);
    else
        krait_buf_fmt(&info->out, "did not grow, %s allowed\n", buffer);
}

/* "waited for 1.2 s in 340 waits by 3 threads", and below it "most in Thread-1 (work): 800 ms" */
static void print_gil(struct info *info)
{
    const struct gil_sum *gil = &info->gil;
    char buf[KRAIT_FMT_SIZE];
    if (!gil->waits)
        return;
    label(info, "GIL");
    krait_buf_fmt(&info->out, "waited for %s in ", krait_fmt_ns(buf, gil->ns));
    add_plural(&info->out, gil->waits, "wait", "waits");
    krait_buf_str(&info->out, " by ");
    add_plural(&info->out, gil->threads, "thread", "threads");
    const struct krait_thread *most = &info->trace->threads[gil->most];
    if (gil->threads > 1) {
        krait_buf_fmt(&info->out, "\n%*smost in ", INDENT, "");
        add_cut(info, *most->name ? most->name : "a thread without a name", 40);
        krait_buf_fmt(&info->out, ": %s", krait_fmt_ns(buf, gil->most_ns));
    }
    krait_buf_char(&info->out, '\n');
}

static bool is_kernel(const struct krait_ctf_trace *trace)
{
    return strcmp(krait_ctf_env_text(trace->metadata, "domain", ""), "kernel") == 0;
}

/* Of a recording with a kernel part, a process's. */
static const struct krait_ctf_metadata *first_metadata(const struct info *info)
{
    uint32_t i = 0;
    while (info->trace && i + 1 < info->reader->trace_count && is_kernel(info->reader->traces[i]))
        i++;
    return info->reader->traces[i]->metadata;
}

static void print_made_by(struct info *info)
{
    const struct krait_ctf_metadata *md = first_metadata(info);
    const char *tracer = krait_ctf_env_text(md, "tracer_name", ""),
               *host = krait_ctf_env_text(md, "hostname", "");
    label(info, "recorded");
    krait_buf_str(&info->out, *tracer ? "by " : md->is_ctf2 ? "in CTF 2" : "in CTF 1.8");
    add_cut(info, tracer, 40);
    const char *version = krait_ctf_env_text(md, "tracer_version", "");
    krait_buf_str(&info->out, *version ? " " : "");
    add_cut(info, version, 20);
    const struct krait_env_entry *major = krait_ctf_env(md, "tracer_major");
    if (!*version && major && !major->text)
        krait_buf_fmt(&info->out, " %lld.%lld", (long long)major->value,
                      (long long)krait_ctf_env_int(md, "tracer_minor", 0));
    krait_buf_str(&info->out, *host ? " on " : "");
    add_cut(info, host, 40);
    if (info->reader->trace_count > 1)
        krait_buf_fmt(&info->out, ", %u traces", info->reader->trace_count);
    krait_buf_char(&info->out, '\n');
}

static void print_clock(struct info *info)
{
    const struct krait_ctf_clock *clock = NULL;
    for (uint32_t i = 0; i < info->reader->stream_count && !clock; i++)
        clock = info->reader->streams[i]->cls->clock;
    label(info, "clock");
    if (!clock) {
        krait_buf_str(&info->out, "none: events have no times\n");
        return;
    }
    add_cut(info, clock->name, 40);
    if (clock->description[0]) {
        krait_buf_str(&info->out, ", ");
        add_cut(info, clock->description, 40);
    }
    bool giga = clock->freq >= KRAIT_NS_PER_S;
    krait_buf_fmt(&info->out, ", %.9g %s\n", (double)clock->freq / (giga ? 1e9 : 1e6), giga ? "GHz" : "MHz");
}

/* Words in lines that fit the terminal, each behind the labels. */
static void add_wrapped(struct info *info, const char *text)
{
    krait_buf_fmt(&info->out, "\n%*s", INDENT, "");
    krait_width_wrap(&info->out, text, INDENT, INDENT, info->columns);
}

static void print_losses(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    bool any = false;
    for (uint32_t i = 0; i < loss_count(info); i++) {
        struct loss loss = loss_at(info, i);
        if (!loss.count)
            continue;
        any = true;
        label(info, "lost");
        krait_buf_fmt(&info->out, "%s%s, %s%s", info->red, krait_fmt_count(buf, loss.count), loss.reason,
                      info->plain);
        add_wrapped(info, loss.advice);
        krait_buf_char(&info->out, '\n');
    }
    if (!any) {
        label(info, "lost");
        bool known = !info->trace || !krait_ending_unfinished(info->trace);
        krait_buf_str(&info->out, known ? "nothing\n" : "nothing that is known\n");
    }
}

/* All of them: elsewhere are the first few. */
static void print_omitted(struct info *info)
{
    uint32_t n = info->trace->omitted_count;
    if (krait_omitted_paused(info->trace)) {
        label(info, "paused");
        krait_buf_str(&info->out, "by --max-overhead");
        add_wrapped(info, krait_omitted_pause);
        krait_buf_char(&info->out, '\n');
    }
    if (!n)
        return;
    KRAIT_AUTO_BUF list = { 0 };
    char count[KRAIT_FMT_SIZE];
    krait_omitted_list(&list, info->trace, n);
    label(info, "dropped");
    krait_buf_fmt(&info->out, "%s, by --max-overhead", krait_fmt_counted(count, n, "function"));
    add_wrapped(info, list.data ? list.data : "");
    krait_buf_char(&info->out, '\n');
}

static void print_unfinished(struct info *info)
{
    uint32_t n = krait_ending_unfinished(info->trace);
    if (!n)
        return;
    label(info, "unfinished");
    krait_buf_fmt(&info->out, "%s%u of %u process%s%s", info->red, n, info->trace->process_count,
                  info->trace->process_count == 1 ? "" : "es", info->plain);
    add_wrapped(info, krait_ending_why);
    krait_buf_char(&info->out, '\n');
}

/* The command line without the folder of its program: what tells processes apart comes after it. */
static const char *short_command(const struct krait_process *process)
{
    return krait_fmt_command(process->command[0] ? process->command : process->name);
}

static void print_process(struct info *info, const struct krait_process *process, uint32_t threads)
{
    char buf[KRAIT_FMT_SIZE];
    krait_buf_fmt(&info->out, "  %7u  %7u  %9s  ", process->pid, threads,
                  krait_fmt_ns(buf, process->end_ns - process->begin_ns));
    krait_buf_fmt(&info->out, "%s%-10s%s  ", process->end[0] ? "" : info->red,
                  krait_ending_text(buf, process), process->end[0] ? "" : info->plain);
    size_t before = info->out.len;
    add_cut(info, process->runtime, 16);
    krait_buf_fmt(&info->out, "%*s  ", (int)(16 - KRAIT_MIN(info->out.len - before, (size_t)16)), "");
    add_cut(info, short_command(process), info->columns > 79 ? info->columns - 63 : 16);
    krait_buf_char(&info->out, '\n');
}

static void print_processes(struct info *info)
{
    const struct krait_trace *trace = info->trace;
    char line[64];
    uint32_t shown = info->all ? trace->process_count : KRAIT_MIN(trace->process_count, (uint32_t)LISTED);
    snprintf(line, sizeof(line), "%u process%s, %u thread%s", trace->process_count,
             trace->process_count == 1 ? "" : "es", trace->thread_count, trace->thread_count == 1 ? "" : "s");
    heading(info, line);
    krait_buf_fmt(&info->out, "  %s%7s  %7s  %9s  %-10s  %-16s  %s%s\n", info->dim, "pid", "threads",
                  "duration", "end", "runtime", "command", info->plain);
    for (uint32_t i = 0; i < shown; i++)
        print_process(info, &trace->processes[i], threads_of(trace, i));
    if (shown < trace->process_count)
        krait_buf_fmt(&info->out, "  %s%u more: --all%s\n", info->dim, trace->process_count - shown,
                      info->plain);
}

static void print_classes(struct info *info)
{
    const struct krait_ctf_count *count = &info->count;
    uint32_t shown = info->all ? count->class_count : KRAIT_MIN(count->class_count, (uint32_t)LISTED);
    char number[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    heading(info, "Event classes");
    krait_buf_fmt(&info->out, "  %s%13s  %6s  %s%s\n", info->dim, "events", "share", "name", info->plain);
    for (uint32_t i = 0; i < shown; i++) {
        krait_buf_fmt(&info->out, "  %13s  %6s  ", krait_fmt_count(number, count->classes[i].count),
                      krait_fmt_share(share, count->classes[i].count, count->events));
        add_cut(info, count->classes[i].name, info->columns > 50 ? info->columns - 27 : 30);
        krait_buf_char(&info->out, '\n');
    }
    if (shown < count->class_count)
        krait_buf_fmt(&info->out, "  %s%u more: --all%s\n", info->dim, count->class_count - shown,
                      info->plain);
}

static void print_text(struct info *info)
{
    print_made_by(info);
    print_time(info);
    print_size(info);
    print_kernel(info);
    print_stolen(info);
    print_gil(info);
    print_clock(info);
    print_rings(info);
    print_limit(info);
    print_losses(info);
    if (info->trace) {
        print_omitted(info);
        print_unfinished(info);
        print_processes(info);
    }
    if (info->count.class_count)
        print_classes(info);
}

/* -- gathering -- */

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
        if (!is_kernel(info->reader->traces[i]))
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
    if (!info->trace->has_kernel || krait_trace_kernel(info->trace, &events, &ignored) ||
        !krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_STEAL))
        return 0;
    return krait_kernel_steals_read(&info->steals, &info->steals_ns, events);
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
    struct gil_sum *gil = &info->gil;
    int rc = 0;
    for (uint32_t t = 0; !rc && t < info->trace->thread_count; t++) {
        rc = krait_gil_waits_read(&waits, info->trace, t, KRAIT_RANGE_ALL);
        uint64_t ns = 0;
        for (uint32_t i = 0; i < waits.count; i++) {
            ns += waits.items[i].end_ns - waits.items[i].begin_ns;
            gil->waits += waits.items[i].taken;
        }
        gil->ns += ns;
        gil->threads += waits.count > 0;
        if (ns > gil->most_ns) {
            gil->most = t;
            gil->most_ns = ns;
        }
    }
    krait_gil_waits_done(&waits);
    return rc;
}

static void look_at_terminal(struct info *info)
{
    uint32_t width = krait_terminal_look(stdout).width;
    info->columns = width ? width : 80;
    info->bold = krait_terminal_colour(stdout, KRAIT_BOLD);
    info->dim = krait_terminal_colour(stdout, KRAIT_DIM);
    info->red = krait_terminal_colour(stdout, KRAIT_RED);
    info->plain = krait_terminal_colour(stdout, KRAIT_PLAIN);
}

static int gather(struct info *info, const char *const *paths, size_t count, struct krait_err *err)
{
    int rc = krait_ctf_open(&info->reader, paths, count, NULL, err);
    if (!rc && krait_ctf_count(&info->count, info->reader))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && is_krait(info->reader))
        rc = krait_trace_open(&info->trace, paths, count, KRAIT_NEEDS_CALLS, err);
    if (!rc && info->trace)
        sum_kernel(info);
    if (!rc && info->trace && read_steals(info))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (!rc && info->trace && has_gil(&info->count) && sum_gil(info))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

static int show(struct info *info, const struct info_options *opts, struct krait_err *err)
{
    look_at_terminal(info);
    if (opts->json)
        print_json(info);
    else
        print_text(info);
    if (info->out.failed)
        return krait_err_set(err, -ENOMEM, "out of memory");
    if (fwrite(info->out.data, 1, info->out.len, stdout) != info->out.len || fflush(stdout))
        return krait_err_errno(err, "cannot write the output");
    *err = info->count.damage;
    return err->code;
}

static int run_info(void *values, int argc, char **argv)
{
    const struct info_options *opts = values;
    struct info info = { .all = opts->all };
    struct krait_err err = { 0 };
    if (argc == 0) {
        krait_err_set(&err, -EINVAL, "no trace given; name its folder, or several");
        krait_cmd_fail(&krait_cmd_info, &err);
        return 2;
    }
    int rc = gather(&info, (const char *const *)argv, (size_t)argc, &err);
    if (!rc)
        rc = show(&info, opts, &err);
    krait_buf_done(&info.out);
    krait_trace_close(info.trace);
    krait_ctf_count_done(&info.count);
    krait_kernel_steals_done(&info.steals);
    krait_ctf_close(info.reader);
    return rc ? krait_cmd_fail(&krait_cmd_info, &err) : 0;
}

const struct krait_cmd krait_cmd_info = {
    .name = "info",
    .operands = "TRACE...",
    .summary = "Describe a trace: its contents, losses and processes",
    .description =
        "Prints the duration of a trace from its first event to its last, the number of its events by class, "
        "its size, its clock, and what was lost and why. For krait's own recordings it also lists the "
        "processes and threads and how each process ended. Reads any trace in CTF 1.8 or CTF 2.\n\n"
        "A process is \"ended\" if it ended without telling krait its status. It is \"stopped\" if the "
        "recording ended before the process did. It is \"unfinished\" if nobody ended the recording: krait "
        "still records, or its collector was killed; up to a second of each thread's last events may then be "
        "missing.\n\n"
        "--json prints an object with the keys duration_ns, processes and threads (null if the trace does "
        "not tell), events, bytes, lost (count by reason), damage (the first one found, or null), "
        "event_classes (a list of name and count), streams, packets, and kernel (events, streams, lost and, by "
        "CPU, stolen_ns of a recording's kernel part, or null). For krait's own recordings it also has finished (false if a "
        "process's end is missing) and process_list: pid, name, command, runtime, threads, duration_ns, end "
        "(exit, signal, exec, gone, stop or null) and status (exit status, signal or null).",
    .examples = "krait info trace\n"
                "krait info --json trace | python3 -m json.tool\n",
    .opts = info_opts,
    .values_size = sizeof(struct info_options),
    .run = run_info,
};
