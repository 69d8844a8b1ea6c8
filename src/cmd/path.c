/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait path`: what a thread's wall time really went through.
 */
#include "cmd/path.h"

#include "base/array.h"
#include "base/fmt.h"
#include "base/json.h"
#include "cmd/cmds.h"
#include "cmd/func_row.h"
#include "cmd/sheet.h"
#include "cmd/terminal.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel/own_threads.h"
#include "view/lane.h"

#include <string.h>

enum { TABLE_ROWS = 40, LANE_ROWS = 12, MILLION = 1000000, MOST_NTH = 100000 };

/* A thread, or a kind of thing that is waited for, and its part of the path. */
struct member {
    uint64_t ns[KRAIT_PATH_KIND_COUNT];
    uint64_t total_ns, segments;
    uint32_t thread;           /* index; KRAIT_NO_ID: */
    enum krait_path_kind kind; /* what is waited for */
    uint32_t device;           /* see struct krait_path_segment */
    char label[48];            /* what is waited for: "disk vda" */
    uint32_t lane;
};

struct path {
    const struct path_options *options;
    struct path_pick pick;
    struct krait_critical_path *found;
    struct krait_own_threads threads; /* of the calls' part */
    struct member *members;           /* in the order in which the path meets them */
    uint32_t member_count, member_cap;
    uint32_t *member_of; /* by segment */
    uint64_t lost;
    bool own;   /* nothing but the program's own switches is known */
    bool blind; /* interrupts are not known */
    struct krait_err damage;
    uint32_t limit;
    struct krait_table_look look;
    struct krait_arena texts; /* of cells */
    struct krait_buf out, notes;
};

static const char *const kind_names[] = {
#define X(name, text) text,
    KRAIT_PATH_KINDS(X)
#undef X
};

/* -- names -- */

static const struct krait_kthread *thread_at(const struct path *p, uint32_t thread)
{
    return p->found->states->threads[thread];
}

/* Python's name for it where the recording has one, else the kernel's. */
static const char *thread_name(const struct path *p, const struct krait_kthread *t)
{
    const char *recorded = krait_own_thread_name(&p->threads, t);
    return recorded ? recorded : t->name;
}

static const struct krait_kprocess *process_of(const struct path *p, const struct krait_kthread *t)
{
    return t->process == KRAIT_NO_ID ? NULL : &p->found->states->processes[t->process];
}

static const char *device_name(const struct path *p, uint32_t device)
{
    return device == KRAIT_NO_ID ? NULL : krait_kernel_device(p->found->states, device);
}

static bool is_thread(const struct krait_competitor *had)
{
    return had->by && had->by != KRAIT_RUN_UNKNOWN;
}

/* Who had the CPU for longest that a segment's thread was ready for; NULL: nobody, or that is not known. */
static const struct krait_kthread *by_thread(const struct path *p, const struct krait_path_segment *s)
{
    const struct krait_competitor *had = s->had_count ? &p->found->had[s->had] : NULL;
    return krait_kernel_cause(p->found->states, krait_competitors_longest(had, s->had_count));
}

/* One of them: for people with its share where there are more, for programs with number and nanoseconds. */
static void tell_had(struct path *p, struct krait_buf *text, const struct krait_path_segment *s,
                     const struct krait_competitor *had)
{
    const struct krait_kthread *t = is_thread(had) ? krait_kernel_cause(p->found->states, had->by) : NULL;
    char share[KRAIT_FMT_SIZE];
    krait_buf_str(text, text->len ? ", " : "");
    krait_fmt_safe(text, t ? thread_name(p, t) : had->by ? "unknown" : "idle");
    if (p->options->json || p->options->csv)
        krait_buf_fmt(text, " %d: %llu", t ? t->tid : 0, (unsigned long long)had->ns);
    else if (s->had_count > 1)
        krait_buf_fmt(text, " %s", krait_fmt_share(share, had->ns, (uint64_t)(s->end_ns - s->begin_ns)));
}

/* All who had it; for people also the time in which nobody had it, or it is not known who. */
static const char *behind(struct path *p, const struct krait_path_segment *s)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool for_people = !p->options->json && !p->options->csv;
    for (uint32_t i = 0; i < s->had_count && by_thread(p, s); i++) {
        const struct krait_competitor *had = &p->found->had[s->had + i];
        if (for_people || is_thread(had))
            tell_had(p, &text, s, had);
    }
    return text.len ? krait_arena_strdup(&p->texts, text.data) : NULL;
}

/* -- who takes part -- */

static uint64_t duration(const struct path *p)
{
    const struct krait_critical_path *found = p->found;
    return (uint64_t)(found->segments[found->count - 1].end_ns - found->segments[0].begin_ns);
}

static void label_device(const struct path *p, struct member *member)
{
    const char *device = device_name(p, member->device);
    const char *kind = member->kind == KRAIT_PATH_IPI ? "another CPU" : kind_names[member->kind];
    snprintf(member->label, sizeof(member->label), "%s%s%s", kind, device ? " " : "", device ? device : "");
}

/* The member of a key, new where it was not met yet; NULL when memory is out. */
static struct member *member_of(struct path *p, struct krait_map *keys, const struct krait_path_segment *s)
{
    enum krait_path_kind kind = (enum krait_path_kind)s->kind;
    bool is_device = krait_path_is_device(kind);
    uint64_t key = is_device ? (uint64_t)(kind + 1) << 32 | s->device : s->thread;
    const uint64_t *known = krait_map_get(keys, key);
    if (known)
        return &p->members[*known];
    if (!KRAIT_GROW(p->members, p->member_cap, p->member_count + 1) ||
        krait_map_put(keys, key, p->member_count))
        return NULL;
    struct member *member = &p->members[p->member_count++];
    *member =
        (struct member){ .thread = is_device ? KRAIT_NO_ID : s->thread, .kind = kind, .device = s->device };
    if (is_device)
        label_device(p, member);
    return member;
}

static int sum_members(struct path *p)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map keys = { 0 };
    p->member_of = calloc(p->found->count, sizeof(*p->member_of));
    if (!p->member_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->found->count; i++) {
        const struct krait_path_segment *s = &p->found->segments[i];
        struct member *member = member_of(p, &keys, s);
        if (!member)
            return -ENOMEM;
        uint64_t ns = (uint64_t)(s->end_ns - s->begin_ns);
        member->ns[s->kind] += ns;
        member->total_ns += ns;
        member->segments++;
        p->member_of[i] = (uint32_t)(member - p->members);
    }
    return 0;
}

static void add_member_name(struct krait_buf *out, const struct path *p, const struct member *member)
{
    if (member->thread == KRAIT_NO_ID) {
        krait_fmt_safe(out, member->label);
        return;
    }
    const struct krait_kthread *t = thread_at(p, member->thread);
    const char *name = thread_name(p, t);
    krait_fmt_safe(out, name);
    krait_buf_fmt(out, "%s%d", *name ? " " : "", t->tid);
}

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
    const struct member *members = ctx;
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
            struct member *member = &p->members[i];
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
        const struct member *last = NULL;
        for (uint32_t i = 0; i < p->member_count; i++) {
            sharing += p->members[i].lane == lane;
            last = p->members[i].lane == lane ? &p->members[i] : last;
        }
        if (sharing == 1)
            add_member_name(texts, p, last);
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
    struct krait_lanes lanes = { .rows = rows,
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
    return krait_lanes_print(&lanes, &p->look, &p->out);
}

/* -- tables -- */

#define NS(title, key, drop)                                         \
    {                                                                \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DASH \
    }
#define QUIET_NS(title, key, drop)                                                       \
    {                                                                                    \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET \
    }
#define ID(title, key, drop)                                             \
    {                                                                    \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH \
    }
#define NAME(title, key, min, drop, flags)                                                           \
    {                                                                                                \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, key, KRAIT_SHEET_NAME, flags \
    }

static const struct krait_sheet_column member_columns[] = {
    { { "share", 0, 0, 0 }, "share", KRAIT_SHEET_SHARE, 0 },
    NS("time", "path_ns", 0),
    NS("runs", "running_ns", 3),
    QUIET_NS("woken", "woken_ns", 4),
    QUIET_NS("preempted", "preempted_ns", 5),
    QUIET_NS("irq", "interrupted_ns", 6),
    QUIET_NS("waited for", "waited_ns", 3),
    QUIET_NS("blocked", "blocked_ns", 4),
    QUIET_NS("unknown", "unknown_ns", 8),
    { { "parts", 0, 0, 7 }, "segments", KRAIT_SHEET_COUNT, 0 },
    NAME("kind", "kind", 0, 0, KRAIT_SHEET_DATA),
    NAME("device", "device", 0, 0, KRAIT_SHEET_DATA),
    NAME("host", "host", 0, 0, KRAIT_SHEET_DATA),
    ID("tid", "tid", 0),
    ID("pid", "pid", 9),
    NAME("process", "process", 8, 8, KRAIT_SHEET_DASH),
    NAME("who", "name", 12, 0, 0),
};

static const struct krait_sheet_column segment_columns[] = {
    { { "time", 0, 0, 0 }, "time_ns", KRAIT_SHEET_TIME, 0 },
    NS("took", "duration_ns", 0),
    NAME("what", "kind", 11, 0, 0),
    NAME("device", "device", 0, 0, KRAIT_SHEET_DATA),
    ID("tid", "tid", 0),
    NAME("thread", "name", 8, 0, 0),
    NAME("in the call", "syscall", 8, 0, KRAIT_SHEET_DASH),
    NAME("by", "by_name", 0, 0, KRAIT_SHEET_DATA),
    { { "by tid", 0, 0, 0 }, "by_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA },
    NAME("behind", "behind", 8, 1, KRAIT_SHEET_DASH),
    { { "depth", 0, 0, 2 }, "depth", KRAIT_SHEET_COUNT, 0 },
    NAME("host", "host", 0, 0, KRAIT_SHEET_DATA),
};

static struct krait_sheet_cell *put(struct krait_sheet_cell *cell, uint64_t number)
{
    cell->number = number;
    return cell + 1;
}

static struct krait_sheet_cell *put_name(struct krait_sheet_cell *cell, const char *name)
{
    cell->name = name;
    return cell + 1;
}

static const char *host_name(const struct path *p, uint32_t host)
{
    return *p->found->hosts[host] ? p->found->hosts[host] : NULL;
}

static void fill_member(const struct path *p, const struct member *m, struct krait_sheet_cell *cell)
{
    const struct krait_kthread *t = m->thread == KRAIT_NO_ID ? NULL : thread_at(p, m->thread);
    const struct krait_kprocess *process = t ? process_of(p, t) : NULL;
    uint64_t share = (uint64_t)((unsigned __int128)m->total_ns * MILLION / duration(p));
    cell = put(put(cell, share), m->total_ns);
    cell = put(put(cell, m->ns[KRAIT_PATH_RUNNING]), m->ns[KRAIT_PATH_WOKEN]);
    cell = put(put(cell, m->ns[KRAIT_PATH_PREEMPTED]), m->ns[KRAIT_PATH_INTERRUPTED]);
    cell = put(cell, t ? 0 : m->total_ns);
    cell = put(put(cell, m->ns[KRAIT_PATH_BLOCKED]), m->ns[KRAIT_PATH_UNKNOWN]);
    cell = put(cell, m->segments);
    cell = put_name(put_name(cell, t ? "thread" : kind_names[m->kind]), device_name(p, m->device));
    cell = put_name(cell, host_name(p, 0));
    cell = put(cell, t ? (uint64_t)t->tid : KRAIT_SHEET_NONE);
    cell = put(cell, process ? (uint64_t)process->pid : KRAIT_SHEET_NONE);
    cell = put_name(cell, process ? process->name : NULL);
    put_name(cell, t ? thread_name(p, t) : m->label);
}

/* What a segment is; people see the device with it, "disk vda". */
static const char *what(const struct path *p, const struct krait_path_segment *s)
{
    const struct member *member = &p->members[p->member_of[s - p->found->segments]];
    bool for_people = !p->options->json && !p->options->csv;
    return for_people && s->device != KRAIT_NO_ID ? member->label : kind_names[s->kind];
}

static void fill_segment(struct path *p, const struct krait_path_segment *s, struct krait_sheet_cell *cell)
{
    const struct krait_kernel_states *states = p->found->states;
    const struct krait_kthread *t = thread_at(p, s->thread), *by = by_thread(p, s);
    cell = put(cell, (uint64_t)(s->begin_ns - p->pick.zero_ns));
    cell = put_name(put(cell, (uint64_t)(s->end_ns - s->begin_ns)), what(p, s));
    cell = put_name(cell, device_name(p, s->device));
    cell = put_name(put(cell, (uint64_t)t->tid), thread_name(p, t));
    cell = put_name(cell, s->call == KRAIT_NO_ID ? NULL : states->calls.texts[s->call]);
    cell = put(put_name(cell, by ? thread_name(p, by) : NULL), by ? (uint64_t)by->tid : KRAIT_SHEET_NONE);
    cell = put_name(cell, behind(p, s));
    put_name(put(cell, s->depth), host_name(p, s->host));
}

static int make_sheet(struct path *p, bool of_segments, struct krait_sheet *sheet)
{
    *sheet =
        of_segments
            ? (struct krait_sheet){ segment_columns, KRAIT_ARRAY_LEN(segment_columns), NULL, 0, 0, false }
            : (struct krait_sheet){ member_columns, KRAIT_ARRAY_LEN(member_columns), NULL, 0, 0, false };
    for (uint32_t i = 0; i < (of_segments ? p->found->count : p->member_count); i++) {
        struct krait_sheet_cell *cell = krait_sheet_row(sheet);
        if (!cell)
            return -ENOMEM;
        if (of_segments)
            fill_segment(p, &p->found->segments[i], cell);
        else
            fill_member(p, &p->members[i], cell);
    }
    return of_segments ? 0 : krait_sheet_sort(sheet, "path_ns", NULL);
}

/* -- for people -- */

/* Whose path it is, how long, and since when. */
static void add_heading(struct path *p)
{
    const struct krait_kthread *t = thread_at(p, p->found->thread);
    const struct krait_kprocess *process = process_of(p, t);
    char ns[KRAIT_FMT_SIZE], calls[KRAIT_FMT_SIZE];
    uint64_t begin = (uint64_t)(p->found->segments[0].begin_ns - p->pick.zero_ns);
    krait_buf_str(&p->out, p->look.colour ? KRAIT_BOLD : "");
    if (p->pick.calls) {
        size_t bright;
        const struct krait_func *func = &p->pick.trace->funcs[p->pick.call.func];
        krait_func_row_label(&p->out, func->module, func->name, func->kind, &bright);
        krait_buf_str(&p->out, " on ");
    }
    krait_fmt_safe(&p->out, thread_name(p, t));
    krait_buf_fmt(&p->out, "%s%d", *thread_name(p, t) ? " " : "", t->tid);
    if (process && process->pid != t->tid) {
        krait_buf_str(&p->out, " of ");
        krait_fmt_safe(&p->out, process->name);
        krait_buf_fmt(&p->out, " %d", process->pid);
    }
    krait_buf_fmt(&p->out, "%s%s%s, from %llu.%09llu s on", p->look.colour ? KRAIT_PLAIN : "",
                  p->options->call ? "\n" : "  ", /* with both names a line is long */
                  krait_fmt_ns(ns, duration(p)), (unsigned long long)(begin / KRAIT_NS_PER_S),
                  (unsigned long long)(begin % KRAIT_NS_PER_S));
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
    if (p->limit && sheet->rows > p->limit)
        krait_buf_fmt(&p->notes, "%u of %u rows; --limit 0 shows all\n", p->limit, sheet->rows);
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
    krait_func_row_json(&p->out, func->name, func->module, func->file, func->line,
                        krait_func_row_kind(func->kind));
    krait_json_key_u64(&p->out, "begin_ns", call->begin_ns);
    krait_json_key_u64(&p->out, "duration_ns", call->end_ns - call->begin_ns);
    krait_json_key_u64(&p->out, "calls", p->pick.calls);
    krait_buf_char(&p->out, '}');
}

static int print_json(struct path *p, const struct krait_sheet *members)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet segments = { 0 };
    const struct krait_kthread *t = thread_at(p, p->found->thread);
    int rc = make_sheet(p, true, &segments);
    krait_buf_char(&p->out, '{');
    krait_json_key_u64(&p->out, "tid", (uint64_t)t->tid);
    krait_json_key_text(&p->out, "name", thread_name(p, t));
    krait_json_key_u64(&p->out, "begin_ns", (uint64_t)p->pick.zero_ns);
    krait_json_key_u64(&p->out, "time_ns", (uint64_t)(p->found->segments[0].begin_ns - p->pick.zero_ns));
    krait_json_key_u64(&p->out, "duration_ns", duration(p));
    add_call(p);
    krait_json_key(&p->out, "path");
    rc = rc ? rc : krait_sheet_json(members, p->limit, &p->out);
    krait_json_key(&p->out, "segments");
    rc = rc ? rc : krait_sheet_json(&segments, p->limit, &p->out);
    krait_json_key_u64(&p->out, "lost", p->lost);
    krait_json_key_u64(&p->out, "forgotten_ns", p->found->forgotten_ns);
    krait_json_key_text_or_null(&p->out, "damage", p->damage.text);
    krait_buf_str(&p->out, "}\n");
    return rc;
}

static void note_state(struct path *p)
{
    char count[KRAIT_FMT_SIZE], time[KRAIT_FMT_SIZE];
    if (p->found->forgotten_ns)
        krait_buf_fmt(&p->notes,
                      "forgotten: what happened in %s of the path, unknown here: a wait had more in it than "
                      "--memory holds\n",
                      krait_fmt_ns(time, p->found->forgotten_ns));
    if (p->lost)
        krait_buf_fmt(&p->notes, "lost: %s of the kernel's: the path may miss who woke whom\n",
                      krait_fmt_counted(count, p->lost, "event"));
    if (p->own)
        krait_buf_str(&p->notes, "missing: who ended a wait (recorded without root): all of it is blocked\n");
    else if (p->blind)
        krait_buf_str(
            &p->notes,
            "missing: interrupts (not recorded): where one ended a wait, the path follows the thread "
            "that it stopped\n");
    if (!p->damage.code)
        return;
    krait_buf_str(&p->notes, "damaged: ");
    krait_fmt_safe(&p->notes, p->damage.text);
    krait_buf_str(&p->notes, "; krait read what is whole\n");
}

static int make_output(struct path *p, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_sheet_done) struct krait_sheet sheet = { 0 };
    const struct path_options *o = p->options;
    int rc = sum_members(p);
    rc = rc ? rc : make_sheet(p, o->segments && !o->json, &sheet);
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
    if (o->csv && o->json)
        return krait_err_set(err, -EINVAL, "--csv and --json exclude each other");
    if (argc < 1)
        return krait_err_set(err, -EINVAL,
                             "no trace given; name the folder of a recording made with --kernel");
    int rc = check_nth(o, err);
    rc = rc ? rc : krait_select_check(&o->select, err);
    return rc ? rc : krait_select_limit(&p->limit, o->limit, o->csv || o->json ? 0 : TABLE_ROWS, err);
}

static int find_path(struct path *p, char **paths, size_t count, struct krait_err *err)
{
    struct krait_kernel_events *events = NULL;
    int rc = krait_trace_open(&p->pick.trace, (const char *const *)paths, count, KRAIT_NEEDS_KERNEL, err);
    rc = rc ? rc : krait_trace_kernel(p->pick.trace, &events, err);
    rc = rc ? rc : krait_path_pick(&p->pick, p->options, events, err);
    p->pick.range.memory = p->options->memory;
    rc = rc ? rc : krait_critical_path_new(&p->found, events, &p->pick.range, err);
    if (!rc && krait_own_threads_init(&p->threads, p->pick.trace, p->found->states))
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
      "Keep up to SIZE of what happens during one wait; krait forgets the oldest part of a longer wait "
      "(default: 256M)" },
    { "csv", 0, KRAIT_OPT_FLAG, NULL, OPT(csv), "Print CSV, times in nanoseconds" },
    { "json", 0, KRAIT_OPT_FLAG, NULL, OPT(json), "Print one JSON object, times in nanoseconds" },
    KRAIT_OPTS_END,
};

const struct krait_cmd krait_cmd_path = {
    .name = "path",
    .operands = "TRACE...",
    .summary = "Show the critical path of a thread: what its wall time went through",
    .description =
        "Reads the kernel events of a recording (krait record --kernel), or a kernel trace recorded by "
        "LTTng.\n\n"
        "While a thread runs, the path is on that thread. While it waits, the path is on what ended the "
        "wait: the thread that woke it (the waker) while the waker was running, and what the waker waited "
        "for in turn; or a timer, the disk, the network. krait follows the wakeups backward, through threads "
        "and interrupts, and shows how much of the time each of them accounts for. To make the thread "
        "faster, make something on its path faster.\n\n"
        "--thread chooses the thread: a number, or a name that only one thread has. The default is the main "
        "thread of the recorded program. --call chooses both the thread and the time. Times count from the "
        "first event of the kernel or of the program, whichever is earlier.",
    .examples = "krait path trace\n"
                "# Why did this call take so long?\n"
                "krait path trace --call app.load\n"
                "# The third slowest call, step by step\n"
                "krait path trace --call app.load --nth 3 --segments\n"
                "# A thread of an LTTng trace\n"
                "krait path lttng/kernel --thread 4711 --from 1s --to 1.1s\n"
                "# For other programs\n"
                "krait path trace --json\n",
    .opts = path_opts,
    .values_size = sizeof(struct path_options),
    .run = run_path,
};
