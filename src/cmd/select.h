/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a trace that a verb looks at: a range of time, and threads and processes by name or id. The options mean
 * the same in every verb that has them.
 */
#ifndef KRAIT_CMD_SELECT_H
#define KRAIT_CMD_SELECT_H

#include "cmd/opts.h"
#include "trace/kernel/kernel_states.h"
#include "trace/ranges.h"
#include "trace/track.h"

/* What threads have to do with the intervals of `within`. */
enum krait_home {
    KRAIT_HOME_END,   /* the interval ends in it; or of several intervals, one begins or ends in it */
    KRAIT_HOME_BEGIN, /* it begins in it, and ends in another */
    KRAIT_HOME_NONE,
    KRAIT_HOMES
};

struct krait_select {
    const char *from, *until;       /* NULL: the beginning, the end */
    const char *within;             /* an interval in place of these: within.h */
    char *owned[2];                 /* the texts of from and until for that interval */
    struct krait_opt_list analyses; /* files that declare names for `within` */
    struct krait_ranges parts;      /* all intervals of that name, if it has no number */
    bool sums_parts;                /* the verb sums up all of them */
    uint8_t *homes; /* by thread: enum krait_home; NULL: there is no interval, or its thread is not known */
    bool tells_analyses;                      /* the verb tells itself what is wrong in them */
    struct krait_buf told;                    /* what krait_within told of them: lines */
    bool shows_analyses;                      /* the verb uses analyses even without `within` */
    struct krait_opt_list threads, processes; /* globs; empty: all */
    bool *ran; /* by task: it ran in one of these threads; krait_select_track fills it in */
};

/* Rows for a verb's table: `values` is the verb's options struct, `member` its struct krait_select. */
#define KRAIT_SELECT_TIME_OPTS(values, member)                                                                            \
    { "from",                                                                                                             \
      0,                                                                                                                  \
      KRAIT_OPT_STR,                                                                                                      \
      "TIME",                                                                                                             \
      offsetof(values, member.from),                                                                                      \
      "Start at TIME after the recording began, such as 1.5s, 200ms or 3" },                                              \
        { "until",                                                                                                        \
          0,                                                                                                              \
          KRAIT_OPT_STR,                                                                                                  \
          "TIME",                                                                                                         \
          offsetof(values, member.until),                                                                                 \
          "End at TIME after the recording began" },                                                                      \
        { "analysis",                                                                                                     \
          'f',                                                                                                            \
          KRAIT_OPT_LIST,                                                                                                 \
          "FILE",                                                                                                         \
          offsetof(values, member.analyses),                                                                              \
          "Read declared analyses from a file (TOML or Trace Compass XML), or by a name that krait analyses "             \
          "lists; --within may name their intervals; may be repeated" },                                                  \
    {                                                                                                                     \
        "within", 0, KRAIT_OPT_STR, "NAME[:N]", offsetof(values, member.within),                                          \
            "Show only what happened inside one interval of this name (a span, a call of a function, or 'START .. STOP' " \
            "messages; with -f also NAME.STATE); N is a number, first, last, slowest or fastest, such as serve:slowest. " \
            "Without N: inside all of them, if the output is sums"                                                        \
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

/* Reads the argument of an option, "1.5s", "200ms" or "3", in nanoseconds after the recording began. Returns 0, or -EINVAL with
 * err set. */
int krait_select_time(const char *option, const char *text, uint64_t *ns, struct krait_err *err);

/* Checks that the times are valid and from is before until. Returns 0, or -EINVAL with err set. */
int krait_select_check(const struct krait_select *select, struct krait_err *err);

/* The range for walks over the kernel's part, which count from its first event; 0 and UINT64_MAX if nothing is selected.
 * Call krait_select_check first. Returns the beginning of the whole trace (krait_trace_zero). */
int64_t krait_select_kernel_range(const struct krait_select *select, const struct krait_trace *trace,
                                  struct krait_kernel_events *events, uint64_t *from_ns, uint64_t *until_ns);

/* " in that time", " on those threads" or both, for a message that nothing was found; "" if everything is selected. */
const char *krait_select_scope(const struct krait_select *select);

/* Reads the argument of --limit; `otherwise` if there is none. */
int krait_select_limit(uint32_t *limit, const char *text, uint32_t otherwise, struct krait_err *err);

/* The same, of a verb that prints a table, CSV or JSON: without --limit tables have 40 rows, and the others all. Fails if both csv
 * and json are set. */
int krait_select_rows(uint32_t *limit, const char *text, bool csv, bool json, struct krait_err *err);

/* What a verb reads. */
enum krait_select_reads {
    KRAIT_SELECT_RECORDING,
    KRAIT_SELECT_TRACE,  /* any CTF trace */
    KRAIT_SELECT_KERNEL, /* a recording that has the kernel's part, or a kernel trace */
};

/* Returns 0, or -EINVAL with err set: the verb was given none, but `count` operands. */
int krait_select_given(enum krait_select_reads reads, int count, struct krait_err *err);

/* Whether one of the globs matches the name or the id, or the list is empty. */
bool krait_select_named(const struct krait_opt_list *globs, const char *name, uint32_t id);

/* The range in the trace's time. Call krait_select_check first. */
struct krait_range krait_select_range(const struct krait_select *select, const struct krait_trace *trace);

/* Whether a thread is selected. `select` is a struct krait_select; it is void * to fit krait_calltree_options.take_thread. */
bool krait_select_thread(void *select, const struct krait_trace *trace, uint32_t thread);

/* The same for other tracks, for krait_timeline_options.take_track: CPUs and streams are selected if no threads and
 * processes are named. */
bool krait_select_track(void *select, const struct krait_trace *trace, const struct krait_track *track);

/* The same for tracks of calls and instants: those of a thread by the thread, those of a stream by its name or number. */
bool krait_select_place(void *select, const struct krait_trace *trace, const struct krait_track *track);

/* The same for processes and threads by kernel events. KRAIT_NO_ID: the process is not known. */
bool krait_select_kprocess(const struct krait_select *select, const struct krait_kernel_states *states,
                           uint32_t process);
bool krait_select_kthread(const struct krait_select *select, const struct krait_kernel_states *states,
                          const struct krait_kthread *thread);

/* Returns 0, or -ENOENT with err set if the trace has threads and none of them is selected. */
int krait_select_some(const struct krait_select *select, const struct krait_trace *trace,
                      struct krait_err *err);

void krait_select_done(struct krait_select *select);

#endif
