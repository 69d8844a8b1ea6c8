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

/* Rows for a verb's table: `values` is the verb's options struct, `member` its struct krait_select. `until`
 * is what the option for the end is called: "to", or "until" where --to means something else. */
#define KRAIT_SELECT_OPTS(values, member, until_name)                             \
    { "from",                                                                     \
      0,                                                                          \
      KRAIT_OPT_STR,                                                              \
      "TIME",                                                                     \
      offsetof(values, member.from),                                              \
      "Leave out what lies before TIME after the start: 1.5s, 200ms, 3" },        \
        { until_name,                                                             \
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

/* The range in the trace's time. -EINVAL with err set when a time is none, or from is not before until. */
int krait_select_range(const struct krait_select *select, const struct krait_trace *trace,
                       struct krait_range *range, struct krait_err *err);

/* Whether a thread is chosen; `select` is a struct krait_select, so that it fits
 * krait_calltree_options.take_thread. */
bool krait_select_thread(void *select, const struct krait_trace *trace, uint32_t thread);

/* 0, or -ENOENT with err set when the trace has threads and none of them is chosen. */
int krait_select_some(const struct krait_select *select, const struct krait_trace *trace,
                      struct krait_err *err);

void krait_select_done(struct krait_select *select);

#endif
