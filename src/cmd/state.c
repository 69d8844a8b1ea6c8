/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/state.h"

#include "base/fmt.h"
#include "base/json.h"
#include "cmd/ending.h"
#include "trace/gil.h"
#include "trace/kernel/kernel.h"

#include <stdio.h>
#include <string.h>

static const char *const titles[] = {
#define X(name, text, title, words) title,
    KRAIT_WALL_STATES(X)
#undef X
};

int krait_state_parse(const char *text, uint32_t *states, struct krait_err *err)
{
    *states = 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ","), i = 0;
        while (i < KRAIT_WALL_COUNT && (strlen(titles[i]) != n || memcmp(titles[i], at, n) != 0))
            i++;
        if (i == KRAIT_WALL_COUNT)
            return krait_err_set(err, -EINVAL, "--state: '%.*s' is not one of %s", (int)n, at,
                                 KRAIT_STATE_CHOICES);
        *states |= 1u << i;
        at += n;
        if (!*at)
            return 0;
    }
}

/* Waits are of something; the others stand for themselves. */
static const struct {
    const char *words;
    bool waits;
} phrases[KRAIT_WALL_COUNT] = {
    [KRAIT_WALL_ON_CPU] = { "on CPU", false },
    [KRAIT_WALL_RUNNABLE] = { "ready for a CPU", false },
    [KRAIT_WALL_STOPPED] = { "stopped", false },
    [KRAIT_WALL_THROTTLED] = { "throttled", false },
    [KRAIT_WALL_UNKNOWN] = { "in an unknown state", false },
    [KRAIT_WALL_GIL] = { "the GIL", true },
    [KRAIT_WALL_LOCK] = { "a lock", true },
    [KRAIT_WALL_DISK] = { "the disk", true },
    [KRAIT_WALL_NETWORK] = { "the network", true },
    [KRAIT_WALL_TIMER] = { "a timer", true },
    [KRAIT_WALL_CHILD] = { "a child process", true },
    [KRAIT_WALL_FAULT] = { "a page of memory", true },
    [KRAIT_WALL_OTHER] = { "something else", true },
};

void krait_state_words(struct krait_buf *out, uint32_t states)
{
    const char *before = "";
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (phrases[i].waits || !(states >> i & 1))
            continue;
        krait_buf_fmt(out, "%s%s", before, phrases[i].words);
        before = " or ";
    }
    before = *before ? ", or waiting for " : "waiting for ";
    for (unsigned i = 0; i < KRAIT_WALL_COUNT; i++) {
        if (!phrases[i].waits || !(states >> i & 1))
            continue;
        krait_buf_fmt(out, "%s%s", before, phrases[i].words);
        before = " or ";
    }
}

int krait_state_wall(struct krait_wall **out, const struct krait_trace *trace, const char *verb,
                     struct krait_err *err)
{
    int waits = krait_gil_was_waited_for(trace);
    *out = NULL;
    if (waits < 0)
        return krait_err_set(err, waits, "out of memory");
    unsigned flags = (waits ? KRAIT_WALL_WAITS : 0) | (trace->has_kernel ? KRAIT_WALL_KERNEL : 0) |
                     (trace->samples.rate ? KRAIT_WALL_SAMPLES : 0);
    if (!flags)
        return 0;
    int rc = krait_wall_new(out, trace, flags, err);
    if (!rc)
        krait_ending_warn_kernel(verb, krait_wall_damage(*out)->text);
    return rc;
}

const char krait_state_of_samples[] =
    "the states are those of samples: cpu is running or ready for a CPU, other is blocked, whatever for";

/* Samples do not tell what a blocked thread waits for. */
static int check_samples(uint32_t states, struct krait_err *err)
{
    const uint32_t known = 1u << KRAIT_WALL_ON_CPU | 1u << KRAIT_WALL_GIL | 1u << KRAIT_WALL_OTHER;
    if (!(states & ~known))
        return 0;
    return krait_err_set(
        err, -ENODATA,
        "--state: samples know the states cpu (running or ready), gil and other (blocked) alone; "
        "record with --kernel");
}

int krait_state_check(const struct krait_wall *wall, uint32_t states, struct krait_err *err)
{
    bool kernel = wall && krait_wall_has_kernel(wall), gil = states == 1u << KRAIT_WALL_GIL;
    if (wall && !kernel && krait_wall_has_samples(wall))
        return check_samples(states, err);
    if (kernel || (wall && gil))
        return 0;
    if (gil)
        return krait_err_set(err, -ENODATA, "--state gil: the recording has no waits for the GIL");
    return krait_err_set(err, -ENODATA,
                         "--state: the recording has no thread states%s; record with --kernel or --sample",
                         wall ? ", but for waits for the GIL" : "");
}

int krait_state_stolen(struct krait_state_stolen *stolen, const struct krait_trace *trace,
                       struct krait_range range, const struct krait_ranges *parts)
{
    const struct krait_ranges whole = { .items = &range, .count = 1 };
    KRAIT_CLEANUP(krait_kernel_steals_done) struct krait_kernel_steals steals = { 0 };
    struct krait_kernel_events *events;
    struct krait_err ignored;
    uint64_t ns;
    *stolen = (struct krait_state_stolen){ 0 };
    if (!trace->has_kernel || krait_trace_kernel(trace, &events, &ignored) ||
        !krait_kernel_events_has(events, KRAIT_KERNEL_EVENT_STEAL))
        return 0;
    int rc = krait_kernel_steals_read(&steals, &ns, parts && parts->count ? parts : &whole, events);
    *stolen = (struct krait_state_stolen){ .known = krait_kernel_steals_known(&steals),
                                           .ns = krait_kernel_steals_sum(&steals),
                                           .all_ns = ns * steals.count };
    return rc;
}

/* The kernel does not tell when it was taken, so that it is in the states of what ran. */
void krait_state_note_stolen(struct krait_buf *notes, const struct krait_state_stolen *stolen)
{
    char ns[KRAIT_FMT_SIZE], share[KRAIT_FMT_SIZE];
    if (stolen->ns)
        krait_buf_fmt(
            notes,
            "stolen: the host of this virtual machine took %s of the CPUs' time (%s); it counts as time on "
            "CPU\n",
            krait_fmt_ns(ns, stolen->ns), krait_fmt_share(share, stolen->ns, stolen->all_ns));
}

void krait_state_json_stolen(struct krait_buf *out, const struct krait_state_stolen *stolen)
{
    krait_json_key_u64_or_null(out, "stolen_ns", stolen->known, stolen->ns);
}

const char *krait_state_wall_compared(char out[KRAIT_STATE_COMPARED_SIZE], uint32_t clocked, uint32_t count)
{
    char those[KRAIT_FMT_SIZE] = "no recording has";
    if (clocked)
        snprintf(those, sizeof(those), "only %u of %u recordings %s", clocked, count,
                 clocked == 1 ? "has" : "have");
    snprintf(out, KRAIT_STATE_COMPARED_SIZE,
             "comparing wall time, waits included: %s on-CPU time (krait record --kernel)", those);
    return out;
}
