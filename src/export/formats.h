/* SPDX-License-Identifier: Apache-2.0
 *
 * What the formats share.
 */
#ifndef KRAIT_EXPORT_FORMATS_H
#define KRAIT_EXPORT_FORMATS_H

#include "export/export.h"
#include "trace/kernel/kernel_slices.h"
#include "trace/track.h"

#define KRAIT_EXPORT(id, text, flags, opener, names)                                     \
    int krait_export_write_##id(struct krait_export_job *job, struct krait_outfile *out, \
                                struct krait_err *err);
#include "export/exports.def"
#undef KRAIT_EXPORT

bool krait_export_takes(const struct krait_export_job *job, uint32_t thread);

/* Walks one thread and keeps in the job that there was a call, and the first damage. */
int krait_export_walk(struct krait_export_job *job, uint32_t thread, krait_call_batch_fn *fn, void *ctx);

/* Walks the tracks of a thread that are of a kind and called so (NULL: whatever they are called), in the job's range;
 * KRAIT_NO_ID: those of no thread. Not those of the kernel's part. Keeps the first damage in the job. Of formats that
 * have KRAIT_EXPORT_HAS_TRACKS. */
int krait_export_tracks(struct krait_export_job *job, uint32_t thread, enum krait_track_kind kind,
                        const char *name, krait_batch_fn *fn, void *ctx);

/* What a format makes of tracks of a kind. */
struct krait_export_kind {
    enum krait_track_kind kind;
    const char *name; /* NULL: whatever they are called */
    krait_batch_fn *fn;
};

/* What a format makes of a thread's tracks that are no calls: its batches of waits for the GIL, of the spans of other states and
 * slices, of marks, values and flows. NULL: nothing. */
struct krait_export_thread_fns {
    krait_batch_fn *waits, *spans, *marks, *values, *flows;
};

int krait_export_thread_kinds(struct krait_export_job *job, uint32_t thread,
                              const struct krait_export_thread_fns *fns, void *ctx);

/* States of the tasks of the thread's process, if it is the first thread of it that is exported; of threads that were chosen,
 * only the tasks that ran in one of them. `begin` names each track before the first is walked. */
int krait_export_tasks(struct krait_export_job *job, uint32_t thread,
                       int (*begin)(void *ctx, const struct krait_track *track), krait_batch_fn *fn,
                       void *ctx);

/* What a state's value says: the key of the task that it waits for, or that woke it. NULL: nothing. */
const char *krait_export_whom(const char *state, int64_t value);

/* The same of lanes that analyses made, which are not of any thread, by their kinds: `begin` names each track before it is
 * walked. */
int krait_export_lanes(struct krait_export_job *job, int (*begin)(void *ctx, const struct krait_track *track),
                       const struct krait_export_kind *kinds, size_t count, void *ctx);

/* What such a track is called: its lane's title, and behind it its own name where that is another. */
void krait_export_lane_name(struct krait_buf *to, const struct krait_track *track);

/* Whether a mark is of what spans' and counters' own tracks show. */
bool krait_export_is_elsewhere(const struct krait_track *track, const char *name);

/* The kernel's part of the job's trace. *out is NULL if there is none, where it was not asked for, and where
 * it cannot be read, which is said in the job. Returns 0, or -ENOMEM with err set. */
int krait_export_kernel_new(struct krait_kernel_slices **out, struct krait_export_job *job,
                            struct krait_err *err);

/* Calls each(ctx, thread) for the threads that are taken, until one returns other than 0; returns that. */
int krait_export_each_thread(struct krait_export_job *job, int (*each)(void *ctx, uint32_t thread),
                             void *ctx);

/* Nanoseconds after the recording's beginning. What damage has put before it counts as the beginning. */
static inline uint64_t krait_export_since_begin(const struct krait_export_job *job, uint64_t t_ns)
{
    return t_ns > job->zero_ns ? t_ns - job->zero_ns : 0;
}

/* The call tree of the job, grouped. Keeps the same in the job. */
int krait_export_tree(struct krait_export_job *job, enum krait_tree_group group, struct krait_calltree **out,
                      struct krait_err *err);
static inline void krait_export_tree_free(struct krait_calltree **tree)
{
    krait_calltree_free(*tree);
}
#define KRAIT_AUTO_TREE KRAIT_CLEANUP(krait_export_tree_free) struct krait_calltree

/* The node after this one when parents come before their children, and these in order; KRAIT_NO_ID after the last. */
uint32_t krait_export_tree_next(const struct krait_calltree *tree, uint32_t node);

/* Module and name, whole: krait_func_label without its bound. "?" where neither is known. */
void krait_export_func_label(struct krait_buf *buf, const struct krait_func *func);
/* "python3", "MainThread"; the kind of thing where it has no name. */
const char *krait_export_process_name(const struct krait_process *process);
const char *krait_export_thread_name(const struct krait_trace *trace, const struct krait_thread *thread);

/* How a call began or ended other than by call and return, in a word, by enum krait_op_kind; NULL for those. */
extern const char *const krait_export_ways[KRAIT_OP_CUT + 1];

/* The type of the exception that the op, an end, is of; NULL if there is none, or it is not known. */
const char *krait_export_exception(const struct krait_trace *trace, const struct krait_call_batch *ops,
                                   uint32_t op);

/* A piece of text for each function, made once: that a million calls cost no escaping. */
struct krait_export_texts {
    struct krait_buf buf;
    size_t *ends; /* of function i: from ends[i - 1] to ends[i] */
};

typedef void krait_export_text_fn(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func);

/* 0 or -ENOMEM with err set; _done in either case. */
int krait_export_texts_init(struct krait_export_texts *texts, const struct krait_trace *trace,
                            krait_export_text_fn *fn, struct krait_err *err);
void krait_export_texts_done(struct krait_export_texts *texts);

static inline void krait_export_text_add(struct krait_buf *buf, const struct krait_export_texts *texts,
                                         uint32_t func)
{
    size_t from = func ? texts->ends[func - 1] : 0;
    krait_buf_add(buf, texts->buf.data + from, texts->ends[func] - from);
}

/* Process and thread ids that differ for different processes and threads, for formats that know nothing else
 * of them: ids come again after an exec, after four million forks, and on another host. What clashes gets a
 * number that Linux does not give (its highest is 2^22, PID_MAX_LIMIT in linux/threads.h). */
struct krait_export_ids {
    uint32_t *pids, *tids; /* by index of process and thread */
    uint32_t none, lanes;  /* two that no process has */
};

/* By the kernel's own numbers where `kernel` is not NULL. */
int krait_export_ids_init(struct krait_export_ids *ids, const struct krait_trace *trace,
                          const struct krait_kernel_slices *kernel, struct krait_err *err);
void krait_export_ids_done(struct krait_export_ids *ids);

#endif
