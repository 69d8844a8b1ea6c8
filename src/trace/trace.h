/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace model: what analyses, exports and views read, whatever recorded it.
 *
 * Opening a trace reads the metadata, the definitions and the heads of the packets. Functions, processes and threads
 * are then in memory; a function that two processes share is there once. Calls are streamed: a walk hands out the
 * calls of a thread by time, in batches of columns that fit the cache, so memory does not grow with the trace. They
 * are always balanced: each begin has an end, properly nested, even if events were lost or a range cuts them. Begins
 * and ends that were added are flagged.
 *
 * Times are nanoseconds since the epoch (CLOCK_REALTIME). Ids are dense, from 0. Two threads must not use one struct
 * krait_trace at a time, with one exception: they may walk different threads of it (krait_trace_walk is const).
 */
#ifndef KRAIT_TRACE_TRACE_H
#define KRAIT_TRACE_TRACE_H

#include "base/err.h"
#include "base/fmt.h"
#include "base/map.h"

enum krait_func_kind {
    KRAIT_FUNC_PYTHON = 0,
    KRAIT_FUNC_C = 1,      /* written in C and called by Python */
    KRAIT_FUNC_NATIVE = 2, /* of a program or library without Python: its name is complete */
    KRAIT_FUNC_KINDS
};

/* Of whose calls several steps may be known. */
enum krait_suspends {
    KRAIT_SUSPENDS_NOT, /* or it is not known */
    KRAIT_SUSPENDS_COROUTINE,
    KRAIT_SUSPENDS_GENERATOR, /* or an async one */
};

/* A function. The trace owns the strings; they are never NULL, and empty if not known. */
struct krait_func {
    const char *name;   /* qualified in its module: JSONDecoder.decode */
    const char *module; /* dotted: json.decoder */
    const char *file;
    uint32_t line; /* the first one; 0: none */
    enum krait_func_kind kind;
    uint32_t site_func; /* with --call-sites, the caller's func id; else KRAIT_NO_ID */
    uint32_t site_line; /* with --call-sites, the line that calls; else 0 */
    uint32_t base;      /* the id of this function regardless of its caller; without a call site its own id */
    uint8_t suspends;   /* enum krait_suspends */
    bool is_own;        /* krait.recording() puts it around a function: walks skip it */
    /* Its self time contains that of dropped functions: krait_trace_find_holders. */
    bool holds_dropped;
};

/* The first two functions stand for calls whose code has no definition. */
enum { KRAIT_FUNC_UNKNOWN_PYTHON, KRAIT_FUNC_UNKNOWN_C };

struct krait_process {
    uint32_t pid;
    uint32_t ppid;       /* 0 if not known */
    const char *name;    /* python3, gunicorn */
    const char *command; /* command line; may be empty */
    const char *runtime; /* "CPython 3.13.0"; may be empty */
    const char *host;    /* host name; may be empty */
    const char *dir;     /* the folder of its CTF trace */
    const char *origin;  /* label of process_origin; may be empty */
    const char *end; /* label of process_end; empty: the recording has no end; "?": it does not record ends */
    int32_t end_status; /* exit status or signal; -1 if not known */
    uint64_t begin_ns, end_ns;
    uint64_t kept_ns; /* krait record --last and --keep newest dropped what was earlier; 0: nothing */
    /* When its recording was switched off, ordered by time; the last gap may end with the process. */
    const struct krait_range *gaps;
    uint32_t gap_count;
    /* The same and the moments in which krait ctl set changed what is recorded: open calls end there, and tasks are forgotten. */
    const struct krait_range *unrecorded;
    uint32_t unrecorded_count;
    /* The time that it took to record a call, by enum krait_func_kind: between the times of its begin and end, and outside of
     * them, in its caller. All 0: not measured. */
    struct krait_call_cost {
        uint32_t inside_ns, outside_ns;
    } cost[KRAIT_FUNC_KINDS];
};

struct krait_thread {
    uint8_t importer;                  /* that added it: a row of importers.def */
    uint8_t flags;                     /* enum krait_track_flags, of its calls */
    uint32_t first_track, track_count; /* after krait_tracks_find */
    uint32_t process;                  /* index */
    uint32_t tid;
    const char *name; /* the last one it had; may be empty */
    uint64_t begin_ns, end_ns;
    uint64_t bytes; /* size of the file that has only its calls; 0: there is none */
};

/* A task of asyncio or trio, or a greenlet. */
struct krait_task {
    uint32_t process; /* index */
    uint32_t id;      /* in the process, from 1 */
    uint32_t func;    /* its coroutine's; KRAIT_NO_ID: it has not begun */
    const char *name; /* "Task-7" if nobody gave it one */
    /* The address of the nursery of trio that it runs in, or of asyncio's future for several tasks, or the number of the
     * set of greenlets that are awaited together; 0: none. */
    uint64_t nursery;
    uint64_t nursery_before, moved_ns; /* the nursery that it was in before moved_ns */
    /* Of a greenlet: its parent from a time on, and the one before that; of no id before both. */
    struct krait_task_parent {
        uint32_t id; /* 0: the thread's main greenlet; KRAIT_NO_ID: not known */
        uint64_t from_ns;
    } parents[2];
};

struct krait_trace_lost {
    const char *reason; /* label of lost_reason, or another tracer's words */
    const char *advice;
    uint64_t count;
    bool of_kernel; /* kernel events are missing, but no calls */
};

struct krait_trace {
    struct krait_func *funcs;
    uint32_t func_count;
    bool has_own; /* some of them have is_own */
    struct krait_process *processes;
    uint32_t process_count;
    struct krait_thread *threads; /* ordered by process, then by begin_ns */
    uint32_t thread_count;
    uint64_t begin_ns, end_ns; /* of all processes; without processes UINT64_MAX and 0 */
    uint64_t bytes;            /* of all files */
    struct krait_task *tasks;  /* ordered by process */
    uint32_t task_count;
    struct krait_trace_lost *lost; /* reasons with a count above 0 */
    uint32_t lost_count;
    struct krait_trace_omitted {
        uint32_t func;
        const char *reason; /* label of omit_reason */
        uint64_t calls;     /* recorded before it was dropped, in all processes */
        uint64_t first_ns;  /* when the first process dropped it */
    } * omitted;            /* functions that the governor dropped */
    uint32_t omitted_count;
    struct krait_trace_set {
        uint64_t t_ns;
        uint32_t pid;
        const char *what; /* what is recorded from then on: "include=app.* c-calls=on"; untrusted */
    } * sets;             /* changes of what is recorded, by krait ctl set; ordered by time */
    uint32_t set_count;
    const char **exceptions; /* the types that were raised: "ValueError", "json.decoder.JSONDecodeError" */
    uint32_t exception_count;
    char newer_format[24];       /* "1.70": the format of a recording newer than this krait; else empty */
    struct krait_trace_samples { /* of a recording of samples; all 0: every call was recorded */
        uint64_t rate;           /* samples a second, as asked for */
        uint64_t taken, dropped; /* samples of all threads; samples that could not be proved */
        uint64_t interval_ns;    /* between two samples, on average over the samples */
        uint64_t weight_ns;      /* ... and over the time: more, if some are long */
    } samples;
    bool has_kernel;            /* it has kernel events: krait_trace_kernel (kernel.h) */
    struct krait_track *tracks; /* after krait_tracks_find (track.h) */
    uint32_t track_count;
    /* The first damage found so far (a truncated packet, a bad id); krait reads what is intact. Empty: none. */
    char damage[1024];
    /* Walks call this with the number of bytes that they have read since the last call; all files together have `bytes`.
     * If it returns false, the walk ends with -ECANCELED. NULL: nobody wants to know. Walks may be repeated, and several
     * may run at a time. */
    bool (*progress)(void *ctx, uint64_t bytes);
    void *progress_ctx;
    struct krait_trace_impl *impl; /* importer.h */
};

/* What the caller needs a trace to have. */
enum krait_trace_needs {
    KRAIT_NEEDS_CALLS = 1 << 0,  /* a process with recorded calls */
    KRAIT_NEEDS_KERNEL = 1 << 1, /* kernel events */
    KRAIT_CALLS_ALONE = 1 << 2,  /* only calls: krait need not find out what the kernel lost */
    /* If all paths are kernel traces, each recording is a machine of its own (kernel/machines.h). */
    KRAIT_MACHINES_APART = 1 << 3,
};

/* Opens traces as one, whatever recorded them (folders.h describes the folders). Errors: -ENOENT no such folder,
 * -EINVAL not a trace, or without what `needs` asks for (enum krait_trace_needs), -ENODATA without kernel events,
 * -EBADMSG damaged beyond use, -ENOMEM; err has the reason. */
int krait_trace_open(struct krait_trace **out, const char *const *paths, size_t count, unsigned needs,
                     struct krait_err *err);

/* Opens a recording that goes on, and reads of its calls only what was added since an earlier opening. `before` is what this
 * function returned last for the same paths, or NULL the first time; nobody may walk it with krait_trace_walk_on any more, other
 * readers may use it. It is not needed afterwards. Ids of functions are those of `before`. Processes that have not ended last
 * until now, less what the recorder may still have; so what is open in a thread that waits does not end. What is written while
 * it opens is left for the next time. Returns as krait_trace_open. */
int krait_trace_open_on(struct krait_trace **out, const struct krait_trace *before, const char *const *paths,
                        size_t count, unsigned needs, struct krait_err *err);

/* Bytes of threads' streams that were read so far, by the opening and by walks of krait's recordings; and of the kernel's
 * events, for the tracks of a recording that goes on and for what threads did (analysis/wall.h). */
uint64_t krait_trace_bytes_read(const struct krait_trace *trace);

/* The number of kernel events that were lost, for all reasons together. */
uint64_t krait_trace_kernel_lost(const struct krait_trace *trace);
void krait_trace_close(struct krait_trace *trace);

/* Returns 0 if the trace has calls, else a negative errno with the reason in err. */
int krait_trace_needs_calls(const struct krait_trace *trace, struct krait_err *err);

/* The beginning of a trace: the first event of the program or of the kernel, whichever is earlier. Every verb counts
 * times from there. For a kernel trace alone it may be negative, in two's complement. */
uint64_t krait_trace_zero(const struct krait_trace *trace);
/* From when on the processes have events: trace->begin_ns, or later if krait record --last dropped all that was earlier. */
uint64_t krait_trace_kept(const struct krait_trace *trace);

/* Sets holds_dropped of the functions whose self time contains that of dropped ones. If any were dropped, it walks all
 * threads. Returns 0 or -ENOMEM. */
int krait_trace_find_holders(struct krait_trace *trace);

/* "python", "c", "native": for programs. */
const char *krait_func_kind_name(enum krait_func_kind kind);

/* The text before a function's name and a dot; "": there is none. */
static inline const char *krait_func_prefix(enum krait_func_kind kind, const char *module)
{
    return kind == KRAIT_FUNC_NATIVE ? "" : module;
}

/* "json.decoder.JSONDecoder.decode": module and name joined, into buf (always terminated); returns buf. */
const char *krait_func_label(const struct krait_func *func, char *buf, size_t size);

enum krait_op_kind {
    KRAIT_OP_CALL = 0,   /* a function begins */
    KRAIT_OP_RESUME = 1, /* a generator or coroutine continues */
    KRAIT_OP_THROW = 2,  /* ... with an exception */
    /* It was open already when the recording, or the chosen range, began: a begin, not a call. */
    KRAIT_OP_LIVE = 3,
    KRAIT_OP_END = 4, /* from here on, all kinds end the innermost open begin */
    KRAIT_OP_RETURN = 4,
    KRAIT_OP_YIELD = 5,
    KRAIT_OP_UNWIND = 6, /* left by an exception (for C functions: raise) */
    /* Its end was not recorded: it was lost or left out, the process was killed, or the chosen range ends. */
    KRAIT_OP_CUT = 7,
};

static inline bool krait_op_is_end(uint8_t kind)
{
    return kind >= KRAIT_OP_END;
}

/* A call batch: begins and ends of calls of one thread, as columns of n entries. Times never go backwards in a thread. */
struct krait_call_batch {
    uint32_t n;
    const uint64_t *t_ns;
    const uint32_t *func;      /* of begins and of ends */
    const uint8_t *kind;       /* enum krait_op_kind */
    const uint32_t *exception; /* of KRAIT_OP_UNWIND: index of the trace's exceptions, or KRAIT_NO_ID */
    /* Of KRAIT_OP_CUT and KRAIT_OP_LIVE, where a thread switches greenlets: the number of the call that is suspended, or that
     * goes on, in this walk; 0: it is none. May be NULL. */
    const uint32_t *left;
};

/* Whether the begin or end at `i` is not the call's own: it was not recorded, or lies outside the range, so that nobody knows how
 * long the call took. A switch of greenlets suspends a call as a yield does, and cuts nothing. */
static inline bool krait_op_is_cut(const struct krait_call_batch *ops, uint32_t i)
{
    return (ops->kind[i] == KRAIT_OP_CUT || ops->kind[i] == KRAIT_OP_LIVE) && !(ops->left && ops->left[i]);
}

/* The kind for pictures and other tools: where a thread switches greenlets, a call is suspended as by a yield, and resumed. */
static inline uint8_t krait_op_shown(const struct krait_call_batch *ops, uint32_t i)
{
    uint8_t kind = ops->kind[i];
    if (KRAIT_LIKELY(kind != KRAIT_OP_LIVE && kind != KRAIT_OP_CUT) || krait_op_is_cut(ops, i))
        return kind;
    return kind == KRAIT_OP_LIVE ? KRAIT_OP_RESUME : KRAIT_OP_YIELD;
}

struct krait_range {
    uint64_t from_ns, to_ns; /* calls are cut at these; 0 and UINT64_MAX for all */
};

#define KRAIT_RANGE_ALL ((struct krait_range){ 0, UINT64_MAX })

/* Gets each batch, in order. If it returns a value other than 0, the walk ends and returns that. */
typedef int krait_call_batch_fn(void *ctx, const struct krait_call_batch *ops);

/* Walks the calls of one thread. It keeps only the batch and the stack in memory. Returns 0, what fn returned,
 * or a negative errno. Damage is no failure: krait hands out what is intact and closes open calls with
 * KRAIT_OP_CUT. If `damage` (size bytes, may be NULL) is empty, it is set to a sentence that names file, offset and
 * reason; so one text keeps the first damage of many walks. */
int krait_trace_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                     krait_call_batch_fn *fn, void *ctx, char *damage, size_t size);

/* The same for all calls of a thread. It also notes places in the stream (places.h), so that later walks of ranges begin
 * near them instead of at the beginning. Do not run it twice at a time for one thread; walks of ranges may run beside
 * it. */
int krait_trace_walk_noting(struct krait_trace *trace, uint32_t thread, krait_call_batch_fn *fn, void *ctx,
                            char *damage, size_t size);

/* Whether krait_trace_walk_on can walk a thread: one that krait recorded, of a trace that krait_trace_open_on opened. Then *before
 * is the thread of the earlier trace behind whose last walk the next one begins, or KRAIT_NO_ID: it begins at the begin. */
bool krait_trace_can_walk_on(const struct krait_trace *trace, uint32_t thread, uint32_t *before);

/* The walk of such a thread begins at the begin, after all. Not beside it. */
void krait_trace_walk_anew(struct krait_trace *trace, uint32_t thread);

/* Walks the calls that came since the walk of the earlier trace, without begins for those that are open there. It leaves open
 * what is open at the end, and notes places. Once for each thread, beside other walks of it. Returns as krait_trace_walk;
 * if *is_noted is false, or after an error, the next walk begins at the begin. */
int krait_trace_walk_on(struct krait_trace *trace, uint32_t thread, krait_call_batch_fn *fn, void *ctx,
                        bool *is_noted);

#endif
