/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/calltree_own.h"

#include "analysis/cost.h"
#include "analysis/idle.h"
#include "analysis/raised.h"
#include "base/array.h"

#include <string.h>

/* A walk's way through the tree: time goes to the node where the thread is; what lies below is summed up
 * afterwards. */
struct builder {
    struct krait_calltree *tree;
    const struct krait_func *funcs;
    uint32_t *last_child; /* by node: the child that was entered last, most often entered next */
    uint32_t last_cap;
    uint32_t top; /* node under which the thread's stacks begin */
    uint32_t current;
    uint64_t last_ns;
    struct krait_wall_track track; /* of the thread, where time is split */
    struct krait_wall_cursor at;
    struct krait_cost_clock cost;
    bool corrected, counts_raised;
};

static uint64_t child_key(uint32_t parent, uint32_t func, bool group)
{
    return (uint64_t)parent << 32 | (group ? func | 1u << 31 : func);
}

static bool has_room_for_node(struct krait_calltree *tree)
{
    return KRAIT_GROW(tree->nodes, tree->cap, tree->count + 1) &&
           (!tree->split || KRAIT_GROW(tree->wall_ns, tree->wall_cap, tree->count + 1));
}

static uint32_t node_add(struct krait_calltree *tree, uint32_t parent, uint32_t func, uint32_t label)
{
    if (!has_room_for_node(tree))
        return KRAIT_NO_ID;
    uint32_t id = tree->count++;
    tree->nodes[id] = (struct krait_tree_node){
        .func = func,
        .label = label,
        .parent = parent,
        .first_child = KRAIT_NO_ID,
        .next_sibling = KRAIT_NO_ID,
        .depth = parent == KRAIT_NO_ID ? 0 : tree->nodes[parent].depth + 1,
    };
    if (tree->split)
        memset(tree->wall_ns[id], 0, sizeof(tree->wall_ns[id]));
    return id;
}

struct krait_calltree *krait_calltree_empty(bool split)
{
    struct krait_calltree *tree = calloc(1, sizeof(*tree));
    if (tree)
        tree->split = split;
    if (!tree || node_add(tree, KRAIT_NO_ID, KRAIT_NO_ID, KRAIT_NO_ID) == KRAIT_NO_ID) {
        krait_calltree_free(tree);
        return NULL;
    }
    return tree;
}

uint32_t krait_calltree_child(struct krait_calltree *tree, uint32_t parent, uint32_t func, uint32_t label)
{
    uint64_t key = child_key(parent, label == KRAIT_NO_ID ? func : label, label != KRAIT_NO_ID);
    uint64_t *found = krait_map_get(&tree->index, key);
    if (found)
        return (uint32_t)*found;
    uint32_t id = node_add(tree, parent, func, label);
    if (id == KRAIT_NO_ID || krait_map_put(&tree->index, key, id))
        return KRAIT_NO_ID;
    /* Children are put in front here and turned round at the end: in order of first call. */
    tree->nodes[id].next_sibling = tree->nodes[parent].first_child;
    tree->nodes[parent].first_child = id;
    return id;
}

_Static_assert(KRAIT_NO_ID == UINT32_MAX, "its bytes are all the same");

static bool has_room_for_last(struct builder *b)
{
    return KRAIT_GROW_FILLED(b->last_child, b->last_cap, b->tree->count, 0xff);
}

/* A child that was not the last one called from there; KRAIT_NO_ID when memory is out. */
static uint32_t other_child(struct builder *b, uint32_t parent, uint32_t func)
{
    uint32_t child = krait_calltree_child(b->tree, parent, func, KRAIT_NO_ID);
    if (child == KRAIT_NO_ID || !has_room_for_last(b))
        return KRAIT_NO_ID;
    b->last_child[parent] = child;
    return child;
}

static KRAIT_COLD int count_raised(struct builder *b, uint32_t node, uint32_t exception)
{
    return b->counts_raised ? krait_raised_add(&b->tree->raised, node, exception, 1) : 0;
}

/* State that changes with each event is in registers. hot path */
static int on_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct builder *b = ctx;
    const struct krait_func *const funcs = b->funcs;
    const uint32_t top = b->top, n = ops->n;
    struct krait_tree_node *nodes = b->tree->nodes;
    uint32_t current = b->current;
    uint64_t last_ns = b->last_ns;
    for (uint32_t i = 0; i < n; i++) {
        struct krait_tree_node *node = &nodes[current];
        const uint8_t kind = ops->kind[i];
        const uint64_t t_ns = ops->t_ns[i];
        if (current != top)
            node->self_ns += t_ns - last_ns;
        last_ns = t_ns;
        if (krait_op_is_end(kind)) {
            if (KRAIT_UNLIKELY(kind == KRAIT_OP_UNWIND) && count_raised(b, current, ops->exception[i]))
                return -ENOMEM;
            current = node->parent;
            continue;
        }
        uint32_t func = funcs[ops->func[i]].base, child = b->last_child[current];
        if (child == KRAIT_NO_ID || nodes[child].func != func) {
            child = other_child(b, current, func);
            nodes = b->tree->nodes; /* they may have moved */
            if (child == KRAIT_NO_ID)
                return -ENOMEM;
        }
        current = child;
        nodes[current].calls += kind == KRAIT_OP_CALL;
    }
    b->current = current;
    b->last_ns = last_ns;
    return 0;
}

/* The same, with the time of each node split: batches of one, so that each goes to the node that it is of. */
static int on_split_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct builder *b = ctx;
    int rc = 0;
    for (uint32_t i = 0; i < ops->n && !rc; i++) {
        uint64_t nobody[KRAIT_WALL_PARTS] = { 0 };
        struct krait_call_batch one = { 1,   ops->t_ns + i, ops->func + i, ops->kind + i, ops->exception + i,
                                        NULL };
        uint64_t *ns = b->current == b->top ? nobody : b->tree->wall_ns[b->current];
        krait_wall_go(&b->at, ops->t_ns[i], ns);
        if (b->corrected) {
            uint64_t most = krait_wall_lasts(&b->at, b->cost.last_ns);
            krait_wall_take(&b->at, krait_cost_next(&b->cost, ops, i, most), ns);
            one.t_ns = b->cost.t_ns + i;
        }
        rc = on_ops(b, &one);
    }
    return rc;
}

static int on_corrected_ops(void *ctx, const struct krait_call_batch *ops)
{
    struct builder *b = ctx;
    const struct krait_call_batch corrected = krait_cost_take(&b->cost, ops);
    return on_ops(b, &corrected);
}

static int start_split(struct builder *b, const struct krait_wall *wall, uint32_t thread)
{
    krait_wall_track_done(&b->track);
    int rc = krait_wall_track_new(&b->track, wall, thread);
    if (!rc)
        krait_wall_begin(&b->at, &b->track);
    return rc;
}

static uint32_t labelled_node(struct krait_calltree *tree, uint32_t parent, const char *text)
{
    uint32_t label = krait_strtab_add(&tree->labels, text, strlen(text));
    return label == KRAIT_NO_ID ? KRAIT_NO_ID : krait_calltree_child(tree, parent, KRAIT_NO_ID, label);
}

static void group_label(char *text, const char *name, const char *otherwise, uint32_t number)
{
    snprintf(text, KRAIT_TREE_LABEL, "%s %u", *name ? name : otherwise, number);
}

void krait_calltree_thread_labels(const struct krait_trace *trace, uint32_t thread, char *process, char *own)
{
    const struct krait_thread *t = &trace->threads[thread];
    const struct krait_process *p = &trace->processes[t->process];
    group_label(process, p->name, "process", p->pid);
    group_label(own, t->name, "thread", t->tid);
}

/* The node below which a thread's stacks go. */
static uint32_t thread_top(struct krait_calltree *tree, const struct krait_trace *trace, uint32_t thread,
                           const struct krait_calltree_options *options)
{
    char process[KRAIT_TREE_LABEL], own[KRAIT_TREE_LABEL];
    if (options->group == KRAIT_TREE_MERGED)
        return options->tops ? labelled_node(tree, 0, options->tops[thread]) : 0;
    krait_calltree_thread_labels(trace, thread, process, own);
    uint32_t top = labelled_node(tree, 0, process);
    return options->group == KRAIT_TREE_BY_PROCESS || top == KRAIT_NO_ID ? top
                                                                         : labelled_node(tree, top, own);
}

static int walk_threads(struct builder *b, const struct krait_trace *trace,
                        const struct krait_calltree_options *options)
{
    krait_call_batch_fn *take = options->wall ? on_split_ops : b->corrected ? on_corrected_ops : on_ops;
    for (uint32_t i = 0; i < trace->thread_count; i++) {
        if (options->take_thread && !options->take_thread(options->ctx, trace, i))
            continue;
        b->top = thread_top(b->tree, trace, i, options);
        if (b->top == KRAIT_NO_ID || !has_room_for_last(b))
            return -ENOMEM;
        b->current = b->top;
        int rc = options->wall ? start_split(b, options->wall, i) : 0;
        rc = rc || !b->corrected ? rc : krait_cost_begin(&b->cost, trace, i);
        rc = rc ? rc
                : krait_ranges_walk(trace, i, options->range, options->ranges, take, b, b->tree->damage,
                                    sizeof(b->tree->damage));
        if (rc)
            return rc;
    }
    for (uint32_t i = 0; i < b->tree->count && b->tree->split; i++)
        krait_wall_gather(b->tree->wall_ns[i]);
    return 0;
}

static void turn_children(struct krait_calltree *tree, uint32_t node)
{
    uint32_t turned = KRAIT_NO_ID;
    for (uint32_t child = tree->nodes[node].first_child; child != KRAIT_NO_ID;) {
        uint32_t next = tree->nodes[child].next_sibling;
        tree->nodes[child].next_sibling = turned;
        turned = child;
        child = next;
    }
    tree->nodes[node].first_child = turned;
}

static void add_wall(uint64_t to[KRAIT_WALL_PARTS], const uint64_t more[KRAIT_WALL_PARTS])
{
    for (unsigned i = 0; i < KRAIT_WALL_PARTS; i++)
        to[i] += more[i];
}

/* From the leaves up: a node lies behind its parent. */
void krait_calltree_sum_up(struct krait_calltree *tree)
{
    for (uint32_t i = tree->count; i-- > 0;) {
        struct krait_tree_node *node = &tree->nodes[i];
        node->total_ns += node->self_ns;
        if (node->parent != KRAIT_NO_ID)
            tree->nodes[node->parent].total_ns += node->total_ns;
        if (tree->split && node->parent != KRAIT_NO_ID)
            add_wall(tree->wall_ns[node->parent], tree->wall_ns[i]);
        turn_children(tree, i);
    }
}

/* Modules of the machinery: its own names, and those under which the frozen ones bear them. */
static bool is_machinery(const struct krait_func *func)
{
    static const char *const modules[] = { "_frozen_importlib", "_frozen_importlib_external",
                                           "importlib._bootstrap", "importlib._bootstrap_external" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(modules); i++) {
        if (strcmp(func->module, modules[i]) == 0)
            return func->kind == KRAIT_FUNC_PYTHON;
    }
    return false;
}

/* How the machinery goes from one of its frames to the next, or to the module. */
static bool is_between(const struct krait_func *func)
{
    return func->kind == KRAIT_FUNC_C && strcmp(func->module, "builtins") == 0 &&
           (strcmp(func->name, "exec") == 0 || strcmp(func->name, "__import__") == 0);
}

/* What a tree is made into another with: add_folded, add_rooted. */
struct remaking {
    const struct krait_calltree *from;
    struct krait_calltree *to;
    const struct krait_func *funcs;
    const bool *roots;
};

typedef uint32_t remake_fn(const struct remaking *r, uint32_t parent, const struct krait_tree_node *node);

static uint32_t add_like(const struct remaking *r, uint32_t parent, const struct krait_tree_node *node)
{
    const struct krait_strtab *labels = &r->from->labels;
    uint32_t label = node->label;
    if (label != KRAIT_NO_ID)
        label = krait_strtab_add(&r->to->labels, labels->texts[label], labels->lens[label]);
    return krait_calltree_child(r->to, parent, node->func, label);
}

static bool is_import(const struct krait_calltree *tree, uint32_t label)
{
    return label != KRAIT_NO_ID && strcmp(tree->labels.texts[label], KRAIT_IMPORT_LABEL) == 0;
}

/* Adds a node's like below `parent` of another tree; a node of the machinery below another of it is that one. */
static uint32_t add_folded(const struct remaking *r, uint32_t parent, const struct krait_tree_node *node)
{
    struct krait_calltree *to = r->to;
    const struct krait_func *func = node->func == KRAIT_NO_ID ? NULL : &r->funcs[node->func];
    bool inside = is_import(to, to->nodes[parent].label);
    bool folds = func && (is_machinery(func) || (inside && is_between(func)));
    uint32_t id = parent;
    if (folds && !inside)
        id = krait_calltree_child(
            to, parent, KRAIT_NO_ID,
            krait_strtab_add(&to->labels, KRAIT_IMPORT_LABEL, strlen(KRAIT_IMPORT_LABEL)));
    else if (!folds)
        id = add_like(r, parent, node);
    if (id == KRAIT_NO_ID)
        return id;
    to->nodes[id].self_ns += node->self_ns;
    to->nodes[id].calls += inside && folds ? 0 : node->calls;
    return id;
}

/* What is neither a root nor below one is left out, and its time is that of the group. */
static uint32_t add_rooted(const struct remaking *r, uint32_t parent, const struct krait_tree_node *node)
{
    struct krait_calltree *to = r->to;
    const struct krait_tree_node *above = &to->nodes[parent];
    bool inside = above->func != KRAIT_NO_ID || is_import(to, above->label);
    bool is_group = node->label != KRAIT_NO_ID && !is_import(r->from, node->label);
    bool is_root = node->func != KRAIT_NO_ID && r->roots[node->func];
    uint32_t id = inside || is_group || is_root ? add_like(r, parent, node) : parent;
    if (id == KRAIT_NO_ID)
        return id;
    to->nodes[id].self_ns += node->self_ns;
    to->nodes[id].calls += id == parent ? 0 : node->calls;
    return id;
}

/* What left a node that is no longer there of its own is nobody's. */
static int move_raised(struct krait_calltree *to, const struct krait_calltree *from, const uint32_t *place)
{
    int rc = 0;
    for (size_t i = 0; i < from->raised.cap && !rc; i++) {
        const struct krait_map_slot *slot = &from->raised.slots[i];
        uint32_t node = (uint32_t)(slot->key >> 32);
        if (slot->used && place[node] != place[from->nodes[node].parent])
            rc = krait_raised_add(&to->raised, place[node], (uint32_t)slot->key, slot->value);
    }
    return rc;
}

/* Parents lie before their children, so that one pass has each node's place when its children come. */
static int remake(struct krait_calltree **tree, const struct krait_trace *trace, const bool *roots,
                  remake_fn *add)
{
    const struct krait_calltree *from = *tree;
    KRAIT_AUTO_FREE uint32_t *place = calloc(from->count, sizeof(*place));
    struct krait_calltree *to = krait_calltree_empty(from->split);
    struct remaking r = { from, to, trace->funcs, roots };
    if (to)
        memcpy(to->damage, from->damage, sizeof(to->damage));
    int rc = place && to ? 0 : -ENOMEM;
    for (uint32_t i = 1; !rc && i < from->count; i++) {
        place[i] = add(&r, place[from->nodes[i].parent], &from->nodes[i]);
        rc = place[i] == KRAIT_NO_ID ? -ENOMEM : 0;
        if (!rc && to->split)
            add_wall(to->wall_ns[place[i]], from->wall_ns[i]);
    }
    rc = rc ? rc : move_raised(to, from, place);
    if (rc) {
        krait_calltree_free(to);
        return rc;
    }
    krait_calltree_free(*tree);
    *tree = to;
    return 0;
}

/* Marks of the functions above a node: of the nearest few, and of all. */
static void marks_above(const struct krait_calltree *tree, const uint8_t *marks, uint32_t node, uint8_t *near,
                        uint8_t *all)
{
    enum { NEAR = 4 };
    *near = *all = 0;
    for (int i = 0; (node = tree->nodes[node].parent) != KRAIT_NO_ID; i++) {
        uint8_t mark = tree->nodes[node].func == KRAIT_NO_ID ? 0 : marks[tree->nodes[node].func];
        *all |= mark;
        *near |= i < NEAR ? mark : 0;
    }
}

static bool is_idle(const struct krait_calltree *tree, const uint8_t *marks, uint32_t node)
{
    enum { WAITS = KRAIT_IDLE_ACCEPT | KRAIT_IDLE_SELECT | KRAIT_IDLE_LOCK };
    uint32_t func = tree->nodes[node].func;
    uint8_t mark = func == KRAIT_NO_ID ? 0 : marks[func] & WAITS, near, all;
    if (!mark)
        return false;
    marks_above(tree, marks, node, &near, &all);
    if (all & KRAIT_IDLE_WORK)
        return false;
    if (mark & KRAIT_IDLE_LOCK)
        return near & KRAIT_IDLE_JOIN || (near & KRAIT_IDLE_QUEUE && all & KRAIT_IDLE_THREAD);
    return mark & KRAIT_IDLE_ACCEPT || near & KRAIT_IDLE_LOOP;
}

/* Where states are known, who has a CPU, could run, or waits for the GIL is not idle. */
static void drop_idle_states(struct krait_calltree *tree, uint32_t node, uint32_t states)
{
    const uint32_t busy = 1u << KRAIT_WALL_ON_CPU | 1u << KRAIT_WALL_RUNNABLE | 1u << KRAIT_WALL_THROTTLED |
                          1u << KRAIT_WALL_GIL;
    for (unsigned s = 0; s < KRAIT_WALL_COUNT; s++) {
        uint64_t *ns = &tree->wall_ns[node][s];
        if (busy >> s & 1)
            continue;
        tree->nodes[node].self_ns -= *ns;
        tree->idle_ns += states >> s & 1 ? *ns : 0;
        *ns = 0;
    }
}

/* Before totals are summed up. `states`: those that the tree is of; idle_ns counts no others. */
static void drop_idle(struct krait_calltree *tree, const uint8_t *marks, uint32_t states)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        if (!is_idle(tree, marks, i))
            continue;
        if (tree->split) {
            drop_idle_states(tree, i, states ? states : UINT32_MAX);
            continue;
        }
        tree->idle_ns += tree->nodes[i].self_ns;
        tree->nodes[i].self_ns = 0;
    }
}

/* Afterwards: times become those of some states. */
static void keep_states(struct krait_calltree *tree, uint32_t states)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        struct krait_tree_node *node = &tree->nodes[i];
        node->total_ns = 0;
        for (unsigned s = 0; s < KRAIT_WALL_COUNT; s++)
            node->total_ns += states >> s & 1 ? tree->wall_ns[i][s] : 0;
        node->self_ns = node->total_ns;
        if (node->parent != KRAIT_NO_ID)
            tree->nodes[node->parent].self_ns -= node->total_ns;
    }
}

int krait_calltree_new(struct krait_calltree **out, const struct krait_trace *trace,
                       const struct krait_calltree_options *options, struct krait_err *err)
{
    struct krait_calltree *tree = krait_calltree_empty(options->wall);
    if (!tree)
        return krait_err_set(err, -ENOMEM, "out of memory");
    struct builder b = {
        .tree = tree, .funcs = trace->funcs, .corrected = options->corrected, .counts_raised = options->raised
    };
    int rc = walk_threads(&b, trace, options);
    free(b.last_child);
    krait_wall_track_done(&b.track);
    krait_cost_done(&b.cost);
    if (!rc && options->fold_imports)
        rc = remake(&tree, trace, NULL, add_folded);
    if (!rc && options->roots)
        rc = remake(&tree, trace, options->roots, add_rooted);
    if (rc) {
        krait_calltree_free(tree);
        return krait_err_set(err, rc, "the call tree could not be built: %s", strerror(-rc));
    }
    if (options->idle)
        drop_idle(tree, options->idle, options->states);
    krait_calltree_sum_up(tree);
    if (options->states)
        keep_states(tree, options->states);
    *out = tree;
    return 0;
}

void krait_calltree_free(struct krait_calltree *tree)
{
    if (!tree)
        return;
    free(tree->nodes);
    free(tree->wall_ns);
    krait_strtab_done(&tree->labels);
    krait_map_done(&tree->index);
    krait_map_done(&tree->raised);
    free(tree);
}

const char *krait_calltree_label(const struct krait_calltree *tree, const struct krait_trace *trace,
                                 uint32_t node, char *buf, size_t size)
{
    const struct krait_tree_node *n = &tree->nodes[node];
    if (n->label != KRAIT_NO_ID)
        snprintf(buf, size, "%s", tree->labels.texts[n->label]);
    else if (n->func != KRAIT_NO_ID)
        krait_func_label(&trace->funcs[n->func], buf, size);
    else
        snprintf(buf, size, "all");
    return buf;
}
