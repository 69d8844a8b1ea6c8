/* SPDX-License-Identifier: Apache-2.0
 *
 * LTTng's function events, for importers that read what lies beside them.
 */
#ifndef KRAIT_TRACE_LTTNG_FUNCTIONS_H
#define KRAIT_TRACE_LTTNG_FUNCTIONS_H

#include "base/base.h"

/* Whether an event of that name is one of those that make calls, or name them. */
bool krait_lttng_functions_reads(const char *name);

#endif
