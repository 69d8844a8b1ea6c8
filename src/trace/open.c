/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the model: the folders once, each importer with those that it takes.
 */
#include "trace/importer.h"

#include "base/array.h"
#include "base/buf.h"
#include "trace/kernel/kernel.h"
#include "trace/kernel_raw.h"
#include "trace/own.h"
#include "trace/places.h"

#include <string.h>

const struct krait_importer *const krait_importers[KRAIT_IMPORTERS] = {
#define KRAIT_IMPORTER(id, text) [KRAIT_IMPORTER_##id] = &krait_importer_##id,
#include "trace/importers.def"
#undef KRAIT_IMPORTER
};

/* -- what importers add -- */

uint32_t krait_trace_intern(struct krait_trace *trace, const struct krait_func *func)
{
    struct krait_trace_impl *impl = trace->impl;
    KRAIT_AUTO_BUF key = { 0 };
    krait_buf_fmt(&key, "%d %u %u %u ", func->kind, func->line, func->site_func, func->site_line);
    size_t module = key.len;
    krait_buf_add(&key, func->module, strlen(func->module) + 1);
    size_t name = key.len;
    krait_buf_add(&key, func->name, strlen(func->name) + 1);
    size_t file = key.len;
    krait_buf_str(&key, func->file);
    if (key.failed || !KRAIT_GROW(trace->funcs, impl->func_cap, trace->func_count + 1))
        return KRAIT_NO_ID;
    uint32_t id = krait_strtab_add(&impl->keys, key.data, key.len);
    if (id == KRAIT_NO_ID || id < trace->func_count)
        return id;
    const char *text = impl->keys.texts[id]; /* the strings live in the key */
    trace->funcs[id] = *func;
    trace->funcs[id].module = text + module;
    trace->funcs[id].name = text + name;
    trace->funcs[id].file = text + file;
    trace->funcs[id].base = id;
    trace->funcs[id].is_own = krait_own_is(&trace->funcs[id]);
    trace->has_own |= trace->funcs[id].is_own;
    trace->func_count = id + 1;
    if (func->site_func != KRAIT_NO_ID || func->site_line) {
        struct krait_func base = *func;
        base.site_func = KRAIT_NO_ID;
        base.site_line = 0;
        uint32_t base_id = krait_trace_intern(trace, &base);
        trace->funcs[id].base = base_id == KRAIT_NO_ID ? id : base_id;
    }
    return id;
}

static int intern_unknown(struct krait_trace *trace)
{
    struct krait_func func = { .name = "?", .module = "", .file = "", .site_func = KRAIT_NO_ID };
    func.kind = KRAIT_FUNC_PYTHON;
    bool ok = krait_trace_intern(trace, &func) == KRAIT_FUNC_UNKNOWN_PYTHON;
    func.kind = KRAIT_FUNC_C;
    return ok && krait_trace_intern(trace, &func) == KRAIT_FUNC_UNKNOWN_C ? 0 : -ENOMEM;
}

struct krait_process *krait_trace_add_process(struct krait_trace *trace)
{
    if (!KRAIT_GROW(trace->processes, trace->impl->process_cap, trace->process_count + 1))
        return NULL;
    struct krait_process *process = &trace->processes[trace->process_count++];
    *process = (struct krait_process){ .name = "",
                                       .command = "",
                                       .runtime = "",
                                       .host = "",
                                       .dir = "",
                                       .origin = "",
                                       .end = "",
                                       .end_status = -1 };
    return process;
}

struct krait_thread *krait_trace_add_thread(struct krait_trace *trace)
{
    if (!KRAIT_GROW(trace->threads, trace->impl->thread_cap, trace->thread_count + 1))
        return NULL;
    struct krait_thread *thread = &trace->threads[trace->thread_count++];
    *thread = (struct krait_thread){ .name = "" };
    return thread;
}

struct krait_track *krait_trace_add_track(struct krait_trace *trace)
{
    if (!KRAIT_GROW(trace->tracks, trace->impl->track_cap, trace->track_count + 1))
        return NULL;
    struct krait_track *track = &trace->tracks[trace->track_count++];
    *track = (struct krait_track){ .process = KRAIT_NO_ID,
                                   .thread = KRAIT_NO_ID,
                                   .host = "",
                                   .process_name = "",
                                   .thread_name = "",
                                   .name = "",
                                   .unit = "" };
    return track;
}

struct krait_track *krait_trace_add_thread_track(struct krait_trace *trace, uint32_t thread,
                                                 enum krait_importer_id importer, enum krait_track_kind kind,
                                                 const char *name)
{
    struct krait_track *track = krait_trace_add_track(trace);
    if (!track)
        return NULL;
    track->kind = kind;
    track->of = KRAIT_OF_THREAD;
    track->importer = importer;
    track->process = trace->threads[thread].process;
    track->thread = track->key = thread;
    track->number = trace->threads[thread].tid;
    track->name = name;
    return track;
}

int krait_trace_lose(struct krait_trace *trace, struct krait_trace_lost lost)
{
    for (uint32_t i = 0; i < trace->lost_count; i++) {
        if (strcmp(trace->lost[i].reason, lost.reason) == 0) {
            trace->lost[i].count += lost.count;
            return 0;
        }
    }
    if (!lost.count)
        return 0;
    if (!KRAIT_GROW(trace->lost, trace->impl->lost_cap, trace->lost_count + 1))
        return -ENOMEM;
    trace->lost[trace->lost_count++] = lost;
    return 0;
}

uint64_t krait_trace_kernel_lost(const struct krait_trace *trace)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < trace->lost_count; i++)
        n += trace->lost[i].of_kernel ? trace->lost[i].count : 0;
    return n;
}

uint32_t krait_trace_name(const struct krait_trace *trace, const char *text)
{
    return krait_strtab_add(&trace->impl->names, text, strlen(text));
}

const char *krait_track_text(const struct krait_trace *trace, uint32_t name)
{
    return trace->impl->names.texts[name];
}

/* -- opening -- */

/* What one importer takes. Why it adds nothing is kept for who misses it. */
static int open_source(struct krait_trace *trace, const struct krait_importer *importer,
                       const struct krait_folders *folders)
{
    KRAIT_AUTO_FREE struct krait_folder **taken = calloc(folders->count, sizeof(struct krait_folder *));
    struct krait_err why = { 0 };
    uint32_t count = 0;
    if (!taken)
        return -ENOMEM;
    for (uint32_t i = 0; i < folders->count; i++) {
        if (folders->items[i].metadata && importer->takes(&folders->items[i]))
            taken[count++] = &folders->items[i];
    }
    int rc = count && importer->open ? importer->open(trace, taken, count, &why) : 0;
    if (rc && !trace->impl->no_calls.code)
        trace->impl->no_calls = why;
    return rc == -ENOMEM ? rc : 0;
}

/* A folder whose metadata cannot be read does not hide the others. */
static void note_unread(struct krait_trace *trace, const struct krait_folders *folders)
{
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    for (uint32_t i = 0; i < folders->count; i++) {
        if (folders->items[i].metadata)
            continue;
        if (!trace->impl->no_calls.code)
            trace->impl->no_calls = trace->impl->unread = folders->items[i].err;
        krait_damage_say(&damage, "%s; the process is left out", folders->items[i].err.text);
    }
}

/* Of what is there but has no calls: what it is, and what reads it. */
static void note_other(struct krait_trace *trace, const struct krait_folders *folders)
{
    struct krait_err *err = &trace->impl->no_calls;
    for (uint32_t i = 0; i < folders->count && !err->code; i++) {
        const struct krait_folder *folder = &folders->items[i];
        const char *tracer = krait_folder_tracer(folder);
        if (!folder->metadata)
            continue;
        if (krait_kernel_takes(folder))
            krait_err_set(err, -EINVAL,
                          "%s: recorded in the kernel, no process's; `krait states` and `krait cat` read it",
                          folder->dir);
        else
            krait_err_set(err, -EINVAL, "%s: recorded by %s, not by krait; `krait cat` reads it", folder->dir,
                          *tracer ? tracer : "another tracer");
    }
}

/* Beside a program's part, the kernel's of all recordings are one machine: their calls are told apart by processes. */
static bool are_machines_apart(const struct krait_trace *trace, const struct krait_folders *folders)
{
    bool apart = trace->impl->needs & KRAIT_MACHINES_APART;
    for (uint32_t i = 0; i < folders->count && apart; i++)
        apart = !folders->items[i].metadata || krait_kernel_takes(&folders->items[i]);
    return apart;
}

static int open_folders(struct krait_trace *trace, const struct krait_folders *folders)
{
    int rc = 0;
    note_unread(trace, folders);
    trace->impl->machines_apart = are_machines_apart(trace, folders);
    for (uint32_t i = 0; i < KRAIT_IMPORTERS && !rc; i++)
        rc = open_source(trace, krait_importers[i], folders);
    if (!trace->process_count)
        note_other(trace, folders);
    return rc;
}

int krait_trace_new(struct krait_trace **out)
{
    struct krait_trace *trace = calloc(1, sizeof(*trace));
    if (trace)
        trace->impl = calloc(1, sizeof(*trace->impl));
    *out = trace;
    if (!trace || !trace->impl || intern_unknown(trace)) {
        krait_trace_close(trace);
        *out = NULL;
        return -ENOMEM;
    }
    trace->begin_ns = UINT64_MAX;
    return 0;
}

/* What the verb cannot do without. */
static int check_needs(const struct krait_trace *trace, unsigned needs, const char *path,
                       struct krait_err *err)
{
    const struct krait_err *unread = &trace->impl->unread;
    if (needs & KRAIT_NEEDS_CALLS)
        return krait_trace_needs_calls(trace, err);
    if (!(needs & KRAIT_NEEDS_KERNEL) || trace->has_kernel)
        return 0;
    if (!unread->code)
        return krait_kernel_events_missing(path, err);
    if (err)
        *err = *unread;
    return unread->code;
}

int krait_trace_needs_calls(const struct krait_trace *trace, struct krait_err *err)
{
    if (trace->process_count)
        return 0;
    if (err)
        *err = trace->impl->no_calls;
    return trace->impl->no_calls.code ? trace->impl->no_calls.code : -EINVAL;
}

static int keep_paths(struct krait_trace_impl *impl, const char *const *paths, size_t count)
{
    const char **kept = krait_arena_alloc(&impl->arena, KRAIT_MAX(count, 1ul) * sizeof(*kept));
    bool is_whole = kept != NULL;
    for (size_t i = 0; i < count && is_whole; i++) {
        kept[i] = krait_arena_strdup(&impl->arena, paths[i]);
        is_whole = kept[i] != NULL;
    }
    impl->paths = kept;
    impl->path_count = is_whole ? count : 0;
    return is_whole ? 0 : -ENOMEM;
}

/* So that what an earlier trace's reader has by these ids stays valid. */
static int keep_functions(struct krait_trace *trace, const struct krait_trace *before)
{
    for (uint32_t i = 0; before && i < before->func_count; i++) {
        struct krait_func func = before->funcs[i];
        func.holds_dropped = false; /* of the new trace nobody knows these two yet */
        func.suspends = KRAIT_SUSPENDS_NOT;
        if (krait_trace_intern(trace, &func) != i)
            return -ENOMEM;
    }
    return 0;
}

static int open_trace(struct krait_trace **out, const char *const *paths, size_t count, unsigned needs,
                      const struct krait_trace *before, bool goes_on, struct krait_err *err)
{
    KRAIT_CLEANUP(krait_folders_done) struct krait_folders folders = { 0 };
    int rc = krait_folders_find(&folders, paths, count, err);
    if (rc)
        return rc;
    struct krait_trace *trace;
    rc = krait_trace_new(&trace);
    if (!rc) {
        trace->impl->needs = needs;
        trace->impl->goes_on = goes_on;
        trace->impl->before = before;
        rc = keep_paths(trace->impl, paths, count);
        rc = rc ? rc : keep_functions(trace, before);
        rc = rc || !before ? rc : krait_kernel_keep_names(trace, before);
        rc = rc ? rc : open_folders(trace, &folders);
        trace->impl->before = NULL;
    }
    rc = rc ? krait_err_set(err, rc, "out of memory") : check_needs(trace, needs, paths[0], err);
    if (rc)
        krait_trace_close(trace);
    else
        *out = trace;
    return rc;
}

int krait_trace_open(struct krait_trace **out, const char *const *paths, size_t count, unsigned needs,
                     struct krait_err *err)
{
    return open_trace(out, paths, count, needs, NULL, false, err);
}

int krait_trace_open_on(struct krait_trace **out, const struct krait_trace *before, const char *const *paths,
                        size_t count, unsigned needs, struct krait_err *err)
{
    return open_trace(out, paths, count, needs, before, true, err);
}

uint64_t krait_trace_bytes_read(const struct krait_trace *trace)
{
    return __atomic_load_n(&trace->impl->bytes_read, __ATOMIC_RELAXED);
}

void krait_trace_close(struct krait_trace *trace)
{
    struct krait_trace_impl *impl = trace ? trace->impl : NULL;
    for (uint32_t i = 0; impl && i < KRAIT_IMPORTERS; i++) {
        if (impl->source[i])
            krait_importers[i]->close(impl->source[i]);
    }
    if (impl) {
        krait_strtab_done(&impl->keys);
        krait_strtab_done(&impl->names);
        krait_arena_done(&impl->arena);
    }
    free(impl);
    if (!trace)
        return;
    free(trace->omitted);
    free(trace->sets);
    free(trace->tracks);
    free(trace->lost);
    free(trace->tasks);
    free(trace->threads);
    free(trace->processes);
    free(trace->funcs);
    free(trace);
}

/* -- reading -- */

/* Of a kernel trace without any of the events that states need. Looked up once. */
static uint64_t raw_first(const struct krait_trace *trace)
{
    struct krait_trace_impl *impl = trace->impl;
    if (!impl->has_raw_first)
        impl->raw_first_ns = krait_kernel_raw_first(trace);
    impl->has_raw_first = true;
    return impl->raw_first_ns;
}

uint64_t krait_trace_zero(const struct krait_trace *trace)
{
    int64_t first = krait_kernel_first(trace);
    if (!trace->process_count)
        return !trace->has_kernel ? trace->begin_ns : first == INT64_MAX ? raw_first(trace) : (uint64_t)first;
    return KRAIT_MIN(trace->begin_ns, (uint64_t)KRAIT_MAX(first, 0));
}

uint64_t krait_trace_kept(const struct krait_trace *trace)
{
    uint64_t kept_ns = UINT64_MAX;
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct krait_process *process = &trace->processes[i];
        kept_ns = KRAIT_MIN(kept_ns, KRAIT_MAX(process->begin_ns, process->kept_ns));
    }
    return kept_ns == UINT64_MAX ? trace->begin_ns : kept_ns;
}

static int walk_calls(const struct krait_trace *trace, uint32_t thread, struct krait_walking walking)
{
    struct krait_range range = walking.range;
    if (thread >= trace->thread_count)
        return -EINVAL;
    if (range.from_ns >= range.to_ns || trace->threads[thread].begin_ns >= range.to_ns)
        return 0;
    KRAIT_AUTO_FREE struct krait_own *own = trace->has_own ? calloc(1, sizeof(*own)) : NULL;
    if (trace->has_own && !own)
        return -ENOMEM;
    if (own) {
        *own = (struct krait_own){ .trace = trace, .fn = walking.calls, .ctx = walking.ctx };
        walking.calls = krait_own_pass;
        walking.ctx = own;
    }
    return krait_importers[trace->threads[thread].importer]->calls(trace, thread, &walking);
}

int krait_trace_walk(const struct krait_trace *trace, uint32_t thread, struct krait_range range,
                     krait_call_batch_fn *fn, void *ctx, char *damage, size_t size)
{
    struct krait_walking walking = { .range = range, .ctx = ctx, .calls = fn, .damage = { damage, size } };
    return walk_calls(trace, thread, walking);
}

int krait_trace_walk_noting(struct krait_trace *trace, uint32_t thread, krait_call_batch_fn *fn, void *ctx,
                            char *damage, size_t size)
{
    struct krait_walking walking = {
        .range = KRAIT_RANGE_ALL, .ctx = ctx, .calls = fn, .damage = { damage, size }, .note_places = true
    };
    return walk_calls(trace, thread, walking);
}

int krait_trace_walk_on(struct krait_trace *trace, uint32_t thread, krait_call_batch_fn *fn, void *ctx,
                        bool *is_noted)
{
    struct krait_walking walking = {
        .range = KRAIT_RANGE_ALL, .ctx = ctx, .calls = fn, .goes_on = true, .note_places = true
    };
    int rc = walk_calls(trace, thread, walking);
    const struct krait_places *places = rc ? NULL : krait_places_of(trace, thread);
    *is_noted = places && places->end;
    return rc;
}

const char *krait_func_label(const struct krait_func *func, char *buf, size_t size)
{
    const char *module = krait_func_prefix(func->kind, func->module);
    snprintf(buf, size, "%s%s%s", module, *module ? "." : "", func->name);
    return buf;
}

const char *krait_func_kind_name(enum krait_func_kind kind)
{
    static const char *const names[] = { "python", "c", "native" };
    return names[kind];
}
