/* SPDX-License-Identifier: Apache-2.0
 *
 * Folded stacks: a line for each distinct stack, "process;thread;outermost;...;innermost VALUE", where VALUE
 * is what belongs to the innermost function alone. Lines whose value is 0 are left out, as readers skip them.
 *
 * The format has no escapes. So that every name stays one name: a semicolon, a backslash, control characters
 * and bytes that are no UTF-8 are written as in C (\x3b, \\, \n), and all else as it is, blanks included:
 * readers take the last word of a line for the value. Source: stackcollapse.pl and flamegraph.pl of
 * FlameGraph; speedscope's importer, which takes whole numbers only.
 */
#include "base/array.h"
#include "base/json.h"
#include "export/formats.h"

#include <string.h>

struct folded {
    const struct krait_trace *trace;
    const struct krait_calltree *tree;
    struct krait_export_texts names;
    struct krait_buf stack; /* the path to the node, each frame with ';' behind */
    size_t *ends;           /* by depth: where that frame ends in `stack` */
    uint32_t ends_cap;
};

static bool is_escaped(const char *s, size_t n)
{
    uint8_t c = (uint8_t)*s;
    return c < 0x20 || c == 0x7F || c == ';' || c == '\\' || !krait_utf8_len(s, n);
}

static void add_escaped(struct krait_buf *buf, uint8_t c)
{
    static const char letters[128] = { ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't', ['\\'] = '\\' };
    if (c < 128 && letters[c])
        krait_buf_fmt(buf, "\\%c", letters[c]);
    else
        krait_buf_fmt(buf, "\\x%02x", c);
}

static void add_frame(struct krait_buf *buf, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (is_escaped(s + i, n - i)) {
            add_escaped(buf, (uint8_t)s[i++]);
            continue;
        }
        size_t len = krait_utf8_len(s + i, n - i);
        krait_buf_add(buf, s + i, len);
        i += len;
    }
}

static void name_text(struct krait_buf *buf, const struct krait_trace *trace, uint32_t func)
{
    KRAIT_AUTO_BUF label = { 0 };
    krait_export_func_label(&label, &trace->funcs[func]);
    add_frame(buf, label.data, label.len);
    buf->failed |= label.failed;
}

static uint64_t value_of(const struct krait_tree_node *node, enum krait_export_unit unit)
{
    if (unit == KRAIT_EXPORT_CALLS)
        return node->calls;
    return unit == KRAIT_EXPORT_US ? (node->self_ns + KRAIT_NS_PER_US / 2) / KRAIT_NS_PER_US : node->self_ns;
}

static int note_end(struct folded *folded, uint32_t depth)
{
    if (!KRAIT_GROW(folded->ends, folded->ends_cap, depth + 1))
        return -ENOMEM;
    folded->ends[depth] = folded->stack.len;
    return folded->stack.failed ? -ENOMEM : 0;
}

/* The stack becomes the path to this node. Its parent was the last one at its depth: nodes come in pre-order. */
static int enter(struct folded *folded, const struct krait_tree_node *node)
{
    struct krait_buf *stack = &folded->stack;
    stack->len = node->depth ? folded->ends[node->depth - 1] : 0;
    if (node->func != KRAIT_NO_ID)
        krait_export_text_add(stack, &folded->names, node->func);
    else if (node->label != KRAIT_NO_ID)
        add_frame(stack, folded->tree->labels.texts[node->label], folded->tree->labels.lens[node->label]);
    if (node->depth)
        krait_buf_char(stack, ';');
    return note_end(folded, node->depth);
}

static void add_line(struct krait_buf *buf, const struct krait_buf *stack, uint64_t value)
{
    if (!value || !stack->len)
        return;
    krait_buf_add(buf, stack->data, stack->len - 1);
    krait_buf_char(buf, ' ');
    krait_json_u64(buf, value);
    krait_buf_char(buf, '\n');
}

static int add_stacks(struct folded *folded, enum krait_export_unit unit, struct krait_outfile *out)
{
    for (uint32_t i = 0; i != KRAIT_NO_ID; i = krait_export_tree_next(folded->tree, i)) {
        if (enter(folded, &folded->tree->nodes[i]))
            return -ENOMEM;
        add_line(&out->buf, &folded->stack, value_of(&folded->tree->nodes[i], unit));
        if (krait_outfile_spill(out))
            return out->error;
    }
    return 0;
}

int krait_export_write_folded(struct krait_export_job *job, struct krait_outfile *out, struct krait_err *err)
{
    KRAIT_AUTO_TREE *tree = NULL;
    int rc = krait_export_tree(job, KRAIT_TREE_BY_THREAD, &tree, err);
    if (rc)
        return rc;
    struct folded folded = { .trace = job->trace, .tree = tree };
    rc = krait_export_texts_init(&folded.names, job->trace, name_text, err);
    if (!rc)
        rc = add_stacks(&folded, job->unit, out);
    krait_export_texts_done(&folded.names);
    krait_buf_done(&folded.stack);
    free(folded.ends);
    return rc == -ENOMEM ? krait_err_set(err, rc, "out of memory for the stacks") : rc;
}
