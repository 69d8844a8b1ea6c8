/* SPDX-License-Identifier: Apache-2.0
 *
 * The call tree: every distinct stack with its time and calls. Flame graphs, `report --tree`, folded, callgrind and
 * pprof use it. Its size depends on the number of distinct stacks, not on the length of the trace.
 */
#ifndef KRAIT_ANALYSIS_CALLTREE_H
#define KRAIT_ANALYSIS_CALLTREE_H

#include "analysis/wall.h"
#include "trace/folded.h"
#include "trace/ranges.h"

/* Node 0 is the root (func KRAIT_NO_ID). The self_ns of the root and of groups is 0, or with options.roots the time outside
 * of these functions. Children are linked by first_child and next_sibling, in the order of their first call. In `nodes`,
 * parents precede children. */
struct krait_tree_node {
    uint32_t func;                      /* func id, or KRAIT_NO_ID for a group (see krait_calltree_options) */
    uint32_t label;                     /* of a group node: id in krait_calltree.labels; else KRAIT_NO_ID */
    uint32_t parent;                    /* KRAIT_NO_ID for the root */
    uint32_t first_child, next_sibling; /* KRAIT_NO_ID if there is none */
    uint32_t depth;                     /* root 0 */
    uint64_t calls;                     /* begins of kind KRAIT_OP_CALL */
    uint64_t self_ns;                   /* exclusive time */
    uint64_t total_ns;                  /* inclusive time */
};

struct krait_calltree {
    struct krait_tree_node *nodes;
    uint32_t count;
    uint32_t cap, wall_cap;
    /* By node: total_ns split by state, with the parts of GIL. NULL: not asked for. */
    uint64_t (*wall_ns)[KRAIT_WALL_PARTS];
    bool split;              /* wall_ns was asked for */
    uint64_t idle_ns;        /* waits that were left out */
    struct krait_map raised; /* exceptions that left nodes (analysis/raised.h), if asked for */
    struct krait_strtab labels;
    struct krait_map index; /* (parent, func) to node */
    char damage[1024];      /* the first damage found; may be empty */
};

enum krait_tree_group {
    KRAIT_TREE_MERGED = 0,     /* all threads in one tree */
    KRAIT_TREE_BY_THREAD = 1,  /* like the next, with a node per thread below each process */
    KRAIT_TREE_BY_PROCESS = 2, /* a node per process below the root: "python3 4711" */
};

enum { KRAIT_TREE_LABEL = 512 }; /* bytes of a group's label */

#define KRAIT_IMPORT_LABEL "<import>"

struct krait_calltree_options {
    struct krait_range range;
    const struct krait_ranges *ranges; /* only these parts of it; NULL: all */
    enum krait_tree_group group;
    /* By thread, where they are merged: the label of a group for its stacks; NULL: there is none. */
    const char *const *tops;
    /* Fold Python's import machinery, a dozen frames for each module, into one node "<import>" (KRAIT_IMPORT_LABEL):
     * successive frames of importlib._bootstrap and _bootstrap_external, with the exec and __import__ between them. The
     * functions that they call are its children, with the module's own code, which shows what is imported. Its times are
     * the sums of theirs, its calls are those from outside. */
    bool fold_imports;
    /* By func id: below the groups, stacks begin with the outermost function that is one of these; NULL: all. The totals
     * of the tree remain those of the whole. */
    const bool *roots;
    bool raised;    /* count the exceptions that left each node */
    bool corrected; /* subtract what recording took (cost.h) */
    /* Chooses threads; NULL: all. */
    bool (*take_thread)(void *ctx, const struct krait_trace *trace, uint32_t thread);
    void *ctx;
    const struct krait_wall *wall; /* splits times by state; NULL: they are not split */
    uint32_t states; /* bits by enum krait_wall_state: count only time in these; 0: all. Needs wall */
    /* Waits to leave out, from krait_idle_marks; NULL: none. A split tree keeps the time on a CPU, ready for one, and
     * waiting for the GIL. */
    const uint8_t *idle;
};

/* Builds the tree of a trace. Returns 0, or a negative errno with err set; *out is then unchanged. */
int krait_calltree_new(struct krait_calltree **out, const struct krait_trace *trace,
                       const struct krait_calltree_options *options, struct krait_err *err);

/* Reads a file of folded stacks: returns its tree, and a trace with its functions, which the caller both owns. The
 * numbers of the file, samples or times, are in `calls`. Errors: those of krait_folded_read. */
int krait_calltree_read_folded(struct krait_calltree **tree, struct krait_trace **trace, const char *path,
                               struct krait_folded_facts *facts, struct krait_err *err);

/* The labels of a thread's groups, of its process and its own; each has room for KRAIT_TREE_LABEL bytes. */
void krait_calltree_thread_labels(const struct krait_trace *trace, uint32_t thread, char *process, char *own);

void krait_calltree_free(struct krait_calltree *tree);

/* Writes the label of the node's function or group into buf, always terminated; returns buf. */
const char *krait_calltree_label(const struct krait_calltree *tree, const struct krait_trace *trace,
                                 uint32_t node, char *buf, size_t size);

#endif
