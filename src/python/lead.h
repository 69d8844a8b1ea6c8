/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of C modules that lead to krait's. CPython reads a function's PyMethodDef at each call, whatever name the
 * program has it by. So its definition is changed: for all interpreters, and for good.
 */
#ifndef KRAIT_PYTHON_LEAD_H
#define KRAIT_PYTHON_LEAD_H

#include "python/agent.h"

struct krait_lead {
    const char *name;
    PyCFunction ours;  /* is called in its place, the same way */
    PyCFunction *real; /* the module's own, which `ours` calls */
    int flags;         /* how it is called: METH_... */
};

enum {
    KRAIT_LEADS = 4, /* of a module, at most */
};

/* All of them, or none where one is not as expected or cannot be written to: `real` then stays NULL. Once for a module.
 * GIL held; keeps no exception. */
bool krait_lead(PyObject *module, const struct krait_lead *leads, size_t count);

#endif
