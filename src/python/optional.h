/* SPDX-License-Identifier: Apache-2.0
 *
 * What is recorded only with an option, besides log records (log.h): warnings and uncaught exceptions (--log), audit
 * events (--audit), runs of the garbage collector (--gc), imports (--imports).
 *
 * krait sees warnings and imports in patched Python functions (patch.h), and uncaught exceptions and audit events in an
 * audit hook, which stays until Python ends (PEP 578). Only --gc is visible to the program: the collector calls only
 * what is in gc.callbacks.
 */
#ifndef KRAIT_PYTHON_OPTIONAL_H
#define KRAIT_PYTHON_OPTIONAL_H

#include "python/agent.h"

/* All: GIL held; they keep the current exception. */

/* Reads the options of the recording that this process has joined. */
void krait_optional_read(void);
/* From now on looks are due: the recording begins. */
void krait_optional_look(struct krait_interp *in);
/* ... or an audit event tells that something is imported. */
void krait_optional_audit(struct krait_interp *in, const char *event);
/* If a look is due, patches what the program has imported since the last. */
void krait_optional_see(struct krait_interp *in);
/* Whether the program is just importing a module that has to be patched: the next hook sees to it. */
bool krait_optional_awaits(const struct krait_interp *in);
/* Whether an audit event tells that such an import begins. */
bool krait_optional_is_imported(const struct krait_interp *in, const char *event, PyObject *args);
/* The recording ends. */
void krait_optional_end(struct krait_interp *in);
/* For another recording. */
void krait_optional_forget(struct krait_interp *in);
/* The interpreter has ended. */
void krait_optional_done(struct krait_interp *in);

/* ---- warnings.c: warnings and uncaught exceptions ---- */
void krait_warnings_see(struct krait_interp *in);
void krait_warnings_end(struct krait_interp *in);
/* An audit event that tells of an exception that nobody caught. */
void krait_warnings_audit(struct krait_interp *in, const char *event, PyObject *args);

/* ---- audit.c ---- */
void krait_audit_read(void);
/* Sees to it that audit events are told, where they are needed. */
void krait_audit_see(void);
/* The preloaded library tells them. */
void krait_audit_is_fed(void);
/* Whether audit events come here. */
bool krait_audit_is_told(void);
/* Audit hooks have gone with Python's end. */
void krait_audit_forget_hook(void);
/* Of an audit hook: `args` is a tuple or NULL. */
void krait_audit_tell(struct krait_interp *in, const char *event, PyObject *args);

/* ---- collections.c: the garbage collector ---- */
void krait_collections_see(struct krait_interp *in);
void krait_collections_end(struct krait_interp *in);

/* ---- imports.c ---- */
void krait_imports_see(struct krait_interp *in);
void krait_imports_end(struct krait_interp *in);

#endif
