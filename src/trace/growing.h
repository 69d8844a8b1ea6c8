/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings that go on.
 */
#ifndef KRAIT_TRACE_GROWING_H
#define KRAIT_TRACE_GROWING_H

#include "base/base.h"

/* Whether krait records into one of the folders, or into a process's below it. */
bool krait_trace_grows(const char *const *paths, size_t count);

#endif
