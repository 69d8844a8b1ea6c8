/* SPDX-License-Identifier: Apache-2.0
 *
 * The flame graph: draws a call tree as a self-contained SVG or HTML file.
 *
 *     krait_calltree ──new──▶ krait_flame ──(diff)──(reverse)──▶ finish ──▶ svg / html
 *
 * The graph has its own names, merged by what a person reads (module, name, kind, file, line), so that one graph can
 * hold two traces. Each node has two sides: this trace and, in a differential graph, the other one.
 */
#ifndef KRAIT_VIEW_FLAME_H
#define KRAIT_VIEW_FLAME_H

#include "analysis/calltree.h"
#include "base/buf.h"
#include "view/hues.h"

enum krait_flame_layer {
    KRAIT_LAYER_PYTHON,
    KRAIT_LAYER_C,     /* and all native code */
    KRAIT_LAYER_GROUP, /* process, thread, the root */
    KRAIT_LAYER_REST,  /* stands for frames too small to keep */
    KRAIT_LAYER_COUNT,
};

enum {
    KRAIT_FLAME_ROW = 18,         /* pixels a row */
    KRAIT_FLAME_MAX_DRAWN = 3000, /* frames drawn without scripts; the script draws from the full data */
};

enum krait_flame_unit { KRAIT_FLAME_TIME, KRAIT_FLAME_CALLS };

/* What nodes count. Recordings have both; files of folded stacks have times, or samples in place of calls. */
enum krait_flame_measures { KRAIT_FLAME_TIME_AND_CALLS, KRAIT_FLAME_TIME_ALONE, KRAIT_FLAME_SAMPLES };

/* All texts are clean (see krait_text_clean). */
struct krait_flame_name {
    const char *name, *module, *file;
    uint32_t line;
    enum krait_flame_layer layer;
    uint32_t package; /* id in krait_flame.packages */
    uint32_t shade;
};

struct krait_flame_side {
    uint64_t self_ns, calls;        /* of the node itself */
    uint64_t total_ns, total_calls; /* with everything below; filled by krait_flame_finish */
    struct krait_flame_share_sums {
        double shares, squares; /* sums over the recordings: the share of all, and its square */
    } sums[2];                  /* by enum krait_flame_unit */
};

struct krait_flame_node {
    uint32_t name;
    uint32_t parent, first_child, next_sibling; /* KRAIT_NO_ID if there is none */
    uint32_t depth;
    struct krait_flame_side side[2]; /* this trace, the other trace */
    bool chance;                     /* its change may be chance: see krait_flame_judge */
};

enum krait_flame_color { KRAIT_FLAME_BY_MODULE, KRAIT_FLAME_BY_LAYER };
enum krait_flame_order { KRAIT_FLAME_ORDER_SIZE, KRAIT_FLAME_ORDER_NAME, KRAIT_FLAME_ORDER_FIRST_CALL };

struct krait_flame {
    struct krait_flame_node *nodes; /* parent before child; 0 is the root */
    uint32_t count, cap;
    struct krait_map index; /* (parent, name) to node */
    struct krait_flame_name *names;
    uint32_t name_count, name_cap;
    struct krait_strtab name_keys; /* ids are those of names */
    struct krait_map loose;        /* hash of module, name and kind to the first name that has them */
    struct krait_strtab package_texts;
    /* ids of package_texts; weights: own time or calls in this trace; filled by finish */
    struct krait_package *packages;
    struct krait_arena texts;
    bool reversed, has_other;
    bool judged;            /* `chance` of the nodes is set */
    uint32_t recordings[2]; /* number of recordings on each side */
    enum krait_flame_unit unit;
    enum krait_flame_measures measures;
    uint32_t dropped; /* nodes that finish folded into rest nodes */
};

struct krait_flame_options {
    enum krait_flame_unit unit; /* the unit of a frame's width */
    enum krait_flame_measures measures;
    enum krait_flame_order order;
    enum krait_flame_color color;
    bool icicle;         /* root on top */
    bool fixed_width;    /* else the script follows the window */
    uint32_t width;      /* pixels */
    double min_width;    /* pixels; narrower frames are not drawn */
    uint32_t max_frames; /* kept in the data; smaller ones are folded into a rest frame of their parent */
    const char *title;   /* untrusted, like the others */
    const char *subtitle;
    const char *other; /* name of the other trace */
    const char *time;  /* the kind of time that is drawn: "time", "time on CPU" */
};

#define KRAIT_FLAME_OPTIONS_DEFAULT                        \
    ((struct krait_flame_options){ .width = 1200,          \
                                   .min_width = 0.5,       \
                                   .max_frames = 200000,   \
                                   .title = "Flame graph", \
                                   .subtitle = "",         \
                                   .other = "",            \
                                   .time = "time" })

/* Makes a graph from a tree. Returns 0 or -ENOMEM. The graph keeps no pointer to tree or trace. */
int krait_flame_new(struct krait_flame **out, const struct krait_calltree *tree,
                    const struct krait_trace *trace, struct krait_err *err);
void krait_flame_free(struct krait_flame *flame);

/* Puts another trace's tree on the other side of the same nodes. Call it before reverse and finish. A second call
 * adds a repeat, as krait_flame_add_repeat does on the first side. */
int krait_flame_add_other(struct krait_flame *flame, const struct krait_calltree *tree,
                          const struct krait_trace *trace, struct krait_err *err);
int krait_flame_add_repeat(struct krait_flame *flame, const struct krait_calltree *tree,
                           const struct krait_trace *trace, struct krait_err *err);

/* Call it after the last repeat. Turns sums into means. If both sides have two or more recordings, it finds the
 * nodes whose change of share, of the time or of the calls, may be chance (analysis/compare.h). */
int krait_flame_judge(struct krait_flame *flame, enum krait_flame_unit unit, struct krait_err *err);

/* Reverses the stacks: below the root are the functions by self time, below each its callers. */
int krait_flame_reverse(struct krait_flame **flame, struct krait_err *err);

/* Computes totals, order, limit and colours. Call it once, before the functions below. */
int krait_flame_finish(struct krait_flame *flame, const struct krait_flame_options *options,
                       struct krait_err *err);

static inline uint64_t krait_flame_own(const struct krait_flame *flame, const struct krait_flame_node *node,
                                       int side)
{
    return flame->unit == KRAIT_FLAME_TIME ? node->side[side].self_ns : node->side[side].calls;
}

static inline uint64_t krait_flame_total(const struct krait_flame *flame, const struct krait_flame_node *node,
                                         int side)
{
    return flame->unit == KRAIT_FLAME_TIME ? node->side[side].total_ns : node->side[side].total_calls;
}

/* "call", "calls", "sample" or "samples": the word for n of them. */
const char *krait_flame_counted(const struct krait_flame *flame, uint64_t n);

/* The node after `node` in preorder, or KRAIT_NO_ID; with `skip` set, after everything below it. */
enum krait_flame_walk { KRAIT_FLAME_INTO, KRAIT_FLAME_OVER };
uint32_t krait_flame_next(const struct krait_flame *flame, uint32_t node, enum krait_flame_walk walk);

/* Appends the whole picture to `to` (check to->failed). */
void krait_flame_svg(struct krait_buf *to, const struct krait_flame *flame,
                     const struct krait_flame_options *options);
void krait_flame_html(struct krait_buf *to, const struct krait_flame *flame,
                      const struct krait_flame_options *options);

#endif
