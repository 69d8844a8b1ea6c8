/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fmt.h"
#include "trace/kernel/kernel_states.h"
#include "view/classes.h"
#include "view/flame_text.h"
#include "view/page_tables.h"

#include <math.h>
#include <string.h>

static void text(struct krait_buf *to, const char *s)
{
    krait_text_xml_raw(to, s);
}

static void name_cell(struct krait_buf *to, const char *name, const char *number)
{
    krait_buf_str(to, "<td class=\"name\">");
    text(to, name);
    krait_buf_fmt(to, "%s%s</td>", *name && *number ? " " : "", number);
}

/* A title, and a heading for each column: "<name" is aligned left. */
static void begin_table(struct krait_buf *to, const char *title, const char *const *heads, size_t count)
{
    krait_buf_fmt(to, "<h2>%s</h2>\n<div class=\"wide\"><table><thead><tr>", title);
    for (size_t i = 0; i < count; i++) {
        bool is_left = *heads[i] == '<';
        krait_buf_fmt(to, "<th%s>%s</th>", is_left ? " class=\"name\"" : "", heads[i] + is_left);
    }
    krait_buf_str(to, "</tr></thead><tbody>\n");
}

static void end_table(struct krait_buf *to)
{
    krait_buf_str(to, "</tbody></table></div>\n");
}

static const struct krait_track *track_of(const struct krait_page *page, uint32_t track)
{
    return &page->trace->tracks[track];
}

static void thread_cell(struct krait_buf *to, const struct krait_page *page, uint32_t thread)
{
    char number[16] = "";
    if (thread == KRAIT_NO_ID) {
        name_cell(to, "not known", "");
        return;
    }
    if (thread == KRAIT_GIL_NOBODY) {
        name_cell(to, "nobody: free", "");
        return;
    }
    snprintf(number, sizeof(number), "%u", page->trace->threads[thread].tid);
    name_cell(to, page->trace->threads[thread].name, number);
}

/* "worker-1 4711", "CPU 0" */
static void track_cell(struct krait_buf *to, const struct krait_page *page, uint32_t id)
{
    const struct krait_track *track = track_of(page, id);
    char number[16] = "";
    if (track->of == KRAIT_OF_THREAD && track->thread != KRAIT_NO_ID &&
        *page->trace->threads[track->thread].name) {
        thread_cell(to, page, track->thread);
        return;
    }
    if (track->of < KRAIT_OF_GROUP)
        snprintf(number, sizeof(number), "%u", track->of == KRAIT_OF_PROCESS ? track->pid : track->number);
    name_cell(to,
              track->of == KRAIT_OF_CPU       ? "CPU"
              : track->of == KRAIT_OF_GROUP   ? track->name
              : track->of == KRAIT_OF_PROCESS ? track->process_name
                                              : track->thread_name,
              number);
}

/* ---- states of threads: a row each ---- */

/* Single waits for the GIL have a table of their own; what samples tell is in the tables of functions and threads. */
static bool is_thread_state(const struct krait_page *page, const struct krait_name_sum *sum)
{
    const struct krait_track *track = track_of(page, sum->track);
    return track->of == KRAIT_OF_THREAD && !krait_gil_is_waits(track) &&
           !(track->flags & KRAIT_TRACK_SAMPLED);
}

/* The kernel's states, and waits for the GIL (analysis/gil_states.h). */
enum { GIL = KRAIT_TS_COUNT, STATES };

static const struct {
    const char *name, *title;
} thread_states[STATES] = {
#define X(name, text, title, drop) [KRAIT_TS_##name] = { text, title },
    KRAIT_THREAD_STATES(X)
#undef X
        [GIL] = { KRAIT_TRACK_GIL, "gil" },
};

/* In the order of krait report: the GIL comes before what blocks else. */
static unsigned in_order(unsigned i)
{
    return i < KRAIT_TS_DISK ? i : i == KRAIT_TS_DISK ? GIL : i - 1;
}

static unsigned state_of(const struct krait_page *page, const struct krait_name_sum *sum)
{
    const char *name = krait_track_text(page->trace, sum->name);
    for (unsigned i = 0; i < STATES; i++) {
        if (strcmp(thread_states[i].name, name) == 0)
            return i;
    }
    return KRAIT_TS_UNKNOWN;
}

struct thread_row {
    uint32_t track;
    uint64_t ns[STATES], cpu_ns;
};

struct thread_rows {
    struct thread_row *items;
    uint32_t count;
    unsigned seen; /* bits by state */
};

static int by_cpu(const void *a, const void *b)
{
    const struct thread_row *x = a, *y = b;
    return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

static int find_threads(struct thread_rows *rows, const struct krait_page *page)
{
    const struct krait_name_sums *states = &page->sums->states;
    KRAIT_AUTO_FREE uint32_t *row_of = calloc((size_t)page->trace->track_count + 1, sizeof(*row_of));
    rows->items = calloc((size_t)states->count + 1, sizeof(*rows->items));
    if (!row_of || !rows->items)
        return -ENOMEM;
    for (uint32_t i = 0; i < states->count; i++) {
        const struct krait_name_sum *sum = &states->items[i];
        unsigned state = state_of(page, sum);
        if (!is_thread_state(page, sum) || state == KRAIT_TS_GONE)
            continue;
        if (!row_of[sum->track]) {
            rows->items[rows->count].track = sum->track;
            row_of[sum->track] = ++rows->count;
        }
        struct thread_row *row = &rows->items[row_of[sum->track] - 1];
        row->ns[state] += sum->ns;
        row->cpu_ns += state == KRAIT_TS_USER || state == KRAIT_TS_SYSTEM ? sum->ns : 0;
        rows->seen |= 1u << state;
    }
    qsort(rows->items, rows->count, sizeof(*rows->items), by_cpu);
    return 0;
}

static void split(struct krait_buf *to, const struct thread_row *row)
{
    char time[KRAIT_FMT_SIZE];
    uint64_t whole = 0;
    for (unsigned i = 0; i < STATES; i++)
        whole += row->ns[i];
    krait_buf_str(to, "<td class=\"bar\"><div class=\"split\">");
    for (unsigned k = 0; k < STATES; k++) {
        unsigned i = in_order(k);
        if (row->ns[i])
            krait_buf_fmt(to, "<i class=\"w %s\" style=\"flex:%.6f\" title=\"%s %s\"></i>",
                          krait_looks[krait_classes[krait_class_of(thread_states[i].name)].look].class,
                          (double)row->ns[i] / (double)whole, thread_states[i].title,
                          krait_fmt_ns(time, row->ns[i]));
    }
    krait_buf_str(to, "</div></td>");
}

static void thread_states_table(struct krait_buf *to, const struct krait_page *page)
{
    const char *heads[STATES + 3] = { "on CPU" };
    size_t n = 1;
    struct thread_rows rows = { 0 };
    if (find_threads(&rows, page))
        to->failed = true;
    for (unsigned i = 0; i < STATES; i++) {
        if (rows.seen >> in_order(i) & 1)
            heads[n++] = thread_states[in_order(i)].title;
    }
    heads[n++] = "<what it did";
    heads[n++] = "<thread";
    if (rows.count)
        begin_table(to, "States of threads", heads, n);
    for (uint32_t i = 0; i < KRAIT_MIN(rows.count, page->thread_rows); i++) {
        const struct thread_row *row = &rows.items[i];
        krait_buf_str(to, "<tr>");
        krait_page_sum_cell(to, row->cpu_ns);
        for (unsigned k = 0; k < STATES; k++) {
            if (rows.seen >> in_order(k) & 1)
                krait_page_sum_cell(to, row->ns[in_order(k)]);
        }
        split(to, row);
        track_cell(to, page, row->track);
        krait_buf_str(to, "</tr>\n");
    }
    if (rows.count)
        end_table(to);
    free(rows.items);
}

/* ---- who had the CPUs ---- */

static void cpu_table(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = { "time", "share", "times", "longest", "<thread", "<CPU" };
    const struct krait_name_sums *states = &page->sums->states;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < states->count && shown < page->thread_rows; i++) {
        const struct krait_name_sum *sum = &states->items[i];
        if (track_of(page, sum->track)->of != KRAIT_OF_CPU)
            continue;
        if (!shown++)
            begin_table(to, "CPUs", heads, KRAIT_ARRAY_LEN(heads));
        krait_buf_str(to, "<tr>");
        krait_page_time_cell(to, sum->ns);
        krait_page_share_cell(to, sum->ns, states->range.to_ns - states->range.from_ns);
        krait_page_count_cell(to, sum->count);
        krait_page_time_cell(to, sum->longest_ns);
        name_cell(to, krait_track_text(page->trace, sum->name), "");
        track_cell(to, page, sum->track);
        krait_buf_str(to, "</tr>\n");
    }
    if (shown)
        end_table(to);
}

/* ---- system calls ---- */

static void syscall_table(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = { "time", "calls", "errors",  "mean",        "min",
                                         "p50",  "p99",   "longest", "<system call" };
    const struct krait_name_sums *calls = &page->sums->syscalls;
    if (!calls->count)
        return;
    begin_table(to, "System calls", heads, KRAIT_ARRAY_LEN(heads));
    for (uint32_t i = 0; i < KRAIT_MIN(calls->count, page->thread_rows); i++) {
        const struct krait_name_sum *sum = &calls->items[i];
        krait_buf_str(to, "<tr>");
        krait_page_time_cell(to, sum->ns);
        krait_page_count_cell(to, sum->count);
        krait_page_count_cell(to, sum->errors);
        krait_page_time_cell(to, sum->ns / sum->count);
        krait_page_time_cell(to, sum->shortest_ns);
        krait_page_time_cell(to, krait_name_sum_quantile(sum, 0.5));
        krait_page_time_cell(to, krait_name_sum_quantile(sum, 0.99));
        krait_page_time_cell(to, sum->longest_ns);
        name_cell(to, krait_track_text(page->trace, sum->name), "");
        krait_buf_str(to, "</tr>\n");
    }
    end_table(to);
}

/* ---- waits for the GIL ---- */

static void gil_table(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = { "waited",  "share",           "waits",
                                         "longest", "<waiting thread", "<had the GIL" };
    const struct krait_gil_pairs *gil = &page->sums->gil;
    uint64_t whole = 0;
    if (!gil->count)
        return;
    for (uint32_t i = 0; i < gil->count; i++)
        whole += gil->items[i].ns;
    begin_table(to, "Waits for the GIL", heads, KRAIT_ARRAY_LEN(heads));
    for (uint32_t i = 0; i < KRAIT_MIN(gil->count, page->thread_rows); i++) {
        const struct krait_gil_pair *pair = &gil->items[i];
        krait_buf_str(to, "<tr>");
        krait_page_time_cell(to, pair->ns);
        krait_page_share_cell(to, pair->ns, whole);
        krait_page_count_cell(to, pair->count);
        krait_page_time_cell(to, pair->longest_ns);
        thread_cell(to, page, pair->waiter);
        thread_cell(to, page, pair->holder);
        krait_buf_str(to, "</tr>\n");
    }
    end_table(to);
}

/* ---- counters ---- */

static void value_cell(struct krait_buf *to, double value, const char *unit)
{
    char count[KRAIT_FMT_SIZE];
    if (fabs(value) >= 1000 && fabs(value) < 1e18)
        krait_buf_fmt(to, "<td>%s%s", value < 0 ? "-" : "",
                      krait_fmt_count(count, (uint64_t)fabs(round(value))));
    else
        krait_buf_fmt(to, "<td>%.6g", value);
    krait_buf_str(to, *unit ? " " : "");
    text(to, unit);
    krait_buf_str(to, "</td>");
}

static void counter_table(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = { "mean", "least",   "greatest", "first",
                                         "last", "changes", "<counter", "<of" };
    uint32_t shown = 0;
    for (uint32_t i = 0; i < page->trace->track_count && shown < page->thread_rows; i++) {
        const struct krait_counter_sum *sum = &page->sums->counters[i];
        const double values[] = { krait_counter_mean(sum), sum->min, sum->max, sum->first, sum->last };
        const char *unit = track_of(page, i)->unit;
        if (!sum->has)
            continue;
        if (!shown++)
            begin_table(to, "Counters", heads, KRAIT_ARRAY_LEN(heads));
        krait_buf_str(to, "<tr>");
        for (size_t k = 0; k < KRAIT_ARRAY_LEN(values); k++)
            value_cell(to, values[k], unit ? unit : "");
        krait_page_count_cell(to, sum->changes);
        name_cell(to, track_of(page, i)->name, "");
        track_cell(to, page, i);
        krait_buf_str(to, "</tr>\n");
    }
    if (shown)
        end_table(to);
}

/* ---- all ---- */

struct krait_page_sum_rows krait_page_count_sums(const struct krait_page *page)
{
    const struct krait_name_sums *states = &page->sums->states;
    struct krait_page_sum_rows counts = { .syscalls = page->sums->syscalls.count,
                                          .gil = page->sums->gil.count };
    struct thread_rows rows = { 0 };
    if (!find_threads(&rows, page))
        counts.threads = rows.count;
    free(rows.items);
    for (uint32_t i = 0; i < states->count; i++)
        counts.cpus += track_of(page, states->items[i].track)->of == KRAIT_OF_CPU;
    for (uint32_t i = 0; i < page->trace->track_count; i++)
        counts.counters += page->sums->counters[i].has;
    return counts;
}

void krait_page_sums(struct krait_buf *to, const struct krait_page *page)
{
    thread_states_table(to, page);
    cpu_table(to, page);
    syscall_table(to, page);
    gil_table(to, page);
    counter_table(to, page);
}
