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

#include "python/codes.h"
#include "python/notes.h"

/* All: GIL held; they keep errno and the current exception. */

/* Reads what the recording asks for, which this process has joined. */
void krait_args_read(void);

/* Whether any arguments, or results, are asked for. */
extern bool krait_args_asked, krait_args_results;

/* Which of them are of a function, as bits; 0: none. */
uint64_t krait_args_of(const struct krait_interp *in, const char *module, const char *name, const char *file);

/* A call of `code` has just been recorded, or ends now with `value` (NULL: by an exception). */
void krait_args_write(struct krait_interp *in, PyObject *code);
void krait_args_write_result(struct krait_interp *in, PyObject *code, PyObject *value);

static inline void krait_args_begun(struct krait_interp *in, PyObject *code)
{
    const struct krait_code *slot = KRAIT_UNLIKELY(krait_args_asked) ? krait_code_find(in, code) : NULL;
    if (KRAIT_UNLIKELY(slot && slot->flags & KRAIT_CODE_ARGS))
        krait_args_write(in, code);
}

static inline void krait_args_ending(struct krait_interp *in, PyObject *code, PyObject *value)
{
    if (KRAIT_UNLIKELY(krait_args_results) && value)
        krait_args_write_result(in, code, value);
}

/* ---- work.c: what is handed to executors ---- */

enum { KRAIT_WORK_SHIFT = 56 }; /* the bits that tell which of its functions it is */

/* Which one it is of those that executors hand work on by, as bits from KRAIT_WORK_SHIFT on; 0: none. */
uint64_t krait_work_of(const struct krait_interp *in, const char *module, const char *name);
/* In a note: such a function has been called. `which` is from krait_work_of. */
void krait_work_write(struct krait_note *note, uint64_t which, PyObject *locals);

/* The ids of functions are no longer valid; and all that is known of work: another recording begins, or the interpreter ends. */
void krait_work_forget_functions(struct krait_interp *in);
void krait_work_forget(struct krait_interp *in);

/* A local variable of the innermost frame, if that runs `code`; new reference or NULL. */
PyObject *krait_args_local(PyObject *code, const char *name);
/* ... of that frame. */
PyObject *krait_args_frame_local(PyObject *frame, const char *name);

/* An attribute without running code of the program's; new reference or NULL. */
PyObject *krait_args_plain_attr(PyObject *obj, const char *name);

#endif
