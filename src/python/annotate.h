/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program says about itself: krait.mark, krait.span, krait.counter, krait.flow. They are objects with a __call__ in C, so
 * that a call costs little, and next to nothing where nobody records; and so that no call of them is recorded, which those of
 * functions in C would be.
 */
#ifndef KRAIT_PYTHON_ANNOTATE_H
#define KRAIT_PYTHON_ANNOTATE_H

#include "python/agent.h"

/* The types of krait.mark and the like, and of spans, which are the __exit__ of with statements: of the last interpreter that has
 * imported the module. Calls of such objects are no calls of the program's. */
extern struct krait_note_types {
    PyTypeObject *function, *span;
} krait_note_types;

static inline bool krait_is_note(const PyTypeObject *type)
{
    return type == krait_note_types.function || type == krait_note_types.span;
}

/* Adds them to the module krait._agent. Returns 0, or -1 with an exception set. */
int krait_notes_add_functions(PyObject *module);

#endif
