/* SPDX-License-Identifier: Apache-2.0
 *
 * Importers fill the model. Each is one file and one row of importers.def. The model opens folders, asks each importer,
 * in the order of the rows, which folders it reads, and lets it add what it finds:
 *
 *   takes    whether it reads a folder, judging by the metadata only; several importers may read one folder
 *   open     adds the processes, threads and functions of the folders that it takes, and what was lost
 *   calls    walks the calls of a thread that it added (track.h)
 *   tracks   adds its other tracks, when somebody asks for one of their kinds
 *   walk     walks one of those; walk_many walks several in one pass; walk_on goes on where an earlier walk has ended
 *   close    frees what it keeps in its place of trace->impl->source
 *
 * An importer sets functions that it does not have to NULL. It is only asked about what it has added itself.
 */
#ifndef KRAIT_TRACE_IMPORTER_H
#define KRAIT_TRACE_IMPORTER_H

#include "trace/folders.h"
#include "trace/packets.h"
#include "trace/track.h"

enum krait_importer_id {
#define KRAIT_IMPORTER(id, text) KRAIT_IMPORTER_##id,
#include "trace/importers.def"
#undef KRAIT_IMPORTER
    KRAIT_IMPORTERS,
};

struct krait_walking;

/* Walks several tracks in one pass. Batches of different tracks may come by turns. */
typedef int krait_tracks_walk_fn(const struct krait_trace *trace, const struct krait_track *const *tracks,
                                 uint32_t count, const struct krait_walking *walking);

/* What to walk, and who gets the batches. */
struct krait_walking {
    struct krait_range range;
    void *ctx;
    union {
        krait_call_batch_fn *calls; /* for `calls` */
        krait_batch_fn *batch;      /* for `walk` */
    };
    krait_batch_fn *now;        /* for `walk_on`: krait_tracks_walk_on */
    struct krait_damage damage; /* keeps the first damage, which is no failure */
    /* For `calls`, of a recording that goes on: krait_trace_walk_on. */
    bool goes_on;
    bool note_places; /* for `calls`: remember places in the stream for later walks, if the importer can */
};

struct krait_importer {
    bool (*takes)(const struct krait_folder *folder);
    /* `folders` are those that it takes, at least one. trace->damage names folders that cannot be read. Returns 0, -ENOMEM,
     * or another errno with err set if it has nothing to add; the other importers still run. */
    int (*open)(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                struct krait_err *err);
    int (*calls)(const struct krait_trace *trace, uint32_t thread, const struct krait_walking *walking);
    unsigned kinds; /* of its tracks, without calls: bits, 1 << KRAIT_TRACK_... */
    int (*tracks)(struct krait_trace *trace, struct krait_err *err);
    int (*walk)(const struct krait_trace *trace, const struct krait_track *track,
                const struct krait_walking *walking);
    krait_tracks_walk_fn *walk_many; /* NULL: each track is walked alone */
    krait_tracks_walk_fn *walk_on;   /* NULL: of a recording that goes on, all is read again */
    void (*close)(void *source);
};

#define KRAIT_IMPORTER(id, text) extern const struct krait_importer krait_importer_##id;
#include "trace/importers.def"
#undef KRAIT_IMPORTER

extern const struct krait_importer *const krait_importers[KRAIT_IMPORTERS];

/* The folders that the importer `events` takes; *count is their number, which may be 0. */
const char *const *krait_events_dirs(const struct krait_trace *trace, uint32_t *count);

/* Whether an event of krait's own, by its name in events.def, is an instant of the importer krait_marks. */
bool krait_marks_read(const char *event);

/* Whether it is one of tasks or the GIL, which nobody takes but by its name; those in definitions are none. */
bool krait_marks_read_by_name(const char *event);

/* Hands out such events of a track's thread, which krait recorded, as instants of the track: those whose names are wanted.
 * Returns as krait_importer.walk does. */
int krait_marks_walk_by_name(const struct krait_trace *trace, const struct krait_track *track,
                             bool (*wants)(void *ctx, const char *name), const struct krait_walking *walking);

/* The kind of tracks that show an instant of krait_marks, too, as a bit (1 << KRAIT_TRACK_...): slices begin and end by it, or
 * it is a value of a counter. 0: it is a mark alone, as those of all other tracks are. */
unsigned krait_marks_also(const struct krait_track *track, const char *name);

/* Whether it is counted and listed as a mark: a counter's value is, too. Lanes leave out whatever krait_marks_also tells of. */
static inline bool krait_marks_take(const struct krait_track *track, const char *name)
{
    return !(krait_marks_also(track, name) & 1u << KRAIT_TRACK_SLICES);
}

/* The internal part of struct krait_trace. */
struct krait_trace_impl {
    struct krait_arena arena;
    struct krait_strtab keys;      /* what distinguishes functions; its ids are the func ids */
    struct krait_strtab names;     /* of the entries of tracks, by id */
    void *source[KRAIT_IMPORTERS]; /* data of each importer */
    const char *const *paths;      /* as given to krait_trace_open */
    size_t path_count;
    struct krait_err no_calls; /* why there are no calls; code 0: not known */
    struct krait_err unread;   /* the first folder whose metadata cannot be read; code 0: none */
    uint32_t func_cap, process_cap, thread_cap, task_cap, lost_cap, track_cap;
    unsigned needs;                   /* enum krait_trace_needs */
    bool goes_on;                     /* krait_trace_open_on opened it */
    const struct krait_trace *before; /* while that opens it: the earlier one, or NULL */
    uint64_t bytes_read;              /* atomic: krait_trace_bytes_read */
    bool machines_apart;              /* KRAIT_MACHINES_APART, and all folders are kernel traces */
    uint32_t has_tracks;              /* importers whose tracks were asked for, as bits */
    bool has_calls;                   /* so were the tracks of calls */
    bool has_raw_first;               /* raw_first_ns is known */
    uint64_t raw_first_ns;
};

/* Makes a trace that has only the functions that stand for unknown ones; the caller closes it. Returns 0 or -ENOMEM. */
int krait_trace_new(struct krait_trace **out);
/* For importers: the id of this function, which is added if it is new; its strings are then copied. KRAIT_NO_ID: out of
 * memory. */
uint32_t krait_trace_intern(struct krait_trace *trace, const struct krait_func *func);
/* Each adds one, zeroed, with empty strings. NULL: out of memory. */
struct krait_process *krait_trace_add_process(struct krait_trace *trace);
struct krait_thread *krait_trace_add_thread(struct krait_trace *trace);
struct krait_track *krait_trace_add_track(struct krait_trace *trace);
/* Adds a track of a thread, with the thread's index as its key. */
struct krait_track *krait_trace_add_thread_track(struct krait_trace *trace, uint32_t thread,
                                                 enum krait_importer_id importer, enum krait_track_kind kind,
                                                 const char *name);
/* Removes the tracks of some importers (bits, 1 << KRAIT_IMPORTER_...), so that krait_tracks_find asks for them again. The
 * ids of all tracks become invalid. */
void krait_tracks_forget(struct krait_trace *trace, uint32_t importers);
/* The id of a name, which is added if it is new; KRAIT_NO_ID: out of memory. Concurrent walks must not call it. */
uint32_t krait_trace_name(const struct krait_trace *trace, const char *text);
/* Adds lost events to the count of their reason; a count of 0 adds nothing. Returns 0 or -ENOMEM. */
int krait_trace_lose(struct krait_trace *trace, struct krait_trace_lost lost);

#endif
