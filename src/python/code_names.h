/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of functions and types, read without running the program's code. All: GIL held; they keep no exception.
 */
#ifndef KRAIT_PYTHON_CODE_NAMES_H
#define KRAIT_PYTHON_CODE_NAMES_H

#include "python/agent.h"
#include "python/compat/running.h"

enum {
    KRAIT_CODE_NAME_BYTES = 900, /* longer names are cut, between characters */
};

/* What a code:define has. A text that is not known is empty. */
struct krait_code_text {
    char module[KRAIT_CODE_NAME_BYTES];
    char name[KRAIT_CODE_NAME_BYTES];
    char file[KRAIT_CODE_NAME_BYTES];
    uint32_t line;
    uint32_t site, site_line; /* with --call-sites: the caller's id, and the line in it */
};

/* Of a code object. `frame` is a frame of it, or NULL; borrowed. Without a frame the module is not known. */
void krait_code_describe(struct krait_interp *in, PyObject *code, PyObject *frame, struct krait_code_text *t);
/* Of a function that is written in Python, without its file and line: what krait_code_describe finds when it is called. */
void krait_code_describe_function(struct krait_interp *in, PyObject *function, struct krait_code_text *t);
/* Of a function or method that is written in C. */
void krait_code_describe_c(PyObject *callable, struct krait_code_text *t);
/* The module of a class, and its name with `suffix`. */
void krait_code_describe_type(PyObject *cls, const char *suffix, struct krait_code_text *t);

/* An attribute of a code object; 0: it has none such. */
uint32_t krait_code_attr_u32(PyObject *obj, const char *name);
/* Whether it is of a function, not of a class's body or a module. */
bool krait_code_is_function(PyObject *code);

#endif
