/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions over a range of time and chosen threads: the table and the call tree, as in krait report.
 */
#include "analysis/calltree.h"
#include "analysis/profile.h"
#include "base/array.h"
#include "base/json.h"
#include "serve/serving.h"

static const char *const state_keys[] = {
#define X(name, text, title, words) text,
    KRAIT_WALL_STATES(X)
#undef X
};

/* Finds the states that occur. If only waits for the GIL are known, `unknown` is not a state. */
static uint32_t states_of(const struct krait_wall *wall, const uint64_t ns[KRAIT_WALL_COUNT])
{
    uint32_t states = 0;
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT && wall; i++) {
        if (ns[i] && (krait_wall_has_states(wall) || i == KRAIT_WALL_GIL))
            states |= 1u << i;
    }
    return states;
}

static void put_states(struct krait_buf *out, uint32_t states)
{
    krait_json_key_open(out, "states", '[');
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (!(states >> i & 1))
            continue;
        krait_json_item(out, "");
        krait_json_cstr(out, state_keys[i]);
    }
    krait_buf_char(out, ']');
}

static void put_numbers(struct krait_buf *out, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        krait_buf_str(out, i ? "," : "");
        krait_json_u64(out, numbers[i]);
    }
}

/* Writes each state that occurs, with a comma before it. */
static void put_wall(struct krait_buf *out, uint32_t states, const uint64_t ns[KRAIT_WALL_COUNT])
{
    for (uint32_t i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (states >> i & 1)
            krait_buf_fmt(out, ",%llu", (unsigned long long)ns[i]);
    }
}

/* ---- the function table ---- */

/* Each column's name, and its field of struct krait_profile_row. */
#define FUNCTION_COLUMNS(X) \
    X(func, func)           \
    X(calls, calls)         \
    X(self, self_ns)        \
    X(total, total_ns)      \
    X(min, min_ns)          \
    X(mean, mean_ns)        \
    X(p50, p50_ns)          \
    X(p99, p99_ns)          \
    X(max, max_ns)          \
    X(runs, runs)           \
    X(raised, raised)       \
    X(cut, cut_runs)        \
    X(error, self_error_ns)

static void put_row(struct krait_buf *out, const struct krait_profile_row *row, uint32_t states)
{
#define X(column, field) row->field,
    const uint64_t numbers[] = { FUNCTION_COLUMNS(X) };
#undef X
    krait_json_item(out, "\n[");
    put_numbers(out, numbers, KRAIT_ARRAY_LEN(numbers));
    if (row->wall) {
        put_wall(out, states, row->wall->self_ns);
        put_wall(out, states, row->wall->total_ns);
    }
    krait_buf_char(out, ']');
}

/* How exact the times are, as below the table of krait report; null: they are exact. */
static void put_note(struct krait_buf *out, const struct krait_trace *trace)
{
    KRAIT_AUTO_BUF note = { 0 };
    krait_profile_say_samples(&note, trace);
    krait_json_key_text_or_null(out, "note", note.data);
    out->failed |= note.failed;
}

int krait_answer_functions(struct krait_serving *serving, const struct krait_request *request,
                           struct krait_buf *out, struct krait_err *err)
{
#define X(column, field) #column,
    static const char *const columns[] = { FUNCTION_COLUMNS(X) };
#undef X
    struct krait_profile *profile;
    const struct krait_wall *wall = krait_serving_wall(serving);
    const struct krait_profile_options options = {
        .range = krait_serving_range(serving, request),
        .by = KRAIT_BY_FUNCTION,
        .take_thread = krait_serving_takes,
        .ctx = (void *)request,
        .wall = wall,
    };
    int rc = krait_profile_new(&profile, serving->trace, &options, err);
    uint32_t states = rc ? 0 : states_of(wall, profile->wall_ns);
    krait_serving_wall_used(wall);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "self", profile->self_ns);
    put_states(out, states);
    put_note(out, serving->trace);
    krait_json_key_text_or_null(out, "damage", profile->damage);
    krait_json_key_texts(out, "columns", columns, KRAIT_ARRAY_LEN(columns));
    krait_json_key_open(out, "rows", '[');
    for (uint32_t i = 0; i < profile->count; i++)
        put_row(out, &profile->rows[i], states);
    krait_buf_str(out, "]}\n");
    krait_profile_free(profile);
    return 0;
}

/* ---- the call tree ---- */

enum { FLAME_NODES = 20000 };

/* The least total time of a node such that at most `limit` nodes have that much. */
static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static int least_time(const struct krait_calltree *tree, uint64_t limit, uint64_t *least)
{
    *least = 0;
    if (tree->count <= limit)
        return 0;
    KRAIT_AUTO_FREE uint64_t *times = calloc(tree->count, sizeof(*times));
    if (!times)
        return -ENOMEM;
    for (uint32_t i = 0; i < tree->count; i++)
        times[i] = tree->nodes[i].total_ns;
    qsort(times, tree->count, sizeof(*times), compare_times);
    *least = times[limit] + 1;
    return 0;
}

/* Parents come before their children, and are at least as long. */
static int put_tree(struct krait_buf *out, const struct krait_calltree *tree, uint64_t limit)
{
    KRAIT_AUTO_FREE uint32_t *ids = calloc((size_t)tree->count + 1, sizeof(*ids));
    uint64_t least;
    uint32_t shown = 0;
    if (!ids || least_time(tree, limit, &least))
        return -ENOMEM;
    krait_json_key_open(out, "nodes", '[');
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct krait_tree_node *node = &tree->nodes[i];
        if (i && node->total_ns < least)
            continue;
        ids[i] = shown++;
        krait_json_item(out, "\n[");
        krait_buf_fmt(out, "%d,%lld,%llu,%llu,%llu]", i ? (int)ids[node->parent] : -1,
                      node->func == KRAIT_NO_ID ? -1ll : (long long)node->func,
                      (unsigned long long)node->calls, (unsigned long long)node->self_ns,
                      (unsigned long long)node->total_ns);
    }
    krait_buf_char(out, ']');
    krait_json_key_u64(out, "left_out", tree->count - shown);
    return 0;
}

int krait_answer_flame(struct krait_serving *serving, const struct krait_request *request,
                       struct krait_buf *out, struct krait_err *err)
{
    struct krait_calltree *tree;
    const struct krait_calltree_options options = {
        .range = krait_serving_range(serving, request),
        .take_thread = krait_serving_takes,
        .ctx = (void *)request,
    };
    int rc = krait_calltree_new(&tree, serving->trace, &options, err);
    if (rc)
        return rc;
    krait_buf_char(out, '{');
    krait_json_key_u64(out, "total", tree->nodes[0].total_ns);
    krait_json_key_text_or_null(out, "damage", tree->damage);
    rc = put_tree(out, tree, krait_request_number(request, KRAIT_PARAM_limit, FLAME_NODES));
    krait_buf_str(out, "}\n");
    krait_calltree_free(tree);
    return rc ? krait_err_set(err, rc, "out of memory") : 0;
}
