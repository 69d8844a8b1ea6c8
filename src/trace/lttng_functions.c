/* SPDX-License-Identifier: Apache-2.0
 *
 * LTTng's function events, of programs built with -finstrument-functions and run with one of its two
 * libraries (lttng-ust-cyg-profile(3)):
 *
 *   lttng_ust_cyg_profile:func_entry { addr, call_site }     func_exit { addr, call_site }
 *   lttng_ust_cyg_profile_fast:func_entry { addr }           func_exit { }
 *
 * LTTng has a stream for each CPU, so that a thread's events lie in several: they are read in the order of
 * time, and the contexts vtid and vpid tell whose they are. Where there is no vtid, each stream is taken for a
 * thread; where there is no vpid, each trace is a process, with the number of the thread that is met first.
 *
 * Names come from where the program's files were loaded, base address and size, as its state dump and its
 * loads tell: library+offset, such as libfoo.so+0x1a2b; an address in none of them is its own name.
 *
 * An end of a function that is not the innermost cuts what is above it, whose ends were lost; one of a
 * function that is not open is left out. The fast library's ends do not say of what: where events were lost
 * all that is open is cut.
 *
 * Opening goes through all events once, each walk of a thread through those of its life; of several threads together,
 * 256 of them at a time, through those of all their lives.
 */
#include "trace/lttng_functions.h"

#include "base/array.h"
#include "ctf/read/reader.h"
#include "ctf/rows/row_order.h"
#include "trace/importer.h"
#include "trace/losses.h"
#include "trace/stack.h"

#include <string.h>

/* -- event classes -- */

enum kind { NONE, ENTRY, EXIT, LOADED, UNLOADED };

static const struct event_name {
    const char *name;
    enum kind kind;
    const char *first; /* the field that it cannot do without; NULL: it can */
} event_names[] = {
    { "lttng_ust_cyg_profile:func_entry", ENTRY, "addr" },
    { "lttng_ust_cyg_profile:func_exit", EXIT, "addr" },
    { "lttng_ust_cyg_profile_fast:func_entry", ENTRY, "addr" },
    { "lttng_ust_cyg_profile_fast:func_exit", EXIT, NULL },
    { "lttng_ust_statedump:bin_info", LOADED, "baddr" },
    { "lttng_ust_lib:load", LOADED, "baddr" },
    { "lttng_ust_lib:unload", UNLOADED, "baddr" },
};

/* Where the fields of an event class are in its rows; 0: it has none. */
struct event_of {
    enum kind kind;
    uint16_t address, size, path; /* `addr` or `baddr`, `memsz`, `path` */
    uint16_t tid, pid, name;      /* of the contexts: vtid, vpid, procname */
};

/* -- what is known of the program -- */

struct mapping {
    uint64_t address, size;
    int64_t from_ns, until_ns;
    const char *path;
};

struct used {
    uint64_t address;
    int64_t ns; /* when it was called first */
};

struct program {
    bool has_thread;
    struct krait_map funcs; /* by address: func */
    struct used *used;      /* addresses, in the order of their first call */
    struct mapping *mappings;
    uint32_t used_count, used_cap, mapping_count, mapping_cap;
};

/* What tells a thread from others. */
struct whose {
    uint32_t group;  /* streams of a host, and of a process where each has its own */
    uint32_t stream; /* KRAIT_NO_ID: the thread has a number */
    int64_t pid, tid;
};

struct lttng_functions {
    struct krait_ctf_reader *reader;
    struct krait_row_set *rows;
    struct event_of *events; /* by the row class's index */
    uint32_t *groups;        /* by stream */
    struct program *programs;
    struct whose *threads; /* by thread, from first_thread on */
    int64_t *losses;       /* behind which times events are missing, in order */
    uint32_t program_count, program_cap, thread_count, thread_cap, loss_count, loss_cap;
    uint32_t first_process, first_thread;
    uint64_t bytes;
    bool is_fast;
    struct krait_arena arena;
};

/* -- opening -- */

static const struct event_name *find_name(const char *name)
{
    static const char provider[] = "lttng_ust_"; /* of all of them: most traces have none */
    if (strncmp(name, provider, sizeof(provider) - 1) != 0)
        return NULL;
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(event_names); i++) {
        if (strcmp(event_names[i].name, name) == 0)
            return &event_names[i];
    }
    return NULL;
}

bool krait_lttng_functions_reads(const char *name)
{
    return find_name(name) != NULL;
}

bool krait_lttng_functions_has(const struct krait_ctf_metadata *metadata)
{
    for (uint32_t s = 0; s < metadata->stream_count; s++) {
        for (uint32_t i = 0; i < metadata->streams[s]->event_count; i++) {
            const struct event_name *found = find_name(metadata->streams[s]->events[i]->name);
            if (found && found->kind == ENTRY)
                return true;
        }
    }
    return false;
}

static bool takes(const struct krait_folder *folder)
{
    return krait_lttng_functions_has(folder->metadata);
}

static uint16_t cell_of(const struct krait_row_class *row, bool payload, const char *name, bool text)
{
    for (uint32_t i = 0; i < row->field_count; i++) {
        const struct krait_row_field *field = &row->fields[i];
        if ((field->scope == KRAIT_FIELD_PAYLOAD) == payload && strcmp(field->path, name) == 0 &&
            (text ? krait_fc_is_text(field->fc) : krait_fc_is_int(field->fc)))
            return field->cell;
    }
    return 0;
}

static void know_class(struct lttng_functions *f, const struct krait_row_class *row)
{
    const struct event_name *found = find_name(row->event->name);
    struct event_of *event = &f->events[row->index];
    if (!found)
        return;
    event->address = found->first ? cell_of(row, true, found->first, false) : 0;
    event->kind = found->first && !event->address ? NONE : found->kind;
    event->size = cell_of(row, true, "memsz", false);
    event->path = cell_of(row, true, "path", true);
    event->tid = cell_of(row, false, "vtid", false);
    event->pid = cell_of(row, false, "vpid", false);
    event->name = cell_of(row, false, "procname", true);
    f->is_fast |= found->kind == EXIT && !found->first;
}

static const char *env_of(const struct lttng_functions *f, uint32_t stream, const char *name)
{
    return krait_ctf_env_text(f->reader->streams[stream]->trace->metadata, name, "");
}

static int64_t pid_in_env(const struct lttng_functions *f, uint32_t stream)
{
    return krait_ctf_env_int(f->reader->streams[stream]->trace->metadata, "vpid", -1);
}

/* Streams of one program, or where the contexts tell programs apart, of one host. */
static void know_groups(struct lttng_functions *f)
{
    for (uint32_t i = 0; i < f->reader->stream_count; i++) {
        const struct krait_ctf_trace *trace = f->reader->streams[i]->trace;
        uint32_t same = 0;
        while (same < i &&
               (f->reader->streams[same]->trace != trace || pid_in_env(f, same) != pid_in_env(f, i)))
            same++;
        f->groups[i] = f->groups[same] = same < i ? f->groups[same] : i;
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int find_losses(struct lttng_functions *f)
{
    for (uint32_t s = 0; f->is_fast && s < f->reader->stream_count; s++) {
        const struct krait_ctf_stream *stream = f->reader->streams[s];
        for (uint32_t i = 0; i < stream->packet_count; i++) {
            int64_t ns = krait_losses_behind(f->reader, stream, i);
            if (ns == INT64_MIN)
                continue;
            if (!KRAIT_GROW(f->losses, f->loss_cap, f->loss_count + 1))
                return -ENOMEM;
            f->losses[f->loss_count++] = ns;
        }
    }
    if (f->loss_count)
        qsort(f->losses, f->loss_count, sizeof(*f->losses), by_number);
    return 0;
}

static int open_reader(struct lttng_functions *f, struct krait_folder *const *folders, uint32_t count,
                       struct krait_err *err)
{
    KRAIT_AUTO_FREE const char **dirs = calloc(count, sizeof(*dirs));
    for (uint32_t i = 0; dirs && i < count; i++)
        dirs[i] = folders[i]->dir;
    int rc = dirs ? krait_ctf_open(&f->reader, dirs, count, NULL, err) : -ENOMEM;
    rc = rc ? rc : krait_row_set_new(&f->rows, f->reader, KRAIT_EMIT_ROWS, NULL);
    if (rc)
        return rc;
    f->events = krait_arena_alloc(&f->arena, (f->rows->class_count + 1) * sizeof(*f->events));
    f->groups = krait_arena_alloc(&f->arena, (f->reader->stream_count + 1) * sizeof(*f->groups));
    if (!f->events || !f->groups)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->rows->class_count; i++)
        know_class(f, &f->rows->classes[i]);
    for (uint32_t i = 0; i < f->reader->file_count; i++)
        f->bytes += f->reader->files[i]->size;
    know_groups(f);
    return find_losses(f);
}

/* -- the first look at all events -- */

struct look {
    struct krait_trace *trace;
    struct lttng_functions *f;
    struct krait_map processes, threads; /* by pid or tid and group, to the index from the first on */
};

static struct whose whose_is(const struct lttng_functions *f, const struct event_of *event,
                             const uint64_t *cells)
{
    uint32_t stream = (uint32_t)cells[KRAIT_ROW_ORIGIN];
    return (struct whose){ .group = f->groups[stream],
                           .stream = event->tid ? KRAIT_NO_ID : stream,
                           .pid = event->pid ? (int64_t)cells[event->pid] : pid_in_env(f, stream),
                           .tid = event->tid ? (int64_t)cells[event->tid] : stream };
}

static bool is_its(const struct whose *a, const struct whose *b)
{
    return a->group == b->group && a->stream == b->stream && a->pid == b->pid && a->tid == b->tid;
}

static uint64_t key_of(uint32_t group, int64_t number)
{
    return (uint64_t)group << 40 ^ (uint64_t)number;
}

/* The name that an event's context tells, or else the trace; copied. */
static const char *name_in(const struct look *look, const struct event_of *event, const uint64_t *cells)
{
    uint32_t stream = (uint32_t)cells[KRAIT_ROW_ORIGIN];
    if (!event->name)
        return krait_arena_strdup(&look->f->arena, env_of(look->f, stream, "procname"));
    const char *text = (const char *)(uintptr_t)cells[event->name];
    return krait_arena_strndup(&look->f->arena, text, strnlen(text, cells[event->name + 1]));
}

static uint32_t new_process(struct look *look, const struct whose *whose, const struct krait_row *row,
                            const uint64_t *cells)
{
    struct lttng_functions *f = look->f;
    uint32_t stream = (uint32_t)cells[KRAIT_ROW_ORIGIN];
    struct krait_process *process = krait_trace_add_process(look->trace);
    const char *name = krait_arena_strdup(&f->arena, env_of(f, stream, "procname"));
    const char *host = krait_arena_strdup(&f->arena, env_of(f, stream, "hostname"));
    const char *dir = krait_arena_strdup(&f->arena, f->reader->streams[stream]->trace->dir);
    if (!process || !name || !host || !dir ||
        !KRAIT_GROW(f->programs, f->program_cap, f->program_count + 1) ||
        krait_map_put(&look->processes, key_of(whose->group, whose->pid), f->program_count))
        return KRAIT_NO_ID;
    process->pid =
        (uint32_t)KRAIT_MAX(whose->pid > 0 || whose->stream != KRAIT_NO_ID ? whose->pid : whose->tid, 0);
    process->end = "?";
    process->name = name;
    process->host = host;
    process->dir = dir;
    process->begin_ns = (uint64_t)KRAIT_MAX(row->ns, 0);
    f->programs[f->program_count] = (struct program){ 0 };
    return f->program_count++;
}

static uint32_t process_of(struct look *look, const struct whose *whose, const struct krait_row *row,
                           const uint64_t *cells)
{
    const uint64_t *found = krait_map_get(&look->processes, key_of(whose->group, whose->pid));
    return found ? (uint32_t)*found : new_process(look, whose, row, cells);
}

/* By the file of its stream, where it has no number. */
static const char *thread_name(const struct look *look, const struct whose *whose,
                               const struct event_of *event, const uint64_t *cells)
{
    if (whose->stream == KRAIT_NO_ID)
        return event->name ? name_in(look, event, cells) : "";
    const char *path = look->f->reader->streams[whose->stream]->path, *slash = strrchr(path, '/');
    return krait_arena_strdup(&look->f->arena, slash ? slash + 1 : path);
}

static uint32_t new_thread(struct look *look, const struct whose *whose, const struct event_of *event,
                           const struct krait_row *row, const uint64_t *cells)
{
    struct lttng_functions *f = look->f;
    uint32_t program = process_of(look, whose, row, cells);
    struct krait_thread *thread = program == KRAIT_NO_ID ? NULL : krait_trace_add_thread(look->trace);
    const char *name = thread_name(look, whose, event, cells);
    if (!thread || !name || !KRAIT_GROW(f->threads, f->thread_cap, f->thread_count + 1) ||
        krait_map_put(&look->threads, key_of(whose->group, whose->tid), f->thread_count))
        return KRAIT_NO_ID;
    struct krait_process *process = &look->trace->processes[f->first_process + program];
    if (event->name && !f->programs[program].has_thread) /* state dumps are made by LTTng's own thread */
        process->name = name;
    f->programs[program].has_thread = true;
    thread->importer = KRAIT_IMPORTER_lttng_functions;
    thread->process = f->first_process + program;
    thread->tid = whose->stream == KRAIT_NO_ID ? (uint32_t)whose->tid : 0;
    thread->name = name;
    thread->begin_ns = (uint64_t)KRAIT_MAX(row->ns, 0);
    f->threads[f->thread_count] = *whose;
    return f->thread_count++;
}

static int note_call(struct look *look, const struct event_of *event, const struct krait_row *row,
                     const uint64_t *cells)
{
    struct lttng_functions *f = look->f;
    struct whose whose = whose_is(f, event, cells);
    const uint64_t *found = krait_map_get(&look->threads, key_of(whose.group, whose.tid));
    uint32_t index = found ? (uint32_t)*found : new_thread(look, &whose, event, row, cells);
    if (index == KRAIT_NO_ID)
        return -ENOMEM;
    struct krait_thread *thread = &look->trace->threads[f->first_thread + index];
    struct program *program = &f->programs[thread->process - f->first_process];
    thread->end_ns = (uint64_t)KRAIT_MAX(row->ns, 0);
    if (event->kind != ENTRY || krait_map_get(&program->funcs, cells[event->address]))
        return 0;
    if (!KRAIT_GROW(program->used, program->used_cap, program->used_count + 1))
        return -ENOMEM;
    program->used[program->used_count++] = (struct used){ cells[event->address], row->ns };
    return krait_map_put(&program->funcs, cells[event->address], KRAIT_NO_ID);
}

static int note_loaded(struct look *look, const struct event_of *event, const struct krait_row *row,
                       const uint64_t *cells)
{
    struct lttng_functions *f = look->f;
    struct whose whose = whose_is(f, event, cells);
    uint32_t index = process_of(look, &whose, row, cells);
    struct program *program = index == KRAIT_NO_ID ? NULL : &f->programs[index];
    if (!program || !KRAIT_GROW(program->mappings, program->mapping_cap, program->mapping_count + 1))
        return -ENOMEM;
    struct mapping mapping = { .address = cells[event->address], .from_ns = row->ns, .until_ns = INT64_MAX };
    const char *path = event->path ? (const char *)(uintptr_t)cells[event->path] : "";
    mapping.size = event->size ? cells[event->size] : 0;
    mapping.path =
        krait_arena_strndup(&f->arena, path, event->path ? strnlen(path, cells[event->path + 1]) : 0);
    program->mappings[program->mapping_count++] = mapping;
    return mapping.path ? 0 : -ENOMEM;
}

static int note_unloaded(struct look *look, const struct event_of *event, const struct krait_row *row,
                         const uint64_t *cells)
{
    struct whose whose = whose_is(look->f, event, cells);
    uint32_t index = process_of(look, &whose, row, cells);
    struct program *program = index == KRAIT_NO_ID ? NULL : &look->f->programs[index];
    for (uint32_t i = 0; program && i < program->mapping_count; i++) {
        struct mapping *mapping = &program->mappings[i];
        if (mapping->address == cells[event->address] && mapping->until_ns == INT64_MAX)
            mapping->until_ns = row->ns;
    }
    return program ? 0 : -ENOMEM;
}

static int look_at_rows(struct look *look, struct krait_row_order *order)
{
    static int (*const notes[])(struct look *, const struct event_of *, const struct krait_row *,
                                const uint64_t *) = {
        [ENTRY] = note_call, [EXIT] = note_call, [LOADED] = note_loaded, [UNLOADED] = note_unloaded
    };
    const struct krait_row *rows;
    uint32_t count;
    int rc = 0;
    while (!rc && (rows = krait_row_order_next(order, &count), count)) {
        const uint64_t *cells = krait_row_order_cells(order);
        for (uint32_t i = 0; i < count && !rc; i++) {
            const struct event_of *event = &look->f->events[rows[i].cls];
            if (event->kind)
                rc = notes[event->kind](look, event, &rows[i], cells + rows[i].cells);
        }
    }
    return rc;
}

/* -- names -- */

/* The file that an address was of when it was first called; or else at any time: a state dump may come late. */
static const struct mapping *mapping_of(const struct program *program, const struct used *used)
{
    const struct mapping *found = NULL;
    for (uint32_t i = 0; i < program->mapping_count; i++) {
        const struct mapping *mapping = &program->mappings[i];
        if (used->address - mapping->address >= mapping->size)
            continue;
        if (mapping->from_ns <= used->ns && used->ns < mapping->until_ns)
            return mapping;
        found = found ? found : mapping;
    }
    return found;
}

static uint32_t name_address(struct krait_trace *trace, const struct program *program,
                             const struct used *used)
{
    const struct mapping *mapping = mapping_of(program, used);
    const char *path = mapping ? mapping->path : "", *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    uint64_t offset = used->address - (mapping ? mapping->address : 0);
    KRAIT_AUTO_FREE char *name = NULL;
    if (asprintf(&name, "%s%s0x%llx", file, *file ? "+" : "", (unsigned long long)offset) < 0)
        return KRAIT_NO_ID;
    const struct krait_func func = {
        .name = name, .module = file, .file = path, .kind = KRAIT_FUNC_NATIVE, .site_func = KRAIT_NO_ID
    };
    return krait_trace_intern(trace, &func);
}

static int name_functions(struct krait_trace *trace, struct lttng_functions *f)
{
    for (uint32_t p = 0; p < f->program_count; p++) {
        struct program *program = &f->programs[p];
        for (uint32_t i = 0; i < program->used_count; i++) {
            uint32_t func = name_address(trace, program, &program->used[i]);
            if (func == KRAIT_NO_ID || krait_map_put(&program->funcs, program->used[i].address, func))
                return -ENOMEM;
        }
        free(program->used);
        program->used = NULL;
    }
    return 0;
}

/* -- threads by process -- */

static int by_process(const void *a, const void *b)
{
    const struct krait_thread *x = a, *y = b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Threads were met as they began: `threads` is sorted with them, by their numbers there. */
static int sort_threads(struct krait_trace *trace, struct lttng_functions *f)
{
    struct sorted {
        struct krait_thread thread; /* first, for by_process */
        struct whose whose;
    };
    KRAIT_AUTO_FREE struct sorted *sorted = calloc(f->thread_count + 1, sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->thread_count; i++)
        sorted[i] = (struct sorted){ trace->threads[f->first_thread + i], f->threads[i] };
    qsort(sorted, f->thread_count, sizeof(*sorted), by_process);
    for (uint32_t i = 0; i < f->thread_count; i++) {
        trace->threads[f->first_thread + i] = sorted[i].thread;
        f->threads[i] = sorted[i].whose;
    }
    return 0;
}

static void set_times(struct krait_trace *trace, const struct lttng_functions *f)
{
    for (uint32_t i = 0; i < f->thread_count; i++) {
        const struct krait_thread *thread = &trace->threads[f->first_thread + i];
        struct krait_process *process = &trace->processes[thread->process];
        process->begin_ns = KRAIT_MIN(process->begin_ns, thread->begin_ns);
        process->end_ns = KRAIT_MAX(process->end_ns, thread->end_ns);
        trace->begin_ns = KRAIT_MIN(trace->begin_ns, process->begin_ns);
        trace->end_ns = KRAIT_MAX(trace->end_ns, process->end_ns);
    }
}

static int look_at_all(struct krait_trace *trace, struct lttng_functions *f)
{
    struct look look = { .trace = trace, .f = f };
    struct krait_row_order *order = NULL;
    int rc = krait_row_order_new(&order, f->rows, INT64_MIN, INT64_MAX);
    rc = rc ? rc : look_at_rows(&look, order);
    struct krait_damage damage = { trace->damage, sizeof(trace->damage) };
    if (order && krait_row_order_damage(order)->code)
        krait_damage_say(&damage, "%s", krait_row_order_damage(order)->text);
    krait_row_order_free(order);
    krait_map_done(&look.processes);
    krait_map_done(&look.threads);
    rc = rc ? rc : name_functions(trace, f);
    rc = rc ? rc : sort_threads(trace, f);
    set_times(trace, f);
    return rc;
}

static int open_functions(struct krait_trace *trace, struct krait_folder *const *folders, uint32_t count,
                          struct krait_err *err)
{
    struct lttng_functions *f = calloc(1, sizeof(*f));
    if (!f)
        return krait_err_set(err, -ENOMEM, "out of memory");
    trace->impl->source[KRAIT_IMPORTER_lttng_functions] = f;
    f->first_process = trace->process_count;
    f->first_thread = trace->thread_count;
    int rc = open_reader(f, folders, count, err);
    rc = rc ? rc : look_at_all(trace, f);
    if (rc)
        return rc;
    trace->bytes += f->bytes;
    uint64_t lost = krait_losses_count(f->reader); /* of whom is not said: streams are of CPUs */
    for (uint32_t i = 0; i < f->thread_count; i++)
        trace->threads[f->first_thread + i].flags = lost ? KRAIT_TRACK_LOST : 0;
    return krait_trace_lose(trace, KRAIT_LTTNG_LOST(lost));
}

static void close_functions(void *source)
{
    struct lttng_functions *f = source;
    for (uint32_t i = 0; i < f->program_count; i++) {
        krait_map_done(&f->programs[i].funcs);
        free(f->programs[i].used);
        free(f->programs[i].mappings);
    }
    free(f->programs);
    free(f->threads);
    free(f->losses);
    krait_row_set_free(f->rows);
    krait_ctf_close(f->reader);
    krait_arena_done(&f->arena);
    free(f);
}

/* -- walking -- */

/* Of one thread. */
struct walk {
    const struct program *program;
    const struct whose *whose;
    const struct krait_process *process;
    struct krait_stack *stack;
    uint32_t next_loss;
    /* of which batches are, and who is told of them; NULL: calls alone are asked for */
    const struct krait_track *track;
    const struct krait_walking *walking;
};

/* Threads whose calls are made in one pass over the rows. */
struct pass {
    const struct lttng_functions *f;
    struct walk *walks;
    uint32_t count;
    struct krait_map at; /* by group and number: of the walk. Of one thread it is empty */
    struct walk *last;   /* whose the last event was */
    int rc;
};

enum { PASS_MOST = 256 }; /* threads: 35 KiB each */

/* What was open before events were lost, and its ends that come, cannot be told apart. */
static void pass_losses(const struct lttng_functions *f, struct walk *w, int64_t ns)
{
    for (; w->next_loss < f->loss_count && f->losses[w->next_loss] < ns; w->next_loss++)
        krait_stack_settle(w->stack, (uint64_t)KRAIT_MAX(f->losses[w->next_loss], 0), 0);
}

static struct walk *walk_of(struct pass *pass, const struct whose *whose)
{
    if (is_its(whose, pass->last->whose))
        return pass->last;
    const uint64_t *found = krait_map_get(&pass->at, key_of(whose->group, whose->tid));
    if (!found || !is_its(whose, pass->walks[*found].whose))
        return NULL;
    return pass->last = &pass->walks[*found];
}

static void walk_event(struct pass *pass, const struct event_of *event, const struct krait_row *row,
                       const uint64_t *cells)
{
    const struct whose whose = whose_is(pass->f, event, cells);
    struct walk *w = walk_of(pass, &whose);
    uint64_t ns = (uint64_t)KRAIT_MAX(row->ns, 0);
    if (!w)
        return;
    pass_losses(pass->f, w, row->ns);
    const uint64_t *func = event->address ? krait_map_get(&w->program->funcs, cells[event->address]) : NULL;
    if (event->kind == ENTRY && func)
        krait_stack_begin(w->stack, ns, (uint32_t)*func, (uint32_t)*func, KRAIT_OP_CALL, KRAIT_STACK_C);
    else if (event->kind == EXIT && func)
        krait_stack_end_of(w->stack, ns, (uint32_t)*func);
    else if (event->kind == EXIT && !event->address)
        krait_stack_end(w->stack, ns, KRAIT_OP_RETURN, KRAIT_STACK_C);
    pass->rc = w->stack->rc;
}

static void walk_rows(struct pass *pass, struct krait_row_order *order)
{
    const struct krait_row *rows;
    uint32_t count;
    while (!pass->rc && (rows = krait_row_order_next(order, &count), count)) {
        const uint64_t *cells = krait_row_order_cells(order);
        for (uint32_t i = 0; i < count && !pass->rc; i++) {
            const struct event_of *event = &pass->f->events[rows[i].cls];
            if (event->kind == ENTRY || event->kind == EXIT)
                walk_event(pass, event, &rows[i], cells + rows[i].cells);
        }
    }
    for (uint32_t i = 0; i < pass->count && !pass->rc; i++) {
        krait_stack_finish(pass->walks[i].stack, pass->walks[i].process->end_ns);
        pass->rc = pass->walks[i].stack->rc;
    }
}

static int hand_out(void *ctx, const struct krait_call_batch *ops)
{
    const struct walk *w = ctx;
    const struct krait_batch batch = { .n = ops->n, .t_ns = ops->t_ns, .calls = ops };
    return w->walking->batch(w->walking->ctx, w->track, &batch);
}

static int begin_walk(struct pass *pass, const struct krait_trace *trace, uint32_t thread,
                      const struct krait_track *track, const struct krait_walking *walking)
{
    const struct lttng_functions *f = pass->f;
    struct walk *w = &pass->walks[pass->count];
    const struct krait_thread *own = &trace->threads[thread];
    *w = (struct walk){ .program = &f->programs[own->process - f->first_process],
                        .whose = &f->threads[thread - f->first_thread],
                        .process = &trace->processes[own->process],
                        .stack = calloc(1, sizeof(*w->stack)),
                        .track = track,
                        .walking = walking };
    if (!w->stack)
        return -ENOMEM;
    krait_stack_init(w->stack, walking->range, track ? hand_out : walking->calls, track ? w : walking->ctx);
    pass->last = w;
    pass->count++;
    return track ? krait_map_put(&pass->at, key_of(w->whose->group, w->whose->tid), pass->count - 1) : 0;
}

static void pass_done(struct pass *pass)
{
    for (uint32_t i = 0; i < pass->count; i++) {
        krait_stack_done(pass->walks[i].stack);
        free(pass->walks[i].stack);
    }
    krait_map_done(&pass->at);
}

/* Their events are from the first to the last of them, or to the end of the range. */
static int run_pass(struct pass *pass, const struct krait_trace *trace, uint64_t from_ns, uint64_t until_ns,
                    const struct krait_walking *walking)
{
    struct krait_row_order *order = NULL;
    until_ns = KRAIT_MIN(KRAIT_MIN(until_ns, walking->range.to_ns), (uint64_t)INT64_MAX);
    int rc = krait_row_order_new(&order, pass->f->rows, (int64_t)from_ns, (int64_t)until_ns);
    if (!rc)
        walk_rows(pass, order);
    krait_row_order_free(order);
    uint64_t bytes = pass->f->bytes / pass->f->thread_count * pass->count;
    if (!rc && !pass->rc && trace->progress && !trace->progress(trace->progress_ctx, bytes))
        rc = -ECANCELED;
    return rc ? rc : pass->rc;
}

static int walk_thread(const struct krait_trace *trace, uint32_t index, const struct krait_walking *walking)
{
    const struct krait_thread *thread = &trace->threads[index];
    struct walk walk;
    KRAIT_CLEANUP(pass_done)
    struct pass pass = { .f = trace->impl->source[KRAIT_IMPORTER_lttng_functions], .walks = &walk };
    int rc = begin_walk(&pass, trace, index, NULL, walking);
    return rc ? rc : run_pass(&pass, trace, thread->begin_ns, thread->end_ns + 1, walking);
}

static int walk_some(const struct krait_trace *trace, const struct krait_track *const *tracks, uint32_t count,
                     const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE struct walk *walks = calloc(count, sizeof(*walks));
    KRAIT_CLEANUP(pass_done)
    struct pass pass = { .f = trace->impl->source[KRAIT_IMPORTER_lttng_functions], .walks = walks };
    uint64_t from_ns = UINT64_MAX, until_ns = 0;
    int rc = walks ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++) {
        const struct krait_thread *thread = &trace->threads[tracks[i]->thread];
        if (thread->begin_ns >= walking->range.to_ns)
            continue;
        from_ns = KRAIT_MIN(from_ns, thread->begin_ns);
        until_ns = KRAIT_MAX(until_ns, thread->end_ns + 1);
        rc = begin_walk(&pass, trace, tracks[i]->thread, tracks[i], walking);
    }
    return rc || !pass.count ? rc : run_pass(&pass, trace, from_ns, until_ns, walking);
}

/* All its tracks are of calls. */
static int walk_threads(const struct krait_trace *trace, const struct krait_track *const *tracks,
                        uint32_t count, const struct krait_walking *walking)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i += PASS_MOST)
        rc = walk_some(trace, tracks + i, KRAIT_MIN(count - i, (uint32_t)PASS_MOST), walking);
    return rc;
}

const struct krait_importer krait_importer_lttng_functions = { .takes = takes,
                                                               .open = open_functions,
                                                               .calls = walk_thread,
                                                               .walk_many = walk_threads,
                                                               .close = close_functions };
