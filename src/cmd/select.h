/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a trace a verb looks at: a range of time, and threads and processes by name or id. The
 * options and what they mean are the same in every verb that has them.
 */
#ifndef KRAIT_CMD_SELECT_H
#define KRAIT_CMD_SELECT_H

#include "cmd/opts.h"
#include "trace/kernel/kernel_states.h"
#include "trace/ranges.h"
#include "trace/track.h"

struct krait_select {
    const char *from, *until;                 /* NULL: the beginning, the end */
    const char *within;                       /* an interval in place of these: within.h */
    char *owned[2];                           /* its range as from and until */
    struct krait_opt_list analyses;           /* files that declare what `within` may name */
    struct krait_ranges parts;                /* all intervals of that name, where it has no number */
    bool sums_parts;                          /* the verb takes them */
    bool shows_analyses;                      /* it shows them even without `within` */
    struct krait_opt_list threads, processes; /* globs; empty takes all */
    bool *ran; /* the tasks that ran in one of these threads; krait_select_track fills it when it is asked */
};

/* Rows for a verb's table: `values` is the verb's options struct, `member` its struct krait_select. */
#define KRAIT_SELECT_TIME_OPTS(values, member)                                                                              \
    { "from",                                                                                                               \
      0,                                                                                                                    \
      KRAIT_OPT_STR,                                                                                                        \
      "TIME",                                                                                                               \
      offsetof(values, member.from),                                                                                        \
      "Start at TIME after the recording began, such as 1.5s, 200ms or 3" },                                                \
        { "until",                                                                                                          \
          0,                                                                                                                \
          KRAIT_OPT_STR,                                                                                                    \
          "TIME",                                                                                                           \
          offsetof(values, member.until),                                                                                   \
          "End at TIME after the recording began" },                                                                        \
        { "analysis",                                                                                                       \
          'f',                                                                                                              \
          KRAIT_OPT_LIST,                                                                                                   \
          "FILE",                                                                                                           \
          offsetof(values, member.analyses),                                                                                \
          "Read declared analyses from a file (TOML or Trace Compass XML), or by a name that krait analyses "               \
          "lists; --within may name their intervals; may be repeated" },                                                    \
    {                                                                                                                       \
        "within", 0, KRAIT_OPT_STR, "NAME[:N]", offsetof(values, member.within),                                            \
            "Show only what happened inside one interval of this name (a span, a call of a function, or 'START .. STOP' "   \
            "messages); N is a number, slowest, fastest or last, such as serve:slowest. Without N: inside all of them, if " \
            "the output is sums"                                                                                            \
    }

#define KRAIT_SELECT_OPTS(values, member)                                         \
    KRAIT_SELECT_TIME_OPTS(values, member),                                       \
        { "thread",                                                               \
          0,                                                                      \
          KRAIT_OPT_LIST,                                                         \
          "GLOB",                                                                 \
          offsetof(values, member.threads),                                       \
          "Select threads by name or id; may be repeated" },                      \
    {                                                                             \
        "process", 0, KRAIT_OPT_LIST, "GLOB", offsetof(values, member.processes), \
            "Select processes by name or id; may be repeated"                     \
    }

/* --to for --until, in verbs where --to means nothing else; not in help. */
#define KRAIT_SELECT_TO_OPT(values, member)                                  \
    {                                                                        \
        "to", 0, KRAIT_OPT_STR, "TIME", offsetof(values, member.until), NULL \
    }

/* Whether the times are times, and from is before until: -EINVAL with err set where not. */
int krait_select_check(const struct krait_select *select, struct krait_err *err);

/* The range in the kernel's part, of a selection that krait_select_check found right, as walks over it count: after
 * its first event; 0 and UINT64_MAX where it says none. Returns when the whole `trace` begins (krait_trace_zero). */
int64_t krait_select_kernel_range(const struct krait_select *select, const struct krait_trace *trace,
                                  struct krait_kernel_events *events, uint64_t *from_ns, uint64_t *until_ns);

/* " in that time", " on those threads" or both, for a message that nothing was found; "" where all is looked
 * at. */
const char *krait_select_scope(const struct krait_select *select);

/* The argument of --limit; `otherwise` if there is none. */
int krait_select_limit(uint32_t *limit, const char *text, uint32_t otherwise, struct krait_err *err);

/* Whether one of the globs is like the name or the number; so is an empty list. */
bool krait_select_named(const struct krait_opt_list *globs, const char *name, uint32_t id);

/* The range in the program's part, in the trace's time, of a selection that krait_select_check found right. */
struct krait_range krait_select_range(const struct krait_select *select, const struct krait_trace *trace);

/* Whether a thread is chosen; `select` is a struct krait_select, so that it fits
 * krait_calltree_options.take_thread. */
bool krait_select_thread(void *select, const struct krait_trace *trace, uint32_t thread);

/* The same for a track that is not of such a thread, for krait_timeline_options.take_track: CPUs and streams are chosen
 * where no threads and processes are named. */
bool krait_select_track(void *select, const struct krait_trace *trace, const struct krait_track *track);

/* The same for tracks of calls and instants: of a thread by that, of a stream by its name or number. */
bool krait_select_place(void *select, const struct krait_trace *trace, const struct krait_track *track);

/* The same for the kernel's processes and threads. A process may be KRAIT_NO_ID: it is not known. */
bool krait_select_kprocess(const struct krait_select *select, const struct krait_kernel_states *states,
                           uint32_t process);
bool krait_select_kthread(const struct krait_select *select, const struct krait_kernel_states *states,
                          const struct krait_kthread *thread);

/* 0, or -ENOENT with err set when the trace has threads and none of them is chosen. */
int krait_select_some(const struct krait_select *select, const struct krait_trace *trace,
                      struct krait_err *err);

void krait_select_done(struct krait_select *select);

#endif
