/* SPDX-License-Identifier: Apache-2.0
 *
 * Recorded arguments as keys: of calls that are intervals, and of calls at which intervals begin or end. Arguments are slices
 * of their calls, which are walked first:
 *
 *   slice     ├ {"rid":7,"return":2} ┤       rid is the key of both ends of the call
 *   calls     └ serve ───────────────┘
 */
#include "analysis/interval_search.h"
#include "base/array.h"
#include "base/runs.h"
#include "trace/importer.h"

#include <string.h>

static bool names_argument(const struct krait_template *template)
{
    bool any = false;
    for (uint32_t i = 0; i < template->count; i++)
        any |= template->pieces[i].is_part && !krait_trigger_is_part(template->pieces[i].text);
    return any;
}

static bool asks_for_argument(const struct krait_trigger *trigger)
{
    bool any = false;
    for (uint32_t i = 0; i < trigger->where_count; i++)
        any |= !krait_trigger_is_part(trigger->where[i].part);
    return any;
}

/* Whether an end of its intervals is a call of which it takes more than what all calls have: $thread. */
static bool has_end_with_arguments(const struct krait_interval_rule *rule)
{
    bool any = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++) {
        const struct krait_trigger *trigger = &rule->triggers[i];
        any |= trigger->call &&
               (names_argument(&trigger->key) || names_argument(&trigger->by) || asks_for_argument(trigger));
    }
    return any;
}

bool krait_search_asks_arguments(const struct krait_interval_rule *rule)
{
    return rule->kind == KRAIT_RULE_CALLS ? rule->key && !krait_trigger_is_part(rule->key)
                                          : has_end_with_arguments(rule);
}

bool krait_search_has_arguments(const struct krait_search *search, uint32_t rule)
{
    return search->has_args && !search->sought[rule].is_left_out &&
           krait_search_asks_arguments(&search->options->rules[rule]);
}

int krait_search_begin_arguments(struct krait_search *search, uint32_t rule)
{
    struct krait_sought *sought = &search->sought[rule];
    const bool *const meant[] = { sought->calls, sought->edges[0], sought->edges[1] };
    int rc = 0;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(meant) && !rc && krait_search_has_arguments(search, rule); i++)
        rc = meant[i] ? krait_match_labels(&sought->labels, search->trace, meant[i]) : 0;
    return rc;
}

/* What a call has as its key; of one that is an end, all that was recorded of it. */
static int take_one(struct krait_search *search, uint32_t rule, const struct krait_trigger_slice *slice,
                    uint64_t end_ns)
{
    struct krait_sought *sought = &search->sought[rule];
    struct krait_sought_key key = { slice->begin_ns, end_ns, slice->track->thread,
                                    .text = sought->texts.len };
    int rc = 0;
    if (search->options->rules[rule].kind == KRAIT_RULE_CALLS)
        rc = krait_search_slice_key(search, rule, slice, &key.key);
    else
        krait_buf_add(&sought->texts, slice->fields, strlen(slice->fields) + 1);
    if (rc || sought->texts.failed || !KRAIT_GROW(sought->keys, sought->key_cap, sought->key_count + 1))
        return -ENOMEM;
    sought->keys[sought->key_count++] = key;
    return 0;
}

int krait_search_take_arguments(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_search *search = ctx;
    int rc = 0;
    for (uint32_t rule = 0; rule < search->options->rule_count; rule++) {
        const struct krait_strtab *labels = &search->sought[rule].labels;
        bool is_meant = track->importer == KRAIT_IMPORTER_krait_args && labels->len;
        for (uint32_t i = 0; i < batch->n && is_meant && !rc; i++) {
            const char *name = krait_track_text(search->trace, batch->name[i]);
            const struct krait_trigger_slice slice = { track, name, batch->text[i], batch->t_ns[i],
                                                       KRAIT_NO_ID };
            if (krait_strtab_find(labels, name, strlen(name)) != KRAIT_NO_ID)
                rc = take_one(search, rule, &slice, batch->end_ns[i]);
        }
    }
    return rc;
}

static int by_begin(const void *a, const void *b)
{
    const struct krait_sought_key *x = a, *y = b;
    return x->thread != y->thread ? (x->thread > y->thread) - (x->thread < y->thread)
                                  : (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

int krait_search_sort_arguments(struct krait_search *search)
{
    int rc = 0;
    for (uint32_t i = 0; i < search->options->rule_count && !rc; i++) {
        struct krait_sought *sought = &search->sought[i];
        rc = krait_runs_sort(sought->keys, sought->key_count, sizeof(*sought->keys), by_begin);
    }
    return rc;
}

/* Calls that begin in one nanosecond, as all that begin before --from, end in the order of their slices, which is also that of the
 * walk. */
const struct krait_sought_key *krait_search_arguments_of(struct krait_sought *sought, uint32_t thread,
                                                         uint64_t begin_ns, uint64_t end_ns)
{
    const struct krait_sought_key at = { .begin_ns = begin_ns, .thread = thread };
    uint32_t first = KRAIT_PARTITION_POINT(k, sought->key_count, by_begin(&sought->keys[k], &at) < 0);
    if (first == sought->key_count || by_begin(&sought->keys[first], &at) != 0)
        return NULL;
    struct krait_sought_key *keys = &sought->keys[first], *any = keys;
    uint32_t most = sought->key_count - first;
    while (keys->taken < most && keys[keys->taken].is_taken)
        keys->taken++;
    for (uint32_t i = keys->taken; i < most && by_begin(&keys[i], &at) == 0; i++) {
        any = any->is_taken && !keys[i].is_taken ? &keys[i] : any;
        if (keys[i].end_ns != end_ns || keys[i].is_taken)
            continue;
        keys[i].is_taken = true;
        return &keys[i];
    }
    return any; /* this is a step of it */
}
