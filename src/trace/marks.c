/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks in krait's own recordings: the events of a thread that no other importer reads are instants, by the
 * name of their row in events.def, with their fields as text. A new row needs nothing here.
 */
#include "base/buf.h"
#include "base/json.h"
#include "ctf/scalar/real.h"
#include "event/payload.h"
#include "trace/import.h"
#include "trace/instants.h"
#include "trace/thread_events.h"

#include <string.h>

/* Names before the colon whose events are calls, definitions, waits: other importers read them. */
static bool is_read_elsewhere(const char *name)
{
    static const char *const others[] = { "python:", "c:",       "code:",  "thread:",
                                          "gil:",    "process:", "krait:", "task:" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(others); i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return true;
    }
    return false;
}

static void want_marks(struct krait_thread_events *events)
{
    for (size_t i = 0; i < krait_event_count; i++)
        events->wanted[krait_events[i].id] = !is_read_elsewhere(krait_events[i].name);
}

/* -- fields as text -- */

/* What each type's value is as text: the types of events.def, and enumerations. */
static void add_unsigned(struct krait_buf *text, uint64_t value)
{
    krait_buf_fmt(text, "%llu", (unsigned long long)value);
}

static void add_i32(struct krait_buf *text, uint64_t value)
{
    krait_buf_fmt(text, "%d", (int32_t)value);
}

static void add_i64(struct krait_buf *text, uint64_t value)
{
    krait_buf_fmt(text, "%lld", (long long)value);
}

static void add_f64(struct krait_buf *text, uint64_t value)
{
    double real;
    memcpy(&real, &value, sizeof(real));
    char digits[2 * KRAIT_REAL_MOST];
    krait_buf_add(text, digits, (size_t)(krait_put_real(digits, real) - digits));
}

static const struct number_type {
    const char *type;
    size_t size;
    void (*add)(struct krait_buf *text, uint64_t value);
} number_types[] = {
    { "u8", 1, add_unsigned },  { "u16", 2, add_unsigned }, { "u32", 4, add_unsigned },
    { "u64", 8, add_unsigned }, { "i32", 4, add_i32 },      { "i64", 8, add_i64 },
    { "f64", 8, add_f64 },
};

static const struct number_type *number_type(const char *type)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(number_types); i++) {
        if (strcmp(number_types[i].type, type) == 0)
            return &number_types[i];
    }
    return NULL;
}

static uint64_t read_number(struct krait_cursor *at, size_t size)
{
    uint64_t value = 0;
    size_t first = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(value) - size : 0;
    krait_read_bytes(at, (uint8_t *)&value + first, size);
    return value;
}

static void add_enum(struct krait_buf *text, const char *enumeration, uint64_t value)
{
    const struct krait_enum_row *row = krait_enum_find(enumeration, (uint32_t)value);
    if (row)
        krait_buf_str(text, row->label);
    else
        add_unsigned(text, value);
}

/* A function or a name; what is neither is a number. */
static void add_code(struct krait_buf *text, const struct krait_trace *trace, const struct krait_image *image,
                     uint32_t code)
{
    char label[512];
    const uint64_t *name = krait_map_get(&image->names, code);
    uint32_t func = code < image->code_count ? image->code_func[code] : KRAIT_NO_ID;
    if (name)
        krait_json_cstr(text, krait_track_text(trace, (uint32_t)*name));
    else if (func != KRAIT_NO_ID)
        krait_json_cstr(text, krait_func_label(&trace->funcs[func], label, sizeof(label)));
    else
        add_unsigned(text, code);
}

struct reading {
    const struct krait_trace *trace;
    const struct krait_image *image; /* of the thread */
    struct krait_thread_events events;
    struct krait_instants instants;
    struct krait_buf text;
};

static void add_field(struct krait_buf *text, const struct reading *reading, const char *type,
                      struct krait_cursor *at)
{
    const struct number_type *number = number_type(type);
    const char *string;
    if (number)
        number->add(text, read_number(at, number->size));
    else if (strcmp(type, "code") == 0)
        add_code(text, reading->trace, reading->image, (uint32_t)read_number(at, sizeof(krait_type_code)));
    else if (strcmp(type, "str") != 0)
        add_enum(text, type, read_number(at, 1));
    else if (krait_read_text(at, &string))
        krait_json_cstr(text, string);
}

/* `{ text = "hello", n = 3 }` of a payload that is whole, as krait cat prints it. */
static void add_fields(struct reading *reading, const struct krait_event_row *row, struct krait_cursor at)
{
    struct krait_buf *text = &reading->text;
    for (size_t i = 0; i < row->field_count; i++) {
        krait_buf_fmt(text, "%s%s = ", i ? ", " : "{ ", row->fields[i].name);
        add_field(text, reading, row->fields[i].type, &at);
    }
    krait_buf_str(text, row->field_count ? " }" : "");
}

/* -- the importer -- */

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

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
        int rc = krait_thread_events_read(&events, trace, i, 0, &ignored);
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
    krait_buf_clear(&reading->text);
    add_fields(reading, row, payload);
    krait_buf_char(&reading->text, '\0');
    return krait_instants_add(&reading->instants, t_ns, krait_trace_name(reading->trace, row->name),
                              reading->text.data);
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    struct reading reading = { .trace = trace,
                               .image = krait_image_of(trace, track->key),
                               .instants = { .track = track, .walking = walking },
                               .events = { .fn = add_mark, .ctx = &reading } };
    struct krait_damage damage = walking->damage;
    want_marks(&reading.events);
    int rc = krait_thread_events_read(&reading.events, trace, track->key, walking->range.from_ns, &damage);
    rc = rc && rc != -ERANGE ? rc : krait_instants_flush(&reading.instants);
    krait_instants_done(&reading.instants);
    krait_buf_done(&reading.text);
    return rc;
}

const struct krait_importer krait_importer_krait_marks = {
    .takes = takes, .kinds = 1 << KRAIT_TRACK_INSTANTS, .tracks = find_tracks, .walk = walk_track
};
