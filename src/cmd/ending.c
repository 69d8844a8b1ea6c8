/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ending.h"

#include "base/json.h"
#include "cmd/changed.h"
#include "cmd/omitted.h"
#include "cmd/terminal.h"
#include "event/event.h"
#include "record/collector.h"
#include "trace/gaps.h"

#include <signal.h>
#include <string.h>

_Static_assert(KRAIT_COLLECTOR_OPEN_NS == KRAIT_NS_PER_S, "the text says a second");
const char krait_ending_why[] =
    "the recording still runs, or its collector was killed; up to the last second of each thread may be "
    "missing";

static void signal_text(char *buf, int signal)
{
    const char *name = NULL;
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 32)
    name = sigabbrev_np(signal);
#endif
#endif
    if (name)
        snprintf(buf, KRAIT_FMT_SIZE, "SIG%s", name);
    else
        snprintf(buf, KRAIT_FMT_SIZE, "signal %d", signal);
}

/* The rest of process_end's labels, and that there is none. */
static const char *plain_text(const char *end)
{
    static const char *const texts[][2] = {
        { "", "unfinished" }, { "exec", "exec" }, { "gone", "ended" }, { "stop", "stopped" }
    };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        if (strcmp(end, texts[i][0]) == 0)
            return texts[i][1];
    }
    return "?";
}

const char *krait_ending_text(char buf[KRAIT_FMT_SIZE], const struct krait_process *process)
{
    if (strcmp(process->end, "signal") == 0)
        signal_text(buf, process->end_status);
    else if (strcmp(process->end, "exit") == 0)
        snprintf(buf, KRAIT_FMT_SIZE, "exit %d", process->end_status);
    else
        snprintf(buf, KRAIT_FMT_SIZE, "%s", plain_text(process->end));
    return buf;
}

uint32_t krait_ending_unfinished(const struct krait_trace *trace)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < trace->process_count; i++)
        n += !trace->processes[i].end[0];
    return n;
}

static void note_lost(struct krait_buf *notes, const struct krait_trace *trace, const char *whose)
{
    char count[KRAIT_FMT_SIZE];
    for (uint32_t i = 0; i < trace->lost_count; i++) {
        const struct krait_trace_lost *lost = &trace->lost[i];
        if (!lost->of_kernel)
            krait_buf_fmt(notes, "lost: %s%s (%s): %s\n", whose,
                          krait_fmt_counted(count, lost->count, "event"), lost->reason, lost->advice);
    }
}

const char krait_ending_off_why[] =
    "a call that was open when it was switched off ends there; what was still open when it "
    "was switched on begins anew there, as a run";

bool krait_ending_off(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range)
{
    char ns[KRAIT_FMT_SIZE], of_ns[KRAIT_FMT_SIZE], times[KRAIT_FMT_SIZE];
    struct krait_recorded recorded;
    if (krait_trace_recorded(trace, range, &recorded) || !recorded.gaps)
        return false;
    krait_buf_fmt(out, "recorded %s of %s, switched off %s", krait_fmt_ns(ns, recorded.ns),
                  krait_fmt_ns(of_ns, recorded.of_ns), krait_fmt_counted(times, recorded.gaps, "time"));
    return true;
}

void krait_ending_off_json(struct krait_buf *out, const struct krait_trace *trace, struct krait_range range)
{
    struct krait_recorded recorded;
    if (krait_trace_recorded(trace, range, &recorded) || !recorded.gaps)
        return;
    krait_json_key_u64(out, "recorded_ns", recorded.ns);
    krait_json_key_u64(out, "recorded_of_ns", recorded.of_ns);
    krait_json_key_u64(out, "switched_off", recorded.gaps);
}

static void note_off(struct krait_buf *notes, const struct krait_trace *trace, struct krait_range range,
                     const char *whose)
{
    KRAIT_AUTO_BUF off = { 0 };
    if (krait_ending_off(&off, trace, range))
        krait_buf_fmt(notes, "off: %s%s: %s\n", whose, off.data, krait_ending_off_why);
}

static void note_changed(struct krait_buf *notes, const struct krait_trace *trace, struct krait_range range,
                         const char *whose)
{
    enum { SHOWN = 3 };
    KRAIT_AUTO_BUF list = { 0 };
    uint32_t n = krait_changed_list(&list, trace, range, SHOWN);
    krait_buf_char(&list, '\0');
    if (n && !list.failed)
        krait_buf_fmt(notes, "krait ctl set: %schanged what is recorded: %s; %s%s\n", whose, list.data,
                      krait_changed_why, n > SHOWN ? "; krait info lists all" : "");
}

/* The functions that were dropped, those with the most calls first. */
static void note_omitted(struct krait_buf *notes, const struct krait_trace *trace, const char *whose)
{
    enum { SHOWN = 5 };
    char count[KRAIT_FMT_SIZE];
    uint32_t n = trace->omitted_count;
    if (krait_omitted_paused(trace))
        krait_buf_fmt(notes, "--max-overhead: %s%s\n", whose, krait_omitted_pause);
    if (!n)
        return;
    const char *their = n == 1 ? "its" : "their";
    krait_buf_fmt(notes,
                  "dropped by --max-overhead: %s%s; %s time is in the self time of %s callers, "
                  "marked" KRAIT_HOLDS_DROPPED ": ",
                  whose, krait_fmt_counted(count, n, "function"), their, their);
    krait_omitted_list(notes, trace, SHOWN);
    krait_buf_str(notes, n > SHOWN ? "; krait info lists all\n" : "\n");
}

static void note_unfinished(struct krait_buf *notes, const struct krait_trace *trace, const char *whose)
{
    uint32_t n = krait_ending_unfinished(trace);
    if (n)
        krait_buf_fmt(notes, "unfinished: %s%u of %u processes: %s\n", whose, n, trace->process_count,
                      krait_ending_why);
}

const char krait_ending_newer_why[] =
    "written by a newer krait, which reads all of it; here a packet ends at an event that this krait does not know";

static void note_newer(struct krait_buf *notes, const struct krait_trace *trace, const char *whose)
{
    if (*trace->newer_format)
        krait_buf_fmt(notes, "newer: %sformat %s: %s\n", whose, trace->newer_format, krait_ending_newer_why);
}

void krait_ending_notes(struct krait_buf *notes, const struct krait_trace *trace, struct krait_range range,
                        const char *damage, const char *whose)
{
    krait_ending_notes_without_kernel(notes, trace, range, damage, whose);
    krait_ending_note_kernel_lost(notes, trace, krait_trace_kernel_lost(trace),
                                  "the changes of state that they told are missing");
}

void krait_ending_notes_without_kernel(struct krait_buf *notes, const struct krait_trace *trace,
                                       struct krait_range range, const char *damage, const char *whose)
{
    note_newer(notes, trace, whose);
    note_lost(notes, trace, whose);
    note_off(notes, trace, range, whose);
    note_changed(notes, trace, range, whose);
    note_omitted(notes, trace, whose);
    note_unfinished(notes, trace, whose);
    krait_ending_note_damage(notes, damage, whose);
}

void krait_ending_note_damage(struct krait_buf *notes, const char *damage, const char *whose)
{
    if (!*damage)
        return;
    krait_buf_fmt(notes, "damaged: %s", whose);
    krait_fmt_safe(notes, damage);
    krait_buf_str(notes, "; krait read what is whole\n");
}

/* Why kernel events were lost, and how to keep them; NULL: it is not known. */
static const char *advice_of_kernel(const struct krait_trace *trace)
{
    for (uint32_t i = 0; i < trace->lost_count; i++) {
        if (trace->lost[i].of_kernel && *trace->lost[i].advice)
            return trace->lost[i].advice;
    }
    return NULL;
}

void krait_ending_note_kernel_lost(struct krait_buf *notes, const struct krait_trace *trace, uint64_t lost,
                                   const char *effect)
{
    char count[KRAIT_FMT_SIZE];
    const char *advice = advice_of_kernel(trace);
    if (lost)
        krait_buf_fmt(notes, "lost: %s of the kernel's: %s%s%s\n", krait_fmt_counted(count, lost, "event"),
                      effect, advice ? "; " : "", advice ? advice : "");
}

void krait_ending_warn_kernel(const char *verb, const char *damage)
{
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, damage);
    if (safe.len)
        fprintf(stderr, "krait %s: warning: the kernel's part: %s\n", verb, safe.data);
}

void krait_ending_warn(const char *verb, const struct krait_trace *trace, struct krait_range range,
                       const char *damage, const char *whose)
{
    KRAIT_AUTO_BUF notes = { 0 };
    krait_ending_notes(&notes, trace, range, damage, whose);
    for (char *note = notes.data, *next; note && *note; note = next) {
        next = strchrnul(note, '\n');
        if (*next)
            *next++ = '\0';
        int at = fprintf(stderr, "krait %s: warning: ", verb);
        krait_terminal_wrap(stderr, NULL, (uint32_t)at, 2, note);
    }
}

void krait_ending_whose(struct krait_buf *out, const char *path)
{
    krait_fmt_safe(out, path);
    krait_buf_str(out, ": ");
}
