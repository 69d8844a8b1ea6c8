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
    KRAIT_FUNC_C = 1,      /* of C, that Python calls */
    KRAIT_FUNC_NATIVE = 2, /* of a program or library, without Python: its name is whole without its module */
    KRAIT_FUNC_KINDS
};

/* A function. Strings are owned by the trace; never NULL, empty if not known. */
struct krait_func {
    const char *name;   /* qualified in its module: JSONDecoder.decode */
    const char *module; /* dotted: json.decoder */
    const char *file;
    uint32_t line; /* first line, 0 if there is none */
    enum krait_func_kind kind;
    uint32_t site_func; /* recorded with --call-sites: who calls, a func id; else KRAIT_NO_ID */
    uint32_t site_line; /* and from which line; else 0 */
    uint32_t base; /* the same function whoever calls it: its own id where nothing is known of the site */
    bool is_own;   /* what krait.recording() puts around a function: walks pass over it */
    /* its self time holds that of functions that were dropped: krait_trace_find_holders */
    bool holds_dropped;
};

/* The first two functions: calls whose code has no definition. */
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
    const char *end; /* label of process_end; empty: the recording has no end; "?": it does not tell ends */
    int32_t end_status; /* exit status or signal; -1 if not known */
    uint64_t begin_ns, end_ns;
    /* Where it was switched off, in the order of time; the last one may end with the process. */
    const struct krait_range *gaps;
    uint32_t gap_count;
    /* What recording a call took, by enum krait_func_kind: between the times of its begin and end, and outside of them, in
     * its caller. All 0: not measured. */
    struct krait_call_cost {
        uint32_t inside_ns, outside_ns;
    } cost[KRAIT_FUNC_KINDS];
};

struct krait_thread {
    uint8_t importer;                  /* whose: a row of importers.def */
    uint8_t flags;                     /* enum krait_track_flags, of its calls */
    uint32_t first_track, track_count; /* once there are tracks */
    uint32_t process;                  /* index */
    uint32_t tid;
    const char *name; /* the last one it had; may be empty */
    uint64_t begin_ns, end_ns;
    uint64_t bytes; /* of the file that has its calls alone; 0 where there is no such file */
};

/* A task of asyncio or trio, or a greenlet: what one of its coroutines, or itself, ran, step by step. */
struct krait_task {
    uint32_t process; /* index */
    uint32_t id;      /* in the process, from 1 */
    uint32_t func;    /* of its coroutine; KRAIT_NO_ID: it has not begun */
    const char *name; /* "Task-7" where nobody gave it one */
    /* Of trio, that it runs in, or asyncio's future of several tasks: an address; 0: none. */
    uint64_t nursery;
    uint64_t nursery_before, moved_ns; /* the one that it was in before that time */
};

struct krait_trace_lost {
    const char *reason; /* label of lost_reason, or another tracer's words */
    const char *advice;
    uint64_t count;
    bool of_kernel; /* changes of state are missing, but no call */
};

struct krait_trace {
    struct krait_func *funcs;
    uint32_t func_count;
    bool has_own; /* one of them is_own */
    struct krait_process *processes;
    uint32_t process_count;
    struct krait_thread *threads; /* ordered by process, then by begin_ns */
    uint32_t thread_count;
    uint64_t begin_ns, end_ns; /* of all processes; without one UINT64_MAX, 0 */
    uint64_t bytes;            /* of all files */
    struct krait_task *tasks;  /* those of a process one after the other */
    uint32_t task_count;
    struct krait_trace_lost *lost; /* reasons that have a count above 0 */
    uint32_t lost_count;
    struct krait_trace_omitted {
        uint32_t func;
        const char *reason; /* label of omit_reason */
        uint64_t calls;     /* recorded before it was left out, all processes */
        uint64_t first_ns;  /* when the first process left it out */
    } * omitted;            /* functions that the governor switched off */
    uint32_t omitted_count;
    const char **exceptions; /* the types that were raised: "ValueError", "json.decoder.JSONDecodeError" */
    uint32_t exception_count;
    char newer_format[24];       /* "1.70": a recording's, where it is newer than krait's; else empty */
    struct krait_trace_samples { /* of recordings of samples; all 0: every call was recorded */
        uint64_t rate;           /* that was asked for, a second */
        uint64_t taken, dropped; /* of all threads; that could not be proved */
        uint64_t interval_ns;    /* between two, on average */
    } samples;
    bool has_kernel;            /* the kernel recorded too: krait_trace_kernel (kernel.h) */
    struct krait_track *tracks; /* once they are asked for: krait_tracks_find (track.h) */
    uint32_t track_count;
    /* The first damage met so far in the data (cut packet, bad id); what was whole is read. Empty when none. */
    char damage[1024];
    /* Called by walks with the bytes that they have read since they called it last, of `bytes` in all; returns whether
     * to go on: where not, the walk ends with -ECANCELED. NULL: nobody wants to know. A walk may be made more than
     * once, and several at a time. */
    bool (*progress)(void *ctx, uint64_t bytes);
    void *progress_ctx;
    struct krait_trace_impl *impl; /* importer.h */
};

/* What a trace must have to be of use to who opens it. */
enum krait_trace_needs {
    KRAIT_NEEDS_CALLS = 1 << 0,  /* a process, whose calls were recorded */
    KRAIT_NEEDS_KERNEL = 1 << 1, /* what the kernel recorded */
    KRAIT_CALLS_ALONE = 1 << 2,  /* who opens it does not ask what the kernel lost: it need not be read */
    /* Of paths with nothing but kernel traces, each recording is a machine of its own (kernel/machines.h). */
    KRAIT_MACHINES_APART = 1 << 3,
};

/* Opens traces, whoever recorded them, as one (folders.h says what may lie where). Errors: -ENOENT no such
 * folder, -EINVAL not a trace, or one without what is needed (enum krait_trace_needs), -ENODATA without the
 * kernel's part, -EBADMSG damaged beyond use, -ENOMEM; err says which. */
int krait_trace_open(struct krait_trace **out, const char *const *paths, size_t count, unsigned needs,
                     struct krait_err *err);

/* How many of the kernel's events were lost, all reasons together. */
uint64_t krait_trace_kernel_lost(const struct krait_trace *trace);
void krait_trace_close(struct krait_trace *trace);

/* 0, or with err set why no process's calls are there. */
int krait_trace_needs_calls(const struct krait_trace *trace, struct krait_err *err);

/* When a trace begins: with its program's first event, or the kernel's where that is earlier. Times after the
 * start count from it, in every verb. Of the kernel's part alone it may be negative, as two's complement. */
uint64_t krait_trace_zero(const struct krait_trace *trace);

/* Marks the functions whose self time holds that of dropped ones. Walks all threads of a trace that has some.
 * Returns 0 or -ENOMEM. */
int krait_trace_find_holders(struct krait_trace *trace);

/* "python", "c", "native": for programs. */
const char *krait_func_kind_name(enum krait_func_kind kind);

/* What stands before a function's name and a dot; "" where nothing does. */
static inline const char *krait_func_prefix(enum krait_func_kind kind, const char *module)
{
    return kind == KRAIT_FUNC_NATIVE ? "" : module;
}

/* "json.decoder.JSONDecoder.decode": module and name joined, into buf (always terminated); returns buf. */
const char *krait_func_label(const struct krait_func *func, char *buf, size_t size);

enum krait_op_kind {
    KRAIT_OP_CALL = 0,   /* a function begins */
    KRAIT_OP_RESUME = 1, /* a generator or coroutine goes on */
    KRAIT_OP_THROW = 2,  /* ... with an exception */
    /* It was live already when the recording, or the chosen range, began: a begin, not a call. */
    KRAIT_OP_LIVE = 3,
    KRAIT_OP_END = 4, /* all from here on end the innermost open begin */
    KRAIT_OP_RETURN = 4,
    KRAIT_OP_YIELD = 5,
    KRAIT_OP_UNWIND = 6, /* left by an exception (for C functions: raise) */
    /* Its own end was not recorded: it was lost or left out, the process was killed, or the chosen range ends. */
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
    const uint32_t *func;      /* of begins and of ends alike */
    const uint8_t *kind;       /* enum krait_op_kind */
    const uint32_t *exception; /* of KRAIT_OP_UNWIND alone: which, krait_trace.exceptions, or KRAIT_NO_ID */
};

struct krait_range {
    uint64_t from_ns, to_ns; /* what lies outside is cut off at the edges; 0 and UINT64_MAX for all */
};

#define KRAIT_RANGE_ALL ((struct krait_range){ 0, UINT64_MAX })

/* Called with each batch in order; a value other than 0 ends the walk and is returned by it. */
typedef int krait_call_batch_fn(void *ctx, const struct krait_call_batch *ops);

/* Walks the calls of one thread. Streaming: memory is the batch and the stack. Returns 0, what fn returned,
 * or a negative errno. Damage does not fail it: krait hands out what is intact and closes open calls with
 * KRAIT_OP_CUT. If `damage` (size bytes, may be NULL) is empty, it is set to a sentence that names file, offset and
 * reason; so one text keeps the first damage of many walks. */
int krait_trace_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                     krait_call_batch_fn *fn, void *ctx, char *damage, size_t size);

/* The same over all of a thread's calls. It also notes places in the stream (places.h): later walks of ranges begin
 * near them instead of at the beginning. Not twice at a time for one thread; beside walks of ranges it may run. */
int krait_trace_walk_noting(struct krait_trace *trace, uint32_t thread, krait_call_batch_fn *fn, void *ctx,
                            char *damage, size_t size);

#endif
