/* SPDX-License-Identifier: Apache-2.0
 *
 * A call tree of folded stacks.
 */
#include "analysis/calltree_own.h"
#include "trace/track.h"

#include <string.h>

struct folding {
    struct krait_calltree *tree;
    struct krait_trace **trace;
};

static uint32_t label_of(struct krait_calltree *tree, const struct krait_trace *trace, uint32_t name)
{
    const char *text = krait_track_text(trace, name);
    return krait_strtab_add(&tree->labels, text, strlen(text));
}

static int on_stack(void *ctx, const struct krait_folded_stack *stack)
{
    const struct folding *f = ctx;
    uint32_t node = 0;
    for (uint32_t i = 0; i < stack->depth; i++) {
        const struct krait_folded_frame *frame = &stack->frames[i];
        uint32_t func = frame->is_group ? KRAIT_NO_ID : frame->id;
        uint32_t label = frame->is_group ? label_of(f->tree, *f->trace, frame->id) : KRAIT_NO_ID;
        if (frame->is_group && label == KRAIT_NO_ID)
            return -ENOMEM;
        node = krait_calltree_child(f->tree, node, func, label);
        if (node == KRAIT_NO_ID)
            return -ENOMEM;
    }
    f->tree->nodes[node].calls += stack->value;
    return 0;
}

int krait_calltree_read_folded(struct krait_calltree **tree, struct krait_trace **trace, const char *path,
                               struct krait_folded_facts *facts, struct krait_err *err)
{
    struct folding folding = { krait_calltree_empty(false), trace };
    if (!folding.tree)
        return krait_err_set(err, -ENOMEM, "out of memory");
    int rc = krait_folded_read(trace, path, on_stack, &folding, facts, err);
    if (rc) {
        krait_calltree_free(folding.tree);
        return rc;
    }
    krait_calltree_sum_up(folding.tree);
    *tree = folding.tree;
    return 0;
}
