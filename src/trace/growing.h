/* SPDX-License-Identifier: Apache-2.0
 *
 * Recordings that go on.
 */
#ifndef KRAIT_TRACE_GROWING_H
#define KRAIT_TRACE_GROWING_H

#include "base/clock.h"

/* What has happened this long ago is written, or was lost: a thread's packet that is not full is written once a second. */
#define KRAIT_GROWING_LATE_NS KRAIT_NS_PER_S

/* Whether krait records into the folder of one process. */
bool krait_process_grows(const char *dir);

/* Whether krait records into one of the folders, or into a process's below it. */
bool krait_trace_grows(const char *const *paths, size_t count);

#endif
