/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait report --why`: a function's slowest calls, and what kept each of them; of samples, its longest stretches of them.
 */
#include "analysis/why.h"
#include "base/arena.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/report.h"
#include "cmd/state.h"

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

/* Whether no thread is known to have had the GIL; adds what is known. */
static bool add_unheld(struct krait_buf *text, const struct krait_why_row *row)
{
    if (row->part == KRAIT_WALL_GIL_FREE)
        krait_buf_str(text, row->by ? "free until this thread ran" : "free until another took it");
    else if (row->part == KRAIT_WALL_GIL_UNKNOWN)
        krait_buf_str(text, "not known");
    else
        return false;
    return true;
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
    if (add_unheld(text, row))
        return;
    krait_buf_str(text, state == KRAIT_WALL_GIL ? "held by " : "woken by ");
    if (has_cause(row))
        add_cause(text, report, row->by, t_ns);
    else
        krait_buf_str(text, unnamed(state));
    if (has_cause(row) && state != KRAIT_WALL_GIL && !krait_wall_has_interrupts(report->wall))
        krait_buf_str(text, " or an interrupt");
}

/* -- tables -- */

/* What columns need besides the row. */
struct whys {
    const struct report *report;
    struct krait_arena texts;
    uint64_t end_ns; /* of the call */
};

static bool is_for_cpu(const struct krait_why_row *row)
{
    return row->state == KRAIT_WALL_RUNNABLE;
}

static struct krait_sheet_cell state_words(void *of, const void *row, size_t arg)
{
    const struct krait_why_row *at = row;
    return krait_sheet_name(is_for_cpu(at) ? "a CPU"
                                           : krait_report_wall_word((enum krait_wall_state)at->state));
}

static struct krait_sheet_cell state_key(void *of, const void *row, size_t arg)
{
    return krait_sheet_name(
        krait_report_wall_key((enum krait_wall_state)((const struct krait_why_row *)row)->state));
}

static struct krait_sheet_cell syscall_name(void *of, const void *row, size_t arg)
{
    const struct whys *whys = of;
    uint32_t call = ((const struct krait_why_row *)row)->call;
    return krait_sheet_name(call == KRAIT_NO_ID ? NULL : krait_wall_call(whys->report->wall, call));
}

static struct krait_sheet_cell is_preempted(void *of, const void *row, size_t arg)
{
    return krait_sheet_number(((const struct krait_why_row *)row)->preempted);
}

static struct krait_sheet_cell is_free(void *of, const void *row, size_t arg)
{
    return krait_sheet_number(((const struct krait_why_row *)row)->part == KRAIT_WALL_GIL_FREE);
}

static struct krait_sheet_cell is_idle(void *of, const void *row, size_t arg)
{
    const struct krait_why_row *at = row;
    return krait_sheet_number(is_for_cpu(at) && !at->by);
}

static struct krait_sheet_cell by_tid(void *of, const void *row, size_t arg)
{
    const struct whys *whys = of;
    const struct krait_why_row *at = row;
    return krait_sheet_number(has_cause(at)
                                  ? (uint64_t)krait_wall_cause(whys->report->wall, at->by, whys->end_ns).tid
                                  : KRAIT_SHEET_NONE);
}

static struct krait_sheet_cell by_name(void *of, const void *row, size_t arg)
{
    const struct whys *whys = of;
    const struct krait_why_row *at = row;
    return krait_sheet_name(has_cause(at) ? krait_wall_cause(whys->report->wall, at->by, whys->end_ns).name
                                          : NULL);
}

static struct krait_sheet_cell who(void *of, const void *row, size_t arg)
{
    struct whys *whys = of;
    KRAIT_AUTO_BUF text = { 0 };
    (is_for_cpu(row) ? add_ready : add_who)(&text, whys->report, row, whys->end_ns);
    return krait_sheet_name(krait_arena_strdup(&whys->texts, text.data ? text.data : ""));
}

#define AT(field) krait_sheet_number_at, offsetof(struct krait_why_row, field)

static const struct krait_sheet_column syscalls[] = {
    { { "time", 0, 0, 0 }, "ns", KRAIT_SHEET_NS, 0, AT(ns) },
    { { "calls", 0, 0, 0 }, "count", KRAIT_SHEET_COUNT, 0, AT(count) },
    { { "longest", 0, 0, 1 }, "longest_ns", KRAIT_SHEET_NS, 0, AT(longest_ns) },
    { { "system call", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 16, 0 },
      "syscall",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH,
      syscall_name,
      0 },
};

static const struct krait_sheet_column waits[] = {
    { { "time", 0, 0, 0 }, "ns", KRAIT_SHEET_NS, 0, AT(ns) },
    { { "times", 0, 0, 0 }, "count", KRAIT_SHEET_COUNT, 0, AT(count) },
    { { "longest", 0, 0, 2 }, "longest_ns", KRAIT_SHEET_NS, 0, AT(longest_ns) },
    { { "waited for", KRAIT_COLUMN_LEFT, 0, 0 }, NULL, KRAIT_SHEET_NAME, 0, state_words, 0 },
    { { "in", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 8, 1 },
      "syscall",
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_DASH,
      syscall_name,
      0 },
    { { "who", KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, 24, 0 },
      NULL,
      KRAIT_SHEET_NAME,
      KRAIT_SHEET_BLANK,
      who,
      0 },
    { { NULL, 0, 0, 0 }, "state", KRAIT_SHEET_NAME, KRAIT_SHEET_DATA, state_key, 0 },
    { { NULL, 0, 0, 0 }, "preempted", KRAIT_SHEET_BOOL, KRAIT_SHEET_DATA, is_preempted, 0 },
    { { NULL, 0, 0, 0 }, "idle", KRAIT_SHEET_BOOL, KRAIT_SHEET_DATA, is_idle, 0 },
    { { NULL, 0, 0, 0 }, "free", KRAIT_SHEET_BOOL, KRAIT_SHEET_DATA, is_free, 0 },
    { { NULL, 0, 0, 0 }, "by_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, by_tid, 0 },
    { { NULL, 0, 0, 0 }, "by_name", KRAIT_SHEET_NAME, KRAIT_SHEET_DATA, by_name, 0 },
};

/* Hands out a call's rows as a sheet; what `put` returns, or -ENOMEM. */
static int with_sheet(struct report *report, const struct krait_why_call *call, bool is_waits,
                      int (*put)(struct report *report, const struct krait_sheet *sheet))
{
    const struct krait_why_rows *rows = is_waits ? &call->waits : &call->calls;
    struct whys whys = { .report = report, .end_ns = call->end_ns };
    struct krait_sheet sheet = { .columns = is_waits ? waits : syscalls, .of = &whys };
    sheet.column_count = is_waits ? KRAIT_ARRAY_LEN(waits) : KRAIT_ARRAY_LEN(syscalls);
    for (uint32_t i = 0; i < rows->count; i++)
        krait_sheet_add(&sheet, &rows->items[i]);
    int rc = put(report, &sheet);
    krait_sheet_done(&sheet);
    krait_arena_done(&whys.texts);
    return rc;
}

static int print_indented(struct report *report, const struct krait_sheet *sheet)
{
    KRAIT_AUTO_BUF text = { 0 };
    struct krait_table_look look = report->look;
    look.width -= KRAIT_MIN(look.width, (uint32_t)INDENT);
    if (!sheet->rows)
        return 0;
    int rc = krait_sheet_table(sheet, ROWS, &look, &text);
    krait_buf_char(&report->out, '\n');
    for (char *line = text.data, *end; !rc && *line; line = end + 1) {
        end = strchr(line, '\n');
        krait_buf_fmt(&report->out, "%*s%.*s\n", INDENT, "", (int)(end - line), line);
    }
    return rc;
}

static int print_json(struct report *report, const struct krait_sheet *sheet)
{
    return krait_sheet_json(sheet, 0, &report->out);
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

static int put_tables(struct report *report, const struct krait_why_call *call)
{
    int rc = with_sheet(report, call, true, print_indented);
    add_more(report, &call->waits);
    rc = rc ? rc : with_sheet(report, call, false, print_indented);
    add_more(report, &call->calls);
    return rc;
}

/* -- the text -- */

static void add_label(struct krait_buf *out, const struct report *report, uint32_t func)
{
    const struct krait_func *f = &report->trace->funcs[func];
    size_t bright;
    krait_func_row_label(out, f->module, f->name, f->kind, &bright);
}

static bool is_of_samples(const struct report *report)
{
    return report->trace->samples.rate != 0;
}

/* What is missing from all of it, where the kernel was not recorded. */
static void add_missing(const struct report *report, const struct krait_why *why, struct krait_buf *out)
{
    if (report->trace->has_kernel || is_of_samples(report))
        return;
    if (report->wall && !why->wall_ns[KRAIT_WALL_GIL])
        krait_buf_str(out, "These calls did not wait for the GIL.\n");
    krait_buf_fmt(out,
                  "What %sthese calls waited for is not known, since the kernel was not recorded.\n"
                  "Record it with: krait record --kernel -- COMMAND\n",
                  report->wall ? "else " : "");
}

/* Of samples nobody knows where a call ends and the next one begins; a call that waits in an await has several runs. */
static const char *count_runs(char out[KRAIT_FMT_SIZE], const struct report *report,
                              const struct krait_why *why)
{
    char count[KRAIT_FMT_SIZE];
    const char *one = is_of_samples(report) ? "stretch" : why->resumed ? "run" : "call";
    const char *more = is_of_samples(report) ? "es" : "s";
    snprintf(out, KRAIT_FMT_SIZE, "%s %s%s", krait_fmt_count(count, why->runs), one,
             why->runs == 1 ? "" : more);
    return out;
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
    krait_buf_fmt(out, "%s  %s in %s\n", plain, krait_fmt_ns(total, why->total_ns),
                  count_runs(count, report, why));
    if (report->wall && why->runs > 1)
        krait_report_wall_words(report, why->wall_ns, 0);
    add_missing(report, why, out);
}

static int put_call(struct report *report, const struct krait_why_call *call, uint32_t number, bool named)
{
    char took[KRAIT_FMT_SIZE], at[KRAIT_FMT_SIZE];
    struct krait_buf *out = &report->out;
    krait_buf_fmt(out, "%u. %s%s, %s after the start, ", number,
                  call->is_cut && !is_of_samples(report) ? "more than " : "",
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
    return krait_wall_has_samples(report->wall) ? 0 : put_tables(report, call); /* samples know no more */
}

/* Calls of which nothing more is known are lines of a list. */
static bool is_split(const struct report *report, const struct krait_why_call *call)
{
    bool is = false;
    for (unsigned i = 0; i < KRAIT_WALL_COUNT && report->wall; i++)
        is |= krait_report_wall_shows(report, (enum krait_wall_state)i, call->wall_ns);
    return is;
}

static int put_text(struct report *report, const struct krait_why *why, uint32_t matched)
{
    int rc = 0;
    if (!why->count)
        return 0;
    add_head(report, why, matched);
    for (uint32_t i = 0; i < why->count && !rc; i++) {
        const struct krait_why_call *call = &why->slowest[i];
        if (!i || is_split(report, call - 1) || is_split(report, call))
            krait_buf_char(&report->out, '\n');
        rc = put_call(report, call, i + 1, matched != 1);
    }
    return rc;
}

/* -- for programs: a row a call; CSV is without its tables -- */

/* What columns need besides the row. */
struct calls {
    struct report *report;
    struct krait_func_row function; /* of the cell that was got last */
};

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

static const struct krait_thread *thread_of(const void *of, const void *row)
{
    return &((const struct calls *)of)->report->trace->threads[((const struct krait_why_call *)row)->thread];
}

GETTER(function)
{
    struct calls *calls = of;
    calls->function =
        KRAIT_FUNC_ROW(&calls->report->trace->funcs[((const struct krait_why_call *)row)->func]);
    return krait_sheet_object(&calls->function);
}

GETTER(duration)
{
    const struct krait_why_call *call = row;
    return krait_sheet_number(call->end_ns - call->begin_ns);
}

GETTER(pid)
{
    return krait_sheet_number(
        ((struct calls *)of)->report->trace->processes[thread_of(of, row)->process].pid);
}

GETTER(tid)
{
    return krait_sheet_number(thread_of(of, row)->tid);
}

GETTER(thread)
{
    return krait_sheet_name(thread_of(of, row)->name);
}

GETTER(wall)
{
    return krait_sheet_object(((const struct krait_why_call *)row)->wall_ns);
}

#undef GETTER

/* What a sheet of its own has; `arg`: of waits, else of system calls. */
static void json_rows(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    struct calls *calls = at->sheet->of;
    krait_json_key(out, at->column->key);
    if (with_sheet(calls->report, at->row, at->column->arg, print_json))
        out->failed = true;
}

static void json_gil(struct krait_buf *out, const struct krait_sheet_spot *at)
{
    struct calls *calls = at->sheet->of;
    krait_report_json_gil(calls->report, at->cell.object);
}

static const struct krait_sheet_kind kind_gil = { .json = json_gil };
static const struct krait_sheet_kind kind_function = { KRAIT_SHEET_FUNCTION },
                                     kind_rows = { .json = json_rows };

enum { WITHOUT_WALL = 7 }; /* columns that there are where it is not known what threads did */

/* Time by state has a key in JSON that is not the beginning of its names in CSV. */
static const struct krait_sheet_column columns[] = {
    { { NULL, 0, 0, 0 }, "name", &kind_function, 0, get_function, 0 },
    { { NULL, 0, 0, 0 },
      "begin_ns",
      KRAIT_SHEET_NS,
      0,
      krait_sheet_number_at,
      offsetof(struct krait_why_call, begin_ns) },
    { { NULL, 0, 0, 0 }, "duration_ns", KRAIT_SHEET_NS, 0, get_duration, 0 },
    { { NULL, 0, 0, 0 }, "pid", KRAIT_SHEET_NUMBER, 0, get_pid, 0 },
    { { NULL, 0, 0, 0 }, "tid", KRAIT_SHEET_NUMBER, 0, get_tid, 0 },
    { { NULL, 0, 0, 0 }, "thread", KRAIT_SHEET_NAME, 0, get_thread, 0 },
    { { NULL, 0, 0, 0 },
      "cut",
      KRAIT_SHEET_BOOL,
      KRAIT_SHEET_PLACE(1),
      krait_sheet_number_at,
      offsetof(struct krait_why_call, is_cut) },
    { { NULL, 0, 0, 0 }, "wall_ns", &krait_report_kind_wall, KRAIT_SHEET_NO_CSV, get_wall, 0 },
    { { NULL, 0, 0, 0 }, "wall_total_ns", &krait_report_kind_wall, KRAIT_SHEET_NO_JSON, get_wall, 0 },
    { { NULL, 0, 0, 0 }, "gil", &kind_gil, KRAIT_SHEET_NO_CSV, get_wall, 0 },
    { { NULL, 0, 0, 0 }, "syscalls", &kind_rows, KRAIT_SHEET_NO_CSV, NULL, false },
    { { NULL, 0, 0, 0 }, "waits", &kind_rows, KRAIT_SHEET_NO_CSV, NULL, true },
};

static int put_json(struct report *report, const struct krait_why *why, uint32_t matched,
                    const struct krait_sheet *sheet)
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
    krait_report_json_gil(report, why->wall_ns);
    krait_buf_char(out, '}');
    krait_json_key(out, "slowest");
    int rc = krait_sheet_json(sheet, 0, out);
    krait_report_json_close(report);
    return rc;
}

static int put(struct report *report, const struct krait_why *why, uint32_t matched)
{
    if (report->format == REPORT_TABLE)
        return put_text(report, why, matched);
    struct calls calls = { .report = report };
    KRAIT_CLEANUP(krait_sheet_done)
    struct krait_sheet sheet = { .columns = columns,
                                 .of = &calls,
                                 .column_count = report->wall ? KRAIT_ARRAY_LEN(columns) : WITHOUT_WALL,
                                 .lines = true };
    for (uint32_t i = 0; i < why->count; i++)
        krait_sheet_keep(&sheet, &why->slowest[i]);
    return report->format == REPORT_CSV ? krait_sheet_csv(&sheet, 0, &report->out)
                                        : put_json(report, why, matched, &sheet);
}

/* -- */

static uint32_t count_meant(const struct krait_trace *trace, const bool *meant)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->func_count; i++)
        count += meant[i] && trace->funcs[i].base == i;
    return count;
}

static void note_samples(struct report *report)
{
    char interval[KRAIT_FMT_SIZE];
    krait_buf_fmt(
        &report->notes,
        "a stretch is successive samples, one every %s, that have the function: it may be several calls, and "
        "short calls may be missing\n",
        krait_fmt_ns(interval, report->trace->samples.interval_ns));
    if (report->wall && krait_wall_has_samples(report->wall))
        krait_buf_fmt(&report->notes, "%s\n", krait_state_of_samples);
}

static void add_notes(struct report *report, const struct krait_why *why)
{
    char count[KRAIT_FMT_SIZE];
    if (!why->count)
        krait_buf_fmt(&report->notes, "%s%s\n",
                      is_of_samples(report) ? "no sample has it" : "it was not called",
                      krait_select_scope(&report->options->select));
    else if (is_of_samples(report))
        note_samples(report);
    else if (report->format != REPORT_TABLE)
        add_missing(report, why, &report->notes);
    if (why->runs > why->count)
        krait_buf_fmt(&report->notes, "the %s %u of %s; --limit N shows more\n",
                      is_of_samples(report) ? "longest" : "slowest", why->count,
                      count_runs(count, report, why));
    if (report->wall && report->format == REPORT_TABLE)
        krait_report_note_gil(report, why->wall_ns);
    if (why->resumed && report->format == REPORT_TABLE)
        krait_buf_str(
            &report->notes,
            "a generator or coroutine runs from each resume to the next yield; krait intervals --call "
            "takes whole calls of async functions\n");
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
                                               .ranges = &report->options->select.parts,
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
