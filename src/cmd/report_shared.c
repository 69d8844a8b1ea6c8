/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: what its outputs share - cells, marks, notes, the keys and columns for programs.
 */
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/omitted.h"
#include "cmd/report.h"

#include <string.h>

void krait_report_json_u64(struct krait_buf *out, const char *key, uint64_t n)
{
    krait_json_key(out, key);
    krait_json_u64(out, n);
}

void krait_report_json_text(struct krait_buf *out, const char *key, const char *text)
{
    krait_json_key(out, key);
    krait_json_cstr(out, text);
}

void krait_report_json_damage(struct krait_buf *out, const char *damage)
{
    krait_json_key(out, "damage");
    if (*damage)
        krait_json_cstr(out, damage);
    else
        krait_buf_str(out, "null");
}

void krait_report_keep_damage(struct report *report, const char *damage)
{
    if (!report->damage[0])
        snprintf(report->damage, sizeof(report->damage), "%s", damage);
}

void krait_report_note_nothing(struct report *report)
{
    krait_buf_fmt(
        &report->notes, "%s%s\n",
        report->exception
            ? (report->trace->exception_count
                   ? "no function was left by such an exception"
                   : "no function was left by an exception of a known type (Python before 3.12 does "
                     "not tell types)")
        : report->filter ? "no function matches the filter"
                         : "no calls were recorded",
        krait_select_scope(&report->options->select));
    if (report->filter && !strpbrk(report->options->filter, "*?[:"))
        krait_buf_fmt(&report->notes,
                      "a word means whole parts of names, between dots: '*%s*' finds it in any\n",
                      report->options->filter);
}

void krait_report_note_more(struct report *report, uint32_t rows)
{
    char count[KRAIT_FMT_SIZE];
    krait_buf_fmt(&report->notes, "%s more; --limit 0 shows all\n", krait_fmt_counted(count, rows, "row"));
}

const char *krait_report_kind(enum krait_func_kind kind)
{
    return kind == KRAIT_FUNC_C ? "c" : "python";
}

void krait_report_json_func(struct krait_buf *out, const char *name, const char *module, const char *file,
                            uint32_t line, const char *kind)
{
    krait_report_json_text(out, "name", name);
    krait_report_json_text(out, "module", module);
    krait_report_json_text(out, "file", file);
    krait_report_json_u64(out, "line", line);
    krait_report_json_text(out, "kind", kind);
}

void krait_report_csv_func(struct krait_buf *out, const char *name, const char *module, const char *file,
                           uint32_t line, const char *kind)
{
    const char *texts[] = { name, module, file };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(texts); i++) {
        krait_csv_cstr(out, texts[i]);
        krait_buf_char(out, ',');
    }
    krait_buf_fmt(out, "%u,%s", line, kind);
}

void krait_report_json_open(struct report *report, uint64_t self_ns)
{
    struct krait_buf *out = &report->out;
    krait_buf_char(out, '{');
    krait_report_json_text(out, "by", report->options->by ? report->options->by : "function");
    krait_report_json_u64(out, "begin_ns", report->zero_ns);
    krait_report_json_u64(out, "duration_ns", report->trace->end_ns - report->zero_ns);
    krait_report_json_u64(out, report->clock ? "self_cycles" : "self_ns", self_ns);
}

static void json_lost(struct krait_buf *out, const struct krait_trace *trace)
{
    krait_json_key(out, "lost");
    krait_buf_char(out, '{');
    for (uint32_t i = 0; i < trace->lost_count; i++)
        krait_report_json_u64(out, trace->lost[i].reason, trace->lost[i].count);
    krait_buf_char(out, '}');
}

void krait_report_json_missing(struct krait_buf *out, const struct krait_trace *trace, const char *damage)
{
    json_lost(out, trace);
    krait_omitted_json(out, trace);
    krait_report_json_damage(out, damage);
}

void krait_report_json_close(struct report *report)
{
    struct krait_buf *out = &report->out;
    krait_report_json_missing(out, report->trace, report->damage);
    krait_report_json_kernel(report);
    krait_buf_str(out, "}\n");
}

void krait_report_label(struct krait_buf *out, const char *module, const char *name,
                        enum krait_func_kind kind, size_t *bright)
{
    krait_fmt_safe(out, module);
    krait_buf_str(out, *module && *name ? "." : "");
    size_t before = out->len;
    krait_fmt_safe(out, name);
    krait_buf_str(out, kind == KRAIT_FUNC_C ? " (C)" : "");
    *bright = out->len - before;
}

void krait_report_mark(struct krait_buf *out, bool holds_dropped, size_t *bright)
{
    if (!holds_dropped)
        return;
    krait_buf_str(out, KRAIT_HOLDS_DROPPED);
    *bright += strlen(KRAIT_HOLDS_DROPPED);
}

void krait_report_func(struct krait_buf *out, const struct krait_func *func, size_t *bright)
{
    krait_report_label(out, func->module, func->name, func->kind, bright);
    krait_report_mark(out, func->holds_dropped, bright);
}

void krait_report_json_holds(struct krait_buf *out, bool holds_dropped)
{
    if (!holds_dropped)
        return;
    krait_json_key(out, "holds_dropped");
    krait_buf_str(out, "true");
}

void krait_report_csv_holds(struct krait_buf *out, bool holds_dropped)
{
    krait_buf_str(out, holds_dropped ? ",1" : ",0");
}

enum krait_style krait_report_heat(uint64_t part, uint64_t whole)
{
    double share = whole ? (double)part / (double)whole : 0;
    return share >= 0.10 ? KRAIT_STYLE_HOT : share >= 0.03 ? KRAIT_STYLE_WARM : KRAIT_STYLE_NONE;
}

void krait_report_cell_ns(struct krait_table *table, uint64_t ns)
{
    char text[KRAIT_FMT_SIZE + 2];
    krait_fmt_ns(text, ns);
    size_t n = strlen(text);
    if (n > 2 && text[n - 2] == ' ') /* "s" and "h" one to the right, so that points stay under points */
        memmove(text + n - 1, text + n - 2, 3);
    krait_table_cell(table, text, KRAIT_STYLE_NONE, 0);
}

void krait_report_cell_count(struct krait_table *table, uint64_t n)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_fmt_count(text, n), KRAIT_STYLE_NONE, 0);
}

void krait_report_cell_share(struct krait_table *table, uint64_t part, uint64_t whole)
{
    char text[KRAIT_FMT_SIZE];
    krait_table_cell(table, krait_fmt_share(text, part, whole), krait_report_heat(part, whole), 0);
}

void krait_report_cell_where(struct krait_table *table, const char *file, uint32_t line)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, file);
    if (line && *file)
        krait_buf_fmt(&text, ":%u", line);
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_DIM, 0);
}
