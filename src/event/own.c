/* SPDX-License-Identifier: Apache-2.0 */
#include "event/own.h"

#include "event/event.h"

#include <string.h>

bool krait_own_file(const char *file)
{
    return strncmp(file, KRAIT_OWN_FILE, strlen(KRAIT_OWN_FILE)) == 0;
}

bool krait_own_read(char *file, struct krait_own_before *before)
{
    char *module = file + strlen(KRAIT_OWN_FILE), *qualname = strchr(module, ':');
    char *its = qualname ? strchr(qualname + 1, ':') : NULL;
    size_t n = its ? strlen(its) : 0;
    if (n < 2 || its[n - 1] != '>')
        return false;
    its[n - 1] = '\0';
    *qualname++ = *its++ = '\0';
    *before = (struct krait_own_before){ module, qualname, its };
    return true;
}
