/* SPDX-License-Identifier: Apache-2.0
 *
 * Triggers: which events a rule looks at, and what it takes from them. An event fires a trigger if its name matches one
 * of the globs, its message the pattern, and its fields the conditions; of these a trigger has what it needs.
 *
 * A part of an event has a name: that of a group of the pattern, that of a field, with dots on the way into it, or one
 * of these:
 *
 *   $event    the event's name             $*      what the star at the end of a glob stands for in it
 *   $cpu      the CPU                      $thread the thread that it happened in, by its number
 *   $host     the host that recorded it    $process that thread's process, by its number
 *   $task     the task in whose step the thread was, by a name that no other task has (trace/task_keys.h)
 *
 * These have the same names whatever recorded the event: krait, LTTng or the kernel. Of events that krait recorded in a
 * program, $thread and $process are also vtid and vpid, as in LTTng's contexts.
 */
#ifndef KRAIT_ANALYSIS_TRIGGER_H
#define KRAIT_ANALYSIS_TRIGGER_H

#include "analysis/match.h"
#include "analysis/regex.h"
#include "base/buf.h"
#include "trace/task_keys.h"
#include "trace/track.h"

enum krait_trigger_role {
    KRAIT_TRIGGER_START, /* of an interval */
    KRAIT_TRIGGER_STOP,
    KRAIT_TRIGGER_STATE, /* begins one */
    KRAIT_TRIGGER_VALUE, /* has a number */
    KRAIT_TRIGGER_AFTER, /* names the next value of the same key or thread */
};

#define KRAIT_TEMPLATE_BETWEEN " " /* several parts that are one key, or name one row */

/* Texts and parts of the event, one after the other. */
struct krait_template {
    const struct krait_template_piece {
        const char *text;
        bool is_part; /* its name; else the text itself */
    } * pieces;
    uint32_t count; /* 0: it was not given */
};

/* A part of the event and what it has to be: one of some. Numbers are compared as numbers, texts as globs. */
struct krait_condition {
    const char *part;
    enum krait_condition_op {
        KRAIT_IS,
        KRAIT_IS_NOT,
        KRAIT_LESS,
        KRAIT_LESS_OR_SAME,
        KRAIT_MORE,
        KRAIT_MORE_OR_SAME,
    } op;
    const char *const *values;
    uint32_t count; /* of the last four: 1 */
};

struct krait_trigger {
    enum krait_trigger_role role;
    struct krait_regex *message; /* NULL: any; owned by who made it */
    const char *const
        *events; /* globs; then events of the kernel, tasks and the GIL are among those that fire it */
    uint32_t event_count;     /* 0: any, but the kernel's, and those of tasks and the GIL */
    struct krait_match *call; /* its calls fire it, and no event does; owned likewise */
    bool returns;             /* ... where they end; else where they begin */
    const char *call_at;      /* FILE:LINE of `call` */
    const struct krait_condition *where;
    uint32_t where_count;
    /* What tells those apart that do not belong together; without one, the group named key, else the thread. What rows
     * are named by. A state's name or a value: without one the group named state or value, or the first. */
    struct krait_template key, by, what;
    uint32_t line; /* where a file has it; 0: it is of no file */
};

/* An event on its way through triggers. */
struct krait_trigger_event {
    const char *name, *fields, *host; /* host: "": not known */
    const char *arguments; /* of a call, what was recorded of it: a JSON object, or ""; else NULL */
    int64_t cpu, tid, pid; /* -1: not known */
    uint64_t t_ns;
    uint32_t thread, task;           /* of the trace's; KRAIT_NO_ID: not known; of the task: t_ns tells it */
    struct krait_task_keys *tasks;   /* NULL: tasks are not asked for */
    const struct krait_track *track; /* that krait_trigger_event_of was called for last; NULL: none */
    bool is_kernels;
    bool is_by_name; /* only triggers that name events take it */
    bool is_raw_too; /* the kernel's events have it, too: triggers that name events take it there */
    const char *message;
    size_t n;                   /* of message */
    struct krait_buf text, own; /* hold the message, and parts; the caller's to free */
};

/* An event of a track, whose batch has its name and its fields. The kernel's have is_kernels set by who reads them. */
void krait_trigger_event_of(struct krait_trigger_event *said, const struct krait_trace *trace,
                            const struct krait_track *track, const char *name, const char *fields);

/* Its message: the first field that is called message, msg, text or buf, else its name with all fields. */
void krait_trigger_read_message(struct krait_trigger_event *said);

bool krait_trigger_fires(const struct krait_trigger *trigger, struct krait_trigger_event *said);

/* Whether its conditions hold; of a call, which krait_trigger_fires does not judge, those on its arguments. */
bool krait_trigger_holds(const struct krait_trigger *trigger, struct krait_trigger_event *said);

/* Whether it may fire by an event of this name. */
bool krait_trigger_may(const struct krait_trigger *trigger, const char *event);

/* Whether a text is a number, blanks before it aside, as conditions compare it. */
bool krait_trigger_number(const char *text, double *number);

enum { KRAIT_TRIGGER_PARTS = 7 };

/* The i-th of the names that begin with a dollar; NULL: there are no more. And whether a name is one of them. */
const char *krait_trigger_part(size_t i);
bool krait_trigger_is_part(const char *name);

/* A slice, or a call. */
struct krait_trigger_slice {
    const struct krait_track *track;
    const char *name, *fields; /* as its batch has them */
    uint64_t begin_ns;
    uint32_t task; /* that is known to run it; KRAIT_NO_ID: the begin tells it */
};

/* A field of a slice's: of a span, say; or one of these names. False: it has none. */
bool krait_trigger_get_slice(struct krait_task_keys *tasks, const struct krait_trigger_slice *slice,
                             const char *part, struct krait_buf *to);

/* Parts of the event that just fired it, to the end of `to`. False: the event has no such part. */
bool krait_trigger_get(const struct krait_trigger *trigger, const char *part,
                       struct krait_trigger_event *said, struct krait_buf *to);
bool krait_trigger_fill(const struct krait_trigger *trigger, const struct krait_template *template,
                        struct krait_trigger_event *said, struct krait_buf *to);

/* The part that is its key or what it takes where no template says: a group; 0: there is none. */
uint32_t krait_trigger_key_group(const struct krait_trigger *trigger);
uint32_t krait_trigger_what_group(const struct krait_trigger *trigger);

bool krait_trigger_is_keyed(const struct krait_trigger *trigger);

#endif
