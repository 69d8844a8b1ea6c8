/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the metadata of a process's trace: CTF 1.8 TSDL, from the event table and what is known about the process.
 */
#ifndef KRAIT_CTF_WRITE_TSDL_WRITE_H
#define KRAIT_CTF_WRITE_TSDL_WRITE_H

#include "base/buf.h"
#include "event/event.h"

struct krait_tsdl_clock {
    char uuid[37];     /* the boot id, by which readers merge traces of one host */
    uint64_t freq;     /* ticks a second */
    uint64_t offset_s; /* of tick 0 from the epoch (CLOCK_REALTIME) */
    uint64_t offset;   /* and the rest, in ticks */
    bool tsc;          /* the time-stamp counter; else CLOCK_MONOTONIC */
};

struct krait_tsdl_code {
    uint32_t id;
    const char *label;
};

/* Of a recording of samples: ctf/format.h. */
struct krait_tsdl_samples {
    uint64_t rate;    /* that was asked for, a second */
    uint64_t taken;   /* of all threads */
    uint64_t dropped; /* that could not be proved */
    uint64_t rounds;  /* moments that were sampled */
    uint64_t ns;      /* from the first to the last */
    /* Of the intervals between two samples of a thread: the sum, and that of the squares */
    double intervals_ns, squares_ns2;
};

/* Facts about a whole recording, which each of its traces repeats. */
struct krait_tsdl_recording {
    uint64_t ring_bytes;                      /* of each thread's ring */
    uint64_t buffer_bytes;                    /* by how much rings may grow, all together */
    uint64_t grown_bytes;                     /* by how much they have grown at most */
    uint64_t dropped_events;                  /* old ones, dropped to make room for newer ones */
    uint64_t kept_from;                       /* then: the ticks from which on all are kept; 0: not known */
    const char *dropped_for;                  /* ... and the option: "--last" */
    const char *args;                         /* what --args said, a line each; NULL: nothing */
    const char *limit;                        /* the option that ended it: "--for 5s"; NULL: none did */
    const struct krait_tsdl_samples *samples; /* NULL: each call was recorded */
};

/* What a trace has, once all of it is there. */
struct krait_tsdl_contents {
    uint64_t gil_waits;           /* number of gil:wait events */
    bool others[KRAIT_EVENT_IDS]; /* by id: there are some, and krait_event_is_other */
};

struct krait_tsdl {
    uint8_t uuid[16]; /* of the trace */
    struct krait_tsdl_clock clock;
    const char *host;
    const char *procname;
    const char *command;
    uint32_t vpid;
    const struct krait_tsdl_code *codes; /* labels of `enum code` */
    size_t code_count;
    const struct krait_tsdl_recording *recording; /* NULL: not known */
    const struct krait_tsdl_contents *contents;   /* NULL: not known yet */
};

/* Appends the whole text to `out`; check out->failed. */
void krait_tsdl_write(struct krait_buf *out, const struct krait_tsdl *tsdl);

/* ---- parts, for metadata of other traces ---- */

/* A string literal. Names come from programs, so quotes, backslashes and control bytes are escaped; bytes that are not
 * UTF-8 are written unchanged. */
void krait_tsdl_write_literal(struct krait_buf *out, const char *s);
/* Without quotes. */
void krait_tsdl_write_uuid(struct krait_buf *out, const uint8_t uuid[16]);
/* The environment's last lines, of a recording of calls: rings, and what was dropped. */
void krait_tsdl_write_amounts(struct krait_buf *out, const struct krait_tsdl_recording *recording);
/* The block of the clock `monotonic`. */
void krait_tsdl_write_clock(struct krait_buf *out, const struct krait_tsdl_clock *clock);

#endif
