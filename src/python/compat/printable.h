/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KRAIT_PYTHON_COMPAT_PRINTABLE_H
#define KRAIT_PYTHON_COMPAT_PRINTABLE_H

#include "python/compat/layout.h"

/* Whether repr() of that Python shows a character as it is, if it is neither a quote nor a backslash: str.isprintable(). */
bool krait_is_printable(const struct krait_layout_of *version, uint32_t character);

#endif
