/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's events ordered by time, whatever recorded them. Each has its kind, the fields that analyses use, in known
 * places, and the CPU on which it happened.
 *
 * Events are rows of cells (ctf/rows/row.h). The fields of a kind, and their cells in a trace, are looked up once for
 * each event class. An event then costs its row and a call through a table.
 */
#ifndef KRAIT_TRACE_KERNEL_EVENTS_H
#define KRAIT_TRACE_KERNEL_EVENTS_H

#include "ctf/meta/metadata.h"
#include "ctf/read/cursor.h"
#include "trace/trace.h"

enum krait_kernel_event_kind {
    KRAIT_KERNEL_EVENT_NONE,
#define KRAIT_KERNEL_EVENT_KIND(kind, fields) KRAIT_KERNEL_EVENT_##kind,
#define KRAIT_KERNEL_EVENT_NAME(kind, name)
#include "trace/kernel/kernel_events.def"
    KRAIT_KERNEL_EVENT_KINDS,
};

enum {
    KRAIT_KERNEL_EVENT_FIELDS = 17, /* a kind has at most so many */
    /* Linux supports no more CPUs; events with a greater CPU number are ignored. */
    KRAIT_KERNEL_EVENT_CPUS = 8192,
};

/* Data about an event class of a trace. */
struct krait_kernel_event_class {
    uint8_t kind;
    /* The cell of each field, by its index in the kind's list; 0: the trace has no such field. */
    uint16_t cell[KRAIT_KERNEL_EVENT_FIELDS];
    uint32_t texts;    /* a bit for each field: it is text */
    uint16_t tid_cell; /* of the context that has the thread; 0: none */
    uint16_t cpu_cell; /* of the field that has the CPU, if packets do not have it; 0: none */
    const char *rest;  /* if the kind's name ends in *, what the * stands for: the name of a system call */
    uint32_t index;    /* of the class */
};

struct krait_kernel_event {
    int64_t ns;
    uint32_t cpu;
    const struct krait_kernel_event_class *cls;
    const uint64_t *cells; /* the row */
};

static inline bool krait_kernel_event_has(const struct krait_kernel_event *ev, unsigned field)
{
    return ev->cls->cell[field] != 0;
}

static inline bool krait_kernel_event_is_text(const struct krait_kernel_event *ev, unsigned field)
{
    return ev->cls->texts >> field & 1;
}

/* The value of a number; -1: the trace has no such field. */
static inline int64_t krait_kernel_event_int(const struct krait_kernel_event *ev, unsigned field)
{
    uint16_t cell = ev->cls->cell[field];
    return cell ? (int64_t)ev->cells[cell] : -1;
}

/* The value of a text, which is not terminated; *size is 0 if there is none. */
static inline const char *krait_kernel_event_text(const struct krait_kernel_event *ev, unsigned field,
                                                  size_t *size)
{
    uint16_t cell = ev->cls->cell[field];
    *size = cell ? ev->cells[cell + 1] : 0;
    return cell ? (const char *)(uintptr_t)ev->cells[cell] : "";
}

/* The thread, from the context; -1: not known. */
static inline int64_t krait_kernel_event_tid(const struct krait_kernel_event *ev)
{
    return ev->cls->tid_cell ? (int64_t)ev->cells[ev->cls->tid_cell] : -1;
}

struct krait_kernel_events; /* opaque */

/* The label that the trace has for a number, such as the name of the function at an address. NULL: it has none, or no such
 * field. Valid as long as `events`. */
const char *krait_kernel_events_label(const struct krait_kernel_events *events,
                                      const struct krait_kernel_event *ev, unsigned field);

/* The event's name in the trace. */
const char *krait_kernel_events_name(const struct krait_kernel_events *events,
                                     const struct krait_kernel_event *ev);
/* During a walk: returns a cursor that is at an event of the walk, before its fields. This searches for the event, so use it
 * only for rare events. Returns 0 or a negative errno. */
int krait_kernel_events_go(struct krait_kernel_events *events, const struct krait_kernel_event *ev,
                           struct krait_ctf_cursor **out);

typedef void krait_kernel_event_handler(void *ctx, const struct krait_kernel_event *event);

/* Whether the trace has events by which threads or system calls can be followed. */
bool krait_kernel_events_takes(const struct krait_ctf_metadata *metadata);
/* Sets err to the reason why a path has no such events, and returns its code. */
int krait_kernel_events_missing(const char *path, struct krait_err *err);

/* Opens the traces in the folders that krait_kernel_events_takes. Only the model calls this; others use kernel.h. Before
 * krait_kernel_events_prepare, which compiles the code that reads events, only the time of the first event is known.
 * Errors: -ENOENT no trace there; -ENODATA no kernel trace there; -ENOTSUP traces of several hosts; errors of opening a CTF
 * trace. Preparing fails only with -ENOMEM. */
int krait_kernel_events_open(struct krait_kernel_events **out, const char *const *paths, size_t count,
                             struct krait_err *err);
int krait_kernel_events_prepare(struct krait_kernel_events *events, struct krait_err *err);
void krait_kernel_events_close(struct krait_kernel_events *events);

const struct krait_kernel_event_class *krait_kernel_events_classes(const struct krait_kernel_events *events,
                                                                   uint32_t *count);

/* Whether the trace can have events of a kind: they were asked for when it was recorded. */
bool krait_kernel_events_has(const struct krait_kernel_events *events, enum krait_kernel_event_kind kind);

/* Whether only one program was recorded, without root: the switches of its own threads, from perf events. */
bool krait_kernel_events_own(const struct krait_kernel_events *events);

/* An entry of the trace's environment, by LTTng's names (hostname, kernel_release, ...); "": it has none. */
const char *krait_kernel_events_env(const struct krait_kernel_events *events, const char *name);

/* The time of the first event, of any kind; INT64_MAX: there is none. Of a part of a trace (kernel_carried.h), when that begins.
 * Reads only the first packets that have events. */
int64_t krait_kernel_events_first(struct krait_kernel_events *events);

/* Whether there is an event at a time or later. If packets have their times, it reads few of them. */
bool krait_kernel_events_reach(struct krait_kernel_events *events, int64_t ns);

/* Calls handlers[kind] for each event, ordered by time; kinds without a handler are skipped. It calls `begin` once before
 * all of them, with the time of the first event of any kind, and `from` once before the events at from_ns and later, with
 * that time. Times are nanoseconds after the first event. The walk ends at until_ns, or soon after `done` has become true.
 * It can be repeated. No GIL. hot path. Returns 0, -ENOMEM, or -ECANCELED if `goes_on` returns false.
 *
 * Two kinds are not in the trace (kernel_marks.h). FOUND tells the thread, or with 0 the idle task, that a CPU has run since
 * before its first event. LOST tells that events of a CPU are missing from there until its next event. */
struct krait_kernel_event_walk {
    void *ctx;
    uint64_t from_ns, until_ns; /* UINT64_MAX: to the end */
    /* Of a walk that goes on where an earlier one has ended, of which `begin` and `from` were called: begin_ns is the time of the
     * first event, and on_ns the absolute time of its end. 0: it begins at the beginning. */
    int64_t begin_ns, on_ns;
    const bool *done; /* NULL: never */
    /* Called after every few thousand events, with the time of the last one; returns whether to continue. NULL: always. */
    bool (*goes_on)(void *ctx, int64_t ns);
    void (*begin)(void *ctx, int64_t ns);
    void (*from)(void *ctx, int64_t ns);
    /* NULL: the walk ends at until_ns. Otherwise this is called there, with that time, and the walk continues for ahead_ns,
     * or until `done`. */
    void (*ahead)(void *ctx, int64_t ns);
    uint64_t ahead_ns;
    /* Without `ahead`: hand out what stands behind a part of a trace too (kernel_carried.h), unless the walk ends before. */
    bool behind;
    krait_kernel_event_handler *handlers[KRAIT_KERNEL_EVENT_KINDS];
};
int krait_kernel_events_walk(struct krait_kernel_events *events, const struct krait_kernel_event_walk *walk);

/* Of a recording that goes on: up to when (absolute) all events are in the files, so that a walk that ends there can go on later;
 * and up to when what goes on then is known. See kernel_growing.h. */
int64_t krait_kernel_events_written(const struct krait_kernel_events *events, int64_t *end_ns);
/* A number that is the same as long as the files have the same packets and losses before a time. Returns 0 or -ENOMEM. */
int krait_kernel_events_print(struct krait_kernel_events *events, int64_t ns, uint64_t *print);

/* The bytes of the packets that walks have read so far. */
uint64_t krait_kernel_events_bytes(const struct krait_kernel_events *events);

/* After a walk, its end: the time of the last event of any kind, or until_ns if there are later events; INT64_MIN: there are
 * no events at from_ns or later. */
int64_t krait_kernel_events_end(const struct krait_kernel_events *events);
/* The number of events that the tracer says it lost; the first damage found (code 0: none). */
uint64_t krait_kernel_events_lost(const struct krait_kernel_events *events);
const struct krait_err *krait_kernel_events_damage(const struct krait_kernel_events *events);

#endif
