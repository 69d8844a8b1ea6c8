/* SPDX-License-Identifier: Apache-2.0 */
#include "base/func_glob.h"

#include <fnmatch.h>

bool krait_func_glob_matches(const char *glob, const char *module, const char *name, const char *file)
{
    char full[2048];
    snprintf(full, sizeof(full), "%s.%s", module, name);
    return fnmatch(glob, module, 0) == 0 || fnmatch(glob, name, 0) == 0 || fnmatch(glob, full, 0) == 0 ||
           (*file && fnmatch(glob, file, 0) == 0);
}
