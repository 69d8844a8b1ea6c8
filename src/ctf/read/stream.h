/* SPDX-License-Identifier: Apache-2.0
 *
 * Open traces: their files, and the packets of each stream.
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
    bool growing;   /* krait is still writing it: an incomplete last packet is not there yet */
};

enum { KRAIT_CTF_SIZE_BITS = 46 }; /* of a file, in bytes; no process can map larger ones */

/* 40 bytes; traces have many packets. */
struct krait_ctf_packet {
    uint64_t begin; /* ticks; 0 if the packet does not have them */
    uint64_t end;
    uint64_t offset : KRAIT_CTF_SIZE_BITS;      /* bytes in the file */
    uint64_t size : KRAIT_CTF_SIZE_BITS;        /* bytes; if it is cut, those that the file has */
    uint64_t content : KRAIT_CTF_SIZE_BITS + 3; /* bits, at most size * 8 */
    uint64_t file : 32;                         /* its index; see krait_ctf_file_of */
    uint64_t said : KRAIT_MEANING_COUNT;        /* bit per enum krait_meaning */
    bool cut : 1;                               /* it is longer than the rest of the file */
    bool whole_begin : 1; /* its begin has all 64 bits: its times do not depend on the packets before */
    bool whole_end : 1;
    bool unread : 1; /* known from an index only */
} __attribute__((packed, aligned(8)));
_Static_assert(sizeof(struct krait_ctf_packet) == 40, "it is said above");

/* 0 if the packet does not have them. */
struct krait_ctf_counters {
    uint64_t seq;
    uint64_t discarded; /* events of the stream, from its beginning to the end of this packet */
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
    /* packets give the id; else streams are numbered in the trace (in CTF 1.8, like babeltrace2 2.0, also if packets
     * give no begin) */
    bool has_id;
    bool is_shared;   /* several files of that id are one stream */
    const char *path; /* of its first file */
    struct krait_ctf_packet *packets;
    struct krait_ctf_counters *counters; /* of the packets; NULL if none has any */
    uint32_t packet_count;
    uint32_t packet_cap;
    /* number of the first damaged packet, from 1: packets after it are not read. 0: none is known (krait_ctf_check) */
    uint32_t damaged;
    struct krait_err damage; /* in that packet, else after the last; code 0 if none */
};

/* Code of one stream class, compiled on demand. */
struct krait_ctf_code {
    struct krait_program packet_context;
    struct krait_program event_header;
    struct krait_program *events;           /* by index; ops NULL until used */
    const struct krait_event_class **by_id; /* of ids below by_id_count */
    uint32_t by_id_count;
    uint8_t shape;               /* of the event header: known ones are read directly */
    uint32_t id_slot;            /* of the event's id, if the shape is known */
    bool whole_begin, whole_end; /* of the packets: these times have all 64 bits */
};

struct krait_ctf_trace {
    struct krait_ctf_metadata *metadata;
    const char *dir;
    const char *below;           /* path from the opened folder to this one; may be empty */
    const char *name;            /* as babeltrace2 names it: HOST/PATH, one of them, or empty */
    bool begins_late;            /* events are earlier than the begin of their packet: barectf before 2.3.1 */
    struct krait_ctf_code *code; /* by index of the stream class */
    struct krait_program packet_header;
};

struct krait_ctf_options {
    bool indexes; /* few packets are wanted: use LTTng's index files for the others; see krait_ctf_settle */
    /* Whether to read a trace, by its metadata; others are left out, even if none remains. NULL: read all. */
    bool (*wants)(const struct krait_ctf_metadata *metadata);
};

struct krait_ctf_reader {
    struct krait_arena arena;
    struct krait_ctf_options options;
    struct krait_ctf_trace **traces;
    uint32_t trace_count;
    struct krait_ctf_file **files;
    uint32_t file_count;
    struct krait_ctf_stream **streams; /* in the order in which events of equal time are handed out */
    uint32_t stream_count;
    uint32_t trace_cap, file_cap, stream_cap;
    uint64_t holds; /* bytes of pages that a cursor keeps mapped behind it; more means fewer system calls */
    struct krait_err damage; /* of a file that cannot be read at all; code 0 if none */
};

static inline const struct krait_ctf_file *krait_ctf_file_of(const struct krait_ctf_stream *stream,
                                                             const struct krait_ctf_packet *packet)
{
    return stream->reader->files[packet->file];
}

#endif
