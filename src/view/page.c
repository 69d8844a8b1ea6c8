/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page.h"

#include "base/fmt.h"
#include "trace/kernel/kernel.h"
#include "view/flame_text.h"
#include "view/page_tables.h"

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

/* ---- pictures ---- */

static void timeline(struct krait_buf *to, const struct krait_page *page)
{
    krait_buf_str(to, "<h2>Timeline</h2>\n<div class=\"picture\">");
    krait_buf_add(to, page->timeline->data, page->timeline->len);
    krait_buf_str(to, "</div>\n");
}

/* As an attribute's value between single quotes. */
static void quoted(struct krait_buf *to, const struct krait_buf *html)
{
    const char *at = html->data, *end = at + html->len;
    while (at < end) {
        size_t n = 0;
        while (at + n < end && at[n] != '&' && at[n] != '\'')
            n++;
        krait_buf_add(to, at, n);
        at += n;
        if (at < end)
            krait_buf_str(to, *at++ == '&' ? "&amp;" : "&#39;");
    }
}

/* In a frame of its own, so that the scripts of several do not interfere. Its text is an attribute, because browsers
 * reject addresses of more than some megabytes (Chromium's url::kMaxURLChars is 2 MB). */
static void flame(struct krait_buf *to, const struct krait_page_flame *flame, bool is_open)
{
    krait_buf_fmt(to,
                  "<details class=\"flame\"%s><summary>%s</summary>\n<iframe title=\"%s\" loading=\"lazy\" "
                  "sandbox=\"allow-scripts\" style=\"height:%upx\" srcdoc='",
                  is_open ? " open" : "", flame->title, flame->title, flame->height);
    quoted(to, &flame->html);
    krait_buf_str(to, "'></iframe></details>\n");
}

static void flames(struct krait_buf *to, const struct krait_page *page)
{
    krait_buf_str(to, "<h2>Flame graphs</h2>\n");
    for (uint32_t i = 0; i < page->flame_count; i++)
        flame(to, &page->flames[i], i == 0);
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
    const char *kernel_host = krait_kernel_machines(trace) ? krait_kernel_host(trace, 0) : "";
    krait_fmt_ns(duration, page->range.to_ns - page->range.from_ns);
    krait_fmt_ns(from, page->range.from_ns - page->zero_ns);
    krait_buf_fmt(&counts, "%u %s, %s", trace->process_count,
                  trace->process_count == 1 ? "process" : "processes",
                  krait_fmt_counted(threads, trace->thread_count, "thread"));
    krait_fmt_count(processes, trace->process_count);
    krait_buf_str(to, "<dl>");
    fact(to, "command", first ? *first->command ? first->command : first->name : "");
    fact(to, "host", first && *first->host ? first->host : kernel_host);
    fact(to, "runtime", first ? first->runtime : "");
    fact(to, "duration", duration);
    fact(to, "begins at", page->range.from_ns > page->zero_ns ? from : "");
    fact(to, "recorded", counts.data ? counts.data : "");
    krait_buf_str(to, "</dl>\n");
    to->failed |= counts.failed;
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

/* What the page leaves out, and the command that shows it. */
static void left_out(struct krait_buf *to, const struct krait_page *page)
{
    krait_buf_str(to, "<h2>What this page leaves out</h2>\n<ul class=\"left\">");
    for (uint32_t i = 0; i < page->left_count; i++) {
        krait_buf_str(to, "<li>");
        text(to, page->left[i].what);
        krait_buf_fmt(to, ": <code>krait %s ", page->left[i].verb);
        text(to, page->folders);
        text(to, page->left[i].options);
        krait_buf_str(to, "</code></li>\n");
    }
    krait_buf_str(to, "</ul>\n");
}

void krait_page_html(struct krait_buf *to, const struct krait_page *page)
{
    krait_buf_str(to, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                      "'unsafe-inline'; script-src 'unsafe-inline'\">\n");
    tagged(to, "title", page->title);
    krait_buf_str(to, "\n<style>");
    krait_buf_add(to, krait_page_css, krait_page_css_len);
    krait_buf_str(to, "</style>\n</head>\n<body>\n");
    tagged(to, "h1", page->title);
    facts(to, page);
    notes(to, page);
    krait_page_split(to, page->profile);
    timeline(to, page);
    krait_page_threads(to, page);
    flames(to, page);
    krait_page_functions(to, page);
    krait_page_sums(to, page);
    krait_page_sources(to, page);
    left_out(to, page);
    krait_buf_str(to, "<p class=\"quiet\">krait " KRAIT_VERSION "</p>\n</body>\n</html>\n");
}
