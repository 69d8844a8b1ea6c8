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
 *   STATES     begin   x                x      the number of the thread that caused it; 0: not known.
 *                                              Of a task: the task that it waits for, or that woke it
 *   INSTANTS   time                     x                         (and text)
 *   COUNTER    time                            the value from then on, in the track's unit
 *   FLOWS      begin   x                x                         the track that it leads to; where it arrives at end_ns
 *
 * Times are nanoseconds since the epoch. The begins of a track never go backward. SLICES and FLOWS are handed out
 * when they end, so there the ends never go backward. A range cuts what crosses its edges; a counter begins with the
 * value that it had before. Memory is that of the batches and of what is open, however long the trace is.
 *
 * What a walk of a range has to read depends on the source. For GIL waits, marks and losses of krait's recordings, and
 * for instants of other tracers, it reads the packets in the range, which it finds by their heads. For krait's calls, it
 * begins at the last noted place before the range (krait_trace_walk_noting), or at the beginning of the thread if there
 * is none. For LTTng's function events, it reads the thread from its beginning to the end of the range. For kernel
 * events, it reads all events up to the end of the range, because states depend on what came before.
 */
#ifndef KRAIT_TRACE_TRACK_H
#define KRAIT_TRACE_TRACK_H

#include "trace/trace.h"

/* The value of a system call that did not return: the trace or the thread ended before, or events were lost. */
#define KRAIT_NOT_RETURNED INT64_MIN

enum krait_track_kind {
    KRAIT_TRACK_CALLS,
    KRAIT_TRACK_SLICES, /* they nest, and come when they end */
    KRAIT_TRACK_STATES,
    KRAIT_TRACK_INSTANTS,
    KRAIT_TRACK_COUNTER,
    KRAIT_TRACK_FLOWS, /* from a track to another */
};

/* What a track belongs to. With `host` and the fields of the process, it gives the track's place in the tree. */
enum krait_track_of {
    KRAIT_OF_THREAD,
    KRAIT_OF_CPU,
    KRAIT_OF_TASK,    /* of asyncio or trio, or a greenlet: trace->tasks */
    KRAIT_OF_PROCESS, /* of no single thread: a counter that several threads set */
    KRAIT_OF_GROUP,   /* has only a `name`: a stream of another tracer */
    KRAIT_OF_LANE,    /* made by an analysis (lanes.h): `number` is the lane, `thread_name` its title */
};

enum krait_track_flags {
    KRAIT_TRACK_LOST = 1 << 0,     /* some of its events were lost */
    KRAIT_TRACK_LEFT_OUT = 1 << 1, /* some were left out on purpose */
    /* It was sampled: what was short may be missing. */
    KRAIT_TRACK_SAMPLED = 1 << 2,
};

/* The states of tracks that show what is missing: events were lost, or the recording was switched off. */
#define KRAIT_TRACK_EVENTS_LOST "events lost"
#define KRAIT_TRACK_OFF         "recording off"

/* The state of a thread that waits for the GIL. */
#define KRAIT_TRACK_GIL "waits for the GIL"

/* The name of the track that shows what a sampled thread was doing. */
#define KRAIT_TRACK_SAMPLED_STATE "sampled state"

struct krait_track {
    uint8_t kind;     /* enum krait_track_kind */
    uint8_t of;       /* enum krait_track_of */
    uint8_t flags;    /* enum krait_track_flags */
    uint8_t importer; /* a row of importers.def */
    uint32_t process; /* index of the trace's processes; KRAIT_NO_ID: none */
    uint32_t thread;  /* index of its threads, or KRAIT_NO_ID; spans of a task begin in it */
    uint32_t number;  /* of the thread, of the CPU, or of the task; else 0 */
    uint32_t machine; /* of a kernel track: which machine (kernel/machines.h); else 0 */
    uint32_t pid;     /* of the process, even if its calls were not recorded; 0: none, or not known */
    const char *host; /* the machine's name; may be empty, like the next two */
    const char *process_name, *thread_name;
    uint32_t key;     /* for the importer */
    const char *name; /* "calls", "GIL", "frequency"; of a group, its name */
    const char *unit; /* of a counter: "kHz", "B"; else "" */
    uint32_t parts;   /* of a counter: the value that makes one `unit`; 0: 1 */
};

struct krait_batch {
    uint32_t n;
    const uint64_t *t_ns;
    const uint64_t *end_ns;               /* this and the next: NULL if the kind has no such column */
    const struct krait_call_batch *calls; /* the other columns of calls */
    const uint32_t *name;                 /* krait_track_text returns its text */
    const int64_t *value;
    /* Of instants: their text, which may be empty and may contain control characters. Of spans, which are slices: their
     * fields, a JSON object or empty. NULL for other slices. */
    const char *const *text;
    const uint32_t *to; /* index of a track */
};

/* If it returns a value other than 0, the walk ends and returns that. */
typedef int krait_batch_fn(void *ctx, const struct krait_track *track, const struct krait_batch *batch);

/* Finds all tracks and stores them in trace->tracks, in the order of the tree: those of a thread are neighbours. Only the
 * first call takes time: to find marks and the tracks of the kernel, it reads all events. Returns 0, or -ENOMEM with err
 * set; trace->damage says what could not be read. */
int krait_tracks_find(struct krait_trace *trace, struct krait_err *err);

/* The same for the sources that have tracks of certain kinds (bits, 1 << KRAIT_TRACK_...). Tracks found earlier stay, but
 * may move. */
int krait_tracks_find_kinds(struct krait_trace *trace, unsigned kinds, struct krait_err *err);

/* Whether the track's thread is not in any recorded process, though the trace has some: the rest of the machine. */
static inline bool krait_track_is_of_others(const struct krait_trace *trace, const struct krait_track *track)
{
    return track->of == KRAIT_OF_THREAD && track->process == KRAIT_NO_ID && trace->process_count;
}

/* The text of an entry's name. */
const char *krait_track_text(const struct krait_trace *trace, uint32_t name);

/* Walks several tracks, in one pass if their source can: all kernel tracks come from a single pass over the kernel's
 * events. The batches of each track are ordered by time; those of different tracks alternate. No track may be named
 * twice. Returns 0, what fn returned, -EINVAL if there is no such track, or another negative errno. Damage is no failure:
 * krait hands out what is intact, and `damage` (size bytes, may be NULL) keeps the first damage, as in
 * krait_trace_walk. */
int krait_tracks_walk(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                      struct krait_range range, krait_batch_fn *fn, void *ctx, char *damage, size_t size);

/* The same for one track. */
int krait_track_walk(const struct krait_trace *trace, uint32_t track, struct krait_range range,
                     krait_batch_fn *fn, void *ctx, char *damage, size_t size);

/* Of a trace that krait_trace_open_on opened: whether krait_tracks_walk_on can walk a track. */
bool krait_track_goes_on(const struct krait_trace *trace, const struct krait_track *track);

/* Walks all such tracks of the trace, in one pass, from where this function has ended for the earlier trace. `fn` gets the entries
 * that have ended since, in the order in which krait_tracks_walk hands them out. `now` gets what goes on where all is written,
 * up to there: the next walk hands it out again, as it is then. An entry that comes later begins there or later, or is one of those
 * that `now` got. The earlier walk was number krait_tracks_walked(); if the caller does not have what that handed out, it calls
 * krait_tracks_walk_anew() first. Once for each trace. Returns as krait_tracks_walk. */
int krait_tracks_walk_on(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                         krait_batch_fn *fn, krait_batch_fn *now, void *ctx);
/* The number of the walk behind which the next one begins, which no other walk has; 0: it begins at the beginning. */
uint64_t krait_tracks_walked(const struct krait_trace *trace);
/* The next walk begins at the beginning, after all. */
void krait_tracks_walk_anew(const struct krait_trace *trace);

/* Whether one of them has an entry in the range that is shown: 1, 0, or the errors of krait_tracks_walk. */
int krait_tracks_any(const struct krait_trace *trace, const uint32_t *tracks, uint32_t count,
                     struct krait_range range);

#endif
