/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks. A track has everything of one kind that happened in one place, ordered by time. Views, exports and analyses
 * read all traces as tracks, whatever recorded them.
 *
 *   host vm
 *     process 4711 python3
 *       thread 4711 MainThread
 *         CALLS     main ─┬─ load ──┬─ parse ┐           begins and ends, balanced, nested
 *         STATES    ├ GIL ┤    ├ GIL ┤                   one after the other, with gaps
 *         INSTANTS       │       │  │                     single moments
 *       task 7 Task-7
 *         STATES    running ├ timer ┤ ready ├ running ┤   of a task of asyncio or trio, or a greenlet
 *         SLICES    load ─┬─ parse ┐                      what begins in its steps
 *       COUNTER     3 ┴ 4 ┴ 2                             that several of its threads set
 *     CPU 0
 *         STATES    python3 ├ idle ├ kworker ┤ ...
 *         COUNTER   2.4 GHz ┴ 3.1 GHz                    a value up to the next
 *
 * A batch is a run of entries as columns, some thousand at most. It is valid while it is handed out. The columns of
 * each kind:
 *
 *              t_ns    end_ns   calls   name   value              to
 *   CALLS      begin and end    x
 *   SLICES     begin   x                x      of a system call what it returned, or
 *                                              KRAIT_NOT_RETURNED; else 0. Spans have text
 *   STATES     begin   x                x      the thread that is to blame, by its number; 0: none is known.
 *                                              Of a task: the task that it waits for, or that woke it
 *   INSTANTS   time                     x                         (and text)
 *   COUNTER    time                            the value from then on, in the track's unit
 *   FLOWS      begin   x                x                         the track that it leads to; where it arrives at end_ns
 *
 * Times are nanoseconds since the epoch. The begins of a track never go backward. SLICES and FLOWS are handed out
 * when they end, so there the ends never go backward. A range cuts what crosses its edges; a counter begins with the
 * value that it had before. Memory is that of the batches and of what is open, however long the trace is.
 *
 * The cost of walking a range depends on the source. For GIL waits, marks and losses of krait's recordings, and for
 * instants of other tracers, it is the packets in the range, which are found by their heads. For krait's calls, it is
 * the same from the last noted place before the range (krait_trace_walk_noting), or from the beginning without such a
 * place. For LTTng's function events, it is the thread from its beginning to the end of the range. For the kernel's
 * part, it is all events up to the end of the range, because states depend on what came before.
 */
#ifndef KRAIT_TRACE_TRACK_H
#define KRAIT_TRACE_TRACK_H

#include "trace/trace.h"

/* Of a system call: nobody saw it return. The trace ends before, its events were lost, or the thread ended in it. */
#define KRAIT_NOT_RETURNED INT64_MIN

enum krait_track_kind {
    KRAIT_TRACK_CALLS,
    KRAIT_TRACK_SLICES, /* they nest, and are handed out as they end */
    KRAIT_TRACK_STATES,
    KRAIT_TRACK_INSTANTS,
    KRAIT_TRACK_COUNTER,
    KRAIT_TRACK_FLOWS, /* from a track to another */
};

/* What it is a track of. Its place in the tree is said by `host`, the process's fields, and this. */
enum krait_track_of {
    KRAIT_OF_THREAD,
    KRAIT_OF_CPU,
    KRAIT_OF_TASK,    /* of asyncio or trio, or a greenlet: trace->tasks */
    KRAIT_OF_PROCESS, /* of no thread alone: a counter that several threads set */
    KRAIT_OF_GROUP,   /* named by `name` alone: a stream of another tracer's */
    KRAIT_OF_LANE,    /* made by an analysis (lanes.h): `number` is the lane, `thread_name` its title */
};

enum krait_track_flags {
    KRAIT_TRACK_LOST = 1 << 0,     /* events of it are missing */
    KRAIT_TRACK_LEFT_OUT = 1 << 1, /* some were left out on purpose */
    /* It was looked at now and then: what was short may be missing. */
    KRAIT_TRACK_SAMPLED = 1 << 2,
};

/* The states of tracks of what is missing: events were lost, or the recording was switched off. */
#define KRAIT_TRACK_EVENTS_LOST "events lost"
#define KRAIT_TRACK_OFF         "recording off"

/* The name of the track of what a sampled thread was doing. */
#define KRAIT_TRACK_SAMPLED_STATE "sampled state"

struct krait_track {
    uint8_t kind;     /* enum krait_track_kind */
    uint8_t of;       /* enum krait_track_of */
    uint8_t flags;    /* enum krait_track_flags */
    uint8_t importer; /* a row of importers.def */
    uint32_t process; /* index among the trace's; KRAIT_NO_ID: of none of them */
    uint32_t thread;  /* the same; of a task's spans: the one in which they begin */
    uint32_t number;  /* of the thread, of the CPU, or of the task; else 0 */
    uint32_t machine; /* of the kernel's tracks: which of its machines (kernel/machines.h); else 0 */
    uint32_t pid;     /* of the process, also of one that did not record itself; 0: of none, or not known */
    const char *host; /* the machine's name; may be empty, as the next two */
    const char *process_name, *thread_name;
    uint32_t key;     /* the importer's own */
    const char *name; /* "calls", "GIL", "frequency"; of a group what it is called */
    const char *unit; /* of a counter: "kHz", "B"; else "" */
    uint32_t parts;   /* of a counter: how many of its values make one `unit`; 0: one does */
};

struct krait_batch {
    uint32_t n;
    const uint64_t *t_ns;
    const uint64_t *end_ns;               /* NULL where the kind has no such column; the same below */
    const struct krait_call_batch *calls; /* its other columns */
    const uint32_t *name;                 /* krait_track_text has its text */
    const int64_t *value;
    /* Of instants: what they say, harmless or not; may be empty. Of spans, which are slices, their fields: a JSON
     * object or empty. NULL for other slices. */
    const char *const *text;
    const uint32_t *to; /* index among the tracks */
};

/* A value other than 0 ends the walk and is returned by it. */
typedef int krait_batch_fn(void *ctx, const struct krait_track *track, const struct krait_batch *batch);

/* Finds all tracks of a trace's sources, into trace->tracks: in the tree's order, those of a thread one after the other.
 * Only the first time costs something: marks and what the kernel recorded take a look at all events. Returns 0, or
 * -ENOMEM with err set; what cannot be read is said in trace->damage. */
int krait_tracks_find(struct krait_trace *trace, struct krait_err *err);

/* The same, of sources that have any of some kinds (bits, 1 << KRAIT_TRACK_...), and what was found before. Tracks move
 * where others are found. */
int krait_tracks_find_kinds(struct krait_trace *trace, unsigned kinds, struct krait_err *err);

/* Whether a track is of a thread that did not record itself, where others did: the rest of the machine. */
static inline bool krait_track_is_of_others(const struct krait_trace *trace, const struct krait_track *track)
{
    return track->of == KRAIT_OF_THREAD && track->process == KRAIT_NO_ID && trace->process_count;
}

/* What an entry's name is. */
const char *krait_track_text(const struct krait_trace *trace, uint32_t name);

/* Walks tracks, in one pass where their source allows it: those of the kernel's part come from one run over its
 * events, however many they are. Each track's batches come in its own order of time, those of several by turns. No
 * track may be named twice. Returns 0, what fn returned, -EINVAL where there is no such track, or another negative
 * errno. Damage does not fail it: what is intact is handed out, and `damage` (size bytes, may be NULL) keeps the first
 * that is met, as krait_trace_walk says. */
int krait_tracks_walk(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                      struct krait_range range, krait_batch_fn *fn, void *ctx, char *damage, size_t size);

/* The same of one. */
int krait_track_walk(const struct krait_trace *trace, uint32_t track, struct krait_range range,
                     krait_batch_fn *fn, void *ctx, char *damage, size_t size);

#endif
