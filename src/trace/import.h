/* SPDX-License-Identifier: Apache-2.0
 *
 * The importer of krait's own recordings: what walking a thread needs beyond the model.
 */
#ifndef KRAIT_TRACE_IMPORT_H
#define KRAIT_TRACE_IMPORT_H

#include "trace/importer.h"
#include "trace/places.h"
#include "trace/thread_file.h"
#include "trace/ticks.h"

enum {
    /* Code ids above this and above the size of the definitions cannot be honest. */
    KRAIT_CODES_MIN = 1 << 20,
    KRAIT_LOST_VALUES = 256, /* a reason is a u8; those of later versions are kept too */
};

/* Code that is left out from a time on. */
struct krait_omit {
    uint64_t t_ns;
    uint32_t code;
};

/* A name that a thread has from a time on. */
struct krait_naming {
    uint64_t t_ns;
    uint32_t tid;
    const char *name;
};

/* A process image: one CTF trace. */
struct krait_image {
    char *dir;
    uint8_t uuid[16];
    struct krait_ticks clock;
    uint64_t last_tick;  /* of the clock that is a time in nanoseconds */
    uint32_t *code_func; /* by code id: func, or KRAIT_NO_ID */
    uint32_t code_count;
    struct krait_map tasks;      /* by id: index in trace->tasks */
    struct krait_map exceptions; /* code id to index in trace->exceptions */
    struct krait_map names;      /* code id to what krait_track_text knows: of spans, counters ... */
    struct krait_omit *omits;    /* by time */
    uint32_t omit_count, omit_cap;
    /* In the order of time: when it was switched off; and when nothing was recorded for that reason, or because what is
     * recorded changed. */
    struct krait_gaps {
        struct krait_range *items;
        uint32_t count, cap;
    } off, unrecorded;
    struct krait_naming *namings; /* in the order of the stream */
    uint32_t naming_count, naming_cap;
    struct krait_range range;   /* of which it is a part, where krait cut made it; else all */
    uint64_t kept_ns;           /* what is earlier was dropped; 0: nothing was */
    uint64_t start_ns, exit_ns; /* of process:start and process:exit; 0 where not said */
    /* With krait_trace_open_on: its files' names and sizes when it was opened. */
    struct krait_strtab streams;
    uint64_t *stream_bytes;
    uint32_t stream_cap;
    bool has_no_gil_waits;    /* its metadata says so */
    const char *other_events; /* ids of its events besides calls and the GIL's; NULL: not told */
    bool sampled;             /* krait looked at it now and then */
    bool grows;               /* krait records it still */
    uint64_t seen_ns;         /* then: all that has happened up to this time is written */
    bool followed;            /* by the program that it executed: nothing of it is later than exit_ns */
    uint64_t lost[KRAIT_LOST_VALUES];
    uint64_t discarded; /* by the heads of its threads' packets */
};

/* All of a trace's recordings. Their processes and threads are the trace's first ones. */
struct krait_recordings {
    struct krait_image *images; /* by process index */
    uint32_t image_count;
    struct krait_thread_file *files; /* by thread index */
    struct krait_places **places;    /* the same; NULL until a walk has noted them */
    struct krait_places **kept;      /* the same, of the trace opened before; NULL: none */
    uint32_t file_count, file_cap, omitted_cap, sets_cap;
    struct krait_strtab exceptions; /* their labels; its ids are those of trace->exceptions */
    struct krait_map omitted;       /* func to index in trace->omitted */
    struct krait_strtab earlier;    /* paths of that trace's files, by its thread index */
};

static inline struct krait_recordings *krait_recordings_of(const struct krait_trace *trace)
{
    return trace->impl->source[KRAIT_IMPORTER_krait_calls];
}

/* The text of a code id: of a name, a type of exceptions, or a function, whose label is written into buf. NULL: none of the
 * trace's. */
const char *krait_image_code_text(const struct krait_trace *trace, const struct krait_image *image,
                                  uint32_t code, char *buf, size_t size);

/* The image of a thread that krait recorded, and its file; NULL where another did. */
static inline const struct krait_image *krait_image_of(const struct krait_trace *trace, uint32_t thread)
{
    const struct krait_recordings *recordings = krait_recordings_of(trace);
    bool is_its = recordings && thread < recordings->file_count;
    return is_its ? &recordings->images[trace->threads[thread].process] : NULL;
}

/* Whether its packets are still where they were when it was opened. Files of threads only grow, but for krait record --last, which
 * writes a file anew without its oldest packets. */
bool krait_thread_file_stays(const struct krait_thread_file *file, const struct krait_image *image,
                             const struct krait_packets *packets);

/* Whether a packet of a file that was written anew came after all that was there when it was opened: it may lack definitions. */
bool krait_thread_file_is_behind(const struct krait_thread_file *file, const struct krait_image *image,
                                 const struct krait_packet *packet);

/* What of a range is the image's: a part that krait cut made says what was open before it a moment earlier, and so does a recording
 * that dropped its oldest events. */
static inline struct krait_range krait_image_clip(const struct krait_image *image, struct krait_range range)
{
    range.from_ns = KRAIT_MAX(range.from_ns, KRAIT_MAX(image->range.from_ns, image->kept_ns));
    return (struct krait_range){ range.from_ns,
                                 KRAIT_MAX(KRAIT_MIN(range.to_ns, image->range.to_ns), range.from_ns) };
}

/* Reads DIR/definitions into the process `index` of the trace. Damage is said in trace->damage; only -ENOMEM
 * fails. */
int krait_definitions_read(struct krait_trace *trace, uint32_t index);

/* krait_importer.calls of krait's recordings (walk.c). */
int krait_calls_walk(const struct krait_trace *trace, uint32_t thread, const struct krait_walking *walking);

struct krait_stack;

/* The stack of a thread that krait recorded as it is when `at_ns`, above 0, begins: in `stack`, zeroed memory.
 * krait_stack_done in any case. Returns 0 or -ENOMEM. */
int krait_calls_stack_at(const struct krait_trace *trace, uint32_t thread, uint64_t at_ns,
                         struct krait_stack *stack);

#endif
