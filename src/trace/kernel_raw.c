/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel_raw.h"

#include "trace/kernel_raw_kept.h"

#include "ctf/read/merge.h"
#include "ctf/read/reader.h"
#include "ctf/read/value.h"
#include "ctf/text/event_text.h"
#include "trace/importer.h"
#include "trace/kernel/kernel.h"

#include <string.h>

enum { NOT_KNOWN = -1 };

/* What is known about an event class. */
struct class
{
    bool wanted, switches;
    const struct krait_locator *cpu, *tid, *pid, *next; /* NULL: it has no such field */
};

struct raw {
    const struct krait_raw_walk *walk;
    struct krait_ctf_reader *reader;
    struct krait_ctf_merge *merge;
    struct krait_arena arena;
    struct krait_map classes; /* by address */
    struct krait_lines lines;
    struct krait_buf text;
    int64_t *runs; /* the thread, by CPU: the walk's, or these */
    int64_t own_runs[KRAIT_RAW_CPUS];
};

static void raw_free(struct raw **raw)
{
    if (!*raw)
        return;
    krait_ctf_merge_free((*raw)->merge);
    krait_ctf_close((*raw)->reader);
    krait_arena_done(&(*raw)->arena);
    krait_map_done(&(*raw)->classes);
    krait_lines_done(&(*raw)->lines);
    krait_buf_done(&(*raw)->text);
    free(*raw);
}

/* -- fields that tell where it happened -- */

struct place {
    enum krait_field_scope scope;
    const char *path;
};

/* The first of some that the class has. */
static const struct krait_locator *find_field(struct raw *raw, const struct krait_ctf_cursor *cursor,
                                              const struct place *places, size_t count)
{
    const struct krait_locator *locator;
    struct krait_err ignored;
    for (size_t i = 0; i < count; i++) {
        if (krait_locator_new(&locator, &raw->arena, cursor->trace, cursor->event, places[i].scope,
                              places[i].path, &ignored) == 0)
            return locator;
    }
    return NULL;
}

static int64_t read_field(const struct krait_locator *locator, struct krait_ctf_cursor *cursor)
{
    struct krait_value value;
    if (!locator || krait_locator_value(locator, cursor, &value) || !krait_fc_is_int(value.node->fc))
        return NOT_KNOWN;
    return (int64_t)krait_value_int(&value);
}

/* LTTng's packets and contexts (lttng-modules, lttng-context-tid.c), and perf's fields (tools/perf/util/data-convert-bt.c). */
static const struct place cpus[] = { { KRAIT_FIELD_PACKET_CONTEXT, "cpu_id" },
                                     { KRAIT_FIELD_COMMON_CONTEXT, "cpu_id" },
                                     { KRAIT_FIELD_PAYLOAD, "perf_cpu" },
                                     { KRAIT_FIELD_PAYLOAD, "cpu_id" } };
static const struct place tids[] = { { KRAIT_FIELD_COMMON_CONTEXT, "tid" },
                                     { KRAIT_FIELD_EVENT_CONTEXT, "tid" },
                                     { KRAIT_FIELD_PAYLOAD, "perf_tid" } };
static const struct place pids[] = { { KRAIT_FIELD_COMMON_CONTEXT, "pid" },
                                     { KRAIT_FIELD_EVENT_CONTEXT, "pid" },
                                     { KRAIT_FIELD_PAYLOAD, "perf_pid" } };
/* LTTng's contexts of programs (lttng-ust, lttng-context-vtid.c and -vpid.c). */
static const struct place vtids[] = { { KRAIT_FIELD_COMMON_CONTEXT, "vtid" },
                                      { KRAIT_FIELD_EVENT_CONTEXT, "vtid" } };
static const struct place vpids[] = { { KRAIT_FIELD_COMMON_CONTEXT, "vpid" },
                                      { KRAIT_FIELD_EVENT_CONTEXT, "vpid" } };
static const struct place next_tids[] = { { KRAIT_FIELD_PAYLOAD, "next_tid" },
                                          { KRAIT_FIELD_PAYLOAD, "next_pid" } };

/* Where a thread has another number in its own namespace, the kernel's events are about the kernel's numbers. */
static void find_thread(struct raw *raw, const struct krait_ctf_cursor *cursor, struct class *class)
{
    bool is_programs = strcmp(krait_ctf_env_text(cursor->trace->metadata, "domain", ""), "ust") == 0;
    class->tid = is_programs ? find_field(raw, cursor, vtids, KRAIT_ARRAY_LEN(vtids))
                             : find_field(raw, cursor, tids, KRAIT_ARRAY_LEN(tids));
    class->pid = is_programs ? find_field(raw, cursor, vpids, KRAIT_ARRAY_LEN(vpids))
                             : find_field(raw, cursor, pids, KRAIT_ARRAY_LEN(pids));
}

/* The cursor's class, looked up once; NULL when memory is out. */
static struct class *class_of(struct raw *raw, const struct krait_ctf_cursor *cursor)
{
    const struct krait_event_class *event = cursor->event;
    uint64_t address = (uintptr_t)event, *known = krait_map_get(&raw->classes, address);
    if (known)
        return (struct class *)(uintptr_t)*known;
    struct class *class = KRAIT_ARENA_NEW(&raw->arena, struct class);
    const char *colon = strrchr(event->name, ':'), *name = colon ? colon + 1 : event->name;
    if (!class || krait_map_put(&raw->classes, address, (uintptr_t) class))
        return NULL;
    class->wanted = raw->walk->wants(raw->walk->ctx, event->name);
    class->switches = strcmp(name, "sched_switch") == 0;
    class->cpu = find_field(raw, cursor, cpus, KRAIT_ARRAY_LEN(cpus));
    find_thread(raw, cursor, class);
    if (class->switches)
        class->next = find_field(raw, cursor, next_tids, KRAIT_ARRAY_LEN(next_tids));
    return class;
}

/* -- events -- */

/* The cursor's event, whose fields are passed. A failure of the cursor's is in `met`. */
static int take_event(struct raw *raw, struct krait_ctf_cursor *cursor, int *met)
{
    const struct class *class = class_of(raw, cursor);
    uint64_t t_ns = (uint64_t)KRAIT_MAX(cursor->ns, 0);
    const struct krait_range *range = &raw->walk->range;
    if (!class)
        return -ENOMEM;
    bool wanted = class->wanted && t_ns >= range->from_ns && t_ns < range->to_ns;
    krait_buf_clear(&raw->text);
    *met = wanted ? krait_event_text(&raw->lines, cursor, &raw->text) : krait_ctf_event_skip(cursor);
    if (*met || (!wanted && !class->switches))
        return 0;
    int64_t cpu = read_field(class->cpu, cursor), tid = read_field(class->tid, cursor);
    bool has_place = cpu >= 0 && cpu < KRAIT_RAW_CPUS;
    struct krait_raw_event event = { .t_ns = t_ns, .name = cursor->event->name, .cpu = cpu };
    event.host = krait_ctf_env_text(cursor->trace->metadata, "hostname", "");
    event.tid = tid >= 0 ? tid : has_place ? raw->runs[cpu] : NOT_KNOWN;
    event.pid = read_field(class->pid, cursor);
    krait_buf_char(&raw->text, '\0');
    if (raw->text.failed)
        return -ENOMEM;
    event.fields = raw->text.data;
    int64_t next = class->switches && has_place ? read_field(class->next, cursor) : NOT_KNOWN;
    int rc = wanted ? raw->walk->take(raw->walk->ctx, &event) : 0;
    if (!rc && class->switches && has_place)
        raw->runs[cpu] = next;
    return rc;
}

static void see_last(const struct krait_raw_walk *walk, uint64_t t_ns)
{
    if (walk->last_ns)
        *walk->last_ns = KRAIT_MAX(*walk->last_ns, KRAIT_MIN(t_ns, walk->range.to_ns));
}

static int take_events(struct raw *raw, struct krait_damage *damage)
{
    struct krait_ctf_cursor *cursor;
    int rc = 0, met = 0;
    while (!rc && met != -ENOMEM && (cursor = krait_ctf_merge_next(raw->merge))) {
        see_last(raw->walk, (uint64_t)KRAIT_MAX(cursor->ns, 0));
        if (cursor->ns >= 0 && (uint64_t)cursor->ns >= raw->walk->range.to_ns)
            return 0;
        bool is_before = raw->walk->runs && (uint64_t)KRAIT_MAX(cursor->ns, 0) < raw->walk->range.from_ns;
        if (is_before)
            met = krait_ctf_event_skip(cursor);
        else
            rc = take_event(raw, cursor, &met);
        if (met < 0)
            krait_damage_say(damage, "%s", cursor->err.text);
    }
    const struct krait_err *met_first = krait_ctf_merge_damage(raw->merge);
    if (met_first->code && met_first->code != -ENOMEM)
        krait_damage_say(damage, "%s", met_first->text);
    return rc ? rc : met == -ENOMEM || met_first->code == -ENOMEM ? -ENOMEM : 0;
}

static int find_dirs(const struct krait_trace *trace, const struct krait_raw_walk *walk, const char ***dirs,
                     uint32_t *count)
{
    uint32_t kernels, others = 0;
    const char *const *of_kernel = krait_kernel_dirs(trace, &kernels);
    const char *const *of_others = walk->with_others ? krait_events_dirs(trace, &others) : NULL;
    *dirs = malloc(((size_t)kernels + others + 1) * sizeof(**dirs));
    for (uint32_t i = 0; i < kernels && *dirs; i++)
        (*dirs)[(*count)++] = of_kernel[i];
    for (uint32_t i = 0; i < others && *dirs; i++)
        (*dirs)[(*count)++] = of_others[i];
    return *dirs ? 0 : -ENOMEM;
}

static int walk_files(const struct krait_trace *trace, const struct krait_raw_walk *walk, char *damage,
                      size_t size)
{
    struct krait_damage kept = { damage, size };
    struct krait_err why = { 0 };
    KRAIT_AUTO_FREE const char **dirs = NULL;
    uint32_t count = 0;
    if (find_dirs(trace, walk, &dirs, &count))
        return -ENOMEM;
    if (!count)
        return 0;
    KRAIT_CLEANUP(raw_free) struct raw *raw = calloc(1, sizeof(*raw));
    if (!raw)
        return -ENOMEM;
    raw->walk = walk;
    raw->runs = walk->runs ? walk->runs : raw->own_runs;
    memset(raw->own_runs, 0xff, sizeof(raw->own_runs)); /* not known */
    int rc = krait_ctf_open(&raw->reader, dirs, count, NULL, &why);
    rc = rc ? rc : krait_ctf_merge_new(&raw->merge, raw->reader, &why);
    if (rc && rc != -ENOMEM)
        krait_damage_say(&kept, "%s", why.text);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    if (walk->runs)
        krait_ctf_merge_range(raw->merge, (int64_t)walk->range.from_ns,
                              (int64_t)KRAIT_MIN(walk->range.to_ns, (uint64_t)INT64_MAX));
    return take_events(raw, &kept);
}

int krait_kernel_raw_walk(const struct krait_trace *trace, const struct krait_raw_walk *walk, char *damage,
                          size_t size)
{
    struct krait_raw_kept *kept = walk->with_others ? NULL : krait_kernel_raw_kept(trace);
    return kept ? krait_raw_kept_walk(kept, trace, walk, walk_files, damage, size)
                : walk_files(trace, walk, damage, size);
}

static bool wants_any(void *ctx, const char *name)
{
    return true;
}

static int take_first(void *ctx, const struct krait_raw_event *event)
{
    *(uint64_t *)ctx = event->t_ns;
    return 1;
}

uint64_t krait_kernel_raw_first(const struct krait_trace *trace)
{
    uint64_t first_ns = 0;
    const struct krait_raw_walk walk = {
        .ctx = &first_ns, .range = KRAIT_RANGE_ALL, .wants = wants_any, .take = take_first
    };
    return krait_kernel_raw_walk(trace, &walk, NULL, 0) == 1 ? first_ns : 0;
}
