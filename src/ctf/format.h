/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a krait recording, on disk and in the rings. It is CTF 1.8.3, in the dialect that LTTng-UST writes,
 * so any CTF reader can read it. This is the only place where the bytes are described.
 *
 *   DIR/                                 a recording: one CTF trace per process image
 *     python3-4711/                      command and pid; a second image of the same pid is python3-4711-2
 *       metadata                         TSDL text; code ids are labels of `enum code`
 *       definitions                      stream of code:define, thread:name, process:start ...
 *       thread-4711-0                    one stream per thread: its tid, and a count of earlier threads
 *                                        with that tid
 *
 * A stream file is a run of packets. Everything is little-endian on little-endian hosts (native),
 * byte-aligned, and packed without padding:
 *
 *   packet   ┌───────────────────────┬───────────────────────────┬────────┬────────┬───┐
 *            │ header                │ context                   │ event  │ event  │ … │
 *            │ magic uuid stream     │ time_begin time_end       │        │        │   │
 *            │ instance              │ content packet seq lost   │        │        │   │
 *            │                       │ vtid                      │        │        │   │
 *            └───────────────────────┴───────────────────────────┴────────┴────────┴───┘
 *             32 bytes                52 bytes
 *
 *   event    ┌──────────────────────────┬─────────┐      id: bits 0 to 4 of the word, 0 to 30
 *   compact  │ id:5  time:27            │ payload │      time: low 27 bits of the clock
 *            └──────────────────────────┴─────────┘
 *   event    ┌──────┬────────┬──────────┬─────────┐      when the clock's bits above 27 have changed
 *   extended │ 31:8 │ id:32  │ time:64  │ payload │      since the event before, and for ids above 30
 *            └──────┴────────┴──────────┴─────────┘
 *
 * Example, a call of code 7 at clock 0x1234567 in the window in which the packet began, and its return 0x99 later:
 *
 *   e0 ac 68 24  07 00 00 00      id 0 (python:call), time 0x1234567 << 5; code 7
 *   01 c0 68 24                   id 1 (python:return), time 0x1234600 << 5
 *
 * Version rule: krait_format_major and krait_format_minor are in the metadata's env. KRAIT_FORMAT_MAJOR changes when a
 * reader of the old form would read the new one wrongly. The minor version is the number of events and values of
 * enumerations that events.def has (KRAIT_EVENT_ROWS): rows are added, never taken away, so it grows with each. A
 * reader takes any minor version. Where it is newer than its own it says so, since at an event that it does not know it
 * leaves the rest of the packet out; values that it does not know are numbers. 0: written before minor versions were
 * counted, by a krait that knew no more than this one. New env entries change neither.
 *
 * Two env entries are written when the process is over and all of it is there: gil_waits is how many events
 * gil:wait the threads have; other_events has the ids of all events of the trace that concern neither calls
 * nor the GIL, with blanks between, so that a reader of marks need not look for them where there are none.
 *
 * recording_args has what --args said, a line each; recording_limit the option that ended the recording.
 *
 * A recording of samples (events python:sample) has an env entry sampled, "outside": krait read the threads' stacks from its
 * own process. Its python:frame and python:stack say the stack at a moment; up to the next the thread counts as having
 * it. sample_rate is how many were asked for a second, samples and samples_dropped how many there are, and how many
 * could not be proved; sample_rounds moments were sampled in sample_ns nanoseconds. Between two samples of a thread lie
 * sample_weight_ns, on average over the time: the sum of the squares of the intervals, divided by their sum; 0: not known.
 *
 * A recording that dropped its oldest events has env entries dropped_events, how many; dropped_for, the option; and
 * kept_from: the ticks of the clock from which on all events are there. Each thread begins one tick before, with its stack
 * and what its tasks did, or earlier if it waited and krait has not ended the recording. A reader counts none of that as a
 * call, and begins all threads at kept_from. Definitions are older; so are events of the kernel's part that share a packet with
 * later ones (trace/kept.h).
 *
 * A part of a recording that krait cut made has env entries cut_from and cut_until, as far as it was given them:
 * nanoseconds since the epoch. Calls that were open at cut_from, stacks of greenlets that waited, what tasks did and a
 * wait for the GIL stand in front of each thread's events, one tick before cut_from: a reader that knows the entries
 * counts none of them as a call. The definitions are all there, those from outside the range at its edges, one tick off. The
 * kernel's part has the same entries; trace/kernel/kernel_carried.h tells what stands in front of it and behind it.
 *
 * Source: CTF specification 1.8.3, sections 5 and 6; lttng-ust, the metadata of its compact event header.
 */
#ifndef KRAIT_CTF_FORMAT_H
#define KRAIT_CTF_FORMAT_H

#include "base/cursor.h"

#define KRAIT_FORMAT_MAJOR 1

#define KRAIT_CTF_MAGIC    0xC1FC1FC1u
#define KRAIT_CTF_ID_BITS  5
#define KRAIT_CTF_ID_MASK  31u
#define KRAIT_CTF_EXTENDED 31u
#define KRAIT_CTF_TS_BITS  27

struct krait_packet_head {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;       /* 0: krait has one stream class */
    uint64_t stream_instance; /* unique in the trace */
    /* packet context */
    uint64_t timestamp_begin; /* ticks of the metadata's clock */
    uint64_t timestamp_end;
    uint64_t content_size; /* bits, from the packet's first bit */
    uint64_t packet_size;  /* bits */
    uint64_t packet_seq_num;
    uint64_t events_discarded; /* of the stream since its beginning */
    uint32_t vtid;             /* the thread; 0 in definitions */
} __attribute__((packed));

_Static_assert(sizeof(struct krait_packet_head) == 84, "the packet head is drawn above");

struct krait_event_extended {
    uint8_t tag; /* KRAIT_CTF_EXTENDED */
    uint32_t id;
    uint64_t timestamp;
} __attribute__((packed));

/* What an event's header says. */
struct krait_event_head {
    uint32_t id;
    uint64_t t; /* ticks of the clock */
};

/* The compact header, for an event in the window of the one before it. hot path */
static inline uint32_t krait_head_pack(uint32_t id, uint64_t t)
{
    return (uint32_t)(t << KRAIT_CTF_ID_BITS) | id;
}

/* What a compact header says after an event at time `before`. The id KRAIT_CTF_EXTENDED: it is none. hot path */
static inline struct krait_event_head krait_head_unpack(uint32_t word, uint64_t before)
{
    const uint64_t mask = (1u << KRAIT_CTF_TS_BITS) - 1;
    return (struct krait_event_head){ word & KRAIT_CTF_ID_MASK,
                                      before + (((word >> KRAIT_CTF_ID_BITS) - before) & mask) };
}

/* Reads a header of either form. *head holds the event before it, or the packet's first time, and then what was read.
 * False when the header is not whole. hot path */
static inline bool krait_head_read(struct krait_cursor *cursor, struct krait_event_head *head)
{
    uint32_t word;
    struct krait_event_extended extended;
    if (KRAIT_UNLIKELY(cursor->end - cursor->at < (ptrdiff_t)sizeof(word)))
        return false;
    memcpy(&word, cursor->at, sizeof(word));
    *head = krait_head_unpack(word, head->t);
    if (KRAIT_LIKELY(head->id != KRAIT_CTF_EXTENDED)) {
        cursor->at += sizeof(word);
        return true;
    }
    if (!krait_read_bytes(cursor, &extended, sizeof(extended)))
        return false;
    *head = (struct krait_event_head){ extended.id, extended.timestamp };
    return true;
}

/* Writes the extended header; returns its bytes. */
static inline size_t krait_head_extend(uint8_t *to, uint32_t id, uint64_t t)
{
    struct krait_event_extended extended = { .tag = KRAIT_CTF_EXTENDED, .id = id, .timestamp = t };
    memcpy(to, &extended, sizeof(extended));
    return sizeof(extended);
}

/* An event of 8 bytes as one word: its compact header and its code, whatever the byte order. hot path */
static inline uint64_t krait_head_join(uint32_t head, uint32_t code)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return head | (uint64_t)code << 32;
#else
    return (uint64_t)head << 32 | code;
#endif
}

/* The word's header, and its code in *code. hot path */
static inline uint32_t krait_head_split(uint64_t word, uint32_t *code)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    *code = (uint32_t)(word >> 32);
    return (uint32_t)word;
#else
    *code = (uint32_t)word;
    return (uint32_t)(word >> 32);
#endif
}

/* Names of files in a process's folder. */
#define KRAIT_FILE_METADATA    "metadata"
#define KRAIT_FILE_DEFINITIONS "definitions"
#define KRAIT_FILE_THREAD      "thread-%u-%u"

/* Entries of the env of what krait cut made. */
#define KRAIT_ENV_CUT_FROM  "cut_from"
#define KRAIT_ENV_CUT_UNTIL "cut_until"

#endif
