/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_level.h"

#include <stdlib.h>
#include <strings.h>

/* As Lib/logging/__init__.py has them in _nameToLevel. */
static const struct {
    const char *name;
    int32_t level;
} levels[] = { { "NOTSET", 0 }, { "DEBUG", 10 },    { "INFO", 20 },  { "WARNING", 30 },       { "WARN", 30 },
               { "ERROR", 40 }, { "CRITICAL", 50 }, { "FATAL", 50 }, { "OFF", KRAIT_LOG_OFF } };

const char *krait_log_level_name(size_t i)
{
    return i < KRAIT_ARRAY_LEN(levels) ? levels[i].name : NULL;
}

const char *krait_log_level_label(int32_t level)
{
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(levels); i++) {
        if (levels[i].level == level)
            return levels[i].name;
    }
    return NULL;
}

bool krait_log_level(const char *text, int32_t *level)
{
    char *rest;
    long n = strtol(text, &rest, 10);
    if (rest != text && !*rest && n >= 0 && n < KRAIT_LOG_OFF) {
        *level = (int32_t)n;
        return true;
    }
    for (size_t i = 0; i < KRAIT_ARRAY_LEN(levels); i++) {
        if (strcasecmp(text, levels[i].name) == 0) {
            *level = levels[i].level;
            return true;
        }
    }
    return false;
}
