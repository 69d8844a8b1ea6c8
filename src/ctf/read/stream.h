/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces as they lie open: their files, and the packets of each stream.
 */
#ifndef KRAIT_CTF_READ_STREAM_H
#define KRAIT_CTF_READ_STREAM_H

#include "ctf/read/decode.h"

struct krait_ctf_trace;

struct krait_ctf_file {
    const struct krait_ctf_trace *trace;
    const char *path;
    const uint8_t *bytes; /* behind them is a page that reads as 0 */
    uint64_t size;
    uint32_t index; /* among the reader's */
    bool growing;   /* somebody writes it: a last packet that is not whole is not there yet */
};

enum { KRAIT_CTF_SIZE_BITS = 46 }; /* of a file, in bytes; no process can map larger ones */

/* Small, as there are many: 40 bytes. */
struct krait_ctf_packet {
    uint64_t begin; /* ticks; 0 where the packet does not say them */
    uint64_t end;
    uint64_t offset : KRAIT_CTF_SIZE_BITS;      /* bytes in the file */
    uint64_t size : KRAIT_CTF_SIZE_BITS;        /* bytes; what the file has of it, when it is cut */
    uint64_t content : KRAIT_CTF_SIZE_BITS + 3; /* bits, at most size * 8 */
    uint64_t file : 32;                         /* its index; see krait_ctf_file_of */
    uint64_t said : KRAIT_MEANING_COUNT;        /* bit per enum krait_meaning */
    bool cut : 1;                               /* it says that it is longer than what the file has */
    bool whole_begin : 1; /* all 64 bits of the clock are said: its times need no packet before it */
    bool whole_end : 1;
    bool unread : 1; /* an index told of it */
} __attribute__((packed, aligned(8)));
_Static_assert(sizeof(struct krait_ctf_packet) == 40, "it is said above");

/* 0 where the packet does not say them. */
struct krait_ctf_counters {
    uint64_t seq;
    uint64_t discarded; /* events of the stream before its end, since the stream's beginning */
};

/* All that a packet's header and context say. */
struct krait_ctf_head {
    struct krait_ctf_packet packet;
    struct krait_ctf_counters counters;
};

struct krait_ctf_stream {
    const struct krait_ctf_reader *reader;
    const struct krait_ctf_trace *trace; /* the first of its files' */
    const struct krait_stream_class *cls;
    uint32_t index; /* among the reader's */
    uint64_t id;
    /* said by the packets; else counted in the trace (in CTF 1.8, as babeltrace2 2.0 does, also where packets say no
     * begin) */
    bool has_id;
    bool is_shared;   /* several files of that id are one stream */
    const char *path; /* of its first file */
    struct krait_ctf_packet *packets;
    struct krait_ctf_counters *counters; /* of the packets; NULL where none says any */
    uint32_t packet_count;
    uint32_t packet_cap;
    /* number of the first damaged packet, from 1: those behind it are not read. 0: none is known (krait_ctf_check) */
    uint32_t damaged;
    struct krait_err damage; /* in that packet, else behind the last; code 0 when none */
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
    bool begins_late;            /* events lie before their packets' begins: barectf's before 2.3.1 */
    struct krait_ctf_code *code; /* by index of the stream class */
    struct krait_program packet_header;
};

struct krait_ctf_options {
    bool indexes; /* few packets are wanted: LTTng's index files tell of the others; see krait_ctf_settle */
    /* Whether a trace is to be read, by its metadata; the others are left out, be it all. NULL: all are. */
    bool (*wants)(const struct krait_ctf_metadata *metadata);
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
    uint64_t holds;          /* bytes of pages that a cursor keeps behind it: fewer calls */
    struct krait_err damage; /* of a file of which nothing could be read; code 0 when none */
};

static inline const struct krait_ctf_file *krait_ctf_file_of(const struct krait_ctf_stream *stream,
                                                             const struct krait_ctf_packet *packet)
{
    return stream->reader->files[packet->file];
}

#endif
