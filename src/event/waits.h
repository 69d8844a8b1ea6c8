/* SPDX-License-Identifier: Apache-2.0
 *
 * Which tasks wait for the same thing. A task waits for one thing at most; many may wait for one.
 */
#ifndef KRAIT_EVENT_WAITS_H
#define KRAIT_EVENT_WAITS_H

#include "base/map.h"

/* All zeros: nobody waits. What a number names is the caller's. */
struct krait_waits {
    struct krait_map last; /* a key to the number of who began to wait for it last, + 1; 0: nobody */
    size_t most;           /* of krait_map_trim */
    struct krait_wait {
        uint64_t key;          /* what it waits for; 0: nothing */
        uint32_t later, older; /* the numbers of its neighbours that wait for the same, + 1; 0: none */
    } * of;                    /* by number */
    uint32_t cap;
};

/* Nobody waits any more. */
void krait_waits_done(struct krait_waits *waits);
/* A task waits for this key, and no longer for another one; of 0 for nothing. Returns 0, or -ENOMEM: it waits for nothing. */
int krait_waits_begin(struct krait_waits *waits, uint32_t task, uint64_t key);
/* It waits for nothing. Takes the same time, however many wait for what it waited for. */
void krait_waits_end(struct krait_waits *waits, uint32_t task);
/* Who waits for a key: the last that began, and who began before that one. KRAIT_NO_ID: nobody. */
uint32_t krait_waits_last(const struct krait_waits *waits, uint64_t key);
uint32_t krait_waits_older(const struct krait_waits *waits, uint32_t task);

#endif
