/* SPDX-License-Identifier: Apache-2.0
 *
 * The definitions of a process: functions, names, how it began and ended, what was lost.
 */
#include "trace/import.h"

#include "base/array.h"
#include "base/buf.h"
#include "ctf/format.h"
#include "event/payload.h"
#include "trace/own.h"

/* What the handlers of the definitions' events share. */
struct define {
    struct krait_trace *trace;
    struct krait_process *process;
    struct krait_image *image;
    uint32_t code_max; /* ids above cannot be honest */
    uint64_t t_ns;     /* of the event */
    struct krait_damage damage;
    const char *path;
};

_Static_assert(KRAIT_NO_ID == UINT32_MAX, "its bytes are all the same");

static bool has_room_for_code(struct krait_image *image, uint32_t code)
{
    return KRAIT_GROW_FILLED(image->code_func, image->code_count, code + 1, 0xff);
}

static uint32_t func_of(const struct krait_image *image, uint32_t code)
{
    return code < image->code_count ? image->code_func[code] : KRAIT_NO_ID;
}

/* A type of exceptions has no calls: it is no function. */
static int define_exception(struct define *def, const struct krait_payload_code_define *code)
{
    KRAIT_AUTO_BUF label = { 0 };
    bool is_builtin = strcmp(code->module, "builtins") == 0;
    krait_buf_fmt(&label, "%s%s%s", is_builtin ? "" : code->module, is_builtin ? "" : ".", code->qualname);
    struct krait_strtab *labels = &krait_recordings_of(def->trace)->exceptions;
    uint32_t id = label.failed ? KRAIT_NO_ID : krait_strtab_add(labels, label.data, label.len);
    if (id == KRAIT_NO_ID || krait_map_put(&def->image->exceptions, code->id, id))
        return -ENOMEM;
    def->trace->exceptions = labels->texts;
    def->trace->exception_count = labels->len;
    return 0;
}

/* Neither is a name. */
static int define_name(struct define *def, const struct krait_payload_code_define *code)
{
    uint32_t id = krait_trace_name(def->trace, code->qualname);
    return id == KRAIT_NO_ID || krait_map_put(&def->image->names, code->id, id) ? -ENOMEM : 0;
}

const char *krait_image_code_text(const struct krait_trace *trace, const struct krait_image *image,
                                  uint32_t code, char *buf, size_t size)
{
    const uint64_t *name = krait_map_get(&image->names, code);
    const uint64_t *exception = krait_map_get(&image->exceptions, code);
    uint32_t func = code < image->code_count ? image->code_func[code] : KRAIT_NO_ID;
    return name                  ? krait_track_text(trace, (uint32_t)*name)
           : exception           ? trace->exceptions[*exception]
           : func != KRAIT_NO_ID ? krait_func_label(&trace->funcs[func], buf, size)
                                 : NULL;
}

static int on_code_define(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_code_define code;
    if (!krait_read_code_define(cursor, &code))
        return -EBADMSG;
    if (!code.id || code.id > def->code_max) {
        krait_damage_say(&def->damage, "%s: a code id of %u cannot be", def->path, code.id);
        return 0;
    }
    if (code.kind == KRAIT_code_kind_exception)
        return define_exception(def, &code);
    if (code.kind == KRAIT_code_kind_name)
        return define_name(def, &code);
    struct krait_func func = {
        .name = code.qualname,
        .module = code.module,
        .file = code.file,
        .line = code.line,
        .kind = code.kind == KRAIT_code_kind_c ? KRAIT_FUNC_C : KRAIT_FUNC_PYTHON,
        .site_func = code.site ? func_of(def->image, code.site) : KRAIT_NO_ID,
        .site_line = code.site ? code.site_line : 0,
    };
    uint32_t id = krait_trace_intern(def->trace, &func);
    if (id == KRAIT_NO_ID || !has_room_for_code(def->image, code.id))
        return -ENOMEM;
    def->image->code_func[code.id] = id;
    return 0;
}

static int on_code_suspends(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_code_suspends event;
    if (!krait_read_code_suspends(cursor, &event))
        return -EBADMSG;
    uint32_t id = func_of(def->image, event.code);
    if (id == KRAIT_NO_ID)
        return 0;
    struct krait_func *funcs = def->trace->funcs;
    uint8_t as =
        event.as == KRAIT_suspends_as_coroutine ? KRAIT_SUSPENDS_COROUTINE : KRAIT_SUSPENDS_GENERATOR;
    funcs[id].suspends = funcs[funcs[id].base].suspends = as;
    return 0;
}

static int count_omitted(const struct define *def, uint32_t func, uint8_t reason, uint64_t calls)
{
    struct krait_trace *trace = def->trace;
    struct krait_recordings *recordings = krait_recordings_of(trace);
    uint64_t *index = krait_map_get(&recordings->omitted, func);
    if (index) {
        struct krait_trace_omitted *known = &trace->omitted[*index];
        known->calls += calls;
        known->first_ns = KRAIT_MIN(known->first_ns, def->t_ns);
        return 0;
    }
    if (!KRAIT_GROW(trace->omitted, recordings->omitted_cap, trace->omitted_count + 1) ||
        krait_map_put(&recordings->omitted, func, trace->omitted_count))
        return -ENOMEM;
    const struct krait_enum_row *row = krait_enum_find("omit_reason", reason);
    trace->omitted[trace->omitted_count++] = (struct krait_trace_omitted){
        .func = func,
        .reason = row ? row->label : "?",
        .calls = calls,
        .first_ns = def->t_ns,
    };
    return 0;
}

static int on_code_omit(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_code_omit omit;
    if (!krait_read_code_omit(cursor, &omit))
        return -EBADMSG;
    struct krait_image *image = def->image;
    if (!KRAIT_GROW(image->omits, image->omit_cap, image->omit_count + 1))
        return -ENOMEM;
    image->omits[image->omit_count++] = (struct krait_omit){ .t_ns = def->t_ns, .code = omit.id };
    uint32_t func = func_of(image, omit.id);
    return count_omitted(def, func == KRAIT_NO_ID ? KRAIT_FUNC_UNKNOWN_PYTHON : func, omit.reason,
                         omit.calls);
}

static int on_thread_name(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_thread_name thread;
    if (!krait_read_thread_name(cursor, &thread))
        return -EBADMSG;
    struct krait_image *image = def->image;
    const char *name = krait_arena_strdup(&def->trace->impl->arena, thread.name);
    if (!name || !KRAIT_GROW(image->namings, image->naming_cap, image->naming_count + 1))
        return -ENOMEM;
    image->namings[image->naming_count++] =
        (struct krait_naming){ .t_ns = def->t_ns, .tid = thread.vtid, .name = name };
    return 0;
}

static int on_process_start(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_process_start start;
    if (!krait_read_process_start(cursor, &start))
        return -EBADMSG;
    struct krait_arena *arena = &def->trace->impl->arena;
    const struct krait_enum_row *row = krait_enum_find("process_origin", start.origin);
    const char *runtime = krait_arena_strdup(arena, start.runtime);
    const char *command = krait_arena_strdup(arena, start.command);
    if (!runtime || !command)
        return -ENOMEM;
    def->process->pid = start.vpid;
    def->process->ppid = start.vppid;
    def->process->origin = row ? row->label : "";
    def->process->runtime = runtime;
    if (!*def->process->command) /* the metadata has the latest */
        def->process->command = command;
    def->image->start_ns = def->t_ns;
    return 0;
}

static int on_process_exit(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_process_exit end;
    if (!krait_read_process_exit(cursor, &end))
        return -EBADMSG;
    const struct krait_enum_row *row = krait_enum_find("process_end", end.how);
    def->process->end = row ? row->label : "";
    def->process->end_status = end.status;
    def->image->exit_ns = def->t_ns;
    return 0;
}

static int on_process_cost(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_process_cost cost;
    if (!krait_read_process_cost(cursor, &cost))
        return -EBADMSG;
    def->process->cost[KRAIT_FUNC_PYTHON] =
        (struct krait_call_cost){ cost.python_inside_ns, cost.python_outside_ns };
    def->process->cost[KRAIT_FUNC_C] = (struct krait_call_cost){ cost.c_inside_ns, cost.c_outside_ns };
    return 0;
}

static int on_lost(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_lost lost;
    if (!krait_read_lost(cursor, &lost))
        return -EBADMSG;
    def->image->lost[lost.reason] =
        KRAIT_MAX(def->image->lost[lost.reason], lost.count); /* a total, not a step */
    return 0;
}

/* It may be said again, when it begins. */
static int on_task_define(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_task_define task;
    if (!krait_read_task_define(cursor, &task))
        return -EBADMSG;
    struct krait_trace *trace = def->trace;
    const uint64_t *known = krait_map_get(&def->image->tasks, task.id);
    uint32_t index = known ? (uint32_t)*known : trace->task_count;
    const char *name = krait_arena_strdup(&trace->impl->arena, task.name);
    if (!name || (!known && (!KRAIT_GROW(trace->tasks, trace->impl->task_cap, index + 1) ||
                             krait_map_put(&def->image->tasks, task.id, index))))
        return -ENOMEM;
    trace->task_count += !known;
    struct krait_task *made = &trace->tasks[index];
    if (!known)
        *made = (struct krait_task){ .process = (uint32_t)(def->process - trace->processes),
                                     .id = task.id,
                                     .parents = { { KRAIT_NO_ID, 0 }, { KRAIT_NO_ID, 0 } } };
    uint32_t func = func_of(def->image, task.coroutine);
    made->func = krait_own_stands_for(trace, func);
    made->name = name;
    return func != KRAIT_NO_ID && made->func == KRAIT_NO_ID ? -ENOMEM : 0;
}

/* NULL: no such task was defined. */
static struct krait_task *task_of(const struct define *def, uint64_t id)
{
    const uint64_t *index = krait_map_get(&def->image->tasks, id);
    return index ? &def->trace->tasks[*index] : NULL;
}

static int on_task_nursery(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_task_nursery in;
    if (!krait_read_task_nursery(cursor, &in))
        return -EBADMSG;
    struct krait_task *task = task_of(def, in.task);
    if (!task)
        return 0;
    task->nursery_before = task->nursery;
    task->nursery = in.nursery;
    task->moved_ns = def->t_ns;
    return 0;
}

static int on_task_parent(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_task_parent event;
    if (!krait_read_task_parent(cursor, &event))
        return -EBADMSG;
    struct krait_task *task = task_of(def, event.task);
    if (!task)
        return 0;
    task->parents[1] = task->parents[0];
    task->parents[0] = (struct krait_task_parent){ event.parent, def->t_ns };
    return 0;
}

static int begin_gap(struct krait_gaps *gaps, uint64_t t_ns)
{
    bool is_open = gaps->count && gaps->items[gaps->count - 1].to_ns == UINT64_MAX;
    if (is_open)
        return 0;
    if (!KRAIT_GROW(gaps->items, gaps->cap, gaps->count + 1))
        return -ENOMEM;
    gaps->items[gaps->count++] = (struct krait_range){ t_ns, UINT64_MAX };
    return 0;
}

static void end_gap(struct krait_gaps *gaps, uint64_t t_ns, uint64_t from_ns)
{
    if (!gaps->count || gaps->items[gaps->count - 1].to_ns != UINT64_MAX)
        return;
    gaps->items[gaps->count - 1].to_ns = t_ns;
    gaps->count -= t_ns <= from_ns;
}

/* Of a part of a recording, what was off before it is not told. A recording that is switched off while what it records
 * changes is off from then on. */
static int on_recording_switch(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_recording_switch event;
    struct krait_image *image = def->image;
    if (!krait_read_recording_switch(cursor, &event))
        return -EBADMSG;
    if (event.state == KRAIT_recording_state_on) {
        end_gap(&image->off, def->t_ns, image->range.from_ns);
        end_gap(&image->unrecorded, def->t_ns, image->range.from_ns);
        return 0;
    }
    int rc = event.state == KRAIT_recording_state_off ? begin_gap(&image->off, def->t_ns) : 0;
    return rc ? rc : begin_gap(&image->unrecorded, def->t_ns);
}

static int on_recording_set(struct define *def, struct krait_cursor *cursor)
{
    struct krait_payload_recording_set event;
    struct krait_trace *trace = def->trace;
    const struct krait_range *part = &def->image->range;
    if (!krait_read_recording_set(cursor, &event))
        return -EBADMSG;
    if (def->t_ns < part->from_ns || def->t_ns >= part->to_ns)
        return 0;
    const char *what = krait_arena_strdup(&trace->impl->arena, event.what);
    if (!what || !KRAIT_GROW(trace->sets, krait_recordings_of(trace)->sets_cap, trace->set_count + 1))
        return -ENOMEM;
    trace->sets[trace->set_count++] = (struct krait_trace_set){
        .t_ns = def->t_ns,
        .pid = def->process->pid,
        .what = what,
    };
    return 0;
}

typedef int define_fn(struct define *def, struct krait_cursor *cursor);

static define_fn *const handlers[] = {
    [KRAIT_EVENT_code_define] = on_code_define,     [KRAIT_EVENT_code_omit] = on_code_omit,
    [KRAIT_EVENT_thread_name] = on_thread_name,     [KRAIT_EVENT_process_start] = on_process_start,
    [KRAIT_EVENT_process_exit] = on_process_exit,   [KRAIT_EVENT_lost] = on_lost,
    [KRAIT_EVENT_task_define] = on_task_define,     [KRAIT_EVENT_recording_switch] = on_recording_switch,
    [KRAIT_EVENT_process_cost] = on_process_cost,   [KRAIT_EVENT_task_nursery] = on_task_nursery,
    [KRAIT_EVENT_task_parent] = on_task_parent,     [KRAIT_EVENT_code_suspends] = on_code_suspends,
    [KRAIT_EVENT_recording_set] = on_recording_set,
};

static int read_event(struct define *def, uint32_t id, struct krait_cursor *cursor)
{
    if (id < KRAIT_ARRAY_LEN(handlers) && handlers[id])
        return handlers[id](def, cursor);
    return krait_payload_skip(id, cursor) ? 0 : -EBADMSG;
}

/* All events of a packet; the first that is not whole ends it. Returns 0 or -ENOMEM. */
static int read_packet(struct define *def, const struct krait_packet *packet)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    while (cursor.at < cursor.end) {
        const uint8_t *event = cursor.at;
        head.id = 0;
        bool whole = krait_head_read(&cursor, &head);
        def->t_ns = krait_ticks_ns(&def->image->clock, head.t);
        int rc = whole ? read_event(def, head.id, &cursor) : -EBADMSG;
        if (rc == -EBADMSG) {
            krait_damage_say(
                &def->damage, "%s: byte %zu: no whole event is here (id %u); the packet's rest is left out",
                def->path, packet->offset + sizeof(packet->head) + (size_t)(event - packet->body), head.id);
            return 0;
        }
        if (rc)
            return rc;
    }
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct krait_omit *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

int krait_definitions_read(struct krait_trace *trace, uint32_t index)
{
    struct krait_image *image = &krait_recordings_of(trace)->images[index];
    KRAIT_AUTO_FREE char *path = NULL;
    if (asprintf(&path, "%s/" KRAIT_FILE_DEFINITIONS, image->dir) < 0)
        return -ENOMEM;
    struct define def = {
        .trace = trace,
        .process = &trace->processes[index],
        .image = image,
        .damage = { trace->damage, sizeof(trace->damage) },
        .path = path,
    };
    struct krait_packets packets;
    struct krait_err err;
    if (krait_packets_open(&packets, path, image->uuid, &err)) {
        krait_damage_say(&def.damage, "%s; its functions have no names", err.text);
        return 0;
    }
    trace->bytes += packets.size;
    def.code_max =
        (uint32_t)KRAIT_MIN(KRAIT_MAX(packets.size, (size_t)KRAIT_CODES_MIN), (size_t)UINT32_MAX / 8);
    struct krait_packet packet;
    int rc = 0;
    while (!rc && krait_packets_next(&packets, &packet, &def.damage))
        rc = read_packet(&def, &packet);
    krait_packets_close(&packets);
    if (image->omit_count)
        qsort(image->omits, image->omit_count, sizeof(*image->omits), by_time);
    return rc;
}
