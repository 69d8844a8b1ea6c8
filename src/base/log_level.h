/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels of Python's logging, and OFF, which is above all. A program may name others (logging.addLevelName).
 */
#ifndef KRAIT_BASE_LOG_LEVEL_H
#define KRAIT_BASE_LOG_LEVEL_H

#include "base/base.h"

#define KRAIT_LOG_OFF INT32_MAX

/* A number, or a name in upper or lower case. False: it is neither, and *level is untouched. */
bool krait_log_level(const char *text, int32_t *level);

/* The i-th name; NULL: there are no more. */
const char *krait_log_level_name(size_t i);

/* The first name of a level; NULL: it has none of these names, it is the program's own. */
const char *krait_log_level_label(int32_t level);

/* The name that is meant by one that krait_log_level does not know; NULL: none is near. A name with digits, as DEBUG2, is
 * the program's own. */
const char *krait_log_level_near(const char *text);

#endif
