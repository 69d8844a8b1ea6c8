/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CTF traces: krait's own recordings, LTTng's, barectf's, any other in CTF 1.8 or CTF 2.
 *
 *   open  ->  look fields up, once per event class  ->  cursor  ->  events  ->  values by handle
 *
 *   struct krait_reader *reader;
 *   struct krait_reader_error error;
 *   const char *path = "trace";
 *   if (krait_reader_open(&reader, &path, 1, &error))
 *       die(error.text);
 *   const struct krait_reader_class *sched = krait_reader_find_class(reader, "sched_switch");
 *   const struct krait_reader_field *tid;
 *   krait_reader_class_field(sched, KRAIT_READER_PAYLOAD, "prev_tid", &tid, &error);
 *   struct krait_reader_cursor *cursor;
 *   krait_reader_cursor_new_ordered(&cursor, reader, &error);
 *   while ((what = krait_reader_cursor_next(cursor)) > 0)
 *       if (what == KRAIT_READER_EVENT && krait_reader_cursor_class(cursor) == sched)
 *           krait_reader_cursor_signed(cursor, tid, &value);
 *
 * docs/trace_read.md explains it, docs/examples/ has whole programs.
 *
 * Results. Functions that can fail return 0 or a negative errno. On failure they leave their outputs unchanged.
 * `error` may be NULL. The library prints nothing and never ends the process.
 *
 * Ownership. Pointers to `const` belong to the reader and are valid until it is closed. Strings are
 * NUL-terminated unless they come with a length. What a cursor returns is valid until its next step.
 *
 * Threads. Any number of threads may use a reader at once. A cursor and its values belong to one thread at a
 * time: give each thread its own cursor, over its own packets or streams. Free all cursors before you close the
 * reader.
 *
 * Allocation. Reading values never allocates. krait_reader_cursor_next allocates only at the beginning of a
 * packet.
 *
 * Trust. The library checks the bytes of a trace before it returns them: damage is an error, never a crash. It
 * maps the files: if a file is truncated while it is being read, the process gets SIGBUS.
 *
 * Versions. The library's soname changes when a program that was linked with it would break. Within a soname,
 * structs that the caller allocates keep their size, and enumerations only grow: ignore values that you do not
 * know.
 */
#ifndef KRAIT_TRACE_READ_H
#define KRAIT_TRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef KRAIT_READER_API
#define KRAIT_READER_API __attribute__((visibility("default")))
#endif

/* Grows with each addition, while the soname stays the same. */
#define KRAIT_READER_VERSION 2

/* KRAIT_READER_VERSION of the library at run time. */
KRAIT_READER_API unsigned krait_reader_version(void);

struct krait_reader;        /* the traces that were opened */
struct krait_reader_class;  /* an event class of one of them */
struct krait_reader_field;  /* a field of one class's events */
struct krait_reader_cursor; /* iterates over events */

#define KRAIT_READER_NO_OFFSET UINT64_MAX

struct krait_reader_error {
    int code;        /* the negative errno; 0: nothing failed */
    uint32_t unused; /* 0 */
    uint64_t offset; /* in the file, in bytes; KRAIT_READER_NO_OFFSET: not known */
    char file[1024]; /* where it happened; empty: in no file */
    char text[1024]; /* one sentence: what failed, on what, with file and offset */
};

/* -- opening -- */

/* Opens the traces in the folders. A trace is a folder with a file `metadata`; if a folder has none, all traces
 * below it are opened. Several traces form one timeline. Damaged streams are no failure: cursors return the
 * events that are intact, and report the damage.
 * Errors: -EINVAL count is 0, -ENOENT no trace found, -EBADMSG damaged metadata, -ENOTSUP unknown version of the
 * metadata, -ENOMEM, and errors of opening files. */
KRAIT_READER_API int krait_reader_open(struct krait_reader **reader, const char *const *paths, size_t count,
                                       struct krait_reader_error *error);
/* Free all cursors first. `reader` may be NULL. */
KRAIT_READER_API void krait_reader_close(struct krait_reader *reader);

/* Reads every event once, to find where damage begins. Without this call, a cursor that begins or seeks behind a damaged
 * packet does not know about the damage and returns the events there. So the parts of a stream may have more events than
 * the whole stream, which ends at the damage. After this call, every new cursor ends a stream where its damage begins;
 * a cursor that begins behind the damage ends at once, with the error. Losses are reported as usual. It takes about two
 * thirds of the time of reading all fields in batches. Several threads may call it at once: they share the streams, and
 * each call returns when all streams have been read. No cursor may be in use meanwhile.
 * Returns 0 if the trace has no damage. Errors: -EBADMSG damage, described by `error`; the reader remains usable.
 * -ENOMEM. */
KRAIT_READER_API int krait_reader_check(struct krait_reader *reader, struct krait_reader_error *error);

/* -- streams: the events of one of the tracer's buffers (of a CPU, of a thread), in their order -- */

/* Streams are numbered from 0. For a number that is too high, functions return 0 or NULL. */
KRAIT_READER_API uint32_t krait_reader_stream_count(const struct krait_reader *reader);
/* Path of the stream's first file. */
KRAIT_READER_API const char *krait_reader_stream_path(const struct krait_reader *reader, uint32_t stream);
/* From the stream's packets; if they have none, a number counted within the trace. */
KRAIT_READER_API uint64_t krait_reader_stream_id(const struct krait_reader *reader, uint32_t stream);
KRAIT_READER_API uint32_t krait_reader_stream_packet_count(const struct krait_reader *reader,
                                                           uint32_t stream);
/* An entry in the environment of the stream's trace (hostname, vpid, tracer_name ...). NULL or -ENODATA: there is no
 * such entry, or it has the other type. */
KRAIT_READER_API const char *krait_reader_stream_env_text(const struct krait_reader *reader, uint32_t stream,
                                                          const char *name);
KRAIT_READER_API int krait_reader_stream_env_int(const struct krait_reader *reader, uint32_t stream,
                                                 const char *name, int64_t *value);
/* The frequency of the stream's clock in Hz; 0: it has no clock. */
KRAIT_READER_API uint64_t krait_reader_stream_clock_frequency(const struct krait_reader *reader,
                                                              uint32_t stream);

/* -- the trace of a stream -- */

/* An entry of the environment; entries have the order of the metadata. */
struct krait_reader_env {
    const char *name;
    const char *text; /* NULL: it is an integer */
    int64_t value;    /* if it is an integer */
};

KRAIT_READER_API uint32_t krait_reader_stream_env_count(const struct krait_reader *reader, uint32_t stream);
/* -EINVAL: there is no such entry. */
KRAIT_READER_API int krait_reader_stream_env(const struct krait_reader *reader, uint32_t stream, uint32_t i,
                                             struct krait_reader_env *entry);

/* A time is the origin, plus offset_s seconds, plus (offset_cycles + cycles) / frequency seconds. */
struct krait_reader_clock {
    const char *name;        /* in CTF 2, its id */
    const char *description; /* may be empty */
    uint64_t frequency;      /* Hz */
    uint64_t precision;      /* cycles; 0: not known */
    int64_t offset_s;
    uint64_t offset_cycles; /* less than a second */
    uint8_t uuid[16];
    uint32_t has_uuid;
    uint32_t is_absolute; /* the origin is the same on every host: 1970, unless the offset says otherwise */
    uint64_t unused[4];   /* 0 */
};

/* -ENODATA: the stream's events have no times. */
KRAIT_READER_API int krait_reader_stream_clock(const struct krait_reader *reader, uint32_t stream,
                                               struct krait_reader_clock *clock);
/* -ENODATA: the stream's trace has none. */
KRAIT_READER_API int krait_reader_stream_uuid(const struct krait_reader *reader, uint32_t stream,
                                              uint8_t uuid[16]);
/* The uid of CTF 2, which is any text; NULL: the stream's trace has none. */
KRAIT_READER_API const char *krait_reader_stream_uid(const struct krait_reader *reader, uint32_t stream);

/* -- event classes -- */

/* The classes of all opened traces are numbered from 0, so a program can keep its own data about them in an array.
 * NULL: no such class. */
KRAIT_READER_API uint32_t krait_reader_class_count(const struct krait_reader *reader);
KRAIT_READER_API const struct krait_reader_class *krait_reader_class_at(const struct krait_reader *reader,
                                                                        uint32_t index);
/* The first class with that name. Each trace and each stream class may have one. */
KRAIT_READER_API const struct krait_reader_class *krait_reader_find_class(const struct krait_reader *reader,
                                                                          const char *name);

KRAIT_READER_API uint32_t krait_reader_class_index(const struct krait_reader_class *cls);
/* Empty: the metadata has none. */
KRAIT_READER_API const char *krait_reader_class_name(const struct krait_reader_class *cls);
/* From the metadata; unique only in its stream class. */
KRAIT_READER_API uint64_t krait_reader_class_id(const struct krait_reader_class *cls);
KRAIT_READER_API uint64_t krait_reader_class_stream_class_id(const struct krait_reader_class *cls);
/* In LTTng's numbering (0 is TRACE_EMERG, 14 is TRACE_DEBUG); -1: the metadata has none. */
KRAIT_READER_API int krait_reader_class_log_level(const struct krait_reader_class *cls);

/* -- fields -- */

/* Where in an event to look. */
enum krait_reader_scope {
    KRAIT_READER_ANY_SCOPE, /* the first of the next four that has the path */
    KRAIT_READER_PAYLOAD,
    KRAIT_READER_EVENT_CONTEXT,  /* only of this class */
    KRAIT_READER_COMMON_CONTEXT, /* of all events of the stream (vtid, procname ...) */
    KRAIT_READER_PACKET_CONTEXT, /* of the packet that the event is in (cpu_id ...) */
    KRAIT_READER_PACKET_HEADER,
    KRAIT_READER_EVENT_HEADER,
};

enum krait_reader_kind {
    KRAIT_READER_UNSIGNED = 1,
    KRAIT_READER_SIGNED,
    KRAIT_READER_DOUBLE,
    KRAIT_READER_TEXT,   /* strings, and arrays of characters; in the trace's own encoding */
    KRAIT_READER_STRUCT, /* children: its members */
    KRAIT_READER_ARRAY,  /* children: its elements; sequences and CTF 2's blobs too */
    /* Of a field, also of an optional one: each event has the kind of the option that it has chosen. Of a child: an
     * optional value that is absent. */
    KRAIT_READER_VARIANT,
};

/* Looks up a field by its path. Do this once per class. The handle belongs to the reader, and works only for events of
 * `cls`. A path consists of names with dots between them: "prev_tid", "args[2]", "addr.ip". An element of an array has
 * its index in brackets. The name of a variant stands for the option that an event has chosen; a field in an option
 * has that option's name in its path: "data.as_int.value". An empty path is the scope itself. Write names without the
 * underscore that LTTng puts before them; the names in the metadata's own spelling work too. In backquotes a name is
 * spelled as in the metadata and may contain any character: "`my.name`.`a [b]`", where \` is a backquote and \\ a
 * backslash.
 * Errors: -ENOENT the class has no such field (the text says where the path ends), -EINVAL this is not a path,
 * -ENOMEM. Several threads may call it at once. Each call takes memory: keep the handle. */
KRAIT_READER_API int krait_reader_class_field(const struct krait_reader_class *cls,
                                              enum krait_reader_scope scope, const char *path,
                                              const struct krait_reader_field **field,
                                              struct krait_reader_error *error);
KRAIT_READER_API enum krait_reader_kind krait_reader_field_kind(const struct krait_reader_field *field);
/* The last name of the path. */
KRAIT_READER_API const char *krait_reader_field_name(const struct krait_reader_field *field);
/* Whether it is an enumeration: an integer with labels. */
KRAIT_READER_API bool krait_reader_field_is_enum(const struct krait_reader_field *field);
/* Whether all events have it at the same offset. Reading it then costs one load. */
KRAIT_READER_API bool krait_reader_field_is_fixed(const struct krait_reader_field *field);

/* -- the fields of a class, without an event -- */

enum krait_reader_schema_flags {
    KRAIT_READER_SCHEMA_ENUM = 1,      /* an integer with labels, which are its mappings */
    KRAIT_READER_SCHEMA_BITS = 2,      /* an integer whose mappings give names to bits */
    KRAIT_READER_SCHEMA_BOOL = 4,      /* an integer; 0 is false */
    KRAIT_READER_SCHEMA_FIXED = 8,     /* ARRAY, TEXT: has `length` in every event */
    KRAIT_READER_SCHEMA_BLOB = 16,     /* ARRAY: of uninterpreted bytes */
    KRAIT_READER_SCHEMA_OPTIONAL = 32, /* VARIANT: has one option, which may be absent */
    KRAIT_READER_SCHEMA_BIG_ENDIAN = 64,
};

/* A field's class, in the caller's memory. */
struct krait_reader_schema {
    const char *name; /* of the member or option, as it is displayed; empty for scopes and elements */
    enum krait_reader_kind kind;
    uint32_t flags;         /* enum krait_reader_schema_flags */
    uint32_t bits;          /* size of a number; 0: each value takes as many bytes as it needs */
    uint32_t base;          /* in which an integer is displayed: 2, 8, 10 or 16 */
    uint32_t child_count;   /* STRUCT: members; VARIANT: options; ARRAY: 1, its element */
    uint32_t mapping_count; /* ranges of labels */
    uint64_t length;        /* with FIXED: elements, of a TEXT bytes */
    const void *opaque;
    uint64_t unused[3]; /* 0 */
};

/* A label for the values from lo to hi, both included; in two's complement if the integer is signed. With BITS, lo and
 * hi are numbers of bits. */
struct krait_reader_mapping {
    const char *label;
    uint64_t lo, hi;
};

/* A whole scope, as a STRUCT. -ENOENT: the class has no such scope, or it is KRAIT_READER_ANY_SCOPE. */
KRAIT_READER_API int krait_reader_class_schema(const struct krait_reader_class *cls,
                                               enum krait_reader_scope scope,
                                               struct krait_reader_schema *schema);
KRAIT_READER_API void krait_reader_field_schema(const struct krait_reader_field *field,
                                                struct krait_reader_schema *schema);
/* -EINVAL: there is no such child, or no such mapping. */
KRAIT_READER_API int krait_reader_schema_child(const struct krait_reader_schema *schema, uint32_t i,
                                               struct krait_reader_schema *child);
KRAIT_READER_API int krait_reader_schema_mapping(const struct krait_reader_schema *schema, uint32_t i,
                                                 struct krait_reader_mapping *mapping);

/* -- cursors -- */

/* All streams, ordered by time. Events with equal times always have the same order. */
KRAIT_READER_API int krait_reader_cursor_new_ordered(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader,
                                                     struct krait_reader_error *error);
/* The events of one stream. -EINVAL: there is no such stream. */
KRAIT_READER_API int krait_reader_cursor_new_stream(struct krait_reader_cursor **cursor,
                                                    const struct krait_reader *reader, uint32_t stream,
                                                    struct krait_reader_error *error);
/* The events of `count` packets of one stream, from packet `first` on, so that threads can share a stream. -EINVAL:
 * there are no such packets. -ENOTSUP: `first` is not 0, and the packet does not contain its full begin time, so its
 * times depend on the packets before it; read such a stream with one cursor. */
KRAIT_READER_API int krait_reader_cursor_new_packets(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader, uint32_t stream,
                                                     uint32_t first, uint32_t count,
                                                     struct krait_reader_error *error);
/* `cursor` may be NULL. */
KRAIT_READER_API void krait_reader_cursor_free(struct krait_reader_cursor *cursor);

/* The result of a cursor's step; ignore those that you do not know. */
enum krait_reader_step {
    KRAIT_READER_END = 0,
    KRAIT_READER_EVENT = 1,
    KRAIT_READER_LOST = 2, /* see krait_reader_cursor_lost */
};

/* Moves to the next event. Returns an enum krait_reader_step, or a negative errno. Damage ends only its own stream: the
 * cursor first returns the events before the damage and those of all other streams, then the error in place of
 * KRAIT_READER_END; krait_reader_cursor_error describes it. After END or an error, it returns the same again. hot path */
KRAIT_READER_API int krait_reader_cursor_next(struct krait_reader_cursor *cursor);

/* The next step goes to the first event at `ns` or later, forward or backward. The cursor skips the events before that
 * time; it does not read packets that end before it, nor report their losses. A cursor over some packets stays within
 * them. -EINVAL: the cursor reads batches (krait_reader_cursor_new_between begins those at a time). -ENOMEM. */
KRAIT_READER_API int krait_reader_cursor_seek(struct krait_reader_cursor *cursor, int64_t ns);
/* The error of the step that failed; its code is 0 if none has failed. */
KRAIT_READER_API void krait_reader_cursor_error(const struct krait_reader_cursor *cursor,
                                                struct krait_reader_error *error);

/* About the current event; all of them hot path. Do not call them before the first event, after the end or at LOST; only
 * _stream works at LOST too. */
KRAIT_READER_API const struct krait_reader_class *
krait_reader_cursor_class(const struct krait_reader_cursor *cursor);
KRAIT_READER_API uint32_t krait_reader_cursor_stream(const struct krait_reader_cursor *cursor);
/* The packet's number in its stream, from 0. */
KRAIT_READER_API uint32_t krait_reader_cursor_packet(const struct krait_reader_cursor *cursor);
/* Nanoseconds since the clock's origin, usually 1970, rounded like babeltrace2's; 0 without a clock. */
KRAIT_READER_API int64_t krait_reader_cursor_ns(const struct krait_reader_cursor *cursor);
/* The value of the clock, without its offset. */
KRAIT_READER_API uint64_t krait_reader_cursor_cycles(const struct krait_reader_cursor *cursor);

/* What the tracer says it discarded. A cursor reports a loss before the first event of the packet that contains it. */
struct krait_reader_lost {
    uint32_t stream;
    uint32_t packets; /* 1: whole packets are missing; 0: events */
    uint64_t count;   /* 0: not known */
    int64_t begin_ns; /* it happened between these; both 0 if the packets have no times */
    int64_t end_ns;
};

/* -EINVAL: the last step was not LOST. */
KRAIT_READER_API int krait_reader_cursor_lost(const struct krait_reader_cursor *cursor,
                                              struct krait_reader_lost *lost);

/* -- values of the current event, by handle -- */

/* Errors of all of them: -EINVAL the handle is for another class, or the field has another kind; -ENODATA the event has no
 * such value (it has chosen another option of the variant, or the array is shorter than the index). hot path */

/* An unsigned integer, or a signed one that is not negative. -ERANGE: it is negative. */
KRAIT_READER_API int krait_reader_cursor_unsigned(const struct krait_reader_cursor *cursor,
                                                  const struct krait_reader_field *field, uint64_t *value);
/* Any integer that fits. -ERANGE: it exceeds INT64_MAX. */
KRAIT_READER_API int krait_reader_cursor_signed(const struct krait_reader_cursor *cursor,
                                                const struct krait_reader_field *field, int64_t *value);
/* A floating-point number, or an integer converted to one. */
KRAIT_READER_API int krait_reader_cursor_double(const struct krait_reader_cursor *cursor,
                                                const struct krait_reader_field *field, double *value);
/* Points to the bytes in the trace, up to the NUL, which `size` does not count. The text may contain any bytes. */
KRAIT_READER_API int krait_reader_cursor_text(const struct krait_reader_cursor *cursor,
                                              const struct krait_reader_field *field, const char **text,
                                              size_t *size);
/* The first label of the enumeration that fits the value. -ENODATA: none does. */
KRAIT_READER_API int krait_reader_cursor_label(const struct krait_reader_cursor *cursor,
                                               const struct krait_reader_field *field, const char **label);

/* -- values of any kind -- */

/* A value of the current event, in the caller's memory. Only the library's functions change it. */
struct krait_reader_value {
    const void *opaque[2];
    uint64_t number[5];
};

KRAIT_READER_API int krait_reader_cursor_value(const struct krait_reader_cursor *cursor,
                                               const struct krait_reader_field *field,
                                               struct krait_reader_value *value);

KRAIT_READER_API enum krait_reader_kind krait_reader_value_kind(const struct krait_reader_value *value);
/* The name of the member; for an element, the name of its array. */
KRAIT_READER_API const char *krait_reader_value_name(const struct krait_reader_value *value);
/* The name of the option that the variant has chosen; NULL: it is no variant. */
KRAIT_READER_API const char *krait_reader_value_option(const struct krait_reader_value *value);
/* The number of members or elements; 0 for scalars. */
KRAIT_READER_API uint64_t krait_reader_value_count(const struct krait_reader_value *value);

/* Like the functions that take a handle. */
KRAIT_READER_API int krait_reader_value_unsigned(const struct krait_reader_value *value, uint64_t *number);
KRAIT_READER_API int krait_reader_value_signed(const struct krait_reader_value *value, int64_t *number);
KRAIT_READER_API int krait_reader_value_double(const struct krait_reader_value *value, double *number);
KRAIT_READER_API int krait_reader_value_text(const struct krait_reader_value *value, const char **text,
                                             size_t *size);
KRAIT_READER_API int krait_reader_value_label(const struct krait_reader_value *value, const char **label);

/* Iterates over members or elements: initialize `child` with krait_reader_value_children, then step. Returns 1 and the
 * child, 0 after the last one, or a negative errno. Finish an inner loop before the outer one steps, because the lengths
 * of sequences within an element are those of the element that was reached last. */
KRAIT_READER_API void krait_reader_value_children(const struct krait_reader_value *parent,
                                                  struct krait_reader_value *child);
KRAIT_READER_API int krait_reader_value_next(const struct krait_reader_value *parent,
                                             struct krait_reader_value *child);

/* -- batches: many events at a time, all their fields decoded --
 *
 * The fastest way to read, several times as fast as event by event. A batch has events, and for each event a row of
 * 64-bit cells, filled by machine code that is compiled for the trace. A row begins with two cells about the event
 * itself. Then come its fields, which krait_reader_class_cell lists:
 *
 *   events[i]   { ns, cls, cells } ---.
 *                                     v
 *   cells       ... | origin | address | field | field | address of text | bytes of text | ... | next row
 *
 *   origin   the stream's number in the low 32 bits, the packet's number in the high ones
 *   address  of the event in the mapped file, in the low 61 bits; the number of the bit in that byte above
 *   cycles   only after krait_reader_want_cycles, a third cell before the fields: the value of the stream's clock,
 *            as from krait_reader_cursor_cycles
 *   field    of an integer or enumeration its value, sign-extended; of a float the bits of a double;
 *            of a text, or an array or sequence of numbers, two cells: the address of its bytes in the mapped
 *            file, and the number of bytes (up to a NUL) or elements
 *
 * Some fields have no cells: variants, optional fields, arrays of structs, arrays of numbers that are not whole bytes,
 * texts in UTF-16 and UTF-32; also those beyond some 4,000 cells, or beyond 256 fields in a class with variants or the
 * like. To read them, call krait_reader_cursor_select: it makes one event of the batch the cursor's current event, for
 * all functions above. */

enum {
    KRAIT_READER_CELL_ORIGIN = 0,
    KRAIT_READER_CELL_ADDRESS = 1,
    KRAIT_READER_CELL_CYCLES = 2, /* only after krait_reader_want_cycles; otherwise a field may be there */
    /* At least this many cells can be read from the beginning of a row. Those after the row's end have no meaning. */
    KRAIT_READER_CELLS_BEYOND = 32,
};

struct krait_reader_event {
    int64_t ns;     /* as from krait_reader_cursor_ns */
    uint32_t cls;   /* krait_reader_class_index of its class */
    uint32_t cells; /* index of its row in the batch's cells */
};

struct krait_reader_batch {
    const struct krait_reader_event *events;
    const uint64_t *cells;
    /* With a stream's cursor, the rows are in [0, cell_count), side by side and in the order of the events. With a
     * cursor by time it is 0: find rows by their events. */
    uint64_t cell_count;
    /* Losses found since the last batch. They may come up to some hundred events before the place where they
     * happened. */
    const struct krait_reader_lost *lost;
    uint32_t count; /* of events; may be 0 if there are losses */
    uint32_t lost_count;
    uint64_t unused[4]; /* 0 */
};

/* Returns the next events: some hundred, more if they are short. The result is KRAIT_READER_EVENT, KRAIT_READER_END, or
 * a negative errno in place of the end, as with krait_reader_cursor_next: damage comes last. All that the batch points
 * to is valid until the next call. -EINVAL: the cursor has already been used with krait_reader_cursor_next. hot path */
KRAIT_READER_API int krait_reader_cursor_next_batch(struct krait_reader_cursor *cursor,
                                                    struct krait_reader_batch *batch);

/* All streams by time, from begin_ns up to but without end_ns (INT64_MAX: to the end), only in batches. So threads can
 * share the order of time. If the times of a stream go backward, its part begins with its first event at begin_ns or
 * later, and ends before its first event at end_ns or later; so successive parts have each event once. Packets outside
 * of that time are not read. The losses are those of packets that begin in that time, and, if begin_ns is INT64_MIN,
 * those before the first event. */
KRAIT_READER_API int krait_reader_cursor_new_between(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader, int64_t begin_ns,
                                                     int64_t end_ns, struct krait_reader_error *error);

/* The time before which about part/parts of the packets' bytes are: where to cut for `parts` threads. INT64_MIN for
 * part 0, INT64_MAX for `parts` and more. */
KRAIT_READER_API int64_t krait_reader_split(const struct krait_reader *reader, uint32_t part, uint32_t parts);

/* Makes event `index` of the cursor's last batch the current event, for krait_reader_cursor_class, _stream, _packet, _ns,
 * _cycles and all values. Not a hot path, because it reads the event's header again. If the header has no time, and a
 * nanosecond has several cycles of the clock, _cycles returns one of them, unless rows have the exact value
 * (krait_reader_want_cycles). -EINVAL: there is no such event. */
KRAIT_READER_API int krait_reader_cursor_select(struct krait_reader_cursor *cursor,
                                                const struct krait_reader_batch *batch, uint32_t index);

/* Chooses the fields that have cells in the reader's batches: these, of any classes, and no others. With a `count` of 0
 * there are none, and batches have only the class, time and place of each event. Other fields are skipped instead of
 * decoded, and rows are shorter. The choice applies to all cursors of the reader, and to the functions about cells below;
 * krait_reader_cursor_select still reaches every field. A struct stands for all fields in it, and a field of the common
 * context for the same field in all classes of its stream class. Fields that cannot have cells get none.
 * Errors: -EBUSY a batch was read, or a function about cells called, before; -ENOMEM. */
KRAIT_READER_API int krait_reader_want_fields(struct krait_reader *reader,
                                              const struct krait_reader_field *const *fields, size_t count,
                                              struct krait_reader_error *error);

/* Gives each row a cell with the time in cycles of the stream's clock, whose frequency and offset
 * krait_reader_stream_clock returns. Cycles are exact, while nanoseconds are rounded. The value is unsigned, without the
 * offset, and has no meaning if the stream has no clock. krait_reader_cursor_select then has the exact value too. The
 * choice applies to all cursors of the reader. It may come before or after krait_reader_want_fields, and has the same
 * errors. */
KRAIT_READER_API int krait_reader_want_cycles(struct krait_reader *reader, struct krait_reader_error *error);

enum krait_reader_cell_flags {
    KRAIT_READER_CELL_SIGNED = 1,     /* elements are signed integers */
    KRAIT_READER_CELL_FLOAT = 2,      /* elements are floats */
    KRAIT_READER_CELL_BIG_ENDIAN = 4, /* elements' bytes in the file begin with the most significant */
};

/* A field that has cells. */
struct krait_reader_cell {
    const char *path; /* for krait_reader_class_field, with backquotes around names that need them */
    enum krait_reader_scope scope;
    enum krait_reader_kind kind; /* UNSIGNED, SIGNED, DOUBLE: one cell; TEXT, ARRAY: two */
    uint32_t cell;               /* the first one, counted from the beginning of the row */
    uint32_t element_bits;       /* ARRAY: 8, 16, 32 or 64 */
    uint32_t flags;              /* ARRAY: enum krait_reader_cell_flags */
    uint32_t unused;
};

/* The number of cells in a row of the class, with those about the event. The first call may allocate. -ENOMEM. */
KRAIT_READER_API int krait_reader_class_row_size(const struct krait_reader_class *cls);
/* The number of fields that have cells, or -ENOMEM. */
KRAIT_READER_API int krait_reader_class_cell_count(const struct krait_reader_class *cls);
/* Field i of them, in the order of the trace. -EINVAL: there is none. */
KRAIT_READER_API int krait_reader_class_cell(const struct krait_reader_class *cls, uint32_t i,
                                             struct krait_reader_cell *cell);
/* The number of the field's first cell. -ENODATA: it has none. */
KRAIT_READER_API int krait_reader_field_cell(const struct krait_reader_field *field);

#ifdef __cplusplus
}
#endif

#endif
