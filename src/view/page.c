/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page.h"

#include "base/fmt.h"
#include "view/flame_text.h"

#include <string.h>

extern const char krait_page_css[];
extern const size_t krait_page_css_len;

static void text(struct krait_buf *to, const char *s)
{
    krait_text_xml_raw(to, s);
}

static void tagged(struct krait_buf *to, const char *tag, const char *s)
{
    krait_buf_fmt(to, "<%s>", tag);
    text(to, s);
    krait_buf_fmt(to, "</%s>", tag);
}

/* RFC 4648, 4. */
static void base64(struct krait_buf *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = krait_buf_room(to, (n + 2) / 3 * 4);
    if (!at)
        return;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t left = (uint32_t)KRAIT_MIN(n - i, (size_t)3);
        uint32_t word = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (left > 2 ? bytes[i + 2] : 0);
        for (uint32_t digit = 0; digit < 4; digit++)
            *at++ = digit <= left ? digits[word >> (18 - 6 * digit) & 63] : '=';
    }
    to->len += (n + 2) / 3 * 4;
    *at = '\0';
}

/* As a document of its own, so that neither's style and script meet the other's. */
static void picture(struct krait_buf *to, const char *title, const struct krait_buf *svg, uint32_t height)
{
    krait_buf_fmt(to,
                  "<h2>%s</h2>\n<iframe title=\"%s\" style=\"height:%upx\" src=\"data:image/svg+xml;base64,",
                  title, title, height);
    base64(to, (const uint8_t *)svg->data, svg->len);
    krait_buf_str(to, "\"></iframe>\n");
}

/* ---- what was recorded ---- */

static void fact(struct krait_buf *to, const char *name, const char *value)
{
    if (!*value)
        return;
    tagged(to, "dt", name);
    tagged(to, "dd", value);
}

static void facts(struct krait_buf *to, const struct krait_page *page)
{
    const struct krait_trace *trace = page->trace;
    const struct krait_process *first = trace->process_count ? &trace->processes[0] : NULL;
    char duration[KRAIT_FMT_SIZE], from[KRAIT_FMT_SIZE], processes[KRAIT_FMT_SIZE], threads[KRAIT_FMT_SIZE];
    KRAIT_AUTO_BUF counts = { 0 };
    krait_fmt_ns(duration, page->range.to_ns - page->range.from_ns);
    krait_fmt_ns(from, page->range.from_ns - page->zero_ns);
    krait_buf_fmt(&counts, "%u %s, %s", trace->process_count,
                  trace->process_count == 1 ? "process" : "processes",
                  krait_fmt_counted(threads, trace->thread_count, "thread"));
    krait_fmt_count(processes, trace->process_count);
    krait_buf_str(to, "<dl>");
    fact(to, "command", first ? *first->command ? first->command : first->name : "");
    fact(to, "host", first ? first->host : "");
    fact(to, "runtime", first ? first->runtime : "");
    fact(to, "duration", duration);
    fact(to, "begins at", page->range.from_ns > page->zero_ns ? from : "");
    fact(to, "recorded", counts.data ? counts.data : "");
    krait_buf_str(to, "</dl>\n");
    to->failed |= counts.failed;
}

/* ---- where the time went ---- */

static const struct {
    const char *class, *words;
} states[] = {
#define X(name, key, title, words) { key, words },
    KRAIT_WALL_STATES(X)
#undef X
};

static void split(struct krait_buf *to, const struct krait_page *page)
{
    const uint64_t *ns = page->profile->wall_ns;
    char time[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    uint64_t whole = 0;
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT && page->profile->sums; i++)
        whole += ns[i];
    if (!whole)
        return;
    krait_buf_str(to, "<h2>What the threads did</h2>\n<div class=\"split\">");
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (ns[i])
            krait_buf_fmt(to, "<i class=\"w %s\" style=\"flex:%.6f\"></i>", states[i].class,
                          (double)ns[i] / (double)whole);
    }
    krait_buf_str(to, "</div>\n<ul class=\"legend\">");
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (ns[i])
            krait_buf_fmt(to, "<li><i class=\"w %s\"></i>%s %s (%s)</li>", states[i].class, states[i].words,
                          krait_fmt_ns(time, ns[i]), krait_fmt_share(share, ns[i], whole));
    }
    krait_buf_str(to, "</ul>\n");
}

/* ---- functions ---- */

static void time_cell(struct krait_buf *to, uint64_t ns)
{
    char time[KRAIT_FMT_SIZE];
    krait_buf_fmt(to, "<td>%s</td>", krait_fmt_ns(time, ns));
}

static void row(struct krait_buf *to, const struct krait_page *page, const struct krait_profile_row *r)
{
    char share[KRAIT_FMT_SIZE], calls[KRAIT_FMT_SIZE], label[1024];
    const struct krait_func *func = &page->trace->funcs[r->func];
    const uint64_t times[] = { r->mean_ns, r->min_ns, r->p50_ns, r->p99_ns, r->max_ns };
    krait_buf_str(to, "<tr>");
    time_cell(to, r->self_ns);
    krait_buf_fmt(to, "<td>%s</td>", krait_fmt_share(share, r->self_ns, page->profile->self_ns));
    time_cell(to, r->total_ns);
    krait_buf_fmt(to, "<td>%s</td>", krait_fmt_count(calls, r->calls));
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(times); i++)
        time_cell(to, times[i]);
    krait_buf_str(to, "<td class=\"name\">");
    text(to, krait_func_label(func, label, sizeof(label)));
    krait_buf_fmt(to, "%s%s</td><td class=\"name quiet\">", func->kind == KRAIT_FUNC_C ? " (C)" : "",
                  func->holds_dropped ? KRAIT_HOLDS_DROPPED : "");
    text(to, func->file);
    if (func->line)
        krait_buf_fmt(to, ":%u", func->line);
    krait_buf_str(to, "</td></tr>\n");
}

static void functions(struct krait_buf *to, const struct krait_page *page)
{
    static const char *const heads[] = {
        "self", "self%", "total", "calls", "mean", "min", "p50", "p99", "max"
    };
    uint32_t shown = KRAIT_MIN(page->rows, page->profile->count);
    char more[KRAIT_FMT_SIZE];
    krait_buf_str(to, "<h2>Functions</h2>\n<div class=\"wide\"><table><thead><tr>");
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(heads); i++)
        tagged(to, "th", heads[i]);
    krait_buf_str(to, "<th class=\"name\">function</th><th class=\"name\">where</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < shown; i++)
        row(to, page, &page->profile->rows[i]);
    krait_buf_str(to, "</tbody></table></div>\n");
    if (shown == page->profile->count)
        return;
    krait_buf_fmt(to, "<p class=\"quiet\">%s left out: <code>krait report ",
                  krait_fmt_counted(more, page->profile->count - shown, "more function"));
    text(to, page->folders);
    krait_buf_str(to, " --limit 0</code></p>\n");
}

/* ---- all ---- */

static void notes(struct krait_buf *to, const struct krait_page *page)
{
    if (!page->note_count)
        return;
    krait_buf_str(to, "<ul class=\"notes\">");
    for (uint32_t i = 0; i < page->note_count; i++)
        tagged(to, "li", page->notes[i]);
    krait_buf_str(to, "</ul>\n");
}

void krait_page_html(struct krait_buf *to, const struct krait_page *page)
{
    krait_buf_str(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                      "'unsafe-inline'; script-src 'unsafe-inline'; frame-src data:; img-src data:\">\n");
    tagged(to, "title", page->title);
    krait_buf_str(to, "\n<style>");
    krait_buf_add(to, krait_page_css, krait_page_css_len);
    krait_buf_str(to, "</style>\n</head>\n<body>\n");
    tagged(to, "h1", page->title);
    facts(to, page);
    notes(to, page);
    split(to, page);
    picture(to, "Timeline", page->timeline, page->timeline_height);
    picture(to, "Flame graph", page->flame, page->flame_height);
    functions(to, page);
    krait_buf_str(to, "<p class=\"quiet\">krait " KRAIT_VERSION
                      ". Short calls are folded into exact sums; to see each: "
                      "<code>krait view ");
    text(to, page->folders);
    krait_buf_str(to, "</code></p>\n</body>\n</html>\n");
}
