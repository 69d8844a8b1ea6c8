/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/dump_tree.h"

void dump_tree_done(struct dump_tree *tree)
{
    free(tree->first);
    free(tree->awaits);
    free(tree->nodes);
}

/* Turns who awaits a task around: what a task awaits, in the order of the list. */
static void turn_around(struct dump_tree *tree, const struct krait_remote_stacks *stacks)
{
    uint32_t count = stacks->coroutine_count;
    for (uint32_t i = 0; i < stacks->awaiter_count; i++)
        tree->first[stacks->awaiters[i] + 1]++;
    for (uint32_t i = 0; i < count; i++)
        tree->first[i + 1] += tree->first[i];
    for (uint32_t i = count; i > 0; i--) {
        const struct krait_remote_task *task = &stacks->coroutines[i - 1];
        for (uint32_t k = 0; k < task->by_count; k++)
            tree->awaits[--tree->first[stacks->awaiters[task->by_first + k] + 1]] = i - 1;
    }
    for (uint32_t i = 0; i < count; i++) /* each has moved to the place before */
        tree->first[i] = tree->first[i + 1];
    tree->first[count] = stacks->awaiter_count;
}

/* A walk; `stack` has room for all edges and tasks. */
struct walk {
    struct dump_tree *tree;
    struct dump_node *stack;
    bool *seen;
};

static void walk_from(struct walk *walk, uint32_t root)
{
    struct dump_tree *tree = walk->tree;
    uint32_t depth = 0;
    walk->stack[depth++] = (struct dump_node){ root, 0, false };
    while (depth) {
        struct dump_node node = walk->stack[--depth];
        node.again = walk->seen[node.task];
        walk->seen[node.task] = true;
        tree->nodes[tree->node_count++] = node;
        for (uint32_t i = tree->first[node.task + 1]; i > tree->first[node.task] && !node.again; i--)
            walk->stack[depth++] = (struct dump_node){ tree->awaits[i - 1], node.depth + 1, false };
    }
}

int dump_tree_make(struct dump_tree *tree, const struct krait_remote_stacks *stacks)
{
    uint32_t count = stacks->coroutine_count;
    size_t most = (size_t)count + stacks->awaiter_count + 1;
    KRAIT_AUTO_FREE struct dump_node *stack = calloc(most, sizeof(*stack));
    KRAIT_AUTO_FREE bool *seen = calloc(most, sizeof(*seen));
    *tree = (struct dump_tree){ calloc((size_t)count + 2, sizeof(*tree->first)),
                                calloc(most, sizeof(*tree->awaits)), calloc(most, sizeof(*tree->nodes)), 0 };
    if (!tree->first || !tree->awaits || !tree->nodes || !stack || !seen)
        return -ENOMEM;
    turn_around(tree, stacks);
    struct walk walk = { tree, stack, seen };
    for (uint32_t i = 0; i < count; i++) {
        if (!stacks->coroutines[i].by_count)
            walk_from(&walk, i);
    }
    for (uint32_t i = 0; i < count; i++) { /* those that await each other in a ring */
        if (!seen[i])
            walk_from(&walk, i);
    }
    return 0;
}
