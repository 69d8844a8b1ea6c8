/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `krait info`: reading (info.c), facts for both outputs (info_facts.c), text (info_text.c), JSON
 * (info_json.c), and the lists of processes and event classes for both (info_lists.c).
 */
#ifndef KRAIT_CMD_INFO_H
#define KRAIT_CMD_INFO_H

#include "base/buf.h"
#include "ctf/rows/count.h"
#include "trace/kernel/kernel_steal.h"
#include "trace/trace.h"
#include "view/table.h"

struct info {
    struct krait_ctf_reader *reader;
    struct krait_ctf_count count;
    struct krait_trace *trace;           /* the model of krait's own recordings; else NULL */
    struct krait_ctf_trace_count kernel; /* of the recording's kernel events */
    struct krait_kernel_steals steals;   /* from the kernel events */
    uint64_t steals_ns;                  /* the time that steals covers */
    struct gil_sum {
        uint64_t waits, ns;
        uint32_t threads; /* number of threads that waited */
        uint32_t most;    /* the thread that waited longest */
        uint64_t most_ns;
    } gil;
    bool all;
    struct krait_table_look look; /* with a width, also where stdout is no terminal */
    const char *bold, *dim, *red, *plain;
    struct krait_buf out;
};

struct loss {
    const char *reason, *advice;
    uint64_t count;
    bool of_packets; /* else of events */
};

/* The largest value of this entry in the environments of the recording's traces; 0 if none has it. */
uint64_t krait_info_most_of(const struct info *info, const char *name);
/* Losses: of recordings by reason, of other traces from their packets. Some have a count of 0. */
uint32_t krait_info_loss_count(const struct info *info);
struct loss krait_info_loss_at(const struct info *info, uint32_t i);
/* The texts of --args, one a line; may be empty. */
const char *krait_info_args_of(const struct info *info);
/* The option that ended the recording before the program ended; empty: none. */
const char *krait_info_limit_of(const struct info *info);
uint64_t krait_info_duration(const struct info *info);
bool krait_info_is_kernel(const struct krait_ctf_trace *trace);

/* Append to info->out: everything; the lists. */
void krait_info_text(struct info *info);
void krait_info_json(struct info *info);
void krait_info_processes(struct info *info);
void krait_info_processes_json(struct info *info);
void krait_info_classes(struct info *info);
void krait_info_classes_json(struct info *info);

#endif
