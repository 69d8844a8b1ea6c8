/* SPDX-License-Identifier: Apache-2.0
 *
 * Globs of functions, as --include, --exclude and --args take them.
 */
#ifndef KRAIT_BASE_FUNC_GLOB_H
#define KRAIT_BASE_FUNC_GLOB_H

#include "base/base.h"

/* Whether the glob matches the function's module, its qualified name, both with a dot between, or its file. An empty
 * file is none. */
bool krait_func_glob_matches(const char *glob, const char *module, const char *name, const char *file);

#endif
