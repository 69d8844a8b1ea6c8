/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that lead to krait's.
 *
 * Of C modules: CPython reads a function's PyMethodDef at each call, whatever name the program has it by. So its
 * definition is changed: for all interpreters, and for good.
 *
 * Of Python modules: CPython calls a function object by the address that it has for the vectorcall protocol (PEP 590).
 * That address is changed, by PyFunction_SetVectorcall (3.12), which is made for it, and put back when the recording
 * ends. The function stays what it is: same object, code, attributes. Python 3.11 runs a function's frame without a
 * look at the address, so there an object that passes for the function takes its place in its class or module.
 */
#ifndef KRAIT_PYTHON_LEAD_H
#define KRAIT_PYTHON_LEAD_H

#include "python/agent.h"
#include "python/compat.h"

struct krait_lead {
    const char *name;
    PyCFunction ours;  /* the replacement, called in the same way */
    PyCFunction *real; /* the module's own, which `ours` calls */
    int flags;         /* how it is called: METH_... */
};

enum {
    KRAIT_LEADS = 4, /* of a module, at most */
};

/* Replaces all of them; or none if one is not as expected or cannot be written to: `real` then stays NULL. Once for
 * each module. GIL held; leaves no exception. */
bool krait_lead(PyObject *module, const struct krait_lead *leads, size_t count);

struct krait_lead_python {
    const char *module, *owner; /* the class; NULL: a function of the module */
    const char *name;
    krait_vectorcall *ours; /* is called in its place; the callable is the function itself */
};

/* Leads those of the functions that the program has imported since the last look, and that are Python functions which
 * nobody else leads. Where the program puts another in a function's place later, that other is left alone. GIL held;
 * keeps the current exception; runs no code of the program's. */
void krait_lead_python(const struct krait_lead_python *leads, struct krait_led *led, size_t count);
/* Puts back what krait_lead_python has done. GIL held. */
void krait_unlead_python(const struct krait_lead_python *leads, struct krait_led *led, size_t count);
/* Calls the function itself. What `ours` does with its own arguments. */
PyObject *krait_lead_call(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names);
/* Leads this function alone, for as long as it lives; new reference to what is to take its place, which is mostly the
 * function itself. NULL without memory: no exception is set. GIL held. */
PyObject *krait_lead_one(PyObject *function, krait_vectorcall *ours);

#endif
