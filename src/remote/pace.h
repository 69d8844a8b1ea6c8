/* SPDX-License-Identifier: Apache-2.0
 *
 * The instants at which a sampler reads, at random intervals: half to one and a half periods, so that a periodic program is not
 * always read in the same place.
 *
 * Two instants are known ahead, each with a timer. When one timer expires, the kernel programs the CPU's timer device for the other
 * one, so that to arm the first again for a later instant costs little. With a single timer the device would be programmed twice
 * for each reading, the second time by krait, while the thread that is read waits: 13 us in a virtual machine, which has to leave
 * to its host for that.
 */
#ifndef KRAIT_REMOTE_PACE_H
#define KRAIT_REMOTE_PACE_H

#include "base/base.h"

struct krait_pace {
    /* Of timerfd_create(2); -1: krait could not have it, and waits for the instant's time. */
    int timers[2];
    uint64_t due[2]; /* CLOCK_MONOTONIC, ns */
    uint32_t turn;   /* which is next */
    uint32_t random;
    uint64_t rate;
};

/* `rate` readings a second, the first one now. Without timers it goes on. */
void krait_pace_open(struct krait_pace *pace, uint64_t rate);
/* The same anew, from `now_ns` on. */
void krait_pace_begin(struct krait_pace *pace, uint64_t now_ns);
void krait_pace_close(struct krait_pace *pace);

/* When the next reading is due. */
uint64_t krait_pace_due(const struct krait_pace *pace);
/* A descriptor that can be read from then on; -1: there is none. */
int krait_pace_fd(const struct krait_pace *pace);
/* Waits for the next instant, or until `until_ns`, or for a signal. */
void krait_pace_wait(const struct krait_pace *pace, uint64_t until_ns);
/* Turns to the instant after the one that was due, and arms the one after it, which does not lie before `now_ns`: a sampler that
 * was late makes up for one instant at most. */
void krait_pace_next(struct krait_pace *pace, uint64_t now_ns);

#endif
