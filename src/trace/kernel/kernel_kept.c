/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_kept.h"

#include "trace/importer.h"
#include "trace/kernel/kernel_tracks.h"

#include <string.h>

struct krait_kernel_kept {
    int64_t until_ns;                   /* as far as this opening reads */
    int64_t end_ns;                     /* up to there what goes on is known; at most until_ns */
    uint64_t print;                     /* of what is before (krait_kernel_events_print) */
    struct krait_kernel_states *states; /* for the list, up to there or earlier; NULL: none */
    struct krait_kernel_walk_on *walk;  /* the same of the tracks */
    uint64_t walked;
    struct krait_strtab names; /* of the trace, by id, when `walk` had ended */
};

/* Whether what `before` has is part of what is to be computed now. */
static int holds(const struct krait_kernel_kept *before, struct krait_kernel_events *events, int64_t until_ns,
                 bool *out)
{
    uint64_t print;
    *out = false;
    if (!before || before->until_ns > until_ns)
        return 0;
    int rc = krait_kernel_events_print(events, before->until_ns, &print);
    *out = !rc && print == before->print;
    return rc;
}

static void take(struct krait_kernel_kept *kept, struct krait_kernel_kept *before)
{
    kept->states = before->states;
    kept->walk = before->walk;
    kept->walked = before->walked;
    kept->names = before->names;
    before->states = NULL;
    before->walk = NULL;
    before->walked = 0;
    before->names = (struct krait_strtab){ 0 };
}

int krait_kernel_kept_new(struct krait_kernel_kept **out, struct krait_kernel_events *events,
                          struct krait_kernel_kept *before)
{
    int64_t end_ns, until_ns = krait_kernel_events_written(events, &end_ns);
    bool goes_on;
    *out = NULL;
    if (until_ns <= krait_kernel_events_first(events))
        return 0;
    int rc = holds(before, events, until_ns, &goes_on);
    struct krait_kernel_kept *kept = rc ? NULL : calloc(1, sizeof(*kept));
    rc = rc ? rc : kept ? krait_kernel_events_print(events, until_ns, &kept->print) : -ENOMEM;
    if (rc) {
        free(kept);
        return rc;
    }
    kept->until_ns = until_ns;
    kept->end_ns = end_ns;
    if (goes_on)
        take(kept, before);
    *out = kept;
    return 0;
}

void krait_kernel_kept_free(struct krait_kernel_kept *kept)
{
    if (!kept)
        return;
    krait_kernel_states_free(kept->states);
    krait_kernel_kept_anew(kept);
    free(kept);
}

int krait_kernel_kept_names(const struct krait_kernel_kept *before, struct krait_trace *trace)
{
    for (uint32_t i = 0; before && i < before->names.len; i++) {
        if (krait_trace_name(trace, before->names.texts[i]) != i)
            return -ENOMEM;
    }
    return 0;
}

int krait_kernel_kept_list(struct krait_kernel_kept *kept, struct krait_kernel_list *list,
                           const struct krait_trace *trace, struct krait_kernel_events *events)
{
    const struct krait_kernel_options all = { .functions = true };
    int rc = krait_kernel_states_go_on(&kept->states, events, &all, kept->until_ns);
    if (rc)
        return rc;
    struct krait_kernel_known known = { .states = kept->states };
    rc = krait_own_threads_init(&known.own, trace, known.states);
    rc = rc ? rc : krait_kernel_list_make(list, trace, &known);
    krait_own_threads_done(&known.own);
    list->end_ns = kept->end_ns;
    return rc;
}

static uint64_t next_number(void)
{
    static uint64_t walks; /* atomic */
    return __atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED);
}

static int keep_names(struct krait_kernel_kept *kept, const struct krait_trace *trace)
{
    const struct krait_strtab *names = &trace->impl->names;
    for (uint32_t i = kept->names.len; i < names->len; i++) {
        if (krait_strtab_add(&kept->names, names->texts[i], names->lens[i]) != i)
            return -ENOMEM;
    }
    return 0;
}

int krait_kernel_kept_walk(struct krait_kernel_kept *kept, const struct krait_trace *trace,
                           const struct krait_track *const *tracks, uint32_t count,
                           const struct krait_walking *walking)
{
    int rc = krait_kernel_walk_on(&kept->walk, trace, tracks, count, walking, kept->until_ns, kept->end_ns);
    rc = rc ? rc : keep_names(kept, trace);
    if (rc)
        krait_kernel_kept_anew(kept);
    else
        kept->walked = next_number();
    return rc;
}

uint64_t krait_kernel_kept_walked(const struct krait_kernel_kept *kept)
{
    return kept->walk ? kept->walked : 0;
}

void krait_kernel_kept_anew(struct krait_kernel_kept *kept)
{
    krait_kernel_walk_on_free(kept->walk);
    krait_strtab_done(&kept->names);
    kept->walk = NULL;
    kept->walked = 0;
}
