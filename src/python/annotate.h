/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program says about itself: krait.mark, krait.span, krait.counter, krait.flow. They are objects with a __call__ in C, so
 * that a call costs little, and next to nothing where nobody records; and so that no call of them is recorded, which those of
 * functions in C would be.
 */
#ifndef KRAIT_PYTHON_ANNOTATE_H
#define KRAIT_PYTHON_ANNOTATE_H

#include "python/agent.h"

/* Adds them to the module krait._agent. Returns 0, or -1 with an exception set. */
int krait_notes_add_functions(PyObject *module);

#endif
