/* SPDX-License-Identifier: Apache-2.0
 *
 * Importers fill the model. A source is one file and one row of importers.def. The model opens folders, asks each
 * importer, in the order of the rows, which of them it reads, and has it add what it finds:
 *
 *   takes    whether it reads a folder, by its metadata alone; a folder may be read by several
 *   open     adds the processes, threads and functions of the folders that it takes, and what was lost
 *   calls    walks the calls of a thread that it added (track.h)
 *   tracks   adds the other tracks that it has, when somebody asks for one of their kinds
 *   walk     walks one of those; or walk_many several in one pass
 *   close    frees what it keeps in its place of trace->impl->source
 *
 * A function that an importer does not have is NULL. An importer is only asked about what it added itself.
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

/* What is walked, and who is told of it. */
struct krait_walking {
    struct krait_range range;
    void *ctx;
    union {
        krait_call_batch_fn *calls; /* of `calls` */
        krait_batch_fn *batch;      /* of `walk` */
    };
    struct krait_damage damage; /* keeps the first that is met; damage does not fail a walk */
    bool note_places; /* of `calls`: remember places in the stream for later walks, where the importer can */
};

struct krait_importer {
    bool (*takes)(const struct krait_folder *folder);
    /* `folders` are those that it takes, one at least. A folder that cannot be read is said in trace->damage.
     * Returns 0; -ENOMEM; or with err set why it has nothing to add, which is no failure of the others. */
    int (*open)(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                struct krait_err *err);
    int (*calls)(const struct krait_trace *trace, uint32_t thread, const struct krait_walking *walking);
    unsigned kinds; /* of its tracks but calls: bits, 1 << KRAIT_TRACK_... */
    int (*tracks)(struct krait_trace *trace, struct krait_err *err);
    int (*walk)(const struct krait_trace *trace, const struct krait_track *track,
                const struct krait_walking *walking);
    krait_tracks_walk_fn *walk_many; /* NULL: each is walked by itself */
    void (*close)(void *source);
};

#define KRAIT_IMPORTER(id, text) extern const struct krait_importer krait_importer_##id;
#include "trace/importers.def"
#undef KRAIT_IMPORTER

extern const struct krait_importer *const krait_importers[KRAIT_IMPORTERS];

/* The folders that the importer `events` takes; *count is 0 where there are none. */
const char *const *krait_events_dirs(const struct krait_trace *trace, uint32_t *count);

/* The model's own side of struct krait_trace. */
struct krait_trace_impl {
    struct krait_arena arena;
    struct krait_strtab keys;      /* what makes a function distinct; its ids are the func ids */
    struct krait_strtab names;     /* of tracks' entries, by id */
    void *source[KRAIT_IMPORTERS]; /* of the importers, each its own */
    const char *const *paths;      /* as they were given */
    size_t path_count;
    struct krait_err no_calls; /* why there are none; code 0: not known */
    struct krait_err unread;   /* the first folder whose metadata cannot be read; code 0: none */
    uint32_t func_cap, process_cap, thread_cap, task_cap, lost_cap, track_cap;
    unsigned needs;      /* enum krait_trace_needs */
    bool machines_apart; /* KRAIT_MACHINES_APART, and there is nothing but kernel traces */
    uint32_t has_tracks; /* whose were asked for: bits of importers */
    bool has_calls;      /* the tracks of calls are among them */
    bool has_raw_first;  /* raw_first_ns was looked up */
    uint64_t raw_first_ns;
};

/* A trace that has nothing but the functions that are not known; the caller closes it. Returns 0 or -ENOMEM. */
int krait_trace_new(struct krait_trace **out);
/* For importers. Strings are copied where a function is new. The func id of what is described, or KRAIT_NO_ID
 * when memory is out. */
uint32_t krait_trace_intern(struct krait_trace *trace, const struct krait_func *func);
/* One more of it, zeroed but for its strings, which are empty; NULL when memory is out. */
struct krait_process *krait_trace_add_process(struct krait_trace *trace);
struct krait_thread *krait_trace_add_thread(struct krait_trace *trace);
struct krait_track *krait_trace_add_track(struct krait_trace *trace);
/* A track in the place of a thread, with the thread's index as its key. */
struct krait_track *krait_trace_add_thread_track(struct krait_trace *trace, uint32_t thread,
                                                 enum krait_importer_id importer, enum krait_track_kind kind,
                                                 const char *name);
/* Takes away the tracks of some importers (bits, 1 << KRAIT_IMPORTER_...): krait_tracks_find asks for them again. The ids
 * of tracks are no longer valid. */
void krait_tracks_forget(struct krait_trace *trace, uint32_t importers);
/* The id among the names of a text, new if it was not there; KRAIT_NO_ID when memory is out. Walks of several
 * threads do not call it at a time. */
uint32_t krait_trace_name(const struct krait_trace *trace, const char *text);
/* Events that are missing, in the sum of their reason; none adds nothing. Returns 0 or -ENOMEM. */
int krait_trace_lose(struct krait_trace *trace, struct krait_trace_lost lost);

#endif
