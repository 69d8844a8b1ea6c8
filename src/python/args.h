/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments and return values of functions that the user names (--args). docs/decisions/arguments.md says what of the
 * program's code that may run.
 *
 * The hooks' short way never meets such a function: its slot is set aside (codes.c), so that no other call pays for
 * it. Return values are looked for at each end of a function, by the selective hooks.
 */
#ifndef KRAIT_PYTHON_ARGS_H
#define KRAIT_PYTHON_ARGS_H

#include "python/agent.h"

/* All: GIL held; they keep errno and the current exception. */

/* Reads what the recording asks for, which this process has joined. */
void krait_args_read(void);

/* Whether any arguments, or results, are asked for. */
extern bool krait_args_asked, krait_args_results;

/* Which of them are of a function, as bits; 0: none. */
uint64_t krait_args_of(const char *module, const char *name, const char *file);

/* A call of `code` has just been recorded, or ends now with `value` (NULL: by an exception). */
void krait_args_write(struct krait_interp *in, PyObject *code);
void krait_args_write_result(struct krait_interp *in, PyObject *code, PyObject *value);

static inline void krait_args_begun(struct krait_interp *in, PyObject *code)
{
    if (KRAIT_UNLIKELY(krait_args_asked))
        krait_args_write(in, code);
}

static inline void krait_args_ending(struct krait_interp *in, PyObject *code, PyObject *value)
{
    if (KRAIT_UNLIKELY(krait_args_results) && value)
        krait_args_write_result(in, code, value);
}

#endif
