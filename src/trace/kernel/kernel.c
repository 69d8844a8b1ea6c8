/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel.h"

#include "trace/kernel/kernel_tracks.h"
#include "trace/lttng_functions.h"

#include <string.h>

struct kernel {
    const char **dirs;
    uint32_t count;
    struct krait_kernel_events *events; /* NULL until they are asked for */
    struct krait_kernel_known known;    /* states NULL: the same */
    bool has_first;
    int64_t first_ns;
};

bool krait_kernel_takes(const struct krait_folder *folder)
{
    const struct krait_ctf_metadata *metadata = folder->metadata;
    return metadata && (strcmp(krait_ctf_env_text(metadata, "domain", ""), "kernel") == 0 ||
                        krait_kernel_events_takes(metadata));
}

static int open_events(struct kernel *kernel, struct krait_err *err)
{
    if (!kernel)
        return krait_err_set(err, -ENODATA, "nothing was recorded in the kernel");
    return kernel->events ? 0 : krait_kernel_events_open(&kernel->events, kernel->dirs, kernel->count, err);
}

int krait_trace_kernel(const struct krait_trace *trace, struct krait_kernel_events **out,
                       struct krait_err *err)
{
    struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    int rc = open_events(kernel, err);
    rc = rc ? rc : krait_kernel_events_prepare(kernel->events, err);
    if (!rc)
        *out = kernel->events;
    return rc;
}

int krait_trace_kernel_known(const struct krait_trace *trace, const struct krait_kernel_known **out,
                             struct krait_err *err)
{
    const struct krait_kernel_options all = { .until_ns = UINT64_MAX, .functions = true };
    struct krait_kernel_events *events = NULL;
    int rc = krait_trace_kernel(trace, &events, err);
    if (rc)
        return rc;
    struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    struct krait_kernel_known *known = &kernel->known;
    if (!known->states) {
        rc = krait_kernel_states_new(&known->states, events, &all, err);
        if (!rc && krait_own_threads_init(&known->own, trace, known->states))
            rc = krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (!rc)
        *out = known;
    return rc;
}

const char *const *krait_kernel_dirs(const struct krait_trace *trace, uint32_t *count)
{
    const struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    *count = kernel ? kernel->count : 0;
    return kernel ? kernel->dirs : NULL;
}

int64_t krait_kernel_first(const struct krait_trace *trace)
{
    struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    struct krait_err ignored;
    if (open_events(kernel, &ignored))
        return INT64_MAX;
    if (!kernel->has_first)
        kernel->first_ns = krait_kernel_events_first(kernel->events);
    kernel->has_first = true;
    return kernel->first_ns;
}

/* What the tracer lost. Where that cannot be read, those who ask for the events are told why. */
static int sum_lost(struct krait_trace *trace, struct kernel *kernel, struct krait_folder *const *folders)
{
    struct krait_err ignored;
    if (open_events(kernel, &ignored))
        return ignored.code == -ENOMEM ? -ENOMEM : 0;
    int64_t refused = -1; /* krait alone tells it */
    for (uint32_t i = 0; i < kernel->count; i++)
        refused = KRAIT_MAX(refused, krait_ctf_env_int(folders[i]->metadata, "disk_refused", -1));
    uint64_t lost = krait_kernel_events_lost(kernel->events), on_disk = KRAIT_MIN((uint64_t)refused, lost);
    if (refused < 0) {
        struct krait_trace_lost by_other = KRAIT_LTTNG_LOST(lost);
        by_other.of_kernel = true;
        return krait_trace_lose(trace, by_other);
    }
    int rc = krait_trace_lose(
        trace, (struct krait_trace_lost){ .reason = "kernel ring full",
                                          .advice = "kernel events came faster than they were written: "
                                                    "--kernel-ring-size",
                                          .count = lost - on_disk,
                                          .of_kernel = true });
    return rc ? rc
              : krait_trace_lose(
                    trace, (struct krait_trace_lost){
                               .reason = "kernel disk",
                               .advice = "kernel events could not be written; free space and record again",
                               .count = on_disk,
                               .of_kernel = true });
}

static int open_kernel(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                       struct krait_err *err)
{
    struct krait_arena *arena = &trace->impl->arena;
    struct kernel *kernel = krait_arena_alloc(arena, sizeof(*kernel));
    const char **dirs = krait_arena_alloc(arena, count * sizeof(*dirs));
    if (!kernel || !dirs)
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        dirs[i] = krait_arena_strdup(arena, folders[i]->dir);
        if (!dirs[i])
            return krait_err_set(err, -ENOMEM, "out of memory");
    }
    *kernel = (struct kernel){ .dirs = dirs, .count = count };
    trace->impl->source[KRAIT_IMPORTER_kernel] = kernel;
    trace->has_kernel = true;
    bool asked = !(trace->impl->needs & KRAIT_CALLS_ALONE);
    return asked && sum_lost(trace, kernel, folders) ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static void close_kernel(void *source)
{
    struct kernel *kernel = source;
    krait_own_threads_done(&kernel->known.own);
    krait_kernel_states_free(kernel->known.states);
    krait_kernel_events_close(kernel->events);
}

const struct krait_importer krait_importer_kernel = { .takes = krait_kernel_takes,
                                                      .open = open_kernel,
                                                      .kinds =
                                                          1 << KRAIT_TRACK_STATES | 1 << KRAIT_TRACK_SLICES |
                                                          1 << KRAIT_TRACK_COUNTER | 1 << KRAIT_TRACK_FLOWS,
                                                      .tracks = krait_kernel_tracks_find,
                                                      .walk_many = krait_kernel_tracks_walk,
                                                      .close = close_kernel };
