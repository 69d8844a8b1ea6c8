/* SPDX-License-Identifier: Apache-2.0
 *
 * Callgrind's profile format: per function its own time at its first line, then a block for each function
 * that it calls, with the number of calls and the time below them. Processes and threads are functions
 * without time of their own, so that every function has a caller and totals per process and thread come out.
 *
 * Of samples, whose lines are known, the time of a function stands at the lines in which it was spent.
 *
 * Recursion: readers add the time of the calls into a function up to its inclusive time, so time must go into a
 * function once only, by its outermost call. The time of a call to a function that is on the stack already is
 * therefore given as 0; its number of calls is right. Within a cycle of functions readers show the cycle as a whole.
 *
 * The format ends a name with its line: control characters and backslashes are written as in C. Functions of
 * one file and name, such as lambdas, are told apart by their line. Source: "Callgrind Format Specification"
 * in Valgrind's manual; callgrind_annotate of Valgrind 3.19.
 */
#include "analysis/sampled_lines.h"
#include "base/array.h"
#include "base/json.h"
#include "export/formats.h"

#include <string.h>

/* A function of the profile: one of the trace, or behind these a label of the tree. */
struct arc {
    uint32_t caller, callee;
    uint64_t calls, ns;
};

struct callgrind {
    const struct krait_trace *trace;
    const struct krait_calltree *tree;
    struct krait_outfile *out;
    struct krait_strtab files;
    struct krait_map seen; /* hashes of file and name, for names that come again */
    uint32_t fn_count;
    uint64_t *self_ns;  /* by fn */
    uint32_t *on_stack; /* by fn, during the walk of the tree: how often */
    uint8_t *named;     /* by fn and by file: the name was said, from now on the number is enough */
    uint8_t *file_named;
    uint32_t *path; /* fn by depth */
    uint32_t path_cap;
    struct arc *arcs;
    size_t arc_count, arc_cap;
    struct krait_map arc_index;       /* caller and callee to arc */
    struct krait_sampled_lines lines; /* by function; none where nothing was sampled */
    uint32_t line;                    /* of these: the first of the next function */
};

static uint32_t fn_of(const struct callgrind *grind, const struct krait_tree_node *node)
{
    return node->func != KRAIT_NO_ID ? node->func : grind->trace->func_count + node->label;
}

static uint32_t line_of(const struct callgrind *grind, uint32_t fn)
{
    return fn < grind->trace->func_count ? grind->trace->funcs[fn].line : 0;
}

static void add_text(struct krait_buf *buf, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t c = (uint8_t)s[i];
        if (c < 0x20 || c == 0x7F || c == '\\')
            krait_buf_fmt(buf, c == '\\' ? "\\\\" : c == '\n' ? "\\n" : "\\x%02x", c);
        else
            krait_buf_char(buf, s[i]);
    }
}

/* -- the sums -- */

static struct arc *arc_between(struct callgrind *grind, uint32_t caller, uint32_t callee)
{
    uint64_t key = (uint64_t)caller << 32 | callee;
    uint64_t *found = krait_map_get(&grind->arc_index, key);
    if (found)
        return &grind->arcs[*found];
    if (!KRAIT_GROW(grind->arcs, grind->arc_cap, grind->arc_count + 1) ||
        krait_map_put(&grind->arc_index, key, grind->arc_count))
        return NULL;
    struct arc *arc = &grind->arcs[grind->arc_count++];
    *arc = (struct arc){ .caller = caller, .callee = callee };
    return arc;
}

static int add_call(struct callgrind *grind, const struct krait_tree_node *node, uint32_t fn)
{
    struct arc *arc = arc_between(grind, grind->path[node->depth - 1], fn);
    if (!arc)
        return -ENOMEM;
    arc->calls += node->calls;
    arc->ns += grind->on_stack[fn] ? 0 : node->total_ns;
    return 0;
}

/* The root has depth 0 and is no function; `left` is how much of the path is still that of the node before. */
static int add_node(struct callgrind *grind, const struct krait_tree_node *node, uint32_t *left)
{
    if (!node->depth)
        return 0;
    while (*left >= node->depth)
        grind->on_stack[grind->path[(*left)--]]--;
    uint32_t fn = fn_of(grind, node);
    if (!KRAIT_GROW(grind->path, grind->path_cap, node->depth + 1))
        return -ENOMEM;
    int rc = node->depth > 1 ? add_call(grind, node, fn) : 0;
    if (rc)
        return rc;
    grind->self_ns[fn] += node->self_ns;
    grind->on_stack[fn]++;
    grind->path[node->depth] = fn;
    *left = node->depth;
    return 0;
}

static int add_up(struct callgrind *grind)
{
    uint32_t left = 0;
    int rc = 0;
    for (uint32_t i = 0; !rc && i != KRAIT_NO_ID; i = krait_export_tree_next(grind->tree, i))
        rc = add_node(grind, &grind->tree->nodes[i], &left);
    return rc;
}

static int by_caller(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;
    if (x->caller != y->caller)
        return x->caller < y->caller ? -1 : 1;
    return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* -- the text -- */

/* "fl=(3) name", and without the name from the second time on. */
static void add_file(struct callgrind *grind, const char *key, uint32_t fn)
{
    struct krait_buf *buf = &grind->out->buf;
    const char *file = fn < grind->trace->func_count ? grind->trace->funcs[fn].file : "";
    uint32_t id = krait_strtab_find(&grind->files, file, strlen(file));
    krait_buf_fmt(buf, "%s=(%u)", key, id + 1);
    if (!grind->file_named[id]) {
        krait_buf_char(buf, ' ');
        add_text(buf, *file ? file : "???", *file ? strlen(file) : 3);
    }
    grind->file_named[id] = 1;
    krait_buf_char(buf, '\n');
}

/* Whether another function of this file and name was named before. */
static bool comes_again(struct callgrind *grind, uint32_t fn, const struct krait_buf *label)
{
    const char *file = grind->trace->funcs[fn].file;
    uint64_t key = krait_hash_bytes(label->data, label->len) * 31 + krait_hash_bytes(file, strlen(file));
    bool again = krait_map_get(&grind->seen, key);
    if (!again && krait_map_put(&grind->seen, key, fn))
        grind->out->buf.failed = true;
    return again;
}

static void add_func_text(struct callgrind *grind, uint32_t fn)
{
    KRAIT_AUTO_BUF label = { 0 };
    krait_export_func_label(&label, &grind->trace->funcs[fn]);
    add_text(&grind->out->buf, label.data, label.len);
    if (comes_again(grind, fn, &label))
        krait_buf_fmt(&grind->out->buf, ":%u", line_of(grind, fn));
    grind->out->buf.failed |= label.failed;
}

static void add_fn(struct callgrind *grind, const char *key, uint32_t fn)
{
    struct krait_buf *buf = &grind->out->buf;
    krait_buf_fmt(buf, "%s=(%u)", key, fn + 1);
    if (!grind->named[fn]) {
        krait_buf_char(buf, ' ');
        uint32_t label = fn - grind->trace->func_count;
        if (fn < grind->trace->func_count)
            add_func_text(grind, fn);
        else
            add_text(buf, grind->tree->labels.texts[label], grind->tree->labels.lens[label]);
    }
    grind->named[fn] = 1;
    krait_buf_char(buf, '\n');
}

static void add_arc(struct callgrind *grind, const struct arc *arc)
{
    add_file(grind, "cfi", arc->callee);
    add_fn(grind, "cfn", arc->callee);
    /* Readers take 0 calls for no call at all, and the time below for the caller's own. */
    uint64_t calls = KRAIT_MAX(arc->calls, 1u);
    krait_buf_fmt(&grind->out->buf, "calls=%llu %u\n%u %llu\n", (unsigned long long)calls,
                  line_of(grind, arc->callee), line_of(grind, arc->caller), (unsigned long long)arc->ns);
}

/* A function's own time: by lines, where the lines of samples have all of it. */
static void add_self(struct callgrind *grind, uint32_t fn)
{
    struct krait_buf *buf = &grind->out->buf;
    const struct krait_sampled_lines *lines = &grind->lines;
    uint64_t sum = 0;
    while (grind->line < lines->count && lines->items[grind->line].func < fn)
        grind->line++;
    for (uint32_t i = grind->line; i < lines->count && lines->items[i].func == fn; i++)
        sum += lines->items[i].own_ns;
    if (!sum || sum != grind->self_ns[fn]) {
        krait_buf_fmt(buf, "%u %llu\n", line_of(grind, fn), (unsigned long long)grind->self_ns[fn]);
        return;
    }
    for (; grind->line < lines->count && lines->items[grind->line].func == fn; grind->line++) {
        const struct krait_sampled_line *at = &lines->items[grind->line];
        if (at->own_ns)
            krait_buf_fmt(buf, "%u %llu\n", at->line ? at->line : line_of(grind, fn),
                          (unsigned long long)at->own_ns);
    }
}

/* A function with its calls, which begin at `arc`; returns where those of the next begin. */
static size_t add_function(struct callgrind *grind, uint32_t fn, size_t arc)
{
    bool calls = arc < grind->arc_count && grind->arcs[arc].caller == fn;
    if (!calls && !grind->self_ns[fn])
        return arc;
    krait_buf_char(&grind->out->buf, '\n');
    add_file(grind, "fl", fn);
    add_fn(grind, "fn", fn);
    add_self(grind, fn);
    while (arc < grind->arc_count && grind->arcs[arc].caller == fn)
        add_arc(grind, &grind->arcs[arc++]);
    return arc;
}

static void add_head(struct callgrind *grind)
{
    struct krait_buf *buf = &grind->out->buf;
    krait_buf_str(buf, "# callgrind format\nversion: 1\ncreator: krait " KRAIT_VERSION "\n");
    if (grind->trace->process_count) {
        const char *command = grind->trace->processes[0].command;
        krait_buf_str(buf, "cmd: ");
        add_text(buf, command, strlen(command));
        krait_buf_char(buf, '\n');
    }
    krait_buf_fmt(buf, "positions: line\nevent: ns : Nanoseconds\nevents: ns\nsummary: %llu\n",
                  (unsigned long long)grind->tree->nodes[0].total_ns);
}

static int add_functions(struct callgrind *grind)
{
    size_t arc = 0;
    for (uint32_t fn = 0; fn < grind->fn_count; fn++) {
        arc = add_function(grind, fn, arc);
        if (krait_outfile_spill(grind->out))
            return grind->out->error;
    }
    return 0;
}

/* -- putting it together -- */

static int by_func(const void *a, const void *b)
{
    const struct krait_sampled_line *x = a, *y = b;
    if (x->func != y->func)
        return x->func < y->func ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int read_lines(struct callgrind *grind, const struct krait_calltree_options *what)
{
    const struct krait_sampled_lines_options options = {
        .range = what->range, .ranges = what->ranges, .take_thread = what->take_thread, .ctx = what->ctx
    };
    int rc = grind->trace->samples.rate ? krait_sampled_lines_make(&grind->lines, grind->trace, &options) : 0;
    if (!rc && grind->lines.count)
        qsort(grind->lines.items, grind->lines.count, sizeof(*grind->lines.items), by_func);
    return rc;
}

static int prepare(struct callgrind *grind)
{
    const struct krait_trace *trace = grind->trace;
    bool whole = krait_strtab_add(&grind->files, "", 0) != KRAIT_NO_ID;
    for (uint32_t i = 0; whole && i < trace->func_count; i++)
        whole = krait_strtab_add(&grind->files, trace->funcs[i].file, strlen(trace->funcs[i].file)) !=
                KRAIT_NO_ID;
    grind->fn_count = trace->func_count + grind->tree->labels.len;
    grind->self_ns = calloc((size_t)grind->fn_count + 1, sizeof(*grind->self_ns));
    grind->on_stack = calloc((size_t)grind->fn_count + 1, sizeof(*grind->on_stack));
    grind->named = calloc((size_t)grind->fn_count + 1, 1);
    grind->file_named = calloc((size_t)grind->files.len + 1, 1);
    return whole && grind->self_ns && grind->on_stack && grind->named && grind->file_named ? 0 : -ENOMEM;
}

static void done(struct callgrind *grind)
{
    krait_strtab_done(&grind->files);
    krait_map_done(&grind->seen);
    krait_map_done(&grind->arc_index);
    krait_sampled_lines_done(&grind->lines);
    free(grind->self_ns);
    free(grind->on_stack);
    free(grind->named);
    free(grind->file_named);
    free(grind->path);
    free(grind->arcs);
}

int krait_export_write_callgrind(struct krait_export_job *job, struct krait_outfile *out,
                                 struct krait_err *err)
{
    KRAIT_AUTO_TREE *tree = NULL;
    int rc = krait_export_tree(job, KRAIT_TREE_BY_THREAD, &tree, err);
    if (rc)
        return rc;
    struct callgrind grind = { .trace = job->trace, .tree = tree, .out = out };
    rc = prepare(&grind);
    rc = rc ? rc : read_lines(&grind, &job->what);
    if (!rc)
        rc = add_up(&grind);
    if (!rc) {
        if (grind.arc_count)
            qsort(grind.arcs, grind.arc_count, sizeof(*grind.arcs), by_caller);
        add_head(&grind);
        rc = add_functions(&grind);
    }
    done(&grind);
    return rc ? krait_err_set(err, rc, "out of memory for the call graph") : 0;
}
