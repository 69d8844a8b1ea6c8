/* SPDX-License-Identifier: Apache-2.0
 *
 * What distinguishes traces (each has a uuid), and by what readers merge them (a clock with the host's boot id).
 */
#ifndef KRAIT_RECORD_TRACEID_H
#define KRAIT_RECORD_TRACEID_H

#include "base/clock.h"
#include "base/err.h"
#include "ctf/write/tsdl_write.h"

/* A new random uuid. Returns 0, or a negative errno when there are no random numbers. */
int krait_traceid_new(uint8_t uuid[16], struct krait_err *err);

/* What the metadata says of the clock. Its uuid is the boot id, as LTTng's is; zeros if there is none. */
void krait_traceid_clock(struct krait_tsdl_clock *to, const struct krait_clock *clock);

#endif
