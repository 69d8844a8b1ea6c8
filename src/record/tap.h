/* SPDX-License-Identifier: Apache-2.0
 *
 * Who reads the events in the rings themselves, instead of a folder: a collector that has a tap writes no file.
 *
 * The collector's thread calls it: with the events of each thread in their order, of different threads in any order, and
 * with definitions before the events that they belong to. What it is given is valid during the call, in the rings: the
 * program can change it meanwhile, so nothing may be read twice.
 */
#ifndef KRAIT_RECORD_TAP_H
#define KRAIT_RECORD_TAP_H

#include "ctf/format.h"

struct krait_tap {
    void *ctx;
    /* A process begins to be recorded in a slot, which is free again after process_ends. */
    void (*process_begins)(void *ctx, uint32_t slot, int pid);
    void (*process_ends)(void *ctx, uint32_t slot);
    /* Events of the long form: names, and what is told of the process. */
    void (*defines)(void *ctx, uint32_t slot, const uint8_t *events, size_t n);
    /* A thread of the process writes into a ring, which is another's after thread_ends. */
    void (*thread_begins)(void *ctx, uint32_t ring, uint32_t slot, uint32_t tid);
    void (*thread_ends)(void *ctx, uint32_t ring);
    /* `head` says the time before the first event. Returns how many events there were. hot path */
    uint64_t (*events)(void *ctx, uint32_t ring, const struct krait_packet_head *head, const uint8_t *events,
                       size_t n);
};

#endif
