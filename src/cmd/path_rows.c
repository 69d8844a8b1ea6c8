/* SPDX-License-Identifier: Apache-2.0
 *
 * `krait path`: who takes part in the path, and the columns of its tables.
 */
#include "base/array.h"
#include "base/fmt.h"
#include "cmd/path.h"

enum { MILLION = 1000000 };

static const char *const kind_names[] = {
#define X(name, text) text,
    KRAIT_PATH_KINDS(X)
#undef X
};

/* -- names -- */

const struct krait_kthread *krait_path_thread(const struct path *p, uint32_t thread)
{
    return p->found->states->threads[thread];
}

/* Python's name for it where the recording has one, else the kernel's. */
const char *krait_path_thread_name(const struct path *p, const struct krait_kthread *t)
{
    const char *recorded = krait_own_thread_name(&p->threads, t);
    return recorded ? recorded : t->name;
}

const struct krait_kprocess *krait_path_process(const struct path *p, const struct krait_kthread *t)
{
    return t->process == KRAIT_NO_ID ? NULL : &p->found->states->processes[t->process];
}

static const char *device_name(const struct path *p, uint32_t device)
{
    return device == KRAIT_NO_ID ? NULL : krait_kernel_device(p->found->states, device);
}

static bool is_thread(const struct krait_competitor *had)
{
    return had->by && had->by != KRAIT_RUN_UNKNOWN;
}

/* Who had the CPU for longest that a segment's thread was ready for; NULL: nobody, or that is not known. */
static const struct krait_kthread *by_thread(const struct path *p, const struct krait_path_segment *s)
{
    const struct krait_competitor *had = s->had_count ? &p->found->had[s->had] : NULL;
    return krait_kernel_cause(p->found->states, krait_competitors_longest(had, s->had_count));
}

/* One of them: for people with its share where there are more, for programs with number and nanoseconds. */
static void tell_had(struct path *p, struct krait_buf *text, const struct krait_path_segment *s,
                     const struct krait_competitor *had)
{
    const struct krait_kthread *t = is_thread(had) ? krait_kernel_cause(p->found->states, had->by) : NULL;
    char share[KRAIT_FMT_SIZE];
    krait_buf_str(text, text->len ? ", " : "");
    krait_fmt_safe(text, t ? krait_path_thread_name(p, t) : had->by ? "unknown" : "idle");
    if (p->options->json || p->options->csv)
        krait_buf_fmt(text, " %d: %llu", t ? t->tid : 0, (unsigned long long)had->ns);
    else if (s->had_count > 1)
        krait_buf_fmt(text, " %s", krait_fmt_share(share, had->ns, (uint64_t)(s->end_ns - s->begin_ns)));
}

/* All who had it; for people also the time in which nobody had it, or it is not known who. */
static const char *behind(struct path *p, const struct krait_path_segment *s)
{
    KRAIT_AUTO_BUF text = { 0 };
    bool for_people = !p->options->json && !p->options->csv;
    for (uint32_t i = 0; i < s->had_count && by_thread(p, s); i++) {
        const struct krait_competitor *had = &p->found->had[s->had + i];
        if (for_people || is_thread(had))
            tell_had(p, &text, s, had);
    }
    return text.len ? krait_arena_strdup(&p->texts, text.data) : NULL;
}

/* -- who takes part -- */

uint64_t krait_path_duration(const struct path *p)
{
    const struct krait_critical_path *found = p->found;
    return (uint64_t)(found->segments[found->count - 1].end_ns - found->segments[0].begin_ns);
}

static void label_device(const struct path *p, struct path_member *member)
{
    const char *device = device_name(p, member->device);
    const char *kind = member->kind == KRAIT_PATH_IPI ? "another CPU" : kind_names[member->kind];
    snprintf(member->label, sizeof(member->label), "%s%s%s", kind, device ? " " : "", device ? device : "");
}

/* The member of a key, new where it was not met yet; NULL when memory is out. */
static struct path_member *member_of(struct path *p, struct krait_map *keys,
                                     const struct krait_path_segment *s)
{
    enum krait_path_kind kind = (enum krait_path_kind)s->kind;
    bool is_device = krait_path_is_device(kind);
    uint64_t key = is_device ? (uint64_t)(kind + 1) << 32 | s->device : s->thread;
    const uint64_t *known = krait_map_get(keys, key);
    if (known)
        return &p->members[*known];
    if (!KRAIT_GROW(p->members, p->member_cap, p->member_count + 1) ||
        krait_map_put(keys, key, p->member_count))
        return NULL;
    struct path_member *member = &p->members[p->member_count++];
    *member = (struct path_member){ .thread = is_device ? KRAIT_NO_ID : s->thread,
                                    .kind = kind,
                                    .device = s->device };
    if (is_device)
        label_device(p, member);
    return member;
}

int krait_path_sum_members(struct path *p)
{
    KRAIT_CLEANUP(krait_map_done) struct krait_map keys = { 0 };
    p->member_of = calloc(p->found->count, sizeof(*p->member_of));
    if (!p->member_of)
        return -ENOMEM;
    for (uint32_t i = 0; i < p->found->count; i++) {
        const struct krait_path_segment *s = &p->found->segments[i];
        struct path_member *member = member_of(p, &keys, s);
        if (!member)
            return -ENOMEM;
        uint64_t ns = (uint64_t)(s->end_ns - s->begin_ns);
        member->ns[s->kind] += ns;
        member->total_ns += ns;
        member->segments++;
        p->member_of[i] = (uint32_t)(member - p->members);
    }
    return 0;
}

void krait_path_member_name(struct krait_buf *out, const struct path *p, const struct path_member *member)
{
    if (member->thread == KRAIT_NO_ID) {
        krait_fmt_safe(out, member->label);
        return;
    }
    const struct krait_kthread *t = krait_path_thread(p, member->thread);
    const char *name = krait_path_thread_name(p, t);
    krait_fmt_safe(out, name);
    krait_buf_fmt(out, "%s%d", *name ? " " : "", t->tid);
}

/* -- columns -- */

static const char *host_name(const struct path *p, uint32_t host)
{
    return *p->found->hosts[host] ? p->found->hosts[host] : NULL;
}

static struct krait_sheet_cell tid_of(const struct krait_kthread *t)
{
    return krait_sheet_number(t ? (uint64_t)t->tid : KRAIT_SHEET_NONE);
}

#define GETTER(name) static struct krait_sheet_cell get_##name(void *of, const void *row, size_t arg)

/* -- of those who take part: a row is a struct path_member -- */

static const struct krait_kthread *member_thread(const struct path *p, const struct path_member *m)
{
    return m->thread == KRAIT_NO_ID ? NULL : krait_path_thread(p, m->thread);
}

static const struct krait_kprocess *member_process(const struct path *p, const struct path_member *m)
{
    const struct krait_kthread *t = member_thread(p, m);
    return t ? krait_path_process(p, t) : NULL;
}

GETTER(share)
{
    const struct path_member *m = row;
    return krait_sheet_number((uint64_t)((unsigned __int128)m->total_ns * MILLION / krait_path_duration(of)));
}

GETTER(waited)
{
    const struct path_member *m = row;
    return krait_sheet_number(m->thread == KRAIT_NO_ID ? m->total_ns : 0);
}

GETTER(member_kind)
{
    const struct path_member *m = row;
    return krait_sheet_name(m->thread == KRAIT_NO_ID ? kind_names[m->kind] : "thread");
}

GETTER(member_device)
{
    const struct path_member *m = row;
    return krait_sheet_name(device_name(of, m->device));
}

GETTER(own_host)
{
    return krait_sheet_name(host_name(of, 0));
}

GETTER(member_tid)
{
    return tid_of(member_thread(of, row));
}

GETTER(member_pid)
{
    const struct krait_kprocess *process = member_process(of, row);
    return krait_sheet_number(process ? (uint64_t)process->pid : KRAIT_SHEET_NONE);
}

GETTER(member_process)
{
    const struct krait_kprocess *process = member_process(of, row);
    return krait_sheet_name(process ? process->name : NULL);
}

GETTER(member_name)
{
    const struct path_member *m = row;
    const struct krait_kthread *t = member_thread(of, m);
    return krait_sheet_name(t ? krait_path_thread_name(of, t) : m->label);
}

#define NS(title, key, drop, ...)                                                                      \
    {                                                                                                  \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS, KRAIT_SHEET_DASH | KRAIT_SHEET_RANKED, __VA_ARGS__ \
    }
#define QUIET_NS(title, key, drop, ...)                                            \
    {                                                                              \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NS,                                \
            KRAIT_SHEET_DASH | KRAIT_SHEET_QUIET | KRAIT_SHEET_RANKED, __VA_ARGS__ \
    }
#define ID(title, key, drop, get)                                                \
    {                                                                            \
        { title, 0, 0, drop }, key, KRAIT_SHEET_NUMBER, KRAIT_SHEET_DASH, get, 0 \
    }
#define NAME(title, key, min, drop, flags, get)                                                              \
    {                                                                                                        \
        { title, KRAIT_COLUMN_LEFT | KRAIT_COLUMN_SHORTEN, min, drop }, key, KRAIT_SHEET_NAME, flags, get, 0 \
    }
#define OF(member)    krait_sheet_number_at, offsetof(struct path_member, member)
#define OF_KIND(kind) OF(ns[KRAIT_PATH_##kind])

static const struct krait_sheet_column member_columns[] = {
    { { "share", 0, 0, 0 }, "share", KRAIT_SHEET_SHARE, 0, get_share, 0 },
    NS("time", "path_ns", 0, OF(total_ns)),
    NS("runs", "running_ns", 3, OF_KIND(RUNNING)),
    QUIET_NS("woken", "woken_ns", 3, OF_KIND(WOKEN)),
    QUIET_NS("preempted", "preempted_ns", 3, OF_KIND(PREEMPTED)),
    QUIET_NS("irq", "interrupted_ns", 3, OF_KIND(INTERRUPTED)),
    QUIET_NS("waited for", "waited_ns", 3, get_waited, 0),
    QUIET_NS("blocked", "blocked_ns", 3, OF_KIND(BLOCKED)),
    QUIET_NS("unknown", "unknown_ns", 3, OF_KIND(UNKNOWN)),
    { { "parts", 0, 0, 7 }, "segments", KRAIT_SHEET_COUNT, 0, OF(segments) },
    NAME("kind", "kind", 0, 0, KRAIT_SHEET_DATA, get_member_kind),
    NAME("device", "device", 0, 0, KRAIT_SHEET_DATA, get_member_device),
    NAME("host", "host", 0, 0, KRAIT_SHEET_DATA, get_own_host),
    ID("tid", "tid", 0, get_member_tid),
    ID("pid", "pid", 9, get_member_pid),
    NAME("process", "process", 8, 8, KRAIT_SHEET_DASH, get_member_process),
    NAME("who", "name", 12, 0, 0, get_member_name),
};

#undef OF_KIND
#undef OF

/* -- of segments: a row is a struct krait_path_segment -- */

GETTER(begin)
{
    const struct path *p = of;
    const struct krait_path_segment *s = row;
    return krait_sheet_number((uint64_t)(s->begin_ns - p->pick.zero_ns));
}

GETTER(duration)
{
    const struct krait_path_segment *s = row;
    return krait_sheet_number((uint64_t)(s->end_ns - s->begin_ns));
}

/* What a segment is; people see the device with it, "disk vda". */
GETTER(what)
{
    const struct path *p = of;
    const struct krait_path_segment *s = row;
    const struct path_member *member = &p->members[p->member_of[s - p->found->segments]];
    bool for_people = !p->options->json && !p->options->csv;
    return krait_sheet_name(for_people && s->device != KRAIT_NO_ID ? member->label : kind_names[s->kind]);
}

GETTER(device)
{
    const struct krait_path_segment *s = row;
    return krait_sheet_name(device_name(of, s->device));
}

GETTER(tid)
{
    const struct krait_path_segment *s = row;
    return tid_of(krait_path_thread(of, s->thread));
}

GETTER(thread)
{
    const struct krait_path_segment *s = row;
    return krait_sheet_name(krait_path_thread_name(of, krait_path_thread(of, s->thread)));
}

GETTER(call)
{
    const struct path *p = of;
    const struct krait_path_segment *s = row;
    return krait_sheet_name(s->call == KRAIT_NO_ID ? NULL : p->found->states->calls.texts[s->call]);
}

GETTER(by)
{
    const struct krait_kthread *by = by_thread(of, row);
    return krait_sheet_name(by ? krait_path_thread_name(of, by) : NULL);
}

GETTER(by_tid)
{
    return tid_of(by_thread(of, row));
}

GETTER(behind)
{
    return krait_sheet_name(behind(of, row));
}

GETTER(depth)
{
    const struct krait_path_segment *s = row;
    return krait_sheet_number(s->depth);
}

GETTER(host)
{
    const struct krait_path_segment *s = row;
    return krait_sheet_name(host_name(of, s->host));
}

static const struct krait_sheet_column segment_columns[] = {
    { { "time", 0, 0, 0 }, "time_ns", KRAIT_SHEET_TIME, 0, get_begin, 0 },
    NS("took", "duration_ns", 0, get_duration, 0),
    NAME("what", "kind", 11, 0, 0, get_what),
    NAME("device", "device", 0, 0, KRAIT_SHEET_DATA, get_device),
    ID("tid", "tid", 0, get_tid),
    NAME("thread", "name", 8, 0, 0, get_thread),
    NAME("in the call", "syscall", 8, 0, KRAIT_SHEET_DASH, get_call),
    NAME("by", "by_name", 0, 0, KRAIT_SHEET_DATA, get_by),
    { { "by tid", 0, 0, 0 }, "by_tid", KRAIT_SHEET_NUMBER, KRAIT_SHEET_DATA, get_by_tid, 0 },
    NAME("behind", "behind", 8, 1, KRAIT_SHEET_DASH, get_behind),
    { { "depth", 0, 0, 2 }, "depth", KRAIT_SHEET_COUNT, 0, get_depth, 0 },
    NAME("host", "host", 0, 0, KRAIT_SHEET_DATA, get_host),
};

int krait_path_sheet(struct path *p, bool of_segments, struct krait_sheet *sheet)
{
    if (of_segments)
        *sheet = (struct krait_sheet){ .columns = segment_columns,
                                       .column_count = KRAIT_ARRAY_LEN(segment_columns),
                                       .of = p };
    else
        *sheet = (struct krait_sheet){ .columns = member_columns,
                                       .column_count = KRAIT_ARRAY_LEN(member_columns),
                                       .of = p };
    for (uint32_t i = 0; i < (of_segments ? p->found->count : p->member_count); i++)
        krait_sheet_add(sheet, of_segments ? (const void *)&p->found->segments[i] : &p->members[i]);
    if (sheet->failed)
        return -ENOMEM;
    return of_segments ? 0 : krait_sheet_sort(sheet, "path_ns", NULL);
}
