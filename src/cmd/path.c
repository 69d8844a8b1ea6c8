/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait path`: what a thread's wall time really went through.
 */
#include "cmd/path.h"

#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmds.h"
#include "cmd/ending.h"
#include "cmd/func_row.h"
#include "cmd/terminal.h"
#include "cmd/within.h"
#include "trace/kernel/kernel.h"
#include "view/lane.h"

#include <string.h>

enum { LANE_ROWS = 12, MOST_NTH = 100000 };

/* -- lanes -- */

enum lane_style { STYLE_RUNS, STYLE_READY, STYLE_STOPPED, STYLE_WAITS, STYLE_BLOCKED, STYLE_UNKNOWN };

static const struct krait_lane_style lane_styles[] = {
    [STYLE_RUNS] = { "runs", "█", '#', "32" },           [STYLE_READY] = { "ready to run", "░", '-', "33" },
    [STYLE_STOPPED] = { "interrupted", "▒", '!', "35" }, [STYLE_WAITS] = { "waited for", "█", '#', "36" },
    [STYLE_BLOCKED] = { "blocked", "┄", '~', "31" },     [STYLE_UNKNOWN] = { "unknown", "·", '.', "2" },
};

static enum lane_style style_of(enum krait_path_kind kind)
{
    static const uint8_t styles[KRAIT_PATH_KIND_COUNT] = {
        [KRAIT_PATH_RUNNING] = STYLE_RUNS,    [KRAIT_PATH_INTERRUPTED] = STYLE_STOPPED,
        [KRAIT_PATH_WOKEN] = STYLE_READY,     [KRAIT_PATH_PREEMPTED] = STYLE_READY,
        [KRAIT_PATH_BLOCKED] = STYLE_BLOCKED, [KRAIT_PATH_UNKNOWN] = STYLE_UNKNOWN
    };
    return krait_path_is_device(kind) ? STYLE_WAITS : (enum lane_style)styles[kind];
}

static int by_total(const void *a, const void *b, void *ctx)
{
    const struct path_member *members = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    uint64_t x = members[i].total_ns, y = members[k].total_ns;
    return x != y ? (x < y ? 1 : -1) : (i > k) - (i < k);
}

/* Gives each its lane: threads in the order of the path, below them what is waited for. Where there are too
 * many those with least time share the last. Returns how many lanes there are. */
static uint32_t give_lanes(struct path *p, uint32_t *order)
{
    uint32_t lanes = 0, shown = p->member_count > LANE_ROWS ? LANE_ROWS - 1 : p->member_count;
    for (uint32_t i = 0; i < p->member_count; i++)
        order[i] = i;
    qsort_r(order, p->member_count, sizeof(*order), by_total, p->members);
    for (uint32_t i = 0; i < p->member_count; i++)
        p->members[order[i]].lane = i < shown ? 0 : shown;
    for (int devices = 0; devices <= 1; devices++) {
        for (uint32_t i = 0; i < p->member_count; i++) {
            struct path_member *member = &p->members[i];
            if (member->lane != shown && (member->thread == KRAIT_NO_ID) == devices)
                member->lane = lanes++;
        }
    }
    return shown < p->member_count ? shown + 1 : shown;
}

static void fill_spans(const struct path *p, struct krait_lane_span *spans)
{
    for (uint32_t i = 0; i < p->found->count; i++) {
        const struct krait_path_segment *s = &p->found->segments[i];
        spans[i] = (struct krait_lane_span){ .begin_ns = (uint64_t)s->begin_ns,
                                             .end_ns = (uint64_t)s->end_ns,
                                             .row = p->members[p->member_of[i]].lane,
                                             .style = style_of((enum krait_path_kind)s->kind) };
    }
}

/* The labels, one behind the other with their ends, and where each begins. */
static void name_lanes(const struct path *p, uint32_t lanes, struct krait_buf *texts, size_t *at)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        at[lane] = texts->len;
        uint32_t sharing = 0;
        const struct path_member *last = NULL;
        for (uint32_t i = 0; i < p->member_count; i++) {
            sharing += p->members[i].lane == lane;
            last = p->members[i].lane == lane ? &p->members[i] : last;
        }
        if (sharing == 1)
            krait_path_member_name(texts, p, last);
        else
            krait_buf_fmt(texts, "%u others", sharing);
        krait_buf_char(texts, '\0');
    }
}

static int draw_lanes(struct path *p)
{
    KRAIT_AUTO_FREE uint32_t *order = calloc(p->member_count, sizeof(*order));
    KRAIT_AUTO_FREE struct krait_lane_span *spans = calloc(p->found->count, sizeof(*spans));
    KRAIT_AUTO_BUF texts = { 0 };
    const char *rows[LANE_ROWS];
    size_t at[LANE_ROWS];
    if (!order || !spans)
        return -ENOMEM;
    struct krait_lane_chart lanes = { .rows = rows,
                                      .styles = lane_styles,
                                      .style_count = KRAIT_ARRAY_LEN(lane_styles),
                                      .spans = spans,
                                      .span_count = p->found->count,
                                      .begin_ns = (uint64_t)p->found->segments[0].begin_ns,
                                      .end_ns = (uint64_t)p->found->segments[p->found->count - 1].end_ns };
    lanes.row_count = give_lanes(p, order);
    fill_spans(p, spans);
    name_lanes(p, lanes.row_count, &texts, at);
    if (texts.failed)
        return -ENOMEM;
    for (uint32_t i = 0; i < lanes.row_count; i++)
        rows[i] = texts.data + at[i];
    return krait_lane_chart_print(&lanes, &p->look, &p->out);
}

/* -- for people -- */

/* Whose path it is, how long, and since when. */
static void add_heading(struct path *p)
{
    const struct krait_kthread *t = krait_path_thread(p, p->found->thread);
    const struct krait_kprocess *process = krait_path_process(p, t);
    char ns[KRAIT_FMT_SIZE], from[KRAIT_FMT_SIZE], calls[KRAIT_FMT_SIZE];
    uint64_t begin = (uint64_t)(p->found->segments[0].begin_ns - p->pick.zero_ns);
    krait_buf_str(&p->out, p->look.colour ? KRAIT_BOLD : "");
    if (p->pick.calls) {
        size_t bright;
        const struct krait_func *func = &p->pick.trace->funcs[p->pick.call.func];
        krait_func_row_label(&p->out, func->module, func->name, func->kind, &bright);
        krait_buf_str(&p->out, " on ");
    }
    krait_fmt_safe(&p->out, krait_path_thread_name(p, t));
    krait_buf_fmt(&p->out, "%s%d", *krait_path_thread_name(p, t) ? " " : "", t->tid);
    if (process && process->pid != t->tid) {
        krait_buf_str(&p->out, " of ");
        krait_fmt_safe(&p->out, process->name);
        krait_buf_fmt(&p->out, " %d", process->pid);
    }
    krait_buf_fmt(&p->out, "%s%s%s, from %s on", p->look.colour ? KRAIT_PLAIN : "",
                  p->options->call ? "\n" : "  ", /* with both names a line is long */
                  krait_fmt_ns(ns, krait_path_duration(p)), krait_fmt_ns(from, begin));
    if (p->pick.calls > 1)
        krait_buf_fmt(&p->out, "; call %llu of %s by time taken", (unsigned long long)p->options->nth,
                      krait_fmt_count(calls, p->pick.calls));
    krait_buf_str(&p->out, "\n\n");
}

static int print_for_people(struct path *p, const struct krait_sheet *sheet)
{
    add_heading(p);
    int rc = p->options->segments ? 0 : draw_lanes(p);
    if (!p->options->segments)
        krait_buf_char(&p->out, '\n');
    rc = rc ? rc : krait_sheet_table(sheet, p->limit, &p->look, &p->out);
    krait_sheet_note_limit(&p->notes, p->limit, sheet->rows, "row");
    return rc;
}

/* -- for programs -- */

static void add_call(struct path *p)
{
    const struct krait_why_call *call = &p->pick.call;
    krait_json_key(&p->out, "call");
    if (!p->pick.calls) {
        krait_buf_str(&p->out, "null");
        return;
    }
    const struct krait_func *func = &p->pick.trace->funcs[call->func];
    krait_buf_char(&p->out, '{');
    krait_func_row_json(&p->out, KRAIT_FUNC_ROW(func));
    krait_json_key_u64(&p->out, "begin_ns", call->begin_ns);
    krait_json_key_u64(&p->out, "duration_ns", call->end_ns - call->begin_ns);
    krait_json_key_u64(&p->out, "calls", p->pick.calls);
    krait_buf_char(&p->out, '}');
}

static int print_json(struct path *p, const struct krait_sheet *members)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet segments = { 0 };
    const struct krait_kthread *t = krait_path_thread(p, p->found->thread);
    int rc = krait_path_sheet(p, true, &segments);
    krait_buf_char(&p->out, '{');
    krait_json_key_u64(&p->out, "tid", (uint64_t)t->tid);
    krait_json_key_text(&p->out, "name", krait_path_thread_name(p, t));
    krait_json_key_u64(&p->out, "begin_ns", (uint64_t)p->pick.zero_ns);
    krait_json_key_u64(&p->out, "time_ns", (uint64_t)(p->found->segments[0].begin_ns - p->pick.zero_ns));
    krait_json_key_u64(&p->out, "duration_ns", krait_path_duration(p));
    add_call(p);
    krait_json_key(&p->out, "path");
    rc = rc ? rc : krait_sheet_json(members, p->limit, &p->out);
    krait_json_key(&p->out, "segments");
    rc = rc ? rc : krait_sheet_json(&segments, p->limit, &p->out);
    krait_json_key_u64(&p->out, "lost", p->lost);
    krait_json_lost_events(&p->out, p->lost);
    krait_json_key_u64(&p->out, "forgotten_ns", p->found->forgotten_ns);
    krait_state_json_stolen(&p->out, &p->stolen);
    krait_json_key_text_or_null(&p->out, "damage", p->damage.text);
    krait_buf_str(&p->out, "}\n");
    return rc;
}

static void note_state(struct path *p)
{
    char time[KRAIT_FMT_SIZE];
    if (p->found->forgotten_ns)
        krait_buf_fmt(&p->notes,
                      "forgotten: what happened in %s of the path, unknown here: a wait had more in it than "
                      "--memory holds\n",
                      krait_fmt_ns(time, p->found->forgotten_ns));
    krait_ending_note_kernel_lost(&p->notes, p->pick.trace, p->lost, "the path may miss who woke whom");
    if (p->own)
        krait_buf_str(&p->notes, "missing: who ended a wait (recorded without root): all of it is blocked\n");
    else if (p->blind)
        krait_buf_str(
            &p->notes,
            "missing: interrupts (not recorded): where one ended a wait, the path follows the thread "
            "that it stopped\n");
    krait_state_note_stolen(&p->notes, &p->stolen);
    krait_ending_note_damage(&p->notes, p->damage.text, "");
}

static int make_output(struct path *p, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    const struct path_options *o = p->options;
    int rc = krait_path_sum_members(p);
    rc = rc ? rc : krait_path_sheet(p, o->segments && !o->json, &sheet);
    if (!rc)
        rc = o->json  ? print_json(p, &sheet)
             : o->csv ? krait_sheet_csv(&sheet, p->limit, &p->out)
                      : print_for_people(p, &sheet);
    note_state(p);
    return rc || p->out.failed || p->notes.failed ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

/* -- the verb -- */

static int check_nth(struct path_options *o, struct krait_err *err)
{
    char *end = NULL;
    o->nth = 1;
    if (!o->nth_text)
        return 0;
    if (!o->call)
        return krait_err_set(err, -EINVAL, "--nth needs --call");
    errno = 0;
    o->nth = strtoull(o->nth_text, &end, 10);
    bool is_number = o->nth_text[0] >= '0' && o->nth_text[0] <= '9' && !*end && !errno;
    if (!is_number || !o->nth)
        return krait_err_set(err, -EINVAL, "--nth: '%s' is not a whole number from 1: 1 is the slowest call",
                             o->nth_text);
    return o->nth <= MOST_NTH ? 0 : krait_err_set(err, -EINVAL, "--nth: %d is the most", MOST_NTH);
}

static int check_options(struct path *p, struct path_options *o, int argc, struct krait_err *err)
{
    int rc = krait_select_given(KRAIT_SELECT_KERNEL, argc, err);
    rc = rc ? rc : check_nth(o, err);
    rc = rc ? rc : krait_select_check(&o->select, err);
    return rc ? rc : krait_select_rows(&p->limit, o->limit, o->csv, o->json, err);
}

static int find_stolen(struct path *p)
{
    const struct krait_path_segment *first = p->found->segments, *last = first + p->found->count - 1;
    const struct krait_range range = { (uint64_t)first->begin_ns, (uint64_t)last->end_ns };
    return krait_state_stolen(&p->stolen, p->pick.trace, range, NULL);
}

static int find_path(struct path *p, char **paths, size_t count, struct krait_err *err)
{
    struct krait_kernel_events *events = NULL;
    int rc = krait_trace_open(&p->pick.trace, (const char *const *)paths, count, KRAIT_NEEDS_KERNEL, err);
    rc = rc ? rc : krait_within((void *)&p->options->select, p->pick.trace, "path", err);
    rc = rc ? rc : krait_trace_kernel(p->pick.trace, &events, err);
    rc = rc ? rc : krait_path_pick(&p->pick, p->options, events, err);
    p->pick.range.memory = p->options->memory;
    rc = rc ? rc : krait_critical_path_new(&p->found, events, &p->pick.range, err);
    if (!rc && (krait_own_threads_init(&p->threads, p->pick.trace, p->found->states) || find_stolen(p)))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    if (events) {
        p->lost = krait_kernel_events_lost(events);
        p->own = krait_kernel_events_own(events);
        p->blind = !krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_IRQ_BEGIN) &&
                   !krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_SOFTIRQ_BEGIN);
        p->damage = *krait_kernel_events_damage(events);
    }
    return rc;
}

static int run_path(void *values, int argc, char **argv)
{
    struct path_options *options = values;
    struct path p = { .options = options, .look = krait_terminal_look(stdout) };
    struct krait_err err = { 0 };
    int rc = check_options(&p, options, argc, &err);
    int status = rc ? krait_cmd_usage(&krait_cmd_path, &err) : 0;
    rc = rc ? rc : find_path(&p, argv, (size_t)argc, &err);
    rc = rc ? rc : make_output(&p, &err);
    rc = rc ? rc : krait_terminal_print(&p.out, &p.notes, "the path", &err);
    krait_select_done(&options->select);
    krait_own_threads_done(&p.threads);
    krait_path_pick_done(&p.pick);
    krait_critical_path_free(p.found);
    free(p.members);
    free(p.member_of);
    krait_buf_done(&p.out);
    krait_buf_done(&p.notes);
    krait_arena_done(&p.texts);
    return status || !rc ? status : krait_cmd_fail(&krait_cmd_path, &err);
}

#define OPT(field) offsetof(struct path_options, field)

static const struct krait_opt path_opts[] = {
    { "call", 0, KRAIT_OPT_STR, "FUNCTION", OPT(call),
      "Follow the slowest call of FUNCTION, from its beginning to its end" },
    { "nth", 0, KRAIT_OPT_STR, "N", OPT(nth_text), "With --call: follow the Nth slowest call (default: 1)" },
    { "segments", 0, KRAIT_OPT_FLAG, NULL, OPT(segments),
      "List the segments of the path in the order of time" },
    { "limit", 'n', KRAIT_OPT_STR, "N", OPT(limit),
      "Show N rows, 0 for all (default: 40 in a table, all in CSV and JSON)" },
    KRAIT_SELECT_TIME_OPTS(struct path_options, select),
    { "thread", 0, KRAIT_OPT_LIST, "GLOB", OPT(select.threads),
      "Follow the thread with this name or id; with --call, choose among calls on matching threads; may be "
      "repeated" },
    { "process", 0, KRAIT_OPT_LIST, "GLOB", OPT(select.processes),
      "Choose among processes with this name or id; may be repeated" },
    KRAIT_SELECT_TO_OPT(struct path_options, select),
    { "memory", 0, KRAIT_OPT_SIZE, "SIZE", OPT(memory),
      "Keep up to SIZE of events during one wait; krait forgets the oldest part of a longer wait (default: 256M)" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print CSV, times in nanoseconds" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in nanoseconds" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_path = {
    .name = "path",
    .operands = "TRACE...",
    .summary = "Show the critical path of a thread: what its wall time depended on",
    .description =
        "Reads the kernel events of a recording (krait record --kernel), or a kernel trace recorded by "
        "LTTng.\n\n"
        "While a thread runs, the path is on that thread. While it waits, the path is on the cause that "
        "ended the wait: the thread that woke it (the waker) while the waker was running, and whatever the "
        "waker waited for; or a timer, the disk, the network. krait follows the wakeups backward, through "
        "threads "
        "and interrupts, and shows how much of the time each of them accounts for. To make the thread "
        "faster, make something on its path faster.\n\n"
        "--thread selects the thread, by its number or by a name that no other thread has. The default is "
        "the main thread of the recorded program. --call selects both the thread and the time. Times count "
        "from the "
        "first event of the kernel or of the program, whichever is earlier.",
    .examples = "krait path trace\n"
                "# Why did this call take so long?\n"
                "krait path trace --call app.load\n"
                "# The third slowest call, step by step\n"
                "krait path trace --call app.load --nth 3 --segments\n"
                "# A thread of an LTTng trace\n"
                "krait path lttng/kernel --thread 4711 --from 1s --until 1.1s\n"
                "# For other programs\n"
                "krait path trace --json\n",
    .opts = path_opts,
    .values_size = sizeof(struct path_options),
    .run = run_path,
};
