/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --within`: the threads in which the interval begins and ends come before those that ran, or waited, meanwhile.
 */
#include "base/fmt.h"
#include "cmd/report.h"

bool krait_report_home_takes(void *ctx, const struct krait_trace *trace, uint32_t thread)
{
    const struct report_home *home = ctx;
    return (!home->select->homes || home->select->homes[thread] == home->home) &&
           krait_select_thread((void *)home->select, trace, thread);
}

bool krait_report_has_homes(const struct report *report)
{
    return report->options->select.homes && !report->options->sort;
}

/* The threads of a group that are shown and ran in the range: how many, and the last of them. */
static uint32_t count_threads(const struct report *report, enum krait_home home, uint32_t *last)
{
    struct report_home of = { &report->options->select, home };
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->trace->thread_count; i++) {
        const struct krait_thread *thread = &report->trace->threads[i];
        bool ran = thread->end_ns >= report->range.from_ns && thread->begin_ns <= report->range.to_ns;
        if (!ran || !krait_report_home_takes(&of, report->trace, i))
            continue;
        *last = i;
        count++;
    }
    return count;
}

void krait_report_home_label(struct krait_buf *text, const struct report *report, enum krait_home home)
{
    uint32_t last = 0, count = count_threads(report, home, &last), other;
    bool all = report->options->select.parts.count; /* of several intervals */
    bool is_whole = !count_threads(report, KRAIT_HOME_BEGIN, &other);
    char counted[KRAIT_FMT_SIZE];
    if (count == 1 && home != KRAIT_HOME_NONE) {
        krait_fmt_safe(text, report->trace->threads[last].name);
        krait_buf_fmt(text, " %u", report->trace->threads[last].tid);
    } else {
        krait_buf_str(text,
                      krait_fmt_counted(counted, count, home == KRAIT_HOME_NONE ? "other thread" : "thread"));
    }
    krait_buf_str(text, home == KRAIT_HOME_NONE    ? ", meanwhile"
                        : home == KRAIT_HOME_BEGIN ? ", in which the interval begins"
                        : all                      ? ", in which the intervals begin and end"
                        : is_whole                 ? ", in which the interval begins and ends"
                                                   : ", in which the interval ends");
}

const char *krait_report_home_word(enum krait_home home)
{
    static const char *const words[] = { "end", "begin", "other" };
    return words[home];
}

void krait_report_note_homes(struct report *report, bool may_sort)
{
    bool all = report->options->select.parts.count;
    krait_buf_fmt(&report->notes, "%s first%s\n",
                  all ? "threads in which the intervals begin and end come"
                      : "the thread in which the interval ends comes",
                  may_sort ? "; --sort self orders by the time of all threads" : "");
}
