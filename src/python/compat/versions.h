/* SPDX-License-Identifier: Apache-2.0
 *
 * The versions of CPython that krait records and reads: the rows of the tables in running.c and layout.c.
 */
#ifndef KRAIT_PYTHON_COMPAT_VERSIONS_H
#define KRAIT_PYTHON_COMPAT_VERSIONS_H

#include <stdbool.h>

#define KRAIT_PYTHON_MINOR_MIN  8
#define KRAIT_PYTHON_MINOR_MAX  15
#define KRAIT_PYTHON_MONITORING 12 /* from here on calls are recorded with sys.monitoring (PEP 669) */

#define KRAIT_PYTHON_COUNT (KRAIT_PYTHON_MINOR_MAX - KRAIT_PYTHON_MINOR_MIN + 1)

#define KRAIT_TEXT_OF(x)  #x
#define KRAIT_NUMBER(x)   KRAIT_TEXT_OF(x)
#define KRAIT_PYTHON_MIN  "3." KRAIT_NUMBER(KRAIT_PYTHON_MINOR_MIN)
#define KRAIT_PYTHON_SPAN KRAIT_PYTHON_MIN " to 3." KRAIT_NUMBER(KRAIT_PYTHON_MINOR_MAX)

/* 0 if krait knows this version; below 0 if it is older than those, above 0 if it is newer. */
static inline int krait_python_age(int major, int minor)
{
    if (major != 3)
        return major < 3 ? -1 : 1;
    return minor < KRAIT_PYTHON_MINOR_MIN ? -1 : minor > KRAIT_PYTHON_MINOR_MAX;
}

/* Symbols that CPython exports: any version does, and those that krait knows, since 3.8 has audit hooks (PEP 578), by which
 * krait begins. */
#define KRAIT_PYTHON_ANY   "PyGILState_GetThisThreadState"
#define KRAIT_PYTHON_KNOWN "PySys_AddAuditHook"

/* Whether it is a CPython older than those that krait knows. `has` says whether it has a symbol: in a file or a process. */
static inline bool krait_python_is_too_old(bool (*has)(const void *in, const char *symbol), const void *in)
{
    return has(in, KRAIT_PYTHON_ANY) && !has(in, KRAIT_PYTHON_KNOWN);
}

/* Whether a version tells the types of all exceptions that leave functions, by its name as in "CPython 3.13.0". */
bool krait_python_tells_exceptions(const char *name);

/* How calls are recorded in a version that krait knows: the interpreter's own name for it. */
static inline const char *krait_python_hook_name(int minor)
{
    return minor >= KRAIT_PYTHON_MONITORING ? "sys.monitoring" : "PyEval_SetProfile";
}

#endif
