/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait info` for people.
 */
#include "analysis/cost.h"
#include "base/fmt.h"
#include "cmd/args_unmet.h"
#include "cmd/changed.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/info.h"
#include "cmd/omitted.h"
#include "view/width.h"

#include <string.h>
#include <time.h>

enum { INDENT = 13 }; /* what stands behind a label */

static void label(struct info *info, const char *name)
{
    krait_buf_fmt(&info->out, "  %s%-10s%s ", info->dim, name, info->plain);
}

/* Words in lines that fit the terminal, each behind the labels. */
static void add_wrapped(struct info *info, const char *text)
{
    krait_buf_fmt(&info->out, "\n%*s", INDENT, "");
    krait_width_wrap(&info->out, text, INDENT, INDENT, info->look.width);
}

/* A line of krait's words, which goes on below its first word where the terminal is too narrow. */
static void print_wrapped(struct info *info, const char *name, const char *text)
{
    label(info, name);
    krait_width_wrap(&info->out, text, INDENT, INDENT, info->look.width);
    krait_buf_char(&info->out, '\n');
}

/* Text from the trace, shortened to so many columns. */
static void add_text(struct info *info, const char *text, uint32_t columns)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, text);
    krait_width_shorten(&info->out, safe.data ? safe.data : "", columns, info->look.utf8);
}

static void add_date(struct krait_buf *out, int64_t ns, const char *format)
{
    time_t t = (time_t)(ns / (int64_t)KRAIT_NS_PER_S);
    char text[64];
    struct tm tm;
    if (localtime_r(&t, &tm) && strftime(text, sizeof(text), format, &tm))
        krait_buf_fmt(out, "%s.%03u", text, (unsigned)(ns % (int64_t)KRAIT_NS_PER_S / 1000000));
}

static void add_moment(struct info *info, uint64_t ns)
{
    char buf[KRAIT_FMT_SIZE];
    krait_buf_str(&info->out, krait_fmt_ns(buf, ns - KRAIT_MIN(info->zero_ns, ns)));
}

static void print_range(struct info *info)
{
    if (!info->is_part)
        return;
    label(info, "range");
    krait_buf_str(&info->out, "from ");
    add_moment(info, info->range.from_ns);
    if (info->range.to_ns != UINT64_MAX) {
        krait_buf_str(&info->out, " to ");
        add_moment(info, info->range.to_ns);
    }
    krait_buf_str(&info->out, " after the recording began\n");
}

static uint64_t kept_from(const struct info *info)
{
    return info->trace && !info->is_part ? krait_info_kept_from(info) : 0;
}

/* "the last 500.0 ms, from 5.544 s after the recording began" */
static void print_kept(struct info *info)
{
    char kept[KRAIT_FMT_SIZE], from[KRAIT_FMT_SIZE];
    uint64_t from_ns = kept_from(info);
    if (!from_ns)
        return;
    label(info, "kept");
    krait_buf_fmt(&info->out, "the last %s%s%s, from %s after the recording began\n", info->bold,
                  krait_fmt_ns(kept, krait_info_kept(info)), info->plain, krait_fmt_ns(from, from_ns));
}

static void print_time(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    if (!info->count.has_times)
        return;
    label(info, "duration");
    krait_buf_fmt(&info->out, "%s%s%s from %s to the last%s\n", info->bold,
                  krait_fmt_ns(buf, krait_info_duration(info)), info->plain,
                  kept_from(info) ? "the beginning of the recording" : "the first event",
                  kept_from(info) ? " event" : "");
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
    if (info->count.events && !info->is_part)
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
    if (!stolen || !all)
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

static void print_samples(struct info *info)
{
    char rate[KRAIT_FMT_SIZE], taken[KRAIT_FMT_SIZE], interval[KRAIT_FMT_SIZE], dropped[KRAIT_FMT_SIZE];
    const struct krait_trace_samples *samples = info->trace && !info->is_part ? &info->trace->samples : NULL;
    if (!samples || !samples->rate)
        return;
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_fmt(&text, "%s a second asked for, one every %s on average; ",
                  krait_fmt_count(rate, samples->rate), krait_fmt_ns(interval, samples->interval_ns));
    krait_buf_fmt(&text, "%s of threads, %s could not be proved and dropped",
                  krait_fmt_counted(taken, samples->taken, "sample"),
                  samples->dropped ? krait_fmt_count(dropped, samples->dropped) : "none");
    print_wrapped(info, "sampled", text.failed ? "" : text.data);
}

static void print_cost(struct info *info)
{
    if (!info->trace || !krait_cost_is_known(info->trace))
        return;
    KRAIT_AUTO_BUF text = { 0 };
    krait_buf_str(&text, "recording took ");
    krait_cost_words(&text, info->trace);
    print_wrapped(info, "cost", text.failed ? "" : text.data);
}

static void print_limit(struct info *info)
{
    char count[KRAIT_FMT_SIZE];
    const char *limit = krait_info_limit_of(info);
    uint64_t dropped = krait_info_most_of(info, "dropped_events");
    if (dropped) {
        const char *option = krait_info_dropped_for(info);
        label(info, "dropped");
        krait_buf_fmt(&info->out, "%s of the program's, the oldest: %s\n",
                      krait_fmt_counted(count, dropped, "event"),
                      *option ? option : "--last or --keep newest");
    }
    if (!*limit)
        return;
    label(info, "ended");
    krait_buf_str(&info->out, "by ");
    add_text(info, limit, 40);
    krait_buf_str(&info->out, "; the program ran on without being recorded\n");
}

/* "2.0 MiB a thread; grew by 24.0 MiB, of 256.0 MiB allowed" */
static void print_rings(struct info *info)
{
    char ring[KRAIT_FMT_SIZE], grown[KRAIT_FMT_SIZE], buffer[KRAIT_FMT_SIZE];
    char text[3 * KRAIT_FMT_SIZE + 40];
    uint64_t bytes = krait_info_most_of(info, "ring_size"), used = krait_info_most_of(info, "buffer_used");
    if (!bytes)
        return;
    krait_fmt_bytes(buffer, krait_info_most_of(info, "buffer_size"));
    if (used)
        snprintf(text, sizeof(text), "%s a thread; grew by %s, of %s allowed", krait_fmt_bytes(ring, bytes),
                 krait_fmt_bytes(grown, used), buffer);
    else
        snprintf(text, sizeof(text), "%s a thread; did not grow, %s allowed", krait_fmt_bytes(ring, bytes),
                 buffer);
    print_wrapped(info, "rings", text);
}

/* "held by another thread 1.1 s, free 100 ms, not known 20 us" */
static void print_gil_split(struct info *info)
{
    static const struct {
        const char *words;
        enum krait_gil_state state;
    } parts[] = { { "held by another thread", KRAIT_GIL_HELD },
                  { "free", KRAIT_GIL_FREE },
                  { "not known", KRAIT_GIL_UNKNOWN } };
    char buf[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF text = { 0 };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(parts); i++) {
        uint64_t ns = info->gil.split.ns[parts[i].state];
        if (ns)
            krait_buf_fmt(&text, "%s%s %s", text.len ? ", " : "", parts[i].words, krait_fmt_ns(buf, ns));
    }
    add_wrapped(info, text.data && !text.failed ? text.data : "");
}

/* "waited for 1.2 s in 340 waits by 3 threads", below it the split, and "most in Thread-1 (work): 800 ms" */
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
    print_gil_split(info);
    const struct krait_thread *most = &info->trace->threads[gil->most];
    if (gil->threads > 1) {
        krait_buf_fmt(&info->out, "\n%*smost in ", INDENT, "");
        add_text(info, *most->name ? most->name : "a thread without a name", 40);
        krait_buf_fmt(&info->out, ": %s", krait_fmt_ns(buf, gil->most_ns));
    }
    krait_buf_char(&info->out, '\n');
}

static uint64_t count_of(const struct info *info, const char *class_name)
{
    uint32_t i = 0;
    while (i < info->count.class_count && strcmp(info->count.classes[i].name, class_name) != 0)
        i++;
    return i < info->count.class_count ? info->count.classes[i].count : 0;
}

/* "32 pieces for executors: 32 started, 31 done, 30 results read" */
static void print_work(struct info *info)
{
    char n[4][KRAIT_FMT_SIZE], text[4 * KRAIT_FMT_SIZE + 80];
    static const char *const names[] = { "work:submit", "work:start", "work:done", "work:result" };
    uint64_t all = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        all += count_of(info, names[i]);
        krait_fmt_count(n[i], count_of(info, names[i]));
    }
    if (!all)
        return;
    snprintf(text, sizeof(text), "%s %s for executors: %s started, %s done, %s results read", n[0],
             count_of(info, names[0]) == 1 ? "piece" : "pieces", n[1], n[2], n[3]);
    print_wrapped(info, "work", text);
}

/* Of a recording with a kernel part, a process's. */
static const struct krait_ctf_metadata *first_metadata(const struct info *info)
{
    uint32_t i = 0;
    while (info->trace && i + 1 < info->reader->trace_count && krait_info_is_kernel(info->reader->traces[i]))
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
    add_text(info, tracer, 40);
    const char *version = krait_ctf_env_text(md, "tracer_version", "");
    krait_buf_str(&info->out, *version ? " " : "");
    add_text(info, version, 20);
    const struct krait_env_entry *major = krait_ctf_env(md, "tracer_major");
    if (!*version && major && !major->text)
        krait_buf_fmt(&info->out, " %lld.%lld", (long long)major->value,
                      (long long)krait_ctf_env_int(md, "tracer_minor", 0));
    krait_buf_str(&info->out, *host ? " on " : "");
    add_text(info, host, 40);
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
    add_text(info, clock->name, 40);
    if (clock->description[0]) {
        krait_buf_str(&info->out, ", ");
        add_text(info, clock->description, 40);
    }
    bool giga = clock->freq >= KRAIT_NS_PER_S;
    krait_buf_fmt(&info->out, ", %.9g %s\n", (double)clock->freq / (giga ? 1e9 : 1e6), giga ? "GHz" : "MHz");
}

static void print_losses(struct info *info)
{
    char buf[KRAIT_FMT_SIZE];
    bool any = false;
    for (uint32_t i = 0; i < krait_info_loss_count(info); i++) {
        struct loss loss = krait_info_loss_at(info, i);
        if (!loss.count)
            continue;
        any = true;
        label(info, "lost");
        krait_buf_fmt(&info->out, "%s%s, %s%s%s", info->red, krait_fmt_count(buf, loss.count), loss.reason,
                      loss.is_anywhere ? ", in the whole recording" : "", info->plain);
        add_wrapped(info, loss.advice);
        krait_buf_char(&info->out, '\n');
    }
    if (!any) {
        label(info, "lost");
        bool known = !info->trace || !krait_ending_unfinished(info->trace);
        krait_buf_str(&info->out, known ? "nothing\n" : "nothing that is known\n");
    }
}

static void print_off(struct info *info)
{
    KRAIT_AUTO_BUF off = { 0 };
    if (!krait_ending_off(&off, info->trace, info->range))
        return;
    label(info, "off");
    krait_buf_str(&info->out, off.data);
    add_wrapped(info, krait_ending_off_why);
    krait_buf_char(&info->out, '\n');
}

/* All of them: elsewhere are the first few. */
static void print_changed(struct info *info)
{
    KRAIT_AUTO_BUF change = { 0 };
    char times[KRAIT_FMT_SIZE];
    uint32_t n = krait_changed_count(info->trace, info->range);
    if (!n)
        return;
    label(info, "changed");
    krait_buf_fmt(&info->out, "what is recorded, %s, by krait ctl set", krait_fmt_counted(times, n, "time"));
    uint32_t i = krait_changed_next(info->trace, info->range, 0);
    while (i < info->trace->set_count) {
        krait_buf_clear(&change);
        i = krait_changed_next(info->trace, info->range, krait_changed_add(&change, info->trace, i));
        add_wrapped(info, change.data ? change.data : "");
    }
    add_wrapped(info, krait_changed_why);
    krait_buf_char(&info->out, '\n');
}

/* The same. */
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

static void print_args_unmet(struct info *info)
{
    KRAIT_AUTO_FREE char *copy = strdup(krait_info_args_of(info));
    char *save = NULL;
    for (char *text = copy ? strtok_r(copy, "\n", &save) : NULL; text; text = strtok_r(NULL, "\n", &save)) {
        KRAIT_AUTO_BUF said = { 0 };
        KRAIT_AUTO_BUF safe = { 0 };
        if (!krait_args_unmet(&said, info->trace, text))
            continue;
        krait_fmt_safe(&safe, said.data ? said.data : "");
        print_wrapped(info, "--args", safe.data ? safe.data : "");
    }
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

static void print_newer(struct info *info)
{
    if (!*info->trace->newer_format)
        return;
    label(info, "newer");
    krait_buf_fmt(&info->out, "%sformat %s%s", info->red, info->trace->newer_format, info->plain);
    add_wrapped(info, krait_ending_newer_why);
    krait_buf_char(&info->out, '\n');
}

void krait_info_text(struct info *info)
{
    print_made_by(info);
    print_range(info);
    print_time(info);
    print_kept(info);
    print_size(info);
    print_kernel(info);
    print_stolen(info);
    print_gil(info);
    print_work(info);
    print_clock(info);
    print_samples(info);
    print_cost(info);
    print_rings(info);
    print_limit(info);
    print_losses(info);
    if (info->trace) {
        print_off(info);
        print_changed(info);
        print_omitted(info);
        print_args_unmet(info);
        print_unfinished(info);
        print_newer(info);
        krait_info_processes(info);
    }
    krait_info_declared(info);
    if (info->count.class_count)
        krait_info_classes(info);
}
