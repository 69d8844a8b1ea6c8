/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the graph: from call trees to merged nodes, and the reversed form.
 */
#include "view/flame.h"

#include "analysis/compare.h"
#include "base/array.h"
#include "view/flame_text.h"

#include <string.h>

static int no_memory(struct krait_err *err)
{
    return krait_err_set(err, -ENOMEM, "out of memory while building the flame graph");
}

static const char *clean_text(struct krait_flame *flame, const char *s)
{
    KRAIT_AUTO_BUF buf = { 0 };
    krait_text_clean(&buf, s);
    return buf.failed ? NULL : krait_arena_strndup(&flame->texts, buf.len ? buf.data : "", buf.len);
}

/* The package, which decides the colour: the first part of the dotted module, or the file's name if there is no
 * module. */
static uint32_t package_of(struct krait_flame *flame, const struct krait_flame_name *name)
{
    const char *text = name->module, *slash = strrchr(name->file, '/');
    if (!*text && *name->file)
        text = slash ? slash + 1 : name->file;
    return krait_strtab_add(&flame->package_texts, text, strcspn(text, "."));
}

static int push_name(struct krait_flame *flame, const struct krait_flame_name *name)
{
    if (!KRAIT_GROW(flame->names, flame->name_cap, flame->name_count + 1))
        return -ENOMEM;
    flame->names[flame->name_count++] = *name;
    return 0;
}

static void name_key(struct krait_buf *to, const char *name, const char *module, const char *file,
                     uint32_t line, enum krait_flame_layer layer)
{
    krait_buf_fmt(to, "%d\n%s\n%s\n%u\n%s", (int)layer, module, file, line, name);
}

static void loose_key(struct krait_buf *to, const char *name, const char *module,
                      enum krait_flame_layer layer)
{
    krait_buf_fmt(to, "%d\n%s\n%s", (int)layer, module, name);
}

/* Keeps the first name with this module, name and kind for add_other_name. */
static int add_loose(struct krait_flame *flame, const char *name, const char *module,
                     enum krait_flame_layer layer, uint32_t id)
{
    KRAIT_AUTO_BUF key = { 0 };
    loose_key(&key, name, module, layer);
    if (key.failed)
        return -ENOMEM;
    uint64_t hash = krait_hash_bytes(key.data, key.len);
    return krait_map_get(&flame->loose, hash) ? 0 : krait_map_put(&flame->loose, hash, id);
}

/* The id of a name, from raw texts. */
static uint32_t add_name(struct krait_flame *flame, const char *name, const char *module, const char *file,
                         uint32_t line, enum krait_flame_layer layer)
{
    KRAIT_AUTO_BUF key = { 0 };
    name_key(&key, name, module, file, line, layer);
    if (key.failed)
        return KRAIT_NO_ID;
    uint32_t id = krait_strtab_add(&flame->name_keys, key.data, key.len);
    if (id == KRAIT_NO_ID || id < flame->name_count)
        return id;
    if (!flame->has_other && add_loose(flame, name, module, layer, id))
        return KRAIT_NO_ID;
    struct krait_flame_name row = { .name = clean_text(flame, *name ? name : "(no name)"),
                                    .module = clean_text(flame, module),
                                    .file = clean_text(flame, file),
                                    .line = line,
                                    .layer = layer };
    if (!row.name || !row.module || !row.file)
        return KRAIT_NO_ID;
    row.shade = krait_hues_shade(row.name);
    bool has_package = layer <= KRAIT_LAYER_C;
    row.package = has_package ? package_of(flame, &row) : KRAIT_NO_ID;
    if (has_package && row.package == KRAIT_NO_ID)
        return KRAIT_NO_ID;
    return push_name(flame, &row) ? KRAIT_NO_ID : id;
}

static uint32_t add_group_name(struct krait_flame *flame, const char *label)
{
    return add_name(flame, label, "", "", 0, KRAIT_LAYER_GROUP);
}

/* The child of `parent` with this name; made if there is none. krait_flame_finish sets the links. */
static uint32_t child_of(struct krait_flame *flame, uint32_t parent, uint32_t name)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    const uint64_t *found = krait_map_get(&flame->index, key);
    if (found)
        return (uint32_t)*found;
    if (!KRAIT_GROW(flame->nodes, flame->cap, flame->count + 1) ||
        krait_map_put(&flame->index, key, flame->count))
        return KRAIT_NO_ID;
    flame->nodes[flame->count] = (struct krait_flame_node){
        .name = name,
        .parent = parent,
        .first_child = KRAIT_NO_ID,
        .next_sibling = KRAIT_NO_ID,
        .depth = parent == KRAIT_NO_ID ? 0 : flame->nodes[parent].depth + 1,
    };
    return flame->count++;
}

/* A function of the other trace. Lines and paths differ between versions of a program, so if no function is equal in
 * everything, the first one of this trace with the same module, name and kind is taken. */
static uint32_t add_other_name(struct krait_flame *flame, const struct krait_func *func,
                               enum krait_flame_layer layer)
{
    KRAIT_AUTO_BUF key = { 0 };
    name_key(&key, func->name, func->module, func->file, func->line, layer);
    if (!key.failed && krait_strtab_find(&flame->name_keys, key.data, key.len) != KRAIT_NO_ID)
        return krait_strtab_find(&flame->name_keys, key.data, key.len);
    krait_buf_clear(&key);
    loose_key(&key, func->name, func->module, layer);
    const uint64_t *same =
        key.failed ? NULL : krait_map_get(&flame->loose, krait_hash_bytes(key.data, key.len));
    return same ? (uint32_t)*same : add_name(flame, func->name, func->module, func->file, func->line, layer);
}

/* If its self time contains dropped callees, the name says so. The mark is not part of the name's key, so that
 * graphs with and without it can be compared. */
static void mark_dropped(struct krait_flame *flame, uint32_t id)
{
    struct krait_flame_name *row = &flame->names[id];
    size_t n = strlen(row->name), mark = strlen(KRAIT_HOLDS_DROPPED);
    if (n >= mark && strcmp(row->name + n - mark, KRAIT_HOLDS_DROPPED) == 0)
        return;
    const char *marked = krait_arena_fmt(&flame->texts, "%s" KRAIT_HOLDS_DROPPED, row->name);
    row->name = marked ? marked : row->name;
}

/* What a tree is added with. */
struct adding {
    const struct krait_calltree *tree;
    const struct krait_trace *trace;
    int side;
    uint32_t *names; /* by function id: id of the name, or KRAIT_NO_ID */
    uint32_t *place; /* by node of the tree: node of the graph */
};

static uint32_t name_of(struct krait_flame *flame, const struct adding *a, uint32_t node)
{
    char label[512];
    uint32_t id = a->tree->nodes[node].func;
    if (id >= a->trace->func_count)
        return add_group_name(flame, krait_calltree_label(a->tree, a->trace, node, label, sizeof(label)));
    if (a->names[id] != KRAIT_NO_ID)
        return a->names[id];
    const struct krait_func *func = &a->trace->funcs[id];
    enum krait_flame_layer layer = func->kind == KRAIT_FUNC_PYTHON ? KRAIT_LAYER_PYTHON : KRAIT_LAYER_C;
    a->names[id] = a->side == 0 ? add_name(flame, func->name, func->module, func->file, func->line, layer)
                                : add_other_name(flame, func, layer);
    if (func->holds_dropped && a->names[id] != KRAIT_NO_ID)
        mark_dropped(flame, a->names[id]);
    return a->names[id];
}

static int add_nodes(struct krait_flame *flame, const struct adding *a)
{
    for (uint32_t i = 1; i < a->tree->count; i++) {
        const struct krait_tree_node *from = &a->tree->nodes[i];
        uint32_t name = name_of(flame, a, i);
        uint32_t node = name == KRAIT_NO_ID ? KRAIT_NO_ID : child_of(flame, a->place[from->parent], name);
        if (node == KRAIT_NO_ID)
            return -ENOMEM;
        a->place[i] = node;
        flame->nodes[node].side[a->side].self_ns += from->self_ns;
        flame->nodes[node].side[a->side].calls += from->calls;
    }
    return 0;
}

/* For each node of the tree, its time or calls, with everything below it. Parents come before their children. */
static double *totals_of(const struct krait_calltree *tree, enum krait_flame_unit unit)
{
    double *totals = calloc((size_t)tree->count + 1, sizeof(*totals));
    for (uint32_t i = tree->count; totals && i-- > 0;) {
        const struct krait_tree_node *node = &tree->nodes[i];
        totals[i] += unit == KRAIT_FLAME_TIME ? (double)node->self_ns : (double)node->calls;
        if (node->parent != KRAIT_NO_ID)
            totals[node->parent] += totals[i];
    }
    return totals;
}

/* Several nodes of the tree may become one node of the graph. */
static int add_shares(struct krait_flame *flame, const struct adding *a, enum krait_flame_unit unit)
{
    KRAIT_AUTO_FREE double *shares = calloc(flame->count, sizeof(*shares));
    KRAIT_AUTO_FREE double *totals = totals_of(a->tree, unit);
    if (!shares || !totals)
        return -ENOMEM;
    for (uint32_t i = 0; i < a->tree->count && totals[0] > 0; i++)
        shares[a->place[i]] += totals[i] / totals[0];
    for (uint32_t i = 0; i < flame->count; i++) {
        struct krait_flame_share_sums *sums = &flame->nodes[i].side[a->side].sums[unit];
        sums->shares += shares[i];
        sums->squares += shares[i] * shares[i];
    }
    return 0;
}

static int add_tree(struct krait_flame *flame, const struct krait_calltree *tree,
                    const struct krait_trace *trace, int side, struct krait_err *err)
{
    KRAIT_AUTO_FREE uint32_t *place = calloc(KRAIT_MAX(tree->count, 1u), sizeof(*place));
    KRAIT_AUTO_FREE uint32_t *names = malloc(KRAIT_MAX(trace->func_count, 1u) * sizeof(*names));
    if (!place || !names)
        return no_memory(err);
    for (uint32_t i = 0; i < trace->func_count; i++)
        names[i] = KRAIT_NO_ID;
    struct adding adding = { tree, trace, side, names, place };
    flame->recordings[side]++;
    return add_nodes(flame, &adding) || add_shares(flame, &adding, KRAIT_FLAME_TIME) ||
                   add_shares(flame, &adding, KRAIT_FLAME_CALLS)
               ? no_memory(err)
               : 0;
}

/* A graph with only a root. */
static struct krait_flame *new_empty(void)
{
    struct krait_flame *flame = calloc(1, sizeof(*flame));
    if (!flame)
        return NULL;
    uint32_t name = add_group_name(flame, "all");
    if (name == KRAIT_NO_ID || child_of(flame, KRAIT_NO_ID, name) == KRAIT_NO_ID) {
        krait_flame_free(flame);
        return NULL;
    }
    return flame;
}

int krait_flame_new(struct krait_flame **out, const struct krait_calltree *tree,
                    const struct krait_trace *trace, struct krait_err *err)
{
    struct krait_flame *flame = new_empty();
    if (!flame)
        return no_memory(err);
    int rc = add_tree(flame, tree, trace, 0, err);
    if (rc)
        krait_flame_free(flame);
    else
        *out = flame;
    return rc;
}

int krait_flame_add_other(struct krait_flame *flame, const struct krait_calltree *tree,
                          const struct krait_trace *trace, struct krait_err *err)
{
    flame->has_other = true;
    return add_tree(flame, tree, trace, 1, err);
}

int krait_flame_add_repeat(struct krait_flame *flame, const struct krait_calltree *tree,
                           const struct krait_trace *trace, struct krait_err *err)
{
    return add_tree(flame, tree, trace, 0, err);
}

static void make_means(struct krait_flame *flame)
{
    for (uint32_t i = 0; i < flame->count; i++) {
        for (int s = 0; s < 2; s++) {
            struct krait_flame_side *side = &flame->nodes[i].side[s];
            uint64_t n = KRAIT_MAX(flame->recordings[s], 1u);
            side->self_ns = (side->self_ns + n / 2) / n;
            side->calls = (side->calls + n / 2) / n;
        }
    }
}

int krait_flame_judge(struct krait_flame *flame, enum krait_flame_unit unit, struct krait_err *err)
{
    KRAIT_AUTO_FREE struct krait_change *changes = calloc(flame->count, sizeof(*changes));
    uint32_t n = flame->recordings[1], m = flame->recordings[0];
    if (!changes)
        return no_memory(err);
    make_means(flame);
    flame->judged = n > 1 && m > 1;
    for (uint32_t i = 0; i < flame->count; i++) {
        const struct krait_flame_share_sums *after = &flame->nodes[i].side[0].sums[unit],
                                            *before = &flame->nodes[i].side[1].sums[unit];
        changes[i] =
            krait_change_of_sums(n, before->shares, before->squares, m, after->shares, after->squares);
    }
    if (krait_changes_mark(changes, flame->count))
        return no_memory(err);
    for (uint32_t i = 0; i < flame->count; i++)
        flame->nodes[i].chance = flame->judged && !changes[i].certain;
    return 0;
}

void krait_flame_free(struct krait_flame *flame)
{
    if (!flame)
        return;
    free(flame->nodes);
    free(flame->names);
    free(flame->packages);
    krait_map_done(&flame->index);
    krait_map_done(&flame->loose);
    krait_strtab_done(&flame->name_keys);
    krait_strtab_done(&flame->package_texts);
    krait_arena_done(&flame->texts);
    free(flame);
}

/* Moves the names and their tables, so that ids stay the same. */
static void take_names(struct krait_flame *to, struct krait_flame *from)
{
#define SWAP(field)                            \
    do {                                       \
        __typeof__(to->field) was = to->field; \
        to->field = from->field;               \
        from->field = was;                     \
    } while (0)
    SWAP(names);
    SWAP(name_count);
    SWAP(name_cap);
    SWAP(name_keys);
    SWAP(package_texts);
    SWAP(texts);
#undef SWAP
}

static bool is_empty(const struct krait_flame_node *node)
{
    return !(node->side[0].self_ns | node->side[0].calls | node->side[1].self_ns | node->side[1].calls);
}

/* Reversed, a tree of n stacks has up to n times their depth of nodes, so both are bounded. The heaviest stacks are
 * added first; stacks that exceed a bound lose their outer part. */
enum { MAX_CALLERS = 512, MAX_REVERSED = 4000000 };

/* Adds one stack, from its leaf towards the root, with its weight at the outermost caller. */
static int add_reversed(struct krait_flame *to, const struct krait_flame *from, uint32_t leaf)
{
    uint32_t node = 0;
    for (uint32_t at = leaf, n = 0; at != 0 && n < MAX_CALLERS; at = from->nodes[at].parent, n++) {
        if (to->count >= MAX_REVERSED && n > 0)
            break;
        node = child_of(to, node, from->nodes[at].name);
        if (node == KRAIT_NO_ID)
            return -ENOMEM;
    }
    for (int s = 0; s < 2; s++) {
        to->nodes[node].side[s].self_ns += from->nodes[leaf].side[s].self_ns;
        to->nodes[node].side[s].calls += from->nodes[leaf].side[s].calls;
    }
    return 0;
}

static int compare_own(const void *a, const void *b, void *ctx)
{
    const struct krait_flame *flame = ctx;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const struct krait_flame_side *x = flame->nodes[i].side, *y = flame->nodes[j].side;
    if (x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    return i < j ? -1 : i > j;
}

static int add_all_reversed(struct krait_flame *to, const struct krait_flame *from)
{
    KRAIT_AUTO_FREE uint32_t *ids = malloc(from->count * sizeof(*ids));
    if (!ids)
        return -ENOMEM;
    for (uint32_t i = 0; i < from->count; i++)
        ids[i] = i;
    qsort_r(ids, from->count, sizeof(*ids), compare_own, (void *)from);
    for (uint32_t i = 0; i < from->count; i++) {
        if (ids[i] != 0 && !is_empty(&from->nodes[ids[i]]) && add_reversed(to, from, ids[i]))
            return -ENOMEM;
    }
    return 0;
}

int krait_flame_reverse(struct krait_flame **flame, struct krait_err *err)
{
    struct krait_flame *from = *flame, *to = new_empty();
    if (!to)
        return no_memory(err);
    take_names(to, from); /* the root's name is id 0 in both */
    to->has_other = from->has_other;
    to->reversed = !from->reversed;
    if (add_all_reversed(to, from)) {
        take_names(from, to);
        krait_flame_free(to);
        return no_memory(err);
    }
    krait_flame_free(from);
    *flame = to;
    return 0;
}
