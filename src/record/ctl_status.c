/* SPDX-License-Identifier: Apache-2.0
 *
 * What `krait ctl status` shows. Processes change their part of the shared memory meanwhile: each value is read once.
 */
#include "base/json.h"
#include "record/collector_inside.h"

#include <string.h>

/* Events per second are of this time. The open packets of threads are written once a second, so that it has to be longer. */
#define RATE_NS      (5 * KRAIT_NS_PER_S)
#define RATE_EACH_NS (50 * KRAIT_NS_PER_MS)

/* ---- what has happened ---- */

/* Since the begin, those that were dropped meanwhile too. */
static uint64_t written(const struct krait_collector *c)
{
    return c->total.events + c->recording.dropped_events;
}

void krait_collector_set_beside(struct krait_collector *c, void (*switched)(void *ctx, bool on), void *ctx,
                                const struct krait_clock *clock)
{
    c->beside.clock = clock;
    c->beside.switched = switched;
    c->beside.ctx = ctx;
}

void krait_ctl_switch_beside(const struct krait_collector *c, bool on)
{
    if (c->beside.switched)
        c->beside.switched(c->beside.ctx, on);
}

void krait_ctl_note_switch(struct krait_collector *c)
{
    uint32_t state = atomic_load(&c->shm.control->state);
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC);
    if (state == KRAIT_SESSION_RUN && !c->total.was_on && c->switched.state != state)
        c->program_ns = now; /* --idle: from here on --for counts */
    c->total.was_on |= state == KRAIT_SESSION_RUN;
    if (state != c->switched.state) {
        c->switched.state = state;
        c->switched.since_ns = now;
        if (state == KRAIT_SESSION_RUN || state == KRAIT_SESSION_OFF)
            krait_ctl_switch_beside(c, state == KRAIT_SESSION_RUN);
    }
    if (now - c->rate.at[c->rate.last].ns < RATE_EACH_NS)
        return;
    c->rate.last = (c->rate.last + 1) % KRAIT_RATE_TIMES;
    c->rate.at[c->rate.last].ns = now;
    c->rate.at[c->rate.last].events = written(c);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Since the time nearest to RATE_NS ago; of a younger recording since its begin. */
static void put_rate(const struct krait_collector *c, uint64_t now, struct krait_buf *out)
{
    uint32_t from = c->rate.last;
    for (uint32_t i = 0; i < KRAIT_RATE_TIMES; i++) {
        uint64_t ns = c->rate.at[i].ns;
        if (ns && distance(now - ns, RATE_NS) < distance(now - c->rate.at[from].ns, RATE_NS))
            from = i;
    }
    uint64_t ns = now - c->rate.at[from].ns, all = written(c);
    uint64_t events = all - KRAIT_MIN(all, c->rate.at[from].events);
    krait_json_key_u64(out, "events_per_s", ns ? (uint64_t)((double)events * 1e9 / (double)ns) : 0);
    krait_json_key_u64(out, "rate_window_ns", ns);
}

/* ---- processes ---- */

enum part { IS_NONE, IS_READY, IS_ON, IS_OFF };

static enum part part_of(const struct krait_collector *c, uint32_t i)
{
    const struct krait_proc *slot = &c->shm.procs[i];
    uint32_t word = atomic_load(&slot->state);
    if (krait_slot_state(word) == KRAIT_SLOT_TAKEN && !c->procs[i].pid)
        return IS_READY;
    if (krait_slot_state(word) != KRAIT_SLOT_OPEN)
        return IS_NONE;
    return atomic_load(&slot->off) ? IS_OFF : IS_ON;
}

struct krait_ctl_counts krait_ctl_count(struct krait_collector *c)
{
    uint32_t counts[IS_OFF + 1] = { 0 };
    for (uint32_t i = 0; i < krait_collector_procs_used(c); i++)
        counts[part_of(c, i)]++;
    return (struct krait_ctl_counts){ .ready = counts[IS_READY], .on = counts[IS_ON], .off = counts[IS_OFF] };
}

static uint32_t count_threads(struct krait_collector *c, uint32_t proc)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < krait_collector_rings_used(c); r++)
        n += c->rings[r].known && c->rings[r].kind == KRAIT_RING_THREAD &&
             (proc == UINT32_MAX || c->rings[r].proc == proc);
    return n;
}

/* Events that this process has lost until now. */
static uint64_t count_lost(struct krait_collector *c, uint32_t i)
{
    uint64_t lost[KRAIT_COUNT_lost_reason], sum = 0;
    krait_collector_lost_until_now(c, i, lost);
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++)
        sum += lost[reason];
    return sum;
}

uint64_t krait_collector_lost(struct krait_collector *c)
{
    uint64_t lost = 0;
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++)
        lost += c->total.lost[reason];
    for (uint32_t i = 0; i < krait_collector_procs_used(c); i++)
        lost += c->procs[i].dir ? count_lost(c, i) : 0;
    return lost;
}

static void put_process(struct krait_collector *c, uint32_t i, struct krait_buf *out)
{
    static const char *const words[] = { [IS_READY] = "ready", [IS_ON] = "on", [IS_OFF] = "off" };
    enum part part = part_of(c, i);
    if (part == IS_NONE)
        return;
    uint32_t word = atomic_load(&c->shm.procs[i].state);
    int pid = c->procs[i].pid ? c->procs[i].pid : (int)krait_slot_owner(word);
    KRAIT_AUTO_BUF command = { 0 };
    krait_proc_command(pid, &command);
    krait_json_item(out, "\n  {");
    krait_json_key_u64(out, "pid", (uint64_t)KRAIT_MAX(pid, 0));
    krait_json_key_text(out, "state", words[part]);
    krait_json_key_text_or_null(out, "command", command.data);
    krait_json_key_u64(out, "threads", count_threads(c, i));
    krait_json_key_u64(out, "events", c->procs[i].events);
    uint64_t lost = c->procs[i].dir ? count_lost(c, i) : 0;
    krait_json_key_u64(out, "lost", lost);
    krait_json_lost_events(out, lost);
    krait_json_key_bool(out, "set", krait_ctl_slot_is_set(c, i));
    krait_buf_char(out, '}');
}

/* ---- all of it ---- */

static void put_filters(const char *filters, enum krait_filter_kind kind, struct krait_buf *out)
{
    for (const char *at = filters; *at; at += strlen(at) + 1) {
        if (*at != (char)kind)
            continue;
        krait_json_item(out, "");
        krait_json_cstr(out, at + 1);
    }
}

static void put_recorded(const struct krait_collector *c, struct krait_buf *out)
{
    static const struct {
        const char *key;
        uint32_t flag;
    } flags[] = { { "c_calls", KRAIT_RECORD_C_CALLS },       { "gil", KRAIT_RECORD_GIL },
                  { "tasks", KRAIT_RECORD_TASKS },           { "children", KRAIT_RECORD_CHILDREN },
                  { "call_sites", KRAIT_RECORD_CALL_SITES }, { "gc", KRAIT_RECORD_GC },
                  { "imports", KRAIT_RECORD_IMPORTS },       { "lossless", KRAIT_RECORD_LOSSLESS } };
    static const struct {
        const char *key;
        enum krait_filter_kind kind;
    } lists[] = { { "include", KRAIT_FILTER_INCLUDE },
                  { "exclude", KRAIT_FILTER_EXCLUDE },
                  { "log", KRAIT_FILTER_LOG },
                  { "audit", KRAIT_FILTER_AUDIT },
                  { "args", KRAIT_FILTER_ARGS } };
    const struct krait_control *control = c->shm.control;
    char filters[KRAIT_FILTER_BYTES];
    memcpy(filters, control->filters, sizeof(filters));
    filters[sizeof(filters) - 2] = filters[sizeof(filters) - 1] = '\0';
    krait_json_key_open(out, "recorded", '{');
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(flags); i++)
        krait_json_key_bool(out, flags[i].key, control->flags & flags[i].flag);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(lists); i++) {
        krait_json_key_open(out, lists[i].key, '[');
        put_filters(filters, lists[i].kind, out);
        krait_buf_char(out, ']');
    }
    krait_json_key(out, "max_overhead");
    krait_buf_fmt(out, "%g}", control->max_overhead_ppm / 1e4);
}

void krait_ctl_status(struct krait_collector *c, struct krait_buf *out)
{
    static const char *const states[] = { [KRAIT_SESSION_RUN] = "on", [KRAIT_SESSION_OFF] = "off" };
    uint64_t now = krait_clock_ns(CLOCK_MONOTONIC), lost = krait_collector_lost(c);
    uint32_t state = atomic_load(&c->shm.control->state);
    const char *word = state < KRAIT_ARRAY_LEN(states) ? states[state] : NULL;
    KRAIT_AUTO_FREE char *folder = c->dir ? realpath(c->dir, NULL) : NULL;
    krait_buf_clear(out);
    krait_buf_char(out, '{');
    krait_json_key_text(out, "state", word ? word : "ending");
    krait_json_key_u64(out, "since_ns", now - c->switched.since_ns);
    krait_json_key_u64(out, "duration_ns", now - c->begin_ns);
    krait_json_key_text_or_null(out, "folder", folder ? folder : c->dir);
    krait_json_key_u64(out, "collector", (uint64_t)getpid());
    krait_json_key_u64(out, "events", c->total.events);
    put_rate(c, now, out);
    krait_json_key_u64(out, "bytes", c->total.bytes + c->metadata_bytes);
    krait_json_key_u64(out, "lost", lost);
    krait_json_lost_events(out, lost);
    krait_json_key_u64(out, "dropped", c->recording.dropped_events);
    krait_json_key_u64(out, "threads", count_threads(c, UINT32_MAX));
    krait_json_key_bool(out, "set", krait_ctl_is_set(c));
    krait_json_key_bool(out, "begins", c->begins);
    put_recorded(c, out);
    krait_json_key_open(out, "processes", '[');
    for (uint32_t i = 0; i < krait_collector_procs_used(c); i++)
        put_process(c, i, out);
    krait_buf_str(out, "]}\n");
}
