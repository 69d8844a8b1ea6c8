/* SPDX-License-Identifier: Apache-2.0
 *
 * The call tree: every distinct stack with its time and calls. Flame graphs, `report --tree`, folded, callgrind and
 * pprof are all drawn from it. Its size is that of the program's distinct stacks, not of the trace.
 */
#ifndef KRAIT_ANALYSIS_CALLTREE_H
#define KRAIT_ANALYSIS_CALLTREE_H

#include "analysis/wall.h"
#include "trace/folded.h"
#include "trace/ranges.h"

/* Node 0 is the root (func KRAIT_NO_ID): its self_ns is 0, or with options.roots what lies outside of them, as a
 * group's is. Children hang on first_child/next_sibling, in order of first call. Nodes lie parent before child in
 * `nodes`. */
struct krait_tree_node {
    uint32_t func;                      /* func id, or KRAIT_NO_ID for a group (see krait_calltree_options) */
    uint32_t label;                     /* of a group node: id in krait_calltree.labels; else KRAIT_NO_ID */
    uint32_t parent;                    /* KRAIT_NO_ID for the root */
    uint32_t first_child, next_sibling; /* KRAIT_NO_ID if there is none */
    uint32_t depth;                     /* root 0 */
    uint64_t calls;                     /* begins of kind KRAIT_OP_CALL */
    uint64_t self_ns;                   /* in the function itself */
    uint64_t total_ns;                  /* with everything below */
};

struct krait_calltree {
    struct krait_tree_node *nodes;
    uint32_t count;
    uint32_t cap, wall_cap;
    uint64_t (*wall_ns)[KRAIT_WALL_COUNT]; /* by node: total_ns split; NULL: not asked for */
    bool split;                            /* it is */
    uint64_t idle_ns;                      /* waits that were left out */
    struct krait_map raised; /* what left which node (analysis/raised.h), where that was asked for */
    struct krait_strtab labels;
    struct krait_map index; /* (parent, func) to node */
    char damage[1024];      /* the first damage met on the way, or empty */
};

enum krait_tree_group {
    KRAIT_TREE_MERGED = 0,     /* all threads in one tree */
    KRAIT_TREE_BY_THREAD = 1,  /* as the next, and below each of these a node per thread */
    KRAIT_TREE_BY_PROCESS = 2, /* below the root a node per process: "python3 4711" */
};

#define KRAIT_IMPORT_LABEL "<import>"

struct krait_calltree_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* of it these alone; NULL: all */
    enum krait_tree_group group;
    /* Python's import machinery, a dozen frames for each module, becomes one node "<import>" (see
     * KRAIT_IMPORT_LABEL): frames of importlib._bootstrap and _bootstrap_external that follow each other,
     * with the exec and __import__ between them. What they call hangs on it, the module's own code too, which
     * says what is imported. Its times are the sums of theirs, its calls are those from outside. */
    bool fold_imports;
    /* By func id: stacks begin with the outermost function that is one of these, below the groups; NULL: all.
     * Its totals are of the whole all the same. */
    const bool *roots;
    bool raised;    /* what exceptions left each node is counted */
    bool corrected; /* what recording took is taken off (cost.h) */
    /* Whether a thread is taken; NULL takes all. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
    const struct krait_wall *wall; /* to split times by what threads did; NULL: they are not split */
    uint32_t states; /* bits by enum krait_wall_state: times are of these alone; 0: of all. Needs wall */
    /* krait_idle_marks: such waits are left out; NULL: they are not. Of a split tree, time on a CPU, ready for one and
     * waiting for the GIL stays. */
    const uint8_t *idle;
};

/* Builds the tree of the trace. Returns 0 or a negative errno with err set; *out is then untouched. */
int krait_calltree_new(struct krait_calltree **out, const struct krait_trace *trace,
                       const struct krait_calltree_options *options, struct krait_err *err);

/* The tree of a file of folded stacks, and a trace that has its functions; both belong to the caller. The file's
 * numbers, samples or times, stand where calls do. Errors as krait_folded_read. */
int krait_calltree_read_folded(struct krait_calltree **tree, struct krait_trace **trace, const char *path,
                               struct krait_folded_facts *facts, struct krait_err *err);

void krait_calltree_free(struct krait_calltree *tree);

/* A node's text: the function's label, or the group's; into buf, always terminated; returns buf. */
const char *krait_calltree_label(const struct krait_calltree *tree, const struct krait_trace *trace,
                                 uint32_t node, char *buf, size_t size);

#endif
