/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks in krait's own recordings: the events of a thread that no other importer reads are instants, by the
 * name of their row in events.def, with their fields as text. A new row needs nothing here.
 */
#include "base/buf.h"
#include "base/digits.h"
#include "base/json.h"
#include "ctf/scalar/real.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/instants.h"
#include "trace/thread_events.h"

#include <string.h>

/* Other importers read events that are calls, definitions, waits: by how the names begin. */
bool krait_marks_read(const char *event)
{
    static const char *const others[] = { "python:", "c:",    "code:", "thread:", "gil:",       "process:",
                                          "krait:",  "task:", "told:", "link:",   "span:rename" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(others); i++) {
        if (strncmp(event, others[i], strlen(others[i])) == 0)
            return false;
    }
    return true;
}

bool krait_marks_read_by_name(const char *event)
{
    static const char *const defined[] = { "task:define", "task:nursery", "task:parent" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(defined); i++) {
        if (strcmp(event, defined[i]) == 0)
            return false;
    }
    return strncmp(event, "task:", strlen("task:")) == 0 || strncmp(event, "gil:", strlen("gil:")) == 0;
}

unsigned krait_marks_also(const struct krait_track *track, const char *name)
{
    static const struct {
        const char *lead; /* what the event's name begins with */
        unsigned kind;
    } also[] = { { "span:", 1u << KRAIT_TRACK_SLICES },
                 { "call:", 1u << KRAIT_TRACK_SLICES },
                 { "user:counter", 1u << KRAIT_TRACK_COUNTER } };
    for (size_t i = 0; track->importer == KRAIT_IMPORTER_krait_marks && i < KRAIT_ARRAY_LEN(also); i++) {
        if (strncmp(name, also[i].lead, strlen(also[i].lead)) == 0)
            return also[i].kind;
    }
    return 0;
}

static void want_marks(struct krait_thread_events *events)
{
    for (size_t i = 0; i < krait_event_count; i++)
        events->wanted[krait_events[i].id] = krait_marks_read(krait_events[i].name);
}

/* -- fields as text -- */

struct reading;
struct plan;

/* Writes the next field of a payload. */
typedef void add_fn(struct reading *reading, const struct plan *plan, struct krait_cursor *at);

/* How a field is written: found once for each row of events.def, not for each event. */
struct plan {
    char lead[64]; /* "{ text = ", or ", n = " */
    size_t lead_len;
    add_fn *add;
    size_t size;             /* of a number, in the payload */
    const char *enumeration; /* of one of its values */
};

enum { MOST_FIELDS = 12 };

#define KRAIT_EVENT(id, symbol, name, doc)    enum { FIELDS_##symbol = 0
#define KRAIT_FIELD(symbol, type, field, doc) +1
#define KRAIT_EVENT_END(symbol) \
    }                           \
    ;                           \
    _Static_assert((int)FIELDS_##symbol <= (int)MOST_FIELDS, "MOST_FIELDS");
#include "event/events.def"

struct reading {
    const struct krait_trace *trace;
    const struct krait_image *image; /* of the thread */
    struct krait_thread_events events;
    struct krait_instants instants;
    struct krait_buf text;
    struct row_plan {
        bool is_made;
        uint32_t name; /* krait_trace_name */
        struct plan fields[MOST_FIELDS];
    } rows[KRAIT_EVENT_IDS];
};

static uint64_t read_number(struct krait_cursor *at, size_t size)
{
    uint64_t value = 0;
    size_t first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(value) - size : 0;
    krait_read_bytes(at, (uint8_t *)&value + first, size);
    return value;
}

static void add_digits(struct krait_buf *text, uint64_t value, bool is_signed)
{
    char *to = krait_buf_room(text, KRAIT_DIGITS_ROOM);
    if (to)
        text->len =
            (size_t)((is_signed ? krait_put_i64(to, (int64_t)value) : krait_put_u64(to, value)) - text->data);
}

static void add_unsigned(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    add_digits(&reading->text, read_number(at, plan->size), false);
}

static void add_signed(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    unsigned above = 64 - 8 * (unsigned)plan->size; /* bits that its sign fills */
    add_digits(&reading->text, (uint64_t)((int64_t)(read_number(at, plan->size) << above) >> above), true);
}

static void add_real(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    uint64_t value = read_number(at, plan->size);
    double real;
    char digits[2 * KRAIT_REAL_MOST];
    memcpy(&real, &value, sizeof(real));
    krait_buf_add(&reading->text, digits, (size_t)(krait_put_real(digits, real) - digits));
}

static void add_enum(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    uint64_t value = read_number(at, plan->size);
    const struct krait_enum_row *row = krait_enum_find(plan->enumeration, (uint32_t)value);
    if (row)
        krait_buf_str(&reading->text, row->label);
    else
        add_digits(&reading->text, value, false);
}

/* A function, a name or a type of exceptions; what is none is a number. */
static void add_code(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    uint32_t code = (uint32_t)read_number(at, plan->size);
    char label[512];
    const char *text = krait_image_code_text(reading->trace, reading->image, code, label, sizeof(label));
    if (text)
        krait_json_cstr(&reading->text, text);
    else
        add_digits(&reading->text, code, false);
}

static void add_text(struct reading *reading, const struct plan *plan, struct krait_cursor *at)
{
    const char *string;
    if (krait_read_text(at, &string))
        krait_json_cstr(&reading->text, string);
}

/* How the types of events.def are written; all others are enumerations. */
static const struct {
    const char *type;
    size_t size;
    add_fn *add;
} types[] = {
    { "u8", 1, add_unsigned },  { "u16", 2, add_unsigned },
    { "u32", 4, add_unsigned }, { "u64", 8, add_unsigned },
    { "i32", 4, add_signed },   { "i64", 8, add_signed },
    { "f64", 8, add_real },     { "code", sizeof(krait_type_code), add_code },
    { "str", 0, add_text },
};

static void plan_field(struct plan *plan, const struct krait_field_row *field, bool is_first)
{
    *plan = (struct plan){ .add = add_enum, .size = 1, .enumeration = field->type };
    plan->lead_len =
        (size_t)snprintf(plan->lead, sizeof(plan->lead), "%s%s = ", is_first ? "{ " : ", ", field->name);
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(types); i++) {
        if (strcmp(types[i].type, field->type) != 0)
            continue;
        plan->add = types[i].add;
        plan->size = types[i].size;
    }
}

static const struct row_plan *plan_of(struct reading *reading, const struct krait_event_row *row)
{
    struct row_plan *plan = &reading->rows[row->id];
    if (plan->is_made)
        return plan;
    plan->is_made = true;
    plan->name = krait_trace_name(reading->trace, row->name);
    for (size_t i = 0; i < row->field_count; i++)
        plan_field(&plan->fields[i], &row->fields[i], i == 0);
    return plan;
}

/* `{ text = "hello", n = 3 }` of a payload that is whole, as krait cat prints it. */
static void add_fields(struct reading *reading, const struct row_plan *row, size_t count,
                       struct krait_cursor at)
{
    for (size_t i = 0; i < count; i++) {
        const struct plan *plan = &row->fields[i];
        krait_buf_add(&reading->text, plan->lead, plan->lead_len);
        plan->add(reading, plan, &at);
    }
    krait_buf_str(&reading->text, count ? " }" : "");
}

/* -- the importer -- */

enum { FOUND = 1 };

static int find_mark(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    return FOUND;
}

/* A thread without any has no track. */
static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct krait_thread_events events = { .fn = find_mark };
    struct krait_damage ignored = { 0 };
    want_marks(&events);
    for (uint32_t i = 0; i < trace->thread_count && krait_image_of(trace, i); i++) {
        int rc = krait_thread_events_read(&events, trace, i, KRAIT_RANGE_ALL, &ignored);
        if (rc == -ENOMEM)
            return rc;
        if (rc != FOUND)
            continue;
        struct krait_track *track =
            krait_trace_add_thread_track(trace, i, KRAIT_IMPORTER_krait_marks, KRAIT_TRACK_INSTANTS, "marks");
        if (!track)
            return -ENOMEM;
        track->flags = trace->threads[i].flags & KRAIT_TRACK_LOST;
    }
    return 0;
}

static int add_mark(void *ctx, uint32_t id, uint64_t t_ns, struct krait_cursor payload)
{
    struct reading *reading = ctx;
    const struct krait_event_row *row = krait_event_find(id);
    const struct row_plan *plan = plan_of(reading, row);
    krait_buf_clear(&reading->text);
    add_fields(reading, plan, row->field_count, payload);
    krait_buf_char(&reading->text, '\0');
    return krait_instants_add(&reading->instants, t_ns, plan->name, reading->text.data);
}

/* Reads the events that reading->events wants, of the thread of a track, as the track's. */
static int walk_thread(struct reading *reading, const struct krait_trace *trace,
                       const struct krait_track *track, const struct krait_walking *walking)
{
    struct krait_damage damage = walking->damage;
    reading->trace = trace;
    reading->image = krait_image_of(trace, track->thread);
    reading->instants.track = track;
    reading->instants.walking = walking;
    reading->events.fn = add_mark;
    reading->events.ctx = reading;
    int rc = krait_thread_events_read(&reading->events, trace, track->thread, walking->range, &damage);
    rc = rc && rc != -ERANGE ? rc : krait_instants_flush(&reading->instants);
    krait_instants_done(&reading->instants);
    krait_buf_done(&reading->text);
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE struct reading *reading = calloc(1, sizeof(*reading));
    if (!reading)
        return -ENOMEM;
    want_marks(&reading->events);
    return walk_thread(reading, trace, track, walking);
}

int krait_marks_walk_by_name(const struct krait_trace *trace, const struct krait_track *track,
                             bool (*wants)(void *ctx, const char *name), const struct krait_walking *walking)
{
    KRAIT_AUTO_FREE struct reading *reading = calloc(1, sizeof(*reading));
    bool any = false;
    if (!reading)
        return -ENOMEM;
    for (size_t i = 0; i < krait_event_count; i++) {
        const char *name = krait_events[i].name;
        any |= reading->events.wanted[krait_events[i].id] =
            krait_marks_read_by_name(name) && wants(walking->ctx, name);
    }
    return any ? walk_thread(reading, trace, track, walking) : 0;
}

const struct krait_importer krait_importer_krait_marks = { .takes = krait_folder_is_kraits,
                                                           .kinds = 1 << KRAIT_TRACK_INSTANTS,
                                                           .tracks = find_tracks,
                                                           .walk = walk_track };
