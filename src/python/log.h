/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of the program's `logging`, with --log.
 *
 * What passes the program's own levels and filters is recorded when Logger.callHandlers is called with it, before any
 * handler runs. That function leads to krait's (lead.h), and is called by it in turn: loggers, handlers, levels and
 * what isEnabledFor says are the program's, and nothing is in a list of handlers. Where --log names a level, what the
 * program's own level drops is recorded too: then Logger.debug and its like lead to krait's as well, which ask nothing,
 * but see by isEnabledFor's answer to them that the record was dropped.
 *
 * A message is formatted once for krait where a record is recorded, and never else. Formatting runs what the program's
 * types say of themselves (__str__, __repr__), as each of its handlers does. What these log meanwhile in the same
 * thread goes to no handler: it is said again when a handler formats the record.
 */
#ifndef KRAIT_PYTHON_LOG_H
#define KRAIT_PYTHON_LOG_H

#include "python/agent.h"

struct krait_log;

/* Reads what --log asks for, from the recording that this process has joined. */
void krait_log_read(void);

/* Looks whether the program has imported logging since the last look. GIL held; keeps the current exception. */
void krait_log_see(struct krait_interp *in);
/* The recording ends: puts back what led to krait's. GIL held. */
void krait_log_end(struct krait_interp *in);
/* For another recording, which may ask for other loggers. */
void krait_log_forget(struct krait_interp *in);
/* The interpreter has ended. */
void krait_log_done(struct krait_interp *in);

/* Records one of logging's records, unless it is one that --log has just recorded: krait.Handler. Returns false with
 * an exception set that is no Exception, where a signal's handler raised it. GIL held. */
bool krait_log_handle(struct krait_interp *in, PyObject *record);

/* Whether --log asks for what `logger` says at `level`. */
bool krait_log_wants(struct krait_interp *in, const char *logger, long level);

#endif
