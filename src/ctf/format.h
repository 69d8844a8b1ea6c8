/* SPDX-License-Identifier: Apache-2.0
 *
 * How a krait recording lies on disk and in the rings. It is CTF 1.8.3, in the dialect that LTTng-UST writes,
 * so that any CTF reader reads it; this page is the one place where the bytes are said.
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
 *   extended │ 31:8 │ id:32  │ time:64  │ payload │      since the event before
 *            └──────┴────────┴──────────┴─────────┘
 *
 * Example, a call of code 7 at clock 0x1234567 in the window in which the packet began, and its return 0x99
 * later:
 *
 *   e0 ac 68 24  07 00 00 00      id 0 (python:call), time 0x1234567 << 5; code 7
 *   01 c0 68 24                   id 1 (python:return), time 0x1234600 << 5
 *
 * Version rule: KRAIT_FORMAT_MAJOR changes when a reader of the old form would read the new one wrongly; new
 * event ids, new enumeration values and new env entries do not change it. Both are in the metadata's env.
 *
 * Another env entry, gil_waits, is how many events gil:wait the threads have: it is written when the process
 * is over and all of it is there.
 *
 * Source: CTF specification 1.8.3, sections 5 and 6; lttng-ust, the metadata of its compact event header.
 */
#ifndef KRAIT_CTF_FORMAT_H
#define KRAIT_CTF_FORMAT_H

#include "base/base.h"

#define KRAIT_FORMAT_MAJOR 1
#define KRAIT_FORMAT_MINOR 0

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

/* Names of files in a process's folder. */
#define KRAIT_FILE_METADATA    "metadata"
#define KRAIT_FILE_DEFINITIONS "definitions"
#define KRAIT_FILE_THREAD      "thread-%u-%u"

#endif
