/* SPDX-License-Identifier: Apache-2.0
 *
 * What `record` and `collect` share: the options of a recording.
 */
#ifndef KRAIT_CMD_RECORDING_H
#define KRAIT_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "record/collector.h"

struct krait_recording_values {
    const char *output;
    struct krait_opt_list include, exclude;
    bool no_c_calls, no_children, no_gil, call_sites, lossless, quiet, wait;
    double max_overhead;
    uint64_t ring_size, max_threads;
    const char *kernel;           /* groups of events; NULL: the kernel is not recorded */
    const char *kernel_functions; /* a pattern */
    uint64_t kernel_ring_size;
};

/* The rows, for a table whose options struct begins with a struct krait_recording_values. */
#define KRAIT_RECORDING_OPTS                                                                                 \
    { "output",                                                                                              \
      'o',                                                                                                   \
      KRAIT_OPT_STR,                                                                                         \
      "DIR",                                                                                                 \
      offsetof(struct krait_recording_values, output),                                                       \
      "Write the recording to DIR, made anew (default: krait-COMMAND-DATE-TIME)" },                          \
        { "include",                                                                                         \
          0,                                                                                                 \
          KRAIT_OPT_LIST,                                                                                    \
          "GLOB",                                                                                            \
          offsetof(struct krait_recording_values, include),                                                  \
          "Record only Python functions whose module, name or file matches; may be repeated" },              \
        { "exclude",                                                                                         \
          0,                                                                                                 \
          KRAIT_OPT_LIST,                                                                                    \
          "GLOB",                                                                                            \
          offsetof(struct krait_recording_values, exclude),                                                  \
          "Leave out functions whose module, name or file matches; may be repeated" },                       \
        { "no-c-calls",                                                                                      \
          0,                                                                                                 \
          KRAIT_OPT_FLAG,                                                                                    \
          NULL,                                                                                              \
          offsetof(struct krait_recording_values, no_c_calls),                                               \
          "Record Python functions alone" },                                                                 \
        { "no-gil",                                                                                          \
          0,                                                                                                 \
          KRAIT_OPT_FLAG,                                                                                    \
          NULL,                                                                                              \
          offsetof(struct krait_recording_values, no_gil),                                                   \
          "Leave waiting for the GIL out" },                                                                 \
        { "no-children",                                                                                     \
          0,                                                                                                 \
          KRAIT_OPT_FLAG,                                                                                    \
          NULL,                                                                                              \
          offsetof(struct krait_recording_values, no_children),                                              \
          "Record the first Python process alone" },                                                         \
        { "call-sites",                                                                                      \
          0,                                                                                                 \
          KRAIT_OPT_FLAG,                                                                                    \
          NULL,                                                                                              \
          offsetof(struct krait_recording_values, call_sites),                                               \
          "Tell calls apart by the line that they come from (costs several times as much)" },                \
        { "max-overhead",                                                                                    \
          0,                                                                                                 \
          KRAIT_OPT_DOUBLE,                                                                                  \
          "PERCENT",                                                                                         \
          offsetof(struct krait_recording_values, max_overhead),                                             \
          "Keep the program within so much of its own time, by leaving out hot, tiny functions" },           \
        { "lossless",                                                                                        \
          0,                                                                                                 \
          KRAIT_OPT_FLAG,                                                                                    \
          NULL,                                                                                              \
          offsetof(struct krait_recording_values, lossless),                                                 \
          "Make the program wait when its ring is full, instead of losing events" },                         \
        { "ring-size",                                                                                       \
          0,                                                                                                 \
          KRAIT_OPT_SIZE,                                                                                    \
          "SIZE",                                                                                            \
          offsetof(struct krait_recording_values, ring_size),                                                \
          "Memory of each thread's ring (default: 2M)" },                                                    \
    {                                                                                                        \
        "max-threads", 0, KRAIT_OPT_UINT, "N", offsetof(struct krait_recording_values, max_threads),         \
            "Threads that are recorded at a time at least, all processes together (default: 4096, less one " \
            "for "                                                                                           \
            "each process)"                                                                                  \
    }

/* -EINVAL, with err saying how, where the values are wrong usage. Makes nothing. */
int krait_recording_check(const struct krait_recording_values *values, struct krait_err *err);

/* Makes the collector, of values that krait_recording_check has found right. `dir` is a buffer for the
 * default folder's name, made from `command`; `owner` is the process that asked for the recording itself, or
 * 0. */
int krait_recording_open(struct krait_collector **out, struct krait_recording_values *values,
                         const char *command, int owner, char *dir, size_t size, struct krait_err *err);

#endif
