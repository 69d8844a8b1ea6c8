/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --why`: a function's slowest calls, and what kept each of them.
 */
#include "analysis/why.h"
#include "base/csv.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"

#include <string.h>

enum {
    INDENT = 3,
    ROWS = 8, /* of a call's tables */
};

/* -- who -- */

/* "MainThread 4711": a thread of the trace's. */
static void add_thread(struct krait_buf *out, const struct report *report, uint32_t index)
{
    const struct krait_thread *thread = &report->trace->threads[index];
    krait_fmt_safe(out, *thread->name ? thread->name : report->trace->processes[thread->process].name);
    krait_buf_fmt(out, " %u", thread->tid);
}

/* What ended a wait where no thread is known to have. */
static const char *unnamed(enum krait_wall_state state)
{
    static const char *const names[KRAIT_WALL_COUNT] = { [KRAIT_WALL_DISK] = "the disk",
                                                         [KRAIT_WALL_FAULT] = "the disk",
                                                         [KRAIT_WALL_NETWORK] = "the network",
                                                         [KRAIT_WALL_TIMER] = "the timer",
                                                         [KRAIT_WALL_GIL] = "an unknown thread" };
    return names[state] ? names[state] : "an interrupt";
}

/* A thread is known to have done it. */
static bool has_cause(const struct krait_why_row *row)
{
    return row->by && row->by != KRAIT_RUN_UNKNOWN;
}

static void add_cause(struct krait_buf *text, const struct report *report, uint32_t by, uint64_t t_ns)
{
    struct krait_wall_cause cause = krait_wall_cause(report->wall, by, t_ns);
    krait_fmt_safe(text, cause.name);
    krait_buf_fmt(text, " %d", cause.tid);
}

/* Who had the CPU that the thread waited for. */
static void add_ready(struct krait_buf *text, const struct report *report, const struct krait_why_row *row,
                      uint64_t t_ns)
{
    bool is_alone = krait_wall_own(report->wall); /* other programs are not known */
    if (has_cause(row)) {
        krait_buf_str(text, row->preempted ? "preempted by " : "after it was woken, behind ");
        add_cause(text, report, row->by, t_ns);
    } else if (row->by)
        krait_buf_str(text, !row->preempted ? "after it was woken"
                            : is_alone      ? "preempted"
                                            : "preempted by an unknown thread");
    else
        krait_buf_str(text, row->preempted ? "nobody: its CPU stood idle"
                                           : "after it was woken, its CPU stood idle");
}

static void add_who(struct krait_buf *text, const struct report *report, const struct krait_why_row *row,
                    uint64_t t_ns)
{
    enum krait_wall_state state = (enum krait_wall_state)row->state;
    if (state == KRAIT_WALL_THROTTLED) {
        krait_buf_str(text, "the CPU quota of its cgroup was used up");
        return;
    }
    if (!row->by && krait_wall_own(report->wall)) /* not an interrupt: nobody is known */
        return;
    krait_buf_str(text, state == KRAIT_WALL_GIL ? "held by " : "woken by ");
    if (has_cause(row))
        add_cause(text, report, row->by, t_ns);
    else
        krait_buf_str(text, unnamed(state));
    if (has_cause(row) && state != KRAIT_WALL_GIL && !krait_wall_has_interrupts(report->wall))
        krait_buf_str(text, " or an interrupt");
}

static void cause_cell(struct krait_table *table, const struct report *report,
                       const struct krait_why_row *row, uint64_t t_ns)
{
    KRAIT_AUTO_BUF text = { 0 };
    if (row->state == KRAIT_WALL_RUNNABLE)
        add_ready(&text, report, row, t_ns);
    else
        add_who(&text, report, row, t_ns);
    krait_table_cell(table, text.data ? text.data : "", KRAIT_STYLE_NONE, 0);
}

/* -- tables -- */

static void add_times(struct krait_table *table, const struct krait_why_row *row)
{
    krait_cell_ns(table, row->ns);
    krait_cell_count(table, row->count);
    krait_cell_ns(table, row->longest_ns);
}

static void call_cell(struct krait_table *table, const struct report *report, uint32_t call)
{
    KRAIT_AUTO_BUF text = { 0 };
    krait_fmt_safe(&text, krait_wall_call(report->wall, call));
    bool none = !text.data || !*text.data;
    krait_table_cell(table, none ? "-" : text.data, none ? KRAIT_STYLE_DIM : KRAIT_STYLE_NONE, 0);
}

static int print_indented(struct report *report, const struct krait_table *table)
{
    KRAIT_AUTO_BUF text = { 0 };
    struct krait_table_look look = report->look;
    look.width -= KRAIT_MIN(look.width, (uint32_t)INDENT);
    int rc = krait_table_print(table, &look, &text);
    krait_buf_char(&report->out, '\n');
    for (char *line = text.data, *end; !rc && *line; line = end + 1) {
        end = strchr(line, '\n');
        krait_buf_fmt(&report->out, "%*s%.*s\n", INDENT, "", (int)(end - line), line);
    }
    return rc;
}

/* What the table does not have. */
static void add_more(struct report *report, const struct krait_why_rows *rows)
{
    char time[KRAIT_FMT_SIZE];
    uint64_t ns = 0;
    for (uint32_t i = ROWS; i < rows->count; i++)
        ns += rows->items[i].ns;
    if (rows->count > ROWS)
        krait_buf_fmt(&report->out, "%*s%s in %u more\n", INDENT, "", krait_fmt_ns(time, ns),
                      rows->count - ROWS);
}

static int put_calls(struct report *report, const struct krait_why_call *call)
{
    static const struct krait_column columns[] = {
        { "time", 0, 0, 0 },
        { "calls", 0, 0, 0 },
        { "longest", 0, 0, 1 },
        { "system call", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 16, 0 },
    };
    struct krait_table *table;
    if (!call->calls.count)
        return 0;
    if (krait_table_new(&table, columns, KRAIT_ARRAY_LEN(columns)))
        return -ENOMEM;
    for (uint32_t i = 0; i < call->calls.count && i < ROWS; i++) {
        add_times(table, &call->calls.items[i]);
        call_cell(table, report, call->calls.items[i].call);
    }
    int rc = print_indented(report, table);
    add_more(report, &call->calls);
    krait_table_free(table);
    return rc;
}

static int put_waits(struct report *report, const struct krait_why_call *call)
{
    static const struct krait_column columns[] = {
        { "time", 0, 0, 0 },
        { "times", 0, 0, 0 },
        { "longest", 0, 0, 2 },
        { "waited for", KRAIT_COLUMN_LEFT, 0, 0 },
        { "in", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 1 },
        { "who", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 24, 0 },
    };
    struct krait_table *table;
    if (!call->waits.count)
        return 0;
    if (krait_table_new(&table, columns, KRAIT_ARRAY_LEN(columns)))
        return -ENOMEM;
    for (uint32_t i = 0; i < call->waits.count && i < ROWS; i++) {
        const struct krait_why_row *row = &call->waits.items[i];
        bool ready = row->state == KRAIT_WALL_RUNNABLE;
        add_times(table, row);
        krait_table_cell(table, ready ? "a CPU" : krait_report_wall_word((enum krait_wall_state)row->state),
                         KRAIT_STYLE_NONE, 0);
        call_cell(table, report, row->call);
        cause_cell(table, report, row, call->end_ns);
    }
    int rc = print_indented(report, table);
    add_more(report, &call->waits);
    krait_table_free(table);
    return rc;
}

/* -- the text -- */

static void add_label(struct krait_buf *out, const struct report *report, uint32_t func)
{
    const struct krait_func *f = &report->trace->funcs[func];
    size_t bright;
    krait_func_row_label(out, f->module, f->name, f->kind, &bright);
}

/* What is missing from all of it, where the kernel was not recorded. */
static void add_missing(struct report *report, struct krait_buf *out)
{
    if (report->trace->has_kernel)
        return;
    krait_buf_fmt(out,
                  "What %sthese calls waited for is not known, since the kernel was not recorded.\n"
                  "Record it with: krait record --kernel -- COMMAND\n",
                  report->wall ? "else " : "");
}

static void add_head(struct report *report, const struct krait_why *why, uint32_t matched)
{
    char total[KRAIT_FMT_SIZE], count[KRAIT_FMT_SIZE];
    const char *bold = report->look.colour ? KRAIT_BOLD : "", *plain = report->look.colour ? KRAIT_PLAIN : "";
    struct krait_buf *out = &report->out;
    krait_buf_str(out, bold);
    if (matched == 1)
        add_label(out, report, why->slowest[0].func);
    else {
        krait_fmt_safe(out, report->options->why);
        krait_buf_fmt(out, " (%u functions)", matched);
    }
    krait_buf_fmt(out, "%s  %s in %s call%s\n", plain, krait_fmt_ns(total, why->total_ns),
                  krait_fmt_count(count, why->runs), why->runs == 1 ? "" : "s");
    if (report->wall && why->runs > 1)
        krait_report_wall_words(report, why->wall_ns, 0);
    add_missing(report, out);
}

static int put_call(struct report *report, const struct krait_why_call *call, uint32_t number, bool named)
{
    char took[KRAIT_FMT_SIZE], at[KRAIT_FMT_SIZE];
    struct krait_buf *out = &report->out;
    krait_buf_fmt(out, "\n%u. %s, %s after the start, ", number,
                  krait_fmt_ns(took, call->end_ns - call->begin_ns),
                  krait_fmt_ns(at, call->begin_ns - report->zero_ns));
    if (named) {
        add_label(out, report, call->func);
        krait_buf_str(out, ", ");
    }
    add_thread(out, report, call->thread);
    krait_buf_char(out, '\n');
    if (!report->wall)
        return 0;
    krait_report_wall_words(report, call->wall_ns, INDENT);
    int rc = put_waits(report, call);
    return rc ? rc : put_calls(report, call);
}

static int put_text(struct report *report, const struct krait_why *why, uint32_t matched)
{
    int rc = 0;
    if (!why->count)
        return 0;
    add_head(report, why, matched);
    for (uint32_t i = 0; i < why->count && !rc; i++)
        rc = put_call(report, &why->slowest[i], i + 1, matched != 1);
    return rc;
}

/* -- JSON -- */

static void json_row(struct krait_buf *out, const struct report *report, const struct krait_why_row *row)
{
    krait_json_key_u64(out, "count", row->count);
    krait_json_key_u64(out, "ns", row->ns);
    krait_json_key_u64(out, "longest_ns", row->longest_ns);
    krait_json_key(out, "syscall");
    if (row->call == KRAIT_NO_ID)
        krait_buf_str(out, "null");
    else
        krait_json_cstr(out, krait_wall_call(report->wall, row->call));
}

static void json_wait(struct krait_buf *out, const struct report *report, const struct krait_why_row *row,
                      uint64_t t_ns)
{
    krait_json_key_text(out, "state", krait_report_wall_key((enum krait_wall_state)row->state));
    krait_json_key_bool(out, "preempted", row->preempted);
    krait_json_key_bool(out, "idle", row->state == KRAIT_WALL_RUNNABLE && !row->by);
    if (has_cause(row)) {
        struct krait_wall_cause cause = krait_wall_cause(report->wall, row->by, t_ns);
        krait_json_key_u64(out, "by_tid", (uint64_t)cause.tid);
        krait_json_key_text(out, "by_name", cause.name);
        return;
    }
    krait_json_key_null(out, "by_tid");
    krait_json_key_null(out, "by_name");
}

static void json_rows(struct krait_buf *out, const struct report *report, const struct krait_why_call *call,
                      const char *key, const struct krait_why_rows *rows)
{
    krait_json_key_open(out, key, '[');
    for (uint32_t i = 0; i < rows->count; i++) {
        krait_json_item(out, "{");
        json_row(out, report, &rows->items[i]);
        if (rows == &call->waits)
            json_wait(out, report, &rows->items[i], call->end_ns);
        krait_buf_char(out, '}');
    }
    krait_buf_char(out, ']');
}

static void json_call(struct krait_buf *out, const struct report *report, const struct krait_why_call *call)
{
    const struct krait_func *func = &report->trace->funcs[call->func];
    const struct krait_thread *thread = &report->trace->threads[call->thread];
    krait_buf_char(out, '{');
    krait_func_row_json(out, KRAIT_FUNC_ROW(func));
    krait_json_key_u64(out, "begin_ns", call->begin_ns);
    krait_json_key_u64(out, "duration_ns", call->end_ns - call->begin_ns);
    krait_json_key_u64(out, "pid", report->trace->processes[thread->process].pid);
    krait_json_key_u64(out, "tid", thread->tid);
    krait_json_key_text(out, "thread", thread->name);
    if (report->wall) {
        krait_report_json_wall(out, "wall_ns", call->wall_ns);
        json_rows(out, report, call, "syscalls", &call->calls);
        json_rows(out, report, call, "waits", &call->waits);
    }
    krait_buf_char(out, '}');
}

static void put_json(struct report *report, const struct krait_why *why, uint32_t matched)
{
    struct krait_buf *out = &report->out;
    krait_report_json_open(report, why->total_ns);
    krait_json_key_open(out, "why", '{');
    krait_json_key_text(out, "pattern", report->options->why);
    krait_json_key_u64(out, "matched", matched);
    krait_json_key_u64(out, "runs", why->runs);
    krait_json_key_u64(out, "total_ns", why->total_ns);
    if (report->wall)
        krait_report_json_wall(out, "wall_ns", why->wall_ns);
    krait_buf_char(out, '}');
    krait_json_key_open(out, "slowest", '[');
    for (uint32_t i = 0; i < why->count; i++) {
        krait_json_item(out, "\n");
        json_call(out, report, &why->slowest[i]);
    }
    krait_buf_char(out, ']');
    krait_report_json_close(report);
}

/* -- CSV: a line a call, without its tables -- */

static void csv_call(struct krait_buf *out, const struct report *report, const struct krait_why_call *call)
{
    const struct krait_func *func = &report->trace->funcs[call->func];
    const struct krait_thread *thread = &report->trace->threads[call->thread];
    krait_func_row_csv(out, &KRAIT_FUNC_ROW(func));
    krait_buf_fmt(out, ",%llu,%llu,%u,%u,", (unsigned long long)call->begin_ns,
                  (unsigned long long)(call->end_ns - call->begin_ns),
                  report->trace->processes[thread->process].pid, thread->tid);
    krait_csv_cstr(out, thread->name);
    if (report->wall)
        krait_report_csv_wall(out, "total", call->wall_ns);
    krait_buf_char(out, '\n');
}

static void put_csv(struct report *report, const struct krait_why *why)
{
    struct krait_buf *out = &report->out;
    krait_func_row_csv(out, NULL);
    krait_buf_str(out, ",begin_ns,duration_ns,pid,tid,thread");
    if (report->wall)
        krait_report_csv_wall(out, "total", NULL);
    krait_buf_char(out, '\n');
    for (uint32_t i = 0; i < why->count; i++)
        csv_call(out, report, &why->slowest[i]);
}

/* -- */

static int put(struct report *report, const struct krait_why *why, uint32_t matched)
{
    if (report->format == REPORT_TABLE)
        return put_text(report, why, matched);
    if (report->format == REPORT_JSON)
        put_json(report, why, matched);
    else
        put_csv(report, why);
    return 0;
}

static uint32_t count_meant(const struct krait_trace *trace, const bool *meant)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->func_count; i++)
        count += meant[i] && trace->funcs[i].base == i;
    return count;
}

static void add_notes(struct report *report, const struct krait_why *why)
{
    char count[KRAIT_FMT_SIZE];
    if (!why->count)
        krait_buf_fmt(&report->notes, "it was not called%s\n", krait_select_scope(&report->options->select));
    else if (report->format != REPORT_TABLE)
        add_missing(report, &report->notes);
    if (why->runs > why->count)
        krait_buf_fmt(&report->notes, "the slowest %u of %s; --limit N shows more\n", why->count,
                      krait_fmt_counted(count, why->runs, "call"));
}

int krait_report_why(struct report *report, struct krait_err *err)
{
    const struct krait_trace *trace = report->trace;
    KRAIT_AUTO_FREE bool *meant = calloc((size_t)trace->func_count + 1, sizeof(*meant));
    struct krait_why *why = NULL;
    if (!meant)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_match_mark(meant, trace, report->asked, err);
    if (rc)
        return rc;
    const struct krait_why_options options = { .range = report->range,
                                               .meant = meant,
                                               .limit = report->limit,
                                               .take_thread = krait_select_thread,
                                               .ctx = (void *)&report->options->select,
                                               .wall = report->wall };
    uint32_t matched = count_meant(trace, meant);
    rc = krait_why_new(&why, trace, &options);
    if (!rc)
        krait_report_keep_damage(report, why->damage);
    rc = rc ? rc : put(report, why, matched);
    if (!rc)
        add_notes(report, why);
    krait_why_free(why);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
