/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracepoints of gen_ust: a table of channels, their events and the fields of these, from which both the
 * metadata (ust_metadata.c) and the bytes (gen_ust.c) are made.
 */
#ifndef KRAIT_BENCH_UST_EVENTS_H
#define KRAIT_BENCH_UST_EVENTS_H

#include "base/buf.h"

enum { UST_FIELDS = 8, UST_EVENTS = 64, UST_CHANNELS = 2 };

enum ust_kind {
    UST_UNSIGNED,
    UST_SIGNED,
    UST_FLOAT,
    UST_STRING,   /* some words and a NUL */
    UST_TEXT,     /* `length` characters, filled up with NULs */
    UST_ARRAY,    /* `length` unsigned integers */
    UST_SEQUENCE, /* 64 bits of length, at most `length`; the integers */
};

/* Where an integer comes from. */
enum ust_source {
    UST_RANGE, /* low to high */
    UST_POINTER,
    UST_COUNT,   /* one more each time, in a stream */
    UST_CALL,    /* a function's address; it is entered */
    UST_RETURN,  /* that of the function that was entered last; it is left */
    UST_THREAD,  /* number of the thread that runs */
    UST_PROCESS, /* number of the process */
    UST_NAME,    /* UST_TEXT: name of the thread that runs */
};

struct ust_words {
    unsigned count;
    const char *word[12];
};

struct ust_field {
    const char *name; /* NULL behind the last */
    enum ust_kind kind;
    enum ust_source source;
    uint8_t bits, base;
    uint16_t length;               /* strings: the most words */
    const struct ust_words *words; /* of strings; of an integer: its labels, from `low` on */
    int64_t low, high;
};

struct ust_event {
    const char *name;
    unsigned weight; /* how often it is seen, of the sum of all in its channel */
    int level;       /* as LTTng counts: 6 is TRACE_INFO, 14 TRACE_DEBUG */
    struct ust_field fields[UST_FIELDS];
};

struct ust_channel {
    const char *name;
    bool large; /* its event header, as LTTng writes it for 31 classes and more */
    uint32_t packet;
    struct ust_field context[4];
    unsigned count;
    struct ust_event *events;
};

extern struct ust_channel ust_channels[UST_CHANNELS];

/* Fills in what the table leaves to a recipe: the second channel's many classes. */
void ust_channels_complete(void);

#define UST_UUID         "2c6bf15a-6b29-4d2a-9c3f-8d1a0f6b7e55"
#define UST_CLOCK_OFFSET 1767225600000000000ull

/* As LTTng 2.13 writes it in CTF 1.8, and LTTng 2.16 in CTF 2 (lttng-tools, tsdl-trace-class-visitor.cpp and
 * ctf2-trace-class-visitor.cpp). The same bytes fit both. */
void ust_metadata_tsdl(struct krait_buf *out);
void ust_metadata_json(struct krait_buf *out);

#endif
