/* SPDX-License-Identifier: Apache-2.0 */
#include "view/page.h"

#include "base/fmt.h"
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

/* What is not here, and the command that shows it. */
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
                      "'unsafe-inline'; script-src 'unsafe-inline'; frame-src data:; img-src data:\">\n");
    tagged(to, "title", page->title);
    krait_buf_str(to, "\n<style>");
    krait_buf_add(to, krait_page_css, krait_page_css_len);
    krait_buf_str(to, "</style>\n</head>\n<body>\n");
    tagged(to, "h1", page->title);
    facts(to, page);
    notes(to, page);
    krait_page_split(to, page->profile);
    picture(to, "Timeline", page->timeline, page->timeline_height);
    krait_page_threads(to, page);
    picture(to, "Flame graph", page->flame, page->flame_height);
    krait_page_functions(to, page);
    krait_page_sources(to, page);
    left_out(to, page);
    krait_buf_str(to, "<p class=\"quiet\">krait " KRAIT_VERSION "</p>\n</body>\n</html>\n");
}
