/* SPDX-License-Identifier: Apache-2.0
 *
 * What krait top --exact reads from a program's rings, in which the program can write anything. The input is a row of
 * steps, each a byte: what is done (3 bits), the process's slot (2), the ring (2); before definitions follows their
 * length (2 bytes), before events also the time before the first one (8).
 */
#include "live/live.h"

#include "base/base.h"
#include "base/cursor.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    PROCESS_BEGINS,
    PROCESS_ENDS,
    THREAD_BEGINS,
    THREAD_ENDS,
    DEFINES,
    EVENTS,
    TURNS,
    SWITCHES,
    PLACES = 4
};

struct run {
    struct krait_live *live;
    struct krait_cursor in;
    bool procs[PLACES], rings[PLACES];
    uint32_t slot_of[PLACES];
    uint64_t now;
};

static uint64_t number(struct run *run, size_t bytes)
{
    uint64_t value = 0;
    size_t n = KRAIT_MIN(bytes, (size_t)(run->in.end - run->in.at));
    memcpy(&value, run->in.at, n);
    run->in.at += n;
    return value;
}

/* A copy, so that whoever reads behind its end is found. */
static uint8_t *bytes(struct run *run, size_t *n)
{
    size_t wanted = (size_t)number(run, 2);
    *n = KRAIT_MIN(wanted, (size_t)(run->in.end - run->in.at));
    uint8_t *copy = malloc(*n + !*n);
    if (!copy)
        abort();
    memcpy(copy, run->in.at, *n);
    run->in.at += *n;
    return copy;
}

static int check_row(void *ctx, const struct krait_live_row *row)
{
    if (!row->func->label || !row->func->marked || !row->thread || row->all.calls < row->last.calls)
        abort();
    return 0;
}

static int check_task(void *ctx, const struct krait_live_task *task)
{
    if (!task->func->label || !task->name || task->all.steps < task->last.steps)
        abort();
    return 0;
}

static void turn(struct run *run)
{
    krait_live_turn(run->live, run->now += 1000);
    krait_live_each(run->live, check_row, NULL);
    krait_live_each_task(run->live, check_task, NULL);
}

static void read_bytes(struct run *run, unsigned step, uint32_t slot, uint32_t ring)
{
    const struct krait_tap *tap = krait_live_tap(run->live);
    struct krait_packet_head head = { .timestamp_begin = step == EVENTS ? number(run, 8) : 0 };
    size_t n;
    uint8_t *copy = bytes(run, &n);
    if (step == EVENTS && run->rings[ring] && tap->events(tap->ctx, ring, &head, copy, n) > n)
        abort();
    if (step == DEFINES && run->procs[slot])
        tap->defines(tap->ctx, slot, copy, n);
    free(copy);
}

static void end_process(struct run *run, uint32_t slot)
{
    const struct krait_tap *tap = krait_live_tap(run->live);
    for (uint32_t i = 0; i < PLACES; i++) {
        if (!run->rings[i] || run->slot_of[i] != slot)
            continue;
        tap->thread_ends(tap->ctx, i);
        run->rings[i] = false;
    }
    tap->process_ends(tap->ctx, slot);
    run->procs[slot] = false;
}

static void take_step(struct run *run)
{
    const struct krait_tap *tap = krait_live_tap(run->live);
    unsigned byte = (unsigned)number(run, 1), step = byte & 7;
    uint32_t slot = byte >> 3 & 3, ring = byte >> 5 & 3;
    if (step == PROCESS_BEGINS && !run->procs[slot]) {
        tap->process_begins(tap->ctx, slot, 100 + (int)slot);
        run->procs[slot] = true;
    } else if (step == PROCESS_ENDS && run->procs[slot]) {
        end_process(run, slot);
    } else if (step == THREAD_BEGINS && run->procs[slot] && !run->rings[ring]) {
        tap->thread_begins(tap->ctx, ring, slot, 200 + ring);
        run->rings[ring] = true;
        run->slot_of[ring] = slot;
    } else if (step == THREAD_ENDS && run->rings[ring]) {
        tap->thread_ends(tap->ctx, ring);
        run->rings[ring] = false;
    } else if (step == DEFINES || step == EVENTS) {
        read_bytes(run, step, slot, ring);
    } else if (step == TURNS) {
        turn(run);
    } else if (step == SWITCHES) {
        static void (*const ways[PLACES])(struct krait_live *,
                                          uint64_t) = { krait_live_reset, krait_live_pause, krait_live_resume,
                                                        krait_live_reset };
        ways[slot](run->live, run->now += 1000);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct krait_clock clock = { .freq = 1000000000 };
    struct run run = { .in = { data, data + size } };
    if (krait_live_new(&run.live))
        return 0;
    krait_live_set_clock(run.live, &clock);
    run.now = 1;
    while (run.in.at < run.in.end)
        take_step(&run);
    turn(&run);
    krait_live_free(run.live);
    return 0;
}
