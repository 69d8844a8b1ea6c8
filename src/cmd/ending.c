/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/ending.h"

#include "event/event.h"
#include "record/collector.h"

#include <signal.h>
#include <string.h>

_Static_assert(KRAIT_COLLECTOR_OPEN_NS == KRAIT_NS_PER_S, "the text says a second");
const char krait_ending_why[] = "the recording still runs, or its collector was killed; of each thread up to "
                                "the last second may be missing";

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

void krait_ending_warn(const char *verb, const struct krait_trace *trace, const char *damage)
{
    char count[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF safe = { 0 };
    uint32_t n = krait_ending_unfinished(trace);
    krait_fmt_safe(&safe, damage);
    if (safe.len)
        fprintf(stderr, "krait %s: warning: %s\n", verb, safe.data);
    for (uint32_t i = 0; i < trace->lost_count; i++)
        fprintf(stderr, "krait %s: warning: lost: %s (%s): %s\n", verb,
                krait_fmt_counted(count, trace->lost[i].count, "event"), trace->lost[i].reason,
                trace->lost[i].advice);
    if (n)
        fprintf(stderr, "krait %s: warning: unfinished: %u of %u processes: %s\n", verb, n,
                trace->process_count, krait_ending_why);
}
