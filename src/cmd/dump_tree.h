/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks as a tree: below each task those that it awaits.
 */
#ifndef KRAIT_CMD_DUMP_TREE_H
#define KRAIT_CMD_DUMP_TREE_H

#include "remote/remote.h"

struct dump_tree {
    uint32_t *first;  /* by task, and one more: its first place in `awaits`, where the next task's begin */
    uint32_t *awaits; /* places in stacks->coroutines */
    /* A walk over all tasks, each behind the first that awaits it. A task that several await comes again, `again`. */
    struct dump_node {
        uint32_t task, depth;
        bool again;
    } * nodes;
    uint32_t node_count;
};

/* Returns 0 or -ENOMEM. */
int dump_tree_make(struct dump_tree *tree, const struct krait_remote_stacks *stacks);
void dump_tree_done(struct dump_tree *tree);

#endif
