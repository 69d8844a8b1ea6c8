/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report`: what its outputs share: notes, and what surrounds the rows in JSON.
 */
#include "analysis/match.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/changed.h"
#include "cmd/contents.h"
#include "cmd/cost_line.h"
#include "cmd/ending.h"
#include "cmd/omitted.h"
#include "cmd/report.h"
#include "cmd/sheet.h"
#include "trace/importer.h"

#include <string.h>

void krait_report_keep_damage(struct report *report, const char *damage)
{
    if (!report->damage[0])
        snprintf(report->damage, sizeof(report->damage), "%s", damage);
}

int krait_report_walk_tracks(struct report *report, struct krait_range range, krait_report_takes_fn *takes,
                             krait_batch_fn *fn, void *ctx)
{
    const struct krait_trace *trace = report->trace;
    KRAIT_AUTO_FREE uint32_t *chosen = calloc((size_t)trace->track_count + 1, sizeof(*chosen));
    uint32_t count = 0;
    if (!chosen)
        return -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count; i++) {
        int taken = takes(ctx, i);
        if (taken < 0)
            return taken;
        if (taken)
            chosen[count++] = i;
    }
    return krait_tracks_walk(trace, chosen, count, range, fn, ctx, report->damage, sizeof(report->damage));
}

/* Where to look if a recording has marks, spans or counters alone. */
static void note_other_verbs(struct report *report)
{
    struct krait_trace *trace = report->trace;
    if (trace && !report->filter && !report->exception && krait_contents_of(trace, report->range))
        krait_buf_str(
            &report->notes,
            "other events were recorded: krait report --by mark, krait report --by span and krait view "
            "show them\n");
}

/* Without a trace, as --diff is, it is not known, and taken to be so. */
static bool matches_any(const struct krait_trace *trace, const struct krait_match *match)
{
    bool found = !trace;
    for (uint32_t i = 0; !found && i < trace->func_count; i++)
        found = krait_match_func(match, trace->funcs[i].module, trace->funcs[i].name, trace->funcs[i].file);
    return found;
}

/* Whether '*word*' matches a function. */
static bool is_in_any(const struct krait_trace *trace, const char *word)
{
    KRAIT_AUTO_BUF pattern = { 0 };
    struct krait_match *match = NULL;
    struct krait_err ignored;
    krait_buf_fmt(&pattern, "*%s*", word);
    bool found =
        !pattern.failed && !krait_match_new(&match, pattern.data, &ignored) && matches_any(trace, match);
    krait_match_free(match);
    return found;
}

/* What a filter may have meant that matches no function of the trace: one that is called nearly so, or any that contains it. */
static void note_meant(struct report *report)
{
    const char *filter = report->options->filter;
    KRAIT_CLEANUP(krait_arena_done) struct krait_arena labels = { 0 };
    struct krait_suggest suggest = KRAIT_SUGGEST(filter, strlen(filter));
    bool is_elsewhere = report->trace && matches_any(report->trace, report->filter);
    bool is_word = !is_elsewhere && !strpbrk(filter, "*?[:"),
         has_any = is_word && is_in_any(report->trace, filter);
    if (report->trace && is_word && !has_any)
        krait_match_suggest_any(&suggest, &labels, report->trace);
    krait_suggest_say(&report->notes, suggest.best);
    krait_buf_char(&report->notes, '\n');
    if (has_any)
        krait_buf_fmt(&report->notes,
                      "a word means whole parts of names, between dots: '*%s*' finds it in any\n", filter);
}

void krait_report_note_nothing(struct report *report)
{
    krait_buf_fmt(&report->notes, "%s%s",
                  report->exception ? (!report->trace || report->trace->exception_count
                                           ? "no function was left by such an exception"
                                           : "no function was left by an exception of a known type")
                  : report->filter  ? "no function matches the filter"
                                    : "no calls were recorded",
                  krait_select_scope(&report->options->select));
    if (report->filter)
        note_meant(report);
    else
        krait_buf_char(&report->notes, '\n');
    note_other_verbs(report);
}

void krait_report_note_hidden(struct report *report, uint32_t branches)
{
    char count[KRAIT_FMT_SIZE];
    krait_buf_fmt(&report->notes, "%s below %g%% of the time %s left out; --min-share 0 shows all\n",
                  krait_fmt_counted(count, branches, "branch"), report->min_share,
                  branches == 1 ? "is" : "are");
}

void krait_report_note_limit(struct report *report, uint32_t count, const char *noun)
{
    if (report->format == REPORT_TABLE)
        krait_sheet_note_limit(&report->notes, report->limit, count, noun);
}

void krait_report_json_open(struct report *report, uint64_t self_ns)
{
    struct krait_buf *out = &report->out;
    krait_buf_char(out, '{');
    krait_json_key_text(out, "by", report->options->by ? report->options->by : "function");
    krait_json_key_u64(out, "begin_ns", report->zero_ns);
    krait_json_key_u64(out, "duration_ns", report->trace->end_ns - report->zero_ns);
    krait_json_key_u64(out, report->clock ? "self_cycles" : "self_ns", self_ns);
    if (report->corrected)
        krait_cost_json(out, report->trace);
}

static void json_lost(struct krait_buf *out, const struct krait_trace *trace)
{
    uint64_t all = 0;
    krait_json_key_open(out, "lost", '{');
    for (uint32_t i = 0; i < trace->lost_count; i++) {
        krait_json_key_u64(out, trace->lost[i].reason, trace->lost[i].count);
        all += trace->lost[i].count;
    }
    krait_buf_char(out, '}');
    krait_json_lost_events(out, all);
}

void krait_report_json_missing(struct krait_buf *out, const struct krait_trace *trace,
                               struct krait_range range, const char *damage)
{
    json_lost(out, trace);
    krait_ending_off_json(out, trace, range);
    krait_changed_json(out, trace, range);
    krait_omitted_json(out, trace);
    krait_json_key_text_or_null(out, "damage", damage);
}

void krait_report_json_close(struct report *report)
{
    struct krait_buf *out = &report->out;
    krait_report_json_missing(out, report->trace, report->range, report->damage);
    krait_report_json_kernel(report);
    krait_buf_str(out, "}\n");
}

int krait_report_sheet(struct report *report, const struct krait_sheet *sheet, const char *what)
{
    struct krait_buf *out = &report->out;
    if (report->format == REPORT_CSV)
        return krait_sheet_csv(sheet, report->limit, out);
    if (report->format == REPORT_TABLE) {
        krait_ending_notes(&report->notes, report->trace, report->range, report->damage, "");
        if (!sheet->rows)
            krait_buf_fmt(&report->notes, "no %s were recorded%s\n", what,
                          krait_select_scope(&report->options->select));
        krait_report_note_limit(report, sheet->rows, "row");
        return sheet->rows ? krait_report_put_table(report, sheet, report->limit, "self time", NULL) : 0;
    }
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "begin_ns", report->zero_ns);
    krait_json_key(out, what);
    int rc = krait_sheet_json(sheet, report->limit, out);
    krait_report_json_missing(out, report->trace, report->range, report->damage);
    krait_buf_str(out, "}\n");
    return rc;
}
