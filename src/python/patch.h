/* SPDX-License-Identifier: Apache-2.0
 *
 * Patches: calls of a function of the program go to a function of krait's, which calls the original.
 *
 * C functions: CPython reads a function's PyMethodDef at each call, under whatever name the program calls it. krait
 * changes this definition, for all interpreters and until the process ends.
 *
 * Python functions: CPython calls a function object through its address for the vectorcall protocol (PEP 590). krait
 * changes this address by PyFunction_SetVectorcall (3.12), which exists for this purpose, and restores it when the
 * recording ends. Object, code and attributes of the function stay the same. Python 3.11 does not read the address
 * when it pushes a function's frame, so there krait puts a stand-in object in the function's place in its class or module.
 */
#ifndef KRAIT_PYTHON_PATCH_H
#define KRAIT_PYTHON_PATCH_H

#include "python/agent.h"
#include "python/compat/running.h"

struct krait_patch {
    const char *name;  /* of a function, or Type.method */
    PyCFunction ours;  /* the replacement, called in the same way */
    PyCFunction *real; /* the original, which `ours` calls */
    int flags;         /* how it is called: METH_... */
};

enum {
    KRAIT_PATCHES = 4, /* of a module, at most */
};

/* Replaces all of them; or none if one is not as expected or cannot be written to: `real` then stays NULL. Once for
 * each module. GIL held; leaves no exception. */
bool krait_patch(PyObject *module, const struct krait_patch *patches, size_t count);

struct krait_patch_python {
    const char *module, *owner; /* the class; NULL: a function of the module */
    const char *name;
    krait_vectorcall *ours; /* is called in its place; the callable is the function itself */
};

/* Patches those of the functions that the program has imported since the last call of this, if they are Python functions
 * that nobody else has patched. If the program replaces a function later, its replacement is not patched. GIL held;
 * keeps the current exception; runs no code of the program. */
void krait_patch_python(const struct krait_patch_python *patches, struct krait_patched *patched,
                        size_t count);
/* Undoes krait_patch_python. GIL held. */
void krait_unpatch_python(const struct krait_patch_python *patches, struct krait_patched *patched,
                          size_t count);
/* Calls the original function: for `ours`, with its own arguments. */
PyObject *krait_call_original(PyObject *function, PyObject *const *args, size_t nargs, PyObject *names);
/* Patches this one function for as long as it lives. Returns a new reference to the object to use in its place, which is
 * usually the function itself; NULL if memory is out, without an exception. GIL held. */
PyObject *krait_patch_one(PyObject *function, krait_vectorcall *ours);

#endif
