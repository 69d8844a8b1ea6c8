/* SPDX-License-Identifier: Apache-2.0
 *
 * --snapshot-on: what the program does that a snapshot is taken for. The collector looks at the events as it writes them,
 * so this costs the program nothing; it sees them within a second, as packets are written.
 *
 *   call:GLOB>TIME      a function lasts longer, from its begin to its end, yield or exception; or has lasted so long
 *   span:GLOB>TIME      a span (krait.span and others) does
 *   between:GLOB..GLOB>TIME   a message comes longer after another one of its thread or task, or has not come: a log record,
 *                       warning or mark
 *   exception:GLOB      an exception of this type leaves a Python function
 *   log:LEVEL           a log record of this level or a higher one; with --log
 *   gil>TIME            a thread waits longer for the GIL
 *   loop>TIME           a step of a task holds an event loop up for longer
 *   memory>SIZE         a process has more in memory (RSS)
 *   end:GLOB            a process with such a command line ends, while others go on
 *
 * A trigger that has fired waits before it may again, and there is a bound for all of them: what goes wrong all the time
 * must not fill the disk.
 */
#ifndef KRAIT_RECORD_TRIGGERS_H
#define KRAIT_RECORD_TRIGGERS_H

#include "base/err.h"

struct krait_collector;
struct krait_triggers;

/* Makes the triggers that the texts say. Returns 0, -EINVAL with err saying which text is none, or -ENOMEM. */
int krait_triggers_new(struct krait_triggers **out, const char *const *texts, size_t count,
                       struct krait_err *err);
void krait_triggers_free(struct krait_triggers *triggers);
/* KRAIT_RECORD_* flags of what must be recorded so that each of them can fire. */
uint32_t krait_triggers_need(const struct krait_triggers *triggers);

/* Before the first event of the collector's. */
int krait_triggers_begin(struct krait_collector *c);
/* n bytes of events of a ring's packet, of which the first has a time after `begin`. */
void krait_triggers_see(struct krait_collector *c, uint32_t ring, uint64_t begin, const uint8_t *events,
                        size_t n);
/* The same of definitions of a process: they come before what refers to them. */
void krait_triggers_define(struct krait_collector *c, uint32_t proc, const uint8_t *events, size_t n);
/* A ring or a process is another's from now on. */
void krait_triggers_forget_ring(struct krait_collector *c, uint32_t ring);
void krait_triggers_forget_proc(struct krait_collector *c, uint32_t proc);
/* All events of a process were seen, and no more will come: looks at what lasts until now. */
void krait_triggers_last(struct krait_collector *c, uint32_t proc);
/* A process has ended, of which all events were seen; before krait_triggers_forget_proc. */
void krait_triggers_ended(struct krait_collector *c, uint32_t proc);
/* Once in a round: looks at what lasts still, and takes the snapshot that is due. */
void krait_triggers_round(struct krait_collector *c);
/* At the end of the recording, when all events were seen: takes the snapshot that is due. */
void krait_triggers_finish(struct krait_collector *c);

#endif
