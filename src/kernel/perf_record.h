/* SPDX-License-Identifier: Apache-2.0
 *
 * One record of a perf event's ring, as perf_event_open(2) lays it out for the events that krait opens:
 *
 *   ┌─────────┬─────────┬─────────┬────────────┬───────────────────────────────┐
 *   │ type:32 │ misc:16 │ size:16 │ of the type│ pid:32 tid:32 time:64 id:64   │
 *   └─────────┴─────────┴─────────┴────────────┴───────────────────────────────┘
 *                                                PERF_SAMPLE_TID, _TIME and _IDENTIFIER (sample_id_all)
 *   sample    id:64 ip:64 pid:32 tid:32 time:64 addr:64 and nothing behind
 *   fork      pid:32 ppid:32 tid:32 ptid:32 time:64
 *   exit      the same
 *   comm      pid:32 tid:32 text, filled up to 8 bytes
 *   lost      id:64 count:64
 *   switch    nothing
 */
#ifndef KRAIT_KERNEL_PERF_RECORD_H
#define KRAIT_KERNEL_PERF_RECORD_H

#include "base/base.h"

#include <linux/perf_event.h>

#define KRAIT_PERF_SAMPLE_TYPE \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR)

enum { KRAIT_PERF_RECORD_MAX = 256 }; /* bytes of the largest record that is understood */

struct krait_perf_record {
    uint32_t type; /* PERF_RECORD_* */
    uint16_t misc;
    int32_t pid, tid; /* of the thread in which it happened; not above 0: it is gone, or not to be seen */
    uint64_t time;    /* in ns of the events' clock */
    union {
        struct {
            uint64_t id, ip, addr;
        } sample;
        struct {
            int32_t pid, ppid, tid, ptid;
        } task;
        struct {
            int32_t pid, tid;
            char text[16]; /* terminated */
        } comm;
        uint64_t lost;
    };
};

/* From the n bytes of one record. False when it is cut short, or of a type that krait does not ask for. */
bool krait_perf_record_parse(struct krait_perf_record *record, const void *bytes, size_t n);

#endif
