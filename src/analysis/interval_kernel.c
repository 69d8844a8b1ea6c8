/* SPDX-License-Identifier: Apache-2.0
 *
 * Where intervals begin and end in what is taken by name alone, events of the kernel, of tasks and the GIL; and what state
 * providers make of the kernel's and of other tracers' events.
 */
#include "analysis/interval_search.h"
#include "analysis/provider.h"
#include "base/array.h"
#include "trace/fields.h"
#include "trace/import.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel_raw.h"

#include <string.h>

/* -- the kernel's events -- */

bool krait_search_needs_kernel(const struct krait_interval_rule *rule)
{
    bool any = false;
    for (uint32_t i = 0; i < rule->trigger_count; i++)
        any |= rule->triggers[i].event_count > 0;
    return any;
}

/* Whether a trigger looks at them, and may fire by an event of this name. */
static bool wants_raw(void *ctx, const char *name)
{
    const struct krait_search *search = ctx;
    const struct krait_interval_options *options = search->options;
    for (uint32_t i = 0; i < options->rule_count; i++) {
        for (uint32_t t = 0; t < options->rules[i].trigger_count; t++) {
            const struct krait_trigger *trigger = &options->rules[i].triggers[t];
            if (trigger->event_count && krait_trigger_may(trigger, name))
                return search->intervals->of_kernel = true;
        }
    }
    return false;
}

static int64_t pid_of(const struct krait_track *track)
{
    return track->pid ? (int64_t)track->pid : -1;
}

/* Counts an event and makes it the one that rules look at, of no known thread or task. */
static void say_event(struct krait_search *search, const struct krait_raw_event *event)
{
    search->intervals->messages++;
    search->is_mixed = true;
    search->said.name = event->name;
    search->said.fields = event->fields;
    search->said.host = event->host;
    search->said.cpu = event->cpu;
    search->said.tid = event->tid;
    search->said.pid = event->pid;
    search->said.track = NULL;
    search->said.thread = search->said.task = KRAIT_NO_ID;
}

static int take_raw(void *ctx, const struct krait_raw_event *event)
{
    struct krait_search *search = ctx;
    const struct krait_interval_options *options = search->options;
    const uint64_t *known = krait_map_get(&search->threads, (uint64_t)event->tid);
    uint32_t track = known ? (uint32_t)*known : KRAIT_NO_ID;
    if (known && !options->takes(options->ctx, search->trace, &search->trace->tracks[track]))
        return 0;
    say_event(search, event);
    if (known && event->pid < 0)
        search->said.pid = pid_of(&search->trace->tracks[track]);
    search->said.thread = known ? search->trace->tracks[track].thread : KRAIT_NO_ID;
    search->said.is_kernels = search->said.is_by_name = true;
    search->said.is_raw_too = false;
    int rc = krait_search_event(search, track, event->t_ns);
    search->said.is_kernels = search->said.is_by_name = false;
    return rc;
}

static bool needs_any(const struct krait_search *search)
{
    bool any = false;
    for (uint32_t i = 0; i < search->options->rule_count; i++)
        any |= krait_search_needs_kernel(&search->options->rules[i]);
    return any;
}

int krait_search_kernel(struct krait_search *search, char *damage, size_t size)
{
    const struct krait_trace *trace = search->trace;
    const struct krait_raw_walk walk = {
        .ctx = search, .range = search->options->range, .wants = wants_raw, .take = take_raw
    };
    bool is_needed = needs_any(search);
    for (uint32_t i = 0; i < trace->track_count && is_needed; i++) {
        const struct krait_track *track = &trace->tracks[i];
        if (krait_kernel_is_thread_states(track) && krait_map_put(&search->threads, track->number, i))
            return -ENOMEM;
    }
    return is_needed ? krait_kernel_raw_walk(trace, &walk, damage, size) : 0;
}

/* -- events of tasks and the GIL -- */

/* The task that the event is about; KRAIT_NO_ID: it is about the one that runs. */
static uint32_t task_of(const struct krait_search *search)
{
    const struct krait_trigger_event *said = &search->said;
    struct krait_fields fields = { said->fields, said->fields + strlen(said->fields) };
    struct krait_field field;
    return krait_fields_find(&fields, "task", &field)
               ? krait_task_keys_numbered(&search->tasks, said->thread, strtoull(field.value, NULL, 10))
               : KRAIT_NO_ID;
}

static int take_by_name(void *ctx, const struct krait_track *track, const struct krait_batch *batch)
{
    struct krait_search *search = ctx;
    int rc = 0;
    search->said.is_by_name = search->is_mixed = true;
    for (uint32_t i = 0; i < batch->n && !rc; i++) {
        search->intervals->messages++;
        krait_trigger_event_of(&search->said, search->trace, track,
                               krait_track_text(search->trace, batch->name[i]), batch->text[i]);
        search->said.task = task_of(search);
        rc = krait_search_event(search, (uint32_t)(track - search->trace->tracks), batch->t_ns[i]);
    }
    search->said.is_by_name = false;
    search->said.track = NULL; /* whose events are not of its task */
    return rc;
}

int krait_search_tasks(struct krait_search *search, char *damage, size_t size)
{
    const struct krait_trace *trace = search->trace;
    const struct krait_interval_options *options = search->options;
    bool is_needed = needs_any(search);
    int rc = 0;
    for (uint32_t i = 0; i < trace->track_count && is_needed && !rc; i++) {
        const struct krait_track *track = &trace->tracks[i];
        const struct krait_image *image =
            track->kind == KRAIT_TRACK_CALLS ? krait_image_of(trace, track->thread) : NULL;
        if (!image || !options->takes(options->ctx, trace, track))
            continue;
        const struct krait_walking walking = { .range = krait_image_clip(image, options->range),
                                               .ctx = search,
                                               .batch = take_by_name,
                                               .damage = { damage, size } };
        rc = krait_marks_walk_by_name(trace, track, wants_raw, &walking);
    }
    return rc;
}

/* -- state providers -- */

static bool provider_wants(void *ctx, const char *name)
{
    const struct krait_interval_options *options = ((const struct krait_search *)ctx)->options;
    for (uint32_t i = 0; i < options->rule_count; i++) {
        if (options->rules[i].provider && krait_provider_may(options->rules[i].provider, name))
            return true;
    }
    return false;
}

/* What a change of an attribute belongs to. */
struct changing {
    struct krait_search *search;
    struct krait_edge edge;
};

/* The state's name has the attribute's in it: rows of several are told apart. */
static int add_change(void *ctx, uint64_t t_ns, const char *attribute, const char *value, bool updates)
{
    struct changing *changing = ctx;
    struct krait_search *search = changing->search;
    struct krait_edge edge = changing->edge;
    KRAIT_AUTO_BUF state = { 0 };
    krait_buf_fmt(&state, "%s = %s", attribute, value ? value : "");
    edge.t_ns = t_ns;
    edge.updates = updates;
    edge.lane = krait_strtab_add(&search->intervals->places, attribute, strlen(attribute));
    edge.key = value && !state.failed ? krait_strtab_add(&search->intervals->keys, state.data, state.len)
                                      : KRAIT_NO_ID;
    if (edge.lane == KRAIT_NO_ID || (value && edge.key == KRAIT_NO_ID) ||
        !KRAIT_GROW(search->edges, search->edge_cap, search->edge_count + 1))
        return -ENOMEM;
    search->edges[search->edge_count++] = edge;
    return 0;
}

/* A segment of a pattern: an interval, of the row of its name. Its key has all its fields: krait_interval_field. */
static int add_segment(void *ctx, uint32_t rule, const char *fields, size_t n, uint64_t begin_ns,
                       uint64_t end_ns)
{
    struct changing *changing = ctx;
    struct krait_search *search = changing->search;
    const struct krait_range *range = &search->options->range;
    struct krait_strtab *keys = &search->intervals->keys;
    size_t name = strlen(fields);
    uint32_t key = krait_strtab_add(keys, fields, n > name + 1 ? n : name),
             name_key = krait_strtab_add(keys, fields, name), row;
    if (begin_ns < range->from_ns || end_ns > range->to_ns)
        return 0;
    if (key == KRAIT_NO_ID || name_key == KRAIT_NO_ID ||
        krait_intervals_row(search->intervals, &search->rows, search->options, rule, name_key, &row))
        return -ENOMEM;
    search->intervals->rows[row].starts++;
    search->intervals->rows[row].stops++;
    return krait_intervals_add(
        search->intervals, (struct krait_interval){ begin_ns, end_ns, row, key, KRAIT_NO_ID, KRAIT_NO_ID });
}

static struct krait_provider_told told_of(struct changing *changing, struct krait_search *search,
                                          uint32_t rule)
{
    *changing =
        (struct changing){ search, { .track = KRAIT_NO_ID, .rule = (uint16_t)rule, .label = KRAIT_NO_ID } };
    return (struct krait_provider_told){ changing, add_change, add_segment };
}

static int provide(void *ctx, const struct krait_raw_event *event)
{
    struct krait_search *search = ctx;
    const struct krait_interval_options *options = search->options;
    int rc = 0;
    say_event(search, event);
    for (uint32_t i = 0; i < options->rule_count && !rc; i++) {
        struct changing changing;
        const struct krait_provider_told told = told_of(&changing, search, i);
        if (options->rules[i].provider)
            rc = krait_provider_event(options->rules[i].provider, &search->said, event->t_ns, &told);
    }
    return rc;
}

/* Changes that are due after the last event; what never happens, in 2^63 - 1 ns, lasts until the trace's end. */
static int end_providers(struct krait_search *search, uint64_t last_ns)
{
    const struct krait_interval_options *options = search->options;
    uint64_t to_ns = options->range.to_ns, until_ns = to_ns > last_ns ? UINT64_MAX : to_ns;
    int rc = 0;
    for (uint32_t i = 0; i < options->rule_count && !rc; i++) {
        struct changing changing;
        const struct krait_provider_told told = told_of(&changing, search, i);
        if (options->rules[i].provider)
            rc = krait_provider_end(options->rules[i].provider, until_ns, last_ns, &told);
    }
    return rc;
}

/* From the beginning, whatever the range: states depend on what came before. */
int krait_search_providers(struct krait_search *search, char *damage, size_t size)
{
    uint64_t last_ns = search->trace->end_ns;
    const struct krait_raw_walk walk = {
        .ctx = search,
        .range = { 0, search->options->range.to_ns },
        .with_others = true,
        .last_ns = &last_ns,
        .wants = provider_wants,
        .take = provide,
    };
    bool is_needed = false;
    for (uint32_t i = 0; i < search->options->rule_count; i++) {
        if (!search->options->rules[i].provider)
            continue;
        is_needed = search->intervals->of_kernel = true;
        krait_provider_reset(search->options->rules[i].provider);
    }
    int rc = is_needed ? krait_kernel_raw_walk(search->trace, &walk, damage, size) : 0;
    return rc ? rc : end_providers(search, last_ns);
}
