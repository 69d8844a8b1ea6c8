/* SPDX-License-Identifier: Apache-2.0
 *
 * What the callbacks of sys.monitoring (monitoring.c) and their registration (monitoring_tool.c) share.
 */
#ifndef KRAIT_PYTHON_MONITORING_H
#define KRAIT_PYTHON_MONITORING_H

#include "python/agent.h"
#include "python/compat/running.h"

/* A callback: an object of a type of its own, whose vectorcall is `call`. */
struct krait_monitoring_hook {
    PyObject ob_base;
    krait_vectorcall *call;
    struct krait_interp *in;
    krait_vectorcall *base; /* what `call` calls, where it is a hook around another */
};

/* sys.monitoring.DISABLE; set before the first callback is registered. */
extern PyObject *krait_monitoring_disable;

struct krait_monitoring_row {
    const char *event; /* of sys.monitoring.events: their numbers shift between versions */
    krait_vectorcall *call, *selective;
    krait_vectorcall *around; /* once there are tasks; NULL: none */
    bool c;
};

enum { KRAIT_MONITORING_ROWS = 10 };
_Static_assert(KRAIT_MONITORING_ROWS <= KRAIT_ARRAY_LEN(((struct krait_interp *)0)->hooks), "a hook a row");

extern const struct krait_monitoring_row krait_monitoring_rows[KRAIT_MONITORING_ROWS];

#endif
