/* SPDX-License-Identifier: Apache-2.0
 *
 * One page of the kernel's ring, as trace_pipe_raw hands it out:
 *
 *   ┌───────────┬──────────┬──────────┬──────────┬─────┬────────┐
 *   │ time:64   │ commit:64│ event    │ event    │ …   │ lost:64│
 *   └───────────┴──────────┴──────────┴──────────┴─────┴────────┘
 *                           └──────── commit ─────────┘
 *
 * The low 20 bits of `commit` are the bytes of events; bit 31 says that events before this page were
 * overwritten, bit 30 that their number stands behind the last event. `time` is that of the first event
 * before its own delta. An event begins with a word of type_len:5 (the low bits) and time_delta:27:
 *
 *   type_len    0        length in the next word, which it counts; then the bytes
 *               1 to 28  4 * type_len bytes follow
 *               29       padding: with a delta of 0 the page ends here, else the next word is its length
 *               30       time goes on by the delta and 2^27 times the next word
 *               31       the same is the time itself, of which the upper 5 bits stay as they are
 *
 * Sources: linux, kernel/trace/ring_buffer.c (ring_buffer_read_page, rb_update_read_stamp, rb_fix_abs_ts) and
 * include/linux/ring_buffer.h; events/header_page and events/header_event in tracefs say the same.
 */
#ifndef KRAIT_KERNEL_RINGPAGE_H
#define KRAIT_KERNEL_RINGPAGE_H

#include "base/base.h"

enum { KRAIT_RINGPAGE_HEAD = 16 };
#define KRAIT_RINGPAGE_LOST_UNKNOWN UINT64_MAX

struct krait_ringpage {
    const uint8_t *events;
    size_t size; /* bytes of events */
    size_t at;
    uint64_t time;
    uint64_t lost; /* events that were overwritten before this page's; KRAIT_RINGPAGE_LOST_UNKNOWN: some */
    bool damaged;  /* an event goes beyond the page; set by _next, which then ends */
};

/* Begins at the first event. False when the n bytes are no page. They stay the caller's. */
bool krait_ringpage_begin(struct krait_ringpage *page, const void *bytes, size_t n);

/* The next event: its bytes, how many, and its time in page->time. False at the end. */
bool krait_ringpage_next(struct krait_ringpage *page, const uint8_t **event, size_t *n);

#endif
