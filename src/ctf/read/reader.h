/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads CTF traces: finds them in folders, maps their files, indexes their packets, and hands out events,
 * stream by stream or in the order of time.
 *
 * Files are mapped, and never read beyond the size they had when they were opened. A file that another
 * process makes shorter meanwhile ends the reading process with SIGBUS, as with every mapped file: read
 * copies of what is still cut.
 *
 * Damage ends the stream it is in, not the reading: what is whole is handed out, then the reason (file,
 * offset, why).
 */
#ifndef KRAIT_CTF_READ_READER_H
#define KRAIT_CTF_READ_READER_H

#include "ctf/read/decode.h"

struct krait_ctf_trace;

struct krait_ctf_file {
    const struct krait_ctf_trace *trace;
    const char *path;
    const uint8_t *bytes; /* behind them is a page that reads as 0 */
    uint64_t size;
};

struct krait_ctf_packet {
    const struct krait_ctf_file *file;
    uint64_t offset;  /* bytes in the file */
    uint64_t size;    /* bytes; what the file has of it, when it is cut */
    uint64_t content; /* bits, at most size * 8 */
    uint64_t begin;   /* ticks; these four are 0 where the packet does not say them */
    uint64_t end;
    uint64_t seq;
    uint64_t discarded; /* events of the stream before its end, since the stream's beginning */
    uint32_t said;      /* bit per enum krait_meaning */
    bool cut;           /* it says that it is longer than what the file has */
    bool whole_begin;   /* all 64 bits of the clock are said: its times need no packet before it */
    bool whole_end;
    bool unread; /* an index told of it */
};

struct krait_ctf_stream {
    const struct krait_ctf_trace *trace; /* the first of its files' */
    const struct krait_stream_class *cls;
    uint32_t index; /* among the reader's */
    uint64_t id;
    bool has_id;      /* said by the packets; else counted in the trace */
    const char *path; /* of its first file */
    struct krait_ctf_packet *packets;
    uint32_t packet_count;
    uint32_t packet_cap;
    struct krait_err damage; /* met behind the last packet; code 0 when none */
};

/* Code of one stream class, made as it is needed. */
struct krait_ctf_code {
    struct krait_program packet_context;
    struct krait_program event_header;
    struct krait_program *events;           /* by index; ops NULL until used */
    const struct krait_event_class **by_id; /* of ids below by_id_count */
    uint32_t by_id_count;
    uint8_t shape;               /* of the event header: known ones are read at once */
    uint32_t id_slot;            /* of the event's id, where the shape is known */
    bool whole_begin, whole_end; /* of the packets that say these times */
};

struct krait_ctf_trace {
    struct krait_ctf_metadata *metadata;
    const char *dir;
    const char *below;           /* the way from the folder that was asked for to this one; may be empty */
    const char *name;            /* as babeltrace2 names it: HOST/WAY, one of them, or empty */
    struct krait_ctf_code *code; /* by index of the stream class */
    struct krait_program packet_header;
};

struct krait_ctf_options {
    unsigned text; /* enum krait_text_flags, for printing */
    bool indexes;  /* few packets are wanted: LTTng's index files tell of the others; see krait_ctf_settle */
};

struct krait_ctf_reader {
    struct krait_arena arena;
    struct krait_ctf_options options;
    struct krait_ctf_trace **traces;
    uint32_t trace_count;
    struct krait_ctf_file **files;
    uint32_t file_count;
    struct krait_ctf_stream **streams; /* in the order in which equal times are handed out */
    uint32_t stream_count;
    uint32_t trace_cap, file_cap, stream_cap;
    struct krait_err damage; /* of a file of which nothing could be read; code 0 when none */
};

/* Opens the traces in the folders: a folder with a file `metadata`, else all such below it. Errors: -ENOENT
 * no trace there; what krait_ctf_metadata_open returns. *out is then untouched. Damaged files do not fail it.
 */
int krait_ctf_open(struct krait_ctf_reader **out, const char *const *paths, size_t count,
                   const struct krait_ctf_options *options, struct krait_err *err);
void krait_ctf_close(struct krait_ctf_reader *reader);

/* Compiles all event classes, which otherwise happens as they are met: after it the reader is not changed any
 * more, and cursors of several threads may use it, but for printing. Returns 0 or -ENOMEM. */
int krait_ctf_compile(struct krait_ctf_reader *reader);

/* Lets go of the file's pages from byte `from` up to `to`: who reads a trace once needs few of them at a
 * time. They come back, from the page cache, when they are read again. */
void krait_ctf_let_go(const struct krait_ctf_file *file, uint64_t from, uint64_t to);

/* Events of one stream. */
struct krait_ctf_cursor {
    struct krait_ctf_reader *reader;
    const struct krait_ctf_stream *stream;
    const struct krait_ctf_trace *trace;   /* of the packet */
    const struct krait_stream_class *cls;  /* of the packet: as its trace has it */
    struct krait_ctf_code *code;           /* of cls */
    const struct krait_ctf_packet *packet; /* NULL before the first */
    const struct krait_event_class *event; /* the current one */
    struct krait_decoder d;
    uint32_t next_packet;
    uint64_t context_at; /* bit in the packet where its context begins */
    uint8_t context_be;  /* the decoder's bits_be there */
    uint64_t event_at;   /* where the event begins */
    uint64_t fields_at;  /* where its header ends */
    uint8_t fields_be;
    uint64_t ticks; /* of the event */
    int64_t ns;     /* of the event, since the clock's origin; 0 without a clock */
    bool ranged;
    int64_t from_ns, to_ns;            /* with `ranged`: packets outside are passed over */
    const struct krait_ctf_file *held; /* pages of it are held */
    uint64_t held_from;                /* from this byte on, to the packet */
    struct krait_err err;
};

/* Returns 0 or -ENOMEM. */
int krait_ctf_cursor_init(struct krait_ctf_cursor *cursor, struct krait_ctf_reader *reader,
                          const struct krait_ctf_stream *stream);
void krait_ctf_cursor_done(struct krait_ctf_cursor *cursor);

/* From the next packet on, only packets are read that may have events from from_ns to to_ns, both included: a
 * packet lies outside when it says so in whole times that its neighbours do not contradict. What is in one
 * that lies outside, damage too, is not met. */
void krait_ctf_cursor_range(struct krait_ctf_cursor *cursor, int64_t from_ns, int64_t to_ns);

/* Goes to the next event: reads its header. Before it is called again, the event's fields must have been
 * passed, with krait_ctf_event_skip or by who prints them (text/pretty.h). Returns 1, 0 at the end, or a
 * negative errno with cursor->err set. */
int krait_ctf_next(struct krait_ctf_cursor *cursor);

/* Goes to an event of a packet of the cursor's reader, of which bit and time are known: it is then the
 * current one, its fields not passed. Its count of ticks is exact where the clock counts nanoseconds, else as
 * good as a double. Returns 0 or a negative errno with cursor->err set. */
int krait_ctf_seek(struct krait_ctf_cursor *cursor, const struct krait_ctf_stream *stream, uint32_t packet,
                   uint64_t bit, int64_t ns);

/* Goes past the fields. Returns 0 or a negative errno with cursor->err set. */
int krait_ctf_event_skip(struct krait_ctf_cursor *cursor);

/* Goes back to where the fields begin, so that they can be printed after they were passed. */
void krait_ctf_event_rewind(struct krait_ctf_cursor *cursor);

/* The code of the current event's class, made when it is first met. Returns NULL with cursor->err set. */
struct krait_program *krait_ctf_event_program(struct krait_ctf_cursor *cursor);

/* krait_ctf_event_passed where something is wrong. */
int krait_ctf_event_damaged(struct krait_ctf_cursor *cursor, bool well);

/* For who passes the fields by cursor->d: whether that went well. Returns 0, or a negative errno with
 * cursor->err set, of what cursor->d.why says or of an event of no bits. Hot path. */
static inline int krait_ctf_event_passed(struct krait_ctf_cursor *cursor, bool well)
{
    bool moved = cursor->d.at != cursor->event_at;
    return KRAIT_LIKELY(well && moved) ? 0 : krait_ctf_event_damaged(cursor, well);
}

/* Whether the times in packet i of a stream can be known without the packets before it: it is the first, or
 * says its begin in full. */
bool krait_ctf_packet_is_independent(const struct krait_ctf_stream *stream, uint32_t i);

/* Whether all events of packet i lie before or after a time, as far as packets can tell; false where it is
 * not known. A packet may have events from before its begin all the same. */
bool krait_ctf_packet_ends_before(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);
bool krait_ctf_packet_begins_after(const struct krait_ctf_stream *stream, uint32_t i, int64_t ns);

/* The first packet of a stream that can have events at `ns` or later: 0 where times depend on the packets
 * before. */
uint32_t krait_ctf_first_packet(const struct krait_ctf_stream *stream, int64_t ns);

/* With options.indexes, before events of a range are read: looks at the packets that it needs. False: one is
 * not what its index told; open the traces again, without indexes. */
bool krait_ctf_settle(struct krait_ctf_reader *reader, int64_t from_ns, int64_t to_ns);

/* -- inside the reader -- */

/* Reads the header and context of the packet at `offset`. Returns NULL or why it cannot be read. */
const char *krait_ctf_read_packet(const struct krait_ctf_file *file, uint64_t offset, struct krait_decoder *d,
                                  struct krait_ctf_packet *packet, const struct krait_stream_class **cls);

/* Whether both say the same. */
bool krait_ctf_packet_is(const struct krait_ctf_packet *a, const struct krait_ctf_packet *b);

/* Called for gaps that packets tell of, before the event that follows. `kind` is "event" or "packet"; count
 * 0: not known. */
struct krait_ctf_loss {
    const struct krait_ctf_stream *stream;
    const char *kind;
    uint64_t count;
    bool has_times;
    uint64_t begin, end; /* ticks */
};

/* The losses that packet i of a stream tells of: 0 to 2, into losses. */
unsigned krait_ctf_losses(const struct krait_ctf_stream *stream, uint32_t i, struct krait_ctf_loss losses[2]);

/* Nanoseconds since the clock's origin as babeltrace2 rounds them: offset and value are converted apart, in
 * double arithmetic where the frequency is not 1 GHz. (Exact conversion: krait_ctf_clock_ns.) */
int64_t krait_ctf_ns(const struct krait_ctf_clock *clock, uint64_t ticks);

/* -- in the order of time -- */

struct krait_ctf_merge;

int krait_ctf_merge_new(struct krait_ctf_merge **out, struct krait_ctf_reader *reader, struct krait_err *err);
void krait_ctf_merge_free(struct krait_ctf_merge *merge);

/* krait_ctf_cursor_range for all streams. */
void krait_ctf_merge_range(struct krait_ctf_merge *merge, int64_t from_ns, int64_t to_ns);

/* The cursor at the next event of all streams; NULL at the end. Its fields must be passed before the next
 * call. Damage ends its stream; the first is kept in `damage`. */
struct krait_ctf_cursor *krait_ctf_merge_next(struct krait_ctf_merge *merge);
const struct krait_err *krait_ctf_merge_damage(const struct krait_ctf_merge *merge);

#endif
