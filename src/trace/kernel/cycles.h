/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts processor cycles, from periods of time with a known frequency. Zeroed memory is a count of 0.
 */
#ifndef KRAIT_TRACE_CYCLES_H
#define KRAIT_TRACE_CYCLES_H

#include "base/base.h"

struct krait_cycles {
    unsigned __int128 millionths; /* of a cycle: ns times kHz */
    uint64_t ns;                  /* of known frequency */
};

/* khz 0: it is not known, or nothing runs. hot path */
static inline void krait_cycles_add(struct krait_cycles *cycles, uint64_t ns, uint32_t khz)
{
    cycles->millionths += (unsigned __int128)ns * khz;
    cycles->ns += khz ? ns : 0;
}

static inline uint64_t krait_cycles_count(const struct krait_cycles *cycles)
{
    return (uint64_t)(cycles->millionths / 1000000);
}

/* The mean frequency; 0 if it is not known. */
static inline uint64_t krait_cycles_mhz(const struct krait_cycles *cycles)
{
    unsigned __int128 khz = cycles->ns ? cycles->millionths / cycles->ns : 0;
    return (uint64_t)(khz + 500) / 1000;
}

#endif
