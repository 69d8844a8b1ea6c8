/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that several formats share.
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

/* Walks the calls of a thread. Sets job->some if there is one, and stores the first damage in the job. */
int krait_export_walk(struct krait_export_job *job, uint32_t thread, krait_call_batch_fn *fn, void *ctx);

/* Walks the tracks of a thread (KRAIT_NO_ID: tracks without a thread) that have this kind and name (NULL: any), in the
 * job's range, but not those of the kernel's part. Stores the first damage in the job. Only for formats with
 * KRAIT_EXPORT_HAS_TRACKS. */
int krait_export_tracks(struct krait_export_job *job, uint32_t thread, enum krait_track_kind kind,
                        const char *name, krait_batch_fn *fn, void *ctx);

/* What a format does with tracks of a kind. */
struct krait_export_kind {
    enum krait_track_kind kind;
    const char *name; /* NULL: any */
    krait_batch_fn *fn;
};

/* What a format does with a thread's other tracks than calls: the functions get batches of waits for the GIL, of the spans of
 * other states and slices, of marks, of values and of flows. NULL: nothing. */
struct krait_export_thread_fns {
    krait_batch_fn *waits, *spans, *marks, *values, *flows;
};

int krait_export_thread_kinds(struct krait_export_job *job, uint32_t thread,
                              const struct krait_export_thread_fns *fns, void *ctx);

/* If the thread is the first exported one of its process, walks the states of that process's tasks. If threads were chosen,
 * only of the tasks that ran in them. `begin` gets each track before the first one is walked. */
int krait_export_tasks(struct krait_export_job *job, uint32_t thread,
                       int (*begin)(void *ctx, const struct krait_track *track), krait_batch_fn *fn,
                       void *ctx);

/* The meaning of a state's value: the key for the task that it waits for, or that woke it. NULL: none. */
const char *krait_export_whom(const char *state, int64_t value);

/* Walks the lanes that analyses made, which belong to no thread, by their kinds. `begin` gets each track before it is
 * walked. */
int krait_export_lanes(struct krait_export_job *job, int (*begin)(void *ctx, const struct krait_track *track),
                       const struct krait_export_kind *kinds, size_t count, void *ctx);

/* The name of such a track: the title of its lane, and after it the track's own name, if it differs. */
void krait_export_lane_name(struct krait_buf *to, const struct krait_track *track);

/* The kernel's part of the job's trace. *out is NULL if there is none, if it was not asked for, or if it cannot be read; the
 * job then has the reason. Returns 0, or -ENOMEM with err set. */
int krait_export_kernel_new(struct krait_kernel_slices **out, struct krait_export_job *job,
                            struct krait_err *err);

/* Calls each(ctx, thread) for the chosen threads, until a call returns a value other than 0; returns that value. */
int krait_export_each_thread(struct krait_export_job *job, int (*each)(void *ctx, uint32_t thread),
                             void *ctx);

/* Nanoseconds since the beginning of the recording; 0 for times before it, which damage may cause. */
static inline uint64_t krait_export_since_begin(const struct krait_export_job *job, uint64_t t_ns)
{
    return t_ns > job->zero_ns ? t_ns - job->zero_ns : 0;
}

/* The call tree of the job, grouped. Sets job->some and job->damage like krait_export_walk. */
int krait_export_tree(struct krait_export_job *job, enum krait_tree_group group, struct krait_calltree **out,
                      struct krait_err *err);
static inline void krait_export_tree_free(struct krait_calltree **tree)
{
    krait_calltree_free(*tree);
}
#define KRAIT_AUTO_TREE KRAIT_CLEANUP(krait_export_tree_free) struct krait_calltree

/* The next node in preorder; KRAIT_NO_ID: this was the last one. */
uint32_t krait_export_tree_next(const struct krait_calltree *tree, uint32_t node);

/* Module and name, like krait_func_label, but of any length. "?": neither is known. */
void krait_export_func_label(struct krait_buf *buf, const struct krait_func *func);
/* "python3", "MainThread"; without a name, "process", "main thread" or "thread". */
const char *krait_export_process_name(const struct krait_process *process);
const char *krait_export_thread_name(const struct krait_trace *trace, const struct krait_thread *thread);

/* By enum krait_op_kind: a word for how a call began or ended; NULL for a plain call and return. */
extern const char *const krait_export_ways[KRAIT_OP_CUT + 1];

/* The type of the exception by which a call ended; NULL: there is none, or it is not known. */
const char *krait_export_exception(const struct krait_trace *trace, const struct krait_call_batch *ops,
                                   uint32_t op);

/* A text for each function, made once, so that a million calls need no escaping. */
struct krait_export_texts {
    struct krait_buf buf;
    size_t *ends; /* of function i: from ends[i - 1] to ends[i] */
};

typedef void krait_export_text_fn(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func);

/* Returns 0, or -ENOMEM with err set; call _done in either case. */
int krait_export_texts_init(struct krait_export_texts *texts, const struct krait_trace *trace,
                            krait_export_text_fn *fn, struct krait_err *err);
void krait_export_texts_done(struct krait_export_texts *texts);

static inline void krait_export_text_add(struct krait_buf *buf, const struct krait_export_texts *texts,
                                         uint32_t func)
{
    size_t from = func ? texts->ends[func - 1] : 0;
    krait_buf_add(buf, texts->buf.data + from, texts->ends[func] - from);
}

/* Unique process and thread ids, for formats that identify processes and threads by nothing else. The kernel's ids repeat
 * after an exec, after four million forks, and on other hosts. Of equal ids, all but one are replaced by numbers above those
 * of Linux, whose highest is 2^22 (PID_MAX_LIMIT in linux/threads.h). */
struct krait_export_ids {
    uint32_t *pids, *tids; /* by index of process and thread */
    uint32_t none, lanes;  /* two ids that no process has */
};

/* Uses the kernel's own numbers if `kernel` is not NULL. */
int krait_export_ids_init(struct krait_export_ids *ids, const struct krait_trace *trace,
                          const struct krait_kernel_slices *kernel, struct krait_err *err);
void krait_export_ids_done(struct krait_export_ids *ids);

#endif
