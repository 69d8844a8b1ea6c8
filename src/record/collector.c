/* SPDX-License-Identifier: Apache-2.0
 *
 * A round looks at every process slot and every ring that was ever taken; both are few, and looking costs a
 * load each.
 *
 * What of a ring goes to disk, and when:
 *
 *   - closed packets (bits of `ready`), in the order of their sequence numbers, straight from the shared
 *     memory;
 *   - of the definitions' ring also what is committed in the open packet, at once, as a packet of its own:
 *     names must be on disk even if the collector is the one that is killed;
 *   - of a thread's ring what is committed in the open packet, once its thread or its process has ended; and
 *     every second as a packet of its own: a collector that is killed loses no more of a quiet thread.
 */
#include "base/buf.h"
#include "event/payload.h"
#include "record/collector_inside.h"
#include "record/switch.h"

#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    NAP_BUSY_US = 2000,
    NAP_IDLE_US = 20000,
};

void krait_collector_note_trouble(struct krait_collector *c, const struct krait_err *err)
{
    if (!c->trouble.code)
        c->trouble = *err;
}

const char *krait_collector_trouble(struct krait_collector *c)
{
    if (!c->trouble.code || c->trouble_told)
        return NULL;
    c->trouble_told = true;
    return c->trouble.text;
}

const struct krait_clock *krait_collector_clock(const struct krait_collector *c)
{
    return &c->clock;
}

int krait_collector_write(struct krait_collector *c, struct krait_collected_proc *proc,
                          struct krait_stream *stream, const struct krait_packet_head *head,
                          const void *events, size_t n)
{
    struct krait_err err;
    uint64_t events_before = stream->events, bytes_before = stream->bytes;
    int rc = krait_tracedir_write(proc->dir, stream, head, events, n, &err);
    if (rc)
        krait_collector_note_trouble(c, &err);
    proc->events += stream->events - events_before;
    c->total.events += stream->events - events_before;
    c->total.bytes += stream->bytes - bytes_before;
    return rc;
}

/* ---- processes ---- */

static int make_dir(struct krait_collector *c, uint32_t i, struct krait_err *err)
{
    struct krait_collected_proc *proc = &c->procs[i];
    char name[sizeof(c->shm.procs[i].comm) + 1] = "";
    memcpy(name, c->shm.procs[i].comm, sizeof(c->shm.procs[i].comm));
    KRAIT_CLEANUP(krait_proc_names_done) struct krait_proc_names names = { 0 };
    krait_proc_names_first(proc, c->shm.procs[i].image, &names);
    struct krait_tracedir_options options = {
        .parent = c->dir, /* NULL with a tap */
        .name = names.comm.len ? names.comm.data
                : *name        ? name
                               : "process",
        .pid = (uint32_t)proc->pid,
        .command = names.command.len ? names.command.data : "",
        .clock = &c->clock,
        .recording = &c->recording,
        .metadata_bytes = &c->metadata_bytes,
        .spare_fds = &c->spare_fds,
    };
    int rc = krait_tracedir_new(&proc->dir, &options, err);
    if (rc)
        return rc;
    rc = krait_tracedir_stream(proc->dir, 0, &proc->definitions, err);
    if (rc) {
        krait_tracedir_free(proc->dir);
        proc->dir = NULL;
    }
    return rc;
}

static uint32_t count_of(const struct krait_map *counts, int pid)
{
    const uint64_t *count = krait_map_get(counts, (uint64_t)pid);
    return count ? (uint32_t)*count : 0;
}

static void count_one(struct krait_map *counts, int pid)
{
    krait_map_put(counts, (uint64_t)pid, count_of(counts, pid) + 1ull);
}

static void take_in(struct krait_collector *c, uint32_t i, int pid)
{
    struct krait_collected_proc *proc = &c->procs[i];
    proc->pid = pid;
    proc->how = KRAIT_process_end_gone;
    proc->status = -1;
    proc->pidfd = c->spare_fds > 0 ? (int)syscall(SYS_pidfd_open, proc->pid, 0) : -1;
    c->spare_fds -= proc->pidfd >= 0;
    c->total.processes++;
    proc->definitions_ring = UINT32_MAX;
    count_one(&c->joined, pid);
    struct krait_err err = { 0 };
    if (make_dir(c, i, &err)) {
        proc->refused = true;
        krait_collector_note_trouble(c, &err);
    } else if (c->tap) {
        c->tap->process_begins(c->tap->ctx, i, pid);
    }
}

uint64_t krait_collector_now_of(const struct krait_collector *c, const struct krait_collected_proc *proc)
{
    return proc->ended ? proc->ended : krait_clock_now(&c->clock);
}

enum { OWN_EVENT_MAX = KRAIT_MAX(KRAIT_BYTES_lost, KRAIT_BYTES_process_exit) };

/* An event of the collector's own, in the process's definitions. */
static void put_own_event(struct krait_collector *c, struct krait_collected_proc *proc, uint32_t id,
                          const void *payload, size_t n)
{
    uint64_t now = krait_collector_now_of(c, proc);
    now = proc->definition_time = KRAIT_MAX(now, proc->definition_time);
    uint8_t event[sizeof(struct krait_event_extended) + OWN_EVENT_MAX];
    size_t bytes = krait_head_extend(event, id, now);
    memcpy(event + bytes, payload, n);
    struct krait_packet_head head = { .timestamp_begin = now, .timestamp_end = now };
    krait_collector_write(c, proc, proc->definitions, &head, event, bytes + n);
}

/* ---- the end of a process ---- */

static void put_lost(struct krait_collector *c, struct krait_collected_proc *proc, uint32_t i)
{
    struct krait_proc *slot = &c->shm.procs[i];
    /* Of processes that have no trace to say it in: who ends next says it for them. */
    atomic_fetch_add(&slot->lost[KRAIT_lost_reason_no_slot],
                     atomic_exchange(&c->shm.control->lost[KRAIT_lost_reason_no_slot], 0));
    if (atomic_load(&slot->lost[KRAIT_lost_reason_raw_fork]))
        atomic_fetch_add(&slot->lost[KRAIT_lost_reason_raw_fork], krait_torn_drop(c, proc));
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++) {
        uint64_t count = atomic_fetch_add(&slot->lost[reason], proc->lost[reason]) + proc->lost[reason];
        if (!count)
            continue;
        uint8_t payload[KRAIT_BYTES_lost];
        krait_put_lost(payload, &(struct krait_payload_lost){ .reason = (uint8_t)reason, .count = count });
        put_own_event(c, proc, KRAIT_EVENT_lost, payload, sizeof(payload));
        c->total.lost[reason] += count;
    }
}

static void put_exit(struct krait_collector *c, struct krait_collected_proc *proc,
                     enum krait_event_enum_value how, int status)
{
    uint8_t payload[KRAIT_BYTES_process_exit];
    krait_put_process_exit(payload,
                           &(struct krait_payload_process_exit){ .how = (uint8_t)how, .status = status });
    put_own_event(c, proc, KRAIT_EVENT_process_exit, payload, sizeof(payload));
}

uint64_t krait_collector_cost(const struct krait_collector *c)
{
    return (uint64_t)((double)c->cost_ticks * 1e9 / (double)c->clock.freq);
}

/* What the collector knows of the process goes; its slot is free when its owner cannot write in it any more. */
static void forget_proc(struct krait_collector *c, uint32_t i)
{
    struct krait_collected_proc *proc = &c->procs[i];
    if (proc->dir && c->tap)
        c->tap->process_ends(c->tap->ctx, i);
    krait_tracedir_free(proc->dir);
    krait_triggers_forget_proc(c, i);
    if (proc->pidfd >= 0) {
        close(proc->pidfd);
        c->spare_fds++;
    }
    *proc = (struct krait_collected_proc){ .pidfd = -1 };
}

static void write_last_metadata(struct krait_collector *c, struct krait_tracedir *dir)
{
    struct krait_err err;
    if (krait_tracedir_write_metadata(dir, &err) == 0)
        return;
    if (c->reserve)
        unlink(c->reserve);
    if (krait_tracedir_write_metadata(dir, &err))
        krait_collector_note_trouble(c, &err);
}

/* Its recording ends: did it do what krait ctl asked for last? */
static void note_not_followed(struct krait_collector *c, uint32_t i)
{
    if (atomic_load(&c->shm.procs[i].off))
        return;
    c->total.not_off += c->ends_off || atomic_load(&c->shm.control->state) == KRAIT_SESSION_OFF;
    c->total.not_set += atomic_load(&c->shm.procs[i].changes) != atomic_load(&c->shm.control->changes);
}

/* Writes all that there is of it. */
static void complete_proc(struct krait_collector *c, uint32_t i, enum krait_event_enum_value how, int status)
{
    struct krait_collected_proc *proc = &c->procs[i];
    krait_drain_rest(c, i);
    krait_triggers_last(c, i);
    note_not_followed(c, i);
    write_last_metadata(c, proc->dir); /* first: on a full disk it makes room, and a recording without an end
                                        * is taken for one whose collector was killed */
    put_exit(c, proc, how, status);
    put_lost(c, proc, i);
}

/* The process is dead, or has closed its slot. */
static void finish_proc(struct krait_collector *c, uint32_t i, enum krait_event_enum_value how, int status)
{
    krait_collector_beat(c); /* of many that end at once each takes a while */
    complete_proc(c, i, how, status);
    if (how != KRAIT_process_end_exec && how != KRAIT_process_end_stop)
        krait_triggers_ended(c, i);
    const char *path = krait_tracedir_path(c->procs[i].dir);
    if (!c->tap)
        krait_buf_add(&c->ended, path, strlen(path) + 1);
    krait_drain_give_back(c, i);
    forget_proc(c, i);
    atomic_store(&c->shm.procs[i].state, KRAIT_SLOT_FREE);
}

static bool is_gone(const struct krait_collected_proc *proc)
{
    if (proc->pidfd < 0)
        return kill(proc->pid, 0) < 0 && errno == ESRCH;
    struct pollfd fd = { .fd = proc->pidfd, .events = POLLIN };
    return poll(&fd, 1, 0) > 0;
}

/* Whether the process has ended, and all is known that will be known of its end. */
static bool has_ended(const struct krait_collector *c, const struct krait_collected_proc *proc)
{
    return proc->pid != c->child && is_gone(proc);
}

static void look_at_refused(struct krait_collector *c, uint32_t i, enum krait_slot_state state)
{
    krait_drain_discard(c, i);
    if (state != KRAIT_SLOT_CLOSED && !has_ended(c, &c->procs[i]))
        return;
    krait_drain_discard_rest(c, i);
    krait_drain_give_back(c, i);
    forget_proc(c, i);
    atomic_store(&c->shm.procs[i].state, KRAIT_SLOT_FREE);
}

/* A second image of a pid that is there: the first executed it. */
static void finish_executed(struct krait_collector *c, uint32_t newer, int pid)
{
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        if (i != newer && c->procs[i].dir && c->procs[i].pid == pid)
            finish_proc(c, i, KRAIT_process_end_exec, -1);
    }
}

/* Killed when it had taken the slot; or it has reserved it, since the recording is off. */
static void look_at_taken(struct krait_collector *c, uint32_t i, uint32_t word)
{
    pid_t pid = (pid_t)krait_slot_owner(word);
    if (pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH))
        atomic_compare_exchange_strong(&c->shm.procs[i].state, &word, KRAIT_SLOT_FREE);
    else
        finish_executed(c, i, pid);
}

static void look_at_new(struct krait_collector *c, uint32_t i)
{
    int pid = __atomic_load_n(&c->shm.procs[i].pid, __ATOMIC_RELAXED);
    if (pid <= 0) /* not what a writer writes */
        return;
    finish_executed(c, i, pid);
    take_in(c, i, pid);
}

static void count_from_now(struct krait_collector *c)
{
    c->begin_ns = c->program_ns = krait_clock_ns(CLOCK_MONOTONIC);
    c->rate.last = 0;
    c->rate.at[0].ns = c->begin_ns;
}

static void note_begun(struct krait_collector *c, uint32_t i)
{
    struct krait_collected_proc *proc = &c->procs[i];
    if (proc->begun || !atomic_load_explicit(&c->shm.procs[i].begun, memory_order_relaxed))
        return;
    proc->begun = true;
    count_one(&c->begun, proc->pid);
    if (c->attaches && !c->has_begun)
        count_from_now(c);
    c->has_begun = true;
}

static void look_at_proc(struct krait_collector *c, uint32_t i)
{
    struct krait_collected_proc *proc = &c->procs[i];
    uint32_t word = atomic_load_explicit(&c->shm.procs[i].state, memory_order_acquire);
    enum krait_slot_state state = krait_slot_state(word);
    if (state == KRAIT_SLOT_TAKEN && !proc->pid)
        look_at_taken(c, i, word);
    if (state >= KRAIT_SLOT_OPEN && !proc->pid)
        look_at_new(c, i);
    if (proc->pid)
        note_begun(c, i);
    if (proc->refused)
        look_at_refused(c, i, state);
    if (!proc->dir || (c->keep_newest && krait_drain_has_ready(c, i)))
        return;
    if (state == KRAIT_SLOT_CLOSED)
        finish_proc(c, i, KRAIT_process_end_stop, -1);
    else if (proc->executed)
        finish_proc(c, i, KRAIT_process_end_exec, -1);
    else if (has_ended(c, proc))
        finish_proc(c, i, proc->how, proc->status);
}

static void look_at_procs(struct krait_collector *c)
{
    for (uint32_t i = 0; i < krait_collector_procs_used(c); i++)
        look_at_proc(c, i);
}

static void answer_joins(struct krait_collector *c)
{
    enum { AT_ONCE = 64 };
    struct ucred refused;
    char why[92];
    for (int i = 0; i < AT_ONCE && krait_join_socket_answer(&c->join, c->fd, &refused); i++) {
        snprintf(why, sizeof(why), "running as user %u, krait as user %u; start krait as that user",
                 refused.uid, geteuid());
        if (refused.pid)
            krait_shm_refuse(c->shm.control, refused.pid, why);
    }
}

void krait_collector_take_open(struct krait_collector *c)
{
    krait_drain_open(c);
    c->opened_ns = krait_clock_ns(CLOCK_MONOTONIC);
}

bool krait_collector_round(struct krait_collector *c)
{
    krait_collector_beat(c);
    answer_joins(c);
    look_at_procs(c);
    krait_limits_look_at_time(c);
    bool any = krait_drain_rings(c);
    krait_ctl_round(c);
    krait_drain_shrink(c);
    if (krait_clock_ns(CLOCK_MONOTONIC) - c->opened_ns >= c->open_ns) {
        krait_collector_take_open(c);
        krait_drain_unlock(c);
        krait_limits_look_at_disk(c);
    }
    for (uint32_t i = 0; i < krait_collector_procs_used(c); i++) {
        if (!c->procs[i].dir)
            continue;
        krait_proc_names_look(&c->procs[i]);
        krait_tracedir_refresh_metadata(c->procs[i].dir, NULL);
    }
    krait_triggers_round(c);
    c->busy_nap = any;
    return any;
}

/* Takes the first of the texts out. */
static char *take_said(struct krait_news *said)
{
    char *first = said->count ? said->texts[0] : NULL;
    if (first)
        memmove(said->texts, said->texts + 1, --said->count * sizeof(*said->texts));
    return first;
}

void krait_collector_say(struct krait_collector *c, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return;
    if (c->said.count == KRAIT_SAID_MAX) /* nobody asks */
        free(take_said(&c->said));
    c->said.texts[c->said.count++] = copy;
}

const char *krait_collector_said(struct krait_collector *c)
{
    free(c->said.told);
    c->said.told = take_said(&c->said);
    return c->said.told;
}

void krait_collector_said_done(struct krait_collector *c)
{
    while (krait_collector_said(c))
        ;
}

void krait_collector_hurry(struct krait_collector *c)
{
    c->busy_nap = true;
}

void krait_collector_nap(struct krait_collector *c)
{
    struct krait_control *control = c->shm.control;
    uint64_t left_ns = krait_limits_time_left(c, krait_clock_ns(CLOCK_MONOTONIC));
    uint64_t nap_ns = (c->busy_nap ? NAP_BUSY_US : NAP_IDLE_US) * KRAIT_NS_PER_US;
    struct timespec nap = { .tv_nsec = (long)KRAIT_MIN(nap_ns, left_ns) };
    atomic_store(&control->sleeping, 1);
    syscall(SYS_futex, &control->sleeping, FUTEX_WAIT, 1, &nap, NULL, 0);
    atomic_store(&control->sleeping, 0);
    krait_collector_beat(c);
}

void krait_collector_child(struct krait_collector *c, int pid)
{
    c->child = pid;
    count_from_now(c);
}

void krait_collector_ended(struct krait_collector *c, int pid, enum krait_event_enum_value how, int status,
                           uint64_t tick)
{
    c->child = 0;
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        if (c->procs[i].dir && c->procs[i].pid == pid) {
            c->procs[i].how = how;
            c->procs[i].status = status;
            c->procs[i].ended = tick;
        }
    }
}

uint32_t krait_collector_begins(const struct krait_collector *c, int pid)
{
    return count_of(&c->joined, pid);
}

uint32_t krait_collector_begun(const struct krait_collector *c, int pid)
{
    return count_of(&c->begun, pid);
}

bool krait_collector_has(const struct krait_collector *c, int pid)
{
    bool has = false;
    for (uint32_t i = 0; i < c->procs_used; i++)
        has |= c->procs[i].dir && c->procs[i].pid == pid;
    return has;
}

/* One that has been switched on a moment ago is not taken in yet. */
bool krait_collector_is_ready(const struct krait_collector *c, int pid)
{
    for (uint32_t i = 0; i < c->procs_used; i++) {
        const struct krait_proc *slot = &c->shm.procs[i];
        enum krait_slot_state state = krait_slot_state(atomic_load(&slot->state));
        bool is_new = (state == KRAIT_SLOT_TAKEN || state == KRAIT_SLOT_OPEN) && !c->procs[i].pid;
        if (is_new && slot->pid == pid && slot->image == krait_collector_image(pid))
            return true;
    }
    return false;
}

uint32_t krait_collector_pids(const struct krait_collector *c, pid_t *pids, uint32_t size)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->procs_used; i++) {
        if (c->procs[i].dir && n++ < size)
            pids[n - 1] = c->procs[i].pid;
    }
    return n;
}

void krait_collector_set_begins(struct krait_collector *c, bool begins)
{
    c->begins = begins;
    c->attaches |= begins;
}

bool krait_collector_left(const struct krait_collector *c, int pid)
{
    return krait_collector_begins(c, pid) && !krait_collector_has(c, pid);
}

void krait_collector_note_told(struct krait_collector *c, int pid)
{
    krait_map_put(&c->told, (uint64_t)pid, 1);
}

bool krait_collector_is_told(const struct krait_collector *c, int pid)
{
    return krait_map_get(&c->told, (uint64_t)pid);
}

bool krait_collector_is_on(const struct krait_collector *c)
{
    return atomic_load(&c->shm.control->state) == KRAIT_SESSION_RUN;
}

int krait_collector_refusal(const struct krait_collector *c, size_t i, char *why, size_t size)
{
    if (i >= KRAIT_REFUSALS)
        return 0;
    const struct krait_refusal *row = &c->shm.control->refusals[i];
    snprintf(why, size, "%.*s", (int)sizeof(row->why) - 1, row->why);
    return atomic_load(&row->pid);
}

uint32_t krait_collector_refused(const struct krait_collector *c)
{
    return atomic_load(&c->shm.control->refused);
}

bool krait_collector_filter_met(const struct krait_collector *c, size_t i)
{
    return i >= 64 || atomic_load(&c->shm.control->filters_met) >> i & 1;
}

bool krait_collector_level_unmet(const struct krait_collector *c, size_t before, size_t i)
{
    enum { ASKED = 1, BOTH = 3 };
    size_t bit = before + 2 * i;
    return bit < 63 && (atomic_load(&c->shm.control->filters_met) >> bit & BOTH) == ASKED;
}

bool krait_collector_name_unmet(const struct krait_collector *c, enum krait_named kind, size_t i)
{
    return i < 64 && !(atomic_load(&c->shm.control->names_met[kind].met) >> i & 1);
}

void krait_collector_names(const struct krait_collector *c, enum krait_named kind,
                           char names[KRAIT_NAMES_LIST])
{
    /* a program writes there still, and may write anything */
    const struct krait_names_met *met = &c->shm.control->names_met[kind];
    size_t used = KRAIT_MIN(atomic_load(&met->used), (uint32_t)KRAIT_NAMES_BYTES), n = 0;
    for (size_t i = 0; i < used; i++) { /* without what is left out */
        names[n] = met->names[i];
        n += names[n] || (n && names[n - 1]);
    }
    names[n] = names[n + 1] = '\0';
}

/* All parts of a recording have one clock, or what happened at once in two of them would not be at one time.
 * Its frequency is known best at the end. */
static void agree_on_clock(struct krait_collector *c, uint64_t freq_before)
{
    struct krait_err err;
    for (size_t at = 0; c->clock.freq != freq_before && at < c->ended.len;
         at += strlen(c->ended.data + at) + 1) {
        int rc = krait_tracedir_set_clock(c->ended.data + at, &c->clock, &err);
        if (rc && rc != -ENOENT) /* somebody may have taken the folder away */
            krait_collector_note_trouble(c, &err);
    }
}

void krait_collector_stop(struct krait_collector *c)
{
    if (!c->stopped_ns)
        c->stopped_ns = krait_clock_ns(CLOCK_MONOTONIC);
    krait_switch_stop(c->shm.control);
    krait_ctl_force_slow_path(c);
}

void krait_collector_finish(struct krait_collector *c, struct krait_collector_summary *summary)
{
    uint64_t freq_before = c->clock.freq;
    krait_clock_refine(&c->clock);
    c->ends_off = atomic_load(&c->shm.control->state) == KRAIT_SESSION_OFF;
    krait_switch_stop(c->shm.control);
    answer_joins(c);
    krait_join_socket_close(&c->join); /* lest somebody waits at it */
    krait_ctl_round(c);
    krait_ctl_close(&c->ctl);
    look_at_procs(c);
    do
        krait_drain_rings(c);
    while (krait_limits_pause(c) && krait_collector_keep_newest(c));
    for (uint32_t i = 0; i < KRAIT_PROCS_MAX; i++) {
        if (!c->procs[i].dir)
            continue;
        bool gone = is_gone(&c->procs[i]);
        c->total.alive += !gone;
        /* Who lives may still write in its rings: they are nobody else's. */
        complete_proc(c, i, gone ? c->procs[i].how : KRAIT_process_end_stop, c->procs[i].status);
        forget_proc(c, i);
    }
    if (c->total.alive)
        krait_drain_give_up(c);
    agree_on_clock(c, freq_before);
    krait_newest_finish(c);
    krait_triggers_finish(c);
    for (uint32_t reason = 0; reason < KRAIT_COUNT_lost_reason; reason++)
        c->total.lost[reason] += atomic_load(&c->shm.control->lost[reason]);
    uint64_t end_ns = c->stopped_ns ? c->stopped_ns : krait_clock_ns(CLOCK_MONOTONIC);
    c->total.duration_ns = end_ns - c->begin_ns;
    c->total.grown_bytes = c->recording.grown_bytes;
    c->total.limit = c->recording.limit;
    c->total.dropped_events = c->recording.dropped_events;
    c->finished = true;
    *summary = c->total;
    summary->bytes += c->metadata_bytes;
    if (c->reserve)
        unlink(c->reserve);
    summary->had_trouble = c->trouble.code;
    atomic_store(&c->shm.control->state, KRAIT_SESSION_DONE);
    syscall(SYS_futex, &c->shm.control->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
