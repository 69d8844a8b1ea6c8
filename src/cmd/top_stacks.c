/* SPDX-License-Identifier: Apache-2.0
 *
 * The current stacks as cells, threads side by side. Rows are depth, with the outermost function on top. The filled part of a
 * cell shows how much of the last interval the function was there; its colour shows what the thread does.
 *
 *     MainThread 4711         cpu  worker 4712             lock
 *     <module>━━━━━━━━━━━━ 8.02 s  run━━━━━━━━━━━━━━━━━━ 8.02 s
 *     long━━━━━━━━━        0.51 s  get━━                 0.11 s
 *
 * A function counts as being there since the first of successive samples that have it in the same place below the same callers.
 *
 * A generator that was met there and is suspended now has a cell beside the function that its caller calls in its place:
 *
 *     consume━━━━━━━━━━━━━━━━━━ 8.02 s
 *     spin━━━━━      0.26 s  ┊numbers┄┄┄┄ 0.26 s
 */
#include "base/array.h"
#include "cmd/top.h"
#include "event/own.h"
#include "remote/generator.h"
#include "view/width.h"

#include <string.h>

struct frame {
    const struct krait_remote_code *code; /* compared, not read: it may be freed */
    uint64_t number, addr, code_addr;
    uint32_t name;
    int32_t line; /* that it was at last; 0: none */
    uint64_t since_ns;
};

/* A suspended generator. */
struct waiting {
    struct frame frame; /* since_ns: when it was met suspended */
    uint32_t depth;     /* where it was */
};

enum { WAITING_MOST = 8 }; /* of a thread; the newest are kept */

struct top_stacks_thread {
    pid_t pid, tid;
    char name[32]; /* the kernel's */
    enum top_state state;
    bool met;             /* this round has read it */
    uint64_t ran_ns;      /* when it was last read on a CPU, or waiting for the GIL */
    struct frame *frames; /* the outermost first */
    uint32_t count, cap;
    struct waiting waiting[WAITING_MOST]; /* the oldest first */
    uint32_t waiting_count;
};

/* -- reading -- */

static void thread_done(struct top_stacks_thread *thread)
{
    free(thread->frames);
}

void top_stacks_done(struct top_stacks *stacks)
{
    for (uint32_t i = 0; i < stacks->count; i++)
        thread_done(&stacks->threads[i]);
    free(stacks->threads);
    krait_map_done(&stacks->places);
    krait_strtab_done(&stacks->names);
    *stacks = (struct top_stacks){ 0 };
}

static uint64_t key_of(pid_t pid, pid_t tid)
{
    return (uint64_t)pid << 32 | (uint32_t)tid;
}

static struct top_stacks_thread *thread_of(struct top_stacks *stacks, pid_t pid, pid_t tid)
{
    const uint64_t *place = krait_map_get(&stacks->places, key_of(pid, tid));
    if (place && *place)
        return &stacks->threads[*place - 1];
    krait_map_trim(&stacks->places, &stacks->most_places);
    if (!KRAIT_GROW(stacks->threads, stacks->cap, stacks->count + 1) ||
        krait_map_put(&stacks->places, key_of(pid, tid), stacks->count + 1ull))
        return NULL;
    struct top_stacks_thread *thread = &stacks->threads[stacks->count++];
    *thread = (struct top_stacks_thread){ .pid = pid, .tid = tid };
    return thread;
}

static void name_thread(struct top_stacks_thread *thread, const struct krait_os_tasks *tasks)
{
    const struct krait_os_task *task = krait_tasks_find(tasks, thread->tid);
    if (task)
        memcpy(thread->name, task->name, sizeof(thread->name));
}

static bool is_frame(const struct frame *known, const struct krait_remote_frame *frame)
{
    return known->code == frame->code && known->number == frame->code->number && known->addr == frame->addr;
}

static bool is_suspended(const struct krait_remote *remote, const struct frame *known)
{
    return known->addr && krait_generator_is_suspended(remote, known->addr, known->code_addr);
}

/* Keeps the generators whose callers are still there, the outermost `same` frames, which the stack does not have, and which are
 * still suspended: one that the stack has may be by now. */
static void keep_waiting(struct top_stacks_thread *to, const struct krait_remote *remote, uint32_t same,
                         const struct krait_remote_frame *innermost, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < to->waiting_count; i++) {
        const struct waiting *waiting = &to->waiting[i];
        uint32_t depth = waiting->depth;
        bool runs = depth < count && is_frame(&waiting->frame, &innermost[count - 1 - depth]);
        if (depth <= same && !runs && is_suspended(remote, &waiting->frame))
            to->waiting[kept++] = *waiting;
    }
    to->waiting_count = kept;
}

/* What its caller called before may be suspended now. */
static void add_waiting(struct top_stacks_thread *to, const struct krait_remote *remote, uint32_t depth,
                        uint64_t now_ns)
{
    if (!depth || depth >= to->count || !is_suspended(remote, &to->frames[depth]))
        return;
    if (to->waiting_count == WAITING_MOST)
        memmove(to->waiting, to->waiting + 1, --to->waiting_count * sizeof(*to->waiting));
    struct waiting *waiting = &to->waiting[to->waiting_count++];
    *waiting = (struct waiting){ to->frames[depth], depth };
    waiting->frame.since_ns = now_ns;
}

/* Frames that were there in the last round keep their times. Returns 0 or -ENOMEM. */
static int note_frames(struct top_stacks *stacks, struct top_stacks_thread *to,
                       const struct krait_remote *remote, const struct krait_remote_frame *innermost,
                       uint32_t count)
{
    uint32_t same = 0;
    if (!KRAIT_GROW(to->frames, to->cap, count))
        return -ENOMEM;
    while (same < to->count && same < count && is_frame(&to->frames[same], &innermost[count - 1 - same]))
        same++;
    keep_waiting(to, remote, same, innermost, count);
    add_waiting(to, remote, same, stacks->now_ns);
    for (uint32_t i = 0; i < same; i++)
        to->frames[i].line = innermost[count - 1 - i].line;
    for (uint32_t i = same; i < count; i++) {
        const struct krait_remote_frame *frame = &innermost[count - 1 - i];
        KRAIT_AUTO_BUF text = { 0 };
        krait_remote_put_name(&text, frame->code);
        uint32_t name = text.failed ? KRAIT_NO_ID : krait_strtab_add(&stacks->names, text.data, text.len);
        if (name == KRAIT_NO_ID)
            return -ENOMEM;
        to->frames[i] = (struct frame){ .code = frame->code,
                                        .number = frame->code->number,
                                        .addr = frame->addr,
                                        .code_addr = frame->code->addr,
                                        .name = name,
                                        .line = frame->line,
                                        .since_ns = stacks->now_ns };
    }
    to->count = count;
    return 0;
}

/* Without krait's own functions, and with the C function that the innermost one has called. Returns how many there are. */
static uint32_t copy_shown(struct krait_remote_frame *to, const struct krait_remote_stacks *from,
                           const struct krait_remote_thread *thread)
{
    const struct krait_remote_frame *frames = from->frames + thread->first;
    uint32_t shown = 0;
    if (thread->called && thread->count)
        to[shown++] = (struct krait_remote_frame){ .code = thread->called };
    for (uint32_t i = 0; i < thread->count; i++) {
        if (!krait_own_file(frames[i].code->file))
            to[shown++] = frames[i];
    }
    return shown;
}

int top_stacks_add(struct top_stacks *stacks, const struct krait_remote *remote,
                   const struct krait_remote_stacks *from)
{
    pid_t pid = remote->pid;
    KRAIT_AUTO_FREE struct krait_remote_frame *shown = calloc(from->frame_count + 2, sizeof(*shown));
    int rc = shown ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < from->thread_count && !rc; i++) {
        const struct krait_remote_thread *read = &from->threads[i];
        struct top_stacks_thread *thread = read->tid ? thread_of(stacks, pid, read->tid) : NULL;
        if (!thread)
            return read->tid ? -ENOMEM : 0;
        thread->met = true;
        if (read->failed)
            continue;
        name_thread(thread, &from->tasks);
        thread->state = top_state_of(pid, read);
        if (thread->state == TOP_CPU || thread->state == TOP_GIL)
            thread->ran_ns = stacks->now_ns;
        uint32_t count = copy_shown(shown, from, read);
        rc = note_frames(stacks, thread, remote, shown, count);
    }
    return rc;
}

void top_stacks_begin_round(struct top_stacks *stacks, uint64_t now_ns)
{
    stacks->now_ns = now_ns;
    for (uint32_t i = 0; i < stacks->count; i++)
        stacks->threads[i].met = false;
}

void top_stacks_end_round(struct top_stacks *stacks)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stacks->count; i++) {
        struct top_stacks_thread *thread = &stacks->threads[i];
        uint64_t *place = krait_map_get(&stacks->places, key_of(thread->pid, thread->tid));
        *place = thread->met ? kept + 1 : 0;
        if (thread->met)
            stacks->threads[kept++] = *thread;
        else
            thread_done(thread);
    }
    stacks->count = kept;
}

/* -- the picture -- */

enum { CELL_LEAST = 25, GAP = 2, TIME_LEAST = 12, WAITING_LEAST = 10 };

struct picture {
    const struct top_stacks *stacks;
    const struct krait_table_look *look;
    uint64_t interval_ns;
    uint32_t cell;      /* columns of one */
    const char *filler; /* between its texts */
    bool lines;         /* names have their lines */
    struct krait_buf *out;
};

static const struct {
    const char *word, *colour;
} looks[TOP_STATES] = {
    [TOP_CPU] = { "cpu", "\033[30;42m" },     [TOP_GIL] = { "gil", "\033[30;43m" },
    [TOP_LOCK] = { "lock", "\033[37;44m" },   [TOP_DISK] = { "disk", "\033[37;44m" },
    [TOP_NETWORK] = { "net", "\033[37;44m" }, [TOP_POLL] = { "poll", "\033[37;44m" },
    [TOP_TIMER] = { "timer", "\033[37;44m" }, [TOP_CHILD] = { "child", "\033[37;44m" },
    [TOP_OTHER] = { "other", "\033[37;44m" },
};

static void add_blanks(struct krait_buf *to, uint32_t count)
{
    krait_buf_fmt(to, "%*s", (int)count, "");
}

/* Text on the left, and a shorter one on the right if there is room. Between them, up to the column `filled`, is a line. */
static void compose(struct krait_buf *to, const struct picture *p, const char *left, const char *right,
                    uint32_t filled)
{
    uint32_t behind = p->cell >= TIME_LEAST ? (uint32_t)strlen(right) : 0;
    KRAIT_AUTO_BUF safe = { 0 };
    krait_fmt_safe(&safe, left);
    size_t before = to->len;
    krait_width_shorten(to, safe.data ? safe.data : "", p->cell - behind - (behind > 0), p->look->utf8);
    uint32_t at = to->data ? krait_width_of(to->data + before, to->len - before) : 0;
    for (; at + behind < p->cell; at++)
        krait_buf_str(to, at >= filled || at + behind + 1 >= p->cell ? " " : p->filler);
    krait_buf_str(to, behind ? right : "");
    to->failed |= safe.failed;
}

static void add_head(const struct picture *p, const struct top_stacks_thread *thread)
{
    KRAIT_AUTO_BUF name = { 0 };
    krait_buf_fmt(&name, "%s %d", thread->name, thread->tid);
    krait_buf_str(p->out, p->look->colour ? KRAIT_BOLD : "");
    compose(p->out, p, name.data ? name.data : "", looks[thread->state].word, 0);
    krait_buf_str(p->out, p->look->colour ? KRAIT_PLAIN : "");
    p->out->failed |= name.failed;
}

/* "spin", or "spin:12". */
static void add_name(struct krait_buf *to, const struct picture *p, const struct frame *frame)
{
    krait_buf_str(to, p->stacks->names.texts[frame->name]);
    if (p->lines && frame->line > 0)
        krait_buf_fmt(to, ":%d", frame->line);
}

/* Two decimals: samples are not more exact. */
static void format_time(char *to, size_t size, uint64_t ns)
{
    double s = (double)ns / 1e9;
    snprintf(to, size, s < 100 ? "%.2f s" : "%.0f s", s);
}

static void add_frame(const struct picture *p, const struct top_stacks_thread *thread,
                      const struct frame *frame)
{
    char time[32];
    KRAIT_AUTO_BUF text = { 0 }, name = { 0 };
    uint64_t ns = p->stacks->now_ns - frame->since_ns, part = KRAIT_MIN(ns, p->interval_ns);
    uint32_t filled =
        (uint32_t)((double)p->cell * (double)part / (double)KRAIT_MAX(p->interval_ns, 1u) + 0.5);
    bool colour = p->look->colour;
    format_time(time, sizeof(time), ns);
    add_name(&name, p, frame);
    compose(&text, p, name.data ? name.data : "", time, colour ? 0 : filled);
    size_t split = colour && text.data ? krait_width_fit(text.data, text.len, filled) : 0;
    if (split) {
        krait_buf_str(p->out, looks[thread->state].colour);
        krait_buf_add(p->out, text.data, split);
        krait_buf_str(p->out, KRAIT_PLAIN);
    }
    krait_buf_add(p->out, text.data ? text.data + split : "", text.len - split);
    p->out->failed |= text.failed || name.failed;
}

static void add_waiting_cell(const struct picture *p, const struct waiting *waiting)
{
    char time[32];
    KRAIT_AUTO_BUF name = { 0 };
    struct picture inside = *p;
    inside.cell = p->cell - 1;
    inside.filler = p->look->utf8 ? "┄" : ".";
    format_time(time, sizeof(time), p->stacks->now_ns - waiting->frame.since_ns);
    krait_buf_str(p->out, p->look->colour ? KRAIT_DIM : "");
    krait_buf_str(p->out, p->look->utf8 ? "┊" : "|");
    add_name(&name, p, &waiting->frame);
    compose(p->out, &inside, name.data ? name.data : "", time, p->cell);
    p->out->failed |= name.failed;
    krait_buf_str(p->out, p->look->colour ? KRAIT_PLAIN : "");
}

static uint32_t count_waiting(const struct top_stacks_thread *thread, uint32_t depth)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < thread->waiting_count; i++)
        count += thread->waiting[i].depth == depth;
    return count;
}

/* The function that runs at a depth, in the left half if there are suspended generators, of which the newest have the rest. */
static void add_depth(const struct picture *p, const struct top_stacks_thread *thread, uint32_t depth)
{
    struct picture part = *p;
    uint32_t waiting = count_waiting(thread, depth), left = p->cell;
    bool runs = depth < thread->count;
    part.cell = !waiting ? p->cell : runs ? p->cell / 2 : 0;
    if (part.cell && runs)
        add_frame(&part, thread, &thread->frames[depth]);
    else
        add_blanks(p->out, part.cell);
    left -= part.cell;
    uint32_t fitting = KRAIT_MAX(left / WAITING_LEAST, 1u), hidden = waiting - KRAIT_MIN(waiting, fitting);
    uint32_t shown = waiting - hidden;
    for (uint32_t i = 0; i < thread->waiting_count && shown; i++) {
        if (thread->waiting[i].depth != depth || hidden) {
            hidden -= thread->waiting[i].depth == depth;
            continue;
        }
        part.cell = left / shown--;
        left -= part.cell;
        add_waiting_cell(&part, &thread->waiting[i]);
    }
}

static uint32_t depths_of(const struct top_stacks_thread *thread)
{
    uint32_t depths = thread->count;
    for (uint32_t i = 0; i < thread->waiting_count; i++)
        depths = KRAIT_MAX(depths, thread->waiting[i].depth + 1);
    return depths;
}

/* If not all functions fit, shows the innermost. */
static void add_cell(const struct picture *p, const struct top_stacks_thread *thread, uint32_t row,
                     uint32_t rows)
{
    uint32_t depths = depths_of(thread), hidden = depths > rows ? depths - rows + 1 : 0;
    char text[64];
    if (row >= depths) {
        add_blanks(p->out, p->cell);
    } else if (hidden && !row && rows > 1) {
        snprintf(text, sizeof(text), "%u callers", hidden);
        compose(p->out, p, text, "", 0);
    } else {
        add_depth(p, thread, hidden ? depths - rows + row : row);
    }
}

void top_end_line(struct krait_buf *out)
{
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
    krait_buf_char(out, '\n');
}

/* `row` -1: the threads' names. */
static void add_line(const struct picture *p, const struct top_stacks_thread *const *threads, uint32_t count,
                     int64_t row, uint32_t rows)
{
    for (uint32_t i = 0; i < count; i++) {
        add_blanks(p->out, i ? GAP : 0);
        if (row < 0)
            add_head(p, threads[i]);
        else
            add_cell(p, threads[i], (uint32_t)row, rows);
    }
    top_end_line(p->out);
}

static uint32_t depth_of(const struct top_stacks_thread *const *threads, uint32_t count)
{
    uint32_t depth = 1;
    for (uint32_t i = 0; i < count; i++)
        depth = KRAIT_MAX(depth, depths_of(threads[i]));
    return depth;
}

/* The threads that ran in the interval come first. Otherwise their order does not change. */
static void put_in_order(const struct picture *p, const struct top_stacks_thread **order)
{
    uint32_t count = 0;
    for (int ran = 1; ran >= 0; ran--) {
        for (uint32_t i = 0; i < p->stacks->count; i++) {
            const struct top_stacks_thread *thread = &p->stacks->threads[i];
            bool has_run = thread->ran_ns && p->stacks->now_ns - thread->ran_ns <= p->interval_ns;
            if (has_run == (bool)ran)
                order[count++] = thread;
        }
    }
}

/* Draws as many threads side by side as fit, then the next ones below, in at most `height` lines; 0: any number. */
static void draw(const struct picture *p, const struct top_stacks_thread *const *order, uint32_t beside,
                 uint32_t height)
{
    enum { BAND_LEAST = 4, NOTE = 1 }; /* an empty line, names, callers and the innermost function */
    uint32_t left = height, shown = 0;
    while (shown < p->stacks->count && (!shown || !height || left >= BAND_LEAST + NOTE)) {
        uint32_t count = KRAIT_MIN(beside, p->stacks->count - shown), rows = depth_of(order + shown, count);
        bool is_last = shown + count == p->stacks->count;
        uint32_t above = 1 + (shown > 0), below = is_last ? 0 : NOTE;
        if (height)
            rows = KRAIT_MIN(rows, left > above + below ? left - above - below : 1);
        krait_buf_str(p->out, shown ? "\n" : "");
        for (int64_t row = -1; row < rows; row++)
            add_line(p, order + shown, count, row, rows);
        left -= KRAIT_MIN(left, above + rows);
        shown += count;
    }
    uint32_t hidden = p->stacks->count - shown;
    if (hidden)
        krait_buf_fmt(p->out, "%u more thread%s\n", hidden, hidden == 1 ? "" : "s");
}

int top_stacks_text(const struct top_view *view, uint32_t height, const struct krait_table_look *look,
                    struct krait_buf *out)
{
    const struct top_stacks *stacks = view->stacks;
    uint32_t width = look->width ? look->width : TOP_WIDTH_USUAL;
    uint32_t fitting = KRAIT_MAX((width + GAP) / (CELL_LEAST + GAP), 1u);
    uint32_t beside = KRAIT_MIN(fitting, KRAIT_MAX(stacks->count, 1u));
    struct picture p = { .stacks = stacks,
                         .look = look,
                         .interval_ns = view->interval_ns,
                         .lines = view->lines,
                         .out = out,
                         .filler = look->utf8 ? "━" : "=" };
    KRAIT_AUTO_FREE const struct top_stacks_thread **order =
        calloc((size_t)stacks->count + 1, sizeof(*order));
    if (!order)
        return -ENOMEM;
    p.cell = KRAIT_MAX((width - GAP * (beside - 1)) / beside, 1u);
    put_in_order(&p, order);
    if (!stacks->count)
        krait_buf_str(out, "no stack has been read yet\n");
    draw(&p, order, beside, height);
    return out->failed ? -ENOMEM : 0;
}
