/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page_tables.h"

#include "base/fmt.h"
#include "view/flame_text.h"
#include "view/source.h"

#include <string.h>

enum { LINES_MAX = 60, LINE_BYTES = 400, BAR_HEIGHT = 16 };

static void text(struct krait_buf *to, const char *s)
{
    krait_text_xml_raw(to, s);
}

static void head_cells(struct krait_buf *to, const char *const *heads, size_t n)
{
    for (size_t i = 0; i < n; i++)
        krait_buf_fmt(to, "<th>%s</th>", heads[i]);
}

void krait_page_time_cell(struct krait_buf *to, uint64_t ns)
{
    char time[KRAIT_FMT_SIZE];
    krait_buf_fmt(to, "<td>%s</td>", krait_fmt_ns(time, ns));
}

void krait_page_sum_cell(struct krait_buf *to, uint64_t ns)
{
    if (ns)
        krait_page_time_cell(to, ns);
    else
        krait_buf_str(to, "<td>-</td>");
}

void krait_page_count_cell(struct krait_buf *to, uint64_t n)
{
    char count[KRAIT_FMT_SIZE];
    krait_buf_fmt(to, "<td>%s</td>", krait_fmt_count(count, n));
}

void krait_page_share_cell(struct krait_buf *to, uint64_t part, uint64_t whole)
{
    char share[KRAIT_FMT_SIZE];
    krait_buf_str(to, "<td>");
    text(to, krait_fmt_share(share, part, whole));
    krait_buf_str(to, "</td>");
}

/* ---- what threads did ---- */

/* Samples do not know calls, nor how long one took. */
static bool has_calls(const struct krait_page *page)
{
    return !page->trace->samples.rate;
}

static const struct {
    const char *class, *words;
} states[] = {
#define X(name, key, title, words) { key, words },
    KRAIT_WALL_STATES(X)
#undef X
};

static uint64_t sum_of(const uint64_t ns[KRAIT_WALL_COUNT])
{
    uint64_t whole = 0;
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++)
        whole += ns[i];
    return whole;
}

static void bar(struct krait_buf *to, const uint64_t ns[KRAIT_WALL_COUNT], uint64_t whole)
{
    char time[KRAIT_FMT_SIZE];
    krait_buf_str(to, "<div class=\"split\">");
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (ns[i])
            krait_buf_fmt(to, "<i class=\"w %s\" style=\"flex:%.6f\" title=\"%s %s\"></i>", states[i].class,
                          (double)ns[i] / (double)whole, states[i].words, krait_fmt_ns(time, ns[i]));
    }
    krait_buf_str(to, "</div>");
}

void krait_page_split(struct krait_buf *to, const struct krait_profile *profile)
{
    const uint64_t *ns = profile->wall_ns;
    char time[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    uint64_t whole = profile->sums ? sum_of(ns) : 0;
    if (!whole)
        return;
    krait_buf_str(to, "<h2>What the threads did</h2>\n");
    bar(to, ns, whole);
    krait_buf_str(to, "\n<ul class=\"legend\">");
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (ns[i])
            krait_buf_fmt(to, "<li><i class=\"w %s\"></i>%s %s (%s)</li>", states[i].class, states[i].words,
                          krait_fmt_ns(time, ns[i]), krait_fmt_share(share, ns[i], whole));
    }
    krait_buf_str(to, "</ul>\n");
}

static void thread_row(struct krait_buf *to, const struct krait_page *page, const struct krait_profile_row *r)
{
    uint64_t whole = r->wall ? sum_of(r->wall->self_ns) : 0;
    krait_buf_str(to, "<tr>");
    krait_page_time_cell(to, r->self_ns);
    if (has_calls(page))
        krait_page_count_cell(to, r->calls);
    if (whole) {
        uint64_t cpu_ns = r->wall->self_ns[KRAIT_WALL_ON_CPU]; /* without the kernel's events it is unknown */
        krait_page_sum_cell(to, cpu_ns);
        krait_buf_str(to, "<td class=\"bar\">");
        bar(to, r->wall->self_ns, whole);
        krait_buf_str(to, "</td>");
    } else {
        krait_buf_str(to, "<td></td><td></td>");
    }
    krait_buf_str(to, "<td class=\"name\">");
    text(to, r->name);
    krait_buf_str(to, "</td></tr>\n");
}

void krait_page_threads(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = { "time in calls", "calls", "on a CPU" };
    static const char *const heads_of_samples[] = { "time in functions", "on a CPU" };
    krait_buf_str(to, "<h2>Threads</h2>\n<div class=\"wide\"><table><thead><tr>");
    if (has_calls(page))
        head_cells(to, heads, KRAIT_ARRAY_LEN(heads));
    else
        head_cells(to, heads_of_samples, KRAIT_ARRAY_LEN(heads_of_samples));
    krait_buf_str(to,
                  "<th class=\"name\">what it did</th><th class=\"name\">thread</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < KRAIT_MIN(page->thread_rows, page->threads->count); i++)
        thread_row(to, page, &page->threads->rows[i]);
    krait_buf_str(to, "</tbody></table></div>\n");
}

/* ---- functions ---- */

/* The range of doublings of a nanosecond over all rows, so that their histograms can be compared. */
struct span {
    uint32_t first, end;
};

static struct span span_of(const struct krait_page *page, uint32_t rows)
{
    struct span span = { 64, 0 };
    for (uint32_t i = 0; i < rows; i++) {
        for (uint32_t d = 0; d < 64 && page->profile->rows[i].durations; d++) {
            if (page->profile->rows[i].durations[d]) {
                span.first = KRAIT_MIN(span.first, d);
                span.end = KRAIT_MAX(span.end, d + 1);
            }
        }
    }
    return span;
}

static void histogram_title(struct krait_buf *to, const uint64_t *counts, struct span span)
{
    char from[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
    const char *between = "";
    krait_buf_str(to, "<title>");
    for (uint32_t d = span.first; d < span.end; d++) {
        if (!counts[d])
            continue;
        krait_buf_fmt(to, "%sfrom %s: %s", between, krait_fmt_ns(from, (uint64_t)1 << d),
                      krait_fmt_count(count, counts[d]));
        between = "; ";
    }
    krait_buf_str(to, "</title>");
}

/* A bar for each doubling, as high as its share of the most frequent one, but at least a pixel. */
static void histogram(struct krait_buf *to, const uint64_t *counts, struct span span)
{
    uint64_t most = 1;
    for (uint32_t d = span.first; d < span.end; d++)
        most = KRAIT_MAX(most, counts[d]);
    krait_buf_fmt(to, "<svg class=\"hist\" width=\"%u\" height=\"%d\" role=\"img\">",
                  4 * (span.end - span.first), BAR_HEIGHT);
    histogram_title(to, counts, span);
    for (uint32_t d = span.first; d < span.end; d++) {
        double height = 1 + (BAR_HEIGHT - 1) * (double)counts[d] / (double)most;
        if (counts[d])
            krait_buf_fmt(to, "<rect x=\"%u\" y=\"%.1f\" width=\"3\" height=\"%.1f\"/>", 4 * (d - span.first),
                          BAR_HEIGHT - height, height);
    }
    krait_buf_str(to, "</svg>");
}

static void func_name(struct krait_buf *to, const struct krait_func *func)
{
    char label[1024];
    text(to, krait_func_label(func, label, sizeof(label)));
    krait_buf_fmt(to, "%s%s", func->kind == KRAIT_FUNC_C ? " (C)" : "",
                  func->holds_dropped ? KRAIT_HOLDS_DROPPED : "");
}

static void func_place(struct krait_buf *to, const struct krait_func *func)
{
    text(to, func->file);
    if (func->line)
        krait_buf_fmt(to, ":%u", func->line);
}

static void histogram_head(struct krait_buf *to, struct span span)
{
    char from[KRAIT_FMT_SIZE], until[KRAIT_FMT_SIZE];
    krait_buf_str(to, "<th class=\"name\">");
    if (span.end)
        krait_buf_fmt(to, "%s to %s", krait_fmt_ns(from, (uint64_t)1 << span.first),
                      krait_fmt_ns(until, span.end < 64 ? (uint64_t)1 << span.end : UINT64_MAX));
    krait_buf_str(to, "</th>");
}

static void say_samples(struct krait_buf *to, const struct krait_trace *trace)
{
    KRAIT_AUTO_BUF note = { 0 };
    krait_profile_say_samples(&note, trace);
    text(to, note.data ? note.data : "");
    to->failed |= note.failed;
}

/* What only recorded calls have. */
static void call_cells(struct krait_buf *to, const struct krait_profile_row *r, struct span span)
{
    const uint64_t times[] = { r->mean_ns, r->min_ns, r->p50_ns, r->p99_ns, r->max_ns };
    krait_page_count_cell(to, r->calls);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(times); i++) {
        if (r->runs > r->cut_runs)
            krait_page_time_cell(to, times[i]);
        else
            krait_buf_str(to, "<td>-</td>");
    }
    krait_buf_str(to, "<td class=\"name\">");
    histogram(to, r->durations, span);
    krait_buf_str(to, "</td>");
}

static void row(struct krait_buf *to, const struct krait_page *page, const struct krait_profile_row *r,
                struct span span)
{
    const struct krait_func *func = &page->trace->funcs[r->func];
    krait_buf_str(to, "<tr>");
    krait_page_time_cell(to, r->self_ns);
    if (!has_calls(page))
        krait_page_time_cell(to, r->self_error_ns);
    krait_page_share_cell(to, r->self_ns, page->profile->self_ns);
    krait_page_time_cell(to, r->total_ns);
    if (has_calls(page))
        call_cells(to, r, span);
    krait_buf_str(to, "<td class=\"name\">");
    func_name(to, func);
    krait_buf_str(to, "</td><td class=\"name quiet\">");
    func_place(to, func);
    krait_buf_str(to, "</td></tr>\n");
}

void krait_page_functions(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = {
        "self", "self%", "total", "calls", "mean", "min", "p50", "p99", "max"
    };
    static const char *const heads_of_samples[] = { "self", "error", "self%", "total" };
    uint32_t shown = KRAIT_MIN(page->rows, page->profile->count);
    struct span span = span_of(page, shown);
    krait_buf_str(to, "<h2>Functions</h2>\n<div class=\"wide\"><table><thead><tr>");
    if (has_calls(page)) {
        head_cells(to, heads, KRAIT_ARRAY_LEN(heads));
        histogram_head(to, span);
    } else {
        head_cells(to, heads_of_samples, KRAIT_ARRAY_LEN(heads_of_samples));
    }
    krait_buf_str(to, "<th class=\"name\">function</th><th class=\"name\">where</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < shown; i++)
        row(to, page, &page->profile->rows[i], span);
    krait_buf_str(to, "</tbody></table></div>\n<p class=\"quiet\">");
    if (has_calls(page))
        krait_buf_str(to,
                      "The bars are a histogram of how long the calls took: each takes in twice the time of "
                      "the one before it.");
    else
        say_samples(to, page->trace);
    krait_buf_str(to, "</p>\n");
}

/* ---- source ---- */

struct listing {
    struct krait_buf *to;
    uint32_t first; /* the function's line */
};

static void source_line(void *ctx, uint32_t line, const char *code, size_t n)
{
    const struct listing *listing = ctx;
    KRAIT_AUTO_BUF cut = { 0 };
    krait_buf_add(&cut, code, KRAIT_MIN(n, (size_t)LINE_BYTES));
    krait_buf_char(&cut, '\0');
    krait_buf_fmt(listing->to, line == listing->first ? "<b>%5u</b>  " : "%5u  ", line);
    if (!cut.failed)
        text(listing->to, cut.data);
    krait_buf_str(listing->to, n > LINE_BYTES ? "...\n" : "\n");
}

static void source(struct krait_buf *to, const struct krait_trace *trace, const struct krait_func *func)
{
    KRAIT_CLEANUP(krait_source_done) struct krait_source source = { 0 };
    struct krait_err ignored;
    struct listing listing = { to, func->line };
    char lines[KRAIT_FMT_SIZE];
    if (krait_source_read(&source, trace, func, &ignored))
        return;
    krait_buf_str(to, "<details><summary>");
    func_name(to, func);
    krait_buf_str(to, " <span class=\"quiet\">");
    func_place(to, func);
    krait_buf_str(to, source.changed ? ", changed since it was recorded</span></summary>\n<pre>"
                                     : "</span></summary>\n<pre>");
    uint32_t more =
        krait_source_lines(&source, func->line ? func->line : 1, LINES_MAX, source_line, &listing);
    if (more)
        krait_buf_fmt(to, "       ... and %s to the end of the file\n",
                      krait_fmt_counted(lines, more, "more line"));
    krait_buf_str(to, "</pre></details>\n");
}

void krait_page_sources(struct krait_buf *to, const struct krait_page *page)
{
    size_t before = to->len, head;
    krait_buf_str(to, "<h2>Source</h2>\n");
    head = to->len;
    for (uint32_t i = 0, shown = 0; i < page->profile->count && shown < page->sources; i++) {
        size_t at = to->len;
        source(to, page->trace, &page->trace->funcs[page->profile->rows[i].func]);
        shown += to->len > at;
        if (i >= 4 * page->sources)
            break; /* looking for files that cannot be read takes time too */
    }
    if (to->len == head)
        to->len = before;
}
