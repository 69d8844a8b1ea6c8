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
 * Results. Functions that can fail return 0 or a negative errno and leave their outputs as they were on
 * failure. `error` may be NULL. Nothing is printed, the process is never ended.
 *
 * Ownership. What is `const` belongs to the reader and is valid until it is closed. Strings are
 * NUL-terminated unless they come with a length. What a cursor hands out is valid until its next step.
 *
 * Threads. A reader may be used by any number of threads at once. A cursor and the values from it belong to
 * one thread at a time: give each thread a cursor of its own, over packets or streams of its own. Closing the
 * reader comes after freeing all its cursors.
 *
 * Allocation. Reading values never allocates. krait_reader_cursor_next may at the begin of a packet only.
 *
 * Trust. The bytes of a trace are checked before they are handed out: damage is an error, never a crash. The
 * files are mapped: a file that is made shorter while it is read ends the process with SIGBUS.
 *
 * Versions. The library's soname changes when a program that was linked with it would break. Structs that the
 * caller allocates do not change their size within a soname, and enumerations only grow: treat unknown values
 * of them as something to pass over.
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

/* Grows with each addition; the soname's number stays. */
#define KRAIT_READER_VERSION 2

/* KRAIT_READER_VERSION of the library that runs. */
KRAIT_READER_API unsigned krait_reader_version(void);

struct krait_reader;        /* the traces that were opened */
struct krait_reader_class;  /* an event class of one of them */
struct krait_reader_field;  /* a place in the events of one class */
struct krait_reader_cursor; /* goes through events */

#define KRAIT_READER_NO_OFFSET UINT64_MAX

struct krait_reader_error {
    int code;        /* the negative errno; 0 when nothing failed */
    uint32_t unused; /* 0 */
    uint64_t offset; /* bytes from the file's begin; KRAIT_READER_NO_OFFSET where none is known */
    char file[1024]; /* that it is about; empty where it is about none */
    char text[1024]; /* one sentence: what failed, on what, with file and offset */
};

/* -- opening -- */

/* Opens the traces of the folders: a folder with a file `metadata`, else all such folders below it. Several
 * are one timeline. Streams that are damaged do not fail it: what is intact is handed out, the damage is told
 * by the cursor.
 * Errors: -EINVAL count is 0, -ENOENT no trace in there, -EBADMSG damaged metadata, -ENOTSUP metadata of a
 * version that is not known, -ENOMEM, and what opening files gives. */
KRAIT_READER_API int krait_reader_open(struct krait_reader **reader, const char *const *paths, size_t count,
                                       struct krait_reader_error *error);
/* NULL is fine. No cursor may be left. */
KRAIT_READER_API void krait_reader_close(struct krait_reader *reader);

/* Reads every event once, to know where damage begins. Without it a cursor that begins or seeks behind a damaged packet
 * does not know of it and hands out what is there: parts of a stream then have more events than the whole, which ends
 * at the damage. After it every cursor that is made ends its streams where the whole does; those that begin behind it
 * end at once, with its error. Losses are told as ever. Takes about two thirds of what reading all fields in batches
 * takes. Several threads may call it at once: they share the streams, and each returns when all are read. No cursor may
 * be in use meanwhile.
 * Returns 0 when all is whole. Errors: -EBADMSG there is damage, which `error` tells: the reader can be used all the
 * same. -ENOMEM. */
KRAIT_READER_API int krait_reader_check(struct krait_reader *reader, struct krait_reader_error *error);

/* -- streams: what one tracer's buffer wrote, in its order (a CPU's, a thread's) -- */

/* Streams are numbered from 0. A number that is too high: 0, or NULL. */
KRAIT_READER_API uint32_t krait_reader_stream_count(const struct krait_reader *reader);
/* Path of the stream's first file. */
KRAIT_READER_API const char *krait_reader_stream_path(const struct krait_reader *reader, uint32_t stream);
/* As its packets say, else counted in its trace. */
KRAIT_READER_API uint64_t krait_reader_stream_id(const struct krait_reader *reader, uint32_t stream);
KRAIT_READER_API uint32_t krait_reader_stream_packet_count(const struct krait_reader *reader,
                                                           uint32_t stream);
/* An entry of the environment of the stream's trace (hostname, vpid, tracer_name ...). NULL, or -ENODATA,
 * if there is none, or one of the other type. */
KRAIT_READER_API const char *krait_reader_stream_env_text(const struct krait_reader *reader, uint32_t stream,
                                                          const char *name);
KRAIT_READER_API int krait_reader_stream_env_int(const struct krait_reader *reader, uint32_t stream,
                                                 const char *name, int64_t *value);
/* Hz of the clock that the stream's times are in; 0 if it has none. */
KRAIT_READER_API uint64_t krait_reader_stream_clock_frequency(const struct krait_reader *reader,
                                                              uint32_t stream);

/* -- the trace of a stream -- */

/* Entries of the environment, in the order of the metadata. */
struct krait_reader_env {
    const char *name;
    const char *text; /* NULL: it is an integer */
    int64_t value;    /* of an integer */
};

KRAIT_READER_API uint32_t krait_reader_stream_env_count(const struct krait_reader *reader, uint32_t stream);
/* -EINVAL: there is no such entry. */
KRAIT_READER_API int krait_reader_stream_env(const struct krait_reader *reader, uint32_t stream, uint32_t i,
                                             struct krait_reader_env *entry);

/* A time is its origin's, plus offset_s seconds, plus (offset_cycles + cycles) / frequency seconds. */
struct krait_reader_clock {
    const char *name;        /* CTF 2: its id */
    const char *description; /* may be empty */
    uint64_t frequency;      /* Hz */
    uint64_t precision;      /* cycles; 0 if it is not known */
    int64_t offset_s;
    uint64_t offset_cycles; /* less than a second */
    uint8_t uuid[16];
    uint32_t has_uuid;
    uint32_t is_absolute; /* its origin is the same on every host: 1970 where there is no offset from that */
    uint64_t unused[4];   /* 0 */
};

/* -ENODATA: the stream's events have no times. */
KRAIT_READER_API int krait_reader_stream_clock(const struct krait_reader *reader, uint32_t stream,
                                               struct krait_reader_clock *clock);
/* -ENODATA: its trace has none. */
KRAIT_READER_API int krait_reader_stream_uuid(const struct krait_reader *reader, uint32_t stream,
                                              uint8_t uuid[16]);
/* CTF 2's, which is any text; NULL where its trace has none. */
KRAIT_READER_API const char *krait_reader_stream_uid(const struct krait_reader *reader, uint32_t stream);

/* -- event classes -- */

/* The classes of all opened traces are numbered from 0 on: a program keeps what it knows of each in an array.
 * NULL: no such class. */
KRAIT_READER_API uint32_t krait_reader_class_count(const struct krait_reader *reader);
KRAIT_READER_API const struct krait_reader_class *krait_reader_class_at(const struct krait_reader *reader,
                                                                        uint32_t index);
/* The first class of that name. Others may bear it too: one in each trace and stream class. */
KRAIT_READER_API const struct krait_reader_class *krait_reader_find_class(const struct krait_reader *reader,
                                                                          const char *name);

KRAIT_READER_API uint32_t krait_reader_class_index(const struct krait_reader_class *cls);
/* Empty where the metadata has none. */
KRAIT_READER_API const char *krait_reader_class_name(const struct krait_reader_class *cls);
/* As the metadata says; unique in its stream class only. */
KRAIT_READER_API uint64_t krait_reader_class_id(const struct krait_reader_class *cls);
KRAIT_READER_API uint64_t krait_reader_class_stream_class_id(const struct krait_reader_class *cls);
/* As LTTng counts them (0 is TRACE_EMERG, 14 TRACE_DEBUG); -1 where the metadata has none. */
KRAIT_READER_API int krait_reader_class_log_level(const struct krait_reader_class *cls);

/* -- fields -- */

/* Where in an event to look. */
enum krait_reader_scope {
    KRAIT_READER_ANY_SCOPE, /* the first of the next four that has the path */
    KRAIT_READER_PAYLOAD,
    KRAIT_READER_EVENT_CONTEXT,  /* of this class alone */
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
    /* of fields, optional ones too: the kind is the chosen option's, known for each event. Of a child: an
     * optional value that is not there */
    KRAIT_READER_VARIANT,
};

/* Looks a field up by its path, once per class; the handle is the reader's and fits events of `cls` alone.
 * A path is names with points between: "prev_tid", "args[2]", "addr.ip". An array's element has its index in
 * brackets. A variant by its name is whatever option is chosen; what is in an option is found by that
 * option's name: "data.as_int.value". An empty path is the scope itself. Names are without the underscore
 * that LTTng puts before them; those that the metadata spells are found too. In backquotes a name is as the
 * metadata spells it, whatever is in it: "`my.name`.`a [b]`", where \` is a backquote and \\ a backslash.
 * Errors: -ENOENT the class has no such field (the text says where the path ends), -EINVAL the path is none,
 * -ENOMEM. May be called by several threads at once. Each call takes memory: keep the handle. */
KRAIT_READER_API int krait_reader_class_field(const struct krait_reader_class *cls,
                                              enum krait_reader_scope scope, const char *path,
                                              const struct krait_reader_field **field,
                                              struct krait_reader_error *error);
KRAIT_READER_API enum krait_reader_kind krait_reader_field_kind(const struct krait_reader_field *field);
/* The last name of its path. */
KRAIT_READER_API const char *krait_reader_field_name(const struct krait_reader_field *field);
/* Whether it is an enumeration: an integer with labels. */
KRAIT_READER_API bool krait_reader_field_is_enum(const struct krait_reader_field *field);
/* Whether its place is known without looking at what stands before it: such a field costs one load. */
KRAIT_READER_API bool krait_reader_field_is_fixed(const struct krait_reader_field *field);

/* -- what a class's events are made of, without an event -- */

enum krait_reader_schema_flags {
    KRAIT_READER_SCHEMA_ENUM = 1,      /* an integer with labels: its mappings */
    KRAIT_READER_SCHEMA_BITS = 2,      /* an integer whose mappings are of bits */
    KRAIT_READER_SCHEMA_BOOL = 4,      /* an integer that is false when it is 0 */
    KRAIT_READER_SCHEMA_FIXED = 8,     /* ARRAY, TEXT: `length` is its length in every event */
    KRAIT_READER_SCHEMA_BLOB = 16,     /* ARRAY: of bytes without a meaning */
    KRAIT_READER_SCHEMA_OPTIONAL = 32, /* VARIANT: of one option, which is there or not */
    KRAIT_READER_SCHEMA_BIG_ENDIAN = 64,
};

/* A field's class, in the caller's memory. */
struct krait_reader_schema {
    const char *name; /* of the member or option as shown; empty for scopes and elements */
    enum krait_reader_kind kind;
    uint32_t flags;         /* of enum krait_reader_schema_flags */
    uint32_t bits;          /* of a number; 0: of as many bytes as each value needs */
    uint32_t base;          /* that an integer is shown in: 2, 8, 10 or 16 */
    uint32_t child_count;   /* STRUCT: members; VARIANT: options; ARRAY: 1, the element */
    uint32_t mapping_count; /* ranges of labels */
    uint64_t length;        /* with FIXED: elements; of TEXT, bytes */
    const void *opaque;
    uint64_t unused[3]; /* 0 */
};

/* A label stands for lo to hi, both included, in two's complement where the integer is signed; with BITS these are
 * numbers of bits. */
struct krait_reader_mapping {
    const char *label;
    uint64_t lo, hi;
};

/* All of a scope: a STRUCT. -ENOENT: the class's events have no such scope, or it is KRAIT_READER_ANY_SCOPE. */
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

/* All streams by time. At equal times the order is always the same. */
KRAIT_READER_API int krait_reader_cursor_new_ordered(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader,
                                                     struct krait_reader_error *error);
/* The events of one stream. -EINVAL: there is none of that number. */
KRAIT_READER_API int krait_reader_cursor_new_stream(struct krait_reader_cursor **cursor,
                                                    const struct krait_reader *reader, uint32_t stream,
                                                    struct krait_reader_error *error);
/* The events of `count` packets of one stream from packet `first` on: how threads share a stream. -EINVAL:
 * there are no such packets. -ENOTSUP: first is not 0, and the packet does not say its whole begin time, so
 * that the times in it depend on the packets before it; read the stream with one cursor then. */
KRAIT_READER_API int krait_reader_cursor_new_packets(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader, uint32_t stream,
                                                     uint32_t first, uint32_t count,
                                                     struct krait_reader_error *error);
/* NULL is fine. */
KRAIT_READER_API void krait_reader_cursor_free(struct krait_reader_cursor *cursor);

/* What a cursor's step came to; unknown ones are to be passed over. */
enum krait_reader_step {
    KRAIT_READER_END = 0,
    KRAIT_READER_EVENT = 1,
    KRAIT_READER_LOST = 2, /* see krait_reader_cursor_lost */
};

/* Goes on. Returns an enum krait_reader_step, or a negative errno. Damage ends its stream alone: the events of
 * the others, and those before it, are handed out first; then, in place of the end, comes the error, which
 * krait_reader_cursor_error has. After END or an error it returns the same again. hot path */
KRAIT_READER_API int krait_reader_cursor_next(struct krait_reader_cursor *cursor);

/* The next step is to the first event of `ns` or later, before or behind where the cursor is: events before that time
 * are passed over, packets that end before are not read, and their losses are not told. Of a cursor over some packets,
 * within those. -EINVAL: the cursor reads batches (krait_reader_cursor_new_between begins those at a time). -ENOMEM. */
KRAIT_READER_API int krait_reader_cursor_seek(struct krait_reader_cursor *cursor, int64_t ns);
/* Of the step that failed; code 0 when none did. */
KRAIT_READER_API void krait_reader_cursor_error(const struct krait_reader_cursor *cursor,
                                                struct krait_reader_error *error);

/* Of the event; hot path, all of them. Before the first event, after the end and at LOST they may not be
 * called, except _stream at LOST. */
KRAIT_READER_API const struct krait_reader_class *
krait_reader_cursor_class(const struct krait_reader_cursor *cursor);
KRAIT_READER_API uint32_t krait_reader_cursor_stream(const struct krait_reader_cursor *cursor);
/* Packet of the stream, from 0. */
KRAIT_READER_API uint32_t krait_reader_cursor_packet(const struct krait_reader_cursor *cursor);
/* Nanoseconds since the clock's origin (1970 for most), rounded as babeltrace2 does; 0 without a clock. */
KRAIT_READER_API int64_t krait_reader_cursor_ns(const struct krait_reader_cursor *cursor);
/* The clock's own count, without its offset. */
KRAIT_READER_API uint64_t krait_reader_cursor_cycles(const struct krait_reader_cursor *cursor);

/* What the tracer says it had to leave out. It is told before the first event of the packet that says it. */
struct krait_reader_lost {
    uint32_t stream;
    uint32_t packets; /* 1: whole packets are missing, 0: events */
    uint64_t count;   /* 0: not known */
    int64_t begin_ns; /* between these; both 0 where the packets say no times */
    int64_t end_ns;
};

/* -EINVAL: the last step was not LOST. */
KRAIT_READER_API int krait_reader_cursor_lost(const struct krait_reader_cursor *cursor,
                                              struct krait_reader_lost *lost);

/* -- values of the current event, by handle -- */

/* Errors of all of them: -EINVAL the handle is of another class, or the field is of another kind; -ENODATA the event
 * has no such value (another option of a variant is chosen, an index is beyond the array). hot path */

/* An integer that is not signed, or one of KRAIT_READER_SIGNED that is not negative (-ERANGE: it is). */
KRAIT_READER_API int krait_reader_cursor_unsigned(const struct krait_reader_cursor *cursor,
                                                  const struct krait_reader_field *field, uint64_t *value);
/* Any integer that fits: -ERANGE when it is over INT64_MAX. */
KRAIT_READER_API int krait_reader_cursor_signed(const struct krait_reader_cursor *cursor,
                                                const struct krait_reader_field *field, int64_t *value);
/* A floating-point number, or an integer made one. */
KRAIT_READER_API int krait_reader_cursor_double(const struct krait_reader_cursor *cursor,
                                                const struct krait_reader_field *field, double *value);
/* A view of the trace's own bytes, up to the NUL and without it. Any bytes may be in it. */
KRAIT_READER_API int krait_reader_cursor_text(const struct krait_reader_cursor *cursor,
                                              const struct krait_reader_field *field, const char **text,
                                              size_t *size);
/* The enumeration's label of the value, the first that fits. -ENODATA: no label stands for it. */
KRAIT_READER_API int krait_reader_cursor_label(const struct krait_reader_cursor *cursor,
                                               const struct krait_reader_field *field, const char **label);

/* -- values of any kind -- */

/* A value of the current event, in the caller's memory. Not to be changed by hand. */
struct krait_reader_value {
    const void *opaque[2];
    uint64_t number[5];
};

KRAIT_READER_API int krait_reader_cursor_value(const struct krait_reader_cursor *cursor,
                                               const struct krait_reader_field *field,
                                               struct krait_reader_value *value);

KRAIT_READER_API enum krait_reader_kind krait_reader_value_kind(const struct krait_reader_value *value);
/* The member's name; of an element, its array's. */
KRAIT_READER_API const char *krait_reader_value_name(const struct krait_reader_value *value);
/* Name of the option that a variant has here; NULL where the value is of none. */
KRAIT_READER_API const char *krait_reader_value_option(const struct krait_reader_value *value);
/* Members or elements; 0 of scalars. */
KRAIT_READER_API uint64_t krait_reader_value_count(const struct krait_reader_value *value);

/* As those by handle. */
KRAIT_READER_API int krait_reader_value_unsigned(const struct krait_reader_value *value, uint64_t *number);
KRAIT_READER_API int krait_reader_value_signed(const struct krait_reader_value *value, int64_t *number);
KRAIT_READER_API int krait_reader_value_double(const struct krait_reader_value *value, double *number);
KRAIT_READER_API int krait_reader_value_text(const struct krait_reader_value *value, const char **text,
                                             size_t *size);
KRAIT_READER_API int krait_reader_value_label(const struct krait_reader_value *value, const char **label);

/* Goes through members or elements: zero `child` with krait_reader_value_children, then step. Returns 1 with
 * the child, 0 behind the last, or a negative errno. An inner loop has to be done before the outer steps:
 * lengths of an element's own sequences are those of the element that was reached last. */
KRAIT_READER_API void krait_reader_value_children(const struct krait_reader_value *parent,
                                                  struct krait_reader_value *child);
KRAIT_READER_API int krait_reader_value_next(const struct krait_reader_value *parent,
                                             struct krait_reader_value *child);

/* -- batches: many events at a time, all their fields decoded --
 *
 * The fastest way to read, some times as fast as event by event. A batch has events, and for each a row of
 * 64-bit cells, made by machine code that is compiled for the trace. In a row are first two cells of the
 * event itself, then its fields, which krait_reader_class_cell lists:
 *
 *   events[i]   { ns, cls, cells } ---.
 *                                     v
 *   cells       ... | origin | address | field | field | address of text | bytes of text | ... | next row
 *
 *   origin   the stream's number in the low 32 bits, its packet's above
 *   address  of the event in the mapped file, in the low 61 bits; the bit of that byte above
 *   cycles   with krait_reader_want_cycles alone, as a third cell before the fields: the count of the stream's
 *            clock, as krait_reader_cursor_cycles
 *   field    an integer or enumeration: its value, sign-extended; a float: a double's bits;
 *            a text, or an array or sequence of numbers: two cells, where its bytes are in the mapped
 *            file, and how many bytes (up to a NUL) or elements
 *
 * What has no such cells (variants, optional fields, arrays of structs, numbers that are not of whole bytes
 * in arrays, texts of UTF-16 and UTF-32, more than some 4,000 cells, or 256 fields where there are variants
 * and such) is reached by krait_reader_cursor_select, which makes one event of the batch the cursor's current
 * one, for all functions above. */

enum {
    KRAIT_READER_CELL_ORIGIN = 0,
    KRAIT_READER_CELL_ADDRESS = 1,
    KRAIT_READER_CELL_CYCLES = 2, /* only after krait_reader_want_cycles: else a field may be there */
    /* So many cells from a row's begin on can be read, whatever its size. What is behind its end has no meaning. */
    KRAIT_READER_CELLS_BEYOND = 32,
};

struct krait_reader_event {
    int64_t ns;     /* as krait_reader_cursor_ns */
    uint32_t cls;   /* krait_reader_class_index of its class */
    uint32_t cells; /* where its row begins in the batch's cells */
};

struct krait_reader_batch {
    const struct krait_reader_event *events;
    const uint64_t *cells;
    uint64_t cell_count; /* of a stream's cursor: the rows lie side by side in [0, cell_count), in the events'
                            order; 0: in the order of time, rows are found by events alone */
    /* losses that were met since the last batch: told before or up to some hundred events ahead of where they
     * happened */
    const struct krait_reader_lost *lost;
    uint32_t count; /* of events; may be 0 when there are losses */
    uint32_t lost_count;
    uint64_t unused[4]; /* 0 */
};

/* The next events, some hundred, more of short ones. Returns KRAIT_READER_EVENT, KRAIT_READER_END, or a
 * negative errno in place of the end as krait_reader_cursor_next does: damage comes last. All that the batch
 * points to is valid until the next call. -EINVAL: the cursor was already stepped by krait_reader_cursor_next,
 * which does not go with it. hot path */
KRAIT_READER_API int krait_reader_cursor_next_batch(struct krait_reader_cursor *cursor,
                                                    struct krait_reader_batch *batch);

/* All streams by time, the events from begin_ns on and before end_ns (INT64_MAX: to the end), in batches alone: how
 * threads share the order of time. A stream whose times go backward has its part begin with its first event of
 * begin_ns or later, and end before its first of end_ns or later: parts that follow each other have each event once.
 * Packets that end before are not read, nor is anything behind the end. Losses are those of the packets that begin in
 * that time, those before the first event among them where begin_ns is INT64_MIN. */
KRAIT_READER_API int krait_reader_cursor_new_between(struct krait_reader_cursor **cursor,
                                                     const struct krait_reader *reader, int64_t begin_ns,
                                                     int64_t end_ns, struct krait_reader_error *error);

/* The time that has about part/parts of the packets' bytes before it: where to cut for that many threads.
 * INT64_MIN for part 0, INT64_MAX for `parts` and more. */
KRAIT_READER_API int64_t krait_reader_split(const struct krait_reader *reader, uint32_t part, uint32_t parts);

/* Makes event `index` of the batch (the last one of this cursor) the current one: krait_reader_cursor_class,
 * _stream, _packet, _ns, _cycles and all values, by handle or stepping. Not a hot path: its header is read
 * again. Where that tells no time, and several of the clock's counts are in one nanosecond, _cycles is one of
 * them, unless rows have it (krait_reader_want_cycles). -EINVAL: there is no such event. */
KRAIT_READER_API int krait_reader_cursor_select(struct krait_reader_cursor *cursor,
                                                const struct krait_reader_batch *batch, uint32_t index);

/* Says which fields have cells in the reader's batches: these, of any classes, and no others; with a `count`
 * of 0 none, so that batches tell each event's class, time and place. What nobody wants is not decoded, only
 * passed, and rows are shorter. It holds for all cursors of the reader, and for what is said of cells below;
 * krait_reader_cursor_select reaches every field as ever. A struct stands for all that is in it, a field of
 * the common context is that of all classes of its stream class, and what cannot have cells gets none.
 * Errors: -EBUSY there was a batch, or a question about cells, already; -ENOMEM. */
KRAIT_READER_API int krait_reader_want_fields(struct krait_reader *reader,
                                              const struct krait_reader_field *const *fields, size_t count,
                                              struct krait_reader_error *error);

/* Gives each row a cell with the time in cycles of the stream's clock, of which krait_reader_stream_clock has
 * frequency and offset: exact where nanoseconds are rounded, or are fewer than cycles. Unsigned, without the offset;
 * without meaning where the stream has no clock. krait_reader_cursor_select then finds the exact count too. It holds
 * for all cursors of the reader. Errors: as krait_reader_want_fields, with which it goes in any order. */
KRAIT_READER_API int krait_reader_want_cycles(struct krait_reader *reader, struct krait_reader_error *error);

enum krait_reader_cell_flags {
    KRAIT_READER_CELL_SIGNED = 1,     /* elements are signed integers */
    KRAIT_READER_CELL_FLOAT = 2,      /* elements are floats */
    KRAIT_READER_CELL_BIG_ENDIAN = 4, /* elements' bytes in the file begin with the most significant */
};

/* A field that has cells. */
struct krait_reader_cell {
    const char *path; /* as krait_reader_class_field takes it, names in backquotes where they need them */
    enum krait_reader_scope scope;
    enum krait_reader_kind kind; /* UNSIGNED, SIGNED, DOUBLE: one cell; TEXT, ARRAY: two */
    uint32_t cell;               /* the first, counted from the row's begin */
    uint32_t element_bits;       /* ARRAY: 8, 16, 32 or 64 */
    uint32_t flags;              /* ARRAY: of enum krait_reader_cell_flags */
    uint32_t unused;
};

/* Cells of a class's row, those of the event among them. May take memory at the first call. A negative
 * errno: -ENOMEM. */
KRAIT_READER_API int krait_reader_class_row_size(const struct krait_reader_class *cls);
/* How many fields have cells; a negative errno as before. */
KRAIT_READER_API int krait_reader_class_cell_count(const struct krait_reader_class *cls);
/* The i-th of them, in the order of the trace. -EINVAL: there is none. */
KRAIT_READER_API int krait_reader_class_cell(const struct krait_reader_class *cls, uint32_t i,
                                             struct krait_reader_cell *cell);
/* The first cell of a field; -ENODATA: it has none. */
KRAIT_READER_API int krait_reader_field_cell(const struct krait_reader_field *field);

#ifdef __cplusplus
}
#endif

#endif
