/* SPDX-License-Identifier: Apache-2.0
 *
 * In which task each event of a program happens, and a name for each task that no other task of the trace has. For those
 * who ask of many events: a thread's steps are read once, when one of its events is asked for first, and then kept.
 */
#ifndef KRAIT_TRACE_TASK_KEYS_H
#define KRAIT_TRACE_TASK_KEYS_H

#include "base/arena.h"
#include "base/map.h"
#include "trace/track.h"

struct krait_task_keys { /* zeroed but for the trace, until something is asked */
    const struct krait_trace *trace;
    struct krait_task_turns {
        struct krait_task_turn {
            uint64_t t_ns;
            uint32_t task; /* from then on; KRAIT_NO_ID: none */
        } * items;
        size_t count, cap, at; /* at: of the last answer */
        bool is_read;
    } * threads; /* by index */
    struct krait_task_called {
        const char *text, *name;    /* NULL: not made yet */
        bool is_shared, is_of_more; /* by tasks of its process, and of others */
    } * labels;                     /* by task */
    struct krait_map first;         /* by the label's id: the task that had it first */
    struct krait_strtab texts;
    struct krait_arena arena;
    bool failed; /* memory was out: answers are missing */
};

void krait_task_keys_done(struct krait_task_keys *keys);

/* The index of the task whose step a thread was in at a time, or KRAIT_NO_ID. The thread may be KRAIT_NO_ID. */
uint32_t krait_task_keys_at(struct krait_task_keys *keys, uint32_t thread, uint64_t t_ns);

/* The same where a coroutine begins: if it is the root of a task, that is told behind its begin, before the thread's next call
 * or return at `next_ns`. UINT64_MAX: that time is not known. */
uint32_t krait_task_keys_begun(struct krait_task_keys *keys, uint32_t thread, uint64_t t_ns,
                               uint64_t next_ns);

/* The index of the task that a track belongs to, or KRAIT_NO_ID: to none. */
uint32_t krait_task_keys_of(const struct krait_task_keys *keys, const struct krait_track *track);

/* The index of the task that the process of a thread gave a number, or KRAIT_NO_ID: there is none. */
uint32_t krait_task_keys_numbered(const struct krait_task_keys *keys, uint32_t thread, uint64_t number);

/* "handle Task-7", as the task's track is called. Tasks that are called alike have their ids behind that, and if they are of
 * several processes their pids: "reader #3", "reader #3 of 4711". NULL: there is no such task, or memory is out. */
const char *krait_task_keys_name(struct krait_task_keys *keys, uint32_t task);

#endif
