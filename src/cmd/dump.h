/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of `krait dump`.
 */
#ifndef KRAIT_CMD_DUMP_H
#define KRAIT_CMD_DUMP_H

#include "cmd/dump_tree.h"
#include "view/table.h"

/* What one process was doing. */
struct dump_process {
    struct krait_remote *remote;
    const struct krait_remote_stacks *stacks;
    const struct dump_tree *tree; /* of its tasks */
    bool locals, native;
};

/* What a thread is doing: the keys of JSON's "state". */
enum dump_state {
    DUMP_RUNS,
    DUMP_WAITS_GIL,
    DUMP_SLEEPS,
    DUMP_STOPPED,
    DUMP_ENDED,
    DUMP_UNKNOWN,
};

const struct krait_os_task *dump_task(const struct dump_process *process,
                                      const struct krait_remote_thread *thread);
enum dump_state dump_state_of(const struct krait_remote_thread *thread, const struct krait_os_task *task);

/* One process for people. */
void dump_text(const struct dump_process *process, const struct krait_table_look *look,
               struct krait_buf *out);
/* One line of JSON. */
void dump_json(const struct dump_process *process, struct krait_buf *out);

#endif
