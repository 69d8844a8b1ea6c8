/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernel's function tracers, for functions chosen by name. function_graph reports entry and exit, function only
 * the entry.
 */
#ifndef KRAIT_KERNEL_FUNCTIONS_H
#define KRAIT_KERNEL_FUNCTIONS_H

#include "base/err.h"

/* Which of them tracefs (or an instance: older kernels have function_graph in the first alone) offers; NULL
 * and err: none, or it is kept from everybody. Changes nothing. */
const char *krait_functions_tracer(int dir, struct krait_err *err);
/* Has the instance trace those that match. Returns 0 or a negative errno. */
int krait_functions_start(int instance, const char *tracer, const char *glob, struct krait_err *err);

#endif
