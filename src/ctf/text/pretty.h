/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as lines of text, byte for byte as babeltrace2's sink.text.pretty prints them:
 *
 *   [hh:mm:ss.nnnnnnnnn] (+s.nnnnnnnnn) host:process:(pid) NAME: { packet }, { context }, { fields }
 */
#ifndef KRAIT_CTF_TEXT_PRETTY_H
#define KRAIT_CTF_TEXT_PRETTY_H

#include "ctf/read/loss.h"
#include "ctf/text/line.h"

#include <time.h>

enum krait_pretty_flags {
    KRAIT_PRETTY_SECONDS = 1 << 0, /* times as seconds since the origin */
    KRAIT_PRETTY_CYCLES = 1 << 1,  /* times as the clock's ticks */
    KRAIT_PRETTY_DATE = 1 << 2,
    KRAIT_PRETTY_GMT = 1 << 3,
    KRAIT_PRETTY_NO_DELTA = 1 << 4,
    KRAIT_PRETTY_HEADER_NAMES = 1 << 5, /* "timestamp = ", "name = " */
    KRAIT_PRETTY_TRACE = 1 << 6,        /* the trace's name; these follow --fields */
    KRAIT_PRETTY_HOSTNAME = 1 << 7,
    KRAIT_PRETTY_DOMAIN = 1 << 8,
    KRAIT_PRETTY_PROCNAME = 1 << 9,
    KRAIT_PRETTY_VPID = 1 << 10,
    KRAIT_PRETTY_LOGLEVEL = 1 << 11,
    KRAIT_PRETTY_EMF = 1 << 12,
};

enum { KRAIT_PRETTY_TIME = 48 };

/* What is kept from event to event, for deltas and to avoid printing the same text again; for one reader. Zero all but
 * the first two members. */
struct krait_pretty {
    unsigned flags;
    unsigned text; /* enum krait_text_flags */
    struct krait_lines lines;
    bool any; /* a time was printed */
    int64_t last_ns;
    uint64_t last_ticks;
    bool clock_known;
    int64_t clock_second;               /* that clock_text is of */
    char clock_text[KRAIT_PRETTY_TIME]; /* "hh:mm:ss." */
    size_t clock_len;
    /* The tenth of a second of the last event, if times are printed in the usual form. */
    bool tenth_known;
    int64_t tenth_ns;
    char tenth_text[KRAIT_PRETTY_TIME]; /* "[hh:mm:ss.d" */
    size_t tenth_len;
};

void krait_pretty_done(struct krait_pretty *pretty);

/* Appends the cursor's event and a newline, and skips its fields. On failure out is unchanged and cursor->err is
 * set. */
int krait_pretty_event(struct krait_pretty *pretty, struct krait_ctf_cursor *cursor, struct krait_buf *out);

/* Appends one sentence and a newline: what the tracer says is missing. Prints nothing where babeltrace2 does not. */
void krait_pretty_loss(struct krait_pretty *pretty, const struct krait_ctf_loss *loss, struct krait_buf *out);

#endif
