/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a trace a verb looks at: a range of time, and threads and processes by name or id. The
 * options and what they mean are the same in every verb that has them.
 */
#ifndef KRAIT_CMD_SELECT_H
#define KRAIT_CMD_SELECT_H

#include "cmd/opts.h"
#include "trace/trace.h"

struct krait_select {
    const char *from, *until;                 /* NULL: the beginning, the end */
    struct krait_opt_list threads, processes; /* globs; empty takes all */
};

/* Rows for a verb's table: `values` is the verb's options struct, `member` its struct krait_select. */
#define KRAIT_SELECT_OPTS(values, member)                                         \
    { "from",                                                                     \
      0,                                                                          \
      KRAIT_OPT_STR,                                                              \
      "TIME",                                                                     \
      offsetof(values, member.from),                                              \
      "Leave out what lies before TIME after the start: 1.5s, 200ms, 3" },        \
        { "until",                                                                \
          0,                                                                      \
          KRAIT_OPT_STR,                                                          \
          "TIME",                                                                 \
          offsetof(values, member.until),                                         \
          "Leave out what lies after TIME after the start" },                     \
        { "thread",                                                               \
          0,                                                                      \
          KRAIT_OPT_LIST,                                                         \
          "GLOB",                                                                 \
          offsetof(values, member.threads),                                       \
          "Only threads with this name or id (may be repeated)" },                \
    {                                                                             \
        "process", 0, KRAIT_OPT_LIST, "GLOB", offsetof(values, member.processes), \
            "Only processes with this name or id (may be repeated)"               \
    }

/* --to for --until, in verbs where --to means nothing else. */
#define KRAIT_SELECT_TO_OPT(values, member)                                                   \
    {                                                                                         \
        "to", 0, KRAIT_OPT_STR, "TIME", offsetof(values, member.until), "The same as --until" \
    }

/* Whether the times are times, and from is before until: -EINVAL with err set where not. */
int krait_select_check(const struct krait_select *select, struct krait_err *err);

/* The range in the trace's time, of a selection that krait_select_check found right. */
struct krait_range krait_select_range(const struct krait_select *select, const struct krait_trace *trace);

/* Whether a thread is chosen; `select` is a struct krait_select, so that it fits
 * krait_calltree_options.take_thread. */
bool krait_select_thread(void *select, const struct krait_trace *trace, uint32_t thread);

/* 0, or -ENOENT with err set when the trace has threads and none of them is chosen. */
int krait_select_some(const struct krait_select *select, const struct krait_trace *trace,
                      struct krait_err *err);

void krait_select_done(struct krait_select *select);

#endif
