/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/kernel/kernel_events.h"

#include "ctf/format.h"
#include "ctf/read/range.h"
#include "ctf/read/reader.h"
#include "ctf/rows/row_order.h"
#include "trace/kernel/kernel_growing.h"
#include "trace/kernel/kernel_marks.h"
#include "trace/losses.h"
#include "trace/perf.h"

#include <string.h>

/* Which CPU the packet is of that a stream was met at last. */
struct lane {
    uint32_t packet;
    uint32_t cpu;
    bool known;
};

struct krait_kernel_events {
    struct krait_ctf_reader *reader;
    struct krait_row_set *rows;
    struct krait_kernel_event_class *classes; /* by the row class's index */
    const struct krait_locator **cpu_of; /* by the same: of the packet's cpu_id, made when it is asked for */
    struct lane *lanes;                  /* by stream */
    struct krait_kernel_marks marks;     /* once they are looked for */
    bool has_marks;
    uint32_t next_mark;         /* the first that was not handed out yet */
    struct krait_ctf_cursor at; /* of the first event of a packet */
    bool has_at, any, began;
    uint64_t bytes; /* of packets that were read */
    int64_t begin_ns, end_ns;
    int64_t cut_from_ns, cut_until_ns; /* it is the part of that range; INT64_MIN, INT64_MAX: all */
    struct krait_arena arena;
    struct krait_err damage;
};

/* -- names and fields -- */

struct kind_of_name {
    const char *name;
    enum krait_kernel_event_kind kind;
};

static const struct kind_of_name names[] = {
#define KRAIT_KERNEL_EVENT_KIND(kind, fields)
#define KRAIT_KERNEL_EVENT_NAME(kind, name) { name, KRAIT_KERNEL_EVENT_##kind },
#include "trace/kernel/kernel_events.def"
};

static const char *const fields_of[KRAIT_KERNEL_EVENT_KINDS] = {
#define KRAIT_KERNEL_EVENT_KIND(kind, fields) [KRAIT_KERNEL_EVENT_##kind] = fields,
#define KRAIT_KERNEL_EVENT_NAME(kind, name)
#include "trace/kernel/kernel_events.def"
};

/* Behind the part of the name that stands before the *; NULL where it is another name. */
static const char *rest_of(const char *name, const char *pattern)
{
    size_t n = strlen(pattern);
    if (n && pattern[n - 1] == '*')
        return strncmp(name, pattern, n - 1) == 0 ? name + n - 1 : NULL;
    return strcmp(name, pattern) == 0 ? "" : NULL;
}

/* Behind the subsystem that perf puts before a name, "sched:sched_switch"; NULL: this is not such a name. */
static const char *perf_name(const char *name)
{
    static const char *const systems[] = { "sched:", "syscalls:", "irq:", "irq_vectors:",
                                           "timer:", "block:",    "net:", "power:" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(systems); i++) {
        if (strncmp(name, systems[i], strlen(systems[i])) == 0)
            return name + strlen(systems[i]);
    }
    return NULL;
}

static enum krait_kernel_event_kind kind_of(const char *name, const char **rest)
{
    const char *perfs = perf_name(name);
    name = perfs ? perfs : name;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(names); i++) {
        if ((*rest = rest_of(name, names[i].name)))
            return names[i].kind;
    }
    return KRAIT_KERNEL_EVENT_NONE;
}

/* Texts are those fields whose names end so. */
static bool is_text_name(const char *name, size_t n)
{
    return n >= 4 && (strncmp(name + n - 4, "comm", 4) == 0 || strncmp(name + n - 4, "name", 4) == 0);
}

/* 0: there is no such field, or text where a number should be, or the other way round. */
static uint16_t cell_of(const struct krait_row_class *row, bool payload, const char *name, size_t n)
{
    bool text = is_text_name(name, n);
    for (uint32_t i = 0; i < row->field_count; i++) {
        const struct krait_row_field *field = &row->fields[i];
        bool named = strncmp(field->path, name, n) == 0 && !field->path[n];
        if (named && (field->scope == KRAIT_FIELD_PAYLOAD) == payload &&
            (text ? krait_fc_is_text(field->fc) : krait_fc_is_int(field->fc)))
            return field->cell;
    }
    return 0;
}

/* In perf's traces the kernel's own names: threads are called by pid, and of processes nothing is said. */
static uint16_t perf_cell_of(const struct krait_row_class *row, const char *name, size_t n)
{
    char own[32];
    bool is_tid = n >= 3 && n < sizeof(own) && strncmp(name + n - 3, "tid", 3) == 0;
    bool is_pid = n >= 3 && strncmp(name + n - 3, "pid", 3) == 0;
    if (!is_tid)
        return is_pid ? 0 : cell_of(row, true, name, n);
    memcpy(own, name, n);
    own[n - 3] = 'p';
    return cell_of(row, true, own, n);
}

static void know_fields(struct krait_kernel_event_class *cls, const struct krait_row_class *row)
{
    bool is_perfs = perf_name(row->event->name);
    const char *at = fields_of[cls->kind];
    bool needs_first = *at && *at != ' ';
    at += *at == ' ';
    for (unsigned i = 0; *at; i++) {
        size_t n = strcspn(at, " ");
        cls->cell[i] = is_perfs ? perf_cell_of(row, at, n) : cell_of(row, true, at, n);
        cls->texts |= (uint32_t)is_text_name(at, n) << i;
        at += n + (at[n] == ' ');
    }
    if (needs_first && !cls->cell[0])
        cls->kind = KRAIT_KERNEL_EVENT_NONE;
    cls->tid_cell = is_perfs ? 0 : cell_of(row, false, "tid", 3);
    if (!cls->tid_cell)
        cls->tid_cell = cell_of(row, true, "perf_tid", 8);
    cls->cpu_cell = is_perfs ? cell_of(row, true, "perf_cpu", 8) : cell_of(row, true, "cpu_id", 6);
}

static void know_class(struct krait_kernel_events *k, uint32_t i)
{
    struct krait_kernel_event_class *cls = &k->classes[i];
    const struct krait_row_class *row = &k->rows->classes[i];
    cls->index = i;
    cls->kind = (uint8_t)kind_of(row->event->name, &cls->rest);
    if (cls->kind)
        know_fields(cls, row);
}

/* -- opening -- */

bool krait_kernel_events_takes(const struct krait_ctf_metadata *metadata)
{
    for (uint32_t s = 0; s < metadata->stream_count; s++) {
        for (uint32_t i = 0; i < metadata->streams[s]->event_count; i++) {
            const char *rest;
            enum krait_kernel_event_kind kind = kind_of(metadata->streams[s]->events[i]->name, &rest);
            if (kind == KRAIT_KERNEL_EVENT_SWITCH || kind == KRAIT_KERNEL_EVENT_CALL_BEGIN ||
                kind == KRAIT_KERNEL_EVENT_RUN)
                return true;
        }
    }
    return false;
}

int krait_kernel_events_missing(const char *path, struct krait_err *err)
{
    return krait_err_set(err, -ENODATA,
                         "%s: no events of the kernel's scheduler or system calls; "
                         "krait record --kernel and LTTng record them",
                         path);
}

static const char *host_of(const struct krait_ctf_trace *trace)
{
    return krait_ctf_env_text(trace->metadata, "hostname", "");
}

/* Threads and CPUs are told by their numbers: of one host. */
static int check_hosts(const struct krait_ctf_reader *reader, struct krait_err *err)
{
    const struct krait_ctf_trace *first = reader->traces[0];
    for (uint32_t i = 1; i < reader->trace_count; i++) {
        const struct krait_ctf_trace *trace = reader->traces[i];
        if (strcmp(host_of(trace), host_of(first)) != 0)
            return krait_err_set(err, -ENOTSUP, "%s is of host %s, %s of host %s: give those of one host",
                                 first->dir, host_of(first), trace->dir, host_of(trace));
    }
    return 0;
}

/* Of several traces, all that they are parts of. */
static void know_cut(struct krait_kernel_events *k)
{
    k->cut_from_ns = INT64_MAX;
    k->cut_until_ns = INT64_MIN;
    for (uint32_t i = 0; i < k->reader->trace_count; i++) {
        const struct krait_ctf_metadata *metadata = k->reader->traces[i]->metadata;
        int64_t from = krait_ctf_env_int(metadata, KRAIT_ENV_CUT_FROM, INT64_MIN),
                until = krait_ctf_env_int(metadata, KRAIT_ENV_CUT_UNTIL, INT64_MAX);
        k->cut_from_ns = KRAIT_MIN(k->cut_from_ns, from);
        k->cut_until_ns = KRAIT_MAX(k->cut_until_ns, until);
    }
}

static int open_reader(struct krait_kernel_events *k, const char *const *paths, size_t count,
                       struct krait_err *err)
{
    const struct krait_ctf_options options = { .wants = krait_kernel_events_takes };
    int rc = krait_ctf_open(&k->reader, paths, count, &options, err);
    if (!rc && !k->reader->trace_count)
        rc = krait_kernel_events_missing(paths[0], err);
    rc = rc ? rc : check_hosts(k->reader, err);
    if (!rc)
        know_cut(k);
    return rc;
}

static int allocate(struct krait_kernel_events *k)
{
    size_t classes = KRAIT_MAX(k->rows->class_count, 1u), streams = KRAIT_MAX(k->reader->stream_count, 1u);
    k->classes = krait_arena_alloc(&k->arena, classes * sizeof(*k->classes));
    k->cpu_of = krait_arena_alloc(&k->arena, classes * sizeof(*k->cpu_of));
    k->lanes = krait_arena_alloc(&k->arena, streams * sizeof(*k->lanes));
    return k->classes && k->cpu_of && k->lanes ? 0 : -ENOMEM;
}

int krait_kernel_events_open(struct krait_kernel_events **out, const char *const *paths, size_t count,
                             struct krait_err *err)
{
    struct krait_kernel_events *k = calloc(1, sizeof(*k));
    int rc = k ? open_reader(k, paths, count, err) : krait_err_set(err, -ENOMEM, "out of memory");
    if (rc)
        krait_kernel_events_close(k);
    else
        *out = k;
    return rc;
}

int krait_kernel_events_prepare(struct krait_kernel_events *k, struct krait_err *err)
{
    if (k->lanes)
        return 0;
    if ((!k->rows && krait_row_set_new(&k->rows, k->reader, KRAIT_EMIT_ROWS, NULL)) || allocate(k))
        return krait_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < k->rows->class_count; i++)
        know_class(k, i);
    return 0;
}

void krait_kernel_events_close(struct krait_kernel_events *k)
{
    if (!k)
        return;
    if (k->has_at)
        krait_ctf_cursor_done(&k->at);
    krait_kernel_marks_done(&k->marks);
    krait_row_set_free(k->rows);
    krait_ctf_close(k->reader);
    krait_arena_done(&k->arena);
    free(k);
}

/* -- where it begins -- */

/* The time of a stream's first event at ns or later, if it was recorded then; INT64_MAX where it has no whole one. */
static int64_t first_from(struct krait_ctf_reader *reader, const struct krait_ctf_stream *stream, int64_t ns)
{
    struct krait_ctf_cursor cursor;
    int64_t first = INT64_MAX;
    if (krait_ctf_cursor_init(&cursor, reader, stream))
        return INT64_MAX;
    krait_ctf_cursor_range(&cursor, ns, INT64_MAX);
    while (first == INT64_MAX && krait_ctf_next(&cursor) == 1) {
        if (cursor.ns >= ns && !krait_perf_tells(stream->trace->metadata, cursor.event->name))
            first = cursor.ns;
        else if (krait_ctf_event_skip(&cursor))
            break;
    }
    krait_ctf_cursor_done(&cursor);
    return first;
}

int64_t krait_kernel_events_first(struct krait_kernel_events *k)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < k->reader->stream_count; i++)
        first = KRAIT_MIN(first, first_from(k->reader, k->reader->streams[i], INT64_MIN));
    return KRAIT_MAX(first, k->cut_from_ns);
}

bool krait_kernel_events_reach(struct krait_kernel_events *k, int64_t ns)
{
    for (uint32_t i = 0; i < k->reader->stream_count; i++) {
        if (first_from(k->reader, k->reader->streams[i], ns) != INT64_MAX)
            return true;
    }
    return false;
}

/* Where the walk begins: no search but for perf's. */
static int64_t begin_of(struct krait_kernel_events *k)
{
    for (uint32_t i = 0; i < k->rows->class_count; i++) {
        if (krait_perf_tells(k->reader->traces[0]->metadata, k->rows->classes[i].event->name))
            return krait_kernel_events_first(k);
    }
    return INT64_MIN;
}

/* -- the CPU -- */

static int ready_at(struct krait_kernel_events *k)
{
    if (!k->has_at && krait_ctf_cursor_init(&k->at, k->reader, NULL))
        return -ENOMEM;
    k->has_at = true;
    return 0;
}

/* Goes to the event whose row it is, so that its packet can be asked. */
static int go_to(struct krait_kernel_events *k, const struct krait_row *row, const uint64_t *cells)
{
    int rc = ready_at(k);
    return rc ? rc : krait_row_seek(&k->at, row, cells);
}

static KRAIT_COLD void know_cpu(struct krait_kernel_events *k, struct lane *lane, const struct krait_row *row,
                                const uint64_t *cells)
{
    const struct krait_locator **locator = &k->cpu_of[row->cls];
    struct krait_value value;
    struct krait_err ignored;
    lane->packet = (uint32_t)(cells[KRAIT_ROW_ORIGIN] >> 32);
    lane->known = true;
    lane->cpu = UINT32_MAX;
    if (go_to(k, row, cells))
        return;
    if (!*locator && krait_locator_new(locator, &k->arena, k->at.trace, k->at.event,
                                       KRAIT_FIELD_PACKET_CONTEXT, "cpu_id", &ignored))
        return;
    if (krait_locator_value(*locator, &k->at, &value) == 0 && krait_fc_is_int(value.node->fc))
        lane->cpu = (uint32_t)KRAIT_MIN(krait_value_int(&value), (uint64_t)UINT32_MAX);
}

/* Where nothing says it, the stream: tracers write one for each CPU. */
static inline uint32_t cpu_of(struct krait_kernel_events *k, const struct krait_row *row,
                              const uint64_t *cells)
{
    struct lane *lane = &k->lanes[(uint32_t)cells[KRAIT_ROW_ORIGIN]];
    if (KRAIT_UNLIKELY(!lane->known || lane->packet != cells[KRAIT_ROW_ORIGIN] >> 32))
        know_cpu(k, lane, row, cells);
    uint16_t own = k->classes[row->cls].cpu_cell;
    if (KRAIT_UNLIKELY(lane->cpu == UINT32_MAX) && own)
        return (uint32_t)KRAIT_MIN(cells[own], (uint64_t)UINT32_MAX);
    return lane->cpu == UINT32_MAX ? (uint32_t)cells[KRAIT_ROW_ORIGIN] : lane->cpu;
}

/* -- what is told beside the events -- */

/* `own`: of one program alone; in its events' contexts is who comes to run. */
static void hand_out_mark(const struct krait_kernel_mark *mark, const struct krait_kernel_event_walk *walk,
                          bool own)
{
    static const struct krait_kernel_event_class found = { .kind = KRAIT_KERNEL_EVENT_FOUND, .cell = { 1 } },
                                                 lost = { .kind = KRAIT_KERNEL_EVENT_LOST };
    const uint64_t cells[] = { 0, (uint64_t)mark->tid };
    const struct krait_kernel_event event = {
        .ns = mark->ns, .cpu = mark->cpu, .cls = mark->lost ? &lost : &found, .cells = cells
    };
    krait_kernel_event_handler *handler = walk->handlers[event.cls->kind];
    if (handler && event.cpu < KRAIT_KERNEL_EVENT_CPUS && (mark->lost || !own))
        handler(walk->ctx, &event);
}

/* Before an event of that time: a loss is behind all of its own time. */
static KRAIT_COLD void hand_out_marks(struct krait_kernel_events *k,
                                      const struct krait_kernel_event_walk *walk, int64_t ns)
{
    const struct krait_kernel_mark *marks = k->marks.items;
    bool own = krait_kernel_events_own(k);
    for (; k->next_mark < k->marks.count; k->next_mark++) {
        const struct krait_kernel_mark *mark = &marks[k->next_mark];
        if (!krait_kernel_mark_is_before(mark, ns))
            return;
        hand_out_mark(mark, walk, own);
    }
}

/* -- walking -- */

/* What stands in front of a part is no event of it, whatever its range. */
static bool is_in_front(const struct krait_kernel_events *k, const struct krait_row *row)
{
    return row->ns < k->cut_from_ns;
}

/* What a packet has that begins before the part is known from there. */
static bool is_known_otherwise(const struct krait_kernel_events *k, const struct krait_row *row)
{
    static const bool stay[KRAIT_KERNEL_EVENT_KINDS] = { [KRAIT_KERNEL_EVENT_CARRIED_THREAD] = true,
                                                         [KRAIT_KERNEL_EVENT_CARRIED_CPU] = true,
                                                         [KRAIT_KERNEL_EVENT_DISK_NAME] = true,
                                                         [KRAIT_KERNEL_EVENT_STEAL] = true };
    return is_in_front(k, row) && !stay[k->classes[row->cls].kind];
}

static void hand_out(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk,
                     const uint64_t *all, const struct krait_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (KRAIT_UNLIKELY(k->next_mark < k->marks.count && k->marks.items[k->next_mark].ns <= rows[i].ns))
            hand_out_marks(k, walk, rows[i].ns);
        const struct krait_kernel_event_class *cls = &k->classes[rows[i].cls];
        krait_kernel_event_handler *handler = walk->handlers[cls->kind];
        if (!handler || KRAIT_UNLIKELY(is_known_otherwise(k, &rows[i])))
            continue;
        const uint64_t *cells = all + rows[i].cells;
        struct krait_kernel_event event = {
            .ns = rows[i].ns, .cpu = cpu_of(k, &rows[i], cells), .cls = cls, .cells = cells
        };
        if (KRAIT_LIKELY(event.cpu < KRAIT_KERNEL_EVENT_CPUS))
            handler(walk->ctx, &event);
    }
}

static uint64_t after(const struct krait_kernel_events *k, const struct krait_row *row)
{
    return row->ns > k->begin_ns ? (uint64_t)row->ns - (uint64_t)k->begin_ns : 0;
}

/* How many of the rows are before a time. */
static uint32_t before(const struct krait_kernel_events *k, const struct krait_row *rows, uint32_t count,
                       uint64_t ns)
{
    while (count && after(k, &rows[count - 1]) >= ns && !is_in_front(k, &rows[count - 1]))
        count--;
    return count;
}

/* What stands behind a part is behind every range of it. */
static uint64_t until_of(const struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk)
{
    if (k->cut_until_ns == INT64_MAX)
        return walk->until_ns;
    return KRAIT_MIN(walk->until_ns,
                     k->cut_until_ns > k->begin_ns ? (uint64_t)(k->cut_until_ns - k->begin_ns) : 0);
}

/* The rows up to where the range ends, in two parts where it begins among them. Returns how many. */
static uint32_t walk_rows(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk,
                          const uint64_t *cells, const struct krait_row *rows, uint32_t count)
{
    if (!k->any)
        walk->begin(walk->ctx, k->begin_ns = KRAIT_MAX(rows[0].ns, k->cut_from_ns));
    k->any = true;
    uint64_t until_ns = until_of(k, walk);
    uint32_t first = k->began ? 0 : before(k, rows, count, walk->from_ns);
    uint32_t last = before(k, rows, count, until_ns);
    hand_out(k, walk, cells, rows, KRAIT_MIN(first, last));
    if (first < count && !k->began && walk->from_ns < until_ns) {
        k->began = true;
        if (walk->from_ns)
            hand_out_marks(k, walk, k->begin_ns + (int64_t)walk->from_ns);
        walk->from(walk->ctx, k->begin_ns + (int64_t)walk->from_ns);
    }
    if (k->began && last < count)
        k->end_ns = k->begin_ns + (int64_t)until_ns;
    else if (k->began)
        k->end_ns = rows[last - 1].ns;
    if (last > first)
        hand_out(k, walk, cells, rows + first, last - first);
    return last;
}

static bool is_done(const struct krait_kernel_event_walk *walk)
{
    return walk->done && *walk->done;
}

/* The rows behind the range, `first` of these on. */
static void walk_ahead(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk,
                       struct krait_row_order *order, const struct krait_row *rows, uint32_t first,
                       uint32_t count)
{
    uint64_t end_ns = until_of(k, walk), most = UINT64_MAX - end_ns,
             until_ns = end_ns + KRAIT_MIN(walk->ahead_ns, most);
    walk->ahead(walk->ctx, k->end_ns);
    while (count && !is_done(walk)) {
        uint32_t last = before(k, rows, count, until_ns);
        if (last > first)
            hand_out(k, walk, krait_row_order_cells(order), rows + first, last - first);
        if (last < count)
            return;
        rows = krait_row_order_next(order, &count);
        first = 0;
    }
}

/* The rows behind the range that stand behind a part, `first` of these on. */
static void walk_behind(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk,
                        struct krait_row_order *order, const struct krait_row *rows, uint32_t first,
                        uint32_t count)
{
    if (until_of(k, walk) < walk->until_ns || k->cut_until_ns == k->begin_ns + (int64_t)walk->until_ns) {
        for (; count && !is_done(walk); first = 0) {
            hand_out(k, walk, krait_row_order_cells(order), rows + first, count - first);
            rows = krait_row_order_next(order, &count);
        }
    }
}

static int find_marks(struct krait_kernel_events *k)
{
    if (!k->has_marks && krait_kernel_marks_find(&k->marks, k->reader, &k->arena))
        return -ENOMEM;
    k->has_marks = true;
    return 0;
}

/* The marks that a walk up to on_ns has handed out. */
static void skip_marks(struct krait_kernel_events *k, int64_t on_ns)
{
    const struct krait_kernel_mark *mark = k->marks.items;
    for (; k->next_mark < k->marks.count && krait_kernel_mark_is_before(mark, on_ns); mark++)
        k->next_mark++;
}

/* As it was at the end of the walk that this one goes on with. */
static void go_on(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk)
{
    k->any = k->began = true;
    k->begin_ns = walk->begin_ns;
    skip_marks(k, walk->on_ns);
}

static void count_bytes(struct krait_kernel_events *k, const struct krait_row_order *order, int64_t begin_ns)
{
    for (uint32_t i = 0; i < k->reader->stream_count; i++) {
        const struct krait_ctf_stream *stream = k->reader->streams[i];
        uint32_t end = krait_row_order_source(order, i)->cursor.next_packet;
        for (uint32_t p = krait_ctf_first_packet(stream, begin_ns); p < end && p < stream->packet_count; p++)
            k->bytes += stream->packets[p].size;
    }
}

int krait_kernel_events_walk(struct krait_kernel_events *k, const struct krait_kernel_event_walk *walk)
{
    struct krait_row_order *order = NULL;
    const struct krait_row *rows;
    uint32_t count, taken;
    bool cancelled;
    int64_t begin_ns = walk->on_ns ? walk->on_ns : begin_of(k);
    k->end_ns = INT64_MIN;
    k->any = k->began = false;
    k->next_mark = 0;
    if (find_marks(k) || krait_row_order_new(&order, k->rows, begin_ns, INT64_MAX))
        return -ENOMEM;
    if (walk->on_ns)
        go_on(k, walk);
    do {
        rows = krait_row_order_next(order, &count);
        taken = count ? walk_rows(k, walk, krait_row_order_cells(order), rows, count) : 0;
        cancelled = taken && walk->goes_on && !walk->goes_on(walk->ctx, rows[taken - 1].ns);
    } while (taken && taken == count && !cancelled && !is_done(walk));
    if (k->began)
        hand_out_marks(k, walk, k->end_ns);
    if (k->began && walk->ahead && taken < count)
        walk_ahead(k, walk, order, rows, taken, count);
    else if (k->began && walk->behind && taken < count)
        walk_behind(k, walk, order, rows, taken, count);
    k->damage = *krait_row_order_damage(order);
    count_bytes(k, order, begin_ns);
    krait_row_order_free(order);
    return cancelled ? -ECANCELED : 0;
}

/* -- a recording that goes on -- */

int64_t krait_kernel_events_written(const struct krait_kernel_events *k, int64_t *end_ns)
{
    return krait_kernel_written(k->reader, end_ns);
}

int krait_kernel_events_print(struct krait_kernel_events *k, int64_t ns, uint64_t *print)
{
    if (find_marks(k))
        return -ENOMEM;
    *print = krait_kernel_print(k->reader, &k->marks, ns) + krait_hash_u64((uint64_t)k->cut_from_ns);
    return 0;
}

uint64_t krait_kernel_events_bytes(const struct krait_kernel_events *k)
{
    return k->bytes;
}

/* -- what there is to say of it -- */

const struct krait_kernel_event_class *krait_kernel_events_classes(const struct krait_kernel_events *k,
                                                                   uint32_t *count)
{
    *count = k->rows->class_count;
    return k->classes;
}

bool krait_kernel_events_has(const struct krait_kernel_events *k, enum krait_kernel_event_kind kind)
{
    for (uint32_t i = 0; i < k->rows->class_count; i++) {
        if (k->classes[i].kind == kind)
            return true;
    }
    return false;
}

bool krait_kernel_events_own(const struct krait_kernel_events *k)
{
    return krait_kernel_events_has(k, KRAIT_KERNEL_EVENT_RUN);
}

const char *krait_kernel_events_env(const struct krait_kernel_events *k, const char *name)
{
    return krait_ctf_env_text(k->reader->traces[0]->metadata, name, "");
}

const char *krait_kernel_events_label(const struct krait_kernel_events *k,
                                      const struct krait_kernel_event *ev, unsigned field)
{
    const struct krait_row_class *row = &k->rows->classes[ev->cls->index];
    uint16_t cell = ev->cls->cell[field];
    for (uint32_t i = 0; cell && i < row->field_count; i++) {
        if (row->fields[i].cell == cell)
            return row->fields[i].fc->kind == KRAIT_FC_ENUM
                       ? krait_enum_label(row->fields[i].fc, ev->cells[cell])
                       : NULL;
    }
    return NULL;
}

const char *krait_kernel_events_name(const struct krait_kernel_events *k, const struct krait_kernel_event *ev)
{
    return k->rows->classes[ev->cls->index].event->name;
}

int krait_kernel_events_go(struct krait_kernel_events *k, const struct krait_kernel_event *ev,
                           struct krait_ctf_cursor **out)
{
    int rc = ready_at(k);
    *out = &k->at;
    return rc ? rc : krait_row_find(&k->at, ev->ns, ev->cells);
}

int64_t krait_kernel_events_end(const struct krait_kernel_events *k)
{
    return k->end_ns;
}

uint64_t krait_kernel_events_lost(const struct krait_kernel_events *k)
{
    return krait_losses_count(k->reader);
}

const struct krait_err *krait_kernel_events_damage(const struct krait_kernel_events *k)
{
    return &k->damage;
}
