/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of the program's `logging`, with --log.
 *
 * A record that passes the program's own levels and filters is recorded when Logger.callHandlers is called with it,
 * before any handler runs. krait patches that function (patch.h): loggers, handlers, levels and the results of
 * isEnabledFor stay the program's, and krait is in no list of handlers. If --log names a level, krait also records what
 * the program's own level drops. It then patches Logger.debug and the like, which see from isEnabledFor's answer to
 * them that the record is dropped.
 *
 * krait formats the message of each record that it records, once. Formatting runs __str__ and __repr__ of the program's
 * types, as each of its handlers does. If these log something in the same thread meanwhile, no handler gets it, because
 * it will be logged again when a handler formats the record.
 */
#ifndef KRAIT_PYTHON_LOG_H
#define KRAIT_PYTHON_LOG_H

#include "python/agent.h"

struct krait_log;

/* Reads what --log asks for, from the recording that this process has joined. */
void krait_log_read(void);

/* Patches logging if the program has imported it since the last call of this. GIL held; keeps the current exception. */
void krait_log_see(struct krait_interp *in);
/* The recording ends: undoes the patches. GIL held. */
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
