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

#include <string.h>

/* Names before the colon whose events are calls, definitions, waits: other importers read them. */
static bool is_read_elsewhere(const char *name)
{
    static const char *const others[] = { "python:", "c:", "code:", "thread:", "gil:", "process:", "krait:" };
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(others); i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return true;
    }
    return false;
}

/* By id: the row of a mark; NULL: it is none. */
static void find_rows(const struct krait_event_row *rows[KRAIT_EVENT_IDS])
{
    memset(rows, 0, KRAIT_EVENT_IDS * sizeof(*rows));
    for (size_t i = 0; i < krait_event_count; i++) {
        if (!is_read_elsewhere(krait_events[i].name))
            rows[krait_events[i].id] = &krait_events[i];
    }
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
    const struct krait_image *image;
    const struct krait_event_row *rows[KRAIT_EVENT_IDS];
    struct krait_instants *instants; /* NULL: whether there is one is all that is asked */
    struct krait_ticks clock;
    bool found;
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

/* -- a thread's events -- */

static int add_mark(struct reading *reading, uint32_t id, uint64_t ticks, struct krait_cursor at)
{
    const char *name = reading->rows[id]->name;
    reading->found = true;
    if (!reading->instants)
        return 0;
    krait_buf_clear(&reading->text);
    add_fields(reading, reading->rows[id], at);
    krait_buf_char(&reading->text, '\0');
    return krait_instants_add(reading->instants, krait_ticks_ns(&reading->clock, ticks),
                              krait_trace_name(reading->trace, name), reading->text.data);
}

/* Most events are calls, which have a compact header and no string. hot path */
static int read_packet(struct reading *reading, const struct krait_packet *packet)
{
    struct krait_cursor cursor = { packet->body, packet->end };
    struct krait_event_head head = { .t = packet->head.timestamp_begin };
    int rc = 0;
    while (!rc && cursor.at < cursor.end && (reading->instants || !reading->found)) {
        if (!krait_head_read(&cursor, &head))
            return 0;
        uint32_t id = head.id;
        uint32_t size = krait_event_bytes(id);
        struct krait_cursor payload = cursor;
        if (KRAIT_LIKELY(size < KRAIT_PAYLOAD_VARIES && cursor.end - cursor.at >= (ptrdiff_t)size))
            cursor.at += size;
        else if (!krait_payload_skip(id, &cursor))
            return 0;
        if (KRAIT_UNLIKELY(id < KRAIT_EVENT_IDS && reading->rows[id]))
            rc = add_mark(reading, id, head.t, payload);
    }
    return rc;
}

static int read_thread(struct reading *reading, uint32_t thread, uint64_t from_ns,
                       struct krait_damage *damage)
{
    const struct krait_image *image = krait_image_of(reading->trace, thread);
    const struct krait_thread_file *file = &krait_recordings_of(reading->trace)->files[thread];
    struct krait_packets packets;
    struct krait_packet packet;
    reading->image = image;
    reading->clock = image->clock;
    int rc = krait_packets_open(&packets, file->path, image->uuid, NULL);
    if (rc)
        return rc == -ENOMEM ? rc : 0;
    krait_packets_go(&packets, krait_thread_file_seek(file, from_ns));
    while (!rc && (reading->instants || !reading->found) && krait_packets_next(&packets, &packet, damage)) {
        rc = read_packet(reading, &packet);
        krait_packets_release(&packets);
    }
    krait_packets_close(&packets);
    krait_buf_done(&reading->text);
    reading->text = (struct krait_buf){ 0 };
    return rc;
}

static bool has_rows(const struct reading *reading)
{
    for (unsigned i = 0; i < KRAIT_EVENT_IDS; i++) {
        if (reading->rows[i])
            return true;
    }
    return false;
}

/* -- the importer -- */

static bool takes(const struct krait_folder *folder)
{
    return krait_folder_is_kraits(folder);
}

/* A thread without any has no track. */
static int find_tracks(struct krait_trace *trace, struct krait_err *err)
{
    struct reading reading = { .trace = trace };
    struct krait_damage ignored = { 0 };
    int rc = 0;
    find_rows(reading.rows);
    for (uint32_t i = 0; has_rows(&reading) && i < trace->thread_count && krait_image_of(trace, i) && !rc;
         i++) {
        reading.found = false;
        rc = read_thread(&reading, i, 0, &ignored);
        if (rc || !reading.found)
            continue;
        struct krait_track *track =
            krait_trace_add_thread_track(trace, i, KRAIT_IMPORTER_krait_marks, KRAIT_TRACK_INSTANTS, "marks");
        if (!track)
            return -ENOMEM;
        track->flags = trace->threads[i].flags & KRAIT_TRACK_LOST;
    }
    return rc;
}

static int walk_track(const struct krait_trace *trace, const struct krait_track *track,
                      const struct krait_walking *walking)
{
    struct krait_instants instants = { .track = track, .walking = walking };
    struct reading reading = { .trace = trace, .instants = &instants };
    struct krait_damage damage = walking->damage;
    find_rows(reading.rows);
    int rc = read_thread(&reading, track->key, walking->range.from_ns, &damage);
    rc = rc && rc != -ERANGE ? rc : krait_instants_flush(&instants);
    krait_instants_done(&instants);
    return rc;
}

const struct krait_importer krait_importer_krait_marks = {
    .takes = takes, .kinds = 1 << KRAIT_TRACK_INSTANTS, .tracks = find_tracks, .walk = walk_track
};
