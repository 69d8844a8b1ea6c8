/* SPDX-License-Identifier: Apache-2.0
 *
 * The ticks of a time axis: where they are and what stands at them. web/src/time.ts does the same for the page.
 */
#ifndef KRAIT_VIEW_TICKS_H
#define KRAIT_VIEW_TICKS_H

#include "base/buf.h"

#include <stdint.h>

/* The least step of at least `least_ns` nanoseconds: 1, 2 or 5 times a power of ten up to 10 s; from there on as clocks
 * and calendars divide time, up to 1, 2 or 5 times a power of ten days. */
uint64_t krait_tick_step(double least_ns);
/* "1.5 ms", from a minute on "5m 20s", "2h 46m", "115d 06h": down to the unit of the step. Appends to `to`. */
void krait_tick_label(struct krait_buf *to, uint64_t ns, uint64_t step_ns);
/* The same of a moment from a minute on, down to its last unit that is not 0, without parts of a second. */
void krait_tick_clock(struct krait_buf *to, uint64_t ns);

#endif
