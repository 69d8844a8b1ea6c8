/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel.h"

#include "trace/kernel/kernel_list.h"
#include "trace/kernel/kernel_resume.h"
#include "trace/kernel/kernel_tracks.h"
#include "trace/kernel/machines.h"
#include "trace/kernel_raw_kept.h"
#include "trace/lttng_functions.h"

#include <string.h>

struct machine {
    const char **dirs; /* some of the kernel's */
    uint32_t count;
    struct krait_kernel_events *events; /* NULL until they are asked for */
    struct krait_kernel_known known;    /* states NULL: the same */
    struct krait_kernel_list list;      /* if has_list */
    bool has_list, was_given;           /* it was handed in */
    bool is_damaged;                    /* the run that `known` is of met damage */
    bool has_first;
    int64_t first_ns;
    struct krait_kernel_resume *resume; /* of a recording that goes on, once there are events; else NULL */
    struct krait_raw_kept *raw;         /* of a trace that goes on; else NULL */
};

struct kernel {
    const char **dirs; /* by machine */
    uint32_t count;
    struct machine *machines;
    uint32_t machine_count;
};

bool krait_kernel_takes(const struct krait_folder *folder)
{
    const struct krait_ctf_metadata *metadata = folder->metadata;
    return metadata && (strcmp(krait_ctf_env_text(metadata, "domain", ""), "kernel") == 0 ||
                        krait_kernel_events_takes(metadata));
}

static int open_events(struct machine *machine, struct krait_err *err)
{
    if (!machine)
        return krait_err_set(err, -ENODATA, "nothing was recorded in the kernel");
    return machine->events ? 0
                           : krait_kernel_events_open(&machine->events, machine->dirs, machine->count, err);
}

static struct machine *machine_of(const struct krait_trace *trace, uint32_t machine)
{
    const struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    return kernel && machine < kernel->machine_count ? &kernel->machines[machine] : NULL;
}

void krait_kernel_count_read(const struct krait_trace *trace, const struct krait_kernel_events *events,
                             uint64_t before)
{
    __atomic_fetch_add(&trace->impl->bytes_read, krait_kernel_events_bytes(events) - before,
                       __ATOMIC_RELAXED);
}

uint32_t krait_kernel_machines(const struct krait_trace *trace)
{
    const struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    return kernel ? kernel->machine_count : 0;
}

const char *krait_kernel_dir(const struct krait_trace *trace, uint32_t number)
{
    const struct machine *machine = machine_of(trace, number);
    return machine ? machine->dirs[0] : "";
}

const char *krait_kernel_host(const struct krait_trace *trace, uint32_t number)
{
    struct krait_err ignored;
    struct machine *machine = machine_of(trace, number);
    return open_events(machine, &ignored) ? "" : krait_kernel_events_env(machine->events, "hostname");
}

int krait_trace_kernel_of(const struct krait_trace *trace, uint32_t number, struct krait_kernel_events **out,
                          struct krait_err *err)
{
    struct machine *machine = machine_of(trace, number);
    int rc = open_events(machine, err);
    rc = rc ? rc : krait_kernel_events_prepare(machine->events, err);
    if (!rc)
        *out = machine->events;
    return rc;
}

int krait_trace_kernel_known_of(const struct krait_trace *trace, uint32_t number,
                                const struct krait_kernel_known **out, struct krait_err *err)
{
    const struct krait_kernel_options all = { .until_ns = UINT64_MAX, .functions = true };
    struct krait_kernel_events *events = NULL;
    int rc = krait_trace_kernel_of(trace, number, &events, err);
    if (rc)
        return rc;
    struct krait_kernel_known *known = &machine_of(trace, number)->known;
    if (!known->states) {
        rc = krait_kernel_states_new(&known->states, events, &all, err);
        machine_of(trace, number)->is_damaged = krait_kernel_events_damage(events)->code;
        if (!rc && krait_own_threads_init(&known->own, trace, known->states))
            rc = krait_err_set(err, -ENOMEM, "out of memory");
    }
    if (!rc)
        *out = known;
    return rc;
}

int krait_kernel_each_machine(const struct krait_trace *trace, const struct krait_track *const *tracks,
                              uint32_t count, const struct krait_walking *walking,
                              krait_machine_walk_fn *walk)
{
    KRAIT_AUTO_FREE const struct krait_track **own = calloc((size_t)count + 1, sizeof(*own));
    int rc = own ? 0 : -ENOMEM;
    for (uint32_t m = 0; m < krait_kernel_machines(trace) && !rc; m++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (tracks[i]->machine == m)
                own[n++] = tracks[i];
        }
        rc = n ? walk(trace, m, own, n, walking) : 0;
    }
    return rc;
}

const char *const *krait_kernel_dirs(const struct krait_trace *trace, uint32_t *count)
{
    const struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    *count = kernel ? kernel->count : 0;
    return kernel ? kernel->dirs : NULL;
}

static int64_t first_of(struct machine *machine)
{
    struct krait_err ignored;
    if (open_events(machine, &ignored))
        return INT64_MAX;
    if (!machine->has_first)
        machine->first_ns = krait_kernel_events_first(machine->events);
    machine->has_first = true;
    return machine->first_ns;
}

int64_t krait_kernel_first(const struct krait_trace *trace)
{
    const struct kernel *kernel = trace->impl->source[KRAIT_IMPORTER_kernel];
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; kernel && i < kernel->machine_count; i++)
        first = KRAIT_MIN(first, first_of(&kernel->machines[i]));
    return first;
}

/* ---- the list of tracks ---- */

static int list_anew(const struct krait_trace *trace, struct machine *machine, uint32_t number,
                     struct krait_err *err)
{
    const struct krait_kernel_known *known;
    int rc = krait_trace_kernel_known_of(trace, number, &known, err);
    if (!rc && krait_kernel_list_make(&machine->list, trace, known))
        rc = krait_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

static int list_on(const struct krait_trace *trace, struct machine *machine, uint32_t number,
                   struct krait_err *err)
{
    struct krait_kernel_events *events;
    int rc = krait_trace_kernel_of(trace, number, &events, err);
    if (rc)
        return rc;
    uint64_t before = krait_kernel_events_bytes(events);
    rc = krait_kernel_resume_list(machine->resume, &machine->list, trace, events);
    krait_kernel_count_read(trace, events, before);
    if (rc)
        krait_err_set(err, rc, rc == -ENOMEM ? "out of memory" : "there are no kernel events");
    return rc;
}

int krait_kernel_list_of(const struct krait_trace *trace, uint32_t number,
                         const struct krait_kernel_list **out, struct krait_err *err)
{
    struct machine *machine = machine_of(trace, number);
    int rc = 0;
    if (!machine)
        rc = krait_err_set(err, -ENODATA, "nothing was recorded in the kernel");
    else if (!machine->has_list)
        rc = (machine->resume ? list_on : list_anew)(trace, machine, number, err);
    if (rc)
        return rc;
    machine->has_list = true;
    *out = &machine->list;
    return 0;
}

const struct krait_kernel_list *krait_kernel_list_to_keep(const struct krait_trace *trace, uint32_t number)
{
    const struct machine *machine = machine_of(trace, number);
    return machine && machine->has_list && !machine->is_damaged ? &machine->list : NULL;
}

int krait_kernel_list_give(struct krait_trace *trace, uint32_t number, const struct krait_kernel_list *list)
{
    struct machine *machine = machine_of(trace, number);
    if (!machine || !krait_kernel_list_fits(list, trace))
        return -EINVAL;
    if (machine->has_list)
        return 0;
    machine->has_list = machine->was_given = !krait_kernel_list_copy(&machine->list, trace, list);
    return machine->has_list ? 0 : -ENOMEM;
}

void krait_kernel_lists_forget(struct krait_trace *trace)
{
    bool any = false;
    for (uint32_t i = 0; i < krait_kernel_machines(trace); i++) {
        struct machine *machine = machine_of(trace, i);
        any |= machine->was_given;
        machine->has_list &= !machine->was_given;
        machine->was_given = false;
    }
    if (any)
        krait_tracks_forget(trace, 1u << KRAIT_IMPORTER_kernel | 1u << KRAIT_IMPORTER_kernel_said);
}

struct krait_range krait_kernel_range(const struct krait_trace *trace, uint32_t number)
{
    const struct machine *machine = machine_of(trace, number);
    if (!machine || !machine->has_list)
        return (struct krait_range){ 0, 0 };
    return (struct krait_range){ (uint64_t)KRAIT_MAX(machine->list.begin_ns, 0),
                                 (uint64_t)machine->list.end_ns };
}

uint64_t krait_kernel_last(const struct krait_trace *trace)
{
    const struct krait_kernel_list *list;
    uint64_t last = 0;
    for (uint32_t i = 0; i < krait_kernel_machines(trace); i++) {
        if (!krait_kernel_list_of(trace, i, &list, NULL))
            last = KRAIT_MAX(last, (uint64_t)list->end_ns);
    }
    return last;
}

/* ---- opening and closing ---- */

/* What the metadata of krait's own folders tells. */
struct told {
    int64_t refused; /* how many events the disk refused; -1: no folder is krait's */
    int64_t no_room; /* how many --max-size had no room for */
    bool has_calls;  /* system calls were asked for, not only --kernel=sched */
};

static bool has_calls(const struct krait_ctf_metadata *metadata)
{
    static const char begin[] = "syscall_entry_";
    for (uint32_t s = 0; s < metadata->stream_count; s++) {
        for (uint32_t i = 0; i < metadata->streams[s]->event_count; i++) {
            if (strncmp(metadata->streams[s]->events[i]->name, begin, sizeof(begin) - 1) == 0)
                return true;
        }
    }
    return false;
}

static struct told told_of(const struct machine *machine, struct krait_folder *const *folders, uint32_t count)
{
    struct told told = { .refused = -1 };
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < machine->count; j++) {
            if (strcmp(machine->dirs[j], folders[i]->dir) != 0)
                continue;
            told.refused =
                KRAIT_MAX(told.refused, krait_ctf_env_int(folders[i]->metadata, "disk_refused", -1));
            told.no_room =
                KRAIT_MAX(told.no_room, krait_ctf_env_int(folders[i]->metadata, "size_limit_refused", 0));
            told.has_calls |= has_calls(folders[i]->metadata);
        }
    }
    return told;
}

#define RING_FULL "kernel events came faster than they were written: --kernel-ring-size"

/* What the tracer lost. Where that cannot be read, those who ask for the events are told why. */
static int sum_lost(struct krait_trace *trace, struct machine *machine, struct told told)
{
    struct krait_err ignored;
    if (open_events(machine, &ignored))
        return ignored.code == -ENOMEM ? -ENOMEM : 0;
    uint64_t lost = krait_kernel_events_lost(machine->events);
    if (told.refused < 0) {
        struct krait_trace_lost by_other = KRAIT_LTTNG_LOST(lost);
        by_other.of_kernel = true;
        return krait_trace_lose(trace, by_other);
    }
    uint64_t on_disk = KRAIT_MIN((uint64_t)told.refused, lost);
    uint64_t no_room = KRAIT_MIN((uint64_t)KRAIT_MAX(told.no_room, 0), lost - on_disk);
    const struct krait_trace_lost reasons[] = {
        { "kernel ring full", told.has_calls ? RING_FULL ", or --kernel=sched for fewer" : RING_FULL,
          lost - on_disk - no_room, true },
        { "kernel size limit",
          "these events were still in the kernel's rings when the recording reached --max-size", no_room,
          true },
        { "kernel disk", "kernel events could not be written; free space and record again", on_disk, true },
    };
    int rc = 0;
    for (size_t i = 0; !rc && i < KRAIT_ARRAY_LEN(reasons); i++)
        rc = krait_trace_lose(trace, reasons[i]);
    return rc;
}

/* Which folders are of which machine; *count: how many there are. */
static int find_machines(const struct krait_trace *trace, struct krait_folder *const *folders, uint32_t *of,
                         uint32_t count, uint32_t *machines)
{
    int rc = trace->impl->machines_apart ? krait_kernel_machines_find(of, folders, count) : 1;
    *machines = rc < 0 ? 0 : (uint32_t)rc;
    return rc < 0 ? rc : 0;
}

/* Its folders one after the other. */
static int put_dirs(struct krait_trace *trace, struct kernel *kernel, struct krait_folder *const *folders,
                    const uint32_t *of, uint32_t count)
{
    for (uint32_t m = 0; m < kernel->machine_count; m++) {
        struct machine *machine = &kernel->machines[m];
        *machine = (struct machine){ .dirs = &kernel->dirs[kernel->count] };
        for (uint32_t i = 0; i < count; i++) {
            if (of[i] != m)
                continue;
            machine->dirs[machine->count] = krait_arena_strdup(&trace->impl->arena, folders[i]->dir);
            if (!machine->dirs[machine->count++])
                return -ENOMEM;
            kernel->count++;
        }
    }
    return 0;
}

static int make_kernel(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count)
{
    struct krait_arena *arena = &trace->impl->arena;
    struct kernel *kernel = krait_arena_alloc(arena, sizeof(*kernel));
    KRAIT_AUTO_FREE uint32_t *of = calloc(count, sizeof(*of));
    uint32_t machines = 0;
    int rc = kernel && of ? find_machines(trace, folders, of, count, &machines) : -ENOMEM;
    if (rc)
        return rc;
    *kernel = (struct kernel){ .dirs = krait_arena_alloc(arena, count * sizeof(*kernel->dirs)),
                               .machines = krait_arena_alloc(arena, machines * sizeof(*kernel->machines)),
                               .machine_count = machines };
    rc = kernel->dirs && kernel->machines ? put_dirs(trace, kernel, folders, of, count) : -ENOMEM;
    if (!rc)
        trace->impl->source[KRAIT_IMPORTER_kernel] = kernel;
    return rc;
}

/* One machine's alone: of several there is no program's recording, which is what goes on. */
static struct machine *machine_on(const struct krait_trace *trace)
{
    return trace && krait_kernel_machines(trace) == 1 ? machine_of(trace, 0) : NULL;
}

int krait_kernel_keep_names(struct krait_trace *trace, const struct krait_trace *before)
{
    const struct machine *machine = machine_on(before);
    return machine ? krait_kernel_resume_names(machine->resume, trace) : 0;
}

/* A part that cannot be read is told of elsewhere. */
static int go_on(const struct krait_trace *trace)
{
    struct machine *machine = machine_on(trace);
    const struct machine *before = machine_on(trace->impl->before);
    struct krait_err ignored;
    if (!machine || open_events(machine, &ignored))
        return 0;
    machine->raw = before && before->raw ? krait_raw_kept_ref(before->raw) : krait_raw_kept_new();
    if (!machine->raw)
        return -ENOMEM;
    return krait_kernel_resume_new(&machine->resume, machine->events, before ? before->resume : NULL);
}

bool krait_kernel_goes_on(const struct krait_trace *trace)
{
    const struct machine *machine = machine_on(trace);
    return machine && machine->resume;
}

struct krait_raw_kept *krait_kernel_raw_kept(const struct krait_trace *trace)
{
    const struct machine *machine = machine_on(trace);
    return machine ? machine->raw : NULL;
}

bool krait_kernel_settled(const struct krait_trace *trace, int64_t *until_ns, int64_t *end_ns)
{
    if (!krait_kernel_goes_on(trace))
        return false;
    *until_ns = krait_kernel_resume_until(machine_on(trace)->resume, end_ns);
    return true;
}

uint64_t krait_kernel_walked(const struct krait_trace *trace)
{
    return krait_kernel_goes_on(trace) ? krait_kernel_resume_walked(machine_on(trace)->resume) : 0;
}

void krait_kernel_walk_anew(const struct krait_trace *trace)
{
    if (krait_kernel_goes_on(trace))
        krait_kernel_resume_anew(machine_on(trace)->resume);
}

static int walk_on(const struct krait_trace *trace, const struct krait_track *const *tracks, uint32_t count,
                   const struct krait_walking *walking)
{
    struct machine *machine = machine_on(trace);
    uint64_t before = krait_kernel_events_bytes(machine->events);
    int rc = krait_kernel_resume_walk(machine->resume, trace, tracks, count, walking);
    krait_kernel_count_read(trace, machine->events, before);
    return rc;
}

static int open_kernel(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                       struct krait_err *err)
{
    int rc = make_kernel(trace, folders, count);
    trace->has_kernel = !rc;
    if (!rc && trace->impl->goes_on)
        rc = go_on(trace);
    bool asked = !(trace->impl->needs & KRAIT_CALLS_ALONE);
    for (uint32_t m = 0; asked && !rc && m < krait_kernel_machines(trace); m++)
        rc = sum_lost(trace, machine_of(trace, m), told_of(machine_of(trace, m), folders, count));
    return rc ? krait_err_set(err, -ENOMEM, "out of memory") : 0;
}

static void close_kernel(void *source)
{
    struct kernel *kernel = source;
    for (uint32_t i = 0; i < kernel->machine_count; i++) {
        struct machine *machine = &kernel->machines[i];
        krait_kernel_resume_free(machine->resume);
        krait_raw_kept_unref(machine->raw);
        krait_own_threads_done(&machine->known.own);
        krait_kernel_states_free(machine->known.states);
        krait_kernel_events_close(machine->events);
    }
}

const struct krait_importer krait_importer_kernel = { .takes = krait_kernel_takes,
                                                      .open = open_kernel,
                                                      .kinds =
                                                          1 << KRAIT_TRACK_STATES | 1 << KRAIT_TRACK_SLICES |
                                                          1 << KRAIT_TRACK_COUNTER | 1 << KRAIT_TRACK_FLOWS,
                                                      .tracks = krait_kernel_tracks_find,
                                                      .walk_many = krait_kernel_tracks_walk,
                                                      .walk_on = walk_on,
                                                      .close = close_kernel };
