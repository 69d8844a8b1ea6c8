/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes, threads, names, and the ends of intervals.
 */
#include "live/live.h"

#include "base/array.h"
#include "base/fmt.h"
#include "event/own.h"
#include "live/inside.h"
#include "record/tracedir.h"

#include <stdio.h>
#include <string.h>

enum { ENDED_MAX = 256 }; /* ended threads that keep their own sums; the sums of older ones are merged */

uint64_t live_ns(const struct krait_live *live, uint64_t ticks)
{
    return (uint64_t)((double)ticks * 1e9 / (double)live->clock->freq);
}

/* ---- functions ---- */

static bool is_pause(const struct krait_payload_code_define *code)
{
    return strcmp(code->module, KRAIT_PAUSE_MODULE) == 0 && strcmp(code->qualname, KRAIT_PAUSE_NAME) == 0;
}

const char *live_keep_text(struct krait_live *live, const char *text)
{
    uint32_t id = krait_strtab_add(&live->texts, text, strlen(text));
    live->failed |= id == KRAIT_NO_ID;
    return id == KRAIT_NO_ID ? "" : live->texts.texts[id];
}

static const char *keep_label(struct krait_live *live, const struct krait_payload_code_define *code)
{
    char label[2 * KRAIT_PAYLOAD_MAX];
    bool is_plain =
        code->kind != KRAIT_code_kind_c || !*code->module || strcmp(code->module, "builtins") == 0;
    if (is_plain)
        return live_keep_text(live, code->qualname);
    snprintf(label, sizeof(label), "%s.%s", code->module, code->qualname);
    return live_keep_text(live, label);
}

/* Where asyncio's and trio's event loops wait: selectors.py, and trio/_core/_io_epoll.py. Other event loops wait in C code that
 * krait does not see. */
static bool is_poll(const char *label)
{
    static const char *const polls[] = { "select.epoll.poll", "select.poll.poll", "select.select" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(polls); i++) {
        if (strcmp(label, polls[i]) == 0)
            return true;
    }
    return false;
}

/* The id of a function; it is the same in all processes and for all code ids of the function. */
static uint32_t func_of(struct krait_live *live, const struct krait_payload_code_define *code)
{
    char key[3 * KRAIT_PAYLOAD_MAX];
    int n = snprintf(key, sizeof(key), "%u\n%u\n%s\n%s\n%s", code->kind, code->line, code->file, code->module,
                     code->qualname);
    if (!KRAIT_GROW(live->funcs, live->func_cap, live->func_count + 1)) {
        live->failed = true;
        return KRAIT_NO_ID;
    }
    uint32_t id = krait_strtab_add(&live->func_keys, key, (size_t)n);
    if (id == KRAIT_NO_ID || id < live->func_count)
        return id;
    live->funcs[live->func_count++] = (struct krait_live_func){
        .module = live_keep_text(live, code->module),
        .name = live_keep_text(live, code->qualname),
        .file = live_keep_text(live, code->file),
        .label = keep_label(live, code),
        .line = code->line,
        .is_c = code->kind == KRAIT_code_kind_c,
        .is_pause = is_pause(code),
    };
    live->funcs[id].marked = live->funcs[id].label;
    live->funcs[id].is_poll = live->funcs[id].is_c && is_poll(live->funcs[id].label);
    return id;
}

uint32_t live_stands_for(struct krait_live *live, uint32_t id)
{
    const struct krait_live_func *func = live_func(live, id);
    struct krait_own_before before;
    if (!krait_own_file(func->file))
        return id;
    KRAIT_AUTO_FREE char *file = strdup(func->file);
    live->failed |= !file;
    if (!file || !krait_own_read(file, &before))
        return id;
    return func_of(live, &(struct krait_payload_code_define){ .kind = KRAIT_code_kind_python,
                                                              .line = func->line,
                                                              .module = before.module,
                                                              .qualname = before.qualname,
                                                              .file = before.file });
}

static void define_code(struct krait_live *live, struct live_process *proc,
                        const struct krait_payload_code_define *code)
{
    bool is_function = code->kind == KRAIT_code_kind_python || code->kind == KRAIT_code_kind_c;
    if (!is_function || code->id >= 1u << 24)
        return;
    if (!KRAIT_GROW_FILLED(proc->funcs, proc->func_cap, code->id + 1, 0xff))
        live->failed = true;
    else
        proc->funcs[code->id] = func_of(live, code);
}

/* KRAIT_NO_ID if the code is not defined (yet). */
static uint32_t func_of_code(const struct krait_live *live, uint32_t slot, uint32_t code)
{
    const struct live_process *proc = &live->procs[slot];
    return code < proc->func_cap ? proc->funcs[code] : KRAIT_NO_ID;
}

static const struct krait_live_func no_name = {
    .module = "", .name = "<unknown>", .file = "", .label = "<unknown>", .marked = "<unknown>"
};

const struct krait_live_func *live_func(const struct krait_live *live, uint32_t id)
{
    return id == KRAIT_NO_ID ? &no_name : &live->funcs[id];
}

/* ---- threads ---- */

static uint32_t add_row(struct krait_live *live, struct live_thread *th, uint32_t code, uint32_t func)
{
    if (!KRAIT_GROW(th->rows, th->row_cap, th->row_count + 1)) {
        live->failed = true;
        return 0;
    }
    th->rows[th->row_count] = (struct live_row){ .code = code, .func = func };
    if (live_func(live, func)->is_poll)
        th->poll = th->row_count;
    return th->row_count++;
}

uint32_t live_row_of(struct krait_live *live, struct live_thread *th, uint32_t code)
{
    if (!KRAIT_GROW_FILLED(th->index, th->index_cap, code + 1, 0)) {
        live->failed = true;
        return 0;
    }
    if (!th->index[code])
        th->index[code] = add_row(live, th, code, func_of_code(live, th->slot, code));
    return th->index[code];
}

static void free_thread(struct live_thread *th)
{
    if (!th)
        return;
    for (uint32_t i = 0; i < th->left_cap; i++)
        free(th->left[i].items), free(th->left[i].begun);
    free(th->left);
    krait_map_done(&th->callers);
    free(th->looks);
    free(th->states);
    free(th->stack.items);
    free(th->stack.begun);
    free(th->index);
    free(th->rows);
    free(th);
}

/* A thread with row 0, which is also on its stack. Returns NULL if memory runs out. */
static struct live_thread *new_thread(struct krait_live *live)
{
    struct live_thread *th = calloc(1, sizeof(*th));
    if (th && KRAIT_GROW(th->stack.items, th->stack.cap, 1) && KRAIT_GROW(th->rows, th->row_cap, 1)) {
        th->rows[th->row_count++] = (struct live_row){ .func = KRAIT_NO_ID, .depth = 1 };
        th->stack.items[th->stack.len++] = 0;
        return th;
    }
    live->failed = true;
    free_thread(th);
    return NULL;
}

static void set_name(struct krait_live *live, struct live_process *proc, uint32_t tid, const char *name)
{
    struct krait_live_thread *to = NULL;
    for (uint32_t i = 0; i < proc->name_count && !to; i++)
        to = proc->names[i].tid == (pid_t)tid ? &proc->names[i] : NULL;
    if (!to && !KRAIT_GROW(proc->names, proc->name_cap, proc->name_count + 1))
        return;
    to = to ? to : &proc->names[proc->name_count++];
    to->tid = (pid_t)tid;
    snprintf(to->name, sizeof(to->name), "%s", name);
    for (uint32_t i = 0; i < live->thread_count; i++) {
        struct krait_live_thread *about = &live->threads[i]->about;
        if (about->pid == proc->pid && about->tid == (pid_t)tid && !about->has_ended)
            memcpy(about->name, to->name, sizeof(about->name));
    }
}

static void thread_begins(void *ctx, uint32_t ring, uint32_t slot, uint32_t tid)
{
    struct krait_live *live = ctx;
    const struct live_process *proc = &live->procs[slot];
    struct live_thread *th = new_thread(live);
    if (!th || !KRAIT_GROW(live->threads, live->thread_cap, live->thread_count + 1) ||
        krait_map_put(&live->rings, ring, (uintptr_t)th)) {
        live->failed = true;
        free_thread(th);
        return;
    }
    th->slot = slot;
    th->about = (struct krait_live_thread){ .pid = proc->pid, .tid = (pid_t)tid };
    for (uint32_t i = 0; i < proc->name_count; i++) {
        if (proc->names[i].tid == (pid_t)tid)
            memcpy(th->about.name, proc->names[i].name, sizeof(th->about.name));
    }
    live->threads[live->thread_count++] = th;
    live->threads_begun++;
    live_know_thread(live, th);
}

static void add_ticks(struct live_ticks *to, const struct live_ticks *more)
{
    to->calls += more->calls;
    to->own += more->own;
    to->total += more->total;
}

/* Adds a thread's sums to `gone`. There, function ids take the place of code ids. */
static void merge(struct krait_live *live, const struct live_thread *th)
{
    live->gone = live->gone ? live->gone : new_thread(live);
    for (uint32_t i = 1; live->gone && i < th->row_count; i++) {
        const struct live_row *from = &th->rows[i];
        if (from->func == KRAIT_NO_ID)
            continue;
        uint32_t number = live_row_of(live, live->gone, from->func);
        struct live_row *to = &live->gone->rows[number];
        to->func = from->func;
        add_ticks(&to->all, &from->all);
        add_ticks(&to->mark, &from->mark);
        add_ticks(&to->last, &from->last);
        live_add_states(live->gone, number, th, i);
    }
}

static void forget_oldest(struct krait_live *live)
{
    uint32_t ended = 0, oldest = UINT32_MAX;
    for (uint32_t i = live->thread_count; i-- > 0;) {
        if (!live->threads[i]->about.has_ended)
            continue;
        ended++;
        oldest = i;
    }
    if (ended <= ENDED_MAX)
        return;
    merge(live, live->threads[oldest]);
    free_thread(live->threads[oldest]);
    live->thread_count--;
    memmove(live->threads + oldest, live->threads + oldest + 1,
            (live->thread_count - oldest) * sizeof(struct live_thread *));
}

/* Looks up the functions of all rows now, because code ids mean nothing after the process has ended. */
static void learn_funcs(const struct krait_live *live, struct live_thread *th)
{
    for (uint32_t i = 1; i < th->row_count; i++) {
        if (th->rows[i].func == KRAIT_NO_ID)
            th->rows[i].func = func_of_code(live, th->slot, th->rows[i].code);
    }
}

static void mark(struct krait_live *live, uint32_t id)
{
    char text[2 * KRAIT_PAYLOAD_MAX + sizeof(KRAIT_HOLDS_DROPPED)];
    struct krait_live_func *func = &live->funcs[id];
    if (func->holds_dropped)
        return;
    snprintf(text, sizeof(text), "%s" KRAIT_HOLDS_DROPPED, func->label);
    func->holds_dropped = true;
    func->marked = live_keep_text(live, text);
}

/* Marks the callers of dropped functions: since the drop, their self time includes the callee's time. */
static void mark_callers(struct krait_live *live, const struct live_thread *th)
{
    for (size_t i = 0; i < th->callers.cap && live->dropped; i++) {
        const struct krait_map_slot *slot = &th->callers.slots[i];
        uint32_t caller = slot->used ? th->rows[slot->key >> 32].func : KRAIT_NO_ID;
        uint32_t callee = slot->used ? th->rows[(uint32_t)slot->key].func : KRAIT_NO_ID;
        if (caller != KRAIT_NO_ID && callee != KRAIT_NO_ID && live->funcs[callee].was_dropped)
            mark(live, caller);
    }
}

static void end_thread(struct krait_live *live, struct live_thread *th)
{
    if (th->about.has_ended)
        return;
    live_cut(th, 1);
    learn_funcs(live, th);
    mark_callers(live, th);
    live_forget_thread(live, th);
    th->about.has_ended = true;
    free(th->index);
    th->index = NULL;
    th->index_cap = 0;
}

static void thread_ends(void *ctx, uint32_t ring)
{
    struct krait_live *live = ctx;
    const uint64_t *known = krait_map_get(&live->rings, ring);
    struct live_thread *th = known ? (struct live_thread *)(uintptr_t)*known : NULL;
    if (!th)
        return;
    krait_map_put(&live->rings, ring, 0);
    end_thread(live, th);
    forget_oldest(live);
}

/* ---- processes ---- */

static void process_begins(void *ctx, uint32_t slot, int pid)
{
    struct krait_live *live = ctx;
    live->procs[slot] = (struct live_process){ .pid = pid };
    live->processes_begun++;
}

static void process_ends(void *ctx, uint32_t slot)
{
    struct krait_live *live = ctx;
    struct live_process *proc = &live->procs[slot];
    for (uint32_t i = 0; i < live->thread_count; i++) {
        struct live_thread *th = live->threads[i];
        if (!th->about.has_ended && th->slot == slot)
            end_thread(live, th);
    }
    free(proc->funcs);
    free(proc->omits);
    free(proc->names);
    free(proc->tasks);
    *proc = (struct live_process){ 0 };
}

static void omit_code(struct krait_live *live, struct live_process *proc, uint64_t t, uint32_t code)
{
    uint32_t func = code < proc->func_cap ? proc->funcs[code] : KRAIT_NO_ID;
    if (func != KRAIT_NO_ID) {
        live->dropped += !live->funcs[func].was_dropped;
        live->funcs[func].was_dropped = true;
    }
    if (KRAIT_GROW(proc->omits, proc->omit_cap, proc->omit_count + 1))
        proc->omits[proc->omit_count++] = (struct live_omit){ t, code };
    else
        live->failed = true;
}

static void switch_recording(struct live_process *proc, uint64_t t, uint8_t state)
{
    struct live_gap *last = &proc->gaps[(proc->gap_count - 1) % KRAIT_ARRAY_LEN(proc->gaps)];
    bool is_off = proc->gap_count && last->to == UINT64_MAX;
    if (is_off && state == KRAIT_recording_state_on)
        last->to = t;
    if (!is_off && state != KRAIT_recording_state_on)
        proc->gaps[proc->gap_count++ % KRAIT_ARRAY_LEN(proc->gaps)] = (struct live_gap){ t, UINT64_MAX };
}

static void note_python(struct krait_live *live, const char *runtime)
{
    const char *blank = strrchr(runtime, ' ');
    if (!*live->python)
        snprintf(live->python, sizeof(live->python), "%s", blank ? blank + 1 : runtime);
}

static void defines(void *ctx, uint32_t slot, const uint8_t *events, size_t n)
{
    struct krait_live *live = ctx;
    struct live_process *proc = &live->procs[slot];
    struct krait_cursor at = { events, events + n }, payload;
    struct krait_event_head head = { 0 };
    struct krait_payload_code_define code;
    struct krait_payload_code_omit left_out;
    struct krait_payload_thread_name name;
    struct krait_payload_process_start start;
    struct krait_payload_task_define task;
    struct krait_payload_recording_switch change;
    while (krait_packet_event(&at, &head, &payload)) {
        if (head.id == KRAIT_EVENT_code_define && krait_read_code_define(&payload, &code))
            define_code(live, proc, &code);
        else if (head.id == KRAIT_EVENT_code_omit && krait_read_code_omit(&payload, &left_out))
            omit_code(live, proc, head.t, left_out.id);
        else if (head.id == KRAIT_EVENT_thread_name && krait_read_thread_name(&payload, &name))
            set_name(live, proc, name.vtid, name.name);
        else if (head.id == KRAIT_EVENT_process_start && krait_read_process_start(&payload, &start))
            note_python(live, start.runtime);
        else if (head.id == KRAIT_EVENT_task_define && krait_read_task_define(&payload, &task))
            live_define_task(live, proc, &task);
        else if (head.id == KRAIT_EVENT_recording_switch && krait_read_recording_switch(&payload, &change))
            switch_recording(proc, head.t, change.state);
    }
}

/* ---- creating and freeing ---- */

int krait_live_new(struct krait_live **out)
{
    struct krait_live *live = calloc(1, sizeof(*live));
    if (!live)
        return -ENOMEM;
    live->tap = (struct krait_tap){
        .ctx = live,
        .process_begins = process_begins,
        .process_ends = process_ends,
        .defines = defines,
        .thread_begins = thread_begins,
        .thread_ends = thread_ends,
        .events = live_fold,
    };
    *out = live;
    return 0;
}

void krait_live_free(struct krait_live *live)
{
    if (!live)
        return;
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        free(live->procs[i].funcs);
        free(live->procs[i].omits);
        free(live->procs[i].names);
        free(live->procs[i].tasks);
    }
    for (uint32_t i = 0; i < live->thread_count; i++)
        free_thread(live->threads[i]);
    free_thread(live->gone);
    krait_map_done(&live->rings);
    krait_map_done(&live->by_tid);
    krait_strtab_done(&live->func_keys);
    krait_strtab_done(&live->texts);
    krait_strtab_done(&live->group_keys);
    free(live->groups);
    free(live->rays);
    free(live->threads);
    free(live->funcs);
    free(live);
}

const struct krait_tap *krait_live_tap(struct krait_live *live)
{
    return &live->tap;
}

void krait_live_set_clock(struct krait_live *live, const struct krait_clock *clock)
{
    live->clock = clock;
    live->turned = krait_clock_now(clock);
}

/* ---- intervals ---- */

static struct live_ticks less(const struct live_ticks *all, const struct live_ticks *before)
{
    return (struct live_ticks){ all->calls - before->calls, all->own - before->own,
                                all->total - before->total };
}

/* Returns how long it was in Python code with the GIL. */
static uint64_t turn_thread(struct krait_live *live, struct live_thread *th)
{
    uint64_t held = 0;
    learn_funcs(live, th);
    mark_callers(live, th);
    live_turn_looks(th);
    for (uint32_t i = 1; i < th->row_count; i++) {
        struct live_row *row = &th->rows[i];
        row->last = less(&row->all, &row->mark);
        row->mark = row->all;
        const struct krait_live_func *func = live_func(live, row->func);
        if (func->is_pause)
            live->now.pauses += row->last.own;
        else if (row->func != KRAIT_NO_ID && !func->is_c)
            held += row->last.own;
    }
    held -= KRAIT_MIN(th->wait_in_python, held);
    th->wait_in_python = 0;
    return held;
}

/* Who waits in `with lock:` counts, too, since that is no call to CPython; but a process has one GIL. */
static void count_gil(struct krait_live *live)
{
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        live->now.gil_held += KRAIT_MIN(live->procs[i].gil_held, live->now.ns);
        live->procs[i].gil_held = 0;
    }
}

static void add_figures(struct krait_live_figures *to, const struct krait_live_figures *more)
{
    to->ns += more->ns;
    to->events += more->events;
    to->gil_wait += more->gil_wait;
    to->gil_waits += more->gil_waits;
    to->gil_held += more->gil_held;
    to->gc += more->gc;
    to->steps += more->steps;
    to->longest = KRAIT_MAX(to->longest, more->longest);
    to->lag = KRAIT_MAX(to->lag, more->lag);
    to->pauses += more->pauses;
    to->looks += more->looks;
}

static uint32_t count_threads(const struct krait_live *live)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < live->thread_count; i++)
        n += !live->threads[i]->about.has_ended;
    return n;
}

static uint32_t count_processes(const struct krait_live *live)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++)
        n += live->procs[i].pid != 0;
    return n;
}

static void note_counts(struct krait_live *live)
{
    live->last.threads = count_threads(live);
    live->last.processes = count_processes(live);
    live->all.threads = live->threads_begun;
    live->all.processes = live->processes_begun;
    live->all.dropped = live->last.dropped = live->dropped;
}

void krait_live_turn(struct krait_live *live, uint64_t now)
{
    for (uint32_t i = 0; i < live->thread_count; i++) {
        if (!live->threads[i]->about.has_ended)
            live_settle(live, live->threads[i], now);
        live->procs[live->threads[i]->slot].gil_held += turn_thread(live, live->threads[i]);
    }
    if (live->gone)
        live->now.gil_held += turn_thread(live, live->gone);
    live_turn_groups(live);
    live->now.ns = now > live->turned ? now - live->turned : 0;
    count_gil(live);
    live->turned = now;
    add_figures(&live->all, &live->now);
    live->last = live->now;
    live->now = (struct krait_live_figures){ 0 };
    note_counts(live);
}

static void reset_thread(struct live_thread *th)
{
    for (uint32_t i = 1; i < th->row_count; i++)
        th->rows[i].all = th->rows[i].mark = th->rows[i].last = (struct live_ticks){ 0 };
    live_reset_looks(th);
}

void krait_live_reset(struct krait_live *live, uint64_t now)
{
    krait_live_turn(live, now);
    for (uint32_t i = 0; i < live->thread_count; i++)
        reset_thread(live->threads[i]);
    if (live->gone)
        reset_thread(live->gone);
    live_reset_groups(live);
    if (live->rays)
        memset(live->rays->places, 0, sizeof(live->rays->places));
    live->all = live->last = (struct krait_live_figures){ 0 };
    note_counts(live);
}

void krait_live_pause(struct krait_live *live, uint64_t now)
{
    for (uint32_t i = 0; i < live->thread_count; i++) {
        struct live_thread *th = live->threads[i];
        live_settle(live, th, now);
        live_cut(th, 1);
        th->look_count = 0;
        th->wait_t = th->step_t = th->gc_t = th->loop_t = th->silent_t = 0;
    }
    live->paused = now;
}

void krait_live_resume(struct krait_live *live, uint64_t now)
{
    live->turned += now - live->paused;
}

/* ---- results ---- */

static struct krait_live_sum sum_of(const struct krait_live *live, const struct live_ticks *ticks)
{
    return (struct krait_live_sum){ ticks->calls, live_ns(live, ticks->own), live_ns(live, ticks->total) };
}

static int each_of(struct krait_live *live, const struct live_thread *th, uint32_t id, krait_live_row_fn *fn,
                   void *ctx)
{
    int rc = 0;
    for (uint32_t i = 1; i < th->row_count && !rc; i++) {
        const struct live_row *row = &th->rows[i];
        const struct krait_live_row shown = {
            .func = live_func(live, row->func),
            .func_id = row->func,
            .thread_id = id,
            .thread = &th->about,
            .all = sum_of(live, &row->mark),
            .last = sum_of(live, &row->last),
            .calls_now = row->all.calls,
            .all_states = i < th->state_cap ? th->states[i].mark : NULL,
            .last_states = i < th->state_cap ? th->states[i].last : NULL,
        };
        if (row->all.calls || row->mark.total || row->mark.own)
            rc = fn(ctx, &shown);
    }
    return rc;
}

int krait_live_each(struct krait_live *live, krait_live_row_fn *fn, void *ctx)
{
    int rc = live->gone ? each_of(live, live->gone, UINT32_MAX, fn, ctx) : 0;
    for (uint32_t i = 0; i < live->thread_count && !rc; i++)
        rc = each_of(live, live->threads[i], i, fn, ctx);
    return rc;
}

static struct krait_live_figures in_ns(const struct krait_live *live, struct krait_live_figures figures)
{
    uint64_t *const times[] = { &figures.ns,  &figures.gil_wait, &figures.gil_held, &figures.gc,
                                &figures.lag, &figures.longest,  &figures.pauses };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(times); i++)
        *times[i] = live_ns(live, *times[i]);
    return figures;
}

struct krait_live_figures krait_live_figures_last(const struct krait_live *live)
{
    return in_ns(live, live->last);
}

struct krait_live_figures krait_live_figures_all(const struct krait_live *live)
{
    return in_ns(live, live->all);
}

const char *krait_live_python(const struct krait_live *live)
{
    return live->python;
}
