/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of `krait info`: reading (info.c), facts for both outputs (info_facts.c), text (info_text.c), JSON
 * (info_json.c), the lists of processes and event classes for both (info_lists.c), and what files declare (info_declared.c).
 */
#ifndef KRAIT_CMD_INFO_H
#define KRAIT_CMD_INFO_H

#include "base/buf.h"
#include "ctf/rows/count.h"
#include "trace/gil_holders.h"
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
        struct krait_gil_split split; /* of ns */
        uint32_t threads;             /* number of threads that waited */
        uint32_t most;                /* the thread that waited longest */
        uint64_t most_ns;
    } gil;
    bool is_part; /* only what happened in `range` */
    struct krait_range range;
    uint64_t zero_ns;               /* of a part: times are shown after it */
    struct info_declared *declared; /* rows of -f; NULL: no files */
    uint32_t declared_count;
    struct krait_arena names; /* of these */
    bool all;
    struct krait_table_look look; /* with a width, also where stdout is no terminal */
    const char *bold, *dim, *red, *plain;
    struct krait_buf out;
};

/* What a file declares, and how much the trace has of it. */
struct info_declared {
    const char *name, *kind;
    uint64_t found, total_ns; /* 0 of a signal */
};

struct loss {
    const char *reason, *advice;
    uint64_t count;
    bool of_packets;  /* else of events */
    bool is_anywhere; /* of a part: it may be outside of it; the count is the recording's */
};

/* The largest value of this entry in the environments of the recording's traces; 0 if none has it. */
uint64_t krait_info_most_of(const struct info *info, const char *name);
/* Losses: of recordings by reason, of other traces from their packets. Some have a count of 0. */
uint32_t krait_info_loss_count(const struct info *info);
struct loss krait_info_loss_at(const struct info *info, uint32_t i);
/* The option for which the oldest events were dropped; empty: none were, or an older krait recorded. */
const char *krait_info_dropped_for(const struct info *info);
/* Of a trace: so long after it began krait has dropped nothing more; 0: it dropped nothing at all. */
uint64_t krait_info_kept_from(const struct info *info);
/* How long what is kept is, up to the program's last event; all of the recording if nothing was dropped. */
uint64_t krait_info_kept(const struct info *info);
/* The texts of --args, one a line; may be empty. */
const char *krait_info_args_of(const struct info *info);
/* The option that ended the recording before the program ended; empty: none. */
const char *krait_info_limit_of(const struct info *info);
uint64_t krait_info_duration(const struct info *info);
/* Processes and threads that were there in the range; of a process, its part of the range. */
bool krait_info_has(const struct info *info, uint64_t begin_ns, uint64_t end_ns);
uint32_t krait_info_process_count(const struct info *info);
uint32_t krait_info_thread_count(const struct info *info);
struct krait_range krait_info_span(const struct info *info, const struct krait_process *process);

/* Finds what the files declare. `trace`: the model. Notes go to stderr. Returns 0 or a negative errno with err set. */
struct krait_select;
int krait_info_find_declared(struct info *info, struct krait_trace *trace, const struct krait_select *select,
                             struct krait_err *err);
bool krait_info_is_kernel(const struct krait_ctf_trace *trace);

/* Append to info->out: everything; the lists. */
void krait_info_text(struct info *info);
void krait_info_json(struct info *info);
void krait_info_processes(struct info *info);
void krait_info_processes_json(struct info *info);
/* What the files of -f declare; nothing without them. */
void krait_info_declared(struct info *info);
void krait_info_declared_json(struct info *info);
void krait_info_classes(struct info *info);
void krait_info_classes_json(struct info *info);

#endif
