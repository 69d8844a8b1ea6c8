/* SPDX-License-Identifier: Apache-2.0
 *
 * The folder of a recording.
 */
#ifndef KRAIT_RECORD_FOLDER_H
#define KRAIT_RECORD_FOLDER_H

#include "base/err.h"

/* Makes a folder and those above it, or takes an empty one; `made`: set where it was not there. Returns 0, or a negative errno with
 * err set: -EEXIST if there is something in it. */
int krait_folder_make(const char *path, bool *made, struct krait_err *err);

/* Sets err to errno's reason why `what` ("write in") cannot be done with a folder. Returns the negative errno. */
int krait_folder_refused(struct krait_err *err, const char *what, const char *path);

#endif
