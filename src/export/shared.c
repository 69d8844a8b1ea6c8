/* SPDX-License-Identifier: Apache-2.0 */
#include "export/formats.h"

#include "trace/importer.h"
#include "trace/lanes.h"
#include "trace/tasks.h"

#include <string.h>

enum { FIRST_MADE_UP_ID = (1 << 22) + 1 };

bool krait_export_takes(const struct krait_export_job *job, uint32_t thread)
{
    return !job->what.take_thread || job->what.take_thread(job->what.ctx, job->trace, thread);
}

struct noting {
    struct krait_export_job *job;
    krait_call_batch_fn *fn;
    void *ctx;
};

static int note_some(void *ctx, const struct krait_call_batch *ops)
{
    struct noting *noting = ctx;
    noting->job->some = true;
    return noting->fn(noting->ctx, ops);
}

int krait_export_walk(struct krait_export_job *job, uint32_t thread, krait_call_batch_fn *fn, void *ctx)
{
    struct noting noting = { job, fn, ctx };
    return krait_trace_walk(job->trace, thread, job->what.range, note_some, &noting, job->damage,
                            sizeof(job->damage));
}

/* Whether no earlier thread of the process is exported. */
static bool is_first(const struct krait_export_job *job, uint32_t thread)
{
    const struct krait_thread *threads = job->trace->threads;
    for (uint32_t i = thread; i-- && threads[i].process == threads[thread].process;) {
        if (krait_export_takes(job, i))
            return false;
    }
    return true;
}

/* Tracks that stand behind those of the process's threads: spans that tasks begin in the thread, and with the first thread
 * what is the process's. */
static int walk_others(struct krait_export_job *job, uint32_t thread, enum krait_track_of of,
                       enum krait_track_kind kind, krait_batch_fn *fn, void *ctx)
{
    const struct krait_trace *trace = job->trace;
    const struct krait_thread *own = &trace->threads[thread];
    KRAIT_AUTO_FREE uint32_t *tracks = malloc(((size_t)trace->track_count + 1) * sizeof(*tracks));
    uint32_t count = 0, i = own->first_track + own->track_count;
    for (; tracks && i < trace->track_count && trace->tracks[i].process == own->process; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->of == of && track->kind == kind && (of == KRAIT_OF_PROCESS || track->thread == thread))
            tracks[count++] = i;
    }
    return tracks ? krait_tracks_walk(trace, tracks, count, job->what.range, fn, ctx, job->damage,
                                      sizeof(job->damage))
                  : -ENOMEM;
}

int krait_export_tracks(struct krait_export_job *job, uint32_t thread, enum krait_track_kind kind,
                        const char *name, krait_batch_fn *fn, void *ctx)
{
    const struct krait_trace *trace = job->trace;
    const struct krait_thread *own = thread == KRAIT_NO_ID ? NULL : &trace->threads[thread];
    uint32_t end = own ? own->first_track + own->track_count : trace->track_count;
    int rc = 0;
    for (uint32_t i = own ? own->first_track : 0; i < end && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        bool is_others = track->importer == KRAIT_IMPORTER_kernel || track->of == KRAIT_OF_LANE ||
                         track->of == KRAIT_OF_PROCESS;
        if (track->thread == thread && track->kind == kind && !is_others &&
            (!name || strcmp(track->name, name) == 0))
            rc = krait_track_walk(trace, i, job->what.range, fn, ctx, job->damage, sizeof(job->damage));
    }
    if (!rc && own && kind == KRAIT_TRACK_SLICES && trace->task_count && !name)
        rc = walk_others(job, thread, KRAIT_OF_TASK, kind, fn, ctx);
    if (!rc && own && !name && is_first(job, thread))
        rc = walk_others(job, thread, KRAIT_OF_PROCESS, kind, fn, ctx);
    return rc;
}

int krait_export_thread_kinds(struct krait_export_job *job, uint32_t thread,
                              const struct krait_export_thread_fns *fns, void *ctx)
{
    const struct krait_export_kind kinds[] = {
        { KRAIT_TRACK_STATES, "GIL", fns->waits },
        { KRAIT_TRACK_STATES, "lost", fns->spans },
        { KRAIT_TRACK_STATES, KRAIT_TRACK_SAMPLED_STATE, fns->spans },
        { KRAIT_TRACK_INSTANTS, NULL, fns->marks },
        { KRAIT_TRACK_SLICES, NULL, fns->spans },
        { KRAIT_TRACK_COUNTER, NULL, fns->values },
        { KRAIT_TRACK_FLOWS, NULL, fns->flows },
    };
    int rc = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(kinds) && !rc; i++) {
        if (kinds[i].fn)
            rc = krait_export_tracks(job, thread, kinds[i].kind, kinds[i].name, kinds[i].fn, ctx);
    }
    return rc;
}

/* The tasks that ran in threads that are exported. *ran is NULL where all threads of the process are. */
static int find_ran(const struct krait_export_job *job, uint32_t process, bool **ran)
{
    const struct krait_trace *trace = job->trace;
    bool all = true;
    for (uint32_t i = 0; i < trace->thread_count; i++)
        all &= trace->threads[i].process != process || krait_export_takes(job, i);
    *ran = all ? NULL : calloc(trace->task_count, sizeof(**ran));
    for (uint32_t i = 0; *ran && i < trace->thread_count; i++) {
        if (trace->threads[i].process == process && krait_export_takes(job, i))
            krait_tasks_of(trace, i, *ran);
    }
    return all || *ran ? 0 : -ENOMEM;
}

int krait_export_tasks(struct krait_export_job *job, uint32_t thread,
                       int (*begin)(void *ctx, const struct krait_track *track), krait_batch_fn *fn,
                       void *ctx)
{
    const struct krait_trace *trace = job->trace;
    uint32_t process = trace->threads[thread].process, count = 0;
    KRAIT_AUTO_FREE uint32_t *tracks = NULL;
    KRAIT_AUTO_FREE bool *ran = NULL;
    if (!trace->task_count || !is_first(job, thread))
        return 0;
    tracks = malloc(trace->task_count * sizeof(*tracks));
    int rc = tracks ? find_ran(job, process, &ran) : -ENOMEM;
    for (uint32_t i = 0; i < trace->track_count && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (track->importer != KRAIT_IMPORTER_krait_tasks || track->process != process ||
            (ran && !ran[track->key]))
            continue;
        tracks[count++] = i;
        rc = begin(ctx, track);
    }
    return rc ? rc
              : krait_tracks_walk(trace, tracks, count, job->what.range, fn, ctx, job->damage,
                                  sizeof(job->damage));
}

const char *krait_export_whom(const char *state, int64_t value)
{
    return !value                                                        ? NULL
           : strcmp(state, krait_task_state_names[KRAIT_TASK_TASK]) == 0 ? "waits_for"
                                                                         : "woken_by";
}

static int walk_lane(struct krait_export_job *job, uint32_t track, const struct krait_export_kind *kinds,
                     size_t count, void *ctx)
{
    int rc = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        if (kinds[i].kind == job->trace->tracks[track].kind)
            rc = krait_track_walk(job->trace, track, job->what.range, kinds[i].fn, ctx, job->damage,
                                  sizeof(job->damage));
    }
    return rc;
}

int krait_export_lanes(struct krait_export_job *job, int (*begin)(void *ctx, const struct krait_track *track),
                       const struct krait_export_kind *kinds, size_t count, void *ctx)
{
    const struct krait_trace *trace = job->trace;
    int rc = 0;
    for (uint32_t i = krait_trace_recorded_tracks(trace); i < trace->track_count && !rc; i++) {
        rc = begin(ctx, &trace->tracks[i]);
        rc = rc ? rc : walk_lane(job, i, kinds, count, ctx);
    }
    return rc;
}

void krait_export_lane_name(struct krait_buf *to, const struct krait_track *track)
{
    bool is_other = strcmp(track->name, track->thread_name) != 0;
    krait_buf_fmt(to, "%s%s%s", track->thread_name, is_other ? ": " : "", is_other ? track->name : "");
}

static void say_damage(struct krait_export_job *job, const struct krait_err *damage)
{
    snprintf(job->kernel_damage, sizeof(job->kernel_damage), "%s", damage->code ? damage->text : "");
}

int krait_export_kernel_new(struct krait_kernel_slices **out, struct krait_export_job *job,
                            struct krait_err *err)
{
    const struct krait_kernel_slices_options options = { job->what.range, job->what.take_thread,
                                                         job->what.ctx };
    struct krait_err why = { 0 };
    *out = NULL;
    if (job->no_kernel || !job->trace->has_kernel)
        return 0;
    int rc = krait_kernel_slices_new(out, job->trace, &options, &why);
    if (rc == -ENOMEM)
        return krait_err_set(err, rc, "%s", why.text);
    say_damage(job, rc ? &why : krait_kernel_events_damage((*out)->events));
    return 0;
}

int krait_export_each_thread(struct krait_export_job *job, int (*each)(void *ctx, uint32_t thread), void *ctx)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < job->trace->thread_count; i++) {
        if (krait_export_takes(job, i))
            rc = each(ctx, i);
    }
    return rc;
}

int krait_export_tree(struct krait_export_job *job, enum krait_tree_group group, struct krait_calltree **out,
                      struct krait_err *err)
{
    struct krait_calltree_options options = job->what;
    options.group = group;
    int rc = krait_calltree_new(out, job->trace, &options, err);
    if (rc)
        return rc;
    memcpy(job->damage, (*out)->damage, sizeof(job->damage));
    for (uint32_t i = 0; i < (*out)->count && !job->some; i++)
        job->some = (*out)->nodes[i].func != KRAIT_NO_ID;
    return 0;
}

uint32_t krait_export_tree_next(const struct krait_calltree *tree, uint32_t node)
{
    if (tree->nodes[node].first_child != KRAIT_NO_ID)
        return tree->nodes[node].first_child;
    while (node != KRAIT_NO_ID && tree->nodes[node].next_sibling == KRAIT_NO_ID)
        node = tree->nodes[node].parent;
    return node == KRAIT_NO_ID ? node : tree->nodes[node].next_sibling;
}

void krait_export_func_label(struct krait_buf *buf, const struct krait_func *func)
{
    const char *module = krait_func_prefix(func->kind, func->module);
    krait_buf_str(buf, module);
    if (*module && *func->name)
        krait_buf_char(buf, '.');
    krait_buf_str(buf, *module || *func->name ? func->name : "?");
    krait_buf_str(buf, func->holds_dropped ? KRAIT_HOLDS_DROPPED : "");
}

const char *krait_export_process_name(const struct krait_process *process)
{
    return *process->name ? process->name : "process";
}

const char *krait_export_thread_name(const struct krait_trace *trace, const struct krait_thread *thread)
{
    if (*thread->name)
        return thread->name;
    return thread->tid == trace->processes[thread->process].pid ? "main thread" : "thread";
}

const char *const krait_export_ways[] = {
    [KRAIT_OP_CALL] = NULL,       [KRAIT_OP_RESUME] = "resume", [KRAIT_OP_THROW] = "throw",
    [KRAIT_OP_LIVE] = "live",     [KRAIT_OP_RETURN] = NULL,     [KRAIT_OP_YIELD] = "yield",
    [KRAIT_OP_UNWIND] = "unwind", [KRAIT_OP_CUT] = "cut",
};

const char *krait_export_exception(const struct krait_trace *trace, const struct krait_call_batch *ops,
                                   uint32_t op)
{
    if (ops->kind[op] != KRAIT_OP_UNWIND || ops->exception[op] == KRAIT_NO_ID)
        return NULL;
    return trace->exceptions[ops->exception[op]];
}

int krait_export_texts_init(struct krait_export_texts *texts, const struct krait_trace *trace,
                            krait_export_text_fn *fn, struct krait_err *err)
{
    *texts =
        (struct krait_export_texts){ .ends = calloc((size_t)trace->func_count + 1, sizeof(*texts->ends)) };
    for (uint32_t i = 0; texts->ends && i < trace->func_count; i++) {
        fn(&texts->buf, trace, i);
        texts->ends[i] = texts->buf.len;
    }
    if (!texts->ends || texts->buf.failed)
        return krait_err_set(err, -ENOMEM, "out of memory for the names of %u functions", trace->func_count);
    return 0;
}

void krait_export_texts_done(struct krait_export_texts *texts)
{
    krait_buf_done(&texts->buf);
    free(texts->ends);
    texts->ends = NULL;
}

/* An id that is not taken under `scope`, `wanted` if it can be. Returns 0 when memory is out. */
static uint32_t free_id(struct krait_map *taken, uint32_t scope, uint32_t wanted, uint32_t *made_up)
{
    uint32_t id = wanted;
    while (!id || krait_map_get(taken, (uint64_t)scope << 32 | id))
        id = (*made_up)++;
    return krait_map_put(taken, (uint64_t)scope << 32 | id, 1) ? 0 : id;
}

static bool give_ids(struct krait_export_ids *ids, const struct krait_trace *trace,
                     const struct krait_kernel_slices *kernel, struct krait_map *taken)
{
    uint32_t made_up = FIRST_MADE_UP_ID;
    for (uint32_t i = 0; i < trace->process_count; i++) {
        uint32_t pid = krait_kernel_slices_id(kernel, trace->processes[i].pid);
        ids->pids[i] = free_id(taken, 0, pid, &made_up);
        if (!ids->pids[i])
            return false;
    }
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        const struct krait_thread *thread = &trace->threads[i];
        bool is_main = thread->tid == trace->processes[thread->process].pid;
        uint32_t pid = ids->pids[thread->process];
        uint32_t tid = is_main ? pid : krait_kernel_slices_id(kernel, thread->tid);
        ids->tids[i] = free_id(taken, pid, tid, &made_up);
        if (!ids->tids[i])
            return false;
    }
    ids->none = free_id(taken, 0, 0, &made_up);
    ids->lanes = free_id(taken, 0, 0, &made_up);
    return ids->none && ids->lanes;
}

int krait_export_ids_init(struct krait_export_ids *ids, const struct krait_trace *trace,
                          const struct krait_kernel_slices *kernel, struct krait_err *err)
{
    struct krait_map taken = { 0 };
    ids->pids = calloc((size_t)trace->process_count + 1, sizeof(*ids->pids));
    ids->tids = calloc((size_t)trace->thread_count + 1, sizeof(*ids->tids));
    bool done = ids->pids && ids->tids && give_ids(ids, trace, kernel, &taken);
    krait_map_done(&taken);
    return done ? 0 : krait_err_set(err, -ENOMEM, "out of memory for the ids of processes and threads");
}

void krait_export_ids_done(struct krait_export_ids *ids)
{
    free(ids->pids);
    free(ids->tids);
    *ids = (struct krait_export_ids){ 0 };
}
