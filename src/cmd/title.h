/* SPDX-License-Identifier: Apache-2.0
 *
 * The title of a picture: what was recorded.
 */
#ifndef KRAIT_CMD_TITLE_H
#define KRAIT_CMD_TITLE_H

#include "base/buf.h"
#include "trace/trace.h"

/* Appends the command line of each recording's first process, its program without the folders that it lies in: "python3 before.py,
 * python3 after.py". Equal ones stand there once. `paths` are those of the trace, as it was opened; nothing if no process was
 * recorded. On failure to->failed is set. */
void krait_title(struct krait_buf *to, const struct krait_trace *trace, const char *const *paths,
                 size_t count);

#endif
