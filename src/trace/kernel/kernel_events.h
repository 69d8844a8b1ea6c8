/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's events by time, whatever recorded them. Each has its kind, the fields that analyses use, in known
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
    KRAIT_KERNEL_EVENT_FIELDS = 7, /* of a kind, at the most */
    /* Linux has no more CPUs: an event of one with a greater number is passed over. */
    KRAIT_KERNEL_EVENT_CPUS = 8192,
};

/* Of one event class of a trace. */
struct krait_kernel_event_class {
    uint8_t kind;
    /* by place in the kind's list; 0: the trace has no such field */
    uint16_t cell[KRAIT_KERNEL_EVENT_FIELDS];
    uint8_t texts;     /* bits, by the same: it is text */
    uint16_t tid_cell; /* of the context that says the thread; 0: none */
    uint16_t cpu_cell; /* of a field that says the CPU, where packets do not */
    const char *rest;  /* of the name, where the kind's ends in *: of a system call, its name */
    uint32_t index;    /* among the classes */
};

struct krait_kernel_event {
    int64_t ns;
    uint32_t cpu;
    const struct krait_kernel_event_class *cls;
    const uint64_t *cells; /* of the row */
};

static inline bool krait_kernel_event_has(const struct krait_kernel_event *ev, unsigned field)
{
    return ev->cls->cell[field] != 0;
}

static inline bool krait_kernel_event_is_text(const struct krait_kernel_event *ev, unsigned field)
{
    return ev->cls->texts >> field & 1;
}

/* A number; -1 where the trace has no such field. */
static inline int64_t krait_kernel_event_int(const struct krait_kernel_event *ev, unsigned field)
{
    uint16_t cell = ev->cls->cell[field];
    return cell ? (int64_t)ev->cells[cell] : -1;
}

/* Text, which is not terminated; *size is 0 if there is none. */
static inline const char *krait_kernel_event_text(const struct krait_kernel_event *ev, unsigned field,
                                                  size_t *size)
{
    uint16_t cell = ev->cls->cell[field];
    *size = cell ? ev->cells[cell + 1] : 0;
    return cell ? (const char *)(uintptr_t)ev->cells[cell] : "";
}

/* Of the context; -1 if there is none. */
static inline int64_t krait_kernel_event_tid(const struct krait_kernel_event *ev)
{
    return ev->cls->tid_cell ? (int64_t)ev->cells[ev->cls->tid_cell] : -1;
}

struct krait_kernel_events; /* opaque */

/* What a number stands for, where the trace has words for it, as for a function's address; NULL: it has none,
 * or has no such field. Lives as long as `events`. */
const char *krait_kernel_events_label(const struct krait_kernel_events *events,
                                      const struct krait_kernel_event *ev, unsigned field);

/* What an event is called, as the trace says. */
const char *krait_kernel_events_name(const struct krait_kernel_events *events,
                                     const struct krait_kernel_event *ev);
/* During a walk: goes to an event of it with a cursor of the events' own, which is before the fields. It finds the event
 * anew, so it is for rare ones. Returns 0 or a negative errno. */
int krait_kernel_events_go(struct krait_kernel_events *events, const struct krait_kernel_event *ev,
                           struct krait_ctf_cursor **out);

typedef void krait_kernel_event_handler(void *ctx, const struct krait_kernel_event *event);

/* Whether threads or system calls can be followed by its events. */
bool krait_kernel_events_takes(const struct krait_ctf_metadata *metadata);
/* Sets err to why there are none in a path, and returns its code. */
int krait_kernel_events_missing(const char *path, struct krait_err *err);

/* Opens the traces in the folders that krait_kernel_events_takes. For the model: others ask it (kernel.h). Until they
 * are prepared, which compiles how events are read, they tell no more than when they begin. Errors: -ENOENT no trace
 * there; -ENODATA traces, but none of the kernel's; -ENOTSUP of several hosts; what opening a CTF trace returns;
 * preparing fails with -ENOMEM alone. */
int krait_kernel_events_open(struct krait_kernel_events **out, const char *const *paths, size_t count,
                             struct krait_err *err);
int krait_kernel_events_prepare(struct krait_kernel_events *events, struct krait_err *err);
void krait_kernel_events_close(struct krait_kernel_events *events);

const struct krait_kernel_event_class *krait_kernel_events_classes(const struct krait_kernel_events *events,
                                                                   uint32_t *count);

/* Whether an event of a kind was asked for when the trace was recorded. */
bool krait_kernel_events_has(const struct krait_kernel_events *events, enum krait_kernel_event_kind kind);

/* Whether what there is, is of one program's threads alone: switches, from perf events, without what others do. */
bool krait_kernel_events_own(const struct krait_kernel_events *events);

/* What the trace says of where it was made, by LTTng's names (hostname, kernel_release, ...); empty where it
 * does not. */
const char *krait_kernel_events_env(const struct krait_kernel_events *events, const char *name);

/* The time of the first event, of any kind; INT64_MAX if there is none. Reads no more than the first
 * packets that have events. */
int64_t krait_kernel_events_first(struct krait_kernel_events *events);

/* Whether there is an event at a time or later. Reads few packets where they tell their times. */
bool krait_kernel_events_reach(struct krait_kernel_events *events, int64_t ns);

/* Calls handlers[kind] for each event, in the order of time, those without a handler aside; `begin` once before all
 * of them, with the time of the first event of any kind; `from` once before the events from from_ns on, with that
 * time. Times are nanoseconds after the first event. Events at until_ns and later are left out, and when `done`
 * becomes true those soon after too. May be called again. No gil. hot path. Returns 0, -ENOMEM, or -ECANCELED where
 * `goes_on` says so.
 *
 * Among them FOUND says which thread, or with 0 the idle task, a CPU runs since before its first event; and
 * LOST that events of a CPU are missing from then on, until its next (kernel_marks.h). */
struct krait_kernel_event_walk {
    void *ctx;
    uint64_t from_ns, until_ns; /* UINT64_MAX: there is no end */
    const bool *done;           /* NULL: never */
    /* Called after some thousands of events, with the time of the last one; returns whether to go on. NULL: always */
    bool (*goes_on)(void *ctx, int64_t ns);
    void (*begin)(void *ctx, int64_t ns);
    void (*from)(void *ctx, int64_t ns);
    /* NULL: nothing behind until_ns is told. Else it is called there, with that time, and then events go on
     * for ahead_ns, or until `done`. */
    void (*ahead)(void *ctx, int64_t ns);
    uint64_t ahead_ns;
    krait_kernel_event_handler *handlers[KRAIT_KERNEL_EVENT_KINDS];
};
int krait_kernel_events_walk(struct krait_kernel_events *events, const struct krait_kernel_event_walk *walk);

/* After the walk, where what it was asked for ends: the last event's time, of any kind, or until_ns where
 * events go on; INT64_MIN where there are no events from from_ns on. */
int64_t krait_kernel_events_end(const struct krait_kernel_events *events);
/* Events that the tracer says it lost; the first damage met (code 0: none). */
uint64_t krait_kernel_events_lost(const struct krait_kernel_events *events);
const struct krait_err *krait_kernel_events_damage(const struct krait_kernel_events *events);

#endif
