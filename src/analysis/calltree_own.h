/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes call trees shares this: nodes are added, times and calls put into them, and then they are summed up.
 */
#ifndef KRAIT_ANALYSIS_CALLTREE_OWN_H
#define KRAIT_ANALYSIS_CALLTREE_OWN_H

#include "analysis/calltree.h"

/* A tree that is its root; NULL when memory is out. `split`: nodes have room for times by state. */
struct krait_calltree *krait_calltree_empty(bool split);

/* The child of `parent` that is a function, or a group with this label (the other is KRAIT_NO_ID); made when it is not
 * there. KRAIT_NO_ID when memory is out. */
uint32_t krait_calltree_child(struct krait_calltree *tree, uint32_t parent, uint32_t func, uint32_t label);

/* Once, at the end: totals, and children in the order in which they were made. */
void krait_calltree_sum_up(struct krait_calltree *tree);

#endif
