/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_resume.h"

#include "trace/importer.h"
#include "trace/kernel/kernel_tracks.h"

#include <string.h>

struct krait_kernel_resume {
    int64_t until_ns;                   /* as far as this opening reads */
    int64_t end_ns;                     /* up to there what goes on is known; at most until_ns */
    uint64_t print;                     /* of what is before (krait_kernel_events_print) */
    struct krait_kernel_states *states; /* for the list, up to there or earlier; NULL: none */
    struct krait_kernel_walk_on *walk;  /* the same of the tracks */
    uint64_t walked;
    struct krait_strtab names; /* of the trace, by id, when `walk` had ended */
};

/* Whether what `before` has is part of what is to be computed now. */
static int holds(const struct krait_kernel_resume *before, struct krait_kernel_events *events,
                 int64_t until_ns, bool *out)
{
    uint64_t print;
    *out = false;
    if (!before || before->until_ns > until_ns)
        return 0;
    int rc = krait_kernel_events_print(events, before->until_ns, &print);
    *out = !rc && print == before->print;
    return rc;
}

static void take(struct krait_kernel_resume *resume, struct krait_kernel_resume *before)
{
    resume->states = before->states;
    resume->walk = before->walk;
    resume->walked = before->walked;
    resume->names = before->names;
    before->states = NULL;
    before->walk = NULL;
    before->walked = 0;
    before->names = (struct krait_strtab){ 0 };
}

int krait_kernel_resume_new(struct krait_kernel_resume **out, struct krait_kernel_events *events,
                            struct krait_kernel_resume *before)
{
    int64_t end_ns, until_ns = krait_kernel_events_written(events, &end_ns);
    bool goes_on;
    *out = NULL;
    if (until_ns <= krait_kernel_events_first(events))
        return 0;
    int rc = holds(before, events, until_ns, &goes_on);
    struct krait_kernel_resume *resume = rc ? NULL : calloc(1, sizeof(*resume));
    rc = rc ? rc : resume ? krait_kernel_events_print(events, until_ns, &resume->print) : -ENOMEM;
    if (rc) {
        free(resume);
        return rc;
    }
    resume->until_ns = until_ns;
    resume->end_ns = end_ns;
    if (goes_on)
        take(resume, before);
    *out = resume;
    return 0;
}

void krait_kernel_resume_free(struct krait_kernel_resume *resume)
{
    if (!resume)
        return;
    krait_kernel_states_free(resume->states);
    krait_kernel_resume_anew(resume);
    free(resume);
}

int64_t krait_kernel_resume_until(const struct krait_kernel_resume *resume, int64_t *end_ns)
{
    *end_ns = resume->end_ns;
    return resume->until_ns;
}

int krait_kernel_resume_names(const struct krait_kernel_resume *before, struct krait_trace *trace)
{
    for (uint32_t i = 0; before && i < before->names.len; i++) {
        if (krait_trace_name(trace, before->names.texts[i]) != i)
            return -ENOMEM;
    }
    return 0;
}

int krait_kernel_resume_list(struct krait_kernel_resume *resume, struct krait_kernel_list *list,
                             const struct krait_trace *trace, struct krait_kernel_events *events)
{
    const struct krait_kernel_options all = { .functions = true };
    int rc = krait_kernel_states_go_on(&resume->states, events, &all, resume->until_ns);
    if (rc)
        return rc;
    struct krait_kernel_known known = { .states = resume->states };
    rc = krait_own_threads_init(&known.own, trace, known.states);
    rc = rc ? rc : krait_kernel_list_make(list, trace, &known);
    krait_own_threads_done(&known.own);
    list->end_ns = resume->end_ns;
    return rc;
}

static uint64_t next_number(void)
{
    static uint64_t walks; /* atomic */
    return __atomic_add_fetch(&walks, 1, __ATOMIC_RELAXED);
}

static int keep_names(struct krait_kernel_resume *resume, const struct krait_trace *trace)
{
    const struct krait_strtab *names = &trace->impl->names;
    for (uint32_t i = resume->names.len; i < names->len; i++) {
        if (krait_strtab_add(&resume->names, names->texts[i], names->lens[i]) != i)
            return -ENOMEM;
    }
    return 0;
}

int krait_kernel_resume_walk(struct krait_kernel_resume *resume, const struct krait_trace *trace,
                             const struct krait_track *const *tracks, uint32_t count,
                             const struct krait_walking *walking)
{
    int rc =
        krait_kernel_walk_on(&resume->walk, trace, tracks, count, walking, resume->until_ns, resume->end_ns);
    rc = rc ? rc : keep_names(resume, trace);
    if (rc)
        krait_kernel_resume_anew(resume);
    else
        resume->walked = next_number();
    return rc;
}

uint64_t krait_kernel_resume_walked(const struct krait_kernel_resume *resume)
{
    return resume->walk ? resume->walked : 0;
}

void krait_kernel_resume_anew(struct krait_kernel_resume *resume)
{
    krait_kernel_walk_on_free(resume->walk);
    krait_strtab_done(&resume->names);
    resume->walk = NULL;
    resume->walked = 0;
}
